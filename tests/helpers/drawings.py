"""One figure of each kind, the made-up values it is drawn from, and ways to read it."""

import json
import math
from functools import cache

import numpy as np
import plotly.graph_objects as go

from whitelab import figures
from whitelab.whitening import WHITENERS

LABELS = {name: one.label for name, one in WHITENERS.items()}
NAUGHTY = '<img src=x onerror="alert(1)"> a & b'
LIGHT, DARK = "#FFFFFF", "#11161D"


@cache
def all_figures() -> dict[str, go.Figure]:
    """One figure of each kind, all variants in it where it takes several."""
    rng = np.random.default_rng(0)
    names = list(WHITENERS)
    rows = [
        {
            "layer": layer,
            "whitening": name,
            "alignment": 0.2 + 0.1 * layer,
            "uniformity": -2.0 - i,
            "spearman": 50.0 + i,
        }
        for i, name in enumerate(names)
        for layer in range(3)
    ]
    curve = [40.0 + k for k in range(8)]
    return {
        "score_bars": figures.score_bars(
            names, [LABELS[n] for n in names], [50.0 + i for i in range(len(names))], [1.0] * len(names)
        ),
        "by_layer": figures.by_layer({n: [0.5, 0.4, 0.3] for n in names}, LABELS, "Mean cosine"),
        "cosine_histogram": figures.cosine_histogram({n: rng.uniform(-1, 1, 50) for n in names}, LABELS),
        "spectrum": figures.spectrum({n: [3.0, 2.0, 1.0] for n in names}, LABELS),
        "settling_curve": figures.settling_curve([100, 200, 400], [0.5, 0.8, 0.9], "zca", LABELS["zca"]),
        "fit_size_curves": figures.fit_size_curves(
            [("pca", "PCA", [2, 4, 8], [40.0, 20.0, 45.0], [41.0, 30.0, None])], 4, 39.0
        ),
        "cone": figures.cone(rng.normal(size=(4, 2)), (1.0, 0.0), list("abcd"), "none", "Raw"),
        "projection": figures.projection(rng.normal(size=(4, 2)), list("abcd"), [0.0, 1.0, 2.0, 3.0], "gold", "PCA"),
        "similarity": figures.similarity(
            np.array([[1.0, 0.6, math.nan], [0.6, 1.0, 0.7], [math.nan, 0.7, 1.0]]), "Raw"
        ),
        "plane": figures.plane(rows, LABELS, -3.9, 1),
        "pair_heatmap": figures.pair_heatmap(cells(3), 3, [(0, 2)], (1, 2)),
        "k_curves": figures.k_curves(curve, {"a": curve}, "pca", "PCA whitening", k_marks(5, 8, 3), 8, 39.0),
        "search_costs": figures.search_costs(costs(), "pca", 4, 10),
        "size_curves": figures.size_curves({name: sizes(50.0 + i) for i, name in enumerate(names)}, LABELS, 4),
        "layer_counts": figures.layer_counts([3, 9, 0], 10),
        "subset_ranking": figures.subset_ranking(ranking(), 4, (1, 3)),
        "k_surface": figures.k_surface(surface(), 3, [2, 5, None], "PCA whitening", (1, 3)),
        "score_dots": figures.score_dots(standings(names), LABELS, 51.0),
        "option_dots": figures.option_dots(
            [
                {
                    "label": n,
                    "whitening": n,
                    "score": 50.0 + i,
                    "low": 49.0 + i,
                    "high": 52.0,
                    "settled": i > 1,
                    "best": i == 2,
                }
                for i, n in enumerate(names)
            ],
            "Spearman x 100",
            51.0,
        ),
        "difference_dots": figures.difference_dots(standings(names), LABELS, "raw"),
        "covariance_image": figures.covariance_image(np.eye(4), 2, 0.5, "PCA whitening"),
        "gold_scatter": scattered(-3.0, 0.0, 2.0),
        "walk_steps": figures.walk_steps(("A", 70.0), ("B", 72.0), [("Pooling", "cls -> mean", 2.0)]),
        "row_differences": figures.row_differences([duel("a", 1.0), duel("b", math.nan)], "A", "B"),
        "difference_heatmap": figures.difference_heatmap({(0, 1): 0.01, (1, 1): -0.2}, 2),
        "task_curves": figures.task_curves({"a": curve, "b": [None] * 8}, {"a": 8, "b": None}, [("a", 4, 43.0)]),
        "setting_plane": figures.setting_plane([spot(name, i) for i, name in enumerate(names)], -3.9),
        "accuracy_by_layer": figures.accuracy_by_layer({n: accuracies() for n in names}, LABELS, 3, 20.0),
        "metric_by_layer": figures.metric_by_layer({n: ranked() for n in names}, LABELS, 3, "nDCG@10"),
        "metric_by_k": figures.metric_by_k([0.2, 0.4, 0.3], 3, ("pca", "PCA"), {"best": 2, "chosen": 3}, 0.3, "MRR@10"),
        "query_differences": figures.query_differences([0.5, 0.0, -0.25], ["a", "b", "c"], "nDCG@10"),
        "bits_frontier": figures.bits_frontier(coded(), LABELS, "nDCG@10", 2, 4),
        "cosine_scale": figures.cosine_scale(
            {n: ([-1.0, 0.2, 1.0], [0.0, 40.0, 100.0]) for n in names}, LABELS, 0.7, "%"
        ),
        "gold_histogram": figures.gold_histogram(np.array([0.0, 2.5, 2.5, 5.0])),
        "length_histogram": figures.length_histogram(np.array([3, 3, 7, 12])),
        "confusion": figures.confusion([[3, 1], [0, 4]], ["a", "b"], "an example"),
        "cosines_by_label": figures.cosines_by_label(
            np.array([-1.0, 0.2, 0.8, 1.0]), np.array([False, False, True, True]), ("no", "yes"), 0.5, 0.4, "raw"
        ),
    }


def k_marks(chosen: int, best: int | None, knee: int | None) -> dict[str, int | None]:
    """What the k curve marks."""
    return {"chosen": chosen, "best": best, "knee": knee}


def ranked() -> dict[int, dict]:
    return {layer: {"mean": 0.4, "low": 0.3, "high": 0.5} for layer in range(3)}


def coded() -> list[dict]:
    """Points of a frontier, float32 raw first."""
    shapes = [("none", "float32", "none", 64), *((name, "binary", "itq", 2) for name in WHITENERS)]
    return [
        {
            "whitening": name,
            "code": NAUGHTY if i == 1 else code,
            "rotation": rotation,
            "bytes": size,
            "score": 0.5 - 0.01 * i,
            "low": 0.4 - 0.01 * i,
            "high": 0.6,
            "on_frontier": i < 2,
        }
        for i, (name, code, rotation, size) in enumerate(shapes)
    ]


def accuracies() -> dict[int, dict]:
    """Layers 0 and 2 of three, with unequal whiskers; layer 1 has no score."""
    return {
        2: {"accuracy": 90.0, "low": 80.0, "high": 95.0},
        0: {"accuracy": 50.0, "low": 40.0, "high": 60.0},
        1: {"accuracy": None, "low": None, "high": None},
    }


def duel(label: str, difference: float) -> dict:
    """A row of a chart of differences."""
    ends = {"difference_low": difference - 0.5, "difference_high": difference + 0.7}
    return {"label": label, "difference": difference, "settled": True} | ends


def spot(name: str, number: int) -> dict:
    """A setting in the plane of the two losses; every third belongs to another model."""
    losses = {"alignment": 0.2 + 0.1 * number, "uniformity": -3.5 + 0.2 * number, "spearman": 50.0}
    return {"model": f"m{number % 3}", "setting": f"L1:{name}", "label": name, "whitening": name} | losses


def sizes(top: float) -> dict[int, tuple[tuple[int, ...], float]]:
    """The best of 1 to 3 layers; two layers are best."""
    return {1: ((3,), top - 4), 2: ((0, 3), top), 3: ((0, 1, 3), top - 1)}


def ranking() -> list[tuple[tuple[int, ...], float, int]]:
    return [((0, 3), 80.0, 1), ((3,), 79.5, 2), ((1, 3), 79.5, 2), ((0, 1, 2), 70.0, 4)]


def surface() -> list[list[float | None]]:
    """Three layers at k = 1..6; the last has no score."""
    return [[10.0, 60.0, 59.0, 58.0, 57.0, 56.0], [1.0, 20.0, 30.0, 40.0, 50.0, 45.0], [None] * 6]


def costs() -> list[dict]:
    """Search costs of k = 2, 4, 8, time a little above the share of memory."""
    return [
        {
            "k": k,
            "milliseconds": 0.5 * k,
            "time_ratio": min(k / 8 + 0.02, 1.0),
            "time_ratio_q1": min(k / 8 + 0.01, 1.0),
            "time_ratio_q3": min(k / 8 + 0.05, 1.0),
            "bytes": k * 2**20,
            "memory_ratio": k / 8,
            "recall": k / 8,
            "raw_recall": 0.4,
        }
        for k in (2, 4, 8)
    ]


def scattered(*change) -> go.Figure:
    """Three pairs whose ranks moved so far."""
    gold, cosines = np.array([0.0, 5.0, 3.0]), np.array([0.1, 0.9, 0.5])
    return figures.gold_scatter(gold, cosines, np.array(change), ["a", "b", "c"], -0.1, "raw")


def standings(names) -> list[dict]:
    """Rows of the dot charts: scores from 50 up, differences from -1 up, every second one settled."""
    return [
        {
            "whitening": name,
            "spearman": 50.0 + i,
            "low": 48.5 + i,
            "high": 51.0 + i,
            "difference": i - 1.0,
            "difference_low": i - 1.75,
            "difference_high": i - 0.5,
            "settled": i % 2 == 0,
            "best": i == len(names) - 1,
        }
        for i, name in enumerate(names)
    ]


def cells(n: int) -> dict[tuple[int, int], float]:
    return {(i, j): 10.0 * i + j for i in range(n) for j in range(i, n)}


def accepted(figure: go.Figure) -> go.Figure:
    """The figure, which plotly's own checks pass and leave as it is."""
    checked = go.Figure(figure.to_dict())
    assert json.loads(checked.to_json()) == json.loads(figure.to_json())
    return figure


def squares(figure: go.Figure) -> go.Scatter:
    """The transparent squares over a heatmap, which are what a click meets."""
    return next(trace for trace in figure.data if isinstance(trace, go.Scatter) and trace.customdata is not None)


def written(figure: go.Figure) -> list[tuple]:
    """Row, column, text and ink of every number that stands in a cell of a map."""
    traces = [trace for trace in figure.data if isinstance(trace, go.Scatter) and trace.mode == "text"]
    return [cell for one in traces for cell in zip(one.y, one.x, one.text, one.textfont.color, strict=True)]


def named(figure: go.Figure, name: str):
    return next(trace for trace in figure.data if trace.name == name)


def linear(colour: str) -> list[float]:
    """Linear red, green and blue of `#1B649F`."""
    channels = [int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5)]
    return [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in channels]


def luminance(colour: str) -> float:
    red, green, blue = linear(colour)
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


def contrast(one: str, two: str) -> float:
    """WCAG contrast ratio."""
    high, low = sorted((luminance(one), luminance(two)), reverse=True)
    return (high + 0.05) / (low + 0.05)
