"""Light and honest help: nothing heavy is imported for it, and what it offers are the registries."""

import argparse
import re
import shlex
from inspect import signature
from types import SimpleNamespace

import pytest
from commandline import ANALYSES
from processes import ROOT, fresh_process

import whitelab
from whitelab.base.devices import DEVICES, DTYPES
from whitelab.cli import COMMANDS, main
from whitelab.corpus.embedding import embed_corpus
from whitelab.encoding.encoders import MAX_LENGTH
from whitelab.encoding.pooling import POOLING_LABELS, UNIT
from whitelab.retrieval.embedded import DOCUMENT_TOKENS
from whitelab.scoring.setting import FIT_SCOPES
from whitelab.statistics.correlation import AGGREGATES
from whitelab.statistics.geometry import POSITIVES
from whitelab.whitening import WHITENERS

COMMANDS_PAGE = ROOT / "docs" / "commands.md"
HEAVY = ["torch", "numpy", "streamlit", "transformers", "pandas", "plotly", "huggingface_hub", "safetensors", "sklearn"]


LOADED = """
import sys
try:
    {code}
except SystemExit:
    pass
print("loaded", *sorted({heavy} & set(sys.modules)))
"""


@pytest.mark.parametrize(
    "code",
    [
        "import whitelab",
        "from whitelab.cli import main; main(['--help'])",
        "from whitelab.cli import main; main([])",
    ],
)
def test_nothing_heavy_is_loaded_before_it_is_needed(code):
    run = fresh_process("-c", LOADED.format(code=code, heavy=set(HEAVY)))
    assert run.stdout.splitlines()[-1] == "loaded"


def test_the_check_above_can_fail():
    run = fresh_process("-c", LOADED.format(code="import whitelab.scoring.score", heavy=set(HEAVY)))
    assert {"torch", "numpy"} <= set(run.stdout.split())


def test_help_names_every_command():
    run = fresh_process("-m", "whitelab", "--help")
    assert run.returncode == 0
    assert all(name in run.stdout for name in COMMANDS)


def test_every_public_name_exists_and_an_unknown_one_is_an_attribute_error():
    assert all(hasattr(whitelab, name) for name in whitelab.__all__)
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        whitelab.nothing  # noqa: B018


OFFERED = {
    "--whitening": WHITENERS,
    "--pooling": POOLING_LABELS,
    "--aggregate": AGGREGATES,
    "--dtype": DTYPES,
    "--device": DEVICES,
    "--positives": POSITIVES,
}


@pytest.mark.parametrize("command", ANALYSES)
def test_the_choices_offered_are_the_registries(run, command):
    status, out, _ = run(command, "--help")
    assert status == 0
    for option, registry in OFFERED.items():
        if option in out:
            offered = ", ".join(registry) if option == "--whitening" else f"{option} {{{','.join(registry)}}}"
            assert offered in " ".join(out.split())


def options_of(parser):
    """The options of a parser, and of those below it."""
    for action in parser._actions:
        if isinstance(action, argparse._SubParsersAction):
            for one in action.choices.values():
                yield from options_of(one)
        elif action.option_strings:
            yield action


@pytest.mark.parametrize("command", COMMANDS)
def test_what_an_option_is_where_nothing_is_said_stands_in_its_help(command):
    COMMANDS[command][1].add_options(parser := argparse.ArgumentParser())
    unsaid = (None, False, "", argparse.SUPPRESS)
    given = [one for one in options_of(parser) if one.default not in unsaid]
    silent = [one.option_strings for one in given if not {"default", str(one.default)} & set(words(one.help))]
    assert silent == []


@pytest.mark.parametrize("command", ["bits", "calibrate", "whiten", "advise"])
def test_help_tells_how_much_is_read_of_pairs_and_of_a_search(run, command):
    assert f"(default: {MAX_LENGTH}, of a search {DOCUMENT_TOKENS}," in " ".join(run(command, "--help")[1].split())


def test_help_tells_where_a_corpus_is_embedded(run):
    told = " ".join(run("corpus", "embed", "--help")[1].split())
    assert f"default: {signature(embed_corpus).parameters['device'].default} " in told.partition("--device {")[2]


@pytest.mark.parametrize("command", ["score", "retrieve", "advise", "whiten", "bits", "calibrate"])
def test_a_map_may_be_fitted_on_an_embedded_corpus_wherever_rows_are_not_needed(run, command):
    """Codes are learned from rows, of which a corpus keeps none."""
    told = " ".join(run(command, "--help")[1].split())
    assert ("|corpus:FOLDER " in told) is (command != "bits")


def words(text: str | None) -> list[str]:
    return re.findall(r"[\w.-]+", text or "")


def test_each_registry_is_offered_somewhere(run):
    text = "".join(run(command, "--help")[1] for command in ANALYSES)
    assert all(option in text for option in OFFERED)


@pytest.mark.parametrize(
    ("option", "names"),
    [
        ("whitening", WHITENERS),
        ("fit", FIT_SCOPES),
        ("pooling", [name for name in POOLING_LABELS if not name.startswith(UNIT)]),
    ],
)
def test_the_page_of_commands_names_every_choice(option, names):
    told = COMMANDS_PAGE.read_text("utf-8").partition(f"`--{option}` ")[2].partition("\n\n")[0]
    assert [name for name in names if f"`{name}`" not in told] == []


def test_it_is_told_which_variants_k_shortens_and_which_take_none(run):
    shorter = [name for name, one in WHITENERS.items() if one.takes_k and one.narrows]
    as_long = [name for name, one in WHITENERS.items() if one.takes_k and not one.narrows]
    assert f"shorter under {', '.join(shorter)} only" in " ".join(run("whiten", "--help")[1].split())
    told = COMMANDS_PAGE.read_text("utf-8").partition("`--k` keeps")[2].partition("the others")[0]
    assert [re.findall(r"`(\w+)`", part) for part in told.split(";")[:2]] == [shorter, as_long]


COMMAND_LINE = re.compile(r"^(?:    whitelab|python -m whitelab) ([^>&\n]+)", re.MULTILINE)  # prose may begin alike


def printed_commands():
    """The words after `whitelab` of every command line that the README and docs print."""
    pages = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
    return [shlex.split(line) for page in pages for line in COMMAND_LINE.findall(page.read_text("utf-8"))]


@pytest.mark.parametrize("words", printed_commands(), ids=" ".join)
def test_every_command_line_that_is_printed_is_understood(monkeypatch, words):
    summary, module = COMMANDS[words[0]]
    read = []
    told = SimpleNamespace(add_options=module.add_options, run=lambda args: (read.append(args), (None, []))[1])
    monkeypatch.setitem(COMMANDS, words[0], (summary, told))
    assert main(words) == 0
    assert len(read) == 1


def test_every_command_has_a_line_that_shows_it():
    assert {words[0] for words in printed_commands()} == set(COMMANDS)
