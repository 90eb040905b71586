"""Laws of a folder that one process at a time writes: a kill gives it back, and looking takes nothing."""

import json
import os
import subprocess
import sys
import threading

import pytest
from filelock import FileLock
from processes import ROOT

from whitelab.store import held_folder
from whitelab.store.held_folder import HeldElsewhere, held, is_free, is_held, owner

HOLDER = "import sys, time\nfrom pathlib import Path\nfrom whitelab.store.held_folder import held\n"
HOLDER += "with held(Path(sys.argv[1])):\n    print('held', flush=True)\n    time.sleep(1000)\n"


def test_a_killed_holder_gives_it_back_though_its_name_stays(tmp_path, monkeypatch):
    monkeypatch.setattr(held_folder, "_LOCK_SECONDS", 0.05)
    asked = [sys.executable, "-c", HOLDER, str(tmp_path)]
    with subprocess.Popen(asked, cwd=ROOT, stdout=subprocess.PIPE, text=True) as holder:
        try:
            assert holder.stdout.readline() == "held\n"
            assert is_held(tmp_path)
            with pytest.raises(HeldElsewhere, match=rf"process {holder.pid} on .+ since 20"), held(tmp_path):
                pass
            assert is_held(tmp_path)  # who was refused has taken nothing from it
        finally:
            holder.kill()
    assert (tmp_path / "owner.json").exists()
    assert not is_held(tmp_path)
    with held(tmp_path):
        assert owner(tmp_path).startswith(f"process {os.getpid()} ")
    assert (is_held(tmp_path), is_free(tmp_path)) == (False, True)


def test_looking_writes_nothing(tmp_path):
    assert (is_free(tmp_path), is_held(tmp_path), list(tmp_path.iterdir())) == (True, False, [])


def test_looking_keeps_nobody_from_beginning(tmp_path):
    """Whoever looks takes the lock for a moment."""
    (tmp_path / "lock").touch()
    ended = threading.Event()

    def look():
        while not ended.is_set():
            is_free(tmp_path)

    watcher = threading.Thread(target=look)
    watcher.start()
    try:
        for _ in range(20):
            with held(tmp_path):
                assert is_held(tmp_path)
    finally:
        ended.set()
        watcher.join()


def test_of_two_who_look_at_the_same_moment_none_takes_the_other_for_a_holder(tmp_path, monkeypatch):
    """A glance is a lock for a moment, and of a killed holder the name is still there."""
    glance = FileLock(tmp_path / "lock", thread_local=False)
    with glance:
        assert not is_held(tmp_path)
    monkeypatch.setattr(held_folder, "_GLANCE_SECONDS", 30.0)  # as long as it takes: the test has no clock
    (tmp_path / "owner.json").write_text(json.dumps({"process": 1, "host": "gone", "since": "2020"}))
    glance.acquire()
    threading.Timer(0.05, glance.release).start()
    assert is_held(tmp_path) is False


def test_where_a_lock_cannot_be_asked_for_nobody_says_that_it_is_free(tmp_path, monkeypatch):
    def closed(self, *args, **options):
        raise PermissionError

    with held(tmp_path):
        monkeypatch.setattr(FileLock, "acquire", closed)
        assert (is_free(tmp_path), is_held(tmp_path)) == (None, None)
    monkeypatch.undo()
    assert is_held(tmp_path) is False
