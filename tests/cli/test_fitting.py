"""`--fit`: every scope, in every analysis."""

import pytest
from commandline import ANALYSES


@pytest.fixture
def other_text(tmp_path):
    """A text file of 90 sentences that the task does not have."""
    path = tmp_path / "other.txt"
    path.write_text("".join(f"Sentence number {i} about thing {i % 7}, and more.\n" for i in range(90)))
    return str(path)


# Two maps, and text of its own; the others are the same words to all of them, and asked of one.
CASES = [(command, fit) for command in ANALYSES if command != "embed" for fit in ("cross", "TEXT")]


@pytest.mark.parametrize(("command", "fit"), [*CASES, ("score", "task"), ("score", "splits")])
def test_every_analysis_takes_every_fit_scope(document, options, other_text, command, fit):
    fit = other_text if fit == "TEXT" else fit
    record = document(command, *options, "--whitening", "pca", "--fit", fit)
    assert record["protocol"]["fit"] == fit
    assert record["protocol"]["whitening"] == "pca"


def test_the_scope_changes_the_score_and_what_is_said_about_it(document, options, other_text):
    fits = ("task", "cross", other_text)
    found = {fit: document("score", *options, "--whitening", "pca", "--k", "4", "--fit", fit) for fit in fits}
    assert len({one["spearman"] for one in found.values()}) == 3
    assert found[other_text]["fitted"] == 90
    assert found["cross"]["fitted"] < found["task"]["fitted"]
    assert all(0 < one["held_out_isotropy"] < 1 for one in found.values())


def test_a_fit_text_that_is_not_there_is_refused_before_encoding(run, options):
    status, out, err = run("score", *options, "--whitening", "pca", "--fit", "nowhere.txt")
    assert (status, out) == (2, "")
    assert "fit='nowhere.txt' must be task, splits, cross, tokens, corpus:FOLDER or the path of other text" in err
    assert err.strip().endswith("nowhere.txt: no such file or folder")
