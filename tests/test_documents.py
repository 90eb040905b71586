"""What documents say of files and of each other is so."""

import json
import re
import tomllib
from pathlib import Path

import pytest
from processes import ROOT

from whitelab.datasets import load_retrieval

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


SEARCH = re.findall(
    r"^```\w*\n(.*?)^```", (ROOT / "docs" / "bring-your-own.md").read_text("utf-8"), re.MULTILINE | re.DOTALL
)


def test_the_files_of_a_search_set_that_are_shown_are_one(tmp_path):
    (tmp_path / "qrels").mkdir()
    for name, lines in re.findall(r"^(\S+\.(?:jsonl|tsv))\n((?:.+\d.*\n|query-id.*\n)+)", SEARCH[0], re.MULTILINE):
        (tmp_path / name).write_text(lines, "utf-8")
    found = load_retrieval(tmp_path)
    assert (found.document_ids, found.query_ids) == (("00417", "00418", "00733"), ("q1", "q2"))
    assert [found.documents[row] for row in found.document] == ["Camping down sleeping bag, red", "garden hose, 20 m"]


def test_the_lines_that_make_a_search_set_of_a_table_of_clicks_do(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    table = ["price\tquery_id\tquery\titem_id\ttitle\tgrade", "1 €\t01\tWärme\t0007\tDecke, \u201erot\u201c\t1"]
    table += ["2\t01\tWärme\t0008\tOfen\t0", "1\t01\tWärme\t0007\tDecke\t0", "\t02\tkalt\t0009\tEis\t"]
    Path("clicks.tsv").write_text("\n".join(table), "utf-8")
    exec(SEARCH[1], {})
    found = load_retrieval("shop")
    assert (found.document_ids, found.query_ids, found.queries) == (("0007", "0008"), ("01",), ("Wärme",))
    assert found.documents == ("Decke, \u201erot\u201c", "Ofen")
    assert found.grade.tolist() == [1, 0]
