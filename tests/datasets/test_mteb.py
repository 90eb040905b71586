"""MTEB's repositories: one folder a task, a file or shards a split."""

import gzip
import json
from pathlib import Path

import pytest
from pair_files import write, write_records

from whitelab.datasets import discover, load


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
def test_mteb_repositories_are_read_in_every_shape(tmp_path, shape):
    home = tmp_path / "stsbenchmark-sts"
    for split in ("train", "validation", "test"):
        mteb_file(
            home / SHAPES[shape].format(split=split), f"a {split}", genre="main-news", dataset="MSRvid", year="2012"
        )
    for root in (tmp_path, home):
        (info,) = discover(root)
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


def test_a_split_that_lies_there_in_two_forms_is_read_once_as_parquet_and_said(tmp_path):
    home = tmp_path / "sts14-sts"
    mteb_file(home / "train.jsonl", "old")  # in one form only
    for shape in ("gz", "converted", "data"):
        mteb_file(home / SHAPES[shape].format(split="test"), shape)
    (info,) = discover(home)
    assert info.splits == ("train", "test")
    assert load(home, split="train").first == ("old", "c")
    pairs = load(home)
    assert pairs.first == ("data", "c")
    assert [note for note in pairs.notes if "left out" in note] == [
        "test.jsonl.gz left out: its split is read in another form",
        "default/test/0000.parquet left out: its split is read in another form",
    ]


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
