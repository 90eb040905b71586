"""`python -m whitelab`."""

import sys

from whitelab.cli import main

sys.exit(main())
