"""A comparison as a table: by rows and columns, and as CSV, Markdown or LaTeX."""

import csv
import io
import math
import re
from collections.abc import Collection, Iterable, Mapping, Sequence

from whitelab.base.cells import safe_cells
from whitelab.base.checks import check_choice
from whitelab.base.groups import grouped
from whitelab.base.installation import RELEASE
from whitelab.base.wording import best_as_printed, capitalised, spaced
from whitelab.compare.against import DIFFERENCE, Duel, Resampled
from whitelab.compare.grid import AVERAGE, Cell, Grid, Row, mean_over_tasks
from whitelab.compare.preset_walk import Walk
from whitelab.compare.presets import PRESETS, preset_line
from whitelab.datasets import BUNDLED_SETS, data_name
from whitelab.statistics.significance import NO_INTERVAL
from whitelab.whitening import starved_remedy

FORMATS = ("csv", "markdown", "latex")
DIGITS = 12  # of a digest of weights
MADE = ("protocol", "dtype", "max_length", "data", "made_by")  # columns of what a row was made under


def pivot(cells: Sequence[Cell]) -> tuple[list[str], list[tuple[str, str, dict[str, float | None]]]]:
    """Tasks in order, and a row (model, setting, {task: score}) for each model and setting."""
    tasks = list(dict.fromkeys(cell.task for cell in cells))
    rows: dict[tuple[str, str], dict[str, float | None]] = {}
    for cell in cells:
        rows.setdefault((cell.model, str(cell.setting)), {})[cell.task] = cell.spearman
    return tasks, [(model, setting, scores) for (model, setting), scores in rows.items()]


def starved_places(cells: Iterable[Cell]) -> set[tuple[str, str, str]]:
    """Model, setting and task of each score that is starved, so that it is the best of nothing."""
    return {(*cell.row, cell.task) for cell in cells if cell.starved}


def starved_note(cells: Iterable[Cell]) -> str:
    """Which rows have scores that say nothing about meaning, because their maps are starved; empty for none."""
    tasks: dict[str, dict[str, bool]] = {}
    cells = list(cells)
    for cell in cells:
        if cell.score is not None:
            of = tasks.setdefault(str(cell.setting), {})
            of[cell.task] = of.get(cell.task, False) or cell.starved
    where = [
        setting if all(of.values()) else f"{setting} on {', '.join(task for task, few in of.items() if few)}"
        for setting, of in tasks.items()
        if any(of.values())
    ]
    if not where:
        return ""
    remedy = starved_remedy(*(cell.setting.whitening for cell in cells if cell.starved))
    return (
        f"{'; '.join(where)}: fitted on so few texts that the map sets them all equally far apart, whatever they "
        f"say. {remedy}"
    )


def random_beside_trained(cells: Sequence[Cell], grid: Grid) -> str:
    """How near whitening brings random weights to trained ones, where a grid has both; empty where it has not.

    Of several tasks the scores are the averages of the table. A row that lacks one, or has a starved map, says nothing.
    """
    known = (cell for cell in cells if cell.spearman is not None and not cell.starved)
    rows = grouped(((cell.model, cell.setting), cell) for cell in known)
    scores = {
        row: mean_over_tasks([cell.spearman for cell in found], grid.rules)
        for row, found in rows.items()
        if len(found) == len(grid.tasks)
    }
    drawn = dict.fromkeys(model for model, _ in scores if model.startswith("random"))
    whitened = dict.fromkeys(setting for _, setting in scores if setting.whitening != "none")
    under = f"On average over {len(grid.tasks)} tasks, under" if len(grid.tasks) > 1 else "Under"
    for name in drawn:
        trained = next((model for model, _ in scores if name.endswith(f":{model}")), None)
        for setting in whitened:
            points = [scores.get((model, row)) for row in (setting.raw, setting) for model in (name, trained)]
            if None not in points:
                random_raw, trained_raw, random_now, trained_now = points
                return (
                    f"{under} {setting.raw} random weights score {random_raw:.2f} and trained ones {trained_raw:.2f}, "
                    f"{trained_raw - random_raw:.1f} points apart; whitened ({setting}), {random_now:.2f} and "
                    f"{trained_now:.2f}, {trained_now - random_now:.1f} apart. Random weights have learnt nothing: "
                    "what they score comes from the words alone."
                )
    return ""


def notes_of(rows: Iterable[Cell | Walk]) -> list[str]:
    """What to know of the pairs and embeddings, once for all models and tasks that it is said of."""
    tasks: dict[tuple[str, str], dict[str, None]] = {}
    for row in rows:
        for text in row.notes:
            tasks.setdefault((row.model, text), {})[row.task] = None
    models = grouped(((", ".join(of), text), model) for (model, text), of in tasks.items())
    return [f"{', '.join(of)} · {tasks}: {text}" for (tasks, text), of in models.items()]


def reasons_of(rows: Iterable) -> dict[tuple[str, str], list]:
    """The rows that each model has no score in for a reason, without the averages over tasks that follow."""
    return grouped(((row.model, row.reason), row) for row in rows if row.reason and row.task != AVERAGE)


def arranged(
    cells: Sequence[Cell],
    models: Collection[str] = (),
    settings: Collection[str] = (),
    tasks: Collection[str] = (),
    by: str | None = None,
) -> list[Cell]:
    """The cells of some models, settings and tasks (none named: all), their rows sorted by a column.

    `by` is a task or `avg`, highest first and rows without a score last, or `model` or `setting`, by name.
    Rows that are equal there keep their order; None keeps it for all.
    """
    wanted = ((models, lambda cell: cell.model), (settings, lambda cell: str(cell.setting)), (tasks, _column))
    kept = [cell for cell in cells if all(not names or of(cell) in names for names, of in wanted)]
    if by is None:
        return kept
    rows = grouped((cell.row, cell) for cell in kept)

    def place(row: Row) -> tuple:
        if by in ("model", "setting"):
            return (row[by == "setting"],)
        score = next((cell.spearman for cell in rows[row] if cell.task == by), None)
        return (score is None, -(score or 0.0))

    return [cell for row in sorted(rows, key=place) for cell in rows[row]]


def ranked(rows: Iterable[Row], cells: Sequence[Cell]) -> list[Row]:
    """`rows` by the mean of their scores over the tasks, from the highest; those without one last."""

    def mean(row: Row) -> float:
        scores = [cell.spearman for cell in cells if cell.row == row and cell.spearman is not None and cell.score]
        return sum(scores) / len(scores) if scores else -math.inf

    return sorted(rows, key=mean, reverse=True)


def _column(cell: Cell) -> str:
    return cell.task


_GIVEN = " Rows of MTEB are as their files have them, under a protocol of their own."


def written(
    cells: Sequence[Cell],
    form: str,
    preset: str = "",
    corpus: str | None = None,
    drawn: Resampled | None = None,
    given: Sequence[tuple[str, str, dict[str, float | None]]] = (),
    lacking: Sequence[str] = (),
    data: str = "",
) -> str:
    """The table as text: CSV with every digit, Markdown or LaTeX with two decimals and the best in bold.

    With `preset` the table says how it is read and what it was made under: the preset, the compute type, the limit of
    length where that is the model's, what the `data` is called where it is not bundled, and which whitelab made it; CSV
    has a column for each, the others also say each task's split and pairs and what tells the weights. With `drawn`
    every score has the ends of its 95 % interval beside it, and how they came about is said beneath. CSV has the number
    of resamples in a column, and differences from raw where there are any (`Resampled.from_raw`). What is starved is
    never the best, and is said beneath (`starved_note`), in CSV by a column with each row's starved tasks. Rows `given`
    from elsewhere (`mteb_rows`) follow, on the same tasks. What the data lacks (`lacking_splits`) is said beneath, in
    CSV nowhere.
    """
    check_choice(form, "format", FORMATS)
    tasks, rows = pivot(cells)
    rows += given
    ends = {(m, s, task): drawn.interval((m, s), task) for m, s, _ in rows for task in tasks} if drawn else {}
    few = starved_places(cells)
    if form == "csv":
        gains = {(*cell.row, cell.task): drawn.from_raw(cell) for cell in cells} if drawn else {}
        made = len(rows) - len(given), _columns(cells, preset, data) if preset else {}
        return _csv(tasks, rows, *made, ends, few, drawn.resamples if drawn else 0, gains)
    bold = ("**", "**") if form == "markdown" else (r"\textbf{", "}")

    def column(task: str) -> list[str]:
        values = [scores.get(task) for _, _, scores in rows]
        best = best_as_printed([None if (m, s, task) in few else scores.get(task) for m, s, scores in rows])
        around = [ends.get((m, s, task)) for m, s, _ in rows]
        numbers = ["-" if value is None else f"{value:.2f}" for value in values]
        numbers = [one.join(bold) if is_best else one for one, is_best in zip(numbers, best, strict=True)]
        between = [f" [{both[0]:.2f}, {both[1]:.2f}]" if both else "" for both in around]
        return [number + interval for number, interval in zip(numbers, between, strict=True)]

    columns = [column(task) for task in tasks]
    body = [[model, setting, *(one[i] for one in columns)] for i, (model, setting, _) in enumerate(rows)]
    head, under = ["model", "setting", *tasks], ""
    if preset:
        under = f"{preset_line(preset, corpus)} {_made(cells, preset, data)}" + _GIVEN * bool(given)
    reading = f"Bold: the best of its column.{_brackets(drawn) if drawn else ''}" if preset or drawn else ""
    scored = _scored(cells) if preset else ""
    notes = [note for note in (reading, scored, under, starved_note(cells), *lacking) if note]
    if form == "markdown":
        lines = [head, ["---", "---", *["---:"] * len(tasks)], *body]
        table = "".join("| " + " | ".join(cell.replace("|", r"\|") for cell in line) + " |\n" for line in lines)
        return table + "".join(f"\n{note}\n" for note in notes)
    lines = [" & ".join(_latex(cell) for cell in line) + r" \\" for line in (head, *body)]
    lines = [rf"\begin{{tabular}}{{ll{'r' * len(tasks)}}}", r"\toprule", lines[0], r"\midrule", *lines[1:]]
    notes = [r"The rules need \usepackage{booktabs}.", *notes] if reading else notes
    return "\n".join([*lines, r"\bottomrule", r"\end{tabular}", *(f"% {note}" for note in notes)]) + "\n"


def _made(cells: Sequence[Cell], preset: str, data: str) -> str:
    """What the preset leaves open, in a sentence: compute type, the limit of length where it is the model's, data, and
    which whitelab."""
    made = {cell.model: cell.protocol.origin for cell in cells if cell.protocol}
    limits = {model: one.max_length for model, one in made.items() if PRESETS[preset].max_length is None}
    words = {model: f"{limit} tokens" for model, limit in limits.items() if limit}
    parts = [f"compute type {_by_value({model: one.dtype for model, one in made.items()})}"] if made else []
    parts += [f"the model's limit is {_by_value(words)}"] if words else []
    parts += [f"data {called}"] if (called := _called(data)) else []
    return f"{capitalised('; '.join([*parts, f'made by {RELEASE}']))}."


def _scored(cells: Sequence[Cell]) -> str:
    """How many pairs of which split each task has, and the first digits of the weights' digests; empty for none."""
    scored = {cell.task: cell for cell in cells if cell.protocol and cell.score}
    pairs = [f"{task} {cell.protocol.origin.split} {spaced(cell.score.pairs)}" for task, cell in scored.items()]
    weights = {cell.model: cell.weights[:DIGITS] for cell in cells if cell.weights}
    parts = [f"Pairs: {', '.join(pairs)}."] * bool(pairs)
    return " ".join([*parts, *[f"Weights (digest): {_by_value(weights)}."] * bool(weights)])


def _by_value(values: Mapping[str, str]) -> str:
    """The value of all models, or each with the models that have it."""
    models = grouped((value, model) for model, value in values.items())
    return ", ".join(value + f" ({', '.join(of)})" * (len(models) > 1) for value, of in models.items())


def _called(data: str) -> str:
    return "" if data in BUNDLED_SETS or not data else data_name(data)


def _columns(cells: Sequence[Cell], preset: str, data: str) -> dict[Row, dict]:
    """What each row was made under, by column."""
    known = {cell.row: cell.protocol.origin for cell in cells if cell.protocol}
    made = {}
    for row in dict.fromkeys(cell.row for cell in cells):
        origin = known.get(row)
        cut = {"dtype": origin.dtype, "max_length": origin.max_length} if origin else {}
        made[row] = {"protocol": preset} | cut | {"data": _called(data), "made_by": RELEASE}
    return made


def _brackets(drawn: Resampled) -> str:
    return (
        f" In brackets: the 95 % interval, from {spaced(drawn.resamples)} resamples of each task's pairs (bootstrap); "
        f"maps are not fitted anew.{f' Where there is none, {NO_INTERVAL}.' * drawn.bare}"
    )


def _csv(
    tasks: Sequence[str],
    rows: Sequence[tuple[str, str, dict]],
    own: int,
    made: dict[Row, dict],
    ends: dict,
    few: set[tuple[str, str, str]],
    resamples: int,
    gains: dict[tuple[str, str, str], Duel | None],
) -> str:
    """The first `own` rows are `made` so (`_columns`), the `ends` of their intervals come from `resamples`."""
    from_raw = DIFFERENCE if any(gains.values()) else ()
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    parts = ("low", "high", *from_raw) if ends else ()
    columns = [name for task in tasks for name in (task, *(f"{task}_{part}" for part in parts))]
    said = MADE if made else ()
    writer.writerow(safe_cells(["model", "setting", *said, "starved", *(["resamples"] if ends else []), *columns]))
    for number, (model, setting, scores) in enumerate(rows):
        values, under = [], made.get((model, setting), {}) if number < own else {"protocol": "as given"}
        for task in tasks:
            around = (ends.get((model, setting, task)) or (None, None)) if ends else ()
            gain = gains.get((model, setting, task))
            record = gain.as_dict() if gain else {}
            values += [scores.get(task), *around, *(record.get(name) for name in from_raw)]
        starved = "; ".join(task for task in tasks if (model, setting, task) in few)
        drawn = [resamples if number < own else None] if ends else []
        writer.writerow(safe_cells([model, setting, *map(under.get, said), starved, *drawn, *values]))
    return text.getvalue()


_SPELLED = {"\\": r"\textbackslash{}", "~": r"\textasciitilde{}", "^": r"\textasciicircum{}"}
_SPELLED |= {"<": r"\textless{}", ">": r"\textgreater{}", "|": r"\textbar{}"}  # other characters in LaTeX's first font


def _latex(cell: str) -> str:
    if cell.startswith(r"\textbf{"):
        return cell
    return re.sub(r"[&%$#_{}\\~^<>|]", lambda one: _SPELLED.get(one[0], "\\" + one[0]), cell)
