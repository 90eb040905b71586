"""A page's results leave as one .zip: every figure of the page with its data, the score and the code."""

import csv
import io
import json
import re
from fnmatch import fnmatch
from types import SimpleNamespace
from zipfile import ZipFile

import plotly.graph_objects as go
import plotly.io as pio
from tiny import SENTENCES, build_model, write_pairs

import whitelab
from whitelab import embed
from whitelab.encoding.embeddings import embed_pairs
from whitelab.scoring.fit_text import fit_rows
from whitelab.ui.frame.page_zip import page_zip
from whitelab.ui.widgets.chart import Shown


def test_the_zip_has_the_score_its_protocol_the_figures_and_their_data(tmp_path, monkeypatch):
    encoder = whitelab.load_encoder(str(build_model(tmp_path / "model")), device="cpu")
    space, _ = embed_pairs(encoder, whitelab.load(str(write_pairs(tmp_path / "pairs.csv"))))
    setting = whitelab.Setting.parse("L1:pca@4").with_(fit=str(tmp_path / "corpus.txt"))
    (tmp_path / "corpus.txt").write_text("".join(f"{text}\n" for text in SENTENCES), "utf-8")
    corpus = fit_rows(setting.fit, lambda texts: embed(encoder, texts)[0])
    score = whitelab.score(space.with_text(setting.fit, corpus), setting)
    rows = [{"k": 1}, {"k": 2, "score": 0.75}]  # of which one has no score
    monkeypatch.setattr(pio.templates, "default", "none")  # as bare as Streamlit's
    figures = {
        "curve": Shown(go.Figure(go.Scatter(x=[1, 2], y=[0.5, 0.75])), lambda: rows),
        "map": Shown(go.Figure(), None),
        "table": Shown(None, lambda: [{"pair": 7}]),
    }
    pictured = {}

    def svgs(given):
        pictured.update(given)
        return dict.fromkeys(given, b"<svg/>")

    monkeypatch.setattr("whitelab.ui.frame.page_zip.svgs", svgs)
    with ZipFile(
        io.BytesIO(page_zip("layers", score, "corpus.txt", figures, "print(1)\n", "Keep them raw."))
    ) as packed:
        texts = {name: packed.read(name).decode() for name in packed.namelist()}
    record = json.loads(texts["score.json"])
    assert record["spearman"] == score.spearman
    assert record["protocol"] | {"fit": setting.fit} == score.as_dict()["protocol"]
    assert record["protocol"]["fit"] == "corpus.txt"
    assert whitelab.Setting.parse(record["setting"]) == score.setting.with_(fit="corpus.txt")
    assert list(csv.DictReader(io.StringIO(texts["data/curve.csv"]))) == [
        {"k": "1", "score": ""},
        {"k": "2", "score": "0.75"},
    ]
    assert texts["README.txt"].startswith(f"What stands on the page layers of whitelab {whitelab.__version__}\n")
    assert record["whitelab"] == whitelab.__version__
    assert texts["answer.txt"] == "Keep them raw."
    assert texts["data/table.csv"].split() == ["pair", "7"]
    assert (texts["code.py"], "data/map.csv" in texts) == ("print(1)\n", False)
    assert "figures/table.html" not in texts
    for key in ("curve", "map"):
        assert texts[f"figures/{key}.svg"] == "<svg/>"
        assert 'src="plotly.min.js"' in texts[f"figures/{key}.html"]
        assert '"format": "svg"' in texts[f"figures/{key}.html"]
        assert '"standoff":15' in texts[f"figures/{key}.html"]  # axis titles stand off their numbers
        assert pictured[key].layout.template.layout.yaxis.title.standoff == 15
    assert figures["map"].figure.layout.template.layout.yaxis.title.standoff is None  # the page's own is as it was
    assert len(texts["figures/plotly.min.js"]) > 10**6


def test_the_readme_speaks_of_every_file_and_of_no_other(monkeypatch):
    score = SimpleNamespace(setting=whitelab.Setting(), as_dict=lambda: {"protocol": {}})
    rows = {"grid": Shown(None, None, texts={"csv": lambda: "a\n", "md": lambda: "| a |\n", "tex": lambda: "a\n"})}
    rows |= {"headlines": Shown(None, lambda: [{"label": "Best k"}])}

    def packed(pictures, *given):
        monkeypatch.setattr(
            "whitelab.ui.frame.page_zip.svgs", lambda drawn: dict.fromkeys(drawn, b"") if pictures else {}
        )
        with ZipFile(io.BytesIO(page_zip("compare", score, "task", *given))) as one:
            read = one.read("README.txt").decode()
            lines = [line.split()[0] for line in read.splitlines()[2:] if not line.startswith(" ")]
            return lines, set(one.namelist()) - {"README.txt", "figures/plotly.min.js"}

    figure = {"curve": Shown(go.Figure(), None)}
    for found in (
        packed(True, rows | figure, "", "Keep them raw."),
        packed(False, rows, ""),
        packed(False, figure, ""),
    ):
        patterns, names = found
        assert [one for one in names if not any(fnmatch(one, pattern) for pattern in patterns)] == []
        assert [one for one in patterns if not any(fnmatch(name, one) for name in names)] == []


def test_a_figure_that_leaves_its_page_says_what_it_shows_and_of_what(monkeypatch):
    alone = {}
    monkeypatch.setattr("whitelab.ui.frame.page_zip.svgs", lambda given: alone.update(given) or {})
    layout = {"height": 300, "meta": {"alt": "Spearman by kept dimensions: best 76 at k = 70"}}
    made = {"model": "mine <b>", "task": "demo", "page_setting": "mean/L1:pca"}
    shown = {
        "curve": Shown(go.Figure(go.Scatter(x=[1, 2], y=[1, 2]), layout), None, made),
        "bare": Shown(go.Figure(layout={"height": 300}), None),
    }
    score = SimpleNamespace(setting=whitelab.Setting(), as_dict=lambda: {"protocol": {}})
    page_zip("dimensions", score, "task", shown, "")
    title = alone["curve"].layout.title.text
    assert title == "Spearman by kept dimensions<br>model mine &lt;b&gt; · task demo · page setting mean/L1:pca"
    assert alone["curve"].layout.height > 300  # the figure keeps its own room
    assert shown["curve"].figure.layout.title.text is None
    assert (alone["bare"].layout.title.text, alone["bare"].layout.height) == (None, 300)


def test_every_file_has_a_name_that_any_system_can_hold_and_every_figure_finds_its_script_beside_it(
    monkeypatch,
):
    monkeypatch.setattr("whitelab.ui.frame.page_zip.svgs", lambda given: dict.fromkeys(given, b"<svg/>"))
    keys = ("sif:a", "sif/a", "SIF:A", "curve", "a[:3]@0", "random@0:princeton-nlp/x", "\u6a21\u578b", "x" * 300)
    shown = {key: Shown(go.Figure(), lambda key=key: [{"key": key}]) for key in keys}
    score = SimpleNamespace(setting=whitelab.Setting(), as_dict=lambda: {"protocol": {}})
    with ZipFile(io.BytesIO(page_zip("compare", score, "task", shown, ""))) as packed:
        names = packed.namelist()
        rows = [packed.read(name).decode().split()[1] for name in names if name.startswith("data/")]
    assert all(re.fullmatch(r"(figures/|data/)?[A-Za-z0-9.=_-]{1,120}", name) for name in names)
    assert len({name.lower() for name in names}) == len(names)
    assert (rows, "data/curve.csv" in names) == ([*keys], True)
    assert len([name for name in names if name.endswith(".html")]) == len(keys)
