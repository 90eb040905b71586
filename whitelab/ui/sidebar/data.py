"""Which data, which task of it and which split, in the workspace bar."""

from dataclasses import dataclass

import streamlit as st

from whitelab import datasets
from whitelab.base.wording import plain
from whitelab.datasets import BUNDLED_SETS, DEMO, DataError, SentencePairs, TaskInfo
from whitelab.datasets.in_memory import PREFIX
from whitelab.datasets.layouts import OtherKindError
from whitelab.encoding.catalogue import guess_tokens
from whitelab.ui.results.files import file_stamp
from whitelab.ui.results.study import remembered
from whitelab.ui.sidebar import malformed, own_data
from whitelab.ui.sidebar.own_data import UPLOADED
from whitelab.ui.widgets.address import bound, one_of
from whitelab.ui.widgets.typed import typed_choice

REFUSED = "refused"  # session_state: why the model or the data of this run cannot be had
_CHOSEN = "data-chosen"  # session_state: what `choose` gave in this run
TO_DEMO = "data-gone"  # session_state: whether the bar goes back to the demonstration set
ELSEWHERE = "read-elsewhere"  # session_state: page that reads what is refused, key of its box, source
LOOKED_LATELY = 2.0  # seconds for which what lies at a place is taken to be what lay there

# Of what is no sentence pairs: the page that reads it, and the key of its box.
_READERS = {"retrieval set": ("retrieval", "searched-data"), "labelled texts": ("probe", "labelled")}

TITLES = {name: f"{title} (bundled)" for name, title in BUNDLED_SETS.items()}


@dataclass(frozen=True)
class Chosen:
    """A task of the data: which split of it, whether malformed rows are left out, and the stamp of its files."""

    source: str
    info: TaskInfo
    split: str
    lenient: bool
    stamp: str

    @property
    def task(self) -> str:
        """The task's name."""
        return self.info.name


@remembered()
def pairs_of(data: str, task: str, split: str, keep_going: bool, stamp: str) -> SentencePairs:
    """A task's pairs; `stamp` is that of the files, so a changed file is read again. Raises DataError."""
    return datasets.load(data, task, split, keep_going=keep_going)


@remembered()
def tokens_of(*pairs) -> tuple[int, int]:
    """About how many tokens the sentences of `pairs_of(*pairs)` have, and how many they are. Raises DataError."""
    sentences = pairs_of(*pairs).sentences
    return guess_tokens(sentences), len(sentences)


def current() -> Chosen | None:
    """What the bar has in this run, None where it says what is wrong with it."""
    return st.session_state.get(_CHOSEN)


def choose() -> Chosen | None:
    """The data, its task and split; None after saying what is wrong with it."""
    st.session_state[_CHOSEN] = None
    st.session_state[_CHOSEN] = chosen = _chosen()
    return chosen


def _chosen() -> Chosen | None:
    source = _source()
    if source in (UPLOADED, own_data.LABEL) or source.startswith(PREFIX):
        own = own_data.current()
        if own is not None:
            return Chosen(own.key, own.task, "all", False, "")
        st.session_state[own_data.LOST] = st.session_state[TO_DEMO] = True
        st.rerun()
    try:
        tasks = {task.name: task for task in _tasks(source)}
    except DataError as error:
        st.session_state[REFUSED] = f"{error}. Choose other data in the bar."
        if isinstance(error, OtherKindError):
            st.session_state[ELSEWHERE] = (*_READERS[error.kind], source)
        st.error(plain(str(error)))
        return None
    info = tasks[one_of("Task", tasks, "task", next(iter(tasks)), bound)]
    split = one_of("Split", info.splits, "split", info.split_like(), bound)
    lenient = st.session_state.get("keep", st.query_params.get("keep") == "true") is True
    if lenient or malformed.found(source):
        words = "They stay listed under the data's notes."
        lenient = st.checkbox("Leave malformed rows out", **bound("keep", False), help=words)
    return Chosen(source, info, split, lenient, file_stamp(info.files))


@st.cache_resource(ttl=LOOKED_LATELY, max_entries=100, show_spinner=False)
def _tasks(source: str) -> tuple[TaskInfo, ...]:
    """`datasets.discover`, which looks at every file of a place: half of what the bar costs where many move knobs."""
    return datasets.discover(source)


def _source() -> str:
    own, state = own_data.current(), st.session_state
    gone = state.pop(TO_DEMO, False)
    if gone:
        state["data"] = DEMO

    def shown(name: str) -> str:
        return (TITLES | {UPLOADED: own_data.LABEL}).get(name, name)

    source = typed_choice(
        "Data",
        [*BUNDLED_SETS, UPLOADED] if own else list(BUNDLED_SETS),
        **({"key": "data"} if gone else bound("data", DEMO, shown)),  # unbound, it takes what is gone out of it
        on_change=lambda: state.pop(own_data.LOST, None),
        format_func=shown,
        help="Type the path of a folder or file: STS in the WhiteningBERT layout, STS-B CSV, SICK, or any CSV, TSV, "
        "JSON, JSONL or Parquet with two text columns and one score. To upload a file, go to the Data page.",
    )
    return source or DEMO
