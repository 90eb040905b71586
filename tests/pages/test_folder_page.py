"""A model of one's own, from a folder: what the pages say of it is what its encoder and the command line say."""

import json

import pytest
from tiny import build_model, write_pairs

import whitelab

from .visiting import start, until

pytestmark = pytest.mark.model

LONGEST = 20  # tokens this model takes


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    """A tiny model of LONGEST tokens and pairs, one sentence of which is longer."""
    root = tmp_path_factory.mktemp("own")
    config = build_model(root / "my-model") / "tokenizer_config.json"
    config.write_text(json.dumps(json.loads(config.read_text("utf-8")) | {"model_max_length": LONGEST}), "utf-8")
    pairs = write_pairs(root / "pairs.csv")
    pairs.write_text(pairs.read_text("utf-8") + f"{'a man ' * LONGEST}plays,a man plays,3.0\n", "utf-8")
    return root


@pytest.fixture
def at(place):
    return until(start("whitening", model=str(place / "my-model"), data=str(place / "pairs.csv")))


def test_a_local_model_has_the_name_of_its_encoder_and_no_path_of_this_machine(at, place):
    name = whitelab.load_encoder(str(place / "my-model")).name
    line = next(one.value for one in at.caption if " · aggregate " in one.value)
    assert line.startswith(f"{name} · layers ")
    shown = [one.value for kind in (at.caption, at.markdown, at.metric) for one in kind]
    assert not [text for text in shown if str(place) in text.replace(str(place / "pairs.csv"), "")]
    assert any(f"{name}-layers-1-3-pca.npz" in one.value for one in at.code)


def test_the_protocol_says_where_this_model_cuts_sentences(at, place):
    encoder = whitelab.load_encoder(str(place / "my-model"))
    assert encoder.max_length == LONGEST
    line = next(one.value for one in at.caption if " · aggregate " in one.value)
    assert line.split(" · ")[-2] == f"at most {LONGEST} tokens"
    assert any(one.value == f"Note: 1 sentences were cut to {LONGEST} tokens." for one in at.caption)
