"""Damaged input: read or refused in one line, whatever it is; the counting counts what it says."""

import random
import subprocess
import sys

import pytest
from processes import ROOT

from benchmarks import fuzz_targets
from benchmarks.fuzz import fuzz
from whitelab.corpus import texts

FEW = {"tasks": 15, "models": 15}  # of the slow ones; of the others forty


@pytest.mark.parametrize("target", fuzz_targets.TARGETS)
def test_damaged_input_is_read_or_refused_and_nothing_else_happens(target):
    found = fuzz(target, FEW.get(target, 40), seed=1)
    assert found.found == {}
    assert (found.errors, found.signals, found.hangs, found.outside) == (0, 0, 0, 0)
    assert found.refused or target == "texts"  # whose lines are refused one by one


def test_the_sound_files_of_a_corpus_have_every_form_and_are_read_whole(tmp_path, monkeypatch):
    seen, read = set(), texts.read_texts

    def noting(path, refuse):
        kind = texts.kind_of(path)
        text_count = sum(1 for _ in read(path, pytest.fail))
        assert text_count == (60 if kind == ".txt" else 30)
        data = path.read_bytes()
        if path.suffix == kind != ".parquet":
            encoding, start, end_of_line = texts.form_of(data, kind)
            line = data[start:].decode(encoding).split(end_of_line)[0]
            seen.add((kind, encoding, start > 0, end_of_line, line[-1:] == "\r", line.startswith("sep=")))
        return ()

    monkeypatch.setattr(texts, "read_texts", noting)
    monkeypatch.setattr(fuzz_targets, "damaged", lambda draw, data: data)
    case = fuzz_targets.texts(tmp_path)
    for number in range(3000):
        case(random.Random(number))
    assert len(seen) == (2 + 2) * 4 * 3  # kinds, a .csv with sep= and without; encodings; line ends


def test_what_breaks_ends_its_process_or_writes_elsewhere_is_counted_and_can_be_made_again():
    draws = [random.Random(f"0 {number}").randrange(4) for number in range(12)]
    found = fuzz("controls", 12)
    kinds = (found.read - found.outside, found.errors, found.signals, found.outside)
    assert kinds == tuple(draws.count(kind) for kind in range(4))
    again = {line: case for line, case in found.found.items() if line == "SIGABRT"}
    assert draws[again["SIGABRT"]] == 2


@pytest.mark.linux
def test_cases_that_are_led_by_coverage_are_counted_in_the_same_way():
    found = fuzz("controls", 25, guided=True)
    assert found.read + found.errors + found.signals == 25
    assert min(found.read - found.outside, found.errors, found.signals, found.outside) > 0
    assert {"KeyError: 'a fault'", "SIGABRT"} < {*found.found}


@pytest.mark.linux
def test_settings_that_are_led_are_read_or_refused_and_nothing_else_happens():
    found = fuzz("settings", 200, guided=True)
    assert found.found == {}
    assert min(found.read, found.refused) > 0


def test_the_command_prints_what_was_counted():
    run = subprocess.run(
        [sys.executable, "-m", "benchmarks.fuzz", "--cases", "9", "--seed", "1", "--only", "settings"],
        cwd=ROOT,
        capture_output=True,
        text=True,
    )
    found = fuzz("settings", 9, seed=1)
    assert run.returncode == 0, run.stderr
    assert f"| settings | 9 | {found.read} | {found.refused} | 0 | 0 | 0 | 0 |" in run.stdout


def test_a_case_is_made_from_its_number_alone():
    data = b"a few bytes of a file, " * 9
    one, two = ([fuzz_targets.damaged(random.Random(f"0 {n}"), data) for n in range(50)] for _ in range(2))
    assert one == two
    assert len({*one}) > 35
