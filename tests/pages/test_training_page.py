"""The training page opened without a browser, on a tiny encoder: runs in the background, for all visitors."""

import json
from dataclasses import replace

import pytest
from tiny import SENTENCES, build_place, untimed

import whitelab
from whitelab.encoding.embeddings import embed_pairs
from whitelab.scoring.setting import Protocol
from whitelab.training import StepRecord, TrainConfig
from whitelab.training.objectives.registry import Objective
from whitelab.training.runs import CANCELLED, FINISHED, RUNNING, WAITING, Run, create, find_run, runs
from whitelab.ui.training import background, board, form

from .visiting import LIVE, alts, complete, forget_everything, go_to, metrics, start, until

pytestmark = pytest.mark.model

FOREVER = "100000"


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    return build_place(tmp_path_factory.mktemp("training"))


@pytest.fixture(autouse=True)
def own(tmp_path, monkeypatch):
    """Runs and embeddings of this test alone; nothing goes on after it."""
    monkeypatch.setenv("WHITELAB_RUNS", str(tmp_path / "runs"))
    monkeypatch.setenv("WHITELAB_CACHE", str(tmp_path / "store"))
    monkeypatch.setenv("OMP_NUM_THREADS", "1")  # as here: the last bit of a sum depends on how many share it
    forget_everything()
    yield
    open_jobs = background.queue().active()
    for job in open_jobs:
        job.cancel()
    for job in open_jobs:
        assert job.join(60.0)
    forget_everything()


@pytest.fixture
def visit(place):
    """Open the page as a new visitor, on the tiny encoder and its pairs."""

    def opened(ready=complete_but_for_runs, **changes):
        model, pairs = str(place / "model"), str(place / "pairs.csv")
        few = {"steps": "4", "batch": "16", "every": "2"}
        query = {"model": model, "data": pairs, "start": model, "scored": pairs, "corpus": str(place / "corpus.txt")}
        return until(start("training", **query | few | changes), ready)

    return opened


@pytest.fixture
def config(place):
    return TrainConfig(model=str(place / "model"), batch=16, steps=4, eval_every=2, evaluation="pairs")


def click(at, key):
    at.button(key=key).click()
    return until(at.run(), complete_but_for_runs)


def state(name="simcse-1"):
    return find_run(name).state()


def until_state(at, wanted, name="simcse-1"):
    """Look at the page again and again until it shows the run in this state."""
    return until(at, lambda at: complete_but_for_runs(at) and dict(zip(*columns(at), strict=True)).get(name) == wanted)


def complete_but_for_runs(at):
    return any(one.label == "Show the code" for one in at.expander)


def columns(at):
    table = next((one.value for one in at.dataframe if "Run" in one.value.columns), None)
    return ([], []) if table is None else (list(table["Run"]), list(table["State"]))


def look(at):
    """The page once more, whether or not a run goes on."""
    at.run()
    assert not at.exception
    return at


def began(at, key="start-run"):
    at.button(key=key).click()
    return look(at)


def buttons(at):
    return {one.key for one in at.button}


def put(run, steps, ended=None, message=""):
    """Give a run so many records, and an end."""
    rows = [StepRecord(0, spearman=50.0, alignment=0.3, uniformity=-2.0, effective_rank=9.0)]
    rows += [StepRecord(i, 1 / i, 1e-4, 0.1, 1.0) for i in range(1, steps + 1)]
    rows[-1] = replace(rows[-1], spearman=40.0, alignment=0.1, uniformity=-0.5, effective_rank=2.0)
    (run.folder / "records.jsonl").write_text("".join(json.dumps(one.as_dict()) + "\n" for one in rows))
    if ended:
        (run.folder / "result.json").write_text(json.dumps({"state": ended, "message": message, "ended": "now"}))
    return run


# A run


def test_a_run_is_started_followed_to_its_end_and_drawn_with_its_own_numbers(visit):
    at = visit()
    assert any("No run yet" in one.value for one in at.info)
    assert any("a step, estimated from this machine's speed" in one.value for one in at.markdown)
    until_state(began(at), FINISHED)
    run = find_run("simcse-1")
    found, (sentences, pairs) = run.summary(), run.data()
    assert [one.step for one in run.records()] == [0, 1, 2, 3, 4]
    assert set(sentences) == set(SENTENCES)
    assert pairs.n_pairs == 60
    assert metrics(at)["Spearman, simcse-1"] == f"{found.best.spearman:.2f}"
    assert metrics(at)["Effective rank, simcse-1"] == f"{found.best.effective_rank:.1f}"
    assert len(alts(at)) == 5
    assert found.best.alignment is None  # these pairs have no gold above 4
    assert metrics(at)["Alignment, simcse-1"] == "undefined"
    assert any(one.value.startswith("simcse-1 has no path: no pair") for one in at.caption)
    assert any(f"simcse-1 from {found.start.spearman:.3g} at step 0" in alt for alt in alts(at))
    assert {"use-simcse-1", "remove-simcse-1"} <= buttons(at)
    assert not {"cancel-simcse-1", "resume-simcse-1"} & buttons(at)


def test_a_run_goes_on_without_its_visitor_and_another_sees_stops_and_resumes_it(visit):
    began(visit(steps=FOREVER, every="0"))
    other = visit()
    until_state(other, RUNNING)
    until(other, lambda at: len(find_run("simcse-1").records()) > 2)
    until_state(began(other, "cancel-simcse-1"), CANCELLED)
    reached = find_run("simcse-1").records()[-1].step
    assert find_run("simcse-1").checkpoint == reached
    third = visit()
    until_state(began(third, "resume-simcse-1"), RUNNING)
    until(look(third), lambda at: find_run("simcse-1").records()[-1].step > reached)
    until_state(began(third, "cancel-simcse-1"), CANCELLED)


def test_runs_wait_for_their_turn_and_can_be_taken_out_of_the_queue(visit):
    at = began(visit(steps=FOREVER, every="0"))
    began(at)
    until_state(at, "waiting", "simcse-2")
    until_state(began(at, "cancel-simcse-2"), "not started", "simcse-2")
    assert state("simcse-2") == WAITING
    assert "resume-simcse-2" in buttons(at)
    until_state(began(at, "cancel-simcse-1"), CANCELLED)


def test_what_waited_when_the_app_was_stopped_can_be_started(visit, config):
    create(config, SENTENCES)
    at = visit()
    assert columns(at) == (["simcse-1"], ["not started"])
    until_state(began(at, "resume-simcse-1"), FINISHED)


def test_all_runs_that_wait_for_nobody_start_at_one_click_the_oldest_first(visit, config, monkeypatch):
    monkeypatch.setattr(background, "LONGEST", 3)
    for _ in range(4):
        create(replace(config, steps=int(FOREVER), eval_every=0), SENTENCES)
    at = visit()
    assert at.button(key="start-waiting").label == "Start the 4 waiting runs"
    look(began(at, "start-waiting"))
    assert [job.title for job in background.queue().active()] == ["simcse-1", "simcse-2", "simcse-3"]
    assert dict(zip(*columns(at), strict=True))["simcse-4"] == "not started"  # there was no room for it
    assert at.button(key="start-waiting").label == "Start the waiting run"
    assert at.button(key="start-waiting").disabled
    until_state(began(at, "cancel-simcse-3"), "not started", "simcse-3")
    assert not at.button(key="start-waiting").disabled


def test_a_run_is_removed_only_after_it_was_asked_twice(visit, config):
    run = put(create(config, SENTENCES), 4, FINISHED)
    at = click(visit(), "remove-simcse-1")
    assert run.folder.exists()
    at = click(at, "keep-simcse-1")
    assert "really-simcse-1" not in buttons(at)
    click(click(at, "remove-simcse-1"), "really-simcse-1")
    assert not run.folder.exists()
    assert columns(at) == ([], [])


# Several runs


def test_a_second_run_is_drawn_over_the_first_and_their_choice_is_kept(visit, config):
    put(create(config, SENTENCES), 4, FINISHED)
    at = visit()
    assert [alt for alt in alts(at) if "simcse-1" in alt]
    put(create(replace(config, seed=1, objective="w-mse:size=16,embedding=8"), SENTENCES), 4, FINISHED)
    at.session_state["training-shown"] = ["simcse-1", "w-mse-1"]
    look(at)
    assert columns(at) == (["w-mse-1", "simcse-1"], [FINISHED, FINISHED])
    for alt in alts(at)[:4]:
        assert "simcse-1" in alt
        assert "w-mse-1" in alt
    assert metrics(at)["Spearman, w-mse-1"] == "50.00"
    assert any("different pairs" in one.value for one in at.warning) is False


def test_a_link_shows_the_runs_that_were_chosen(visit, config):
    for _ in range(3):
        put(create(config, SENTENCES), 4, FINISHED)
    at = visit()
    assert dict(at.query_params)["runs"] == "simcse-3"  # the newest, which a reload keeps when there is a newer one
    put(create(config, SENTENCES), 4, FINISHED)
    at.session_state["training-shown"] = ["simcse-1", "simcse-3"]
    look(at)
    link = at.query_params["runs"]
    assert link == "simcse-3,simcse-1"
    again = visit(runs=link)
    assert metrics(again).keys() == metrics(at).keys()
    assert alts(again) == alts(at)
    assert not [alt for alt in alts(again) if "simcse-2" in alt or "simcse-4" in alt]
    assert alts(visit(runs="")) == []  # none was chosen


@pytest.mark.parametrize(("others", "drawn"), [("simcse-1,", "simcse-1"), ("", "simcse-2")])
def test_runs_of_a_link_that_are_not_here_are_named_and_the_others_drawn(visit, config, others, drawn):
    for _ in range(2):
        put(create(config, SENTENCES), 4, FINISHED)
    at = look(visit(runs=f"{others}w-mse-7,<b>"))
    said = [one.value for one in at.caption if one.value.startswith("The address names runs")]
    assert len(said) == 1
    assert said[0].replace("\\", "").endswith("not on this machine: w-mse-7, <b>.")
    assert {name for name in ("simcse-1", "simcse-2") if any(name in alt for alt in alts(at))} == {drawn}


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
    at.session_state["training-shown"] = ["simcse-1"]
    put(create(config, SENTENCES), 4, FINISHED)  # so that the table takes the choice
    look(at)
    assert sum("simcse-1" in alt for alt in alts(at)) == 4
    assert read.count(find_run("simcse-1")) == 1  # its steps, now that they are drawn
    assert find_run("simcse-2") not in read


def test_runs_scored_on_different_pairs_are_said_to_be(visit, config):
    put(create(config, SENTENCES), 4, FINISHED)
    at = visit()
    put(create(replace(config, evaluation="others"), SENTENCES), 4, FINISHED)
    at.session_state["training-shown"] = ["simcse-1", "simcse-2"]
    assert any("different pairs" in one.value for one in look(at).warning)


@pytest.mark.parametrize("ended", ["collapsed", "diverged", "failed"])
def test_a_run_that_failed_says_why_where_its_curve_ends_and_keeps_what_it_learned(visit, config, ended):
    put(create(config, SENTENCES), 3, ended, "the embeddings <b>fell</b> into one point")
    at = visit()
    assert any("fell" in one.value and "<b>" not in one.value.replace("\\<b\\>", "") for one in at.warning)
    assert any(f"then {ended}" in alt for alt in alts(at))
    assert metrics(at)["Spearman, simcse-1"] == "50.00"


def test_a_killed_run_says_from_where_it_goes_on(visit, config):
    put(create(config, SENTENCES), 3)
    at = visit()
    assert columns(at) == (["simcse-1"], ["died"])
    assert any("died at step 3; it begins anew" in one.value for one in at.warning)
    assert "resume-simcse-1" in buttons(at)


# The result


def test_the_trained_model_becomes_that_of_every_page(visit, place):
    at = until_state(began(visit()), FINISHED)
    at.button(key="use-simcse-1").click()
    until(look(at), complete)
    picker = at.sidebar.selectbox(key="model")
    assert picker.value == "trained:simcse-1"
    assert "trained:simcse-1" in picker.options
    pairs = whitelab.load(place / "pairs.csv")
    space, _ = embed_pairs(whitelab.load_encoder("trained:simcse-1"), pairs)
    settings = {"pooling": "mean", "layers": (3,), "whitening": "pca"}
    wanted = whitelab.score(space, Protocol("m", "d", "pairs", "test", **settings)).spearman
    assert metrics(until(go_to(at, "overview")))[LIVE] == f"{wanted:.2f}"
    raw = find_run("simcse-1").summary().best.spearman
    assert any(one.value == f"{raw:.2f}" for one in at.metric)  # as the run itself scored it


def test_a_model_that_was_trained_anew_under_its_name_is_embedded_anew(visit, place):
    at = until_state(began(visit()), FINISHED)
    at.button(key="use-simcse-1").click()
    first = metrics(until(look(at), complete))[LIVE]
    find_run("simcse-1").remove()
    for _ in create(
        replace(TrainConfig(), model=str(place / "model"), batch=16, steps=12, lr=1e-2), SENTENCES
    ).follow():
        pass
    assert [run.name for run in runs()] == ["simcse-1"]
    pairs = whitelab.load(place / "pairs.csv")
    space, _ = embed_pairs(whitelab.load_encoder("trained:simcse-1"), pairs)
    settings = {"pooling": "mean", "layers": (3,), "whitening": "pca"}
    wanted = f"{whitelab.score(space, Protocol('m', 'd', 'pairs', 'test', **settings)).spearman:.2f}"
    assert wanted != first
    assert metrics(until(look(at), complete))[LIVE] == wanted


# The form


@pytest.mark.parametrize("batch", ["1000", "200000"])
def test_a_batch_that_cannot_be_is_said_and_nothing_can_be_started(visit, batch):
    at = visit(lambda at: at.error, batch=batch)
    assert any("at most the 384 unique sentences" in one.value.replace("\\", "") for one in at.error)
    assert at.button(key="start-run").disabled


@pytest.mark.parametrize("spec", ["simcse", "whitenedcse", "w-mse"])
def test_a_large_batch_is_tried_on_few_sentences_while_the_page_is_drawn(spec, monkeypatch):
    tried = []
    monkeypatch.setattr(Objective, "try_on_noise", lambda self, spec, head, batch, *rest: tried.append(batch))
    form.check(spec, 128 * 1024, 384)
    form.check(spec, 128, 384)
    assert tried == [form.TRIED, 128]


def test_a_run_with_settings_that_were_refused_does_not_stop_the_page(visit, config):
    create(replace(config, objective="w-mse", batch=100), SENTENCES)
    at = visit()
    assert not at.button(key="start-run").disabled
    assert "remove-w-mse-1" in buttons(at)


def test_an_objective_brings_its_parameters_and_the_batches_it_can_take(visit):
    at = visit()
    assert at.number_input(key="simcse-temperature").value == 0.05
    at.selectbox(key="objective").set_value("w-mse")
    until(at.run())
    assert at.number_input(key="batch").value == 128
    at.number_input(key="w-mse-size").set_value(100)
    at.number_input(key="w-mse-embedding").set_value(20)
    until(at.run())
    assert at.number_input(key="batch").value == 200
    assert not at.error
    assert "w-mse:positives=2,euclidean=0,embedding=20" in at.code[-1].value


def test_a_sub_batch_stays_twice_the_embedding_until_it_is_changed(visit):
    at = visit(objective="W-MSE")
    for embedding, size in ((32, 64), (80, 160)):
        at.number_input(key="w-mse-embedding").set_value(embedding)
        until(at.run())
        assert at.number_input(key="w-mse-size").value == size
        assert f"size={size}," in at.code[-1].value
    at.number_input(key="w-mse-size").set_value(200)
    at.run()
    at.number_input(key="w-mse-embedding").set_value(32)
    until(at.run())
    assert at.number_input(key="w-mse-size").value == 200


def test_parameters_that_fit_no_batch_are_explained(visit):
    at = visit(objective="W-MSE")
    at.number_input(key="w-mse-size").set_value(64)
    until(at.run(), lambda at: at.error)
    assert "takes more of them" in at.error[0].value
    assert at.button(key="start-run").disabled


def test_scored_sentences_can_be_left_out(visit, place):
    at = visit()
    scored = set(whitelab.load(place / "pairs.csv").sentences)
    both = len(scored & set(SENTENCES))
    assert any(one.value.startswith(f"{both} of 384 sentences") for one in at.caption)
    at.toggle(key="apart").set_value(True)
    until(at.run())
    assert any(f"of {384 - both} sentences" in one.value for one in at.caption)
    assert "if one not in set(pairs.sentences)" in at.code[-1].value


def test_the_code_of_a_run_makes_the_same_run(visit, capsys):
    at = until_state(began(visit()), FINISHED)
    exec(compile(at.code[-1].value, "training", "exec"), {})
    capsys.readouterr()
    one, two = (find_run(name) for name in ("simcse-1", "simcse-2"))
    assert untimed(one.records()) == untimed(two.records())


def test_objectives_beside_each_other_are_runs_that_differ_in_nothing_else(visit, capsys):
    at = visit()
    at.multiselect(key="beside").set_value(["w-mse", "mse", "simcse"])
    until(at.run())
    assert at.number_input(key="batch").value == 128  # which all of them take
    assert at.button(key="start-run").label == "Start these 3 runs"
    assert any("for 3 runs, one after another" in one.value for one in at.markdown)
    began(at)
    names = ("simcse-1", "w-mse-1", "mse-1")
    for name in names:
        until_state(at, FINISHED, name)
    configs = [find_run(name).config for name in names]
    assert [one.objective.partition(":")[0] for one in configs] == ["simcse", "w-mse", "mse"]
    assert len({replace(one, objective="simcse") for one in configs}) == 1
    exec(compile(at.code[-1].value, "training", "exec"), {})
    capsys.readouterr()
    for name in names:
        assert untimed(find_run(name).records()) == untimed(find_run(name.replace("1", "2")).records())


def test_what_cannot_be_read_is_said(visit, tmp_path):
    missing = str(tmp_path / "nothing.txt")
    at = visit(lambda at: at.error, corpus=missing, scored=missing)
    assert sum("nothing" in one.value for one in at.error) >= 2
    assert at.button(key="start-run").disabled


def test_a_hosted_app_can_turn_training_off(visit, config, monkeypatch):
    monkeypatch.setenv("WHITELAB_TRAINING", "off")
    put(create(config, SENTENCES), 3)
    at = visit()
    assert at.button(key="start-run").disabled
    assert at.button(key="resume-simcse-1").disabled
    assert at.button(key="remove-simcse-1").disabled
    create(config, SENTENCES)
    assert look(at).button(key="start-waiting").disabled
    assert any("Training is turned off here" in one.value for one in at.markdown)


def test_the_formula_of_the_chosen_objective_is_shown_with_its_source(visit):
    at = visit(objective="WhitenedCSE")
    assert any("SGW" in one.value for one in at.latex)
    assert any("Zhuo et al. 2023" in one.value for one in at.caption)


@pytest.mark.parametrize(
    ("model", "why"),
    [
        ("static:bundled", "table of word embeddings"),
        ("bundled:9", "between 1 and 6"),
        ("/nowhere/at/all", "must be a folder"),
    ],
)
def test_a_start_that_cannot_be_trained_is_explained(visit, model, why):
    at = visit(lambda at: at.error, start=model)
    assert any(why in one.value.replace("\\", "") for one in at.error)
    assert at.button(key="start-run").disabled


def test_a_start_whose_size_is_not_said_is_explained(visit, tmp_path):
    (tmp_path / "config.json").write_text(json.dumps({"model_type": "clip", "text_config": {"hidden_size": 8}}))
    (tmp_path / "tokenizer.json").write_text("{}")
    (tmp_path / "model.safetensors").touch()
    at = visit(lambda at: at.error, start=str(tmp_path))
    assert any("must say how many layers" in one.value for one in at.error)
    assert at.button(key="start-run").disabled


def test_a_folder_for_runs_that_cannot_be_is_said(visit, monkeypatch):
    monkeypatch.setenv("WHITELAB_RUNS", "~no-such-user/runs")
    at = visit(lambda at: at.error)
    assert any("WHITELAB_RUNS must name a folder" in one.value for one in at.error)


def test_of_a_long_run_few_steps_are_drawn_and_every_evaluation():
    records = [StepRecord(i, 1.0, uniformity=-1.0 if i % 997 == 5 else None) for i in range(15_000)]
    found = board.thinned(records)
    assert board.DRAWN <= len(found) <= board.DRAWN + 17
    assert {one.step for one in records if one.uniformity is not None} <= {one.step for one in found}
    assert (found[0], found[-1]) == (records[0], records[-1])
    assert board.thinned(records[:700]) == records[:700]
    assert board.thinned([]) == []


def test_a_start_is_downloaded_only_on_request(visit):
    at = visit(lambda at: any(one.key == "start-download" for one in at.button), start="nobody/no-such-model")
    assert at.button(key="start-run").disabled
    assert not at.error
