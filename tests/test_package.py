"""What the package offers, what importing it costs, and how large its files are."""

import ast
import importlib
import subprocess
import sys
from pathlib import Path

import pytest

import callwright

SOURCE = Path(callwright.__file__).parent
LAZY = [
    "callwright",
    "callwright.agent",
    "callwright.hooks",
    "callwright.interop",
    "callwright.policy",
    "callwright.providers",
    "callwright.registry",
    "callwright.sessions",
    "callwright.shell",
    "callwright.telemetry",
    "callwright.testing",
]
HEAVY = {
    "asyncio",
    "pydantic",
    "pydantic_core",
    "jsonschema_rs",
    "tree_sitter",
    "docstring_parser",
    "typing",
    "re",
    "json",
}


@pytest.mark.parametrize("name", LAZY)
def test_every_public_name_can_be_imported_and_is_told_to_type_checkers(name: str) -> None:
    module = importlib.import_module(name)
    promised = set(module.__all__)
    assert len(promised) == len(module.__all__)
    for public in promised:
        assert getattr(module, public) is not None
    assert module.__file__ is not None
    tree = ast.parse(Path(module.__file__).read_text(encoding="utf-8"))
    told = {
        alias.asname
        for node in tree.body
        if isinstance(node, ast.If)
        for statement in node.body
        if isinstance(statement, ast.ImportFrom)
        for alias in statement.names
    }
    assert told == promised


def test_a_name_that_is_not_there_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="has no attribute 'Gizmo'"):
        _ = callwright.Gizmo  # type: ignore[attr-defined] # pyright: ignore[reportAttributeAccessIssue] - the point of the test


def loaded_by(code: str) -> set[str]:
    script = f"import sys; before = set(sys.modules)\n{code}\nprint(*sorted(set(sys.modules) - before))"
    done = subprocess.run([sys.executable, "-I", "-c", script], capture_output=True, text=True, check=True)
    return {name.split(".")[0] if not name.startswith("callwright") else name for name in done.stdout.split()}


def test_importing_the_package_loads_next_to_nothing() -> None:
    loaded = loaded_by("import callwright")
    assert {name for name in loaded if name.startswith("callwright")} == {
        "callwright",
        "callwright.core",
        "callwright.core._lazy",
        "callwright.tool",
    }
    assert not loaded & HEAVY


def test_the_decorator_is_the_decorator_whatever_was_imported_first() -> None:
    loaded_by("import callwright.registry.registry\nfrom callwright import tool\nassert callable(tool)")


def test_the_first_tool_runs_without_pydantic_or_the_shell_parser() -> None:
    code = (
        "import asyncio\n"
        "from callwright import Effect, Executor, Registry, tool\n"
        "@tool(effect=Effect.READ)\n"
        "async def greet(name: str, times: int = 1) -> str:\n"
        "    'Greet somebody.'\n"
        "    return name\n"
        "asyncio.run(Executor(Registry(greet)).run('greet', '{\"name\": \"Ada\"}'))\n"
    )
    assert not loaded_by(code) & {"pydantic", "jsonschema_rs", "tree_sitter", "tree_sitter_bash", "docstring_parser"}


def test_the_version_is_told_before_anything_is_loaded() -> None:
    script = (
        "import runpy, sys\n"
        "sys.argv = ['callwright', '--version']\n"
        "try:\n"
        "    runpy.run_module('callwright', run_name='__main__')\n"
        "except SystemExit as end:\n"
        "    assert not end.code\n"
        "assert 'pydantic' not in sys.modules and 'argparse' not in sys.modules\n"
    )
    done = subprocess.run([sys.executable, "-I", "-c", script], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == f"callwright {callwright.__version__}"


def test_source_files_stay_small_enough_to_read() -> None:
    lengths = {path: len(path.read_text(encoding="utf-8").splitlines()) for path in SOURCE.rglob("*.py")}
    tables = {path for path in lengths if "tables" in path.parts}
    too_long = {str(path): length for path, length in lengths.items() if length > 400 and path not in tables}
    assert not too_long, f"find the seam in {too_long}"
