"""The finding, layer by layer: every layer raw and whitened, and a sentence that says which gain."""

from collections.abc import Callable, Iterator, Sequence
from functools import partial

import streamlit as st

from whitelab import figures
from whitelab.base.wording import capitalised, layers_in_words
from whitelab.encoding.embeddings import LayerEmbeddings
from whitelab.figures import heights
from whitelab.scoring.paired import doubt
from whitelab.scoring.score import Score
from whitelab.scoring.setting import Setting
from whitelab.sweeps.layer_gains import LayerGain
from whitelab.ui.frame.variants import LABELS
from whitelab.ui.results.jobs import follow
from whitelab.ui.results.kept import kept
from whitelab.ui.results.memory import memory
from whitelab.ui.results.scores import layer_gains, number_of
from whitelab.ui.results.study import named, study_job
from whitelab.ui.sections.explanation import CONE, SMALL
from whitelab.ui.sidebar.workspace import take
from whitelab.ui.widgets.chart import chart, clicked
from whitelab.whitening import whitens

# What the change of a layer's score is; the last two as in `scoring.paired.VERDICTS`.
GAIN, LOSS, LEVEL, CHANCE, STARVED = "gain", "loss", "level", "chance", "starved"


def draw(space: LayerEmbeddings, setting: Setting, chosen: Sequence[int]) -> None:
    """Every layer alone under `setting` and raw; a click takes a layer into the workspace."""
    st.header("Which layers gain?")
    alone, now = setting.with_(layers=(0,)), number_of(space, setting)
    follow(
        study_job(layer_gains, space, alone, title="Scoring every layer", unit="layers", place="layer-gains"),
        lambda gains: _picture(space, setting, now, gains, chosen),
        key="layer-gains-part",
        caption=lambda gains: (
            "Each layer alone, before and after, with 95 % intervals. A click on a layer shows it on every page."
        ),
        room=heights.room(heights.TALL),
    )


def code(setting: Setting) -> str:
    """The lines that score every layer raw and under `setting` in Python."""
    return (
        f"*_, gains = whitelab.layer_gains(space, whitelab.Setting.parse({str(setting)!r}))\n"
        "for one in gains:  # the last where a third of the directions is kept, too\n"
        "    print(one.layer, one.mean_cosine, one.raw.spearman, one.whitened.spearman, one.cut and one.cut.spearman)\n"
    )


def finding(
    gains: Sequence[LayerGain], setting: Setting, against: Callable[[LayerGain, Score], str] = lambda gain, score: ""
) -> str:
    """Which layers gain and which lose, in a sentence made of the numbers, and why.

    `against` says what stands against a score's change from raw (`Doubt.verdict`): none such is a gain or a loss.
    """
    white = [_kind(gain, gain.whitened, against) for gain in gains]
    name = LABELS.inline(setting.whitening)
    name = f"On the sentences it is fitted on, {name}" if setting.fit == "task" and setting.fits else capitalised(name)
    at = f" with k = {setting.k}" if setting.k else ""
    words = [f"**{name}{at} {_split(gains, [gain.whitened for gain in gains], white)}.**"]
    if _cuts(gains):
        k, cut = gains[0].cut.setting.k, [_kind(gain, gain.cut, against) for gain in gains]
        words.append(
            f"Cut to k = {k}, a third of the dimensions as BERT-whitening cuts them, it "
            f"{_split(gains, [gain.cut for gain in gains], cut)}."
        )
        both = zip(gains, white, cut, strict=True)
        if rescued := [gain.layer for gain, *kinds in both if kinds == [LOSS, GAIN]]:
            words.append(
                f"In {_layers(rescued)} the cut turns the loss into a gain: there the weakest directions, as strong "
                "as the others after whitening, cost more than they add."
            )
    return " ".join([*words, *_cones(gains, white, whitens(setting.whitening))])


def _kind(gain: LayerGain, score: Score | None, against: Callable[[LayerGain, Score], str]) -> str:
    """What a score's change from raw is; empty where one of the two is not defined."""
    change, stands = gain.gain(score), against(gain, score) if score else ""
    if stands == STARVED:
        return STARVED
    if change is None:
        return ""
    return LEVEL if abs(change) <= SMALL else stands or (GAIN if change > 0 else LOSS)


def _cones(gains: Sequence[LayerGain], kinds: Sequence[str], whitened: bool) -> Iterator[str]:
    """How narrow the cones are, and that they alone do not decide it, where two layers show that."""
    widest, narrowest = min(gains, key=lambda gain: gain.mean_cosine), max(gains, key=lambda gain: gain.mean_cosine)
    if len(gains) < 2 or any(gain.mean_cosine != gain.mean_cosine for gain in gains):
        return
    cone = ", a narrow cone" if narrowest.mean_cosine >= CONE else ""
    most, least = (f"{gain.mean_cosine:.2f}" for gain in (narrowest, widest))
    where = f"in every layer{cone}"
    if most != least:
        where = f"in layer {narrowest.layer}{cone and cone + ','} and of {least} in layer {widest.layer}"
    yield f"Two random sentences have a mean cosine of {most} {where}."
    narrow = [(gain, kind) for gain, kind in zip(gains, kinds, strict=True) if gain.mean_cosine >= CONE]
    pairs = [(up, down) for up, rises in narrow for down, falls in narrow if (rises, falls) == (GAIN, LOSS)]
    if pairs and whitened and STARVED not in kinds:
        up, down = min(pairs, key=lambda pair: abs(pair[0].mean_cosine - pair[1].mean_cosine))
        yield (
            f"A cone alone does not decide it: layers {up.layer} and {down.layer} have {up.mean_cosine:.2f} and "
            f"{down.mean_cosine:.2f}, and layer {up.layer} gains where layer {down.layer} loses. Whitening also "
            "amplifies directions in which sentences differ little, meaning and noise alike."
        )


def _cuts(gains: Sequence[LayerGain]) -> bool:
    """Whether there is a cut, and it leaves out directions anywhere."""
    return any(gain.cut is not None and gain.cut.rank < gain.whitened.rank for gain in gains)


def _split(gains: Sequence[LayerGain], scores: Sequence[Score], kinds: Sequence[str]) -> str:
    every = list(zip(gains, scores, kinds, strict=True))

    def layers(kind: str) -> list[int]:
        return [gain.layer for gain, _, one in every if one == kind]

    parts = []
    for word, kind in (("gains", GAIN), ("loses", LOSS)):
        if there := layers(kind):
            most = max(abs(gain.gain(score)) for gain, score, one in every if one == kind)
            parts.append(f"{word} in {_layers(there)} (by {'up to ' * (len(there) > 1)}{most:.1f} points)")
    if there := layers(LEVEL):
        parts.append(f"changes little in {_layers(there)}")
    if there := layers(CHANCE):
        parts.append(f"may change the score by chance alone in {_layers(there)}")
    if there := layers(STARVED):
        parts.append(f"sets all sentences equally far apart in {_layers(there)}, where its score says nothing")
    parts = parts or ["has no score that is defined"]
    return ", ".join(parts[:-1]) + (" and " if len(parts) > 1 else "") + parts[-1]


def _layers(layers: Sequence[int]) -> str:
    """`layer 6`, `layers 0 to 5`, `layers 0, 2 and 4`."""
    if len(layers) == 1:
        return f"layer {layers[0]}"
    if len(layers) > 2 and list(layers) == list(range(layers[0], layers[-1] + 1)):
        return f"layers {layers[0]} to {layers[-1]}"
    return f"layers {', '.join(map(str, layers[:-1]))} and {layers[-1]}"


def rows(gains: Sequence[LayerGain]) -> list[dict]:
    """A record for each layer; without a cut that leaves nothing out, whose mark would lie under another."""
    cuts = _cuts(gains)
    scores = ({"raw": gain.raw, "whitened": gain.whitened, "cut": gain.cut if cuts else None} for gain in gains)
    return [
        {"layer": gain.layer, "mean_cosine": gain.mean_cosine}
        | {name: score and score.spearman for name, score in ends.items()}
        | {f"{name}_half_width_95": score and score.half_width for name, score in ends.items()}
        for gain, ends in zip(gains, scores, strict=True)
    ]


def above(gains: Sequence[LayerGain], now: Score) -> str:
    """That a layer scores higher raw than the setting at hand does, where one does."""
    raw = [gain for gain in gains if gain.raw.spearman is not None]
    if not raw or now.spearman is None:
        return ""
    top = max(raw, key=lambda gain: gain.raw.spearman)
    highest = top.raw.spearman
    if highest - now.spearman <= SMALL:
        return ""
    setting = now.setting
    at = f" with k = {setting.k}" if setting.k else ""
    marks = [score.spearman for gain in gains for score in (gain.whitened, gain.cut) if score is not None]
    most = " No mark here is higher." if all(mark is None or mark <= highest for mark in marks) else ""
    return (
        f"**Layer {top.layer} scores higher as it is: {highest:.2f} raw, against {now.spearman:.2f} for "
        f"{layers_in_words(setting.layers)} under {LABELS.inline(setting.whitening)}{at}.**{most}"
    )


def _picture(
    space: LayerEmbeddings, setting: Setting, now: Score, gains: Sequence[LayerGain], chosen: Sequence[int]
) -> None:
    cut = gains[0].cut if _cuts(gains) else None
    names = {"raw": "Raw", "whitened": LABELS.at(setting), "cut": f"cut to k = {cut.setting.k}" if cut else ""}
    selected = tuple(chosen) if len(chosen) == 1 else ()
    figure = kept(
        "layer-gains",
        (tuple(gains), selected, names["whitened"]),
        lambda: figures.layer_dumbbells(rows(gains), names, setting.whitening, space.n_layers, selected),
    )
    chart(figure, "layer-gains", lambda: rows(gains), on_select=lambda: take(clicked("layer-gains")))
    heard = partial(against, space)
    with st.container(key="said-gains"):
        st.markdown(kept("layer-gains-said", (tuple(gains), setting), lambda: finding(gains, setting, heard)))
        st.markdown(above(gains, now))


def against(space: LayerEmbeddings, gain: LayerGain, score: Score) -> str:
    """What stands against a score's change from raw, of every layer by the same test."""
    name = named((space, gain.raw.setting, score.setting))
    return memory().made(("against", name), lambda: _tested(space, gain, score))


def _tested(space: LayerEmbeddings, gain: LayerGain, score: Score) -> str:
    """Of scores at hand: what is asked for anew would have maps fitted to rows fitted for their isotropy."""
    if score.spearman is None:
        return "starved" if score.starved else ""
    found = doubt(space, score, gain.raw)
    return found.verdict(score.spearman, score.rank) if found else ""
