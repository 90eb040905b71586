"""Laws of places: which tasks and splits a folder holds, in the published layouts and as plain tables."""

import pickle

import numpy as np
import pandas as pd
import pytest
from judged import write_retrieval
from needs import PUBLISHED
from pair_files import HEADER, SICK_HEAD, whiteningbert, write

from whitelab.datasets import DataError, MalformedRows, Upload, discover, layouts, load, offered
from whitelab.datasets.arrays import read_arrays
from whitelab.datasets.images import load_images
from whitelab.datasets.labelled import discover_labelled
from whitelab.datasets.loading import load_text
from whitelab.datasets.retrieval_sets import retrieval_files
from whitelab.datasets.sheets import Sheet, open_sheet

# --- the published files -----------------------------------------------------------------------------------


class TestPublished:
    pytestmark = pytest.mark.published

    @pytest.mark.parametrize(
        ("task", "count", "unique", "subsets"),
        [
            ("sts12", 3108, 4946, 5),
            ("sts13", 1500, 2638, 3),
            ("sts14", 3750, 6351, 6),
            ("sts15", 3000, 5170, 5),
            ("sts16", 1186, 1867, 5),
            ("stsb", 1379, 2551, 1),
            ("sickr", 4927, 5007, 1),
        ],
    )
    def test_whiteningbert_files_hold_the_published_numbers_of_pairs(self, task, count, unique, subsets):
        pairs = load(PUBLISHED / "whiteningbert", task)
        assert (pairs.n_pairs, len(pairs.sentences), len(pairs.subset_names)) == (count, unique, subsets)
        assert pairs.notes == ()  # subset files and task file agree, the number of pairs is the published one
        assert pairs.published
        assert pairs.problems == ()
        assert pairs.split == "test"

    def test_the_task_file_holds_the_pairs_of_its_subset_files(self):
        folder = load(PUBLISHED / "whiteningbert", "sts14")
        alone = load(PUBLISHED / "whiteningbert" / "sts14-test.csv")

        def rows(pairs):
            return sorted(zip(pairs.first, pairs.second, pairs.gold, strict=True))

        assert rows(folder) == rows(alone)
        assert alone.subset_names == ("sts14",)
        assert folder.first != alone.first  # their order differs

    def test_stsb_and_sick_have_their_splits(self):
        for folder, task, counts in [
            ("stsb", "stsb", (5749, 1500, 1379)),
            ("sick", "sickr", (4500, 500, 4927)),
        ]:
            (info,) = discover(PUBLISHED / folder)
            assert (info.name, info.splits) == (task, ("train", "dev", "test", "all"))
            sets = [load(PUBLISHED / folder, split=split) for split in ("train", "dev", "test")]
            assert tuple(pairs.n_pairs for pairs in sets) == counts
            every = load(PUBLISHED / folder, split="all")
            assert every.first == sets[0].first + sets[1].first + sets[2].first
            assert every.notes == ()
            assert every.published

    def test_gold_scores_of_stsb_are_the_same_in_both_layouts(self):
        ours = load(PUBLISHED / "stsb").gold
        theirs = load(PUBLISHED / "whiteningbert", "stsb").gold
        np.testing.assert_array_equal(ours, theirs)

    def test_the_parent_folder_points_to_the_folders_inside(self):
        with pytest.raises(DataError, match="no sentence pairs.*folders may hold some: sick, stsb, whiteningbert"):
            discover(PUBLISHED)


# --- layouts, written small --------------------------------------------------------------------------------


@pytest.fixture
def year(tmp_path):
    rows = [("1", "a b", "c"), ("2.5", 'say " it', "d"), ("5", "e", "f")]
    write(tmp_path / "sts12-test.csv", whiteningbert(*rows))
    write(tmp_path / "sts12.zeta-test.csv", whiteningbert(*rows[:1]))
    write(tmp_path / "sts12.alpha.beta-test.csv", whiteningbert(*rows[1:]))
    return tmp_path


def test_subset_files_are_concatenated_by_name_and_label_their_rows(year):
    (info,) = discover(year)
    assert (info.name, info.title, info.published) == ("sts12", "STS 2012", True)
    assert info.subset_names == ("alpha.beta", "zeta")
    pairs = load(year)
    assert pairs.subset_names == ("alpha.beta", "zeta")
    assert pairs.subset.tolist() == [0, 0, 1]
    assert pairs.first == ('say " it', "e", "a b")
    assert pairs.source == "sts12, 2 subset files"
    assert not any("differ" in note for note in pairs.notes)


def test_a_task_file_that_differs_from_its_subset_files_is_noted(year):
    write(year / "sts12-test.csv", whiteningbert(("1", "a b", "c"), ("2.5", 'say " it', "d"), ("4", "e", "f")))
    pairs = load(year)
    assert pairs.gold.tolist() == [2.5, 5.0, 1.0]  # subset files decide
    assert "differ from sts12-test.csv: 1 of its rows are not in them, 1 of theirs are not in it" in pairs.notes[0]


def test_the_comparison_counts_repeated_rows(year):
    rows = [("1", "a b", "c"), ("2.5", 'say " it', "d"), ("5", "e", "f"), ("5", "e", "f")]
    write(year / "sts12-test.csv", whiteningbert(*rows))
    assert "1 of its rows are not in them, 0 of theirs" in load(year).notes[0]


def test_an_unreadable_task_file_is_noted_beside_good_subset_files(year):
    write(year / "sts12-test.csv", b"\xff\xff")
    assert "could not be compared" in load(year).notes[0]


def test_an_empty_subset_file_does_not_drop_out_of_its_task(year):
    write(year / "sts12.gamma-test.csv", "")
    (info,) = discover(year)
    assert "gamma" in info.subset_names
    with pytest.raises(DataError, match="sts12.gamma-test.csv: the file is empty"):
        load(year)


def test_a_benchmark_of_another_size_is_noted(year):
    assert any("STS 2012 test has 3108 pairs as published, this is 3" in note for note in load(year).notes)


def test_problems_of_all_files_of_a_task_are_told_together(year):
    write(year / "sts12.zeta-test.csv", whiteningbert(("x", "a b", "c"), ("1", "g", "h")))
    write(year / "sts12.alpha.beta-test.csv", whiteningbert(("1", "", "d"), ("5", "e", "f")))
    with pytest.raises(MalformedRows, match="^2 malformed rows"):
        load(year)
    kept = load(year, keep_going=True)
    assert (kept.n_pairs, len(kept.problems)) == (2, 2)


def test_the_genre_column_of_stsb_is_no_subset(tmp_path):
    write(tmp_path / "sts-b-test.csv", "main-news\tx\t2012\t1\t3\ta\tb\nmain-forums\tx\t2012\t2\t4\tc\td\n")
    pairs = load(tmp_path)
    assert (pairs.task, pairs.subset_names) == ("stsb", ("stsb",))


def test_names_like_a_benchmark_with_other_content_are_plain_tables(tmp_path):
    write(tmp_path / "sts12-test.csv", "sentence1,sentence2,score\na,b,1\nc,d,2\n")
    (info,) = discover(tmp_path)
    assert (info.name, info.layout, info.published) == ("sts12-test", "table", False)


def test_an_unknown_task_in_the_benchmark_layout_is_not_called_published(tmp_path):
    write(tmp_path / "mine-test.csv", whiteningbert(("1", "a", "b"), ("2", "c", "d")))
    (info,) = discover(tmp_path)
    assert (info.name, info.layout, info.published) == ("mine", "whiteningbert", False)


def test_stsb_csv_reads_quotes_and_windows_line_ends(tmp_path):
    write(tmp_path / "stsb-en-test.csv", 'A girl.,"Yes, she said ""so"".",2.5\r\nB,C,5.0\r\n')
    write(tmp_path / "stsb-en-dev.csv", "D,E,1.0\r\nF,G,2.0\r\n")
    (info,) = discover(tmp_path)
    assert info.splits == ("dev", "test")  # no "all" without train
    assert load(tmp_path).second == ('Yes, she said "so".', "C")
    assert load(tmp_path, split="dev").split == "dev"
    with pytest.raises(DataError, match="stsb has no split 'train'; it has: dev, test"):
        load(tmp_path, "stsb", "train")


def test_sick_trial_is_dev_and_an_empty_one_is_not_overlooked(tmp_path):
    write(tmp_path / "SICK_test_annotated.txt", SICK_HEAD + "6\ta\tb\t3.3\tNEUTRAL\r\n7\tc\td\t1\tENTAILMENT\r\n")
    write(tmp_path / "SICK_trial.txt", SICK_HEAD + "4\te\tf\t3.6\tNEUTRAL\n")
    pairs = load(tmp_path, "sickr", "dev")
    assert (pairs.first, pairs.second, pairs.gold.tolist()) == (("e",), ("f",), [3.6])
    assert load(tmp_path).gold.tolist() == [3.3, 1.0]
    write(tmp_path / "SICK_trial.txt", "")
    assert discover(tmp_path)[0].splits == ("dev", "test")
    with pytest.raises(DataError, match="SICK_trial.txt: the file is empty"):
        load(tmp_path, split="dev")


def test_one_set_of_pairs_has_the_same_gold_in_both_layouts(tmp_path):
    rows = [("2.5", "a b", "c"), ("0.4", "d", "e"), ("5.000", "f", "g")]
    write(tmp_path / "one" / "sts-b-test.csv", whiteningbert(*rows))
    write(tmp_path / "other" / "stsb-en-test.csv", "".join(f"{a},{b},{score}\r\n" for score, a, b in rows))
    one, other = (load(tmp_path / name, "stsb") for name in ("one", "other"))
    assert (discover(tmp_path / "one")[0].layout, discover(tmp_path / "other")[0].layout) == ("whiteningbert", "stsb")
    np.testing.assert_array_equal(one.gold, other.gold)
    assert one.fingerprint == other.fingerprint


# --- places ------------------------------------------------------------------------------------------------


def test_a_folder_of_tables_holds_one_task_a_file(tmp_path):
    write(tmp_path / "one.tsv", HEADER + "a\tb\t1\n")
    write(tmp_path / "two.jsonl", '{"s1": "c", "s2": "d", "score": 2}\n')
    write(tmp_path / ".hidden.tsv", HEADER)
    write(tmp_path / "LICENSE.txt", "Do what you like.\n")
    assert [(info.name, info.splits, info.published) for info in discover(tmp_path)] == [
        ("one", ("all",), False),
        ("two", ("all",), False),
    ]
    assert load(tmp_path, "two").first == ("c",)
    with pytest.raises(DataError, match="holds 2 tasks, choose one as `task`: one, two"):
        load(tmp_path)
    with pytest.raises(DataError, match="holds no task 'three'; it holds: one, two"):
        load(tmp_path, "three")
    with pytest.raises(DataError, match="one has no split 'dev'; it has: all"):
        load(tmp_path, "one", "dev")


def test_files_of_one_stem_bear_their_full_names(tmp_path):
    write(tmp_path / "a.tsv", HEADER + "a\tb\t1\n")
    write(tmp_path / "a.csv", "s1,s2,score\nc,d,1\n")
    assert [info.name for info in discover(tmp_path)] == ["a.csv", "a.tsv"]
    assert load(tmp_path, "a.csv").first == ("c",)


@pytest.mark.parametrize(
    ("name", "row"), [("stsb-en-test.csv", "{},c,{}\n"), ("sts13-test.csv", "PAD\tPAD\tPAD\tPAD\t{1}\t{0}\tc\n")]
)
def test_a_benchmark_in_two_folders_is_a_task_in_each_by_the_path_of_its_first_file(name, row, tmp_path):
    for folder in ("", "STS"):
        write(tmp_path / folder / name, "".join(row.format(f"{folder} {i}", i) for i in range(3)))
    assert [(info.name, info.published) for info in discover(tmp_path)] == [(f"STS/{name}", True), (name, True)]
    assert load(tmp_path, name).first == ("0", "1", "2")
    assert load(tmp_path, f"STS/{name}").first == ("STS 0", "STS 1", "STS 2")


def test_discovering_does_not_judge_rows(tmp_path):
    write(tmp_path / "a.tsv", b"\xff\xfe\xff broken")
    assert [info.name for info in discover(tmp_path)] == ["a"]


def test_places_without_pairs_say_what_was_looked_for(tmp_path):
    with pytest.raises(DataError, match="no sentence pairs in this folder; looked for TASK-test.csv"):
        discover(tmp_path)
    write(tmp_path / "inner" / "a.tsv", HEADER)
    with pytest.raises(DataError, match=r"its folders may hold some: inner \(name it\)"):
        load(tmp_path)
    write(tmp_path / "other" / "stsb-en-test.csv", "a man,a dog,3\nwater,the cat,1\n")
    with pytest.raises(DataError, match=r"inner, other \(name one, or put the files of several into one folder\)"):
        discover(tmp_path)
    for file in ("inner/a.tsv", "other/stsb-en-test.csv"):
        write(tmp_path / "both" / file.partition("/")[2], (tmp_path / file).read_text())
    assert [info.name for info in discover(tmp_path / "both")] == ["a", "stsb"]  # and so it is
    write(tmp_path / "TREC" / "train_5500.label", "DESC:manner How did it go ?\n")
    with pytest.raises(DataError, match=r"labelled texts \(TREC\), not sentence pairs; `.* probe` and the page Probe"):
        load(tmp_path)
    with pytest.raises(
        DataError, match="a retrieval set, not sentence pairs; `.* retrieve` and the page Retrieval"
    ) as error:
        discover(write_retrieval(tmp_path / "search"))
    same = pickle.loads(pickle.dumps(error.value))
    assert (type(same), str(same), same.kind) == (type(error.value), str(error.value), "retrieval set")
    with pytest.raises(DataError, match="no such file or folder"):
        discover(tmp_path / "missing")
    with pytest.raises(DataError, match="no such file or folder"):
        discover("")
    with pytest.raises(DataError, match="cannot be opened"):
        discover("x" * 5000)
    with pytest.raises(DataError, match="files of this kind are not read; use .csv, .tsv"):
        discover(write(tmp_path / "a.xlsx", b"PK"))


def test_demo_is_one_task_with_a_subset_a_file(tmp_path, monkeypatch):
    tmp_path = (tmp_path / "demo").resolve()
    tmp_path.mkdir()
    monkeypatch.setattr(layouts, "shipped", lambda path: tmp_path)
    with pytest.raises(DataError, match="the demonstration set is missing"):
        load("demo")
    write(tmp_path / "news.tsv", "sentence1\tsentence2\tscore\tkind\na\tb\t1\tparaphrase\nc\td\t4.5\tnegation\n")
    write(tmp_path / "finance.tsv", "sentence1\tsentence2\tscore\tkind\ne\tf\t2\tnumber\ng\th\t3\tplain\n")
    write(tmp_path / "README.md", "# the scale\n")
    pairs = load("demo")
    assert (pairs.task, pairs.subset_names, pairs.published) == ("demo", ("finance", "news"), False)
    assert pairs.source == "demo, 2 subset files"
    (info,) = discover("demo")
    assert info.subset_names == ("finance", "news")
    assert load(tmp_path).fingerprint == pairs.fingerprint  # the folder by its path is the same set


# --- what an operator offers --------------------------------------------------------------------------------

READERS = (discover, load_text, discover_labelled, retrieval_files, read_arrays, open_sheet, load_images)


@pytest.mark.parametrize("read", READERS, ids=lambda read: read.__name__)
def test_what_an_operator_does_not_offer_is_refused_in_the_same_words_whether_or_not_it_is_there(
    read, tmp_path, monkeypatch
):
    ours, theirs = tmp_path / "offered", tmp_path / "theirs"
    write(ours / "a.tsv", HEADER + "x\ty\t1\n")
    write(theirs / "b.tsv", HEADER + "x\ty\t1\n")
    (ours / "link.tsv").symlink_to(theirs / "b.tsv")
    places = [theirs / "b.tsv", theirs, theirs / "none.tsv", ours / "none.tsv", ours / "link.tsv"]
    places += [ours / ".." / "theirs" / "b.tsv", f"{ours}-like", "~root", "~nobody-here", "/etc/passwd", "x" * 5000]
    places += ["\0", "mteb-stsb", "relative"]
    monkeypatch.setenv("WHITELAB_DATA", f" {ours},relative ,")
    for place in places:
        with pytest.raises(DataError) as refused:
            read(str(place))
        assert str(refused.value) == f"{place}: not among the data that this server offers (WHITELAB_DATA)"


@pytest.mark.parametrize("kind", [".tsv", ".jsonl", ".parquet"])
def test_a_link_in_an_offered_folder_leads_nowhere_else(kind, tmp_path, monkeypatch):
    ours = tmp_path / "offered"
    write(ours / "a.tsv", HEADER + "x\ty\t1\nz\tw\t2\n")
    rows = pd.DataFrame({"sentence1": ["secret", "s"], "sentence2": ["t", "u"], "score": [1.0, 2.0]})
    theirs = {
        ".tsv": lambda path: rows.to_csv(path, sep="\t", index=False),
        ".jsonl": lambda path: rows.to_json(path, orient="records", lines=True),
        ".parquet": rows.to_parquet,
    }
    theirs[kind](tmp_path / f"b{kind}")
    (ours / f"b{kind}").symlink_to(tmp_path / f"b{kind}")
    (ours / "c.tsv").symlink_to(ours / "a.tsv")
    assert load(ours, "b").first == ("secret", "s")
    monkeypatch.setenv("WHITELAB_DATA", str(ours))
    with pytest.raises(DataError, match="not among the data that this server offers"):
        load(ours, "b")
    assert load(ours, "c").n_pairs == 2


def test_what_an_operator_offers_is_read_and_so_is_what_is_bundled_or_uploaded(tmp_path, monkeypatch):
    file = write(tmp_path / "offered" / "a.tsv", HEADER + "x\ty\t1\nz\tw\t2\n")
    monkeypatch.setenv("WHITELAB_DATA", str(tmp_path / "offered"))
    assert load(tmp_path / "offered").n_pairs == load(file).n_pairs == 2
    assert [info.name for info in discover("demo")] == ["demo"]
    assert isinstance(open_sheet(Upload("a.tsv", file.read_bytes())), Sheet)
    monkeypatch.setenv("WHITELAB_DATA", "mteb-stsb")
    monkeypatch.setattr(layouts, "fetched", lambda name: tmp_path / "offered")
    monkeypatch.setattr(offered, "data_root", lambda: tmp_path)
    assert load("mteb-stsb").n_pairs == 2
    monkeypatch.setenv("WHITELAB_DATA", "")
    assert load(file).n_pairs == 2
