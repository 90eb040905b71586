"""The training page opened without a browser, on a tiny encoder: runs in the background, for all visitors."""

import csv
import io
import json
import re
import shlex
import shutil
import threading
import time
from contextlib import contextmanager
from dataclasses import replace
from types import SimpleNamespace
from zipfile import ZipFile

import processes
import pytest
import streamlit as st
import torch
from streamlit.testing.v1 import AppTest
from tiny import SENTENCES, untimed, write_reversed

import whitelab
from whitelab.cli import main
from whitelab.datasets import DEMO
from whitelab.encoding.precomputed import npz_bytes
from whitelab.store import held_folder
from whitelab.training import StepRecord, TrainConfig
from whitelab.training.objectives import OBJECTIVES
from whitelab.training.objectives.registry import TRIED, Objective, objective
from whitelab.training.runs import CANCELLED, FINISHED, RUNNING, WAITING, Run, create, find_run, runs
from whitelab.ui.results import long_runs
from whitelab.ui.sidebar.own_data import LABEL
from whitelab.ui.training import background, board
from whitelab.ui.training.form import OWN

from .visiting import (
    DEMONSTRATION,
    PATIENCE,
    ROOM,
    alts,
    choose,
    code,
    complete,
    data,
    downloads,
    failed,
    forget_everything,
    go_to,
    keys,
    live,
    metrics,
    press,
    said,
    scored,
    start,
    table,
    table_widths,
    until,
    upload,
)

pytestmark = pytest.mark.model

FOREVER = "100000"


@pytest.fixture(autouse=True)
def own(tmp_path, monkeypatch):
    """Runs and embeddings of this test alone; nothing goes on after it."""
    monkeypatch.setenv("WHITELAB_RUNS", str(tmp_path / "runs"))
    monkeypatch.setenv("WHITELAB_CACHE", str(tmp_path / "store"))
    monkeypatch.setenv("OMP_NUM_THREADS", "1")  # as here: the last bit of a sum depends on how many share it
    forget_everything()
    yield
    open_jobs = long_runs.queue().active()
    for job in open_jobs:
        job.cancel()
    for job in open_jobs:
        assert job.join(60.0)
    forget_everything()


@pytest.fixture
def visit(place, small):
    """Open the page as a new visitor, on the tiny encoder and its pairs."""

    def opened(ready=drawn, **changes):
        few = {"steps": "4", "batch": "16", "every": "2", "corpus": str(place / "corpus.txt")}
        own = {"start": small["model"], "scored": small["data"]}
        return until(start("training", **small | few | own | changes), ready)

    return opened


@pytest.fixture(scope="module")
def config(small):
    return TrainConfig(model=small["model"], batch=16, steps=4, eval_every=2, evaluation="pairs")


@pytest.fixture
def others(small):
    """As many other pairs of the same name."""
    pairs = whitelab.load(small["data"])
    return replace(pairs, first=pairs.first[::-1])


def drawn(at):
    """Whether the page is complete, but for runs that go on."""
    return any(one.label == "Show the code" for one in at.expander)


def has_knobs(at):
    """Whether the bar's model is loaded."""
    return any(one.key == "layers" for one in at.sidebar.button_group)


def states(at) -> dict[str, str]:
    """The runs in the table."""
    shown = table(at, "Run")
    return {} if shown is None else dict(zip(shown["Run"], shown["State"], strict=True))


def until_state(at, wanted, name="simcse-1"):
    """Look at the page once the run has come into this state, until it shows it."""
    processes.until(lambda: wanted in (one.state for one in background.entries() if one.name == name), PATIENCE)
    return until(at, lambda at: drawn(at) and states(at).get(name) == wanted)


def until_step(step, name="simcse-1"):
    """Wait until a run has come so far."""
    processes.until(lambda: find_run(name).records()[-1].step >= step, PATIENCE)


def look(at):
    """The page once more, whether or not a run goes on."""
    at.run()
    assert not at.exception
    return at


def click(at, key="start-run"):
    at.button(key=key).click()
    return look(at)


def show(at, *names):
    """Choose runs, as a click in the table does."""
    at.session_state["training-shown"] = list(names)
    return look(at)


def put(run, steps=4, ended=None, message="", best=50.0):
    """Give a run so many records, and an end."""
    rows = [StepRecord(0, spearman=best, alignment=0.3, uniformity=-2.0, effective_rank=9.0)]
    rows += [StepRecord(i, 1 / i, 1e-4, 0.1, 1.0) for i in range(1, steps + 1)]
    rows[-1] = replace(rows[-1], spearman=40.0, alignment=0.1, uniformity=-0.5, effective_rank=2.0)
    (run.folder / "records.jsonl").write_text("".join(json.dumps(one.as_dict()) + "\n" for one in rows))
    if ended:
        (run.folder / "result.json").write_text(json.dumps({"state": ended, "message": message, "ended": "now"}))
    return run


# A run


def test_a_run_is_drawn_with_its_own_numbers_made_again_by_its_code_and_its_model_is_that_of_every_page(
    visit, small, place, capsys
):
    at = visit()
    assert said(at, "No run yet", "a step, estimated from this machine's speed")
    until_state(click(at), FINISHED)
    run = find_run("simcse-1")
    found, (sentences, pairs) = run.summary(), run.data()
    assert [one.step for one in run.records()] == [0, 1, 2, 3, 4]
    assert set(sentences) == set(SENTENCES)
    assert pairs.n_pairs == 60
    assert 0 < max(table_widths(at)) <= ROOM
    assert said(at, "simcse-1: model, last layer, mean pooling · scored on pairs.csv, all (60 pairs), aggregate all")
    assert said(choose(at, seed=7), "To be trained: model, last layer", "seed 7")
    shown = metrics(choose(at, seed=0))
    assert shown["Spearman, simcse-1"] == f"{found.best.spearman:.2f}"
    assert shown["Effective rank, simcse-1"] == f"{found.best.effective_rank:.1f}"
    assert (found.config.positives, pairs.gold.max()) == ("top", 3.75)  # a scale on which none lies above 4
    assert shown["Alignment, simcse-1"] == f"{found.best.alignment:.3f}"
    assert any(f"simcse-1 from {found.start.spearman:.3g} at step 0" in alt for alt in alts(at))
    written = data(at)
    assert str(place) not in "".join(written.values())  # the start, the text and the pairs are paths
    rows = list(csv.DictReader(io.StringIO(written["training"])))
    made = {"start": "model", "corpus": "corpus.txt", "batch": "16", "pooling": "mean", "max_length": "32"}
    made |= {"evaluation": found.config.without_paths()["evaluation"], "kept_step": str(found.best.step)}
    assert all(row | made == row for row in rows)
    assert [row["step"] for row in rows] == ["0", "1", "2", "3", "4"]
    spectrum = list(csv.DictReader(io.StringIO(written["training-spectrum"])))
    shares = [float(row["percent_of_variance"]) / 100 for row in spectrum if row["step"] == "4"]
    assert shares == pytest.approx(run.records()[-1].spectrum)
    assert {"use-simcse-1", "remove-simcse-1"} <= keys(at)
    assert not {"cancel-simcse-1", "resume-simcse-1"} & keys(at)
    until(click(at, "score-both"), lambda at: table(at, "Raw") is not None)
    for model, row in zip((small["model"], "trained:simcse-1"), table(at, "Raw").to_dict("records"), strict=True):
        there, _ = whitelab.embed_pairs(whitelab.load_encoder(model), pairs)
        assert (f"{row['Raw']:.2f}", f"{row['PCA whitening']:.2f}") == (scored(there, "L1"), scored(there, "L1:pca"))
    kept = list(csv.DictReader(io.StringIO(data(at)["score-both"])))
    assert [float(row["spearman"]) for row in kept] == pytest.approx(table(at, "Raw").iloc[:, 1:].to_numpy().ravel())
    assert [(row["model"], row["setting"]) for row in kept] == [
        (model, f"mean/L1{mapped}") for model in ("model", "trained:simcse-1") for mapped in ("", ":pca")
    ]
    assert {(row["run"], row["task"]) for row in kept} == {("simcse-1", "pairs")}
    assert "This page's results (.zip)" in downloads(at)
    exec(compile(code(at), "training", "exec"), {})
    printed = capsys.readouterr().out.splitlines()
    steps = [f"simcse-1 {one.step} {one.loss} {one.spearman}" for one in run.records()]
    assert printed[: len(steps) + 2] == [*steps, f"{found.start}", f"{found.best}"]
    assert untimed(run.records()) == untimed(find_run("simcse-2").records())

    def wanted():
        pairs = whitelab.load(small["data"])
        return scored(whitelab.embed_pairs(whitelab.load_encoder("trained:simcse-1"), pairs)[0], "L3:pca")

    until(click(at, "use-simcse-1"), complete)
    picker = at.sidebar.selectbox(key="model")
    assert picker.value == "trained:simcse-1"
    assert "trained:simcse-1" in picker.options
    first = live(until(go_to(at, "overview")))
    assert first == wanted()
    assert f"{found.best.spearman:.2f}" in metrics(at).values()  # as the run itself scored it
    shutil.rmtree(run.folder)  # and one trained anew under its name is embedded anew
    for _ in create(TrainConfig(model=small["model"], batch=16, steps=12, lr=1e-2), SENTENCES).follow():
        pass
    assert {one.name for one in runs()} == {"simcse-1", "simcse-2"}
    assert first != live(until(look(at))) == wanted()


def test_a_model_clicked_in_a_part_that_looks_again_by_itself_is_the_bars_whatever_the_browser_shows(
    small,
):
    """Such a part is run without the bar, and its next question, on its way already, has the model before."""

    def page(clicked):
        import streamlit as st

        from whitelab.ui.sidebar import workspace
        from whitelab.ui.training import board

        workspace.draw("training")
        if st.session_state.pop("part", False):
            board._use(clicked)

    at = AppTest.from_function(page, default_timeout=PATIENCE, kwargs={"clicked": f"{small['model']}:2"})
    at.query_params.update(small)
    at.run()
    at.session_state["part"] = True
    for _ in range(2):
        at.run()  # with what the browser shows of every knob
        assert not at.exception
    assert at.sidebar.selectbox(key="model").value == f"{small['model']}:2"
    assert at.session_state["model"] == f"{small['model']}:2"


def test_where_the_bar_has_a_layer_that_trained_models_lack_their_last_is_scored_and_the_words_say_so(
    visit, small, config
):
    start = f"{small['model']}:2"
    for _ in create(replace(config, model=start, steps=1), SENTENCES).follow():
        pass
    at = visit(model=small["model"], data=small["data"], layers="3")
    assert said(at, "layer 2 (their last: they have no layer 3), raw and under PCA whitening.")
    until(click(at, "score-both"), lambda at: at.error or table(at, "Raw") is not None)
    assert not at.error
    pairs = whitelab.load(small["data"])
    for model, row in zip((start, "trained:simcse-1"), table(at, "Raw").to_dict("records"), strict=True):
        there, _ = whitelab.embed_pairs(whitelab.load_encoder(model), pairs)
        assert (f"{row['Raw']:.2f}", f"{row['PCA whitening']:.2f}") == (scored(there, "L2"), scored(there, "L2:pca"))
    assert said(choose(at, drawn, layers=[1]), "layer 1 as in the bar")


def test_the_model_of_a_run_is_handed_out_as_a_folder_that_loads_and_where_it_lies_is_said(
    visit, config, tmp_path, monkeypatch
):
    handed = {}
    real = st.download_button

    def kept(label, data, **options):
        handed[options["key"]] = data
        return real(label, data, **options)

    monkeypatch.setattr(st, "download_button", kept)
    for _ in create(replace(config, steps=1), SENTENCES).follow():
        pass
    at = visit()
    assert said(at, "The model lies in `simcse-1/model`, among the runs of this app")
    assert not said(at, str(tmp_path))
    with ZipFile(io.BytesIO(handed.pop("take-simcse-1")())) as packed:
        packed.extractall(tmp_path / "taken")
    taken, here = (whitelab.load_encoder(one) for one in (str(tmp_path / "taken" / "simcse-1"), "trained:simcse-1"))
    assert torch.equal(*(whitelab.embed(one, SENTENCES[:4])[0] for one in (taken, here)))
    monkeypatch.setenv("WHITELAB_TRAINING", "off")  # the runs are the operator's
    assert not said(look(at), "The model lies in")
    assert "take-simcse-1" not in handed


def test_what_is_scored_under_the_bars_setting_are_runs_on_the_board_and_another_fit_is_said(visit, small, config):
    for _ in range(2):
        for _ in create(replace(config, steps=1), SENTENCES).follow():
            pass
    for name in ("simcse-1", "simcse-2"):
        assert visit(runs=name).selectbox(key="before-after-run").options == [name]
        at = visit(**{"runs": "simcse-1,simcse-2", "before-after-run": name})
        assert at.selectbox(key="before-after-run").value == name
    asked = {"model": small["model"], "data": small["data"], "fit": "demo-hard"}
    at = until(visit(**asked), lambda at: drawn(at) and said(at, "raw and under"))
    assert said(at, "maps fitted on the task's sentences and not on demo-hard")


def test_a_run_goes_on_without_its_visitor_another_waits_for_its_turn_and_others_see_stop_and_resume_it(visit):
    click(visit(steps=FOREVER, every="0"))
    other = until_state(visit(steps=FOREVER, every="0", seed="1"), RUNNING)
    until_step(3)
    until_state(click(other), "waiting", "simcse-2")
    until_state(click(other, "cancel-simcse-2"), "not started", "simcse-2")
    assert find_run("simcse-2").state() == WAITING
    assert "resume-simcse-2" in keys(other)
    until_state(click(other, "cancel-simcse-1"), CANCELLED)
    reached = find_run("simcse-1").records()[-1].step
    assert find_run("simcse-1").checkpoint == reached
    third = until_state(click(visit(), "resume-simcse-1"), RUNNING)
    until_step(reached + 1)
    until_state(click(third, "cancel-simcse-1"), CANCELLED)


def test_a_run_says_what_it_does_from_its_start_to_the_end_of_its_process(visit, config, monkeypatch):
    begun, over = threading.Event(), threading.Event()

    @contextmanager
    def trained_apart(run):  # whose process is this test
        begun.set()
        yield SimpleNamespace(poll=lambda: 0 if over.is_set() else None, wait=lambda seconds: over.wait(seconds))

    def line(at):
        return next(one.proto.text for one in at.get("progress") if "simcse-1" in one.proto.text)

    monkeypatch.setattr(background, "trained_apart", trained_apart)
    run = create(config, SENTENCES)
    background.submit(run)
    assert begun.wait(PATIENCE)
    at = visit(runs="simcse-1")
    assert line(at) == "simcse-1: starting"
    with held_folder.held(run.folder):
        put(run, 3)
        assert line(look(at)).startswith("simcse-1: step 3 of 4, about")
        put(run, 4)
        assert line(look(at)) == "simcse-1: step 4 of 4, its last files are being written"
        put(run, 4, FINISHED)
        assert line(look(at)) == "simcse-1: finished, its process is closing"
        assert at.button(key="cancel-simcse-1").disabled
    over.set()
    until_state(at, FINISHED)


def test_all_runs_that_wait_for_nobody_start_at_one_click_the_oldest_first(visit, config, monkeypatch):
    begun = []

    @contextmanager
    def trained_apart(run):  # only the queue is looked at
        begun.append(run.name)
        yield SimpleNamespace(poll=lambda: None, wait=time.sleep)

    monkeypatch.setattr(background, "trained_apart", trained_apart)
    monkeypatch.setattr(long_runs, "LONGEST", 3)
    for _ in range(4):  # as they are left when the app is stopped
        create(replace(config, steps=int(FOREVER), eval_every=0), SENTENCES)
    at = visit()
    assert set(states(at).values()) == {"not started"}
    assert at.button(key="start-waiting").label == "Start the 4 waiting runs"
    look(click(at, "start-waiting"))
    assert [job.title for job in long_runs.queue().active()] == ["simcse-1", "simcse-2", "simcse-3"]
    assert states(at)["simcse-4"] == "not started"  # there was no room for it
    assert at.button(key="start-waiting").label == "Start the waiting run"
    assert at.button(key="start-waiting").disabled
    until_state(click(at, "cancel-simcse-3"), "not started", "simcse-3")
    assert not at.button(key="start-waiting").disabled
    assert begun == ["simcse-1"]


def test_a_run_is_removed_only_after_it_was_asked_twice(visit, config):
    run = put(create(config, SENTENCES), 4, FINISHED)
    at = click(visit(), "remove-simcse-1")
    assert run.folder.exists()
    at = click(at, "keep-simcse-1")
    assert "really-simcse-1" not in keys(at)
    click(click(at, "remove-simcse-1"), "really-simcse-1")
    assert not run.folder.exists()
    assert states(at) == {}
    assert create(config, SENTENCES).name == "simcse-2"  # notes and links that name the first are of no other


@pytest.fixture(scope="module")
def trained_once(config, tmp_path_factory):
    run = create(replace(config, steps=1), SENTENCES, folder=tmp_path_factory.mktemp("trained") / "simcse-1")
    for _ in run.follow():
        pass
    return run.folder


@pytest.fixture
def trained(trained_once, tmp_path):
    """The folder of a run of one step among those of this test."""
    return shutil.copytree(trained_once, tmp_path / "runs" / "simcse-1")


def test_of_a_bar_that_shows_another_model_nothing_is_said_before_a_run_is_removed(visit, trained):
    at = click(visit(), "remove-simcse-1")
    assert "really-simcse-1" in keys(at)
    assert not said(at, "The bar shows this model and turns to")


@pytest.mark.parametrize(
    ("start", "then"),
    [
        ("", ""),  # the tiny model
        ("bundled:3", "bundled:3"),
        ("random:bundled:3", "random:bundled:3"),  # on no list
        ("trained:nobody-1", "bundled"),  # gone
    ],
)
def test_the_bar_turns_to_the_start_of_a_run_whose_model_is_removed_and_this_is_said_before(
    visit, small, trained, start, then
):
    settings = trained / "config.json"
    settings.write_text(settings.read_text().replace(small["model"], start or small["model"]))
    at = click(visit(model="trained:simcse-1"), "remove-simcse-1")
    assert said(at, "The bar shows this model and turns to")
    until(click(at, "really-simcse-1"), lambda at: drawn(at) and has_knobs(at))
    assert at.sidebar.selectbox(key="model").value == (then or small["model"])
    assert not at.error


@pytest.mark.parametrize(
    ("model", "scored", "words"),
    [
        ("bundled:3", "", "Scores of simcse-1: all-MiniLM-L6-v2, 3 blocks, last layer"),
        ("google-bert/bert-base-uncased:3", "", "Scores of simcse-1: BERT base, 3 blocks, last layer"),
        ("/home/ann/tiny:1", "", "Scores of simcse-1: tiny, 1 block, last layer"),
        ("bundled", "", "scored on pairs given in Python, aggregate all"),
        ("bundled", "demo-hard, test", DEMONSTRATION),
    ],
)
def test_the_line_of_a_run_says_what_it_started_from_and_was_scored_on(visit, small, config, model, scored, words):
    run = create(replace(config, steps=1), SENTENCES, whitelab.load(small["data"]))
    for _ in run.follow():
        pass
    settings = run.folder / "config.json"
    made = json.loads(settings.read_text())
    made["config"] |= {"model": model, "evaluation": scored}
    settings.write_text(json.dumps(made))
    at = visit()
    assert said(at, words)
    assert table(at, "Run")["Scored on"].tolist() == [scored or "pairs given in Python"]
    assert said(at, "The step kept is the one that scored best on these pairs", "Alignment is over pairs with gold > 4")


def test_scores_that_run_the_other_way_are_noted_by_the_curve(visit, config, tmp_path):
    backwards = whitelab.load(write_reversed(tmp_path / "distances.csv"))
    for _ in create(replace(config, steps=1, warmup=1), SENTENCES, backwards).follow():
        pass
    assert said(visit(), "Note on simcse-1: the pairs scored highest are the least alike")


def test_of_a_run_without_pairs_to_be_scored_on_only_the_loss_is_drawn_which_is_said(visit, small, config, tmp_path):
    for _ in create(replace(config, steps=1), ["word " * 200, *SENTENCES]).follow():
        pass
    at = visit()
    assert [alt.partition(" by ")[0] for alt in alts(at) if "simcse-1" in alt] == ["Loss"]
    assert not [alt for alt in alts(at) if "nothing measured" in alt or "no value" in alt]
    assert said(at, "No pairs to be scored on were given to simcse-1", "1 sentence was cut to 32 tokens")
    assert not [label for label in metrics(at) if "simcse-1" in label]
    assert said(at, "Here a run's start and its result are scored on")
    assert not said(at, "The curves above score raw vectors")
    assert table(at, "Run")["Scored on"].tolist() == ["no pairs"]
    assert said(at, "Losses of simcse-1: model, last layer, mean pooling · scored on no pairs, ")
    create(replace(config, steps=2), SENTENCES)  # which nobody has begun
    at = visit(runs="simcse-1,simcse-2")
    assert not said(at, "The step kept is the one")
    assert not said(at, "on no pairs.")
    find_run("simcse-2").remove()
    put(create(config, SENTENCES, whitelab.load(small["data"])), 4, FINISHED)
    at = visit(runs="simcse-1,simcse-2")
    assert said(at, "The curves above score raw vectors of the last layer on pairs.")  # as the run calls them
    assert [alt for alt in alts(at) if "simcse-1" in alt] == [alt for alt in alts(at) if alt.startswith("Loss")]
    assert metrics(at)["Spearman, simcse-2"] == "50.00"


# Several runs


def test_runs_are_drawn_over_each_other_and_a_link_shows_those_that_were_chosen(visit, config, others):
    for seed, spec in enumerate(("simcse", "simcse", "w-mse:size=16,embedding=8")):
        put(create(replace(config, seed=seed, objective=spec), SENTENCES), 4, FINISHED)
    at = visit()
    assert dict(at.query_params)["runs"] == "w-mse-1"  # the newest, which a reload keeps when there is a newer one
    put(create(config, SENTENCES), 4, FINISHED)
    show(at, "simcse-1", "w-mse-1")
    assert set(states(at)) == {"simcse-1", "simcse-2", "simcse-3", "w-mse-1"}
    for alt in alts(at)[:4]:
        assert "simcse-1" in alt
        assert "w-mse-1" in alt
    assert metrics(at)["Spearman, w-mse-1"] == "50.00"
    assert not said(at, "different pairs")
    assert (link := at.query_params["runs"]) == "w-mse-1,simcse-1"
    again = visit(runs=link)
    assert metrics(again).keys() == metrics(at).keys()
    assert alts(again) == alts(at)
    assert not [alt for alt in alts(again) if "simcse-2" in alt or "simcse-3" in alt]
    assert alts(visit(runs="")) == []  # none was chosen
    put(create(config, SENTENCES, others), 4, FINISHED)
    assert said(show(at, "simcse-1", "simcse-4"), "different pairs")


def test_the_numbers_are_of_the_best_run_on_the_pairs_of_the_one_that_ended_last(visit, config, others, small):
    pairs = whitelab.load(small["data"])
    for scored_on, best in ((others, 70.0), (pairs, 60.0), (pairs, 55.0)):
        put(create(config, SENTENCES, scored_on), 4, FINISHED, best=best)
    every, two = visit(runs="simcse-1,simcse-2,simcse-3"), visit(runs="simcse-1,simcse-3")
    assert metrics(every)["Spearman, simcse-2"] == "60.00"
    assert metrics(two)["Spearman, simcse-3"] == "55.00"


@pytest.mark.parametrize(("others", "there"), [("simcse-1,", "simcse-1"), ("", "simcse-2")])
def test_runs_of_a_link_that_are_not_here_are_named_and_the_others_drawn(visit, config, others, there):
    for _ in range(2):
        put(create(config, SENTENCES), 4, FINISHED)
    at = look(visit(runs=f"{others}w-mse-7,<b>"))
    assert said(at, "not on this machine: w-mse-7, <b>.")
    assert {name for name in ("simcse-1", "simcse-2") if any(name in alt for alt in alts(at))} == {there}


def test_a_rerun_lists_the_runs_once_and_reads_no_ended_one_again(visit, config, monkeypatch):
    for _ in range(3):
        put(create(config, SENTENCES), 4, FINISHED)
    at = visit()
    assert sum("simcse-3" in alt for alt in alts(at)) == 4
    read, listed = [], []
    records, summary, every = Run.records, Run.summary, background.runs
    monkeypatch.setattr(Run, "records", lambda run: read.append(run) or records(run))
    monkeypatch.setattr(Run, "summary", lambda run: read.append(run) or summary(run))
    monkeypatch.setattr(background, "runs", lambda: listed.append(1) or every())
    look(at)
    assert (read, listed) == ([], [1])
    put(create(config, SENTENCES), 4, FINISHED)  # so that the table takes the choice
    show(at, "simcse-1")
    assert sum("simcse-1" in alt for alt in alts(at)) == 4
    assert read.count(find_run("simcse-1")) == 1  # its steps, now that they are drawn
    assert find_run("simcse-2") not in read


def test_a_run_that_would_be_repeated_is_named_beside_the_start_which_stays_open(visit, monkeypatch):
    monkeypatch.setattr(background, "submit_all", lambda waiting: None)
    at = visit()
    assert not said(at, "has the same settings")
    click(at)
    assert said(at, "Run simcse-1 (not started) has the same settings, sentences and pairs: it is still to be trained")
    assert not at.button(key="start-run").disabled
    assert not said(choose(at, drawn, seed=1), "has the same settings")


def test_the_command_line_of_a_start_and_a_corpus_that_begin_with_a_dash_makes_the_same_run(
    visit, small, place, tmp_path, monkeypatch
):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "-text.txt").symlink_to(place / "corpus.txt")
    (tmp_path / "-m").symlink_to(small["model"])
    at = visit(start="-m", corpus="-text.txt")
    (line,) = [one for one in code(at).splitlines() if " train " in one]
    assert main(shlex.split(line)[4:]) == 0
    assert said(look(at), "Run simcse-1 (finished) has the same settings, sentences and pairs")


def test_a_run_that_failed_says_why_where_its_curve_ends_and_keeps_what_it_learned(visit, config):
    for ended in ("collapsed", "diverged", "failed"):
        run = put(create(config, SENTENCES), 3, ended, "the embeddings <b>fell</b> into one point")
        at = visit(runs=run.name)
        assert any("fell" in one.value and "<b>" not in one.value.replace("\\<b\\>", "") for one in at.warning)
        assert any(f"then {ended}" in alt for alt in alts(at))
        assert metrics(at)[f"Spearman, {run.name}"] == "50.00"


def test_a_killed_run_says_from_where_it_goes_on(visit, config):
    put(create(config, SENTENCES), 3)
    at = visit()
    assert states(at) == {"simcse-1": "died"}
    assert said(at, "died at step 3; it begins anew")
    assert "resume-simcse-1" in keys(at)


# The form


def test_a_run_is_started_as_the_form_says_also_where_the_click_itself_enters_a_number(visit):
    at = visit()
    at.number_input(key="seed").set_value(7)
    click(at)
    assert find_run("simcse-1").summary().config.seed == 7
    until_state(at, FINISHED)


def test_a_click_that_comes_twice_makes_one_run(visit):
    at = visit(steps="400")
    click(click(at))
    assert states(at).keys() == {"simcse-1"}
    until_state(click(at, "cancel-simcse-1"), CANCELLED)
    assert states(click(at)).keys() == {"simcse-1", "simcse-2"}
    until_state(click(at, "cancel-simcse-2"), CANCELLED, "simcse-2")


def test_a_batch_that_cannot_be_is_said_and_nothing_can_be_started(visit):
    at = visit(lambda at: at.error, batch="1000")
    assert failed(at, "at most the 384 unique sentences")
    assert at.button(key="start-run").disabled


@pytest.mark.parametrize("spec", ["simcse", "whitenedcse", "w-mse"])
def test_a_large_batch_is_tried_on_few_sentences_while_the_page_is_drawn(spec, monkeypatch):
    tried = []
    monkeypatch.setattr(Objective, "try_on_noise", lambda self, spec, head, batch, *rest: tried.append(batch))
    for batch in (128 * 1024, 128):
        objective(spec).check_batch(spec, batch, 384)
    assert tried == [TRIED, 128]


def test_a_run_with_settings_that_were_refused_does_not_stop_the_page(visit, config):
    create(replace(config, objective="w-mse", batch=100), SENTENCES)
    at = visit()
    assert not at.button(key="start-run").disabled
    assert "remove-w-mse-1" in keys(at)


@pytest.mark.parametrize(("asked", "taken"), [("32", 128), ("150", 256), ("256", 256)])
def test_a_batch_in_a_link_is_treated_as_a_typed_one(visit, asked, taken):
    at = visit(objective="w-mse", batch=asked)
    assert at.number_input(key="batch").value == taken
    assert said(at, f"The batch was raised from {asked} to {taken}") == (int(asked) != taken)
    assert not said(at, "must be a multiple")


def test_an_objective_brings_its_parameters_its_formula_and_the_batches_it_can_take(visit):
    at = visit()
    assert at.number_input(key="simcse-temperature").value == 0.05
    choose(at, drawn, objective="whitenedcse")
    assert any("SGW" in one.value for one in at.latex)
    assert said(at, "Zhuo et al. 2023")
    choose(at, drawn, objective="w-mse")
    assert at.number_input(key="batch").value == 128
    assert said(at, "The batch was raised from", "to 128, the next that W-MSE takes")
    for embedding, size in ((32, 64), (80, 160)):  # twice the embedding, until it is changed
        at.number_input(key="w-mse-embedding").set_value(embedding)
        until(at.run(), drawn)
        assert at.number_input(key="w-mse-size").value == size
        assert f"size={size}," in code(at)
    at.number_input(key="w-mse-size").set_value(100)
    at.number_input(key="w-mse-embedding").set_value(20)
    until(at.run(), drawn)
    assert at.number_input(key="w-mse-size").value == 100
    assert at.number_input(key="batch").value == 200
    assert not at.error
    at.number_input(key="w-mse-size").set_value(20)
    assert failed(until(at.run(), lambda at: at.error), "takes more of them")
    assert at.button(key="start-run").disabled


def test_every_number_of_the_form_says_what_it_does(visit):
    numbers = {one.key: one.help for one in visit().number_input}
    assert all(numbers[key] for key in ("steps", "batch", "rate", "seed", "every"))


def test_scored_sentences_can_be_left_out(visit, small):
    at = visit()
    both = len(set(whitelab.load(small["data"]).sentences) & set(SENTENCES))
    assert said(at, f"{both} of 384 sentences")
    choose(at, drawn, apart=True)
    assert said(at, f"of {384 - both} sentences")
    assert "if one not in set(scored.sentences)" in code(at)


def test_objectives_beside_each_other_are_runs_that_differ_in_nothing_else(visit, capsys, monkeypatch):
    monkeypatch.setattr(background, "submit_all", lambda waiting: None)
    at = choose(visit(), drawn, beside=["w-mse", "mse"])
    assert at.number_input(key="batch").value == 128  # which all of them take
    assert at.button(key="start-run").label == "Start these 3 runs"
    assert said(at, "for 3 runs, one after another")
    click(at)
    made = [find_run(name) for name in ("simcse-1", "w-mse-1", "mse-1")]
    assert len({replace(one.config, objective="simcse") for one in made}) == 1
    exec(compile(code(at), "training", "exec"), {})
    capsys.readouterr()
    for run in made:
        again = find_run(run.name.replace("1", "2"))
        assert replace(again.config, corpus=run.config.corpus, evaluation=run.config.evaluation) == run.config
        assert again.data()[0] == run.data()[0]


def test_a_visitors_own_pairs_are_trained_and_scored_on_and_their_file_is_named_to_nobody(
    visit, small, place, tmp_path, monkeypatch
):

    def same(pairs):
        return pairs.first, pairs.second, pairs.gold.tolist()

    monkeypatch.setattr(background, "submit_all", lambda waiting: None)
    (tmp_path / "secret name.csv").write_bytes((place / "pairs.csv").read_bytes())
    at = until(start("data", **small))
    press(upload(at, (tmp_path / "secret name.csv").read_bytes(), "secret name.csv"), "use-file")
    choose(until(go_to(at, "training"), drawn), drawn, start=small["model"], corpus=OWN, scored=OWN, steps=4, batch=16)
    click(at)
    made, pairs = find_run("simcse-1"), whitelab.load(small["data"])
    sentences, scored = made.data()
    assert (sentences, same(scored)) == (pairs.sentences, same(pairs))
    assert made.config.corpus == "an upload"
    assert re.fullmatch(rf"upload \w+ \({pairs.n_pairs} pairs\)", made.config.evaluation)
    assert not [file for file in made.folder.iterdir() if b"secret" in file.read_bytes()]
    monkeypatch.chdir(tmp_path)
    found = {}
    exec(compile(code(at).partition("run = create")[0], "training", "exec"), found)
    assert (found["sentences"], same(found["scored"])) == (pairs.sentences, same(pairs))
    at = visit(lambda at: said(at, "no upload of sentences in this session"), corpus=LABEL)
    assert at.button(key="start-run").disabled


def test_a_run_is_scored_on_what_the_bar_has_until_other_pairs_are_chosen(small):
    at = until(start("training", **small, start=small["model"], batch="16", corpus=DEMO), drawn)
    assert said(at, "To be trained:", "scored on pairs.csv, all (60 pairs)")
    assert f"scored = whitelab.load({small['data']!r}, 'pairs', 'all')" in code(at)
    choose(at, drawn, data=DEMO)
    assert said(at, "To be trained:", f"scored on {whitelab.load(DEMO).source}, all")
    choose(at, drawn, data=small["data"], scored=DEMO)
    assert said(at, "To be trained:", f"scored on {whitelab.load(DEMO).source}, all")


def test_vectors_in_the_bar_are_nothing_to_train_for(small):
    pairs = whitelab.load(small["data"])
    space = whitelab.embed_pairs(whitelab.load_encoder(small["model"]), pairs)[0]
    at = upload(until(start("data", **small)), npz_bytes(pairs, space), "mine.npz", "vectors-files")
    press(at, "use-vectors")
    at = until(go_to(at, "training"), lambda at: said(at, "The bar has no sentences to score on"))
    assert at.button(key="start-run").disabled
    assert not choose(at, drawn, scored=DEMO).button(key="start-run").disabled


def test_of_data_that_the_bar_refuses_nothing_is_scored_until_pairs_are_chosen(visit, small, tmp_path):
    at = visit(lambda at: said(at, "The bar has no sentences to score on"), data=str(tmp_path / "none.csv"), scored="")
    assert at.button(key="start-run").disabled
    assert not choose(at, drawn, scored=DEMO).button(key="start-run").disabled


def test_two_uploads_of_equally_many_pairs_are_two_things_to_be_scored_on(small):
    scored = []
    for word in ("man", "cat", "man"):
        rows = "".join(f"a {word} plays {i},a dog runs {i},{i % 5}\n" for i in range(60))
        at = until(start("data", **small))
        press(upload(at, f"sentence1,sentence2,score\n{rows}".encode()), "use-file")
        choose(until(go_to(at, "training"), drawn), drawn, start=small["model"], corpus=OWN, batch=16)
        said = "\n".join(one.value.replace("\\", "") for one in at.caption)
        scored += re.findall(r"scored on (upload \w+ \(60 pairs\))", said)
    assert len(scored) == 3
    assert scored[0] == scored[2] != scored[1]


def test_an_uploaded_text_is_there_again_when_the_page_is(visit):
    at = visit(lambda at: said(at, "Choose a file to train on"), corpus="Uploaded text file")
    text = "".join(f"A sentence with the number {i}.\n" for i in range(40)).encode()
    upload(at, text, "many.txt", "corpus-file")
    for _ in range(2):
        assert not at.button(key="start-run").disabled
        assert said(at, "40 sentences (an uploaded text)")
        until(go_to(until(go_to(at, "data")), "training"), drawn)
    click(at, "forget-corpus-file")
    assert at.button(key="start-run").disabled


def test_the_objective_of_the_form_is_not_offered_beside_itself(visit):
    at = visit()
    beside = at.multiselect(key="beside")
    assert len(beside.options) == len(OBJECTIVES) - 1
    assert OBJECTIVES["simcse"].label not in beside.options
    choose(at, drawn, beside=["w-mse", "mse"])
    choose(at, drawn, objective="w-mse")
    assert at.multiselect(key="beside").value == ["mse"]
    assert OBJECTIVES["simcse"].label in at.multiselect(key="beside").options
    assert at.button(key="start-run").label == "Start these 2 runs"


def test_a_start_of_a_link_stays_when_another_knob_is_moved(visit, small):
    for name in (f"{small['model']}:2", "bundled:2"):
        at = choose(visit(start=name), drawn, seed=4)
        assert at.selectbox(key="start").value == name
        assert not at.error


def test_a_corpus_of_labelled_pairs_is_trained_on_and_a_text_of_rows_noted(visit, tmp_path):
    rows = [("premise", "hypothesis", "label"), *((one, one[::-1], "neutral") for one in SENTENCES)]
    for name, between, noted in (("nli.csv", ",", False), ("nli.txt", "\t", True)):
        (tmp_path / name).write_text("\n".join(between.join(row) for row in rows))
        at = visit(corpus=str(tmp_path / name))
        assert not at.button(key="start-run").disabled
        assert said(at, "sentences hold tabs") is noted


def test_a_link_may_name_an_objective_by_itself(visit):
    for name in ("w-mse", OBJECTIVES["w-mse"].label):
        at = visit(objective=name, rate="1e-4", seed="3")
        assert at.selectbox(key="objective").value == "w-mse"
        assert not said(at, "The address asks for")


def test_what_a_link_asks_of_the_form_and_cannot_have_is_said_until_the_knob_is_moved_or_the_page_left(visit):
    wrong = {"steps": "0", "rate": "5", "every": "-3", "batch": "no", "apart": "perhaps", "simcse-temperature": "-1"}
    wrong |= {"objective": "Nonsense", "beside": "Nothing"}
    at = visit(**wrong, seed="3")
    (words,) = (one.value.replace("\\", "") for one in at.warning if "The address asks for" in one.value)
    asked = words.removeprefix("The address asks for ").partition(", which cannot be had here. The page shows")[0]
    assert set(asked.split(", ")) == {f"{key}={value}" for key, value in wrong.items()}
    assert not said(choose(at, drawn, steps=7), "steps=0")
    assert said(at, "every=-3")
    at.query_params.clear()
    assert not said(until(go_to(until(go_to(at, "data")), "training"), drawn), "The address asks for")


def test_what_cannot_be_read_or_trained_is_explained(visit, tmp_path, monkeypatch):
    missing = str(tmp_path / "nothing.txt")
    unsaid = tmp_path / "unsaid"
    unsaid.mkdir()
    (unsaid / "config.json").write_text(json.dumps({"model_type": "clip", "text_config": {"hidden_size": 8}}))
    (unsaid / "tokenizer.json").write_text("{}")
    (unsaid / "model.safetensors").touch()
    pickled = tmp_path / "pickled"
    pickled.mkdir()
    for name in ("config.json", "tokenizer.json", "pytorch_model.bin"):
        (pickled / name).write_text("{}")
    for query, why in (
        ({"corpus": missing}, "nothing"),
        ({"scored": missing}, "nothing"),
        ({"start": "static:bundled"}, "table of word embeddings"),
        ({"start": "bundled:9"}, "between 1 and 6"),
        ({"start": "/nowhere/at/all"}, "must be a folder"),
        ({"start": str(unsaid)}, "must say how many layers"),
        ({"start": str(pickled)}, "training starts from no others"),
    ):
        at = visit(lambda at: at.error, **query)
        assert failed(at, why)
        assert at.button(key="start-run").disabled
    monkeypatch.setenv("WHITELAB_RUNS", "~no-such-user/runs")
    assert failed(visit(lambda at: at.error), "WHITELAB_RUNS must name a folder")


def test_a_start_is_downloaded_only_on_request(visit):
    at = visit(lambda at: "start-download" in keys(at), start="nobody/no-such-model")
    assert at.button(key="start-run").disabled
    assert not at.error


def test_a_hosted_app_can_turn_training_off(visit, config, monkeypatch):
    monkeypatch.setenv("WHITELAB_TRAINING", "off")
    put(create(config, SENTENCES), 3)
    at = visit()
    for key in ("start-run", "resume-simcse-1", "remove-simcse-1"):
        assert at.button(key=key).disabled
    create(config, SENTENCES)
    assert look(at).button(key="start-waiting").disabled
    assert said(at, "Training is turned off here")


def test_of_a_long_run_few_steps_are_drawn_and_every_evaluation():
    records = [StepRecord(i, 1.0, uniformity=-1.0 if i % 997 == 5 else None) for i in range(15_000)]
    found = board.thinned(records)
    assert board.DRAWN <= len(found) <= board.DRAWN + 17
    assert {one.step for one in records if one.uniformity is not None} <= {one.step for one in found}
    assert (found[0], found[-1]) == (records[0], records[-1])
    assert board.thinned(records[:700]) == records[:700]
    assert board.thinned([]) == []


def test_what_is_to_be_said_of_the_bars_data_is_not_said_of_runs(visit, tmp_path):
    (tmp_path / "few.csv").write_text("sentence1,sentence2,score\na man plays,a dog runs,1\nwater,a cat sleeps,3\n")
    words = "no interval here is to be trusted"
    at = visit(data=str(tmp_path / "few.csv"))
    assert has_knobs(at)
    assert not said(at, words)
    assert said(until(go_to(at, "whitening")), words)
