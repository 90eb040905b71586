"""The corpus page: what a folder holds, whether a map of it has settled, and that map under the live score."""

import pytest
from corpora import embed, small_text

import whitelab
from whitelab.corpus.settling import settling

from .visiting import alts, choose, code, failed, live, metrics, protocol, said, scored, start, until

pytestmark = pytest.mark.model


@pytest.fixture(scope="module")
def folder(small, tmp_path_factory):
    place = tmp_path_factory.mktemp("corpus")
    embed(small_text(place / "text.txt"), place / "out", small["model"], layers=(1,))
    return place / "out"


def test_a_folder_is_shown_as_it_is_and_its_code_prints_the_same(small, folder, capsys):
    at = until(start("corpus", **small, embedded=str(folder)))
    shown = metrics(at)
    assert (shown["Chunks done"], shown["Sentences done"], shown["Time left"]) == ("3 of 3", "40", "0 s")
    assert len(alts(at)) == 2
    found = settling(folder)
    assert f"{found.isotropy[-1]:.3f} after {found.sentences[-1]} sentences" in alts(at)[0]
    exec(compile(code(at), "corpus", "exec"), {})
    assert str(found.isotropy) in capsys.readouterr().out


def test_a_folder_that_is_none_says_so_and_none_says_what_to_type(small, tmp_path):
    at = until(start("corpus", **small))
    assert said(at, "There is no folder to look at yet")
    choose(at, lambda at: failed(at, "must hold a manifest.json"), embedded=str(tmp_path))
    assert not said(at, "**Fitted on**")  # and not to fit on what is not there


def test_the_score_under_a_map_of_a_corpus_is_the_packages(small, folder):
    fit = f"corpus:{folder}"
    at = until(start("whitening", **small | {"fit": fit}, k="8"))
    space = whitelab.embed_pairs(whitelab.load_encoder(small["model"]), whitelab.load(small.get("data", "demo")))[0]
    carrying = space.with_text(fit, whitelab.corpus_rows(folder))
    wanted = whitelab.score(carrying, whitelab.Setting.parse(f"L1:pca@8 fit={fit}"))
    assert live(at) == f"{wanted.spearman:.2f}" != scored(space)
    assert f"fitted on the 40 sentences of {fit}" in protocol(at)
    assert "whitelab.corpus_rows(" in code(at)


def test_a_corpus_of_another_layer_than_the_bars_says_which_it_holds(small, folder):
    at = until(start("corpus", **small, embedded=str(folder)))
    assert said(at, "layer 1, mean pooling")
    wrong, words = {"fit": f"corpus:{folder}", "layers": "2", "embedded": str(folder)}, "layers 1, not of 2"
    for page in ("whitening", "corpus"):
        until(start(page, **small | wrong), lambda at: failed(at, words) or said(at, words))
