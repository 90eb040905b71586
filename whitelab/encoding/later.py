"""A model that was loaded before, whose weights wait until something is to be encoded.

What a store needs of a model, its sizes and what names its vectors, is found by running it once (`architectures`).
That is remembered beside the store, by all that decides it: whoever only reads what is stored loads no model, which
takes longer than all else that a first page does.
"""

import hashlib
import json
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from importlib.metadata import version
from pathlib import Path

from whitelab.base.checks import check_int
from whitelab.base.devices import choose_device
from whitelab.base.lazy import cached_property
from whitelab.encoding.checkpoints import ModelFiles, find_model
from whitelab.encoding.encoders import MAX_LENGTH, Encoder, load_encoder
from whitelab.encoding.names import ModelError
from whitelab.store.aside import write_aside
from whitelab.store.embedding_store import StoreError, default_root

FOLDER = "models"  # in the store
KINDS = ("", "random")  # the others are no plain transformers, or change with the sentences
_FORMAT = 1


class LaterEncoder(Encoder):
    """An `Encoder` whose `model` and `tokenizer` are there once they are asked for."""

    def __init__(self, load: Callable[[], Encoder], **facts) -> None:
        """`load()` gives the encoder itself; `facts` are its other fields."""
        self._load = load
        vars(self).update(facts)

    @cached_property
    def loaded(self) -> Encoder:
        """The encoder itself."""
        return self._load()

    @property
    def model(self):
        """The network, as `Encoder`'s."""
        return self.loaded.model

    @property
    def tokenizer(self):
        """The tokenizer, as `Encoder`'s."""
        return self.loaded.tokenizer

    @property
    def _lock(self):
        return self.loaded._lock

    @property
    def _cutting(self):
        return self.loaded._cutting

    def cut_to(self, max_length: int) -> Encoder:
        """As `Encoder`'s."""
        facts = {name: getattr(self, name) for name in (*FACTS, "files", "device", "dtype")}
        facts["max_length"] = check_int(max_length, "max_length", 3, self.limit, "the model's limit")
        return LaterEncoder(lambda: self.loaded.cut_to(max_length), **facts)

    def __repr__(self) -> str:
        return f"LaterEncoder({self.name!r})"


FACTS = {"max_length": int, "n_layers": int, "dim": int, "poolings": tuple, "rows": int, "limit": int}


def encoder_for_store(model: str, *, dtype: str = "float32", allow_bin: bool = False) -> Encoder:
    """`load_encoder`, of a model that was loaded before without its weights until they are needed.

    Raises ModelError as `load_encoder`, though for weights that cannot be loaded any more only when they are asked for.
    """
    files = find_model(model, allow_bin=allow_bin)
    path = _place(files) if files.kind in KINDS else None
    known = _read(path) if path else None

    def load() -> Encoder:
        found = load_encoder(model, dtype=dtype, allow_bin=allow_bin)
        if found.files.digest != files.digest:  # its vectors would be kept as those of the files that were there
            raise ModelError(f"model={found.name!r} has changed on disk since it was chosen. Load it again")
        if path and _facts(found) != known:
            _write(path, found)
            if known:
                raise ModelError(f"model={found.name!r} was remembered with other sizes than it has. Load it again")
        return found

    if known is None:
        return load()
    files = replace(files, layers=known["layers"], dim=known["dim"])
    facts = {name: known[name] for name in FACTS}
    return LaterEncoder(load, files=files, device=choose_device(), dtype=dtype, **facts)


def _place(files: ModelFiles) -> Path | None:
    """Where the facts of this model lie: named after its files and who loads it."""
    of = (files.digest, files.kind, files.seed, files.blocks)
    by = (_FORMAT, version("transformers"), version("torch"))
    name = hashlib.sha256(json.dumps([of, by]).encode()).hexdigest()
    try:
        return default_root() / FOLDER / f"{name}.json"
    except StoreError:
        return None


def _read(path: Path) -> dict | None:
    try:
        found = json.loads(path.read_text("utf-8"))
        known = {name: kind(found[name]) for name, kind in FACTS.items()} | {"layers": int(found["layers"])}
    except (OSError, ValueError, TypeError, KeyError):
        return None  # never loaded here, or damaged: the model is loaded, and the facts are written anew
    return known if known["limit"] >= 1 and known["max_length"] == min(MAX_LENGTH, known["limit"]) else None


def _facts(encoder: Encoder) -> dict:
    return {name: getattr(encoder, name) for name in FACTS} | {"layers": encoder.files.layers}


def _write(path: Path, encoder: Encoder) -> None:
    with suppress(OSError):  # a store that cannot be written to costs time, not the result
        path.parent.mkdir(parents=True, exist_ok=True)
        write_aside(path, json.dumps(_facts(encoder)).encode())
