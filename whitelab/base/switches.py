"""What the operator of a server sets in the environment. Imports nothing heavy, as `budget`."""

import os

TRAINING = "WHITELAB_TRAINING"  # off keeps visitors from beginning runs and corpora
THREADS = "WHITELAB_THREADS"  # of one operation; what is worked on side by side has all of them
ON, OFF = ("on", "yes", "true", "1"), ("off", "no", "false", "0")


def switched_on(variable: str) -> bool:
    """Whether a variable of the environment says on, as where it is unset. Raises ValueError for any other word."""
    word = os.environ.get(variable, "").strip().lower() or "on"
    if word not in (*ON, *OFF):
        raise ValueError(f"{variable}={word!r} must be on or off")
    return word in ON


def threads_each() -> int | None:
    """Threads that one operation may take: $WHITELAB_THREADS, None where it is unset. Raises ValueError."""
    text = os.environ.get(THREADS, "").strip(" ,")
    if not text:
        return None
    if not text.isdecimal() or not text.isascii() or int(text) < 1:
        raise ValueError(f"{THREADS}={text[:20]!r} must be a whole number, 1 or more")
    return int(text)
