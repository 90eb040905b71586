"""The nearest rows of every row, exactly, without a table of all pairs.

Products of all pairs are taken in float32, tile by tile and each pair once; of every tile only the best score of each
group of neighbouring columns is kept. A row's best t columns lie in its best t groups. These few are scored again in
float64, which decides. What float32 could have hidden is bounded: where the bound does not rule it out, the row is
scored against all others in float64.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from whitelab.base.checks import check_choice, check_int, check_matrix
from whitelab.base.devices import own_precision
from whitelab.base.progress import Progress, Steps, silent
from whitelab.statistics.geometry.cosines import normalize
from whitelab.statistics.linalg import exact

DISTANCES = ("cosine", "euclidean")

_GROUP = 32  # columns that share one best score
_SPARE = 3  # groups scored again beyond the t that suffice but for rounding; fewer leave more rows in doubt
_TILE = 1024  # rows and columns of a tile: 4 MB, which stays in the processor's cache
_SMALL = 2048  # up to so many rows float64 alone is as quick
_ROWS = 16_384  # scored again at once: 50 MB for the twenty nearest
_ROWS_IN_FULL = 512  # scored with all others at once
_ROWS_AT_HAND = 32  # whose neighbours' vectors are laid side by side
_CLOSE = 1e-6  # a square of a distance below this share of the squares it is made of
_UNIT = 2.0**-24  # what rounding to float32 changes, as a share


@dataclass(frozen=True, eq=False)
class Nearest:
    """The nearest other rows of every row, nearest first: which, and their cosines or Euclidean distances."""

    rows: Int[Tensor, "n t"]
    values: Float[Tensor, "n t"]


def nearest_rows(x: Float[Tensor, "n d"], tops: Mapping[str, int], progress: Progress = silent) -> dict[str, Nearest]:
    """The `tops[metric]` nearest rows of every row, itself left out, by `cosine`, `euclidean` or both in one pass.

    Exact in float64, with about 30 n d + n^2 / 4 bytes beside `x`. Of rows at one distance up to rounding (squares of
    distances within about 1e-15 of the squared lengths) any may come first; a row of zeros has the cosine 0 with every
    other. `progress(done, total)` may raise to cancel. Raises ValueError for a metric that does not exist and for a
    top that is not within 1..n - 1.
    """
    x = exact(check_matrix(x))
    for metric, top in tops.items():
        check_choice(metric, "metric", DISTANCES)
        check_int(top, "top", 1, len(x) - 1, "n-1")
    scores = {metric: _score(metric, x) for metric in tops}
    if _is_small(x, max(tops.values())):
        return {metric: scores[metric].sorted(scores[metric].in_full(top)) for metric, top in tops.items()}
    with own_precision(x.device):
        best = _best_of_groups(x, scores, progress)
        return {metric: _decided(scores[metric], best.pop(metric), top) for metric, top in tops.items()}


def nearest(x: Float[Tensor, "n d"], top: int = 10) -> Int[Tensor, "n t"]:
    """The `top` rows nearest to every row by cosine, itself left out, nearest first."""
    return nearest_rows(x, {"cosine": top})["cosine"].rows


def in_blocks(
    n: int, score: Callable[[Int[Tensor, "b"]], Float[Tensor, "b n"]], top: int, rows: Int[Tensor, "m"] | None = None
) -> Int[Tensor, "m t"]:
    """The `top` columns of the highest score of each of the `rows` (all n), itself left out, block by block."""
    parts = []
    for block in (torch.arange(n) if rows is None else rows).split(_ROWS_IN_FULL):
        scores = score(block)
        scores[torch.arange(len(block)), block] = -torch.inf
        parts.append(scores.topk(top, dim=1).indices)
    return torch.cat(parts)


@dataclass(frozen=True, eq=False)
class _Score:
    """What float64 ranks the columns of a row by: table[i] . table[j] - shift[j]."""

    table: Float[Tensor, "n d"]
    shift: Float[Tensor, "n"]
    metric: str

    def in_full(self, top: int, rows: Int[Tensor, "m"] | None = None) -> Int[Tensor, "m t"]:
        """The best columns of rows, from their scores with all others."""
        return in_blocks(len(self.table), lambda block: self.table[block] @ self.table.T - self.shift, top, rows)

    def sorted(self, columns: Int[Tensor, "m t"], rows: Int[Tensor, "m"] | None = None) -> Nearest:
        """Columns of every row (or of `rows`), nearest first, with their cosines or distances."""
        every, values = torch.arange(len(self.table)) if rows is None else rows, []
        place = self.table.new_empty(_ROWS_AT_HAND * columns.shape[1], self.table.shape[1])
        for own, others in zip(every.split(_ROWS_AT_HAND), columns.split(_ROWS_AT_HAND), strict=True):
            values.append(self._values(own, others, place[: others.numel()]))
        cosine = self.metric == "cosine"
        found, order = torch.cat(values).sort(dim=1, descending=cosine, stable=True)
        return Nearest(columns.gather(1, order), found)

    def _values(
        self, rows: Int[Tensor, "b"], columns: Int[Tensor, "b t"], place: Float[Tensor, "m d"]
    ) -> Float[Tensor, "b t"]:
        # Into one place again and again: fresh pages would cost more than the products.
        near, own = torch.index_select(self.table, 0, columns.flatten(), out=place), self.table[rows]
        near = near.view(*columns.shape, -1)
        dots = (near @ own[:, :, None])[..., 0]
        if self.metric == "cosine":
            return dots
        sizes = self.shift[rows, None] + self.shift[columns]
        squares = 2 * (sizes - dots)
        close = squares < _CLOSE * sizes  # where subtracting has cost digits, the difference is taken first
        if close.any():
            row, place = close.nonzero(as_tuple=True)
            squares[row, place] = (near[row, place] - own[row]).square().sum(1)
        return squares.sqrt()


def _score(metric: str, x: Float[Tensor, "n d"]) -> _Score:
    if metric == "cosine":
        return _Score(normalize(x), x.new_zeros(len(x)), metric)
    centred = x - x.mean(dim=0)  # which moves no distance, and leaves less to cancel
    return _Score(centred, centred.square().sum(1) / 2, metric)


def _is_small(x: Float[Tensor, "n d"], top: int) -> bool:
    """Whether float64 alone is as quick, or float32 could lose a row that is far shorter than others."""
    if len(x) <= max(_SMALL, 2 * _GROUP * (top + _SPARE)):
        return True
    lengths = torch.linalg.vector_norm(x, dim=1)
    present = lengths[lengths > 0]
    return len(present) == 0 or float(present.min()) < 1e-12 * float(present.max())


@dataclass(frozen=True, eq=False)
class _Best:
    """The highest float32 score of each group of columns, row by row, and by how much it can be wrong.

    Scores are products of `rows`, which `_rank` makes cosines or distances with `weights`. `scale` and `offset` turn
    a row's float64 scores into these.
    """

    rows: Float[Tensor, "n d"]
    weights: Float[Tensor, "n"]
    table: Float[Tensor, "n g"]
    error: Float[Tensor, "n"]
    scale: Float[Tensor, "n"]
    offset: Float[Tensor, "n"]

    def rules_out(self, least: Float[Tensor, "n"], bound: Float[Tensor, "n"]) -> Bool[Tensor, "n"]:
        """Whether no column whose score is at most `bound` can be above the float64 score `least`."""
        return least * self.scale + self.offset >= bound + self.error


def _best_of_groups(x: Float[Tensor, "n d"], scores: Mapping[str, _Score], progress: Progress) -> dict[str, _Best]:
    """One float32 product for all metrics: with x . y at hand a cosine is a division, a distance a subtraction."""
    n, d = x.shape
    length = torch.linalg.vector_norm(x, dim=1)
    longest = float(length.max())
    rows, length = (x / longest).float(), length / longest
    weights = {"cosine": torch.where(length > 0, 1 / length, 0.0).float(), "euclidean": (length.square() / 2).float()}
    tables = {metric: torch.empty(n, -(-n // _GROUP), dtype=torch.float32, device=x.device) for metric in scores}
    buffers = [torch.empty(_TILE * _TILE, dtype=torch.float32, device=x.device) for _ in range(2)]
    count = -(-n // _TILE)
    step = Steps(progress, count * (count + 1) // 2)
    for i in range(0, n, _TILE):
        above = slice(i, min(i + _TILE, n))
        for j in range(i, n, _TILE):
            right = slice(j, min(j + _TILE, n))
            shape = above.stop - i, right.stop - j
            product, score = (buffer[: shape[0] * shape[1]].view(shape) for buffer in buffers)
            torch.mm(rows[above], rows[right].T, out=product)
            for metric, table in tables.items():
                _rank(metric, product, weights[metric][right], score)
                if i == j:
                    score.fill_diagonal_(-torch.inf)
                _keep_best(score, table[above, j // _GROUP :])
                if i != j:  # the same pairs from the other side
                    _rank(metric, product, weights[metric][above, None], score)
                    best = score.view(shape[0] // _GROUP, _GROUP, shape[1]).amax(1)
                    table[right, i // _GROUP : above.stop // _GROUP] = best.T
            step()
    share = (d + 8) * _UNIT  # of |x| |y| at most, in whatever order sums are taken, with the rounding of the score
    found = {}
    for metric, table in tables.items():
        if metric == "cosine":
            bound = share * length, length, torch.zeros_like(length)
        else:
            offset = length.square() / 2 - scores[metric].shift / longest**2
            bound = share * (length + 1), torch.full_like(length, longest**-2), offset
        found[metric] = _Best(rows, weights[metric], table, *bound)
    return found


def _rank(metric: str, product: Tensor, weights: Tensor, out: Tensor) -> None:
    """What ranks the columns of a row: its length times the cosine, or x . y - ||y||^2 / 2."""
    (torch.mul if metric == "cosine" else torch.sub)(product, weights, out=out)


def _keep_best(score: Float[Tensor, "a b"], table: Float[Tensor, "a g"]) -> None:
    """The highest score of each group of columns, the last of which may be narrower."""
    whole = score.shape[1] // _GROUP
    if whole:
        table[:, :whole] = score[:, : whole * _GROUP].unflatten(1, (whole, _GROUP)).amax(2)
    if whole * _GROUP < score.shape[1]:
        table[:, whole] = score[:, whole * _GROUP :].amax(1)


def _decided(score: _Score, best: _Best, top: int) -> Nearest:
    """The best columns of every row, chosen by float64 among the best of its best groups, or among all in doubt."""
    kept = top + _SPARE
    bounds, groups = best.table.topk(kept + 1, dim=1)
    parts = [_among(score, best, groups[part, :kept], part.start, kept) for part in _parts(len(groups))]
    columns, least = (torch.cat(part) for part in zip(*parts, strict=True))
    found = score.sorted(columns)
    rows, values = found.rows[:, :top], found.values[:, :top]
    last = values[:, -1] if score.metric == "cosine" else score.shift - values[:, -1].square() / 2
    doubt = (~best.rules_out(last, bounds[:, kept].maximum(least).double())).nonzero()[:, 0]
    if len(doubt):
        again = score.sorted(score.in_full(top, doubt), doubt)
        rows, values = rows.index_copy(0, doubt, again.rows), values.index_copy(0, doubt, again.values)
    return Nearest(rows, values)


def _parts(n: int) -> list[slice]:
    return [slice(start, min(start + _ROWS, n)) for start in range(0, n, _ROWS)]


def _among(
    score: _Score, best: _Best, groups: Int[Tensor, "b g"], start: int, top: int
) -> tuple[Int[Tensor, "b t"], Float[Tensor, "b"]]:
    """The best columns among each row's groups, and the score of the last of them; group by group, a product each."""
    n, (count, kept) = len(best.rows), groups.shape
    found = torch.full((count * kept, _GROUP), -torch.inf, dtype=torch.float32, device=groups.device)
    flat = groups.flatten()
    sizes = torch.bincount(flat, minlength=-(-n // _GROUP)).tolist()
    place = best.rows.new_empty(max(sizes), best.rows.shape[1])
    for group, places in enumerate(flat.argsort().split(sizes)):
        if len(places):
            columns = slice(group * _GROUP, min((group + 1) * _GROUP, n))
            chosen = torch.index_select(best.rows, 0, start + places // kept, out=place[: len(places)])
            product = chosen @ best.rows[columns].T
            _rank(score.metric, product, best.weights[columns], product)
            found[places, : product.shape[1]] = product
    own = torch.arange(start, start + count, device=groups.device)
    row, column = (groups == own[:, None] // _GROUP).nonzero(as_tuple=True)
    found[row * kept + column, own[row] % _GROUP] = -torch.inf
    values, places = found.view(count, kept * _GROUP).topk(top, dim=1)
    return groups.gather(1, places // _GROUP) * _GROUP + places % _GROUP, values[:, -1]
