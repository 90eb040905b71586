"""`images`: a document a record, the accuracies at the end, and one line for what cannot be."""

import json

import numpy as np
import pytest
from PIL import Image


@pytest.fixture
def folder(tmp_path):
    """Three classes of 16 images of 6 x 6, each bright in rows of its own, and a file that is none."""
    draw = np.random.default_rng(0)
    for label, name in enumerate(("top", "middle", "bottom")):
        (tmp_path / "images" / name).mkdir(parents=True)
        for i in range(16):
            pixels = draw.integers(0, 60, (6, 6), dtype=np.uint8)
            pixels[2 * label : 2 * label + 2] += 150
            Image.fromarray(pixels).save(tmp_path / "images" / name / f"{i}.png")
    (tmp_path / "images" / "top" / "notes.txt").write_text("none")
    return tmp_path / "images"


OBJECTIVES = {
    "w-mse": "w-mse:embedding=4,hidden=16",
    "contrastive": "contrastive:embedding=4,hidden=16",
    "byol": "byol:embedding=4,hidden=16",
    "barlow": "barlow:embedding=4,hidden=16",
    "vicreg": "vicreg:embedding=4,hidden=16",
}


@pytest.mark.parametrize("name", OBJECTIVES)
def test_there_is_a_document_a_record_and_the_accuracies_at_the_end(run, folder, name):
    argv = ["--data", folder, "--objective", OBJECTIVES[name], "--steps", "5", "--every", "2", "--seed", "3"]
    status, out, err = run("images", *argv, "--json")
    assert (status, err) == (0, "left out: top/notes.txt: cannot be read as an image\n")
    *records, last = map(json.loads, out.splitlines())
    assert [one["step"] for one in records] == [2, 4, 5]
    assert all(np.isfinite([one["loss"], one["spread"], one["effective_rank"]]).all() for one in records)
    assert {"linear_accuracy", "knn_accuracy", "untrained", "pixels"} <= set(last)
    assert 0 <= last["linear_accuracy"] <= 100
    assert last["pixels"] == {"linear_accuracy": 100.0, "knn_accuracy": 100.0}
    assert last["images"] == {"trained": 36, "held_out": 12, "classes": 3}
    assert (last["steps"], last["seed"], last["data"]) == (5, 3, "images")
    again = [json.loads(line) for line in run("images", *argv, "--json")[1].splitlines()]
    for record in (*records, last, *again):
        record.pop("seconds")
    assert again == [*records, last]


def test_without_json_there_are_lines_for_people(run, folder):
    status, out, _ = run("images", "--data", folder, "--objective", OBJECTIVES["w-mse"], "--steps", "2")
    assert status == 0
    assert out.startswith("step     2  loss ")
    assert [line.split()[0] for line in out.splitlines()[-3:]] == ["trained", "untrained", "pixels"]


def test_a_run_that_diverged_says_so_to_the_end(run, folder):
    argv = ["--data", folder, "--objective", OBJECTIVES["w-mse"], "--steps", "5", "--lr", "1e30"]
    status, out, _ = run("images", *argv)
    assert status == 0
    assert "the step was not taken" in out
    assert "trained     its features hold NaN or infinity" in out
    last = json.loads(run("images", *argv, "--json")[1].splitlines()[-1])
    assert (last["linear_accuracy"], last["knn_accuracy"], last["steps"]) == (None, None, 1)
    assert last["pixels"]["linear_accuracy"] > 0


@pytest.mark.parametrize(
    ("argv", "message"),
    [
        (["--data", "nowhere"], "nowhere: no such file or folder"),
        (["--objective", "infonce"], "--objective infonce must be one of"),
        (["--steps", "0"], "--steps 0 must be a whole number of at least 1"),
        (["--every", "0"], "--every 0 must be a whole number of at least 1"),
        (["--batch", "64"], "needs batches of at least 128 images, got --batch 64"),
        (["--lr", "-1"], "rate=-1.0 must be a number above 0"),
    ],
)
def test_wrong_input_is_one_line(run, argv, message):
    status, out, err = run("images", *argv)
    assert (status, out, err.count("\n")) == (2, "", 1)
    assert message in err
