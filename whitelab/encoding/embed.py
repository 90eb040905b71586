"""Sentences -> pooled embeddings of every layer, each unique sentence encoded once.

Sentences are sorted by length and batched with others of exactly the same number of tokens, so there is no padding to
compute or to mask; one pass gives every layer in both of the model's plain poolings, or in SBERT-WK, and goes to the
store. On a CPU every thread works on a batch of its own.
"""

import time
from collections.abc import Iterable, Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass

import torch
from jaxtyping import Float
from torch import Tensor

from whitelab.base.checks import check_is, check_sentences
from whitelab.base.devices import own_precision, to_host
from whitelab.base.groups import grouped
from whitelab.base.machine import within_memory
from whitelab.base.progress import Progress, silent
from whitelab.base.threads import side_by_side
from whitelab.base.wording import quantity
from whitelab.encoding import architectures
from whitelab.encoding.architectures import check_ids, out_of_memory
from whitelab.encoding.checkpoints import default_prompt
from whitelab.encoding.encoders import Encoder, NotFinite, StaticEncoder
from whitelab.encoding.names import OUTPUT, ModelError
from whitelab.encoding.pooling import UNIT
from whitelab.encoding.sentence_modules import changed_after
from whitelab.store.embedding_store import Space, Store, StoreError
from whitelab.store.shard_writer import ShardWriter
from whitelab.store.shards import CUT, UNKNOWN

# A shard of the store holds this many sentences, or as many as were encoded in this time.
SHARD_SENTENCES = 1024
SHARD_SECONDS = 30.0


@dataclass(frozen=True)
class EmbedReport:
    """What an `embed` call did: different sentences `encoded` and `reused`, seconds, notes.

    `cut` are the first positions of those, of either, that are longer than the model reads, `unknown` of those in which
    half of the tokens or more are unknown to its tokenizer; stored ones are known as such since stores keep it.
    """

    encoded: int
    reused: int
    cut: tuple[int, ...]
    seconds: float
    notes: tuple[str, ...] = ()
    unknown: tuple[int, ...] = ()

    @property
    def truncated(self) -> int:
        """How many different sentences were cut."""
        return len(self.cut)


def embed(
    encoder: Encoder,
    sentences: Iterable[str],
    pooling: str = "mean",
    *,
    store: Store | None = None,
    progress: Progress = silent,
) -> tuple[Tensor, EmbedReport]:
    """Embeddings `[l, n, d]` (float32, CPU) of `sentences` in every layer, and a report.

    With a `store`, what it holds is not encoded again and what is encoded is kept, in all of `poolings` or in `wk`, a
    shard at a time: a cancel (`progress` raising) loses nothing that is done, a kill the shard that is written and the
    one that is gathered. What another process has stored meanwhile comes from here all the same.
    `progress(done, total)` counts tokens, which is what time goes by. A store that cannot be written, or that another
    process empties meanwhile, costs a note, not the result. Vectors of `static:` and `sif:` models are never kept: they
    are made faster than they are read, and those of `sif:` depend on all of `sentences`, each of which counts as often
    as it is there.
    With `unit_` before a pooling every vector has length 1, before layers are averaged and anything is fitted.
    Raises TypeError for `sentences` that are one string, or not all strings, and for what is no encoder, such as the
    name of a model.
    """
    check_is(encoder, "encoder", Encoder, "load_encoder('bundled') gives").check_pooling(pooling)
    sentences = check_sentences(sentences)
    if store is not None:
        check_is(store, "store", Store, "Store('path/to/a/folder')")
    if pooling.startswith(UNIT):
        values, report = embed(encoder, sentences, pooling.removeprefix(UNIT), store=store, progress=progress)
        return torch.nn.functional.normalize(values, dim=-1), report
    if not sentences:
        raise ValueError("sentences must hold at least one sentence, got none")
    start = time.perf_counter()
    if isinstance(encoder, StaticEncoder):
        return _of_words(encoder, sentences, start)
    spaces, absent, notes = _open_spaces(encoder, store, pooling, sentences)
    asked = _Asked.of(sentences, absent.get(pooling))
    todo = sorted(set().union(*absent.values())) if spaces else sorted(asked.fresh)
    writer = ShardWriter(spaces, SHARD_SENTENCES, SHARD_SECONDS)
    cut, unknown = _encode(encoder, asked, todo, pooling, writer, progress)
    try:
        asked.read(spaces.get(pooling))
        encoded = set(todo)
        kept = {text: first for text, (first, *_) in asked.places.items() if first not in encoded}
        firsts = list(kept.values())
        for found, mark in ((cut, CUT), (unknown, UNKNOWN)):
            found += [firsts[i] for i in spaces[pooling].marked(list(kept), mark)] if kept else []
    except StoreError as error:  # another process has evicted them meanwhile, say
        notes.append(f"embeddings that were on disk could not be read and were made anew: {error}")
        lost = asked.lose()
        for found, more in zip((cut, unknown), _encode(encoder, asked, lost, pooling, writer, progress), strict=True):
            found += more
        todo = sorted({*todo, *lost})
    notes += [f"embeddings are not kept on disk: {reason}" for reason in writer.refused]
    strange = unknown_note(len(unknown), encoder.name)
    notes += filter(None, [strange, _modules_left_out(encoder), prompt_left_out(encoder)])
    for space in spaces.values():
        notes += [f"a damaged file of the store was set aside and made anew: {name}" for name in space.damaged]
    notes += _evicted(store, spaces) if todo and spaces else ()
    reused, seconds = len(asked.places) - len(todo), time.perf_counter() - start
    notes = tuple(dict.fromkeys(notes))
    return asked.values, EmbedReport(len(todo), reused, tuple(cut), seconds, notes, tuple(unknown))


def _evicted(store: Store, spaces: dict[str, Space]) -> list[str]:
    """Bring the store within its size, these spaces left alone; a note where that fails."""
    try:
        store.evict(keep=list(spaces.values()))
    except StoreError as error:
        return [f"the store could not be brought within its size: {error}"]
    return []


def _of_words(encoder: StaticEncoder, sentences: Sequence[str], start: float) -> tuple[Tensor, EmbedReport]:
    """What `embed` gives of a table of word embeddings, by a clock that stood at `start`."""
    values, cut, unknown = encoder.vectors(sentences)
    bare = len({sentences[i] for i in (~values[0].any(dim=1)).nonzero()[:, 0].tolist()})
    notes = (f"sentences without a token: {bare}, whose vectors are zero and whose cosines are 0",) if bare else ()
    notes += tuple(filter(None, [unknown_note(len(unknown), encoder.name)]))
    return values, EmbedReport(len(set(sentences)), 0, cut, time.perf_counter() - start, notes, unknown)


@dataclass(eq=False)
class _Asked:
    """The sentences of a call: the `places` of each, first positions of those that are `fresh`, not in the store.

    `values` `[l, n, d]` are what the call returns.
    """

    sentences: Sequence[str]
    places: dict[str, list[int]]
    fresh: set[int]
    values: Tensor | None = None

    @classmethod
    def of(cls, sentences: Sequence[str], absent: Sequence[int] | None) -> "_Asked":
        """Where `absent` is None all of them are fresh."""
        places = grouped((text, i) for i, text in enumerate(sentences))
        return cls(sentences, places, {at[0] for at in places.values()} if absent is None else set(absent))

    def put(self, positions: Sequence[int], rows: Float[Tensor, "b l d"]) -> None:
        """What was encoded of the sentences at `positions`, wherever it is fresh, as often as it was asked for."""
        pairs = [
            (row, place)
            for row, first in enumerate(positions)
            if first in self.fresh
            for place in self.places[self.sentences[first]]
        ]
        if pairs:
            if self.values is None:
                self.values = rows.new_empty(rows.shape[1], len(self.sentences), rows.shape[2])
            chosen, places = map(list, zip(*pairs, strict=True))
            rows = rows if chosen == list(range(len(positions))) else rows[chosen]
            self.values.index_copy_(1, torch.tensor(places, device="cpu"), rows.transpose(0, 1))

    def lose(self) -> list[int]:
        """First positions of those that are not fresh, which from now on they are."""
        lost = [at[0] for at in self.places.values() if at[0] not in self.fresh]
        self.fresh.update(lost)
        return lost

    def read(self, space: Space | None) -> None:
        """What is not fresh, from the store: all of it as it comes, else some at a time."""
        if not self.fresh:
            self.values = _from_store(space, self.sentences)
            return
        stored = [i for at in self.places.values() if at[0] not in self.fresh for i in at]
        for start in range(0, len(stored), SHARD_SENTENCES):
            part = stored[start : start + SHARD_SENTENCES]
            self.values[:, part] = _from_store(space, [self.sentences[i] for i in part])


def _modules_left_out(encoder: Encoder) -> str:
    """What to know of a model that has modules after its layers; empty for all others."""
    left_out = changed_after(encoder.files) if encoder.files.kind == "" else ()
    if not left_out:
        return ""
    kinds = ", ".join(left_out)
    return f"{encoder.name} has modules after its layers ({kinds}), left out here: output: before its name keeps them"


def unknown_note(count: int, model: str, what: str = "sentence") -> str:
    """What to know of so many sentences of unknown tokens, `what` being one of them; empty of none."""
    if not count:
        return ""
    return (
        f"{quantity(count, what)} of mostly unknown words: the tokenizer of {model} makes one and the same token of "
        f"all of these, so {what}s that differ may share a vector"
    )


def prompt_left_out(encoder: Encoder) -> str:
    """What to know of a model whose makers put words before every text; empty for all others."""
    if encoder.files.kind not in ("", OUTPUT):
        return ""
    try:
        before = default_prompt(encoder.files)
    except ModelError:
        return ""
    return (
        f"{encoder.name} was made to read {before!r} before every text, left out here: sentence-transformers puts it "
        "there, so its numbers differ"
        if before
        else ""
    )


def _open_spaces(
    encoder: Encoder, store: Store | None, pooling: str, sentences: Sequence[str]
) -> tuple[dict[str, Space], dict[str, list[int]], list[str]]:
    """The spaces by pooling, in each the first positions of the sentences it lacks, and notes."""
    if store is None:
        return {}, {}, []
    try:
        spaces = {name: store.space(encoder.key(name)) for name in encoder.given_with(pooling)}
        return spaces, {name: space.missing(sentences) for name, space in spaces.items()}, []
    except StoreError as error:
        return {}, {}, [f"embeddings are not kept on disk: {error}"]


def _encode(
    encoder: Encoder, asked: _Asked, todo: list[int], pooling: str, writer: ShardWriter, progress: Progress
) -> tuple[list[int], list[int]]:
    """Encode the sentences at `todo`, all different: for `asked` in the pooling asked for, for `writer` in all.

    Returns the positions of those that were cut, and of those of mostly unknown tokens.
    """
    if not todo:
        return [], []
    texts = [asked.sentences[i] for i in todo]
    ids, cut = encoder.tokenize(texts)
    lengths = [len(row) for row in ids]
    if 0 in lengths:
        raise ValueError(f"sentences must hold text, got {texts[lengths.index(0)]!r}, which has no token")
    check_ids([max(row) for row in ids], encoder.rows, encoder.name)
    unknown, marks = encoder.unknown(ids), dict.fromkeys(cut, CUT)
    marks |= {i: marks.get(i, 0) | UNKNOWN for i in unknown}
    total, done = sum(lengths), 0
    progress(0, total)
    with architectures.quiet, writer, closing(passes(encoder, ids, pooling)) as batches:
        for positions, pooled in batches:
            asked.put([todo[i] for i in positions], pooled[pooling])
            rows = {name: one.numpy() for name, one in pooled.items()}
            marked = {row: marks[i] for row, i in enumerate(positions) if i in marks}
            writer.add([texts[i] for i in positions], rows, marked)
            done += sum(lengths[i] for i in positions)
            progress(done, total)
    return [todo[i] for i in cut], [todo[i] for i in unknown]


def passes(
    encoder: Encoder, ids: list[list[int]], pooling: str = "mean"
) -> Iterator[tuple[list[int], dict[str, Tensor]]]:
    """Every batch's positions and what `forward` gives for them, on the CPU, in order.

    On a CPU a batch a thread; on a GPU the next batch is computed while this one is used.
    """

    def one(positions: list[int]) -> tuple[list[int], dict[str, Tensor]]:
        return positions, _forward(encoder, [ids[i] for i in positions], pooling)

    batches = encoder.batches([len(row) for row in ids])
    return side_by_side(one, batches, {"cpu": None, "cuda": 2}.get(encoder.device, 1))


def _forward(encoder: Encoder, ids: list[list[int]], pooling: str) -> dict[str, Tensor]:
    """`_computed`, in halves when the device has not enough memory for the whole batch."""
    with encoder.alone():
        pooled = within_memory(lambda: _computed(encoder, ids, pooling))
    if pooled is None:
        if len(ids) == 1:
            raise out_of_memory(encoder.name)
        half = len(ids) // 2
        parts = _forward(encoder, ids[:half], pooling), _forward(encoder, ids[half:], pooling)
        return {name: torch.cat([part[name] for part in parts]) for name in parts[0]}
    return pooled


def _computed(encoder: Encoder, ids: list[list[int]], pooling: str) -> dict[str, Tensor]:
    """What `encoder.forward` gives, on the CPU. Raises NotFinite where something in it is no number."""
    with own_precision(encoder.device):
        pooled = encoder.forward(ids, pooling)
    if not all(torch.isfinite(torch.stack(rows.aminmax())).all() for rows in pooled.values()):
        advice = "its weights are damaged" if encoder.dtype == "float32" else "choose dtype='float32'"
        raise NotFinite(f"model={encoder.name!r} gave NaN or infinity in {encoder.dtype}: {advice}")
    return {name: to_host(rows) for name, rows in pooled.items()}


def _from_store(space: Space, sentences: Sequence[str]) -> Tensor:
    values = space.read(sentences)
    values.setflags(write=True)  # the array is ours alone, and torch warns of read-only ones
    return torch.from_numpy(values)
