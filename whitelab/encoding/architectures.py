"""A folder of config, tokenizer and weights -> a network whose layers whitelab can use.

What kind of network it is, is found by what it does with two short sentences (`Network.probed`), never by its
name. Encoder-decoder models are cut down to their encoder.
"""

import threading
from collections.abc import Iterator
from contextlib import ContextDecorator, contextmanager
from copy import deepcopy
from dataclasses import dataclass
from pathlib import Path

import torch
from safetensors import SafetensorError

from whitelab.base.checks import check_int
from whitelab.base.machine import GIB, available_memory, is_out_of_memory
from whitelab.base.wording import first_line
from whitelab.encoding.checkpoints import ADAPTER_FILE, ModelFiles
from whitelab.encoding.names import ModelError

PROBE = "A man is playing a guitar by the river."
UNKNOWN = "\ua66e"  # a letter that one manuscript has once
PROBED_TOKENS = 8

# Config fields that list one item a block.
BY_BLOCK = ("layer_types", "attention_window")

# torch draws random weights from one generator a process, so two models must not be drawn at the same time.
_drawing = threading.Lock()


class _Quiet(ContextDecorator):
    """transformers tells only errors and draws no bars while any thread is in it, and then what it did before."""

    def __init__(self) -> None:
        self.lock, self.inside = threading.Lock(), 0

    def __enter__(self) -> None:
        from transformers.utils import logging

        with self.lock:
            if not self.inside:
                self.before = logging.get_verbosity(), logging.is_progress_bar_enabled()
                logging.set_verbosity_error()
                logging.disable_progress_bar()
            self.inside += 1

    def __exit__(self, *_) -> None:
        from transformers.utils import logging

        with self.lock:
            self.inside -= 1
            if not self.inside:
                verbosity, bars = self.before
                logging.set_verbosity(verbosity)
                if bars:
                    logging.enable_progress_bar()


quiet = _Quiet()


@dataclass(frozen=True, eq=False)
class Network:
    """A loaded network: `n_layers` counts the embedding layer, `blocks` is L of the whole model.

    `poolings` are those that make sense for it, `rows` its word embeddings and `limit` the most tokens it takes.
    """

    module: torch.nn.Module
    tokenizer: object
    blocks: int
    n_layers: int
    dim: int
    rows: int
    limit: int
    poolings: tuple[str, ...]


@quiet
def load(files: ModelFiles, num_layers: int | None = None, device: str = "cpu", itemsize: int = 4) -> Network:
    """Load `files` in float32 on the CPU, optionally the first `num_layers` blocks only.

    Where the last block is followed by a normalisation (T5, GPT-2, ModernBERT, ...), it follows the last block
    that is kept. `device` and `itemsize` say where the network is to go, and only count for the memory it needs.
    Raises ModelError where that is impossible, ValueError for `num_layers` out of range.
    """
    with _explained(files.name):
        config, tokenizer = _described(files)
        blocks = config.num_hidden_layers
        if num_layers is not None:
            _cut(config, check_int(num_layers, "num_layers", 1, blocks, "the model's blocks"), files.name)
        check_memory(files.name, parameters(config), device, itemsize)
        module = _random(config, files, blocks) if files.kind == "random" else _pretrained(config, files)
    if _has_both(module):
        module = module.get_encoder()  # also where the config was saved from an encoder alone (T5EncoderModel)
    module.eval()
    rows = len(_table(module, files.name))
    n_layers, dim, poolings = probe(module, tokenizer, rows, files.name)
    if n_layers != config.num_hidden_layers + 1:
        raise ModelError(
            f"model={files.name!r} must have a state for the embeddings and each of its {config.num_hidden_layers} "
            f"blocks; it gave {n_layers}"
        )
    return Network(module, tokenizer, blocks, n_layers, dim, rows, _longest(module, tokenizer), poolings)


@quiet
def word_embeddings(files: ModelFiles) -> tuple[torch.Tensor, object, int]:
    """The word-embedding matrix `[v, d]` (float32), the tokenizer, and the most tokens the model takes.

    Its d is the model's own or, where embeddings are projected to it (ALBERT, ELECTRA), smaller. Rows are not
    normalised and know no position.
    """
    with _explained(files.name):
        config, tokenizer = _described(files)
        check_memory(files.name, parameters(config), "cpu", 4)
        module = _pretrained(config, files)
    # A copy, so that the rest of the model can go.
    return _table(module, files.name).detach().clone(), tokenizer, _longest(module, tokenizer)


# ----------------------------------------------------------------------------------------------- loading


def _described(files: ModelFiles):
    """The config and the tokenizer."""
    from transformers import AutoConfig, AutoTokenizer

    local = {"local_files_only": True, "trust_remote_code": False}
    config = AutoConfig.from_pretrained(files.folder, **local)
    if getattr(config, "attention_type", None) == "block_sparse":
        # BigBird changes to full attention for good at the first short sentence, and is faster with it below
        # a thousand tokens: vectors must not depend on what came before.
        config.attention_type = "original_full"
    tokenizer = AutoTokenizer.from_pretrained(files.folder, **local)
    tokenizer(UNKNOWN)  # a vocabulary without a token for what it lacks would fail in the midst of the sentences
    return config, tokenizer


def _pretrained(config, files: ModelFiles) -> torch.nn.Module:
    from transformers import AutoModel

    if (files.folder / ADAPTER_FILE).is_file():
        raise ModelError(f"model={files.name!r} has an adapter, which is not applied here: merge it into the weights")
    module, found = AutoModel.from_pretrained(
        files.folder,
        config=config,
        use_safetensors=not files.pickled,
        weights_only=True,
        dtype=torch.float32,
        output_loading_info=True,
        ignore_mismatched_sizes=True,  # refused below, in words for whoever has the files
        local_files_only=True,
        trust_remote_code=False,
    )
    # transformers fills what does not fit with random numbers; only parts that are never used here may be missing.
    unused = ("pooler.", "decoder.") if _has_both(module) else ("pooler.",)
    absent = sorted(name for name in found["missing_keys"] if not name.startswith(unused))
    if absent:
        raise ModelError(
            f"model={files.name!r} lacks {len(absent)} of its weights, first {absent[0]}: the files are incomplete "
            f"or belong to another architecture"
        )
    if wrong := sorted(one for one in found["mismatched_keys"] if not one[0].startswith(unused)):
        name, shape, wanted = wrong[0]
        raise ModelError(
            f"model={files.name!r} has {len(wrong)} of its weights in another shape than its config says, first "
            f"{name}: {list(shape)} where {list(wanted)} is expected"
        )
    return module


def _has_both(module: torch.nn.Module) -> bool:
    """Whether it is an encoder and a decoder, of which the encoder is used; OPT is a decoder under that name."""
    return hasattr(module, "encoder") and hasattr(module, "decoder")


def _random(config, files: ModelFiles, blocks: int) -> torch.nn.Module:
    """Weights as transformers draws them before training; the first blocks are those of the whole model."""
    from transformers import AutoModel

    whole = deepcopy(config)
    if config.num_hidden_layers != blocks:
        whole, _ = _described(files)
    with _drawing, torch.random.fork_rng(devices=()):
        torch.manual_seed(files.seed)
        module = AutoModel.from_config(whole, dtype=torch.float32)
        if config.num_hidden_layers == blocks:
            return module
        short = AutoModel.from_config(config, dtype=torch.float32)
    kept = {name: value for name, value in module.state_dict().items() if name in short.state_dict()}
    short.load_state_dict(kept)
    return short


def _cut(config, blocks: int, name: str) -> None:
    """Let `config` describe the first `blocks` blocks."""
    whole, groups = config.num_hidden_layers, getattr(config, "num_hidden_groups", 1)
    if groups > 1:  # ALBERT deals its blocks out to groups that share weights
        if blocks * groups % whole:
            sizes = ", ".join(str(whole * i // groups) for i in range(1, groups + 1) if not whole * i % groups)
            raise ModelError(
                f"model={name!r} shares weights in {groups} groups, so num_layers={blocks} must be one of {sizes}"
            )
        config.num_hidden_groups = blocks * groups // whole
    for field in BY_BLOCK:
        values = getattr(config, field, None)
        if isinstance(values, list) and len(values) == whole:
            setattr(config, field, values[:blocks])
    config.num_hidden_layers = blocks


@contextmanager
def _explained(name: str) -> Iterator[None]:
    """Turn what transformers, safetensors and torch raise into a ModelError of one line."""
    try:
        yield
    except ModelError:
        raise
    except Exception as error:
        if is_out_of_memory(error):
            raise out_of_memory(name) from None
        if str(error).startswith("num_layers="):
            raise
        if "remote" in str(error) or "custom code" in str(error):
            raise ModelError(f"model={name!r} needs code of its own, which whitelab never runs") from None
        raise ModelError(f"model={name!r} could not be loaded by transformers: {first_line(error)}") from None


def _table(module: torch.nn.Module, name: str) -> torch.Tensor:
    """The word-embedding matrix."""
    try:
        return module.get_input_embeddings().weight
    except (AttributeError, NotImplementedError):
        raise ModelError(f"model={name!r} cannot be used: {type(module).__name__} has no word embeddings") from None


def _longest(module: torch.nn.Module, tokenizer) -> int:
    """The most tokens the model takes: the tokenizer's limit, or the rows of the position table."""
    limit = getattr(tokenizer, "model_max_length", None) or 10**9
    positions = getattr(module.config, "max_position_embeddings", None) or limit
    positions = positions if positions > 0 else limit  # XLNet says -1, which is none
    table = getattr(getattr(module, "embeddings", None), "position_embeddings", None)
    if getattr(table, "padding_idx", None) is not None:
        positions -= table.padding_idx + 1  # RoBERTa and its kin count positions from padding_idx + 1
    return min(limit, positions)


# ------------------------------------------------------------------------------------------------ memory


def parameters(config) -> int | None:
    """How many numbers a network of this config holds; None where transformers cannot say without building it."""
    from transformers import AutoModel

    try:
        with torch.device("meta"):
            return sum(one.numel() for one in AutoModel.from_config(config).parameters())
    except Exception:  # a class that computes with its weights while it is built
        return None


def check_memory(name: str, count: int | None, device: str, itemsize: int) -> None:
    """Raise ModelError where `count` numbers do not fit: in float32 here, then with `itemsize` bytes on `device`."""
    for where, size in {"cpu": 4, device: 4 if device == "cpu" else itemsize}.items():
        free = available_memory(where)
        if count is not None and free is not None and count * size > free:
            place = "this machine" if where == "cpu" else where
            raise ModelError(
                f"model={name!r} is larger than memory: its weights take {count * size / GIB:.1f} GiB and {place} has "
                f"{free / GIB:.1f} GiB free. Use a smaller model, or its first blocks (such as {name}:6)"
            )


def out_of_memory(name: str) -> ModelError:
    """What to say when memory ran out."""
    return ModelError(
        f"model={name!r} does not fit in memory: use a smaller model, fewer layers (num_layers) or a shorter type"
    )


# ----------------------------------------------------------------------------------------------- probing


@torch.inference_mode()
def probe(module: torch.nn.Module, tokenizer, rows: int, name: str) -> tuple[int, int, tuple[str, ...]]:
    """n_layers, d and the poolings that make sense, from two short sentences that differ in their last token.

    Where the first token's state is the same in both, the model is causal: its first token sees only itself, its
    last one everything. Otherwise the first token's state stands for the sentence, or the last one's where the
    tokenizer puts its [CLS] there (XLNet).

    Raises ModelError for a model that does not run on token ids alone, or has not one state of one size a token.
    """
    ids = _probe_ids(tokenizer, rows, name)
    other = next(i for i in (*ids[1:-1], *range(rows)) if i not in (ids[-1], tokenizer.pad_token_id))
    states = [_states(module, row, name) for row in (ids, [*ids[:-1], other])]
    shapes = list(dict.fromkeys(tuple(state.shape) for state in states[0]))
    if len(shapes) > 1 or shapes[0][:2] != (1, len(ids)):
        raise ModelError(
            f"model={name!r} cannot be used: every layer must have a state of one size for each of {len(ids)} tokens, "
            f"got the shapes {', '.join(str(list(shape[1:])) for shape in shapes)}"
        )
    causal = torch.equal(states[0][-1][:, 0], states[1][-1][:, 0])
    cls = tokenizer.cls_token_id
    ends_with_cls = cls is not None and cls == ids[-1] and cls != ids[0]
    return len(states[0]), shapes[0][2], ("mean", "last" if causal or ends_with_cls else "cls")


def _probe_ids(tokenizer, rows: int, name: str) -> list[int]:
    ids = tokenizer(PROBE, truncation=True, max_length=PROBED_TOKENS)["input_ids"]
    ids = (ids * 3)[: max(len(ids), 3)] if ids else [0, 1, 2]
    check_ids(ids, rows, name)
    return ids


def check_ids(ids: list[int], rows: int, name: str) -> None:
    """Raise ModelError where a token id has no row in the word embeddings."""
    if max(ids) >= rows:
        raise ModelError(
            f"model={name!r} has a tokenizer that does not fit its weights: token id {max(ids)} must be below the "
            f"{rows} rows of the word embeddings"
        )


def _states(module: torch.nn.Module, ids: list[int], name: str) -> tuple[torch.Tensor, ...]:
    try:
        return tuple(module(input_ids=torch.tensor([ids]), output_hidden_states=True).hidden_states)
    except Exception as error:
        raise ModelError(
            f"model={name!r} cannot be used: {type(module).__name__} gives no state of every layer for token ids alone "
            f"({first_line(error)})"
        ) from None


# ------------------------------------------------------------------------------------------------ saving


@quiet
def save(module: torch.nn.Module, tokenizer, folder: str | Path, name: str) -> None:
    """Write weights (safetensors), config and tokenizer to `folder`.

    Raises ModelError where there is no class for it, or transformers does not write such a config.
    """
    whole = _whole(module, name)
    try:
        whole.save_pretrained(folder)
        tokenizer.save_pretrained(folder)
    except (OSError, SafetensorError):
        raise
    except Exception as error:
        raise ModelError(f"model={name!r} cannot be saved: {first_line(error)}") from None


def shell_of(module: torch.nn.Module, name: str) -> type | None:
    """The class that an encoder taken out of an encoder-decoder model is written as; None for what is whole.

    Raises ModelError where there is none.
    """
    from transformers import MODEL_FOR_TEXT_ENCODING_MAPPING, MODEL_MAPPING

    config = module.config
    if isinstance(module, MODEL_MAPPING.get(type(config), ())):
        return None
    kind = MODEL_FOR_TEXT_ENCODING_MAPPING.get(type(config), None)
    if kind is None:
        raise ModelError(f"model={name!r} cannot be saved: transformers has no encoder-only {config.model_type}")
    return kind


def _whole(module: torch.nn.Module, name: str) -> torch.nn.Module:
    """`module`, or round an encoder taken out of an encoder-decoder model the class it can be loaded with."""
    kind = shell_of(module, name)
    if kind is None:
        return module
    with torch.device("meta"):  # no memory for weights that are replaced at once
        shell = kind(deepcopy(module.config))
    shell.encoder = module
    shell.set_input_embeddings(module.get_input_embeddings())
    return shell
