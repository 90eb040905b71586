"""What became slower since a README was written: its tables held against those of a run."""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from benchmarks.harness import Table

SLOWER = 1.1  # times as slow as it was, and it is shown

# Columns by whether more of them is faster (1) or slower (-1). What stands in the first is about whitelab in every row.
OF_WHITELAB = {"times whitelab's": 1}
# Ratios of things timed in turns hold on another machine, seconds do not.
RATIOS = {
    "speed-up over sentence-transformers": 1,
    "times its anchor": -1,
    "times float32's": -1,
    "times Python's own": -1,
    "share": 1,
} | OF_WHITELAB
TIMES = {"seconds": -1, "time": -1, "steps a second": 1, "sentences a second": 1}
SECONDS = {"ms": 1e-3, "min": 60.0, "h": 3600.0}


@dataclass(frozen=True)
class Change:
    """A cell `then` and `now`, and `slower`, how many times as slow it became."""

    row: str
    column: str
    then: str
    now: str
    slower: float


def changes(then: Sequence[Table], now: Sequence[Table], same_hardware: bool) -> Iterator[Change]:
    """Every figure of speed that stands in both, seconds only where they were taken on the same hardware.

    Of a table that has ratios these count alone, and of one with rows of whitelab's these.
    """
    before = {table.title: table for table in then}
    for table in now:
        old = cells(before[table.title]) if table.title in before else {}
        known = RATIOS if RATIOS.keys() & set(table.header) else TIMES if same_hardware else {}
        own = any(row[0].startswith("whitelab") for row in table.rows)
        for (row, column), cell in cells(table).items():
            about = column in OF_WHITELAB or not own or row.startswith("whitelab")
            values = number(old.get((row, column), "")), number(cell)
            if column in known and about and all(values):
                yield Change(row, column, old[row, column], cell, (values[0] / values[1]) ** known[column])


def cells(table: Table) -> dict[tuple[str, str], str]:
    """What stands in it, by the name of its row (an objective's with its batch) and the column."""
    names = 2 if table.header[1] == "batch" else 1
    return {
        (", ".join(row[:names]), column): cell
        for row in table.rows
        for column, cell in zip(table.header[names:], row[names:], strict=True)
    }


def number(cell: str) -> float | None:
    """The number (of quartiles the median) in a cell, times in seconds; None where there is none."""
    found = re.match(r"([\d,]*\.?\d+)(?: (\w+|%|x))?", cell)
    return float(found[1].replace(",", "")) * SECONDS.get(found[2], 1.0) if found else None


def report(found: Mapping[str, Sequence[Change]]) -> Table:
    """Of every benchmark the figures that became slower by more than a tenth, the worst first."""
    every = [(name, one) for name, several in found.items() for one in several]
    slower = sorted((pair for pair in every if pair[1].slower > SLOWER), key=lambda pair: -pair[1].slower)
    silent = [name for name, several in found.items() if not several]
    notes = [f"{len(slower)} of {len(every)} figures."]
    notes += [f"Without a figure to hold against, or on other hardware: {', '.join(silent)}."] * bool(silent)
    return Table(
        "Slower by more than a tenth",
        ("benchmark", "row", "figure", "then", "now", "times as slow"),
        tuple((name, one.row, one.column, one.then, one.now, f"{one.slower:.2f}") for name, one in slower),
        tuple(notes),
    )
