"""Every page opened without a browser, on the bundled model: what it shows, remembers and survives."""

import re
import time
from pathlib import Path

import numpy as np
import pytest
import streamlit as st
from streamlit.testing.v1 import AppTest
from streamlit.testing.v1.element_tree import Selectbox

import whitelab
from whitelab import subsets
from whitelab.compare import FIELDS, Bench, compare, differences, parse_settings, resample, walk
from whitelab.embeddings import LayerRows
from whitelab.encoders import Encoder
from whitelab.evaluate import Protocol, embed_pairs
from whitelab.models import BUNDLED_NAME
from whitelab.probe import How, embed_texts, probe
from whitelab.retrieval import processor_name
from whitelab.standings import VERDICTS

pytestmark = pytest.mark.model

ROOT = Path(__file__).resolve().parents[2]
QUESTIONS = {
    "overview": "What does this space look like, and what would whitening change?",
    "data": "What data is this, and can I bring my own?",
    "anisotropy": "How narrow is the cone, layer by layer?",
    "whitening": "Which whitening, fitted on what, and is the gain real?",
    "layers": "Which layers should be averaged?",
    "dimensions": "How many dimensions are worth keeping?",
    "uniformity": "Are similar sentences close, and all sentences spread out?",
    "compare": "Which model, and does it match what was published?",
    "probe": "Does whitening help beyond STS?",
    "training": "What does training do to the space?",
}
ON_DEMAND = ("compare", "training")  # compute nothing before they are asked to
PATIENCE = 300  # seconds; other work may share the machine
LIVE = "Spearman x 100, live"
DEMONSTRATION = "Demonstration set written for this project, not a published benchmark."


@pytest.fixture(scope="module", autouse=True)
def own_store(tmp_path_factory):
    """One store for this file, so that the demonstration set is encoded once and nobody's cache is touched."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("WHITELAB_CACHE", str(tmp_path_factory.mktemp("store")))
        patch.setenv("WHITELAB_RUNS", str(tmp_path_factory.mktemp("runs")))
        forget_everything()
        yield
        forget_everything()


@pytest.fixture(autouse=True)
def typed_options(monkeypatch):
    """AppTest knows only the listed options of a selectbox; here a typed one, as browsers send it, counts too."""

    def index(self):
        if self.value is None:
            return None
        shown = self.format_func(self.value)
        if shown not in self.options:
            self.options.append(shown)
        return self.options.index(shown)

    monkeypatch.setattr(Selectbox, "index", property(index))


@pytest.fixture(scope="module")
def demo(own_store):
    """The demonstration set's embeddings, made by the package, not by the app."""
    pairs = whitelab.load("demo")
    return embed_pairs(whitelab.load_encoder("bundled"), pairs, store=whitelab.Store())[0]


@pytest.fixture
def forward_calls(monkeypatch):
    """The batches the model runs while the test lasts."""
    calls, real = [], Encoder.forward

    def counted(self, ids):
        calls.append(len(ids))
        return real(self, ids)

    monkeypatch.setattr(Encoder, "forward", counted)
    return calls


def forget_everything() -> None:
    st.cache_resource.clear()
    st.cache_data.clear()


def complete(at: AppTest) -> bool:
    return any(one.label == "Show the code" for one in at.expander) and not at.get("progress")


def until(at: AppTest, ready=complete) -> AppTest:
    """Run the page again and again, as its polling does in a browser, until `ready`."""
    end = time.monotonic() + PATIENCE
    while not ready(at):
        assert not at.exception, at.exception[0].value
        assert time.monotonic() < end, f"not ready; errors: {[e.value for e in at.error]}"
        time.sleep(0.2)
        at.run()
    assert not at.exception
    return at


def start(page: str = "overview", **query) -> AppTest:
    """The app on `page` with these query parameters, after its first run."""
    at = AppTest.from_file(str(ROOT / "app.py"), default_timeout=PATIENCE)
    for name, value in query.items():
        at.query_params[name] = value
    at.run()
    return at if page == "overview" else go_to(at, page)


def go_to(at: AppTest, page: str) -> AppTest:
    return at.switch_page(f"views/{page}.py").run()


def metrics(at: AppTest) -> dict[str, str]:
    return {one.label: one.value for one in at.metric}


def live(at: AppTest) -> str:
    return metrics(at)[LIVE]


def scored(space, **changes) -> str:
    """The score the package gives, as the page writes it."""
    settings = {"pooling": "mean", "layers": (1, 6), "whitening": "pca"} | changes
    found = whitelab.score(space, Protocol("m", "d", "demo", "test", **settings)).spearman
    return "undefined" if found is None else f"{found:.2f}"


def write_pairs(path: Path, golds, first=None) -> str:
    lines = ["sentence1\tsentence2\tscore"]
    for i, gold in enumerate(golds):
        lines.append(f"{first or 'A cat sits'} on mat {i}.\tThe dog number {i} runs.\t{gold}")
    path.write_text("\n".join(lines) + "\n")
    return str(path)


# Every page


@pytest.mark.parametrize("page", QUESTIONS)
def test_a_page_asks_its_question_and_answers_with_numbers(page, demo):
    at = until(start(page))
    assert [title.value for title in at.title] == [QUESTIONS[page]]
    assert not at.error
    shown = metrics(at)
    assert len(shown) >= (1 if page in ON_DEMAND else 3)
    for label, value in shown.items():
        leading = re.match(r"[-+]?\d+(\.\d+)?", value)
        assert leading, f"{label}: {value}"
        assert np.isfinite(float(leading[0]))
    assert shown[LIVE] == scored(demo)
    captions = [caption.value for caption in at.caption]
    said = "bundled:3, last layer, mean pooling" if page == "training" else f"{BUNDLED_NAME} · layers 1 + 6"
    assert any(text.startswith(said) and re.search("1\u202f?500 pairs", text) for text in captions)
    assert captions.count(DEMONSTRATION) == 2  # beside the live score and under the protocol
    assert at.code[-1].value.startswith("import whitelab")


@pytest.mark.parametrize("page", [page for page in QUESTIONS if page not in ON_DEMAND])
def test_every_chart_of_a_page_has_alternative_text(page):
    charts = until(start(page)).get("plotly_chart")
    assert charts
    assert all(len(chart.proto.alt) > 20 for chart in charts)


@pytest.mark.parametrize("page", QUESTIONS)
def test_the_code_a_page_shows_runs(page, monkeypatch, capsys):
    few = {"steps": "1", "batch": "8"} if page == "training" else {}
    code = until(start(page, **few)).code[-1].value
    exec(compile(code, page, "exec"), {})
    assert capsys.readouterr().out.strip()


def test_every_page_of_the_app_is_tested():
    assert {file.stem for file in (ROOT / "views").glob("*.py")} == set(QUESTIONS)


# The address


def test_the_workspace_in_the_address_is_restored(demo):
    at = until(start("overview", layers=["2", "3"], k="100", whitening="ZCA whitening", aggregate="mean"))
    assert at.get_by_key("layers").value == [2, 3]
    assert at.slider(key="k").value == 100
    assert at.selectbox(key="whitening").value == "zca"
    assert live(at) == scored(demo, layers=(2, 3), k=100, whitening="zca", aggregate="mean")
    go_to(at, "dimensions")
    until(at)
    assert at.slider(key="k").value == 100
    assert metrics(at)["Spearman at k = 100"] == live(at)


def test_pooling_in_the_address_is_restored():
    at = until(start(pooling="[CLS]", layers="6"))
    pairs = whitelab.load("demo")
    space, report = embed_pairs(whitelab.load_encoder("bundled"), pairs, "cls", store=whitelab.Store())
    assert report.encoded == 0  # both poolings come from one pass
    assert live(at) == scored(space, pooling="cls", layers=(6,))


@pytest.mark.parametrize(
    "query",
    [
        {"k": "9999"},
        {"k": "abc"},
        {"layers": "99"},
        {"layers": "x"},
        {"layers": ""},
        {"pooling": ""},
        {"pooling": "max"},
        {"whitening": "magic"},
        {"task": "nothing"},
        {"aggregate": ""},
    ],
    ids=str,
)
def test_nonsense_in_the_address_falls_back_to_something_valid(query):
    at = until(start(**query))
    assert not at.error
    assert float(live(at)) > 0


# Knobs


def test_k_moves_the_live_score_and_the_memory(demo):
    at = until(start("dimensions"))
    at.slider(key="k").set_value(96)
    until(at.run())
    assert live(at) == metrics(at)["Spearman at k = 96"] == scored(demo, k=96)
    assert metrics(at)["Memory saved"] == "75 %"


@pytest.mark.parametrize("name", ["none", "center", "standardize", "cholesky"])
def test_a_variant_without_k_disables_the_slider(name, demo):
    takes_k = whitelab.WHITENERS[name].takes_k
    at = until(start(k="50"))
    at.selectbox(key="whitening").set_value(name)
    until(at.run())
    assert at.slider(key="k").disabled is not takes_k
    assert live(at) == scored(demo, whitening=name, k=50 if takes_k else None)


@pytest.mark.parametrize("page", QUESTIONS)
@pytest.mark.parametrize("name", ["none", "center", "standardize", "cholesky"])
def test_every_page_takes_every_variant_at_a_small_k(page, name):
    at = start(page, k="50", layers="6")
    at.selectbox(key="whitening").set_value(name)
    until(at.run())
    assert not at.error


def test_no_layer_at_all_falls_back_to_the_last(demo):
    at = until(start())
    at.get_by_key("layers").set_value([])
    until(at.run())
    assert live(at) == scored(demo, layers=(6,))


def test_the_best_cell_of_the_layers_page_is_the_best_score(demo):
    at = until(start("layers"))
    best = whitelab.layer_pairs(demo, "none").best
    delta = next(one.delta for one in at.metric if one.label.startswith("Best pair, "))
    assert delta == f"Spearman {best.spearman:.2f}"


# Every pair, every subset, every k


def alts(at: AppTest) -> list[str]:
    return [chart.proto.alt for chart in at.get("plotly_chart")]


def deltas(at: AppTest) -> dict[str, str]:
    return {one.label: one.delta for one in at.metric}


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
        write_pairs(tmp_path / f"{name}.tsv", np.linspace(0, 5, 30), "A cat sits" if i else "Some birds fly")
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
        write_pairs(tmp_path / f"{name}.tsv", np.linspace(0, 5, 30), name)
    raw = until(start("layers", data=str(tmp_path), fit="All splits of the task"))
    assert not raw.toggle(key="average").disabled
    white = until(start("layers", data=str(tmp_path), fit="All splits of the task", searched="The workspace's variant"))
    assert white.toggle(key="average").disabled


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


# The whitening page


def whitening_page(*specs, **query) -> AppTest:
    """The page with these variants side by side."""
    at = until(start("whitening", **query))
    if specs:
        at.multiselect(key="side-by-side").set_value(list(specs))
        until(at.run())
    return at


def tables(at: AppTest) -> list:
    return [one.value for one in at.dataframe]


def said(at: AppTest, text: str) -> bool:
    return any(text in one.value for one in (*at.markdown, *at.info, *at.caption, *at.warning))


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
    at = until(start("whitening", data=write_pairs(tmp_path / "one.tsv", [4.5])))
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


# Nothing twice


def test_nothing_is_encoded_twice(demo, forward_calls):
    forget_everything()
    at = start("overview", layers="6")
    for page in QUESTIONS:
        until(go_to(at, page))
    at.slider(key="k").set_value(77)
    until(at.run())
    assert forward_calls == []


def test_new_sentences_are_encoded_and_only_they(tmp_path, forward_calls, monkeypatch):
    monkeypatch.setenv("WHITELAB_CACHE", str(tmp_path / "store"))
    forget_everything()
    write_pairs(tmp_path / "first.tsv", [0, 1, 2, 3])
    write_pairs(tmp_path / "second.tsv", [0, 1, 2, 3, 4])
    until(start(data=str(tmp_path / "first.tsv")))
    assert sum(forward_calls) == 8
    until(start(data=str(tmp_path / "second.tsv")))
    assert sum(forward_calls) == 10


# What cannot be had


def test_a_model_that_does_not_exist_is_explained_and_leaves_the_app_usable(tmp_path):
    missing = str(tmp_path / "no-such-model")
    at = until(start(model=missing), lambda at: at.error)
    assert missing in at.error[0].value
    assert "must be a folder" in at.error[0].value
    for page in QUESTIONS:
        go_to(at, page)
        assert [title.value for title in at.title] == [QUESTIONS[page]]
        assert not at.exception
        assert at.info or page == "training"  # what to do next; training needs no workspace
    at.selectbox(key="model").set_value("bundled")
    until(at.run())
    assert not at.error


def test_data_that_is_not_there_is_explained_and_can_be_changed_back(tmp_path):
    missing = str(tmp_path / "absent.tsv")
    at = until(start("dimensions", data=missing), lambda at: at.error)
    assert missing in at.error[0].value
    at.selectbox(key="data").set_value("demo")
    until(at.run())
    assert not at.error


def test_malformed_rows_are_listed_and_left_out_only_on_request(tmp_path):
    path = tmp_path / "broken.tsv"
    write_pairs(path, [0, 1, "not a number", 3, 4])
    at = until(start(data=str(path)), lambda at: at.error and at.dataframe and len(at.checkbox) > 0)
    assert "1 row" in at.error[0].value
    listed = at.dataframe[0].value
    assert list(listed["line"]) == [4]
    assert "not a number" in listed["reason"][0]
    assert LIVE not in metrics(at)
    at.checkbox(key="keep").check()
    until(at.run())
    assert not at.error
    pairs = whitelab.load(path, keep_going=True)
    space, _ = embed_pairs(whitelab.load_encoder("bundled"), pairs, store=whitelab.Store())
    assert live(at) == scored(space)
    assert any("malformed rows left out: 1, rows kept: 4" in caption.value for caption in at.caption)


@pytest.mark.parametrize("page", QUESTIONS)
@pytest.mark.parametrize("golds", [[3, 3, 3, 3], [4.5]], ids=["constant gold", "one pair"])
def test_data_without_a_score_say_so_on_every_page(page, golds, tmp_path):
    at = until(start(page, data=write_pairs(tmp_path / "flat.tsv", golds)))
    assert live(at) == "undefined"
    assert not at.error
    assert not any("nan" in value.lower() for value in metrics(at).values())
    assert not any("nan" in (one.delta or "").lower() for one in at.metric)


@pytest.mark.parametrize("page", [page for page in QUESTIONS if page != "training"])  # which has scores of its own
def test_fewer_sentences_than_dimensions_show_the_rank_and_no_nan(page, tmp_path):
    path = write_pairs(tmp_path / "small.tsv", np.linspace(0, 5, 12))
    at = until(start(page, data=path, layers="3", k="5"))
    space, _ = embed_pairs(whitelab.load_encoder("bundled"), whitelab.load(path), store=whitelab.Store())
    assert live(at) == scored(space, layers=(3,), k=5)
    assert not any("nan" in f"{one.value} {one.delta}".lower() for one in at.metric)
    at.slider(key="k").set_value(384)
    until(at.run())
    assert any("(rank 23, " in caption.value for caption in at.caption)
    assert live(at) == "undefined"
    assert not any("nan" in f"{one.value} {one.delta}".lower() for one in at.metric)


def test_whitening_as_many_directions_as_the_sentences_span_is_said_to_mean_nothing(tmp_path):
    # Every two of n distinct sentences then have the cosine -1 / (n - 1): there is nothing to rank.
    path = write_pairs(tmp_path / "small.tsv", np.linspace(0, 5, 12))
    at = until(start(data=path, layers="3"))
    assert any("span only 23 of 384 dimensions" in warning.value for warning in at.warning)
    assert live(at) == "undefined"
    fewer = until(start(data=path, layers="3", k="5"))
    assert not any("span only" in warning.value for warning in fewer.warning)
    assert live(fewer) != "undefined"


# Comparisons


def compared(at: AppTest):
    return next((one.value for one in at.dataframe if "Setting" in one.value.columns), None)


def test_nothing_is_compared_before_it_is_asked_for():
    at = until(start("compare"))
    assert compared(at) is None
    assert any("press Compare" in one.value for one in at.info)


def has_downloads(at: AppTest) -> bool:
    return any(one.label == "LaTeX" for one in at.get("download_button"))


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


def test_a_knob_keeps_its_value_while_another_variant_is_chosen():
    at = until(start())
    at.sidebar.selectbox(key="whitening").set_value("soft").run()
    at.sidebar.slider(key="soft-gamma").set_value(0.25).run()
    at.sidebar.selectbox(key="whitening").set_value("pca").run()
    assert not [one for one in at.sidebar.slider if one.key == "soft-gamma"]
    at.sidebar.selectbox(key="whitening").set_value("soft").run()
    assert at.sidebar.slider(key="soft-gamma").value == 0.25


# Probes


def probed(task: str, how: How, settings: str, corpus=None) -> list[str]:
    """Accuracies as the page writes them, from the package."""
    data = whitelab.load_labelled("demo", task)
    space = embed_texts(whitelab.load_encoder("bundled"), data, store=whitelab.Store())
    return [f"{probe(space, data, one, how, corpus=corpus).accuracy:.2f}" for one in parse_settings(settings)]


def test_the_probe_page_shows_the_accuracies_of_the_package(demo):
    at = until(start("probe"))
    corpus = LayerRows(demo.values, demo.counts)
    raw, white = probed("act", How("knn", fit="the demo sentences"), "L1+L6;L1+L6:pca", corpus)
    shown = metrics(at)
    assert (shown["Accuracy, raw"], shown["Accuracy, PCA whitening"]) == (raw, white)
    assert shown["Most frequent class"] == "20.00"
    assert raw != white


def test_the_probe_page_follows_classifier_labels_and_layers(demo):
    at = until(start("probe", layers="6", **{"labelled-task": "Domains"}))
    at.get_by_key("classifier-demo").set_value("linear").run()
    until(at)
    (raw,) = probed("domain", How("linear"), "L6")
    assert metrics(at)["Accuracy, raw"] == raw


def test_pairs_show_their_cosines_at_the_fixed_and_the_best_threshold():
    at = until(start("probe", layers="6", **{"labelled-task": "Related pairs"}))
    raw, white = probed("related", How("threshold"), "L6;L6:pca")
    assert metrics(at)["Accuracy, raw"] == raw
    assert metrics(at)["Accuracy, PCA whitening"] == white
    assert [one.value for one in at.subheader][-1] == "Where would the threshold have to be?"
    assert sum("best threshold on the scored pairs" in one.value for one in at.caption) == 2


def test_a_file_of_ones_own_is_probed_and_its_errors_are_said(tmp_path):
    path = tmp_path / "own.tsv"
    rows = [
        f"{'A cat sits' if i % 2 else 'The bus leaves'} at number {i}.\t{'pet' if i % 2 else 'bus'}" for i in range(40)
    ]
    path.write_text("text\tlabel\n" + "\n".join(rows) + "\n")
    at = until(start("probe", labelled=str(path)))
    assert metrics(at)["Accuracy, raw"] == "100.00"
    assert metrics(at)["Most frequent class"] == "50.00"
    path.write_text("text\tlabel\n" + "\n".join(rows) + "\n\tpet\n")
    at = until(start("probe", labelled=str(path)), lambda at: at.checkbox)
    assert "1 row cannot be read" in at.error[0].value
    at.get_by_key("labelled-keep").check().run()
    assert metrics(until(at))["Accuracy, raw"] == "100.00"
    at = until(start("probe", labelled=str(tmp_path / "nothing.tsv")), lambda at: at.error)
    assert "no such file or folder" in at.error[0].value


def test_a_map_of_too_few_texts_is_warned_of():
    at = until(start("probe"))
    assert not any("equal distances" in one.value for one in at.warning)
    fit = next(one for one in at.selectbox if one.label == "Whitening fitted on")
    fit.set_value("train").run()
    assert any("equal distances" in one.value for one in until(at).warning)
