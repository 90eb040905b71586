"""Widgets that live in the address, where browser and session could come to differ."""

import pytest
from pair_files import whiteningbert, write
from questions import QUESTIONS
from streamlit.proto.WidgetStates_pb2 import WidgetStates
from streamlit.runtime.state.query_params import QueryParams
from streamlit.testing.v1 import AppTest
from tiny import write_task

from whitelab.compare import PRESETS
from whitelab.lessons import LESSONS
from whitelab.training.objectives import OBJECTIVES
from whitelab.ui.sections import neighbour_inspector
from whitelab.ui.widgets import address
from whitelab.whitening import WHITENERS

from .visiting import PATIENCE, alts, choose, data, go_to, knob, start, until

SOFT = WHITENERS["soft"].label


@pytest.mark.parametrize(
    ("kind", "key", "address", "shown"),
    [
        ("selectbox", "whitening", {"whitening": WHITENERS["center"].label}, WHITENERS["center"].label),
        ("slider", "soft-gamma", {"whitening": SOFT, "soft-gamma": "0.25"}, 0.25),
    ],
)
def test_a_page_opened_by_a_link_that_overtook_the_address_shows_what_the_session_holds(
    kind, key, address, shown, small
):
    at = until(start(**small | address))
    at.query_params.clear()
    at.switch_page("pages/data.py")._run(WidgetStates())  # a browser that knows nothing yet
    found = getattr(at, kind)(key).proto
    assert found.set_value
    assert (found.raw_value if kind == "selectbox" else found.value[0]) == shown
    assert at.query_params[key] in (address[key], [address[key]])  # and a reload keeps it


def test_k_is_kept_where_a_link_overtook_the_address(small):
    at = until(start(**small, k="5"))
    at.query_params.clear()
    at.switch_page("pages/data.py")._run(WidgetStates())
    assert knob(at)["k"] == 5
    assert any('({"k": ["5"]})' in box.proto.body for box in at.sidebar.get("html"))  # and a reload keeps it


def test_a_knob_has_its_value_again_after_another_variant_was_shown(small):
    at = until(start(**small | {"whitening": SOFT, "soft-gamma": "0.25"}))
    choose(at, whitening="pca")
    assert not [one for one in at.slider if one.key == "soft-gamma"]
    go_to(at, "data")
    assert choose(at, whitening="soft").sidebar.slider("soft-gamma").value == 0.25


def test_a_knob_is_a_slider_where_its_range_has_few_places_whatever_it_is_called():
    def page():
        from whitelab.base.parameters import Parameter
        from whitelab.ui.sidebar import knobs

        ranges = {"short": (0.5, 0, 2), "few": (5, 1, 30), "long": (0.5, 0, 10), "fine": (0.5, 0, 1), "open": (8, 1)}
        parameters = [Parameter(name, name, *ends) for name, ends in ranges.items()]
        knobs.spec("made", parameters, lambda text: text, 9)

    at = AppTest.from_function(page, default_timeout=PATIENCE).run()
    assert [one.key for one in at.slider] == ["made-short", "made-few"]
    assert [one.key for one in at.number_input] == ["made-long", "made-fine", "made-open"]


def test_a_knob_that_another_model_cannot_have_is_put_back_in_the_browser_too():
    """Deleted from the session only, it would come back from there at the next click."""

    def page():
        import streamlit as st

        from whitelab.ui.sidebar import knobs
        from whitelab.whitening import WHITENERS, canonical

        dim = st.number_input("d", value=384, key="d")
        st.write(knobs.spec("group", WHITENERS["group"].parameters, canonical, dim))

    at = AppTest.from_function(page).run()
    at.number_input(key="group-groups").set_value(64)
    assert at.run().markdown[0].value == "group:groups=64"
    at.number_input(key="d").set_value(32)
    at.run()
    box = at.number_input(key="group-groups").proto
    assert (box.set_value, box.value) == (True, 8)
    assert at.markdown[0].value == "group:groups=8"


@pytest.mark.parametrize(("key", "first", "gone"), [("task", "sts13", "sts15"), ("split", "test", "dev")])
def test_a_choice_that_other_data_lack_is_gone_from_the_address_too(key, first, gone, tmp_path):
    """Or the bar would show one task, once the first data are back, and a reload another."""

    def page():
        import streamlit as st

        from whitelab.ui.sidebar import data
        from whitelab.ui.widgets import address

        with address.of("overview", st.container()):
            data.choose()

    for folder, names in (("both", [first, gone]), ("other", [first, "train" if key == "split" else "sts12"])):
        for name in names:
            task, split = ("mine", name) if key == "split" else (name, "test")
            write(tmp_path / folder / f"{task}-{split}.csv", whiteningbert(("3", "A cat sits.", "A dog runs.")))
    at = AppTest.from_function(page, default_timeout=PATIENCE)
    at.query_params["data"] = str(tmp_path / "both")
    at.query_params[key] = gone
    assert at.run().selectbox(key=key).value == gone
    at.selectbox(key="data").set_value(str(tmp_path / "other"))
    assert at.run().selectbox(key=key).value != gone
    assert key not in at.query_params
    at.selectbox(key="data").set_value(str(tmp_path / "both"))
    assert at.run().selectbox(key=key).value == first
    assert key not in at.query_params


@pytest.mark.parametrize(
    ("key", "before", "typed", "taken"),
    [
        ("model", "model", ":1", "model:1"),
        ("model", "model", "static:", "static:model"),
        ("model", "someone/one", "another/one", "another/one"),
        ("data", "pairs", "2", "pairs2"),
        ("data", "pairs", "/few.csv", "pairs/few.csv"),
        ("data", "pairs", "3", "3"),
        ("data", "pairs", "demo", "demo"),
    ],
)
def test_a_name_pasted_over_a_part_of_it_stays_whole(key, before, typed, taken, place, tmp_path, monkeypatch):
    """Streamlit's box takes what stood there out of what is pasted; what stands for something alone is left so."""

    def page():
        import streamlit as st

        from whitelab.ui.sidebar import data, model
        from whitelab.ui.widgets import address

        with address.of("overview", st.container()):
            data.choose(), model.choose()

    write(tmp_path / "pairs" / "few.csv", whiteningbert(("3", "A cat sits.", "A dog runs.")))
    write(tmp_path / "pairs2" / "few.csv", whiteningbert(("3", "A cat sits.", "A dog runs.")))
    (tmp_path / "model").symlink_to(place / "model")
    monkeypatch.chdir(tmp_path)
    at = AppTest.from_function(page, default_timeout=PATIENCE)
    at.query_params[key] = before
    at.run().selectbox(key=key).set_value(typed)
    assert at.run().selectbox(key=key).value == taken
    if taken != typed:  # which a browser writes itself
        assert at.query_params[key] in (taken, [taken])


def test_what_a_link_spelt_otherwise_outlives_a_knob_that_is_drawn_later_until_it_is_moved():
    """Streamlit takes a default out of the address, and sends the whole of it as it knows it."""

    def page():
        import streamlit as st

        from whitelab.ui.widgets import address
        from whitelab.whitening import WHITENERS

        def shown(name):
            return WHITENERS[name].label

        with address.of("overview", st.container()), address.spelt("whitening", WHITENERS, shown):
            st.selectbox("Variant", list(WHITENERS), **address.bound("whitening", "pca", shown), format_func=shown)
        for name in ("format", "other")[: st.session_state.get("drawn", 0)]:
            st.segmented_control(name, ["a", "b"], default="a", key=name, bind="query-params")
        address.settle()

    def written(at):
        return [box.proto.body for box in at.get("html") if '"whitening"' in box.proto.body]

    at = AppTest.from_function(page, default_timeout=PATIENCE)
    at.query_params |= {"whitening": "clusters", "format": "a", "other": "a"}
    assert written(at.run())
    assert not written(at.run())
    at.session_state["drawn"] = 1
    (again,) = written(at.run())
    assert f'"whitening": ["{WHITENERS["clusters"].label}"]' in again
    at.selectbox(key="whitening").set_value("soft")
    at.session_state["drawn"] = 2
    assert not written(at.run())


def missed(at) -> list[str]:
    return [one.value for one in at.main.warning if "The address asks for" in one.value]


@pytest.mark.parametrize(
    "wrong",
    [
        {"k": "abc"},
        {"k": "0"},
        {"k": "1000000"},
        {"layers": "99"},
        {"layers": ["1", "99"]},
        {"layers": "1,99"},
        {"layers": "one"},
        {"whitening": "foo"},
        {"pooling": "max"},
        {"unit": "perhaps"},
        {"aggregate": "sum"},
        {"whitening": SOFT, "soft-gamma": "7"},
    ],
    ids=str,
)
def test_what_an_address_asks_for_and_cannot_have_is_said_until_the_knob_is_moved_or_the_page_left(wrong, small):
    at = until(start(**small | wrong))
    key, asked = list(wrong.items())[-1]
    (said,) = missed(at)
    assert f"{key}={', '.join(asked) if isinstance(asked, list) else asked}" in said.replace("\\", "")
    if key == "layers":
        assert not missed(choose(at, layers=[0]))
    else:
        at.query_params.clear()
        assert not missed(until(go_to(at, "layers")))


# page -> what can be had of its own knobs, as the app writes it or by name, and what cannot
KNOBS = {
    "data": ({"find": "guitar", "order": "lowest gold"}, {"order": "foo"}),
    "whitening": ({"format": "safetensors", "see": "Spectrum"}, {"format": "foo", "see": "foo"}),
    "anisotropy": ({"measure": "mean_cosine", "space": "Projection", "dims": "3"}, {"measure": "foo", "space": "foo"}),
    "layers": ({"searched": "whitened", "right-map": "Gain over raw"}, {"searched": "foo", "right-map": "foo"}),
    "dimensions": ({"controls-of-k": "false"}, {"controls-of-k": "perhaps"}),
    "uniformity": ({"positives": "gold >= 4"}, {"positives": "foo"}),
    "compare": ({"preset": "mteb", "part": "Grid"}, {"preset": "foo", "part": "foo", "tasks": "foo"}),
    "retrieval": ({"compared-by": "ndcg@10", "searched-rate": "5 %"}, {"compared-by": "foo", "searched-rate": "7 %"}),
    "advise": ({"purpose": "threshold"}, {"purpose": "foo"}),
    "probe": ({"classifier-demo": "linear"}, {"classifier-demo": "foo"}),
}


@pytest.mark.parametrize("page", KNOBS)
def test_what_an_address_asks_for_of_a_page_and_cannot_have_is_said_there(page, small):
    can, cannot = KNOBS[page]
    assert not missed(until(start(page, **small | can)))
    (said,) = missed(at := until(start(page, **small | cannot)))
    for key, word in cannot.items():
        assert f"{key}={word}" in said.replace("\\", "")
    at.query_params.clear()
    assert not missed(until(go_to(at, "overview")))


@pytest.mark.parametrize(
    ("page", "key", "rest"),
    [("anisotropy", "meant-cosine", {"space": "What a cosine means"}), ("retrieval", "searched-cosine", {})],
)
def test_a_link_holds_the_cosine_that_is_explained(page, key, rest, small):
    at = until(start(page, **small | rest | {key: "0.25"}))
    assert at.slider(key=key).value == 0.25
    assert not missed(at)


# page, part of it -> what is put to what there, by its key, as an address has it
CARRIED = [
    ("data", {}, {"find": ("guitar", "guitar"), "order": ("highest gold", "highest gold")}),
    ("anisotropy", {"space": "Neighbours"}, {"remedies": (True, "true")}),
    ("probe", {"more": "true"}, {"probe-settings": ("L1\nL2:pca", "L1\nL2:pca")}),
    ("compare", {"part": "WhiteningBERT, Figure 1"}, {"panel": ("labse", "LaBSE")}),
    (
        "compare",
        {"part": "WhitenedCSE, Figures 1 and 3"},
        {"losses-task": ("sts13", "sts13"), "losses-positives": ("ge4", "gold >= 4")},
    ),
]


@pytest.mark.parametrize(("page", "part", "knobs"), CARRIED, ids=[next(iter(knobs)) for *_, knobs in CARRIED])
def test_a_link_opens_the_view_that_its_page_was_put_to(page, part, knobs, small, tmp_path, monkeypatch):
    monkeypatch.setattr(neighbour_inspector, "_REMEDIED", 3)
    for task, pairs in (("sts12", 40), ("sts13", 30)):
        write_task(tmp_path, task, pairs=pairs)

    def opened(**query):
        return until(start(page, **small | {"data": str(tmp_path)} | part | query))

    def view(at):
        return data(at), [one.value.to_csv() for one in at.dataframe], [one.value for one in at.markdown], alts(at)

    by_hand = opened()
    plain = view(by_hand)
    put = view(choose(by_hand, **{key.replace("-", "_"): value for key, (value, _) in knobs.items()}))
    by_link = opened(**{key: word for key, (_, word) in knobs.items()})
    assert view(by_link) == put != plain
    assert not missed(by_link)


@pytest.mark.parametrize("typed", ["1,3", "L1+L3", "1 3", "L1,-1", ["1", "-1"], "3, 1"])
def test_layers_can_be_typed_into_an_address_as_they_are_written_elsewhere(typed, small):
    at = until(start(**small, layers=typed))
    assert at.get_by_key("layers").value == [1, 3]
    assert not missed(at)
    choose(at, layers=[2])
    assert at.get_by_key("layers").value == [2]


@pytest.mark.parametrize(
    ("whitening", "pooling"),
    [("pca", "mean"), (WHITENERS["pca"].label, "cls"), ("zca", "Mean"), (WHITENERS["zca"].label, "[CLS]")],
)
def test_nothing_is_said_of_an_address_that_can_be_had_be_it_the_defaults(whitening, pooling, small):
    at = until(start(**small, layers="1", k="8", whitening=whitening, pooling=pooling, fit="task", unit="false"))
    assert not missed(at)
    assert knob(at)["k"] == 8
    assert at.session_state["pooling"] == ("mean" if pooling.lower() == "mean" else "cls")


def test_all_directions_of_one_model_are_all_of_the_next_and_fewer_stay_as_many():
    def page(dims, k):
        import streamlit as st

        from whitelab.ui.sidebar.workspace import choose_k

        if k:
            st.session_state["k"] = k
        for dim in dims:
            choose_k("pca", dim)
            st.write(st.session_state["k"])

    for dims, k, found in (((768, 384, 768), None, [768, 384, 768]), ((768, 384, 768), 100, [100, 100, 100])):
        at = AppTest.from_function(page, args=(dims, k)).run()
        assert [int(one.value.strip("`")) for one in at.markdown] == found


def test_what_a_page_puts_into_the_address_leaves_k_there():
    """Streamlit sends the whole address as the server knows it, in which k, that a script writes, may be missing."""

    def page():
        import streamlit as st

        from whitelab.ui.widgets import address

        with address.of("training", st.container()):
            address.keep("k", 5, 10)
        address.put("runs", "a")

    at = AppTest.from_function(page).run()
    assert at.query_params["runs"] in ("a", ["a"])
    first, last = (box.proto.body for box in at.get("html"))
    assert '({"k": ["5"]})' in first
    assert '({"k": ["5"]})' in last
    assert first != last


def misspelt(at) -> list[str]:
    return [one.value.replace("\\", "") for one in at.main.warning if "this page knows" in one.value]


@pytest.mark.parametrize(
    ("page", "wrong", "meant"),
    [
        ("overview", {"whitning": "zca"}, "whitening"),
        ("overview", {"Layer": "2"}, "layers"),
        ("layers", {"whitening": SOFT, "soft_gama": "0.3"}, "soft-gamma"),
        ("compare", {"prest": "mteb"}, "preset"),
        ("compare", {"setings-whiteningbert": "L1"}, "settings-whiteningbert"),
        ("anisotropy", {"mesure": "mean_cosine"}, "measure"),
    ],
    ids=str,
)
def test_a_key_that_no_knob_asks_for_and_that_is_much_like_one_is_said(page, wrong, meant, small):
    at = until(start(page, **small | wrong))
    assert misspelt(at) == [f"The address has {list(wrong)[-1]}; this page knows {meant}."]


def test_of_keys_that_are_misspelt_few_are_said_and_their_markup_is_not_read(small):
    wrong = [*(f"layers{i}" for i in range(3)), *(f"layer{i}" for i in range(900)), "layers" * 10000]
    at = until(start(**small | dict.fromkeys(wrong, "1")))
    assert misspelt(at) == ["The address has layers0, layers1, layers2; this page knows layers."]
    at = until(start(**small | {"*layers*": "1", "<b>model": "1"}))
    (said,) = (one.value for one in at.main.warning)
    assert r"\*layers\*" in said


@pytest.mark.parametrize("page", ["training", "corpus", "compare", "overview"])
def test_nothing_is_said_of_a_key_of_another_page_or_of_streamlit_or_whose_knob_the_address_has(page, small):
    others = {"layer": "1", "layers": "2", "embed": "true", "embed_options": "light_theme", "utm_source": "x"}
    elsewhere = dict.fromkeys(("models", "tasks", "see", "seed", "part", "apart", "step", "present", "searched"), "1")
    assert not misspelt(until(start(page, **small | others | elsewhere)))


@pytest.mark.parametrize("layers", ["1", "3"])
def test_a_key_is_not_misspelt_beside_the_knob_it_is_like_though_streamlit_takes_that_out_at_its_default(layers, small):
    at = until(start(**small, layers=layers, layer="2"))
    assert ("layers" in at.query_params) == (layers == "3")
    assert not misspelt(at)
    assert not misspelt(at.run())
    at.query_params.pop("layers", None)  # as a browser does once it is moved there
    assert not misspelt(at.run())
    assert not misspelt(until(go_to(at, "data")))


# Of a choice: all are drawn where one is.
TOGETHER = {"vicreg-covariance", "vicreg-variance", "vicreg-invariance"}


def test_no_key_of_the_app_is_taken_for_another_and_every_knob_that_a_link_may_name_is_known(small, monkeypatch):
    names, real = {}, QueryParams.bind_widget

    def bind(self, param_key, *given, **more):
        names.setdefault(page, set()).add(param_key)
        return real(self, param_key, *given, **more)

    monkeypatch.setattr(QueryParams, "bind_widget", bind)
    page, at = "", start(**small)
    for page in QUESTIONS:
        until(go_to(at, page))
        assert names[page] <= at.session_state["address-asked"]
    knobs = set().union(*names.values()) | {"task", "split", "k", "row-a", "row-b", "apart", "present"}
    knobs |= {f"settings-{name}" for name in PRESETS} | {f"teach-step-{number}" for number in LESSONS}
    for family in (WHITENERS, OBJECTIVES):
        knobs |= {f"{name}-{parameter.name}" for name, one in family.items() for parameter in one.parameters}
    lessons = {"lesson", "step", "answers", "fixed", "guess1", "runs"}
    alike = {key for key in knobs | lessons if address.likest(key, knobs - {key})}
    assert alike - TOGETHER == address.LIKE_OTHERS
