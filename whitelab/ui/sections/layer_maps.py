"""Every pair of layers as two maps, raw and whitened, side by side on one colour scale."""

import streamlit as st

from whitelab import figures
from whitelab.encoding.embeddings import LayerEmbeddings
from whitelab.figures import heights
from whitelab.scoring.fit_scopes import is_starved
from whitelab.scoring.setting import Setting
from whitelab.sweeps.dimensions import pair_curves, pairs_at
from whitelab.sweeps.layer_pairs import LayerPairs, highest, layer_pairs
from whitelab.ui.frame.variants import LABELS
from whitelab.ui.results.jobs import follow, known
from whitelab.ui.results.scores import shared
from whitelab.ui.results.study import named, study_job
from whitelab.ui.results.worker import Job
from whitelab.ui.sidebar.workspace import take
from whitelab.ui.widgets.chart import chart, clicked, data_under
from whitelab.ui.widgets.choice import choice


def draw(space: LayerEmbeddings, setting: Setting) -> list[LayerPairs | None]:
    """Both maps; a click takes a pair into the workspace. What each shows, None where there is nothing yet."""
    settings = {"raw-pairs": setting.raw, "whitened-pairs": setting}
    jobs = {place: _job(space, one, place) for place, one in settings.items()}
    there = [job.finished for job in jobs.values()]
    maps = {
        place: _at(known(job, place, _of(space, settings[place])), settings[place].k) for place, job in jobs.items()
    }
    scores = [cell.spearman for one in maps.values() if one for cell in one.cells if cell.spearman is not None]
    scale = (min(scores), max(scores)) if scores else None

    gain = choice(
        "The second map shows",
        ("Spearman", "Gain over raw"),
        key="right-map",
        bind="query-params",
        help="The gain is the second map less the first, cell by cell.",
    )
    raw = maps["raw-pairs"] if gain == "Gain over raw" else None

    def picture(result, one: Setting, place: str) -> None:
        pairs = _at(result, one.k)
        with data_under(space, one):
            if raw is not None and place == "whitened-pairs":
                _gain(space, raw, pairs, one, place)
            else:
                _map(space, pairs, one, scale, place)

    shown = []
    for column, (place, one) in zip(st.columns(2), settings.items(), strict=True):
        with column:
            st.header(LABELS.at(one))
            result = follow(
                jobs[place],
                lambda result, one=one, place=place: picture(result, one, place),
                key=place,
                of=_of(space, one),
                caption=lambda _, one=one: (
                    f"Every pair of layers, {f'the top {one.k}' if one.k else 'all'} dimensions."
                ),
                room=heights.room(heights.PAIRS),
            )
            shown.append(_at(result, one.k))
    if any(one and not before for one, before in zip(shown, there, strict=True)):
        st.rerun()  # with the scale of what has come meanwhile
    both = "the right one what whitening adds to it" if raw else "both maps share one colour scale"
    st.caption(
        f"Spearman x 100 of the average of two layers, on the diagonal of a layer alone; {both}, at the bar's k. "
        "A star marks the highest cell and any that ties with it, the frame the bar's layers."
    )
    return shown


def _job(space: LayerEmbeddings, setting: Setting, place: str) -> Job:
    """All directions at once is quick; below that every cell keeps its whole curve, so that moving k fits nothing."""
    every, words = shared(setting.with_(layers=(0,), k=None)), {"title": "Scoring every pair of layers", "place": place}
    f = layer_pairs if setting.k is None else pair_curves
    return study_job(f, space, every, unit="cells", **words)


def _of(space: LayerEmbeddings, setting: Setting) -> str:
    """What a map stays for while k is moved."""
    return named((space, setting.with_(layers=(0,), k=None)))


def _at(result: LayerPairs | dict | None, k: int | None) -> LayerPairs | None:
    return pairs_at(result, k) if isinstance(result, dict) else result


def says_nothing(space: LayerEmbeddings, pairs: LayerPairs) -> bool:
    """Whether the best cell's map sets all sentences equally far apart, so that no cell is best."""
    if (best := pairs.best) is None:
        return False
    return is_starved(space, pairs.setting.with_(layers=tuple(sorted(set(best.layers)))), best.rank)


def _map(
    space: LayerEmbeddings,
    pairs: LayerPairs,
    setting: Setting,
    scale: tuple[float, float] | None,
    place: str,
) -> None:
    """The map, and its numbers to download."""
    scores = {cell.layers: cell.spearman for cell in pairs.cells}
    n_layers = 1 + max(cell.layers[1] for cell in pairs.cells)
    best = [] if says_nothing(space, pairs) else [cell.layers for cell in pairs.equals]
    chart(
        figures.pair_heatmap(scores, n_layers, best, setting.layers, scale),
        place,
        lambda: _rows(pairs, setting),
        on_select=lambda: take(clicked(place)),
    )


def _rows(pairs: LayerPairs, setting: Setting) -> list[dict]:
    """The cells under the setting they are shown for: theirs may be another variant with the same scores."""
    made = {"whitening": setting.whitening, "k": setting.k}
    return [
        {"layer_i": cell.layers[0], "layer_j": cell.layers[1], "spearman": cell.spearman, "rank": cell.rank} | made
        for cell in pairs.cells
    ]


def _gain(space: LayerEmbeddings, raw: LayerPairs, pairs: LayerPairs, setting: Setting, place: str) -> None:
    """The map of what whitening adds to each pair."""
    before = {cell.layers: cell.spearman for cell in raw.cells}
    gains = {
        cell.layers: None if None in (cell.spearman, before[cell.layers]) else cell.spearman - before[cell.layers]
        for cell in pairs.cells
    }
    best = [] if says_nothing(space, pairs) else highest(gains)
    chart(
        figures.pair_heatmap(gains, 1 + max(j for _, j in gains), best, setting.layers, gain=True),
        place,
        lambda: [
            row | {"raw": before[cell.layers], "gain": gains[cell.layers]}
            for row, cell in zip(_rows(pairs, setting), pairs.cells, strict=True)
        ],
        on_select=lambda: take(clicked(place)),
    )
