"""One setting on one task."""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import torch
from jaxtyping import Float
from sklearn.metrics import average_precision_score, f1_score, precision_recall_curve
from sklearn.preprocessing import StandardScaler
from torch import Tensor

from whitelab import whitening
from whitelab.base.progress import Progress, silent
from whitelab.datasets import LabelledTexts
from whitelab.encoding.embeddings import LayerRows
from whitelab.probe.classifiers import (
    GRID,
    TEST_GRID,
    accuracy,
    best_c,
    best_threshold,
    knn,
    linear,
    wilson,
)
from whitelab.probe.options import FITS, How, usual
from whitelab.probe.rows import Turn, features, fit_map, is_starved, stratified_rows, turns
from whitelab.probe.scores import PairMeasures, ProbeScore
from whitelab.probe.words import line, threshold_line
from whitelab.scoring.fit_scopes import map_of
from whitelab.scoring.setting import Setting, check_is_setting
from whitelab.statistics import geometry, linalg
from whitelab.whitening import Map


def probe(
    space: LayerRows,
    data: LabelledTexts,
    setting: Setting,
    how: How | None = None,
    *,
    model: str = "",
    corpus: LayerRows | None = None,
    progress: Progress = silent,
) -> ProbeScore:
    """One setting on one task; `space` holds `data.sentences` in every layer, `corpus` other text to fit on.

    `senteval` differs from the published numbers in one thing: those come from SentEval's PyTorch classifier
    (Adam, weight decay 1e-5 to 1e-2, early stopping on dev rows), here a logistic regression is solved to the end,
    SentEval's own alternative, with L-BFGS in place of liblinear. Expect some tenths of a point.
    Raises ValueError for layers the model does not have, a `k` out of range, and data that cannot be learnt from.
    """
    check_is_setting(setting)
    how = how or How(usual(data))
    layers = setting.sized(space.n_layers, space.dim).layers
    if how.fit not in FITS and corpus is None and setting.fits:
        raise ValueError(f"fit={how.fit!r} needs the embedded sentences of that text, got corpus=None")
    if space.n_sentences != len(data.sentences):
        raise ValueError(f"space must hold the {len(data.sentences)} texts of {data.task}, got {space.n_sentences}")
    x = space.combine(layers)
    needed = corpus is not None and how.fit not in FITS and setting.fits
    known = corpus.moments(layers) if needed else None
    if needed and whitening.of_rows(setting.whitening):
        known = map_of(corpus, setting.with_(layers=layers))
    work = _by_threshold if how.classifier == "threshold" else _by_classifier
    return work(x, data, setting, how, model, known, progress)


def _by_classifier(x, data, setting, how: How, model: str, corpus, progress) -> ProbeScore:
    found = turns(data, how.folds, how.seed)
    predicted, fold, ranks, fitted, chosen, starved = np.full(data.n_rows, -1), [], [], [], [], False
    own = how.fit == "train" and setting.fits  # a map for each fold
    for done, turn in enumerate(found, 1):
        if own or not ranks:
            whitener = fit_map(x, data, turn.train, setting, how, corpus)
            starved |= is_starved(x, data, turn.train, whitener, how, corpus)
            seen = features(_mapped(x, whitener, setting), data)
        predicted[turn.test], c = _predict(seen, data, turn, how, x.device)
        chosen += [] if c is None else [c]
        fold.append(accuracy(predicted[turn.test] == data.y[turn.test]))
        ranks.append(whitener.rank)
        fitted.append(round(whitener.count))
        progress(done, len(found))
    rows = np.sort(np.concatenate([turn.test for turn in found]))
    return _score(
        data,
        setting,
        how,
        model,
        rows,
        predicted[rows],
        found,
        accuracy=float(np.mean(fold)),
        fitted=min(fitted),
        rank=min(ranks),
        dim=x.shape[1],
        starved=starved,
        protocol=line(data, setting, how, found),
        c=tuple(chosen),
    )


def _mapped(x: Float[Tensor, "s d"], whitener: Map, setting: Setting) -> Float[Tensor, "s m"]:
    """Every text under the map. Raises ValueError where that is one vector: a score of it would be of the labels."""
    if whitener.rank == 0 or linalg.distinct_rows(x, 2) < 2:
        layers = list(setting.layers)
        raise ValueError(f"layers={layers} give every text the same vector, so there is nothing to learn from")
    return whitener(x)


def _predict(
    seen: np.ndarray, data: LabelledTexts, turn: Turn, how: How, device: torch.device
) -> tuple[np.ndarray, float | None]:
    """The classes of the rows of `turn.test`, and the C that SentEval's protocol chose for them."""
    y = data.y
    if how.standardize:
        seen = StandardScaler().fit(seen[turn.train]).transform(seen)
    x, test = seen[turn.train], seen[turn.test]
    if how.classifier == "knn":
        return knn(x, y[turn.train], test, how.neighbours, how.metric), None
    if how.on(data) == "linear":
        return linear(x, y[turn.train], test, device=device), None
    if len(turn.dev):
        both = np.concatenate([turn.train, turn.dev])
        splits = [(np.arange(len(turn.train)), np.arange(len(turn.train), len(both)))]
        c = best_c(seen[both], y[both], splits, GRID, device)
    else:
        inner = stratified_rows(data, turn.train, how.folds, how.seed)
        c = best_c(x, y[turn.train], inner, TEST_GRID if data.scored_split else GRID, device)
    return linear(x, y[turn.train], test, c, device), c


def _by_threshold(x, data, setting, how: How, model: str, corpus, progress) -> ProbeScore:
    """WhiteningBERT, appendix A.2: a pair matches where its cosine reaches a fixed threshold."""
    if not data.pairs:
        raise ValueError(f"classifier='threshold' needs pairs of texts, and {data.task} has single texts")
    data = _two_classes(data)
    scored = data.scored_split
    rows = data.rows(scored) if scored else np.arange(data.n_rows)
    train = data.rows("train") if scored else rows[:0]
    learnt = len(train) > 0
    whitener = fit_map(x, data, train if learnt else rows, setting, how, corpus)
    z = _mapped(x, whitener, setting)
    first, second = torch.tensor(data.first_index), torch.tensor(data.second_index)
    cosines = geometry.pair_cosines(z[first], z[second]).cpu().numpy()
    matches = data.y == data.positive
    if matches[rows].all() or not matches[rows].any():
        raise ValueError(f"{data.task}: the scored pairs must hold both classes, got one")
    progress(1, 1)
    chosen = train if learnt else rows
    best = best_threshold(cosines[chosen], matches[chosen])
    right = int(((cosines[rows] >= best) == matches[rows]).sum())
    precision, recall, levels = precision_recall_curve(matches[rows], cosines[rows])
    f1 = 2 * precision * recall / np.maximum(precision + recall, 1e-300)
    top = int(np.argmax(f1[:-1]))
    low, high = wilson(right, len(rows))
    pairs = PairMeasures(
        threshold=how.threshold,
        best_threshold=best,
        best_accuracy=100 * right / len(rows),
        best_accuracy_low=low,
        best_accuracy_high=high,
        chosen_on="the training pairs" if learnt else "the scored pairs",
        average_precision=100 * float(average_precision_score(matches[rows], cosines[rows])),
        best_f1=100 * float(f1[top]),
        best_f1_threshold=float(levels[top]),
    )
    predicted = np.where(cosines[rows] >= how.threshold, data.positive, 1 - data.positive)
    turn = Turn(train if learnt else rows, rows[:0], rows)
    return _score(
        data,
        setting,
        how,
        model,
        rows,
        predicted,
        (turn,),
        accuracy=accuracy(predicted == data.y[rows]),
        fitted=round(whitener.count),
        rank=whitener.rank,
        dim=x.shape[1],
        starved=is_starved(x, data, chosen, whitener, how, corpus),
        protocol=threshold_line(setting, how, scored, learnt),
        train=len(train),
        pairs=pairs,
        cosines=cosines[rows],
        matches=matches[rows],
    )


def _two_classes(data: LabelledTexts) -> LabelledTexts:
    """The pairs as those of their positive class and all others, which is all that a threshold tells apart."""
    if len(data.classes) == 2:
        return data
    name = data.classes[data.positive]
    y = (data.y == data.positive).astype(data.y.dtype)
    return replace(data, y=y, classes=(f"not {name}", name), positive=1)


def _score(data, setting, how, model, rows, predicted, found: Sequence[Turn], **more) -> ProbeScore:
    y, classes = data.y[rows], len(data.classes)
    hits = predicted == y
    low, high = wilson(int(hits.sum()), len(rows))
    table = np.zeros((classes, classes), dtype=int)
    np.add.at(table, (y, predicted), 1)
    usual = [np.bincount(data.y[turn.train], minlength=classes).argmax() for turn in found]
    baseline = np.mean([accuracy(data.y[turn.test] == one) for turn, one in zip(found, usual, strict=True)])
    f1 = None
    if data.positive is not None:
        f1 = 100 * float(f1_score(y == data.positive, predicted == data.positive, zero_division=0.0))
    return ProbeScore(
        model=model,
        setting=setting,
        task=data.task,
        classifier=how.classifier,
        low=low,
        high=high,
        baseline=float(baseline),
        scored=len(rows),
        folds=len(found),
        f1=f1,
        classes=data.classes,
        confusion=tuple(tuple(row) for row in table.tolist()),
        hits=hits,
        **{"train": min(len(turn.train) for turn in found)} | more,
    )
