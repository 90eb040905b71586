"""`python -m whitelab`, which an installation calls `whitelab`."""

import sys

from whitelab.cli import main

sys.exit(main())
