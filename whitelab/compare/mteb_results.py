"""Scores in MTEB's result layout: written from a comparison, and read to stand beside one.

A model's results are JSON files, one a task, in MODEL/REVISION/TASK.json (a name's / as __), with model_meta.json
beside them. `scores` has for every split a list of entries with hf_subset, languages, main_score and the metrics of
the task's kind, from -1 to 1: for STS cosine_spearman, over all pairs. Files from before mteb 1.11 have
mteb_dataset_name, and cos_sim.spearman for every split. Muennighoff et al. 2023; the layout is `mteb.TaskResult`'s.
"""

import json
import math
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from hashlib import blake2b
from pathlib import Path

import whitelab
from whitelab.base.user_folders import expanded
from whitelab.compare.grid import AVERAGE, Cell
from whitelab.compare.presets import PRESETS
from whitelab.datasets import DataError
from whitelab.datasets.layouts import PUBLISHED_PAIRS
from whitelab.datasets.pairs import SPLITS
from whitelab.datasets.sources import MTEB
from whitelab.store.aside import write_aside

# The seven tasks as MTEB names them; any other name is kept.
NAMES = {"stsb": "STSBenchmark", "sickr": "SICK-R"} | {f"sts{year}": f"STS{year}" for year in range(12, 17)}
TASKS = {name: task for task, name in NAMES.items()}
LIKE_MTEB = tuple(name for name, preset in PRESETS.items() if preset.aggregate == "all")  # one Spearman over all pairs
META, METRIC = "model_meta.json", "cosine_spearman"
LANGUAGES = ["eng-Latn"]  # of the seven tasks; what language other data is in is not known
_SHORT = 24  # characters of a revision, which may be a hash of 40
NOT_A_RESULT = "must be a result of MTEB: a JSON object with task_name and scores, or mteb_dataset_name"


@dataclass(frozen=True)
class MtebScore:
    """One STS score out of a result file: `spearman` x 100 of `task` (whitelab's name where it has one).

    `model` and `revision` are said by model_meta.json, or by the folders that the file lies in; `version` is mteb's.
    """

    model: str
    revision: str
    task: str
    split: str
    subset: str
    spearman: float
    version: str

    def as_dict(self) -> dict:
        """A JSON-ready record."""
        return dict(vars(self))


def read_mteb(path: str | Path) -> tuple[MtebScore, ...]:
    """The STS scores in a result file, or in all below a folder, by model, revision and task.

    Files that hold no `cosine_spearman`, of other kinds of tasks, are passed over, and so is what is no result in a
    folder. Raises DataError where there is nothing, where two files say different scores of the same, and where the one
    file given is no result of MTEB.
    """
    place = expanded(path)
    if place.is_file():
        found = list(_scores(place))
    elif place.is_dir():
        files = (file for file in sorted(place.rglob("*.json")) if file.name != META)
        found = [score for file in files if _is_result(file) for score in _scores(file)]
    else:
        raise DataError(f"{path}: no such file or folder of MTEB results")
    if not found:
        raise DataError(f"{path}: holds no {METRIC} of any task in MTEB's result layout")
    known: dict[tuple[str, ...], MtebScore] = {}
    for one in found:
        what = one.model, one.revision, one.task, one.split, one.subset
        if abs(known.setdefault(what, one).spearman - one.spearman) > 1e-3:  # copies may be rounded
            raise DataError(
                f"{path}: two files of {one.model} at revision {one.revision!r} say different scores of {one.task} "
                f"({one.subset}, {one.split}): {known[what].spearman:.4f} and {one.spearman:.4f}"
            )
    return tuple(known[what] for what in sorted(known))


def mteb_rows(scores: Iterable[MtebScore], tasks: Sequence[str]) -> list[tuple[str, str, dict]]:
    """A row (model, `MTEB REVISION`, {task: score}) for each revision, with its `avg` where every other task is there.

    Of the test split. Of a task in several languages it is the mean over its subsets, as MTEB has it. A revision is
    shortened where that tells it from the model's others.
    """
    held: dict[tuple[str, str], dict[str, list[float]]] = {}
    for one in scores:
        if one.split == "test" and one.task in tasks:
            by_task = held.setdefault((one.model, one.revision), {})
            by_task.setdefault(one.task, []).append(one.spearman)
    rows, short = [], Counter((model, revision[:_SHORT]) for model, revision in held)
    for (model, revision), by_task in held.items():
        means: dict[str, float | None] = {task: math.fsum(values) / len(values) for task, values in by_task.items()}
        wanted = [task for task in tasks if task != AVERAGE]
        if AVERAGE in tasks and all(task in means for task in wanted):
            means[AVERAGE] = math.fsum(means[task] for task in wanted) / len(wanted)
        shown = revision[:_SHORT] if short[model, revision[:_SHORT]] == 1 else revision
        rows.append((model, f"MTEB {shown}".strip(), means))
    return rows


def check_mteb_aggregate(aggregate: str) -> None:
    """Raises ValueError for scores that do not stand for a task as MTEB's do, by one Spearman over all its pairs."""
    if aggregate != "all":
        raise ValueError(
            f"aggregate={aggregate!r} must be all for MTEB, whose score of a task is one Spearman over all its pairs: "
            f"choose the preset {' or '.join(LIKE_MTEB)}"
        )


def write_mteb(cells: Iterable[Cell], folder: str | Path) -> tuple[Path, ...]:
    """Write every score of a comparison to MODEL/SETTING/TASK.json below `folder`; the paths written.

    The setting stands where MTEB has a model's revision. A score of the test set of SICK-R alone is not one of MTEB's
    SICK-R, which is all of SICK, and is written as `sickr-test`. A file of the same name is replaced.
    `mteb.TaskResult` reads them; whitelab's own protocol is there under `whitelab`, which mteb passes over. Raises
    ValueError as `check_mteb_aggregate`, DataError where the folder cannot be written.
    """
    scored = [cell for cell in cells if cell.spearman is not None and cell.protocol and math.isfinite(cell.spearman)]
    for cell in scored:
        check_mteb_aggregate(cell.protocol.setting.aggregate)
    written = []
    for cell in scored:
        name, revision = _task_name(cell), _plain(str(cell.setting))
        home = expanded(folder) / _plain(cell.model.strip("/").replace("/", "__")) / revision
        path = home / f"{_plain(name, told=True)}.json"
        try:
            home.mkdir(parents=True, exist_ok=True)
            write_aside(path, _json(_record(cell, name)))
            write_aside(home / META, _json({"name": cell.model, "revision": revision}))
        except OSError as error:
            raise DataError(f"{path}: cannot be written ({error.strerror or error})") from None
        written.append(path)
    return tuple(written)


def _task_name(cell: Cell) -> str:
    """MTEB's name of the task where the pairs are MTEB's; of a part of what is whole there, a name of its own."""
    split = cell.protocol.origin.split
    whole = sum(PUBLISHED_PAIRS.get((cell.task, one), 0) for one in SPLITS)  # MTEB's one split has the pairs of all
    if cell.task in PRESETS["mteb"].whole and split != "all" and not (cell.score and cell.score.pairs == whole):
        return f"{cell.task}-{split}"
    return NAMES.get(cell.task, cell.task)


def _record(cell: Cell, name: str) -> dict:
    """A result file of one score."""
    value, split = cell.spearman / 100, cell.protocol.origin.split
    known = name in TASKS
    entry = {METRIC: value, "main_score": value, "hf_subset": "default", "languages": LANGUAGES if known else []}
    return {
        "dataset_revision": MTEB[cell.task][1] if known else "none",
        "task_name": name,
        "mteb_version": None,  # it was not computed by mteb
        "scores": {split if split != "all" else "test": [entry]},
        "evaluation_time": None,
        "kg_co2_emissions": None,
        "whitelab": {"version": whitelab.__version__, "protocol": cell.protocol.as_dict()},
    }


def _plain(name: str, told: bool = False) -> str:
    """A name for a file or folder, in the letters that every system takes.

    A digest of what it was goes with one that was in other letters, or where it is to be `told` from all others.
    """
    plain = re.sub(r"[^A-Za-z0-9.=_@+-]+", "_", name).strip(".") or "_"
    keeps = name == plain if told else name.isascii()
    return plain if keeps else f"{plain}-{blake2b(name.encode(), digest_size=4).hexdigest()}"


def _json(record: Mapping) -> bytes:
    return json.dumps(record, indent=2, ensure_ascii=False).encode()


def _read(path: Path) -> dict | None:
    """A JSON object, or None for anything else."""
    try:
        data = json.loads(path.read_text("utf-8"))
    except (OSError, ValueError, RecursionError):
        return None
    return data if isinstance(data, dict) else None


def _is_result(path: Path) -> bool:
    data = _read(path) or {}
    return isinstance(data.get("scores"), dict) or "mteb_dataset_name" in data


def _scores(path: Path) -> Iterator[MtebScore]:
    """The STS scores of one file."""
    data = _read(path)
    if data is None or not _is_result(path):
        raise DataError(f"{path}: {NOT_A_RESULT}")
    old = "mteb_dataset_name" in data
    name = str(data["mteb_dataset_name"] if old else data.get("task_name", path.stem))
    meta = _read(path.parent / META) or {}
    model = str(meta.get("name") or path.parent.parent.name.replace("__", "/"))
    revision = str(meta.get("revision") or path.parent.name)
    for split, subset, value in _before_1_11(data) if old else _entries(data["scores"]):
        if isinstance(value, bool) or not isinstance(value, (int, float)) or not -1 <= value <= 1:
            raise DataError(f"{path}: {METRIC} of {split} must be a number from -1 to 1, got {value!r}")
        version = str(data.get("mteb_version") or "")
        yield MtebScore(model, revision, TASKS.get(name, name), split, subset, 100 * value, version)


def _entries(scores: Mapping) -> Iterator[tuple[str, str, object]]:
    """Split, subset and score of every entry that has one."""
    for split, entries in scores.items():
        for entry in entries if isinstance(entries, list) else ():
            if isinstance(entry, dict) and METRIC in entry:
                yield str(split), str(entry.get("hf_subset", "default")), entry[METRIC]


def _before_1_11(data: Mapping) -> Iterator[tuple[str, str, object]]:
    """The same of the older layout, with subsets below a split where a task has several."""
    for split, value in data.items():
        if not isinstance(value, dict):
            continue
        for subset, metrics in ({"default": value} if "cos_sim" in value else value).items():
            cosine = metrics.get("cos_sim") if isinstance(metrics, dict) else None
            if isinstance(cosine, dict) and "spearman" in cosine:
                yield str(split), str(subset), cosine["spearman"]
