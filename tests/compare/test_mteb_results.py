"""Scores in MTEB's layout: mteb reads what is written, and what it writes or once wrote is read."""

import json
from dataclasses import replace

import pytest
from tiny import build_model, write_task

from whitelab.compare import AVERAGE, Grid, compare, mteb_rows, pivot, read_mteb, write_mteb, written
from whitelab.datasets import DataError
from whitelab.scoring.setting import parse_settings


@pytest.fixture(scope="module")
def cells(tmp_path_factory):
    root = tmp_path_factory.mktemp("mteb")
    build_model(root / "org" / "model")
    for task in ("sts12", "sts13"):
        write_task(root / "tasks", task)
    settings = parse_settings("L-1;L1+L-1:pca@3")
    return list(compare(Grid([str(root / "org" / "model")], str(root / "tasks"), ["sts12", "sts13"], settings, "mteb")))


def test_mteb_reads_what_is_written_and_so_does_whitelab(cells, tmp_path):
    from mteb import TaskResult

    scored = [cell for cell in cells if cell.task != AVERAGE]
    paths = write_mteb(cells, tmp_path / "results")
    assert len(paths) == len(scored) == 4
    for path, cell in zip(paths, scored, strict=True):
        result = TaskResult.from_disk(path)
        assert (result.task_name, result.get_score()) == (cell.task.upper(), pytest.approx(cell.spearman / 100))
        assert result.eval_splits == ["test"]
        assert json.loads(path.read_text())["whitelab"]["protocol"] == cell.protocol.as_dict()
        again = tmp_path / f"{path.parent.name}-{path.name}"
        result.to_disk(again)  # what mteb writes is read as what was written
        ((one,), (other,)) = read_mteb(path), read_mteb(again)
        assert (one.task, one.split, one.subset) == (other.task, other.split, other.subset)
        assert one.spearman == pytest.approx(cell.spearman, abs=1e-9)
        assert other.spearman == pytest.approx(cell.spearman, abs=1e-4)  # mteb keeps six decimals
        assert (one.model, one.task) == (cell.model, cell.task)
    assert len(read_mteb(tmp_path / "results")) == 4
    write_mteb(cells, tmp_path / "results")
    assert len(read_mteb(tmp_path / "results")) == 4  # a second writing replaces the first


@pytest.mark.parametrize(
    ("split", "pairs", "name"), [("test", 4927, "sickr-test"), ("test", 9927, "SICK-R"), ("all", 9927, "SICK-R")]
)
def test_sick_bears_the_name_of_mteb_where_all_of_it_was_scored(cells, tmp_path, split, pairs, name):
    one = cells[0]
    origin = replace(one.protocol.origin, split=split)
    score = replace(one.score, pairs=pairs)
    sick = replace(one, task="sickr", protocol=replace(one.protocol, origin=origin), score=score)
    (path,) = write_mteb([sick], tmp_path)
    record = json.loads(path.read_text())
    assert record["task_name"] == name
    assert (record["dataset_revision"] == "none") is (name == "sickr-test")
    assert bool(mteb_rows(read_mteb(tmp_path), ["sickr"])) is (name == "SICK-R")


@pytest.mark.parametrize("aggregate", ["mean", "wmean"])
def test_a_score_that_mteb_would_not_give_is_not_written_as_one_of_mteb(cells, tmp_path, aggregate):
    protocol = replace(cells[0].protocol, setting=cells[0].protocol.setting.with_(aggregate=aggregate))
    with pytest.raises(ValueError, match=f"aggregate='{aggregate}' must be all for MTEB.* preset simcse or mteb"):
        write_mteb([*cells[1:], replace(cells[0], protocol=protocol)], tmp_path / "results")
    assert not (tmp_path / "results").exists()


def test_published_results_stand_beside_the_rows_of_a_comparison(cells, tmp_path):
    write_mteb(cells, tmp_path)
    rows = mteb_rows(read_mteb(tmp_path), pivot(cells)[0])
    own = {scores["sts12"]: scores for _, _, scores in pivot(cells)[1]}
    assert len(rows) == len(own) == 2
    for model, revision, scores in rows:
        assert (model, revision.split()[0]) == (cells[0].model, "MTEB")
        assert scores == pytest.approx(own[min(own, key=lambda value: abs(value - scores["sts12"]))])
    lines = written(cells, "markdown", given=rows).splitlines()
    assert len(lines) == len(written(cells, "markdown").splitlines()) + 2
    assert "Rows of MTEB are as their files have them" in written(cells, "markdown", "mteb", given=rows)
    protocols = [line.split(",")[2] for line in written(cells, "csv", "mteb", given=rows).splitlines()[1:]]
    assert protocols == ["mteb", "mteb", "as given", "as given"]
    assert mteb_rows(read_mteb(tmp_path), ["sts14", AVERAGE]) == []
    (row,) = {tuple(scores) for _, _, scores in mteb_rows(read_mteb(tmp_path), ["sts12", "sts14", AVERAGE])}
    assert row == ("sts12",)  # no average where a task is missing


def test_older_and_multilingual_results_are_read(tmp_path):
    home = tmp_path / "org__name" / "abc"
    home.mkdir(parents=True)
    old = {
        "mteb_dataset_name": "STS13",
        "mteb_version": "1.0.2",
        "dataset_revision": "7e9",
        "test": {"cos_sim": {"pearson": 0.5, "spearman": 0.61}, "evaluation_time": 3.1},
    }
    (home / "STS13.json").write_text(json.dumps(old))
    languages = {"en": {"cos_sim": {"spearman": 0.2}}, "de": {"cos_sim": {"spearman": 0.4}}, "evaluation_time": 1.0}
    (home / "STS22.json").write_text(json.dumps({"mteb_dataset_name": "STS22", "test": languages}))
    entries = [
        {"hf_subset": name, "languages": [name], "main_score": 0.5, "cosine_spearman": value}
        for name, value in (("en", 0.7), ("ko", 0.8))
    ]
    new = {"task_name": "STS17", "mteb_version": "1.14.0", "dataset_revision": "x", "scores": {"test": entries}}
    (home / "STS17.json").write_text(json.dumps(new))
    (home / "Banking.json").write_text(json.dumps({"task_name": "B", "scores": {"test": [{"main_score": 0.9}]}}))
    (home / "model_meta.json").write_text(json.dumps({"name": "org/name", "revision": "abc"}))
    (home / "notes.json").write_text("[1, 2]")
    assert {(one.task, one.subset, round(one.spearman, 9)) for one in read_mteb(tmp_path)} == {
        ("sts13", "default", 61.0),
        ("STS22", "en", 20.0),
        ("STS22", "de", 40.0),
        ("STS17", "en", 70.0),
        ("STS17", "ko", 80.0),
    }
    (home.parent / "copy").mkdir()
    (home.parent / "copy" / "model_meta.json").write_text(json.dumps({"name": "org/name", "revision": "abc"}))
    (home.parent / "copy" / "STS13.json").write_text(json.dumps(old))  # the same once more counts once
    ((model, row, scores),) = mteb_rows(read_mteb(tmp_path), ["sts13", "STS22", "STS17", AVERAGE])
    assert (model, row) == ("org/name", "MTEB abc")
    assert scores == pytest.approx({"sts13": 61.0, "STS22": 30.0, "STS17": 75.0, AVERAGE: (61 + 30 + 75) / 3})
    (home.parent / "copy" / "STS13.json").write_text(json.dumps(old).replace("0.61", "0.41"))
    with pytest.raises(DataError, match=r"different scores of sts13 .*: 61.0000 and 41.0000"):
        read_mteb(tmp_path)


def test_settings_that_begin_alike_and_tasks_in_any_letters_keep_scores_of_their_own(cells, tmp_path):
    tasks, settings = ("новости", "отзывы", "sts12"), parse_settings("L-1;L1+L-1:soft:gamma=0.25;L1+L-1:soft:gamma=0.5")
    scored = [
        replace(cells[0], task=task, setting=setting, spearman=float(10 * i + j))
        for i, task in enumerate(tasks, 1)
        for j, setting in enumerate(settings)
    ]
    assert len({*write_mteb(scored, tmp_path)}) == len(scored)
    rows = mteb_rows(read_mteb(tmp_path), tasks)
    assert sorted(tuple(scores[task] for task in tasks) for _, _, scores in rows) == [
        (10, 20, 30), (11, 21, 31), (12, 22, 32)
    ]  # fmt: skip
    assert len({revision for _, revision, _ in rows}) == len(settings)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("{", "must be a result of MTEB"),
        ("[]", "must be a result of MTEB"),
        ('{"task_name": "STS12"}', "must be a result of MTEB"),
        ('{"task_name": "STS12", "scores": {"test": [{"main_score": 1}]}}', "holds no cosine_spearman"),
        ('{"task_name": "STS12", "scores": {"test": [{"cosine_spearman": "x"}]}}', "number from -1 to 1, got 'x'"),
        ('{"task_name": "STS12", "scores": {"test": [{"cosine_spearman": 71.2}]}}', "number from -1 to 1, got 71.2"),
        ('{"task_name": "STS12", "scores": {"test": [{"cosine_spearman": NaN}]}}', "number from -1 to 1, got nan"),
    ],
)
def test_what_is_no_result_is_refused_in_one_line(tmp_path, text, words):
    path = tmp_path / "STS12.json"
    path.write_text(text)
    with pytest.raises(DataError, match=words):
        read_mteb(path)
    with pytest.raises(DataError, match="no such file or folder"):
        read_mteb(tmp_path / "absent")
