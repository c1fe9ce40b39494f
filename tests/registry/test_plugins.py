"""Tools of other packages, loaded through real entry points."""

import importlib
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from callwright import UsageError
from callwright.registry import Registry, installed_plugins, load_plugins

SOURCE = """
from pydantic import BaseModel
from callwright import Registry, TypedTool, tool
from callwright.tool.typed import describe

@tool
def hello(name: str) -> str:
    "Greet a guest."
    return name

@tool
def bye(name: str) -> str:
    "See a guest off."
    return name

class NoArguments(BaseModel):
    pass

class Typed(TypedTool[NoArguments]):
    spec = describe("typed", "A class of a tool.")

several = [hello, bye]
registry = Registry(hello, bye)
def function():
    return [hello]
def failing():
    raise RuntimeError("not configured")
nothing = [1]
number = 5
"""
Install = Callable[..., None]


@pytest.fixture
def install(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Install:
    monkeypatch.setattr(sys, "path", [str(tmp_path), *sys.path])
    importlib.invalidate_caches()

    def put(package: str, **points: str) -> None:
        (tmp_path / f"{package}.py").write_text(SOURCE)
        info = tmp_path / f"{package}-1.0.dist-info"
        info.mkdir()
        (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {package}\nVersion: 1.0\n")
        lines = [f"{name} = {package}:{value}" for name, value in points.items()]
        (info / "entry_points.txt").write_text("\n".join(["[callwright.tools]", *lines, ""]))
        monkeypatch.delitem(sys.modules, package, raising=False)

    return put


def test_plugins_are_listed_without_import(install: Install) -> None:
    install("plugin_listed", first="hello", second="several")
    assert {"first", "second"} <= set(installed_plugins())
    assert "plugin_listed" not in sys.modules


@pytest.mark.parametrize(
    ("value", "names"),
    [
        ("hello", ["hello"]),
        ("several", ["bye", "hello"]),
        ("registry", ["bye", "hello"]),
        ("function", ["hello"]),
        ("Typed", ["typed"]),
    ],
)
def test_entry_point_kinds_are_loaded(install: Install, value: str, names: list[str]) -> None:
    install("plugin_kinds", wanted=value)
    assert Registry(*load_plugins("wanted")).names() == names


def test_only_named_plugins_are_loaded(install: Install) -> None:
    install("plugin_one", one="hello")
    install("plugin_two", two="failing")
    assert [tool.spec.name for tool in load_plugins("one")] == ["hello"]
    assert "plugin_two" not in sys.modules


def test_two_packages_may_share_an_entry_point_name(install: Install) -> None:
    install("plugin_here", shared="hello")
    install("plugin_there", shared="bye")
    assert sorted(tool.spec.name for tool in load_plugins("shared")) == ["bye", "hello"]


def test_unknown_plugin_lists_known_ones(install: Install) -> None:
    install("plugin_known", known="hello")
    with pytest.raises(UsageError, match=r"no installed package offers tools named 'unknown'; known names: .*known"):
        load_plugins("unknown")


@pytest.mark.parametrize(
    ("value", "message"),
    [
        ("failing", "cannot be loaded: not configured"),
        ("absent", "cannot be loaded"),
        ("nothing", "offers 1, which is not a tool"),
        ("number", "cannot be loaded"),
    ],
)
def test_broken_plugin_is_named(install: Install, value: str, message: str) -> None:
    install("plugin_broken", broken=value)
    with pytest.raises(UsageError, match=f"'broken' .plugin_broken:{value}. {message}|'broken' .*{message}"):
        load_plugins("broken")
