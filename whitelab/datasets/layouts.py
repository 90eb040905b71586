"""Which tasks a place holds: the layouts benchmarks come in, and plain tables."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, replace
from pathlib import Path

from .pairs import DataError
from .tables import SUFFIXES, as_number, probe_lines, sniff

DEMO = "demo"
DEMO_FOLDER = Path(__file__).resolve().parents[2] / "data" / "demo"
SPLITS = ("train", "dev", "test")

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

LOOKED_FOR = (
    "looked for TASK-test.csv with TASK.SUBSET-test.csv, stsb-en-test.csv, SICK_test_annotated.txt, "
    "and tables in .csv, .tsv, .txt, .jsonl or .parquet"
)


@dataclass(frozen=True)
class Part:
    """One file of a task: its split ("all" when it has none) and its subset (None: the whole task)."""

    path: Path
    split: str
    subset: str | None = None


@dataclass(frozen=True)
class TaskInfo:
    """A task that can be loaded; layout: whiteningbert, stsb, sick, table or demo."""

    name: str
    title: str
    layout: str
    parts: tuple[Part, ...]
    published: bool

    @property
    def splits(self) -> tuple[str, ...]:
        """Splits present; "all" joins them when all three are there, and is the only one of unsplit data."""
        present = {part.split for part in self.parts}
        ordered = tuple(split for split in SPLITS if split in present)
        return (*ordered, "all") if len(ordered) in (0, len(SPLITS)) else ordered

    @property
    def subset_names(self) -> tuple[str, ...]:
        """Subsets, as far as file names tell; empty for a table, where only reading finds a subset column."""
        names = tuple(dict.fromkeys(part.subset for part in self.parts if part.subset is not None))
        return names or (() if self.layout == "table" else (self.name,))

    @property
    def files(self) -> tuple[Path, ...]:
        return tuple(part.path for part in self.parts)


def discover(data: str | Path) -> tuple[TaskInfo, ...]:
    """The tasks in a folder, a file, or the bundled "demo", sorted by name; only first lines are read.

    When two sets of files would bear one name, each bears the name of its first file instead. DataError when
    the path is missing or holds nothing readable.
    """
    if data == DEMO and isinstance(data, str):
        return (_demo(),)
    path = existing_path(data)
    if path.is_file():
        if path.suffix.lower() not in SUFFIXES:
            raise DataError(f"{path}: files of this kind are not read; use {', '.join(SUFFIXES)}")
        return tuple(_recognise([path]))
    if not path.is_dir():
        raise DataError(f"{path}: neither a file nor a folder")
    if path.resolve() == DEMO_FOLDER:
        return (_demo(),)
    files, folders = _entries(path)
    tasks = _recognise([file for file in files if _could_be_table(file)])
    if not tasks:
        inside = [folder.name for folder in folders if any(map(_could_be_table, _entries(folder)[0]))]
        hint = f"; its folders may hold some: {', '.join(inside[:8])}" if inside else ""
        raise DataError(f"{path}: no sentence pairs in this folder; {LOOKED_FOR}{hint}")
    return tuple(tasks)


def existing_path(data: str | Path) -> Path:
    """The path as given, ~ expanded; DataError when nothing is there."""
    try:
        path = Path(data).expanduser()
        exists = str(data) != "" and path.exists()
    except (OSError, RuntimeError) as error:  # a name too long, a folder closed to us, an unknown ~user
        raise DataError(f"{data}: cannot be opened ({getattr(error, 'strerror', None) or error})") from None
    if not exists:
        raise DataError(f"{data or '(empty path)'}: no such file or folder; give a file or folder, or {DEMO!r}")
    return path


def _recognise(files: Iterable[Path]) -> list[TaskInfo]:
    """Tasks of the given files, sorted by name as they come; each file belongs to exactly one."""
    left = list(files)
    tasks = []
    for find in (_whiteningbert, _stsb, _sick):
        found = find(left)
        tasks += found
        claimed = {file for task in found for file in task.files}
        left = [file for file in left if file not in claimed]
    tasks += [TaskInfo(file.stem, file.name, "table", (Part(file, "all"),), False) for file in left]
    held = Counter(task.name for task in tasks)
    tasks = [replace(task, name=task.files[0].name) if held[task.name] > 1 else task for task in tasks]
    return sorted(tasks, key=lambda task: task.name)


def _whiteningbert(files: list[Path]) -> list[TaskInfo]:
    groups: dict[str, list[Part]] = {}
    for file in files:
        match = WHITENINGBERT_NAME.fullmatch(file.name)
        if match:
            groups.setdefault(match["task"], []).append(Part(file, match["split"], match["subset"]))
    tasks = []
    for name, parts in sorted(groups.items()):
        # One look-alike is enough: an empty or damaged subset file must not drop out of its task unnoticed.
        if any(_has_seven_columns(part.path) for part in parts):
            name = WHITENINGBERT_TASKS.get(name, name)
            tasks.append(TaskInfo(name, TITLES.get(name, name), "whiteningbert", tuple(parts), name in TITLES))
    return tasks


def _has_seven_columns(file: Path) -> bool:
    rows = [line.split("\t") for line in probe_lines(file)[:20]]
    return any(len(row) == 7 and as_number(row[4]) is not None for row in rows)


def _stsb(files: list[Path]) -> list[TaskInfo]:
    matches = [(file, STSB_NAME.fullmatch(file.name)) for file in files]
    parts = [Part(file, match["split"]) for file, match in matches if match]
    return _split_task("stsb", "stsb", parts)


def _sick(files: list[Path]) -> list[TaskInfo]:
    parts = [Part(file, SICK_NAMES[file.name.lower()]) for file in files if file.name.lower() in SICK_NAMES]
    return _split_task("sickr", "sick", parts)


def _split_task(name: str, layout: str, parts: list[Part]) -> list[TaskInfo]:
    ordered = tuple(sorted(parts, key=lambda part: SPLITS.index(part.split)))
    return [TaskInfo(name, TITLES[name], layout, ordered, published=True)] if ordered else []


def _demo() -> TaskInfo:
    files = sorted(DEMO_FOLDER.glob("*.tsv"), key=lambda file: file.name)
    if not files:
        raise DataError(f"{DEMO_FOLDER}: the demonstration set is missing; expected .tsv files there")
    return TaskInfo(
        DEMO,
        "Demonstration set",
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


def _could_be_table(file: Path) -> bool:
    """By extension; a .txt, which may as well be a readme, by having columns. A .json rarely is: name it itself."""
    suffix = file.suffix.lower()
    if suffix == ".json":
        return False
    if suffix != ".txt" or file.name.lower() in SICK_NAMES:
        return suffix in SUFFIXES
    return sniff(probe_lines(file)[:50]) is not None
