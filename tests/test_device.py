"""Laws of the device policy: the core computes where its tensors are, with the CPU's numbers, and seldom waits.

On a pretended device everywhere, on a real one where there is one.
"""

import contextlib
import math
from dataclasses import fields, is_dataclass

import numpy as np
import pretended_device
import pytest
import torch

from tests.conftest import OF_MOMENTS, make_space
from whitelab import whitening
from whitelab.advice import advise_pairs
from whitelab.base import devices
from whitelab.encoding.embeddings import MeasuredRows
from whitelab.scoring import calibration
from whitelab.scoring.paired import paired
from whitelab.scoring.score import isotropy_of, score
from whitelab.scoring.setting import Setting
from whitelab.statistics import correlation, geometry, linalg, significance
from whitelab.statistics.moments import Moments
from whitelab.sweeps import cone, controls, dimensions, fit_size, layer_gains, layer_measures, layer_profiles
from whitelab.sweeps.layer_pairs import layer_pairs
from whitelab.sweeps.layer_subsets import search_subsets

DEVICES = ["pretended", pytest.param("cuda", marks=pytest.mark.cuda)]
CROSS, CUT = Setting((1, 2), "pca", fit="cross"), Setting((1, 2), "pca", 5)
WORDS = ["a word " * (row % 7) for row in range(60)]


def _rows(space):
    return space.values[1]


def _measured(space):
    """A space that carries the moments of a corpus: of an average of layers, and of all layers apart."""
    other = make_space(seed=5)
    apart = torch.cat(list(other.values), dim=1)
    known = {"c": ((1, 2), Moments.of(other.combine((1, 2)))), "d": ((0, 1, 2, 3), Moments.of(apart))}
    for name, (layers, moments) in known.items():
        rows = MeasuredRows(name, space.origin, space.n_layers, space.dim, layers, moments)
        space = space.with_text(name, rows.to(space.values.device))
    return space


def _searched(variant, k=None, fit="task"):
    def run(space):
        setting = Setting(whitening=variant, k=k, fit=fit)
        found = search_subsets(space, setting, range(1, 4))
        return {one.layers: one.spearman for one in found.ranking.top}

    return run


def _against_raw(space):
    return paired(space, [score(space, CUT.raw), score(space, CUT)])


def _cosines(space):
    return score(space, CUT.raw).cosines, score(space, CUT).cosines


def _spectrum(space):
    return linalg.eigen(Moments.of(_rows(space), space.counts).covariance).values


# name -> (what is computed from a space, how often the host may wait for a value or fetch one)
CORE = {
    "moments": (lambda s: Moments.of(_rows(s), s.counts).covariance, 9),
    "eigen": (_spectrum, 13),
    "cholesky": (lambda s: linalg.trusted_cholesky(s.moments((1, 2)).covariance), 13),
    "ranks": (lambda s: correlation.average_ranks(s.gold), 0),
    "spearman": (lambda s: correlation.spearman(s.gold.flip(0), s.gold), 5),
    "by subset": (lambda s: correlation.spearman_by_subset(s.gold.flip(0), s.gold, s.subset, s.n_subsets), 19),
    "bootstrap": (lambda s: significance.bootstrap(s.gold.flip(0)[None], s.gold, s.subset, 3, resamples=9).low, 7),
    "cosines": (lambda s: geometry.row_cosines(_rows(s), s.first, s.second), 0),
    "mean cosine": (lambda s: geometry.mean_cosine(_rows(s), s.counts), 8),
    "partition": (lambda s: geometry.partition_isotropy(_rows(s)), 3),
    "uniformity": (lambda s: geometry.uniformity(_rows(s), s.counts), 8),
    "blocks": (lambda s: geometry.block_means(s.moments((1,)).covariance, 5)[0], 10),
    "rogue share": (lambda s: geometry.rogue_share(geometry.cosine_contributions(_rows(s))), 4),
    "nearest": (lambda s: geometry.nearest(_rows(s), 2), 60),
    "hubs": (lambda s: geometry.hubness(geometry.nearest(_rows(s), 3)).skewness, 8),
    "alignment": (lambda s: geometry.alignment(_rows(s)[s.first], _rows(s)[s.second]), 4),
    "similarity": (lambda s: geometry.hsic(s.values[1], s.values[2]), 3),
    "score": (lambda s: score(s, Setting((1, 2), "pca", 5)).spearman, 80),
    "score, cross": (lambda s: score(s, CROSS).spearman, 80),
    "k-curve": (lambda s: dimensions.k_curve(s, Setting((1, 2), "pca")).spearman, 45),
    "k-curve, soft": (lambda s: dimensions.k_curve(s, Setting((1,), "soft:gamma=auto")).spearman, 45),
    "k-curve, cross": (lambda s: dimensions.k_curve(s, CROSS).spearman, 72),
    "heatmap": (lambda s: [one.spearman for one in layer_pairs(s, Setting()).cells], 12),
    "heatmap, whitened": (lambda s: [one.spearman for one in layer_pairs(s, Setting(whitening="pca")).cells], 120),
    "profile": (lambda s: layer_profiles.shape(s, Setting((1,), "zca", 6)), 35),
    "profile, cross": (lambda s: layer_profiles.shape(s, CROSS), 72),
    "losses": (lambda s: layer_profiles.losses(s, Setting((1,))), 22),
    "measures": (lambda s: layer_measures.as_record(layer_measures.measures(s, Setting((1,)))), 58),
    "paired": (lambda s: _against_raw(s).standing(1), 110),
    "moved": (lambda s: significance.moved(*_cosines(s), s.judged.cpu().gold), 110),
    "isotropy": (lambda s: isotropy_of(s, CUT), 35),
    "calibration": (lambda s: calibration.calibrate(s, CUT).as_dict(), 30),
    "calibration, cross": (lambda s: calibration.calibrate(s, CROSS).as_dict(), 55),
    "gains": (lambda s: list(layer_gains.layer_gains(s, CUT))[-1], 320),
    "cones": (lambda s: cone.cones(s, (CUT.raw, CUT)), 32),
    "controls": (lambda s: controls.k_controls(s, CUT.with_(k=None)), 85),
    "sizes": (lambda s: list(fit_size.fit_sizes(s, (CUT,), (10, 30)))[-1], 220),
    "samples": (lambda s: fit_size.sentence_scores(s, (CUT,), (20,)), 45),
    "all measures": (lambda s: list(layer_measures.layer_measures(s, (CUT.raw, CUT)))[-1], 430),
    "neighbourhood": (lambda s: layer_measures.neighbourhood(s, CUT), 40),
    "nearest to": (lambda s: layer_measures.nearest_to(s, CUT, make_space().values[:, 3]), 18),
    "lengths": (lambda s: layer_measures.norm_correlations(s, CUT, WORDS), 20),
    "remedies": (lambda s: layer_measures.hub_remedies(s, CUT), 40),
    "similar layers": (lambda s: layer_measures.layer_similarity(s, CUT), 85),
    "k of all pairs": (lambda s: dimensions.pair_curves(s, CUT.with_(k=None)), 190),
    "heatmap, soft": (lambda s: [one.spearman for one in layer_pairs(s, Setting(whitening="soft", k=5)).cells], 190),
    "image": (lambda s: layer_profiles.covariance_image(s, CUT), 25),
    "sample": (lambda s: layer_profiles.cosine_sample(s, CUT), 20),
    "projection": (lambda s: layer_profiles.projected(s, CUT, "pca", 2), 24),
    "advice": (lambda s: str(advise_pairs(s, CUT)), 1300),
    "corpus": (lambda s: score(_measured(s), Setting((1, 2), "pca", 5, fit="c")).spearman, 80),
    "corpus, apart": (lambda s: _searched("pca", fit="d")(_measured(s)), 60),
    "corpus, isotropy": (lambda s: isotropy_of(_measured(s), Setting((1, 2), "soft", 5, fit="c")), 60),
    "subsets": (_searched("none"), 25),
    "subsets, whitened": (_searched("pca"), 34),
    "subsets, partial": (_searched("soft", 5), 95),
}


@contextlib.contextmanager
def entered(kind):
    """A device by name, and what it counts (None where nothing does)."""
    if kind == "cuda":
        yield "cuda:0", None
    else:
        with pretended_device.pretended_device() as traffic:
            yield str(pretended_device.DEVICE), traffic


def plain(found):
    """Numbers alone, wherever they were."""
    if isinstance(found, torch.Tensor):
        return plain(found.cpu().tolist())
    if isinstance(found, np.ndarray):
        return plain(found.tolist())
    if is_dataclass(found):
        return {one.name: plain(getattr(found, one.name)) for one in fields(found)}
    if isinstance(found, dict):
        return {key: plain(value) for key, value in found.items()}
    if isinstance(found, (list, tuple)):
        return [plain(one) for one in found]
    return found


def same(found, wanted, within=1e-8):
    """Whether all numbers agree, NaN with NaN."""
    if isinstance(wanted, dict):
        return found.keys() == wanted.keys() and all(same(found[key], wanted[key], within) for key in wanted)
    if isinstance(wanted, list):
        return len(found) == len(wanted) and all(map(lambda a, b: same(a, b, within), found, wanted))
    if isinstance(wanted, float):
        return math.isclose(found, wanted, rel_tol=within, abs_tol=within) or (found != found and wanted != wanted)
    return found == wanted


@pytest.mark.parametrize("name", CORE)
@pytest.mark.parametrize("kind", DEVICES)
def test_the_core_gives_the_numbers_of_the_cpu_and_keeps_its_budget(kind, name):
    compute, budget = CORE[name]
    wanted = plain(compute(make_space()))
    with entered(kind) as (device, traffic):
        space = make_space().to(device)
        space.counts  # noqa: B018  # counted once a space
        if traffic:
            traffic.clear()
        found = compute(space)
        spent = 0 if traffic is None else traffic.waits + traffic.down
        found = plain(found)
    assert same(found, wanted)
    assert spent <= budget


@pytest.mark.parametrize("kind", DEVICES)
def test_a_whitened_search_keeps_its_budget_where_no_factor_is_certain(kind):
    """Fewer sentences than dimensions: every subset is mapped."""
    compute, _ = CORE["subsets, whitened"]
    wanted = plain(compute(make_space(n=14, d=30, sizes=(9,))))
    with entered(kind) as (device, traffic):
        space = make_space(n=14, d=30, sizes=(9,)).to(device)
        found, spent = plain(compute(space)), 0 if traffic is None else traffic.waits + traffic.down
    assert same(found, wanted, 1e-6)
    assert spent <= 150


@pytest.mark.parametrize("kind", DEVICES)
def test_factors_made_together_are_those_made_alone(kind):
    """Of averages of layers, of a layer in a hyperplane, and of too few sentences for any."""
    flat, thin = make_space(hyperplane=True), make_space(n=4, sizes=(4,))
    scatters = [space.moments(layers).scatter for space in (flat, thin) for layers in ((0,), (1,), (0, 1), (1, 2, 3))]
    alone = [linalg.factor(one) for one in scatters]
    assert [None if one is None else one.rank for one in alone] == [11, 11, 12, 12, None, None, None, None]
    with entered(kind) as (device, _):
        together = linalg.factors(torch.stack(scatters).to(device))
        for one, other in zip(together, alone, strict=True):
            assert (one is None) == (other is None)
            if one is not None:
                assert one.rank == other.rank
                assert torch.allclose(one.inverse.cpu(), other.inverse, rtol=1e-6, atol=1e-9)


@pytest.mark.parametrize("kind", DEVICES)
def test_every_map_of_moments_is_fitted_and_applied_where_the_rows_are(kind):
    space = make_space()
    moments = space.moments((1,))
    with entered(kind) as (device, _):
        there = space.to(device)
        for spec in OF_MOMENTS:
            rows = whitening.fit(spec, there.moments((1,)))(there.combine((1,)))
            assert rows.device == there.values.device, spec
            wanted = whitening.fit(spec, moments)(space.combine((1,)))
            assert torch.allclose(rows.cpu(), wanted, atol=1e-7), spec


@pytest.mark.parametrize("kind", DEVICES)
def test_two_devices_in_one_operation_are_refused(kind):
    """The negative control: a pretended device that let this pass would prove nothing."""
    here = torch.ones(3)
    with entered(kind) as (device, _):
        there = here.to(device)
        for mixed in (lambda: there + here, lambda: torch.dot(there, here), lambda: torch.stack([there, here])):
            with pytest.raises(RuntimeError, match="same device"):
                mixed()
        with pytest.raises(RuntimeError, match="indices should be"):
            here[there.long()]
        with pytest.raises(TypeError, match="numpy"):
            there.numpy()
        assert (there * torch.tensor(2.0)).cpu().tolist() == [2.0] * 3  # a lone number may come from the CPU


def test_waits_and_crossings_are_counted():
    with pretended_device.pretended_device() as traffic:
        there = torch.ones(3).to(pretended_device.DEVICE)
        assert (traffic.up, traffic.down, traffic.waits) == (1, 0, 0)
        assert there.sum().item() == 3
        assert bool((there > 0).all())
        there.nonzero()
        there.cpu()
        assert (traffic.up, traffic.down, traffic.waits) == (1, 1, 3)


def test_parts_grow_with_the_memory_of_a_gpu_and_stay_small_on_a_cpu(monkeypatch):
    gpu = torch.device("cuda:0")
    assert devices.at_once(torch.device("cpu"), 64, 8) == 64
    for free, rows in ((2**40, devices.PART_BYTES // 2**20), (2**26, 64), (2**29, 128)):
        monkeypatch.setattr(devices, "available_memory", lambda device, free=free: free)
        assert devices.at_once(gpu, 64, 2**20) == rows


def test_a_gpu_multiplies_out_at_once_what_a_cpu_halves():
    assert not devices.in_one_launch(torch.device("cpu"), 1)
    limit = devices.IN_ONE_LAUNCH
    assert [devices.in_one_launch(torch.device("cuda:0"), one) for one in (1, limit, limit + 1)] == [True, True, False]


def test_a_gpu_that_is_too_full_to_be_measured_is_measured_when_there_is_room(monkeypatch):
    def measured(device, dtype):
        if device in full:
            raise torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 10.00 MiB")
        return 3.0 if device != "cpu" else 2.0

    monkeypatch.setattr(devices, "product_rate", measured)
    full = {"cuda:0"}
    assert devices.for_statistics("cuda:0") == "cpu"
    full.clear()
    assert devices.for_statistics("cuda:0") == "cuda:0"


@pytest.mark.parametrize("kind", DEVICES)
def test_a_device_without_a_number_is_any_of_its_kind(kind):
    with entered(kind) as (device, _):
        there, name = torch.zeros(2, device=device), torch.device(device).type
        assert [devices.is_on(there, one) for one in (name, f"{name}:0", f"{name}:1", "cpu")] == [
            True,
            True,
            False,
            False,
        ]
    assert devices.is_on(torch.zeros(2), "cpu")


def test_statistics_go_where_float64_is_faster_by_measure(monkeypatch):
    rates = {"cpu": 2.0, "cuda:0": 3.0, "cuda:1": 1.0}
    monkeypatch.setattr(devices, "product_rate", lambda device, dtype: rates[device])
    assert [devices.for_statistics(one) for one in ("cpu", "mps", "cuda:0", "cuda:1")] == [
        "cpu",
        "cpu",
        "cuda:0",
        "cpu",
    ]
