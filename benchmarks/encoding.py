"""Encoding: sentences to every layer, against sentence-transformers and ONNX Runtime."""

import tempfile
from collections.abc import Sequence
from pathlib import Path
from time import perf_counter

import torch
from torch.nn import Linear
from torch.profiler import ProfilerActivity, profile

import whitelab
from benchmarks import rivals
from benchmarks.harness import Options, Table, compared, side_by_side
from benchmarks.spaces import asked, tasks
from whitelab.base.threads import single_threads
from whitelab.encoding.embed import embed, passes
from whitelab.encoding.embeddings import with_pairs
from whitelab.encoding.encoders import Encoder, load_encoder
from whitelab.scoring.setting import Setting

OURS, OURS_BF16 = "whitelab, float32", "whitelab, bfloat16"
ST, ONNX, INT8 = "sentence-transformers, float32", "ONNX Runtime, float32", "ONNX Runtime, int8"


def encoding(options: Options) -> list[Table]:
    """Speed side by side, the scores that go with it, and where the time goes."""
    pairs = tasks(options.data)
    texts = asked(pairs)
    if options.quick:
        texts = texts[:600]
    with tempfile.TemporaryDirectory() as folder:
        sides = Sides(texts, Path(folder))
        speed = sides.speed(options)
        scores = sides.scores(pairs[:1] if options.quick else pairs)
    return [speed, scores, roofline(texts)]


class Sides:
    """Everyone with the model loaded and nothing encoded."""

    def __init__(self, texts: Sequence[str], work: Path):
        self.texts, self.work = texts, work
        self.ours = {OURS: load_encoder(device="cpu"), OURS_BF16: load_encoder(device="cpu", dtype="bfloat16")}
        exact = self.ours[OURS]
        self.tokenize = exact.tokenize
        self.transformer = rivals.sentence_transformer(exact.files.folder, exact.max_length)
        self.onnx = {
            name: rivals.Onnx(exact.files.folder, work, name == INT8, torch.get_num_threads()) for name in (ONNX, INT8)
        }

    def speed(self, options: Options) -> Table:
        """Seconds for the list, caches cold: every side begins with text and ends with vectors."""
        texts, unique = self.texts, list(dict.fromkeys(self.texts))
        runs = {name: lambda one=one: embed(one, texts) for name, one in self.ours.items()}
        runs |= {f"{name}, cold store": lambda one=one: self.through_store(one) for name, one in self.ours.items()}
        runs[ST] = lambda: self.transformer.encode(texts, show_progress_bar=False)
        for name, one in self.onnx.items():
            runs[name] = lambda one=one: one.encode(self.tokenize(texts)[0])
            runs[f"{name}, each sentence once"] = lambda one=one: one.encode(self.tokenize(unique)[0])
        timings = side_by_side(runs, options.repeats, warm=options.quick or len(texts) < 5000)
        rows = [(*row, timings.ratio(ST, row[0]).text(" x") if row[0] != ST else "") for row in compared(timings, OURS)]
        bf16 = {name: timings.ratio(name, OURS_BF16).text(" x") for name in (ST, INT8, f"{INT8}, each sentence once")}
        return Table(
            f"Encoding {len(texts):,} sentences, {len(unique):,} of them different",
            ("", "seconds", "times whitelab's float32", "speed-up over sentence-transformers"),
            tuple(rows),
            (
                "whitelab gives every layer in both poolings, the others the last layer in one. `cold store` writes "
                "all of it to an empty store and reads both poolings back.",
                "Against bfloat16: " + "; ".join(f"{name} takes {ratio}" for name, ratio in bf16.items()) + ".",
            ),
        )

    def through_store(self, encoder: Encoder) -> float:
        """Seconds with a new store, both poolings returned; removing it is not timed."""
        with tempfile.TemporaryDirectory(dir=self.work) as folder:
            start, store = perf_counter(), whitelab.Store(folder)
            for pooling in ("mean", "cls"):
                embed(encoder, self.texts, pooling, store=store)
            return perf_counter() - start

    def scores(self, pairs) -> Table:
        """Spearman of every task in every type, and what the type costs."""
        rows, worst = [], 0.0
        for one in pairs:
            spaces = {name: with_pairs(embed(encoder, one.sentences)[0], one) for name, encoder in self.ours.items()}
            exact = spaces[OURS]
            last = exact.n_layers - 1
            for layers, variant in (((last,), "none"), ((1, last), "none"), ((1, last), "pca")):
                setting = Setting(layers, variant)
                found = {name: whitelab.score(space, setting).spearman for name, space in spaces.items()}
                delta = found[OURS_BF16] - found[OURS]
                worst = max(worst, abs(delta))
                int8 = ""
                if variant == "none" and layers == (last,):
                    vectors = self.onnx[INT8].encode(self.tokenize(one.sentences)[0])
                    score = rivals.spearman(vectors[exact.first], vectors[exact.second], one.gold)
                    int8 = f"{score - found[OURS]:+.3f}"
                what = f"{'+'.join(map(str, layers))}, {variant}"
                rows.append((one.task, what, f"{found[OURS]:.3f}", f"{delta:+.3f}", int8))
        return Table(
            "What the shorter types cost",
            ("task", "layers, whitening", "Spearman in float32", "bfloat16", "ONNX Runtime's int8"),
            tuple(rows),
            (f"The largest change under bfloat16 is {worst:.3f} points (aggregate `all`).",),
        )


# ---------------------------------------------------------------------------------------------- roofline


def roofline(texts: Sequence[str]) -> Table:
    """What share of the machine's matrix products the encoder reaches in each type, and where the rest goes."""
    rows, notes = [], []
    for dtype in ("float32", "bfloat16"):
        encoder = load_encoder(device="cpu", dtype=dtype)
        ids, _ = encoder.tokenize(list(dict.fromkeys(texts))[:4000])
        work = sum(map(len, ids)) * flops_a_token(encoder)
        most = max(map(len, encoder.batches([len(row) for row in ids])))
        rate = max(matmul_rate(encoder, tokens=2048) for _ in range(3))
        seconds = min(_seconds(encoder, ids) for _ in range(3))
        reached = work / seconds / 1e9
        rows.append((dtype, f"{rate:,.0f}", f"{reached:,.0f}", f"{100 * reached / rate:.0f} %"))
        shares = ", ".join(f"{name} {100 * share:.0f} %" for name, share in where_time_goes(encoder, ids))
        notes.append(f"Where a thread's time goes in {dtype} (batches of up to {most} sentences): {shares}.")
    return Table(
        f"The roofline: {len(ids):,} sentences",
        ("type", "matrix products of the model's shapes, GFLOP/s", "the encoder, GFLOP/s", "share"),
        tuple(rows),
        (
            *notes,
            "The rate is that of the model's own linear maps on 2,048 tokens, one product a thread on all threads.",
        ),
    )


def flops_a_token(encoder: Encoder) -> float:
    """Multiplications and additions of the linear maps of the blocks, for one token."""
    return 2.0 * sum(one.weight.numel() for one in linear_maps(encoder))


def linear_maps(encoder: Encoder) -> list[Linear]:
    """The maps every token goes through; the pooler sees one token a sentence."""
    return [one for name, one in encoder.model.named_modules() if isinstance(one, Linear) and "pooler" not in name]


def matmul_rate(encoder: Encoder, tokens: int, seconds: float = 1.0) -> float:
    """GFLOP/s of the linear maps alone, a stream of products on every thread."""
    maps, threads = linear_maps(encoder), torch.get_num_threads()
    inputs = {one.in_features: torch.randn(tokens, one.in_features, dtype=one.weight.dtype) for one in maps}

    @torch.inference_mode()
    def stream() -> float:
        start, rounds = perf_counter(), 0
        while perf_counter() - start < seconds:
            for one in maps:
                one(inputs[one.in_features])
            rounds += 1
        return rounds * tokens * flops_a_token(encoder) / (perf_counter() - start) / 1e9

    with single_threads(threads) as pool:
        return sum(pool.map(lambda _: stream(), range(threads)))


def _seconds(encoder: Encoder, ids: list[list[int]]) -> float:
    start = perf_counter()
    for _ in passes(encoder, ids):
        pass
    return perf_counter() - start


def where_time_goes(encoder: Encoder, ids: list[list[int]], most: int = 6) -> list[tuple[str, float]]:
    """The operations that take the largest shares of one thread's time."""

    def run() -> list[tuple[str, float]]:
        with profile(activities=[ProfilerActivity.CPU]) as found:
            for batch in list(encoder.batches([len(row) for row in ids]))[::4]:
                encoder.forward([ids[i] for i in batch])
        events = found.key_averages()
        total = sum(event.self_cpu_time_total for event in events)
        largest = sorted(events, key=lambda event: -event.self_cpu_time_total)[:most]
        return [(event.key.removeprefix("aten::"), event.self_cpu_time_total / total) for event in largest]

    before = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        return run()
    finally:
        torch.set_num_threads(before)
