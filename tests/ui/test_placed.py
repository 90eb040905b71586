"""Where what pages ask for is computed: scores and sweeps on the device, on the CPU what does not fit or is small."""

import pretended_device
import pytest
import torch

from tests.conftest import make_space
from whitelab.base.progress import silent
from whitelab.scoring.score import score
from whitelab.scoring.setting import Setting
from whitelab.sweeps.layer_gains import layer_gains
from whitelab.sweeps.layer_pairs import layer_pairs
from whitelab.ui.results import placed
from whitelab.ui.results.jobs import jobs
from whitelab.ui.results.memory import memory
from whitelab.ui.results.placed import KIND, has_left
from whitelab.ui.results.shelf import shelf
from whitelab.ui.results.study import study, study_job

PCA = Setting((1, 2), "pca", 5)


@pytest.fixture
def there(monkeypatch):
    """A machine whose statistics are computed on the pretended device."""
    monkeypatch.setattr(placed, "statistics_device", lambda: str(pretended_device.DEVICE))
    jobs.clear()  # threads of a queue that is there already are not on this machine
    with pretended_device.in_every_thread() as traffic:
        yield traffic
    jobs.clear()


@pytest.fixture
def space(request):
    return shelf().call(make_space(), request.node.name)


def seen_by(monkeypatch, name: str, plain):
    """Let a function of the sweeps note on which device its space is."""
    seen = []

    def noted(space, *more, **options):
        seen.append(space.values.device.type)
        return plain(space, *more, **options)

    noted.__module__, noted.__qualname__ = plain.__module__, f"{name}/{plain.__qualname__}"
    return noted, seen


def test_a_score_is_computed_where_statistics_are_and_leaves_it(there, space, monkeypatch):
    f, seen = seen_by(monkeypatch, "score", score)
    found = study(f, space, PCA)
    assert seen == ["pretended"]
    assert found.spearman == pytest.approx(score(make_space(), PCA).spearman)
    assert type(found.cosines) is torch.Tensor


def test_embeddings_go_up_once(there, space):
    study(score, space, PCA)
    up = there.up
    study(score, space, PCA.with_(k=4))
    study(layer_pairs, space, PCA)
    assert there.up - up < 5  # weights and places, no layer


def test_a_sweep_that_yields_is_computed_there_too(there, space):
    found = list(placed.placed(layer_gains, (space, PCA), {"progress": silent}))
    wanted = list(layer_gains(make_space(), PCA))
    assert there.operations
    assert [one.layer for one in found[-1]] == [one.layer for one in wanted[-1]]


def test_what_is_no_score_and_no_sweep_is_asked_of_embeddings_on_the_cpu(there, space):
    assert study(lambda of: of.values.device.type, space) == "cpu"


def test_maps_that_are_fitted_to_rows_are_fitted_on_the_cpu(there, space, monkeypatch):
    f, seen = seen_by(monkeypatch, "rows", score)
    study(f, space, Setting((1,), "clusters"))
    assert seen == ["cpu"]


def test_what_does_not_fit_goes_on_on_the_cpu_for_good_and_is_known_to(there, space, monkeypatch):
    f, seen = seen_by(monkeypatch, "full", score)

    def full(of, *more, **options):
        if of.values.device.type != "cpu":
            seen.append("full")
            raise torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 2.00 GiB")
        return f(of, *more, **options)

    full.__module__, full.__qualname__ = f.__module__, f.__qualname__
    assert not has_left(space)
    assert study(full, space, PCA) == study(full, space, PCA) == score(make_space(), PCA)
    study(full, space, PCA.with_(k=3))
    assert seen == ["full", "cpu", "cpu"]
    assert has_left(space)
    assert memory().get((KIND, shelf().name(space))) is None


def test_a_sweep_that_runs_out_of_memory_on_its_way_begins_anew_on_the_cpu(there, space):
    def halves(of, progress):
        yield of.values.device.type
        if of.values.device.type != "cpu":
            raise torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 2.00 GiB")
        yield "whole"

    halves.__module__ = layer_pairs.__module__
    assert list(placed.placed(halves, (space,), {"progress": silent})) == ["pretended", "cpu", "whole"]
    assert has_left(space)


def test_another_fault_is_no_lack_of_memory(there, space):
    def wrong(of):
        raise RuntimeError("an illegal memory access")

    wrong.__module__ = score.__module__
    with pytest.raises(RuntimeError, match="illegal"):
        study(wrong, space)
    assert not has_left(space)


def test_nothing_is_moved_where_the_cpu_computes(space, monkeypatch):
    monkeypatch.setattr(placed, "statistics_device", lambda: "cpu")
    f, seen = seen_by(monkeypatch, "here", score)
    study(f, space, PCA)
    assert seen == ["cpu"]
    assert memory().get((KIND, shelf().name(space))) is None


def test_several_tasks_are_moved_each_by_its_name(there, space, monkeypatch):
    def devices(spaces):
        return [(shelf().name(one), one.values.device.type) for one in spaces.values()]

    devices.__module__ = layer_pairs.__module__
    other = shelf().call(make_space(seed=1), "another")
    found = study(devices, {"one": space, "other": other})
    assert found == [(shelf().name(space), "pretended"), ("another", "pretended")]


def test_a_job_is_computed_there(there, space, monkeypatch):
    f, seen = seen_by(monkeypatch, "job", layer_pairs)
    job = study_job(f, space, PCA, title="Scoring", unit="cells")
    assert job.join(30)
    assert seen == ["pretended"]
    assert [cell.spearman for cell in job.result.cells] == pytest.approx(
        [cell.spearman for cell in layer_pairs(make_space(), PCA).cells]
    )
