"""What the cure loads, keeps apart, refuses and says.

The tests are those of trust_tasks.py, which run inside stacks.
"""

import re
import shutil

import pytest
from trust_runs import HERE, NEWEST, OLDEST, PRELOADED, releases, run, site_packages

SCRIPT = "trust_tasks.py"
SEALED = "a_responses_socket_carries_a_context_that_refuses_to_change"
UNTRIED = "with_releases_that_were_not_tried_requests_stays_stock_and_says_so"
ZIP, INJECTED = "certifi_in_a_zip_archive", "stage-2-injected-today"
#: In one stack alone: which, the test, and what is asked of trust_client.py.
IN_ONE = [
    (NEWEST, "only_so_many_contexts_are_kept_and_the_least_recently_used_goes_first", {}),
    (NEWEST, "a_manager_that_allows_a_proxy_another_name_keeps_doing_so", {}),
    (NEWEST, "a_later_sslkeylogfile_is_written_to_as_ever", {}),
    (NEWEST, "an_error_that_was_not_expected_ends_the_connection", {}),
    (OLDEST, "other_ciphers_in_urllib3s_variable_make_another_context", {}),
    (INJECTED, "pyopenssls_contexts_are_not_shared", {"inject": True}),
    (PRELOADED[-1], "what_requests_preloaded_is_left_to_it", {}),
    (NEWEST, "truststores_contexts_are_not_shared", {"beside": "truststore-today"}),
    (NEWEST, UNTRIED, {"release": "2.99.0"}),
    (NEWEST, "threads_beside_gevents_loop_share", {"gevent": "everything"}),
]
#: In every release, under gevent, and so all the others without it.
UNDER_GEVENT = ("greenlets_share", SEALED)
KNOWN = re.findall(r"^def test_(\w+)", (HERE / SCRIPT).read_text(), re.M)
ELSEWHERE = {name for _, name, _ in IN_ONE} | {ZIP, *UNDER_GEVENT}
IN_EVERY = [(name, {"gevent": True}) for name in UNDER_GEVENT] + [(SEALED, {})]
IN_EVERY += [(name, {}) for name in KNOWN if name not in ELSEWHERE]


@pytest.fixture
def inside(world, cure):
    """inside(stack, name, **asked): run a test of trust_tasks.py."""
    return lambda stack, name, **asked: run(stack, SCRIPT, f"test_{name}", world, cure, **asked)


@releases(but=PRELOADED)
@pytest.mark.parametrize(("name", "asked"), IN_EVERY)
def test_in_every_release(inside, stack, name, asked):
    inside(stack, name, **asked)


@pytest.mark.parametrize(("stack", "name", "asked"), IN_ONE)
def test_in_one_stack(inside, stack, name, asked):
    inside(stack, name, **asked)


@releases(but=PRELOADED)
def test_with_certifi_in_a_zip_archive(inside, stack, world, tmp_path):
    shutil.copytree(site_packages(stack) / "certifi", tmp_path / "certifi")
    shutil.copy(world["paths"]["certifi"], tmp_path / "certifi" / "cacert.pem")
    packages = shutil.make_archive(tmp_path / "packages", "zip", tmp_path, "certifi")
    # The archive's file is unpacked into the temporary folder, under a fixed name.
    inside(stack, ZIP, zip=packages, variables={"TMPDIR": str(tmp_path)})
