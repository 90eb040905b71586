"""What the demonstration search set promises in its README."""

import re
from collections import Counter

import numpy as np
from processes import ROOT

from whitelab.datasets import load, load_retrieval


def test_the_set_has_as_many_passages_queries_and_grades_as_its_readme_says():
    found = load_retrieval("demo-search")
    assert found.sentences == load_retrieval("demo").sentences
    assert (len(found.documents), len(found.queries), found.notes, found.problems) == (300, 80, (), ())
    assert len(found.sentences) == 380  # no text twice
    readme = (ROOT / "data" / "demo-search" / "README.md").read_text()
    said = {float(grade): int(count) for grade, count in re.findall(r"^\| (\d) \| [^|]+ \| (\d+) \|$", readme, re.M)}
    assert said == Counter(found.grade.tolist())
    best = np.zeros(80)
    np.maximum.at(best, found.query, found.grade)
    assert best.tolist() == [2] * 80
    assert not set(found.sentences) & set(load("demo").sentences)


def test_queries_are_worded_otherwise_than_the_passages_that_answer_them():
    found = load_retrieval("demo")
    words = [set(re.findall(r"\w+", text.lower())) for text in (*found.queries, *found.documents)]
    answers = found.grade == 2
    shared = [
        len(words[query] & words[80 + document]) / len(words[query])
        for query, document in zip(found.query[answers], found.document[answers], strict=True)
    ]
    assert np.mean(shared) < 0.4
