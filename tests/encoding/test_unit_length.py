"""Laws of vectors of length 1: made of what is kept already, before layers are averaged and anything is fitted."""

import numpy as np
import pytest
from tiny import build_model, write_pairs

from whitelab.datasets import load
from whitelab.encoding.embed import embed
from whitelab.encoding.embeddings import embed_pairs
from whitelab.encoding.encoders import load_encoder
from whitelab.scoring.fit_scopes import fit_scope
from whitelab.scoring.score import score
from whitelab.scoring.setting import Setting
from whitelab.store.embedding_store import Store
from whitelab.training import TrainConfig
from whitelab.whitening.export import ExportError, to_sentence_transformers


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """The encoder, and the same pairs plainly pooled and brought to length 1."""
    root = tmp_path_factory.mktemp("unit")
    write_pairs(root / "pairs.csv")
    encoder, pairs = load_encoder(str(build_model(root / "model")), device="cpu"), load(root / "pairs.csv")
    return encoder, *(embed_pairs(encoder, pairs, pooling)[0] for pooling in ("mean", "unit_mean"))


def setting(text):
    return Setting.parse(text)


def test_every_vector_has_length_1_and_nothing_is_encoded_or_kept_again(made, tmp_path):
    encoder, store = made[0], Store(tmp_path)
    plain, _ = embed(encoder, ["a man", "the dog runs"], "cls", store=store)
    kept = {info.folder for info in store.spaces()}
    values, report = embed(encoder, ["a man", "the dog runs"], "unit_cls", store=store)
    assert (report.encoded, {info.folder for info in store.spaces()}) == (0, kept)
    assert np.allclose(values, plain / np.linalg.norm(plain, axis=-1, keepdims=True), atol=1e-7)


def test_layers_are_averaged_and_maps_are_fitted_on_vectors_of_length_1(made):
    _, plain, unit = made
    rows = plain.values.numpy().astype(np.float64)
    rows /= np.linalg.norm(rows, axis=-1, keepdims=True)
    average = (rows[1] + rows[3]) / 2
    moments = fit_scope(unit, setting("unit_mean/L1+L3:pca")).moments[0]
    counts = unit.counts.numpy()
    assert np.allclose(moments.mean, np.average(average, axis=0, weights=counts), atol=1e-6)
    assert np.allclose(moments.covariance, np.cov(average.T, fweights=counts.astype(int)), atol=1e-6)


def test_one_raw_layer_scores_the_same_and_nothing_else_need(made):
    _, plain, unit = made
    for layer in range(plain.n_layers):
        both = (score(space, Setting((layer,), pooling=space.origin.pooling)).spearman for space in (plain, unit))
        assert next(both) == pytest.approx(next(both), abs=0.01)
    for text in ("L1+L3", "L2:pca", "L2:center@5"):
        assert abs(score(plain, setting(text)).spearman - score(unit, setting(f"unit_mean/{text}")).spearman) > 0.01
    with pytest.raises(ValueError, match="pooling='mean' must be 'unit_mean', that of the embeddings"):
        score(unit, setting("L2"))


def test_it_is_part_of_the_settings_text_and_of_the_protocol(made):
    text = "unit_mean/L1+L3:soft:gamma=0.5,alpha=0@7"
    assert str(setting(text)) == text
    found = score(made[2], setting("unit_mean/L3:pca"))
    assert "mean pooling, length 1" in found.line()
    assert found.protocol.as_dict()["pooling"] == "unit_mean"


def test_where_there_is_no_such_step_it_is_refused(made, tmp_path):
    encoder, _, unit = made
    whitener = fit_scope(unit, setting("unit_mean/L3:pca")).whiteners[0]
    with pytest.raises(
        ExportError, match="pooling='unit_mean' must be one of mean, cls, last in sentence-transformers"
    ):
        to_sentence_transformers(tmp_path / "out", encoder, (3,), "unit_mean", whitener)
    with pytest.raises(ValueError, match="pooling='unit_mean' must be one of mean, cls, last"):
        TrainConfig(pooling="unit_mean")
    with pytest.raises(ValueError, match="pooling='unit_last' must be mean or cls"):
        embed(encoder, ["a man"], "unit_last")
