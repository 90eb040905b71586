"""A tiny model and a small text, for a file of tests."""

import pytest
from corpora import small_text
from tiny import build_model


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    return str(build_model(tmp_path_factory.mktemp("model")))


@pytest.fixture(scope="module")
def text(tmp_path_factory):
    return small_text(tmp_path_factory.mktemp("text") / "corpus.txt")
