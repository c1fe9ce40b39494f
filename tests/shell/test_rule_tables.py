"""The table language: which arguments a rule accepts."""

from collections.abc import Iterator

import pytest

from callwright.shell import tables
from callwright.shell.rule_tables import ProgramRule, parse_table
from callwright.shell.words import Form, Word

_TABLE = parse_table(
    """
free: reads
sort: reads; not -o --output --compress-program; values -t
only: only -a -b --long -#; values -b
uniq: operands 1; last; values -f
date: like \\+.*; values -d
check: needs --check -c; only --check -c -v
tool: help; network; values -n; flags -q --quiet; not --config
  get|list
  config view|
      show
  plain: operands 0
"""
)


def _objection(name: str, *texts: str) -> str:
    return _TABLE[name].objection([Word(text) for text in texts])


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("free", ["-x", "--anything=1", "a"]),
        ("sort", ["-k2", "--reverse", "a"]),
        ("sort", ["a", "--", "-o"]),
        ("sort", ["-to", "-rtox"]),
        ("only", ["-ab", "5", "--long=x", "-7"]),
        ("only", ["-b5"]),
        ("uniq", ["-f", "1", "a"]),
        ("date", ["-d", "now", "+%s"]),
        ("check", ["-vc"]),
    ],
)
def test_allowed_arguments_have_no_objection(name: str, words: list[str]) -> None:
    assert _objection(name, *words) == ""


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("sort", ["-o", "x"]),
        ("sort", ["-rox"]),
        ("sort", ["-rot"]),
        ("sort", ["--outp=x"]),
        ("sort", ["--comp", "x"]),
        ("sort", ["-k", "--", "--output=x"]),
        ("sort", ["--reverse x"]),
        ("only", ["-c"]),
        ("only", ["-ac"]),
        ("only", ["--lon"]),
        ("uniq", ["a", "b"]),
        ("uniq", ["a", "-f"]),
        ("date", ["0101"]),
        ("check", ["-v"]),
        ("check", []),
    ],
)
def test_objection_names_the_refused_argument(name: str, words: list[str]) -> None:
    assert _objection(name, *words)


def test_possible_option_is_an_objection_unless_free() -> None:
    anything = [Word("$x", Form.WORDS)]
    prefixed = [Word("a*", Form.NAMES)]
    assert _TABLE["free"].objection(anything) == ""
    assert _TABLE["sort"].objection(anything)
    assert _TABLE["sort"].objection(prefixed) == ""
    assert _TABLE["uniq"].objection(prefixed)


@pytest.mark.parametrize(
    ("words", "found"),
    [
        (["get", "x"], True),
        (["-n", "delete", "get", "x"], True),
        (["config", "show"], True),
        (["delete", "get"], False),
        (["config"], False),
        (["config", "set"], False),
        (["--config", "x", "get"], False),
        (["plain", "x"], True),
        (["-q", "--quiet", "-qn", "x", "get"], True),
        (["-nget", "get"], True),
        (["--name=x", "get"], True),
        (["--name", "get", "delete"], False),
        (["--qu", "get", "delete"], False),
        (["-qz", "get", "delete"], False),
        (["--", "get"], False),
        (["config", "-z", "show", "set"], False),
        ([], False),
    ],
)
def test_a_sub_command_is_found_behind_options_only(words: list[str], found: bool) -> None:
    rule, _ = _TABLE["tool"].descend([Word(word) for word in words])
    assert (rule is not None) is found


def test_an_option_with_a_computed_value_hides_which_sub_command_follows() -> None:
    words = [Word("-n"), Word("$x", Form.WORDS), Word("get")]
    assert _TABLE["tool"].descend(words)[0] is None


def test_unknown_clause_raises() -> None:
    with pytest.raises(AssertionError, match="no such clause"):
        parse_table("x: reeds")


def test_all_tables_parse() -> None:
    assert tables.find_rule("cat") is not None
    assert tables.find_rule("no-such-program") is None


def _list_rules(rule: ProgramRule) -> Iterator[ProgramRule]:
    yield rule
    for below in rule.subcommands.values():
        yield from _list_rules(below)


def test_every_refused_option_of_the_tables_is_refused() -> None:
    """An option such as -address is refused only where the table says that long options have one dash."""
    named = {name: rule for name in tables.known_programs() if (rule := tables.find_rule(name)) is not None}
    missed = {
        (name, flag)
        for name, rule in named.items()
        for each in _list_rules(rule)
        for flag in each.refused
        if not each.flag_objection([Word(flag)]) or not each.flag_objection([Word(f"{flag}=x")])
    }
    assert missed == set()
