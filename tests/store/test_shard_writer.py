"""Laws of what is written beside the encoder: every row once, two shards alive at most, nothing lost but by a kill."""

import threading

import numpy as np
import pytest

from whitelab.store.embedding_store import StoreError
from whitelab.store.shard_writer import ShardWriter

LAYERS, DIM = 3, 5
LONG = 60.0  # seconds


class Shelf:
    """A space that keeps what is written, after `before(texts)`."""

    def __init__(self, before=lambda texts: None):
        self.before, self.shards, self.cut = before, [], []

    def write(self, texts, values, cut):
        self.before(texts)
        self.cut += [texts[i] for i in sorted(cut)]
        self.shards.append((list(texts), values.copy()))

    def texts(self):
        return [text for texts, _ in self.shards for text in texts]


def batches(sizes, seed=0):
    """`(texts, {pooling: [b, l, d]})` of the sizes given."""
    draw, start = np.random.default_rng(seed), 0
    for size in sizes:
        texts = [f"text {start + i}" for i in range(size)]
        rows = {name: draw.standard_normal((size, LAYERS, DIM)).astype(np.float32) for name in ("mean", "cls")}
        start += size
        yield texts, rows


def written(shelves, sizes, sentences=8, seconds=LONG):
    with ShardWriter(shelves, sentences, seconds) as writer:
        for texts, rows in batches(sizes):
            writer.add(texts, rows, {i: 1 for i, text in enumerate(texts) if text.endswith("3")})
            for table in rows.values():
                table[:] = np.nan  # the writer has its own copy
    return writer


@pytest.mark.parametrize("sizes", [(), (1,), (8,), (3, 5, 7, 1), (30,), (8, 8), (20, 20, 1)])
def test_every_row_is_written_once_in_shards_of_the_size_asked_for(sizes):
    shelves = {"mean": Shelf(), "cls": Shelf()}
    written(shelves, sizes)
    for name, shelf in shelves.items():
        assert shelf.texts() == [f"text {i}" for i in range(sum(sizes))]
        assert shelf.cut == [text for text in shelf.texts() if text.endswith("3")]
        assert [len(texts) for texts, _ in shelf.shards] == [8] * (sum(sizes) // 8) + [sum(sizes) % 8] * bool(
            sum(sizes) % 8
        )
        wanted = [rows[name] for _, rows in batches(sizes)]
        found = [values for _, values in shelf.shards]
        assert not wanted or np.array_equal(np.concatenate(found), np.concatenate(wanted))


def test_a_shard_that_took_too_long_is_written_as_it_is():
    shelf = Shelf()
    written({"mean": shelf}, (1, 2, 3), seconds=-1.0)
    assert [len(texts) for texts, _ in shelf.shards] == [1, 2, 3]


def test_while_a_shard_is_written_one_more_is_gathered_and_a_third_waits():
    go = threading.Event()
    shelf = Shelf(lambda texts: go.wait(LONG))
    (one, two, three) = batches((8, 7, 9))
    with ShardWriter({"mean": shelf}, 8, LONG) as writer:
        writer.add(*one, {})
        writer.add(*two, {})  # and has not waited
        more = threading.Thread(target=writer.add, args=(*three, {}))
        more.start()
        more.join(0.2)
        assert more.is_alive()
        assert shelf.shards == []
        go.set()
        more.join(LONG)
    assert shelf.texts() == one[0] + two[0] + three[0]


def test_the_last_shards_of_all_spaces_are_written_side_by_side():
    both = threading.Barrier(2, timeout=LONG)
    shelves = {name: Shelf(lambda texts: both.wait()) for name in ("mean", "cls")}
    written(shelves, (5,))
    assert [shelf.texts() for shelf in shelves.values()] == [[f"text {i}" for i in range(5)]] * 2


def test_what_a_space_refuses_is_said_and_the_others_have_theirs():
    def full(texts):
        raise StoreError("No space left on device")

    shelves = {"mean": Shelf(full), "cls": Shelf()}
    writer = written(shelves, (8, 3))
    assert writer.refused == ["No space left on device"] * 2
    assert len(shelves["cls"].texts()) == 11


@pytest.mark.parametrize("broken", ["mean", "cls"])
def test_any_other_error_of_one_space_is_raised_once_the_others_have_theirs(broken):
    def fails(texts):
        raise MemoryError("no room")

    shelves = {name: Shelf(fails if name == broken else lambda texts: None) for name in ("mean", "cls")}
    with pytest.raises(MemoryError, match="no room"):
        written(shelves, (8, 8, 3))
    (whole,) = (shelf for name, shelf in shelves.items() if name != broken)
    assert whole.texts()[:8] == [f"text {i}" for i in range(8)]
    assert len(whole.texts()) == len(set(whole.texts())) >= 16


def test_leaving_by_an_error_writes_what_has_come():
    shelf, (one,) = Shelf(), batches((5,))

    def cancelled():
        with ShardWriter({"mean": shelf}, 8, LONG) as writer:
            writer.add(*one, {})
            raise KeyError("cancelled")

    with pytest.raises(KeyError, match="cancelled"):
        cancelled()
    assert shelf.texts() == one[0]
