"""Beginning a corpus on its page: what the form asks for, the same as a command line and in Python, and its turn."""

import shlex
from contextlib import suppress
from itertools import islice
from pathlib import Path

import streamlit as st

from whitelab.base import threads
from whitelab.base.devices import choose_device
from whitelab.base.installation import option, program, shipped
from whitelab.base.user_folders import expanded, user_folder
from whitelab.base.wording import amount, layers_in_words, plain, quantity
from whitelab.corpus.chunks import CHUNK_TEXTS
from whitelab.corpus.fitting import CORPUS
from whitelab.corpus.manifest import place_for
from whitelab.corpus.own_process import embedded_apart
from whitelab.corpus.texts import EMPTY, LeftOut, form_of, kind_of, read_records, text_files
from whitelab.datasets import BUNDLED_SETS, DEMO, DataError
from whitelab.datasets.layouts import data_path
from whitelab.datasets.offered import is_limited
from whitelab.encoding.encoders import MAX_LENGTH
from whitelab.encoding.names import ONE_LAYER, OUTPUT, ModelError, ModelName, check_alone, shown_name
from whitelab.ui.results import long_runs
from whitelab.ui.results.files import file_stamp
from whitelab.ui.results.jobs import redraw
from whitelab.ui.results.kept import kept
from whitelab.ui.results.worker import Job
from whitelab.ui.sidebar.workspace import Workspace
from whitelab.ui.widgets.address import bound
from whitelab.whitening import needs_rows, of_rows

# Arguments of `embed_corpus` whose option has another name, and those that are usual and not said.
_OPTIONS = {"source": "text", "chunk_texts": "chunk"}
_USUAL = {"model": "bundled", "pooling": "mean", "apart": False, "dtype": "float32", "device": "cpu"}
_USUAL |= {"chunk_texts": CHUNK_TEXTS, "allow_bin": False}
_USUAL |= {"text_column": "text", "id_column": "id", "max_length": MAX_LENGTH}
_USUAL |= {"data": DEMO, "split": "test", "aggregate": "all"}
# Of a small corpus about so many chunks are made, so that it shows how far it is and whether a map settles.
_CHUNKS, _FEWEST_TEXTS = 8, 64
EXAMPLE = shipped("data/demo-search/corpus.jsonl")
_WIDE = 60  # characters of a line to type
_LOOKED_AT = 100  # records of a file, for one with a text
_CUT = f"at most {MAX_LENGTH} tokens of each text (`--max-length` in a terminal for more)."
_SENTENCE_BYTES, _HEAD_BYTES = 64, 1 << 16  # of a text, where its file does not show it, and looked at to see it


def may_begin() -> bool:
    """Whether visitors may begin one: it reads and writes where they say."""
    return long_runs.allowed() and not is_limited()


def job_of(folder: str) -> Job | None:
    """The job that embeds, or has embedded, into this folder since the app was started."""
    return long_runs.queue().get(_key(folder))


def submit(folder: str, arguments: dict) -> None:
    """Let a corpus wait for its turn."""
    if may_begin():
        arguments = arguments | _engine(arguments)
        long_runs.take_turn(_key(folder), "a corpus", lambda: embedded_apart(folder=folder, **arguments))
    redraw()


def form(chosen: Workspace, folder: str) -> dict:
    """Ask for what is to be embedded into `folder`; the arguments of `embed_corpus`, empty while some are missing."""
    st.header("Embed a corpus")
    if chosen.given:
        st.info("Vectors stand for the model. Choose other data first, and with it a model.", icon=":material/info:")
        return {}
    try:
        check_alone(chosen.model.name)
    except ModelError as error:
        st.info(plain(str(error)), icon=":material/info:")
        return {}
    setting = chosen.setting
    arguments = {"model": chosen.model.name, "layers": list(setting.layers), "pooling": setting.pooling}
    arguments |= {"dtype": chosen.dtype, "device": choose_device()}
    arguments |= {"allow_bin": True} if chosen.model.allow_bin else {}
    source = st.text_input(
        "Texts",
        **bound("texts", ""),
        placeholder="sentences/*.txt",
        help="A file, a folder or a pattern: .txt with one sentence a line, .jsonl, .csv or .parquet with a text a "
        "record, also as .gz, .bz2 or .xz.",
    ).strip()
    if not source:
        st.button(
            "Take the bundled documents",
            key="example-corpus",
            on_click=_take_example,
            icon=":material/description:",
            help="Those of the demonstration search set: few, but enough to see how a corpus is embedded and how far "
            "a map fitted on it is from settled.",
        )
    ready = _texts(source, arguments) & _takes(folder)
    several = len(setting.layers) > 1
    if several and st.toggle(
        "Keep the layers apart",
        **bound("layers-apart", False),
        help="For maps of any average of these layers: their moments grow with the square of their number.",
    ):
        arguments["apart"] = True
    how = ", kept apart" if "apart" in arguments else ", averaged" if several else ""
    st.caption(
        f"{plain(shown_name(chosen.model.name))}, {layers_in_words(setting.layers)}{how}, "
        f"{plain(setting.pooling)} pooling, {chosen.dtype}, as the bar says"
        + ("." if ModelName.parse(chosen.model.name).kind in ONE_LAYER else f", {_CUT}")
    )
    able = ready and not long_runs.full()
    # Not by a callback, which has what was drawn before: a click also enters the text just typed.
    if st.button("Begin", type="primary", key="begin-corpus", disabled=not able, icon=":material/play_arrow:") and able:
        submit(folder, arguments)
        st.rerun()
    if long_runs.full():
        st.caption(long_runs.FULL)
    elif not folder:
        st.caption("Name a new folder above for its vectors.")
    st.markdown("The same without this page, and what can be done with it then:")
    commands(folder, {"source": source} | arguments, chosen)
    return arguments if ready else {}


def _takes(folder: str) -> bool:
    """Whether a corpus may be written there; says why not."""
    if not folder:
        return False
    try:
        place = place_for(folder, "embed")
    except ValueError as error:
        st.error(plain(str(error)))
        return False
    if place.exists() and not place.is_dir():
        st.error(f"{plain(folder)} is a file: a corpus needs a folder.")
        return False
    return True


def _found(source: str) -> tuple[Path, list[str], int, float]:
    """The first of the files there are, the kinds of all, their bytes, and those of a text, about.

    Looked for again only where the file, or the folder itself, is another than it was: a folder may be large.
    """
    files = text_files(source)
    kinds, size = [kind_of(file) for file in files], sum(file.stat().st_size for file in files)
    plain_text = next((file for file in files if file.suffix.lower() in (".txt", ".jsonl", ".csv")), None)
    if plain_text is None:
        return files[0], kinds, size, _SENTENCE_BYTES
    with plain_text.open("rb") as stream:
        head = stream.read(_HEAD_BYTES)
    encoding, start, end_of_line = form_of(head, kind_of(plain_text))
    lines = head[start:].decode(encoding, "replace").split(end_of_line)
    return files[0], kinds, size, len(head) / max(sum(bool(line.strip()) for line in lines), 1)


def commands(folder: str, arguments: dict, chosen: Workspace) -> None:
    """The lines to type that embed a corpus, and what can be done with it; an example where nothing is named."""
    folder = folder or "embedded"
    arguments = arguments | {"source": arguments["source"] or "sentences/*.txt"}
    embed = _line("corpus embed", arguments | _engine(arguments) | {"out": folder})
    st.code("\n".join((embed, *_after(folder, arguments, chosen, chosen.setting.k))), language="bash", wrap_lines=True)


def what_next(folder: str, arguments: dict, chosen: Workspace, k: int | None) -> None:
    """The lines to type that make something of a corpus, its map cut to `k`, as the bar has it."""
    st.code("\n".join(_after(folder, arguments, chosen, k)), language="bash", wrap_lines=True)


def _after(folder: str, arguments: dict, chosen: Workspace, k: int | None) -> tuple[str, ...]:
    shared = ("model", "layers", "pooling", "dtype", "max_length", "allow_bin")
    same = {name: arguments[name] for name in shared if name in arguments}
    here, spec = shlex.quote(f"./{folder}" if folder.startswith("-") else folder), chosen.compared.whitening
    given = not of_rows(spec) and not (arguments.get("apart") and needs_rows(spec))
    variant = {"whitening": spec if given else "pca"} | ({"k": k} if given and k else {})
    pairs = {} if chosen.own else {"data": chosen.data.source, "split": chosen.data.split}
    pairs |= {} if chosen.own or chosen.data.source in BUNDLED_SETS else {"task": chosen.data.task}
    pairs |= {"aggregate": chosen.setting.aggregate}
    return (
        _line(f"corpus fit {here}", variant | {"out": "map.npz"}),
        _line("score", pairs | same | variant | {"fit": f"{CORPUS}{folder}"}),
        _line(f"corpus apply {here}", variant | {"vectors": "int8", "out": "applied"}),
        _line("corpus index applied", {"out": "index"}),
        _line("corpus search index", {"query": "a cat"} | {name: same[name] for name in same if name == "allow_bin"}),
    )


def _line(step: str, arguments: dict) -> str:
    """A command line; what is usual is not said."""
    words = [program(), step]
    # A model's own output is cut where its makers cut it, unless it is said.
    cut_by_us = ModelName.parse(arguments.get("model", _USUAL["model"])).kind != OUTPUT
    for name, value in arguments.items():
        if name in _USUAL and value == _USUAL[name] and (cut_by_us or name != "max_length"):
            continue
        shown = ",".join(map(str, value)) if isinstance(value, list) else str(value)
        flag = f"--{_OPTIONS.get(name, name).replace('_', '-')}"
        words.append(flag if value is True else option(flag, shown))
    return _folded(words)


def _folded(words: list[str]) -> str:
    """A command line on as many lines as it needs, broken before an option: a browser would break inside one."""
    lines = [""]
    for word in words:
        if lines[-1] and len(lines[-1]) + len(word) > _WIDE:
            lines.append("   ")
        lines[-1] += f" {word}" if lines[-1] else word
    return " \\\n".join(lines)


def _take_example() -> None:
    """Name the bundled documents, and a folder of this user's for them. For callbacks."""
    st.session_state["texts"], st.session_state["id-column"] = str(EXAMPLE), "_id"
    if not st.session_state.get("embedded"):
        with suppress(ValueError):  # no home folder: the visitor names one
            st.session_state["embedded"] = str(user_folder("data") / "example-corpus")


def _texts(source: str, arguments: dict) -> bool:
    """Look for the texts, say what there is, and put into `arguments` how to read them; whether there are any."""
    if not source:
        return False
    try:
        known = source, file_stamp([data_path(source)])
        file, kinds, size, each = kept("corpus-texts", known, lambda: _found(source))
    except (DataError, OSError) as error:
        st.error(plain(str(error)))
        return False
    st.caption(f"{quantity(len(kinds), 'file')}, {amount(size)}.")
    arguments |= {"source": source, "chunk_texts": _chunk_texts(size, each)}
    if set(kinds) != {".txt"}:
        left, right = st.columns(2)
        with left:
            text = st.text_input("Field with the text", "text", **bound("text-column", "text")).strip()
        with right:
            name = st.text_input("Field with an id, if any", "id", **bound("id-column", "id")).strip()
        columns = {"text_column": text or "text", "id_column": name or "id"}
        arguments |= columns
        known = str(file), file_stamp([file]), *columns.values()
        if why := kept("corpus-columns", known, lambda: _refused(file, columns)):
            st.warning(plain(why), icon=":material/warning:")
    return True


def _refused(file: Path, columns: dict[str, str]) -> str:
    """Why the first records of a file give no text in these columns, in the words of their boxes; empty where one
    does."""
    none, empty = f"The first records of {file.name} hold no text.", []

    def refuse(one: LeftOut) -> None:
        if one.reason != EMPTY:
            raise _RefusedError(f"{one.where} gives no text: {one.reason}.")
        empty.append(one)
        if len(empty) == _LOOKED_AT:
            raise _RefusedError(none)

    try:
        first = islice(read_records(file, refuse, **columns), _LOOKED_AT)
        return "" if any(text for _, text in first) else none
    except DataError:  # gone since
        return ""
    except _RefusedError as problem:
        words = str(problem)
    for name, shown in (("text_column", "the field with the text"), ("id_column", "the field with an id")):
        words = words.replace(f"{name}=", f"{shown}, ").replace(f"({name})", f"({shown})")
    return words


class _RefusedError(Exception):
    """A first record was left out, and what to say of it."""


def _chunk_texts(size: int, each: float) -> int:
    """Texts a chunk, by the bytes of all and of one: the usual number, fewer where that would be a chunk or two."""
    few = int(size / max(each, 1) / _CHUNKS)
    return min(CHUNK_TEXTS, max(_FEWEST_TEXTS, few))


def _engine(arguments: dict) -> dict:
    """A process for every core, each of which encodes with one thread; a GPU is one worker's."""
    cores = threads.whole()
    return {"engine": "processes", "workers": cores} if arguments["device"] == "cpu" and cores > 1 else {}


def _key(folder: str) -> str:
    with suppress(ValueError):  # a name that is none, which is said where it is opened
        folder = str(expanded(folder).absolute())
    return f"corpus:{folder}"
