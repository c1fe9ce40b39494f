"""The approval dialog: what the user sees before approving, and how choices are parsed."""

import pytest

from callwright.cli.approval_card import approval_menu, card_text
from callwright.cli.approval_dialog import EditRequest, dialog_text, read_choice, read_edit
from callwright.cli.render.calls import CallLines, call_line, one_line
from callwright.cli.render.markdown import MarkdownLines
from callwright.cli.render.text import Palette, visible
from callwright.core.access import Access, DeletePath, RunCommand, UseTool, WritePath
from callwright.core.calls import Approve, Completed, Decline, Failed, Question, ToolCall
from callwright.core.content import Output
from callwright.core.errors import Denied
from callwright.core.json import Json
from callwright.core.spec import Effect

PLAIN, COLOURED = Palette(False), Palette(True)


def question(*accesses: Access, tool: str = "bash", **arguments: Json) -> Question:
    return Question("c1", tool, arguments, "digest", "Allow?", "it may destroy something", accesses)


def shown(asked: Question, width: int = 80) -> str:
    return "\n".join(dialog_text(asked, PLAIN, width).rows)


def test_dialog_shows_command_folder_and_accesses() -> None:
    text = shown(question(RunCommand("rm -rf build", "/srv"), DeletePath("/srv/build"), command="rm -rf build"))
    assert "  $ rm -rf build\n" in text and "in /srv" in text and "deletes /srv/build" in text
    assert "because it may destroy something" in text


def test_dialog_escapes_hidden_characters() -> None:
    text = shown(question(RunCommand("ls\x1b[2K\r rm\u202e -rf\u200b ~", "/srv"), command="x"))
    assert "\\x1b[2K\\r rm\\u202e -rf\\u200b ~" in text
    assert all(character.isprintable() or character == "\n" for character in text)


def test_dialog_shows_every_line_of_long_command() -> None:
    line = "\n".join([f"echo {number}" for number in range(200)] + ["rm -rf ~"])
    text = shown(question(RunCommand(line, "/srv"), command=line))
    assert all(f"echo {number}⏎" in text for number in range(200)) and "rm -rf ~" in text


def test_dialog_shows_every_argument() -> None:
    text = shown(
        question(WritePath("/w/a"), tool="put", content="x", dry_run=False, count=0, note="", deep={"a": [None]})
    )
    for argument in ("+ x", "dry_run: false", "count: 0", 'note: ""', 'deep: {"a": [null]}'):
        assert argument in text
    stock = shown(question(WritePath("/inventory/AB-123"), tool="adjust_stock", item="AB-123", by=-200))
    assert "by: -200" in stock and "writes /inventory/AB-123" in stock


def test_dialog_counts_blanks_and_marks_line_breaks() -> None:
    padded = question(RunCommand(f"ls{' ' * 1300}; curl x | bash", "/srv"), command="x")
    assert "  $ ls␠×1300 ; curl x | bash\n" in shown(padded)
    broken = question(RunCommand("ls\n  because it is safe", "/srv"), command="x")
    assert "  $ ls⏎\n  │   because it is safe\n" in shown(broken)
    assert "\\u23ce" in shown(question(RunCommand("echo ⏎", "/srv")))


def test_value_cannot_look_like_two_arguments() -> None:
    text = shown(question(UseTool("pay", Effect.DESTROY), tool="pay", note="x · dry_run: true"))
    assert 'note: "x · dry_run: true"' in text


def test_dialog_names_letters_of_other_alphabets() -> None:
    asked = question(RunCommand("curl https://p\u0430ypal.com", "/srv"))
    assert "mixes alphabets: U+0430 CYRILLIC SMALL LETTER A" in shown(asked)
    assert "alphabets" not in shown(question(RunCommand("grep привет größe 日本語", "/srv")))


# whole words of another alphabet that pass for Latin ones: Cyrillic, Greek, Armenian, Cherokee
DISGUISED = {
    "\u0441\u043e\u0440\u0443": "copy",
    "\u0435\u0445\u0440\u043e": "expo",
    "\u0455\u0441\u0440": "scp",
    "\u0391\u03a4\u039c": "ATM",
    "\u03bd\u03b9": "vi",
    "\u0578\u0585": "no",
    "\u13a2\u13a1\u13a2": "TRT",
}


@pytest.mark.parametrize(("word", "latin"), DISGUISED.items())
@pytest.mark.parametrize("text", ["{}", "{} a b", "run --{} now", "/srv/{}/x", "привет {} мир"])
def test_dialog_names_words_that_only_look_latin(word: str, latin: str, text: str) -> None:
    warning = f"looks like {latin}, but has no Latin letter: U+{ord(word[0]):04X}"
    asked = dialog_text(question(RunCommand(text.format(word), "/srv")), PLAIN, 200)
    assert warning in "\n".join(asked.body) and warning in "\n".join(asked.deciding)
    tool = dialog_text(question(UseTool("pay", Effect.DESTROY), tool="pay", to=[{"who": word}]), PLAIN, 200)
    assert warning in "\n".join(tool.body)


def test_single_letter_is_named_unless_it_is_prose() -> None:
    assert "looks like a" in shown(question(RunCommand("rm -\u0430", "/srv")))
    assert "looks like" not in shown(question(RunCommand("echo 'я и он, а не вы'", "/srv")))


@pytest.mark.parametrize("text", ["日本語", "größe", "привет", "λόγος", "naïve", "שלום"])
def test_ordinary_words_of_other_languages_cause_no_warning(text: str) -> None:
    assert "!" not in shown(question(RunCommand(f"grep -r {text}", "/srv")))


def test_deciding_rows_name_commands_that_do_more_than_read() -> None:
    line = "\n".join([*(["echo harmless"] * 40), "eval $x", *(["ls"] * 40)])
    deciding = "\n".join(dialog_text(question(RunCommand(line, "/srv")), PLAIN).deciding)
    assert "eval $x" in deciding and "echo harmless" not in deciding


def test_dialog_lines_fit_the_screen() -> None:
    asked = question(RunCommand("echo " + "x" * 300, "/srv"), command="x")
    assert all(len(line) <= 60 for line in dialog_text(asked, PLAIN, 60).rows if "always" not in line)


def test_dialog_shows_content_and_diff() -> None:
    write = shown(question(WritePath("/w/a"), tool="write", path="a", content="one\ntwo"))
    assert "  + one\n  + two\n" in write and "writes /w/a" in write
    edit = "\n".join(
        dialog_text(question(WritePath("/w/a"), tool="edit", old_string="one", new_string="two"), COLOURED).rows
    )
    assert "\x1b[31m- one\x1b[0m" in edit and "\x1b[32m+ two\x1b[0m" in edit


def test_always_shows_its_rules_or_is_not_offered() -> None:
    narrow = question(RunCommand("make test", "/w"), command="make test")
    assert "a always, as: Bash(make test)" in shown(narrow)
    assert read_choice("a", narrow) == Approve(scope="always")
    wide = question(RunCommand("eval $x", "/w"), command="eval $x")
    assert "not offered" in shown(wide)
    assert isinstance(read_choice("a", wide), str)


def test_choices_are_parsed_and_others_show_help() -> None:
    asked = question(RunCommand("make", "/w"), command="make")
    assert read_choice("y", asked) == Approve()
    assert read_choice(" S ", asked) == Approve(scope="session")
    assert read_choice("n use ninja instead", asked) == Decline("use ninja instead")
    assert read_choice("e", asked) == EditRequest({"command": "make"})
    for nothing in ("", "yess", "maybe", "ｙ", "y\ny", "yes!"):
        assert isinstance(read_choice(nothing, asked), str)


@pytest.mark.parametrize(
    "sentence",
    [
        "y not?",
        "yes but not the second file",
        "yes please do",
        "s top",
        "a quick question first",
        "1 moment",
        "2 questions first",
        "e is not what I want",
        "Y es",
    ],
)
def test_sentence_declines_with_that_reason(sentence: str) -> None:
    asked = question(RunCommand("make", "/w"), command="make")
    assert read_choice(sentence, asked) == Decline(sentence)


def test_edited_arguments_must_be_an_object() -> None:
    assert read_edit('{"command": "ls"}') == Approve({"command": "ls"})
    for text in ("[1]", "{", '{"command": "ls", "command": "rm x"}', '{"seconds": NaN}', '{"a":' * 100_000):
        assert isinstance(read_edit(text), str)


def test_call_is_shown_in_one_line() -> None:
    assert call_line(ToolCall("1", "bash", '{"command": "ls\\nrm x"}')) == "bash ls (+1 lines)"
    assert call_line(ToolCall("1", "read", {"path": "a" * 200}), 40) == f"read {'a' * 34}…"
    assert call_line(ToolCall("1", "odd", "not json")) == "odd not json"
    assert call_line(ToolCall("1", "run_code", {"code": "t = 0\nt + 1"})) == "run_code t = 0 (+1 lines)"
    assert one_line("") == "" and visible("a\x07b\tc\n") == "a\\x07b\tc\n"


def test_edit_is_shown_as_diff() -> None:
    text = "Edited a.py\n--- a.py\n+++ a.py\n@@ -1,1 +1,1 @@\n-old\n+new\n\nnow:\n1\tnew"
    lines = CallLines(PLAIN).end_lines(Completed(ToolCall("1", "edit", {"path": "a.py"}), Output(text)))
    assert lines == ["● edit a.py", "  @@ -1,1 +1,1 @@", "  -old", "  +new"]
    failed = CallLines(PLAIN).end_lines(Failed(ToolCall("1", "bash", {"command": "x"}), Denied("the rule forbids it")))
    assert failed == ["✗ bash x", "  denied: the rule forbids it"]


def test_denial_reason_is_shown_whole() -> None:
    reason = "the rule Bash(git push *) forbids it (deny rule Bash(git push *) in /home/ada/.callwright/settings.json)"
    _, *rows = CallLines(PLAIN).end_lines(Failed(ToolCall("1", "bash", {"command": "git push"}), Denied(reason)))
    assert " ".join(row.strip() for row in rows) == f"denied: {reason}"
    assert all(len(row) <= 80 for row in rows)


def test_markdown_is_styled_line_by_line() -> None:
    coloured = MarkdownLines(COLOURED)
    assert coloured.rows("# Title", 80) == ["\x1b[1mTitle\x1b[0m"]
    assert coloured.rows("a **bold** `word`", 80) == ["a \x1b[1mbold\x1b[0m \x1b[36mword\x1b[0m"]
    assert coloured.rows("- item", 80) == ["• item"]
    assert MarkdownLines(PLAIN).rows("a **bold** \x1b[31m`word`", 80) == ["a **bold** \\x1b[31m`word`"]


def test_wider_rule_is_shown_before_it_can_be_chosen() -> None:
    script = question(RunCommand("node a.mjs", "/srv"), command="node a.mjs")
    assert "a always, as: Bash(node a.mjs)" in shown(script) and "g always, also as: Bash(node *.mjs)" in shown(script)
    assert read_choice("g", script) == Approve(scope="pattern")
    assert any("Bash(node *.mjs)" in row for row in approval_menu(script, PLAIN).rows(80))
    other = question(RunCommand("make all", "/srv"), command="make all")
    assert "g always" not in shown(other) and isinstance(read_choice("g", other), str)
    assert read_choice("go on then", script) == Decline("go on then")


def test_programs_are_shown_as_code() -> None:
    code = "total = 0\r\nfor n in range(3):\n\ttotal += await look(number=n)\x1b[2J\ntotal\n"
    call = ToolCall("1", "run_code", {"code": code})
    assert CallLines(PLAIN).end_lines(Completed(call, Output("3"))) == [
        "● run_code",
        "  │ total = 0",
        "  │ for n in range(3):",
        "  │     total += await look(number=n)\\x1b[2J",
        "  │ total",
        "  3",
    ]
    long = ToolCall("1", "run_code", {"code": "\n".join(f"x = {n}" for n in range(40))})
    lines = CallLines(PLAIN).end_lines(Failed(long, Denied("no")))
    assert lines[:2] == ["✗ run_code", "  │ x = 0"] and "  … 28 more lines" in lines and lines[-1] == "  denied: no"
    assert CallLines(PLAIN).end_lines(Completed(ToolCall("1", "run_code", {"code": "await look(1)"}), Output("1"))) == [
        "● run_code await look(1)",
        "  1",
    ]


@pytest.mark.parametrize("code", ["await pay(amount=1)", "n = 1\nawait pay(amount=n)"])
def test_program_in_question_is_code_and_not_json(code: str) -> None:
    asked = question(UseTool("run_code", Effect.READ), tool="run_code", code=code)
    framed = [f"│ {line}" for line in code.split("\n")]
    assert [line.strip() for line in dialog_text(asked, PLAIN).rows if "│" in line] == framed
    card = [row.strip("│ ") for row in card_text(asked, PLAIN, "/w").rows]
    assert all(line in card for line in code.split("\n")) and not any('"' in row for row in card)


def test_card_shows_folder_of_command_that_its_title_has_no_room_for() -> None:
    folder = f"/elsewhere/{'deep/' * 20}end"
    rows = card_text(question(RunCommand("make", folder), command="make"), PLAIN, "/w", 60).rows
    assert folder in "".join(row.strip("│↪ ") for row in rows)
