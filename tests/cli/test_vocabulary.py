"""One thing has one name in the JSON of every command, so that what reads several of them has to know it once."""

import contextlib
import io
import json
import math

import pytest
from commandline import ANALYSES
from PIL import Image
from processes import ROOT

from whitelab.cli import COMMANDS, main
from whitelab.corpus.applying import read_applied
from whitelab.scoring.paired import VERDICTS, verdict_of
from whitelab.scoring.setting import Setting
from whitelab.statistics.significance import Difference, WilliamsTest

# What a key would be called in another house -> its name here.
NAMES = {
    "d": "dim",
    "dimensions": "dim",
    "columns": "dim",
    "width": "dim",
    "interval": "low and high",
    "intervals": "low and high",
    "half_width": "half_width_95",
    "p": "p_value",
    "undefined": "reason",
    "stopped": "message",
    "measure": "metric",
    "stored": "code",
    "quantizer": "code",
    "rotation": "code",
}
TEXT = {"setting", "code", "reason", "message", "metric", "protocol_line", "verdict"}
COMMANDS_PAGE = ROOT / "docs" / "commands.md"
FEWER = ("--layers", "1", "--whitening", "pca")
# Scripts rely on these keys of the (last) document of a call.
PROMISED = {
    "score": {"spearman", "pairs", "subsets", "rank", "protocol"},
    "layers": {"cells", "best"},
    "layers size": {"scored", "seconds", "best_by_size", "top"},
    "kcurve": {"k", "spearman", "best_k"},
    "kcurve each": {"curves"},
    "geometry": {"layers"},
    "similarity": {"layers", "cka"},
    "compare": {"rows"},
    "whiten": {"out", "rank", "fitted", "protocol"},
    "retrieve": {"ndcg@10", "mrr@10", "map@100", "recall@10", "recall@100", "queries", "documents", "protocol"},
    "train": {"summary"},
    "corpus fit": {"fitted", "distinct", "digest", "rank"},
    "images": {"linear_accuracy", "knn_accuracy"},
}


def calls(place, root) -> dict[str, list]:
    """Every command, and those that write other documents by their options more than once."""
    model = ["--model", place / "model", "--cache", place / "store"]
    pairs = [*model, "--data", place / "pairs.csv"]
    judged = [*model, "--data", place / "search"]
    rows = ["--models", place / "model", "--data", place / "tasks", "--cache", place / "store"]
    chunks, applied = root / "chunks", root / "applied"
    found = {name: [name, *pairs] for name in ANALYSES} | {
        "models": ["models"],
        "datasets": ["datasets", "--data", place / "tasks"],
        "download": ["download", "--list"],
        "score undefined": ["score", *model, "--data", place / "constant.csv"],
        "score gamma": ["score", *pairs, "--whitening", "soft:gamma=auto"],
        "layers size": ["layers", *pairs, "--size", "all", "--top", "2"],
        "kcurve each": ["kcurve", *pairs, "--layers", "each"],
        "kcurve controls": ["kcurve", *pairs, "--controls"],
        "similarity against": ["similarity", *pairs, "--against", str(place / "model")],
        "bits": ["bits", *pairs, *FEWER, "--codes", "int8,binary+itq", "--corpus", "500"],
        "bits search": ["bits", *judged, *FEWER, "--search", "--codes", "int8"],
        "calibrate search": ["calibrate", *judged, *FEWER, "--search"],
        "compare": ["compare", *rows, "--settings", "L1;L1:pca", "--intervals"],
        "compare walk": ["compare", *rows, "--presets", "whiteningbert,simcse"],
        "probe": ["probe", *model, "--data", place / "labels.tsv", "--settings", "L1;L1:pca"],
        "probe pairs": ["probe", *model, "--data", root / "matches.csv", "--settings", "L1"],
        "retrieve": ["retrieve", *judged, *FEWER, "--per-query"],
        "retrieve each": ["retrieve", *judged, "--layers", "each", "--whitening", "soft"],
        "retrieve curve": ["retrieve", *judged, *FEWER, "--every-k"],
        "advise": ["advise", *pairs],
        "advise store": ["advise", *pairs, "--for", "store"],
        "whiten": ["whiten", *pairs, "--export", "npz", "--out", root / "map.npz"],
        "train": ["train", "--model", place / "model", "--corpus", place / "text.txt", "--eval", place / "pairs.csv"],
        "images": ["images", "--data", root / "images", "--objective", "w-mse:embedding=4,hidden=16", "--steps", "2"],
    }
    found["train"] += ["--steps", "2", "--batch", "8", "--out", root / "run"]
    corpus = {
        "embed": ["--model", place / "model", "--text", place / "text.txt", "--out", chunks],
        "status": [chunks],
        "fit": [chunks, "--k", "8"],
        "drift": [chunks, chunks, "--k", "8"],
        "apply": [chunks, "--out", applied, "--k", "8"],
        "index": [applied, "--out", root / "index"],
        "search": [applied, "--query", "a man", "--top", "2"],
    }
    return found | {f"corpus {step}": ["corpus", step, *words] for step, words in corpus.items()}


def printed(*argv) -> list[dict]:
    """The documents of a command."""
    out, err = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        status = main([*map(str, argv), "--json"])
    assert status == 0, err.getvalue()
    return [json.loads(line) for line in out.getvalue().splitlines()]


@pytest.fixture(scope="module")
def root(tmp_path_factory, place):
    """A folder with pairs that match or not and with images, to write into."""
    root = tmp_path_factory.mktemp("vocabulary")
    lines = (place / "pairs.csv").read_text("utf-8").splitlines()[1:]
    rows = [f"{line.rpartition(',')[0]},{i % 2}" for i, line in enumerate(lines)]
    (root / "matches.csv").write_text("\n".join(["first,second,label", *rows]) + "\n", "utf-8")
    for label in range(2):
        (root / "images" / str(label)).mkdir(parents=True)
        for i in range(16):
            Image.new("L", (6, 6), 100 * label + i).save(root / "images" / str(label) / f"{i}.png")
    return root


@pytest.fixture(scope="module")
def documents(place, root):
    """{call: its documents}."""
    from whitelab.advice import advising
    from whitelab.advice.candidates import candidates, to_store

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(advising, "candidates", lambda *given: candidates(*given)[::9])
        patch.setattr(advising, "to_store", lambda *given: to_store(*given)[::6])
        return {name: printed(*argv) for name, argv in calls(place, root).items()}


def records(value, place: str = ""):
    """Every object of a document, however deep, and where it stands."""
    if isinstance(value, dict):
        yield place, value
    for name, one in value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ():
        yield from records(one, f"{place}.{name}")


@pytest.fixture(scope="module")
def all_records(documents):
    """(where, object), of all commands."""
    return [one for name, printed in documents.items() for document in printed for one in records(document, name)]


def test_every_command_is_among_those_called(documents):
    assert {name.split()[0] for name in documents} == {*COMMANDS} - {"app"}


@pytest.mark.parametrize("call", PROMISED)
def test_what_scripts_rely_on_is_there(documents, call):
    assert PROMISED[call] <= documents[call][-1].keys()


def test_nothing_has_a_second_name(all_records):
    wrong = [f"{place}.{name} is {NAMES[name]}" for place, one in all_records for name in one if name in NAMES]
    assert not wrong


def test_an_interval_is_low_and_high_beside_its_estimate_and_says_how_many_resamples_it_comes_from(all_records):
    wrong, count = [], 0
    for place, one in all_records:
        for name in one:
            stem, found, end = name.rpartition("low")
            if end or (stem and not stem.endswith("_")):
                continue
            count += 1
            beside = {f"{stem}high", "resamples"} | ({stem[:-1]} if stem else set())
            wrong += [f"{place}.{name} without {other}" for other in sorted(beside - set(one))]
        wrong += [f"{place}.{name} holds two ends" for name in one if name.endswith(("interval", "quartiles"))]
    assert not wrong
    assert count > 50


def test_a_verdict_follows_from_what_stands_beside_it(all_records):
    found = [one for _, one in all_records if "verdict" in one]
    assert len({one["verdict"] for one in found}) > 1
    for one in found:
        names = ("difference", "difference_low", "difference_high", "p_value", "p_williams")
        *moved, p = (math.nan if one.get(name) is None else one[name] for name in names)
        test = WilliamsTest(0.0, 0, p, 0.0, 0.0, 0.0)
        assert one["verdict"] in (verdict_of(Difference(*moved), test), "starved"), one


def test_every_word_of_a_verdict_is_explained():
    assert [word for word in VERDICTS if f"`{word}`" not in COMMANDS_PAGE.read_text("utf-8")] == []


def test_a_key_holds_one_kind_of_thing(all_records):
    wrong = []
    for place, one in all_records:
        where = f"{place}.{{}} is {{}}".format
        wrong += [where(name, one[name]) for name in TEXT & set(one) if not isinstance(one[name], str | None)]
        wrong += [where("protocol", one["protocol"]) for _ in "1" if not isinstance(one.get("protocol", {}), dict)]
        for name in ("rows", "points", "curves", "cells", "options"):
            rows = one.get(name, [])
            if not isinstance(rows, list) or not all(isinstance(row, dict) for row in rows):
                wrong.append(where(name, rows))
        apart = place == "geometry" or place.endswith("differences")  # what a layer's measures are; presets, in words
        layers = [] if apart else one.get("layers", [])
        words = isinstance(layers, str)  # of a protocol that goes through many
        if not words and not (isinstance(layers, list) and all(isinstance(layer, int) for layer in layers)):
            wrong.append(where("layers", layers))
        if isinstance(one.get("setting"), str):
            Setting.parse(one["setting"])
    assert not wrong


def test_how_far_one_text_is_from_another_is_null_where_it_is_not_defined(place, tmp_path):
    for name in ("one", "other"):
        (tmp_path / f"{name}.txt").write_text(f"{name} text\n")
        text = ["--model", place / "model", "--text", tmp_path / f"{name}.txt"]
        printed("corpus", "embed", *text, "--out", tmp_path / name)
    (found,) = printed("corpus", "drift", tmp_path / "one", tmp_path / "other")
    assert found["sentences"] == [1, 1]
    assert found["mean"] is found["variance"] is found["isotropy"] is None


@pytest.mark.parametrize("file", ["constant.csv", "one.csv"])
def test_what_is_not_defined_is_null(file, place, model):
    """Where it cannot be a document at all, the error is not that of the writer of JSON."""
    for name in (*ANALYSES, "compare", "whiten"):
        argv = [name, *(["--models", *model[1:]] if name == "compare" else model), "--data", str(place / file)]
        argv += ["--export", "npz", "--out", str(place / "own.npz")] if name == "whiten" else []
        argv += ["--codes", "int8"] if name == "bits" else []
        out, err = io.StringIO(), io.StringIO()
        with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
            main([*argv, "--json"])
        assert "JSON compliant" not in err.getvalue(), name
        assert "NaN" not in out.getvalue(), name


def test_an_applied_corpus_of_before_is_read_too(documents, root):
    path = root / "applied" / "manifest.json"
    now = json.loads(path.read_text())
    before = {{"dim": "width"}.get(name, name): value for name, value in now.items()}
    path.write_text(json.dumps(before))
    try:
        assert read_applied(root / "applied") == now
        again = printed("corpus", "search", root / "applied", "--query", "a man", "--top", "2")
        assert again == documents["corpus search"]
        printed("corpus", "index", root / "applied", "--out", root / "second")
    finally:
        path.write_text(json.dumps(now))
