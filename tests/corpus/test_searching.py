"""Applied vectors are the map's, in any code; shards give the exact neighbours, an index what it promises."""

import json
import shutil

import numpy as np
import pyarrow.parquet as pq
import pytest
import torch
from corpora import embed, vectors
from safetensors.torch import load_file
from tiny import SENTENCES, build_model

from whitelab.corpus.applying import apply_map, decoded, read_applied
from whitelab.corpus.chunks import vectors_in
from whitelab.corpus.fitting import fit_corpus
from whitelab.corpus.indexing import build_index
from whitelab.corpus.searching import merged, nearest, search_corpus
from whitelab.datasets.pairs import DataError
from whitelab.encoding.checkpoints import PickledWeights

TOP = 5


@pytest.fixture(scope="module")
def corpus(model, tmp_path_factory):
    """All sentences, some twice so that cosines tie, in chunks of 50."""
    folder = tmp_path_factory.mktemp("corpus")
    (folder / "text.txt").write_text("\n".join([*SENTENCES, *SENTENCES[:20]]))
    made = embed(folder / "text.txt", folder / "out", model, layers=(1, -1), chunk_texts=50)
    return folder / "out", made


def stored(folder):
    manifest = read_applied(folder)
    parts = [vectors_in(pq.read_table(folder / f"{name}.parquet")["vector"]) for name in manifest["chunks"]]
    return manifest, np.concatenate([decoded(part, manifest) for part in parts])


def plain(corpus, fitted):
    folder, made = corpus
    z = fitted(torch.tensor(vectors(folder, made), dtype=torch.float64))
    return (z / z.norm(dim=1, keepdim=True)).numpy()


@pytest.mark.parametrize("spec", ["pca", "zca"])  # of k columns, and of d
@pytest.mark.parametrize(("code", "near"), [("float32", 1e-6), ("float16", 1e-3), ("int8", 1e-2)])
def test_applied_vectors_are_the_maps_with_length_one(code, near, spec, corpus, tmp_path):
    fitted, record = fit_corpus(corpus[0], spec, 6)
    made = apply_map(corpus[0], tmp_path, fitted, record, code)
    assert made["written"] == len(corpus[1].chunks)
    x = stored(tmp_path)[1]
    np.testing.assert_allclose(x, z := plain(corpus, fitted), rtol=0, atol=near)
    np.testing.assert_allclose(np.linalg.norm(x, axis=1), 1, rtol=0, atol=1e-6)
    assert made["dim"] == z.shape[1]
    assert apply_map(corpus[0], tmp_path, fitted, record, code)["written"] == 0
    other, record = fit_corpus(corpus[0], "pca", 5)
    assert apply_map(corpus[0], tmp_path, other, record, code)["written"] == made["written"]


@pytest.mark.parametrize("spec", ["pca", "zca"])
def test_bits_are_the_signs_and_read_as_faiss_and_numpy_pack_them(spec, corpus, tmp_path):
    fitted, record = fit_corpus(corpus[0], spec, 6)
    apply_map(corpus[0], tmp_path, fitted, record, "bits")
    z = plain(corpus, fitted)
    sure = np.abs(z) > 1e-6
    assert ((stored(tmp_path)[1] > 0) == (z > 0))[sure].all()


@pytest.mark.parametrize("code", ["float32", "bits"])
def test_shards_give_the_neighbours_of_all_rows_at_once_ties_by_row(code, corpus, tmp_path):
    fitted, record = fit_corpus(corpus[0], "pca", 6)
    apply_map(corpus[0], tmp_path, fitted, record, code)
    manifest, x = stored(tmp_path)
    asked = x[::7]
    scores, rows = nearest(tmp_path, manifest, asked, TOP, workers=2)
    table = (asked @ x.T).astype(np.float32)
    expected = [np.lexsort((np.arange(len(x)), -line))[:TOP] for line in table]
    # Products of one shard and of all rows may differ in the last bit.
    np.testing.assert_allclose(scores, np.take_along_axis(table, np.array(expected), 1), atol=1e-6)
    assert (np.diff(rows, axis=1)[np.diff(scores.round(6), axis=1) == 0] > 0).all()


def test_until_another_map_has_been_applied_to_all_of_it_a_corpus_is_found_as_before(corpus, tmp_path):
    def found():
        return [[hit[:3] for hit in line] for line in search_corpus(tmp_path, [SENTENCES[30], "water"], TOP)]

    def stopped(done, total):
        if done == 1:
            raise KeyboardInterrupt

    maps = [fit_corpus(corpus[0], "pca", 5), fit_corpus(corpus[0], "center")]
    apply_map(corpus[0], tmp_path, *maps[0], "float32")
    before = found()
    with pytest.raises(KeyboardInterrupt):
        apply_map(corpus[0], tmp_path, *maps[1], "float32", stopped)
    assert found() == before
    apply_map(corpus[0], tmp_path, *maps[1], "float32")
    assert found() != before


def test_what_was_applied_before_maps_had_names_of_their_own_is_found_and_indexed(corpus, tmp_path):
    made = apply_map(corpus[0], tmp_path / "now", *fit_corpus(corpus[0], "pca", 5), "float32")
    shutil.copytree(tmp_path / "now", old := tmp_path / "old")
    (old / made["map"]).rename(old / "map.npz")
    (old / "manifest.json").write_text(json.dumps({name: made[name] for name in made if name != "map"}))
    build_index(old, tmp_path / "index")
    now, before, listed = (search_corpus(tmp_path / name, SENTENCES[30:31], TOP) for name in ("now", "old", "index"))
    assert now == before
    assert listed[0][0].text == SENTENCES[30]


def test_a_corpus_is_found_from_any_folder_and_pickled_weights_need_a_yes_each_time(tmp_path, monkeypatch):
    weights = build_model(tmp_path / "m") / "model.safetensors"
    torch.save(load_file(weights), weights.with_name("pytorch_model.bin"))
    weights.unlink()
    (tmp_path / "in.txt").write_text("\n".join(SENTENCES[:30]))
    monkeypatch.chdir(tmp_path)
    embed("in.txt", "out", "./m:2", allow_bin=True)
    apply_map("out", "applied", *fit_corpus("out", "pca", 4))
    monkeypatch.chdir("/")
    with pytest.raises(PickledWeights):
        search_corpus(tmp_path / "applied", SENTENCES[3:4])
    assert search_corpus(tmp_path / "applied", SENTENCES[3:4], allow_bin=True)[0][0].text == SENTENCES[3]


def test_merging_keeps_the_best_and_of_equals_the_lower_row():
    one = np.array([[3.0, 1.0]], np.float32), np.array([[4, 9]])
    two = np.array([[3.0, 2.0]], np.float32), np.array([[2, 7]])
    assert merged(one, two, 3)[1].tolist() == merged(two, one, 3)[1].tolist() == [[2, 4, 7]]
    near = np.array([[np.nextafter(np.float32(0.5), 1), 0.2]], np.float32), np.array([[6, 7]])
    assert merged(near, (np.array([[0.5]], np.float32), np.array([[4]])), 2)[1].tolist() == [[4, 6]]  # but for rounding


def test_an_index_is_replaced_by_one_of_its_kind_alone(corpus, tmp_path):
    apply_map(corpus[0], tmp_path / "applied", *fit_corpus(corpus[0], "pca", 8))
    lists = {"kind": "ivfpq", "lists": 4, "code_bytes": 8}
    for name, own, other in (("lists", lists, {}), ("flat", {}, lists)):
        build_index(tmp_path / "applied", tmp_path / name, **own)
        before = contents(tmp_path / name)
        with pytest.raises(ValueError, match=r"holds an index of kind='\w+', got kind='\w+': choose another folder"):
            build_index(tmp_path / "applied", tmp_path / name, **other)
        assert contents(tmp_path / name) == before
        build_index(tmp_path / "applied", tmp_path / name, **own)


def test_a_sentence_finds_itself_first_in_shards_and_in_either_index(corpus, tmp_path):
    fitted, record = fit_corpus(corpus[0], "pca", 8)
    apply_map(corpus[0], tmp_path / "applied", fitted, record, "float32")
    flat = build_index(tmp_path / "applied", tmp_path / "flat")
    listed = build_index(tmp_path / "applied", tmp_path / "lists", "ivfpq", lists=4, code_bytes=8, probes=4)
    assert flat["recall@10"] == 1  # though twins tie
    assert 0.3 < listed["recall@10"] < flat["recall@10"]
    assert (listed["lists"], listed["bytes"], listed["sentences"]) == (4, 8, len(SENTENCES) + 20)
    asked = [SENTENCES[30], SENTENCES[77]]
    for name in ("applied", "flat", "lists"):
        said = []
        hits = search_corpus(tmp_path / name, asked, TOP, note=said.append)
        assert ("cosines are estimated" in "".join(said)) == (name == "lists")
        assert [line[0].text for line in hits] == asked
        assert [line[0].id for line in hits] == ["text.txt:31", "text.txt:78"]
        assert all(len(line) == TOP for line in hits)
    exact, found = (search_corpus(tmp_path / name, asked, TOP) for name in ("applied", "flat"))
    scores = [[[hit.cosine for hit in line] for line in lines] for lines in (exact, found)]
    np.testing.assert_allclose(*scores, atol=1e-6)  # which of two equal ones comes first is left to the last bit


def test_what_cannot_be_searched_or_applied_is_one_line(corpus, tmp_path):
    fitted, record = fit_corpus(corpus[0], "pca", 6)
    with pytest.raises(DataError, match="must be what `corpus apply` or `corpus index` wrote"):
        search_corpus(corpus[0], ["a"])
    with pytest.raises(ValueError, match=r"map is of layers \[1\]"):
        apply_map(corpus[0], tmp_path, fitted, record | {"layers": [1]})
    with pytest.raises(ValueError, match="map must be of the corpus's pooling 'mean', got one of 'cls'"):
        apply_map(corpus[0], tmp_path, fitted, record | {"pooling": "cls"})
    with pytest.raises(ValueError, match="vectors='int3' must be one of"):
        apply_map(corpus[0], tmp_path, fitted, record, "int3")
    apply_map(corpus[0], tmp_path, fitted, record)
    with pytest.raises(ValueError, match="bytes=4 must divide the 6 dimensions"):
        build_index(tmp_path, tmp_path / "x", "ivfpq", code_bytes=4)
    for asked, line in (
        ({"lists": 0}, "lists=0 must lie between 1 and "),
        ({"lists": 10_000}, "lists=10000 must lie between 1 and the number of vectors="),
        ({"code_bytes": 0}, "bytes=0 must be a whole number of at least 1"),
        ({"kind": "flat", "code_bytes": 2}, "bytes=2 is of kind='ivfpq', got kind='flat'"),
        ({"kind": "flat", "probes": 4}, "probes=4 is of kind='ivfpq', got kind='flat'"),
    ):
        with pytest.raises(ValueError, match=line):
            build_index(tmp_path, tmp_path / "x", **{"kind": "ivfpq"} | asked)
    with pytest.raises(ValueError, match="query must hold text"):
        search_corpus(tmp_path, [" "])
    said = tmp_path / "manifest.json"
    whole = said.read_text()
    said.write_text(whole.replace('"dim": 6', '"dim": 5'))
    for step in (lambda: search_corpus(tmp_path, ["a"]), lambda: build_index(tmp_path, tmp_path / "x")):
        with pytest.raises(DataError, match="says 5 dimensions, and the chunks hold others; run apply again"):
            step()
    said.write_text(whole)
    (gone := next(tmp_path.glob("[0-9a-f]*.parquet"))).unlink()
    with pytest.raises(DataError, match=rf"1 of 9 chunks is missing \({gone.name[:12]}\); run apply again"):
        search_corpus(tmp_path, ["a"])


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"vectors": "float32"}, "it says what its chunks and its map do not bear out"),
        ({"pooling": "cls"}, "it says what its chunks and its map do not bear out"),
        ({"layers": [1]}, "it says what its chunks and its map do not bear out"),
        ({"texts": []}, "it says what its chunks and its map do not bear out"),
        ({"layers": None}, "it says what its chunks and its map do not bear out"),
        ({"whitening": "zca"}, "it says what its chunks and its map do not bear out"),
        ({"k": 5}, "it says what its chunks and its map do not bear out"),
        ({"sentences": 7}, "it says what its chunks and its map do not bear out"),
        ({"max_length": 5}, "names .* with max_length=5 and dtype=float32, which is not what embedded the corpus"),
        ({"compute": "bfloat16"}, "and dtype=bfloat16, which is not what embedded the corpus"),
        ({"loaded": "other"}, "names .*, which is not what embedded the corpus"),
    ],
)
def test_a_manifest_that_says_other_than_its_files_is_refused(changes, said, corpus, model, tmp_path):
    if "loaded" in changes:
        changes = {"loaded": str(build_model(tmp_path / "other", seed=9))}
    apply_map(corpus[0], tmp_path / "applied", *fit_corpus(corpus[0], "pca", 6), "int8")
    build_index(tmp_path / "applied", tmp_path / "index")
    for folder in (tmp_path / "applied", tmp_path / "index"):
        place = folder / "manifest.json"
        whole = place.read_text()
        assert search_corpus(folder, [SENTENCES[30]], 1)[0][0].text == SENTENCES[30]
        if folder.name == "index" and "sentences" in changes:
            continue  # which its search does not read
        place.write_text(json.dumps(json.loads(whole) | changes))
        with pytest.raises(DataError, match=said):
            search_corpus(folder, [SENTENCES[30]], 1)


@pytest.mark.parametrize("changed", [lambda whole: whole + b"x", lambda whole: whole[:-1]])
def test_an_applied_chunk_that_grew_or_shrank_is_named_and_made_again(changed, corpus, tmp_path):
    fitted, record = fit_corpus(corpus[0], "pca", 6)
    made = apply_map(corpus[0], tmp_path, fitted, record)
    path = tmp_path / f"{made['chunks'][0]}.parquet"
    whole = path.read_bytes()
    path.write_bytes(changed(whole))
    for step in (lambda: search_corpus(tmp_path, ["a"]), lambda: build_index(tmp_path, tmp_path / "x")):
        with pytest.raises(DataError, match=f"{path.name}: not whole .* run the step that writes it again"):
            step()
    assert apply_map(corpus[0], tmp_path, fitted, record)["written"] == 1
    assert path.read_bytes() == whole


def test_a_map_that_is_damaged_in_an_applied_folder_is_made_again(corpus, tmp_path):
    fitted, record = fit_corpus(corpus[0], "pca", 6)
    path = tmp_path / apply_map(corpus[0], tmp_path, fitted, record)["map"]
    path.write_bytes(path.read_bytes()[:-300])
    for step in (lambda: search_corpus(tmp_path, ["a"]), lambda: build_index(tmp_path, tmp_path / "x")):
        with pytest.raises(DataError, match=f"{path.name}: not whole: make it again with `corpus apply`"):
            step()
    assert apply_map(corpus[0], tmp_path, fitted, record)["written"] == 0
    assert search_corpus(tmp_path, [SENTENCES[30]], 1)[0][0].text == SENTENCES[30]


def test_an_index_that_is_not_whole_says_how_to_make_it_again(corpus, tmp_path):
    for k in (6, 5):
        apply_map(corpus[0], tmp_path / f"applied{k}", *fit_corpus(corpus[0], "pca", k))
        build_index(tmp_path / f"applied{k}", tmp_path / f"index{k}")
    folder, other = tmp_path / "index6", tmp_path / "index5"
    damages = {
        "index.faiss": (folder / "index.faiss").read_bytes()[:-300],
        "map.npz": (other / "map.npz").read_bytes(),
        "ids.parquet": (folder / "ids.parquet").read_bytes()[:-300],
    }
    for name, damage in damages.items():
        whole = (folder / name).read_bytes()
        (folder / name).write_bytes(damage)
        with pytest.raises(DataError, match="not whole.*: make it again with `corpus index`"):
            search_corpus(folder, ["a"])
        (folder / name).write_bytes(whole)
    (folder / "ids.parquet").unlink()
    with pytest.raises(DataError, match="ids.parquet: not whole: make it again"):
        search_corpus(folder, ["a"])


def test_texts_of_a_corpus_that_are_not_whole_are_named_where_it_is_searched(corpus, tmp_path):
    folder = shutil.copytree(corpus[0], tmp_path / "out")
    apply_map(folder, tmp_path / "applied", *fit_corpus(folder, "pca", 6))
    path = folder / "texts" / f"{read_applied(tmp_path / 'applied')['texts'][0]}.parquet"
    whole, table = path.read_bytes(), pq.read_table(path)
    for damage in (b"", whole[:-300], table.slice(0, 1), table.drop_columns("id")):
        path.write_bytes(damage) if isinstance(damage, bytes) else pq.write_table(damage, path)
        for step in (
            lambda: search_corpus(tmp_path / "applied", [SENTENCES[30]], 400),
            lambda: build_index(tmp_path / "applied", tmp_path / "index"),
        ):
            with pytest.raises(DataError, match="texts: not whole .*; remove it and run embed again"):
                step()
    path.write_bytes(whole)
    assert search_corpus(tmp_path / "applied", [SENTENCES[30]], 1)[0][0].text == SENTENCES[30]


def contents(folder):
    return {path.relative_to(folder): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def test_no_step_writes_over_what_it_did_not_write(corpus, tmp_path, model):
    fitted, record = fit_corpus(corpus[0], "pca", 6)
    apply_map(corpus[0], tmp_path / "applied", fitted, record, "float32")
    build_index(tmp_path / "applied", tmp_path / "index")
    for name, file in (("web", "manifest.json"), ("photos", "summer.jpg")):
        (tmp_path / name).mkdir()
        (tmp_path / name / file).write_text('{"name": "a site"}')
    (tmp_path / "file").write_text("mine")
    steps = {
        "embed": lambda out: embed(corpus[0].parent / "text.txt", out, model),
        "apply": lambda out: apply_map(corpus[0], out, fitted, record, "float32"),
        "index": lambda out: build_index(tmp_path / "applied", out),
    }
    before = contents(tmp_path) | contents(corpus[0])
    for step, others in (
        ("embed", ("web", "file", "applied", "index")),
        ("apply", ("web", "file", "index", corpus[0])),
        ("index", ("web", "file", "applied", "photos", corpus[0])),
    ):
        for other in others:
            with pytest.raises(ValueError, match=f"must be a new folder, or one that `corpus {step}` wrote before"):
                steps[step](tmp_path / other)
    assert contents(tmp_path) | contents(corpus[0]) == before
    build_index(tmp_path / "applied", tmp_path / "index")  # its own it replaces
