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


def numbered(path, numbers, names="doc,title,body"):
    return write(
        path, f"{names}\n" + "\n".join(f"{n},a thing {i},what is said of it {i}" for i, n in enumerate(numbers))
    )


GROUPS, MIXED = [i // 3 for i in range(36)], [3 * (17 * i % 50) for i in range(50)]


@pytest.mark.parametrize(
    ("numbers", "called"),
    [
        (GROUPS, "running number"),
        (MIXED, "whole numbers, all different"),
        (range(12), "running number"),
        ([*range(7, 60), "nan"], "running number"),
    ],
)
def test_a_running_number_is_no_score(tmp_path, numbers, called):
    """Documents by number, title and body are no pairs with a score; nor are they by one more number."""
    documents = numbered(tmp_path / "a.csv", numbers)
    with pytest.raises(UnclearColumns, match=rf"'doc' \({called}\), 'title' \(text\), 'body' \(text\); .*--columns"):
        load(documents)
    years = documents.read_text().replace("body\n", "body,year\n")
    with pytest.raises(UnclearColumns):
        load(
            write(
                tmp_path / "b.csv",
                "\n".join(f"{line},{1990 + i % 7}" if i else line for i, line in enumerate(years.splitlines())),
            )
        )


def test_of_sentences_that_are_named_only_what_counts_the_rows_is_no_score(tmp_path):
    for numbers in (GROUPS, MIXED):
        assert load(numbered(tmp_path / "a.csv", numbers, "mark,sentence1,sentence2")).gold.tolist() == numbers
    with pytest.raises(UnclearColumns, match=r"'index' \(running number\), 'sentence1' \(text\)"):
        load(numbered(tmp_path / "b.csv", range(12), "index,sentence1,sentence2"))


@pytest.mark.parametrize(
    "marks",
    [
        [i % 40 for i in range(60)],
        [i + 0.5 for i in range(60)],
        [2 * i for i in range(49)],
        [i // 6 for i in range(66)],
        [i + i // 2 for i in range(12)],
        range(11),
    ],
)
def test_scores_that_are_in_order_or_many_or_all_different_are_scores(tmp_path, marks):
    assert load(numbered(tmp_path / "a.csv", marks, "mark,one,other")).gold.tolist() == list(marks)


ODD = "id,premise text,the other,mean mark,spread,from\n1,a,b,2,0.1,news\n2,c,d,3,0.2,web\n3,e,f,many,0.3,web\n"


@pytest.mark.parametrize("asked", [("premise text", "the other", "mean mark"), ("the other", "premise text", "spread")])
def test_named_columns_are_read_as_under_names_that_are_known(tmp_path, asked):
    odd = write(tmp_path / "a" / "odd.csv", ODD.replace("many", "4"))
    header, _, body = ODD.replace("many", "4").partition("\n")
    known = dict(zip(asked, ("sentence1", "sentence2", "score"), strict=True))
    header = ",".join(known.get(name, name) for name in header.split(","))
    renamed = write(tmp_path / "b" / "odd.csv", f"{header}\n{body}")
    got, wanted = load(odd, columns=asked), load(renamed)
    assert (got.first, got.second, got.gold.tolist()) == (wanted.first, wanted.second, wanted.gold.tolist())
    assert got.subset_names == ("odd",)


def test_a_fourth_column_is_the_subset_and_rows_that_cannot_be_used_are_told(tmp_path):
    odd = write(tmp_path / "odd.csv", ODD)
    asked = ("premise text", "the other", "mean mark", "from")
    with pytest.raises(MalformedRows) as error:
        load(odd, columns=asked)
    assert reasons(error) == [(4, "score 'many' is not a number")]
    pairs = load(odd, columns=asked, keep_going=True)
    assert (pairs.subset_names, pairs.subset.tolist()) == (("news", "web"), [0, 1])


def test_columns_without_names_are_called_by_their_place(tmp_path):
    rows = "".join(f"{i}\ta {i}\tb {i}\t{i % 3}\n" for i in range(5))
    pairs = load(write(tmp_path / "a.tsv", rows), columns=("column 2", "column 3", "column 4"))
    assert (pairs.first[0], pairs.second[4], pairs.gold.tolist()) == ("a 0", "b 4", [0, 1, 2, 0, 1])


def test_columns_of_one_name_or_none_are_called_as_they_are_shown(tmp_path):
    table = write(tmp_path / "a.csv", "utt,utt,,spread,\na,b,2,0.1,x\nc,d,3,0.2,y\n")
    pairs = load(table, columns=("utt", "utt (2)", "(no name)"))
    assert (pairs.first, pairs.second, pairs.gold.tolist()) == (("a", "c"), ("b", "d"), [2.0, 3.0])
    with pytest.raises(DataError, match=r"score='mark' must be one of the columns utt, utt \(2\), \(no name\), spread"):
        load(table, columns=("utt", "utt (2)", "mark"))


def test_a_first_line_that_no_score_stands_in_is_names_where_columns_are_chosen_by_place(tmp_path):
    """As a message calls columns whose names it does not take for such."""
    odd = write(tmp_path / "a.csv", "utt,utt,,mark,\na,b,2,0.1,x\nc,d,3,0.2,y\n")
    pairs = load(odd, columns=("column 1", "column 2", "column 4"))
    assert (pairs.first, pairs.second, pairs.gold.tolist()) == (("a", "c"), ("b", "d"), [0.1, 0.2])
    assert any("the first line was taken for column names: 'utt', 'utt', '', 'mark'" in note for note in pairs.notes)


@pytest.mark.parametrize(
    ("rows", "reason"),
    [
        ("a cat sits right there\ta dog\tn/a\nc\td\t3\ne\tf\t4\n", "score 'n/a' is not a number"),
        ("a cat\ta dog\t\nc\td\t3\ne\tf\t4\n", "score is empty"),
        ("a cat\ta dog\tn/a\nc\td\tno\ne\tf\tnone\n", "score 'n/a' is not a number"),
        ("one cell\na cat\ta dog\tn/a\nc\td\t3\ne\tf\t4\n", "score 'n/a' is not a number"),
    ],
)
def test_a_first_pair_is_no_names_for_want_of_a_score(tmp_path, rows, reason):
    with pytest.raises(MalformedRows) as error:
        load(write(tmp_path / "b.tsv", rows), columns=("column 1", "column 2", "column 3"))
    assert reason in [why for _, why in reasons(error)]


def test_names_in_the_first_line_are_names_whatever_stands_below(tmp_path):
    """Where no column holds numbers, the first line is taken for a row, unless it has the names that are asked for."""
    text = "left side of it\tright side of it\tmark\na cat\ta dog\t\n"
    with pytest.raises(MalformedRows) as error:
        load(write(tmp_path / "a.tsv", text), columns=("left side of it", "right side of it", "mark"))
    assert [line for line, _ in reasons(error)] == [2]


@pytest.mark.parametrize(
    ("columns", "message"),
    [
        (("premise text", "the other"), "must name three columns"),
        ("abc", "must name three columns"),
        (None, "columns=None must name three columns"),
        (5, "columns=5 must name three columns"),
        (iter("abc"), "must name three columns"),
        (("premise text", "the other", "mark"), "score='mark' must be one of the columns id, premise text, the other"),
        (("premise text", "premise text", "spread"), "'premise text' cannot be first and second at once"),
    ],
)
def test_columns_that_are_not_there_are_refused(tmp_path, columns, message):
    with pytest.raises(DataError, match=message):
        load(write(tmp_path / "odd.csv", ODD), columns=columns)


def test_columns_of_data_that_have_their_own_are_refused():
    with pytest.raises(DataError, match=r"the bundled pairs have columns of their own, so columns=\['a', 'b', 'c'\]"):
        load("demo", columns=("a", "b", "c"))


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
