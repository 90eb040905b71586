"""Runs timed in turns, their ratios with median and quartiles, and the tables that go into the README."""

import os
import platform
import re
import statistics
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from pathlib import Path

import numpy as np
import torch

from whitelab.base.machine import give_back_memory, processor_name

README = Path(__file__).with_name("README.md")


@dataclass(frozen=True)
class Options:
    """What a benchmark is asked for: `data` as everywhere in whitelab, `repeats` of every run, small or whole."""

    data: str = "demo"
    repeats: int = 5
    quick: bool = False

    def pick(self, quick, whole):
        """`quick` in a quick run, else `whole`."""
        return quick if self.quick else whole


@dataclass(frozen=True)
class Spread:
    """The quartiles of repeated measurements."""

    low: float
    median: float
    high: float

    @classmethod
    def of(cls, values: Sequence[float]) -> "Spread":
        """With linear interpolation, as `numpy.percentile`."""
        return cls(*np.percentile(np.asarray(values, dtype=np.float64), (25, 50, 75)).tolist())

    def text(self, unit: str = "") -> str:
        """Median and quartiles to three figures: `1.23 s [1.20, 1.31]`."""
        return f"{figures(self.median)}{unit} [{figures(self.low)}, {figures(self.high)}]"


@dataclass(frozen=True)
class Timings:
    """Seconds of every run in every round, `{name: (round 1, round 2, ...)}`."""

    seconds: Mapping[str, tuple[float, ...]]

    def of(self, name: str) -> Spread:
        """Quartiles of one run's seconds."""
        return Spread.of(self.seconds[name])

    def ratio(self, slow: str, fast: str) -> Spread:
        """Quartiles of slow / fast, divided within each round: what disturbs a round disturbs both."""
        return Spread.of([a / b for a, b in zip(self.seconds[slow], self.seconds[fast], strict=True)])


@dataclass(frozen=True)
class Table:
    """A result: a heading, a table, and the lines below it."""

    title: str
    header: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    notes: tuple[str, ...] = ()

    def markdown(self) -> str:
        """As it stands in the README."""
        lines = [f"### {self.title}", "", *markdown_lines(self.header, self.rows)]
        for note in self.notes:
            lines += ["", note]
        return "\n".join(lines)


def markdown_lines(header: Sequence, rows: Iterable[Iterable]) -> list[str]:
    """The lines of a table in Markdown, without a heading."""
    return [f"| {' | '.join(map(str, cells))} |" for cells in (header, ["---"] * len(header), *rows)]


def side_by_side(
    runs: Mapping[str, Callable[[], object]],
    repeats: int,
    scale: Mapping[str, float] | None = None,
    warm: bool = True,
) -> Timings:
    """Time all runs once a round, `repeats` rounds, every second round in reverse order.

    A run that does a part of the work counts `scale` times. With `warm` each run goes once before, untimed. A run
    that returns a float has timed itself.
    """
    seconds = {name: [] for name in runs}
    if warm:
        for run in runs.values():
            run()
    for number in range(repeats):
        for name in list(runs)[:: -1 if number % 2 else 1]:
            start = time.perf_counter()
            own = runs[name]()
            spent = own if isinstance(own, float) else time.perf_counter() - start
            seconds[name].append(spent * (scale or {}).get(name, 1.0))
    return Timings({name: tuple(values) for name, values in seconds.items()})


def compared(timings: Timings, ours: str) -> tuple[tuple[str, ...], ...]:
    """A row for each run: its name, its seconds, and how many times as long as `ours` it takes."""
    rows = []
    for name in timings.seconds:
        ratio = "" if name == ours else timings.ratio(name, ours).text(" x")
        rows.append((name, timings.of(name).text(" s"), ratio))
    return tuple(rows)


def exponent(sizes: Sequence[float], seconds: Sequence[float]) -> float:
    """b of seconds = a size^b, by least squares on logarithms."""
    return float(np.polyfit(np.log(sizes), np.log(seconds), 1)[0])


def figures(value: float) -> str:
    """Three significant figures, without an exponent."""
    if value == 0 or not np.isfinite(value):
        return f"{value:g}"
    return f"{value:,.{max(0, 2 - int(np.floor(np.log10(abs(value)))))}f}"


def mean_and_deviation(values: Sequence[float], digits: int, sign: str = "") -> str:
    """Mean and standard deviation in words: `12.34 ± 0.05`; one value has no deviation."""
    mean = f"{statistics.mean(values):{sign}.{digits}f}"
    return f"{mean} ± {statistics.stdev(values):.{digits}f}" if len(values) > 1 else mean


def megabytes(count: int | None) -> str:
    """A number of bytes to read, or that there is none."""
    return "not measured" if count is None else f"{count / 2**20:,.0f} MB"


def peak_bytes(run: Callable[[], object]) -> int | None:
    """How far resident memory rises above where it was while `run` runs; None where Linux does not tell."""
    give_back_memory()  # what earlier runs have freed
    try:
        Path("/proc/self/clear_refs").write_text("5")  # the high-water mark begins anew
        before = _status("VmRSS")
    except OSError:
        return None
    run()
    return max(0, _status("VmHWM") - before)


def _status(name: str) -> int:
    text = Path("/proc/self/status").read_text("utf-8")
    return 1024 * int(re.search(rf"{name}:\s*(\d+)", text)[1])


def machine() -> str:
    """Processor, cores, threads, torch and the day, in one line."""
    return (
        f"{hardware()}, {platform.system()}, Python {platform.python_version()}, torch {torch.__version__}, "
        f"{date.today()}"
    )


def hardware() -> str:
    """What decides how many seconds work takes: processor, instruction sets, cores, threads and GPU."""
    gpu = f", {torch.cuda.get_device_name()}" if torch.cuda.is_available() else ""
    return f"{processor_name()}{_instruction_sets()}, {os.cpu_count()} cores, {torch.get_num_threads()} threads{gpu}"


def _instruction_sets() -> str:
    """Those that decide the speed of bfloat16, in brackets; nothing where the system does not tell."""
    try:
        text = Path("/proc/cpuinfo").read_text("utf-8")
    except OSError:
        return ""
    sets = [flag for flag in ("avx2", "avx512f", "avx512_bf16", "amx_bf16") if re.search(rf"\b{flag}\b", text)]
    return f" ({', '.join(sets)})"


def publish(name: str, tables: Sequence[Table], note: str, path: Path = README) -> None:
    """Put the tables between the README's markers of the benchmark `name`; everything else stays as it is."""
    start, end = f"<!-- results of {name} -->", f"<!-- end of {name} -->"
    block = "\n\n".join([start, *(table.markdown() for table in tables), f"*{note}*", end])
    text = path.read_text("utf-8") if path.exists() else ""
    if start in text and end in text:
        before, rest = text.split(start, 1)
        text = before + block + rest.split(end, 1)[1]
    else:
        text = f"{text.rstrip()}\n\n{block}\n".lstrip()
    path.write_text(text, "utf-8")


def published(name: str, text: str) -> tuple[list[Table], str]:
    """The tables of the benchmark `name` in the text of a README, without their notes, and the machine's line."""
    block = re.search(rf"<!-- results of {name} -->(.*?)<!-- end of {name} -->", text, re.DOTALL)
    found, note = [], ""
    for part in re.split(r"\n{2,}", block[1] if block else ""):
        lines = part.strip().splitlines()
        if part.startswith("### "):
            title = part.removeprefix("### ")
        elif part.startswith("| "):
            header, _, *rows = (tuple(cell.strip() for cell in line.split("|")[1:-1]) for line in lines)
            found.append(Table(title, header, tuple(rows)))
        elif part.startswith("*"):
            note = part.strip("*")
    return found, note
