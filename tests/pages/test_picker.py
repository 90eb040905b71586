"""The model picker without a browser: names, controls, what a download would cost, and what is refused."""

import re
import threading
from pathlib import Path

import pytest
import tiny
from families import build_family
from questions import QUESTIONS

import whitelab
from whitelab.encoding import catalogue, checkpoints
from whitelab.encoding.names import BUNDLED_NAME, ModelError
from whitelab.ui.sidebar import model

from .visiting import PATIENCE, choose, code, failed, go_to, live, protocol, said, scored, start, tour, until

pytestmark = pytest.mark.model


@pytest.fixture(scope="module", autouse=True)
def own_hub(own_store, tmp_path_factory):
    """A Hugging Face cache of this file's own, empty."""
    from huggingface_hub import constants

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(constants, "HF_HUB_CACHE", str(tmp_path_factory.mktemp("hub")))
        yield


@pytest.fixture
def no_hub(monkeypatch):
    """A hub that must not be asked."""
    monkeypatch.setattr(checkpoints, "_download", lambda *args: pytest.fail("asked the hub"))


@pytest.fixture
def data(small):
    """A few pairs, so that any model is quick, centred."""
    return {"data": small["data"], "whitening": "Centred"}


def expected(model, data, text, pooling="mean") -> str:
    """The score the package gives."""
    space, _ = whitelab.embed_pairs(whitelab.load_encoder(model), whitelab.load(data), pooling)
    return scored(space, f"{pooling}/{text}")


# ---------------------------------------------------------------------------------------- what is offered


def test_the_list_holds_the_bundled_model_its_controls_and_the_papers_models_by_name(data):
    shown = until(start(**data)).selectbox(key="model").options
    assert shown[0] == f"{BUNDLED_NAME} (bundled)"
    assert {model.label(name) for name in model.CONTROLS} <= set(shown)
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


def test_a_control_is_scored_as_the_package_scores_it(data, small):
    tiny = small["model"]
    for name, last in (("static:bundled", 0), (f"{tiny}:2", 2), (f"random:{tiny}", 3), (f"sif:{tiny}", 0)):
        if name.endswith("bundled"):  # from the list
            at = choose(choose(until(start(**data, model=tiny)), model=name), layers=[last])
        else:
            at = until(start(**data, model=name, layers=str(last)))
        assert live(at) == expected(name, data["data"], f"L{last}:center")
        encoder = whitelab.load_encoder(name)
        assert protocol(at).startswith(f"{encoder.name} · layer {last} ")
        assert list(at.get_by_key("layers").options) == [str(layer) for layer in range(encoder.n_layers)]


def test_every_page_works_for_a_model_of_one_layer(data):
    at = start(**data, model="static:bundled")
    for page in tour(at):
        assert not at.error
        assert [title.value for title in at.title] == [QUESTIONS[page]]
        assert live(at) != "undefined"


def test_a_decoder_offers_its_last_token_and_never_its_first(data, small, tmp_path):
    folder = str(build_family(tmp_path / "decoder", "Llama"))
    at = until(start(**data, model=folder, pooling="[CLS]"))
    control = at.get_by_key("pooling")
    assert (control.value, list(control.options)) == ("mean", ["Mean", "Last token"])
    choose(at, pooling="last", layers=[4])
    assert live(at) == expected(folder, data["data"], "L4:center", "last")
    assert (choose(at, model=small["model"]).get_by_key("pooling").value, at.error.len) == ("mean", 0)


# ------------------------------------------------------------------------------- before anything is downloaded


def test_a_model_that_is_not_here_says_what_it_costs_and_waits_for_a_yes(data, no_hub):
    at = start(**data, model="google-bert/bert-base-uncased")
    assert said(at, "12 layers, d 768, 109.5 M parameters, licence Apache 2.0.")
    text = " ".join(one.value.replace("\\", "") for one in at.caption)
    assert re.search(r"GiB of memory and \d+ s here, the download apart\.", text)  # how many depends on the machine
    assert live(at) is None
    assert [one.value for one in at.title] == [QUESTIONS["overview"]]
    assert not at.exception
    at.selectbox(key="model").set_value("SpanBERT/spanbert-base-cased").run()
    assert said(at, "licence not stated", "Only pickled weights are published")
    at.selectbox(key="model").set_value("someone/unheard-of").run()
    assert said(at, "not in the catalogue")


def test_a_yes_downloads_it(data, small, monkeypatch):
    asked = []
    monkeypatch.setattr(checkpoints, "_download", lambda name, *args: asked.append(name) or Path(small["model"]))
    at = start(**data, model="someone/tiny")
    assert asked == []
    at.button(key="model-download").click()
    until(at.run())
    assert set(asked) == {"someone/tiny"}
    assert live(at) == expected(small["model"], data["data"], "L1:center")


def test_while_a_model_is_fetched_the_page_says_so_and_asks_for_no_choice(small, data, monkeypatch):
    go = threading.Event()
    monkeypatch.setattr(checkpoints, "_download", lambda name, *args: go.wait(PATIENCE) and Path(small["model"]))
    at = start(**data, model="someone/tiny-three")
    assert any("The bar offers to download it" in one.value for one in at.main.warning)
    at.button(key="model-download").click()
    at.run()
    assert [one.value for one in at.main.info] == [
        "someone/tiny\\-three is being loaded. How far it is stands in the bar (» at the top left opens it where it is "
        "closed)."
    ]
    go.set()
    assert not any("is being loaded" in one.value for one in until(at.run()).main.info)


def test_a_download_that_fails_is_said_and_can_be_tried_again(data, monkeypatch):
    def fail(*args):
        raise ModelError("model='someone/tiny-two' is not on this machine and the hub does not answer")

    monkeypatch.setattr(checkpoints, "_download", fail)
    at = start(**data, model="someone/tiny-two")
    at.button(key="model-download").click()
    assert failed(until(at.run(), lambda at: at.error), "does not answer")
    assert any("again" in one.label for one in at.button)


# ------------------------------------------------------------------------------------------ what is refused


def test_pickled_weights_are_loaded_after_a_tick_in_the_box_that_comes_with_the_error(data, small, tmp_path):
    import torch
    from safetensors.torch import load_file

    folder = tiny.build_model(tmp_path / "pickled")
    torch.save(load_file(folder / "model.safetensors"), folder / "pytorch_model.bin")
    (folder / "model.safetensors").unlink()
    at = until(start(**data, model=str(folder)), lambda at: at.error)
    assert failed(at, "no *.safetensors weights")
    assert live(at) is None
    at.checkbox(key="allow-bin").check()
    until(at.run())
    assert live(at) == expected(small["model"], data["data"], "L1:center")
    assert "allow_bin=True" in code(at)
    assert "allow-bin" not in {one.key for one in choose(at, model=small["model"]).checkbox}


def test_a_model_the_operator_does_not_allow_is_not_offered_and_refused_when_typed(data, monkeypatch, no_hub):
    monkeypatch.setenv("WHITELAB_MODELS", "bundled, google-bert/*")
    at = until(start(**data))
    shown = at.selectbox(key="model").options
    assert "BERT base" in shown
    assert "RoBERTa base" not in shown
    at.selectbox(key="model").set_value("FacebookAI/roberta-base")
    until(at.run(), lambda at: at.error)
    assert failed(at, "not among those the operator of this machine allows")
    for page in QUESTIONS:
        assert not go_to(at, page).exception
    assert not choose(until(go_to(at, "data"), lambda at: True), model="bundled").error
