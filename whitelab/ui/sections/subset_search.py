"""Every subset of the layers, or a declared search among them, on the task or on the average of all tasks."""

from dataclasses import dataclass

import streamlit as st

from whitelab import datasets, figures
from whitelab.base.wording import capitalised, layer_names, quantity
from whitelab.figures import heights
from whitelab.scoring.setting import Setting
from whitelab.sweeps.layer_subsets import LayerSubset, SubsetSearch, stream
from whitelab.ui.frame.recipe import pooling
from whitelab.ui.frame.variants import LABELS
from whitelab.ui.results.jobs import follow, known, wait
from whitelab.ui.results.study import named, study_job
from whitelab.ui.sidebar.opening import Opened, every_task
from whitelab.ui.sidebar.workspace import Workspace, take
from whitelab.ui.widgets.address import linked
from whitelab.ui.widgets.chart import chart, clicked, rounded_table
from whitelab.ui.widgets.choice import choice

ROWS = 20  # subsets in the ranking
LISTED = 2**13  # that are kept for its data, which are all of up to 13 layers
# Of a search's pictures and their button, kept free while there are none.
ROOM = heights.room(heights.LOW) + heights.room(heights.ranking(ROWS)) + 50


@dataclass(frozen=True)
class Searched:
    """What was searched, under which setting, over what; None while it is searched."""

    setting: Setting
    over: str
    average: bool
    result: SubsetSearch | None


def draw(chosen: Workspace, opened: Opened) -> Searched:
    """Choose what is searched, and watch it grow."""
    st.header("Would more layers do better?")
    st.markdown(
        "Every subset of the layers, averaged and scored: WhiteningBERT's Figure 2 in full. Look at whether the "
        "curve rises, and where it stops."
    )
    tasks, compared = datasets.discover(chosen.data.source), chosen.compared
    with st.container(horizontal=True, vertical_alignment="bottom"):
        whitened = (
            choice(
                "Search under",
                ["raw", "whitened"],
                key="searched",
                bind="query-params",
                format_func={"raw": LABELS["none"], "whitened": "The bar's variant"}.get,
                help="Without whitening every subset costs one row of a matrix product. With it each needs "
                "a factorisation of its own: all subsets of models with up to 13 layers (10 where only k directions "
                "are kept); of deeper ones the larger subsets are searched with a beam.",
            )
            == "whitened"
        )
        average = len(tasks) > 1 and st.toggle(
            f"Average over all {len(tasks)} tasks of this data",
            **linked("average", False),
            disabled=compared.fit == "splits" and whitened,
            help="Embeds the other tasks first. A subset's score is then the plain mean of the tasks' Spearman, each "
            "task with the bar's aggregate over its own subsets. Not where a map is fitted on all splits of one "
            "task.",
        )
    setting = compared if whitened else compared.raw
    over = f"{len(tasks)} tasks" if average else opened.pairs.task
    spaces = {opened.pairs.task: opened.space}
    if average:
        spaces = wait(every_task(chosen, opened.space), key="tasks", height=ROOM)
    result = None if spaces is None else _search(spaces, setting, compared.raw, chosen.setting.layers)
    searched = Searched(setting, over, bool(average), result)
    st.caption(_about(searched))
    return searched


def code(chosen: Workspace, searched: Searched) -> str:
    """The lines that search the same in Python."""
    spaces, lines = "space", ""
    if searched.average:
        data, lenient = chosen.data, ", keep_going=True" if chosen.data.lenient else ""
        spaces, lines = (
            "spaces",
            (
                "spaces = {}\n"
                f"for info in whitelab.discover({data.source!r}):\n"
                f"    task = whitelab.load({data.source!r}, info.name, info.split_like({data.split!r}){lenient})\n"
                f"    one, _ = whitelab.embed_pairs(encoder, task{pooling(chosen)}, store=whitelab.Store())\n"
                "    for fit, rows in space.texts.items():\n"
                "        one = one.with_text(fit, rows)\n"
                "    spaces[info.name] = one\n"
            ),
        )
    return (
        f"{lines}search = whitelab.search_subsets({spaces}, whitelab.Setting.parse({str(searched.setting)!r}))\n"
        "print(search.scored, search.seconds, search.best)\n"
    )


def _search(spaces: dict, setting: Setting, raw: Setting, layers: tuple[int, ...]) -> SubsetSearch | None:
    jobs = {}
    for place, one in (("raw-subsets", raw), ("subsets", setting)):
        every, title = one.with_(layers=(0,)), "Scoring subsets of layers"
        jobs[place] = study_job(stream, spaces, every, top=LISTED, every=0.5, title=title, unit="subsets", place=place)
    of = named(spaces)
    beside = known(jobs["raw-subsets"], "raw-subsets", of) if setting != raw else None
    return follow(
        jobs["subsets"],
        lambda result: _pictures([one for one in (beside, result) if one], layers),
        key="subsets",
        of=of,
        caption=_summary,
        room=ROOM,
    )


def _about(searched: Searched) -> str:
    mean = f", the plain mean over the tasks, each with aggregate {searched.setting.aggregate}" * searched.average
    strategy = f" Scored: {searched.result.strategy}." if searched.result else ""
    return (
        f"Scores are Spearman x 100 on {searched.over}{mean}.{strategy} Equal scores share a place. How often a layer "
        "is needed is counted among the best subsets."
    )


def _summary(search: SubsetSearch) -> str:
    """How many settings were scored, in what time, and whether any was left out."""
    settings = quantity(search.scored, "subset")
    settings += f" x {len(search.tasks)} tasks" if len(search.tasks) > 1 else ""
    n = search.n_layers
    last = next((size for size in range(1, n) if size + 1 not in search.exact_sizes), n)
    kind = "exact" if search.exact else f"exact up to {last} layers, then a beam"
    said = "".join(f" {capitalised(note)}." for note in search.notes)
    return f"**{settings}** scored in **{search.seconds:.2f} s**, {kind}.{said}"


def _row(subset: LayerSubset) -> dict:
    return {"place": subset.place, "layers": layer_names(subset.layers), "spearman": subset.spearman}


def _pictures(searches: list[SubsetSearch], layers: tuple[int, ...]) -> None:
    """The curve by size, how often each layer is needed, the ranking, and the tasks' own best; of the last search."""
    if all(one.scored and not one.ranking.top for one in searches):
        st.markdown("No subset has a score that is defined.")
        return
    search, left_right = searches[-1], st.columns([3, 2])
    n_layers, counts = search.n_layers, search.ranking.needed
    averaged = {"task": ", ".join(search.tasks)} if len(search.tasks) > 1 else {}
    made = {"whitening": search.setting.whitening, "k": search.setting.k} | averaged
    with left_right[0]:
        chart(
            figures.size_curves(
                {
                    one.setting.whitening: {
                        n: (subset.layers, subset.spearman) for n, subset in one.ranking.best_by_size.items()
                    }
                    for one in searches
                },
                LABELS.titles(one.setting for one in searches),
                n_layers,
            ),
            "size-curve",
            lambda: [
                {"whitening": one.setting.whitening, "k": one.setting.k, "size": n} | _row(subset) | averaged
                for one in searches
                for n, subset in one.ranking.best_by_size.items()
            ],
            on_select=lambda: take(clicked("size-curve")),
        )
    with left_right[1]:
        chart(
            figures.layer_counts(counts, search.ranking.counted),
            "layer-counts",
            lambda: [
                {"layer": layer, "among_the_best": count, "best_counted": search.ranking.counted} | made
                for layer, count in enumerate(counts)
            ],
        )
    rows = [(subset.layers, subset.spearman, subset.place) for subset in search.ranking.top[:ROWS]]
    chart(
        figures.subset_ranking(rows, n_layers, layers, min(ROWS, 2**n_layers - 1)),
        "subset-ranking",
        lambda: [
            _row(one) | made | dict(zip(search.tasks, one.tasks, strict=True)) | {"subsets_scored": search.scored}
            for one in search.ranking.top
        ],
        on_select=lambda: take(clicked("subset-ranking")),
    )
    if search.best:
        label = f"Take the best, {layer_names(search.best.layers)}"
        st.button(label, on_click=take, args=(search.best.layers,), key="take-best")
    if len(search.tasks) > 1 and search.best:
        _tasks(search)


def _tasks(search: SubsetSearch) -> None:
    """The best subset of each task beside the best on average."""
    st.markdown("The best subset of each task, and what the best average costs it.")
    beside = f"with {layer_names(search.best.layers)}"
    rows = [
        {
            "task": name,
            "best layers": layer_names(own.best.layers) if own.best else "undefined",
            "Spearman x 100": own.best.spearman if own.best else None,
            beside: score,
        }
        for (name, own), score in zip(search.tasks.items(), search.best.tasks, strict=True)
    ]
    number = st.column_config.NumberColumn(format="%.2f")
    rounded_table(
        rows,
        dict.fromkeys(("Spearman x 100", beside), number),
        alt="The best subset of layers of each task, beside the best on average",
        height=heights.table(len(rows)),
    )
