"""Laws of retrieval with relevance: every k in one pass, every scope, ties, and paired differences over queries."""

import json
from dataclasses import replace

import ir_measures
import numpy as np
import pytest
import reference
import torch
from judged import TREC, judged_space, retrieval_set, write_retrieval
from needs import PUBLISHED
from tiny import build_model

from whitelab.datasets import load_retrieval
from whitelab.encoding.embeddings import LayerRows
from whitelab.encoding.encoders import load_encoder
from whitelab.retrieval import ranking
from whitelab.retrieval.calibration import calibrate_search
from whitelab.retrieval.compression import Code
from whitelab.retrieval.embedded import DOCUMENT_TOKENS, embed_retrieval, for_documents, with_judgements
from whitelab.retrieval.frontier import frontier
from whitelab.retrieval.relevance import against, hits, retrieval_curve, retrieve
from whitelab.scoring.fit_scopes import fit_scope
from whitelab.scoring.setting import Setting
from whitelab.statistics.moments import Moments
from whitelab.store.embedding_store import Store
from whitelab.whitening import fit

CRANFIELD = PUBLISHED.parent / "retrieval" / "cranfield"


@pytest.fixture
def space():
    return judged_space(retrieval_set(60, 12, grades=(1, 2)), d=10)


def ranks(space, scores):
    """The ranks under these scores of every query with every document."""
    return ranking._places(space, scores, space.relevant.query, space.document)


@pytest.mark.parametrize("text", ["L1:pca", "L0+L1:soft fit=queries", "L1:center fit=both", "L1:shrunk"])
def test_the_curve_over_k_is_the_score_at_each_k(space, text):
    setting = Setting.parse(text)
    curve = retrieval_curve(space, setting)
    for k in range(1, 11):
        wanted = retrieve(space, setting.with_(k=k)).per_query
        torch.testing.assert_close(curve.per_query[..., k - 1], wanted, rtol=0, atol=1e-12)
    assert curve.means()[curve.best_k() - 1] == max(curve.means())
    assert curve.means()[curve.knee() - 1] >= max(curve.means()) - 0.005


@pytest.mark.parametrize("variant", ["shrunk", "iternorm", "soft:gamma=0"])
def test_below_d_the_curve_keeps_no_direction_that_the_fitted_texts_do_not_span(variant):
    space = judged_space(retrieval_set(40, 8, grades=(1, 2)), d=16)
    setting = Setting.parse(f"L1:{variant} fit=queries")
    curve = retrieval_curve(space, setting)
    for k in (6, 7, 8, 15, 16):
        found = retrieve(space, setting.with_(k=k))
        torch.testing.assert_close(curve.per_query[..., k - 1], found.per_query, rtol=0, atol=1e-12)
        assert found.protocol.rank == (min(k, 7) if k < 16 else 16)


def test_documents_taken_in_parts_have_the_same_ranks(space, monkeypatch):
    _, z = ranking.directions(space, space.on(Setting.parse("L1:pca")))
    whole = ranking.ranks_by_k(space, z)
    monkeypatch.setattr(ranking, "_DOCUMENTS", 7)
    monkeypatch.setattr(ranking, "_CELLS", 100)
    assert torch.equal(ranking.ranks_by_k(space, z), whole)
    scores = torch.randn(12, 60, dtype=torch.float64).round(decimals=1)  # with ties
    parts = ranks(space, scores)
    monkeypatch.undo()
    assert torch.equal(ranks(space, scores), parts)
    result = retrieve(space, Setting.parse("L1:pca"))
    monkeypatch.setattr(ranking, "_SCORES", 150)  # two queries at once
    assert torch.equal(retrieve(space, Setting.parse("L1:pca")).per_query, result.per_query)
    monkeypatch.undo()
    for query, document, rank in zip(space.relevant.query, space.document, parts, strict=True):
        assert ranking.top(space, scores[query], 60, int(query))[rank - 1] == document


@pytest.fixture
def of_itself():
    """A set of which every other query is a document, never one that is relevant to it."""
    data = retrieval_set(60, 12, grades=(1, 2))
    ids, texts = list(data.query_ids), list(data.queries)
    for query in range(0, 12, 2):
        free = next(d for d in range(5 * query, 60) if d not in data.document[data.query == query])
        ids[query], texts[query] = data.document_ids[free], data.documents[free]
    return replace(data, query_ids=tuple(ids), queries=tuple(texts))


def test_a_document_that_is_the_query_itself_has_no_place_in_its_ranking(of_itself):
    data, space = of_itself, judged_space(of_itself, d=10)
    asked = space.own[space.own >= 0]
    assert [data.document_ids[one] for one in asked] == list(data.query_ids[::2])
    scores = torch.randn(12, 60, dtype=torch.float64).round(decimals=1)  # with ties
    _, z = ranking.directions(space, space.on(Setting.parse("L1:pca")))
    by_k = ranking.ranks_by_k(space, z)
    unit = torch.nn.functional.normalize(z[:, :4], dim=1)
    products = (unit[space.queries] @ unit[space.documents].T).round(decimals=9)
    for found, of in ((ranks(space, scores), scores), (by_k[:, 3], products)):
        for query, document, rank in zip(space.relevant.query, space.document, found, strict=True):
            others = [d for d in range(60) if d != space.own[query]]
            ranked = sorted(others, key=lambda d: (-float(of[query, d]), data.document_ids[d]))
            assert ranked.index(int(document)) + 1 == rank
    raw = Setting.parse("L1")
    assert all(hit.document != space.own[0] for hit in hits(space, raw, 0, 60))
    assert len(hits(space, raw, 0, 60)) == 59
    *_, (point,) = (found.points for found in frontier(space, [raw], [Code()], metric="ndcg@10"))
    assert point.score == pytest.approx(retrieve(space, raw).means["ndcg@10"], abs=1e-12)
    with_all = replace(data, query_ids=tuple(f"{name} asked" for name in data.query_ids))
    kept = retrieve(judged_space(with_all, d=10), raw).means["ndcg@10"]
    assert retrieve(space, raw).means["ndcg@10"] > kept  # each was first in its own ranking
    assert calibrate_search(space, raw).random.pairs == 12 * 60 - len(asked)


def test_documents_that_are_alike_to_a_query_tie_though_it_is_one_itself(of_itself):
    space = judged_space(of_itself, d=10)
    n = space.space.n_sentences
    simplex = torch.eye(n, dtype=torch.float64) - 1 / n + 1e-12 * torch.randn(n, n, dtype=torch.float64)
    unit = torch.nn.functional.normalize(simplex, dim=1)
    scores = unit[space.queries] @ unit[space.documents].T
    found = ranks(space, scores), ranking.ranks_by_k(space, simplex)[:, -1]
    for query, document, *placed in zip(space.relevant.query, space.document, *found, strict=True):
        others = [name for d, name in enumerate(of_itself.document_ids) if d != space.own[query]]
        assert placed == [sorted(others).index(of_itself.document_ids[document]) + 1] * 2


def test_each_scope_fits_on_its_own_texts_and_a_setting_that_says_nothing_on_the_corpus(space):
    data, x = space.data, space.space.combine([1])
    rows = {"corpus": data.document_rows, "queries": data.query_rows}
    rows["both"] = np.concatenate(list(rows.values()))
    for scope, own in rows.items():
        z = fit("pca", Moments.of(x[own]), 4)(x)
        z = z / z.norm(dim=1, keepdim=True)
        found = retrieve(space, Setting.parse(f"L1:pca@4 fit={scope}"))
        cosines = ranking.cosines(space, fit_scope(space.space, found.setting))
        torch.testing.assert_close(cosines, z[data.query_rows] @ z[data.document_rows].T, rtol=0, atol=1e-9)
        assert found.protocol.fitted == len(own)
    silent, corpus = (retrieve(space, Setting.parse(f"L1:pca@4{text}")) for text in ("", " fit=corpus"))
    assert torch.equal(silent.per_query, corpus.per_query)
    assert silent.setting == corpus.setting
    for scope in ("", " fit=queries", " fit=nowhere.txt"):  # the first coordinates are nobody's
        cut = Setting.parse(f"L1:prefix@4{scope}")
        found = retrieve(space, cut).protocol
        assert found.fitted == retrieval_curve(space, cut).protocol.fitted == 0
        assert "prefix, k = 4, nothing fitted (rank 4 of 10)" in found.line()
    other = LayerRows(torch.randn(2, 90, 10), torch.ones(90).double())
    assert retrieve(space.with_text("other.txt", other), Setting.parse("L1:pca fit=other.txt")).protocol.fitted == 90


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("L1:pca fit=cross", "fit='cross' has no meaning without pairs; use corpus, queries, both"),
        ("L1:pca fit=splits", "fit='splits' has no meaning"),
        ("L1:pca fit=elsewhere", "fit='elsewhere' needs the embedded sentences"),
        ("L1:pca aggregate=mean", "aggregate='mean' has no meaning here"),
        ("L5", r"layers=\[5\] must lie between 0 and 1"),
        ("L1:pca@11", "k=11 must lie between 1 and d=10"),
        ("cls/L1", "pooling='cls' must be 'mean'"),
    ],
)
def test_a_setting_that_has_no_meaning_here_is_refused(space, text, message):
    with pytest.raises(ValueError, match=message):
        retrieve(space, Setting.parse(text))


def test_a_curve_needs_a_variant_with_k_and_texts_that_differ(space):
    with pytest.raises(ValueError, match="k has no meaning for whitening='none'"):
        retrieval_curve(space, Setting.parse("L1"))
    flat = with_judgements(torch.ones_like(space.space.values), space.data)
    with pytest.raises(ValueError, match="the same vector"):
        retrieval_curve(flat, Setting.parse("L1:pca"))


def test_of_documents_that_tie_the_one_whose_id_comes_first_stands_first(space):
    data = replace(space.data, document_ids=tuple(f"{59 - i:02}" for i in range(60)))
    tied = with_judgements(torch.ones_like(space.space.values), data)
    found = ranks(tied, torch.zeros(12, 60, dtype=torch.float64))
    assert found.tolist() == (60 - tied.document).tolist()


def test_cosines_that_are_one_but_for_rounding_are_a_tie():
    """Whitening every direction of fewer texts than dimensions leaves each text as far from one as from another."""
    wide, setting = judged_space(retrieval_set(60, 12, grades=(1, 2)), d=100), Setting.parse("L1:pca fit=both")
    in_order = ranks(wide, torch.zeros(12, 60, dtype=torch.float64))
    assert torch.equal(ranking.ranks_under(wide, fit_scope(wide.space, wide.on(setting))), in_order)
    _, z = ranking.directions(wide, wide.on(setting))
    by_k = ranking.ranks_by_k(wide, z)
    assert torch.equal(by_k[:, -1], in_order)
    assert not torch.equal(by_k[:, -2], in_order)


def test_the_first_documents_of_a_query_carry_the_grades_their_metrics_are_made_of(space):
    setting, data = Setting.parse("L1:pca"), space.data
    result = retrieve(space, setting)
    for query in range(12):
        first = hits(space, setting, query)
        found = sum(bool(hit.grade) for hit in first)
        assert found / (data.grade[data.query == query] > 0).sum() == pytest.approx(
            float(result.of("recall@10")[query])
        )
        assert [hit.cosine for hit in first] == sorted((hit.cosine for hit in first), reverse=True)
    assert {hit.grade for hit in hits(space, setting, 0, 60)} >= {None, 0.0}
    with pytest.raises(ValueError, match="query=12 must lie between 0 and q-1=11"):
        hits(space, setting, 12)


def test_a_difference_is_paired_over_queries_and_none_against_itself(space):
    raw, white = (retrieve(space, Setting.parse(text)) for text in ("L1", "L1:pca"))
    rows = against([raw, white], metric="mrr@10")
    assert rows[0].verdict == "same"
    moved = white.of("mrr@10") - raw.of("mrr@10")
    assert rows[1].difference.estimate == pytest.approx(float(moved.mean()))
    assert (rows[1].gained, rows[1].lost) == (int((moved > 0).sum()), int((moved < 0).sum()))
    low, high = rows[1].difference.low, rows[1].difference.high
    wide = (rows[1].high - rows[1].low) + (rows[0].high - rows[0].low)
    assert low <= rows[1].difference.estimate <= high
    assert high - low < wide
    with pytest.raises(ValueError, match="same queries"):
        against([raw, retrieve(judged_space(retrieval_set(20, 5)), Setting((1,)))])


def test_a_map_that_sets_all_documents_equally_far_apart_gets_no_verdict_on_either_side():
    """However often a document is there."""
    data = retrieval_set(6, 9)
    twice = replace(data, documents=(*data.documents[:4], *data.documents[:2]))
    for each in (data, twice):
        raw, white, cut = (retrieve(judged_space(each), Setting.parse(text)) for text in ("L1", "L1:pca", "L1:pca@2"))
        assert (raw.starved, white.starved, cut.starved) == (False, True, False)
        verdicts = [[one.verdict for one in against([raw, white, cut], baseline)] for baseline in range(3)]
        assert [verdict == "starved" for verdict in verdicts[1]] == [True, False, True]
        assert [row[1] for row in verdicts] == ["starved", "same", "starved"]
        assert "starved" not in (verdicts[0][2], verdicts[2][0])


@pytest.mark.parametrize(("queries", "words"), [(0, "1 document"), (1, "1 document and 1 query")])
def test_texts_are_encoded_once_and_those_cut_are_counted_again(queries, words, tmp_path):
    data = retrieval_set(6, 3)
    data = replace(data, documents=(*data.documents[:4], "a man " * 200, data.documents[0]))
    data = replace(data, queries=("a dog " * 200, *data.queries[1:])) if queries else data
    encoder = for_documents(load_encoder(str(build_model(tmp_path / "model"))))
    assert encoder.max_length == min(DOCUMENT_TOKENS, 160)
    first, report = embed_retrieval(encoder, data, store=Store(tmp_path / "store"))
    again, nothing = embed_retrieval(encoder, data, store=Store(tmp_path / "store"))
    assert (report.encoded, nothing.encoded, first.truncated, again.truncated) == (8, 0, 1, 1)
    setting = Setting.parse("L3:pca@2")
    assert retrieve(first, setting).as_dict() == retrieve(again, setting).as_dict()
    assert retrieve(first, setting).as_dict()["truncated_queries"] == queries
    assert retrieve(first, setting).line().endswith(f"at most 160 tokens, {words} cut")


@pytest.mark.published
@pytest.mark.model
def test_cranfield_has_the_scores_that_trec_eval_gives_its_files(tmp_path):
    """All of it is read; what was judged for thirty queries goes through one block of the model and all that ranks."""
    documents, queries = (
        {row["_id"]: row for row in map(json.loads, (CRANFIELD / name).read_text("utf-8").splitlines())}
        for name in ("corpus.jsonl", "queries.jsonl")
    )
    judged = [line.split("\t") for line in (CRANFIELD / "qrels" / "test.tsv").read_text().splitlines()[1:]]
    data = load_retrieval(CRANFIELD)
    assert data.queries == tuple(row["text"] for row in queries.values())
    assert data.documents == tuple(f"{row['title']} {row['text']}".strip() for row in documents.values())
    assert [*zip(np.array(data.query_ids)[data.query], np.array(data.document_ids)[data.document], strict=True)] == [
        (query, document) for query, document, _ in judged
    ]

    asked = {name: row["text"] for name, row in [*queries.items()][:30]}
    judged = [(query, document, int(grade)) for query, document, grade in judged if query in asked]
    there = {name: (documents[name]["title"], documents[name]["text"]) for _, name, _ in judged}
    encoder = for_documents(load_encoder("bundled:1", device="cpu"))
    space, _ = embed_retrieval(encoder, load_retrieval(write_retrieval(tmp_path, there, asked, judged)))
    long = [one for one in map(" ".join, there.values()) if len(encoder.tokenizer(one)["input_ids"]) > 256]
    assert (encoder.max_length, space.truncated) == (256, len(long))
    assert len(long) > 20
    cut = encoder.tokenizer(long[:1], truncation=True, max_length=256, return_tensors="pt")
    with torch.inference_mode():
        plain = encoder.model(**cut, output_hidden_states=True).hidden_states[1].mean(dim=1)
    rows = {text: i for i, text in enumerate(space.data.sentences)}
    torch.testing.assert_close(space.space.values[1, [rows[long[0]]]], plain, atol=1e-5, rtol=1e-4)

    found = retrieve(space, Setting.parse("L0+L1:pca@128")).means
    x = reference.combined(space.space, (0, 1))
    corpus = x[[rows[" ".join(one)] for one in there.values()]]
    questions = x[[rows[text] for text in asked.values()]]
    z, q = (reference.unit(reference.whiten(corpus, part, "pca", 128)) for part in (corpus, questions))
    run = {query: dict(zip(there, row, strict=True)) for query, row in zip(asked, (q @ z.T).tolist(), strict=True)}
    grades = {query: {document: grade for one, document, grade in judged if one == query} for query in asked}
    by_trec_eval = ir_measures.calc_aggregate(TREC.values(), grades, run)
    assert found == pytest.approx({name: by_trec_eval[measure] for name, measure in TREC.items()}, abs=1e-9)
    raw = retrieve(space, Setting.parse("L0+L1")).means
    assert all(abs(found[name] - raw[name]) > 1e-3 for name in TREC)
