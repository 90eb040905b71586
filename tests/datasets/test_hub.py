"""What fetching promises: whole and checked or not there at all, resumed where it was cut, told in one line."""

import errno
import hashlib
import json
import os
import shutil
import socket
import time
from dataclasses import replace
from email.utils import formatdate
from pathlib import Path

import fake_hub
import pytest
from fake_hub import ARCHIVE, COMMIT, FILES, REPOSITORIES, TAR
from processes import ROOT, free_port, run_python

from whitelab.base.wording import amount
from whitelab.cli import main
from whitelab.datasets import SOURCES, DataError, DownloadError, LicenceNotAccepted, discover, fetch, fetched, load
from whitelab.datasets import hub as hub_module
from whitelab.datasets.archives import ArchiveError
from whitelab.datasets.layouts import PUBLISHED_PAIRS
from whitelab.datasets.sources import RECORD, data_root
from whitelab.scoring.fit_scopes import scope_text


@pytest.fixture
def hub(monkeypatch, tmp_path):
    monkeypatch.setitem(SOURCES, "small", ARCHIVE)
    monkeypatch.setitem(SOURCES, "pair", REPOSITORIES)
    with fake_hub.serving(monkeypatch, tmp_path / "cache") as server:
        yield server


@pytest.fixture
def nowhere(monkeypatch):
    """An address where nobody answers."""
    url = f"http://127.0.0.1:{free_port()}"
    fake_hub.point_to(monkeypatch, url)
    return url


class Cancelled(Exception):
    """As the app's jobs raise it from the progress callback."""


def got(source="small", **options) -> Path:
    return fetch(source, accept_licence=True, **options)


def nothing_is_offered(name="small") -> bool:
    """There is no folder under the source's name, so nothing half-written can be read."""
    return fetched(name) is None and not (data_root() / name).exists()


def refused(message: str, name="small", error=DownloadError) -> str:
    """Fetching fails with one line that begins with the source's name and matches; the line."""
    with pytest.raises(error, match=message) as caught:
        got(name)
    assert "\n" not in str(caught.value)
    assert str(caught.value).startswith(name)
    assert nothing_is_offered(name)
    return str(caught.value)


# ------------------------------------------------------------------------------------------------ the registry


def test_every_source_says_what_it_is_what_it_asks_and_where_it_is_from():
    assert {"senteval", "mteb"} < set(SOURCES)
    for name, source in SOURCES.items():
        assert source.name == name
        assert len(source.terms) > 40
        assert source.licence
        assert source.title
        assert source.home.startswith("https://huggingface.co/")
        assert 0 < source.size < 200e6
        for remote in source.remotes:
            assert len(remote.revision) == 40  # pinned: a branch could change under us
            assert remote.files


@pytest.mark.parametrize("name", ["senteval", "mteb"])
def test_the_seven_tasks_are_all_there_with_their_splits(name):
    tasks = SOURCES[name].tasks
    assert set(tasks) == {"stsb", "sickr", "sts12", "sts13", "sts14", "sts15", "sts16"}
    assert tasks["stsb"] == ("train", "dev", "test")
    if name == "senteval":  # MTEB has one split of SICK
        assert all((task, split) in PUBLISHED_PAIRS for task, splits in tasks.items() for split in splits)


def test_sick_is_never_offered_without_its_licence():
    for source in SOURCES.values():
        assert ("sickr" in source.tasks) == ("CC BY-NC-SA" in source.terms) == ("CC BY-NC-SA" in source.licence)


@pytest.mark.parametrize(
    ("size", "text"),
    [(7, "7 bytes"), (46_200, "46.2 kB"), (427_600, "428 kB"), (89_800_000, "89.8 MB"), (2e9, "2.0 GB")],
)
def test_sizes_are_written_for_people(size, text):
    assert amount(size) == text


# --------------------------------------------------------------------------------------------------- the whole


def test_an_archive_is_fetched_unpacked_and_read(hub):
    folder = got()
    assert folder == data_root() / "small" == fetched("small")
    assert {info.name: info.splits for info in discover(folder)} == {"sts12": ("test",), "sickr": ("train", "test")}
    assert load(folder, "sts12").n_pairs == 3000
    assert not (folder / "TREC").exists()
    assert sorted(entry.name for entry in data_root().iterdir()) == [".locks", "small"]


def test_repositories_are_fetched_side_by_side_and_read(hub):
    folder = got("pair")
    assert {info.name: info.splits for info in discover(folder)} == {"sts12": ("train", "test"), "sts16": ("test",)}
    assert load(folder, "sts12", "train").first == ("train 0", "train 1", "train 2")
    assert (folder / "sts16-sts" / "test.jsonl.gz").read_bytes() == FILES["mteb/sts16-sts", "test.jsonl.gz"]


def test_the_record_says_what_was_fetched_and_from_where(hub):
    record = json.loads((got() / RECORD).read_text())
    assert (record["source"], record["licence"]) == ("small", ARCHIVE.licence)
    digest = hashlib.sha256(TAR).hexdigest()
    assert record["files"] == [{"repo": "someone/bundle", "revision": COMMIT, "file": "senteval.tar", "digest": digest}]


def test_a_fetched_source_is_found_by_its_name_wherever_a_path_is_taken(hub):
    with pytest.raises(DataError, match="^small: not fetched yet; python -m whitelab download small shows its licence"):
        load("small", "sts12")
    got()
    assert load("small", "sts12").fingerprint == load(data_root() / "small", "sts12").fingerprint
    assert [info.name for info in discover("small")] == ["sickr", "sts12"]
    assert scope_text("splits", "small", "sickr").keys() == set("abcdefgh")


def test_a_path_of_that_name_goes_before(hub, tmp_path, monkeypatch):
    got()
    monkeypatch.chdir(tmp_path)
    Path("small").mkdir()
    Path("small", "mine.tsv").write_text("sentence1\tsentence2\tscore\na\tb\t1\nc\td\t2\n")
    assert [info.name for info in discover("small")] == ["mine"]


def test_what_is_here_is_neither_fetched_again_nor_asked_for(hub, nowhere, monkeypatch):
    fake_hub.point_to(monkeypatch, hub.url)
    folder = got()
    hub.asked.clear()
    fake_hub.point_to(monkeypatch, nowhere)
    assert got() == folder
    assert fetch("small", accept_licence=False) == folder  # its terms were accepted when it was fetched
    assert load("small", "sts12").n_pairs == 3000
    assert hub.asked == []


def test_a_folder_of_ones_own_is_filled_and_nothing_else_is_left_beside_it(hub, tmp_path):
    mine = tmp_path / "mine" / "sts"
    assert got(folder=mine) == mine
    assert load(mine, "sts12").n_pairs == 3000
    assert [entry.name for entry in mine.parent.iterdir()] == ["sts"]
    assert nothing_is_offered()  # the name stands for the cache only
    assert got(folder=mine) == mine


def test_an_empty_folder_is_filled_and_one_with_something_else_is_left_alone(hub, tmp_path):
    (tmp_path / "empty").mkdir()
    assert load(got(folder=tmp_path / "empty"), "sts12").n_pairs == 3000
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "mine").write_text("kept")
    hub.asked.clear()
    for place in (tmp_path / "full", tmp_path / "full" / "mine", tmp_path / "empty"):
        source = "pair" if place.name == "empty" else "small"
        with pytest.raises(DownloadError, match=f"folder={place} must be empty or not there yet"):
            got(source, folder=place)
    assert hub.asked == []
    assert (tmp_path / "full" / "mine").read_text() == "kept"


def test_progress_counts_every_byte_once_and_ends_with_all_of_them(hub):
    calls = []
    got("pair", progress=lambda done, total: calls.append((done, total)))
    total = sum(len(data) for (repo, _), data in FILES.items() if repo.startswith("mteb"))
    assert {of for _, of in calls} == {total}
    counts = [done for done, _ in calls]
    assert counts == sorted(counts)
    assert (counts[0], counts[-1]) == (0, total)


def test_bytes_on_another_host_are_fetched_there_without_the_token(hub):
    hub.store = f"http://localhost:{hub.server_port}"
    assert load(got(), "sts12").n_pairs == 3000
    tokens = {path.split("/")[0]: token for _, path, _, token in hub.asked}
    assert tokens == {"datasets": "Bearer hf_secret", "store": None}


def test_a_file_that_is_not_in_lfs_is_checked_by_gits_digest(hub):
    hub.lfs = False
    assert load(got("pair"), "sts16").n_pairs == 3
    shutil.rmtree(data_root())
    hub.faults = [lambda data: bytes(len(data))]
    refused("has the checksum", "pair")


# -------------------------------------------------------------------------------------------------- the licence


def test_nothing_is_asked_of_the_network_before_the_terms_are_accepted(hub):
    with pytest.raises(
        LicenceNotAccepted, match=r"its terms must be accepted first. Name the authors. .*accept_licence"
    ):
        fetch("small", accept_licence=False)
    assert hub.asked == []
    assert nothing_is_offered()


def test_an_unknown_source_lists_those_there_are():
    with pytest.raises(DataError, match="source='nothing' must be one of senteval, mteb, mteb-stsb"):
        fetch("nothing", accept_licence=True)


# ------------------------------------------------------------------------------------------- a cut connection


def test_a_cut_connection_is_taken_up_where_it_was_cut(hub):
    hub.faults = [100_000, 50_000]
    assert load(got(), "sts12").n_pairs == 3000
    ranges = hub.gets()
    assert ranges[0] is None
    assert len(ranges) == 3
    assert 0 < int(ranges[1][6:-1]) <= 100_000
    assert int(ranges[1][6:-1]) < int(ranges[2][6:-1]) <= 150_000


def test_what_a_failed_call_got_is_not_fetched_again_by_the_next(hub):
    hub.faults = [100_000, (503, {})]
    said = refused("answered 503")
    assert said.endswith(" kB that came are kept, and the next call goes on from there")
    (part,) = (data_root() / ".small.parts").iterdir()
    kept = part.stat().st_size
    assert 0 < kept <= 100_000
    assert part.read_bytes() == TAR[:kept]
    hub.asked.clear()
    seen = []
    assert load(got(progress=lambda done, total: seen.append(done)), "sts12").n_pairs == 3000
    assert hub.gets() == [f"bytes={kept}-"]
    assert seen[0] == kept
    assert not part.parent.exists()


def test_of_several_files_only_the_missing_ones_are_fetched(hub):
    hub.faults = [lambda data: data, (500, {})]
    refused("answered 500", "pair")
    hub.asked.clear()
    got("pair")
    assert len(hub.gets()) == 2  # of three


def test_a_connection_that_gives_nothing_at_all_is_told_and_not_tried_for_ever(hub):
    hub.faults = [0] * 9
    refused(r"the connection was cut \(.*\): try again$")
    assert len(hub.faults) == 8


def test_a_hub_that_knows_no_ranges_sends_the_whole_and_it_is_right(hub):
    hub.ranges, hub.faults = False, [100_000]
    assert load(got(), "sts12").n_pairs == 3000


def test_what_was_cancelled_is_taken_up_by_the_next_call(hub):
    def cancel(done, total):
        if done > len(TAR) / 3:
            raise Cancelled

    with pytest.raises(Cancelled):
        got(progress=cancel)
    assert nothing_is_offered()
    assert load(got(), "sts12").n_pairs == 3000
    assert int(hub.gets()[1][6:-1]) > len(TAR) / 3


def test_cancelling_while_unpacking_leaves_nothing_half_written_and_needs_no_second_download(hub):
    calls = []

    def cancel(done, total):
        calls.append(done)
        if calls.count(total) > 2:
            raise Cancelled

    with pytest.raises(Cancelled):
        got(progress=cancel)
    assert nothing_is_offered()
    hub.asked.clear()
    got()
    assert hub.gets() == []


# --------------------------------------------------------------------------------------------------- the bytes


@pytest.mark.parametrize("change", [lambda data: data[:-1] + b"x", lambda data: bytes(len(data))])
def test_a_wrong_checksum_sets_the_file_aside_and_the_next_call_starts_anew(hub, change):
    hub.faults = [change]
    said = refused(rf"senteval.tar has the checksum .* the hub announces {hashlib.sha256(TAR).hexdigest()[:12]}")
    (aside,) = (data_root() / ".small.parts").iterdir()
    assert str(aside) in said
    assert aside.read_bytes() == change(TAR)
    hub.asked.clear()
    assert load(got(), "sts12").n_pairs == 3000
    assert hub.gets() == [None]


def test_a_damaged_part_of_an_earlier_call_is_found_out(hub):
    hub.faults = [100_000, (503, {})]
    refused("503")
    (part,) = (data_root() / ".small.parts").iterdir()
    part.write_bytes(bytes(part.stat().st_size))
    refused("has the checksum")
    assert load(got(), "sts12").n_pairs == 3000


def test_a_file_longer_than_announced_is_refused(hub):
    hub.faults = [lambda data: data + b"more"]
    refused(f"senteval.tar is longer than the {len(TAR)} bytes announced")


def test_an_announced_size_far_from_the_known_one_is_refused_before_a_byte_comes(hub):
    hub.files["someone/bundle", "senteval.tar"] = TAR * 3
    refused(r"is announced with .* where about .* are expected")
    assert hub.gets() == []


def test_another_commit_than_the_pinned_one_is_refused(hub):
    hub.commit = "b" * 40
    refused("is announced at commit bbbbbbb where c0ffee0 is expected")


def test_an_address_that_is_no_hub_is_told(hub):
    hub.heads = (200, {"Content-Type": "text/html"})
    refused("announces no commit, checksum or size for senteval.tar.*check HF_ENDPOINT")


def test_an_archive_that_leaves_its_folder_is_refused_whole(hub, monkeypatch, tmp_path):
    hub.files["someone/bundle", "senteval.tar"] = fake_hub.small_senteval({"SICK/../../evil.txt": "x"})
    with pytest.raises(ArchiveError, match="leads out of the folder"):
        got()
    assert nothing_is_offered()
    assert not list(tmp_path.rglob("evil.txt"))


def test_content_that_is_not_what_was_meant_is_refused(hub, monkeypatch):
    hub.files["mteb/sts16-sts", "test.jsonl.gz"] = b"no gzip"
    hub.files["mteb/sts12-sts", "train.jsonl.gz"] = FILES["mteb/sts16-sts", "test.jsonl.gz"]
    assert got("pair")  # readers judge rows when they load
    with pytest.raises(DataError, match="not a readable gzip file"):
        load("pair", "sts16")
    hub.files["someone/bundle", "senteval.tar"] = fake_hub.small_senteval({"SICK/SICK_train.txt": "unrelated\n"})
    assert got()
    shutil.rmtree(data_root() / "small")
    monkeypatch.setitem(SOURCES, "small", replace(ARCHIVE, wanted=("SICK",)))
    refused("small: what was fetched does not hold sts12 test")
    monkeypatch.setitem(SOURCES, "small", replace(ARCHIVE, wanted=("TREC",)))
    refused("small: what was fetched does not hold sts12 test, sickr train, sickr test")


# ------------------------------------------------------------------------------------------------ the refusals


@pytest.mark.parametrize("status", [401, 403])
def test_a_closed_repository_says_how_to_get_in(hub, status):
    hub.heads = (status, {"X-Error-Code": "GatedRepo"})
    said = refused(f"answered {status}: it is closed, or not there. Accept its terms on {ARCHIVE.home}")
    assert "HF_TOKEN" in said
    hub.heads = (status, {})
    refused(f"answered {status}: it is closed, or not there")


@pytest.mark.parametrize("code", ["RepoNotFound", "RevisionNotFound", "EntryNotFound", ""])
def test_what_is_gone_is_told_with_its_place(hub, code):
    hub.heads = (404, {"X-Error-Code": code} if code else {})
    said = refused("answered 404: someone/bundle/c0ffee0/senteval.tar is not there any more")
    assert ARCHIVE.home in said


@pytest.mark.parametrize(
    ("headers", "when"),
    [
        ({"Retry-After": "55"}, "in 55 s"),
        ({"Retry-After": "600"}, "in 10 min"),
        ({"Retry-After": "an hour from now, as a date"}, "in (60|59) min"),
        ({"Retry-After": "soon"}, "in a few minutes"),
        ({"ratelimit": '"resolvers";r=0;t=42'}, "in 42 s"),
        ({}, "in a few minutes"),
    ],
)
@pytest.mark.parametrize("method", ["HEAD", "GET"])
def test_too_many_requests_say_when_to_try_again_and_nobody_sleeps(hub, monkeypatch, headers, when, method):
    monkeypatch.setattr(time, "sleep", lambda seconds: pytest.fail(f"slept {seconds} s"))
    if "date" in headers.get("Retry-After", ""):
        headers = {"Retry-After": formatdate(time.time() + 3600, usegmt=True)}
    if method == "HEAD":
        hub.heads = (429, headers)
    else:
        hub.faults = [(429, headers)]
    refused(f"answered 429, too many requests: try again {when}")
    assert len([asked for asked in hub.asked if asked[0] == method]) == 1


@pytest.mark.parametrize("status", [500, 502, 503, 504])
@pytest.mark.parametrize("method", ["HEAD", "GET"])
def test_a_fault_of_the_hub_is_told_as_its_own(hub, status, method):
    if method == "HEAD":
        hub.heads = (status, {})
    else:
        hub.faults = [(status, {})]
    refused(f"answered {status}, a fault of its own: try again in a few minutes")


def test_no_network_is_told_with_what_to_do(hub, nowhere):
    said = refused(f"{nowhere} cannot be reached: connect to the internet")
    assert "HF_ENDPOINT" in said


def test_a_hub_that_is_silent_is_told(hub, monkeypatch):

    with socket.socket() as silent:
        silent.bind(("127.0.0.1", 0))
        silent.listen()
        fake_hub.point_to(monkeypatch, f"http://127.0.0.1:{silent.getsockname()[1]}")
        monkeypatch.setattr(hub_module, "ASK_SECONDS", 0.2)
        refused("the connection was cut|cannot be reached")


@pytest.mark.parametrize("endpoint", ["nonsense", "ftp://127.0.0.1", "http://"])
def test_a_wrong_endpoint_is_named(hub, monkeypatch, endpoint):
    fake_hub.point_to(monkeypatch, endpoint)
    refused(f"HF_ENDPOINT={endpoint} is no address of a hub")


def test_offline_mode_is_named(hub, monkeypatch):
    from huggingface_hub import constants

    monkeypatch.setattr(constants, "HF_HUB_OFFLINE", True)
    refused("HF_HUB_OFFLINE is set, so nothing is fetched")
    assert hub.asked == []


# ---------------------------------------------------------------------------------------------------- the disk


def test_too_little_space_is_told_before_a_byte_comes(hub, monkeypatch):
    usage = shutil.disk_usage("/")
    monkeypatch.setattr(shutil, "disk_usage", lambda path: usage._replace(free=len(TAR)))
    refused(r"small: .* kB are needed in .*, .* kB are free")
    assert hub.gets() == []


@pytest.mark.parametrize("number", [errno.ENOSPC, errno.EDQUOT])
def test_a_disk_that_fills_up_is_told_and_what_came_is_kept(hub, monkeypatch, number):
    real = hub_module._digest

    def full(path, one):
        raise OSError(number, os.strerror(number))

    monkeypatch.setattr(hub_module, "_digest", full)
    refused("the disk of .* is full: free some space")
    monkeypatch.setattr(hub_module, "_digest", real)
    hub.asked.clear()
    got()
    assert hub.gets() == []


def test_a_place_that_cannot_be_written_is_told(hub, tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(DownloadError, match="cannot be written"):
        got(folder=tmp_path / "file" / "below")


def test_two_processes_do_not_fetch_into_one_folder(hub, monkeypatch):
    monkeypatch.setattr(hub_module, "LOCK_SECONDS", 0.1)
    with hub_module._locked(ARCHIVE, data_root() / "small"):
        refused("another process is fetching it")
    got()


# -------------------------------------------------------------------------------------------- the command line


def run(capsys, *words) -> tuple[int, str, str]:
    status = main(["download", *words])
    return status, *capsys.readouterr()


def test_the_list_shows_sizes_and_licences(hub, capsys):
    status, out, _ = run(capsys, "--list")
    assert status == 0
    for name, source in SOURCES.items():
        assert any(name in line and amount(source.size) in line for line in out.splitlines())
    assert "CC BY-NC-SA 3.0" in out
    listed = json.loads(run(capsys, "--list", "--json")[1])["sources"]
    assert [one["name"] for one in listed] == list(SOURCES)
    assert {"title", "size", "licence", "terms", "home", "tasks", "folder"} <= set(listed[0])
    assert listed[0]["folder"] is None


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
    assert main(["datasets", "--data", result["folder"], "--json"]) == 0
    by_folder = json.loads(capsys.readouterr().out)["tasks"]
    assert main(["datasets", "--data", "small", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["tasks"] == by_folder
    assert json.loads(run(capsys, "--list", "--json")[1])["sources"][-2]["folder"] == result["folder"]


def test_a_download_goes_where_it_is_told(hub, capsys, tmp_path):
    status, out, _ = run(capsys, "pair", "--to", str(tmp_path / "here"), "--accept-licence")
    assert (status, out.splitlines()[0]) == (0, str(tmp_path / "here"))
    assert load(tmp_path / "here", "sts16").n_pairs == 3


@pytest.mark.parametrize("words", [(), ("nothing", "--accept-licence"), ("small", "--list")])
def test_wrong_words_are_one_line_and_exit_2(hub, capsys, words):
    status, out, err = run(capsys, *words)
    assert (status, out) == (2, "")
    assert len(err.strip().splitlines()) == 1


FROM_OUTSIDE = """
import sys
from whitelab.datasets import SOURCES
sys.path.insert(0, sys.argv[1])
from fake_hub import ARCHIVE
SOURCES["small"] = ARCHIVE
from whitelab.cli import main
status = main(["download", "small", "--accept-licence", "--json"])
print("torch" in sys.modules, status)
"""


def test_the_endpoint_of_the_environment_is_asked_and_torch_is_not_loaded(hub, tmp_path):
    environment = {"HF_ENDPOINT": hub.url, "HF_HUB_OFFLINE": "0", "WHITELAB_CACHE": str(tmp_path / "other")}
    done = run_python(FROM_OUTSIDE, ROOT / "tests" / "helpers", **environment)
    printed = done.stdout.splitlines()
    assert json.loads(printed[0])["folder"] == str(tmp_path / "other" / "data" / "small"), done.stderr
    assert printed[1] == "False 0"
    assert done.stderr == ""
