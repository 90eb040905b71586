"""Switches of the environment, which the operator of a server turns. Imports nothing heavy, as `budget`."""

import os

TRAINING = "WHITELAB_TRAINING"  # off keeps visitors from beginning runs and corpora
ON, OFF = ("on", "yes", "true", "1"), ("off", "no", "false", "0")


def switched_on(variable: str) -> bool:
    """Whether a variable of the environment says on, as where it is unset. Raises ValueError for any other word."""
    word = os.environ.get(variable, "").strip().lower() or "on"
    if word not in (*ON, *OFF):
        raise ValueError(f"{variable}={word!r} must be on or off")
    return word in ON
