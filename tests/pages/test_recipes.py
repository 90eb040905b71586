"""The law of "Show the code": in a fresh Python it prints what its page shows, last the live score and its line.

Visits turn every knob; the code of all pages they pass is run in one fresh process, a namespace each.
"""

import csv
import io
import json
import math
import random
import re
import shutil
from dataclasses import dataclass

import numpy as np
import pytest
from processes import ROOT, run_python
from tiny import SENTENCES, write_pairs, write_task

import whitelab
from whitelab.encoding.precomputed import npz_bytes
from whitelab.ui.sidebar import model

from .visiting import (
    SPACED,
    alts,
    choose,
    code,
    complete,
    data,
    downloads,
    go_to,
    live,
    press,
    protocol,
    said,
    start,
    table,
    until,
    upload,
)

pytestmark = pytest.mark.model

# Every script in a namespace of its own: what it prints, or its last line of error. The first finds a process in which
# nothing has been imported.
RUN = """
import contextlib, io, json, sys, traceback
results = {}
for name, code in json.load(open(sys.argv[1])).items():
    out = io.StringIO()
    try:
        with contextlib.redirect_stdout(out):
            exec(compile(code, name, "exec"), {"__name__": name})
    except BaseException:
        results[name] = "", traceback.format_exc()
    else:
        results[name] = out.getvalue(), ""
json.dump(results, sys.stdout)
"""

# The headline numbers that a page's own lines print again, by the beginnings of their labels.
HEADLINES = {
    "overview": ("Spearman, ", "Mean cosine", "Directions kept"),
    "data": ("Pairs", "Different sentences"),
    "anisotropy": ("Mean cosine", "Participation ratio", "Percentile of ", "Random pairs", "Gold at", "Threshold"),
    "whitening": ("Spearman, ", "Difference"),
    "layers": ("Best one or two", "Best subset"),
    "dimensions": ("Spearman at", "Best k", "Knee"),
    "uniformity": ("Alignment", "Uniformity"),
    "probe": ("Accuracy, ", "Most frequent class"),
    "retrieval": ("nDCG@10, ", "Queries gained", "Recall@100", "Threshold", "Percentile of ", "Queries with"),
    "advise": ("Spearman x 100, ", "The model as it comes"),
}

# Numbers in the words of Anisotropy's tabs.
SAID = re.compile(r"(?:random sentences|lie within|(?:mean|:|and)(?= -?\d+\.)) (-?\d+(?:\.\d+)?)")

# Columns of tables.
TURNED = ("PCA whitening", "ZCA whitening", "Cholesky whitening")
TABLED = {
    "anisotropy": ("Cosine", "Lists", "Skewness", "Largest hub"),
    "whitening": TURNED,
    "retrieval": TURNED,
}

WHITENED = "The bar's variant"
VARIANTS = [
    {"whitening": "Raw"},
    {"whitening": "Centred"},
    {"whitening": "PCA whitening"},
    {"whitening": "Soft whitening", "soft-gamma": "0.25", "soft-alpha": "0.01"},
    {"whitening": "Group whitening", "group-groups": "4"},
    {"whitening": "All but the top", "all_but_the_top-directions": "2"},
]


@dataclass(frozen=True)
class Shown:
    """What a page showed under some knobs: its code, its score, its protocol line, its headline and charted numbers."""

    code: str
    live: str
    line: str
    numbers: tuple[str, ...]
    charted: dict[str, tuple[float, ...]]


@pytest.fixture(scope="module")
def folder(tmp_path_factory, small):
    """Where the recipes run: the files that visitors upload, and those they name."""
    root = tmp_path_factory.mktemp("recipes")
    shutil.copy(small["data"], root / "mine.csv")
    text = "".join(f"{one}\n" for one in SENTENCES[:90])
    for name in ("corpus:text.txt", "pasted sentences", "given.txt"):
        (root / name).write_text(text)
    lines = (root / "mine.csv").read_text().splitlines()
    (root / "pasted.txt").write_text("\n".join(line.replace(",", "\t") for line in lines) + "\n")
    write_pairs(root / "other" / "pairs.csv", start=60)
    broken = write_pairs(root / "broken" / "pairs.csv", start=60)
    broken.write_text(broken.read_text() + "no score,at all,\n")
    for i, name in enumerate(("one", "two")):
        write_pairs(root / "tasks" / f"{name}.csv", start=60 * i)
    write_task(root / "published")
    for split in ("train", "dev"):
        shutil.copy(root / "published" / "sts12-test.csv", root / "published" / f"sts12-{split}.csv")
    pairs = whitelab.load(small["data"])
    space, _ = whitelab.embed_pairs(whitelab.load_encoder(small["model"]), pairs)
    (root / "mine.npz").write_bytes(npz_bytes(pairs, space))
    labels = "".join(f"{text}\t{'ab'[i % 2]}\n" for i, text in enumerate(SENTENCES[:60]))
    (root / "six.tsv").write_text("text\tlabel\n" + "".join(labels.splitlines(keepends=True)[:6]))
    head = "sentence1\tsentence2\tscore\n"
    (root / "hub.tsv").write_text(head + "".join(f"A cat.\t{text}\t{i % 5}\n" for i, text in enumerate(SENTENCES[:60])))
    (root / "same.tsv").write_text(head + "".join(f"A cat.\tA cat.\t{i % 5}\n" for i in range(30)))
    (root / "labelled.tsv").write_text(f"text\tlabel\n{labels}\tb\n")
    return root


def use_file(at, folder):
    press(upload(until(go_to(at, "data")), (folder / "mine.csv").read_bytes()), "use-file")


def use_pasted_pairs(at, folder):
    until(go_to(at, "data")).text_area(key="pasted").set_value((folder / "pasted.txt").read_text()).run()
    press(at, "use-paste")


def use_vectors(at, folder):
    data = (folder / "mine.npz").read_bytes()
    press(upload(until(go_to(at, "data")), data, "mine.npz", "vectors-files"), "use-vectors")


def use_more_vectors(at, folder):
    """Those of the pairs and others, all of which a map is fitted on."""
    arrays = dict(np.load(folder / "mine.npz"))
    arrays["values"] = np.concatenate([arrays["values"], 2 * arrays["values"][:, :9]], axis=1)
    np.savez(folder / "more.npz", **{name: arrays[name] for name in ("values", "first", "second", "gold")})
    press(
        upload(until(go_to(at, "data")), (folder / "more.npz").read_bytes(), "more.npz", "vectors-files"), "use-vectors"
    )
    choose(at, fit="vectors")


def fit_on_pasted(at, folder):
    until(go_to(at, "data")).text_area(key="pasted").set_value((folder / "pasted sentences").read_text()).run()
    press(at, "use-text")


def fit_on_upload(at, folder):
    choose(until(go_to(at, "data")), fit="upload")
    upload(at, (folder / "corpus:text.txt").read_bytes(), "corpus:text.txt", "fit-file-0")  # no corpus for all its name


def ask_of_sentences(at, folder):
    choose(until(go_to(at, "advise")), **{"judged-pairs-search-sentences": "sentences"})
    choose(at, advice_sentences=(folder / "pasted sentences").read_text())
    assert said(at, "Sentences alone do not say")


def leave_out(at, folder):
    choose(until(at, lambda at: at.checkbox), keep=True)


def leave_labelled_out(at, folder):
    choose(until(go_to(at, "probe"), lambda at: at.checkbox), labelled_keep=True)


def measure(at, folder):
    press(until(go_to(at, "dimensions")), "measure")


def store_in_bits(at, folder):
    press(until(go_to(at, "whitening")), "bits")


def average(at, folder):
    choose(until(go_to(at, "layers")), average=True)


EVERY = (*SPACED, "training")
# The charts whose numbers a page's own lines print again, the one it is about first, and their columns; training and
# data have none.
CHARTS = {
    "overview": {"layer-gains": ("mean_cosine", "raw", "whitened", "cut"), "spectrum": ("eigenvalue",)},
    "anisotropy": {
        "by-layer": ("mean_cosine", "participation_ratio", "effective_rank", "top_share"),
        **{f"cone-{stage}": ("along", "across") for stage in range(3)},
        "cosines": ("pairs",),
        "spectra": ("eigenvalue",),
        "projection-chart": ("x1", "x2"),
        "measures": tuple(name for name, one in whitelab.METRICS.items() if one.unique),
        "cka-raw": ("cka",),
        "cka-mapped": ("cka",),
    },
    "whitening": {"variants": ("spearman", "low", "high"), "bits-frontier": ("bytes", "score", "low", "high")},
    "layers": {"whitened-pairs": ("spearman",)},
    "dimensions": {"k-curve": ("spearman", "center", "pca", "cross_fitted", "part0", "part1", "first", "random")},
    "uniformity": {"plane": ("alignment", "uniformity", "spearman")},
    "retrieval": {
        "retrieval-layers": ("ndcg@10", "map@100"),
        "retrieval-k": ("ndcg@10",),
        "retrieval-queries": ("raw", "whitened"),
        "bits-frontier": ("bytes", "score", "low", "high"),
    },
    "compare": {"row-against-row": ("a", "b", "difference", "difference_low", "difference_high", "p_value")},
    "advise": {"options": ("score", "difference")},
    "probe": {
        "accuracy": ("accuracy", "low", "high"),
        "settings": ("Accuracy", "Low", "High", "F1", "Best accuracy", "at", "Average precision", "Best F1"),
    },
}
TABS = ("The cone", "Cosines of random pairs", "Spectrum", "Projection", "Every measure", "Neighbours", "Layers alike")
# What is typed or brought, and the pages that are visited: so many of them, or these.
VISITS = {
    "a task": ({}, None, EVERY),
    "cross-fitted": ({"fit": "Cross-fitted halves"}, None, 2),
    "fitted on a text": ({"fit": "given.txt"}, None, 1),
    "fitted on pairs": ({"fit": "other"}, None, 1),
    "fitted on the demonstration set": ({"fit": "demo"}, None, 1),
    "fitted on an upload": ({}, fit_on_upload, 1),
    "fitted on pasted sentences": ({}, fit_on_pasted, 1),
    "all splits of a published task": ({"data": "published", "fit": "All splits of the task", "split": "dev"}, None, 2),
    "malformed rows left out": ({"data": "broken"}, leave_out, 2),
    "malformed rows of the text left out": ({"fit": "broken"}, leave_out, 2),
    "malformed rows of labelled texts left out": ({"labelled": "labelled.tsv"}, leave_labelled_out, ("probe",)),
    "more settings": ({"more": "true", "labelled-task": "Related pairs"}, None, ("probe",)),
    "pairs that all hang together": ({"data": "hub.tsv"}, None, ("advise",)),
    "one sentence": ({"data": "same.tsv", "space": "What a cosine means"}, measure, ("anisotropy", "dimensions")),
    "too few labelled texts": ({"labelled": "six.tsv"}, None, ("probe",)),
    **{f"the tab {name}": ({"space": name}, None, ("anisotropy",)) for name in TABS},
    "layers of two models": ({"space": TABS[-1], "alike": model.label("bundled:3")}, None, ("anisotropy",)),
    "neighbours of a new sentence": ({"space": "Neighbours", "inspect": "A 'new' one"}, None, ("anisotropy",)),
    "what a cosine means": ({"space": "What a cosine means", "whitening": "PCA whitening"}, None, ("anisotropy",)),
    "what is to store": ({"purpose": "store"}, None, ("advise",)),
    "sentences alone": ({}, ask_of_sentences, ("advise",)),
    "every line of a curve": (
        {"data": "published", "lines": "true", "controls-of-k": "true"},
        None,
        ("dimensions",),
    ),
    "few bits": (
        {"whitening": "PCA whitening", "layers": "3", "pooling": "Mean"},
        store_in_bits,
        ("whitening", "retrieval"),
    ),
    "several tasks": ({"data": "tasks"}, average, ("layers", "compare")),
    "several tasks fitted on a text": (
        {"data": "tasks", "fit": "given.txt", "searched": WHITENED},
        average,
        ("layers",),
    ),
    "an upload": ({}, use_file, 3),
    "all splits of an upload": ({"fit": "All splits of the task"}, use_file, 1),
    "pasted pairs": ({}, use_pasted_pairs, 1),
    "vectors": ({}, use_vectors, 3),
    "all vectors": ({"whitening": "Centred"}, use_more_vectors, 1),
    "cross-fitted vectors": ({"fit": "Cross-fitted halves"}, use_vectors, 1),
    "the first blocks of a model": ({"model": model.label("bundled:3")}, None, 2),
    "weighted word embeddings": ({"model": model.label("sif:bundled"), "layers": ["0"]}, None, 2),
    "bfloat16": ({"dtype": "bfloat16"}, None, 2),
}


def knobs(name: str) -> dict:
    """Knobs for a visit, drawn anew for each; the same every time."""
    draw = random.Random(name)
    found = draw.choice(VARIANTS if "fit" not in VISITS[name][0] else VARIANTS[1:])
    found = found | {"layers": sorted(draw.sample("0123", draw.choice((1, 1, 2)))), "k": draw.choice(("5", "16", "32"))}
    return found | {
        "aggregate": draw.choice(("all", "mean", "wmean")),
        "pooling": draw.choice(("Mean", "[CLS]", "SBERT-WK")),
    }


def numbers(at, page: str) -> tuple[str, ...]:
    """The headline numbers of a page that its own lines print again."""
    if page == "compare":
        cells = table(at, "Setting")
        return () if cells is None else tuple(f"{value:.2f}" for value in cells.iloc[:, -1].dropna())
    cards = [one for one in at.metric if one.label.startswith(HEADLINES.get(page, ()))]
    if page == "layers":
        found = (re.search(r"Spearman ([^\s,]+)", f"{one.value} {one.delta}") for one in cards)
        return tuple(one[1] for one in found if one)
    raw = (one.delta.removesuffix(" raw") for one in cards if re.search(r"\d raw$", one.delta or ""))
    words = [*(one.value for one in cards), *raw]
    words += [off for one in cards for off in re.findall(r"(?:Off by|\), raw|mean by) (\d+\.\d+)", one.help or "")]
    if page == "anisotropy":
        texts = [one.value for one in at.caption] + [alt for alt in alts(at) if alt.startswith("Histogram")]
        words += SAID.findall(" ".join(texts))
    columns = [one.value[name] for one in at.dataframe for name in TABLED.get(page, ()) if name in one.value]
    words += [f"{value:.3f}" if isinstance(value, float) else str(value) for one in columns for value in one]
    parts = [part for text in words for part in text.split(" to ")]
    return tuple(part.split()[0].replace("\u202f", "") for part in parts if "undefined" not in part)


def charted(at, page: str) -> dict[str, tuple[float, ...]]:
    """The numbers of each of a page's charts."""
    found = {}
    for chart, columns in CHARTS.get(page, {}).items():
        rows = list(csv.DictReader(io.StringIO(data(at).get(chart, ""))))
        values = [float(row[column]) for column in columns for row in rows if row.get(column)]
        found[chart] = tuple(value for value in values if not math.isnan(value))
    return found


@pytest.fixture(scope="module")
def shown(folder, small) -> dict[str, Shown]:
    """(visit, page) in one name -> what was shown there."""
    found = {}
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        for name, (query, bring, pages) in VISITS.items():
            draw = random.Random(f"pages of {name}")
            few = {"steps": "1", "batch": "16", "every": "0", "scored": small["data"], "start": small["model"]}
            at = start(**small | few | knobs(name) | query, corpus="given.txt")
            if bring:
                bring(at, folder)
            for page in draw.sample(EVERY, pages) if isinstance(pages, int) else pages:
                until(go_to(at, page))
                if page == "compare" and name in ("a task", "several tasks"):
                    press(at, "compare", lambda at: "LaTeX" in downloads(at))
                    choose(at, lambda at: "row-against-row" in data(at) and complete(at), tested=True)
                line = protocol(at).rpartition(" · ")[0]
                found[f"{name}: {page}"] = Shown(code(at), live(at), line, numbers(at, page), charted(at, page))
    return found


@pytest.fixture(scope="module")
def printed(shown, folder) -> dict[str, str]:
    """The same names -> what the recipe printed in a fresh process."""
    (folder / "recipes.json").write_text(json.dumps({name: one.code for name, one in shown.items()}))
    place = f"import os; os.chdir({str(folder)!r})\n"
    done = run_python(place + RUN, folder / "recipes.json", PYTHONPATH=str(ROOT))
    assert done.returncode == 0, done.stderr
    results = json.loads(done.stdout)
    wrong = {name: error for name, (_, error) in results.items() if error}
    assert not wrong, "\n".join(f"{name}\n{error}\n{shown[name].code}" for name, error in wrong.items())
    return {name: out for name, (out, _) in results.items()}


def test_every_page_is_among_those_whose_code_is_run(shown):
    assert {name.partition(": ")[2] for name in shown} == {*SPACED, "training"}


def test_every_chart_is_among_those_whose_code_is_run(shown):
    charted = ((name.partition(": ")[2], one.charted) for name, one in shown.items())
    drawn = {(page, chart) for page, charts in charted for chart, values in charts.items() if values}
    assert drawn == {(page, chart) for page, charts in CHARTS.items() for chart in charts}


def test_every_recipe_ends_with_the_live_score_and_its_protocol_line(shown, printed, subtests):
    for name, one in shown.items():
        *_, score, line = printed[name].splitlines()
        with subtests.test(name):
            assert ("undefined" if score == "None" else f"{float(score):.2f}") == one.live
            assert line == one.line


def test_every_recipe_prints_the_headline_numbers_of_its_page(shown, printed, subtests):
    pattern = re.compile(r"-?\d+(?:\.\d+)?(?:e[-+]?\d+)?")
    for name, one in shown.items():
        values = [float(number) for number in pattern.findall(printed[name])]
        for number in one.numbers:
            digits = len(number.partition(".")[2])
            with subtests.test(name, number=number):
                assert any(f"{value:.{digits}f}" == f"{float(number):.{digits}f}" for value in values)


def test_every_recipe_prints_the_numbers_of_its_pages_charts(shown, printed, subtests):
    pattern = re.compile(r"-?\d+(?:\.\d+)?(?:e[-+]?\d+)?")
    for name, one in shown.items():
        values = np.array([float(number) for number in pattern.findall(printed[name])])
        for chart, wanted in ((chart, np.array(numbers)) for chart, numbers in one.charted.items() if numbers):
            apart = abs(values - wanted[:, None]).min(axis=1)
            with subtests.test(name, chart=chart):
                assert not wanted[apart > 1e-6 * (1 + abs(wanted))].size
