"""Where chunks are encoded: in this process, in several, or wherever Ray puts them. One interface:

    engine(items, work) -> outcomes, in any order, one for each item

`items` are names of texts, `work` is what a worker needs to begin. Which engine it was leaves no trace in a result.
"""

import logging
import os
import socket
import sys
import time
from collections import Counter, deque
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, wait
from concurrent.futures.process import BrokenProcessPool
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from threading import Event, Thread
from typing import NamedTuple

from joblib.externals.loky import ProcessPoolExecutor

from whitelab.base.checks import check_choice, check_int
from whitelab.base.installation import need
from whitelab.base.machine import give_back_memory
from whitelab.base.own_process import python_path
from whitelab.corpus.chunks import Recipe, encode_chunk, is_done
from whitelab.encoding.encoders import load_encoder

_DEATHS = 2  # of a worker that held this chunk alone, before it is given up


class Outcome(NamedTuple):
    """What became of a chunk: texts encoded (0: it was there), or why not; `full`: the disk refuses, and will."""

    texts: str
    encoded: int
    error: str = ""
    full: bool = False


@dataclass(frozen=True)
class Work:
    """What a worker needs to begin: a folder, a recipe and the arguments of `load_encoder`."""

    folder: str
    recipe: Recipe
    loading: dict

    def begin(self, encoder=None) -> Callable[[str], Outcome]:
        """Load the encoder, unless it is given; the result encodes one chunk after another."""
        return partial(_attempt, Path(self.folder), self.recipe, encoder or load_encoder(**self.loading))


Engine = Callable[[Sequence[str], Work], Iterator[Outcome]]


def _attempt(folder: Path, recipe: Recipe, encoder, texts: str) -> Outcome:
    if is_done(folder, recipe.name(texts)):
        return Outcome(texts, 0)
    try:
        return Outcome(texts, encode_chunk(folder, texts, recipe, encoder))
    except OSError as problem:
        return Outcome(texts, 0, f"{problem.strerror or problem}", full=True)
    except (ValueError, RuntimeError, MemoryError) as problem:
        return Outcome(texts, 0, " ".join(str(problem).split()) or type(problem).__name__)
    finally:
        give_back_memory()


def serial(items: Sequence[str], work: Work, encoder=None) -> Iterator[Outcome]:
    """One after another, here."""
    return map(work.begin(encoder), items)


def processes(items: Sequence[str], work: Work, workers: int) -> Iterator[Outcome]:
    """In new processes, two chunks a worker under way. They are joblib's, which do not run the main script again:
    inside a server that script is a page.

    Where a worker is killed the others' results stay, and what was under way is tried again, one at a time, so that a
    chunk which ends its worker is known and given up after two.
    """
    waiting, suspects, deaths = deque(items), deque(), Counter()
    while waiting or suspects:
        with ProcessPoolExecutor(workers, initializer=_begin, initargs=(work, os.getpid())) as pool:
            under_way: dict[Future, str] = {}
            while waiting or suspects or under_way:
                queue, window = (suspects, 1) if suspects else (waiting, 2 * workers)
                try:
                    while queue and len(under_way) < window:
                        future = pool.submit(_go_on, queue[0])
                        under_way[future] = queue.popleft()
                    done = wait(under_way, return_when=FIRST_COMPLETED).done
                    broken = any(isinstance(future.exception(), BrokenProcessPool) for future in done)
                except BrokenProcessPool:
                    done, broken = set(), True
                for future in [one for one in done if one.exception() is None]:
                    under_way.pop(future)
                    yield future.result()
                if broken:
                    break
                for future in [one for one in done if one in under_way]:
                    future.result()  # what only a fault of ours raises
            alone = len(under_way) == 1
            for item in under_way.values():
                deaths[item] += alone
                if deaths[item] < _DEATHS:
                    suspects.append(item)
                else:
                    yield Outcome(item, 0, "its worker was killed each time")


_go: Callable[[str], Outcome] | None = None


def _begin(work: Work, parent: int) -> None:
    global _go
    Thread(target=_end_with, args=(parent,), daemon=True).start()
    _go = work.begin()


def _end_with(parent: int) -> None:
    while os.getppid() == parent:
        time.sleep(1)
    os._exit(1)  # nobody is left who would read a result


def _go_on(texts: str) -> Outcome:
    return _go(texts)


def with_ray(
    items: Sequence[str], work: Work, workers: int, address: str | None = None, gpus: float = 0.0
) -> Iterator[Outcome]:
    """In a pool of Ray's actors, `gpus` of a GPU each, on the cluster at `address` or one of this machine's own.

    Restarts, retries and placement are Ray's; what an actor finds done it does not do again. The folder must be one
    that every node sees. Raises ValueError where the cluster has too few processors: with as many actors as there are,
    a run would wait for ever.
    """
    need("ray")
    import ray

    with _cluster(ray, workers, address):
        context = ray.data.DataContext.get_current()
        context.enable_progress_bars = False
        logging.getLogger("ray.data").setLevel(logging.ERROR)
        blocks = min(len(items), 20_000)  # a block a chunk: results come one by one, and a lost one is one chunk
        found = ray.data.from_items([{"texts": item} for item in items], override_num_blocks=blocks).map_batches(
            _Actor,
            fn_constructor_args=(work,),
            compute=ray.data.ActorPoolStrategy(size=workers),
            batch_size=1,
            num_cpus=1,
            num_gpus=gpus,
        )
        for row in found.iter_rows():
            yield Outcome(str(row["texts"]), int(row["encoded"]), str(row["error"]), bool(row["full"]))


class _cluster:
    """A connection to Ray for the time of a run: the one there is, the one at an address, or one of its own."""

    def __init__(self, ray, workers: int, address: str | None):
        self.ray, self.workers, self.address, self.ours = ray, workers, address, False

    def __enter__(self) -> None:
        ray = self.ray
        if not ray.is_initialized():
            quiet = {"log_to_driver": False, "logging_level": "ERROR"}
            if self.address:
                ray.init(self.address, **quiet)
            else:
                os.environ.setdefault("RAY_BACKEND_LOG_LEVEL", "fatal")
                ray.init(
                    "local",  # not whatever cluster happens to be near
                    num_cpus=self.workers + 1,
                    include_dashboard=False,
                    # Ray exchanges 127.0.0.1 for an address that others reach; Linux has a loopback of more than one.
                    _node_ip_address="127.0.0.2" if sys.platform == "linux" else "127.0.0.1",
                    runtime_env={"env_vars": {"PYTHONPATH": python_path()}},
                    **quiet,
                )
            self.ours = True
        self.over = Event()
        Thread(target=_say_when_gone, args=(ray.get_runtime_context().gcs_address, self.over), daemon=True).start()
        there = int(ray.cluster_resources().get("CPU", 0))
        if there < self.workers + 1:
            self.__exit__()
            raise ValueError(f"workers={self.workers} must be below the {there} processors of the Ray cluster")

    def __exit__(self, *problem) -> None:
        self.over.set()
        if self.ours:
            self.ray.shutdown()


def _say_when_gone(address: str, over: Event) -> None:
    """Ray ends this process without a word a minute after its head has gone; here is one."""
    host, _, port = address.rpartition(":")
    while not over.wait(5):
        try:
            socket.create_connection((host, int(port)), timeout=20).close()
        except OSError as problem:
            print(
                f"the head of the Ray cluster at {address} does not answer ({problem}); if that goes on the run ends "
                "within a minute. What is done stays done: run embed again",
                file=sys.stderr,
                flush=True,
            )


class _Actor:
    def __init__(self, work: Work):
        self.go = work.begin()

    def __call__(self, batch: dict) -> dict:
        found = [self.go(str(texts)) for texts in batch["texts"]]
        return {name: [getattr(one, name) for one in found] for name in Outcome._fields}


ENGINES = ("serial", "processes", "ray")


def check_engine(name: str, workers: int, address: str | None = None, gpus: float = 0.0) -> None:
    """Raise ValueError for an engine that is none, no worker, or what this engine has no use for.

    Raises MissingLibraryError where Ray is asked for and not installed.
    """
    check_choice(name, "engine", ENGINES)
    check_int(workers, "workers", 1)
    if name == "ray":
        need("ray")
    elif address or gpus:
        raise ValueError(f"address and gpus go with engine='ray', got engine={name!r}")


def engine_named(name: str, workers: int, encoder, address: str | None, gpus: float) -> Engine:
    """An engine by its name, which `check_engine` has passed."""
    if name == "ray":
        return partial(with_ray, workers=workers, address=address, gpus=gpus)
    return partial(processes, workers=workers) if name == "processes" else partial(serial, encoder=encoder)
