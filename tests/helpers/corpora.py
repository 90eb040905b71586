"""A corpus of few sentences that repeat, embedded in three chunks."""

from pathlib import Path

import numpy as np
import pyarrow.parquet as pq

from whitelab.corpus.chunks import vectors_in
from whitelab.corpus.embedding import embed_corpus


def small_text(path: Path, name: str = "man") -> Path:
    """40 lines, 17 of them different."""
    path.write_text("".join(f"a {name} number {i % 17} plays\n" for i in range(40)))
    return path


def embed(text, folder, model, *, layers=(-1,), chunk_texts=16, **asked):
    """`embed_corpus` in chunks of 16."""
    return embed_corpus(text, folder, model, layers, chunk_texts=chunk_texts, **asked)


def vectors(folder, manifest):
    """Every stored vector, in the order of the chunks' names."""
    tables = (pq.read_table(folder / f"{name}.parquet") for name in manifest.chunks)
    return np.concatenate([vectors_in(table["vector"]) for table in tables])
