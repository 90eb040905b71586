"""The papers' models by name, with what is known of each before it is downloaded, and what it will cost here.

The list is `data/models/models.csv`; its README names the sources. What is not known is empty there.
"""

import re
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, replace
from functools import cache
from pathlib import Path

import torch

from whitelab.base.devices import DTYPES, choose_device
from whitelab.base.installation import shipped
from whitelab.base.machine import available_memory, product_rate
from whitelab.base.wording import duration, quantity
from whitelab.datasets import DataError
from whitelab.datasets.tables import read_records
from whitelab.encoding.checkpoints import find_model, first_number, layers_and_dim, on_disk
from whitelab.encoding.encoders import BATCH_BYTES
from whitelab.encoding.names import ONE_LAYER, ModelName

FILE = shipped("data/models/models.csv")
GROUPS = {
    "papers": "Pretrained models of the papers",
    "trained": "Sentence encoders of the papers",
    "today": "Small encoders of today",
}

# Share of the rate of a large matrix product that encoding reaches: measured 0.5 to 0.75, for all-MiniLM-L6-v2 and a
# BERT base with random weights on the demonstration set, on one and two threads.
EFFICIENCY = 0.5
# Tokens a word or mark of English text is cut into, and special tokens a sentence.
TOKENS_A_WORD, SPECIAL_TOKENS = 1.1, 2


@dataclass(frozen=True)
class Entry:
    """One model: `name` on the hub, `title` in the papers, `parameters` in millions; see `data/models/README.md`."""

    name: str
    title: str
    group: str
    layers: int
    dim: int
    parameters: float
    licence: str
    weights: str
    note: str

    def as_dict(self) -> dict:
        """A JSON-ready record; its layers are `blocks` there, which leave the embedding layer out."""
        record = asdict(self)
        return record | {"blocks": record.pop("layers")}

    def line(self) -> str:
        """Size and licence in one line."""
        licence = f"licence {self.licence}" if self.licence else "licence not stated"
        return f"{quantity(self.layers, 'layer')}, d {self.dim}, {self.parameters:g} M parameters, {licence}"


@cache
def entries() -> tuple[Entry, ...]:
    """Every model of the list. DataError where the bundled file is missing or damaged."""
    return read(FILE)


def read(path: Path) -> tuple[Entry, ...]:
    """The models of a file laid out as `models.csv`."""
    records = read_records(path, Entry.__dataclass_fields__, "the model catalogue")
    return tuple(_entry(record, f"{path}: line {line}") for line, record in enumerate(records, 2))


def _entry(record: dict[str, str], where: str) -> Entry:
    try:
        if record["group"] not in GROUPS or record["weights"] not in ("", "safetensors", "bin"):
            raise ValueError(f"group={record['group']!r} or weights={record['weights']!r} is unknown")
        numbers = {"layers": int(record["layers"]), "dim": int(record["dim"])}
        return Entry(**record | numbers | {"parameters": float(record["parameters"])})
    except ValueError as error:
        raise DataError(f"{where}: {error}") from None


def entry(model: str) -> Entry | None:
    """The entry of a model's name, its modifiers left out; None where it is not listed."""
    return entry_of(ModelName.parse(model))


def entry_of(name: ModelName) -> Entry | None:
    """The same of a name taken apart."""
    return next((one for one in entries() if one.name == name.base), None)


def known_layers(model: str) -> int | None:
    """How many layers a model has, the embedding layer among them, before it is loaded; None where nobody knows.

    Nothing is downloaded: what is not on this machine is looked up in the list. Raises ModelError as `find_model`.
    """
    name = ModelName.parse(model)
    if name.kind in ONE_LAYER:
        return 1
    found = find_model(model, allow_bin=True) if on_disk(model) else entry(model)
    blocks = name.blocks or (found.layers if found else 0)
    return blocks + 1 if blocks else None


# -------------------------------------------------------------------------------------------- what it costs


@dataclass(frozen=True)
class Size:
    """What decides the cost of a network: blocks, d, the inner size of a block, and all its parameters."""

    layers: int
    dim: int
    inner: int
    parameters: int

    @classmethod
    def of(cls, model: "Entry | Mapping") -> "Size":
        """The size of an entry, or of a config (the content of a config.json). ValueError where it lacks L or d.

        A config's parameters are counted from its matrices: V d for the words and L (4 d^2 + 2 d inner), with a
        third matrix where the inner layer is gated.
        """
        if isinstance(model, Entry):
            return cls(model.layers, model.dim, 4 * model.dim, round(model.parameters * 1e6))
        layers, dim = layers_and_dim(model)
        if not layers or not dim:
            raise ValueError(f"config must say how many layers of which size it has, got {', '.join(model)}")
        inner = first_number(model, "intermediate_size", "d_ff", "hidden_dim", "n_inner", "encoder_ffn_dim") or 4 * dim
        if model.get("num_key_value_heads") is not None:  # only decoders with a gated inner layer have it
            inner = 3 * inner // 2
        words = first_number(model, "vocab_size", "n_words") * (first_number(model, "embedding_size") or dim)
        return cls(layers, dim, inner, words + layers * (4 * dim * dim + 2 * dim * inner))

    @property
    def products(self) -> int:
        """Multiply-adds a token in the matrices of all blocks: L (4 d^2 + 2 d inner)."""
        return self.layers * self._block

    def cut_to(self, blocks: int | None) -> "Size":
        """That of the first `blocks` alone; None, or more than there are, keeps all."""
        kept = min(blocks or self.layers, self.layers)
        return replace(self, layers=kept, parameters=self.parameters - (self.layers - kept) * self._block)

    @property
    def _block(self) -> int:
        return 4 * self.dim * self.dim + 2 * self.dim * self.inner


@dataclass(frozen=True)
class Estimate:
    """What loading a model and encoding text will take: bytes of `memory`, `seconds`, and bytes `free` now."""

    memory: int
    seconds: float
    free: int | None

    @property
    def fits(self) -> bool:
        """Whether it fits into memory, as far as the system says."""
        return self.free is None or self.memory <= self.free

    def line(self) -> str:
        """Both in words, with what is free where that is too little."""
        words = f"about {self.memory / 2**30:.1f} GiB of memory and {duration(self.seconds)} here"
        return words if self.fits else f"{words}, but only {self.free / 2**30:.1f} GiB are free"


def estimate(
    model: Entry | Mapping,
    device: str | None = None,
    dtype: str = "float32",
    tokens: int = 0,
    sentences: int = 0,
) -> Estimate:
    """What it will take to load `model`, an entry or a config, and to encode `tokens` in `sentences`.

    Memory is the machine's: the weights in float32 (they are loaded so), the result, `[l, n, d]` in float32, and on a
    CPU a batch in work for every thread. On a GPU its own is estimated apart: weights and a batch in `dtype`; where
    that is more than is free there, it is what is told. Time is `Size.products` a token at the measured rate of matrix
    products on this device. Downloading is not in it.
    """
    device, size = device or choose_device(), Size.of(model)
    working = 3 * BATCH_BYTES[device]
    result = 4 * (size.layers + 1) * sentences * size.dim
    seconds = tokens * size.products / (EFFICIENCY * product_rate(device, DTYPES[dtype])) if tokens else 0.0
    here = 4 * size.parameters + result
    if device == "cpu":
        return Estimate(here + working * torch.get_num_threads(), seconds, available_memory("cpu"))
    there = DTYPES[dtype].itemsize * size.parameters + working
    free = available_memory(device) if device == "cuda" else None  # MPS shares the machine's
    if free is not None and there > free:
        return Estimate(there, seconds, free)
    return Estimate(here + (working if free is None else 0), seconds, available_memory("cpu"))


def guess_tokens(sentences: Iterable[str]) -> int:
    """About how many tokens the sentences have, without a tokenizer: words and marks of English text."""
    counts = [len(re.findall(r"\w+|[^\w\s]", text)) for text in sentences]
    return round(TOKENS_A_WORD * sum(counts) + SPECIAL_TOKENS * len(counts))
