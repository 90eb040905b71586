"""Files, command and missing libraries, as a clone has them; `test_package.py` has the same of an installation."""

import argparse
import shlex
import sys

import pytest
from processes import ROOT

from whitelab.base import installation
from whitelab.base.installation import EXTRAS, MissingLibraryError, install_line, need, option, program, shipped


def test_in_a_clone_the_top_level_is_the_repositorys():
    assert shipped("data/demo") == ROOT / "data" / "demo"
    assert shipped("app.py") == ROOT / "app.py"


def test_in_an_installation_the_top_level_lies_inside_the_package(tmp_path, monkeypatch):
    monkeypatch.setattr(installation, "_INSIDE", tmp_path)
    assert shipped("data/demo") == tmp_path / "data" / "demo"


@pytest.mark.parametrize(
    ("value", "typed"), [("map.npz", "--out map.npz"), ("-map.npz", "--out=-map.npz"), ("- a", "--out='- a'")]
)
def test_the_value_of_an_option_is_none_itself(value, typed):
    assert option("--out", value) == typed
    parser = argparse.ArgumentParser()
    parser.add_argument("--out")
    assert parser.parse_args(shlex.split(typed)).out == value


@pytest.mark.parametrize(
    ("started", "in_a_clone", "installed"),
    [
        ("/usr/bin/whitelab", "whitelab", "whitelab"),
        ("whitelab.exe", "whitelab", "whitelab"),
        ("/home/me/whitelab/__main__.py", "python -m whitelab", "python -m whitelab"),
        ("/home/me/app.py", "python -m whitelab", "whitelab"),
        ("-c", "python -m whitelab", "whitelab"),
        ("", "python -m whitelab", "whitelab"),
    ],
)
def test_the_program_has_the_name_it_was_started_by_or_that_of_the_installation(
    started, in_a_clone, installed, tmp_path, monkeypatch
):
    monkeypatch.setattr(sys, "argv", [started, "score"])
    assert program() == in_a_clone
    monkeypatch.setattr(installation, "_INSIDE", tmp_path)
    assert program() == installed


@pytest.mark.parametrize("extra", EXTRAS)
def test_a_missing_library_is_named_with_what_installs_it(extra, tmp_path, monkeypatch):
    need(extra)
    monkeypatch.setitem(sys.modules, EXTRAS[extra][0], None)
    with pytest.raises(
        MissingLibraryError, match=r"^[a-z-]+ is not installed: run `pip install -r requirements(-dev)?\.txt` in"
    ):
        need(extra)
    monkeypatch.setattr(installation, "_INSIDE", tmp_path)
    with pytest.raises(MissingLibraryError, match=rf"run `pip install 'whitelab\[{extra}\]'` in this environment$"):
        need(extra)
    assert install_line() == "pip install whitelab"
