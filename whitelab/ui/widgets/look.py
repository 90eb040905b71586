"""What Streamlit's own settings (.streamlit/config.toml) cannot say about the look."""

import streamlit as st

# Words of headline numbers wrap and are never cut, and four of them stand two by two in a narrow window. The live score
# stays in sight while the bar is scrolled to the knob that moves it.
STYLE = """<style>
[data-testid=stMetric] [data-testid=stMarkdownContainer],
[data-testid=stMetric] [data-testid=stCaptionContainer] { overflow: visible; }
[data-testid=stMetric] p { white-space: normal; overflow-wrap: anywhere; }
[data-testid=stMetric] div:has(> [data-testid=stMetricDelta]) { flex-wrap: wrap; row-gap: 0.25rem; }
[data-testid=stMetricDelta], [data-testid=stMetricDeltaDescription] { height: auto; max-width: 100%; }
@media (max-width: 1100px) {
    [data-testid=stColumn]:has(
        > [data-testid=stVerticalBlock] > [data-testid=stElementContainer] > [data-testid=stMetric]
    ) { min-width: calc(50% - 1rem); }
}
[data-testid=stSidebar] [data-testid=stLayoutWrapper]:has(> .st-key-live) { position: sticky; top: 0.5rem; z-index: 9; }
.st-key-live { background: var(--st-secondary-background-color); }
</style>"""


def dress() -> None:
    """Apply it to the page of this run."""
    st.html(STYLE)
