"""Intervals of every cell of a comparison, and whether two of its rows differ beyond chance."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from whitelab.base.groups import grouped
from whitelab.base.progress import Progress, silent
from whitelab.base.records import without_nan
from whitelab.compare.grid import AVERAGE, Cell, Row
from whitelab.scoring.paired import RESAMPLES, Paired, paired, unless_starved, verdict_of
from whitelab.statistics.significance import Bootstrap, Difference, average_bootstrap

DIFFERENCE = ("difference", "difference_low", "difference_high", "p_value")  # of a duel's record


@dataclass(frozen=True)
class Duel:
    """Row `a` against row `b` on one task, or on their average: both scores, the difference and its verdict.

    `verdict` is a key of `paired.VERDICTS`.
    """

    task: str
    a: float
    b: float
    difference: Difference
    resamples: int
    verdict: str

    def as_dict(self) -> dict:
        """A flat record for a table."""
        record = {"task": self.task, "a": self.a, "b": self.b} | self.difference.as_dict()
        record |= {"p_value": self.difference.p_value, "resamples": self.resamples}
        return without_nan(record | {"verdict": self.verdict})


@dataclass(frozen=True, eq=False)
class Resampled:
    """The rows of a comparison, resampled together task by task: `tasks[name]` holds the bootstrap and its rows."""

    tasks: dict[str, tuple[Paired, tuple[Row, ...]]]

    @property
    def rows(self) -> tuple[Row, ...]:
        """Every row with a score on some task."""
        return tuple(dict.fromkeys(row for _, rows in self.tasks.values() for row in rows))

    @property
    def resamples(self) -> int:
        """How many samples the intervals come from."""
        return next((found.drawn.resamples for found, _ in self.tasks.values()), 0)

    @property
    def bare(self) -> bool:
        """Whether a score has no interval (`significance.NO_INTERVAL`)."""
        drawn = [found.drawn for found, _ in self.tasks.values()]
        return any((one.low.isnan() & ~one.score.isnan()).any() for one in drawn)

    def interval(self, row: Row, task: str) -> tuple[float, float] | None:
        """The 95 % interval of a cell; None where it has none. `avg` stands for the mean over all tasks."""
        if task == AVERAGE:
            if not all(row in rows for _, rows in self.tasks.values()):
                return None
            drawn = average_bootstrap([self._drawn(name, row) for name in self.tasks])
        elif task not in self.tasks or row not in self.tasks[task][1]:
            return None
        else:
            drawn = self._drawn(task, row)
        low, high = float(drawn.low[0]), float(drawn.high[0])
        return None if low != low else (low, high)

    def from_raw(self, cell: Cell) -> Duel | None:
        """A cell's row against the raw row of its model and layers on its task; None where there is none."""
        raw = cell.model, str(cell.setting.raw)
        tasks = self.tasks if cell.task == AVERAGE else [name for name in self.tasks if name == cell.task]
        if raw == cell.row or not tasks or any({raw, cell.row} - {*self.tasks[name][1]} for name in tasks):
            return None
        return self.against(cell.row, raw)[-1] if cell.task == AVERAGE else self._duel(cell.task, cell.row, raw)

    def record(self, cell: Cell) -> dict:
        """A cell's JSON-ready record with its interval and, of a whitened row, its difference `from_raw`."""
        record, duel = cell.as_dict(self.interval(cell.row, cell.task), self.resamples), self.from_raw(cell)
        if duel is not None:
            found = duel.as_dict()
            record |= {name: found[name] for name in (*DIFFERENCE, "verdict")}
        return record

    def against(self, a: Row, b: Row) -> tuple[Duel, ...]:
        """Row `a` against row `b` on every task where both have a score, and last on the average of several.

        Pairs are resampled within their task, for both rows at once. Raises KeyError for rows that share no task.
        """
        shared = [name for name, (_, rows) in self.tasks.items() if a in rows and b in rows]
        if not shared:
            raise KeyError(f"{a} and {b} share no task with a score")
        duels = [self._duel(name, a, b) for name in shared]
        if len(shared) == 1:
            return tuple(duels)
        drawn = average_bootstrap([self._drawn(name, a, b) for name in shared])
        difference = drawn.difference(0, 1)
        scores = drawn.score.tolist()
        starved = any(one.verdict == "starved" for one in duels)
        verdict = unless_starved(verdict_of(difference, None), starved)
        return (*duels, Duel(AVERAGE, *scores, difference, drawn.resamples, verdict))

    def _drawn(self, task: str, *rows: Row) -> Bootstrap:
        found, held = self.tasks[task]
        return found.drawn.take([found.rows[held.index(row)] for row in rows])

    def _duel(self, task: str, a: Row, b: Row) -> Duel:
        found, rows = self.tasks[task]
        standing = found.standing(rows.index(a), rows.index(b))
        scores = found.drawn.score[[found.rows[rows.index(row)] for row in (a, b)]].tolist()
        return Duel(task, *scores, standing.difference, found.drawn.resamples, standing.verdict)


def resampled(cells: Sequence[Cell], resamples: int = RESAMPLES, progress: Progress = silent) -> Iterator[Resampled]:
    """Resample every row task by task, and what is there so far after each task.

    All rows of a task meet the same resamples, so their differences are paired; its gold scores decide them, so that
    an average over tasks averages independent samples. Cells without a score are left out.
    """
    by_task = grouped((cell.task, cell) for cell in cells if None not in (cell.score, cell.spearman))
    tasks: dict[str, tuple[Paired, tuple[Row, ...]]] = {}
    for done, (name, held) in enumerate(by_task.items(), 1):
        found = paired(held[0].judged, [cell.score for cell in held], resamples)
        tasks = tasks | {name: (found, tuple(cell.row for cell in held))}
        yield Resampled(tasks)
        progress(done, len(by_task))


def resample(cells: Sequence[Cell], resamples: int = RESAMPLES) -> Resampled:
    """All that `resampled` finds."""
    found = Resampled({})
    for found in resampled(cells, resamples):  # noqa: B007
        pass
    return found


_WORDS = {
    "gain": "That is more than chance",
    "loss": "That is more than chance",
    "chance": "That could be chance",
    "unclear": "The tests disagree about it",
    "same": "They score every pair alike",
    "starved": "One of the maps sets all sentences equally far apart, so it says nothing about meaning",
    "undefined": "It is not defined",
}


def outcome(duels: Sequence[Duel], a: str, b: str) -> str:
    """The outcome in a few plain sentences, with what it does not say."""
    last, tasks = duels[-1], [one for one in duels if one.task != AVERAGE]
    gap, n = last.difference, len(tasks)
    where = f"on average over {n} tasks" if n > 1 else f"on {tasks[0].task}"
    if last.verdict == "same":
        return f"{a} and {b} have the same scores {where}."
    side = "above" if gap.estimate > 0 else "below"
    text = f"{a} is {abs(gap.estimate):.2f} points {side} {b} {where}"
    text += f" (95 % interval of the difference {gap.low:+.2f} to {gap.high:+.2f}). {_WORDS[last.verdict]}."
    if n > 1:
        ups, downs = (sum(one.verdict == verdict for one in tasks) for verdict in ("gain", "loss"))
        text += f" Task by task it is above beyond chance on {ups} and below on {downs} of {n}."
    return text + (
        " The interval is what other pairs drawn from the same tasks would do; it says nothing about other tasks, and "
        "the more rows one compares, the more of them differ by chance alone."
    )
