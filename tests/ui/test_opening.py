"""Embedding every task of the data: shared with the pages of each, carrying the text that maps are fitted on."""

from collections import Counter
from dataclasses import replace

import pytest
import torch
from judged import retrieval_set
from labelled_texts import make_texts
from tiny import build_model, write_pairs

import whitelab
from whitelab import datasets
from whitelab.ui.results.shelf import shelf
from whitelab.ui.sections import probing, rankings
from whitelab.ui.sidebar import opening, own_data
from whitelab.ui.sidebar.data import Chosen, pairs_of
from whitelab.ui.sidebar.model import Picked
from whitelab.ui.sidebar.opening import every_task, task_name
from whitelab.ui.sidebar.workspace import Workspace


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    """A tiny model and a folder of two tasks; what is embedded is kept beside them."""
    root = tmp_path_factory.mktemp("opening")
    build_model(root / "model")
    for i, name in enumerate(("one", "two")):
        write_pairs(root / "tasks" / f"{name}.csv", pairs=20, start=60 * i)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("WHITELAB_CACHE", str(root / "store"))
        yield root


@pytest.fixture(scope="module")
def bench(place):
    """The bar as it stands on the first of the tasks."""
    data = str(place / "tasks")
    picked = Picked(str(place / "model"), False, 4, 32, ("mean", "cls"), "digest")
    return Workspace(picked, Chosen(data, datasets.discover(data)[0], "all", False, ""), whitelab.Setting(), "float32")


def embedded(place, task):
    return whitelab.embed_pairs(whitelab.load_encoder(str(place / "model")), whitelab.load(place / "tasks", task))[0]


@pytest.fixture(scope="module")
def fitted(place):
    """The space of the workspace's own task, with and without a text."""
    space = shelf().call(embedded(place, "one"), "fitted")
    rows = whitelab.embed_scope(whitelab.load_encoder(str(place / "model")), Counter({"water": 2}))
    text = shelf().call(rows, "water")
    return space, shelf().call(space.with_text("water", text), "fitted+water")


def finished(job):
    assert job.join(60.0)
    assert job.state == "done", job.message
    return job.result


def test_every_task_is_embedded_as_the_package_does_and_each_space_has_a_name_of_its_own(bench, place, fitted):
    spaces = finished(every_task(bench, fitted[0]))
    assert list(spaces) == ["one", "two"]
    for task, space in spaces.items():
        wanted = embedded(place, task)
        assert torch.equal(space.values, wanted.values)
        assert torch.equal(space.gold, wanted.gold)
        assert not space.texts
    assert len({shelf().name(space) for space in spaces.values()}) == 2


def test_what_a_page_has_opened_is_shared_and_not_embedded_again(bench, fitted, forward_calls):
    spaces = finished(every_task(bench, fitted[0]))
    pairs = pairs_of(bench.data.source, "two", "all", False, "")
    assert shelf().get(task_name(bench, "two", pairs)).space is spaces["two"]
    assert every_task(bench, fitted[0]).result is spaces
    again = finished(every_task(replace(bench, setting=bench.setting.with_(whitening="pca")), fitted[1]))
    assert torch.equal(again["two"].values, spaces["two"].values)
    assert forward_calls == []


def test_each_task_carries_the_text_that_the_workspaces_space_carries(bench, fitted):
    plain, carrying = (finished(every_task(bench, space)) for space in fitted)
    for task, space in carrying.items():
        assert list(space.texts) == ["water"]
        assert space.texts["water"] is fitted[1].texts["water"]
        assert shelf().name(space) != shelf().name(plain[task])


def test_another_pooling_type_or_model_is_another_job(bench, fitted):
    setting = bench.setting.with_(pooling="cls")
    benches = (
        bench,
        replace(bench, setting=setting),
        replace(bench, dtype="bfloat16"),
        replace(bench, model=replace(bench.model, digest="others")),
    )
    jobs = [every_task(one, fitted[0]) for one in benches]
    assert len({job.key for job in jobs}) == 4
    for job in jobs:
        assert job.join(60.0)
    assert jobs[1].result["one"].origin.pooling == "cls"


@pytest.fixture
def asked(monkeypatch):
    """The names, titles, works and units of what is put on the shelf while the test lasts; nothing is."""
    found = []
    monkeypatch.setattr(opening, "shelved", lambda *what, key: found.append(what))
    return found


@pytest.mark.parametrize("section", ["probing", "rankings"])
def test_how_far_texts_are_is_told_in_the_unit_that_is_counted(bench, asked, section):
    if section == "probing":
        data = make_texts()
        probing.open_texts(bench, data)
    else:
        data = retrieval_set()
        rankings.embedded(bench, data)
    ((_, _, work, unit),) = asked
    totals = set()
    work(lambda done, total: totals.add(total))
    counts = {"texts": len(data.sentences), "tokens": sum(map(len, bench.encoder().tokenize(data.sentences)[0]))}
    assert totals == {counts[unit]}


def test_a_visitors_texts_lie_where_no_other_session_looks_under_a_title_that_does_not_name_them(bench, asked):
    for own in (False, True):
        opening.shelved_texts(bench, make_texts(), own, lambda progress: None, key="texts")
    (shared, title, *_), (hidden, untold, *_) = asked
    assert (own_data.secret() in shared, own_data.secret() in hidden) == (False, True)
    assert ("made" in title, "made" in untold) == (True, False)


@pytest.fixture
def forward_calls(monkeypatch):
    """The batches the model runs while the test lasts."""
    from whitelab.encoding.encoders import Encoder

    calls, real = [], Encoder.forward
    monkeypatch.setattr(
        Encoder, "forward", lambda self, ids, pooling: calls.append(len(ids)) or real(self, ids, pooling)
    )
    return calls
