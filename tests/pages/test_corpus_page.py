"""The corpus page: what a folder holds, whether a map of it has settled, and that map under the live score."""

import csv
import io
import shlex
import shutil
from inspect import signature
from pathlib import Path

import pytest
from corpora import embed, small_text
from tiny import DIM

import whitelab
from whitelab.cli import main
from whitelab.corpus import embedding
from whitelab.corpus.chunks import CHUNK_TEXTS
from whitelab.corpus.embedding import embed_corpus
from whitelab.corpus.manifest import Manifest
from whitelab.corpus.settling import settling
from whitelab.corpus.texts import read_texts, text_files
from whitelab.datasets import DataError
from whitelab.encoding.sentence_modules import write_modules
from whitelab.store.held_folder import is_held
from whitelab.ui.sections import corpus_begin

from .visiting import (
    alts,
    choose,
    code,
    data,
    failed,
    go_to,
    keys,
    live,
    metrics,
    press,
    protocol,
    said,
    scored,
    start,
    until,
)

pytestmark = pytest.mark.model


def shell(at) -> str:
    """The lines to type, as a shell takes them: what ends in a backslash goes on."""
    return "\n".join(one.value for one in at.code if one.language == "bash").replace("\\\n", "")


def waits(at) -> bool:
    return said(at, "Once it is whole")


@pytest.fixture(scope="module")
def folder(small, tmp_path_factory):
    place = tmp_path_factory.mktemp("corpus")
    embed(small_text(place / "text.txt"), place / "out", small["model"], layers=(1,))
    return place / "out"


def test_a_folder_is_shown_as_it_is_at_the_bars_k_and_its_code_prints_the_same(small, folder, capsys):
    at = until(start("corpus", **small, embedded=str(folder), k="3"))
    shown = metrics(at)
    assert (shown["Chunks done"], shown["Sentences done"], shown["Time left"]) == ("3 of 3", "40", "0 s")
    assert len(alts(at)) == 2
    name = f"corpus:{folder.name}-{Manifest.read(folder).digest[:6]}"
    made = {"corpus": name, "model": "model", "layers": "layer 1", "pooling": "mean"}
    written = {key: list(csv.DictReader(io.StringIO(text))) for key, text in data(at).items()}
    assert {*written} == {"headlines", "corpus-settling", "corpus-spectrum"}
    assert all(row | made == row for rows in written.values() for row in rows)
    spectrum = written["corpus-spectrum"]
    assert sum(float(row["percent_of_variance"]) for row in spectrum) == pytest.approx(100)
    assert {(row["whitening"], row["sentences"]) for row in spectrum} == {("none", "40")}
    found = settling(folder, k=3)
    assert found.isotropy != settling(folder).isotropy
    assert said(at, "At k = 3, a map fitted on")
    assert f"{found.isotropy[-1]:.3f} after {found.sentences[-1]} sentences" in alts(at)[0]
    exec(compile(code(at), "corpus", "exec"), {})
    printed = capsys.readouterr().out
    assert all(f"{pair[0]} {pair[1]}" in printed for pair in zip(found.sentences, found.isotropy, strict=True))
    assert all(row["eigenvalue"] in printed for row in spectrum)


def test_a_variant_that_layers_kept_apart_do_not_give_is_fitted_on_the_task_and_the_bar_says_so(small, tmp_path):
    embed(small_text(tmp_path / "text.txt"), tmp_path / "out", small["model"], layers=(1, 2), apart=True)
    at = until(start("corpus", **small, layers="1", whitening="shrunk", embedded=str(tmp_path / "out")))
    press(at, "fit-on-corpus", lambda at: failed(at, "layers kept apart, whose moments do not give"))
    for page in ("corpus", "overview", "whitening"):
        assert "fitted on the task's" in protocol(until(go_to(at, page)))
    choose(at, whitening="pca")  # the page goes on to list the other among its variants
    assert failed(at, "layers kept apart, whose moments do not give")
    assert "sentences of corpus:" in protocol(at)
    assert not failed(until(go_to(at, "overview")), "kept apart")


def test_a_folder_that_is_none_says_so_and_texts_that_are_none(small, tmp_path):
    at = until(start("corpus", **small))
    assert at.button(key="begin-corpus").disabled
    assert said(at, "Name a new folder above")
    choose(at, lambda at: failed(at, "must name .txt, .jsonl, .csv or .parquet"), texts=str(tmp_path / "none.txt"))
    choose(at, lambda at: said(at, f"There is no corpus in {tmp_path} yet"), embedded=str(tmp_path))
    assert at.button(key="begin-corpus").disabled
    (tmp_path / "text.jsonl").write_text('{"words": "a man plays"}\n')
    choose(at, texts=str(tmp_path / "text.jsonl"), embedded=str(tmp_path / "new"))
    assert [at.text_input(key=key).value for key in ("text-column", "id-column")] == ["text", "id"]
    assert said(at, "text.jsonl:1 gives no text: no 'text' (the field with the text) in it")
    choose(at, lambda at: "--text-column words" in shell(at), text_column="words")
    assert not at.button(key="begin-corpus").disabled
    assert not said(at, "gives no text")
    (tmp_path / "text.csv").write_text("nr,satz\n1,Ein Hund\n")
    choose(at, texts=str(tmp_path / "text.csv"), text_column="text")
    assert said(at, "text.csv gives no text: the field with the text, 'text' must be one of the columns 'nr', 'satz'")
    choose(at, text_column="satz")
    assert not said(at, "gives no text")
    (tmp_path / "text.csv").write_text("nr,satz\n" + "1,\n" * 200)
    assert said(at.run(), "The first records of text.csv hold no text.")


def test_what_texts_there_are_follows_the_disk(small, tmp_path):
    (tmp_path / "one.txt").write_text("water\n" * 100)
    folder, file = start("corpus", **small, texts=str(tmp_path)), start("corpus", **small, texts=f"{tmp_path}/one.txt")
    assert said(until(folder), "1 file, 600 bytes")
    assert said(until(file), "1 file, 600 bytes")
    (tmp_path / "one.txt").write_text("water\n" * 200)
    (tmp_path / "two.txt").write_text("water\n")
    assert said(folder.run(), "2 files, 1.2 kB")
    assert said(file.run(), "1 file, 1.2 kB")


def test_what_is_begun_is_what_its_code_and_its_command_line_ask_for(small, tmp_path, monkeypatch, capsys):
    text, folder = tmp_path / "text.txt", tmp_path / "new folder"
    text.write_text("".join(f"a man number {i % 170} plays\n" for i in range(400)))
    at = until(start("corpus", **small, layers="1", texts=str(text), embedded=str(folder)))
    by_hand = embed(text, tmp_path / "by hand", small["model"], layers=(1,), chunk_texts=64)
    asked = []

    def record(*words, **options):
        given = signature(embed_corpus).bind(*words, **options).arguments
        asked.append(given | {"layers": list(given["layers"])})
        return by_hand

    line = next(one for one in shell(at).splitlines() if " embed " in one)
    with monkeypatch.context() as patch:
        patch.setattr(embedding, "embed_corpus", record)
        assert main(shlex.split(line)[3:]) == 0
        exec(compile(code(at), "corpus", "exec"), {})
    typed, ran = asked
    assert ran.items() <= typed.items()
    press(at, "begin-corpus", lambda at: said(at, "Finished"))
    assert any("Isotropy of unseen sentences" in one for one in alts(at))  # few as they are, a map can be measured
    made = Manifest.read(folder)
    assert (made.chunks, made.texts) == (by_hand.chunks, by_hand.texts)
    press(at, "fit-on-corpus")
    assert f"fitted on the 400 sentences of corpus:{folder.name} " in protocol(at)
    choose(at, whitening="zca", k=9, aggregate="mean")
    line = next(one for one in shell(at).splitlines() if " score " in one)
    capsys.readouterr()
    assert main(shlex.split(line)[3:]) == 0
    assert live(at) in capsys.readouterr().out


def test_what_is_begun_goes_where_the_box_says_also_where_the_click_itself_enters_it(small, tmp_path):
    text, typed = small_text(tmp_path / "text.txt"), tmp_path / "typed"
    at = until(start("corpus", **small, layers="1", texts=str(text), embedded=str(tmp_path / "before")))
    at.text_input(key="embedded").set_value(str(typed))
    press(at, "begin-corpus", lambda at: said(at, "Finished"))
    assert Manifest.read(typed).finished
    assert not (tmp_path / "before").exists()


def test_whoever_has_no_corpus_sees_one_of_bundled_documents_embedded_and_watched(small, tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path))
    at = press(until(start("corpus", **small, layers="1")), "example-corpus", lambda at: said(at, "1 file"))
    assert "example-corpus" not in keys(at)
    press(at, "begin-corpus", lambda at: said(at, "Finished"))
    assert Manifest.read(tmp_path / "whitelab" / "example-corpus").texts
    assert metrics(at)["Sentences done"] == str(len(corpus_begin.EXAMPLE.read_bytes().splitlines()))
    assert any("Isotropy of unseen sentences" in one for one in alts(at))


def test_lines_to_type_are_broken_before_an_option_and_nowhere_else(small, tmp_path):
    at = until(start("corpus", **small, layers="0,1", texts=str(small_text(tmp_path / "text.txt")), embedded="a b"))
    typed = [line for one in at.code if one.language == "bash" for line in one.value.splitlines()]
    assert any(line.endswith(" \\") for line in typed)
    assert all(line.startswith(("python", "    --")) for line in typed)
    assert all(len(line) <= 76 or line.count("--") <= 1 for line in typed)


@pytest.mark.parametrize(("sentences", "expected"), [(40, 64), (1400, 175), (8000, 1000), (10**6, CHUNK_TEXTS)])
@pytest.mark.parametrize("each", [64, 1000])
def test_a_small_corpus_is_cut_into_small_chunks_however_long_its_texts_are(tmp_path, sentences, expected, each):
    (tmp_path / "text.jsonl").write_bytes((b"x" * (each - 1) + b"\n") * 80)
    *_, found = corpus_begin._found(str(tmp_path / "text.jsonl"))
    assert found == pytest.approx(each, rel=0.02)
    assert corpus_begin._chunk_texts(each * sentences, each) == expected


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16", "utf-16-be", "utf-32"])
@pytest.mark.parametrize("end", ["\n", "\r\n", "\r", "\n\n"])
@pytest.mark.parametrize("name", ["text.txt", "text.csv"])
def test_as_many_texts_are_looked_for_as_are_read_in_whatever_encoding(tmp_path, name, encoding, end):
    mark = "\ufeff" * encoding.endswith("be")
    rows = "".join(f"ein M\xe4dchen \u2028 number {i}\u0a0a\u010a{end}" for i in range(5000))
    (tmp_path / name).write_bytes(f"{mark}text{end}{rows}".encode(encoding))
    *_, size, each = corpus_begin._found(str(tmp_path))
    read = sum(1 for _ in read_texts(tmp_path, pytest.fail))
    assert size / each == pytest.approx(read, rel=0.05)


def test_a_corpus_of_one_chunk_says_how_it_gets_more(small, tmp_path):
    embed(small_text(tmp_path / "text.txt"), tmp_path / "out", small["model"], layers=(1,), chunk_texts=CHUNK_TEXTS)
    assert said(until(start("corpus", **small, embedded=str(tmp_path / "out"))), "Two chunks are needed", "`--chunk`")


def test_texts_that_are_cut_or_of_unknown_words_are_noted(small, tmp_path):
    (tmp_path / "text.txt").write_text("日 本 語\na dog\n" + "a dog " * 20 + "\n")
    embed(tmp_path / "text.txt", tmp_path / "out", small["model"], layers=(1,), max_length=16)
    at = until(start("corpus", **small, embedded=str(tmp_path / "out")))
    assert said(at, "Note: 1 text was cut to 16 tokens")
    assert said(at, "Note: 1 text of mostly unknown words")


def test_a_corpus_of_one_sentence_has_no_variance_to_draw(small, tmp_path):
    (tmp_path / "text.txt").write_text("a man plays\n")
    embed(tmp_path / "text.txt", tmp_path / "out", small["model"], layers=(1,))
    at = until(start("corpus", **small, embedded=str(tmp_path / "out")))
    assert said(at, "All its vectors so far are the same: they have no variance.")
    assert not alts(at)


def test_a_model_or_folder_that_begins_with_a_dash_is_no_option_of_its_lines(small, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    small_text(tmp_path / "-text.txt")
    (tmp_path / "-m").symlink_to(small["model"])
    at = until(start("corpus", **small | {"model": "-m"}, layers="1", texts="-text.txt", embedded="-out"))
    assert [main(shlex.split(line)[3:]) for line in shell(at).splitlines()] == [0] * 6
    assert Manifest.read(tmp_path / "-out").texts


def test_a_model_that_weighs_words_by_all_texts_embeds_no_corpus(small, tmp_path):
    asked = {"texts": str(small_text(tmp_path / "text.txt")), "embedded": str(tmp_path / "out"), "layers": "0"}
    at = until(start("corpus", **small | {"model": f"sif:{small['model']}"}, **asked))
    assert said(at, "weighs words by all texts together", f"use static:{small['model']}")
    assert "begin-corpus" not in keys(at)
    assert "embed_corpus" not in code(at)


def test_what_was_stopped_or_damaged_goes_on_as_it_was_begun_whatever_the_bar_says_and_texts_that_changed_are_noted(
    small, tmp_path
):
    """Until they are read again."""
    made = embed(small_text(tmp_path / "text.txt"), tmp_path / "out", small["model"], layers=(1,))
    damaged = tmp_path / "out" / f"{made.chunks[1]}.parquet"
    damaged.write_bytes(damaged.read_bytes()[:-9])
    words = "Files of its text were not read, or were written again or removed since"
    at = until(start("corpus", **small, layers="2", embedded=str(tmp_path / "out")), waits)
    assert metrics(at)["Time left"] == metrics(at)["Sentences a second"] == "–"  # nobody works on it
    assert not said(at, words)
    with (tmp_path / "text.txt").open("a") as file:
        file.write("one more\n")
    assert said(at.run(), words)
    press(at, "go-on-corpus", lambda at: said(at, "Finished") and not said(at, words))
    again = Manifest.read(tmp_path / "out")
    assert again.arguments == made.arguments
    assert (again.chunks[1], again.sentences) == (made.chunks[1], made.sentences + 1)
    press(at, "fit-on-corpus")
    assert at.session_state["layers"] == [1]


def test_what_gave_no_text_is_shown_with_the_reason(small, tmp_path, capsys):
    (tmp_path / "text.jsonl").write_text('{"text": "a man"}\n' + '{"body": "a dog"}\n' * 3)
    embed(tmp_path / "text.jsonl", tmp_path / "out", small["model"], layers=(1,))
    at = until(start("corpus", **small, embedded=str(tmp_path / "out")))
    assert said(at, "3 lines: no 'text' (text_column) in it")
    main(["corpus", "status", str(tmp_path / "out")])
    assert "left out: 3 lines: no 'text' (text_column) in it" in capsys.readouterr().out


def test_what_cannot_be_begun_says_why(small, tmp_path):
    (tmp_path / "text.txt").write_text("\n\n")
    asked = {"texts": str(tmp_path / "text.txt"), "embedded": str(tmp_path / "out")}
    at = until(start("corpus", **small, **asked))
    press(at, "begin-corpus", lambda at: failed(at, "The corpus could not be embedded: text="))
    assert not at.button(key="begin-corpus").disabled


def test_what_is_begun_can_be_stopped_at_once(small, tmp_path):
    (tmp_path / "text.txt").write_text("".join(f"sentence {i}\n" for i in range(20_000)))
    asked = {"texts": str(tmp_path / "text.txt"), "embedded": str(tmp_path / "out")}
    at = until(start("corpus", **small, **asked))
    at.button(key="begin-corpus").click().run()
    at.button(key="stop-corpus").click().run()
    # Before or after the texts are read; or too late.
    until(at, lambda at: {"begin-corpus", "go-on-corpus"} & keys(at) or said(at, "Finished"))
    assert not is_held(tmp_path / "out")


@pytest.mark.parametrize(("setting", "value"), [("WHITELAB_TRAINING", "off"), ("WHITELAB_DATA", "demo,{place},{own}")])
def test_a_visitor_of_a_server_that_limits_them_begins_none(small, tmp_path, monkeypatch, setting, value):
    place, own = Path(small["data"]).parent, tmp_path / "own"
    text = small_text(tmp_path / "text.txt")
    made = embed(text, own, small["model"])
    (own / f"{made.chunks[1]}.parquet").unlink()
    monkeypatch.setenv(setting, value.format(place=place, own=own))
    at = until(start("corpus", **small, texts=str(text), embedded=str(tmp_path / "out")))
    assert failed(at, "no such file or folder") or failed(at, "not among the data that this server offers")
    assert "corpus embed" in shell(at)
    choose(at, lambda at: said(at, "The command that began it does what is missing"), embedded=str(own))
    assert not {"begin-corpus", "go-on-corpus"} & {one.key for one in at.button}
    corpus_begin.submit(str(tmp_path / "out"), made.arguments)
    assert corpus_begin.job_of(str(tmp_path / "out")) is None
    if setting == "WHITELAB_DATA":
        with pytest.raises(DataError, match="found none"):
            text_files(text)


def test_the_score_under_a_map_of_a_corpus_is_the_packages(small, folder):
    fit = f"corpus:{folder}"
    at = until(start("whitening", **small | {"fit": fit}, k="8"))
    space = whitelab.embed_pairs(whitelab.load_encoder(small["model"]), whitelab.load(small.get("data", "demo")))[0]
    carrying = space.with_text(fit, whitelab.corpus_rows(folder))
    wanted = whitelab.score(carrying, whitelab.Setting.parse(f"L1:pca@8 fit={fit}"))
    assert live(at) == f"{wanted.spearman:.2f}" != scored(space)
    assert f"fitted on the 40 sentences of corpus:{folder.name} " in protocol(at)
    assert said(at, "held-out isotropy undefined: its corpus may hold the sentences of this task too")
    name = f"corpus:{folder.name}-{Manifest.read(folder).digest[:6]}"  # as another folder of this name is not called
    assert name in [row for table in at.dataframe for row in table.value.get("Fitted on", ())]
    assert {row["page_setting"] for row in csv.DictReader(io.StringIO(data(at)["variants"]))} == {
        f"mean/L1:pca@8 fit={name}"
    }
    assert not any(str(folder.parent) in text for text in data(at).values())
    assert "whitelab.corpus_rows(" in code(at)
    assert said(choose(at, format="scikit-learn"), "scikit-learn fits to rows")
    assert not any("make_pipeline" in one.value for one in at.code)


def test_a_corpus_is_of_the_bars_model_however_its_path_was_typed(small, folder, monkeypatch):
    model = Path(small["model"])
    monkeypatch.chdir(model.parent)
    at = until(start("whitening", **small | {"fit": f"corpus:{folder}", "model": f"./{model.name}"}, layers="1"))
    assert not at.error
    assert "fitted on the 40 sentences of corpus:" in protocol(at)


def test_a_corpus_of_another_layer_than_the_bars_says_which_it_holds(small, folder):
    at = until(start("corpus", **small, embedded=str(folder)))
    assert said(at, "layer 1, mean pooling")
    wrong = {"fit": f"corpus:{folder}", "layers": "2", "embedded": str(folder)}
    for page in ("whitening", "corpus"):
        at = until(start(page, **small | wrong))
        assert failed(at, "holds model, layer 1, mean pooling, float32, at most 128 tokens. Meanwhile")
        assert "the task's 120 sentence occurrences" in protocol(at)


def test_a_corpus_of_texts_cut_elsewhere_is_for_the_printed_lines_and_not_for_the_bar(small, tmp_path, monkeypatch):
    folder = tmp_path / "short"
    embed(small_text(tmp_path / "text.txt"), folder, small["model"], layers=(1,), max_length=20)
    at = until(start("whitening", **small, fit=f"corpus:{folder}", layers="1"))
    assert failed(
        at, "at most 20 tokens, where this app reads 128: the command line can cut texts there, this app cannot"
    )
    assert "the task's 120 sentence occurrences" in protocol(at)
    lines = shell(until(start("corpus", **small, embedded=str(folder)))).splitlines()
    monkeypatch.chdir(tmp_path)
    assert [main(shlex.split(line)[3:]) for line in lines] == [0] * 5


def test_the_lines_cut_a_models_own_output_where_the_corpus_is_cut(small, tmp_path, monkeypatch):
    model = shutil.copytree(small["model"], tmp_path / "model")
    write_modules(model, "mean", DIM, 140)
    text = small_text(tmp_path / "text.txt")
    embed(text, tmp_path / "out", f"output:{model}", layers=(0,), max_length=128)
    lines = shell(until(start("corpus", **small, embedded=str(tmp_path / "out")))).splitlines()
    monkeypatch.chdir(tmp_path)
    assert [main(shlex.split(line)[3:]) for line in lines] == [0] * 5


def test_what_would_need_other_layers_than_a_corpus_holds_says_so_and_one_click_away_is_the_task(small, folder):
    at = until(start(**small, fit=f"corpus:{folder}", layers="1"))
    assert said(at, "would need other layers than those of the corpus")
    assert not at.error
    (key, *_) = [one.key for one in at.button if one.label == "Fit on the task's sentences"]
    press(at, key)
    assert at.session_state["fit"] == "task"
    assert len(alts(at)) > 1


@pytest.mark.parametrize("page", ["dimensions", "anisotropy", "layers"])
def test_the_lines_of_a_page_measure_no_layer_that_a_corpus_does_not_hold(small, folder, page):
    at = until(start(page, **small, fit=f"corpus:{folder}", layers="1"))
    assert said(at, "would need other layers than those of the corpus")
    exec(compile(code(at), page, "exec"), {})


def test_advice_on_a_corpus_tries_what_the_corpus_holds(small, folder):
    at = until(start("advise", **small, fit=f"corpus:{folder}", layers="1"))
    assert not said(at, "cannot decide. fit=")
    assert said(at, "Tried on layer 3", "layer 1")
