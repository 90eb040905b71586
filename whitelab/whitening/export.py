"""A fitted map, alone or with its encoder -> files that other tools load without whitelab.

Every export is written aside and renamed, so under its own name it is whole or absent. What an earlier
export left there is replaced; what somebody else put there is not.
"""

import io
import json
import os
import shutil
import zlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from zipfile import ZIP_DEFLATED, ZIP_STORED, BadZipFile, ZipFile

import numpy as np
import torch
from jaxtyping import Float
from safetensors import SafetensorError, safe_open
from safetensors.torch import save as safetensors_of
from torch import Tensor

import whitelab
from whitelab.base.checks import check_choice, check_int, check_layers
from whitelab.base.installation import need
from whitelab.base.user_folders import expanded
from whitelab.base.wording import first_line, layers_in_words
from whitelab.encoding.architectures import quiet
from whitelab.encoding.checkpoints import origin_note
from whitelab.encoding.encoders import Encoder, embed
from whitelab.encoding.pooling import POOLING_LABELS, UNIT, WK
from whitelab.store.shards import folder_aside, let_read, write_aside
from whitelab.whitening import Map, RowMap, Whitener, affine
from whitelab.whitening.clusters import ClusterMap
from whitelab.whitening.flow import FlowMap

# What readers raise for no file, another kind of file, a damaged one, and one that holds other things.
NOT_AN_NPZ = (OSError, ValueError, EOFError, AttributeError, TypeError, KeyError, BadZipFile, zlib.error)
NOT_A_SAFETENSORS = (OSError, ValueError, TypeError, KeyError, SafetensorError)

ROW_MAPS = {one.kind: one for one in (ClusterMap, FlowMap)}


@dataclass(frozen=True)
class Format:
    """A form in which a map leaves: `whole` holds the encoder too, and with a `scaled` one goes what a cosine means.

    `any_map` holds maps that are no mean and matrix as well. `prompted` puts the words of a search before its texts.
    """

    label: str
    whole: bool = False
    scaled: bool = False
    any_map: bool = False
    prompted: bool = False

    def prompts_note(self, prompts: Mapping[str, str]) -> str:
        """What to do about the words that stood before the texts of a map."""
        who = "encode_query and encode_document put them there" if self.prompted else "put them there yourself"
        query, document = _in_words(prompts)
        return f"the map is of queries after {query} and documents after {document}: {who}"


FORMATS = {
    "npz": Format("NumPy", scaled=True),
    "faiss": Format("FAISS"),
    "sentence-transformers": Format("sentence-transformers", whole=True, scaled=True, prompted=True),
    "onnx": Format("ONNX", whole=True),
    "safetensors": Format("safetensors", any_map=True),
}

MARK = b"whitelab"  # the last bytes of a faiss file of ours, which faiss does not read
NOTE = "whitelab.json"  # lists the files of a model folder of ours
SCALE = "cosine_scale.npz"  # in a model folder: what its cosines mean
Scale = Mapping[str, np.ndarray]
RANDOM = "random pairs"  # what the percentiles of a scale are among, unless it says so itself
SEARCHED = {"among": np.array("all queries with all documents")}  # as that of a search does

# A model folder must give these the vectors that whitelab gives them. Two lengths, so that padding takes part.
# Rounding in float32 changes what an encoder gives by some 1e-6 of its length (measured), and what a map makes
# of it by 1e-7 times the spread of its singular values, at most 1e5; a mistake changes it by more than a tenth.
PROBES = ("A man is playing a guitar in front of the old house by the river.", "water")
POOLED_TOLERANCE, MAPPED_TOLERANCE = 1e-3, 5e-2

CARD = """---
library_name: sentence-transformers
pipeline_tag: sentence-similarity
tags: [sentence-transformers, feature-extraction, sentence-similarity, whitening]
---

# {title}

A sentence encoder written by whitelab {version}: a pretrained transformer, {combined},
{pooled}, and a linear map fitted afterwards, `{whitening}`. Vectors have {dim} dimension(s) and are not
normalised; compare them by their cosine.

```python
from sentence_transformers import SentenceTransformer

model = SentenceTransformer("path/to/this/folder")
{encoding}
```

It was written with sentence-transformers {library} and needs 5.4 or later of it, nothing else. Sentences are cut to
{max_length} tokens.
White space at the ends of a sentence, which whitelab strips from its data, is left to you.
{scale}
## Protocol

{protocol}

{origin}"""


PROMPTED = ("query", "document")  # before whose texts words can stand, as sentence-transformers calls them

# How vectors are made and compared, of sentences, and of a search whose texts have words before them.
ENCODING = """vectors = model.encode(["A man plays a guitar.", "Someone makes music."])
print(model.similarity(vectors, vectors))"""
SEARCHING = """# puts {query} before a query and {document} before a document
queries = model.encode_query(["Who plays the guitar?"])
documents = model.encode_document(["A man plays a guitar.", "Someone makes music."])
print(model.similarity(queries, documents))"""


class ExportError(ValueError):
    """A map that cannot be written in this form or to this place; the message says why and what to do."""


# ------------------------------------------------------------------------------------------------ NumPy


def to_npz(path: str | Path, whitener: Map, protocol: Mapping, scale: Scale | None = None) -> None:
    """Write `mean [d]` and `matrix [d, m]` in float64, with z = (x - mean) @ matrix, to an .npz at `path`.

    `scale` says what its cosines mean (`scoring.calibration.Calibration.arrays`): `numpy.interp` of a cosine with
    `cosine` and `percentile` is its percentile, and with `gold_cosine` and `gold` the gold score it stands for.
    Beside them, as text: `protocol` (JSON), `whitener` (JSON: name, rank, k, count) and `whitelab` (the
    version). No pickles: `numpy.load(path)` reads all of it. Raises ExportError where it cannot be written, for a map
    that keeps no direction, and for one that is no mean and matrix, as `to_faiss` and `to_sentence_transformers` do.
    """
    path = target(path, _is_npz)
    with _writing(path):
        write_aside(path, npz_bytes(whitener, protocol, scale))


def npz_bytes(whitener: Map, protocol: Mapping, scale: Scale | None = None) -> bytes:
    """What `to_npz` writes."""
    whitener = _affine(whitener)
    matrix = _kept(whitener)
    facts = {"name": whitener.name, "rank": whitener.rank, "k": whitener.k, "count": whitener.count}
    data = io.BytesIO()
    np.savez(
        data,
        mean=_numpy(whitener.mean),
        matrix=matrix,
        protocol=np.array(_json(protocol)),
        whitener=np.array(_json(facts)),
        whitelab=np.array(whitelab.__version__),
        **(scale or {}),
    )
    return data.getvalue()


def from_npz(path: str | Path) -> tuple[Whitener, dict]:
    """The map and the protocol that `to_npz` wrote. Raises ExportError for any other file."""
    wanted = f"path={str(path)!r} must be an .npz written by whitelab"
    try:
        with np.load(expanded(path), allow_pickle=False) as file:
            facts, protocol = json.loads(str(file["whitener"])), json.loads(str(file["protocol"]))
            tensors = {name: torch.from_numpy(file[name]) for name in ("mean", "matrix")}
    except NOT_AN_NPZ:
        raise ExportError(wanted) from None
    return _whole("affine", tensors, facts, protocol, wanted)


def scale_lines(path: str | Path, gold: bool, cosine: str = "0.7", among: str = RANDOM) -> str:
    """The lines that read what `cosine` means `among` others from an .npz at `path`; with `gold`, its score too."""
    more = 'gold = np.interp(cosine, scale["gold_cosine"], scale["gold"])\n' if gold else ""
    return (
        f"scale, cosine = np.load({str(path)!r}), {cosine}\n"
        f'percentile = np.interp(cosine, scale["cosine"], scale["percentile"])  # among {among}, 0 to 100\n{more}'
    )


def numpy_lines(path: str | Path) -> str:
    """The lines of Python that apply the .npz at `path` with NumPy alone, to be shown and copied."""
    return f'''import numpy as np

with np.load({str(path)!r}) as file:
    mean, matrix = file["mean"], file["matrix"]
    protocol = str(file["protocol"])  # how the map was made, as JSON


def whiten(x):
    """Embeddings [n, d], or a single one [d], to whitened ones [n, m] or [m]."""
    x = np.asarray(x, dtype=np.float64)
    if x.shape[-1:] != mean.shape:
        raise ValueError(f"x must have d={{len(mean)}} columns, as what the map was fitted on; got {{x.shape}}")
    return (x - mean) @ matrix
'''


def _is_npz(path: Path) -> bool:
    try:
        with np.load(path, allow_pickle=False) as file:
            return {"mean", "matrix", "protocol", "whitener", "whitelab"} <= set(getattr(file, "files", ()))
    except NOT_AN_NPZ:
        return False


# ------------------------------------------------------------------------------------------ safetensors


def to_safetensors(path: str | Path, fitted: Map, protocol: Mapping) -> None:
    """Write any map as a .safetensors that `from_safetensors` loads back, with its `protocol`.

    The only form for maps that are no mean and matrix; whitelab itself has to apply it. Raises ExportError where it
    cannot be written, and for a map that keeps no direction.
    """
    path = target(path, _is_safetensors)
    with _writing(path):
        write_aside(path, safetensors_bytes(fitted, protocol))


def safetensors_bytes(fitted: Map, protocol: Mapping) -> bytes:
    """What `to_safetensors` writes."""
    _check_kept(fitted)
    facts = {"name": fitted.name, "rank": fitted.rank, "k": fitted.k, "count": fitted.count}
    if isinstance(fitted, RowMap):
        kind, tensors, facts = fitted.kind, fitted.tensors, facts | {"facts": fitted.facts}
    else:
        kind, tensors = "affine", {"mean": fitted.mean, "matrix": fitted.dense}
    about = {"whitelab": whitelab.__version__, "kind": kind, "map": _json(facts), "protocol": _json(protocol)}
    return safetensors_of({name: one.detach().cpu().contiguous() for name, one in tensors.items()}, about)


def from_safetensors(path: str | Path) -> tuple[Map, dict]:
    """The map and the protocol that `to_safetensors` wrote. Raises ExportError for any other file."""
    wanted = f"path={str(path)!r} must be a .safetensors of a map, written by whitelab"
    try:
        with safe_open(expanded(path), "pt") as file:
            about, tensors = file.metadata(), {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
        kind, facts, protocol = about["kind"], json.loads(about["map"]), json.loads(about["protocol"])
    except NOT_A_SAFETENSORS:
        raise ExportError(wanted) from None
    return _whole(kind, tensors, facts, protocol, wanted)


def _is_safetensors(path: Path) -> bool:
    try:
        from_safetensors(path)
    except ExportError:
        return False
    return True


# ------------------------------------------------------------------------------------------------ faiss


def to_faiss(path: str | Path, whitener: Map, protocol: Mapping | None = None) -> None:
    """Write the map as a `faiss.LinearTransform` with bias, for `faiss.read_VectorTransform(path)`.

    A is matrix^T rounded to float32, in which faiss works, and b = -A mean is computed in float64 from the
    rounded A, so that the mean still goes to 0. Results differ from ours by the rounding of A x + b, which
    grows with the distance from the origin: some 1e-6 of a vector's length for sentence embeddings. faiss
    has no place for a `protocol`: it follows the bytes that faiss reads, as JSON on a line of its own, the
    last but one. Raises ExportError where the file cannot be written.
    """
    path = target(path, _is_faiss)
    with _writing(path):
        write_aside(path, faiss_bytes(whitener, protocol))


def faiss_bytes(whitener: Map, protocol: Mapping | None = None) -> bytes:
    """What `to_faiss` writes. Raises MissingLibraryError where faiss is not installed."""
    whitener = _affine(whitener)
    need("faiss")
    import faiss

    matrix = _float32(_kept(whitener).T)
    transform = faiss.LinearTransform(*matrix.shape[::-1], True)
    faiss.copy_array_to_vector(matrix.ravel(), transform.A)
    faiss.copy_array_to_vector(_float32(-matrix.astype(np.float64) @ _numpy(whitener.mean)), transform.b)
    transform.is_trained = True
    transform.set_is_orthonormal()
    writer = faiss.VectorIOWriter()
    faiss.write_VectorTransform(transform, writer)
    return b"\n".join([faiss.vector_to_array(writer.data).tobytes(), _json(protocol or {}).encode(), MARK])


def _is_faiss(path: Path) -> bool:
    try:
        with path.open("rb") as file:
            file.seek(-len(MARK), os.SEEK_END)
            return file.read() == MARK
    except OSError:
        return False


# -------------------------------------------------------------------------------- sentence-transformers


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
    folder is loaded back and compared before it gets its name.

    `scale`, as in `to_npz`, goes beside it as `cosine_scale.npz`, with its two lines in the card. `protocol` (of a
    score, say) goes into the model card; what follows from the other arguments is there
    in any case. Its `query_prompt` and `document_prompt` are what `encode_query` and `encode_document` put
    before a text; `encode` puts nothing. Raises ExportError where the model cannot be written, or gives other
    vectors when loaded back; ValueError for layers or a pooling that do not exist.
    """
    whitener = _affine(whitener)
    layers, pooling = check_layers(layers, encoder.n_layers), encoder.check_pooling(pooling)
    if whitener.mean.shape[0] != encoder.dim:
        raise ExportError(f"whitener must take the model's d={encoder.dim} dimensions, got {whitener.mean.shape[0]}")
    if pooling == WK or pooling.startswith(UNIT):
        raise ExportError(
            f"pooling={pooling!r} has no module in sentence-transformers: export the map alone (npz, faiss)"
        )
    if encoder.dtype != "float32":
        raise ExportError(f"dtype={encoder.dtype!r} must be 'float32': sentence-transformers computes in it")
    record = dict(protocol or {}) | _record(encoder, layers, pooling, whitener)
    heads = _dense_modules(whitener)
    with model_folder(folder, record) as aside:
        _save_modules(aside, encoder, layers, pooling, heads, _prompts(record))
        _compare(aside, encoder, layers, pooling, whitener)
        if scale:
            np.savez(aside / SCALE, **scale)
        (aside / "README.md").write_text(_card(record, encoder, scale), "utf-8")


@contextmanager
def model_folder(folder: str | Path, record: Mapping) -> Iterator[Path]:
    """A folder aside to fill, which gets its name with a note of `record` and of what lies in it; whole or absent.

    Raises ExportError where it cannot be written, or what lies there is not an earlier export.
    """
    folder = target(folder, _is_model_folder)
    with _writing(folder), folder_aside(folder) as aside:
        yield aside
        files = sorted(path.relative_to(aside).as_posix() for path in aside.rglob("*") if path.is_file())
        note = {"whitelab": whitelab.__version__, "protocol": dict(record), "files": [*files, NOTE]}
        (aside / NOTE).write_text(_json(note, indent=2), "utf-8")
        let_read(aside)


def zip_folder(folder: str | Path, path: str | Path) -> None:
    """Pack a folder under its own name into a .zip at `path`; weights, which do not shrink, are stored as they are."""
    folder = Path(folder)
    with ZipFile(path, "w") as packed:
        for file in sorted(one for one in folder.rglob("*") if one.is_file()):
            kind = ZIP_STORED if file.suffix == ".safetensors" else ZIP_DEFLATED
            packed.write(file, Path(folder.name) / file.relative_to(folder), kind)


def _prompts(record: Mapping) -> dict[str, str]:
    """What stands before each kind of text, by sentence-transformers' names; none where the record names no prompt."""
    return {kind: record[f"{kind}_prompt"] for kind in PROMPTED if f"{kind}_prompt" in record}


def encoding_lines(record: Mapping) -> str:
    """The lines that encode and compare texts with a `model` of sentence-transformers, whose record this is."""
    if not _prompts(record):
        return ENCODING
    query, document = _in_words(record)
    return SEARCHING.format(query=query, document=document)


def _in_words(prompts: Mapping) -> tuple[str, ...]:
    return tuple(repr(prompts[f"{kind}_prompt"]) if prompts[f"{kind}_prompt"] else "nothing" for kind in PROMPTED)


@quiet
def _save_modules(
    aside: Path, encoder: Encoder, layers: tuple[int, ...], pooling: str, heads: list, prompts: dict[str, str]
) -> None:
    """Transformer, the mean of the layers, pooling and the map, as sentence-transformers saves its own."""
    from sentence_transformers import SentenceTransformer
    from sentence_transformers.sentence_transformer.modules import Pooling, Transformer, WeightedLayerPooling

    last = encoder.n_layers - 1
    base = aside / "encoder"
    base.mkdir()
    encoder.save(base)
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
    shutil.rmtree(base)


def _dense_modules(whitener: Whitener) -> list:
    """z = (x - mean) matrix as modules: one that subtracts, one that multiplies, each only where it is needed."""
    from sentence_transformers.sentence_transformer.modules import Dense

    mean, matrix = _numpy(whitener.mean), _kept(whitener)
    rounded = _float32(mean)
    heads = [(np.eye(len(mean)), -rounded)] if mean.any() else []
    if whitener.matrix is not None:
        heads.append((matrix.T, (rounded - mean) @ matrix))  # the bias gives back what rounding the mean took
    return [
        Dense(
            *weight.shape[::-1],
            activation_function=torch.nn.Identity(),
            init_weight=torch.from_numpy(_float32(weight)),
            init_bias=torch.from_numpy(_float32(bias)),
        )
        for weight, bias in heads
    ]


@quiet
def _compare(aside: Path, encoder: Encoder, layers: tuple[int, ...], pooling: str, whitener: Whitener) -> None:
    """Raise ExportError unless the saved model, loaded by its own library, gives whitelab's vectors."""
    from sentence_transformers import SentenceTransformer

    values, _ = embed(encoder, PROBES, pooling)
    expected = values[list(layers)].to(torch.float64).mean(dim=0)
    whole = SentenceTransformer(str(aside), device="cpu", local_files_only=True)
    bare = SentenceTransformer(modules=[one for one in whole if type(one).__name__ != "Dense"], device="cpu")
    pooled, mapped = (torch.from_numpy(one.encode(list(PROBES), show_progress_bar=False)) for one in (bare, whole))
    check_near(pooled, expected, POOLED_TOLERANCE, encoder.name, "sentence-transformers")
    check_near(mapped, whitener(expected), MAPPED_TOLERANCE, encoder.name, "sentence-transformers")


def check_near(found: Tensor, expected: Tensor, tolerance: float, name: str, form: str) -> None:
    """Raise ExportError unless the rows `found` in an exported form of the model are the `expected`, up to rounding."""
    # Measured by the longest: with k = 1, one vector may lie next to 0 by chance.
    apart = float((found - expected).norm(dim=1).max() / expected.norm(dim=1).max())
    if apart <= tolerance:
        return
    mapped = " once whitened: keep fewer directions (k), the last hold little but rounding"
    raise ExportError(
        f"model={name!r} cannot be exported to {form}: loaded back, its vectors are off by {apart:.1e} of their "
        f"length{mapped if tolerance == MAPPED_TOLERANCE else ''}"
    )


def _record(encoder: Encoder, layers: tuple[int, ...], pooling: str, whitener: Whitener) -> dict:
    """The part of a protocol that decides a vector."""
    return {
        "model": encoder.name,
        "layers": list(layers),
        "combine": "mean",
        "pooling": pooling,
        "whitening": whitener.name,
        "k": whitener.k,
        "rank": whitener.rank,
        "sentences": round(whitener.count),
        "dim": whitener.dense.shape[1],
        "dtype": encoder.dtype,
        "max_length": encoder.max_length,
    }


def _card(record: dict, encoder: Encoder, scale: Scale | None) -> str:
    """The README.md of a model folder."""
    from sentence_transformers import __version__ as library

    layers = layers_in_words(record["layers"])
    meaning = ""
    if scale:
        lines = scale_lines(f"path/to/this/folder/{SCALE}", "gold" in scale, among=str(scale.get("among", RANDOM)))
        meaning = f"\n## What a cosine means\n\n```python\nimport numpy as np\n\n{lines}```\n"
    whitening = record["whitening"] + (f", k = {record['k']}" if record["k"] is not None else "")
    return CARD.format(
        title=f"{record['model']}, {layers}, {whitening}",
        version=whitelab.__version__,
        encoding=encoding_lines(record),
        combined=f"its {layers}" if len(record["layers"]) == 1 else f"the mean of its {layers}",
        pooled=f"the {POOLING_LABELS[record['pooling']]}",
        whitening=whitening,
        dim=record["dim"],
        library=library,
        max_length=record["max_length"],
        scale=meaning,
        protocol="\n".join(f"- {name}: {value}" for name, value in record.items() if value is not None),
        origin=origin_note(record["model"], encoder.files),
    )


def _is_model_folder(path: Path) -> bool:
    """Whether all that lies in the folder is of an earlier export."""
    if not path.is_dir():
        return False
    found = {one.relative_to(path).as_posix() for one in path.rglob("*") if not one.is_dir()}
    try:
        return not found or found <= set(json.loads((path / NOTE).read_text("utf-8"))["files"])
    except (OSError, ValueError, KeyError, TypeError):
        return False


# ---------------------------------------------------------------------------------------------- in common


def _whole(kind: str, tensors: dict[str, Tensor], facts, protocol, wanted: str) -> tuple[Map, dict]:
    """What a file holds, its tensors in float64. Raises ExportError, `wanted` and what is wrong, where it is no map."""
    try:
        if not isinstance(facts, dict) or not isinstance(protocol, dict):
            raise ValueError("what it says of its map and the protocol must be JSON objects")
        tensors = {name: _finite(one, name) for name, one in tensors.items()}
        return (_whitener if kind == "affine" else _row_map)(kind, tensors, facts), protocol
    except KeyError as error:
        raise ExportError(f"{wanted}: it has no {error}") from None
    except (ValueError, TypeError) as error:
        raise ExportError(f"{wanted}: {first_line(error)}") from None


def _finite(values: Tensor, name: str) -> Tensor:
    if values.is_complex():
        raise ValueError(f"{name} must hold real numbers, got {values.dtype}")
    if not torch.isfinite(values).all():
        raise ValueError(f"{name} must hold finite numbers")
    return values.to(torch.float64)


def _whitener(kind: str, tensors: dict[str, Tensor], facts: dict) -> Whitener:
    mean, matrix = tensors["mean"], tensors["matrix"]
    if mean.ndim != 1 or matrix.ndim != 2 or len(mean) != len(matrix):
        found = f"{list(mean.shape)} and {list(matrix.shape)}"
        raise ValueError(f"mean [d] and matrix [d, m] must fit together, got {found}")
    _check_facts(facts, *matrix.shape)
    return Whitener(facts["name"], mean, matrix, facts["rank"], facts["k"], facts["count"])


def _row_map(kind: str, tensors: dict[str, Tensor], facts: dict) -> RowMap:
    check_choice(kind, "kind", ROW_MAPS)
    try:
        fitted = ROW_MAPS[kind](facts["name"], facts["rank"], facts["count"], tensors, facts["facts"])
        fitted(torch.zeros(1, fitted.dim, dtype=torch.float64))
    except (ValueError, TypeError, RuntimeError, IndexError):
        raise ValueError("its tensors must fit together") from None
    _check_facts(facts, fitted.dim, fitted.columns)
    return fitted


def _check_facts(facts: dict, dim: int, columns: int) -> None:
    name, count = facts["name"], facts["count"]
    if not isinstance(name, str):
        raise ValueError(f"name={name!r} must be text")
    check_int(facts["rank"], "rank", 1, columns)
    if facts["k"] is not None:
        check_int(facts["k"], "k", 1, dim, "d")
    if type(count) not in (int, float) or not 0 <= count < float("inf"):
        raise ValueError(f"count={count!r} must be a number of rows")


def _affine(fitted: Map) -> Whitener:
    try:
        return affine(fitted, "this form holds a mean and a matrix: export it as safetensors")
    except ValueError as error:
        raise ExportError(str(error)) from None


def _check_kept(fitted: Map) -> None:
    """Raise ExportError for a map that keeps no direction."""
    if fitted.rank == 0:
        raise ExportError(
            f"whitening={fitted.name!r} has no direction to keep: the {fitted.count:g} row(s) it was fitted on do "
            f"not vary"
        )


def _kept(whitener: Whitener) -> Float[np.ndarray, "d m"]:
    """The matrix of a map that keeps something."""
    _check_kept(whitener)
    return _numpy(whitener.dense)


def _numpy(values: Tensor) -> np.ndarray:
    return values.detach().cpu().to(torch.float64).numpy()


def _float32(values: np.ndarray) -> np.ndarray:
    with np.errstate(over="ignore"):
        values = np.ascontiguousarray(values, dtype=np.float32)
    if not np.isfinite(values).all():
        raise ExportError("the map has entries above 3e38, which float32 cannot hold: scale the embeddings first")
    return values


def _json(record: Mapping, indent: int | None = None) -> str:
    return json.dumps(dict(record), ensure_ascii=False, indent=indent)


def check_place(path: str | Path) -> Path:
    """The absolute path, where it has a name and lies in a folder that exists; raises ExportError otherwise."""
    if not str(path):
        raise ExportError("out='' must name a file or folder")
    try:
        path = expanded(path).resolve()
    except ValueError as error:
        raise ExportError(f"out={str(path)!r} must lie in a folder that exists: {error}") from None
    if not path.parent.is_dir():
        raise ExportError(f"out={str(path)!r} must lie in a folder that exists; there is no {path.parent}")
    return path


def target(path: str | Path, ours: Callable[[Path], bool]) -> Path:
    """`check_place`, where there is nothing, or something that is `ours` to replace."""
    path = check_place(path)
    if path.exists() and not ours(path):
        raise ExportError(
            f"out={str(path)!r} exists and is not an earlier export of this kind: choose another name or remove it"
        )
    return path


@contextmanager
def _writing(path: Path) -> Iterator[None]:
    try:
        yield
    except (OSError, SafetensorError) as error:
        reason = getattr(error, "strerror", None) or first_line(error)
        raise ExportError(f"out={str(path)!r} could not be written: {reason}") from None
