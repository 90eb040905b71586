"""Small made-up embeddings with everything that is awkward in real ones, and tiny models on request."""

import contextlib
import gc
import os
import shutil
import sys
from functools import cache

# What is imported and collected stays to the end: looking through it for garbage again and again finds none.
gc.disable()

# ruff: noqa: E402
import checked_shapes  # noqa: F401  (before whitelab)
import needs
import numpy as np
import pytest
import torch
from filelock import FileLock
from needs import pytest_make_collect_report, pytest_runtest_makereport, pytest_runtest_setup  # noqa: F401

from whitelab.base.threads import _shares
from whitelab.encoding.embeddings import LayerEmbeddings
from whitelab.whitening import WHITENERS

# Those whose oracle is a matrix in `reference`; the others are in `row_maps`.
OF_MOMENTS = {name: one for name, one in WHITENERS.items() if not one.of_rows}

# Variants whose default parameters need more than one dimension, with parameters that do not.
AT_ONE_DIMENSION = {
    "group": "group:groups=1",
    "shuffled_group": "shuffled_group:groups=1",
    "all_but_the_top": "all_but_the_top:directions=0",
}

# Variants whose default parameters need more than a handful of dimensions.
SMALL = {"group": "group:groups=2", "shuffled_group": "shuffled_group:groups=2"}

# A test names its device: what is not marked `cuda` computes on the CPU, bit for bit, whatever this machine has.
torch.cuda.is_available = lambda: False

# Processes that tests start share the processors with those of the other worker. Two threads that meet inside an
# operation would wait for each other there, up to eight times as long as one takes.
os.environ["OMP_NUM_THREADS"] = "1"
# Matrices here are tiny: a second thread costs more than it saves.
torch.set_num_threads(1)
_shares.whole = 1


# What takes longest, to be begun first, so that the workers end together: files that wait for a browser, and between
# them files that compute, so that the processors have something to do meanwhile.
LONGEST = (
    "tests/browser/test_showing.py",
    "tests/test_bundled_model.py",
    "tests/browser/test_live_score.py",
    "tests/browser/test_lessons.py",
    "tests/pages/test_recipes.py",
    "tests/browser/test_carrying.py",
    "tests/statistics/test_projection.py",
    "tests/browser/test_moving.py",
    "tests/pages/test_every_page.py",
    "tests/browser/",
    "tests/corpus/",
    "tests/pages/",
    "tests/test_package.py",
    "tests/whitening/test_export.py",
    "tests/whitening/test_onnx_folder.py",
    "tests/cli/",
)


def pytest_collection_modifyitems(items):
    """Files that take long first, otherwise as they come."""
    items.sort(
        key=lambda item: next((i for i, name in enumerate(LONGEST) if item.nodeid.startswith(name)), len(LONGEST))
    )


def pytest_collection_finish():
    """From here on garbage is looked for among what tests make; a controller of workers makes none and never comes."""
    if "streamlit.testing.v1" in sys.modules:
        _make_app_tests_cheap()
    gc.collect()
    gc.freeze()
    gc.enable()


def _make_app_tests_cheap():
    """A visit without a browser looks for components in what is installed once a process, as a server does.

    And waits for the end of a run where it asks a thousand times a second, which keeps the run from its work.
    """
    from streamlit.components.v2 import manifest_scanner
    from streamlit.testing.v1 import local_script_runner

    polled = local_script_runner.require_widgets_deltas

    def awaited(runner, timeout):
        runner._script_thread.join(timeout)
        polled(runner, 0.1)  # ends a run that has not come to its end, and says so

    manifest_scanner.scan_component_manifests = cache(manifest_scanner.scan_component_manifests)
    local_script_runner.require_widgets_deltas = awaited


@pytest.fixture(autouse=True)
def gpu_where_marked(request, monkeypatch):
    """A GPU is there for whoever asks for it by the mark `cuda`, and for nobody else, nor processes that they start."""
    if request.node.get_closest_marker("cuda"):
        monkeypatch.setattr(torch.cuda, "is_available", lambda: needs.CUDA)
    else:
        monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "")


@pytest.fixture
def memory_of_gpu():
    """`memory_of_gpu(mebibytes)`: so much of the GPU's memory, and no more, while the context lasts."""
    whole = torch.cuda.mem_get_info()[1] / 2**20

    @contextlib.contextmanager
    def limited(mebibytes: float):
        torch.cuda.empty_cache()
        torch.cuda.set_per_process_memory_fraction(min(1.0, mebibytes / whole))
        try:
            yield
        finally:
            torch.cuda.set_per_process_memory_fraction(1.0)
            torch.cuda.empty_cache()

    return limited


@pytest.fixture(autouse=True)
def one_thread():
    """Whatever an earlier test has set: the last bit of a sum depends on how many threads share it."""
    torch.set_num_threads(1)


@pytest.fixture
def few_candidates(monkeypatch):
    """Advice has some of the candidates, and of those that shorten vectors, the baseline among them."""
    from whitelab.advice import advising
    from whitelab.advice.candidates import candidates, to_store

    monkeypatch.setattr(advising, "candidates", lambda *given: candidates(*given)[::9])
    monkeypatch.setattr(advising, "to_store", lambda *given: to_store(*given)[::6])


def make_space(n=60, d=12, layers=4, sizes=(40, 25, 15), seed=0, hyperplane=False) -> LayerEmbeddings:
    """Float32 embeddings of `n` sentences off the origin, with unequal directions and related layers.

    Sentences repeat, some pairs are one sentence twice (gold 5), gold has steps of 0.5 and so has ties.
    With `hyperplane` every layer is like the output of a LayerNorm: sum_i (h_i - bias_i) / gain_i = 0.
    """
    rng = np.random.default_rng(seed)
    x = rng.standard_normal((n, d))
    values = []
    for _ in range(layers):
        x = 0.7 * x + 0.5 * np.tanh(x @ rng.standard_normal((d, d)) / np.sqrt(d))
        gain, bias = rng.uniform(0.4, 2.0, d), 1.5 * rng.standard_normal(d)
        h = x - x.mean(axis=1, keepdims=True) if hyperplane else x
        values.append(h * gain + bias)
    values = np.stack(values).astype(np.float32)
    p = sum(sizes)
    first = np.resize(np.arange(n), p)
    second = rng.integers(0, n, p)
    second[::7] = first[::7]
    a, b = values[-1][first].astype(float), values[-1][second].astype(float)
    distance = np.linalg.norm(a - b, axis=1)
    noisy = 5 - 5 * distance / distance.max() + rng.normal(0, 0.7, p)
    gold = np.where(first == second, 5.0, np.clip(np.round(2 * noisy) / 2, 0, 5))
    gold[1:4] = 4.0
    subset = rng.permutation(np.repeat(np.arange(len(sizes)), sizes))
    names = tuple(f"part {i}" for i in range(len(sizes)))
    arrays = (values, first, second, gold, subset)
    return LayerEmbeddings(*(torch.from_numpy(np.array(a)) for a in arrays), names)


def with_only(space: LayerEmbeddings, subset: int) -> LayerEmbeddings:
    """The same embeddings with the pairs of one subset."""
    rows = (space.subset == subset).nonzero()[:, 0]
    pairs = (space.first[rows], space.second[rows], space.gold[rows], torch.zeros_like(rows))
    return LayerEmbeddings(space.values, *pairs, (space.subset_names[subset],), space.origin)


def rotation(d: int, seed: int = 0) -> torch.Tensor:
    """An orthogonal matrix."""
    q, _ = np.linalg.qr(np.random.default_rng(seed).standard_normal((d, d)))
    return torch.from_numpy(q)


@contextlib.contextmanager
def float64_by_default():
    """What torch makes where no type is said, of float64."""
    torch.set_default_dtype(torch.float64)
    try:
        yield
    finally:
        torch.set_default_dtype(torch.float32)


@pytest.fixture
def space() -> LayerEmbeddings:
    """Four full-rank layers of 60 sentences in 12 dimensions, 80 pairs in three subsets."""
    return make_space()


@pytest.fixture
def thin() -> LayerEmbeddings:
    """Fewer sentences than dimensions: the rank is at most n - 1."""
    return make_space(n=8, sizes=(12,), seed=1)


@pytest.fixture
def layernorm() -> LayerEmbeddings:
    """Every layer lies in a hyperplane of its own, so its rank is d - 1; the mean of two has rank d."""
    return make_space(seed=2, hyperplane=True)


@pytest.fixture
def distinct() -> LayerEmbeddings:
    """No sentence twice and fewer than dimensions: fully whitened, every cosine is -1 / (n - 1) but for rounding.

    Variances fall off to 1e-8 of the largest, as they do in real layers, so there is rounding to see.
    """
    rng = np.random.default_rng(0)
    scale = np.logspace(0, -4, 40)
    values = rng.standard_normal((3, 36, 40)) * scale + rng.standard_normal(40)
    gold = np.arange(18) / 3.6
    subset = np.repeat([0, 1], 9)
    first, second = np.arange(18), np.arange(18, 36)
    arrays = (values, first, second, gold, subset)
    return LayerEmbeddings(*(torch.from_numpy(np.array(a)) for a in arrays), ("part 0", "part 1"))


@pytest.fixture(scope="module")
def models(tmp_path_factory):
    """architecture -> folder, built when first asked for."""
    from tiny import build_model, build_once  # transformers takes seconds to import, and few files need it

    return build_once(tmp_path_factory.mktemp("models"), build_model)


@pytest.fixture
def encoder(models):
    """The tiny BERT on the processor."""
    from whitelab.encoding.encoders import load_encoder

    return load_encoder(models(), device="cpu")


@pytest.fixture
def store(tmp_path):
    """An empty store."""
    from whitelab.store.embedding_store import Store

    return Store(tmp_path / "store")


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    """The folder of a tiny BERT that nobody changes."""
    from tiny import build_model

    return build_model(tmp_path_factory.mktemp("models") / "whole")


@pytest.fixture
def folder(whole, tmp_path):
    """A copy of that model for a test that damages it."""
    return shutil.copytree(whole, tmp_path / "my-model")


@pytest.fixture(scope="session")
def between_workers(tmp_path_factory):
    """A folder that all workers of this session share."""
    base = tmp_path_factory.getbasetemp()
    return base.parent if "PYTEST_XDIST_WORKER" in os.environ else base


@pytest.fixture(scope="session")
def encoded(between_workers):
    """A store that holds the demonstration set under the bundled model, encoded once for all workers.

    Not to be written to: a test that encodes more takes a copy.
    """
    import whitelab

    folder = between_workers / "encoded"
    with FileLock(folder.with_suffix(".lock")):
        if not folder.exists():
            torch.set_num_threads(os.cpu_count())  # the other workers wait for this
            encoder, pairs = whitelab.load_encoder("bundled"), whitelab.load("demo")
            whitelab.embed_pairs(encoder, pairs, store=whitelab.Store(folder))
            torch.set_num_threads(1)
    return folder


@pytest.fixture
def held():
    """Work of a job that waits until it is let go."""
    from working import Held

    with Held() as work:
        yield work


@pytest.fixture
def steps():
    """Work of a job that goes on step by step, as it is told."""
    from working import Steps

    with Steps() as work:
        yield work


@pytest.fixture(params=["space", "thin", "layernorm"])
def any_space(request) -> LayerEmbeddings:
    """Each of the three in turn."""
    return request.getfixturevalue(request.param)


@pytest.fixture(scope="session")
def chromium():
    """A headless Chromium from the system's packages; where CI is set a missing one is a failure, never a skip.

    One a worker, whichever tests ask for it: Playwright cannot be started twice in a process.
    """
    from driving import FLAGS  # playwright and pillow, which few files need
    from playwright.sync_api import sync_playwright

    path = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
    if path is None:
        reason = "Chromium is missing: install it with `apt-get install chromium`"
        if os.environ.get("CI"):
            pytest.fail(reason, pytrace=False)
        pytest.skip(reason)
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=path, args=FLAGS)
        yield browser
        browser.close()


@pytest.fixture(scope="session")
def window(chromium):
    """The page at which the first visitor of every test sits."""
    from driving import Visit

    return Visit.start(chromium, "")


@pytest.fixture
def visit(chromium, window):
    """Visit an app: first at the page that all tests share, then, beside it, in a browser context of one's own.

    A page that shows an exception, complains to the console or asks for anything outside this machine fails the test.
    """
    visits = []

    def start(base, *args, **kwargs):
        visits.append(
            type(window).start(chromium, base, *args, **kwargs) if visits else window.anew(base, *args, **kwargs)
        )
        return visits[-1]

    yield start
    for one in visits:
        one.note_tracebacks()
        if one is window:
            one.leave()
        else:
            one.context.close()
    assert [error for one in visits for error in one.errors] == []
    assert [url for one in visits for url in one.outside] == []
