"""One row of a comparison as text: pooling, layers, whitening, k."""

import re
from dataclasses import dataclass

from whitelab import whitening
from whitelab.encoding.pooling import check_pooling

_SETTING = re.compile(r"(?:(?P<pooling>\w+)/)?(?P<layers>L-?\d+(?:\+L-?\d+)*)(?::(?P<spec>[^@]+))?(?:@(?P<k>\d+))?")

TABLE1 = "cls/L-1;mean/L-1;mean/L1;mean/L1+L-1;mean/L1+L-1:pca"


@dataclass(frozen=True)
class Setting:
    """One row of a comparison. `layers` may count from the last (-1), so that it fits models of any depth."""

    pooling: str
    layers: tuple[int, ...]
    whitening: str = "none"
    k: int | None = None

    @classmethod
    def parse(cls, text: str) -> "Setting":
        """`L1+L-1:pca@256` -> Setting. Raises ValueError for any other text."""
        found = _SETTING.fullmatch(text.strip())
        if not found:
            raise ValueError(f"setting={text.strip()!r} must look like L6, cls/L-1, L1+L6:pca or L1+L-1:pca@256")
        layers = tuple(int(part.removeprefix("L")) for part in found["layers"].split("+"))
        k, spec = found["k"] and int(found["k"]), whitening.canonical(found["spec"] or "none")
        if k is not None and not whitening.variant(spec).takes_k:
            whitening.check_k(k, spec, k)
        return cls(check_pooling(found["pooling"] or "mean"), layers, spec, k)

    def __str__(self) -> str:
        spec = "" if self.whitening == "none" else f":{self.whitening}"
        return f"{self.pooling}/{self.named_layers}{spec}" + (f"@{self.k}" if self.k is not None else "")

    @property
    def named_layers(self) -> str:
        """`L1+L-1`."""
        return "+".join(f"L{layer}" for layer in self.layers)

    def numbers(self, n_layers: int) -> tuple[int, ...]:
        """The layers in a model that has `n_layers`, the embedding layer among them."""
        return tuple(dict.fromkeys(layer + n_layers if layer < 0 else layer for layer in self.layers))


def parse_settings(text: str, n_layers: int | None = None) -> tuple[Setting, ...]:
    """`table1`, or settings separated by semicolons, each once.

    For a model of `n_layers`, `L*` stands for each layer in turn, as in `L*:pca`. Raises ValueError as
    `Setting.parse` does, and for no setting at all.
    """
    text, found = TABLE1 if text.strip() == "table1" else text, []
    for part in filter(None, (part.strip() for part in text.split(";"))):
        layers = range(n_layers) if n_layers is not None and "L*" in part else ("*",)
        found += [Setting.parse(part.replace("L*", f"L{layer}")) for layer in layers]
    if not found:
        raise ValueError(f"settings={text!r} must hold at least one setting, such as 'L6;L1+L6:pca', or be 'table1'")
    return tuple(dict.fromkeys(found))
