"""Which whitening, fitted on what, and whether its gain is real."""

from whitelab.ui import cache, frame

chosen, opened = frame.open_page(
    "Which whitening, fitted on what, and is the gain real?",
    "Look at whether the intervals overlap, and whether the difference excludes zero.",
)
now = cache.score(opened.key, chosen.protocol(opened.pairs.source))
