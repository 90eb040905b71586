"""kill -9 in the middle of work: what is finished stays, nothing half is read, the rest is done once."""

import random

import pytest
from processes import run_python

from benchmarks import faults


@pytest.mark.model
@pytest.mark.parametrize("work", ["embedding", "downloading", "training"])
def test_killed_work_is_whole_where_it_is_finished_and_goes_on_from_there(work):
    """In a process of its own: a child that is forked needs one without threads."""
    done = run_python(f"from benchmarks import faults; print(faults.in_child({work!r}, 2, 3, True))")
    assert done.returncode == 0, done.stderr
    assert "wrong=()" in done.stdout


def test_work_that_loses_what_it_did_or_ends_elsewhere_is_counted(tmp_path):
    def do(folder):
        for number in range(40):
            (folder / f"{number}").write_text("")
        (folder / "done").write_text("40")

    def work(whole):
        def there(folder):
            return len(list(folder.glob("[0-9]*")))

        return faults.Work(do, there, whole, lambda folder: int((folder / "done").read_text()), 40)

    honest = faults.kill_often(work(lambda folder: "same"), 3)
    assert all("were finished, 40 were done again" in line for line in honest.wrong)  # it does everything again
    other = faults.kill_often(work(lambda folder: str(random.random())), 3)
    assert all("ended with something else" in line for line in other.wrong)
    assert len(other.wrong) == 3
