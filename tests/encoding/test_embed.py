"""Laws of the encoder: every layer equals a plain transformers loop, and nothing is encoded twice."""

import threading
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, suppress
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
import torch
from tiny import ARCHITECTURES, DIM, SENTENCES, TEXTS, build_model
from transformers import AutoModel, AutoTokenizer, ByT5Tokenizer, T5EncoderModel

from whitelab.base.devices import dtypes_for
from whitelab.encoding.embed import embed, passes
from whitelab.encoding.encoders import BATCH_BYTES, load_encoder
from whitelab.store.embedding_store import Space, Store, StoreError

POOLINGS = ("mean", "cls")  # of a model whose first token sees the whole sentence
BYTES_A_TOKEN = 4 * DIM * 4  # layers x dimensions x float32, of the model with three blocks


@pytest.fixture
def small_steps(monkeypatch):
    """Batches of about four sentences and shards of eight, so that a run has many of both."""
    monkeypatch.setitem(BATCH_BYTES, "cpu", 28 * BYTES_A_TOKEN)
    monkeypatch.setattr("whitelab.encoding.embed.SHARD_SENTENCES", 8)


def count_rows(encoder, monkeypatch):
    """A list that grows by the number of rows of every forward pass."""
    rows, forward = [], encoder.forward

    def counted(ids, pooling="mean"):
        rows.append(len(ids))
        return forward(ids, pooling)

    monkeypatch.setattr(encoder, "forward", counted)
    return rows


def plain_network(folder, architecture):
    kind = T5EncoderModel if architecture.startswith("t5") else AutoModel
    return kind.from_pretrained(folder).eval(), AutoTokenizer.from_pretrained(folder)


def pool_by_hand(hidden, mask, pooling):
    if pooling == "cls":
        return hidden[:, 0]
    mask = mask[..., None].float()
    return (hidden * mask).sum(1) / mask.sum(1)


@torch.no_grad()
def one_at_a_time(folder, architecture, texts, pooling, max_length=128):
    """[l, n, d] from one forward pass a sentence: the plainest use of transformers."""
    network, tokenizer = plain_network(folder, architecture)
    rows = []
    for text in texts:
        batch = tokenizer(text, truncation=True, max_length=max_length, return_tensors="pt")
        hidden = network(**batch, output_hidden_states=True).hidden_states
        rows.append(torch.stack([pool_by_hand(h, batch["attention_mask"], pooling)[0] for h in hidden]))
    return torch.stack(rows, dim=1)


@torch.no_grad()
def padded_batch(folder, architecture, texts, pooling):
    """[l, n, d] from one padded batch with an attention mask."""
    network, tokenizer = plain_network(folder, architecture)
    batch = tokenizer(texts, truncation=True, max_length=128, padding=True, return_tensors="pt")
    hidden = network(**batch, output_hidden_states=True).hidden_states
    return torch.stack([pool_by_hand(h, batch["attention_mask"], pooling) for h in hidden])


# ------------------------------------------------------------------------------------------- batches


@pytest.mark.parametrize("lengths", [[3], [5, 3, 5, 9, 3, 3, 128, 4], list(range(1, 60)) * 3, [7] * 300])
def test_batches_hold_one_token_count_cover_everything_once_and_start_with_the_longest(encoder, lengths):
    batches = list(encoder.batches(lengths))
    assert sorted(i for batch in batches for i in batch) == list(range(len(lengths)))
    counts = [{lengths[i] for i in batch} for batch in batches]
    assert all(len(count) == 1 for count in counts)
    order = [count.pop() for count in counts]
    assert order == sorted(order, reverse=True)


def test_a_batch_stays_within_its_bytes_but_holds_at_least_one_sentence(encoder, monkeypatch):
    monkeypatch.setitem(BATCH_BYTES, "cpu", 30 * BYTES_A_TOKEN)
    lengths = [5] * 50 + [100] * 3
    sizes = [(lengths[batch[0]], len(batch)) for batch in encoder.batches(lengths)]
    assert sizes[:3] == [(100, 1)] * 3
    assert {n for length, n in sizes if length == 5} == {6, 2}


# ---------------------------------------------------------------------------------- against transformers


@pytest.mark.parametrize("pooling", POOLINGS)
@pytest.mark.parametrize("architecture", ARCHITECTURES)
def test_every_layer_equals_a_plain_loop_over_single_sentences(models, architecture, pooling):
    encoder = load_encoder(models(architecture), device="cpu")
    values, report = embed(encoder, TEXTS, pooling)
    expected = one_at_a_time(models(architecture), architecture, TEXTS, pooling)
    assert values.shape == (4, len(TEXTS), DIM)
    assert values.dtype == torch.float32
    torch.testing.assert_close(values, expected, atol=1e-5, rtol=1e-5)
    assert report.encoded == len(TEXTS)
    layers = values.flatten(1)
    assert all((layers[i] - layers[j]).abs().max() > 0.1 for i in range(4) for j in range(i))


@pytest.mark.parametrize("pooling", POOLINGS)
@pytest.mark.parametrize("architecture", ["bert", "distilbert", "roberta", "mpnet"])
def test_batches_without_padding_equal_a_padded_batch_with_a_mask(models, architecture, pooling):
    values, _ = embed(load_encoder(models(architecture), device="cpu"), TEXTS, pooling)
    expected = padded_batch(models(architecture), architecture, TEXTS, pooling)
    torch.testing.assert_close(values, expected, atol=1e-4, rtol=1e-4)


@pytest.mark.parametrize("blocks", [1, 2, 3])
@pytest.mark.parametrize("architecture", ["bert", "distilbert", "roberta", "mpnet"])
def test_a_truncated_model_gives_the_first_layers_of_the_whole(models, store, architecture, blocks):
    whole = load_encoder(models(architecture), device="cpu")
    short = load_encoder(models(architecture), device="cpu", num_layers=blocks)
    assert short.n_layers == blocks + 1
    expected, _ = embed(whole, TEXTS, store=store)
    values, report = embed(short, TEXTS, store=store)
    torch.testing.assert_close(values, expected[: blocks + 1], atol=1e-6, rtol=1e-6)
    # The two never share a place in the store, and the name on screen says which is which.
    assert report.encoded == (0 if blocks == 3 else len(TEXTS))
    assert (short.name == whole.name) == (blocks == 3)


def test_bfloat16_is_close_to_float32_and_float16_is_refused_on_a_cpu(models, encoder):
    exact, _ = embed(encoder, TEXTS)
    rough, _ = embed(load_encoder(models(), device="cpu", dtype="bfloat16"), TEXTS)
    assert rough.dtype == torch.float32
    assert torch.nn.functional.cosine_similarity(exact, rough, dim=-1).min() > 0.995
    assert not torch.equal(exact, rough)
    assert dtypes_for("cpu") == ("float32", "bfloat16")
    with pytest.raises(ValueError, match="dtype='float16' must be one of float32, bfloat16 on cpu"):
        load_encoder(models(), device="cpu", dtype="float16")


def test_the_two_poolings_differ(encoder):
    assert not torch.allclose(embed(encoder, TEXTS, "mean")[0], embed(encoder, TEXTS, "cls")[0], atol=1e-2)


# ------------------------------------------------------------------------------------------- sentences


def test_each_unique_sentence_is_encoded_once_and_rows_keep_the_order_asked_for(encoder, monkeypatch):
    rows = count_rows(encoder, monkeypatch)
    asked = [*TEXTS, *reversed(TEXTS), TEXTS[3]]
    values, report = embed(encoder, asked)
    assert sum(rows) == len(TEXTS) == report.encoded
    assert report.reused == 0
    plain, _ = embed(encoder, TEXTS)
    position = {text: i for i, text in enumerate(TEXTS)}
    torch.testing.assert_close(values, plain[:, [position[text] for text in asked]], atol=1e-6, rtol=0)


@pytest.mark.parametrize("text", ["a man plays " * 9000, "x" * 100_000, "water, " * 15_000])
@pytest.mark.parametrize("architecture", ["bert", "roberta"])
def test_a_sentence_of_100000_characters_is_cut_and_the_cut_reported(models, architecture, text):
    encoder = load_encoder(models(architecture), device="cpu", max_length=20)
    ids, cut = encoder.tokenize([text, "water"])
    assert max(map(len, ids)) <= 20
    values, report = embed(encoder, [text, "water"])
    assert cut == [0] * (len(ids[0]) == 20)
    assert report.truncated == len(cut)
    expected = one_at_a_time(models(architecture), architecture, [text, "water"], "mean", max_length=20)
    torch.testing.assert_close(values, expected, atol=1e-5, rtol=1e-5)


def test_a_sentence_of_exactly_max_length_tokens_is_not_called_cut(models):
    encoder = load_encoder(models(), device="cpu", max_length=7)
    assert [len(row) for row in encoder.tokenize(["a man plays a guitar"])[0]] == [7]
    assert encoder.tokenize(["a man plays a guitar"])[1] == []
    assert encoder.tokenize(["water", "a man plays a guitar again"])[1] == [1]


def test_what_was_cut_is_told_of_stored_sentences_as_of_those_encoded(models, store):
    encoder = load_encoder(models(), device="cpu", max_length=7)
    long = [f"{text} again and again and again" for text in TEXTS[:4]]

    def cut(texts):
        told, expected = embed(encoder, texts, store=store)[1], encoder.tokenize(texts)[1]
        assert told.truncated == len(told.cut)
        return sorted(told.cut), [i for i in expected if texts.index(texts[i]) == i]

    for texts in ([*TEXTS, *long[:3]], [*TEXTS, *long, *long], long[2:], TEXTS):
        told, expected = cut(texts)
        assert told == expected
    assert cut(long) == ([0, 1, 2, 3],) * 2
    for index in store.root.rglob("index.sqlite*"):
        index.unlink()  # made anew from the shards
    assert cut(long) == ([0, 1, 2, 3],) * 2
    assert embed(encoder, long, store=store)[1].encoded == 0


@pytest.mark.parametrize("architecture", ["bert", "roberta"])
def test_sentences_of_unknown_words_are_told_of_stored_ones_as_of_those_encoded(architecture, models, store):
    encoder = load_encoder(models(architecture), device="cpu", max_length=7)
    texts = [*TEXTS[:3], "日 本 語", "日 本 語 の 長 い 文 で す", "日 a man plays"]
    token, special = encoder.tokenizer.unk_token_id, encoder.tokenizer.all_special_ids
    words = [[one for one in row if one not in special or one == token] for row in encoder.tokenize(texts)[0]]
    expected = [i for i, row in enumerate(words) if architecture == "bert" and row.count(token) >= len(row) / 2]
    assert expected == ([3, 4] if architecture == "bert" else [])  # the other reads bytes
    for _ in range(2):
        told = embed(encoder, texts, store=store)[1]
        assert (sorted(told.unknown), sorted(told.cut)) == (expected, sorted(encoder.tokenize(texts)[1]))
        assert any("2 sentences of mostly unknown words" in note for note in told.notes) == bool(expected)
    for index in store.root.rglob("index.sqlite*"):
        index.unlink()  # made anew from the shards
    told = embed(encoder, texts, store=store)[1]
    assert (told.encoded, sorted(told.unknown)) == (0, expected)
    encoder.tokenizer.eos_token = encoder.tokenizer.unk_token  # GPT-2's are one, at the end of a sentence of words
    assert encoder.unknown(encoder.tokenize(texts)[0]) == []


def test_a_tokenizer_that_does_not_say_what_it_cut_is_asked_again(encoder):
    of_bytes = replace(encoder, tokenizer=ByT5Tokenizer(), max_length=8)
    rows, cut = of_bytes.tokenize(["seven77", "eight888", "a good deal longer"])
    assert ([len(row) for row in rows], cut) == ([8, 8, 8], [1, 2])


def test_two_threads_that_share_a_tokenizer_cut_each_at_its_own_length(encoder, monkeypatch):
    both, set_length = threading.Barrier(2), encoder.tokenizer.set_truncation_and_padding

    def met(**how):
        set_length(**how)
        with suppress(threading.BrokenBarrierError):  # in vain, where one waits until the other is done
            both.wait(0.2)

    monkeypatch.setattr(encoder.tokenizer, "set_truncation_and_padding", met)
    with ThreadPoolExecutor(2) as threads:
        rows = list(threads.map(lambda one: one.tokenize(["a " * 60])[0][0], (encoder, encoder.cut_to(5))))
    assert [len(row) for row in rows] == [62, 5]


@pytest.mark.parametrize("architecture", ["bert", "roberta"])
def test_lone_surrogates_and_odd_characters_are_encoded(models, store, architecture):
    odd = ["\ud800 half a pair", "end \udfff", "\x00", "\u200b", "😀 👩‍👩‍👧", "ﷺ" * 50, "\ud83d"]
    encoder = load_encoder(models(architecture), device="cpu")
    values, _ = embed(encoder, odd, store=store)
    again, report = embed(encoder, odd, store=store)
    assert torch.isfinite(values).all()
    assert report.encoded == 0
    assert torch.equal(values, again)


def test_what_the_caller_casts_to_does_not_reach_a_float32_model(encoder):
    expected, _ = embed(encoder, SENTENCES)
    threads = torch.get_num_threads()
    try:
        torch.set_num_threads(1)  # else batches run in threads of their own
        with torch.autocast("cpu", dtype=torch.bfloat16):
            found, _ = embed(encoder, SENTENCES)
    finally:
        torch.set_num_threads(threads)
    torch.testing.assert_close(found, expected, atol=1e-5, rtol=1e-5)


def test_sentences_are_any_sequence_of_strings_and_nothing_else(encoder, store):
    expected, _ = embed(encoder, SENTENCES[:3])
    for several in (np.array(SENTENCES[:3]), pd.Series(SENTENCES[:3]), (one for one in SENTENCES[:3])):
        torch.testing.assert_close(embed(encoder, several, store=store)[0], expected)
    with pytest.raises(TypeError, match="sentences='hello' must be a sequence of strings, not one string"):
        embed(encoder, "hello")


def test_no_sentence_is_refused(encoder):
    with pytest.raises(ValueError, match="sentences must hold at least one sentence, got none"):
        embed(encoder, [])


def test_a_pooling_that_does_not_exist_is_refused(encoder):
    with pytest.raises(ValueError, match="pooling='max' must be one of mean, cls, last, wk"):
        embed(encoder, TEXTS, "max")
    with pytest.raises(ValueError, match="pooling='last' must be mean or cls for model='bert': its first token sees"):
        embed(encoder, TEXTS, "last")


# ------------------------------------------------------------------------------------------- threads


@pytest.fixture
def three_threads():
    before = torch.get_num_threads()
    torch.set_num_threads(3)
    yield
    torch.set_num_threads(before)


@pytest.mark.parametrize("architecture", ARCHITECTURES)
def test_batches_side_by_side_equal_a_loop_over_single_sentences(models, architecture, small_steps, three_threads):
    encoder = load_encoder(models(architecture), device="cpu")
    for pooling in POOLINGS:
        values, _ = embed(encoder, TEXTS, pooling)
        expected = one_at_a_time(models(architecture), architecture, TEXTS, pooling)
        torch.testing.assert_close(values, expected, atol=1e-5, rtol=1e-5)


def test_every_batch_runs_on_one_of_as_many_threads_as_torch_uses(encoder, monkeypatch, small_steps, three_threads):
    seen, forward, together = {}, encoder.forward, threading.Barrier(3, timeout=20)

    def watched(ids, pooling):
        name = threading.current_thread().name
        if name not in seen:
            together.wait()  # breaks unless three batches are under way at once
        seen[name] = torch.get_num_threads()
        return forward(ids, pooling)

    monkeypatch.setattr(encoder, "forward", watched)
    embed(encoder, TEXTS)
    assert list(seen.values()) == [1, 1, 1]
    assert torch.get_num_threads() == 3


def test_a_single_batch_has_every_thread(encoder, monkeypatch, three_threads):
    seen, forward = [], encoder.forward
    monkeypatch.setattr(
        encoder, "forward", lambda ids, pooling: seen.append(torch.get_num_threads()) or forward(ids, pooling)
    )
    embed(encoder, TEXTS[:1])
    assert seen == [3]


def test_a_cancel_stops_the_batches_that_have_not_begun(encoder, store, monkeypatch, small_steps, three_threads):
    def cancel(done, total):
        if done:
            raise Stop

    rows = count_rows(encoder, monkeypatch)
    before = set(threading.enumerate())  # of which some that other tests left may end meanwhile
    with pytest.raises(Stop):
        embed(encoder, TEXTS, store=store, progress=cancel)
    assert set(threading.enumerate()) <= before
    assert 0 < sum(rows) < len(TEXTS)
    values, report = embed(encoder, TEXTS, store=store)
    assert report.reused > 0
    torch.testing.assert_close(values, embed(encoder, TEXTS)[0], atol=1e-5, rtol=0)


def test_an_error_in_one_batch_is_the_callers(encoder, monkeypatch, small_steps, three_threads):
    def wrong(ids, pooling):
        raise RuntimeError("mat1 and mat2 shapes cannot be multiplied")

    monkeypatch.setattr(encoder, "forward", wrong)
    with pytest.raises(RuntimeError, match="shapes cannot be multiplied"):
        embed(encoder, TEXTS)


# ------------------------------------------------------------------------------------------- the store


def test_a_second_run_encodes_nothing_and_gives_the_same_bits(encoder, store, monkeypatch):
    values, first = embed(encoder, TEXTS, store=store)
    rows = count_rows(encoder, monkeypatch)
    again, second = embed(encoder, TEXTS, store=store)
    assert rows == []
    assert (first.encoded, first.reused) == (len(TEXTS), 0)
    assert (second.encoded, second.reused) == (0, len(TEXTS))
    assert torch.equal(values, again)


def test_a_stored_run_equals_a_run_without_a_store(encoder, store, small_steps):
    with_store, _ = embed(encoder, TEXTS, store=store)
    without, _ = embed(encoder, TEXTS)
    assert torch.equal(with_store, without)


@pytest.mark.parametrize(("first", "second"), [("mean", "cls"), ("cls", "mean")])
def test_both_poolings_come_from_one_pass(encoder, store, monkeypatch, first, second):
    embed(encoder, TEXTS, first, store=store)
    rows = count_rows(encoder, monkeypatch)
    values, report = embed(encoder, TEXTS, second, store=store)
    assert rows == []
    assert report.encoded == 0
    assert torch.equal(values, embed(encoder, TEXTS, second)[0])


def test_a_stored_vector_is_returned_even_where_the_other_pooling_is_encoded(encoder, store, monkeypatch):
    rows = count_rows(encoder, monkeypatch)
    marks = np.random.default_rng(0).standard_normal((3, encoder.n_layers, encoder.dim)).astype(np.float32)
    store.space(encoder.key("mean")).write(TEXTS[:3], marks)
    asked = [TEXTS[4], *TEXTS[:3], TEXTS[0]]
    values, report = embed(encoder, asked, "mean", store=store)
    assert sum(rows) == report.encoded == 4  # for the sake of cls
    assert torch.equal(values[:, [1, 2, 3, 4]], torch.from_numpy(marks)[[0, 1, 2, 0]].transpose(0, 1))
    torch.testing.assert_close(values[:, :1], embed(encoder, TEXTS[4:5])[0])


def test_vectors_are_float32_whatever_a_process_makes_by_default(encoder, store):
    wanted, _ = embed(encoder, TEXTS)
    torch.set_default_dtype(torch.float64)
    try:
        found = [embed(encoder, TEXTS)[0], embed(encoder, TEXTS, store=store)[0], embed(encoder, TEXTS, store=store)[0]]
    finally:
        torch.set_default_dtype(torch.float32)
    for one in found:
        assert one.dtype == torch.float32
        torch.testing.assert_close(one, wanted, atol=1e-5, rtol=0)


def test_a_gpu_computes_one_batch_at_a_time_and_the_next_while_one_is_used(encoder, monkeypatch):
    """With the CPU in its place."""
    (ids, _), inside, alone = encoder.tokenize(TEXTS), threading.Semaphore(1), []
    begun = threading.Event()

    def counted(rows, pooling="mean"):
        alone.append(inside.acquire(blocking=False))
        if len(alone) > 1:
            begun.set()
        try:
            with torch.inference_mode():
                return type(encoder).forward(replace(encoder, device="cpu"), rows, pooling)
        finally:
            inside.release()

    monkeypatch.setattr(encoder, "device", "cuda")
    monkeypatch.setitem(BATCH_BYTES, "cuda", 28 * BYTES_A_TOKEN)
    monkeypatch.setattr(encoder, "forward", counted)
    with closing(passes(encoder, ids)) as batches:
        next(batches)
        assert begun.wait(60)  # though nobody has asked for it
        assert sum(1 for _ in batches) > 3
    assert all(alone)


def test_only_new_sentences_are_encoded(encoder, store, monkeypatch):
    embed(encoder, TEXTS[:10], store=store)
    rows = count_rows(encoder, monkeypatch)
    values, report = embed(encoder, TEXTS, store=store)
    assert sum(rows) == report.encoded == len(TEXTS) - 10
    assert report.reused == 10
    torch.testing.assert_close(values, embed(encoder, TEXTS)[0], atol=1e-5, rtol=0)


@pytest.mark.parametrize("change", [{"max_length": 5}, {"dtype": "bfloat16"}, {"num_layers": 2}])
def test_what_changes_a_vector_never_reuses_one(models, encoder, store, change):
    embed(encoder, TEXTS, store=store)
    _, report = embed(load_encoder(models(), device="cpu", **change), TEXTS, store=store)
    assert report.reused == 0


def test_other_weights_under_the_same_name_never_reuse_a_vector(tmp_path, store):
    for seed in (0, 1):
        encoder = load_encoder(str(build_model(tmp_path / "same", seed=seed)), device="cpu")
        values, report = embed(encoder, TEXTS[:5], store=store)
        assert report.reused == 0
        torch.testing.assert_close(values, embed(encoder, TEXTS[:5])[0])


def test_another_config_under_the_same_weights_never_reuses_a_vector(folder, store):
    embed(load_encoder(str(folder), device="cpu"), TEXTS[:5], store=store)
    config = folder / "config.json"
    config.write_text(config.read_text().replace('"gelu"', '"relu"'))
    encoder = load_encoder(str(folder), device="cpu")
    values, report = embed(encoder, TEXTS[:5], store=store)
    assert report.reused == 0
    torch.testing.assert_close(values, embed(encoder, TEXTS[:5])[0])


class Stop(Exception):
    """A user's cancel."""


def test_progress_counts_tokens_from_nothing_to_everything(encoder, small_steps):
    calls = []
    embed(encoder, TEXTS, progress=lambda done, total: calls.append((done, total)))
    ids, _ = encoder.tokenize(TEXTS)
    done, totals = zip(*calls, strict=True)
    assert set(totals) == {sum(map(len, ids))}
    assert done[0] == 0
    assert done[-1] == totals[0]
    assert list(done) == sorted(set(done))


def test_a_cancelled_run_keeps_what_is_done_and_the_next_encodes_the_rest(encoder, store, small_steps, monkeypatch):
    def cancel(done, total):
        if done > total / 2:
            raise Stop

    rows = count_rows(encoder, monkeypatch)
    with pytest.raises(Stop):
        embed(encoder, TEXTS, store=store, progress=cancel)
    kept = sum(rows)
    assert 0 < kept < len(TEXTS)
    values, report = embed(encoder, TEXTS, store=store)
    assert (report.reused, report.encoded) == (kept, len(TEXTS) - kept)
    torch.testing.assert_close(values, embed(encoder, TEXTS)[0], atol=1e-5, rtol=0)


@pytest.mark.parametrize("pooling", POOLINGS)
@pytest.mark.parametrize("where", ["first", "middle", "last", "cut"])
def test_a_damaged_shard_is_encoded_anew_and_reported(encoder, store, small_steps, where, pooling):
    values, _ = embed(encoder, TEXTS, pooling, store=store)
    folder = store.root / encoder.key(pooling).folder
    shard = sorted(folder.glob("*.safetensors"))[0]
    data = bytearray(shard.read_bytes())
    if where == "cut":
        data = data[: len(data) // 2]
    else:
        data[{"first": 0, "middle": len(data) // 2, "last": -1}[where]] ^= 0xFF
    shard.write_bytes(bytes(data))
    again, report = embed(encoder, TEXTS, pooling, store=store)
    assert 0 < report.encoded < len(TEXTS)
    assert any("was set aside and made anew" in note for note in report.notes)
    torch.testing.assert_close(again, values, atol=1e-5, rtol=0)
    _, third = embed(encoder, TEXTS, pooling, store=store)
    assert (third.encoded, third.notes) == (0, ())


def test_a_store_that_cannot_be_opened_costs_a_note_not_the_result(encoder, tmp_path):
    (tmp_path / "file").write_text("not a folder")
    values, report = embed(encoder, TEXTS, store=Store(tmp_path / "file" / "store"))
    assert torch.equal(values, embed(encoder, TEXTS)[0])
    assert len(report.notes) == 1
    assert report.notes[0].startswith("embeddings are not kept on disk: the embedding store at")


def test_a_disk_that_fills_up_costs_a_note_not_the_result(encoder, store, small_steps, monkeypatch):
    written, write = [], Space.write

    def full_after_three(self, sentences, values, cut):
        if len(written) >= 3:
            raise StoreError("No space left on device")
        written.append(len(sentences))
        write(self, sentences, values, cut)

    monkeypatch.setattr(Space, "write", full_after_three)
    values, report = embed(encoder, TEXTS, store=store)
    torch.testing.assert_close(values, embed(encoder, TEXTS)[0], atol=1e-6, rtol=0)
    assert report.notes == ("embeddings are not kept on disk: No space left on device",)


@pytest.mark.parametrize("stored", [10, len(TEXTS)])
def test_a_store_that_is_emptied_meanwhile_costs_a_note_not_the_result(encoder, store, monkeypatch, stored):
    read = Space.read

    def emptied(self, sentences):
        Store(store.root, cap_bytes=0).evict()
        return read(self, sentences)

    embed(encoder, TEXTS[:stored], store=store)
    with monkeypatch.context() as patched:
        patched.setattr(Space, "read", emptied)
        values, report = embed(encoder, TEXTS, store=store)
    torch.testing.assert_close(values, embed(encoder, TEXTS)[0], atol=1e-5, rtol=0)
    assert not values.is_inference()
    assert (report.encoded, report.reused) == (len(TEXTS), 0)
    assert len(report.notes) == 1
    assert "could not be read and were made anew" in report.notes[0]
    assert embed(encoder, TEXTS[:stored], store=store)[1].reused == stored  # kept again


@pytest.mark.parametrize(
    ("where", "note"),
    [("missing", "embeddings are not kept on disk: no"), ("evict", "could not be brought within its size: no")],
)
def test_a_store_that_fails_at_a_step_costs_a_note_not_the_result(encoder, store, monkeypatch, where, note):
    def refused(*_, **__):
        raise StoreError("no")

    monkeypatch.setattr(Space if where == "missing" else Store, where, refused)
    values, report = embed(encoder, TEXTS, store=store)
    assert torch.equal(values, embed(encoder, TEXTS)[0])
    assert len(report.notes) == 1
    assert note in report.notes[0]


def test_reading_from_the_store_warns_about_nothing(encoder, store, recwarn):
    embed(encoder, TEXTS, store=store)
    embed(encoder, TEXTS, store=store)
    assert [str(w.message) for w in recwarn if w.category is UserWarning] == []
