"""What the nightly job is told."""

import os

TITLE = os.environ.get("NIGHTLY_TITLE", "last night")
