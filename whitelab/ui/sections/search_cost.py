"""What a smaller k buys: memory, time and neighbours of an exact search, measured on request."""

import streamlit as st

from whitelab import figures
from whitelab.base.wording import in_percent, spaced
from whitelab.encoding.embeddings import LayerEmbeddings
from whitelab.figures import heights
from whitelab.retrieval.search_cost import MAX_BYTES, SearchCosts, SearchPlan, bytes_needed, default_ks, search_costs
from whitelab.scoring.setting import Setting
from whitelab.ui.frame.variants import all_numbers
from whitelab.ui.results.jobs import jobs, wait
from whitelab.ui.results.study import name_of, study_job
from whitelab.ui.widgets.chart import chart
from whitelab.ui.widgets.choice import choice

CORPORA, TOP = (10_000, 100_000, 500_000), 10
ROOM = heights.room(heights.TALL) + 150  # of the result with its words, kept free while it is measured
_ASKED = "searches"  # session_state: what was measured for this visitor -> its plan


def draw(space: LayerEmbeddings, setting: Setting, focus: int) -> SearchPlan | None:
    """Choose a size, measure, and read what it says at k = `focus`; the plan of what is measured."""
    setting = _measured(setting)
    st.header("What does a smaller k buy?")
    st.markdown(
        "Su et al. (2021) promise less memory and faster retrieval: measure both with faiss, and how many neighbours "
        "stay the same."
    )
    asked = st.session_state.setdefault(_ASKED, {})
    with st.container(horizontal=True, vertical_alignment="bottom"):
        plan = SearchPlan(default_ks(space.dim, focus), _corpus(space), top=TOP)
        of = name_of(search_costs, space, setting, SearchPlan(corpus=plan.corpus))  # at whichever ks
        label = "Measure again" if of in asked else "Measure"
        st.button(label, key="measure", on_click=_measure, args=(of, plan, name_of(search_costs, space, setting, plan)))
    plan = asked.get(of)
    if plan is None:
        return None
    title = f"Searching among {spaced(plan.corpus)} vectors"
    job = study_job(search_costs, space, setting, plan, title=title, unit="steps")
    costs = wait(job, key="search", height=ROOM)
    if costs is not None:
        _picture(costs, focus)
    return None if job.error else plan


def code(setting: Setting, plan: SearchPlan) -> str:
    """The lines that measure the same in Python."""
    return (
        f"plan = whitelab.SearchPlan({plan.ks}, {plan.corpus}, top={plan.top})\n"
        f"costs = whitelab.search_costs(space, whitelab.Setting.parse({str(_measured(setting))!r}), plan)\n"
        "print(costs.rows, costs.machine)\n"
    )


def _measured(setting: Setting) -> Setting:
    """What is measured of a setting: every k, so none of its own, and one map, whose vectors an index holds."""
    return setting.with_(k=None, fit="task" if setting.fit == "cross" else setting.fit)


def _corpus(space: LayerEmbeddings) -> int:
    """How many vectors are searched among: the task's own, or so many that fit into memory."""
    ks = (*default_ks(space.dim), space.dim)
    own = [space.n_sentences] * (space.n_sentences > TOP)
    more = [n for n in CORPORA if n > space.n_sentences and bytes_needed(space.dim, n, ks) <= MAX_BYTES]
    sizes = own + more or [space.n_sentences]
    return choice(
        "Vectors to search among",
        sizes,
        next((n for n in sizes if n >= 100_000), sizes[-1]),
        key="search-corpus",
        bind="query-params",
        format_func=lambda n: spaced(n) + (" (yours)" if n == space.n_sentences else ""),
        help="Your sentences come first. The rest is drawn from a Gaussian with their mean and covariance.",
    )


def _measure(of: str, plan: SearchPlan, name: str) -> None:
    """Measure by this plan, anew where that was done before. For the callback of the button."""
    jobs().forget_finished(name)
    st.session_state[_ASKED][of] = plan


def _picture(costs: SearchCosts, focus: int) -> None:
    """The sentence, the chart, and how it was measured."""
    at, whole = costs.nearest(focus), costs.rows[-1]
    notes = f" (k = {focus} was not measured.)" if at.k != focus else ""
    notes += f" The data span {at.dim} directions: at this k no more are stored." if at.dim < at.k else ""
    st.markdown(
        f"At k = {at.k} a search takes **{at.time_ratio:.2f}** of the time and **{costs.memory_ratio(at):.2f}** of the "
        f"memory of k = {whole.k}, and finds **{in_percent(at.recall)}** of the same {costs.top} neighbours. Of the "
        f"{costs.top} neighbours among the raw vectors it finds {in_percent(at.raw_recall)}, and k = {whole.k} finds "
        f"{in_percent(whole.raw_recall)}.{notes}"
    )
    records = [costs.record(row) for row in costs.rows]
    turned = all_numbers(costs.setting.whitening, costs.dim)
    figure = figures.search_costs(records, costs.setting.whitening, at.k, costs.top)
    chart(figure, "search-costs", lambda: records)
    st.caption(
        f"Measured on {costs.machine}. Exact search, float32, {spaced(costs.corpus)} vectors: "
        f"{spaced(costs.sentences)} are your sentences, the rest is drawn from a Gaussian with their mean and "
        f"covariance; {costs.queries} sentences are queries. Points are medians of single queries, bars their "
        f"quartiles. In batches: {spaced(round(at.queries_per_second))} queries a second at k = {at.k}, "
        f"{spaced(round(whole.queries_per_second))} at k = {whole.k}. Su et al. 2021, section 3.3, expect a speed "
        '"directly proportional to the dimensionality", as the memory is; section 4.4 names both.'
        + (f"{turned} So it is searched here." if turned else "")
    )
