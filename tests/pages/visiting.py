"""Opening pages without a browser, and reading what they show."""

import faulthandler
import json
import time
from collections.abc import Iterator
from pathlib import Path

import streamlit as st
from processes import ROOT
from questions import QUESTIONS
from streamlit.testing.v1 import AppTest

import whitelab
from whitelab.ui.results.jobs import jobs
from whitelab.ui.widgets.chart import SHOWN, as_csv

PATIENCE = 300  # seconds; other work may share the machine
ROOM = 818  # pixels of a page beside the bar, in a window of 1,280
DEMONSTRATION = "Demonstration set written for this project, not a published benchmark."
SPACED = [page for page in QUESTIONS if page != "training"]  # the pages of the workspace's space


def forget_everything() -> None:
    st.cache_resource.clear()
    st.cache_data.clear()


def complete(at: AppTest) -> bool:
    return any(one.label == "Show the code" for one in at.expander) and not at.get("progress")


def until(at: AppTest, ready=complete) -> AppTest:
    """Run the page again, as its polling does in a browser, whenever a job has ended, until it is `ready`.

    What it shows can be taken away as data.
    """
    end = time.monotonic() + PATIENCE
    while not ready(at):
        assert not at.exception, at.exception[0].value
        if time.monotonic() > end:
            faulthandler.dump_traceback()  # where the jobs are
            under_way = [(job.title, job.state, job.message) for job in jobs().active()]
            raise AssertionError(f"not ready; jobs: {under_way}; errors: {[e.value for e in at.error]}")
        await_a_job()
        at.run()
    assert not at.exception
    data(at)
    return at


def data(at: AppTest) -> dict[str, str]:
    """What a click on every "Data (CSV)" would save, by the chart or table it stands below."""
    shown = at.session_state[SHOWN] if SHOWN in at.session_state else {}  # noqa: SIM401 (it has no get)
    rows = {key: as_csv(one.rows()) for key, one in shown.items() if one.rows is not None}
    return rows | {key: one.texts["csv"]() for key, one in shown.items() if one.texts}


def await_a_job() -> None:
    """Wait for the end of the job whose turn it is, or a moment where none is open: a run before would show no more."""
    under_way = jobs().active()
    if under_way:
        under_way[0].join(1.0)
    else:
        time.sleep(0.1)


def start(page: str = "overview", **query) -> AppTest:
    """The app on `page` with these query parameters, after its first run."""
    at = AppTest.from_file(str(ROOT / "app.py"), default_timeout=PATIENCE)
    for name, value in query.items():
        at.query_params[name] = value
    at.run()
    return at if page == "overview" else go_to(at, page)


def go_to(at: AppTest, page: str) -> AppTest:
    return at.switch_page(f"pages/{page}.py").run()


def tour(at: AppTest, pages=tuple(QUESTIONS)) -> Iterator[str]:
    """The names of pages while `at` shows each in turn, complete."""
    for page in pages:
        until(go_to(at, page))
        yield page


def choose(at: AppTest, ready=complete, **values) -> AppTest:
    """Set widgets by their keys (`_` for `-`), and wait for what the page then shows."""
    for key, value in values.items():
        if key == "k":  # the browser's part of it, which AppTest does not have
            at.session_state["k"] = value
        else:
            at.get_by_key(key.replace("_", "-")).set_value(value)
    return until(at.run(), ready)


def press(at: AppTest, key: str, ready=complete) -> AppTest:
    at.button(key=key).click()
    return until(at.run(), ready)


def upload(at: AppTest, data: bytes, name="mine.csv", key="pairs-file") -> AppTest:
    at.file_uploader(key=key).set_value((name, data, "application/octet-stream"))
    at.run()
    assert not at.exception
    return at


def knob(at: AppTest) -> dict:
    """What the live score and the knob k in the bar are handed."""
    given = (json.loads(one.proto.json) for one in at.get("bidi_component"))
    return next((data for data in given if "fixed" in data), {"of": ""})


def live(at: AppTest) -> str | None:
    """The live score as it is written, None where there is none yet."""
    data = knob(at)
    return None if not data["of"] else data["words"] if data["score"] is None else f"{data['score']:.2f}"


def metrics(at: AppTest) -> dict[str, str]:
    return {one.label: one.value for one in at.metric}


def deltas(at: AppTest) -> dict[str, str]:
    return {one.label: one.delta for one in at.metric}


def judged(at: AppTest, label: str) -> bool:
    """Whether a headline's change is green or red, and not grey."""
    (one,) = (one.proto for one in at.metric if one.label == label)
    return one.color != one.GRAY


def said(at: AppTest, *texts: str) -> bool:
    """Whether each of the texts stands in words of the page, not as an error."""
    kinds = (at.header, at.markdown, at.info, at.success, at.caption, at.warning)
    words = "\n".join(one.value for kind in kinds for one in kind)
    return all(text in words or text in words.replace("\\", "") for text in texts)


def failed(at: AppTest, text: str) -> bool:
    """Whether the page says so as an error."""
    return any(text in one.value or text in one.value.replace("\\", "") for one in at.error)


def table(at: AppTest, column: str):
    """The first table with this column, None where there is none."""
    return next((one.value for one in at.dataframe if column in one.value.columns), None)


def table_widths(at: AppTest) -> list[int]:
    """Pixels that the tables with given columns take, with the column of ticks where rows can be chosen."""
    ticks = 34
    return [
        sum(
            column.get("width", 0)
            for name, column in json.loads(one.proto.columns or "{}").items()
            if name in one.value.columns
        )
        + ticks * bool(one.proto.selection_mode)
        for one in at.dataframe
    ]


def protocol(at: AppTest) -> str:
    """The live score's protocol line under the page."""
    lines = (one.value.replace("\\", "").removeprefix("Live score: ") for one in at.caption)
    return [text for text in lines if " · aggregate " in text][-1]


def alts(at: AppTest) -> list[str]:
    return [chart.proto.alt for chart in at.get("plotly_chart")]


def downloads(at: AppTest) -> list[str]:
    return [one.proto.label for one in at.get("download_button")]


def keys(at: AppTest) -> set[str]:
    """Of the buttons there are."""
    return {one.key for one in at.button}


def code(at: AppTest) -> str:
    """What "Show the code" shows."""
    return at.code[-1].value


def scored(space, text: str = "L1:pca") -> str:
    """The score the package gives a setting, as pages write it."""
    found = whitelab.score(space, whitelab.Setting.parse(text), isotropy=False).spearman
    return "undefined" if found is None else f"{found:.2f}"


def write_few(path: Path) -> str:
    """Eight pairs, one of them the same sentence twice: whitened in full every other cosine is one number."""
    write_scored(path, [0, 1, 2, 3, 4, 2, 3])
    with path.open("a", encoding="utf-8") as file:
        file.write("The very same.\tThe very same.\t5\n")
    return str(path)


def write_scored(path: Path, golds, first=None) -> str:
    lines = ["sentence1\tsentence2\tscore"]
    for i, gold in enumerate(golds):
        lines.append(f"{first or 'A cat sits'} on mat {i}.\tThe dog number {i} runs.\t{gold}")
    path.write_text("\n".join(lines) + "\n")
    return str(path)
