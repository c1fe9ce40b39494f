"""The fields at the top of a skill as what they are meant to be, and what is wrong with them, by line."""

import re
from collections.abc import Collection, Iterator
from dataclasses import dataclass
from difflib import get_close_matches
from pathlib import Path

from callwright.skills.scalars import Value
from callwright.skills.yaml import Document
from callwright.system.globs import BadGlob, compile_glob

_YES = frozenset({"true", "yes", "on", "1"})
_NO = frozenset({"false", "no", "off", "0"})
_RULE = re.compile(r"[^\s()]+(\(.*\))?", re.DOTALL)
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")


@dataclass(frozen=True, slots=True)
class Problem:
    """What is wrong with a file, and where."""

    file: Path
    line: int
    text: str
    fatal: bool = True
    """The skill cannot be used; else it can, but other programs may refuse it."""

    def __str__(self) -> str:
        return f"{self.file}:{self.line}: {self.text}"


class Fields:
    """Hands out fields by kind, and collects what is wrong instead of stopping at the first mistake."""

    def __init__(self, file: Path, document: Document) -> None:
        self.file = file
        self.document = document
        self.problems = [Problem(file, remark.line, remark.text, fatal=False) for remark in document.remarks]

    @property
    def wrong(self) -> bool:
        """Whether anything keeps the skill from being used."""
        return any(problem.fatal for problem in self.problems)

    def refuse(self, name: str, text: str) -> None:
        """Note a mistake at a field."""
        self.problems.append(Problem(self.file, self.document.lines.get(name, 1), text))

    def remark(self, text: str, name: str = "") -> None:
        """Note what others would refuse."""
        self.problems.append(Problem(self.file, self.document.lines.get(name, 1), text, fatal=False))

    def expect(self, known: Collection[str]) -> None:
        """Remark on fields nobody knows, which are most often misspelt."""
        for name in self.document.fields:
            if name in known:
                continue
            near = get_close_matches(name, sorted(known), n=1)
            self.remark(f"{name!r} is not a known field" + (f"; did you mean {near[0]}?" if near else ""), name)

    def text(self, name: str, *, longest: int | None = None) -> str:
        """A text, empty where it is not given."""
        value = self._given(name)
        if value is None:
            return ""
        if not isinstance(value, str):
            self.refuse(name, f"{name} must be a text, not {_kind(value)}")
            return ""
        value = value.strip()
        if not value:
            self.refuse(name, f"{name} is empty; write something after it or remove the line")
        if longest is not None and len(value) > longest:
            self.refuse(name, f"{name} has {len(value)} characters; at most {longest} are allowed")
        return value

    def texts(self, name: str) -> None:
        """Check a map of texts."""
        value = self._given(name)
        sound = isinstance(value, dict) and all(isinstance(item, str) for item in value.values())
        if value is not None and not sound:
            self.refuse(name, f"{name} must be a map of texts")

    def flag(self, name: str, *, default: bool) -> bool:
        """Yes or no, in the words people use for it."""
        value = self._given(name)
        if value is None:
            return default
        said = value.lower() if isinstance(value, str) else ""
        if said not in _YES | _NO:
            self.refuse(name, f"{name} must be true or false, not {value!r}")
        return said in _YES

    def choice(self, name: str, choices: tuple[str, ...]) -> str:
        """One of a few words."""
        value = self.text(name)
        if value and value not in choices:
            self.refuse(name, f"{name} must be {' or '.join(choices)}, not {value!r}")
        return value

    def names(self, name: str) -> tuple[str, ...]:
        """Words that can stand after a dollar sign."""
        found = tuple(self._items(name))
        for word in found:
            if not _NAME.fullmatch(word) or word == "ARGUMENTS":
                self.refuse(name, f"{word!r} cannot be the name of an argument; use letters, digits and '_'")
        if len(set(found)) != len(found):
            self.refuse(name, f"{name} has the same name twice")
        return found

    def rules(self, name: str) -> tuple[str, ...]:
        """Permission rules, such as `Bash(git log *)`, parted by spaces, commas or as a list."""
        found = tuple(self._items(name))
        for rule in found:
            if not _RULE.fullmatch(rule) or rule.count("(") != rule.count(")"):
                closed = f"; did you mean {rule})?" if rule.count("(") > rule.count(")") else ""
                self.refuse(name, f"{rule!r} in {name} is not a rule of the form Tool or Tool(specifier){closed}")
        return found

    def globs(self, name: str) -> tuple[str, ...]:
        """Patterns for paths, such as `src/**/*.{ts,tsx}`, parted by spaces, commas or as a list."""
        found = tuple(item.removeprefix("./") for item in self._items(name))
        for pattern in found:
            try:
                compile_glob(pattern)
            except BadGlob as error:
                self.refuse(name, f"{name}: {error}")
        return found

    def _items(self, name: str) -> Iterator[str]:
        value = self._given(name)
        items = value if isinstance(value, list) else [value]
        for item in items:
            if isinstance(item, str):
                yield from split_outside(item)
            elif item is not None:
                self.refuse(name, f"{name} must be a text or a list of texts; {_kind(item)} is neither")

    def _given(self, name: str) -> Value:
        return self.document.fields.get(name)


def split_outside(text: str) -> list[str]:
    """Split at spaces and commas that do not stand inside parentheses or braces."""
    items, depth, current = list[str](), 0, ""
    for char in text:
        depth += (char in "({") - (char in ")}")
        if depth <= 0 and (char == "," or char.isspace()):
            items.append(current)
            current = ""
        else:
            current += char
    return [item for item in (*items, current) if item]


def _kind(value: Value) -> str:
    return "a list" if isinstance(value, list) else "a map" if isinstance(value, dict) else "nothing"
