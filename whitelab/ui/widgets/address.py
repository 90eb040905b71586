"""Widgets that live in the address of the page, so that a copied link shows the same."""

import json
import re
from collections.abc import Callable, Container, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from difflib import SequenceMatcher
from itertools import islice
from typing import TypeVar

import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from whitelab.base.wording import plain

T = TypeVar("T")

_REWRITE = """changes => {
  const here = new URL(location.href)
  for (const [key, words] of Object.entries(changes)) {
    here.searchParams.delete(key)
    for (const word of words ?? []) here.searchParams.append(key, word)
  }
  if (here.href !== location.href) history.replaceState(history.state, "", here)
}"""

_PAGE, _OPENS = "address-page", "address-opens"  # session_state: the page drawn last; whether this run opens another
_READ = "address-read"  # session_state: of every knob first drawn inside `noted`, what stood in the address
_MISREAD = "address-misread"  # session_state: by place, what cannot be had of that, and what its knob was put to
_CHANGES, _TURN = "address-changes", "address-turn"  # session_state: what to rewrite, and how often that was done
_KEPT, _PLACE = "address-kept", "address-place"  # session_state: what `keep` was told last; where that is drawn
_SPELT = "address-spelt"  # session_state: what this page was asked for in other words than the app's: value and words
_CAME = "address-came"  # session_state: the address as Streamlit knew it when this run began
_BOUND = "address-bound"  # session_state: of every knob of the bar in this run, its default and how it is shown
_DRAWING = "address-drawing"  # session_state: whether the bar is being drawn
_HAD = "address-had"  # session_state: the keys that the address has had when runs of this session began
_ASKED = "address-asked"  # session_state: the keys that the knobs of this run have asked the address for
BAR, PAGE = "bar", "page"  # where a knob is
_LENGTH = 60  # characters of it that are shown
_ALIKE, _LOOKED_AT, _NAMED = 0.75, 20, 3  # from which ratio two words are; keys that are looked at; those that are said
# Keys that are much like another one of the app, and are not misspelt on a page that knows only that one.
LIKE_OTHERS = frozenset(
    ("apart", "model", "models", "part", "present", "preset", "see", "seed", "step", "task", "tasks")
)


def page() -> str:
    """The name of the page that is drawn, such as `overview`, once its bar is."""
    return st.session_state[_PAGE]


@contextmanager
def of(page: str, place: DeltaGenerator) -> Iterator[None]:
    """Draw the bar of `page` inside, so that `bound` knows when the page is being opened.

    What is to be rewritten goes from `place`, which takes no room.
    """
    state = st.session_state
    state[_OPENS] = state.get(_PAGE) != page
    state[_CHANGES], state[_BOUND], state[_ASKED], state[_DRAWING] = {}, {}, set(), True
    state[_SPELT] = {} if state[_OPENS] else state.get(_SPELT, {})
    state[_PLACE], state[_CAME] = place, _known()
    state[_HAD] = state.get(_HAD, set()) | set(state[_CAME])
    if state[_OPENS]:
        state[_MISREAD] = {}  # what was said on another page, of an address that is no more
    with noted(BAR):
        yield
    with place:
        _write()
    state[_PAGE], state[_OPENS], state[_DRAWING] = page, False, False


@contextmanager
def noted(where: str) -> Iterator[None]:
    """Draw knobs inside, `bound`, `linked` or `spelt`, of which `misread` is to tell."""
    state = st.session_state
    state[_READ] = {}
    try:
        yield
    finally:  # a page may stop where something is missing
        missed = {key: asked for key, asked in state.pop(_READ).items() if not _holds(key, *asked)}
        state.setdefault(_MISREAD, {}).setdefault(where, {}).update(
            {key: (asked[0], state.get(key)) for key, asked in missed.items()}
        )


def misread(where: str) -> str:
    """That the address asked for what cannot be had of knobs there, such as `k=abc`; mostly ''.

    It is said until each is moved or another page is opened.
    """
    state = st.session_state
    missed = [
        f"{key}={', '.join(asked)}"[:_LENGTH]
        for key, (asked, value) in state.get(_MISREAD, {}).get(where, {}).items()
        if state.get(key) == value
    ]
    return f"The address asks for {plain(', '.join(missed))}, which cannot be had here." if missed else ""


def misspelt() -> str:
    """That the address has keys no knob of this run asked for, but much like one that it lacks; mostly ''.

    It lacks none that it has had: Streamlit takes out a knob at its default. Of many keys the first are looked at, and
    few are said.
    """
    asked, had = (st.session_state.get(name, set()) for name in (_ASKED, _HAD))
    strange = (key for key in st.query_params if key not in asked | LIKE_OTHERS and len(key) <= _LENGTH)
    lacking = sorted(asked - had - set(st.query_params))
    meant = {key: found for key in islice(strange, _LOOKED_AT) if (found := likest(key, lacking))}
    if not meant:
        return ""
    has, knows = (", ".join(islice(keys, _NAMED)) for keys in (meant, dict.fromkeys(meant.values())))
    return f"The address has {plain(has)}; this page knows {plain(knows)}."


def likest(key: str, others: Iterable[str]) -> str:
    """That of the `others` a key may be misspelt for: it has as many words, each like the one there; '' where none is.

    By words, because `row-a` and `row-b`, or `settings-mteb` and `settings-simcse`, are two keys.
    """
    ratios = {other: _ratio(_words(key.casefold()), _words(other)) for other in others}
    best = max(ratios, key=ratios.get, default="")
    return best if ratios.get(best, 0) >= _ALIKE else ""


def _words(key: str) -> list[str]:
    return re.split("[-_]", key)


def _ratio(words: Sequence[str], others: Sequence[str]) -> float:
    if len(words) != len(others):
        return 0.0
    return min(SequenceMatcher(None, one, other).ratio() for one, other in zip(words, others, strict=True))


def _note(key: str, default, shown: Callable[[T], str]) -> None:
    """Remember what the address says of a knob that the session does not have yet."""
    state = st.session_state
    state.setdefault(_ASKED, set()).add(key)
    if key in st.query_params and key not in state and _READ in state:
        state[_READ][key] = (st.query_params.get_all(key), default, shown)


def _holds(key: str, asked: list[str], default, shown: Callable[[T], str]) -> bool:
    """Whether the knob stands where the address asked, in whichever way that was written."""
    value = st.session_state.get(key, default)
    values = value if isinstance(value, list) else [] if value is None else [value]
    written = (sorted(_bare(way(one)) for one in values) for way in (str, shown))
    return sorted(map(_bare, asked)) in written


def _bare(text: str) -> str:
    try:
        return str(float(text))
    except ValueError:
        return text.strip().casefold()


def bound(key: str, default, shown: Callable[[T], str] = str) -> dict:
    """The arguments of a widget that lives in the address, as `shown`, where its `default` is not written.

    A link clicked before the browser has read the address drops what stood there, while the session has it still.
    On the run that opens a page, the session therefore says again what the address lacks; later runs say nothing,
    because the address they see is not kept up to date. Whatever is not drawn for a while comes back as it was.
    """
    state = st.session_state
    if state.get(_DRAWING):
        state[_BOUND][key] = default, shown
    if state.get(_OPENS) and key not in st.query_params and state.get(key, default) != default:
        state[key] = state[key]
    return linked(key, default, shown) | {"persist_state": "session"}


def linked(key: str, default, shown: Callable[[T], str] = str) -> dict:
    """The arguments of a widget that lives in the address as long as it is drawn, as `shown` but for its `default`."""
    _note(key, default, shown)
    return {"key": key, "bind": "query-params"}


def told() -> dict[str, list[str]]:
    """What the address says of the bar's knobs that do not stand at their defaults, even where a link overtook it."""
    state, words = st.session_state, {}
    for key, (default, shown) in state.get(_BOUND, {}).items():
        value = state.get(key, default)
        if value is not None and value != default:
            values = value if isinstance(value, list) else [value]
            words[key] = [str(one).lower() if isinstance(one, bool) else shown(one) for one in values]
    return words


def among(key: str, options: Container[T], usual: T) -> None:
    """Put a knob that stands at none of its options to the usual one, before it is drawn.

    Streamlit would do so itself, and leave what is gone in the address.
    """
    if st.session_state.get(key, usual) not in options:
        st.session_state[key] = usual


def one_of(label: str, options: Iterable[str], key: str, usual: str, lives: Callable[..., dict] = linked) -> str:
    """One of several, in a box that lives in the address; the usual one, without a box, where it is the only one."""
    options = list(options)
    if len(options) == 1:
        return usual
    among(key, options, usual)
    return st.selectbox(label, options, options.index(usual), **lives(key, usual)) or usual


@contextmanager
def spelt(key: str, options: Iterable[T], shown: Callable[[T], str]) -> Iterator[None]:
    """Draw a knob inside whose option a link may name by itself (`cls`); the app writes it as shown (`[CLS]`)."""
    _note(key, None, shown)
    asked, fresh = st.query_params.get(key), key not in st.session_state
    found = [option for option in options if fresh and str(option) == asked != shown(option)]
    if found:
        st.session_state[key] = found[0]
    yield
    if found:
        respell(key, [shown(found[0])])


def respell(key: str, words: Sequence[str]) -> None:
    """Write into the address what a knob was set to from other words, which Streamlit takes out as none it knows."""
    state = st.session_state
    state[_SPELT] |= {key: (state.get(key), list(words))}
    _respell()
    if not state.get(_DRAWING):
        with state[_PLACE]:
            _write()


def _respell() -> None:
    """All that still stands so: with what Streamlit takes out, or corrects, what was written here before goes too."""
    state = st.session_state
    rewrite({key: words for key, (value, words) in state[_SPELT].items() if state.get(key) == value})


def settle() -> None:
    """Once the page is drawn: write again what is gone where one of its knobs had Streamlit send the address anew."""
    state = st.session_state
    if state.get(_SPELT) and _known() != state[_CAME]:
        _respell()
        with state[_PLACE]:
            _write()


def _known() -> dict[str, list[str]]:
    return {key: st.query_params.get_all(key) for key in st.query_params}


def keep(key: str, value, default) -> None:
    """Put a value into the session and, unless it is the default, into the address."""
    st.session_state[key] = value
    wanted = None if value == default else [str(value)]
    st.session_state[_KEPT] = st.session_state.get(_KEPT, {}) | {key: wanted}
    if (st.query_params.get_all(key) or None) != wanted:
        rewrite({key: wanted})


def rewrite(changes: Mapping[str, Sequence[str] | None]) -> None:
    """Let the browser put these words into the address, or (None) take a knob out, once the bar is drawn.

    It is no step in its history, for what the session keeps whatever step one goes back to.
    """
    st.session_state[_CHANGES] = st.session_state.get(_CHANGES, {}) | changes


def put(key: str, value: str) -> None:
    """Put a value into the address once the bar is drawn, a step of its history.

    Streamlit sends the whole address as it knows it, without what `keep` keeps.
    """
    st.query_params[key] = value
    rewrite(st.session_state.get(_KEPT, {}))
    with st.session_state[_PLACE]:
        _write()


def _write() -> None:
    """Draw what does so: always one element, and another text each time, or the browser would not run it again."""
    state = st.session_state
    state[_TURN] = state.get(_TURN, 0) + bool(changes := state.pop(_CHANGES, {}))
    asked = json.dumps(changes).replace("<", r"\u003c")
    st.html(f"<script>/* {state[_TURN]} */ ({_REWRITE})({asked})</script>", unsafe_allow_javascript=True)


def kept(key: str, default: T, read: Callable[[str], T]) -> T:
    """A value of the session that is no widget of Streamlit's; at first what the address says, where it can be read."""
    if key not in st.session_state:
        _note(key, default, str)
        try:
            return read(st.query_params[key])
        except (KeyError, ValueError):
            return default
    return st.session_state[key]
