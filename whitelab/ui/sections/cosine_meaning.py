"""What a cosine means here: its percentile among random pairs, the gold it stands for, and a threshold."""

from collections.abc import Sequence

import numpy as np
import streamlit as st

from whitelab import figures
from whitelab.base.wording import in_percent, plain, spaced
from whitelab.encoding.embeddings import LayerEmbeddings
from whitelab.figures import heights
from whitelab.scoring.calibration import MOST_ALIKE, Calibration, calibrate
from whitelab.scoring.setting import Setting
from whitelab.statistics.random_cosines import FLOOR, TOP
from whitelab.ui.frame.variants import LABELS
from whitelab.ui.results.jobs import follow
from whitelab.ui.results.study import study_each
from whitelab.ui.widgets.address import linked
from whitelab.ui.widgets.chart import chart
from whitelab.ui.widgets.choice import choice
from whitelab.ui.widgets.metric import Metric, headlines, number

RATES = (0.01, 0.05, 0.1)
GRID = np.linspace(-1, 1, 401)


def draw(space: LayerEmbeddings, setting: Setting) -> str:
    """The section, and the lines that give its numbers in Python; none where there are no numbers."""
    st.header("What does a cosine mean here?")
    st.markdown(
        "A cosine says something only beside those of pairs that have nothing to do with each other. Look at what the "
        "same cosine is worth before and after whitening."
    )
    cosine, cut, rate = _controls(space)
    settings = tuple(dict.fromkeys((setting.raw, setting)))
    job = study_each(calibrate, space, settings, cut, rate, title="Comparing random pairs", place="meaning")
    follow(
        job,
        lambda found: _picture(found, cosine),
        key="meaning",
        caption=lambda found: _pairs(found[-1]),
        room=heights.room(heights.CURVES) + 260,
    )
    gold = f"meant.gold and (meant.gold({cosine}), meant.gold.error, meant.gold.error_of_mean), meant.ceiling"
    return "" if job.error else code("whitelab.calibrate(space", settings, f"{cut}, {rate}", gold, cosine)


def code(call: str, settings: Sequence[Setting], options: str, more: str, cosine: float) -> str:
    """The lines that give the numbers of some settings in Python: a `call` takes each before its `options`."""
    return (
        f"for text in {tuple(map(str, settings))!r}:\n"
        f"    meant = {call}, whitelab.Setting.parse(text), {options})\n"
        f"    print(meant.random.percentile({cosine}), meant.random.floor, meant.random.top)\n"
        f"    print({more})\n"
        "    print(meant.threshold, meant.line())\n"
    )


def _controls(space: LayerEmbeddings) -> tuple[float, float, float]:
    """The cosine to explain, the gold score from which pairs count as alike, and the false positives accepted."""
    low, high = float(space.gold.min()), float(space.gold.max())
    left, middle, right = st.columns(3, vertical_alignment="bottom")
    with left:
        cosine = cosine_picker(0.7, "meant-cosine")
    with middle:
        cut = st.number_input(
            "Alike from this gold score on",
            low,
            high,
            (low + high) / 2,
            step=max((high - low) / 10, 0.01),
            **linked(f"meant-cut-{low:g}-{high:g}", (low + high) / 2),
            disabled=low == high,
        )
    with right:
        rate = rate_picker(RATES, "meant-rate")
    return cosine, float(cut), rate


def cosine_picker(usual: float, key: str) -> float:
    """The cosine that is explained."""
    return float(st.slider("Cosine", -1.0, 1.0, usual, 0.01, **linked(key, usual)))


def rate_picker(rates: Sequence[float], key: str) -> float:
    """The share of false positives that a threshold lets through; the second is where it stands at first."""
    how = {"key": key, "bind": "query-params", "format_func": lambda value: f"{100 * value:g} %"}
    return choice("False positives accepted", rates, rates[1], **how)


def _pairs(found: Calibration) -> str:
    how = "all there are" if found.random.exact else "drawn at random"
    return (
        f"{spaced(found.random.pairs)} pairs of different sentences, {how}; percentiles are off by at most "
        f"{found.random.error:.2g} points."
    )


def _picture(found: Sequence[Calibration], cosine: float) -> None:
    raw, now = found[0], found[-1]
    name, cut = LABELS.at(now.setting), now.threshold
    where = (
        f"The floor of this space is the cosine that {FLOOR} % of random pairs are below, its top the one that "
        f"{100 - TOP:.1g} % are above."
    )
    row = placed(found, cosine, "random pairs of different sentences", "Random pairs", where)
    if now.gold:
        row.append(
            Metric(
                f"Gold at {cosine:.2f}",
                f"{now.gold(cosine):.2f}",
                f"{raw.gold(cosine):.2f} raw",
                help="Isotonic regression of the gold score on the cosine. Off by "
                f"{number(now.gold.error)} on pairs it has not seen (root mean square), raw {number(raw.gold.error)}; "
                f"their mean by {number(now.gold.error_of_mean)}. {now.gold.reason}",
            )
        )
    if cut:
        row.append(
            threshold(found, f"above which at most {in_percent(cut.rate, 'g')} of the pairs below gold {cut.cut:g} lie")
        )
    headlines(*row)
    if cut:
        _says(name, now, raw)
    left, right = st.columns(2)
    with left:
        percentiles(found, cosine, "random pairs", "cosine-percentiles")
    with right:
        if now.gold:
            golds = {one.setting.whitening: (one.gold.cosine.tolist(), one.gold.gold.tolist()) for one in found}
            figure = figures.cosine_scale(golds, LABELS, cosine, "Gold score")
            chart(figure, "cosine-gold", lambda: _rows(golds, "gold"))
    st.caption(plain(now.line()))


def _says(name: str, now: Calibration, raw: Calibration) -> None:
    cut, before = now.threshold, raw.threshold
    if cut.cosine != cut.cosine:
        st.info(f"No pair, or every pair, has gold {cut.cut:g} or more: there is no threshold to find.")
        return
    st.markdown(
        f"{name} above {cut.cosine:.3f}: **{in_percent(cut.recall)}** of the {spaced(cut.alike)} alike pairs "
        f"(95\u00a0%: {100 * cut.recall_low:.0f} to {100 * cut.recall_high:.0f}) at "
        f"{in_percent(cut.false_positives, '.1f')} false positives; raw {in_percent(before.recall)}. Pairs whose gold "
        f"is in the top {in_percent(1 - MOST_ALIKE)} have a median cosine of {now.ceiling:.2f}, raw {raw.ceiling:.2f}; "
        "identical ones have 1."
    )


def placed(found: Sequence, cosine: float, among: str, name: str, where: str) -> list[Metric]:
    """The percentile of a cosine `among` pairs, and from where to where these lie, beside raw."""
    raw, now = found[0], found[-1]
    return [
        Metric(
            f"Percentile of {cosine:.2f}, {LABELS.card(now.setting)}",
            f"{now.random.percentile(cosine):.2f}",
            f"{raw.random.percentile(cosine):.2f} raw",
            help=f"The share of {among}, in percent, whose cosine is not above it.",
        ),
        Metric(
            name,
            f"{now.random.floor:.2f} to {now.random.top:.2f}",
            f"{raw.random.floor:.2f} to {raw.random.top:.2f} raw",
            help=where,
        ),
    ]


def threshold(found: Sequence, where: str) -> Metric:
    """The least cosine of what counts as alike, beside raw."""
    cut = found[-1].threshold
    return Metric(
        "Threshold",
        number(cut.cosine, 3),
        f"{number(found[0].threshold.cosine, 3)} raw",
        help=f"The least cosine {where}.",
        description=f"95 %: {number(cut.low, 3)} to {number(cut.high, 3)}",
    )


def percentiles(found: Sequence, cosine: float, among: str, key: str) -> None:
    """The percentile of every cosine `among` pairs, a curve a setting."""
    curves = {one.setting.whitening: (GRID.tolist(), one.random.percentile(GRID).tolist()) for one in found}
    figure = figures.cosine_scale(curves, LABELS, cosine, f"Percentile among {among}")
    chart(figure, key, lambda: _rows(curves, "percentile"))


def _rows(curves: dict, value: str) -> list[dict]:
    """The curves of `figures.cosine_scale` as rows, with a column `value`."""
    return [
        {"whitening": spec, "cosine": float(x), value: float(y)}
        for spec, (xs, ys) in curves.items()
        for x, y in zip(xs, ys, strict=True)
    ]
