"""Public names, import cost and file sizes of the package."""

import ast
import importlib
import os
import subprocess
import sys
from graphlib import TopologicalSorter
from pathlib import Path

import pytest

import callwright
from callwright.core._lazy import install_command

SOURCE = Path(callwright.__file__).parent
LAZY = sorted(
    ".".join(("callwright", *path.parent.relative_to(SOURCE).parts))
    for path in SOURCE.rglob("__init__.py")
    if "lazy_exports(" in path.read_text(encoding="utf-8")
)
HEAVY = {
    "asyncio",
    "asyncpg",
    "temporalio",
    "pydantic",
    "pydantic_core",
    "jsonschema_rs",
    "tree_sitter",
    "docstring_parser",
    "typing",
    "re",
    "json",
}


@pytest.mark.parametrize(
    ("prefix", "command"),
    [
        ("/home/ann/project/.venv", "pip install 'callwright[mcp]'"),
        ("/home/ann/.local/share/pipx/venvs/callwright", "pipx runpip callwright install 'callwright[mcp]'"),
        ("/home/ann/.local/share/uv/tools/callwright", "uv pip install --python /bin/p 'callwright[mcp]'"),
        ("/home/ann/.cache/uv/archive-v0/abc", "uvx --from 'callwright[mcp]' callwright"),
    ],
)
def test_extras_are_installed_where_the_program_runs(
    monkeypatch: pytest.MonkeyPatch, prefix: str, command: str
) -> None:
    monkeypatch.setattr(sys, "prefix", prefix)
    monkeypatch.setattr(sys, "executable", "/bin/p")
    assert install_command("'callwright[mcp]'") == command


def test_packages_of_others_are_added_to_a_temporary_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "prefix", "/home/ann/.cache/uv/archive-v0/abc")
    assert install_command("one two") == "uvx --with one --with two callwright"


def test_packages_with_lazy_exports_are_found() -> None:
    assert {"callwright", "callwright.agent", "callwright.policy"} <= set(LAZY)


@pytest.mark.parametrize(
    "name",
    # the frameworks take seconds to load
    [pytest.param(name, marks=[pytest.mark.slow] * (name == "callwright.interop")) for name in LAZY],
)
def test_public_names_import_and_match_type_checking_imports(name: str) -> None:
    module = importlib.import_module(name)
    exported = set(module.__all__)
    assert len(exported) == len(module.__all__)
    assert exported <= set(dir(module))
    for public in exported:
        assert getattr(module, public) is not None
    assert module.__file__ is not None
    text = Path(module.__file__).read_text(encoding="utf-8")
    assert "\n__getattr__" not in text  # in the `else`: type checkers would take every name for one that it gives
    tree = ast.parse(text)
    declared = {
        alias.asname
        for node in tree.body
        if isinstance(node, ast.If)
        for statement in node.body
        if isinstance(statement, ast.ImportFrom)
        for alias in statement.names
    }
    assert declared == exported


def test_unknown_name_raises_attribute_error() -> None:
    with pytest.raises(AttributeError, match="has no attribute 'Gizmo'"):
        _ = callwright.Gizmo  # type: ignore[attr-defined] # pyright: ignore[reportAttributeAccessIssue] - the point of the test


def loaded_by(code: str) -> set[str]:
    script = f"import sys; before = set(sys.modules)\n{code}\nprint(*sorted(set(sys.modules) - before))"
    done = subprocess.run([sys.executable, "-I", "-c", script], capture_output=True, text=True, check=True)
    return {name.split(".")[0] if not name.startswith("callwright") else name for name in done.stdout.split()}


def test_import_loads_only_the_lazy_table() -> None:
    loaded = loaded_by("import callwright")
    assert {name for name in loaded if name.startswith("callwright")} == {
        "callwright",
        "callwright.core",
        "callwright.core._lazy",
        "callwright.core._safe_path",
        "callwright.tool",
    }
    assert not loaded & HEAVY


def test_tool_is_the_decorator_after_other_imports() -> None:
    loaded_by("import callwright.registry.registry\nfrom callwright import tool\nassert callable(tool)")


def test_first_call_loads_no_pydantic_or_shell_parser() -> None:
    code = (
        "import asyncio\n"
        "from callwright import Effect, Executor, Registry, tool\n"
        "@tool(effect=Effect.READ)\n"
        "async def greet(name: str, times: int = 1) -> str:\n"
        "    'Greet a person.'\n"
        "    return name\n"
        "asyncio.run(Executor(Registry(greet)).run('greet', '{\"name\": \"Ada\"}'))\n"
    )
    loaded = loaded_by(code)
    assert not loaded & {
        "pydantic",
        "pydantic_core",
        "jsonschema_rs",
        "tree_sitter",
        "tree_sitter_bash",
        "docstring_parser",
    }
    assert not (loaded - loaded_by("import asyncio")) & {
        "copy",
        "dataclasses",
        "difflib",
        "json",
        "secrets",
        "shutil",
    }
    # what judges shell lines, keeps long outputs, shows questions, asks hooks, repairs calls and limits them
    for name in (
        "executor.asking",
        "executor.before_hooks",
        "executor.repair",
        "hooks.base",
        "policy.paths",
        "tool.concurrency",
        "policy.fence",
        "policy.guards",
        "policy.walled",
        "policy.shell_line",
        "shell",
        "shell.plan",
        "shell.words",
        "shell.tables",
        "system.output_capture",
        "core.escaping",
        "tool.threads",
        "executor.schedule",
        "executor.conflicts",
    ):
        assert f"callwright.{name}" not in loaded


def test_first_answer_of_an_agent_loads_neither_pydantic_nor_patterns_of_calls() -> None:
    loaded = loaded_by(
        "import asyncio\n"
        "from callwright import Agent, Text, tool\n"
        "from callwright.core.messages import AssistantMessage\n"
        "from callwright.providers.base import MessageDone\n"
        "@tool\n"
        "async def greet(name: str) -> str:\n"
        "    'Greet a person.'\n"
        "    return name\n"
        "class Short:\n"
        "    model = 'short'\n"
        "    async def stream(self, request):\n"
        "        yield MessageDone(AssistantMessage((Text('Done.'),)))\n"
        "assert asyncio.run(Agent(Short(), tools=[greet]).run('x')).text == 'Done.'\n"
    )
    assert not loaded & {"pydantic", "pydantic_core", "callwright.repairs.text_calls", "callwright.repairs.prose_calls"}


def test_version_is_written_once() -> None:
    written = [path for path in SOURCE.rglob("*.py") if f'"{callwright.__version__}"' in path.read_text("utf-8")]
    assert written == [SOURCE / "__init__.py"]


def test_version_is_printed_before_imports() -> None:
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


def test_source_files_have_at_most_400_lines() -> None:
    lengths = {path: len(path.read_text(encoding="utf-8").splitlines()) for path in SOURCE.rglob("*.py")}
    tables = {path for path in lengths if "tables" in path.parts}
    too_long = {str(path): length for path, length in lengths.items() if length > 400 and path not in tables}
    assert not too_long, f"split these files: {too_long}"


def test_no_module_imports_itself_by_way_of_others() -> None:
    modules = {
        ".".join(path.relative_to(SOURCE.parent).with_suffix("").parts): path
        for path in SOURCE.rglob("*.py")
        if path.name != "__init__.py"  # whose names are loaded when first used
    }
    imports = {name: modules.keys() & _list_imports(path) - {name} for name, path in modules.items()}
    assert "callwright.core.calls" in imports["callwright.executor.executor"]
    TopologicalSorter(imports).prepare()  # raises `CycleError`, which lists the modules


def _list_imports(path: Path) -> set[str]:
    """Return what a file imports, also inside functions and for type checkers only."""
    found: set[str] = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            found.update(each.name for each in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module:
            found.update((node.module, *(f"{node.module}.{each.name}" for each in node.names)))
    return found


WITHOUT_EXTRAS = """
import re, sys
from contextlib import suppress
from importlib.abc import MetaPathFinder
from importlib.metadata import PackageNotFoundError, packages_distributions, requires

def clean(name):
    return re.sub("[-_.]+", "-", name).lower()

core, waiting = set(), ["callwright"]
while waiting:
    name = clean(waiting.pop())
    if name not in core:
        core.add(name)
        with suppress(PackageNotFoundError):  # one that is for other systems or Pythons
            needed = [line for line in requires(name) or () if "extra ==" not in line]
            waiting += [re.match("[A-Za-z0-9._-]+", line)[0] for line in needed]
others = {top for top, given in packages_distributions().items() if not core & {clean(name) for name in given}}

class OnlyCore(MetaPathFinder):
    def __init__(self, finder):
        self._finder = finder

    def find_spec(self, name, path=None, target=None):
        return None if name.partition(".")[0] in others else self._finder.find_spec(name, path, target)

sys.meta_path[:] = map(OnlyCore, sys.meta_path)
for name in ("mcp", "openai", "temporalio", "asyncpg"):
    assert name in others, name

from callwright.cli.main import COMMANDS, run

def answer(line):
    try:
        return run(line.split())
    except SystemExit as ended:
        return ended.code

for name in COMMANDS:
    assert answer(f"{name} --help") == 0, name
for line in sys.stdin.read().splitlines():
    codes, _, command = line.partition(" ")
    got = answer(command)
    assert str(got) in codes.split(","), (got, line)
"""
LINES_WITHOUT_EXTRAS = """\
0,1 doctor
0 mcp list
0 mcp add shop -- true
2 mcp test shop
0 mcp remove shop
0 tools
0 tools search read
0,4 permissions test bash ls
0 sessions list
0 skills list
0 stats
2 serve
2 acp
2 web
2 worker desk:agent
2 runs list --store here.db
2 runs waiting --store postgresql://127.0.0.1:1/x
2 -p hello --model anthropic:claude
2 -p hello --model http://127.0.0.1:1/v1#x
"""


@pytest.mark.slow
def test_every_command_works_or_names_what_to_install_without_extras(tmp_path: Path) -> None:
    """The first installation of most users has no extra: no command may end with a traceback."""
    (tmp_path / "here.db").touch()
    environment = {"HOME": str(tmp_path), "CALLWRIGHT_HOME": str(tmp_path / "home"), "PATH": os.environ["PATH"]}
    ran = subprocess.run(
        [sys.executable, "-c", WITHOUT_EXTRAS],
        input=LINES_WITHOUT_EXTRAS,
        capture_output=True,
        text=True,
        check=False,
        cwd=tmp_path,
        env=environment,
    )
    assert ran.returncode == 0, ran.stderr[-2000:]
    assert ran.stderr.count("pip install 'callwright[") >= 7, ran.stderr
