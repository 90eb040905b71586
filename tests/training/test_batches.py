"""Which sentences a step takes, and how they become token ids."""

import pytest
import torch
from tiny import ARCHITECTURES, SENTENCES, build_model

from whitelab.encoding.encoders import Encoder, load_encoder
from whitelab.training import TrainConfig, Trainer
from whitelab.training.batches import PART, derived, padded

from .doing import batches


def test_an_epoch_is_a_permutation_without_its_last_piece(place):
    found = batches(place)
    assert (found.count, found.per_epoch) == (384, 38)
    first = [row for number in range(38) for row in found.rows(number)]
    second = [row for number in range(38, 76) for row in found.rows(number)]
    assert len(set(first)) == len(set(second)) == 380
    assert first != second
    assert first[:10] != sorted(first[:10])


def test_a_batch_depends_on_its_number_and_the_seed_alone(place):
    found, again, other = batches(place), batches(place), batches(place, seed=1)
    for number in range(100):
        found.rows(number)
    assert found.rows(40) == again.rows(40)
    assert other.rows(40) != again.rows(40)


def test_equal_and_empty_sentences_count_once_and_never(place):
    found = batches(place, sentences=[*SENTENCES, SENTENCES[0], f" {SENTENCES[1]} ", "", "  "])
    assert list(found.ids) == list(batches(place).ids)
    assert found.fingerprint == batches(place).fingerprint


def test_sentences_that_the_model_reads_alike_count_once(place):
    """Two of them in a batch would be each other's negatives, whatever the weights."""
    loud, longer = [text.upper() for text in SENTENCES], [f"{text} {SENTENCES[0]}" for text in SENTENCES]
    found = batches(place, sentences=[*SENTENCES, *loud])
    assert (found.count, found.repeated) == (384, 384)
    assert found.fingerprint == batches(place).fingerprint
    cut = batches(place, max_length=5, sentences=[*SENTENCES, *longer])
    assert len(set(map(tuple, cut.ids))) == cut.count == 768 - cut.repeated < 384
    assert found.shared([SENTENCES[0].title(), "unheard of", SENTENCES[1], SENTENCES[1]]) == 2
    with pytest.raises(ValueError, match="batch=10 must lie between 2 and the corpus's 9 unique sentences"):
        batches(place, sentences=[*SENTENCES[:9], *loud[:9]])


def test_a_corpus_is_tokenised_in_pieces_and_kept_in_four_bytes_a_token(place, monkeypatch):
    rows, cut = load_encoder(str(place / "model"), device="cpu").cut_to(5).tokenize(SENTENCES)
    expected = [list(row) for row in dict.fromkeys(map(tuple, rows))]
    sizes, real = [], Encoder.tokenize
    monkeypatch.setattr("whitelab.training.batches._AT_A_TIME", 100)
    monkeypatch.setattr(Encoder, "tokenize", lambda self, texts: (sizes.append(len(texts)), real(self, texts))[1])
    found = batches(place, max_length=5)
    assert sizes == [100, 100, 100, 84]
    assert list(found.ids) == expected
    assert found.truncated == len(cut) > 0
    assert found.ids.nbytes == 4 * sum(map(len, expected)) + 8 * (len(expected) + 1)
    with pytest.raises(IndexError, match=f"i={found.count} must lie between 0 and {found.count - 1}"):
        found.ids[found.count]


def test_a_corpus_smaller_than_a_batch_is_refused(place):
    with pytest.raises(ValueError, match="batch=10 must lie between 2 and the corpus's 9 unique sentences"):
        batches(place, sentences=SENTENCES[:9])


def test_padding_is_on_the_right_and_masked():
    ids, mask = padded([[5, 6, 7], [8]], 1)
    assert ids.tolist() == [[5, 6, 7], [8, 1, 1]]
    assert mask.tolist() == [[1, 1, 1], [1, 0, 0]]


@pytest.mark.parametrize("architecture", ARCHITECTURES)
def test_padded_parts_give_the_vectors_of_single_sentences(tmp_path, architecture, monkeypatch):
    monkeypatch.setitem(PART, "cpu", 3)
    model = build_model(tmp_path / architecture, architecture)
    texts = [" ".join(SENTENCES[i : i + 1 + i % 4]) for i in range(20)]
    for pooling in load_encoder(str(model), device="cpu").poolings:
        trainer = Trainer(TrainConfig(model=str(model), pooling=pooling, batch=20, max_length=60), texts, device="cpu")
        rows = trainer.batches.rows(0)
        assert len({len(trainer.batches.ids[row]) for row in rows}) > 3
        with torch.no_grad():
            found = trainer.views(trainer.encoder.model, rows)
        expected = torch.cat([trainer.encoder.forward([trainer.batches.ids[row]])[pooling][:, -1] for row in rows])
        for view in found:
            torch.testing.assert_close(view, expected, rtol=1e-4, atol=1e-4)


def test_different_keys_give_different_seeds():
    seeds = [derived(0, "step", 1), derived(0, "step", 2), derived(1, "step", 1), derived(0, "order", 1)]
    assert len(set(seeds)) == 4
    assert derived(0, "step", 1) == seeds[0]
