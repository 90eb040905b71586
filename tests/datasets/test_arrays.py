"""Laws of files of numbers: an upload's arrays are counted together and before they are there; text takes its own size.

Each bound has its control: what just fits is read, and a file of the operator's own has no bound.
"""

import io
import json
import zipfile

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import torch
from safetensors.torch import save

from whitelab.base import upload_limits
from whitelab.datasets import DataError, Upload, arrays, load
from whitelab.datasets.arrays import BYTES, ENDS, read_arrays, text_arrays
from whitelab.encoding.embeddings import LayerEmbeddings
from whitelab.encoding.precomputed import read_vectors, write_npz

MB = 1 << 20


@pytest.fixture(autouse=True)
def small(monkeypatch):
    """4 MB for an upload."""
    monkeypatch.setattr(upload_limits, "NUMBERS", MB)


@pytest.fixture
def here(monkeypatch):
    """Parquet is read in this process, where what it does can be watched."""
    monkeypatch.setattr(arrays.parquet, "lists", arrays.parquet._lists)


def npz(**named) -> bytes:
    out = io.BytesIO()
    np.savez_compressed(out, **named)
    return out.getvalue()


def parquet(**named) -> bytes:
    out = io.BytesIO()
    pq.write_table(pa.table(named), out)
    return out.getvalue()


def safetensors(**named) -> bytes:
    return save({name: torch.from_numpy(values) for name, values in named.items()})


def zeros(megabytes, dtype=np.float32):
    return np.zeros((megabytes * MB // np.dtype(dtype).itemsize // 32, 32), dtype)


def listed(values):
    return pa.FixedSizeListArray.from_arrays(pa.array(values.ravel()), 32)


KINDS = {
    "npz": npz,
    "safetensors": safetensors,
    "parquet": lambda **named: parquet(**{name: listed(values) for name, values in named.items()}),
}


@pytest.mark.parametrize("kind", KINDS)
def test_the_arrays_of_an_upload_share_one_bound(kind, tmp_path):
    few, many = ({f"a{i}": zeros(1) for i in range(n)} for n in (4, 5))
    assert len(read_arrays(Upload(f"own.{kind}", KINDS[kind](**few)))) == 4
    message = r"own\.\w+: a4: \[.+\] takes 1 MB unpacked, 4 MB stand before it, at most 4 MB are read from an upload"
    with pytest.raises(DataError, match=message):
        read_arrays(Upload(f"own.{kind}", KINDS[kind](**many)))
    (tmp_path / f"own.{kind}").write_bytes(KINDS[kind](**many))
    assert len(read_arrays(tmp_path / f"own.{kind}")) == 5


@pytest.mark.parametrize("kind", KINDS)
def test_an_array_counts_as_large_as_it_is_worked_with(kind):
    """Small integers in rows become float32, alone they become int64."""
    assert len(read_arrays(Upload(f"own.{kind}", KINDS[kind](a=zeros(1, np.int8))))) == 1
    with pytest.raises(DataError, match="takes 8 MB unpacked, at most 4 MB"):
        read_arrays(Upload(f"own.{kind}", KINDS[kind](a=zeros(2, np.int8))))
    if kind != "parquet":
        with pytest.raises(DataError, match="takes 8 MB unpacked, at most 4 MB"):
            read_arrays(Upload(f"own.{kind}", KINDS[kind](a=zeros(1, np.int8).ravel())))


def test_nothing_of_an_upload_over_the_bound_is_decoded(monkeypatch, here):
    """safetensors are counted by their header, Parquet by its footer."""
    large = zeros(5)
    data = {kind: pack(a=large) for kind, pack in KINDS.items()}

    def allocated(*args, **kwargs):
        raise AssertionError("read")

    monkeypatch.setattr("safetensors.torch.load", allocated)
    monkeypatch.setattr(pq.ParquetFile, "read", allocated)
    monkeypatch.setattr(arrays, "_whole", lambda stream, size: stream.read(size) if size < 9 else allocated())
    for kind, one in data.items():
        with pytest.raises(DataError, match="takes 5 MB unpacked, at most 4 MB"):
            read_arrays(Upload(f"own.{kind}", one))
        with pytest.raises(AssertionError, match="read"):  # the control
            read_arrays(Upload(f"own.{kind}", KINDS[kind](a=zeros(1))))


def test_a_parquet_column_of_lists_of_text_is_refused_unread(monkeypatch, here):
    monkeypatch.setattr(pq.ParquetFile, "read", lambda *args, **kwargs: pytest.fail("read"))
    with pytest.raises(DataError, match=r"own\.parquet: a: must hold lists of numbers, got list<"):
        read_arrays(Upload("own.parquet", parquet(a=[["long text"]])))


@pytest.mark.parametrize("buffered", [True, False])
def test_lists_come_back_from_their_reader_whether_or_not_python_buffers(buffered, monkeypatch):
    monkeypatch.delenv("PYTHONUNBUFFERED", raising=False) if buffered else monkeypatch.setenv("PYTHONUNBUFFERED", "1")
    (found,) = read_arrays(Upload("own.parquet", parquet(a=[[1.0, 2.0], [3.0, 4.0]])))
    assert found.values.tolist() == [[1, 2], [3, 4]]


def test_a_parquet_that_ends_its_reader_is_refused_and_nothing_else_ends(tmp_path, monkeypatch):
    """A repetition that is none beside a list: Arrow's C++ then throws where nothing catches."""
    sound = parquet(values=pa.FixedSizeListArray.from_arrays(pa.array([1.0, 2.0, 3.0, 4.0]), 2))
    assert read_arrays(Upload("own.parquet", sound))[0].values.tolist() == [[1, 2], [3, 4]]
    place = sound.index(b"values") - 3  # zigzag 2, optional, before the name's type and length
    assert sound[place] == 2
    with pytest.raises(DataError, match=r"own\.parquet: not a readable Parquet file \(its reader ended with SIGABRT\)"):
        read_arrays(Upload("own.parquet", sound[:place] + b"\x09" + sound[place + 1 :]))
    path = tmp_path / "named.parquet"
    path.write_bytes(sound)
    monkeypatch.setattr("whitelab.datasets.parquet.apart", True)  # as in a server: a path can be a visitor's too
    assert read_arrays(path)[0].values.tolist() == [[1, 2], [3, 4]]
    path.write_bytes(sound[:place] + b"\x09" + sound[place + 1 :])
    with pytest.raises(
        DataError, match=r"named\.parquet: not a readable Parquet file \(its reader ended with SIGABRT\)"
    ):
        read_arrays(path)


@pytest.mark.parametrize("kind", ["npy", "npz", "safetensors"])
def test_a_damaged_file_is_read_or_refused_and_ends_in_no_other_error(kind):
    rng = np.random.default_rng(0)
    plain = io.BytesIO()
    np.save(plain, np.arange(6.0).reshape(3, 2))
    sound = plain.getvalue() if kind == "npy" else KINDS[kind](a=np.arange(6.0).reshape(3, 2))
    refused = 0
    for _ in range(2000):
        data = bytearray(sound)
        for place in rng.integers(len(sound) - 30, size=rng.integers(1, 4)):
            match rng.integers(3):
                case 0:
                    data[place] = rng.integers(256)
                case 1:
                    del data[place : place + rng.integers(1, 8)]
                case 2:
                    data[place:place] = bytes(rng.choice(list(b"()[]{}'0123456789-,:<fOu"), rng.integers(1, 9)))
        try:
            read_arrays(Upload(f"own.{kind}", bytes(data)))
        except DataError:
            refused += 1
    assert 200 < refused < 2000


def test_a_header_longer_than_any_is_refused_before_it_is_unpacked():
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as packed:
        magic = np.lib.format.magic(2, 0)
        packed.writestr("values.npy", magic + (50 * MB).to_bytes(4, "little") + b" " * 50 * MB)
    with pytest.raises(DataError, match="values: its header of 52428800 bytes is not read, at most 10000 are"):
        read_arrays(Upload("own.npz", out.getvalue()))
    header = json.dumps({"__metadata__": {"a": "b" * 2 * MB}}).encode()
    data = len(header).to_bytes(8, "little") + header
    with pytest.raises(DataError, match=rf"own\.safetensors: its header of {len(header)} bytes is not read"):
        read_arrays(Upload("own.safetensors", data))


@pytest.mark.parametrize("data", [b"", b"\x05", b"\x02\0\0\0\0\0\0\0{]", b"\x02\0\0\0\0\0\0\0[]"])
def test_a_damaged_header_is_a_damaged_file(data):
    with pytest.raises(DataError, match=r"own\.safetensors: not a readable \.safetensors file"):
        read_arrays(Upload("own.safetensors", data))


# ------------------------------------------------------------------------------------------------------ text


def pairs_with(tmp_path, longest):
    lines = ["sentence1\tsentence2\tscore"]
    lines += [f"one {i}\tzwei, größer {i}\t{i % 6}" for i in range(1000)] + [f"{'long ' * longest}\tend\t3"]
    (tmp_path / "own.tsv").write_text("\n".join(lines) + "\n", "utf-8")
    pairs = load(tmp_path / "own.tsv")
    n = len(pairs.sentences)
    values = torch.arange(n * 2.0).reshape(1, n, 2) + 1
    index = (torch.tensor(one) for one in (pairs.first_index, pairs.second_index, pairs.gold, pairs.subset))
    return pairs, LayerEmbeddings(values, *index, pairs.subset_names)


@pytest.mark.parametrize("longest", [1, 1000])
def test_one_long_sentence_makes_the_file_no_larger_than_its_text(longest, tmp_path, monkeypatch):
    monkeypatch.setattr(arrays, "PADDED_BYTES", 1 * MB)
    pairs, space = pairs_with(tmp_path, longest)
    out = io.BytesIO()
    write_npz(out, pairs, space)
    padded = np.array(pairs.sentences, np.str_).nbytes
    assert (padded > 4 * upload_limits.NUMBERS) == (longest == 1000)
    assert len(out.getvalue()) < 400_000
    found = read_vectors([Upload("own.npz", out.getvalue())])
    assert found.pairs.fingerprint == pairs.fingerprint
    assert torch.equal(found.space.values, space.values)


def test_vectors_with_text_as_numpy_pads_it_are_read_as_ever(tmp_path):
    pairs, space = pairs_with(tmp_path, 1)
    named = {"values": space.values.numpy(), "sentences": np.array(pairs.sentences)}
    named |= {"first": pairs.first_index, "second": pairs.second_index, "gold": pairs.gold}
    assert read_vectors([Upload("own.npz", npz(**named))]).pairs.sentences == pairs.sentences


@pytest.mark.parametrize("texts", [[], [""], ["a", "", "ab\0", "\ud800", "größer"], ["x" * 50] * 9])
@pytest.mark.parametrize("most", [0, MB])
def test_text_comes_back_as_it_was(texts, most, monkeypatch):
    monkeypatch.setattr(arrays, "PADDED_BYTES", most)
    packed = text_arrays("said", texts)
    assert (f"said{BYTES}" in packed) == (most == 0 and any(texts))
    texts = texts if f"said{BYTES}" in packed else [text.rstrip("\0") for text in texts]  # NumPy's own padding
    if texts:
        (found,) = read_arrays(Upload("own.npz", npz(**packed)))
        assert (found.name, found.is_text, found.values.tolist()) == ("said", True, texts)


@pytest.mark.parametrize(
    ("data", "ends", "message"),
    [
        (b"abc", [1, 2], "must rise to the 3 bytes"),
        (b"abc", [2, 1, 3], "must rise to the 3 bytes"),
        (b"abc", [-1, 3], "must rise to the 3 bytes"),
        (b"abc", [9, 3], "must rise to the 3 bytes"),
        (b"abc", [], "must rise to the 3 bytes"),
        (b"\xff\xff", [2], "must hold UTF-8"),
        (b"abc", [[3]], "must be text as uint8"),
        (b"abc", [3.0], "must be text as uint8"),
    ],
)
def test_text_that_was_tampered_with_is_refused(data, ends, message):
    ends = np.array(ends) if ends else np.array([], np.int64)
    packed = npz(**{f"said{BYTES}": np.frombuffer(data, np.uint8), f"said{ENDS}": ends})
    with pytest.raises(DataError, match=rf"own\.npz: said: .*{message}"):
        read_arrays(Upload("own.npz", packed))


def test_many_short_texts_count_as_large_as_they_become():
    data, ends = np.zeros(80_000, np.uint8), np.arange(1, 80_001)
    with pytest.raises(DataError, match=r"said: \[80000\] takes 4 MB unpacked"):
        read_arrays(Upload("own.npz", npz(**{f"said{BYTES}": data, f"said{ENDS}": ends})))
    (found,) = read_arrays(Upload("own.npz", npz(**{f"said{BYTES}": data[:10], f"said{ENDS}": ends[:10]})))
    assert found.values.shape == (10,)
