"""Parts of the page of comparisons that are of one model, wherever several are chosen."""

from collections.abc import Callable
from dataclasses import dataclass

import streamlit as st

from whitelab.base.lazy import cached_property
from whitelab.base.wording import plain
from whitelab.encoding.checkpoints import on_disk
from whitelab.encoding.names import shown_name


@dataclass(frozen=True)
class OneModel:
    """Of the `chosen` models the first that is on this machine, else the `own` of the bar: no part downloads one."""

    chosen: tuple[str, ...]
    own: str
    dtype: str

    @cached_property
    def name(self) -> str:
        """Its name."""
        return next(filter(on_disk, self.chosen), self.own)

    def part(self, section: Callable[[], str]) -> Callable[[], str]:
        """A section that says of which model it is where others are chosen; its lines of code load that model."""

        def drawn() -> str:
            if self.chosen != (self.name,):
                why = "the first under Models" if self.name in self.chosen else "the bar's: none under Models is"
                st.caption(plain(f"Of one model: {shown_name(self.name)}, {why} on this machine."))
            lines = section()
            if not lines or self.name == self.own:  # which the code has loaded
                return lines
            return f"encoder = whitelab.load_encoder({self.name!r}, dtype={self.dtype!r})\n{lines}"

        return drawn
