"""The trainer: an encoder, what is trained on top of it, an optimiser, and one step after another."""

import math
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from copy import deepcopy
from dataclasses import replace

import torch
from jaxtyping import Float
from torch import Tensor, nn

from whitelab.base.checks import check_choice, check_sentences
from whitelab.base.devices import DTYPES, dtypes_for, own_precision
from whitelab.base.progress import Progress, silent
from whitelab.base.records import without_nan
from whitelab.base.wording import cut_note
from whitelab.datasets import SentencePairs
from whitelab.encoding.architectures import quiet
from whitelab.encoding.checkpoints import ModelFiles, PickledWeights, find_model
from whitelab.encoding.embed import embed
from whitelab.encoding.embeddings import origin_of, with_pairs
from whitelab.encoding.encoders import Encoder, NotFinite, load_encoder
from whitelab.encoding.names import ONE_LAYER, ModelError
from whitelab.encoding.pooling import POOLINGS
from whitelab.scoring.score import reversed_note
from whitelab.scoring.setting import Setting
from whitelab.statistics.geometry import alignment_note
from whitelab.sweeps.layer_profiles import losses, shape
from whitelab.training import health, objectives
from whitelab.training.batches import Batches, derived
from whitelab.training.config import COLLAPSED, DIVERGED, StepRecord, TrainConfig
from whitelab.training.health import BatchShape


def start(config: TrainConfig, device: str | None = None) -> Encoder:
    """The encoder a run starts from. Raises ModelError where there is no transformer to train."""
    # Transformers draws what a checkpoint lacks, such as a pooler.
    with _of_safetensors(config.model), seeded(config.seed, "start"):
        encoder = load_encoder(config.model, device=device)
    if encoder.files.kind in ONE_LAYER:
        raise ModelError(f"model={config.model!r} cannot be trained: it is {ONE_LAYER[encoder.files.kind]}")
    encoder.check_pooling(config.pooling)
    return encoder


def start_files(model: str, progress: Progress = silent) -> ModelFiles:
    """The files a run starts from. Raises ModelError as `find_model`; where weights are pickled, no yes takes them."""
    with _of_safetensors(model):
        return find_model(model, progress)


@contextmanager
def _of_safetensors(model: str) -> Iterator[None]:
    try:
        yield
    except PickledWeights:
        raise ModelError(
            f"model={model!r} has no *.safetensors weights, and training starts from no others: save it as safetensors"
        ) from None


@contextmanager
def seeded(*keys: int | str) -> Iterator[torch.Generator]:
    """Torch's own generators and a new one (on the CPU), all seeded by `keys`; the former are restored afterwards.

    Dropout can only draw from torch's own. Seeding it anew in every step makes what a step draws depend on the seed and
    the step alone: not on evaluations, not on what was drawn before a checkpoint. Torch has one such generator a
    process, so another thread that draws from it during a step would change what the step draws.
    """
    # `manual_seed` seeds every GPU.
    with torch.random.fork_rng(range(torch.cuda.device_count()) if torch.cuda.is_initialized() else []):
        torch.manual_seed(derived(*keys))
        yield torch.Generator().manual_seed(derived(*keys, "objective"))


class Trainer:
    """A run in memory: `measure` what there is, `advance` by a step; `step` counts the steps taken.

    `config` is settled, `encoder` the model in training, in evaluation mode between steps; `seen` counts the sentences
    of the corpus that are also scored. Raises ValueError for a config that does not fit the model, the objective or
    the sentences, ModelError where the start cannot be had.
    """

    # Whatever mode the caller is in: what is made in torch's inference mode learns nothing ever.
    @torch.inference_mode(False)
    def __init__(
        self,
        config: TrainConfig,
        sentences: Sequence[str],
        evaluation: SentencePairs | None = None,
        device: str | None = None,
    ):
        self.evaluation = evaluation
        self.encoder = start(config, device)
        self.device = self.encoder.device
        if config.dropout is not None:
            _set_dropout(self.encoder.model, config.dropout)
        self.config = config = config.settled(self.encoder.dim)
        check_choice(config.precision, "precision", dtypes_for(self.device))
        self.objective = objectives.objective(config.objective)
        sentences = check_sentences(sentences)
        self.batches = Batches(self.encoder, sentences, config.batch, config.seed, config.max_length)
        self.seen = 0 if evaluation is None else self.batches.shared(evaluation.sentences)
        self._build()
        self._try()
        self._check_views()
        self.step = 0
        self.first_shapes: dict[str, BatchShape] = {}
        self.skipped = 0  # steps in a row in which float16's gradients were no numbers

    def _build(self) -> None:
        """Head, predictor and slow copy, drawn from the seed, and the optimiser of all but the copy."""
        config = self.config
        with seeded(config.seed, "head"):
            self.top = self.objective.top(config.objective, self.encoder.dim).to(self.device)
        self.target = self.objective.slow_copy(self.encoder.model, self.top["head"])
        rates = {self.encoder.model: config.lr, self.top: config.lr if config.head_lr is None else config.head_lr}
        groups = []
        for module, rate in rates.items():
            for matrices in (True, False):
                weights = [one for one in module.parameters() if (one.ndim > 1) == matrices]
                decay = config.weight_decay if matrices else 0.0
                groups += [{"params": weights, "lr": rate, "base": rate, "weight_decay": decay}] if weights else []
        self.optimiser = torch.optim.AdamW(groups, fused=True)  # a sixth of the time of the plain loop
        self.scaler = torch.amp.GradScaler(self.device, enabled=config.precision == "float16")

    def _try(self) -> None:
        """The objective on noise, so that a batch it cannot take is refused before anything else happens."""
        config, dim = self.config, self.encoder.dim
        with seeded(config.seed, "try") as generator:
            head = deepcopy(self.top["head"])
            self.objective.try_on_noise(config.objective, head, config.batch, dim, generator, self.device)

    def _check_views(self) -> None:
        """Raise ValueError where the views of a sentence are one and the same, from which nothing is learned.

        So they are where neither the encoder's dropout nor the head draws: W-MSE and MSE are 0 then whatever the
        weights. The encoder is asked twice for the same, because equal rows of one batch may differ by rounding. Where
        it answers differently although it is to have no dropout, ValueError says so.
        """
        config, views = self.config, self.objective.positives(self.config.objective)
        rows, network = self.batches.rows(0)[:2], self.encoder.model
        self._train_mode(True)
        try:
            with seeded(config.seed, "views") as generator, torch.no_grad():
                draws = not torch.equal(self.views(network, rows), self.views(network, rows))
                if draws and config.dropout == 0:
                    raise ValueError(
                        f"dropout={config.dropout} cannot be had of model={self.encoder.name!r}: in training it draws "
                        f"by other means, such as leaving out layers; leave dropout out or choose another model"
                    )
                if draws or views == 1:
                    return
                noise = torch.randn(1, config.batch, self.encoder.dim, generator=generator, dtype=torch.float32)
                z = deepcopy(self.top["head"])(noise.to(self.device).expand(views, -1, -1), generator)
        finally:
            self._train_mode(False)
        alike = torch.isclose(z, z[:1], rtol=1e-3, atol=1e-5).all(dim=-1).all(dim=0)
        if 2 * alike.sum() > len(alike):  # where pieces of the batch are whitened, views that lie in two of them differ
            what = "has no dropout" if config.dropout is None else f"has none with dropout={config.dropout}"
            raise ValueError(
                f"model={self.encoder.name!r} {what}, by which alone the views of a sentence differ in "
                f"{objectives.label(config.objective)}: nothing would be learned; set dropout, such as 0.1, or choose "
                f"another model"
            )

    # ------------------------------------------------------------------------------------------- a step

    def start(self) -> StepRecord:
        """Record 0: the model that training starts from, scored."""
        began, notes = time.perf_counter(), [self.config.warming]
        found = StepRecord(0, **self.measure())
        if self.batches.truncated:
            notes.append(f"{cut_note(self.batches.truncated, 'sentence', self.config.max_length)} for training")
        if self.evaluation is not None:
            gold, rule = torch.tensor(self.evaluation.gold), self.config.positives
            notes += reversed_note(found.spearman, self.evaluation.n_pairs), alignment_note(gold, rule)
        return replace(found, note="; ".join(filter(None, notes)), seconds=time.perf_counter() - began)

    @torch.inference_mode(False)
    def advance(self) -> StepRecord:
        """Take the next step and say how it went; a step that cannot be taken leaves every weight as it was."""
        began, number = time.perf_counter(), self.step + 1
        self.optimiser.zero_grad(set_to_none=True)
        self._train_mode(True)
        try:
            with seeded(self.config.seed, "step", number) as generator, own_precision(self.device):
                loss, shapes = self._backward(number, generator)
        except (objectives.SingularBatch, torch.linalg.LinAlgError) as error:
            return self._stopped(number, began, health.failed(error))
        finally:
            self._train_mode(False)
        if not shapes:
            return self._stopped(number, began, self._remedied(health.divergence(loss, 0.0)))
        self.scaler.unscale_(self.optimiser)
        norm = nn.utils.clip_grad_norm_(self._weights(), self.config.clip or float("inf")).item()
        if problem := self._remedied(health.divergence(loss, norm if self.config.precision != "float16" else 0.0)):
            return self._stopped(number, began, problem, loss=without_nan(loss), gradient_norm=without_nan(norm))
        self.skipped = 0 if math.isfinite(norm) else self.skipped + 1
        if problem := self._remedied(health.skips(self.skipped)):
            return self._stopped(number, began, problem, loss=loss)
        rate = self._update(number)
        self.step, self.first_shapes = number, self.first_shapes or shapes
        record = StepRecord(number, loss, rate, gradient_norm=without_nan(norm))
        if problem := health.collapse(self.first_shapes, shapes, self.config.batch):
            record = replace(record, stop=COLLAPSED, message=problem)
        if self.config.evaluates(number) or record.stop:
            record = self._scored(record)
        return replace(record, seconds=time.perf_counter() - began)

    def _stopped(self, number: int, began: float, message: str, **known) -> StepRecord:
        self.optimiser.zero_grad(set_to_none=True)
        return StepRecord(number, seconds=time.perf_counter() - began, stop=DIVERGED, message=message, **known)

    def _remedied(self, problem: str) -> str:
        return health.remedied(problem, self.config.precision)

    def _scored(self, record: StepRecord) -> StepRecord:
        try:
            return replace(record, **self.measure())
        except NotFinite:
            return replace(record, stop=DIVERGED, message=self._remedied(health.overflow()))

    def _backward(self, number: int, generator: torch.Generator) -> tuple[float, dict[str, BatchShape]]:
        """Gradients of the step's batches, averaged; the mean loss, and the last batch's shapes.

        The loss that is no number and no shapes as soon as there is one.
        """
        count, total = self.config.accumulation, 0.0
        for one in range(count):
            rows = self.batches.rows((number - 1) * count + one)
            h = self.views(self.encoder.model, rows)
            loss, z = self._loss(h, rows, generator)
            if not loss.isfinite():
                return loss.item(), {}
            self.scaler.scale(loss / count).backward()
            total += loss.item() / count
        watched = {health.EMBEDDINGS: h[0], health.OUTPUTS: z[0]}
        return total, {name: BatchShape.of(one, at_least=bool(self.first_shapes)) for name, one in watched.items()}

    def _loss(
        self, h: Float[Tensor, "v b d"], rows: Sequence[int], generator: torch.Generator
    ) -> tuple[Float[Tensor, ""], Float[Tensor, "w b m"]]:
        """The loss of a batch, and what it was computed from; NaN where that or `h` is not finite."""
        spec, z, target = self.config.objective, h, None
        for module in self.top.values():  # a whitening, in the head or in the loss, refuses what is not finite
            z = module(z, generator) if z.isfinite().all() else z
        if not z.isfinite().all():
            return z.new_tensor(math.nan), z
        if self.target is not None:
            with torch.no_grad():
                target = self.target["head"](self.views(self.target["encoder"], rows), generator)
        return self.objective.loss(spec, z, generator, target), z

    @quiet
    def views(self, network: nn.Module, rows: Sequence[int]) -> Float[Tensor, "v b d"]:
        """The pooled last layer of the sentences `rows`, once for each view, float32.

        The views differ by `network`'s dropout where it is in training mode, and by nothing where it is not.
        """
        views = self.objective.positives(self.config.objective)
        kind, parts, (tables, places) = DTYPES[self.config.precision], [], self.batches.parts(rows)
        for ids, mask in tables:
            ids, mask = (x.repeat(views, 1).to(self.device) for x in (ids, mask))
            with torch.autocast(self.device, kind, enabled=kind is not torch.float32):
                hidden = network(input_ids=ids, attention_mask=mask, output_hidden_states=True).hidden_states[-1]
            parts.append(POOLINGS[self.config.pooling](hidden, mask).unflatten(0, (views, -1)))
        return torch.cat(parts, dim=1)[:, places.to(self.device)]

    def _update(self, number: int) -> float:
        factor = self.config.rate(number)
        for group in self.optimiser.param_groups:
            group["lr"] = group["base"] * factor
        self.scaler.step(self.optimiser)
        self.scaler.update()
        if self.target is not None:
            online, progress = (self.encoder.model, self.top["head"]), number / self.config.steps
            self.objective.follow(self.config.objective, self.target, *online, progress)
        return self.config.lr * factor

    def _weights(self) -> list[nn.Parameter]:
        return [one for group in self.optimiser.param_groups for one in group["params"]]

    def _train_mode(self, on: bool) -> None:
        for module in (self.encoder.model, self.top, self.target):
            if module is not None:
                module.train(on)

    # ------------------------------------------------------------------------------------------- measuring

    def measure(self) -> dict:
        """The fields of a record that come from the pairs: the last layer as it is scored everywhere else, no dropout.

        Empty without pairs. Neither weights nor what later steps draw change. Raises NotFinite where the weights give
        NaN or infinity.
        """
        if self.evaluation is None:
            return {}
        values, _ = embed(self.encoder, self.evaluation.sentences, self.config.pooling)
        origin = origin_of(self.encoder, self.evaluation, self.config.pooling)
        space = with_pairs(values[-1:], self.evaluation, origin)
        setting = Setting(pooling=self.config.pooling)
        loss, form = losses(space, setting, self.config.positives), shape(space, setting)
        record = {name: getattr(loss, name) for name in ("spearman", "alignment", "uniformity")}
        record |= {name: getattr(form, name) for name in ("mean_cosine", "effective_rank")}
        return without_nan(record) | {"spectrum": shares(form.eigenvalues)}

    def intact(self) -> bool:
        """Whether the weights give numbers for the sentences of the first batch."""
        with torch.no_grad():
            return bool(torch.isfinite(self.views(self.encoder.model, self.batches.rows(0))).all())

    def state(self) -> dict:
        """All that the steps to come depend on, but for the encoder's weights: tensors, numbers and words only."""
        return {
            "step": self.step,
            "top": self.top.state_dict(),
            "target": None if self.target is None else self.target.state_dict(),
            "optimiser": self.optimiser.state_dict(),
            "scaler": self.scaler.state_dict(),
            "skipped": self.skipped,
            "first_shapes": {name: [one.spread, one.rank] for name, one in self.first_shapes.items()},
        }

    @torch.inference_mode(False)
    def restore(self, state: dict) -> None:
        """Go on from a `state`; the encoder's weights are the caller's."""
        self.step = state["step"]
        self.top.load_state_dict(state["top"])
        if self.target is not None:
            self.target.load_state_dict(state["target"])
        self.optimiser.load_state_dict(state["optimiser"])
        self.scaler.load_state_dict(state["scaler"])
        self.skipped = state.get("skipped", 0)
        self.first_shapes = {name: BatchShape(*one) for name, one in state["first_shapes"].items()}


def _set_dropout(network: nn.Module, p: float) -> None:
    """Let every dropout of `network` drop with probability `p`: modules, and what a module hands to a function."""
    for module in network.modules():
        if isinstance(module, nn.Dropout):
            module.p = p
        for name, value in vars(module).items():
            if "dropout" in name and isinstance(value, (int, float)):
                setattr(module, name, p)


def shares(eigenvalues: Sequence[float]) -> tuple[float, ...] | None:
    """The share of the variance along the 1st, 2nd, 4th, 8th, ... direction; None where nothing varies."""
    total = sum(eigenvalues)
    return tuple(eigenvalues[2**i - 1] / total for i in range(len(eigenvalues).bit_length())) if total > 0 else None
