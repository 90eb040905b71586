"""The papers' figures on the loaded models and data, each a job that grows, beside what was printed."""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import partial

import numpy as np
import streamlit as st

from whitelab import figures
from whitelab.base.progress import Progress
from whitelab.base.wording import in_percent, layer_names, plain, quantity, spaced
from whitelab.compare import AVERAGE, PRESETS, SEVEN, Grid
from whitelab.compare import papers as drawn
from whitelab.encoding.checkpoints import on_disk
from whitelab.encoding.encoders import Encoder
from whitelab.encoding.names import shown_name
from whitelab.figures import heights
from whitelab.scoring.setting import Setting, scope_name
from whitelab.statistics import geometry
from whitelab.store.embedding_store import Store
from whitelab.sweeps import layer_subsets
from whitelab.sweeps.dimensions import KCurve
from whitelab.sweeps.layer_pairs import LayerPairs, highest
from whitelab.sweeps.layer_subsets import SubsetSearch
from whitelab.ui.frame.variants import LABELS
from whitelab.ui.results.jobs import follow
from whitelab.ui.results.study import study_job
from whitelab.ui.sections.compare_grid import grid_in_code
from whitelab.ui.sections.preset_walk import say_what_lacks
from whitelab.ui.sidebar.model import shared_encoder
from whitelab.ui.widgets import address, asking
from whitelab.ui.widgets.chart import chart, data_of
from whitelab.ui.widgets.choice import choice

_ABSENT = "losses-download"  # what is asked for: models that are not here yet
SUBSETS = PRESETS["whiteningbert"].applied(Setting())  # its own layers do not count
EVERY_K = Setting.parse("L1+L-1:pca")


class PaperGrid(Grid):
    """What a paper's figure is drawn of: a grid of one model, whose settings and preset are the paper's."""

    @classmethod
    def on(cls, grid: Grid, model: str) -> "PaperGrid":
        """On `model` and the data of a grid."""
        shared = "data", "tasks", "dtype", "keep_going", "stamp", "allow_bin"
        return cls((model,), settings=(), **{name: getattr(grid, name) for name in shared})

    @property
    def model(self) -> str:
        """The model's name."""
        return self.models[0]

    @property
    def name(self) -> str:
        """The model's name as the tables know it."""
        return shown_name(self.model)

    def data_of(self, setting: Setting, tasks: Sequence[str], preset: str = "whiteningbert") -> None:
        """Say of what is drawn from here on that it is of this setting under a paper's preset, and of which tasks."""
        applied = PRESETS[preset].applied(setting)
        data_of(setting=applied, model=self.name, task=_averaged(tasks), preset=preset)

    @property
    def over(self) -> str:
        """The tasks in words."""
        return self.tasks[0] if len(self.tasks) == 1 else f"the mean of {len(self.tasks)} tasks"

    def read(self) -> tuple[Encoder, str, tuple[str, ...]]:
        """The loaded model, the data, and the tasks."""
        encoder = shared_encoder(self.model, self.dtype, self.model in self.allow_bin)
        return encoder, self.data, self.tasks

    def options(self) -> dict:
        """What reading and embedding take."""
        return {"store": Store(), "keep_going": self.keep_going}

    @property
    def code(self) -> str:
        """The first lines of each figure in Python, with what `read` and `options` give."""
        return (
            "from whitelab.compare import papers\n\n"
            f"options = {{'store': whitelab.Store(), 'keep_going': {self.keep_going}}}\n"
        )


def _averaged(tasks: Sequence[str]) -> str:
    """The task that a mean over several is of, as the grid calls it, with their names."""
    return f"{AVERAGE} of {', '.join(tasks)}" if len(tasks) > 1 else "".join(tasks)


# ----------------------------------------------------------------------------------- WhiteningBERT, Figure 1


def pair_heatmaps(grid: PaperGrid) -> str:
    """Every pair of layers, averaged over the tasks, beside the printed cells. Returns the lines that make them."""
    st.markdown("**Which pairs of layers?** Average over the tasks of every pair of layers, without whitening.")
    panels = drawn.panels()
    own = drawn.printed_pairs(grid.name)

    usual = next((name for name in panels if own and drawn.printed_pairs(name) == own), list(panels)[-1])
    beside = st.selectbox(
        "Printed panel",
        list(panels),
        list(panels).index(usual),
        **address.linked("panel", usual, panels.get),
        format_func=panels.get,
        help="WhiteningBERT prints four models. The difference is shown where yours is one of them.",
    )
    printed, place = drawn.printed_pairs(beside or next(iter(panels))), drawn.pairs_place()

    def draw(maps) -> None:
        grid.data_of(SUBSETS, tuple(maps))
        ours = drawn.pair_average(maps)
        layers = 1 + max(j for _, j in ours)
        values = [s for s in (*ours.values(), *printed.values()) if s is not None]
        left, right = st.columns(2)
        with left:
            st.markdown(f"Measured: **{grid.name}**, {', '.join(maps)}")
            scale = (min(values), max(values))
            map_ours = figures.pair_heatmap(ours, layers, highest(ours), scale=scale)
            chart(map_ours, "paper-pairs", lambda: _cells(ours, own))
        with right:
            st.markdown(f"Printed: **{panels[beside]}**, seven tasks")
            data_of(setting=SUBSETS, model=panels[beside], task=_averaged(sorted(SEVEN)), published_in=place)
            map_printed = figures.pair_heatmap(printed, 1 + max(j for _, j in printed), highest(printed), scale=scale)
            chart(map_printed, "paper-printed", lambda: _cells({}, printed))
        grid.data_of(SUBSETS, tuple(maps))
        if own and set(maps) == SEVEN:
            gaps = {pair: ours[pair] - value for pair, value in own.items() if ours.get(pair) is not None}
            chart(figures.difference_heatmap(gaps, layers), "paper-pair-differences", lambda: _cells(ours, own))
        else:
            why = "is not among the four printed models" if not own else "has not been scored on all seven tasks"
            st.caption(f"No difference is shown: {grid.name} {why}.")

    title = "Scoring every pair of layers of every task"
    job = study_job(_pair_maps, grid, title=title, unit="tasks", place="paper-pairs")
    follow(
        job,
        draw,
        key="paper-pairs-part",
        caption=lambda maps: _done(grid, maps),
        room=heights.room(heights.PAIRS),
    )
    st.caption(
        "Huang et al. 2021 (WhiteningBERT), Figure 1: mean over subsets, mean over tasks. Both maps share one scale."
    )
    return (
        f"{grid.code}*_, maps = papers.pair_maps(papers.spaces(encoder, data, tasks, **options))\n"
        "for layers, value in papers.pair_average(maps).items():\n"
        "    print(layers, value)\n"
    )


def _pair_maps(grid: PaperGrid, progress: Progress) -> Iterator[dict[str, LayerPairs]]:
    for maps in drawn.pair_maps(drawn.spaces(*grid.read(), **grid.options())):
        yield maps
        progress(len(maps), len(grid.tasks))


def _cells(ours: dict, printed: dict) -> list[dict]:
    return [
        {"layer_i": i, "layer_j": j, "spearman": ours.get((i, j)), "published": printed.get((i, j))}
        | {"published_in": drawn.pairs_place() if (i, j) in printed else None}
        for i, j in dict.fromkeys((*ours, *printed))
    ]


def _done(grid: PaperGrid, found) -> str:
    return f"{grid.name} on {', '.join(found)}."


# ----------------------------------------------------------------------------------- WhiteningBERT, Figure 2


def size_curve(grid: PaperGrid) -> str:
    """The best score by number of layers. Returns the lines that make it."""
    st.markdown(
        "**How many layers?** The best average over the tasks of any subset of so many layers, without whitening."
    )

    printed = drawn.printed_sizes(grid.name)

    def draw(found) -> None:
        grid.data_of(SUBSETS, grid.tasks)
        best = {size: (one.layers, one.spearman) for size, one in found.ranking.best_by_size.items()}
        rows = [
            {"size": size, "layers": "+".join(map(str, layers)), "spearman": score}
            | {"published": printed[size][1] if size in printed else None}
            | {"published_in": drawn.pairs_place() if size in printed else None}
            for size, (layers, score) in sorted(best.items())
        ]
        sizes = figures.size_curves({"none": best}, {"none": grid.name}, found.n_layers, printed)
        chart(sizes, "paper-sizes", lambda: rows)

    job = study_job(_subsets, grid, title="Scoring every subset of layers", unit="steps", place="paper-sizes")
    follow(
        job,
        draw,
        key="paper-sizes-part",
        caption=lambda found: (
            f"{spaced(found.scored)} subsets; the best is {layer_names(found.best.layers)} with "
            f"{found.best.spearman:.2f}, {grid.over}."
            if found.best
            else "No score is defined."
        ),
        room=heights.room(heights.LOW),
    )
    st.caption(
        "Huang et al. 2021 (WhiteningBERT), Figure 2, BERT-base: three layers were best there (1 + 2 + 12). The "
        "figure prints no numbers; its first two sizes are the best cells of Figure 1, "
        + ("drawn as diamonds." if printed else "which prints none for this model.")
    )
    return (
        f"{grid.code}spaces = dict(papers.spaces(encoder, data, tasks, **options))\n"
        f"found = whitelab.search_subsets(spaces, whitelab.Setting.parse({str(SUBSETS)!r}))\n"
        "for size, best in found.ranking.best_by_size.items():\n"
        "    print(size, best.layers, best.spearman)\n"
    )


def _subsets(grid: PaperGrid, progress: Progress) -> Iterator[SubsetSearch]:
    spaces = {}
    for task, space in drawn.spaces(*grid.read(), **grid.options()):
        spaces[task] = space
        progress(len(spaces), len(grid.tasks))
    yield from layer_subsets.stream(spaces, SUBSETS, progress=progress, every=0.5)


# ------------------------------------------------------------------------------------ BERT-whitening, Figure 1


def k_curves(grid: PaperGrid) -> str:
    """One curve a task over every k, with its optimum. Returns the lines that make them."""
    st.markdown(
        "**How many dimensions?** First and last layer, whitened: every task at every k, the optimum of each starred."
    )

    def draw(curves) -> None:
        grid.data_of(EVERY_K, tuple(curves), "bert-whitening")
        dim = next(iter(curves.values())).dim
        printed = [one for one in drawn.printed_ks(grid.name, dim) if one.column in curves]
        points = [(one.column, drawn.printed_k(one, dim), one.value) for one in printed]
        found, beside = {task: one.spearman for task, one in curves.items()}, {(t, k): v for t, k, v in points}
        places = {(one.column, drawn.printed_k(one, dim)): one.place for one in printed}
        chart(
            figures.task_curves(found, {task: one.best_k for task, one in curves.items()}, points),
            "paper-ks",
            lambda: [
                {"task": task, "k": k, "spearman": s}
                | {"published": beside.get((task, k)), "published_in": places.get((task, k))}
                for task, values in found.items()
                for k, s in enumerate(values, 1)
            ],
        )
        best = [f"{task} {k} ({in_percent(k / dim)})" for task, one in curves.items() if (k := one.best_k)]
        st.caption(
            f"Best k of {dim}: {', '.join(best) or 'none'}. The paper finds about a third of the dimensions best for "
            f"most tasks."
        )

    job = study_job(_task_curves, grid, title="Scoring every k of every task", unit="tasks", place="paper-ks")
    follow(
        job,
        draw,
        key="paper-ks-part",
        caption=lambda curves: _done(grid, curves),
        room=heights.room(heights.PLANE),
    )
    st.caption(
        "Su et al. 2021 (BERT-whitening), Figure 1: subsets weighted by pairs, fitted on all splits of the task, "
        "sentences of at most 64 tokens. Its curves are not in the text; the printed scores of Tables 1 and 2 that "
        "lie on them are drawn as diamonds where the model is theirs."
    )
    say_what_lacks(["bert-whitening"], grid.data, grid.tasks)
    return (
        f"{grid.code}ends = whitelab.Setting.parse({str(EVERY_K)!r})  # the first and the last layer\n"
        "*_, curves = papers.task_curves(encoder, data, tasks, ends, **options)\n"
        "for task, curve in curves.items():\n"
        "    print(task, curve.best_k, curve.best_k and curve.spearman[curve.best_k - 1])\n"
    )


def _task_curves(grid: PaperGrid, progress: Progress) -> Iterator[dict[str, KCurve]]:
    yield from drawn.task_curves(*grid.read(), EVERY_K, progress=progress, **grid.options())


# ------------------------------------------------------------------------------------ WhitenedCSE, Figures 1 and 3


def losses(grid: Grid) -> str:
    """Alignment and uniformity of every setting of every model, and how random cosines spread.

    A model that is not on this machine is downloaded on request only. Returns the lines that make the losses.
    """
    st.markdown(
        "**Closer together, or further apart?** Both losses of every setting of every model; lower left is better."
    )
    with st.container(horizontal=True, vertical_alignment="bottom"):
        usual = "stsb" if "stsb" in grid.tasks else grid.tasks[0]
        at = grid.tasks.index(usual)
        address.among("losses-task", grid.tasks, usual)
        task = st.selectbox("Task", grid.tasks, at, **address.linked("losses-task", usual)) or grid.tasks[0]
        positives = choice(
            "Positive pairs",
            geometry.POSITIVES,
            key="losses-positives",
            bind="query-params",
            format_func=geometry.POSITIVES.get,
        )
    absent = [model for model in grid.models if not on_disk(model)]
    if absent and not asking.asked(_ABSENT, absent):
        st.caption(plain(f"Left out, as not on this machine: {', '.join(map(shown_name, absent))}."))
        asking.button("Download and measure", _ABSENT, absent, "download")
        grid = replace(grid, models=[model for model in grid.models if model not in absent], versions=())
        if not grid.models:
            return ""
    title = "Measuring alignment and uniformity"
    job = study_job(_losses, grid, task, positives, title=title, unit="settings", place="paper-losses")
    follow(
        job,
        partial(_draw_losses, grid, task, positives),
        key="paper-losses-part",
        caption=lambda found: f"{quantity(len(found.spots), 'setting')} on {task}.",
        room=heights.room(heights.PLANE),
    )
    st.caption(
        "Zhuo et al. 2023 (WhitenedCSE), Figures 1 and 3, Eq. 9 and 10. The paper draws the losses during training, "
        "every 125 steps on the STS-B development set, and prints no number of them. Drawn here are models as they "
        "are, with its shuffled group whitening applied afterwards, which its released code does in training only; "
        f"what its training adds is not. The code has {drawn.GROUPS} groups, the paper 32 to 384; where they do not "
        "come out even, 8 is our own number."
    )
    return (
        f"{grid_in_code(grid, 'papers')}"
        f"*_, found = papers.losses(grid, {task!r}, {positives!r}, store=whitelab.Store())\n"
        "print(*found.spots, found.left_out, sep='\\n')\n"
    )


def _losses(grid: Grid, task: str, positives: str, progress: Progress) -> Iterator[drawn.LossFigure]:
    yield from drawn.losses(grid, task, positives, store=Store(), progress=progress, load=shared_encoder)


def _draw_losses(grid: Grid, task: str, positives: str, found: drawn.LossFigure) -> None:
    made = {"task": task, "preset": grid.preset, "corpus": scope_name(grid.corpus) if grid.corpus else ""}
    if found.spots:
        names = ", ".join(dict.fromkeys(one.model for one in found.spots))
        data_of(model=names, positive_pairs=geometry.POSITIVES[positives], **made)
        _plane(found)
    for model, reasons in found.left_out.items():
        _say_left_out(model, reasons)
    for model, samples in found.spreads.items():
        data_of(setting=grid.rules.applied(Setting.parse("L-1")), model=model, **made)
        _spread(found, model, samples)


def _say_left_out(model: str, reasons: dict[str, str]) -> None:
    """How many settings a model does without, and why: in the line where the reason is one, else behind it."""
    line = f"{model}: {quantity(len(reasons), 'setting')} left out"
    each = "\n\n".join(plain(f"{setting}: {reason}") for setting, reason in reasons.items())
    if len(set(reasons.values())) == 1:
        st.caption(plain(f"{line}: {next(iter(reasons.values()))}"))
    else:
        st.caption(plain(f"{line}."), help=each)


def _plane(found: drawn.LossFigure) -> None:
    rows = [one.as_dict() | {"label": _short(one)} for one in found.spots]
    floor = geometry.uniformity_floor(max(one.dim for one in found.spots))
    chart(figures.setting_plane(rows, floor), "paper-losses", lambda: rows)
    st.caption(
        f"{found.spots[0].positives} positive pairs. The hue is the variant's, the symbol the model's; a point without "
        "room for its name has it under the pointer. The floor is the uniformity of directions spread evenly "
        "over the sphere."
    )


def _spread(found: drawn.LossFigure, model: str, samples: dict[str, np.ndarray]) -> None:
    st.markdown(f"**How evenly does the last layer of {plain(model)} fill the sphere?** Cosines of random pairs.")
    spots = [one for one in found.spots if one.model == model]
    own = [one for one in spots if Setting.parse(one.setting) in drawn.spread_settings(one.dim)]
    chart(figures.cosine_histogram(samples, LABELS), f"paper-spread-{model}", lambda: _sample_rows(samples))
    named = [f"{LABELS.inline(one.whitening)} {one.uniformity:.2f}" for one in own if one.uniformity is not None]
    st.caption(f"Uniformity loss: {'; '.join(named)}. The narrower around 0, the more evenly spread.")


def _sample_rows(samples: dict[str, np.ndarray]) -> list[dict]:
    return [{"whitening": spec, "cosine": float(value)} for spec, values in samples.items() for value in values]


def _short(spot: drawn.Spot) -> str:
    """`cls L-1`, `L1+L-1 pca`: parameters are left to the hover."""
    one = Setting.parse(spot.setting)
    words = ("" if one.pooling == "mean" else one.pooling, one.named_layers)
    name = "" if one.whitening == "none" else one.whitening.partition(":")[0].replace("_", " ")
    return " ".join(word for word in (*words, name + (f" k={one.k}" if one.k else "")) if word)
