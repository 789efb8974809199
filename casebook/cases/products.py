"""The two products of `packages/`, imported from their sources: the cure and the doctor."""

import sys
from importlib.util import module_from_spec, spec_from_file_location
from types import ModuleType

from casebook import places


def _load(project: str, package: str) -> ModuleType:
    """Return a package of a project, without a place for it on the search path."""
    if package not in sys.modules:
        folder = places.PRODUCTS / project / "src" / package
        spec = spec_from_file_location(
            package, folder / "__init__.py", submodule_search_locations=[str(folder)]
        )
        assert spec and spec.loader
        sys.modules[package] = module_from_spec(spec)
        spec.loader.exec_module(sys.modules[package])
    return sys.modules[package]


#: The project and the package of each product, by the name that chapters know it by.
PRODUCTS = {
    "doctor": ("tls-doctor", "tls_doctor"),
    "shared_context": ("requests-shared-context", "requests_shared_context"),
}


def __getattr__(name: str) -> ModuleType:
    """Return a product, imported when it is first used."""
    if name not in PRODUCTS:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return _load(*PRODUCTS[name])
