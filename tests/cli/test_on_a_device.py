"""Laws of `--device`: a sweep is computed there with the numbers of the CPU, and goes on on the CPU where it must."""

import json

import pretended_device
import pytest
import torch

from tests.test_device import DEVICES, entered, plain, same
from whitelab.cli import spaces
from whitelab.scoring import score as scoring
from whitelab.sweeps import layer_pairs

SWEEPS = {
    "pairs": ["layers", "--whitening", "pca"],
    "pairs, raw": ["layers"],
    "pairs, cross": ["layers", "--whitening", "pca", "--fit", "cross", "--k", "4"],
    "subsets": ["layers", "--size", "1-2", "--whitening", "zca"],
    "curve": ["kcurve", "--controls"],
    "curves": ["kcurve", "--layers", "each"],
    "sizes": ["fitsize"],
    "measures": ["geometry", "--whitening", "soft"],
    "similarity": ["similarity", "--whitening", "center"],
}


@pytest.mark.parametrize("name", SWEEPS)
@pytest.mark.parametrize("kind", DEVICES)
def test_a_sweep_is_computed_on_the_device_with_the_numbers_of_the_cpu(kind, name, run, options, monkeypatch):
    argv = [*SWEEPS[name], *options, "--json"]
    status, wanted, _ = run(*argv, "--device", "cpu")
    assert status == 0
    with entered(kind) as (device, traffic):
        monkeypatch.setattr(spaces, "statistics_device", lambda args: device)
        status, found, said = run(*argv, "--device", "cpu")
    assert (status, traffic is None or bool(traffic.operations)) == (0, True), said
    found, wanted = (plain(json.loads(one)) for one in (found, wanted))
    for one in (found, wanted):
        one.pop("seconds", None)
    assert same(found, wanted, 1e-6)


def test_a_sweep_that_a_gpu_does_not_hold_is_computed_on_the_cpu_and_says_so(run, options, monkeypatch):
    argv = ["layers", *options, "--json"]
    _, wanted, said = run(*argv)
    assert "GPU" not in said
    monkeypatch.setattr(spaces, "statistics_device", lambda args: "cpu" if args.on_cpu else pretended_device.DEVICE)
    with pretended_device.pretended_device():
        scored = layer_pairs.layer_pairs

        def on_cpu_alone(space, *more):
            if space.values.device.type != "cpu":
                raise torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 2.00 GiB")
            return scored(space, *more)

        monkeypatch.setattr(layer_pairs, "layer_pairs", on_cpu_alone)
        status, found, said = run(*argv)
    assert (status, json.loads(found)) == (0, json.loads(wanted))
    assert "note: the GPU has too little memory for it: once more, with statistics on the CPU" in said


def test_memory_that_runs_out_elsewhere_is_said_in_a_line(run, options, monkeypatch):
    """Of the system beside a GPU, and of a GPU in a command that computes no statistics there."""

    def full(*_, **__):
        raise RuntimeError("[enforce fail at alloc_cpu.cpp:1] . DefaultCPUAllocator: can't allocate memory")

    def full_there(*_, **__):
        raise torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 2.00 GiB")

    monkeypatch.setattr(spaces, "statistics_device", lambda args: "cpu" if args.on_cpu else pretended_device.DEVICE)
    steps = (layer_pairs, "layer_pairs", full, "can't allocate memory"), (scoring, "score", full_there, "CUDA out of")
    for (module, step, fails, words), command in zip(steps, ("layers", "score"), strict=True):
        with pretended_device.pretended_device(), monkeypatch.context() as patch:
            patch.setattr(module, step, fails)
            status, found, said = run(command, *options)
        assert (status, found) == (2, ""), said
        assert words in said
        assert "once more" not in said
