"""The Streamlit side of whitelab: caches, controls, long work. Nothing else in whitelab imports Streamlit."""
