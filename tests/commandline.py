"""The command line, in this process and in one of its own."""

import os
import subprocess
import sys
from pathlib import Path

from whitelab.cli import main

ROOT = Path(__file__).resolve().parents[1]
ANALYSES = ("embed", "score", "layers", "kcurve", "geometry")


def called(capsys, *argv) -> tuple[int, str, str]:
    """Run a command in this process: (exit status, stdout, stderr)."""
    try:
        status = main([str(word) for word in argv])
    except SystemExit as stop:
        status = stop.code
    return status, *capsys.readouterr()


def fresh_process(*argv, **environment) -> subprocess.CompletedProcess:
    """Run Python with `argv` where the repository lies."""
    return subprocess.run(
        [sys.executable, *map(str, argv)],
        cwd=ROOT,
        env=os.environ | environment,
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )
