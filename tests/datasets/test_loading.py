"""Laws of loading: nothing is lost or changed unseen, and every problem has its file, line and reason."""

import pickle

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from pair_files import GOOD, HEADER, write
from processes import run_python

from whitelab.datasets import (
    DataError,
    MalformedRows,
    Problem,
    load,
    load_labelled,
    load_sentences,
    load_text,
    loading,
    tabs_note,
)

# --- malformed rows ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("row", "reason"),
    [
        ("a\tb", "2 columns where 3 are expected"),
        ("a\tb\t1\tx", "4 columns where 3 are expected"),
        ("a", "1 column where 3 are expected"),
        ("\tb\t1", "first sentence is empty"),
        ("a\t \u00a0\t1", "second sentence is empty"),
        ("\t\t", "first sentence is empty"),
        ("a\tb\t", "score is empty"),
        ("a\tb\tgood", "score 'good' is not a number"),
        ("a\tb\t3,5", "score '3,5', with a comma, is not a number"),
        ("a\tb\t1_0", "score '1_0' is not a number"),
        ("a\tb\tNaN", "score 'NaN' is not a finite number"),
        ("a\tb\t-inf", "score '-inf' is not a finite number"),
        ("a\tb\t1e999", "score '1e999' is not a finite number"),
        ("a\0b\tb\t1", r"first sentence holds a NUL byte (UTF-16 needs a byte-order mark)"),
        ("", "blank line"),
    ],
)
def test_a_malformed_row_is_told_with_file_line_and_reason_and_left_out_on_request_only(tmp_path, row, reason):
    path = write(tmp_path / "a.tsv", HEADER + "\t".join(GOOD) + "\n" + row + "\none\ttwo\t3\n")
    with pytest.raises(MalformedRows) as error:
        load(path)
    assert error.value.problems == (Problem(str(path), 3, reason),)
    assert f"{path}:3: {reason}" in str(error.value)
    pairs = load(path, keep_going=True)
    assert pairs.first == ("a cat", "one")
    assert pairs.problems == (Problem(str(path), 3, reason),)
    assert "malformed rows left out: 1, rows kept: 2" in pairs.notes


def test_the_message_counts_all_shows_one_of_each_kind_and_says_how_to_go_on(tmp_path):
    few, many = "a\tb\t\n" * 3, "".join(f"a\tb\t{'x' * i}'{i}\n" for i in range(0, 90, 10))
    path = write(tmp_path / "a.tsv", HEADER + few + many + "a\tb\t1\n" * 6)
    with pytest.raises(MalformedRows, match=r"^12 malformed rows: .*keep_going=True$") as error:
        load(path)
    shown = f'{path}:5: score "\'0" is not a number (9 such rows); {path}:2: score is empty (3 such rows); fix them'
    assert shown in str(error.value)
    assert len(error.value.problems) == 12
    assert "\n" not in str(error.value)
    copy = pickle.loads(pickle.dumps(error.value))
    assert (str(copy), copy.problems) == (str(error.value), error.value.problems)


def test_three_rows_are_all_shown_and_of_many_kinds_five(tmp_path):
    words = ["a\tb\t1\tx", "a", "\tb\t1", "a\t\t1", "a\tb\t", "a\tb\tNaN"]
    for rows, shown in ((["a\tb\tx"] * 3, 3), (words, 5)):
        with pytest.raises(MalformedRows) as error:
            load(write(tmp_path / "a.tsv", HEADER + "\n".join([*rows, "a\tb\t1"])))
        assert str(error.value).count("a.tsv:") == shown
        assert ("; ...; " in str(error.value)) == (len(rows) > shown)


def test_where_no_row_is_left_the_rest_is_not_advised_and_scores_that_are_labels_are_sent_to_the_probe(tmp_path):
    labels = write(tmp_path / "a.tsv", HEADER + "a\tb\tsimilar\nc\td\tdifferent\n")
    for keep_going in (False, True):
        with pytest.raises(MalformedRows, match="no row is left to keep: .* give pairs with labels to the probe$"):
            load(labels, keep_going=keep_going)
    assert load_labelled(labels, positive="similar").pairs
    with pytest.raises(MalformedRows, match="no row is left to keep$"):
        load(write(tmp_path / "b.tsv", HEADER + "a\t\t1\n"))


def test_keeping_the_rest_of_nothing_is_an_error(tmp_path):
    with pytest.raises(MalformedRows, match="no row is left"):
        load(write(tmp_path / "a.tsv", HEADER + "a\tb\tx\n"), keep_going=True)


# --- notes -------------------------------------------------------------------------------------------------


def test_one_pair_loads_with_a_note(tmp_path):
    pairs = load(write(tmp_path / "a.tsv", HEADER + "a\tb\t1\n"))
    assert pairs.n_pairs == 1
    assert pairs.notes == ("one pair only: Spearman is undefined",)


def test_constant_gold_loads_with_a_note(tmp_path):
    pairs = load(write(tmp_path / "a.tsv", HEADER + "a\tb\t3\nc\td\t3.0\n"))
    assert pairs.notes == ("every gold score is 3: Spearman is undefined",)


def test_constant_gold_in_one_subset_is_noted(tmp_path):
    rows = "a,b,1,x\nc,d,2,x\ne,f,3,y\ng,h,3,y\n"
    assert "in: y" in load(write(tmp_path / "a.csv", "s1,s2,score,subset\n" + rows)).notes[0]


def test_scores_on_another_scale_are_kept_with_a_note(tmp_path):
    pairs = load(write(tmp_path / "a.tsv", HEADER + "a\tb\t-1\nc\td\t100\n"))
    assert pairs.gold.tolist() == [-1.0, 100.0]
    assert pairs.notes == ("gold scores run from -1 to 100, outside the STS scale of 0 to 5",)
    (note,) = load(write(tmp_path / "a.tsv", HEADER + "a\tb\t-5\nc\td\t-0.0\n")).notes
    assert note.startswith("gold scores run from -5 to 0, ")


# --- plain text --------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("again", "told"), [(1, False), (2, True)])
def test_pairs_that_are_there_again_are_noted_either_way_round_where_they_are_many(tmp_path, again, told):
    pairs = [(f"a {i}", f"b {i}") for i in range(12)]
    rows = [*pairs, *(pair[::-1] for pair in pairs[:again])]
    (tmp_path / "a.tsv").write_text("".join(f"{a}\t{b}\t{i % 5}\n" for i, (a, b) in enumerate(rows)))
    found = load(tmp_path / "a.tsv")
    assert found.n_pairs == 12 + again
    assert any("2 of 14 pairs repeat another" in note for note in found.notes) is told


def test_a_plain_corpus_is_one_sentence_a_line(tmp_path):
    path = write(tmp_path / "c.txt", '\ufeffone "\r\n\r\n  two\u2028three \n\none "\n')
    assert load_text(path) == ('one "', "two\u2028three", 'one "')


def test_lines_of_text_that_look_like_rows_are_noted():
    assert tabs_note(("a\tb", "c\td\te", "f")).startswith("2 of 3 sentences hold tabs")
    assert not tabs_note(("a\tb", "c", "d"))
    assert not tabs_note(())


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "the file is empty"),
        (b"\t\n\t\n", "holds no sentences"),
        (b"a\nb\0c\n", "c.txt:2: the line holds a NUL byte"),
        (b"a\n\xe9\n", r"not UTF-8 at byte 2 \(0xe9, line 2\)"),
    ],
)
def test_a_plain_corpus_that_cannot_be_read_is_refused(tmp_path, content, message):
    with pytest.raises(DataError, match=message):
        load_text(write(tmp_path / "c.txt", content))
    with pytest.raises(DataError, match="no such file"):
        load_text(tmp_path / "missing.txt")
    with pytest.raises(DataError, match="not a file"):
        load_text(tmp_path)


# --- laws over many inputs ---------------------------------------------------------------------------------

QUICK = settings(
    max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture], database=None
)
sentence = st.text(st.characters(exclude_characters="\t\n\r\0", exclude_categories=["Cs"]), max_size=20)
sentence = sentence.map(str.strip).filter(bool)
scores = st.floats(0, 5, allow_nan=False)
records = st.lists(st.tuples(sentence, sentence, scores), min_size=1, max_size=8)


@QUICK
@given(records)
def test_what_is_written_without_quotes_is_read_back(tmp_path, rows):
    text = "".join(f"{first}\t{second}\t{score!r}\n" for first, second, score in rows)
    pairs = load(write(tmp_path / "a.tsv", HEADER + text))
    assert list(zip(pairs.first, pairs.second, pairs.gold.tolist(), strict=True)) == rows


@QUICK
@given(records)
def test_what_is_written_as_csv_is_read_back(tmp_path, rows):
    def quoted(text):
        return '"' + text.replace('"', '""') + '"'

    text = "".join(f"{quoted(first)},{quoted(second)},{score!r}\r\n" for first, second, score in rows)
    pairs = load(write(tmp_path / "a.csv", "s1,s2,score\r\n" + text))
    assert list(zip(pairs.first, pairs.second, pairs.gold.tolist(), strict=True)) == rows


@QUICK
@given(st.binary(max_size=200), st.sampled_from(["csv", "tsv", "txt", "jsonl", "parquet"]))
def test_any_bytes_load_or_are_refused_in_one_line(tmp_path, data, suffix):
    path = write(tmp_path / f"a.{suffix}", data)
    message = ""
    try:
        load(path, keep_going=True)
    except DataError as error:
        message = str(error)
    assert message == "" or (str(path) in message and "\n" not in message)


@QUICK
@given(st.lists(st.sampled_from(["a\tb\t1", "a\tb", "\tb\t2", "a\tb\tx", ""]), min_size=1, max_size=12))
def test_every_row_is_kept_or_told(tmp_path, rows):
    path = write(tmp_path / "a.tsv", HEADER + "a\tb\t0\n" + "\n".join(rows) + "\nz\tz\t5\n")
    pairs = load(path, keep_going=True)
    assert pairs.n_pairs + len(pairs.problems) == len(rows) + 2


def test_importing_the_readers_loads_no_heavy_library():
    heavy = ("torch", "pandas", "pyarrow", "streamlit")
    code = f"import sys, whitelab.datasets; print([name for name in {heavy} if name in sys.modules])"
    done = run_python(code)
    assert done.stdout.strip() == "[]", done.stderr


@pytest.mark.parametrize(("head", "second"), [("sentence1,sentence2,score", ["a dog", "a bird"]), ("text,b,c", [])])
def test_a_table_is_read_once_for_its_sentences(tmp_path, monkeypatch, head, second):
    opened, read = [], loading.read_table
    monkeypatch.setattr(loading, "read_table", lambda *of: opened.append(of) or read(*of))
    path = write(tmp_path / "a.csv", f"{head}\na man,a dog,3\na cat,a bird,4\n")
    assert load_sentences(path) == ("a man", "a cat", *second)
    assert len(opened) == 1
