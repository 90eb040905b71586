"""Encoder, layers, pooling and map -> a model folder of sentence-transformers, which needs no whitelab."""

import shutil
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path

import numpy as np
import torch

from whitelab.base.installation import RELEASE
from whitelab.base.wording import layers_in_words
from whitelab.encoding.architectures import quiet
from whitelab.encoding.checkpoints import origin_note
from whitelab.encoding.encoders import Encoder
from whitelab.encoding.names import ModelError
from whitelab.encoding.pooling import POOLING_LABELS
from whitelab.whitening import Map, Whitener
from whitelab.whitening.export.contents import as_float32, as_numpy, kept_matrix
from whitelab.whitening.export.formats import Scale, prompts_in_words, prompts_of
from whitelab.whitening.export.model_folder import (
    MAPPED_TOLERANCE,
    POOLED_TOLERANCE,
    PROBES,
    WHITE_SPACE,
    check_near,
    checked,
    model_folder,
    pooled_probes,
    write_scale,
)

_SAME = 1e-5  # of the length of vectors: more is no rounding

_SCRATCH = ("encoder", "cut")  # folders that are gone when the model is written

CARD = """---
library_name: sentence-transformers
pipeline_tag: sentence-similarity
tags: [sentence-transformers, feature-extraction, sentence-similarity, whitening]
---

# {title}

A sentence encoder written by {release}: a pretrained transformer, {combined},
{pooled}, and a linear map fitted afterwards, `{whitening}`. Vectors have {dim} dimension(s) and are not
normalised; compare them by their cosine.

```python
from sentence_transformers import SentenceTransformer

model = SentenceTransformer("path/to/this/folder")
{encoding}
```

It was written with sentence-transformers {library} and needs 5.4 or later of it, nothing else. Sentences are cut to
{max_length} tokens.
{white_space}
{scale}
## Protocol

{protocol}

{origin}"""

# How vectors are made and compared, of sentences, and of a search whose texts have words before them.
ENCODING = """vectors = model.encode(["A man plays a guitar.", "Someone makes music."])
print(model.similarity(vectors, vectors))"""
SEARCHING = """# puts {query} before a query and {document} before a document
queries = model.encode_query(["Who plays the guitar?"])
documents = model.encode_document(["A man plays a guitar.", "Someone makes music."])
print(model.similarity(queries, documents))"""


def to_sentence_transformers(
    folder: str | Path,
    encoder: Encoder,
    layers: Sequence[int],
    pooling: str,
    whitener: Map,
    protocol: Mapping | None = None,
    scale: Scale | None = None,
) -> None:
    """Write a model that `SentenceTransformer(folder).encode` loads, with no whitelab and no code of its own.

    Its vectors are `whitener(mean of layers)`, not normalised, as float32. They differ from whitelab's by
    the rounding of the encoder in float32, some 1e-6 of a vector's length: the mean is subtracted before
    the matrix multiplies, because in float32 x matrix - mean matrix loses digits where both are large. The
    folder is loaded back and compared before it gets its name. Blocks above the highest of `layers` are left
    out where the vectors stay what they are without.

    `scale`, as in `to_npz`, goes beside it as `cosine_scale.npz`, with its two lines in the card. `protocol` (of a
    score, say) goes into the model card; what follows from the other arguments is there
    in any case. Its `query_prompt` and `document_prompt` are what `encode_query` and `encode_document` put
    before a text; `encode` puts nothing. Raises ExportError where the model cannot be written, or gives other
    vectors when loaded back; ValueError for layers or a pooling that do not exist.
    """
    layers, pooling, whitener, record = checked("sentence-transformers", encoder, layers, pooling, whitener, protocol)
    heads = _dense_modules(whitener)
    with model_folder(folder, record) as aside:
        _save_modules(aside, encoder, layers, pooling, heads, prompts_of(record))
        _compare(aside, encoder, layers, pooling, whitener)
        (aside / "README.md").write_text(_card(record, encoder, write_scale(aside, scale)), "utf-8")


def encoding_lines(record: Mapping) -> str:
    """The lines that encode and compare texts with a `model` of sentence-transformers, whose record this is."""
    if not prompts_of(record):
        return ENCODING
    query, document = prompts_in_words(record)
    return SEARCHING.format(query=query, document=document)


def _written(aside: Path, encoder: Encoder, layers: tuple[int, ...], pooling: str) -> tuple[Path, Encoder]:
    """A folder with the encoder, and what lies there: without the blocks that its layers do not need, with one more
    where a norm stands after the last, or whole where fewer give other vectors or cannot be written."""
    whole, cut = (aside / name for name in _SCRATCH)
    whole.mkdir()
    encoder.save(whole)
    expected = pooled_probes(encoder, layers, pooling)
    for blocks in range(max(layers[-1], 1), min(layers[-1] + 2, encoder.n_layers - 1)):
        with suppress(ModelError):  # ALBERT's groups of blocks cannot be cut anywhere
            short = encoder.first_blocks(whole, blocks)
            found = pooled_probes(short, layers, pooling)
            if torch.allclose(found, expected, rtol=0, atol=_SAME * float(expected.norm())):
                cut.mkdir(exist_ok=True)
                short.save(cut)
                return cut, short
    return whole, encoder


@quiet
def _save_modules(
    aside: Path, encoder: Encoder, layers: tuple[int, ...], pooling: str, heads: list, prompts: dict[str, str]
) -> None:
    """Transformer, the mean of the layers, pooling and the map, as sentence-transformers saves its own."""
    from sentence_transformers import SentenceTransformer
    from sentence_transformers.sentence_transformer.modules import Pooling, Transformer, WeightedLayerPooling

    base, encoder = _written(aside, encoder, layers, pooling)
    last = encoder.n_layers - 1
    only_last = layers == (last,)
    modules = [
        Transformer(
            str(base),
            max_seq_length=encoder.max_length,
            config_kwargs={"output_hidden_states": not only_last, "local_files_only": True},
            processor_kwargs={"local_files_only": True},
            model_kwargs={"local_files_only": True},
        )
    ]
    if not only_last:
        weights = torch.zeros(last + 1 - layers[0])
        weights[[layer - layers[0] for layer in layers]] = 1.0
        modules.append(WeightedLayerPooling(encoder.dim, last, layers[0], torch.nn.Parameter(weights)))
    modules += [Pooling(encoder.dim, {"last": "lasttoken"}.get(pooling, pooling)), *heads]
    SentenceTransformer(modules=modules, device="cpu", prompts=prompts).save(str(aside), create_model_card=False)
    for name in _SCRATCH:
        shutil.rmtree(aside / name, ignore_errors=True)


def _dense_modules(whitener: Whitener) -> list:
    """z = (x - mean) matrix as modules: one that subtracts, one that multiplies, each only where it is needed."""
    from sentence_transformers.sentence_transformer.modules import Dense

    mean, matrix = as_numpy(whitener.mean), kept_matrix(whitener)
    rounded = as_float32(mean)
    heads = [(np.eye(len(mean)), -rounded)] if mean.any() else []
    if whitener.matrix is not None:
        heads.append((matrix.T, (rounded - mean) @ matrix))  # the bias gives back what rounding the mean took
    return [
        Dense(
            *weight.shape[::-1],
            activation_function=torch.nn.Identity(),
            init_weight=torch.from_numpy(as_float32(weight)),
            init_bias=torch.from_numpy(as_float32(bias)),
        )
        for weight, bias in heads
    ]


@quiet
def _compare(aside: Path, encoder: Encoder, layers: tuple[int, ...], pooling: str, whitener: Whitener) -> None:
    """Raise ExportError unless the saved model, loaded by its own library, gives whitelab's vectors."""
    from sentence_transformers import SentenceTransformer

    expected = pooled_probes(encoder, layers, pooling)
    whole = SentenceTransformer(str(aside), device="cpu", local_files_only=True)
    bare = SentenceTransformer(modules=[one for one in whole if type(one).__name__ != "Dense"], device="cpu")
    pooled, mapped = (torch.from_numpy(one.encode(list(PROBES), show_progress_bar=False)) for one in (bare, whole))
    check_near(pooled, expected, POOLED_TOLERANCE, encoder.name, "sentence-transformers")
    check_near(mapped, whitener(expected), MAPPED_TOLERANCE, encoder.name, "sentence-transformers")


def _card(record: dict, encoder: Encoder, meaning: str) -> str:
    """The README.md of a model folder; `meaning` is the part that says what a cosine means."""
    from sentence_transformers import __version__ as library

    layers = layers_in_words(record["layers"])
    whitening = record["whitening"] + (f", k = {record['k']}" if record["k"] is not None else "")
    return CARD.format(
        title=f"{record['model']}, {layers}, {whitening}",
        release=RELEASE,
        encoding=encoding_lines(record),
        combined=f"its {layers}" if len(record["layers"]) == 1 else f"the mean of its {layers}",
        pooled=f"the {POOLING_LABELS[record['pooling']]}",
        whitening=whitening,
        dim=record["dim"],
        library=library,
        max_length=record["max_length"],
        white_space=WHITE_SPACE,
        scale=meaning,
        protocol="\n".join(f"- {name}: {value}" for name, value in record.items() if value is not None),
        origin=origin_note(record["model"], encoder.files),
    )
