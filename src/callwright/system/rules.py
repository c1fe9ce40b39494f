"""One ignore file as rules: which paths below its folder it hides or brings back."""

import re
from collections.abc import Callable, Iterable
from contextlib import suppress
from dataclasses import dataclass

from callwright.system.globs import GITIGNORE, BadGlob, glob_regex

_PLAIN = re.compile(r"[^*?\[\\]+")
_EXTENSION = re.compile(r"\*(\.[^*?\[\\/]+)")


@dataclass(frozen=True, slots=True)
class Rule:
    """One line of an ignore file."""

    text: str
    line: int
    pattern: str
    """Without the marks around it: no `!`, no leading or trailing slash."""
    anchored: bool
    """Holds for the path below the file's folder; else for the name at any depth."""
    folders_only: bool
    hides: bool
    """False for `!`, which brings back what an earlier line hid."""


def parse_rules(text: str) -> list[Rule]:
    """Read an ignore file as git does; lines that can match nothing are left out."""
    lines = text.removeprefix("\ufeff").split("\n")
    rules = (_parse(line.removesuffix("\r"), number) for number, line in enumerate(lines, 1))
    return [rule for rule in rules if rule is not None]


def _parse(line: str, number: int) -> Rule | None:
    if not line or line.startswith("#"):
        return None
    pattern = _without_trailing_spaces(line)
    hides = not pattern.startswith("!")
    pattern = pattern[not hides :]
    folders_only = pattern.endswith("/")
    pattern = pattern[: -1 if folders_only else None]
    anchored = "/" in pattern
    pattern = pattern.removeprefix("/")
    return Rule(line, number, pattern, anchored, folders_only, hides) if pattern else None


def _without_trailing_spaces(line: str) -> str:
    kept = line.rstrip(" ")
    backslashes = len(kept) - len(kept.rstrip("\\"))
    return line[: len(kept) + 1] if backslashes % 2 and len(kept) < len(line) else kept


class RuleSet:
    """The rules of one file, arranged so that most paths are settled by a dictionary."""

    __slots__ = ("_extensions", "_names", "_patterns", "_prefilter", "rules", "searches", "source")

    def __init__(self, rules: Iterable[Rule], source: str = "") -> None:
        self.rules = list(rules)
        self.source = source
        self._names: dict[str, list[int]] = {}
        self._extensions: dict[str, list[int]] = {}
        self._patterns: list[tuple[int, re.Pattern[str]]] = []
        texts = [text for place, rule in enumerate(self.rules) if (text := self._arrange(place, rule))]
        self._prefilter = re.compile("|".join(texts), re.DOTALL) if texts else None
        # one of them finds something in the names of a folder, given as `/a/b/`, wherever a rule may mean one of them
        self.searches = _searches({_last_name(rule.pattern) for rule in self.rules})

    def verdict(self, path: str, name: str, *, folder: bool) -> Rule | None:
        """Return the rule that decides about a path below the file's folder: the last one that matches."""
        last = self._latest(self._names.get(name), -1, folder=folder)
        if self._extensions:
            last = self._latest_extension(name, last, folder=folder)
        if self._prefilter is not None and self._prefilter.fullmatch(path):
            last = self._latest_pattern(path, last, folder=folder)
        return self.rules[last] if last >= 0 else None

    def _arrange(self, place: int, rule: Rule) -> str:
        """File a rule where it is found fastest; return its expression if it needs one."""
        extension = _EXTENSION.fullmatch(rule.pattern)
        if not rule.anchored and _PLAIN.fullmatch(rule.pattern):
            self._names.setdefault(rule.pattern, []).append(place)
        elif not rule.anchored and extension:
            self._extensions.setdefault(extension[1], []).append(place)
        else:
            return self._compile(place, rule)
        return ""

    def _compile(self, place: int, rule: Rule) -> str:
        try:
            text = _anchored_regex(rule.pattern) if rule.anchored else "(?:.*/)?" + glob_regex(rule.pattern, GITIGNORE)
            self._patterns.append((place, re.compile(text, re.DOTALL)))
        except (BadGlob, re.error):  # git lets a broken pattern match nothing
            return ""
        return f"(?:{text})"

    def _latest(self, places: list[int] | None, last: int, *, folder: bool) -> int:
        for place in reversed(places or ()):
            if place > last and (folder or not self.rules[place].folders_only):
                return place
        return last

    def _latest_extension(self, name: str, last: int, *, folder: bool) -> int:
        start = name.find(".")
        while start >= 0:
            last = self._latest(self._extensions.get(name[start:]), last, folder=folder)
            start = name.find(".", start + 1)
        return last

    def _latest_pattern(self, path: str, last: int, *, folder: bool) -> int:
        for place, regex in reversed(self._patterns):
            if place <= last:
                break
            if (folder or not self.rules[place].folders_only) and regex.fullmatch(path):
                return place
        return last


def _anchored_regex(pattern: str) -> str:
    """Git compares the text before the first wildcard by itself: in `a**/b` the stars then stand at the beginning."""
    plain = _PLAIN.match(pattern)
    prefix = plain[0] if plain else ""
    return re.escape(prefix) + glob_regex(pattern[len(prefix) :], GITIGNORE)


def _last_name(pattern: str) -> str:
    last = pattern.rpartition("/")[2]
    return "**" if last.endswith("**") else last


def _searches(patterns: set[str]) -> list[Callable[[str], object]]:
    """Expressions that find a name fitting any of the patterns in `/a/b/`; each begins with a fixed letter."""
    endings = {found[1][1:] for pattern in patterns if (found := _EXTENSION.fullmatch(pattern))}
    others = [text for pattern in patterns if not _EXTENSION.fullmatch(pattern) and (text := _name_regex(pattern))]
    texts = [rf"\.(?:{'|'.join(map(re.escape, endings))})/"] if endings else []
    texts += [f"/(?:{'|'.join(others)})(?=/)"] if others else []
    return [re.compile(text).search for text in texts]


def _name_regex(pattern: str) -> str:
    """No wildcard of it crosses a slash."""
    with suppress(BadGlob):
        return "[^/]*" if pattern == "**" else glob_regex(pattern, GITIGNORE)
    return ""
