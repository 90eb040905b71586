"""The one registry of what is measured of a space: formula, range, source, and what each measure cannot see."""

from collections.abc import Callable
from dataclasses import dataclass

from torch import Tensor

from whitelab.statistics.geometry.clusters import clusters
from whitelab.statistics.geometry.cosines import mean_cosine
from whitelab.statistics.geometry.hubs import hubness
from whitelab.statistics.geometry.intrinsic import NEIGHBOURS, mle_dimension, two_nn
from whitelab.statistics.geometry.isotropy import (
    effective_rank,
    iso_score,
    participation_ratio,
    partition_isotropy,
    rogue_share,
    stable_rank,
    standardized,
    top_share,
)
from whitelab.statistics.geometry.neighbours import nearest, nearest_rows
from whitelab.statistics.geometry.norms import norms
from whitelab.statistics.linalg import eigenvalues


@dataclass(frozen=True)
class Metric:
    """A measure of one layer: `of(x, weights, covariance)`; `ideal` is its value for an isotropic space.

    `formula` is LaTeX, `range` its values in words, `source` the paper, `blind` what it cannot see. With `unique` it
    is over the unique sentences (`covariance` theirs) and no weight counts; without, each sentence counts as often as
    it occurs.
    """

    label: str
    of: Callable[[Tensor, Tensor | None, Tensor], float]
    hint: str
    ideal: str
    formula: str
    range: str
    source: str
    blind: str
    unique: bool = True


def _distances(x: Tensor, top: int) -> Tensor:
    return nearest_rows(x, {"euclidean": top})["euclidean"].values


METRICS: dict[str, Metric] = {
    "mean_cosine": Metric(
        "Mean cosine",
        lambda x, w, cov: mean_cosine(x, w),
        "Average cosine of two random sentences. Near 1 is a narrow cone; 0 says only that the mean is at the origin.",
        "0",
        r"\mathbb{E}_{i\neq j}\cos(x_i,x_j)",
        "-1/(n - 1) to 1",
        "Ethayarajh 2019, section 3.2",
        "Isotropy: centring alone brings it to 0, whatever the spectrum (Rudman and Eickhoff 2024, arXiv 2305.19358).",
        unique=False,
    ),
    "participation_ratio": Metric(
        "Participation ratio",
        lambda x, w, cov: participation_ratio(cov),
        "How many directions share the variance, from 1 to d.",
        "d",
        r"\frac{(\sum_i\lambda_i)^2}{\sum_i\lambda_i^2}",
        "1 to d",
        "Rudman et al. 2022, of which it is IsoScore unscaled",
        "Where the mean is, and anything but the covariance.",
        unique=False,
    ),
    "effective_rank": Metric(
        "Effective rank",
        lambda x, w, cov: effective_rank(eigenvalues(cov)),
        "exp of the entropy of the singular values, from 1 to d.",
        "d",
        r"\exp\Bigl(-\sum_i p_i\ln p_i\Bigr),\quad p_i=\sqrt{\lambda_i}\big/\sum_j\sqrt{\lambda_j}",
        "1 to d",
        "Roy and Vetterli 2007, Eq. 2-4",
        "Where the mean is; it counts small directions for more than the participation ratio does.",
        unique=False,
    ),
    "top_share": Metric(
        "Top direction's share",
        lambda x, w, cov: top_share(eigenvalues(cov)),
        "Part of the variance along the first principal direction.",
        "1/d",
        r"\lambda_1\big/\sum_i\lambda_i",
        "1/d to 1",
        "Principal component analysis",
        "Every direction but the first.",
        unique=False,
    ),
    "iso_score": Metric(
        "IsoScore",
        lambda x, w, cov: iso_score(cov),
        "0 where the variance is along a line, 1 where it is the same in every direction.",
        "1",
        r"\frac{\mathrm{PR}-1}{d-1}",
        "0 to 1",
        "Rudman et al. 2022, Algorithm 1",
        "Where the mean is; and on the sentences a whitening was fitted on it is 1 by construction.",
    ),
    "stable_rank": Metric(
        "Stable rank",
        lambda x, w, cov: stable_rank(eigenvalues(cov)),
        "The whole variance in units of the largest direction's.",
        "d",
        r"\sum_i\lambda_i\big/\lambda_1",
        "1 to d",
        "Rudelson and Vershynin 2007, section 1",
        "How the variance is shared beyond the first direction.",
    ),
    "partition_isotropy": Metric(
        "Partition isotropy",
        lambda x, w, cov: partition_isotropy(x),
        "Whether rows at unit length point as often one way as any other.",
        "1",
        r"\frac{\min_c Z(c)}{\max_c Z(c)},\quad Z(c)=\sum_i e^{c\cdot u_i}",
        "0 to 1",
        "Mu and Viswanath 2018, section 2; eigenvectors c with both signs",
        "Small directions: in many dimensions every centred space is near 1.",
    ),
    "partition_isotropy_centred": Metric(
        "Partition isotropy, centred",
        lambda x, w, cov: partition_isotropy(x, centred=True),
        "The same with the mean taken away first.",
        "1",
        r"\frac{\min_c Z(c)}{\max_c Z(c)},\quad u_i\propto x_i-\bar x",
        "0 to 1",
        "Mu and Viswanath 2018, section 2",
        "Where the mean is, and small directions.",
    ),
    "rogue_share_1": Metric(
        "Rogue share, top coordinate",
        lambda x, w, cov: rogue_share(x),
        "The share of the mean cosine that one coordinate contributes.",
        "1/d",
        r"\max_k\frac{c_k}{\sum_l c_l},\quad c_k=\mathbb{E}_{i\neq j}u_{ik}u_{jk}",
        "1/d to 1 in a cone",
        "Timkey and van Schijndel 2021",
        "A cone along no axis: a rotation changes it. Where the mean cosine is near 0 it is a share of nothing.",
    ),
    "rogue_share_3": Metric(
        "Rogue share, top three",
        lambda x, w, cov: rogue_share(x, min(3, x.shape[1])),
        "The share of the mean cosine that the three largest coordinates contribute.",
        "3/d",
        r"\text{the three largest }c_k\big/\sum_l c_l",
        "3/d to 1 in a cone",
        "Timkey and van Schijndel 2021",
        "As for one coordinate.",
    ),
    "rogue_share_1_standardized": Metric(
        "Rogue share, standardised",
        lambda x, w, cov: rogue_share(standardized(x)),
        "The top coordinate's share once every coordinate has mean 0 and variance 1.",
        "1/d",
        r"\max_k\frac{c_k}{\sum_l c_l}\text{ of }(x-\bar x)/\sigma",
        "1/d to 1 in a cone",
        "Timkey and van Schijndel 2021",
        "Most: what is left of the mean cosine is near 0.",
    ),
    "hub_skewness": Metric(
        "Hub skewness",
        lambda x, w, cov: hubness(nearest(x)).skewness,
        "How unequally often sentences are among the ten nearest of others.",
        "near 0",
        r"\mathbb{E}(N_{10}-10)^3\big/\sigma^3_{N_{10}}",
        "0 for no hubs, no upper end",
        "Radovanovic et al. 2010, skewness as scipy.stats.skew",
        "Whether the neighbours are right.",
    ),
    "largest_hub": Metric(
        "Largest hub",
        lambda x, w, cov: float(hubness(nearest(x)).largest),
        "On how many lists of ten nearest the sentence is that is on most.",
        "near 10",
        r"\max_i N_{10}(i)",
        "10 to n - 1",
        "Radovanovic et al. 2010, section 2",
        "All sentences but one; it grows with their number.",
    ),
    "never_neighbour": Metric(
        "Never a neighbour",
        lambda x, w, cov: hubness(nearest(x)).never,
        "The share of sentences on nobody's list of ten nearest.",
        "0",
        r"\Pr(N_{10}=0)",
        "0 to 1",
        "Radovanovic et al. 2010, section 2",
        "Who takes their places.",
    ),
    "two_nn": Metric(
        "Intrinsic dimension, TwoNN",
        lambda x, w, cov: two_nn(_distances(x, 2)),
        "How many coordinates the sentences need near any one of them.",
        "d, with rows enough",
        r"N\big/\sum_i\ln\frac{r_2(i)}{r_1(i)}",
        "above 0",
        "Facco et al. 2017, by maximum likelihood",
        "Anything beyond the second neighbour; with few rows it stays far below a high d.",
    ),
    "mle_dimension": Metric(
        "Intrinsic dimension, MLE",
        lambda x, w, cov: mle_dimension(_distances(x, NEIGHBOURS)),
        "The same from twenty neighbours.",
        "d, with rows enough",
        r"\frac1n\sum_i\Bigl[\frac1{k-1}\sum_{j<k}\ln\frac{T_k(i)}{T_j(i)}\Bigr]^{-1}",
        "above 0",
        "Levina and Bickel 2004, Eq. 8-9, k = 20",
        "Density that changes within twenty neighbours; with few rows it stays far below a high d.",
    ),
    "norm_mean": Metric(
        "Mean length",
        lambda x, w, cov: float(norms(x).mean()),
        "The average length of the vectors, which no cosine sees.",
        "any",
        r"\mathbb{E}\lVert x_i\rVert",
        "above 0",
        "Euclidean norm",
        "Directions.",
    ),
    "norm_spread": Metric(
        "Spread of lengths",
        lambda x, w, cov: float(norms(x).std(correction=0)),
        "The standard deviation of the vectors' lengths.",
        "any",
        r"\sqrt{\mathbb{E}(\lVert x_i\rVert-\mathbb{E}\lVert x\rVert)^2}",
        "0 and above",
        "Euclidean norm",
        "Directions.",
    ),
    "silhouette": Metric(
        "Silhouette of clusters",
        lambda x, w, cov: clusters(x).silhouette,
        "How much nearer sentences are to their own cluster than to the next, of ten by k-means.",
        "near 0",
        r"\mathbb{E}\frac{b_i-a_i}{\max(a_i,b_i)}",
        "-1 to 1",
        "Rousseeuw 1987; clusters as Cai et al. 2021",
        "Clusters that are not round, or not ten. Of at most 3,000 sentences.",
    ),
    "between_clusters": Metric(
        "Variance between clusters",
        lambda x, w, cov: clusters(x).between,
        "The share of the variance that is between the centres of ten clusters.",
        "near 0",
        r"1-\sum_i\lVert x_i-m_{c(i)}\rVert^2\big/\sum_i\lVert x_i-\bar x\rVert^2",
        "0 to 1",
        "Cai et al. 2021",
        "As for the silhouette; it grows with the number of clusters.",
    ),
    "iso_score_within": Metric(
        "IsoScore within clusters",
        lambda x, w, cov: clusters(x).iso_score_within,
        "IsoScore of the sentences measured from their own cluster's centre.",
        "1",
        r"\mathrm{IsoScore}(x_i-m_{c(i)})",
        "0 to 1",
        "Cai et al. 2021; Rudman et al. 2022",
        "How far apart the clusters are.",
    ),
}
