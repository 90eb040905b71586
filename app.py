"""whitelab in a browser: page configuration, the workspace bar and navigation."""

import streamlit as st

from whitelab.ui import workspace

st.set_page_config(page_title="whitelab", page_icon="docs/icon.svg", layout="wide")

PAGES = {
    "overview": ("Overview", ":material/space_dashboard:"),
    "data": ("Data", ":material/database:"),
    "anisotropy": ("Anisotropy", ":material/flare:"),
    "whitening": ("Whitening", ":material/blur_on:"),
    "layers": ("Layers", ":material/layers:"),
    "dimensions": ("Dimensions", ":material/straighten:"),
    "uniformity": ("Uniformity", ":material/scatter_plot:"),
    "compare": ("Compare", ":material/table_chart:"),
    "probe": ("Probe", ":material/category:"),
    "training": ("Training", ":material/model_training:"),
}

page = st.navigation(
    [
        st.Page(f"views/{name}.py", title=title, icon=icon, url_path=name, default=name == "overview")
        for name, (title, icon) in PAGES.items()
    ],
    position="top",
)
workspace.draw()
page.run()
