"""Globs: what they match, and that they end."""

import json
import os
from itertools import product
from pathlib import Path

import pytest
from hypothesis import given, settings, strategies as st

from callwright.system.search.gitignore import IgnoreRules, parse_rules
from callwright.system.search.globs import GITIGNORE, SHELL, BadGlob, Dialect, matches


@pytest.mark.parametrize(
    ("pattern", "path", "expected"),
    [
        ("*.py", "a.py", True),
        ("*.py", "b/a.py", False),
        ("**/*.py", "a.py", True),
        ("**/*.py", "x/y/a.py", True),
        ("src/**", "src/a/b", True),
        ("src/**", "src", False),
        ("a/**/b", "a/b", True),
        ("a/**/b", "a/x/y/b", True),
        ("a/**/**/b", "a/x/b", True),
        ("**/**", "a", True),
        ("a/**/**", "a/b/c", True),
        ("a**b", "axxb", True),
        ("a**b", "a/b", False),
        ("*.{ts,tsx}", "a.tsx", True),
        ("*.{ts,tsx}", "a.js", False),
        ("{src,lib}/**/{a,b}.py", "lib/x/b.py", True),
        ("a{,.bak}", "a", True),
        ("{a,{b,c}d}", "cd", True),
        ("[!a]b", "cb", True),
        ("[^a]b", "ab", False),
        ("a[!b]c", "a/c", False),
        ("a[,-0]c", "a/c", False),
        ("{src/**,lib}/a.py", "src/x/a.py", True),
        ("{src/**,lib}/a.py", "lib/a.py", True),
        ("x/{**/a,b*}", "x/y/z/a", True),
        ("{a,b}{c,d}{e,f*}", "bcfx", True),
        ("[]x]", "]", True),
        ("[a-c]", "b", True),
        ("[[:digit:]]", "7", True),
        ("\\*", "*", True),
        ("\\*", "x", False),
        ("file.txt", "fileatxt", False),
        ("?", "/", False),
        ("*a*a*", "bab", False),
        ("*[ab]x*y", "bxy", True),
    ],
)
def test_a_glob_matches_as_in_a_shell(pattern: str, path: str, expected: bool) -> None:
    assert matches(pattern, path) is expected


@pytest.mark.parametrize(
    "pattern", ["[a", "{a,b", "a}", "a\\", "[[:nope:]]", "{" * 2000 + "a" + "}" * 2000, "{a*,b,c}" * 20, "{**,a}b" * 4]
)
def test_malformed_glob_raises(pattern: str) -> None:
    with pytest.raises(BadGlob, match="the glob"):
        matches(pattern, "a")


def test_many_stars_match_in_linear_time() -> None:
    assert not matches("*a" * 30 + "b", "a" * 250)
    assert not matches("?*a" * 20 + "b", "a" * 250)


def test_many_deep_folders_match_without_backtracking() -> None:
    assert not matches("**/a/" * 12 + "x", "a/" * 60 + "y")
    assert not matches("**/a/" * 12 + "x", "a/" * 60 + "y", GITIGNORE)
    assert not matches("b/" + "**/*a*/?/" * 12 + "x", "b/" + "aa/a/" * 60 + "y")
    assert not IgnoreRules(parse_rules("a**" + "/a/**" * 12 + "/x")).verdict("a/" * 60 + "y", "y", folder=False)


def test_many_alternatives_match_without_backtracking() -> None:
    assert not matches("{*a,*b}" * 8 + "c", "a" * 250)
    assert not matches("*a{,b}" * 6 + "c", "a" * 250)
    assert not matches("*[,-0]" * 20 + "c", "." * 250)
    assert not matches("*{*,**}*a{*a,b}*[!b]/c", "a" * 250)


_TEXT = st.text("ab/.", max_size=8)
_BRANCH = st.text("ab*?/", max_size=3)
_GROUPS = st.lists(st.one_of(_BRANCH, st.lists(_BRANCH, min_size=1, max_size=3)), max_size=4)


@settings(max_examples=500)
@given(_GROUPS, st.text("aab/", max_size=10))
def test_alternatives_match_like_the_patterns_that_they_stand_for(groups: list[str | list[str]], path: str) -> None:
    choices = [[group] if isinstance(group, str) else group for group in groups]
    if any("**" in part or "//" in part for choice in choices for part in choice):
        return
    pattern = "".join(group if isinstance(group, str) else f"{{{','.join(group)}}}" for group in groups)
    expanded = ["".join(parts) for parts in product(*choices)]
    if not any("**" in each for each in expanded):
        assert matches(pattern, path) == any(_slow(each, path) for each in expanded)


@given(st.text("ab*?/.", max_size=8), _TEXT)
def test_stars_match_like_a_backtracking_matcher(pattern: str, path: str) -> None:
    if "**" not in pattern:
        assert matches(pattern, path) == _slow(pattern, path)


_PARTS = st.lists(st.sampled_from(("**", "**", "**", "a", "b", "*", "?", "a*", "*b", "*a*", "")), max_size=8)


@settings(max_examples=1000)
@given(_PARTS.map("/".join), st.text("aab/", max_size=14))
def test_deep_folders_match_like_a_backtracking_matcher(pattern: str, path: str) -> None:
    for dialect in (SHELL, GITIGNORE):
        assert matches(pattern, path, dialect) == _slow(pattern, path)


def _slow(pattern: str, path: str, *, begins: bool = True) -> bool:
    """Match, given whether the pattern begins a part of a path."""
    if not pattern:
        return not path
    if begins and pattern == "**":
        return True
    if begins and pattern.startswith("**/"):
        ends = [place + 1 for place, letter in enumerate(path) if letter == "/"]
        return any(_slow(pattern[3:], path[end:]) for end in (0, *ends))
    if pattern[0] == "/":
        return path[:1] == "/" and _slow(pattern[1:], path[1:])
    if pattern[0] == "*":
        more = bool(path) and path[0] != "/" and _slow(pattern, path[1:], begins=False)
        return more or _slow(pattern[1:], path, begins=False)
    fits = bool(path) and (path[0] == pattern[0] or (pattern[0] == "?" and path[0] != "/"))
    return fits and _slow(pattern[1:], path[1:], begins=False)


def test_backslashes_can_be_separators() -> None:
    windows = Dialect(backslash="separator")
    assert matches("a\\b", "a/b", windows)
    assert not matches("a?b", "a\\b", windows)


def test_the_external_cases_get_the_same_answer() -> None:
    folder = os.environ.get("CALLWRIGHT_CASES")
    if folder is None:
        pytest.skip("CALLWRIGHT_CASES names no folder of external cases")
    rows = [json.loads(line) for line in (Path(folder) / "grepglob" / "globset.jsonl").read_text().splitlines()]
    assert [row["name"] for row in rows if matches(row["pattern"], row["path"], _dialect(row)) != row["matches"]] == []


def _dialect(row: dict[str, str]) -> Dialect:
    slashes = row["options"] == "SLASHLIT"
    elsewhere = "separator" if slashes and "\\" in row["pattern"] + row["path"] else "escape"
    return Dialect(
        crossing=not slashes,
        ignore_case=row["options"] == "CASEI",
        empty_alternatives=row["options"] == "EALTRE",
        backslash="literal" if row["options"] == "NOBSESC" else elsewhere,
    )
