"""What documents say of files and of each other is so."""

import json
import re
import tomllib
from pathlib import Path

import pytest
from processes import ROOT

HOSTING = ROOT / "docs" / "hosting"


def test_a_server_in_a_container_and_one_of_systemd_lie_where_nginx_looks_for_them():
    (path,) = re.findall(r"location (/\w+) \{", (HOSTING / "nginx.conf").read_text("utf-8"))
    container = (HOSTING / "Dockerfile").read_text("utf-8")
    words = json.loads(container.partition("\nCMD ")[2])
    assert words[words.index("--base-path") + 1] == path
    assert f":8501{path}/_stcore/health" in container
    assert f"--base-path {path}\n" in (HOSTING / "whitelab@.service").read_text("utf-8")
    assert f"`GET {path}/_stcore/health`" in (ROOT / "docs" / "hosting.md").read_text("utf-8")


def test_a_container_is_handed_all_that_the_package_is_made_of():
    made_of = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["tool"]["hatch"]["build"]["targets"]["wheel"]
    copied = re.findall(r"^COPY (.+) \S+$", (HOSTING / "Dockerfile").read_text("utf-8"), re.MULTILINE)
    roots = tuple(Path(name) for one in copied for name in one.split())
    needed = [Path(name) for name in (*made_of["packages"], *made_of["force-include"], "pyproject.toml")]
    assert [one for one in needed if not any(one.is_relative_to(root) for root in roots)] == []


def test_the_service_has_a_home_that_its_protection_leaves_open():
    unit = (HOSTING / "whitelab@.service").read_text("utf-8")
    (state,) = re.findall(r"^StateDirectory=(.+)$", unit, re.MULTILINE)
    assert re.findall(r"\bHOME=(\S+)", unit) == [f"/var/lib/{state}"]


@pytest.mark.parametrize("name", ["README.md", "docs/hosting/Dockerfile"])
def test_the_torch_that_is_installed_beforehand_is_the_pinned_one(name):
    (pinned,) = re.findall(r"^torch==(.+)$", (ROOT / "requirements.txt").read_text("utf-8"), re.MULTILINE)
    assert re.findall(r"torch==(\S+)", (ROOT / name).read_text("utf-8")) == [pinned]


PAPERS = (
    "README.md",
    "docs/*.md",
    "docs/hosting/*",
    "data/*/README.md",
    "benchmarks/README.md",
    ".streamlit/config.toml",
)


@pytest.mark.parametrize("paper", [path.relative_to(ROOT).as_posix() for one in PAPERS for path in ROOT.glob(one)])
def test_every_file_of_the_code_that_a_document_names_is_there(paper):
    named = re.findall(r"\b(?:whitelab|tests|pages|benchmarks)/[\w/]+\.py\b", (ROOT / paper).read_text("utf-8"))
    assert [name for name in named if not (ROOT / name).is_file()] == []
