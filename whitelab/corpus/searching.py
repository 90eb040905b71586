"""The nearest texts to a sentence: exactly, shard by shard, or through a faiss index of them."""

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import NamedTuple

import numpy as np
import torch
from jaxtyping import Float, Int

from whitelab.base.checks import check_int
from whitelab.base.installation import need
from whitelab.base.wording import cut_note
from whitelab.corpus.applying import IDS, decoded_shard, not_whole, read_applied, read_map
from whitelab.corpus.chunks import TEXTS, rows_of
from whitelab.corpus.manifest import MANIFEST
from whitelab.datasets.layouts import existing_path
from whitelab.datasets.pairs import DataError
from whitelab.encoding.embed import EmbedReport, embed
from whitelab.encoding.encoders import load_encoder

INDEX = "index.faiss"
_DECIMALS = 6  # of a cosine: equal vectors at other places of a float32 product differ by some 1e-7


class Hit(NamedTuple):
    """A text that was found, the cosine of what is stored of it, and its row in the corpus."""

    id: str
    text: str
    cosine: float
    row: int


def search_corpus(
    folder: str | Path,
    queries: Sequence[str],
    top: int = 10,
    workers: int = 1,
    allow_bin: bool = False,
    note: Callable[[str], None] = lambda said: None,
) -> list[list[Hit]]:
    """The `top` texts nearest to each query, in an applied folder exactly, in an index as that finds them.

    Queries are embedded as the corpus was, by the model its manifest names (`allow_bin` as of `load_encoder`), and go
    through the same map; what there is to know of their embeddings is told to `note`. Raises DataError for a folder
    that is neither, ModelError for a model that cannot be had, ValueError for `top` below 1.
    """
    check_int(top, "top", 1)
    check_int(workers, "workers", 1)
    folder = existing_path(folder)
    manifest = read_applied(folder)
    asked, report = embedded(queries, folder, manifest, allow_bin)
    for said in report.notes:
        note(said)
    if report.truncated:
        note(cut_note(report.truncated, "sentence", manifest["max_length"]))
    if "index" in manifest:
        scores, rows = search_index(folder, manifest, asked, top)
        if manifest["index"]["kind"] != "flat":
            note("cosines are estimated from the index's codes: that of a near text can exceed 1")
    else:
        scores, rows = nearest(folder, manifest, asked, top, workers)
    known = named(folder, manifest, np.unique(rows[rows >= 0]))
    return [
        [Hit(*known[row], score, row) for score, row in zip(*line, strict=True) if row >= 0]
        for line in zip(scores.tolist(), rows.tolist(), strict=True)
    ]


def embedded(
    queries: Sequence[str], folder: Path, manifest: dict, allow_bin: bool = False
) -> tuple[Float[np.ndarray, "q m"], EmbedReport]:
    """Queries as the corpus's vectors are, in float32, and the report of their embedding.

    Raises DataError where the manifest says what its files, or the model that it names, do not bear out.
    """
    if not all(query.strip() for query in queries):
        raise ValueError("query must hold text, got an empty one")
    fitted = read_map(folder, manifest)
    loading = {"device": "cpu", "dtype": manifest["compute"], "max_length": manifest["max_length"]}
    encoder = load_encoder(manifest["loaded"], allow_bin=allow_bin, **loading)
    made = manifest.get("embedded", {}).get("encoder")
    if made not in (None, encoder.key(manifest["pooling"]).digest):
        raise DataError(
            f"{folder / MANIFEST} names {manifest['loaded']!r} with max_length={manifest['max_length']} and "
            f"dtype={manifest['compute']}, which is not what embedded the corpus: give it back its files, or run embed "
            "and apply again"
        )
    values, report = embed(encoder, [query.strip() for query in queries], manifest["pooling"])
    x = values[manifest["layers"]].double().mean(0)
    return torch.nn.functional.normalize(fitted(x)).float().numpy(), report


def nearest(
    folder: Path, manifest: dict, asked: Float[np.ndarray, "q m"], top: int, workers: int = 1
) -> tuple[Float[np.ndarray, "q t"], Int[np.ndarray, "q t"]]:
    """Exact neighbours: each shard is searched by itself, and what they found is merged, ties by the lower row.

    Rows count through the chunks in the order of the manifest. Memory: one shard a worker.
    """
    starts, names = [0], manifest["chunks"]
    for name in names[:-1]:
        starts.append(starts[-1] + rows_of(folder, name))
    work = partial(_in_shard, folder, manifest, asked, top)
    best = np.empty((len(asked), 0), np.float32), np.empty((len(asked), 0), np.int64)
    with ThreadPoolExecutor(workers) as pool:
        for scores, rows in pool.map(work, names, starts):
            best = merged(best, (scores, rows), top)
    return best


def _in_shard(folder: Path, manifest: dict, asked: np.ndarray, top: int, name: str, start: int):
    stored = decoded_shard(folder, name, manifest)
    scores = asked @ stored.T
    rows = np.broadcast_to(np.arange(start, start + len(stored)), scores.shape)
    return _best(scores, rows, top)


def merged(one: tuple, two: tuple, top: int) -> tuple[Float[np.ndarray, "q t"], Int[np.ndarray, "q t"]]:
    """The best of two lists of scores and rows; of scores that differ by rounding the lower row comes first."""
    return _best(np.hstack([one[0], two[0]]), np.hstack([one[1], two[1]]), top)


def _best(scores: np.ndarray, rows: np.ndarray, top: int) -> tuple[np.ndarray, np.ndarray]:
    told = scores.round(_DECIMALS)
    if scores.shape[1] > 4 * top:  # everything that ties with the last of the best stays in question
        least = -np.partition(-told, top - 1, axis=1)[:, top - 1 : top]
        keep = (told >= least).any(0)
        scores, rows, told = scores[:, keep], rows[:, keep], told[:, keep]
    order = np.lexsort((rows, -told), axis=1)[:, :top]
    return np.take_along_axis(scores, order, 1), np.take_along_axis(rows, order, 1)


def search_index(
    folder: Path, manifest: dict, asked: Float[np.ndarray, "q m"], top: int
) -> tuple[Float[np.ndarray, "q t"], Int[np.ndarray, "q t"]]:
    """Scores and rows, -1 where there are fewer. Raises DataError for an index that is not whole."""
    need("faiss")
    import faiss

    try:
        index = faiss.read_index(str(folder / INDEX))
    except RuntimeError:
        raise not_whole(folder / INDEX, manifest) from None
    if index.d != asked.shape[1]:
        raise not_whole(folder, manifest, f"its map gives {asked.shape[1]} columns, its index has {index.d}")
    return index.search(np.ascontiguousarray(asked), top)


def named(folder: Path, manifest: dict, rows: Int[np.ndarray, "r"]) -> dict[int, tuple[str, str]]:
    """Id and text of rows; no text where the embedded corpus is no longer there.

    Raises DataError where the files that hold them are not whole.
    """
    import pyarrow.dataset

    place = Path(manifest["corpus"]) / TEXTS
    texts = [place / f"{name}.parquet" for name in manifest["texts"]]
    if "index" in manifest:
        files = [folder / IDS]
    elif all(path.exists() for path in texts):
        files = texts
    else:
        files = [folder / f"{name}.parquet" for name in manifest["chunks"]]
    try:
        table = pyarrow.dataset.dataset(files).take(pyarrow.array(rows))
        ids = table["id"].to_pylist()
    except (OSError, pyarrow.ArrowException, IndexError, KeyError) as problem:
        if files is texts:
            raise DataError(f"{place}: not whole ({problem}); remove it and run embed again") from None
        if "index" in manifest:
            raise not_whole(folder / IDS, manifest) from None
        raise not_whole(folder, manifest, str(problem)) from None
    shown = table["text"].to_pylist() if "text" in table.column_names else [""] * len(rows)
    return dict(zip(rows.tolist(), zip(ids, shown, strict=True), strict=True))
