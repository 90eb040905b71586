"""Rows of a comparison resampled together: intervals hold their scores, and tests between rows are paired."""

import csv
import io
import zlib
from dataclasses import replace

import numpy as np
import pytest
import torch
from scipy import stats
from tiny import build_model, write_task

from whitelab.compare import AVERAGE, Grid, compare, outcome, resample, resampled, starved_note, written
from whitelab.scoring.paired import VERDICTS, paired
from whitelab.scoring.setting import parse_settings
from whitelab.statistics.significance import Difference, average_bootstrap, bootstrap, drawn_counts
from whitelab.store.embedding_store import Store

RESAMPLES = 60


@pytest.fixture(scope="module")
def cells(tmp_path_factory):
    root = tmp_path_factory.mktemp("against")
    for seed in (0, 1):
        build_model(root / f"model{seed}", seed=seed)
    write_task(root / "data", "sts12", pairs=60)
    write_task(root / "data", "sts13", pairs=25, subsets=3)
    models = [str(root / f"model{seed}") for seed in (0, 1)]
    settings = parse_settings("L1;L1:pca;L1+L3:pca;L1+L3:zca;cls/L-1;L99")
    return list(compare(Grid(models, str(root / "data"), ["sts12", "sts13"], settings), store=Store(root / "s")))


@pytest.fixture(scope="module")
def drawn(cells):
    return resample(cells, RESAMPLES)


def scores_of(cells, row):
    return {cell.task: cell.spearman for cell in cells if cell.row == row}


ROWS = [("model0", "mean/L1"), ("model0", "mean/L1+L3:pca"), ("model0", "cls/L-1"), ("model1", "mean/L1")]


def oracle(cells, row, task):
    """The score in every resample, by SciPy on the pairs drawn: the mean over subsets."""
    cell = next(cell for cell in cells if cell.row == row and cell.task == task)
    cosines, gold, subset = (x.numpy() for x in (cell.score.cosines, cell.judged.gold, cell.judged.subset))
    seed = zlib.crc32(cell.judged.gold.double().numpy().tobytes())
    parts = drawn_counts(cell.judged.subset, cell.judged.n_subsets, RESAMPLES, seed)
    index = [np.arange(len(gold)).repeat(one.long().numpy()) for part in parts for one in part]

    def rho(pairs):
        return 100 * stats.spearmanr(cosines[pairs], gold[pairs]).statistic

    return np.array([np.mean([rho(i[subset[i] == s]) for s in range(cell.judged.n_subsets)]) for i in index])


def test_an_interval_contains_its_score(cells, drawn):
    for row in ROWS:
        scores = scores_of(cells, row)
        assert set(scores) == {"sts12", "sts13", AVERAGE}
        for task, score in scores.items():
            low, high = drawn.interval(row, task)
            assert low < score < high


def test_intervals_are_percentiles_of_resampled_pairs_and_averages_average_them(cells, drawn):
    for row in ROWS[1:3]:
        samples = {task: oracle(cells, row, task) for task in ("sts12", "sts13")}
        samples[AVERAGE] = (samples["sts12"] + samples["sts13"]) / 2
        for task, values in samples.items():
            assert drawn.interval(row, task) == pytest.approx(tuple(np.quantile(values, [0.025, 0.975])), abs=1e-7)


def test_an_average_of_tasks_is_known_better_than_its_worst_task(drawn):
    for row in ROWS:
        widths = {task: np.diff(drawn.interval(row, task)).item() for task in ("sts12", "sts13", AVERAGE)}
        assert widths[AVERAGE] < max(widths["sts12"], widths["sts13"])


def test_a_duel_is_the_paired_difference_of_the_resamples(cells, drawn):
    a, b = ROWS[0], ROWS[3]  # of two models
    gaps = {task: oracle(cells, a, task) - oracle(cells, b, task) for task in ("sts12", "sts13")}
    gaps[AVERAGE] = (gaps["sts12"] + gaps["sts13"]) / 2
    scores = scores_of(cells, a), scores_of(cells, b)
    duels = drawn.against(a, b)
    assert [duel.task for duel in duels] == ["sts12", "sts13", AVERAGE]
    for duel in duels:
        found, d = duel.difference, gaps[duel.task]
        assert (duel.a, duel.b) == pytest.approx(tuple(one[duel.task] for one in scores))
        assert found.estimate == pytest.approx(duel.a - duel.b)
        assert (found.low, found.high) == pytest.approx(tuple(np.quantile(d, [0.025, 0.975])), abs=1e-7)
        tail = min((d <= 0).sum(), (d >= 0).sum())
        assert found.p_value == pytest.approx(min(1, 2 * (1 + tail) / (RESAMPLES + 1)))
        assert duel.verdict in VERDICTS


def test_a_whitened_row_has_its_difference_from_the_raw_row_of_its_model_and_layers_in_json_and_csv(cells, drawn):
    rows = list(csv.DictReader(io.StringIO(written(cells, "csv", drawn=drawn))))
    for cell in cells:
        whitened = str(cell.setting) == "mean/L1:pca"  # of the others no raw row is in the table
        duels = drawn.against(cell.row, (cell.model, "mean/L1")) if whitened else ()
        expected = next((duel.as_dict() for duel in duels if duel.task == cell.task), {})
        record = drawn.record(cell)
        (line,) = (one for one in rows if (one["model"], one["setting"]) == cell.row)
        assert (whitened, record.get("verdict")) == (bool(expected), expected.get("verdict"))
        for name in ("difference", "difference_low", "difference_high", "p_value"):
            assert record.get(name) == expected.get(name)
            assert line[f"{cell.task}_{name}"] == str(expected.get(name, ""))
    others = [cell for cell in cells if str(cell.setting) != "mean/L1"]
    assert "difference" not in written(others, "csv", drawn=resample(others, RESAMPLES))


def test_pairing_narrows_the_interval_of_a_difference(drawn):
    a, b = ("model0", "mean/L1"), ("model0", "mean/L1+L3:pca")
    (*_, found) = drawn.against(a, b)
    widths = [np.diff(drawn.interval(row, AVERAGE)).item() for row in (a, b)]
    assert found.difference.high - found.difference.low < np.hypot(*widths)


def test_the_other_way_round_every_sign_turns_and_no_p_value_moves(drawn):
    turned = {"gain": "loss", "loss": "gain"}
    for one, other in zip(drawn.against(*ROWS[:2]), drawn.against(*ROWS[1::-1]), strict=True):
        a, b = one.difference, other.difference
        assert (a.estimate, a.low, a.high, a.p_value) == pytest.approx((-b.estimate, -b.high, -b.low, b.p_value))
        assert one.verdict == turned.get(other.verdict, other.verdict)
        assert (one.a, one.b) == (other.b, other.a)


def test_a_row_against_itself_and_against_a_rotation_of_itself_is_the_same(drawn):
    row = ROWS[1]
    for other in (row, ("model0", "mean/L1+L3:zca")):
        assert {duel.verdict for duel in drawn.against(row, other)} == {"same"}
        assert {duel.difference.estimate for duel in drawn.against(row, other)} == {0.0}
    assert "same" not in {duel.verdict for duel in drawn.against(row, ROWS[0])}


def test_an_interval_does_not_depend_on_what_stands_beside_it(cells, drawn):
    alone = resample([cell for cell in cells if cell.row == ROWS[0] and cell.task == "sts13"], RESAMPLES)
    assert alone.interval(ROWS[0], "sts13") == pytest.approx(drawn.interval(ROWS[0], "sts13"))


def test_where_one_map_of_a_row_is_starved_no_verdict_is_given_there_nor_on_the_average(cells):
    row, other = ROWS[1], ROWS[0]
    with_one = [
        replace(cell, score=replace(cell.score, starved=True)) if (cell.row, cell.task) == (row, "sts13") else cell
        for cell in cells
    ]
    duels = {one.task: one.verdict for one in resample(with_one, RESAMPLES).against(row, other)}
    assert (duels["sts13"], duels["avg"]) == ("starved", "starved")
    assert duels["sts12"] != "starved"
    assert starved_note(with_one).startswith("mean/L1+L3:pca on sts13: ")
    assert not starved_note(cells)


def test_rows_without_a_score_have_no_interval_and_no_duel(cells, drawn):
    lost = ("model0", "mean/L99")
    assert any(cell.row == lost for cell in cells)
    assert lost not in drawn.rows
    assert drawn.interval(lost, "sts12") is None
    assert drawn.interval(lost, AVERAGE) is None
    assert drawn.interval(ROWS[0], "sts99") is None
    with pytest.raises(KeyError, match="share no task with a score"):
        drawn.against(ROWS[0], lost)


def test_the_average_of_a_duel_is_over_the_tasks_both_rows_have(cells):
    some = [cell for cell in cells if not (cell.row == ROWS[0] and cell.task == "sts12")]
    found = resample(some, RESAMPLES)
    assert found.interval(ROWS[0], AVERAGE) is None
    assert [duel.task for duel in found.against(*ROWS[:2])] == ["sts13"]


def test_tasks_come_one_by_one(cells):
    seen, counted = [], []
    for found in resampled(cells, 5, lambda done, total: counted.append((done, total))):
        seen.append(tuple(found.tasks))
    assert seen == [("sts12",), ("sts12", "sts13")]
    assert counted == [(1, 2), (2, 2)]
    assert resample([]).tasks == {}


# In words


def test_the_sentence_says_size_side_interval_and_what_it_leaves_open(drawn):
    duels = drawn.against(ROWS[0], ROWS[3])
    gap = duels[-1].difference
    text = outcome(duels, "A", "B")
    assert f"A is {abs(gap.estimate):.2f} points {'above' if gap.estimate > 0 else 'below'} B on average over 2" in text
    assert f"{gap.low:+.2f} to {gap.high:+.2f}" in text
    assert "says nothing about other tasks" in text
    assert ("could be chance" in text) == (duels[-1].verdict == "chance")


@pytest.mark.parametrize(
    ("verdict", "words"),
    [
        ("gain", "That is more than chance"),
        ("chance", "That could be chance"),
        ("unclear", "disagree"),
        ("same", "same"),
    ],
)
def test_the_sentence_never_claims_more_than_the_verdict(drawn, verdict, words):
    (duel, *_) = drawn.against(ROWS[0], ROWS[3])
    duel = replace(duel, verdict=verdict, difference=Difference(1.0, 0.5, 1.5, 0.01))
    text = outcome([duel], "A", "B")
    assert words in text
    assert "on sts12" in text
    assert ("more than chance" in text) == (verdict == "gain")


# The pieces below


def test_an_average_of_bootstraps_is_the_mean_of_their_samples():
    rng = torch.Generator().manual_seed(0)
    subset = torch.zeros(30, dtype=torch.long)
    parts = []
    for seed in (1, 2):
        gold, cosines = torch.rand(30, generator=rng).double(), torch.rand(2, 30, generator=rng).double()
        parts.append(bootstrap(cosines, gold, subset, 1, "all", 50, seed))
    found = average_bootstrap(parts)
    assert torch.allclose(found.samples, (parts[0].samples + parts[1].samples) / 2)
    assert torch.allclose(found.score, (parts[0].score + parts[1].score) / 2)
    assert torch.equal(found.take([1, 0, 1]).samples, found.samples[[1, 0, 1]])
    with pytest.raises(ValueError, match="parts must be at least one, all of the same rows and resamples"):
        average_bootstrap([parts[0], parts[1].take([0])])
    with pytest.raises(ValueError, match="parts must be at least one"):
        average_bootstrap([])


def test_gold_scores_alone_serve_a_paired_test_as_well_as_embeddings(cells):
    held = [cell for cell in cells if cell.task == "sts12" and cell.model == "model0" and cell.score]
    found = paired(held[0].judged, [cell.score for cell in held], 20)
    assert held[0].judged is held[1].judged  # every cell keeps it
    expected = bootstrap(found.cosines, held[0].judged.gold, held[0].judged.subset, 2, "mean", 20)
    assert torch.equal(found.drawn.samples, expected.samples)


def test_a_score_has_the_interval_in_a_grid_that_it_has_alone_and_tasks_are_drawn_apart(cells):
    drawn = resample(cells, 50)
    scored = [cell for cell in cells if cell.score is not None and cell.spearman is not None]
    for cell in scored:
        alone = paired(cell.judged, [cell.score], 50).standing(0)
        assert drawn.interval(cell.row, cell.task) == (alone.low, alone.high)
    first, second = (found.drawn.samples for found, _ in list(drawn.tasks.values())[:2])
    assert abs(float(torch.corrcoef(torch.stack([first[0], second[0]]))[0, 1])) < 0.4
