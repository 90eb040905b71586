"""Vectors that were made elsewhere, with their pairs and gold scores: a space without a model.

Which array is what is told by its name (`ROLES`), and whether it holds rows of vectors, row numbers or text by its
shape and type. The three ways to give a task:

    first [p, d] or [l, p, d], second alike, gold [p]               a vector for each side of each pair
    values [n, d] or [l, n, d], first [p], second [p], gold [p]     unique vectors, and each pair's two row numbers
    values, sentences [n], sentence1 [p], sentence2 [p], gold [p]   the same, each pair by its two sentences

`subset [p]` is optional, and so are sentences in the first two, and `origin`, JSON text as `write_npz` has it. Maps can
be fitted on all vectors (`fit=vectors`), also of `values` alone, which nothing scores.
"""

import hashlib
import io
import json
import shlex
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from io import BufferedIOBase
from pathlib import Path
from typing import NamedTuple
from zipfile import BadZipFile, ZipFile

import numpy as np
import torch

import whitelab
from whitelab.base import upload_limits
from whitelab.base.checks import LARGEST
from whitelab.base.installation import option, program
from whitelab.base.lazy import cached_property
from whitelab.base.wording import quantity
from whitelab.datasets import DataError, SentencePairs, Upload
from whitelab.datasets.arrays import Named, read_arrays, text_arrays
from whitelab.datasets.columns import SCORE_NAMES, SENTENCE_NAMES, SUBSET_NAMES, different, plain_name
from whitelab.datasets.pairs import gold_notes, repeat_note
from whitelab.datasets.tables import as_number
from whitelab.encoding.embeddings import EVERY, LayerEmbeddings, LayerRows, Origin, with_pairs
from whitelab.encoding.pooling import GIVEN

# Names as `plain_name` gives them, without a word for vectors or indices: first_embeddings is first.
SIDES = {
    "first": ("first", "a", "1", *(a for a, _ in SENTENCE_NAMES)),
    "second": ("second", "b", "2", *(b for _, b in SENTENCE_NAMES)),
}
ROLES = {
    "values": ("values", "vectors", "vector", "embeddings", "embedding"),
    "gold": SCORE_NAMES,
    "subset": SUBSET_NAMES,
    "subset_names": ("subsetnames",),
    "sentences": ("sentences", "sentence", "texts", "text"),
}
_UNPAIRED = {"values", "sentences"}
ORIGIN = "origin"
_SAID = 120  # characters of an origin that are said
WORDS = ("embeddings", "embedding", "vectors", "vector", "index", "indices", "rows")
NEEDED = (
    "arrays first and second [p, d] with gold [p], or values [n, d] with row numbers first and second [p] and gold "
    "[p]; of several layers [l, p, d] or [l, n, d], layers first"
)


@dataclass(frozen=True, eq=False)
class Vectors:
    """A task whose vectors were given. Rows of `space` are `pairs.sentences`, names such as `first 12` without text.

    It carries all vectors, each once, as the text `vectors` to fit on.
    has_text: whether the sentences are known. It has a Protocol's `name`, with what the file says of the encoder, and
    `dtype` and `max_length` where an encoder would have them.
    """

    name: str
    pairs: SentencePairs
    space: LayerEmbeddings
    has_text: bool

    pooling = GIVEN
    max_length = None

    @property
    def n_layers(self) -> int:
        """Layers given, one where the arrays have no layers."""
        return self.space.n_layers

    @property
    def notes(self) -> tuple[str, ...]:
        """What was done to the arrays."""
        return self.pairs.notes

    @property
    def dtype(self) -> str:
        """The type the vectors are kept in."""
        return self.space.origin.dtype

    @cached_property
    def fingerprint(self) -> str:
        """Hex SHA-256 of everything that decides a score."""
        digest = hashlib.sha256(self.pairs.fingerprint.encode())
        digest.update(str(list(self.space.values.shape)).encode())
        digest.update(self.space.values.numpy().tobytes())
        if (every := self.space.texts[EVERY].values) is not self.space.values:
            digest.update(every.numpy().tobytes())
        return digest.hexdigest()


class Unpaired(NamedTuple):
    """A space without pairs, which carries its vectors as the text `vectors`; notes: as those of `Vectors`."""

    space: LayerEmbeddings
    notes: tuple[str, ...]


def read_vectors(
    files: str | Path | Upload | Sequence[str | Path | Upload],
    gold: str | Path | Upload | None = None,
    task: str | None = None,
) -> Vectors:
    """The task that the arrays of `files`, one or more, are, and of `gold`: scores alone or any of the arrays.

    Formats as in `datasets.arrays`. DataError names the array, what was expected and what came: a role missing or
    given twice, shapes that do not fit, row numbers out of range, numbers that are not finite, more than the
    limits of an upload.
    """
    return _read(files, gold).build(task)


def read_either(
    files: str | Path | Upload | Sequence[str | Path | Upload],
    gold: str | Path | Upload | None = None,
    task: str | None = None,
) -> Vectors | Unpaired:
    """`read_vectors`, or vectors alone, for a map that is fitted on all of them (`fit=vectors`), never for a score.

    They are alone where there is no `gold` and nothing but `values` and their sentences. Raises DataError as
    `read_vectors`.
    """
    found = _read(files, gold)
    return found.unpaired() if gold is None and not found.parts.keys() - _UNPAIRED else found.build(task)


def _read(files: str | Path | Upload | Sequence[str | Path | Upload], gold: str | Path | Upload | None) -> "_Task":
    files = [files] if isinstance(files, (str, Path, Upload)) else files
    if not files:
        raise DataError(f"vectors: no file was given; {NEEDED}")
    arrays = [one for file in files for one in read_arrays(file)]
    unknown = [one for one in arrays if len(arrays) > 1 and _role(one) is None]
    main = files[0] if isinstance(files[0], Upload) else Path(files[0])
    label = main.name if len(files) == 1 else f"{main.name} and {len(files) - 1} more"
    parts = _parts(arrays, "values")
    if gold is not None:
        parts = _merged(parts, _parts(read_arrays(gold), "gold"))
    bounded = any(isinstance(file, Upload) for file in (*files, gold))
    return _Task(parts, unknown, bounded, main.stem, label)


# ----------------------------------------------------------------------------------------------------- roles


def _parts(arrays: Iterable[Named], lone: str) -> dict[str, Named]:
    """Arrays by role; one alone without a known name has the role `lone`, or what its shape says."""
    arrays = list(arrays)
    roles = [_role(one) for one in arrays]
    if len(arrays) == 1 and roles[0] is None:
        if lone == "gold" and arrays[0].values.ndim > 1:
            raise DataError(
                f"{arrays[0]}: gold scores must have the shape [p], one for each pair, got "
                f"{list(arrays[0].values.shape)}; vectors go under Vectors (--vectors)"
            )
        roles = ["gold" if arrays[0].values.ndim == 1 and not arrays[0].is_text else lone]
    found: dict[str, Named] = {}
    for role, one in zip(roles, arrays, strict=True):
        if role is not None:
            found = _merged(found, {role: one})
    if not found:
        listed = _listed(arrays)
        raise DataError(f"{arrays[0].file if arrays else 'vectors'}: found {listed or 'no arrays'}; needed: {NEEDED}")
    return found


def _listed(arrays: Sequence[Named]) -> str:
    """The arrays with shapes and types, for a message."""
    return "; ".join(f"{one.name or '(no name)'} {one.found}" for one in arrays[:12])


def _merged(parts: dict[str, Named], more: dict[str, Named]) -> dict[str, Named]:
    for role in parts.keys() & more.keys():
        raise DataError(f"{role.replace(' ', ', as ')} is given twice: {parts[role]} and {more[role]}")
    return parts | more


def _role(one: Named) -> str | None:
    name = plain_name(one.name)
    for role, names in ROLES.items():
        if name in names:
            return role
    for word in WORDS:
        name = name.removesuffix(word).removeprefix(word)
    for side, names in SIDES.items():
        if name in names:
            return f"{side} {'text' if one.is_text else 'rows' if one.values.ndim == 1 else 'vectors'}"
    return None


# ---------------------------------------------------------------------------------------------------- a task


@dataclass(frozen=True, eq=False)
class _Task:
    parts: dict[str, Named]
    unknown: list[Named]
    bounded: bool
    stem: str
    source: str

    @property
    def name(self) -> str:
        """What stands for a model's name: the files', and what made the vectors, where they say it."""
        made = next((made for one in self.unknown if (made := _made_by(one))), "")
        return f"vectors of {self.source}" + f": {made}" * bool(made)

    def unpaired(self) -> Unpaired:
        """All vectors in a space without pairs."""
        (one,) = self._need("values")
        every, none = _tensor(self._layers(one, "n")), torch.zeros(0, dtype=torch.int64)
        gold = torch.zeros(0, dtype=torch.float64)
        origin = Origin(self.name, self.source, self.stem, "", GIVEN, _kind(every))
        space = LayerEmbeddings(every, none, none, gold, none, (self.stem,), origin, {EVERY: _each_once(every)})
        return Unpaired(space, (*self._unknown_note(), *_zero_note(every.numpy())))

    def build(self, task: str | None) -> Vectors:
        """The task, called as its file unless it is named."""
        task, source = task or self.stem, self.source
        gold = self._gold()
        if "first vectors" in self.parts or "second vectors" in self.parts:
            every, first, second, labels, notes = self._two_sided(len(gold))
            values = every
        else:
            every, used, first, second, labels, notes = self._indexed(len(gold))
            values = every if len(used) == every.shape[1] else every[:, used]
        self._check_size(every, len(gold))
        names = different(labels)
        subset, subset_names = self._subset(len(gold), task)
        said = (*gold_notes(gold, subset, subset_names), repeat_note(zip(first, second, strict=True)))
        pairs = SentencePairs(
            task=task,
            first=tuple(names[i] for i in first),
            second=tuple(names[i] for i in second),
            gold=gold,
            subset=subset,
            subset_names=subset_names,
            source=source,
            notes=(*notes, *self._unknown_note(), *_zero_note(values), *(note for note in said if note)),
        )
        rows = {name: row for row, name in enumerate(names)}
        order = np.array([rows[name] for name in pairs.sentences])
        if not np.array_equal(order, np.arange(values.shape[1])):
            values = values[:, order]
        tensor = _tensor(values)
        origin = Origin(self.name, pairs.source, pairs.task, pairs.split, GIVEN, _kind(tensor))
        rows = _each_once(_tensor(every) if every.shape != values.shape else tensor)
        space = with_pairs(tensor, pairs, origin).with_text(EVERY, rows)
        has_text = "sentences" in self.parts or {"first text", "second text"} <= self.parts.keys()
        return Vectors(self.name, pairs, space, has_text)

    def _unknown_note(self) -> list[str]:
        """That vectors whose name says nothing are not read."""
        vectors = [one for one in self.unknown if one.values.ndim > 1]
        return [f"arrays whose names are not known are left out: {_listed(vectors)}"] if vectors else []

    def _need(self, *roles: str) -> list[Named]:
        """These parts; DataError says which is missing and what there is."""
        for role in roles:
            if role not in self.parts:
                if self.parts.keys() == {"gold"}:
                    gold = self.parts["gold"]
                    raise DataError(f"{gold}: {gold.found} are gold scores; needed beside them: {NEEDED}")
                there = "; ".join(f"{one} {one.found}" for one in (*self.parts.values(), *self.unknown[:12]))
                alone = "" if self.parts.keys() - _UNPAIRED else self._alone()
                raise DataError(f"{role.split()[0]} is missing; found {there}; needed: {NEEDED}{alone}")
        return [self.parts[role] for role in roles]

    def _alone(self) -> str:
        """What to type for a map of vectors that have no pairs."""
        first, *others = dict.fromkeys(one.file for one in self.parts.values())
        files = " ".join((option("--vectors", first), *map(shlex.quote, others)))
        return f"; of vectors alone `{program()} whiten {files} --export npz --out map.npz` makes a map"

    def _gold(self) -> np.ndarray:
        (one,) = self._need("gold")
        if one.is_text:
            raise DataError(f"{one}: must hold numbers, {_first_word(one.values)}")
        if one.values.ndim != 1 or not len(one.values):
            raise DataError(f"{one}: must have the shape [p], got {list(one.values.shape)}")
        gold = one.values.astype(np.float64)
        bad = np.flatnonzero(~np.isfinite(gold))
        if len(bad):
            raise DataError(f"{one}: must hold finite numbers, pair {bad[0] + 1} of {len(gold)} has {gold[bad[0]]}")
        return gold

    def _layers(self, one: Named, rows: str) -> np.ndarray:
        """An array of vectors as [l, rows, d]: real, finite numbers."""
        values = one.values
        if one.is_text:
            raise DataError(f"{one}: must hold numbers, {_first_word(values)}")
        if values.ndim not in (2, 3) or 0 in values.shape:
            wanted = f"[{rows}, d] or [l, {rows}, d]"
            raise DataError(f"{one}: must have the shape {wanted}, got {list(values.shape)}")
        values = values[None] if values.ndim == 2 else values
        values = values if values.dtype.kind == "f" else values.astype(np.float32)
        for number, layer in enumerate(values):
            largest = float(np.abs(layer).max())
            if np.isfinite(largest) and not 1 / LARGEST <= largest <= LARGEST and largest:
                raise DataError(
                    f"{one}: must hold numbers between {1 / LARGEST:g} and {LARGEST:g} in size, whose squares' squares "
                    f"a computer can hold, the largest of layer {number} is {largest:g}"
                )
            bad = ~np.isfinite(layer).all(axis=1)
            if bad.any():
                rows, of = np.flatnonzero(bad), f" of layer {number}" * (len(values) > 1)
                more = f", as have {len(rows) - 1} more" * (len(rows) > 1)
                raise DataError(
                    f"{one}: must hold finite numbers, row {rows[0]}{of} (counted from 0) has NaN or infinity{more}"
                )
        return values

    def _pairs_long(self, role: str, p: int) -> Named | None:
        """An optional part with one entry a pair."""
        one = self.parts.get(role)
        if one is not None and one.values.shape != (p,):
            raise DataError(f"{one}: must have the shape of gold, [{p}], got {list(one.values.shape)}")
        return one

    def _two_sided(self, p: int):
        """A vector for each side of each pair; equal vectors of equal sentences become one row."""
        one, two = self._need("first vectors", "second vectors")
        a, b = self._layers(one, "p"), self._layers(two, "p")
        if b.shape != a.shape:
            shapes = (list(side.values.shape) for side in (one, two))
            raise DataError("{}: must have the shape of {}, {}, got {}".format(two, one, *shapes))
        if a.shape[1] != p:
            raise DataError(
                f"{one}: must have one row for each of the {p} gold scores, got {list(one.values.shape)}"
                f"{_layers_first(one, 'p')}"
            )
        self._check_size(a, p)
        texts = [self._pairs_long(f"{side} text", p) for side in SIDES]
        a, b = (one.astype(np.result_type(a, b), copy=False) for one in (a, b))
        rows: dict[tuple[str, bytes], int] = {}
        labels, taken, sides = [], [], ([], [])
        for i in range(p):
            for side, name, values, text in zip(sides, SIDES, (a, b), texts, strict=True):
                said = "" if text is None else _clean(text.values[i])
                key = said, hashlib.blake2b(values[:, i].tobytes(), digest_size=16).digest()
                if key not in rows:
                    rows[key] = len(rows)
                    labels.append(said or f"{name} {i + 1}")
                    taken.append((side is sides[1], i))
                side.append(rows[key])
        values = np.empty((a.shape[0], len(rows), a.shape[2]), a.dtype)
        late = np.array([side for side, _ in taken])
        where = np.array([i for _, i in taken])
        values[:, ~late], values[:, late] = a[:, where[~late]], b[:, where[late]]
        merged = 2 * p - len(rows)
        notes = [f"{merged} of {2 * p} vectors repeat another and are one sentence with it"] if merged else []
        return values, *sides, labels, notes + _apart(labels)

    def _indexed(self, p: int):
        """Unique vectors and each pair's two rows, by number or by sentence."""
        (one,) = self._need("values")
        values = self._layers(one, "n")
        n = values.shape[1]
        texts = self.parts.get("sentences")
        if texts is not None and texts.values.shape != (n,):
            raise DataError(
                f"{texts}: must have one sentence for each of the {n} rows of {one}, got {texts.found}"
                f"{_layers_first(one, 'n')}"
            )
        if {"first rows", "second rows"} <= self.parts.keys() or not {"first text", "second text"} <= self.parts.keys():
            numbers, hint = self._need("first rows", "second rows"), _layers_first(one, "n")
            sides = [self._row_numbers(part, n, p, hint) for part in numbers]
        else:
            self._need("sentences")
            known = {_clean(text): row for row, text in reversed(list(enumerate(texts.values)))}
            sides = [self._row_of_text(f"{side} text", known, p) for side in SIDES]
        used = np.unique(np.concatenate(sides))
        left = f"{n - len(used)} of {n} vectors are in no pair and are not scored: fit=vectors fits maps on all"
        notes = [left] if len(used) < n else []
        back = np.full(n, -1)
        back[used] = np.arange(len(used))
        sides = [back[side] for side in sides]
        said = ["" if texts is None else _clean(texts.values[row]) for row in used]
        labels = [text or f"vector {row}" for text, row in zip(said, used, strict=True)]
        return values, used, *sides, labels, notes + _apart(labels)

    def _row_numbers(self, one: Named, n: int, p: int, hint: str = "") -> np.ndarray:
        if one.values.shape != (p,):
            raise DataError(f"{one}: must have the shape of gold, [{p}], got {list(one.values.shape)}")
        rows = one.values
        broken = ~np.isfinite(rows) | (rows != np.floor(rows))
        if broken.any():
            raise DataError(f"{one}: must hold row numbers, which are whole, got {rows[broken][0]}")
        bad = np.flatnonzero((rows < 0) | (rows >= n))
        if len(bad):
            raise DataError(
                f"{one}: must hold row numbers from 0 to {n - 1}, pair {bad[0] + 1} has {int(rows[bad[0]])}{hint}"
            )
        return rows.astype(np.int64)

    def _row_of_text(self, role: str, known: dict[str, int], p: int) -> np.ndarray:
        one = self._pairs_long(role, p)
        cleaned = [_clean(text) for text in one.values]
        for number, text in enumerate(cleaned, start=1):
            if text not in known:
                raise DataError(
                    f"{one}: pair {number} has {text[:60]!r}, which is not among the sentences of the vectors"
                )
        return np.array([known[text] for text in cleaned])

    def _subset(self, p: int, task: str) -> tuple[np.ndarray, tuple[str, ...]]:
        one = self._pairs_long("subset", p)
        if one is None:
            return np.zeros(p, np.int64), (task,)
        given = self.parts.get("subset_names")
        if given is not None and not one.is_text:
            names = tuple(_clean(name) for name in given.values.ravel())
            if len(set(names)) < len(names):
                twice = next(name for name in names if names.count(name) > 1)
                raise DataError(f"{given}: must name every subset differently, {twice!r} stands twice")
            return self._row_numbers(one, len(names), p), names
        said = [_clean(value) if one.is_text else _number(value) for value in one.values]
        names = tuple(dict.fromkeys(said))
        return np.array([names.index(name) for name in said], np.int64), names

    def _check_size(self, values: np.ndarray, p: int) -> None:
        if not self.bounded:
            return
        layers, n, dim = values.shape
        sizes = (
            (p, "pairs", upload_limits.ROWS),
            (layers, "layers", upload_limits.LAYERS),
            (dim, "dimensions", upload_limits.DIM),
        )
        for found, what, most in (*sizes, (values.size, "numbers", upload_limits.NUMBERS)):
            if found > most:
                raise DataError(
                    f"vectors [{layers}, {n}, {dim}]: {found} {what}, at most {most} are read from an upload"
                )


def _tensor(values: np.ndarray) -> torch.Tensor:
    return torch.from_numpy(np.ascontiguousarray(values))


def _kind(values: torch.Tensor) -> str:
    return str(values.dtype).removeprefix("torch.")


def _each_once(values: torch.Tensor) -> LayerRows:
    """All vectors, as rows that differ: equal ones are one that counts as often, so that halves share none."""
    rows, table = {}, values.numpy()
    digests = (hashlib.blake2b(table[:, i].tobytes(), digest_size=16).digest() for i in range(table.shape[1]))
    same = [rows.setdefault(digest, len(rows)) for digest in digests]
    if len(rows) == len(same):
        return LayerRows(values, torch.ones(len(same), dtype=torch.float64))
    first = np.unique(same, return_index=True)[1]
    return LayerRows(values[:, first], torch.bincount(torch.tensor(same)).to(torch.float64))


def _layers_first(one: Named, rows: str) -> str:
    """For messages of vectors whose rows do not fit: which axis is which, where there are three."""
    return f"; layers come first, [l, {rows}, d]: {one} is {list(one.values.shape)}" if one.values.ndim == 3 else ""


def _made_by(one: Named) -> str:
    """What an `origin` says of the encoder, in words; empty for any other array."""
    if one.name != ORIGIN or not one.is_text or one.values.ndim:
        return ""
    try:
        said = json.loads(str(one.values))
        model, pooling, dtype = (str(said[part]) for part in ("model", "pooling", "dtype"))
    except (ValueError, TypeError, KeyError, RecursionError):
        return ""
    parts = (model, "" if pooling == GIVEN else f"{pooling} pooling", "" if dtype == "float32" else dtype)
    return " ".join(", ".join(part for part in parts if part).split())[:_SAID] if model else ""


def _clean(value: object) -> str:
    return str(value).strip()


def _number(value: np.generic) -> str:
    """A number as a name: every digit of it, `7` for 7.0."""
    return str(int(value)) if float(value).is_integer() else str(value)


def _first_word(values: np.ndarray) -> str:
    """The first entry that is no number, for messages."""
    flat = values.ravel().tolist()
    row = next((i for i, value in enumerate(flat) if as_number(value) is None), 0)
    return f"row {row + 1} has {str(flat[row])[:60]!r}" if flat else "got none"


def _zero_note(values: np.ndarray) -> list[str]:
    """A note on vectors without a direction."""
    zero = int((~values.any(axis=2)).any(axis=0).sum())
    words = quantity(zero, "vector is", "vectors are")
    return [f"{words} zero in some layer, where cosines with {'it' if zero == 1 else 'them'} are 0"] if zero else []


def _apart(labels: Sequence[str]) -> list[str]:
    """A note on sentences that come with several vectors."""
    repeated = len(labels) - len(set(labels))
    words = quantity(repeated, "vector differs", "vectors differ")
    return [f"{words} from another one of the same sentence and {'stays' if repeated == 1 else 'stay'} apart"] * (
        repeated > 0
    )


# ----------------------------------------------------------------------------------------------------- writing


def write_npz(file: BufferedIOBase, pairs: SentencePairs, space: LayerEmbeddings) -> None:
    """All layers with their pairs in one .npz, which `read_vectors` reads back: values [l, n, d] and sentences [n],
    row numbers first and second, gold and subset [p], subset_names; text as `arrays.text_arrays` has it. `origin` says
    as JSON what made them of what (`Origin`), and `whitelab`, the version, whose file it is."""
    np.savez(
        file,
        whitelab=np.array(whitelab.__version__),
        origin=np.array(json.dumps(asdict(space.origin), ensure_ascii=False)),
        values=space.values.cpu().numpy(),
        first=pairs.first_index,
        second=pairs.second_index,
        gold=pairs.gold,
        subset=pairs.subset,
        **text_arrays("sentences", pairs.sentences),
        **text_arrays("subset_names", pairs.subset_names),
    )


def is_written(path: Path) -> bool:
    """Whether a file is what `write_npz` wrote."""
    try:
        with ZipFile(path) as file:
            return {"values.npy", "gold.npy", "whitelab.npy"} <= set(file.namelist())
    except (OSError, BadZipFile):
        return False


def npz_bytes(pairs: SentencePairs, space: LayerEmbeddings) -> bytes:
    """`write_npz` in memory."""
    out = io.BytesIO()
    write_npz(out, pairs, space)
    return out.getvalue()
