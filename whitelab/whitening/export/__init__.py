"""A fitted map, alone or with its encoder -> files that other tools load without whitelab.

`formats` lists the forms, `places` says where they may be written and `earlier` what they replace. A bare map is one
file: `npz_file`, `safetensors_file`, `faiss_file`; `contents` is what these hold, and checks what is read back. With
its encoder it is a `model_folder`: `sentence_transformers_folder`, or `onnx_folder`.
"""

from whitelab.whitening.export.earlier import check_out
from whitelab.whitening.export.faiss_file import faiss_bytes, to_faiss
from whitelab.whitening.export.formats import ALONE, FORMATS, PROMPTED, SEARCHED, Format, Scale, check_holds
from whitelab.whitening.export.model_folder import zip_folder
from whitelab.whitening.export.npz_file import from_npz, npz_bytes, numpy_lines, scale_lines, to_npz
from whitelab.whitening.export.onnx_folder import onnx_lines, to_onnx
from whitelab.whitening.export.places import ExportError, target
from whitelab.whitening.export.safetensors_file import from_safetensors, safetensors_bytes, to_safetensors
from whitelab.whitening.export.sentence_transformers_folder import encoding_lines, to_sentence_transformers

__all__ = [
    "ALONE",
    "FORMATS",
    "PROMPTED",
    "SEARCHED",
    "ExportError",
    "Format",
    "Scale",
    "check_holds",
    "check_out",
    "encoding_lines",
    "faiss_bytes",
    "from_npz",
    "from_safetensors",
    "npz_bytes",
    "numpy_lines",
    "onnx_lines",
    "safetensors_bytes",
    "scale_lines",
    "target",
    "to_faiss",
    "to_npz",
    "to_onnx",
    "to_safetensors",
    "to_sentence_transformers",
    "zip_folder",
]
