"""The page of dimensions: every k of every layer, and what a smaller k buys."""

import pytest

import whitelab
from whitelab.retrieval.search_cost import processor_name

from .visiting import alts, start, until

pytestmark = [pytest.mark.model, pytest.mark.usefixtures("demo")]


def test_every_layer_has_its_best_k_and_knee_on_the_dimensions_page(demo):
    at = until(start("dimensions"))
    curves = whitelab.k_curves(demo, by_subset=False)
    table = at.dataframe[0].value
    assert list(table["layer"]) == list(range(7))
    assert list(table["best k"]) == [one.best_k for one in curves]
    assert list(table["knee"]) == [one.knee for one in curves]
    alt = next(alt for alt in alts(at) if "every layer by kept dimensions" in alt)
    assert f"layer 6 k = {curves[6].best_k}" in alt
    assert any(
        one.value == "PCA whitening, 7 layers at 384 values of k each: 2\u202f688 settings." for one in at.caption
    )


# What a smaller k buys


def captioned(start: str):
    return lambda at: any(caption.value.startswith(start) for caption in at.caption)


def test_the_costs_of_a_search_are_measured_on_demand_and_named_with_the_machine():
    at = until(start("dimensions", k="96"))
    assert "What does a smaller k buy?" in [one.value for one in at.subheader]
    assert len(at.get("plotly_chart")) == 2
    assert not captioned("Measured on")(at)  # nothing runs unasked
    at.get_by_key("search-corpus").set_value(10_000)
    at.run()
    at.button(key="measure").click()
    until(at.run(), captioned("Measured on"))
    caption = next(one.value for one in at.caption if one.value.startswith("Measured on"))
    assert processor_name() in caption
    assert "1 thread" in caption
    assert "10\u202f000 vectors: 3\u202f000 are your sentences" in caption
    headline = next(one.value for one in at.markdown if one.value.startswith("At k = 96"))
    assert "**0.25** of the memory of k = 384" in headline
    chart = at.get("plotly_chart")[2]
    assert "k = 96 takes" in chart.proto.alt
    assert "whitelab.search_costs(space, (1, 6), 'pca', corpus=10000" in at.code[-1].value


def test_a_measured_search_stays_for_another_k_and_goes_with_another_corpus():
    at = until(start("dimensions", k="96"))
    at.get_by_key("search-corpus").set_value(3000)
    at.run()
    at.button(key="measure").click()
    until(at.run(), captioned("Measured on"))
    at.slider(key="k").set_value(100)
    until(at.run())
    assert any("(k = 100 was not measured.)" in one.value for one in at.markdown)
    assert at.button(key="measure").label == "Measure again"
    at.button(key="measure").click()
    until(at.run(), lambda at: any(one.value.startswith("At k = 100") for one in at.markdown))
    at.get_by_key("search-corpus").set_value(10_000)
    until(at.run())
    assert not captioned("Measured on")(at)
    assert at.button(key="measure").label == "Measure"
