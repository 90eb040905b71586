"""Laws of a visitor's own table: columns are chosen, every row is kept or told, and the limits hold."""

import gc
import io
import json
import tomllib

import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from processes import ROOT

from whitelab.base import upload_limits
from whitelab.datasets import (
    DataError,
    MalformedRows,
    Upload,
    discover,
    hold,
    load,
    load_text,
    open_pasted,
    open_sheet,
    read_sentences,
)
from whitelab.datasets.columns import UnclearColumns, different
from whitelab.scoring.fit_text import scope_text

ROWS = [("a cat sits", "a cat is sitting", 4.5, "x"), ("a dog runs", "the sun sets", 0.25, "y"), ("b", "c", 3.0, "x")]
NAMES = ("sentence1", "sentence2", "score", "genre")


def as_bytes(suffix: str, rows=ROWS, names=NAMES) -> bytes:
    """The rows in one of the formats."""
    records = [dict(zip(names, row, strict=True)) for row in rows]
    if suffix == ".parquet":
        out = io.BytesIO()
        pq.write_table(pa.Table.from_pylist(records), out)
        return out.getvalue()
    if suffix == ".json":
        return json.dumps(records).encode()
    if suffix in (".jsonl", ".ndjson"):
        return "".join(json.dumps(record) + "\n" for record in records).encode()
    mark = "," if suffix == ".csv" else "\t"
    return "".join(mark.join(map(str, row)) + "\n" for row in (names, *rows)).encode()


def upload(suffix: str, data: bytes | None = None, **changes) -> Upload:
    return Upload(f"own{suffix}", as_bytes(suffix, **changes) if data is None else data)


FORMATS = (".csv", ".tsv", ".txt", ".jsonl", ".ndjson", ".json", ".parquet")


@pytest.mark.parametrize("suffix", FORMATS)
def test_an_upload_reads_as_the_same_file_on_disk(tmp_path, suffix):
    path = tmp_path / f"own{suffix}"
    path.write_bytes(as_bytes(suffix))
    sheet, wanted = open_sheet(upload(suffix)), load(path)
    assert sheet.names == NAMES
    assert [sheet.column(role) for role in ("first", "second", "score", "subset")] == [0, 1, 2, 3]
    found = sheet.pairs("sentence1", "sentence2", "score", "genre")
    assert found.fingerprint == wanted.fingerprint == open_sheet(path).pairs(0, 1, 2, 3).fingerprint
    assert (found.task, found.source, found.split, found.published) == ("own", f"own{suffix}", "all", False)
    assert found.problems == ()


@pytest.mark.parametrize("suffix", FORMATS)
def test_the_chosen_columns_are_read_and_not_the_recognised_ones(suffix):
    found = open_sheet(upload(suffix)).pairs("sentence2", "genre", "score")
    assert found.first == tuple(row[1] for row in ROWS)
    assert found.second == tuple(row[3] for row in ROWS)
    assert found.subset_names == ("own",)


@pytest.mark.parametrize("suffix", [".csv", ".tsv", ".json"])
def test_a_byte_order_mark_is_no_part_of_the_first_name(suffix):
    assert open_sheet(upload(suffix, b"\xef\xbb\xbf" + as_bytes(suffix))).names == NAMES


def test_columns_that_are_unclear_are_not_guessed_and_can_be_chosen():
    data = b"left,right,label,note\na b,c d,2,x\ne f,g h,3,y\n"
    sheet = open_sheet(upload(".csv", data))
    assert sheet.found is None
    assert [sheet.column(role) for role in ("first", "second", "score")] == [None] * 3  # of three texts
    assert "columns found: 'left' (text), 'right' (text), 'label' (number), 'note' (text)" in sheet.unclear
    assert sheet.pairs("left", "right", "label").gold.tolist() == [2, 3]


def test_two_texts_are_chosen_where_only_the_score_is_unclear():
    rows = b"".join(b"%d,a man %d,a dog %d,%d,%d\n" % (i, i, i, i % 5, 7 * i % 11) for i in range(1, 20))
    for names in (b"nr,left,right,closeness,chars\n", b"nr,sentence1,sentence2,closeness,chars\n"):
        sheet = open_sheet(upload(".csv", names + rows))
        assert [sheet.column(role) for role in ("first", "second", "score")] == [1, 2, None]
        assert "'closeness' (number), 'chars' (number)" in sheet.clear.listed
        assert "nr" not in sheet.clear.listed.replace("'nr' (running number)", "")
        assert "numbered" not in "".join(sheet.pairs(1, 2, "chars").notes)
    named = open_sheet(upload(".csv", b"sentence1,sentence2,score,label\na b,c d,2,1\ne f,g h,3,5\n"))
    assert [named.column(role) for role in ("first", "second", "score")] == [0, 1, None]
    assert named.clear.listed == "'score' (number), 'label' (number)"
    keys = b"".join(b"q-%d,a man %d,%d,%d\n" % (i, i, i % 5, 7 * i % 11) for i in range(1, 20))
    other = open_sheet(upload(".csv", b"key,question,closeness,chars\n" + keys))
    assert [other.column(role) for role in ("first", "second", "score")] == [None] * 3  # a key is no sentence


def test_the_only_number_beside_those_of_rows_is_offered_as_the_score_and_not_taken_unasked(tmp_path):
    for step in (1, -1):
        rows = b"".join(b"%d,a man %d,%d.5,a dog %d\n" % (40 + step * i, i, i % 5, i) for i in range(1, 20))
        data = b"nr,left,closeness,right\n" + rows
        (tmp_path / "own.csv").write_bytes(data)
        with pytest.raises(UnclearColumns):  # it may be the year of a document
            load(tmp_path / "own.csv")
        sheet = open_sheet(upload(".csv", data))
        assert sheet.clear.listed == "'nr' (running number), 'closeness' (number)"
        assert [sheet.column(role) for role in ("first", "second", "score")] == [1, 3, 2]


def test_a_score_in_words_is_said_to_be_none():
    sheet = open_sheet(upload(".csv", b"a man,a dog,slightly\na cat,a cow,very\n"))
    assert (sheet.found, sheet.clear.scoreless) == (None, True)
    rows = b"".join(b"%d,a man %d,a dog %d\n" % (i, i, i) for i in range(1, 20))
    numbered = open_sheet(upload(".csv", b"nr,sentence1,sentence2\n" + rows)).clear
    assert (numbered.scoreless, numbered.listed) == (True, "'nr' (running number)")
    of_three = open_sheet(upload(".csv", b"nr,one,two,three\n" + rows.replace(b"\n", b",a cow\n"))).clear
    assert (of_three.texts, of_three.scoreless, of_three.listed) == ((), True, "'nr' (running number)")
    heads, numbers = (",".join(f"{mark}{i}" for i in range(40)) for mark in ("n", ""))
    wide = f"sentence1,sentence2,{heads}\na b,c d,{numbers}\ne f,g h,{numbers}\n"
    assert open_sheet(upload(".csv", wide.encode())).clear.listed.endswith("'n11' (number) and 28 more")
    assert not open_sheet(upload(".csv", b"left,right,label,note\na b,c d,2,x\ne f,g h,3,y\n")).clear.scoreless


@pytest.mark.parametrize("step", [1, -1, 2])
def test_scores_in_the_order_of_rows_are_doubted_whatever_rows_are_left_out(step):
    def notes(golds):
        rows = "".join(f"a man {i},a dog {i},{gold}\n" for i, gold in enumerate(golds))
        return "".join(open_sheet(upload(".csv", f"sentence1,sentence2,score\n{rows}".encode())).pairs(0, 1, 2).notes)

    numbers = [50 + step * i for i in range(13)]
    doubt = f"whole numbers in order, from {numbers[0]} to {numbers[-1]}"
    assert doubt in notes(numbers)
    assert doubt in notes(numbers[:5] + numbers[6:])  # twelve, with a gap
    assert "in order" not in notes(numbers[:11])  # a scale of eleven steps may be sorted
    assert "in order" not in notes([number + 0.5 for number in numbers])
    assert "in order" not in notes([numbers[0], *numbers])


def test_columns_of_one_name_are_told_apart_by_number():
    data = b"text,text,score\na b,c d,2\ne f,g h,3\n"
    sheet = open_sheet(upload(".csv", data), header=True)
    assert sheet.names == ("text", "text (2)", "score")
    found = sheet.pairs("text", "text (2)", "score")
    assert (found.first, found.second) == (("a b", "e f"), ("c d", "g h"))
    unclear = open_sheet(upload(".csv", b"sentence1,sentence2,score,score\na b,c d,2,1\n"))
    assert (unclear.found, unclear.unclear) == (None, "own.csv: two columns are named 'score'; rename one")
    assert unclear.pairs(0, 1, 3).gold.tolist() == [1]


def test_parquet_columns_of_one_name_are_refused():
    out = io.BytesIO()
    pq.write_table(pa.Table.from_arrays([pa.array(["a"]), pa.array(["b"])], names=["text", "text"]), out)
    with pytest.raises(DataError, match=r"^own\.parquet: two columns are named 'text'; rename one$"):
        open_sheet(upload(".parquet", out.getvalue()))


def test_one_column_cannot_have_two_roles_and_must_be_there():
    sheet = open_sheet(upload(".csv"))
    with pytest.raises(DataError, match=r"column 'sentence1' cannot be first and second at once"):
        sheet.pairs("sentence1", 0, "score")
    with pytest.raises(DataError, match=r"score='gold' must be one of the columns sentence1, sentence2, score, genre"):
        sheet.pairs("sentence1", "sentence2", "gold")
    with pytest.raises(DataError, match=r"second=9 must be one of"):
        sheet.pairs(0, 9, 2)


def test_whether_the_first_line_holds_names_can_be_told():
    data = b"1\tone\tuno\n2\ttwo\tdue\n"
    sheet = open_sheet(upload(".tsv", data))
    assert (sheet.header, sheet.n_rows, sheet.names) == (False, 2, ("column 1", "column 2", "column 3"))
    told = open_sheet(upload(".tsv", data), header=True)
    assert (told.header, told.n_rows, told.names) == (True, 1, ("1", "one", "uno"))
    assert told.pairs("one", "uno", "1").first == ("two",)
    kept = open_sheet(upload(".csv"), header=False)
    assert [problem.line for problem in kept.pairs(0, 1, 2).problems] == [1]  # the names are no pair


def test_the_preview_shows_rows_as_they_are():
    data = b"sentence1,sentence2,score\na b,c d,2\ne f,g h\ni,j,k,l\n"
    assert open_sheet(upload(".csv", data)).preview() == [
        {"sentence1": "a b", "sentence2": "c d", "score": "2"},
        {"sentence1": "e f", "sentence2": "g h", "score": ""},
        {"sentence1": "i", "sentence2": "j", "score": "k"},
    ]


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        ("a,b", "2 columns where 3 are expected"),
        ("a,b,3,4", "4 columns where 3 are expected"),
        ("a,b,nan", "score 'nan' is not a finite number"),
        ("a,b,inf", "score 'inf' is not a finite number"),
        ("a,b,high", "score 'high' is not a number"),
        ("a,b,", "score is empty"),
        (",b,3", "first sentence is empty"),
        ("a, ,3", "second sentence is empty"),
        ('a,"b,3', "a quote is not closed on this line"),
        ("", "blank line"),
    ],
)
def test_a_rejected_row_keeps_its_line_and_reason_and_the_others_are_read(line, reason):
    data = f"sentence1,sentence2,score\ngood,row,1\n{line}\nanother,row,2\n".encode()
    found = open_sheet(upload(".csv", data)).pairs(0, 1, 2)
    assert found.gold.tolist() == [1, 2]
    ((at, why),) = [(problem.line, problem.reason) for problem in found.problems]
    assert (at, why.startswith(reason)) == (3, True)
    assert "malformed rows left out: 1, rows kept: 2" in found.notes


def test_where_no_row_is_left_all_of_them_are_told():
    with pytest.raises(MalformedRows, match="no row is left to keep") as caught:
        open_sheet(upload(".csv")).pairs("sentence1", "sentence2", "genre")
    assert [problem.line for problem in caught.value.problems] == [2, 3, 4]


@pytest.mark.parametrize(
    ("suffix", "data", "message"),
    [
        (".csv", b"", "the file is empty"),
        (".json", b" \n", "the file is empty"),
        (".parquet", b"", "the file is empty"),
        (".csv", b"sentence1,sentence2,score\n", "column names only, no pairs"),
        (".csv", "naïve,row,1\n".encode("latin-1"), "not UTF-8 at byte 2"),
        (
            ".csv",
            b"PK\x03\x04\x14\0\x06\0\x08\0\0\0!\0",
            "a zip archive, as a spreadsheet is, and no text: save the sheet",
        ),
        (".parquet", b"PAR1 no", "not a readable Parquet file"),
        (".json", b"{", "not JSON"),
        (".json", b"[" * 100_000, "not JSON"),
        (".json", b"3", "a list of objects or an object of columns is expected, got int"),
        (".json", b'{"a": [1], "b": [1, 2]}', "the columns must be equally long, got 'a' 1, 'b' 2"),
        (".json", b'{"a": 1}', "column 'a' must be a list, got int"),
        (".json", b"[]", "no pairs in this file"),
        (".json", b"[1, 2]", "2 malformed rows: own.json:1: a JSON object is expected, got int"),
        (".xlsx", b"PK", "files of this kind are not read; use .csv, .tsv"),
    ],
)
def test_a_file_that_is_no_table_is_refused_in_one_line(suffix, data, message):
    with pytest.raises(DataError, match=message) as caught:
        open_sheet(upload(suffix, data))
    assert "\n" not in str(caught.value)
    assert str(caught.value).startswith(("own", "2 malformed"))


def test_json_is_read_as_pandas_writes_it_by_rows_and_by_columns():
    frame = pd.DataFrame(ROWS, columns=NAMES)
    wanted = open_sheet(upload(".csv")).pairs(0, 1, 2, 3).fingerprint
    for orient in ("records", "columns", "list"):
        text = json.dumps(frame.to_dict(orient)) if orient == "list" else frame.to_json(orient=orient)
        assert open_sheet(upload(".json", text.encode())).pairs(0, 1, 2, 3).fingerprint == wanted


def test_a_json_in_a_folder_is_no_task_unless_it_is_named(tmp_path):
    (tmp_path / "pairs.json").write_bytes(as_bytes(".json"))
    assert load(tmp_path / "pairs.json").n_pairs == 3
    with pytest.raises(DataError, match="no sentence pairs in this folder"):
        load(tmp_path)


# Limits


@pytest.mark.parametrize("suffix", FORMATS)
def test_more_rows_than_the_limit_are_refused_in_an_upload_and_read_from_disk(tmp_path, suffix, monkeypatch):
    header = suffix in (".csv", ".tsv", ".txt")
    monkeypatch.setattr(upload_limits, "ROWS", 3 + header)  # lines
    assert open_sheet(upload(suffix)).pairs(0, 1, 2).n_pairs == 3
    monkeypatch.setattr(upload_limits, "ROWS", 2 + header)
    with pytest.raises(DataError, match=rf"own\{suffix}: {3 + header} rows, at most {2 + header} are read"):
        open_sheet(upload(suffix))
    path = tmp_path / f"own{suffix}"
    path.write_bytes(as_bytes(suffix))
    assert load(path).n_pairs == 3


@pytest.mark.parametrize("suffix", FORMATS)
def test_more_columns_than_the_limit_are_refused(suffix, monkeypatch):
    monkeypatch.setattr(upload_limits, "COLUMNS", 3)
    with pytest.raises(DataError, match="4 columns, at most 3 are read"):
        open_sheet(upload(suffix))


def test_a_small_parquet_file_cannot_unpack_to_any_size(monkeypatch):
    rows = [("x" * 5000, "y", 1.0, "z")] * 1000
    data = as_bytes(".parquet", rows)
    assert len(data) < 20_000
    monkeypatch.setattr(upload_limits, "TABLE_MB", 6)
    assert open_sheet(upload(".parquet", data)).n_rows == 1000
    monkeypatch.setattr(upload_limits, "TABLE_MB", 4)
    with pytest.raises(DataError, match="its text takes 4 MB, at most 4 MB are read"):
        open_sheet(upload(".parquet", data))


def test_streamlit_takes_no_more_than_the_limits_say():
    config = tomllib.loads((ROOT / ".streamlit" / "config.toml").read_text())
    assert config["server"]["maxUploadSize"] == upload_limits.VECTORS_MB >= upload_limits.TABLE_MB
    assert f"{upload_limits.TABLE_MB} MB" in upload_limits.of_table()
    assert f"d = {upload_limits.DIM}" in upload_limits.of_vectors()


# Pasted text


def test_pasted_lines_with_columns_are_pairs():
    found = open_pasted("a cat\ta dog\t2.5\na sun\ta moon\t1\n\n")
    assert found.pairs(*(found.column(role) for role in ("first", "second", "score"))).gold.tolist() == [2.5, 1]
    named = open_pasted("sentence1\tsentence2\tscore\na\tb\t2\n")
    assert (named.header, named.n_rows) == (True, 1)


def test_pasted_lines_without_columns_are_sentences():
    assert open_pasted("One, two, three.\n\n  A second one. \nOne, two, three.") == (
        "One, two, three.",
        "A second one.",
        "One, two, three.",
    )


def test_an_upload_of_plain_text_is_read_as_a_file_is(tmp_path):
    data = "One.\n\nTwo, with a comma.\n".encode("utf-16")
    (tmp_path / "own.txt").write_bytes(data)
    assert load_text(Upload("own.txt", data)) == load_text(tmp_path / "own.txt") == ("One.", "Two, with a comma.")


@pytest.mark.parametrize("text", ["", " \n \n"])
def test_nothing_pasted_is_said(text):
    with pytest.raises(DataError, match="the file is empty|no sentences"):
        open_pasted(text)


def test_pasted_pairs_without_a_score_are_refused_with_the_form_of_a_pair():
    with pytest.raises(DataError, match="line 2 holds 2 columns; a pair is one line: first sentence, tab, second"):
        open_pasted("a heading\na cat\ta dog\n")


# Pairs in memory


def test_pairs_in_memory_are_found_and_loaded_by_a_name_nobody_can_guess():
    pairs = open_sheet(upload(".csv")).pairs(0, 1, 2, 3)
    name, other = hold(pairs), hold(pairs)
    (task,) = discover(name)
    assert (task.name, task.title, task.splits, task.published) == ("own", "own.csv", ("all",), False)
    assert load(name) is load(name, "own", "all") is pairs
    assert scope_text("splits", name, "own").total() == 2 * pairs.n_pairs
    assert len(name) > 32
    assert name != other
    with pytest.raises(DataError, match="holds no task 'other'"):
        load(name, "other")


def test_a_name_ends_with_the_pairs_it_stood_for():
    pairs = open_sheet(upload(".csv")).pairs(0, 1, 2)
    name = hold(pairs)
    del pairs
    gc.collect()
    with pytest.raises(DataError, match="no such file"):
        load(name)


@pytest.mark.parametrize(
    ("names", "made"),
    [
        ("", ""),
        ("a b c", "a b c"),
        ("a b a a", "a|b|a (2)|a (3)"),
        ("a|a (2)|a", "a|a (2)|a (3)"),
        ("a|a|a (2)|a", "a|a (3)|a (2)|a (4)"),
    ],
)
def test_names_are_made_different_and_those_that_differ_stay(names, made):
    apart = lambda text: tuple(text.split("|" if "|" in text else None))  # noqa: E731
    assert different(apart(names)) == apart(made)


def test_many_equal_names_are_made_different_in_one_pass():
    assert len(set(different(["a"] * 100_000))) == 100_000


TWO = ("He reads books.", "Rain falls.")


@pytest.mark.parametrize(
    ("name", "text", "columns", "wanted"),
    [
        ("mine.txt", "He reads books.\n\nRain falls.\n", (), TWO),
        ("pairs.csv", "s1,s2,score\nHe reads,She reads,3\nIt rains,It pours,4\n", ("s1", "s2"), None),
        ("own.csv", "Nr;Question;Weight\n1;He reads books.;0,4\n2;Rain falls.;1,0\n", ("Question",), TWO),
        ("ids.csv", "id,question,n\nq1,He reads books.,3\nq2,Rain falls.,4\n", ("question",), TWO),
        ("days.csv", "id,question,day\nq1,He reads books.,2024-01-02\nq2,Rain falls.,2024-01-03\n", ("question",), TWO),
        ("one.csv", "Question\nHe reads books.\nRain falls.\n", ("Question",), TWO),
        ("faq.csv", "nr,q,a,n\nx1,He reads books.,Rain falls.,9\n", ("q", "a"), TWO),
        ("words.csv", "cat,dog\nmoon,sun\n", ("cat", "dog"), ("moon", "sun")),
        (
            "lines.jsonl",
            '{"anchor": "a", "positive": "b"}\n{"anchor": "c", "positive": "d"}\n',
            ("anchor", "positive"),
            tuple("abcd"),
        ),
        ("texts.tsv", "text\tlabel\nHe reads books.\tbook\nRain falls.\tsky\n", ("text",), TWO),
    ],
)
def test_sentences_of_an_upload_are_those_of_the_file_from_columns_that_hold_any(tmp_path, name, text, columns, wanted):
    (tmp_path / name).write_text(text)
    found = read_sentences(Upload(name, text.encode()))
    assert found.columns == columns
    assert found.text == (wanted or ("He reads", "It rains", "She reads", "It pours"))
    assert found == read_sentences(tmp_path / name)
    assert found.text == tuple(scope_text(str(tmp_path / name), "", None).elements())


def test_rows_without_a_sentence_are_told_and_left_out_on_request():
    file = Upload("own.csv", b"Nr;Question\n1;Who reads here?\n2;\n3;Does rain fall?\n")
    with pytest.raises(MalformedRows, match="own.csv:3"):
        read_sentences(file)
    found = read_sentences(file, keep_going=True)
    assert (found.text, [one.line for one in found.problems]) == (("Who reads here?", "Does rain fall?"), [3])


def test_a_table_without_a_column_of_text_is_no_text():
    with pytest.raises(DataError, match="one of text is needed"):
        read_sentences(Upload("own.csv", b"n,m\n1,2\n3,4\n"))


@pytest.mark.parametrize("names", ["sentence1,sentence2,score", "phrase_1,phrase_2,note"])
def test_a_table_whose_sentences_run_over_lines_is_told_so_and_not_to_choose_among_its_columns(tmp_path, names):
    rows = "".join(f'"A man\nplays {i}","Someone\nsings {i}",{i % 6}\n' for i in range(60))
    with pytest.raises(MalformedRows, match="a quote is not closed on this line; keep a sentence on one line"):
        open_sheet(Upload("own.csv", f"{names}\n{rows}".encode()))
    (tmp_path / "own.csv").write_text(f"{names}\n{rows}")
    with pytest.raises(DataError, match="a quote is not closed on this line; keep a sentence on one line"):
        load(tmp_path / "own.csv")
