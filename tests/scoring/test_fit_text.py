"""The text of a fit scope: where it is read from, and what counts as a row of it."""

import json
from collections import Counter

import pytest

from tests.conftest import make_space
from whitelab.datasets import DataError, MalformedRows, load
from whitelab.scoring.fit_text import scope_text, with_fit_text
from whitelab.scoring.setting import Setting


def tables(folder, **files):
    for name, rows in files.items():
        lines = ["sentence1,sentence2,score", *(f"{a},{b},{gold}" for a, b, gold in rows)]
        (folder / f"{name}.csv").write_text("\n".join(lines))


def test_splits_are_every_split_of_the_task(tmp_path):
    for split in ("train", "dev", "test"):
        (tmp_path / f"stsb-en-{split}.csv").write_text(f'a {split} cat,a dog,1.0\na {split} cat,"a {split}, hen",2.0\n')
    found = scope_text("splits", str(tmp_path), "stsb")
    assert found == Counter(
        {"a dog": 3}
        | {f"a {s} cat": 2 for s in ("train", "dev", "test")}
        | {f"a {s}, hen": 1 for s in ("train", "dev", "test")}
    )


def test_a_text_file_is_one_sentence_a_line_even_with_commas(tmp_path):
    path = tmp_path / "nli.txt"
    path.write_text("A man, a plan, a canal.\n\nTwo dogs, three cats, one bird.\nA man, a plan, a canal.\n")
    assert scope_text(str(path), "demo", "demo") == Counter(
        {"A man, a plan, a canal.": 2, "Two dogs, three cats, one bird.": 1}
    )


def test_a_folder_stands_for_all_its_tasks(tmp_path):
    tables(tmp_path, one=[("a", "b", 1), ("c", "d", 2)], two=[("a", "e", 3)])
    assert scope_text(str(tmp_path), "demo", "demo") == Counter({"a": 2, "b": 1, "c": 1, "d": 1, "e": 1})


NLI = [("A cat sits.", "An animal sits.", "entailment"), ("A cat sits.", "A dog runs.", "contradiction")]
TRIPLET = ("A cat sits.", "An animal sits.", "A dog runs.")


@pytest.mark.parametrize(
    ("name", "names", "rows", "expected"),
    [
        ("nli.csv", ("premise", "hypothesis", "label"), NLI, [row[:2] for row in NLI]),
        ("nli.jsonl", ("premise", "hypothesis", "label"), NLI, [row[:2] for row in NLI]),
        ("snli.tsv", ("gold_label", "sentence1", "sentence2"), [row[::-1] for row in NLI], [row[:2] for row in NLI]),
        ("triplets.csv", ("anchor", "positive", "negative"), [TRIPLET], [TRIPLET]),
        ("pairs.tsv", ("anchor", "positive"), [TRIPLET[:2]], [TRIPLET[:2]]),
        ("texts.csv", ("text",), [row[:1] for row in NLI], [row[:1] for row in NLI]),
        ("labelled.csv", ("label", "sentence"), [row[1:][::-1] for row in NLI], [row[1:2] for row in NLI]),
        ("numbered.jsonl", ("id", "text"), [("1", "A cat sits.")], [("A cat sits.",)]),
    ],
)
def test_text_needs_no_gold_scores(tmp_path, name, names, rows, expected):
    path, between = tmp_path / name, "\t" if name.endswith(".tsv") else ","
    lines = [between.join(row) for row in (names, *rows)]
    if name.endswith(".jsonl"):
        lines = [json.dumps(dict(zip(names, row, strict=True))) for row in rows]
    path.write_text("\n".join(lines))
    for data in (path, tmp_path):  # a file, and the folder of it
        assert scope_text(str(data), "", None) == Counter(text for row in expected for text in row)
    assert scope_text("splits", str(tmp_path), path.stem) == Counter(text for row in expected for text in row)
    with pytest.raises(DataError):
        load(path)


@pytest.mark.parametrize(("name", "between"), [("lines.csv", ","), ("lines.tsv", "\t")])
def test_a_table_of_one_column_without_a_name_is_a_sentence_a_line(tmp_path, name, between):
    path = tmp_path / name
    path.write_text('A man plays the guitar.\n"A dog, he said, runs."\nYes.\n')
    assert set(scope_text(str(path), "", None)) == {"A man plays the guitar.", "A dog, he said, runs.", "Yes."}
    path.write_text(f"A man plays the guitar.\nA dog runs.\na{between}b{between}c\nYes.\n")
    with pytest.raises(MalformedRows, match=rf"{name}:3: 3 columns where 1 is expected"):
        scope_text(str(path), "", None)


@pytest.mark.parametrize(
    ("name", "lines"),
    [
        ("renamed.tsv", ["A man plays the guitar.,A dog runs.,3", "A man,A dog,4"]),
        ("one.csv", ["A man plays the guitar.\tA dog runs.", "A cat sleeps.", "A dog runs."]),
        ("numbers.csv", ["1.5", "2.5"]),
    ],
)
def test_a_table_of_one_column_that_may_be_something_else_is_refused(tmp_path, name, lines):
    (tmp_path / name).write_text("\n".join(lines))
    with pytest.raises(DataError, match="columns found: "):
        scope_text(str(tmp_path / name), "", None)


@pytest.mark.parametrize("name", ["score", "closeness"])
def test_where_there_are_gold_scores_a_row_without_one_is_malformed(tmp_path, name):
    (tmp_path / "some.csv").write_text(f"sentence1,sentence2,{name}\na,b,1\nc,d,none\ne,f,2\n")
    with pytest.raises(MalformedRows, match=r"some.csv:3: score 'none' is not a number"):
        scope_text(str(tmp_path), "", None)
    assert scope_text(str(tmp_path), "", None, keep_going=True) == Counter("abef")


def test_a_row_of_text_that_lacks_one_is_malformed(tmp_path):
    (tmp_path / "nli.csv").write_text("premise,hypothesis,label\na,b,neutral\n,d,neutral\n")
    with pytest.raises(MalformedRows, match=r"nli.csv:3: premise is empty"):
        scope_text(str(tmp_path), "", None)
    assert scope_text(str(tmp_path), "", None, keep_going=True) == Counter("ab")
    (tmp_path / "nli.csv").write_text("premise,hypothesis,label\n")
    with pytest.raises(DataError, match="column names only"):
        scope_text(str(tmp_path), "", None)


def test_the_demonstration_set_can_be_a_fit_corpus():
    assert scope_text("demo", "anything", "any").total() == 2880


def test_text_that_is_not_there_is_refused(tmp_path):
    with pytest.raises(DataError, match="no such file or folder"):
        scope_text(str(tmp_path / "missing.txt"), "demo", "demo")


def test_a_space_takes_up_the_text_that_its_setting_fits_on(tmp_path):
    path, space, asked = tmp_path / "nli.txt", make_space(), []
    path.write_text("A man.\nTwo dogs.\nA man.\n")

    def embedded(sentences):
        asked.append(sentences)
        return space.values[:, : len(sentences)]

    for fit in ("task", "cross"):
        assert with_fit_text(space, Setting(whitening="pca", fit=fit), embedded) is space
    carrying = with_fit_text(space, Setting(whitening="pca", fit=str(path)), embedded)
    assert asked == [("A man.", "Two dogs.")]
    assert carrying.texts[str(path)].counts.tolist() == [2, 1]
