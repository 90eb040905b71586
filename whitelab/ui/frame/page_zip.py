"""A page's results as one .zip: score, protocol and setting, figures, their data, and the code."""

import fnmatch
import io
import json
from collections.abc import Mapping, Sequence
from zipfile import ZIP_DEFLATED, ZipFile

import plotly.graph_objects as go
from plotly.offline import get_plotlyjs

import whitelab
from whitelab.base.installation import RELEASE
from whitelab.base.wording import for_a_file
from whitelab.figures.style import wrapped
from whitelab.scoring.score import Score
from whitelab.ui.frame.svg import svgs
from whitelab.ui.widgets.chart import Shown, as_csv

_WIDTH, _LINE, _HEIGHT = 90, 16, 450  # of words below a figure: characters and pixels of a line; plotly's own height

# What each file is, of those that are there.
README = {
    "score.json": "the live score of the bar with its protocol, the setting as one line, and whitelab's version",
    "figures/*.html": """each figure, to open in a browser without a connection; the camera in its corner saves it as
SVG; below it stands what it shows, and of which model, data and setting""",
    "figures/*.svg": "the same as a picture",
    "data/*.csv": """the numbers in a figure or a table; page_setting is the setting they are of, where a row does not
say otherwise (layer, whitening, k), of a corpus with its folder's name and the first digits of the
digest in its manifest.json; where raw vectors are chosen, the PCA whitening beside them""",
    "data/headlines.csv": "the page's headline numbers as it prints them",
    "data/*.md": "a table in Markdown, with what it was made under",
    "data/*.tex": "the same in LaTeX",
    "code.py": "makes the page's numbers where whitelab is installed",
    "answer.txt": "what the page answers in words",
}


def page_zip(page: str, score: Score, fit: str, shown: Mapping[str, Shown], code: str, answer: str = "") -> bytes:
    """The .zip of the page of this name, made when it is asked for.

    The score says of its scope `fit` (`scope_name`), so that no path of this machine is in it.
    """
    shown = _by_file(shown)
    data = io.BytesIO()
    with ZipFile(data, "w", ZIP_DEFLATED) as packed:
        packed.writestr("score.json", json.dumps(_record(score, fit), indent=2, ensure_ascii=False))
        packed.writestr("code.py", code)
        if answer:
            packed.writestr("answer.txt", answer)
        drawn = {key: _alone(one) for key, one in shown.items() if one.figure is not None}
        if drawn:
            packed.writestr("figures/plotly.min.js", get_plotlyjs())
        for key, picture in svgs(drawn).items():
            packed.writestr(f"figures/{key}.svg", picture)
        for key, figure in drawn.items():
            packed.writestr(f"figures/{key}.html", _html(key, figure))
        for key, one in shown.items():
            rows = one.rows() if one.rows is not None else ()
            if rows:
                packed.writestr(f"data/{key}.csv", as_csv(rows))
            for ending, text in one.texts.items():
                packed.writestr(f"data/{key}.{ending}", text())
        packed.writestr("README.txt", _readme(page, packed.namelist()))
    return data.getvalue()


def _readme(page: str, names: Sequence[str]) -> str:
    """What stands on the page, and what each of the files of these names is."""
    there = {pattern: words for pattern, words in README.items() if fnmatch.filter(names, pattern)}
    width = max(map(len, there)) + 1
    lines = (f"{pattern:{width}}" + words.replace("\n", "\n" + " " * width) for pattern, words in there.items())
    return "\n".join((f"What stands on the page {page} of {RELEASE}\n", *lines, ""))


def _by_file(shown: Mapping[str, Shown]) -> dict[str, Shown]:
    """What is shown by names of files that differ on any system: a key may hold a model's name, with `:` and `/`."""
    named: dict[str, Shown] = {}
    taken = set()  # as a system sees them that does not tell A from a
    for key, one in shown.items():
        name = for_a_file(key, 100)
        others = (name, *(f"{name}-{number}" for number in range(2, len(shown) + 1)))
        name = next(other for other in others if other.lower() not in taken)
        taken.add(name.lower())
        named[name] = one
    return named


def _record(score: Score, fit: str) -> dict:
    record = score.as_dict()
    record["whitelab"] = whitelab.__version__
    return record | {"setting": str(score.setting.with_(fit=fit)), "protocol": record["protocol"] | {"fit": fit}}


def _alone(one: Shown) -> go.Figure:
    """The figure for a reader without Streamlit, whose template holds places that only its own pages fill: there is no
    room between the title of an axis and its numbers. Without its page it says itself what it shows, and of what.
    """
    figure = go.Figure(one.figure).update_layout(template="plotly_white")
    lead = ((figure.layout.meta or {}).get("alt") or "").partition(": ")[0]
    made = " · ".join(f"{name.replace('_', ' ')} {value}" for name, value in one.made.items())
    lines = [wrapped(text, _WIDTH, None) for text in (lead, made) if text]
    if lines:
        words = "<br>".join(lines)
        room = _LINE * (2 + words.count("<br>"))
        foot = {"yref": "container", "y": 0, "yanchor": "bottom", "x": 0.02, "xanchor": "left", "automargin": True}
        title = foot | {"text": words, "font": {"size": 12}, "pad": {"b": room - 4, "t": 4}}
        figure.update_layout(title=title, height=(figure.layout.height or _HEIGHT) + room)
    return figure


def _html(key: str, figure: go.Figure) -> str:
    """A page with the figure, whose camera saves SVG; plotly's own code lies once beside all of them."""
    return figure.to_html(
        include_plotlyjs="directory",
        config={"displaylogo": False, "toImageButtonOptions": {"format": "svg", "filename": f"whitelab-{key}"}},
    )
