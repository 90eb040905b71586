"""A run: a small convolutional encoder trained with an objective, then frozen and judged by two classifiers."""

import math
import time
from collections.abc import Iterator
from dataclasses import asdict, dataclass

import numpy as np
import torch
from jaxtyping import Float
from sklearn.model_selection import train_test_split
from torch import Tensor, nn

from whitelab.base.checks import check_choice, check_int, check_positive
from whitelab.datasets.images import ImageSet
from whitelab.images.augmentation import views
from whitelab.probe import classifiers
from whitelab.training import objectives
from whitelab.training.health import BatchShape, divergence, failed

# What W-MSE compares with, its Eq. 2, under the name it has there.
ALIASES = {"contrastive": "contrastive-whitened:whitening=none"}

BATCH = 256  # images; W-MSE has 1,024 views
HELD_OUT = 0.25
NEIGHBOURS = 5
# Adam as in section 4 of W-MSE: decay 1e-6, a warm-up, and a fifth of the rate at 95 and 97.5 % of the run.
RATE, DECAY, WARMUP, DROPS = 3e-3, 1e-6, 0.1, (0.95, 0.975)
WIDTHS = (16, 32, 64)


@dataclass(frozen=True)
class ImageRecord:
    """A step: mean `loss` since the last record, spread and effective rank of a view's features, seconds so far.

    `message` says why the run ends here, where it does before its last step.
    """

    step: int
    loss: float | None
    spread: float | None
    effective_rank: float | None
    seconds: float
    message: str = ""

    def as_dict(self) -> dict:
        """A JSON-ready record."""
        return {key: value for key, value in asdict(self).items() if value not in ("", None)}


@dataclass(frozen=True)
class Accuracies:
    """Of classifiers on features of held-out images, x 100, and the number of features."""

    linear_accuracy: float
    knn_accuracy: float
    dim: int


class ConvEncoder(nn.Sequential):
    """Three 3 x 3 convolutions with batch norm and ReLU, the last two halving the sides, and the mean over places."""

    def __init__(self, channels: int):
        layers = []
        for number, (before, after) in enumerate(zip((channels, *WIDTHS), WIDTHS, strict=False)):
            stride = 2 if number else 1
            layers.append(nn.Conv2d(before, after, 3, stride, 1, bias=False, dtype=torch.float32))
            layers += [nn.BatchNorm2d(after, dtype=torch.float32), nn.ReLU(inplace=True)]
        super().__init__(*layers, nn.AdaptiveAvgPool2d(1), nn.Flatten())


def full_spec(spec: str) -> str:
    """The canonical spec of an objective, where `contrastive` stands for the contrastive loss without whitening."""
    name, _, rest = spec.partition(":")
    check_choice(name, "objective", (*ALIASES, *objectives.OBJECTIVES))
    whole = ALIASES.get(name)
    return objectives.canonical(spec if whole is None else f"{whole},{rest}" if rest else whole)


def split(data: ImageSet) -> tuple[np.ndarray, np.ndarray]:
    """Rows to train on and rows held out, a quarter of each class, the same in every run."""
    rows = np.arange(len(data.labels))
    test = max(round(HELD_OUT * len(rows)), len(data.classes))
    return tuple(np.sort(part) for part in train_test_split(rows, test_size=test, stratify=data.labels, random_state=0))


def accuracies_of(features: Float[np.ndarray, "n d"], data: ImageSet) -> Accuracies:
    """Linear and 5-nearest-neighbour accuracy of features of all images of `data`, on its held-out rows.

    W-MSE (Ermolov et al. 2021), section 4, evaluation: features before the projection, no augmentation, Euclidean
    neighbours. The linear classifier is a logistic regression with an L2 penalty on features standardised by the
    training rows, in place of 500 epochs of Adam.
    """
    train, test = split(data)
    right = data.labels[test]
    mean, deviation = features[train].mean(axis=0), features[train].std(axis=0)
    scaled = (features - mean) / np.where(deviation > 0, deviation, 1)
    linear = classifiers.linear(scaled[train], data.labels[train], scaled[test])
    near = classifiers.knn(features[train], data.labels[train], features[test], min(NEIGHBOURS, len(train)))
    return Accuracies(*(100 * float((found == right).mean()) for found in (linear, near)), features.shape[1])


class ImageRun:
    """An encoder in training on the rows of `data` that are not held out; labels play no part before `accuracies`.

    Equal arguments give equal runs on one machine. Raises ValueError for an objective, batch or number that does not
    fit the data.
    """

    @torch.inference_mode(False)  # as a Trainer
    def __init__(
        self,
        data: ImageSet,
        objective: str = "w-mse",
        steps: int = 500,
        seed: int = 0,
        batch: int = BATCH,
        rate: float = RATE,
    ):
        self.data, self.spec = data, full_spec(objective)
        self.steps, self.seed = check_int(steps, "steps", 1), check_int(seed, "seed", 0)
        self.rate, self.objective = check_positive(rate, "rate"), objectives.objective(self.spec)
        self.rows = torch.from_numpy(data.images[split(data)[0]])
        self.batch = self._batch(check_int(batch, "batch", 2))
        self.generator = torch.Generator().manual_seed(seed)
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(seed)
            self._build()

    def _batch(self, batch: int) -> int:
        """`batch`, or as many of the images as there are and the objective takes."""
        smallest, multiple = self.objective.batch(self.spec, WIDTHS[-1]), self.objective.multiple(self.spec)
        found = min(batch, len(self.rows)) // multiple * multiple
        if found < smallest:
            raise ValueError(
                f"objective={self.spec!r} needs batches of at least {max(smallest, multiple)} images, "
                f"got batch={batch} and {len(self.rows)} images to train on"
            )
        return found

    def _build(self) -> None:
        self.encoder = ConvEncoder(self.rows.shape[1])
        self.top = self.objective.top(self.spec, WIDTHS[-1])
        self.target = self.objective.slow_copy(self.encoder, self.top["head"])
        weights = [*self.encoder.parameters(), *self.top.parameters()]
        self.optimiser = torch.optim.Adam(weights, lr=self.rate, weight_decay=DECAY)

    def records(self, every: int = 25) -> Iterator[ImageRecord]:
        """Train; a record every so many steps, at the last, and where a step cannot be taken, which ends the run."""
        check_int(every, "every", 1)
        began, sums, batches = time.perf_counter(), [], self._batches()
        for step in range(1, self.steps + 1):
            try:
                loss, h = self._step(step, next(batches))
                problem = divergence(loss, 0.0)
                problem += "; lower the rate" * bool(problem)
            except (objectives.SingularBatch, torch.linalg.LinAlgError) as error:
                problem = failed(error)
            if problem:
                yield ImageRecord(step, None, None, None, time.perf_counter() - began, problem)
                return
            sums.append(loss)
            if step % every == 0 or step == self.steps:
                shape = BatchShape.of(h[0])
                mean, sums = sum(sums) / len(sums), []
                yield ImageRecord(step, mean, shape.spread, shape.rank, time.perf_counter() - began)

    def _batches(self) -> Iterator[Float[Tensor, "b c h w"]]:
        """Batches of images, all in a new order every epoch; what does not fill a batch waits for the next."""
        while True:
            order = torch.randperm(len(self.rows), generator=self.generator)
            for part in order.split(self.batch):
                if len(part) == self.batch:
                    yield self.rows[part]

    @torch.inference_mode(False)
    def _step(self, step: int, images: Float[Tensor, "b c h w"]) -> tuple[float, Float[Tensor, "v b d"]]:
        """One step of Adam; none where the loss is no number, though the batch norms have seen the images."""
        spec, target = self.spec, None
        x = views(images, self.objective.positives(spec), self.generator)
        h = z = self._encoded(self.encoder, x)
        for module in self.top.values():  # a whitening, in the head or in the loss, refuses what is not finite
            z = module(z, self.generator) if z.isfinite().all() else z
        if not z.isfinite().all():
            return math.nan, h.detach()
        if self.target is not None:
            with torch.no_grad():
                target = self.target["head"](self._encoded(self.target["encoder"], x), self.generator)
        loss = self.objective.loss(spec, z, self.generator, target)
        if not loss.isfinite():
            return loss.item(), h.detach()
        self.optimiser.zero_grad(set_to_none=True)
        loss.backward()
        for group in self.optimiser.param_groups:
            group["lr"] = self.rate * rate_factor(step, self.steps)
        self.optimiser.step()
        if self.target is not None:
            self.objective.follow(spec, self.target, self.encoder, self.top["head"], step / self.steps)
        return loss.item(), h.detach()

    @staticmethod
    def _encoded(encoder: nn.Module, x: Float[Tensor, "v b c h w"]) -> Float[Tensor, "v b d"]:
        return encoder(x.flatten(0, 1)).unflatten(0, x.shape[:2])

    @torch.no_grad()
    def features(self) -> Float[np.ndarray, "n d"]:
        """The encoder's features of every image of the data, held-out ones too, without augmentation."""
        self.encoder.eval()
        parts = [self.encoder(part) for part in torch.from_numpy(self.data.images).split(1024)]
        self.encoder.train()
        return torch.cat(parts).double().numpy()

    def accuracies(self) -> Accuracies | None:
        """`accuracies_of` of the encoder as it is; None where its features are not finite."""
        features = self.features()
        return accuracies_of(features, self.data) if np.isfinite(features).all() else None


def pixels(data: ImageSet) -> Float[np.ndarray, "n p"]:
    """The images as they are, as features."""
    return data.images.reshape(len(data.images), -1).astype(np.float64)


def rate_factor(step: int, steps: int) -> float:
    """What the rate is multiplied with in `step`, counted from 1."""
    warm = max(1.0, WARMUP * steps)
    return min(1.0, step / warm) * 0.2 ** sum(step > part * steps for part in DROPS)
