"""Laws of the measures over unique sentences: each equals its paper's equations, and a kept implementation if any."""

import math

import numpy as np
import pytest
import reference
import torch
from scipy.stats import spearmanr
from sklearn.cluster import KMeans
from sklearn.metrics import silhouette_score
from threadpoolctl import ThreadpoolController

from tests.conftest import rotation
from whitelab.statistics import geometry
from whitelab.statistics.linalg import eigenvalues
from whitelab.statistics.moments import Moments
from whitelab.whitening import fit


def cloud(n=60, d=6, seed=0, shift=1.0):
    x = np.random.default_rng(seed).standard_normal((n, d)) * np.linspace(0.3, 2, d) + shift
    return torch.from_numpy(x)


def gaussian(n, d, inside=None, seed=0):
    """n rows of a round Gaussian in d dimensions, laid into a larger space at an angle."""
    x = np.random.default_rng(seed).standard_normal((n, d))
    return torch.from_numpy(x) if inside is None else torch.from_numpy(x) @ rotation(inside, 1)[:d] + 3.0


ALIKE = torch.full((500, 1), 0.1, dtype=torch.float64)  # whose mean is 0.1 up to rounding


def covariance(x):
    return Moments.of(x).covariance


def rogue_share(x, top=1):
    return geometry.rogue_share(geometry.cosine_contributions(x), top)


# IsoScore, stable rank, partition function


@pytest.mark.parametrize("shift", [0.0, 3.0])
def test_iso_score_is_the_papers_algorithm_and_its_authors_code(shift):
    from IsoScore.IsoScore import IsoScore

    x = cloud(shift=shift)
    found = geometry.iso_score(covariance(x))
    assert found == pytest.approx(reference.iso_score(x), abs=1e-12)
    assert found == pytest.approx(float(IsoScore(x.numpy())), abs=1e-6)


def test_iso_score_runs_from_a_line_to_a_sphere_and_counts_null_directions_out():
    line, round_ = torch.diag(torch.tensor([1.0, 0, 0, 0])), torch.eye(4)
    assert geometry.iso_score(line) == pytest.approx(0)
    assert geometry.iso_score(round_) == pytest.approx(1)
    flat = torch.diag(torch.tensor([1.0, 1, 1, 0]))
    assert geometry.iso_score(flat, 3) == pytest.approx(1)
    assert geometry.iso_score(flat) == pytest.approx(reference.iso_score(None, flat.numpy())) == pytest.approx(2 / 3)
    assert math.isnan(geometry.iso_score(torch.eye(1)))


def test_the_stable_rank_is_that_of_the_centred_rows_and_never_above_the_rank():
    x = cloud()
    y = (x - x.mean(0)).numpy()
    found = geometry.stable_rank(eigenvalues(covariance(x)))
    assert found == pytest.approx(np.linalg.norm(y, "fro") ** 2 / np.linalg.norm(y, 2) ** 2)
    assert geometry.stable_rank(eigenvalues(torch.eye(5))) == pytest.approx(5)
    assert math.isnan(geometry.stable_rank(torch.zeros(3)))


@pytest.mark.parametrize("centred", [False, True])
def test_partition_isotropy_is_the_papers_ratio_under_any_rotation(centred):
    x = cloud()
    found = geometry.partition_isotropy(x, centred)
    assert found == pytest.approx(reference.partition_isotropy(x.numpy(), centred), abs=1e-12)
    assert found == pytest.approx(geometry.partition_isotropy(-5 * x @ rotation(6), centred), abs=1e-9)


@pytest.mark.parametrize("centred", [False, True])
def test_partition_isotropy_does_not_see_directions_along_which_no_row_points(centred):
    x = gaussian(400, 3)
    found = geometry.partition_isotropy(x, centred)
    for more in (gaussian(400, 3) @ rotation(9)[:3], torch.nn.functional.pad(x, (0, 4))):
        assert geometry.partition_isotropy(more, centred) == pytest.approx(found, abs=1e-9)


def test_partition_isotropy_knows_a_cone_until_it_is_centred():
    x = cloud(2000, 20, shift=5.0)
    assert geometry.partition_isotropy(x) < 0.3 < 0.9 < geometry.partition_isotropy(x, centred=True)
    assert math.isnan(geometry.partition_isotropy(ALIKE, centred=True))


# Rogue dimensions


def test_contributions_add_up_to_the_mean_cosine_and_the_largest_are_the_rogue_shares():
    x = cloud()
    x[:, 2] += 8
    assert float(geometry.cosine_contributions(x).sum()) == pytest.approx(reference.mean_cosine(x), abs=1e-12)
    shares = reference.rogue_shares(x)
    assert rogue_share(x) == pytest.approx(shares[0], abs=1e-12)
    assert rogue_share(x, 3) == pytest.approx(shares[:3].sum(), abs=1e-12)


def test_one_large_coordinate_makes_the_cone_until_it_is_standardised_or_turned():
    x = cloud(500, 12, shift=0.1)
    x[:, 4] += 20
    assert rogue_share(x) > 0.99
    assert geometry.mean_cosine(x) > 0.9 > 0.05 > abs(geometry.mean_cosine(geometry.standardized(x)))
    assert rogue_share(x @ rotation(12)) < 0.7
    level = geometry.standardized(torch.cat([x, ALIKE], 1))
    np.testing.assert_allclose(level.std(0, correction=0), [1] * 12 + [0], atol=1e-12)
    assert not level[:, -1].any()


def test_a_share_of_nothing_is_no_number():
    assert math.isnan(rogue_share(torch.tensor([[1.0, 0.0], [0.0, 1.0]])))
    assert math.isnan(rogue_share(torch.ones(1, 3)))
    with pytest.raises(ValueError, match="top=9 must lie between 1 and d=6"):
        rogue_share(cloud(), 9)


# Hubs and what takes them away


def test_hubs_are_counted_and_their_skewness_is_scipys():
    lists = geometry.nearest(cloud(80))
    found = geometry.hubness(lists)
    counts, skewness = reference.hub_counts(lists)
    assert found.counts.tolist() == counts.tolist()
    assert found.skewness == pytest.approx(skewness, abs=1e-12)
    assert (found.largest, found.never) == (counts.max(), np.mean(counts == 0))


def test_a_line_of_points_has_no_hubs_and_a_cone_in_many_dimensions_has():
    turn = torch.arange(90, dtype=torch.float64) * (2 * math.pi / 90)
    ring = geometry.hubness(geometry.nearest(torch.stack([turn.cos(), turn.sin()], 1)))
    assert (ring.skewness, ring.largest, ring.never) == (0, geometry.TOP, 0)
    arc = geometry.hubness(geometry.nearest(torch.stack([(turn / 8).cos(), (turn / 8).sin()], 1)))
    assert arc.largest <= 2 * geometry.TOP
    cone = geometry.hubness(geometry.nearest(gaussian(400, 50) + 0.5))
    assert cone.largest > 4 * geometry.TOP
    assert cone.skewness > 1.5
    assert cone.never > 0


@pytest.mark.parametrize(
    ("remedy", "scores"), [("csls", lambda x: reference.csls(x, 10)), ("mutual_proximity", reference.mutual_proximity)]
)
def test_a_remedy_is_its_papers_and_takes_hubs_away(remedy, scores):
    x = gaussian(150, 40) + 0.6
    found = geometry.remedied(x, remedy)
    assert found.tolist() == reference.lists(scores(x.numpy()), 10).tolist()
    before, after = geometry.hubness(geometry.remedied(x, "none")), geometry.hubness(found)
    assert after.skewness < 0.7 * before.skewness
    assert after.largest < before.largest
    with pytest.raises(ValueError, match="remedy='luck' must be one of none, csls, mutual_proximity"):
        geometry.remedied(x, "luck")


# Intrinsic dimension


def test_dimensions_equal_their_equations_and_scikit_dimension():
    from skdim.id import MLE, TwoNN

    x = cloud(300)
    x[10] = x[20]
    distances = geometry.nearest_rows(x, {"euclidean": 20})["euclidean"].values
    assert geometry.two_nn(distances) == pytest.approx(reference.two_nn(x), rel=1e-9)
    assert geometry.mle_dimension(distances) == pytest.approx(reference.mle_dimension(x, 20), rel=1e-9)
    apart = distances[distances[:, 0] > 0].numpy()
    n = len(apart)
    maintained = TwoNN(discard_fraction=0, dist=True, method="mle").fit(apart[:, :2]).dimension_
    assert geometry.two_nn(distances) == pytest.approx(maintained * n / (n - 1))  # which is corrected for its bias
    pointwise = MLE().fit(x.numpy(), precomputed_knn_arrays=(apart, None), comb="mean").dimension_
    assert geometry.mle_dimension(distances) == pytest.approx(pointwise)


@pytest.mark.parametrize("d", [1, 2, 5])
def test_a_gaussian_of_d_dimensions_in_a_larger_space_has_dimension_d(d):
    x = gaussian(4000, d, inside=30)
    distances = geometry.nearest_rows(x, {"euclidean": 20})["euclidean"].values
    assert geometry.two_nn(distances) == pytest.approx(d, rel=0.06)
    assert geometry.mle_dimension(distances) == pytest.approx(d, rel=0.15)
    noisy = x + 0.5 * torch.randn(x.shape, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    assert geometry.two_nn(geometry.nearest_rows(noisy, {"euclidean": 2})["euclidean"].values) > d + 3


def test_dimensions_of_doubles_and_of_a_lattice_are_no_numbers():
    assert math.isnan(geometry.two_nn(torch.zeros(5, 2)))
    assert math.isnan(geometry.two_nn(torch.ones(5, 2)))
    assert math.isnan(geometry.mle_dimension(torch.ones(5, 20)))
    with pytest.raises(ValueError, match="k=20 must lie between 2 and columns of distances=3"):
        geometry.mle_dimension(torch.ones(5, 3))


# CKA


def linear_cka(x, y):
    one, other, both = (geometry.hsic(a, b) for a, b in ((x, x), (y, y), (x, y)))
    return both / (one**0.5 * other**0.5) if one > 0 and other > 0 else math.nan


def test_cka_is_hsic_normalised():
    x, y = cloud(seed=1), cloud(d=9, seed=2) + cloud(seed=1).sum(1, keepdim=True)
    assert linear_cka(x, y) == pytest.approx(reference.linear_cka(x.numpy(), y.numpy()), abs=1e-12)


def test_no_measure_but_length_depends_on_the_unit():
    x = torch.randn(120, 9, dtype=torch.float64, generator=torch.Generator().manual_seed(0)) @ torch.diag(
        torch.linspace(0.2, 2, 9, dtype=torch.float64)
    )
    plain = geometry.measured(geometry.Rows(x), unique=True)
    for unit in (1e-12, 1e30):
        found = geometry.measured(geometry.Rows(unit * x), unique=True)
        for name in plain:
            wanted = unit * plain[name] if name in ("norm_mean", "norm_spread") else plain[name]
            assert found[name] == pytest.approx(wanted, rel=1e-6), name


def test_cka_is_1_under_rotation_scale_and_shift_and_not_under_whitening():
    x = cloud(200)
    assert linear_cka(x, 7 * x @ rotation(6) + 2) == pytest.approx(1, abs=1e-12)
    assert linear_cka(1e-60 * x, 1e-60 * x) == pytest.approx(1, abs=1e-12)
    assert linear_cka(x, (x - x.mean(0)) / x.std(0)) < 0.99
    assert abs(linear_cka(x, gaussian(200, 6, seed=9))) < 0.1
    assert math.isnan(linear_cka(x, ALIKE[:200]))
    assert math.isnan(linear_cka(x, torch.eye(200)[:, :1]))  # one row apart from equal others


def test_unrelated_spaces_are_not_alike_however_few_sentences_a_dimension_has():
    for n in (60, 90, 300):
        whitened = [fit("pca", Moments.of(one))(one) for one in (gaussian(n, 40, seed=1), gaussian(n, 40, seed=2))]
        assert abs(linear_cka(*whitened)) < 0.1
    starved = [fit("pca", Moments.of(one))(one) for one in (gaussian(30, 40, seed=1), gaussian(30, 40, seed=2))]
    assert math.isnan(linear_cka(*starved))  # every two rows are equally far apart


# Lengths and clusters


def test_lengths_follow_the_words_where_they_were_made_to():
    sentences = ["The cat", "the cat sat", "the dog", "A zebra, unlike THE cat!", ""]
    words = geometry.word_counts(sentences)
    assert words.tolist() == [2, 3, 2, 5, 0]
    marked = ["यह एक हिन्दी वाक्य है", "இது ஒரு தமிழ் வாக்கியம்", "Gro\u0308\u00dfe za\u0308hlt", "Größe zählt"]
    assert geometry.word_counts(marked).tolist() == [5, 4, 2, 2]  # a mark does not end a word
    frequencies = geometry.word_frequencies(sentences)
    assert frequencies.tolist() == pytest.approx(
        [math.log(4 * 3) / 2, math.log(12) / 3, math.log(4) / 2, math.log(12) / 5, 0]
    )
    x = torch.eye(5)[:, :3].double() + words[:, None]
    assert geometry.norm_correlation(x, words) == pytest.approx(spearmanr(x.norm(dim=1), words).statistic)
    assert geometry.norm_correlation(x, words) > 0.9
    assert geometry.norm_correlation(1e-12 * x, words) == pytest.approx(geometry.norm_correlation(x, words))
    assert math.isnan(geometry.norm_correlation(x, torch.ones(5, dtype=torch.float64)))


@pytest.mark.parametrize("size", [0.0, 1e-12, 1.0, 1e6])
def test_lengths_that_are_one_but_for_rounding_follow_nothing(size):
    x = size * geometry.normalize(gaussian(50, 40)).float()
    assert math.isnan(geometry.norm_correlation(x, torch.arange(50.0)))


def test_clusters_are_isotropic_inside_though_the_space_is_not():
    rng = np.random.default_rng(0)
    centres = np.zeros((10, 8))
    centres[:, 0] = 40 * np.arange(10)
    x = torch.from_numpy(np.repeat(centres, 80, 0) + rng.standard_normal((800, 8)))
    found = geometry.clusters(x)
    assert geometry.iso_score(covariance(x)) < 0.01 < 0.95 < found.iso_score_within
    assert found.silhouette > 0.8
    assert found.between > 0.99
    model = KMeans(10, n_init=1, random_state=0).fit(x.numpy())
    assert found.silhouette == pytest.approx(silhouette_score(x.numpy(), model.labels_))
    assert found.between == pytest.approx(1 - model.inertia_ / float((x - x.mean(0)).square().sum()))
    inside = x.numpy() - model.cluster_centers_[model.labels_]
    assert found.iso_score_within == pytest.approx(reference.iso_score(None, inside.T @ inside))
    noise = geometry.clusters(gaussian(800, 8))
    assert noise.silhouette < 0.2
    assert noise.between < found.between / 2


@pytest.mark.parametrize("x", [torch.ones(50, 3), torch.eye(10)], ids=["one point", "ten points"])
def test_rows_that_form_no_clusters_have_no_numbers(x):
    assert all(math.isnan(value) for value in vars(geometry.clusters(x)).values())


def test_numpy_has_one_thread_while_clusters_are_measured(monkeypatch):
    found = []

    def watched(*given):
        found.extend(one["num_threads"] for one in ThreadpoolController().select(user_api="blas").info())
        return silhouette_score(*given)

    monkeypatch.setattr("sklearn.metrics.silhouette_score", watched)
    with ThreadpoolController().limit(limits=2, user_api="blas"):
        geometry.clusters(gaussian(60, 4), 3)
    assert set(found) == {1}


def test_a_seed_that_cannot_be_is_refused():
    with pytest.raises(ValueError, match="seed=-1 must lie between 0 and"):
        geometry.clusters(cloud(), 3, seed=-1)


# The registry


def test_every_entry_of_the_registry_is_the_function_of_its_name():
    x = cloud(80)
    cov, flat, hubs = covariance(x), geometry.standardized(x), geometry.hubness(geometry.nearest(x))
    distances, groups = geometry.nearest_rows(x, {"euclidean": 20})["euclidean"].values, geometry.clusters(x)
    expected = {
        "mean_cosine": geometry.mean_cosine(x),
        "participation_ratio": geometry.participation_ratio(cov),
        "effective_rank": geometry.effective_rank(eigenvalues(cov)),
        "top_share": geometry.top_share(eigenvalues(cov)),
        "iso_score": geometry.iso_score(cov),
        "partition_isotropy": geometry.partition_isotropy(x),
        "partition_isotropy_centred": geometry.partition_isotropy(x, centred=True),
        "rogue_share_1": rogue_share(x),
        "rogue_share_3": rogue_share(x, 3),
        "rogue_share_1_standardized": rogue_share(flat),
        "rogue_share_3_standardized": rogue_share(flat, 3),
        "hub_skewness": hubs.skewness,
        "largest_hub": hubs.largest,
        "never_neighbour": hubs.never,
        "stable_rank": geometry.stable_rank(eigenvalues(cov)),
        "two_nn": geometry.two_nn(distances),
        "mle_dimension": geometry.mle_dimension(distances),
        "norm_mean": geometry.norms(x).mean(),
        "norm_spread": geometry.norms(x).std(correction=0),
        "silhouette": groups.silhouette,
        "between_clusters": groups.between,
        "iso_score_within": groups.iso_score_within,
    }
    found = geometry.measured(geometry.Rows(x), unique=False) | geometry.measured(geometry.Rows(x))
    assert list(found) == list(geometry.METRICS) == list(expected)
    assert found == pytest.approx({name: float(value) for name, value in expected.items()}, abs=1e-12)


def test_what_is_known_of_the_variances_is_not_computed_and_says_the_same():
    x = cloud(80)
    known = geometry.Rows(x, known=eigenvalues(covariance(x)))
    assert geometry.measured(known) == pytest.approx(geometry.measured(geometry.Rows(x)), abs=1e-9)
    assert geometry.measured(known, unique=False) == pytest.approx(geometry.measured(geometry.Rows(x), unique=False))
    none = geometry.measured(geometry.Rows(x[:, :0]))
    assert list(none) == [name for name, metric in geometry.METRICS.items() if metric.unique]
    assert all(map(math.isnan, none.values()))


def test_every_measure_says_what_it_is_and_what_it_cannot_see():
    for name, metric in geometry.METRICS.items():
        for words in (
            metric.label,
            metric.hint,
            metric.ideal,
            metric.formula,
            metric.range,
            metric.source,
            metric.blind,
            metric.group,
        ):
            assert words, name
    assert "isotropic" not in geometry.METRICS["mean_cosine"].hint
    assert "centring alone brings it near 0" in geometry.METRICS["mean_cosine"].blind


def test_a_space_centred_into_mean_cosine_0_is_not_isotropic_by_any_other_measure():
    x = cloud(2000, 20, shift=5.0) * torch.logspace(0, -2, 20)
    centred = x - x.mean(0)
    assert geometry.mean_cosine(x) > 0.8 > 0.01 > abs(geometry.mean_cosine(centred))
    before, after = (geometry.iso_score(covariance(rows)) for rows in (x, centred))
    assert after == pytest.approx(before)
    assert after < 0.5
