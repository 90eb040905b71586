"""What fetching promises: whole and checked or not there at all, resumed where it was cut, told in one line."""

import errno
import hashlib
import json
import os
import re
import shutil
import threading
import time
from dataclasses import replace
from pathlib import Path

import fake_hub
import pytest
from fake_hub import ARCHIVE, COMMIT, FILES, TAR
from processes import ROOT, free_port, run_python

from whitelab.base.wording import amount
from whitelab.cli import main
from whitelab.datasets import SOURCES, DataError, DownloadError, LicenceNotAccepted, discover, fetch, fetched, load
from whitelab.datasets import hub as hub_module
from whitelab.datasets.archives import ArchiveError
from whitelab.datasets.layouts import PUBLISHED_PAIRS
from whitelab.datasets.sources import RECORD, data_root
from whitelab.scoring.fit_text import scope_text


@pytest.fixture
def hub(monkeypatch, tmp_path):
    with fake_hub.serving(monkeypatch, tmp_path / "cache") as server:
        yield server


@pytest.fixture
def no_pauses(monkeypatch):
    """huggingface_hub waits between its tries."""
    monkeypatch.setattr(time, "sleep", lambda seconds: None)


class Cancelled(Exception):
    """As the app's jobs raise it from the progress callback."""


def got(source="small", **options) -> Path:
    return fetch(source, accept_licence=True, **options)


def nothing_is_offered(name="small") -> bool:
    """There is no folder under the source's name, so nothing half-written can be read."""
    return fetched(name) is None and not (data_root() / name).exists()


def refused(message: str, name="small", **options) -> None:
    """Fetching fails with one line that begins with the source's name and matches."""
    with pytest.raises(DownloadError, match=message) as caught:
        got(name, **options)
    assert "\n" not in str(caught.value)
    assert str(caught.value).startswith(f"{name}: ")
    assert nothing_is_offered(name)


# ------------------------------------------------------------------------------------------------ the registry


def test_every_source_is_pinned_and_says_what_it_asks():
    for name, source in SOURCES.items():
        assert source.name == name
        assert all((source.terms, source.licence, source.title, source.home))
        assert all(len(remote.revision) == 40 and remote.files for remote in source.remotes)  # a branch could change
        assert ("sickr" in source.tasks) == ("CC BY-NC-SA" in source.terms) == ("CC BY-NC-SA" in source.licence)


@pytest.mark.parametrize("name", ["senteval", "mteb"])
def test_the_seven_tasks_are_all_there_with_their_splits(name):
    tasks = SOURCES[name].tasks
    assert set(tasks) == {"stsb", "sickr", "sts12", "sts13", "sts14", "sts15", "sts16"}
    assert tasks["stsb"] == ("train", "dev", "test")
    if name == "senteval":  # MTEB has one split of SICK
        assert all((task, split) in PUBLISHED_PAIRS for task, splits in tasks.items() for split in splits)


# --------------------------------------------------------------------------------------------------- the whole


def test_an_archive_is_fetched_unpacked_and_read(hub):
    folder = got()
    assert folder == data_root() / "small" == fetched("small")
    assert {info.name: info.splits for info in discover(folder)} == {"sts12": ("test",), "sickr": ("train", "test")}
    assert load(folder, "sts12").n_pairs == 3000
    assert not (folder / "TREC").exists()
    assert sorted(entry.name for entry in data_root().iterdir()) == [".locks", "small"]
    record = json.loads((folder / RECORD).read_text())
    assert (record["source"], record["licence"]) == ("small", ARCHIVE.licence)
    digest = hashlib.sha256(TAR).hexdigest()
    assert record["files"] == [{"repo": "someone/bundle", "revision": COMMIT, "file": "senteval.tar", "digest": digest}]


def test_repositories_are_fetched_side_by_side_and_every_byte_is_counted_once(hub):
    calls = []
    folder = got("pair", progress=lambda done, total: calls.append((done, total)))
    assert {info.name: info.splits for info in discover(folder)} == {"sts12": ("train", "test"), "sts16": ("test",)}
    assert load(folder, "sts12", "train").first == ("train 0", "train 1", "train 2")
    assert (folder / "sts16-sts" / "test.jsonl.gz").read_bytes() == FILES["mteb/sts16-sts", "test.jsonl.gz"]
    total = sum(len(data) for (repo, _), data in FILES.items() if repo.startswith("mteb"))
    counts = [done for done, _ in calls]
    assert {of for _, of in calls} == {total}
    assert counts == sorted(counts)
    assert (counts[0], counts[-1]) == (0, total)


def test_a_fetched_source_is_found_by_its_name_wherever_a_path_is_taken(hub, tmp_path, monkeypatch):
    with pytest.raises(DataError, match="^small: not fetched yet; python -m whitelab download small shows its licence"):
        load("small", "sts12")
    got()
    assert load("small", "sts12").fingerprint == load(data_root() / "small", "sts12").fingerprint
    assert scope_text("splits", "small", "sickr").keys() == set("abcdefgh")
    monkeypatch.chdir(tmp_path)  # a path of that name goes before
    Path("small").mkdir()
    Path("small", "mine.tsv").write_text("sentence1\tsentence2\tscore\na\tb\t1\nc\td\t2\n")
    assert [info.name for info in discover("small")] == ["mine"]


def test_what_is_here_is_neither_fetched_again_nor_asked_for(hub):
    folder = got()
    hub.asked.clear()
    assert got() == folder
    assert fetch("small", accept_licence=False) == folder  # its terms were accepted when it was fetched
    assert hub.asked == []


def test_an_empty_folder_of_ones_own_is_filled_and_any_other_is_left_alone(hub, tmp_path):
    mine, full = tmp_path / "mine" / "sts", tmp_path / "full"
    for folder in (mine, full):
        folder.mkdir(parents=True)
    assert got(folder=mine) == mine == got(folder=mine)
    assert load(mine, "sts12").n_pairs == 3000
    assert [entry.name for entry in mine.parent.iterdir()] == ["sts"]
    assert nothing_is_offered()  # the name stands for the cache only
    (full / "mine").write_text("kept")
    hub.asked.clear()
    for source, folder in (("small", full), ("small", full / "mine"), ("pair", mine)):
        with pytest.raises(DownloadError, match=f"folder={folder} must be empty or not there yet"):
            got(source, folder=folder)
    refused("cannot be written", folder=full / "mine" / "below")
    assert hub.asked == []
    assert (full / "mine").read_text() == "kept"


def test_bytes_on_another_host_are_fetched_there_without_the_token(hub):
    hub.store = f"http://localhost:{hub.server_port}"
    assert load(got(), "sts12").n_pairs == 3000
    tokens = {path.split("/")[0]: token for _, path, _, token in hub.asked}
    assert tokens == {"datasets": "Bearer hf_secret", "store": None}


def test_nothing_is_asked_of_the_network_before_the_terms_are_accepted(hub):
    with pytest.raises(
        LicenceNotAccepted, match=r"its terms must be accepted first. Name the authors. .*accept_licence"
    ):
        fetch("small", accept_licence=False)
    assert hub.asked == []
    assert nothing_is_offered()


# -------------------------------------------------------------------------------------------- cut and cancelled


def test_a_cut_connection_is_taken_up_where_it_was_cut(hub, no_pauses):
    hub.faults = [100_000]
    assert load(got(), "sts12").n_pairs == 3000
    first, second = hub.gets()
    assert first is None
    assert 0 < int(second[6:-1]) <= 100_000


@pytest.mark.parametrize("ranges", [True, False])
def test_what_a_failed_call_got_is_not_fetched_again_by_the_next(hub, no_pauses, ranges):
    hub.faults = [100_000, (503, {})]
    refused("answered 503")
    (part,) = (data_root() / ".small.parts").iterdir()
    kept = part.stat().st_size
    hub.asked.clear()
    hub.ranges = ranges  # a hub that knows none sends the whole again
    counts = []
    assert load(got(progress=lambda done, total: counts.append(done)), "sts12").n_pairs == 3000
    assert hub.gets() == [f"bytes={kept}-"]
    assert (counts[0], counts[-1]) == (kept, len(TAR))
    assert not part.parent.exists()


def test_of_several_files_only_the_missing_ones_are_fetched(hub):
    hub.faults = [lambda data: data, (500, {})]
    refused("answered 500", "pair")
    hub.asked.clear()
    got("pair")
    assert len(hub.gets()) == 2  # of three


def test_a_connection_that_gives_nothing_at_all_is_told_and_not_tried_for_ever(hub, no_pauses):
    hub.faults = [0] * 99
    refused(r"the connection was cut \(.*\): try again$")
    assert hub.faults


@pytest.mark.parametrize("share", [0.3, 1])  # of the bytes; with all of them, it is being unpacked
def test_a_cancelled_call_leaves_nothing_half_written_and_the_next_goes_on(hub, share):
    calls = []

    def cancel(done, total):
        calls.append(done)
        if done >= share * total and calls.count(done) > (2 if share == 1 else 0):
            raise Cancelled

    with pytest.raises(Cancelled):
        got(progress=cancel)
    assert nothing_is_offered()
    hub.asked.clear()
    assert load(got(), "sts12").n_pairs == 3000
    assert None not in hub.gets()


def test_two_at_once_fetch_it_once(hub, monkeypatch):
    begun, gate = threading.Event(), threading.Event()

    def hold(data):
        begun.set()
        gate.wait(20)
        return data

    hub.faults = [hold]
    threads = [threading.Thread(target=got) for _ in range(2)]
    threads[0].start()
    try:
        assert begun.wait(20)
        monkeypatch.setattr(hub_module, "LOCK_SECONDS", 0.1)
        refused("another process is fetching it into .*small; wait for that")
        monkeypatch.setattr(hub_module, "LOCK_SECONDS", 20)
        threads[1].start()
    finally:
        gate.set()
        threads[0].join(20)
    threads[1].join(20)
    assert load("small", "sts12").n_pairs == 3000
    assert len(hub.gets()) == 1


# --------------------------------------------------------------------------------------------------- the bytes


@pytest.mark.parametrize(
    ("change", "says"),
    [
        (lambda data: data[:-1] + b"x", f"checksum .* announces {hashlib.sha256(TAR).hexdigest()[:12]}"),
        (lambda data: data + b"more", f"what came is not what the hub announced .*{len(TAR)}"),
        (lambda data: data[:-1], f"what came is not what the hub announced .*{len(TAR)}"),
    ],
)
def test_other_bytes_than_announced_are_refused_and_the_next_call_gets_the_right_ones(hub, change, says):
    hub.faults = [change]
    refused(says)
    assert load(got(), "sts12").n_pairs == 3000


def test_a_file_that_is_not_in_lfs_is_checked_by_gits_digest(hub):
    hub.lfs = False
    assert load(got("pair"), "sts16").n_pairs == 3
    shutil.rmtree(data_root())
    hub.faults = [lambda data: bytes(len(data))]
    refused("has the checksum", "pair")


@pytest.mark.parametrize(
    "wrong",
    [
        {"files": {("someone/bundle", "senteval.tar"): TAR * 3}},  # far from the size that is known
        {"commit": "b" * 40},
        {"heads": (200, {"Content-Type": "text/html"})},
    ],
)
def test_an_announcement_of_something_else_is_refused_before_a_byte_comes(hub, wrong):
    vars(hub).update(wrong)
    refused("does not announce senteval.tar with its commit c0ffee0, a checksum and about .* check HF_ENDPOINT")
    assert hub.gets() == []


def test_an_archive_that_leaves_its_folder_is_refused_whole(hub, tmp_path):
    hub.files["someone/bundle", "senteval.tar"] = fake_hub.small_senteval({"SICK/../../evil.txt": "x"})
    with pytest.raises(ArchiveError, match="leads out of the folder"):
        got()
    assert nothing_is_offered()
    assert not list(tmp_path.rglob("evil.txt"))


@pytest.mark.parametrize(
    ("wanted", "missing"), [("SICK", "sts12 test"), ("TREC", "sts12 test, sickr train, sickr test")]
)
def test_an_archive_without_the_tasks_of_its_source_is_refused(hub, monkeypatch, wanted, missing):
    monkeypatch.setitem(SOURCES, "small", replace(ARCHIVE, wanted=(wanted,)))
    for _ in range(2):  # what the first call unpacked is not in the way of the next
        refused(f"what was fetched does not hold {missing}$")


# ------------------------------------------------------------------------------------------------ the refusals


@pytest.mark.parametrize(
    ("status", "headers", "says"),
    [
        (401, {"X-Error-Code": "GatedRepo"}, f"closed, or not there. Accept its terms on {ARCHIVE.home} .*HF_TOKEN"),
        (403, {}, "it is closed, or not there"),
        (404, {"X-Error-Code": "EntryNotFound"}, f"bundle/.*/senteval.tar is not there any more, see {ARCHIVE.home}"),
        (404, {}, "is not there any more"),
        (418, {}, "I'm a Teapot"),
        (429, {"Retry-After": "55"}, "too many requests: try again in 55 s"),
        (429, {"Retry-After": "soon"}, "too many requests: try again in a few minutes"),
        (429, {"ratelimit": '"resolvers";r=0;t=600'}, "too many requests: try again in 10 min"),
        (500, {}, "a fault of its own: try again in a few minutes"),
    ],
)
def test_a_refusal_is_told_at_once_with_what_to_do(hub, monkeypatch, status, headers, says):
    monkeypatch.setattr(time, "sleep", lambda seconds: pytest.fail(f"slept {seconds} s"))
    hub.heads = (status, headers)
    refused(f"answered {status}.*{says}")
    assert [method for method, *_ in hub.asked] == ["HEAD"]


@pytest.mark.parametrize(
    ("endpoint", "says"),
    [
        pytest.param(
            f"http://127.0.0.1:{free_port()}",
            r"%s was not reached \((?!.*Errno).*\): connect to the internet, set HF_ENDPOINT",
            id="nobody there",
        ),
        ("nonsense", "HF_ENDPOINT=%s is no address of a hub"),
        ("ftp://127.0.0.1", "HF_ENDPOINT=%s is no address of a hub"),
    ],
)
def test_an_address_without_a_hub_is_named(hub, monkeypatch, endpoint, says):
    fake_hub.point_to(monkeypatch, endpoint)
    refused(says % endpoint)


def test_what_is_brought_by_hand_as_a_refusal_says_is_read(hub, monkeypatch, tmp_path):
    fake_hub.point_to(monkeypatch, f"http://127.0.0.1:{free_port()}")
    folder = tmp_path / "mine"
    refused(f"bring the files by hand into {folder}", "pair", folder=folder)
    with pytest.raises(DownloadError) as caught:
        got("pair", folder=folder)
    assert not list(tmp_path.glob(".mine*"))
    for names, repo, inside in re.findall(r"([\w., -]+) of (\S+) at c0ffee0 into ([\w-]+)", str(caught.value)):
        (folder / inside).mkdir(parents=True)
        for name in names.strip().split(", "):
            (folder / inside / name).write_bytes(FILES[repo, name])
    assert {info.name: info.splits for info in discover(folder)} == {"sts12": ("train", "test"), "sts16": ("test",)}


def test_offline_mode_is_named(hub, monkeypatch):
    from huggingface_hub import constants

    monkeypatch.setattr(constants, "HF_HUB_OFFLINE", True)
    refused("HF_HUB_OFFLINE is set, so nothing is fetched")
    assert hub.asked == []


def test_too_little_space_is_told_before_a_byte_comes(hub, monkeypatch):
    usage = shutil.disk_usage("/")
    monkeypatch.setattr(shutil, "disk_usage", lambda path: usage._replace(free=len(TAR)))
    refused(r"small: .* kB are needed in .*, .* kB are free")
    assert hub.gets() == []


@pytest.mark.parametrize("number", [errno.ENOSPC, errno.EDQUOT])
def test_a_disk_that_fills_up_is_told(hub, number):
    def fill(done, total):
        raise OSError(number, os.strerror(number))

    refused("the disk of .* is full: free some space, about .* are needed$", progress=fill)


# -------------------------------------------------------------------------------------------- the command line


def run(capsys, *words) -> tuple[int, str, str]:
    status = main(["download", *words])
    return status, *capsys.readouterr()


def test_the_list_shows_sizes_and_licences(hub, capsys):
    status, out, _ = run(capsys, "--list")
    assert status == 0
    for name, source in SOURCES.items():
        assert any(all(x in line for x in (name, amount(source.size), source.licence)) for line in out.splitlines())
    listed = json.loads(run(capsys, "--list", "--json")[1])["sources"]
    assert [source["name"] for source in listed] == list(SOURCES)
    assert {"title", "size", "licence", "terms", "home", "tasks", "folder"} <= set(listed[0])


def test_without_the_flag_the_terms_are_shown_and_nothing_is_fetched(hub, capsys):
    status, out, err = run(capsys, "small")
    assert (status, out) == (2, "")
    assert "Name the authors." in err
    assert "--accept-licence" in err
    assert hub.asked == []


def test_a_download_prints_the_folder_that_data_takes(hub, capsys):
    status, out, _ = run(capsys, "small", "--accept-licence", "--json")
    assert status == 0
    result = json.loads(out)
    assert result["folder"] == str(data_root() / "small")
    assert [task["name"] for task in result["tasks"]] == ["sickr", "sts12"]
    assert main(["datasets", "--data", "small", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["tasks"] == result["tasks"]
    listed = {source["name"]: source["folder"] for source in json.loads(run(capsys, "--list", "--json")[1])["sources"]}
    assert (listed["small"], listed["pair"]) == (result["folder"], None)


def test_a_download_goes_where_it_is_told(hub, capsys, tmp_path):
    status, out, _ = run(capsys, "pair", "--to", str(tmp_path / "here"), "--accept-licence")
    assert (status, out.splitlines()[0]) == (0, str(tmp_path / "here"))
    assert load(tmp_path / "here", "sts16").n_pairs == 3


@pytest.mark.parametrize(
    ("words", "says"),
    [
        ((), "either the name of a source or --list"),
        (("nothing", "--accept-licence"), "source='nothing' must be one of senteval, mteb, mteb-stsb"),
        (("small", "--list"), "either the name of a source or --list"),
    ],
)
def test_wrong_words_are_one_line_and_exit_2(hub, capsys, words, says):
    status, out, err = run(capsys, *words)
    assert (status, out) == (2, "")
    assert len(err.strip().splitlines()) == 1
    assert says in err


FROM_OUTSIDE = """
import sys
from whitelab.datasets import SOURCES
print("huggingface_hub" in sys.modules)
sys.path.insert(0, sys.argv[1])
from fake_hub import ARCHIVE
SOURCES["small"] = ARCHIVE
from whitelab.cli import main
status = main(["download", "small", "--accept-licence", "--json"])
print("torch" in sys.modules, status)
"""


def test_the_endpoint_of_the_environment_is_asked_and_nothing_is_loaded_too_early(hub, tmp_path):
    environment = {"HF_ENDPOINT": hub.url, "HF_HUB_OFFLINE": "0", "WHITELAB_CACHE": str(tmp_path / "other")}
    done = run_python(FROM_OUTSIDE, ROOT / "tests" / "helpers", **environment)
    hub_loaded, result, torch_loaded = done.stdout.splitlines()
    assert json.loads(result)["folder"] == str(tmp_path / "other" / "data" / "small"), done.stderr
    assert (hub_loaded, torch_loaded) == ("False", "False 0")
    assert done.stderr == ""
