"""`whiten`: what it writes is the map of the score."""

import faiss
import numpy as np
import pytest
import sentence_transformers
from sentence_transformers import SentenceTransformer

import whitelab
from whitelab.datasets import load_retrieval
from whitelab.encoding.encoders import load_encoder
from whitelab.retrieval.calibration import calibrate_search
from whitelab.retrieval.embedded import embed_retrieval, for_documents
from whitelab.scoring.fit_scopes import fit_scope
from whitelab.scoring.setting import Setting
from whitelab.whitening.export import from_npz, from_safetensors


@pytest.mark.parametrize("whitening", ["pca", "soft:gamma=0.25"])
def test_an_exported_npz_is_the_map_of_the_score(document, options, space, tmp_path, whitening):
    encoder, _, embeddings = space
    out = tmp_path / "map.npz"
    settings = ("--layers", "1,3", "--whitening", whitening, "--k", "5", "--export", "npz", "--out", str(out))
    record = document("whiten", *options, *settings)
    whitener, protocol = from_npz(out)
    assert protocol == record["protocol"]
    assert (record["out"], record["rank"], record["dim"]) == (str(out), 5, whitener.dense.shape[1])
    expected = fit_scope(embeddings, Setting((1, 3), whitening, 5))
    assert record["fitted"] == protocol["fitted"] == expected.count
    assert protocol["rank"] == expected.rank == 5  # as in the file that the page gives
    assert record["setting"] == str(expected.setting)
    x = embeddings.combine((1, 3))
    np.testing.assert_allclose(whitener(x), expected.whiteners[0](x), rtol=1e-12, atol=1e-12)
    np.testing.assert_allclose(whitener(x[:1]), whitener(x)[:1], rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("form", ["npz", "faiss", "safetensors", "sentence-transformers"])
def test_the_line_that_says_how_to_use_an_export_gives_the_vectors_of_the_score(run, options, space, tmp_path, form):
    settings = ("--layers", "1,3", "--whitening", "pca", "--k", "5", "--export", form, "--out", str(tmp_path / "map"))
    status, out, _ = run("whiten", *options, *settings)
    assert status == 0
    said = next(line for line in out.splitlines() if line.startswith("to use it: ")).removeprefix("to use it: ")
    *before, last = said.removesuffix(", of float32").split("; ")
    _, pairs, embeddings = space
    x = embeddings.combine((1, 3)).numpy()
    names = {"numpy": np, "faiss": faiss, "whitelab": whitelab, "sentence_transformers": sentence_transformers}
    names |= {"x": x.astype(np.float32) if form == "faiss" else x, "texts": list(pairs.sentences)}
    exec("; ".join(before), names)
    z = np.asarray(eval(last, names))
    expected = fit_scope(embeddings, Setting((1, 3), "pca", 5)).transform().numpy()
    np.testing.assert_allclose(z, expected, atol=1e-3 * np.abs(expected).max())


@pytest.mark.parametrize(("whitening", "k"), [("none", ()), ("prefix", ("--k", "5"))])
def test_a_map_that_fits_nothing_leaves_as_one_of_no_sentences(document, options, space, tmp_path, whitening, k):
    out = tmp_path / "map.safetensors"
    words = ("--layers", "1", "--whitening", whitening, *k, "--export", "safetensors", "--out", str(out))
    assert document("whiten", *options, *words)["fitted"] == from_safetensors(out)[0].count == 0


@pytest.mark.parametrize("data", ["pairs.csv", "search"])
def test_an_export_names_the_text_it_was_fitted_on_without_the_path(document, model, place, tmp_path, data):
    words = (*model, "--data", str(place / data), "--k", "4", "--fit", str(place / "text.txt"))
    words += ("--search",) if data == "search" else ()
    out = tmp_path / "model"
    record = document("whiten", *words, "--export", "sentence-transformers", "--out", str(out))["protocol"]
    assert record["fit"] == "text.txt"
    assert not [one for one in out.rglob("*") if one.is_file() and str(place).encode() in one.read_bytes()]


@pytest.mark.parametrize(
    ("chosen", "named"),
    [
        (("--setting", "mean/L1:pca@5 fit=cross"), "fit='cross'"),
        (("--layers", "1", "--whitening", "pca", "--k", "5", "--fit", "cross"), "--fit cross"),
    ],
)
def test_a_cross_fitted_setting_leaves_as_the_map_of_the_whole_task_which_is_said(
    run, options, space, tmp_path, chosen, named
):
    status, _, err = run("whiten", *options, *chosen, "--export", "npz", "--out", str(tmp_path / "map.npz"))
    assert status == 0
    assert f"note: {named} fits two maps, and an export holds one" in err  # as it was typed
    whitener, protocol = from_npz(tmp_path / "map.npz")
    (expected,) = fit_scope(space[2], Setting((1,), "pca", 5)).whiteners
    assert protocol["fit"] == "task"
    np.testing.assert_allclose(whitener.dense, expected.dense)


@pytest.mark.parametrize(("fit", "k"), [((), 6), (("--fit", "queries"), 2)])
def test_the_map_that_a_search_was_measured_under_leaves_with_its_cosines(document, model, place, tmp_path, fit, k):
    words = (*model, "--data", str(place / "search"), "--whitening", "pca", "--layers", "1", "--k", str(k), *fit)
    document("whiten", "--search", *words, "--export", "npz", "--out", str(tmp_path / "map.npz"))
    whitener, protocol = from_npz(tmp_path / "map.npz")
    encoder, data = load_encoder(model[1]), load_retrieval(place / "search")
    searched, _ = embed_retrieval(for_documents(encoder), data)
    setting = searched.on(Setting((1,), "pca", k, fit=fit[1] if fit else "task"))
    (expected,) = fit_scope(searched.space, setting).whiteners
    np.testing.assert_allclose(whitener.dense, expected.dense, rtol=1e-6, atol=1e-9)
    assert protocol["fit"] == document("retrieve", *words)["protocol"]["fit"]
    with np.load(tmp_path / "map.npz") as file:
        random = calibrate_search(searched, setting).random
        np.testing.assert_allclose(np.interp(0.3, file["cosine"], file["percentile"]), random.percentile(0.3), atol=0.1)


@pytest.mark.parametrize(
    ("data", "among", "form"),
    [
        ("search", "all queries with all documents", "sentence-transformers"),
        ("pairs.csv", "random pairs of 'pairs'", "onnx"),
    ],
)
def test_a_card_says_among_what_a_cosine_has_its_percentile_and_what_is_left_to_its_reader(
    document, model, place, tmp_path, data, among, form
):
    words = (*model, "--data", str(place / data), "--k", "4", "--export", form, "--out", str(tmp_path / "model"))
    document("whiten", *words, *(("--search",) if data == "search" else ()))
    card = (tmp_path / "model" / "README.md").read_text("utf-8")
    assert f"# among {among}, 0 to 100" in card
    assert "White space at the ends of a sentence" in card
    names: dict = {}
    exec(card.split("```python")[-1].partition("```")[0].replace("path/to/this/folder", str(tmp_path / "model")), names)
    assert 0 <= names["percentile"] <= 100


def test_prompts_that_no_export_puts_before_texts_are_said_and_stand_in_the_record(run, model, place, tmp_path):
    words = (*model, "--data", str(place / "search"), "--whitening", "pca", "--k", "6", "--query-prompt", "query: ")
    status, _, err = run("whiten", "--search", *words, "--export", "npz", "--out", str(tmp_path / "map.npz"))
    assert status == 0
    assert "the map is of queries after 'query: ' and documents after nothing: put them there yourself" in err
    protocol = from_npz(tmp_path / "map.npz")[1]
    assert (protocol["query_prompt"], protocol["document_prompt"]) == ("query: ", "")


@pytest.mark.parametrize(("k", "means"), [((), False), (("--k", "2"), True)])
def test_what_a_cosine_means_goes_with_a_map_whose_cosines_tell_sentences_apart(
    document, model, place, tmp_path, k, means
):
    """Every direction of so few sentences sets them equally far apart."""
    words = (*model, "--data", str(place / "few.csv"), "--export", "npz", "--out", str(tmp_path / "map.npz"), *k)
    document("whiten", *words)
    with np.load(tmp_path / "map.npz") as file:
        assert ("percentile" in file) is means


@pytest.mark.parametrize(
    ("data", "of"),
    [
        ((), None),
        (("--search",), None),
        (("--data", "few.csv"), "random pairs of 'few'"),
        (("--search", "--data", "search"), "all queries with all documents"),
    ],
)
def test_a_map_of_other_text_goes_without_percentiles_of_data_that_nobody_asked_for(
    run, model, place, tmp_path, data, of
):
    """They would say of one's own texts what is so of the demonstration set."""
    given = [word if word.startswith("--") else str(place / word) for word in data]
    words = (*model, *given, "--fit", str(place / "pairs.csv"), "--k", "2", "--export", "npz")
    status, _, err = run("whiten", *words, "--out", str(tmp_path / "map.npz"))
    assert status == 0
    assert ("--data, among whose pairs they would be, stands at demo" in err) is (of is None)
    with np.load(tmp_path / "map.npz") as file:
        assert file.get("among", None) == of
        assert ("percentile" in file) is (of is not None)


@pytest.mark.parametrize("whitening", ["clusters:m=2,directions=1", "flow:epochs=2"])
def test_an_exported_map_of_rows_is_loaded_back(document, options, space, tmp_path, whitening):
    out, setting = tmp_path / "map.safetensors", Setting((1, 3), whitening)
    words = ("--layers", "1,3", "--whitening", whitening)
    record = document("whiten", *options, *words, "--export", "safetensors", "--out", str(out))
    loaded, protocol = from_safetensors(out)
    x = space[2].combine((1, 3))
    np.testing.assert_allclose(loaded(x), fit_scope(space[2], setting).whiteners[0](x), atol=1e-4)
    assert protocol == record["protocol"]
    assert record["dim"] == x.shape[1]
    assert record["fit_cost"]["maps"] == 1
    assert document("score", *options, *words)["fit_cost"]["maps"] == 3
    assert "fit_cost" not in document("score", *options, "--whitening", "pca")


def test_an_exported_transform_is_read_by_faiss(document, options, space, tmp_path):
    embeddings, out = space[2], tmp_path / "map.faiss"
    document("whiten", *options, "--layers", "3", "--whitening", "zca", "--export", "faiss", "--out", str(out))
    x = embeddings.combine((3,))
    expected = fit_scope(embeddings, Setting((3,), "zca")).transform().numpy()
    found = faiss.read_VectorTransform(str(out)).apply(x.numpy().astype(np.float32))
    np.testing.assert_allclose(found, expected, atol=1e-3 * np.abs(expected).max())


def test_an_exported_model_is_loaded_by_sentence_transformers(document, options, space, tmp_path):
    encoder, pairs, embeddings = space
    out = tmp_path / "model"
    settings = ("--layers", "1,3", "--k", "4", "--export", "sentence-transformers", "--out", str(out))
    record = document("whiten", *options, *settings)
    assert record["protocol"]["whitening"] == "pca"
    found = SentenceTransformer(str(out), device="cpu").encode(list(pairs.sentences), show_progress_bar=False)
    expected = fit_scope(embeddings, Setting((1, 3), "pca", 4)).transform().numpy()
    np.testing.assert_allclose(found, expected, atol=1e-4)


@pytest.mark.parametrize(
    ("more", "words"),
    [
        (("--export", "mlmodel", "--out", "x"), "invalid choice: 'mlmodel'"),
        (("--whitening", "flow", "--export", "npz", "--out", "x.npz"), "--export npz holds a matrix, which 'flow"),
        (("--export", "npz"), "the following arguments are required: --out"),
        (("--export", "npz", "--out", "no/such/folder/x.npz"), "no/such/folder"),
    ],
)
def test_an_export_that_cannot_be_is_refused(run, options, more, words):
    status, out, err = run("whiten", *options, *more)
    assert (status, out) == (2, "")
    assert words in err
    assert len(err.strip().splitlines()) == 1


@pytest.mark.parametrize("search", [False, True])
def test_a_map_of_vectors_that_no_text_has_alone_is_refused_before_the_model_is_loaded(run, place, tmp_path, search):
    data = ("--search", "--data", str(place / "search")) if search else ("--data", str(place / "pairs.csv"))
    words = ("--model", f"sif:{tmp_path / 'none'}", "--export", "npz", "--out", str(tmp_path / "map.npz"))
    status, _, err = run("whiten", *data, *words)
    assert status == 2
    assert "weighs words by all texts together, so a text without the others has another vector: use static:" in err
