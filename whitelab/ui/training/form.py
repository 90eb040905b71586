"""What to train: objective, start, sentences, what it is scored on, and what that will take."""

import json
import math
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import replace
from itertools import cycle

import streamlit as st

from whitelab import datasets
from whitelab.base.wording import plain, quantity, spaced
from whitelab.datasets import BUNDLED_SETS, DataError, SentencePairs, TaskInfo, Upload
from whitelab.datasets.layouts import MEMORY, file_at
from whitelab.encoding.catalogue import Size, guess_tokens
from whitelab.encoding.checkpoints import ModelFiles, on_disk
from whitelab.encoding.names import BUNDLED, ONE_LAYER, ModelError, ModelName, allowed
from whitelab.scoring.fit_text import scope_text
from whitelab.statistics.geometry import usual_positives
from whitelab.training import TrainConfig, costs, objectives, start_files
from whitelab.training.config import BATCH
from whitelab.training.objectives import OBJECTIVES
from whitelab.ui.results.files import file_stamp
from whitelab.ui.results.kept import kept
from whitelab.ui.results.study import remembered
from whitelab.ui.sidebar import data as bar
from whitelab.ui.sidebar import knobs, model, own_data
from whitelab.ui.sidebar.data import TITLES, pairs_of, tokens_of
from whitelab.ui.sidebar.own_data import UPLOADED, OwnData
from whitelab.ui.training.background import Entry
from whitelab.ui.training.request import Corpus, Scored, Text, TrainingPlan
from whitelab.ui.widgets import address, asking
from whitelab.ui.widgets.note import note
from whitelab.ui.widgets.typed import typed_choice, typed_data
from whitelab.ui.widgets.uploader import TEXT, TEXT_READ, how_read, uploader

EVERY = "All tasks"
KEPT = "The run keeps a copy on this machine to be resumed from; the name of your file stays with you."

_START = "start-download"  # what is asked for: a start that is not here yet
_MOST = 1_000_000  # that a number may be
OWN = "own"  # the visitor's upload, as sentences or as pairs to score on
BAR = "bar"  # what the bar has, as pairs to score on
_DATA_NAMES = TITLES | {UPLOADED: "Uploaded text file", OWN: own_data.LABEL, BAR: "The data of the bar"}


def draw(known: Sequence[Entry]) -> TrainingPlan | None:
    """The controls; None after saying what is missing. `known` are the runs there are, for the pace of steps."""
    first = st.columns(4)
    with first[0], address.spelt("objective", OBJECTIVES, _title):
        objective = st.selectbox(
            "Objective",
            list(OBJECTIVES),
            **address.linked("objective", next(iter(OBJECTIVES)), _title),
            format_func=_title,
            help="What the encoder is trained for, without labels.",
        )
    objective = objective or next(iter(OBJECTIVES))
    with first[1]:
        size, model = _start()
    with first[2]:
        corpus = _corpus()
        if corpus is not None and corpus.text.note:
            note(corpus.text.note)
    with first[3]:
        scored = _scored()
    departs = OBJECTIVES[objective].departs
    st.caption(OBJECTIVES[objective].summary, help=f"Where it differs: {departs}" if departs else None)
    if size is None:
        return None
    with st.expander(f"Parameters of {_title(objective)}", icon=":material/tune:"):
        spec = knobs.spec(
            objective, OBJECTIVES[objective].parameters, objectives.canonical, size.dim, cycle(st.columns(4))
        )
    specs = (spec, *_beside(objective))
    settings = _numbers(specs, size)
    if corpus is None or scored is None:
        return None
    corpus = _apart(corpus, scored)
    try:
        settings |= {
            "model": model,
            "corpus": corpus.name,
            "evaluation": f"{scored.name} ({quantity(scored.pairs.n_pairs, 'pair')})",
            "positives": usual_positives(scored.pairs.gold),
        }
        configs = tuple(TrainConfig(objective=one, **settings) for one in specs)
        if corpus.text.unique < settings["batch"]:
            raise ValueError(
                f"batch={settings['batch']} must be at most the {corpus.text.unique} unique sentences there are to "
                "train on"
            )
        for one in specs:
            _check(one, settings["batch"], size.dim)
    except ValueError as error:
        st.error(plain(str(error)))
        return None
    past = [(entry.name, entry.summary.config, lambda entry=entry: entry.records) for entry in known]
    text = corpus.text
    found = (costs.paced_cost(one, size, text.tokens, scored.tokens, text.unique, past) for one in configs)
    return TrainingPlan(configs, corpus, scored, tuple(found))


# ------------------------------------------------------------------------------------------------ the controls


def _title(objective: str) -> str:
    return OBJECTIVES[objective].label


def starts() -> list[str]:
    """What training may start from, the first of which is the default."""
    names = (f"{BUNDLED}:3", BUNDLED, f"random:{BUNDLED}:3", *model.options())
    kinds = {name: ModelName.parse(name).kind for name in names}
    return [name for name in kinds if allowed(name) and kinds[name] not in ONE_LAYER]


def _start() -> tuple[Size | None, str]:
    """The encoder to start from: its size, None where it cannot be had, and its name."""
    names = starts()
    shown = model.labelled(names)
    name = typed_choice(
        "Start",
        names,
        found=model.recognised,
        **address.linked("start", names[0], shown),
        format_func=shown,
        help="The bundled model cut to its first 3 layers is a raw encoder that training visibly improves. Type a "
        "Hugging Face name or the path of a folder to start from another.",
    )
    name = name or f"{BUNDLED}:3"
    try:
        files = _files(name)
    except ModelError as error:
        st.error(plain(str(error)))
        return None, name
    if files is None:
        return None, name
    if files.kind in ONE_LAYER:
        st.error(f"{plain(name)} cannot be trained: it is {ONE_LAYER[files.kind]}.")
        return None, name
    if files.blocks is not None and not 1 <= files.blocks <= files.layers:
        st.error(f"{plain(name)} must keep between 1 and {files.layers} layers.")
        return None, name
    try:
        return Size.of(json.loads((files.folder / "config.json").read_text("utf-8"))).cut_to(files.blocks), name
    except ValueError as error:
        st.error(f"{plain(name)} cannot be trained: {plain(str(error))}.")
        return None, name


def _files(name: str) -> ModelFiles | None:
    """The files of a start, downloaded only on request; None while they are not there. Raises ModelError."""
    if not on_disk(name) and not asking.asked(_START, name):
        st.caption("This model is not on this machine yet.")
        asking.button("Download it", _START, name, "download")
        return None
    return model.find(name, "find-start", start_files)


def _corpus() -> Corpus | None:
    words = (
        f"What is trained on, at most {TrainConfig.max_length} tokens of each; labels are never used. Type a path: a "
        ".txt with one sentence a line, or a file or folder of pairs, triplets or texts."
    )
    data = typed_data("Sentences", "corpus", [*BUNDLED_SETS, *_own_name(), UPLOADED], _DATA_NAMES, words)
    if data in (OWN, own_data.LABEL):
        own = _own()
        if own is None:
            return None
        text = kept("training-own", own.key, lambda: Text(own.pairs.sentences))
        st.caption(KEPT)
        return Corpus("an upload", text, f"{own.code}\nsentences = pairs.sentences\n")
    if data in (UPLOADED, _DATA_NAMES[UPLOADED]):
        return _uploaded()
    try:
        file, task = file_at(data), EVERY
        files = [file]
        if file is None or file.suffix.lower() != ".txt":
            tasks = {one.name: one for one in datasets.discover(data)}
            files = [file for one in tasks.values() for file in one.files]
            options = [EVERY, *tasks] if len(tasks) > 1 else [EVERY]
            task = address.one_of("Of the task", options, "corpus-task", EVERY)
        scope, name, path = (data, data, None), data, data
        if task != EVERY:
            scope, name, path = ("splits", data, task), f"{data}, {task}", ""
        code = f"sentences = tuple(whitelab.scope_text{scope})\n"
        return Corpus(name, _sentences(scope, file_stamp(files)), code, path)
    except DataError as error:
        st.error(plain(str(error)))
        return None


@remembered()
def _sentences(scope: tuple[str, str, str | None], stamp: str) -> Text:
    """The sentences of a text file, a task or all tasks; `stamp` is that of the files."""
    return Text(tuple(scope_text(*scope)))


def _uploaded() -> Corpus | None:
    files = uploader("Text to train on", TEXT, "corpus-file", help=f"{TEXT_READ} {KEPT}")
    if not files:
        st.caption("Choose a file to train on its sentences.")
        return None
    (file,) = files
    upload = Upload(file.name, file.getvalue())
    try:
        found = kept("training-sentences", file.file_id, lambda: datasets.read_sentences(upload, keep_going=True))
    except DataError as error:
        st.error(plain(str(error)))
        return None
    if how := how_read(found):
        st.caption(f"{quantity(len(found.text), 'sentence')}{how}.")
    text = kept("training-text", file.file_id, lambda: Text(found.text))
    name = repr(file.name)
    code = f"sentences = tuple(whitelab.scope_text({name}, {name}, None, keep_going=True))  # your file, by its path\n"
    return Corpus("an uploaded text", text, code)


def _scored() -> Scored | None:
    words = (
        "Pairs with gold similarity that say how good the space is, and which step is kept as the model: of the bar's "
        "task those of its dev split, where it has one. Type the path of a folder or file for others."
    )
    data = typed_data("Scored on", "scored", [BAR, *BUNDLED_SETS, *_own_name()], _DATA_NAMES, words)
    here = None
    if data in (BAR, _DATA_NAMES[BAR]):
        here = bar.current()
        upload = here is not None and here.info.layout == MEMORY
        if here is None or (upload and not _own_name()):
            st.info("The bar has no sentences to score on. Choose pairs here.", icon=":material/link_off:")
            return None
        data = OWN if upload else here.source
    if data in (OWN, own_data.LABEL):
        return _scored_own()
    try:
        task = here.info if here else _task_scored_on(data)
        usual = next((one for one in ("dev", "test") if one in task.splits), task.splits[0])
        split = address.one_of("Split scored on", task.splits, "scored-split", usual)  # decides which step is kept
        asked = (data, task.name, split, True, file_stamp(task.files))
        pairs = pairs_of(*asked)
    except DataError as error:
        st.error(plain(str(error)))
        return None
    note(*pairs.notes)
    return Scored.of(data, task.name, split, pairs, tokens_of(*asked)[0])


def _task_scored_on(data: str) -> TaskInfo:
    tasks = {one.name: one for one in datasets.discover(data)}
    return tasks[address.one_of("Task scored on", tasks, "scored-task", next(iter(tasks)))]


def _scored_own() -> Scored | None:
    own = _own()
    if own is None:
        return None
    st.caption(KEPT)
    note(*own.pairs.notes)
    tokens = kept("tokens-own", own.key, lambda: guess_tokens(own.pairs.sentences))
    pairs = _unnamed(own.pairs)
    # Runs of two uploads are told apart by what these hold: a name of its own would say whose it is.
    return Scored(pairs, f"upload {pairs.fingerprint[:6]}", f"{own.code}\nscored = pairs\n", (), tokens)


def _unnamed(pairs: SentencePairs) -> SentencePairs:
    """The same where no file is named: what a run keeps lies where all visitors' runs do."""
    subsets = pairs.subset_names if len(pairs.subset_names) > 1 else ("upload",)
    return replace(pairs, task="upload", source="an upload", subset_names=subsets)


def _own_name() -> tuple[str, ...]:
    """The visitor's upload among what can be chosen, where there is one with sentences."""
    own = own_data.current()
    return (OWN,) if own is not None and own.vectors is None else ()


def _own() -> OwnData | None:
    """The visitor's upload; None after saying that there is none."""
    if not _own_name():
        st.info(
            "There is no upload of sentences in this session. Bring it on the Data page.", icon=":material/link_off:"
        )
        return None
    return own_data.current()


def _apart(corpus: Corpus, scored: Scored) -> Corpus:
    """The corpus, on request without the sentences it is scored on; says how many there are."""
    asked = (corpus.text, scored.pairs.fingerprint)
    rest = kept("corpus-apart", asked, lambda: corpus.text.without(scored.pairs))
    if rest is corpus.text:
        return corpus
    both = len(corpus.sentences) - len(rest.sentences)
    shared = f"{spaced(both)} of {spaced(len(corpus.sentences))} sentences are among those scored"
    if not rest.sentences:
        st.caption(f"{shared}. No label is used, but on pairs it has not read the model may do worse.")
        return corpus
    if not st.toggle(f"Leave out what is scored ({quantity(both, 'sentence')})", **address.linked("apart", False)):
        st.caption(f"{shared}, without their labels.")
        return corpus
    code = corpus.code + "sentences = [one for one in sentences if one not in set(scored.sentences)]\n"
    return Corpus(f"{corpus.name}, without what is scored", rest, code)


def _beside(objective: str) -> list[str]:
    """Specs of more objectives to train on equal terms, with their usual parameters."""
    found = st.multiselect(
        "Also train",
        [name for name in OBJECTIVES if name != objective],
        **address.linked("beside", [], _title),
        format_func=_title,
        placeholder="More objectives to compare with",
        help="Each is a run of its own with the objective's usual parameters; start, sentences, steps, batch, rate and "
        "seed are those of this form.",
    )
    return [objectives.canonical(name) for name in found]


def _numbers(specs: Sequence[str], size: Size) -> dict:
    """Steps, batch, rate, seed, how often it is scored."""
    steps, batch, rate, seed, every = st.columns(5)
    warm = f"How far a step moves the weights: it climbs to this over the first {TrainConfig.warmup} steps, then falls"
    often = "Steps from one evaluation to the next; 0 for the start and the end only."
    once = "Each takes one batch and changes the weights once."
    usual = {"steps": TrainConfig.steps, "rate": TrainConfig.lr, "seed": 0, "every": TrainConfig.eval_every}
    linked = {key: address.linked(key, default) for key, default in usual.items()}
    return {
        "steps": steps.number_input("Steps", 1, _MOST, TrainConfig.steps, 10, help=once, **linked["steps"]),
        "batch": _batch(batch, specs, size),
        "lr": rate.number_input(
            *("Learning rate", 1e-9, 1.0, TrainConfig.lr, 1e-5),
            format="%.1e", help=f"{warm} towards 0 at the end.", **linked["rate"],
        ),
        "seed": seed.number_input(
            "Seed", 0, _MOST, 0, help="Decides batches, dropout and heads.", **linked["seed"]
        ),
        "eval_every": every.number_input(
            "Scored every", 0, _MOST, TrainConfig.eval_every, 5, help=often, **linked["every"]
        ),
    }  # fmt: skip


def _batch(place, specs: Sequence[str], size: Size) -> int:
    """A batch that every objective takes: whitening wants whole sub-batches."""
    least = max(_least(one, size.dim) for one in specs)
    whole = math.lcm(*(objectives.objective(one).multiple(one) for one in specs))
    names = " and ".join(objectives.objective(one).label for one in specs)
    takes = "takes" if len(specs) == 1 else "take"

    def taken(batch: int) -> int:
        return max(-(-batch // whole) * whole, least)

    now = st.session_state.get("batch", _asked("batch"))
    if isinstance(now, int) and (raised := taken(now)) != now:
        st.caption(f"The batch was raised from {now} to {raised}, the next that {names} {takes}.")
        st.session_state["batch"] = raised
    batch = place.number_input(
        "Batch, sentences",
        least,
        _MOST // whole * whole,
        taken(BATCH),
        whole if whole > 1 else 16,
        **address.linked("batch", taken(BATCH)),
        help=f"{names} {takes} {f'multiples of {whole}' if whole > 1 else f'{least} at least'}. Compare objectives at "
        "equal batches.",
    )
    if batch != taken(batch):  # a link's, which overrules the session where the box is drawn first
        st.rerun()
    return batch


def _asked(key: str) -> int | None:
    """The number that the address has for a widget not drawn yet, where one may be typed there too."""
    with suppress(ValueError):
        if 0 < (number := int(st.query_params.get(key, ""))) <= _MOST:
            return number
    return None


def _least(spec: str, dim: int) -> int:
    """The smallest batch an objective takes; 2 where its parameters fit none, which `_check` explains."""
    try:
        return objectives.objective(spec).batch(spec, dim)
    except ValueError:
        return 2


@st.cache_data(max_entries=100, show_spinner=False)
def _check(spec: str, batch: int, dim: int) -> None:
    """Raise ValueError where the objective cannot take such batches, as the trainer does when it begins."""
    TrainConfig(objective=spec, batch=batch).settled(dim)
    objectives.objective(spec).check_batch(spec, batch, dim)
