"""How a score was made, in one line."""

from collections.abc import Sequence

import numpy as np

from whitelab.datasets import LabelledTexts
from whitelab.probe.classifiers import GRID, TEST_GRID, powers
from whitelab.probe.options import How
from whitelab.probe.rows import Turn, same_texts, stratified_rows
from whitelab.scoring.setting import Setting, scope_in_words


def line(data: LabelledTexts, setting: Setting, how: How, found: Sequence[Turn]) -> str:
    """How a classifier's score was made, in one line."""
    folds = len(found) > 1
    if how.classifier == "knn":
        ties = "ties to the smallest label and the first row"
        what = f"{how.neighbours} nearest neighbours, {how.metric}, majority, {ties}"
    elif how.on(data) == "linear":
        what = "logistic regression (L-BFGS, C = 1)"
    elif len(found[0].dev):
        what = f"SentEval: logistic regression, C of {powers(GRID)} best on the dev split"
    elif folds:
        inner = f"{_folds(_inner(data, how, found), 'inner', how)} of each training part"
        what = f"SentEval: logistic regression, C of {powers(GRID)} best in {inner}"
    else:
        inner = f"{_folds(_inner(data, how, found), '', how)} of the training split"
        what = f"SentEval: logistic regression, C of {powers(TEST_GRID)} best in {inner}"
    pairs = ", on |u - v| and u v" if data.pairs else ""
    scaled = "features standardised" if how.standardize else "features as they come"
    if folds:
        together = ", equal texts in one" if len(np.unique(same_texts(data))) < data.n_rows else ""
        where = f"mean of {_folds(len(found), 'stratified', how)}, seed {how.seed}{together}"
    else:
        where = "test split" if data.scored_split == "test" else "dev split, for want of a test split"
    return f"{what}{pairs} · {where} · {scaled}{_fit_words(setting, how, folds)}"


def _folds(count: int, kind: str, how: How) -> str:
    """`9 stratified folds`, and why they are fewer than was asked for, where they are."""
    why = f" ({how.folds} need as many different rows of every class)" if count < how.folds else ""
    return " ".join(filter(None, (str(count), kind, "folds"))) + why


def _inner(data: LabelledTexts, how: How, found: Sequence[Turn]) -> int:
    """Folds among which C is chosen, the fewest of a turn."""
    return min(len(stratified_rows(data, turn.train, how.folds, how.seed)) for turn in found)


def _fit_words(setting: Setting, how: How, folds: bool) -> str:
    if not setting.fits:
        return ""
    own = "each fold's training texts" if folds else "the training texts"
    return f" · whitening fitted on {scope_in_words(how.fit, {'train': own, 'all': 'all texts'})}"


def threshold_line(setting: Setting, how: How, scored: str | None, learnt: bool) -> str:
    where = f"{scored} split" if scored else "all pairs"
    if not setting.fits:
        fitted = ""
    elif how.fit == "train" and not learnt:
        fitted = " · whitening fitted on the scored pairs' texts (there is no training split)"
    else:
        fitted = _fit_words(setting, how, False)
    chosen = "the training pairs" if learnt else "the scored pairs, an upper bound"
    return f"match where cosine >= {how.threshold:g} · {where} · best threshold chosen on {chosen}{fitted}"
