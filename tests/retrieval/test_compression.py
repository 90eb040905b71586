"""Laws of quantisers after a map: what each stores, and that a rotation is free until bits are cut."""

from dataclasses import replace

import coding
import numpy as np
import pytest
import torch
from judged import judged_space, retrieval_set

from whitelab.datasets import SentencePairs
from whitelab.encoding.embeddings import LayerRows, with_pairs
from whitelab.retrieval import compression, frontier
from whitelab.retrieval.compression import CODES, QUANTIZERS, Code, Coder
from whitelab.retrieval.frontier import frontier as frontiers
from whitelab.retrieval.relevance import retrieve
from whitelab.retrieval.search_cost import unit_rows
from whitelab.scoring.paired import verdict_of
from whitelab.scoring.score import score
from whitelab.scoring.setting import Setting
from whitelab.statistics.significance import williams
from whitelab.whitening import cosine_class

D = 12
TURNED = ("pca", "zca", "cholesky")  # one class of cosines, three coordinate systems


@pytest.fixture(scope="module")
def searched():
    return judged_space(retrieval_set(300, 30, grades=(1, 2)), d=D)


@pytest.fixture(scope="module")
def pairs():
    """400 pairs whose second vector is the first and noise, by how much follows the gold, every eighth without any."""
    rng = np.random.default_rng(3)
    first = rng.standard_normal((400, D)) * np.linspace(3, 0.2, D) + 2
    gold = rng.integers(0, 6, 400)
    second = first + rng.standard_normal((400, D)) * (6 - gold[:, None]) / 2
    second[::8] = first[::8]
    return paired_space(np.stack([first, second], axis=1).reshape(1, -1, D), gold)


def paired_space(values, gold):
    count = len(gold)
    sides = (tuple(f"{side} {i}" for i in range(count)) for side in "ab")
    made = SentencePairs("made up", *sides, gold.astype(float), np.zeros(count, dtype=np.int64), ("all",))
    return with_pairs(torch.from_numpy(values.astype(np.float32)), made)


def points(space, texts, codes=CODES, **options):
    *_, found = frontiers(space, [Setting.parse(text) for text in texts], codes, **options)
    return {(one.setting.whitening, str(one.code)): one for one in found.points}, found


def rows(n=600, m=D, seed=0):
    rng = np.random.default_rng(seed)
    return unit_rows((rng.standard_normal((n, m)) * np.linspace(2, 0.3, m)).astype(np.float32))


# -------------------------------------------------------------------------------------------------- what is stored


@pytest.mark.parametrize("name", [name for name in QUANTIZERS if not name.startswith("pq")])
def test_a_quantiser_stores_what_its_definition_says(name):
    x = rows()
    coder = Coder(Code(name), x)
    np.testing.assert_allclose(coder.stored(x), coding.STORED[name](x), atol=2e-6)
    sizes = {"float32": 4 * D, "float16": 2 * D, "int8": D, "binary": 2, "hamming": 2}
    assert (coder.bytes, coder.codes(x).shape) == (sizes[name], (len(x), sizes[name]))
    asked = coder.query(x)
    np.testing.assert_allclose(asked, coder.stored(x) if name == "hamming" else x)


@pytest.mark.parametrize("name", ["pq4", "pq8"])
@pytest.mark.parametrize("m", [16, 11])
def test_a_product_quantiser_names_the_nearest_of_256_centroids_of_each_part(name, m):
    x = rows(m=m)
    coder, group = Coder(Code(name), x), QUANTIZERS[name].group
    filled = np.pad(x, ((0, 0), (0, -m % group)))
    codes = coder.codes(x)
    assert (coder.bytes, codes.shape[1]) == (filled.shape[1] // group, filled.shape[1] // group)
    every = np.repeat(np.arange(256, dtype=np.uint8)[:, None], codes.shape[1], axis=1)
    centroids = coder.index.sa_decode(every)
    np.testing.assert_allclose(coder.stored(x), coding.nearest_centroids(filled, centroids, group), atol=1e-6)


@pytest.mark.parametrize("rotation", ["random", "itq", "opq"])
def test_every_rotation_keeps_inner_products_and_moves_coordinates(rotation):
    x = rows(m=16)
    coder = Coder(Code("pq4" if rotation == "opq" else "float32", rotation), x)
    turned = coder.asking(x)
    np.testing.assert_allclose(turned @ turned.T, x @ x.T, atol=1e-5)
    assert np.abs(turned - x).max() > 0.1


def test_itq_takes_no_step_that_would_change_nothing(monkeypatch):
    x, svd, taken = rows(60, 24), torch.linalg.svd, []
    full = np.linalg.qr(np.random.default_rng(0).standard_normal((24, 24)))[0].astype(np.float32)
    for _ in range(compression.ITQ_STEPS):
        u, _, wt = np.linalg.svd(np.where(x @ full >= 0, np.float32(1), np.float32(-1)).T @ x)
        full = (u @ wt).T
    monkeypatch.setattr(torch.linalg, "svd", lambda matrix: taken.append(torch.get_num_threads()) or svd(matrix))
    usual = torch.get_num_threads()
    torch.set_num_threads(2)
    np.testing.assert_allclose(compression.itq(x), full, atol=1e-5)
    assert (set(taken), torch.get_num_threads()) == ({1}, 2)
    torch.set_num_threads(usual)
    assert 1 < len(taken) < compression.ITQ_STEPS


def test_itq_brings_rows_nearer_to_their_signs_than_chance_does():
    x = rows(m=16) @ np.linalg.qr(np.random.default_rng(1).standard_normal((16, 16)))[0].astype(np.float32)

    def loss(name):
        turned = Coder(Code("binary", name), x).asking(x)
        return np.square(np.sign(turned) / 4 - turned).sum()

    assert loss("itq") < 0.95 * min(loss("none"), loss("random"))


def test_a_seed_below_zero_trains_no_code():
    with pytest.raises(ValueError, match="seed=-1 must be a whole number of at least 0"):
        Coder(Code("binary", "random"), rows(), seed=-1)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("int7", "quantizer='int7' must be one of float32, float16"),
        ("binary+pca", "rotation='pca' must be one of none, random"),
        ("binary+opq", "rotation='opq' goes with a product quantiser"),
    ],
)
def test_a_code_that_is_not_there_is_refused(text, message):
    with pytest.raises(ValueError, match=message.replace("+", r"\+")):
        Code.parse(text)
    assert all(Code.parse(str(code)) == code for code in CODES)


# ------------------------------------------------------------------------------------------------------ the scores


@pytest.mark.parametrize("text", ["L1", "L1:pca@8", "L0+L1:soft fit=both", "L1:zca fit=queries"])
def test_float32_points_are_the_scores_of_the_settings(searched, text):
    setting = Setting.parse(text)
    found = points(searched, [text], [Code()])[0][setting.whitening, "float32"]
    assert found.score == pytest.approx(retrieve(searched, setting).means["ndcg@10"], abs=1e-12)
    assert found.bytes == 4 * found.dim


@pytest.mark.parametrize("text", ["L0", "L0:pca", "L0:soft@6 fit=cross", "L0:zca fit=cross"])
def test_float32_points_of_pairs_are_the_scores_of_the_settings(pairs, text):
    setting = Setting.parse(text)
    found = points(pairs, [text], [Code()])[0][setting.whitening, "float32"]
    assert found.score == pytest.approx(score(pairs, setting).spearman, abs=1e-9)


@pytest.mark.parametrize("code", ["float16", "int8", "binary", "hamming"])
def test_a_coded_score_is_the_plain_one_of_what_is_stored(searched, code):
    found = points(searched, ["L1:pca"], [Code(code)])[0]["pca", code]
    x, data = searched.space.combine([1]).numpy(), searched.data
    documents, queries = x[data.document_rows], x[data.query_rows]
    stored, asked = (coding.whitened(documents, side) for side in (documents, queries))
    how = coding.STORED[code]
    grades = [{} for _ in queries]
    for query, document, grade in zip(data.query, data.document, data.grade, strict=True):
        grades[query][document] = grade
    asked = how(asked) if code == "hamming" else asked
    # An axis may point either way: signs turn with it on both sides, steps of int8 end half a step elsewhere.
    wanted = coding.mean_ndcg(asked @ how(stored).T, grades, data.document_ids)
    assert found.score == pytest.approx(wanted, abs=0.01 if code in ("int8", "float16") else 1e-9)


def test_rows_taken_in_blocks_give_the_same_points(searched, pairs, monkeypatch):
    codes = [Code.parse(text) for text in ("int8", "binary+itq", "hamming", "pq4")]
    for space, text in ((searched, "L1:pca"), (pairs, "L0:zca fit=cross")):
        whole = points(space, [text], codes)[0]
        monkeypatch.setattr(frontier, "BLOCK", 9)  # of which two halves have more than the whole
        steps = []
        parts = points(space, [text], codes, progress=lambda done, total, steps=steps: steps.append((done, total)))[0]
        monkeypatch.undo()
        assert {key: one.score for key, one in parts.items()} == pytest.approx(
            {key: one.score for key, one in whole.items()}, abs=1e-9
        )
        assert steps[-1][0] == steps[-1][1] == len(steps)


def test_a_rotation_is_free_in_floats_and_not_in_signs(searched, pairs):
    """Full PCA, ZCA and Cholesky whitening tie as floats, and so does each turned at random; as signs they part."""
    for space, layer in ((searched, 1), (pairs, 0)):
        found, _ = points(space, [f"L{layer}:{name}" for name in TURNED], [Code.parse(one) for one in LAW])
        assert len({cosine_class(name, None, D) for name in TURNED}) == 1
        for code in ("float32", "float32+random", "float32+itq"):
            values = torch.stack([found[name, code].values for name in TURNED])
            torch.testing.assert_close(values, values[:1].expand_as(values), rtol=0, atol=1e-5)
            assert len({round(found[name, code].score, 2) for name in TURNED}) == 1
        for code in ("binary", "hamming"):
            scores = [found[name, code].score for name in TURNED]
            assert len({round(one, 4) for one in scores}) == 3
        turned = found["pca", "binary"].score, found["pca", "binary+random"].score
        assert turned[0] != pytest.approx(turned[1], abs=1e-4)


LAW = ("float32", "float32+random", "float32+itq", "binary", "binary+random", "hamming")


def test_differences_are_paired_and_held_against_float32_raw(searched):
    found, whole = points(searched, ["L1:pca", "L1"], [Code.parse(one) for one in ("float32", "int8", "binary")])
    first = whole.points[0]
    assert (first.setting.whitening, str(first.code), first.verdict) == ("none", "float32", "same")
    for one in found.values():
        assert one.difference.estimate == pytest.approx(one.score - first.score)
        assert one.low <= one.score <= one.high
    best = whole.best()
    assert [one.bytes for one in best] == sorted({one.bytes for one in best})
    for one in whole.points:
        beaten = any(other.bytes <= one.bytes and other.score > one.score for other in whole.points)
        assert not (one in best and beaten)
    starved = replace(whole, points=(first, *(replace(one, verdict="starved") for one in whole.points[1:])))
    assert starved.best() == (first,)  # what such a map leaves of distances is rounding


def test_a_record_holds_the_p_value_of_each_test_that_its_verdict_hears(pairs, searched):
    codes = [Code.parse(one) for one in ("float32", "float16", "int8", "binary", "hamming")]
    verdicts = set()
    for one in (whole := points(pairs, ["L0", "L0:pca"], codes)[1]).points[1:]:
        test, record = williams(one.values, whole.points[0].values, pairs.gold), one.as_dict()
        assert record["p_williams"] == (None if np.isnan(test.p_value) else test.p_value)
        assert record["verdict"] == verdict_of(one.difference, test)
        verdicts.add(record["verdict"])
    assert len(verdicts) > 1
    assert {one.as_dict()["p_williams"] for one in points(searched, ["L1:pca"], codes)[1].points} == {None}


def test_quantisers_are_trained_on_the_rows_of_the_fit_scope(searched, monkeypatch):
    seen = {}
    plain = compression.Coder.__init__

    def watched(self, code, rows, *more):
        seen[str(code)] = len(rows)
        plain(self, code, rows, *more)

    monkeypatch.setattr(compression.Coder, "__init__", watched)
    for scope, count in (("corpus", 300), ("queries", 30), ("both", 330)):
        for name in ("pca", "none"):
            points(searched, [f"L1:{name} fit={scope}"], [Code("int8")])
            assert seen["int8"] == count
    other = searched.with_text("elsewhere", LayerRows(torch.randn(2, 55, D), torch.ones(55, dtype=torch.float64)))
    points(other, ["L1:pca fit=elsewhere"], [Code("int8")])
    assert seen["int8"] == 55
    monkeypatch.setattr(frontier, "TRAINED", 40)
    points(searched, ["L1:pca"], [Code("int8")])
    assert seen["int8"] == 40


def test_a_code_with_too_few_rows_is_left_out_and_named(searched):
    codes = [Code.parse(one) for one in ("pq4", "binary", "pq8+itq")]
    found, whole = points(searched, ["L1 fit=queries", "L1:pca fit=queries"], codes)
    assert ("pca", "pq4") not in found
    assert ("pca", "binary") in found
    assert whole.left_out == ("pq4, pq8+itq of none, pca: must be trained on at least 256 rows, got 30",)
    with pytest.raises(ValueError, match="at least 384 rows, got 300"):
        Coder(Code("pq4", "opq"), rows(300, 384))


@pytest.mark.parametrize("of", ["space", "searched"])
def test_a_metric_that_does_not_exist_is_refused(of, request):
    with pytest.raises(ValueError, match="metric='ndcg' must be one of ndcg@10, mrr@10"):
        points(request.getfixturevalue(of), ["L1:pca"], metric="ndcg")


def test_settings_of_several_scopes_are_refused(searched):
    with pytest.raises(ValueError, match="settings must share one fit scope"):
        points(searched, ["L1:pca fit=both", "L1:pca fit=corpus"])


STREAMED = ("float32", "float16", "int8", "pq4", "binary+itq", "hamming", "pq8+opq")


@pytest.fixture
def tables(monkeypatch):
    """The rows of every table that goes through a map or a code, with blocks of 64 and training on 300."""
    seen: list[int] = []
    monkeypatch.setattr(frontier, "BLOCK", 64)
    monkeypatch.setattr(frontier, "TRAINED", 300)
    for owner, name in ((Coder, "asking"), (Coder, "stored"), (Coder, "codes"), (frontier._Map, "rows")):
        plain = getattr(owner, name)

        def spied(self, *given, plain=plain):
            seen.append(len(given[-1]))
            return plain(self, *given)

        monkeypatch.setattr(owner, name, spied)
    return seen


@pytest.mark.parametrize("code", STREAMED)
def test_no_point_holds_a_table_that_grows_with_the_rows(tables, code):
    largest = {}
    for count in (400, 1600):
        space = judged_space(retrieval_set(count, 5), d=D)
        points(space, ["L1:pca"], [Code.parse(code)])
        assert sum(tables) > count  # all of them were seen
        largest[count] = max(tables)
        tables.clear()
    assert largest[400] == largest[1600] == 300


@pytest.mark.parametrize("code", STREAMED)
def test_every_point_can_be_cancelled_between_two_blocks(searched, tables, code):
    calls, at = [], 7

    def stop(done, total):
        calls.append((done, total, len(tables)))
        if done == at:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        points(searched, ["L1:pca"], [Code.parse(code)], progress=stop)
    assert [done for done, *_ in calls] == list(range(1, at + 1))
    assert calls[-1][1] > at
    assert len(tables) == calls[-1][2]  # nothing was worked on after


def test_equal_documents_are_ordered_by_their_ids(searched):
    same = replace(searched.space, values=torch.ones_like(searched.space.values))
    space = replace(searched, space=same)
    found = points(space, ["L1"], [Code(), Code("binary")])[0]
    wanted = retrieve(space, Setting.parse("L1")).means["ndcg@10"]
    assert found["none", "float32"].score == pytest.approx(wanted)
    assert found["none", "binary"].score == pytest.approx(wanted)
