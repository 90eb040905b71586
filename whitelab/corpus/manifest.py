"""What a folder of chunks is to hold: written before the first vector, so that what is missing can be counted."""

import json
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass, field, fields, replace
from hashlib import blake2b
from itertools import pairwise
from pathlib import Path
from statistics import median

from whitelab.base.user_folders import expanded
from whitelab.base.wording import cut_note, quantity, spaced
from whitelab.corpus.chunks import Done, Recipe, done_of
from whitelab.datasets.layouts import existing_path
from whitelab.datasets.pairs import DataError
from whitelab.encoding.embed import unknown_note
from whitelab.store.aside import write_aside
from whitelab.store.held_folder import is_held

MANIFEST = "manifest.json"
_PAUSE, _PAUSE_OF_GAPS = 20.0, 10  # seconds, and medians of the time between chunks: what is longer was no work
_NAMED = 3  # missing chunks, at most, that are said by name
_WRITERS = {"index": "index", "embed": "recipe", "apply": "corpus"}  # steps, and what only their manifests have


@dataclass(frozen=True)
class Manifest:
    """`chunks` names the vectors, `texts` the texts they are of, `sizes` how many those are, each chunk in one place.

    `model` was loaded as `loaded` and has `n_layers` of `dim` dimensions; `reading` are the arguments with which
    `embed_corpus` read the texts, `stamp` what `texts.stamp_of` gave of them then. `encoded` counts the texts that the
    last call encoded, `failed` says why a chunk could not be. `refused` counts lines and files that were left out,
    `refused_lines` has the first of them, `refused_kinds` counts them by what they are and why. `cut` and `unknown`
    count the texts encoded that are longer than the model reads, and those of mostly unknown words (`Done`). `reading`,
    `stamp` and `refused_kinds` are empty, `cut` and `unknown` 0 where an older one wrote this.
    """

    model: str
    loaded: str
    n_layers: int
    dim: int
    max_length: int
    compute: str
    recipe: Recipe
    chunks: tuple[str, ...]
    texts: tuple[str, ...]
    sizes: tuple[int, ...]
    refused: int = 0
    refused_lines: tuple[str, ...] = ()
    refused_kinds: dict[str, int] = field(default_factory=dict)
    encoded: int = 0
    failed: dict[str, str] = field(default_factory=dict)
    finished: bool = False
    reading: dict = field(default_factory=dict)
    stamp: str = ""
    cut: int = 0
    unknown: int = 0

    @property
    def arguments(self) -> dict:
        """The arguments of `embed_corpus` that make the same chunks, but for folder and engine."""
        recipe = {"layers": list(self.recipe.layers), "pooling": self.recipe.pooling, "apart": self.recipe.apart}
        recipe |= {"vectors": self.recipe.dtype, "device": self.recipe.device}
        return {
            "model": self.loaded,
            "dtype": self.compute,
            "max_length": self.max_length,
            **recipe,
            **self.reading,
        }

    @property
    def sentences(self) -> int:
        """Texts of all chunks, each as often as it occurs."""
        return sum(self.sizes)

    @property
    def digest(self) -> str:
        """Hex digest of the chunks, and so of texts, model and all else that decides a vector."""
        return blake2b(" ".join(self.chunks).encode(), digest_size=8).hexdigest()

    @property
    def notes(self) -> tuple[str, ...]:
        """What to know of how its texts were read."""
        cut = cut_note(self.cut, "text", self.max_length) if self.cut else ""
        return tuple(filter(None, (cut, unknown_note(self.unknown, self.model, "text"))))

    def done(self, folder: Path) -> dict[str, Done]:
        """What each chunk that is there whole says of itself."""
        return {name: said for name in dict.fromkeys(self.chunks) if (said := done_of(folder, name))}

    def missing(self, folder: Path) -> list[str]:
        """The chunks that are not there whole, each once."""
        done = self.done(folder)
        return [name for name in dict.fromkeys(self.chunks) if name not in done]

    def counted(self, done: dict[str, Done]) -> "Manifest":
        """With the texts that were cut, and those of mostly unknown words, as often as they occur in chunks `done`."""
        said = [done[name] for name in self.chunks if name in done]
        return replace(self, cut=sum(one.cut for one in said), unknown=sum(one.unknown for one in said))

    def as_dict(self) -> dict:
        """A JSON-ready record."""
        return asdict(self) | {"sentences": self.sentences, "digest": self.digest}

    def write(self, folder: Path) -> "Manifest":
        """Write it; raises OSError."""
        write_aside(folder / MANIFEST, json.dumps(self.as_dict(), indent=1).encode())
        return self

    @classmethod
    def read(cls, folder: str | Path) -> "Manifest":
        """The manifest of a folder. Raises DataError where there is none, and for a folder that may not be read."""
        path, found = existing_path(folder), None
        try:
            found = json.loads((path / MANIFEST).read_bytes())
            later = {name: dict(found.get(name, {})) for name in ("reading", "refused_kinds")}
            later |= {"stamp": found.get("stamp", ""), **{name: int(found.get(name, 0)) for name in ("cut", "unknown")}}
            known = {one.name: found[one.name] for one in fields(cls) if one.name not in later}
            listed = {name: tuple(known[name]) for name in ("chunks", "texts", "sizes", "refused_lines")}
            recipe = Recipe(**known["recipe"] | {"layers": tuple(known["recipe"]["layers"])})
            return cls(**known | listed | {"recipe": recipe} | later)
        except (OSError, ValueError, KeyError, TypeError, AttributeError):
            wrote = _step_of(found)
            instead = f", got one that {wrote} wrote" if wrote not in (None, "embed") else ""
            raise DataError(f"corpus={str(folder)!r} must hold a {MANIFEST} that embed writes{instead}") from None


def _step_of(manifest) -> str | None:
    """The step that wrote a manifest; None of what is none."""
    known = manifest if isinstance(manifest, dict) else {}
    return next((name for name, entry in _WRITERS.items() if entry in known), None)


def place_for(out: str | Path, step: str, replaces: frozenset[str] | None = None) -> Path:
    """`out`, where `step` (embed, apply or index) may write: where there is nothing, or what it wrote before.

    Other files may lie beside what it writes, but where a folder is replaced as a whole: it then holds nothing but
    `replaces`. Raises ValueError.
    """
    path = expanded(out)
    try:
        wrote = _step_of(json.loads((path / MANIFEST).read_bytes()))
    except FileNotFoundError:
        wrote = step
    except (OSError, ValueError):
        wrote = None
    if wrote == step and (replaces is None or not path.exists() or replaces >= {one.name for one in path.iterdir()}):
        return path
    beside = " and holds nothing else" if replaces is not None else ""
    raise ValueError(f"out={str(out)!r} must be a new folder, or one that `corpus {step}` wrote before{beside}")


def missing_note(missing: Sequence[str], chunks: Iterable[str]) -> str:
    """`1 of 3 chunks is missing (9f86d081884c)`: the `missing` of the names `chunks`, by name where they are few."""
    count, total = len(missing), quantity(len(set(chunks)), "chunk")
    names = f" ({', '.join(name[:12] for name in missing)})" if 0 < count <= _NAMED else ""
    return f"{spaced(count)} of {total} {'is' if count == 1 else 'are'} missing{names}"


def finished(folder: str | Path) -> tuple[Path, Manifest]:
    """A folder whose chunks are all there, and its manifest. Raises DataError, which says what is missing."""
    manifest, folder = Manifest.read(folder), existing_path(folder)
    missing = manifest.missing(folder)
    if missing or not manifest.chunks:
        raise DataError(f"corpus={str(folder)!r}: {missing_note(missing, manifest.chunks)}; run embed again")
    return folder, manifest


@dataclass(frozen=True)
class Status:
    """How far a folder is: chunks and sentences done of all, sentences a second lately, seconds left (None: unknown, or
    nobody works on it).

    `done` counts what is there whole, `finished` says that all of it was when the last embed ended. `running` says
    whether a process embeds into it now (None: that cannot be told from here), `mtime` when its last chunk came, in
    seconds since 1970. `cut` and `unknown` count the texts done that are longer than the model reads, and those of
    mostly unknown words (`Done`); `notes` say so.
    """

    chunks: int
    done: int
    sentences: int
    sentences_done: int
    rate: float | None
    seconds_left: float | None
    failed: dict[str, str]
    refused: int
    refused_kinds: dict[str, int]
    finished: bool
    running: bool | None
    mtime: float | None
    cut: int
    unknown: int
    notes: tuple[str, ...]

    @property
    def left_out(self) -> list[str]:
        """What was left out and why, with how often: `4 lines: not UTF-8`."""
        if self.refused and not self.refused_kinds:
            return [quantity(self.refused, "line or file", "lines and files")]
        kinds = ((count, *kind.split(": ", 1)) for kind, count in self.refused_kinds.items())
        return [f"{quantity(count, one)}: {'cannot be read on: ' * (one == 'file')}{why}" for count, one, why in kinds]

    @property
    def lost(self) -> int:
        """Chunks that were there whole when the last embed ended, and are damaged or gone now."""
        return self.chunks - self.done if self.finished else 0

    def as_dict(self) -> dict:
        """A JSON-ready record."""
        return asdict(self)


def status(folder: str | Path, lately: int = 32) -> Status:
    """The state of a folder, read from its files alone, so that it can be asked anywhere and stops nothing.

    The rate is that of the last chunks (`lately` of them) since work was last taken up: while it goes on, since the
    manifest was written, for the first chunks of several workers come at once.
    Raises DataError without manifest.
    """
    manifest, folder = Manifest.read(folder), existing_path(folder)
    sizes: Counter[str] = Counter()  # a chunk that occurs twice is one file
    for name, size in zip(manifest.chunks, manifest.sizes, strict=True):
        sizes[name] += size
    there = manifest.done(folder)
    manifest = manifest.counted(there)
    times = sorted(((folder / f"{name}.parquet").stat().st_mtime, sizes[name]) for name in there)
    done, total = sum(size for _, size in times), sum(sizes.values())
    last = times[-lately:]
    gaps = [late - early for (early, _), (late, _) in pairwise(last)]
    pause = max(_PAUSE, _PAUSE_OF_GAPS * median(gaps)) if gaps else _PAUSE
    last = last[max((i for i, gap in enumerate(gaps, start=1) if gap > pause), default=0) :]
    running, begun = is_held(folder), (folder / MANIFEST).stat().st_mtime
    if running and (times[-lately - 1 : -lately] or [(begun, 0)])[0][0] <= begun:  # nothing came between
        last = [(begun, 0), *(one for one in times if one[0] > begun)]
    took = last[-1][0] - last[0][0] if len(last) > 1 else 0.0
    # The first of them ends where the time begins.
    rate = sum(size for _, size in last[1:]) / took if took > 0 else None
    under_way = (total - done) / rate if rate and running is not False else None
    left = under_way if total > done else (0.0 if times else None)
    return Status(
        len(sizes), len(times), total, done, rate, left, manifest.failed, manifest.refused, manifest.refused_kinds,
        manifest.finished, running, times[-1][0] if times else None, manifest.cut, manifest.unknown,
        manifest.notes,
    )  # fmt: skip
