"""Vectors without pairs: how crowded they are, raw and under a map, and that map to take away. Nothing scores them."""

import streamlit as st

from whitelab.base.progress import Progress, silent
from whitelab.base.wording import plain, quantity, ratio
from whitelab.encoding.embeddings import LayerEmbeddings
from whitelab.encoding.pooling import GIVEN
from whitelab.encoding.precomputed import Unpaired
from whitelab.figures import heights
from whitelab.scoring.fit_scopes import fit_scope
from whitelab.scoring.setting import EVERY, Setting
from whitelab.sweeps.layer_profiles import Shape
from whitelab.ui.frame.variants import LABELS
from whitelab.ui.results.jobs import wait
from whitelab.ui.results.scores import held_out, shape_of
from whitelab.ui.results.shelf import shelf
from whitelab.ui.results.study import study_job
from whitelab.ui.sections import space_views, take_away
from whitelab.ui.sidebar import own_data
from whitelab.ui.widgets.chart import data_under
from whitelab.ui.widgets.metric import Metric, headlines, number
from whitelab.ui.widgets.note import note
from whitelab.whitening import WHITENERS, of_rows, parse, variant

# What a matrix can do to them; maps that are trained on rows take minutes, which the command line has.
_MAPS = tuple(name for name in WHITENERS if name != "none" and not of_rows(name))


def draw(found: Unpaired, key: str, code: str) -> str:
    """Choose a map, see what it does, take it away. `key` tells these vectors from others in this session, `code` are
    the lines that read them as `space`, and what is returned those that print what is shown."""
    space = shelf().call(found.space, own_data.text_key(key))
    st.markdown(
        "Without pairs and their scores nothing can be ranked, so they cannot be the data of a page. How crowded they "
        "are can be seen, and a map fitted on all of them can be taken along."
    )
    note(*found.notes)
    try:
        setting = _chosen(space)
    except ValueError as error:  # a parameter that is beyond so few dimensions
        st.info(plain(str(error)))
        return ""
    title = f"Measuring {quantity(space.n_sentences, 'vector')}"
    job = study_job(_measured, space, setting, title=title, unit="measures", place="alone")
    measured = wait(job, key="alone", height=heights.table(3))
    if measured is None:
        return ""
    with data_under(space, setting):
        _seen(space, setting, *measured)
    take_away.of_vectors(space, setting, code)
    return (
        f"\n{code}for text in {(str(setting.raw), str(setting))!r}:\n"
        "    one = whitelab.shape(space, whitelab.Setting.parse(text))\n"
        "    print(text, one.mean_cosine, one.participation_ratio, one.rank, one.eigenvalues)\n"
    )


def _measured(
    space: LayerEmbeddings, setting: Setting, progress: Progress = silent
) -> tuple[Shape, Shape, float | None]:
    """The shape of the vectors raw and under the map, and the isotropy of those it was not fitted on."""
    found, wanted = [], ((shape_of, setting.raw), (shape_of, setting), (held_out, setting))
    for measure, one in wanted:
        progress(len(found), len(wanted))
        found.append(measure(space, one))
    return tuple(found)


def _seen(space: LayerEmbeddings, setting: Setting, raw: Shape, shaped: Shape, isotropy: float | None) -> None:
    """How crowded the vectors are, raw and under the map."""
    fitted = fit_scope(space, setting)
    headlines(
        Metric(
            "Mean cosine of two vectors",
            number(shaped.mean_cosine, 3),
            f"raw {number(raw.mean_cosine, 3)}",
            help="Near 1 all vectors point the same way, and near 0 in all directions.",
        ),
        Metric(
            "Directions that carry the variance",
            number(raw.participation_ratio, 1),
            f"raw, of d = {space.dim}",
            help="Participation ratio: in so many directions, all alike, raw vectors would vary as these do.",
        ),
        Metric(
            "Isotropy of unseen vectors",
            number(isotropy),
            "1 is round",
            help="IsoScore of each half of the vectors under the map of the other half, 0 to 1. Of the vectors it was "
            "fitted on any whitening makes it 1.",
        ),
        Metric(
            "Vectors per dimension",
            ratio(fitted.count / space.dim),
            f"rank {fitted.rank}",
            help="Fewer than about 10 and the weak directions of the covariance are mostly noise, which whitening "
            "amplifies.",
        ),
    )
    left, right = st.columns(2)
    with left:
        space_views.cosines(space, (setting.raw, setting), "vectors")
    with right:
        space_views.spectra(space, (setting.raw, setting))


def _chosen(space: LayerEmbeddings) -> Setting:
    """The setting of a map: variant, k and, where several were given, layer. Raises ValueError where d is too small
    for the variant."""
    left, middle, right = st.columns([2, 1, 1])
    with left:
        spec = st.selectbox("Map", _MAPS, index=_MAPS.index("pca"), format_func=LABELS.__getitem__, key="alone-map")
    with middle:
        k = st.number_input(
            "k, kept dimensions",
            1,
            space.dim,
            None,
            key=f"alone-k-{space.dim}",
            placeholder=f"all {space.dim}",
            disabled=not variant(spec).takes_k,
            help="The directions of the largest variance, the rest is cut off. Empty: every direction that varies.",
        )
    last = space.n_layers - 1
    with right:
        layer = last
        if last:
            layer = st.number_input(
                "Layer", 0, last, last, key=f"alone-layer-{last}", help="0 is the first layer given."
            )
    spec = str(parse(spec, space.dim))
    return Setting((layer,), spec, k=k if variant(spec).takes_k else None, fit=EVERY, pooling=GIVEN)
