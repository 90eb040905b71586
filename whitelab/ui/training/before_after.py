"""A trained model and its start under the bar's setting: what training and whitening do, apart and together."""

from collections.abc import Sequence

import streamlit as st

from whitelab.base.progress import Progress, part_of
from whitelab.base.wording import layers_in_words, plain
from whitelab.datasets import DataError, SentencePairs
from whitelab.encoding.checkpoints import find_model, version
from whitelab.encoding.embeddings import embed_pairs
from whitelab.encoding.names import ModelError, shown_name
from whitelab.scoring.score import score
from whitelab.scoring.setting import OWN_SENTENCES, Setting, scope_in_words, scope_name
from whitelab.store.embedding_store import Store
from whitelab.ui.frame.variants import LABELS
from whitelab.ui.results.jobs import jobs, wait
from whitelab.ui.sidebar import workspace
from whitelab.ui.sidebar.model import label, shared_encoder
from whitelab.ui.sidebar.opening import chosen_pairs, task_name
from whitelab.ui.sidebar.workspace import Workspace
from whitelab.ui.training.background import Entry
from whitelab.ui.training.board import SHOWN, scored_on
from whitelab.ui.widgets import address, asking
from whitelab.ui.widgets.chart import data_of, keep_rows, rounded_table

OF = "score-both"  # what is asked for


def draw(known: Sequence[Entry]) -> None:
    """Choose one of the runs on the board that has a model, and score it and its start; nothing where there is none."""
    shown = st.session_state.get(SHOWN) or ()
    chosen = [one for one in known if one.name in shown]
    here, runs = workspace.current(), {one.name: one.summary for one in chosen if one.summary.model}
    if here is None or here.given or not runs:
        return
    st.header("And under the bar's setting?")
    words = st.empty()
    with st.container(horizontal=True, vertical_alignment="bottom"):
        address.among("before-after-run", runs, next(iter(runs)))
        run = runs[st.selectbox("Run", list(runs), **address.linked("before-after-run", next(iter(runs))))]
        models = (run.config.model, run.model)
        try:
            pairs, (setting, where) = chosen_pairs(here), _setting(here, run.model)
            # `task_name` tells one content of a task from another, and one visitor's own from anybody else's.
            parts = (task_name(here, here.data.task, pairs), str(setting), *(f"{m}@{version(m)}" for m in models))
        except (DataError, ModelError) as error:
            st.error(plain(str(error)))
            return
        name = "before-after/" + "/".join(parts)
        asking.button("Score both", OF, name)
    of = dict.fromkeys(scored_on(one) for one in chosen if one.pairs_fingerprint and not one.unscored)
    curves = f"The curves above score raw vectors of the last layer on {plain(' and '.join(of))}. " if of else ""
    words.markdown(
        f"{curves}Here a run's start and its result are scored on "
        f"{plain(here.data.task)}, {plain(where)}, raw and under {LABELS.inline(setting.whitening)}."
    )
    if not asking.asked(OF, name):
        return
    work = jobs().submit(
        name, "Scoring both models", lambda progress: _scores(models, pairs, setting, here.dtype, progress), "sentences"
    )
    rows = wait(work, key="before-after", height=170)
    if rows is not None:
        made = {"run": run.name, "task": here.data.task, "split": pairs.split}
        said = setting.with_(fit=scope_name(setting.fit))
        data_of()  # the rows are of one run, and not of all that the board shows
        keep_rows(
            lambda: [
                {"model": shown_name(model), "setting": str(one), "spearman": value, **made}
                for model, row in zip(models, rows, strict=True)
                for one, value in zip((said.raw, said), row, strict=True)
            ],
            "score-both",
        )
        numbers = st.column_config.NumberColumn(format="%.2f")
        titles = ("Raw", LABELS.at(setting))
        rounded_table(
            [
                {"Model": title} | dict(zip(titles, row, strict=True))
                for title, row in zip((f"{label(models[0])}, the start", label(models[1])), rows, strict=True)
            ],
            dict.fromkeys(titles, numbers),
            alt="Spearman of the trained model and of its start, raw and mapped",
        )


def _setting(here: Workspace, model: str) -> tuple[Setting, str]:
    """The bar's setting, cut to what a trained model and its start have, and its layers and what it replaces in words.

    Raises ModelError.
    """
    files = find_model(model)  # its start has as many layers
    setting, instead = here.compared, ""
    if setting.fit not in OWN_SENTENCES:
        instead = f", maps fitted on the task's sentences and not on {scope_in_words(setting.fit)}"
        setting = setting.with_(fit="task")
    setting = setting.with_(k=setting.k and min(setting.k, files.dim))
    if missing := [layer for layer in setting.layers if layer > files.layers]:
        setting = setting.with_(layers=(files.layers,))
        return setting, f"layer {files.layers} (their last: they have no {layers_in_words(missing)}){instead}"
    return setting, f"{layers_in_words(setting.layers)} as in the bar{instead}"


def _scores(
    models: Sequence[str], pairs: SentencePairs, setting: Setting, dtype: str, progress: Progress
) -> list[list[float | None]]:
    """Spearman x 100 of each model, raw and under the setting. Raises ValueError for layers a model does not have."""
    rows, n = [], len(pairs.sentences)
    for number, model in enumerate(models):
        part = part_of(progress, number * n, n, len(models) * n)
        space, _ = embed_pairs(shared_encoder(model, dtype), pairs, setting.pooling, store=Store(), progress=part)
        rows.append([score(space, here).spearman for here in (setting.raw, setting)])
    return rows
