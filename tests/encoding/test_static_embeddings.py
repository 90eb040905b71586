"""Laws of vectors without a transformer: plain and SIF-weighted means of word embeddings."""

from collections import Counter

import numpy as np
import pytest
import reference
import torch
from tiny import SENTENCES, build_model, write_pairs
from torch.testing import assert_close
from transformers import AutoModel, AutoTokenizer

import whitelab
from whitelab.encoding.embed import embed
from whitelab.encoding.embeddings import embed_pairs
from whitelab.encoding.encoders import StaticEncoder, load_encoder
from whitelab.encoding.names import ModelError
from whitelab.encoding.static_embeddings import SIF_A, sif_weights, weighted_means
from whitelab.scoring.fit_scopes import fit_scope
from whitelab.scoring.setting import Setting
from whitelab.store.embedding_store import Store

TEXTS = list(SENTENCES[:30])
MATRIX = torch.randn(12, 5, generator=torch.Generator().manual_seed(0))
IDS = [[1, 2, 3], [3, 3, 11], [7], []]


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return str(build_model(tmp_path_factory.mktemp("static") / "bert"))


def sif_by_hand(table, token_ids, a=1e-3):
    """Arora et al. 2017, Algorithm 1, lines 1-3: v_s = 1/|s| sum_w a / (a + p(w)) v_w."""
    counts = Counter(w for row in token_ids for w in row)
    total = sum(counts.values())
    rows = []
    for row in token_ids:
        parts = [a / (a + counts[w] / total) * table[w].astype(np.float64) for w in row]
        rows.append(sum(parts) / len(row) if row else np.zeros(table.shape[1]))
    return np.array(rows)


def without_first_direction(x):
    """Lines 4-7: TruncatedSVD with one component, not centred; v_s - u u^T v_s."""
    u = np.linalg.svd(x, full_matrices=False)[2][0]
    return x - np.outer(x @ u, u)


# ------------------------------------------------------------------------------------------- the numbers


def test_the_weights_and_means_are_those_of_the_paper():
    found = weighted_means(MATRIX, IDS, sif_weights(IDS, len(MATRIX)))
    assert_close(found, torch.from_numpy(sif_by_hand(MATRIX.numpy(), IDS)).float(), atol=1e-7, rtol=1e-6)
    assert found[3].abs().max() == 0


def test_without_weights_it_is_the_plain_mean():
    expected = torch.stack([MATRIX[row].mean(0) if row else torch.zeros(5) for row in IDS])
    assert_close(weighted_means(MATRIX, IDS), expected)
    assert weighted_means(MATRIX, [[]]).tolist() == [[0.0] * 5]


def test_a_weight_falls_with_the_frequency_and_is_one_for_a_word_that_is_not_there():
    weights = sif_weights(IDS, 12)
    assert weights[3] < weights[7] < weights[0] == 1
    assert_close(weights[3], torch.tensor(SIF_A / (SIF_A + 3 / 7), dtype=torch.float64))


# ------------------------------------------------------------------------------------------- the encoder


def test_special_tokens_do_not_count(folder):
    encoder = load_encoder(f"static:{folder}", device="cpu")
    ids, _ = encoder.tokenize(["a man", "qqq"])
    tokenizer = AutoTokenizer.from_pretrained(folder)
    assert ids == tokenizer(["a man", "qqq"], add_special_tokens=False)["input_ids"]
    assert encoder.n_layers == 1
    assert encoder.name == "static:bert"


@pytest.mark.parametrize("kind", ["static", "sif"])
def test_sentences_without_tokens_are_told(folder, kind):
    encoder = load_encoder(f"{kind}:{folder}", device="cpu")
    assert embed(encoder, TEXTS)[1].notes == ()
    values, report = embed(encoder, [*TEXTS, "\x01", "\x02", "\x01"])
    assert not values[0, len(TEXTS) :].any()
    assert report.notes == ("sentences without a token: 2, whose vectors are zero and whose cosines are 0",)


@pytest.mark.parametrize("kind", ["static", "sif"])
def test_sentences_of_unknown_words_are_told_each_once(folder, kind):
    encoder = load_encoder(f"{kind}:{folder}", device="cpu")
    _, report = embed(encoder, ["日 本 語", *TEXTS, "日 本 語", "日 a man plays", "の で"])
    assert sorted(report.unknown) == [0, len(TEXTS) + 3]
    assert any("2 sentences of mostly unknown words" in note for note in report.notes)


def test_sif_vectors_depend_on_the_sentences_embedded_together_and_static_ones_do_not(folder):
    for kind in ("static", "sif"):
        encoder = load_encoder(f"{kind}:{folder}", device="cpu")
        assert isinstance(encoder, StaticEncoder)
        few, many = embed(encoder, TEXTS[:2])[0], embed(encoder, TEXTS)[0][:, :2]
        assert torch.equal(few, many) == (kind == "static")


@pytest.mark.parametrize("kind", ["static", "sif"])
def test_a_map_fitted_on_the_words_of_a_sentence_maps_their_mean_to_the_mean_of_the_mapped(folder, kind, tmp_path):
    encoder = load_encoder(f"{kind}:{folder}", device="cpu")
    pairs = whitelab.load(write_pairs(tmp_path / "pairs.csv"))
    space, _ = embed_pairs(encoder, pairs)
    ids, _ = encoder.tokenize(pairs.sentences)
    weights = sif_weights(ids, encoder.rows).numpy() if kind == "sif" else np.ones(encoder.rows)
    table = encoder.model.weight.numpy().astype(np.float64) * weights[:, None]
    mean, covariance = reference.zipfian(table, ids)
    fitted = fit_scope(space, Setting((0,), "pca", fit="tokens"))
    assert_close(fitted.moments[0].mean, torch.from_numpy(mean), atol=1e-6, rtol=0)
    count = fitted.moments[0].count
    assert_close(fitted.moments[0].covariance * (count - 1) / count, torch.from_numpy(covariance), atol=1e-6, rtol=0)
    mapped = fitted.whiteners[0](torch.from_numpy(table))
    means = torch.stack([mapped[row].mean(0) for row in ids])
    assert_close(means, fitted.transform(), atol=1e-4, rtol=0)
    on_sentences = fit_scope(space, Setting((0,), "pca")).transform()
    assert not torch.allclose(means[:, :3].abs(), on_sentences[:, :3].abs(), atol=1e-2)


def test_neither_is_kept_in_a_store(folder, tmp_path):
    store = Store(tmp_path)
    for kind in ("static", "sif"):
        encoder = load_encoder(f"{kind}:{folder}", device="cpu")
        for _ in range(2):
            _, report = embed(encoder, TEXTS, store=store)
            assert (report.encoded, report.reused) == (len(TEXTS), 0)
    assert store.spaces() == []


def test_only_the_mean_makes_sense(folder):
    with pytest.raises(ValueError, match="pooling='cls' must be mean for model='static:bert'"):
        embed(load_encoder(f"static:{folder}", device="cpu"), TEXTS, "cls")


def test_what_has_no_meaning_without_a_transformer_is_refused(folder, tmp_path):
    with pytest.raises(ModelError, match="must not name blocks: static has one layer"):
        load_encoder(f"static:{folder}:2", device="cpu")
    with pytest.raises(ValueError, match="num_layers=2 has no meaning for model='sif:bert'"):
        load_encoder(f"sif:{folder}", device="cpu", num_layers=2)
    with pytest.raises(ModelError, match="cannot be saved: it is a table of word embeddings"):
        load_encoder(f"static:{folder}", device="cpu").save(tmp_path)


def test_a_long_sentence_is_read_as_far_as_the_model_would_read_it(folder):
    encoder = load_encoder(f"static:{folder}", device="cpu", max_length=6)
    values, report = embed(encoder, ["a man plays a guitar and some fresh bread"])
    assert report.truncated == 1
    assert torch.equal(values, embed(encoder, ["a man plays a"])[0])


# --------------------------------------------------------------------------------------- the whole method


@pytest.mark.model
def test_sif_with_the_common_component_removed_is_arora_et_als_method():
    """Algorithm 1 in plain NumPy: frequencies of the evaluated sentences, SVD of both columns stacked, not centred."""
    pairs = whitelab.load("demo")
    encoder = load_encoder("sif:bundled", device="cpu")
    space, _ = embed_pairs(encoder, pairs)
    found = fit_scope(space, Setting((0,), "common_component")).cosines().numpy()

    folder = str(encoder.files.folder)
    table = AutoModel.from_pretrained(folder).get_input_embeddings().weight.detach().numpy()
    tokenizer = AutoTokenizer.from_pretrained(folder)
    ids = tokenizer(list(pairs.sentences), add_special_tokens=False, truncation=True, max_length=126)["input_ids"]
    vectors = sif_by_hand(table, ids)
    both = np.concatenate([vectors[pairs.first_index], vectors[pairs.second_index]])
    first, second = np.split(without_first_direction(both), 2)
    cosines = (first * second).sum(1) / np.linalg.norm(first, axis=1) / np.linalg.norm(second, axis=1)
    np.testing.assert_allclose(found, cosines, atol=1e-5)
    # The removal matters, or the test above would hold without it.
    a, b = vectors[pairs.first_index], vectors[pairs.second_index]
    plain = (a * b).sum(1) / np.linalg.norm(a, axis=1) / np.linalg.norm(b, axis=1)
    assert np.abs(plain - cosines).max() > 0.1
