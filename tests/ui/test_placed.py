"""Where what pages ask for is computed: scores and sweeps on the device, on the CPU what does not fit or is small."""

import pretended_device
import pytest
import streamlit as st
import torch

from tests.conftest import make_space
from whitelab.base.progress import silent
from whitelab.encoding.embeddings import LayerRows
from whitelab.scoring.score import score
from whitelab.scoring.setting import Setting
from whitelab.sweeps.layer_gains import layer_gains
from whitelab.sweeps.layer_pairs import layer_pairs
from whitelab.sweeps.layer_subsets import stream
from whitelab.sweeps.layer_subsets.scorers import FittedScorer, LinearScorer
from whitelab.ui.results import placed
from whitelab.ui.results.placed import KIND, copies, too_large
from whitelab.ui.results.shelf import shelf
from whitelab.ui.results.study import study, study_job

PCA = Setting((1, 2), "pca", 5)


@pytest.fixture
def there(monkeypatch):
    """A machine whose statistics are computed on the pretended device."""
    monkeypatch.setattr(placed, "statistics_device", lambda: str(pretended_device.DEVICE))
    st.cache_resource.clear()  # threads of a queue that is there already are not on this machine
    with pretended_device.in_every_thread() as traffic:
        yield traffic
    st.cache_resource.clear()


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
    assert [one.whitened.spearman for one in found[-1]] == pytest.approx([one.whitened.spearman for one in wanted[-1]])


def test_what_is_no_score_and_no_sweep_is_asked_of_embeddings_on_the_cpu(there, space):
    assert study(lambda of: of.values.device.type, space) == "cpu"


def test_maps_that_are_fitted_to_rows_are_fitted_on_the_cpu(there, space, monkeypatch):
    f, seen = seen_by(monkeypatch, "rows", score)
    study(f, space, Setting((1,), "clusters"))
    assert seen == ["cpu"]


def full(where, plain=score, name="full"):
    """A function of scores that a device has no memory for, as long as `where(space)`, and where it was asked."""
    seen = []

    def asked(space, *more, **options):
        seen.append(space.values.device.type)
        if where(space):
            raise torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 2.00 GiB")
        return plain(space, *more, **options)

    asked.__module__, asked.__qualname__ = plain.__module__, f"{name}/{plain.__qualname__}"
    return asked, seen


def on_the_device(space):
    return space.values.device.type != "cpu"


def test_what_does_not_fit_goes_on_on_the_cpu_for_good_and_is_known_to(there, space):
    f, seen = full(on_the_device)
    assert not too_large(space)
    assert study(f, space, PCA) == study(f, space, PCA) == score(make_space(), PCA)
    study(f, space, PCA.with_(k=3))
    assert seen[-2:] == ["cpu", "cpu"]
    assert too_large(space)


def test_embeddings_that_carry_a_text_leave_for_good_whenever_they_are_made(there, space):
    f, seen = full(on_the_device)
    rows = shelf().call(LayerRows(space.values, space.counts), f"rows of {shelf().name(space)}")
    for k in (3, 4):
        carrying = shelf().call(space.with_text("text", rows), f"{shelf().name(space)}+text")
        study(f, carrying, PCA.with_(k=k, fit="text"))
        assert too_large(carrying)
    assert seen[-2:] == ["cpu", "cpu"]
    seen.clear()
    study(f, space, PCA)
    assert seen[0] == "pretended"  # without the text it might have fitted


def test_copies_that_nobody_uses_make_way_before_anything_leaves(there, space):
    idle = shelf().call(make_space(seed=1), "idle")
    study(score, idle, PCA)
    f, seen = full(lambda one: copies().get((KIND, idle.kept(KIND, object))) is not None)
    assert study(f, space, PCA).spearman == pytest.approx(score(make_space(), PCA).spearman)
    assert (seen, too_large(space)) == (["pretended", "pretended"], False)


def test_a_sweep_over_several_tasks_that_does_not_fit_keeps_none_of_them_away(there, space):
    other = shelf().call(make_space(seed=1), "one of several")

    def both(spaces):
        if any(map(on_the_device, spaces.values())):
            raise torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 2.00 GiB")
        return [one.values.device.type for one in spaces.values()]

    both.__module__ = layer_pairs.__module__
    assert study(both, {"one": space, "other": other}) == ["cpu", "cpu"]
    f, seen = full(lambda one: False)
    study(f, other, PCA)
    assert seen == ["pretended"]


def test_embeddings_that_carry_texts_have_one_copy(there, space):
    rows = shelf().call(LayerRows(space.values[:, :50], space.counts[:50]), f"rows of {shelf().name(space)}")
    study(score, space, PCA)
    up = there.up
    for name in ("a", "b"):
        carrying = shelf().call(space.with_text(name, rows), f"{shelf().name(space)}+{name}")
        found = study(score, carrying, PCA.with_(fit=name))
        assert found.spearman == pytest.approx(score(make_space().with_text(name, rows), found.setting).spearman)
    assert there.up - up <= 10  # the rows and their counts once, weights and places for each score


@pytest.mark.parametrize("where", ["of", "__call__"])
@pytest.mark.parametrize("variant", ["none", "pca"])
def test_a_search_of_subsets_that_does_not_fit_is_whole_on_the_cpu(there, space, monkeypatch, where, variant):
    """As a page asks for it: no generator, but what gives one; memory may run out before it yields, or then."""
    kind = LinearScorer if variant == "none" else FittedScorer
    plain = getattr(kind, where)

    def there_is_none(one, *more):
        if on_the_device(one if where == "of" else one.space):
            raise torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 2.00 GiB")
        return plain(one, *more)

    setting = Setting((0,), variant)
    (*_, wanted) = stream({"task": make_space()}, setting)
    monkeypatch.setattr(kind, where, staticmethod(there_is_none) if where == "of" else there_is_none)
    job = study_job(stream, {"task": space}, setting, title="Searching", unit="subsets")
    assert job.join(30)
    assert job.error is None
    found, wanted = (one.as_dict() | {"seconds": 0, "notes": ()} for one in (job.result, wanted))
    assert found == wanted


def test_a_sweep_that_runs_out_of_memory_on_its_way_begins_anew_on_the_cpu(there, space):
    def halves(of, progress):
        yield of.values.device.type
        if of.values.device.type != "cpu":
            raise torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 2.00 GiB")
        yield "whole"

    halves.__module__ = layer_pairs.__module__
    found = list(placed.placed(halves, (space,), {"progress": silent}))
    assert found == ["pretended", "pretended", "cpu", "whole"]
    assert too_large(space)


@pytest.mark.parametrize("said", ["an illegal memory access", "DefaultCPUAllocator: can't allocate memory"])
def test_another_fault_is_no_lack_of_memory_of_the_device(there, space, said):
    def wrong(of):
        raise RuntimeError(said)

    wrong.__module__ = score.__module__
    with pytest.raises(RuntimeError, match=said):
        study(wrong, space)
    assert not too_large(space)


def test_nothing_is_moved_where_the_cpu_computes(there, space, monkeypatch):
    monkeypatch.setattr(placed, "statistics_device", lambda: "cpu")
    f, seen = seen_by(monkeypatch, "here", score)
    study(f, space, PCA)
    assert (seen, there.up) == (["cpu"], 0)


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
