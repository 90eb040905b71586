"""How alike every two layers are, of one model or of two, raw and under the variant, as two maps on one scale."""

import streamlit as st
from torch import Tensor

from whitelab import figures
from whitelab.encoding.checkpoints import on_disk
from whitelab.encoding.embeddings import LayerEmbeddings
from whitelab.figures import heights
from whitelab.scoring.setting import Setting
from whitelab.sweeps.layer_measures import layer_similarity
from whitelab.ui.frame.recipe import fitting, opening
from whitelab.ui.frame.variants import LABELS
from whitelab.ui.results.jobs import wait
from whitelab.ui.results.study import study_job
from whitelab.ui.sidebar import model, workspace
from whitelab.ui.sidebar.opening import Opened, beside, open_space
from whitelab.ui.sidebar.workspace import Workspace
from whitelab.ui.widgets.address import linked
from whitelab.ui.widgets.chart import chart

_ITSELF = "itself"


def draw(opened: Opened, compared: Setting) -> str:
    """Both maps, with the same model or another; a setting's own layers do not count. The lines that give them in
    Python, where there are any."""
    chosen = workspace.current()
    name = _ITSELF if chosen.given else _with(chosen)
    other, opening_other = None, ""
    if name != _ITSELF:
        picked = model.opened(name, chosen.data)
        there = picked and beside(chosen, picked)
        opened_there = there and open_space(there)
        if opened_there is None:
            return ""
        other = opened_there.space
        opening_other = f"own = space\n{opening(there)}{fitting(there)}other, space = space, own\n"
    for column, (place, setting) in zip(st.columns(2), (("raw", compared.raw), ("mapped", compared)), strict=True):
        with column:
            _map(opened.space, setting.with_(layers=(0,)), other, place)
    st.caption(
        "Linear CKA (Kornblith et al. 2019) over the unique sentences, debiased (Song et al. 2012): 1 where two layers "
        "differ by a rotation and a scale only, about 0 where they are unrelated, and undefined where a map sets all "
        "sentences equally far apart. It weighs directions by their variance squared, so raw it is about the few "
        "largest; whitened, every direction counts the same."
    )
    settings = tuple(dict.fromkeys(str(one.with_(layers=(0,))) for one in (compared.raw, compared)))
    return (
        f"{opening_other}for text in {settings!r}:\n"
        f"    cka = whitelab.layer_similarity(space, whitelab.Setting.parse(text){', other' * (other is not None)})\n"
        "    print(text, cka.tolist())\n"
    )


def _with(chosen: Workspace) -> str:
    """What this model's layers are held against."""
    names = [name for name in model.options() if name != chosen.model.name and on_disk(name)]

    def shown(name: str) -> str:
        return "The same model" if name == _ITSELF else model.label(name)

    return st.selectbox(
        "Compared with",
        [_ITSELF, *names],
        **linked("alike", _ITSELF, shown),
        format_func=shown,
        help="The layers of another model on the same sentences. Models that are on this machine are listed.",
    )


def _map(space: LayerEmbeddings, setting: Setting, other: LayerEmbeddings | None, place: str) -> None:
    st.markdown(f"**{LABELS.at(setting)}**")
    job = study_job(
        layer_similarity, space, setting, other, title="Comparing layers", unit="pairs", place=f"cka-{place}"
    )
    cka = wait(job, key=f"cka-{place}-wait", height=heights.room(heights.PAIRS))
    if cka is not None:
        against = other and other.origin.model
        chart(figures.similarity(cka, LABELS.at(setting), against), f"cka-{place}", lambda: _rows(cka, setting, other))


def _rows(cka: Tensor, setting: Setting, other: LayerEmbeddings | None) -> list[dict]:
    made = {"whitening": setting.whitening, "k": setting.k} | ({"against": other.origin.model} if other else {})
    return [
        {"layer_i": i, "layer_j": j, "cka": value} | made
        for i, row in enumerate(cka.tolist())
        for j, value in enumerate(row)
    ]
