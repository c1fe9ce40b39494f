"""Rule patterns match what a person would expect, in linear time."""

from pathlib import Path

import pytest
from hypothesis import given, strategies as st

from callwright.policy.rules.patterns import (
    command_pattern,
    domain_matches,
    escape_wildcards,
    join_words,
    path_pattern,
    wildcard,
)


@pytest.mark.parametrize(
    ("pattern", "command", "expected"),
    [
        ("ls *", "ls", True),
        ("ls *", "ls -la", True),
        ("ls *", "lsof", False),
        ("ls*", "lsof", True),
        ("ls:*", "ls -la", True),
        ("ls:*", "lsof", False),
        ("git:* push", "git push", False),
        ("git:* push", "git:x push", True),
        ("npm run build", "npm run build", True),
        ("npm run build", "npm run build --verbose", False),
        ("npm   run  build", "npm run build", True),
        ("* --help *", "npm --help install", True),
        ("* --help *", "npm --help", True),
        ("git * main", "git checkout main", True),
        ("git * main", "git checkout dev", False),
        ("*", "anything at all", True),
        (r"grep \* x", "grep * x", True),
        (r"grep \* x", "grep abc x", False),
        ("echo 'a b' *", "echo a\0b c", True),
        ("echo 'a b' *", "echo a b c", False),
    ],
)
def test_command_pattern_matches_by_words(pattern: str, command: str, *, expected: bool) -> None:
    assert command_pattern(pattern).matches(command) is expected


@pytest.mark.parametrize(
    ("pattern", "command", "expected"),
    [
        ("curl https://exam*", ("curl", "https://exam.evil.org"), False),
        ("curl https://example.org/*", ("curl", "https://example.org/a"), True),
        ("curl https://example.org/*", ("curl", "https://example.org/a", "https://evil.org"), False),
        ("curl https://example.org/", ("curl", "https://example.org/", "x"), True),
        ("npm run test*", ("npm", "run", "test:unit", "x"), True),
        ("* build/*", ("rm", "build/a", "b"), True),
    ],
)
def test_last_wildcard_of_an_operand_stays_in_its_word(
    pattern: str, command: tuple[str, ...], *, expected: bool
) -> None:
    assert command_pattern(pattern).stays_in_word(command) is expected


def test_literal_space_never_matches_inside_a_word() -> None:
    assert not command_pattern("git log").matches(join_words(("git log",)))
    assert command_pattern("git log").matches(join_words(("git", "log")))


@pytest.mark.parametrize("wide", [False, True])
@pytest.mark.parametrize("star", ["*", "***"])
def test_star_alone_is_one_name_however_many(star: str, *, wide: bool) -> None:
    pattern = path_pattern(f"//srv/{star}/notes", base="/", cwd="/work", home="/root", wide=wide)
    assert pattern.matches("/srv/a/notes") and not pattern.matches("/srv/a/b/notes")


@given(st.text(min_size=1))
def test_escaped_text_matches_only_itself(text: str) -> None:
    pattern = wildcard(escape_wildcards(text))
    assert pattern.exact
    assert pattern.matches(text)
    assert not pattern.matches(text + "x")


@given(st.lists(st.text(alphabet="ab*", max_size=6), max_size=4), st.text(alphabet="ab", max_size=12))
def test_wildcard_agrees_with_its_definition(pieces: list[str], text: str) -> None:
    pattern = "*".join(pieces)
    assert wildcard(pattern).matches(text) is _slowly(pattern, text)


def _slowly(pattern: str, text: str) -> bool:
    if not pattern:
        return not text
    if pattern[0] == "*":
        return any(_slowly(pattern[1:], text[start:]) for start in range(len(text) + 1))
    return bool(text) and text[0] == pattern[0] and _slowly(pattern[1:], text[1:])


def test_many_wildcards_cost_no_more_than_one() -> None:
    assert not wildcard("*a" * 200 + "b").matches("a" * 20_000)


def _path(pattern: str, path: str, *, wide: bool) -> bool:
    return path_pattern(pattern, base="/w/settings", cwd="/w", home="/home/ann", wide=wide).matches(path)


@pytest.mark.parametrize(
    ("pattern", "path", "allowed", "denied"),
    [
        ("//etc/hosts", "/etc/hosts", True, True),
        ("//etc/hosts", "/w/etc/hosts", False, False),
        ("~/notes/**", "/home/ann/notes/a/b", True, True),
        ("~/notes/**", "/home/bob/notes/a", False, False),
        ("/docs/*.md", "/w/settings/docs/a.md", True, True),
        ("/docs/*.md", "/w/docs/a.md", False, False),
        ("/docs/*.md", "/w/settings/docs/sub/a.md", False, False),
        ("src/**", "/w/src/a/b.py", True, True),
        ("src/**", "/w/lib/src/a.py", False, True),
        ("./x", "/w/x", True, True),
        ("./x", "/w/a/x", False, True),
        ("./x/", "/w/a/x/y", False, True),
        ("x/", "/w/a/x/y", True, True),
        ("./src/**", "/w/src/a.py", True, True),
        ("src/**", "/w/srcs/a.py", False, False),
        (".env", "/w/.env", True, True),
        (".env", "/w/deep/er/.env", True, True),
        (".env", "/elsewhere/.env", False, True),
        (".env", "/w/.envrc", False, False),
        ("*.pem", "/w/a/b.pem", True, True),
        ("*.pem", "/w/a.pem.txt", False, False),
        ("secrets", "/w/secrets/new/file", True, True),
        ("secrets/", "/w/secrets/new", True, True),
        ("secrets/", "/w/secrets", False, True),
        ("**/key", "/w/a/b/key", True, True),
        ("a/**/z", "/w/a/z", True, True),
        ("a/**/z", "/w/a/b/c/z", True, True),
        ("a?c", "/w/abc", True, True),
        ("a?c", "/w/a/c", False, False),
        ("a[bc]d", "/w/abd", True, True),
        ("a[!b]d", "/w/abd", False, False),
        (r"a\*b", "/w/a*b", True, True),
        (r"a\*b", "/w/axb", False, False),
        (".", "/w/anything", True, True),
        ("../out/x", "/out/x", True, True),
        ("../out/**", "/out/a/b", True, True),
        ("../out/*.txt", "/out/a.txt", True, True),
        ("../out/*.txt", "/w/out/a.txt", False, False),
        ("./../out/**", "/out/a", True, True),
        ("..", "/out/a", True, True),
        ("../**", "/out/a", True, True),
        ("../../x", "/x", True, True),
        ("./", "/w/a", True, True),
        ("./a/./b", "/w/a/b", True, True),
        ("a/.", "/w/a/b", True, True),
        ("//etc/./hosts", "/etc/hosts", True, True),
        ("/../docs/**", "/w/docs/a", True, True),
        ("~/../bob/**", "/home/bob/a", True, True),
        ("a/../b", "/w/b", False, True),  # a may be a link
        ("//etc/x/../hosts", "/etc/hosts", False, True),
        ("a/**/../b", "/w/a/c/b", False, True),
    ],
)
def test_path_pattern_is_anchored_by_its_first_characters(
    pattern: str, path: str, *, allowed: bool, denied: bool
) -> None:
    assert _path(pattern, path, wide=False) is allowed
    assert _path(pattern, path, wide=True) is denied


@pytest.mark.parametrize("pattern", ["~/notes/**", "//{home}/notes/*.txt", "~/notes", "~/linked/**", "~/linked/a.txt"])
def test_deny_pattern_through_a_link_is_about_its_target(tmp_path: Path, pattern: str) -> None:
    target = tmp_path / "var[1]" / "ann"
    (target / "notes").mkdir(parents=True)
    home = tmp_path / "home"
    home.symlink_to(target)
    (target / "linked").symlink_to("notes")
    text = pattern.format(home=str(home).lstrip("/"))
    found = path_pattern(text, base="/b", cwd="/w", home=str(home), wide=True)
    assert found.matches(f"{target}/notes/a.txt")
    assert found.matches(f"{home}/{'linked' if 'linked' in pattern else 'notes'}/a.txt")
    assert not found.matches(f"{target}/other/a.txt")
    assert found.below(str(target))
    allowed = path_pattern(text, base="/b", cwd="/w", home=str(home), wide=False)
    assert not allowed.matches(f"{target}/notes/a.txt")  # the agent could have made the link


def test_only_deny_and_ask_patterns_ignore_case() -> None:
    assert _path("Secrets/**", "/w/sEcReTs/a", wide=True)
    assert not _path("Secrets/**", "/w/secrets/a", wide=False)
    assert _path("caf\u00e9", "/w/cafe\u0301", wide=True)


@pytest.mark.parametrize(
    ("pattern", "host", "expected"),
    [
        ("example.com", "example.com", True),
        ("example.com", "EXAMPLE.com.", True),
        ("example.com", "evil-example.com", False),
        ("example.com", "example.com.evil.net", False),
        ("*.example.com", "a.b.example.com", True),
        ("*.example.com", "example.com", False),
        ("*.example.com", "badexample.com", False),
        ("api.*.example.com", "api.eu.example.com", True),
        ("api.*.example.com", "api.eu.west.example.com", False),
        ("*", "anything.net", True),
    ],
)
def test_domains_are_compared_by_label(pattern: str, host: str, *, expected: bool) -> None:
    assert domain_matches(pattern, host) is expected
