"""Retrieval sets: folders in BEIR's layout, and made-up embeddings with judgements."""

import json
from pathlib import Path

import numpy as np
import torch
from ir_measures import AP, RR, R, nDCG

from whitelab.datasets import RetrievalSet
from whitelab.retrieval.embedded import RetrievalSpace, with_judgements

# whitelab's name of a metric -> trec_eval's measure
TREC = {"ndcg@10": nDCG @ 10, "mrr@10": RR @ 10, "map@100": AP @ 100, "recall@10": R @ 10, "recall@100": R @ 100}

DOCUMENTS = {"d1": ("Bread", "the dog finds some fresh bread"), "d2": ("", "a singer plays a guitar"), "d3": ("", "")}
QUERIES = {"q1": "who plays", "q2": "what is eaten"}
GRADES = (("q1", "d2", 2), ("q1", "d1", 0), ("q2", "d1", 1))


def write_retrieval(folder: Path, documents=DOCUMENTS, queries=QUERIES, grades=GRADES, split="test") -> Path:
    """A folder in BEIR's layout; `documents` are titles and texts by id, `queries` texts by id."""
    (folder / "qrels").mkdir(parents=True, exist_ok=True)
    corpus = [{"_id": name, "title": title, "text": text} for name, (title, text) in documents.items()]
    asked = [{"_id": name, "text": text} for name, text in queries.items()]
    for name, rows in (("corpus", corpus), ("queries", asked)):
        (folder / f"{name}.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows), "utf-8")
    lines = ["query-id\tcorpus-id\tscore", *("\t".join(map(str, row)) for row in grades)]
    (folder / "qrels" / f"{split}.tsv").write_text("\n".join(lines) + "\n")
    return folder


def retrieval_set(documents=40, queries=9, most=6, grades=(1,), seed=0) -> RetrievalSet:
    """A set without text worth reading: every query has 1 to `most` relevant documents, and some judged 0."""
    rng, rows = np.random.default_rng(seed), []
    for query in range(queries):
        count = int(rng.integers(1, most + 1))
        chosen = rng.permutation(documents)[: count + 2]
        rows += [(query, int(one), float(rng.choice(grades)) if i < count else 0.0) for i, one in enumerate(chosen)]
    return RetrievalSet(
        "made up",
        tuple(f"d{i}" for i in range(documents)),
        tuple(f"document {i}" for i in range(documents)),
        tuple(f"q{i}" for i in range(queries)),
        tuple(f"query {i}" for i in range(queries)),
        *map(np.array, zip(*rows, strict=True)),
    )


def judged_space(data: RetrievalSet, layers=2, d=8, seed=0) -> RetrievalSpace:
    """Random embeddings off the origin with unequal directions, queries near a document that answers them."""
    rng = np.random.default_rng(seed)
    values = rng.standard_normal((layers, len(data.sentences), d)) * np.linspace(2, 0.3, d) + rng.standard_normal(d)
    for query, document, grade in zip(data.query, data.document, data.grade, strict=True):
        if grade > 0:
            near = values[:, data.document_rows[document]]
            values[:, data.query_rows[query]] = 0.35 * near + 0.65 * values[:, data.query_rows[query]]
    return with_judgements(torch.from_numpy(values.astype(np.float32)), data)
