"""Laws of prompts: they stand before what is embedded, are part of the protocol; makers may name them."""

import json
from dataclasses import replace

import pytest
import torch
from judged import write_retrieval
from sentence_transformers import SentenceTransformer
from sentence_transformers.sentence_transformer.modules import Pooling, Transformer
from tiny import DIM, SENTENCES, build_model

from whitelab.datasets import load_retrieval
from whitelab.encoding.checkpoints import PROMPTS_FILE, find_model, prompts, prompts_note
from whitelab.encoding.embed import embed
from whitelab.encoding.encoders import load_encoder
from whitelab.encoding.names import ModelError
from whitelab.retrieval.embedded import embed_retrieval
from whitelab.retrieval.relevance import retrieve
from whitelab.scoring.setting import Setting

QUERY, DOCUMENT = "a man asks: ", "the text: "


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return build_model(tmp_path_factory.mktemp("prompts") / "model")


@pytest.fixture(scope="module")
def data(tmp_path_factory):
    """A search in which one text is both asked and found."""
    texts = {f"d{i}": ("", text) for i, text in enumerate(SENTENCES[:30])}
    asked = {"q0": SENTENCES[0], "q1": f"who {SENTENCES[9]}", "q2": f"who {SENTENCES[18]}"}
    grades = [("q0", "d0", 1), ("q1", "d9", 2), ("q2", "d18", 1), ("q2", "d3", 1)]
    return load_retrieval(write_retrieval(tmp_path_factory.mktemp("search") / "search", texts, asked, grades))


def test_each_text_is_embedded_behind_its_own_prompt(folder, data):
    encoder, given = load_encoder(str(folder), device="cpu"), data.prompted(QUERY, DOCUMENT)
    space, _ = embed_retrieval(encoder, given)
    for rows, texts in (
        (space.documents, [DOCUMENT + text for text in data.documents]),
        (space.queries, [QUERY + text for text in data.queries]),
    ):
        torch.testing.assert_close(space.space.values[:, rows], embed(encoder, texts)[0], rtol=0, atol=1e-6)
    assert int(space.queries[0]) != int(space.documents[0])
    assert given.queries == data.queries


def test_a_prompted_search_scores_as_one_with_the_words_written_out(folder, data):
    encoder, setting = load_encoder(str(folder), device="cpu"), Setting.parse("L2:pca@9")
    written = replace(
        data,
        documents=tuple(DOCUMENT + text for text in data.documents),
        queries=tuple(QUERY + text for text in data.queries),
    )
    found, same, plain = (
        retrieve(embed_retrieval(encoder, one)[0], setting) for one in (data.prompted(QUERY, DOCUMENT), written, data)
    )
    assert torch.equal(found.per_query, same.per_query)
    record = found.protocol.as_dict()
    assert (record["query_prompt"], record["document_prompt"]) == (QUERY, DOCUMENT)
    assert f"prompts {QUERY!r} and {DOCUMENT!r}" in found.line()
    assert "query_prompt" not in plain.protocol.as_dict()
    assert data.prompted(QUERY).fingerprint != data.fingerprint == data.prompted().fingerprint


@pytest.mark.parametrize("kind", ["", "output:"])
def test_a_prompt_before_every_text_is_noted_where_it_is_left_out_and_has_no_place_in_a_search(kind, data, tmp_path):
    folder = tmp_path / "saved"
    made = [Transformer(str(build_model(tmp_path / "base"))), Pooling(DIM)]
    asked = {"query": QUERY, "document": DOCUMENT, "sts": "alike: "}
    library = SentenceTransformer(modules=made, device="cpu", prompts=asked, default_prompt_name="sts")
    library.save(str(folder))
    encoder = load_encoder(f"{kind}{folder}", device="cpu")
    values, report = embed(encoder, SENTENCES[:3])
    assert [note for note in report.notes if "'alike: ' before every text" in note]
    assert not torch.allclose(values[-1], library.encode(SENTENCES[:3], convert_to_tensor=True), atol=1e-3)
    given = data.prompted(*prompts(encoder.files))
    space, report = embed_retrieval(encoder, given)
    assert not [note for note in report.notes if "before every text" in note]
    for rows, expected in (
        (space.documents, library.encode_document(list(data.documents), convert_to_tensor=True)),
        (space.queries, library.encode_query(list(data.queries), convert_to_tensor=True)),
    ):
        torch.testing.assert_close(space.space.values[-1, rows], expected, atol=1e-5, rtol=1e-5)


@pytest.mark.parametrize("name", ["document", "passage", "corpus"])
def test_a_documents_prompt_is_noted_where_sentence_transformers_does_not_put_it(name, tmp_path):
    made = [Transformer(str(build_model(tmp_path / "model"))), Pooling(DIM)]
    SentenceTransformer(modules=made, device="cpu").save(str(tmp_path / "saved"))
    path = tmp_path / "saved" / PROMPTS_FILE
    path.write_text(json.dumps(json.loads(path.read_text()) | {"prompts": {name: DOCUMENT}}))
    library, files = SentenceTransformer(str(path.parent), device="cpu"), find_model(str(path.parent))
    found = library.encode_document(SENTENCES[:2])
    put = (found == library.encode([DOCUMENT + text for text in SENTENCES[:2]])).all()
    assert prompts(files) == ("", DOCUMENT)
    assert bool(prompts_note(files)) is not bool(put)


def test_the_makers_prompts_are_read_where_they_say_some(folder):
    files, path = find_model(str(folder)), folder / PROMPTS_FILE
    assert prompts(files) == ("", "")
    for given, wanted in (
        ({"query": "query: ", "passage": "passage: "}, ("query: ", "passage: ")),
        ({"query": "ask ", "document": ""}, ("ask ", "")),
        ({"classification": "x"}, ("", "")),
        ("none", ("", "")),
    ):
        path.write_text(json.dumps({"prompts": given}))
        assert prompts(files) == wanted
    path.write_text("{")
    with pytest.raises(ModelError, match=f"has a {PROMPTS_FILE} that cannot be read"):
        prompts(files)
    path.unlink()
