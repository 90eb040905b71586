"""The shelf of embeddings: a budget of bytes, names, and no value kept alive by its name."""

import gc
import weakref
from dataclasses import dataclass

import numpy as np
import pytest

from whitelab.ui.results.shelf import Shelf


@dataclass(frozen=True, eq=False)
class Block:
    """So many bytes."""

    array: np.ndarray


def block(size: int = 100) -> Block:
    return Block(np.zeros(size, np.uint8))


def there(shelf, names) -> str:
    """The names that still have a value; looking makes them the last used, in their order."""
    return "".join(name for name in names if shelf.get(name) is not None)


def test_the_least_recently_used_make_way_once_the_bytes_are_more_than_are_kept():
    shelf = Shelf(kept_bytes=300, always_kept=1)
    for name in "abc":
        shelf.put(name, block())
    shelf.get("a")
    shelf.put("d", block())
    assert there(shelf, "abcd") == "acd"
    shelf.put("e", block(250))
    assert there(shelf, "acde") == "e"


def test_the_last_few_stay_however_large():
    shelf = Shelf(kept_bytes=10, always_kept=2)
    for name in "abc":
        shelf.put(name, block())
    assert there(shelf, "abc") == "bc"


def test_of_two_that_are_made_at_once_the_first_stays():
    shelf = Shelf()
    first = shelf.put("a", block())
    assert shelf.put("a", block()) is first is shelf.get("a")


def test_a_value_knows_its_name_on_the_shelf_after_it_made_way_and_where_it_was_only_called():
    shelf = Shelf()
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
    shelf = Shelf(kept_bytes=10, always_kept=1)
    gone = [weakref.ref(shelf.put("a", block())), weakref.ref(shelf.call(block(), "b"))]
    shelf.put("c", block())
    gc.collect()
    assert [one() for one in gone] == [None, None]
