"""What cross-fitted halves show of a gain, the same on every page that shows it."""

import pytest
import tiny

import whitelab
from whitelab.scoring.setting import Setting

from .visiting import deltas, said, start, until

SETTING = Setting((1,), "pca")
QUERY = {"layers": "1", "whitening": "PCA whitening"}


@pytest.fixture(scope="module")
def turned(place):
    """Pairs that the map of all ranks as people do, and the maps of halves much worse than no map."""
    path, sentences = place / "turned.csv", tiny.SENTENCES[:200]
    rows = list(zip(sentences[::2], sentences[1::2], strict=True))

    def write(gold):
        path.write_text("".join(f"{a},{b},{score}\n" for (a, b), score in zip(rows, gold, strict=True)))
        return whitelab.embed_pairs(whitelab.load_encoder(str(place / "model")), whitelab.load(path))[0]

    space = write([0.5 * (i % 9) for i in range(len(rows))])
    settings = (SETTING, SETTING.raw, SETTING.with_(fit="cross"))
    own, raw, halves = (whitelab.score(space, one).cosines.double() for one in settings)
    space = write((1.5 * own / own.std() + 0.7 * raw / raw.std() - 0.6 * halves / halves.std()).tolist())
    own, raw, halves = (whitelab.score(space, one).spearman for one in settings)
    assert own > raw + 5
    assert halves < raw - 5
    return {"model": str(place / "model"), "data": str(path)} | QUERY


@pytest.mark.parametrize("page", ["overview", "whitening", "layers", "dimensions"])
def test_a_gain_that_halves_turn_round_is_a_loss_on_new_text_on_every_page(turned, page):
    at = until(start(page, **turned))
    assert any("a loss on new text" in delta.lower() for delta in deltas(at).values())
    if page == "whitening":
        assert said(
            at, "Cross-fitted by halves, it is -", "the other way round, beyond chance", "Maps fitted on half of"
        )
    if page in ("overview", "whitening"):
        assert said(at, "which maps of half the sentences turn round on the other half, and not by chance")


def test_of_thin_halves_nothing_is_said_but_that_they_are(place, turned):
    """The same pairs, of which the first forty leave each half hardly more sentences than directions."""
    few = place / "thin.csv"
    few.write_text("".join((place / "turned.csv").read_text().splitlines(keepends=True)[:40]))
    at = until(start("whitening", **turned | {"data": str(few)}))
    assert said(at, "A half has too few sentences for so many directions: what its map loses, the whole one may not")
    assert deltas(at)["Spearman, cross-fitted"].endswith(" by halves too small to tell")
    assert not any("new text" in delta for delta in deltas(at).values())
