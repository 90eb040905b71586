"""Any map in one .safetensors, which whitelab loads back."""

import json
from collections.abc import Mapping
from hashlib import blake2b
from pathlib import Path

from safetensors import SafetensorError, safe_open
from safetensors.torch import save as safetensors_of

import whitelab
from whitelab.base.user_folders import expanded
from whitelab.store.aside import write_aside
from whitelab.whitening import Map, RowMap
from whitelab.whitening.export.contents import as_json, as_record, check_is_map, check_kept, checked_map
from whitelab.whitening.export.places import ExportError, target, writing

# What safetensors raises for no file, another kind of file, a damaged one, and one that holds other things.
NOT_A_SAFETENSORS = (OSError, ValueError, TypeError, KeyError, SafetensorError)


def to_safetensors(path: str | Path, fitted: Map, protocol: Mapping) -> None:
    """Write any map as a .safetensors that `from_safetensors` loads back, with its `protocol`.

    The only form for maps that are no mean and matrix; whitelab itself has to apply it. Raises ExportError where it
    cannot be written, and for a map that keeps no direction.
    """
    path = target(path, is_safetensors)
    with writing(path):
        write_aside(path, safetensors_bytes(fitted, protocol))


def safetensors_bytes(fitted: Map, protocol: Mapping) -> bytes:
    """What `to_safetensors` writes."""
    check_is_map(fitted)
    check_kept(fitted)
    facts = {"name": fitted.name, "rank": fitted.rank, "k": fitted.k, "count": fitted.count}
    kind = "affine"
    if isinstance(fitted, RowMap):
        kind, facts = fitted.kind, facts | {"facts": fitted.facts}
    about = {"whitelab": whitelab.__version__, "kind": kind, "map": as_json(facts)}
    about["protocol"] = as_json(as_record(protocol))
    about["digest"] = fitted.digest  # the format has no checksum, as the .npz has
    about["text_digest"] = _text_digest(about)
    return safetensors_of({name: one.detach().cpu().contiguous() for name, one in fitted.parts.items()}, about)


def from_safetensors(path: str | Path) -> tuple[Map, dict]:
    """The map and the protocol that `to_safetensors` wrote.

    Raises ExportError for any other file, and where one number or word is not what was written (older files do not
    say).
    """
    wanted = f"path={str(path)!r} must be a .safetensors of a map, written by whitelab"
    try:
        with safe_open(expanded(path), "pt") as file:
            about, tensors = file.metadata(), {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
        kind, facts, protocol = about["kind"], json.loads(about["map"]), json.loads(about["protocol"])
    except NOT_A_SAFETENSORS:
        raise ExportError(wanted) from None
    if "text_digest" in about and about["text_digest"] != _text_digest(about):
        raise ExportError(f"{wanted}: its words are not those that were written, so it is damaged: export it again")
    return checked_map(kind, tensors, facts, protocol, wanted, about.get("digest"))


def _text_digest(about: Mapping[str, str]) -> str:
    """Hex digest of what a file says of its map, and of its numbers."""
    texts = [about.get(name) for name in ("kind", "map", "protocol", "digest")]
    return blake2b(json.dumps(texts).encode(), digest_size=16).hexdigest()


def is_safetensors(path: Path) -> bool:
    """Whether `to_safetensors` has written it."""
    try:
        from_safetensors(path)
    except ExportError:
        return False
    return True
