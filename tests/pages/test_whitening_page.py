"""The page of whitening: variants and fit scopes side by side, what moved, and what can be taken away."""

import pytest
from streamlit.testing.v1 import AppTest

import whitelab
from whitelab.scoring.paired import VERDICTS
from whitelab.scoring.setting import Protocol

from .visiting import live, metrics, said, scored, start, tables, until, write_scored

pytestmark = [pytest.mark.model, pytest.mark.usefixtures("demo")]


def whitening_page(*specs, **query) -> AppTest:
    """The page with these variants side by side."""
    at = until(start("whitening", **query))
    if specs:
        at.multiselect(key="side-by-side").set_value(list(specs))
        until(at.run())
    return at


def test_the_variants_side_by_side_have_the_scores_and_tests_of_the_package(demo):
    at = whitening_page("center", "zca", "group:groups=32", k="100")
    specs = ["none", "center", "zca", "group:groups=32", "pca"]  # raw and the workspace's are always among them
    settings = [{"whitening": spec, "k": 100 if "group" not in spec and spec != "none" else None} for spec in specs]
    scores = [whitelab.score(demo, Protocol("m", "d", "demo", "test", "mean", (1, 6), **one)) for one in settings]
    found = whitelab.paired(demo, scores).against(0)
    table = tables(at)[0]
    assert list(table["Spearman"]) == pytest.approx([one.spearman for one in scores])
    assert list(table["95 %"]) == [f"{one.low:.2f} to {one.high:.2f}" for one in found]
    assert list(table["Rank"]) == [one.rank for one in scores]
    assert list(table["Isotropy"])[1:] == pytest.approx([one.isotropy for one in scores[1:]])
    assert list(table["Verdict"]) == ["Baseline", *(VERDICTS[one.verdict] for one in found[1:])]
    shown = metrics(at)
    assert shown["Spearman, PCA whitening"] == live(at) == f"{scores[-1].spearman:.2f}"
    assert shown["Difference from raw"] == f"{found[-1].difference.estimate:+.2f}"


def test_another_baseline_turns_the_difference(demo):
    at = until(start("whitening", baseline="Centred"))
    pca, centred = (
        whitelab.score(demo, Protocol("m", "d", "demo", "test", "mean", (1, 6), whitening=name)).spearman
        for name in ("pca", "center")
    )
    assert metrics(at)["Difference from centred"] == f"{pca - centred:+.2f}"
    assert said(at, "points below centred")


def test_variants_that_must_agree_say_so_with_the_reason():
    together = whitening_page("pca", "zca")
    assert said(together, "**PCA whitening, ZCA whitening** must agree")
    assert said(together, "they differ by a rotation only")
    end = whitening_page("zca", "soft:gamma=1,alpha=0")
    assert said(end, "γ = 1 without a ridge is ZCA whitening")


def test_variants_that_may_differ_say_nothing_of_agreement():
    assert not said(whitening_page("pca", "center"), "must agree")
    assert not said(whitening_page("pca", "pca_cor", k="100"), "must agree")


def test_a_score_that_falls_under_whitening_is_explained_and_one_that_rises_is_not():
    loss = until(start("whitening", layers="6"))
    assert said(loss, "**The loss is real.**")
    assert said(loss, "Encoders trained contrastively")
    gain = until(start("whitening", layers="1", whitening="Standardised"))
    assert said(gain, "**The gain is real.**")
    assert not said(gain, "Encoders trained contrastively")


def test_the_fit_scopes_are_side_by_side_and_cross_fitting_can_be_the_workspaces(demo):
    at = until(start("whitening", fit="Cross-fitted halves"))
    task, cross = (scored(demo, fit=fit) for fit in ("task", "cross"))
    assert live(at) == cross == metrics(at)["Spearman, cross-fitted"]
    fits = tables(at)[1]
    assert [f"{value:.2f}" for value in fits["Spearman"]] == [task, cross]
    assert list(fits["Sentences"]) == ["3\u202f000 = 7.8 d", "1\u202f500 = 3.9 d"]
    assert said(at, f"reaches {task}; cross-fitted, on sentences it is not scored on, {cross}")
    assert said(at, "cross-fitting has two maps, and an export holds one")


def test_pairs_that_cannot_be_halved_say_why(tmp_path):
    at = until(start("whitening", data=write_scored(tmp_path / "one.tsv", [4.5])))
    assert metrics(at)["Spearman, cross-fitted"] == "undefined"
    assert said(at, "Cross-fitting is not possible here")


@pytest.mark.parametrize(
    ("tab", "charts"), [("Covariance", 4), ("Spectrum", 3), ("Gold and cosine", 4), ("Pairs that moved most", 2)]
)
def test_only_the_open_tab_is_drawn(tab, charts):
    at = until(start("whitening", see=tab))
    assert len(at.get("plotly_chart")) == charts
    assert len(at.dataframe) == 2 + (tab == "Pairs that moved most")


@pytest.mark.parametrize("which", ["all", "towards gold", "away from gold"])
def test_the_pairs_that_moved_most_are_listed_with_their_text(which, demo):
    at = until(start("whitening", see="Pairs that moved most", moved=which))
    before, after = (
        whitelab.score(demo, Protocol("m", "d", "demo", "test", "mean", (1, 6), whitening=name)).cosines
        for name in ("none", "pca")
    )
    moves = whitelab.moved(before, after, demo.gold, demo.n_pairs)
    wanted = [one for one in moves if which == "all" or one.towards_gold == (which == "towards gold")][:50]
    table, pairs = tables(at)[1], whitelab.load("demo")
    assert list(table["First sentence"]) == [pairs.first[one.pair] for one in wanted]
    assert list(table["Moved"]) == [one.change for one in wanted]
    assert set(table["Direction"]) == ({which} if which != "all" else {"towards gold", "away from gold"})


def downloads(at: AppTest) -> list[str]:
    return [one.proto.label for one in at.get("download_button")]


def test_the_map_is_offered_in_every_format_with_lines_that_name_no_path():
    at = until(start("whitening", k="100"))
    for kind, name in (("npz", ".npz"), ("faiss", ".faiss")):
        at.get_by_key("format").set_value(kind)
        until(at.run())
        assert f"Download {name}" in downloads(at)
        lines = next(one.value for one in at.code if "all-MiniLM-L6-v2-layers-1-6-pca-k100" in one.value)
        assert f"all-MiniLM-L6-v2-layers-1-6-pca-k100{name}" in lines
        assert "/" not in lines.replace("# x: float32 embeddings", "")
    at.get_by_key("format").set_value("scikit-learn")
    until(at.run())
    assert any("WhiteningTransformer('pca', k=100)" in one.value for one in at.code)


def test_the_model_folder_is_made_on_demand_and_then_offered():
    at = until(start("whitening", format="sentence-transformers", k="100"))
    assert not any("zip" in label for label in downloads(at))
    at.button(key="make-model").click()
    until(at.run(), lambda at: any(label.startswith("Download .zip") for label in downloads(at)))
    assert any("SentenceTransformer(" in one.value for one in at.code)
