"""kill -9 in the middle of work: what is finished stays, nothing half is read, the rest is done once."""

import random

import pytest
from processes import run_python

from benchmarks import faults

FAULTS = """
from benchmarks import faults
for work in ("embedding", "training", "downloading"):  # the last means another hub
    print(work, faults.in_child(work, 2, 3, True))
"""


@pytest.mark.model
def test_killed_work_is_whole_where_it_is_finished_and_goes_on_from_there():
    """In a process of its own: a child that is forked needs one without threads."""
    done = run_python(FAULTS)
    assert done.returncode == 0, done.stderr
    said = [line.split() for line in done.stdout.splitlines()]
    assert [one[0] for one in said] == ["embedding", "training", "downloading"]
    assert all(one[-1] == "wrong=())" for one in said), done.stdout


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
