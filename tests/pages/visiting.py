"""Opening pages without a browser, and reading what they show."""

import time
from pathlib import Path

import streamlit as st
from processes import ROOT
from streamlit.testing.v1 import AppTest

import whitelab
from whitelab.scoring.setting import Protocol

ON_DEMAND = ("compare", "training")  # compute nothing before they are asked to
PATIENCE = 300  # seconds; other work may share the machine
LIVE = "Spearman x 100, live"
DEMONSTRATION = "Demonstration set written for this project, not a published benchmark."


def forget_everything() -> None:
    st.cache_resource.clear()
    st.cache_data.clear()


def complete(at: AppTest) -> bool:
    return any(one.label == "Show the code" for one in at.expander) and not at.get("progress")


def until(at: AppTest, ready=complete) -> AppTest:
    """Run the page again and again, as its polling does in a browser, until `ready`."""
    end = time.monotonic() + PATIENCE
    while not ready(at):
        assert not at.exception, at.exception[0].value
        assert time.monotonic() < end, f"not ready; errors: {[e.value for e in at.error]}"
        time.sleep(0.2)
        at.run()
    assert not at.exception
    return at


def start(page: str = "overview", **query) -> AppTest:
    """The app on `page` with these query parameters, after its first run."""
    at = AppTest.from_file(str(ROOT / "app.py"), default_timeout=PATIENCE)
    for name, value in query.items():
        at.query_params[name] = value
    at.run()
    return at if page == "overview" else go_to(at, page)


def go_to(at: AppTest, page: str) -> AppTest:
    return at.switch_page(f"pages/{page}.py").run()


def metrics(at: AppTest) -> dict[str, str]:
    return {one.label: one.value for one in at.metric}


def live(at: AppTest) -> str:
    return metrics(at)[LIVE]


def said(at: AppTest, text: str) -> bool:
    return any(text in one.value for one in (*at.markdown, *at.info, *at.caption, *at.warning))


def tables(at: AppTest) -> list:
    return [one.value for one in at.dataframe]


def alts(at: AppTest) -> list[str]:
    return [chart.proto.alt for chart in at.get("plotly_chart")]


def deltas(at: AppTest) -> dict[str, str]:
    return {one.label: one.delta for one in at.metric}


def has_downloads(at: AppTest) -> bool:
    return any(one.label == "LaTeX" for one in at.get("download_button"))


def scored(space, **changes) -> str:
    """The score the package gives, as the page writes it."""
    settings = {"pooling": "mean", "layers": (1, 6), "whitening": "pca"} | changes
    found = whitelab.score(space, Protocol("m", "d", "demo", "test", **settings)).spearman
    return "undefined" if found is None else f"{found:.2f}"


def write_scored(path: Path, golds, first=None) -> str:
    lines = ["sentence1\tsentence2\tscore"]
    for i, gold in enumerate(golds):
        lines.append(f"{first or 'A cat sits'} on mat {i}.\tThe dog number {i} runs.\t{gold}")
    path.write_text("\n".join(lines) + "\n")
    return str(path)
