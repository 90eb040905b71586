"""Isotropy of sentences that a map has not seen: against the plain path, whatever the scope and the variant."""

import math
from dataclasses import replace

import numpy as np
import pytest
import reference
import torch

from tests.conftest import OF_MOMENTS, make_space
from whitelab import whitening
from whitelab.encoding.embeddings import LayerEmbeddings, LayerRows
from whitelab.scoring.fit_scopes import fit_scope
from whitelab.scoring.held_out import held_out_isotropy, isotropy_between
from whitelab.scoring.setting import Setting
from whitelab.statistics.moments import Moments
from whitelab.whitening import WHITENERS

FITS = ("task", "cross", "other text")
OF_ROWS = ("clusters:m=2,directions=1", "flow:epochs=2")


def test_whitening_is_isotropic_where_it_was_fitted_and_less_so_elsewhere(sparse):
    setting = Setting((1,), "pca")
    z = fit_scope(sparse, setting).transform()
    ratio = reference.participation_ratio(Moments.of(z, sparse.counts).covariance.numpy())
    assert (ratio - 1) / 11 == pytest.approx(1)
    assert all(0 < held_out_isotropy(sparse, setting.with_(fit=fit)) < 0.95 for fit in FITS)
    assert sparse.moments((1,)).count == 180


@pytest.mark.parametrize("k", [None, 2, 5])
@pytest.mark.parametrize("variant", OF_MOMENTS)
def test_held_out_isotropy_is_the_isoscore_of_rows_the_map_has_not_seen(sparse, corpus, variant, k):
    if variant == "none" or k and not WHITENERS[variant].takes_k:
        return
    rows = reference.occurrences(reference.combined(corpus, (1, 3)), corpus.counts)
    z = reference.whiten(rows, reference.task_rows(sparse, (1, 3)), variant, k)
    setting = Setting((1, 3), variant, k, fit="other text")
    rank = fit_scope(sparse, setting).rank
    expected = (reference.participation_ratio(np.cov(z.T)) - 1) / (rank - 1)
    assert held_out_isotropy(sparse, setting) == pytest.approx(expected)


@pytest.mark.parametrize(("f", "m"), [(1600, 600), (400, 600), (400, 8000)])
def test_of_white_data_few_rows_of_either_kind_keep_isotropy_low_by_the_moments_of_an_f_matrix(f, m):
    seen, unseen = (
        LayerRows(torch.from_numpy(np.random.default_rng(n).standard_normal((1, n, 200))), torch.ones(n).double())
        for n in (f, m)
    )
    y, z = 200 / f, 200 / m
    wanted = (1 - y) / (1 + z - y * z)
    assert isotropy_between(seen, unseen, Setting((0,), "pca")) == pytest.approx(wanted, rel=0.03)


def test_held_out_isotropy_is_the_same_whatever_was_asked_before(sparse, corpus):
    asked = [
        Setting(layers, variant, k, fit=fit)
        for fit in ("task", "cross", "other text")
        for variant, k in (("pca", None), ("zca", 5), ("soft", 2), ("shrunk", 5), ("center", 5))
        for layers in ((1, 3), (1,))
    ]

    def fresh():
        return make_space(n=160, sizes=(50, 40), seed=5).with_text("other text", corpus)

    found = [held_out_isotropy(sparse, setting) for setting in asked]
    assert found == pytest.approx([held_out_isotropy(fresh(), setting) for setting in asked])
    assert len({round(one, 9) for one in found}) == len(found)


def test_sentences_of_the_task_that_a_text_holds_are_not_held_out(sparse, corpus):
    setting = Setting((1, 3), "pca", fit="both")
    n = sparse.n_sentences
    for held in (n // 2, n - 1, n):
        values = torch.cat([corpus.values, sparse.values[:, :held]], dim=1)
        text = LayerRows(values, torch.ones(values.shape[1], dtype=torch.float64))
        found = held_out_isotropy(sparse.with_text("both", text), setting)
        rest = LayerRows(sparse.values[:, held:], sparse.counts[held:])
        wanted = isotropy_between(text, rest, setting) if held < n - 1 else math.nan
        assert found == pytest.approx(wanted, nan_ok=True)


@pytest.mark.parametrize("variant", OF_ROWS)
def test_held_out_isotropy_of_a_map_of_rows_is_that_of_other_rows_under_it(sparse, corpus, variant):
    for fit, (seen, unseen) in {"other text": (corpus, sparse), "task": sparse.parted}.items():
        ways = [(seen, unseen)] if fit == "other text" else [(seen, unseen), (unseen, seen)]
        expected = []
        for a, b in ways:
            fitted = whitening.fit_to_rows(variant, a.combine((1, 3)), a.counts)
            z = reference.occurrences(fitted(b.combine((1, 3))), b.counts)
            expected.append((reference.participation_ratio(np.cov(z.T)) - 1) / (fitted.rank - 1))
        assert held_out_isotropy(sparse, Setting((1, 3), variant, fit=fit)) == pytest.approx(np.mean(expected))


@pytest.mark.parametrize("variant", ["center", "pca", "soft:gamma=0"])
def test_of_too_few_sentences_held_out_isotropy_counts_the_directions_of_the_map(thin, variant):
    """Where a half spans fewer directions than there are: centring alone keeps all of them."""
    expected = []
    for seen, unseen in (thin.parted, thin.parted[::-1]):
        fitted = whitening.fit(variant, seen.moments((1,)))
        z = reference.occurrences(fitted(thin.combine((1,))), unseen.counts)
        expected.append((reference.participation_ratio(np.cov(z.T)) - 1) / (fitted.rank - 1))
    assert held_out_isotropy(thin, Setting((1,), variant)) == pytest.approx(np.mean(expected))


def test_more_sentences_make_the_held_out_sentences_rounder():
    few, many = (make_space(n=n, sizes=(n // 2,), seed=1) for n in (40, 2000))
    assert held_out_isotropy(few, Setting((1,), "pca")) < held_out_isotropy(many, Setting((1,), "pca"))


def test_one_direction_has_no_isotropy(sparse):
    assert np.isnan(held_out_isotropy(sparse, Setting((1,), "pca", 1)))
    alone = replace(sparse, values=sparse.values[:, :1], first=0 * sparse.first, second=0 * sparse.second)
    assert np.isnan(held_out_isotropy(alone, Setting((1,), "pca")))


def test_all_vectors_that_were_given_are_held_out_by_halves():
    x = torch.from_numpy(np.random.default_rng(3).standard_normal((1, 300, 6)) * np.linspace(2, 0.3, 6))
    none, gold = torch.zeros(0, dtype=torch.int64), torch.zeros(0, dtype=torch.float64)
    rows = LayerRows(x, torch.ones(300, dtype=torch.float64))
    space = LayerEmbeddings(x, none, none, gold, none, ("mine",), texts={"vectors": rows})
    setting = Setting((0,), "pca", fit="vectors")
    seen, unseen = rows.parted
    ways = [isotropy_between(*way, setting) for way in ((seen, unseen), (unseen, seen))]
    assert held_out_isotropy(space, setting) == pytest.approx(sum(ways) / 2)
    assert held_out_isotropy(space, setting.with_(fit="task")) == held_out_isotropy(space, setting)  # each counts once
