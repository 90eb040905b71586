"""The page of retrieval: metrics of the package, on the bundled set and on folders of one's own."""

import io
import json
import shutil
import tempfile
from zipfile import ZipFile

import numpy as np
import pytest
import torch
from judged import write_retrieval
from streamlit.testing.v1 import AppTest
from tiny import SENTENCES

import whitelab
from whitelab.encoding.checkpoints import PROMPTS_FILE
from whitelab.encoding.embed import embed
from whitelab.encoding.embeddings import LayerRows
from whitelab.retrieval.compression import CODES
from whitelab.retrieval.embedded import embed_retrieval, for_documents
from whitelab.retrieval.metrics import METRICS
from whitelab.retrieval.relevance import against, retrieve
from whitelab.scoring.fit_scopes import fit_scope
from whitelab.scoring.setting import Setting
from whitelab.ui.sections import take_away
from whitelab.ui.sections.rankings import Comparison, beaten
from whitelab.whitening.export import to_npz

from .visiting import choose, code, downloads, failed, judged, metrics, press, said, start, until

pytestmark = pytest.mark.model


@pytest.fixture(scope="module")
def searched(small):
    """The bundled set under the tiny model."""
    encoder = for_documents(whitelab.load_encoder(small["model"]))
    return embed_retrieval(encoder, whitelab.load_retrieval("demo"))[0]


def scope(at) -> str:
    """The key of the choice of what the whitening is fitted on."""
    return next(one for one in at.selectbox if one.label == "Whitening fitted on").key


def test_scores_follow_metric_fit_layer_and_k(small, space, searched):
    at = until(start("retrieval", **small | {"layers": "3", "k": "8"}))

    def shown(text: str, metric: str = "ndcg@10", found=searched) -> None:
        raw, white = against(
            [retrieve(found, whitelab.Setting.parse(one)) for one in (text.partition(":")[0], text)], metric=metric
        )
        numbers = metrics(at)
        label = METRICS[metric].label
        assert numbers[f"{label}, raw"] == f"{raw.mean:.4f}"
        assert numbers[f"{label}, PCA whitening, k = {white.retrieval.setting.k}"] == f"{white.mean:.4f}"
        assert numbers["Queries gained"] == str(white.gained)
        assert judged(at, f"{label}, PCA whitening, k = {white.retrieval.setting.k}") == (white.verdict != "chance")

    shown("L3:pca@8")  # 300 passages are enough for 32 dimensions
    choose(at, compared_by="map@100")
    shown("L3:pca@8 fit=corpus", "map@100")
    choose(at, **{scope(at): "queries"})
    shown("L3:pca@8 fit=queries", "map@100")
    choose(choose(at, layers=[1]), k=20)
    shown("L1:pca@20 fit=queries", "map@100")
    choose(at, query_prompt="a man asks: ")
    asked = whitelab.load_retrieval("demo").prompted("a man asks: ")
    reader = for_documents(whitelab.load_encoder(small["model"]))
    shown("L1:pca@20 fit=queries", "map@100", embed_retrieval(reader, asked)[0])
    assert ".prompted(query='a man asks: ')" in code(at)
    choose(at, query_prompt="")
    choose(at, **{scope(at): "workspace"})
    own = searched.with_text("the sentences of pairs", LayerRows(space.values, space.counts))
    shown("L1:pca@20 fit=the sentences of pairs", "map@100", own)


def test_the_makers_prompts_are_said_and_offered(small, tmp_path):
    folder = shutil.copytree(small["model"], tmp_path / "prompted")
    prompts = {"query": "a man asks: ", "document": "the text: "}
    (folder / PROMPTS_FILE).write_text(json.dumps({"prompts": prompts}))
    at = until(start("retrieval", **small | {"model": str(folder)}))
    assert said(at, "The model's makers put “a man asks: ” before queries and “the text: ” before documents")
    assert ".prompted(" not in code(at)
    press(at, "makers-prompts")
    assert ".prompted(query='a man asks: ', document='the text: ')" in code(at)
    assert not [one for one in at.button if one.key == "makers-prompts"]  # there is nothing left to offer


def test_a_folder_of_ones_own_is_searched_and_what_is_wrong_with_it_is_said(small, tmp_path):
    texts = {f"d{i}": ("", text) for i, text in enumerate(SENTENCES[:20])}
    grades = [("q0", "d1", 1), ("q0", "gone", 1)]
    folder = write_retrieval(tmp_path / "mine", texts, {"q0": "who plays", "q1": "who cooks"}, grades)
    query = small | {"searched-data": str(folder)}
    at = until(start("retrieval", **query), lambda at: at.checkbox)
    assert failed(at, "1 row cannot be read")
    choose(at, searched_keep=True)
    assert said(at, "Note: rows left out: 1", "Note: 1 query left out, because no document is relevant")
    assert metrics(at)["Queries gained"] in ("0", "1")
    assert said(at, "so few queries (1) tell settings apart by chance alone")
    assert not said(at, "different vectors span only")
    assert said(choose(at, **{scope(at): "corpus"}), "different vectors span only")  # 20 documents in 32 dimensions
    at = until(start("retrieval", **small | {"searched-data": "/no/such"}), lambda at: at.error)
    assert failed(at, "no such file or folder")


def test_what_there_is_to_know_of_embedded_documents_is_said_each_time_they_are_shown(small, tmp_path):
    texts = {f"d{i}": ("", text) for i, text in enumerate((*SENTENCES[:20], "☃☃"))}
    folder = write_retrieval(tmp_path / "unknown", texts, {"q0": "who plays"}, [("q0", "d1", 1)])
    for _ in range(2):  # the second time what was embedded is on the shelf
        at = until(start("retrieval", **small | {"searched-data": str(folder)}))
        assert said(at, "Note: 1 sentence of mostly unknown words")


def page():
    import streamlit as st

    from whitelab.encoding.checkpoints import find_model
    from whitelab.ui.sections import retrieval_sets

    found = retrieval_sets.choose(find_model("bundled"))
    if found is not None:
        st.text(f"{found.source}: {len(found.documents)} documents, {len(found.queries)} queries")
        st.code(retrieval_sets.code(found))


def test_an_upload_is_read_from_memory_and_its_code_reads_the_same_files(monkeypatch, tmp_path):
    folder = write_retrieval(tmp_path / "mine")
    files = [folder / "corpus.jsonl", folder / "queries.jsonl", folder / "qrels" / "test.tsv"]
    with monkeypatch.context() as patch:
        patch.setattr(tempfile, "TemporaryDirectory", None)
        at = AppTest.from_function(page, default_timeout=30)
        at.query_params["searched-data"] = "Uploaded files"
        assert said(at.run(), "or three files")
        brought = [(file.name, file.read_bytes(), "application/octet-stream") for file in files]
        at.file_uploader(key="retrieval-files").set_value(brought).run()
        assert [one.value for one in at.text] == ["upload: 3 documents, 2 queries"]
        at.file_uploader(key="retrieval-files").set_value(brought[:2]).run()
        assert failed(at, "an upload: no judgements")
        packed = io.BytesIO()
        with ZipFile(packed, "w") as archive:
            for file in files:
                archive.write(file, file.relative_to(tmp_path))
        whole = [("mine.zip", packed.getvalue(), "application/zip")]
        at.file_uploader(key="retrieval-files").set_value(whole).run()
        assert [one.value for one in at.text] == ["mine: 3 documents, 2 queries"]
        assert at.selectbox(key="searched-split").options == ["test"]
        at.file_uploader(key="retrieval-files").set_value(brought).run()
        at.selectbox(key="searched-data").set_value("demo").run()
        at.selectbox(key="searched-data").set_value("upload").run()
        assert [one.value for one in at.text] == ["upload: 3 documents, 2 queries"]
    for file in files:
        shutil.copy(file, tmp_path)
    monkeypatch.chdir(tmp_path)
    found = eval(at.code[0].value, {"whitelab": whitelab})
    assert found.fingerprint == whitelab.load_retrieval(folder).fingerprint


def test_bits_are_shown_on_request(small, searched):
    at = until(start("retrieval", **small | {"layers": "3", "k": "8"}))
    assert "Bytes a vector" not in metrics(at)
    until(press(at, "bits"), lambda at: len(at.dataframe) and "Bytes a vector" in metrics(at))
    codes = [one for one in CODES if one.rotation != "opq"]
    settings = [whitelab.Setting.parse(text) for text in ("L3", "L3:pca@8")]
    *_, found = whitelab.frontier(searched, settings, codes)
    shown = metrics(at)
    few = [one for one in found.points if one.bytes <= found.points[0].bytes / 32]
    best = max(few, key=lambda one: one.score)
    assert (shown["Bytes a vector"], shown["Score stored so"]) == (str(best.bytes), f"{best.score:.4f}")
    assert said(at, best.line())
    assert said(at, "all dimensions, whatever k")
    table = at.dataframe[0].value
    assert table["ZCA whitening"][0] == f"{retrieve(searched, whitelab.Setting.parse('L3:zca')).means['ndcg@10']:.4f}"
    assert table["Apart by"].iloc[0] == "0.0000"  # floats
    assert float(table["Apart by"].iloc[-1]) > 0  # signs


def test_the_map_of_a_search_is_offered_with_lines_that_make_its_vectors(small, searched, tmp_path, monkeypatch):
    at = until(start("retrieval", **small | {"layers": "3", "k": "8", "query-prompt": "ASK: "}))
    reader = for_documents(whitelab.load_encoder(small["model"]))
    prompted = embed_retrieval(reader, whitelab.load_retrieval("demo").prompted("ASK: "))[0]
    setting = prompted.on(whitelab.Setting.parse("L3:pca@8"))
    (whitener,) = fit_scope(prompted.space, setting).whiteners
    monkeypatch.chdir(tmp_path)
    assert "Download .npz" in downloads(choose(at, format="npz"))
    assert said(at, "The map is of queries after 'ASK: ' and documents after nothing: put them there yourself.")
    scale = whitelab.calibrate_search(prompted, setting).arrays()
    to_npz("model-mean-layers-3-pca-k8-demo-search-test-on-corpus.npz", whitener, {}, scale)
    names: dict = {}
    lines = next(one.value for one in at.code if "-on-corpus.npz" in one.value)
    assert "among all queries with all documents" in lines
    exec(lines, names)
    values, _ = whitelab.embed(reader, names["sentences"])
    assert names["sentences"][0].startswith("ASK: ")
    np.testing.assert_allclose(names["z"], whitener(values[3]), atol=1e-4)
    assert np.isclose(names["percentile"], np.interp(0.7, scale["cosine"], scale["percentile"]))
    choose(at, format="scikit-learn")
    exec(next(one.value for one in at.code if "WhiteningTransformer('pca', k=8)" in one.value), names)
    made = names["pipeline"].steps[0][1].transform(prompted.space.combine((3,)).numpy())
    np.testing.assert_allclose(made, whitener(prompted.space.values[3]), atol=1e-4)
    choose(at, format="sentence-transformers")
    assert said(at, "encode_query and encode_document put them there")
    written = []

    def write(folder, *given):
        written.append(given)
        folder.mkdir()

    monkeypatch.setattr(take_away.export, "to_sentence_transformers", write)
    press(at, "make-model", lambda at: any(label.startswith("Download .zip") for label in downloads(at)))
    encoder, layers, pooling, made, record, found = written.pop()
    assert (encoder.max_length, layers, pooling) == (reader.max_length, (3,), "mean")
    assert (record["fit"], record["query_prompt"], record["rank"]) == ("corpus", "ASK: ", 8)
    np.testing.assert_array_equal(found["percentile"], scale["percentile"])
    np.testing.assert_allclose(made(values[3]), whitener(values[3]), atol=1e-4)


def test_whoever_takes_the_map_of_a_search_is_told_where_the_last_layer_ranks_better_as_it_is(small, tmp_path):
    documents, queries = SENTENCES[:30], SENTENCES[30:60]
    encoder = for_documents(whitelab.load_encoder(small["model"]))
    found = embed(encoder, documents + queries)[0][3]
    nearest = torch.nn.functional.cosine_similarity(found[30:, None], found[None, :30], dim=-1).argmax(dim=1)
    judged = [(f"q{i}", f"d{j}", 1) for i, j in enumerate(nearest.tolist())]  # what layer 3 finds is relevant
    texts = {f"d{i}": ("", text) for i, text in enumerate(documents)}
    folder = write_retrieval(tmp_path / "mine", texts, {f"q{i}": text for i, text in enumerate(queries)}, judged)
    space, _ = embed_retrieval(encoder, whitelab.load_retrieval(folder))
    raw, now = (retrieve(space, Setting.parse(text)) for text in ("L1", "L1:center fit=corpus"))
    assert against([raw, now])[-1].verdict != "loss"  # of raw vectors of the same layer, of which it is said already
    words = f"The raw vectors of layer 3, the last, reach nDCG@10 1.0000 here, and this map {now.means['ndcg@10']:.4f}."
    at = until(start("retrieval", **small | {"searched-data": str(folder)}, whitening="Centred"))
    assert said(until(choose(at, **{scope(at): "corpus"})), words)
    every = [retrieve(space, Setting((layer,))) for layer in range(4)]
    by_ndcg = Comparison("ndcg@10", "corpus", own=False)
    for layer in (1, 3):
        lower = retrieve(space, Setting((layer,), "pca", 2, fit="corpus"))
        assert lower.means["ndcg@10"] < 0.9
        told = beaten([every[layer], lower], every, by_ndcg)
        assert bool(told) is (layer != 3)  # of the same layer it is said already


def test_whoever_takes_the_map_of_a_search_is_told_where_raw_vectors_rank_better(small, tmp_path):
    texts = dict.fromkeys(SENTENCES[:60])  # each is the query that it alone is relevant to
    judged = [(f"q{i}", f"d{i}", 1) for i in range(len(texts))]
    documents = {f"d{i}": ("", text) for i, text in enumerate(texts)}
    folder = write_retrieval(tmp_path / "mine", documents, {f"q{i}": text for i, text in enumerate(texts)}, judged)
    at = until(start("retrieval", **small | {"searched-data": str(folder), "k": "32"}))
    for k, worse in ((32, False), (1, True)):
        assert (
            said(choose(at, k=k), "The raw vectors of layer 1 rank these documents better, and not by chance") is worse
        )
        assert said(at, "the raw vectors of layer 1") is not worse  # where they do not, it says what is known
