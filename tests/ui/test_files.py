"""How caches tell one state of files from another."""

import os

import pytest

from whitelab.ui.results.files import file_stamp


@pytest.fixture
def folder(tmp_path):
    """Two files, one of them older."""
    for name, seconds in (("old.csv", 1000), ("young.csv", 2000)):
        (tmp_path / name).write_text("text")
        os.utime(tmp_path / name, (seconds, seconds))
    return tmp_path


def stamp(folder) -> str:
    return file_stamp(folder.iterdir())


def test_an_older_file_that_goes_comes_or_is_changed_changes_the_stamp(folder):
    old, young = folder / "old.csv", folder / "young.csv"
    stamps = [stamp(folder)]
    os.utime(old, (500, 500))
    stamps.append(stamp(folder))
    old.write_text("other text")
    os.utime(old, (500, 500))
    stamps.append(stamp(folder))
    old.rename(folder / "renamed.csv")
    stamps.append(stamp(folder))
    (folder / "renamed.csv").unlink()
    stamps.append(stamp(folder))
    assert len(set(stamps)) == len(stamps)
    assert stamp(folder) == file_stamp([young]) == file_stamp([str(young), old])  # and one that is gone is no file


def test_the_order_in_which_files_are_listed_is_no_change(folder):
    files = sorted(folder.iterdir())
    assert file_stamp(files) == file_stamp(reversed(files))
