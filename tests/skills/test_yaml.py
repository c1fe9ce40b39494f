"""The fields at the top of a skill, read strictly and refused by line."""

import textwrap

import pytest
from hypothesis import given, strategies as st

from callwright.skills.frontmatter import Document, YamlError, read_yaml


def read(text: str) -> Document:
    return read_yaml(textwrap.dedent(text).strip("\n"))


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
        ("a: over\n  two lines\n  # and a comment\n  or three", "over two lines or three"),
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
    ],
)
def test_a_value_is_read_as_yaml_reads_it_but_for_types(text: str, value: object) -> None:
    assert read_yaml(text).fields == {"a": value}


def test_keys_may_be_quoted_and_spaced_and_know_their_lines() -> None:
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


def test_a_colon_in_an_unquoted_text_is_read_and_remarked_upon() -> None:
    document = read_yaml("name: x\ndescription: Use when: needed", first_line=2)
    assert document.fields["description"] == "Use when: needed"
    assert [(remark.line, "quotes" in remark.text) for remark in document.remarks] == [(3, True)]


@pytest.mark.parametrize(
    ("text", "line", "said"),
    [
        ("a: 1\na: 2", 2, "given twice"),
        ("a: {b: 1, b: 2}", 1, "given twice"),
        ("a: 1\n\tb: 2", 2, "a tab indents"),
        ("a: &anchor x", 1, "anchors"),
        ("a: *alias", 1, "aliases"),
        ("a: !!python/object/apply:os.system [id]", 1, "tags"),
        ("<<: x", 1, "expected 'key: value'"),
        ("? a", 1, "expected 'key: value'"),
        ("- a", 1, "expected 'key: value'"),
        ("just text", 1, "expected 'key: value'"),
        ("a: [1, 2", 1, "'[' is not closed"),
        ("a: 'x", 1, "not closed"),
        ("'a: 1", 1, "quote is not closed"),
        ('a: "x" y', 1, "stands after the end"),
        (r'a: "\q"', 1, "is no escape"),
        (r'a: "\ud800"', 1, "is no escape"),
        ("a: {b}", 1, "expected 'key: value' between the braces"),
        ("a: [x y: z]", 1, "expected ',' or ']'"),
        ("a:\n  b: 1\n c: 2", 3, "indented by 1 space"),
        ("a: x\n  b: y", 2, "a field stands inside a text"),
        ("a: " + "[" * 50, 1, "more than 8 deep"),
        ("\n".join("  " * depth + "a:" for depth in range(40)), 10, "more than 8 deep"),
        ("  a: 1", 1, "indented by 2 spaces"),
    ],
)
def test_what_cannot_be_read_is_refused_with_its_line(text: str, line: int, said: str) -> None:
    with pytest.raises(YamlError) as caught:
        read_yaml(text)
    assert (caught.value.line, said in caught.value.message) == (line, True), caught.value


@given(st.text(alphabet=st.sampled_from("ab:-#'\"[]{}|>&*! \n\t,\\?~\r\0é"), max_size=60))
def test_no_text_does_anything_but_read_or_be_refused(text: str) -> None:
    try:
        document = read_yaml(text)
    except YamlError as error:
        assert 1 <= error.line <= text.count("\n") + 2
    else:
        assert document.lines.keys() == document.fields.keys()


@given(st.dictionaries(st.from_regex(r"[a-z]{1,8}", fullmatch=True), st.text(max_size=30), max_size=4))
def test_a_text_in_double_quotes_comes_back_as_it_was(fields: dict[str, str]) -> None:
    def quoted(text: str) -> str:
        return '"' + "".join(f"\\U{ord(char):08x}" for char in text) + '"'

    assert read_yaml("\n".join(f"{name}: {quoted(text)}" for name, text in fields.items())).fields == fields
