"""How far long work is: a callback that its caller may draw, print or use to stop it."""

from collections.abc import Callable

Progress = Callable[[int, int], None]  # called with (done, total)


def silent(done: int, total: int) -> None:
    """Progress that nobody follows."""


class Steps:
    """Counts steps and tells `progress`."""

    def __init__(self, progress: Progress, total: int) -> None:
        self.progress, self.done, self.total = progress, 0, total

    def __call__(self) -> None:
        self.done += 1
        self.progress(self.done, self.total)


def part_of(progress: Progress, before: int, part: int, total: int) -> Progress:
    """A callback for `part` of the work, after `before` of it, that reports to the callback of the whole `total`."""
    return lambda done, of: progress(before + (part * done // of if of else 0), total)


def ticker(progress: Progress):
    """A class of silent progress bars for huggingface_hub's `tqdm_class`: `progress(done, total)` gets their bytes.

    `done` counts a bar's bytes from where it begins, and `total` is never less. Bars of other units are not reported.
    What `progress` raises comes out of the download, except where hf_xet reports from a thread of its own.
    """
    from huggingface_hub.utils import tqdm

    class Ticker(tqdm):
        def __init__(self, *args, **kwargs) -> None:
            self.counts_bytes = kwargs.get("unit") == "B"
            super().__init__(*args, **kwargs | {"disable": True})

        def update(self, n=1) -> None:
            self.n += n or 0
            if self.counts_bytes:
                progress(int(self.n), max(int(self.total or 0), int(self.n)))

    return Ticker
