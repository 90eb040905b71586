"""One pooled vector for each layer and each unique sentence: of any text, and of a task with its pairs."""

import threading
from collections import Counter
from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import torch
from jaxtyping import Float, Int
from torch import Tensor

from whitelab.base.checks import check_is, check_layers, check_real
from whitelab.base.devices import is_on
from whitelab.base.lazy import cached_property
from whitelab.base.progress import Progress, silent
from whitelab.base.wording import layers_in_words
from whitelab.datasets import RetrievalSet, SentencePairs
from whitelab.encoding.embed import EmbedReport, embed
from whitelab.encoding.encoders import Encoder, StaticEncoder
from whitelab.encoding.pooling import GIVEN, UNIT, check_pooling
from whitelab.statistics.correlation import Judged
from whitelab.statistics.linalg import distinct_rows, exact
from whitelab.statistics.moments import BATCH_ROWS, Moments
from whitelab.store.embedding_store import Store

# Moments kept with the embeddings they are of, each with its decompositions, so that neither k nor another variant
# fits anew: as many as take this many bytes, at four tables of d^2 numbers each, and never fewer than eight.
_MOMENTS_BYTES, _MOMENTS_KEPT = 2**28, 8
# Tables of all sentences turned to eigenvectors: four, and more as long as all take less: those of every layer.
_KEPT_LATELY, _LATELY_BYTES = 4, 2**28
_MARK = 6  # digits of a digest: among a hundred folders two share them once in three thousand times

OWN_SENTENCES = ("task", "cross")  # fit scopes that need no other sentences than the task's
EVERY = "vectors"  # of vectors that were made elsewhere: each once, whether it is in a pair or not
TOKENS = "tokens"  # Zipfian whitening (Yokoi et al. 2024), of a static: or sif: model: its words

_KEEPING = threading.Lock()  # while something is looked up or put there, never while it is made


@dataclass(frozen=True)
class Origin:
    """Where a task's embeddings come from: all that a protocol says beside its setting.

    `text` is the normalisation applied before tokenising, `encoder` the digest of all that decides a vector beside its
    text (`StoreKey`), empty where that is not known: two models may have one name. Of vectors that were made elsewhere
    (`pooling` `given`) nothing of `text` and `max_length` (None) is known.
    """

    model: str = ""
    data: str = ""
    task: str = ""
    split: str = ""
    pooling: str = "mean"
    dtype: str = "float32"
    max_length: int | None = 128
    text: str = "strip"
    encoder: str = ""

    def __post_init__(self) -> None:
        if self.pooling == GIVEN:
            object.__setattr__(self, "max_length", None)
            object.__setattr__(self, "text", GIVEN)
        else:
            check_pooling(self.pooling)


class _Layers:
    """What sentences in every layer can do: `values [l, n, d]` and `counts [n]` come from the subclass."""

    @property
    def n_layers(self) -> int:
        """Layers held, the embedding layer among them: numbers 0..n_layers - 1."""
        return self.values.shape[0]

    @property
    def n_sentences(self) -> int:
        """n, unique sentences."""
        return self.values.shape[1]

    @property
    def dim(self) -> int:
        """d."""
        return self.values.shape[2]

    @property
    def count(self) -> float:
        """Sentence occurrences."""
        return float(self.counts.sum())

    @property
    def span(self) -> int:
        """Directions that the sentences can differ in: one fewer than there are different ones, d at most."""
        return min(int(self.counts.count_nonzero()) - 1, self.dim)

    def different(self, layers: Sequence[int]) -> int:
        """How many different vectors the sentences have in these layers averaged; d + 2 stands for all above d + 1.

        Sentences share one that differ in blanks alone, or in case under a model that reads none.
        """
        layers, most = check_layers(layers, self.n_layers), self.dim + 2

        def counted() -> int:
            return distinct_rows(self.averaged(layers), most, self.counts.nonzero()[:, 0])

        return self.kept(("different", layers), counted)

    def combine(self, layers: Sequence[int]) -> Float[Tensor, "n d"]:
        """The mean of the given layers, a float64 tensor of its own (WhiteningBERT, section 3.2).

        Pooling commutes with it.
        """
        layers = check_layers(layers, self.n_layers)
        total = exact(self.values[layers[0]], copy=True)
        for layer in layers[1:]:
            total += exact(self.values[layer])
        return total.div_(len(layers))

    def averaged(self, layers: Sequence[int]) -> Float[Tensor, "n d"]:
        """`combine` to be read in parts: a layer alone as it is held, in its own type and not copied."""
        layers = check_layers(layers, self.n_layers)
        return self.values[layers[0]] if len(layers) == 1 else self.combine(layers)

    def moments(self, layers: Sequence[int]) -> Moments:
        """Moments over every sentence occurrence, duplicates kept (protocols A6); the last ones asked for are kept."""
        layers = check_layers(layers, self.n_layers)
        with _KEEPING:
            if layers in self._moments:
                self._moments[layers] = found = self._moments.pop(layers)
                return found
        made = self.moments_of(self.averaged(layers))
        with _KEEPING:  # of two that were made at once the first stays, with what is kept of it
            found = self._moments.setdefault(layers, made)
            while len(self._moments) > self.moments_kept:
                del self._moments[next(iter(self._moments))]
        return found

    @property
    def moments_kept(self) -> int:
        """How many of the last moments asked for are kept."""
        return max(_MOMENTS_KEPT, _MOMENTS_BYTES // (32 * self.dim**2))

    def moments_of(self, x: Float[Tensor, "n d"]) -> Moments:
        """Moments over every sentence occurrence of `x`, one row a sentence; not kept."""
        used = (self.counts > 0).nonzero()[:, 0]
        if len(used) == len(self.counts):
            return Moments.of(x, self.counts)
        # In the batches of all rows at once, without a copy of them.
        parts = used.split(BATCH_ROWS) if len(used) else (used,)
        return Moments.merged(Moments.of(x[part], self.counts[part]) for part in parts)

    @cached_property
    def _moments(self) -> dict[tuple[int, ...], Moments]:
        return {}

    def kept(self, key: Hashable, make: Callable[[], Any]) -> Any:
        """`make()`, kept under `key` as long as these embeddings are: for what is derived from all of them."""
        if key not in self._derived:
            return self._derived.setdefault(key, make())
        return self._derived[key]

    def kept_lately(self, key: Hashable, of: Any, make: Callable[[], Any]) -> Any:
        """`make()`, kept under `key` while few others are asked for, until it is `of` another object."""
        with _KEEPING:
            entry = self._lately.pop(key, None)
            if entry is not None and entry[0] is of:
                self._lately[key] = entry
                return entry[1]
        made = make()
        with _KEEPING:
            self._lately[key] = of, made
            size = sum(getattr(kept, "nbytes", 0) for _, kept in self._lately.values())
            while len(self._lately) > _KEPT_LATELY and size > _LATELY_BYTES:
                _, gone = self._lately.pop(next(iter(self._lately)))
                size -= getattr(gone, "nbytes", 0)
        return made

    @cached_property
    def _derived(self) -> dict[Hashable, Any]:
        return {}

    @cached_property
    def _lately(self) -> dict[Hashable, tuple[Any, Any]]:
        return {}

    @cached_property
    def parted(self) -> tuple["LayerRows", "LayerRows"]:
        """The unique sentences in two random halves with their counts, for measures on held-out rows."""
        half = torch.zeros(self.n_sentences, dtype=torch.bool)
        order = torch.randperm(self.n_sentences, generator=torch.Generator().manual_seed(0))
        half[order[: self.n_sentences // 2]] = True
        half = half.to(self.counts.device)
        return tuple(LayerRows(self.values, self.counts * side) for side in (half, ~half))


@dataclass(frozen=True, eq=False)
class LayerRows(_Layers):
    """Embeddings of any sentences: `values [l, n, d]` of the unique ones and how often each counts, `[n]`.

    Tensors or arrays, `values` as in `LayerEmbeddings` and `counts` copied. Raises TypeError for what holds no
    numbers, ValueError for shapes that do not fit and for counts that are none.
    """

    values: Float[Tensor | np.ndarray, "l n d"]
    counts: Float[Tensor | np.ndarray, "n"]

    def __post_init__(self) -> None:
        _as_tensors(self, "n", "counts")
        if is_on(self.counts, "cpu"):  # as `_check_numbers` has it
            wrong = self.counts[~((self.counts >= 0) & (self.counts.frac() == 0))]
            if len(wrong):
                raise ValueError(f"counts must hold whole numbers from 0 on, got {float(wrong[0]):g}")

    def to(self, device: str | torch.device) -> "LayerRows":
        """The same rows on `device`."""
        return LayerRows(self.values.to(device), self.counts.to(device))


def _as_tensors(rows: "LayerRows | LayerEmbeddings", length: str, *names: str) -> None:
    """Put tensors in place of arrays: `values [l, n, d]`, and of the other `names` one number a sentence or a pair.

    Those are copies; `values`, of which there may be gigabytes, are the caller's. No gradient passes.
    """
    for name in ("values", *names):
        x = check_real(getattr(rows, name), name)
        x = x.detach() if x.requires_grad else x
        numbers_rows = name in ("first", "second", "subset")
        if numbers_rows and x.is_floating_point():
            raise ValueError(f"{name} must hold whole numbers, got {x.dtype}")
        x = x if numbers_rows or x.is_floating_point() else x.double()
        object.__setattr__(rows, name, x if name == "values" else x.clone())
    if rows.values.ndim != 3:
        raise ValueError(f"values must have the shape [l, n, d], got {list(rows.values.shape)}")
    size = rows.values.shape[1] if length == "n" else len(getattr(rows, names[0]))
    for name in names:
        if getattr(rows, name).shape != (size,):
            raise ValueError(f"{name} must have the shape [{length}={size}], got {list(getattr(rows, name).shape)}")


def _check_numbers(numbers: Int[Tensor, "p"], name: str, count: int) -> None:
    """Raise ValueError for one outside 0..count - 1. To ask a device would wait for it: numbers come from the CPU."""
    if not is_on(numbers, "cpu"):
        return
    wrong = numbers[(numbers < 0) | (numbers >= count)]
    if len(wrong):
        raise ValueError(f"{name} must hold numbers from 0 to {count - 1}, got {int(wrong[0])}")


class NotMeasuredError(ValueError):
    """A map is asked for that the moments at hand are not of."""


def layers_held(layers: Sequence[int], measured: Sequence[int], apart: bool) -> bool:
    """Whether moments of the average of `measured`, or of each where they were kept `apart`, are those of `layers`."""
    return set(layers) <= set(measured) if apart else tuple(layers) == tuple(measured)


def held_in_words(measured: Sequence[int], apart: bool) -> str:
    """`layer 1`, `layers 1 + 6`, or `any average of layers 1 + 6`."""
    return "any average of " * (apart and len(measured) > 1) + layers_in_words(measured)


@dataclass(frozen=True, eq=False)
class MeasuredRows:
    """Sentences of which moments alone are at hand, such as a corpus: enough for every map that is fitted from them.

    `origin` says which model they are of, with `n_layers` of `dim` dimensions, as far as it decides vectors. `known`
    are moments of the average of `layers`; or, where these were kept apart, of their vectors one after another,
    `len(layers) * dim` long, from which those of any of their averages follow (without the higher sums, which the
    Ledoit-Wolf estimate and the mean direction need). `digest` tells them from others of that name.
    """

    name: str
    origin: Origin
    n_layers: int
    dim: int
    layers: tuple[int, ...]
    known: Moments
    digest: str = ""

    @property
    def count(self) -> float:
        """Sentence occurrences."""
        return self.known.count

    @property
    def span(self) -> int:
        """Directions that the sentences can differ in, as far as their number says."""
        return min(round(self.count) - 1, self.dim)

    def different(self, layers: Sequence[int]) -> int:
        """As of rows, as far as their number says: all occurrences."""
        return round(self.count)

    @property
    def mark(self) -> str:
        """The beginning of `digest`, for names that people read."""
        return self.digest[:_MARK]

    @property
    def apart(self) -> bool:
        """Whether any average of the layers can be fitted on."""
        return self.known.dim > self.dim

    def moments(self, layers: Sequence[int]) -> Moments:
        """As those of rows. Raises NotMeasuredError for layers of which there are none."""
        layers = check_layers(layers, self.n_layers)
        if layers == self.layers and not self.apart:
            return self.known
        if not self.holds(layers):
            raise NotMeasuredError(
                f"fit={self.name!r} holds {held_in_words(self.layers, self.apart)} and no map of "
                f"{layers_in_words(layers)}: choose what it holds, or embed it anew with these layers"
            )
        if layers not in self._averages:
            self._averages[layers] = self._average([self.layers.index(layer) for layer in layers])
        return self._averages[layers]

    def holds(self, layers: Sequence[int]) -> bool:
        """Whether there are moments of the average of these layers."""
        return layers_held(layers, self.layers, self.apart)

    def _average(self, places: list[int]) -> Moments:
        shape, count = (len(self.layers), self.dim), self.known.count
        scatter = self.known.scatter.view(*shape, *shape)[places][:, :, places].sum((0, 2)) / len(places) ** 2
        alone = len(places) == len(self.layers) == 1
        return self.known if alone else Moments(count, self.known.mean.view(shape)[places].mean(0), scatter)

    @cached_property
    def _averages(self) -> dict[tuple[int, ...], Moments]:
        return {}

    def between_layers(self) -> Moments:
        """Moments of all layers one after another. Raises ValueError where one is missing."""
        if self.layers != tuple(range(self.n_layers)) or self.known.dim != self.n_layers * self.dim:
            raise ValueError(f"fit={self.name!r} must hold every layer, kept apart, for this")
        return self.known

    def check_made_as(self, origin: Origin) -> None:
        """Raises ValueError where a task's embeddings come from another model, pooling, type or length."""
        for part in ("model", "pooling", "dtype", "max_length"):
            ours, theirs = getattr(self.origin, part), getattr(origin, part)
            if ours != theirs:
                raise ValueError(f"fit={self.name!r} was embedded with {part}={ours!r}, the task with {theirs!r}")
        if self.origin.encoder != origin.encoder:
            raise ValueError(f"fit={self.name!r} was embedded with another model of the name {origin.model!r}")

    @property
    def values(self) -> Tensor:
        """Raises ValueError: what asks for rows cannot be had from moments."""
        raise ValueError(f"fit={self.name!r} holds moments, and this needs the sentences' own vectors")

    counts = parted = values

    def combine(self, layers: Sequence[int]) -> Tensor:
        """Raises ValueError, as `values`."""
        return self.values

    def kept(self, key: Hashable, make: Callable[[], Any]) -> Any:
        """`make()`: nothing is derived from rows that are not there."""
        return make()

    def to(self, device: str | torch.device) -> "MeasuredRows":
        """The same moments on `device`."""
        known = self.known.to(device)
        return self if known is self.known else replace(self, known=known)


@dataclass(frozen=True, eq=False)
class LayerEmbeddings(_Layers):
    """Embeddings of one task, with the map from its pairs to rows.

    `values [l, n, d]`: layer 0 is the embedding layer, 1..L the transformer blocks; rows are the unique sentences. Pair
    i is rows `first[i]` and `second[i]`, with `gold[i]` and the number `subset[i]` of its subset. `counts [n]` says how
    often each sentence occurs in both columns together, each once where there is no pair. `origin` says where they come
    from, `texts` holds the embedded text, by the name that a setting's `fit` gives it, that maps may be fitted on
    beside the task's own sentences, `words` of a `static:` or `sif:` model the task's tokens and how often each occurs
    in its unique sentences. Tensors or arrays. `values` are not copied, being large: whoever changes them in place
    changes what is computed anew and not what is kept, such as moments, so make other embeddings of other vectors. The
    rest is copied. Raises as `LayerRows`, and ValueError for a row or a subset that is not there.
    """

    values: Float[Tensor | np.ndarray, "l n d"]
    first: Int[Tensor | np.ndarray, "p"]
    second: Int[Tensor | np.ndarray, "p"]
    gold: Float[Tensor | np.ndarray, "p"]
    subset: Int[Tensor | np.ndarray, "p"]
    subset_names: tuple[str, ...]
    origin: Origin = Origin()
    texts: Mapping[str, LayerRows | MeasuredRows] = field(default_factory=dict)
    words: LayerRows | None = None

    def __post_init__(self) -> None:
        _as_tensors(self, "p", "first", "second", "gold", "subset")
        _check_numbers(self.first, "first", self.n_sentences)
        _check_numbers(self.second, "second", self.n_sentences)
        _check_numbers(self.subset, "subset", self.n_subsets)

    @property
    def n_pairs(self) -> int:
        """p."""
        return self.first.shape[0]

    @property
    def n_subsets(self) -> int:
        """Number of subsets, at least 1."""
        return len(self.subset_names)

    @property
    def judged(self) -> Judged:
        """What scores are held against."""
        return Judged(self.gold, self.subset, self.n_subsets)

    @cached_property
    def counts(self) -> Float[Tensor, "n"]:
        """Occurrences of each sentence over both columns, the weights of a fit on the task's sentences; without any
        pair each counts once."""
        rows = torch.cat([self.first, self.second])
        if not self.n_pairs:
            rows = torch.arange(self.n_sentences, device=rows.device)
        return torch.bincount(rows, minlength=self.n_sentences).to(torch.float64)

    def with_text(self, name: str, rows: LayerRows | MeasuredRows) -> "LayerEmbeddings":
        """The same embeddings, with all that is kept of them, carrying `rows` as the text `name` to fit on.

        Raises ValueError for rows of another model, and for a name that means the task's own sentences or words.
        """
        own = (*OWN_SENTENCES, TOKENS)
        if name in own:
            raise ValueError(f"name={name!r} must name other text: {', '.join(own)} stand for the task's own")
        if (rows.n_layers, rows.dim) != (self.n_layers, self.dim):
            raise ValueError(
                f"rows must have {self.n_layers} layers of d={self.dim} as the task, got {rows.n_layers} of {rows.dim}"
            )
        if isinstance(rows, MeasuredRows):
            rows.check_made_as(self.origin)
        return self._carrying(dict(self.texts) | {name: rows})

    @property
    def plain(self) -> "LayerEmbeddings":
        """The same embeddings, with all that is kept of them, carrying no text."""
        return self._carrying({}) if self.texts else self

    def _carrying(self, texts: dict[str, LayerRows | MeasuredRows]) -> "LayerEmbeddings":
        carrying = replace(self, texts=texts)
        shared = {
            "_moments": self._moments,
            "_derived": self._derived,
            "_lately": self._lately,
            "counts": self.counts,
            "parted": self.parted,
        }
        vars(carrying).update(shared)
        return carrying

    def to(self, device: str | torch.device) -> "LayerEmbeddings":
        """The same embeddings, and the text they carry, on `device`; these, with what is kept, where they are there."""
        if is_on(self.values, device):
            return self
        moved = (x.to(device) for x in (self.values, self.first, self.second, self.gold, self.subset))
        texts = {name: rows.to(device) for name, rows in self.texts.items()}
        words = self.words and self.words.to(device)
        return LayerEmbeddings(*moved, self.subset_names, self.origin, texts, words)


def check_space(space) -> LayerEmbeddings:
    """Return `space` if it is one. Raises TypeError for all else, such as pairs that are not embedded."""
    return check_is(space, "space", LayerEmbeddings, "embed_pairs(encoder, pairs) gives")


def embed_pairs(
    encoder: Encoder,
    pairs: SentencePairs,
    pooling: str = "mean",
    *,
    store: Store | None = None,
    progress: Progress = silent,
) -> tuple[LayerEmbeddings, EmbedReport]:
    """Embed every unique sentence of `pairs` once, in all layers; of a table of word embeddings keep the words too.

    Raises TypeError as `embed`, and for what are no pairs, such as the name that `load` reads.
    """
    check_is(pairs, "pairs", SentencePairs, "load('demo') gives")
    values, report = embed(encoder, pairs.sentences, pooling, store=store, progress=progress)
    space = with_pairs(values, pairs, origin_of(encoder, pairs, pooling))
    if isinstance(encoder, StaticEncoder) and not pooling.startswith(UNIT):  # else it is no mean of words
        space = replace(space, words=LayerRows(*encoder.words(pairs.sentences)))
    return space, report


def origin_of(encoder: Encoder, data: SentencePairs | RetrievalSet, pooling: str = "mean") -> Origin:
    """Where the embeddings of `data` by `encoder` come from."""
    made = encoder.key(pooling).digest
    return Origin(
        encoder.name, data.source, data.task, data.split, pooling, encoder.dtype, encoder.max_length, encoder=made
    )


def with_pairs(values: Float[Tensor, "l n d"], pairs: SentencePairs, origin: Origin | None = None) -> LayerEmbeddings:
    """`values`, whose rows are `pairs.sentences`, with the pairs' map to rows."""
    if values.shape[1] != len(pairs.sentences):
        raise ValueError(f"values must have n={len(pairs.sentences)} rows, got {values.shape[1]}")
    return LayerEmbeddings(
        values,
        pairs.first_index,
        pairs.second_index,
        pairs.gold,
        pairs.subset,
        pairs.subset_names,
        origin or Origin(data=pairs.source, task=pairs.task, split=pairs.split),
    )


def embed_scope(
    encoder: Encoder,
    sentences: Counter[str],
    pooling: str = "mean",
    *,
    store: Store | None = None,
    progress: Progress = silent,
) -> LayerRows:
    """Embed the text a map is to be fitted on: sentences and how often each counts."""
    texts = tuple(sentences)
    values, _ = embed(encoder, texts, pooling, store=store, progress=progress)
    return LayerRows(values, torch.tensor([float(sentences[text]) for text in texts], dtype=torch.float64))
