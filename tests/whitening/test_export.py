"""Laws of the exports: each is loaded back by the library it is for, and gives whitelab's vectors."""

import json
import os
import subprocess
import sys
from pathlib import Path
from shutil import copytree
from textwrap import indent
from zipfile import ZipFile

import faiss
import numpy as np
import pytest
import torch
from reference import apart
from safetensors import safe_open
from safetensors.torch import load_file
from safetensors.torch import save as safetensors_of
from sentence_transformers import SentenceTransformer
from tiny import ARCHITECTURES, DIM, SENTENCES, write_pairs
from tokenizers import Tokenizer
from torch.testing import assert_close
from transformers import BertModel

import whitelab
from tests.conftest import OF_MOMENTS, SMALL
from whitelab import WHITENERS, Moments, WhiteningTransformer, datasets, embed, fit, load_encoder
from whitelab.base.devices import dtypes_for
from whitelab.encoding import encoders
from whitelab.encoding.embeddings import embed_pairs
from whitelab.encoding.names import ModelError
from whitelab.scoring.calibration import calibrate
from whitelab.scoring.fit_scopes import fit_scope
from whitelab.scoring.setting import Setting
from whitelab.statistics.random_cosines import RandomCosines
from whitelab.store.embedding_store import Store
from whitelab.whitening import fit_to_rows
from whitelab.whitening.export import (
    ExportError,
    from_npz,
    from_safetensors,
    numpy_lines,
    scale_lines,
    to_faiss,
    to_npz,
    to_onnx,
    to_safetensors,
    to_sentence_transformers,
    zip_folder,
)
from whitelab.whitening.export import sentence_transformers_folder as folders

PROTOCOL = {"model": "café", "layers": [1, 6], "pooling": "mean", "k": None}
MAPS = [("none", None), ("center", None), ("standardize", None), ("cholesky", None), ("zca", None), ("zca", 4)]
MAPS += [("center", 4), ("pca", None), ("pca", 4)]
TEXTS = [*SENTENCES[:120], "water", "Water, the long film and (perhaps) a bird?", "é ü 日本 zebra", "a " * 60]


def rows(n=90, d=7, seed=0, offset=5.0):
    rng = np.random.default_rng(seed)
    x = rng.standard_normal((n, d)) * np.linspace(0.5, 3, d) @ rng.standard_normal((d, d)) + offset
    return torch.from_numpy(x)


def fitted(name="pca", k=None, x=None):
    return fit(name, Moments.of(rows() if x is None else x), k)


def combined(encoder, layers, pooling="mean", texts=TEXTS):
    """The mean of the layers in float64, what a map is fitted on."""
    return embed(encoder, texts, pooling)[0][list(layers)].double().mean(dim=0)


def encode(folder, texts=TEXTS):
    return SentenceTransformer(str(folder), device="cpu").encode(list(texts))


# ------------------------------------------------------------------------------------------------ NumPy


@pytest.mark.parametrize(("name", "k"), MAPS)
def test_an_npz_holds_the_map_and_the_protocol(tmp_path, name, k):
    before, path = fitted(name, k), tmp_path / "map.npz"
    to_npz(path, before, PROTOCOL)
    after, protocol = from_npz(path)
    assert_close(after(rows()), before(rows()), rtol=1e-12, atol=1e-12)
    assert protocol == PROTOCOL
    assert (after.name, after.rank, after.k, after.count) == (before.name, before.rank, before.k, before.count)
    with np.load(path) as file:
        assert file["matrix"].shape == (7, before(rows()).shape[1])
        assert file["mean"].dtype == file["matrix"].dtype == np.float64
        assert json.loads(str(file["protocol"])) == PROTOCOL


@pytest.mark.parametrize("name", [SMALL.get(name, name) for name in OF_MOMENTS])
def test_the_lines_shown_apply_the_npz_with_numpy_alone(tmp_path, name):
    whitener, path = fitted(name), tmp_path / "it's a \\map.npz"
    to_npz(path, whitener, PROTOCOL)
    lines = numpy_lines(path)
    assert "whitelab" not in lines.replace(str(tmp_path), "")
    names = {}
    exec(lines, names)
    x, expected = rows().numpy(), whitener(rows()).numpy()
    np.testing.assert_allclose(names["whiten"](x), expected, rtol=1e-12, atol=1e-12)
    np.testing.assert_allclose(names["whiten"](x[3]), expected[3], rtol=1e-12, atol=1e-12)
    with pytest.raises(ValueError, match=rf"x must have d={x.shape[1]} columns.*got \({len(x)}, 1\)"):
        names["whiten"](x[:, :1])
    assert json.loads(names["protocol"]) == PROTOCOL


@pytest.mark.parametrize("name", [SMALL.get(name, name) for name in WHITENERS])
def test_a_safetensors_holds_any_map_and_the_protocol(tmp_path, name):
    before, path = fit_to_rows(name, rows()), tmp_path / "map.safetensors"
    for _ in range(2):  # an earlier export is replaced
        to_safetensors(path, before, PROTOCOL)
    after, protocol = from_safetensors(path)
    assert_close(after(rows()), before(rows()), rtol=1e-12, atol=1e-12)
    assert protocol == PROTOCOL
    assert type(after) is type(before)
    assert (after.name, after.rank, after.k, after.count) == (before.name, before.rank, before.k, before.count)
    if name == "flow":
        assert after.cost == before.cost
        assert_close(after.inverse(after(rows())), rows())


def test_a_file_that_holds_no_map_is_refused_and_left_alone(tmp_path):
    path = tmp_path / "map.safetensors"
    to_safetensors(path, fit_to_rows("flow", rows()), PROTOCOL)
    whole = path.read_bytes()
    tensors = {name: one for name, one in fit_to_rows("flow", rows()).tensors.items() if "1.0" not in name}
    facts = json.dumps({"name": "flow", "rank": 7, "k": None, "count": 9, "facts": {"dim": 7, "levels": 3, "depth": 3}})
    about = {"whitelab": "0", "kind": "flow", "map": facts, "protocol": "{}"}
    for data in (b"", whole[:-9], b"{}", safetensors_of(tensors, about), safetensors_of(tensors)):
        path.write_bytes(data)
        with pytest.raises(ExportError, match="must be a .safetensors of a map, written by whitelab"):
            from_safetensors(path)
        with pytest.raises(ExportError, match="is not an earlier export of this kind"):
            to_safetensors(path, fit_to_rows("flow", rows()), PROTOCOL)
        assert path.read_bytes() == data
    with pytest.raises(ExportError, match="must be a .safetensors of a map"):
        from_safetensors(tmp_path / "nothing")


@pytest.mark.parametrize("write", [to_npz, to_faiss])
@pytest.mark.parametrize("name", ["clusters:m=2", "flow"])
def test_a_map_without_a_matrix_is_refused_by_forms_that_hold_one(tmp_path, write, name):
    with pytest.raises(ExportError, match="is no affine map, and this form holds .* export it as safetensors"):
        write(tmp_path / "map", fit_to_rows(name, rows()), PROTOCOL)
    assert not list(tmp_path.iterdir())


def test_one_row_through_a_stored_map_is_that_row_of_the_batch(tmp_path):
    to_npz(tmp_path / "map.npz", fitted("pca", 4), PROTOCOL)
    stored, _ = from_npz(tmp_path / "map.npz")
    batch = stored(rows())
    for i in (0, 17, 89):
        assert_close(stored(rows()[i : i + 1]), batch[i : i + 1], rtol=1e-12, atol=1e-12)


def test_the_map_of_the_estimator_is_exported_like_any_other(tmp_path):
    found = WhiteningTransformer("zca").fit(rows().numpy())
    to_npz(tmp_path / "map.npz", found.whitener_, PROTOCOL)
    assert_close(from_npz(tmp_path / "map.npz")[0](rows()).numpy(), found.transform(rows().numpy()))
    for write in (to_npz, to_faiss, to_safetensors):
        with pytest.raises(TypeError, match="whitener must be Map, .* WhiteningTransformer has as whitener_, got Whit"):
            write(tmp_path / "estimator", found, PROTOCOL)


@pytest.mark.parametrize("content", ["missing", "empty", "text", "damaged", "array", "other"])
def test_no_other_file_passes_for_a_map(tmp_path, content):
    path = tmp_path / "map.npz"
    to_npz(path, fitted(), PROTOCOL)
    whole = path.read_bytes()
    path.unlink()
    if content == "array":
        with path.open("wb") as file:
            np.save(file, np.zeros(3))
    elif content == "other":
        np.savez(path, mean=np.zeros(3), matrix=np.eye(3))
    elif content != "missing":
        path.write_bytes({"empty": b"", "text": b"mean, matrix", "damaged": whole[: len(whole) // 2]}[content])
    with pytest.raises(ExportError, match="must be an .npz written by whitelab"):
        from_npz(path)


def nan_in(values):
    return values.index_put((torch.tensor(0), torch.tensor(0)), torch.tensor(torch.nan, dtype=values.dtype))


# What is changed in a whole file, and what is said of it.
WRONG_TENSORS = [
    ("pca", "matrix", nan_in, "matrix must hold finite numbers"),
    ("pca", "matrix", lambda one: one[:-1], r"must fit together, got \[7\] and \[6, 7\]"),
    ("pca", "matrix", lambda one: one.to(torch.complex64), "matrix must hold real numbers"),
    ("pca", "mean", lambda one: one[None], "must fit together"),
    ("clusters:m=2", "centroids", nan_in, "centroids must hold finite numbers"),
    ("clusters:m=2", "centroids", lambda one: one[:-1], "its tensors must fit together"),
]
WRONG_FACTS = [({"rank": "z"}, "rank='z'"), ({"rank": 8}, "rank=8 must lie"), ({"k": 700}, "k=700 must lie")]
WRONG_FACTS += [({"count": -3}, "count=-3"), ({"count": None}, "count=None"), ({"name": 5}, "name=5 must be text")]


def altered(path, spec, change=lambda tensors: tensors, facts=None, protocol=None):
    """Write a map with something else in it, in the form of the ending of `path`; return what reads it."""
    if path.suffix == ".npz":
        to_npz(path, fitted(spec), PROTOCOL)
        with np.load(path) as file:
            texts = {name: str(file[name]) for name in ("whitener", "protocol", "whitelab")}
            tensors = {name: torch.from_numpy(file[name]) for name in ("mean", "matrix")}
        texts = changed(texts, "whitener", facts, protocol)
        np.savez(path, **{name: one.numpy() for name, one in change(tensors).items()}, **texts)
        return from_npz
    to_safetensors(path, fit_to_rows(spec, rows()), PROTOCOL)
    with safe_open(path, "pt") as file:
        texts = changed(file.metadata(), "map", facts, protocol)
    del texts["digest"], texts["text_digest"]  # which older files are without
    tensors = {name: one.contiguous() for name, one in change(load_file(path)).items()}
    path.write_bytes(safetensors_of(tensors, texts))
    return from_safetensors


def changed(texts, where, facts, protocol):
    facts = json.dumps(json.loads(texts[where]) | (facts or {}))
    return texts | {where: facts, "protocol": texts["protocol"] if protocol is None else protocol}


FORMS = [".npz", ".safetensors"]


@pytest.mark.parametrize(("name", "of", "change", "said"), WRONG_TENSORS)
def test_a_file_whose_tensors_are_no_map_is_refused(tmp_path, name, of, change, said):
    for form in FORMS if name == "pca" else FORMS[1:]:
        path = tmp_path / f"map{form}"
        read = altered(path, name, lambda tensors: tensors | {of: change(tensors[of])})
        with pytest.raises(ExportError, match=f"written by whitelab: .*{said}"):
            read(path)


@pytest.mark.parametrize("form", FORMS)
def test_a_file_that_says_of_its_map_what_no_map_can_be_is_refused(tmp_path, form):
    path = tmp_path / f"map{form}"
    for facts, said in WRONG_FACTS:
        with pytest.raises(ExportError, match=f"written by whitelab: .*{said}"):
            altered(path, "pca", facts=facts)(path)
        path.unlink()
    with pytest.raises(ExportError, match="protocol must be JSON"):
        altered(path, "pca", protocol="[]")(path)


@pytest.mark.parametrize(("spec", "form"), [("pca", ".npz"), ("pca", ".safetensors"), ("clusters:m=2", ".safetensors")])
def test_a_file_in_which_one_number_changed_is_refused(tmp_path, spec, form):
    path, fitted = tmp_path / f"map{form}", fit_to_rows(spec, rows())
    (to_npz if form == ".npz" else to_safetensors)(path, fitted, PROTOCOL)
    read, whole = from_npz if form == ".npz" else from_safetensors, path.read_bytes()
    for one in fitted.parts.values():
        number = one.reshape(-1)[-1:].numpy().tobytes()
        assert whole.count(number) == 1
        place = whole.index(number)  # of its lowest bits, so that it stays finite
        path.write_bytes(whole[:place] + bytes([whole[place] ^ 1]) + whole[place + 1 :])
        with pytest.raises(ExportError, match="written by whitelab"):
            read(path)
    path.write_bytes(whole)
    assert read(path)[0].digest == fitted.digest


def test_a_file_in_which_one_word_changed_is_refused_and_an_older_one_is_read(tmp_path):
    path = tmp_path / "map.safetensors"
    to_safetensors(path, fit_to_rows("clusters:m=2", rows()), PROTOCOL)
    with safe_open(path, "pt") as file:
        texts = file.metadata()
    whole = path.read_bytes()
    path.write_bytes(whole.replace(b"clusters:m=2", b"clusters:m=3"))
    with pytest.raises(ExportError, match="its words are not those that were written"):
        from_safetensors(path)
    path.write_bytes(whole)
    path.write_bytes(safetensors_of(load_file(path), {name: texts[name] for name in texts if name != "text_digest"}))
    assert from_safetensors(path)[0].name == json.loads(texts["map"])["name"]


@pytest.mark.parametrize("form", FORMS)
def test_a_map_kept_in_float32_is_applied_in_float64(tmp_path, form):
    path = tmp_path / f"map{form}"
    read = altered(path, "pca", lambda tensors: {name: one.float() for name, one in tensors.items()})
    assert_close(read(path)[0](rows()), fitted()(rows()), rtol=1e-4, atol=1e-4)


# ------------------------------------------------------------------------------------------------ faiss


@pytest.mark.parametrize(("name", "k"), MAPS)
def test_faiss_reads_the_map_and_applies_it(tmp_path, name, k):
    whitener, x = fitted(name, k), rows()
    to_faiss(tmp_path / "map.faiss", whitener)
    transform = faiss.read_VectorTransform(str(tmp_path / "map.faiss"))
    assert (transform.d_in, transform.d_out, transform.is_trained) == (7, whitener(x).shape[1], True)
    assert apart(transform.apply(x.numpy().astype(np.float32)), whitener(x.float())) < 1e-5


def test_the_protocol_follows_the_bytes_that_faiss_reads(tmp_path):
    to_faiss(tmp_path / "map.faiss", fitted(), PROTOCOL)
    *_, line, mark = (tmp_path / "map.faiss").read_bytes().split(b"\n")
    assert json.loads(line) == {"whitelab": whitelab.__version__} | PROTOCOL
    assert mark == b"whitelab"
    assert faiss.read_VectorTransform(str(tmp_path / "map.faiss")).d_out == 7


def test_a_zip_holds_the_folder_under_its_name_and_the_protocol(tmp_path, models):
    encoder = load_encoder(models(), device="cpu")
    x = combined(encoder, (1,))
    whitener = fitted("pca", 4, x)
    to_sentence_transformers(tmp_path / "white", encoder, (1,), "mean", whitener, PROTOCOL | {"fit": "task"})
    zip_folder(tmp_path / "white", tmp_path / "white.zip")
    with ZipFile(tmp_path / "white.zip") as packed:
        assert {name.split("/")[0] for name in packed.namelist()} == {"white"}
        packed.extractall(tmp_path / "out")
        assert all(str(tmp_path).encode() not in packed.read(name) for name in packed.namelist())
    assert apart(encode(tmp_path / "out" / "white"), whitener(x)) < 1e-5
    assert json.loads((tmp_path / "out" / "white" / "whitelab.json").read_text())["protocol"]["fit"] == "task"


def test_the_bias_for_faiss_is_that_of_the_rounded_matrix_computed_in_float64(tmp_path):
    whitener = fitted("pca", None, rows(d=40, offset=100.0))
    to_faiss(tmp_path / "map.faiss", whitener)
    read = faiss.read_VectorTransform(str(tmp_path / "map.faiss"))
    transform = faiss.downcast_VectorTransform(read)
    matrix = faiss.vector_to_array(transform.A).reshape(40, 40)
    bias, mean = faiss.vector_to_array(transform.b), whitener.mean.numpy()
    np.testing.assert_array_equal(bias, (-matrix.astype(np.float64) @ mean).astype(np.float32))
    assert (bias != -matrix @ mean.astype(np.float32)).any()


def test_the_map_stands_before_an_index_of_faiss(tmp_path):
    whitener, x = fitted("pca", 4), rows().numpy().astype(np.float32)
    to_faiss(tmp_path / "map.faiss", whitener)
    transform = faiss.read_VectorTransform(str(tmp_path / "map.faiss"))
    index = faiss.IndexPreTransform(transform, faiss.IndexFlatIP(4))
    index.add(x)
    _, found = index.search(x[:5], 3)
    z = whitener(rows().float())
    assert found.tolist() == (z[:5] @ z.T).topk(3).indices.tolist()


def test_a_map_that_float32_cannot_hold_is_refused(tmp_path):
    tiny = fitted("pca", None, rows() * 1e-60)
    with pytest.raises(ExportError, match="above 3e38, which float32 cannot hold: scale the embeddings"):
        to_faiss(tmp_path / "map.faiss", tiny)
    assert list(tmp_path.iterdir()) == []


# -------------------------------------------------------------------------------- sentence-transformers


@pytest.mark.parametrize(("name", "k"), MAPS)
def test_sentence_transformers_gives_the_vectors_of_every_variant(tmp_path, models, name, k):
    encoder = load_encoder(models(), device="cpu")
    x = combined(encoder, (1, 3))
    whitener = fitted(name, k, x)
    to_sentence_transformers(tmp_path / "model", encoder, (1, 3), "mean", whitener)
    found = encode(tmp_path / "model")
    assert found.dtype == np.float32
    assert apart(found, whitener(x)) < 1e-5
    assert abs(float(torch.from_numpy(found).norm(dim=1).mean()) - 1) > 0.1  # not normalised


# Each architecture with two or three of them, dealt in turn.
POOLED = [((0,), "mean"), ((2,), "cls"), ((3,), "mean"), ((1, 2), "mean"), ((0, 2, 3), "cls")]
DEALT = [(name, *one) for i, name in enumerate(ARCHITECTURES) for j, one in enumerate(POOLED) if (i + j) % 2 == 0]


@pytest.mark.parametrize(("architecture", "layers", "pooling"), DEALT)
def test_sentence_transformers_gives_the_vectors_of_every_architecture(tmp_path, models, architecture, layers, pooling):
    encoder = load_encoder(models(architecture), device="cpu", max_length=40)
    x = combined(encoder, layers, pooling)
    whitener = fitted("pca", 8, x)
    to_sentence_transformers(tmp_path / "model", encoder, layers, pooling, whitener)
    found = encode(tmp_path / "model")
    assert apart(found, whitener(x)) < 1e-5
    other = "cls" if pooling == "mean" else "mean"
    assert apart(found, whitener(combined(encoder, layers, other))) > 0.1
    assert apart(found, whitener(combined(encoder, (1,), pooling))) > 0.1
    blocks = load_encoder(str(tmp_path / "model"), device="cpu").n_layers - 1
    assert max(layers[-1], 1) <= blocks <= min(layers[-1] + 1, 3)  # one more where a norm stands after the last


@pytest.mark.parametrize(("layers", "blocks"), [((0,), 1), ((1,), 1), ((0, 2), 2), ((1, 3), 3)])
def test_blocks_above_the_highest_layer_are_not_exported(tmp_path, models, monkeypatch, layers, blocks):
    encoder = load_encoder(models(), device="cpu")
    monkeypatch.setenv("WHITELAB_MODELS", "bundled")  # nor is a model looked for that an operator may have shut out
    to_sentence_transformers(
        tmp_path / "model", encoder, layers, "mean", fitted("none", None, combined(encoder, layers))
    )
    assert len(SentenceTransformer(str(tmp_path / "model"), device="cpu")[0].model.encoder.layer) == blocks
    assert apart(encode(tmp_path / "model"), combined(encoder, layers)) < 1e-5
    assert encoder.n_layers == 4


def test_a_model_that_cannot_be_cut_is_exported_whole(tmp_path, models, monkeypatch):
    def whole_groups_only(encoder, folder, blocks):
        raise ModelError("shares weights in groups")

    encoder = load_encoder(models(), device="cpu")
    monkeypatch.setattr(encoders.Encoder, "first_blocks", whole_groups_only)
    to_sentence_transformers(tmp_path / "model", encoder, (1,), "mean", fitted("none", None, combined(encoder, (1,))))
    assert len(SentenceTransformer(str(tmp_path / "model"), device="cpu")[0].model.encoder.layer) == 3
    assert apart(encode(tmp_path / "model"), combined(encoder, (1,))) < 1e-5


def test_a_cut_that_its_library_does_not_write_is_left(tmp_path, models, monkeypatch):
    encoder, save = load_encoder(models(), device="cpu"), BertModel.save_pretrained

    def of_three_blocks(model, folder, **options):
        if model.config.num_hidden_layers < 3:
            raise TypeError("a config of another length")
        return save(model, folder, **options)

    monkeypatch.setattr(BertModel, "save_pretrained", of_three_blocks)
    to_sentence_transformers(tmp_path / "model", encoder, (1,), "mean", fitted("none", None, combined(encoder, (1,))))
    assert len(SentenceTransformer(str(tmp_path / "model"), device="cpu")[0].model.encoder.layer) == 3
    assert apart(encode(tmp_path / "model"), combined(encoder, (1,))) < 1e-5
    assert not {"encoder", "cut"} & {one.name for one in (tmp_path / "model").iterdir()}


def test_layers_and_tokens_that_were_left_out_at_loading_are_not_exported(tmp_path, models):
    encoder = load_encoder(models(), device="cpu", num_layers=2, max_length=12)
    x = combined(encoder, (1, 2))
    to_sentence_transformers(tmp_path / "model", encoder, (1, 2), "mean", fitted("zca", None, x))
    loaded = SentenceTransformer(str(tmp_path / "model"), device="cpu")
    assert loaded.max_seq_length == 12
    assert len(loaded[0].model.encoder.layer) == 2
    assert apart(loaded.encode(TEXTS), fitted("zca", None, x)(x)) < 1e-5
    names = load_file(tmp_path / "model" / "model.safetensors")
    assert not any("layer.2." in name for name in names)


def test_only_modules_that_are_needed_are_there_and_all_are_of_the_library(tmp_path, models):
    encoder = load_encoder(models(), device="cpu")
    kinds = {}
    for layers in ((3,), (1, 3)):
        for name in ("none", "center", "pca"):
            folder = tmp_path / f"{name}{len(layers)}"
            to_sentence_transformers(folder, encoder, layers, "mean", fitted(name, None, combined(encoder, layers)))
            types = [one["type"] for one in json.loads((folder / "modules.json").read_text())]
            assert all(one.startswith("sentence_transformers.") for one in types)
            kinds[name, layers] = [one.rsplit(".", 1)[1] for one in types]
    assert kinds["none", (3,)] == ["Transformer", "Pooling"]
    assert kinds["center", (3,)] == ["Transformer", "Pooling", "Dense"]
    assert kinds["pca", (1, 3)] == ["Transformer", "WeightedLayerPooling", "Pooling", "Dense", "Dense"]


def test_subtracting_first_keeps_the_digits_that_one_multiplication_loses():
    x = rows(n=300, d=40, offset=200.0).float()
    whitener = fitted("zca", None, x)
    features, expected = {"sentence_embedding": x}, whitener(x)
    for module in folders._dense_modules(whitener):
        features = module(features)
    matrix, bias = whitener.matrix.float(), (-whitener.mean @ whitener.matrix).float()
    ours, single = apart(features["sentence_embedding"].detach(), expected), apart(x @ matrix + bias, expected)
    assert ours < 1e-5
    assert single > 5 * ours


def test_the_card_and_the_note_say_how_the_model_was_made(tmp_path, models):
    encoder = load_encoder(models(), device="cpu", num_layers=2)
    whitener = fitted("pca", 8, combined(encoder, (1, 2)))
    protocol = {"data": "demo", "task": "stsb", "pooling": "wrong"}
    to_sentence_transformers(tmp_path / "model", encoder, (2, 1), "mean", whitener, protocol)
    card = (tmp_path / "model" / "README.md").read_text("utf-8")
    for line in ("# bert[:2], layers 1 + 2, pca, k = 8", "- task: stsb", "- pooling: mean", "- fitted: 124"):
        assert line in card.splitlines()
    assert "whose licence whitelab does not know" in card
    assert "{" not in card
    note = json.loads((tmp_path / "model" / "whitelab.json").read_text("utf-8"))
    assert note["protocol"]["layers"] == [1, 2]
    files = [path for path in (tmp_path / "model").rglob("*") if path.is_file()]
    assert {path.relative_to(tmp_path / "model").as_posix() for path in files} == set(note["files"])
    assert len({path.stat().st_mode for path in files}) == 1  # whoever may read the card may read the weights


def test_the_words_before_queries_and_documents_are_put_there_by_the_model(tmp_path, models):
    encoder = load_encoder(models(), device="cpu")
    whitener = fitted("zca", None, combined(encoder, (1,)))
    prompts = {"query_prompt": "a man {asks}: ", "document_prompt": ""}
    to_sentence_transformers(tmp_path / "model", encoder, (1,), "mean", whitener, PROTOCOL | prompts)
    model = SentenceTransformer(str(tmp_path / "model"), device="cpu")
    for method, before in ((model.encode_query, "a man {asks}: "), (model.encode_document, ""), (model.encode, "")):
        wanted = whitener(combined(encoder, (1,), texts=[f"{before}{text}" for text in TEXTS]))
        assert apart(method(TEXTS), wanted) < 1e-5
    card = (tmp_path / "model" / "README.md").read_text("utf-8")
    assert "puts 'a man {asks}: ' before a query and nothing before a document" in card


def test_the_encoder_goes_on_as_before(tmp_path, models):
    for architecture in ("bert", "t5"):
        encoder = load_encoder(models(architecture), device="cpu")
        before, config = combined(encoder, (1, 3)), encoder.model.config.to_dict()
        whitener = fitted("pca", 8, before)
        to_sentence_transformers(tmp_path / architecture, encoder, (1, 3), "mean", whitener)
        assert torch.equal(combined(encoder, (1, 3)), before)
        assert encoder.model.config.to_dict() == config


def test_sbert_wk_has_no_module_to_be_exported_as(tmp_path, models):
    encoder = load_encoder(models(), device="cpu")
    whitener = fitted("pca", 8, combined(encoder, (1, 3)))
    with pytest.raises(ExportError, match="pooling='wk' must be one of .* the map alone can be exported .*safetensors"):
        to_sentence_transformers(tmp_path / "model", encoder, (1, 3), "wk", whitener)
    assert not list(tmp_path.iterdir())


def test_a_table_of_words_is_refused_as_what_is_no_transformer_is_by_every_form(tmp_path, models):
    encoder = load_encoder(f"static:{models()}", device="cpu")
    words = "model='static:.*' must be a transformer in sentence-transformers, and it is a table of word embeddings"
    with pytest.raises(ExportError, match=words):
        to_sentence_transformers(tmp_path / "model", encoder, (0,), "mean", fitted("pca", 8, torch.randn(90, 32)))
    assert not list(tmp_path.iterdir())


def test_a_folder_that_gives_other_vectors_is_never_left_behind(tmp_path, models, monkeypatch):
    encoder = load_encoder(models(), device="cpu")
    whitener = fitted("pca", 8, combined(encoder, (1, 3)))
    plain = folders._save_modules

    def wrong_layer(aside, encoder, layers, *more):
        plain(aside, encoder, (2, 3), *more)

    monkeypatch.setattr(folders, "_save_modules", wrong_layer)
    with pytest.raises(ExportError, match="model='bert' cannot be exported to sentence-transformers: loaded back"):
        to_sentence_transformers(tmp_path / "model", encoder, (1, 3), "mean", whitener)
    monkeypatch.setattr(folders, "_save_modules", lambda *a: plain(*a[:-2], [], {}))  # no map
    with pytest.raises(RuntimeError):
        to_sentence_transformers(tmp_path / "model", encoder, (1, 3), "mean", whitener)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("write", [to_sentence_transformers, to_onnx])
@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"layers": (1, 4)}, "layers=.1, 4. must lie between 0 and 3"),
        ({"pooling": "max"}, "pooling='max' must be one of mean, cls"),
        ({"whitener": fit_to_rows("clusters:m=2", rows())}, "is no affine map, and this .* export it as safetensors"),
        ({"whitener": fitted()}, f"whitener must take the model's d={DIM} dimensions, got 7"),
    ],
)
def test_what_does_not_fit_the_model_is_refused(tmp_path, models, write, changes, message):
    encoder = load_encoder(models(), device="cpu")
    settings = {"layers": (1,), "pooling": "mean", "whitener": fitted("none", None, combined(encoder, (1,)))}
    with pytest.raises(ValueError, match=message):
        write(tmp_path / "model", encoder, **settings | changes)
    assert list(tmp_path.iterdir()) == []


def test_only_float32_is_exported(tmp_path, models):
    assert "bfloat16" in dtypes_for("cpu")
    encoder = load_encoder(models(), device="cpu", dtype="bfloat16")
    whitener = fitted("none", None, combined(encoder, (1,)))
    with pytest.raises(ExportError, match="dtype='bfloat16' must be 'float32'"):
        to_sentence_transformers(tmp_path / "model", encoder, (1,), "mean", whitener)


# ------------------------------------------------------------------------------------------- the encoder


@pytest.mark.parametrize("architecture", ARCHITECTURES)
@pytest.mark.parametrize("num_layers", [None, 2])
def test_a_saved_encoder_loads_as_what_was_loaded(tmp_path, models, architecture, num_layers):
    encoder = load_encoder(models(architecture), device="cpu", num_layers=num_layers)
    encoder.save(tmp_path)
    again = load_encoder(str(tmp_path), device="cpu")
    assert again.n_layers == (num_layers or 3) + 1
    assert torch.equal(embed(again, TEXTS)[0], embed(encoder, TEXTS)[0])
    assert not any(name.startswith("decoder.") for name in load_file(tmp_path / "model.safetensors"))


@pytest.mark.parametrize("side", ["left", "right"])
def test_a_saved_tokenizer_alone_cuts_where_the_encoder_does(tmp_path, models, side):
    copytree(models(), tmp_path / "model")
    config = tmp_path / "model" / "tokenizer_config.json"
    config.write_text(json.dumps(json.loads(config.read_text()) | {"truncation_side": side}))
    encoder = load_encoder(str(tmp_path / "model"), device="cpu", max_length=24)
    text = " ".join(SENTENCES[:9])
    encoder.cut_to(5).tokenize([text])  # with the same tokenizer
    (tmp_path / "saved").mkdir()
    encoder.save(tmp_path / "saved")
    whitener = fitted("none", None, torch.randn(9, DIM))
    to_sentence_transformers(tmp_path / "exported", encoder, (1,), "mean", whitener)
    ((ids,), _) = encoder.tokenize([text])
    for folder in ("saved", "exported"):
        assert Tokenizer.from_file(str(tmp_path / folder / "tokenizer.json")).encode(text).ids == ids


def test_an_encoder_without_a_class_of_its_own_is_refused(tmp_path, models, monkeypatch):
    encoder = load_encoder(models("t5"), device="cpu")
    monkeypatch.setattr("transformers.MODEL_FOR_TEXT_ENCODING_MAPPING", {})
    with pytest.raises(ModelError, match="model='t5' cannot be saved: transformers has no encoder-only t5"):
        encoder.save(tmp_path)


# ---------------------------------------------------------------------------------------------- places


def write_npz(path):
    to_npz(path, fitted(), PROTOCOL)


def write_faiss(path):
    to_faiss(path, fitted())


@pytest.fixture
def write_folder(models):
    encoder = load_encoder(models(), device="cpu")
    whitener = fitted("pca", 8, combined(encoder, (1,)))
    return lambda path: to_sentence_transformers(path, encoder, (1,), "mean", whitener)


@pytest.fixture(params=["npz", "faiss", "folder"])
def write(request, write_folder):
    return {"npz": write_npz, "faiss": write_faiss, "folder": write_folder}[request.param]


def test_an_earlier_export_is_replaced_and_nothing_else_is_left(tmp_path, write):
    path = tmp_path / "out"
    write(path)
    first = path.stat().st_ino
    write(path)
    assert path.stat().st_ino != first
    assert list(tmp_path.iterdir()) == [path]


def test_what_somebody_else_put_there_is_never_touched(tmp_path, write):
    file, folder = tmp_path / "file", tmp_path / "folder"
    file.write_text("mine")
    folder.mkdir()
    (folder / "mine.txt").write_text("mine")
    for path in (file, folder):
        with pytest.raises(ExportError, match="exists and is not an earlier export of this kind: choose another name"):
            write(path)
    assert file.read_text() == (folder / "mine.txt").read_text() == "mine"
    assert set(tmp_path.iterdir()) == {file, folder}


def test_another_map_of_faiss_is_not_taken_for_an_export(tmp_path):
    faiss.write_VectorTransform(faiss.LinearTransform(3, 2, True), str(tmp_path / "mine"))
    before = (tmp_path / "mine").read_bytes()
    with pytest.raises(ExportError, match="not an earlier export"):
        write_faiss(tmp_path / "mine")
    assert (tmp_path / "mine").read_bytes() == before


def test_a_file_added_to_a_model_folder_protects_it(tmp_path, write_folder):
    write_folder(tmp_path / "model")
    (tmp_path / "model" / "notes.txt").write_text("mine")
    with pytest.raises(ExportError, match="not an earlier export"):
        write_folder(tmp_path / "model")
    (tmp_path / "model" / "notes.txt").unlink()
    write_folder(tmp_path / "model")


def test_an_empty_folder_is_taken(tmp_path, write_folder):
    (tmp_path / "model").mkdir()
    write_folder(tmp_path / "model")
    assert (tmp_path / "model" / "modules.json").is_file()


def test_what_a_killed_export_of_the_same_name_was_writing_goes_once_it_is_old(tmp_path, write_folder):
    homes = {name: tmp_path / f".{letter * 32}.tmp" for name, letter in (("model", "a"), ("other", "b"), ("now", "c"))}
    for name, home in homes.items():
        part = home / "new" / ("model" if name == "now" else name)
        part.mkdir(parents=True)
        for path in (part, part.parent, home) if name != "now" else ():
            os.utime(path, (0, 0))
    write_folder(tmp_path / "model")
    assert set(tmp_path.iterdir()) == {tmp_path / "model", homes["other"], homes["now"]}


@pytest.mark.parametrize(("part", "home", "name"), [("new", Path, "exists"), ("old", os, "replace")])
def test_what_another_user_left_there_and_nobody_else_may_read_or_move_stays(
    part, home, name, tmp_path, write_folder, monkeypatch
):
    theirs = tmp_path / f".{'a' * 32}.tmp"
    (theirs / part / "model").mkdir(parents=True)
    for path in (theirs / part / "model", theirs / part, theirs):
        os.utime(path, (0, 0))
    permitted = getattr(home, name)

    def refuse(path, *more):
        if theirs in path.parents:
            raise PermissionError(f"Permission denied: {path}")
        return permitted(path, *more)

    monkeypatch.setattr(home, name, refuse)
    write_folder(tmp_path / "model")
    monkeypatch.undo()
    assert (tmp_path / "model" / "modules.json").exists()
    assert (theirs / part / "model").exists()


def test_a_folder_may_have_the_longest_name_there_is(tmp_path, write_folder):
    for _ in range(2):
        write_folder(tmp_path / ("n" * 255))
    assert len(list(tmp_path.iterdir())) == 1


def test_a_folder_that_is_missing_is_named(tmp_path, write):
    with pytest.raises(ExportError, match=r"must lie in a folder that exists; there is no .*nowhere"):
        write(tmp_path / "nowhere" / "out")


def test_a_failure_leaves_the_earlier_export_whole(tmp_path, write, monkeypatch):
    path = tmp_path / "out"
    write(path)
    before = path.stat().st_ino

    def full(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("os.replace", full)
    with pytest.raises(ExportError, match="could not be written: No space left on device"):
        write(path)
    assert path.stat().st_ino == before
    assert list(tmp_path.iterdir()) == [path]


def test_an_export_through_a_link_replaces_what_the_link_stands_for(tmp_path, write):
    write(tmp_path / "out")
    (tmp_path / "link").symlink_to(tmp_path / "out")
    first = (tmp_path / "out").stat().st_ino
    write(tmp_path / "link")
    assert (tmp_path / "link").is_symlink()
    assert (tmp_path / "out").stat().st_ino != first


def test_a_folder_that_cannot_be_put_in_place_brings_the_earlier_one_back(tmp_path, write_folder, monkeypatch):
    write_folder(tmp_path / "model")
    before, replace = (tmp_path / "model").stat().st_ino, os.replace

    def refuse(source, target):
        if source.parent.name == "new":
            raise OSError(13, "Permission denied")
        replace(source, target)

    monkeypatch.setattr("os.replace", refuse)
    with pytest.raises(ExportError, match="could not be written: Permission denied"):
        write_folder(tmp_path / "model")
    assert (tmp_path / "model").stat().st_ino == before
    assert list(tmp_path.iterdir()) == [tmp_path / "model"]


@pytest.mark.parametrize("form", ["faiss", "folder", "npz", "safetensors"])
def test_a_map_that_keeps_nothing_is_refused(tmp_path, models, form):
    message = r"whitening='pca' has no direction to keep: the 3 row\(s\) it was fitted on do not vary"
    nothing, encoder = fitted("pca", None, torch.ones(3, DIM)), load_encoder(models(), device="cpu")
    write, *given = {
        "faiss": (to_faiss, nothing),
        "folder": (to_sentence_transformers, encoder, (1,), "mean", nothing),
        "npz": (to_npz, nothing, {}),
        "safetensors": (to_safetensors, nothing, {}),
    }[form]
    with pytest.raises(ExportError, match=message):
        write(tmp_path / "out", *given)
    assert list(tmp_path.iterdir()) == []


# ------------------------------------------------------------------------------------- the bundled model

ELSEWHERE = """
import json, sys
sys.modules["whitelab"] = None  # an import of it now fails
import numpy as np
from sentence_transformers import SentenceTransformer
model = SentenceTransformer(sys.argv[1], device="cpu")
vectors = model.encode(json.load(open(sys.argv[2], encoding="utf-8")), show_progress_bar=False)
np.save(sys.argv[3], vectors)
for i in (0, 2, 4):
    a, b = vectors[i : i + 2]
{lines}
    print(float(a @ b / np.linalg.norm(a) / np.linalg.norm(b)), percentile, gold)
"""
OFFLINE = {"HF_HUB_OFFLINE": "1", "TRANSFORMERS_OFFLINE": "1"}


@pytest.fixture(scope="module")
def bundled(encoded):
    """The bundled model and its embeddings of the demonstration set, as they are stored."""
    encoder, pairs = load_encoder(encoders.BUNDLED, device="cpu"), datasets.load("demo")
    return encoder, pairs, embed_pairs(encoder, pairs, store=Store(encoded))[0]


@pytest.mark.model
def test_the_bundled_model_gives_its_vectors_and_says_what_a_cosine_means_where_there_is_no_whitelab(tmp_path, bundled):
    encoder, pairs, space = bundled
    setting = Setting.parse("L1+L6:pca@128")
    found, whitener = calibrate(space, setting), fit_scope(space, setting).whiteners[0]
    folder = tmp_path / "model"
    to_sentence_transformers(folder, encoder, (1, 6), "mean", whitener, PROTOCOL, found.arrays())
    card = (folder / "README.md").read_text("utf-8")
    assert "Apache 2.0" in card
    assert "percentile" in card
    lines = scale_lines(folder / "cosine_scale.npz", True, "float(a @ b / np.linalg.norm(a) / np.linalg.norm(b))")
    assert len(lines.splitlines()) == 3  # two for a percentile, one more for gold
    chosen = (0, 7, 30)
    texts = [text for i in chosen for text in (pairs.first[i], pairs.second[i])]
    texts += [text for text in pairs.sentences[:80] if text not in texts]
    (tmp_path / "sentences.json").write_text(json.dumps(texts), "utf-8")
    (tmp_path / "elsewhere").mkdir()
    names = [str(tmp_path / name) for name in ("model", "sentences.json", "vectors.npy")]
    env = {key: value for key, value in os.environ.items() if key != "PYTHONPATH"} | OFFLINE
    run = subprocess.run(
        [sys.executable, "-c", ELSEWHERE.format(lines=indent(lines, "    ")), *names],
        cwd=tmp_path / "elsewhere",
        env=env,
        capture_output=True,
        text=True,
        check=False,
    )
    assert run.returncode == 0, run.stderr
    rows = [pairs.sentences.index(text) for text in texts]
    vectors, expected = np.load(tmp_path / "vectors.npy"), whitener(space.combine((1, 6))[rows]).numpy()
    assert vectors.shape == (len(texts), 128)
    np.testing.assert_allclose(vectors, expected, rtol=0, atol=1e-5)
    for i, printed in zip(chosen, run.stdout.splitlines(), strict=True):
        cosine, percentile, gold = map(float, printed.split())
        assert cosine == pytest.approx(float(found.cosines[i]), abs=1e-4)
        assert percentile == pytest.approx(found.random.percentile(cosine), abs=0.03)
        assert gold == pytest.approx(found.gold(cosine))


@pytest.mark.model
@pytest.mark.parametrize(("layers", "name", "k"), [((1,), "standardize", None), ((6,), "zca", None)])
def test_the_bundled_model_gives_the_vectors_of_single_layers(tmp_path, bundled, layers, name, k):
    encoder, pairs, space = bundled
    x = space.combine(layers)
    whitener = fitted(name, k, x)
    to_sentence_transformers(tmp_path / "model", encoder, layers, "mean", whitener)
    found, expected = torch.from_numpy(encode(tmp_path / "model", pairs.sentences[:80])), whitener(x[:80])
    assert apart(found, expected) < 1e-5
    if name != "zca":  # all 384 directions: the encoder's own rounding, blown up, is a little more than this
        assert float((found - expected).abs().max()) < 1e-5


# ------------------------------------------------------------------------------------------- what a cosine means


def test_an_export_without_a_scale_takes_the_scale_of_an_earlier_one_away(models, tmp_path):
    encoder = load_encoder(models(), device="cpu")
    space, _ = embed_pairs(encoder, datasets.load(write_pairs(tmp_path / "pairs.csv")))
    setting = Setting.parse("L1:pca@6")
    arrays, whitener = calibrate(space, setting).arrays(), fit_scope(space, setting).whiteners[0]
    scale = tmp_path / "exported" / "cosine_scale.npz"
    for given in (arrays, None):
        to_sentence_transformers(tmp_path / "exported", encoder, [1], "mean", whitener, PROTOCOL, given)
        assert scale.exists() == (given is not None)


def test_an_npz_carries_the_scale_of_its_map(tmp_path):
    z = fitted("zca")(rows())
    scale = RandomCosines.of(z)
    to_npz(
        tmp_path / "map.npz", fitted("zca"), PROTOCOL, dict(zip(("cosine", "percentile"), scale.table(), strict=True))
    )
    names = {"np": np}
    exec(scale_lines(tmp_path / "map.npz", False, "0.3"), names)
    assert names["percentile"] == pytest.approx(scale.percentile(0.3), abs=0.03)
    assert from_npz(tmp_path / "map.npz")[1] == PROTOCOL
    estimated = RandomCosines.of(WhiteningTransformer("zca").fit(rows().numpy()).transform(rows().numpy()))
    assert estimated.percentile(0.3) == pytest.approx(scale.percentile(0.3), abs=0.03)
