"""Colours, symbols, dashes and words that all figures share: a colour means the same on every page."""

import html
import textwrap
from collections import Counter
from collections.abc import Iterable, Sequence
from functools import cache, lru_cache
from itertools import cycle

from plotly.colors import get_colorscale, sample_colorscale

VARIANT_COLOURS = {
    "none": "#8A8A8A",
    "center": "#7393B5",
    "standardize": "#4C6A8A",
    "pca": "#2E86D1",
    "zca": "#E0702A",
    "cholesky": "#12A078",
    "pca_cor": "#1D6FA8",
    "zca_cor": "#B5561B",
    "soft": "#B0609C",
    "shrunk": "#0E8C9B",
    "iternorm": "#8F7A1E",
    "group": "#8258C9",
    "shuffled_group": "#A06FE0",
    "all_but_the_top": "#C94F4F",
    "common_component": "#A8506F",
    "r2": "#7A8C3A",
    "prefix": "#5B7F6B",
    "clusters": "#C2457A",
    "flow": "#3F9E3F",
}
# Each can be drawn filled and open (a difference that could be chance); the star stands for what is best.
VARIANT_SYMBOLS = {
    "none": "circle",
    "center": "square",
    "standardize": "hourglass",
    "pca": "diamond",
    "zca": "triangle-up",
    "cholesky": "triangle-down",
    "pca_cor": "diamond-tall",
    "zca_cor": "star-triangle-up",
    "soft": "cross",
    "shrunk": "x",
    "iternorm": "pentagon",
    "group": "hexagon",
    "shuffled_group": "hexagram",
    "all_but_the_top": "star-square",
    "common_component": "star-diamond",
    "r2": "bowtie",
    "prefix": "star-triangle-down",
    "clusters": "octagon",
    "flow": "diamond-wide",
}
DASHES = ("solid", "dash", "dot", "dashdot", "longdash", "longdashdot")
LAYER_SCALE = "Viridis"
GOLD_SCALE = [[0.0, "#3B1C6B"], [0.35, "#9B2C7A"], [0.7, "#EE7B51"], [1.0, "#FCC83F"]]
SCORE_SCALE = get_colorscale("Cividis")
DIFFERENCE_ENDS = "#D9601A", "#2B7BC4"  # below and above zero
DIFFERENCE_SCALE = [[0.0, DIFFERENCE_ENDS[0]], [0.5, "#9AA3AE"], [1.0, DIFFERENCE_ENDS[1]]]
# The same with nothing at zero, so that the background of the page shows through in an image.
DIFFERENCE_IMAGE = [[0.0, DIFFERENCE_ENDS[0]], [0.5, "rgba(154,163,174,0)"], [1.0, DIFFERENCE_ENDS[1]]]
MARK = "#D6336C"  # what is selected or best
RULE = "#888888"  # reference lines, readable on light and on dark
# Twelve, as the bundled pairs have so many subsets. All have three to one on both backgrounds, and are as far from each
# other as annealing could bring them, also to who sees no green (the smaller of both distances in CIE Lab).
SUBSET_COLOURS = (
    "#0069C3",
    "#F06900",
    "#0F7878",
    "#875AB4",
    "#78690F",
    "#C37896",
    "#0F875A",
    "#D2695A",
    "#4B4BFF",
    "#FF2DC3",
    "#A50FF0",
    "#C369FF",
)
_SOLIDS = ("circle", "diamond", "cross", "square", "x")
SCORE = "Spearman x 100"
KEPT = "k, kept dimensions"
LAYER = "Layer (0 = embedding layer)"


@cache
def layer_colour(layer: int, n_layers: int) -> str:
    """The colour of one layer on the sequential scale (without its palest end)."""
    return sample_colorscale(LAYER_SCALE, [0.9 * layer / max(n_layers - 1, 1)])[0]


@lru_cache(2**14)
def _ink(shade: str) -> str:
    """Black or white, whichever is easier to read on a colour `rgb(r, g, b)`: at least 4.5 to 1 on any (WCAG 2)."""
    parts = [float(part) / 255 for part in shade[4:-1].split(",")]
    linear = [((part + 0.055) / 1.055) ** 2.4 if part > 0.04045 else part / 12.92 for part in parts]
    light = sum(weight * part for weight, part in zip((0.2126, 0.7152, 0.0722), linear, strict=True))
    return "#000000" if (light + 0.05) ** 2 > 1.05 * 0.05 else "#FFFFFF"


def inks(values: Sequence[float], low: float, high: float, scale: Sequence) -> list[str]:
    """The ink for a number in each cell of a map whose colours run from `low` to `high`; none of them NaN."""
    places = [min(max((value - low) / (high - low), 0.0), 1.0) if high > low else 0.5 for value in values]
    return [_ink(shade) for shade in sample_colorscale(scale, places)] if places else []


def variant_colour(spec: str) -> str:
    """The hue of a variant, whatever its parameters."""
    return VARIANT_COLOURS[spec.partition(":")[0]]


def variant_symbol(spec: str) -> str:
    """The marker of a variant, whatever its parameters."""
    return VARIANT_SYMBOLS[spec.partition(":")[0]]


def variant_dashes(specs: Iterable[str]) -> dict[str, str]:
    """Dashes that tell apart specs of one variant, which share its hue."""
    seen, dashes = Counter(), {}
    for spec in specs:
        name = spec.partition(":")[0]
        dashes[spec] = DASHES[seen[name] % len(DASHES)]
        seen[name] += 1
    return dashes


def subset_stroke(number: int) -> dict[str, str]:
    """Colour and dash of a line for one of many subsets or tasks: the second dozen is dashed, the third dotted."""
    dozen, place = divmod(number, len(SUBSET_COLOURS))
    return {"color": SUBSET_COLOURS[place], "dash": DASHES[dozen % len(DASHES)]}


def subset_marker(number: int) -> dict[str, str]:
    """Colour and symbol of a point for one of many subsets, of those that plotly has in three dimensions too."""
    dozen, place = divmod(number, len(SUBSET_COLOURS))
    return {"color": SUBSET_COLOURS[place], "symbol": _SOLIDS[dozen % len(_SOLIDS)]}


def bare_dashes(specs: Iterable[str]) -> dict[str, str]:
    """A dash each for lines without marks: nineteen hues that read on light and dark are not all apart to everyone."""
    return dict(zip(specs, cycle(DASHES), strict=False))


@lru_cache(2**14)  # a figure of a task's sentences is drawn again whenever its page is
def wrapped(sentence: str, width: int = 56, lines: int | None = 4) -> str:
    """A sentence for a hover label or a name: escaped, in lines, cut when there are more than `lines` of them."""
    rows = textwrap.wrap(sentence, width)
    shown = [html.escape(row, quote=False) for row in rows[:lines]]  # Plotly knows no &quot;
    return "<br>".join(shown) + (" ..." if len(rows) > len(shown) else "")


def is_number(value: float | None) -> bool:
    """Whether there is a value, and not NaN."""
    return value is not None and value == value


def signed(value: float) -> str:
    """`+1.25`, or `0` for what rounds to zero."""
    return f"{value:+.2f}" if round(value, 2) else "0"
