"""Published data to fetch: what it is, on what terms, and afterwards a button that makes it the workspace's data.

`section` is drawn by the page that is about data; it needs nothing but the workspace.
"""

import streamlit as st

from whitelab import datasets
from whitelab.base.wording import amount
from whitelab.datasets import SOURCES, Source
from whitelab.datasets.offered import is_offered
from whitelab.ui.results.jobs import jobs, wait
from whitelab.ui.sidebar.workspace import Workspace

ASKED = "download-asked"  # session_state: the source this visitor pressed Download for


def section(workspace: Workspace | None = None) -> None:
    """Choose a source, read its terms, fetch it, use it. `workspace` tells which data is in use already."""
    offered = [name for name in SOURCES if is_offered(name)]
    if not offered:
        st.caption("Whoever runs this server offers no data to fetch.")
        return
    name = st.selectbox(
        "Published data",
        offered,
        key="download-source",
        format_func=lambda name: f"{SOURCES[name].title} ({amount(SOURCES[name].size)})",
        help="Fetched once from the Hugging Face hub and kept in this machine's cache.",
    )
    source = SOURCES[name or offered[0]]
    _described(source)
    if datasets.fetched(source.name) is not None:
        _offered(source, workspace)
    elif st.session_state.get(ASKED) == source.name or jobs().is_open(_key(source.name)):  # also another visitor's
        if _fetched(source):
            st.rerun()
    else:
        _terms(source)


def _described(source: Source) -> None:
    splits = {task: [split for split in found if split != "test"] for task, found in source.tasks.items()}
    tasks = ", ".join(f"{task} (with {' and '.join(more)})" if more else task for task, more in splits.items())
    where = ", ".join(f"{remote.repo} at {remote.revision[:7]}" for remote in source.remotes[:1])
    more = f" and {len(source.remotes) - 1} more" if len(source.remotes) > 1 else ""
    st.markdown(f"Test pairs of {tasks}.")
    st.caption(f"From [{where}]({source.home}){more}. Licence: {source.licence}.")


def _terms(source: Source) -> None:
    with st.container(border=True, key="download-terms"):
        st.markdown(source.terms)
        accepted = st.checkbox("I have read these terms and accept them.", key=f"accept-{source.name}")
    st.button(
        f"Download {amount(source.size)}",
        key="download",
        type="primary",
        icon=":material/download:",
        disabled=not accepted,
        on_click=_ask,
        args=(source.name,),
    )


def _ask(name: str) -> None:
    st.session_state[ASKED] = name
    jobs().forget_finished(_key(name))  # its folder may have been removed since


def _key(name: str) -> str:
    return f"download/{name}"


def _fetched(source: Source) -> bool:
    """Whether it is here now, after drawing how far the job is that fetches it."""

    def work(progress):
        return datasets.fetch(
            source,
            accept_licence=True,
            progress=lambda done, total: progress(done // 1000, max(total // 1000, 1)),
        )

    job = jobs().submit(_key(source.name), f"Fetching {source.name}", work, "kB")
    return wait(job, key="download-job") is not None


def _offered(source: Source, workspace: Workspace | None) -> None:
    st.session_state.pop(ASKED, None)
    st.caption(f"Here as `{datasets.fetched(source.name)}`; its name is `{source.name}`.")
    if workspace is not None and workspace.data.source == source.name:
        st.success("This is the data in use.", icon=":material/check:")
    else:
        st.button(
            "Use as data",
            key="download-use",
            type="primary",
            icon=":material/table_view:",
            on_click=_use,
            args=(source,),
        )


def _use(source: Source) -> None:
    """Put the source's name into the workspace bar, which is drawn after this."""
    st.session_state["data"] = source.name
    for key in ("task", "split"):  # those of the data before
        st.session_state.pop(key, None)
