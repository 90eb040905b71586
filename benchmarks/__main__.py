"""`python -m benchmarks`: run the benchmarks, print their tables, put them into benchmarks/README.md."""

import argparse
import importlib
import sys
from collections.abc import Sequence
from pathlib import Path

# name -> (module, what it measures); loaded only when run.
BENCHMARKS = {
    "startup": ("startup", "import and command line"),
    "spearman": ("searching", "batched Spearman against SciPy"),
    "goals": ("searching", "absolute times and memory at the size of BERT-base on STS-B"),
    "search": ("searching", "all subsets of layers against the papers' procedure"),
    "heatmap": ("searching", "whitened pairs of layers against an SVD for each"),
    "kcurve": ("searching", "every k against one SciPy call for each"),
    "growth": ("searching", "growth with pairs, dimensions and layers"),
    "limits": ("limits", "every operation at 25 layers of 1,024 dimensions and 100,000 pairs"),
    "streaming": ("streaming", "a million rows against numpy.cov and IncrementalPCA"),
    "bits": ("bits", "memory of a million vectors in fewer bits, point by point"),
    "training": ("training", "a hundred steps of the papers' objectives, over three seeds"),
    "controls": ("training", "a hundred steps of what they are held against"),
    "pace": ("pace", "steps of training a second, and whitening's share of a step"),
    "ablations": ("ablations", "WhitenedCSE's Tables 3 to 6 at a laptop's scale"),
    "images": ("images", "W-MSE's Table 1 on scikit-learn's digits"),
    "whitened": ("images", "W-MSE's Tables 4 and 5 on scikit-learn's digits"),
    "slicing": ("images", "W-MSE's batch slicing on and off, on scikit-learn's digits"),
    "probing": ("probing", "regressions of a transfer task against scikit-learn's"),
    "corpora": ("corpora", "a corpus at every engine, and memory while it grows"),
    "gpu_encoding": ("gpu", "on a GPU: sentences to every layer of a BERT-base"),
    "gpu_sweeps": ("gpu", "on a GPU: sweeps beside the products they take"),
    "gpu_limits": ("gpu", "on a GPU: every operation at 25 layers of 1,024 dimensions and 100,000 pairs"),
    "gpu_training": ("gpu", "on a GPU: steps of training the shape of BERT-base"),
    "encoding": ("encoding", "encoding against sentence-transformers and ONNX Runtime"),
}


def main(argv: Sequence[str] | None = None) -> int:
    """Run what was asked for; returns the exit status."""
    import torch

    from benchmarks import against, harness

    args = parser().parse_args(argv)
    gpu = torch.cuda.is_available()
    names = args.only.split(",") if args.only else [name for name in BENCHMARKS if gpu or not on_gpu(name)]
    unknown = [name for name in names if name not in BENCHMARKS]
    if unknown:
        print(f"--only={','.join(unknown)} must be among {', '.join(BENCHMARKS)}", file=sys.stderr)
        return 2
    if not gpu and any(map(on_gpu, names)):
        print(f"--only={args.only} must name no benchmark of a GPU on a machine without one", file=sys.stderr)
        return 2
    if args.against and (args.quick or not args.against.is_file()):
        print(f"--against={args.against} must be a file, and held against a run that is not quick", file=sys.stderr)
        return 2
    options = harness.Options(args.data, args.repeats or (1 if args.quick else 5), args.quick)
    readme = args.readme or (None if args.quick or args.against else harness.README)
    before, held = args.against.read_text("utf-8") if args.against else "", {}
    for name in names:
        print(f"{name}: {BENCHMARKS[name][1]}", file=sys.stderr, flush=True)
        module = importlib.import_module(f"benchmarks.{BENCHMARKS[name][0]}")
        tables = getattr(module, name)(options)
        rounds = "" if name == "gpu_encoding" else f", {options.repeats} rounds"
        note = harness.machine() + (", quick run" if args.quick else rounds)
        print("\n\n".join([*(table.markdown() for table in tables), note]), end="\n\n", flush=True)
        then, there = harness.published(name, before)
        held[name] = list(against.changes(then, tables, there.startswith(f"{harness.hardware()}, ")))
        if readme:
            harness.publish(name, tables, note, readme)
    if args.against:
        print(against.report(held).markdown())
    return 0


def on_gpu(name: str) -> bool:
    """Whether a benchmark needs a GPU."""
    return name.startswith("gpu_")


def parser() -> argparse.ArgumentParser:
    """The options."""
    found = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    found.add_argument("--data", default="demo", help="data folder, as everywhere in whitelab (default: demo)")
    found.add_argument("--only", default="", help=f"names with commas: {', '.join(BENCHMARKS)}")
    found.add_argument("--quick", action="store_true", help="small sizes, one round, nothing written to the README")
    found.add_argument("--repeats", type=int, default=0, help="rounds (default: 5, quick: 1)")
    found.add_argument("--readme", type=Path, default=None, help="file to write to (default: benchmarks/README.md)")
    found.add_argument(
        "--against", type=Path, default=None, help="file with earlier results: show what is slower, write nothing"
    )
    return found


if __name__ == "__main__":
    sys.exit(main())
