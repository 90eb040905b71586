"""Laws of image folders: every image with its class, everything else named in a line."""

import numpy as np
import pytest
from PIL import Image
from sklearn.datasets import load_digits

from whitelab.datasets import DataError
from whitelab.datasets.images import LARGEST, load_images


def write(path, width=8, height=6, colour=False, seed=0):
    path.parent.mkdir(parents=True, exist_ok=True)
    shape = (height, width, 3) if colour else (height, width)
    pixels = np.random.default_rng(seed).integers(0, 256, shape, dtype=np.uint8)
    Image.fromarray(pixels).save(path)
    return pixels


@pytest.fixture
def folder(tmp_path):
    """Two classes of three grey images of 8 x 6."""
    for name in ("cat", "dog"):
        for i in range(3):
            write(tmp_path / name / f"{i}.png", seed=i)
    return tmp_path


def test_digits_are_scikit_learns_from_0_to_1():
    found, (images, labels) = load_images("digits"), load_digits(return_X_y=True)
    assert (found.images.shape, found.images.dtype, found.images.max()) == ((1797, 1, 8, 8), np.float32, 1)
    assert np.array_equal(found.images.reshape(1797, 64) * 16, images)
    assert np.array_equal(found.labels, labels)
    assert found.classes == tuple("0123456789")


def test_a_subfolder_is_a_class_and_grey_images_have_one_channel(folder):
    found = load_images(str(folder))
    assert (found.images.shape, found.classes, found.problems) == ((6, 1, 6, 8), ("cat", "dog"), ())
    assert found.labels.tolist() == [0, 0, 0, 1, 1, 1]
    assert np.array_equal(np.round(found.images[4, 0] * 255), write(folder / "again.png", seed=1))
    assert found.name == folder.name


def test_one_coloured_image_makes_three_channels_of_all(folder):
    pixels = write(folder / "dog" / "3.png", colour=True, seed=5)
    found = load_images(str(folder))
    assert found.images.shape == (7, 3, 6, 8)
    assert np.array_equal(np.round(found.images[6] * 255), pixels.transpose(2, 0, 1))
    assert (found.images[0] == found.images[0, 0]).all()


def test_what_is_no_image_of_the_usual_size_is_left_out_and_named(folder):
    (folder / "cat" / "notes.txt").write_text("no image")
    (folder / "cat" / "empty.png").write_bytes(b"")
    (folder / "dog" / "cut.png").write_bytes((folder / "dog" / "0.png").read_bytes()[:60])
    (folder / "cat" / ".hidden").write_text("not asked")
    write(folder / "cat" / "wide.png", width=9)
    write(folder / "cat" / "huge.png", width=LARGEST + 1)
    write(folder / "cat" / "tiny.png", width=3)
    write(folder / "bird" / "lonely.png")
    (folder / "loose.txt").write_text("beside the classes")
    found = load_images(str(folder))
    assert len(found.images) == 6
    assert sorted(found.problems) == [
        "bird/lonely.png: the only image of its class",
        "cat/empty.png: cannot be read as an image",
        f"cat/huge.png: {LARGEST + 1} x 6 pixels, sides must lie between 4 and {LARGEST}",
        "cat/notes.txt: cannot be read as an image",
        "cat/tiny.png: 3 x 6 pixels, sides must lie between 4 and 256",
        "cat/wide.png: 9 x 6 pixels, most images are 8 x 6 pixels",
        "dog/cut.png: cannot be read as an image",
    ]


def test_what_cannot_be_classified_is_refused_in_a_line(tmp_path, folder):
    with pytest.raises(DataError, match="nowhere: no such file or folder"):
        load_images("nowhere")
    with pytest.raises(DataError, match=r"0\.png: must be 'digits' or a folder with a subfolder of images for each"):
        load_images(str(folder / "cat" / "0.png"))
    with pytest.raises(DataError, match=r"must hold two subfolders \(classes\) of at least two images of one size$"):
        load_images(str(folder / "cat"))
    (tmp_path / "bad" / "a").mkdir(parents=True)
    (tmp_path / "bad" / "a" / "x.png").write_text("no image")
    with pytest.raises(DataError, match=r"of one size; a/x\.png: cannot be read as an image"):
        load_images(str(tmp_path / "bad"))


FORMS = {
    "png": lambda pixels: pixels,
    "16.png": lambda pixels: pixels.astype(np.uint16) * 257,
    "integers.tiff": lambda pixels: pixels.astype(np.int32),
    "long.tiff": lambda pixels: pixels.astype(np.int32) * 257,
    "floats.tiff": lambda pixels: pixels.astype(np.float32),
    "shares.tiff": lambda pixels: pixels.astype(np.float32) / 255,
}


@pytest.mark.parametrize("ending", FORMS)
def test_grey_images_of_every_depth_are_those_of_8_bits(tmp_path, ending):
    pixels = np.random.default_rng(0).integers(0, 256, (4, 8, 8), dtype=np.uint8)
    for name in "ab":
        (tmp_path / name).mkdir()
        for number, one in enumerate(FORMS[ending](pixels)):
            Image.fromarray(one).save(tmp_path / name / f"{number}.{ending}")
    found = load_images(str(tmp_path))
    assert found.problems == ()
    np.testing.assert_array_equal(np.round(found.images[:4, 0] * 255), pixels)


@pytest.mark.parametrize(("value", "kind"), [(-1, "f4"), (256, "f4"), (np.nan, "f4"), (-1, "i4"), (65536, "i4")])
def test_pixels_beyond_their_range_are_named_and_not_cut_off(folder, value, kind):
    values = np.ones((6, 8), kind)
    values[0, 0] = value
    Image.fromarray(values).save(folder / "cat" / "beyond.tiff")
    found = load_images(str(folder))
    (problem,) = found.problems
    assert problem.startswith("cat/beyond.tiff: its pixels must lie between 0 and ")
    assert len(found.images) == 6
