"""A test that is skipped where CI is set has a mark that says what it needs; any other skip fails there."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from needs import NEEDS
from processes import ROOT

TESTS = """
import pytest

def test_without_a_mark():
    pytest.skip("no reason of ours")

@pytest.mark.skipif(True, reason="not today")
def test_by_condition():
    pass

@pytest.mark.absent
def test_that_lacks_what_it_needs():
    assert False

@pytest.mark.present
def test_with_what_it_needs():
    pytest.skip("in spite of all")

@pytest.mark.xfail
def test_that_fails_as_expected():
    assert False

def test_that_passes():
    pass
"""


WHOLE_FILE = """
import pytest

pytest.importorskip("no_such_module")

def test_that_is_never_seen():
    assert False
"""


def outcomes(folder: Path, **environment) -> tuple[dict[str, int], str]:
    """How many tests of both files passed, failed and were skipped, and all that pytest wrote."""
    (folder / "test_it.py").write_text(TESTS)
    (folder / "test_whole.py").write_text(WHOLE_FILE)
    needs = '{"absent": (lambda: False, "not here"), "present": (lambda: True, "not here")}'
    (folder / "conftest.py").write_text(f"import needs\n\nneeds.NEEDS = {needs}\n")
    env = {name: value for name, value in os.environ.items() if name != "CI"} | environment
    command = [sys.executable, "-m", "pytest", "-p", "needs", "-p", "no:xdist", "--rootdir", folder, "-c", os.devnull]
    env["PYTHONPATH"] = str(ROOT / "tests" / "helpers")
    command += ["--continue-on-collection-errors", folder]
    run = subprocess.run([*map(str, command)], cwd=folder, env=env, capture_output=True, text=True, check=False)
    last = run.stdout.strip().splitlines()[-1]
    return {
        word: int(count) for count, word in re.findall(r"(\d+) (passed|failed|skipped|xfailed|error)", last)
    }, run.stdout


def test_a_skip_fails_in_ci_and_only_there_unless_what_its_mark_names_is_missing_and_that_of_a_file_is_an_error(
    tmp_path,
):
    assert outcomes(tmp_path)[0] == {"passed": 1, "skipped": 5, "xfailed": 1}
    found, text = outcomes(tmp_path, CI="true")
    # A condition skips before the test.
    assert found == {"passed": 1, "failed": 2, "error": 2, "skipped": 1, "xfailed": 1}
    for why in ("no reason of ours", "not today", "in spite of all", "could not import 'no_such_module'"):
        assert f"was skipped where CI is set: Skipped: {why}" in text


@pytest.mark.parametrize("mark", NEEDS)
def test_every_mark_that_may_skip_is_declared_and_listed(mark, pytestconfig):
    assert any(line.startswith(f"{mark}:") for line in pytestconfig.getini("markers"))
    assert f"`{mark}`" in (ROOT / "tests" / "README.md").read_text("utf-8")
