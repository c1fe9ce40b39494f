"""Locating the place of an edit: an exact match or one corrected typo, never similar text."""

import textwrap
import tracemalloc
from functools import partial

import pytest
from hypothesis import assume, given, strategies as st

from callwright.core.errors import ToolFailed
from callwright.toolbox.edit.locate import locate
from callwright.toolbox.edit.typos import Doubtful, find_all

FILE = '''\
import os


class Greeter:
    """Greets people."""

    def __init__(self, name: str) -> None:
        self.name = name

    def greet(self) -> str:
        if not self.name:
            return "unnamed"
        return f"hello {self.name}"


def main() -> None:
    print(Greeter("you").greet())
'''
TABBED = "func main() {\n\tif ready {\n\t\trun()\n\t}\n\treturn\n}\n"


def edited(text: str, old: str, new: str) -> str:
    place = locate(text, old, new)
    return text[: place.start] + place.text + text[place.end :]


def slip(text: str, old: str, new: str) -> str:
    return locate(text, old, new).typo


def test_exact_text_is_replaced():
    assert edited(FILE, "self.name = name", "self.name = name or 'x'") == FILE.replace("= name\n", "= name or 'x'\n")
    assert edited("price value", "value", "$&$1\\1") == "price $&$1\\1"
    assert slip(FILE, "import os\n", "import sys\n") == ""


@given(before=st.text(), old=st.text(min_size=1), after=st.text(), new=st.text())
def test_only_the_unique_match_changes(before: str, old: str, after: str, new: str):
    text = f"x={before}|{old}|{after}=y".replace("\n", " ").replace("\ufeff", "")
    old, new = old.replace("\n", " "), new.replace("\n", " ")
    assume("\ufeff" not in old + new and text.count(old) == 1 and not set("‘’“”") & set(new))
    assert edited(text, old, new) == text.replace(old, new)


def test_several_matches_are_refused_with_lines():
    with pytest.raises(ToolFailed, match=r"2 places \(lines 12, 13\)"):
        locate(FILE, "return ", "yield ")
    with pytest.raises(ToolFailed, match="2 places"):
        locate("aaa", "aa", "b")


@pytest.mark.parametrize("shift", ["dedented", "deeper"])
def test_uniform_shift_is_corrected_in_new_too(shift: str):
    old = '        if not self.name:\n            return "unnamed"\n'
    new = "        if not self.name:\n            raise ValueError\n\n        # fine\n"
    move = textwrap.dedent if shift == "dedented" else partial(textwrap.indent, prefix="    ")
    assert edited(FILE, move(old), move(new)) == FILE.replace(old, new)
    assert "indentation" in slip(FILE, move(old), move(new))


def test_unindented_single_line_with_new_lines_is_doubted():
    with pytest.raises(Doubtful, match="indentation of line 8"):
        locate(FILE, "self.name = name\n", "self.name = name\nself.count = 0\n")
    numbered = edited(FILE, "8\tself.name = name\n", "8\tself.name = name\n9\tself.count = 0\n")
    assert numbered == FILE.replace("= name\n", "= name\n        self.count = 0\n")


def test_cut_first_line_keeps_whole_later_lines():
    assert edited(FILE, "self.name = name", "self.name = name\n        self.count = 0") == FILE.replace(
        "self.name = name", "self.name = name\n        self.count = 0"
    )


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("def greet(self) -> str:\n", "def greet(self) -> str:\n    # deeper or beside?\n"),
        ("   self.name = name\n", "        self.name = other\n"),
        (
            'if not self.name:\n    return "unnamed"\n',
            'for _ in self:\n    if not self.name:\n        return "unnamed"\n',
        ),
    ],
)
def test_ambiguous_shift_is_refused(old: str, new: str):
    with pytest.raises(ToolFailed):
        locate(FILE, old, new)


def test_same_lines_at_two_depths_are_refused():
    with pytest.raises(ToolFailed, match="2 places"):
        locate("  a = 1\n  b = 2\nx\n    a = 1\n    b = 2\n", "a = 1\nb = 2\n", "a = 2\nb = 2\n")


@pytest.mark.parametrize("width", [2, 4, 8])
def test_spaces_for_tabs_are_corrected(width: int):
    old, new = "\tif ready {\n\t\trun()\n", "\tif ready {\n\t\tstop()\n\t\trun()\n"
    spaced = (old.replace("\t", " " * width), new.replace("\t", " " * width))
    assert edited(TABBED, *spaced) == TABBED.replace(old, new)


def test_tabs_for_spaces_are_corrected():
    old, new = "    def greet(self) -> str:\n        if not", "    def greet(self) -> int:\n        if not"
    lines = old + " self.name:\n", new + " self.name:\n"
    tabbed = tuple(text.replace("    ", "\t") for text in lines)
    assert edited(FILE, *tabbed) == FILE.replace(*lines)


def test_spaces_in_a_tabbed_file_are_doubted():
    with pytest.raises(Doubtful, match="tabs"):
        locate(TABBED, "func main() {\n", "func main() {\n    setup()\n")


def test_typographic_quotes_become_plain():
    assert edited(FILE, "“unnamed”", "“some’body”") == FILE.replace('"unnamed"', '"some\'body"')
    old, new = "            return “unnamed”\n", "            return “a guest”\n"
    assert edited(FILE, old, new) == FILE.replace('"unnamed"', '"a guest"')
    assert "typographic" in slip(FILE, old, new)


def test_new_typographic_quotes_are_doubted():
    with pytest.raises(Doubtful, match="typographic"):
        locate("x = 1\n", "x = 1", "x = “1”")
    assert edited("“a” is 1\n", "is 1", "is “1”") == "“a” is “1”\n"


@pytest.mark.parametrize("prefix", ["{}\t", "{:6}\t", "{}→"])
def test_copied_line_numbers_are_removed(prefix: str):
    lines = FILE.splitlines(keepends=True)[10:13]
    old = "".join(prefix.format(11 + index) + line for index, line in enumerate(lines))
    new = old.replace("unnamed", "a guest")
    assert edited(FILE, old, new) == FILE.replace("unnamed", "a guest")
    assert edited(FILE, old, "".join(lines).replace("unnamed", "nil")) == FILE.replace("unnamed", "nil")


def test_copied_number_selects_among_equal_lines():
    assert edited("a\nx\na\n", "3\ta\n", "3\tb\n") == "a\nx\nb\n"


def test_numbers_in_content_stay():
    assert edited("1\tone\n2\ttwo\n", "2\ttwo", "2\tTWO") == "1\tone\n2\tTWO\n"
    with pytest.raises(ToolFailed):
        locate(FILE, "4\tclass Greeter:\n9\t    pass\n", "x")


def test_missing_final_break_is_doubted():
    with pytest.raises(Doubtful, match="joined to it"):
        locate("a\nb\nc\n", "b\n", "B")
    with pytest.raises(Doubtful, match="empty line would stay"):
        locate("a\nb\nc\n", "b", "")
    assert edited("a\nb", "b\n", "B\n") == "a\nB"
    assert edited("a\nb\nc\n", "b", "B") == "a\nB\nc\n"
    assert edited("a\nb", "b", "B\n") == "a\nB\n"
    with pytest.raises(Doubtful):
        locate("a\nb\nc\n", "b", "B\nBB\n")


def test_lost_first_character_is_doubted():
    for old, new in (("lass A:\n", "class B:\n"), (" one\n", "# two\n")):
        with pytest.raises(Doubtful, match="first character"):
            locate("class A:\n# one\n", old, new)
    assert edited("@one\ndef f(): ...\n", "on", "tw") == "@twe\ndef f(): ...\n"


def test_second_empty_line_is_doubted():
    with pytest.raises(Doubtful, match="empty line"):
        locate("a\n\nb\n", "b\n", "\nB\n")
    assert edited("a\nb\n", "b\n", "\nB\n") == "a\n\nB\n"


def test_single_space_counts_as_indentation():
    for old, new in (("* b\n", "* c\n* d\n"), ("* b", "* c\n * d")):
        with pytest.raises(Doubtful):
            locate("* a\n * b\n", old, new)


@pytest.mark.parametrize("old", ["self.name = name\n", " self.name = name\n", "       self.name = name\n"])
def test_deleted_line_without_its_indentation_is_doubted(old: str):
    with pytest.raises(Doubtful, match="indentation of line 8"):
        locate(FILE, old, "")
    place = locate(FILE, old, "", literal=True)
    assert FILE[: place.start] + place.text + FILE[place.end :] == FILE.replace(old, "")


_PIECES = st.text(alphabet=" \tab:\n", max_size=12)


@given(before=_PIECES, old=_PIECES.filter(bool), after=_PIECES, new=_PIECES, literal=st.booleans())
def test_text_that_stands_once_is_replaced_as_it_is_or_refused(
    before: str, old: str, after: str, new: str, literal: bool
):
    text = before + old + after
    assume(len(find_all(text, old)) == 1)
    try:
        place = locate(text, old, new, literal=literal)
    except Doubtful:
        assert not literal
        return
    assert text[: place.start] + place.text + text[place.end :] == text.replace(old, new)
    assert place.typo == ""


def test_trailing_whitespace_follows_the_file():
    assert edited("a  \nb\t\nc\n", "a\nb\n", "a\nB\n") == "a  \nB\nc\n"
    assert edited("a\nb\nc\n", "a \nb \n", "a \nB \nnew \n") == "a\nB\nnew\nc\n"
    assert edited("a\nb\nc\n", "b ", "B ") == "a\nB\nc\n"
    assert edited("    a\n    b\n", "  a \n  b \n", "  a \n  B \n") == "    a\n    B\n"
    assert edited("a\nb\n", "a \nb\n", "a \nhard break  \n") == "a\nhard break  \n"
    assert edited("a\nb\n", "a  \nb\n", "a  \nb  \n") == "a\nb  \n"
    assert edited("a\n\nb\n", "a\n  \nb\n", "a\n  \nb  \n  \nc\n") == "a\n\nb  \n\nc\n"


@pytest.mark.parametrize("new", ["B\n    ", "B\n"])
def test_indentation_of_the_next_line_is_no_line(new: str):
    assert edited("a\n\tb\n\n\tc\n", "    b\n    ", f"    {new}") == "a\n\tB\n\n\tc\n"
    assert edited("a\n\tb\n\tc\n", "    b\n    ", f"    {new}") == "a\n\tB\n\tc\n"


def test_byte_order_mark_is_never_doubled():
    assert edited("\ufeffusing A;\n", "using A;\n", "\ufeffusing B;\n") == "\ufeffusing B;\n"
    assert edited("using A;\n", "\ufeffusing A;\n", "\ufeffusing B;\n") == "using B;\n"


@pytest.mark.parametrize(
    ("old", "message"),
    [
        ("        self.nmae = name\n", "column 15 is 'a' in the file, 'm' in old_string"),
        ("class Greeter:\n    ...\n    def greet(self) -> str:\n", "abbreviates other lines"),
        ("class Greeter:\n    # ... existing code ...\n        return x\n", "abbreviates other lines"),
        ("        if not self.name:\n            return unnamed\n", "first difference, line 12"),
        ("something quite different", "nor anything similar"),
    ],
)
def test_miss_names_closest_lines_and_difference(old: str, message: str):
    with pytest.raises(ToolFailed) as miss:
        locate(FILE, old, "x")
    assert message in miss.value.message


@given(st.integers(0, 10_000), st.sampled_from("abcxyz_ \t("), st.sampled_from(["drop", "replace", "insert"]))
def test_misspelt_text_is_never_matched(position: int, letter: str, kind: str):
    old = '    def greet(self) -> str:\n        if not self.name:\n            return "unnamed"\n'
    new = old.replace("unnamed", "a guest")
    at = position % len(old)
    rest = old[at:] if kind == "insert" else old[at + 1 :]
    broken = old[:at] + ("" if kind == "drop" else letter) + rest
    assume(broken != old)
    try:
        result = edited(FILE, broken, new)
    except ToolFailed:
        return
    assert result == FILE.replace(old, new)


@given(st.integers(1, 16), st.integers(1, 4))
def test_dedented_copy_is_restored_or_refused(first: int, count: int):
    lines = FILE.splitlines(keepends=True)[first : first + count]
    old = "".join(lines)
    assume(old.strip() and FILE.count(old) == 1)
    new = old.rstrip("\n") + "  # seen\n"
    try:
        result = edited(FILE, textwrap.dedent(old), textwrap.dedent(new))
    except ToolFailed:
        return
    assert result == FILE.replace(old, new)


def test_a_text_that_occurs_very_often_is_refused_without_looking_at_every_place() -> None:
    text = "\tx = 1\n" * 100_000
    with pytest.raises(ToolFailed, match=r"at 100000 places \(lines 1, 2, 3, 4, 5, 6, 7, 8, 9, 10 and 99990 more\)"):
        locate(text, "x", "y")
    with pytest.raises(ToolFailed, match=r"spaces for tabs it occurs at more than 10 places \(lines 1, .*, 10\)"):
        locate(text, "    x = 1", "y")
    place = locate(text, "70000\t\tx = 1\n", "y\n")
    assert (place.start, place.end) == (69_999 * 7, 70_000 * 7)
    with pytest.raises(ToolFailed, match="more than 10 places"):
        locate(text, "100001\t\tx = 1\n", "y\n")


def test_a_number_that_no_line_has_is_not_read_as_one() -> None:
    with pytest.raises(ToolFailed, match="not found"):
        locate("x = 1\n", f"{'9' * 5000}\tx = 1\n", "y\n")


def test_miss_in_a_large_file_is_explained_in_little_memory():
    text = "".join(f"    value_{number} = compute(thing_{number}, other)\n" for number in range(20_000))
    tracemalloc.start()
    try:
        with pytest.raises(ToolFailed, match="closest lines are\n8\t    value_7 = "):
            locate(text, "    value_7 = compute(that, other)\n", "")
        assert tracemalloc.get_traced_memory()[1] < 10 * len(text)
    finally:
        tracemalloc.stop()


def test_long_text_among_lines_that_repeat_is_refused_without_comparing_each_place():
    text, old = "  }\n" * 20_000, " }\n" * 1_000 + "  }\n"
    with pytest.raises(ToolFailed, match="except for whitespace it occurs at more than 199 places"):
        locate(text, old, "x\n")
