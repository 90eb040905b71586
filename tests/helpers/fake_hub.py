"""A Hugging Face hub on 127.0.0.1 that speaks what fetching a file needs, with faults to order, and small sources."""

import gzip
import hashlib
import io
import json
import tarfile
import threading
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

from pair_files import SICK_HEAD

from whitelab.datasets.sources import SOURCES, Remote, Source

COMMIT = "c0ffee" + "0" * 34


def small_senteval(more=()) -> bytes:
    """A tar as SimCSE's: two folders of ours among others, about 300 kB; `more` adds members or replaces some."""
    words = [hashlib.sha256(str(i).encode()).hexdigest() for i in range(3000)]
    files = {
        "STS/STS12-en-test/STS.input.MSRpar.txt": "".join(f"a {w}\tb {w[:9]}\n" for w in words),
        "STS/STS12-en-test/STS.gs.MSRpar.txt": "".join(f"{i % 6}.0\n" for i in range(3000)),
        "SICK/SICK_train.txt": SICK_HEAD + "1\ta\tb\t3.3\tNEUTRAL\n2\tc\td\t1\tENTAILMENT\n",
        "SICK/SICK_test_annotated.txt": SICK_HEAD + "1\te\tf\t3.3\tNEUTRAL\n2\tg\th\t1\tENTAILMENT\n",
        "TREC/train.csv": "not ours\n",
    } | dict(more)
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w") as packed:
        for name, text in files.items():
            info = tarfile.TarInfo(name)
            info.size = len(text.encode())
            packed.addfile(info, io.BytesIO(text.encode()))
    return buffer.getvalue()


def mteb_rows(sentence: str) -> bytes:
    rows = [{"sentence1": f"{sentence} {i}", "sentence2": "b", "score": float(i)} for i in range(3)]
    return gzip.compress("".join(json.dumps(row) + "\n" for row in rows).encode(), mtime=0)


TAR = small_senteval()
FILES = {
    ("someone/bundle", "senteval.tar"): TAR,
    ("mteb/sts12-sts", "train.jsonl.gz"): mteb_rows("train"),
    ("mteb/sts12-sts", "test.jsonl.gz"): mteb_rows("test"),
    ("mteb/sts16-sts", "test.jsonl.gz"): mteb_rows("other"),
}
ARCHIVE = Source(
    name="small",
    title="A small SentEval",
    remotes=(Remote("someone/bundle", COMMIT, ("senteval.tar",), len(TAR)),),
    tasks={"sts12": ("test",), "sickr": ("train", "test")},
    licence="CC BY-NC-SA 3.0",
    terms="Name the authors.",
    home="https://huggingface.co/datasets/someone/bundle",
    wanted=("STS", "SICK"),
)
REPOSITORIES = Source(
    name="pair",
    title="Two of MTEB's",
    remotes=(
        Remote("mteb/sts12-sts", COMMIT, ("train.jsonl.gz", "test.jsonl.gz"), 300),
        Remote("mteb/sts16-sts", COMMIT, ("test.jsonl.gz",), 200),
    ),
    tasks={"sts12": ("train", "test"), "sts16": ("test",)},
    licence="none stated",
    terms="Their own terms go on to hold.",
    home="https://huggingface.co/mteb",
)


class Local(ThreadingHTTPServer):
    """A server on this machine only, which answers until it is closed."""

    def __init__(self, answers):
        super().__init__(("127.0.0.1", 0), answers)
        self.daemon_threads = True
        threading.Thread(target=self.serve_forever, args=(0.02,), daemon=True).start()

    @property
    def url(self):
        return f"http://127.0.0.1:{self.server_port}"

    def server_close(self):
        self.shutdown()
        super().server_close()


class Speaking(BaseHTTPRequestHandler):
    """HTTP as a hub speaks it: what HEAD and GET are told is said by `answer`."""

    protocol_version = "HTTP/1.1"

    def do_HEAD(self):
        self.answer()

    def do_GET(self):
        self.answer()

    def send(self, status, headers, data=b"", cut=None):
        """Send an answer; headers that are None are left out, and all after `cut` bytes of the data."""
        self.send_response(status)
        for key, value in headers.items():
            if value is not None:
                self.send_header(key, value)
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        if self.command == "GET":
            self.wfile.write(data[:cut])
        if cut is not None:
            self.close_connection = True

    def log_message(self, *args):
        pass


class Hub(Local):
    """`faults`: what the coming GETs of a file do instead, first in first out.

    A number cuts the connection after so many bytes of the answer; a pair (status, headers) refuses; a function
    changes the file's bytes. `heads` holds refusals of HEAD in the same way, but for every call.
    """

    def __init__(self):
        self.files, self.faults, self.heads = dict(FILES), [], None
        self.asked = []  # (method, path, Range, Authorization)
        self.commit, self.lfs, self.ranges, self.store = COMMIT, True, True, None
        super().__init__(Answers)

    def gets(self):
        """The Range headers of every GET of a file."""
        return [asked[2] for asked in self.asked if asked[0] == "GET" and "/resolve/" in asked[1]]


class Answers(Speaking):
    def answer(self):
        hub, path = self.server, self.path.split("?")[0].strip("/")
        hub.asked.append((self.command, path, self.headers.get("Range"), self.headers.get("Authorization")))
        if path.startswith("store/"):
            return self.send_file(bytes.fromhex(path.removeprefix("store/")).decode().split("|"))
        repo, _, rest = path.removeprefix("datasets/").partition("/resolve/")
        commit, _, file = rest.partition("/")
        if self.command == "HEAD" and hub.heads:
            return self.send(*hub.heads)
        if repo not in {name for name, _ in hub.files}:
            return self.send(404, {"X-Error-Code": "RepoNotFound"})
        if commit != hub.commit and commit != COMMIT:
            return self.send(404, {"X-Error-Code": "RevisionNotFound"})
        if (repo, file) not in hub.files:
            return self.send(404, {"X-Error-Code": "EntryNotFound"})
        if hub.store:  # another host holds the bytes, as the hub's content network does
            place = f"{hub.store}/store/{f'{repo}|{file}'.encode().hex()}"
            return self.send(302, self.names(repo, file) | {"Location": place})
        return self.send_file((repo, file))

    def names(self, repo, file):
        data = self.server.files[repo, file]
        blob = hashlib.sha1(b"blob %d\0" % len(data) + data).hexdigest()
        names = {"X-Repo-Commit": self.server.commit, "ETag": f'"{blob}"'}
        if self.server.lfs:
            names |= {"X-Linked-Etag": f'"{hashlib.sha256(data).hexdigest()}"', "X-Linked-Size": str(len(data))}
        return names

    def send_file(self, place):
        hub, data = self.server, self.server.files[tuple(place)]
        fault = hub.faults.pop(0) if self.command == "GET" and hub.faults else None
        if isinstance(fault, tuple):
            return self.send(*fault)
        headers, status = self.names(*place), 200
        if callable(fault):
            data, fault = fault(data), None
        asked = self.headers.get("Range", "")
        if asked and hub.ranges:
            start = int(asked.removeprefix("bytes=").rstrip("-"))
            headers["Content-Range"] = f"bytes {start}-{len(data) - 1}/{len(data)}"
            data, status = data[start:], 206
        return self.send(status, headers, data, fault)


@contextmanager
def serving(monkeypatch, cache):
    """A hub with small sources that this process's huggingface_hub asks, and a cache folder of its own."""
    from huggingface_hub import constants

    hub = Hub()
    for source in (ARCHIVE, REPOSITORIES):
        monkeypatch.setitem(SOURCES, source.name, source)
    monkeypatch.setenv("WHITELAB_CACHE", str(cache))
    monkeypatch.setenv("HF_TOKEN", "hf_secret")
    monkeypatch.setattr(constants, "HF_HUB_DOWNLOAD_TIMEOUT", 5)
    monkeypatch.setattr(constants, "DOWNLOAD_CHUNK_SIZE", 1 << 14)  # its 10 MB would hold all of a small file
    with hub, asking(monkeypatch, hub.url):
        yield hub


@contextmanager
def asking(monkeypatch, url):
    """Let this process's huggingface_hub ask `url` meanwhile, whatever its proxies."""
    from huggingface_hub import constants
    from huggingface_hub.utils import close_session

    monkeypatch.setenv("NO_PROXY", "127.0.0.1,localhost")
    monkeypatch.setenv("no_proxy", "127.0.0.1,localhost")
    monkeypatch.setattr(constants, "HF_HUB_OFFLINE", False)
    point_to(monkeypatch, url)
    close_session()  # an earlier one may have read other proxies
    try:
        yield
    finally:
        close_session()


def point_to(monkeypatch, url):
    """Let this process's huggingface_hub ask `url`; it reads HF_ENDPOINT only once, when it is imported."""
    from huggingface_hub import constants

    monkeypatch.setattr(constants, "ENDPOINT", url)
    monkeypatch.setattr(constants, "HUGGINGFACE_CO_URL_TEMPLATE", url + "/{repo_id}/resolve/{revision}/{filename}")
