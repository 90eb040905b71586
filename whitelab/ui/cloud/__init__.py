"""Two pictures that a hand changes: a cloud of points in the plane, and a curve over a few places.

Components without a build step: while a hand drags, the browser draws; on release the state comes here.
"""

from collections.abc import Mapping, Sequence
from pathlib import Path

import streamlit as st

from whitelab.lessons.clouds import KINDS, State
from whitelab.ui.widgets.component import component

_cloud, _sketch = (component(Path(__file__).parent, name, name, "picture", name) for name in ("cloud", "sketch"))


def cloud(
    key: str,
    kind: str,
    state: State,
    ghosts: Mapping | None = None,
    inks: Mapping[str, str] | None = None,
    still: bool = False,
) -> State:
    """Draw a cloud of `clouds.KINDS`, at first in `state`, and return the state it was dragged to; not if `still`.

    Behind it stand `ghosts`, points by name, in the colours `inks` has for them.
    """
    what = KINDS[kind]
    state = state if still else state_of(key, state)
    points = [[round(float(part), 4) for part in point] for point in what.points.tolist()]
    data = {"kind": kind, "points": points, "state": list(state), "names": list(what.names)}
    data |= {"limits": [list(pair) for pair in what.limits], "ghosts": dict(ghosts or {}), "still": still}
    data |= {"inks": dict(inks or {})}
    _cloud(key=key, data=data, on_state_change=_nothing)
    return state


def sketch(
    key: str,
    names: Sequence[str],
    heights: Sequence[float],
    limits: tuple[float, float],
    curves: Mapping[str, Sequence[float]] | None = None,
    inks: Mapping[str, str] | None = None,
    bars: bool = False,
) -> tuple[float, ...]:
    """Draw a curve, or bars, over `names`, at first at `heights`, and return what it was dragged to.

    Beside measured `curves` it stays as it is, and the axis closes in on what there is.
    """
    (low, high), fixed = limits, bool(curves)
    heights = tuple(heights) if fixed else state_of(key, tuple(heights))
    floor, ceiling = limits
    if fixed:
        every = [*heights, *(height for curve in curves.values() for height in curve)]
        floor = low if bars else max(low, 10 * ((min(every) - 5) // 10))
        ceiling = min(high, 10 * -(-(max(every) + 5) // 10))
    data = {"names": list(names), "state": list(heights), "low": low, "high": high, "fixed": fixed, "bars": bars}
    data |= {"floor": floor, "ceiling": ceiling, "inks": dict(inks or {})}
    data["curves"] = {name: list(curve) for name, curve in (curves or {}).items()}
    _sketch(key=f"{key}-measured" if fixed else key, data=data, on_state_change=_nothing)
    return heights


def state_of(key: str, start: tuple[float, ...]) -> tuple[float, ...]:
    """What the browser said last, `start` before that or where it said nonsense."""
    said = (st.session_state.get(key) or {}).get("state")
    if not isinstance(said, Sequence) or len(said) != len(start):
        return start
    return tuple(float(part) for part in said) if all(isinstance(part, int | float) for part in said) else start


def _nothing() -> None:
    """A component keeps a state only where somebody listens to it."""
