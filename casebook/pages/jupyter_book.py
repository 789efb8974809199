"""Runs Jupyter Book as its command does, with a process for each processor.

The command has no option for that: `python -m casebook.pages.jupyter_book build ...`.
"""

import os
from functools import partial

from jupyter_book import sphinx
from jupyter_book.cli.main import main

if __name__ == "__main__":
    sphinx.build_sphinx = partial(sphinx.build_sphinx, jobs=os.cpu_count() or 1)
    main()
