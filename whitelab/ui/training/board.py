"""The runs there are: a table to choose from, what can be done with each, and pictures that grow with them."""

import hashlib
from collections.abc import Sequence
from io import BytesIO
from pathlib import Path

import streamlit as st

from whitelab import figures
from whitelab.base.wording import amount, duration, plain, spaced
from whitelab.datasets import BUNDLED_SETS
from whitelab.encoding.checkpoints import check_model, find_model
from whitelab.encoding.names import BUNDLED, ModelError, ModelName
from whitelab.figures import heights
from whitelab.statistics.geometry import POSITIVES
from whitelab.training import COLLAPSED, DIVERGED, StepRecord
from whitelab.training.config import OPTIMISTIC
from whitelab.training.costs import seconds_left
from whitelab.training.runs import CANCELLED, DIED, FAILED, FINISHED, NOT_STARTED, RUNNING, WAITING, Run, RunError
from whitelab.ui.frame.page import DEMO_NOTE
from whitelab.ui.results import long_runs
from whitelab.ui.results.jobs import REDRAW, STREAM_SECONDS, redraw
from whitelab.ui.results.worker import is_open, time_left
from whitelab.ui.sidebar import model, workspace
from whitelab.ui.training import background
from whitelab.ui.training.background import ENDING, PROBLEM, Entry
from whitelab.ui.training.request import protocol_line
from whitelab.ui.widgets import address
from whitelab.ui.widgets.chart import chart, csv_button, data_of, rounded_table
from whitelab.ui.widgets.metric import Metric, change, headlines, number
from whitelab.ui.widgets.note import note
from whitelab.whitening.export import zip_folder

SHOWN = "training-shown"  # session_state: names of the runs this visitor has chosen
ADDRESS = "runs"  # the query parameter that says the same, in a row with commas
_UNKNOWN = "training-unknown"  # session_state: names in the address of which there is no run
_ASKED = "training-remove"  # session_state: the run whose removal is to be confirmed
OVERLAID = 6  # runs in one picture
DRAWN = 1000  # steps of a run in one picture
_SAID = ("run", "start", "corpus", "evaluation")  # of the chosen runs, below each of their pictures
_ICONS = {  # of runs that nobody trains and that wait for no turn
    FINISHED: ":material/check_circle:",
    CANCELLED: ":material/cancel:",
    FAILED: ":material/error:",
    COLLAPSED: ":material/compress:",
    DIVERGED: ":material/trending_up:",
    DIED: ":material/power_off:",
    NOT_STARTED: ":material/pause_circle:",
}


def draw(known: list[Entry]) -> None:
    """The board of the runs there are; it draws itself again as long as one is open, and the page when none is left."""
    live = any(one.open for one in known)
    # What is handed over is taken out by the run of the page; a fragment that runs again finds none and looks anew.
    st.fragment(_look, run_every=STREAM_SECONDS if live else None)([known], live)


def _look(handed: list[list[Entry]], live: bool) -> None:
    found = handed.pop() if handed else background.entries()
    if (live and not any(one.open for one in found)) or st.session_state.pop(REDRAW, False):
        st.rerun()
    _board(found)


def show(name: str) -> None:
    """Add a run to those this visitor looks at."""
    others = [one for one in st.session_state.get(SHOWN, []) if one != name]
    st.session_state[SHOWN] = [name, *others][:OVERLAID]


def _board(found: list[Entry]) -> None:
    if not found:
        st.info("No run yet. What one does to the space is drawn here, step by step.")
        return
    st.header("Runs")
    if waiting := [one for one in found if one.state == NOT_STARTED]:
        _start_all(waiting)
    chosen = _table(found)
    turns = sorted((one for one in found if one.open), key=lambda one: one.job.number if one.job else 0)
    for one in (*turns, *(one for one in chosen if not one.open)):
        _line(one)
    _say_where([one for one in chosen if one.summary.model and not one.open])
    if not chosen:
        st.info("Choose runs in the table to see them. Several are drawn over each other.")
        return
    made = [{"run": one.name} | trained_of(one) for one in chosen]
    data_of(**{name: ", ".join(dict.fromkeys(filter(None, (one[name] for one in made)))) for name in _SAID})
    for one in chosen:
        if one.records and (said := one.records[0].note):
            note(said, of=one.name)
    if not (foremost := _foremost(chosen)).unscored:
        _headlines(foremost)
    _pictures(chosen)
    for one in chosen:
        st.caption(plain(f"{'Scores' if one.pairs_fingerprint else 'Losses'} of {one.name}: {_protocol(one)}"))


def scored_on(one: Entry) -> str:
    """The pairs that a run was scored on, by their name and number; no path of this machine."""
    return (trained_of(one)["evaluation"] or "pairs given in Python") if one.pairs_fingerprint else "no pairs"


def _protocol(one: Entry) -> str:
    config, trained, scored = one.summary.config, trained_of(one), scored_on(one)
    line = protocol_line(config, one.summary.label, scored, trained["corpus"] or "sentences given in Python")
    if one.pairs_fingerprint:
        line += f". {OPTIMISTIC}. Alignment is over pairs with {POSITIVES[config.positives]}"
    return line + f". {DEMO_NOTE}" * (scored.partition(",")[0] in BUNDLED_SETS)


# ------------------------------------------------------------------------------------------------ table and actions


def _table(found: Sequence[Entry]) -> list[Entry]:
    """All runs in a table; those chosen in it, by default the newest and those that go on."""
    names = [one.name for one in found]
    wanted = _wanted(found)
    rows = [i for i, name in enumerate(names) if name in wanted]
    event = rounded_table(
        [_row(one) for one in found],
        _COLUMNS,
        height=heights.table(min(len(found), 6)),
        # Streamlit knows chosen rows by their place, so another list of runs is another table.
        key=f"runs-{hashlib.sha256(repr(names).encode()).hexdigest()[:12]}",
        on_select="rerun",
        selection_mode="multi-row",
        selection_default={"selection": {"rows": rows}},
        placeholder="",
        alt="The training runs with settings, state, scores and time",
    )
    chosen = [found[i] for i in sorted(event["selection"]["rows"]) if i < len(found)]
    _remember([one.name for one in chosen])
    if unknown := st.session_state[_UNKNOWN]:
        st.caption(f"The address names runs that are not on this machine: {plain(', '.join(unknown))}.")
    if len(chosen) > OVERLAID:
        st.caption(f"The first {OVERLAID} of {len(chosen)} chosen runs are drawn.")
    return chosen[:OVERLAID]


def _wanted(found: Sequence[Entry]) -> list[str]:
    """The runs to choose in a new table: as before, as in the address, or the newest and those that go on."""
    state, names = st.session_state, {one.name for one in found}
    wanted = state.get(SHOWN)
    if _UNKNOWN not in state:  # the first look of this visitor
        asked = list(filter(None, st.query_params.get(ADDRESS, "").split(",")))
        state[_UNKNOWN] = [name for name in asked if name not in names]
        known = [name for name in asked if name in names]
        if wanted is None and (known or (ADDRESS in st.query_params and not asked)):
            wanted = known
    if wanted is not None:
        return wanted
    newest = next((one for one in found if one.begun), found[0])
    return [one.name for one in found if one.open or one is newest]


def _remember(chosen: list[str]) -> None:
    """Keep the choice for this visitor and in the address, so that a reload or a link shows the same."""
    before = st.session_state.get(SHOWN)
    if before not in (None, chosen):
        st.session_state[_UNKNOWN] = []  # it was the last choice that had them
    st.session_state[SHOWN] = chosen
    if before is not None and set(before) != set(chosen):
        st.rerun()  # of the page: what stands below is of these runs, and a fragment may not write the address
    if st.query_params.get(ADDRESS) != ",".join(chosen):
        address.put(ADDRESS, ",".join(chosen))


def _start_all(waiting: Sequence[Entry]) -> None:
    """Start runs that wait for nobody, such as those the app was stopped before, as if each had been clicked."""
    n = len(waiting)
    st.button(
        f"Start the {n} waiting runs" if n > 1 else "Start the waiting run",
        key="start-waiting",
        on_click=_submit_all,
        args=([one.run for one in reversed(waiting)],),  # the newest stands first
        disabled=not long_runs.allowed() or long_runs.full(),
        icon=":material/play_arrow:",
        help=f"One after another, the oldest first; {long_runs.LONGEST} at most wait at a time.",
    )


def _submit_all(waiting: Sequence[Run]) -> None:
    background.submit_all(waiting)
    redraw()


_number, _text = st.column_config.NumberColumn, st.column_config.TextColumn
_COLUMNS = {
    "Run": _text(width=96),
    "Objective": _text(width=104),
    "State": _text(width=68),
    "Spearman": _text(width=104, help="Spearman x 100 before training → at the step that is kept."),
    "Gain": _number(format="%+.2f", width=50),
    "Scored on": _text(width=120),
    "Time": _text(width=56),
    "Steps × batch": _text(width=92),
    "Rate": _number(format="%.1e", width=54),
    "Seed": _number(width=40),
}


def _row(one: Entry) -> dict:
    found, config = one.summary, one.summary.config
    gain = None
    if _known(found.start, "spearman") is not None and _known(found.best, "spearman") is not None:
        gain = found.best.spearman - found.start.spearman
    steps = spaced(config.steps)
    return {
        "Run": one.name,
        "Objective": found.label,
        "State": one.state,
        "Spearman": _from_to(found.start, found.best),
        "Gain": gain,
        "Scored on": scored_on(one),
        "Time": duration(found.seconds) if found.seconds else "",
        "Steps × batch": f"{steps} × {config.batch * config.accumulation}" if config.batch else steps,
        "Rate": config.lr,
        "Seed": config.seed,
    }


def _known(record: StepRecord | None, field: str) -> float | None:
    return None if record is None else getattr(record, field)


def _from_to(start: StepRecord | None, best: StepRecord | None) -> str:
    before, after = _known(start, "spearman"), _known(best, "spearman")
    if after is None:
        return "" if before is None else f"{before:.2f}"
    return f"{after:.2f}" if before is None else f"{before:.2f} → {after:.2f}"


def _line(one: Entry) -> None:
    """One run: how far it is with Cancel, or how it ended with what can be done now."""
    with st.container(horizontal=True, vertical_alignment="center", key=f"line-{one.name}"):
        if one.open:
            _progress(one)
        else:
            _ended(one)
    if one.message and not one.open:
        st.warning(f"**{one.name}**: {plain(one.message)}.", icon=_ICONS.get(one.state))


def _progress(one: Entry) -> None:
    steps = one.summary.config.steps
    words = f"{one.name}: {one.state}"
    if one.state == "running":
        left = seconds_left(one.summary.config, one.records)
        words = f"{one.name}: step {spaced(one.summary.step)} of {spaced(steps)}"
        written = ", its last files are being written" if one.summary.step >= steps else ""
        words += f", {time_left(left)}" if left else written
    elif one.state == "waiting":
        words += long_runs.waits_for(one.job)
    elif one.state == ENDING:
        words = f"{one.name}: {one.summary.state}, its process is closing"
    st.progress(min(one.summary.step / steps, 1.0), words)
    if not is_open(one.job):
        st.caption(f"Trained by {one.run.owner()}.")
        return
    st.button(
        "Cancel",
        key=f"cancel-{one.name}",
        on_click=background.cancel,
        args=(one.run,),
        disabled=one.job.cancelling or one.state == ENDING,
        help="Stops after the step in hand. What was learned is kept, and the run can be resumed.",
    )


def _ended(one: Entry) -> None:
    found = one.summary
    scores = _from_to(found.start, found.best)
    kept = f", Spearman {scores} (kept: step {spaced(found.best.step)})" if found.best is not None and scores else ""
    icon = _ICONS.get(one.state, "")
    reached = (
        f" after step {spaced(found.step)} of {spaced(found.config.steps)}{kept}" if found.state != WAITING else ""
    )
    st.markdown(f"{icon} **{one.name}** {one.state}{reached}")
    if st.session_state.get(_ASKED) == one.name:
        then = f" The bar shows this model and turns to {plain(model.label(_instead(one)))}." if _in_bar(one) else ""
        st.markdown(f"Remove the run, its checkpoint and its model?{then}")
        st.button(
            "Remove for good",
            key=f"really-{one.name}",
            on_click=_remove,
            args=(one,),
            disabled=not long_runs.allowed(),
            type="primary",
        )
        st.button("Keep it", key=f"keep-{one.name}", on_click=lambda: st.session_state.pop(_ASKED, None))
        return
    if found.model:
        st.button(
            "Use this model",
            key=f"use-{one.name}",
            on_click=_use,
            args=(found.model,),
            icon=":material/model_training:",
            help=f"Every page then shows {found.model}: the encoder at "
            + ("its last checkpoint." if found.best is None else "the step that scored best."),
        )
        _hand_out(one.run)
    if found.resumable or one.state == NOT_STARTED:
        st.button(
            "Start" if one.state == NOT_STARTED else "Resume",
            key=f"resume-{one.name}",
            on_click=_resume,
            args=(one,),
            disabled=not long_runs.allowed() or long_runs.full(),
            icon=":material/resume:",
        )
    st.button(
        "Remove",
        key=f"remove-{one.name}",
        on_click=st.session_state.update,
        args=({_ASKED: one.name},),
        disabled=not long_runs.allowed(),
        icon=":material/delete:",
    )


def _hand_out(run: Run) -> None:
    """The model as a download, where visitors may begin runs and remove them: elsewhere they are the operator's."""
    if long_runs.allowed() and (size := _size(run.model_folder)):
        st.download_button(
            f"Download ({amount(size)})",
            lambda: _packed(run),
            file_name=f"{run.name}.zip",
            mime="application/zip",
            key=f"take-{run.name}",
            on_click="ignore",
            icon=":material/download:",
            help="The model as a folder that transformers and sentence-transformers load, packed when you press. Its "
            "README.md says how it was trained.",
        )


def _size(folder: Path) -> int:
    """Bytes of the files in a folder; 0 where another visitor has removed it."""
    try:
        return sum(file.stat().st_size for file in folder.rglob("*"))
    except OSError:
        return 0


def _packed(run: Run) -> bytes:
    """The model's folder as a .zip, under the run's name."""
    memory = BytesIO()
    zip_folder(run.model_folder, memory, run.name)
    return memory.getvalue()


def _say_where(trained: Sequence[Entry]) -> None:
    """Where the models of these runs lie, for who may begin runs; with no path of this machine."""
    if trained and long_runs.allowed():
        folders = ", ".join(f"`{one.name}/{one.run.model_folder.name}`" for one in trained)
        st.caption(
            f"{'The model lies' if len(trained) == 1 else 'The models lie'} in {folders}, among the runs of this app: "
            "`WHITELAB_RUNS`, or `whitelab/runs` in the data folder of the user who runs it."
        )


def _remove(one: Entry) -> None:
    st.session_state.pop(_ASKED, None)
    if not long_runs.allowed():
        return
    try:
        one.run.remove()
    except (RunError, OSError) as error:
        st.session_state[PROBLEM] = str(error)
    else:
        if _in_bar(one):
            workspace.turn(model=_instead(one))
        long_runs.queue().forget(str(one.run.folder))
        st.session_state[SHOWN] = [name for name in st.session_state.get(SHOWN) or [] if name != one.name] or None
    redraw()  # the bar lists models


def _in_bar(one: Entry) -> bool:
    """Whether the bar's model is the run's, or is made of it."""
    try:
        return ModelName.parse(st.session_state.get("model")).base == one.summary.model
    except ModelError:
        return False


def _instead(one: Entry) -> str:
    """What the bar turns to when the run's model is removed: its start, the bundled model where that is gone."""
    try:
        return check_model(one.summary.config.model)
    except ModelError:
        return BUNDLED


def _resume(one: Entry) -> None:
    background.submit(one.run)
    redraw()


def _use(name: str) -> None:
    """Turn the workspace to a model: its last layer, which is what was trained."""
    try:
        workspace.take([find_model(name).layers])
    except ModelError as error:  # another visitor removed it
        st.session_state[PROBLEM] = str(error)
        redraw()
    else:
        workspace.turn(model=name)


# ------------------------------------------------------------------------------------------------ numbers and pictures


def _foremost(chosen: Sequence[Entry]) -> Entry:
    """The chosen run that goes on, else the best of those that were scored on the pairs of the one that ended last."""
    known = [one for one in chosen if _known(one.summary.best, "spearman") is not None] or chosen
    last = max(known, key=lambda one: (one.summary.state == RUNNING, one.ended or 0))
    if last.summary.state == RUNNING:
        return last
    alike = [one for one in known if one.pairs_fingerprint == last.pairs_fingerprint]
    return max(alike, key=lambda one: _known(one.summary.best, "spearman") or 0.0)


def _headlines(one: Entry) -> None:
    """What training has done so far to a run, at the step that is kept."""
    start, best = one.summary.start, one.summary.best
    help = None if best is None else f"At step {spaced(best.step)}, which scored best."
    metrics = []
    for label, field, digits, good in (
        ("Spearman", "spearman", 2, "up"),
        ("Uniformity", "uniformity", 3, "down"),
        ("Alignment", "alignment", 3, "down"),
        ("Effective rank", "effective_rank", 1, "either"),
    ):
        now = _known(best, field)
        gain = change(now, _known(start, field), "against the start", digits) if best and best.step else None
        value = "not yet" if best is None else number(now, digits)
        note = "at the start" if best is not None and not best.step else None
        metrics.append(Metric(f"{label}, {one.name}", value, gain or note, good if gain else "", help))
    headlines(*metrics)


def _pictures(chosen: Sequence[Entry]) -> None:
    scored = [one for one in chosen if not one.unscored]
    if len({one.pairs_fingerprint for one in scored}) > 1:
        st.warning("These runs were scored on different pairs: compare their shapes, not their heights.")
    if unscored := [one.name for one in chosen if one.unscored]:
        st.info(f"No pairs to be scored on were given to {', '.join(unscored)}: only the loss is drawn.")
    runs, every = [as_mapping(one) for one in scored], [as_mapping(one) for one in chosen]
    pictures = {"training-loss": figures.training_curve(every, "loss", "Loss")}
    if scored:
        curve = figures.training_curve(runs, "spearman", "Spearman x 100", from_zero=False, start=True)
        above = {"training-spearman": curve, "training-plane": figures.training_plane(runs)}
        rank = figures.training_curve(runs, "effective_rank", "Effective rank")
        pictures = above | pictures | {"training-rank": rank, "training-spectrum": figures.training_spectrum(runs)}
    places = [place for _ in range(0, len(pictures) + 1, 2) for place in st.columns(2)]
    spectra = {"training-spectrum": lambda: spectrum_rows(scored)}
    for place, (key, figure) in zip(places, pictures.items(), strict=False):  # the last place is for words
        with place:
            chart(figure, key, spectra.get(key))
    with places[-1]:
        st.caption(
            "Colour is the objective, the dash tells its seeds apart. Losses of different objectives cannot be compared"
            + (
                "; Spearman, alignment, uniformity and rank can, when they are measured on the same pairs. "
                "Training towards the lower left of the plane spreads sentences without driving similar ones apart; a "
                "collapse runs to the lower right, where every sentence is the same. The spectrum shows the share of "
                "the variance along the 1st, 2nd, 4th, ... principal direction: flatter uses more of the space."
                if scored
                else "."
            )
        )
        csv_button(lambda: rows(chosen), "training")


def as_mapping(one: Entry) -> dict:
    """A run as the figures take it."""
    config = one.summary.config
    early = one.summary.state in (COLLAPSED, DIVERGED, FAILED, CANCELLED, DIED) and not one.open
    return {
        "name": one.name,
        "objective": config.objective,
        "seed": config.seed,
        "steps": config.steps,
        "stop": one.summary.state if early else "",
        "records": [record.as_dict() for record in thinned(one.records)],
    }


def thinned(records: Sequence[StepRecord]) -> list[StepRecord]:
    """About `DRAWN` of the records, evenly apart, with all that were evaluated, the first and the last."""
    every = -(-len(records) // DRAWN) or 1
    last = len(records) - 1
    return [one for i, one in enumerate(records) if i % every == 0 or i == last or one.uniformity is not None]


def rows(chosen: Sequence[Entry]) -> list[dict]:
    """Every step of the chosen runs, for a table."""
    columns = ("loss", "lr", "gradient_norm", "spearman", "alignment", "uniformity", "effective_rank", "seconds")
    return [
        {"run": one.name, "objective": one.summary.config.objective, "seed": one.summary.config.seed}
        | {"step": record.step}
        | {name: getattr(record, name) for name in columns}
        | trained
        for one in chosen
        for trained in (trained_of(one),)
        for record in one.records
    ]


def spectrum_rows(chosen: Sequence[Entry]) -> list[dict]:
    """The shares of variance of every scored step of the chosen runs, for a table: along the direction 2^i."""
    return [
        {"run": one.name, "step": record.step, "direction": 2**i, "percent_of_variance": 100 * share} | trained
        for one in chosen
        for trained in (trained_of(one),)
        for record in one.records
        for i, share in enumerate(record.spectrum or ())
    ]


def code(known: Sequence[Entry]) -> str:
    """The lines of Python that print the steps of the runs that are drawn, and the kept one's numbers; empty without.

    They read what the app keeps, so they are for who may begin runs: elsewhere runs lie on the operator's machine.
    """
    there = {one.name for one in known}
    drawn = tuple(name for name in st.session_state.get(SHOWN) or () if name in there)[:OVERLAID]
    if not drawn or not long_runs.allowed():
        return ""
    return (
        "# the runs that are drawn, as the app keeps them\n"
        "from whitelab.training.runs import find_run\n\n"
        f"for name in {drawn!r}:\n"
        "    run = find_run(name)\n"
        "    for record in run.records():\n"
        "        print(name, record.step, record.loss, record.spearman)\n"
        "    print(run.summary().start, run.summary().best, sep='\\n')  # before training, and the step that is kept\n"
    )


def trained_of(one: Entry) -> dict:
    """What was trained on what, how, and scored on which pairs, of which step the model is; no path of this machine."""
    config, best = one.summary.config.without_paths(), one.summary.best
    how = {name: config[name] for name in ("corpus", "batch", "accumulation", "steps", "pooling", "max_length")}
    return {"start": config["model"], **how, "evaluation": config["evaluation"], "kept_step": best and best.step}
