"""Models, settings and tasks side by side, and beside what the papers print."""

import streamlit as st

from whitelab import compare as comparing
from whitelab.compare import AVERAGE, PRESETS
from whitelab.models import SUGGESTED
from whitelab.ui import cache, frame

chosen, opened = frame.open_page(
    "Which model, and does it match what was published?",
    "Look at the difference beside each published number: it should be hundredths, not points. The best of a column is "
    "marked.",
)
frame.need_a_model(
    chosen,
    opened,
    "Another model would have to embed the sentences, and vectors come without a model. Bring the pairs as text to compare models "
    "on them. Variants of these vectors are compared on the whitening page, their layers on the layers page.",
)
tasks = list(chosen.tasks)
left, right = st.columns([3, 2])
with left:
    models = st.multiselect(
        "Models",
        list(dict.fromkeys((chosen.model, "bundled", *SUGGESTED))),
        default=[chosen.model],
        key="models",
        bind="query-params",
        accept_new_options=True,
        help="Type a Hugging Face name or the path of a folder. A model that is not here yet is downloaded.",
    )
    picked = st.multiselect("Tasks", tasks, default=tasks, key="tasks", bind="query-params")
with right:
    protocol = st.selectbox(
        "Protocol",
        list(PRESETS),
        key="protocol",
        bind="query-params",
        format_func=lambda name: PRESETS[name].label,
        help="Decides aggregation, fit scope, longest sentence, and the settings compared at first.",
    )
    protocol = protocol or "whiteningbert"
    settings = st.text_area(
        "Settings, one a line",
        PRESETS[protocol].settings.replace(";", "\n"),
        key=f"settings-{protocol}",
        height=155,
        help="[cls/|mean/]L1+L-1[:variant[@k]]: pooling, layers to average (L-1 is the last), whitening, k.",
    )
models, picked = models or [chosen.model], [name for name in tasks if name in (picked or tasks)]
preset = PRESETS[protocol]
st.caption(f"{preset.source}. {preset.note}")
try:
    wanted = comparing.parse_settings(settings.replace("\n", ";"))
except ValueError as error:
    st.error(str(error))
    st.stop()
data = chosen.own.key if chosen.own else chosen.data
asked = cache.Grid(tuple(models), data, tuple(picked), wanted, protocol, chosen.dtype, chosen.keep_going)
if st.button(f"Compare {len(models)} × {len(picked)} × {len(wanted)}", type="primary", key="compare"):
    st.session_state["grid"] = asked
ready = st.session_state.get("grid") == asked


def written(cells) -> None:
    """The table as far as it is done, what is missing and why, and downloads."""
    shown = st.session_state.get("shown") or "Measured"
    columns, rows = comparing.pivot(cells)
    papers = {(cell.model, str(cell.setting), cell.task): cell.published for cell in cells}
    records = []
    for model, setting, scores in rows:
        record = {"Model": model, "Setting": setting}
        for task in columns:
            value, paper = scores.get(task), papers.get((model, setting, task))
            number = {"Measured": value, "Published": paper and paper.value}.get(shown)
            if shown == "Difference":
                number = value - paper.value if value is not None and paper and paper.value is not None else None
            record["Average" if task == AVERAGE else task] = number
        records.append(record)
    names = list(records[0])[2:] if records else []
    st.dataframe(
        cache.marked_best(records, names) if shown == "Measured" else records,
        hide_index=True,
        height=38 + 35 * max(len(records), 1),
        column_config={
            name: st.column_config.NumberColumn(format="%+.2f" if shown == "Difference" else "%.2f") for name in names
        },
        placeholder="-",
    )
    known = [cell for cell in cells if cell.published is not None and cell.spearman is not None]
    if known:
        worst = max(known, key=lambda cell: abs(cell.spearman - cell.published.value))
        st.caption(
            f"{len(known)} cells have a published number ({known[0].published.place}). The largest difference is "
            f"{worst.spearman - worst.published.value:+.2f}: {worst.model}, {worst.setting}, {worst.task}."
        )
    else:
        st.caption("The papers print no number for these models under this protocol.")
    reasons = dict.fromkeys((cell.model, cell.reason) for cell in cells if cell.reason and cell.task != AVERAGE)
    if reasons:
        with st.expander("Why some scores are missing", expanded=True):
            for model, reason in reasons:
                st.markdown(f"**{model}**: {frame.plain(reason)}")


if ready:
    with st.container(horizontal=True, vertical_alignment="bottom"):
        st.segmented_control(
            "Show", ["Measured", "Published", "Difference"], default="Measured", key="shown", required=True
        )
    cells = cache.follow_grid(asked, written, chosen.own and chosen.own.pairs)
    if cells is not None:
        with st.container(horizontal=True):
            for form, label, ending in (
                ("csv", "CSV", "csv"),
                ("markdown", "Markdown", "md"),
                ("latex", "LaTeX", "tex"),
            ):
                st.download_button(
                    label,
                    lambda form=form: comparing.written(cells, form),
                    file_name=f"whitelab-{protocol}.{ending}",
                    key=f"as-{form}",
                    on_click="ignore",
                    icon=":material/download:",
                )
else:
    st.info("Nothing is computed before you press Compare: a model may have to be downloaded and every task embedded.")

with st.expander("What differs between the protocols?", icon=":material/difference:"):
    st.dataframe(
        [
            {
                "Protocol": one.label,
                "Subsets": one.aggregate,
                "Fitted on": one.fit,
                "Tokens": one.max_length,
                "Settings": one.settings.replace(";", ", "),
                "Source": one.source,
            }
            for one in PRESETS.values()
        ],
        hide_index=True,
    )
    st.caption(
        "The same vectors score several points apart under two of them: on STS12 `mean`, `wmean` and `all` are three "
        "different numbers, so compare only what was made alike."
    )

frame.close_page(
    opened,
    cache.score(opened.key, chosen.protocol(opened.pairs.source)),
    [
        (
            r"\text{avg}=\tfrac1T\sum_t \rho_t,\qquad \rho_t\in\{\text{all},\text{mean},\text{wmean}\}",
            "Plain mean over the tasks; how a task's subsets become one score is the protocol's choice",
        )
    ],
    "Each cell is a Spearman score (x 100) of one model, one way of pooling and averaging layers, one task. A published number "
    "stands beside it only where a paper prints one for the same thing under the same aggregation.",
    "import whitelab\nfrom whitelab.compare import compare, parse_settings, written\n\n"
    + (f"{chosen.own.code}\n" if chosen.own else "")
    + f"settings = parse_settings({';'.join(map(str, wanted))!r})\n"
    f"cells = list(compare({models!r}, {frame.data_in_code(chosen)}, {picked!r}, settings, {protocol!r}, store=whitelab.Store()))\n"
    "print(written(cells, 'markdown'))\n",
)
