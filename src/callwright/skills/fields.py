"""Reads the fields of a skill's front matter by type, and collects every mistake with its line."""

import re
from collections.abc import Collection, Iterator
from dataclasses import dataclass
from difflib import get_close_matches
from pathlib import Path
from typing import TYPE_CHECKING

from callwright.core.escaping import visible_prose
from callwright.system.search.globs import BadGlob, compile_glob

if TYPE_CHECKING:
    from callwright.skills.frontmatter import FrontMatter, YamlValue  # importing it would import PyYAML

_TRUE = frozenset({"true", "yes", "on", "1"})
_FALSE = frozenset({"false", "no", "off", "0"})
_RULE = re.compile(r"[^\s()]+(\((?!\s*\)$).*\))?", re.DOTALL)
_NEEDED = ("name", "description")
_ARGUMENT_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")


@dataclass(frozen=True, slots=True)
class SkillProblem:
    """A mistake in the file of a skill or command, with its line."""

    file: Path
    line: int
    text: str
    fatal: bool = True
    """The skill cannot be used; otherwise it can, but other programs may refuse it."""

    def __str__(self) -> str:
        return f"{self.file}:{self.line}: {self.text}"


class FieldReader:
    """Reads fields by type and collects all problems instead of stopping at the first.

    Args:
        file: The file the front matter is from, for messages.
        document: The front matter.
    """

    def __init__(self, file: Path, document: "FrontMatter") -> None:
        self.file = file
        self.document = document
        self.problems = [SkillProblem(file, line, text, fatal=False) for line, text in document.warnings]

    @property
    def broken(self) -> bool:
        """Whether a problem keeps the skill from being used."""
        return any(problem.fatal for problem in self.problems)

    def add_error(self, name: str, text: str) -> None:
        """Add a problem that keeps the skill from being used."""
        self.problems.append(SkillProblem(self.file, self.document.lines.get(name, 1), text))

    def add_warning(self, text: str, name: str = "") -> None:
        """Add a problem that other programs may refuse the skill for."""
        self.problems.append(SkillProblem(self.file, self.document.lines.get(name, 1), text, fatal=False))

    def check_names(self, known: Collection[str]) -> None:
        """Warn about unknown fields, which are most often misspelt."""
        for name in self.document.fields:
            if name in known:
                continue
            near = get_close_matches(name, sorted(known), n=1)
            self.add_warning(f"{name!r} is not a known field" + (f"; did you mean {near[0]}?" if near else ""), name)

    def text(self, name: str, *, longest: int | None = None, cut: bool = False) -> str:
        """Return a text field, empty if it is missing; with `cut`, one that is too long is cut with a warning."""
        value = self._get(name)
        if value is None:
            return ""
        if not isinstance(value, str):
            self.add_error(name, f"{name} must be text, not {_describe_kind(value)}")
            return ""
        value = self.show_hidden(name, value.strip())
        if not value:
            text = f"{name} is empty; write a value or remove the line"
            if name in _NEEDED:
                self.add_error(name, text)
            else:
                self.add_warning(text, name)
        if longest is not None and len(value) > longest:
            if cut:
                self.add_warning(f"{name} has {len(value)} characters; the first {longest} are used", name)
                return value[:longest]
            self.add_error(name, f"{name} has {len(value)} characters; at most {longest} are allowed")
        return value

    def show_hidden(self, name: str, text: str) -> str:
        """Return a text with its invisible characters as escapes: the model reads no more than the user can see."""
        shown = visible_prose(text)
        if shown != text:
            self.add_warning(f"{name} has invisible characters, which are written out as escapes; remove them", name)
        return shown

    def check_texts(self, name: str) -> None:
        """Check that a field is a mapping of texts."""
        value = self._get(name)
        sound = isinstance(value, dict) and all(isinstance(item, str) for item in value.values())
        if value is not None and not sound:
            self.add_error(name, f"{name} must be a mapping of names to texts")

    def flag(self, name: str, *, default: bool) -> bool:
        """Return a boolean field; yes/no, on/off and 1/0 are accepted too."""
        value = self._get(name)
        if value is None:
            return default
        word = value.lower() if isinstance(value, str) else ""
        if word not in _TRUE | _FALSE:
            self.add_error(name, f"{name} must be true or false, not {value!r}")
        return word in _TRUE

    def choice(self, name: str, choices: tuple[str, ...]) -> str:
        """Return a text field that must be one of `choices`."""
        value = self.text(name)
        if value and value not in choices:
            self.add_error(name, f"{name} must be {' or '.join(choices)}, not {value!r}")
        return value

    def names(self, name: str) -> tuple[str, ...]:
        """Return a list of argument names, usable as `$name` in the instructions."""
        found = tuple(self._items(name))
        for word in found:
            if not _ARGUMENT_NAME.fullmatch(word) or word == "ARGUMENTS":
                self.add_error(name, f"{word!r} cannot be the name of an argument; use letters, digits and '_'")
        if len(set(found)) != len(found):
            self.add_error(name, f"{name} names an argument twice")
        return found

    def rules(self, name: str) -> tuple[str, ...]:
        """Return permission rules such as `Bash(git log *)`, separated by spaces or commas, or written as a list."""
        found = tuple(self._items(name))
        for rule in found:
            if not _RULE.fullmatch(rule) or rule.count("(") != rule.count(")"):
                closed = f"; did you mean {rule})?" if rule.count("(") > rule.count(")") else ""
                self.add_error(name, f"{rule!r} in {name} is not a rule of the form Tool or Tool(specifier){closed}")
        return found

    def globs(self, name: str) -> tuple[str, ...]:
        """Return path patterns such as `src/**/*.{ts,tsx}`, separated by spaces or commas, or written as a list."""
        found = tuple(item.removeprefix("./") for item in self._items(name))
        for pattern in found:
            try:
                compile_glob(pattern)
            except BadGlob as error:
                self.add_error(name, f"{name}: {error}")
        return found

    def _items(self, name: str) -> Iterator[str]:
        value = self._get(name)
        items = value if isinstance(value, list) else [value]
        for item in items:
            if isinstance(item, str):
                yield from split_list(item)
            elif item is not None:
                self.add_error(name, f"{name} must be text or a list of texts, not {_describe_kind(item)}")

    def _get(self, name: str) -> "YamlValue":
        return self.document.fields.get(name)


def split_list(text: str, brackets: str = "(){}") -> list[str]:
    """Split a text at spaces and commas outside of these brackets."""
    items, depth, current = list[str](), 0, ""
    for char in text:
        depth += (char in brackets[::2]) - (char in brackets[1::2])
        if depth <= 0 and (char == "," or char.isspace()):
            items.append(current)
            current = ""
        else:
            current += char
    return [item for item in (*items, current) if item]


def _describe_kind(value: "YamlValue") -> str:
    return "a list" if isinstance(value, list) else "a mapping" if isinstance(value, dict) else "nothing"
