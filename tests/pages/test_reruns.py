"""What a page has worked out is not worked out again, and what takes long is not done while a page is drawn."""

import threading
from functools import wraps

import pytest
from tiny import write_pairs

from whitelab import probe
from whitelab.ui.results import scores, worker
from whitelab.ui.results.jobs import jobs
from whitelab.ui.sections import layer_gains, layer_maps, rankings
from whitelab.ui.sidebar import opening

from .visiting import alts, choose, failed, go_to, live, metrics, said, start, until


@pytest.fixture(scope="module")
def others(tmp_path_factory):
    """Pairs to fit on, and the same with a malformed row."""
    root = tmp_path_factory.mktemp("others")
    whole = write_pairs(root / "whole.csv", start=60)
    (root / "broken.csv").write_text(whole.read_text("utf-8") + "no score,at all,\n", "utf-8")
    return root


def test_the_text_to_fit_on_is_read_once_and_not_while_a_page_is_drawn(small, others, monkeypatch):
    threads, real = [], opening.scope_text

    def read(*args):
        threads.append(threading.current_thread().name)
        return real(*args)

    monkeypatch.setattr(opening, "scope_text", read)
    at = until(start(**small, fit=str(others / "whole.csv")))
    until(go_to(at, "whitening"))
    assert threads == ["whitelab-jobs"]


def test_malformed_rows_of_the_text_to_fit_on_are_listed_and_left_out_on_request(small, others):
    at = until(start(**small, fit=str(others / "broken.csv")), lambda at: at.error)
    for _ in range(2):  # and the page has not come to an end
        assert failed(at, "1 row cannot be read.")
        at.run()
    assert list(at.dataframe[0].value["line"]) == [62]
    assert live(choose(at, keep=True)) is not None
    assert said(at, "fitted on 120 sentences")
    assert failed(choose(at, lambda at: at.error, keep=False), "1 row cannot be read.")


@pytest.fixture
def calls_of(monkeypatch):
    """The names of functions, each of a module, as they are called."""

    def noted(*functions):
        calls = []
        for module, name in functions:
            f = getattr(module, name)
            call = wraps(f)(lambda *args, f=f, **options: calls.append(f.__name__) or f(*args, **options))
            monkeypatch.setattr(module, name, call)
        return calls

    return noted


def test_another_k_computes_no_curve_anew(small, calls_of):
    calls = calls_of((scores, "k_curve"), (layer_maps, "pair_curves"))
    at = until(start("dimensions", **small, k="20"))
    until(go_to(at, "layers"))
    assert set(calls) == {"k_curve", "pair_curves"}
    calls.clear()
    choose(at, k=10)
    choose(until(go_to(at, "dimensions")), k=5)
    assert calls == []


def test_another_k_probes_no_raw_layer_again(small, monkeypatch):
    tried, real = [], probe.tried_probe

    def counted(space, data, setting, *rest):
        tried.append(setting.whitening)
        return real(space, data, setting, *rest)

    monkeypatch.setattr(probe, "tried_probe", counted)
    at = until(start("probe", **small, k="20", more="true"))
    raw = metrics(at)["Accuracy, raw"]
    assert tried.count("none") >= 5 <= tried.count("pca")  # each of four layers, two together, and as typed
    tried.clear()
    assert metrics(choose(at, k=10))["Accuracy, raw"] == raw
    assert set(tried) == {"pca"}


def test_what_stands_against_a_score_is_worked_out_for_one_visitor_and_not_for_the_next(small, calls_of):
    calls = calls_of((layer_gains, "doubt"), (rankings, "against"))
    for page in ("overview", "retrieval"):
        until(start(page, **small, k="7"))
    assert set(calls) == {"doubt", "against"}
    calls.clear()
    for page in ("overview", "retrieval"):
        until(start(page, **small, k="7"))
    assert calls == []


def test_a_page_that_was_left_waits_for_nothing_any_more(small, held, monkeypatch):
    monkeypatch.setattr(worker, "LONG_SECONDS", 3600.0)
    at = until(start("data", **small))
    jobs().submit("held", "Held", held)
    go_to(at, "uniformity")
    assert jobs().waiting == 1
    go_to(at, "data")
    assert jobs().waiting == 0
    go_to(at, "uniformity")
    assert jobs().waiting == 1


def test_the_last_plane_stays_until_the_one_of_another_k_is_measured(small, held):
    at = until(start("uniformity", **small, k="20", layers="1,2", positives="ge4"))
    before = next(alt for alt in alts(at) if alt.startswith("Uniformity and alignment"))
    jobs().submit("held-plane", "Held", held)
    at.session_state["k"] = 10
    at.run()
    assert jobs().waiting == 1
    assert before in alts(at)
    assert said(at, "The floor for 20 dimensions is")
    assert any(one.label == "Show the code" for one in at.expander)
