"""An applied corpus -> a faiss index of it, and what that index finds of the exact neighbours."""

import json
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.dataset
import pyarrow.parquet as pq
from jaxtyping import Float

from whitelab.base.checks import check_choice, check_int
from whitelab.base.installation import need
from whitelab.corpus.applying import IDS, MAP, decoded, decoded_shard, map_of, read_applied, read_map
from whitelab.corpus.chunks import rows_of, vectors_in
from whitelab.corpus.manifest import MANIFEST, place_for
from whitelab.corpus.searching import INDEX, named, nearest
from whitelab.datasets.layouts import existing_path
from whitelab.store.aside import folder_aside, write_aside

KINDS = ("flat", "ivfpq")
_PROBES = 16  # lists that a search looks through
_TRAINED = 64  # rows a list, at most, for the centroids
_LEAST = 256  # rows, as many as a byte of a code has values, of which each is a centroid
_ASKED, _TOP = 200, 10  # rows of the corpus that ask for their neighbours when an index is measured
_TIED = 1e-5  # cosines this close are equal in float32


def build_index(
    folder: str | Path,
    out: str | Path,
    kind: str = "flat",
    lists: int | None = None,
    code_bytes: int | None = None,
    probes: int | None = None,
) -> dict:
    """Write `out`/index.faiss of an applied folder, its map and ids; the record tells its recall beside exact search.

    `flat` keeps float32 vectors. `ivfpq` has `lists` (None: four times the root of the rows, at most one for 40 rows),
    codes of `code_bytes` (None: an eighth of the dimensions), and looks through `probes` lists (None: 16). Recall at 10
    is that of 200 rows spread over the corpus, each without itself. An earlier index of this kind is replaced. Raises
    DataError for a folder that was not applied, ValueError for an `out` that holds an index of another kind, for a code
    that does not divide the dimensions, for more lists than vectors and for any of the three with `flat`, and one line
    where faiss is not installed.
    """
    check_choice(kind, "kind", KINDS)
    codes = {"lists": lists, "bytes": code_bytes, "probes": probes}
    if kind == "flat" and (given := [name for name, value in codes.items() if value is not None]):
        raise ValueError(f"{given[0]}={codes[given[0]]} is of kind='ivfpq', got kind='flat'")
    probes = check_int(_PROBES if probes is None else probes, "probes", 1)
    need("faiss")
    import faiss

    folder, out = existing_path(folder), place_for(out, "index", frozenset({INDEX, MAP, IDS, MANIFEST}))
    if (lies := _kind_at(out)) not in (None, kind):
        raise ValueError(
            f"out={str(out)!r} holds an index of kind={lies!r}, got kind={kind!r}: choose another folder or remove it"
        )
    manifest = read_applied(folder)
    read_map(folder, manifest)
    dim, rows = manifest["dim"], manifest["sentences"]
    if kind == "flat":
        index = faiss.IndexFlatIP(dim)
    else:
        if rows < _LEAST:
            raise ValueError(f"kind='ivfpq' needs {_LEAST} vectors or more, got {rows}: use flat")
        usual = max(1, min(int(4 * rows**0.5), rows // 40)), _code_bytes(dim)
        lists = check_int(usual[0] if lists is None else lists, "lists", 1, rows, "the number of vectors")
        code_bytes = check_int(usual[1] if code_bytes is None else code_bytes, "bytes", 1)
        if dim % code_bytes:
            raise ValueError(f"bytes={code_bytes} must divide the {dim} dimensions of the vectors")
        index = faiss.IndexIVFPQ(faiss.IndexFlatIP(dim), dim, lists, code_bytes, 8, faiss.METRIC_INNER_PRODUCT)
        index.cp.min_points_per_centroid = index.pq.cp.min_points_per_centroid = 1
        index.train(_sample(folder, manifest, max(_TRAINED * lists, 65_536)))
        index.nprobe = min(probes, lists)
    for name in manifest["chunks"]:
        index.add(decoded_shard(folder, name, manifest))
    recall = _recall(index, folder, manifest) if rows > _TOP else None
    found = {"kind": kind, "sentences": index.ntotal, "dim": dim, "recall@10": recall}
    if kind == "ivfpq":
        found |= {"lists": lists, "bytes": code_bytes, "probes": index.nprobe}
    out.parent.mkdir(parents=True, exist_ok=True)
    with folder_aside(out) as aside:
        faiss.write_index(index, str(aside / INDEX))
        (aside / MAP).write_bytes(map_of(folder, manifest).read_bytes())
        _write_ids(aside / IDS, folder, manifest)
        write_aside(aside / MANIFEST, json.dumps(manifest | {"map": MAP, "index": found}, indent=1).encode())
    return found


def _kind_at(out: Path) -> str | None:
    """The kind of the index that lies in the folder; None where there is none."""
    try:
        return json.loads((out / MANIFEST).read_bytes())["index"]["kind"]
    except (OSError, KeyError, TypeError):
        return None


def _write_ids(path: Path, folder: Path, manifest: dict) -> None:
    """Ids and texts of all rows, one chunk in memory."""
    schema = pa.schema({"id": pa.string(), "text": pa.string()})
    with pq.ParquetWriter(path, schema, compression="zstd") as file:
        start = 0
        for name in manifest["chunks"]:
            rows = np.arange(start, start := start + rows_of(folder, name))
            pairs = named(folder, manifest, rows).values()
            file.write_table(pa.table(dict(zip(schema.names, zip(*pairs, strict=True), strict=True)), schema))


def _code_bytes(dim: int) -> int:
    """The divisor of the dimensions that is nearest to an eighth of them."""
    return min((n for n in range(1, dim + 1) if dim % n == 0), key=lambda n: abs(n - dim / 8))


def _sample(folder: Path, manifest: dict, rows: int) -> Float[np.ndarray, "t m"]:
    """Rows spread over all chunks: every n-th, the same each time."""
    step = max(1, manifest["sentences"] // rows)
    return np.concatenate([decoded_shard(folder, name, manifest)[::step] for name in manifest["chunks"]])


def _recall(index, folder: Path, manifest: dict) -> float:
    """Mean share of what was found that lies as near as the exact neighbours: of equally near ones any will do."""
    asked = _sample(folder, manifest, _ASKED)[:_ASKED]
    exact, _ = nearest(folder, manifest, asked, _TOP + 1)  # itself among them, or a twin
    _, found = index.search(asked, _TOP + 1)
    rows, places = np.unique(found.clip(min=0), return_inverse=True)
    files = [folder / f"{name}.parquet" for name in manifest["chunks"]]
    taken = pyarrow.dataset.dataset(files).take(pa.array(rows), columns=["vector"])
    near = np.einsum("qm,qtm->qt", asked, decoded(vectors_in(taken["vector"]), manifest)[places.reshape(found.shape)])
    hits = ((near >= exact[:, -1:] - _TIED) & (found >= 0)).sum(1)
    return float(np.mean((hits - 1).clip(min=0) / _TOP))
