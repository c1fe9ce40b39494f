"""Laws of the analysis: nothing added makes a line safer, nothing wrapped around hides a command, nothing raises."""

import json
import shutil
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import HealthCheck, assume, example, given, settings, strategies as st
from tests.counting import count_calls

from callwright.core.json import Json
from callwright.shell import ShellPlan, Verdict, analyze, parsing
from callwright.shell.analyzer import analyze_uncached

_SHELLISH = st.text(
    st.sampled_from(list("ab x12-_/.=~*?[]{}()<>|&;$`'\"\\\n\t#!@%^+,:")) | st.characters(), max_size=60
)
_TOKENS = st.lists(
    st.sampled_from(
        "ls cat rm git find xargs sed awk bash -c -rf x a.txt | || && & ; ( ) { } $( ` ' \" $x ${x} ${x@P} $(( )) "
        "[[ ]] [ ] < > >> "
        "<< <<< <( if then fi for in do done case esac while f() \\ \n * ~ $'x' # ! time eval E touch".split(" ")
    ),
    max_size=14,
).map(" ".join)
_LOOKS = st.sampled_from(
    ["ls", "cat a", "grep x y | wc -l", "git status", "find . -name a", "echo hi", "sed -n p a", "x=1; echo $x"]
)
_ADDED = [
    "{} > x", "{}; touch x", "{} && touch x", "{} || touch x", "{} & touch x", "{} | tee x", "{}\ntouch x",
    "$({}) && touch x", "echo $(touch x); {}", "{} `touch x`", "{} <(touch x)", "if {}; then touch x; fi",
    "f() {{ {}; touch x; }}; f", "eval '{}'; rm x", "PATH=. {}", "{} &> x", "bash -c '{}; touch x'", "sudo {}",
    "cat <<E\n$(touch x)\nE\n{}",
]  # fmt: skip
_PREFIXES = [
    "env", "sudo", "timeout 5", "nice", "time", "command", "nohup", "xargs", "setsid", "watch", "env A=1",
    "stdbuf -oL", "exec", "doas",
]  # fmt: skip
_FRAMES = [
    "{}", "bash -c '{}'", "eval '{}'", "trap '{}' EXIT", "({})", "{{ {}; }}", "! {}", "echo $({})", "echo `{}`",
    "cat <({})", "ls; {}", "if a; then {}; fi", "for i in a; do {}; done", "ls && {}", "ls | {}", "ls & {}",
    "x=$({})", "f() {{ {}; }}", "find . -exec {} \\;",
]  # fmt: skip


def _harmless(plan: ShellPlan) -> bool:
    return plan.proven and plan.verdict in (Verdict.READ_ONLY, Verdict.READS_NETWORK)


@settings(max_examples=400, deadline=None)
@given(_SHELLISH | _TOKENS)
@example("\x00")
@example("\ud800")
@example("a" * 200_000)
@example("${" * 4_000)
@example("a{\U000729b8")
@example("echo {\U0010ffff..\U000f0001}")
def test_no_text_raises(line: str) -> None:
    plan = analyze(line, "/w")
    assert plan.line == line
    assert plan.proven <= (not plan.problem)


def test_other_letters_do_not_end_a_heredoc() -> None:
    # both characters look alike to the parser, but not to bash
    ends = "cat <<\u2026E\n\u2036E\ncat <<'X'\n\u2026E\ntouch x\nX\n"
    assert not _harmless(analyze(ends, "/w"))
    # a word of such characters ends a heredoc or cannot be parsed, as the C compiler's sign of characters has it
    assert _harmless(analyze("cat <<E\n\u2026E\nhello\nE\n", "/w"))


@settings(max_examples=200, deadline=None)
@given(st.binary(max_size=60))
def test_no_bytes_raise(raw: bytes) -> None:
    analyze(raw.decode("utf-8", "surrogateescape"), "/w")


@given(_LOOKS, st.sampled_from(_ADDED))
def test_additions_never_make_a_line_harmless(line: str, added: str) -> None:
    assert _harmless(analyze(line, "/w"))
    assert not _harmless(analyze(added.format(line), "/w"))


@pytest.mark.slow
@settings(deadline=None, suppress_health_check=[HealthCheck.filter_too_much])
@given(_TOKENS, st.sampled_from(["; touch x", "\ntouch x", " && touch x", " > x"]))
def test_adding_a_write_ends_read_only(line: str, tail: str) -> None:
    assume(_harmless(analyze(line, "/w")) and "#" not in line and line.strip())
    assert not _harmless(analyze(line + tail, "/w"))


@given(st.lists(st.sampled_from(_PREFIXES), max_size=3), st.sampled_from(_FRAMES))
def test_no_wrapping_hides_a_command(prefixes: list[str], frame: str) -> None:
    line = frame.format(" ".join([*prefixes, "touch PROOF"]))
    plan = analyze(line, "/w")
    layers = [layer for command in plan.commands for layer in (command.words, *command.wrapped)]
    assert any(layer[:2] == ("touch", "PROOF") for layer in layers), line
    assert not _harmless(plan)


@given(_LOOKS)
def test_the_same_line_gets_the_same_plan(line: str) -> None:
    assert analyze(line, "/w") == analyze(line, Path("/w"))


_SHFMT = shutil.which("shfmt") or shutil.which("shfmt", path=str(Path(sys.executable).parent))
_ORACLE = st.lists(
    st.sampled_from(
        [
            "ls a", "echo 'x y'", "cat <b", "grep -q x y", "(cd a; pwd)", "{ wc; tr a b; }",
            "if a1; then b1; else c1; fi", "for i in 1 2; do d1 $i; done", "while e1; do f1; done",
            "case x in x) g1;; esac", "h1() { i1; }", 'echo "$(j1 `k1`)"', "l1 <(m1)", "x=$(n1) o1", "! p1",
            "q1 > r", "s1 <<E\n$(t1)\nE\n", "u1 | v1 |& w1", "x1 & y1", "[[ -f a ]]", "echo ${z1:-$(a2)}",
        ]
    ),
    min_size=1,
    max_size=5,
)  # fmt: skip


@pytest.mark.skipif(_SHFMT is None, reason="shfmt is the second opinion")
@settings(max_examples=40, deadline=None)
@given(_ORACLE, st.sampled_from(["; ", "\n", " && ", " || "]))
def test_every_command_another_parser_sees_is_found(parts: list[str], joiner: str) -> None:
    joiner = "\n" if any("<<E" in part for part in parts) else joiner
    line = joiner.join(parts)
    told = subprocess.run([_SHFMT or "shfmt", "--to-json"], input=line, capture_output=True, text=True, check=False)
    assume(told.returncode == 0)
    found = {command.words[0] for command in analyze(line, "/w").commands if command.words}
    assert _names(json.loads(told.stdout)) <= found


def _names(node: Json) -> set[str]:
    """Collect the first literal word of every call in shfmt's tree."""
    if isinstance(node, list):
        return {name for child in node for name in _names(child)}
    if not isinstance(node, dict):
        return set()
    names = {name for child in node.values() for name in _names(child)}
    arguments = node.get("Args")
    if node.get("Type") == "CallExpr" and isinstance(arguments, list) and arguments and isinstance(arguments[0], dict):
        parts = arguments[0].get("Parts")
        if isinstance(parts, list) and len(parts) == 1 and isinstance(parts[0], dict):
            names.add(str(parts[0].get("Value")))
    return names


def _work(line: str) -> int:
    analyze("ls", "/w")  # loads what is imported late
    return count_calls(lambda: analyze_uncached(line, "/w"))


@pytest.mark.parametrize(
    "line",
    [
        "a" * 10_000_000,
        "true && " * 1_250_000,
        "echo " + "$(echo " * 200 + ")" * 200,
        "|" * 9_999,
        ")" * 9_999,
        "((a" * 3_300,
        "<<a " * 2_400,
        "f(){ " * 1_500,
        "eval " * 2_000 + "ls",
        "env " * 3_000 + "ls",
        "bash -c '" * 1_000,
        "ls" + "<a" * 4_000,
    ],
    ids=lambda line: repr(line[:12]),
)
def test_hostile_input_is_analyzed_quickly(line: str) -> None:
    assert _work(line) < 600_000


def test_analysis_time_is_linear_in_line_length() -> None:
    short, long = (_work("; ".join(f"ls a{i}" for i in range(count))) for count in (300, 3_000))
    assert long < short * 12


def _measure_seconds(run: Callable[[], object]) -> float:
    """Time a call whose work is done by regular expressions, which `_work` does not see."""
    spent: list[float] = []
    for _ in range(3):
        start = time.process_time()
        run()
        spent.append(time.process_time() - start)
    return min(spent)


def test_globs_behind_grep_are_read_in_linear_time() -> None:
    lines = ["grep " + " ".join(f"a{i}*" for i in range(count)) for count in (2_000, 16_000)]
    short, long = (_measure_seconds(lambda line=line: analyze(line, "/w")) for line in lines)
    assert long < short * 24


def test_letters_behind_a_dollar_are_read_in_linear_time() -> None:
    lines = [f"sqlite3 -readonly x 'select ${'é' * count} from t'" for count in (4, 22)]
    short, long = (_measure_seconds(lambda: analyze_uncached(line, "/w")) for line in lines)  # noqa: B023 - called at once
    assert long < short * 20


def test_open_brace_is_split_in_linear_time() -> None:
    texts = ["{" + "a," * count for count in (500, 5_000)]
    short, long = (_measure_seconds(lambda: list(parsing.split_roughly(text))) for text in texts)  # noqa: B023 - as above
    assert long < short * 40


_PLAIN_WORDS = st.sampled_from(
    "ls cd src git status .. -l a=b FOO=1 env ! exec eval rm x sudo xargs bash -c true : . source test export if then"
    " do %1 @ ^x -- - /bin/ls pushd popd command builtin time ;".split()
)


def _use_the_parser(_: str) -> None:
    return None


@settings(deadline=None)
@given(st.lists(_PLAIN_WORDS, min_size=1, max_size=10), st.sampled_from([" ", "  "]))
def test_plain_scripts_need_no_parser(words: list[str], gap: str) -> None:
    line = gap.join(words)
    assume(parsing.split_plain(line) is not None)
    quick = analyze_uncached(line, "/w")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(parsing, "split_plain", _use_the_parser)
        parsed = analyze_uncached(line, "/w")
    drops_dash = "-" in words and not parsed.proven  # the parser leaves the dash of `- a=b` out, and is not believed
    assert parsed == quick or drops_dash


def _find_unread(source: bytes) -> list[bytes]:
    """Return what is in no node of the syntax tree, but blanks and the `-` before a redirect, which is read."""
    root = parsing.parse_source(source)
    assert root is not None
    gaps, end, pending = list[bytes](), 0, [root]
    while pending:
        node = pending.pop()
        pending.extend(reversed(node.children))
        if not node.children:
            gaps.append(source[end : node.start_byte])
            end = max(end, node.end_byte)
    gaps.append(source[end:])
    return [gap for gap in gaps if gap.replace(b"\\\n", b"").strip() not in (b"", b"-")]


_ODD_STARTS = st.lists(
    st.sampled_from(
        ["-", "\\ ", "ls", "a=b", "cat", "x", "2>&1", "> f", "<<E\nE\n", "declare", "export", "! ", "(", ")", "{ ",
         "; }", " ", " ", " ", ";", "|", "&&", "\n", "$(", "if ", "; then ", "; fi", "${x}", "'q'", "#", "1"]
    ),
    max_size=9,
).map("".join)  # fmt: skip


@settings(max_examples=400, deadline=None, suppress_health_check=[HealthCheck.filter_too_much])
@given(_ODD_STARTS)
@example("\\ ls")
@example("git status \\ ; ls")
@example("true && \\ ls")
@example("ls | \\ cat")
@example("(\\ ls)")
@example("declare \\ local")
@example("if \\ ls; then ls; fi")
def test_a_line_that_is_not_read_whole_proves_nothing(line: str) -> None:
    plan = analyze_uncached(line, "/w")
    if plan.proven and parsing.split_plain(line) is None:
        assert _find_unread(line.encode()) == []


@pytest.mark.parametrize(
    "line", ["- a=b $x", "- 2>&1", "true && - a=b", "(- a=b)", "ls | - a=b cat $x", "a=b - <<E\nE\n"]
)
def test_a_dash_at_the_start_of_a_command_is_not_left_out(line: str) -> None:
    assert not _harmless(analyze_uncached(line, "/w"))


@pytest.mark.parametrize("after", ["<<E\nx\nE\n", "2>&1", "3< f", "<< 'E' | wc -l\nx\nE\n"])
def test_a_dash_before_a_redirect_is_a_word(after: str) -> None:
    plan = analyze_uncached(f"cat $x - {after}", "/w")
    assert plan.proven
    assert plan.commands[0].words == ("cat", "$x", "-")


_BRACED = st.lists(
    st.sampled_from(
        (
            r"{ } , .. . a b 1 3 -2 01 / ~ = @ 'x,y' '' \{ \, \} {a,b} {1..3} {,c} {} {a} {a,{b,c}} {3..1}"
            ' "{a,b}"'
        ).split()
    ),
    min_size=1,
    max_size=9,
).map("".join)


@pytest.mark.skipif(shutil.which("bash") is None, reason="compares with bash")
@settings(
    max_examples=40, deadline=None, suppress_health_check=[HealthCheck.too_slow, HealthCheck.function_scoped_fixture]
)
@given(st.lists(_BRACED, min_size=20, max_size=60))
def test_braces_are_expanded_as_bash_does(tmp_path: Path, braced: list[str]) -> None:
    script = "".join(f"printf '%s\\0' x {word}; printf '%s\\0' END\n" for word in braced)
    done = subprocess.run(["bash", "-c", script], cwd=tmp_path, capture_output=True, text=True, check=True)
    received = [group.split("\0")[:-1] for group in done.stdout.split("END\0")[:-1]]
    for word, (_, *texts) in zip(braced, received, strict=True):
        plan = analyze(f"touch x {word}", "/w")
        if plan.proven and plan.verdict is Verdict.WRITES:  # else a text is not known, or may be an option
            assert [*plan.commands[0].words[2:]] == texts, word


def test_words_of_braces() -> None:
    plan = analyze("cat ~/{a,'b c',d*}.py x{1..3} {}", "/w")
    home = str(Path.home())
    assert [*plan.commands[0].words] == [
        "cat",
        f"{home}/a.py",
        f"{home}/b c.py",
        f"{home}/d*.py",
        "x1",
        "x2",
        "x3",
        "{}",
    ]
    assert analyze("touch {1..99}", "/w").proven
    assert not analyze("touch {1..101}", "/w").proven
    assert not analyze("touch {a,{b,c}}", "/w").proven
