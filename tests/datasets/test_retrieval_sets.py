"""Laws of the readers of retrieval sets: both layouts say the same, every bad line is named by its number."""

from dataclasses import replace
from zipfile import ZipFile

import numpy as np
import pytest
from judged import DOCUMENTS, GRADES, QUERIES, retrieval_set, write_retrieval

from whitelab.datasets import DataError, MalformedRows, Upload, load_retrieval, retrieval_files, retrieval_splits


@pytest.fixture
def folder(tmp_path):
    return write_retrieval(tmp_path / "mine")


def judgements(found) -> set:
    rows = zip(found.query, found.document, found.grade, strict=True)
    return {(found.query_ids[query], found.document_ids[document], grade) for query, document, grade in rows}


def test_a_folder_in_beirs_layout_is_read_with_titles_before_texts(folder):
    found = load_retrieval(folder)
    assert found.documents == ("Bread the dog finds some fresh bread", "a singer plays a guitar", "")
    assert (found.task, found.split, found.queries) == ("mine", "test", tuple(QUERIES.values()))
    assert judgements(found) == set(GRADES)
    assert found.notes == ("1 document is empty",)
    assert found.sentences == (*found.documents, *found.queries)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"document": (0, 0)}, "made up: query 'q0' and document 'd0' are judged twice"),
        ({"document": (0.2, 1)}, "made up: document must hold whole numbers, got 0.2"),
        ({"grade": (1, np.nan)}, "made up: grade nan is not a number"),
        ({"grade": (1, np.inf)}, "made up: grade inf is not a number"),
        ({"grade": ("x", 1)}, "made up: grade must hold numbers"),
        ({"documents": "ab"}, "made up: documents must hold several texts, got one: 'ab'"),
        ({"documents": ("a", 2)}, "made up: documents must hold texts, row 1 holds 2"),
        ({"queries": "ab"}, "made up: queries must hold several texts"),
        ({"query_ids": (0, 1)}, "made up: query_ids must hold texts, row 0 holds 0"),
    ],
)
def test_a_set_made_in_memory_is_refused_what_a_file_is(changes, message):
    with pytest.raises(DataError, match=message):
        replace(retrieval_set(2, 1, 1), **{"query": (0, 0), "document": (0, 1), "grade": (1, 2)} | changes)


@pytest.mark.parametrize("name", ["qrels/test.tsv", "qrels/test.txt", "qrels.txt", "mine.qrels", "qrels.test.tsv"])
def test_trec_qrels_say_the_same_wherever_they_lie(folder, name):
    wanted = judgements(load_retrieval(folder))
    (folder / "qrels" / "test.tsv").unlink()
    (folder / name).write_text("".join(f"{query} 0  {document}\t{grade}\n" for query, document, grade in GRADES))
    found = load_retrieval(folder)
    assert judgements(found) == wanted
    assert retrieval_splits(folder) == (found.split,)


def test_a_query_may_be_called_what_its_column_is(folder):
    grades = (("query", "d2", 1), ("topic", "d1", 2))
    write_retrieval(folder, queries={"query": "who plays", "topic": "what is eaten"}, grades=grades)
    qrels = folder / "qrels" / "test.tsv"
    for text in (qrels.read_text(), qrels.read_text().partition("\n")[2]):  # with the names of the columns, and without
        qrels.write_text(text)
        assert judgements(load_retrieval(folder)) == set(grades)


def test_two_files_of_judgements_for_one_split_are_refused_wherever_they_lie(folder, tmp_path):
    (folder / "qrels" / "test.txt").write_text("q1 0 d1 1\n")
    files = [folder / "corpus.jsonl", folder / "queries.jsonl", *(folder / "qrels").iterdir()]
    uploads = [Upload(file.name, file.read_bytes()) for file in files]
    loose = write_retrieval(tmp_path / "loose")
    (loose / "qrels" / "test.tsv").rename(loose / "qrels.tsv")
    (loose / "mine.qrels").write_text("q1 0 d1 1\n")
    for data, split, first, second in (
        (folder, "test", "test.tsv", "test.txt"),
        (packed(folder, tmp_path / "mine.zip"), "test", "mine.zip/qrels/test.tsv", "mine.zip/qrels/test.txt"),
        (uploads, "test", *(file.name for file in files[2:])),
        (loose, "all", "mine.qrels", "qrels.tsv"),
    ):
        with pytest.raises(DataError, match=f"more than one file of judgements for '{split}', {first} and {second};"):
            load_retrieval(data)


@pytest.mark.parametrize(("name", "split"), [("test.tsv", "test"), ("dev.txt", "dev"), ("anything.txt", "all")])
def test_an_upload_is_read_as_its_folder_is(folder, name, split):
    files = [folder / "corpus.jsonl", folder / "queries.jsonl", folder / "qrels" / "test.tsv"]
    uploads = [Upload(f"my-{file.name}", file.read_bytes()) for file in files[:2]]
    found = load_retrieval([*uploads, Upload(name, files[2].read_bytes())], "dev" if split == "dev" else "test")
    assert found.fingerprint == load_retrieval(folder).fingerprint
    assert (found.source, found.split) == ("upload", split)


def test_the_queries_of_other_splits_are_left_out_and_one_without_an_answer_is_noted(folder):
    queries = QUERIES | {"q3": "a query of the other split", "q4": "nothing answers this", "q5": "nobody judged this"}
    write_retrieval(folder, queries=queries, grades=(*GRADES, ("q4", "d1", 0), ("q4", "d2", -1)))
    (folder / "qrels" / "dev.tsv").write_text("query-id\tcorpus-id\tscore\nq3\td1\t1\n")
    found = load_retrieval(folder)
    assert found.query_ids == ("q1", "q2")
    assert "2 queries left out, because no document is relevant" in found.notes
    assert load_retrieval(folder, "dev").query_ids == ("q3",)
    with pytest.raises(DataError, match="no split 'train'; it has: dev, test"):
        load_retrieval(folder, "train")


LINE = "query-id\tcorpus-id\tscore\nq1\td2\t1\nq2\td1\t1\n"
WRONG = {
    "a document that is not there": (LINE + "q1\td9\t1\n", "test.tsv:4: document 'd9' is not in the corpus"),
    "a query that is not there": (LINE + "q9\td1\t1\n", "test.tsv:4: query 'q9' is not among the queries"),
    "a grade that is no number": (LINE + "q1\td1\thigh\n", "test.tsv:4: grade 'high' is not a number"),
    "a grade that is not finite": (LINE + "q1\td1\tnan\n", "test.tsv:4: grade 'nan' is not a number"),
    "a judgement that repeats": (LINE + "q1\td2\t0\n", "test.tsv:4: query 'q1' and document 'd2' are judged twice"),
    "too few columns": (LINE + "q1 d2\n", "test.tsv:4: 2 columns where query, document, grade"),
}


def test_the_document_that_a_query_is_itself_is_known_and_noted(tmp_path):
    texts = {"q1": ("Title", "a man plays"), "q2": ("", "a dog runs"), "3": ("", "water"), "4": ("", "a cat")}
    asked = {"q1": "a man plays", "q2": "a dog runs", "3": "another text of that number"}
    judged = [("q1", "4", 1), ("q2", "q2", 1), ("3", "4", 1)]  # the second is to find itself
    found = load_retrieval(write_retrieval(tmp_path, texts, asked, judged))
    assert found.own.tolist() == [0, -1, -1]
    assert found.notes == ("1 query is a document of the corpus, left out of its own ranking as in BEIR",)


@pytest.mark.parametrize("kind", WRONG)
def test_a_row_that_cannot_be_used_is_named_and_the_rest_goes_on_where_one_says_so(folder, kind):
    text, message = WRONG[kind]
    (folder / "qrels" / "test.tsv").write_text(text)
    with pytest.raises(MalformedRows, match="1 malformed row") as error:
        load_retrieval(folder)
    assert message in str(error.value)
    found = load_retrieval(folder, keep_going=True)
    assert message in str(found.problems[0])
    assert ("q1", "d2", 1) in judgements(found)
    assert "rows left out: 1" in found.notes


def test_an_id_that_is_there_with_other_leading_zeros_is_named_with_it(tmp_path):
    texts, asked = {"007": ("", "a dog runs"), "1": ("", "water")}, {"01": "what runs", "2": "what is wet"}
    judged = [("2", "7", 1), ("1", "007", 1), ("2", "0", 1), ("2", "001", 1), ("02", "1", 1)]
    with pytest.raises(MalformedRows, match="no query is left that a document answers") as error:
        load_retrieval(write_retrieval(tmp_path, texts, asked, judged), keep_going=True)
    assert [problem.reason for problem in error.value.problems] == [
        "document '7' is not in the corpus, but '007' is",
        "query '1' is not among the queries, but '01' is",
        "document '0' is not in the corpus",
        "document '001' is not in the corpus, but '1' is",
        "query '02' is not among the queries, but '2' is",
    ]
    shown = str(error.value)
    assert shown.count("test.tsv:") == 3
    assert shown.index("'007' is (2 such rows)") < shown.index("'01' is (2 such rows)") < shown.index("(1 such row)")


@pytest.mark.parametrize(
    ("file", "line", "message"),
    [
        ("corpus", '{"_id": "d1", "text": "again"}', "corpus.jsonl:4: document id 'd1' repeats that of line 1"),
        ("corpus", '{"_id": "d4", "text": 5}', "corpus.jsonl:4: text is not text: 5"),
        ("corpus", '{"_id": "", "text": "nameless"}', "corpus.jsonl:4: _id is empty"),
        ("queries", '{"_id": "q2", "text": "again"}', "queries.jsonl:3: query id 'q2' repeats that of line 2"),
        ("queries", '{"_id": "q3", "text": " "}', "queries.jsonl:3: text is empty"),
        ("queries", "who plays", "queries.jsonl:3: not a line of JSON"),
    ],
)
def test_a_text_that_cannot_be_used_is_named(folder, file, line, message):
    with (folder / f"{file}.jsonl").open("a") as out:
        out.write(line + "\n")
    with pytest.raises(MalformedRows) as error:
        load_retrieval(folder)
    assert message in str(error.value)
    assert load_retrieval(folder, keep_going=True).document_ids == tuple(DOCUMENTS)


def test_what_is_missing_or_empty_is_said_in_one_line(folder, tmp_path):
    (folder / "qrels" / "test.tsv").write_text("q1\td2\t0\nq2\td2\t0\n")
    with pytest.raises(DataError, match="no judgement has a grade above 0"):
        load_retrieval(folder)
    (folder / "qrels" / "test.tsv").unlink()
    with pytest.raises(DataError, match="no judgements; a retrieval set is corpus.jsonl"):
        load_retrieval(folder)
    write_retrieval(folder)
    (folder / "corpus.jsonl").write_text('{"id": "d1", "contents": "x"}\n')
    with pytest.raises(DataError, match=r"corpus.jsonl: every line needs a '_id'; found: 'id', 'contents'"):
        load_retrieval(folder)
    (folder / "corpus.jsonl").write_text("")
    with pytest.raises(DataError, match=r"corpus.jsonl: the file is empty"):
        load_retrieval(folder)
    (folder / "corpus.jsonl").unlink()
    with pytest.raises(DataError, match=r"no corpus.jsonl"):
        load_retrieval(folder)
    with pytest.raises(DataError, match="no such file or folder; give a file or folder, or 'demo-search'$"):
        load_retrieval(tmp_path / "nowhere")
    (tmp_path / "file.tsv").write_text("x")
    with pytest.raises(DataError, match="a retrieval set is a folder, or its .zip, with corpus.jsonl"):
        load_retrieval(tmp_path / "file.tsv")


# ------------------------------------------------------------------------------------------------ one .zip


def packed(folder, path, below="", extra=()):
    """A folder as one .zip, its files under `below`, and further members by name."""
    with ZipFile(path, "w") as archive:
        for file in sorted(file for file in folder.rglob("*") if file.is_file()):
            archive.write(file, below + file.relative_to(folder).as_posix())
        for name, text in extra:
            archive.writestr(name, text)
    return path


@pytest.mark.parametrize("below", ["", "mine/", "datasets/mine/"])
def test_a_zip_says_what_its_folder_says_as_a_path_and_as_an_upload(folder, tmp_path, below):
    (folder / "qrels" / "dev.tsv").write_text("query-id\tcorpus-id\tscore\nq1\td1\t1\n")
    shadows = [("__MACOSX/mine/._corpus.jsonl", "no JSON"), (f"{below}README.md", "words"), (f"{below}notes.txt", "1")]
    path = packed(folder, tmp_path / "mine.zip", below, shadows)
    for data in (path, str(path), [Upload("mine.zip", path.read_bytes())]):
        assert retrieval_splits(data) == ("dev", "test")
        for split in ("dev", "test"):
            found = load_retrieval(data, split)
            assert (found.fingerprint, found.split) == (load_retrieval(folder, split).fingerprint, split)
            assert (found.task, found.source) == ("mine", "mine")
    assert retrieval_files(path) == (path,)


def test_a_bad_line_in_a_zip_is_named_by_its_place_in_it(folder, tmp_path):
    (folder / "queries.jsonl").write_text("no JSON\n" + (folder / "queries.jsonl").read_text())
    path = packed(folder, tmp_path / "mine.zip", "mine/")
    with pytest.raises(MalformedRows, match=r"mine\.zip/mine/queries\.jsonl"):
        load_retrieval(path)
    assert load_retrieval(path, keep_going=True).fingerprint == load_retrieval(folder, keep_going=True).fingerprint


@pytest.mark.parametrize(
    ("extra", "words"),
    [
        ((("../qrels/corpus.jsonl", ""),), "one folder with a corpus.jsonl must be packed in it; found: "),
        ((("old/corpus.jsonl", ""),), r"one folder with a corpus.jsonl must be packed in it; found: \., old"),
        ((("corpus-2.jsonl", ""),), "more than one corpus.jsonl"),
        ((("qrels/big.tsv", "q1\td1\t1\n" * 3_000_000),), "unpacks to more than"),
    ],
)
def test_a_zip_that_holds_what_no_set_needs_is_refused(folder, tmp_path, extra, words):
    path = tmp_path / "mine.zip"
    with ZipFile(packed(folder, path), "a", compression=8) as archive:
        for name, text in extra:
            archive.writestr(name, text)
    for data in (path, [Upload("mine.zip", path.read_bytes())]):
        with pytest.raises(DataError, match=words):
            load_retrieval(data)


def test_a_zip_whose_names_lead_out_is_refused(tmp_path):
    path = tmp_path / "mine.zip"
    with ZipFile(path, "w") as archive:
        for name in ("corpus.jsonl", "queries.jsonl", "qrels/test.tsv"):
            archive.writestr(f"../{name}", "")
    with pytest.raises(DataError, match="leads out of the folder"):
        load_retrieval(path)
    assert list(tmp_path.iterdir()) == [path]


def test_what_is_no_zip_or_comes_with_other_files_is_refused(folder, tmp_path):
    path = tmp_path / "mine.zip"
    path.write_bytes(b"PK no archive")
    with pytest.raises(DataError, match="not a readable tar, tar.gz or zip archive"):
        load_retrieval(path)
    whole = packed(folder, tmp_path / "whole.zip").read_bytes()
    with pytest.raises(DataError, match="no other file may come with it"):
        load_retrieval([Upload("whole.zip", whole), Upload("test.tsv", b"")])
