"""How this whitelab came here, as a clone or as a package: where its files lie, its command, what may be missing."""

import shlex
import sys
from importlib.util import find_spec
from pathlib import Path

import whitelab

RELEASE = f"whitelab {whitelab.__version__}"  # as whatever leaves the machine says what made it
_PACKAGE = Path(__file__).resolve().parents[1]
_INSIDE = _PACKAGE / "shipped"  # only in an installation: pyproject.toml maps the top level of the repository there

# Extras of pyproject.toml: the module each one brings, and the name it has on PyPI.
EXTRAS = {
    "faiss": ("faiss", "faiss-cpu"),
    "umap": ("umap", "umap-learn"),
    "onnx": ("onnxscript", "onnxscript"),
    "ray": ("ray", "ray"),
}
TESTED = ("onnx", "ray")  # extras that the pinned set-up leaves to the one of the tests


class MissingLibraryError(ImportError):
    """A library that only some work needs is not installed. The message says in one line what to type."""


def shipped(name: str) -> Path:
    """Where a file or folder of the repository's top level lies, `data/demo` say, in a clone and in an installation."""
    return (_INSIDE if _INSIDE.is_dir() else _PACKAGE.parent) / name


def program() -> str:
    """What to type before a command's name: `whitelab` or `python -m whitelab`, as this process was started.

    One that no command started, such as the app's, has `whitelab` in an installation, which brings that command;
    where a tool keeps whitelab apart, `python` is another one.
    """
    started = Path(sys.argv[0])
    other = started.name != "__main__.py" and _INSIDE.is_dir()
    return "whitelab" if started.stem == "whitelab" or other else "python -m whitelab"


def option(flag: str, value: object) -> str:
    """An option as it is typed after a command: `--out map.npz`, but `--out=-map.npz`, which apart from its flag would
    be read as an option of its own."""
    quoted = shlex.quote(str(value))
    return f"{flag}={quoted}" if str(value).startswith("-") else f"{flag} {quoted}"


def need(extra: str) -> None:
    """Nothing where the library of an extra is installed. Raises MissingLibraryError otherwise."""
    module, name = EXTRAS[extra]
    if find_spec(module) is None:
        raise MissingLibraryError(not_installed(name, extra))


def not_installed(name: str, extra: str = "") -> str:
    """What to say where the library of that name, which an extra brings or every set-up has, is missing."""
    return f"{name} is not installed: run `{install_line(extra)}` in this environment"


def install_line(extra: str = "") -> str:
    """The command that installs what whitelab needs, and an extra: in a clone a pinned set-up."""
    if not _INSIDE.is_dir():
        return f"pip install -r requirements{'-dev' if extra in TESTED else ''}.txt"
    return f"pip install 'whitelab[{extra}]'" if extra else "pip install whitelab"
