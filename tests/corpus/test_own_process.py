"""Laws of a corpus embedded in a process of its own: one at a time, stopped when asked to, and taken up again."""

import os

import pytest
from corpora import embed
from processes import until

from whitelab.corpus import own_process
from whitelab.corpus.embedding import embed_corpus
from whitelab.corpus.manifest import Manifest, status
from whitelab.corpus.own_process import embedded_apart
from whitelab.datasets import DataError
from whitelab.store import held_folder


def done(folder) -> int:
    try:
        return status(folder).done
    except DataError:  # the texts are being read
        return 0


def test_leaving_stops_it_and_the_same_arguments_do_what_is_missing(tmp_path, model, monkeypatch):
    monkeypatch.setattr(own_process, "GRACE_SECONDS", 60)  # what a busy machine may take to end
    (tmp_path / "text.txt").write_text("".join(f"sentence {i}\n" for i in range(200)))
    folder = tmp_path / "out"
    arguments = {"source": str(tmp_path / "text.txt"), "model": model, "layers": [1], "chunk_texts": 1}
    with embedded_apart(folder=folder, **arguments, engine="serial") as process:
        until(lambda: process.poll() is not None or done(folder) >= 3)
        assert status(folder).running
    found = status(folder)
    assert 3 <= found.done < found.chunks == 200
    assert process.returncode == 0
    assert (found.running, found.finished) == (False, False)
    assert embed_corpus(folder=folder, **arguments).encoded == 200 - found.done


def test_a_manifest_says_how_it_was_made(tmp_path, model, text):
    first = embed(text, tmp_path / "out", model, layers=(1, 2), apart=True, pooling="unit_cls", vectors="float16")
    again = embed_corpus(folder=tmp_path / "out", **Manifest.read(tmp_path / "out").arguments)
    assert (again.encoded, again.chunks, again.arguments) == (0, first.chunks, first.arguments)


def test_two_do_not_embed_into_one_folder(tmp_path, model, text, monkeypatch):
    monkeypatch.setattr(held_folder, "_LOCK_SECONDS", 0.05)
    embed(text, tmp_path / "out", model)
    with held_folder.held(tmp_path / "out"):
        assert status(tmp_path / "out").running
        with pytest.raises(ValueError, match=rf"is being written by process {os.getpid()} on .*: wait for it"):
            embed(text, tmp_path / "out", model, layers=(0,))
        monkeypatch.setattr(held_folder, "is_held", lambda folder: False)  # the other began a moment later
        with pytest.raises(ValueError, match="is being written by process"):
            embed(text, tmp_path / "out", model, layers=(0,))
    assert not status(tmp_path / "out").running
