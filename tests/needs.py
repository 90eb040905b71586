"""What some tests need and not every machine has. Nothing else may be skipped where CI is set."""

import os
from pathlib import Path

import pytest

PUBLISHED = Path(__file__).resolve().parents[2] / "shared" / "sts"


def _cuda() -> bool:
    import torch

    return torch.cuda.is_available()


# mark -> (whether it is here, what is said where it is not); a test may also find out by itself and skip.
NEEDS = {
    "published": (PUBLISHED.is_dir, "the published STS files are not beside the repository"),
    "cuda": (_cuda, "this machine has no CUDA device"),
    "linux": (lambda: True, "only Linux counts what memory a process has taken"),
}


def pytest_runtest_setup(item):
    """Skip a test whose mark names something that is not here."""
    for mark, (here, reason) in NEEDS.items():
        if item.get_closest_marker(mark) and not here():
            pytest.skip(reason)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item, call):
    """Where CI is set, a skip without one of these marks is a failure."""
    report = yield
    marked = any(item.get_closest_marker(mark) for mark in NEEDS)
    if report.skipped and os.environ.get("CI") and not marked and not hasattr(report, "wasxfail"):
        report.outcome = "failed"
        report.longrepr = f"{item.nodeid} was skipped where CI is set: {report.longrepr[-1]}"
    return report
