"""The single files that readers carry away are what the sources in packages/ make."""

import ast
import runpy

import pytest

from casebook import places

MESSAGE = "is not what its sources are: run `make products`"


def test_the_doctors_single_file_is_made_from_its_modules():
    builder = runpy.run_path(str(places.PRODUCTS / "tls-doctor" / "single_file.py"))
    assert places.DOCTOR.read_text() == builder["build"](), f"doctor.py {MESSAGE}"


def test_every_module_of_the_doctor_is_in_the_single_file():
    builder = runpy.run_path(str(places.PRODUCTS / "tls-doctor" / "single_file.py"))
    modules = {path.stem for path in builder["SOURCE"].glob("*.py")}
    assert modules - {*builder["MODULES"]} == {"__init__", "__main__", "pytest_plugin"}


def test_no_module_of_the_doctor_takes_a_name_of_another(tmp_path):
    """In the single file the second would stand for both."""
    builder = runpy.run_path(str(places.PRODUCTS / "tls-doctor" / "single_file.py"))
    for name, text in (("first", "def load(): pass"), ("second", "a, load = 1, 2")):
        (tmp_path / f"{name}.py").write_text(f'"""A module."""\n{text}\n')
    builder["build"].__globals__.update(SOURCE=tmp_path, MODULES=["first", "second"])
    with pytest.raises(ValueError, match=r"first\.py and second\.py both make load"):
        builder["build"]()


def test_the_cures_single_file_is_its_module():
    package = places.PRODUCTS / "requests-shared-context" / "src" / "requests_shared_context"
    source = (package / "__init__.py").read_bytes()
    assert places.CURE.read_bytes() == source, f"shared_context.py {MESSAGE}"


def test_nothing_imports_the_doctors_single_file():
    """A search would find everything twice. A patient may, which is a reader's program."""
    files = [*places.PACKAGE.rglob("*.py"), *(places.ROOT / "tests").rglob("*.py")]
    names = set()
    for path in files:
        if "patients" not in path.parts:
            for node in ast.walk(ast.parse(path.read_text())):
                names |= (
                    {alias.name for alias in node.names} if isinstance(node, ast.Import) else set()
                )
                names |= {node.module} if isinstance(node, ast.ImportFrom) else set()
    assert "tls_doctor" in names and "doctor" not in names
