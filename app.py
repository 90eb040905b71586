"""whitelab in a browser: page configuration, the workspace bar and navigation."""

import sys

import streamlit as st

words = st.empty()  # what is said above a page
if not getattr(sys.modules.get("whitelab.datasets.parquet"), "apart", False):  # seconds go by until it is, below
    words.caption(
        "whitelab is loading PyTorch and its bundled model: some seconds, for the first visitor after a start only."
    )

from whitelab.base.installation import shipped
from whitelab.datasets import parquet
from whitelab.ui import live
from whitelab.ui.results.jobs import turn_page
from whitelab.ui.sections import lesson_strip
from whitelab.ui.sidebar import workspace
from whitelab.ui.widgets import address, look

parquet.apart = True  # what kills a reader shall not kill the server

# Without icons, so that all fit beside the bar in a window of 1,440 pixels; where fewer do, the last are folded.
PAGES = (
    "overview",
    "lessons",
    "data",
    "anisotropy",
    "whitening",
    "layers",
    "dimensions",
    "uniformity",
    "compare",
    "retrieval",
    "advise",
    "probe",
    "training",
    "corpus",
)

pages = [st.Page(f"pages/{name}.py", title=name.capitalize(), url_path=name) for name in PAGES[1:]]
first = st.Page(f"pages/{PAGES[0]}.py", title=PAGES[0].capitalize(), url_path="first", default=True)  # at no path
by_name = st.Page(lambda: None, title=PAGES[0], url_path=PAGES[0], visibility="hidden")  # what a hand types for it
page = st.navigation([first, *pages, by_name], position="top", expanded=True)  # on a phone, where they stand in the bar
if page is by_name:
    st.switch_page(first, query_params=dict(st.query_params))
st.set_page_config(
    page_title=f"{lesson_strip.title() or page.title} · whitelab",
    page_icon=str(shipped("docs/icon.svg")),
    layout="wide",
)
turn_page()
look.dress()
name = page.url_path or PAGES[0]
lesson_strip.open_lesson(name)
workspace.draw(name)
words.empty()
try:
    with address.noted(address.PAGE):
        if lesson_strip.draw():
            page.run()
finally:
    address.settle()
    missed, strange = address.misread(address.PAGE), address.misspelt()
    with words.container():
        if missed:
            st.warning(f"{missed} The page shows what is computed.")
        if strange:
            st.warning(strange)
    opened = st.session_state.pop(workspace.OPENED, None)  # a session keeps no embeddings
if opened is not None:
    with st.session_state[workspace.AHEAD]:
        live.hand_over(opened.space, workspace.current().setting)
