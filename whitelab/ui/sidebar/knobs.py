"""The parameters of a choice as widgets: variants of whitening in the bar, objectives on the training page."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import nullcontext
from dataclasses import replace

import streamlit as st

from whitelab.base.parameters import Parameter, Spec
from whitelab.ui.widgets.address import bound

_PLACES = 40  # of a slider: among more, a hand in the bar does not find the one it wants


def spec(
    name: str,
    parameters: Sequence[Parameter],
    canonical: Callable[[str], str],
    dim: int,
    places: Iterator | None = None,
) -> str:
    """Draw the knobs of `name` that count and return its canonical spec.

    Each goes into the next of `places` (columns, say), or where the call is. A knob is named by its choice and keeps
    its value while another choice is shown.
    """
    values, parts = {}, []
    for one in parameters:
        if one.counts(values):
            with nullcontext() if places is None else next(places):
                values[one.name] = _knob(name, replace(one, default=one.usual(values)), dim)
            parts.append(f"{one.name}={values[one.name]}")
    return canonical(f"{name}:{','.join(parts)}" if parts else name)


def kept_spec(name: str, parameters: Sequence[Parameter], canonical: Callable[[str], str]) -> str:
    """The canonical spec that `spec` would return, without drawing: a knob never moved stands at its usual value."""
    values, parts = {}, []
    for parameter in parameters:
        if parameter.counts(values):
            key = f"{name}-{parameter.name}"
            words = (word for word in parameter.words if st.session_state.get(f"{key}-{word}"))
            value = next(words, st.session_state.get(key))
            values[parameter.name] = parameter.usual(values) if value is None else value
            parts.append(f"{parameter.name}={values[parameter.name]}")
    return canonical(f"{name}:{','.join(parts)}" if parts else name)


def put(found: Spec) -> None:
    """Move the knobs of a spec to its parameters, drawn or not."""
    state, values = st.session_state, dict(found.values)
    for one in found.parameters:
        key, value = f"{found.name}-{one.name}", values[one.name]
        for word in one.words:
            state[f"{key}-{word}"] = value == word
        if value not in one.words:
            state[key] = value


def _follow(key: str, usual) -> None:
    """Let a knob that stands at its usual value go where that goes."""
    state, before = st.session_state, st.session_state.get(f"usual-{key}")
    if before is not None and state.get(key) == before:
        state[key] = usual
    state[f"usual-{key}"] = usual


def _knob(name: str, one: Parameter, dim: int):
    key, state = f"{name}-{one.name}", st.session_state
    if one.multiple:
        _follow(key, one.default)
    lives = bound(key, one.default)
    if one.choices:
        return st.selectbox(one.title, one.choices, **lives, help=one.hint) or one.default
    if (one.default, one.low, one.high) in ((0, 0, 1), (1, 0, 1)) and isinstance(one.default, int):
        return int(st.toggle(one.title, bool(one.default), **lives, help=one.hint))
    for word in one.words:
        if st.toggle(f"{one.label} {word}", **bound(f"{key}-{word}", False), help=one.hint):
            return word
    high = dim + one.beyond_d if one.high is None else one.high
    low, start = type(one.default)(one.low), min(one.default, type(one.default)(high))
    if isinstance(state.get(key), int | float) and not one.low <= state[key] <= high:
        state[key] = start  # deleted, it would be what the browser still shows
    step = 1 if isinstance(one.default, int) else 0.05 if one.high and one.high > 1 else 0.001
    format_ = "%d" if step == 1 else None if step == 0.05 else "%.3f"
    if one.high is not None and round((high - one.low) / step) <= _PLACES:
        found = st.slider(one.title, low, type(one.default)(high), start, step, **lives, help=one.hint)
    else:
        found = st.number_input(
            one.title,
            low,
            type(one.default)(high),
            start,
            step,
            format=format_,
            **lives,
            help=one.hint,
        )
    return start if found is None else found
