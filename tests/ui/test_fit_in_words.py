"""The line under the live score that says what its map was fitted on."""

import pytest

from tests.conftest import make_space
from whitelab.encoding.embeddings import LayerRows
from whitelab.scoring.score import score
from whitelab.scoring.setting import Setting
from whitelab.ui.frame.page import fit_in_words


@pytest.mark.parametrize(
    ("setting", "why"),
    [
        ("L1:pca", ""),
        ("L1:pca@1", ": it takes two directions"),
        ("L1:pca fit=itself", ": too few different sentences are left to measure it on"),
    ],
)
def test_where_the_isotropy_is_undefined_the_line_says_why(setting, why):
    space = make_space()
    words = fit_in_words(
        score(space.with_text("itself", LayerRows(space.values, space.counts)), Setting.parse(setting))
    )
    assert ("isotropy undefined" in words) is bool(why)
    assert words.endswith(why)
