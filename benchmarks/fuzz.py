"""`python -m benchmarks.fuzz`: damaged files, addresses and words through every reader, in a process that may die.

A case is made from its number alone: a sound file of the kind, in which a few bytes were changed, left out, doubled
or put in, cut short, or exchanged for what its format must not hold. Counted are cases that were read, that were
refused in the project's own words, other errors, processes that a signal ended, cases that took longer than a limit,
and files written outside the reader's own folder.

With `--guided` (it needs `pip install atheris`) what is damaged, and how, is not drawn but led by the lines of whitelab
that the cases before reached.
"""

import argparse
import contextlib
import json
import os
import random
import signal
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from benchmarks import fuzz_targets

SECONDS = 20  # a case may take
MEMORY_GIB = 6  # of addresses, for a process of cases


@dataclass
class Tally:
    """What became of the cases of one reader; `found` holds a line and its first case for everything unclean."""

    read: int = 0
    refused: int = 0
    errors: int = 0
    signals: int = 0
    hangs: int = 0
    outside: int = 0
    memory: int = 0
    found: dict[str, int] = field(default_factory=dict)

    def note(self, line: str, case: int) -> None:
        self.found.setdefault(line, case)


def fuzz(target: str, cases: int, seed: int = 0, first: int = 0, guided: bool = False) -> Tally:
    """Run `cases` of one reader in child processes, a new one after each death."""
    tally, at = Tally(), first
    with tempfile.TemporaryDirectory() as folder:
        while at < first + cases:
            words = [sys.executable, "-m", __spec__.name, "--child", target, "--seed", seed, "--from", at]
            words += ["--cases", first + cases - at, "--folder", folder]
            words += ["--guided"] if guided else []
            run = subprocess.run([*map(str, words)], capture_output=True, text=True, errors="replace")
            lines = [line.split("\t", 2) for line in run.stdout.splitlines() if line.startswith(("begin\t", "end\t"))]
            for _, number, what in (line for line in lines if line[0] == "end"):
                _count(tally, int(number), what)
                at = int(number) + 1
            if run.returncode == 0:
                break
            begun = [int(number) for kind, number, *_ in lines if kind == "begin"]
            case = begun[-1] if begun else at
            if run.returncode == -signal.SIGALRM:
                tally.hangs += 1
                tally.note(f"longer than {SECONDS} s", case)
            elif run.returncode < 0:
                tally.signals += 1
                tally.note(signal.Signals(-run.returncode).name, case)
            else:
                tally.errors += 1
                tally.note(run.stderr.strip().rpartition("\n")[2] or f"exit status {run.returncode}", case)
            at = case + 1
    return tally


def _count(tally: Tally, case: int, what: str) -> None:
    answer = json.loads(what)
    tally.memory = max(tally.memory, answer["memory"])
    if answer["outside"]:
        tally.outside += 1
        tally.note(f"wrote {answer['outside'][0]}", case)
    if answer["error"] is None:
        tally.read += 1
    elif answer["own"] and not answer["traceback"]:
        tally.refused += 1
    else:
        tally.errors += 1
        tally.note(f"{answer['error']}: {answer['text'][:160]}", case)


def _is_own(kind: type[Exception]) -> bool:
    """Whether an error is a refusal in whitelab's words, and not a library's kind of ValueError."""
    return kind is ValueError or (issubclass(kind, ValueError) and kind.__module__.startswith("whitelab."))


def child(target: str, seed: int, first: int, cases: int, folder: Path, guided: bool = False) -> None:
    """Go through cases, a line before and after each."""
    import resource

    resource.setrlimit(resource.RLIMIT_AS, (MEMORY_GIB << 30,) * 2)
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    os.environ |= {
        "TMPDIR": str(folder),
        "WHITELAB_CACHE": str(folder / "cache"),
        "HF_HUB_OFFLINE": "1",
        "HF_HOME": str(folder / "hub"),
    }
    with _traced() if guided else contextlib.nullcontext():
        one, written = getattr(fuzz_targets, target)(folder), []
        if guided:
            with contextlib.suppress(Exception, SystemExit):
                one(random.Random(0))  # imports what it needs

    def watch(event: str, words: tuple) -> None:
        if event != "open" or not isinstance(words[0], str | bytes) or not words[2] & (os.O_WRONLY | os.O_RDWR):
            return
        path = os.path.abspath(os.fsdecode(words[0]))
        if not path.startswith((f"{folder}/", "/dev/", "/proc/self")) and "__pycache__" not in path:
            written.append(path)

    def run(number: int, draw: random.Random) -> None:
        print(f"begin\t{number}", flush=True)
        signal.alarm(SECONDS)
        error = text = None
        own = False
        try:
            one(draw)
        except Exception as problem:  # the very thing that is looked for
            error, text, own = type(problem).__name__, " ".join(str(problem).split()), _is_own(type(problem))
        except SystemExit as problem:
            error, text, own = "SystemExit", str(problem), True
        signal.alarm(0)
        memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss >> 10
        inner = bool(text) and "Traceback (most recent call last)" in text
        answer = {"error": error, "own": own, "text": text or ""}
        answer |= {"memory": memory, "outside": written, "traceback": inner}
        print(f"end\t{number}\t{json.dumps(answer)}", flush=True)
        written.clear()

    sys.addaudithook(watch)
    if guided:
        _lead(run, seed, first, cases, folder)
    for number in range(first, first + cases):
        run(number, random.Random(f"{seed} {number}"))


def _traced():
    import atheris

    return atheris.instrument_imports(include=["whitelab"])


class Led(random.Random):
    """Draws what the bytes say, and after them always the least."""

    def __init__(self, data: bytes) -> None:
        super().__init__(0)
        self.left = iter(data)

    def getrandbits(self, k: int) -> int:
        size = -(-k // 8)
        return int.from_bytes([next(self.left, 0) for _ in range(size)]) >> (8 * size - k)

    def random(self) -> float:
        return self.getrandbits(16) / 65536


def _lead(run: Callable[[int, random.Random], None], seed: int, first: int, cases: int, folder: Path) -> None:
    """Let atheris choose so many cases, from what those of earlier processes have taught it, and end."""
    import atheris

    numbers, learnt, drawn = iter(range(first, first + cases)), folder / "learnt", folder / f"drawn-{first}"
    for place in (learnt, drawn):
        place.mkdir(exist_ok=True)
    for number in range(min(32, cases // 2)):  # to begin with; what ended a process is in neither folder
        (drawn / str(number)).write_bytes(random.Random(f"{seed} {first} {number}").randbytes(256))

    def case(data: bytes) -> None:
        number = next(numbers, None)
        if number is None:
            sys.stdout.flush()
            os._exit(0)
        run(number, Led(data))

    flags = ("-max_len=4096", "-len_control=0", "-timeout=0", "-rss_limit_mb=0", "-handle_abrt=0", "-handle_segv=0")
    atheris.Setup([sys.argv[0], f"-seed={seed + first + 1}", *flags, str(learnt), str(drawn)], case)
    atheris.Fuzz()


def table(tallies: dict[str, Tally]) -> str:
    """One row a reader."""
    head = (
        "reader",
        "cases",
        "read",
        "refused",
        "other errors",
        "signals",
        f"over {SECONDS} s",
        "written outside",
        "MB",
    )
    rows = [head, ("---",) * len(head)]
    for name, one in tallies.items():
        total = one.read + one.refused + one.errors + one.signals + one.hangs
        rows.append((name, total, one.read, one.refused, one.errors, one.signals, one.hangs, one.outside, one.memory))
    return "\n".join(f"| {' | '.join(map(str, row))} |" for row in rows)


def main() -> int:
    """Print the table, and every unclean case with the number that makes it again."""
    options = argparse.ArgumentParser(prog="python -m benchmarks.fuzz", description=__doc__)
    options.add_argument("--cases", type=int, default=1000, help="of each reader (default: 1000)")
    options.add_argument("--seed", type=int, default=0)
    options.add_argument("--only", default="", help=f"with commas: {', '.join(fuzz_targets.TARGETS)}")
    options.add_argument("--from", dest="first", type=int, default=0, help="the number of the first case")
    options.add_argument("--guided", action="store_true", help="by coverage, with atheris; cases cannot be made again")
    options.add_argument("--child", help=argparse.SUPPRESS)
    options.add_argument("--folder", type=Path, help=argparse.SUPPRESS)
    args = options.parse_args()
    if args.child:
        child(args.child, args.seed, args.first, args.cases, args.folder, args.guided)
        return 0
    names = args.only.split(",") if args.only else list(fuzz_targets.TARGETS)
    tallies = {}
    for name in names:
        print(name, file=sys.stderr, flush=True)
        tallies[name] = fuzz(name, args.cases, args.seed, args.first, args.guided)
    print(table(tallies))
    unclean = Counter(
        {f"{name}, case {case}: {line}": 1 for name, one in tallies.items() for line, case in one.found.items()}
    )
    print("\n".join(unclean))
    return 1 if unclean else 0


if __name__ == "__main__":
    sys.exit(main())
