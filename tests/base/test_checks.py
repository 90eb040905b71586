"""Laws of the checks: good values come back, bad ones are named with what was expected."""

import json

import numpy as np
import pandas as pd
import pytest
import torch
from processes import run_python

from whitelab.base.checks import (
    check_batch,
    check_choice,
    check_int,
    check_integers,
    check_layers,
    check_matrix,
    check_sentences,
    check_shape,
    check_weights,
)


@pytest.mark.parametrize("value", [1, 5, 9])
def test_a_whole_number_inside_the_bounds_comes_back(value):
    assert check_int(value, "k", 1, 9) == value


@pytest.mark.parametrize("value", [0, 10, -1, 2.0, True, "3", None])
def test_other_numbers_are_named_with_their_bounds(value):
    must = "lie between" if type(value) is int else "be a whole number between"
    with pytest.raises(ValueError, match=rf"k={value!r} must {must} 1 and d=9"):
        check_int(value, "k", 1, 9, "d")


def test_strings_come_back_as_a_list_and_what_is_none_is_named_with_its_place():
    assert check_sentences(text for text in "ab") == ["a", "b"]
    for wrong, message in (
        ("hello", "sentences='hello' must be a sequence of"),
        (["a", None], "sentences.1.=None must"),
    ):
        with pytest.raises(TypeError, match=message):
            check_sentences(wrong)


DOORS = """
import json
import numpy as np
import torch
import whitelab as wl
from dataclasses import asdict
from whitelab.corpus.chunks import Recipe
from whitelab.scoring.calibration import threshold
from whitelab.whitening import export
encoder, said = wl.load_encoder("bundled", num_layers=1), []
map_ = wl.fit("pca", wl.Moments.of(torch.eye(5)))
for wrong in (
    lambda: wl.embed("bundled", ["a"]),
    lambda: wl.embed_pairs("bundled", wl.load("demo")),
    lambda: wl.embed_pairs(encoder, "demo"),
    lambda: wl.pair_cosines("a", "b"),
    lambda: wl.load(None),
    lambda: wl.embed(encoder, ["a"], store="here"),
    lambda: export.npz_bytes(map_, wl.Protocol),
    lambda: export.to_onnx("out", "bundled", [1], "mean", map_),
    lambda: wl.nearest_to(wl.embed_pairs(encoder, wl.load("demo"))[0], wl.Setting((1,)), "hello"),
):
    try:
        wrong()
    except TypeError as error:
        said.append(str(error))
x = torch.rand(40, 8, generator=torch.Generator().manual_seed(0))
print(json.dumps([[
    [wl.fit("pca", wl.Moments.of(x), np.int64(4)).k, wl.Setting(whitening="pca", k=np.int64(4)).k],
    asdict(threshold(x[:, 0], x[:, 1], np.float32(0.5), np.float32(0.25), np.int64(9))),
    asdict(Recipe.of(encoder, np.array([1, -2]))),
], said]))
"""


@pytest.fixture(scope="module")
def doors():
    """What comes out for numbers of NumPy, and what is said to names, where no checks of signatures come before."""
    run = run_python(DOORS)
    assert run.returncode == 0, run.stderr
    return json.loads(run.stdout)


def test_numbers_of_numpy_leave_the_doors_as_pythons_own(doors):
    k, threshold, recipe = doors[0]
    assert k == [4, 4]
    assert (threshold["cut"], threshold["resamples"], recipe["layers"]) == (0.5, 9, [0, 1])


def test_without_an_upper_bound_only_the_lower_one_is_named():
    assert check_int(10**9, "size", 2) == 10**9
    with pytest.raises(ValueError, match="size=1 must be a whole number of at least 2"):
        check_int(1, "size", 2)


def test_a_choice_outside_the_list_is_told_the_list():
    assert check_choice("a", "letter", {"a": 1, "b": 2}) == "a"
    with pytest.raises(ValueError, match="letter='c' must be one of a, b"):
        check_choice("c", "letter", {"a": 1, "b": 2})


def test_layers_come_back_ascending():
    assert check_layers([3, 0], 4) == (0, 3)
    assert check_layers(iter([2]), 3) == (2,)


@pytest.mark.parametrize(
    ("layers", "message"),
    [
        ([], "must name at least one of the layers 0 to 3"),
        (2, r"layers=2 must be several numbers, such as \(1, 3\)"),
        ("1,2", "layers='1,2' must be several numbers"),
        ([4], r"layers=\[4\] must lie between 0 and 3"),
        ([-1], r"layers=\[-1\] must lie between 0 and 3"),
        ([True], r"layers=\[True\] must lie between 0 and 3"),
        ([1, 1], r"layers=\[1, 1\] must not name a layer twice"),
    ],
)
def test_layers_the_model_does_not_have_are_refused(layers, message):
    with pytest.raises(ValueError, match=message):
        check_layers(layers, 4)


@pytest.mark.parametrize(
    ("given", "wanted"),
    [
        (torch.float16, torch.float32),
        (torch.bfloat16, torch.float32),
        (torch.float32, torch.float32),
        (torch.float64, torch.float64),
        (torch.int32, torch.float64),
        (torch.bool, torch.float64),
    ],
)
def test_a_matrix_comes_back_in_a_type_that_can_be_squared(given, wanted):
    assert check_matrix(torch.ones(2, 3, dtype=given)).dtype == wanted


def test_a_tensor_stays_where_it_is_whatever_device_torch_makes_others_on():
    x = torch.ones(3, 2)
    with torch.device("meta"):
        assert check_shape(x, "x", "n d") is x


def test_an_array_that_runs_backwards_is_a_matrix():
    x = torch.arange(6.0).reshape(3, 2).numpy()
    assert check_batch(x[::-1, ::-1]).tolist() == [[5, 4], [3, 2], [1, 0]]


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("check", [check_batch, lambda x: check_weights(x[:, 0], 3)])
def test_an_array_that_cannot_be_written_to_is_taken_without_a_word_and_not_shared(check):
    x = np.ones((3, 2))
    x.flags.writeable = False
    found = check(x)
    found.zero_()
    assert x.min() == 1


def test_a_list_of_lists_is_a_matrix():
    assert check_matrix([[1, 2], [3, 4]]).tolist() == [[1.0, 2.0], [3.0, 4.0]]


def test_a_list_of_pythons_floats_keeps_every_digit():
    rows = [[100_000_001.0], [100_000_002.0]]
    assert check_matrix(rows).tolist() == rows
    assert check_matrix(tuple(map(tuple, rows))).tolist() == rows


TABLE = pd.DataFrame({"b": [3.0, 1, 2], "a": [4, 5, 6]}, index=[7, 5, 5])


def test_a_table_of_pandas_is_its_numbers_in_its_own_order_whatever_its_index_and_names():
    assert check_matrix(TABLE).tolist() == TABLE.to_numpy().tolist() == [[3, 4], [1, 5], [2, 6]]
    assert check_shape(TABLE.b, "gold", "p").tolist() == [3, 1, 2]
    assert check_shape(TABLE.b.sort_values(), "gold", "p").tolist() == [1, 2, 3]
    assert check_integers(TABLE.a[TABLE.a > 4], "first", "p").tolist() == [5, 6]
    assert check_weights(TABLE.b.astype("Int64"), 3).tolist() == [3, 1, 2]
    with pytest.raises(TypeError, match="rows must be a tensor, an array or a list of numbers, got DataFrame"):
        check_matrix(TABLE.assign(c=["x", "y", "z"]), "rows")
    with pytest.raises(ValueError, match="rows must hold finite numbers, row 1 has NaN"):
        check_matrix(TABLE.where(TABLE != 1), "rows")


def test_an_array_is_taken_where_nothing_in_it_is_masked():
    bare = np.arange(6.0).reshape(3, 2)
    assert check_matrix(np.ma.masked_array(bare)).tolist() == bare.tolist()
    assert check_matrix(np.ma.masked_greater(bare, 9)).tolist() == bare.tolist()
    with pytest.raises(ValueError, match="rows must have no masked numbers, got 2"):
        check_matrix(np.ma.masked_greater(bare, 3), "rows")


@pytest.mark.parametrize(
    ("x", "message"),
    [
        (torch.zeros(3), r"rows must have the shape \[n, d\], got \[3\]"),
        (torch.zeros(0, 3), r"rows must have at least 1 row\(s\) and 1 column, got \[0, 3\]"),
        (torch.zeros(3, 0), r"at least 1 row\(s\) and 1 column, got \[3, 0\]"),
        (torch.zeros(2, 2, dtype=torch.complex64), "rows must hold real numbers, got torch.complex64"),
        (torch.tensor([[0.0], [float("nan")]]), "row 1 has NaN or infinity"),
        (torch.tensor([[float("-inf")], [0.0]]), "row 0 has NaN or infinity"),
    ],
)
def test_what_is_no_matrix_of_numbers_is_refused(x, message):
    with pytest.raises(ValueError, match=message):
        check_matrix(x, "rows")


@pytest.mark.parametrize("x", ["text", None, ["a", "b"], [[1.0], [1.0, 2.0]], [None]])
def test_what_holds_no_numbers_is_refused_by_its_name(x):
    kind = type(x).__name__
    with pytest.raises(TypeError, match=f"rows must be a tensor, an array or a list of numbers, got {kind}"):
        check_matrix(x, "rows")


def test_a_name_is_not_taken_for_what_it_names(doors):
    said = doors[1]
    encoder = "encoder must be Encoder, such as load_encoder('bundled') gives, got str"
    pairs = "pairs must be SentencePairs, such as load('demo') gives, got str"
    assert said[:3] == [encoder, encoder, pairs]
    assert said[3].startswith("a must be a tensor, an array or a list of numbers, got str")
    assert said[4:8] == [
        "data must be a path or a name, such as 'demo', got NoneType",
        "store must be Store, such as Store('path/to/a/folder'), got str",
        "protocol must be Mapping, such as Protocol(setting, space.origin).as_dict() gives, got type",
        encoder,
    ]
    assert said[8].startswith("new must be a tensor, an array or a list of numbers, got str")


def test_too_few_rows_are_refused():
    with pytest.raises(ValueError, match=r"x must have at least 2 row\(s\)"):
        check_batch(torch.zeros(1, 3), rows=2)


def test_a_matrix_is_cut_off_from_its_network_and_a_batch_is_not():
    x = torch.ones(2, 3, requires_grad=True)
    assert not check_matrix(x).requires_grad
    check_batch(x).sum().backward()
    assert x.grad.tolist() == x.tolist()


def test_weights_come_back_in_float64():
    weights = check_weights([1, 0, 2], 3)
    assert weights.dtype == torch.float64
    assert weights.tolist() == [1.0, 0.0, 2.0]


@pytest.mark.parametrize("weights", [[1.0, -1.0], [0.0, 0.0], [float("nan"), 1.0], [float("inf"), 1.0]])
def test_weights_that_cannot_count_rows_are_refused(weights):
    with pytest.raises(ValueError, match="weights must be finite, not negative, and not all zero"):
        check_weights(weights, 2)


@pytest.mark.parametrize(("weights", "wrong"), [([1.0, 0.5], 0.5), ([2, 3.5, 0.25], 3.5)])
def test_weights_that_are_shares_are_refused_because_they_count_rows(weights, wrong):
    with pytest.raises(ValueError, match=f"weights must be whole counts of rows, got {wrong}"):
        check_weights(weights, len(weights))


def test_complex_weights_are_refused():
    with pytest.raises(ValueError, match="weights must hold real numbers"):
        check_weights(torch.tensor([1 + 1j, 2]), 2)


def test_weights_of_another_length_are_refused():
    with pytest.raises(ValueError, match=r"weights must have the shape \[3\], got \[2\]"):
        check_weights([1.0, 1.0], 3)
