"""Laws of vectors made elsewhere: however they are given the score is the same, and what does not fit is named."""

import io
import json
import pickle
import zipfile
from dataclasses import replace
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import torch
from safetensors.torch import save

from tests.conftest import make_space
from whitelab.base import upload_limits
from whitelab.datasets import DataError, SentencePairs, Upload
from whitelab.datasets.arrays import read_arrays
from whitelab.encoding.embeddings import Origin, with_pairs
from whitelab.encoding.precomputed import Vectors, npz_bytes, read_either, read_vectors
from whitelab.scoring.fit_scopes import fit_scope, folds
from whitelab.scoring.score import score
from whitelab.scoring.setting import Protocol, Setting

P, N, D, L = 30, 24, 6, 3


@pytest.fixture(scope="module")
def task():
    """Pairs with repeated sentences, their vectors in three layers, two subsets."""
    made = make_space(n=N, d=D, layers=L, sizes=(20, 10))
    texts = [f"sentence number {i}" for i in range(N)]
    group, turn = np.arange(P) % (N // 3), np.arange(P) // (N // 3)  # of three sentences each, so that halves exist
    pairs = SentencePairs(
        "own",
        tuple(texts[3 * g + t % 3] for g, t in zip(group, turn, strict=True)),
        tuple(texts[3 * g + (t + 1) % 3] for g, t in zip(group, turn, strict=True)),
        made.gold.numpy(),
        made.subset.numpy(),
        ("x", "y"),
    )
    order = [texts.index(text) for text in pairs.sentences]
    return pairs, with_pairs(made.values[:, order], pairs)


def parts(task, layers=True) -> dict[str, np.ndarray]:
    """The task as two sides, in every layer or the last."""
    pairs, space = task
    values = space.values.numpy() if layers else space.values.numpy()[-1]
    return {
        "first": values[..., pairs.first_index, :],
        "second": values[..., pairs.second_index, :],
        "gold": pairs.gold,
    }


def indexed(task, layers=True) -> dict[str, np.ndarray]:
    """The task as unique vectors with each pair's row numbers."""
    pairs, space = task
    values = space.values.numpy() if layers else space.values.numpy()[-1]
    return {"values": values, "first": pairs.first_index, "second": pairs.second_index, "gold": pairs.gold}


def npz(arrays: dict, name="own.npz") -> Upload:
    out = io.BytesIO()
    np.savez(out, **arrays)
    return Upload(name, out.getvalue())


def npy(array, name: str) -> Upload:
    out = io.BytesIO()
    np.save(out, array)
    return Upload(name, out.getvalue())


def tensors(arrays: dict) -> Upload:
    return Upload("own.safetensors", save({k: torch.from_numpy(np.array(v, order="C")) for k, v in arrays.items()}))


def parquet(columns: dict, name="own.parquet") -> Upload:
    out = io.BytesIO()
    listed = {k: list(v) if getattr(v, "ndim", 1) == 2 else v for k, v in columns.items()}
    pq.write_table(pa.table(listed), out)
    return Upload(name, out.getvalue())


def scores(space, fit="task", **changes) -> list:
    """What the laws compare: raw and whitened, every layer and the average of two."""
    found = []
    for layers in (*[(i,) for i in range(space.n_layers)], tuple(range(space.n_layers))):
        for spec, k in (("none", None), ("pca", None), ("pca", 3), ("zca", None)):
            setting = Setting(layers, spec, k, space.origin.pooling, fit, **changes)
            found.append(score(space, setting).spearman)
    return found


# However they are given


@pytest.mark.parametrize("pack", [npz, tensors])
@pytest.mark.parametrize("form", [parts, indexed])
def test_every_form_and_format_scores_as_the_space_itself(task, form, pack):
    found = read_vectors([pack(form(task))])
    assert found.n_layers == L
    assert scores(found.space) == pytest.approx(scores(task[1]), abs=1e-9)
    assert scores(found.space, fit="cross") == pytest.approx(scores(task[1], fit="cross"), abs=1e-9)
    assert found.space.counts.sum() == 2 * found.pairs.n_pairs
    assert found.has_text is False


def test_arrays_whose_names_say_nothing_are_named_where_they_are_left_out(task):
    own = parts(task)
    more = {"emb3": own["first"], "number": own["gold"]}
    notes = read_vectors([npz(own | more)]).pairs.notes
    assert f"arrays whose names are not known are left out: emb3 [{L}, {P}, {D}] float32" in notes
    assert not any("not known" in note for note in read_vectors([npz(own)]).pairs.notes)
    with pytest.raises(DataError, match=r"second is missing; found .*own\.npz: emb3 \[3, 30, 6\] float32"):
        read_vectors([npz({name: one for name, one in (own | more).items() if name != "second"})])


def test_one_file_is_a_list_of_one(task, tmp_path):
    own = npz(parts(task))
    path = tmp_path / own.name
    path.write_bytes(own.data)
    wanted = read_vectors([own])
    for file in (own, path, str(path)):
        found = read_vectors(file)
        assert (found.name, found.fingerprint) == (wanted.name, wanted.fingerprint)


def test_sides_that_repeat_a_vector_are_one_sentence_so_that_halves_share_none(task):
    found = read_vectors([npz(parts(task))])
    assert found.space.n_sentences == task[1].n_sentences
    assert found.pairs.notes[0] == f"{2 * P - N} of {2 * P} vectors repeat another and are one sentence with it"
    seen = [
        set(torch.cat([found.space.first[f.pairs], found.space.second[f.pairs]]).tolist())
        for f in folds(found.space, "cross")
    ]
    assert seen[0].isdisjoint(seen[1])
    one, two = (parts(task)[side].astype("f4") for side in ("first", "second"))
    mixed = read_vectors([npz(parts(task) | {"first": one, "second": two.astype("f8")})])
    assert mixed.space.n_sentences == N


@pytest.mark.parametrize("form", [parts, indexed])
def test_pairs_that_are_there_again_are_told(task, form):
    arrays = form(task, layers=False)
    once = {name: one if name == "values" else one[:N] for name, one in arrays.items()}
    one, two = arrays["first"], arrays["second"]
    turned = {"first": np.concatenate([one[:N], two[N:]]), "second": np.concatenate([two[:N], one[N:]])}
    for given, told in ((arrays, True), (arrays | turned, True), (once, False)):
        notes = read_vectors([npz(given)]).pairs.notes
        assert any(f"{P - N} of {P} pairs repeat another" in note for note in notes) is told


def test_subsets_named_by_numbers_keep_every_digit_and_no_two_have_one_name(task):
    numbers = np.repeat([20120101, 20120102, 0.5], [10, 15, 5])
    found = read_vectors([npz(parts(task) | {"subset": numbers})])
    assert found.pairs.subset_names == ("20120101", "20120102", "0.5")
    assert np.bincount(found.pairs.subset).tolist() == [10, 15, 5]
    twice = {"subset": np.arange(P) % 2, "subset_names": np.array(["x", "x"])}
    with pytest.raises(DataError, match="must name every subset differently, 'x' stands twice"):
        read_vectors([npz(parts(task) | twice)])


def test_parquet_columns_of_lists_are_a_layer_with_text_and_subsets(task):
    pairs, space = task
    one = parts(task, layers=False)
    columns = {
        "sentence1": list(pairs.first),
        "sentence2": list(pairs.second),
        "embedding_1": one["first"],
        "embedding_2": one["second"],
        "score": pairs.gold,
        "genre": [pairs.subset_names[i] for i in pairs.subset],
    }
    found = read_vectors([parquet(columns)])
    assert found.has_text
    assert found.pairs.first == pairs.first
    assert found.pairs.sentences == pairs.sentences
    assert found.pairs.subset_names == pairs.subset_names
    assert torch.equal(found.space.values[0], space.values[-1])
    assert found.pairs.fingerprint == pairs.fingerprint


def test_files_beside_each_other_are_one_task(task):
    one = parts(task, layers=False)
    wanted = scores(read_vectors([npz(one)]).space)
    files = [npy(one["first"], "first.npy"), npy(one["second"], "second.npy"), npy(one["gold"], "gold.npy")]
    assert scores(read_vectors(files).space) == wanted
    assert scores(read_vectors(files[:2], gold=npy(one["gold"], "any name.npy")).space) == wanted
    table = Upload("gold.csv", ("score\n" + "".join(f"{value}\n" for value in one["gold"])).encode())
    assert scores(read_vectors(files[:2], gold=table).space) == wanted


def test_a_lone_array_of_vectors_takes_row_numbers_from_a_table(task):
    one = indexed(task)
    lines = [f"{a},{b},{g}" for a, b, g in zip(one["first"], one["second"], one["gold"], strict=True)]
    table = Upload("gold.csv", "\n".join(["first,second,score", *lines]).encode())
    found = read_vectors([npy(one["values"], "embeddings-of-mine.npy")], gold=table)
    assert scores(found.space) == scores(task[1])


def test_pairs_may_name_their_vectors_by_sentence(task):
    pairs, space = task
    shuffled = np.random.default_rng(0).permutation(N)
    arrays = {"values": space.values.numpy()[:, shuffled], "sentences": np.array(pairs.sentences)[shuffled]}
    rows = [
        json.dumps({"sentence1": a, "sentence2": b, "score": g})
        for a, b, g in zip(pairs.first, pairs.second, pairs.gold, strict=True)
    ]
    found = read_vectors([npz(arrays)], gold=Upload("own.jsonl", "\n".join(rows).encode()))
    assert found.pairs.sentences == pairs.sentences
    assert torch.equal(found.space.values, space.values)


def test_what_is_written_is_read_back_unchanged(task, tmp_path):
    pairs, space = task
    data = npz_bytes(pairs, space)
    (tmp_path / "own.npz").write_bytes(data)
    for file in (Upload("own.npz", data), str(tmp_path / "own.npz")):
        found = read_vectors([file])
        assert torch.equal(found.space.values, space.values)
        assert found.pairs.fingerprint == pairs.fingerprint
        assert (found.has_text, found.pairs.task, found.name) == (True, "own", "vectors of own.npz")


def test_what_is_written_says_what_made_it_and_the_reader_says_it_on(task):
    pairs, space = task
    made = Origin("org/encoder", "own data", "sts13", "test", "cls", "bfloat16", 64, encoder="a digest")
    data = npz_bytes(pairs, replace(space, origin=made))
    with np.load(io.BytesIO(data)) as file:
        assert Origin(**json.loads(str(file["origin"]))) == made
    found = read_vectors([Upload("own.npz", data)])
    assert found.name == found.space.origin.model == "vectors of own.npz: org/encoder, cls pooling, bfloat16"
    again = read_vectors([Upload("again.npz", npz_bytes(found.pairs, found.space))]).name
    assert again == f"vectors of again.npz: {found.name}"  # of vectors of which no pooling is known


@pytest.mark.parametrize("origin", ["no JSON", "[1]", "7", "{}", '{"model": "a"}', np.zeros((P, D)), ["a", "b"]])
def test_another_array_of_the_name_of_the_origin_says_nothing(task, origin):
    assert read_vectors([npz(parts(task) | {"origin": np.asarray(origin)})]).name == "vectors of own.npz"


def test_names_are_read_with_any_spelling(task):
    one = parts(task, layers=False)
    for a, b, g in (
        ("A", "B", "label"),
        ("Sentence1_Embeddings", "sentence2-embeddings", "Gold Score"),
        ("vectors1", "vectors2", "score"),
    ):
        assert read_vectors([npz({a: one["first"], b: one["second"], g: one["gold"]})]).pairs.n_pairs == P


@pytest.mark.parametrize("dtype", ["float16", "float32", "float64", "int8", ">f4", ">f8"])
def test_every_type_of_number_keeps_its_values(task, dtype):
    one = parts(task, layers=False)
    given = {name: (8 * one[name]).astype(dtype) for name in ("first", "second")} | {"gold": one["gold"]}
    found = read_vectors([npz(given)])
    assert found.dtype == ("float64" if dtype in ("float64", ">f8") else "float32")
    row = found.space.values[0][found.space.first].double().numpy()
    np.testing.assert_array_equal(row, given["first"].astype(np.float64))


def test_bfloat16_is_read_from_safetensors(task):
    one = {name: torch.from_numpy(np.array(value)) for name, value in parts(task, layers=False).items()}
    given = {"first": one["first"].bfloat16(), "second": one["second"].bfloat16(), "gold": one["gold"]}
    found = read_vectors([Upload("own.safetensors", save(given))])
    assert torch.equal(found.space.values[0][found.space.first], given["first"].float())


def test_arrays_in_fortran_order_are_read_as_they_are_meant(task):
    one = {name: np.asfortranarray(value) for name, value in indexed(task).items()}
    assert torch.equal(read_vectors([npz(one)]).space.values, task[1].values)


def test_rows_in_no_pair_are_not_scored_and_told_and_maps_can_be_fitted_on_them(task):
    one = indexed(task)
    rest = np.random.default_rng(5).standard_normal((L, 5, D)).astype(np.float32)
    more = np.concatenate([one["values"], rest], axis=1)
    found, without = (read_vectors([npz(one | {"values": values})]) for values in (more, one["values"]))
    assert found.space.n_sentences == N
    assert f"5 of {N + 5} vectors are in no pair and are not scored: fit=vectors fits maps on all" in found.pairs.notes
    assert scores(found.space) == scores(task[1])
    assert found.fingerprint != without.fingerprint
    every = more[1].astype(np.float64)
    scope = fit_scope(found.space, Setting((1,), "zca", pooling="given", fit="vectors"))
    z = scope.whiteners[0](torch.from_numpy(every)).numpy()
    assert (scope.count, scope.folds[0].rows.n_sentences) == (N + 5, N + 5)
    np.testing.assert_allclose(z.mean(0), 0, atol=1e-12)
    np.testing.assert_allclose(np.cov(z.T), np.eye(D), atol=1e-8)


def test_vectors_alone_are_a_space_that_fits_maps_and_scores_nothing(task):
    values = indexed(task)["values"]
    space, notes = read_either([npz({"values": values, "emb3": values})])
    assert "arrays whose names are not known are left out: emb3" in notes[0]
    assert (space.n_pairs, space.n_sentences, space.origin.pooling) == (0, N, "given")
    assert torch.equal(space.texts["vectors"].values, torch.from_numpy(values))
    assert isinstance(read_either([npz(indexed(task))]), Vectors)
    with pytest.raises(DataError, match="of vectors alone `.* whiten --vectors own.npz .*` makes a map"):
        read_vectors([npz({"values": values})])


def test_equal_vectors_alone_are_one_that_counts_as_often(task):
    values = indexed(task)["values"]
    often = read_either([npz({"values": np.concatenate([values, values[:, :5], values[:, :5]], axis=1)})]).space
    once = read_either([npz({"values": values})]).space
    rows = often.texts["vectors"]
    assert torch.equal(rows.values, once.texts["vectors"].values)
    assert rows.counts.tolist() == [3.0] * 5 + [1.0] * (N - 5)
    assert often.n_sentences == N + 10
    torch.testing.assert_close(rows.moments((1,)).scatter, often.moments((1,)).scatter)


def test_one_sentence_with_two_vectors_stays_two_and_is_told(task):
    one = parts(task, layers=False)
    texts = {"sentence1": np.array(["same"] * P), "sentence2": np.array([f"other {i}" for i in range(P)])}
    found = read_vectors([npz(one | texts)])
    assert any(
        note.endswith("differ from another one of the same sentence and stay apart") for note in found.pairs.notes
    )
    assert {"same", "same (2)"} <= set(found.pairs.sentences)
    assert scores(found.space) == pytest.approx(scores(read_vectors([npz(one)]).space), abs=1e-9)


def test_a_zero_vector_is_told(task):
    one = indexed(task)
    one["values"] = one["values"].copy()
    one["values"][1, 3] = 0
    assert any(note.startswith("1 vector is zero in some layer") for note in read_vectors([npz(one)]).pairs.notes)


def test_the_protocol_of_given_vectors_claims_no_pooling_and_no_tokens(task):
    found = read_vectors([npz(parts(task))])
    protocol = Protocol(Setting((0,), pooling="given"), found.space.origin)
    assert protocol.line() == ("vectors of own.npz · layer 0 · as given · own.npz · none · aggregate all · float32")
    record = protocol.as_dict()
    assert (record["pooling"], record["max_length"], record["text"]) == ("given", None, "given")


# What does not fit


WRONG = {
    "gold missing": (
        lambda a: {k: v for k, v in a.items() if k != "gold"},
        r"gold is missing; found own\.npz: first \[30, 6\] float32",
    ),
    "second missing": (
        lambda a: {k: v for k, v in a.items() if k != "second"},
        r"second is missing; found own\.npz: first",
    ),
    "gold short": (
        lambda a: a | {"gold": a["gold"][:-1]},
        r"own\.npz: first: must have one row for each of the 29 gold scores, got \[30, 6\]",
    ),
    "layers last": (
        lambda a: a | {side: np.stack([a[side]] * 3, axis=1) for side in ("first", "second")},
        r"own\.npz: first: must have one row for .*, got \[30, 3, 6\]; layers come first, \[l, p, d\]",
    ),
    "gold nan": (
        lambda a: a | {"gold": np.where(np.arange(P) == 7, np.nan, a["gold"])},
        r"own\.npz: gold: must hold finite numbers, pair 8 of 30 has nan",
    ),
    "gold column": (
        lambda a: a | {"gold": a["gold"][:, None]},
        r"own\.npz: gold: must have the shape \[p\], got \[30, 1\]",
    ),
    "gold text": (
        lambda a: a | {"gold": np.array(["4", "high"] * 15)},
        r"own\.npz: gold: must hold numbers, row 2 has 'high'",
    ),
    "flat": (
        lambda a: a | {"first": a["first"][None, None]},
        r"own\.npz: first: must have the shape \[p, d\] or \[l, p, d\], got \[1, 1, 30, 6\]",
    ),
    "other d": (
        lambda a: a | {"second": a["second"][:, :5]},
        r"own\.npz: second: must have the shape of own\.npz: first, \[30, 6\], got \[30, 5\]",
    ),
    "infinite": (
        lambda a: a | {"second": np.where(np.eye(P, D), np.inf, a["second"])},
        r"own\.npz: second: must hold finite numbers, row 0 \(counted from 0\) has NaN or infinity, as have 5 more$",
    ),
    "empty": (lambda a: a | {"first": a["first"][:, :0]}, r"own\.npz: first: must have the shape"),
    "too large": (
        lambda a: a | {"second": a["second"].astype(float) * 1e100},
        r"own\.npz: second: must hold numbers between 1e-70 and 1e\+70 in size, .* of layer 0 is \d.*e\+100",
    ),
    "too small": (lambda a: a | {"first": a["first"].astype(float) * 1e-200}, r"own\.npz: first: .* is \d.*e-200"),
    "complex": (
        lambda a: a | {"first": a["first"].astype(complex)},
        r"own\.npz: first: must hold real numbers or text, got complex128",
    ),
    "flags": (lambda a: a | {"first": a["first"] > 0}, r"own\.npz: first: must hold real numbers or text, got bool"),
    "subset short": (
        lambda a: a | {"subset": np.zeros(3)},
        r"own\.npz: subset: must have the shape of gold, \[30\], got \[3\]",
    ),
    "nothing known": (
        lambda a: {f"arr_{i}": v for i, v in enumerate(a.values())},
        r"own\.npz: found arr_0 \[30, 6\] float32; arr_1 .*; needed: arrays first and second",
    ),
}


@pytest.mark.parametrize("change", WRONG)
def test_two_sides_that_do_not_fit_are_named_with_what_was_expected_and_found(task, change):
    edit, message = WRONG[change]
    with pytest.raises(DataError, match=message) as caught:
        read_vectors([npz(edit(parts(task, layers=False)))])
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"first": np.full(P, N)}, rf"first: must hold row numbers from 0 to {N - 1}, pair 1 has {N}"),
        (
            {"first": np.full(P, N - 1), "values": np.ones((N, 3, D))},
            rf"first: must hold row numbers from 0 to 2, pair 1 has {N - 1}; layers come first, \[l, n, d\]",
        ),
        ({"second": np.full(P, -1)}, rf"second: must hold row numbers from 0 to {N - 1}, pair 1 has -1"),
        ({"first": np.full(P, 0.5)}, r"first: must hold row numbers, which are whole, got 0.5"),
        ({"first": np.full(P, np.inf)}, r"first: must hold row numbers, which are whole, got inf"),
        ({"first": np.zeros(3)}, rf"first: must have the shape of gold, \[{P}\], got \[3\]"),
        (
            {"sentences": np.array(["a", "b"])},
            rf"sentences: must have one sentence for each of the {N} rows of own\.npz: values",
        ),
        ({"values": np.zeros(5)}, r"values: must have the shape \[n, d\] or \[l, n, d\], got \[5\]"),
    ],
)
def test_unique_vectors_that_do_not_fit_are_named(task, changes, message):
    with pytest.raises(DataError, match=message):
        read_vectors([npz(indexed(task) | changes)])


def test_a_sentence_without_a_vector_is_named(task):
    pairs, space = task
    arrays = {"values": space.values.numpy(), "sentences": np.array(pairs.sentences), "gold": pairs.gold}
    sides = {"sentence1": np.array(pairs.first), "sentence2": np.array([*pairs.second[:-1], "unheard of"])}
    with pytest.raises(DataError, match=rf"sentence2: pair {P} has 'unheard of', which is not among the sentences"):
        read_vectors([npz(arrays | sides)])


def test_a_part_that_is_given_twice_is_refused(task):
    one = parts(task, layers=False)
    with pytest.raises(DataError, match=r"gold is given twice: own\.npz: gold and more\.npy"):
        read_vectors([npz(one)], gold=npy(one["gold"], "more.npy"))
    with pytest.raises(DataError, match=r"first, as vectors is given twice: own\.npz: first and own\.npz: a"):
        read_vectors([npz(one | {"a": one["first"]})])


def test_a_gold_table_with_a_bad_row_is_refused_because_rows_belong_to_vectors(task):
    one = parts(task, layers=False)
    files = [npy(one["first"], "first.npy"), npy(one["second"], "second.npy")]
    with pytest.raises(DataError, match=r"gold\.csv: score: must hold numbers, row 2 has 'x'"):
        read_vectors(files, gold=Upload("gold.csv", b"score\n1\nx\n"))
    with pytest.raises(DataError, match=r"gold\.csv:3: 1 column.* where 2 are expected; rows belong to vectors"):
        read_vectors(files, gold=Upload("gold.csv", b"score,genre\n1,a\n2\n"))


# Files that are not read


class Harm:
    def __reduce__(self):
        return Path.touch, (Path("whitelab-was-harmed"),)


@pytest.mark.parametrize("name", ["own.npy", "own.npz"])
def test_python_objects_are_refused_unread(name, tmp_path, monkeypatch):
    loaded = []
    monkeypatch.setattr(pickle, "loads", lambda *a, **k: loaded.append(a))
    monkeypatch.setattr(pickle, "load", lambda *a, **k: loaded.append(a))
    made = np.array([Harm(), 1], object)
    out = io.BytesIO()
    np.save(out, made) if name.endswith("npy") else np.savez(out, first=made)
    with pytest.raises(DataError, match="holds Python objects, which only pickle could read, and pickle can run code"):
        read_arrays(Upload(name, out.getvalue()))
    assert loaded == []


@pytest.mark.parametrize("suffix", [".npy", ".npz", ".safetensors", ".parquet"])
@pytest.mark.parametrize("data", [b"", b"no", b"\x93NUMPY\x01\x00", b"PK\x03\x04", b"\xff" * 64], ids=range(5))
def test_a_damaged_file_is_refused_in_one_line(suffix, data):
    with pytest.raises(DataError, match=rf"^own\{suffix}: ") as caught:
        read_arrays(Upload(f"own{suffix}", data))
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("pack", [npz, tensors, parquet])
@pytest.mark.parametrize("part", [0.3, 0.6, 0.99])
def test_a_file_that_is_cut_short_is_refused(task, pack, part):
    whole = pack(parts(task, layers=False))
    with pytest.raises(DataError, match=rf"^{whole.name}"):
        read_vectors([Upload(whole.name, whole.data[: int(part * len(whole.data))])])


def header(shape, dtype="<f4") -> bytes:
    out = io.BytesIO()
    np.lib.format.write_array_header_1_0(out, {"shape": shape, "fortran_order": False, "descr": dtype})
    return out.getvalue()


def test_a_header_that_promises_more_than_the_file_holds_allocates_nothing():
    with pytest.raises(DataError, match=r"own\.npy: \[100, 10\] float32 takes 4000 bytes, 8 follow"):
        read_arrays(Upload("own.npy", header((100, 10)) + b"\0" * 8))
    with pytest.raises(DataError, match=r"\[1000000, 1000000\] takes 3814697 MB unpacked, at most"):
        read_arrays(Upload("own.npy", header((10**6, 10**6)) + b"\0" * 8))


def test_a_small_archive_cannot_unpack_to_any_size(monkeypatch):
    out = io.BytesIO()
    np.savez_compressed(out, values=np.zeros((1000, 1000), np.float32))
    assert len(out.getvalue()) < 10_000
    monkeypatch.setattr(upload_limits, "NUMBERS", 900_000)
    with pytest.raises(DataError, match=r"own\.npz: values: \[1000, 1000\] takes 3 MB unpacked, at most 3 MB are read"):
        read_arrays(Upload("own.npz", out.getvalue()))


def test_an_archive_that_lies_about_its_sizes_is_refused():
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w") as packed:
        packed.writestr("values.npy", header((4, 2)) + b"\0" * 400)
    with pytest.raises(DataError, match=r"\[4, 2\] float32 takes 32 bytes, 400 follow"):
        read_arrays(Upload("own.npz", out.getvalue()))


@pytest.mark.parametrize(
    ("limit", "most", "message"),
    [
        ("ROWS", P - 1, rf"{P} pairs, at most {P - 1} are read from an upload"),
        ("LAYERS", L - 1, rf"{L} layers, at most {L - 1}"),
        ("DIM", D - 1, rf"{D} dimensions, at most {D - 1}"),
        ("NUMBERS", L * P * D - 1, r"first: \[3, 30, 6\] takes 0 MB unpacked, at most 0 MB"),
    ],
)
def test_an_upload_over_a_limit_is_refused_and_a_file_of_ones_own_is_not(
    task, limit, most, message, monkeypatch, tmp_path
):
    given = npz(parts(task))
    monkeypatch.setattr(upload_limits, limit, most)
    with pytest.raises(DataError, match=message):
        read_vectors([given])
    (tmp_path / "own.npz").write_bytes(given.data)
    assert read_vectors([tmp_path / "own.npz"]).pairs.n_pairs == P


def test_parquet_over_the_row_limit_is_refused_before_it_is_read(task, monkeypatch):
    monkeypatch.setattr(upload_limits, "ROWS", P - 1)
    with pytest.raises(DataError, match=rf"own\.parquet: {P} rows, at most {P - 1}"):
        read_vectors([parquet(parts(task, layers=False))])


@pytest.mark.parametrize(
    ("column", "message"),
    [
        ([[1.0, 2.0], [1.0]], "every row must be as long as the first, 2 numbers, row 2 has 1"),
        ([[1.0, 2.0], None], "row 2 is missing"),
        ([[1.0, None], [1.0, 2.0]], "a number is missing in one of its lists"),
        ([["a"], ["b"]], "must hold lists of numbers, got list"),
    ],
)
def test_lists_that_are_no_vectors_are_refused(column, message):
    with pytest.raises(DataError, match=rf"own\.parquet: first: {message}"):
        read_arrays(parquet({"first": column}))


def test_other_files_and_no_file_are_refused(tmp_path):
    with pytest.raises(DataError, match=r"own\.pkl: files of this kind are not read; use \.npy, \.npz"):
        read_vectors([Upload("own.pkl", b"")])
    with pytest.raises(DataError, match="no such file"):
        read_vectors([tmp_path / "none.npy"])
    with pytest.raises(DataError, match="not a file"):
        read_vectors([tmp_path])
    with pytest.raises(DataError, match="no file was given"):
        read_vectors([])
