"""The best model is kept, loads like any other and says how it came about."""

import json
import shutil
from dataclasses import replace
from pathlib import Path

import pytest
import torch
from families import build_family
from sentence_transformers import SentenceTransformer
from tiny import SENTENCES
from transformers import AutoTokenizer

import whitelab
from whitelab import whitening
from whitelab.encoding.checkpoints import TRAINING_FILE, origin_note
from whitelab.encoding.embed import embed
from whitelab.encoding.embeddings import embed_pairs
from whitelab.encoding.encoders import load_encoder
from whitelab.scoring.setting import Setting
from whitelab.sweeps.layer_profiles import losses, shape
from whitelab.training import COLLAPSED, DIVERGED, StepRecord, Trainer, train
from whitelab.training.result import Scores
from whitelab.whitening.export import to_sentence_transformers

from .doing import same, weights, whole


def test_the_best_model_is_kept(config, tmp_path, monkeypatch, pairs):
    scores = iter([10.0, 20.0, 60.0, 50.0, 55.0, 60.0])
    monkeypatch.setattr(Trainer, "measure", lambda self: {"spearman": next(scores)})
    config = replace(config, steps=5, eval_every=1)
    kept = Trainer(replace(config, eval_every=0), SENTENCES, device="cpu")
    kept.advance()
    kept.advance()
    whole(config, pairs, tmp_path)
    assert same(weights(load_encoder(str(tmp_path / "model"), device="cpu").model), weights(kept.encoder.model))
    assert "trained encoder | 2 | 60.000" in (tmp_path / "model" / "README.md").read_text("utf-8")


def test_scores_remember_start_best_and_last():
    scores = Scores()
    taken = [scores.take(StepRecord(step, spearman=s)) for step, s in enumerate([5.0, None, 7.0, 7.0, 6.0])]
    assert taken == [True, False, True, False, False]
    assert [one.step for one in (scores.start, scores.best, scores.last)] == [0, 2, 4]
    assert not scores.take(StepRecord(5, spearman=99.0, stop=COLLAPSED))
    assert scores.take(StepRecord(6, spearman=9.0, stop=DIVERGED, message="why", kept=5))
    assert scores.best == scores.last == StepRecord(5, spearman=9.0)
    assert Scores.of(json.loads(json.dumps(scores.as_dict()))) == scores


@pytest.mark.parametrize("pooling", ["mean", "cls"])
def test_the_model_loads_by_its_path_and_scores_as_at_its_last_evaluation(config, pairs, tmp_path, pooling):
    config = replace(config, pooling=pooling, steps=4, eval_every=1, lr=3e-4)
    records = whole(config, pairs, tmp_path)[0]
    best = max(records, key=lambda one: one.spearman)
    for model, record in ((tmp_path / "model", best), (config.model, records[0])):
        space, setting = (
            embed_pairs(load_encoder(str(model), device="cpu"), pairs, pooling)[0],
            Setting((3,), pooling=pooling),
        )
        lost = losses(space, setting)
        assert (lost.spearman, lost.uniformity) == (record.spearman, record.uniformity)
        assert shape(space, setting).mean_cosine == record.mean_cosine
    assert len({one.spearman for one in records}) == 5


@pytest.mark.parametrize(("kind", "pooling"), [("BERT", "cls"), ("T5", "mean"), ("GPT-2", "last")])
def test_the_card_runs_with_plain_transformers_and_sentence_transformers(config, tmp_path, kind, pooling):
    """The code on the card is what a user will copy, for texts of any length."""
    start = build_family(tmp_path / "start", kind)
    if kind == "GPT-2":  # as its own
        settings = json.loads((start / "tokenizer_config.json").read_text()) | {"pad_token": None}
        (start / "tokenizer_config.json").write_text(json.dumps(settings))
    list(train(replace(config, model=str(start), pooling=pooling, steps=2), SENTENCES, None, tmp_path))
    text = (tmp_path / "model" / "README.md").read_text("utf-8")
    code = text.split("```python\n")[1].split("```")[0].replace("path/to/this/folder", str(tmp_path / "model"))
    encoder, names = load_encoder(str(tmp_path / "model"), device="cpu"), {}
    for second in ("Someone makes music.", " ".join(SENTENCES[:60])):
        exec(code.replace("Someone makes music.", second), names)
        expected = embed(encoder, ["A man plays a guitar.", second], pooling)[0][-1]
        torch.testing.assert_close(names["vectors"].detach(), expected, rtol=1e-4, atol=1e-5)
        library = SentenceTransformer(str(tmp_path / "model"), device="cpu")
        vectors = library.encode(["A man plays a guitar.", second], convert_to_tensor=True)
        torch.testing.assert_close(vectors, expected, rtol=1e-4, atol=1e-5)


def test_the_card_says_what_the_model_was_trained_on(config, tmp_path):
    config = replace(config, steps=2, corpus="tiny sentences")
    list(train(config, [*SENTENCES, SENTENCES[0].upper()], None, tmp_path))
    text = (tmp_path / "model" / "README.md").read_text("utf-8")
    assert "384 unique sentences, labels unused: tiny sentences" in text
    assert "1 more were left out" in text
    assert "It was not scored." in text
    assert "look it up before you share" in text
    encoder = load_encoder(str(tmp_path / "model"), device="cpu")
    assert AutoTokenizer.from_pretrained(tmp_path / "model").model_max_length == encoder.tokenizer.model_max_length


def test_the_cards_of_a_run_and_of_its_exports_say_how_it_was_trained(config, pairs, tmp_path):
    config = replace(config, steps=2, eval_every=1, lr=3e-4, seed=5, evaluation="tiny pairs")
    config = replace(config, corpus=str(tmp_path / "tiny sentences"))
    records = whole(config, pairs, tmp_path)[0]
    encoder = load_encoder(str(tmp_path / "model"), device="cpu")
    best = max(records, key=lambda one: one.spearman)
    fitted = whitening.identity(torch.zeros(encoder.dim))
    to_sentence_transformers(tmp_path / "exported", encoder, (encoder.n_layers - 1,), "mean", fitted)
    for folder in ("model", "exported"):
        card = (tmp_path / folder / "README.md").read_text("utf-8")
        assert f"trained by whitelab {whitelab.__version__} without labels, for {best.step} of 2 steps" in card
        assert f"of {config.batch} sentences, at a\nlearning rate of 0.0003, with seed 5" in card
        assert f"`{config.objective}`" in card
        assert "384 unique sentences, labels unused: tiny sentences" in card
        assert f"the start | 0 | {records[0].spearman:.3f}" in card
        assert f"trained encoder | {best.step} | {best.spearman:.3f}" in card
        assert card.count("## Licence") == 1
        assert str(tmp_path) not in card  # which is somebody's machine
    drawn = load_encoder(f"random:{tmp_path / 'model'}", device="cpu")
    assert "trained" not in origin_note(drawn.name, drawn.files)


@pytest.mark.parametrize(
    "words", ["{0}/clients/acme/notes.txt", "~/clients/acme/notes.txt", "../clients/acme/notes.txt"]
)
@pytest.mark.parametrize("model", ["{0}", "random:{0}", "random:{0}:1", "~/model:1", "../home/model"])
def test_what_a_run_leaves_behind_holds_no_path_of_the_machine(config, tmp_path, monkeypatch, model, words):
    home = tmp_path / "home"
    shutil.copytree(config.model, home / "model")
    monkeypatch.setenv("HOME", str(home))
    monkeypatch.setenv("USERPROFILE", str(home))
    monkeypatch.chdir(home)
    model, words = model.format(home / "model"), words.format(home)
    list(train(replace(config, model=model, corpus=words, evaluation=words, steps=1), SENTENCES, None, "run"))
    files = [file for file in Path("run", "model").rglob("*") if file.suffix in (".md", ".json", ".txt")]
    assert {"README.md", TRAINING_FILE, "config.json", "tokenizer_config.json"} <= {file.name for file in files}
    for file in files:
        text = file.read_text("utf-8")
        assert not [one for one in ("home", "clients", "~/", "../") if one in text], file.name
    card = Path("run", "model", "README.md").read_text("utf-8")
    assert "unique sentences, labels unused: notes.txt (" in card
    assert "- corpus: notes.txt\n- evaluation: notes.txt\n" in card


def test_sentences_that_are_also_scored_are_counted(config, pairs):
    assert Trainer(config, SENTENCES, pairs, device="cpu").seen == len(set(pairs.sentences) & set(SENTENCES)) > 0
    assert (
        Trainer(config, [text.upper() for text in SENTENCES], pairs, device="cpu").seen > 0
    )  # letter case is not read
    assert Trainer(config, SENTENCES, device="cpu").seen == 0
