"""`retrieve`: the numbers of the library, every layer, every k, every query, and wrong input in one line."""

from dataclasses import replace

import pytest
from judged import write_retrieval
from tiny import SENTENCES

from whitelab.cli.retrieve import _line as line_of
from whitelab.datasets import load_retrieval
from whitelab.encoding.encoders import load_encoder
from whitelab.retrieval.embedded import embed_retrieval, for_documents
from whitelab.retrieval.metrics import METRICS
from whitelab.retrieval.relevance import against, retrieval_curve, retrieve
from whitelab.scoring.setting import Setting
from whitelab.statistics.significance import Difference


@pytest.fixture(scope="module")
def space(place):
    encoder = for_documents(load_encoder(str(place / "model")))
    return embed_retrieval(encoder, load_retrieval(place / "search"))[0]


@pytest.fixture(scope="module")
def words(place, model):
    return ["retrieve", *model, "--data", str(place / "search")]


def test_the_document_holds_the_librarys_metrics_and_protocol(document, words, space):
    options = ("--layers", "1,3", "--whitening", "pca", "--k", "8", "--fit", "both")
    found = retrieve(space, Setting.parse("L1+L3:pca@8 fit=both"))
    record = document(*words, *options)
    assert {name: record[name] for name in METRICS} == pytest.approx(found.means)
    assert (record["queries"], record["documents"], record["protocol"]["fitted"]) == (5, 50, 55)
    assert record["protocol"] == found.protocol.as_dict() | {"model": record["protocol"]["model"]}
    assert record["raw"] == pytest.approx(retrieve(space, Setting.parse("L1+L3")).means)
    again = document(*words, "--setting", "L1+L3:pca@8 fit=both", "--per-query")
    assert [one["id"] for one in again.pop("per_query")] == list(space.data.query_ids)
    assert again == record


@pytest.mark.parametrize(
    "command",
    [
        "retrieve",
        "bits --search --codes int8",
        "calibrate --search",
        "whiten --search --export npz --out {out}",
        "advise",
    ],
)
@pytest.mark.usefixtures("few_candidates")
def test_the_bundled_search_set_has_one_name_in_every_command(run, model, tmp_path, command):
    name, *more = command.format(out=tmp_path / "map.npz").split()
    status, out, _ = run(name, *model, "--data", "demo-search", *more)
    assert status == 0
    assert " · demo-search" in out


def test_every_query_is_listed_beside_raw(document, words, space):
    rows = document(*words, "--whitening", "soft", "--per-query")["per_query"]
    found, raw = (retrieve(space, Setting.parse(text)) for text in ("L-1:soft", "L-1"))
    assert [one["ndcg@10"] for one in rows] == pytest.approx(found.of("ndcg@10").tolist())
    assert [one["raw"]["ndcg@10"] for one in rows] == pytest.approx(raw.of("ndcg@10").tolist())
    assert "raw" not in document(*words, "--per-query")["per_query"][0]


def test_a_p_value_says_no_less_than_its_resamples_can_show(space):
    found = against([retrieve(space, Setting.parse(text)) for text in ("L1", "L1:pca@8")])[1]
    for p, text in ((2 / (found.resamples + 1), "p\u00a0<\u00a00.002"), (0.04, "p\u00a0=\u00a00.040")):
        assert f", {text})," in line_of("pca", replace(found, difference=Difference(0.1, 0.05, 0.2, p)), True)


def test_every_layer_and_every_k_are_the_librarys(document, words, space):
    record = document(*words, "--layers", "each", "--whitening", "pca", "--k", "5")
    wanted = [retrieve(space, Setting((layer,), "pca", 5)).means["ndcg@10"] for layer in range(4)]
    assert [one["ndcg@10"] for one in record["rows"]] == pytest.approx(wanted)
    curve = document(*words, "--layers", "2", "--whitening", "pca", "--every-k")
    assert curve["map@100"] == pytest.approx(retrieval_curve(space, Setting.parse("L2:pca")).means("map@100"))
    assert curve["k"] == list(range(1, 33))


def test_every_layer_is_held_against_raw_under_a_whitening_and_has_its_interval_where_none_is_named(run, words, space):
    for options, title, raw in (((), "95 %", True), (("--whitening", "pca", "--k", "5"), "difference", False)):
        head, *lines = run(*words, "--layers", "each", *options)[1].splitlines()
        assert (head.endswith(title), len(lines)) == (True, 4)
        assert ["+" in line or "-" in line for line in lines] == [not raw] * 4
    one = against([retrieve(space, Setting((2,)))])[0]
    lines = run(*words, "--layers", "each")[1].splitlines()
    assert lines[3].split() == ["2", f"{one.mean:.4f}", f"{one.low:.4f}", "to", f"{one.high:.4f}"]


def test_the_map_may_be_fitted_on_other_text(document, run, words, tmp_path):
    (tmp_path / "text.txt").write_text("".join(f"{text}\n" for text in SENTENCES[100:180]))
    assert document(*words, "--whitening", "pca", "--fit", tmp_path / "text.txt")["protocol"]["fitted"] == 80
    _, out, _ = run(*words, "--whitening", "pca", "--fit", tmp_path / "text.txt")
    assert "pca fitted on text.txt, 80 texts" in out


def test_a_malformed_judgement_stops_or_is_left_out_and_named(run, words, place, tmp_path):
    texts = {f"d{i}": ("", text) for i, text in enumerate(SENTENCES[:20])}
    grades = [("q0", "d1", 1), ("q0", "gone", 1), ("q0", "d2", "high")]
    folder = write_retrieval(tmp_path / "broken", texts, {"q0": "who plays"}, grades)
    argv = [*words[:-1], folder]
    status, out, err = run(*argv)
    assert (status, out, err.count("\n")) == (2, "", 1)
    assert "2 malformed rows: " in err
    assert "test.tsv:3: document 'gone' is not in the corpus" in err
    status, out, err = run(*argv, "--skip-malformed")
    assert status == 0
    assert "left out: " in err
    assert "grade 'high' is not a number" in err
    assert out.startswith("nDCG@10")


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--fit", "cross", "--whitening", "pca"], "--fit cross has no meaning without pairs"),
        (["--setting", "L1 aggregate=mean"], "aggregate='mean' has no meaning here"),
        (["--setting", "L1:pca", "--k", "4"], "--k 4 does not go with --setting"),
        (["--every-k"], "k has no meaning for whitening='none'"),
        (["--every-k", "--whitening", "pca", "--k", "4"], "--every-k goes with one set of layers"),
        (["--split", "dev"], "has no split 'dev'; it has: test"),
        (["--data", "/no/such"], "/no/such: no such file or folder"),
        (["--layers", "9"], "--layers 9 must lie between 0 and 3"),
        (["--whitening", "pca", "--fit", "/no/such.txt"], "/no/such.txt: no such file"),
    ],
)
def test_wrong_input_is_one_line(run, words, options, message):
    status, out, err = run(*words, *options)
    assert (status, out) == (2, "")
    assert message in err.splitlines()[-1]


def test_prompts_are_typed_or_the_models_own_and_said_to_be_missing(run, document, words, place):
    plain = document(*words)
    record = document(*words, "--query-prompt", "a man asks: ")
    assert record["protocol"]["query_prompt"] == "a man asks: "
    assert record["map@100"] != plain["map@100"]
    status, _, err = run(*words, "--prompts")
    assert status == 2
    assert "names no prompt for queries or documents" in err
    own = place / "model" / "config_sentence_transformers.json"
    own.write_text('{"prompts": {"query": "a man asks: "}}')
    try:
        assert document(*words, "--prompts") == record
        assert "see --prompts" in run(*words)[2]
        assert "goes with no typed one" in run(*words, "--prompts", "--query-prompt", "x")[2]
    finally:
        own.unlink()


def test_documents_and_queries_that_are_cut_are_noted(run, model, tmp_path):
    write_retrieval(tmp_path, queries={"q1": "who plays " * 20, "q2": "what is eaten"})
    status, _, err = run("retrieve", *model, "--data", tmp_path, "--max-length", 30)
    noted = ("1 of 2 queries were cut to 30 tokens" in err, "documents were cut" in err)
    assert (status, *noted) == (0, True, False)
