"""Laws of the runs on disk: a kill loses the steps since the last checkpoint and never the list."""

import contextlib
import json
import os
import shutil
import signal
import subprocess
import sys
import time
from dataclasses import replace
from functools import partial

import pytest
import torch
from commandline import called
from processes import ROOT
from tiny import SENTENCES, build_model, untimed, write_reversed

from whitelab.cli import main
from whitelab.encoding.checkpoints import find_model, trained_models
from whitelab.encoding.encoders import load_encoder
from whitelab.encoding.names import ModelError
from whitelab.store import held_folder
from whitelab.training import TrainConfig, Trainer, runs
from whitelab.training.runs import RunError, create, find_run, repeat_note


@pytest.fixture(autouse=True)
def usual(tmp_path, monkeypatch):
    """The usual place of runs, of this test alone."""
    monkeypatch.setenv("WHITELAB_RUNS", str(tmp_path / "usual"))
    return tmp_path / "usual"


@pytest.fixture
def config(place):
    return TrainConfig(model=str(place / "model"), batch=16, steps=6, lr=1e-3, warmup=2, eval_every=3, save_every=2)


@pytest.fixture
def run(config, pairs):
    return create(config, SENTENCES, pairs)


def weights(folder):
    return load_encoder(str(folder), device="cpu").model.state_dict()


# ------------------------------------------------------------------------------------------ from end to end


def test_a_run_whose_result_is_written_has_ended_though_its_process_clears_up(run, monkeypatch):
    """Whoever keeps the state of an ended run, as the page does, would keep "running" for good."""
    seen = []
    real = shutil.rmtree
    monkeypatch.setattr(shutil, "rmtree", lambda *a, **k: (seen.append(run.state()), real(*a, **k)))
    with contextlib.closing(run.follow()) as steps:
        assert next(steps).step == 0
        assert run.state() == "running"
        for _ in steps:
            pass
    assert seen[-1] == run.state() == "finished"


def test_a_run_says_how_far_it_is_at_every_moment(run, config):
    assert (run.state(), run.records(), run.checkpoint, run.has_model) == ("waiting", (), None, False)
    seen = []
    for record in run.follow():
        assert run.state() == "running"
        assert run.records()[-1] == record
        seen.append(record)
    assert run.state() == "finished"
    assert run.checkpoint is None
    assert tuple(seen) == run.records()
    assert [one.step for one in seen] == list(range(7))
    found = run.summary()
    assert (found.name, found.step, found.label) == ("simcse-1", 6, "SimCSE")
    assert found.start == seen[0]
    assert found.best == max((one for one in seen if one.spearman is not None), key=lambda one: one.spearman)
    assert found.last == seen[-1]
    assert found.seconds == sum(one.seconds for one in seen)
    assert (found.resumable, found.model, found.message) == (False, "trained:simcse-1", "")
    json.dumps(found.as_dict(), allow_nan=False)
    assert found.config == config


def test_the_data_come_back_as_they_were(run, pairs, config):
    sentences, found = run.data()
    assert sentences == SENTENCES
    assert found.fingerprint == pairs.fingerprint
    assert (found.source, found.split, found.task) == (pairs.source, pairs.split, pairs.task)
    assert create(config, SENTENCES[:20]).data() == (SENTENCES[:20], None)


def test_pairs_are_known_by_what_they_hold_and_not_by_their_name(config, pairs, run):
    alike = create(replace(config, evaluation="pairs under another name"), SENTENCES, pairs)
    other = create(config, SENTENCES, replace(pairs, gold=pairs.gold[::-1]))
    assert alike.pairs_fingerprint == run.pairs_fingerprint == pairs.fingerprint != other.pairs_fingerprint
    assert create(config, SENTENCES).pairs_fingerprint == ""
    record = json.loads((run.folder / "config.json").read_text())
    del record["scored_pairs"]  # as of a run made before runs kept it
    (run.folder / "config.json").write_text(json.dumps(record))
    assert find_run(run.folder).pairs_fingerprint == pairs.fingerprint


def test_runs_are_listed_the_newest_first_and_each_has_a_folder_of_its_own(config):
    made = []
    for spec in ("simcse", "mse", "simcse"):
        made.append(create(replace(config, objective=spec), SENTENCES))
        time.sleep(0.002)
    assert [one.name for one in made] == ["simcse-1", "mse-1", "simcse-2"]
    assert runs.runs() == tuple(made[::-1])


def test_a_folder_without_a_config_that_can_be_read_is_no_run(usual, run):
    (usual / "half").mkdir()
    (usual / "half" / "data.json").write_text("{}")
    for name, text in (("torn", "{"), ("other", '{"config": {"colour": "red"}, "created": "2026"}'), ("list", "[]")):
        (usual / name).mkdir()
        (usual / name / "config.json").write_text(text)
    assert runs.runs() == (run,)
    with pytest.raises(RunError, match="run='half' must be the folder of a run, or a run in"):
        find_run("half")


def test_a_run_is_found_by_name_and_by_folder(run):
    assert find_run("simcse-1") == find_run(run.folder) == run
    with pytest.raises(RunError, match="there is none"):
        find_run("../usual")


def test_a_name_is_a_folder_first_when_a_run_is_found_as_when_it_is_made(config, run, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    build_model(tmp_path / run.name)  # which has a config.json too
    assert find_run(run.name) == run
    shutil.rmtree(tmp_path / run.name)
    made = create(config, SENTENCES, folder=run.name)
    assert made != run
    assert find_run(run.name) == made


def test_a_taken_folder_is_refused(config, tmp_path):
    (tmp_path / "taken").mkdir()
    (tmp_path / "taken" / "thesis.tex").write_text("mine")
    with pytest.raises(RunError, match="is not empty: choose another folder"):
        create(config, SENTENCES, None, tmp_path / "taken")


@pytest.mark.parametrize("writes", [0, 1])
def test_what_a_kill_left_of_a_run_that_was_being_made_is_no_run_and_takes_no_folder(
    config, tmp_path, monkeypatch, writes
):
    done, real = [], runs.write_aside

    def write(path, data):
        if len(done) == writes:
            raise KeyboardInterrupt
        done.append(path)
        real(path, data)

    monkeypatch.setattr(runs, "write_aside", write)
    with pytest.raises(KeyboardInterrupt):
        create(config, SENTENCES, None, tmp_path / "run")
    monkeypatch.undo()
    (tmp_path / "run" / f"{'0' * 32}.tmp").write_bytes(b"")  # as a kill in the midst of a write leaves it
    with pytest.raises(RunError, match="there is none"):
        find_run(tmp_path / "run")
    assert create(config, SENTENCES[:9], None, tmp_path / "run").data() == (SENTENCES[:9], None)


@pytest.mark.parametrize("data", ['{"mine": 1}', "[1]", "mine"])
def test_data_of_ones_own_are_not_taken_for_those_of_a_killed_run(config, tmp_path, data):
    (tmp_path / "data.json").write_text(data)
    with pytest.raises(RunError, match="is not empty"):
        create(config, SENTENCES, None, tmp_path)
    assert (tmp_path / "data.json").read_text() == data


def test_the_model_is_found_by_the_runs_name(run, config):
    assert trained_models() == ()
    with pytest.raises(ModelError, match="model='trained:simcse-1' must be a model that was trained here: none so far"):
        find_model("trained:simcse-1")
    list(run.follow())
    assert trained_models() == ("trained:simcse-1",)
    encoder = load_encoder("trained:simcse-1", device="cpu")
    assert encoder.name == "trained:simcse-1"
    assert encoder.files.weights != load_encoder(config.model, device="cpu").files.weights
    assert load_encoder("trained:simcse-1:2", device="cpu").n_layers == 3
    for name in ("trained:other", "trained:../usual/simcse-1", "trained:", "trained:7"):
        with pytest.raises(ModelError, match="must be a model that was trained here: trained:simcse-1"):
            find_model(name)


# -------------------------------------------------------------------------------------- kills and cancels


def test_a_torn_last_line_is_left_out(run):
    list(run.follow())
    path = run.folder / "records.jsonl"
    records, lines = run.records(), path.read_bytes().splitlines(keepends=True)
    for end in range(1, len(lines[-1]) - 1):
        path.write_bytes(b"".join(lines[:-1]) + lines[-1][:end])
        assert run.records() == records[:-1]


@pytest.mark.parametrize("rest", [b"\xff\xfe\n", b"[1, 2]\n", b'{"colour": 1}\n', b"null\n"])
def test_a_damaged_line_ends_what_is_believed(run, rest):
    list(run.follow())
    path = run.folder / "records.jsonl"
    lines = path.read_bytes().splitlines(keepends=True)
    path.write_bytes(b"".join([*lines[:3], rest, *lines[3:]]))
    assert [one.step for one in run.records()] == [0, 1, 2]


def test_a_cancelled_run_goes_on_where_it_was(run, config, pairs):
    whole = create(config, SENTENCES, pairs)
    expected = untimed(whole.follow())
    steps = run.follow()
    for _ in range(4):
        next(steps)
    steps.close()
    assert (run.state(), run.checkpoint) == ("cancelled", 3)
    assert run.summary().resumable
    assert untimed(run.follow(resume=True)) == expected[4:]
    assert untimed(run.records()) == expected
    assert run.state() == "finished"
    ours, theirs = weights(run.folder / "model"), weights(whole.folder / "model")
    assert all(torch.equal(ours[name], theirs[name]) for name in theirs)


def options(place, steps=24):
    return [
        *("--model", place / "model", "--corpus", place / "corpus.txt", "--eval", place / "pairs.csv"),
        *("--batch", 16, "--steps", steps, "--lr", 1e-3, "--warmup", 2, "--eval-every", 3, "--save-every", 2),
        *("--device", "cpu"),
    ]


@pytest.fixture(scope="module")
def killed(place):
    """What is left of `python -m whitelab train` after it was killed when its sixth line was read.

    The lines are read from a pipe, in which they would wait for the end if they were not flushed.
    """
    folder = place / "killed"
    command = [sys.executable, "-m", "whitelab", "train", "--json", "--out", folder, *options(place)]
    environment = os.environ | {"OMP_NUM_THREADS": "1"}
    with subprocess.Popen(map(str, command), cwd=ROOT, stdout=subprocess.PIPE, env=environment) as process:
        for _ in range(6):
            assert process.stdout.readline()
        process.send_signal(signal.SIGKILL)
        process.wait()
    return folder


def test_a_killed_process_loses_the_steps_since_its_last_checkpoint_and_nothing_else(
    killed, usual, place, tmp_path, capsys
):
    shutil.copytree(killed, usual / "mine")
    run = find_run("mine")
    assert runs.runs() == (run,)
    assert run.state() == "died"
    died = run.summary()
    assert died.resumable
    assert died.step >= 5
    assert died.step - 2 <= run.checkpoint <= died.step
    assert died.message == f"it died at step {died.step}; it can be resumed from step {run.checkpoint}"
    with pytest.raises(RunError, match="run='mine' is died already: resume it"):
        next(run.follow())
    again = ["train", "--json", "--out", run.folder, *options(place), "--resume"]  # the same command, and --resume
    assert main([*map(str, again)]) == 0
    lines = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert lines[-1]["summary"]["state"] == "finished"
    whole = create(run.config, *run.data(), tmp_path / "whole")
    assert untimed(whole.follow()) == untimed(run.records())
    ours, theirs = weights(run.folder / "model"), weights(whole.folder / "model")
    assert all(torch.equal(ours[name], theirs[name]) for name in theirs)


def test_a_run_that_died_before_its_first_checkpoint_begins_anew(run, config, pairs):
    expected = untimed(create(config, SENTENCES, pairs).follow())
    (run.folder / "records.jsonl").write_bytes(b'{"step": 0, "lo')
    assert run.state() == "died"
    assert run.summary().message == "it died at step 0; it begins anew"
    assert untimed(run.follow(resume=True)) == expected
    assert untimed(run.records()) == expected


def test_a_kill_after_the_last_step_leaves_nothing_to_do_but_to_say_so(run, monkeypatch):
    with monkeypatch.context() as patch:
        patch.setattr(runs.shutil, "rmtree", lambda *_, **__: None)
        list(run.follow())
    (run.folder / "result.json").unlink()
    records = run.records()
    assert run.state() == "died"
    assert list(run.follow(resume=True)) == []
    assert (run.state(), run.records()) == ("finished", records)


def test_a_run_that_cannot_go_on_keeps_the_records_it_has(run, monkeypatch):
    with contextlib.closing(run.follow()) as steps:
        for _ in range(4):
            next(steps)
    records = run.records()
    with (run.folder / "records.jsonl").open("a") as file:  # a step after the checkpoint, as a kill would leave it
        file.write(json.dumps(replace(records[-1], step=4).as_dict()) + "\n")

    def torn(self, state):
        raise ValueError("the state is torn")

    with monkeypatch.context() as patch:
        patch.setattr(Trainer, "restore", torn)
        with pytest.raises(ValueError, match="the state is torn"):
            next(run.follow(resume=True))
    assert (run.state(), [one.step for one in run.records()]) == ("failed", [0, 1, 2, 3, 4])
    shutil.rmtree(run.folder / "checkpoints")
    assert [one.step for one in run.follow(resume=True)] == list(range(7))


def test_the_name_of_a_run_that_has_begun_is_given_to_no_other(config, tmp_path, monkeypatch):
    (tmp_path / "there").mkdir()
    (tmp_path / "runs").symlink_to(tmp_path / "there")
    monkeypatch.setenv("WHITELAB_RUNS", str(tmp_path / "runs"))
    create(config, SENTENCES).remove()  # refused before its first step, say
    run = create(config, SENTENCES)
    assert run.name == "simcse-1"
    steps = run.follow()
    next(steps)
    steps.close()
    find_run(tmp_path / "there" / "simcse-1").remove()
    run = create(config, SENTENCES)
    assert run.name == "simcse-2"
    steps = run.follow()
    next(steps)
    steps.close()
    run.folder.rename(tmp_path / "on another disk")
    run.folder.symlink_to(tmp_path / "on another disk")
    run.remove()
    assert create(config, SENTENCES).name == "simcse-3"
    assert [one.name for one in runs.runs()] == ["simcse-3"]


def test_only_one_trains_a_run(run, monkeypatch):
    monkeypatch.setattr(held_folder, "_LOCK_SECONDS", 0.05)
    steps = run.follow()
    next(steps)
    with pytest.raises(RunError, match=rf"run='simcse-1' is being trained by process {os.getpid()} on .+ since 20"):
        next(run.follow(resume=True))
    with pytest.raises(RunError, match="cancel it first"):
        run.remove()
    assert next(steps).step == 1  # undisturbed
    steps.close()
    run.remove()
    assert runs.runs() == ()


def test_a_finished_run_is_neither_resumed_nor_begun_again(run):
    list(run.follow())
    with pytest.raises(RunError, match="run='simcse-1' is finished: there is nothing to resume"):
        next(run.follow(resume=True))
    with pytest.raises(RunError, match="run='simcse-1' is finished already: resume it, or make a new one"):
        next(run.follow())


def test_a_run_that_cannot_begin_says_why(config):
    run = create(replace(config, batch=999), SENTENCES)
    with pytest.raises(ValueError, match="batch=999 must lie between"):
        next(run.follow())
    assert run.state() == "failed"
    assert run.summary().message.startswith("batch=999 must lie between")


def test_what_stopped_a_run_is_its_state(run, monkeypatch):
    monkeypatch.setattr(Trainer, "_loss", lambda self, h, rows, generator: (h.sum() * float("nan"), h))
    records = list(run.follow())
    assert [one.step for one in records] == [0, 1]
    found = run.summary()
    assert (found.state, found.resumable) == ("diverged", False)
    assert found.message == records[-1].message != ""
    assert run.has_model


# ----------------------------------------------------------------------------------------------- the command


@pytest.fixture
def command(capsys):
    return partial(called, capsys)


def test_the_command_prints_a_line_a_step_and_a_summary(place, command, tmp_path):
    status, out, err = command("train", *options(place, 6), "--out", tmp_path / "run", "--seed", 5, "--json")
    assert status == 0
    *steps, last = (json.loads(line) for line in out.splitlines())
    assert [one["step"] for one in steps] == list(range(7))
    assert [one["step"] for one in steps if "spearman" in one] == [0, 3, 6]
    assert all(isinstance(one["loss"], float) for one in steps[1:])
    assert {"alignment", "uniformity", "effective_rank", "spectrum"} & set(steps[3]) >= {"uniformity", "spectrum"}
    summary = last["summary"]
    assert (summary["state"], summary["config"]["seed"]) == ("finished", 5)
    assert summary["folder"] == str(tmp_path / "run")
    assert load_encoder(str(tmp_path / "run" / "model"), device="cpu").n_layers == 4


def test_the_command_without_json_and_without_a_folder(place, command, usual):
    status, out, _ = command("train", *options(place, 2))
    assert status == 0
    lines = out.splitlines()
    assert lines[0].startswith("step     0  spearman ")
    assert lines[1].startswith("step     1  loss ")
    assert lines[-4] == "finished after step 2 of 2"
    assert lines[-1] == "model: trained:simcse-1"
    assert (usual / "simcse-1" / "model" / "model.safetensors").is_file()
    assert "ready        trained:simcse-1" in command("models")[1]


def test_scores_that_run_the_other_way_are_noted_with_the_start(place, command, tmp_path):
    backwards = write_reversed(tmp_path / "distances.csv")
    status, out, err = command("train", *options(place, 1), "--eval", backwards, "--json")
    start, step, _ = (json.loads(line) for line in out.splitlines())
    assert status == 0
    assert "turn them round" in start["note"]
    assert f"note: {start['note']}\n" in err
    assert "note" not in step
    assert "note: the pairs" not in command("train", *options(place, 1))[2]


def test_alignment_is_over_the_pairs_that_are_alike_on_the_scale_of_the_scores(place, pairs, command, tmp_path):
    rows = zip(pairs.first, pairs.second, pairs.gold / 5, strict=True)
    (tmp_path / "to_one.csv").write_text("".join(f"{a},{b},{gold}\n" for a, b, gold in rows))
    argv = (*options(place, 1), "--eval", tmp_path / "to_one.csv")
    for given, rule in ((), "top"), (("--positives", "gt4"), "gt4"):
        out = command("train", *argv, *given, "--json")[1]
        start, *_, end = map(json.loads, out.splitlines())
        assert end["summary"]["config"]["positives"] == rule
        assert (start["alignment"] is None) == ("no pair has gold > 4" in start["note"]) == (rule == "gt4")


def test_a_corpus_of_lines_with_tabs_is_noted(place, command, tmp_path):
    (tmp_path / "rows.txt").write_text("".join(f"{one}\tneutral\n" for one in SENTENCES))
    status, _, err = command("train", *options(place, 1), "--corpus", tmp_path / "rows.txt")
    assert status == 0
    assert f"note: {len(set(SENTENCES))} of {len(set(SENTENCES))} sentences hold tabs" in err


def test_a_run_is_repeated_by_an_equal_config_on_equal_data_alone(run, config, pairs):
    assert run.repeats(config, list(SENTENCES), pairs)
    assert run.repeats(replace(config, corpus="elsewhere.txt", evaluation="the same"), SENTENCES, pairs)
    assert not run.repeats(replace(config, seed=1), SENTENCES, pairs)
    assert not run.repeats(replace(config, batch=None), SENTENCES, pairs)
    assert not run.repeats(config, SENTENCES[1:], pairs)
    assert not run.repeats(config, SENTENCES, replace(pairs, gold=pairs.gold[::-1]))
    assert not run.repeats(config, SENTENCES)
    run.remove()
    assert not run.repeats(config, SENTENCES, pairs)


@pytest.mark.parametrize(("own", "asked"), [(None, 64), (64, None)])
def test_a_batch_that_was_not_said_is_the_one_that_is_trained_with(own, asked, config, pairs, tmp_path):
    run = create(replace(config, batch=own), SENTENCES, pairs, tmp_path / "run")
    assert run.repeats(replace(config, batch=asked), SENTENCES, pairs)
    assert not run.repeats(replace(config, batch=32), SENTENCES, pairs)


@pytest.mark.parametrize(("state", "then"), [("finished", "nothing new"), ("died", "resumed"), ("waiting", "trained")])
def test_what_to_do_instead_of_repeating_a_run_follows_its_state(state, then):
    assert repeat_note("simcse-1", state).endswith(then)


def test_a_command_that_repeats_a_run_says_so_and_runs(place, command):
    for seed, said in ((0, False), (0, True), (1, False)):
        status, _, err = command("train", *options(place, 1), "--seed", seed)
        assert (status, "note: run simcse-1 (finished) has the same settings, sentences and pairs" in err) == (0, said)


def test_an_interrupted_command_can_be_resumed(place, command, usual, monkeypatch):
    advance = Trainer.advance

    def interrupted(trainer):
        if trainer.step == 4:
            raise KeyboardInterrupt
        return advance(trainer)

    monkeypatch.setattr(Trainer, "advance", interrupted)
    status, out, err = command("train", *options(place, 6), "--json")
    assert (status, len(out.splitlines())) == (130, 5)
    assert err.splitlines()[-1] == "interrupted; the last checkpoint is kept: --resume --out simcse-1"
    assert find_run("simcse-1").state() == "cancelled"
    monkeypatch.setattr(Trainer, "advance", advance)
    status, out, _ = command("train", "--resume", "--out", "simcse-1", "--json", "--device", "cpu")
    assert [json.loads(line).get("step") for line in out.splitlines()] == [5, 6, None]


@pytest.fixture
def interrupting(monkeypatch):
    """Ctrl-C, so many times, in the midst of the fourth step, of a process that is not in the background."""
    advance, before = Trainer.advance, signal.signal(signal.SIGINT, signal.default_int_handler)

    def interrupt(times):
        def interrupted(trainer):
            for _ in range(times if trainer.step == 3 else 0):
                signal.raise_signal(signal.SIGINT)
            return advance(trainer)

        monkeypatch.setattr(Trainer, "advance", interrupted)

    yield interrupt
    signal.signal(signal.SIGINT, before)


def test_one_interrupt_ends_a_command_after_its_step_with_a_checkpoint(place, command, interrupting):
    interrupting(1)
    status, out, err = command("train", *options(place, 9), "--json", "--save-every", 9)
    assert (status, len(out.splitlines())) == (130, 6)  # the start, four steps, the summary
    assert err.splitlines()[-2:] == [
        "it ends after this step, with a checkpoint; Ctrl-C again ends it at once",
        "interrupted; the last checkpoint is kept: --resume --out simcse-1",
    ]
    run = find_run("simcse-1")
    assert (run.state(), run.checkpoint, len(run.records())) == ("cancelled", 4, 5)
    status, out, err = command("train", *options(place, 4))
    assert (status, "interrupted" in err) == (0, False)  # in the last step there is nothing left to end
    assert out.splitlines()[-3].startswith("best at step ")
    assert out.splitlines()[-2].startswith("scored on pairs.csv, all (60 pairs): raw vectors of the last layer, mean")
    sentences, pairs = find_run("simcse-1").data()
    both = {*sentences} & {*pairs.sentences}
    assert f"note: {len(both)} sentences are trained on and scored too, without their labels" in err
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


def test_a_second_interrupt_ends_a_command_at_once(place, command, interrupting):
    interrupting(2)
    status, out, _ = command("train", *options(place, 9), "--json")
    assert (status, len(out.splitlines())) == (130, 4)
    assert find_run("simcse-1").state() == "cancelled"


def test_a_command_that_cannot_begin_leaves_no_run(place, command, tmp_path):
    status, out, err = command("train", *options(place), "--batch", 999, "--out", tmp_path / "run", "--json")
    assert (status, out) == (2, "")
    assert "--batch 999 must lie between 2 and the corpus's 384 unique sentences" in err
    assert not (tmp_path / "run").exists()


def test_a_run_that_cannot_be_resumed_is_left_where_it_is(config, command):
    """Its start may be missing for a moment only: a disk that is not there, a machine without the model."""
    waiting = create(replace(config, model="nowhere/at/all"), SENTENCES)
    died = create(replace(config, model="nowhere/at/all"), SENTENCES)
    (died.folder / "records.jsonl").write_bytes(b'{"step": 0, "lo')
    for run in (waiting, died):
        status, _, err = command("train", "--resume", "--out", run.name, "--device", "cpu")
        assert status == 2
        assert "nowhere/at/all" in err
        assert run.data()[0] == SENTENCES
        assert run.state() == "failed"


@pytest.mark.parametrize(
    ("argv", "message"),
    [
        ((), "--corpus must name a text file"),
        (("--resume",), "--resume needs --out"),
        (("--resume", "--out", "nowhere"), "--out nowhere must be the folder of a run, or a run in"),
        (("--corpus", "nowhere.txt"), "nowhere.txt"),
        (("--corpus", "demo", "--objective", "triplet"), "--objective triplet must be one of simcse"),
        (("--corpus", "demo", "--dropout", "1"), "--dropout 1.0 must be below 1"),
        (("--steps", "many"), "argument --steps: invalid int value"),
    ],
)
def test_wrong_input_is_said_in_one_line(command, argv, message):
    status, out, err = command("train", *argv)
    assert (status, out) == (2, "")
    assert message in err
    assert err.count("\n") == 1


def test_a_resumed_command_takes_no_other_settings(killed, command):
    records = find_run(killed).records()
    status, _, err = command("train", "--resume", "--out", killed, "--lr", 0.5)
    assert status == 2
    assert "--lr 0.5 must be 0.001, with which the run was begun" in err
    for option, value in (
        ("--eval", "demo"),
        ("--eval", "gone.csv"),
        ("--task", "stsb"),
        ("--split", "dev"),
        ("--columns", "a"),
    ):
        status, _, err = command("train", "--resume", "--out", killed, option, value)
        assert status == 2
        assert (
            f"{option} must name the pairs with which the run was begun, as they were then (scored on pairs.csv" in err
        )
    assert find_run(killed).records() == records != ()
