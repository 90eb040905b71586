"""Laws of a folder that one process at a time writes: a kill gives it back, and looking takes nothing."""

import os
import subprocess
import sys

import pytest
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
