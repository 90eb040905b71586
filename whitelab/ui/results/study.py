"""The one way from a page to a result: `study` at once, `study_job` in the background; equal requests share one.

What a result is called is derived from the function and its arguments, never typed: the name of the space on the
shelf, the text of a setting, and plain values. So a result cannot be taken for another, and a new argument is a new
result without anyone's doing.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import fields, is_dataclass
from functools import partial
from inspect import signature
from typing import Any

import streamlit as st

from whitelab.scoring.setting import Setting
from whitelab.ui.results.jobs import claim, jobs
from whitelab.ui.results.shelf import shelf
from whitelab.ui.results.worker import Job

RESULTS_KEPT = 2000  # of all visitors; a score of 20,000 pairs takes 160 kB, most take far less


def study(f: Callable, *args, **options) -> Any:
    """`f(*args, **options)`, computed once for all visitors as long as it is kept. Raises what `f` raises."""
    return _computed(name_of(f, *args, **options), partial(f, *args, **options))


@st.cache_resource(max_entries=RESULTS_KEPT, show_spinner=False)
def _computed(name: str, _work: Callable[[], Any]) -> Any:
    # `_work` is no part of the key, and need not be: the name is made from all there is in it.
    return _work()


def study_job(f: Callable, *args, title: str, unit: str, place: str = "", **options) -> Job:
    """`f(*args, progress=..., **options)` as a job; where `f` yields, its results grow.

    What `place` (a place on a visitor's page) asked for before makes way.
    """
    name = name_of(f, *args, **options)
    if place:
        claim(place, name)
    return jobs().submit(name, title, lambda progress: f(*args, progress=progress, **options), unit)


def name_of(f: Callable, *args, **options) -> str:
    """What the result of `f(*args, **options)` is called, the same for an argument by place, by name and by default.

    Raises TypeError for an argument that has no name.
    """
    bound = signature(f).bind_partial(*args, **options)
    bound.apply_defaults()
    parts = (f"{key}={named(value)}" for key, value in bound.arguments.items())
    return f"{f.__module__}.{f.__qualname__}({'; '.join(parts)})"


def named(value: Any) -> str:
    """A text that differs for every two arguments that differ."""
    if isinstance(value, Setting):
        return f"Setting({str(value)!r})"
    if value is None or isinstance(value, str | int | float | bool):
        return repr(value)
    if shelf().named(value):
        return f"<{shelf().name(value)!r}>"
    if isinstance(value, Mapping):
        return "{" + ", ".join(f"{named(key)}: {named(entry)}" for key, entry in value.items()) + "}"
    if isinstance(value, Sequence):
        return "(" + ", ".join(map(named, value)) + ")"
    if is_dataclass(value) and type(value).__dataclass_params__.frozen:
        parts = (f"{field.name}={named(getattr(value, field.name))}" for field in fields(value) if field.compare)
        return f"{type(value).__qualname__}({', '.join(parts)})"
    raise TypeError(f"value of type {type(value).__name__} must be plain, frozen or on the shelf to be part of a study")
