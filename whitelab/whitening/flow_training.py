"""How the parameters of a flow are found: started from data, then trained by Adam, without labels."""

import time
from collections.abc import Iterator

import torch
from jaxtyping import Float, Int
from torch import Tensor

from whitelab.base.checks import check_int
from whitelab.base.devices import own_precision
from whitelab.base.progress import Progress, silent
from whitelab.statistics import linalg
from whitelab.statistics.linalg import exact
from whitelab.whitening import flow
from whitelab.whitening.flow import FlowMap

# Of the published training: the flow's optimiser in the authors' code, Adam without bias correction.
_BETAS, _EPSILON, _DECAY, _LARGEST_GRADIENT = (0.9, 0.999), 1e-6, 0.01, 1.0
_WEIGHT_DEVIATION = 0.05
_FLAT = 1e-6  # a coordinate that varies less than this share of the most varying one is not stretched


@torch.inference_mode(False)  # which also takes gradients up again
def fit_flow(
    x: Float[Tensor, "n d"],
    counts: Float[Tensor, "n"],
    *,
    epochs: int = 1,
    levels: int = 3,
    depth: int = 3,
    width: int = 32,
    batch: int = 64,
    lr: float = 0.001,
    seed: int = 0,
    progress: Progress = silent,
) -> FlowMap:
    """Train a Glow-like flow to send the rows to a standard normal, by their likelihood alone.

    Li et al. 2020, Eq. 4. Published, in the authors' code: 3 levels of 3 steps, additive couplings of width 32,
    reversal for permutation, one epoch of 32 pairs a step, learning rate 1e-3, weight decay 0.01, gradients clipped to
    norm 1, actnorm started from the first batch. Ours: single sentences in place of pairs (so 64 a step), odd d, a
    coordinate that does not vary keeps its scale, float32 in training and float64 afterwards, on a GPU where there
    is one. An epoch sees each row as often as it occurs. `progress(done, total)` counts steps and may raise to
    cancel. The same seed gives the same map on one device. Of rows that do not vary nothing is learnt: the rank is 0.
    """
    for name, value in (("epochs", epochs), ("levels", levels), ("depth", depth), ("width", width), ("batch", batch)):
        check_int(value, name, 1)
    start, dim, home = time.perf_counter(), x.shape[1], x.device
    generator = torch.Generator().manual_seed(check_int(seed, "seed", 0))
    total = max(1, int(epochs * float(counts.sum()) / batch))
    device = torch.device("cuda") if torch.cuda.is_available() else home
    rows = x.to(device, torch.float32)
    batches = _batches(counts.cpu(), batch, generator)
    first = next(batches)
    with own_precision(device):
        parameters = _started(rows[first.to(device)], levels, depth, width, generator)
    optimiser = _Adam(parameters, lr)
    for step in range(total):
        here = rows[(first if step == 0 else next(batches)).to(device)]
        with own_precision(device):
            loss = flow.bits(*flow.forward(parameters, here, levels, depth))
            gradients = torch.autograd.grad(loss, list(parameters.values()), allow_unused=True)
        optimiser.step(gradients)
        progress(step + 1, total)
    tensors = {name: exact(one.detach()).to(home) for name, one in parameters.items()}
    facts = {"dim": dim, "levels": levels, "depth": depth, "steps": total}
    facts |= {"parameters": sum(one.numel() for one in tensors.values()), "seconds": time.perf_counter() - start}
    rank = dim if linalg.distinct_rows(x, 2) > 1 else 0
    return FlowMap("flow", rank, float(counts.sum()), tensors, facts)


def _batches(counts: Float[Tensor, "n"], batch: int, generator: torch.Generator) -> Iterator[Int[Tensor, "b"]]:
    """Numbers of rows, `batch` at a time, for ever: epoch after epoch, each in an order of its own."""
    every, rest = torch.arange(len(counts)).repeat_interleave(counts.long()), torch.empty(0, dtype=torch.int64)
    while True:
        while len(rest) < batch:
            rest = torch.cat([rest, every[torch.randperm(len(every), generator=generator)]])
        yield rest[:batch]
        rest = rest[batch:]


def _started(
    x: Float[Tensor, "n d"], levels: int, depth: int, width: int, generator: torch.Generator
) -> dict[str, Tensor]:
    """Parameters under which every actnorm gives the rows of `x` mean 0 and variance 1, and no coupling shifts."""
    parameters: dict[str, Tensor] = {}

    def normal(*shape: int) -> Tensor:
        return (_WEIGHT_DEVIATION * torch.randn(*shape, generator=generator, dtype=x.dtype)).to(x.device)

    def normalised(name: str, y: Tensor) -> Tensor:
        deviation = y.std(0, correction=0)
        flat = deviation <= _FLAT * deviation.max() if deviation.numel() else deviation.bool()
        parameters[f"{name}.bias"] = -y.mean(0)
        parameters[f"{name}.log_scale"] = torch.where(flat, 0.0, -deviation.log() / flow.FACTOR).nan_to_num(0, 0, 0)
        return flow.actnorm(parameters, name, y)[0]

    for name, size in flow.steps(x.shape[1], levels, depth):
        x = normalised(f"{name}.actnorm", x[:, :size]).flip(1)
        kept = -(-size // 2)
        hidden = x[:, :kept]
        for layer in ("first", "second"):
            parameters[f"{name}.{layer}.weight"] = normal(hidden.shape[1], width)
            hidden = normalised(f"{name}.{layer}", hidden @ parameters[f"{name}.{layer}.weight"]).relu()
        parameters[f"{name}.last.weight"] = x.new_zeros(width, size - kept)
        parameters[f"{name}.last.bias"] = x.new_zeros(size - kept)
        parameters[f"{name}.last.log_scale"] = x.new_zeros(size - kept)
    return {name: one.requires_grad_() for name, one in parameters.items()}


class _Adam:
    """Adam as BERT's code has it: no bias correction, decay apart from the gradient, gradients clipped together."""

    def __init__(self, parameters: dict[str, Tensor], lr: float) -> None:
        self.parameters, self.lr = list(parameters.values()), lr
        self.means = [torch.zeros_like(one) for one in self.parameters]
        self.squares = [torch.zeros_like(one) for one in self.parameters]

    @torch.no_grad()
    def step(self, gradients: tuple[Tensor | None, ...]) -> None:
        """One step against the gradients; a parameter without one does not move."""
        norm = torch.stack([g.norm() for g in gradients if g is not None]).norm()
        clip = (_LARGEST_GRADIENT / norm.clamp_min(_LARGEST_GRADIENT)).nan_to_num(0.0)
        for one, mean, square, gradient in zip(self.parameters, self.means, self.squares, gradients, strict=True):
            if gradient is None:
                continue
            gradient = gradient * clip
            mean.lerp_(gradient, 1 - _BETAS[0])
            square.mul_(_BETAS[1]).addcmul_(gradient, gradient, value=1 - _BETAS[1])
            one -= self.lr * (mean / (square.sqrt() + _EPSILON) + _DECAY * one)
