"""The model picker without a browser: names, controls, what a download would cost, and what is refused."""

import re

import pytest
import tiny
from families import build_family
from questions import QUESTIONS

import whitelab
from whitelab.encoding import catalogue, checkpoints
from whitelab.encoding.checkpoints import BUNDLED_NAME
from whitelab.encoding.embeddings import embed_pairs
from whitelab.scoring.setting import Protocol
from whitelab.ui.sidebar import model

from .visiting import LIVE, ROOT, live, metrics, start, until, write_scored

pytestmark = pytest.mark.model

CHEAP = {"static": ["layers", "dimensions", "whitening", "anisotropy", "uniformity"], "sif": ["overview", "compare"]}


@pytest.fixture(scope="module", autouse=True)
def own_hub(own_store, tmp_path_factory):
    """A Hugging Face cache of this file's own, empty."""
    from huggingface_hub import constants

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(constants, "HF_HUB_CACHE", str(tmp_path_factory.mktemp("hub")))
        yield


@pytest.fixture
def pairs(tmp_path):
    """A few pairs, so that any model is quick."""
    return write_scored(tmp_path / "pairs.tsv", [0, 1, 2, 3, 4, 5, 1, 2])


@pytest.fixture
def no_hub(monkeypatch):
    """A hub that must not be asked."""
    monkeypatch.setattr(checkpoints, "_download", lambda *args: pytest.fail("asked the hub"))


def expected(model, data, **changes) -> str:
    """The score the package gives."""
    encoder, read = whitelab.load_encoder(model), whitelab.load(data)
    settings = {"pooling": "mean", "layers": (encoder.n_layers - 1,), "whitening": "center"} | changes
    space, _ = embed_pairs(encoder, read, settings["pooling"])
    return f"{whitelab.score(space, Protocol('m', 'd', 't', 'test', **settings)).spearman:.2f}"


# ---------------------------------------------------------------------------------------- what is offered


def test_the_list_holds_the_bundled_model_its_controls_and_the_papers_models_by_name(pairs):
    at = until(start(data=pairs))
    shown = at.selectbox(key="model").options
    assert shown[:5] == [
        f"{BUNDLED_NAME} (bundled)",
        f"{BUNDLED_NAME}, 3 blocks",
        f"Random: {BUNDLED_NAME}",
        f"Static: {BUNDLED_NAME}",
        f"SIF: {BUNDLED_NAME}",
    ]
    assert {one.title for one in catalogue.entries()} <= set(shown)
    assert len(shown) == len(set(shown))


@pytest.mark.parametrize(
    ("name", "shown"),
    {
        "google-bert/bert-base-uncased": "BERT base",
        "google-bert/bert-base-uncased:6": "BERT base, 6 blocks",
        "random@7:bundled:2": f"Random: {BUNDLED_NAME}, seed 7, 2 blocks",
        "someone/else": "someone/else",
        "static@1:odd": "static@1:odd",
    }.items(),
)
def test_a_label_says_what_is_made_of_the_model(name, shown):
    assert model.label(name) == shown


@pytest.mark.parametrize("model", ["bundled:3", "random:bundled", "static:bundled", "sif:bundled"])
def test_a_control_is_scored_as_the_package_scores_it(model, pairs):
    at = until(start(model=model.label(model), data=pairs, whitening="Centred"))
    last = {"bundled:3": 3, "random:bundled": 6}.get(model, 0)
    at.get_by_key("layers").set_value([last])
    until(at.run())
    assert live(at) == expected(model, pairs)
    assert any(f"{checkpoints.ModelName.parse(model).shown} · layer {last} " in one.value for one in at.caption)
    encoder = whitelab.load_encoder(model)
    assert list(at.get_by_key("layers").options) == [str(layer) for layer in range(encoder.n_layers)]
    assert encoder.name == checkpoints.ModelName.parse(model).shown


@pytest.mark.parametrize(("kind", "page"), [(kind, page) for kind, pages in CHEAP.items() for page in pages])
def test_pages_work_for_a_model_of_one_layer(kind, page, tmp_path):
    data = write_scored(tmp_path / "pairs.tsv", [i % 6 for i in range(40)])
    at = until(start(page, model=f"{kind}:bundled", data=data, k="5"))
    assert not at.error
    assert [title.value for title in at.title] == [QUESTIONS[page]]
    assert live(at) != "undefined"


def test_a_decoder_offers_its_last_token_and_never_its_first(tmp_path):
    folder = str(build_family(tmp_path / "decoder", "Llama"))
    pairs = str(tiny.write_pairs(tmp_path / "pairs.csv", 20))  # in words the tiny model knows
    at = until(start(model=folder, data=pairs, pooling="[CLS]", whitening="Centred"))
    control = at.get_by_key("pooling")
    assert (control.value, list(control.options)) == ("mean", ["Mean", "Last token"])
    control.set_value("last")
    at.get_by_key("layers").set_value([4])
    until(at.run())
    assert live(at) == expected(folder, pairs, pooling="last")
    at.selectbox(key="model").set_value("bundled")
    until(at.run())
    assert (at.get_by_key("pooling").value, at.error.len) == ("mean", 0)


# ------------------------------------------------------------------------------- before anything is downloaded


def test_a_model_that_is_not_here_says_what_it_costs_and_waits_for_a_yes(pairs, no_hub):
    at = start(model="google-bert/bert-base-uncased", data=pairs)
    text = " ".join(one.value for one in at.caption)
    assert "12 layers, d 768, 109.5 M parameters, licence Apache 2.0." in text
    assert re.search(r"GiB of memory and \d+ s here, the download apart\.", text)  # how many depends on the machine
    assert LIVE not in metrics(at)
    assert [one.value for one in at.title] == [QUESTIONS["overview"]]
    assert not at.exception
    at.selectbox(key="model").set_value("SpanBERT/spanbert-base-cased").run()
    text = " ".join(one.value for one in at.caption)
    assert "licence not stated" in text
    assert "Only pickled weights are published" in text
    at.selectbox(key="model").set_value("someone/unheard-of").run()
    assert any("not in the catalogue" in one.value for one in at.caption)


def test_a_yes_downloads_it(pairs, tmp_path, monkeypatch):
    folder = tiny.build_model(tmp_path / "fetched")
    asked = []
    monkeypatch.setattr(checkpoints, "_download", lambda name, *args: asked.append(name) or folder)
    at = start(model="someone/tiny", data=pairs, whitening="Centred")
    assert asked == []
    at.button(key="model-download").click()
    until(at.run())
    assert set(asked) == {"someone/tiny"}
    assert live(at) == expected(str(folder), pairs, layers=(1, 3))


def test_a_download_that_fails_is_said_and_can_be_tried_again(pairs, monkeypatch):
    def fail(*args):
        raise checkpoints.ModelError("model='someone/tiny-two' is not on this machine and the hub does not answer")

    monkeypatch.setattr(checkpoints, "_download", fail)
    at = start(model="someone/tiny-two", data=pairs)
    at.button(key="model-download").click()
    until(at.run(), lambda at: at.error)
    assert "does not answer" in at.error[0].value
    assert not at.exception


# ------------------------------------------------------------------------------------------ what is refused


def test_pickled_weights_are_loaded_after_a_tick_in_the_box_that_comes_with_the_error(pairs, tmp_path):
    import torch
    from safetensors.torch import load_file

    safe, folder = tiny.build_model(tmp_path / "safe"), tiny.build_model(tmp_path / "pickled")
    torch.save(load_file(folder / "model.safetensors"), folder / "pytorch_model.bin")
    (folder / "model.safetensors").unlink()
    at = until(start(model=str(folder), data=pairs, whitening="Centred"), lambda at: at.error)
    assert "no *.safetensors weights" in at.error[0].value
    assert LIVE not in metrics(at)
    at.checkbox(key="allow-bin").check()
    until(at.run())
    assert live(at) == expected(str(safe), pairs, layers=(1, 3))
    assert "allow_bin=True" in at.code[-1].value
    at.selectbox(key="model").set_value("bundled")
    until(at.run())
    assert [one.key for one in at.checkbox if one.key == "allow-bin"] == []


def test_a_model_the_operator_does_not_allow_is_not_offered_and_refused_when_typed(pairs, monkeypatch, no_hub):
    monkeypatch.setenv("WHITELAB_MODELS", "bundled, google-bert/*")
    at = until(start(data=pairs))
    shown = at.selectbox(key="model").options
    assert "BERT base" in shown
    assert "RoBERTa base" not in shown
    at.selectbox(key="model").set_value("FacebookAI/roberta-base")
    until(at.run(), lambda at: at.error)
    assert "not among those the operator of this machine allows" in at.error[0].value
    for page in QUESTIONS:
        at.switch_page(f"pages/{page}.py").run()
        assert not at.exception
    at.selectbox(key="model").set_value("bundled")
    until(at.run())
    assert not at.error


def test_the_readme_names_the_operators_setting():
    assert "WHITELAB_MODELS" in (ROOT / "README.md").read_text("utf-8")
