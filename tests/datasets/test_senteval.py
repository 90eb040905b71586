"""SentEval's folders of STS: found whole and in part, sentences and scores in files of their own."""

import os

import pytest
from pair_files import HEADER, SICK_HEAD, reasons, write

from whitelab.datasets import DataError, MalformedRows, discover, load
from whitelab.ui.results.files import file_stamp


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
    before = file_stamp(files)
    gold = next(file for file in files if file.name == "STS.gs.MSRpar.txt")
    os.utime(gold, (1000, 1000))
    assert file_stamp(files) != before
