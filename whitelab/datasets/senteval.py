"""SentEval's seven transfer tasks, read as SentEval reads them (senteval/{binary,sst,trec,mrpc}.py).

Its encodings, its numbers for the classes, and texts split at white space and joined by single spaces. Lines end at
a line feed only, also in Latin-1, where SentEval splits at further characters. An empty line of a file with one text
a line is a full stop, as its batcher has it.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from whitelab.base.wording import quantity
from whitelab.datasets.columns import check_width, shown, text_cell
from whitelab.datasets.labels import LabelledInfo, LabelledRow
from whitelab.datasets.pairs import DataError, Problem
from whitelab.datasets.tables import read_lines


@dataclass(frozen=True)
class SentEval:
    """One task of SentEval's `downstream` folder. classes: in the order of SentEval's own numbers."""

    title: str
    folder: str
    files: tuple[tuple[str, str], ...]  # file, and what it stands for: a class or a split
    classes: tuple[str, ...]
    parse: Callable[[str], LabelledRow] | None = None  # None: one file a class
    latin: bool = False
    header: bool = False
    pairs: bool = False

    def read(self, info: LabelledInfo) -> tuple[list[LabelledRow], list[Problem], list[str]]:
        rows, problems, blank = [], [], 0
        for path, meaning in info.parts:
            if not path.is_file():
                raise DataError(f"{path}: this file of SentEval's {info.name} is missing")
            for number, line in enumerate(read_lines(path, self.parse is None, self.latin), start=1):
                if self.header and number == 1:
                    continue
                try:
                    if self.parse is None and not line.strip():
                        rows.append(LabelledRow(".", None, meaning, "", blank=True))
                        blank += 1
                    elif self.parse is None:
                        rows.append(LabelledRow(_joined(line), None, meaning, ""))
                    else:
                        rows.append(self.parse(line)._replace(split=meaning))
                except ValueError as error:
                    problems.append(Problem(str(path), number, str(error)))
        lines = quantity(blank, "empty line is", "empty lines are")
        return rows, problems, [f'{lines} read as ".", as SentEval does'] if blank else []


def _joined(text: str, what: str = "text") -> str:
    """Words joined by single spaces, as SentEval hands them to an encoder."""
    return text_cell(" ".join(text.split()), what)


def _one_of(label: str, classes: tuple[str, ...]) -> str:
    if label not in classes:
        raise ValueError(f"label {shown(label)} is none of {', '.join(classes)}")
    return label


def _sst(line: str) -> LabelledRow:
    cells = line.strip().split("\t")
    check_width(cells, 2, wanted="a text, a tab and 0 or 1 belong")
    return LabelledRow(_joined(cells[0]), None, _one_of(cells[1].strip(), ("0", "1")), "")


def _trec(line: str) -> LabelledRow:
    label, colon, rest = line.strip().partition(":")
    if not colon:
        raise ValueError("no colon: a line is LABEL:sublabel, a space, and the question")
    return LabelledRow(_joined(rest.partition(" ")[2], "question"), None, _one_of(label, TREC_CLASSES), "")


def _mrpc(line: str) -> LabelledRow:
    cells = line.strip().split("\t")
    check_width(cells, 5)
    label = _one_of(cells[0].strip(), ("0", "1"))
    return LabelledRow(_joined(cells[3], "first text"), _joined(cells[4], "second text"), label, "")


TREC_CLASSES = ("ABBR", "DESC", "ENTY", "HUM", "LOC", "NUM")
_POLARITY = ("negative", "positive")

# SentEval, senteval/{binary,sst,trec,mrpc}.py: file names, encodings and label numbers.
SENTEVAL: dict[str, SentEval] = {
    "MR": SentEval(
        "Movie reviews",
        "MR",
        (("rt-polarity.pos", "positive"), ("rt-polarity.neg", "negative")),
        _POLARITY,
        latin=True,
    ),
    "CR": SentEval(
        "Customer reviews",
        "CR",
        (("custrev.pos", "positive"), ("custrev.neg", "negative")),
        _POLARITY,
        latin=True,
    ),
    "SUBJ": SentEval(
        "Subjectivity",
        "SUBJ",
        (("subj.objective", "objective"), ("subj.subjective", "subjective")),
        ("subjective", "objective"),
        latin=True,
    ),
    "MPQA": SentEval(
        "Opinion polarity",
        "MPQA",
        (("mpqa.pos", "positive"), ("mpqa.neg", "negative")),
        _POLARITY,
        latin=True,
    ),
    "SST2": SentEval(
        "Stanford sentiment, binary",
        "SST/binary",
        (("sentiment-train", "train"), ("sentiment-dev", "dev"), ("sentiment-test", "test")),
        ("0", "1"),
        _sst,
    ),
    "TREC": SentEval(
        "Question types",
        "TREC",
        (("train_5500.label", "train"), ("TREC_10.label", "test")),
        TREC_CLASSES,
        _trec,
        latin=True,
    ),
    "MRPC": SentEval(
        "Paraphrases",
        "MRPC",
        (("msr_paraphrase_train.txt", "train"), ("msr_paraphrase_test.txt", "test")),
        ("0", "1"),
        _mrpc,
        header=True,
        pairs=True,
    ),
}


def senteval_tasks(folder: Path) -> tuple[LabelledInfo, ...]:
    """Tasks of which at least one file is there, in WhitenedCSE's order; the folder may be a level above them."""
    for root in (folder, folder / "downstream", folder / "data" / "downstream"):
        found = []
        for name, task in SENTEVAL.items():
            own = folder.resolve().parts[-len(task.folder.split("/")) :] == tuple(task.folder.split("/"))
            place = folder if own else root / task.folder
            parts = tuple((place / file, meaning) for file, meaning in task.files)
            if any(path.is_file() for path, _ in parts):
                found.append(LabelledInfo(name, task.title, "senteval", parts, task.pairs))
        if found:
            return tuple(found)
    return ()
