"""Which tasks a place holds: the layouts benchmarks come in, and plain tables."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from os import PathLike
from pathlib import Path
from typing import TypeVar

from whitelab.base.groups import grouped
from whitelab.base.installation import program, shipped
from whitelab.base.user_folders import expanded, name_of
from whitelab.datasets.in_memory import PREFIX, pairs_in_memory
from whitelab.datasets.offered import check_offered
from whitelab.datasets.pairs import SPLITS, DataError
from whitelab.datasets.senteval import senteval_tasks
from whitelab.datasets.sources import MTEB, SOURCES, fetched
from whitelab.datasets.tables import SUFFIXES, as_number, check_kind, probe_lines, sniff, stem_of, suffix_of
from whitelab.datasets.uploads import File

DEMO = "demo"
MEMORY = "memory"  # the layout of pairs that `hold` has named
BUNDLED_SETS = {DEMO: "Everyday pairs", "demo-hard": "Contrast set"}  # what ships in data/, by name, and its title
DEMO_FOLDER = shipped("data/demo")
DEMO_SEARCH = "demo-search"  # the bundled retrieval set

TITLES = {
    "stsb": "STS Benchmark",
    "sickr": "SICK-R",
    **{f"sts{year}": f"STS 20{year}" for year in range(12, 17)},
}

# Pairs in each split as published, to notice a file that is not the whole of it. STS13 is without SMT.
PUBLISHED_PAIRS = {
    ("stsb", "train"): 5749,
    ("stsb", "dev"): 1500,
    ("stsb", "test"): 1379,
    ("sickr", "train"): 4500,
    ("sickr", "dev"): 500,
    ("sickr", "test"): 4927,
    ("sts12", "test"): 3108,
    ("sts13", "test"): 1500,
    ("sts14", "test"): 3750,
    ("sts15", "test"): 3000,
    ("sts16", "test"): 1186,
}

WHITENINGBERT_NAME = re.compile(r"(?P<task>[^.]+)(\.(?P<subset>.+))?-(?P<split>train|dev|test)\.csv")
WHITENINGBERT_TASKS = {"sts-b": "stsb"}
STSB_NAME = re.compile(r"stsb-en-(?P<split>train|dev|test)\.csv")
SICK_NAMES = {"sick_train.txt": "train", "sick_trial.txt": "dev", "sick_test_annotated.txt": "test"}

# SentEval: downstream/STS/STS12-en-test/STS.input.MSRpar.txt beside STS.gs.MSRpar.txt, with one score a line.
SENTEVAL_INPUT = re.compile(r"STS\.input\.(?P<subset>.+)\.txt")
SENTEVAL_YEAR = re.compile(r"sts[-_]?(20)?(?P<year>1[2-6])", re.IGNORECASE)
STSBENCHMARK_NAME = re.compile(r"sts-(?P<split>train|dev|test)\.csv")
# The Linguistic Data Consortium sells it, so SentEval and every paper since report STS13 without.
LEFT_OUT = {("sts13", "SMT"): "SMT left out of STS13, as in the papers, because its licence restricts it"}

# MTEB: a repository's folder with test.jsonl.gz, data/test-00000-of-00001.parquet or default/test/0000.parquet.
MTEB_TASKS = {repo: task for task, (repo, *_) in MTEB.items()}
MTEB_FILE = re.compile(r"(?P<split>train|validation|dev|test)(-\d{5}-of-\d{5}(-[0-9a-f]+)?)?\.(jsonl(\.gz)?|parquet)")
MTEB_SHARD = re.compile(r"\d{4}\.parquet")
MTEB_SPLITS = {"train": "train", "validation": "dev", "dev": "dev", "test": "test"}
MTEB_INSIDE = ("data", "default", *MTEB_SPLITS)

# Folders of benchmarks are looked into, others are not.
BENCHMARK_FOLDER = re.compile(r"downstream|STS|SICK|STSBenchmark|STS1\d-en-test")
DEPTH = 3

LOOKED_FOR = (
    "looked for TASK-test.csv with TASK.SUBSET-test.csv, stsb-en-test.csv, SICK_test_annotated.txt, SentEval's folders "
    "STS and SICK, MTEB's such as stsbenchmark-sts, and tables in .csv, .tsv, .txt, .jsonl or .parquet"
)


T = TypeVar("T")


@dataclass(frozen=True)
class Part:
    """One file of a task: its split ("all" when it has none) and its subset (None: the whole task).

    gold: the file that holds its scores, line by line, where they have one of their own.
    """

    path: Path
    split: str
    subset: str | None = None
    gold: Path | None = None


@dataclass(frozen=True)
class TaskInfo:
    """A task that can be loaded; layout: whiteningbert, stsb, sick, senteval, stsbenchmark, mteb, table or demo.

    notes: what a reader of its scores should know of how it was found. left_out: files that are its own but not read.
    """

    name: str
    title: str
    layout: str
    parts: tuple[Part, ...]
    published: bool
    notes: tuple[str, ...] = ()
    left_out: tuple[Path, ...] = ()

    @property
    def splits(self) -> tuple[str, ...]:
        """Splits present; "all" joins them when all three are there, and is the only one of unsplit data."""
        present = {part.split for part in self.parts}
        ordered = tuple(split for split in SPLITS if split in present)
        return (*ordered, "all") if len(ordered) in (0, len(SPLITS)) else ordered

    @property
    def whole(self) -> bool:
        """Whether all published splits are there, or a file that holds them all: MTEB's test split of SICK-R does."""
        return "all" in self.splits or (self.layout == "mteb" and self.published and self.name == "sickr")

    def split_like(self, wanted: str = "test") -> str:
        """The split that is looked at first: the one wanted, else test, else the first there is."""
        return next((split for split in (wanted, "test") if split in self.splits), self.splits[0])

    @property
    def subset_names(self) -> tuple[str, ...]:
        """Subsets, as far as file names tell; empty for a table, where only reading finds a subset column."""
        names = tuple(dict.fromkeys(part.subset for part in self.parts if part.subset is not None))
        return names or (() if self.layout == "table" else (self.name,))

    @property
    def files(self) -> tuple[Path, ...]:
        return tuple(file for part in self.parts for file in (part.path, part.gold) if file is not None)


class OtherKindError(DataError):
    """No sentence pairs, but what another reader takes: `kind` is "retrieval set" or "labelled texts"."""

    def __init__(self, message: str, kind: str) -> None:
        super().__init__(message)
        self.kind = kind

    def __reduce__(self):
        return OtherKindError, (*self.args, self.kind)


def discover(data: str | Path) -> tuple[TaskInfo, ...]:
    """The tasks in a folder, a file, a bundled set (`BUNDLED_SETS`) or a fetched source, sorted by name.

    Only first lines are read. A name that `hold` gave is that of one task.

    When two sets of files would bear one name, each bears the path of its first file in the folder instead.
    DataError when the path is missing or holds nothing readable.
    """
    if isinstance(data, str) and data in BUNDLED_SETS:
        return (_bundled(data),)
    if (pairs := pairs_in_memory(data)) is not None:
        return (TaskInfo(pairs.task, pairs.source, MEMORY, (), published=False),)
    path = existing_path(data, BUNDLED_SETS)
    if path.is_file():
        check_kind(path)
        return tuple(_recognise(path.parent, [path], [path]))
    if not path.is_dir():
        raise DataError(f"{path}: neither a file nor a folder")
    if path.name in BUNDLED_SETS and path.resolve() == shipped(f"data/{path.name}"):
        return (_bundled(path.name),)
    files, folders = _entries(path)
    if (path / "qrels").is_dir() and any(file.name.startswith("corpus.json") for file in files):
        readers = f"`{program()} retrieve` and the page Retrieval"
        raise OtherKindError(f"{path}: a retrieval set, not sentence pairs; {readers} read it", "retrieval set")
    tasks = _recognise(path, [*files, *_below(path)], [file for file in files if _could_be_table(file)])
    if not tasks:
        inside = [folder.name for folder in folders if any(map(_could_be_table, _entries(folder)[0]))]
        name = "name it" if len(inside) == 1 else "name one, or put the files of several into one folder"
        hint = f"; its folders may hold some: {', '.join(inside[:8])} ({name})" if inside else ""
        if labelled := ", ".join(one.name for one in senteval_tasks(path)):
            readers = f"`{program()} probe` and the page Probe read them"
            found = f"labelled texts ({labelled}), not sentence pairs"
            raise OtherKindError(f"{path}: {found}; {readers}", "labelled texts")
        raise DataError(f"{path}: no sentence pairs in this folder; {LOOKED_FOR}{hint}")
    return tuple(tasks)


def choose(tasks: Sequence[T], task: str | None, data: str | File, alike: Iterable[Callable[[str], bool]] = ()) -> T:
    """The task named `task`, or the only one; else the first whose name passes one of `alike`, tried in turn.

    DataError, which lists their names, where there are several and none is named, and where there is none such.
    """
    names = ", ".join(info.name for info in tasks)
    if task is None and len(tasks) > 1:
        raise DataError(f"{data} holds {len(tasks)} tasks, choose one as `task`: {names}")
    for same in (lambda name: task in (None, name), *alike):
        for info in tasks:
            if same(info.name):
                return info
    raise DataError(f"{data} holds no task {task!r}; it holds: {names}")


def all_published(data: str | Path) -> bool:
    """Whether all that lies there is published pairs: SICK comes as .txt, and any other .txt is plain text."""
    try:
        return all(info.published for info in discover(data))
    except DataError:
        return False


def existing_path(data: str | Path, bundled: Iterable[str] = ()) -> Path:
    """The path as given, ~ expanded, or the folder of a fetched source; DataError when nothing is there.

    `bundled` are the names that could have been given instead. Where the operator says what may be read
    (`WHITELAB_DATA`), all else is refused in the same words whether or not it is there. Raises TypeError for what is no
    path.
    """
    if not isinstance(data, (str, PathLike)):
        raise TypeError(f"data must be a path or a name, such as 'demo', got {type(data).__name__}")
    check_offered(data)
    path = data_path(data)
    try:
        exists = str(data) != "" and path.exists()
    except OSError as error:  # a name too long, a folder closed to us
        raise DataError(f"{data}: cannot be opened ({error.strerror or error})") from None
    if not exists and str(data) in SOURCES:
        folder = fetched(str(data))
        if folder is None:
            raise DataError(f"{data}: not fetched yet; {program()} download {data} shows its licence and fetches it")
        return folder
    if not exists and str(data) == DEMO_SEARCH:
        raise DataError(f"{data}: the bundled search set holds no pairs; retrieve, advise and --search take it")
    if not exists:
        names = " or ".join(map(repr, bundled))
        instead = f"; give a file or folder, or {names}" if names else ""
        raise DataError(f"{data or '(empty path)'}: no such file or folder{instead}")
    return path


def file_at(data: str | Path) -> Path | None:
    """The file at a path, ~ expanded; None where there is none that may be read, whatever is in the way."""
    try:
        path = existing_path(data)
        return path if path.is_file() else None
    except (OSError, ValueError):
        return None


def data_name(data: str | Path) -> str:
    """Data as it may leave the machine: the name of its file or folder with no path before it, of pairs in memory what
    their source is called."""
    if str(data).startswith(PREFIX):
        pairs = pairs_in_memory(data)
        return pairs.source if pairs else ""
    return name_of(data)


def data_path(data: str | Path) -> Path:
    """The path with ~ expanded; DataError where the user it names has no home folder."""
    try:
        return expanded(data)
    except ValueError as error:
        raise DataError(str(error)) from None


def _recognise(folder: Path, files: Iterable[Path], tables: Iterable[Path]) -> list[TaskInfo]:
    """Tasks of the given files of a folder, sorted by name as they come; each file belongs to exactly one.

    What no benchmark claims is a table, if it is among `tables`.
    """
    left = list(files)
    tasks = []
    for find in (_senteval, _stsbenchmark, _whiteningbert, _stsb, _sick, _mteb):
        found = find(left)
        tasks += found
        claimed = {file for task in found for file in (*task.files, *task.left_out)}
        left = [file for file in left if file not in claimed]
    rest = [file for file in tables if file in left]
    tasks += [TaskInfo(stem_of(file), file.name, "table", (Part(file, "all"),), False) for file in rest]
    held = Counter(task.name for task in tasks)
    tasks = [
        replace(task, name=task.files[0].relative_to(folder).as_posix()) if held[task.name] > 1 else task
        for task in tasks
    ]
    return sorted(tasks, key=lambda task: task.name)


def _by_folder(files: Iterable[Path]) -> dict[Path, list[Path]]:
    return grouped((file.parent, file) for file in files)


def _senteval(files: list[Path]) -> list[TaskInfo]:
    """A year of STS: every STS.input.*.txt that has its STS.gs.*.txt beside it, a subset each."""
    tasks = []
    for folder, inside in _by_folder(files).items():
        year = SENTEVAL_YEAR.search(folder.resolve().name)
        name = f"sts{year['year']}" if year else folder.resolve().name
        parts, notes = [], []
        for file in inside:
            match = SENTEVAL_INPUT.fullmatch(file.name)
            if match and (name, match["subset"]) in LEFT_OUT:
                notes.append(LEFT_OUT[name, match["subset"]])
            elif match:
                gold = file.with_name(f"STS.gs.{match['subset']}.txt")
                parts.append(Part(file, "test", match["subset"], gold if gold.is_file() else None))
        if any(part.gold for part in parts):
            title = TITLES.get(name, name)
            tasks.append(TaskInfo(name, title, "senteval", tuple(parts), name in TITLES, tuple(notes)))
    return tasks


def _stsbenchmark(files: list[Path]) -> list[TaskInfo]:
    """The STS benchmark as it was published and as SentEval tokenised it: WhiteningBERT's columns, split by split."""
    tasks = []
    for inside in _by_folder(files).values():
        matches = [(file, STSBENCHMARK_NAME.fullmatch(file.name)) for file in inside]
        parts = [Part(file, match["split"]) for file, match in matches if match]
        if any(_has_seven_columns(part.path, or_more=True) for part in parts):
            tasks += _split_task("stsb", "stsbenchmark", parts)
    return tasks


def _whiteningbert(files: list[Path]) -> list[TaskInfo]:
    matches = [(file, WHITENINGBERT_NAME.fullmatch(file.name)) for file in files]
    groups = grouped(
        ((file.parent, match["task"]), Part(file, match["split"], match["subset"])) for file, match in matches if match
    )
    tasks = []
    for (_, name), parts in groups.items():
        # One look-alike is enough: an empty or damaged subset file must not drop out of its task unnoticed.
        if any(_has_seven_columns(part.path) for part in parts):
            name = WHITENINGBERT_TASKS.get(name, name)
            tasks.append(TaskInfo(name, TITLES.get(name, name), "whiteningbert", tuple(parts), name in TITLES))
    return tasks


def _has_seven_columns(file: Path, or_more: bool = False) -> bool:
    rows = [line.split("\t") for line in probe_lines(file)[:20]]
    return any((len(row) == 7 or or_more and len(row) > 7) and as_number(row[4]) is not None for row in rows)


def _stsb(files: list[Path]) -> list[TaskInfo]:
    tasks = []
    for inside in _by_folder(files).values():
        matches = [(file, STSB_NAME.fullmatch(file.name)) for file in inside]
        tasks += _split_task("stsb", "stsb", [Part(file, match["split"]) for file, match in matches if match])
    return tasks


def _sick(files: list[Path]) -> list[TaskInfo]:
    tasks = []
    for inside in _by_folder(files).values():
        named = [file for file in inside if file.name.lower() in SICK_NAMES]
        tasks += _split_task("sickr", "sick", [Part(file, SICK_NAMES[file.name.lower()]) for file in named])
    return tasks


def _mteb(files: list[Path]) -> list[TaskInfo]:
    """A repository's files by split: MTEB's by the folder's name, any other folder with two splits or more."""
    groups: dict[Path, list[Part]] = {}
    for file in files:
        match, home = MTEB_FILE.fullmatch(file.name), file.parent
        split = match["split"] if match else home.name if MTEB_SHARD.fullmatch(file.name) else ""
        if split not in MTEB_SPLITS:
            continue
        home = home if match else home.parent
        home = home.parent if home.name in ("data", "default") else home
        groups.setdefault(home, []).append(Part(file, MTEB_SPLITS[split]))
    tasks = []
    for home, parts in groups.items():
        folder = home.resolve().name
        name, published = MTEB_TASKS.get(folder, folder), folder in MTEB_TASKS
        if published or len({part.split for part in parts}) > 1:
            read = _in_one_form(parts)
            older = tuple(part.path for part in parts if part not in read)
            notes = tuple(f"{file.relative_to(home)} left out: its split is read in another form" for file in older)
            tasks.append(TaskInfo(name, TITLES.get(name, name), "mteb", read, published, notes, older))
    return tasks


def _in_one_form(parts: list[Part]) -> tuple[Part, ...]:
    """Each split from one folder in one format: a repository that came to hold Parquet may keep what it held before."""
    newest: dict[str, tuple[bool, Path, str]] = {}
    for part in parts:
        newest[part.split] = min(_form(part), newest.get(part.split, _form(part)))
    return tuple(part for split in SPLITS for part in parts if part.split == split and _form(part) == newest[split])


def _form(part: Part) -> tuple[bool, Path, str]:
    """What the files of a split have in common, Parquet first."""
    suffix = suffix_of(part.path)
    return suffix != ".parquet", part.path.parent, suffix


def _split_task(name: str, layout: str, parts: list[Part]) -> list[TaskInfo]:
    ordered = tuple(sorted(parts, key=lambda part: SPLITS.index(part.split)))
    return [TaskInfo(name, TITLES[name], layout, ordered, published=True)] if ordered else []


def _bundled(name: str) -> TaskInfo:
    folder = shipped(f"data/{name}")
    files = sorted(folder.glob("*.tsv"), key=lambda file: file.name)
    if not files:
        raise DataError(f"{folder}: the demonstration set is missing; expected .tsv files there")
    return TaskInfo(
        name,
        BUNDLED_SETS[name],
        DEMO,
        tuple(Part(file, "all", file.stem) for file in files),
        published=False,
    )


def _entries(folder: Path) -> tuple[list[Path], list[Path]]:
    try:
        visible = sorted(entry for entry in folder.iterdir() if not entry.name.startswith((".", "~")))
    except OSError as error:
        raise DataError(f"{folder}: cannot be read ({error.strerror or error})") from None
    return [entry for entry in visible if entry.is_file()], [entry for entry in visible if entry.is_dir()]


def _below(folder: Path, depth: int = DEPTH, repository: bool = False) -> list[Path]:
    """The files in the folders of benchmarks below this one; `repository`: this one is part of MTEB's."""
    repository = repository or folder.resolve().name in MTEB_TASKS
    found = []
    for inner in _entries(folder)[1] if depth else ():
        known = BENCHMARK_FOLDER.fullmatch(inner.name) or inner.name in MTEB_TASKS
        if known or (repository and inner.name in MTEB_INSIDE):
            found += [*_entries(inner)[0], *_below(inner, depth - 1, repository)]
    return found


def _could_be_table(file: Path) -> bool:
    """By extension; a .txt, which may as well be a readme, by having columns. A .json rarely is: name it itself."""
    suffix = suffix_of(file)
    if suffix == ".json":
        return False
    if suffix != ".txt" or file.name.lower() in SICK_NAMES:
        return suffix in SUFFIXES
    # SemEval's readmes are indented with tabs, which looks like columns.
    return "readme" not in file.name.lower() and sniff(probe_lines(file)[:50]) is not None
