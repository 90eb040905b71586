"""A comparison as a table: by rows and columns, and as CSV, Markdown or LaTeX."""

import csv
import io
import re
from collections.abc import Sequence

from whitelab.checks import check_choice
from whitelab.compare.grid import Cell

FORMATS = ("csv", "markdown", "latex")


def pivot(cells: Sequence[Cell]) -> tuple[list[str], list[tuple[str, str, dict[str, float | None]]]]:
    """Tasks in order, and a row (model, setting, {task: score}) for each model and setting."""
    tasks = list(dict.fromkeys(cell.task for cell in cells))
    rows: dict[tuple[str, str], dict[str, float | None]] = {}
    for cell in cells:
        rows.setdefault((cell.model, str(cell.setting)), {})[cell.task] = cell.spearman
    return tasks, [(model, setting, scores) for (model, setting), scores in rows.items()]


def best_scores(rows: Sequence[tuple[str, str, dict[str, float | None]]], task: str) -> float | None:
    """The highest score of a task as printed, with two decimals; ties are all best."""
    found = [round(scores[task], 2) for *_, scores in rows if scores.get(task) is not None]
    return max(found, default=None)


def written(cells: Sequence[Cell], form: str) -> str:
    """The table as text: CSV with every digit, Markdown or LaTeX with two decimals and the best in bold."""
    check_choice(form, "format", FORMATS)
    tasks, rows = pivot(cells)
    if form == "csv":
        text = io.StringIO()
        writer = csv.writer(text, lineterminator="\n")
        writer.writerow(["model", "setting", *tasks])
        writer.writerows([model, setting, *(scores.get(task) for task in tasks)] for model, setting, scores in rows)
        return text.getvalue()
    top = {task: best_scores(rows, task) for task in tasks}
    bold = ("**", "**") if form == "markdown" else (r"\textbf{", "}")

    def shown(value: float | None, task: str) -> str:
        if value is None:
            return "-"
        number = f"{value:.2f}"
        return number.join(bold) if round(value, 2) == top[task] else number

    body = [[model, setting, *(shown(scores.get(task), task) for task in tasks)] for model, setting, scores in rows]
    head = ["model", "setting", *tasks]
    if form == "markdown":
        lines = [head, ["---", "---", *["---:"] * len(tasks)], *body]
        return "".join("| " + " | ".join(cell.replace("|", r"\|") for cell in line) + " |\n" for line in lines)
    lines = [" & ".join(_latex(cell) for cell in line) + r" \\" for line in (head, *body)]
    lines = [rf"\begin{{tabular}}{{ll{'r' * len(tasks)}}}", r"\toprule", lines[0], r"\midrule", *lines[1:]]
    return "\n".join([*lines, r"\bottomrule", r"\end{tabular}"]) + "\n"


def _latex(cell: str) -> str:
    return cell if cell.startswith("\\textbf") else re.sub(r"([&%$#_{}])", r"\\\1", cell)
