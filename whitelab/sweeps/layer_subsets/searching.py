"""Going through a plan, scoring and ranking, and showing what is there so far."""

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from time import perf_counter

import torch

from whitelab.base.checks import check_int, check_matrix
from whitelab.base.progress import Progress, silent
from whitelab.encoding.embeddings import LayerEmbeddings
from whitelab.scoring.setting import Setting, check_is_setting
from whitelab.sweeps.layer_subsets.plan import Plan, as_masks, check_sizes, limits
from whitelab.sweeps.layer_subsets.ranking import Findings
from whitelab.sweeps.layer_subsets.results import SubsetSearch
from whitelab.sweeps.layer_subsets.scorers import FittedScorer, LinearScorer, Placed, check_device, cost_of


def search_subsets(
    spaces: LayerEmbeddings | Mapping[str, LayerEmbeddings] | Sequence[LayerEmbeddings],
    setting: Setting,
    size: str | int | Sequence[int] = "all",
    **options,
) -> SubsetSearch:
    """Score the subsets of `size` layers (a number, a range, or `all`) under a setting, whose own do not count.

    Each score equals `score.score` of that subset; of several tasks it is the plain average. Takes the
    options of `stream`, which says what is guaranteed and when.
    """
    for result in stream(spaces, setting, size, **(options | {"every": math.inf})):  # noqa: B007
        pass
    return result


def stream(
    spaces: LayerEmbeddings | Mapping[str, LayerEmbeddings] | Sequence[LayerEmbeddings],
    setting: Setting,
    size: str | int | Sequence[int] = "all",
    *,
    top: int = 100,
    progress: Progress = silent,
    device: str | None = None,
    max_exact: int | None = None,
    beam: int | None = None,
    every: float = 0.25,
) -> Iterator[SubsetSearch]:
    """What `search_subsets` has found so far, its first hundred about every `every` seconds, and at last all of it.

    Exact when at most `max_exact` subsets have the sizes asked for. Otherwise sizes are complete from 1 up
    while they fit, and larger ones try each of the best `beam` subsets of the size below with each layer
    added. Defaults: 2^20 subsets and a beam of 1024 for `none` and `center` without k; 2^13, which are 13 layers, and
    a beam of 8 for a whitening of every direction; else 2^10, at least singles, pairs and triples, and 8.

    Memory beside the embeddings (n sentences, p pairs, l layers, d dimensions): 12 l (l + 1) p bytes for each
    task and a chunk of `CHUNK_BYTES`; with a fit 4 l (l + 1) d^2 (and 8 l n d while they are summed), a chunk of
    `MATRICES_BYTES` and 16 n d a thread. `progress(scored, total)` may raise to stop the work.
    Raises ValueError for settings that do not exist and for tasks with different layers.
    """
    started = perf_counter()
    check_is_setting(setting)
    tasks = _named(spaces)
    n_layers = next(iter(tasks.values())).n_layers
    settings = [setting.with_(layers=(0,)).on(space) for space in tasks.values()]
    check_int(top, "top", 1)
    for space in tasks.values():
        for layer in space.values:
            check_matrix(layer, "space.values")
    cost = cost_of(settings[0], next(iter(tasks.values())).dim)
    plan = Plan.of(n_layers, check_sizes(size, n_layers), *limits(n_layers, cost, max_exact, beam))
    device, kind = check_device(device), LinearScorer if cost == "sums" else FittedScorer

    def scorer(space: LayerEmbeddings) -> Placed:
        return Placed.of(lambda one: kind.of(one, settings[0]), space, device)

    findings = Findings(plan, tuple(tasks), top, settings[0], started)
    return _run(findings, scorer, tasks.values(), progress, every)


def _run(findings: Findings, scorer, spaces, progress: Progress, every: float) -> Iterator[SubsetSearch]:
    plan, due, scorers = findings.plan, findings.started + every, []
    for space in spaces:
        scorers.append(scorer(space))
        progress(0, findings.total)
    rows = min(one.rows for one in scorers)
    for size in plan.walk:
        subsets = findings.candidates(size)
        for i in range(0, len(subsets), rows):
            masks = as_masks(subsets[i : i + rows], plan.n_layers)
            findings.add(size, masks, torch.stack([one(masks) for one in scorers], dim=-1))
            progress(findings.scored, findings.total)
            asked = perf_counter()
            if asked >= due:
                snapshot = replace(findings.snapshot(finished=False), notes=_notes(scorers))
                spent = perf_counter() - asked
                yield snapshot
                due = perf_counter() + max(every, 9 * spent)  # at most a tenth of the time goes into snapshots
    yield replace(findings.snapshot(finished=True), notes=_notes(scorers))


def _notes(scorers: Sequence[Placed]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(note for one in scorers for note in one.notes))


def _named(spaces) -> dict[str, LayerEmbeddings]:
    if isinstance(spaces, LayerEmbeddings):
        return {"task": spaces}
    tasks = dict(spaces) if isinstance(spaces, Mapping) else {f"task {i}": x for i, x in enumerate(spaces, 1)}
    counts = {name: space.n_layers for name, space in tasks.items()}
    if len(set(counts.values())) != 1:
        raise ValueError(f"spaces must be at least one task, all with the same number of layers, got {counts}")
    return tasks
