"""What a page has worked out is not worked out again, and what takes long is not done while a page is drawn."""

import threading

import pytest
from tiny import build_model, write_pairs

from whitelab import probe
from whitelab.scoring import fit_scopes

from .visiting import LIVE, metrics, start, until

pytestmark = pytest.mark.model


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    """A tiny model, pairs, and others to fit on, one row of which is malformed."""
    root = tmp_path_factory.mktemp("reruns")
    build_model(root / "model")
    write_pairs(root / "pairs.csv")
    other = write_pairs(root / "other.csv", start=60)
    other.write_text(other.read_text("utf-8") + "no score,at all,\n", "utf-8")
    write_pairs(root / "whole.csv", start=60)
    return root


@pytest.fixture
def visit(place):
    """Open a page on the tiny model and its pairs."""

    def opened(page, ready=None, **query):
        at = start(page, model=str(place / "model"), data=str(place / "pairs.csv"), **query)
        return until(at, ready) if ready else until(at)

    return opened


def test_the_text_to_fit_on_is_read_once_and_not_while_a_page_is_drawn(visit, place, monkeypatch):
    threads, real = [], fit_scopes.scope_text

    def read(*args):
        threads.append(threading.current_thread().name)
        return real(*args)

    monkeypatch.setattr(fit_scopes, "scope_text", read)
    at = visit("overview", fit=str(place / "whole.csv"))
    until(at.run())
    assert threads == ["whitelab-jobs"]


def test_malformed_rows_of_the_text_to_fit_on_are_listed_and_left_out_on_request(visit, place):
    at = visit("overview", lambda at: at.error, fit=str(place / "other.csv"))
    assert at.error[0].value.startswith("1 row cannot be read.")
    assert list(at.dataframe[0].value["line"]) == [62]
    at.run()
    assert at.error[0].value.startswith("1 row cannot be read.")  # and the page has not come to an end
    at.checkbox(key="keep").check().run()
    assert LIVE in metrics(until(at))
    assert any("fitted on 120 sentences" in one.value for one in at.caption)
    at.checkbox(key="keep").uncheck().run()
    assert until(at, lambda at: at.error).error[0].value.startswith("1 row cannot be read.")


def test_another_k_probes_no_raw_layer_again(visit, monkeypatch):
    tried, real = [], probe.tried_probe

    def counted(space, data, setting, *rest):
        tried.append(setting.whitening)
        return real(space, data, setting, *rest)

    monkeypatch.setattr(probe, "tried_probe", counted)
    at = visit("probe", k="20")
    raw = metrics(at)["Accuracy, raw"]
    assert tried.count("none") == tried.count("pca") == 7  # each layer, two together, and as typed
    tried.clear()
    at.slider(key="k").set_value(10)
    until(at.run())
    assert tried == ["pca"] * 5
    assert metrics(at)["Accuracy, raw"] == raw
