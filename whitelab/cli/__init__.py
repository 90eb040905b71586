"""The laboratory without a browser: `whitelab score --layers 1,6 --whitening pca --json`,
or `python -m whitelab` in a clone.

Results go to stdout, everything else to stderr; wrong input exits with 2 and one line. Nothing heavy is
imported before a command runs, so `--help` answers at once: modules of this package import the rest of
whitelab inside functions.

Each command is a module of its own, with `add_options(parser)` and `run(args)`. `commands` is the table of all
of them, `dispatch` runs one. `options` and `spaces` hold what several commands share, `writing` how they write.
"""

from whitelab.cli.commands import COMMANDS
from whitelab.cli.dispatch import main

__all__ = ["COMMANDS", "main"]
