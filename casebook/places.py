"""Where things are. Each path is stated once."""

from pathlib import Path

PACKAGE = Path(__file__).resolve().parent
ROOT = PACKAGE.parent
ENV = ROOT / "env"
DATA = ROOT / "data"
NOTEBOOKS = ROOT / "notebooks"
BUILD = ROOT / "_build"
#: In a checkout: what was asked upstream last. It is committed, and written anew before a book is
#: published.
UPSTREAM = Path("book", "upstream.json")

#: What runs inside a stack and fetches.
PROBES = PACKAGE / "cases" / "fetching" / "probes"
#: The two products, and the single files made from them that readers carry away: what a step of the
#: probes takes into a stack, and what looks at a program.
PRODUCTS = ROOT / "packages"
CURE = ROOT / "shared_context.py"
DOCTOR = ROOT / "doctor.py"

#: What JupyterLab lacks for the book: a folder of its extensions.
JUPYTERLAB = PACKAGE / "pages" / "jupyterlab"

#: What this machine made for itself: virtual environments, measured runs, Pythons. Never committed.
#: In a checkout it has this name. It may be a link to a folder of any other, and so may those of
#: environments and Pythons in it: what is in them knows its path, and is made anew at another one.
LOCAL_NAME = ".casebook"
LOCAL = (ROOT / LOCAL_NAME).resolve()
ENVIRONMENTS = (LOCAL / "envs").resolve()
RUNS = LOCAL / "runs"
PYTHONS = (LOCAL / "pythons").resolve()
