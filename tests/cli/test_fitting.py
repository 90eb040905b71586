"""`--fit`: every scope, in every analysis."""

import json
import shutil
from dataclasses import fields

import pytest
from commandline import ANALYSES
from tiny import build_model

from whitelab.cli import spaces
from whitelab.corpus.fitting import Drift
from whitelab.datasets import BUNDLED_SETS


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


@pytest.mark.parametrize("k", [2, None])
def test_whatever_fits_a_map_says_where_so_few_texts_are_no_ground_for_it(run, model, place, tmp_path, k):
    pairs, kept = (*model, "--data", place / "few.csv"), () if k is None else ("--k", str(k))
    search = (*model, "--search", "--data", place / "search", "--fit", "queries")
    (tmp_path / "few.txt").write_text("a man\na dog\nwater\nthe cat\n")
    folder, setting = tmp_path / "few", "L1:pca" if k is None else f"L1:pca@{k}"
    status, out, _ = run("corpus", "embed", "--text", tmp_path / "few.txt", "--out", folder, *model[:2])
    assert (status, out.splitlines()[0]) == (0, "4 texts in 1 chunk, 4 different ones encoded now")
    for command in (
        ("score", *pairs, "--whitening", "pca", *kept),
        ("whiten", *pairs, *kept, "--export", "npz", "--out", tmp_path / "map.npz"),
        ("compare", "--models", model[1], *pairs[2:], "--settings", f"L1;{setting}"),
        ("retrieve", *(one for one in search if one != "--search"), "--whitening", "pca", *kept),
        ("calibrate", *search, "--whitening", "pca", *kept),
        ("bits", *search, "--codes", "float32", *kept),
        ("corpus", "fit", folder, *kept),
        ("corpus", "apply", folder, "--out", tmp_path / f"applied {k}", *kept),
    ):
        status, _, err = run(*command)
        assert ("equally far apart" in err) is (k is None), (status, command, err)
        assert status == 0 or "Spearman is not defined" in err, (command, err)


def test_whatever_fits_on_a_corpus_or_searches_it_says_that_its_texts_have_changed_since(run, model, place, tmp_path):
    text, folder = tmp_path / "text.txt", tmp_path / "out"
    text.write_text("".join(f"a man number {i} plays\n" for i in range(30)))
    other = tmp_path / "other"
    for source, out in ((text, folder), (place / "text.txt", other)):
        assert run("corpus", "embed", "--text", source, "--out", out, *model[:2], "--layers", "1")[0] == 0
    pairs = (*model, "--data", place / "pairs.csv", "--layers", "1", "--whitening", "pca")
    for changed in (False, True):
        if changed:
            text.write_text("one more\n")
        for command in (
            ("corpus", "fit", folder),
            ("corpus", "drift", folder, other),
            ("corpus", "drift", other, folder),
            ("corpus", "apply", folder, "--out", tmp_path / "applied"),
            ("corpus", "index", tmp_path / "applied", "--out", tmp_path / "index"),
            ("corpus", "search", tmp_path / "applied", "--query", "a man plays"),
            ("corpus", "search", tmp_path / "index", "--query", "a man plays"),
            ("score", *pairs, "--fit", f"corpus:{folder}"),
        ):
            status, _, err = run(*command)
            assert (status, "of its text were not read, or were written again" in err) == (0, changed), (command, err)
    shutil.rmtree(folder)
    status, _, err = run("corpus", "search", tmp_path / "index", "--query", "a man plays")
    assert (status, "written again" in err) == (0, False), err


def test_what_there_is_to_know_of_a_sentence_that_is_searched_for_is_said(run, model, place, tmp_path):
    embedded, applied = tmp_path / "embedded", tmp_path / "applied"
    made = ("--text", place / "text.txt", "--out", embedded, *model[:2], "--max-length", 16)
    assert run("corpus", "embed", *made)[0] == 0
    assert run("corpus", "apply", embedded, "--whitening", "none", "--out", applied)[0] == 0
    told = ("mostly unknown words", "1 sentence was cut to 16 tokens")
    for query, said in (("a dog", (False, False)), ("☃☃", (True, False)), ("a dog " * 20, (False, True))):
        status, _, err = run("corpus", "search", applied, "--query", query)
        assert (status, *(words in err for words in told)) == (0, *said), err


def test_texts_of_a_corpus_that_are_cut_or_of_unknown_words_are_said_when_it_is_embedded_and_watched(
    run, model, tmp_path
):
    (tmp_path / "text.txt").write_text("☃☃\na dog\n" + "a dog " * 20 + "\n")
    made = ("--text", tmp_path / "text.txt", "--out", tmp_path / "out", *model[:2], "--max-length", 16)
    for command in (("embed", *made), ("status", tmp_path / "out")):
        status, out, err = run("corpus", *command, "--json")
        assert (status, *(json.loads(out)[kind] for kind in ("cut", "unknown"))) == (0, 1, 1)
        assert "note: 1 text was cut to 16 tokens\nnote: 1 text of mostly unknown words" in err
    assert run("corpus", "status", tmp_path / "out")[1].splitlines()[0] == "1 of 1 chunk, 3 of 3 texts"


def test_every_measure_of_a_drift_is_explained(run, model, place, tmp_path):
    assert run("corpus", "embed", "--text", place / "text.txt", "--out", tmp_path / "own", *model[:2])[0] == 0
    lines = run("corpus", "drift", tmp_path / "own", tmp_path / "own", "--k", "4")[1].splitlines()
    measures = [one.name for one in fields(Drift) if one.type is float]
    told = dict(line.split(": ", 1) for line in lines)
    assert [name for name in measures if len(told[name].partition(", ")[2].split()) < 5] == []


def test_a_drift_from_the_file_of_a_map_is_that_of_the_options_it_was_fitted_with(run, model, place, tmp_path):
    own, other, file = tmp_path / "own", tmp_path / "other", tmp_path / "map.npz"
    (tmp_path / "text.txt").write_text("".join(f"a man number {i} plays\n" for i in range(30)))
    layers = ("--layers", "1,2", "--apart")
    for text, out in ((place / "text.txt", own), (tmp_path / "text.txt", other)):
        assert run("corpus", "embed", "--text", text, "--out", out, *model[:2], *layers)[0] == 0
    options = ("--whitening", "soft:gamma=0.5", "--k", "4", "--layers", "2")
    assert run("corpus", "fit", own, *options, "--out", file)[0] == 0
    asked = run("corpus", "drift", own, other, *options, "--json")
    of_file = run("corpus", "drift", own, other, "--map", file, "--json")
    assert (of_file[0], json.loads(of_file[1])) == (0, json.loads(asked[1]))
    assert "was not fitted on" not in of_file[2]
    assert "was not fitted on" in run("corpus", "drift", other, own, "--map", file)[2]
    status, _, err = run("corpus", "drift", own, other, "--map", file, "--k", "4")
    assert (status, "--k does not go with --map" in err) == (2, True)
    for setting, told in (
        ("cls/L2:pca@4", f"--map {tmp_path / 'else.npz'}: map must be of the corpus's pooling 'mean'"),
        ("L3:pca@4", "gives no such map: layers=[3] must"),
        ("L2:r2", "gives no such map: whitening='r2' cannot be fitted to moments of layers kept apart"),
    ):
        words = ("--data", place / "pairs.csv", "--setting", setting, "--export", "npz", "--out", tmp_path / "else.npz")
        assert run("whiten", *model[:2], *words)[0] == 0
        status, _, err = run("corpus", "drift", own, other, "--map", tmp_path / "else.npz")
        assert (status, told in err) == (2, True), err
    third = ("--out", tmp_path / "third", *model[:2], "--layers", "1,3", "--apart")
    assert run("corpus", "embed", "--text", place / "text.txt", *third)[0] == 0
    for options in (("--layers", "2", "--k", "4"), ("--map", file)):
        status, _, err = run("corpus", "drift", own, tmp_path / "third", *options)
        held = f"{tmp_path / 'third'} must hold what {own} is measured by, layer 2, and holds"
        assert (status, held in err) == (2, True), err
    status, _, err = run("corpus", "fit", own, "--whitening", "r2")
    assert (status, "--whitening r2 cannot be fitted to moments of layers kept apart" in err) == (2, True), err


def test_a_map_of_another_model_and_texts_that_are_gone_are_said(run, model, place, tmp_path):
    embedded, applied = tmp_path / "embedded", tmp_path / "applied"
    build_model(tmp_path / "other", seed=1)
    assert run("corpus", "embed", "--text", place / "text.txt", "--out", embedded, *model[:2])[0] == 0
    for name, told in ((model[1], False), (tmp_path / "other", True)):
        out = tmp_path / "map.npz"
        words = ("--data", place / "pairs.csv", "--layers", "3", "--k", "4", "--export", "npz", "--out", out)
        assert run("whiten", "--model", name, *model[2:], *words)[0] == 0
        status, _, err = run("corpus", "apply", embedded, "--map", out, "--out", applied)
        assert (status, "the map was made with other" in err) == (0, told)
    for moved in (False, True):
        if moved:
            embedded.rename(tmp_path / "elsewhere")
        status, _, err = run("corpus", "search", applied, "--query", "a dog")
        assert (status, "no texts: the folder" in err) == (0, moved)


def test_a_map_of_vectors_made_otherwise_than_the_corpus_is_said(run, model, place, tmp_path):
    for folder, more in (("corpus", ()), ("short", ("--max-length", "9"))):
        words = ("--text", place / "text.txt", "--out", tmp_path / folder, *model[:2], *more)
        assert run("corpus", "embed", *words)[0] == 0
    assert run("corpus", "fit", tmp_path / "short", "--k", "4", "--out", tmp_path / "short.npz")[0] == 0
    words = (*model, "--k", "4", "--export", "npz", "--max-length", "128", "--out")
    for name, more in (("same", ()), ("half", ("--dtype", "bfloat16")), ("asked", ("--query-prompt", "ask: "))):
        data = ("--search", "--data", place / "search") if name == "asked" else ("--data", place / "pairs.csv")
        assert run("whiten", *words, tmp_path / f"{name}.npz", *data, *more)[0] == 0
    for name, told in (
        ("same", ""),
        ("short", "the map is of vectors made with max_length=9, the corpus with max_length=128"),
        ("half", "the map is of vectors made with dtype=bfloat16, the corpus with dtype=float32"),
        ("asked", "the map is of queries after 'ask: ' and documents after nothing: put them there yourself"),
    ):
        applied = ("--map", tmp_path / f"{name}.npz", "--out", tmp_path / "applied")
        status, _, err = run("corpus", "apply", tmp_path / "corpus", *applied)
        assert (status, err) == (0, f"note: {told}\n" if told else "")


def test_a_fit_text_that_is_not_there_is_refused_before_encoding(run, options, model, place):
    status, out, err = run("score", *options, "--whitening", "pca", "--fit", "nowhere.txt")
    assert (status, out) == (2, "")
    scopes = "task, splits, cross, tokens, vectors, corpus:FOLDER, demo, demo-hard"
    assert f"--fit nowhere.txt must be {scopes} or the path of other text" in err
    assert err.strip().endswith("nowhere.txt: no such file or folder")
    judged = ("--data", place / "search", "--fit", "nowhere.txt")
    for words in (("retrieve", *model, *judged), ("calibrate", *model, "--search", *judged)):
        assert "must be corpus, queries, both, corpus:FOLDER, demo, demo-hard or" in run(*words)[2]


@pytest.mark.parametrize("fit", BUNDLED_SETS)
@pytest.mark.parametrize("command", ["score", "whiten --export npz --out map.npz", "retrieve", "bits --search"])
def test_bundled_pairs_are_text_to_fit_on(run, model, place, monkeypatch, command, fit):
    def reached(*_):
        raise ValueError("nothing was refused before a model is loaded")

    monkeypatch.setattr(spaces, "load_model", reached)
    data = "search" if command.startswith(("retrieve", "bits")) else "pairs.csv"
    argv = [*command.split(), *model, "--data", place / data]
    for words in (["--whitening", "pca", "--fit", fit], ["--setting", f"L1:pca fit={fit}"]):
        assert "nothing was refused" in run(*argv, *words)[2]
