"""A pretrained model -> pooled embeddings of every layer, each unique sentence encoded once.

Sentences are sorted by length and batched with others of exactly the
same number of tokens, so there is no padding to compute or to mask; one pass gives every layer in both
of the model's plain poolings, or in SBERT-WK, and goes to the store. On a CPU every thread works on a batch of its own.
"""

import threading
import time
from collections.abc import Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, closing, nullcontext
from copy import deepcopy
from dataclasses import dataclass, field, replace
from pathlib import Path

import torch
from jaxtyping import Float
from torch import Tensor

from whitelab.base.checks import check_choice, check_int, check_strings
from whitelab.base.devices import to_host
from whitelab.base.machine import within_memory
from whitelab.base.progress import Progress, silent
from whitelab.base.threads import side_by_side
from whitelab.encoding import architectures
from whitelab.encoding.architectures import check_ids, out_of_memory
from whitelab.encoding.checkpoints import BUNDLED, OUTPUT, WORD_TABLES, ModelError, ModelFiles, ModelName, find_model
from whitelab.encoding.pooling import UNIT, WK, check_pooling, pool
from whitelab.encoding.sentence_modules import SentenceModules, changed_after, sentence_modules
from whitelab.encoding.static_embeddings import sif_weights, weighted_means, word_rows
from whitelab.store.embedding_store import Space, Store, StoreError, StoreKey
from whitelab.store.shard_writer import ShardWriter

MAX_LENGTH = 128
LONGEST = 8192  # tokens of a model's own limit: its files may name one that no machine could hold
DTYPES = {"float32": torch.float32, "bfloat16": torch.bfloat16, "float16": torch.float16}

# A shard of the store holds this many sentences, or as many as were encoded in this time.
SHARD_SENTENCES = 1024
SHARD_SECONDS = 30.0

# Hidden states of a batch, all layers together, stay below this: large enough to keep a core busy, small
# enough for its cache to help and for the allocator to reuse the widest tensor of a block (above 32 MB glibc
# takes fresh pages every time, and a GELU takes five times as long). An H200 is as fast with 0.5 GiB as with 4.
BATCH_BYTES = {"cpu": 24 * 2**20, "cuda": 2**29, "mps": 256 * 2**20}


def available_devices() -> tuple[str, ...]:
    """The devices torch can use here, `cpu` always among them."""
    has = {"cpu": True, "cuda": torch.cuda.is_available(), "mps": torch.backends.mps.is_available()}
    return tuple(name for name in BATCH_BYTES if has[name])


def choose_device() -> str:
    """`cuda` or `mps` when there is one, else `cpu`."""
    if torch.cuda.is_available():
        return "cuda"
    return "mps" if torch.backends.mps.is_available() else "cpu"


def device_name(device: str) -> str:
    """What to show: the GPU's name, or the number of processor threads."""
    if device == "cuda":
        return torch.cuda.get_device_name()
    threads = torch.get_num_threads()
    return "Apple GPU" if device == "mps" else f"CPU, {threads} thread{'s' if threads > 1 else ''}"


def dtypes_for(device: str) -> tuple[str, ...]:
    """The compute types that make sense on `device`, the default (float32) first.

    What is emulated is not offered: float16 on a CPU, about a hundred times slower; bfloat16 on GPUs before Ampere.
    """
    if device == "cpu":
        return ("float32", "bfloat16")
    if device == "cuda" and torch.cuda.is_bf16_supported(including_emulation=False):
        return ("float32", "bfloat16", "float16")
    return ("float32", "float16")


class NotFinite(ModelError):
    """Weights that give NaN or infinity."""


@dataclass(frozen=True)
class EmbedReport:
    """What an `embed` call did: different sentences `encoded` and `reused`, seconds, notes.

    `cut` are the first positions of those, of either, that are longer than the model reads.
    """

    encoded: int
    reused: int
    cut: tuple[int, ...]
    seconds: float
    notes: tuple[str, ...] = ()

    @property
    def truncated(self) -> int:
        """How many different sentences were cut."""
        return len(self.cut)


@dataclass(eq=False)
class Encoder:
    """A loaded model. `n_layers` counts the embedding layer: layers are numbered 0..n_layers - 1.

    `poolings` are those that one pass gives together: `mean` and `cls`, or `mean` and `last` where the first token does
    not see the sentence (`architectures.probe`); `pooling_choices` has `wk` beside them, which costs. `rows` is the
    number of its word embeddings, `limit` the most tokens it takes.
    """

    files: ModelFiles
    model: torch.nn.Module
    tokenizer: object
    device: str
    dtype: str
    max_length: int
    n_layers: int
    dim: int
    poolings: tuple[str, ...] = ("mean", "cls")
    rows: int | None = None
    limit: int = MAX_LENGTH
    _lock: threading.Lock = field(default_factory=threading.Lock, repr=False)
    # Where a tokenizer cuts is its state, and those of `cut_to` share one.
    _cutting: threading.Lock = field(default_factory=threading.Lock, repr=False)

    @property
    def name(self) -> str:
        """The model's name, with the number of blocks when it was truncated."""
        whole = self.files.layers in (0, self.n_layers - 1)
        return self.files.name if whole else f"{self.files.name}[:{self.n_layers - 1}]"

    @property
    def pooling_choices(self) -> tuple[str, ...]:
        """The poolings that make sense for it: SBERT-WK takes [CLS] in front and a last token that says nothing."""
        return (*self.poolings, WK) if "cls" in self.poolings else self.poolings

    def given_with(self, pooling: str) -> tuple[str, ...]:
        """The poolings that a pass for `pooling` gives and a store keeps: nobody waits for `wk` who did not ask."""
        return (WK,) if pooling == WK else self.poolings

    def cut_to(self, max_length: int) -> "Encoder":
        """The same model with another longest sentence; the weights are shared.

        Raises ValueError for a length out of range.
        """
        return replace(self, max_length=check_int(max_length, "max_length", 3, self.limit, "the model's limit"))

    def key(self, pooling: str) -> StoreKey:
        """Everything that decides a stored vector; one of length 1 is stored as it is before."""
        return StoreKey(
            weights=self.files.weights,
            config=self.files.config,
            tokenizer=self.files.tokenizer,
            pooling=pooling.removeprefix(UNIT),
            max_length=self.max_length,
            dtype=self.dtype,
            num_layers=self.n_layers,
            dim=self.dim,
            model=self.name,
        )

    def tokenize(self, sentences: Sequence[str]) -> tuple[list[list[int]], list[int]]:
        """Token ids of each sentence, cut to `max_length`, and the positions of those that were cut."""
        # Lone surrogates cannot be written as UTF-8, which the tokenizer needs.
        texts = [text.encode("utf-8", "replace").decode("utf-8") for text in sentences]
        with self._cutting:
            encoded = self.tokenizer(
                texts,
                truncation=True,
                max_length=self.max_length,
                return_attention_mask=False,
                return_token_type_ids=False,
            )
        rows = encoded["input_ids"]
        if encoded.encodings is not None:
            return rows, [i for i, one in enumerate(encoded.encodings) if one.overflowing]
        # A tokenizer written in Python, such as ByT5's, does not say what it cut.
        full = [i for i, row in enumerate(rows) if len(row) == self.max_length]
        return rows, [i for i in full if len(self.tokenizer(texts[i], verbose=False)["input_ids"]) > self.max_length]

    @torch.inference_mode()
    def forward(self, ids: Sequence[Sequence[int]], pooling: str = "mean") -> dict[str, Tensor]:
        """`{name: [b, l, d]}` float32, where the model is, of equally long rows: all names that come with `pooling`."""
        hidden = self._hidden_states(ids)
        return {name: pool(name, hidden) for name in self.given_with(pooling)}

    def _hidden_states(self, ids: Sequence[Sequence[int]]) -> tuple[Tensor, ...]:
        return self.model(input_ids=torch.tensor(ids, device=self.device), output_hidden_states=True).hidden_states

    def alone(self) -> AbstractContextManager:
        """One thread at a time on a GPU, whose memory is for one batch; on a CPU as many as come."""
        return nullcontext() if self.device == "cpu" else self._lock

    def batches(self, lengths: Sequence[int]) -> Iterator[list[int]]:
        """Positions in batches of one token count each, longest first."""
        bytes_a_token = self.n_layers * self.dim * DTYPES[self.dtype].itemsize
        tokens = max(1, BATCH_BYTES[self.device] // bytes_a_token)
        order = sorted(range(len(lengths)), key=lambda i: -lengths[i])
        start = 0
        while start < len(order):
            length = lengths[order[start]]
            limit = start + max(1, tokens // length)
            end = start
            while end < min(limit, len(order)) and lengths[order[end]] == length:
                end += 1
            yield order[start:end]
            start = end

    def save(self, folder: str | Path) -> None:
        """Write weights (safetensors), config and tokenizer of what is loaded to `folder`, an existing one.

        The blocks that were left out at loading are not there, and `load_encoder(folder)` gives the same
        vectors. The encoder of an encoder-decoder model is written as an encoder of its own.

        Raises ModelError where transformers has no class for such an encoder.
        """
        tokenizer = self.cutting_tokenizer()
        if tokenizer.pad_token is None:  # GPT-2 has none; what is padded is masked, so any token will do
            tokenizer.pad_token = (*tokenizer.all_special_tokens, tokenizer.convert_ids_to_tokens(0))[0]
        architectures.save(self.model, tokenizer, folder, self.name)

    def cutting_tokenizer(self) -> object:
        """A copy of the tokenizer that, once written, cuts where this encoder does."""
        with self._cutting:
            tokenizer = deepcopy(self.tokenizer)
        tokenizer("", truncation=True, max_length=self.max_length)  # tokenizer.json holds how the last call cut
        return tokenizer

    def check_pooling(self, pooling: str) -> str:
        """Return `pooling` if this model has it; ValueError otherwise."""
        plain = check_pooling(pooling).removeprefix(UNIT)
        if plain in self.pooling_choices:
            return pooling
        why = {
            "cls": "its first token does not see the tokens after it",
            "last": "its first token sees the whole sentence",
            WK: "SBERT-WK weighs the layers of a model that sees both ways, with [CLS] in front",
        }
        reason = "that of its modules" if self.files.kind == OUTPUT else why[plain]
        raise ValueError(f"pooling={pooling!r} must be {' or '.join(self.poolings)} for model={self.name!r}: {reason}")


@dataclass(eq=False)
class OutputEncoder(Encoder):
    """A model with its sentence-transformers modules: one layer, its own output, under the one pooling they have.

    Equal to what `SentenceTransformer(folder).encode` gives at the same longest sentence: where nothing else is asked
    for, that of the folder or else of its tokenizer and model, `LONGEST` tokens at most.
    """

    modules: SentenceModules | None = None

    @property
    def pooling_choices(self) -> tuple[str, ...]:
        """That of its modules."""
        return self.poolings

    @torch.inference_mode()
    def forward(self, ids: Sequence[Sequence[int]], pooling: str = "mean") -> dict[str, Tensor]:
        """`{pooling: [b, 1, d]}` float32 of equally long rows."""
        return {self.modules.pooling: self.modules(self._hidden_states(ids))[:, None]}

    def save(self, folder: str | Path) -> None:
        """Raises ModelError: the transformer alone, which this would write, is another model."""
        raise ModelError(f"model={self.name!r} cannot be saved: it is a folder of sentence-transformers already")


@dataclass(eq=False)
class StaticEncoder(Encoder):
    """Means of word embeddings, one layer: `model` is an Embedding with a row for each token id.

    Special tokens do not count. With `sif` each token weighs a / (a + p), where p is its frequency in the sentences
    that are embedded together, so that a vector depends on the others: none are kept in a store.
    """

    sif: bool = False

    def tokenize(self, sentences: Sequence[str]) -> tuple[list[list[int]], list[int]]:
        """Token ids of each sentence without special tokens, as far as the model itself would read."""
        ids, cut = super().tokenize(sentences)
        special = set(self.tokenizer.all_special_ids) - {self.tokenizer.unk_token_id}
        return [[i for i in row if i not in special] for row in ids], cut

    def vectors(self, sentences: Sequence[str]) -> tuple[Tensor, tuple[int, ...]]:
        """`[1, n, d]` of `sentences`, the zero vector for one without tokens, and the first positions of those cut."""
        ids, cut = self.tokenize(sentences)
        check_ids([max(row, default=0) for row in ids], self.rows, self.name)
        weights = sif_weights(ids, self.rows) if self.sif else None
        first = {sentences[i]: i for i in reversed(cut)}
        return weighted_means(self.model.weight, ids, weights)[None], tuple(first.values())

    def words(self, sentences: Sequence[str]) -> tuple[Tensor, Tensor]:
        """`[1, u, d]`, the tokens of `sentences` as `vectors` adds them up, with `sif` each times its weight; `[u]`,
        how often each occurs."""
        ids, _ = self.tokenize(sentences)
        rows, counts = word_rows(self.model.weight.detach(), ids, sif_weights(ids, self.rows) if self.sif else None)
        return rows[None], counts

    def save(self, folder: str | Path) -> None:
        """Raises ModelError: there is no transformer to save."""
        raise ModelError(f"model={self.name!r} cannot be saved: it is a table of word embeddings, not a transformer")


def load_encoder(
    model: str = BUNDLED,
    *,
    num_layers: int | None = None,
    device: str | None = None,
    dtype: str = "float32",
    max_length: int | None = None,
    allow_bin: bool = False,
) -> Encoder:
    """Load `model` ('bundled', a folder or a Hugging Face name, with the modifiers of `ModelName`).

    `num_layers` keeps the first blocks only, as `NAME:3` does. `allow_bin` also takes pickled weights, read with
    `weights_only=True`, where there are no others.

    Raises ModelError when it cannot be had or loaded, ValueError for an argument out of range.
    """
    device = choose_device() if device is None else check_choice(device, "device", tuple(BATCH_BYTES))
    if device not in available_devices():
        raise ValueError(f"device={device!r} must be one of {', '.join(available_devices())} on this machine")
    check_choice(dtype, "dtype", DTYPES)
    if dtype not in dtypes_for(device):
        raise ValueError(f"dtype={dtype!r} must be one of {', '.join(dtypes_for(device))} on {device}")
    if max_length is not None:
        check_int(max_length, "max_length", 3)
    if num_layers is not None and ModelName.parse(model).blocks not in (None, num_layers):
        raise ValueError(f"num_layers={num_layers} must not differ from the blocks in model={model!r}")
    files = find_model(model, allow_bin=allow_bin)
    if files.kind in WORD_TABLES:
        return _static(files, num_layers, max_length)
    blocks = files.blocks if num_layers is None else num_layers
    if files.kind == OUTPUT and blocks is not None:
        raise ValueError(f"num_layers={blocks} has no meaning for model={files.name!r}, whose modules take all blocks")
    found = architectures.load(files, blocks, device, DTYPES[dtype].itemsize)
    if files.kind == OUTPUT:
        return _output(files, found, device, dtype, max_length)
    return Encoder(
        replace(files, layers=found.blocks, dim=found.dim),
        _place(found.module, files.name, device, dtype),
        found.tokenizer,
        device,
        dtype,
        _length(max_length, found.limit),
        found.n_layers,
        found.dim,
        found.poolings,
        found.rows,
        found.limit,
    )


def _output(
    files: ModelFiles, found: architectures.Network, device: str, dtype: str, max_length: int | None
) -> OutputEncoder:
    try:
        architectures.shell_of(found.module, files.name)
    except ModelError:
        raise ModelError(
            f"model={files.name!r} ends in a decoder, whose states are its output; whitelab has its encoder's"
        ) from None
    modules = sentence_modules(files, found.dim)
    longest = max_length or min(modules.longest or found.limit, found.limit, LONGEST)
    return OutputEncoder(
        replace(files, layers=0, dim=modules.dim),
        _place(found.module, files.name, device, dtype),
        found.tokenizer,
        device,
        dtype,
        _length(longest, found.limit),
        1,
        modules.dim,
        (modules.pooling,),
        found.rows,
        found.limit,
        modules=modules,
    )


def _static(files: ModelFiles, num_layers: int | None, max_length: int | None) -> StaticEncoder:
    if num_layers is not None:
        raise ValueError(f"num_layers={num_layers} has no meaning for model={files.name!r}, which has layer 0 alone")
    matrix, tokenizer, limit = architectures.word_embeddings(files)
    rows, dim = matrix.shape
    return StaticEncoder(
        replace(files, layers=0, dim=dim),
        torch.nn.Embedding.from_pretrained(matrix),
        tokenizer,
        "cpu",
        "float32",
        _length(max_length, limit),
        1,
        dim,
        ("mean",),
        rows,
        limit,
        sif=files.kind == "sif",
    )


def _length(max_length: int | None, limit: int) -> int:
    """The longest sentence in tokens: what was asked for, or the default, within the model's limit."""
    if max_length is None:
        max_length = min(MAX_LENGTH, limit)
    return check_int(max_length, "max_length", 3, limit, "the model's limit")


def _place(network: torch.nn.Module, name: str, device: str, dtype: str) -> torch.nn.Module:
    try:
        return network.to(device=device, dtype=DTYPES[dtype]).eval()
    except torch.OutOfMemoryError:
        raise out_of_memory(name) from None


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
    Raises TypeError for `sentences` that are one string, or not all strings.
    """
    encoder.check_pooling(pooling)
    sentences = check_strings(sentences, "sentences")
    if pooling.startswith(UNIT):
        values, report = embed(encoder, sentences, pooling.removeprefix(UNIT), store=store, progress=progress)
        return torch.nn.functional.normalize(values, dim=-1), report
    if not sentences:
        raise ValueError("sentences must hold at least one sentence, got none")
    start = time.perf_counter()
    if isinstance(encoder, StaticEncoder):
        values, cut = encoder.vectors(sentences)
        bare = len({sentences[i] for i in (~values[0].any(dim=1)).nonzero()[:, 0].tolist()})
        notes = (f"sentences without a token: {bare}, whose vectors are zero and whose cosines are 0",) if bare else ()
        return values, EmbedReport(len(set(sentences)), 0, cut, time.perf_counter() - start, notes)
    spaces, absent, notes = _open_spaces(encoder, store, pooling, sentences)
    asked = _Asked.of(sentences, absent.get(pooling))
    todo = sorted(set().union(*absent.values())) if spaces else sorted(asked.fresh)
    writer = ShardWriter(spaces, SHARD_SENTENCES, SHARD_SECONDS)
    cut = _encode(encoder, asked, todo, pooling, writer, progress)
    try:
        asked.read(spaces.get(pooling))
        encoded = set(todo)
        kept = {text: first for text, (first, *_) in asked.places.items() if first not in encoded}
        firsts = list(kept.values())
        cut += [firsts[i] for i in spaces[pooling].cut(list(kept))] if kept else []
    except StoreError as error:  # another process has evicted them meanwhile, say
        notes.append(f"embeddings that were on disk could not be read and were made anew: {error}")
        lost = asked.lose()
        cut += _encode(encoder, asked, lost, pooling, writer, progress)
        todo = sorted({*todo, *lost})
    notes += [f"embeddings are not kept on disk: {reason}" for reason in writer.refused]
    notes += _modules_left_out(encoder)
    for space in spaces.values():
        notes += [f"a damaged file of the store was set aside and made anew: {name}" for name in space.damaged]
    if todo and spaces:
        try:
            store.evict(keep=list(spaces.values()))
        except StoreError as error:
            notes.append(f"the store could not be brought within its size: {error}")
    reused, seconds = len(asked.places) - len(todo), time.perf_counter() - start
    return asked.values, EmbedReport(len(todo), reused, tuple(cut), seconds, tuple(dict.fromkeys(notes)))


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
        places: dict[str, list[int]] = {}
        for i, text in enumerate(sentences):
            places.setdefault(text, []).append(i)
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


def _modules_left_out(encoder: Encoder) -> list[str]:
    left_out = changed_after(encoder.files) if encoder.files.kind == "" else ()
    kinds = ", ".join(left_out)
    return [f"{encoder.name} has modules after its layers ({kinds}), left out here: see output:"] if left_out else []


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
) -> list[int]:
    """Encode the sentences at `todo`, all different: for `asked` in the pooling asked for, for `writer` in all.

    Returns the positions of those that were cut.
    """
    if not todo:
        return []
    texts = [asked.sentences[i] for i in todo]
    ids, cut = encoder.tokenize(texts)
    lengths = [len(row) for row in ids]
    if 0 in lengths:
        raise ValueError(f"sentences must hold text, got {texts[lengths.index(0)]!r}, which has no token")
    check_ids([max(row) for row in ids], encoder.rows, encoder.name)
    total, done, long = sum(lengths), 0, set(cut)
    progress(0, total)
    with architectures.quiet, writer, closing(passes(encoder, ids, pooling)) as batches:
        for positions, pooled in batches:
            asked.put([todo[i] for i in positions], pooled[pooling])
            rows = {name: one.numpy() for name, one in pooled.items()}
            writer.add([texts[i] for i in positions], rows, [row for row, i in enumerate(positions) if i in long])
            done += sum(lengths[i] for i in positions)
            progress(done, total)
    return [todo[i] for i in cut]


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
    with torch.autocast(torch.device(encoder.device).type, enabled=False):  # whatever the caller has on in this thread
        pooled = encoder.forward(ids, pooling)
    if not all(torch.isfinite(torch.stack(rows.aminmax())).all() for rows in pooled.values()):
        advice = "its weights are damaged" if encoder.dtype == "float32" else "choose dtype='float32'"
        raise NotFinite(f"model={encoder.name!r} gave NaN or infinity in {encoder.dtype}: {advice}")
    return {name: to_host(rows) for name, rows in pooled.items()}


def _from_store(space: Space, sentences: Sequence[str]) -> Tensor:
    values = space.read(sentences)
    values.setflags(write=True)  # the array is ours alone, and torch warns of read-only ones
    return torch.from_numpy(values)
