"""Two presets side by side: what they decide differently, and which of those decisions moves the score."""

from collections.abc import Iterator, Sequence
from functools import partial
from itertools import accumulate

import streamlit as st

from whitelab import figures
from whitelab.base.progress import Progress
from whitelab.base.wording import plain
from whitelab.compare import (
    ALIKE,
    AVERAGE,
    FIELDS,
    PRESETS,
    Grid,
    Walk,
    decisions,
    differences,
    idle_words,
    lacking_splits,
    notes_of,
    walks,
    worded,
)
from whitelab.compare.presets import CORPUS
from whitelab.datasets import DEMO
from whitelab.figures import heights
from whitelab.scoring.setting import Setting, scope_name
from whitelab.store.embedding_store import Store
from whitelab.ui.results.jobs import follow
from whitelab.ui.results.study import study_job
from whitelab.ui.sidebar.model import shared_encoder
from whitelab.ui.widgets import address
from whitelab.ui.widgets.chart import chart, data_of, rounded_table
from whitelab.ui.widgets.choice import choice
from whitelab.ui.widgets.note import note

OWN = "each its own"


def corpus_picker(names: tuple[str, ...], key: str) -> str | None:
    """The text that a preset among `names` fits on, where one leaves that to its reader."""
    if not any(PRESETS[name].fit == CORPUS for name in names):
        return None
    return st.text_input(
        "Text to fit on",
        DEMO,
        **address.linked(key, DEMO),
        help="The paper takes both columns of SNLI and MNLI: give their path. A .txt with one sentence a line, a "
        "file or folder of pairs, or demo.",
    )


def say_what_lacks(names: Sequence[str], data: str, tasks: Sequence[str]) -> None:
    """Say where the data lacks splits that a preset among `names` fits on or scores."""
    note(*lacking_splits(names, data, tasks))


def side_by_side(grid: Grid, model: str) -> str:
    """Choose two presets: a table of what differs, and the steps from one to the other on `model`.

    Returns the lines that make the walk in Python; none where nobody asked for it.
    """
    other = "mteb" if grid.preset != "mteb" else "whiteningbert"
    first, second, third = st.columns(3)
    with first:
        a = _preset("From preset", "from-preset", grid.preset)
    with second:
        b = _preset("To preset", "to-preset", other)
    with third:
        chosen = st.selectbox(
            "Setting",
            [OWN, *map(str, grid.settings)],
            **address.linked("walk-setting", OWN),
            help="The row that each preset stands for, or one setting under both.",
        )
    setting = None if chosen in (None, OWN) else Setting.parse(chosen)
    corpus = corpus_picker((a, b), "walk-corpus")
    found = differences(a, b, setting, grid.data)
    _decisions(a, b, setting, found, grid.data)
    say_what_lacks((a, b), grid.data, grid.tasks)
    if not found:
        st.info("Nothing differs between them, so the scores are the same.")
        return ""
    read = {"dtype": grid.dtype, "keep_going": grid.keep_going, "corpus": corpus, "stamp": grid.stamp}
    read["allow_bin"] = grid.allow_bin
    own = Grid((model,), grid.data, grid.tasks, (), **read)
    if st.button("Walk from one to the other", key="walk", type="primary"):
        st.session_state["walked"] = own, a, b, setting
    if st.session_state.get("walked") != (own, a, b, setting):
        return ""
    title = f"Walking from {PRESETS[a].label} to {PRESETS[b].label}"
    job = study_job(_walked, own, a, b, setting, title=title, unit="scores", place="walk")
    follow(job, partial(_draw, setting, corpus), key="walk-part", caption=_caption, room=heights.PROJECTION)
    return _code(own, a, b, setting)


def _preset(title: str, key: str, usual: str) -> str:
    """The key of a preset that is chosen; a link may name it by its key or its label."""
    with address.spelt(key, PRESETS, _label):
        chosen = st.selectbox(
            title, list(PRESETS), list(PRESETS).index(usual), **address.linked(key, usual, _label), format_func=_label
        )
    return chosen or usual


def _label(name: str) -> str:
    return PRESETS[name].label


def _code(grid: Grid, a: str, b: str, setting: Setting | None) -> str:
    shared = f"whitelab.Setting.parse({str(setting)!r})" if setting else None
    return (
        "from whitelab.compare import walks\n\n"
        f"options = {{'setting': {shared}, 'keep_going': {grid.keep_going}, 'corpus': {grid.corpus!r}}}\n"
        f"for one in walks(encoder, data, tasks, {a!r}, {b!r}, store=whitelab.Store(), **options):\n"
        "    print(one.task, one.start, one.end, one.difference)\n"
        "    for step in one.steps:\n"
        "        print(step.field, step.spearman, step.change)\n"
    )


def _decisions(a: str, b: str, setting: Setting | None, found: dict, data: str) -> None:
    st.dataframe(
        [
            {"Decision": FIELDS[field], PRESETS[a].label: worded(field, one), PRESETS[b].label: worded(field, other)}
            for field, (one, other) in found.items()
        ]
        or [{"Decision": "Every field", PRESETS[a].label: "the same", PRESETS[b].label: "the same"}],
        hide_index=True,
        alt="What the two presets decide differently",
    )
    same = [f"{FIELDS[f].lower()}: {worded(f, v)}" for f, v in decisions(a, setting, data).items() if f not in found]
    st.caption(f"The same in both: {'; '.join([*same, *ALIKE])}.")
    for name in dict.fromkeys((a, b)):
        st.caption(f"**{PRESETS[name].label}** ({PRESETS[name].source}). Where it differs: {PRESETS[name].departs}")


def _walked(grid: Grid, a: str, b: str, setting: Setting | None, progress: Progress) -> Iterator[tuple[Walk, ...]]:
    """The walks of the grid's one model on its tasks, as they grow."""
    (model,), options = grid.models, {"setting": setting, "corpus": grid.corpus, "keep_going": grid.keep_going}
    options |= {"store": Store(), "progress": progress}
    found = walks(shared_encoder(model, grid.dtype, model in grid.allow_bin), grid.data, grid.tasks, a, b, **options)
    yield from accumulate((one,) for one in found)


def _caption(found: tuple[Walk, ...]) -> str:
    last = found[-1]
    if last.difference is None:
        return "A score on the way is not defined; the table says which."
    where = f"on average over {len(found) - 1} tasks" if last.task == AVERAGE else f"on {last.task}"
    text = f"{last.model} moves by **{last.difference:+.2f}** {where}"
    step = last.largest
    return text + (f", most by {FIELDS[step.field].lower()} ({step.change:+.2f})." if step else ".")


def _draw(setting: Setting | None, corpus: str | None, found: tuple[Walk, ...]) -> None:
    """The waterfall of one task or the average, and every step of every task."""
    names = [one.task for one in found]
    task = choice(
        "Task",
        names,
        AVERAGE if AVERAGE in names else None,
        key=f"walk-task-{len(names)}",
        format_func=lambda name: "Average" if name == AVERAGE else name,
    )
    one = next(walk for walk in found if walk.task == task)
    if one.difference is None or any(step.change is None for step in one.steps):
        st.warning(plain(one.gap))
    else:
        steps = [
            (FIELDS[s.field], f"{worded(s.field, s.before)} → {worded(s.field, s.after)}", s.change) for s in one.steps
        ]
        ends = (PRESETS[one.a].label, one.start), (PRESETS[one.b].label, one.end)
        settings = {name: str(setting or Setting.parse(PRESETS[name].setting)) for name in (one.a, one.b)}
        data_of(
            model=one.model,
            task=one.task,
            from_preset=one.a,
            from_setting=settings[one.a],
            to_preset=one.b,
            to_setting=settings[one.b],
            corpus=scope_name(corpus) if corpus else "",
        )
        chart(figures.walk_steps(*ends, steps), "walk-steps", lambda: _rows(found))
    table = [
        {"Step": FIELDS[field]}
        | {name: next((s.change for s in walk.steps if s.field == field), None) for name, walk in _titled(found)}
        for field in dict.fromkeys(step.field for walk in found for step in walk.steps)
    ]
    table.append({"Step": "Sum"} | {name: walk.difference for name, walk in _titled(found)})
    columns = {name: st.column_config.NumberColumn(format="%+.2f") for name, _ in _titled(found)}
    alt = "Points of Spearman by which each step of the walk moves the score"
    rounded_table(table, columns, alt=alt, placeholder="-", height=heights.table(len(table)))
    st.caption(
        "Points of Spearman x 100 that each choice moves the score by, changed one after the other from top to "
        "bottom. In another order the steps can differ, because choices depend on each other; their sum cannot."
    )
    if words := idle_words([field for field in one.idle if all(field in walk.idle for walk in found)]):
        st.caption(words)
    note(*notes_of(found))


def _titled(found: tuple[Walk, ...]) -> list[tuple[str, Walk]]:
    return [("Average" if walk.task == AVERAGE else walk.task, walk) for walk in found]


def _rows(found: tuple[Walk, ...]) -> list[dict]:
    return [
        {"task": walk.task, "field": s.field, "from": worded(s.field, s.before), "to": worded(s.field, s.after)}
        | {"spearman": s.spearman, "change": s.change}
        for walk in found
        for s in walk.steps
    ]
