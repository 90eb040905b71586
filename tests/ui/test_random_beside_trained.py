"""What Compare says of random weights are the numbers of its cells."""

from whitelab.compare import Cell
from whitelab.scoring.setting import Setting
from whitelab.ui.sections.compare_grid import random_beside_trained

ROWS = ("mean/L1", "mean/L1:pca")
MODELS = {"trained": "base", "drawn": "random@0:base", "cut": "base[:3]", "other": "random@0:elsewhere"}


def cells(**scores: tuple[float | None, float]) -> list[Cell]:
    """Cells of models by their names in MODELS, with their scores under ROWS."""
    return [
        Cell(MODELS[model], Setting.parse(row), "demo", score and float(score))
        for model, both in scores.items()
        for row, score in zip(ROWS, both, strict=True)
    ]


def test_random_weights_are_held_against_the_same_model_trained_raw_and_whitened():
    words = random_beside_trained(cells(cut=(1, 2), trained=(70.7, 73.5), drawn=(51.36, 72.54)))
    assert words.startswith("Under mean/L1 random weights score 51.36 and trained ones 70.70, 19.3 points apart; ")
    assert "whitened (mean/L1:pca), 72.54 and 73.50, 1.0 apart." in words


def test_nothing_is_said_where_one_of_the_four_numbers_is_missing():
    assert random_beside_trained(cells(trained=(70, 73))) == ""
    assert random_beside_trained(cells(trained=(70, 73), other=(51, 72))) == ""
    assert random_beside_trained(cells(trained=(None, 73), drawn=(51, 72))) == ""
