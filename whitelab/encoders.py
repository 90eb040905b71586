"""A pretrained model -> pooled embeddings of every layer, each unique sentence encoded once.

The only importer of transformers. Sentences are sorted by length and batched with others of exactly the
same number of tokens, so there is no padding to compute or to mask; one pass gives every layer in both
poolings, and goes to the store. On a CPU every thread works on a batch of its own.
"""

import logging
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, nullcontext
from copy import deepcopy
from dataclasses import dataclass, field, replace
from pathlib import Path

import torch
from torch import Tensor

from whitelab.checks import check_choice, check_int
from whitelab.models import BUNDLED, ModelError, ModelFiles, find_model
from whitelab.pooling import POOLINGS, check_pooling
from whitelab.store import Space, Store, StoreError, StoreKey
from whitelab.threads import side_by_side

MAX_LENGTH = 128
DTYPES = {"float32": torch.float32, "bfloat16": torch.bfloat16, "float16": torch.float16}

# A shard of the store holds this many sentences, or as many as were encoded in this time.
SHARD_SENTENCES = 2048
SHARD_SECONDS = 30.0

# Hidden states of a batch, all layers together, stay below this: large enough to keep a core busy, small
# enough for its cache to help and for the allocator to reuse the widest tensor of a block (above 32 MB glibc
# takes fresh pages every time, and a GELU takes five times as long).
BATCH_BYTES = {"cpu": 24 * 2**20, "cuda": 2**30, "mps": 256 * 2**20}

Progress = Callable[[int, int], None]


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

    float16 is not offered on a CPU, where it is emulated, about a hundred times slower.
    """
    if device == "cpu":
        return ("float32", "bfloat16")
    if device == "cuda" and torch.cuda.is_bf16_supported():
        return ("float32", "bfloat16", "float16")
    return ("float32", "float16")


@dataclass(frozen=True)
class EmbedReport:
    """What an `embed` call did: sentences `encoded` and `reused`, `truncated` ones, seconds, notes."""

    encoded: int
    reused: int
    truncated: int
    seconds: float
    notes: tuple[str, ...] = ()


@dataclass(eq=False)
class Encoder:
    """A loaded model. `n_layers` counts the embedding layer: layers are numbered 0..n_layers - 1."""

    files: ModelFiles
    model: torch.nn.Module
    tokenizer: object
    device: str
    dtype: str
    max_length: int
    n_layers: int
    dim: int
    _lock: threading.Lock = field(default_factory=threading.Lock, repr=False)

    @property
    def name(self) -> str:
        """The model's name, with the number of blocks when it was truncated."""
        whole = self.files.layers in (0, self.n_layers - 1)
        return self.files.name if whole else f"{self.files.name}[:{self.n_layers - 1}]"

    @property
    def limit(self) -> int:
        """The most tokens the model takes."""
        return _longest(self.model, self.tokenizer)

    def cut_to(self, max_length: int) -> "Encoder":
        """The same model with another longest sentence; the weights are shared.

        Raises ValueError for a length out of range.
        """
        return replace(self, max_length=check_int(max_length, "max_length", 3, self.limit, "the model's limit"))

    def key(self, pooling: str) -> StoreKey:
        """Everything that decides a stored vector."""
        return StoreKey(
            weights=self.files.weights,
            tokenizer=self.files.tokenizer,
            pooling=pooling,
            max_length=self.max_length,
            dtype=self.dtype,
            num_layers=self.n_layers,
            dim=self.dim,
            model=self.name,
        )

    def tokenize(self, sentences: Sequence[str]) -> tuple[list[list[int]], int]:
        """Token ids of each sentence, cut to `max_length`, and how many sentences were cut."""
        # Lone surrogates cannot be written as UTF-8, which the tokenizer needs.
        texts = [text.encode("utf-8", "replace").decode("utf-8") for text in sentences]
        encoded = self.tokenizer(
            texts,
            truncation=True,
            max_length=self.max_length,
            return_attention_mask=False,
            return_token_type_ids=False,
        )
        cut = sum(bool(one.overflowing) for one in encoded.encodings or [])
        return encoded["input_ids"], cut

    @torch.inference_mode()
    def forward(self, ids: Sequence[Sequence[int]]) -> dict[str, Tensor]:
        """Every pooling of every layer, `{pooling: [b, l, d]}` float32 on the CPU, of equally long rows."""
        batch = torch.tensor(ids, device=self.device)
        with nullcontext() if self.device == "cpu" else self._lock:
            hidden = self.model(input_ids=batch, output_hidden_states=True).hidden_states
        return {name: torch.stack([pool(layer) for layer in hidden], dim=1).cpu() for name, pool in POOLINGS.items()}

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
        self._whole().save_pretrained(folder)
        self.tokenizer.save_pretrained(folder)

    def _whole(self) -> torch.nn.Module:
        """`model`, or round an encoder taken out of an encoder-decoder model the class it can be loaded with."""
        from transformers import MODEL_FOR_TEXT_ENCODING_MAPPING, MODEL_MAPPING

        config = self.model.config
        if isinstance(self.model, MODEL_MAPPING.get(type(config), ())):
            return self.model
        kind = MODEL_FOR_TEXT_ENCODING_MAPPING.get(type(config), None)
        if kind is None:
            raise ModelError(
                f"model={self.name!r} cannot be saved: transformers has no encoder-only {config.model_type}"
            )
        with torch.device("meta"):  # no memory for weights that are replaced at once
            shell = kind(deepcopy(config))
        shell.encoder = self.model
        shell.set_input_embeddings(self.model.get_input_embeddings())
        return shell


def load_encoder(
    model: str = BUNDLED,
    *,
    num_layers: int | None = None,
    device: str | None = None,
    dtype: str = "float32",
    max_length: int | None = None,
) -> Encoder:
    """Load `model` ('bundled', a folder or a Hugging Face name), optionally its first `num_layers` blocks.

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
    files = find_model(model)
    network, tokenizer = _load(files, num_layers)
    limit = _longest(network, tokenizer)
    if max_length is None:
        max_length = min(MAX_LENGTH, limit)
    check_int(max_length, "max_length", 3, limit, "the model's limit")
    network = _place(network, files.name, device, dtype)
    blocks = network.config.num_hidden_layers
    return Encoder(files, network, tokenizer, device, dtype, max_length, blocks + 1, network.config.hidden_size)


def _longest(network: torch.nn.Module, tokenizer) -> int:
    """The most tokens the model takes: the tokenizer's limit, or the rows of the position table."""
    limit = getattr(tokenizer, "model_max_length", None) or MAX_LENGTH
    positions = getattr(network.config, "max_position_embeddings", None) or limit
    table = getattr(getattr(network, "embeddings", None), "position_embeddings", None)
    if getattr(table, "padding_idx", None) is not None:
        positions -= table.padding_idx + 1  # RoBERTa and its kin count positions from padding_idx + 1
    return min(limit, positions)


def _load(files: ModelFiles, num_layers: int | None):
    from transformers import AutoConfig, AutoModel, AutoTokenizer
    from transformers.utils import logging as transformers_logging

    transformers_logging.set_verbosity_error()
    transformers_logging.disable_progress_bar()
    logging.getLogger("transformers").setLevel(logging.ERROR)
    local = {"local_files_only": True, "trust_remote_code": False}
    try:
        config = AutoConfig.from_pretrained(files.folder, **local)
        if num_layers is not None:
            config.num_hidden_layers = check_int(
                num_layers, "num_layers", 1, config.num_hidden_layers, "the model's blocks"
            )
        tokenizer = AutoTokenizer.from_pretrained(files.folder, **local)
        network, found = AutoModel.from_pretrained(
            files.folder,
            config=config,
            use_safetensors=True,
            dtype=torch.float32,
            output_loading_info=True,
            **local,
        )
    except (MemoryError, torch.OutOfMemoryError):
        raise _out_of_memory(files.name) from None
    except Exception as error:
        if str(error).startswith("num_layers="):
            raise
        if "remote" in str(error) or "custom code" in str(error):
            raise ModelError(f"model={files.name!r} needs code of its own, which whitelab never runs") from None
        if "allocate memory" in str(error):
            raise _out_of_memory(files.name) from None
        reason = (str(error).strip().splitlines() or [type(error).__name__])[0]
        raise ModelError(f"model={files.name!r} could not be loaded by transformers: {reason}") from None
    if hasattr(network, "decoder") and hasattr(network, "encoder"):
        network = network.get_encoder()  # also where the config was saved from an encoder alone (T5EncoderModel)
    # transformers fills what a checkpoint lacks with random numbers; only parts never used here may be missing.
    absent = sorted(name for name in found["missing_keys"] if not name.startswith(("pooler.", "decoder.")))
    if absent:
        raise ModelError(
            f"model={files.name!r} lacks {len(absent)} of its weights, first {absent[0]}: the files are incomplete "
            f"or belong to another architecture"
        )
    return network, tokenizer


def _place(network: torch.nn.Module, name: str, device: str, dtype: str) -> torch.nn.Module:
    try:
        return network.to(device=device, dtype=DTYPES[dtype]).eval()
    except torch.OutOfMemoryError:
        raise _out_of_memory(name) from None


def _out_of_memory(name: str) -> ModelError:
    return ModelError(
        f"model={name!r} does not fit in memory: use a smaller model, fewer layers (num_layers) or a shorter type"
    )


def embed(
    encoder: Encoder,
    sentences: Sequence[str],
    pooling: str = "mean",
    *,
    store: Store | None = None,
    progress: Progress | None = None,
) -> tuple[Tensor, EmbedReport]:
    """Embeddings `[l, n, d]` (float32, CPU) of `sentences` in every layer, and a report.

    With a `store`, what it holds is not encoded again and what is encoded is kept, in both poolings, a
    shard at a time: after a kill or a cancel (`progress` raising) at most the shard in flight is lost.
    `progress(done, total)` counts tokens, which is what time goes by. A store that cannot be written to
    costs a note, not the result.
    """
    check_pooling(pooling)
    if not sentences:
        raise ValueError("sentences must hold at least one sentence, got none")
    start = time.perf_counter()
    spaces, notes = _open_spaces(encoder, store)
    todo = _missing(spaces, sentences)
    fresh, truncated = _encode(encoder, [sentences[i] for i in todo], spaces, notes, progress)
    values = _collect(spaces, sentences, todo, fresh, pooling)
    for space in spaces.values():
        notes += [f"a damaged file of the store was set aside and made anew: {name}" for name in space.damaged]
    if todo and spaces:
        store.evict(keep=list(spaces.values()))
    seconds = time.perf_counter() - start
    unique = len(set(sentences))
    return values, EmbedReport(len(todo), unique - len(todo), truncated, seconds, tuple(dict.fromkeys(notes)))


def _open_spaces(encoder: Encoder, store: Store | None) -> tuple[dict, list[str]]:
    if store is None:
        return {}, []
    try:
        return {pooling: store.space(encoder.key(pooling)) for pooling in POOLINGS}, []
    except StoreError as error:
        return {}, [f"embeddings are not kept on disk: {error}"]


def _missing(spaces: dict, sentences: Sequence[str]) -> list[int]:
    """First positions of the unique sentences that some pooling lacks."""
    if not spaces:
        return list({text: i for i, text in reversed(list(enumerate(sentences)))}.values())[::-1]
    return sorted(set().union(*(space.missing(sentences) for space in spaces.values())))


def _encode(
    encoder: Encoder, texts: list[str], spaces: dict, notes: list[str], progress: Progress | None
) -> tuple[dict[str, dict[str, Tensor]], int]:
    """Encode unique `texts`; vectors are written to `spaces`, and returned only where there are none."""
    kept: dict[str, dict[str, Tensor]] = {name: {} for name in POOLINGS}
    if not texts:
        return kept, 0
    ids, truncated = encoder.tokenize(texts)
    lengths = [len(row) for row in ids]
    if 0 in lengths:
        raise ValueError(f"sentences must hold text, got {texts[lengths.index(0)]!r}, which has no token")
    total, done = sum(lengths), 0
    pending: dict[str, dict[str, Tensor]] = {name: {} for name in POOLINGS}
    flushed = time.perf_counter()

    def flush() -> None:
        for name, rows in pending.items():
            if not rows:
                continue
            if spaces:
                try:
                    spaces[name].write(list(rows), torch.stack(list(rows.values())).numpy())
                except StoreError as error:
                    notes.append(f"embeddings are not kept on disk: {error}")
                    kept[name].update(rows)
            else:
                kept[name].update(rows)
            pending[name] = {}

    try:
        if progress:
            progress(0, total)
        with closing(passes(encoder, ids)) as batches:
            for positions, pooled in batches:
                for name, rows in pooled.items():
                    pending[name].update({texts[i]: row for i, row in zip(positions, rows, strict=True)})
                done += sum(lengths[i] for i in positions)
                if len(pending["mean"]) >= SHARD_SENTENCES or time.perf_counter() - flushed > SHARD_SECONDS:
                    flush()
                    flushed = time.perf_counter()
                if progress:
                    progress(done, total)
    finally:
        flush()
    return kept, truncated


def passes(encoder: Encoder, ids: list[list[int]]) -> Iterator[tuple[list[int], dict[str, Tensor]]]:
    """Every batch's positions and what `forward` gives for them, in order; on a CPU a batch a thread."""

    def one(positions: list[int]) -> tuple[list[int], dict[str, Tensor]]:
        return positions, _forward(encoder, [ids[i] for i in positions])

    batches = encoder.batches([len(row) for row in ids])
    return side_by_side(one, batches, None if encoder.device == "cpu" else 1)


def _forward(encoder: Encoder, ids: list[list[int]]) -> dict[str, Tensor]:
    """`encoder.forward`, in halves when the device has not enough memory for the whole batch."""
    try:
        pooled = encoder.forward(ids)
    except (torch.OutOfMemoryError, RuntimeError) as error:
        if not isinstance(error, torch.OutOfMemoryError) and "memory" not in str(error):
            raise
        if len(ids) == 1:
            raise _out_of_memory(encoder.name) from None
        half = len(ids) // 2
        parts = _forward(encoder, ids[:half]), _forward(encoder, ids[half:])
        return {name: torch.cat([part[name] for part in parts]) for name in parts[0]}
    if not all(torch.isfinite(torch.stack(rows.aminmax())).all() for rows in pooled.values()):
        advice = "its weights are damaged" if encoder.dtype == "float32" else "choose dtype='float32'"
        raise ModelError(f"model={encoder.name!r} gave NaN or infinity in {encoder.dtype}: {advice}")
    return pooled


def _collect(
    spaces: dict, sentences: Sequence[str], todo: list[int], fresh: dict[str, dict[str, Tensor]], pooling: str
) -> Tensor:
    """`[l, n, d]` from the store, and from memory what the store could not take."""
    rows = fresh[pooling]
    if not rows:
        return _from_store(spaces[pooling], sentences)
    stored = list(dict.fromkeys(text for text in sentences if text not in rows))
    if stored:
        values = _from_store(spaces[pooling], stored)
        rows = rows | {text: values[:, i] for i, text in enumerate(stored)}
    return torch.stack([rows[text] for text in sentences], dim=1).contiguous()


def _from_store(space: Space, sentences: Sequence[str]) -> Tensor:
    values = space.read(sentences)
    values.setflags(write=True)  # the array is ours alone, and torch warns of read-only ones
    return torch.from_numpy(values)
