"""A Ray cluster of two machines, network namespaces of this one: their cable is pulled, then one is taken away."""

import os
import secrets
import subprocess
import sys
import time
from pathlib import Path

import pytest
from corpora import embed
from processes import ROOT
from tiny import build_model

from whitelab.corpus.fitting import fit_corpus
from whitelab.corpus.manifest import status

pytestmark = pytest.mark.netns
HEAD, WORKER, PORT = "10.77.91.1", "10.77.91.2", 6399
CUT = 4.0  # seconds: shorter than the quarter of a minute after which Ray gives a node up


def ip(*words) -> None:
    subprocess.run(["ip", *map(str, words)], check=True, capture_output=True)


@pytest.fixture
def two_machines(tmp_path):
    """Run commands on either of two machines, pull the cable between them or put it back, end the second."""
    names, ends = (f"wl{os.getpid()}a", f"wl{os.getpid()}b"), (f"v{os.getpid()}a", f"v{os.getpid()}b")
    environment = os.environ | {"PYTHONPATH": str(ROOT), "RAY_BACKEND_LOG_LEVEL": "fatal"}
    environment |= {"RAY_AUTH_MODE": "token", "RAY_AUTH_TOKEN": secrets.token_hex(32)}  # in no command's words
    begun = []

    def kill(name):
        pids = subprocess.run(["ip", "netns", "pids", name], capture_output=True, text=True).stdout.split()
        subprocess.run(["kill", "-9", *pids], capture_output=True, check=False)

    def begin(machine, *words, **how):
        begun.append(
            subprocess.Popen(["ip", "netns", "exec", names[machine], *map(str, words)], env=environment, **how)
        )
        return begun[-1]

    try:
        for name in names:
            ip("netns", "add", name)
        ip("link", "add", ends[0], "netns", names[0], "type", "veth", "peer", "name", ends[1], "netns", names[1])
        for name, end, address in zip(names, ends, (HEAD, WORKER), strict=True):
            ip("-n", name, "addr", "add", f"{address}/24", "dev", end)
            for device in ("lo", end):
                ip("-n", name, "link", "set", device, "up")
        yield begin, lambda state: ip("-n", names[1], "link", "set", ends[1], state), lambda: kill(names[1])
    finally:
        for run in reversed(begun):
            run.terminate()
        for name in names:
            kill(name)
            subprocess.run(["ip", "netns", "del", name], capture_output=True, check=False)
        for run in begun:
            run.wait(30)


def test_a_cable_that_is_pulled_and_a_machine_that_is_taken_away_cost_time_and_no_bits(two_machines, tmp_path):
    begin, cable, take_away = two_machines
    model = build_model(tmp_path)
    (tmp_path / "text.txt").write_text("".join(f"a man number {i} plays\n" for i in range(160)))
    ray = [Path(sys.executable).with_name("ray"), "start", "--block", "--disable-usage-stats"]
    quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
    head = ["--head", f"--node-ip-address={HEAD}", f"--port={PORT}", "--num-cpus=1", "--include-dashboard=false"]
    begin(0, *ray, *head, **quiet)
    time.sleep(5)
    begin(1, *ray, f"--address={HEAD}:{PORT}", f"--node-ip-address={WORKER}", "--num-cpus=2", **quiet)
    time.sleep(5)
    asked = ["--text", tmp_path / "text.txt", "--out", tmp_path / "out", "--model", model, "--chunk", 2]
    engine = ["--engine", "ray", "--workers", 2, "--address", f"{HEAD}:{PORT}"]
    run = begin(
        0, sys.executable, "-m", "whitelab", "corpus", "embed", *asked, *engine,
        stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
    )  # fmt: skip

    def until(chunks):
        """Wait until there are so many, before the run is over."""
        while len(there := list((tmp_path / "out").glob("*.parquet"))) < chunks:
            assert run.poll() is None, run.stdout.read()
            time.sleep(0.02)
        assert len(there) < 70

    until(6)
    cable("down")
    time.sleep(CUT)
    cable("up")
    until(30)
    take_away()
    out, _ = run.communicate(timeout=240)
    assert run.returncode == 0, out
    found = status(tmp_path / "out")
    assert (found.finished, found.done, found.failed) == (True, 80, {})
    embed(tmp_path / "text.txt", tmp_path / "plain", str(model), chunk_texts=2)
    assert len({fit_corpus(tmp_path / name, "pca", 4)[1]["digest"] for name in ("out", "plain")}) == 1
