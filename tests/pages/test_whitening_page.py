"""The whitening page: every variant on the same pairs, what is real, what the map does, and taking it away."""

import csv
import io
from unittest.mock import create_autospec

import numpy as np
import pytest

import whitelab
from whitelab.encoding.embeddings import embed_pairs
from whitelab.scoring.calibration import calibrate
from whitelab.scoring.fit_scopes import fit_scope
from whitelab.scoring.paired import VERDICTS
from whitelab.scoring.setting import parse_settings
from whitelab.sweeps.fit_size import fit_sizes
from whitelab.ui.sections import take_away
from whitelab.whitening import export

from .visiting import (
    alts,
    choose,
    code,
    data,
    downloads,
    failed,
    keys,
    live,
    metrics,
    press,
    said,
    scored,
    start,
    until,
    write_few,
    write_scored,
)

pytestmark = pytest.mark.model
MOVED = "Pairs that moved most"


def scores(space, *texts):
    return [whitelab.score(space, one) for one in parse_settings(";".join(texts))]


def tables(at):
    return [one.value for one in at.dataframe]


def test_the_variants_side_by_side_have_the_scores_and_tests_of_the_package(small, space):
    at = choose(until(start("whitening", **small, k="10")), side_by_side=["center", "zca", "group:groups=4"])
    specs = ("", ":center@10", ":zca@10", ":group:groups=4", ":pca@10")  # raw and the workspace's are always there
    wanted = scores(space, *(f"L1{spec}" for spec in specs))
    found = whitelab.paired(space, wanted).against(0)
    table = tables(at)[0]
    names = ["Raw", "Centred", "ZCA whitening", "Group whitening (groups = 4)", "PCA whitening"]
    assert list(table["Variant, k = 10"]) == names  # in the title, where a long name cannot push it out of sight
    assert list(table["Spearman"]) == pytest.approx([one.spearman for one in wanted])
    assert list(table["Its 95 %"])[1:] == [
        f"{one.difference.low:+.2f} to {one.difference.high:+.2f}" for one in found[1:]
    ]
    assert list(table["Rank"]) == [one.rank for one in wanted]
    assert list(table["Isotropy"])[1:] == pytest.approx([one.isotropy for one in wanted[1:]])
    assert list(table["Verdict"]) == ["Baseline", *(VERDICTS[one.verdict] for one in found[1:])]
    kept = list(csv.DictReader(io.StringIO(data(at)["variants"])))
    assert [row["verdict"] for row in kept] == [one.verdict for one in found]  # words of the package, as in other files
    assert {row["baseline"] for row in kept} == {"none"}
    assert not any(cell.lower() == "nan" for row in kept for cell in row.values())  # what is not defined is empty
    shown = metrics(at)
    assert shown["Spearman, PCA whitening, k = 10"] == live(at) == f"{wanted[-1].spearman:.2f}"
    assert shown["Difference from raw"] == f"{found[-1].difference.estimate:+.2f}"
    choose(at, baseline="center")
    assert metrics(at)["Difference from centred"] == f"{wanted[-1].spearman - wanted[1].spearman:+.2f}"
    assert said(at, "centred")


def test_a_baseline_that_is_none_is_said_and_what_is_pasted_behind_a_name_goes_with_it(small):
    at = until(start("whitening", **small, baseline=":1"))
    assert failed(at, "Until it is mended, all are compared with raw.")
    assert "Difference from raw" in metrics(at)
    choose(choose(at, baseline="soft"), baseline=":gamma=0.25")
    assert at.selectbox(key="baseline").value == "soft:gamma=0.25"
    assert "Difference from soft whitening (γ = 0.25, α = 0)" in metrics(at)


def test_variants_that_must_agree_say_so_with_the_reason_and_others_say_nothing(small):
    at = until(start("whitening", **small))
    for chosen, words in (
        (["pca", "zca"], ("**PCA whitening, ZCA whitening** must agree", "they differ by a rotation only")),
        (["zca", "soft:gamma=1,alpha=0"], ("γ = 1 without a ridge is ZCA whitening",)),
    ):
        assert said(choose(at, side_by_side=chosen), *words)
    assert not said(choose(at, side_by_side=["pca", "center"]), "must agree")


def test_the_verdict_is_the_packages_and_only_a_gain_is_explained_as_one(small, space):
    for layer in "03":
        at = until(start("whitening", **small | {"layers": layer}))
        (_, now) = whitelab.paired(space, scores(space, f"L{layer}", f"L{layer}:pca")).against(0)
        assert said(at, f"**{VERDICTS[now.verdict]}.**")
        assert said(at, f"PCA whitening gains {now.difference.estimate:.2f} points") is (now.verdict == "gain")
        assert said(at, "which these 60 pairs cannot tell from no change") is (now.verdict == "chance")


def test_a_map_that_sets_its_sentences_equally_far_apart_is_not_handed_out_without_a_word(small, space, tmp_path):
    shown = [
        until(start("whitening", **small | changes)) for changes in ({"data": write_few(tmp_path / "few.tsv")}, {})
    ]
    for at, starved in zip(shown, (True, False), strict=True):
        assert said(at, "This map sets the very texts it was fitted on equally far apart") is starved
        assert said(at, "What a cosine means goes with them.") is not starved
        assert any("percentile" in one.value for one in at.code) is not starved
        score, difference, *_ = at.metric
        assert (not score.delta, not difference.proto.delta_description) == (starved, starved)  # no interval, no p
        (row,) = (row for _, row in tables(at)[0].iterrows() if row["Variant"] == "PCA whitening")
        assert [isinstance(row[name], str) for name in ("Its 95 %", "p")] == [not starved] * 2
        rows = list(csv.DictReader(io.StringIO(data(at)["variants"])))
        assert (max(rows, key=lambda row: float(row["spearman"]))["best"] == "True") is not starved


def test_the_fit_scopes_are_side_by_side_and_cross_fitting_can_be_the_workspaces(small, space):
    at = until(start("whitening", **small, fit="Cross-fitted halves"))
    task, cross = scored(space, "L1:pca"), scored(space, "L1:pca fit=cross")
    assert live(at) == cross == metrics(at)["Spearman, cross-fitted"]
    *_, fits = tables(at)
    assert [f"{value:.2f}" for value in fits["Spearman"]] == [task, cross]
    assert list(fits["Per d"]) == ["3.8", "1.9"]
    assert said(at, f"reaches {task}; cross-fitted, on sentences it is not scored on, {cross}")
    assert said(at, "cross-fitting has two maps, and an export holds one")


def test_pairs_that_cannot_be_halved_say_why(small, tmp_path):
    at = until(start("whitening", **small | {"data": write_scored(tmp_path / "one.tsv", [4.5])}))
    assert metrics(at)["Spearman, cross-fitted"] == "undefined"
    assert said(at, "Cross-fitting is not possible here")


def test_the_score_by_the_sentences_fitted_on_is_drawn_on_demand_and_its_code_gives_it(small, space, capsys):
    at = until(start("whitening", **small))
    assert not any(alt.startswith("Spearman by sentences") for alt in alts(at))
    press(at, "fit-size", lambda at: said(at, f"to {space.n_sentences} sentences."))
    *_, points = fit_sizes(space, [whitelab.Setting.parse("L1:pca")])
    known = [point.score for point in points if point.score is not None]
    (alt,) = (alt for alt in alts(at) if alt.startswith("Spearman by sentences fitted on"))
    assert f"PCA whitening from {min(known):.2f} to {max(known):.2f}" in alt
    assert said(at, "Dotted lines are cross-fitted")
    _, given, lines = code(at).partition("from whitelab.sweeps.fit_size")
    exec(given + lines.partition("score = ")[0], {"whitelab": whitelab, "space": space})
    assert {f"{point.setting} {point.sentences} {point.score} {point.cross_fitted}" for point in points} <= set(
        capsys.readouterr().out.splitlines()
    )


def test_only_the_open_tab_is_drawn(small):
    for tab, charts in (("Covariance", 4), ("Spectrum", 3), ("Gold and cosine", 4), (MOVED, 2)):
        at = until(start("whitening", **small, see=tab))
        assert len(at.get("plotly_chart")) == charts
        assert len(at.dataframe) == 2 + (tab == MOVED)


def test_a_spectrum_is_called_flat_only_where_the_map_whitens_the_sentences_it_was_fitted_on(small):
    for changes, flat in (
        ({}, True),
        ({"whitening": "Soft whitening"}, False),
        ({"fit": "Cross-fitted halves"}, False),
    ):
        at = until(start("whitening", **small, see="Spectrum", **changes))
        assert said(at, "its spectrum is flat") is flat
    (alt,) = (alt for alt in alts(choose(at, k=10)) if alt.startswith("Eigenvalue spectrum"))
    assert "PCA whitening, k = 10" in alt


def test_the_pairs_that_moved_most_are_listed_with_their_text(small, space):
    before, after = (one.cosines for one in scores(space, "L1", "L1:pca"))
    moves, pairs = whitelab.moved(before, after, space.gold, space.n_pairs), whitelab.load(small["data"])
    at = until(start("whitening", **small, see=MOVED))
    ways = {1: "towards gold", -1: "away from gold", 0: "past gold"}
    for which in ("all", "towards gold", "away from gold"):
        choose(at, moved=which)
        wanted = [one for one in moves if which in ("all", ways[np.sign(one.nearer)])][:50]
        table = tables(at)[1]
        assert list(table["First sentence"]) == [pairs.first[one.pair] for one in wanted]
        assert list(table["Moved"]) == [one.change for one in wanted]
        assert not table["Rank"].str.contains(r"\.0(?: |$)").any()  # whole ranks are whole, shared ones end in .5
        assert [tuple(map(float, row.split(" → "))) for row in table["Rank"]] == [(m.before, m.after) for m in wanted]
        assert list(table["Direction"]) == [ways[np.sign(one.nearer)] for one in wanted]


def test_the_pairs_that_moved_say_in_their_data_what_they_moved_from(small, space):
    at = until(start("whitening", **small, see=MOVED))
    for baseline, setting in (("none", "L1"), ("center", "L1:center")):
        rows = list(csv.DictReader(io.StringIO(data(choose(at, baseline=baseline))["moved-pairs"])))
        assert {row["baseline"] for row in rows} == {baseline}
        (before, after) = (one.cosines for one in scores(space, setting, "L1:pca"))
        (first, *_) = whitelab.moved(before, after, space.gold, space.n_pairs)
        assert float(rows[0]["cosine_before"]) == float(before[first.pair])


def test_the_map_is_offered_in_every_format_with_lines_from_sentences_on(small, space, tmp_path, monkeypatch):
    at = until(start("whitening", **small, k="10"))
    setting = whitelab.Setting.parse("L1:pca@10")
    (whitener,) = fit_scope(space, setting).whiteners
    scale = calibrate(space, setting).arrays()
    files = {"npz": export.npz_bytes(whitener, {}, scale), "faiss": export.faiss_bytes(whitener)}
    monkeypatch.chdir(tmp_path)
    for kind, content in files.items():
        assert f"Download .{kind}" in downloads(choose(at, format=kind))
        name = f"model-mean-layers-1-pca-k10-pairs.{kind}"
        (tmp_path / name).write_bytes(content)
        lines = next(one.value for one in at.code if name in one.value)
        names: dict = {}
        exec(lines, names)
        values, _ = whitelab.embed(whitelab.load_encoder(small["model"]), names["sentences"])
        wanted = whitener(values[1]).numpy()
        wanted = wanted if kind == "npz" else wanted / np.linalg.norm(wanted, axis=1, keepdims=True)
        np.testing.assert_allclose(names["z"], wanted, atol=1e-4)
    choose(at, format="scikit-learn")
    names = {}
    exec(next(one.value for one in at.code if "WhiteningTransformer('pca', k=10)" in one.value), names)
    fitted = names["pipeline"].steps[0][1]
    for transformer in (fitted, names["whitening"]):  # whole, and in batches
        np.testing.assert_allclose(
            transformer.transform(space.combine((1,)).numpy()), whitener(space.values[1]), atol=1e-4
        )
    choose(at, format="sentence-transformers")
    assert not any(label.startswith("Download .zip") for label in downloads(at))
    press(at, "make-model", lambda at: any(label.startswith("Download .zip") for label in downloads(at)))
    assert any("SentenceTransformer(" in one.value for one in at.code)
    written = []

    def write(folder, *given, **how):
        written.append((given, how))
        folder.mkdir()

    # What it writes is held by whitening/test_onnx_folder.py; here it is asked for this map, apart from other visitors.
    monkeypatch.setattr(take_away, "to_onnx", create_autospec(take_away.to_onnx, side_effect=write))
    choose(at, format="onnx")
    assert not any(label.startswith("Download .zip") for label in downloads(at))
    press(at, "make-model", lambda at: any(label.startswith("Download .zip") for label in downloads(at)))
    ((encoder, layers, pooling, linear, _, meaning), how) = written.pop()
    assert (encoder.name, layers, pooling, how) == ("model", (1,), "mean", {"apart": True})
    np.testing.assert_array_equal(meaning["percentile"], scale["percentile"])
    x = space.combine((1,))[:5]
    np.testing.assert_allclose(linear(x), whitener(x))
    assert any("onnxruntime.InferenceSession(" in one.value and "encode([" in one.value for one in at.code)
    assert "Setting.parse" in code(at)


@pytest.mark.parametrize(("fit", "kind"), [("demo", ""), ("tokens", "static:")])
def test_scikit_learns_lines_fit_on_what_the_map_was_fitted_on(small, fit, kind):
    model, layer = f"{kind}{small['model']}", 0 if kind else 1
    at = until(start("whitening", **small | {"model": model, "layers": str(layer), "k": "10", "fit": fit}))
    lines = next(one.value for one in choose(at, format="scikit-learn").code if "make_pipeline" in one.value)
    names: dict = {}
    exec(lines, names)
    space, setting = names["space"], whitelab.Setting.parse(f"L{layer}:pca@10 fit={fit}")
    if fit == "demo":
        rows = whitelab.embed_scope(whitelab.load_encoder(model), whitelab.scope_text("demo", small["data"], None))
        space = names["space"].with_text("demo", rows)
    assert f"{whitelab.score(space, setting).spearman:.2f}" == live(at)
    x = space.combine((layer,))
    z = fit_scope(space, setting).whiteners[0](x).numpy()
    np.testing.assert_allclose(names["whitening"].transform(x.numpy()), z, atol=1e-4)


def test_a_map_of_vectors_that_no_text_has_alone_is_not_offered(small):
    at = until(start("whitening", **small | {"model": f"sif:{small['model']}", "layers": "0", "k": "10"}))
    assert said(at, "weighs words by all texts together")
    assert not any(label.startswith("Download .npz") for label in downloads(at))
    assert not any("k10.npz" in one.value for one in at.code)


def test_the_lines_make_what_the_map_takes_in_its_own_compute_type(small, tmp_path, monkeypatch):
    at = until(start("whitening", **small, k="10", dtype="bfloat16"))
    encoder, pairs = whitelab.load_encoder(small["model"], dtype="bfloat16"), whitelab.load(small["data"])
    (whitener,) = fit_scope(embed_pairs(encoder, pairs)[0], whitelab.Setting.parse("L1:pca@10")).whiteners
    monkeypatch.chdir(tmp_path)
    (tmp_path / "model-mean-layers-1-pca-k10-pairs.npz").write_bytes(export.npz_bytes(whitener, {}))
    names: dict = {}
    exec(next(one.value for one in at.code if "k10-pairs.npz" in one.value).partition("\n# what a cosine")[0], names)
    values, _ = whitelab.embed(encoder, names["sentences"])
    np.testing.assert_allclose(names["z"], whitener(values[1]), atol=1e-6)


@pytest.mark.parametrize(("layer", "fit"), [(0, "task"), (1, "cross"), (2, "cross"), (3, "task")])
def test_whoever_takes_a_map_away_is_told_where_the_last_layer_scores_higher_raw(small, space, layer, fit):
    untouched, now = (one.spearman for one in scores(space, "L3", f"L{layer}:pca@9"))
    at = until(start("whitening", **small | {"layers": str(layer), "k": "9", "fit": fit}))
    told = [box.value for box in at.info if ", the last, score" in box.value]
    assert bool(told) is (untouched - now > 1)
    words = f"score {untouched:.2f} on these pairs, and this map, fitted on the task's sentences, {now:.2f}."
    assert all(words in one for one in told)  # whatever the headline is fitted on


def test_raw_vectors_in_the_bar_are_said_to_stand_against_pca_whitening(small, space):
    for whitening, said_so in (("Raw", True), ("ZCA whitening", False)):
        at = until(start("whitening", **small | {"whitening": whitening, "layers": "1"}))
        assert said(at, "raw vectors are chosen in the bar") is said_so


def test_a_map_that_is_taken_away_says_where_it_is_another_than_the_bars(small, space):
    (whole,) = scores(space, "L1:pca")
    cross, raw = f"an export holds one, which scores {whole.spearman:.2f}", "raw vectors are chosen, which need no map"
    at = until(start("whitening", **small))
    assert not said(at, cross)
    assert not said(at, raw)
    assert said(until(choose(at, fit="cross")), cross)
    assert said(until(choose(at, fit="task", whitening="none")), raw)


@pytest.mark.parametrize("form", [name for name, one in export.FORMATS.items() if one.whole])
def test_a_model_folder_is_offered_only_of_models_and_poolings_that_it_can_hold(small, form):
    at = until(start("whitening", **small | {"model": f"static:{small['model']}", "layers": "0"}, format=form))
    assert said(at, f"must be a transformer in {export.FORMATS[form].label}, and it is a table of word embeddings")
    assert "make-model" not in keys(at)
    at = until(start("whitening", **small, unit="true", format=form))
    assert said(
        at, f"{export.FORMATS[form].label} has no part that makes", "NumPy, FAISS", "or turn off Vectors of length 1."
    )
    assert "make-model" not in keys(at)
    assert not any("unzip first" in one.value for one in at.code)
    assert "make-model" in keys(choose(at, unit=False))
    assert "make-model" not in keys(choose(at, pooling="wk"))


@pytest.mark.parametrize(
    ("golds", "words"),
    [([3] * 4, "raw vectors have no score that is defined"), (range(12), "codes have no score that is defined")],
    ids=["constant gold", "a map that sets all apart"],
)
def test_codes_without_a_score_are_said_to_have_none(golds, words, small, tmp_path):
    at = until(start("whitening", **small | {"data": write_scored(tmp_path / "few.tsv", golds), "layers": "3"}))
    assert said(press(at, "bits", lambda at: said(at, words) and tables(at)[-1].shape[0] == 5), words)
    assert list(tables(at)[-1].iloc[0])[1:3] == ["undefined"] * 2  # floats of a whitened map
