"""What a sweep fits a map for, said where the sweep is: a map that is fitted to rows takes seconds."""

from collections.abc import Callable

from whitelab.encoding.embeddings import LayerEmbeddings

EVERY_LAYER = "every layer"


def fits_anew_for(what: str | Callable[[LayerEmbeddings], str]) -> Callable[[Callable], Callable]:
    """Declare that a function fits a map anew for each of `what`: words, or what gives them for a space."""

    def declared(sweep: Callable) -> Callable:
        sweep.fits_anew_for = what
        return sweep

    return declared


def fitted_anew_for(f: Callable, space: LayerEmbeddings) -> str:
    """What `f` fits a map anew for, in words; empty for a function that fits one map a setting."""
    what = getattr(f, "fits_anew_for", "")
    return what(space) if callable(what) else what
