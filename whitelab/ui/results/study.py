"""The one way from a page to a result: `study` at once, `study_job` in the background; equal requests share one.

What a result is called is derived from the function and its arguments, never typed: the name of the space on the
shelf, the text of a setting, and plain values. So a result cannot be taken for another, and a new argument is a new
result without anyone's doing.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import fields, is_dataclass
from functools import lru_cache, partial, wraps
from inspect import isfunction, signature
from pathlib import PurePath
from typing import Any

import streamlit as st
from streamlit.runtime.scriptrunner import get_script_run_ctx

from whitelab import whitening
from whitelab.base.progress import Progress, part_of
from whitelab.encoding.embeddings import LayerEmbeddings
from whitelab.retrieval.embedded import RetrievalSpace
from whitelab.scoring.fit_scopes import at_hand, fit_ahead
from whitelab.scoring.setting import Setting
from whitelab.sweeps.fitted_maps import fitted_anew_for
from whitelab.ui.results.jobs import AGREED, claim, jobs, wait
from whitelab.ui.results.memory import memory
from whitelab.ui.results.placed import placed
from whitelab.ui.results.shelf import shelf
from whitelab.ui.results.worker import Job, Unasked
from whitelab.whitening import label


def study(f: Callable, *args, **options) -> Any:
    """`f(*args, **options)`, computed once for all visitors as long as it is kept. Raises what `f` raises.

    Maps that are fitted to rows are fitted by a job first: until they are there, its progress ends the page here.
    """
    if get_script_run_ctx(suppress_warning=True) and not all(
        fitted(*one) for one in of_rows_in((*args, *options.values()))
    ):
        st.stop()
    work = partial(_computed, f, args, options)
    return memory().made(("result", name_of(f, *args, **options)), work)


def remembered(kind: str = "data", grows: bool = False) -> Callable[[Callable], Callable]:
    """A function whose values are kept for all visitors, by its arguments, which must have a name.

    `kind` is what the memory keeps the last of; `grows` says that the value takes more as it is used.
    """

    def decorated(f: Callable) -> Callable:
        @wraps(f)
        def call(*args, **options) -> Any:
            return memory().made((kind, name_of(f, *args, **options)), partial(f, *args, **options), grows)

        return call

    return decorated


def study_job(f: Callable, *args, title: str, unit: str, place: str = "", **options) -> Job:
    """`f(*args, progress=..., **options)` as a job; where `f` yields, its results grow.

    What `place` (a place on a visitor's page) asked for before makes way. A sweep that would fit many maps to rows
    waits until the visitor agrees to what that costs.
    """
    name = name_of(f, *args, **options)
    cost = _cost(f, (*args, *options.values()))
    if cost and f"ask/{name}" not in st.session_state.get(AGREED, ()) and jobs().get(name) is None:
        name, f, args, options = f"ask/{name}", _unasked, (cost,), {}
    if place:
        claim(place, name)
    return jobs().submit(name, title, lambda progress: _computed(f, args, options | {"progress": progress}), unit)


def _computed(f: Callable, args: tuple, options: Mapping[str, Any]) -> Any:
    """`f(*args, **options)` where it is to be computed; maps that are fitted to rows are fitted here, and kept here."""
    return f(*args, **options) if of_rows_in((*args, *options.values())) else placed(f, args, options)


def study_each(f: Callable, space: Any, settings: Iterable[Setting], *args, title: str, place: str) -> Job:
    """`f(space, setting, *args)` of each setting, a job whose results grow; each is shared with every other place."""
    return study_job(_each, f, space, tuple(settings), args, title=title, unit="settings", place=place)


def _each(
    f: Callable, space: Any, settings: Sequence[Setting], args: tuple, progress: Progress
) -> Iterator[tuple[Any, ...]]:
    found: tuple[Any, ...] = ()
    watched = "progress" in signature(f).parameters
    for count, setting in enumerate(settings):
        options = {"progress": part_of(progress, count, 1, len(settings))} if watched else {}
        found += (study(f, space, setting, *args, **options),)
        yield found
        progress(len(found), len(settings))


def of_rows_in(values: Iterable) -> list[tuple[LayerEmbeddings, tuple[Setting, ...]]]:
    """The space among arguments with the settings beside it whose maps are fitted to rows; none without either."""
    flat = [one for value in values for one in (value if isinstance(value, list | tuple) else (value,))]
    settings = [one for one in flat if isinstance(one, Setting) and whitening.of_rows(one.whitening)]
    for one in flat if settings else ():
        if isinstance(one, LayerEmbeddings):
            return [(one, tuple(settings))]
        if isinstance(one, RetrievalSpace):
            return [(one.space, tuple(one.on(setting) for setting in settings))]
    return []


def fitted(space: LayerEmbeddings, settings: Sequence[Setting], key: str = "fit-rows") -> bool:
    """Whether the maps of `settings` that are fitted to rows are there; if not, how far their job is has been drawn."""
    for setting in settings:
        try:
            while not at_hand(space, (setting,)):
                job = study_job(_fitted, space, setting, title=f"Fitting {label(setting.whitening)}", unit="%")
                if wait(job, key=key) is None:
                    return False
                jobs().forget(job.key)  # the space has the map, and lets go of it when it must
        except ValueError:
            continue  # what asks for it says why it cannot be fitted
    return True


def _fitted(space: LayerEmbeddings, setting: Setting, progress: Progress) -> bool:
    return bool(fit_ahead(space, (setting,), progress=progress))


def _cost(f: Callable, values: Iterable) -> str:
    """What a sweep costs whose every map is fitted to rows, in words; empty for anything else."""
    for space, settings in of_rows_in(values):
        if many := fitted_anew_for(f, space) or "every setting shown" * (len(settings) > 2):
            known = [one.cost["seconds"] for one in space.kept("maps", dict).values() if "seconds" in one.cost]
            each = f"about {known[-1]:.1f} s each" if known else "some seconds each"
            return f"{label(settings[0].whitening)} is fitted to the sentences themselves, anew for {many}: {each}."
    return ""


def _unasked(cost: str, progress: Progress) -> None:
    raise Unasked(cost)


def name_of(f: Callable, *args, **options) -> str:
    """What the result of `f(*args, **options)` is called, the same for an argument by place, by name and by default.

    `progress` is no part of it. Raises TypeError for an argument that has no name.
    """
    bound = _signature(f).bind_partial(*args, **options)
    bound.apply_defaults()
    parts = (f"{key}={named(value)}" for key, value in bound.arguments.items() if key != "progress")
    return f"{f.__module__}.{f.__qualname__}({'; '.join(parts)})"


_signature = lru_cache(1024)(signature)


def named(value: Any) -> str:
    """A text that differs for every two arguments that differ."""
    if isinstance(value, Setting):
        return f"Setting({str(value)!r})"
    if value is None or isinstance(value, str | int | float | bool | PurePath):
        return repr(value)
    if isfunction(value):
        return f"{value.__module__}.{value.__qualname__}"
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
