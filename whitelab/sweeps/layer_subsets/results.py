"""What a search has found."""

from dataclasses import dataclass

from whitelab.scoring.setting import Setting


@dataclass(frozen=True)
class LayerSubset:
    """Spearman x 100 of an average of `layers`, in each task too (None: undefined); equals share a `place`."""

    layers: tuple[int, ...]
    spearman: float
    place: int
    tasks: tuple[float | None, ...]


@dataclass(frozen=True)
class Ranking:
    """The subsets with a score, best first; of equals the smaller, then the lower layers.

    `layer_counts[i]` says how many of the first hundred hold layer i, `needed[i]` how many of the first `counted`, a
    tenth of them: among nearly all subsets every layer is as frequent as any other.
    """

    top: tuple[LayerSubset, ...]
    best_by_size: dict[int, LayerSubset]
    layer_counts: tuple[int, ...]
    needed: tuple[int, ...]
    counted: int

    @property
    def best(self) -> LayerSubset | None:
        """The best of all; None when no score is defined."""
        return min(self.best_by_size.values(), key=lambda one: (one.place, len(one.layers)), default=None)


@dataclass(frozen=True)
class SubsetSearch:
    """What a search has found: `ranking` by the average over the tasks, `tasks` by each task alone.

    `scored` settings took `seconds`; `total` is an upper bound while a beam runs. `exact` says that every
    subset of every one of `sizes` has been scored, `exact_sizes` for which sizes that holds; `strategy` says
    how subsets are chosen. `notes` say where memory ran out and what was done then. The
    average is undefined where a task's score is.
    """

    ranking: Ranking
    tasks: dict[str, Ranking]
    scored: int
    total: int
    seconds: float
    finished: bool
    exact_sizes: tuple[int, ...]
    strategy: str
    sizes: tuple[int, ...]
    n_layers: int
    setting: Setting
    notes: tuple[str, ...] = ()

    @property
    def exact(self) -> bool:
        """Whether no subset of the sizes asked for was left out."""
        return self.exact_sizes == self.sizes

    @property
    def best(self) -> LayerSubset | None:
        """The best of all; None when no score is defined."""
        return self.ranking.best

    @property
    def equals(self) -> tuple[LayerSubset, ...]:
        """Those in `ranking.top` with the highest score, more than one where they tie."""
        return tuple(one for one in self.ranking.top if one.place == 1)

    def as_dict(self) -> dict:
        """A JSON-ready record."""
        return {
            "scored": self.scored,
            "seconds": self.seconds,
            "exact": self.exact,
            "exact_sizes": list(self.exact_sizes),
            "strategy": self.strategy,
            "n_layers": self.n_layers,
            **({"notes": list(self.notes)} if self.notes else {}),
            **_ranking_record(self.ranking, tuple(self.tasks)),
            "tasks": {name: _ranking_record(one, (name,)) for name, one in self.tasks.items()},
        }


def _ranking_record(ranking: Ranking, names: tuple[str, ...]) -> dict:
    def record(one: LayerSubset) -> dict:
        found = {"layers": list(one.layers), "spearman": one.spearman, "place": one.place}
        return found | ({"tasks": dict(zip(names, one.tasks, strict=True))} if len(names) > 1 else {})

    return {
        "best_by_size": {str(size): record(one) for size, one in ranking.best_by_size.items()},
        "top": [record(one) for one in ranking.top],
        "layer_counts": list(ranking.layer_counts),
    }
