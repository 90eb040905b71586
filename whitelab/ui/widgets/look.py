"""What Streamlit's own settings (.streamlit/config.toml) cannot say about the look."""

from pathlib import Path

import streamlit as st

# Words of headline numbers wrap in lines of like length and are never cut, and four of them stand two by two in a
# narrow window, as do a new run's choices, whose names are long; three stand side by side but on a phone; code and
# lists of neighbours have the whole of its width. The live score stays in sight while the bar scrolls to the knob that
# moves it.
# What stands below headline numbers, a verdict and an explanation stays where it is when these have more to say: their
# room for it is always there (but where it would leave a third of a phone empty), the more so what they once took
# (`--room`, rooms.js), and less where their words are few (`--least`); a k that is offered stands beside its
# explanation. The documents of a query are as high as most of them, so that those of two settings that stand side by
# side lie level.
# The line over a picture (ui/results/jobs.py) is higher only where its words would be cut.
# What a layer put in or taken out would change stands under its pill (ui/live/ahead.js); its room is always there.
# Captions, buttons, chosen names, code and what charts have in grey have WCAG AA's contrast. Colours are those of the
# theme, in light and dark.
# The names of the pages stand so near each other that all fit in a window of 1,280 pixels; there the menu beside them
# has the room it needs and no more, and what is running is cancelled where it is shown, not up there. Where names fold
# into "more" and the present page is one of them, that is marked. Keys show in them where they are, as in every other
# control, and in the tool bars of tables and charts, which are shown while they have them.
# Where nothing points, tool bars are always shown: a table's has room above it, and a chart has none, whose buttons are
# for a zoom that fingers do not have.
# Choices that lie side by side wrap where they have no room, each with all of its border, also beside the chosen one,
# where Streamlit leaves one out; so do those chosen in a box of several. The ring of an empty choice has three to one,
# WCAG's contrast of what is no text.
# The heading of a lesson's step is no larger than a caption: the question below it is what one is to read. Those below
# a title are as near to what is above them as Streamlit's of the third level.
# On paper there is no bar, code breaks its lines, and a page is as much smaller as the paper is narrower than it was in
# the window (`--window`, paper.js): `tan(atan2())` divides a length by another. Of a narrower window words fill the
# paper, and charts and tables keep their width. What is one thing stays on one sheet, a
# heading with what it is of; what is there to be pressed is not printed, nor what is closed, nor room for other words.
# From the dark theme, which Streamlit prints as it is, the sheets stay white (`data-dark`, paper.js): words are in the
# light theme's ink on no boxes but those of switches, what charts have in the dark theme's colours of words, grids and
# paper is in the light one's, their data as they are, and the colours of tables, which are painted, are turned around.
STYLE = """<style>
@property --room { syntax: "*"; inherits: false; initial-value: 0px; }
[class*=st-key-said-], .st-key-explanation, [data-testid=stMetric] { min-height: var(--room); }
[data-testid=stHeading] h2 { padding-top: 0.75rem; }
[data-testid=stTopNavLink] { padding-inline: 0.3rem; }
[data-testid=stTopNav]:has([inert] [aria-current=page]) [data-testid=stTopNavSection] {
    background-color: rgba(146, 164, 200, 0.25);
}
[data-testid=stTopNavLink]:focus-visible, [data-testid=stSidebarNavLink]:focus-visible,
[data-testid=stPageLink-NavLink]:focus-visible, [data-testid=stCheckbox] label:has(input:focus-visible) {
    outline: 2px solid light-dark(#1B649F, #5AA9E6); outline-offset: -2px;
}
[data-testid=stCheckbox] label { border-radius: 0.25rem; outline-offset: 2px !important; }
[data-testid=stLayoutWrapper]:has(> [class*=st-key-line-]),
[data-testid=stVerticalBlock][class*=st-key-line-] {
    min-height: 50px; height: auto; flex: none; overflow: visible;
}
[data-testid=stCaptionContainer] { opacity: 1; color: light-dark(#566070, #A9B1BC); }
.js-plotly-plot text[style*="fill: rgb(128, 132, 149)"] { fill: #566070 !important; }
[data-testid=stCode] .token:is(.punctuation, .operator, .comment) { color: light-dark(#566070, #A9B1BC); }
[data-testid=stCode] .token:is(.keyword, .function, .parameter) { color: light-dark(#1B649F, #7FBBEC); }
[data-testid=stCode] .token.string { color: light-dark(#1B6E3C, #7CD49B); }
[data-testid=stCode] .token:is(.number, .boolean) { color: light-dark(#8A4B08, #F0B183); }
[data-testid=stElementToolbar]:focus-within { opacity: 1; z-index: 1; top: -44px; }
.js-plotly-plot .modebar:focus-within { opacity: 1 !important; }
.js-plotly-plot .modebar-btn:focus-visible { outline: 2px solid light-dark(#1B649F, #5AA9E6) !important; }
[data-testid^=stBaseButton-primary]:enabled, [data-testid^=stBaseButton-primary]:enabled p,
[data-tag], [data-tag] button { color: light-dark(#FFFFFF, #11161D); }
[data-testid=stMetric] [data-testid=stMarkdownContainer],
[data-testid=stMetric] [data-testid=stCaptionContainer] { overflow: visible; text-wrap: balance; }
[data-testid=stMetric] p { white-space: normal; overflow-wrap: anywhere; }
[data-testid=stMetric] div:has(> [data-testid=stMetricDelta]) { flex-wrap: wrap; row-gap: 0.25rem; }
[data-testid=stMetricDelta], [data-testid=stMetricDeltaDescription] { height: auto; max-width: 100%; }
[data-testid=stMetricDelta] { border-radius: 0.75rem; }
.st-key-said-map { min-height: max(3.2rem, var(--room)); }
.st-key-said-hits li { min-height: 4lh; }
@media (min-width: 1101px) {
    [data-testid=stMetric] { min-height: max(var(--least, 10rem), var(--room)); }
    .st-key-said-verdict { min-height: max(4.8rem, var(--room)); }
    .st-key-said-gains { min-height: max(12.2rem, var(--room)); }
    .st-key-said-ranked { min-height: max(3.2rem, var(--room)); }
    .st-key-explanation { flex-wrap: nowrap; }
    .st-key-explanation [data-testid=stAlertContainer] { min-height: 6.5rem; }
}
@media (hover: none) {
    [data-testid=stElementContainer]:has([data-testid=stDataFrame]) { margin-top: 2rem; }
    .js-plotly-plot .modebar { display: none; }
}
@media print {
    :root[data-dark] :is(body, [data-testid=stApp], [data-testid=stApp] :not(label, label *)) {
        background-color: transparent !important;
    }
    :root[data-dark] [data-testid=stApp] { color-scheme: light !important; }
    :root[data-dark] [data-testid=stApp] * {
        color: #1B2430 !important; --st-text-color: #1B2430 !important; --st-border-color: #D5DBE3 !important;
        --st-background-color: #FFFFFF !important; --st-secondary-background-color: #F3F5F8 !important;
    }
    :root[data-dark] [role=tab][aria-selected=true] { text-decoration: underline !important; }
    :root[data-dark] [data-testid=stDataFrame] canvas { filter: invert(1) hue-rotate(180deg) brightness(1.15); }
    .js-plotly-plot text[style*="fill: rgb(230, 234, 241)"] { fill: #566070 !important; }
    .js-plotly-plot path[style*="stroke: rgb(49, 51, 63)"] { stroke: #E6EAF1 !important; }
    .js-plotly-plot rect[style*="fill: rgb(17, 22, 29)"] { fill: #FFFFFF !important; }
    [data-testid=stSidebar], .st-key-strip, [data-testid=stTooltipIcon], .st-key-lesson-ways, .js-plotly-plot .modebar,
    [data-testid=stElementContainer]:not([class*=st-key-inspect-]):has(> [data-testid=stButton]),
    [data-testid=stElementContainer]:has(> [data-testid=stDownloadButton]),
    [data-testid=stLayoutWrapper]:has(> [data-testid=stExpander] > details:not([open])) { display: none !important; }
    [class*=st-key-said-], .st-key-explanation, [data-testid=stMetric] { min-height: 0 !important; }
    [data-testid=stCode] :is(pre, code) { white-space: pre-wrap !important; }
    [data-testid=stMainBlockContainer] {
        box-sizing: content-box; width: max(var(--window), 100vw - 2rem); min-width: 0; max-width: none;
        padding: 1rem 1rem 0;
        zoom: min(1, tan(atan2(100vw, var(--window) + 2rem)));
    }
    :is([data-testid=stElementContainer], [data-testid=stColumn]) { break-inside: avoid; }
    [data-testid=stElementContainer]:has(h2, h3),
    [data-testid=stElementContainer]:has(h2, h3) + :has([data-testid=stCaptionContainer]) { break-after: avoid; }
}
@media (max-width: 1100px) {
    [data-testid=stColumn]:has(
        > [data-testid=stVerticalBlock] > [data-testid=stElementContainer] > [data-testid=stMetric]
    ) { min-width: calc(50% - 1rem); }
    [data-testid=stColumn]:has([data-testid=stCode], [class*=st-key-near-]) { min-width: 100%; }
    .st-key-explanation { min-height: max(13rem, var(--room)); }
    .st-key-said-verdict { min-height: max(6.4rem, var(--room)); }
    .st-key-said-gains { min-height: max(18.6rem, var(--room)); }
    .st-key-said-ranked { min-height: max(4.8rem, var(--room)); }
}
@media (max-width: 1400px) {
    [data-testid=stTopNav] { padding-right: 0; }
    [data-testid=stTopNavLink] { padding-inline: 0.2rem; }
    div:has(> [data-testid=stMainMenu]) { min-width: 4.75rem; }
    [data-testid=stStatusWidget] button { display: none; }
}
@media (min-width: 1401px) {
    .st-key-few-words { --least: 8.75rem; }
    .st-key-said-gains { min-height: max(10.6rem, var(--room)); }
    .st-key-said-hits li { min-height: 3lh; }
}
@media (max-width: 768px) {
    .st-key-said-gains { min-height: var(--room); }
    .st-key-explanation { min-height: max(10rem, var(--room)); }
}
@media (max-width: 640px) {
    [data-testid=stMetric] { min-height: max(var(--least, 10rem), var(--room)); }
    .st-key-explanation { min-height: max(17.5rem, var(--room)); }
    .st-key-said-verdict { min-height: max(9.6rem, var(--room)); }
    .st-key-said-map { min-height: max(4.8rem, var(--room)); }
    .st-key-said-ranked { min-height: max(6.4rem, var(--room)); }
}
@media (min-width: 641px) and (max-width: 1100px) {
    [data-testid=stColumn]:has(
        > [data-testid=stVerticalBlock] > [data-testid=stElementContainer] > [data-testid=stMetric]
    ):is(:first-child:nth-last-child(3), :first-child:nth-last-child(3) ~ *) { min-width: calc(33% - 1rem); }
}
@media (min-width: 641px) and (max-width: 1400px) {
    .st-key-new-run [data-testid=stColumn]:has(
        > [data-testid=stVerticalBlock] > [data-testid=stElementContainer] > [data-testid=stSelectbox]
    ) { min-width: calc(50% - 1rem); }
}
/* Closed it is only moved away, and keys would still walk through it unseen. */
[data-testid=stSidebar][data-collapsed=true] :is([data-testid=stSidebarContent], [data-testid=stSidebarContent] *) {
    visibility: hidden !important;
}
/* Who stands in it by keyboard closes it there. */
[data-testid=stSidebar]:focus-within [data-testid=stSidebarCollapseButton] { visibility: visible; }
[data-testid=stSidebarContent]:focus-visible { outline: none; }
[data-testid=stSidebar] [data-testid=stLayoutWrapper]:has(> .st-key-live) { position: sticky; top: 0; z-index: 9; }
[data-testid=stButtonGroup] > [role=radiogroup] { flex-wrap: wrap; }
[role=group]:has(> [data-testid=stMultiSelectTagsContainer]) { height: auto; max-height: none; }
[data-testid=stMultiSelectTagsContainer] { flex-wrap: wrap; height: auto; overflow: visible; mask-image: none; }
[role=radiogroup] > [role=radio][aria-checked=false] { border-left-color: light-dark(#D5DBE3, #303B49) !important; }
[data-testid=stRadioOption]:not(:has(:checked)) > div > div:first-child { border-color: light-dark(#566070, #A9B1BC); }
.st-key-lesson h2 {
    padding: 0 0 1rem; font-size: 0.875rem; font-weight: 400; line-height: 1.5; color: light-dark(#566070, #A9B1BC);
}
.st-key-live { padding-top: 0.5rem; background: light-dark(#F3F5F8, #1A212B); }
.st-key-layers [data-testid=stButtonGroup] > div { gap: 1.1rem 0.25rem; padding-bottom: 1rem; }
.st-key-layers button { position: relative; overflow: visible; min-width: 1.875rem; padding-inline: 0.3rem; }
.st-key-layers button[data-gain]::after {
    content: attr(data-gain); position: absolute; inset: calc(100% + 1px) -0.4rem auto; text-align: center;
    font-size: 0.6875rem; line-height: 1rem; color: light-dark(#1B6E3C, #7CD49B);
}
.st-key-layers:has([data-gain]) [data-testid=stWidgetLabel] p::after {
    content: " · change at a click"; font-size: 0.6875rem;
}
.st-key-layers button[data-gain^="-"]::after { color: light-dark(#A3302A, #F2968F); }
.st-key-layers button[data-gain="+0.0"]::after { color: light-dark(#566070, #A9B1BC); }
</style>"""

MENDS = "".join(
    Path(__file__).with_name(f"{name}.js").read_text("utf-8")
    for name in ("fingers", "bar", "steps", "rooms", "paper", "turns")
)


def mend() -> None:
    """Let fingers scroll over charts, close the bar by choosing a page, let one go back, keep the room of texts and the
    place in a lesson or before the bar, and fit a page to paper, where it takes no room.

    Not a component: those load their script later. On a first visit this too can come seconds after the page.
    """
    st.html(f"<script>{MENDS}</script>", unsafe_allow_javascript=True)


def dress() -> None:
    """Apply it to the page of this run."""
    st.html(STYLE)
