"""Pages whose scores and sweeps are computed on a (pretended) GPU: the CPU's numbers, and a word where it is small."""

import pretended_device
import pytest
import torch

from whitelab.scoring.setting import Setting
from whitelab.sweeps.layer_pairs import layer_pairs
from whitelab.ui.results import placed
from whitelab.ui.results.placed import LEFT

from .visiting import alts, deltas, forget_everything, live, metrics, said, scored, start, until

pytestmark = pytest.mark.model


@pytest.fixture
def there(monkeypatch):
    """A machine with a device for statistics, on which nothing is known yet."""
    monkeypatch.setattr(placed, "statistics_device", lambda: str(pretended_device.DEVICE))
    forget_everything()
    with pretended_device.in_every_thread() as traffic:
        yield traffic
    forget_everything()


@pytest.mark.parametrize("page", ["whitening", "layers"])  # kept, and by a job
def test_a_page_shows_the_numbers_of_the_cpu(page, small, space, monkeypatch):
    def shown():
        at = until(start(page, **small, layers="1", k="9"))
        assert live(at) == scored(space, "L1:pca@9")
        return metrics(at), alts(at)

    forget_everything()
    wanted = shown()
    forget_everything()
    monkeypatch.setattr(placed, "statistics_device", lambda: str(pretended_device.DEVICE))
    with pretended_device.in_every_thread() as traffic:
        found = shown()
    forget_everything()
    assert traffic.operations
    assert found == wanted


def test_a_page_says_that_a_gpu_is_too_small(there, small, space, monkeypatch):
    def full(of, *more, **options):
        if of.values.device.type != "cpu":
            raise torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 2.00 GiB")
        return layer_pairs(of, *more, **options)

    full.__module__, full.__qualname__ = layer_pairs.__module__, layer_pairs.__qualname__
    monkeypatch.setattr("whitelab.ui.sections.layer_maps.layer_pairs", full)
    at = until(start("layers", **small))
    best = layer_pairs(space, Setting((0,), "pca")).best.spearman
    assert deltas(at)["Best one or two, PCA whitening"] == f"Spearman {best:.2f}"
    assert said(at.run(), f"Note: {LEFT}")
