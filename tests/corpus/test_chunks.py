"""Chunks named by content: nothing done twice, moments exact and the same bits, poisoned lines refused."""

import csv
import errno
import gzip
import json
import os
import zipfile
from dataclasses import replace

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import torch
from corpora import embed, small_text, vectors

from whitelab.corpus import chunks
from whitelab.corpus.applying import apply_map
from whitelab.corpus.chunks import (
    TEXTS,
    merged_moments,
    read_chunk,
    read_moments,
    read_texts_of,
    vectors_in,
    write_vectors,
)
from whitelab.corpus.embedding import embed_corpus
from whitelab.corpus.fitting import fit_corpus
from whitelab.corpus.indexing import build_index
from whitelab.corpus.manifest import Manifest, missing_note, status
from whitelab.corpus.texts import CHANGED, EMPTY, LINE_BYTES, changed_since, read_texts, text_files
from whitelab.datasets.pairs import DataError
from whitelab.datasets.tables import PROBE_BYTES

FIELDS = ("mean", "scatter", "cubic", "unit")


@pytest.fixture
def text(tmp_path):
    return small_text(tmp_path / "corpus.txt")


def test_merged_moments_are_those_of_numpy_in_any_order_and_at_any_alignment(tmp_path, model, text):
    made = embed(text, tmp_path / "out", model, layers=(1, -1))
    one, two = (merged_moments(tmp_path / "out", order) for order in (made.chunks, made.chunks[::-1]))
    assert all(torch.equal(getattr(one, field), getattr(two, field)) for field in FIELDS)
    read = read_moments(tmp_path / "out", made.chunks[0])
    assert not any(getattr(read, field).data_ptr() % 64 for field in FIELDS)
    x = vectors(tmp_path / "out", made).astype(np.float64)
    assert one.count == len(x) == 40
    np.testing.assert_allclose(one.mean, x.mean(0), rtol=0, atol=1e-12)
    np.testing.assert_allclose(one.covariance, np.cov(x.T), rtol=0, atol=1e-12)


def test_moments_that_would_be_larger_than_vectors_are_taken_of_these_with_the_same_bits(
    tmp_path, model, text, monkeypatch
):
    beside = embed(text, tmp_path / "beside", model)
    monkeypatch.setattr(chunks, "_are_beside", lambda dim, rows: False)
    alone = embed(text, tmp_path / "alone", model)
    assert beside.chunks == alone.chunks
    assert not list((tmp_path / "alone").glob("*.npz"))
    one, two = (merged_moments(tmp_path / name, alone.chunks) for name in ("beside", "alone"))
    assert all(torch.equal(getattr(one, field), getattr(two, field)) for field in FIELDS)


@pytest.mark.parametrize("kind", [np.float32, np.float16, np.int8, np.uint8])
def test_stored_numbers_take_the_bytes_of_their_kind(kind, tmp_path):
    values = np.random.default_rng(3).integers(0, 128, (4096, 64)).astype(kind)
    write_vectors(tmp_path / "a.parquet", pa.chunked_array([["a"] * len(values)]), values, {})
    groups = pq.read_metadata(tmp_path / "a.parquet").to_dict()["row_groups"]
    size = sum(group["columns"][1]["total_compressed_size"] for group in groups)
    assert size / values.nbytes == pytest.approx(1, abs=0.15)
    assert (vectors_in(read_chunk(tmp_path, "a")["vector"]) == values).all()


def test_moments_whose_file_is_damaged_are_taken_of_the_vectors_with_the_same_bits(tmp_path, model, text):
    made = embed(text, tmp_path / "out", model)
    before = read_moments(tmp_path / "out", made.chunks[0])
    path = tmp_path / "out" / f"{made.chunks[0]}.npz"
    whole = bytearray(path.read_bytes())
    whole[len(whole) // 2] ^= 1  # as long as before
    path.write_bytes(whole)
    with pytest.raises(zipfile.BadZipFile), np.load(path) as file:  # the control
        {name: file[name] for name in file.files}
    after = read_moments(tmp_path / "out", made.chunks[0])
    assert all(torch.equal(getattr(before, field), getattr(after, field)) for field in FIELDS)


def test_nothing_done_is_done_again_but_what_is_not_whole_and_what_another_recipe_asks(tmp_path, model, text):
    folder = tmp_path / "out"
    first = embed(text, folder, model)
    assert first.encoded == 16 + 16 + 8
    assert embed(text, folder, model).encoded == 0
    for end in (".parquet", ".npz"):
        broken = folder / f"{first.chunks[0]}{end}"
        whole = broken.read_bytes()
        broken.write_bytes(whole[: len(whole) // 2])
        assert (status(folder).done, status(folder).lost) == (2, 1)
        assert embed(text, folder, model).encoded in (16, 8)
        assert (status(folder).done, status(folder).lost) == (3, 0)
        assert broken.read_bytes() == whole
    cut = folder / "texts" / f"{first.texts[0]}.parquet"
    cut.write_bytes(cut.read_bytes()[:-9])
    assert embed(text, folder, model).encoded == 0
    pq.read_table(cut)
    other = embed(text, folder, model, layers=(0,))
    assert other.encoded == 40
    assert not set(other.chunks) & set(first.chunks)
    assert set(other.texts) == set(first.texts)


def test_a_byte_of_a_chunk_that_changed_is_seen_and_chunks_without_checksums_are_read(tmp_path, model, text):
    folder = tmp_path / "out"
    made = embed(text, folder, model)
    readers = {made.chunks[0]: lambda name: read_chunk(folder, name)}
    readers |= {f"{TEXTS}/{made.texts[0]}": lambda _: read_texts_of(folder, made.texts[0])}
    for name, read in readers.items():
        path = folder / f"{name}.parquet"
        whole, table = path.read_bytes(), pq.read_table(path)
        column = pq.ParquetFile(path).metadata.row_group(0).column(len(table.column_names) - 1)
        end = column.data_page_offset + column.total_compressed_size
        path.write_bytes(whole[: end - 3] + bytes([whole[end - 3] ^ 1]) + whole[end - 2 :])
        with pytest.raises(DataError, match="not whole .*; remove it and run"):
            read(name)
        pq.write_table(table, path)
        read(name)


def test_what_a_killed_run_was_writing_goes_with_a_later_run_and_nothing_else(tmp_path, model, text):
    folder, applied = tmp_path / "out", tmp_path / "applied"
    embed(text, folder, model)
    fitted, record = fit_corpus(folder, "pca", 4)
    apply_map(folder, applied, fitted, record)
    places = (folder, folder / TEXTS, applied)
    abandoned, written, own = (
        [place / name for place in places] for name in (f"{'a' * 32}.tmp", f"{'b' * 32}.tmp", "my.tmp")
    )
    for path in (*abandoned, *written, *own):
        path.write_bytes(b"half")
    for path in (*abandoned, *own):
        os.utime(path, (0, 0))
    assert embed(text, folder, model).encoded == 0
    assert apply_map(folder, applied, fitted, record)["written"] == 0
    assert not any(path.exists() for path in abandoned)
    assert all(path.exists() for path in (*written, *own))


def test_a_corpus_of_sentences_that_repeat_encodes_each_once_in_a_chunk_and_counts_all(tmp_path, model):
    path = tmp_path / "same.txt"
    path.write_text("a man plays\n" * 30 + "water\n" * 10)
    made = embed(path, tmp_path / "out", model, chunk_texts=40)
    assert (made.sentences, made.encoded) == (40, 2)
    x = vectors(tmp_path / "out", made).astype(np.float64)
    np.testing.assert_allclose(merged_moments(tmp_path / "out", made.chunks).mean, x.mean(0), rtol=0, atol=1e-12)


def test_texts_that_are_cut_or_of_unknown_words_are_counted_as_often_as_they_occur(tmp_path, model):
    long, strange = "a man plays a guitar and a dog runs in the water", "日 本 語"
    rows = [{"id": str(i), "text": text} for i, text in enumerate((long, "a dog", long, strange))] * 4
    (tmp_path / "text.jsonl").write_text("".join(f"{json.dumps(row)}\n" for row in [*rows, {"id": "5", "text": "a"}]))
    made = embed(tmp_path / "text.jsonl", tmp_path / "out", model, max_length=6, chunk_texts=4)
    found = status(tmp_path / "out")
    assert (found.chunks, found.cut, found.unknown) == (2, 8, 4)  # the first chunk of four occurs four times
    assert [note.split(":")[0] for note in found.notes] == [
        "8 texts were cut to 6 tokens",
        "4 texts of mostly unknown words",
    ]
    for name in made.chunks:  # as before these were counted
        table = pq.read_table(path := tmp_path / "out" / f"{name}.parquet")
        record = {key: value for key, value in table.schema.metadata.items() if key not in (b"cut", b"unknown")}
        pq.write_table(table.replace_schema_metadata(record), path)
    found = status(tmp_path / "out")
    assert (found.done, found.cut, found.unknown, found.notes) == (2, 0, 0, ())


def test_text_is_found_below_the_home_folder_and_in_folders_of_any_depth(tmp_path, monkeypatch):
    deep = tmp_path / "in" / "a" / "b"
    deep.mkdir(parents=True)
    files = [deep / "one.txt", deep.parent / "two.jsonl", tmp_path / "in" / "three.txt"]
    for file in files:
        file.write_text("a man\n")
    monkeypatch.setenv("HOME", str(tmp_path))
    assert text_files("~/in") == text_files("~/in/**/*") == text_files(tmp_path / "in") == sorted(files)
    assert text_files("~/in/a/b/one.txt") == files[:1]
    (deep.parent / "two.jsonl").unlink()
    assert dict(read_texts("~/in", pytest.fail)) == {"a/b/one.txt:1": "a man", "three.txt:1": "a man"}


def test_poisoned_lines_are_refused_by_number_and_the_rest_goes_on(tmp_path, model):
    folder = tmp_path / "in"
    (folder / "deep").mkdir(parents=True)
    (folder / "a.txt").write_bytes(b"one man\n" + b"x" * 20_000_000 + b"\n\xff\xfe\na\0b\n\ntwo men\n")
    half = {"text": "half \ud83d"}, {"id": "\ud83d", "text": "whole"}
    records = [{"id": 7, "text": "three"}, {"other": 1}, *half]
    with gzip.open(folder / "deep" / "b.jsonl.gz", "wt") as file:
        file.write("\n".join(map(json.dumps, records)) + "\n{broken\n")
    made = embed_corpus(folder, tmp_path / "out", model)
    assert (made.sentences, made.refused) == (3, 7)
    assert [line.split(": ")[0] for line in made.refused_lines] == [
        *(f"a.txt:{line}" for line in (2, 3, 4)), *(f"deep/b.jsonl.gz:{line}" for line in (2, 3, 4, 5))
    ]  # fmt: skip
    (name,) = made.chunks
    assert pq.read_table(tmp_path / "out" / f"{name}.parquet")["id"].to_pylist() == ["a.txt:1", "a.txt:6", "7"]


def test_what_was_left_out_is_counted_by_reason_and_a_file_is_called_one(tmp_path, model):
    (tmp_path / "in").mkdir()
    (tmp_path / "in" / "a.txt").write_bytes(b"one man\n\xff\n\xfe\n")
    pq.write_table(pa.table({"body": ["text"] * 200}), tmp_path / "in" / "b.parquet")
    pq.write_table(pa.table({"text": ["two men", None]}), tmp_path / "in" / "c.parquet")
    (tmp_path / "in" / "d.jsonl").write_text('{"text": null}\n')
    made = embed(tmp_path / "in", tmp_path / "out", model)
    assert (made.sentences, made.refused) == (2, 5)
    found = status(tmp_path / "out")
    unread = "cannot be read on: text_column='text' must be one of the columns 'body'"
    assert found.left_out == ["2 lines: not UTF-8", "2 lines: no text (null)", f"1 file: {unread}"]
    replace(Manifest.read(tmp_path / "out"), refused_kinds={}).write(tmp_path / "out")  # as an older one
    assert status(tmp_path / "out").left_out == ["5 lines and files"]


def test_records_whose_text_is_empty_are_named_and_blank_lines_are_not(tmp_path):
    (tmp_path / "a.jsonl").write_text('{"text": "a man"}\n\n{"text": " "}\n{"text": ""}\n')
    (tmp_path / "b.csv").write_text("text,n\na dog,1\n\n,2\n")
    (tmp_path / "c.txt").write_text("water\n\n \nsea\n")
    refused = []
    assert [text for _, text in read_texts(tmp_path, refused.append)] == ["a man", "a dog", "water", "sea"]
    assert [one.where for one in refused] == ["a.jsonl:3", "a.jsonl:4", "b.csv:4"]
    assert {one.kind for one in refused} == {f"line: {EMPTY}"}


def test_a_mark_of_the_byte_order_is_no_text(tmp_path):
    (tmp_path / "a.txt").write_text("one man\ntwo men\n", encoding="utf-8-sig")
    (tmp_path / "b.jsonl").write_text('{"id": 3, "text": "three"}\n', encoding="utf-8-sig")
    assert [text for _, text in read_texts(tmp_path, pytest.fail)] == ["one man", "two men", "three"]
    (tmp_path / "c.txt").write_text("x" * (LINE_BYTES + 1) + "\nfour\n", encoding="utf-8-sig")
    refused = []
    assert [text for _, text in read_texts(tmp_path / "c.txt", refused.append)] == ["four"]
    assert [str(line).partition(":")[2] for line in refused] == [f"1: longer than {LINE_BYTES} bytes"]


def test_texts_of_files_that_share_a_name_have_ids_of_their_own(tmp_path):
    for name in "ab":
        (tmp_path / name).mkdir()
        (tmp_path / name / "x.txt").write_text(f"{name} man\n")
    expected = [("a/x.txt:1", "a man"), ("b/x.txt:1", "b man")]
    assert (
        list(read_texts(tmp_path, pytest.fail)) == list(read_texts(tmp_path / "*" / "x.txt", pytest.fail)) == expected
    )


def test_a_chunk_that_occurs_twice_counts_twice(tmp_path, model):
    """Files may be equal down to their ids."""
    for name in "ab":
        lines = (json.dumps({"id": i, "text": f"a man number {i}"}) for i in range(4))
        (tmp_path / f"{name}.jsonl").write_text("\n".join(lines))
    steps = []
    made = embed(tmp_path / "*.jsonl", tmp_path / "out", model, chunk_texts=4, progress=lambda *at: steps.append(at))
    assert (steps[0], steps[-1]) == ((0, 8), (8, 8))
    found = status(tmp_path / "out")
    assert (made.sentences, found.sentences, found.sentences_done, found.chunks) == (8, 8, 8, 1)


def test_texts_that_are_written_again_or_come_later_are_seen(tmp_path, model):
    folder, source = tmp_path / "out", tmp_path / "texts"
    source.mkdir()
    (source / "a.txt").write_text("a man\n")
    embed(source, folder, model)

    def seen():
        return changed_since(Manifest.read(folder))

    assert seen() is False
    (source / "a.txt").write_text("a cat\n")  # as long as before
    os.utime(source / "a.txt", (0, 0))
    assert seen() is True
    embed(source, folder, model)
    assert seen() is False
    (source / "b.txt").write_text("a dog\n")
    assert seen() is True
    source.rename(tmp_path / "elsewhere")
    assert seen() is None
    replace(Manifest.read(folder), stamp="").write(folder)  # as an older one
    (tmp_path / "elsewhere").rename(source)
    assert seen() is None


def test_of_files_that_an_older_version_did_not_read_it_is_said_that_they_were_not_read(tmp_path, model, monkeypatch):
    (tmp_path / "in").mkdir()
    (tmp_path / "in" / "a.txt").write_text("a man\n")
    (tmp_path / "in" / "b.csv").write_text("text\na cat\n")
    monkeypatch.setattr("whitelab.corpus.texts.KINDS", (".txt",))
    made = embed(tmp_path / "in", tmp_path / "out", model)
    assert changed_since(made) is False
    monkeypatch.undo()
    assert changed_since(made) is True
    assert CHANGED.startswith("files of its text were not read, or ")
    assert changed_since(embed(tmp_path / "in", tmp_path / "out", model)) is False


def test_a_full_disk_is_one_line_that_says_what_is_missing_and_is_made_up_for(tmp_path, model, text, monkeypatch):
    written = []

    def full(path, data):
        written.append(path)
        if len(written) == 2 * 2:  # the second chunk's vectors
            raise OSError(errno.ENOSPC, "No space left on device")
        write(path, data)

    write = chunks.write_aside
    embed(text, tmp_path / "out", model, layers=(0,))  # the texts are there
    monkeypatch.setattr(chunks, "write_aside", full)
    with pytest.raises(OSError, match=r"left on device; 2 of 3 chunks are missing \(\w{12}, \w{12}\); run embed again"):
        embed(text, tmp_path / "out", model)
    monkeypatch.undo()
    found = status(tmp_path / "out")
    assert (found.done, found.chunks, found.finished) == (1, 3, False)
    assert embed(text, tmp_path / "out", model).encoded in (40 - 16, 40 - 8)


@pytest.mark.parametrize(
    ("missing", "chunks", "said"),
    [("a", "aa", "1 of 1 chunk is missing (a)"), ("abcd", "abcde", "4 of 5 chunks are missing")],
)
def test_missing_chunks_are_counted_once_and_named_where_they_are_few(missing, chunks, said):
    assert missing_note(missing, chunks) == said


def test_a_chunk_that_cannot_be_encoded_is_named_and_the_rest_goes_on(tmp_path, model, text, monkeypatch):
    encode, asked = chunks.encode_chunk, []

    def fails(folder, texts, recipe, encoder):
        asked.append(texts)
        if len(asked) == 2:
            raise RuntimeError("a tensor went astray")
        return encode(folder, texts, recipe, encoder)

    monkeypatch.setattr("whitelab.corpus.engines.encode_chunk", fails)
    made = embed(text, tmp_path / "out", model)
    assert list(made.failed.values()) == ["a tensor went astray"]
    assert not made.finished
    assert Manifest.read(tmp_path / "out") == made
    assert embed(text, tmp_path / "out", model).finished


def test_chunks_that_lie_among_the_texts_are_not_read_as_texts(tmp_path, model, text):
    made = [embed(tmp_path, tmp_path / name, model) for name in ("", "inside", "inside", "")]
    assert {(one.sentences, one.chunks) for one in made} == {(40, made[0].chunks)}
    fitted, record = fit_corpus(tmp_path, "pca", 4)
    apply_map(tmp_path, tmp_path / "applied", fitted, record)
    build_index(tmp_path / "applied", tmp_path / "index")
    (tmp_path / "manifest.json").unlink()  # killed before it was written
    assert embed(tmp_path, tmp_path, model).sentences == 40
    assert text_files(tmp_path / "inside" / "texts")  # where they are asked for
    assert text_files(tmp_path / "inside" / "texts" / "*.parquet")


def test_a_folder_that_another_step_wrote_is_called_by_that_step(tmp_path, model, text):
    embed(text, tmp_path / "out", model)
    apply_map(tmp_path / "out", tmp_path / "applied", *fit_corpus(tmp_path / "out", "pca", 4))
    build_index(tmp_path / "applied", tmp_path / "index")
    for folder, step in (("applied", "apply"), ("index", "index")):
        with pytest.raises(DataError, match=f"that embed writes, got one that {step} wrote"):
            status(tmp_path / folder)
    (tmp_path / "index" / "manifest.json").write_text("[]")
    with pytest.raises(DataError, match=r"that embed writes$"):
        status(tmp_path / "index")


@pytest.mark.parametrize("delimiter", [",", ";", "\t"])
def test_a_csv_gives_the_texts_that_its_writer_had_and_says_which_rows_give_none(tmp_path, delimiter):
    texts = ['He said "no", twice; then left', "two\nlines", "tab\there", "=1+1", "'quoted'"]
    path, refused = tmp_path / "all.csv", []
    with path.open("w", newline="", encoding="utf-8-sig") as file:
        writer = csv.writer(file, delimiter=delimiter)
        writer.writerows([["id", "note", "text"], *([i or None, "x", text] for i, text in enumerate(texts))])
    assert list(read_texts(path, pytest.fail)) == [("all.csv:2", texts[0]), *zip("1234", texts[1:], strict=True)]
    row = delimiter.join
    lines = [
        "7",
        row(["8", "x", '"a" b']),
        row(["9", "x", "caf\udce9"]),
        "",
        row(["10", "x", " "]),
        row(["11", "x", "a"]),
    ]
    with path.open("a", encoding="utf-8", errors="surrogateescape") as file:
        file.write("\n".join([*lines, row(["12", "x", '"never closed'])]))
    assert [text for _, text in read_texts(path, refused.append)] == [*texts, "a"]
    assert [(one.where, one.whole) for one in refused] == [(f"all.csv:{line}", False) for line in (8, 9, 10, 12, 14)]
    assert [one.reason for one in refused][:4:2] == ["1 column where 3 are expected", "not UTF-8"]
    assert refused[3].reason == EMPTY


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16", "utf-16-be", "utf-32"])
@pytest.mark.parametrize("end", ["", ".gz"])
def test_texts_in_whatever_a_mark_of_the_byte_order_says_are_those_of_utf_8(tmp_path, encoding, end):
    texts = ["Ein Mädchen", "你好\u0a0a", "\u0d0a\U0001f600", "x" * 100_000]
    mark = "\ufeff" if encoding.endswith("e") else ""
    kinds = {
        "a.txt": "\n".join(texts),
        "b.jsonl": "\n".join(json.dumps({"text": text}, ensure_ascii=False) for text in texts),
        "c.csv": "\r\n".join(["text,note", *(f'"{text}",x' for text in texts)]),
    }
    for name, text in kinds.items():
        data = (mark + text).encode(encoding)
        (tmp_path / f"{name}{end}").write_bytes(gzip.compress(data) if end else data)
    assert [text for _, text in read_texts(tmp_path, pytest.fail)] == texts * 3


@pytest.mark.parametrize("half", [0xD83D, 0xDC85, 0xDD00])
@pytest.mark.parametrize("encoding", ["utf-16", "utf-32"])
def test_of_a_marked_file_what_is_no_text_and_what_is_too_long_is_left_out_and_said(tmp_path, encoding, half):
    long, end = "两" * (LINE_BYTES // 3), b"\x3d\xd8\n"
    for name, head, row in (("a.txt", "", "{}\n"), ("b.csv", "text,note\n", "{},x\n")):
        body = head + "".join(map(row.format, ["a man", f"half {chr(half)}", "a dog", f"{long}xx", "water"]))
        (tmp_path / name).write_bytes(body.encode(encoding, "surrogatepass") + end)
    refused = []
    assert [text for _, text in read_texts(tmp_path, refused.append)] == ["a man", "a dog", "water", "a man", "a dog"]
    undecoded, too_long = f"not {encoding.upper()}", f"longer than {LINE_BYTES} bytes"
    assert list(map(str, refused)) == [
        f"a.txt:2: {undecoded}",
        f"a.txt:4: {too_long}",
        f"a.txt:6: {undecoded}",
        f"b.csv:3: {undecoded}",
        f"b.csv: cannot be read on: {too_long}",
    ]


@pytest.mark.parametrize(("encoding", "bad"), [("utf-8", b"\xff"), ("utf-32-le", b"\xff" * 4)])
@pytest.mark.parametrize("name", ["a.txt", "a.csv"])
def test_what_no_character_has_costs_its_line_and_no_other(tmp_path, name, encoding, bad):
    data = "\ufefftext\na man\nwat?er\na dog\n".encode(encoding)
    (tmp_path / name).write_bytes(data.replace("?".encode(encoding), bad))
    refused = []
    assert [text for _, text in read_texts(tmp_path, refused.append)][-2:] == ["a man", "a dog"]
    assert list(map(str, refused)) == [f"{name}:3: not {encoding.upper().removesuffix('-LE')}"]


@pytest.mark.parametrize("first", ["sep=;\r\n", '"sep=;"\n', ""])
@pytest.mark.parametrize("head", ["id;text;note,with,commas,in,it", " id ; text;note ", 'id;"text ";x'])
def test_a_csv_may_say_what_parts_its_columns_and_blanks_round_their_names_are_none(tmp_path, first, head):
    lines, refused = [head, "1;a man, or two;x", "2;a dog", '3;"a\ncat";x', "4;water;x"], []
    (tmp_path / "a.csv").write_text(first + "\r\n".join(lines), newline="")
    assert list(read_texts(tmp_path, refused.append)) == [("1", "a man, or two"), ("3", "a\ncat"), ("4", "water")]
    assert [one.where for one in refused] == [f"a.csv:{3 + bool(first)}"]
    (tmp_path / "a.csv").write_text(f"sep=|\n{head}\n")  # it is so even where another parts them better
    assert list(read_texts(tmp_path, refused.append)) == []
    assert refused[-1].whole


@pytest.mark.parametrize("encoding", ["utf-8-sig", "utf-16"])
@pytest.mark.parametrize("mark", ["", "sep=,\r"])
def test_a_csv_whose_lines_end_in_bare_carriage_returns_gives_the_same_texts_bounded_alike(tmp_path, encoding, mark):
    rows = ["id,text", '1,"a man\nplays"', "2,a dog,x", "3,water"] + ["4,rain"] * 300_000
    (tmp_path / "a.csv").write_text(mark + "\r".join([*rows, "5," + "x" * LINE_BYTES]), encoding=encoding, newline="")
    refused = []
    texts = [text for _, text in read_texts(tmp_path, refused.append)]
    assert texts == ["a man\nplays", "water"] + ["rain"] * 300_000
    width = f"a.csv:{3 + bool(mark)}: 3 columns where 2 are expected"
    assert list(map(str, refused)) == [width, f"a.csv: cannot be read on: longer than {LINE_BYTES} bytes"]


@pytest.mark.parametrize("encoding", ["utf-8", "utf-16"])
def test_a_txt_and_a_jsonl_whose_lines_end_in_bare_carriage_returns_give_the_same_texts(tmp_path, encoding):
    texts = ['a "man', "plays", "water"]
    lines = {"a.txt": texts, "b.jsonl": [json.dumps({"text": text}) for text in texts]}
    for name, of_file in lines.items():
        (tmp_path / name).write_text("\r".join(of_file), encoding=encoding, newline="")
    ids = [f"{name}:{line}" for name in lines for line in (1, 2, 3)]
    assert list(read_texts(tmp_path, pytest.fail)) == list(zip(ids, texts * 2, strict=True))


def test_carriage_returns_end_no_line_of_a_txt_with_line_feeds_wherever_its_first_line_ends(tmp_path):
    first = ("a " * PROBE_BYTES)[: PROBE_BYTES - 1]
    (tmp_path / "a.txt").write_text(f"{first}\r\na man\rplays\r\n", newline="")
    assert [text for _, text in read_texts(tmp_path, pytest.fail)] == [first, "a man\rplays"]


@pytest.mark.parametrize("head", ["text,note\r\r\n", '"a\rnote",text\n', "text\r\n"])
def test_a_carriage_return_elsewhere_in_the_first_line_of_a_csv_does_not_end_it(tmp_path, head):
    row = "x,a man\r\n" if head.startswith('"') else f"a man{',x' * ('note' in head)}\n"
    (tmp_path / "a.csv").write_text(head + row, newline="")
    assert [text for _, text in read_texts(tmp_path, pytest.fail)] == ["a man"]


@pytest.mark.parametrize("text", ["text\rnote\r\nhello\r\nworld\r\n", "text\rone,1\ntwo\nthree\n"])
def test_a_csv_with_line_feeds_too_is_not_taken_for_one_whose_lines_end_in_carriage_returns(tmp_path, text):
    (tmp_path / "a.csv").write_text(text, newline="")
    refused = []
    assert list(read_texts(tmp_path, refused.append)) == []
    assert list(map(str, refused)) == ["a.csv: cannot be read on: a carriage return outside quotes"]


@pytest.mark.parametrize("quoting", [csv.QUOTE_ALL, csv.QUOTE_MINIMAL])
@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16"])
def test_texts_in_quotes_with_two_bytes_between_lines_are_read_as_they_are(tmp_path, quoting, encoding):
    texts = [f"A man, {i}" for i in range(1000)]
    with (tmp_path / "a.csv").open("w", encoding=encoding, newline="") as file:
        csv.writer(file, quoting=quoting).writerows([["text"], *([text] for text in texts)])
    assert [text for _, text in read_texts(tmp_path, pytest.fail)] == texts


@pytest.mark.parametrize("end", ["\r\n\r\n\r\n", "\r\rA dog\r\n\r\n"])
def test_blank_lines_at_the_end_are_not_refused(tmp_path, end):
    (tmp_path / "a.txt").write_text("A man" + end, newline="")
    assert [text for _, text in read_texts(tmp_path, pytest.fail)] == ["A man", "A dog"][: 1 + end.count("dog")]


def test_blanks_behind_what_parts_columns_are_none_of_a_text_nor_of_an_id(tmp_path):
    (tmp_path / "a.csv").write_text('text, id\n"a man", 1\n "a man, or two", 2\n"he said ""no""", "3"\n')
    found = list(read_texts(tmp_path, pytest.fail))
    assert found == [("1", "a man"), ("2", "a man, or two"), ("3", 'he said "no"')]


@pytest.mark.parametrize("first", ['1, "Hi" she said', '1, "Hi, she said'])
def test_a_quote_behind_a_blank_is_part_of_the_text_where_those_of_a_csv_cannot_be_read_as_round_a_cell(
    tmp_path, first
):
    rows = [first, *(f"{i},row {i}" for i in range(2, 2000)), '2000, "Oh no', "2001,water"]
    (tmp_path / "a.csv").write_text("\n".join(["id,text", *rows]))
    refused = []
    texts = [text for _, text in read_texts(tmp_path, refused.append)]
    assert len(texts) == 2001 - first.count(", she")
    assert texts[-2:] == ['"Oh no', "water"]
    assert list(map(str, refused)) == ["a.csv:2: 3 columns where 2 are expected"] * first.count(", she")


@pytest.mark.parametrize("row", ['{}, "A man number {} walks"', '{}, "A man, number {}, walks"'])
def test_one_quotation_does_not_put_the_quotes_round_all_cells_into_the_texts(tmp_path, row):
    rows = [row.format(i, i) for i in range(1000)]
    rows[5] = '5, "He said "hi" to me"'
    (tmp_path / "a.csv").write_text("\n".join(["id,text", *rows]) + "\n")
    refused = []
    texts = [text for _, text in read_texts(tmp_path, refused.append)]
    assert texts == [row.partition('"')[2].format(i, i).strip('"') for i in range(1000) if i != 5]
    assert len(refused) == 1
    assert str(refused[0]).startswith("a.csv:7: ")


def test_one_quotation_among_the_first_bytes_of_a_long_csv_is_one(tmp_path):
    rows = [f'{i}; "Hi" she said' if i % 2500 == 700 else f"{i}; A man, number {i}, walks" for i in range(5000)]
    (tmp_path / "a.csv").write_text("\n".join(["id; text", *rows]) + "\n")
    texts = [text for _, text in read_texts(tmp_path, pytest.fail)]
    assert texts.count('"Hi" she said') == 2


@pytest.mark.parametrize("padding", range(0, 35, 7))
def test_texts_of_two_lines_in_quotes_behind_a_blank_are_read_wherever_the_first_bytes_end(tmp_path, padding):
    rows = [f'{i}, "A man\nwalks {"x" * padding if i == 0 else ""}"' for i in range(6000)]
    (tmp_path / "a.csv").write_text("\n".join(["id,text", *rows]) + "\n")
    assert sum(text.startswith("A man\nwalks") for _, text in read_texts(tmp_path, pytest.fail)) == 6000


def test_a_carriage_return_alone_in_a_long_first_line_ends_no_line(tmp_path):
    first = "a " * PROBE_BYTES
    (tmp_path / "a.txt").write_text(f"{first[:50]}\r{first}\n" + "a man\n" * 1000, newline="")
    assert [len(text) for _, text in read_texts(tmp_path, pytest.fail)] == [51 + len(first) - 1] + [5] * 1000


def test_line_feeds_behind_lines_that_end_in_carriage_returns_glue_no_texts_together_unsaid(tmp_path):
    (tmp_path / "a.txt").write_text("a man walks\r" * PROBE_BYTES + "a\nb\nc", newline="")
    refused = []
    assert len(list(read_texts(tmp_path, refused.append))) == PROBE_BYTES
    assert list(map(str, refused)) == [
        f"a.txt:{PROBE_BYTES + 1}: line feeds, where lines before end in carriage returns"
    ]


def test_bytes_that_are_not_utf_8_make_a_line_no_longer_than_it_is(tmp_path):
    (tmp_path / "a.csv").write_bytes(b"text\n" + b"\xe4" * (LINE_BYTES // 2) + b"\nwater\n")
    refused = []
    assert [text for _, text in read_texts(tmp_path, refused.append)] == ["water"]
    assert list(map(str, refused)) == ["a.csv:2: not UTF-8"]


def test_why_a_row_of_a_csv_gives_no_text_is_said_in_plain_words(tmp_path):
    (tmp_path / "a.csv").write_text("text\r\na man\rplays\n1,2\nwater\n", newline="")
    refused = []
    assert [text for _, text in read_texts(tmp_path, refused.append)] == ["water"]
    assert [one.reason for one in refused] == ["a carriage return outside quotes", "2 columns where 1 is expected"]


@pytest.mark.parametrize("asked", [{"text_column": "body"}, {"id_column": "key"}])
def test_a_csv_without_a_column_that_is_named_is_left_out_whole(tmp_path, asked):
    (tmp_path / "a.csv").write_text("id,text\n1,a man\n")
    refused = []
    assert list(read_texts(tmp_path, refused.append, **asked)) == []
    assert [(one.where, one.whole) for one in refused] == [("a.csv", True)]
    ((argument, name),) = asked.items()
    assert refused[0].reason == f"{argument}={name!r} must be one of the columns 'id', 'text'"


@pytest.mark.parametrize("head", ["te\rxt,note", '"text', ""])
def test_a_csv_whose_first_line_names_no_columns_is_left_out_whole(tmp_path, head):
    (tmp_path / "a.csv").write_text(f"{head}\na man,x\n", newline="")
    refused = []
    assert list(read_texts(tmp_path, refused.append)) == []
    assert [(one.where, one.whole) for one in refused] == [("a.csv", True)]


def test_of_a_quote_in_a_csv_that_is_never_closed_it_is_said_how_many_lines_it_took(tmp_path):
    (tmp_path / "a.csv").write_text('text,text\na man,first\n"water,first\n' + "a dog,first\n" * 9)
    refused = []
    assert [text for _, text in read_texts(tmp_path, refused.append)] == ["a man"]
    assert [str(one) for one in refused] == ["a.csv:3: unexpected end of data, with 9 lines after it"]


def test_of_a_csv_nothing_is_cut_without_a_word(tmp_path):
    long = "a " * (LINE_BYTES // 4)
    (tmp_path / "a.csv").write_text(f"text,note\n{long},x\n{long}, {long}\nb,x\n")
    refused = []
    assert [text for _, text in read_texts(tmp_path, refused.append)] == [long.strip()]
    assert [(one.where, one.whole) for one in refused] == [("a.csv", True)]


def test_a_field_of_ids_that_is_named_must_be_there(tmp_path, model):
    path = tmp_path / "text.jsonl"
    path.write_text('{"text": "a man plays", "key": "one"}\n{"text": "water"}\n')
    assert list(read_texts(path, pytest.fail)) == [("text.jsonl:1", "a man plays"), ("text.jsonl:2", "water")]
    refused = []
    assert list(read_texts(path, refused.append, id_column="key")) == [("one", "a man plays")]
    assert list(map(str, refused)) == ["text.jsonl:2: no 'key' (id_column) in it"]


def test_what_cannot_be_is_refused_at_the_door(tmp_path, model, text):
    for asked, line in (
        ({"layers": (9,)}, r"layers=\[9\] must lie between 0 and"),
        ({"engine": "spark"}, "engine='spark' must be one of serial, processes, ray"),
        ({"workers": 0}, "workers=0 must be a whole number of at least 1"),
        ({"address": "auto"}, "address and gpus go with engine='ray'"),
        ({"engine": "ray", "gpus": 0.5}, "gpus=0.5 must go with device='cuda', got device='cpu'"),
        ({"vectors": "int4"}, "vectors='int4' must be one of float32, float16"),
        ({"model": f"sif:{model}"}, "weighs words by all texts together"),
    ):
        with pytest.raises(ValueError, match=line):
            embed(text, tmp_path / "out", **{"model": model} | asked)
    with pytest.raises(DataError, match=r"must name .txt, .jsonl, .csv or .parquet"):
        embed(tmp_path / "none", tmp_path / "out", model)
    (tmp_path / "blank.jsonl").write_text('\n{"title": "no text"}\n')
    with pytest.raises(
        DataError, match=r"found none \(1 left out, the first: blank.jsonl:2: no 'text' \(text_column\) in it\)"
    ):
        embed(tmp_path / "blank.jsonl", tmp_path / "out", model)
    assert not (tmp_path / "out").exists()
    with pytest.raises(DataError, match=r"must hold a manifest.json"):
        status(tmp_path)


def test_a_run_that_is_cancelled_keeps_what_is_done(tmp_path, model, text):
    def cancel(done, total):
        if done:
            raise InterruptedError

    with pytest.raises(InterruptedError):
        embed(text, tmp_path / "out", model, progress=cancel)
    assert status(tmp_path / "out").done == 1
    assert embed(text, tmp_path / "out", model).encoded < 40
