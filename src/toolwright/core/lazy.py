"""Packages that load a name's module when the name is first used, so that importing them stays light."""

import sys
from collections.abc import Callable, Mapping
from importlib import import_module


def loader(package: str, homes: Mapping[str, str]) -> Callable[[str], object]:
    """Make a package's `__getattr__`: `homes` says which module holds which names, separated by spaces."""
    where = {name: home for home, names in homes.items() for name in names.split()}

    def load(name: str) -> object:
        if name not in where:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        value = getattr(import_module(f"{package}.{where[name]}"), name)
        setattr(sys.modules[package], name, value)  # found the ordinary way from now on
        return value

    return load
