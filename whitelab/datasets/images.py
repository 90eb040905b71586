"""Images of one size with a class each: scikit-learn's digits, or a folder whose subfolders are the classes."""

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from jaxtyping import Float32, Int64

from whitelab.datasets.layouts import existing_path
from whitelab.datasets.offered import check_link
from whitelab.datasets.pairs import DataError

DIGITS = "digits"
# Sides in pixels: below it no crop is left, above it an encoder for small images is the wrong one.
SMALLEST, LARGEST = 4, 256
TOPS = {"F": (1, 255), "I": (255, 65535)}  # what is white in grey images of floats and of long integers


@dataclass(frozen=True, eq=False)
class ImageSet:
    """`images [n, c, h, w]` from 0 to 1, c = 1 (grey) or 3 (red, green, blue), and the class of each.

    `problems` are the files left out, a line each.
    """

    name: str
    images: Float32[np.ndarray, "n c h w"]
    labels: Int64[np.ndarray, "n"]
    classes: tuple[str, ...]
    problems: tuple[str, ...] = ()


def load_images(data: str) -> ImageSet:
    """`digits` (1,797 handwritten digits of 8 x 8, which come with scikit-learn) or the images of a folder.

    Grey images of floats and of 16 or 32 bits are scaled by their range (`TOPS`). A file that is no image, or beyond
    such a range, or of another size than most, is left out and named in `problems`. Raises DataError
    where fewer than two classes of two images are left.
    """
    if data == DIGITS:
        from sklearn.datasets import load_digits

        images, labels = load_digits(return_X_y=True)
        pixels = (images / 16).astype(np.float32).reshape(-1, 1, 8, 8)
        return ImageSet(DIGITS, pixels, labels.astype(np.int64), tuple(map(str, range(10))))
    folder = existing_path(data)
    if not folder.is_dir():
        raise DataError(f"{data}: must be {DIGITS!r} or a folder with a subfolder of images for each class")
    return _checked(folder, *_read(folder))


def _read(folder: Path) -> tuple[list[tuple[str, str, np.ndarray]], list[str]]:
    """(class, file, [h, w, 3] of bytes) of every image in a subfolder, and a line for each file that is none."""
    from PIL import Image

    found, problems = [], []
    for path in sorted(folder.glob("*/*")):
        if path.name.startswith(".") or path.parent.name.startswith(".") or not path.is_file():
            continue
        name = f"{path.parent.name}/{path.name}"
        try:
            check_link(path)
            with Image.open(path) as image:
                if max(image.size) > LARGEST or min(image.size) < SMALLEST:
                    problems.append(f"{name}: {_size(*image.size)}, sides must lie between {SMALLEST} and {LARGEST}")
                elif isinstance(pixels := _bytes(image), str):
                    problems.append(f"{name}: {pixels}")
                else:
                    found.append((path.parent.name, name, pixels))
        except (OSError, ValueError, SyntaxError, Image.DecompressionBombError):
            problems.append(f"{name}: cannot be read as an image")
    return found, problems


def _bytes(image) -> np.ndarray | str:
    """The pixels as [h, w, 3] of bytes, or why they are none: Pillow cuts off at 255 what has more bits than 8."""
    if image.mode[0] not in TOPS:
        return np.asarray(image.convert("RGB"))
    tops = TOPS[image.mode[0]] if len(image.mode) == 1 else (65535,)  # such as I;16
    values = np.asarray(image.convert(image.mode[0]), dtype=np.float64)
    low, high = values.min(), values.max()
    top = next((top for top in tops if low >= 0 and high <= top), None)
    if top is None:
        return f"its pixels must lie between 0 and {' or '.join(map(str, tops))}, they run from {low:g} to {high:g}"
    grey = np.floor(values * (255 / top) + 0.5).astype(np.uint8)
    return np.stack([grey] * 3, axis=2)


def _checked(folder: Path, found: list[tuple[str, str, np.ndarray]], problems: list[str]) -> ImageSet:
    """The images of the most frequent size, of the classes that have two of them."""
    sizes, counts = np.unique([one.shape[1::-1] for *_, one in found] or [(0, 0)], axis=0, return_counts=True)
    usual = tuple(sizes[counts.argmax()].tolist())
    kept = []
    for label, name, pixels in found:
        if pixels.shape[1::-1] == usual:
            kept.append((label, name, pixels))
        else:
            problems.append(f"{name}: {_size(*pixels.shape[1::-1])}, most images are {_size(*usual)}")
    classes = _several(label for label, *_ in kept)
    if len(classes) < 2:
        wrong = f"; {problems[0]}" if problems else ""
        raise DataError(f"{folder}: must hold two subfolders (classes) of at least two images of one size{wrong}")
    problems += [f"{name}: the only image of its class" for label, name, _ in kept if label not in classes]
    kept = [one for one in kept if one[0] in classes]
    pixels = np.stack([one for *_, one in kept]).transpose(0, 3, 1, 2).astype(np.float32) / 255
    if (pixels == pixels[:, :1]).all():
        pixels = pixels[:, :1].copy()
    labels = np.array([classes.index(label) for label, *_ in kept], dtype=np.int64)
    return ImageSet(folder.name, pixels, labels, classes, tuple(problems))


def _several(labels: Iterable[str]) -> tuple[str, ...]:
    names, counts = np.unique(list(labels), return_counts=True)
    return tuple(names[counts > 1].tolist())


def _size(width: int, height: int) -> str:
    return f"{width} x {height} pixels"
