"""Laws of the benchmark harness: what is timed, divided and written is what the tables say."""

import re
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
import torch
from processes import run_python

from benchmarks import __main__ as command
from benchmarks import harness, rivals, spaces
from benchmarks.against import changes, report
from benchmarks.harness import (
    Options,
    Spread,
    Table,
    Timings,
    compared,
    exponent,
    figures,
    mean_and_deviation,
    publish,
    published,
    side_by_side,
)


@pytest.fixture
def clock(monkeypatch):
    """A clock that moves only when a run says so."""

    class Clock:
        now = 0.0

    monkeypatch.setattr(harness.time, "perf_counter", lambda: Clock.now)
    return Clock


def takes(clock, seconds, calls=None, name=""):
    def run():
        clock.now += seconds
        if calls is not None:
            calls.append(name)

    return run


def test_a_spread_holds_the_quartiles():
    values = [5.0, 1.0, 4.0, 2.0]
    assert Spread.of(values) == Spread(*np.percentile(values, (25, 50, 75)))
    assert Spread.of([3.0]) == Spread(3.0, 3.0, 3.0)
    assert Spread(1.0, 2.5, 1234.5).text(" s") == "2.50 s [1.00, 1,234]"


@pytest.mark.parametrize(
    ("value", "text"),
    [(0.0, "0"), (1.234, "1.23"), (0.012345, "0.0123"), (98765.4, "98,765"), (12.3456, "12.3"), (float("nan"), "nan")],
)
def test_three_figures_are_shown_without_an_exponent(value, text):
    assert figures(value) == text


def test_runs_take_turns_and_every_second_round_is_reversed(clock):
    calls = []
    runs = {name: takes(clock, seconds, calls, name) for name, seconds in (("a", 1.0), ("b", 2.0))}
    found = side_by_side(runs, 3)
    assert "".join(calls) == "ab" + "ab" + "ba" + "ab"
    assert found.seconds == {"a": (1.0,) * 3, "b": (2.0,) * 3}
    assert found.ratio("b", "a") == Spread(2.0, 2.0, 2.0)


def test_without_warming_nothing_runs_untimed(clock):
    calls = []
    side_by_side({"a": takes(clock, 1.0, calls, "a")}, 2, warm=False)
    assert calls == ["a", "a"]


def test_a_part_of_the_work_is_scaled_and_a_run_may_time_itself(clock):
    found = side_by_side({"part": takes(clock, 2.0), "own": lambda: 7.0}, 1, {"part": 10.0})
    assert found.seconds == {"part": (20.0,), "own": (7.0,)}


def test_a_ratio_is_divided_within_each_round():
    """A machine that is ten times slower in some rounds leaves the ratio alone."""
    found = Timings({"slow": (2.0, 20.0, 2.0, 30.0), "fast": (1.0, 10.0, 1.0, 10.0)})
    assert found.ratio("slow", "fast").median == 2.0
    assert compared(found, "fast")[1][2] == ""
    assert compared(found, "fast")[0] == ("slow", "11.0 s [2.00, 22.5]", "2.00 x [2.00, 2.25]")


@pytest.mark.parametrize("power", [0.5, 1.0, 3.0])
def test_the_exponent_of_a_power_law_is_found(power):
    sizes = [1.0, 2.0, 5.0]
    assert exponent(sizes, [7 * size**power for size in sizes]) == pytest.approx(power)


def table(cell):
    return Table("A title", ("", "seconds"), (("one", cell),), ("A note.",))


def test_a_table_is_markdown():
    expected = "### A title\n\n|  | seconds |\n| --- | --- |\n| one | 1 s |\n\nA note."
    assert table("1 s").markdown() == expected


def test_results_replace_those_of_the_same_benchmark_and_nothing_else(tmp_path):
    path = tmp_path / "README.md"
    path.write_text("# Before\n\n<!-- results of a -->\nold\n<!-- end of a -->\n\nBetween\n\nAfter\n", "utf-8")
    publish("a", [table("1 s")], "a machine", path)
    publish("b", [table("2 s")], "another", path)
    publish("a", [table("3 s")], "a machine", path)
    text = path.read_text("utf-8")
    assert text.startswith("# Before\n\n<!-- results of a -->\n\n### A title")
    assert "old" not in text
    assert "1 s" not in text
    assert text.index("3 s") < text.index("*a machine*") < text.index("Between") < text.index("After")
    assert text.index("After") < text.index("2 s") < text.index("*another*")
    assert text.count("results of a ") == text.count("end of a ") == 1


def test_what_was_published_is_read_again(tmp_path):
    told = [Table("A title", ("", "seconds"), (("one", "1 s"), ("two", ""))), Table("Another", ("batch",), (("64",),))]
    path = tmp_path / "README.md"
    publish("a", [table("3 s")], "a machine", path)
    publish("b", told, "another", path)
    text = path.read_text("utf-8")
    assert published("b", text) == (told, "another")
    assert published("a", text) == ([replace(table("3 s"), notes=())], "a machine")
    assert published("c", text) == ([], "")


def test_a_ratio_that_fell_is_slower_on_any_hardware_and_seconds_beside_it_say_nothing():
    def sides(ours, theirs):
        return [
            Table("Sides", ("", "seconds", "times whitelab's"), (("whitelab", ours, ""), ("theirs", "9 s", theirs)))
        ]

    then, now = sides("1 s", "9.00 x [8.00, 9.50]"), sides("9 s", "3.00 x")
    for same in (True, False):
        (found,) = changes(then, now, same_hardware=same)
        assert (found.row, found.column, found.slower) == ("theirs", "times whitelab's", pytest.approx(3))
    expected = ("a", "theirs", "times whitelab's", "9.00 x [8.00, 9.50]", "3.00 x", "3.00")
    assert report({"a": [found]}).rows == (expected,)


def test_where_rows_are_of_whitelab_the_others_pace_is_not_its_own():
    def sides(ours, theirs):
        rows = (("whitelab, float32", ours), ("ONNX Runtime", theirs))
        return [Table("Encoding", ("", "speed-up over sentence-transformers"), rows)]

    found = list(changes(sides("3 x", "2 x"), sides("2 x", "1 x"), same_hardware=True))
    assert [one.row for one in found] == ["whitelab, float32"]


@pytest.mark.parametrize(
    ("column", "then", "now", "slower"),
    [
        ("times its anchor", "2.00 x [1.9, 2.1]", "3.00 x", 1.5),
        ("speed-up over sentence-transformers", "3.00 x", "2.00 x", 1.5),
        ("share", "80 %", "40 %", 2),
        ("seconds", "0.500 s [0.1, 0.9]", "1,000 s", 2000),
        ("time", "59.0 s", "2 min", 120 / 59),
        ("sentences a second", "432", "108", 4),
    ],
)
def test_every_figure_of_speed_knows_its_direction(column, then, now, slower):
    one, other = ([Table("A", ("", column), (("row", cell),))] for cell in (then, now))
    (found,) = changes(one, other, same_hardware=True)
    assert found.slower == pytest.approx(slower)
    assert bool(report({"a": [found]}).rows)
    (back,) = changes(other, one, same_hardware=True)
    assert not report({"a": [back]}).rows


def test_seconds_of_other_hardware_and_tables_of_other_sizes_are_not_held_against():
    one = [Table("At 7 layers", ("", "seconds"), (("row", "1 s"),))]
    assert not list(changes(one, one, same_hardware=False))
    assert not list(changes(one, [replace(one[0], title="At 9 layers")], same_hardware=True))
    assert "on other hardware: a, b" in report({"a": [], "b": []}).notes[-1]


def test_objectives_are_told_apart_by_their_batch():
    def pace(rate):
        return [
            Table("Steps", ("objective", "batch", "steps a second"), (("SimCSE", "64", rate), ("SimCSE", "128", "1")))
        ]

    assert [one.slower for one in changes(pace("3"), pace("1"), same_hardware=True)] == [3, 1]


def test_the_readme_has_a_place_for_every_benchmark():
    text = harness.README.read_text("utf-8")
    assert all(f"<!-- results of {name} -->" in text for name in command.BENCHMARKS)
    assert all(f"<!-- end of {name} -->" in text for name in command.BENCHMARKS)


def test_the_machine_is_named():
    line = harness.machine()
    assert torch.__version__ in line
    assert f"{torch.get_num_threads()} threads" in line


def test_the_memory_of_a_run_is_its_high_water_mark_above_what_was_there(monkeypatch):
    """With what Linux would tell put in its place."""
    told, seen = {"VmRSS": 100, "VmHWM": 100}, []
    monkeypatch.setattr(harness, "give_back_memory", lambda: seen.append("given back"))
    monkeypatch.setattr(Path, "write_text", lambda path, text: seen.append((str(path), text)))
    monkeypatch.setattr(harness, "_status", told.__getitem__)
    assert harness.peak_bytes(lambda: told.update(VmHWM=164)) == 64
    assert seen == ["given back", ("/proc/self/clear_refs", "5")]  # the mark is set back before the run


def test_memory_is_not_said_where_the_system_does_not_tell(monkeypatch):
    def refused(path, text):
        raise PermissionError

    monkeypatch.setattr(Path, "write_text", refused)
    assert harness.peak_bytes(lambda: pytest.fail("ran for nothing")) is None


@pytest.mark.linux
def test_memory_that_a_run_takes_is_seen_and_what_it_does_not_is_not():
    size = 64 * 2**20
    assert harness.peak_bytes(lambda: np.ones(size, dtype=np.uint8)) > 0.9 * size
    assert harness.peak_bytes(lambda: None) < 0.1 * size


def test_made_up_layers_have_the_rank_of_a_layernorm_and_averages_have_all():
    space = spaces.made_up(3, 16, 50)
    assert [space.moments([i]).eigen.rank for i in range(3)] == [15, 15, 15]
    assert space.moments([0, 1]).eigen.rank == 16
    assert set(space.first.tolist()).isdisjoint(space.second.tolist())


def test_batches_of_rows_add_up_and_are_the_same_every_time():
    found = list(spaces.row_batches(1000, 4, 300))
    assert [len(batch) for batch in found] == [300, 300, 300, 100]
    assert all(torch.equal(a, b) for a, b in zip(found, spaces.row_batches(1000, 4, 300), strict=True))


def test_the_rivals_give_the_same_scores():
    """A benchmark against something that computes another number would say nothing."""
    import whitelab

    space = spaces.made_up(2, 12, 60)
    x, first, second = (space.values[1].double().numpy(), space.first.numpy(), space.second.numpy())
    mean, kernel = rivals.su_whitening(x[np.concatenate([first, second])], 5)
    z = (x - mean) @ kernel
    expected = whitelab.k_curve(space, whitelab.Setting((1,), "pca")).spearman[4]
    assert rivals.spearman(z[first], z[second], space.gold.numpy()) == pytest.approx(expected, abs=1e-9)


def test_pooling_again_is_the_mean_of_the_tokens_that_count():
    hidden = [np.arange(12.0).reshape(1, 3, 4), np.ones((1, 3, 4))]
    found = rivals.pooled_again(hidden, np.array([[1, 1, 0]]), (0, 1))
    np.testing.assert_allclose(found, (hidden[0][:, :2].mean(1) + 1) / 2)


def test_the_runs_of_an_objective_are_one_row_of_means_and_deviations():
    from benchmarks.training import Runs
    from whitelab.training import StepRecord

    def record(step, spearman, **more):
        return StepRecord(step, spearman=spearman, alignment=0.1, uniformity=-2.0, effective_rank=200.4, **more)

    ends = tuple((record(0, 50.0), record(9, value)) for value in (60.0, 61.0, 62.0))
    row = Runs("simcse", 64, ends, (10.0, 20.0, 30.0)).cells()
    assert row[:4] == ("SimCSE", "64", "50.00 → 61.00 ± 1.00", "+11.00 ± 1.00")
    assert row[4:] == ("0.100 → 0.100 ± 0.000", "-2.00 → -2.00 ± 0.00", "200 → 200 ± 0", "20.0")
    assert mean_and_deviation([5.0], 1) == "5.0"
    fallen = Runs("mse", 64, ((record(0, 50.0), record(9, None, stop="collapsed", message="it fell")),), (1.0,))
    assert fallen.moved("spearman", 2) == "not defined"
    assert fallen.notes() == ("MSE: it fell.",)


def test_the_corpus_holds_no_scored_sentence(tmp_path):
    from tiny import write_task

    from benchmarks.training import scored_and_corpus

    write_task(tmp_path / "data", "sts12")
    write_task(tmp_path / "data", "sts13", subsets=3)
    pairs, corpus = scored_and_corpus(str(tmp_path / "data"))
    assert pairs.task == "sts12"
    assert corpus
    assert not set(corpus) & set(pairs.sentences)
    alone, own = scored_and_corpus("demo")
    assert own == alone.sentences


PACED = {
    "simcse": None,
    "whitenedcse:groups=16": "whitenedcse:whitening=none",
    "w-mse:embedding=32": "mse:embedding=32",
}


@pytest.fixture(scope="module")
def tiny_config(tmp_path_factory):
    from dataclasses import replace

    from tiny import build_model

    from benchmarks.pace import CONFIG

    folder = tmp_path_factory.mktemp("pace")
    build_model(folder / "model")
    return replace(CONFIG, model=str(folder / "model"))


def test_the_pace_of_every_objective_is_a_row_for_each_batch(tiny_config):
    from tiny import SENTENCES

    from benchmarks import pace

    found = pace.paces(tiny_config, SENTENCES, pace.BATCHES[:2], 1, 2, PACED)
    assert [row[1] for row in found.rows] == ["64"] * 3 + ["128"] * 3
    assert [row[0] for row in found.rows[:3]] == ["SimCSE", "WhitenedCSE (groups = 16)", "W-MSE (embedding = 32)"]
    assert all(len(row) == len(found.header) for row in found.rows)
    assert "peak memory" not in found.header
    assert [bool(row[-1]) for row in found.rows[:3]] == [False, True, True]


def test_what_is_paced_is_defined_at_every_batch_and_so_is_the_same_without_whitening():
    from benchmarks import pace
    from whitelab.training import objectives

    for spec, control in pace.PACED.items():
        for one in filter(None, (spec, control)):
            found = objectives.objective(one)
            assert found.batch(one, 384) <= min(pace.BATCHES)
            assert all(batch % found.multiple(one) == 0 for batch in pace.BATCHES)
        if control:
            kept = dict(objectives.parse(control).counting)
            kept.pop("whitening", None)
            assert kept.items() <= dict(objectives.parse(spec).values).items()


def test_whitenings_share_is_what_the_step_without_it_does_not_take():
    from benchmarks.pace import share

    found = Timings({"with": (4.0, 8.0, 4.0), "without": (3.0, 6.0, 2.0)})
    assert share(found, "with", "without") == "25.0 % [25.0, 37.5]"
    assert share(found, "with", None) == ""


def test_a_step_that_cannot_be_taken_is_not_timed(tiny_config, monkeypatch):
    from tiny import SENTENCES

    from benchmarks.pace import advance
    from whitelab.training import Trainer

    trainer = Trainer(tiny_config, SENTENCES, device="cpu")
    before = [one.clone() for one in trainer.encoder.model.parameters()]
    advance(trainer, 2)
    assert trainer.step == 2
    assert all(torch.equal(a, b) for a, b in zip(before, trainer.encoder.model.parameters(), strict=True))
    monkeypatch.setattr(type(trainer), "advance", lambda self: SimpleNamespace(stop="diverged", message="it fell"))
    with pytest.raises(RuntimeError, match=r"simcse.*, batch 64: it fell"):
        advance(trainer, 1)


def test_the_memory_of_a_trainer_is_what_it_takes_beside_the_others(monkeypatch):
    """With what a GPU would tell put in its place."""
    from benchmarks.pace import started

    held, seen = {"now": 100, "most": 900}, []
    monkeypatch.setattr(torch.cuda, "memory_allocated", lambda: held["now"])
    monkeypatch.setattr(torch.cuda, "max_memory_allocated", lambda: held["most"])
    monkeypatch.setattr(torch.cuda, "reset_peak_memory_stats", lambda: held.update(most=held["now"]))
    monkeypatch.setattr(torch.cuda, "synchronize", lambda: seen.append("waited"))

    class Step:
        device = "cuda"

        def advance(self):
            held.update(most=held["most"] + 30)
            return SimpleNamespace(stop="")

    trainer, peak = started(Step, "cuda")
    assert isinstance(trainer, Step)
    assert peak == 60
    assert seen == ["waited"]


# ------------------------------------------------------------------------------------------- the command


def test_a_quick_run_prints_its_tables_and_writes_only_where_it_is_told(tmp_path, capsys):
    before, path = harness.README.read_text("utf-8"), tmp_path / "results.md"
    assert command.main(["--quick", "--only", "spearman,goals", "--readme", str(path)]) == 0
    out = capsys.readouterr().out
    assert "scipy.stats.spearmanr" in out
    assert "quick run" in out
    assert "<!-- end of goals -->" in path.read_text("utf-8")
    assert harness.README.read_text("utf-8") == before


def test_a_run_is_held_against_an_earlier_one_and_writes_nothing(tmp_path, capsys):
    before, path = harness.README.read_text("utf-8"), tmp_path / "results.md"
    assert command.main(["--only", "spearman", "--repeats", "1", "--readme", str(path)]) == 0
    faster = re.sub(r"\| [\d.]+ x \[.*?\] \|", "| 100,000 x [1, 2] |", path.read_text("utf-8"))
    path.write_text(faster, "utf-8")
    capsys.readouterr()
    assert command.main(["--only", "spearman", "--repeats", "1", "--against", str(path)]) == 0
    out = capsys.readouterr().out
    assert "| spearman | a loop over scipy.stats.spearmanr | times whitelab's | 100,000 x [1, 2] |" in out
    assert "1 of 1 figures" in out
    assert path.read_text("utf-8") == faster
    assert harness.README.read_text("utf-8") == before


def test_nothing_is_held_against_a_file_that_is_not_there_or_by_a_quick_run(tmp_path, capsys):
    for more in (["--against", str(tmp_path / "none.md")], ["--quick", "--against", str(harness.README)]):
        assert command.main(["--only", "spearman", *more]) == 2
        assert "must be a file, and held against a run that is not quick" in capsys.readouterr().err


def test_the_latency_benchmark_finds_what_it_drives_the_browser_with():
    found = run_python("import benchmarks.latency")
    assert found.returncode == 0, found.stderr


def test_an_unknown_benchmark_is_named_and_one_of_a_gpu_that_is_not_there(capsys):
    assert command.main(["--only", "speed"]) == 2
    assert "--only=speed must be among startup, spearman" in capsys.readouterr().err
    assert command.main(["--only", "spearman,gpu_sweeps"]) == 2
    assert "must name no benchmark of a GPU on a machine without one" in capsys.readouterr().err


@pytest.mark.parametrize("dim", [384, 768])
def test_the_ablations_are_the_papers_tables_for_an_encoder_of_any_width(dim):
    from benchmarks.ablations import tables
    from whitelab.training import objectives

    found = tables(dim)
    assert [title[:7] for title in found] == [f"Table {number}" for number in (3, 4, 5, 6)]
    for row in (row for rows in found.values() for row in rows):
        z = objectives.objective(row.spec).head(row.spec, dim)(
            torch.randn(objectives.objective(row.spec).positives(row.spec), 64, dim), torch.Generator()
        )
        assert torch.isfinite(z).all()
    groups = {row.name: dict(objectives.parse(row.spec).values)["groups"] for row in found["Table 4: how many groups"]}
    assert groups == {f"{size} in a group{words}": dim // size for size in (6, 2) for words in ("", ", not shuffled")}
    printed = {row.spec: row.printed for row in found["Table 5: how many positives"]}
    assert printed["whitenedcse:positives=3"] == "78.78"


MODELS = (
    *("encoding", "probing", "corpora", "search", "startup", "training", "controls", "pace", "ablations"),
    *("gpu_encoding", "gpu_training"),
)


@pytest.fixture
def no_gpu(monkeypatch):
    """With the CPU in the place of a GPU that tells nothing of its memory."""
    from benchmarks import gpu

    monkeypatch.setattr(gpu, "DEVICE", "cpu")
    monkeypatch.setattr(gpu.product_rate, "__defaults__", (64,))
    for name, told in {"synchronize": None, "empty_cache": None, "reset_peak_memory_stats": None}.items():
        monkeypatch.setattr(torch.cuda, name, lambda told=told: told)
    for name in ("memory_allocated", "max_memory_allocated"):
        monkeypatch.setattr(torch.cuda, name, lambda: 0)


@pytest.mark.usefixtures("no_gpu")
@pytest.mark.parametrize("name", [name for name in command.BENCHMARKS if name not in MODELS])
def test_every_benchmark_without_a_model_runs(name):
    from importlib import import_module

    module = import_module(f"benchmarks.{command.BENCHMARKS[name][0]}")
    (found,) = getattr(module, name)(Options(quick=True, repeats=1))
    assert found.rows
    assert all(len(row) == len(found.header) for row in found.rows)
