"""Run the command line: python -m casebook."""

import sys

from casebook.cli import main

if __name__ == "__main__":
    sys.exit(main())
