"""Runs Jupyter Book as its command does, with a process for each processor.

The command has no option for that: `python -m casebook.pages.jupyter_book build ...`.
"""

import os
import sys
from functools import partial

# jsonschema compiles its grammars when it can be imported, for seconds, and checks no address here.
sys.modules["rfc3987_syntax"] = None  # type: ignore[assignment]

from jupyter_book import sphinx  # noqa: E402
from jupyter_book.cli.main import main  # noqa: E402

if __name__ == "__main__":
    sphinx.build_sphinx = partial(sphinx.build_sphinx, jobs=os.cpu_count() or 1)
    main()
