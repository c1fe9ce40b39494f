"""The YAML front matter of a skill: what is read, and what is refused with its line."""

import textwrap

import pytest
import yaml
from hypothesis import given, strategies as st

from callwright.skills import frontmatter
from callwright.skills.frontmatter import FrontMatter, InvalidFrontMatter, parse_front_matter


def read(text: str) -> FrontMatter:
    return parse_front_matter(textwrap.dedent(text).strip("\n"))


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("a: plain text # a comment", "plain text"),
        ("a: C# and x#y", "C# and x#y"),
        ("a: http://host/path", "http://host/path"),
        ("a: 1.10", "1.10"),
        ("a: no", "no"),
        ("a:", None),
        ("a: ~", None),
        ("a: null", None),
        ('a: ""', ""),
        ("a: 'it''s # no comment'", "it's # no comment"),
        (r'a: "tab\tquote\" \u00e9 \x41"', 'tab\tquote" é A'),
        ('a: "over\n  two lines"', "over two lines"),
        ("a: [x, 'y, z', [1, 2], ]", ["x", "y, z", ["1", "2"]]),
        ("a: [x,\n  y]", ["x", "y"]),
        ("a: {b: c, 'd e': [f]}", {"b": "c", "d e": ["f"]}),
        ("a: []", []),
        ("a:\n- x\n- y z", ["x", "y z"]),
        ("a:\n  - x\n  -\n    - y\n  - b: 1\n    c: 2", ["x", ["y"], {"b": "1", "c": "2"}]),
        ("a:\n  - Bash(git log:*)\n  - Read", ["Bash(git log:*)", "Read"]),
        ("a:\n  b:\n    c: d\n  e: f", {"b": {"c": "d"}, "e": "f"}),
        ("a: |\n  one\n    two\n\n  three\n", "one\n  two\n\nthree\n"),
        ("a: |-\n  one\n", "one"),
        ("a: |+\n  one\n\n", "one\n\n"),
        ("a: >\n  one\n  two\n\n  three\n    four\n  five\n", "one two\nthree\n  four\nfive\n"),
        ("a: >-  # folded\n  holds: anything # at all\n", "holds: anything # at all"),
        ("a: |2\n    x\n", "  x\n"),
        ("a: |\n", ""),
        ("  a: 1", "1"),  # a mapping may be indented
        ("? a", None),  # an explicit key
        ("a: {b}", {"b": None}),  # a key without a value
        ("a: [x y: z]", [{"x y": "z"}]),  # a pair in a list is a mapping
        ("%YAML 1.1\n---\na: x", "x"),
        ("a: x\n...", "x"),
    ],
)
def test_scalars_stay_text(text: str, value: object) -> None:
    assert parse_front_matter(text).fields == {"a": value}


def test_keys_have_lines() -> None:
    document = read(
        """
        # first
        "a b": 1

        c d : 2
        'e': 3
        """
    )
    assert document.fields == {"a b": "1", "c d": "2", "e": "3"}
    assert document.lines == {"a b": 2, "c d": 4, "e": 5}


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("a: Use when: needed", "Use when: needed"),
        ("a: Use when: it's # a comment", "Use when: it's"),
        ("a: Use when: needed\n  and asked for", "Use when: needed and asked for"),
        ("a: ends with:", "ends with:"),
        ("a:\n  b: one: two", {"b": "one: two"}),
        ("a:\n  - b: one: two", [{"b": "one: two"}]),
    ],
)
def test_unquoted_colon_is_read_with_a_warning(text: str, value: object) -> None:
    document = parse_front_matter(f"name: x\n{text}", first_line=2)
    assert document.fields["a"] == value
    ((line, warning),) = document.warnings
    assert line == 3 + text.count("\n", 0, text.rindex(":"))
    assert "put the value in quotes" in warning


@pytest.mark.parametrize(
    ("hint", "value"),
    [
        ("[message]", "[message]"),
        ("[pr-number] [priority] [assignee]", "[pr-number] [priority] [assignee]"),
        ("add [tagId] | remove [tagId] | list", "add [tagId] | remove [tagId] | list"),
        ("<file> 'a name'  # a comment", "<file> 'a name'"),
        ("@file: what to do", "@file: what to do"),
        ('"[quoted]"', "[quoted]"),
        *((hint, None) for hint in ("null", "~", "NULL  # none")),
        ("[a,\n  b]", ["a", "b"]),
    ],
)
def test_argument_hint_in_one_line_is_text(hint: str, value: object) -> None:
    front = parse_front_matter(f"description: D.\nargument-hint: {hint}\nmodel: m\n")
    assert front.fields == {"description": "D.", "argument-hint": value, "model": "m"}
    assert not front.warnings
    assert front.lines["model"] == 3 + hint.count("\n")


def test_repairs_of_colons_are_bounded() -> None:
    def lines(count: int) -> str:
        return "\n".join(f"k{number}: a: b" for number in range(count))

    assert len(parse_front_matter(lines(20)).warnings) == 20
    with pytest.raises(InvalidFrontMatter, match="line 21: ': ' stands inside an unquoted text"):
        parse_front_matter(lines(21))


@pytest.mark.parametrize(
    ("text", "line", "message"),
    [
        ("a: 1\na: 2", 2, "'a' is given twice"),
        ("a: {b: 1, b: 2}", 1, "given twice"),
        ("a: 1\n\tb: 2", 2, "a tab indents"),
        ("a: &anchor x", 1, "anchors"),
        ("a: *alias", 1, "aliases"),
        ("a: !!python/object/apply:os.system [id]", 1, "tags"),
        ("<<: x", 1, "expected 'key: value'"),
        ("? [a]\n: 1", 1, "expected 'key: value'"),
        (": 1", 1, "expected 'key: value'"),
        ("~: 1", 1, "expected 'key: value'"),
        ("a: 1\njust text\nb: 1", 2, "expected 'key: value', not 'just text'"),
        ("[a]", 1, "expected 'key: value'"),
        ("- a", 1, "expected 'key: value'"),
        ("just text", 1, "expected 'key: value'"),
        ("a: [1, 2", 1, "'[' is not closed"),
        ("a: 'x", 1, "not closed"),
        ("a: x\nb: 'y\n\nc: 1", 2, "quote ' is not closed"),
        ("'a: 1", 1, "quote ' is not closed"),
        ('a: "x" y', 1, "stands after the end"),
        (r'a: "\q"', 1, r"\q is no escape"),
        (r'a: "\ud800"', 1, "half of a character"),
        (r'a: "\UFFFFFFFF"', 1, r"\UFFFFFFFF is no escape"),
        (r'a: "\xZZ"', 1, r"\xZZ is no escape"),
        ("a: x\n  # a comment ends an unquoted text\n  y", 3, "put a longer text in quotes"),
        ("a: @x", 1, "'@' cannot start a value"),
        ("a: x\0", 1, "character '\\x00' is not allowed"),
        ("a: 1\n---\nb: 2", 2, "second document"),
        ("a: x: y\n  b: c", 1, "inside an unquoted text"),
        ("a: &x [1]\nb: *x", 1, "anchors"),
        ("a:\n  b: 1\n c: 2", 3, "indented by 1 space"),
        ("a: x\n  b: y", 2, "inside an unquoted text"),
        ("a: " + "[" * 50, 1, "more than 8 deep"),
        ("\n".join("  " * depth + "a:" for depth in range(40)), 10, "more than 8 deep"),
        ("a: " + "x" * 70_000, 1, "70003 characters"),
    ],
)
def test_mistake_has_its_line(text: str, line: int, message: str) -> None:
    with pytest.raises(InvalidFrontMatter) as caught:
        parse_front_matter(text)
    assert (caught.value.line, message in caught.value.message) == (line, True), caught.value


@given(st.text(alphabet=st.sampled_from("ab:-#'\"[]{}|>&*! \n\t,\\?~\r\0é"), max_size=60))
def test_any_text_is_read_or_refused(text: str) -> None:
    try:
        document = parse_front_matter(text)
    except InvalidFrontMatter as error:
        assert 1 <= error.line <= text.count("\n") + 2
    else:
        assert document.lines.keys() == document.fields.keys()


@given(st.dictionaries(st.from_regex(r"[a-z]{1,8}", fullmatch=True), st.text(max_size=30), max_size=4))
def test_double_quoted_text_round_trips(fields: dict[str, str]) -> None:
    def quoted(text: str) -> str:
        return '"' + "".join(f"\\U{ord(char):08x}" for char in text) + '"'

    assert parse_front_matter("\n".join(f"{name}: {quoted(text)}" for name, text in fields.items())).fields == fields


@given(st.text(alphabet=st.sampled_from("ab:-#'\"[]{}|>&*! \n,\\?~"), max_size=40))
def test_result_is_the_same_without_libyaml(text: str) -> None:
    def read() -> FrontMatter | int:
        try:
            return parse_front_matter(text)
        except InvalidFrontMatter as error:
            return error.line

    fast = read()
    with pytest.MonkeyPatch.context() as patch:
        patch.delattr(frontmatter.yaml, "CBaseLoader", raising=False)
        assert read() == fast


@pytest.mark.skipif(not hasattr(yaml, "CBaseLoader"), reason="this build of PyYAML has no fast parser")
def test_long_front_matter_is_repaired_without_the_slow_parser(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(text: str) -> None:
        raise AssertionError(f"parsed slowly: {len(text)} characters")

    monkeypatch.setattr(yaml, "BaseLoader", refuse)
    many = "".join(f"key-{number}: text\n" for number in range(2000))
    wrong = "".join(f"more-{number}: Use when: needed\n" for number in range(10))
    front = parse_front_matter(many + wrong)
    assert front.fields["more-9"] == "Use when: needed"
    assert [line for line, _ in front.warnings] == list(range(2001, 2011))
    assert front.lines["key-1999"] == 2000


def test_long_front_matter_that_only_the_slow_parser_reads_is_not_repaired() -> None:
    many = "".join(f"key-{number}: text\n" for number in range(400))
    with pytest.raises(InvalidFrontMatter, match="line 402: ': ' stands inside an unquoted text"):
        parse_front_matter(f"{many}tab: 'a\tb'\nmore: Use when: needed\n")
