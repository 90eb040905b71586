"""Bringing one's own data: a file of pairs, pasted text, vectors. Each ends in a button that hands it on."""

import hashlib
from collections.abc import Sequence

import streamlit as st
from streamlit.runtime.uploaded_file_manager import UploadedFile

from whitelab.base import upload_limits
from whitelab.base.wording import plain, quantity, spaced
from whitelab.datasets import DataError, MalformedRows, SentencePairs, Sheet, Upload, open_pasted, open_sheet
from whitelab.datasets.arrays import ARRAYS, TABLES
from whitelab.datasets.pairs import NOT_A_NUMBER
from whitelab.datasets.tables import SUFFIXES, as_number
from whitelab.encoding.precomputed import Unpaired, Vectors, read_either
from whitelab.ui.results.kept import kept
from whitelab.ui.sections import vectors_alone
from whitelab.ui.sidebar import malformed, own_data
from whitelab.ui.widgets.note import note

STAYS = (
    "It stays in this session, nobody else sees it, and a reload of the page lets go of it; only a training run that "
    "you begin on it keeps a copy."
)
VECTORS = "Vectors without a model"
TITLES = {"first": "First sentence", "second": "Second sentence", "score": "Score", "subset": "Subset, if any"}


def section() -> str:
    """The three ways to bring data, in tabs; the lines that print what is shown of vectors without pairs."""
    file, paste, vectors = st.tabs(["Pairs from a file", "Pasted text", VECTORS])
    with file:
        _file()
    with paste:
        _paste()
    with vectors:
        return _vectors()


# ------------------------------------------------------------------------------------------------------- pairs


def _file() -> None:
    st.markdown(
        "A table with two columns of sentences and one of scores, higher for more similar: CSV, TSV, TXT, JSON, JSON "
        "lines or Parquet, in UTF-8. Of an Excel file, save the sheet as CSV UTF-8."
    )
    st.caption(f"{upload_limits.of_table()} {STAYS}")
    arrays = ", ".join(f"`{suffix}`" for suffix in ARRAYS if suffix not in SUFFIXES)
    st.caption(f"Vectors ({arrays}, or lists in Parquet) are no table: they go under the tab *{VECTORS}*.")
    file = st.file_uploader(
        "File of pairs",
        type=[suffix.removeprefix(".") for suffix in SUFFIXES],
        max_upload_size=upload_limits.TABLE_MB,
        key="pairs-file",
    )
    if file is not None:
        _open(Upload(file.name, file.getvalue()), "file", file.file_id)


def _open(upload: Upload, place: str, name: str) -> None:
    """A table as it is read; `name` changes with its content."""
    try:
        header = st.session_state.get(f"header-{name}")
        with st.spinner("Reading the file"):
            sheet = kept(f"sheet-{place}", (name, header), lambda: open_sheet(upload, header))
    except MalformedRows as error:
        st.error("No row of this file can be read.")
        malformed.table(error.problems, named=False)
    except DataError as error:
        st.error(plain(str(error)))
    else:
        _choose(sheet, place, name)


def _choose(sheet: Sheet, place: str, name: str) -> None:
    """Choose the columns of a table, look at its first rows and at the rejected ones, use it."""
    if not sheet.named_by_format:
        st.checkbox("The first line holds the names of the columns", value=sheet.header, key=f"header-{name}")
    if len(sheet.names) < 3:
        st.info(
            f"Pairs have two columns of sentences and one of scores, and this table has {len(sheet.names)} in all. "
            "Texts that have a label each are read by the pages Probe and Advise, texts alone by Corpus.",
            icon=":material/help:",
        )
    unclear = st.container()
    if sheet.table.lists:
        lists = ", ".join(map(plain, sheet.table.lists[:12]))
        st.info(
            f"Columns of lists are not read here: {lists}. Vectors go under the tab *{VECTORS}*.",
            icon=":material/help:",
        )
    chosen = {}
    for column, (role, title) in zip(st.columns(4), TITLES.items(), strict=True):
        with column:
            chosen[role] = st.selectbox(
                title,
                sheet.names,
                index=sheet.column(role),
                key=f"{role}-{name}-{sheet.header}",
                placeholder="Choose a column",
            )
    open_still = None in (chosen["first"], chosen["second"], chosen["score"])
    guessed = chosen["score"] is not None and sheet.clear.score == sheet.names.index(chosen["score"])
    if sheet.unclear and len(sheet.names) >= 3 and (open_still or guessed):
        unclear.info(_unclear(sheet), icon=":material/help:")
    st.caption(f"The first rows of {spaced(sheet.n_rows)}:")
    rows = sheet.preview()
    numeric = {name: all(as_number(row[name]) is not None for row in rows if row[name]) for name in sheet.names}
    # So that the scores are seen beside long sentences.
    config = {
        name: st.column_config.TextColumn(width="small" if small else "medium") for name, small in numeric.items()
    }
    st.dataframe(rows, hide_index=True, height="content", column_config=config, alt="The first rows of the sheet")
    if open_still:
        return
    try:
        with st.spinner("Reading the rows"):
            pairs = kept(f"pairs-{place}", (name, sheet.header, *chosen.values()), lambda: sheet.pairs(**chosen))
    except MalformedRows as error:
        st.error("With these columns no row can be read.")
        malformed.table(error.problems, named=False)
        if all(one.reason.endswith(NOT_A_NUMBER) for one in error.problems):
            st.caption(_IN_NUMBERS)
        return
    except DataError as error:
        st.error(plain(str(error)))
        return
    _summary(pairs)
    _use("Use this data", f"use-{place}", pairs, _code(sheet, chosen), pasted=name if place == "paste" else "")


def _unclear(sheet: Sheet) -> str:
    """What is still to be chosen of the columns of a sheet, and what is known of them."""
    names_above = " If the first line holds the names of the columns, tick that above."
    if sheet.clear.scoreless:
        but, if_it_is = "", ""
        if sheet.clear.listed:
            but, if_it_is = f" but {plain(sheet.clear.listed)}", " If the score is there all the same, choose it."
        words = (
            f"No column{but} is mostly numbers, as a score is, higher for more similar sentences.{if_it_is} "
            f"{_IN_NUMBERS}"
        )
    else:
        which, choose = "which", "Choose them: the score says"
        if sheet.clear.texts:
            which, choose = "the score", "See whether one of them says"
            if sheet.clear.score is not None:
                choose = "A running number hardly does, so see whether the other says"
        holds = f": {plain(sheet.clear.listed)}" if sheet.clear.listed else ""
        words = (
            f"Which column is {which} is not clear from names and content{holds}. {choose} how alike the two "
            "sentences are."
        )
    return words + names_above * (not sheet.header and not sheet.named_by_format)


def _summary(pairs: SentencePairs) -> None:
    """What was read, and what was not."""
    kept, rejected = len(pairs.first), len(pairs.problems)
    words = f"**{quantity(kept, 'pair')}** of {quantity(len(pairs.sentences), 'different sentence')}"
    words += f", {len(pairs.subset_names)} subsets" if len(pairs.subset_names) > 1 else ""
    st.markdown(words + (f". **{quantity(rejected, 'row')} rejected**:" if rejected else ", no row rejected."))
    malformed.table(pairs.problems, named=False)
    note(*malformed.notes_beside(pairs))


def _use(
    label: str, key: str, pairs: SentencePairs, code: str, vectors: Vectors | None = None, pasted: str = ""
) -> None:
    """The button that turns the workspace to these pairs; once it has, where to look at them. `pasted` is the digest
    of the text they are, where they were pasted."""

    def use() -> None:
        if not pasted or _is_pasted(pasted):
            own_data.use(pairs, code, vectors)

    own = own_data.current()
    used = own is not None and own.pairs is pairs and st.session_state.get("data") == own_data.UPLOADED
    with st.container(horizontal=True, vertical_alignment="center"):
        shown, icon = ("In use", ":material/check:") if used else (label, None)
        st.button(shown, type="primary", key=key, on_click=use, disabled=used, icon=icon)
        if used:
            for page, question in (
                ("overview", "What does their space look like?"),
                ("whitening", "Which whitening, and is the gain real?"),
            ):
                st.page_link(f"pages/{page}.py", label=question, icon=":material/arrow_forward:")


def _code(sheet: Sheet, chosen: dict[str, str | None]) -> str:
    """The lines that read the same in Python, from the folder the file lies in."""
    asked = [repr(chosen[role]) for role in chosen if chosen[role] is not None]
    header = "" if sheet.named_by_format else f", header={sheet.header}"
    path = sheet.table.path.name
    return (
        f"from whitelab.datasets import open_sheet\n\n"
        f"pairs = open_sheet({path!r}{header}).pairs({', '.join(asked)})  # your file, by its path"
    )


# ------------------------------------------------------------------------------------------------------- text


def _paste() -> None:
    st.markdown(
        "Pairs with a score, one a line: first sentence, tab, second sentence, tab, score, as a spreadsheet copies "
        "them. Or sentences alone, one a line."
    )
    st.caption(f"At most {spaced(upload_limits.PASTED)} characters. {STAYS}")
    text = st.text_area(
        "Pasted text",
        height=180,
        max_chars=upload_limits.PASTED,
        key="pasted",
        placeholder="A man plays a guitar.\tSomeone makes music.\t3.6",
    )
    if not text or not text.strip():
        return
    digest = _digest(text)
    try:
        found = kept("pasted", digest, lambda: open_pasted(text))
    except DataError as error:
        st.error(plain(str(error)))
        return
    if isinstance(found, Sheet):
        _open(Upload(found.table.path.name, text.encode("utf-8", "replace")), "paste", digest)
    else:
        _sentences(found, digest)


def _sentences(found: tuple[str, ...], digest: str) -> None:
    """Sentences without scores, and what they are good for."""
    st.markdown(
        f"**{quantity(len(found), 'sentence')}**, {spaced(len(set(found)))} of them different, and no score. "
        "Without gold scores nothing can be ranked, so they cannot be the data of a page; they can be the text a map "
        "is fitted on, which is then scored on the data in the bar."
    )
    own = own_data.current()
    if own is not None and own.vectors is not None and st.session_state.get("data") == own_data.UPLOADED:
        st.info("The vectors in use have no model to embed these sentences. Choose other data first.")
        return

    def fit() -> None:
        if _is_pasted(digest):
            own_data.fit_on("pasted sentences", digest, found)

    st.button("Fit on these sentences", type="primary", key="use-text", on_click=fit)


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode("utf-8", "replace")).hexdigest()[:24]


def _is_pasted(digest: str) -> bool:
    """Whether the text of this digest still stands in the box. A click also enters what was just typed there, and has
    what was read of the text before."""
    return _digest(st.session_state.get("pasted") or "") == digest


# ------------------------------------------------------------------------------------------------------- vectors

FORMS = """
| arrays | what they are |
|---|---|
| `first` [p, d], `second` [p, d], `gold` [p] | a vector for each side of each pair |
| `values` [n, d], `first` [p], `second` [p], `gold` [p] | unique vectors, and each pair's two row numbers, from 0 |
| Parquet: lists `first`, `second`, number `gold` | a row a pair, with `sentence1`, `sentence2` if you like |
| `values` [n, d] | vectors alone |
"""


_IN_NUMBERS = "Where the score is in words or percentages, write numbers in their place."

# While vectors alone are in sight the strip with the bar's number and k is not: neither is theirs. No rule of every
# page: ui/live/live.css says why.
_IN_SIGHT = ".stApp:has([data-testid=stTabPanel]:not([inert]) .st-key-vectors-alone)"
_WITHOUT_STRIP = f"<style>{_IN_SIGHT} .wl-strip {{ display: none; }}</style>"


def _vectors() -> str:
    st.markdown(
        "Pairs embedded elsewhere, as arrays in `.npy`, `.npz`, `.safetensors` or Parquet. No model is needed: the "
        "vectors stand for one. Layers come first, [l, p, d] or [l, n, d]; `subset` [p] and `sentences` [n] are "
        "optional. Of vectors alone nothing is scored: see how crowded they are, and take a map of them along."
    )
    st.markdown(FORMS)
    st.caption(f"{upload_limits.of_vectors()} Python objects are never unpickled. {STAYS}")
    left, right = st.columns([3, 2])
    with left:
        files = st.file_uploader(
            "Vectors",
            type=[suffix.removeprefix(".") for suffix in ARRAYS],
            accept_multiple_files=True,
            max_upload_size=upload_limits.VECTORS_MB,
            key="vectors-files",
            help="One file, or several such as first.npy, second.npy and gold.npy.",
        )
    with right:
        gold = st.file_uploader(
            "Gold scores, if they lie in a file of their own",
            type=[suffix.removeprefix(".") for suffix in (*ARRAYS, *TABLES)],
            max_upload_size=upload_limits.TABLE_MB,
            key="gold-file",
            help="An array, or a table with a column score and, where need be, first and second with row numbers.",
        )
    if files:
        return _read(files, gold)
    if gold:
        st.info("This box is for gold scores: bring the vectors they are of in the box *Vectors*.")
    return ""


def _read(files: Sequence[UploadedFile], gold: UploadedFile | None) -> str:
    given = [file for file in (*files, gold) if file is not None]
    size = sum(file.size for file in given)
    if size > upload_limits.VECTORS_MB << 20:
        st.error(f"These files take {size >> 20} MB together, at most {upload_limits.VECTORS_MB} MB are read.")
        return ""

    def read() -> Vectors | Unpaired:
        own = [Upload(file.name, file.getvalue()) for file in files]
        return read_either(own, gold and Upload(gold.name, gold.getvalue()))

    ids = tuple(file.file_id for file in given)
    try:
        with st.spinner("Reading the vectors"):
            found = kept("vectors", ids, read)
    except DataError as error:
        st.error(plain(str(error)))
        return ""
    space = found.space
    reading = f"{_reading(files, gold, isinstance(found, Vectors))}  # your files, by their paths"
    layers = quantity(space.n_layers, "layer")
    words = f"**{layers} of {quantity(space.n_sentences, 'vector')}**, d = {space.dim}, {space.origin.dtype}"
    if isinstance(found, Unpaired):
        st.markdown(f"{words}, without pairs.")
        with st.container(key="vectors-alone"):
            st.html(_WITHOUT_STRIP)
            return vectors_alone.draw(found, "/".join(ids), f"found = {reading}\nspace = found.space\n")
    text = ", with their sentences." if found.has_text else ", without text."
    st.markdown(f"{words}, for **{quantity(space.n_pairs, 'pair')}**{text}")
    note(*found.pairs.notes)
    _use(
        "Use these vectors",
        "use-vectors",
        found.pairs,
        f"found = {reading}\npairs, space = found.pairs, found.space",
        found,
    )
    return ""


def _reading(files: Sequence[UploadedFile], gold: UploadedFile | None, paired: bool) -> str:
    """The expression that reads the same in Python."""
    read, more = "read_vectors" if paired else "read_either", f", {gold.name!r}" if gold else ""
    return f"whitelab.{read}({[file.name for file in files]!r}{more})"
