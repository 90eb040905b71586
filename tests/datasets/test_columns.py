"""Which column is which: by name, by content where one choice is left, and otherwise by asking."""

import pytest
from pair_files import HEADER, reasons, write, write_records

from whitelab.datasets import DataError, MalformedRows, load
from whitelab.datasets.columns import UnclearColumns


@pytest.mark.parametrize(
    ("first", "second", "score"),
    [
        ("sentence1", "sentence2", "score"),
        ("Sentence_A", "Sentence_B", "relatedness_score"),
        ("TEXT1", "TEXT2", "Label"),
        ("s1", "s2", "gold"),
        ("sentence 1", "sentence 2", "similarity"),
    ],
)
@pytest.mark.parametrize("suffix", ["csv", "tsv", "jsonl", "parquet"])
def test_known_names_are_found_in_any_order_and_case(tmp_path, first, second, score, suffix):
    records = [{"id": 7, second: "b", score: 1.5, first: "a"}, {"id": 8, second: "d", score: 2, first: "c"}]
    pairs = load(write_records(tmp_path / f"mine.{suffix}", records))
    assert (pairs.first, pairs.second, pairs.gold.tolist()) == (("a", "c"), ("b", "d"), [1.5, 2.0])
    assert (pairs.task, pairs.split, pairs.published, pairs.notes) == ("mine", "all", False, ())
    assert pairs.subset_names == ("mine",)


def test_columns_are_recognised_by_content_when_one_choice_is_left(tmp_path):
    pairs = load(write(tmp_path / "a.tsv", "2.0\ta cat\ta dog\n3\tone\ttwo\n"))
    assert (pairs.first, pairs.gold.tolist()) == (("a cat", "one"), [2.0, 3.0])
    assert any("recognised by content" in note for note in pairs.notes)


def test_unknown_column_names_are_recognised_and_told(tmp_path):
    pairs = load(write(tmp_path / "a.tsv", "left\tright\tmark\na cat\ta dog\t2\none\ttwo\t3\n"))
    assert pairs.n_pairs == 2
    assert any("taken for column names: 'left', 'right', 'mark'" in note for note in pairs.notes)


def test_a_first_row_with_a_bad_score_is_not_taken_for_names(tmp_path):
    rows = "the cat sat down there\tthe dog sat down there\tn/a\none\ttwo\t3\nthree\tfour\t4\n"
    with pytest.raises(MalformedRows) as error:
        load(write(tmp_path / "a.tsv", rows))
    assert reasons(error) == [(1, "score 'n/a' is not a number")]


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("id\tleft\tright\tmark\n1\ta\tb\t2\n2\tc\td\t3\n", r"'id' \(number\), 'left' \(text\)"),
        ("left\tright\tnote\tmark\na\tb\tx\t2\nc\td\ty\t3\n", r"'note' \(text\)"),
        ("left\tright\na\tb\nc\td\n", r"'column 1' \(text, first 'left'\), 'column 2' \(text, first 'right'\)"),
        ("sentence1\ts1\tsentence2\ts2\tscore\na\tb\tc\td\t1\n", "sentence1"),
        ("sentence1\tsentence2\tscore\tgold\na\tb\t1\t2\n", r"'gold' \(number\)"),
    ],
)
def test_an_unclear_table_lists_its_columns_and_what_is_needed(tmp_path, text, found):
    with pytest.raises(UnclearColumns, match=f"columns found: .*{found}.*name them sentence1, sentence2 and score"):
        load(write(tmp_path / "a.tsv", text))


def test_a_textual_label_beside_a_score_does_not_confuse(tmp_path):
    text = "sentence1\tsentence2\tlabel\tsimilarity\na\tb\tNEUTRAL\t2\nc\td\tENTAILMENT\t3\n"
    assert load(write(tmp_path / "a.tsv", text)).gold.tolist() == [2.0, 3.0]


def test_a_column_named_twice_is_refused(tmp_path):
    with pytest.raises(DataError, match="two columns are named 'score'; rename one"):
        load(write(tmp_path / "a.tsv", "sentence1\tsentence2\tscore\tscore\na\tb\t1\t2\n"))


def test_tabs_under_the_extension_csv_are_read_and_pointed_out_where_they_make_no_table(tmp_path):
    pairs = load(write(tmp_path / "a.csv", HEADER + "one, two, and three\tb, too, here\t1\nc\td\t2\n"))
    assert (pairs.first, pairs.second) == (("one, two, and three", "c"), ("b, too, here", "d"))
    with pytest.raises(DataError, match="give it the extension .tsv"):
        load(write(tmp_path / "b.csv", "a\tb\nc\nd\ne\n"))


@pytest.mark.parametrize("name", ["subset", "Genre", "dataset"])
def test_a_subset_column_gives_subsets_in_order_of_appearance(tmp_path, name):
    pairs = load(write(tmp_path / "a.csv", f"s1,s2,score,{name},kind\na,b,1,z,p\nc,d,2,y,\ne,f,3,z,q\n"))
    assert pairs.subset_names == ("z", "y")
    assert pairs.subset.tolist() == [0, 1, 0]
    assert (pairs.first, pairs.second) == (("a", "c", "e"), ("b", "d", "f"))  # the kinds are no sentences
