"""What one waits for before anything happens: the import, and the help of the command line."""

import os
import subprocess
import sys
from pathlib import Path

from benchmarks.harness import Options, Table, compared, side_by_side

ROOT = Path(__file__).resolve().parents[1]


def startup(options: Options) -> list[Table]:
    """New processes from start to end, Python's own start among them."""
    commands = {
        "Python alone": ("-c", ""),
        "import whitelab": ("-c", "import whitelab"),
        "python -m whitelab --help": ("-m", "whitelab", "--help"),
        "python -m whitelab score --help": ("-m", "whitelab", "score", "--help"),
    }
    runs = {name: lambda given=given: python(*given) for name, given in commands.items()}
    timings = side_by_side(runs, options.repeats)
    return [Table("Start", ("", "seconds", "times Python's own"), compared(timings, "Python alone"))]


def python(*given: str) -> None:
    """One process, its output thrown away."""
    subprocess.run([sys.executable, *given], cwd=ROOT, env=os.environ, stdout=subprocess.DEVNULL, check=True)
