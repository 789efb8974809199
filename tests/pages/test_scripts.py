"""A script in an environment: its one answer, and what is said and left where there is none."""

import os

import pytest

from casebook import stacks
from casebook.errors import RunFailed, VisitFailed
from casebook.laboratory import scripts
from casebook.stacks import environments


@pytest.fixture(scope="module")
def environment():
    return environments.ensure(stacks.get("stage-0"))


@pytest.fixture
def script(tmp_path):
    """Return a function that writes code as a script and returns its path."""

    def written(code):
        path = tmp_path / "asked.py"
        path.write_text(code)
        return path

    return written


def test_what_goes_in_comes_out_and_nothing_of_this_shell_goes_in(environment, script, monkeypatch):
    monkeypatch.setenv("SSL_CERT_FILE", "/nowhere.pem")
    code = "import json, os, sys\nspec = json.load(sys.stdin)\n"
    code += "json.dump([spec, os.environ.get('SSL_CERT_FILE'), os.environ['MORE']], sys.stdout)"
    answer = scripts.answer_of(
        environment, script(code), {"n": 3}, 60, variables={"MORE": "declared"}
    )
    assert answer == [{"n": 3}, None, "declared"]


def test_a_script_that_takes_too_long_is_ended_and_gone(environment, script, tmp_path):
    code = "import os, time\nopen(os.environ['PID'], 'w').write(str(os.getpid()))\ntime.sleep(600)"
    variables = {"PID": str(tmp_path / "pid")}
    with pytest.raises(RunFailed, match=r"^stage-0 did not end within 2 s\..* Try less of it\.$"):
        scripts.answer_of(environment, script(code), {}, 2, variables=variables)
    with pytest.raises(ProcessLookupError):
        os.kill(int((tmp_path / "pid").read_text()), 0)


@pytest.mark.parametrize(
    ("code", "said"),
    [
        ("raise SystemExit('out of books')", r"code 1 and no answer \(out of books\)"),
        ("print('not JSON')", r"code 0 and no answer \(nothing on standard error\)"),
    ],
)
def test_without_an_answer_the_error_says_how_it_left(environment, script, code, said):
    with pytest.raises(VisitFailed, match=rf"^a reader: asked\.py exited with {said}"):
        scripts.answer_of(environment, script(code), {}, 60, called="a reader", failed=VisitFailed)
