"""A tiny model with random weights of every architecture family, as folders with config, tokenizer and weights."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import torch
import transformers
from tiny import DIM, POSITIONS, SENTENCES, write_random
from tokenizers import Tokenizer, models, normalizers, pre_tokenizers, processors, trainers
from transformers import AutoModel, PreTrainedTokenizerFast

BLOCKS = 4

# The sizes under the names BERT gave them, and their names elsewhere.
_BERT = {"hidden_size": DIM, "num_attention_heads": 4, "intermediate_size": 48, "num_hidden_layers": BLOCKS}
_LONG = _BERT | {"max_position_embeddings": POSITIONS}
_OFFSET = _BERT | {"max_position_embeddings": POSITIONS + 2, "pad_token_id": 1, "bos_token_id": 0, "eos_token_id": 2}
_RELATIVE = {"relative_attention": True, "pos_att_type": ["c2p", "p2c"], "position_biased_input": False}
_DECODER = _LONG | {"num_key_value_heads": 2, "head_dim": 8}
_BART = {
    "d_model": DIM,
    "encoder_layers": BLOCKS,
    "decoder_layers": 2,
    "encoder_attention_heads": 4,
    "decoder_attention_heads": 4,
    "encoder_ffn_dim": 48,
    "decoder_ffn_dim": 48,
    "max_position_embeddings": POSITIONS,
}


@dataclass(frozen=True)
class Family:
    """One architecture: `config` builds its config from a vocabulary size.

    `start` and `end` are the special tokens round a sentence. `normed`: the last block is followed by a
    normalisation, so that a shorter model ends otherwise. `encoder`: it is the encoder of a larger model.
    `bare`: transformers has no class for that encoder alone. `table`: columns of the word embeddings. `letters`:
    its tokenizer works on bytes (transformers gives Qwen2 such a one whatever the folder says).
    """

    config: Callable
    start: str = "<s>"
    end: str = "</s>"
    poolings: tuple[str, str] = ("mean", "cls")
    normed: bool = False
    encoder: bool = False
    bare: bool = False
    table: int = DIM
    lower: bool = True
    letters: bool = False


def _family(kind: str, sizes: dict, **more) -> Family:
    return Family(lambda vocabulary: getattr(transformers, kind)(vocab_size=vocabulary, **sizes), **more)


_CAUSAL = {"poolings": ("mean", "last"), "normed": True}

FAMILIES = {
    "BERT": _family("BertConfig", _LONG),
    "SpanBERT": _family("BertConfig", _LONG, lower=False),
    "RoBERTa": _family("RobertaConfig", _OFFSET),
    "XLM-RoBERTa": _family("XLMRobertaConfig", _OFFSET),
    "CamemBERT": _family("CamembertConfig", _OFFSET),
    "DistilBERT": _family(
        "DistilBertConfig",
        {"dim": DIM, "n_layers": BLOCKS, "n_heads": 4, "hidden_dim": 48, "max_position_embeddings": POSITIONS},
    ),
    "ALBERT": _family("AlbertConfig", _LONG | {"embedding_size": 16}, table=16),
    "ALBERT in two groups": _family("AlbertConfig", _LONG | {"embedding_size": 16, "num_hidden_groups": 2}, table=16),
    "T5": _family(
        "T5Config",
        {"d_model": DIM, "d_kv": 8, "d_ff": 48, "num_layers": BLOCKS, "num_heads": 4},
        start="",
        normed=True,
        encoder=True,
    ),
    "LayoutLM": _family("LayoutLMConfig", _LONG | {"max_2d_position_embeddings": 16}),
    "XLM": _family(
        "XLMConfig",
        {"emb_dim": DIM, "n_layers": BLOCKS, "n_heads": 4, "max_position_embeddings": POSITIONS, "pad_index": 1},
    ),
    "MPNet": _family("MPNetConfig", _OFFSET),
    "SqueezeBERT": _family("SqueezeBertConfig", _LONG | {"embedding_size": DIM}),
    "DeBERTa": _family("DebertaConfig", _LONG | _RELATIVE),
    "DeBERTa-v2": _family(
        "DebertaV2Config",
        _LONG | _RELATIVE | {"position_buckets": 16, "share_att_key": True, "norm_rel_ebd": "layer_norm"},
    ),
    "ELECTRA": _family("ElectraConfig", _LONG | {"embedding_size": 16}, table=16),
    "MobileBERT": _family("MobileBertConfig", _LONG | {"embedding_size": 16, "intra_bottleneck_size": 16}, table=16),
    "GPT-2": _family(
        "GPT2Config",
        {"n_embd": DIM, "n_layer": BLOCKS, "n_head": 4, "n_positions": POSITIONS},
        start="",
        end="",
        letters=True,
        **_CAUSAL,
    ),
    "XLNet": _family(
        "XLNetConfig",
        {"d_model": DIM, "n_layer": BLOCKS, "n_head": 4, "d_inner": 48},
        start="",
        end="</s> <cls>",
        poolings=("mean", "last"),
    ),
    "ModernBERT": _family(
        "ModernBertConfig",
        _LONG | {"pad_token_id": 1, "local_attention": 8, "global_attn_every_n_layers": 2},
        normed=True,
    ),
    "NomicBERT": _family("NomicBertConfig", _LONG | {"pad_token_id": 1}),
    "Llama": _family("LlamaConfig", _DECODER, end="", **_CAUSAL),
    "Qwen2": _family("Qwen2Config", _LONG | {"num_key_value_heads": 2}, start="", end="", letters=True, **_CAUSAL),
    "Gemma": _family("GemmaConfig", _DECODER, end="", **_CAUSAL),
    "EmbeddingGemma": _family(
        "Gemma3TextConfig", _DECODER | {"use_bidirectional_attention": True, "sliding_window": 8}, normed=True
    ),
    "BART": _family("BartConfig", _BART, encoder=True, bare=True),
    "mBART": _family("MBartConfig", _BART, start="", normed=True, encoder=True, bare=True),
    "Longformer": _family(
        "LongformerConfig", _OFFSET | {"attention_window": [8] * BLOCKS, "max_position_embeddings": 170}
    ),
    "BigBird": _family("BigBirdConfig", _LONG | {"block_size": 4, "num_random_blocks": 1}),
}


def _tokenizer(folder: Path, family: Family) -> int:
    specials = ["<s>", "<pad>", "</s>", "<unk>", "<cls>"]
    options = {"special_tokens": specials, "show_progress": False}
    if family.letters:
        raw, alphabet = Tokenizer(models.BPE()), pre_tokenizers.ByteLevel.alphabet()
        raw.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
        raw.train_from_iterator(SENTENCES, trainers.BpeTrainer(vocab_size=400, initial_alphabet=alphabet, **options))
    else:
        raw = Tokenizer(models.WordLevel(unk_token="<unk>"))
        raw.normalizer = normalizers.Lowercase() if family.lower else None
        raw.pre_tokenizer = pre_tokenizers.Whitespace()
        raw.train_from_iterator(SENTENCES, trainers.WordLevelTrainer(**options))
    raw.post_processor = processors.TemplateProcessing(
        single=f"{family.start} $A {family.end}".strip(),
        special_tokens=[(name, raw.token_to_id(name)) for name in specials],
    )
    cls = "<cls>" if "<cls>" in family.end else "<s>"
    tokenizer = PreTrainedTokenizerFast(
        tokenizer_object=raw,
        eos_token="</s>",
        pad_token="<pad>",
        unk_token="<unk>",
        cls_token=cls,
        sep_token="</s>",
        model_max_length=POSITIONS,
    )
    tokenizer.save_pretrained(folder)
    return len(tokenizer)


def build_family(folder: Path, name: str, seed: int = 0) -> Path:
    """Write the tiny model of a family; equal seeds give equal weights."""
    family = FAMILIES[name]
    return write_random(folder, lambda: AutoModel.from_config(family.config(_tokenizer(folder, family))), seed)


def plain_network(folder: Path | str, name: str) -> torch.nn.Module:
    """The part of the model that is compared, loaded by transformers alone."""
    network = AutoModel.from_pretrained(folder).eval()
    return network.get_encoder() if FAMILIES[name].encoder else network
