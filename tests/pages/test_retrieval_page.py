"""The page of retrieval: metrics of the package, on the bundled set and on folders of one's own."""

import shutil
import tempfile

import pytest
from judged import write_retrieval
from streamlit.testing.v1 import AppTest
from tiny import SENTENCES

import whitelab
from whitelab.encoding.embeddings import LayerRows
from whitelab.retrieval.embedded import embed_retrieval, for_documents
from whitelab.retrieval.metrics import METRICS
from whitelab.retrieval.relevance import against, retrieve

from .visiting import choose, failed, metrics, said, start, until

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
        assert numbers[f"{label}, PCA whitening"] == f"{white.mean:.4f}"
        assert numbers["Queries gained"] == str(white.gained)

    shown("L3:pca@8")  # 300 passages are enough for 32 dimensions
    choose(at, compared_by="map@100")
    shown("L3:pca@8 fit=corpus", "map@100")
    choose(at, **{scope(at): "queries"})
    shown("L3:pca@8 fit=queries", "map@100")
    choose(choose(at, layers=[1]), k=20)
    shown("L1:pca@20 fit=queries", "map@100")
    choose(at, **{scope(at): "workspace"})
    own = searched.with_text("the sentences of pairs", LayerRows(space.values, space.counts))
    shown("L1:pca@20 fit=the sentences of pairs", "map@100", own)


def test_a_folder_of_ones_own_is_searched_and_what_is_wrong_with_it_is_said(small, tmp_path):
    texts = {f"d{i}": ("", text) for i, text in enumerate(SENTENCES[:20])}
    folder = write_retrieval(tmp_path / "mine", texts, {"q0": "who plays", "q1": "who cooks"}, [("q0", "d1", 1)])
    query = small | {"searched-data": str(folder)}
    at = until(start("retrieval", **query), lambda at: at.checkbox)
    assert failed(at, "1 row cannot be read")
    choose(at, searched_keep=True)
    assert said(at, "Note: rows left out: 1")
    assert metrics(at)["Queries gained"] in ("0", "1")
    assert not said(at, "equal distances")
    assert said(choose(at, **{scope(at): "corpus"}), "equal distances")  # 20 documents in 32 dimensions
    at = until(start("retrieval", **small | {"searched-data": "/no/such"}), lambda at: at.error)
    assert failed(at, "no such file or folder")


def page():
    import streamlit as st

    from whitelab.ui.sections import retrieval_sets

    found = retrieval_sets.choose()
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
        assert said(at.run(), "Choose three files")
        brought = [(file.name, file.read_bytes(), "application/octet-stream") for file in files]
        at.file_uploader(key="retrieval-files").set_value(brought).run()
        assert [one.value for one in at.text] == ["upload: 3 documents, 2 queries"]
        at.file_uploader(key="retrieval-files").set_value(brought[:2]).run()
        assert failed(at, "an upload: no judgements")
        at.file_uploader(key="retrieval-files").set_value(brought).run()
    for file in files:
        shutil.copy(file, tmp_path)
    monkeypatch.chdir(tmp_path)
    found = eval(at.code[0].value, {"whitelab": whitelab})
    assert found.fingerprint == whitelab.load_retrieval(folder).fingerprint
