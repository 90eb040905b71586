"""A sweep says what it fits maps for exactly where it fits more than one a setting, whatever it is called."""

import contextlib
import importlib
import pkgutil
from inspect import Parameter, isfunction, signature

import pytest

from tests.conftest import make_space
from whitelab import sweeps, whitening
from whitelab.scoring import fit_scopes
from whitelab.scoring.setting import Setting
from whitelab.sweeps.fitted_maps import fitted_anew_for
from whitelab.sweeps.layer_pairs import layer_pairs
from whitelab.ui.results import scores
from whitelab.ui.results.shelf import shelf

SETTING = Setting((1,), "clusters")
MODULES = [importlib.import_module(f"{sweeps.__name__}.{one.name}") for one in pkgutil.iter_modules(sweeps.__path__)]


def arguments(f):
    """What a sweep of one space takes; None for a function that needs anything else, or reports no progress."""
    given = {"space": make_space(), "setting": SETTING, "settings": (SETTING,), "positives": "gt4"}
    given |= {"progress": lambda done, total: None}
    known = signature(f).parameters
    needed = [name for name, one in known.items() if one.default is Parameter.empty]
    if not {"space", "progress"} <= set(known) or not set(needed) <= set(given):
        return None
    return {name: given[name] for name in known if name in given}


SWEEPS = {
    f"{module.__name__}.{name}": f
    for module in (*MODULES, scores)
    for name, f in vars(module).items()
    if isfunction(f) and not name.startswith("_") and f.__module__ == module.__name__ and arguments(f)
}


@pytest.mark.parametrize("name", SWEEPS)
def test_what_a_sweep_fits_maps_for_is_said_beside_it(name, monkeypatch):
    f, made = SWEEPS[name], []
    options = arguments(f)
    shelf().call(options["space"], f"{name} fits maps")
    fit = whitening.fit_to_rows
    monkeypatch.setattr(whitening, "fit_to_rows", lambda *args, **options: made.append(args) or fit(*args, **options))
    with contextlib.suppress(ValueError):  # what sweeps over k, which such a map does not have, fits none
        found = f(**options)
        list(found) if hasattr(found, "__next__") else None
    assert bool(fitted_anew_for(f, options["space"])) is (len(made) > 2)  # the map, and that of the other half


def test_pairs_of_layers_are_counted():
    assert fitted_anew_for(layer_pairs, make_space()) == "10 pairs of layers"
    assert fitted_anew_for(fit_scopes.fit_scope, make_space()) == ""
