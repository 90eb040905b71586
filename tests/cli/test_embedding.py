"""What is read, embedded and kept, and what is said about it on stderr."""

import errno
import json

import numpy as np
from tiny import DIM

from whitelab.cli.writing import SHOWN
from whitelab.encoding import precomputed


def test_embed_reports_what_was_encoded_and_the_second_run_encodes_nothing(document, place, tmp_path):
    argv = ["embed", "--model", place / "model", "--data", place / "pairs.csv", "--cache", tmp_path / "store"]
    first, second = document(*argv), document(*argv)
    assert (first["n_layers"], first["dim"]) == (4, DIM)
    assert (first["encoded"], first["reused"]) == (first["sentences"], 0)
    assert (second["encoded"], second["reused"]) == (0, first["sentences"])


def test_embed_writes_every_layer_and_the_sentences_to_a_file(document, options, place, tmp_path, space):
    out = tmp_path / "embeddings.npz"
    record = document("embed", *options, "--out", out)
    with np.load(out, allow_pickle=False) as file:
        assert file["values"].shape == (record["n_layers"], record["sentences"], record["dim"])
        assert tuple(file["sentences"]) == space[1].sentences
        np.testing.assert_allclose(file["values"], space[2].values.numpy(), atol=1e-5)


def test_a_file_that_could_not_be_read_back_is_refused_before_anything_is_embedded(run, options, tmp_path):
    for out, line in (("vectors.txt", "must be the name of an .npz file"), ("none/v.npz", "a folder that exists")):
        status, printed, err = run("embed", *options, "--out", str(tmp_path / out))
        assert (status, printed, err.count("\n")) == (2, "", 1)
        assert line in err
    assert list(tmp_path.iterdir()) == []


def test_a_file_that_cannot_be_written_whole_leaves_the_earlier_one(run, document, options, tmp_path, monkeypatch):
    out = tmp_path / "mine.npz"
    document("embed", *options, "--out", out)
    before = out.read_bytes()

    def full(file, **arrays):
        file.write(b"a part")
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(precomputed.np, "savez", full)
    status, printed, err = run("embed", *options, "--out", str(out))
    assert (status, printed, out.read_bytes(), list(tmp_path.iterdir())) == (2, "", before, [out])
    assert f"{out}: No space left on device" in err


def test_only_what_embed_wrote_is_written_over(run, document, options, tmp_path):
    out = tmp_path / "mine.npz"
    np.savez(out, values=np.ones((1, 2, 3)), first=[0], second=[1], gold=[1.0])
    before = out.read_bytes()
    status, _, err = run("embed", *options, "--out", str(out))
    assert (status, out.read_bytes()) == (2, before)
    assert "exists and is not an earlier export of this kind" in err
    for _ in range(2):
        document("embed", *options, "--out", str(tmp_path / "new.npz"))


def test_no_store_keeps_nothing(document, place, tmp_path, monkeypatch):
    monkeypatch.setenv("WHITELAB_CACHE", str(tmp_path / "store"))
    argv = ["embed", "--model", place / "model", "--data", place / "pairs.csv", "--no-store"]
    assert document(*argv)["reused"] == document(*argv)["reused"] == 0
    assert not (tmp_path / "store").exists()


def test_malformed_rows_are_refused_or_left_out_and_listed(run, document, options, place):
    argv = ["score", *options, "--data", place / "malformed.csv"]
    status, out, err = run(*argv)
    assert (status, out) == (2, "")
    assert err.count("\n") == 1
    assert "malformed.csv" in err
    status, out, err = run(*argv, "--skip-malformed", "--json")
    assert status == 0
    assert json.loads(out)["pairs"] == 2
    assert "left out:" in err


def test_of_many_rows_left_out_the_first_of_each_kind_are_said_and_the_others_counted(run, options, tmp_path):
    rows = ["a man,a dog,3", "x,y,1", *["water,the cat,many"] * SHOWN, *[f"the man,a dog,{'x' * n}" for n in range(12)]]
    (tmp_path / "many.csv").write_text("\n".join(["sentence1,sentence2,score", *rows, "a cat,,4"]))
    said = run("score", *options, "--data", tmp_path / "many.csv", "--skip-malformed")[2].splitlines()
    said = [line for line in said if line.startswith("left out: ")]
    assert len(said) == SHOWN + 1 + 2
    assert said[SHOWN] == "left out: 11 more such rows"
    assert [line.rpartition(":")[2] for line in said[-2:]] == [" score is empty", " second sentence is empty"]


def test_a_cut_sentence_is_noted_on_stderr(run, options):
    status, out, err = run("embed", *options, "--max-length", "4", "--json")
    assert status == 0
    assert json.loads(out)["truncated"] > 0
    assert "sentences were cut to 4 tokens" in err


def test_a_store_that_cannot_be_written_costs_a_note(run, options, place, tmp_path):
    (tmp_path / "file").write_text("")
    status, out, err = run("score", *options, "--cache", tmp_path / "file" / "store", "--json")
    assert status == 0
    assert json.loads(out)["pairs"] == 60
    assert "note: embeddings are not kept on disk" in err
