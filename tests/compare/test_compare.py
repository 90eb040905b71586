"""A comparison is what `score` gives cell by cell, under its preset, and survives what is broken."""

import csv
import io
import math
import os
from dataclasses import replace
from hashlib import sha256
from pathlib import Path

import pytest
import torch
from progressing import progressed
from safetensors.torch import load_file
from tiny import build_model, write_task

import whitelab
from whitelab.compare import (
    AVERAGE,
    PRESETS,
    Bench,
    Cell,
    Grid,
    arranged,
    compare,
    preset_line,
    printed,
    ranked,
    resample,
    settings_for,
    starved_note,
    written,
)
from whitelab.compare.grid import average, called
from whitelab.datasets import discover, hold, load
from whitelab.encoding.catalogue import entries
from whitelab.encoding.embeddings import embed_pairs
from whitelab.encoding.encoders import load_encoder
from whitelab.scoring.score import score
from whitelab.scoring.setting import Setting, parse_settings
from whitelab.statistics import significance
from whitelab.store.embedding_store import Store


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    root = tmp_path_factory.mktemp("compare")
    build_model(root / "model")
    write_task(root / "tasks")
    return root


@pytest.fixture(scope="module")
def tasks(place):
    return [task.name for task in discover(place / "tasks")]


def grid(place, tasks, settings="mean/L1;mean/L1+L-1:pca", preset="whiteningbert", models=None, **more):
    return Grid(models or [str(place / "model")], str(place / "tasks"), tasks, parse_settings(settings), preset, **more)


def cells(*given, known=None, **more):
    options = {name: more.pop(name) for name in ("store", "progress") if name in more}
    return list(compare(grid(*given, **more), known=known, **options))


@pytest.mark.parametrize("name", PRESETS)
def test_every_cell_is_the_score_of_its_protocol(place, tasks, name):
    preset = PRESETS[name]
    encoder = load_encoder(str(place / "model"))
    corpus = str(place / "tasks") if preset.fit == "corpus" else None
    found = cells(place, tasks, "cls/L-1;mean/L1;mean/L1+L-1:zca@3", name, corpus=corpus)
    scored = [cell for cell in found if cell.task != AVERAGE]
    assert len(scored) == 3 * len(tasks) > 0
    for cell in scored:
        pairs = load(place / "tasks", cell.task)
        setting, origin = cell.protocol.setting, cell.protocol.origin
        assert (setting.aggregate, origin.max_length) == (preset.aggregate, preset.max_length or encoder.limit)
        assert (origin.text, origin.pooling) == (preset.text, cell.setting.pooling)
        space, _ = embed_pairs(encoder.cut_to(origin.max_length), pairs, cell.setting.pooling)
        expected = score(space, setting.with_(fit="task"))  # these tasks have one split, and the corpus is it
        assert cell.spearman == pytest.approx(expected.spearman, abs=1e-6)


def test_weights_that_are_pickled_are_read_of_the_models_that_may_be(place, tasks, tmp_path):
    models = [str(build_model(tmp_path / name)) for name in ("yes", "no")]
    for model in models:
        weights = Path(model) / "model.safetensors"
        torch.save(load_file(weights), weights.with_name("pytorch_model.bin"))
        weights.unlink()
    of = grid(place, tasks, "mean/L1", models=models, allow_bin=(models[0], "another"))
    assert of.allow_bin == (models[0],)
    found = [one for one in compare(of) if one.task == tasks[0]]
    assert found[0].spearman is not None
    assert "pickled weights" in found[1].reason


def test_the_average_is_the_plain_mean_over_the_tasks(place, tmp_path):
    (tmp_path / "one.csv").write_text("sentence1,sentence2,score\na man,a dog,3\nwater,the cat,1\na singer,the dog,5\n")
    (tmp_path / "two.csv").write_text("sentence1,sentence2,score\na cat,a dog,4\nwater,a man,1\na dog,the singer,2\n")
    found = list(compare(Grid([str(place / "model")], str(tmp_path), ["one", "two"], parse_settings("L1;cls/L2"))))
    assert [(cell.task, str(cell.setting)) for cell in found[:4]] == [
        ("one", "mean/L1"),
        ("one", "cls/L2"),
        ("two", "mean/L1"),
        ("two", "cls/L2"),
    ]
    for setting in parse_settings("L1;cls/L2"):
        scores = {cell.task: cell.spearman for cell in found if cell.setting == setting}
        assert scores[AVERAGE] == pytest.approx((scores["one"] + scores["two"]) / 2)


def test_what_is_broken_is_said_in_its_cells_and_the_others_go_on(place, tasks):
    models = [str(place / "nowhere"), str(place / "model")]
    found = cells(place, [*tasks, "missing"], "L1;L9;L1:pca@999", models=models)
    assert {cell.model for cell in found} == {*called(models).values()} == {"nowhere", "model"}
    absent, present = ([cell for cell in found if cell.model == name] for name in ("nowhere", "model"))
    assert all(cell.spearman is None and "nowhere" in cell.reason for cell in absent if cell.task != AVERAGE)
    reasons = {(cell.task, str(cell.setting)): cell.reason for cell in present}
    assert reasons[tasks[0], "mean/L1"] == ""
    assert "layers=[9] must lie between 0 and" in reasons[tasks[0], "mean/L9"]
    assert "k=999 must lie between 1 and d=" in reasons[tasks[0], "mean/L1:pca@999"]
    assert "holds no task 'missing'" in reasons["missing", "mean/L1"]
    assert reasons[AVERAGE, "mean/L1"] == "no score for missing"


def test_a_second_comparison_encodes_nothing_anew(place, tasks, tmp_path, monkeypatch):
    store, batches = Store(tmp_path / "store"), []
    first = cells(place, tasks, store=store)
    monkeypatch.setattr("whitelab.encoding.encoders.Encoder.forward", lambda self, ids: batches.append(ids))
    assert [cell.spearman for cell in cells(place, tasks, store=store)] == [cell.spearman for cell in first]
    assert not batches


def test_cells_that_are_known_are_not_computed_again_and_load_no_model(place, tasks, monkeypatch):
    known, scored = {}, []
    first = cells(place, tasks, "L1;L2", known=known)
    assert len(known) == 2 * len(tasks)
    real = Bench.score
    monkeypatch.setattr(Bench, "score", lambda self, one, preset: scored.append(str(one)) or real(self, one, preset))
    again = cells(place, tasks, "L1;cls/L3;L2", known=known)
    assert scored == ["cls/L3"] * len(tasks)
    assert [cell for cell in again if str(cell.setting) != "cls/L3"] == first
    monkeypatch.setattr("whitelab.compare.grid.load_encoder", None)
    assert cells(place, tasks, "L2;L1", known=known)[0].setting == Setting.parse("L2")


def test_a_comparison_that_was_stopped_goes_on_where_it_stood(place, tasks):
    known = {}
    whole = compare(grid(place, tasks, "L1;L2;L3"), known=known)
    next(whole), next(whole), whole.close()
    assert len(known) == 2
    assert len(cells(place, tasks, "L1;L2;L3", known=known)) >= 3
    assert len(known) == 3 * len(tasks)


@pytest.mark.parametrize(
    "other", [{"preset": "simcse"}, {"keep_going": True}, {"dtype": "bfloat16"}], ids=lambda one: next(iter(one))
)
def test_what_decides_a_cell_decides_whether_it_is_known(place, tasks, other):
    known = {}
    cells(place, tasks[:1], "L1", known=known)
    cells(place, tasks[:1], "L1", known=known, **other)
    assert len(known) == 2


def test_a_cell_without_a_score_is_tried_again(place, tasks, monkeypatch):
    known = {}
    with monkeypatch.context() as patch:
        patch.setattr("whitelab.compare.bench.score", lambda *given: (_ for _ in ()).throw(MemoryError()))
        assert {cell.reason for cell in cells(place, tasks[:1], known=known)} == {"not enough memory"}
    assert not known
    assert {cell.reason for cell in cells(place, tasks[:1], known=known)} == {""}


def test_progress_counts_cells_and_can_stop(place, tasks):
    seen = progressed(lambda progress: cells(place, tasks, progress=progress))
    assert seen == [(i + 1, 2 * len(tasks)) for i in range(2 * len(tasks))]


def test_a_fault_of_ours_is_not_hidden_in_a_cell(place, tasks, monkeypatch):
    monkeypatch.setattr("whitelab.compare.bench.score", lambda *given: {}["missing"])
    with pytest.raises(KeyError):
        cells(place, tasks)
    monkeypatch.setattr(
        "whitelab.compare.bench.score", lambda *given: (_ for _ in ()).throw(RuntimeError("out of memory"))
    )
    assert {cell.reason for cell in cells(place, tasks[:1])} == {"not enough memory"}


def test_rows_that_say_what_the_preset_decides_are_refused(place, tasks):
    for row in ("L1:pca fit=cross", "L1 aggregate=mean"):
        with pytest.raises(ValueError, match=f"setting='mean/{row}' must leave fit and aggregate to the preset mteb"):
            cells(place, tasks, row, "mteb")


# Tables


def row(model, setting, task, value):
    return Cell(model, Setting.parse(setting), task, value)


TABLE = [
    row("a_b", "L1", "stsb", 50.123),
    row("a_b", "L1", "avg", 40.0),
    row("c", "L1:pca", "stsb", 50.1199),
    row("c", "L1:pca", "avg", None),
]


def test_csv_keeps_every_digit_and_leaves_the_missing_empty():
    lines = list(csv.DictReader(io.StringIO(written(TABLE, "csv"))))
    assert [(one["model"], one["setting"], one["stsb"], one["avg"]) for one in lines] == [
        ("a_b", "mean/L1", "50.123", "40.0"),
        ("c", "mean/L1:pca", "50.1199", ""),
    ]


def test_the_best_of_a_task_is_bold_and_ties_are_all_best():
    markdown = written(TABLE, "markdown").splitlines()
    assert markdown[0] == "| model | setting | stsb | avg |"
    assert markdown[2:] == ["| a_b | mean/L1 | **50.12** | **40.00** |", "| c | mean/L1:pca | **50.12** | - |"]
    assert "**" not in written([row("a", "L1", "stsb", 1.0), row("b", "L1", "stsb", 2.0)], "markdown").splitlines()[2]


def test_a_starved_score_is_the_best_of_nothing_nor_is_an_average_over_it(place, tasks):
    (first, *_) = cells(place, tasks, "L1:pca")
    preset, starved = PRESETS["whiteningbert"], replace(first.score, starved=True)

    def line(model, *scores):
        found = [replace(first, model=model, task=task, spearman=s, score=one) for task, s, one in scores]
        return [*found, average(found, preset)]

    table = [
        *line("a", ("one", 50.0, first.score), ("two", 50.0, first.score)),
        *line("b", ("one", 99.0, starved), ("two", 99.0, first.score)),
    ]
    assert [one.split(" | ")[2:] for one in written(table, "markdown").splitlines()[2:4]] == [
        ["**50.00**", "50.00", "**50.00** |"],
        ["99.00", "**99.00**", "99.00 |"],
    ]


ORDERED = [
    row("b", "L1", "stsb", 50.0),
    row("b", "L2", "stsb", None),
    row("a", "L1", "stsb", 70.0),
    row("a", "L2", "stsb", 50.0),
    row("a", "L2", "sickr", 10.0),
]


@pytest.mark.parametrize(
    ("by", "rows"),
    [
        (None, ["b L1", "b L2", "a L1", "a L2"]),
        ("stsb", ["a L1", "b L1", "a L2", "b L2"]),
        ("sickr", ["a L2", "b L1", "b L2", "a L1"]),
        ("model", ["a L1", "a L2", "b L1", "b L2"]),
        ("setting", ["b L1", "a L1", "b L2", "a L2"]),
    ],
)
def test_rows_are_sorted_by_a_column_and_equals_keep_their_order(by, rows):
    found = dict.fromkeys(f"{one.model} {one.setting.named_layers}" for one in arranged(ORDERED, by=by))
    assert list(found) == rows


def test_rows_are_ranked_by_the_mean_of_their_scores_and_those_without_one_are_the_last(place, tasks):
    (scored, *_) = cells(place, tasks, "L1:pca")
    table = [replace(one, score=one.spearman and scored.score) for one in ORDERED]
    lines = list(dict.fromkeys(one.row for one in table))
    assert ranked(lines, table) == [("a", "mean/L1"), ("b", "mean/L1"), ("a", "mean/L2"), ("b", "mean/L2")]


def test_what_is_filtered_out_is_out_of_rows_and_columns():
    assert arranged(ORDERED, models=["a"], tasks=["stsb"]) == ORDERED[2:4]
    assert arranged(ORDERED, settings=["mean/L2"]) == [ORDERED[1], *ORDERED[3:]]
    assert arranged(ORDERED, models=["c"]) == []
    assert arranged(ORDERED) == ORDERED


@pytest.mark.parametrize("name", PRESETS)
def test_a_table_names_its_preset_in_every_form(name):
    corpus = "/home/me/nli.txt" if PRESETS[name].fit == "corpus" else None
    line = preset_line(name, corpus)
    assert PRESETS[name].source in line
    assert ("maps fitted on nli.txt;" in line) is bool(corpus)
    assert written(TABLE, "markdown", name, corpus).splitlines()[-1].startswith(line)
    assert written(TABLE, "latex", name, corpus).splitlines()[-1].startswith(f"% {line}")
    lines = list(csv.DictReader(io.StringIO(written(TABLE, "csv", name, corpus))))
    assert {one["protocol"] for one in lines} == {name}
    assert "protocol" not in written(TABLE, "csv")


@pytest.mark.parametrize("name", ["whiteningbert", "mteb"])
@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
def test_a_table_says_in_every_form_what_its_preset_leaves_open(place, tasks, name, dtype):
    found, data = cells(place, tasks, "L1", name, dtype=dtype), str(place / "tasks")
    limit = found[0].protocol.origin.max_length
    for form in ("markdown", "latex"):
        last = written(found, form, name, data=data).splitlines()[-1]
        lengths = f" the model's limit is {limit} tokens;" * (name == "mteb")
        assert last.endswith(f"Compute type {dtype};{lengths} data tasks; made by whitelab {whitelab.__version__}.")
    (line,) = csv.DictReader(io.StringIO(written(found, "csv", name, data=data)))
    assert (line["dtype"], line["max_length"], line["data"]) == (dtype, str(limit), "tasks")
    assert line["made_by"] == f"whitelab {whitelab.__version__}"
    *_, given = csv.DictReader(io.StringIO(written(found, "csv", name, given=[("one", "of MTEB", {})], data=data)))
    assert (given["protocol"], given["dtype"], given["data"], given["made_by"]) == ("as given", "", "", "")


def test_beneath_a_table_stand_each_tasks_split_and_pairs_and_what_tells_the_weights(place, tasks, tmp_path):
    folders = place / "model", build_model(tmp_path / "flat", layers=1)
    models = [str(folders[0]), f"static:{folders[0]}", f"random:{folders[0]}", str(folders[1])]
    found = cells(place, tasks, "L0", "mteb", models=models)
    sizes = {task: load(place / "tasks", task) for task in tasks}
    pairs = ", ".join(f"{task} {one.split} {len(one.first)}" for task, one in sizes.items())
    first, other = (sha256((one / "model.safetensors").read_bytes()).hexdigest()[:12] for one in folders)
    line = f"Pairs: {pairs}. Weights (digest): {first} (model, static:model), {other} (flat)."
    for form, mark in (("markdown", ""), ("latex", "% ")):
        assert f"{mark}{line}" in written(found, form, "mteb").splitlines()
        assert line not in written(found, form)  # a bare table


def test_where_models_differ_in_what_the_preset_leaves_open_a_table_says_which_has_what(place, tasks):
    models = [str(place / "model"), f"static:{place / 'model'}"]  # a table of words is always float32
    found = cells(place, tasks, "L0", "mteb", models=models, dtype="bfloat16")
    last = written(found, "markdown", "mteb").splitlines()[-1]
    assert "Compute type bfloat16 (model), float32 (static:model); the model's limit is " in last


def test_the_data_of_a_table_is_named_without_its_path_and_of_what_is_held_by_its_source(place, tasks):
    pairs = load(place / "tasks", tasks[0])
    token = hold(pairs)
    for data, start in ((str(place / "tasks"), "Data tasks;"), (token, f"Data {pairs.source};"), ("demo", "Made by")):
        last = written(TABLE, "markdown", "mteb", data=data).splitlines()[-1]
        assert last.startswith(f"{preset_line('mteb')} {start}")
        assert str(place) not in last
        assert token not in last


def test_intervals_stand_beside_their_scores_in_every_form(place, tasks):
    found = cells(place, tasks, "L1;L2")
    drawn = resample(found, 30)
    low, high = drawn.interval(found[0].row, tasks[0])
    assert f" [{low:.2f}, {high:.2f}]" in written(found, "markdown", drawn=drawn)
    assert f" [{low:.2f}, {high:.2f}]" in written(found, "latex", drawn=drawn)
    (line, *_) = csv.DictReader(io.StringIO(written(found, "csv", drawn=drawn)))
    assert (float(line[f"{tasks[0]}_low"]), float(line[f"{tasks[0]}_high"])) == (low, high)
    assert line["resamples"] == "30"
    for form in ("markdown", "latex"):  # what stands in brackets and in bold, and what the rules come from
        assert "95 % interval, from 30 resamples of each task's pairs" in written(found, form, drawn=drawn)
        assert "resamples" not in written(found, form, "mteb")
        assert "Bold: the best of its column" in written(found, form, "mteb")
    assert "resamples" not in written(found, "csv")
    assert r"\usepackage{booktabs}" in written(found, "latex", "mteb")
    assert found[0].as_dict((low, high))["low"] == low
    assert "low" not in found[0].as_dict()


def test_a_table_says_why_a_score_has_no_interval(place, tasks):
    found = cells(place, tasks, "L1;L2")
    drawn = resample(found, 30)
    assert significance.NO_INTERVAL not in written(found, "markdown", drawn=drawn)
    for paired, _ in drawn.tasks.values():
        paired.drawn.low[:1] = math.nan
    said = written(found, "markdown", drawn=drawn)
    assert significance.NO_INTERVAL in said
    assert "nan" not in said


def test_a_starved_score_takes_its_warning_along_in_every_form(place, tasks):
    well, few = cells(place, tasks, "L1;L1:pca")
    few = replace(few, score=replace(few.score, starved=True))
    note = starved_note([well, few])
    assert written([well, few], "markdown", "mteb").splitlines()[-1] == note
    assert written([well, few], "latex", "mteb").splitlines()[-1] == f"% {note}"
    lines = csv.DictReader(io.StringIO(written([well, few], "csv", "mteb", given=[("one", "of MTEB", {})])))
    assert [one["starved"] for one in lines] == ["", few.task, ""]
    grouped = replace(few, setting=Setting.parse("L1:group:groups=1"))  # which takes no k
    assert starved_note([few, grouped]).endswith("Keep fewer dimensions (k), or fit on more text.")
    assert starved_note([well, grouped]).endswith("whatever they say. Fit on more text.")
    average = Cell(few.model, few.setting, AVERAGE, few.spearman)  # has no map of its own
    assert [one.as_dict()["starved"] for one in (well, few, average)] == [False, True, None]
    assert note not in written([well], "markdown") + written([well], "latex")


def test_models_of_one_folder_name_keep_rows_of_their_own(place, tasks, tmp_path):
    other = build_model(tmp_path / "deep" / "model", seed=3)
    models = [str(place / "model"), str(other), str(other) + ":1"]
    settings = "mean/L1;mean/L1:pca"
    found, alone = cells(place, tasks, settings, models=models), cells(place, tasks, settings, models=models[1:2])
    names = list(dict.fromkeys(cell.model for cell in found))
    assert names == [f"{place.name}/model", "deep/model", "model[:1]"]
    assert {cell.model for cell in alone} == {"model"}
    mine = [cell for cell in found if cell.model == "deep/model"]
    assert [cell.spearman for cell in mine] == [cell.spearman for cell in alone]
    assert len({line.rsplit(",", 1)[0] for line in written(found, "csv").splitlines()}) == 1 + 6
    one, two = (next(cell for cell in found if cell.model == name) for name in names[:2])
    pairs = load(place / "tasks", one.task)
    space, _ = embed_pairs(load_encoder(models[0]), pairs)
    drawn = resample(found)
    assert drawn.interval(one.row, one.task) != drawn.interval(two.row, two.task)
    assert drawn.interval(two.row, two.task) == resample(alone).interval(alone[0].row, two.task)


def test_a_star_is_each_layer_of_every_model_and_of_none_a_layer_it_has_not(place, tasks, tmp_path):
    deep, shallow = str(place / "model"), str(build_model(tmp_path / "shallow", layers=1))
    models = [shallow, deep, f"{deep}:2", f"static:{deep}", str(tmp_path / "nowhere")]
    rows, starred = settings_for(models, "L*;L*:pca;L3:zca")
    assert rows == parse_settings("L*;L*:pca;L3:zca", 4)
    of = Grid(models, str(place / "tasks"), tasks, rows, starred=starred)
    by_model = {}
    for one in of.cells():
        by_model.setdefault(one.models[0], []).append(str(one.settings[0]))
    typed = ["mean/L3:zca"]  # a layer that was named is refused in its cell
    for model, layers in zip(models, (2, 4, 3), strict=False):
        each = [f"mean/L{layer}{whitening}" for whitening in ("", ":pca") for layer in range(layers)]
        assert by_model[model] == each + typed
    assert by_model[models[3]] == ["mean/L0", "mean/L0:pca", "mean/L0:zca"]
    assert of.size == sum(map(len, by_model.values()))
    assert list(of.cells())[0] == next(Grid([shallow], of.data, tasks, parse_settings("L0")).cells())  # known as it
    assert settings_for(models[3:], "L*")[0] == parse_settings("L0")  # none knows of more
    with pytest.raises(ValueError, match="must name layers by number: how many some/model has is not known yet"):
        settings_for([deep, "some/model"], "L*")
    assert settings_for(["some/model"], "L9") == (parse_settings("L9"), ())
    listed = entries()[0]  # before it is downloaded
    assert len(settings_for([listed.name], "L*")[0]) == listed.layers + 1
    assert len(settings_for([f"{listed.name}:2"], "L*")[0]) == 3


def test_latex_escapes_names_and_is_a_whole_table():
    odd = written([replace(TABLE[0], model=r"a^b~c\d<e>|")], "latex")
    assert r"a\textasciicircum{}b\textasciitilde{}c\textbackslash{}d\textless{}e\textgreater{}\textbar{} & mean" in odd
    latex = written(TABLE, "latex")
    assert r"a\_b & mean/L1 & \textbf{50.12} & \textbf{40.00} \\" in latex
    assert latex.startswith(r"\begin{tabular}{llrr}")
    assert latex.endswith("\\end{tabular}\n")
    with pytest.raises(ValueError, match="format='word' must be one of csv, markdown, latex"):
        written(TABLE, "word")


# Beside what was published


@pytest.mark.parametrize(
    ("setting", "task", "preset", "value"),
    [
        ("cls/L-1", "stsb", "whiteningbert", 20.29),
        ("mean/L1+L-1", "avg", "whiteningbert", 62.97),
        ("mean/L1+L12:pca", "sts12", "whiteningbert", 61.94),
        ("mean/L1+L12:zca", "sts12", "whiteningbert", 61.94),
        ("mean/L1+L-1:soft", "sts12", "whiteningbert", None),
        ("mean/L1+L-1:pca", "sts12", "simcse", None),
        ("mean/L1+L-1:pca@256", "sts12", "bert-whitening", 63.89),
    ],
)
def test_a_cell_stands_beside_the_papers_number_for_the_same_thing(setting, task, preset, value):
    found = printed("bert-base-uncased", 13, 768, Setting.parse(setting), task, PRESETS[preset])
    assert (found and found.value) == value


def test_another_model_or_depth_has_no_published_number():
    preset, setting = PRESETS["whiteningbert"], Setting.parse("cls/L-1")
    assert printed("all-MiniLM-L6-v2", 7, 384, setting, "stsb", preset) is None
    assert printed("bert-base-uncased", 13, 768, Setting.parse("cls/L5"), "stsb", preset) is None


def test_cells_of_a_model_whose_weights_were_written_anew_are_computed_again(place, tasks, tmp_path):
    folder, known = build_model(tmp_path / "model"), {}
    before = cells(place, tasks, "L1", models=[str(folder)], known=known)
    assert cells(place, tasks, "L1", models=[str(folder)], known=known) == before
    weights = build_model(folder, seed=1) / "model.safetensors"
    os.utime(weights, ns=(0, weights.stat().st_mtime_ns + 1))  # a coarse clock may not have moved
    after = cells(place, tasks, "L1", models=[str(folder)], known=known)
    assert [cell.spearman for cell in after] != [cell.spearman for cell in before]
    assert len(known) == 2 * len(tasks)


def test_word_vectors_are_compared_on_their_one_layer_each_setting_once(place, tasks):
    model = str(place / "model")
    made = cells(place, tasks[:1], "cls/L-1;mean/L-1;L1+L-1;L1+L-1:pca", models=[model, f"static:{model}"])
    assert [str(cell.setting) for cell in made] == [
        *("cls/L-1", "mean/L-1", "mean/L1+L-1", "mean/L1+L-1:pca"),
        *("mean/L0", "mean/L0:pca"),
    ]
    assert [cell for cell in made if cell.spearman is None] == []
