"""What an export may replace: an earlier one of its form."""

from pathlib import Path

from whitelab.whitening.export.faiss_file import is_faiss
from whitelab.whitening.export.model_folder import is_model_folder
from whitelab.whitening.export.npz_file import is_npz
from whitelab.whitening.export.places import target
from whitelab.whitening.export.safetensors_file import is_safetensors

_OURS = {
    "npz": is_npz,
    "faiss": is_faiss,
    "sentence-transformers": is_model_folder,
    "onnx": is_model_folder,
    "safetensors": is_safetensors,
}


def check_out(form: str, path: str | Path) -> Path:
    """The absolute path to which a form of `FORMATS` can be written, asked before minutes of work. Raises ExportError
    where something else is there, or no folder to hold it."""
    return target(path, _OURS[form])
