"""From a task's embeddings and a protocol to a score that says how it was made."""

import math
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field, replace

import torch
from jaxtyping import Float
from torch import Tensor

from whitelab import whitening
from whitelab.base.checks import check_choice, check_layers
from whitelab.base.wording import spaced
from whitelab.encoding.embeddings import LayerEmbeddings, LayerRows
from whitelab.encoding.pooling import GIVEN, check_pooling
from whitelab.scoring import fit_scopes
from whitelab.statistics import correlation


@dataclass(frozen=True)
class Protocol:
    """Everything that decides a score. Two scores are comparable when their protocols are equal.

    `layers` are averaged; `whitening` is a spec with every parameter written out; `fit` names the sentences
    it is fitted on (`fit_scopes.SCOPES`, or other text; `task` is every sentence occurrence of both columns of the
    whole task, WhiteningBERT's choice); `k` keeps the top-k eigen-directions; `text` is the normalisation
    applied before tokenising. Of vectors that were made elsewhere (`pooling` `given`) nothing of `text` and
    `max_length` (None) is known.
    """

    model: str
    data: str
    task: str
    split: str
    pooling: str
    layers: tuple[int, ...]
    whitening: str = "none"
    k: int | None = None
    fit: str = "task"
    aggregate: str = "all"
    dtype: str = "float32"
    max_length: int | None = 128
    text: str = "strip"
    combine: str = "mean"

    def __post_init__(self) -> None:
        if self.pooling == GIVEN:
            object.__setattr__(self, "max_length", None)
            object.__setattr__(self, "text", GIVEN)
        else:
            check_pooling(self.pooling)
        object.__setattr__(self, "whitening", whitening.canonical(self.whitening))
        check_choice(self.aggregate, "aggregate", correlation.AGGREGATES)
        if not self.fit:
            raise ValueError(f"fit='' must be one of {', '.join(fit_scopes.SCOPES)} or name other text")

    def with_(self, **changes) -> "Protocol":
        """The same protocol but for `changes`."""
        return replace(self, **changes)

    def as_dict(self) -> dict:
        """A JSON-ready record."""
        return asdict(self) | {"layers": list(self.layers)}

    def line(self, sentences: int | None = None, rank: int | None = None, isotropy: float | None = None) -> str:
        """The protocol in one line, as shown under every score."""
        layers = "layer " if len(self.layers) == 1 else "layers "
        variant = self.whitening + (f", k = {self.k}" if self.k is not None else "")
        fitted = ""
        if self.whitening != "none" and sentences is not None:
            count = spaced(sentences)
            words = {
                "task": f"fitted on the task's {count} sentence occurrences",
                "splits": f"fitted on the {count} sentence occurrences of all splits",
                "cross": f"cross-fitted on halves of {count} sentence occurrences",
            }
            fitted = " " + words.get(self.fit, f"fitted on the {count} sentences of {self.fit}")
            details = [f"rank {rank}"] if rank is not None else []
            details += [f"held-out isotropy {isotropy:.2f}"] if isotropy is not None else []
            fitted += f" ({', '.join(details)})" if details else ""
        made = "as given" if self.pooling == GIVEN else f"{self.pooling} pooling"
        cut = "" if self.max_length is None else f" · at most {self.max_length} tokens"
        return (
            f"{self.model} · {layers}{' + '.join(map(str, self.layers))} · {made} · {self.data} · "
            f"{variant}{fitted} · aggregate {self.aggregate} · {self.dtype}{cut}"
        )


@dataclass(frozen=True)
class SubsetScore:
    """Spearman x 100 of one subset (None where it is not defined) and its pairs."""

    spearman: float | None
    pairs: int


@dataclass(frozen=True)
class Score:
    """Spearman x 100 under `protocol`; None with a `reason` where it is not defined.

    `half_width` is half the 95 % interval on the same scale, `rank` the directions the map keeps out of
    `dim`, `sentences` the occurrences it was fitted on, `isotropy` the IsoScore of sentences it was not fitted
    on (`fit_scopes.held_out_isotropy`; None for `none` and where it is not defined).
    """

    spearman: float | None
    pairs: int
    subsets: dict[str, SubsetScore]
    rank: int
    dim: int
    sentences: int
    half_width: float | None
    protocol: Protocol
    isotropy: float | None = None
    reason: str = ""
    cosines: Float[Tensor, "p"] | None = field(default=None, repr=False, compare=False)

    def line(self) -> str:
        """How the score was made, in one line."""
        return self.protocol.line(self.sentences, self.rank, self.isotropy)

    def as_dict(self) -> dict:
        """The JSON document of `python -m whitelab score`."""
        record = {
            "spearman": self.spearman,
            "half_width_95": self.half_width,
            "pairs": self.pairs,
            "subsets": {name: asdict(one) for name, one in self.subsets.items()},
            "rank": self.rank,
            "dim": self.dim,
            "sentences": self.sentences,
            "held_out_isotropy": self.isotropy,
            "protocol": self.protocol.as_dict(),
        }
        return record | ({"undefined": self.reason} if self.reason else {})


def cosines(
    space: LayerEmbeddings,
    layers: Sequence[int],
    variant: str = "none",
    k: int | None = None,
    fit: str = "task",
    corpus: LayerRows | None = None,
) -> tuple[Float[Tensor, "p"], fit_scopes.Fitted]:
    """Cosine of every pair under `variant` fitted on the scope `fit`, and what was fitted."""
    fitted = fit_scopes.fit_scope(space, tuple(layers), variant, k, fit, corpus)
    return fitted.cosines(space), fitted


def score(space: LayerEmbeddings, protocol: Protocol, corpus: LayerRows | None = None) -> Score:
    """Score one protocol; `corpus` holds the sentences of `protocol.fit` where they are not the task's own.

    Under `cross` each pair has its cosine from the map fitted without it, and all of them are ranked together.
    Raises ValueError for layers the model does not have and for a `k` out of range. The score is None,
    with a reason, where Spearman's correlation is not defined: constant gold scores, cosines that are constant
    up to rounding, fewer than two pairs.
    """
    protocol = protocol.with_(layers=check_layers(protocol.layers, space.n_layers))
    values, fitted = cosines(space, protocol.layers, protocol.whitening, protocol.k, protocol.fit, corpus)
    isotropy = math.nan
    if protocol.whitening != "none":
        settings = (protocol.layers, protocol.whitening, protocol.k, protocol.fit, corpus)
        isotropy = fit_scopes.held_out_isotropy(space, *settings)
    by_subset = correlation.spearman_by_subset(values, space.gold, space.subset, space.n_subsets)
    total = float(correlation.aggregate(values, space.gold, space.subset, space.n_subsets, protocol.aggregate))
    sizes = torch.bincount(space.subset, minlength=space.n_subsets).tolist()
    whole = protocol.aggregate == "all" or len(sizes) == 1
    width = correlation.half_width(total, space.n_pairs if whole else sizes, protocol.aggregate)
    return Score(
        spearman=percent(total),
        pairs=space.n_pairs,
        subsets={
            name: SubsetScore(percent(float(rho)), size)
            for name, rho, size in zip(space.subset_names, by_subset, sizes, strict=True)
        },
        rank=fitted.rank,
        dim=space.dim,
        sentences=fitted.count,
        half_width=percent(width),
        protocol=protocol,
        isotropy=None if math.isnan(isotropy) else isotropy,
        reason="" if not math.isnan(total) else undefined_reason(space, values, protocol.aggregate),
        cosines=values,
    )


def percent(value: float) -> float | None:
    """`value` x 100, None for NaN (JSON has no NaN)."""
    return None if math.isnan(value) else 100 * value


def undefined_reason(space: LayerEmbeddings, values: Tensor, aggregate: str) -> str:
    """Why Spearman's correlation is not defined here, in one sentence."""
    whole = aggregate == "all" or space.n_subsets == 1
    groups = [("", slice(None))] if whole else []
    if not whole:
        groups = [(f" in subset {n!r}", space.subset == i) for i, n in enumerate(space.subset_names)]
    for where, rows in groups:
        gold, cosine = space.gold[rows], values[rows]
        if gold.shape[0] < 2:
            return f"Spearman is not defined{where}: it needs at least 2 pairs, got {gold.shape[0]}"
        if bool((gold == gold[0]).all()):
            return f"Spearman is not defined{where}: all gold scores are {float(gold[0]):g}"
        if bool(correlation.is_constant(cosine)):
            return f"Spearman is not defined{where}: all cosines are {float(cosine[0]):g}"
    return "Spearman is not defined"
