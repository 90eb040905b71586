"""Pictures that a hand changes, drawn by the browser: html, css and js beside the module, without a build step."""

from collections.abc import Callable
from pathlib import Path

import streamlit as st


def component(folder: Path, name: str, shared: str = "", isolate_styles: bool = True) -> Callable:
    """The component of `NAME.html`, `NAME.css` and `NAME.js` in a folder; `shared` names style and script otherwise."""
    files = (f"{name}.html", f"{shared or name}.css", f"{shared or name}.js")
    html, css, js = ((folder / file).read_text("utf-8") for file in files)
    return st.components.v2.component(f"whitelab.{name}", html=html, css=css, js=js, isolate_styles=isolate_styles)
