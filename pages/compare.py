"""Models, settings and tasks side by side, and beside what the papers print."""

import streamlit as st

from whitelab import datasets
from whitelab.base.wording import plain
from whitelab.compare import PRESETS, Grid, settings_for
from whitelab.statistics.correlation import AGGREGATE_LABELS
from whitelab.ui.frame.page import close_page, need_a_model, open_page
from whitelab.ui.frame.recipe import data_in_code
from whitelab.ui.results.files import file_stamp
from whitelab.ui.sections import compare_grid, paper_figures, preset_walk
from whitelab.ui.sections.one_model import OneModel
from whitelab.ui.sidebar import model
from whitelab.ui.widgets import address
from whitelab.ui.widgets.chart import data_of
from whitelab.ui.widgets.tabs import tabs

chosen, opened = open_page(
    "Which model, and does it match what was published?",
    "Where a paper prints a number for the same thing, look at the difference from it: where all was done alike it is "
    "hundredths, not points. The best of a column is marked.",
    intervals=True,
)
need_a_model(
    chosen,
    opened,
    "Another model would have to embed the sentences, and vectors come without a model. Bring the pairs as text to compare models "
    "on them. Variants of these vectors are compared on the whitening page, their layers on the layers page.",
)
data_of()  # each part says of what its own is
infos = datasets.discover(chosen.data.source)
tasks = [info.name for info in infos]
left, right = st.columns([3, 2])
usual = compare_grid.first_models(chosen.model.name, chosen.data.source)
with left:
    models = st.multiselect(
        "Models",
        list(dict.fromkeys((chosen.model.name, *compare_grid.BUNDLED_MODELS, *model.options()))),
        default=usual,
        **address.linked("models", usual),
        accept_new_options=True,
        help="Type a Hugging Face name or the path of a folder. A model that is not here yet is downloaded.",
    )
    picked = st.multiselect("Tasks", tasks, default=tasks, **address.linked("tasks", tasks))
with right:
    with address.spelt("preset", PRESETS, lambda name: PRESETS[name].label):
        preset = st.selectbox(
            "Preset",
            list(PRESETS),
            key="preset",
            bind="query-params",
            format_func=lambda name: PRESETS[name].label,
            help="Decides aggregation, fit scope, text, longest sentence, and the settings compared at first.",
        )
    preset = preset or "whiteningbert"
    corpus = preset_walk.corpus_picker((preset,), "corpus-text")
    usual = PRESETS[preset].settings.replace(";", "\n")
    settings = st.text_area(
        "Settings, one a line",
        usual,
        **address.linked(f"settings-{preset}", usual),
        height=155,
        help="Such as L6, or cls/L1+L-1:pca@128: pooling, layers to average (L-1 is the last), whitening, k. `L*` stands "
        "for each layer in turn: `L*` and `L*:pca` are every layer, raw and whitened.",
    )
models, picked = (
    compare_grid.taken(models) or [chosen.model.name],
    [name for name in tasks if name in (picked or tasks)],
)
note = f"{PRESETS[preset].source}. {PRESETS[preset].note}"
if PRESETS[preset].aggregate != (bar := chosen.setting.aggregate):
    ways = tuple(AGGREGATE_LABELS[way].partition(": ")[2] for way in (PRESETS[preset].aggregate, bar))
    note += f" With subsets, the same vectors score differently here ({ways[0]}) and in the bar ({ways[1]})."
st.caption(note, help=f"Where it differs: {PRESETS[preset].departs}")
preset_walk.say_what_lacks([preset], chosen.data.source, picked)
stamp = file_stamp([file for info in infos for file in info.files])
try:
    wanted, starred = settings_for(models, settings.replace("\n", ";"))
    shared = preset, chosen.dtype, chosen.data.lenient, corpus, stamp
    allowed = (chosen.model.name,) if chosen.model.allow_bin else ()
    grid = Grid(models, chosen.data.source, picked, wanted, *shared, allow_bin=allowed, starred=starred)
except ValueError as error:
    st.error(plain(str(error)))
    st.stop()
one = OneModel(tuple(models), chosen.model.name, chosen.dtype)
paper_grid = paper_figures.PaperGrid.on(grid, one.name)
sections = {
    "Grid": lambda: compare_grid.section(grid),
    "Two presets": one.part(lambda: preset_walk.side_by_side(grid, one.name)),
    "WhiteningBERT, Figure 1": one.part(lambda: paper_figures.pair_heatmaps(paper_grid)),
    "WhiteningBERT, Figure 2": one.part(lambda: paper_figures.size_curve(paper_grid)),
    "BERT-whitening, Figure 1": one.part(lambda: paper_figures.k_curves(paper_grid)),
    "WhitenedCSE, Figures 1 and 3": lambda: paper_figures.losses(grid),
}
made = tabs(sections, "part") or ""

close_page(
    chosen,
    opened,
    [
        (
            r"\text{avg}=\tfrac1T\sum_t \rho_t,\qquad \rho_t\in\{\text{all},\text{mean},\text{wmean}\}",
            "Plain mean over the tasks; how a task's subsets become one score is the preset's choice",
        ),
        (
            r"s_b-s_a=\sum_i\big(s(\theta_1^b..\theta_i^b,\theta_{i+1}^a..)-s(\theta_1^b..\theta_{i-1}^b,\theta_i^a..)\big)",
            "A walk from preset a to preset b changes one decision at a time; the steps add up to the difference",
        ),
    ],
    "Each cell is a Spearman score (x 100) of one model, one way of pooling and averaging layers, one task. A published number "
    "stands beside it only where a paper prints one for the same thing under the same aggregation. The same vectors score "
    "several points apart under two presets, so compare only what was made alike.",
    f"data, tasks = {data_in_code(chosen)}, {picked!r}\n{made}",
)
