"""A visitor's own data: one set of pairs or vectors, kept in their session and seen by nobody else.

Whatever is cached for all visitors or put on the queue is named by `OwnData.key`, a name that cannot be guessed and is
never shown: the same file in another session is another thing. No title that others may read names a file.
"""

import secrets
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

import streamlit as st

from whitelab.datasets import DEMO, SentencePairs, TaskInfo, discover, hold
from whitelab.encoding.precomputed import Vectors

UPLOADED = "upload"  # the workspace's choice of data, or of text to fit on
LABEL = "Your upload"  # as the bar and the address show it
FIT_TEXT = "uploaded-text"  # session_state: what `fit_text` gives
FIT_FILE = "fit-file-number"  # session_state: which uploader of such a text is shown; the next one is empty
LOST = "upload-lost"  # session_state: the address asked for an upload this session does not have
_OWN, _SECRET = "own-data", "own-data-secret"  # session_state

GONE = (
    "The data of this link was uploaded in someone else's session, or in yours before the page was loaded anew. "
    "Uploads stay in their session, so the demonstration set is shown instead. Bring the file again on the Data page."
)
TEXT_GONE = (
    "The map is to be fitted on an uploaded text and this session has none, so the task's sentences are taken instead. "
    "A link's text was uploaded in someone else's session, or in yours before the page was loaded anew, and uploads "
    "stay in their session. Bring the file in the bar, or sentences on the Data page."
)


@dataclass(frozen=True, eq=False)
class OwnData:
    """Pairs, or vectors with theirs; `key` names it in every cache and for every reader of the core
    (`datasets.hold`), `code` reads it in Python as `pairs`."""

    key: str
    pairs: SentencePairs
    code: str
    vectors: Vectors | None = None

    @property
    def task(self) -> TaskInfo:
        """The pairs as the only task of their data."""
        return discover(self.key)[0]


def current() -> OwnData | None:
    """What this visitor has brought, None where that is nothing."""
    return st.session_state.get(_OWN)


def secret() -> str:
    """Random hex that only this session knows."""
    return st.session_state.setdefault(_SECRET, secrets.token_hex(16))


def use(pairs: SentencePairs, code: str, vectors: Vectors | None = None) -> None:
    """Hold this in place of what was held before, and turn the workspace to it. For callbacks of buttons."""
    forget()
    st.session_state[_OWN] = OwnData(hold(pairs), pairs, code, vectors)
    st.session_state["data"] = UPLOADED


def forget() -> None:
    """Let go of what is held and turn the workspace to the demonstration set. For callbacks of buttons."""
    st.session_state.pop(LOST, None)
    if st.session_state.pop(_OWN, None) is not None:
        st.session_state["data"] = DEMO


def vectors_name(own: "OwnData") -> str:
    """What results call the space of its vectors."""
    return f"vectors/{own.key}"


def hold_text(name: str, key: str, sentences: Sequence[str], how: str = "") -> None:
    """Hold sentences to fit on; `how` they were read stands behind their number."""
    st.session_state[FIT_TEXT] = text_key(key), name, Counter(sentences), how


def text_key(digest: str) -> str:
    """The key of this visitor's text in every cache."""
    return f"upload/{secret()}/{digest}"


def fit_text(key: str = "") -> tuple[str, str, Counter[str], str] | None:
    """Key, name and sentences of the text to fit on, and how they were read; None where there is none, or one of
    another key."""
    held = st.session_state.get(FIT_TEXT)
    return held if held and key in ("", held[0]) else None


def fit_on(name: str, key: str, sentences: Sequence[str]) -> None:
    """Hold sentences to fit on in place of any file, and turn the workspace to them. For callbacks of buttons."""
    hold_text(name, key, sentences)
    st.session_state[FIT_FILE] = st.session_state.get(FIT_FILE, 0) + 1
    st.session_state["fit"] = UPLOADED
