"""What results are called: alike for equal requests, however they are spelled, and not for any two that differ."""

from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.conftest import make_space
from whitelab.retrieval.search_cost import SearchPlan
from whitelab.scoring.score import score
from whitelab.scoring.setting import Setting
from whitelab.sweeps.layer_profiles import losses
from whitelab.ui.results.shelf import shelf
from whitelab.ui.results.study import name_of, named, study, study_job

# The checker of shapes draws at random which items of a container it looks at.
pytestmark = pytest.mark.filterwarnings("ignore::hypothesis.errors.HypothesisDeprecationWarning")

SPACE, OTHER = make_space(), make_space(seed=3)

texts = st.text(st.sampled_from("aL1/<>(),;:='\"% \\{}"), max_size=6)
chosen = st.builds(
    Setting,
    layers=st.lists(st.integers(-3, 12), min_size=1, max_size=3, unique=True).map(tuple),
    whitening=st.sampled_from(("none", "pca", "soft:gamma=0.5", "soft:gamma=0.25", "group:groups=4", "center")),
    pooling=st.sampled_from(("mean", "cls", "last")),
    fit=st.sampled_from(("task", "cross", "splits")) | texts.filter(str.strip),
    aggregate=st.sampled_from(("all", "mean", "wmean")),
) | st.builds(Setting, whitening=st.sampled_from(("pca", "zca")), k=st.integers(1, 9))
plans = st.builds(SearchPlan, ks=st.just(()), corpus=st.integers(1, 3), top=st.integers(1, 3))
plain = st.none() | st.booleans() | st.integers(-2, 12) | st.floats(allow_nan=False) | texts | texts.map(Path)
values = st.recursive(
    plain | chosen | plans,
    lambda inner: st.lists(inner, max_size=3).map(tuple) | st.dictionaries(texts, inner, max_size=2),
    max_leaves=4,
)


class Space:
    """What the shelf may hold."""


def alike(one, other) -> bool:
    """Whether two values are equal and of one type throughout, as 1 and True are not."""
    if type(one) is not type(other):
        return False
    if isinstance(one, tuple):
        return len(one) == len(other) and all(map(alike, one, other))
    if isinstance(one, dict):
        return alike(tuple(one.items()), tuple(other.items()))
    return one == other and repr(one) == repr(other)


@settings(max_examples=500, deadline=None)
@given(values, values)
def test_two_arguments_have_one_name_exactly_where_they_are_the_same(one, other):
    assert (named(one) == named(other)) is alike(one, other)


@settings(max_examples=200, deadline=None)
@given(st.lists(texts, max_size=3), st.lists(texts, max_size=3))
def test_spaces_are_told_apart_by_their_names_on_the_shelf_whatever_these_hold(one, other):
    def spaces(names):
        return tuple(shelf().call(Space(), name) for name in names)

    assert (named(spaces(one)) == named(spaces(other))) is (one == other)


def test_an_argument_that_has_no_name_is_refused():
    for value in (object(), {1, 2}, SPACE.values, make_space()):
        with pytest.raises(TypeError, match="must be plain, frozen or on the shelf"):
            name_of(score, value, Setting())


def test_by_place_by_name_and_by_default_is_one_request():
    space, setting = shelf().call(SPACE, "space"), Setting()
    names = {name_of(losses, space, setting), name_of(losses, space, setting=setting, positives="gt4")}
    assert len(names) == 1
    assert name_of(losses, space, setting, "ge4") not in names
    assert name_of(losses, shelf().call(OTHER, "other"), setting) not in names
    assert name_of(score, space, setting) not in names


def test_equal_requests_share_one_result_and_others_have_their_own():
    space, calls = shelf().call(SPACE, "space"), []

    def counted(space, setting):
        calls.append(setting)
        return score(space, setting)

    first = study(counted, space, Setting((1,)))
    assert study(counted, space, setting=Setting((1,))) is first
    assert study(counted, space, Setting((2,))) is not first
    assert calls == [Setting((1,)), Setting((2,))]


def test_equal_jobs_are_one_job():
    space = shelf().call(SPACE, "space")

    def work(space, setting, progress):
        return str(setting)

    one, again, other = (
        study_job(work, space, setting, title="Working", unit="") for setting in (Setting(), Setting(), Setting((1,)))
    )
    assert one is again is not other
    assert one.join(10.0)
    assert one.result == "mean/L-1"


def test_what_is_refused_is_raised_and_tried_again():
    tries = []

    def refusing(k):
        tries.append(k)
        raise ValueError("no")

    for _ in range(2):
        with pytest.raises(ValueError, match="no"):
            study(refusing, 1)
    assert tries == [1, 1]
