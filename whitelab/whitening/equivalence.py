"""Which variants must give the same cosines, and why: said on the screen so that equal bars are no surprise."""

from collections.abc import Iterable
from dataclasses import dataclass

from whitelab.whitening.registry import canonical, cosine_class, family_end

# Why the members of a class agree, by the first word of its name.
REASONS = {
    "whitening": "each of them makes the covariance the identity, so they differ by a rotation only, and a rotation "
    "changes no cosine (Kessy et al. 2018)",
    "covariance": "they keep the same k principal directions of the covariance, each at variance 1, and differ by a "
    "rotation inside these only, which changes no cosine",
    "correlation": "they keep the same k principal directions of the correlation, each at variance 1, and differ by a "
    "rotation inside these only, which changes no cosine",
    "none": "they leave the vectors as they are",
    "center": "they subtract the mean and scale nothing",
    "standardize": "they scale each coordinate to variance 1 by itself",
    "all_but_the_top": "they subtract the mean and remove the same directions",
}


@dataclass(frozen=True)
class Agreement:
    """Specs of one cosine class, why that class agrees, and why each spec that has to be told so is in it."""

    specs: tuple[str, ...]
    reason: str
    because: dict[str, str]


def agreements(settings: Iterable[tuple[str, int | None]], dim: int) -> tuple[Agreement, ...]:
    """The groups of two or more among `settings` (spec and k) whose cosines must be equal, from `cosine_class`.

    Two spellings of one spec are one setting, named as it came first.
    """
    groups: dict[str, dict[str, tuple[str, int | None]]] = {}
    for spec, k in settings:
        groups.setdefault(cosine_class(spec, k, dim), {}).setdefault(canonical(spec), (spec, k if k != dim else None))
    return tuple(
        Agreement(
            tuple(spec for spec, _ in specs.values()),
            REASONS[name.partition(",")[0].partition(":")[0]],
            {spec: end[1] for spec, k in specs.values() if (end := family_end(spec, dim, k))},
        )
        for name, specs in groups.items()
        if len(specs) > 1
    )
