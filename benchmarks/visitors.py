"""`python -m benchmarks.visitors`: many visitors at once, who open random pages and turn random knobs.

A visitor speaks what the browser speaks to Streamlit, reads every element that comes back, waits a moment and goes on.
A page is there once its script has run and none of its parts is still waiting for a job. Between pages k is moved,
and the time to the new live number counted. Whatever shows a traceback, says that something is wrong or loses a
connection is an error.
"""

import argparse
import asyncio
import json
import math
import os
import random
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, field, replace
from pathlib import Path
from urllib.parse import urlencode, urlsplit

import numpy as np
import websockets
from streamlit.proto.Alert_pb2 import Alert
from streamlit.proto.BackMsg_pb2 import BackMsg
from streamlit.proto.Element_pb2 import Element
from streamlit.proto.ForwardMsg_pb2 import ForwardMsg

from benchmarks.harness import Table, figures, machine, publish
from tests.helpers.driving import Server, serve
from whitelab.base.switches import THREADS
from whitelab.cli.app import ARENAS, HOSTED
from whitelab.datasets import load
from whitelab.scoring.setting import FIT_SCOPES
from whitelab.statistics.projection import METHODS
from whitelab.training import TrainConfig
from whitelab.training.own_process import trained_apart
from whitelab.training.runs import Run, create
from whitelab.whitening import WHITENERS

NAME = "visitors"
PAGES = ("", "data", "anisotropy", "whitening", "layers", "dimensions", "uniformity", "compare", "retrieval", "probe")
VARIANTS = ("none", "center", "standardize", "pca", "pca", "zca", "cholesky", "soft", "shrunk")
FITS = ("task", "task", "task", "cross")  # one in four is cross-fitted
LIVE = "whitelab.live"  # the component with the live number
PATIENCE = 120.0  # seconds after which a page counts as never having come
LEAVING = 0.1  # seconds that who leaves waits for the server's farewell, which may take ten
THOUGHT = (0.5, 2.0)  # seconds before a move of k, and after it, where nothing else is said
PAGES_A_LINK = (1, 2, 3)  # looked at from one link


@dataclass
class Seen:
    """What all visitors have met: seconds of every page and of every move of k, and what went wrong."""

    pages: dict[str, list[float]] = field(default_factory=dict)
    moves: list[float] = field(default_factory=list)
    runs: Counter[str] = field(default_factory=Counter)  # of the whole script, and of parts of it
    errors: Counter[str] = field(default_factory=Counter)

    def all_pages(self) -> list[float]:
        """Seconds of the pages, whichever."""
        return [second for seconds in self.pages.values() for second in seconds]


@dataclass(frozen=True)
class Offer:
    """What visitors choose from: tasks, or `links` that all of them share; how long they think, how much they open."""

    tasks: Sequence[dict[str, str]]
    links: Sequence[dict[str, object]] = ()
    thought: tuple[float, float] = THOUGHT
    pages: float = math.inf


def knobs(rng: random.Random, tasks: Sequence[dict[str, str]]) -> dict[str, object]:
    """A random setting of a random task, as an address has it."""
    whitening = rng.choice(VARIANTS)
    found: dict[str, object] = dict(rng.choice(tasks))
    found["layers"] = sorted(rng.sample(range(7), rng.choice((1, 1, 1, 2))))
    found["whitening"] = WHITENERS[whitening].label
    if whitening != "none":
        found["fit"] = FIT_SCOPES[rng.choice(FITS)]
    if WHITENERS[whitening].takes_k and rng.random() < 0.6:
        found["k"] = rng.choice((32, 64, 100, 128, 200, 256))
    return found


class Visitor:
    """One browser tab: a connection, the live number's element, and the parts that ask to be run again."""

    pages = PAGES

    def __init__(self, url: str, seen: Seen, rng: random.Random, offer: Offer) -> None:
        self.url, self.seen, self.rng, self.offer = url, seen, rng, offer
        self.left = offer.pages
        self.query = ""
        self.page_hash = ""
        self.live: tuple[str, dict] | None = None  # id of the live number's element, and what it was handed
        self.again: dict[str, float] = {}  # fragment -> seconds after which it wants to be run
        self.due: dict[str, float] = {}
        self.begun = self.finished = self.cut_short = False  # of the run that was asked for last
        self.kept: dict[str, bytes] = {}  # messages that the server may name by their hash

    async def stay(self, until: float) -> None:
        """Follow links with knobs in them and look at a page or two more from there, until it is time to go."""
        parts = urlsplit(self.url)
        while time.monotonic() < until and self.left > 0:
            self.live, self.kept = None, {}
            try:
                async with websockets.connect(
                    f"ws://{parts.netloc}{parts.path}/_stcore/stream",
                    subprotocols=["streamlit"],
                    origin=f"{parts.scheme}://{parts.netloc}",
                    max_size=None,
                    ping_interval=None,
                    close_timeout=LEAVING,
                ) as self.socket:
                    self.query = urlencode(self.knobs(), doseq=True)
                    for _ in range(self.rng.choice(PAGES_A_LINK)):
                        if time.monotonic() > until or self.left <= 0:
                            return
                        self.left -= 1
                        await self.visit()
                        await self.read_for(self.rng.uniform(*self.offer.thought))
                        await self.move_k()
                        await self.read_for(self.rng.uniform(*self.offer.thought))
            except (websockets.WebSocketException, OSError) as error:
                self.seen.errors[f"lost: {type(error).__name__}"] += 1
                await asyncio.sleep(1)

    def knobs(self) -> dict[str, object]:
        """Those of the next link: one that others have too, or one of the visitor's own."""
        return self.rng.choice(self.offer.links) if self.offer.links else knobs(self.rng, self.offer.tasks)

    async def visit(self) -> None:
        """Open a random page and read it to its end."""
        page = self.rng.choice(self.pages)
        begun = time.monotonic()
        await self.ask(page=page)
        while not (self.finished and not self.again):
            if time.monotonic() - begun > PATIENCE:
                self.seen.errors[f"never came: {page or 'overview'}"] += 1
                return
            await self.read_for(0.05, lambda: self.finished and not self.again)
        self.seen.pages.setdefault(page or "overview", []).append(time.monotonic() - begun)

    async def move_k(self) -> None:
        """Move k, where the variant has one, and wait for the number that belongs to it."""
        if self.live is None or self.live[1].get("fixed"):
            return
        element, data = self.live
        wanted = self.rng.randint(8, int(data["dim"]) - 1)
        begun, self.live = time.monotonic(), None
        await self.ask(state={element: {"k": wanted}})

        def there() -> bool:
            return self.live is not None and self.live[1]["k"] == wanted and self.live[1]["score"] is not None

        await self.read_for(PATIENCE, there)
        if there():
            self.seen.moves.append(time.monotonic() - begun)
        else:
            self.seen.errors["no live number"] += 1
        self.live = self.live or (element, data)

    async def ask(self, page: str | None = None, state: dict[str, dict] | None = None, fragment: str = "") -> None:
        """Ask for a run of the script, or of one of its fragments."""
        message = BackMsg()
        run = message.rerun_script
        run.query_string, run.fragment_id, run.is_auto_rerun = self.query, fragment, bool(fragment)
        if page is not None:
            run.page_name = page
        elif self.page_hash:
            run.page_script_hash = self.page_hash
        run.cached_message_hashes.extend(self.kept)
        for element, values in (state or {}).items():
            widget = run.widget_states.widgets.add()
            widget.id, widget.json_value = element, json.dumps(values)
        if not fragment:
            self.begun, self.finished, self.again, self.due = False, False, {}, {}
        await self.socket.send(message.SerializeToString())

    async def read_for(self, seconds: float, enough: Callable[[], bool] = lambda: False) -> None:
        """Read what comes, and run again what asks for it, for so long or until it is `enough`."""
        end = time.monotonic() + seconds
        while not enough() and (left := end - time.monotonic()) > 0:
            soonest = min(self.due.values(), default=end)
            try:
                frame = await asyncio.wait_for(self.socket.recv(), max(0.001, min(left, soonest - time.monotonic())))
            except TimeoutError:
                for fragment in [one for one, due in self.due.items() if due <= time.monotonic()]:
                    self.due[fragment] = time.monotonic() + self.again[fragment]
                    await self.ask(fragment=fragment)
                continue
            message = ForwardMsg.FromString(frame)
            if message.WhichOneof("type") == "ref_hash":
                message = ForwardMsg.FromString(self.kept[message.ref_hash])
            elif message.metadata.cacheable and message.hash:
                self.kept[message.hash] = frame
            self.take(message)

    def take(self, message: ForwardMsg) -> None:
        """What a browser would do with a message."""
        kind = message.WhichOneof("type")
        if kind == "new_session":
            self.page_hash = message.new_session.page_script_hash
            self.seen.runs["parts" if message.metadata.run.fragment_ids else "pages"] += 1
            if message.metadata.run.fragment_ids:
                self.finished |= self.cut_short
            else:  # also where the server itself begins the page anew
                self.begun, self.finished, self.again, self.due = True, False, {}, {}
            self.cut_short = False
        elif kind == "navigation":
            self.page_hash = message.navigation.page_script_hash  # of the page that is shown; at first it was app.py
        elif kind == "auto_rerun":
            one = message.auto_rerun
            self.again[one.fragment_id] = one.interval
            self.due[one.fragment_id] = time.monotonic() + one.interval
        elif kind == "page_info_changed":
            self.query = message.page_info_changed.query_string
        elif kind == "page_not_found":
            self.seen.errors["page not found"] += 1
        elif kind == "script_finished":
            status = message.script_finished
            if status == ForwardMsg.FINISHED_WITH_COMPILE_ERROR:
                self.seen.errors["compile error"] += 1
            self.finished |= self.begun and status == ForwardMsg.FINISHED_SUCCESSFULLY  # not of the run before
            # Also said of a page that has come to its end, where the run of a part of it overtakes these words.
            early = status == ForwardMsg.FINISHED_EARLY_FOR_RERUN
            self.cut_short = early and self.begun and not message.metadata.run.fragment_ids
        elif kind == "delta" and message.delta.WhichOneof("type") == "new_element":
            self.element(message.delta.new_element)

    def element(self, element: Element) -> None:
        """Note a traceback, and the live number."""
        kind = element.WhichOneof("type")
        if kind == "exception":
            self.seen.errors[f"traceback: {element.exception.type}: {element.exception.message[:80]}"] += 1
        elif kind == "alert" and element.alert.format == Alert.ERROR:  # say, of data that are not there
            self.seen.errors[f"said: {element.alert.body[:80]}"] += 1
        elif kind == "bidi_component" and element.bidi_component.component_name == LIVE:
            self.live = element.bidi_component.id, json.loads(element.bidi_component.json)


class Projector(Visitor):
    """One who asks for the UMAP of another setting as soon as the last is drawn."""

    pages = ("anisotropy",)

    def knobs(self) -> dict[str, object]:
        """A random setting, its space projected."""
        return super().knobs() | {"space": "Projection", "method": METHODS["umap"]}

    async def move_k(self) -> None:
        """Never."""


@contextmanager
def trained(folder: Path) -> Iterator[Run]:
    """A run that is trained meanwhile, in a process as the app starts one for whoever presses Start."""
    config = TrainConfig(objective="simcse", model="bundled", batch=64, steps=100_000, eval_every=0, save_every=1000)
    run = create(config, load("demo").sentences, None, folder / "run")
    with trained_apart(run):
        yield run


def resident(pid: int) -> float:
    """MB of memory that a process holds."""
    for line in Path(f"/proc/{pid}/status").read_text().splitlines():
        if line.startswith("VmRSS"):
            return int(line.split()[1]) / 1000
    return float("nan")


def processor_seconds(pid: int) -> float:
    """Seconds of processors that a process has taken, its own and the system's for it."""
    user, system = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[11:13]
    return (int(user) + int(system)) / os.sysconf("SC_CLK_TCK")


def cost(servers: Sequence[Server]) -> tuple[float, float]:
    """MB of memory and seconds of processors of all of them."""
    pids = [server.process.pid for server in servers]
    return sum(map(resident, pids)), sum(map(processor_seconds, pids))


async def crowd(
    urls: Sequence[str],
    count: int,
    seconds: float,
    offer: Offer,
    seed: int,
    projectors: int = 0,
) -> tuple[Seen, Seen]:
    """Let `count` visitors stay for so long, or for the offer's pages; all come within the first ten seconds.

    In turns they go to one of the servers at `urls`. What they met, and what `projectors` met who were there beside
    them.
    """
    seen, beside, end = Seen(), Seen(), time.monotonic() + seconds

    async def one(number: int) -> None:
        await asyncio.sleep(10 * number / count)
        await Visitor(urls[number % len(urls)], seen, random.Random(1000 * seed + number), offer).stay(end)

    projected = replace(offer, pages=math.inf)
    others = [
        asyncio.create_task(
            Projector(urls[number % len(urls)], beside, random.Random(-1000 * seed - number), projected).stay(end)
        )
        for number in range(1, projectors + 1)
    ]
    await asyncio.gather(*map(one, range(count)))
    for other in others:
        other.cancel()
    await asyncio.gather(*others, return_exceptions=True)
    return seen, beside


def rows(seen: Seen) -> Iterator[tuple[str, ...]]:
    """Count, median and 95th percentile: all pages, the live number, each page."""
    parts = {
        "all pages": seen.all_pages(),
        "k to the live number": seen.moves,
        **dict(sorted(seen.pages.items())),
    }
    for name, seconds in parts.items():
        if seconds:
            median, high = np.percentile(seconds, (50, 95))
            yield name, str(len(seconds)), f"{figures(median)} s", f"{figures(high)} s", f"{figures(max(seconds))} s"


def costs(before: tuple[float, float], after: tuple[float, float], pages: int) -> str:
    """Memory before and after, and the processor's seconds in between, a page."""
    (least, begun), (most, ended) = before, after
    return (
        f"Memory {least:.0f} MB, then {most:.0f} MB. The server took {ended - begun:.0f} s of processors, "
        f"{figures((ended - begun) / max(pages, 1))} a page with its move of k."
    )


def options() -> argparse.ArgumentParser:
    """What can be said of the visitors and of what they are served."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.visitors", description=__doc__)
    parser.add_argument("--visitors", type=int, default=50)
    parser.add_argument("--minutes", type=float, default=10)
    parser.add_argument(
        "--pages", type=int, help="pages each opens at most: the same ones whatever the server's pace, to compare by"
    )
    parser.add_argument("--projectors", type=int, default=0, help="how many draw one UMAP after another beside them")
    parser.add_argument("--training", action="store_true", help="a run is trained beside them")
    parser.add_argument("--data", default="", help="a folder with STS tasks besides the bundled pairs")
    parser.add_argument("--tasks", default="stsb", help="which of them, with commas")
    parser.add_argument(
        "--links", type=int, default=0, help="how many settings all of them share, as a class does (default: no two)"
    )
    parser.add_argument("--thought", type=float, nargs=2, default=THOUGHT, help="seconds before each move, from and to")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--store", default="", help="a folder that keeps the embeddings (default: an empty one)")
    parser.add_argument("--servers", type=int, default=1, help="how many processes serve, on one store")
    parser.add_argument("--url", default="", help="a server that runs already (default: one of its own)")
    parser.add_argument("--publish", action="store_true", help="into benchmarks/README.md")
    return parser


def main(argv: Sequence[str] | None = None) -> int:
    """Serve the app, let the visitors in, and print what they met; 1 where there was an error."""
    args = options().parse_args(argv)
    for name in (THREADS, ARENAS):
        os.environ.setdefault(name, HOSTED[name])  # as servers for many visitors are started
    tasks: list[dict[str, str]] = [{}]
    tasks += [{"data": args.data, "task": task} for task in args.tasks.split(",")] if args.data else []
    with tempfile.TemporaryDirectory() as folder:
        servers, taken = [], []
        try:
            for number in range(0 if args.url else args.servers):
                servers.append(serve(Path(args.store or Path(folder) / "store"), Path(folder) / f"app-{number}.log"))
            taken += [cost(servers)] if servers else []
            drawn = random.Random(args.seed)
            links = [knobs(drawn, tasks) for _ in range(args.links)]
            offer = Offer(tasks, links, tuple(args.thought), args.pages or math.inf)
            asked = args.visitors, 60 * args.minutes, offer, args.seed, args.projectors
            with trained(Path(folder)) if args.training else nullcontext() as run:
                seen, beside = asyncio.run(crowd([args.url] if args.url else [one.url for one in servers], *asked))
                steps = run.steps_done if run else 0
            taken += [cost(servers)] if servers else []
        finally:
            for server in servers:
                server.stop()
    errors = seen.errors + beside.errors
    table = Table(
        f"{args.visitors} visitors for {args.minutes:g} minutes"
        + (f", {args.servers} servers" if args.servers > 1 else "")
        + (f", {args.pages} pages each" if args.pages else "")
        + (f", {args.links} settings" if args.links else ""),
        ("", "times", "median", "95 %", "longest"),
        tuple(rows(seen)),
        (
            *([costs(*taken, len(seen.all_pages()))] if taken else []),
            f"The script ran {seen.runs['pages']} times, parts of it {seen.runs['parts']} times.",
            *([f"Beside them {len(beside.all_pages())} UMAPs were drawn."] if args.projectors else []),
            *([f"Beside them a run was trained for {steps} steps."] if args.training else []),
            "Errors: " + (", ".join(f"{name} ({count})" for name, count in errors.most_common()) or "none") + ".",
        ),
    )
    print(table.markdown())
    if args.publish:
        publish(NAME, [table], machine())
    return 1 if errors else 0


if __name__ == "__main__":
    sys.exit(main())
