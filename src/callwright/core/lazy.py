"""Packages that load a name's module when the name is first used, so that importing them stays light."""

import sys

TYPE_CHECKING = False  # read as true by type checkers
if TYPE_CHECKING:  # every import of the package passes through here, and these take longer than all the rest of it
    from collections.abc import Callable, Mapping


def loader(package: str, homes: "Mapping[str, str]") -> "Callable[[str], object]":
    """Make a package's `__getattr__`: `homes` says which module holds which names, separated by spaces."""
    where = {name: home for home, names in homes.items() for name in names.split()}

    def load(name: str) -> object:
        if name not in where:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        from importlib import import_module

        value = getattr(import_module(f"{package}.{where[name]}"), name)
        setattr(sys.modules[package], name, value)  # found the ordinary way from now on
        return value

    return load


def loader_for_extra(package: str, homes: "Mapping[str, str]", *, needs: str, extra: str) -> "Callable[[str], object]":
    """Make the `__getattr__` of a package behind an extra: what is not installed is a `UsageError` that names the fix.

    `needs` lists the top-level packages the extra brings, separated by spaces.
    """
    load, optional = loader(package, homes), frozenset(needs.split())

    def load_or_tell(name: str) -> object:
        try:
            return load(name)
        except ModuleNotFoundError as error:
            if error.name is None or error.name.partition(".")[0] not in optional:
                raise
            from callwright.core.errors import (
                UsageError,
            )  # here, because importing any package passes through this file

            raise UsageError(
                f"{package} needs the package {error.name}, which is not installed: pip install 'callwright[{extra}]'"
            ) from error

    return load_or_tell
