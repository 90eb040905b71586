"""What the file of a map holds: arrays on the way out, and on the way back a map whose parts were checked."""

import json
from collections.abc import Mapping

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor

from whitelab.base.checks import check_choice, check_int, check_is
from whitelab.base.wording import first_line
from whitelab.whitening import Map, RowMap, Whitener, affine
from whitelab.whitening.clusters import ClusterMap
from whitelab.whitening.export.places import ExportError
from whitelab.whitening.flow import FlowMap

ROW_MAPS = {one.kind: one for one in (ClusterMap, FlowMap)}


def as_affine(fitted) -> Whitener:
    """A map that is a mean and a matrix; raises ExportError for any other, TypeError for what is no map."""
    check_is_map(fitted)
    try:
        return affine(fitted, "this form holds a mean and a matrix: export it as safetensors")
    except ValueError as error:
        raise ExportError(str(error)) from None


def as_record(protocol) -> dict:
    """A protocol as a dictionary; raises TypeError for what is none, such as a `Protocol`, which has one."""
    return dict(check_is(protocol, "protocol", Mapping, "Protocol(setting, space.origin).as_dict() gives"))


def check_is_map(fitted) -> None:
    """Raise TypeError for what is no map, such as the estimator that has one."""
    check_is(fitted, "whitener", Map, "fit('pca', moments) gives and a WhiteningTransformer has as whitener_")


def check_kept(fitted: Map) -> None:
    """Raise ExportError for a map that keeps no direction."""
    if fitted.rank == 0:
        raise ExportError(
            f"whitening={fitted.name!r} has no direction to keep: the {fitted.count:g} row(s) it was fitted on do "
            f"not vary"
        )


def kept_matrix(whitener: Whitener) -> Float[np.ndarray, "d m"]:
    """The matrix of a map that keeps something."""
    check_kept(whitener)
    return as_numpy(whitener.dense)


def as_numpy(values: Tensor) -> np.ndarray:
    """Values in float64, wherever they lie."""
    return values.detach().cpu().to(torch.float64).numpy()


def as_float32(values: np.ndarray) -> np.ndarray:
    """Values rounded to float32; raises ExportError where it cannot hold them."""
    with np.errstate(over="ignore"):
        values = np.ascontiguousarray(values, dtype=np.float32)
    if not np.isfinite(values).all():
        raise ExportError("the map has entries above 3e38, which float32 cannot hold: scale the embeddings first")
    return values


def as_json(record: Mapping, indent: int | None = None) -> str:
    """A record as text."""
    return json.dumps(dict(record), ensure_ascii=False, indent=indent)


def checked_map(
    kind: str, tensors: dict[str, Tensor], facts, protocol, wanted: str, digest: str | None = None
) -> tuple[Map, dict]:
    """What a file holds, its tensors in float64. Raises ExportError, `wanted` and what is wrong, where it is no map."""
    try:
        if not isinstance(facts, dict) or not isinstance(protocol, dict):
            raise ValueError("what it says of its map and the protocol must be JSON objects")
        tensors = {name: _finite(one, name) for name, one in tensors.items()}
        fitted = (_whitener if kind == "affine" else _row_map)(kind, tensors, facts)
        if digest not in (None, fitted.digest):
            raise ValueError("its numbers are not those that were written, so the file is damaged: export it again")
        return fitted, protocol
    except KeyError as error:
        raise ExportError(f"{wanted}: it has no {error}") from None
    except (ValueError, TypeError) as error:
        raise ExportError(f"{wanted}: {first_line(error)}") from None


def _finite(values: Tensor, name: str) -> Tensor:
    if values.is_complex():
        raise ValueError(f"{name} must hold real numbers, got {values.dtype}")
    if not torch.isfinite(values).all():
        raise ValueError(f"{name} must hold finite numbers")
    return values.to(torch.float64)


def _whitener(kind: str, tensors: dict[str, Tensor], facts: dict) -> Whitener:
    mean, matrix = tensors["mean"], tensors["matrix"]
    if mean.ndim != 1 or matrix.ndim != 2 or len(mean) != len(matrix):
        found = f"{list(mean.shape)} and {list(matrix.shape)}"
        raise ValueError(f"mean [d] and matrix [d, m] must fit together, got {found}")
    _check_facts(facts, *matrix.shape)
    return Whitener(facts["name"], mean, matrix, facts["rank"], facts["k"], facts["count"])


def _row_map(kind: str, tensors: dict[str, Tensor], facts: dict) -> RowMap:
    check_choice(kind, "kind", ROW_MAPS)
    try:
        fitted = ROW_MAPS[kind](facts["name"], facts["rank"], facts["count"], tensors, facts["facts"])
        fitted(torch.zeros(1, fitted.dim, dtype=torch.float64))
    except (ValueError, TypeError, RuntimeError, IndexError):
        raise ValueError("its tensors must fit together") from None
    _check_facts(facts, fitted.dim, fitted.columns)
    return fitted


def _check_facts(facts: dict, dim: int, columns: int) -> None:
    name, count = facts["name"], facts["count"]
    if not isinstance(name, str):
        raise ValueError(f"name={name!r} must be text")
    check_int(facts["rank"], "rank", 1, columns)
    if facts["k"] is not None:
        check_int(facts["k"], "k", 1, dim, "d")
    if type(count) not in (int, float) or not 0 <= count < float("inf"):
        raise ValueError(f"count={count!r} must be a number of rows")
