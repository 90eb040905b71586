"""The forms in which a map leaves, and what goes with it: what its cosines mean, and the words before its texts."""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from whitelab.encoding.names import ONE_LAYER, ModelName
from whitelab.encoding.pooling import POOLINGS
from whitelab.whitening.export.places import ExportError

Scale = Mapping[str, np.ndarray]
RANDOM = "random pairs"  # what the percentiles of a scale are among, unless it says so itself
SEARCHED = {"among": np.array("all queries with all documents")}  # as that of a search does
PROMPTED = ("query", "document")  # before whose texts words can stand, as sentence-transformers calls them


@dataclass(frozen=True)
class Format:
    """A form in which a map leaves: `whole` holds the encoder too, and with a `scaled` one goes what a cosine means.

    `any_map` holds maps that are no mean and matrix as well. `prompted` puts the words of a search before its texts.
    `use` is how `{path}` is used in Python, of vectors `x` or of `texts`.
    """

    label: str
    use: str
    whole: bool = False
    scaled: bool = False
    any_map: bool = False
    prompted: bool = False

    def used(self, path: str) -> str:
        """How what was written to `path` is used."""
        return self.use.format(path=path)

    def prompts_note(self, prompts: Mapping[str, str]) -> str:
        """What to do about the words that stood before the texts of a map."""
        who = "encode_query and encode_document put them there" if self.prompted else "put them there yourself"
        query, document = prompts_in_words(prompts)
        return f"the map is of queries after {query} and documents after {document}: {who}"


FORMATS = {
    "npz": Format("NumPy", "file = numpy.load({path!r}); (x - file['mean']) @ file['matrix']", scaled=True),
    "faiss": Format("FAISS", "faiss.read_VectorTransform({path!r}).apply(x), of float32"),
    "sentence-transformers": Format(
        "sentence-transformers",
        "sentence_transformers.SentenceTransformer({path!r}).encode(texts)",
        whole=True,
        scaled=True,
        prompted=True,
    ),
    "onnx": Format("ONNX", "as the README.md in {path} says", whole=True, scaled=True),
    "safetensors": Format(
        "safetensors", "fitted, _ = whitelab.whitening.export.from_safetensors({path!r}); fitted(x)", any_map=True
    ),
}

ALONE = ", ".join(name for name, one in FORMATS.items() if not one.whole)


def check_holds(form: str, pooling: str, model: str = "") -> str:
    """Return a pooling that a form of `FORMATS` holds, as all do that are without the encoder; raises ExportError
    for another, and for a `model` of a name that it cannot hold."""
    alone = f"the map alone can be exported ({ALONE})"
    if FORMATS[form].whole and model and (kind := ModelName.parse(model).kind) in ONE_LAYER:
        label = FORMATS[form].label
        raise ExportError(f"model={model!r} must be a transformer in {label}, and it is {ONE_LAYER[kind]}; {alone}")
    if FORMATS[form].whole and pooling not in POOLINGS:
        poolings = ", ".join(POOLINGS)
        raise ExportError(f"pooling={pooling!r} must be one of {poolings} in {FORMATS[form].label}; {alone}")
    return pooling


def prompts_of(record: Mapping) -> dict[str, str]:
    """What stands before each kind of text, by sentence-transformers' names; none where the record names no prompt."""
    return {kind: record[f"{kind}_prompt"] for kind in PROMPTED if f"{kind}_prompt" in record}


def prompts_in_words(prompts: Mapping) -> tuple[str, ...]:
    """What stands before a query and before a document, as code or `nothing`."""
    return tuple(repr(prompts[f"{kind}_prompt"]) if prompts[f"{kind}_prompt"] else "nothing" for kind in PROMPTED)
