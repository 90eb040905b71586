"""The anisotropy page's tabs: every measure by layer, neighbours with their hubs, layers against each other."""

import json
import re

import pytest
import tiny
import torch

import whitelab
from whitelab.scoring.fit_scopes import fit_scope
from whitelab.statistics import geometry
from whitelab.sweeps.layer_measures import layer_similarity, nearest_to, neighbourhood, norm_correlations

from .visiting import alts, choose, code, metrics, said, start, table, table_widths, until

PCA = "L1:pca"


@pytest.fixture
def at(small):
    return until(start("anisotropy", **small))


def by_hand(text: str):
    return whitelab.Setting.parse(text)


def open_tab(at, name):
    at.session_state["space"] = name
    return until(at.run())


def test_every_measure_is_drawn_by_layer_raw_against_the_variant_and_says_what_it_cannot_see(at, small, space):
    open_tab(at, "Every measure")
    pictures = [alt for alt in alts(at) if " by layer: Raw from " in alt]
    for name, metric in geometry.METRICS.items():
        if metric.unique:
            assert any(alt.startswith(f"{metric.label} by layer") for alt in pictures), name
            assert said(at, metric.blind), name
    raw = [whitelab.measures(space, by_hand(text)).values["hub_skewness"] for text in ("L0", "L3")]
    assert any(f"Hub skewness by layer: Raw from {raw[0]:.3g} at layer 0 to {raw[1]:.3g}" in alt for alt in pictures)
    sentences = whitelab.load(small["data"]).sentences
    length, frequency = norm_correlations(space, by_hand("L1"), sentences).values()
    assert said(at, f"Raw: {length:.2f} and {frequency:.2f}")


def test_no_more_directions_are_counted_than_there_can_be(small):
    cut = small | {"k": "1", "fit": "Cross-fitted halves"}
    at, over = (until(start(page, **cut, space="Spectrum")) for page in ("anisotropy", "overview"))
    shown = next(value for label, value in metrics(at).items() if label.startswith("Participation ratio, PCA"))
    texts = [shown, *(one.value for one in (*at.caption, *over.caption) if "articipation ratio" in one.value)]
    counted = [found[-1] for text in texts if (found := re.findall(r"([0-9.]+) of ([0-9]+)", text))]
    assert len(counted) == 3  # a card, and a caption on each page
    assert all(float(count) <= float(most) == 2 for count, most in counted)
    floor = geometry.uniformity_floor(2)
    assert said(until(start("uniformity", **cut)), f"floor for 2 dimensions is {floor:.3f}")


def test_neighbours_stand_raw_beside_whitened_with_hubs_marked_and_follow_what_is_typed_and_clicked(at, small, space):
    open_tab(at, "Neighbours")
    sentences = whitelab.load(small["data"]).sentences
    raw, white = (neighbourhood(space, by_hand(text)) for text in ("L1", PCA))
    hub = int(raw.counts.argmax())

    def lists():
        return [one.value for one in at.dataframe if "Hub" in one.value.columns]

    def check(row):
        for shown, near in zip(lists(), (raw, white), strict=True):
            assert shown["Sentence"].tolist() == [sentences[i] for i in near.rows[row]]
            assert shown["Cosine"].tolist() == pytest.approx(near.cosines[row].tolist())
            assert [bool(mark) for mark in shown["Hub"]] == (near.counts[near.rows[row]] > near.hub_from).tolist()

    check(hub)
    listed = [one.proto.alt for one in at.dataframe if "Hub" in one.value.columns]
    assert [alt.partition(":")[0] for alt in listed] == ["Raw", "PCA whitening"]
    assert (raw.counts > raw.hub_from).any()
    choose(at, inspect=sentences[5].upper())
    check(5)
    new, setting = "no such sentence at all", by_hand(PCA)
    choose(at, inspect=f" {new} ")
    assert said(at, f"**{new}**, which is none of the {len(sentences)} sentences")
    values = whitelab.embed(whitelab.load_encoder(small["model"]), [new])[0][:, 0]
    shown, (rows, cosines) = lists()[1], nearest_to(space, setting, values)
    assert shown["Sentence"].tolist() == [sentences[i] for i in rows]
    whitener = fit_scope(space, setting).whiteners[0]
    every, own = whitener(space.combine((1,))), whitener(values[1:2])
    assert cosines.tolist() == pytest.approx(sorted((torch.cosine_similarity(every, own)).tolist())[::-1][: len(rows)])
    at.session_state["inspected"] = 7  # as a click on a neighbour does
    until(at.run())
    check(7)
    remedies = table(at, "Neighbours by")
    assert len(remedies) == 6
    plain = geometry.hubness(geometry.nearest(space.combine((1,))))
    assert remedies["Skewness"][0] == f"{plain.skewness:.2f}"


def test_lists_of_neighbours_fit_a_phone_where_their_sentences_wrap(at):
    open_tab(at, "Neighbours")
    widths = zip(at.dataframe, table_widths(at), strict=True)
    lists = [(one.proto, width) for one, width in widths if "Hub" in one.value.columns]
    assert len(lists) == 2
    for found, width in lists:
        assert "Sentence" in json.loads(found.columns)  # has its part of the width
        assert width <= 390 - 2 * 16
        assert found.row_height > 64  # from where Streamlit wraps


def test_layers_are_compared_raw_and_whitened_with_their_own_and_another_model_s(at, small, space):
    open_tab(at, "Layers alike")
    for text, name in (("L1", "Raw"), (PCA, "PCA whitening")):
        cka = layer_similarity(space, by_hand(text))
        assert any(f"{name}, first and last layer {cka[0, -1]:.2f}" in alt for alt in alts(at))
    choose(at, alike="bundled:3")
    until(at)
    other, _ = whitelab.embed_pairs(whitelab.load_encoder("bundled:3"), whitelab.load(small["data"]))
    cka = layer_similarity(space, by_hand("L1"), other)
    assert cka.shape == (4, 4)
    assert any(f"Raw, last layers {cka[-1, -1]:.2f}" in alt for alt in alts(at))


def test_umap_lays_out_every_sentence_once_in_the_colour_of_its_subset(small, tmp_path):
    data = str(tiny.write_task(tmp_path / "task", subsets=3))
    at = until(start("anisotropy", **small | {"data": data}, whitening="Raw", method="UMAP", colour="subset"))
    open_tab(at, "Projection")
    (figure,) = (json.loads(one.proto.spec) for one in at.get("plotly_chart") if "UMAP" in one.proto.alt)
    texts = [text for trace in figure["data"] for text in trace["text"]]
    pairs, names = whitelab.load(data), [trace["name"] for trace in figure["data"]]
    assert names == list(pairs.subset_names)
    assert len(texts) == len(pairs.sentences)


def test_umap_of_fewer_sentences_than_it_lays_out_is_said_without_a_try_again(small, tmp_path):
    (tmp_path / "few.csv").write_text("sentence1,sentence2,score\na man,a dog,1\na man,a cat,2\n")
    at = until(start("anisotropy", **small | {"data": str(tmp_path / "few.csv")}, whitening="Raw", method="UMAP"))
    open_tab(at, "Projection")
    assert said(at, "UMAP lays out 5 different sentences or more, and here are 3. Choose PCA.")
    assert not [one for one in at.button if one.label == "Try again"]


def test_a_cosine_has_its_meaning_raw_beside_whitened_and_the_code_that_gives_it(at, space, capsys):
    open_tab(at, "What a cosine means")
    choose(at, meant_cosine=0.4, meant_rate=0.1)
    cut = float(space.gold.min() + space.gold.max()) / 2
    now, raw = (whitelab.calibrate(space, by_hand(text), cut, 0.1) for text in (PCA, "L1"))
    shown = {one.label: (one.value, one.delta) for one in at.metric}
    assert shown["Percentile of 0.40, PCA whitening"] == (
        f"{now.random.percentile(0.4):.2f}",
        f"{raw.random.percentile(0.4):.2f} raw",
    )
    assert shown["Gold at 0.40"] == (f"{now.gold(0.4):.2f}", f"{raw.gold(0.4):.2f} raw")
    assert shown["Threshold"][0] == f"{now.threshold.cosine:.3f}"
    assert said(at, now.line())
    exec(
        "for text in" + code(at).rpartition("for text in")[2].partition("\nscore = ")[0],
        {"whitelab": whitelab} | vars(),
    )
    printed = capsys.readouterr().out
    for one in (raw, now):
        first = f"{one.random.percentile(0.4)} {one.random.floor} {one.random.top}"
        gold = one.gold(0.4), one.gold.error, one.gold.error_of_mean
        assert f"{first}\n{gold} {one.ceiling}\n{one.threshold} {one.line()}" in printed
