"""A package's face: names that are looked up in its modules when they are first used."""

import sys
from collections.abc import Callable
from importlib import import_module
from typing import Any


def of(
    package: str, places: dict[str, str]
) -> tuple[Callable[[str], Any], Callable[[], list[str]]]:
    """The `__getattr__` and `__dir__` of a package, so that importing it loads nothing else.

    places: name -> the module in which it is found; with a dot at its end (`"casebook.charts."`),
    the package of which the name itself is a module.
    """

    def find(name: str) -> Any:
        if name not in places:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        place = places[name]
        if place.endswith("."):
            found = import_module(place + name)
        else:
            found = getattr(import_module(place), name)
        setattr(sys.modules[package], name, found)
        return found

    return find, lambda: sorted(places)
