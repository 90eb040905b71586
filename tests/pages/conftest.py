"""What every page test has: a store of its own, and AppTest closer to a browser."""

import shutil
from functools import wraps

import pytest
import streamlit as st
import tiny
from streamlit.runtime.pages_manager import PagesManager
from streamlit.testing.v1.element_tree import Selectbox

import whitelab
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


@pytest.fixture
def new_store(own_store, tmp_path, monkeypatch):
    """A store in which nothing is yet, whatever other tests of the file have embedded."""
    monkeypatch.setenv("WHITELAB_CACHE", str(tmp_path / "store"))
    forget_everything()
    yield
    forget_everything()


@pytest.fixture(scope="module")
def demo(own_store, encoded):
    """The demonstration set's embeddings, made by the package, not by the app, and laid into the file's store."""
    shutil.copytree(encoded, own_store, dirs_exist_ok=True)
    store, pairs = whitelab.Store(), whitelab.load("demo")
    space, report = whitelab.embed_pairs(whitelab.load_encoder("bundled"), pairs, store=store)
    assert report.encoded == 0
    return space


@pytest.fixture(scope="session")
def place(tmp_path_factory):
    """A tiny model and its pairs, in which every page is quick."""
    return tiny.build_place(tmp_path_factory.mktemp("place"))


@pytest.fixture(scope="session")
def small(place):
    """The query of a visit to the tiny model and its pairs."""
    return {"model": str(place / "model"), "data": str(place / "pairs.csv")}


@pytest.fixture(scope="session")
def space(small):
    """The embeddings of the tiny model's pairs."""
    return whitelab.embed_pairs(whitelab.load_encoder(small["model"]), whitelab.load(small["data"]))[0]


@pytest.fixture(scope="module", autouse=True)
def one_navigation():
    """AppTest forgets in every run what a server decides once: that pages are run by app.py alone."""
    real = PagesManager.__init__

    def decided(self, *args, **options):
        PagesManager.uses_pages_directory = False
        real(self, *args, **options)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(PagesManager, "__init__", decided)
        yield


@pytest.fixture(scope="module", autouse=True)
def typed_options():
    """AppTest knows only the listed options of a selectbox; here a typed one, as browsers send it, counts too."""

    def index(self):
        if self.value is None:
            return None
        shown = self.format_func(self.value)
        if shown not in self.options:
            self.options.append(shown)
        return self.options.index(shown)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Selectbox, "index", property(index))
        yield


@pytest.fixture
def saved(monkeypatch):
    """What the download buttons of the page save when they are pressed, by their keys."""
    made, real = {}, st.download_button

    @wraps(real)
    def button(label, data, **options):
        made[options["key"]] = data
        return real(label, data, **options)

    monkeypatch.setattr(st, "download_button", button)
    return made


@pytest.fixture
def forward_calls(monkeypatch):
    """The batches the model runs while the test lasts."""
    calls, real = [], Encoder.forward

    def counted(self, ids, pooling):
        calls.append(len(ids))
        return real(self, ids, pooling)

    monkeypatch.setattr(Encoder, "forward", counted)
    return calls
