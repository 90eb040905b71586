"""What frozen embeddings are good for beyond STS: neighbours, a linear classifier, SentEval, a cosine threshold.

Four classifiers on texts or pairs with labels (`datasets.load_labelled`), each on any layers, raw or whitened:
`knn` and `linear` as W-MSE evaluates, `senteval` as SentEval and with it WhitenedCSE (Table 2), `threshold` as
WhiteningBERT (Table 3). By default the whitening sees the texts the classifier learns from and no other, so that
nothing of a test row, not even its text, decides its score.
"""

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace

import numpy as np
import torch
from jaxtyping import Bool, Float, Int
from sklearn.metrics import average_precision_score, f1_score, precision_recall_curve
from sklearn.preprocessing import StandardScaler
from torch import Tensor

from whitelab import geometry, whitening
from whitelab.checks import check_choice, check_int, check_layers
from whitelab.classifiers import (
    GRID,
    ITERATIONS,
    METRICS,
    TEST_GRID,
    best_c,
    best_threshold,
    knn,
    linear,
    powers,
    stratified,
    wilson,
)
from whitelab.compare import Setting, parse_settings, tried
from whitelab.datasets import LabelledTexts
from whitelab.embeddings import LayerRows
from whitelab.encoders import Encoder, embed, load_encoder
from whitelab.evaluate import embed_scope
from whitelab.moments import Moments
from whitelab.published import ACCURACY, Published, lookup
from whitelab.published import Setting as PublishedSetting
from whitelab.scopes import scope_text
from whitelab.store import Store
from whitelab.whitening import Whitener

CLASSIFIERS = {
    "knn": "Neighbours",
    "linear": "Linear",
    "senteval": "SentEval",
    "threshold": "Threshold",
}
FITS = {"train": "The training texts", "all": "All texts"}
AVERAGE = "avg"
DEFAULT = "L-1;L-1:pca;L1+L-1;L1+L-1:pca"

Progress = Callable[[int, int], None]


@dataclass(frozen=True)
class How:
    """Everything but data and setting that decides a probe's score.

    `fit` says what the whitening is fitted on: `train`, the texts the classifier learns from (in cross-validation
    each fold has a map of its own); `all`, every text, as WhiteningBERT does on STS; or the name of other text.
    `neighbours` and `metric` are for `knn`, `threshold` for `threshold`. `standardize` brings every feature to mean
    0 and variance 1 on the training rows before a classifier sees it; no paper does.
    """

    classifier: str = "linear"
    fit: str = "train"
    neighbours: int = 5
    metric: str = "euclidean"
    folds: int = 10
    standardize: bool = False
    threshold: float = 0.5
    seed: int = 1111

    def __post_init__(self) -> None:
        check_choice(self.classifier, "classifier", CLASSIFIERS)
        check_choice(self.metric, "metric", METRICS)
        check_int(self.neighbours, "neighbours", 1)
        check_int(self.folds, "folds", 2)
        if not -1 <= self.threshold <= 1:
            raise ValueError(f"threshold={self.threshold!r} must lie between -1 and 1")
        if not self.fit:
            raise ValueError("fit='' must be train, all, or name other text")

    def on(self, data: LabelledTexts) -> str:
        """The classifier that runs on `data`: `linear` means SentEval's protocol on a task in SentEval's layout."""
        return "senteval" if self.classifier == "linear" and data.layout == "senteval" else self.classifier


def usual(data: LabelledTexts) -> str:
    """The classifier that the papers use on data of this kind."""
    if data.layout == "senteval":
        return "senteval"
    return "threshold" if data.pairs else "linear"


@dataclass(frozen=True)
class PairMeasures:
    """How well cosines tell matching pairs from others; a pair is said to match where cosine >= threshold.

    `best_accuracy` is at `best_threshold`, the threshold that is best on the pairs `chosen_on`: the training pairs,
    or the scored pairs themselves, and then it is an upper bound. `average_precision` and `best_f1` (x 100)
    concern the scored pairs.
    """

    threshold: float
    best_threshold: float
    best_accuracy: float
    best_low: float
    best_high: float
    chosen_on: str
    average_precision: float
    best_f1: float
    best_f1_threshold: float


@dataclass(frozen=True)
class ProbeScore:
    """Accuracy x 100 of one setting on one task with its 95 % Wilson interval; None with a `reason` otherwise.

    `baseline` is the accuracy of always saying the most frequent class of the training rows. `rows` were scored,
    `train` learnt from (the fewest of any fold), the map was fitted on `fitted` texts and keeps `rank` of `dim`
    directions. `f1` (x 100) is that of the class that says yes, where there is one. `confusion[i][j]` counts rows
    of class i that were taken for class j. `hits` says for every row scored whether it was right, in file order.
    """

    model: str
    setting: Setting
    task: str
    classifier: str
    accuracy: float | None
    low: float | None = None
    high: float | None = None
    baseline: float | None = None
    rows: int = 0
    train: int = 0
    fitted: int = 0
    rank: int = 0
    dim: int = 0
    f1: float | None = None
    pairs: PairMeasures | None = None
    classes: tuple[str, ...] = ()
    confusion: tuple[tuple[int, ...], ...] = ()
    protocol: str = ""
    reason: str = ""
    published: Published | None = None
    hits: Bool[np.ndarray, "n"] | None = field(default=None, repr=False, compare=False)
    cosines: Float[np.ndarray, "n"] | None = field(default=None, repr=False, compare=False)
    matches: Bool[np.ndarray, "n"] | None = field(default=None, repr=False, compare=False)

    @property
    def starved(self) -> bool:
        """Whether the map was fitted on no more texts than it keeps directions: it then sets them equally far apart."""
        return whitening.whitens(self.setting.whitening) and self.rank >= self.fitted - 1

    def as_dict(self) -> dict:
        """A JSON-ready record."""
        names = ("task", "classifier", "accuracy", "low", "high", "baseline", "f1", "rows", "train", "fitted")
        record = {"model": self.model, "setting": str(self.setting)} | {name: getattr(self, name) for name in names}
        record |= {"rank": self.rank, "dim": self.dim, "protocol": self.protocol}
        if self.pairs is not None:
            record |= vars(self.pairs)
        if self.published is not None:
            record |= {"published": self.published.value, "published_in": self.published.place}
        if self.confusion:
            record |= {"classes": list(self.classes), "confusion": [list(row) for row in self.confusion]}
        return record | ({"reason": self.reason} if self.reason else {})


# ------------------------------------------------------------------------------------------------ rows and maps


@dataclass(frozen=True, eq=False)
class Turn:
    """Rows to learn from, rows to choose with (perhaps none), rows to score."""

    train: Int[np.ndarray, "n"]
    dev: Int[np.ndarray, "v"]
    test: Int[np.ndarray, "m"]


def turns(data: LabelledTexts, folds: int = 10, seed: int = 1111) -> tuple[Turn, ...]:
    """One turn where the data has a test split (a dev split stands in), else stratified folds, shuffled.

    Tasks in SentEval's layout are sorted by length and label first, as SentEval does, so that the folds are its
    own. Fewer folds where the smallest class has fewer rows. Raises ValueError where nothing can be learnt.
    """
    order, scored = _order(data), scored_split(data)
    split = np.array(data.split)[order]
    if scored:
        train, test = order[split == "train"], order[split == scored]
        if len(train) == 0:
            raise ValueError(f"{data.task}: rows of the split {scored} need rows of the split train")
        return (Turn(train, order[split == "dev"] if scored == "test" else order[:0], test),)
    return tuple(Turn(order[a], order[:0], order[b]) for a, b in stratified(data.y[order], folds, seed))


def scored_split(data: LabelledTexts) -> str | None:
    """The split that is scored: test, dev where there is none, None in data without either."""
    return next((name for name in ("test", "dev") if name in data.split), None)


def _order(data: LabelledTexts) -> np.ndarray:
    rows = np.arange(data.n_rows)
    if data.layout != "senteval":
        return rows
    length = [[len(text.split()) for text in texts] for texts in (data.first, data.second or data.first)]
    return np.array(sorted(rows, key=lambda i: (length[0][i], length[1][i], data.y[i])))


def occurrences(data: LabelledTexts, rows: Int[np.ndarray, "n"]) -> Int[Tensor, "m"]:
    """The place in `data.sentences` of every text of these rows, repetitions kept."""
    index = (data.first_index, data.second_index) if data.pairs else (data.first_index,)
    return torch.from_numpy(np.concatenate([part[rows] for part in index]))


def fit_map(
    x: Float[Tensor, "s d"],
    data: LabelledTexts,
    rows: Int[np.ndarray, "n"],
    setting: Setting,
    how: How,
    corpus: Moments | None = None,
) -> Whitener:
    """The map of a setting, from the texts of `rows` (`fit` train), of all rows, or from the `corpus`."""
    if corpus is not None:
        return whitening.fit(setting.whitening, corpus, setting.k)
    seen = occurrences(data, np.arange(data.n_rows) if how.fit == "all" else rows)
    if setting.whitening == "none":  # reads no more of its moments than how many there are of which size
        zero = torch.zeros(x.shape[1], dtype=torch.float64, device=x.device)
        return whitening.fit("none", Moments(float(len(seen)), zero, torch.diag(zero)), setting.k)
    return whitening.fit(setting.whitening, Moments.of(x[seen]), setting.k)


def features(z: Float[Tensor, "s d"], data: LabelledTexts) -> Float[np.ndarray, "n f"]:
    """What a classifier sees of each row: the vector, or |u - v| and u v of a pair (SentEval)."""
    z = z.cpu().numpy()
    u = z[data.first_index]
    if not data.pairs:
        return u
    v = z[data.second_index]
    return np.concatenate([np.abs(u - v), u * v], axis=1)


# ------------------------------------------------------------------------------------------------ scores


def probe(
    space: LayerRows,
    data: LabelledTexts,
    setting: Setting,
    how: How | None = None,
    *,
    model: str = "",
    corpus: LayerRows | None = None,
    progress: Progress | None = None,
) -> ProbeScore:
    """One setting on one task; `space` holds `data.sentences` in every layer, `corpus` other text to fit on.

    `senteval` differs from the published numbers in one thing: those come from SentEval's PyTorch classifier
    (Adam, weight decay 1e-5 to 1e-2, early stopping on dev rows), here scikit-learn's logistic regression is
    solved to the end, SentEval's own alternative, with lbfgs in place of liblinear. Expect some tenths of a point.
    Raises ValueError for layers the model does not have, a `k` out of range, and data that cannot be learnt from.
    """
    how = how or How(usual(data))
    layers = check_layers(setting.numbers(space.n_layers), space.n_layers)
    whitening.check_k(setting.k, setting.whitening, space.dim)
    if how.fit not in FITS and corpus is None and setting.whitening != "none":
        raise ValueError(f"fit={how.fit!r} needs the embedded sentences of that text, got corpus=None")
    if space.n_sentences != len(data.sentences):
        raise ValueError(f"space must hold the {len(data.sentences)} texts of {data.task}, got {space.n_sentences}")
    x = space.combine(layers)
    needed = corpus is not None and how.fit not in FITS and setting.whitening != "none"
    known = corpus.moments(layers) if needed else None
    work = _by_threshold if how.classifier == "threshold" else _by_classifier
    return work(x, data, setting, how, model, known, progress)


def _by_classifier(x, data, setting, how: How, model: str, corpus, progress) -> ProbeScore:
    found = turns(data, how.folds, how.seed)
    tick = _counter(progress, found, data, how)
    predicted, fold, ranks, fitted = np.full(data.n_rows, -1), [], [], []
    own = how.fit == "train" and setting.whitening != "none"  # a map for each fold
    for turn in found:
        if own or not ranks:
            whitener = fit_map(x, data, turn.train, setting, how, corpus)
            seen = features(whitener(x), data)
        predicted[turn.test] = _predict(seen, data, turn, how, tick)
        fold.append(np.mean(predicted[turn.test] == data.y[turn.test]))
        ranks.append(whitener.rank)
        fitted.append(round(whitener.count))
    rows = np.sort(np.concatenate([turn.test for turn in found]))
    return _score(
        data,
        setting,
        how,
        model,
        rows,
        predicted[rows],
        found,
        accuracy=100 * float(np.mean(fold)),
        fitted=0 if setting.whitening == "none" else min(fitted),
        rank=min(ranks),
        dim=x.shape[1],
        protocol=line(data, setting, how, found),
    )


def _predict(seen: np.ndarray, data: LabelledTexts, turn: Turn, how: How, tick) -> np.ndarray:
    y = data.y
    if how.standardize:
        seen = StandardScaler().fit(seen[turn.train]).transform(seen)
    x, test = seen[turn.train], seen[turn.test]
    if how.classifier == "knn":
        tick()
        return knn(x, y[turn.train], test, how.neighbours, how.metric)
    if how.on(data) == "linear":
        tick()
        return linear(x, y[turn.train], test)
    if len(turn.dev):
        both = np.concatenate([turn.train, turn.dev])
        splits = [(np.arange(len(turn.train)), np.arange(len(turn.train), len(both)))]
        c = best_c(seen[both], y[both], splits, GRID, tick)
    else:
        inner = stratified(y[turn.train], how.folds, how.seed)
        c = best_c(x, y[turn.train], inner, TEST_GRID if scored_split(data) else GRID, tick)
    return linear(x, y[turn.train], test, c)


def _counter(progress: Progress | None, found: Sequence[Turn], data: LabelledTexts, how: How) -> Callable[[], None]:
    """What counts the parts of the work, a fold of a fold each."""
    inner = how.folds if how.on(data) == "senteval" and not len(found[0].dev) else 1
    done = 0

    def tick() -> None:
        nonlocal done
        done += 1
        if progress:
            progress(min(done, len(found) * inner), len(found) * inner)

    return tick


def _by_threshold(x, data, setting, how: How, model: str, corpus, progress) -> ProbeScore:
    """WhiteningBERT, appendix A.2: a pair matches where its cosine reaches a fixed threshold."""
    if not data.pairs:
        raise ValueError(f"classifier='threshold' needs pairs of texts, and {data.task} has single texts")
    scored = scored_split(data)
    rows = data.rows(scored) if scored else np.arange(data.n_rows)
    train = data.rows("train") if scored else rows[:0]
    learnt = len(train) > 0
    whitener = fit_map(x, data, train if learnt else rows, setting, how, corpus)
    z = whitener(x)
    first, second = torch.tensor(data.first_index), torch.tensor(data.second_index)
    cosines = geometry.pair_cosines(z[first], z[second]).cpu().numpy()
    matches = data.y == data.positive
    if matches[rows].all() or not matches[rows].any():
        raise ValueError(f"{data.task}: the scored pairs must hold both classes, got one")
    if progress:
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
        best_low=low,
        best_high=high,
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
        accuracy=100 * float(np.mean(predicted == data.y[rows])),
        fitted=0 if setting.whitening == "none" else round(whitener.count),
        rank=whitener.rank,
        dim=x.shape[1],
        protocol=_threshold_line(setting, how, scored, learnt),
        train=len(train),
        pairs=pairs,
        cosines=cosines[rows],
        matches=matches[rows],
    )


def _score(data, setting, how, model, rows, predicted, found: Sequence[Turn], **more) -> ProbeScore:
    y, classes = data.y[rows], len(data.classes)
    hits = predicted == y
    low, high = wilson(int(hits.sum()), len(rows))
    table = np.zeros((classes, classes), dtype=int)
    np.add.at(table, (y, predicted), 1)
    usual = [np.bincount(data.y[turn.train], minlength=classes).argmax() for turn in found]
    baseline = np.mean([np.mean(data.y[turn.test] == one) for turn, one in zip(found, usual, strict=True)])
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
        baseline=100 * float(baseline),
        rows=len(rows),
        f1=f1,
        classes=data.classes,
        confusion=tuple(tuple(row) for row in table.tolist()),
        hits=hits,
        **{"train": min(len(turn.train) for turn in found)} | more,
    )


# ------------------------------------------------------------------------------------------------ protocols


def line(data: LabelledTexts, setting: Setting, how: How, found: Sequence[Turn]) -> str:
    """How a classifier's score was made, in one line."""
    folds = len(found) > 1
    if how.classifier == "knn":
        what = f"{how.neighbours} nearest neighbours, {how.metric}, majority, ties to the smallest label"
    elif how.on(data) == "linear":
        what = f"logistic regression (lbfgs, C = 1, at most {ITERATIONS} iterations)"
    elif len(found[0].dev):
        what = f"SentEval: logistic regression, C of {powers(GRID)} best on the dev split"
    elif folds:
        inner = f"{how.folds} inner folds of each training part"
        what = f"SentEval: logistic regression, C of {powers(GRID)} best in {inner}"
    else:
        inner = f"{how.folds} folds of the training split"
        what = f"SentEval: logistic regression, C of {powers(TEST_GRID)} best in {inner}"
    pairs = ", on |u - v| and u v" if data.pairs else ""
    scaled = "features standardised" if how.standardize else "features as they come"
    if folds:
        where = f"mean of {len(found)} stratified folds, seed {how.seed}"
    else:
        where = "test split" if scored_split(data) == "test" else "dev split, for want of a test split"
    return f"{what}{pairs} · {where} · {scaled}{_fit_words(setting, how, folds)}"


def _fit_words(setting: Setting, how: How, folds: bool) -> str:
    if setting.whitening == "none":
        return ""
    own = "each fold's training texts" if folds else "the training texts"
    return " · whitening fitted on " + {"train": own, "all": "all texts"}.get(how.fit, how.fit)


def _threshold_line(setting: Setting, how: How, scored: str | None, learnt: bool) -> str:
    where = f"{scored} split" if scored else "all pairs"
    if setting.whitening == "none":
        fitted = ""
    elif how.fit == "train" and not learnt:
        fitted = " · whitening fitted on the scored pairs' texts (there is no training split)"
    else:
        fitted = _fit_words(setting, how, False)
    chosen = "the training pairs" if learnt else "the scored pairs, an upper bound"
    return f"match where cosine >= {how.threshold:g} · {where} · best threshold chosen on {chosen}{fitted}"


# ------------------------------------------------------------------------------------------------ many of them


def embed_texts(
    encoder: Encoder,
    data: LabelledTexts,
    pooling: str = "mean",
    *,
    store: Store | None = None,
    progress: Progress | None = None,
) -> LayerRows:
    """Every unique text of `data` in all layers, counted as often as it occurs."""
    values, _ = embed(encoder, data.sentences, pooling, store=store, progress=progress)
    counts = torch.bincount(occurrences(data, np.arange(data.n_rows)), minlength=len(data.sentences))
    return LayerRows(values, counts.to(torch.float64))


def probes(
    models: Sequence[str],
    tasks: Sequence[LabelledTexts],
    settings: str = DEFAULT,
    how: How | Sequence[How] | None = None,
    *,
    store: Store | None = None,
    dtype: str = "float32",
    max_length: int | None = None,
    num_layers: int | None = None,
    allow_bin: bool = False,
    progress: Progress | None = None,
) -> Iterator[ProbeScore]:
    """Every score as it is made: by model, then task, then setting; after SentEval's tasks their average.

    `how` is one for all tasks or one for each; None is each task's usual classifier. What goes wrong with a
    model, a task or a setting is said in its scores, and the others go on. `progress(done, total)` counts models x
    tasks.
    """
    parse_settings(settings, 1)
    hows = [How(usual(data)) for data in tasks] if how is None else how
    hows = [hows] * len(tasks) if isinstance(hows, How) else hows
    options = {"dtype": dtype, "max_length": max_length, "num_layers": num_layers, "allow_bin": allow_bin}
    for number, name in enumerate(models):
        encoder = tried(lambda name=name: load_encoder(name, **options))
        scores: list[ProbeScore] = []
        for turn, (data, own) in enumerate(zip(tasks, hows, strict=True)):
            if isinstance(encoder, str):
                found = [
                    ProbeScore(name, one, data.task, own.classifier, None, reason=encoder)
                    for one in parse_settings(settings, 1)
                ]
                scores += found
                yield from found
            else:
                for score in _task(encoder, data, parse_settings(settings, encoder.n_layers), own, store):
                    scores.append(score)
                    yield score
            if progress:
                progress(number * len(tasks) + turn + 1, len(models) * len(tasks))
        if len(tasks) > 1 and all(data.layout == "senteval" for data in tasks):
            yield from averages(scores)


def _task(encoder: Encoder, data: LabelledTexts, settings, how: How, store: Store | None) -> Iterator[ProbeScore]:
    spaces: dict[str, LayerRows | str] = {}
    corpora: dict[str, LayerRows | str | None] = {}
    for setting in settings:
        pooling = setting.pooling
        if pooling not in spaces:
            spaces[pooling] = tried(lambda p=pooling: embed_texts(encoder, data, p, store=store))
        needs = how.fit not in FITS and setting.whitening != "none"
        if needs and pooling not in corpora:
            text = lambda p=pooling: embed_scope(encoder, scope_text(how.fit, "", None), p, store=store)  # noqa: E731
            corpora[pooling] = tried(text)
        space, corpus = spaces[pooling], corpora.get(pooling) if needs else None
        missing = next((one for one in (space, corpus) if isinstance(one, str)), None)
        if missing:
            yield ProbeScore(encoder.name, setting, data.task, how.classifier, None, reason=missing)
        else:
            found = tried_probe(space, data, setting, how, encoder.name, corpus)
            yield with_published(found, encoder.n_layers, data, how)


def tried_probe(
    space: LayerRows,
    data: LabelledTexts,
    setting: Setting,
    how: How,
    model: str,
    corpus: LayerRows | None = None,
    progress: Progress | None = None,
) -> ProbeScore:
    """`probe`, or a score that is None with the reason."""
    found = tried(lambda: probe(space, data, setting, how, model=model, corpus=corpus, progress=progress))
    return (
        ProbeScore(model, setting, data.task, how.classifier, None, reason=found) if isinstance(found, str) else found
    )


def with_published(score: ProbeScore, n_layers: int, data: LabelledTexts, how: How) -> ProbeScore:
    """The score with what a paper prints for the same model (of `n_layers`), setting and task; raw only."""
    if data.layout != "senteval" or how.on(data) != "senteval" or score.setting.whitening != "none":
        return score
    wanted = PublishedSetting.of(score.setting.pooling, score.setting.numbers(n_layers), "none")
    found = lookup(score.model, wanted, data.task.lower(), n_layers - 1, unit=ACCURACY)
    return replace(score, published=found[0]) if found else score


def averages(scores: Sequence[ProbeScore]) -> Iterator[ProbeScore]:
    """Of each setting of one model the plain mean over its tasks, as WhitenedCSE's Table 2 prints it."""
    for setting in dict.fromkeys(one.setting for one in scores):
        own = [one for one in scores if one.setting == setting]
        missing = [one.task for one in own if one.accuracy is None]
        mean = None if missing else math.fsum(one.accuracy for one in own) / len(own)
        yield ProbeScore(
            own[0].model,
            setting,
            AVERAGE,
            own[0].classifier,
            mean,
            protocol=f"mean over {', '.join(one.task for one in own)}",
            reason=f"no score for {', '.join(missing)}" if missing else "",
        )
