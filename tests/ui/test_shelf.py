"""The shelf of embeddings: names, and no value kept alive by its name."""

import gc
import weakref
from dataclasses import dataclass

import numpy as np
import pytest

from whitelab.ui.results.memory import Memory
from whitelab.ui.results.shelf import Shelf


@dataclass(frozen=True, eq=False)
class Block:
    """So many bytes."""

    array: np.ndarray


def block(size: int = 100) -> Block:
    return Block(np.zeros(size, np.uint8))


def test_of_two_that_are_made_at_once_the_first_stays():
    shelf = Shelf(Memory(1000))
    first = shelf.put("a", block())
    assert shelf.put("a", block()) is first is shelf.get("a")


def test_a_value_knows_its_name_on_the_shelf_after_it_made_way_and_where_it_was_only_called():
    shelf = Shelf(Memory(1000))
    kept, called = shelf.put("a", block()), shelf.call(block(), "b")
    shelf.remove("a")
    assert (shelf.name(kept), shelf.name(called)) == ("a", "b")
    assert shelf.get("a") is shelf.get("b") is None
    assert shelf.named(kept)
    assert not shelf.named(block())
    assert not shelf.named([1])  # nor what cannot be looked up
    with pytest.raises(KeyError):
        shelf.name(block())


def test_a_name_keeps_nothing_alive():
    shelf = Shelf(Memory(10))
    gone = [weakref.ref(shelf.put("a", block())), weakref.ref(shelf.call(block(), "b"))]
    shelf.put("c", block())
    gc.collect()
    assert [one() for one in gone] == [None, None]
