"""What a build must not do without (CASEBOOK_REQUIRE), where it would otherwise fall back."""

import shutil

from casebook.errors import BookFailed
from casebook.stacks import environments


def check() -> None:
    """Raise BookFailed when something that CASEBOOK_REQUIRE names is not on this machine."""
    missing = [name for name in sorted(environments.required()) if not _present(name)]
    if missing:
        raise BookFailed(
            f"CASEBOOK_REQUIRE asks for {', '.join(missing)}, which this machine does not have. "
            "Install it, or leave it out of CASEBOOK_REQUIRE."
        )


def _present(name: str) -> bool:
    if name[0].isdigit():
        return environments.find_interpreter(name) is not None
    return shutil.which(name) is not None
