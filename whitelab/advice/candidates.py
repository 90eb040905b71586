"""What is tried before anything is advised: few settings, the first of which is the model as it comes."""

from whitelab.scoring.setting import Setting

VARIANTS = ("none", "center", "r2", "soft", "shrunk", "pca")
KEPT_PARTS = (2, 4, 8)  # PCA, scaled and not, and the first coordinates: d / 2, d / 4 and d / 8


def to_store(chosen: Setting, n_layers: int, dim: int, fit: str, rank: int) -> tuple[Setting, ...]:
    """Of the `candidates` those that may shorten vectors, and the raw ones of each layer, all naming `fit`.

    To store, a map is one that cuts directions: the others keep all d numbers and were measured for what they order.
    """
    every = candidates(chosen, n_layers, dim, fit, rank)
    return tuple(one.with_(fit=fit) for one in every if one.whitening == "none" or one.k is not None)


def candidates(chosen: Setting, n_layers: int, dim: int, fit: str, rank: int) -> tuple[Setting, ...]:
    """Raw vectors of the last layer, then every variant, PCA at three k, scaled and not, and as many first coordinates.

    At the last layer, at the first one, at both (the papers' usual pair), and at the chosen ones. Each map is fitted on
    `fit`, whose texts span `rank` directions, and no k is larger; pooling and aggregate are those of
    `chosen`. Raises ValueError for layers that the model does not have.
    """
    last = n_layers - 1
    own = chosen.raw.sized(n_layers, dim).layers
    every = [(last,)] + ([(1,), (1, last)] if last > 1 else []) + [own]
    kept = [dim // part for part in KEPT_PARTS if 1 < dim // part <= rank]
    found = []
    for layers in dict.fromkeys(every):
        raw = Setting(layers, pooling=chosen.pooling, aggregate=chosen.aggregate)
        found += [raw] + [raw.with_(whitening=name, fit=fit) for name in VARIANTS[1:]]
        found += [raw.with_(whitening=name, k=k, fit=fit) for name in ("center", "pca", "prefix") for k in kept]
    return tuple(found)
