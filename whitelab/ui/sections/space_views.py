"""A space under several variants: scores, the cosines of random pairs, and the spectrum."""

from collections.abc import Mapping, Sequence

import numpy as np
import streamlit as st

from whitelab import figures
from whitelab.base.wording import layers_in_words, number, spaced
from whitelab.encoding.embeddings import LayerEmbeddings
from whitelab.figures.geometry import BINS
from whitelab.scoring.score import Score
from whitelab.scoring.setting import Setting
from whitelab.sweeps.layer_profiles import cosine_sample
from whitelab.ui.frame.variants import LABELS
from whitelab.ui.results.scores import shape_of
from whitelab.ui.results.study import study
from whitelab.ui.widgets.chart import chart
from whitelab.whitening import variant


def cosines(space: LayerEmbeddings, settings: Sequence[Setting], of: str = "sentences") -> str:
    """A histogram of the cosines of random pairs `of` different rows, and the lines that give it in Python."""
    samples = {one.whitening: study(cosine_sample, space, one) for one in settings}
    binned = {spec: np.histogram(sample, BINS, (-1, 1)) for spec, sample in samples.items()}
    chart(
        figures.cosine_histogram(samples, LABELS.titles(settings), of),
        "cosines",
        lambda: [
            {"whitening": spec, "from": float(edge), "pairs": int(count)}
            for spec, (counts, edges) in binned.items()
            for edge, count in zip(edges[:-1], counts, strict=True)
        ],
    )
    layers = layers_in_words(settings[0].layers)
    drawn = spaced(max(map(len, samples.values())))
    st.caption(f"{drawn} random pairs of different {of}, {layers}. The means above are exact, over all pairs.")
    return (
        f"import numpy as np\n\nfor text in {tuple(map(str, settings))!r}:\n"
        "    sample = whitelab.cosine_sample(space, whitelab.Setting.parse(text))\n"
        f"    print(text, sample.mean(), np.histogram(sample, {BINS}, (-1, 1))[0])\n"
    )


HALVES = " Cross-fitted halves keep k directions each, and not the same ones."


def spectra(space: LayerEmbeddings, settings: Sequence[Setting]) -> str:
    """The eigenvalues of the covariance and their participation ratio, and the lines that give both in Python."""
    measured = {one: shape_of(space, one) for one in settings}
    spectrum({one: shape.eigenvalues for one, shape in measured.items()}, "spectra")
    ratios = "; ".join(
        f"{LABELS.at(one)}: {number(shape.participation_ratio, '.1f')} of {one.directions(space.dim)}"
        for one, shape in measured.items()
    )
    halved = any(one.directions(space.dim) > (one.k or space.dim) for one in measured)
    st.caption(f"Participation ratio. {ratios}." + HALVES * halved)
    return code(settings)


def spectrum(found: Mapping[Setting, Sequence[float]], key: str) -> None:
    """Eigenvalues under settings of different variants, and their rows to download."""
    chart(
        figures.spectrum({setting.whitening: values for setting, values in found.items()}, LABELS.titles(found)),
        key,
        lambda: [
            {"whitening": setting.whitening, "direction": i, "eigenvalue": value}
            for setting, values in found.items()
            for i, value in enumerate(values, 1)
        ],
    )


def code(settings: Sequence[Setting]) -> str:
    """The lines that give the eigenvalues of settings, and their participation ratio, in Python."""
    return (
        f"for text in {tuple(dict.fromkeys(map(str, settings)))!r}:\n"
        "    shape = whitelab.shape(space, whitelab.Setting.parse(text))\n"
        "    print(text, shape.participation_ratio, shape.eigenvalues)\n"
    )


def scores(found: Mapping[Setting, Score], key: str) -> None:
    """A bar for each setting that has a score, and what its variant does."""
    known = {setting: score for setting, score in found.items() if score.spearman is not None}
    if known:
        chart(
            figures.score_bars(
                [setting.whitening for setting in known],
                [LABELS.at(setting) for setting in known],
                [score.spearman for score in known.values()],
                [score.half_width or 0.0 for score in known.values()],
            ),
            key,
            lambda: [
                {"whitening": one.whitening, "k": s.setting.k, "spearman": s.spearman, "half_width_95": s.half_width}
                for one, s in known.items()
            ],
        )
    equal = (
        "PCA, ZCA and Cholesky whitening all make the cloud of sentences round and differ only in how they then turn "
        "it. Turning all vectors together leaves every angle, and so every score, the same: their bars are equal. "
    )
    by_itself = (
        f"{LABELS['standardize']} gives every number of a vector the same variance and leaves what the numbers share: "
        "weak directions stay weak, which can score higher. "
    )
    variants = {setting.whitening for setting in known}
    st.caption(
        equal * ({"pca", "zca", "cholesky"} <= variants)
        + by_itself * ("standardize" in variants)
        + "The whitening page compares every variant. Whiskers are 95 % intervals.",
        help="\n\n".join(f"**{LABELS[one.whitening]}.** {variant(one.whitening).hint}" for one in known),
    )
