"""The page of layers: every pair, every subset, and their averages over tasks, as the package finds them."""

import numpy as np
import pytest

import whitelab
from whitelab.encoding.embeddings import embed_pairs
from whitelab.sweeps import layer_subsets as subsets

from .visiting import alts, deltas, live, scored, start, until, write_scored

pytestmark = [pytest.mark.model, pytest.mark.usefixtures("demo")]


def test_the_best_cell_of_the_layers_page_is_the_best_score(demo):
    at = until(start("layers"))
    best = whitelab.layer_pairs(demo, "none").best
    delta = next(one.delta for one in at.metric if one.label.startswith("Best pair, "))
    assert delta == f"Spearman {best.spearman:.2f}"


def test_the_map_of_whitened_pairs_keeps_the_workspaces_k(demo):
    at = until(start("layers", k="40"))
    assert "PCA whitening, k = 40" in [one.value for one in at.subheader]
    best = whitelab.layer_pairs(demo, "pca", 40).best
    assert deltas(at)["Best pair, PCA whitening"] == f"Spearman {best.spearman:.2f}"
    assert any(one.value == "Every pair of layers, the top 40 dimensions." for one in at.caption)
    at.slider(key="k").set_value(50)
    until(at.run())
    assert (
        deltas(at)["Best pair, PCA whitening"] == f"Spearman {whitelab.layer_pairs(demo, 'pca', 50).best.spearman:.2f}"
    )


def test_every_subset_is_searched_raw_at_first_and_the_best_can_be_taken(demo):
    at = until(start("layers"))
    found = subsets.search(demo)
    assert found.scored == 127
    assert deltas(at)["Best subset, Raw"] == f"Spearman {found.best.spearman:.2f}"
    assert any(one.value.startswith("**127 subsets** scored in **") for one in at.caption)
    assert any("Scored: every subset of 1 to 7 layers." in one.value for one in at.caption)
    assert f"Raw at most {found.best.spearman:.2f}" in next(alt for alt in alts(at) if alt.startswith("Best Spearman"))
    at.button(key="take-best").click()
    until(at.run())
    assert at.get_by_key("layers").value == list(found.best.layers)
    assert live(at) == scored(demo, layers=found.best.layers)


def test_the_whitened_search_says_it_is_a_beam_and_stands_beside_the_raw_one(demo):
    at = until(start("layers", k="40", searched="The workspace's variant"))
    found = subsets.search(demo, variant="pca", k=40)
    assert not found.exact
    assert deltas(at)["Best subset, PCA whitening"] == f"Spearman {found.best.spearman:.2f}"
    assert any(f"**{found.scored} subsets**" in one.value and "then a beam" in one.value for one in at.caption)
    assert any(f"Scored: {found.strategy}." in one.value for one in at.caption)
    curve = next(alt for alt in alts(at) if alt.startswith("Best Spearman"))
    assert "Raw at most" in curve
    assert f"PCA whitening, k = 40 at most {found.best.spearman:.2f}" in curve


def test_one_task_offers_no_average_and_several_are_averaged_on_request(tmp_path):
    assert len(until(start("layers")).toggle) == 0
    for i, name in enumerate(("one", "two")):
        write_scored(tmp_path / f"{name}.tsv", np.linspace(0, 5, 30), "A cat sits" if i else "Some birds fly")
    at = until(start("layers", data=str(tmp_path)))
    single = deltas(at)["Best subset, Raw"]
    at.toggle(key="average").set_value(True)
    until(at.run())
    encoder = whitelab.load_encoder("bundled")
    spaces = {
        name: embed_pairs(encoder, whitelab.load(tmp_path, name), store=whitelab.Store())[0] for name in ("one", "two")
    }
    found = subsets.search(spaces)
    assert deltas(at)["Best subset, Raw"] == f"Spearman {found.best.spearman:.2f}, mean of 2 tasks"
    assert single != f"Spearman {found.best.spearman:.2f}"
    assert any("the plain mean over the tasks" in one.value for one in at.caption)
    assert any(one.value.startswith("**127 subsets x 2 tasks**") for one in at.caption)
    own = at.dataframe[0].value
    assert list(own["task"]) == ["one", "two"]
    assert list(own["Spearman x 100"]) == pytest.approx([found.tasks[n].best.spearman for n in ("one", "two")])


def test_an_average_is_not_offered_where_each_task_would_need_a_text_of_its_own(tmp_path):
    for name in ("one", "two"):
        write_scored(tmp_path / f"{name}.tsv", np.linspace(0, 5, 30), name)
    raw = until(start("layers", data=str(tmp_path), fit="All splits of the task"))
    assert not raw.toggle(key="average").disabled
    white = until(start("layers", data=str(tmp_path), fit="All splits of the task", searched="The workspace's variant"))
    assert white.toggle(key="average").disabled
