"""The book on a machine that has no old Python: the reference run stands in, and says so."""

import json
import os
import shutil
import sys
from pathlib import Path

import pytest
from here import run

from casebook import places
from casebook.stacks import interpreters, pythons

#: Where this machine has none, its own book is what is looked at: .ci/bare sees to that, for each
#: change. Elsewhere a second book takes minutes, and shows the same by night.
HAS_NONE = not any(map(interpreters.find, interpreters.LAST_RELEASES))
pytestmark = [] if HAS_NONE else [pytest.mark.nightly, pytest.mark.timeout(2400)]


@pytest.fixture(scope="module")
def book_without_old_pythons(tmp_path_factory):
    """The whole book where no old interpreter can be found: its root.

    It is built from a copy of this tree unless this machine is such a one. Its root.
    """
    if HAS_NONE:
        assert (places.ROOT / "_build" / "html" / "claims.json").exists(), "`make book` comes first"
        return places.ROOT
    home = tmp_path_factory.mktemp("home")
    root = home / "book"
    listed = run("git", "ls-files", "-co", "--exclude-standard", check=True)
    for name in listed.stdout.splitlines():
        if (places.ROOT / name).is_file():
            (root / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(places.ROOT / name, root / name)
    # Environments and measurements of today's Python are the same ones: their digests say so.
    (root / places.LOCAL_NAME).symlink_to(places.LOCAL)
    hidden = ("PYENV_ROOT", "CONDA_PREFIX", "CASEBOOK_REQUIRE", "CASEBOOK_MODE")
    environ = {name: value for name, value in os.environ.items() if name not in hidden}
    # What was downloaded before need not be downloaded again.
    cache = os.environ.get("UV_CACHE_DIR") or str(Path.home() / ".cache" / "uv")
    environ |= {"HOME": str(home), "PATH": "/usr/bin:/bin", "UV_CACHE_DIR": cache}
    done = run(sys.executable, "-m", "casebook", "book", cwd=root, env=environ, timeout=1800)
    assert done.returncode == 0, done.stderr
    if offered := pythons.offer_of(*interpreters.LAST_RELEASES):  # once, and the build goes on
        assert done.stderr.splitlines().count(offered) == 1, done.stderr
    return root


def test_claims_of_old_stacks_come_from_the_reference_run_and_the_others_are_live(
    book_without_old_pythons,
):
    claims = json.loads((book_without_old_pythons / "_build" / "html" / "claims.json").read_text())
    sources = {claim["id"]: claim["source"] for claim in claims}
    assert sources["stages-as-published"] == "reference"
    assert sources["today-google-auth-constructor"] == "live"
    for claim in claims:
        if "py27" in claim["stack"] or "py37" in claim["stack"]:
            assert claim["source"] == "reference", claim["id"]


def test_pages_say_what_was_not_measured_now(book_without_old_pythons):
    html = book_without_old_pythons / "_build" / "html"
    for page in ("02_all_at_once", "04_five_stages", "05_reading_the_profile"):
        text = (html / "notebooks" / f"{page}.html").read_text()
        assert "not measured now" in text
