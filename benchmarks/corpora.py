"""A corpus of text into chunks of vectors: the engines beside plain `embed`, and memory while it grows."""

import os
import shutil
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from itertools import islice
from pathlib import Path

from benchmarks.harness import Options, Table, figures, megabytes
from whitelab.corpus.chunks import CHUNK_TEXTS
from whitelab.corpus.fitting import fit_corpus
from whitelab.corpus.manifest import status
from whitelab.datasets import discover, load
from whitelab.encoding.embed import embed
from whitelab.encoding.encoders import load_encoder

MEMORY = ("most memory in the second fifth of the time", "in the last fifth")  # of all processes
ENGINES = ("serial", "processes", "ray")


def corpora(options: Options) -> list[Table]:
    """Sentences a second of each engine with two workers, the share that is not encoding, and peak memory."""
    few, many, chunk = options.pick((400, 800, 128), (20_000, 100_000, CHUNK_TEXTS))
    with tempfile.TemporaryDirectory() as place:
        place = Path(place)
        write(place / "few.txt", options.data, few)
        write(place / "many.txt", options.data, many)
        plain = plainly((place / "few.txt").read_text().splitlines())
        rows, rates, digests = [("plain embed, every thread", figures(few / plain), "", "", "")], {}, set()
        for engine in ENGINES:
            seconds, memory, rate = embedded(place / "few.txt", place / engine, engine, chunk)
            rates[engine] = few / seconds
            rows.append((engine, figures(few / seconds), figures(rate), *map(megabytes, memory)))
            digests.add(fit_corpus(place / engine)[1]["digest"])
        start = time.perf_counter()
        fit_corpus(place / "processes")
        fitted = time.perf_counter() - start
        grown = []
        for engine in ENGINES[1:]:
            shutil.rmtree(place / engine)
            seconds, memory, rate = embedded(place / "many.txt", place / engine, engine, chunk)
            rates[f"{engine} {many}"] = many / seconds
            grown.append((f"{engine}, {many:,}", figures(many / seconds), figures(rate), *map(megabytes, memory)))
            digests.add(fit_corpus(place / engine)[1]["digest"])
        bytes_each = sum(path.stat().st_size for path in (place / "ray").glob("*.*")) / many
    same = "Every engine gave the same bits" if len(digests) == 2 else "THE ENGINES GAVE DIFFERENT BITS"
    cost = 100 * (rates[f"processes {many}"] / rates[f"ray {many}"] - 1)
    return [
        Table(
            f"A corpus of {few:,} and {many:,} sentences, bundled model, chunks of {chunk:,}",
            ("engine", "sentences a second", "of which while chunks came", *MEMORY),
            (*rows, *grown),
            (
                f"Two workers with one thread each; `serial` has one thread, plain `embed` all and writes nothing. The "
                f"first rate counts from typing the command, start of Python, Ray and two encoders included. Ray costs "
                f"{cost:.0f} % of the time of processes at {many:,}. {same}. A map of "
                f"{few:,} took {figures(fitted)} s from its moments. On disk {bytes_each:,.0f} bytes a "
                "sentence (vectors of 384 x 4 and moments).",
            ),
        )
    ]


def write(path: Path, data: str, count: int) -> None:
    """`count` different sentences of the pairs in `data`: repeated with a number where they do not suffice."""
    with path.open("w", encoding="utf-8") as file:
        file.writelines(f"{line}\n" for line in islice(sentences(data), count))


def sentences(data: str) -> Iterator[str]:
    texts = dict.fromkeys(
        " ".join(text.split())
        for info in discover(data)
        for split in (("all",) if "all" in info.splits else info.splits)
        for text in load(data, info.name, split, keep_going=True).sentences
    )
    number = 0
    while True:
        yield from (f"{number} {text}" if number else text for text in texts)
        number += 1


def plainly(texts: list[str]) -> float:
    """Seconds of `embed` of all texts, the encoder loaded before."""
    encoder = load_encoder("bundled", device="cpu")
    embed(encoder, texts[:64])
    start = time.perf_counter()
    for at in range(0, len(texts), CHUNK_TEXTS):
        embed(encoder, texts[at : at + CHUNK_TEXTS])
    return time.perf_counter() - start


def embedded(text: Path, folder: Path, engine: str, chunk: int) -> tuple[float, tuple[int, int], float]:
    """Seconds of the command, the most memory of all its processes in two fifths of it, the rate while chunks came."""
    words = ["corpus", "embed", "--text", text, "--out", folder, "--engine", engine, "--chunk", chunk, "--workers", 2]
    start = time.perf_counter()
    run = subprocess.Popen([sys.executable, "-m", "whitelab", *map(str, words)], stdout=subprocess.DEVNULL)
    taken, over = [0], threading.Event()

    def watch() -> None:
        while not over.wait(0.5):
            taken.append(_memory(run.pid))

    watcher = threading.Thread(target=watch)
    watcher.start()
    code = run.wait()
    seconds = time.perf_counter() - start
    over.set()
    watcher.join()
    if code:
        raise RuntimeError(f"corpus embed --engine {engine} ended with {code}")
    fifth = max(1, len(taken) // 5)
    return seconds, (max(taken[fifth : 2 * fifth] or taken), max(taken[-fifth:])), status(folder, 10**6).rate or 0.0


def _memory(pid: int) -> int:
    """Bytes of a process and all below it, pages that are shared counted once."""
    parents: dict[int, list[int]] = {}
    for entry in os.scandir("/proc"):
        if entry.name.isdigit():
            try:
                fields = Path(entry.path, "stat").read_text().rpartition(")")[2].split()
            except OSError:
                continue
            parents.setdefault(int(fields[1]), []).append(int(entry.name))
    found, total = [pid], 0
    for one in found:
        found += parents.get(one, [])
        try:
            lines = Path(f"/proc/{one}/smaps_rollup").read_text().splitlines()
        except OSError:
            continue
        total += sum(1024 * int(line.split()[1]) for line in lines if line.startswith("Pss:"))
    return total
