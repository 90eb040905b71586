"""The one registry of what is measured of a space: formula, range, source, and what each measure cannot see."""

import math
from collections.abc import Callable
from dataclasses import dataclass

import torch
from jaxtyping import Float
from torch import Tensor

from whitelab.base.lazy import cached_property
from whitelab.base.progress import Progress, silent
from whitelab.statistics import linalg
from whitelab.statistics.correlation import is_constant
from whitelab.statistics.geometry.clusters import Clusters, clusters
from whitelab.statistics.geometry.cosines import mean_cosine
from whitelab.statistics.geometry.hubs import TOP, Hubness, hubness
from whitelab.statistics.geometry.intrinsic import NEIGHBOURS, mle_dimension, two_nn
from whitelab.statistics.geometry.isotropy import (
    cosine_contributions,
    effective_rank,
    iso_score,
    participation_ratio,
    partition_isotropy,
    rogue_share,
    stable_rank,
    standardized,
    top_share,
)
from whitelab.statistics.geometry.neighbours import Nearest, nearest_rows
from whitelab.statistics.geometry.norms import norms
from whitelab.statistics.moments import Moments


@dataclass(frozen=True, eq=False)
class Rows:
    """The rows `x` that are measured, and what several measures share, made when the first of them asks for it.

    `axes` are the same rows along the axes of the embeddings, where `x` are those up to a rotation. IsoScore is over
    `rank` directions, all m of them by default. `known` are the variances along the principal directions, descending,
    where a map's fit has them. `progress` counts the search for neighbours, and may raise to cancel.
    """

    x: Float[Tensor, "n m"]
    weights: Tensor | None = None
    axes: Float[Tensor, "n d"] | None = None
    rank: int | None = None
    known: Float[Tensor, "m"] | None = None
    progress: Progress = silent

    @cached_property
    def covariance(self) -> Float[Tensor, "m m"]:
        """Up to a rotation."""
        if self.known is not None:
            return self.known.diag()
        if not self.x.shape[1]:
            return torch.zeros(0, 0, dtype=torch.float64)
        return Moments.of(self.x, self.weights).covariance

    @cached_property
    def variances(self) -> Float[Tensor, "m"]:
        """Along the principal directions, descending."""
        return linalg.eigenvalues(self.covariance) if self.known is None else self.known

    @cached_property
    def contributions(self) -> tuple[Float[Tensor, "d"], Float[Tensor, "d"]]:
        """What each axis adds to the mean cosine, as the rows are and standardised."""
        x = self.x if self.axes is None else self.axes
        return cosine_contributions(x), cosine_contributions(standardized(x))

    def rogue_share(self, top: int, standardised: bool = False) -> float:
        """Of the `top` axes, or of all where there are fewer."""
        parts = self.contributions[standardised]
        return rogue_share(parts, min(top, len(parts)))

    @cached_property
    def near(self) -> dict[str, Nearest]:
        """The ten nearest by cosine and the twenty by distance in one pass, as far as there are others enough."""
        others = len(self.x) - 1
        tops = {"cosine": TOP} if others >= TOP else {}
        tops |= {"euclidean": min(NEIGHBOURS, others)} if others >= 2 else {}
        return nearest_rows(self.x, tops, self.progress) if tops else {}

    @cached_property
    def hubs(self) -> Hubness | None:
        """None where none is nearer than others: after whitening every direction of n <= d sentences none is."""
        near = self.near.get("cosine")
        return None if near is None or bool(is_constant(near.values.flatten())) else hubness(near.rows)

    def dimension(self, of: Callable[[Tensor], float], neighbours: int) -> float:
        """What `of` makes of the distances, a usual row being 1 long; NaN where there are fewer `neighbours`."""
        near = self.near.get("euclidean")
        if near is None or near.values.shape[1] < neighbours:
            return math.nan
        length = float(self.lengths.square().mean().sqrt())
        return of(near.values / (length or 1.0))

    @cached_property
    def lengths(self) -> Float[Tensor, "n"]:
        """Of the rows."""
        return norms(self.x)

    @cached_property
    def clusters(self) -> Clusters:
        """Ten of them."""
        return clusters(self.x, directions=self.rank)


@dataclass(frozen=True)
class Metric:
    """A measure of rows, NaN where it is not defined; `ideal` is its value for an isotropic space.

    `formula` is LaTeX, `range` its values in words, `source` the paper, `blind` what it cannot see, `group` what it is
    shown with. With `unique` it is over the unique sentences and no weight counts; without, each sentence counts as
    often as it occurs.
    """

    label: str
    of: Callable[[Rows], float]
    hint: str
    ideal: str
    formula: str
    range: str
    source: str
    blind: str
    group: str
    unique: bool = True


def measured(rows: Rows, unique: bool = True) -> dict[str, float]:
    """Every measure over unique sentences, or every other; all NaN where no row has a direction."""
    chosen = {name: metric for name, metric in METRICS.items() if metric.unique is unique}
    directed = bool(rows.x.any())
    return {name: metric.of(rows) if directed else math.nan for name, metric in chosen.items()}


METRICS: dict[str, Metric] = {
    "mean_cosine": Metric(
        "Mean cosine",
        lambda rows: mean_cosine(rows.x, rows.weights),
        "Average cosine of two random sentences. Near 1 is a narrow cone; near 0 says only that directions cancel.",
        "0",
        r"\mathbb{E}_{i\neq j}\cos(x_i,x_j)",
        "-1/(n - 1) to 1",
        "Ethayarajh 2019, section 3.2",
        "Isotropy: where vectors are about equally long, centring alone brings it near 0, whatever the spectrum "
        "(Rudman and Eickhoff 2024, arXiv 2305.19358).",
        "By occurrence",
        unique=False,
    ),
    "participation_ratio": Metric(
        "Participation ratio",
        lambda rows: participation_ratio(rows.covariance),
        "How many directions share the variance, from 1 to d.",
        "d",
        r"\frac{(\sum_i\lambda_i)^2}{\sum_i\lambda_i^2}",
        "1 to d",
        "Rudman et al. 2022, of which it is IsoScore unscaled",
        "Where the mean is, and anything but the covariance.",
        "By occurrence",
        unique=False,
    ),
    "effective_rank": Metric(
        "Effective rank",
        lambda rows: effective_rank(rows.variances),
        "exp of the entropy of the singular values, from 1 to d.",
        "d",
        r"\exp\Bigl(-\sum_i p_i\ln p_i\Bigr),\quad p_i=\sqrt{\lambda_i}\big/\sum_j\sqrt{\lambda_j}",
        "1 to d",
        "Roy and Vetterli 2007, Eq. 2-4",
        "Where the mean is; it counts small directions for more than the participation ratio does.",
        "By occurrence",
        unique=False,
    ),
    "top_share": Metric(
        "Top direction's share",
        lambda rows: top_share(rows.variances),
        "Part of the variance along the first principal direction.",
        "1/d",
        r"\lambda_1\big/\sum_i\lambda_i",
        "1/d to 1",
        "Principal component analysis",
        "Every direction but the first.",
        "By occurrence",
        unique=False,
    ),
    "iso_score": Metric(
        "IsoScore",
        lambda rows: iso_score(rows.covariance, rows.rank),
        "0 where the variance is along a line, 1 where it is the same in every direction.",
        "1",
        r"\frac{\mathrm{PR}-1}{d-1}",
        "0 to 1",
        "Rudman et al. 2022, Algorithm 1",
        "Where the mean is; and on the sentences a whitening was fitted on it is 1 by construction.",
        "How round",
    ),
    "partition_isotropy": Metric(
        "Partition isotropy",
        lambda rows: partition_isotropy(rows.x),
        "Whether rows at unit length point as often one way as any other.",
        "1",
        r"\frac{\min_c Z(c)}{\max_c Z(c)},\quad Z(c)=\sum_i e^{c\cdot u_i}",
        "0 to 1",
        "Mu and Viswanath 2018, section 2; eigenvectors c with both signs",
        "Small directions: a centred space is near 1 unless few directions dominate.",
        "How round",
    ),
    "partition_isotropy_centred": Metric(
        "Partition isotropy, centred",
        lambda rows: partition_isotropy(rows.x, centred=True),
        "The same with the mean taken away first.",
        "1",
        r"\frac{\min_c Z(c)}{\max_c Z(c)},\quad u_i\propto x_i-\bar x",
        "0 to 1",
        "Mu and Viswanath 2018, section 2",
        "Where the mean is, and small directions.",
        "How round",
    ),
    "rogue_share_1": Metric(
        "Rogue share, top coordinate",
        lambda rows: rows.rogue_share(1),
        "The share of the mean cosine that one coordinate contributes.",
        "1/d",
        r"\max_k\frac{c_k}{\sum_l c_l},\quad c_k=\mathbb{E}_{i\neq j}u_{ik}u_{jk}",
        "1/d to 1 in a cone",
        "Timkey and van Schijndel 2021",
        "A cone along no axis: a rotation changes it. Where the mean cosine is near 0 it is a share of nothing.",
        "Rogue coordinates",
    ),
    "rogue_share_3": Metric(
        "Rogue share, top three",
        lambda rows: rows.rogue_share(3),
        "The share of the mean cosine that the three largest coordinates contribute.",
        "3/d",
        r"\text{the three largest }c_k\big/\sum_l c_l",
        "3/d to 1 in a cone",
        "Timkey and van Schijndel 2021",
        "As for one coordinate.",
        "Rogue coordinates",
    ),
    "rogue_share_1_standardized": Metric(
        "Rogue share, standardised",
        lambda rows: rows.rogue_share(1, standardised=True),
        "The top coordinate's share once every coordinate has mean 0 and variance 1.",
        "1/d",
        r"\max_k\frac{c_k}{\sum_l c_l}\text{ of }(x-\bar x)/\sigma",
        "1/d to 1 in a cone",
        "Timkey and van Schijndel 2021",
        "Most: what is left of the mean cosine is near 0.",
        "Rogue coordinates",
    ),
    "rogue_share_3_standardized": Metric(
        "Rogue share, top three, standardised",
        lambda rows: rows.rogue_share(3, standardised=True),
        "The share of the three largest coordinates once every coordinate has mean 0 and variance 1.",
        "3/d",
        r"\text{the three largest }c_k\big/\sum_l c_l\text{ of }(x-\bar x)/\sigma",
        "3/d to 1 in a cone",
        "Timkey and van Schijndel 2021",
        "As for one coordinate, standardised.",
        "Rogue coordinates",
    ),
    "hub_skewness": Metric(
        "Hub skewness",
        lambda rows: rows.hubs.skewness if rows.hubs else math.nan,
        "How unequally often sentences are among the ten nearest of others.",
        "near 0",
        r"\mathbb{E}(N_{10}-10)^3\big/\sigma^3_{N_{10}}",
        "0 for no hubs, no upper end",
        "Radovanovic et al. 2010, skewness as scipy.stats.skew",
        "Whether the neighbours are right.",
        "Hubs",
    ),
    "largest_hub": Metric(
        "Largest hub",
        lambda rows: float(rows.hubs.largest) if rows.hubs else math.nan,
        "On how many lists of ten nearest the sentence is that is on most.",
        "10 to 25",
        r"\max_i N_{10}(i)",
        "10 to n - 1",
        "Radovanovic et al. 2010, section 2",
        "All sentences but one; it grows with their number.",
        "Hubs",
    ),
    "never_neighbour": Metric(
        "Never a neighbour",
        lambda rows: rows.hubs.never if rows.hubs else math.nan,
        "The share of sentences on nobody's list of ten nearest.",
        "0",
        r"\Pr(N_{10}=0)",
        "0 to 1",
        "Radovanovic et al. 2010, section 2",
        "Who takes their places.",
        "Hubs",
    ),
    "stable_rank": Metric(
        "Stable rank",
        lambda rows: stable_rank(rows.variances),
        "The whole variance in units of the largest direction's.",
        "d, with rows enough",
        r"\sum_i\lambda_i\big/\lambda_1",
        "1 to d",
        "Rudelson and Vershynin 2007, section 1",
        "How the variance is shared beyond the first direction.",
        "How many dimensions",
    ),
    "two_nn": Metric(
        "Intrinsic dimension, TwoNN",
        lambda rows: rows.dimension(two_nn, 2),
        "How many coordinates the sentences need near any one of them.",
        "d, with rows enough",
        r"N\big/\sum_i\ln\frac{r_2(i)}{r_1(i)}",
        "above 0",
        "Facco et al. 2017, by maximum likelihood",
        "Anything beyond the second neighbour; with few rows it stays far below a high d.",
        "How many dimensions",
    ),
    "mle_dimension": Metric(
        "Intrinsic dimension, MLE",
        lambda rows: rows.dimension(mle_dimension, NEIGHBOURS),
        "The same from twenty neighbours.",
        "d, with rows enough",
        r"\frac1n\sum_i\Bigl[\frac1{k-1}\sum_{j<k}\ln\frac{T_k(i)}{T_j(i)}\Bigr]^{-1}",
        "above 0",
        "Levina and Bickel 2004, Eq. 8-9, k = 20",
        "Density that changes within twenty neighbours; with few rows it stays far below a high d.",
        "How many dimensions",
    ),
    "norm_mean": Metric(
        "Mean length",
        lambda rows: float(rows.lengths.mean()),
        "The average length of the vectors, which no cosine sees.",
        "any",
        r"\mathbb{E}\lVert x_i\rVert",
        "above 0",
        "Euclidean norm",
        "Directions.",
        "Lengths",
    ),
    "norm_spread": Metric(
        "Spread of lengths",
        lambda rows: float(rows.lengths.std(correction=0)),
        "The standard deviation of the vectors' lengths.",
        "any",
        r"\sqrt{\mathbb{E}(\lVert x_i\rVert-\mathbb{E}\lVert x\rVert)^2}",
        "0 and above",
        "Euclidean norm",
        "Directions.",
        "Lengths",
    ),
    "silhouette": Metric(
        "Silhouette of clusters",
        lambda rows: rows.clusters.silhouette,
        "How much nearer sentences are to their own cluster than to the next, of ten by k-means.",
        "near 0",
        r"\mathbb{E}\frac{b_i-a_i}{\max(a_i,b_i)}",
        "-1 to 1",
        "Rousseeuw 1987; clusters as Cai et al. 2021",
        "Clusters that are not round, or not ten. Of at most 3,000 sentences.",
        "Clusters",
    ),
    "between_clusters": Metric(
        "Variance between clusters",
        lambda rows: rows.clusters.between,
        "The share of the variance that is between the centres of ten clusters.",
        "near 0 in many dimensions",
        r"1-\sum_i\lVert x_i-m_{c(i)}\rVert^2\big/\sum_i\lVert x_i-\bar x\rVert^2",
        "0 to 1",
        "Cai et al. 2021",
        "As for the silhouette; it grows with the number of clusters.",
        "Clusters",
    ),
    "iso_score_within": Metric(
        "IsoScore within clusters",
        lambda rows: rows.clusters.iso_score_within,
        "IsoScore of the sentences measured from their own cluster's centre.",
        "1",
        r"\mathrm{IsoScore}(x_i-m_{c(i)})",
        "0 to 1",
        "Cai et al. 2021; Rudman et al. 2022",
        "How far apart the clusters are.",
        "Clusters",
    ),
}
