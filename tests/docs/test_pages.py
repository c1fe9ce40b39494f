"""The code on the documentation pages runs."""

import ast
import importlib
import inspect
import re
import runpy
from collections.abc import Callable, Iterator
from dataclasses import is_dataclass
from pathlib import Path

import pytest

from callwright.sessions import BlobStore, SessionStore

ROOT = Path(__file__).parents[2]
SLOW = {"interop.md", "check-a-provider.md"}  # they load other frameworks, or all SDKs of vendors
SHOWN_ONLY = {"providers.md"}  # needs the keys of four vendors
PAGES = [
    page
    for page in sorted((ROOT / "docs").rglob("*.md"))
    if "```python" in page.read_text(encoding="utf-8")
    and page.name not in SHOWN_ONLY
    and page.parent.name != "start"  # those are played in a terminal
]


@pytest.mark.parametrize(
    "page",
    [pytest.param(page, marks=[pytest.mark.slow] * (page.name in SLOW), id=page.name) for page in PAGES],
)
def test_python_on_a_page_runs(page: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(ROOT)
    blocks = re.findall(r"```python\n(.*?)```", page.read_text(encoding="utf-8"), re.DOTALL)
    exec(compile("\n".join(blocks), str(page), "exec"), {"__name__": f"docs_{page.stem}"})


def test_first_readme_example_prints_its_comments(capsys: pytest.CaptureFixture[str]) -> None:
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    block = re.findall(r"```python\n(.*?)```", text, re.DOTALL)[0]
    exec(compile(block, "README.md", "exec"), {"__name__": "readme"})
    first, second = capsys.readouterr().out.splitlines()
    assert f"# {first}" in block
    assert second.startswith("invalid arguments: ")
    said = next(line for line in block.splitlines() if line.startswith("# invalid")).removeprefix("# ").split("; …")[0]
    assert said in second


def test_pages_import_names_of_the_reference_only() -> None:
    """What the pages tell users to import is what the promise about versions covers."""
    public = runpy.run_path(str(ROOT / "scripts" / "reference"), run_name="reference")["list_public"]()
    imported = {
        (str(node.module), name.name, page.name)
        for page in [ROOT / "README.md", *(ROOT / "docs").rglob("*.md")]
        for block in re.findall(r"^```python\n(.*?)^```", page.read_text(encoding="utf-8"), re.DOTALL | re.MULTILINE)
        for node in ast.walk(ast.parse(block))
        if isinstance(node, ast.ImportFrom) and (node.module or "").partition(".")[0] == "callwright"
        for name in node.names
    }
    assert len(imported) > 150
    assert {each for each in imported if each[1] not in public.get(each[0], ())} == set()


@pytest.mark.timeout(600)  # it loads every package, with the frameworks of callwright.interop
def test_reference_matches_the_code() -> None:
    script = runpy.run_path(str(ROOT / "scripts" / "reference"), run_name="reference")
    written = (ROOT / "docs" / "reference" / "api.md").read_text(encoding="utf-8")
    assert written == script["page"](), "run scripts/reference"


def find_callables(place: str, name: str, value: object) -> Iterator[tuple[str, Callable[..., object], str]]:
    """Yield a public function, or the constructor and methods of a class, each with the docstrings about it."""
    if inspect.isfunction(value):
        yield f"{place}.{name}", value, inspect.getdoc(value) or ""
    if not inspect.isclass(value):
        return
    own = vars(value).get("__init__")
    if inspect.isfunction(own) and not is_dataclass(value) and own.__module__.startswith("callwright"):
        yield f"{place}.{name}", own, inspect.getdoc(value) or ""
    for attribute, member in vars(value).items():
        function = getattr(member, "__func__", member)
        if inspect.isfunction(function) and not attribute.startswith("_"):
            related = [*value.__mro__, SessionStore, BlobStore]  # stores do not inherit from their protocols
            texts = (inspect.getdoc(vars(each)[attribute]) or "" for each in related if attribute in vars(each))
            yield f"{place}.{name}.{attribute}", function, "\n".join(texts)


def test_public_functions_document_their_parameters() -> None:
    """With one parameter, the first line says what it is; with several, each is below Args or named in the text."""
    public = runpy.run_path(str(ROOT / "scripts" / "reference"), run_name="reference")["list_public"]()
    checked: dict[str, list[str]] = {}
    for place, names in public.items():
        for name in names if place != "callwright.interop" else ():  # the frameworks take seconds to load
            for path, function, text in find_callables(place, name, getattr(importlib.import_module(place), name)):
                given = [each for each in inspect.signature(function).parameters if each not in ("self", "cls")]
                documented = [each for each in given if re.search(rf"^ *{each}:|`{each}`", text, re.MULTILINE)]
                checked[path] = [] if len(given) < 2 else sorted({*given} - {*documented})
    assert len(checked) > 400
    assert {path: names for path, names in checked.items() if names} == {}
