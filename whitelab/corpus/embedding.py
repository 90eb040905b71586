"""Files of text -> a folder of chunks and its manifest, at any engine."""

import shutil
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

from whitelab.base.checks import check_choice, check_int
from whitelab.base.progress import Progress, silent
from whitelab.corpus.chunks import CHUNK_TEXTS, STORED, TEXTS, Recipe, chunks_of, write_texts
from whitelab.corpus.engines import Work, check_engine, engine_named
from whitelab.corpus.manifest import Manifest, missing_note, place_for
from whitelab.corpus.texts import LeftOut, read_texts, stamp_of, text_files
from whitelab.datasets.layouts import data_path
from whitelab.datasets.pairs import DataError
from whitelab.encoding.encoders import load_encoder
from whitelab.encoding.names import ModelName, check_alone
from whitelab.store import held_folder
from whitelab.store.aside import remove_abandoned

_REFUSED_KEPT = 1000


def embed_corpus(
    source: str | Path,
    folder: str | Path,
    model: str = "bundled",
    layers: Sequence[int] = (-1,),
    *,
    pooling: str = "mean",
    apart: bool = False,
    vectors: str = "float32",
    dtype: str = "float32",
    device: str = "cpu",
    max_length: int | None = None,
    allow_bin: bool = False,
    engine: str = "serial",
    workers: int = 2,
    address: str | None = None,
    gpus: float = 0.0,
    chunk_texts: int = CHUNK_TEXTS,
    text_column: str = "text",
    id_column: str = "id",
    progress: Progress = silent,
) -> Manifest:
    """Read the texts into chunks, then encode every chunk whose vectors are not there yet, wherever `engine` says.

    The layers are averaged, or with `apart` kept one after another, so that a map of any average of them can be
    fitted; for l layers of d dimensions the fit then holds twice 8 (l d)^2 bytes (13 of 768: 0.8 GB each). `vectors` is
    the type that is written, `dtype` the one that is computed in. Returns the manifest: `encoded` counts what this
    call encoded, `failed` says which chunks are missing and why. `progress(done, total)` counts texts and may raise to
    cancel. Raises ValueError for an argument out of range and for a folder that another process embeds into, ModelError
    for a model that cannot be had and for `sif:`, whose vectors depend on all texts, DataError for no text, OSError
    where the disk refuses; what was done by then is done, and is not done again.
    """
    check_int(chunk_texts, "chunk_texts", 1)
    check_choice(vectors, "vectors", STORED)
    check_engine(engine, workers, address, gpus)
    if gpus and device == "cpu":
        raise ValueError(f"gpus={gpus:g} must go with device='cuda', got device={device!r}, which leaves them idle")
    check_alone(model)
    text_files(source)  # looked for before a model is loaded
    folder = place_for(folder, "embed")
    if held_folder.is_held(folder):
        raise _written_by(folder, held_folder.owner(folder))
    model = ModelName.parse(model).anywhere
    loading = {"model": model, "device": device, "dtype": dtype, "max_length": max_length, "allow_bin": allow_bin}
    encoder = load_encoder(**loading)
    run = engine_named(engine, workers, encoder, address, gpus)
    recipe = Recipe.of(encoder, layers, pooling, apart, vectors)
    new = not folder.exists()
    (folder / TEXTS).mkdir(parents=True, exist_ok=True)
    with _alone(folder), _gone_without_text(folder if new else None):
        for place in (folder, folder / TEXTS):
            remove_abandoned(place)
        columns = {"text_column": text_column, "id_column": id_column}
        whole = str(data_path(source).absolute())
        stamp = stamp_of(whole)  # before they are read, so that what is written meanwhile shows
        planned = _planned(source, folder, recipe, chunk_texts, columns)
        manifest = Manifest(
            encoder.name, model, encoder.n_layers, encoder.dim, encoder.max_length, dtype, recipe, *planned,
            reading={"source": whole, "chunk_texts": chunk_texts, "allow_bin": allow_bin, **columns},
            stamp=stamp,
        ).write(folder)  # fmt: skip
        return _encoded(manifest, folder, run, Work(str(folder), recipe, loading), progress)


@contextmanager
def _alone(folder: Path) -> Iterator[None]:
    try:
        with held_folder.held(folder):
            yield
    except held_folder.HeldElsewhere as who:
        raise _written_by(folder, who) from None


@contextmanager
def _gone_without_text(folder: Path | None) -> Iterator[None]:
    """Leave no folder behind that was made for texts of which there are none."""
    try:
        yield
    except DataError:
        if folder is not None:
            shutil.rmtree(folder, ignore_errors=True)
        raise


def _written_by(folder: Path, who) -> ValueError:
    return ValueError(f"out={str(folder)!r} is being written by {who}: wait for it, or choose another folder")


def _planned(source: str | Path, folder: Path, recipe: Recipe, chunk_texts: int, columns: dict[str, str]) -> tuple:
    """Write the texts in chunks. Returns what a manifest has of them: `chunks` to `refused_kinds`."""
    kinds: Counter[str] = Counter()
    lines, planned = [], []

    def refuse(one: LeftOut) -> None:
        kinds[one.kind] += 1
        if len(lines) < _REFUSED_KEPT:
            lines.append(str(one))

    for chunk in chunks_of(read_texts(source, refuse, **columns), chunk_texts):
        texts = write_texts(folder, chunk)
        planned.append((recipe.name(texts), texts, len(chunk.texts)))
    refused = kinds.total()
    if not planned:
        first = f" ({refused} left out, the first: {lines[0]})" if lines else ""
        raise DataError(f"text={str(source)!r} must hold a text, found none{first}")
    return *zip(*sorted(planned), strict=True), refused, tuple(lines), dict(kinds.most_common())


def _encoded(manifest: Manifest, folder: Path, run, work: Work, progress: Progress) -> Manifest:
    """Run the engine over what is missing; the manifest says what came of it, also where the disk refused."""
    absent = {*manifest.missing(folder)}
    missing: Counter[str] = Counter()  # texts of a chunk, as often as it occurs
    for name, texts, size in zip(manifest.chunks, manifest.texts, manifest.sizes, strict=True):
        missing.update({texts: size} if name in absent else {})
    names = dict(zip(manifest.texts, manifest.chunks, strict=True))
    encoded, failed, full = 0, {}, ""
    total = manifest.sentences
    done = total - sum(missing.values())
    progress(done, total)
    try:
        for outcome in run(list(missing), work) if missing else ():
            encoded += outcome.encoded
            if outcome.error:
                failed[names[outcome.texts]] = outcome.error
            if outcome.full:
                full = outcome.error
                break
            done += missing[outcome.texts]
            progress(done, total)
    finally:
        there = not failed and not manifest.missing(folder)
        manifest = replace(manifest.counted(manifest.done(folder)), encoded=encoded, failed=failed, finished=there)
        if not full:
            manifest.write(folder)
    if full:
        left = missing_note(manifest.missing(folder), manifest.chunks)
        raise OSError(f"out={str(folder)!r}: {full}; {left}; run embed again")
    return manifest
