"""From words to one command: its parser, its results on stdout, everything else on stderr."""

import argparse
import contextlib
import json
import os
import sys
import warnings
from collections.abc import Iterable, Iterator, Sequence
from difflib import get_close_matches
from itertools import chain

from whitelab.base.installation import RELEASE, MissingLibraryError, not_installed, option, program
from whitelab.cli.commands import COMMANDS
from whitelab.cli.writing import COLUMN, in_options, note, options_of

_ALIKE = 0.75  # as `difflib` counts it, from which a word may have been meant to be an option


class _Store(argparse.Action):
    """Keep the value of an option, and that it was given: a default may say the same. An empty one, which a variable of
    a script may have left, is refused but where that is the default, or names a column."""

    def __call__(self, parser, namespace, values, option_string=None):
        if values == "" != self.default and option_string and self.metavar != COLUMN:
            parser.error(f"{option_string} '' must not be empty")
        setattr(namespace, self.dest, values)
        namespace.given = {*getattr(namespace, "given", ()), self.dest}


class _Parser(argparse.ArgumentParser):
    """A parser whose namespaces say which option each of their values is of (`spelled`), which were `given`, and which
    parser read the last word (`parser`): that of a step, where the command has steps."""

    def __init__(self, *names, **options):
        super().__init__(*names, **options)
        self.register("action", None, _Store)  # of an option that names no action
        self.set_defaults(parser=self)

    def add_argument(self, *names, **options):
        action = super().add_argument(*names, **options)
        if action.option_strings:
            self.set_defaults(spelled=(self.get_default("spelled") or {}) | {action.dest: action.option_strings[0]})
        return action

    def error(self, message: str):
        self.exit(2, f"{self.prog}: error: {message}\n")


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command; returns the exit status (0, or 2 for wrong input)."""
    argv = list(sys.argv[1:] if argv is None else argv)
    parser = _Parser(prog=program(), description="A laboratory for the geometry of sentence embeddings.")
    parser.add_argument("--version", action="version", version=RELEASE)
    chosen = next((word for word in argv if not word.startswith("-")), None)
    commands = parser.add_subparsers(dest="command", required=True, metavar="COMMAND", parser_class=_Parser)
    args = None
    try:
        for name, (summary, module) in COMMANDS.items():
            sub = commands.add_parser(name, help=summary, description=summary)
            if name == chosen:  # the registries its options are read from import torch
                module.add_options(sub)
        args, rest = parser.parse_known_args(argv)
        if rest:
            args.parser.error(_unknown(rest, args.parser._option_string_actions))
        warnings.simplefilter("ignore")
        with options_of(args):
            for result, lines in _results(args):
                if result is not None:
                    _print(_written(result, lines, args.json))
    except KeyboardInterrupt:
        print(f"interrupted{_kept(args)}", file=sys.stderr)
        return 130
    except Exception as error:
        if not _is_for_the_user(error):
            raise
        asked = args.parser.prog if args else f"{program()} {chosen}"
        print(f"{asked}: error: {in_options(' '.join(_worded(error).split()), args)}", file=sys.stderr)
        return 2
    return 0


def _unknown(words: Sequence[str], options: Iterable[str]) -> str:
    """That no option is called so, and which each may have been meant to be."""
    meant = [get_close_matches(word.partition("=")[0], options, 1, _ALIKE) for word in words if word.startswith("--")]
    hint = f"; did you mean {' '.join(dict.fromkeys(chain(*meant)))}?" if any(meant) else ""
    return f"unrecognized arguments: {' '.join(words)}{hint}"


def _results(args) -> Iterator[tuple[dict | None, list[str]]]:
    """What a command returns, or one after another what it yields; while it works, stdout is closed to it."""
    with contextlib.redirect_stdout(sys.stderr):
        found = _run(args)
    if not isinstance(found, Iterator):
        yield found
        return
    with contextlib.closing(found):
        while True:
            with contextlib.redirect_stdout(sys.stderr):
                one = next(found, None)
            if one is None:
                return
            yield one


def _run(args):
    """Run the command; where a GPU's memory does not hold its statistics, once more with these on the CPU."""
    run, args.on_cpu, args.on_gpu = COMMANDS[args.command][1].run, False, False
    try:
        return run(args)
    except RuntimeError as error:
        from whitelab.base.machine import is_device_full

        if not (args.on_gpu and is_device_full(error)):
            raise
    note("the GPU has too little memory for it: once more, with statistics on the CPU")
    args.on_cpu = True
    return run(args)


def _kept(args) -> str:
    """What an interrupted command leaves behind; of one whose options were still being read (None), nothing."""
    if run := getattr(args, "run", None):
        left = "the last checkpoint is kept" if run.checkpoint is not None else "it has no checkpoint and begins anew"
        return f"; {left}: --resume {option('--out', args.out or run.name)}"
    if getattr(args, "step", "") in ("embed", "apply"):
        return "; finished chunks are kept"
    return "; finished embeddings are kept" if getattr(args, "no_store", None) is False else ""


def _written(result: dict, lines: list[str], as_json: bool) -> str:
    """The result in letters that stdout can encode: JSON has escapes for the others, lines have question marks.

    A terminal breaks lines wherever they end, so that spaces that keep words together on a page are usual ones here.
    """
    plain = "\n".join(lines).replace("\u00a0", " ")
    text = json.dumps(result, allow_nan=False, ensure_ascii=False) if as_json else plain
    coding = sys.stdout.encoding or "utf-8"  # text that is kept in memory has none
    try:
        text.encode(coding)
    except UnicodeEncodeError:
        return json.dumps(result, allow_nan=False) if as_json else text.encode(coding, "replace").decode(coding)
    return text


def _print(text: str) -> None:
    try:
        print(text, flush=True)
    except BrokenPipeError:  # the reader (head, less) has seen enough; keep Python from saying so again
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _worded(error: Exception) -> str:
    """What went wrong, without the system's number of it."""
    if isinstance(error, ModuleNotFoundError):
        return not_installed(error.name.partition(".")[0])
    if isinstance(error, OSError) and error.strerror:
        return f"{error.filename}: {error.strerror}" if error.filename else error.strerror
    return str(error)


def _is_for_the_user(error: Exception) -> bool:
    if isinstance(error, ModuleNotFoundError):  # of torch maybe, which the rest is asked with
        return bool(error.name) and error.name.partition(".")[0] != "whitelab"
    from whitelab.base.machine import is_out_of_memory
    from whitelab.store.embedding_store import StoreError

    known = isinstance(error, (ValueError, OSError, MemoryError, StoreError, MissingLibraryError))
    return known or is_out_of_memory(error)
