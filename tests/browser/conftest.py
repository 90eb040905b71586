"""One app for the browser tests of a worker, and one store for all workers."""

import shutil

import pytest
from driving import ARTEFACTS, serve
from filelock import FileLock

import whitelab
from whitelab.encoding.embeddings import embed_pairs
from whitelab.scoring.setting import Setting

UNCAUGHT = "Uncaught app execution"  # what Streamlit writes of an exception that a page let through


@pytest.fixture(scope="session")
def cache(between_workers, encoded):
    """The store of embeddings, shared by every app these tests start and by the tests themselves."""
    ARTEFACTS.mkdir(exist_ok=True)
    store = between_workers / "browser-store"
    with FileLock(store.with_suffix(".lock")):
        if not store.exists():
            shutil.copytree(encoded, store)
    return store


@pytest.fixture
def launch(cache, tmp_path):
    """Start further apps, on the shared store unless another is given."""
    servers = []

    def start(store=cache):
        servers.append(serve(store, tmp_path / f"server-{len(servers)}.log"))
        return servers[-1].url

    yield start
    for server in servers:
        server.stop()
    logs = [server.log.read_text() for server in servers]
    assert [text for text in logs if UNCAUGHT in text] == []


@pytest.fixture(scope="session")
def app(cache, tmp_path_factory):
    """The address of an app that finds the demonstration set encoded."""
    server = serve(cache, tmp_path_factory.mktemp("log") / "server.log")
    try:
        yield server.url
    finally:
        server.stop()
    assert UNCAUGHT not in server.log.read_text(), server.log.read_text()


@pytest.fixture(scope="session")
def demo(app, cache):
    """The embeddings the app shows, read from its store: nothing may be left to encode."""
    encoder = whitelab.load_encoder("bundled")
    space, report = embed_pairs(encoder, whitelab.load("demo"), store=whitelab.Store(cache))
    assert report.encoded == 0
    return space


@pytest.fixture(scope="session")
def scored(demo):
    """The score the package gives the app's first setting with these changes, as the app writes it."""

    def text(**changes) -> str:
        return f"{whitelab.score(demo, Setting.parse('L1:pca').with_(**changes)).spearman:.2f}"

    return text
