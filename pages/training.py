"""Training runs, watched as they shape the space."""

import streamlit as st

from whitelab.base.wording import capitalised, plain
from whitelab.encoding.names import ModelError
from whitelab.training import objectives, runs
from whitelab.training.objectives import OBJECTIVES
from whitelab.ui.frame.page import DEMO_NOTE, close_page, open_aside
from whitelab.ui.results import long_runs
from whitelab.ui.sidebar import workspace
from whitelab.ui.training import background, before_after, board, form, request

open_aside(
    "What does training do to the space?",
    "Look for a Spearman score that rises above its dashed start, and for the way there: towards the lower left, "
    "sentences spread out while similar ones stay close.",
)


def start(plan: request.TrainingPlan, known: list[background.Entry]) -> None:
    """Make the runs and let them wait for their turns; those for which there is no room wait for a click.

    One that is open already is not made again: a click may come twice.
    """
    for config in plan.configs:
        if same := next((one for one in known if one.open and plan.repeats(one.run, config)), None):
            board.show(same.name)
            continue
        try:
            run = runs.create(config, plan.corpus.sentences, plan.scored.pairs)
        except OSError as error:
            st.session_state[background.PROBLEM] = f"The run could not be written: {error}"
            return
        background.submit_all([run])
        board.show(run.name)


try:
    known = background.entries()
except ModelError as error:  # the operator's folder for runs
    st.error(plain(str(error)))
    st.stop()
with st.container(border=True, key="new-run"):
    plan = form.draw(known)
    with st.container(horizontal=True, vertical_alignment="center"):
        able = plan is not None and long_runs.allowed() and not long_runs.full()
        # Not by a callback, which has the plan that was drawn before: a click also enters the number just typed.
        clicked = st.button(
            f"Start these {len(plan.configs)} runs" if plan and len(plan.configs) > 1 else "Start this run",
            type="primary",
            key="start-run",
            disabled=not able,
            icon=":material/play_arrow:",
        )
        if clicked and able:
            start(plan, known)
            st.rerun()
        if not long_runs.allowed():
            st.markdown("Training is turned off here. Install whitelab on your own machine to train.")
        elif long_runs.full():
            st.markdown(long_runs.FULL)
        elif plan is not None:
            st.markdown(request.cost_words(plan.costs))
    if long_runs.allowed() and plan and (one := next((one for one in known if plan.repeats(one.run)), None)):
        state = "" if one.open else one.state  # which the board goes on to say
        st.caption(f"{capitalised(plain(runs.repeat_note(one.name, state)))}; another seed makes another run.")
    if plan is not None:
        st.caption(f"To be trained: {plain(request.plan_line(plan))}" + f". {DEMO_NOTE}" * plan.scored.demo)
if problem := st.session_state.pop(background.PROBLEM, None):
    st.error(plain(problem))
board.draw(known)
before_after.draw(known)
here = workspace.current()
opened = here and st.session_state[workspace.OPENED]

chosen = OBJECTIVES[objectives.parse(plan.config.objective).name] if plan else next(iter(OBJECTIVES.values()))
differs = f". Where it differs: {plain(chosen.departs)}" if chosen.departs else ""
close_page(
    here,
    opened,
    [
        (chosen.formula, f"{plain(chosen.source)}{differs}"),
        (
            r"\ell_{\text{align}}=\mathbb{E}\lVert u_x-u_y\rVert^2,\qquad "
            r"\ell_{\text{uniform}}=\log\,\mathbb{E}\,e^{-2\lVert u_x-u_y\rVert^2},\qquad "
            r"r_{\text{eff}}=e^{-\sum_i p_i\log p_i},\; p_i=\sqrt{\lambda_i}/\textstyle\sum_j\sqrt{\lambda_j}",
            "WhitenedCSE Eq. 9 and 10, Figure 3; effective rank: Roy and Vetterli 2007",
        ),
    ],
    f"**{chosen.label}.** {chosen.summary} Each step takes a batch of sentences, encodes each of them several times with "
    "other dropout masks, and changes the weights so that the loss falls. No label is read; the gold scores of the pairs "
    "only measure what came out, and choose the step that is kept.",
    "\n".join(filter(None, (board.code(known), plan.code if plan else ""))),
)
