"""What some tests need and not every machine has. Where CI is set nothing else may be skipped, nor what is here."""

import os
import shutil
import subprocess
import sys
from functools import cache
from pathlib import Path

import pytest
import torch

PUBLISHED = Path(__file__).resolve().parents[3] / "shared" / "sts"
CUDA = torch.cuda.is_available()  # before `conftest` hides it


def _netns() -> bool:
    """Whether machines can be played on this one: as root, where the kernel has network namespaces."""
    if shutil.which("ip") is None:
        return False
    name = f"wl{os.getpid()}"
    made = subprocess.run(["ip", "netns", "add", name], capture_output=True).returncode == 0
    return made and subprocess.run(["ip", "netns", "del", name], capture_output=True).returncode == 0


# mark -> (whether it is here, what is said where it is not)
NEEDS = {
    "published": (PUBLISHED.is_dir, "the published STS files are not beside the repository"),
    "cuda": (lambda: CUDA, "this machine has no CUDA device"),
    "nginx": (lambda: shutil.which("nginx") is not None, "nginx is not installed"),
    "netns": (cache(_netns), "network namespaces cannot be made here"),
    "linux": (lambda: sys.platform == "linux", "only Linux counts what memory a process has taken"),
}


def pytest_runtest_setup(item):
    """Skip a test whose mark names something that is not here."""
    for mark, (here, reason) in NEEDS.items():
        if item.get_closest_marker(mark) and not here():
            pytest.skip(reason)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item, call):
    """Where CI is set, a skip is a failure unless the test lacks what one of its marks names."""
    report = yield
    if not report.skipped or not os.environ.get("CI") or hasattr(report, "wasxfail"):
        return report
    if not any(item.get_closest_marker(mark) and not here() for mark, (here, _) in NEEDS.items()):
        report.outcome = "failed"
        report.longrepr = f"{item.nodeid} was skipped where CI is set: {report.longrepr[-1]}"
    return report


@pytest.hookimpl(wrapper=True)
def pytest_make_collect_report(collector):
    """Where CI is set, a whole file that skips itself (`importorskip`, say) is an error; it has no marks."""
    report = yield
    if report.skipped and os.environ.get("CI"):
        report.outcome = "failed"
        report.longrepr = f"{collector.nodeid} was skipped where CI is set: {report.longrepr[-1]}"
    return report
