"""Models x settings x tasks under one preset, cell by cell: the papers' tables on any model and data.

Rows are settings whose fit scope and aggregate a preset decides: what a paper or a benchmark does with everything else.
"""

from whitelab.compare.against import Duel, Resampled, outcome, resample, resampled
from whitelab.compare.bench import Bench, embed_cut, tried
from whitelab.compare.grid import AVERAGE, SEVEN, Cell, Grid, compare, printed, settings_for
from whitelab.compare.mteb_results import LIKE_MTEB, MtebScore, check_mteb_aggregate, mteb_rows, read_mteb, write_mteb
from whitelab.compare.preset_walk import Step, Walk, idle_words, walks
from whitelab.compare.presets import (
    ALIKE,
    FIELDS,
    PRESETS,
    Preset,
    decisions,
    differences,
    lacking_splits,
    preset_line,
    worded,
)
from whitelab.compare.tables import (
    FORMATS,
    arranged,
    notes_of,
    pivot,
    random_beside_trained,
    ranked,
    reasons_of,
    starved_note,
    starved_places,
    written,
)

__all__ = [
    "ALIKE",
    "AVERAGE",
    "FIELDS",
    "FORMATS",
    "PRESETS",
    "SEVEN",
    "Bench",
    "Cell",
    "Duel",
    "Grid",
    "MtebScore",
    "mteb_rows",
    "read_mteb",
    "write_mteb",
    "arranged",
    "lacking_splits",
    "preset_line",
    "Resampled",
    "resample",
    "resampled",
    "outcome",
    "tried",
    "Preset",
    "Step",
    "Walk",
    "LIKE_MTEB",
    "check_mteb_aggregate",
    "compare",
    "decisions",
    "differences",
    "embed_cut",
    "idle_words",
    "pivot",
    "random_beside_trained",
    "ranked",
    "notes_of",
    "reasons_of",
    "settings_for",
    "starved_note",
    "starved_places",
    "printed",
    "walks",
    "worded",
    "written",
]
