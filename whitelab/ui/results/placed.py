"""Where what pages ask for is computed: scores and sweeps where statistics are (`base.devices`), all else on the CPU.

Pages hold embeddings on the CPU. What is asked of a task's embeddings in `whitelab.scoring` and `whitelab.sweeps` is
asked of their copy on the GPU, where there is one that is worth it. What is small stays here on purpose: lessons,
verdicts on scores that are known, searches and probes. So do maps that are fitted to rows, which are fitted ahead.
"""

from collections.abc import Callable, Iterator, Mapping
from functools import lru_cache
from inspect import isgeneratorfunction
from typing import Any
from weakref import WeakSet

from whitelab.base.devices import for_statistics
from whitelab.base.machine import is_out_of_memory, within_memory
from whitelab.encoding.embeddings import LayerEmbeddings
from whitelab.encoding.encoders import choose_device
from whitelab.ui.results.memory import memory
from whitelab.ui.results.shelf import shelf

KIND = "on the device"
MOVED = ("whitelab.scoring.", "whitelab.sweeps.")  # whose functions are asked of the copy
LEFT = "the GPU has too little memory for these embeddings: they are computed with on the CPU"

_left: WeakSet[LayerEmbeddings] = WeakSet()  # embeddings that the device had too little memory for


@lru_cache
def statistics_device() -> str:
    """Where this process computes statistics: measured once, see `base.devices`."""
    return for_statistics(choose_device())


def has_left(space: Any) -> bool:
    """Whether the device had too little memory for these embeddings, which are computed with on the CPU since."""
    return isinstance(space, LayerEmbeddings) and space in _left


def placed(f: Callable, args: tuple, options: Mapping[str, Any]) -> Any:
    """`f(*args, **options)` of embeddings where they are computed with, on the CPU where memory runs out there.

    Results are numbers and arrays wherever they come from. What a generator yielded before memory ran out comes again.
    """
    if not f.__module__.startswith(MOVED) or statistics_device() == "cpu":
        return f(*args, **options)
    return (_each if isgeneratorfunction(f) else _whole)(f, args, options)


def _whole(f: Callable, args: tuple, options: Mapping[str, Any]) -> Any:
    if _fits(args, options):
        found = within_memory(lambda: (f(*_there(args), **_there(options)),))
        if found is not None:
            return found[0]
        _leave(args, options)
    return f(*args, **options)


def _each(f: Callable, args: tuple, options: Mapping[str, Any]) -> Iterator[Any]:
    if _fits(args, options):
        try:
            yield from f(*_there(args), **_there(options))
            return
        except (MemoryError, RuntimeError) as error:
            if not is_out_of_memory(error):
                raise
        _leave(args, options)  # not before the error is gone, whose traceback held what was taken
    yield from f(*args, **options)


def _spaces(value: Any) -> Iterator[LayerEmbeddings]:
    """The embeddings in arguments."""
    if isinstance(value, LayerEmbeddings):
        yield value
    elif isinstance(value, Mapping | list | tuple):
        for one in value.values() if isinstance(value, Mapping) else value:
            yield from _spaces(one)


def _fits(*given: Any) -> bool:
    return not any(space in _left for space in _spaces(given))


def _leave(*given: Any) -> None:
    for space in _spaces(given):
        _left.add(space)
        memory().remove((KIND, shelf().name(space)))


def _there(value: Any) -> Any:
    """Arguments with a copy on the device in the place of all embeddings, known by the same name."""
    if isinstance(value, LayerEmbeddings):
        name = shelf().name(value)
        return shelf().call(memory().made((KIND, name), lambda: value.to(statistics_device()), grows=True), name)
    if isinstance(value, Mapping):
        return {key: _there(one) for key, one in value.items()}
    return type(value)(map(_there, value)) if type(value) in (list, tuple) else value
