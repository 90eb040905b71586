"""The model list is sound, and an estimate follows the size of the network, the text and the device."""

import json

import pytest
import torch
import transformers

from whitelab.base import machine
from whitelab.compare import published
from whitelab.datasets import DataError
from whitelab.encoding import architectures, catalogue
from whitelab.encoding.catalogue import GROUPS, Entry, Size, entries, entry, estimate, guess_tokens, read

SMALL = Entry("some/small", "Small", "today", 2, 64, 1.0, "MIT", "safetensors", "")


@pytest.fixture(autouse=True)
def rate(monkeypatch):
    """A machine of known speed and memory: 1e9 multiply-adds a second, 1 GiB free."""
    monkeypatch.setattr(catalogue, "product_rate", lambda device, dtype: 1e9 * (2 if dtype == torch.bfloat16 else 1))
    monkeypatch.setattr(catalogue, "available_memory", lambda device: 2**30)


# --------------------------------------------------------------------------------------------- the list


def test_names_and_titles_are_unique_and_every_group_has_some():
    assert len({one.name for one in entries()}) == len({one.title for one in entries()}) == len(entries())
    assert {one.group for one in entries()} == set(GROUPS)
    assert all(one.layers > 0 and one.dim > 0 and one.parameters > 0 for one in entries())


def test_the_papers_models_are_there_by_name():
    titles = " ".join(one.title for one in entries())
    both = "BERT RoBERTa SpanBERT DeBERTa ALBERT T5 LayoutLM SBERT-NLI SimCSE WhitenedCSE ELECTRA"
    names = [f"{name} {size}" for name in both.split() for size in ("base", "large")]
    names += ["XLM", "DistilBERT", "M-BERT", "MPNet", "SqueezeBERT", "LaBSE", "SPECTER", "MiniLM", "DialogRPT"]
    names += [
        "MobileBERT",
        "all-MiniLM-L6-v2",
        "BGE small",
        "E5 small",
        "GTE small",
        "ModernBERT base",
        "EmbeddingGemma",
    ]
    assert [name for name in names if name not in titles] == []


def test_every_name_the_published_tables_know_is_listed_with_their_name_for_it():
    assert set(published.ALIASES) <= {one.name for one in entries()}
    found = entry("google-bert/bert-base-uncased:6")
    assert (found.title, published.alias(found.name)) == ("BERT base", "bert-base")
    assert published.alias("albert/albert-base-v2") == ""  # the paper does not say which version
    assert entry("someone/else") is None
    for one in entries():
        assert not published.alias(one.name) or published.numbers(model=one.name)


def test_depths_agree_with_those_the_papers_print():
    both = {one.name: (one.layers, published.DEPTHS.get(published.alias(one.name))) for one in entries()}
    printed = {name: depths for name, depths in both.items() if depths[1] is not None}
    assert len(printed) >= len(published.DEPTHS)
    assert [name for name, (ours, theirs) in printed.items() if ours != theirs] == []


def test_a_line_says_size_and_licence():
    assert SMALL.line() == "2 layers, d 64, 1 M parameters, licence MIT"
    assert entry("SpanBERT/spanbert-base-cased").line().endswith("licence not stated")


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("a/b,A,today,two,64,1,,,", "line 2: invalid literal"),
        ("a/b,A,nowhere,2,64,1,,,", "line 2: group='nowhere'"),
        ("a/b,A,today,2,64,1,,onnx,", "line 2: group='today' or weights='onnx' is unknown"),
        ("a/b,A,today", "line 2: expected the columns name, title"),
    ],
)
def test_a_damaged_list_is_a_data_error_with_its_line(tmp_path, line, message):
    path = tmp_path / "models.csv"
    path.write_text(",".join(Entry.__dataclass_fields__) + "\n" + line + "\n")
    with pytest.raises(DataError, match=message):
        read(path)
    with pytest.raises(DataError, match="cannot be read"):
        read(tmp_path / "nothing.csv")


# ------------------------------------------------------------------------------------------- the estimate

CONFIGS = {
    "BERT": transformers.BertConfig(),
    "RoBERTa": transformers.RobertaConfig(vocab_size=50265, max_position_embeddings=514),
    "DistilBERT": transformers.DistilBertConfig(),
    "Llama": transformers.LlamaConfig(
        hidden_size=512, num_hidden_layers=4, num_attention_heads=8, num_key_value_heads=8, intermediate_size=1376
    ),
}


@pytest.mark.parametrize("name", CONFIGS)
def test_the_size_of_a_config_is_near_that_of_its_network(name):
    config = json.loads(CONFIGS[name].to_json_string(use_diff=False))
    assert Size.of(config).parameters == pytest.approx(architectures.parameters(CONFIGS[name]), rel=0.03)


def test_the_first_blocks_have_fewer_weights_and_never_more_blocks_than_there_are():
    size = Size.of(json.loads(CONFIGS["BERT"].to_json_string(use_diff=False)))
    assert size.cut_to(3).products == size.products / 4
    assert size.parameters - size.cut_to(11).parameters == size.products / 12
    assert size.cut_to(99) == size.cut_to(None) == size


def test_the_products_are_those_of_the_network():
    """Counted by torch over one sentence of one token, less the few products of attention and pooler."""
    from torch.utils.flop_counter import FlopCounterMode

    config = transformers.BertConfig(hidden_size=64, num_hidden_layers=2, num_attention_heads=4, intermediate_size=256)
    network = transformers.BertModel(config, add_pooling_layer=False).eval()
    with FlopCounterMode(display=False) as counter:
        network(torch.ones(1, 1, dtype=torch.int64))
    assert counter.get_total_flops() / 2 == pytest.approx(Size.of(SMALL).products, rel=0.01)


def test_time_follows_tokens_size_and_type_and_memory_follows_weights_and_result():
    one = estimate(SMALL, "cpu", "float32", tokens=10**6)
    products = 2 * (4 * 64**2 + 2 * 64 * 256)
    assert one.seconds == pytest.approx(10**6 * products / (catalogue.EFFICIENCY * 1e9))
    assert estimate(SMALL, "cpu", "bfloat16", tokens=10**6).seconds == pytest.approx(one.seconds / 2)
    assert estimate(SMALL, "cpu").seconds == 0
    more = estimate(SMALL, "cpu", "float32", tokens=10**6, sentences=1000)
    assert more.memory - one.memory == 3 * 1000 * 64 * 4
    assert one.memory > 4 * 10**6


def test_what_does_not_fit_is_said():
    large = Entry("some/large", "Large", "today", 2, 64, 1e3, "", "", "")
    assert estimate(SMALL, "cpu", tokens=5 * 10**5).fits
    assert not estimate(large, "cpu").fits
    assert "but only 1.0 GiB are free" in estimate(large, "cpu").line()
    for tokens, words in {5000: "1 s", 10**6: "3 min", 10**8: "5.5 h"}.items():
        assert estimate(SMALL, "cpu", tokens=tokens).line().endswith(f"of memory and {words} here")


def test_a_config_without_a_size_is_refused():
    with pytest.raises(ValueError, match="config must say how many layers of which size it has, got model_type"):
        estimate({"model_type": "bert"}, "cpu")


@pytest.mark.model
def test_tokens_are_guessed_within_a_tenth():
    import whitelab

    sentences = whitelab.load("demo").sentences
    ids, _ = whitelab.load_encoder("bundled", device="cpu").tokenize(sentences)
    assert guess_tokens(sentences) == pytest.approx(sum(map(len, ids)), rel=0.1)


def test_the_real_machine_gives_a_real_estimate(monkeypatch):
    monkeypatch.undo()
    found = estimate(entry("google-bert/bert-base-uncased"), "cpu", "float32", tokens=1000)
    assert 0 < found.seconds < 3600
    assert found.memory > 4 * 109e6
    assert (found.free is None) or found.free > 0
    assert machine.product_rate("cpu", torch.float32) > 0


def test_the_memory_of_a_gpu_is_estimated_apart_from_the_machine_s(monkeypatch):
    config = {"hidden_size": 768, "num_hidden_layers": 12, "vocab_size": 30522, "intermediate_size": 3072}
    free = {"cpu": 2**40, "cuda": 2**40}
    monkeypatch.setattr(catalogue, "available_memory", lambda device: free[device])
    monkeypatch.setattr(catalogue, "product_rate", lambda device, dtype: 1e12)
    wide, host = catalogue.estimate(config, "cuda"), catalogue.estimate(config, "cpu")
    assert wide.memory < host.memory  # its batches are not the machine's
    free["cuda"] = 2**20
    assert catalogue.estimate(config, "cuda").free == 2**20
    assert catalogue.estimate(config, "cuda", "bfloat16").memory < catalogue.estimate(config, "cuda").memory
