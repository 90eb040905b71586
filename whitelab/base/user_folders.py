"""Where things lie on this machine: paths as people type them, and the folders a system keeps for its user."""

import os
import sys
from pathlib import Path

# By kind: the variable that says it, and where it is on macOS and on other systems; Windows has one for both.
_KINDS = {
    "cache": ("XDG_CACHE_HOME", Path("Library", "Caches"), Path(".cache")),
    "data": ("XDG_DATA_HOME", Path("Library", "Application Support"), Path(".local", "share")),
}


def expanded(path: str | Path) -> Path:
    """The path with `~` expanded. Raises ValueError where the user it names has no home folder here."""
    try:
        return Path(path).expanduser()
    except RuntimeError as error:
        raise ValueError(f"{path}: cannot be opened ({error})") from None


def name_of(path: str | Path) -> str:
    """A path as it may leave the machine: the name of its file or folder, there or not, links not followed.

    Of `.`, `..` and `~` that is the folder's own name; text that is no path stays as it is.
    """
    if not str(path):
        return ""
    try:
        return Path(os.path.abspath(expanded(path))).name  # `..` taken out, which Path.absolute leaves in
    except (OSError, ValueError):  # no working directory, no home folder, a null character
        return Path(path).name


def user_folder(kind: str) -> Path:
    """whitelab's folder for `cache` or `data` among this user's, by the conventions of the system.

    Raises ValueError where there is no home folder.
    """
    variable, mac, usual = _KINDS[kind]
    if sys.platform == "win32":
        variable, usual = "LOCALAPPDATA", Path("AppData", "Local")
    elif sys.platform == "darwin":
        usual = mac
    given = Path(os.environ.get(variable, ""))
    return (given if given.is_absolute() else expanded("~") / usual) / "whitelab"
