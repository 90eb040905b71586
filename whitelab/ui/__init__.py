"""What a visitor sees: the only package that imports Streamlit, beside the pages and app.py."""

import streamlit as st
from streamlit.runtime.pages_manager import PagesManager

# Streamlit's older mechanism takes a folder named pages on a server's very first request: a deep link then runs the
# page alone, without app.py, its bar and its navigation. Whoever comes here first turns it off and starts that run
# again.
if PagesManager.uses_pages_directory:
    PagesManager.uses_pages_directory = False
    st.rerun()
