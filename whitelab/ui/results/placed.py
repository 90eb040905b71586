"""Where what pages ask for is computed: scores and sweeps where statistics are (`base.devices`), all else on the CPU.

Pages hold embeddings on the CPU. What is asked of a task's embeddings in `whitelab.scoring` and `whitelab.sweeps` is
asked of their copy on the GPU, where there is one that is worth it. What is small stays here on purpose: lessons,
verdicts on scores that are known, searches and probes. So do maps that are fitted to rows, which are fitted ahead.
"""

from collections.abc import Callable, Iterator, Mapping
from typing import Any

import streamlit as st

from whitelab.base.budget import total_memory
from whitelab.base.devices import choose_device, for_statistics
from whitelab.base.machine import available_memory, is_device_full, within_memory
from whitelab.encoding.embeddings import LayerEmbeddings, LayerRows, MeasuredRows
from whitelab.ui.results.memory import Memory
from whitelab.ui.results.shelf import shelf

KIND = "on the device"
MOVED = ("whitelab.scoring.", "whitelab.sweeps.")  # whose functions are asked of the copy
LEFT = "the GPU has too little memory for some of what is asked of these embeddings here: the CPU computes that"


def statistics_device() -> str:
    """Where this process computes statistics, see `base.devices`."""
    return for_statistics(choose_device())


@st.cache_resource(show_spinner=False)
def copies() -> Memory:
    """Copies on the device, of half of what is free there when the first is made; the least recently used go first."""
    return Memory((available_memory(statistics_device()) or total_memory()) // 2)


@st.cache_resource(show_spinner=False)
def _left() -> set[tuple[str, frozenset[str]]]:
    """What was asked of which embeddings that the device had too little memory for."""
    return set()


def too_large(space: LayerEmbeddings) -> bool:
    """Whether anything asked of these embeddings was too large for the device."""
    return any(shelf().name(space) in names for _, names in _left())


def placed(f: Callable, args: tuple, options: Mapping[str, Any]) -> Any:
    """`f(*args, **options)` of embeddings where they are computed with, on the CPU where memory runs out there.

    Results are numbers and arrays wherever they come from. What an iterator yielded before memory ran out comes again.
    """
    if not f.__module__.startswith(MOVED) or statistics_device() == "cpu":
        return f(*args, **options)
    return _first_that_fits(_ways(f, args, options))


def _ways(f: Callable, args: tuple, options: Mapping[str, Any]) -> Iterator[Callable[[], Any]]:
    """How to compute it: with copies on the device, with no others beside them there, and at last on the CPU for good.

    One is asked for where those before found the device full.
    """
    asked = f"{f.__module__}.{f.__qualname__}", frozenset(map(shelf().name, _spaces((args, options))))
    if asked not in _left():
        yield lambda: f(*_there(args), **_there(options))
        copies.clear()
        yield lambda: f(*_there(args), **_there(options))
        _left().add(asked)
    yield lambda: f(*args, **options)


def _first_that_fits(ways: Iterator[Callable[[], Any]]) -> Any:
    for way in ways:
        found = within_memory(lambda way=way: (way(),), is_device_full)
        if found is not None:
            return _each(found[0], ways) if isinstance(found[0], Iterator) else found[0]
    raise MemoryError


def _each(values: Iterator, ways: Iterator[Callable[[], Any]]) -> Iterator:
    """The values; where the device is full before their end, those of the next of the ways."""
    try:
        yield from values
        return
    except RuntimeError as error:
        if not is_device_full(error):
            raise
    yield from _first_that_fits(ways)  # not before the error is gone, whose traceback held what was taken


def _spaces(value: Any) -> Iterator[LayerEmbeddings]:
    """The embeddings in arguments."""
    if isinstance(value, LayerEmbeddings):
        yield value
    elif isinstance(value, Mapping | list | tuple):
        for one in value.values() if isinstance(value, Mapping) else value:
            yield from _spaces(one)


def _there(value: Any) -> Any:
    """Arguments with a copy on the device in the place of all embeddings, known by the same name."""
    if isinstance(value, LayerEmbeddings):
        copy = _copy(value.plain, value.kept(KIND, object))  # one of all that carry text beside the same embeddings
        for name, rows in value.texts.items():
            copy = copy.with_text(name, _copy(rows, shelf().name(rows) if shelf().named(rows) else rows))
        return shelf().call(copy, shelf().name(value))
    if isinstance(value, Mapping):
        return {key: _there(one) for key, one in value.items()}
    return type(value)(map(_there, value)) if type(value) in (list, tuple) else value


def _copy(of: LayerEmbeddings | LayerRows | MeasuredRows, key: Any) -> Any:
    return copies().made((KIND, key), lambda: of.to(statistics_device()), grows=True)
