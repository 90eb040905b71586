"""Laws of a run on images: what is seen, what is held out, what is judged, and what cannot be."""

import numpy as np
import pytest
import torch
from sklearn.linear_model import LogisticRegression
from sklearn.neighbors import KNeighborsClassifier
from sklearn.preprocessing import StandardScaler

from tests.conftest import float64_by_default
from whitelab.datasets.images import DIGITS, ImageSet, load_images
from whitelab.images.run import ConvEncoder, ImageRun, accuracies_of, full_spec, pixels, rate_factor, split
from whitelab.training import objectives

SMALL = {
    "contrastive": "contrastive:embedding=4,hidden=16",
    "byol": "byol:embedding=4,hidden=16",
    "w-mse": "w-mse:embedding=4,hidden=16",
    "w-mse 4": "w-mse:positives=4,embedding=4,hidden=16",
    "barlow": "barlow:embedding=8,hidden=16",
    "vicreg": "vicreg:embedding=8,hidden=16",
    "mse": "mse:embedding=4,hidden=16",
}


@pytest.fixture(scope="module")
def digits():
    return load_images(DIGITS)


def made(n=90, side=6, channels=1, seed=0):
    """Images of three classes, each bright in a third of its rows."""
    draw = np.random.default_rng(seed)
    labels = np.arange(n) % 3
    images = 0.3 * draw.random((n, channels, side, side))
    for row, label in enumerate(labels):
        images[row, :, label * side // 3 : (label + 1) * side // 3] += 0.6
    return ImageSet("made", images.astype(np.float32), labels.astype(np.int64), ("a", "b", "c"))


def weights(run):
    return [one.clone() for one in run.encoder.state_dict().values()]


def finished(run):
    return list(run.records(every=2))


@pytest.mark.parametrize("on", [float64_by_default, torch.inference_mode])
def test_what_the_caller_has_on_changes_no_run(on):
    with on():
        run = ImageRun(made(), SMALL["barlow"], steps=2, batch=32)
        found = [record.loss for record in finished(run)]
    assert found == [record.loss for record in finished(ImageRun(made(), SMALL["barlow"], steps=2, batch=32))]


@pytest.mark.parametrize("name", SMALL)
def test_every_objective_moves_the_encoder_and_equal_runs_are_equal(name):
    runs = [ImageRun(made(), SMALL[name], steps=3, seed=seed, batch=32) for seed in (1, 1, 2)]
    before = weights(runs[0])
    records = [finished(run) for run in runs]
    assert [one.step for one in records[0]] == [2, 3]
    assert all(np.isfinite([one.loss, one.spread, one.effective_rank]).all() for one in records[0])
    after = [weights(run) for run in runs]
    assert not all(torch.equal(a, b) for a, b in zip(before, after[0], strict=True))
    assert all(torch.equal(a, b) for a, b in zip(after[0], after[1], strict=True))
    assert not all(torch.equal(a, b) for a, b in zip(after[0], after[2], strict=True))
    assert [one.loss for one in records[0]] == [one.loss for one in records[1]] != [one.loss for one in records[2]]


def test_labels_and_held_out_images_play_no_part_in_training():
    data = made()
    other = data.images.copy()
    other[split(data)[1]] = 0.5
    runs = [ImageRun(one, SMALL["w-mse"], steps=2, batch=32) for one in (data, ImageSet("x", other, data.labels, ()))]
    for run in runs:
        finished(run)
    assert all(torch.equal(a, b) for a, b in zip(*map(weights, runs), strict=True))
    assert all(len(part) == 32 for _, part in zip(range(7), runs[0]._batches(), strict=False))


def test_a_quarter_of_each_class_is_held_out_in_every_run_the_same(digits):
    train, test = split(digits)
    assert sorted([*train, *test]) == list(range(1797))
    for label in range(10):
        rows = (digits.labels == label).sum()
        assert (digits.labels[test] == label).sum() == pytest.approx(rows / 4, abs=1)
    assert all(np.array_equal(a, b) for a, b in zip(split(digits), (train, test), strict=True))


def test_accuracies_are_those_of_scikit_learn_on_the_held_out_rows():
    data = made(200)
    draw = np.random.default_rng(0)
    features = 0.4 * pixels(data) + draw.normal(size=(200, 36)) * draw.uniform(0.1, 3, 36)
    features[:, 5] = 2.0  # a feature that does not vary
    train, test = split(data)
    scaler = StandardScaler().fit(features[train])
    linear = LogisticRegression(max_iter=1000).fit(scaler.transform(features[train]), data.labels[train])
    near = KNeighborsClassifier(5).fit(features[train], data.labels[train])
    found = accuracies_of(features, data)
    assert found.linear_accuracy == pytest.approx(
        100 * linear.score(scaler.transform(features[test]), data.labels[test]), abs=1e-9
    )
    assert found.knn_accuracy == pytest.approx(100 * near.score(features[test], data.labels[test]), abs=1e-9)
    assert (found.dim, found.knn_accuracy < 100) == (36, True)


def test_features_are_of_every_image_alone_and_before_the_head():
    run = ImageRun(made(channels=3), SMALL["vicreg"], steps=2, batch=32)
    finished(run)
    found = run.features()
    assert found.shape == (90, 64)
    run.encoder.eval()
    with torch.no_grad():
        alone = torch.cat([run.encoder(image[None]) for image in torch.from_numpy(run.data.images)])
    assert np.allclose(found, alone.numpy(), atol=1e-5)
    run.encoder.train()
    assert np.array_equal(run.features(), found)
    assert run.encoder.training


def test_the_encoder_takes_images_of_any_size():
    for side in (4, 8, 33):
        assert ConvEncoder(3)(torch.rand(2, 3, side, side + 1)).shape == (2, 64)


def test_training_w_mse_on_digits_does_better_than_not_training(digits):
    run = ImageRun(digits, "w-mse:hidden=64,embedding=16,size=64", steps=60, batch=128)
    before = run.accuracies()
    *_, last = run.records()
    after = run.accuracies()
    assert not last.message
    assert after.linear_accuracy > before.linear_accuracy
    assert after.knn_accuracy > 90


def test_byol_keeps_a_slow_copy_that_ends_beside_the_encoder():
    run = ImageRun(made(), "byol:embedding=4,hidden=16,decay=0.5", steps=20, batch=32)
    start = [one.clone() for one in run.target["encoder"].parameters()]
    finished(run)
    assert not any(one.requires_grad for one in run.target.parameters())
    apart = [
        float((slow - fast).detach().norm() / (first - fast).detach().norm())
        for slow, fast, first in zip(run.target["encoder"].parameters(), run.encoder.parameters(), start, strict=True)
        if not torch.equal(first, fast)
    ]
    assert 0 < max(apart) < 0.9


def test_a_loss_that_is_no_number_ends_the_run_and_leaves_the_encoder_as_it_was(monkeypatch):
    run = ImageRun(made(), SMALL["w-mse"], steps=5, batch=32)
    real, calls = type(run.objective).loss, []

    def broken(self, *args):
        calls.append(1)
        return real(self, *args) * (float("nan") if len(calls) == 3 else 1)

    monkeypatch.setattr(type(run.objective), "loss", broken)
    records = run.records(every=1)
    next(records), next(records)
    before = weights(run)
    (last,) = records
    assert (last.step, last.loss) == (3, None)
    assert last.message == "the loss is nan: the step was not taken; lower the rate"
    after = dict(zip(run.encoder.state_dict(), zip(before, weights(run), strict=True), strict=True))
    assert all(torch.equal(*after[name]) for name, _ in run.encoder.named_parameters())


@pytest.mark.parametrize("name", SMALL)
def test_weights_that_overflow_end_the_run_and_are_not_judged(name):
    run = ImageRun(made(), SMALL[name], steps=5, batch=32, rate=1e30)
    assert "the loss is nan" in finished(run)[-1].message
    assert run.accuracies() is None


def test_a_batch_that_cannot_be_whitened_ends_the_run_in_a_sentence():
    data = made()
    same = ImageSet("same", np.full_like(data.images, 0.5), data.labels, data.classes)
    run = ImageRun(same, SMALL["w-mse"], steps=5, batch=32)
    with torch.no_grad():
        for one in run.encoder.parameters():
            one.zero_()
    (last,) = finished(run)
    assert (last.step, "whitening failed" in last.message) == (1, True)


def test_contrastive_is_the_loss_of_w_mses_table_1():
    assert full_spec("contrastive") == objectives.canonical("contrastive-whitened:whitening=none")
    assert full_spec("contrastive:temperature=0.1") == objectives.canonical(
        "contrastive-whitened:whitening=none,temperature=0.1"
    )
    assert full_spec("w-mse:positives=4") == objectives.canonical("w-mse:positives=4")


def test_the_rate_rises_and_falls_by_a_fifth_twice():
    found = [rate_factor(step, 200) for step in range(1, 201)]
    assert found[0] == pytest.approx(0.05)
    assert set(np.round(found[20:], 9)) == {1.0, 0.2, 0.04}
    assert (found[189], found[190], found[195]) == pytest.approx((1, 0.2, 0.04))
    assert rate_factor(1, 1) == pytest.approx(0.04)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"objective": "nothing"}, "objective='nothing' must be one of contrastive, simcse"),
        ({"objective": "w-mse"}, r"needs batches of at least 128 images, got batch=256 and 68 images to train on"),
        ({"objective": "w-mse:embedding=4", "batch": 4}, "needs batches of at least 8 images, got batch=4"),
        ({"steps": 0}, "steps=0 must be a whole number of at least 1"),
        ({"seed": -1}, "seed=-1 must be a whole number of at least 0"),
        ({"batch": 1}, "batch=1 must be a whole number of at least 2"),
        ({"rate": 0.0}, "rate=0.0 must be a number above 0"),
        ({"rate": float("nan")}, "rate=nan must be a number above 0"),
    ],
)
def test_what_does_not_fit_is_named(options, message):
    with pytest.raises(ValueError, match=message):
        ImageRun(made(), **{"objective": "mse:embedding=4,hidden=16"} | options)
