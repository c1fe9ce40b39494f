"""Lazy exports: a package loads the module of a name when the name is first used, so importing it stays cheap."""

import sys

TYPE_CHECKING = False  # read as true by type checkers
if TYPE_CHECKING:  # every import of the package passes through here, and these take longer than all the rest of it
    from collections.abc import Callable, Mapping


def lazy_exports(
    package: str, homes: "Mapping[str, str]", *, install: "Mapping[str, str] | None" = None
) -> "Callable[[str], object]":
    """Declare the public names of a package and return its `__getattr__`.

    Sets the package's `__all__` too, so that the names are written once. Type checkers read them from the
    `TYPE_CHECKING` imports beside the call; `tests/test_package.py` compares the two.

    Args:
        package: The package's `__name__`.
        homes: Module (relative to the package) to the names it defines, separated by spaces.
        install: Top-level packages that may be missing, each with what to `pip install` for it. A missing one is a
            `UsageError` that says so.
    """
    where = {name: home for home, names in homes.items() for name in names.split()}
    names = sorted(where)
    vars(sys.modules[package]).update(
        __all__=names, __dir__=lambda: [*names, "__version__"] if "." not in package else names
    )

    def load(name: str) -> object:
        if name not in where:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        from importlib import import_module

        try:
            value = getattr(import_module(f"{package}.{where[name]}"), name)
        except ModuleNotFoundError as error:
            missing = (error.name or "").partition(".")[0]
            if install is None or missing not in install:
                raise
            from callwright.core.errors import UsageError  # here: importing any package passes through this file

            raise UsageError(
                f"{package}.{name} needs the package {missing}, which is not installed: pip install {install[missing]}"
            ) from error
        setattr(sys.modules[package], name, value)  # found the ordinary way from now on
        return value

    return load
