"""Python in a process of its own, as a user starts it: nothing of the tests is loaded there."""

import os
import random
import socket
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]


def run_python(code: str, *args, **environment: str) -> subprocess.CompletedProcess:
    """Run code with these arguments in a fresh process."""
    return fresh_process("-c", code, *args, **environment)


def fresh_process(*argv, **environment: str) -> subprocess.CompletedProcess:
    """Run Python with `argv` where the repository lies; what it writes is text."""
    return subprocess.run(
        [sys.executable, *map(str, argv)],
        cwd=ROOT,
        env=os.environ | environment,
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )


def until(true, seconds: float = 270.0):
    """Ask until the answer counts as true, which is given back. Ray takes two minutes to begin on a slow machine."""
    end = time.monotonic() + seconds
    while not (found := true()):
        if time.monotonic() > end:
            raise AssertionError(f"not so after {seconds:g} seconds")
        time.sleep(0.02)
    return found


def free_port() -> int:
    """A port of this machine on which nobody listens, nor will who lets the system choose.

    The system deals from 32768 upwards on Linux, to every client and to every server bound to 0; a port from there
    could be another's before the process it is meant for has bound it.
    """
    while True:
        port = random.SystemRandom().randrange(20_000, 32_768)
        with socket.socket() as probe, suppress(OSError):
            probe.bind(("127.0.0.1", port))
            return port
