"""Laws of work in a process of its own: it is kept, it comes after others, and its end is its own or at a word."""

import os
import signal
import subprocess
import sys

import pytest
from processes import ROOT, until

from whitelab.base.own_process import ProcessFailed, begun_apart, in_own_process


@pytest.fixture
def worker():
    """The process of a kind of work that no other test has."""
    return in_own_process("one kind", os.getpid)


def test_a_kind_of_work_keeps_its_process_which_yields_to_others(worker):
    assert worker != os.getpid()
    assert in_own_process("one kind", os.getpid) == worker
    assert os.getpriority(os.PRIO_PROCESS, worker) == os.getpriority(os.PRIO_PROCESS, 0) + 5


def test_what_the_work_raises_is_raised_here_and_the_process_stays(worker):
    with pytest.raises(ValueError, match="invalid literal"):
        in_own_process("one kind", int, "x")
    assert in_own_process("one kind", os.getpid) == worker


def test_a_process_that_ends_is_said_in_one_line_replaced_and_no_other_ends_with_it(worker):
    other = in_own_process("another", os.getpid)
    os.kill(worker, signal.SIGKILL)
    with pytest.raises(RuntimeError, match="the process of one kind ended"):
        in_own_process("one kind", os.getpid)
    assert in_own_process("another", os.getpid) == other != worker
    assert in_own_process("one kind", os.getpid) != worker


@pytest.fixture
def module(tmp_path, monkeypatch):
    """A module by its name, of these lines after those that every one of them begins with."""
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    begin = "import os, sys, time\nfrom pathlib import Path\nfrom whitelab.base.own_process import asked_to_stop\n"
    begin += "stop, word = asked_to_stop(), Path(sys.argv[1])\nword.write_text(str(os.getpid()))\n"

    def written(name, *lines):
        (tmp_path / f"{name}.py").write_text(begin + "\n".join(lines))
        return name

    return written


def until_there(path):
    return int(until(lambda: path.exists() and path.read_text()))


def test_who_is_asked_to_stop_may_finish_and_who_does_not_is_killed(module, tmp_path):
    with begun_apart(module("listens", "stop.wait()", "word.write_text('finished')"), str(tmp_path / "one")) as process:
        until_there(tmp_path / "one")
    assert process.returncode == 0
    assert (tmp_path / "one").read_text() == "finished"
    with begun_apart(module("deaf", "time.sleep(1000)"), str(tmp_path / "two"), grace=0.05) as process:
        until_there(tmp_path / "two")
    assert process.returncode != 0


def test_the_last_complaint_of_a_process_that_failed_is_the_error(module, tmp_path):
    fails = module("fails", "print('a warning', file=sys.stderr)", "sys.exit('no such thing\\n')")
    with pytest.raises(ProcessFailed, match=r"^no such thing$"), begun_apart(fails, str(tmp_path / "it")) as process:
        process.wait(60)
    with pytest.raises(ProcessFailed, match="No module named"), begun_apart("whitelab.nowhere", "") as process:
        process.wait(60)


def test_it_ends_with_whoever_began_it(module, tmp_path):
    script = "import sys, time\nfrom whitelab.base.own_process import begun_apart\n"
    script += "with begun_apart(*sys.argv[1:]):\n    time.sleep(1000)\n"
    listens = module("listens", "stop.wait()", "word.write_text('finished')")
    with subprocess.Popen([sys.executable, "-c", script, listens, str(tmp_path / "it")], cwd=ROOT) as beginner:
        try:
            until_there(tmp_path / "it")
        finally:
            beginner.kill()
    until(lambda: (tmp_path / "it").read_text() == "finished")
