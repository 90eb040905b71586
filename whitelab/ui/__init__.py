"""What a visitor sees: the only package that imports Streamlit, beside the pages and app.py."""
