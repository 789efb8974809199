"""Run the command line: python -m casebook."""

import sys

from casebook.cli import main

sys.exit(main())
