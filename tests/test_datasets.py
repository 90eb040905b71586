"""Laws of the readers: nothing is lost or changed unseen, and every problem has its file, line and reason."""

import gzip
import json
import pickle
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from whitelab.datasets import (
    DataError,
    MalformedRows,
    Problem,
    SentencePairs,
    discover,
    layouts,
    load,
    load_text,
    tables,
)

SHARED = Path(__file__).resolve().parents[2] / "shared" / "sts"
published = [
    pytest.mark.published,
    pytest.mark.skipif(not SHARED.exists(), reason="the published STS files are not beside the repository"),
]

HEADER = "sentence1\tsentence2\tscore\n"
GOOD = ("a cat", "a dog", "2.5")


def write(path: Path, content: str | bytes) -> Path:
    """Bytes as they are; text as UTF-8 without touching its line ends."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content if isinstance(content, bytes) else content.encode("utf-8"))
    return path


def whiteningbert(*rows: tuple[str, str, str]) -> str:
    return "".join("\t".join(("PAD",) * 4 + (score, first, second)) + "\n" for score, first, second in rows)


def reasons(error: pytest.ExceptionInfo) -> list[tuple[int, str]]:
    return [(problem.line, problem.reason) for problem in error.value.problems]


def make_pairs(**changes) -> SentencePairs:
    parts = {
        "task": "t",
        "first": ("a", "b", "a"),
        "second": ("b", "c", "a"),
        "gold": np.array([1.0, 2.0, 5.0]),
        "subset": np.array([0, 1, 0]),
        "subset_names": ("x", "y"),
    }
    return SentencePairs(**parts | changes)


# --- SentencePairs -----------------------------------------------------------------------------------------


def test_unique_sentences_come_in_order_of_first_appearance_and_indices_lead_back():
    pairs = make_pairs(first=("b", "a", "b"), second=("a", "d", "c"))
    assert pairs.sentences == ("b", "a", "d", "c")
    assert tuple(pairs.sentences[i] for i in pairs.first_index) == pairs.first
    assert tuple(pairs.sentences[i] for i in pairs.second_index) == pairs.second
    assert pairs.counts.tolist() == [2, 2, 1, 1]
    assert pairs.counts.dtype == pairs.first_index.dtype == np.int64


@given(st.lists(st.tuples(st.sampled_from("abcdef"), st.sampled_from("abcdef")), min_size=1, max_size=30))
def test_the_index_is_a_bijection_onto_unique_sentences(rows):
    first, second = zip(*rows, strict=True)
    zeros = np.zeros(len(rows), np.int64)
    pairs = make_pairs(first=first, second=second, gold=zeros + 1.0, subset=zeros)
    assert len(set(pairs.sentences)) == len(pairs.sentences)
    assert set(pairs.sentences) == set(first) | set(second)
    assert tuple(pairs.sentences[i] for i in pairs.first_index) == first
    assert tuple(pairs.sentences[i] for i in pairs.second_index) == second
    assert pairs.counts.sum() == 2 * len(rows)


def test_arrays_are_read_only_copies():
    gold = np.array([1.0, 2.0, 5.0])
    pairs = make_pairs(gold=gold)
    gold[0] = 4.0
    assert pairs.gold[0] == 1.0
    for array in (pairs.gold, pairs.subset, pairs.first_index, pairs.second_index, pairs.counts):
        with pytest.raises(ValueError, match="read-only"):
            array[0] = 3


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"second": ("b",)}, "second has size 1 but first holds 3"),
        ({"gold": np.ones(2)}, "gold has size"),
        ({"gold": np.array([1.0, np.nan, 2.0])}, "gold must be finite"),
        ({"subset": np.array([0, 2, 0])}, "subset must index the 2 subset_names"),
        ({"kinds": ("x",)}, "kinds has size 1"),
        ({"first": (), "second": ()}, "at least one pair"),
    ],
)
def test_parts_that_do_not_fit_together_are_refused(change, message):
    with pytest.raises(DataError, match=message):
        make_pairs(**change)


def test_one_subset_is_a_set_of_its_own_with_its_own_notes():
    pairs = make_pairs(kinds=("p", "q", "r"), notes=("told by the reader",))
    only = pairs.only("x")
    assert (only.first, only.second, only.kinds) == (("a", "a"), ("b", "a"), ("p", "r"))
    assert only.gold.tolist() == [1.0, 5.0]
    assert only.subset_names == ("x",)
    assert only.n_pairs == 2
    assert only.notes == ("told by the reader",)
    assert "one pair only" in pairs.only("y").notes[-1]
    assert pairs.subset_rows("x").tolist() == [0, 2]
    with pytest.raises(DataError, match="t has no subset 'z'; it has: x, y"):
        pairs.only("z")


@pytest.mark.parametrize(
    "change",
    [
        {"first": ("a", "b", "A")},
        {"second": ("b", "c", "b")},
        {"gold": np.array([1.0, 2.0, 4.0])},
        {"subset": np.array([0, 0, 1])},
        {"subset_names": ("x", "z")},
        {"first": ("b", "b", "a"), "second": ("a", "c", "a")},
    ],
)
def test_the_fingerprint_changes_with_everything_that_decides_a_score(change):
    assert make_pairs().fingerprint != make_pairs(**change).fingerprint


def test_the_fingerprint_ignores_what_does_not_decide_a_score():
    same = make_pairs(source="elsewhere", notes=("n",), split="dev", published=True, kinds=("p", "q", "r"))
    assert make_pairs().fingerprint == same.fingerprint
    assert make_pairs(gold=np.array([0.0, 1, 2])).fingerprint == make_pairs(gold=np.array([-0.0, 1, 2])).fingerprint


def test_the_fingerprint_keeps_sentence_borders_apart():
    kept = {"gold": np.array([1.0, 2.0]), "subset": np.array([0, 0])}
    one = make_pairs(first=("ab", "c"), second=("d", "e"), **kept)
    other = make_pairs(first=("a", "bc"), second=("d", "e"), **kept)
    assert one.fingerprint != other.fingerprint


# --- the published layouts ---------------------------------------------------------------------------------


class TestPublished:
    pytestmark = published

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
        pairs = load(SHARED / "whiteningbert", task)
        assert (pairs.n_pairs, len(pairs.sentences), len(pairs.subset_names)) == (count, unique, subsets)
        assert pairs.notes == ()  # subset files and task file agree, the number of pairs is the published one
        assert pairs.published
        assert pairs.problems == ()
        assert pairs.split == "test"

    def test_the_task_file_holds_the_pairs_of_its_subset_files(self):
        folder = load(SHARED / "whiteningbert", "sts14")
        alone = load(SHARED / "whiteningbert" / "sts14-test.csv")

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
            (info,) = discover(SHARED / folder)
            assert (info.name, info.splits) == (task, ("train", "dev", "test", "all"))
            sets = [load(SHARED / folder, split=split) for split in ("train", "dev", "test")]
            assert tuple(pairs.n_pairs for pairs in sets) == counts
            every = load(SHARED / folder, split="all")
            assert every.first == sets[0].first + sets[1].first + sets[2].first
            assert every.notes == ()
            assert every.published

    def test_gold_scores_of_stsb_are_the_same_in_both_layouts(self):
        ours = load(SHARED / "stsb").gold
        theirs = load(SHARED / "whiteningbert", "stsb").gold
        np.testing.assert_array_equal(ours, theirs)

    def test_the_parent_folder_points_to_the_folders_inside(self):
        with pytest.raises(DataError, match="no sentence pairs.*folders may hold some: sick, stsb, whiteningbert"):
            discover(SHARED)


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


@pytest.mark.parametrize("odd", ["\u2028", "\u2029", "\x85", "\x0b", "\x0c", "\x1c", "\x1e"])
@pytest.mark.parametrize("suffix", ["tsv", "csv", "jsonl"])
def test_only_a_line_feed_ends_a_line(tmp_path, odd, suffix):
    first = f"one{odd}two"
    text = {
        "tsv": f"{HEADER}{first}\tb\t1\nc\td\t2\n",
        "csv": f"sentence1,sentence2,score\n{first},b,1\nc,d,2\n",
        "jsonl": json.dumps({"s1": first, "s2": "b", "score": 1}, ensure_ascii=odd < " ")
        + '\n{"s1": "c", "s2": "d", "score": 2}\n',
    }[suffix]
    assert load(write(tmp_path / f"a.{suffix}", text)).first == (first, "c")


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
    head = "pair_ID\tsentence_A\tsentence_B\trelatedness_score\tentailment_judgment\n"
    write(tmp_path / "SICK_test_annotated.txt", head + "6\ta\tb\t3.3\tNEUTRAL\r\n7\tc\td\t1\tENTAILMENT\r\n")
    write(tmp_path / "SICK_trial.txt", head + "4\te\tf\t3.6\tNEUTRAL\n")
    pairs = load(tmp_path, "sickr", "dev")
    assert (pairs.first, pairs.second, pairs.gold.tolist()) == (("e",), ("f",), [3.6])
    assert load(tmp_path).gold.tolist() == [3.3, 1.0]
    write(tmp_path / "SICK_trial.txt", "")
    assert discover(tmp_path)[0].splits == ("dev", "test")
    with pytest.raises(DataError, match="SICK_trial.txt: the file is empty"):
        load(tmp_path, split="dev")


# --- SentEval ----------------------------------------------------------------------------------------------

SICK_HEAD = "pair_ID\tsentence_A\tsentence_B\trelatedness_score\tentailment_judgment\n"


def benchmark_rows(split: str, count: int = 2) -> str:
    """Rows of the STS benchmark as SentEval has them."""
    return "".join(f"main-news\tx\t2012\t{i}\t{i}.5\ta {split} {i}\tb  c\n" for i in range(count))


@pytest.fixture
def senteval(tmp_path):
    """A small SentEval: 2012 with two subsets, 2013 with SMT, the STS benchmark and SICK in three splits."""
    sts = tmp_path / "senteval" / "downstream" / "STS"
    write(sts / "STS12-en-test" / "STS.input.MSRpar.txt", "one  two\tthree\nfour\tfive\nsix\tseven\n")
    write(sts / "STS12-en-test" / "STS.gs.MSRpar.txt", "1.000\n\n2.5\n")
    write(sts / "STS12-en-test" / "STS.input.surprise.OnWN.txt", 'say " it\teight\n')
    write(sts / "STS12-en-test" / "STS.gs.surprise.OnWN.txt", "4\n")
    write(sts / "STS12-en-test" / "STS.gs.ALL.txt", "1.000\n2.5\n4\n")
    write(sts / "STS12-en-test" / "00-readme.txt", "Test\tdata\tof 2012\n")
    for subset in ("FNWN", "SMT"):
        write(sts / "STS13-en-test" / f"STS.input.{subset}.txt", f"{subset} a\tb\nc\td\n")
        write(sts / "STS13-en-test" / f"STS.gs.{subset}.txt", "1\n2\n")
    for split in ("train", "dev", "test"):
        write(sts / "STSBenchmark" / f"sts-{split}.csv", benchmark_rows(split))
    for split, name in {"train": "SICK_train", "dev": "SICK_trial", "test": "SICK_test_annotated"}.items():
        rows = f"1\ta {split}\tb\t3.3\tNEUTRAL\n2\tc\td\t1\tENTAILMENT\n"
        write(sts.parent / "SICK" / f"{name}.txt", SICK_HEAD + rows)
    write(sts.parent / "TREC" / "train.csv", HEADER)
    return tmp_path / "senteval"


@pytest.mark.parametrize("inside", ["", "downstream"])
def test_senteval_is_found_from_its_folder_or_from_downstream(senteval, inside):
    found = {info.name: (info.splits, info.subset_names, info.published) for info in discover(senteval / inside)}
    whole = ("train", "dev", "test", "all")
    assert found == {
        "sts12": (("test",), ("MSRpar", "surprise.OnWN"), True),
        "sts13": (("test",), ("FNWN",), True),
        "stsb": (whole, ("stsb",), True),
        "sickr": (whole, ("sickr",), True),
    }


@pytest.mark.parametrize(
    ("folder", "names"),
    [
        ("downstream/STS", ["sts12", "sts13", "stsb"]),
        ("downstream/STS/STS12-en-test", ["sts12"]),
        ("downstream/STS/STSBenchmark", ["stsb"]),
        ("downstream/SICK", ["sickr"]),
        ("downstream/STS/STS12-en-test/STS.input.MSRpar.txt", ["sts12"]),
        ("downstream/STS/STSBenchmark/sts-dev.csv", ["stsb"]),
    ],
)
def test_a_part_of_senteval_is_found_by_itself(senteval, folder, names):
    assert [info.name for info in discover(senteval / folder)] == names


def test_a_pair_without_a_score_is_left_out_and_counted_and_the_others_keep_theirs(senteval):
    pairs = load(senteval, "sts12")
    assert list(zip(pairs.first, pairs.second, pairs.gold.tolist(), strict=True)) == [
        ("one two", "three", 1.0),
        ("six", "seven", 2.5),
        ('say " it', "eight", 4.0),
    ]
    assert pairs.subset_names == ("MSRpar", "surprise.OnWN")
    assert pairs.notes[0] == "STS.input.MSRpar.txt: 1 pair without a gold score left out, as SentEval does"
    assert any("STS 2012 test has 3108 pairs as published, this is 3" in note for note in pairs.notes)


def test_scores_missing_at_the_end_are_missing_scores_too(tmp_path):
    write(tmp_path / "STS15-en-test" / "STS.input.x.txt", "a\tb\nc\td\ne\tf\n")
    write(tmp_path / "STS15-en-test" / "STS.gs.x.txt", "1\n\n\n")
    pairs = load(tmp_path, "sts15")
    assert pairs.first == ("a",)
    assert pairs.notes[0].startswith("2 pairs without a gold score")


@pytest.mark.parametrize(("gold", "count"), [("1\n", 1), ("1\n2\n3\n", 3)])
def test_files_of_different_length_are_refused_because_scores_could_have_slipped(tmp_path, gold, count):
    write(tmp_path / "STS15-en-test" / "STS.input.x.txt", "a\tb\nc\td\n")
    write(tmp_path / "STS15-en-test" / "STS.gs.x.txt", gold)
    with pytest.raises(DataError, match=rf"STS.gs.x.txt: {count} scores for the 2 pairs of STS.input.x.txt"):
        load(tmp_path, "sts15")


def test_blank_lines_after_the_last_pair_are_no_pairs(tmp_path):
    write(tmp_path / "STS15-en-test" / "STS.input.x.txt", "a\tb\nc\td\n\n")
    write(tmp_path / "STS15-en-test" / "STS.gs.x.txt", "1\n2")
    assert load(tmp_path, "sts15").gold.tolist() == [1.0, 2.0]


def test_a_subset_without_its_scores_is_named_when_the_task_is_loaded(senteval):
    (senteval / "downstream/STS/STS12-en-test/STS.gs.MSRpar.txt").unlink()
    assert "MSRpar" in {info.name: info for info in discover(senteval)}["sts12"].subset_names
    with pytest.raises(DataError, match="STS.input.MSRpar.txt: STS.gs.MSRpar.txt with its scores is not beside it"):
        load(senteval, "sts12")


def test_malformed_lines_of_senteval_are_told_by_their_line(tmp_path):
    write(tmp_path / "STS16-en-test" / "STS.input.x.txt", "a\tb\nno second\ne\tf\ng\th\tand more\n")
    write(tmp_path / "STS16-en-test" / "STS.gs.x.txt", "1\n2\nmuch\n4\n")
    with pytest.raises(MalformedRows) as error:
        load(tmp_path)
    assert reasons(error) == [(2, "1 column where 2 are expected"), (3, "score 'much' is not a number")]
    assert load(tmp_path, keep_going=True).second == ("b", "h")


def test_smt_is_left_out_of_sts13_and_said(senteval):
    pairs = load(senteval, "sts13")
    assert (pairs.subset_names, pairs.first) == (("FNWN",), ("FNWN a", "c"))
    assert "SMT left out of STS13, as in the papers, because its licence restricts it" in pairs.notes
    assert not any("SMT" in note for note in load(senteval, "sts12").notes)


def test_the_splits_of_senteval_are_joined_for_fitting(senteval):
    for task, second in (("stsb", "b c"), ("sickr", "b")):
        every = load(senteval, task, "all")
        assert set(every.first) >= {f"a {split}{' 0' if task == 'stsb' else ''}" for split in ("train", "dev", "test")}
        assert second in every.second
        assert [load(senteval, task, split).n_pairs for split in ("train", "dev", "test")] == [2, 2, 2]


def test_the_published_sts_benchmark_may_say_more_after_its_sentences(tmp_path):
    rows = benchmark_rows("test") + "main-forums\tx\t2014\t9\t5.0\tg\th\thttp://source\tCC BY\n"
    write(tmp_path / "sts-test.csv", rows)
    pairs = load(tmp_path, "stsb")
    assert (pairs.first[2], pairs.second, pairs.gold[2]) == ("g", ("b c", "b c", "h"), 5.0)


def test_another_folder_of_inputs_and_scores_is_a_task_of_its_own_name(tmp_path):
    for folder, name in (("mine", "mine"), ("STS2014-gold", "sts14"), ("sts-16", "sts16")):
        write(tmp_path / folder / "STS.input.x.txt", "a\tb\nc\td\n")
        write(tmp_path / folder / "STS.gs.x.txt", "1\n2\n")
        (info,) = discover(tmp_path / folder)
        assert (info.name, info.published) == (name, name != "mine")


def test_a_changed_score_changes_the_stamp_of_the_task(senteval):
    files = {info.name: info for info in discover(senteval)}["sts12"].files
    assert {file.name for file in files} >= {"STS.input.MSRpar.txt", "STS.gs.MSRpar.txt"}


# --- MTEB --------------------------------------------------------------------------------------------------


def mteb_file(path: Path, sentence: str, **more) -> Path:
    """Two rows as in MTEB's repositories, in the format of the extension."""
    rows = [
        {"split": "x", "sentence1": sentence, "sentence2": "b", "score": 2.5} | more,
        {"split": "x", "sentence1": "c", "sentence2": "d", "score": 4.0} | more,
    ]
    if path.suffix == ".gz":
        return write(path, gzip.compress("".join(json.dumps(row) + "\n" for row in rows).encode()))
    path.parent.mkdir(parents=True, exist_ok=True)
    return write_records(path, rows)


SHAPES = {
    "jsonl": "{split}.jsonl",
    "gz": "{split}.jsonl.gz",
    "parquet": "{split}.parquet",
    "data": "data/{split}-00000-of-00001.parquet",
    "hashed": "data/{split}-00000-of-00001-8599d9428e96fe39.parquet",
    "converted": "default/{split}/0000.parquet",
}


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("whole", [True, False])
def test_mteb_repositories_are_read_in_every_shape(tmp_path, shape, whole):
    home = tmp_path / "stsbenchmark-sts"
    for split in ("train", "validation", "test"):
        mteb_file(
            home / SHAPES[shape].format(split=split), f"a {split}", genre="main-news", dataset="MSRvid", year="2012"
        )
    (info,) = discover(tmp_path if whole else home)
    assert (info.name, info.layout, info.published) == ("stsb", "mteb", True)
    assert info.splits == ("train", "dev", "test", "all")
    pairs = load(home, split="dev")
    assert (pairs.first, pairs.gold.tolist()) == (("a validation", "c"), [2.5, 4.0])
    assert pairs.subset_names == ("stsb",)  # the genre is no subset
    assert load(home, split="all").n_pairs == 6


def test_repositories_side_by_side_are_the_seven_tasks(tmp_path):
    for repo in ("stsbenchmark-sts", "sickr-sts", *(f"sts{year}-sts" for year in range(12, 17))):
        mteb_file(tmp_path / repo / "test.jsonl.gz", "a")
    assert [info.name for info in discover(tmp_path)] == ["sickr", *(f"sts{y}" for y in range(12, 17)), "stsb"]


def test_shards_of_a_split_are_read_in_order(tmp_path):
    for shard in range(2):
        mteb_file(tmp_path / "sts14-sts" / "data" / f"test-0000{shard}-of-00002.parquet", f"a {shard}")
    assert load(tmp_path).first == ("a 0", "c", "a 1", "c")


def test_the_test_split_of_mtebs_sick_is_all_of_sick_and_said(tmp_path):
    lines = "".join(json.dumps({"sentence1": f"a {i}", "sentence2": "b", "score": i % 5}) + "\n" for i in range(9927))
    write(tmp_path / "sickr-sts" / "test.jsonl", lines)
    assert any(note.startswith("MTEB's test split of SICK-R is all of SICK") for note in load(tmp_path).notes)


def test_a_folder_with_splits_is_one_task_and_a_lone_file_a_table(tmp_path):
    mteb_file(tmp_path / "mine" / "train.jsonl", "a")
    mteb_file(tmp_path / "mine" / "test.jsonl", "a")
    (info,) = discover(tmp_path / "mine")
    assert (info.name, info.splits, info.published) == ("mine", ("train", "test"), False)
    (info,) = discover(mteb_file(tmp_path / "alone" / "test.jsonl", "a").parent)
    assert (info.name, info.layout) == ("test", "table")


@pytest.mark.parametrize(
    "data",
    [b"not gzip", b"\x1f\x8b", gzip.compress(b'{"s1": "a"}\n' * 99, mtime=0)[:-9]],
    ids=["text", "magic alone", "cut short"],
)
def test_a_gz_that_is_none_is_refused(tmp_path, data):
    with pytest.raises(DataError, match="a.jsonl.gz: not a readable gzip file"):
        load(write(tmp_path / "a.jsonl.gz", data))


def test_a_gz_that_unpacks_to_too_much_is_refused(tmp_path, monkeypatch):
    path = write(tmp_path / "a.jsonl.gz", gzip.compress(b" " * 5000))
    monkeypatch.setattr(tables, "UNZIPPED_BYTES", 4999)
    with pytest.raises(DataError, match="a.jsonl.gz: unpacks to more than 4999 bytes"):
        load(path)


# --- tables of any kind ------------------------------------------------------------------------------------


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


def write_records(path: Path, records: list[dict]) -> Path:
    if path.suffix == ".parquet":
        import pyarrow as pa
        import pyarrow.parquet as pq

        pq.write_table(pa.Table.from_pylist(records), path)
        return path
    if path.suffix == ".jsonl":
        return write(path, "".join(json.dumps(record) + "\n" for record in records))
    delimiter = "," if path.suffix == ".csv" else "\t"
    lines = [records[0], *(record.values() for record in records)]
    return write(path, "".join(delimiter.join(map(str, line)) + "\n" for line in lines))


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
        ("left\tright\na\tb\nc\td\n", r"'column 1' \(text\)"),
        ("sentence1\ts1\tsentence2\ts2\tscore\na\tb\tc\td\t1\n", "sentence1"),
        ("sentence1\tsentence2\tscore\tgold\na\tb\t1\t2\n", r"'gold' \(number\)"),
    ],
)
def test_an_unclear_table_lists_its_columns_and_what_is_needed(tmp_path, text, found):
    with pytest.raises(DataError, match=f"columns found: .*{found}.*name them sentence1, sentence2 and score"):
        load(write(tmp_path / "a.tsv", text))


def test_a_textual_label_beside_a_score_does_not_confuse(tmp_path):
    text = "sentence1\tsentence2\tlabel\tsimilarity\na\tb\tNEUTRAL\t2\nc\td\tENTAILMENT\t3\n"
    assert load(write(tmp_path / "a.tsv", text)).gold.tolist() == [2.0, 3.0]


def test_a_column_named_twice_is_refused(tmp_path):
    with pytest.raises(DataError, match="two columns are named 'score'; rename one"):
        load(write(tmp_path / "a.tsv", "sentence1\tsentence2\tscore\tscore\na\tb\t1\t2\n"))


def test_tabs_under_the_extension_csv_are_pointed_out(tmp_path):
    with pytest.raises(DataError, match="give it the extension .tsv"):
        load(write(tmp_path / "a.csv", HEADER + "a\tb\t1\n"))


@pytest.mark.parametrize("name", ["subset", "Genre", "dataset"])
def test_a_subset_column_gives_subsets_in_order_of_appearance(tmp_path, name):
    pairs = load(write(tmp_path / "a.csv", f"s1,s2,score,{name},kind\na,b,1,z,p\nc,d,2,y,\ne,f,3,z,q\n"))
    assert pairs.subset_names == ("z", "y")
    assert pairs.subset.tolist() == [0, 1, 0]
    assert pairs.kinds == ("p", "", "q")


@pytest.mark.parametrize("delimiter", ["\t", ";", "|", ","])
def test_a_txt_table_is_sniffed(tmp_path, delimiter):
    rows = [("sentence1", "sentence2", "score"), GOOD, ("one", "two", "3")]
    write(tmp_path / "a.txt", "\n".join(delimiter.join(row) for row in rows))
    write(tmp_path / "README.txt", "Pairs, scored by hand, in 2024.\nSee the other file.\n")
    assert [info.name for info in discover(tmp_path)] == ["a"]
    assert load(tmp_path).second == ("a dog", "two")


def test_a_txt_without_columns_is_refused(tmp_path):
    path = write(tmp_path / "a.txt", "just a sentence\nand another\n")
    with pytest.raises(DataError, match="no tab, semicolon, bar or comma splits its lines"):
        load(path)


def test_parquet_ignores_pandas_index_and_columns_of_lists(tmp_path):
    import pandas as pd

    frame = pd.DataFrame({"l": ["a", "b", "c"], "r": ["d", "e", "f"], "n": [1, 2, 3], "v": [[1.0], [2.0], [3.0]]})
    frame[frame.n != 2].to_parquet(tmp_path / "a.parquet")
    pairs = load(tmp_path)
    assert (pairs.first, pairs.second, pairs.gold.tolist()) == (("a", "c"), ("d", "f"), [1.0, 3.0])


@pytest.mark.parametrize("content", [b"PAR1 and then nothing of the kind", b"sentence1\tsentence2", b"PAR1PAR1"])
def test_a_parquet_that_is_none_is_refused(tmp_path, content):
    with pytest.raises(DataError, match="a.parquet: not a readable Parquet file"):
        load(write(tmp_path / "a.parquet", content))


def test_parquet_rows_are_checked_like_all_others(tmp_path):
    good = {"s1": "a", "s2": "b", "score": 1.0}
    records = [good, good | {"s1": None}, good | {"score": float("nan")}, good | {"s2": " "}, good]
    with pytest.raises(MalformedRows) as error:
        load(write_records(tmp_path / "a.parquet", records))
    assert reasons(error) == [
        (2, "first sentence is missing"),
        (3, "score nan is not a finite number"),
        (4, "second sentence is empty"),
    ]


def test_bad_json_lines_are_named(tmp_path):
    good = '{"s1": "a", "s2": "b", "score": "1.5"}\n'
    bad = [
        "{oops\n",
        "[1, 2]\n",
        '{"s1": "a", "s2": "b"}\n',
        '{"s1": 5, "s2": "b", "score": 1}\n',
        '{"s1": "a", "s2": "b", "score": true}\n',
        '{"s1": "a", "s2": "b", "score": NaN}\n',
        '{"s1": "\\ud800", "s2": "b", "score": 1}\n',
        "[" * 100_000 + "\n",
        f'{{"s1": "a", "s2": "b", "score": 1{"0" * 400}}}\n',
        "\n",
    ]
    path = write(tmp_path / "a.jsonl", good + "".join(bad) + good)
    with pytest.raises(MalformedRows, match=r"10 malformed rows: .*a\.jsonl:2: not a line of JSON") as error:
        load(path)
    found = dict(reasons(error))
    assert sorted(found) == list(range(2, 12))
    assert found[3] == "a JSON object is expected, got list"
    assert found[4] == "score is missing"
    assert found[5] == "first sentence is not text: 5"
    assert found[6] == "score True is not a number"
    assert found[7] == "score nan is not a finite number"
    assert "surrogate" in found[8]
    assert "JSON" in found[9]
    assert "not a finite number" in found[10]
    assert found[11] == "blank line"
    assert load(path, keep_going=True).gold.tolist() == [1.5, 1.5]


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
        ("a\tb\t3,5", "score '3,5' is not a number"),
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


def test_the_message_counts_all_shows_three_and_says_how_to_go_on(tmp_path):
    path = write(tmp_path / "a.tsv", HEADER + "a\tb\tx\n" * 5 + "a\tb\t1\n" * 6)
    with pytest.raises(MalformedRows, match=r"^5 malformed rows: .*keep_going=True \(--skip-malformed\)$") as error:
        load(path)
    assert str(error.value).count("is not a number") == 3
    assert len(error.value.problems) == 5
    assert "\n" not in str(error.value)
    copy = pickle.loads(pickle.dumps(error.value))
    assert (str(copy), copy.problems) == (str(error.value), error.value.problems)


def test_problems_of_all_files_of_a_task_are_told_together(year):
    write(year / "sts12.zeta-test.csv", whiteningbert(("x", "a b", "c"), ("1", "g", "h")))
    write(year / "sts12.alpha.beta-test.csv", whiteningbert(("1", "", "d"), ("5", "e", "f")))
    with pytest.raises(MalformedRows, match="^2 malformed rows"):
        load(year)
    kept = load(year, keep_going=True)
    assert (kept.n_pairs, len(kept.problems)) == (2, 2)


def test_keeping_the_rest_of_nothing_is_an_error(tmp_path):
    with pytest.raises(MalformedRows, match="no row is left"):
        load(write(tmp_path / "a.tsv", HEADER + "a\tb\tx\n"), keep_going=True)


@pytest.mark.parametrize("suffix", ["tsv", "csv", "jsonl"])
def test_blank_lines_at_the_end_are_the_only_ones_dropped(tmp_path, suffix):
    path = write_records(tmp_path / f"a.{suffix}", [{"s1": "a", "s2": "b", "score": 1}])
    write(path, path.read_bytes() + b"\r\n \n\n")
    assert load(path).n_pairs == 1


def test_quotes_in_tab_separated_text_are_plain_text(tmp_path):
    rows = '"open\tb\t1\n"whole"\t5" disc\t2\nc\td""\t3\n'
    pairs = load(write(tmp_path / "a.tsv", HEADER + rows))
    assert pairs.first == ('"open', '"whole"', "c")
    assert pairs.second == ("b", '5" disc', 'd""')


def test_an_unclosed_quote_in_csv_swallows_no_row(tmp_path):
    rows = 's1,s2,score\n"lost,b,1\nc,d,2\n"e, f",g,3\nh,i,4\n'
    with pytest.raises(MalformedRows) as error:
        load(write(tmp_path / "a.csv", rows))
    ((line, reason),) = reasons(error)
    assert line == 2
    assert "a quote is not closed on this line" in reason
    assert load(tmp_path, keep_going=True).first == ("c", "e, f", "h")


def test_a_field_over_two_lines_is_reported_on_both_and_never_read_as_a_row(tmp_path):
    rows = 's1,s2,score\n"begun\nended, ""x"" here", b,1\nh,i,4\n'
    with pytest.raises(MalformedRows) as error:
        load(write(tmp_path / "a.csv", rows))
    assert [line for line, _ in reasons(error)] == [2, 3]
    assert load(tmp_path, keep_going=True).first == ("h",)


def test_text_after_a_closing_quote_is_reported(tmp_path):
    with pytest.raises(MalformedRows, match="a.csv:2: its quotes cannot be read"):
        load(write(tmp_path / "a.csv", 's1,s2,score\n"a" cat,b,1\nc,d,2\n'))


# --- encodings, sizes, odd files ---------------------------------------------------------------------------


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16", "utf-32"])
def test_marked_encodings_are_read(tmp_path, encoding):
    text = "sentence1\tsentence2\tscore\r\nÄpfel \u2028 \U0001f34e\tb\t1\r\nc\td\t2\r\n"
    pairs = load(write(tmp_path / "a.tsv", text.encode(encoding)))
    assert pairs.first == ("Äpfel \u2028 \U0001f34e", "c")
    assert pairs.notes == ()


def test_big_endian_utf16_is_read_in_the_benchmark_layout(tmp_path):
    text = "\ufeff" + whiteningbert(("1", "ä", "b"), ("2", "c", "d"))
    write(tmp_path / "sts16-test.csv", text.encode("utf-16-be"))
    assert load(tmp_path, "sts16").first == ("ä", "c")


def test_utf16_without_a_mark_is_not_read_as_something_else(tmp_path):
    path = write(tmp_path / "a.tsv", (HEADER + "a\tb\t1\n").encode("utf-16-le"))
    with pytest.raises(DataError):
        load(path)


@pytest.mark.parametrize("mark", [b"", b"\xef\xbb\xbf"])
def test_other_encodings_are_refused_with_the_byte_and_the_advice(tmp_path, mark):
    data = mark + HEADER.encode() + "Äpfel\tb\t1\n".encode("latin-1")
    path = write(tmp_path / "a.tsv", data)
    position = data.index(b"\xc4")
    with pytest.raises(DataError, match=rf"not UTF-8 at byte {position} \(0xc4, line 2\); convert"):
        load(path)
    with pytest.raises(DataError, match="not UTF-8"):
        load(path, keep_going=True)


@pytest.mark.parametrize("name", ["a.csv", "a.tsv", "a.txt", "a.jsonl", "a.parquet"])
@pytest.mark.parametrize("content", [b"", b"\n\r\n  \n"])
def test_an_empty_file_is_refused(tmp_path, name, content):
    message = "not a readable Parquet" if name == "a.parquet" and content else "the file is empty"
    with pytest.raises(DataError, match=message):
        load(write(tmp_path / name, content))


@pytest.mark.parametrize(("name", "text"), [("a.tsv", HEADER), ("a.csv", "s1,s2,score\r\n")])
def test_column_names_alone_are_refused(tmp_path, name, text):
    with pytest.raises(DataError, match="column names only, no pairs"):
        load(write(tmp_path / name, text))


def test_bare_carriage_returns_are_named(tmp_path):
    with pytest.raises(DataError, match="bare carriage returns"):
        load(write(tmp_path / "a.tsv", (HEADER + "a\tb\t1\n").replace("\n", "\r")))


@pytest.mark.parametrize("suffix", ["csv", "tsv", "jsonl", "parquet"])
def test_long_sentences_load_whole(tmp_path, suffix):
    long = "wörd " * 60_000  # beyond csv's own limit of 131,072 characters as well
    second = "b, c" if suffix == "csv" else "b"
    records = [{"s1": long, "s2": "b", "score": 1}, {"s1": "c", "s2": "d", "score": 2}]
    path = write_records(tmp_path / f"a.{suffix}", records)
    if suffix == "csv":
        write(path, f's1,s2,score\n"{long}","{second}",1\nc,d,2\n')
    pairs = load(path)
    assert pairs.first == (long.strip(), "c")
    assert pairs.second[0] == second


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
    with pytest.raises(DataError, match="holds 2 tasks, choose one: one, two"):
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


def test_discovering_does_not_judge_rows(tmp_path):
    write(tmp_path / "a.tsv", b"\xff\xfe\xff broken")
    assert [info.name for info in discover(tmp_path)] == ["a"]


def test_places_without_pairs_say_what_was_looked_for(tmp_path):
    with pytest.raises(DataError, match="no sentence pairs in this folder; looked for TASK-test.csv"):
        discover(tmp_path)
    write(tmp_path / "inner" / "a.tsv", HEADER)
    with pytest.raises(DataError, match="its folders may hold some: inner"):
        load(tmp_path)
    with pytest.raises(DataError, match="no such file or folder"):
        discover(tmp_path / "missing")
    with pytest.raises(DataError, match="no such file or folder"):
        discover("")
    with pytest.raises(DataError, match="cannot be opened"):
        discover("x" * 5000)
    with pytest.raises(DataError, match="files of this kind are not read; use .csv, .tsv"):
        discover(write(tmp_path / "a.xlsx", b"PK"))


def test_demo_is_one_task_with_a_subset_a_file(tmp_path, monkeypatch):
    monkeypatch.setattr(layouts, "DEMO_FOLDER", tmp_path.resolve())
    with pytest.raises(DataError, match="the demonstration set is missing"):
        load("demo")
    write(tmp_path / "news.tsv", "sentence1\tsentence2\tscore\tkind\na\tb\t1\tparaphrase\nc\td\t4.5\tnegation\n")
    write(tmp_path / "finance.tsv", "sentence1\tsentence2\tscore\tkind\ne\tf\t2\tnumber\ng\th\t3\tplain\n")
    write(tmp_path / "README.md", "# the scale\n")
    pairs = load("demo")
    assert (pairs.task, pairs.subset_names, pairs.published) == ("demo", ("finance", "news"), False)
    assert pairs.kinds == ("number", "plain", "paraphrase", "negation")
    assert pairs.source == "demo, 2 subset files"
    (info,) = discover("demo")
    assert info.subset_names == ("finance", "news")
    assert load(tmp_path).fingerprint == pairs.fingerprint  # the folder by its path is the same set


# --- plain text --------------------------------------------------------------------------------------------


def test_a_plain_corpus_is_one_sentence_a_line(tmp_path):
    path = write(tmp_path / "c.txt", '\ufeffone "\r\n\r\n  two\u2028three \n\none "\n')
    assert load_text(path) == ('one "', "two\u2028three", 'one "')


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
    root = Path(__file__).resolve().parents[1]
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, cwd=root, check=True)
    assert done.stdout.strip() == "[]"
