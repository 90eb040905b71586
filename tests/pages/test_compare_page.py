"""The page of comparisons: grids of settings, two protocols step by step, and the papers' figures."""

import numpy as np
import pytest
from streamlit.testing.v1 import AppTest

import whitelab
from whitelab.compare import FIELDS, Bench, compare, differences, resample, walk
from whitelab.encoding.checkpoints import BUNDLED_NAME
from whitelab.scoring.setting import parse_settings

from .visiting import complete, has_downloads, scored, start, until

pytestmark = [pytest.mark.model, pytest.mark.usefixtures("demo")]


def compared(at: AppTest):
    return next((one.value for one in at.dataframe if "Setting" in one.value.columns), None)


def test_nothing_is_compared_before_it_is_asked_for():
    at = until(start("compare"))
    assert compared(at) is None
    assert any("press Compare" in one.value for one in at.info)


def compare_demo(settings: str, **query) -> AppTest:
    """The compare page after a comparison of these settings on the demonstration set."""
    at = until(start("compare", **query))
    at.text_area[0].set_value(settings).run()
    at.button(key="compare").click()
    return until(at.run(), has_downloads)


def test_a_comparison_shows_the_scores_and_why_some_are_missing(demo):
    at = compare_demo("L6\nL1+L6:pca\nL9", models=["bundled", "nowhere"])
    table = compared(at)
    by_row = {(row["Model"], row["Setting"]): row["demo"] for row in table.to_dict("records")}
    mean = {"aggregate": "mean"}  # the protocol's, not the workspace's
    assert f"{by_row[BUNDLED_NAME, 'mean/L6']:.2f}" == scored(demo, layers=(6,), whitening="none", **mean)
    assert f"{by_row[BUNDLED_NAME, 'mean/L1+L6:pca']:.2f}" == scored(demo, layers=(1, 6), **mean)
    assert np.isnan(by_row["nowhere", "mean/L6"])
    assert np.isnan(by_row[BUNDLED_NAME, "mean/L9"])
    said = [one.value for one in at.markdown]
    assert any("nowhere" in text and "not" in text for text in said)
    assert any("mean/L9 on demo" in text and "must lie between 0 and 6" in text for text in said)


def test_a_reload_keeps_what_was_computed_and_a_longer_grid_computes_what_is_new(monkeypatch):
    compare_demo("L2\nL3")
    scored, real = [], Bench.score
    monkeypatch.setattr(Bench, "score", lambda self, one, preset: scored.append(str(one)) or real(self, one, preset))
    again = until(start("compare", **{"settings-whiteningbert": "L2\nL3"}))  # a reload: another session
    assert has_downloads(again)
    assert list(compared(again)["Setting"]) == ["mean/L2", "mean/L3"]
    again.text_area[0].set_value("L2\nL3\nL4").run()
    assert any("2 of 3 cells are known" in one.value for one in again.info)
    assert list(compared(again)["Setting"]) == ["mean/L2", "mean/L3"]
    again.button(key="compare").click()
    until(again.run(), has_downloads)
    assert scored == ["mean/L4"]


def test_rows_are_sorted_and_filtered_and_files_follow():
    at = compare_demo("L1\nL6\nL3")
    by_value = compared(at).sort_values("demo", ascending=False)["Setting"].tolist()
    at.selectbox(key="sort-by").select("demo").run()
    assert list(compared(at)["Setting"]) == by_value != ["mean/L1", "mean/L6", "mean/L3"]
    at.multiselect(key="only-settings").set_value(["mean/L3", "mean/L6"]).run()
    assert list(compared(at)["Setting"]) == [name for name in by_value if name != "mean/L1"]


def test_intervals_and_the_test_between_two_rows_are_the_packages(demo):
    at = compare_demo("L6\nL1\nL1+L6:pca")
    at.toggle(key="tested").set_value(True).run()
    until(at, lambda at: any(one.value == "One row against another" for one in at.subheader))
    settings = parse_settings("L6;L1;L1+L6:pca")
    drawn = resample(list(compare(["bundled"], "demo", ["demo"], settings, store=whitelab.Store())))
    rows = [(BUNDLED_NAME, str(one)) for one in settings]
    at.selectbox(key="row-a").select(rows[2]).run()
    at.selectbox(key="row-b").select(rows[1]).run()
    (duel,) = drawn.against(rows[2], rows[1])
    table = next(one.value for one in at.dataframe if "Verdict" in one.value.columns)
    assert table["A less B"][0] == pytest.approx(duel.difference.estimate)
    assert table["95 %"][0] == f"{duel.difference.low:+.2f} to {duel.difference.high:+.2f}"
    assert any(f"{abs(duel.difference.estimate):.2f}" in one.value.replace("\\", "") for one in at.markdown)
    at.segmented_control(key="shown").set_value("95 % interval").run()
    low, high = drawn.interval(rows[0], "demo")
    assert compared(at)["demo"][0] == f"{low:.2f} to {high:.2f}"


def test_two_protocols_show_what_differs_and_walk_from_one_to_the_other():
    at = until(start("compare", part="Two protocols"))
    table = next(one.value for one in at.dataframe if "Decision" in one.value.columns)
    assert list(table["Decision"]) == [FIELDS[name] for name in differences("whiteningbert", "mteb")]
    at.button(key="walk").click()
    until(at.run(), lambda at: any("Step" in one.value.columns for one in at.dataframe) and complete(at))
    steps = next(one.value for one in at.dataframe if "Step" in one.value.columns)
    expected = walk("bundled", "demo", "demo", "whiteningbert", "mteb", store=whitelab.Store())
    assert list(steps["Step"]) == [*(FIELDS[one.field] for one in expected.steps), "Sum"]
    assert steps["demo"].tolist() == pytest.approx([*(one.change for one in expected.steps), expected.difference])
    assert steps["demo"][:-1].sum() == pytest.approx(steps["demo"].iloc[-1])
    assert at.get("plotly_chart")
    at.selectbox(key="to-preset").select("whiteningbert").run()
    assert any("Nothing differs between them" in one.value for one in at.info)


def test_a_protocol_that_fits_on_other_text_asks_for_it(tmp_path):
    (tmp_path / "text.txt").write_text("".join(f"Sentence {i} says {i * i}.\n" for i in range(40)))
    query = {"protocol": "BERT-whitening, corpus", "corpus-text": str(tmp_path / "text.txt")}
    at = compare_demo("L1+L6:pca@8", **query)
    value = compared(at)["demo"][0]
    options = {"corpus": query["corpus-text"], "store": whitelab.Store()}
    settings = parse_settings("L1+L6:pca@8")
    (cell,) = compare(["bundled"], "demo", ["demo"], settings, "bert-whitening-corpus", **options)
    assert value == pytest.approx(cell.spearman)


PAPERS = {
    "WhiteningBERT, Figure 1": 2,
    "WhiteningBERT, Figure 2": 1,
    "BERT-whitening, Figure 1": 1,
    "WhitenedCSE, Figures 1 and 3": 2,
}


@pytest.mark.parametrize("name", PAPERS)
def test_a_figure_of_a_paper_is_one_click_away_with_words_and_data(name):
    at = start("compare", part=name)
    until(at, lambda at: len(at.get("plotly_chart")) >= PAPERS[name] and complete(at))
    assert all(len(chart.proto.alt) > 20 for chart in at.get("plotly_chart"))
    assert sum(one.label == "Data (CSV)" for one in at.get("download_button")) == PAPERS[name]


def test_a_printed_panel_stands_beside_ours_and_no_difference_where_the_model_is_another():
    at = start("compare", part="WhiteningBERT, Figure 1")
    until(at, lambda at: len(at.get("plotly_chart")) == 2 and complete(at))
    at.selectbox(key="panel").select("labse").run()
    assert any("Printed: **LaBSE**" in one.value for one in at.markdown)
    assert len(at.get("plotly_chart")) == 2
    assert any("is not among the four printed models" in one.value for one in at.caption)


def test_a_setting_that_cannot_be_read_is_said_and_nothing_is_lost():
    at = until(start("compare"))
    at.text_area[0].set_value("L6\nsix")
    until(at.run(), lambda at: any("setting='six' must look like" in one.value for one in at.error))
    assert at.text_area[0].value == "L6\nsix"
