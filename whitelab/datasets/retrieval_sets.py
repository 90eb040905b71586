"""Retrieval sets: documents, queries, and graded judgements of which document answers which query.

Two layouts: BEIR's (Thakur et al. 2021), a folder with corpus.jsonl, queries.jsonl and qrels/SPLIT.tsv of query,
document and grade; and the same with judgements as TREC's qrels, lines of query, iteration, document and grade.
Either may come as one .zip, as BEIR's sets do.
"""

from __future__ import annotations

import hashlib
import math
import re
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path

import numpy as np

from whitelab.base.installation import shipped
from whitelab.base.lazy import cached_property
from whitelab.base.wording import quantity
from whitelab.datasets import packed_sets
from whitelab.datasets.columns import plain_name, shown, text_cell
from whitelab.datasets.layouts import DEMO, DEMO_SEARCH, existing_path
from whitelab.datasets.pairs import (
    SPLITS,
    DataError,
    MalformedRows,
    Problem,
    check_numbers,
    check_texts,
    check_whole_numbers,
    frozen,
    hash_texts,
    places,
)
from whitelab.datasets.tables import as_number, read_lines, read_table, stem_of, suffix_of
from whitelab.datasets.uploads import File, Upload

_DEMO_FOLDER = shipped(f"data/{DEMO_SEARCH}")
QRELS = (".tsv", ".txt", ".qrels", ".trec")
LINES = (".jsonl", ".jsonl.gz")
LOOKED_FOR = "corpus.jsonl, queries.jsonl, and qrels/test.tsv or a file of TREC qrels"

_WIDTHS = (3, 4)  # columns of a line of BEIR's and of TREC's judgements
_HEADER = ("queryid", "qid", "query", "topic")  # first cell of a qrels file that names its columns, as plain names
_ROOT_QRELS = re.compile(r"qrels?(?:[-_.](?P<split>\w+))?|(?P<stem>.+)[-_.]qrels?", re.IGNORECASE)


@dataclass(frozen=True, eq=False)
class RetrievalSet:
    """n documents, the q queries of a split that some document answers, and j judgements.

    documents are title and text joined by a space, and may be empty; queries are not. Judgement i says that
    `documents[document[i]]` has the relevance `grade[i]` (float64, relevant above 0) for `queries[query[i]]`; what is
    not judged is not relevant. title, source, notes and problems as in `SentencePairs`. Arrays are read-only
    copies; DataError when the parts do not fit together. `query_prompt` and `document_prompt` stand before every query
    and document that is embedded, as some models are meant.
    """

    task: str
    document_ids: tuple[str, ...]
    documents: tuple[str, ...]
    query_ids: tuple[str, ...]
    queries: tuple[str, ...]
    query: np.ndarray
    document: np.ndarray
    grade: np.ndarray
    split: str = "all"
    source: str = ""
    notes: tuple[str, ...] = ()
    problems: tuple[Problem, ...] = ()
    query_prompt: str = ""
    document_prompt: str = ""

    def __post_init__(self) -> None:
        for name in ("document_ids", "documents", "query_ids", "queries", "notes"):
            object.__setattr__(self, name, check_texts(self.task, name, getattr(self, name)))
        for name in ("query", "document"):
            object.__setattr__(self, name, check_whole_numbers(self.task, name, getattr(self, name)))
        grade = check_numbers(self.task, "grade", self.grade)
        object.__setattr__(self, "grade", frozen(grade, np.float64))
        sizes = {"documents": self.documents, "queries": self.queries}
        for name, ids in (("documents", self.document_ids), ("queries", self.query_ids)):
            if len(sizes[name]) != len(ids) or not ids or len(set(ids)) < len(ids):
                raise DataError(f"{self.task}: {name} must be at least one, each with an id of its own")
        if not len(self.query) == len(self.document) == len(self.grade):
            raise DataError(f"{self.task}: query, document and grade must be equally long")
        for name, count in (("query", len(self.queries)), ("document", len(self.documents))):
            numbers = getattr(self, name)
            if len(numbers) and not 0 <= numbers.min() <= numbers.max() < count:
                raise DataError(f"{self.task}: {name} must hold numbers from 0 to {count - 1}")
        endless = self.grade[~np.isfinite(self.grade)]
        if len(endless):
            raise DataError(f"{self.task}: grade {endless[0]} is not a number")
        pairs, first = np.unique(self.query * len(self.documents) + self.document, return_index=True)
        if len(pairs) < len(self.query):
            again = np.setdiff1d(np.arange(len(self.query)), first)[0]
            query, document = self.query_ids[self.query[again]], self.document_ids[self.document[again]]
            raise DataError(f"{self.task}: query {shown(query)} and document {shown(document)} are judged twice")
        without = np.setdiff1d(np.arange(len(self.queries)), self.query[self.grade > 0])
        if len(without):
            raise DataError(f"{self.task}: query {self.query_ids[without[0]]!r} has no relevant document")

    def prompted(self, query: str = "", document: str = "") -> RetrievalSet:
        """The same set with these prompts."""
        return replace(self, query_prompt=query, document_prompt=document)

    @property
    def prompts(self) -> dict[str, str]:
        """The prompts by their names, for a record; empty where nothing stands before a text."""
        given = {"query_prompt": self.query_prompt, "document_prompt": self.document_prompt}
        return given if any(given.values()) else {}

    @cached_property
    def embedded_documents(self) -> tuple[str, ...]:
        """The documents with their prompt before them."""
        return tuple(self.document_prompt + text for text in self.documents)

    @cached_property
    def embedded_queries(self) -> tuple[str, ...]:
        """The queries with their prompt before them."""
        return tuple(self.query_prompt + text for text in self.queries)

    @cached_property
    def sentences(self) -> tuple[str, ...]:
        """The unique texts of documents and queries with their prompts, documents first: what is embedded."""
        return tuple(self._places)

    @cached_property
    def document_rows(self) -> np.ndarray:
        """int64 [n]: the row of each document in `sentences`."""
        return np.array([self._places[text] for text in self.embedded_documents], np.int64)

    @cached_property
    def query_rows(self) -> np.ndarray:
        """int64 [q]: the row of each query in `sentences`."""
        return np.array([self._places[text] for text in self.embedded_queries], np.int64)

    @cached_property
    def own(self) -> np.ndarray:
        """int64 [q]: the document that each query is itself, -1 where there is none.

        It has the query's id and ends with its text, since a title may stand before, and is not judged relevant to it.
        """
        place = {name: i for i, name in enumerate(self.document_ids)}
        relevant = set(zip(self.query[self.grade > 0].tolist(), self.document[self.grade > 0].tolist(), strict=True))
        found = np.full(len(self.queries), -1)
        for i, (name, text) in enumerate(zip(self.query_ids, self.queries, strict=True)):
            own = place.get(name, -1)
            if own >= 0 and self.documents[own].endswith(text) and (i, own) not in relevant:
                found[i] = own
        return found

    @cached_property
    def fingerprint(self) -> str:
        """Hex SHA-256 of texts, ids and judgements, in order: what decides a score."""
        digest = hashlib.sha256()
        for texts in (self.document_ids, self.documents, self.query_ids, self.queries):
            hash_texts(digest, texts)
        for array, dtype in ((self.query, "<i8"), (self.document, "<i8"), (self.grade + 0.0, "<f8")):
            digest.update(array.astype(dtype).tobytes())
        if self.query_prompt or self.document_prompt:
            hash_texts(digest, (self.query_prompt, self.document_prompt))
        return digest.hexdigest()

    @cached_property
    def _places(self) -> dict[str, int]:
        return places((*self.embedded_documents, *self.embedded_queries))


def load_retrieval(
    data: str | Path | Sequence[Upload], split: str = "test", *, keep_going: bool = False
) -> RetrievalSet:
    """The documents, and the queries and judgements of one split: a folder, its .zip, uploads, or a bundled set.

    The bundled one is "demo-search", for short "demo". A split is named by its file (qrels/test.tsv); the only file of
    judgements that names none answers to "test" as well, and says "all". Of an upload one file is the corpus, one the
    queries and one the judgements, as their names say, or it is one .zip of them. The set is called as its folder, also
    in a .zip; loose files are an "upload". Queries that no judged
    document answers are left out, and it is noted how many; those that another split judges are not counted. Rows that
    cannot be used raise MalformedRows, and with keep_going=True are left out and listed in `problems`: lines that
    cannot be read, ids that repeat, judgements of a query or document that is not there or whose grade is not a number.
    DataError for everything else that its owner can solve.
    """
    files = _files(data, contents=True)
    task, source, titles = files.task, files.source, (files.corpus, files.queries)
    documents, problems = _texts(files.corpus, "document")
    queries, more = _texts(files.queries, "query")
    for path, texts in zip(titles, (documents, queries), strict=True):
        if not texts:
            found = problems if texts is documents else more
            raise MalformedRows(found, MalformedRows.NOTHING_LEFT) if found else DataError(f"{path}: the file is empty")
    split, chosen = _chosen(files, split)
    judged = {name: _judgements(path) for name, path in files.qrels.items()}
    kept, wrong = _resolved(chosen, judged[split][0], documents, queries)
    problems += more + sorted(judged[split][1] + wrong, key=lambda problem: problem.line)
    ever = {row.query for rows, _ in judged.values() for row in rows}
    if problems and not keep_going:
        raise MalformedRows(problems)
    relevant = {row.query for row in kept if row.grade > 0}
    names = [name for name in queries if name in relevant]
    if not names:
        raise (
            MalformedRows(problems, "no query is left that a document answers")
            if problems
            else DataError(f"{chosen}: no judgement has a grade above 0, so there is nothing to find")
        )
    place, row_of = {name: i for i, name in enumerate(names)}, {name: i for i, name in enumerate(documents)}
    kept = [row for row in kept if row.query in place]
    here = {row.query for row in judged[split][0]}
    silent = sum(name in here or name not in ever for name in queries) - len(names)
    found = RetrievalSet(
        task=task,
        document_ids=tuple(documents),
        documents=tuple(text.text for text in documents.values()),
        query_ids=tuple(names),
        queries=tuple(queries[name].text for name in names),
        query=np.array([place[row.query] for row in kept]),
        document=np.array([row_of[row.document] for row in kept]),
        grade=np.array([row.grade for row in kept]),
        split=split,
        source=source,
        problems=tuple(problems),
    )
    counts = len(problems), silent, sum(not text for text in found.documents), int((found.own >= 0).sum())
    return replace(found, notes=_notes(*counts))


def retrieval_splits(data: str | Path | Sequence[Upload]) -> tuple[str, ...]:
    """The splits that `load_retrieval` can be asked for. DataError as there."""
    return tuple(_files(data).qrels)


def retrieval_files(data: str | Path | Sequence[Upload]) -> tuple[File, ...]:
    """The files that `load_retrieval` reads, or the .zip they are packed in. DataError as there."""
    files = _files(data)
    if files.archive is not None:
        return (files.archive,)
    return files.corpus, files.queries, *files.qrels.values()


# ----------------------------------------------------------------------------------------------- which files


@dataclass(frozen=True)
class _Files:
    """The files of a set, its judgements by split; empty ones where they are packed in an `archive` and not read.

    A split in `rivals` has a second file of judgements, and cannot be read.
    """

    task: str
    source: str
    corpus: File
    queries: File
    qrels: Mapping[str, File]
    rivals: Mapping[str, File]
    archive: File | None = None


def _files(data: str | Path | Sequence[Upload], contents: bool = False) -> _Files:
    if not isinstance(data, (str, Path)):
        if any(suffix_of(file) == ".zip" for file in data):
            if len(data) > 1:
                raise DataError("an upload: a .zip holds a whole retrieval set, so no other file may come with it")
            return _packed("an upload", data[0], contents)
        return _sorted_out("an upload", "upload", data, (), loose=True)
    bundled = isinstance(data, str) and data in (DEMO, DEMO_SEARCH)
    folder = _DEMO_FOLDER if bundled else existing_path(data, (DEMO_SEARCH,))
    if suffix_of(folder) == ".zip" and folder.is_file():
        return _packed(str(data), folder, contents)
    if not folder.is_dir():
        raise DataError(f"{data}: a retrieval set is a folder, or its .zip, with {LOOKED_FOR}")
    try:
        root, below = sorted(folder.iterdir()), sorted((folder / "qrels").glob("*"))
    except OSError as error:
        raise DataError(f"{folder}: cannot be read ({error.strerror})") from None
    task = DEMO_SEARCH if folder.resolve() == _DEMO_FOLDER.resolve() else folder.resolve().name
    return _sorted_out(str(data), task, [file for file in root if file.is_file()], [f for f in below if f.is_file()])


def _packed(data: str, archive: File, contents: bool) -> _Files:
    """The files in a .zip, the contents only where they are to be read."""
    task, root, below = packed_sets.members(archive, (*LINES, *QRELS), contents)
    return replace(_sorted_out(data, task, root, below), archive=archive)


def _sorted_out(data: str, task: str, root: Sequence[File], below: Sequence[File], loose: bool = False) -> _Files:
    """Which file is which, by their names; a `loose` file of judgements may have any, also that of a split."""
    found = {}
    for kind in ("corpus", "queries"):
        named = [file for file in root if suffix_of(file) in LINES and kind in stem_of(file).lower()]
        if len(named) != 1:
            problem = "no" if not named else "more than one"
            raise DataError(f"{data}: {problem} {kind}.jsonl; a retrieval set is {LOOKED_FOR}")
        found[kind] = named[0]
    judged = [(stem_of(file), file) for file in below if suffix_of(file) in QRELS]
    if not judged:
        for file in root:
            named = _ROOT_QRELS.fullmatch(stem_of(file)) or suffix_of(file) in (".qrels", ".trec")
            if suffix_of(file) in QRELS and (named or loose):
                split = named["split"] or named["stem"] if isinstance(named, re.Match) else None
                split = stem_of(file) if loose and stem_of(file) in SPLITS else split
                judged.append((split or "all", file))
    if not judged:
        raise DataError(f"{data}: no judgements; a retrieval set is {LOOKED_FOR}")
    qrels, rivals = {}, {}
    for split, file in judged:
        if qrels.setdefault(split, file) is not file:
            rivals[split] = file
    return _Files(task, task, found["corpus"], found["queries"], qrels, rivals)


def _chosen(files: _Files, split: str) -> tuple[str, File]:
    if split not in files.qrels and tuple(files.qrels) == ("all",) and split == "test":
        split = "all"
    if split not in files.qrels:
        raise DataError(f"{files.source} has no split {split!r}; it has: {', '.join(files.qrels)}")
    if split in files.rivals:
        names = f"{files.qrels[split].name} and {files.rivals[split].name}"
        raise DataError(
            f"{files.source}: more than one file of judgements for {split!r}, {names}; keep one, or name the split of "
            "each, as in qrels/test.tsv"
        )
    return split, files.qrels[split]


# ----------------------------------------------------------------------------------------------- what they hold


@dataclass(frozen=True)
class _Text:
    line: int
    text: str


@dataclass(frozen=True)
class _Judgement:
    line: int
    query: str
    document: str
    grade: float


def _texts(path: File, what: str) -> tuple[dict[str, _Text], list[Problem]]:
    """Texts by id, in order, and the lines that hold none. A document may be empty, a query may not."""
    table = read_table(path)
    names = table.names or ()
    for needed in ("_id", "text"):
        if table.rows and needed not in names:
            raise DataError(
                f"{path}: every line needs a {needed!r}; found: {', '.join(map(shown, names)) or 'nothing'}"
            )
    found, problems = {}, list(table.problems)
    for line, cells in table.rows:
        row = dict(zip(names, cells, strict=True))
        try:
            name = text_cell(row["_id"], "_id", any_type=True)
            if name in found:
                raise ValueError(f"{what} id {shown(name)} repeats that of line {found[name].line}")
            found[name] = _Text(line, _joined(row, what))
        except ValueError as error:
            problems.append(Problem(str(path), line, str(error)))
    return found, sorted(problems, key=lambda problem: problem.line)


def _joined(row: Mapping[str, object], what: str) -> str:
    """Title and text of a document, the text of a query."""
    if what == "query":
        return text_cell(row["text"], "text")
    parts = [row.get("title"), row["text"]]
    return " ".join(text_cell(part, "text") for part in parts if part is not None and str(part).strip())


def _judgements(path: File) -> tuple[list[_Judgement], list[Problem]]:
    """Judgements line by line, and the lines that hold none: BEIR's three columns or TREC's four."""
    rows, problems = [], []
    for line, text in enumerate(read_lines(path), start=1):
        cells = [cell.strip() for cell in text.split("\t")]
        cells = cells if len(cells) in _WIDTHS else text.split()
        # A query may be called "query", but no column of grades is called a number.
        if line == 1 and cells and plain_name(cells[0]) in _HEADER and as_number(cells[-1]) is None:
            continue
        try:
            rows.append(_judgement(line, cells))
        except ValueError as error:
            problems.append(Problem(str(path), line, str(error)))
    return rows, problems


def _judgement(line: int, cells: Sequence[str]) -> _Judgement:
    if len(cells) not in _WIDTHS:
        count = quantity(len(cells), "column")
        raise ValueError(f"{count} where query, document, grade, or TREC's query, iteration, document, grade belong")
    grade = as_number(cells[-1])
    if grade is None or not math.isfinite(grade):
        raise ValueError(f"grade {shown(cells[-1])} is not a number")
    return _Judgement(line, text_cell(cells[0], "query"), text_cell(cells[-2], "document"), grade)


def _resolved(
    path: File, rows: Iterable[_Judgement], documents: Mapping[str, _Text], queries: Mapping[str, _Text]
) -> tuple[list[_Judgement], list[Problem]]:
    """Judgements of what is there, each pair once, and the others."""
    kept, problems, seen = [], [], Counter()
    named, asked = (cache(lambda ids=ids: {one.lstrip("0"): one for one in ids}) for ids in (documents, queries))
    for row in rows:
        seen[row.query, row.document] += 1
        if row.document not in documents:
            reason = f"document {shown(row.document)} is not in the corpus{_near(row.document, named)}"
        elif row.query not in queries:
            reason = f"query {shown(row.query)} is not among the queries{_near(row.query, asked)}"
        elif seen[row.query, row.document] > 1:
            reason = f"query {shown(row.query)} and document {shown(row.document)} are judged twice"
        else:
            kept.append(row)
            continue
        problems.append(Problem(str(path), row.line, reason))
    return kept, problems


def _near(name: str, ids: Callable[[], Mapping[str, str]]) -> str:
    """What is there in place of `name` with other leading zeros, which tables of numbers lose; empty for nothing."""
    near = ids().get(name.lstrip("0"))
    return f", but {shown(near)} is" if near else ""


def _notes(left_out: int, silent: int, empty: int, own: int) -> tuple[str, ...]:
    """What was left out of a set, what is empty in it, and queries that are documents, as far as there is any."""
    notes = (
        f"rows left out: {left_out}" if left_out else "",
        f"{quantity(silent, 'query', 'queries')} left out, because no document is relevant" if silent else "",
        f"{quantity(empty, 'document is', 'documents are')} empty" if empty else "",
        f"{quantity(own, 'query is a document', 'queries are documents')} of the corpus, left out of "
        f"{'its own ranking' if own == 1 else 'their own rankings'} as in BEIR"
        if own
        else "",
    )
    return tuple(filter(None, notes))
