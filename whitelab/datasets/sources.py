"""Which published data can be fetched, on what terms, and where it lies once it is here.

Facts as of the pinned revisions, read from the repositories' pages and from mteb's task files. Nothing here uses
the network; `hub.fetch` does.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path

from whitelab.datasets.pairs import DataError

RECORD = ".whitelab.json"  # in every folder that was fetched: from where, when, and with which checksums
SPLIT_FILES = {"train": "train.jsonl.gz", "dev": "validation.jsonl.gz", "test": "test.jsonl.gz"}


@dataclass(frozen=True)
class Remote:
    """Files of a dataset repository on the Hugging Face hub at one commit, and about how many bytes they are."""

    repo: str
    revision: str
    files: tuple[str, ...]
    size: int


@dataclass(frozen=True)
class Source:
    """Something to fetch. `tasks`: task -> splits. `terms`: what its licences ask, to be read before fetching.

    `wanted`: of an archive, only names that hold one of these folders are kept; empty keeps everything.
    """

    name: str
    title: str
    remotes: tuple[Remote, ...]
    tasks: dict[str, tuple[str, ...]]
    licence: str
    terms: str
    home: str
    wanted: tuple[str, ...] = ()

    @property
    def size(self) -> int:
        """About how many bytes are fetched."""
        return sum(remote.size for remote in self.remotes)


SICK_TERMS = (
    "SICK (Marelli et al. 2014) is licensed CC BY-NC-SA 3.0: name its authors, use it for nothing commercial, and "
    "share what you make of it on the same terms."
)
STS_TERMS = (
    "No licence is stated for the SemEval STS pairs. Their sentences come from news, captions, forums and other "
    "corpora, among them Microsoft Research's paraphrase and video corpora and the Stack Exchange data dump, whose own "
    "terms go on to hold."
)

# task: (repository, commit, splits, bytes). MTEB's own pins, but for SICK-R's splits, see `loading`.
MTEB = {
    "stsb": ("stsbenchmark-sts", "b0fddb56ed78048fa8b90373c8a3cfc37b684831", ("train", "dev", "test"), 427_600),
    "sickr": ("sickr-sts", "20a6d6f312dd54037fe07a32d58e5e168867909d", ("test",), 175_000),
    "sts12": ("sts12-sts", "a0d554a64d88156834ff5ae9920b964011b16384", ("train", "test"), 250_000),
    "sts13": ("sts13-sts", "7e90230a92c190f1bf69ae9002b8cea547a64cca", ("test",), 60_200),
    "sts14": ("sts14-sts", "6031580fec1f6af667f0bd2da0a551cf4f0b2375", ("test",), 145_000),
    "sts15": ("sts15-sts", "ae752c7c21bf194d8b67fd573edf7ae58183cbe3", ("test",), 116_000),
    "sts16": ("sts16-sts", "4d8694f8f0e0100860b497b999b3dbed754a0513", ("test",), 46_200),
}


def _mteb_remote(task: str) -> Remote:
    repo, commit, splits, size = MTEB[task]
    return Remote(f"mteb/{repo}", commit, tuple(SPLIT_FILES[split] for split in splits), size)


def _mteb_source(task: str) -> Source:
    sick = task == "sickr"
    return Source(
        name=f"mteb-{task}",
        title=f"{MTEB[task][0]} as MTEB has it",
        remotes=(_mteb_remote(task),),
        tasks={task: MTEB[task][2]},
        licence="CC BY-NC-SA 3.0" if sick else "none stated",
        terms=SICK_TERMS if sick else STS_TERMS,
        home=f"https://huggingface.co/datasets/mteb/{MTEB[task][0]}",
    )


_SENTEVAL = Source(
    name="senteval",
    title="The seven STS tasks as SimCSE's SentEval has them",
    remotes=(
        Remote(
            "princeton-nlp/datasets-for-simcse",
            "e145e8bb659b2aa2669f32ef79cb4cdef6c58fef",
            ("senteval.tar",),
            89_800_000,
        ),
    ),
    tasks={
        "stsb": ("train", "dev", "test"),
        "sickr": ("train", "dev", "test"),
        **{f"sts{year}": ("test",) for year in range(12, 17)},
    },
    licence="SICK: CC BY-NC-SA 3.0; the rest: none stated",
    terms=f"{STS_TERMS} {SICK_TERMS}",
    home="https://huggingface.co/datasets/princeton-nlp/datasets-for-simcse",
    wanted=("STS", "SICK"),  # the archive holds a dozen other tasks, ten times as large
)

_MTEB = Source(
    name="mteb",
    title="The seven STS tasks as MTEB has them",
    remotes=tuple(_mteb_remote(task) for task in MTEB),
    tasks={task: splits for task, (_, _, splits, _) in MTEB.items()},
    licence="SICK: CC BY-NC-SA 3.0; the rest: none stated",
    terms=f"{STS_TERMS} {SICK_TERMS}",
    home="https://huggingface.co/mteb",
)

SOURCES = {one.name: one for one in (_SENTEVAL, _MTEB, *map(_mteb_source, MTEB))}


def source_of(name: str) -> Source:
    """The source of this name; DataError lists the names there are."""
    if name not in SOURCES:
        raise DataError(f"source={name!r} must be one of {', '.join(SOURCES)}")
    return SOURCES[name]


def data_root() -> Path:
    """Where fetched data lies: `data` in $WHITELAB_CACHE or the user's cache folder."""
    from whitelab.store.embedding_store import StoreError, default_root

    try:
        return default_root() / "data"
    except StoreError as error:
        raise DataError(str(error)) from None


def record_of(folder: Path) -> dict | None:
    """The record of a fetched folder, None where it is none; it is written last, so the folder is whole."""
    try:
        record = json.loads((folder / RECORD).read_text("utf-8"))
    except (OSError, ValueError):
        return None
    return record if isinstance(record, dict) else None


def fetched(name: str) -> Path | None:
    """The folder of a source that was fetched into the cache, else None."""
    folder = data_root() / name
    record = record_of(folder) if name in SOURCES else None
    return folder if record and record.get("source") == name else None
