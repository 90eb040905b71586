"""Functions that return what they checked, or say clearly what was wrong with it.

`check_*` functions are the door of the package: a value that passed one is used without further
tests. Every message names the argument, what was expected and what came.
"""

import math
from collections.abc import Collection, Iterable
from numbers import Integral

import torch
from torch import Tensor

LARGEST = 1e70  # of a vector's entries: measures take the fourth power of sums of them


def check_int(value, name: str, low: int, high: int | None = None, high_name: str = "") -> int:
    """Return `value` as an int within `low..high` (`high` None: no upper bound)."""
    whole = is_whole(value)
    value = int(value) if whole else value
    if high is None:
        if not whole or value < low:
            raise ValueError(f"{name}={value!r} must be a whole number of at least {low}")
        return value
    label = f"{high_name}={high}" if high_name else str(high)
    if not whole:
        raise ValueError(f"{name}={value!r} must be a whole number between {low} and {label}")
    if not low <= value <= high:
        raise ValueError(f"{name}={value!r} must lie between {low} and {label}")
    return value


def check_positive(value: float, name: str) -> float:
    """Return `value` if it is a finite number above 0."""
    if not 0 < value < math.inf:
        raise ValueError(f"{name}={value!r} must be a number above 0")
    return value


def check_sentences(value) -> list[str]:
    """Return the sentences of `value`, as a list. Raises TypeError for one string, and for what is none among them."""
    if isinstance(value, str):
        raise TypeError(f"sentences={value[:80]!r} must be a sequence of strings, not one string")
    texts = list(value)
    for place, text in enumerate(texts):
        if not isinstance(text, str):
            raise TypeError(f"sentences[{place}]={text!r} must be a string")
    return texts


def check_choice(value: str, name: str, choices: Collection[str]) -> str:
    """Return `value` if it is one of `choices`."""
    if value not in choices:
        raise ValueError(f"{name}={value!r} must be one of {', '.join(map(str, choices))}")
    return value


def check_is(value, name: str, kind: type, such_as: str):
    """Return `value` if it is of a `kind`. Raises TypeError for all else, with what gives one."""
    if not isinstance(value, kind):
        raise TypeError(f"{name} must be {kind.__name__}, such as {such_as}, got {type(value).__name__}")
    return value


def check_several(values, name: str, kind: type, such_as: str, least: int = 1) -> tuple:
    """Return `values`, `least` or more, each of a `kind`, as a tuple.

    Raises TypeError for one alone and as `check_is`, ValueError for fewer.
    """
    if isinstance(values, (str, kind)) or not isinstance(values, Iterable):
        raise TypeError(f"{name} must be a sequence of {kind.__name__}, got {type(values).__name__}")
    found = tuple(check_is(value, f"{name}[{place}]", kind, such_as) for place, value in enumerate(values))
    if len(found) < least:
        raise ValueError(f"{name} must hold at least {least} {kind.__name__}, got {len(found)}")
    return found


def check_layers(layers: Iterable[int], count: int) -> tuple[int, ...]:
    """Return distinct layer numbers in ascending order, each within `0..count - 1`."""
    if isinstance(layers, str) or not isinstance(layers, Iterable):
        raise ValueError(f"layers={layers!r} must be several numbers, such as (1, {count - 1})")
    layers = tuple(layers)
    if not layers:
        raise ValueError(f"layers=() must name at least one of the layers 0 to {count - 1}")
    for layer in layers:
        if not is_whole(layer) or not 0 <= layer < count:
            raise ValueError(f"layers={list(layers)} must lie between 0 and {count - 1}, the last layer")
    if len(set(layers)) < len(layers):
        raise ValueError(f"layers={list(layers)} must not name a layer twice")
    return tuple(sorted(int(layer) for layer in layers))


def is_whole(value) -> bool:
    """Whether `value` is one of Python's or NumPy's integers, but not a bool."""
    return isinstance(value, Integral) and not isinstance(value, bool)


def as_tensor(x, name: str = "x") -> Tensor:
    """`x` as a tensor, a list in float64: Python's floats have 64 bits, of which torch would keep 32.

    What gives an array, such as a table of pandas or a column of it, is that array, in its own order whatever its
    index. An array whose rows or columns run backwards is copied, which torch would refuse, and one that cannot be
    written to, of which it would warn. Raises TypeError for what holds no numbers, such as text, and for lists of
    different lengths, ValueError for an array of which some are masked.
    """
    if isinstance(x, Tensor):
        return x
    kind = type(x)
    if hasattr(kind, "__array__") and not hasattr(kind, "__array_interface__"):
        x = x.__array__()  # torch would ask it for x[0], which is a column, or a row by its label
    mask = getattr(x, "mask", None)  # which torch would leave out
    if mask is not None and mask.any():
        raise ValueError(f"{name} must have no masked numbers, got {mask.sum()}")
    locked = not getattr(getattr(x, "flags", None), "writeable", True)
    if locked or min(getattr(x, "strides", ()), default=0) < 0:
        x = x.copy()
    try:
        return torch.as_tensor(x, dtype=torch.float64 if isinstance(x, (list, tuple)) else None)
    except (TypeError, ValueError, RuntimeError) as error:
        what = f"a tensor, an array or a list of numbers, got {kind.__name__}"
        raise TypeError(f"{name} must be {what}: {error}") from None


def check_shape(x, name: str, shape: str) -> Tensor:
    """Return `as_tensor(x)` if it has the `shape`, such as "d" or "n t": an axis a letter, equal sizes where a letter
    comes twice."""
    x, letters = as_tensor(x, name), shape.split()
    if x.ndim != len(letters) or len({*zip(letters, x.shape, strict=True)}) > len({*letters}):
        raise ValueError(f"{name} must have the shape [{', '.join(letters)}], got {list(x.shape)}")
    return x


def check_sides(a, b) -> tuple[Tensor, Tensor]:
    """Return the two sides of pairs, row i of `a [p, d]` and of `b [p, d]`, as tensors of one shape."""
    a, b = as_tensor(a, "a"), as_tensor(b, "b")
    if a.shape != b.shape or a.ndim != 2:
        raise ValueError(f"a and b must share the shape [p, d], got {list(a.shape)} and {list(b.shape)}")
    return a, b


def check_integers(x, name: str, shape: str) -> Tensor:
    """`check_shape` of a tensor or an array of integers. Raises TypeError for other numbers."""
    x = check_shape(x, name, shape)
    if x.is_floating_point() or x.is_complex() or x.dtype == torch.bool:
        raise TypeError(f"{name} must be a tensor or an array of integers, got {x.dtype}")
    return x


def check_permutation(x, size: int) -> Tensor:
    """`check_integers` of an order of `size` things. Raises ValueError where one is missing or comes twice."""
    x = check_integers(x, "permutation", "d")
    if sorted(x.tolist()) != [*range(size)]:
        raise ValueError(f"permutation must hold every number from 0 to d-1={size - 1} once")
    return x.long()


def check_real(x, name: str = "x") -> Tensor:
    """Return `as_tensor(x)` if its numbers are real. Raises ValueError for complex ones."""
    x = as_tensor(x, name)
    if x.is_complex():
        raise ValueError(f"{name} must hold real numbers, got {x.dtype}")
    return x


def widened(x: Tensor) -> Tensor:
    """`x` in a type to reckon in: integers become float64, float16 and bfloat16 float32, because their squares overflow
    or lose their digits."""
    if not x.is_floating_point():
        return x.to(torch.float64)
    return x.to(torch.float32) if x.dtype in (torch.float16, torch.bfloat16) else x


def check_matrix(x, name: str = "x") -> Tensor:
    """`check_batch` of rows as data: cut off from the network that may have made them, so that no gradient passes."""
    return check_batch(x, name).detach()


def check_batch(x, name: str = "x", rows: int = 1) -> Tensor:
    """Return `x` as a floating tensor `[n, d]` with at least `rows` rows, d >= 1, all values finite.

    None is above `LARGEST` in size. Of the type that `widened` gives. Gradients pass through.
    """
    x = check_real(check_shape(x, name, "n d"), name)
    if x.shape[0] < rows or x.shape[1] < 1:
        raise ValueError(f"{name} must have at least {rows} row(s) and 1 column, got {list(x.shape)}")
    x = widened(x)
    ends = torch.stack(x.aminmax())  # one pass and no table of flags
    if not (ends.isfinite() & (ends.abs() <= LARGEST)).all():
        bad = (~torch.isfinite(x)).any(dim=1).nonzero()
        if len(bad):
            raise ValueError(f"{name} must hold finite numbers, row {bad[0].item()} has NaN or infinity")
        largest, row = x.abs().amax(1).max(0)
        raise ValueError(
            f"{name} must hold numbers of at most {LARGEST:g} in size, whose squares' squares a computer can hold, row "
            f"{row.item()} has {largest.item():g}"
        )
    return x


def check_weights(weights, n: int) -> Tensor:
    """Return how often each of `n` rows counts, whole numbers that are not all 0, as float64 `[n]`."""
    weights = check_real(weights, "weights").to(torch.float64)
    if weights.shape != (n,):
        raise ValueError(f"weights must have the shape [{n}], got {list(weights.shape)}")
    if not torch.isfinite(weights).all() or (weights < 0).any() or weights.sum() <= 0:
        raise ValueError("weights must be finite, not negative, and not all zero")
    parts = weights[weights != weights.round()]  # n - 1 means nothing where n is a sum of shares
    if len(parts):
        raise ValueError(f"weights must be whole counts of rows, got {parts[0].item()}")
    return weights
