"""BFCL's multi-turn chains call by call and as programs: both must leave the same state behind.

The data and the simulated services are those of the package bfcl-eval, downloaded when this runs and not kept.
"""

import ast
import copy
import importlib
import inspect
import json
import subprocess
import sys
import tempfile
import zipfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from callwright import Executor, Registry
from callwright.codemode import CodeMode
from callwright.core.spec import ToolSpec
from callwright.policy import AllowEverything
from callwright.tool.schema_tool import SchemaTool

_PACKAGES = ("bfcl-eval==2026.3.23", "mpmath")
_STEP = "try:\n    print(await {})\nexcept Exception as error:\n    print(error)\n"


@contextmanager
def download_chains() -> Iterator[Path]:
    """Download the package and make it importable while this is open."""
    with tempfile.TemporaryDirectory() as folder:
        command = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--dest", folder, *_PACKAGES]
        subprocess.run(command, check=True, stderr=subprocess.DEVNULL)
        for wheel in Path(folder).glob("*.whl"):
            zipfile.ZipFile(wheel).extractall(folder)
        sys.path.insert(0, folder)
        try:
            yield Path(folder, "bfcl_eval", "data")
        finally:
            sys.path.remove(folder)


def read_chains(data: Path) -> list[tuple[dict[str, Any], list[list[str]]]]:
    """Return the cases with the calls of each turn."""
    name = "BFCL_v4_multi_turn_base.json"
    cases = [json.loads(line) for line in (data / name).read_text().splitlines()]
    answers = [json.loads(line) for line in (data / "possible_answer" / name).read_text().splitlines()]
    return [(case, answer["ground_truth"]) for case, answer in zip(cases, answers, strict=True)]


class Services:
    """The simulated services of one case, and their methods as tools."""

    def __init__(self, case: Mapping[str, Any]) -> None:
        homes: dict[str, str] = importlib.import_module(
            "bfcl_eval.constants.executable_backend_config"
        ).CLASS_FILE_PATH_MAPPING
        self.instances: dict[str, Any] = {}
        for name in case["involved_classes"]:
            instance = getattr(importlib.import_module(homes[name]), name)()
            if hasattr(instance, "_load_scenario"):
                instance._load_scenario(copy.deepcopy(case["initial_config"].get(name, {})), long_context=False)
            self.instances[name] = instance
        self.methods = {
            method_name: method
            for instance in self.instances.values()
            for method_name, method in inspect.getmembers(instance, inspect.ismethod)
            if not method_name.startswith("_")
        }

    def registry(self) -> Registry:
        """Return every method as a tool."""
        return Registry(*(_make_tool(name, method) for name, method in self.methods.items()))

    def state(self) -> dict[str, Any]:
        """Return what the services hold."""
        return {name: _plain(instance) for name, instance in self.instances.items()}


def _make_tool(name: str, method: Callable[..., object]) -> SchemaTool:
    names = list(inspect.signature(method).parameters)
    schema: dict[str, Any] = {"type": "object", "properties": {each: {} for each in names}}

    async def run(arguments: Mapping[str, Any]) -> str:
        return json.dumps(method(**arguments), default=str)

    return SchemaTool(ToolSpec(name, inspect.getdoc(method) or name, schema), run)


def _plain(value: Any) -> Any:
    """Return comparable data: objects by their attributes, random generators left out."""
    if isinstance(value, Mapping):
        return {str(key): _plain(each) for key, each in value.items()}
    if isinstance(value, (list, tuple)):
        return [_plain(each) for each in value]
    if hasattr(value, "__dict__") and not callable(value):
        fields = {key: each for key, each in vars(value).items() if key not in ("_random", "parent")}
        return {type(value).__name__: _plain(fields)}
    return value if isinstance(value, (str, int, float, bool, type(None))) else type(value).__name__


def _arguments(call: ast.Call, method: Callable[..., object]) -> dict[str, Any]:
    names = list(inspect.signature(method).parameters)
    given = {name: ast.literal_eval(value) for name, value in zip(names, call.args, strict=False)}
    return given | {str(part.arg): ast.literal_eval(part.value) for part in call.keywords}


async def compare_chains() -> tuple[str, bool]:
    """Run every chain both ways; return the figures, and whether all states were equal."""
    with download_chains() as data:
        equal, changed, calls, programs = 0, 0, 0, 0
        chains = read_chains(data)
        for case, turns in chains:
            one, other = Services(case), Services(case)
            direct = Executor(one.registry(), AllowEverything())
            coded = Executor(CodeMode(other.registry()), AllowEverything())
            for turn in turns:
                parsed = [ast.parse(text, mode="eval").body for text in turn]
                for call in parsed:
                    assert isinstance(call, ast.Call) and isinstance(call.func, ast.Name)
                    await direct.run(call.func.id, _arguments(call, one.methods[call.func.id]))
                    calls += 1
                # a call that fails must not end the program, as it does not end the chain
                if turn:
                    await coded.run("run_code", {"code": "".join(_STEP.format(text) for text in turn)})
                    programs += 1
            equal += one.state() == other.state()
            changed += one.state() != Services(case).state()
    figures = f"{equal} of {len(chains)} equal, {changed} changed by {calls} calls in {programs} programs"
    return figures, equal == len(chains)
