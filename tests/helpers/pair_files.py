"""Writing files of sentence pairs, in the formats and layouts they come in."""

import json
from pathlib import Path

import pytest

HEADER = "sentence1\tsentence2\tscore\n"
GOOD = ("a cat", "a dog", "2.5")
SICK_HEAD = "pair_ID\tsentence_A\tsentence_B\trelatedness_score\tentailment_judgment\n"


def write(path: Path, content: str | bytes) -> Path:
    """Bytes as they are; text as UTF-8 without touching its line ends."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content if isinstance(content, bytes) else content.encode("utf-8"))
    return path


def write_records(path: Path, records: list[dict]) -> Path:
    if path.suffix == ".parquet":
        import pyarrow as pa
        import pyarrow.parquet as pq

        pq.write_table(pa.Table.from_pylist(records), path)
        return path
    if path.suffix == ".jsonl":
        return write(path, "".join(json.dumps(record) + "\n" for record in records))
    delimiter = "," if path.suffix == ".csv" else "\t"
    lines = [records[0], *(record.values() for record in records)]
    return write(path, "".join(delimiter.join(map(str, line)) + "\n" for line in lines))


def whiteningbert(*rows: tuple[str, str, str]) -> str:
    return "".join("\t".join(("PAD",) * 4 + (score, first, second)) + "\n" for score, first, second in rows)


def reasons(error: pytest.ExceptionInfo) -> list[tuple[int, str]]:
    return [(problem.line, problem.reason) for problem in error.value.problems]
