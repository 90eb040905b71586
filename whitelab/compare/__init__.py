"""Models x settings x tasks under one protocol, cell by cell: the papers' tables on any model and data.

A setting is written `[cls/|mean/]L1+L-1[:variant[@k]]`: pooling, layers to average (negative numbers count from
the last), and a whitening spec. A preset is what a paper or a benchmark does with everything else.
"""

from whitelab.compare.grid import AVERAGE, SEVEN, Cell, compare, printed
from whitelab.compare.presets import PRESETS, Preset, differences
from whitelab.compare.settings import TABLE1, Setting, parse_settings
from whitelab.compare.tables import FORMATS, best_scores, pivot, written

__all__ = [
    "AVERAGE",
    "FORMATS",
    "PRESETS",
    "SEVEN",
    "TABLE1",
    "Cell",
    "Preset",
    "Setting",
    "best_scores",
    "compare",
    "differences",
    "parse_settings",
    "pivot",
    "printed",
    "written",
]
