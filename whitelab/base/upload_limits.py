"""How much a visitor may bring: said before an upload, checked when it is read.

The one place for these numbers. They hold for uploads only; files on the operator's own machine have none.
"""

from whitelab.base.wording import spaced

TABLE_MB = 50  # a file of pairs, or of text to fit on
VECTORS_MB = 200  # the files of one set of vectors together; `maxUploadSize` in .streamlit/config.toml is the same
PASTED = 200_000  # characters in the box for pasted sentences
ROWS = 100_000  # pairs, or sentences of a list
COLUMNS = 200  # of a table
LAYERS = 128
DIM = 4096  # beyond, one eigendecomposition takes minutes
NUMBERS = 100_000_000  # layers x vectors x dimensions, 400 MB in float32


def of_table() -> str:
    """The limits of a file of pairs in one line."""
    return f"At most {TABLE_MB} MB, {spaced(ROWS)} rows and {COLUMNS} columns."


def of_vectors() -> str:
    """The limits of vectors in one line."""
    return (
        f"At most {VECTORS_MB} MB, {spaced(ROWS)} pairs, {LAYERS} layers, d = {DIM}, and "
        f"{NUMBERS // 1_000_000} million numbers in all."
    )
