"""Tiny pretrained models with random weights, written to a folder as real ones are, and pairs in words they know."""

import csv
from dataclasses import replace
from pathlib import Path

import torch
from tokenizers import Tokenizer, models, normalizers, pre_tokenizers, processors, trainers
from transformers import (
    BertConfig,
    BertModel,
    BertTokenizerFast,
    DistilBertConfig,
    DistilBertModel,
    MPNetConfig,
    MPNetModel,
    PreTrainedTokenizerFast,
    RobertaConfig,
    RobertaModel,
    RobertaTokenizerFast,
    T5Config,
    T5EncoderModel,
    T5Model,
)

DIM = 32
POSITIONS = 160

_SUBJECTS = ["a man", "a woman", "the dog", "two children", "an old teacher", "my neighbour", "the cat", "a singer"]
_VERBS = ["plays", "cooks", "watches", "carries", "paints", "forgets", "sells", "finds"]
_OBJECTS = ["a guitar", "the small house", "some fresh bread", "a long film about rivers", "the blue car", "water"]

SENTENCES = tuple(f"{s} {v} {o}" for s in _SUBJECTS for v in _VERBS for o in _OBJECTS)
WORDS = sorted({word for sentence in SENTENCES for word in sentence.split()})
# Forty of them with what is awkward: one word, marks, letters no tokenizer here knows, many tokens.
TEXTS = [
    *SENTENCES[:40],
    "water",
    "Water, the long film and (perhaps) a bird?",
    "é ü 日本 zebra",
    "a " * 60,
]


def _wordpiece_vocabulary(specials: list[str]) -> dict[str, int]:
    letters = "abcdefghijklmnopqrstuvwxyz0123456789.,?'-"
    pieces = [*specials, *letters, *(f"##{letter}" for letter in letters), *WORDS]
    return {piece: i for i, piece in enumerate(dict.fromkeys(pieces))}


def _bert_tokenizer(folder: Path) -> int:
    specials = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
    vocabulary = _wordpiece_vocabulary(specials)
    (folder / "vocab.txt").write_text("".join(f"{piece}\n" for piece in vocabulary), "utf-8")
    BertTokenizerFast(vocab=vocabulary, do_lower_case=True, model_max_length=POSITIONS).save_pretrained(folder)
    return len(vocabulary)


def _byte_level_tokenizer(folder: Path) -> int:
    specials = ["<s>", "<pad>", "</s>", "<unk>", "<mask>"]
    raw = Tokenizer(models.BPE())
    raw.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    trainer = trainers.BpeTrainer(
        vocab_size=500,
        special_tokens=specials,
        show_progress=False,
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
    )
    raw.train_from_iterator(SENTENCES, trainer)
    raw.model.save(str(folder))
    tokenizer = RobertaTokenizerFast(
        vocab=str(folder / "vocab.json"), merges=str(folder / "merges.txt"), model_max_length=POSITIONS
    )
    tokenizer.save_pretrained(folder)
    return len(tokenizer)


def _word_tokenizer(folder: Path, cls: str | None, sep: str, pad: str, unk: str) -> int:
    raw = Tokenizer(models.WordLevel(unk_token=unk))
    raw.normalizer = normalizers.Lowercase()
    raw.pre_tokenizer = pre_tokenizers.Whitespace()
    specials = [name for name in (cls, pad, sep, unk) if name]
    raw.train_from_iterator(SENTENCES, trainers.WordLevelTrainer(special_tokens=specials, show_progress=False))
    raw.post_processor = processors.TemplateProcessing(
        single=f"{cls} $A {sep}" if cls else f"$A {sep}",
        special_tokens=[(name, raw.token_to_id(name)) for name in (cls, sep) if name],
    )
    tokenizer = PreTrainedTokenizerFast(
        tokenizer_object=raw,
        eos_token=sep,
        pad_token=pad,
        unk_token=unk,
        model_max_length=POSITIONS,
        **({"cls_token": cls, "sep_token": sep} if cls else {}),
    )
    tokenizer.save_pretrained(folder)
    return len(tokenizer)


_SIZES = {
    "hidden_size": DIM,
    "num_attention_heads": 4,
    "intermediate_size": 48,
    "max_position_embeddings": POSITIONS,
}


def _bert(folder: Path, layers: int):
    size = _bert_tokenizer(folder)
    return BertModel(BertConfig(vocab_size=size, num_hidden_layers=layers, **_SIZES))


def _distilbert(folder: Path, layers: int):
    size = _bert_tokenizer(folder)
    return DistilBertModel(
        DistilBertConfig(
            vocab_size=size,
            n_layers=layers,
            dim=DIM,
            n_heads=4,
            hidden_dim=48,
            max_position_embeddings=POSITIONS,
        )
    )


def _roberta(folder: Path, layers: int):
    size = _byte_level_tokenizer(folder)
    return RobertaModel(
        # RoBERTa counts positions from pad_token_id + 1.
        RobertaConfig(
            vocab_size=size,
            num_hidden_layers=layers,
            **_SIZES | {"max_position_embeddings": POSITIONS + 2},
            bos_token_id=0,
            pad_token_id=1,
            eos_token_id=2,
        )
    )


def _mpnet(folder: Path, layers: int):
    size = _word_tokenizer(folder, "<s>", "</s>", "<pad>", "<unk>")
    return MPNetModel(
        MPNetConfig(
            vocab_size=size,
            num_hidden_layers=layers,
            **_SIZES | {"max_position_embeddings": POSITIONS + 2},
            bos_token_id=0,
            pad_token_id=1,
            eos_token_id=2,
        )
    )


def _t5(folder: Path, layers: int, network=T5Model):
    size = _word_tokenizer(folder, None, "</s>", "<pad>", "<unk>")
    return network(
        T5Config(
            vocab_size=size,
            num_layers=layers,
            d_model=DIM,
            d_kv=8,
            num_heads=4,
            d_ff=48,
            pad_token_id=0,
            eos_token_id=1,
        )
    )


def _t5_encoder(folder: Path, layers: int):
    return _t5(folder, layers, T5EncoderModel)


ARCHITECTURES = {
    "bert": _bert,
    "distilbert": _distilbert,
    "roberta": _roberta,
    "mpnet": _mpnet,
    "t5": _t5,
    "t5-encoder": _t5_encoder,
}


def build_model(folder: Path, architecture: str = "bert", layers: int = 3, seed: int = 0) -> Path:
    """Write a model of `layers` blocks and 32 dimensions to `folder`; equal seeds give equal weights."""
    return write_random(folder, lambda: ARCHITECTURES[architecture](folder, layers), seed)


def write_random(folder: Path, make, seed: int) -> Path:
    """Write the network that `make()` gives to `folder`, with weights that differ enough for layers to differ."""
    folder.mkdir(parents=True, exist_ok=True)
    with torch.random.fork_rng(devices=()):
        torch.manual_seed(seed)
        network = make().eval()
        with torch.no_grad():
            # The usual start is so small that all layers look alike; larger weights tell mistakes apart.
            for weight in network.parameters():
                if weight.ndim > 1:
                    weight.normal_(0, 0.2)
    network.save_pretrained(folder)
    return folder


def build_once(root: Path, build):
    """A function from a kind to its folder below `root`, as text; `build(folder, kind)` is called when first asked."""
    built = {}

    def folder(kind: str = "bert") -> str:
        if kind not in built:
            built[kind] = str(build(root / kind, kind))
        return built[kind]

    return folder


def build_place(root: Path) -> Path:
    """What a run takes, in one folder: `model`, scored pairs in `pairs.csv`, all sentences in `corpus.txt`."""
    build_model(root / "model")
    write_pairs(root / "pairs.csv")
    (root / "corpus.txt").write_text("".join(f"{text}\n" for text in SENTENCES), "utf-8")
    return root


def pair(number: int) -> tuple[str, str, set[str]]:
    """The pair of this number, and the words its sentences share."""
    first, second = SENTENCES[7 * number % len(SENTENCES)], SENTENCES[(11 * number + 5) % len(SENTENCES)]
    return first, second, set(first.split()) & set(second.split())


def gold(number: int) -> float:
    """A score from 0 to 5 that grows with the words the sentences of this pair share."""
    first, _, shared = pair(number)
    return 5 * len(shared) / len(set(first.split()))


def write_reversed(path: Path) -> Path:
    """Forty pairs scored by how far apart they are: 0 for a sentence and itself."""
    both = zip(SENTENCES[:40], SENTENCES[40:80], strict=True)
    rows = [f"{one},{one if i % 2 else other},{0 if i % 2 else 5}" for i, (one, other) in enumerate(both)]
    path.write_text("\n".join(["sentence1,sentence2,score", *rows]))
    return path


def write_pairs(path: Path, pairs: int = 60, start: int = 0) -> Path:
    """A CSV of `pairs` sentence pairs with their gold scores."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with open(path, "w", newline="", encoding="utf-8") as file:
        rows = csv.writer(file)
        rows.writerow(["sentence1", "sentence2", "score"])
        for i in range(start, start + pairs):
            rows.writerow([*pair(i)[:2], round(gold(i), 2)])
    return path


def write_task(folder: Path, task: str = "sts12", subsets: int = 2, pairs: int = 40) -> Path:
    """A task with subset files in the layout of the published collection; every subset has its own pairs."""
    folder.mkdir(parents=True, exist_ok=True)
    everything = []
    for number in range(subsets):
        lines = []
        for i in range(number * pairs, (number + 1) * pairs):
            lines.append("\t".join(["_", "_", "_", str(i), f"{gold(i):.3f}", *pair(i)[:2]]) + "\n")
        (folder / f"{task}.part{number}-test.csv").write_text("".join(lines), "utf-8")
        everything += lines
    (folder / f"{task}-test.csv").write_text("".join(everything), "utf-8")
    return folder


def untimed(records) -> list:
    """The records of a run without how long each step took."""
    return [replace(record, seconds=0.0) for record in records]
