"""A preset decides what its source decides; a walk between two changes one field at a time and loses nothing."""

import itertools
import json
import math
import shutil
from dataclasses import replace

import numpy as np
import pytest
from scipy import stats
from tiny import DIM, SENTENCES, build_model, pair

from whitelab import compare as comparing
from whitelab.compare import (
    AVERAGE,
    FIELDS,
    PRESETS,
    decisions,
    differences,
    embed_cut,
    lacking_splits,
    walks,
    worded,
)
from whitelab.compare.bench import TEXTS, Bench
from whitelab.compare.preset_walk import IDLE
from whitelab.datasets import load
from whitelab.encoding.embed import embed
from whitelab.encoding.embeddings import embed_scope, with_pairs
from whitelab.encoding.encoders import load_encoder
from whitelab.encoding.sentence_modules import write_modules
from whitelab.scoring.fit_text import scope_text
from whitelab.scoring.score import score
from whitelab.scoring.setting import Setting
from whitelab.store.embedding_store import Store

PAIRS = [*itertools.combinations(PRESETS, 2), ("mteb", "whiteningbert"), ("mteb", "simcse")]
TASKS = ["sickr", "sts12"]


def write_split(path, numbers, long=0):
    """Pairs in WhiteningBERT's layout; the first `long` hold sentences of about 100 and 140 tokens, and odd blanks."""
    lines = []
    for i in numbers:
        first, second, shared = pair(i)
        if i - numbers[0] < long:
            first, second = "  ".join(["the old dog", *[first] * 15]), " ".join([second] * 20)
        lines.append("\t".join(["_", "_", "_", str(i), f"{len(shared) + 0.01 * (i % 7):.3f}", first, second]) + "\n")
    path.write_text("".join(lines), "utf-8")
    return lines


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    root = tmp_path_factory.mktemp("presets")
    build_model(root / "model", "roberta")
    (root / "text.txt").write_text("\n".join(SENTENCES[:150]), "utf-8")
    data = root / "data"
    data.mkdir()
    write_split(data / "sickr-train.csv", range(40))
    write_split(data / "sickr-dev.csv", range(40, 60))
    write_split(data / "sickr-test.csv", range(60, 110), long=3)
    parts = [
        write_split(data / f"sts12.part{n}-test.csv", range(*ends), long=4)
        for n, ends in enumerate(((0, 60), (60, 85)))
    ]
    (data / "sts12-test.csv").write_text("".join(itertools.chain(*parts)), "utf-8")
    return root


@pytest.fixture(scope="module")
def encoder(place):
    return load_encoder(str(place / "model"))


@pytest.fixture(scope="module")
def walked(place, encoder):
    """Every walk there is, by its presets and then by task."""
    store, data = Store(place / "store"), str(place / "data")
    options = {"store": store, "corpus": str(place / "text.txt")}
    return {(a, b): {one.task: one for one in walks(encoder, data, TASKS, a, b, **options)} for a, b in PAIRS}


# What differs


@pytest.mark.parametrize("name", PRESETS)
def test_a_preset_does_not_differ_from_itself(name):
    assert differences(name, name) == {}


@pytest.mark.parametrize(("a", "b"), PAIRS)
def test_differences_are_exactly_the_decisions_that_are_not_equal(a, b):
    first, second, found = decisions(a), decisions(b), differences(a, b)
    assert set(first) == set(second) == set(FIELDS)
    assert found
    for field in FIELDS:
        assert (field in found) == (first[field] != second[field])
        assert found.get(field, (first[field], second[field])) == (first[field], second[field])
    assert differences(b, a) == {field: pair[::-1] for field, pair in found.items()}


def test_presets_decide_what_their_sources_do():
    """protocols.md: A4, A6, A9; B1-B6; E3, E4; MTEB's own tasks."""
    full = {"split": ("test",), "text": "strip", "pooling": "mean", "decimals": None}
    bert = full | {"layers": (1, -1), "whitening": "pca"}
    assert decisions("whiteningbert") == bert | {"max_length": 128, "k": None, "fit": "task", "aggregate": "mean"}
    su = bert | {"max_length": 64, "k": 256, "aggregate": "wmean"}
    assert decisions("bert-whitening") == su | {"fit": "splits"}
    assert decisions("bert-whitening-corpus") == su | {"fit": "corpus"}
    plain = {"max_length": None, "layers": (-1,), "whitening": "none", "k": None, "fit": None, "aggregate": "all"}
    assert decisions("simcse") == full | plain | {"text": "words", "pooling": "cls", "decimals": 2}
    assert decisions("mteb") == full | plain | {"split": ("test", "sickr")}


def test_one_setting_for_both_leaves_only_what_the_presets_decide_themselves():
    one = Setting.parse("L1+L-1:pca")
    assert differences("whiteningbert", "simcse", one).keys() == {"text", "max_length", "aggregate", "decimals"}
    assert differences("whiteningbert", "bert-whitening", one)["fit"] == ("task", "splits")


@pytest.mark.parametrize("name", PRESETS)
def test_every_decision_has_words(name):
    for field, value in decisions(name).items():
        assert worded(field, value).strip()
    assert PRESETS[name].note.endswith(".")
    assert PRESETS[name].departs.endswith(".")


def test_a_preset_that_fits_on_other_text_says_that_it_needs_one():
    with pytest.raises(ValueError, match="corpus=None must name the text to fit on, a path or demo"):
        PRESETS["bert-whitening-corpus"].fitted_on(None)
    assert PRESETS["bert-whitening-corpus"].fitted_on("demo").fit == "demo"
    assert PRESETS["mteb"].fitted_on(None) is PRESETS["mteb"]


# How a sentence becomes a vector


@pytest.mark.parametrize("length", [16, 64, 128, 160])
def test_vectors_cut_elsewhere_are_those_of_an_encoder_of_that_length(place, encoder, length, tmp_path):
    sentences = list(load(place / "data", "sts12").sentences)
    other = load_encoder(str(place / "model"), max_length=length)
    expected, report = embed(other, sentences)
    for _ in range(2):  # as they are encoded, and as they are read
        found, told = embed_cut(encoder, sentences, "mean", length, store=Store(tmp_path))
        assert np.allclose(found, expected, atol=1e-5)
        assert set(told.cut) == set(report.cut)
    assert report.cut or length == 160
    if length < 128:
        assert not np.allclose(embed(encoder, sentences)[0], expected, atol=1e-3)


def test_only_sentences_that_one_length_cuts_are_encoded_again(place, encoder, monkeypatch, tmp_path):
    sentences, store, seen = list(load(place / "data", "sts12").sentences), Store(tmp_path), []
    embed_cut(encoder, sentences, "mean", 128, store=store)
    real = type(encoder).forward
    monkeypatch.setattr(
        type(encoder), "forward", lambda self, ids, pooling: seen.extend(ids) or real(self, ids, pooling)
    )
    embed_cut(encoder, sentences, "mean", 64, store=store)
    assert 0 < len(seen) < 20
    assert {len(ids) for ids in seen} == {64}


@pytest.mark.parametrize("kind", ["static", "sif"])
def test_word_embeddings_are_cut_as_their_own_model_cuts_them(place, kind):
    sentences, name = list(load(place / "data", "sts12").sentences), f"{kind}:{place / 'model'}"
    expected, _ = embed(load_encoder(name, max_length=16), sentences)
    assert np.allclose(embed_cut(load_encoder(name), sentences, "mean", 16)[0], expected)


def test_a_models_own_output_is_cut_where_its_makers_do_unless_the_preset_says_where(place, tmp_path):
    folder = shutil.copytree(place / "model", tmp_path / "model")
    write_modules(folder, "mean", DIM, 16)
    bench = Bench(load_encoder(f"output:{folder}"), str(place / "data"), "sts12")
    lengths = [bench.space("mean", PRESETS[name]).origin.max_length for name in ("mteb", "whiteningbert")]
    assert lengths == [16, 128]


def test_blanks_between_words_count_unless_the_preset_joins_them(place, encoder):
    bench = Bench(encoder, str(place / "data"), "sts12")
    plain, joined = (bench.space("mean", replace(PRESETS["mteb"], text=text)) for text in ("strip", "words"))
    assert not np.allclose(plain.values, joined.values, atol=1e-3)
    assert TEXTS["words"](" a  b\tc ") == "a b c"
    assert TEXTS["strip"](" a  b ") == "a  b"


def test_sick_is_whole_under_mteb_where_the_data_has_every_split(place, encoder, tmp_path):
    bench = Bench(encoder, str(place / "data"), "sickr")
    assert len(bench.pairs(PRESETS["mteb"].split_of(str(place / "data"), "sickr")).gold) == 110
    assert PRESETS["simcse"].split_of(str(place / "data"), "sickr") == "test"
    assert PRESETS["mteb"].split_of(str(place / "data"), "sts12") == "test"
    write_split(tmp_path / "sickr-test.csv", range(10))
    assert PRESETS["mteb"].split_of(str(tmp_path), "sickr") == "test"


# Walks


@pytest.mark.parametrize(("a", "b"), PAIRS)
def test_the_steps_of_a_walk_add_up_to_the_difference_and_are_the_fields_that_differ(walked, a, b):
    for task, one in walked[a, b].items():
        assert math.fsum(step.change for step in one.steps) == pytest.approx(one.difference, abs=1e-11)
        at = one.start
        for step in one.steps:
            assert step.spearman == pytest.approx(at + step.change, abs=1e-11)
            assert (step.before, step.after) == differences(a, b)[step.field]
            at = step.spearman
        left_out = set(differences(a, b)) - {step.field for step in one.steps}
        assert left_out <= {"k", "fit", "decimals", "split"}
        # Of these tasks sickr alone is taken whole by some preset.
        assert ("split" in left_out) == (task == "sts12" and "split" in differences(a, b))
        assert ("decimals" not in left_out) or task != AVERAGE


def test_splits_that_a_preset_fits_on_and_the_data_lacks_are_named(tmp_path):
    row = "main-news\tx\t2012\t1\t3\ta\tb\n"
    for name in ("sts-b-test", "sts12-test"):
        (tmp_path / f"{name}.csv").write_text(row)
    given = str(tmp_path), ["stsb", "sts12"]  # STS12 was published in one split
    (note,) = lacking_splits(["mteb", "bert-whitening"], *given)
    assert note.startswith("stsb: not all published splits are here")
    assert lacking_splits(["mteb", "whiteningbert"], *given) == lacking_splits(["bert-whitening"], given[0], []) == ()


def test_a_task_that_a_preset_scores_whole_is_named_where_the_data_has_its_test_split_alone(place, tmp_path):
    write_split(tmp_path / "sickr-test.csv", range(10))
    (note,) = lacking_splits(["simcse", "mteb"], str(tmp_path), ["sickr"])
    assert note.startswith("sickr: scored on its test split alone, where MTEB takes all of it")
    assert lacking_splits(["simcse"], str(tmp_path), ["sickr"]) == ()
    assert lacking_splits(["mteb"], str(place / "data"), ["sickr", "sts12"]) == ()
    assert decisions("mteb", data=str(tmp_path))["split"] == ("test",)
    assert decisions("mteb", data=str(place / "data"))["split"] == ("test", "sickr")
    assert "split" not in differences("simcse", "mteb", data=str(tmp_path))
    (tmp_path / "sickr-sts").mkdir()  # MTEB's: all of SICK is its test split
    row = {"sentence1": "a", "sentence2": "b", "score": 3.0}
    (tmp_path / "sickr-sts" / "test.jsonl").write_text(json.dumps(row) + "\n")
    assert lacking_splits(["mteb", "bert-whitening"], str(tmp_path / "sickr-sts"), ["sickr"]) == ()
    assert decisions("mteb", data=str(tmp_path / "sickr-sts"))["split"] == ("test",)
    assert note in comparing.written([], "latex", "mteb", lacking=[note])


@pytest.mark.parametrize(("a", "b"), PAIRS)
def test_a_walk_begins_and_ends_where_the_comparison_of_its_presets_stands(walked, place, a, b):
    def cells(name):
        text = str(place / "text.txt") if name == "bert-whitening-corpus" else None
        setting = replace(Setting.parse(PRESETS[name].setting), k=None)  # 256 is more than these 32 dimensions
        grid = comparing.Grid([str(place / "model")], str(place / "data"), TASKS, [setting], name, corpus=text)
        found = comparing.compare(grid, store=Store(place / "store"))
        return {cell.task: cell.spearman for cell in found}

    start, end = cells(a), cells(b)
    assert {one.task: one.start for one in walked[a, b].values()} == pytest.approx(start, abs=1e-9)
    assert {one.task: one.end for one in walked[a, b].values()} == pytest.approx(end, abs=1e-9)


def test_every_step_is_the_score_with_exactly_that_field_changed(walked, place):
    """From whole texts and encoders, without the bench: WhiteningBERT to BERT-whitening on SICK-R."""
    pairs, fitted = load(place / "data", "sickr"), scope_text("splits", str(place / "data"), "sickr")
    found = []
    for length, fit in ((128, "task"), (64, "task"), (64, "splits")):
        encoder = load_encoder(str(place / "model"), max_length=length)
        space = with_pairs(embed(encoder, pairs.sentences)[0], pairs).with_text("splits", embed_scope(encoder, fitted))
        found.append(score(space, Setting.parse(f"L1+L-1:pca aggregate=mean fit={fit}")).spearman)
    one = walked["whiteningbert", "bert-whitening"]["sickr"]
    steps = {step.field: step.spearman for step in one.steps}
    assert one.start == pytest.approx(found[0], abs=1e-3)  # float32 vectors of other batches
    assert steps["max_length"] == pytest.approx(found[1], abs=1e-3)
    assert steps["fit"] == pytest.approx(found[2], abs=1e-3)
    assert abs(found[0] - found[1]) > 0.01
    assert abs(found[1] - found[2]) > 0.01


def test_the_step_of_the_aggregate_is_the_difference_of_two_spearmans(walked, place, encoder):
    """SciPy on the cosines themselves: from one Spearman over all pairs to the plain mean of the subsets'."""
    space = Bench(encoder, str(place / "data"), "sts12").space("mean", PRESETS["whiteningbert"])
    x = space.combine((1, 3)).numpy()
    x = x - np.average(x, axis=0, weights=space.counts.numpy())
    values, axes = np.linalg.eigh((x.T * space.counts.numpy()) @ x)
    keep = values > 1e-10 * values[-1]
    z = x @ (axes[:, keep] / np.sqrt(values[keep]))
    a, b = z[space.first.numpy()], z[space.second.numpy()]
    cosines = (a * b).sum(1) / np.linalg.norm(a, axis=1) / np.linalg.norm(b, axis=1)
    gold, subset = space.gold.numpy(), space.subset.numpy()
    parts = [stats.spearmanr(cosines[subset == s], gold[subset == s]).statistic for s in (0, 1)]
    one = walked["mteb", "whiteningbert"]["sts12"]
    step = next(step for step in one.steps if step.field == "aggregate")
    assert step.spearman == pytest.approx(100 * np.mean(parts), abs=1e-6)
    assert step.change == pytest.approx(100 * (np.mean(parts) - stats.spearmanr(cosines, gold).statistic), abs=1e-6)


def test_the_average_walks_with_its_tasks_and_rounds_as_simcse_does(walked):
    found = walked["mteb", "simcse"]
    tasks = [found[name] for name in TASKS]
    assert found[AVERAGE].start == pytest.approx(np.mean([one.start for one in tasks]))
    assert found[AVERAGE].end == pytest.approx(np.mean([round(one.end, 2) for one in tasks]))
    assert [step.field for step in found[AVERAGE].steps][:-1] == [step.field for step in tasks[0].steps]
    assert abs(found[AVERAGE].steps[-1].change) <= 0.005


@pytest.mark.parametrize(("a", "b"), PAIRS)
def test_what_differs_has_a_step_or_is_named_as_idle(walked, a, b):
    for one in walked[a, b].values():
        stepped = [step.field for step in one.steps]
        assert sorted([*stepped, *one.idle]) == sorted(differences(a, b))
        for field in one.idle:
            if "whitening" in IDLE[field]:  # what a map keeps and is fitted on comes and goes with the map
                assert "whitening" in stepped
                assert "none" in differences(a, b)["whitening"]
            else:
                assert ("average" in IDLE[field]) == (field == "decimals")
                assert field == "split" or one.task != AVERAGE


def test_one_setting_for_both_changes_nothing_of_the_setting(place, encoder):
    options = {"setting": Setting.parse("L2:zca@5")}
    found = next(walks(encoder, str(place / "data"), ["sts12"], "whiteningbert", "bert-whitening", **options))
    assert [step.field for step in found.steps] == ["max_length", "fit", "aggregate"]
    assert found.largest is max(found.steps, key=lambda step: abs(step.change))


def test_a_walk_from_a_preset_to_itself_has_no_steps(place, encoder):
    found = next(walks(encoder, str(place / "data"), ["sts12"], "mteb", "mteb"))
    assert (found.steps, found.difference, found.largest) == ((), 0.0, None)


def test_a_step_without_a_score_says_why_and_the_others_go_on(place, encoder, tmp_path):
    rows = "".join(f"a man,a {word},{i}\n" for i, word in enumerate(("dog", "cat", "singer")))
    (tmp_path / "few.csv").write_text("sentence1,sentence2,score\n" + rows + "a man,a man,3\n")
    options = {"setting": Setting.parse("L9")}
    found = next(walks(encoder, str(tmp_path), ["few"], "whiteningbert", "simcse", **options))
    assert found.start is None
    assert found.difference is None
    assert {step.reason for step in found.steps} == {
        "layers=[9] must lie between 0 and 3, the last layer, or between -4 and -1"
    }
    assert next(walks(encoder, str(tmp_path), ["few"], "whiteningbert", "mteb")).end is not None


def test_a_score_that_memory_does_not_suffice_for_says_so(place, encoder, monkeypatch):
    def score(*given):
        raise RuntimeError("out of memory")

    monkeypatch.setattr("whitelab.compare.bench.score", score)
    found = next(walks(encoder, str(place / "data"), ["sts12"], "simcse", "mteb"))
    assert (found.start, found.reason) == (None, "not enough memory")


def test_a_walk_is_counted_score_by_score(place, encoder):
    seen = []
    options = {"progress": lambda done, total: seen.append((done, total))}
    list(walks(encoder, str(place / "data"), TASKS, "simcse", "mteb", **options))
    assert len(seen) > len(TASKS)
    assert seen == [(i + 1, len(seen)) for i in range(len(seen))]


def test_presets_that_do_not_exist_are_refused(place, encoder):
    with pytest.raises(ValueError, match="preset='su' must be one of whiteningbert, bert-whitening"):
        next(walks(encoder, str(place / "data"), ["sts12"], "mteb", "su"))
    with pytest.raises(ValueError, match="corpus=None must name"):
        next(walks(encoder, str(place / "data"), ["sts12"], "mteb", "bert-whitening-corpus"))
