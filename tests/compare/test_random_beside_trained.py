"""What is said of random weights beside trained ones are the numbers of the table."""

import pytest

from whitelab.compare import PRESETS, Cell, Grid, random_beside_trained
from whitelab.encoding.embeddings import Origin
from whitelab.scoring.score import Score
from whitelab.scoring.setting import Protocol, Setting

ROWS = ("mean/L1", "mean/L1:pca", "mean/L1:pca@2")
MODELS = {"trained": "base", "drawn": "random@0:base", "cut": "base[:3]", "other": "random@0:elsewhere"}


def cells(task: str = "demo", starved: str = "", **scores: tuple[float | None, ...]) -> list[Cell]:
    """Cells of models by their names in MODELS, with their scores under ROWS; the map of one row is `starved`."""
    found = []
    for model, values in scores.items():
        for row, score in zip(ROWS, values, strict=False):
            made, score = Setting.parse(row), score and float(score)
            whole = Score(score, 9, {}, 4, 4, 5, 1.0, Protocol(made, Origin("m")), starved=row == starved)
            found.append(Cell(MODELS[model], made, task, score, score=whole))
    return found


def said(found: list[Cell], *tasks: str, preset: str = "whiteningbert") -> str:
    return random_beside_trained(found, Grid((), "demo", tasks or ("demo",), (), preset))


def test_random_weights_are_held_against_the_same_model_trained_raw_and_whitened():
    words = said(cells(cut=(1, 2), trained=(70.7, 73.5), drawn=(51.36, 72.54)))
    assert words.startswith("Under mean/L1 random weights score 51.36 and trained ones 70.70, 19.3 points apart; ")
    assert "whitened (mean/L1:pca), 72.54 and 73.50, 1.0 apart." in words


def test_nothing_is_said_where_one_of_the_four_numbers_is_missing():
    assert said(cells(trained=(70, 73))) == ""
    assert said(cells(trained=(70, 73), other=(51, 72))) == ""
    assert said(cells(trained=(None, 73), drawn=(51, 72))) == ""


@pytest.mark.parametrize("preset", [name for name in PRESETS if PRESETS[name].fit != "corpus"])
def test_of_several_tasks_the_averages_of_the_table_are_held_against_each_other(preset):
    one, other = {"trained": (70, 73), "drawn": (51, 72)}, {"trained": (80, 75.004), "drawn": (41, 60)}
    words = said(cells("a", **one) + cells("b", **other), "a", "b", preset=preset)
    assert words.startswith("On average over 2 tasks, under mean/L1 random weights score 46.00 and trained ones 75.00")
    assert "66.00 and 74.00, 8.0 apart" in words
    assert said(cells("a", **one) + cells("b", trained=(80, 75)), "a", "b") == ""
    assert said(cells("a", **one), "a", "b") == ""


def test_nothing_is_said_of_scores_whose_map_is_starved():
    scores = {"trained": (70, -1.67, 72), "drawn": (51, -1.67, 71)}
    assert "whitened (mean/L1:pca@2), 71.00 and 72.00, 1.0 apart." in said(cells(starved="mean/L1:pca", **scores))
    few = cells("b", "mean/L1:pca", trained=(70, 60), drawn=(50, 60))
    assert said(cells("a", trained=(70, 73), drawn=(51, 72)) + few, "a", "b") == ""
