"""A pretrained model, loaded: sentences -> token ids -> every layer of it, pooled, a batch at a time (`embed`)."""

import threading
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, nullcontext
from copy import deepcopy
from dataclasses import dataclass, field, replace
from pathlib import Path

import torch
from torch import Tensor

from whitelab.base.checks import check_choice, check_int
from whitelab.base.devices import DEVICES, DTYPES, available_devices, choose_device, dtypes_for
from whitelab.encoding import architectures
from whitelab.encoding.architectures import check_ids, out_of_memory
from whitelab.encoding.checkpoints import ModelFiles, find_model
from whitelab.encoding.names import BUNDLED, OUTPUT, WORD_TABLES, ModelError, ModelName
from whitelab.encoding.pooling import UNIT, WK, check_pooling, pool
from whitelab.encoding.sentence_modules import SentenceModules, sentence_modules
from whitelab.encoding.static_embeddings import sif_weights, weighted_means, word_rows
from whitelab.store.embedding_store import StoreKey

MAX_LENGTH = 128
LONGEST = 8192  # tokens of a model's own limit: its files may name one that no machine could hold

# Hidden states of a batch, all layers together, stay below this: large enough to keep a core busy, small
# enough for its cache to help and for the allocator to reuse the widest tensor of a block (above 32 MB glibc
# takes fresh pages every time, and a GELU takes five times as long). An H200 is as fast with 0.5 GiB as with 4.
BATCH_BYTES = {"cpu": 24 * 2**20, "cuda": 2**29, "mps": 256 * 2**20}


class NotFinite(ModelError):
    """Weights that give NaN or infinity."""


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

    def unknown(self, ids: Sequence[Sequence[int]]) -> list[int]:
        """Positions of those rows of `tokenize` of whose tokens, but for special ones, half or more are unknown."""
        reader = self.tokenizer
        token, special = reader.unk_token_id, set(reader.all_special_ids)
        if token in (reader.cls_token_id, reader.sep_token_id, reader.bos_token_id, reader.eos_token_id):
            return []  # GPT-2's, which knows every byte
        special.discard(token)
        found = [i for i, row in enumerate(ids) if token in row]
        return [i for i in found if 2 * ids[i].count(token) >= sum(one not in special for one in ids[i])]

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

    def first_blocks(self, folder: Path, blocks: int) -> "Encoder":
        """A copy on the CPU with the first blocks only, of what `save` has written to `folder`.

        Raises ModelError where the model cannot be cut there.
        """
        files = replace(self.files, folder=folder, kind="", blocks=None, pickled=False)
        found = architectures.load(files, blocks)
        return replace(self, model=found.module, tokenizer=found.tokenizer, device="cpu", n_layers=found.n_layers)

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

    def vectors(self, sentences: Sequence[str]) -> tuple[Tensor, tuple[int, ...], tuple[int, ...]]:
        """`[1, n, d]` of `sentences`, the zero vector for one without tokens, and the first positions of those cut and
        of those of mostly unknown tokens."""
        ids, cut = self.tokenize(sentences)
        check_ids([max(row, default=0) for row in ids], self.rows, self.name)
        weights = sif_weights(ids, self.rows) if self.sif else None
        firsts = ({sentences[i]: i for i in reversed(found)} for found in (cut, self.unknown(ids)))
        return weighted_means(self.model.weight, ids, weights)[None], *(tuple(first.values()) for first in firsts)

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
    device = choose_device() if device is None else check_choice(device, "device", DEVICES)
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
