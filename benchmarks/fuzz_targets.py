"""What `benchmarks.fuzz` feeds its damaged cases to: `TARGETS[name](folder)` is a function of a random generator."""

import bz2
import contextlib
import gzip
import io
import json
import lzma
import os
import random
import shutil
import tarfile
import zipfile
from collections.abc import Callable
from pathlib import Path

Case = Callable[[random.Random], object]

WORDS = (
    b"",
    b"\0",
    b"\xff\xfe",
    b"\xef\xbb\xbf",
    b"\r",
    b"\n\n",
    b'"',
    b"'",
    b"NaN",
    b"1e999",
    b"-0",
    b"[" * 2000,
    b"{" * 500,
)
WORDS += (
    b"../../etc/passwd",
    b"/etc/passwd",
    b"%00",
    b"%",
    b"\xed\xa0\x80",
    "\u202e\U0001f9ea".encode(),
    b"9" * 400,
    b"null",
)


def damaged(draw: random.Random, data: bytes) -> bytes:
    """A file in which a few things are no longer as they were; one in twelve is sound."""
    found = bytearray(data)
    if draw.random() < 1 / 12:
        return data
    for _ in range(draw.choice((1, 1, 1, 2, 3, 8))):
        at = draw.randrange(len(found) + 1)
        size = draw.choice((1, 1, 2, 4, 8, 64, 1024))
        match draw.randrange(7):
            case 0 | 1 if found:
                found[min(at, len(found) - 1)] = draw.randrange(256)
            case 2:
                del found[at : at + size]
            case 3:
                found[at:at] = found[at : at + size]
            case 4:
                found[at:at] = draw.choice(WORDS)
            case 5:
                found[at : at + 8] = draw.choice((2**31, 2**32 - 1, 2**63 - 1, 2**40)).to_bytes(8, "little")
            case 6:
                del found[at if draw.random() < 0.3 else len(found) :]
    return bytes(found)


PAIRS = [("A man is playing a guitar.", "Someone makes music, loudly", 4.2), ("Zwei Hunde", "猫が寝る", 0.0)] * 6


def table(kind: str) -> bytes:
    """Twelve pairs in a format."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    rows = [{"sentence1": a, "sentence2": b, "score": s} for a, b, s in PAIRS]
    if kind in ("csv", "tsv"):
        mark = "," if kind == "csv" else "\t"
        lines = [mark.join(rows[0]), *(mark.join(f'"{cell}"' for cell in row.values()) for row in rows)]
        return "\n".join(lines).encode()
    if kind == "jsonl":
        return "\n".join(json.dumps(row) for row in rows).encode()
    if kind == "json":
        return json.dumps(rows).encode()
    out = io.BytesIO()
    pq.write_table(pa.Table.from_pylist(rows), out)
    return out.getvalue()


def sheets(folder: Path) -> Case:
    """Tables that a visitor uploads, as pairs, as texts with labels and as lines."""
    from whitelab.datasets import Upload, load_labelled, load_text, open_sheet

    sound = {kind: table(kind) for kind in ("csv", "tsv", "json", "jsonl", "parquet")}

    def case(draw: random.Random) -> None:
        kind = draw.choice(list(sound))
        file = Upload(f"mine.{kind}", damaged(draw, sound[kind]))
        match draw.randrange(3):
            case 0:
                sheet = open_sheet(file)
                sheet.preview()
                sheet.pairs(0, 1, 2)
            case 1:
                load_labelled(file)
            case 2:
                load_text(Upload("mine.txt", file.data))

    return case


def tasks(folder: Path) -> Case:
    """A folder of pairs by its path, in one of the benchmarks' layouts; Parquet among them, read apart."""
    from whitelab.datasets import discover, load, parquet

    parquet.apart = True
    layouts = {
        "sts-b-test.csv": "\n".join(f"{s}\t{a}\t{b}" for a, b, s in PAIRS).encode(),
        "stsb-en-test.csv": table("csv").partition(b"\n")[2],
        "SICK_test_annotated.txt": b"pair_ID\tsentence_A\tsentence_B\trelatedness_score\tentailment_judgment\n"
        + "\n".join(f"{i}\t{a}\t{b}\t{s}\tNEUTRAL" for i, (a, b, s) in enumerate(PAIRS)).encode(),
        "stsbenchmark-sts/test.jsonl.gz": gzip.compress(table("jsonl")),
        "mine.parquet": table("parquet"),
        "mine.csv": table("csv"),
    }

    def case(draw: random.Random) -> None:
        name = draw.choice([one for one in layouts for _ in range(1 if one.endswith("parquet") else 6)])
        place = folder / "tasks"
        shutil.rmtree(place, ignore_errors=True)
        (place / name).parent.mkdir(parents=True)
        data = damaged(draw, layouts[name])
        (place / name).write_bytes(gzip.compress(damaged(draw, table("jsonl"))) if name.endswith("gz") else data)
        for info in discover(place):
            load(place, info.name, info.split_like(), keep_going=draw.random() < 0.5)

    return case


def vectors(folder: Path) -> Case:
    """Arrays that a visitor brings, and a map or an export that is read again."""
    import numpy as np
    from safetensors.numpy import save

    from whitelab.datasets import Upload
    from whitelab.encoding.precomputed import read_vectors

    first, gold = np.arange(24, dtype=np.float32).reshape(6, 4) + 1, np.linspace(0, 5, 6)
    named = {"first": first, "second": first[::-1].copy(), "gold": gold}
    npy, npz = io.BytesIO(), io.BytesIO()
    np.save(npy, first)
    np.savez(npz, **named)
    sound = {"npy": npy.getvalue(), "npz": npz.getvalue(), "safetensors": save(named), "parquet": lists(named)}

    def case(draw: random.Random) -> None:
        kind = draw.choice([one for one in sound for _ in range(1 if one == "parquet" else 8)])
        read_vectors([Upload(f"mine.{kind}", damaged(draw, sound[kind]))], None, None)

    return case


def lists(named: dict) -> bytes:
    """Arrays as columns of a Parquet file."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    out = io.BytesIO()
    pq.write_table(pa.table({name: pa.array(values.tolist()) for name, values in named.items()}), out)
    return out.getvalue()


def searches(folder: Path) -> Case:
    """Retrieval sets, loose and packed: zip and tar, with members that lie about their size and their place."""
    from whitelab.datasets import Upload, load_retrieval

    files = {
        "corpus.jsonl": b'{"_id": "d1", "title": "a", "text": "b"}\n{"_id": "d2", "text": "c"}\n',
        "queries.jsonl": b'{"_id": "q1", "text": "what"}\n',
        "qrels/test.tsv": b"query-id\tcorpus-id\tscore\nq1\td1\t2\nq1\td2\t0\n",
    }

    def one_damaged(draw: random.Random) -> dict[str, bytes]:
        chosen = draw.choice((*files, ""))
        return {name: damaged(draw, data) if name == chosen else data for name, data in files.items()}

    def packed(draw: random.Random) -> bytes:
        out, place = io.BytesIO(), draw.choice(("", "set/", "set/", "../", "/", "a/../../"))
        if draw.random() < 0.5:
            with zipfile.ZipFile(out, "w", draw.choice((zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED))) as pack:
                for name, data in one_damaged(draw).items():
                    pack.writestr(place + name, data)
                if draw.random() < 0.2:
                    pack.writestr("corpus.jsonl", b"0" * 50_000_000)
            return out.getvalue()
        with tarfile.open(fileobj=out, mode=draw.choice(("w", "w:gz"))) as pack:
            for name, data in one_damaged(draw).items():
                info = tarfile.TarInfo(place + name)
                info.size = len(data)
                pack.addfile(info, io.BytesIO(data))
                if draw.random() < 0.2:
                    link = tarfile.TarInfo("corpus.jsonl")
                    link.type, link.linkname = draw.choice((tarfile.SYMTYPE, tarfile.LNKTYPE)), "/etc/passwd"
                    pack.addfile(link)
        return out.getvalue()

    def case(draw: random.Random) -> None:
        if draw.random() < 0.5:
            kind = draw.choice(("zip", "tar.gz", "tar"))
            data = packed(draw)
            load_retrieval([Upload(f"set.{kind}", damaged(draw, data) if draw.random() < 0.5 else data)])
        else:
            loose = [Upload(name.rpartition("/")[2], data) for name, data in one_damaged(draw).items()]
            load_retrieval(loose, keep_going=draw.random() < 0.5)

    return case


def texts(folder: Path) -> Case:
    """Files of a corpus, packed and not, in what encoding and with what line ends there are."""
    from whitelab.corpus.texts import read_texts

    pack = {"": bytes, ".gz": gzip.compress, ".bz2": bz2.compress, ".xz": lzma.compress}
    sound = {".txt": "one\ntwo men\n" * 30, ".jsonl": '{"id": 1, "text": "one"}\n' * 30, ".parquet": _text_table()}
    sound[".csv"] = "id,text\n" + '1, "one, two\nmen"\n' * 30

    def case(draw: random.Random) -> None:
        kind, end = draw.choice(list(sound)), draw.choice(list(pack))
        path = folder / f"corpus{kind}{end if kind != '.parquet' else ''}"
        data = sound[kind]
        if isinstance(data, str):
            data = draw.choice(("", "sep=,\n")) * (kind == ".csv") + data
            data = data.replace("\n", draw.choice(("\n", "\r\n", "\r")))
            data = data.encode(draw.choice(("utf-8", "utf-8-sig", "utf-16", "utf-32")))
        data = damaged(draw, data)
        path.write_bytes(data if kind == ".parquet" else damaged(draw, pack[end](data)))
        for _ in read_texts(path, lambda line: None):
            pass
        path.unlink()

    return case


def _text_table() -> bytes:
    import pyarrow as pa
    import pyarrow.parquet as pq

    out = io.BytesIO()
    pq.write_table(pa.table({"id": list(range(30)), "text": ["one sentence"] * 30}), out)
    return out.getvalue()


def settings(folder: Path) -> Case:
    """What a link or an option says: settings, variants, names of models and of data."""
    from whitelab.datasets import discover
    from whitelab.encoding.checkpoints import check_model
    from whitelab.encoding.names import ModelName
    from whitelab.scoring.setting import parse_settings
    from whitelab.training.objectives import parse as objective
    from whitelab.whitening import canonical

    sound = {
        "mean/L1+L-1:soft:gamma=0.5@256 aggregate=mean fit=cross;L*:pca": lambda text: parse_settings(text, 7),
        "group:groups=8,eps=0.1": canonical,
        "random@7:bundled:3": ModelName.parse,
        "trained:../../etc": check_model,
        "../../../etc/passwd": discover,
        "whitenedcse:positives=3,groups=8": objective,
    }

    def case(draw: random.Random) -> None:
        text = draw.choice(list(sound))
        words = damaged(draw, text.encode()).decode("utf-8", "replace")
        sound[text](words * draw.choice((1, 1, 1, 1, 2000)))

    return case


def commands(folder: Path) -> Case:
    """Words of the command line, up to where a model would be loaded."""
    from whitelab.cli import main

    calls = (
        "score --data demo --layers 1,6 --whitening pca --k 128 --fit cross",
        "datasets --data FOLDER",
        "models",
        "whiten --layers 1 --export npz --out FOLDER/map.npz",
        "corpus status FOLDER",
        "corpus fit FOLDER --whitening pca --k 3",
        "compare --settings L1;L6 --preset mteb",
        "download --list",
        "retrieve --data FOLDER --layers 6",
    )

    def case(draw: random.Random) -> None:
        words = draw.choice(calls).replace("FOLDER", str(folder)).split()
        at = draw.randrange(1, len(words) + 1)
        with contextlib.suppress(UnicodeDecodeError):
            words[at:at] = [damaged(draw, draw.choice(words).encode()).decode()]
        words += ["--model", str(folder / "no-model")] if words[0] in ("score", "whiten", "compare", "retrieve") else []
        out = io.StringIO()
        with contextlib.redirect_stdout(out), contextlib.redirect_stderr(out):
            status = main([word.replace("\0", "") for word in words])
        if status not in (0, 2) or "Traceback" in out.getvalue():
            raise RuntimeError(f"status {status}: {words}: {out.getvalue()[-300:]}")

    return case


def models(folder: Path) -> Case:
    """A folder of a model: configuration, tokenizer, modules and the header of its weights."""
    from whitelab.encoding.embed import embed
    from whitelab.encoding.encoders import load_encoder

    os.environ["TOKENIZERS_PARALLELISM"] = "false"
    sound = _tiny(folder / "sound")

    def case(draw: random.Random) -> None:
        place = folder / "model"
        shutil.rmtree(place, ignore_errors=True)
        shutil.copytree(sound, place)
        names = [path for path in sorted(place.rglob("*")) if path.is_file()]
        for path in draw.sample(names, draw.choice((1, 1, 2))):
            data = path.read_bytes()
            if path.suffix == ".safetensors":  # its header alone: what numbers mean is nobody's to say
                size = 8 + int.from_bytes(data[:8], "little")
                path.write_bytes(damaged(draw, data[:size]) + data[size:])
            else:
                path.write_bytes(damaged(draw, data))
        name = str(place)
        encoder = load_encoder(draw.choice((name, f"{name}:1", f"static:{name}", f"random:{name}", f"output:{name}")))
        embed(encoder, ["a man plays", "water"])

    return case


def _tiny(folder: Path) -> Path:
    """A BERT of two layers with random weights, and the modules of sentence-transformers."""
    import torch
    from transformers import BertConfig, BertModel, BertTokenizerFast

    if folder.exists():
        return folder
    folder.mkdir(parents=True)
    words = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "a", "man", "plays", "water"]
    BertTokenizerFast(vocab={word: i for i, word in enumerate(words)}).save_pretrained(folder)
    torch.manual_seed(0)
    shape = {"hidden_size": 16, "num_hidden_layers": 2, "num_attention_heads": 2, "intermediate_size": 32}
    BertModel(BertConfig(vocab_size=len(words), max_position_embeddings=32, **shape)).save_pretrained(folder)
    (folder / "modules.json").write_text(
        json.dumps(
            [
                {"idx": 0, "name": "0", "path": "", "type": "sentence_transformers.models.Transformer"},
                {"idx": 1, "name": "1", "path": "1_Pooling", "type": "sentence_transformers.models.Pooling"},
            ]
        )
    )
    (folder / "1_Pooling").mkdir()
    pooling = {"word_embedding_dimension": 16, "pooling_mode_mean_tokens": True, "pooling_mode_cls_token": False}
    (folder / "1_Pooling" / "config.json").write_text(json.dumps(pooling))
    return folder


def controls(folder: Path) -> Case:
    """What the counting itself is tested with: cases are read, break, end their process or write elsewhere."""

    def case(draw: random.Random) -> None:
        match draw.randrange(4):
            case 1:
                raise KeyError("a fault")
            case 2:
                os.abort()
            case 3:
                outside = folder.parent / f"{folder.name}-outside"
                outside.write_text("")
                outside.unlink()

    return case


TARGETS: dict[str, Callable[[Path], Case]] = {
    one.__name__: one for one in (sheets, tasks, vectors, searches, texts, settings, commands, models)
}
