"""Laws of the metrics: what trec_eval and sentence_transformers' evaluator give for the same ranking."""

import ir_measures
import pytest
import torch
from judged import TREC, judged_space, retrieval_set
from sentence_transformers.sentence_transformer.evaluation import InformationRetrievalEvaluator
from sentence_transformers.util import cos_sim

from whitelab.retrieval.metrics import METRICS, Relevant, measured
from whitelab.retrieval.ranking import cosines
from whitelab.retrieval.relevance import retrieve
from whitelab.scoring.fit_scopes import fit_scope
from whitelab.scoring.setting import Setting


class Given(InformationRetrievalEvaluator):
    """The evaluator on vectors that are there, by text, in place of a model's."""

    def __init__(self, vectors, **options):
        super().__init__(**options, score_functions={"cosine": cos_sim}, precision_recall_at_k=[10, 100])
        self.vectors = vectors

    def embed_inputs(self, model, sentences, **options):
        return torch.stack([self.vectors[text] for text in sentences])


def evaluated(space, setting) -> dict[str, float]:
    """The metrics of sentence_transformers' evaluator."""
    data, rows = space.data, space.space.combine(setting.layers)
    relevant = {name: set() for name in data.query_ids}
    for query, document, grade in zip(data.query, data.document, data.grade, strict=True):
        if grade > 0:
            relevant[data.query_ids[query]].add(data.document_ids[document])
    found = Given(
        dict(zip(data.sentences, rows, strict=True)),
        queries=dict(zip(data.query_ids, data.queries, strict=True)),
        corpus=dict(zip(data.document_ids, data.documents, strict=True)),
        relevant_docs=relevant,
    ).compute_all_metrics(None)["cosine"]
    parts = {"ndcg@10": "ndcg@k", "mrr@10": "mrr@k", "map@100": "map@k", "recall@10": "recall@k"}
    parts["recall@100"] = "recall@k"
    return {name: found[part][METRICS[name].depth] for name, part in parts.items()}


def by_trec_eval(space, result) -> dict[str, list[float]]:
    """Every metric of every query, from trec_eval's own code."""
    data = space.data
    scores = cosines(space, fit_scope(space.space, space.on(result.setting)))
    grades, run = ({name: {} for name in data.query_ids} for _ in range(2))
    for query, document, grade in zip(data.query, data.document, data.grade, strict=True):
        grades[data.query_ids[query]][data.document_ids[document]] = int(grade)
    for name, row in zip(data.query_ids, scores.tolist(), strict=True):
        run[name] = dict(zip(data.document_ids, row, strict=True))
    rows = {(one.query_id, one.measure): one.value for one in ir_measures.iter_calc(TREC.values(), grades, run)}
    return {name: [rows[query, measure] for query in data.query_ids] for name, measure in TREC.items()}


@pytest.mark.parametrize(("documents", "most"), [(12, 3), (300, 40)])
def test_metrics_are_those_of_sentence_transformers_evaluator_where_grades_are_equal(documents, most):
    setting = Setting((0, 1))
    space = judged_space(retrieval_set(documents, 15, most))
    assert retrieve(space, setting).means == pytest.approx(evaluated(space, setting), abs=1e-6)


@pytest.mark.parametrize("grades", [(1,), (1, 2, 3)])
@pytest.mark.parametrize("documents", [9, 400])
def test_metrics_of_every_query_are_those_of_trec_eval_with_any_grades(grades, documents):
    space = judged_space(retrieval_set(documents, 15, 7, grades))
    result = retrieve(space, Setting((1,)))
    for name, wanted in by_trec_eval(space, result).items():
        assert result.of(name).tolist() == pytest.approx(wanted, abs=1e-9), name


def test_of_more_than_a_hundred_relevant_documents_all_count_in_map_as_in_trec_eval():
    space = judged_space(retrieval_set(400, 1, 200, seed=3))
    assert len(space.document) > 100
    result, setting = retrieve(space, Setting((1,))), Setting((1,))
    assert result.means["map@100"] == pytest.approx(by_trec_eval(space, result)["map@100"][0], abs=1e-9)
    assert evaluated(space, setting)["map@100"] == pytest.approx(
        result.means["map@100"] * len(space.document) / 100, abs=1e-6
    )


def test_the_best_ranking_has_every_metric_1_and_one_below_the_cut_0():
    relevant = Relevant(torch.tensor([1, 0, 1, 1]), torch.tensor([1.0, 2.0, 3.0, 1.0]).double(), 2)
    assert relevant.ideal()[:, 0].tolist() == [2, 1, 1, 3]
    assert measured(relevant.ideal(), relevant).flatten().tolist() == pytest.approx([1] * 10)
    assert measured(relevant.ideal() + 100, relevant).flatten().tolist() == [0] * 10
