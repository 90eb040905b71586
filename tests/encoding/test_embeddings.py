"""Laws of embeddings that carry text to fit on: what is kept of them goes along."""

import threading
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

import numpy as np
import pretended_device
import pytest
import torch
from processes import run_python

from tests.conftest import make_space
from whitelab.encoding import embeddings
from whitelab.encoding.embeddings import LayerEmbeddings, LayerRows, Origin
from whitelab.scoring.fit_scopes import folds, map_of
from whitelab.scoring.score import score
from whitelab.scoring.setting import Setting


def rows(seed=9, **shape):
    other = make_space(n=40, sizes=(30,), seed=seed, **shape)
    return LayerRows(other.values, other.counts)


def test_a_space_carries_text_beside_its_own_sentences_and_stays_as_it_was(space):
    first, second = rows(1), rows(2)
    carrying = space.with_text("a", first).with_text("b", second)
    assert dict(carrying.texts) == {"a": first, "b": second}
    assert carrying.with_text("a", second).texts["a"] is second
    assert dict(space.texts) == {}
    assert carrying.values is space.values
    assert (carrying.origin, carrying.subset_names) == (space.origin, space.subset_names)


NUMBERS = {"values": (2, 5, 3), "first": (4,), "second": (4,), "gold": (4,), "subset": (4,)}


def arrays():
    draw = np.random.default_rng(0)
    rows = {name: draw.integers(0, 5, NUMBERS[name]) for name in ("first", "second")}
    return rows | {"values": draw.random(NUMBERS["values"]), "gold": draw.random(4), "subset": np.zeros(4, int)}


def test_arrays_are_embeddings_as_tensors_are():
    given = LayerEmbeddings(**arrays(), subset_names=("all",))
    same = LayerEmbeddings(**{name: torch.from_numpy(x) for name, x in arrays().items()}, subset_names=("all",))
    setting = Setting.parse("L1:zca")
    assert score(given, setting).as_dict() == score(same, setting).as_dict()
    rows = LayerRows(arrays()["values"], np.ones(5))
    assert map_of(rows, setting).digest == map_of(LayerRows(same.values, torch.ones(5)), setting).digest


def test_a_space_is_cut_off_from_the_network_that_made_its_vectors():
    given = {name: torch.tensor(x) for name, x in arrays().items()}
    learnt = LayerEmbeddings(**given | {"values": given["values"].requires_grad_()}, subset_names=("all",))
    assert not learnt.values.requires_grad
    assert learnt.values.data_ptr() == given["values"].data_ptr()


@pytest.mark.parametrize("of", [np.array, torch.tensor])
def test_a_space_copies_all_but_the_vectors_of_the_caller(of):
    given = {name: of(x) for name, x in arrays().items()}
    space, counts = LayerEmbeddings(**given, subset_names=("all",)), of(np.ones(5))
    rows, before = LayerRows(given["values"], counts), given["gold"].tolist()
    assert space.values.data_ptr() == rows.values.data_ptr() == torch.as_tensor(given["values"]).data_ptr()
    for name in ("first", "second", "gold", "subset"):
        given[name][:] = 0
    counts[:] = 0
    assert space.gold.tolist() == before
    assert space.first.any()
    assert space.second.any()
    assert rows.counts.tolist() == [1] * 5


NO_SPACE = """
import numpy as np
import whitelab
right = dict.fromkeys(("first", "second", "subset"), np.zeros(4, int))
right |= {"values": np.zeros((2, 5, 3)), "gold": np.zeros(4)}
for wrong in ({"values": np.zeros((5, 3))}, {"second": np.zeros(3, int)}, {"first": np.zeros(4)}, {"gold": "demo"}):
    try:
        whitelab.LayerEmbeddings(**right | wrong, subset_names=("all",))
    except (TypeError, ValueError) as error:
        print(error)
try:
    whitelab.LayerRows(np.zeros((2, 5, 3)), np.ones(4))
except ValueError as error:
    print(error)
"""


def test_what_is_no_space_is_refused_where_it_is_made():
    said = run_python(NO_SPACE).stdout.splitlines()  # here signatures are checked before it can speak
    assert said[:3] == [
        "values must have the shape [l, n, d], got [5, 3]",
        "second must have the shape [p=4], got [3]",
        "first must hold whole numbers, got torch.float64",
    ]
    assert said[3].startswith("gold must be a tensor, an array or a list of numbers, got str")
    assert said[4:] == ["counts must have the shape [n=5], got [4]"]


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"first": torch.tensor([0, 5])}, "first must hold numbers from 0 to 4, got 5"),
        ({"second": torch.tensor([-1, 0])}, "second must hold numbers from 0 to 4, got -1"),
        ({"subset": torch.tensor([0, 1])}, "subset must hold numbers from 0 to 0, got 1"),
    ],
)
def test_rows_and_subsets_that_are_not_there_are_refused_where_a_space_is_made(wrong, message):
    pairs = dict.fromkeys(("first", "second", "subset"), torch.tensor([0, 0]))
    with pytest.raises(ValueError, match=message):
        LayerEmbeddings(torch.zeros(2, 5, 3), gold=torch.ones(2), subset_names=("a",), **pairs | wrong)


def test_what_is_kept_of_a_space_goes_with_it_and_comes_back(space):
    before = space.moments((1,)).eigen_all
    carrying = space.with_text("a", rows())
    assert carrying.moments((1,)).eigen_all is before
    assert carrying.counts is space.counts
    assert carrying.parted is space.parted
    assert carrying.moments((0, 2)) is space.moments((0, 2))  # made after they parted
    assert folds(carrying, "cross") is folds(space, "cross")
    assert carrying.kept("a key", lambda: "made") == space.kept("a key", lambda: "made again") == "made"


def test_embeddings_that_are_others_keep_their_own(space):
    moments = space.moments((1,))
    assert replace(space, values=2 * space.values).moments((1,)) is not moments
    with pretended_device.pretended_device():
        there = space.to(pretended_device.DEVICE).moments((1,))
        assert (there.mean.device.type, there.mean.tolist()) == ("pretended", pytest.approx(moments.mean.tolist()))
    assert space.to("cpu").moments((1,)) is moments


@pytest.mark.parametrize("shape", [{"d": 11}, {"layers": 3}])
def test_rows_of_another_model_are_refused(space, shape):
    got = f"{shape.get('layers', 4)} of {shape.get('d', 12)}"
    with pytest.raises(ValueError, match=f"rows must have 4 layers of d=12 as the task, got {got}"):
        space.with_text("a", rows(**shape))


@pytest.mark.parametrize("name", ["task", "cross", "tokens"])
def test_text_cannot_have_the_name_of_what_a_task_is_fitted_on_without_any(space, name):
    with pytest.raises(ValueError, match=f"name='{name}' must name other text: task, cross, tokens stand for"):
        space.with_text(name, rows())


def test_a_space_goes_to_a_device_with_its_text(space):
    there = space.with_text("a", rows()).to("meta")
    assert {x.device.type for x in (there.values, there.gold, there.texts["a"].values, there.texts["a"].counts)} == {
        "meta"
    }
    assert there.origin == space.origin


def test_moments_are_kept_for_the_last_combinations_of_layers(space, monkeypatch):
    monkeypatch.setattr(embeddings, "_MOMENTS_BYTES", 0)  # so as few as ever
    assert space.moments((1,)) is space.moments([1])
    first = space.moments((0,))
    for layers in ((0, 1), (0, 2), (0, 3), (1, 2), (1, 3), (2, 3), (1,), (2,)):
        space.moments(layers)
    assert space.moments((2,)) is space.moments((2,))
    assert space.moments((0,)) is not first


def test_vectors_made_elsewhere_have_no_text_and_no_length():
    origin = Origin("vectors of own.npz", pooling="given")
    assert (origin.text, origin.max_length) == ("given", None)
    with pytest.raises(ValueError, match="pooling='max' must be one of mean, cls"):
        Origin(pooling="max")


def test_threads_that_ask_at_once_share_moments_and_what_is_kept_of_them(space):
    begin = threading.Barrier(8)

    def ask(_):
        begin.wait()
        moments = space.moments([1, 2])
        return moments, space.kept_lately("table", moments, lambda: moments.mean + 1)

    with ThreadPoolExecutor(8) as pool:
        found = list(pool.map(ask, range(8)))
    assert len({id(moments) for moments, _ in found}) == 1
    last = space.kept_lately("table", found[0][0], pytest.fail)
    assert any(table is last for _, table in found)  # threads that ask at the same time may make it twice


@pytest.mark.parametrize("wrong", [-1.0, 0.5, float("nan"), float("inf")])
def test_counts_that_are_none_are_refused(wrong):
    values = torch.zeros(1, 3, 2)
    assert LayerRows(values, torch.tensor([0.0, 1.0, 2.0])).count == 3
    with pytest.raises(ValueError, match="counts must hold whole numbers from 0 on, got"):
        LayerRows(values, torch.tensor([1.0, wrong, 2.0]))
