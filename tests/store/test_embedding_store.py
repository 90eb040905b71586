"""Laws of the embedding store: what was written is read back bit by bit or reported missing, nothing else."""

import errno
import os
import sqlite3
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, suppress
from dataclasses import asdict, replace
from hashlib import sha256
from pathlib import Path

import numpy as np
import pytest
from processes import ROOT

from whitelab.store import aside, shards
from whitelab.store.embedding_store import MissingEmbedding, Store, StoreError, StoreKey

KEY = StoreKey("ab12", "ef56", "cd34", "mean", 128, "float32", num_layers=3, dim=8, model="some/model")
FIRST = ["a cat", "a dog", "naïve café", "\ud800 half a pair", ""]
SECOND = ["a tree", "a bird"]


def vectors(sentences):
    """[n, l, d] float32, a fixed function of each sentence, as an encoder would be."""
    seeds = [int.from_bytes(sha256(s.encode("utf-8", "surrogatepass")).digest()[:8]) for s in sentences]
    shape = (KEY.num_layers, KEY.dim)
    rows = [np.random.default_rng(seed).standard_normal(shape, dtype=np.float32) for seed in seeds]
    return np.stack(rows) if rows else np.empty((0, *shape), np.float32)


def expected(sentences):
    return vectors(sentences).transpose(1, 0, 2)


@pytest.fixture
def store(tmp_path):
    return Store(tmp_path / "cache")


@pytest.fixture
def space(store):
    space = store.space(KEY)
    space.write(FIRST, vectors(FIRST))
    space.write(SECOND, vectors(SECOND))
    return space


def shard_files(space):
    return sorted(space.folder.glob("*.safetensors"))


def shard_of(space, sentence):
    (h,) = shards.hashes_of([sentence])
    (path,) = [p for p in shard_files(space) if h in shards.read_rows(p, KEY.digest)[0]]
    return path


def grow_old(path, seconds=2 * aside.STALE_SECONDS):
    os.utime(path, (time.time() - seconds,) * 2)


# Writing and reading


def test_a_second_read_equals_the_first_write_bit_by_bit(store, space):
    odd = vectors(["odd"])
    odd[0, 0, :4] = [-0.0, 1e-45, np.finfo(np.float32).max, np.float32(1) + np.finfo(np.float32).eps]
    space.write(["odd"], odd)
    for reader in (space, store.space(KEY)):
        assert reader.read(["odd"]).tobytes() == odd.transpose(1, 0, 2).tobytes()
        assert reader.read(FIRST + SECOND).tobytes() == expected(FIRST + SECOND).tobytes()


def test_read_is_layers_first_contiguous_float32_and_read_only(space):
    out = space.read(FIRST)
    assert out.shape == (3, 5, 8)
    assert out.dtype == np.float32
    assert out.flags.c_contiguous
    assert not out.flags.writeable


def test_the_request_decides_the_order_of_rows_and_may_repeat_them(space):
    mixed = ["a bird", "a dog", "a bird", "", "a tree", "a cat", "a dog"]
    np.testing.assert_array_equal(space.read(mixed), expected(mixed))
    assert not np.array_equal(space.read(mixed), expected(sorted(mixed)))


def test_only_the_layers_asked_for_are_read_in_the_order_asked(space):
    np.testing.assert_array_equal(space.read(FIRST, layers=[2, 0]), expected(FIRST)[[2, 0]])
    assert space.read(FIRST, layers=[]).shape == (0, 5, 8)
    assert space.read([]).shape == (3, 0, 8)
    with pytest.raises(ValueError, match=r"layers=\[3\] must lie between 0 and 2"):
        space.read(FIRST, layers=[3])
    with pytest.raises(ValueError, match=r"layers=\[-1\] must lie"):
        space.read(FIRST, layers=[-1])


def test_missing_reports_each_absent_sentence_once_at_its_first_position(space):
    assert space.missing(FIRST + SECOND) == []
    assert space.missing(["new", "a cat", "new", "other", "a bird", "other"]) == [0, 3]


def test_texts_that_differ_in_any_character_are_different_sentences(space):
    assert space.missing(["a cat ", "A cat", "nai\u0308ve café", "\ud801 half a pair"]) == [0, 1, 2, 3]


def test_reading_an_absent_sentence_names_it(space):
    with pytest.raises(MissingEmbedding, match="^1 of 2 sentences are not stored, first 'new'$"):
        space.read(["a cat", "new"])
    with pytest.raises(KeyError):
        space.read(["new"])


def test_a_sentence_stored_already_keeps_its_vector_and_takes_no_more_space(space):
    before = shard_files(space)
    space.write(FIRST, vectors(FIRST) + 1)
    assert shard_files(space) == before
    space.write(["a cat", "new", "new"], vectors(["a cat", "new", "new"]) + 1)
    np.testing.assert_array_equal(space.read(["a cat"]), expected(["a cat"]))
    np.testing.assert_array_equal(space.read(["new"]), expected(["new"]) + 1)


def test_an_empty_write_is_harmless(space):
    before = shard_files(space)
    space.write([], vectors([]))
    assert shard_files(space) == before


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
def test_nan_and_inf_are_refused_and_nothing_is_stored(space, bad):
    values = vectors(["new", "worse"])
    values[1, 2, 5] = bad
    with pytest.raises(ValueError, match="values must be finite: nan or inf in layer 2 of 'worse'"):
        space.write(["new", "worse"], values)
    assert space.missing(["new", "worse"]) == [0, 1]


def test_wrong_shape_wrong_dtype_and_a_bare_string_are_refused(space):
    with pytest.raises(ValueError, match=r"float32 \(1, 3, 8\) must be float32 \(2, 3, 8\)"):
        space.write(["new", "other"], vectors(["new"]))
    with pytest.raises(ValueError, match=r"values=float64 .* must be float32"):
        space.write(["new"], vectors(["new"]).astype(np.float64))
    with pytest.raises(TypeError, match="sentences='abc' must be a sequence of strings"):
        space.missing("abc")


def test_many_sentences_are_looked_up_in_chunks(store, monkeypatch):
    monkeypatch.setattr(shards, "LOOKUP_CHUNK", 7)
    space = store.space(KEY)
    sentences = [f"sentence {i}" for i in range(50)]
    for start in range(0, 50, 20):
        space.write(sentences[start : start + 20], vectors(sentences[start : start + 20]))
    assert space.missing([*sentences, "new"]) == [50]
    np.testing.assert_array_equal(space.read(sentences[::-1]), expected(sentences[::-1]))


# Keys


CHANGED = {
    "weights": "ab13",
    "config": "ef57",
    "tokenizer": "cd35",
    "pooling": "cls",
    "max_length": 129,
    "dtype": "bfloat16",
    "num_layers": 4,
    "dim": 9,
}


@pytest.mark.parametrize("name", CHANGED)
def test_every_field_of_the_key_separates(store, space, name):
    other = replace(KEY, **{name: CHANGED[name]})
    assert other != KEY
    assert other.folder != KEY.folder
    assert store.space(other).missing(FIRST) == [0, 1, 2, 3, 4]


def test_the_fields_above_are_all_of_them_but_the_model_name(store, space):
    assert {*CHANGED, "model"} == {*asdict(KEY)}
    renamed = replace(KEY, model="a local folder")
    assert renamed == KEY
    assert renamed.folder == KEY.folder
    assert store.space(renamed).missing(FIRST) == []


def test_neighbouring_fields_cannot_run_into_each_other():
    assert replace(KEY, weights="ab1", config="2ef56").folder != KEY.folder


@pytest.mark.parametrize(("name", "value"), [("pooling", "../up"), ("dtype", "int8"), ("dim", 0), ("max_length", -1)])
def test_a_key_that_makes_no_sense_is_refused(name, value):
    with pytest.raises(ValueError, match=f"{name}={value!r} must be"):
        replace(KEY, **{name: value})


def test_a_shard_copied_from_another_key_is_not_believed(store, space):
    other = store.space(replace(KEY, weights="ff"))
    for path in shard_files(space):
        (other.folder / path.name).write_bytes(path.read_bytes())
    (other.folder / "index.sqlite").unlink()
    assert other.missing(FIRST) == [0, 1, 2, 3, 4]


# Damage


def flip_a_byte(path):
    data = bytearray(path.read_bytes())
    data[-3] ^= 1
    path.write_bytes(data)


def truncate(path):
    path.write_bytes(path.read_bytes()[:-10])


DAMAGE = {
    "flip": flip_a_byte,
    "truncate": truncate,
    "empty": lambda p: p.write_bytes(b""),
    "delete": Path.unlink,
}


@pytest.mark.parametrize("asked_first", ["missing", "read"])
@pytest.mark.parametrize("damage", DAMAGE)
def test_a_damaged_shard_is_set_aside_reported_and_its_sentences_are_missing(space, damage, asked_first):
    path = shard_of(space, "a cat")
    DAMAGE[damage](path)
    if path.exists():
        grow_old(path, 10)  # a coarse clock may give the damage the time stamp of the write
    if asked_first == "read":
        with pytest.raises(MissingEmbedding, match="5 of 6 sentences"):
            space.read([*FIRST, "a bird"])
    assert space.missing(FIRST + SECOND) == [0, 1, 2, 3, 4]
    assert space.damaged == [path.name]
    assert path.with_name(f"{path.name}.damaged").exists() == (damage != "delete")

    space.write(FIRST, vectors(FIRST))
    np.testing.assert_array_equal(space.read(FIRST + SECOND), expected(FIRST + SECOND))
    assert space.damaged == [path.name]


def test_damage_that_leaves_no_trace_in_the_file_time_is_noticed_by_the_next_process(store, space, monkeypatch):
    path = shard_of(space, "a cat")
    assert space.missing(FIRST) == []
    before = path.stat()
    flip_a_byte(path)
    os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))
    assert space.missing(FIRST) == []  # the control: within a process each shard is hashed once

    monkeypatch.setattr(shards, "_verified", {})
    assert store.space(KEY).missing(FIRST) == [0, 1, 2, 3, 4]


def overwrite_index(space, change):
    path = space.folder / "index.sqlite"
    data = bytearray(path.read_bytes())
    change(data)
    path.write_bytes(data)


INDEX_DAMAGE = {
    "garbage": lambda data: data.__setitem__(slice(None), b"not a database at all " * 100),
    "header": lambda data: data.__setitem__(slice(0, 16), bytes(16)),
    "middle": lambda data: data.__setitem__(slice(4096, len(data)), b"\xa5" * (len(data) - 4096)),
    "truncated": lambda data: data.__delitem__(slice(5000, None)),
    "empty": bytearray.clear,
}


@pytest.mark.parametrize("reopened", [True, False])
@pytest.mark.parametrize("damage", INDEX_DAMAGE)
def test_a_damaged_index_is_rebuilt_from_the_shards(store, space, damage, reopened):
    overwrite_index(space, INDEX_DAMAGE[damage])
    space = store.space(KEY) if reopened else space
    np.testing.assert_array_equal(space.read(FIRST + SECOND), expected(FIRST + SECOND))
    assert space.damaged == ([] if damage == "empty" else ["index.sqlite"])
    assert space.missing([*FIRST, "new"]) == [5]


@pytest.mark.parametrize("damage", ["flip", "truncate", "empty"])
def test_a_deleted_index_is_rebuilt_from_the_shards_that_are_intact(space, damage):
    broken = shard_of(space, "a tree")
    DAMAGE[damage](broken)
    grow_old(broken, 10)
    (space.folder / "index.sqlite").unlink()
    assert space.missing(FIRST + SECOND) == [5, 6]
    assert space.damaged == [broken.name]
    np.testing.assert_array_equal(space.read(FIRST), expected(FIRST))


def test_an_index_that_points_at_the_wrong_row_is_not_believed(space):
    with closing(sqlite3.connect(space.folder / "index.sqlite")) as index, index:
        index.execute("UPDATE sentences SET row = 4 - row WHERE row IN (0, 1, 3, 4)")
    np.testing.assert_array_equal(space.read(FIRST), expected(FIRST))
    assert space.damaged == ["index.sqlite"]


# Crashes and neighbours

SCRIPT = f"""
import os, sys
sys.path[:0] = [{str(ROOT / "tests" / "helpers")!r}, {str(ROOT)!r}]
from tests.store.test_embedding_store import *
space = Store(sys.argv[1]).space(KEY)
"""


def start(code, root):
    return subprocess.Popen([sys.executable, "-c", SCRIPT + code, str(root)], stderr=subprocess.PIPE, text=True)


CRASH = {
    "while the shard is being written": "os.fsync = lambda fd: (os.ftruncate(fd, 100), os._exit(9))",
    "before the shard is renamed": "os.replace = lambda *_: os._exit(9)",
    "before the shard is registered": "move = os.replace; os.replace = lambda *a: (move(*a), os._exit(9))",
    "inside the registering transaction": (
        "insert = shards.insert; shards.insert = lambda *a: (insert(*a), os._exit(9))"
    ),
}


@pytest.mark.parametrize("stage", CRASH)
def test_a_killed_writer_loses_the_shard_in_flight_and_nothing_else(store, space, stage):
    process = start(f"{CRASH[stage]}\nspace.write(['x', 'y'], vectors(['x', 'y']))", store.root)
    process.communicate(timeout=30)
    assert process.returncode == 9

    again = store.space(KEY)
    assert again.missing([*FIRST, *SECOND, "x", "y"]) == [7, 8]
    np.testing.assert_array_equal(again.read(FIRST + SECOND), expected(FIRST + SECOND))
    again.write(["x", "y"], vectors(["x", "y"]))
    np.testing.assert_array_equal(again.read(["y", *FIRST, "x"]), expected(["y", *FIRST, "x"]))
    assert again.damaged == []


def test_a_writer_that_is_killed_after_its_write_has_lost_nothing(store, space):
    process = start("space.write(['x', 'y'], vectors(['x', 'y'])); os._exit(9)", store.root)
    process.communicate(timeout=30)
    assert process.returncode == 9
    np.testing.assert_array_equal(space.read(["x", "y"]), expected(["x", "y"]))


def test_leftovers_of_crashed_writers_are_swept_once_they_are_old(store, space):
    orphan, temporary = space.folder / f"{'0' * 32}.safetensors", space.folder / f"{'a' * 32}.tmp"
    registered = shard_files(space)
    for path in (orphan, temporary):
        path.write_bytes(b"half")
    store.space(KEY)
    assert orphan.exists()  # perhaps a neighbour is writing them just now
    assert temporary.exists()

    for path in (orphan, temporary, *registered):
        grow_old(path)
    store.space(KEY)
    assert not orphan.exists()
    assert not temporary.exists()
    assert shard_files(space) == registered


def test_processes_that_write_the_same_sentences_at_once_do_no_harm(store):
    code = """
sentences = [f"sentence {i}" for i in range(60)]
for start in range(0, 60, 5):
    part = sentences[start : start + 7]
    space.missing(part)
    space.write(part, vectors(part))
    np.testing.assert_array_equal(space.read(part), expected(part))
assert not space.damaged, space.damaged
"""
    processes = [start(code, store.root) for _ in range(3)]
    for process in processes:
        _, problems = process.communicate(timeout=60)
        assert process.returncode == 0, problems
    sentences = [f"sentence {i}" for i in range(60)]
    np.testing.assert_array_equal(store.space(KEY).read(sentences), expected(sentences))
    assert store.spaces()[0].sentences == 60


def test_what_another_writer_stored_meanwhile_is_kept_and_a_shard_that_adds_nothing_is_not_entered(space, monkeypatch):
    late = Store(space.folder.parent).space(KEY)
    monkeypatch.setattr(late, "missing", lambda sentences: list(range(len(sentences))))  # what it saw earlier
    late.write(SECOND, vectors(SECOND) + 1)
    with closing(sqlite3.connect(space.folder / "index.sqlite")) as index:
        assert index.execute("SELECT COUNT(*) FROM shards").fetchone() == (2,)

    late.write([*SECOND, "new"], vectors([*SECOND, "new"]) + 1)
    np.testing.assert_array_equal(late.read(SECOND), expected(SECOND))
    np.testing.assert_array_equal(late.read(["new"]), expected(["new"]) + 1)


def test_one_space_serves_several_threads(store):
    space = store.space(KEY)
    sentences = [f"sentence {i}" for i in range(80)]

    def work(start):
        part = sentences[start : start + 16]
        space.write(part, vectors(part))
        return np.array_equal(space.read(part), expected(part))

    with ThreadPoolExecutor(4) as pool:
        assert all(pool.map(work, range(0, 72, 8)))
    np.testing.assert_array_equal(space.read(sentences), expected(sentences))


# Listing and eviction


def test_the_listing_names_model_folder_sentences_bytes_and_last_use(store, space):
    grow_old(space.folder / "manifest.json", 1000)
    (info,) = store.spaces()
    assert (info.model, info.folder, info.sentences) == ("some/model", KEY.folder, 7)
    assert info.bytes == sum(p.stat().st_size for p in space.folder.iterdir()) > 7 * 3 * 8 * 4
    assert info.last_used.timestamp() == pytest.approx(time.time() - 1000, abs=5)
    space.read(["a cat"])
    assert store.spaces()[0].last_used.timestamp() == pytest.approx(time.time(), abs=5)


def test_a_damaged_manifest_costs_the_name_only(store, space):
    (space.folder / "manifest.json").write_text("{")
    (info,) = store.spaces()
    assert (info.model, info.sentences) == (KEY.folder, 7)


def three_spaces(root, cap_bytes):
    store = Store(root, cap_bytes)
    spaces = [store.space(replace(KEY, weights=digest)) for digest in ("aa", "bb", "cc")]
    for space in spaces:
        space.write(FIRST, vectors(FIRST))
    for age, space in enumerate(spaces[::-1]):
        grow_old(space.folder / "manifest.json", 100 * (age + 1))  # the first is the oldest
    return store, spaces


def test_eviction_takes_the_least_recently_used_until_the_store_is_under_its_cap(tmp_path):
    store, (a, b, c) = three_spaces(tmp_path, None)
    assert store.evict() == []  # no cap
    sizes = {info.folder: info.bytes for info in store.spaces()}
    a.read(["a cat"])  # now b is the oldest
    store.cap_bytes = sum(sizes.values())
    assert store.evict() == []
    store.cap_bytes = sum(sizes.values()) - 1
    assert store.evict() == [b.folder.name]
    assert [info.folder for info in store.spaces()] == [a.folder.name, c.folder.name]
    assert sorted(p.name for p in tmp_path.iterdir()) == sorted([a.folder.name, c.folder.name])


def test_the_space_in_use_is_never_evicted(tmp_path):
    store, (a, b, c) = three_spaces(tmp_path, 0)
    assert store.evict(keep=(a, c)) == [b.folder.name]
    assert store.evict(keep=a) == [c.folder.name]
    np.testing.assert_array_equal(a.read(FIRST), expected(FIRST))
    assert store.evict() == [a.folder.name]  # the control: it was the keeping that kept it


def test_a_space_evicted_by_another_process_starts_anew(store, space):
    Store(store.root, cap_bytes=0).evict()
    assert space.missing(FIRST) == [0, 1, 2, 3, 4]
    space.write(FIRST, vectors(FIRST))
    np.testing.assert_array_equal(space.read(FIRST), expected(FIRST))
    assert store.spaces()[0].model == "some/model"


def test_shards_that_another_process_evicts_meanwhile_are_not_called_damaged(store, space, monkeypatch):
    locate = shards.locate

    def evicted(index, hashes):
        places = locate(index, hashes)
        Store(store.root, cap_bytes=0).evict()
        return places

    monkeypatch.setattr(shards, "locate", evicted)
    with suppress(StoreError):
        assert space.missing(FIRST) == [0, 1, 2, 3, 4]
    assert space.damaged == []


def test_eviction_removes_the_spaces_of_the_store_and_nothing_else(store, space):
    letter = store.root / "letter.txt"
    letter.write_text("mine")
    folder = store.root / "mean-things"
    folder.mkdir()
    Store(store.root, cap_bytes=0).evict()
    assert store.spaces() == []
    assert sorted(store.root.iterdir()) == sorted([letter, folder])


# Where, how large, and what may go wrong outside


def test_the_root_is_the_environment_variable_or_the_users_cache_folder(tmp_path, monkeypatch):
    monkeypatch.setenv("WHITELAB_CACHE", str(tmp_path / "here"))
    assert Store().root == tmp_path / "here"
    assert not (tmp_path / "here").exists()
    monkeypatch.delenv("WHITELAB_CACHE")
    monkeypatch.setattr(sys, "platform", "linux")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "xdg"))
    monkeypatch.setenv("HOME", str(tmp_path))
    assert Store().root == tmp_path / "xdg" / "whitelab"
    monkeypatch.setenv("XDG_CACHE_HOME", "relative")
    assert Store().root == tmp_path / ".cache" / "whitelab"
    monkeypatch.setattr(sys, "platform", "darwin")
    assert Store().root == tmp_path / "Library" / "Caches" / "whitelab"


def test_a_root_may_begin_with_the_users_home_folder(tmp_path, monkeypatch):
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("USERPROFILE", str(tmp_path))
    assert Store("~/vectors").root == Store(Path("~/vectors")).root == tmp_path / "vectors"


def test_the_cap_is_20_gib_unless_given_or_set_in_the_environment(tmp_path, monkeypatch):
    monkeypatch.delenv("WHITELAB_CACHE_GIB", raising=False)
    assert Store(tmp_path).cap_bytes == 20 * 2**30
    monkeypatch.setenv("WHITELAB_CACHE_GIB", "0.5")
    assert Store(tmp_path).cap_bytes == 2**29
    assert Store(tmp_path, cap_bytes=7).cap_bytes == 7


@pytest.mark.parametrize("value", ["much", "-1", "nan", "inf"])
def test_a_cap_that_is_no_size_is_refused(tmp_path, monkeypatch, value):
    monkeypatch.setenv("WHITELAB_CACHE_GIB", value)
    with pytest.raises(ValueError, match=f"WHITELAB_CACHE_GIB='{value}' must be a number of GiB, 0 or more"):
        Store(tmp_path)


def test_an_unwritable_root_gives_a_store_error(tmp_path):
    (tmp_path / "file").write_text("in the way")
    store = Store(tmp_path / "file" / "cache")
    with pytest.raises(StoreError, match="the embedding store at .* cannot be used: Not a directory"):
        store.space(KEY)


def test_a_full_disk_gives_a_store_error_and_leaves_nothing_half_done(space, monkeypatch):
    def full(_):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    before = sorted(space.folder.iterdir())
    with monkeypatch.context() as patched:
        patched.setattr(os, "fsync", full)
        with pytest.raises(StoreError, match="cannot be used: No space left on device"):
            space.write(["new"], vectors(["new"]))
    assert sorted(space.folder.iterdir()) == before
    assert space.missing(["a cat", "new"]) == [1]


def test_an_index_that_stays_locked_gives_a_store_error_and_is_not_taken_for_broken(space, monkeypatch):
    monkeypatch.setattr(shards, "BUSY_SECONDS", 0.05)
    with closing(sqlite3.connect(space.folder / "index.sqlite", isolation_level=None)) as other:
        other.execute("BEGIN IMMEDIATE")
        assert space.missing(FIRST) == []  # readers do not wait for a writer
        with pytest.raises(StoreError, match="database is locked"):
            space.write(["new"], vectors(["new"]))
    assert space.damaged == []
    space.write(["new"], vectors(["new"]))
    assert space.missing(["new"]) == []
