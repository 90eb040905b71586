"""Laws of a setting: its text reads back, defaults are not printed, a space takes only what it has, no path is said."""

import json
import re
from dataclasses import replace

import jaxtyping
import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from tests.conftest import make_space
from whitelab.encoding.embeddings import MeasuredRows, Origin
from whitelab.encoding.pooling import GIVEN, POOLINGS
from whitelab.scoring.setting import FIT_SCOPES, TABLE1, Protocol, Setting, parse_settings, scope_in_words, scope_name
from whitelab.statistics.correlation import AGGREGATES
from whitelab.whitening import WHITENERS, canonical

# The type checker of the tests draws which items of a tuple it looks at.
pytestmark = pytest.mark.filterwarnings("ignore:Do not use the `random` module inside strategies")

AWKWARD = [
    "fit=",
    " fit=cross",
    "aggregate=",
    "aggregate=mean",
    ";",
    "%",
    "%20",
    "%3B",
    " ",
    "\t",
    "\n",
    "é",
    "日本",
    "L*",
]
AWKWARD += ["@3", ":pca", "/", "\\", "nli.txt", "\u2003", "\x1f", "table1"]


@st.composite
def specs(draw):
    """Any variant, with any of its parameters."""
    name = draw(st.sampled_from(sorted(WHITENERS)))
    words = []
    for parameter in WHITENERS[name].parameters:
        if parameter.choices:
            value = st.sampled_from(parameter.choices)
        elif isinstance(parameter.default, int):
            value = st.integers(parameter.low, parameter.high or 50)
        else:
            value = st.floats(parameter.low, parameter.high)
        words += [f"{parameter.name}={draw(value)}"] if draw(st.booleans()) else []
    return name + (":" + ",".join(words) if words else "")


FITS = st.one_of(
    st.sampled_from(list(FIT_SCOPES)),
    st.text(min_size=1),
    st.lists(st.one_of(st.sampled_from(AWKWARD), st.text(max_size=3)), min_size=1).map("".join).filter(bool),
)


@st.composite
def settings(draw):
    """Any setting there is."""
    whitening = draw(specs())
    takes_k = WHITENERS[whitening.partition(":")[0]].takes_k
    layers = draw(st.lists(st.integers(-40, 40), min_size=1, max_size=5, unique=True))
    return Setting(
        tuple(layers),
        whitening,
        draw(st.none() | st.integers(1, 5000)) if takes_k else None,
        draw(st.sampled_from([*POOLINGS, GIVEN])),
        draw(FITS),
        draw(st.sampled_from(AGGREGATES)),
    )


# Its text


@given(settings())
def test_a_setting_reads_back_from_its_own_text(setting):
    assert Setting.parse(str(setting)) == setting
    assert Setting.parse(f"  {setting}\n") == setting


@given(st.lists(settings(), min_size=1, max_size=5), st.sampled_from([None, 1, 7]))
@example([Setting(fit="a;b"), Setting(fit="L*"), Setting(fit=" ; "), Setting(fit="a \taggregate=all ")], 3)
def test_settings_read_back_from_a_list(rows, n_layers):
    assert parse_settings(";".join(map(str, rows)), n_layers) == tuple(dict.fromkeys(rows))


@given(settings())
def test_what_is_left_at_its_default_is_not_printed(setting):
    text, usual = str(setting), Setting()
    bare = str(replace(setting, fit="task"))
    assert (
        str(replace(usual, layers=setting.layers, pooling=setting.pooling))
        == f"{setting.pooling}/{setting.named_layers}"
    )
    assert (":" in bare) == (setting.whitening != "none")
    assert ("@" in bare) == (setting.k is not None)
    assert (" aggregate=" in bare) == (setting.aggregate != "all")
    assert text.startswith(bare)
    assert (text != bare) == (setting.fit != "task")


@given(settings())
def test_every_parameter_is_written_out(setting):
    assert setting.whitening == canonical(setting.whitening)
    assert setting.raw == replace(setting, whitening="none", k=None, fit="task")


@pytest.mark.parametrize(
    ("text", "setting"),
    [
        ("L6", Setting((6,))),
        ("cls/L-1", Setting(pooling="cls")),
        ("L1+L-1:pca@256", Setting((1, -1), "pca", 256)),
        (" mean/L0+L3:soft:gamma=0.25 ", Setting((0, 3), "soft:gamma=0.25,alpha=0")),
        ("L1:pca@100 aggregate=mean fit=cross", Setting((1,), "pca", 100, fit="cross", aggregate="mean")),
        ("L1:pca@100 fit=cross  aggregate=mean", Setting((1,), "pca", 100, fit="cross", aggregate="mean")),
        ("L1 fit=a fit=b", Setting((1,), fit="a fit=b")),
        ("L1:pca fit=0 fit=", Setting((1,), "pca", fit="0 fit=")),
        ("L1 fit=100%25 sure", Setting((1,), fit="100% sure")),
    ],
)
def test_what_is_left_out_has_its_default(text, setting):
    assert Setting.parse(text) == setting


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("six", "setting='six' must look like L6, cls/L-1"),
        ("L5,L6", "setting='L5,L6' must look like"),  # two settings, or the average of two layers?
        ("", "setting='' must look like"),
        ("L6 fit=cross aggregate=sum", "aggregate='sum' must be one of all, mean, wmean"),
        ("L6 aggregate=mean fit=cross aggregate=all", "must name aggregate once"),
        ("L6:pca fit=", "setting='L6:pca fit=' must say what fit= is"),
        ("L6 fit= ", "must say what fit= is"),
        ("L6 fit= aggregate=mean", "must say what fit= is"),
        ("L6:pca fit=  fit=x", "must say what fit= is"),
        ("L6:pca aggregate= fit=cross", "must say what aggregate= is"),
        ("L6 aggregate=sum", "aggregate='sum' must be one of all, mean, wmean"),
        ("L6:bleach", "whitening='bleach' must be one of"),
        ("L6:soft:gamma=9", "gamma=9"),
        ("max/L6", "pooling='max' must be one of"),
        ("L6:standardize@4", "k=4 has no meaning for whitening='standardize'"),
        ("L6:pca@0", "k=0 must be a whole number of at least 1"),
        ("L1+L1", r"layers=\[1, 1\] must name at least one layer, and none twice"),
    ],
)
def test_a_text_that_makes_no_sense_is_refused(text, message):
    with pytest.raises(ValueError, match=message):
        Setting.parse(text)


def test_what_is_no_text_is_no_setting(monkeypatch):
    monkeypatch.setattr(jaxtyping.config, "jaxtyping_disable", True)  # a user runs without the annotations' checks
    with pytest.raises(TypeError, match=r"setting must be str, such as 'L1\+L6:pca', got NoneType"):
        Setting.parse(None)
    with pytest.raises(TypeError, match="settings"):
        parse_settings(None)


@pytest.mark.parametrize("layers", [6, "1,6"])
def test_one_number_or_text_is_no_list_of_layers(layers):
    with pytest.raises(ValueError, match=f"layers={layers!r} must be several numbers"):
        Setting(layers=layers)


def test_no_setting_at_all_is_refused():
    with pytest.raises(ValueError, match="settings=' ; ' must hold at least one setting"):
        parse_settings(" ; ")


def test_of_several_settings_every_one_that_is_wrong_is_named():
    with pytest.raises(ValueError, match="^in 'L1:nonsense', whitening='nonsense' must be .*; setting='foo' must look"):
        parse_settings("L1:nonsense; L1:pca; foo")


def test_a_star_stands_for_every_layer():
    assert parse_settings("cls/L*:pca@2; L-1", 3) == (
        *(Setting((layer,), "pca", 2, "cls") for layer in range(3)),
        Setting(),
    )
    with pytest.raises(ValueError, match="must look like"):
        parse_settings("L*")


def test_table_1_has_the_papers_five_rows():
    assert parse_settings("table1") == parse_settings(TABLE1)
    assert ";".join(map(str, parse_settings("table1"))) == TABLE1


# On a space

SPACE = make_space(layers=4, d=12)


@given(settings())
def test_a_space_takes_what_it_has_and_refuses_the_rest(setting):
    setting = replace(setting, whitening="pca" if setting.k else "none")
    if setting.pooling != "mean":
        with pytest.raises(ValueError, match=f"pooling='{setting.pooling}' must be 'mean', that of the embeddings"):
            setting.on(SPACE)
    elif setting.k and setting.k > 12:
        with pytest.raises(ValueError, match=f"k={setting.k} must lie between 1 and d=12"):
            setting.on(SPACE)
    elif any(not -4 <= layer < 4 for layer in setting.layers):
        with pytest.raises(ValueError, match=re.escape(f"layers={list(setting.layers)} must lie between 0 and 3, the")):
            setting.on(SPACE)
    else:
        here = setting.on(SPACE)
        assert here == replace(setting, layers=tuple(sorted({layer % 4 for layer in setting.layers})))
        assert here.on(SPACE) == here


@given(st.lists(st.integers(-6, 6), min_size=1, unique=True), st.integers(1, 13))
def test_layers_from_the_last_fit_any_depth_and_do_not_repeat(layers, n_layers):
    counted = [layer + n_layers if layer < 0 else layer for layer in layers]
    assert Setting(tuple(layers)).numbers(n_layers) == tuple(sorted(set(counted), key=counted.index))


def test_parameters_that_d_bounds_are_checked_against_it():
    assert Setting((1,), "group:groups=12").on(SPACE).whitening == "group:groups=12"
    with pytest.raises(ValueError, match="groups=13 must lie between 1 and d=12"):
        Setting((1,), "group:groups=13").on(SPACE)


def test_a_k_goes_with_a_whitening_that_takes_none():
    setting = Setting(whitening="pca", k=3)
    assert setting.with_(whitening="zca") == Setting(whitening="zca", k=3)
    assert setting.with_(whitening="none") == Setting()
    with pytest.raises(ValueError, match="k=3 has no meaning for whitening='none'"):
        setting.with_(whitening="none", k=3)


def test_other_text_is_fitted_on_only_where_something_is_fitted():
    assert [Setting(whitening="pca", fit=fit).fits_other_text for fit in ("task", "cross", "splits", "nli.txt")] == [
        False,
        False,
        True,
        True,
    ]
    assert not Setting(fit="nli.txt").fits_other_text


# Its protocol


def test_layers_numbered_by_numpy_become_pythons_own_which_json_can_hold():
    setting = Setting(np.array([1, -1]))
    assert json.dumps(setting.layers) == "[1, -1]"
    assert setting == Setting((1, -1))
    with pytest.raises(ValueError, match=r"layers=\[1.5\] must be whole numbers"):
        Setting((1.5,))


@given(settings())
def test_a_protocol_is_its_setting_and_its_origin(setting):
    origin = Origin("m", "d", "t", "test", setting.pooling)
    record = Protocol(setting, origin).as_dict()
    assert record["layers"] == list(setting.layers)
    for name in ("whitening", "k", "fit", "aggregate"):
        assert record[name] == getattr(setting, name)
    for name in ("model", "data", "task", "split", "pooling", "dtype", "max_length", "text"):
        assert record[name] == getattr(origin, name)


def test_a_scope_leaves_the_machine_without_a_path(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for fit, name in (("task", "task"), ("demo", "demo"), ("~/a/b.txt", "b.txt"), ("corpus:../b/", "corpus:b")):
        assert scope_name(fit) == name
    assert scope_name("corpus:.") == f"corpus:{tmp_path.name}"


def test_corpora_in_folders_of_one_name_leave_the_machine_under_two():
    space, texts = make_space(), {}
    for fit, digest in (("corpus:/a/out", "3f9a1c2b44"), ("corpus:/b/out", "77d0e1a952")):
        moments = space.moments((1,))
        texts[fit] = MeasuredRows(fit, space.origin, space.n_layers, space.dim, (1,), moments, digest)
    assert [scope_name(fit, texts) for fit in texts] == ["corpus:out-3f9a1c", "corpus:out-77d0e1"]
    assert scope_name("corpus:/c/out", texts) == "corpus:out"


def test_a_scope_in_words_is_its_label_inside_a_sentence_and_other_text_its_name():
    assert scope_in_words("task") == "the task's sentences"
    assert [scope_in_words(fit, {"all": "All texts"}) for fit in ("all", "task")] == ["all texts", "task"]
    for fit in ("/a/b/nli.txt", "corpus:/a/b/nli.txt"):
        name = scope_in_words(fit)
        assert name == scope_name(fit)
        line = Protocol(Setting((1,), "pca", fit=fit), make_space().origin).line(150)
        assert f"fitted on the 150 sentences of {name} · " in line
        assert "/a" not in line
