"""A model's own output is what sentence-transformers gives for its folder, and a layer like any other."""

import json

import pytest
import torch
from families import build_family
from sentence_transformers import SentenceTransformer
from sentence_transformers.sentence_transformer import modules
from tiny import DIM, TEXTS, build_model, write_pairs

from tests.conftest import float64_by_default
from whitelab.compare.grid import rows_of
from whitelab.datasets import load
from whitelab.encoding.checkpoints import PROMPTS_FILE, find_model, prompts
from whitelab.encoding.embed import embed
from whitelab.encoding.embeddings import embed_pairs
from whitelab.encoding.encoders import load_encoder
from whitelab.encoding.names import ModelError
from whitelab.scoring.fit_scopes import fit_scope
from whitelab.scoring.score import score
from whitelab.scoring.setting import Setting
from whitelab.store.embedding_store import Store
from whitelab.training import TrainConfig
from whitelab.training.trainer import start
from whitelab.whitening.export import ExportError, to_sentence_transformers

PROMPT = "a long film about "


def written(root, pooling, *heads, length=40):
    """A folder as sentence-transformers saves it."""
    torch.manual_seed(0)
    told = {"config_kwargs": {"output_hidden_states": True}} if "weighted" in pooling else {}
    made = [modules.Transformer(str(build_model(root / "base")), max_seq_length=length, **told)]
    if "weighted" in pooling:
        made.append(modules.WeightedLayerPooling(DIM, 3, 1, torch.nn.Parameter(torch.tensor([1.0, 0.0, 2.0]))))
    made += [modules.Pooling(DIM, pooling.removeprefix("weighted ")), *heads]
    folder = root / "saved"
    SentenceTransformer(modules=made, device="cpu", prompts={"query": PROMPT}).save(str(folder))
    return folder


HEADS = {
    "cls": lambda: [
        modules.Dense(DIM, DIM, use_residual=True),
        modules.Dense(DIM, 12),
        modules.LayerNorm(12),
        modules.Normalize(),
    ],
    "mean": lambda: [modules.Dense(DIM, 48, bias=False, activation_function=torch.nn.Identity())],
    "weighted mean": lambda: [modules.Normalize()],
    "lasttoken": lambda: [modules.Dense(DIM, 12, use_residual=True)],
}


@pytest.mark.parametrize("pooling", HEADS)
def test_the_own_output_is_that_of_sentence_transformers_with_and_without_a_prompt(pooling, tmp_path):
    folder = written(tmp_path, pooling, *HEADS[pooling]())
    encoder = load_encoder(f"output:{folder}", device="cpu", max_length=40)
    (name,) = encoder.poolings
    library = SentenceTransformer(str(folder), device="cpu")
    asked, _ = prompts(encoder.files)
    for before in ("", asked):
        found, report = embed(encoder, [before + text for text in TEXTS], name)
        expected = library.encode(TEXTS, prompt=before or None, convert_to_tensor=True)
        assert found.shape == (1, len(TEXTS), expected.shape[1])
        assert report.truncated
        torch.testing.assert_close(found[0], expected, atol=1e-5, rtol=1e-5)
    assert asked == PROMPT
    if name == "mean":  # the last layer alone is something else
        plain, report = embed(load_encoder(str(folder), device="cpu", max_length=40), TEXTS)
        left_out = "saved has modules after its layers (Dense), left out here: output: before its name keeps them"
        assert report.notes == ((left_out,) if pooling == "mean" else ())
        assert plain.shape[2] != encoder.dim or not torch.allclose(plain[-1], found[0], atol=1e-3)
    with float64_by_default():
        again = load_encoder(f"output:{folder}", device="cpu", max_length=40)
    assert torch.equal(embed(again, TEXTS, name)[0], embed(encoder, TEXTS, name)[0])


def test_the_store_knows_the_modules_and_the_pages_have_one_layer(tmp_path):
    folder = written(tmp_path, "cls", modules.Dense(DIM, 12), modules.Normalize())
    write_pairs(tmp_path / "pairs.csv")
    pairs, store = load(tmp_path / "pairs.csv"), Store(tmp_path / "store")
    encoder = load_encoder(f"output:{folder}", device="cpu")
    space, report = embed_pairs(encoder, pairs, "cls", store=store)
    again, reused = embed_pairs(encoder, pairs, "cls", store=store)
    assert report.encoded == reused.reused > 0
    assert torch.equal(space.values, again.values)
    assert torch.allclose(space.values.norm(dim=-1), torch.ones(()))
    found = score(space, Setting.parse("cls/L-1:pca@6"))
    assert found.protocol.origin.model == "output:saved"
    assert found.protocol.setting.layers == (0,)
    assert rows_of(f"output:{folder}", [Setting((-1,)), Setting((1,))]) == (Setting((0,)),)
    config = folder / "2_Dense" / "config.json"
    config.write_text(config.read_text().replace("Tanh", "ReLU"))
    other = load_encoder(f"output:{folder}", device="cpu")
    assert other.key("cls") != encoder.key("cls")
    assert find_model(str(folder)).weights != encoder.files.weights
    assert not torch.allclose(embed_pairs(other, pairs, "cls", store=store)[0].values, space.values, atol=1e-3)


def test_a_folder_that_keeps_its_first_dimensions_gives_those_of_its_normalised_output(tmp_path):
    folder = written(tmp_path, "mean", modules.Normalize())
    saved = json.loads((folder / PROMPTS_FILE).read_text())
    (folder / PROMPTS_FILE).write_text(json.dumps(saved | {"truncate_dim": 7}))
    encoder = load_encoder(f"output:{folder}", device="cpu", max_length=40)
    found, _ = embed(encoder, TEXTS)
    expected = SentenceTransformer(str(folder), device="cpu").encode(TEXTS, convert_to_tensor=True)
    assert encoder.dim == expected.shape[1] == 7
    torch.testing.assert_close(found[0], expected, atol=1e-5, rtol=1e-5)


@pytest.mark.parametrize(
    ("said", "length"),
    [
        ({"max_seq_length": 16}, 16),
        ({"tokenizer_args": {"model_max_length": 12}, "max_seq_length": 16}, 12),
        ({}, 140),  # so newer versions save it: the length lies with the tokenizer, and 128 is nobody's word
    ],
)
def test_a_text_is_cut_where_the_folder_says_unless_another_length_is_asked_for(said, length, tmp_path):
    folder = written(tmp_path, "mean", length=140)
    about = json.loads((folder / "sentence_bert_config.json").read_text())
    assert "max_seq_length" not in about
    (folder / "sentence_bert_config.json").write_text(json.dumps(about | said))
    encoder, library = load_encoder(f"output:{folder}", device="cpu"), SentenceTransformer(str(folder), device="cpu")
    assert encoder.max_length == library.max_seq_length == length
    texts = [*TEXTS, " ".join(TEXTS * 3)]
    found, _ = embed(encoder, texts)
    expected = library.encode(texts, convert_to_tensor=True)
    torch.testing.assert_close(found[0], expected, atol=1e-5, rtol=1e-5)
    assert load_encoder(f"output:{folder}", device="cpu", max_length=9).max_length == 9


def test_a_model_whose_texts_go_into_a_chat_template_is_refused(tmp_path):
    template = build_model(tmp_path / "base") / "chat_template.jinja"
    template.write_text("user: {{ messages[0]['content'] }}")
    folder = tmp_path / "saved"
    made = [modules.Transformer(str(template.parent)), modules.Pooling(DIM, "mean")]
    SentenceTransformer(modules=made, device="cpu").save(str(folder))
    with pytest.raises(ModelError, match="puts every text into its chat template, which whitelab does not"):
        load_encoder(f"output:{folder}", device="cpu")


@pytest.mark.parametrize(
    ("file", "change"),
    [("sentence_bert_config.json", {"max_seq_length": "16"}), (PROMPTS_FILE, {"truncate_dim": -1})],
)
def test_a_length_that_is_none_is_refused_by_its_name(file, change, tmp_path):
    folder = written(tmp_path, "mean")
    (folder / file).write_text(json.dumps(json.loads((folder / file).read_text()) | change))
    with pytest.raises(ModelError, match=f"has modules that cannot be read: {next(iter(change))}=.* must be a whole"):
        load_encoder(f"output:{folder}", device="cpu")


def test_a_model_whose_own_output_is_a_decoders_is_refused(tmp_path):
    made = [modules.Transformer(str(build_family(tmp_path / "bart", "BART"))), modules.Pooling(DIM)]
    SentenceTransformer(modules=made, device="cpu").save(str(tmp_path / "saved"))
    with pytest.raises(ModelError, match="ends in a decoder"):
        load_encoder(f"output:{tmp_path / 'saved'}", device="cpu")


def test_what_cannot_be_had_is_refused_in_a_line(tmp_path):
    folder = written(tmp_path, "mean", modules.Dense(DIM, 12))
    name = f"output:{folder}"
    encoder = load_encoder(name, device="cpu")
    with pytest.raises(ValueError, match="pooling='cls' must be mean for model='output:saved': that of its modules"):
        encoder.check_pooling("cls")
    with pytest.raises(ValueError, match="num_layers=2 has no meaning"):
        load_encoder(name, num_layers=2)
    with pytest.raises(ModelError, match="cannot be trained: it is what its modules make of the last layer"):
        start(TrainConfig(model=name))
    space, _ = embed_pairs(encoder, load(write_pairs(tmp_path / "pairs.csv")))
    (whitener,) = fit_scope(space, Setting((0,), "pca")).whiteners
    with pytest.raises(ExportError, match="must be a transformer in sentence-transformers, and it is what its modules"):
        to_sentence_transformers(tmp_path / "out", encoder, (0,), "mean", whitener)
    listed = json.loads((folder / "modules.json").read_text())
    for change, message in (
        ([*listed, {"type": "x.CNN", "path": "3_CNN"}], "has the module CNN, which whitelab does not know there"),
        (listed[:1], "has no Pooling"),
        ([*listed, {"type": "x.Dense", "path": "../elsewhere"}], "must begin its modules.json with a Transformer in"),
        ([*listed, {"type": "x.Dense", "path": "9_Dense"}], "has modules that cannot be read"),
        ({"type": 1}, "has a modules.json that cannot be read"),
    ):
        (folder / "modules.json").write_text(json.dumps(change))
        with pytest.raises(ModelError, match=message):
            load_encoder(name, device="cpu")
    (folder / "modules.json").write_text(json.dumps(listed))
    pooling = folder / "1_Pooling" / "config.json"
    before = json.loads(pooling.read_text())
    for change, message in (
        ({"pooling_mode": ["mean", "max"]}, "pools by mean and max; known are mean, cls, lasttoken"),
        ({"include_prompt": False}, "leaves prompts out of its pooling"),
    ):
        pooling.write_text(json.dumps(before | change))
        with pytest.raises(ModelError, match=message):
            load_encoder(name, device="cpu")
    old = {"word_embedding_dimension": DIM, "pooling_mode_cls_token": False, "pooling_mode_mean_tokens": True}
    pooling.write_text(json.dumps(old))
    assert load_encoder(name, device="cpu").poolings == ("mean",)
    dense, saved = folder / "2_Dense", json.loads((folder / "2_Dense" / "config.json").read_text())
    for change, message in (
        ({"module_input_name": "token_embeddings"}, "has a Dense with module_input_name='token_embeddings'; known is"),
        ({"use_residual": True}, "has modules that cannot be read: .*Dense"),  # whose map is not among the tensors
    ):
        (dense / "config.json").write_text(json.dumps(saved | change))
        with pytest.raises(ModelError, match=message):
            load_encoder(name, device="cpu")
    (dense / "config.json").write_text(json.dumps(saved))
    about = json.loads((folder / "sentence_bert_config.json").read_text())
    pooler = {"text": {"method": "forward", "method_output_name": "pooler_output"}}
    for change in ({"do_lower_case": True}, {"modality_config": pooler}, {"transformer_task": "fill-mask"}):
        (folder / "sentence_bert_config.json").write_text(json.dumps(about | change))
        with pytest.raises(ModelError, match=f"has {next(iter(change))}=.*, which whitelab does not follow"):
            load_encoder(name, device="cpu")
    (folder / "sentence_bert_config.json").rename(folder / "sentence_xlnet_config.json")  # a name it may have as well
    for handed in ({"config_kwargs": {"num_hidden_layers": 2}}, {"processor_kwargs": {"truncation_side": "left"}}):
        (folder / "sentence_xlnet_config.json").write_text(json.dumps(about | handed))
        ((kind, options),) = handed.items()
        with pytest.raises(ModelError, match=f"has {min(options)} in {kind}, which whitelab does not follow"):
            load_encoder(name, device="cpu")
    (folder / "sentence_xlnet_config.json").unlink()
    (folder / "sentence_bert_config.json").write_text(json.dumps(about))
    (folder / "modules.json").unlink()
    with pytest.raises(ModelError, match="has no modules.json, so there is no output of its own"):
        find_model(name)
    assert (folder / PROMPTS_FILE).is_file()
