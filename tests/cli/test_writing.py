"""How numbers are written on a line, and lines where stdout has few letters."""

import io
import json
import sys

import pytest
from tiny import write_pairs

from whitelab.cli import main, writing
from whitelab.cli.writing import SECONDS, number, progress, short


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (None, "undefined"),
        (float("nan"), "undefined"),
        (81.554, "81.55"),
        (-0.004, "0.00"),
        (-0.006, "-0.01"),
        (0.0, "0.00"),
    ],
)
def test_what_rounds_to_zero_has_no_sign(value, text):
    assert number(value) == text


def test_short_numbers_have_four_digits():
    assert [short(value) for value in (None, 12.34567, 0.00012345678)] == ["undefined", "12.35", "0.0001235"]


@pytest.mark.parametrize(("even", "left"), [(True, (", 90 s left", ", 80 s left")), (False, ("", ""))])
def test_long_work_says_how_far_it_is_in_a_file_too_and_short_work_nothing(monkeypatch, capsys, even, left):
    now = 0.0
    monkeypatch.setattr(writing.time, "monotonic", lambda: now)
    show = progress("measuring", "%", even)
    for now in (1.0, SECONDS, SECONDS + 1.0, 2.0 * SECONDS):
        show(int(now), 100)
    assert capsys.readouterr().err.splitlines() == [f"measuring 10 %{left[0]}", f"measuring 20 %{left[1]}"]


def test_what_was_there_at_the_first_report_does_not_count_as_speed(monkeypatch, capsys):
    moments = iter([0.0, SECONDS, 2.0 * SECONDS])
    monkeypatch.setattr(writing.time, "monotonic", lambda: next(moments))
    show = progress("encoding", "texts")
    for done in (900, 910):
        show(done, 1000)
    left = f", {9 * SECONDS:.0f} s left"
    assert capsys.readouterr().err.splitlines() == [
        "encoding 900 of 1\u202f000 texts",
        f"encoding 910 of 1\u202f000 texts{left}",
    ]


@pytest.mark.parametrize("name", ["naïve ✓.csv", "bad\udcff.csv"])
@pytest.mark.parametrize("coding", ["ascii", "latin-1", "utf-8"])
def test_a_result_is_written_whatever_letters_stdout_has(tmp_path, monkeypatch, name, coding):
    data = tmp_path / name
    try:
        write_pairs(data)
    except (OSError, UnicodeError):
        pytest.skip("this system has no such file names")
    for options in ([], ["--json"]):
        # Python's own stdout lets bytes that are not UTF-8 through where the locale is C.
        out = io.TextIOWrapper(io.BytesIO(), coding, "surrogateescape")
        monkeypatch.setattr(sys, "stdout", out)
        assert main(["datasets", "--data", str(data), *options]) == 0
        written = out.buffer.getvalue().decode(coding)
        assert json.loads(written)["data"] == str(data) if options else "splits" in written
