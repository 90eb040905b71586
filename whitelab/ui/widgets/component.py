"""Pictures that a hand changes, drawn by the browser: html, css and js beside the module, without a build step."""

from collections.abc import Callable
from pathlib import Path

import streamlit as st


def component(folder: Path, name: str, style: str, *scripts: str, isolate_styles: bool = True) -> Callable:
    """The component of `NAME.html`, `STYLE.css` and the `SCRIPT.js`, one after another, in a folder."""
    files = (f"{name}.html", f"{style}.css", *(f"{script}.js" for script in scripts))
    html, css, *js = ((folder / file).read_text("utf-8") for file in files)
    js = "".join(js)
    return st.components.v2.component(f"whitelab.{name}", html=html, css=css, js=js, isolate_styles=isolate_styles)
