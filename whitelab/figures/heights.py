"""How high the pictures are, in pixels, so that a page keeps their room free before they are drawn."""

SMALL = 250  # one of many curves side by side
LOW = 340  # bars and histograms
CURVES = 400
TRAINING = 420
TALL = 480
PAIRS = 500  # maps of pairs of layers
PLANE = 520
PROJECTION = 560
WRAPPED = 72  # a row of a table in which text wraps, as it does above 64
DOWNLOAD = 56  # the button below a picture that hands out its data


def surface(n_layers: int) -> int:
    """A map of every layer, a row each, over many columns."""
    return 130 + 26 * max(n_layers, 9)


def plane(paths: int) -> int:
    """The plane of the two losses: its axes keep their room also where a legend of many names takes two to a line."""
    return PLANE + 15 * max(paths - 4, 0)


def ranking(rows: int) -> int:
    """A ranking of subsets of layers, a line each."""
    return 70 + 26 * max(rows, 8)


def dots(rows: int, row: int = 46, around: int = 70) -> int:
    """Dots on their intervals, a row each."""
    return max(300, around + row * rows)


def table(rows: int, row: int = 35) -> int:
    """A table of so many rows with its head."""
    return 38 + row * rows


def room(height: int) -> int:
    """A picture with the button for its data."""
    return height + DOWNLOAD
