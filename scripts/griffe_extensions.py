"""Extensions of griffe for the reference: frozen classes, values of defaults, docstrings, examples from the pages."""

import ast
import importlib
import inspect
import re
from pathlib import Path
from typing import Any

import griffe

from callwright.sessions import BlobStore, SessionStore

ROOT = Path(__file__).parents[1]
_BLOCK = re.compile(r"^```python\n(.*?)^```", re.DOTALL | re.MULTILINE)
_MOST_LINES = 40


class FrozenClasses(griffe.Extension):
    """Lets the signature of a frozen class be read from its fields."""

    def on_class_instance(self, *, cls: griffe.Class, **kwargs: Any) -> None:
        """Replace the decorator `frozen` by `dataclasses.dataclass`."""
        for decorator in cls.decorators:
            if decorator.callable_path == "callwright.core._fast.frozen":
                decorator.value = griffe.ExprName("dataclasses.dataclass")


class PrivateDefaults(griffe.Extension):
    """Shows the value of a default instead of the private name that its module has for it."""

    def on_function_instance(self, *, func: griffe.Function, **kwargs: Any) -> None:
        """Replace the defaults of parameters."""
        for parameter in func.parameters:
            parameter.default = find_value(func.module, parameter.default)

    def on_attribute_instance(self, *, attr: griffe.Attribute, **kwargs: Any) -> None:
        """Replace the defaults of fields, which are those of the parameters of a frozen class."""
        attr.value = find_value(attr.module, attr.value)


def find_value(module: griffe.Module, default: str | griffe.Expr | None) -> str | griffe.Expr | None:
    """Return the value of a private name of this module; anything else as it is."""
    constant = module.members.get(str(default)) if str(default).startswith("_") else None
    return (constant.value if isinstance(constant, griffe.Attribute) else None) or default


class InheritedDocstrings(griffe.Extension):
    """Documents a method without a docstring by that of the method it overrides, or of the protocol it implements."""

    def on_class_members(self, *, cls: griffe.Class, **kwargs: Any) -> None:
        """Copy the docstrings; without one, a method would be left out."""
        if cls.is_private or not isinstance(cls.parent, griffe.Module):
            return
        found = getattr(importlib.import_module(cls.parent.path), cls.name, None)
        protocols = (SessionStore, BlobStore) if cls.name.endswith("Store") else ()
        for name, member in cls.members.items():
            if member.is_function and not name.startswith("_") and member.docstring is None:
                texts = (inspect.getdoc(getattr(each, name, None)) for each in (found, *protocols))
                text = next(filter(None, texts), None)
                if text is not None:
                    member.docstring = griffe.Docstring(text, parent=member, parser="google")


class PageExamples(griffe.Extension):
    """Shows with a class or function the shortest example of it on a page; the tests run those."""

    def __init__(self) -> None:
        self._examples = find_examples()

    def on_instance(self, *, obj: griffe.Object, **kwargs: Any) -> None:
        """Add the example to the docstring."""
        if obj.docstring is not None and obj.path in self._examples:
            page, code = self._examples[obj.path]
            link = f"[{page.stem}](../../{page.relative_to(ROOT / 'docs').with_suffix('.html')})"
            body = "\n".join(f"    {line}".rstrip() for line in ["```python", *code.splitlines(), "```"])
            obj.docstring.value += f"\n\nExamples:\n    From the page {link}:\n\n{body}\n"


def find_examples() -> dict[str, tuple[Path, str]]:
    """Return the shortest block that imports each name, and its page, by the place where the name is defined."""
    found: dict[str, tuple[Path, str]] = {}
    for page in sorted((ROOT / "docs").rglob("*.md")):
        for code in _BLOCK.findall(page.read_text(encoding="utf-8")):
            if code.count("\n") > _MOST_LINES:
                continue
            for place in find_imports(code):
                if place not in found or len(code) < len(found[place][1]):
                    found[place] = (page, code)
    return found


def find_imports(code: str) -> set[str]:
    """Return where the classes and functions of callwright that a block imports are defined."""
    try:
        tree = ast.parse(code)
    except SyntaxError:  # top-level await, or a part of a program
        return set()
    found: set[str] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and (node.module or "").partition(".")[0] == "callwright":
            module = importlib.import_module(str(node.module))
            for name in node.names:
                value = getattr(module, name.name, None)
                if hasattr(value, "__qualname__"):
                    found.add(f"{value.__module__}.{value.__qualname__}")
    return found
