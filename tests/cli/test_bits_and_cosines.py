"""`bits` and `calibrate`: the numbers of the library, on pairs and on a retrieval set, and wrong input in one line."""

import numpy as np
import pytest

from whitelab.datasets import load_retrieval
from whitelab.encoding.encoders import load_encoder
from whitelab.retrieval.calibration import calibrate_search
from whitelab.retrieval.compression import Code
from whitelab.retrieval.embedded import embed_retrieval, for_documents
from whitelab.retrieval.frontier import frontier
from whitelab.scoring.calibration import calibrate
from whitelab.scoring.setting import Setting
from whitelab.whitening.export import scale_lines

CODES = "float32,int8,binary+itq,hamming"


def wanted(space, texts):
    *_, found = frontier(space, list(map(Setting.parse, texts)), [Code.parse(one) for one in CODES.split(",")])
    return found


def scores(points):
    return {(one["setting"].partition(" ")[0], one["code"]): one["score"] for one in points}


def test_bits_of_pairs_are_the_librarys(document, options, space):
    record = document("bits", *options, "--layers", "2", "--beside", "zca", "--codes", CODES)
    found = wanted(space[2], ("L2", "L2:pca", "L2:zca")).as_dict()
    assert scores(record["points"]) == pytest.approx(scores(found["points"]))
    assert record["metric"] == "Spearman x 100"
    assert [one["bytes"] for one in record["points"]] == [one["bytes"] for one in found["points"]]


def test_bits_of_a_retrieval_set_are_the_librarys(document, model, place):
    record = document(
        "bits", "--search", *model, "--data", place / "search", "--setting", "L1:soft fit=both", "--codes", CODES
    )
    encoder = for_documents(load_encoder(str(place / "model")))
    space = embed_retrieval(encoder, load_retrieval(place / "search"))[0]
    found = wanted(space, ("L1 fit=both", "L1:soft fit=both")).as_dict()
    assert scores(record["points"]) == pytest.approx(scores(found["points"]))
    assert (record["metric"], record["protocol"]["fitted"]) == ("nDCG@10", 55)


@pytest.mark.parametrize(("fit", "words"), [("task", "the task's sentences"), ("cross", "cross-fitted halves")])
def test_the_line_of_bits_says_what_codes_are_trained_on_of_raw_vectors_too(run, options, fit, words):
    _, out, _ = run("bits", *options, "--layers", "2", "--whitening", "none", "--codes", "int8", "--fit", fit)
    assert out.splitlines()[-1].endswith(f"codes trained on {words}")


def test_other_text_that_codes_are_trained_on_keeps_its_name(run, options, tmp_path):
    text = tmp_path / "Mine.txt"
    text.write_text("".join(f"a man number {i} plays\n" for i in range(40)))
    _, out, _ = run("bits", *options, "--layers", "2", "--whitening", "none", "--codes", "int8", "--fit", str(text))
    assert out.splitlines()[-1].endswith("codes trained on Mine.txt")  # without the folder it lies in


def test_searches_are_timed_on_request(document, options):
    record = document("bits", *options, "--layers", "2", "--codes", "hamming", "--corpus", "500")["search"]
    assert [one["code"] for one in record["rows"]] == ["float32", "hamming"]
    assert record["rows"][0]["recall"] == 1.0
    assert (record["corpus"], record["rows"][1]["bytes"]) == (500, 500 * 4)


def test_codes_that_cannot_be_trained_are_named(run, options):
    status, out, err = run("bits", *options, "--layers", "2", "--codes", "pq8,binary")
    assert status == 0
    assert "left out: pq8 of none, pca: must be trained on at least 256 rows" in err
    assert "pca, binary" in out


def test_a_calibration_is_the_librarys_beside_raw(document, options, space):
    words = ("--layers", "1", "--whitening", "pca", "--k", "6", "--cut", "3", "--rate", "0.2", "--cosine", "0.4", "0.8")
    record = document("calibrate", *options, *words)
    found = calibrate(space[2], Setting.parse("L1:pca@6"), 3.0, 0.2)
    raw = calibrate(space[2], Setting.parse("L1"), 3.0, 0.2)
    assert record["threshold"] == pytest.approx(found.as_dict()["threshold"])
    assert [one["percentile"] for one in record["cosines"]] == [found.random.percentile(x) for x in (0.4, 0.8)]
    assert [one["raw"] for one in record["cosines"]] == [raw.random.percentile(x) for x in (0.4, 0.8)]
    assert record["raw"]["gold"]["error"] == pytest.approx(raw.gold.error)
    assert record["protocol"] == found.protocol.as_dict() | {"model": record["protocol"]["model"]}


def test_a_calibration_of_a_search_is_the_librarys_beside_raw(document, model, place):
    words = ("--setting", "L1:pca@6", "--rate", "0.2", "--cosine", "0.4")
    record = document("calibrate", "--search", *model, "--data", place / "search", *words)
    encoder = for_documents(load_encoder(str(place / "model")))
    space = embed_retrieval(encoder, load_retrieval(place / "search"))[0]
    found, raw = (calibrate_search(space, Setting.parse(text), rate=0.2) for text in ("L1:pca@6", "L1"))
    assert record["threshold"] == pytest.approx(found.as_dict()["threshold"])
    assert record["cosines"][0]["percentile"] == found.random.percentile(0.4)
    assert record["raw"]["relevant"] == pytest.approx(raw.relevant)
    assert record["protocol"]["queries"] == len(space.queries)


@pytest.mark.parametrize("kind", ["npz", "sentence-transformers"])
def test_an_export_carries_what_its_cosines_mean(document, options, space, tmp_path, kind):
    out = tmp_path / "map.npz"
    document("whiten", *options, "--layers", "1", "--whitening", "pca", "--k", "6", "--export", kind, "--out", out)
    names = {"np": np}
    exec(scale_lines(out if kind == "npz" else out / "cosine_scale.npz", True, "0.4"), names)
    found = calibrate(space[2], Setting.parse("L1:pca@6"))
    assert names["percentile"] == pytest.approx(found.random.percentile(0.4), abs=0.03)
    assert names["gold"] == pytest.approx(found.gold(0.4))


@pytest.mark.parametrize(
    ("argv", "message"),
    [
        (["bits", "--codes", "int7"], "--codes int7 must be one of float32"),
        (["bits", "--codes", "int8+opq"], "rotation='opq' goes with a product quantiser"),
        (["bits", "--beside", "pcaa"], "pcaa"),
        (["bits", "--seed", "-1"], "--seed -1 must be a whole number of at least 0"),
        (["bits", "--search", "--task", "x"], "--search does not go with --task"),
        (["bits", "--search", "--fit", "cross"], "--fit cross has no meaning without pairs"),
        (["bits", "--codes", "float32", "--corpus", "3"], "--corpus 3 must be at least n="),
        (["bits", "--search", "--corpus", "3"], "--corpus goes with pairs"),
        (["calibrate", "--search", "--fit", "cross"], "--fit cross has no meaning without pairs"),
        (["calibrate", "--rate", "0"], "--rate 0.0 must lie between 0 and 1"),
        (["calibrate", "--cut", "nan"], "--cut nan must be a number"),
        (["calibrate", "--cosine", "2"], "--cosine 2.0 must lie between -1 and 1"),
    ],
)
def test_wrong_input_is_one_line(run, options, argv, message):
    status, out, err = run(argv[0], *options, *argv[1:])
    assert (status, out) == (2, "")
    assert message in err.splitlines()[-1]
    assert "Traceback" not in err
