"""`python -m benchmarks.faults`: kill -9 at random moments of embedding, exporting, downloading, training, corpus work.

Every attempt is a child of this process, which has everything imported, so that a kill falls into the work itself.
After each kill the folder is looked at: what is finished must be whole and right, nothing may be read that is half
there, and the same work, begun again, must end with what an undisturbed one gives, doing again only what was not done.
"""

import argparse
import os
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from hashlib import blake2b
from pathlib import Path

import numpy as np

from benchmarks.harness import markdown_lines


@dataclass(frozen=True)
class Work:
    """`do(folder)` is killed; `left(folder)` says how much of it is finished, and raises where that is not right;
    `whole(folder)` is a digest of what it ends with; `redone(folder)` how much the last run did."""

    do: Callable[[Path], None]
    left: Callable[[Path], int]
    whole: Callable[[Path], str]
    redone: Callable[[Path], int]
    total: int


@dataclass
class Outcome:
    """Of one kind of work: kills that fell into it, how much was left over all of them, and what went wrong."""

    kills: int = 0
    ended_before: int = 0
    left: int = 0
    again: int = 0
    wrong: tuple[str, ...] = ()


def kill_often(work: Work, kills: int, seed: int = 0) -> Outcome:
    """Kill `work` so many times, each in a new folder at a moment drawn from the time that it takes."""
    outcome, draw = Outcome(), random.Random(seed)
    with tempfile.TemporaryDirectory() as root:
        plain = Path(root) / "plain"
        plain.mkdir()
        seconds = _attempt(work, plain, None)
        wanted = work.whole(plain)
        for number in range(kills):
            folder = Path(root) / str(number)
            folder.mkdir()
            ended = _attempt(work, folder, draw.uniform(0.02, 1.0) * seconds) is not None
            outcome.ended_before += ended
            outcome.kills += not ended
            try:
                there = work.left(folder)
                _attempt(work, folder, None)
                if work.whole(folder) != wanted:
                    raise RuntimeError("ended with something else")
                redone = work.redone(folder)
                if redone > work.total - there:
                    raise RuntimeError(f"{there} of {work.total} were finished, {redone} were done again")
                outcome.left += there
                outcome.again += redone
            except Exception as problem:  # the very thing that is looked for
                outcome.wrong += (f"kill {number}: {type(problem).__name__}: {' '.join(str(problem).split())[:200]}",)
            shutil.rmtree(folder, ignore_errors=True)
    return outcome


def _attempt(work: Work, folder: Path, after: float | None) -> float | None:
    """Seconds of the work in a child; None where it was killed `after` so many before its end."""
    start = time.perf_counter()
    pid = os.fork()
    if not pid:
        code = 1
        try:
            os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
            work.do(folder)
            code = 0
        finally:
            os._exit(code)
    killed = False
    while True:
        done, status = os.waitpid(pid, os.WNOHANG)
        if done:
            break
        if after is not None and not killed and time.perf_counter() - start >= after:
            os.kill(pid, signal.SIGKILL)
            killed = True
        time.sleep(0.0005)
    if os.WIFSIGNALED(status):
        return None
    if os.WEXITSTATUS(status):
        raise RuntimeError(f"the work ended with status {os.WEXITSTATUS(status)}")
    return time.perf_counter() - start


# ------------------------------------------------------------------------------------------------ what is killed


def embedding(few: bool) -> Work:
    """Sentences into the store, in many small shards."""
    from whitelab.datasets import load
    from whitelab.encoding import embed
    from whitelab.encoding.encoders import load_encoder
    from whitelab.store.embedding_store import Store

    embed.SHARD_SENTENCES = 16
    texts = list(load("demo").sentences)[: 160 if few else 600]
    encoder = load_encoder("bundled:1", device="cpu")
    expected, _ = embed.embed(encoder, texts)

    def there(folder: Path) -> list[str]:
        spaces = [Store(folder / "store").space(encoder.key(pooling)) for pooling in encoder.poolings]
        missing = set().union(
            *(space.missing(texts) for space in spaces)
        )  # one pass gives both, each written by a thread of its own
        return [text for i, text in enumerate(texts) if i not in missing]

    def do(folder: Path) -> None:
        before = len(there(folder))
        _, report = embed.embed(encoder, texts, store=Store(folder / "store"))
        (folder / "done").write_text(f"{report.encoded} {before}")

    def left(folder: Path) -> int:
        found = there(folder)
        space = Store(folder / "store").space(encoder.key("mean"))
        if found and not np.array_equal(space.read(found), expected[:, [texts.index(text) for text in found]].numpy()):
            raise RuntimeError("a stored vector is not the one that was encoded")
        if space.damaged:
            raise RuntimeError(f"damaged files: {space.damaged}")
        return len(found)

    def whole(folder: Path) -> str:
        return _digest(Store(folder / "store").space(encoder.key("mean")).read(texts).tobytes())

    return Work(do, left, whole, lambda folder: int((folder / "done").read_text().split()[0]), len(texts))


def exporting(few: bool) -> Work:
    """A model folder for sentence-transformers over an older one, and an .npz."""
    from whitelab.datasets import load
    from whitelab.encoding.embeddings import embed_pairs
    from whitelab.encoding.encoders import load_encoder
    from whitelab.scoring.fit_scopes import fit_scope
    from whitelab.scoring.setting import Setting
    from whitelab.whitening import export

    encoder = load_encoder("bundled:1", device="cpu")
    space, _ = embed_pairs(encoder, load("demo"))
    (fitted,) = fit_scope(space, Setting((1,), "pca", 16)).whiteners

    def do(folder: Path) -> None:
        export.to_npz(folder / "map.npz", fitted, {"k": 16})
        export.to_sentence_transformers(folder / "model", encoder, (1,), "mean", fitted, {"k": 16})

    def left(folder: Path) -> int:
        if (folder / "map.npz").exists():
            export.from_npz(folder / "map.npz")
        if (folder / "model").exists():
            whole(folder)
        return 0

    def whole(folder: Path) -> str:
        from safetensors.numpy import load_file

        arrays = [load_file(path) for path in sorted((folder / "model").rglob("*.safetensors"))]
        found = [values.tobytes() for one in arrays for _, values in sorted(one.items())]
        return _digest(*found, export.from_npz(folder / "map.npz")[0].mean.numpy().tobytes())

    return Work(do, left, whole, lambda folder: 0, 0)


def training(few: bool) -> Work:
    """A run of SimCSE with a checkpoint after each step, resumed."""
    from safetensors.numpy import load_file

    from whitelab.datasets import load
    from whitelab.training import TrainConfig
    from whitelab.training.runs import create, find_run

    texts = tuple(load("demo").sentences[:64])
    steps, model, home = 4 if few else 8, "bundled:1", tempfile.TemporaryDirectory()
    if few:
        _with_helpers_of_the_tests()
        from tiny import build_model

        model = str(build_model(Path(home.name) / "tiny"))
    config = TrainConfig(objective="simcse", model=model, batch=8, steps=steps, save_every=1, eval_every=0)

    def do(folder: Path, home=home) -> None:  # which is there as long as this is
        path = folder / "run"
        run = find_run(path) if (path / "config.json").exists() else create(config, texts, None, path)
        before, state = run.checkpoint or 0, run.state()
        for _ in run.follow(state == "died", "cpu") if state != "finished" else ():
            pass
        (folder / "done").write_text("0" if state == "finished" else str(steps - before))

    def left(folder: Path) -> int:
        path = folder / "run"
        if not (path / "config.json").exists():
            return 0
        run = find_run(path)
        run.records()
        return steps if run.state() == "finished" else run.checkpoint or 0

    def whole(folder: Path) -> str:
        found = load_file(next((folder / "run" / "model").glob("*.safetensors")))
        return _digest(*(values.tobytes() for _, values in sorted(found.items())))

    return Work(do, left, whole, lambda folder: int((folder / "done").read_text()), steps)


def corpus(few: bool) -> Work:
    """Text into chunks of vectors, and the map of all of it."""
    from whitelab.corpus.embedding import embed_corpus
    from whitelab.corpus.fitting import fit_corpus
    from whitelab.corpus.manifest import MANIFEST, Manifest
    from whitelab.datasets import load

    texts = list(load("demo").sentences)[: 160 if few else 600]

    def do(folder: Path) -> None:
        (folder / "text.txt").write_text("\n".join(texts), "utf-8")
        embed_corpus(folder / "text.txt", folder / "out", "bundled:1", chunk_texts=16)

    def left(folder: Path) -> int:
        if not (folder / "out" / MANIFEST).exists():
            return 0
        manifest = Manifest.read(folder / "out")
        sizes = dict(zip(manifest.chunks, manifest.sizes, strict=True))
        return manifest.sentences - sum(sizes[name] for name in manifest.missing(folder / "out"))

    def redone(folder: Path) -> int:
        return Manifest.read(folder / "out").encoded

    return Work(do, left, lambda folder: fit_corpus(folder / "out")[1]["digest"], redone, len(texts))


# A hub on this machine that sends a file of 300 kB in half a second; it prints its address, and ends with its input.
HUB = """
import sys, time
sys.path.insert(0, "tests/helpers")
from fake_hub import Answers, Hub

class Slowly(Answers):
    def setup(self):
        super().setup()
        write = self.wfile.write
        self.wfile.write = lambda data: [
            (write(data[i : i + 4096]), time.sleep(0.005)) for i in range(0, len(data), 4096)
        ]

hub = Hub()
hub.RequestHandlerClass = Slowly
hub.handle_error = lambda *_: None  # who asked was killed
print(hub.url, flush=True)
sys.stdin.read()
"""


def downloading(few: bool) -> Work:
    """An archive of tasks from a hub, checked, unpacked and moved to its place."""
    _with_helpers_of_the_tests()
    from fake_hub import ARCHIVE, TAR
    from huggingface_hub import constants

    from whitelab.datasets import discover, fetch

    hub = subprocess.Popen([sys.executable, "-c", HUB], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    constants.ENDPOINT = hub.stdout.readline().strip()
    constants.HUGGINGFACE_CO_URL_TEMPLATE = constants.ENDPOINT + "/{repo_id}/resolve/{revision}/{filename}"
    constants.HF_HUB_OFFLINE, constants.DOWNLOAD_CHUNK_SIZE = False, 1 << 12
    os.environ["NO_PROXY"] = os.environ["no_proxy"] = "127.0.0.1"

    def do(folder: Path) -> None:
        os.environ["WHITELAB_CACHE"] = str(folder / "cache")  # of the child, for its locks
        brought = [len(TAR)]  # what there is before the first byte: everything, unless it says less
        fetch(ARCHIVE, folder / "small", accept_licence=True, progress=lambda here, of: brought.append(here))
        (folder / "done").write_text(str(len(TAR) - brought[min(1, len(brought) - 1)]))

    def left(folder: Path) -> int:
        if (folder / "small").exists():
            whole(folder)
            return len(TAR)
        parts = folder / ".small.parts"
        return (
            max((path.stat().st_size for path in parts.iterdir() if path.is_file()), default=0) if parts.exists() else 0
        )

    def whole(folder: Path) -> str:
        if len(discover(folder / "small")) != len(ARCHIVE.tasks):
            raise RuntimeError("a task is missing")
        files = sorted(path for path in (folder / "small").rglob("*.txt"))
        return _digest(*(path.read_bytes() for path in files))

    return Work(do, left, whole, lambda folder: int((folder / "done").read_text()), len(TAR))


def _with_helpers_of_the_tests() -> None:
    sys.path.insert(0, str(Path(__file__).parents[1] / "tests" / "helpers"))


def _digest(*parts: bytes) -> str:
    return blake2b(b"".join(parts), digest_size=16).hexdigest()


WORKS = {one.__name__: one for one in (embedding, exporting, downloading, training, corpus)}


def table(found: dict[str, Outcome]) -> str:
    """One row a kind of work."""
    header = ("work", "kills", "ended before", "finished parts found", "done again", "wrong")
    rows = [(name, one.kills, one.ended_before, one.left, one.again, len(one.wrong)) for name, one in found.items()]
    return "\n".join(markdown_lines(header, rows))


def main() -> int:
    """Print the table, and what went wrong."""
    options = argparse.ArgumentParser(prog="python -m benchmarks.faults", description=__doc__)
    options.add_argument("--kills", type=int, default=50, help="of each kind of work (default: 50)")
    options.add_argument("--seed", type=int, default=0)
    options.add_argument("--only", default="", help=f"with commas: {', '.join(WORKS)}")
    args = options.parse_args()
    found = {}
    for name in args.only.split(",") if args.only else WORKS:
        print(name, file=sys.stderr, flush=True)
        found[name] = in_child(name, args.kills, args.seed)
    print(table(found))
    print("\n".join(f"{name}, {line}" for name, one in found.items() for line in one.wrong))
    return 1 if any(one.wrong for one in found.values()) else 0


def in_child(name: str, kills: int, seed: int, few: bool = False) -> Outcome:
    """`kill_often` of one kind, torch with one thread: threads do not outlive a fork."""
    import torch

    torch.set_num_threads(1)
    return kill_often(WORKS[name](few), kills, seed)


if __name__ == "__main__":
    sys.exit(main())
