"""Maps of a corpus: those of its rows, of any average of layers kept apart, as a fit scope, and their drift."""

import json
import shutil
from hashlib import sha256
from pathlib import Path

import numpy as np
import pytest
import torch
from corpora import embed, small_text, vectors
from safetensors.torch import load_file, save_file

from whitelab.advice import advise_pairs
from whitelab.corpus import fitting
from whitelab.corpus.fitting import corpus_drift, corpus_rows, drift, fit_corpus
from whitelab.corpus.manifest import Manifest
from whitelab.datasets import load
from whitelab.datasets.pairs import DataError
from whitelab.encoding.embeddings import NotMeasuredError, embed_pairs, embed_scope
from whitelab.encoding.encoders import load_encoder
from whitelab.scoring.fit_text import check_text, fit_rows, scope_text, with_fit_text
from whitelab.scoring.score import score
from whitelab.scoring.setting import Setting
from whitelab.statistics.moments import Moments
from whitelab.sweeps.fit_size import fit_sizes
from whitelab.sweeps.layer_pairs import layer_pairs


def never(sentences):
    raise AssertionError("a corpus is not embedded again")


@pytest.fixture(scope="module")
def apart(model, text, tmp_path_factory):
    folder = tmp_path_factory.mktemp("apart")
    embed(text, folder, model, layers=(0, 1, -1), apart=True)
    return folder


@pytest.fixture(scope="module")
def space(model):
    return embed_pairs(load_encoder(model), load("demo"))[0]


def test_a_map_of_a_corpus_is_that_of_its_rows_and_is_not_fitted_while_a_chunk_is_missing(tmp_path, model, text):
    made = embed(text, tmp_path, model)
    fitted, record = fit_corpus(tmp_path, "pca", 4)
    z = fitted(torch.tensor(vectors(tmp_path, made)))
    np.testing.assert_allclose(np.cov(z.numpy().T), np.eye(4), atol=1e-8)
    assert (record["fitted"], record["distinct"], record["rank"]) == (40, 17, 4)
    assert (
        fit_corpus(tmp_path, "pca", 4)[1]["digest"] == record["digest"] != fit_corpus(tmp_path, "pca", 3)[1]["digest"]
    )
    (tmp_path / f"{made.chunks[1]}.npz").write_bytes(b"PK")
    with pytest.raises(DataError, match=rf"1 of 3 chunks is missing \({made.chunks[1][:12]}\); run embed again"):
        fit_corpus(tmp_path)


@pytest.mark.parametrize("layers", [(1,), (0, 3), (0, 1, 3)])
def test_layers_kept_apart_give_the_map_of_any_of_their_averages(layers, apart, model, text, tmp_path):
    embed(text, tmp_path, model, layers=layers)
    one, two = corpus_rows(apart).moments(layers), corpus_rows(tmp_path).moments(layers)
    np.testing.assert_allclose(one.mean, two.mean, rtol=0, atol=1e-6)  # float32 averages on one side
    np.testing.assert_allclose(one.scatter, two.scatter, rtol=0, atol=1e-5)
    with pytest.raises(ValueError, match="and no map of layer 2: choose"):
        corpus_rows(tmp_path).moments((2,))


def test_a_corpus_has_a_digest_of_what_it_holds_wherever_it_lies(model, text, tmp_path):
    (tmp_path / "other.txt").write_text("a dog runs\na man plays\n")
    folders = {name: tmp_path / name / "embedded" for name in ("one", "same", "other")}
    for name, folder in folders.items():
        made = embed(tmp_path / "other.txt" if name == "other" else text, folder, model)
        assert json.loads((folder / "manifest.json").read_text())["digest"] == made.digest
    one, same, other = (corpus_rows(folder).digest for folder in folders.values())
    assert one == same != other


@pytest.mark.parametrize("spec", ["pca@4", "soft:gamma=0.5", "zca", "prefix@8"])
def test_a_score_fitted_on_a_corpus_is_that_fitted_on_its_text(spec, apart, text, space, model):
    fit = f"corpus:{apart}"
    setting = Setting.parse(f"L1+L3:{spec} fit={fit}")
    carrying = with_fit_text(space, setting, never)
    same = setting.with_(fit="here")
    rows = embed_scope(load_encoder(model), scope_text(str(text), "", None))
    expected = score(space.with_text("here", rows), same)
    found = score(carrying, setting)
    assert found.spearman == pytest.approx(expected.spearman, abs=1e-4)
    assert expected.isotropy > 0
    assert found.isotropy is None  # which of the task's sentences its moments are of is not known
    assert "held-out" not in found.line()
    assert found.rank == expected.rank
    assert f"sentences of corpus:{apart.name} " in found.line() or spec.startswith("prefix")


def test_every_pair_of_layers_can_be_fitted_on_layers_kept_apart(model, text, space, tmp_path):
    embed(text, tmp_path, model, layers=range(space.n_layers), apart=True)
    fit = f"corpus:{tmp_path}"
    setting = Setting(whitening="pca", k=4, fit=fit)
    cells = layer_pairs(with_fit_text(space, setting, never), setting)
    rows = embed_scope(load_encoder(model), scope_text(str(text), "", None))
    expected = layer_pairs(space.with_text("here", rows), setting.with_(fit="here"))
    scores, wanted = ([cell.spearman for cell in one.cells] for one in (cells, expected))
    np.testing.assert_allclose(scores, wanted, atol=1e-4)


def test_what_a_corpus_cannot_answer_is_one_line(apart, text, space, model, tmp_path):
    fit = f"corpus:{apart}"
    with pytest.raises(ValueError, match="needs the sentences' own vectors"):
        score(with_fit_text(space, Setting(fit=fit), never), Setting(layers=(1,), whitening="flow", fit=fit))
    for sizes in (None, [10]):
        with pytest.raises(ValueError, match="needs the sentences' own vectors"):
            list(fit_sizes(with_fit_text(space, Setting(fit=fit), never), [Setting((1,), "pca", fit=fit)], sizes))
    with pytest.raises(DataError, match="names no text"):
        scope_text(fit, "", None)
    with pytest.raises(DataError, match=r"must hold a manifest\.json"):
        check_text(f"corpus:{tmp_path}", "", None)
    check_text(fit, "", None)
    embed(text, tmp_path / "cls", model, pooling="cls")
    with pytest.raises(ValueError, match="was embedded with pooling='cls', the task with 'mean'"):
        space.with_text("x", fit_rows(f"corpus:{tmp_path / 'cls'}", never))
    twin = shutil.copytree(model, tmp_path / "twin" / Path(model).name)
    weights = {name: 2 * values for name, values in load_file(twin / "model.safetensors").items()}
    save_file(weights, twin / "model.safetensors", {"format": "pt"})
    embed(text, tmp_path / "other", str(twin))
    with pytest.raises(ValueError, match="was embedded with another model of the name"):
        space.with_text("x", fit_rows(f"corpus:{tmp_path / 'other'}", never))


def test_what_needs_more_than_moments_of_layers_apart_is_refused_and_not_advised(apart, space):
    fit = f"corpus:{apart}"
    for spec in ("r2", "shrunk"):
        setting = Setting((1,), spec, fit=fit)
        with pytest.raises(NotMeasuredError, match="holds layers kept apart"):
            score(with_fit_text(space, setting, never), setting)
    chosen = Setting((1,), "pca", fit=fit)
    advice = advise_pairs(with_fit_text(space, chosen, never), chosen)
    tried = {one.setting.whitening.partition(":")[0] for one in advice.evidence.options}
    assert {"none", "center", "pca", "soft"} <= tried
    assert not {"r2", "shrunk"} & tried


def test_drift_is_none_between_a_corpus_and_itself_and_what_a_known_change_makes_of_it(apart, model, tmp_path):
    found = corpus_drift(apart, apart, "pca", 4)
    assert (found.mean, found.variance, found.spectrum) == (0, 1, pytest.approx(0, abs=1e-9))
    x = torch.randn(4000, 6, dtype=torch.float64, generator=torch.Generator().manual_seed(0))

    def held_against(y):
        return drift(Moments.of(x), Moments.of(y), (Moments.of(y[::2]), Moments.of(y[1::2])), "zca")

    moved = held_against(2 * x + 3)
    spread = float(Moments.of(x).covariance.trace()) ** 0.5
    assert moved.mean == pytest.approx(float((x.mean(0) + 3).norm()) / spread)
    assert (moved.variance, moved.spectrum) == (pytest.approx(4), pytest.approx(2))
    one = torch.ones(6, dtype=torch.float64)
    stretched = held_against(x * torch.where(torch.arange(6) == 0, 5 * one, one))
    assert stretched.isotropy < 0.5 < 0.9 < stretched.own
    embed(small_text(tmp_path / "t.txt"), tmp_path / "cls", model, pooling="cls", layers=(0, 1, -1), apart=True)
    with pytest.raises(ValueError, match="both corpora must be of one model and pooling"):
        corpus_drift(apart, tmp_path / "cls")
    assert Manifest.read(apart).recipe.apart


@pytest.mark.parametrize("apart", [False, True])
def test_between_two_random_halves_of_one_text_nothing_speaks_for_a_new_fit(apart, model, tmp_path):
    """A map read on the sentences it was fitted on makes them round whatever they are."""
    sentences = sorted(load("demo").sentences, key=lambda text: sha256(text.encode()).digest())[:400]
    layers = (0, 3) if apart else (-1,)
    for name, some in (("one", sentences[::2]), ("two", sentences[1::2]), ("few", sentences[:9])):
        (tmp_path / f"{name}.txt").write_text("\n".join(some))
        embed(tmp_path / f"{name}.txt", tmp_path / name, model, layers=layers, apart=apart, chunk_texts=150)
    found = corpus_drift(tmp_path / "one", tmp_path / "two", "pca", 6, layers if apart else None)
    assert 0.5 < found.own <= found.isotropy + 0.02 < 1.02
    few = corpus_drift(tmp_path / "one", tmp_path / "few", "pca", 6, layers if apart else None)
    assert few.as_dict()["own"] is None


def test_a_map_that_cannot_be_is_refused_before_a_chunk_is_read(apart, monkeypatch):
    monkeypatch.setattr(fitting, "corpus_rows", lambda folder: pytest.fail("read too early"))
    with pytest.raises(ValueError, match="k=900 must lie between 1 and d="):
        fit_corpus(apart, "pca", 900)
    with pytest.raises(ValueError, match=r"layers=\[2\] must be what the corpus holds: any average of layers 0"):
        fit_corpus(apart, "pca", 4, (2,))
    with pytest.raises(ValueError, match="groups=900 must lie between 1 and d="):
        fit_corpus(apart, "group:groups=900")
