"""Searches of coded vectors: what they find is what brute force finds among what is stored."""

import numpy as np
import pytest

from whitelab.retrieval.coded_search import SEARCHED, coded_searches
from whitelab.retrieval.compression import Code
from whitelab.retrieval.search_cost import SearchPlan
from whitelab.scoring.fit_scopes import fit_scope
from whitelab.scoring.setting import Setting


def searched(space, codes=("int8", "hamming"), text="L1:pca", corpus=None, **options):
    plan = SearchPlan(corpus=corpus or space.n_sentences, queries=30, top=5, rounds=3, **options)
    return coded_searches(space, Setting.parse(text), list(map(Code.parse, codes)), plan)


def test_floats_come_first_find_their_own_neighbours_and_lose_none_to_a_rotation(space):
    found = searched(space, ("float32+random", "int8"), corpus=400)
    assert [str(row.code) for row in found.rows] == ["float32", "float32+random", "int8"]
    assert [row.recall for row in found.rows[:2]] == [1.0, 1.0]
    assert [row.bytes for row in found.rows] == [400 * found.dim * size for size in (4, 4, 1)]
    assert found.rows[0].time_ratio == 1.0


def test_neighbours_by_signs_are_those_of_brute_force(space):
    z = fit_scope(space, Setting.parse("L1:pca")).transform().numpy()
    z = z / np.linalg.norm(z, axis=1, keepdims=True)
    own = np.random.default_rng(0).permutation(len(z))[:30]
    agree = np.where(z[own] >= 0, 1, -1) @ np.where(z >= 0, 1, -1).T
    true = z[own] @ z.T
    for scores in (agree, true):
        scores[np.arange(30), own] = -np.inf if scores is true else -99
    last = np.sort(true, axis=1)[:, -5]
    least, most = [], []  # equal counts may come in any order
    for i in range(30):
        edge = np.sort(agree[i])[-5]
        sure, tied = agree[i] > edge, agree[i] == edge
        hits = true[i] >= last[i] - 1e-6
        room = 5 - sure.sum()
        least.append(hits[sure].sum() + max(0, room - (~hits[tied]).sum()))
        most.append(hits[sure].sum() + min(room, hits[tied].sum()))
    found = searched(space).rows[2].recall
    assert np.mean(least) / 5 - 1e-9 <= found <= np.mean(most) / 5 + 1e-9
    assert found < 1


def test_what_cannot_be_searched_is_refused(space):
    with pytest.raises(ValueError, match="codes must not hold binary"):
        searched(space, ("binary",))
    with pytest.raises(ValueError, match="fit='cross' fits 2 maps"):
        searched(space, text="L1:pca fit=cross")
    with pytest.raises(ValueError, match="more than 4 GiB"):
        searched(space, ("float16",), corpus=80_000_000)
    assert all(code.quantizer != "binary" for code in SEARCHED)


def test_it_can_be_cancelled(space):
    def stop(done, total):
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        coded_searches(space, Setting.parse("L1"), [Code("int8")], SearchPlan(corpus=300, rounds=2), stop)
