"""The modules of a sentence-transformers folder: what its makers do with hidden states to get the model's own output.

`modules.json` lists them: the transformer, a mean of layers perhaps, a pooling, then dense layers and normalisations.
They are read from their configs and safetensors, never from code that a folder names.
"""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import torch
from jaxtyping import Float
from safetensors import SafetensorError
from safetensors.torch import load_file
from torch import Tensor

from whitelab.base.checks import check_int
from whitelab.base.wording import first_line
from whitelab.encoding.checkpoints import ABOUT_FILES, MODULES_FILE, PROMPTS_FILE, ModelFiles, module_folders
from whitelab.encoding.names import ModelError
from whitelab.encoding.pooling import POOLINGS

_WEIGHTS = "model.safetensors"
_SENTENCE = "sentence_embedding"  # where modules after the pooling find a vector and leave theirs
_PLAIN = ("Transformer", "WeightedLayerPooling", "Pooling", "Normalize", "Dropout")
# By the name of the class, whichever of sentence-transformers' homes it is said to live in.
_ACTIVATIONS = {one.__name__: one for one in (torch.nn.Identity, torch.nn.Tanh, torch.nn.ReLU, torch.nn.GELU)}
# What a folder may say of its transformer, in sentence_bert_config.json or its like, and whitelab does.
_KNOWN = {
    "do_lower_case": False,
    "transformer_task": "feature-extraction",
    "modality_config": {"text": {"method": "forward", "method_output_name": "last_hidden_state"}},
    "module_output_name": "token_embeddings",
    "processing_kwargs": {},
}
_HANDED = ("model_args", "model_kwargs", "config_args", "config_kwargs", "tokenizer_args", "processor_kwargs")
# Arguments handed to transformers that change no vector of a text that is not cut.
_HARMLESS = {"attn_implementation", "dtype", "model_max_length", "output_hidden_states", "padding_side", "torch_dtype"}
_HARMLESS |= {"trust_remote_code", "use_fast", "add_pooling_layer"}
_KNOWN_POOLINGS = {"mean": "mean", "cls": "cls", "lasttoken": "last"}  # to the keys of `POOLINGS`
_OLD_NAMES = {
    "pooling_mode_mean_tokens": "mean",
    "pooling_mode_cls_token": "cls",
    "pooling_mode_lasttoken": "lasttoken",
    "pooling_mode_max_tokens": "max",
    "pooling_mode_mean_sqrt_len_tokens": "mean_sqrt_len_tokens",
    "pooling_mode_weightedmean_tokens": "weightedmean",
}


class Normalize(torch.nn.Module):
    """Rows brought to length 1."""

    def forward(self, x: Float[Tensor, "b d"]) -> Float[Tensor, "b d"]:
        """x / |x|, a zero row left as it is."""
        return torch.nn.functional.normalize(x, dim=-1)


class Dense(torch.nn.Module):
    """An affine map and its activation, then plus what came in (`use_residual`), mapped where its size is another."""

    def __init__(self, d: int, m: int, bias: bool, activation: torch.nn.Module, use_residual: bool) -> None:
        super().__init__()
        self.linear, self.activation, self.residual = torch.nn.Linear(d, m, bias), activation, None
        if use_residual:
            self.residual = torch.nn.Identity() if d == m else torch.nn.Linear(d, m, bias=False)

    def forward(self, x: Float[Tensor, "b d"]) -> Float[Tensor, "b m"]:
        """f(x A + b), and with a residual x or x R added."""
        mapped = self.activation(self.linear(x))
        return mapped if self.residual is None else mapped + self.residual(x)


@dataclass(frozen=True, eq=False)
class SentenceModules:
    """What follows the transformer: a `pooling` of `POOLINGS`, then `heads`; of what they give the first `dim`.

    `weights` of the layers from `start` on are those of a mean of layers, None for the last layer alone. `longest` is
    where the folder cuts a text, in tokens; None where it leaves that to the tokenizer and the model.
    """

    pooling: str
    heads: torch.nn.Sequential
    dim: int
    start: int = 0
    weights: Float[Tensor, "l"] | None = None
    longest: int | None = None

    def __call__(self, hidden: Sequence[Float[Tensor, "b t d"]]) -> Float[Tensor, "b m"]:
        """The model's own output for the states of every layer, without padding, in float32."""
        pool = POOLINGS[self.pooling]
        if self.weights is None:
            pooled = pool(hidden[-1])
        else:  # pooling commutes with a mean of layers
            layers = torch.stack([pool(one) for one in hidden[self.start :]])
            weights = self.weights.to(layers.device)
            pooled = (weights[:, None, None] * layers).sum(dim=0) / weights.sum()
        return self.heads(pooled.cpu())[:, : self.dim]


def sentence_modules(files: ModelFiles, dim: int) -> SentenceModules:
    """The modules of a folder whose transformer has d = `dim`.

    Raises ModelError for a module, a pooling, an activation or a way to read text that is not known here, and for
    damaged files.
    """
    try:
        return _read(files, dim)
    except (OSError, ValueError, KeyError, TypeError, AttributeError, SafetensorError, RuntimeError) as error:
        if isinstance(error, ModelError):
            raise
        raise ModelError(f"model={files.name!r} has modules that cannot be read: {first_line(error)}") from None


def changed_after(files: ModelFiles) -> tuple[str, ...]:
    """The classes of modules that change more than the length of a pooled layer, none where they cannot be read."""
    try:
        kinds = [kind for kind, _ in module_folders(files.name, files.folder)]
    except ModelError:
        return ()
    return tuple(dict.fromkeys(kind for kind in kinds if kind not in _PLAIN))


def write_modules(folder: Path, pooling: str, dim: int, max_length: int) -> None:
    """Beside a transformer of d = `dim`: what makes a `pooling` of its last layer its output, in sentence-transformers.

    `pooling` is one of `POOLINGS`. The names are those that its older versions read too.
    """
    place = folder / "1_Pooling"
    place.mkdir()
    kinds = {"Transformer": "", "Pooling": place.name}
    listed = [
        {"idx": i, "name": str(i), "path": path, "type": f"sentence_transformers.models.{kind}"}
        for i, (kind, path) in enumerate(kinds.items())
    ]
    flags = {flag: _KNOWN_POOLINGS.get(mode) == pooling for flag, mode in _OLD_NAMES.items()}
    about = {"max_seq_length": max_length, "do_lower_case": False}
    for path, record in (
        (folder / MODULES_FILE, listed),
        (place / "config.json", {"word_embedding_dimension": dim} | flags),
        (folder / "sentence_bert_config.json", about),
    ):
        path.write_text(json.dumps(record, indent=2), "utf-8")


def _read(files: ModelFiles, dim: int) -> SentenceModules:
    about, network, saved = (_config(files.folder, name) for name in (ABOUT_FILES, "config.json", PROMPTS_FILE))
    if "message" in (about.get("modality_config") or {}):
        raise ModelError(f"model={files.name!r} puts every text into its chat template, which whitelab does not")
    for name, known in _KNOWN.items():
        if about.get(name) and about[name] != known:
            raise ModelError(f"model={files.name!r} has {name}={about[name]!r}, which whitelab does not follow")
    handed = [about.get(name) or {} for name in _HANDED]
    for name, arguments in zip(_HANDED, handed, strict=True):
        if others := arguments.keys() - _HARMLESS:
            raise ModelError(f"model={files.name!r} has {min(others)} in {name}, which whitelab does not follow")
    pooling, start, weights, heads = None, 0, None, []
    for kind, folder in module_folders(files.name, files.folder)[1:]:
        config = _config(folder, "config.json")
        match kind:
            case "WeightedLayerPooling" if pooling is None:
                told = network | about.get("config_args", {}) | about.get("config_kwargs", {})
                if told.get("output_hidden_states"):  # else it finds no layers and does nothing
                    start, weights = config["layer_start"], load_file(folder / _WEIGHTS)["layer_weights"].float()
            case "Pooling" if pooling is None:
                pooling = _pooling(config, files.name)
            case "Dense" if pooling is not None:
                heads.append(_dense(config, load_file(folder / _WEIGHTS), files.name))
                dim = config["out_features"]
            case "LayerNorm" if pooling is not None:
                norm = torch.nn.LayerNorm(config["dimension"])
                norm.load_state_dict(_named(load_file(folder / _WEIGHTS), "norm."))
                heads.append(norm)
            case "Normalize" if pooling is not None:
                heads.append(Normalize())
            case "Dropout":
                continue
            case _:
                raise ModelError(f"model={files.name!r} has the module {kind}, which whitelab does not know there")
    if pooling is None:
        raise ModelError(f"model={files.name!r} has no Pooling in {MODULES_FILE}")
    dim = check_int(min(dim, saved.get("truncate_dim") or dim), "truncate_dim", 1)
    made = torch.nn.Sequential(*heads).float().eval().requires_grad_(False)
    # What is handed to the tokenizer comes before what the module says of itself.
    lengths = [one.get("model_max_length") for one in handed] + [about.get("max_seq_length")]
    longest = next((check_int(one, "max_seq_length", 1) for one in lengths if one is not None), None)
    return SentenceModules(pooling, made, dim, start, weights, longest)


def _config(folder: Path, name: str) -> dict:
    """What the first file of that name, or pattern, holds; nothing where there is none."""
    path = min(folder.glob(name), default=None)
    return {} if path is None else json.loads(path.read_text("utf-8"))


def _pooling(config: dict, name: str) -> str:
    """The key of `POOLINGS`: of today's `pooling_mode`, or of the flags that folders had before it."""
    modes = config.get("pooling_mode") or [mode for flag, mode in _OLD_NAMES.items() if config.get(flag)]
    modes = [modes] if isinstance(modes, str) else list(modes)
    if len(modes) != 1 or modes[0] not in _KNOWN_POOLINGS:
        known = ", ".join(_KNOWN_POOLINGS)
        raise ModelError(f"model={name!r} pools by {' and '.join(modes) or 'nothing'}; known are {known}")
    if config.get("include_prompt") is False:
        raise ModelError(f"model={name!r} leaves prompts out of its pooling, which whitelab does not")
    return _KNOWN_POOLINGS[modes[0]]


def _dense(config: dict, tensors: dict[str, Tensor], name: str) -> Dense:
    activation = config["activation_function"].rpartition(".")[2]
    if activation not in _ACTIVATIONS:
        raise ModelError(f"model={name!r} has the activation {activation}; known are {', '.join(_ACTIVATIONS)}")
    for end in ("module_input_name", "module_output_name"):
        if config.get(end) not in (None, _SENTENCE):
            raise ModelError(f"model={name!r} has a Dense with {end}={config[end]!r}; known is {_SENTENCE}")
    sizes = config["in_features"], config["out_features"], config.get("bias", True)
    dense = Dense(*sizes, _ACTIVATIONS[activation](), config.get("use_residual", False))
    dense.load_state_dict(_named(tensors))
    return dense


def _named(tensors: dict[str, Tensor], prefix: str = "") -> dict[str, Tensor]:
    return {key.removeprefix(prefix): value.float() for key, value in tensors.items() if key.startswith(prefix)}
