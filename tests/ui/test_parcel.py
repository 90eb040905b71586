"""The file in which a map is taken away is named after all that makes it."""

from dataclasses import replace

import pytest

from tests.conftest import make_space
from whitelab import datasets
from whitelab.encoding.embeddings import MeasuredRows, Origin
from whitelab.scoring.setting import Setting
from whitelab.ui.sections.parcel import Parcel
from whitelab.ui.sidebar.data import Chosen
from whitelab.ui.sidebar.model import Picked
from whitelab.ui.sidebar.workspace import Workspace

SETTING = Setting((1,), "pca", 5)
ORIGIN = Origin("some/model", "demo, 12 files", "demo", "all")


def parcel(setting=SETTING, space=None, **origin):
    picked = Picked("bundled", False, 4, 32, ("mean", "cls"), "digest")
    bench = Workspace(picked, Chosen("demo", datasets.discover("demo")[0], "all", False, ""), setting, "float32")
    made = replace(ORIGIN, pooling=setting.pooling, **origin)
    return Parcel(bench, replace(space or make_space(), origin=made), setting)


def stem(setting=SETTING, kind="npz", **origin):
    return parcel(setting, **origin).stem_of(kind)


@pytest.mark.parametrize(
    "changed",
    [
        stem(SETTING.with_(pooling="cls")),
        stem(SETTING.with_(pooling="unit_mean")),
        stem(SETTING.with_(layers=(1, 2))),
        stem(SETTING.with_(k=None)),
        stem(SETTING.with_(whitening="zca")),
        stem(SETTING.with_(fit="splits")),
        stem(SETTING.with_(fit="nli.txt")),
        stem(task="stsb"),
        stem(split="test"),
        stem(model="other"),
        stem(kind="onnx"),  # packed as a model folder is
    ],
)
def test_maps_that_differ_leave_under_different_names(changed):
    assert stem() == "model-mean-layers-1-pca-k5-demo"
    assert changed != stem()


def test_a_name_of_any_length_in_any_script_is_one_for_a_file():
    assert stem(task="日本語") == "model-mean-layers-1-pca-k5-text"
    assert stem(task=f"../{'a b/' * 90}").startswith("model-mean-layers-1-pca-k5-..-a-b-a-b-")
    assert len(stem(SETTING.with_(fit=f"{'x' * 300}.txt"), task="y" * 300)) < 200


def test_maps_of_corpora_whose_folders_are_called_alike_are_told_apart():
    made = []
    for place, digest in (("/a/embedded", "3f9a1c2b44"), ("/b/embedded", "77d0e1a952")):
        space, fit = make_space(), f"corpus:{place}"
        moments = make_space(seed=5).moments((1,))
        rows = MeasuredRows(fit, space.origin, space.n_layers, space.dim, (1,), moments, digest)
        made.append(parcel(SETTING.with_(fit=fit), space.with_text(fit, rows)))
        assert made[-1].stem_of("npz").endswith(f"-on-embedded-{digest[:6]}")
        assert (made[-1].record["fit"], made[-1].record["fit_digest"]) == ("corpus:embedded", digest)
        assert place not in str(made[-1].record)
        assert made[-1].fitted_on == f"corpus:embedded-{digest[:6]}"
