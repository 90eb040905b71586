"""Tiny files that every command works on, and the words that say so."""

import json
from functools import partial

import pytest
from commandline import called
from judged import write_retrieval
from tiny import SENTENCES, build_model, write_pairs, write_task

from whitelab.datasets import load
from whitelab.encoding.embeddings import embed_pairs
from whitelab.encoding.encoders import load_encoder


@pytest.fixture(scope="package")
def place(tmp_path_factory):
    """A folder with a tiny model, a table of pairs, a task with subset files, and a store."""
    root = tmp_path_factory.mktemp("cli")
    build_model(root / "model")
    write_pairs(root / "pairs.csv")
    write_task(root / "tasks")
    lines = [f"{text}\t{'pet' if 'dog' in text or 'cat' in text else 'other'}" for text in SENTENCES[::9]]
    (root / "labels.tsv").write_text("text\tlabel\n" + "\n".join(lines) + "\n")
    (root / "text.txt").write_text("\n".join(SENTENCES[:50]) + "\n")
    texts = {f"d{i}": ("", text) for i, text in enumerate(SENTENCES[:50])}
    asked = {f"q{i}": f"who {SENTENCES[9 * i]}" for i in range(5)}
    grades = [(f"q{i}", f"d{9 * i + j}", j + 1) for i in range(5) for j in range(2)]
    write_retrieval(root / "search", texts, asked, grades)
    (root / "malformed.csv").write_text("sentence1,sentence2,score\na man,a dog,3\nwater,the cat,many\nx,y,1\n")
    (root / "constant.csv").write_text("sentence1,sentence2,score\na man,a dog,3\nwater,the cat,3\na singer,water,3\n")
    (root / "one.csv").write_text("sentence1,sentence2,score\na man,a dog,3\n")
    (root / "few.csv").write_text("sentence1,sentence2,score\na man,a dog,3\nwater,the cat,1\na singer,the dog,5\n")
    (root / "empty.csv").write_text("")
    return root


@pytest.fixture(scope="package")
def model(place):
    """The tiny model and the store."""
    return ["--model", str(place / "model"), "--cache", str(place / "store")]


@pytest.fixture(scope="package")
def options(model, place):
    """What the analyses need: the model on the table of pairs."""
    return [*model, "--data", str(place / "pairs.csv")]


@pytest.fixture(scope="package")
def compared(place):
    """What `compare` needs: the model on the task."""
    return ["--models", str(place / "model"), "--data", str(place / "tasks"), "--cache", str(place / "store")]


@pytest.fixture
def run(capsys):
    """Run a command in this process: (exit status, stdout, stderr)."""
    return partial(called, capsys)


@pytest.fixture
def document(run):
    """The one JSON document a command prints; nothing else may be on stdout."""

    def document(*argv):
        status, out, err = run(*argv, "--json")
        assert status == 0, err
        assert out.count("\n") == 1
        return json.loads(out, parse_constant=lambda name: pytest.fail(f"{name} is not JSON"))

    return document


@pytest.fixture(scope="package")
def space(place):
    """The encoder, the pairs and their embeddings, made by the library."""
    encoder = load_encoder(str(place / "model"), device=None)
    pairs = load(place / "pairs.csv")
    return encoder, pairs, embed_pairs(encoder, pairs)[0]
