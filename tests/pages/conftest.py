"""What every page test has: a store of its own, and a selectbox that takes what a browser may type."""

import shutil

import pytest
from streamlit.testing.v1.element_tree import Selectbox

import whitelab
from whitelab.encoding.embeddings import embed_pairs
from whitelab.encoding.encoders import Encoder

from .visiting import forget_everything


@pytest.fixture(scope="module", autouse=True)
def own_store(tmp_path_factory):
    """A store and runs of this file's own: nobody's cache is touched."""
    store = tmp_path_factory.mktemp("store")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("WHITELAB_CACHE", str(store))
        patch.setenv("WHITELAB_RUNS", str(tmp_path_factory.mktemp("runs")))
        forget_everything()
        yield store
        forget_everything()


@pytest.fixture(scope="session")
def encoded(tmp_path_factory):
    """A store that holds the demonstration set, encoded once for all files of a process."""
    folder = tmp_path_factory.mktemp("encoded")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("WHITELAB_CACHE", str(folder))
        embed_pairs(whitelab.load_encoder("bundled"), whitelab.load("demo"), store=whitelab.Store())
    return folder


@pytest.fixture(scope="module")
def demo(own_store, encoded):
    """The demonstration set's embeddings, made by the package, not by the app, and laid into the file's store."""
    shutil.copytree(encoded, own_store, dirs_exist_ok=True)
    space, report = embed_pairs(whitelab.load_encoder("bundled"), whitelab.load("demo"), store=whitelab.Store())
    assert report.encoded == 0
    return space


@pytest.fixture(autouse=True)
def typed_options(monkeypatch):
    """AppTest knows only the listed options of a selectbox; here a typed one, as browsers send it, counts too."""

    def index(self):
        if self.value is None:
            return None
        shown = self.format_func(self.value)
        if shown not in self.options:
            self.options.append(shown)
        return self.options.index(shown)

    monkeypatch.setattr(Selectbox, "index", property(index))


@pytest.fixture
def forward_calls(monkeypatch):
    """The batches the model runs while the test lasts."""
    calls, real = [], Encoder.forward

    def counted(self, ids):
        calls.append(len(ids))
        return real(self, ids)

    monkeypatch.setattr(Encoder, "forward", counted)
    return calls
