"""Lazy exports: a package imports the module of a public name when the name is first used."""

import sys

TYPE_CHECKING = False  # read as true by type checkers
if TYPE_CHECKING:  # not at run time: these imports would take longer than the rest of `import callwright`
    from collections.abc import Callable, Mapping


def install_command(wanted: str) -> str:
    """Return the command that installs packages, such as `'callwright[mcp]'`, where this program runs."""
    prefix = sys.prefix.replace("\\", "/")
    if "/pipx/venvs/" in prefix:
        return f"pipx runpip callwright install {wanted}"
    if "/uv/tools/" in prefix:  # `uv tool install` would drop the extras that are there already
        return f"uv pip install --python {sys.executable} {wanted}"
    if "/uv/archive-v" in prefix:
        added = f"--from {wanted}" if "callwright[" in wanted else " ".join(f"--with {each}" for each in wanted.split())
        return f"uvx {added} callwright"
    return f"pip install {wanted}"


def lazy_exports(
    package: str, homes: "Mapping[str, str]", *, install: "Mapping[str, str] | None" = None
) -> "Callable[[str], object]":
    """Declare the public names of a package and return its `__getattr__`.

    Sets the package's `__all__` too, so that the names are written once. Type checkers read them from the
    `TYPE_CHECKING` imports above the call; `tests/test_package.py` compares the two. The call itself stands in the
    `else` of those, because type checkers would take every name for one that `__getattr__` gives.

    Args:
        package: The package's `__name__`.
        homes: For each module, relative to the package, the names it defines, separated by spaces.
        install: Top-level packages that may be missing, each with what to install for it. If one is missing,
            using a name that needs it raises a `UsageError` that says so.
    """
    module = sys.modules[package]
    home_of = {name: home for home, names in homes.items() for name in names.split()}

    def load(name: str) -> object:
        if name not in home_of:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        from importlib import import_module

        try:
            value = getattr(import_module(f"{package}.{home_of[name]}"), name)
        except ModuleNotFoundError as error:
            missing = (error.name or "").partition(".")[0]
            if install is None or missing not in install:
                raise
            from callwright.core.errors import UsageError  # here, because importing any package runs this file

            command = install_command(install[missing])
            raise UsageError(
                f"{package}.{name} needs the package {missing}, which is not installed: {command}"
            ) from error
        setattr(module, name, value)  # the next use does not come here
        return value

    def list_names() -> list[str]:  # so that a prompt completes names that are not loaded yet
        return sorted({*vars(module), *home_of})

    vars(module).update(__all__=sorted(home_of), __dir__=list_names)
    return load
