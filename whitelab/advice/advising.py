"""A purpose and the user's own data -> advice, each kind of data measured as it is used."""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import chain
from threading import Lock

import numpy as np
import torch
from jaxtyping import Bool, Float, Int
from sklearn.cluster import KMeans
from threadpoolctl import ThreadpoolController
from torch import Tensor

from whitelab.advice.answer import Advice, answer, named
from whitelab.advice.candidates import candidates, to_store
from whitelab.advice.evidence import Evidence, NoInterval, Tried, enough, random_halves, weigh
from whitelab.base import threads
from whitelab.base.checks import check_choice
from whitelab.base.installation import MissingLibraryError, need
from whitelab.base.progress import Progress, part_of, silent
from whitelab.base.threads import one_blas_thread, side_by_side
from whitelab.base.wording import capitalised, layers_in_words, ratio, spaced
from whitelab.datasets import LabelledTexts
from whitelab.encoding.embeddings import LayerEmbeddings, LayerRows, MeasuredRows
from whitelab.probe import How, probe
from whitelab.probe.rows import occurrences, same_texts
from whitelab.retrieval.compression import Code
from whitelab.retrieval.embedded import RetrievalSpace
from whitelab.retrieval.frontier import CodedScore, Space, frontier
from whitelab.retrieval.relevance import retrieve
from whitelab.scoring.calibration import gold_middle, threshold
from whitelab.scoring.fit_scopes import folds, gives
from whitelab.scoring.held_out import isotropy_between
from whitelab.scoring.paired import paired
from whitelab.scoring.score import Score, reversal, score
from whitelab.scoring.setting import OWN_SENTENCES, Setting, check_is_setting
from whitelab.statistics import correlation, geometry
from whitelab.statistics.significance import bootstrap, bootstrap_counts, halved
from whitelab.statistics.with_labels import average_precision, v_measure
from whitelab.whitening import fit, variant

PURPOSES = {
    "rank": "Order texts by how similar they are",
    "threshold": "Call two texts the same from a cosine on",
    "store": "Keep as few bytes as will do",
    "classify": "Train a classifier on them",
    "cluster": "Group texts",
}
ON_PAIRS, ON_SEARCH, ON_TEXTS = ("rank", "threshold", "store"), ("rank", "store"), ("classify", "cluster")
SERVED = {"pairs": ON_PAIRS, "search": ON_SEARCH, "texts": ON_TEXTS, "sentences": tuple(PURPOSES)}
CLUSTERINGS, CLUSTER_STARTS = 10, 5  # runs of k-means of each option, and the starts of which a run is the best
# Of the texts into halves that are grouped anew, and the runs of each: by one run the interval was half as wide again
# as scores of other texts lie apart, by three a tenth wider (TREC's questions, 13 times 100 and 13 times 400 of them).
CLUSTER_SPLITS, RUNS_OF_HALF = 12, 3
# Of the whole time, in percent, that measuring the options takes, the rest being resamples: on the demonstration set.
_MEASURING = {"rank": 60, "threshold": 40, "store": 98, "classify": 98, "cluster": 100}
# Of the numbers of a vector, the power with which an option's time grows: 384, 192, 96 and 48 numbers of TREC's
# questions took 11 (whitened 20), 3.5, 2 and 1 s to classify, and 46, 20, 12 and 5 s to group.
_POWER = {"classify": 1.5, "cluster": 1.0}
# Of a table: below the first its groups are found too soon for runs side by side to gain anything; of the second so
# many at once are grouped, each of which k-means holds twice.
_FEW_NUMBERS, _MANY_NUMBERS = 2**18, 2**27
STORED = ("float32", "int8", "binary+itq")  # with faiss; without it float32 alone


def advise_pairs(
    space: LayerEmbeddings,
    chosen: Setting,
    purpose: str = "rank",
    gold_from: float | None = None,
    progress: Progress = silent,
) -> Advice:
    """Advice from pairs with gold scores: Spearman, or for `threshold` the average precision of gold >= `gold_from`,
    with the cosine that `calibrate` gives for the usual rate of false positives.

    Maps are cross-fitted, so that no pair is scored by a map its sentences were fitted to, unless `chosen` is fitted on
    other text, which the space then carries. `gold_from` None is the middle of the gold scores' range. Where the last
    layer's raw vectors rank the pairs the other way round beyond doubt, that is all that is said, and where nothing can
    be measured on them, why.
    Raises ValueError for a purpose pairs do not serve, for a cut with no pair on one side, and as `fit_scope`.
    """
    check_choice(purpose, "purpose", ON_PAIRS)
    check_is_setting(chosen, "chosen")
    raw = Setting((space.n_layers - 1,), pooling=chosen.pooling, aggregate=chosen.aggregate)
    if said := reversal(space, raw):
        blurs = "On scores that run the other way, whatever loses meaning seems to gain."
        return Advice(purpose, None, ("No advice from these pairs yet.", f"{capitalised(said)}.", blurs), None, None)
    measuring, weighing = _parts(progress, purpose)
    other_text = chosen.fit not in OWN_SENTENCES and chosen.fits
    fit = chosen.fit if other_text else "cross"
    if why := _undecidable(space, raw.with_(aggregate="all") if purpose == "threshold" else raw, fit):
        return _undecided(purpose, why)
    how, rank, against = chosen.aggregate, min(fold.rows.span for fold in folds(space, fit)), space.judged.cpu()
    if purpose == "store":
        coded = _coded(space, _fittable(space, to_store(chosen, space.n_layers, space.dim, fit, rank)), measuring)
        cosines, tried, found = torch.stack([one.values for one in coded]), _as_stored(coded), coded
        judged = against.gold, against.subset, against.n_subsets, how
        drawn = bootstrap(cosines, *judged, enough(len(tried)), progress=weighing)
    else:
        settings = _fittable(space, candidates(chosen, space.n_layers, space.dim, fit, rank))
        found = _each(settings, lambda setting: score(space, setting, isotropy=False), measuring)
        tried = [Tried.whole(one, _kept(each.setting, each.rank, space.dim)) for one, each in _both(settings, found)]
        if purpose == "threshold":
            return _matching(space, tried, found, gold_from, weighing)
        cosines = torch.stack([one.cosines for one in found])
        resampled = paired(space, found, enough(len(tried)), weighing)
        drawn = resampled.drawn.take(resampled.rows)

    def spearman(halves: Float[Tensor, "p h"]) -> Float[Tensor, "v h"]:
        parts = [(cosines[:, rows], against.gold[rows], against.subset[rows]) for rows in halves.T.bool()]
        return 100 * torch.stack([correlation.aggregate(*part, space.n_subsets, how) for part in parts], dim=1)

    measured = "Spearman x 100", "pairs", space.n_pairs
    return _answer(purpose, tried, drawn, spearman(random_halves(space.n_pairs)), measured, _protocol(found))


def _answer(purpose: str, *weighed) -> Advice:
    """What the evidence says, which `weigh` makes."""
    try:
        return answer(weigh(*weighed), purpose)
    except NoInterval as error:
        return _undecided(purpose, capitalised(str(error)))


def _undecided(purpose: str, why: str) -> Advice:
    return Advice(purpose, None, ("These pairs cannot decide.", f"{why}.", "Bring more pairs, or others."), None, None)


def _undecidable(space: LayerEmbeddings, raw: Setting, fit: str) -> str:
    """Why nothing can be measured on these pairs; empty where something can."""
    if fit == "cross":
        try:
            folds(space, fit)
        except ValueError:
            return (
                "Maps are fitted on one half of the pairs and scored on the other, and these do not fall into two "
                "halves without a common sentence; a map fitted on other text needs none"
            )
    return score(space, raw, isotropy=False).reason


def _fittable(space: LayerEmbeddings, settings: tuple[Setting, ...]) -> tuple[Setting, ...]:
    """Those whose map can be fitted: a corpus may hold some layers only, and kept apart not all that a map needs."""

    def can(setting: Setting) -> bool:
        text = space.texts.get(setting.fit)
        if setting.whitening == "none" or not isinstance(text, MeasuredRows):
            return True
        return text.holds(setting.layers) and gives(text, setting.whitening)

    return tuple(setting for setting in settings if can(setting))


def _coded(space: Space, settings: tuple[Setting, ...], progress: Progress) -> list[CodedScore]:
    """Every setting under every code that there is, layers side by side; the last layer raw in float32 is the first."""
    try:
        need("faiss")
        codes = tuple(map(Code.parse, STORED))
    except MissingLibraryError:
        codes = (Code(),)
    percent, one_at_a_time = {one.layers: 0 for one in settings}, Lock()

    def points(layers: tuple[int, ...]) -> tuple[CodedScore, ...]:
        def step(done: int, total: int) -> None:
            with one_at_a_time:
                percent[layers] = 100 * done // total
                progress(sum(percent.values()), 100 * len(percent))

        *_, last = frontier(space, [one for one in settings if one.layers == layers], codes, progress=step)
        return last.points

    return [*chain.from_iterable(side_by_side(points, list(percent)))]


def _as_stored(points: list[CodedScore]) -> list[Tried]:
    named = [one.setting.raw if one.setting.whitening == "none" else one.setting for one in points]
    return [Tried(setting, one.dim, one.bytes, one.code) for setting, one in _both(named, points)]


def _both(settings: Sequence[Setting], found: list) -> Iterator[tuple]:
    return zip(settings, found, strict=True)


def _matching(
    space: LayerEmbeddings, tried: list[Tried], scores: list[Score], gold_from: float | None, progress: Progress
) -> Advice:
    gold = space.gold.cpu()
    cut = gold_middle(gold) if gold_from is None else gold_from
    positive = gold >= cut
    if positive.all() or not positive.any():
        low, high = float(gold.min()), float(gold.max())
        raise ValueError(f"gold_from={cut:g} must divide the gold scores, which run from {low:g} to {high:g}")

    def precision(counts: Float[Tensor, "p b"]) -> Float[Tensor, "v b"]:
        return 100 * torch.stack([average_precision(one.cosines, positive, counts) for one in scores])

    record, line = _protocol(scores)
    measured = "Average precision x 100", "pairs", space.n_pairs
    drawn = bootstrap_counts(space.n_pairs, precision, enough(len(tried)), progress=progress)
    named = record | {"gold_from": cut}, f"{line} · the same from a gold score of {cut:g} on"
    advice = _answer("threshold", tried, drawn, precision(random_halves(space.n_pairs)), measured, named)
    if advice.evidence is None:
        return advice
    advised = advice.setting or advice.evidence.baseline.setting
    cosines = next(one.cosines for each, one in _both([one.setting for one in tried], scores) if each == advised)
    return replace(advice, threshold=threshold(cosines, gold, cut))


def advise_search(space: RetrievalSpace, chosen: Setting, purpose: str = "rank", progress: Progress = silent) -> Advice:
    """Advice from judged searches: nDCG@10 x 100, maps fitted on the documents. Raises ValueError as `retrieve`."""
    check_choice(purpose, "purpose", ON_SEARCH)
    check_is_setting(chosen, "chosen")
    raw = chosen.raw.with_(aggregate="all")
    space_of, measured = space.space, ("nDCG@10 x 100", "queries")
    offered = raw, space_of.n_layers, space_of.dim, "corpus", space_of.texts["corpus"].span
    measuring, weighing = _parts(progress, purpose)
    if purpose == "store":
        coded = _coded(space, to_store(*offered), measuring)
        values, tried, protocol = torch.stack([one.values for one in coded]), _as_stored(coded), coded[0].protocol
    else:
        settings = candidates(*offered)
        found = _each(settings, lambda setting: retrieve(space, setting), measuring)
        values, protocol = torch.stack([one.of("ndcg@10") for one in found]), found[0].protocol
        sizes = (_kept(one.setting, one.protocol.rank, space_of.dim) for one in found)
        tried = [Tried.whole(*each) for each in zip(settings, sizes, strict=True)]
    named = protocol.as_dict() | _VARIED, _AS_IT_COMES + protocol.line()
    return answer(_means(100 * values, torch.ones(values.shape[1]).double(), tried, measured, named, weighing), purpose)


def advise_texts(
    space: LayerRows,
    data: LabelledTexts,
    chosen: Setting,
    purpose: str = "classify",
    model: str = "",
    progress: Progress = silent,
) -> Advice:
    """Advice from labelled texts: the accuracy of a linear probe, or the V-measure of as many clusters as classes.

    For `classify` maps are fitted on the training texts of each fold, for `cluster` on all texts, which nobody has
    labelled when they are grouped. Its V-measure is the mean of `CLUSTERINGS` runs of k-means, each the best of several
    starts; the interval is of other texts, grouped anew (`significance.halved`). Raises ValueError as `probe`, and to
    `cluster` pairs of texts.
    """
    check_choice(purpose, "purpose", ON_TEXTS)
    check_is_setting(chosen, "chosen")
    raw = chosen.raw.with_(aggregate="all")
    settings = candidates(raw, space.n_layers, space.dim, "task", space.span)
    if purpose == "cluster":
        return answer(_grouped(space, data, settings, model, progress), purpose)
    how, (measuring, weighing) = How("linear"), _parts(progress, purpose)
    costs = _costs(settings, space.dim, purpose)
    found = _each(settings, lambda setting: probe(space, data, setting, how, model=model), measuring, costs)
    hits = 100 * torch.from_numpy(np.stack([one.hits for one in found])).double()
    texts = same_texts(data)[np.array(data.split) == data.scored_split] if data.scored_split else same_texts(data)
    _, place, rows = np.unique(texts, return_inverse=True, return_counts=True)  # which stay together when drawn anew
    values = torch.zeros(len(found), len(rows)).double().index_add(1, torch.from_numpy(place), hits)
    tried = [Tried.whole(setting, _kept(setting, one.rank, space.dim)) for setting, one in _both(settings, found)]
    protocol = {"task": data.task, "model": model, "classifier": how.on(data), "fit": how.fit} | _VARIED
    pooled = " · here of all rows together, not fold by fold" * (found[0].folds > 1)
    line = f"{_AS_IT_COMES}{found[0].protocol}{pooled} · {data.source}"
    measured, sizes = ("Accuracy x 100", "texts"), torch.from_numpy(rows).double()
    return answer(_means(values, sizes, tried, measured, (protocol, line), weighing), purpose)


def _grouped(
    space: LayerRows, data: LabelledTexts, settings: tuple[Setting, ...], model: str, progress: Progress
) -> Evidence:
    if data.pairs:
        raise ValueError("purpose='cluster' must have single texts with labels, got pairs of texts")
    rows = occurrences(data, np.arange(data.n_rows))
    labels = torch.tensor(data.y)
    halves = random_halves(space.n_sentences, CLUSTER_SPLITS).bool()  # a text that occurs twice is in one of them
    measuring, _ = _parts(progress, "cluster")
    costs = _costs(settings, space.dim, "cluster")
    found = _each(settings, lambda setting: _agreements(space, setting, rows, labels, halves), measuring, costs)
    of_all, parts, dims = zip(*found, strict=True)
    scores, of_halves = torch.tensor(of_all, dtype=torch.float64), torch.tensor(parts, dtype=torch.float64)
    drawn = halved(scores, of_halves, enough(len(settings)))
    protocol = {"task": data.task, "model": model, "clusters": len(labels.unique()), "fit": "all texts"} | _VARIED
    protocol |= {"runs": CLUSTERINGS, "starts": CLUSTER_STARTS}
    line = (
        f"{model} · {data.source} · k-means with as many clusters as classes, rows of unit length, mean of "
        f"{CLUSTERINGS} runs, each the best of {CLUSTER_STARTS} starts"
    )
    measured = "V-measure x 100", "texts", len(rows.unique())
    tried = list(map(Tried.whole, settings, dims))
    return weigh(tried, drawn, of_halves, measured, (protocol, line), CLUSTERINGS)


def _agreements(
    space: LayerRows, setting: Setting, rows: Int[Tensor, "n"], labels: Int[Tensor, "n"], halves: Bool[Tensor, "u h"]
) -> tuple[float, list[float], int]:
    """V-measure x 100 of all texts, a mean over runs, and of each half, grouped by itself; the numbers a vector has."""
    layers, classes = setting.numbers(space.n_layers), len(labels.unique())
    whitener = fit(setting.whitening, space.moments(layers), setting.k)
    x, pools = geometry.normalize(whitener(space.combine(layers))), ThreadpoolController()

    def agreement(run: tuple[Bool[Tensor, "u"], int]) -> Float[Tensor, "1"]:
        part, seed = run
        clusters, there = torch.zeros(len(x), dtype=torch.int64), part[rows]
        means = KMeans(min(classes, int(part.sum())), n_init=CLUSTER_STARTS, random_state=seed)
        with pools.limit(limits=1, user_api="openmp"):  # threads that share so small a fit wait most of the time
            fitted = means.fit(x[part].numpy(), sample_weight=space.counts[part].numpy())
        clusters[part] = torch.from_numpy(fitted.labels_).long()
        return v_measure(labels[there], clusters[rows][there], torch.ones(int(there.sum()), 1))

    of_whole = [(torch.ones(len(x), dtype=torch.bool), seed) for seed in range(CLUSTERINGS)]
    of_halves = [(half, RUNS_OF_HALF * i + run) for i, half in enumerate(halves.T) for run in range(RUNS_OF_HALF)]
    room = max(1, _MANY_NUMBERS // x.numel())
    at_once = 1 if x.numel() < _FEW_NUMBERS else None if room >= threads.whole() else room
    with one_blas_thread():
        found = 100 * torch.cat([*side_by_side(agreement, of_whole + of_halves, at_once)])
    parts = found[CLUSTERINGS:].reshape(-1, RUNS_OF_HALF).mean(1)
    return float(found[:CLUSTERINGS].mean()), parts.tolist(), _kept(setting, whitener.rank, space.dim)


def advise_sentences(space: LayerRows, purpose: str = "rank") -> Advice:
    """What sentences alone can say: nothing of which setting is best, but whether a map fitted on them carries over.

    `space` holds the unique sentences, of which the last layer is taken. Raises ValueError for fewer than four.
    """
    check_choice(purpose, "purpose", PURPOSES)
    if space.n_sentences < 4:
        raise ValueError(f"sentences must be four that differ, or more, got {space.n_sentences}")
    last = Setting((space.n_layers - 1,))
    seen, unseen = space.parted
    full = isotropy_between(seen, unseen, last.with_(whitening="pca"))
    per_dimension = space.n_sentences / space.dim
    sentences = (
        f"Sentences alone do not say what serves to {purpose}: keep the {named(last)} until some are judged.",
        f"A full whitening of {layers_in_words(last.layers)}, fitted on half of these {spaced(space.n_sentences)} "
        f"sentences, leaves the others with an isotropy of {full:.2f}; 1 would be round.",
        f"There are {ratio(per_dimension)} sentences a dimension; "
        + (
            "below about ten a full whitening fits noise, and a shrunk or shorter one is safer."
            if per_dimension < 10
            else "that is enough for a map to carry over, and says nothing of whether it helps."
        ),
    )
    return Advice(purpose, None, sentences, None, None)


_AS_IT_COMES = "The model as it comes: "  # before the line of the baseline's own protocol
_VARIED = {"layers": "each option's", "whitening": "each option's", "k": "each option's", "rank": "each option's"}


def _protocol(scores: list[Score] | list[CodedScore]) -> tuple[dict, str]:
    return scores[0].protocol.as_dict() | _VARIED | {"fit": scores[-1].setting.fit}, _AS_IT_COMES + scores[0].line()


def _means(
    sums: Float[Tensor, "v q"],
    sizes: Float[Tensor, "q"],
    tried: list[Tried],
    measured: tuple[str, str],
    protocol: tuple[dict, str],
    progress: Progress,
) -> Evidence:
    def means(counts: Float[Tensor, "q b"]) -> Float[Tensor, "v b"]:
        return sums @ counts / (sizes @ counts)

    drawn = bootstrap_counts(len(sizes), means, enough(len(tried)), progress=progress)
    return weigh(tried, drawn, means(random_halves(len(sizes))), (*measured, len(sizes)), protocol)


def _kept(setting: Setting, rank: int, dim: int) -> int:
    """Numbers a vector has under a setting's map of this rank."""
    return variant(setting.whitening).columns(rank, dim)


def _parts(progress: Progress, purpose: str) -> tuple[Progress, Progress]:
    """How far the options are measured, and then resampled, as parts of the whole time in percent."""
    share = _MEASURING[purpose]
    return part_of(progress, 0, share, 100), part_of(progress, share, 100 - share, 100)


def _each(settings: tuple[Setting, ...], measure, progress: Progress, costs: Sequence[float] | None = None) -> list:
    """What is measured of each setting; `progress` counts them by what they cost, where that differs much."""
    found, cost, done = [], costs or [1.0] * len(settings), 0.0
    for setting, own in zip(settings, cost, strict=True):
        found.append(measure(setting))
        done += own
        progress(round(1000 * done / sum(cost)), 1000)
    return found


def _costs(settings: tuple[Setting, ...], dim: int, purpose: str) -> list[float]:
    return [((setting.k or dim) / dim) ** _POWER[purpose] for setting in settings]
