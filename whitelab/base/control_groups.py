"""What the control groups of a process leave it of the machine's memory: a container's limit, or a service's."""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

_ROOT, _OWN = Path("/sys/fs/cgroup"), Path("/proc/self/cgroup")
# Of version 2 and of version 1: a group's limit, what it uses, and in memory.stat the files that the kernel would drop.
_UNIFIED = ("memory.max", "memory.current", "inactive_file")
_LEGACY = ("memory.limit_in_bytes", "memory.usage_in_bytes", "total_inactive_file")


@dataclass(frozen=True)
class MemoryLimit:
    """Bytes: the most that a group may take, and how much of that is `left`, files that can be dropped among it."""

    most: int
    left: int


def memory_limits(root: Path = _ROOT, own: Path = _OWN) -> list[MemoryLimit]:
    """The limits of this process's groups and of those they lie in; none where the system knows no such thing."""
    found = (_limit(folder, names) for folder, names in _folders(root, own))
    return [one for one in found if one is not None]


def _folders(root: Path, own: Path) -> Iterator[tuple[Path, tuple[str, str, str]]]:
    """The folders of the groups. A container sees its own as the root, whatever its name is outside."""
    try:
        lines = [line.split(":", 2) for line in own.read_text("utf-8").splitlines()]
    except (OSError, ValueError):
        lines = []
    of = {controller: Path(path.lstrip("/")) for _, several, path in lines for controller in several.split(",")}
    for home, controller, names in ((root, "", _UNIFIED), (root / "memory", "memory", _LEGACY)):
        group = of.get(controller, Path())
        for one in (group, *group.parents):
            yield home / one, names


def _limit(folder: Path, names: tuple[str, str, str]) -> MemoryLimit | None:
    most, used, droppable = names
    try:
        limit, taken = (int((folder / name).read_text("utf-8")) for name in (most, used))
        stat = dict(line.split() for line in (folder / "memory.stat").read_text("utf-8").splitlines())
        return MemoryLimit(limit, max(limit - taken + int(stat.get(droppable, 0)), 0))
    except (OSError, ValueError):  # no such limit here, or the word "max"
        return None
