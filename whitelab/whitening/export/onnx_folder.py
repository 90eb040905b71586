"""Encoder, layers, pooling and map -> one ONNX graph with its tokenizer, for onnxruntime in any language.

The folder has `model.onnx`, from `input_ids` and `attention_mask` (int64 [b, t], any b and t) to
`sentence_embedding` (float32 [b, m]), and `tokenizer.json`, which the library tokenizers reads alone.
"""

import logging
import warnings
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from copy import deepcopy
from pathlib import Path

import numpy as np
import torch
from jaxtyping import Float, Int
from torch import Tensor

import whitelab
from whitelab.base.installation import RELEASE, MissingLibraryError, install_line, need
from whitelab.base.own_process import in_own_process
from whitelab.base.wording import first_line
from whitelab.encoding import architectures
from whitelab.encoding.checkpoints import ModelFiles, origin_note
from whitelab.encoding.encoders import Encoder
from whitelab.encoding.pooling import POOLINGS, padded
from whitelab.whitening import Map, Whitener
from whitelab.whitening.export.contents import as_float32, as_json, as_numpy, kept_matrix
from whitelab.whitening.export.formats import Scale
from whitelab.whitening.export.model_folder import (
    MAPPED_TOLERANCE,
    PROBES,
    WHITE_SPACE,
    check_near,
    checked,
    model_folder,
    pooled_probes,
    write_scale,
)
from whitelab.whitening.export.places import ExportError

GRAPH, TOKENIZER = "model.onnx", "tokenizer.json"
INPUTS, OUTPUT = ("input_ids", "attention_mask"), "sentence_embedding"
LARGEST = 2**31 - 2**20  # bytes in one protobuf message, which an ONNX file is

LINES = '''import numpy as np
import onnxruntime
from tokenizers import Tokenizer

session = onnxruntime.InferenceSession("{folder}/model.onnx")
tokenizer = Tokenizer.from_file("{folder}/tokenizer.json")  # cuts sentences to {max_length} tokens
tokenizer.enable_padding(pad_id={pad})  # on the right


def encode(sentences):
    """Sentences to whitened vectors [n, {dim}] in float32, not normalised: compare them by their cosine."""
    rows = tokenizer.encode_batch(sentences)
    ids = np.array([row.ids for row in rows], dtype=np.int64)
    mask = np.array([row.attention_mask for row in rows], dtype=np.int64)
    (vectors,) = session.run(None, {{"input_ids": ids, "attention_mask": mask}})
    return vectors
'''

CARD = """# {title}

A sentence encoder as one ONNX graph, written by {release}: token ids go in, sentence vectors come out, with
layers, pooling and the linear map `{whitening}` inside. It needs onnxruntime and tokenizers, or their like in any
language. Pad on the right.

```python
{lines}```

{white_space}
{scale}
## Protocol

{protocol}

{origin}"""


class Graph(torch.nn.Module):
    """What is exported: z = (mean over layers of the pooled states - mean) matrix + bias, all in float32."""

    def __init__(self, model: torch.nn.Module, layers: Sequence[int], pooling: str, *head: np.ndarray) -> None:
        super().__init__()
        self.model = model
        self.layers, self.pool = tuple(layers), POOLINGS[pooling]
        for name, values in zip(("mean", "matrix", "bias"), head, strict=True):
            self.register_buffer(name, torch.from_numpy(values))

    def forward(self, input_ids: Int[Tensor, "b t"], attention_mask: Int[Tensor, "b t"]) -> Float[Tensor, "b m"]:
        """Sentence vectors of padded rows of token ids."""
        found = self.model(input_ids=input_ids, attention_mask=attention_mask, output_hidden_states=True)
        pooled = [self.pool(found.hidden_states[layer], attention_mask) for layer in self.layers]
        # The mean is subtracted before the matrix multiplies: afterwards both are large, and digits are lost.
        return (torch.stack(pooled).mean(dim=0) - self.mean) @ self.matrix + self.bias


def to_onnx(
    folder: str | Path,
    encoder: Encoder,
    layers: Sequence[int],
    pooling: str,
    whitener: Map,
    protocol: Mapping | None = None,
    scale: Scale | None = None,
    *,
    apart: bool = False,
) -> None:
    """Write `model.onnx`, `tokenizer.json` and a README with the lines that use them to `folder`.

    Vectors are `whitener(mean of layers)`, not normalised, as float32, and differ from whitelab's by the rounding of
    the encoder in float32 (some 1e-6 of a vector's length before the map). The graph is run by onnxruntime and
    compared before the folder gets its name; `protocol` goes into graph, README and note, and `scale` beside them, as
    `to_sentence_transformers` has it. `apart` writes the graph in a
    process of its own, from the encoder's files: for a server, whose other threads the exporter would keep waiting.

    Raises MissingLibraryError where the extra `onnx` is not installed, ExportError where the model or the map cannot
    be written as a graph or gives other vectors there; ValueError for layers or a pooling that do not exist.
    """
    need("onnx")
    layers, pooling, whitener, record = checked("onnx", encoder, layers, pooling, whitener, protocol)
    with model_folder(folder, record) as aside:
        head = _head(whitener)
        _check_size(encoder, head)
        probes = [one.numpy() for one in _padded(encoder, PROBES)]
        given = (aside / GRAPH, layers, pooling, head, probes, as_json(record))
        if apart:
            in_own_process("the ONNX exporter", _write_from_files, encoder.files, encoder.n_layers - 1, *given)
        else:
            model = encoder.model if encoder.device == "cpu" else deepcopy(encoder.model).cpu()
            _write_graph(encoder.name, model, *given)
        _write_tokenizer(aside, encoder)
        _compare(aside, encoder, layers, pooling, whitener)
        (aside / "README.md").write_text(_card(Path(folder).name, record, encoder, write_scale(aside, scale)), "utf-8")


def onnx_lines(folder: str | Path, encoder: Encoder, dim: int) -> str:
    """The lines of Python that use a folder of `to_onnx` with vectors of `dim` dimensions, to be shown and copied."""
    return LINES.format(folder=folder, max_length=encoder.max_length, pad=_pad(encoder), dim=dim)


def _head(whitener: Whitener) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Mean, matrix and bias of a `Graph`; the bias gives back what rounding the mean to float32 took from it."""
    mean, matrix = as_numpy(whitener.mean), kept_matrix(whitener)
    rounded = as_float32(mean)
    return rounded, as_float32(matrix), as_float32((rounded - mean) @ matrix)


def _check_size(encoder: Encoder, head: Sequence[np.ndarray]) -> None:
    tensors = (*encoder.model.parameters(), *encoder.model.buffers(), *map(torch.from_numpy, head))
    size = sum(one.numel() * one.element_size() for one in tensors)
    if size > LARGEST:
        raise ExportError(f"model={encoder.name!r} takes {size / 2**30:.1f} GiB, and an ONNX file holds less than 2")


def _write_from_files(files: ModelFiles, blocks: int, *given) -> None:
    """In a process of its own: `_write_graph` of the first `blocks` blocks, loaded anew."""
    _write_graph(files.name, architectures.load(files, blocks).module, *given)


def _write_graph(
    name: str,
    model: torch.nn.Module,
    path: Path,
    layers: Sequence[int],
    pooling: str,
    head: Sequence[np.ndarray],
    probes: Sequence[np.ndarray],
    protocol: str,
) -> None:
    """Trace the graph on two rows of unequal length, with both sizes left open, and save it in one file."""
    import onnx

    sizes = {0: torch.export.Dim.DYNAMIC, 1: torch.export.Dim.DYNAMIC}
    with _explained(name), torch.no_grad():
        program = torch.onnx.export(
            Graph(model, layers, pooling, *head).eval(),
            tuple(map(torch.from_numpy, probes)),
            dynamo=True,
            input_names=INPUTS,
            output_names=[OUTPUT],
            dynamic_shapes=dict.fromkeys(INPUTS, sizes),
            verbose=False,
        )
        made = program.model_proto
    onnx.helper.set_model_props(made, {"whitelab": whitelab.__version__, "protocol": protocol})
    onnx.save(made, path)


def _write_tokenizer(aside: Path, encoder: Encoder) -> None:
    """`tokenizer.json` alone: what else transformers saves is for transformers."""
    backend = getattr(encoder.cutting_tokenizer(), "backend_tokenizer", None)
    if backend is None:
        raise ExportError(f"model={encoder.name!r} has a tokenizer that cannot be written as tokenizer.json")
    (aside / TOKENIZER).write_text(backend.to_str(), "utf-8")


def _compare(aside: Path, encoder: Encoder, layers: tuple[int, ...], pooling: str, whitener: Whitener) -> None:
    """Raise ExportError unless what is written gives whitelab's tokens, and its vectors alone in a batch and padded."""
    try:
        import onnxruntime
    except ImportError:
        raise MissingLibraryError(
            f"onnxruntime is not installed: run `{install_line('onnx')}` in this environment"
        ) from None

    expected = whitener(pooled_probes(encoder, layers, pooling))
    with _explained(encoder.name):
        _check_tokenizer(aside, encoder)
        session = onnxruntime.InferenceSession(str(aside / GRAPH), providers=["CPUExecutionProvider"])
        for texts, wanted in ((PROBES, expected), (PROBES[1:], expected[1:])):
            given = dict(zip(INPUTS, (one.numpy() for one in _padded(encoder, texts)), strict=True))
            (found,) = session.run(None, given)
            check_near(torch.from_numpy(found), wanted, MAPPED_TOLERANCE, encoder.name, "ONNX")


def _check_tokenizer(aside: Path, encoder: Encoder) -> None:
    """Raise ExportError unless `tokenizer.json` alone gives the encoder's token ids, also of what the encoder cuts."""
    texts = [*PROBES, " ".join([PROBES[0], *PROBES[1:] * encoder.max_length])]
    written = type(encoder.tokenizer.backend_tokenizer).from_file(str(aside / TOKENIZER))
    found = [row.ids for row in written.encode_batch(texts)]
    if found != encoder.tokenize(texts)[0]:
        raise ExportError(f"model={encoder.name!r} cannot be exported to ONNX: its tokenizer.json gives other tokens")


def _padded(encoder: Encoder, texts: Sequence[str]) -> tuple[Int[Tensor, "b t"], Int[Tensor, "b t"]]:
    """Token ids padded on the right, and the mask of what is no padding."""
    return padded(encoder.tokenize(list(texts))[0], _pad(encoder))


def _pad(encoder: Encoder) -> int:
    """The id of the padding token; what is padded is masked, so 0 will do where there is none."""
    return encoder.tokenizer.pad_token_id or 0


def _card(name: str, record: Mapping, encoder: Encoder, meaning: str) -> str:
    return CARD.format(
        title=name,
        release=RELEASE,
        whitening=record["whitening"],
        lines=onnx_lines("path/to/this/folder", encoder, record["dim"]),
        white_space=WHITE_SPACE,
        scale=meaning,
        protocol="\n".join(f"- {key}: {value}" for key, value in record.items() if value is not None),
        origin=origin_note(record["model"], encoder.files),
    )


@contextmanager
def _explained(name: str) -> Iterator[None]:
    """What the exporter and onnxruntime raise and say, as an ExportError of one line."""
    logger = logging.getLogger("torch.onnx")
    level = logger.level
    try:
        logger.setLevel(logging.ERROR)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            yield
    except (ExportError, OSError):
        raise
    except Exception as error:  # each library has its own kinds
        error = error.__cause__ or error  # the exporter's own says only at which of its steps
        raise ExportError(f"model={name!r} cannot be exported to ONNX: {first_line(error)}") from None
    finally:
        logger.setLevel(level)
