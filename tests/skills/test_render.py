"""Arguments and commands in a skill's instructions, also hostile ones."""

import subprocess
import time

import pytest
from hypothesis import given, settings, strategies as st

from callwright.skills import CommandRequest, Expansion, expand

HOSTILE = [
    "; touch owned",
    "$(touch owned)",
    "`touch owned`",
    "' ; touch owned ; '",
    '" ; touch owned ; "',
    "a\nb",
    "\\",
]


def text(template: str, arguments: str = "", *names: str) -> str:
    return expand(template, arguments, names=names, values={"SKILL_DIR": "/skills/x"}).assemble([])


def line(template: str, arguments: str = "", *names: str) -> str:
    (request,) = expand(f"!`{template}`", arguments, names=names, values={"SKILL_DIR": "/my skills/x"}).requests
    assert not request.refusal, request.refusal
    return request.line


@pytest.mark.parametrize(
    ("template", "arguments", "result"),
    [
        ("Review $ARGUMENTS.", "a 'b c'", "Review a 'b c'."),
        ("$ARGUMENTS", "", ""),
        ("$0 then $1", "one 'two words'", "one then two words"),
        ("$ARGUMENTS[1] $ARGUMENTS[0]", "a b", "b a"),
        ("${ARGUMENTS} ${0}", "a b", "a b a"),
        ("$0 and $2", "a b", "a and $2"),
        ("$ARGUMENTS[7]", "a", "$ARGUMENTS[7]"),
        (r"\$0 costs \$ARGUMENTS, not $0", "5", "$0 costs $ARGUMENTS, not 5"),
        (r"\$HOME and \n stay", "", r"\$HOME and \n stay"),
        ("$HOME ${HOME} $ARGUMENTS_X $0th $1000 $", "a", "$HOME ${HOME} $ARGUMENTS_X $0th $1000 $\n\nARGUMENTS: a"),
        ("$0", "it's me", "it's"),
        ("Do it.", "now", "Do it.\n\nARGUMENTS: now"),
        ("Do it.", "  ", "Do it."),
        ("in ${SKILL_DIR}/x", "", "in /skills/x/x"),
        ("$SKILL_DIR", "", "$SKILL_DIR"),
    ],
)
def test_placeholders_are_filled_in(template: str, arguments: str, result: str) -> None:
    assert text(template, arguments) == result


def test_named_arguments_and_missing_ones() -> None:
    assert text("from $source to ${target}.$other", "a", "source", "target") == "from a to .$other"


def test_placeholder_in_argument_is_not_expanded() -> None:
    assert text("$ARGUMENTS|$0|$1", "$1 $ARGUMENTS") == "$1 $ARGUMENTS|$1|$ARGUMENTS"
    assert text("$0", "'${SKILL_DIR}'") == "${SKILL_DIR}"


def test_argument_cannot_become_a_command() -> None:
    expansion = expand("Look:\n$ARGUMENTS\n```!\necho $0\n```", "!`touch owned`\n```!\ntouch owned\n```")
    assert [request.line for request in expansion.requests] == ["echo '!`touch'"]


def test_command_output_is_not_expanded() -> None:
    expansion = expand("!`cat x` and !`cat y`", "secret")
    outputs = ["!`touch owned` $ARGUMENTS $0", "```!\nrm\n```"]
    assert expansion.assemble(outputs) == f"{outputs[0]} and {outputs[1]}\n\nARGUMENTS: secret"


@pytest.mark.parametrize(
    ("template", "lines"),
    [
        ("!`git status`", ["git status"]),
        ("a !`one` b\n!`two`", ["one", "two"]),
        ("wow!`no` (!`no`) `!`no``", []),
        ("!`not\nover lines`", []),
        ("!``", []),
        ("```!\ngit status\ngit log\n```\nrest", ["git status\ngit log"]),
        ("```bash\ngit status\n```", []),
        ("text ```!\nno\n```", []),
        ("!`a`\n```!\nb\n```\n!`c`\n```!\n!`d`", ["a", "b", "c", "d"]),
        ("```!\n" * 200_000, []),  # in a time that grows with the length alone: with its square it would take an hour
    ],
)
def test_commands_are_inline_or_in_a_block(template: str, lines: list[str]) -> None:
    assert [request.line for request in expand(template).requests] == lines


@pytest.mark.parametrize(
    ("template", "arguments", "result"),
    [
        ("gh pr view $0", "123", "gh pr view 123"),
        ("cat $ARGUMENTS", "my file; rm x", "cat 'my file; rm x'"),
        ('cat "$ARGUMENTS"', 'a "b" $c', r'cat "a \"b\" \$c"'),
        ("grep '$ARGUMENTS' x", "it's", r"grep 'it'\''s' x"),
        ("awk '{print $1}' $0", "f g", "awk '{print $1}' f"),
        (r"echo \$0 $0", "x", r"echo \$0 x"),
        ("git diff $ARGUMENTS", "", "git diff "),
        ("git diff $0 $1", "a", "git diff a "),
        ("echo $HOME ${HOME} $0", "x", "echo $HOME ${HOME} x"),
        ("python ${SKILL_DIR}/run.py $0", "x", "python '/my skills/x'/run.py x"),
        ('python "${SKILL_DIR}/run.py"', "", 'python "/my skills/x/run.py"'),
    ],
)
def test_argument_in_command_is_shell_quoted(template: str, arguments: str, result: str) -> None:
    assert line(template, arguments) == result


@pytest.mark.parametrize(
    "template",
    [
        'echo "$(cat "$ARGUMENTS")"',
        "echo $(cat $ARGUMENTS)",
        "cat <<EOF\n$ARGUMENTS\nEOF",
        "cat <<< $ARGUMENTS",
        "diff <(cat $ARGUMENTS) x",
        "echo $'$ARGUMENTS'",
        'echo $"$ARGUMENTS"',
        "echo ${HOME:-$ARGUMENTS}",
        "echo $(( $ARGUMENTS ))",
        "echo $[ $ARGUMENTS ]",
        "[[ $ARGUMENTS -eq 1 ]]",
        "ls # $ARGUMENTS",
        "# $ARGUMENTS",
        "echo '$ARGUMENTS",
    ],
)
def test_unquotable_place_refuses_the_command(template: str) -> None:
    for argument in HOSTILE:
        (request,) = expand(f"```!\n{template}\n```", argument).requests
        assert request.refusal, argument


def test_command_without_arguments_may_use_any_syntax() -> None:
    assert expand("!`git diff $(git merge-base HEAD main)`", "x").requests == (
        CommandRequest("git diff $(git merge-base HEAD main)"),
    )


def test_plain_text_is_unchanged() -> None:
    assert expand("") == Expansion(("",))


@settings(max_examples=60, deadline=None)
@given(
    st.sampled_from(
        ["printf %s $0", 'printf %s "$0"', "printf %s '$ARGUMENTS[0]'", "printf %s $name", 'printf %s "<$name>"']
    ),
    st.one_of(st.sampled_from(HOSTILE), st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"))),
)
def test_any_argument_stays_one_shell_word(template: str, argument: str) -> None:
    quoted = "'" + argument.replace("'", "'\\''") + "'"
    made = line(template, quoted, "name")
    done = subprocess.run(["bash", "--norc", "-c", made], capture_output=True, check=True, timeout=60)
    shown = done.stdout.decode()
    assert shown == (f"<{argument}>" if "<" in template else argument)
    assert not done.stderr


@given(st.text(st.sampled_from("$ARGUMENTS0[]{}!`'\"\\ \nab"), max_size=60), st.text(max_size=10))
def test_any_template_expands(template: str, arguments: str) -> None:
    expansion = expand(template, arguments, names=["a"])
    assert isinstance(expansion.assemble(["out"] * len(expansion.requests)), str)


@pytest.mark.slow
def test_time_for_a_long_command_grows_with_its_length_alone() -> None:
    def seconds(lines: int) -> float:
        began = time.process_time()
        expand("```!\n" + "echo a\n" * lines + "```")
        return time.process_time() - began

    # ten times the text: quadratic time would be a hundred times; the margin is for a busy machine
    assert seconds(80_000) < 30 * max(min(seconds(8_000) for _ in range(3)), 0.005)
