"""The page of comparisons: grids of settings, two presets step by step, and the papers' figures."""

import csv
import io
import json
import re
from zipfile import ZipFile

import numpy as np
import pytest
import torch
from safetensors.torch import load_file
from streamlit.testing.v1 import AppTest
from tiny import build_model

import whitelab
from whitelab.base.wording import bare, p_value
from whitelab.compare import FIELDS, PRESETS, Bench, Grid, compare, differences, published, resample, walks, written
from whitelab.compare import grid as compared
from whitelab.encoding.names import shown_name
from whitelab.scoring.paired import RESAMPLES
from whitelab.scoring.setting import parse_settings
from whitelab.statistics.significance import least_p
from whitelab.ui.widgets.chart import SHOWN

from .visiting import (
    alts,
    choose,
    code,
    complete,
    data,
    downloads,
    failed,
    go_to,
    live,
    press,
    said,
    scored,
    start,
    table,
    until,
)

pytestmark = pytest.mark.model


def full(at) -> bool:
    """Whether every cell is there."""
    return "LaTeX" in downloads(at)


@pytest.fixture
def filled(small):
    """The page after a comparison of these settings."""

    def opened(settings: str, **query) -> AppTest:
        at = until(start("compare", **small | query))
        at.text_area[0].set_value(settings).run()
        return press(at, "compare", full)

    return opened


def cells(small, settings: str, *preset, **options):
    wanted = parse_settings(settings.replace("\n", ";"))
    return list(compare(Grid([small["model"]], small["data"], ["pairs"], wanted, *preset, **options)))


@pytest.mark.parametrize("form", ["csv", "markdown", "latex"])
def test_a_table_that_leaves_the_page_is_the_packages_and_says_what_it_was_made_under(filled, small, saved, form):
    filled("L1:pca", preset="mteb", dtype="bfloat16")
    made = cells(small, "L1:pca", "mteb", dtype="bfloat16")
    text = saved[f"as-{form}"]()
    assert text == written(made, form, "mteb", data=small["data"])
    assert "bfloat16" in text
    assert "pairs.csv" in text


def test_the_pages_results_hold_its_table_as_its_buttons_give_it(filled, saved, monkeypatch):
    monkeypatch.setattr("whitelab.ui.frame.page_zip.svgs", lambda figures: {})  # which ask for a browser
    choose(filled("L1:zca\nL1:pca", tested=True), lambda at: table(at, "Verdict") is not None)
    with ZipFile(io.BytesIO(saved["page-zip"]())) as packed:
        for form, ending in (("csv", "csv"), ("markdown", "md"), ("latex", "tex")):
            assert packed.read(f"data/grid.{ending}").decode() == saved[f"as-{form}"]()
        assert {"pairs_low", "resamples", "dtype", "max_length", "data", "made_by"} <= {
            *next(csv.reader(io.StringIO(packed.read("data/grid.csv").decode())))
        }


def test_a_link_holds_the_two_rows_that_are_compared(filled, small):
    name = shown_name(small["model"])
    wanted = {"row-a": (name, "mean/L1+L3:pca"), "row-b": (name, "mean/L3:pca")}
    words = {key: " \u00b7 ".join(row) for key, row in wanted.items()}
    for link in (words, {key: words[other] for key, other in (("row-a", "row-b"), ("row-b", "row-a"))}):
        at = filled("L3\nL3:pca\nL1+L3:pca", tested="true", **link)
        until(at, lambda at: table(at, "Verdict") is not None)
        assert {key: " \u00b7 ".join(at.selectbox(key=key).value) for key in link} == link


def test_a_link_holds_what_the_table_shows_before_it_is_known_whether_a_paper_prints_it(filled, monkeypatch):
    at = filled("L3:pca@7", shown="95 % interval")
    assert at.get_by_key("shown").value == "95 % interval"
    at = filled("L3:pca@7", shown="foo")
    assert at.get_by_key("shown").value == "Measured"
    assert said(at, "The address asks for shown=foo, which cannot be had here.")
    monkeypatch.setattr(compared, "printed", lambda *_: published.numbers("bert-whitening")[0])
    assert filled("L2:pca@7\nL1:pca@7", shown="Difference").get_by_key("shown").value == "Difference"


def test_a_link_holds_how_the_table_is_sorted_and_filtered(filled, small):
    rows, last = "L0+L3\nL0+L2\nL0+L1", ["mean/L0+L3", "mean/L0+L1"]
    shown = {"only-settings": last, "only-tasks": "pairs", "only-models": shown_name(small["model"])}
    for by, wanted in (("setting", last[::-1]), ("As computed", last)):
        at = filled(rows, **shown | {"settings-whiteningbert": rows, "sort-by": by})
        assert table(at, "Setting")["Setting"].tolist() == wanted
        assert not said(at, "The address asks for")
    keys = ("sort-by", *shown)
    at = filled(rows, **dict.fromkeys(keys, "foo") | {"settings-whiteningbert": rows})
    assert said(at, *(f"{key}=foo" for key in keys))


def test_models_whose_names_end_alike_are_shown_by_the_names_that_the_table_gives_them(filled, tmp_path):
    models = [str(build_model(tmp_path / place / "model")) for place in ("a", "b")]
    at = filled("L3\nL1", models=models)
    assert table(at, "Setting")["Model"].tolist() == ["a/model"] * 2 + ["b/model"] * 2
    choose(at, only_models=["b/model"])
    assert table(at, "Setting")["Model"].tolist() == ["b/model"] * 2


def test_a_comparison_shows_the_scores_and_why_some_are_missing_and_tests_row_against_row(filled, small, space):
    at = filled("L3\nL1+L3:pca\nL9", models=[small["model"], "nowhere"])
    name = shown_name(small["model"])
    by_row = {(row["Model"], row["Setting"]): row["pairs"] for row in table(at, "Setting").to_dict("records")}
    for text in ("L3", "L1+L3:pca"):  # the preset's aggregate, not the workspace's
        assert f"{by_row[name, f'mean/{text}']:.2f}" == scored(space, f"{text} aggregate=mean")
    assert np.isnan(by_row["nowhere", "mean/L3"])
    assert np.isnan(by_row[name, "mean/L9"])
    kept = list(csv.DictReader(io.StringIO(data(at)["grid"])))  # of the page's results
    assert {row["starved"] for row in kept} == {""}  # no map is
    kept = {(row["model"], row["setting"]): float(row["pairs"] or "nan") for row in kept}
    assert kept == pytest.approx(by_row, nan_ok=True)
    assert said(at, "nowhere", "mean/L9 on pairs", "must lie between 0 and 3")

    choose(at, lambda at: said(at, "is more than chance") or table(at, "Verdict") is not None, tested=True)
    drawn = resample(cells(small, "L3\nL1+L3:pca"))
    rows = [(name, f"mean/{text}") for text in ("L3", "L1+L3:pca")]
    choose(choose(at, row_a=rows[1]), row_b=rows[0])
    (duel,) = drawn.against(rows[1], rows[0])
    shown = table(at, "Verdict")
    assert shown["A less B"][0] == pytest.approx(duel.difference.estimate)
    assert shown["95 %"][0] == f"{duel.difference.low:+.2f} to {duel.difference.high:+.2f}"
    assert shown["p"][0] == bare(p_value(duel.difference.p_value, least_p(RESAMPLES)))
    assert said(at, f"{abs(duel.difference.estimate):.2f}")
    (kept,) = csv.DictReader(io.StringIO(data(at)["row-against-row"]))
    assert float(kept["difference"]) == pytest.approx(duel.difference.estimate)
    sides = [(kept[f"model_{side}"], kept[f"setting_{side}"]) for side in "ab"]
    assert (kept["preset"], *sides) == ("whiteningbert", rows[1], rows[0])  # which rows it was
    result = {"task_name": "pairs", "scores": {"test": [{"hf_subset": "default", "cosine_spearman": 0.4321}]}}
    meta = {"name": "someone/model", "revision": "abc"}
    files = [("pairs.json", json.dumps(result).encode(), "application/json")]
    uploader = next(one for one in at.get("file_uploader") if one.key == "mteb-files")
    uploader.set_value([*files, ("model_meta.json", json.dumps(meta).encode(), "application/json")]).run()
    assert table(at, "Setting").to_dict("records")[-1] == {
        "Model": "someone/model",
        "Setting": "MTEB abc",
        "pairs": pytest.approx(43.21),
    }
    assert next(one for one in at.get("download_button") if one.proto.label == "MTEB").proto.disabled
    assert said(at, "one Spearman over all its pairs, and this preset")  # and this one is another
    until(go_to(until(go_to(at, "data")), "compare"))
    assert table(at, "Setting").to_dict("records")[-1]["Model"] == "someone/model"  # on another visit too
    low, high = drawn.interval(rows[0], "pairs")
    assert table(choose(at, shown="95 % interval"), "Setting")["pairs"][0] == f"{low:.2f} to {high:.2f}"


def test_published_numbers_are_offered_only_where_a_paper_prints_one_and_no_name_is_cut(filled, monkeypatch):
    none = "The papers print no number"
    at = filled("L3\nL1+L3:shuffled_group:groups=4")
    assert at.get_by_key("shown").options == ["Measured", "95 % interval"]
    assert said(at, none)
    widths = json.loads(next(one for one in at.dataframe if "Setting" in one.value.columns).proto.columns)
    assert widths["Setting"]["width"] >= 7 * len("mean/L1+L3:shuffled_group:groups=4")
    number = published.numbers("bert-whitening")[0]
    monkeypatch.setattr(compared, "printed", lambda *_: number)
    at = filled("L2")
    assert not said(at, none)
    score = table(at, "Setting")["pairs"][0]
    assert table(choose(at, shown="Difference"), "Setting")["pairs"][0] == pytest.approx(score - number.value)
    (kept,) = csv.DictReader(io.StringIO(data(at)["grid-difference"]))  # of the page's results, beside the table
    assert float(kept["pairs"]) == pytest.approx(score - number.value)


def test_nothing_is_compared_unasked_a_reload_keeps_it_and_a_longer_grid_computes_what_is_new(
    filled, small, monkeypatch
):
    at = until(start("compare", **small))
    assert table(at, "Setting") is None
    assert said(at, "press Compare")
    filled("L2\nL3")
    tried, real = [], Bench.score
    monkeypatch.setattr(Bench, "score", lambda self, one, preset: tried.append(str(one)) or real(self, one, preset))
    again = until(start("compare", **small | {"settings-whiteningbert": "L2\nL3"}))  # a reload: another session
    assert full(again)
    assert list(table(again, "Setting")["Setting"]) == ["mean/L2", "mean/L3"]
    again.text_area[0].set_value("L2\nL3\nL0").run()
    assert said(again, "2 of 3 cells are known")
    assert list(table(again, "Setting")["Setting"]) == ["mean/L2", "mean/L3"]
    press(again, "compare", full)
    assert tried == ["mean/L0"]


def test_a_model_that_cannot_be_had_is_refused_before_anything_is_computed_and_never_counted(small):
    wrong = ["bundled:9", "static:bundled:2", "no name at all"]
    at = until(start("compare", **small | {"models": [small["model"], *wrong, "someone/unheard-of"]}))
    refusals = [error.value for error in at.error]
    assert len(refusals) == 3
    assert all(f"'{name}'" in text.replace("\\", "") for name, text in zip(wrong, refusals, strict=True))
    assert "1 to 6 blocks" in refusals[0]
    assert said(at, "someone/unheard-of is neither on this machine nor in the catalogue")
    rows = len(at.text_area[0].value.splitlines())
    assert at.button(key="compare").label == f"Compare {2 * rows} cells"


def test_a_star_is_each_layer_of_a_model_in_the_table_and_in_its_code(filled, small, tmp_path, capsys):
    models = [small["model"], str(build_model(tmp_path / "shallow", layers=1))]
    at = filled("L*", models=models)
    rows = table(at, "Setting")
    layers = [["mean/L0", "mean/L1"] if "shallow" in model else [f"mean/L{i}" for i in range(4)] for model in models]
    assert list(rows["Setting"]) == sum(layers, [])
    assert rows["pairs"].notna().all()
    names = {"whitelab": whitelab, "data": small["data"], "tasks": ["pairs"]}
    lines = code(at).partition("score = ")[0]
    exec(lines[lines.index("from whitelab.compare import Grid") :], names)
    assert [cell.spearman for cell in names["cells"]] == pytest.approx(list(rows["pairs"]))
    assert capsys.readouterr().out.count("mean/L") == len(rows)


def test_rows_are_sorted_and_filtered(filled):
    at = filled("L1\nL0\nL3")
    by_value = table(at, "Setting").sort_values("pairs", ascending=False)["Setting"].tolist()
    assert list(table(choose(at, sort_by="pairs"), "Setting")["Setting"]) == by_value
    choose(at, only_settings=["mean/L3", "mean/L0"])
    assert list(table(at, "Setting")["Setting"]) == [name for name in by_value if name != "mean/L1"]


@pytest.mark.parametrize("part", ["Grid", "Two presets", "WhiteningBERT, Figure 2"])
def test_pickled_weights_of_the_bars_model_are_read_here_too(small, tmp_path, part):
    folder = build_model(tmp_path / "pickled")
    torch.save(load_file(folder / "model.safetensors"), folder / "pytorch_model.bin")
    (folder / "model.safetensors").unlink()
    at = until(start("compare", **small | {"model": str(folder)}, part=part), lambda at: at.error)
    at.checkbox(key="allow-bin").check()
    at = until(at.run())
    if part == "Grid":
        at.text_area[0].set_value("L3").run()
        at = press(at, "compare", full)
        assert table(at, "Setting")["pairs"].notna().all()
        assert "allow_bin" in code(at)
    elif part == "Two presets":
        press(at, "walk", lambda at: table(at, "Step") is not None and complete(at))
    else:
        until(at, lambda at: alts(at) and complete(at))


def test_two_presets_show_what_differs_and_walk_from_one_to_the_other(small):
    at = until(start("compare", **small, part="Two presets"))
    assert list(table(at, "Decision")["Decision"]) == [FIELDS[name] for name in differences("whiteningbert", "mteb")]
    press(at, "walk", lambda at: table(at, "Step") is not None and complete(at))
    steps = table(at, "Step")
    encoder = whitelab.load_encoder(small["model"])
    expected = next(walks(encoder, small["data"], ["pairs"], "whiteningbert", "mteb", store=whitelab.Store()))
    assert list(steps["Step"]) == [*(FIELDS[one.field] for one in expected.steps), "Sum"]
    assert steps["pairs"].tolist() == pytest.approx([*(one.change for one in expected.steps), expected.difference])
    assert steps["pairs"][:-1].sum() == pytest.approx(steps["pairs"].iloc[-1])
    assert "fit" in expected.idle
    assert said(at, "fitted on (goes with the whitening)")
    assert alts(at)
    rows = list(csv.DictReader(io.StringIO(data(at)["walk-steps"])))
    made = {"model": "model", "task": "pairs", "from_preset": "whiteningbert", "to_preset": "mteb"}
    made |= {f"{end}_setting": PRESETS[made[f"{end}_preset"]].setting for end in ("from", "to")}
    assert rows
    assert all(row | made == row for row in rows)
    assert table(choose(at, dtype="bfloat16"), "Step") is None  # another walk, for which nobody has asked
    assert said(choose(at, to_preset="whiteningbert"), "Nothing differs between them")


def test_a_link_names_the_ends_of_a_walk_by_key_or_label_and_what_cannot_be_had_is_said(small):
    ends = {"from-preset": "bert-whitening", "to-preset": "SimCSE / SentEval, all", "walk-setting": "mean/L1+L3"}
    rows = {"settings-whiteningbert": "mean/L1+L3\nmean/L-1"}
    at = until(start("compare", **small, part="Two presets", **ends, **rows))
    assert list(table(at, "Decision").columns) == ["Decision", "BERT-whitening, target", "SimCSE / SentEval, all"]
    assert at.get_by_key("walk-setting").value == "mean/L1+L3"
    assert not said(at, "cannot be had")
    at = until(start("compare", **small, part="Two presets", **{"from-preset": "nosuch"}))
    assert said(at, "The address asks for from-preset=nosuch, which cannot be had here.")
    assert not said(choose(at, from_preset="mteb"), "cannot be had")


@pytest.mark.parametrize(
    "query",
    [{"part": "Two presets", "from-preset": "BERT-whitening, target"}, {"part": "BERT-whitening, Figure 1"}],
    ids=["walk", "figure"],
)
def test_where_splits_are_lacking_that_is_said_beside_what_is_fitted_on_them(small, tmp_path, query):
    pairs = whitelab.load(small["data"])
    rows = enumerate(zip(pairs.gold, pairs.first, pairs.second, strict=True))
    lines = (f"main-news\tx\t2012\t{i}\t{score}\t{one}\t{other}\n" for i, (score, one, other) in rows)
    (tmp_path / "sts-b-test.csv").write_text("".join(lines))  # as published
    at = until(start("compare", **small | {"data": str(tmp_path)} | query))
    assert said(at, "stsb: not all published splits are here, so maps are fitted on fewer sentences")


def test_the_code_makes_the_walk_that_was_asked_for_and_none_before(small, capsys):
    at = until(start("compare", **small, part="Two presets"))
    assert "walks(" not in code(at)
    choose(at, from_preset="mteb", to_preset="bert-whitening", walk_setting="mean/L1+L3")
    press(at, "walk", lambda at: table(at, "Step") is not None and complete(at))
    tasks = re.search("^data, tasks = .*$", code(at), re.MULTILINE)[0]
    names = {"whitelab": whitelab, "encoder": whitelab.load_encoder(small["model"])}
    lines = code(at).partition("score = ")[0]
    exec(f"{tasks}\n{lines[lines.index('from whitelab.compare import walks') :]}", names)
    printed = [float(one) for one in re.findall(r"-?\d+\.\d+(?:e-?\d+)?", capsys.readouterr().out)]
    shown = table(at, "Step")["pairs"].dropna().tolist()
    shown += [float(row["spearman"]) for row in csv.DictReader(io.StringIO(data(at)["walk-steps"]))]
    assert [one for one in shown if not any(one == pytest.approx(other) for other in printed)] == []


def test_a_preset_that_fits_on_other_text_asks_for_it(filled, small, place):
    corpus = str(place / "corpus.txt")
    at = filled("L1+L3:pca@8", preset="BERT-whitening, corpus", **{"corpus-text": corpus})
    (cell,) = cells(small, "L1+L3:pca@8", "bert-whitening-corpus", corpus=corpus)
    assert table(at, "Setting")["pairs"][0] == pytest.approx(cell.spearman)


def test_every_figure_of_a_paper_is_one_click_away_with_words_data_and_the_code_that_makes_it(small, capsys):
    losses = "alignment", "uniformity", "spearman"
    usual, presets = "whiteningbert", {"paper-ks": "bert-whitening"}
    for name, (charts, key, columns) in {
        "WhiteningBERT, Figure 1": (2, "paper-pairs", ["spearman"]),
        "WhiteningBERT, Figure 2": (1, "paper-sizes", ["spearman"]),
        "BERT-whitening, Figure 1": (1, "paper-ks", ["spearman"]),
        "WhitenedCSE, Figures 1 and 3": (2, "paper-losses", losses),
    }.items():
        at = until(start("compare", **small, part=name), lambda at: len(alts(at)) >= charts and complete(at))  # noqa: B023
        assert all(len(alt) > 20 for alt in alts(at))
        assert downloads(at).count("Data (CSV)") == charts
        rows = list(csv.DictReader(io.StringIO(data(at)[key])))
        assert {(row["model"], row["task"], row["preset"]) for row in rows} == {
            ("model", "pairs", presets.get(key, usual))
        }
        assert all({"model", "task"} <= {*one.made} for one in at.session_state[SHOWN].values())  # below each figure
        numbers = [float(row[column]) for row in rows for column in columns if row[column]]
        capsys.readouterr()
        exec(code(at), {})
        *_, score, _ = lines = capsys.readouterr().out.splitlines()
        printed = [float(one) for one in re.findall(r"-?\d+\.\d+(?:e-?\d+)?", "\n".join(lines))]
        for number in [max(numbers)] if key == "paper-ks" else numbers:
            assert any(number == pytest.approx(one) for one in printed), (name, number)
        assert f"{float(score):.2f}" == live(at)
        if charts == 2 and "Figure 1" in name and name.startswith("WhiteningBERT"):
            assert said(choose(at, panel="labse"), "Printed: **LaBSE**", "is not among the four printed models")
            printed = list(csv.DictReader(io.StringIO(data(at)["paper-printed"])))
            assert {row["model"] for row in printed} == {"LaBSE"}
            assert {row["published_in"].partition(" (")[0] for row in printed} == {"WhiteningBERT"}


def test_what_is_of_one_model_takes_the_first_chosen_that_is_here_and_says_so(small):
    cut = f"{small['model']}:1"
    words = {
        "WhiteningBERT, Figure 1": "Measured: **model[:1]**",
        "WhiteningBERT, Figure 2": "3 subsets",  # of two layers
        "BERT-whitening, Figure 1": "model[:1] on pairs",
        "Two presets": "model[:1] moves by",
    }
    for part, text in words.items():
        at = until(start("compare", **small, models=["nowhere", cut, small["model"]], part=part))
        if part == "Two presets":
            press(at, "walk", lambda at: table(at, "Step") is not None and complete(at))
        assert said(at, "Of one model: model[:1], the first under Models on this machine.", text)
        assert f"encoder = whitelab.load_encoder({cut!r}, dtype='float32')" in code(at)
    at = until(start("compare", **small, models=["nowhere"], part="Two presets"))
    assert said(at, "Of one model: model, the bar's: none under Models is on this machine.")
    assert not said(choose(at, models=[small["model"]]), "Of one model")


def test_losses_of_a_model_that_is_not_here_wait_for_a_click_and_what_it_cannot_do_is_one_line_with_every_reason(small):
    at = start("compare", **small, models=[small["model"], "nowhere"], part="WhitenedCSE, Figures 1 and 3")
    at = until(at, lambda at: len(alts(at)) >= 2 and complete(at))
    assert not said(at, "settings left out")
    assert "nowhere" not in code(at)
    assert said(at, "Left out, as not on this machine: nowhere.")
    press(at, "losses-download", lambda at: said(at, "settings left out") and complete(at))
    at.text_area[0].set_value("L3\nL9\nL1+L9").run()
    until(at, lambda at: said(at, "2 settings left out") and complete(at))
    own, other = (one for one in at.caption if "left out" in one.value)
    assert own.help.count("must lie between 0 and 3") == 2
    assert other.value.startswith(r"nowhere\: 6 settings left out\: model='nowhere'")


def test_a_setting_that_cannot_be_read_is_said_and_nothing_is_lost(small):
    at = until(start("compare", **small))
    at.text_area[0].set_value("L6\nsix")
    assert failed(until(at.run(), lambda at: at.error), "setting='six' must look like")
    assert at.text_area[0].value == "L6\nsix"


def test_where_a_preset_counts_otherwise_than_the_bar_that_is_said(small):
    cases = ("whiteningbert", "all", True), ("whiteningbert", "mean", False), ("mteb", "all", False)
    for preset, aggregate, other in cases:
        at = until(start("compare", **small | {"preset": PRESETS[preset].label, "aggregate": aggregate}))
        words = "here (average of the subsets' Spearman) and in the bar (one Spearman over every pair)"
        assert said(at, words) is other
