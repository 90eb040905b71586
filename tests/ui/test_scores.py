"""What pages show is what the package computes, to the last bit, though it is put together from parts that are kept."""

from functools import partial

import pytest
import torch

from tests.conftest import make_space
from whitelab import whitening
from whitelab.scoring.score import score
from whitelab.scoring.setting import Setting
from whitelab.sweeps import dimensions, layer_profiles
from whitelab.sweeps import layer_gains as gains
from whitelab.ui.results import scores
from whitelab.ui.results.memory import memory
from whitelab.ui.results.shelf import shelf
from whitelab.whitening import WHITENERS, eigenform

ROTATED = {"zca": "pca", "cholesky": "pca", "zca_cor": "pca_cor"}


def quiet(done: int, total: int) -> None:
    """Nobody looks."""


@pytest.fixture
def space():
    """A space of several subsets, with nothing kept of it."""
    memory.clear()
    shelf.clear()
    yield shelf().call(make_space(), "shared")
    memory.clear()
    shelf.clear()


def settings():
    """Variants with and without an eigenform, at all directions and fewer, on one map and on two.

    Every variant meets both fits and every k, and so does every k both fits.
    """
    fits = ("task", "cross")
    for fit in fits:
        yield Setting((1,), "none", fit=fit)
    for i, name in enumerate((*ROTATED, "pca", "pca_cor", "center", "soft", "shrunk")):
        for j, k in enumerate((None, 5)):
            yield Setting((-1, 1), name, k, fit=fits[(i + j) % 2])


@pytest.mark.parametrize("setting", settings(), ids=str)
def test_pages_show_what_the_package_computes(space, setting):
    one = scores.scored(space, setting)
    assert one == score(space, setting)
    assert torch.equal(one.cosines, score(space, setting).cosines)
    # As texts, because a measure that is not defined is NaN.
    assert repr(scores.shape_of(space, setting)) == repr(layer_profiles.shape(space, setting))
    assert repr(scores.losses_of(space, setting, "ge4")) == repr(layer_profiles.losses(space, setting, "ge4"))
    assert [*scores.layer_gains(space, setting, quiet)] == [*gains.layer_gains(space, setting)]
    if whitening.variant(setting.whitening).takes_k:
        assert scores.curve_of(space, setting, by_subset=True) == dimensions.k_curve(space, setting)
        curves = dimensions.k_curves(space, setting, by_subset=False)
        wanted = [tuple(curves[:done]) for done in range(1, len(curves) + 1)]
        assert [*scores.layer_curves(space, setting, quiet)] == wanted
    several = (setting.raw, setting, setting.with_(whitening="zca", k=None))
    for kept, plain in (
        (scores.layer_shapes(space, several, quiet), layer_profiles.layer_shapes(space, several)),
        (scores.layer_losses(space, several, "gt4", quiet), layer_profiles.layer_losses(space, several)),
    ):
        assert repr(kept) == repr(plain)


def test_an_eigenform_has_the_directions_of_its_variant_and_is_its_own():
    assert {name: eigenform(name) for name in WHITENERS if eigenform(name) != whitening.canonical(name)} == ROTATED
    for name, form in ROTATED.items():
        assert WHITENERS[name].directions is WHITENERS[form].directions
        assert eigenform(form) == form


def test_forms_of_one_eigenbasis_and_the_layers_of_a_sweep_are_computed_once(space, monkeypatch):
    calls = []

    def counted(f, *args, **options):
        calls.append((f.__name__, args[1].whitening))
        return f(*args, **options)

    for name in ("score", "k_curve", "losses"):
        f = getattr(scores, name)
        wrapped = partial(counted, f)
        wrapped.__module__, wrapped.__qualname__, wrapped.__name__ = f.__module__, f.__qualname__, f.__name__
        monkeypatch.setattr(scores, name, wrapped)
    for name in ("pca", "zca", "cholesky"):
        setting = Setting((1,), name)
        scores.number_of(space, setting)
        scores.curve_of(space, setting)
        list(scores.layer_curves(space, setting, quiet))
        scores.layer_losses(space, (setting.raw, setting), "gt4", quiet)
    layers = space.n_layers
    assert calls.count(("score", "pca")) == 1
    assert calls.count(("k_curve", "pca")) == layers  # of which one is the workspace's own
    assert calls.count(("losses", "none")) == calls.count(("losses", "pca")) == layers
