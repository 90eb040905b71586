"""A GPU: encoding, sweeps, what grows, and training, beside the matrix products it can do.

Models have the shape of BERT-base and random weights: no speed here depends on their values.
"""

import tempfile
from collections.abc import Callable
from dataclasses import replace
from itertools import islice
from pathlib import Path
from time import perf_counter

import torch
from transformers import BertConfig, BertModel

import whitelab
from benchmarks import corpora, limits, pace
from benchmarks.encoding import flops_a_token
from benchmarks.harness import Options, Spread, Table, figures, megabytes
from benchmarks.searching import BERT_ON_STSB, PCA, RAW, SMALL
from benchmarks.spaces import afresh, made_up
from whitelab.encoding.embed import embed, passes
from whitelab.encoding.encoders import load_encoder
from whitelab.statistics import linalg
from whitelab.statistics.moments import Moments
from whitelab.sweeps.layer_profiles import shape
from whitelab.sweeps.layer_subsets import search_subsets

DEVICE = "cuda"
MOST_SECONDS = 10.0
PRODUCTS = (
    "`its products alone`: the float64 operations of the matrix products at {:.0f} TFLOP/s, the rate of two matrices "
    "of 8,192 x 8,192 here."
)
ROUNDS = (
    f"A run goes once before it is timed, and then as often as rounds were asked for or {MOST_SECONDS:.0f} s allow."
)


def bert_base(folder: Path, tokenizer_of: str = "bundled") -> str:
    """A folder with a BERT of 12 layers of 768, random, and another model's tokenizer."""
    tokenizer = load_encoder(tokenizer_of, device="cpu").tokenizer
    torch.manual_seed(0)
    BertModel(BertConfig(vocab_size=len(tokenizer))).save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    return str(folder)


def product_rate(dtype: torch.dtype, size: int = 8192) -> float:
    """FLOP/s of the product of two square matrices of random numbers."""
    a, b = (torch.randn(size, size, device=DEVICE).to(dtype) for _ in range(2))
    return 2 * size**3 / best(lambda: a @ b)


def best(run: Callable[[], object], repeats: int = 3) -> float:
    """The shortest time of a run that the device has finished, after one that does not count."""
    run()
    return min(finished(run) for _ in range(repeats))


def finished(run: Callable[[], object]) -> float:
    """Seconds until the device has finished a run."""
    torch.cuda.synchronize()
    start = perf_counter()
    run()
    torch.cuda.synchronize()
    return perf_counter() - start


def peak(run: Callable[[], object]) -> int:
    """The most bytes that torch holds on the GPU while `run` runs, beyond those held before."""
    torch.cuda.empty_cache()
    torch.cuda.reset_peak_memory_stats()
    before = torch.cuda.memory_allocated()
    run()
    return torch.cuda.max_memory_allocated() - before


def measured(run: Callable[[], object], repeats: int) -> tuple[Spread, str]:
    """Seconds of a run, and its memory: `repeats` times after one that does not count, or as often as 10 s allow."""
    memory, seconds = megabytes(peak(run)), []
    while len(seconds) < repeats and sum(seconds) < MOST_SECONDS:
        seconds.append(finished(run))
    return Spread.of(seconds), memory


# --------------------------------------------------------------------------------------------------- encoding


def gpu_encoding(options: Options) -> list[Table]:
    """Sentences to every layer of a BERT-base, and what share of the GPU's own matrix products that reaches."""
    texts = list(islice(corpora.sentences(options.data), options.pick(200, 20_000)))
    with tempfile.TemporaryDirectory() as folder:
        model = bert_base(Path(folder))
        rows = [_encoded(model, dtype, texts) for dtype in ("float32", "bfloat16")]
    header = (
        "type",
        "matrix products, TFLOP/s",
        "the encoder's, TFLOP/s",
        "share",
        "memory",
        "forward, sentences a second",
        "every layer pooled, on the host",
        "text to embeddings",
        "with an empty store",
    )
    note = (
        "The rate is that of two matrices of 8,192 x 8,192. `forward` is the network alone; then both poolings of all "
        "13 layers; then the whole call, from text, without a store and with one. Memory is the forward pass's beyond "
        "the weights. Times are the shorter of two, and of the whole calls of one, after one that does not count."
    )
    return [Table(f"Encoding {len(texts):,} sentences, the shape of BERT-base", header, tuple(rows), (note,))]


def _encoded(model: str, dtype: str, texts: list[str]) -> tuple[str, ...]:
    encoder = load_encoder(model, device=DEVICE, dtype=dtype)
    rate = product_rate(getattr(torch, dtype))
    ids, _ = encoder.tokenize(texts)
    work = flops_a_token(encoder) * sum(map(len, ids))
    batches = [torch.tensor([ids[i] for i in one], device=DEVICE) for one in encoder.batches([len(x) for x in ids])]

    @torch.inference_mode()
    def forward() -> None:
        for one in batches:
            encoder.model(input_ids=one, output_hidden_states=True)

    def pooled() -> None:
        for _ in passes(encoder, ids):
            pass

    memory = peak(forward)
    alone = best(forward, 2)
    seconds = [alone, best(pooled, 2), best(lambda: embed(encoder, texts), 1), best(lambda: _stored(encoder, texts), 1)]
    reached = work / alone
    speeds = (f"{len(texts) / one:,.0f}" for one in seconds)
    share = f"{100 * reached / rate:.0f} %"
    return (dtype, f"{rate / 1e12:.0f}", f"{reached / 1e12:.0f}", share, megabytes(memory), *speeds)


def _stored(encoder, texts: list[str]) -> None:
    with tempfile.TemporaryDirectory() as folder:
        embed(encoder, texts, store=whitelab.Store(folder, cap_bytes=None))


# ----------------------------------------------------------------------------------------------------- sweeps


def gpu_sweeps(options: Options) -> list[Table]:
    """Sweeps at the size of BERT-base on STS-B, and a million rows, beside the time of their products alone."""
    space = made_up(*options.pick(SMALL, BERT_ON_STSB)).to(DEVICE)
    rate, n, d = product_rate(torch.float64), space.n_sentences, space.dim
    cells, subsets = space.n_layers * (space.n_layers + 1) // 2, 2**space.n_layers - 1
    rows = torch.randn(options.pick(2000, 1_000_000), d, device=DEVICE)
    covariance = space.moments(PCA.on(space).layers).covariance
    # A symmetric product, a Cholesky factor and its inverse, a triangular product; a subset sums its scatter instead.
    works = {
        f"all {subsets:,} subsets of layers": (lambda one: search_subsets(one, RAW), None),
        f"{cells} pairs of layers, whitened": (
            lambda one: whitelab.layer_pairs(one, PCA),
            cells * (2 * n * d**2 + d**3),
        ),
        f"all {subsets:,} subsets of layers, whitened": (
            lambda one: search_subsets(one, PCA),
            subsets * (n * d**2 + d**3),
        ),
        f"all {d} k of one layer": (lambda one: whitelab.k_curve(one, PCA), None),
        "the eigenvectors of one covariance": (lambda one: linalg.eigen_all(covariance), None),
        "the shape of a whitened layer": (lambda one: shape(one, PCA), None),
        f"moments of {len(rows):,} rows": (lambda one: Moments.of(rows), len(rows) * d**2),
    }
    found = []
    for name, (work, flops) in works.items():
        seconds, memory = measured(lambda work=work: work(afresh(space)), options.repeats)
        floor = "" if flops is None else f"{figures(flops / rate)} s"
        found.append((name, seconds.text(" s"), floor, memory))
    title = f"Sweeps of {space.n_layers} layers of {d} dimensions, {space.n_pairs:,} pairs, {n:,} sentences"
    header = ("", "seconds", "its products alone", "memory beyond the embeddings")
    return [Table(title, header, tuple(found), (f"{PRODUCTS.format(rate / 1e12)} {ROUNDS}",))]


# ------------------------------------------------------------------------------------------------------ limits


def gpu_limits(options: Options) -> list[Table]:
    """Every operation at 25 layers of 1,024 dimensions and 100,000 pairs."""
    layers, dim, pairs = options.pick(limits.SMALL, limits.LARGE)
    rate, rows, spaces = product_rate(torch.float64), [], {}
    for work in limits.works(layers, dim, pairs, (8, 8, 10)):
        if work.layers not in spaces:
            spaces.clear()  # one at a time
            spaces[work.layers] = made_up(work.layers, dim, pairs, device=DEVICE)
        space = spaces[work.layers]
        spread, memory = measured(lambda work=work, space=space: work.run(afresh(space)), options.repeats)
        seconds = spread.median
        whole = work.whole(seconds, 1)
        floor = "" if work.flops is None else limits.spent(work.flops / rate)
        part = work.part((work.layers, pairs), pairs)
        rows.append((work.name, part, limits.spent(seconds), memory, limits.spent(whole), floor))
    header = ("", "measured on", "time", "memory beyond the embeddings", "the whole", "its products alone")
    notes = (f"{limits.SCALED} {PRODUCTS.format(rate / 1e12)}",)
    return [Table(f"At {layers} layers of {dim:,} dimensions and {pairs:,} pairs", header, tuple(rows), notes)]


# ---------------------------------------------------------------------------------------------------- training


def gpu_training(options: Options) -> list[Table]:
    """Steps of training the shape of BERT-base, in both types."""
    texts = list(islice(corpora.sentences(options.data), 5_000))
    batches = {"bfloat16": options.pick((64,), (64, 256, 1024)), "float32": options.pick((64,), (64, 256))}
    how = {"steps": options.pick(1, 3), "repeats": options.repeats, "device": DEVICE}
    with tempfile.TemporaryDirectory() as folder:
        config = replace(pace.CONFIG, model=bert_base(Path(folder)))
        tables = [pace.paces(replace(config, precision=one), texts, at, **how) for one, at in batches.items()]
    return [replace(one, title="Steps of training the shape of BERT-base") for one in tables]
