"""Laws of the readers of labelled texts: every layout as its publisher reads it, every bad line by its number."""

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from labelled_texts import make_texts
from pair_files import write
from processes import run_python

from whitelab.base import upload_limits
from whitelab.datasets import (
    ColumnNames,
    DataError,
    MalformedRows,
    Upload,
    discover_labelled,
    load,
    load_labelled,
)
from whitelab.datasets.labelled import UnclearRoles
from whitelab.datasets.senteval import SENTEVAL

ROWS = [("a red cat", "animal"), ("the bus is late", "travel"), ("two dogs", "animal"), ("a long train", "travel")]


def table(rows, header=("text", "label"), delimiter="\t") -> str:
    return "".join(delimiter.join(row) + "\n" for row in ([header] if header else []) + list(rows))


def senteval(root: Path) -> Path:
    """A made-up folder in SentEval's layout, a level above `downstream`."""
    down = root / "downstream"
    for folder, name, ends in (("MR", "rt-polarity", ("pos", "neg")), ("CR", "custrev", ("pos", "neg"))):
        for end in ends:
            write(down / folder / f"{name}.{end}", f"{end} one  film\n{end} two\n{end} caf\xe9\n".encode("latin-1"))
    write(down / "SUBJ/subj.objective", "it rains .\nit snows\n")
    write(down / "SUBJ/subj.subjective", "lovely !\n")
    write(down / "MPQA/mpqa.pos", "good\nfine\n")
    write(down / "MPQA/mpqa.neg", "bad\nawful\n")
    for split in ("train", "dev", "test"):
        write(down / f"SST/binary/sentiment-{split}", f"a {split} caf\u00e9\t1\nno {split}\t0\n")
    write(down / "TREC/train_5500.label", b"DESC:manner How did it start ?\nHUM:ind Who is Ren\xe9 ?\n")
    write(down / "TREC/TREC_10.label", "NUM:dist How far : is it ?\n")
    head = "\ufeffQuality\t#1 ID\t#2 ID\t#1 String\t#2 String\n"
    for split in ("train", "test"):
        write(
            down / f"MRPC/msr_paraphrase_{split}.txt",
            head + f'1\t1\t2\tHe said "yes {split}\tHe agreed\n0\t3\t4\tIt rained\tShe left\n',
        )
    return root


# ------------------------------------------------------------------------------------------------ tables


@pytest.mark.parametrize("form", ["csv", "tsv", "jsonl", "parquet"])
def test_a_table_reads_the_same_in_every_format(form, tmp_path):
    path = tmp_path / f"rows.{form}"
    if form == "jsonl":
        path.write_text("".join(json.dumps({"text": text, "label": label}) + "\n" for text, label in ROWS))
    elif form == "parquet":
        pq.write_table(pa.table({"text": [a for a, _ in ROWS], "label": [b for _, b in ROWS]}), path)
    else:
        path.write_text(table(ROWS, delimiter="," if form == "csv" else "\t"))
    found = load_labelled(path)
    assert found.first == tuple(text for text, _ in ROWS)
    assert [found.classes[i] for i in found.y] == [label for _, label in ROWS]
    assert (found.second, found.positive, set(found.split), found.notes) == (None, None, {""}, ())


def test_an_upload_reads_as_the_file_of_its_name_and_keeps_its_limits(tmp_path, monkeypatch):
    path = write(tmp_path / "own.tsv", table([*ROWS, ("only a text",)]))
    upload = Upload("own.tsv", path.read_bytes())
    with pytest.raises(MalformedRows, match=r"^1 malformed row: own\.tsv:6: 1 column where 2 are expected"):
        load_labelled(upload)
    with pytest.raises(DataError, match="^own.tsv: no column named 'kind'"):
        load_labelled(upload, columns=ColumnNames(label="kind"))
    ours, theirs = (load_labelled(one, test=one, keep_going=True) for one in (path, upload))
    assert ours.fingerprint == theirs.fingerprint
    assert (
        (theirs.task, theirs.title, theirs.source) == (ours.task, ours.title, ours.source) == ("own", *["own.tsv"] * 2)
    )
    for limit, most in (("ROWS", 5), ("COLUMNS", 1)):
        with monkeypatch.context() as patched:
            patched.setattr(upload_limits, limit, most)
            with pytest.raises(DataError, match=rf"own\.tsv: \d \w+, at most {most} are read from an upload"):
                load_labelled(upload, keep_going=True)
            assert load_labelled(path, keep_going=True).n_rows == 4
    with pytest.raises(DataError, match=r"own\.pkl: files of this kind are not read"):
        load_labelled(Upload("own.pkl", b""))


@pytest.mark.parametrize("header", [("sentence", "category"), ("Question", "Label"), ("tweet text", "sentiment")])
def test_columns_are_found_by_their_names(header, tmp_path):
    found = load_labelled(write(tmp_path / "a.tsv", table(ROWS * 2, header)))
    assert found.first[:4] == tuple(text for text, _ in ROWS)
    assert found.classes == ("animal", "travel")


def test_columns_are_found_by_content_where_one_choice_is_left(tmp_path):
    found = load_labelled(write(tmp_path / "a.tsv", table([(b, a) for a, b in ROWS], None)))
    assert found.first == tuple(text for text, _ in ROWS)
    assert found.notes == (
        "columns recognised by content: label 'column 1', text 'column 2'; the first line is read as a row",
    )


def test_a_first_row_is_taken_for_names_as_in_tables_of_pairs(tmp_path):
    rows = [(text, f"{text} again", str(place % 2)) for place, (text, _) in enumerate(ROWS)]
    path = write(tmp_path / "a.tsv", table(rows, ("left", "right", "grade")))
    with pytest.raises(DataError, match=r"'left' \(text\), 'right' \(text\), 'grade' \(number\); a text and a label"):
        load_labelled(path)
    single = write(tmp_path / "b.tsv", table([(text, grade) for text, _, grade in rows], ("left", "grade")))
    found = load_labelled(single)
    assert found.n_rows == len(ROWS)
    assert found.notes == (
        "the first line was taken for column names: 'left', 'grade'",
        "columns recognised by content: label 'grade', text 'left'",
    )


def test_a_first_row_whose_label_is_no_other_rows_is_taken_for_names(tmp_path):
    rows = [(f"{text} {i}", label) for i in range(3) for text, label in ROWS]
    found = load_labelled(write(tmp_path / "a.csv", table(rows, ("tweet", "team"), ",")))
    assert (found.n_rows, found.classes) == (12, ("animal", "travel"))
    assert found.notes == (
        "the first line was taken for column names: 'tweet', 'team'",
        "columns recognised by content: label 'team', text 'tweet'",
    )


@pytest.mark.parametrize(
    ("first", "others", "columns"),
    [
        (("tweet", "team"), [("one more", "sport")], {}),  # another class of one row
        (("tweet", "animal"), [], {}),  # a class of several
        (("a tweet that is long", "team"), [], {}),  # no name
        (("tweet", "team"), [], {"text": "column 1", "label": "column 2"}),  # as told
        (("tweet", "team"), None, {}),  # few rows
    ],
)
def test_a_first_row_that_may_be_one_is_read_as_a_row(first, others, columns, tmp_path):
    rows = [(f"{text} {i}", label) for i in range(3 if others is not None else 2) for text, label in ROWS]
    path = write(tmp_path / "a.csv", table([*rows, *(others or [])], first, ","))
    found = load_labelled(path, columns=ColumnNames(**columns))
    assert (found.first[0], found.classes[found.y[0]]) == first


def test_named_columns_win_over_usual_names(tmp_path):
    rows = [("x", text, label, "y") for text, label in ROWS]
    path = write(tmp_path / "a.tsv", table(rows, ("label", "body", "kind of thing", "text")))
    found = load_labelled(path, columns=ColumnNames(text="body", label="kind of thing"))
    assert found.first == tuple(text for text, _ in ROWS)
    with pytest.raises(DataError, match=r"no column named 'bodi'; columns found: 'label' \(text\), 'body'"):
        load_labelled(path, columns=ColumnNames(text="bodi"))


def test_a_split_column_and_split_files_say_the_same(tmp_path):
    rows = [(*row, split) for row, split in zip(ROWS, ("training", "test", "Validation", "train"), strict=True)]
    one = load_labelled(write(tmp_path / "one.tsv", table(rows, ("text", "label", "split"))))
    assert one.split == ("train", "test", "dev", "train")
    for split, part in (("train", ROWS[:1] + ROWS[3:]), ("test", ROWS[1:2]), ("validation", ROWS[2:3])):
        write(tmp_path / f"several/pets-{split}.tsv", table(part))
    (info,) = discover_labelled(tmp_path / "several")
    several = load_labelled(tmp_path / "several")
    assert info.name == several.task == "pets"
    assert sorted(zip(several.first, several.split, strict=True)) == sorted(zip(one.first, one.split, strict=True))


def test_a_split_in_two_formats_is_two_tasks_and_in_two_shards_one(tmp_path):
    for name in ("own.tsv", "pets-train.tsv", "pets-test.tsv", "cars-train-00000-of-00002.tsv", "cars-test.tsv"):
        write(tmp_path / name, table(ROWS))
    rows = "".join(json.dumps({"text": text, "label": label}) + "\n" for text, label in ROWS)
    for name in ("own.jsonl", "pets-train.jsonl", "cars-dev.jsonl"):
        write(tmp_path / name, rows)
    write(tmp_path / "cars-train-00001-of-00002.tsv", table(ROWS))
    found = {task.name: load_labelled(tmp_path, task.name) for task in discover_labelled(tmp_path)}
    assert {name: {split: one.split.count(split) for split in one.split} for name, one in found.items()} == {
        "cars": {"train": 8, "dev": 4, "test": 4},
        "own.jsonl": {"": 4},
        "own.tsv": {"": 4},
        "pets.jsonl": {"train": 4},
        "pets.tsv": {"train": 4, "test": 4},
    }


def test_a_second_table_is_the_test_split(tmp_path):
    train, test = write(tmp_path / "a.tsv", table(ROWS)), write(tmp_path / "b.csv", table(ROWS[:2], delimiter=","))
    found = load_labelled(train, test=test)
    assert found.split == ("train",) * 4 + ("test",) * 2
    with pytest.raises(DataError, match="no such file"):
        load_labelled(train, test=tmp_path / "c.csv")


def test_a_table_answers_to_its_own_name_before_anything_answers_to_a_name_people_use(tmp_path):
    for name in ("sst", "sst2"):
        write(tmp_path / f"{name}.tsv", table([*ROWS, (name, "animal")]))
    for name in ("sst", "sst2"):
        found = load_labelled(tmp_path, name)
        assert (found.task, found.first[-1]) == (name, name)
    (tmp_path / "sst.tsv").unlink()
    write(tmp_path / "mr.tsv", table(ROWS))
    assert load_labelled(tmp_path, "SST").task == load_labelled(tmp_path, "SST2").task == "sst2"
    with pytest.raises(DataError, match="holds no task 'trec'; it holds: mr, sst2"):
        load_labelled(tmp_path, "trec")


def test_where_columns_and_splits_are_known_nothing_said_of_a_table_is_passed_over(tmp_path):
    root = senteval(tmp_path)
    for data, task, who in (("demo", "act", "the bundled examples"), (root, "SST2", "tasks in SentEval's layout")):
        with pytest.raises(DataError, match=rf"{task}: {who} say their splits, so test='own.csv' has no place"):
            load_labelled(data, task, test="own.csv")
        with pytest.raises(DataError, match=rf"{task}: {who} have columns of their own, so label='kind' has no place"):
            load_labelled(data, task, columns=ColumnNames(label="kind"))
        assert load_labelled(data, task, columns=ColumnNames()).task == task
    assert load_labelled("demo", "related", positive="apart").positive == 0
    with pytest.raises(DataError, match="no class named 'no'; classes found: 'apart', 'related'; name the one"):
        load_labelled("demo", "related", positive="no")


def test_numbers_are_one_class_however_they_are_written_and_sort_as_numbers(tmp_path):
    lines = [{"text": f"t {i}", "label": label} for i, label in enumerate([10, "9", 9.0, "10.0", 10, 2, 2])]
    path = write(tmp_path / "a.jsonl", "".join(json.dumps(line) + "\n" for line in lines))
    found = load_labelled(path)
    assert found.classes == ("2", "9", "10")
    assert found.y.tolist() == [2, 1, 1, 2, 2, 0, 0]


@pytest.mark.parametrize(
    ("labels", "classes"),
    [
        (("10000000000000000", "9999999999999999"), ("9999999999999999", "10000000000000000")),  # one as floats
        (("2", "nan", "10"), ("10", "2", "nan")),  # what is not finite has no place among numbers
    ],
)
def test_whole_numbers_are_classes_of_their_own_in_one_order(labels, classes, tmp_path):
    found = load_labelled(write(tmp_path / "a.tsv", table((f"t {i}", label) for i, label in enumerate(labels * 2))))
    assert found.classes == classes
    assert [found.classes[i] for i in found.y] == list(labels * 2)


def test_malformed_rows_are_told_by_line_and_can_be_left_out(tmp_path):
    text = "text\tlabel\tsplit\none\ta\ttrain\n\ta\ttrain\ntwo\t\ttrain\nthree\tb\n\nfour\tb\tlater\nfive\tb\ttest\n"
    path = write(tmp_path / "a.tsv", text)
    with pytest.raises(MalformedRows, match="5 malformed rows") as error:
        load_labelled(path)
    assert [(one.line, one.reason) for one in sorted(error.value.problems, key=lambda one: one.line)] == [
        (3, "text is empty"),
        (4, "label is empty"),
        (5, "2 columns where 3 are expected"),
        (6, "blank line"),
        (7, "split 'later' is none of train, dev and test"),
    ]
    found = load_labelled(path, keep_going=True)
    assert found.first == ("one", "five")
    assert [one.line for one in found.problems] == [3, 4, 5, 6, 7]
    assert "malformed rows left out: 5, rows kept: 2" in found.notes


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("text\tlabel\n", "column names only, no rows"),
        ("", "the file is empty"),
        ("text\tlabel\na\tx\nb\tx\n", "two classes are needed, every row has the label 'x'"),
        ("text\tlabel\n" + "".join(f"t{i}\tl{i}\n" for i in range(9)), "9 different labels in 9 rows are no classes"),
        ("a b c d\te f g h\nx y z w\tu v w x\n", "a text and a label are needed, or two texts and a label"),
    ],
)
def test_what_cannot_be_learnt_from_is_refused(text, message, tmp_path):
    with pytest.raises(DataError, match=message):
        load_labelled(write(tmp_path / "a.tsv", text))


def test_a_place_without_labelled_texts_says_what_was_looked_for(tmp_path):
    with pytest.raises(DataError, match="no labelled texts in this folder; looked for SentEval's MR, CR"):
        discover_labelled(tmp_path)
    with pytest.raises(DataError, match="files of this kind are not read"):
        discover_labelled(write(tmp_path / "a.doc", "x"))


@pytest.mark.parametrize("header", [("text", "label"), ("s1", "s2", "label")])
def test_texts_that_are_there_again_are_told(header, tmp_path):
    rows = [(*(f"text {i}{name}" for name in header[:-1]), str(i % 2)) for i in range(12)]

    def notes(rows, header=header):
        return " ".join(load_labelled(write(tmp_path / "rows.tsv", table(rows, header))).notes)

    assert "repeat" not in notes(rows + rows[:1])
    again = [(*row[-2::-1], row[-1]) for row in rows]  # a pair the other way round
    assert "12 of 24 rows repeat another's text" in notes(rows + again)
    train, test = ([(*row, split) for row in part] for part, split in ((rows, "train"), (again[:3], "test")))
    known = notes(train + test, (*header, "split"))
    assert "3 of 3 test rows repeat the text of a train row" in known
    assert "another's" not in known


def test_classes_that_only_a_computer_tells_apart_are_told(tmp_path):
    def notes(*labels):
        rows = [(f"text {i}", labels[i % len(labels)]) for i in range(12)]
        return load_labelled(write(tmp_path / "rows.tsv", table(rows, ("text", "label")))).notes

    assert notes("resume", "résumé", "num") == ()
    (said,) = notes("café", "cafe\u0301", "Num", "num", "other")
    assert "'cafe\u0301', 'café'" in said
    assert "'Num', 'num'" in said
    assert "other" not in said


def test_repeats_are_counted_in_the_rows_that_are_scored(tmp_path):
    def notes(*parts):
        rows = [(f"{split} {i % kinds}", "ab"[i % 2], split) for split, size, kinds in parts for i in range(size)]
        return " ".join(load_labelled(write(tmp_path / "rows.tsv", table(rows, ("text", "label", "split")))).notes)

    assert notes(("train", 12, 2), ("dev", 12, 2), ("test", 12, 12)) == ""
    assert "10 of 12 test rows repeat another's text" in notes(("train", 200, 200), ("test", 12, 2))
    assert "10 of 12 dev rows repeat another's text" in notes(("train", 200, 200), ("dev", 12, 2))
    assert "10 of 12 rows repeat another's text" in notes(("train", 12, 2))


# ------------------------------------------------------------------------------------------------ pairs


def pairs(tmp_path, labels, header=("sentence1", "sentence2", "label")):
    rows = [(f"one {i}", f"two {i}", label) for i, label in enumerate(labels)]
    return write(tmp_path / "pairs.tsv", table(rows, header))


@pytest.mark.parametrize(
    ("labels", "yes"), [(("0", "1"), "1"), (("entailment", "not_entailment"), "entailment"), (("no", "yes"), "yes")]
)
def test_the_class_of_pairs_that_says_yes_is_known_or_asked_for(labels, yes, tmp_path):
    found = load_labelled(pairs(tmp_path, labels * 2))
    assert found.pairs
    assert found.second == ("two 0", "two 1", "two 2", "two 3")
    assert found.classes[found.positive] == yes
    other = next(label for label in labels if label != yes)
    swapped = load_labelled(pairs(tmp_path, labels * 2), positive=other)
    assert swapped.classes[swapped.positive] == other


def test_pairs_whose_labels_say_neither_yes_nor_no_are_refused(tmp_path):
    with pytest.raises(DataError, match="which of the classes 'left' and 'right' says that the two texts match"):
        load_labelled(pairs(tmp_path, ("left", "right")))
    with pytest.raises(DataError, match="pairs need two classes, got 3: .*; a gold score is no label"):
        load_labelled(pairs(tmp_path, ("0", "2.5", "5")))
    with pytest.raises(UnclearRoles, match="no class named 'maybe'; classes found: 'left', 'right'") as error:
        load_labelled(pairs(tmp_path, ("left", "right")), positive="maybe")
    assert error.value.roles == ("positive",)  # a page asks for it by the name of its box


def test_columns_of_pairs_can_be_named_but_only_both(tmp_path):
    path = pairs(tmp_path, ("0", "1"), ("ours", "theirs", "verdict"))
    found = load_labelled(path, columns=ColumnNames(first="ours", second="theirs", label="verdict"))
    assert found.first == ("one 0", "one 1")
    with pytest.raises(DataError, match="a pair needs both columns"):
        load_labelled(path, columns=ColumnNames(first="ours", label="verdict"))


def test_truth_values_of_parquet_are_labels(tmp_path):
    path = tmp_path / "a.parquet"
    columns = {"question1": ["a", "b"], "question2": ["c", "d"], "is_duplicate": [True, False]}
    pq.write_table(pa.table(columns), path)
    found = load_labelled(path)
    assert (found.classes, found.positive, found.y.tolist()) == (("false", "true"), 1, [1, 0])


# ------------------------------------------------------------------------------------------------ SentEval


def test_the_seven_tasks_are_found_at_every_level_of_the_folder(tmp_path):
    root = senteval(tmp_path / "data")
    for place in (tmp_path, root, root / "downstream"):
        assert tuple(task.name for task in discover_labelled(place)) == tuple(SENTEVAL)
    (one,) = discover_labelled(root / "downstream" / "TREC")
    assert one.name == "TREC"


@pytest.mark.parametrize("task", ["MR", "CR", "SUBJ", "MPQA"])
def test_one_file_a_class_has_no_split_and_joined_words(task, tmp_path):
    found = load_labelled(senteval(tmp_path), task)
    assert set(found.split) == {""}
    assert found.layout == "senteval"
    if task in ("MR", "CR"):
        assert found.first == ("pos one film", "pos two", "pos café", "neg one film", "neg two", "neg café")
        assert found.y.tolist() == [1, 1, 1, 0, 0, 0]
    if task == "SUBJ":  # SentEval numbers the objective 1
        assert [found.classes[i] for i in found.y] == ["objective", "objective", "subjective"]
        assert found.y.tolist() == [1, 1, 0]


def test_an_empty_line_is_a_full_stop_and_is_said(tmp_path):
    root = senteval(tmp_path)
    write(root / "downstream/CR/custrev.neg", "too loud\n\n.\nbad\n\n")
    found = load_labelled(root, "CR")
    assert found.first[3:] == ("too loud", ".", ".", "bad", ".")
    assert found.blank == (4, 7)
    assert found.notes[0] == '2 empty lines are read as ".", as SentEval does'
    write(root / "downstream/CR/custrev.neg", "too loud\n.\n.\nbad\n.\n")
    assert load_labelled(root, "CR").fingerprint != found.fingerprint  # folds are other ones


def test_sst_trec_and_mrpc_are_read_in_their_own_forms_and_encodings(tmp_path):
    root = senteval(tmp_path)
    sst = load_labelled(root, "sst")
    assert sst.task == "SST2"
    assert sst.first[0] == "a train café"
    assert (sst.split, sst.y.tolist()) == (("train",) * 2 + ("dev",) * 2 + ("test",) * 2, [1, 0] * 3)
    trec = load_labelled(root, "trec")
    assert trec.first == ("How did it start ?", "Who is René ?", "How far : is it ?")
    assert [trec.classes[i] for i in trec.y] == ["DESC", "HUM", "NUM"]
    assert trec.split == ("train", "train", "test")
    mrpc = load_labelled(root, "MRPC")
    assert mrpc.first[0] == 'He said "yes train'
    assert mrpc.second == ("He agreed", "She left") * 2
    assert (mrpc.y.tolist(), mrpc.positive) == ([1, 0, 1, 0], 1)


def test_bad_lines_and_missing_files_of_senteval_are_named(tmp_path):
    root = senteval(tmp_path)
    down = root / "downstream"
    write(down / "TREC/TREC_10.label", "NUM:dist How far ?\nWHAT:x Is it ?\nno colon here\nHUM:ind\n")
    with pytest.raises(MalformedRows) as error:
        load_labelled(root, "TREC")
    assert [(one.line, one.reason) for one in error.value.problems] == [
        (2, "label 'WHAT' is none of ABBR, DESC, ENTY, HUM, LOC, NUM"),
        (3, "no colon: a line is LABEL:sublabel, a space, and the question"),
        (4, "question is empty"),
    ]
    write(down / "SST/binary/sentiment-dev", "fine\t1\nbroken\nodd\t2\n")
    with pytest.raises(MalformedRows, match=r"sentiment-dev:2: 1 column where a text, a tab and 0 or 1 belong"):
        load_labelled(root, "SST2")
    write(down / "MR/rt-polarity.neg", "one\na\0b\ntwo\n")
    with pytest.raises(MalformedRows, match=r"rt-polarity.neg:2: text holds a NUL byte"):
        load_labelled(root, "MR")
    (down / "CR/custrev.neg").unlink()
    with pytest.raises(DataError, match=r"custrev.neg: this file of SentEval's CR is missing"):
        load_labelled(root, "CR")
    with pytest.raises(DataError, match="holds no task 'SNLI'; it holds: MR, CR, SUBJ, MPQA, SST2, TREC, MRPC"):
        load_labelled(root, "SNLI")


# ------------------------------------------------------------------------------------------------ bundled, shared


def test_the_bundled_sentences_are_balanced_over_both_labels_and_the_split():
    act, domain = load_labelled("demo", "act"), load_labelled("demo", "domain")
    assert act.first == domain.first
    assert len(act.sentences) == 400
    cells = np.zeros((len(act.classes), len(domain.classes), 2), dtype=int)
    np.add.at(cells, (act.y, domain.y, [int(split == "test") for split in act.split]), 1)
    assert cells.shape == (5, 8, 2)
    assert (cells[:, :, 0] == 6).all()
    assert (cells[:, :, 1] == 4).all()


def test_the_bundled_pairs_are_the_demonstration_set_cut_at_a_stated_gold_score():
    found, source = load_labelled("demo", "related"), load("demo")
    assert found.first == source.first
    assert ((found.y == found.positive) == (source.gold >= 2)).all()
    assert "label made from the gold score: related from 2 on, apart below" in found.notes


def test_the_fingerprint_changes_with_everything_that_decides_a_score(tmp_path):
    base = load_labelled(pairs(tmp_path, ("0", "1", "1", "0")))
    others = [
        load_labelled(pairs(tmp_path, ("1", "0", "1", "0"))),
        load_labelled(pairs(tmp_path, ("0", "1", "1", "0")), positive="0"),
        load_labelled(pairs(tmp_path, ("0", "1", "1", "0"), ("sentence2", "sentence1", "label"))),
    ]
    assert load_labelled(pairs(tmp_path, ("0", "1", "1", "0"))).fingerprint == base.fingerprint
    assert base.fingerprint not in {one.fingerprint for one in others}


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"y": (0.9, 1.7, 0)}, "made: y must hold whole numbers, got 0.9"),
        ({"y": ("no", "yes", "no")}, "made: y must hold numbers"),
        ({"first": ("a", "b", None)}, "made: first must hold texts, row 2 holds None"),
        ({"classes": "abc"}, "made: classes must hold several texts, got one: 'abc'"),
        ({"classes": ("a", "b", "a")}, "made: classes must differ from each other, got 'a' twice"),
        ({"split": "all"}, "made: split must hold several texts, got one: 'all'"),
    ],
)
def test_texts_made_in_memory_are_told_what_does_not_fit(changes, message):
    with pytest.raises(DataError, match=message):
        replace(make_texts(3), **changes)


def test_texts_are_kept_as_tuples():
    assert isinstance(replace(make_texts(3), first=["a", "b", "c"]).first, tuple)


def test_reading_labels_loads_no_torch():
    code = "import sys; from whitelab.datasets import load_labelled; load_labelled('demo', 'act'); "
    run = run_python(code + "print('torch' in sys.modules)")
    assert run.stdout.strip() == "False", run.stderr


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"split": ("train",) * 89 + ("validation",)}, "split must hold train, dev, test, or '' .*, got 'validation'"),
        ({"positive": 3}, "positive=3 must index the 3 classes"),
        ({"positive": -1}, "positive=-1 must index the 3 classes"),
        ({"positive": "a"}, "positive='a' must index the 3 classes"),
    ],
)
def test_splits_and_a_positive_class_that_are_none_are_refused(changed, message):
    with pytest.raises(DataError, match=f"made: {message}"):
        replace(make_texts(), **changed)
