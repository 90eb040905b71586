"""Models x settings x tasks under one protocol, cell by cell: the papers' tables on any model and data.

A setting is written `[cls/|mean/]L1+L-1[:variant[@k]]`: pooling, layers to average (negative numbers count from
the last), and a whitening spec. A preset is what a paper or a benchmark does with everything else.
"""

from whitelab.compare.against import Duel, Resampled, resample, resampled, told
from whitelab.compare.bench import Bench, embed_cut, tried
from whitelab.compare.grid import AVERAGE, SEVEN, Cell, CellKey, compare, printed
from whitelab.compare.presets import ALIKE, FIELDS, PRESETS, Preset, decisions, differences, protocol_line, worded
from whitelab.compare.settings import TABLE1, Setting, parse_settings
from whitelab.compare.tables import FORMATS, arranged, best_scores, pivot, written
from whitelab.compare.walk import Step, Walk, walk, walks

__all__ = [
    "ALIKE",
    "AVERAGE",
    "FIELDS",
    "FORMATS",
    "PRESETS",
    "SEVEN",
    "TABLE1",
    "Bench",
    "Cell",
    "CellKey",
    "Duel",
    "arranged",
    "protocol_line",
    "Resampled",
    "resample",
    "resampled",
    "told",
    "tried",
    "Preset",
    "Setting",
    "Step",
    "Walk",
    "best_scores",
    "compare",
    "decisions",
    "differences",
    "embed_cut",
    "parse_settings",
    "pivot",
    "printed",
    "walk",
    "walks",
    "worded",
    "written",
]
