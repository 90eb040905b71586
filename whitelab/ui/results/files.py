"""Files on this machine, as caches know them."""

from collections.abc import Iterable
from contextlib import suppress
from hashlib import blake2b
from pathlib import Path


def file_stamp(files: Iterable[str | Path]) -> str:
    """A text that changes when a file is changed, comes or goes."""
    known = []
    for file in files:
        with suppress(OSError, ValueError):  # gone since it was listed, say, which whoever reads it says
            status = Path(file).stat()
            known.append((str(file), status.st_mtime_ns, status.st_size))
    return blake2b(repr(sorted(known)).encode("utf-8", "replace"), digest_size=16).hexdigest()
