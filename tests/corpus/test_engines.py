"""Engines: the same bits wherever chunks are encoded, whatever is killed meanwhile, and nothing done twice."""

import os
import signal
import subprocess
import sys
from concurrent.futures import Future
from concurrent.futures.process import BrokenProcessPool
from pathlib import Path

import pytest
from corpora import embed
from processes import ROOT, until

from whitelab.corpus import engines
from whitelab.corpus.fitting import fit_corpus
from whitelab.corpus.manifest import status


def test_the_map_of_several_processes_has_the_bits_of_one(model, text, tmp_path):
    made = embed(text, tmp_path / "many", model, layers=(1, -1), engine="processes")
    assert (made.encoded, made.finished) == (40, True)
    embed(text, tmp_path / "one", model, layers=(1, -1))
    assert len({fit_corpus(tmp_path / name, "pca", 4)[1]["digest"] for name in ("many", "one")}) == 1
    assert embed(text, tmp_path / "many", model, layers=(1, -1), engine="processes").encoded == 0


def children(pid: int) -> list[int]:
    """Pids of processes below one, from /proc."""
    found = {}
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                parent = int((entry / "stat").read_text().rpartition(")")[2].split()[1])
            except OSError:
                continue
            found.setdefault(parent, []).append(int(entry.name))
    below = list(found.get(pid, []))
    for one in below:
        below += found.get(one, [])
    return below


def is_worker(pid: int) -> bool:
    try:
        words = Path(f"/proc/{pid}/cmdline").read_bytes()
    except OSError:
        return False
    return b"loky.backend.popen_loky_posix" in words or b"ray::MapWorker" in words


def start(text, folder, model, engine):
    """An embed of chunks of two texts in a process of its own, once its first chunk is there."""
    asked = ["--text", text, "--out", folder, "--model", model, "--layers", "1,-1", "--engine", engine, "--chunk", "2"]
    words = [sys.executable, "-m", "whitelab", "corpus", "embed", *map(str, asked)]
    run = subprocess.Popen(words, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    until(lambda: run.poll() is not None or list(Path(folder).glob("*.parquet")))
    assert run.poll() is None, run.stdout.read()
    return run


@pytest.mark.parametrize("engine", ["processes", "ray"])
def test_workers_and_drivers_that_are_killed_cost_what_they_held_and_no_bits(engine, model, tmp_path):
    (tmp_path / "text.txt").write_text("".join(f"a man number {i} plays\n" for i in range(160)))
    run = start(tmp_path / "text.txt", tmp_path / "out", model, engine)
    workers = [pid for pid in children(run.pid) if is_worker(pid)]
    assert workers
    os.kill(workers[0], signal.SIGKILL)
    before = status(tmp_path / "out").done
    until(lambda: status(tmp_path / "out").done >= min(before + 6, 80))  # it goes on
    workers = [pid for pid in children(run.pid) if is_worker(pid)]
    run.kill()
    run.wait()
    until(lambda: not any(map(is_worker, workers)))  # nobody is left who would write
    there = status(tmp_path / "out").done
    assert not status(tmp_path / "out").failed
    made = embed(tmp_path / "text.txt", tmp_path / "out", model, layers=(1, -1), chunk_texts=2)
    assert (made.encoded, made.finished) == (160 - 2 * there, True)
    embed(tmp_path / "text.txt", tmp_path / "plain", model, layers=(1, -1), chunk_texts=2)
    assert len({fit_corpus(tmp_path / name, "pca", 4)[1]["digest"] for name in ("out", "plain")}) == 1


def test_a_chunk_that_ends_its_worker_is_given_up_and_the_rest_goes_on(model, text, tmp_path, monkeypatch):
    plan = embed(text, tmp_path / "plan", model)

    class Fragile:
        """A pool that breaks, with all it holds, whenever it is given one chunk."""

        def __init__(self, workers, initializer, initargs):
            self.broken = False
            monkeypatch.setattr(engines, "_go", initargs[0].begin())

        def submit(self, work, texts):
            if self.broken:
                raise BrokenProcessPool
            future, self.broken = Future(), texts == plan.texts[1]
            if self.broken:
                future.set_exception(BrokenProcessPool())
            else:
                future.set_result(work(texts))
            return future

        def __enter__(self):
            return self

        def __exit__(self, *problem):
            pass

    monkeypatch.setattr(engines, "ProcessPoolExecutor", Fragile)
    made = embed(text, tmp_path / "out", model, engine="processes")
    assert made.failed == {plan.chunks[1]: "its worker was killed each time"}
    assert (made.finished, status(tmp_path / "out").done) == (False, 2)
