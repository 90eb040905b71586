"""How many sentences a map needs: the score by the sentences it is fitted on."""

from collections.abc import Sequence

import torch
from jaxtyping import Float
from torch import Tensor

from whitelab.base.checks import check_int
from whitelab.base.progress import Progress
from whitelab.encoding.embeddings import LayerEmbeddings, LayerRows
from whitelab.scoring.score import Score, score
from whitelab.scoring.setting import Setting


def sample_counts(space: LayerEmbeddings, sentences: int, seed: int = 0) -> Float[Tensor, "n"]:
    """1 for each of `sentences` unique sentences drawn at random, 0 for the others; a larger sample holds a smaller."""
    check_int(sentences, "sentences", 1, space.n_sentences, "n")
    order = torch.randperm(space.n_sentences, generator=torch.Generator().manual_seed(seed))
    counts = torch.zeros(space.n_sentences, dtype=torch.float64)
    counts[order[:sentences]] = 1.0
    return counts


def sentence_scores(
    space: LayerEmbeddings,
    settings: Sequence[Setting],
    sizes: Sequence[int],
    seed: int = 0,
    progress: Progress | None = None,
) -> tuple[tuple[Score, ...], ...]:
    """The scores of each setting, on all pairs, with its map fitted on a random sample of each size.

    All settings see the same samples. Raises ValueError for sizes the task does not have.
    """
    columns = []
    for size in sizes:
        name = f"{size} sentences"
        sampled = space.with_text(name, LayerRows(space.values, sample_counts(space, size, seed)))
        columns.append([score(sampled, setting.with_(fit=name), isotropy=False) for setting in settings])
        if progress:
            progress(len(columns), len(sizes))
    return tuple(zip(*columns, strict=True))
