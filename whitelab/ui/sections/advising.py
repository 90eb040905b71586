"""Asking for advice on a page: what the vectors are for, by which data, and the answer with its evidence."""

import math
from dataclasses import asdict, dataclass

import streamlit as st
import torch

from whitelab import figures
from whitelab.advice import (
    PURPOSES,
    SERVED,
    Advice,
    Evidence,
    Option,
    advise_pairs,
    advise_search,
    advise_sentences,
    advise_texts,
    kept_as,
)
from whitelab.base import upload_limits
from whitelab.base.progress import Progress
from whitelab.base.wording import bare, capitalised, layers_in_words, plain, quantity, spaced
from whitelab.encoding.embed import embed
from whitelab.encoding.embeddings import LayerRows
from whitelab.figures import heights
from whitelab.retrieval.compression import Code
from whitelab.scoring.calibration import Threshold, gold_middle
from whitelab.scoring.paired import settled
from whitelab.scoring.setting import Setting
from whitelab.ui.frame.recipe import pooling
from whitelab.ui.frame.variants import LABELS
from whitelab.ui.results.shelf import shelved
from whitelab.ui.results.study import study_job
from whitelab.ui.results.worker import Job
from whitelab.ui.sections import labelled_texts, probing, rankings, retrieval_sets
from whitelab.ui.sidebar import own_data, workspace
from whitelab.ui.sidebar.opening import Opened
from whitelab.ui.sidebar.workspace import Workspace
from whitelab.ui.widgets.address import linked
from whitelab.ui.widgets.chart import chart, data_of, rounded_table
from whitelab.ui.widgets.choice import choice
from whitelab.ui.widgets.metric import Metric, headlines, number
from whitelab.ui.widgets.verdict import interval
from whitelab.whitening import canonical

JUDGED_BY = {
    "pairs": "Pairs with gold scores",
    "search": "A search set with judgements",
    "texts": "Labelled texts",
    "sentences": "Sentences alone",
}
SHOWN = 10  # options of the picture; the table has all
PRINTED = """print(advice.setting, *advice.sentences, sep='\\n')
for one in advice.evidence.options if advice.evidence else ():
    print(one.setting, one.code, one.size, one.score, (one.low, one.high), one.difference)
    print("corrected for all options:", one.p_holm, one.verdict)
if advice.evidence:
    print(advice.evidence.line)
if advice.threshold:
    print(advice.threshold)
"""
# Of what is to store: `vectors` as advised, from a `space` with the `setting` whose map is that of all texts.
KEPT = """if str(advice.code) != 'float32':
    from whitelab.retrieval.compression import Coder
    from whitelab.retrieval.search_cost import unit_rows
    from whitelab.scoring.fit_scopes import fit_scope

    vectors = unit_rows(fit_scope({space}, {setting}).transform().numpy()){rows}
    coder = Coder(advice.code, vectors)
    stored = coder.codes(vectors)  # keep these and, by faiss.write_index, coder.index; queries stay in float32
    print(stored.shape)
"""
_TITLE = {"title": "Measuring options", "unit": "%", "place": "advice"}


@dataclass(frozen=True)
class Question:
    """A job that finds the advice, and the lines of code that find it too."""

    job: Job
    code: str


def ask(chosen: Workspace, opened: Opened) -> Question | None:
    """What the vectors are for and what decides; None after saying or drawing what is missing."""
    purpose = choice(
        "What are the vectors for?", PURPOSES, key="purpose", bind="query-params", format_func=PURPOSES.get
    )
    kinds = [kind for kind, served in SERVED.items() if purpose in served and (kind == "pairs" or not chosen.given)]
    if not kinds:
        st.info("Vectors come without a model that could embed other texts: choose other data in the bar.")
        return None
    kind = choice(
        "Judged by",
        kinds,
        key=f"judged-{'-'.join(kinds)}",
        bind="query-params",
        format_func=lambda kind: (
            f"{JUDGED_BY[kind]}: {plain(opened.pairs.task)}" if kind == "pairs" else JUDGED_BY[kind]
        ),
        help="The pairs are those of the bar. Sentences alone cannot say what is best, and what they can say is said.",
    )
    if kind == "pairs":
        return _pairs(chosen, opened, purpose)
    return {"search": _search, "texts": _texts, "sentences": _sentences}[kind](chosen, purpose)


def _pairs(chosen: Workspace, opened: Opened, purpose: str) -> Question:
    gold_from, words = None, ""
    if purpose == "threshold":
        gold = opened.space.gold
        low, high = float(gold.min()), float(gold.max())
        if low < high:
            ends = low, high, gold_middle(gold)
            help = (
                "What people must have given a pair for its texts to count as the same; half-way at first. From 0 to 5 "
                "half-way means related, and 4 nearly the same."
            )
            gold_from = st.slider("The same from a gold score of", *ends, help=help, **linked("gold-from", ends[-1]))
            words = f", gold_from={gold_from!r}"
    job = study_job(advise_pairs, opened.space, _asked(chosen.setting), purpose, gold_from, **_TITLE)
    code = f"advice = whitelab.advise_pairs(space, setting, {purpose!r}{words})\n"
    if purpose == "store":
        whole = "advice.setting" if chosen.setting.fits_other_text else "advice.setting.with_(fit='task')"
        code += KEPT.format(space="space", setting=whole, rows="")
    return Question(job, code)


def _asked(setting: Setting) -> Setting:
    """What advice takes of the bar's setting: layers, pooling, aggregate, and other text to fit on."""
    return setting if setting.whitening == "none" else setting.with_(whitening="pca", k=None)


def _search(chosen: Workspace, purpose: str) -> Question | None:
    data = retrieval_sets.choose(chosen.encoder().files)
    space = data and rankings.embedded(chosen, data)
    if space is None:
        return None
    job = study_job(advise_search, space, _asked(chosen.setting), purpose, **_TITLE)
    code = (
        f"search, _ = whitelab.embed_retrieval(whitelab.for_documents(encoder), {retrieval_sets.code(data)}"
        f"{pooling(chosen)})\nadvice = whitelab.advise_search(search, setting, {purpose!r})\n"
    )
    if purpose == "store":
        code += KEPT.format(space="search.space", setting="advice.setting", rows="[search.documents]")
    return Question(job, code)


def _texts(chosen: Workspace, purpose: str) -> Question | None:
    data = labelled_texts.choose()
    texts = data and probing.open_texts(chosen, data)
    if texts is None:
        return None
    if purpose == "cluster" and data.pairs:
        st.info("Pairs of texts are not grouped: choose labels of single texts.")
        return None
    job = study_job(_advise_texts, texts, _asked(chosen.setting), purpose, **_TITLE)
    code = (
        f"from whitelab.probe import embed_texts\n\ndata = {labelled_texts.code(data)}\n"
        f"texts, report = embed_texts(encoder, data{pooling(chosen)}, store=whitelab.Store())\n"
        f"advice = whitelab.advise_texts(texts, data, setting, {purpose!r}, encoder.name)\n"
    )
    return Question(job, code)


def _advise_texts(texts: probing.Texts, setting: Setting, purpose: str, progress: Progress) -> Advice:
    return advise_texts(texts.space, texts.data, setting, purpose, texts.model, progress)


def _sentences(chosen: Workspace, purpose: str) -> Question | None:
    typed = st.text_area(
        "Sentences, one a line",
        key="advice-sentences",
        persist_state="session",  # also while something else judges, or another page is open
        max_chars=upload_limits.PASTED,
        placeholder="Paste the texts you want to embed, one a line",
    )
    sentences = tuple(dict.fromkeys(line.strip() for line in typed.split("\n") if line.strip()))
    if len(sentences) < 4:
        st.info(
            f"Paste four different sentences or more. The box takes {spaced(upload_limits.PASTED)} characters, and "
            "nothing of a longer text."
        )
        return None
    name = "/".join(("sentences", *chosen.embeds_by, own_data.text_key(str(hash(sentences)))))

    def work(progress: Progress) -> LayerRows:
        values, _ = embed(chosen.encoder(), sentences, chosen.setting.pooling, progress=progress)
        return LayerRows(values, torch.ones(len(sentences), dtype=torch.float64))

    rows = shelved(name, f"Embedding {quantity(len(sentences), 'sentence')}", work, "tokens", key="advice-embed")
    if rows is None:
        return None
    code = (
        "import torch\n\nfrom whitelab.datasets import load_text\n\n"
        "sentences = list(dict.fromkeys(load_text('pasted sentences')))  # what you pasted, in a file of that name\n"
        f"values, _ = whitelab.embed(encoder, sentences{pooling(chosen)})\n"
        "rows = whitelab.LayerRows(values, torch.ones(len(sentences)))\n"
        f"advice = whitelab.advise_sentences(rows, {purpose!r})\n"
    )
    job = study_job(_advise_sentences, rows, purpose, **_TITLE)
    return Question(job, code)


def _advise_sentences(rows: LayerRows, purpose: str, progress: Progress) -> Advice:
    return advise_sentences(rows, purpose)


# ---------------------------------------------------------------------------------------------------- the answer


def tried_on(advice: Advice) -> str:
    """What was tried, and on what maps were fitted where pairs judge them."""
    evidence = advice.evidence
    if evidence is None:
        return ""
    where = dict.fromkeys(layers_in_words(option.setting.layers) for option in evidence.options)
    *most, last = where
    tried = f"Tried on {', '.join(most)} and {last}" if most else f"Tried on {last}"
    apart = evidence.unit == "pairs" and evidence.protocol["fit"] == "cross"
    fitted = " Every map was fitted on other sentences than those of the pairs it scores." if apart else ""
    now = workspace.current().setting
    here = any(_told(option.setting) == _told(now) for option in evidence.options)
    bar = "the bar's setting among them" if here else f"the bar's layers among them, not its {LABELS.card(now)}"
    return f"{tried}, {bar}.{fitted}"


def _told(setting: Setting) -> tuple:
    """What of a setting tells it from other options."""
    return setting.layers, canonical(setting.whitening), setting.k


def draw(advice: Advice) -> None:
    """The three sentences, the options that matter as a picture, all of them as a table."""
    say = st.success if advice.decided else st.warning
    first, *rest = advice.sentences
    rest += [f"{advice.cosine} For other rates: *What a cosine means* on the page Anisotropy."] if advice.cosine else []
    rest += [f"{advice.keeping} *Show the code* has the lines."] if advice.keeping else []
    say("\n\n".join([f"**{first}**", *rest]), icon=":material/check:" if advice.decided else ":material/balance:")
    evidence = advice.evidence
    if evidence is None:
        return
    _of_what_judged(evidence)
    if advice.decided and advice.setting.pooling != "given":
        _use(advice)
    advised = next((one for one in evidence.options if _is_advised(one, advice)), evidence.best)
    moved, which = advised.difference, "advised" if advice.decided else "best option"
    headlines(
        Metric(
            f"{evidence.metric}, {which}",
            number(advised.score),
            None if advised is evidence.baseline else f"{moved.estimate:+.2f} against the model",
            help="Below it its difference from the model as it comes.",
            description=None if advised is evidence.baseline else f"95 %: {interval(moved.low, moved.high, '+')}",
        ),
        Metric("The model as it comes", number(evidence.baseline.score)),
        Metric(f"Bytes a vector, {which}", spaced(advised.size), f"of {spaced(evidence.baseline.size)}"),
        *([_threshold(advice.threshold)] if advice.threshold else []),
    )
    ranked = sorted(evidence.options, key=lambda option: -option.score)
    kept = [one for one in evidence.options if _is_advised(one, advice) or one is evidence.baseline]
    kept += [one for one in ranked if one not in kept][: SHOWN - len(kept)]
    rows = [_row(one, advice) for one in sorted(kept, key=lambda option: -option.score)]
    chart(
        figures.option_dots(rows, evidence.metric, evidence.baseline.score),
        "options",
        lambda: _records(advice),
    )
    st.caption(
        "The dashed line is the model as it comes. An open dot's difference from it could be chance: all options are "
        "tested together (Holm 1979)."
    )
    with st.expander(f"All {len(ranked)} options"):
        rounded_table(
            [_cells(one) for one in ranked],
            {"Score": st.column_config.NumberColumn(format="%.2f")},
            printed={"Bytes a vector": spaced},
            alt="All options with score, test and bytes a vector, the highest score first",
            height=heights.table(min(len(ranked), 16)),
            placeholder="",
        )
    st.markdown(f":small[:gray[{plain(evidence.line)}]]")


def _of_what_judged(evidence: Evidence) -> None:
    """Say of the page's data what the options were measured on."""
    record = evidence.protocol
    made = {name: record[name] for name in ("model", "task", "split") if name in record}
    cut = {"gold_from": f"{record['gold_from']:g}"} if "gold_from" in record else {}
    data_of(**made, judged_by=f"{evidence.count} {evidence.unit}", **cut)


def _use(advice: Advice) -> None:
    """The button that moves the bar to the advised setting, and what the bar does not have."""
    here, now = advice.setting, workspace.current().setting
    there = _told(now) == _told(here)
    words = "The bar has it" if there else "Use it in the bar"
    st.button(words, key="use-advice", disabled=there, on_click=workspace.put, args=(here,))
    if advice.code != Code():
        st.caption("The bar computes with float32: what bits cost stands on the page Whitening, *Store in fewer bits*.")


def _threshold(cut: Threshold) -> Metric:
    """From which cosine on two texts are the same."""
    return Metric(
        "The same above a cosine of",
        number(cut.cosine, 4),
        f"95 %: {number(cut.low, 4)} to {number(cut.high, 4)}",
        help="Under the vectors advised, or the model as it comes where nothing is decided.",
        description=f"finds {100 * cut.recall:.1f} % of the pairs of gold {cut.cut:g} or more",
    )


def _records(advice: Advice) -> list[dict]:
    """Every option as a row of data, with the cosine that calls two texts the same in the row of which it is."""
    evidence = advice.evidence
    named = {"metric": evidence.metric, "purpose": advice.purpose}
    rows = [one.as_dict() | named for one in evidence.options]
    if cut := advice.threshold:
        of = [one.setting for one in evidence.options].index(advice.setting or evidence.baseline.setting)
        rows[of] |= {f"threshold_{name}": value for name, value in asdict(cut).items()}
    return rows


def _row(option: Option, advice: Advice) -> dict:
    return {
        "label": _short(option),
        "whitening": option.setting.whitening,
        "score": option.score,
        "low": option.low,
        "high": option.high,
        "settled": settled(option.verdict),
        "best": _is_advised(option, advice),
    }


def _short(option: Option) -> str:
    """`PCA whitening, layers 1 + 6, k = 96, int8`."""
    setting = option.setting
    parts = [LABELS[setting.whitening], layers_in_words(setting.layers)]
    parts += [f"k = {setting.k}"] if setting.k else []
    parts += [option.code.label] if option.code != Code() else []
    return ", ".join(parts)


def _is_advised(option: Option, advice: Advice) -> bool:
    return (option.setting, option.code) == (advice.setting, advice.code)


def _cells(option: Option) -> dict:
    found, tested = option.difference, not math.isnan(option.p_holm)  # the baseline is not tested against itself
    return {
        "Option": capitalised(kept_as(option)),
        "Score": option.score,
        "95 %": f"{option.low:.2f} to {option.high:.2f}",
        "Against raw": f"{found.estimate:+.2f} ({found.low:+.2f} to {found.high:+.2f})" if tested else None,
        "p, corrected": bare(option.p_words) if tested else None,
        "Bytes a vector": option.size,
    }
