"""What fewer bits a vector cost: quantisers of faiss after a map and a rotation, scored against the bytes they take.

A map comes first, then unit length, then a rotation, then the quantiser; rotations and quantisers are trained on the
rows that the map is fitted on. One side of a comparison is stored: a document, or the second sentence of a pair. The
other asks and stays in float32 (asymmetric, Jégou et al. 2011), but for `hamming`, which cuts both to signs. In floats
a rotation changes no cosine. A quantiser sees coordinates, so there it does.
"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import torch
from jaxtyping import Float

from whitelab.base.checks import check_choice, check_int, check_several
from whitelab.base.installation import need
from whitelab.base.lazy import cached_property
from whitelab.base.threads import one_thread

CENTROIDS = 256  # of each part of a product quantiser: a byte names one
TRAINED = 65_536  # rows that rotations and quantisers are trained on at most
ITQ_ROWS, ITQ_STEPS = 16_384, 50


@dataclass(frozen=True)
class Quantizer:
    """One entry of `QUANTIZERS`: `make(m)` is an untrained faiss index of m columns, whose codes are what is stored.

    `group` is the columns a byte stands for where it is a product quantiser, which needs a multiple of them. `both`:
    the side that asks is cut too.
    """

    label: str
    make: Callable
    hint: str
    group: int = 1
    both: bool = False


def _scalar(kind: str) -> Callable:
    def make(columns: int):
        import faiss

        return faiss.IndexScalarQuantizer(columns, getattr(faiss.ScalarQuantizer, kind), faiss.METRIC_INNER_PRODUCT)

    return make


def _flat(columns: int):
    import faiss

    return faiss.IndexFlatIP(columns)


def _signs(columns: int):
    import faiss

    return faiss.IndexLSH(columns, columns, False, False)


def _product(group: int) -> Callable:
    def make(columns: int):
        import faiss

        index = faiss.IndexPQ(columns, columns // group, 8, faiss.METRIC_INNER_PRODUCT)
        index.pq.cp.min_points_per_centroid = 1  # faiss warns of few rows on standard output
        return index

    return make


QUANTIZERS: dict[str, Quantizer] = {
    "float32": Quantizer("float32", _flat, "Four bytes a dimension: what is stored where nothing is said."),
    "float16": Quantizer("float16", _scalar("QT_fp16"), "Two bytes a dimension."),
    "int8": Quantizer("int8", _scalar("QT_8bit"), "256 equal steps between the least and the greatest of a dimension."),
    "pq4": Quantizer("product, 4 columns a byte", _product(4), "256 centroids for every four columns.", group=4),
    "binary": Quantizer("binary", _signs, "The sign of a dimension; the query keeps its numbers."),
    "hamming": Quantizer("binary, Hamming", _signs, "Signs on both sides: the bits that agree are counted.", both=True),
    "pq8": Quantizer("product, 8 columns a byte", _product(8), "256 centroids for every eight columns.", group=8),
}

ROTATIONS = {
    "none": "as the map leaves it",
    "random": "random rotation",
    "itq": "ITQ",
    "opq": "OPQ",  # Ge et al. 2013
}


@dataclass(frozen=True)
class Code:
    """How a vector is stored: a quantiser of `QUANTIZERS` after a rotation of `ROTATIONS`.

    Raises ValueError for one that is not there, and for OPQ without a product quantiser, which it is made for.
    """

    quantizer: str = "float32"
    rotation: str = "none"

    def __post_init__(self) -> None:
        check_choice(self.quantizer, "quantizer", QUANTIZERS)
        check_choice(self.rotation, "rotation", ROTATIONS)
        if self.rotation == "opq" and self.of.group == 1:
            raise ValueError(f"rotation='opq' goes with a product quantiser, not with quantizer={self.quantizer!r}")

    def __str__(self) -> str:
        return self.quantizer if self.rotation == "none" else f"{self.quantizer}+{self.rotation}"

    @classmethod
    def parse(cls, text: str) -> "Code":
        """`binary+itq` -> Code. Raises ValueError as `Code`."""
        return cls(*text.strip().split("+", 1))

    @property
    def of(self) -> Quantizer:
        """The quantiser."""
        return QUANTIZERS[self.quantizer]

    @property
    def label(self) -> str:
        """As it is called on the screen."""
        return self.of.label + ("" if self.rotation == "none" else f", {ROTATIONS[self.rotation]}")

    def columns(self, columns: int) -> int:
        """The columns that are cut: those there are, filled up with zeros for a product quantiser."""
        return -(-columns // self.of.group) * self.of.group


def check_codes(codes) -> tuple[Code, ...]:
    """Return `codes` as a tuple. Raises TypeError for one alone, and for text that names one."""
    return check_several(codes, "codes", Code, "Code.parse('pq4+opq') gives", least=0)


CODES = tuple(
    Code(quantizer, rotation)
    for quantizer, one in QUANTIZERS.items()
    for rotation in ROTATIONS
    if rotation != "opq" or one.group > 1
)


class Coder:
    """Unit rows -> what is stored of them, after training on rows of the same kind."""

    def __init__(self, code: Code, rows: Float[np.ndarray, "t m"], rotations: dict | None = None, seed: int = 0):
        """Train on `rows`; `rotations` holds those trained on the same rows before, and takes this one.

        Raises ValueError for rows without a column, too few for a product quantiser and a `seed` below 0, and
        MissingLibraryError without faiss.
        """
        seed = check_int(seed, "seed", 0)
        need("faiss")
        if not rows.shape[1]:
            raise ValueError(f"{code} must be trained on a map that keeps a direction, got one of none")
        self.code, self._columns = code, code.columns(rows.shape[1])
        least = CENTROIDS if code.of.group > 1 else 1
        # faiss 1.15 writes beyond its own memory where OPQ has fewer rows than columns.
        least = max(least, self._columns) if code.rotation == "opq" else least
        if len(rows) < least:
            raise ValueError(f"{code} must be trained on at least {least} rows, got {len(rows)}")
        filled = self._filled(rows)
        kept = {} if rotations is None else rotations
        key = code.rotation, self._columns, code.of.group if code.rotation == "opq" else 1
        if key not in kept:
            kept[key] = _rotation(code, filled, seed)
        self._rotation = kept[key]
        self.index = code.of.make(self._columns)
        self.index.train(self.asking(rows))

    @property
    def bytes(self) -> int:
        """Of one vector."""
        return self.index.sa_code_size()

    def asking(self, rows: Float[np.ndarray, "c m"]) -> Float[np.ndarray, "c w"]:
        """Rows as they are compared before anything is cut: filled up and rotated."""
        filled = self._filled(rows)
        return filled if self._rotation is None else self._rotation.apply(filled)

    def codes(self, rows: Float[np.ndarray, "c m"]) -> np.ndarray:
        """What is stored, `[c, bytes]` of uint8."""
        return self.index.sa_encode(np.ascontiguousarray(self.asking(rows)))

    def stored(self, rows: Float[np.ndarray, "c m"]) -> Float[np.ndarray, "c w"]:
        """What the codes of the rows stand for; signs have length 1 as rows have.

        float32 is left as the rows are: rounding their lengths would rank pairs and documents that are equal.
        """
        if self.code == Code():
            return rows
        found = self.index.sa_decode(self.codes(rows))
        return found / np.float32(np.sqrt(self._columns)) if self._binary else found

    def query(self, rows: Float[np.ndarray, "c m"]) -> Float[np.ndarray, "c w"]:
        """The side that asks: as it is, or cut too."""
        return self.stored(rows) if self.code.of.both or self.code == Code() else self.asking(rows)

    @cached_property
    def _binary(self) -> bool:
        return self.code.of.make is _signs

    def _filled(self, rows: Float[np.ndarray, "c m"]) -> Float[np.ndarray, "c w"]:
        missing = self._columns - rows.shape[1]
        filled = np.pad(rows, ((0, 0), (0, missing))) if missing else rows
        return np.ascontiguousarray(filled, dtype=np.float32)


def _rotation(code: Code, rows: Float[np.ndarray, "t w"], seed: int):
    """The trained transform of faiss; None where nothing is turned."""
    import faiss

    columns = rows.shape[1]
    if code.rotation == "none":
        return None
    if code.rotation == "random":
        turn = faiss.RandomRotationMatrix(columns, columns)
        turn.init(seed)
        return turn
    if code.rotation == "itq":
        turn = faiss.LinearTransform(columns, columns, False)
        faiss.copy_array_to_vector(np.ascontiguousarray(itq(rows, seed).T, dtype=np.float32).ravel(), turn.A)
        turn.is_trained = True
        return turn
    turn = faiss.OPQMatrix(columns, columns // code.of.group)
    turn.niter = 10  # of 50: they take most of the time there is
    quantizer = faiss.ProductQuantizer(columns, columns // code.of.group, 8)
    quantizer.cp.min_points_per_centroid = 1
    turn.pq = quantizer
    turn.train(rows)
    return turn


def itq(rows: Float[np.ndarray, "t w"], seed: int = 0) -> Float[np.ndarray, "w w"]:
    """The rotation R that brings rows V nearest to their signs, ||sgn(V R) - V R||^2, from a random one on.

    Gong et al. 2013, section 2.2: B = sgn(V R), then R = W U^T with B^T V = U S W^T, `ITQ_STEPS` times; once B stays, R
    does. On one thread, so that other work changes nothing: beside some, numpy's threads, which share each
    decomposition, waited ten times as long for each other as it takes (measured). Not `faiss.ITQMatrix`: that of faiss
    1.15 ends no nearer to the signs than a random rotation is (measured).
    """
    start = np.random.default_rng(seed).standard_normal((rows.shape[1],) * 2)
    v, before = torch.from_numpy(np.array(rows[:ITQ_ROWS], np.float32)), None  # which may be read from a file
    with one_thread():
        rotation = torch.linalg.qr(torch.from_numpy(start))[0].float()
        for _ in range(ITQ_STEPS):
            above = v @ rotation >= 0
            if before is not None and torch.equal(above, before):
                break
            before = above
            u, _, wt = torch.linalg.svd((2 * above.float() - 1).T @ v)
            rotation = (u @ wt).T
        # MKL leaves the columns five times less at right angles than float32 can: a step of Newton and Schulz.
        turn = rotation.double()
        return (turn @ (1.5 * torch.eye(len(turn)) - 0.5 * turn.T @ turn)).float().numpy()
