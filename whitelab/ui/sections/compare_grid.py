"""The grid of a comparison: filled cell by cell, kept, sorted and filtered, tested, written."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import accumulate

import streamlit as st

from whitelab import compare as comparing
from whitelab import figures
from whitelab.base.progress import Progress
from whitelab.base.wording import bare, p_value, plain, quantity, spaced
from whitelab.compare import AVERAGE, Cell, Grid, Resampled
from whitelab.compare.grid import called
from whitelab.datasets import BUNDLED_SETS
from whitelab.encoding.catalogue import entry
from whitelab.encoding.checkpoints import check_model, on_disk
from whitelab.encoding.names import BUNDLED, ModelError
from whitelab.figures import heights
from whitelab.scoring.paired import RESAMPLES, VERDICTS, settled
from whitelab.statistics.significance import least_p
from whitelab.store.embedding_store import Store
from whitelab.ui.results.jobs import claim, follow, jobs
from whitelab.ui.results.study import name_of, remembered, study_job
from whitelab.ui.sections import mteb_files
from whitelab.ui.sidebar.model import shared_encoder
from whitelab.ui.widgets.address import linked, spelt
from whitelab.ui.widgets.chart import chart, keep_rows, keep_texts, rounded_table, text_width
from whitelab.ui.widgets.choice import choice
from whitelab.ui.widgets.note import note

BUNDLED_MODELS = (BUNDLED, f"{BUNDLED}:3", f"random:{BUNDLED}", f"sif:{BUNDLED}")  # what the page opens with
CELLS_KEPT = 2000  # of one data set; each holds a cosine for every pair
VIEWS = ("Measured", "Published", "Difference", "95 % interval")
PRINTED = ("Published", "Difference")  # of them, what there is only where a paper prints a number
OUTCOMES = {"gain": "A is better", "loss": "B is better"}
FORMATS = {"csv": ("CSV", "csv"), "markdown": ("Markdown", "md"), "latex": ("LaTeX", "tex")}


class Kept(dict[Grid, Cell]):
    """Cells with a score; the oldest make way."""

    def __setitem__(self, key: Grid, cell: Cell) -> None:
        super().__setitem__(key, cell)
        while len(self) > CELLS_KEPT:
            self.pop(next(iter(self)), None)


@remembered("cells", grows=True)
def kept_cells(data: str, stamp: str) -> Kept:
    """The cells of one state of the data that any visitor has computed in this process."""
    return Kept()


def known(grid: Grid) -> list[Cell]:
    """The cells of a grid that have been computed before, in order."""
    kept = kept_cells(grid.data, grid.stamp)
    return [kept[one] for one in grid.cells() if one in kept]


def unasked(grid: Grid) -> bool:
    """Whether a grid is computed before anybody asks: it needs nothing that is not bundled, or is under way."""
    bundled = grid.data in BUNDLED_SETS and set(grid.models) <= set(BUNDLED_MODELS)
    return bundled or jobs().is_open(name_of(filled, grid))  # for this visitor before a reload, or for another


def first_models(model: str, data: str) -> list[str]:
    """What is compared before anything is chosen: on bundled data all that needs no download."""
    return list(BUNDLED_MODELS) if model == BUNDLED and data in BUNDLED_SETS else [model]


def taken(models: Sequence[str]) -> list[str]:
    """The models that can be compared, after saying why others cannot and which nobody here has heard of."""
    accepted = []
    for model in models:
        try:
            accepted.append(check_model(model))
        except ModelError as error:
            st.error(f"{plain(str(error))}. It is left out.", icon=":material/block:")
            continue
        if not on_disk(model) and entry(model) is None:
            st.caption(
                f"{plain(model)} is neither on this machine nor in the catalogue: pressing Compare asks the Hugging "
                "Face hub for it."
            )
    return accepted


def filled(grid: Grid, progress: Progress) -> Iterator[tuple[Cell, ...]]:
    """The cells of a grid as they grow."""
    options = {"known": kept_cells(grid.data, grid.stamp), "load": shared_encoder, "progress": progress}
    yield from accumulate((cell,) for cell in comparing.compare(grid, store=Store(), **options))


def _counted(cells: Sequence[Cell]) -> str:
    averages = sum(cell.task == AVERAGE for cell in cells)
    own = quantity(len(cells) - averages, "cell")
    return f"{own} and {quantity(averages, 'average')}." if averages else f"{own}."


def section(grid: Grid) -> str:
    """The button, and the grid where it was asked for or is known from before. Returns the lines that make it."""
    there = known(grid)
    drawn, duels = unasked(grid) or len(there) == grid.size, ""
    label = f"Compare {quantity(grid.size, 'cell')}"
    if st.button(label, type="secondary" if drawn else "primary", key="compare", on_click=ask_again, args=(grid,)):
        st.session_state["grid"] = grid
    if drawn or st.session_state.get("grid") == grid:
        duels = draw(grid, mteb_files.rows(grid.tasks))
        st.markdown(comparing.random_beside_trained(there, grid))
    elif there:
        st.info(f"{len(there)} of {grid.size} cells are known from before. Press Compare for the others.")
        view = view_picker(grid)
        table(there, view, grid.preset)
        keep_texts(texts(view.of(there), grid), "grid")
    else:
        st.info(
            "Nothing is computed before you press Compare: a model may have to be downloaded and every task embedded."
        )
    return (
        grid_in_code(grid, "compare", "resample", "written")
        + "cells = list(compare(grid, store=whitelab.Store()))\ndrawn = resample(cells)\n"
        + f"print(written(cells, 'markdown', {grid.preset!r}, {grid.corpus!r}, drawn, data=data))\n"
        + duels
    )


def grid_in_code(grid: Grid, *names: str) -> str:
    """The lines that make a grid in Python, after importing it with these `names` of `whitelab.compare`."""
    return (
        f"from whitelab.compare import {', '.join(('Grid', *names))}\n"
        "from whitelab.scoring.setting import parse_settings\n\n"
        f"rows = parse_settings({';'.join(map(str, grid.settings))!r})\n"
        f"options = {{'dtype': {grid.dtype!r}, 'keep_going': {grid.keep_going}, 'corpus': {grid.corpus!r}"
        + (f", 'allow_bin': {grid.allow_bin!r}" if grid.allow_bin else "")
        + (f", 'starred': parse_settings({';'.join(map(str, grid.starred))!r})" if grid.starred else "")
        + "}\n"
        f"grid = Grid({list(grid.models)!r}, data, tasks, rows, {grid.preset!r}, **options)\n"
    )


def ask_again(grid: Grid) -> None:
    """Let go of a finished comparison that lacks cells, so that they are tried once more."""
    if len(known(grid)) < grid.size:
        jobs().forget_finished(name_of(filled, grid))


def draw(grid: Grid, given: Sequence[mteb_files.Row] = ()) -> str:
    """The grid as it fills, above rows `given` from elsewhere; when full, intervals and tests, and downloads.

    Returns the lines that put one row against another as the page does, empty where it does not.
    """
    offered = views(grid)
    with st.container(horizontal=True, vertical_alignment="bottom"):
        view = view_picker(grid)
        tested = st.toggle(
            "Intervals and tests",
            **linked("tested", False),
            help="Resamples the pairs of every task: an interval for each cell, and any row against any other.",
        )
    resampled: dict[str, Resampled] = st.session_state.setdefault("resampled", {})
    job = study_job(filled, grid, title="Comparing", unit="cells", place="grid")
    picture = lambda cells: table(cells, view, grid.preset, resampled.get(_stand(grid, cells)), given)  # noqa: E731
    cells = follow(job, picture, key="grid", caption=_counted, room=200)
    if cells is None:
        return ""
    if views(grid) != offered:  # they came while this was drawn
        st.rerun()
    drawn = None
    if tested or view.shows == "95 % interval":
        drawn = intervals(grid, cells)
        if drawn is not None and resampled.get(_stand(grid, cells)) is not drawn:
            st.session_state["resampled"] = {_stand(grid, cells): drawn}
            st.rerun()
    downloads(view.of(cells), grid, drawn, given)
    if tested and drawn is not None:
        st.header("One row against another")
        return row_against_row(drawn, cells, grid.preset)
    return ""


def _stand(grid: Grid, cells: Sequence[Cell]) -> str:
    return f"resampled/{hash(tuple(cells))}/{name_of(filled, grid)}"


# ------------------------------------------------------------------------------------------------ the table


@dataclass(frozen=True)
class View:
    """What of the cells is shown, and in which order."""

    shows: str = "Measured"
    models: tuple[str, ...] = ()
    settings: tuple[str, ...] = ()
    tasks: tuple[str, ...] = ()
    by: str | None = None

    def of(self, cells: Sequence[Cell]) -> list[Cell]:
        """The cells it shows."""
        return comparing.arranged(cells, self.models, self.settings, self.tasks, self.by)


def views(grid: Grid) -> list[str]:
    """What there is to show: a paper's numbers and the differences from these only where one prints any.

    What is asked for stays until every cell is there, for before that nobody knows what is printed.
    """
    cells = known(grid)
    asked = st.session_state.get("shown", st.query_params.get("shown")) if len(cells) < grid.size else None
    printed = any(cell.published for cell in cells)
    return [one for one in VIEWS if printed or one not in PRINTED or one == asked]


def view_picker(grid: Grid) -> View:
    """Choose what the table shows."""
    shows = choice("Show", views(grid), key="shown", bind="query-params")
    with st.popover("Sort and filter", icon=":material/filter_list:"):
        columns = [*grid.tasks, *([AVERAGE] if len(grid.tasks) > 1 else [])]
        sorts = {"": "As computed"} | {name: _title(name) for name in (*columns, "model", "setting")}
        with spelt("sort-by", sorts, sorts.get):
            by = st.selectbox(
                "Sort by",
                list(sorts),
                **linked("sort-by", "", sorts.get),
                format_func=sorts.get,
                help="Scores from the highest. Downloads keep this order; a click on a heading sorts the picture only.",
            )
        models = _only("models", list(dict.fromkeys(called(grid.models).values())))
        settings = _only("settings", list(map(str, grid.settings)))
        tasks = _only("tasks", columns)
    return View(shows, models, settings, tasks, by or None)


def _only(what: str, options: Sequence[str]) -> tuple[str, ...]:
    """Which models, settings or tasks are shown; none chosen: all."""
    label = f"{what.capitalize()} shown"
    return tuple(st.multiselect(label, options, **linked(f"only-{what}", []), placeholder="All"))


def table(
    cells: Sequence[Cell],
    view: View,
    preset: str,
    drawn: Resampled | None = None,
    given: Sequence[mteb_files.Row] = (),
) -> None:
    """The table as far as it is done and rows `given`, beside what is published, and why scores are missing."""
    shown = view.of(cells)
    columns, rows = comparing.pivot(shown)
    by_place = {(*cell.row, cell.task): cell for cell in shown}
    records = [
        {"Model": model, "Setting": setting}
        | {_title(task): _value(by_place.get((model, setting, task)), view.shows, drawn) for task in columns}
        for model, setting, _ in rows
    ]
    if view.shows == "Measured":
        records += [
            {"Model": model, "Setting": made} | {_title(task): scores.get(task) for task in columns}
            for model, made, scores in given
        ]
    names, few = [_title(task) for task in columns], comparing.starved_places(shown)
    rows_of = [(one["Model"], one["Setting"]) for one in records]
    best = {_title(task): [(*row, task) not in few for row in rows_of] for task in columns if view.shows == "Measured"}
    starved = ["; ".join(task for task in columns if (*row, task) in few) for row in rows_of]
    if view.shows in PRINTED:  # what is measured leaves with its `texts`
        made = {"Shown": view.shows, "Preset": preset}
        rows = [one | {"Starved": tasks} | made for one, tasks in zip(records, starved, strict=True)]
        keep_rows(lambda: rows, f"grid-{view.shows.lower()}")
    if not any(cell.published for cell in cells):
        st.caption("The papers print no number for these models under this preset.")
    number = st.column_config.NumberColumn(format="%+.2f" if view.shows == "Difference" else "%.2f")
    texts = ("Model", "Setting")
    named = {name: st.column_config.TextColumn(width=text_width([one[name] for one in records])) for name in texts}
    rounded_table(
        records,
        named | {name: number for name in names if view.shows != "95 % interval"},
        best=best,
        height=heights.table(max(len(records), 1)),
        placeholder="-",
        alt=f"{view.shows} of every model under every setting, a column for each task",
    )
    _beside(cells)
    _missing(cells)


def _row(row: tuple[str, str]) -> str:
    return " · ".join(row)


def _title(task: str) -> str:
    return "Average" if task == AVERAGE else task


def _value(cell: Cell | None, shows: str, drawn: Resampled | None) -> float | str | None:
    if cell is None:
        return None
    if shows == "Measured":
        return cell.spearman
    if shows == "95 % interval":
        ends = drawn and drawn.interval(cell.row, cell.task)
        return f"{ends[0]:.2f} to {ends[1]:.2f}" if ends else None
    paper = cell.published and cell.published.value
    if shows == "Published" or paper is None:
        return paper
    return None if cell.spearman is None else cell.spearman - paper


def _beside(cells: Sequence[Cell]) -> None:
    note(*comparing.notes_of(cells))
    if starved := comparing.starved_note(cells):
        st.warning(plain(starved), icon=":material/warning:")
    known = [cell for cell in cells if cell.published is not None and cell.spearman is not None]
    if not known:
        return
    worst = max(known, key=lambda cell: abs(cell.spearman - cell.published.value))
    st.caption(
        f"{quantity(len(known), 'cell has', 'cells have')} a published number ({known[0].published.place}). "
        f"The largest difference is {worst.spearman - worst.published.value:+.2f}: {worst.model}, {worst.setting}, "
        f"{worst.task}."
    )


def _missing(cells: Sequence[Cell]) -> None:
    """Each reason once, with the cells it is the reason of."""
    reasons = comparing.reasons_of(cells)
    if not reasons:
        return
    with st.expander("Why some scores are missing", expanded=True):
        for (model, reason), missing in reasons.items():
            settings = dict.fromkeys(str(cell.setting) for cell in missing)
            tasks = dict.fromkeys(cell.task for cell in missing)
            where = f"{', '.join(settings)} on {', '.join(tasks)}"
            st.markdown(f"**{plain(model)}**, {plain(where)}: {plain(reason)}")
        st.caption("Press Compare again to try these once more; the cells that are done are kept.")


def texts(
    cells: Sequence[Cell], grid: Grid, drawn: Resampled | None = None, given: Sequence[mteb_files.Row] = ()
) -> dict[str, Callable[[], str]]:
    """The table as files that name their preset, by their ending, each written when it is asked for."""
    under, lacking = (grid.preset, grid.corpus), comparing.lacking_splits([grid.preset], grid.data, grid.tasks)
    more = drawn, given, lacking, grid.data
    return {ending: partial(comparing.written, cells, form, *under, *more) for form, (_, ending) in FORMATS.items()}


def downloads(cells: Sequence[Cell], grid: Grid, drawn: Resampled | None, given: Sequence[mteb_files.Row] = ()) -> None:
    """The table as files, for the page's results too, and its scores as MTEB lays them out."""
    files = texts(cells, grid, drawn, given)
    keep_texts(files, "grid")
    with st.container(horizontal=True):
        for form, (label, ending) in FORMATS.items():
            st.download_button(
                label,
                files[ending],
                file_name=f"whitelab-{grid.preset}.{ending}",
                key=f"as-{form}",
                on_click="ignore",
                icon=":material/download:",
            )
        unlike = grid.preset not in comparing.LIKE_MTEB
        st.download_button(
            "MTEB",
            lambda: mteb_files.packed(cells),
            file_name="whitelab-mteb.zip",
            mime="application/zip",
            key="as-mteb",
            on_click="ignore",
            icon=":material/download:",
            help="MODEL/SETTING/TASK.json, which mteb.TaskResult reads.",
            disabled=unlike,
        )
    if unlike:
        fitting = [comparing.PRESETS[name].label for name in comparing.LIKE_MTEB]
        st.caption(
            "MTEB's score of a task is one Spearman over all its pairs, and this preset's is another. For scores in "
            f"MTEB's layout choose the preset {plain(' or '.join(fitting))}."
        )


# ------------------------------------------------------------------------------------------- row against row


def intervals(grid: Grid, cells: Sequence[Cell]) -> Resampled | None:
    """`compare.resampled` as a job; None until it is done."""

    def work(progress):
        yield from comparing.resampled(cells, progress=progress)

    key = _stand(grid, cells)
    claim("resampled", key)
    job = jobs().submit(key, "Resampling the pairs of each task", work, "tasks")
    return follow(
        job,
        lambda found: None,
        key="resampled",
        caption=lambda found: f"{spaced(RESAMPLES)} resamples of {quantity(len(found.tasks), 'task')}.",
        room=1,
    )


def row_against_row(drawn: Resampled, cells: Sequence[Cell], preset: str) -> str:
    """Choose two rows: what lies between them on each task and on average, and whether it is more than chance.

    Its data names both rows and the `preset` they were scored under. Returns the lines that print it.
    """
    if len(drawn.rows) < 2:
        st.info("Two rows with a score are needed.")
        return ""
    rows = list(drawn.rows)
    ranked = comparing.ranked(rows, cells)
    left, right = st.columns(2)
    with left:
        a = st.selectbox("Row A", rows, rows.index(ranked[0]), format_func=_row, **linked("row-a", ranked[0], _row))
    with right:
        against = linked("row-b", ranked[1], _row)
        b = st.selectbox("against row B", rows, rows.index(ranked[1]), format_func=_row, **against)
    try:
        duels = drawn.against(a, b)
    except KeyError:
        st.info("These two rows share no task with a score.")
        return ""
    one_model = a[0] == b[0]
    names = [row[1] if one_model else _row(row) for row in (a, b)]
    st.markdown(plain(comparing.outcome(duels, *names)))
    compared = {"preset": preset, "model_a": a[0], "setting_a": a[1], "model_b": b[0], "setting_b": b[1]}
    records = [one.as_dict() for one in duels]
    drawing = [
        record | {"label": _title(one.task), "settled": settled(one.verdict)}
        for record, one in zip(records, duels, strict=True)
    ]
    chart(figures.row_differences(drawing, *names), "row-against-row", lambda: [compared | one for one in records])
    rounded_table(
        [
            {
                "Task": _title(one.task),
                "A": one.a,
                "B": one.b,
                "A less B": one.difference.estimate,
                "95 %": f"{one.difference.low:+.2f} to {one.difference.high:+.2f}",
                "p": bare(p_value(one.difference.p_value, least_p(one.resamples))),
                "Verdict": OUTCOMES.get(one.verdict, VERDICTS[one.verdict]),
            }
            for one in duels
        ],
        {
            **{name: st.column_config.NumberColumn(format="%.2f") for name in ("A", "B")},
            "A less B": st.column_config.NumberColumn(format="%+.2f"),
        },
        alt="Row A less row B on each task, with interval, p and verdict",
    )
    st.caption(
        f"Pairs are drawn anew {spaced(RESAMPLES)} times within each task, for both rows at once; p is twice the "
        f"share of resamples on the other side of 0, never below {least_p(RESAMPLES):.3f}. Where one correlation is "
        "the whole score, Williams' test must agree. A dot is open where the difference could be chance."
    )
    return f"for one in drawn.against({a!r}, {b!r}):\n    print(one.task, one.a, one.b, one.difference, one.verdict)\n"
