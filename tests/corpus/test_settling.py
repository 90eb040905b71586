"""Settling: a map fitted on the first chunks, measured on as many after them."""

import os
import shutil

import pytest
import torch
from corpora import embed
from tiny import SENTENCES, build_model

from whitelab import whitening
from whitelab.corpus import settling as module
from whitelab.corpus.chunks import merged_moments, read_moments
from whitelab.corpus.fitting import isotropy
from whitelab.corpus.manifest import MANIFEST, status
from whitelab.corpus.settling import settling
from whitelab.store.held_folder import held


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Seven chunks that came a second after each other, in the order of their names reversed."""
    place = tmp_path_factory.mktemp("corpus")
    (place / "text.txt").write_text("\n".join(SENTENCES[:350]))
    made = embed(place / "text.txt", place / "out", str(build_model(place / "out")), chunk_texts=50)
    for second, name in enumerate(reversed(made.chunks)):
        os.utime(place / "out" / f"{name}.parquet", (1000 + second, 1000 + second))
    os.utime(place / "out" / MANIFEST, (999, 999))
    return place / "out", made.chunks


def test_each_fit_is_measured_on_as_many_chunks_after_it_whichever_came_first(folder):
    place, names = folder
    found = settling(place, "zca", 4)
    expected = []
    for first, last in ((1, 2), (2, 4)):  # of seven chunks too few come after four
        fitted = whitening.fit("zca", merged_moments(place, names[:first]), 4)
        expected.append(isotropy(merged_moments(place, names[first:last]), fitted))
    assert found.isotropy == pytest.approx(tuple(expected), abs=1e-9)
    assert found.sentences == (50, 100)
    assert found.seen == len(SENTENCES[:350])
    whole = merged_moments(place, names).eigen.values
    assert torch.allclose(torch.tensor(found.spectrum, dtype=torch.float64), whole, atol=1e-10)


def test_only_chunks_that_are_looked_at_are_opened(folder, monkeypatch):
    place, names = folder
    opened = []
    monkeypatch.setattr(module, "MOST", 2)
    monkeypatch.setattr(module, "is_done", lambda folder, name: not opened.append(name))
    assert settling(place).seen == 100
    assert tuple(opened) == names[:2]


def test_the_rate_and_what_is_left_come_from_the_times_of_files(folder):
    place, names = folder[0], folder[1][::-1]
    found = status(place)
    assert (found.rate, found.done, found.seconds_left) == (50, 7, 0)
    gone = place / f"{names[-1]}.parquet"
    aside = gone.rename(place / "aside")
    try:
        found = status(place)
        assert (found.done, found.seconds_left) == (6, None)  # nobody works on it
        with held(place):
            found = status(place)
        assert (found.rate, found.done, found.seconds_left) == (50, 6, 1)
        assert settling(place).seen == 300
        for late, name in enumerate(names[3:6]):  # taken up again after ten minutes, twice as fast
            os.utime(place / f"{name}.parquet", (1600 + late / 2, 1600 + late / 2))
        assert status(place).rate == 100
    finally:
        for second, name in enumerate(names[3:6], start=3):
            os.utime(place / f"{name}.parquet", (1000 + second, 1000 + second))
        aside.rename(gone)
    assert read_moments(place, names[-1]).count == 50


@pytest.mark.parametrize("before", [0, 2])
def test_the_first_chunks_of_several_workers_took_as_long_as_the_work_goes_on(folder, tmp_path, before):
    place, names = tmp_path / "copy", folder[1]
    shutil.copytree(folder[0], place)
    os.utime(place / MANIFEST, (990, 990))
    for number, name in enumerate(names):
        when = 500 + number if number < before else 1000 + 0.01 * number
        os.utime(place / f"{name}.parquet", (when, when))
        if number > before + 1:
            (place / f"{name}.parquet").unlink()
    with held(place):
        found = status(place)
    assert found.rate == pytest.approx(100 / 10, rel=0.01)
    assert found.seconds_left == pytest.approx((250 - 50 * before) / found.rate)


def test_before_two_chunks_nothing_is_measured(tmp_path):
    (tmp_path / "text.txt").write_text("a man plays\nwater\n")
    embed(tmp_path / "text.txt", tmp_path, str(build_model(tmp_path)))
    found = settling(tmp_path)
    assert (found.isotropy, found.seen) == ((), 2)
