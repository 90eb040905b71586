"""The table of variants that pages, the command line and the tests read, and the text that names one.

A variant with its parameters is one string, a spec: `pca`, `soft:gamma=0.5`, `shuffled_group:groups=8,seed=0`.
It travels through addresses, caches and protocols as it is; `parse` checks it at the door and `canonical`
writes out every parameter, so that equal specs are equal strings.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace

import torch
from jaxtyping import Float
from torch import Tensor

from whitelab.base.checks import check_int, check_matrix, check_weights
from whitelab.base.parameters import Parameter, family
from whitelab.base.progress import Progress, silent
from whitelab.base.wording import quantity
from whitelab.statistics.moments import Moments, check_moments
from whitelab.whitening import clusters, coordinates, direction_removal, flow_training, groups, spectral
from whitelab.whitening.maps import Map, Whitener
from whitelab.whitening.spectral import Directions


@dataclass(frozen=True)
class Variant:
    """One entry of `WHITENERS`: how to fit it and what to tell a user about it.

    `fit(moments, k, **parameters)` (without k where `directions` is None); `directions(moments, **parameters)`
    lists the weighted directions whose first k (`Directions.kept`) are the variant with it. `whitens` says that the
    covariance afterwards is the identity on the whole kept subspace, `narrows` that a vector afterwards has a number
    for each direction kept, where it has d otherwise. With `of_rows` it is
    `fit(x, counts, progress=..., **parameters)`: no moments say enough, no matrix is the map, and it takes a while.
    Without `fits` the map is the same whatever the data, and its count 0.
    """

    fit: Callable[..., Map]
    label: str
    formula: str
    source: str
    hint: str
    directions: Callable[..., Directions] | None = None
    whitens: bool = False
    narrows: bool = False
    parameters: tuple[Parameter, ...] = ()
    of_rows: bool = False
    fits: bool = True

    @property
    def takes_k(self) -> bool:
        """Whether keeping the top-k directions has a meaning."""
        return self.directions is not None

    def columns(self, rank: int, dim: int) -> int:
        """m, the numbers of a vector after a map that keeps `rank` of d directions."""
        return rank if self.narrows else dim


_GROUPS = Parameter(
    "groups",
    "groups",
    8,
    1,
    None,
    "Blocks of coordinates, each whitened by itself. WhitenedCSE has 32 to 384, its released code 128; 8 is our own.",
)

WHITENERS: dict[str, Variant] = {
    "none": Variant(spectral.fit_none, "Raw", r"z = x", "", "The embeddings as the model gives them.", fits=False),
    "center": Variant(
        spectral.fit_center,
        "Centred",
        r"z = x - \mu",
        "Baseline",
        "Subtracts the mean, which is what all sentences share.",
        directions=spectral.center_directions,
        narrows=True,
    ),
    "standardize": Variant(
        groups.fit_standardize,
        "Standardised",
        r"z = V^{-1/2}(x - \mu),\quad V = \operatorname{diag}\Sigma",
        "Timkey and van Schijndel 2021",
        "Gives each coordinate mean 0 and variance 1; correlations stay.",
    ),
    "pca": Variant(
        spectral.fit_pca,
        "PCA whitening",
        r"z = \Lambda_k^{-1/2}U_k^\top(x - \mu),\quad \Sigma = U\Lambda U^\top",
        "Su et al. 2021, Algorithm 1; Huang et al. 2021, section 3.3",
        "Rotates to the principal directions and scales each to variance 1.",
        directions=spectral.pca_directions,
        whitens=True,
        narrows=True,
    ),
    "zca": Variant(
        spectral.fit_zca,
        "ZCA whitening",
        r"z = U_k\Lambda_k^{-1/2}U_k^\top(x - \mu)",
        "Kessy et al. 2018; Zhuo et al. 2023",
        "The whitening that moves the data least: PCA whitening rotated back.",
        directions=spectral.pca_directions,
        whitens=True,
    ),
    "cholesky": Variant(
        spectral.fit_cholesky,
        "Cholesky whitening",
        r"z = L^{-1}(x - \mu),\quad \Sigma = LL^\top",
        "Ermolov et al. 2021, section 3",
        "A triangular whitening: each coordinate is freed from those before it.",
        directions=spectral.pca_directions,
        whitens=True,
        narrows=True,
    ),
    "pca_cor": Variant(
        spectral.fit_pca_cor,
        "PCA-cor whitening",
        r"z = \Theta_k^{-1/2}G_k^\top V^{-1/2}(x - \mu),\quad V^{-1/2}\Sigma V^{-1/2} = G\Theta G^\top",
        "Kessy et al. 2018, section 3",
        "Standardises first, then rotates to the principal directions of the correlation.",
        directions=spectral.correlation_directions,
        whitens=True,
        narrows=True,
    ),
    "zca_cor": Variant(
        spectral.fit_zca_cor,
        "ZCA-cor whitening",
        r"z = G_k\Theta_k^{-1/2}G_k^\top V^{-1/2}(x - \mu)",
        "Kessy et al. 2018, section 3",
        "The whitening that stays nearest to the standardised coordinates.",
        directions=spectral.correlation_directions,
        whitens=True,
    ),
    "soft": Variant(
        spectral.fit_soft,
        "Soft whitening",
        r"z = U(\Lambda + \alpha\bar\lambda I)^{-\gamma/2}U^\top(x - \mu),\quad "
        r"\bar\lambda = \operatorname{tr}\Sigma/d",
        "Partial ZCA; at γ = 1 with a ridge Soft-ZCA (Diera et al. 2024); the exponent is faiss's eigen_power; "
        "γ = auto is our own rule after Li et al. 2026",
        "Whitens part of the way: gamma 0 only centres, 1 whitens; alpha is a ridge that spares weak directions.",
        directions=spectral.soft_directions,
        parameters=(spectral.GAMMA, spectral.ALPHA),
    ),
    "shrunk": Variant(
        spectral.fit_shrunk,
        "Shrunk whitening",
        r"z = \big((1-\rho)\Sigma + \rho\,t\,I\big)^{-1/2}(x - \mu)",
        "Ledoit and Wolf 2004; Chen et al. 2010 (OAS); Ermolov et al. 2021 (fixed epsilon)",
        "Whitens with a covariance drawn towards a round one, for few sentences in many dimensions.",
        directions=spectral.shrunk_directions,
        parameters=(spectral.METHOD, spectral.EPS),
    ),
    "iternorm": Variant(
        spectral.fit_iternorm,
        "IterNorm",
        r"P_{t+1} = \tfrac12\big(3P_t - P_t^3\,\Sigma/\operatorname{tr}\Sigma\big),\quad "
        r"z = P_T\,(x - \mu)/\sqrt{\operatorname{tr}\Sigma}",
        "Huang et al. 2019, Algorithm 1",
        "ZCA whitening approached by Newton-Schulz steps: strong directions first, weak ones hardly.",
        directions=spectral.iternorm_directions,
        parameters=(spectral.STEPS,),
    ),
    "group": Variant(
        groups.fit_group,
        "Group whitening",
        r"z = \operatorname{blockdiag}(\Sigma_1^{-1/2},\dots,\Sigma_G^{-1/2})(x - \mu)",
        "Zhuo et al. 2023 (WhitenedCSE), Eq. 4; Huang et al. 2018",
        "ZCA whitening inside blocks of coordinates: 1 block is ZCA, d blocks standardise.",
        parameters=(_GROUPS,),
    ),
    "shuffled_group": Variant(
        groups.fit_shuffled_group,
        "Shuffled group whitening",
        r"z = \Pi^\top\operatorname{blockdiag}(\Sigma_1^{-1/2},\dots,\Sigma_G^{-1/2})\,\Pi\,(x - \mu)",
        "Zhuo et al. 2023 (WhitenedCSE), Eq. 5 and 6, whose released code applies it in training only",
        "Group whitening of shuffled coordinates; another seed is another view of the same sentence.",
        parameters=(_GROUPS, Parameter("seed", "seed", 0, 0, 2**31 - 1, "Draws the permutation.")),
    ),
    "all_but_the_top": Variant(
        direction_removal.fit_all_but_the_top,
        "All but the top",
        r"z = (I - U_D U_D^\top)(x - \mu)",
        "Mu and Viswanath 2018, Algorithm 1",
        "Subtracts the mean and the strongest directions, and scales nothing.",
        parameters=(
            Parameter(
                "directions",
                "D",
                3,
                0,
                None,
                "Directions removed; about d / 100 is advised.",
                beyond_d=-1,
                noun="directions removed",
            ),
        ),
    ),
    "common_component": Variant(
        direction_removal.fit_common_component,
        "Common component",
        r"z = (I - u_1u_1^\top)\,x,\quad u_1 \text{ of } \textstyle\sum xx^\top",
        "Arora et al. 2017 (SIF), Algorithm 1",
        "Removes the first direction of the uncentred data: roughly the mean, without centring.",
    ),
    "r2": Variant(
        direction_removal.fit_r2,
        "Mean direction removed",
        r"z = (I - mm^\top)\,x,\quad m = \bar u/\lVert\bar u\rVert,\; \bar u = \tfrac1n\sum x/\lVert x\rVert",
        "Ren et al. 2025, R2",
        "Removes the direction in which vectors of unit length lie on average: the cone's axis, and nothing else.",
    ),
    "prefix": Variant(
        coordinates.fit_prefix,
        "First coordinates",
        r"z = (x_1,\dots,x_k)",
        "Kusupati et al. 2022 (Matryoshka)",
        "The first k coordinates as they are: for models trained so that prefixes serve, and the control for PCA at "
        "equal k. Nothing is fitted.",
        directions=coordinates.prefix_directions,
        narrows=True,
        fits=False,
    ),
    "clusters": Variant(
        clusters.fit_clusters,
        "Clusters",
        r"z = (I - U_cU_c^\top)(x - \mu_c),\quad c = \arg\min_j \lVert x - m_j\rVert",
        "Rajaee and Pilehvar 2021; Cai et al. 2021",
        "All but the top in each cluster of k-means by itself: every region loses its own mean and directions.",
        parameters=(
            Parameter("m", "m", 27, 1, 1000, "Clusters of k-means; 1 is All but the top.", noun="clusters"),
            Parameter(
                "directions", "D", 12, 0, 1000, "Directions removed from each cluster.", noun="directions removed"
            ),
            Parameter("seed", "seed", 0, 0, 2**31 - 1, "Draws the first centres."),
        ),
        of_rows=True,
    ),
    "flow": Variant(
        flow_training.fit_flow,
        "Flow",
        r"z = f_\phi(x),\quad \max_\phi \textstyle\sum \log\mathcal N(f_\phi(x); 0, I)"
        r" + \log\left|\det \partial f_\phi/\partial x\right|",
        "Li et al. 2020 (BERT-flow), Eq. 4; Kingma and Dhariwal 2018 (Glow)",
        "An invertible network, trained without labels, that sends the sentences to a standard normal. Takes a while.",
        parameters=(
            Parameter("epochs", "epochs", 1, 1, 1000, "Times it sees every sentence; the published one is 1."),
            Parameter("levels", "levels", 3, 1, 10, "After each but the last, half of the coordinates is done."),
            Parameter("depth", "depth", 3, 1, 64, "Steps in a level."),
            Parameter("width", "width", 32, 1, 4096, "Hidden units of a coupling."),
            Parameter("batch", "batch", 64, 1, 65536, "Sentences a step."),
            Parameter("lr", "learning rate", 0.001, 0, 1, "Of Adam."),
            Parameter("seed", "seed", 0, 0, 2**31 - 1, "Draws the first weights and the order of the sentences."),
        ),
        of_rows=True,
    ),
}


# ------------------------------------------------------------------------------------------------- specs


parse, canonical = family("whitening", WHITENERS)


def variant(spec: str) -> Variant:
    """The registry's entry of a spec."""
    return WHITENERS[parse(spec).name]


def label(spec: str) -> str:
    """A readable name: `Soft whitening (γ = 0.5, α = 0)`; of one with many parameters what is not as usual."""
    found, entry = parse(spec), variant(spec)
    return (found.short_label if entry.of_rows else found.label)(entry.label)


def cosine_class(spec: str, k: int | None = None, dim: int | None = None) -> str:
    """A name shared by all specs that give every pair of fitted sentences the same cosine.

    `whitening` for every full whitening, whatever its rotation (Kessy et al. 2018); with `k` below d the forms
    of one eigenbasis; and the ends of the families: gamma 0 and 1, 1 and d groups, 0 directions, eps 0.
    """
    found, k = parse(spec), None if k is not None and k == dim else k
    end = family_end(spec, dim, k)
    text = end[0] if end else str(found)
    if text == "whitening" or WHITENERS[found.name].whitens:
        if k is None:
            return "whitening"
        text = "correlation" if found.name in ("pca_cor", "zca_cor") else "covariance"
    return text if k is None else f"{text}, k={k}"


def eigenform(spec: str) -> str:
    """The first variant that weighs the same eigen-directions in the same way: `pca` for `zca` and `cholesky`.

    A variant and its eigenform differ by a rotation after the map. Whatever is computed from the weighted directions
    alone, as cosines and held-out isotropy are, is not only equal for both but the same computation.
    """
    found, entry = parse(spec), variant(spec)
    if entry.directions is not None and entry.whitens and not found.values:
        for name, other in WHITENERS.items():
            if other.directions is entry.directions and other.whitens:
                return name
    return str(found)


def family_end(spec: str, dim: int | None = None, k: int | None = None) -> tuple[str, str] | None:
    """What the parameters of `spec` make of it and why, where that is another class of cosines."""
    found = parse(spec)
    match found.name, dict(found.values):
        case "prefix", _ if k is None:
            return "none", "all coordinates are the vector as it is"
        case "soft", {"gamma": 0}:
            return "center", "γ = 0 scales nothing"
        case "soft", {"gamma": 1, "alpha": 0}:
            return "whitening", "γ = 1 without a ridge is ZCA whitening"
        case "all_but_the_top", {"directions": 0}:
            return "center", "with no direction removed only the mean is subtracted"
        case "shrunk", {"method": "epsilon", "eps": 0}:
            return "whitening", "ε = 0 shrinks nothing, which leaves ZCA whitening"
        case "group" | "shuffled_group", {"groups": groups} if groups == dim:
            return "standardize", "groups of one coordinate each standardise it"
        case "group" | "shuffled_group", {"groups": 1}:
            return "whitening", "one group is ZCA whitening"
        case "clusters", {"m": 1, "directions": 0}:
            return "center", "one cluster without a direction removed is centring"
        case "clusters", {"m": 1, "directions": directions}:
            return f"all_but_the_top:directions={directions}", "one cluster is all there is"
    return None


def whitens(spec: str) -> bool:
    """Whether the covariance after `spec` (with all directions) is the identity on the kept subspace."""
    return cosine_class(spec) == "whitening"


# Of the usual variance, what a direction may show of which the rows say next to nothing; and how many times a map must
# enlarge one beside a usual one for that to matter. Halves of 200 to 400 of STS-B's pairs turned round what maps did
# from 30 times on, and of none that stays below (docs/findings.md).
_FAINT, _MANYFOLD = 1e-6, 25.0


def scaled_together(spec: str, dim: int, rank: int) -> int:
    """How many of the `rank` directions kept of `dim` a map scales together by the strength each shows, however faint:
    all that it whitens, of groups those of one. 0 where it scales none, or bounds by how much."""
    found = parse(spec)
    if variant(spec).whitens or whitens(spec):
        return rank
    match found.name, dict(found.values):
        case "soft", {"gamma": gamma, "alpha": alpha}:
            most = 1.0 if gamma == spectral.AUTO else gamma  # that the spectrum may choose
            manyfold = ((1 + alpha) / (_FAINT + alpha)) ** (most / 2)
        case "shrunk", {"method": "epsilon", "eps": eps}:  # of variances about 1
            manyfold = ((1 - eps) * _FAINT + eps) ** -0.5
        case "iternorm", {"steps": steps}:
            usual, faint = spectral.newton_schulz(torch.tensor([1.0, _FAINT], dtype=torch.float64) / dim, steps)
            manyfold = float(faint / usual)
        case "group" | "shuffled_group", {"groups": groups} if groups < dim:
            return min(rank, -(-dim // groups))
        case _:
            return 0
    return rank if manyfold > _MANYFOLD else 0


_MORE_TEXT = "Fit on more text."


def starved(spec: str, different: int, rank: int) -> bool:
    """Whether a map fitted on so many different vectors whitens so many directions that it sets all equally far apart.

    Vectors that occur again count once: they are one point, however heavy.
    """
    least = starving(spec, different)
    return least is not None and rank >= least


def starving(spec: str, different: int) -> int | None:
    """How many directions a map of so many different vectors keeps where it is `starved`; None of no whitening."""
    return different - 1 if whitens(spec) else None


def too_few(spec: str, rank: int, dim: int) -> str:
    """What it means that a map of this rank is `starved`, and what to do about it."""
    span = quantity(rank + 1, "different vector spans", "different vectors span")
    remedy = starved_remedy(spec) if rank > 1 else _MORE_TEXT  # no k is smaller than 1
    return (
        f"{span} only {rank} of {dim} dimensions. Whitened along all of these they "
        f"are equally far apart, whatever the texts say. {remedy}"
    )


def starved_remedy(*specs: str) -> str:
    """What to do about maps that are `starved`: a smaller k helps where one of them takes one."""
    fewer = any(variant(spec).takes_k for spec in specs)
    return "Keep fewer dimensions (k), or fit on more text." if fewer else _MORE_TEXT


def needs_rows(spec: str) -> bool:
    """Whether the fit needs what moments of layers do not add up to: `Moments.quartic` or `Moments.unit`."""
    found = parse(spec)
    return found.name == "r2" or found.name == "shrunk" and dict(found.values)["method"] == "ledoit-wolf"


def of_rows(spec: str) -> bool:
    """Whether the fit needs the rows themselves (`fit_to_rows`), takes a while and gives no matrix."""
    return variant(spec).of_rows


# --------------------------------------------------------------------------------------------------- fits


def check_takes_k(spec: str, asked: str = "k") -> None:
    """Raise ValueError where `spec` keeps all directions or none, with what was `asked`."""
    if not variant(spec).takes_k:
        takers = ", ".join(key for key, one in WHITENERS.items() if one.takes_k)
        raise ValueError(f"{asked} has no meaning for whitening={spec!r}; k is taken by {takers}")


def check_same_weights(spec: str) -> None:
    """Raise ValueError where `spec` takes no k, or one direction weighs differently at each k: one map has no curve."""
    check_takes_k(spec)
    if dict(parse(spec).values).get("gamma") == spectral.AUTO:
        raise ValueError(f"whitening={spec!r} weighs its directions anew at each k; give its exponent as a number")


def check_k(k: int | None, spec: str, dim: int | None) -> int | None:
    """Return `k` if `spec` can keep that many of `dim` directions; None where these are not known yet."""
    if k is None:
        return None
    check_takes_k(spec, f"k={k}")
    return check_int(k, "k", 1, dim, "d")


def fit(spec: str, moments: Moments, k: int | None = None) -> Whitener:
    """Fit `spec` (`pca`, `soft:gamma=0.5`) to `moments`, keeping the top-k eigen-directions.

    `k` None keeps all; a `k` above the rank of the data keeps the rank, and d all that the variant weighs. Raises
    ValueError for an unknown name, a parameter out of its range, `k` outside 1..d, and for `k` where it has no meaning,
    TypeError for rows.
    """
    found = parse(spec, check_moments(moments).dim)
    k, entry = check_k(k, spec, moments.dim), variant(spec)
    if entry.of_rows:
        raise ValueError(f"whitening={spec!r} is fitted to rows, which moments do not hold: fit_to_rows takes them")
    keep = {"k": k} if entry.takes_k else {}
    fitted = entry.fit(moments, **keep, **dict(found.values))
    return Whitener(str(found), fitted.mean, fitted.matrix, fitted.rank, fitted.k, fitted.count)


def fit_to_rows(
    spec: str,
    x: Float[Tensor, "n d"],
    counts: Float[Tensor, "n"] | None = None,
    k: int | None = None,
    progress: Progress = silent,
) -> Map:
    """Fit any `spec` to the rows of `x`, each of which counts `counts` times (once where None), none not at all.

    For a variant of moments this is `fit`. `progress(done, total)` is called by those `of_rows`, and may raise to
    cancel. Raises ValueError as `fit`, for counts that are not whole or below 0, and where no row counts.
    """
    x = check_matrix(x)
    counts = x.new_ones(len(x)) if counts is None else check_weights(counts, len(x)).to(x.device)
    used = counts > 0
    x, counts = (x, counts) if used.all() else (x[used], counts[used])
    found, entry = parse(spec, x.shape[1]), variant(spec)
    if not entry.of_rows:
        return fit(spec, Moments.of(x, counts), k)
    check_k(k, spec, x.shape[1])
    return replace(entry.fit(x, counts, **dict(found.values), progress=progress), name=str(found))


def directions(spec: str, moments: Moments) -> Directions:
    """The weighted directions of `spec`, most important first. Raises ValueError where k has no meaning."""
    found = parse(spec, moments.dim)
    check_takes_k(spec)
    return variant(spec).directions(moments, **dict(found.values))
