"""One app and one store for the browser tests of all workers."""

import json
import os
import shutil
import signal

import pytest
from driving import ARTEFACTS, PATIENCE, serve
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
def tab(app, window):
    """A page of a test's own beside the one that all tests share, whose browser has read what the app loads."""
    page = window.context.new_page()
    yield page
    page.goto(f"{app}/_stcore/health")
    page.evaluate("() => localStorage.clear()")
    page.close()
    window.context.clear_cookies()


@pytest.fixture
def stranger(chromium):
    """A page of another browser, which has read nothing of the app yet: called with what that browser is like."""
    contexts = []

    def page(**options):
        contexts.append(chromium.new_context(**options))
        contexts[-1].set_default_timeout(PATIENCE * 1000)
        return contexts[-1].new_page()

    yield page
    for context in contexts:
        context.close()


@pytest.fixture
def phone(stranger):
    """A page on a screen as narrow as a phone's, touched with fingers."""
    return stranger(viewport={"width": 390, "height": 844}, has_touch=True, is_mobile=True)


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
def app(cache, between_workers):
    """The address of an app that finds the demonstration set encoded: one for all workers, stopped by the last."""
    note, log = between_workers / "app.json", between_workers / "app.log"
    with FileLock(note.with_suffix(".lock")):
        if note.exists():
            shared = json.loads(note.read_text())
        else:
            server = serve(cache, log)
            shared = {"url": server.url, "process": server.process.pid, "workers": 0}
        shared["workers"] += 1
        note.write_text(json.dumps(shared))
    yield shared["url"]
    with FileLock(note.with_suffix(".lock")):
        shared = json.loads(note.read_text())
        shared["workers"] -= 1
        note.write_text(json.dumps(shared))
        if shared["workers"] == 0:
            note.unlink()
            os.kill(shared["process"], signal.SIGTERM)
            assert UNCAUGHT not in log.read_text(), log.read_text()


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
