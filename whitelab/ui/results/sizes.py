"""How many bytes a value takes: arrays and tensors exactly, everything else about."""

import dataclasses
import sys
from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np
import torch

SAMPLED = 1000  # longer sequences are judged by so many of their items, evenly spread
WALKED = ("whitelab", "plotly", "scipy", "sklearn")  # packages whose objects are looked into
_PLAIN = (str, bytes, bytearray, int, float, complex, type(None), np.generic)
_CLOSED = (type, type(sys), type(lambda: 0))  # shared by all, and endless


def size_of(value: Any) -> int:
    """Bytes of `value` and of all it holds, each object counted once.

    Of a tensor or an array that is part of another, the whole is counted, because the whole stays alive; of one on a
    GPU, what it takes there. Whatever says its `nbytes` is believed.
    """
    seen: set[int] = set()
    total, waiting = 0.0, [(value, 1.0)]
    while waiting:
        one, times = waiting.pop()
        if isinstance(one, _PLAIN):
            total += times * sys.getsizeof(one)
            continue
        name, size, inside = _looked_into(one)
        if name not in seen:
            seen.add(name)
            total += times * size
            parts = inside if isinstance(inside, list | tuple) else list(inside)
            weight = times
            if len(parts) > SAMPLED:
                step = len(parts) / SAMPLED
                parts, weight = [parts[int(i * step)] for i in range(SAMPLED)], times * step
            waiting += [(part, weight) for part in parts]
    return round(total)


def _looked_into(one: Any) -> tuple[int, int, Iterable[Any]]:
    """What tells a value from others, its own bytes, and what it holds."""
    if isinstance(one, torch.Tensor):
        try:
            storage = one.untyped_storage()
            return storage.data_ptr() or id(one), storage.nbytes(), ()
        except RuntimeError:  # one that stands for another for a while, as a model's weights do during its export
            return id(one), one.numel() * one.element_size(), ()
    if isinstance(one, np.ndarray):
        while isinstance(one.base, np.ndarray):
            one = one.base
        return one.__array_interface__["data"][0], one.nbytes, one.ravel().tolist() if one.dtype == object else ()
    if isinstance(one, torch.nn.Module):
        return id(one), 0, (*one.parameters(), *one.buffers())
    if isinstance(one, _CLOSED):
        return id(one), 0, ()
    if isinstance(size := getattr(one, "nbytes", None), int):
        return id(one), size, ()
    own = sys.getsizeof(one, 64)
    if isinstance(one, Mapping):
        return id(one), own, [part for pair in list(one.items()) for part in pair]
    if isinstance(one, list | tuple | set | frozenset):
        return id(one), own, one
    if dataclasses.is_dataclass(one) or type(one).__module__.partition(".")[0] in WALKED:
        held = [getattr(one, name, None) for kind in type(one).__mro__ for name in vars(kind).get("__slots__", ())]
        return id(one), own, [*held, *list(getattr(one, "__dict__", {}).values())]
    return id(one), own, ()
