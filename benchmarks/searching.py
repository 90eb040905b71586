"""Scores of many settings at once, against computing them one at a time."""

from collections.abc import Iterator
from functools import partial
from itertools import combinations

import numpy as np
import torch
from scipy.stats import spearmanr

import whitelab
from benchmarks import rivals
from benchmarks.harness import Options, Table, compared, exponent, figures, megabytes, peak_bytes, side_by_side
from benchmarks.spaces import afresh, made_up, tasks
from whitelab.base import threads
from whitelab.encoding.embeddings import embed_pairs
from whitelab.encoding.encoders import Encoder, load_encoder
from whitelab.scoring.setting import Setting
from whitelab.statistics import correlation, linalg
from whitelab.statistics.linalg import LEAF
from whitelab.sweeps.layer_subsets import SubsetSearch, search_subsets

# STS-B's test pairs in BERT-base: layers, dimensions, pairs, sentences.
BERT_ON_STSB = (13, 768, 1379, 2551)
SMALL = (5, 48, 150, 280)
RAW, PCA = Setting(), Setting(whitening="pca")  # of the last layer
FIRST = Setting((1,), "pca")


def goals(options: Options) -> list[Table]:
    """Absolute times and memory at the size of BERT-base on STS-B."""
    space = made_up(*options.pick(SMALL, BERT_ON_STSB))
    cells = space.n_layers * (space.n_layers + 1) // 2
    whitened, curve = f"all {cells} pairs of layers, whitened", f"all {space.dim} k of one layer"
    whitelab.k_curve(space, PCA)  # its moments and their eigenvectors are kept with the space
    runs = {
        f"all {2**space.n_layers - 1:,} subsets of layers, Gram pass included": lambda: search_subsets(
            afresh(space), RAW
        ),
        whitened: lambda: whitelab.layer_pairs(afresh(space), PCA),
        curve: lambda: whitelab.k_curve(afresh(space), PCA),
        f"all {space.dim} k of one layer, seen before": lambda: whitelab.k_curve(space, PCA),
    }
    rows_of_a_layer = space.values[0].double()
    product = f"{cells} products of a layer with itself, two at a time"  # what the machine can do in these minutes
    runs[product] = lambda: list(threads.side_by_side(lambda _: rows_of_a_layer.T @ rows_of_a_layer, range(cells)))
    covariance = space.moments((0,)).covariance
    alone = f"the eigenvectors of one {space.dim} x {space.dim} covariance"
    runs[alone] = lambda: linalg.eigen_all(covariance)
    timings = side_by_side(runs, options.repeats)
    anchors = {whitened: (product, "products", "1.2 x"), curve: (alone, "eigenvectors", "1.5 x")}
    rows = []
    for name, run in runs.items():
        anchor, words, aim = anchors.get(name, ("", "", ""))
        ratio = timings.ratio(name, anchor).text(" x") if anchor else ""
        rows.append((name, timings.of(name).text(" s"), ratio, words, aim, megabytes(peak_bytes(run))))
    spent: list[SubsetSearch] = []
    peak = peak_bytes(lambda: spent.append(search_subsets(afresh(space), PCA)))
    name = f"all {spent[0].scored:,} subsets of layers, whitened, once"
    each = spent[0].seconds / spent[0].scored / (timings.of(product).median / cells)
    rows.insert(1, (name, f"{figures(spent[0].seconds)} s", f"{figures(each)} x", "products", "", megabytes(peak)))
    shape = (
        f"{space.n_layers} layers of {space.dim} dimensions, {space.n_pairs:,} pairs, {space.n_sentences:,} sentences"
    )
    n, d = space.n_sentences, space.dim
    # A symmetric product, a Cholesky factor and its inverse, a triangular product; the product above is 2 n d^2.
    work, whole = 2 * n * d * (d + min(d, LEAF)) + d**3, 2 * n * d**2
    rate = 100 * work / whole / timings.ratio(whitened, product).median
    note = (
        "The anchor of a whitened pair or subset is one product, that of all k the eigenvectors of one covariance, "
        f"both at the end of the table. A whitened pair takes {work / 1e9:.1f} GFLOP in float64, {work / whole:.2f} of "
        f"the product, at {rate:.0f} % of the machine's rate; a subset has the scatter between layers included."
    )
    header = ("", "seconds", "times its anchor", "anchor", "aimed at", "peak memory beyond the embeddings")
    return [Table(f"At the size of {shape}", header, tuple(rows), (note,))]


# ------------------------------------------------------------------------------------- against the procedures


def search(options: Options) -> list[Table]:
    """All subsets of layers against the papers' procedure, on the first task of the data with the bundled model."""
    encoder, pairs = load_encoder(device="cpu"), tasks(options.data)[0]
    space, _ = embed_pairs(encoder, pairs)
    count, sample = 2**space.n_layers - 1, options.pick(2, 6)
    chosen = _some_subsets(space.n_layers, sample)
    hidden = list(stored_states(encoder, pairs.sentences))

    def again_from_states() -> None:
        for layers in chosen:
            x = np.concatenate([rivals.pooled_again(states, mask, layers) for states, mask in hidden])
            rivals.spearman(x[space.first], x[space.second], pairs.gold)

    def again_from_text() -> None:
        states = list(stored_states(encoder, pairs.sentences))
        x = np.concatenate([rivals.pooled_again(one, mask, chosen[0]) for one, mask in states])
        rivals.spearman(x[space.first], x[space.second], pairs.gold)

    ours = "whitelab, from pooled layers"
    runs = {
        ours: lambda: search_subsets(afresh(space), RAW),
        "whitelab, every sentence encoded first": lambda: search_subsets(embed_pairs(encoder, pairs)[0], RAW),
        "stored hidden states, averaged and pooled for each subset": again_from_states,
        "every sentence encoded anew for each subset": again_from_text,
    }
    names = list(runs)
    timings = side_by_side(runs, options.repeats, {names[2]: count / sample, names[3]: count}, warm=False)
    title = f"All {count} subsets of the layers of {encoder.name}, {space.n_pairs:,} pairs of {pairs.task}"
    notes = (f"Of the papers' procedure {sample} subsets are averaged and pooled, 1 is encoded, and the time scaled.",)
    return [Table(title, ("", "seconds", "times whitelab's"), compared(timings, ours), notes)]


def _some_subsets(n_layers: int, count: int) -> list[tuple[int, ...]]:
    every = [one for size in range(1, n_layers + 1) for one in combinations(range(n_layers), size)]
    return [every[i] for i in np.linspace(0, len(every) - 1, count).astype(int)]


def stored_states(encoder: Encoder, sentences) -> Iterator[tuple[list[np.ndarray], np.ndarray]]:
    """Hidden states of every layer and the mask, of padded batches of 32 in the order given."""
    ids, _ = encoder.tokenize(sentences)
    for start in range(0, len(ids), 32):
        batch = ids[start : start + 32]
        mask = torch.tensor([[1] * len(row) + [0] * (max(map(len, batch)) - len(row)) for row in batch])
        tokens = torch.zeros_like(mask)
        for row, one in zip(tokens, batch, strict=True):
            row[: len(one)] = torch.tensor(one)
        with torch.inference_mode():
            states = encoder.model(input_ids=tokens, attention_mask=mask, output_hidden_states=True).hidden_states
        yield [layer.numpy() for layer in states], mask.numpy()


def heatmap(options: Options) -> list[Table]:
    """The whitened pairs of layers against an SVD for each (Su et al. 2021, Algorithm 1)."""
    space = made_up(*options.pick(SMALL, BERT_ON_STSB))
    cells = [(i, j) for i in range(space.n_layers) for j in range(i, space.n_layers)]
    sample = [(i, i + 1) for i in range(0, space.n_layers - 1, options.pick(2, 6))]
    values, first, second, gold = (x.numpy() for x in (space.values, space.first, space.second, space.gold))

    def one_by_one() -> None:
        for i, j in sample:
            x = (values[i].astype(np.float64) + values[j]) / 2
            mean, kernel = rivals.su_whitening(x[np.concatenate([first, second])])
            z = (x - mean) @ kernel
            rivals.spearman(z[first], z[second], gold)

    ours, theirs = "whitelab", "an SVD of the covariance for each pair"
    runs = {ours: lambda: whitelab.layer_pairs(afresh(space), PCA), theirs: one_by_one}
    timings = side_by_side(
        runs, options.pick(1, min(3, options.repeats)), {theirs: len(cells) / len(sample)}, warm=False
    )
    title = f"{len(cells)} whitened pairs of {space.n_layers} layers of {space.dim} dimensions"
    notes = (f"Of the SVDs {len(sample)} are done and the time scaled.",)
    return [Table(title, ("", "seconds", "times whitelab's"), compared(timings, ours), notes)]


def kcurve(options: Options) -> list[Table]:
    """The score of every k against one SciPy call for each k, with the whitening given to both."""
    space = made_up(2, *options.pick(SMALL, BERT_ON_STSB)[1:])
    values, first, second, gold = (x.numpy() for x in (space.values, space.first, space.second, space.gold))
    ks = range(1, space.dim + 1, options.pick(8, 6))

    def call_by_call() -> None:
        x = values[1].astype(np.float64)
        mean, kernel = rivals.su_whitening(x[np.concatenate([first, second])])
        z = (x - mean) @ kernel
        for k in ks:
            rivals.spearman(z[first, :k], z[second, :k], gold)

    ours, theirs = "whitelab", "one SVD, then cosines and one scipy.stats.spearmanr for each k"
    runs = {ours: lambda: whitelab.k_curve(afresh(space), FIRST), theirs: call_by_call}
    timings = side_by_side(runs, options.repeats, {theirs: space.dim / len(ks)})
    title = f"All {space.dim} values of k, {space.n_pairs:,} pairs"
    notes = (f"SciPy is called for {len(ks)} values of k and the time scaled.",)
    return [Table(title, ("", "seconds", "times whitelab's"), compared(timings, ours), notes)]


def spearman(options: Options) -> list[Table]:
    """Spearman's correlation of many settings with one gold, against a loop over SciPy's."""
    settings, pairs, sample = options.pick((64, 200, 16), (2048, 1379, 128))
    draw = np.random.default_rng(0)
    x, gold = draw.standard_normal((settings, pairs)), draw.integers(0, 26, pairs) / 5
    ours, theirs = "whitelab.spearman", "a loop over scipy.stats.spearmanr"
    runs = {
        ours: lambda: correlation.spearman(torch.from_numpy(x), torch.from_numpy(gold)),
        theirs: lambda: [spearmanr(row, gold).statistic for row in x[:sample]],
    }
    timings = side_by_side(runs, options.repeats, {theirs: settings / sample})
    title = f"Spearman of {settings:,} settings with {pairs:,} pairs, ties in gold"
    notes = (f"SciPy is called for {sample} settings and the time scaled.",)
    return [Table(title, ("", "seconds", "times whitelab's"), compared(timings, ours), notes)]


# --------------------------------------------------------------------------------------------------- growth


def _anew(work, space):
    return work(afresh(space))


def growth(options: Options) -> list[Table]:
    """How time grows with pairs, dimensions and layers: the exponent b of seconds = a size^b."""
    layers, dim, pairs = options.pick((4, 32, 100), (7, 256, 1000))
    steps = options.pick((1, 2), (1, 2, 4))
    works = {
        "all subsets of layers": lambda space: search_subsets(space, RAW),
        "whitened pairs of layers": lambda space: whitelab.layer_pairs(space, PCA),
        "all k of one layer": lambda space: whitelab.k_curve(space, FIRST),
    }
    axes = {
        "pairs": [(layers, dim, pairs * step) for step in steps],
        "dimensions": [(layers, dim * step, pairs) for step in steps],
        "layers": [(layers + i, dim, pairs) for i in range(0, 2 * len(steps), 2)],
    }
    rows = []
    for name, work in works.items():
        cells = [name]
        for axis, shapes in axes.items():
            spaces = {str(shape): made_up(*shape) for shape in shapes}
            runs = {at: partial(_anew, work, one) for at, one in spaces.items()}
            timings = side_by_side(runs, options.repeats)
            sizes = [shape[("layers", "dimensions", "pairs").index(axis)] for shape in shapes]
            seconds = [timings.of(at).median for at in spaces]
            cells.append(f"{exponent(sizes, seconds):.2f} ({', '.join(figures(1000 * s) for s in seconds)} ms)")
        rows.append(tuple(cells))
    sizes = {axis: [shape[("layers", "dimensions", "pairs").index(axis)] for shape in axes[axis]] for axis in axes}
    notes = (
        "The exponent of the size, with the medians it is fitted to. Sizes: "
        + "; ".join(f"{axis} {', '.join(f'{size:,}' for size in found)}" for axis, found in sizes.items())
        + f"; the others at {layers} layers, {dim} dimensions, {pairs:,} pairs. Subsets double with every layer: "
        f"from {layers} to {sizes['layers'][-1]} layers there are {2 ** (sizes['layers'][-1] - layers)} times as many.",
    )
    return [Table("Growth", ("", "with pairs", "with dimensions", "with layers"), tuple(rows), notes)]
