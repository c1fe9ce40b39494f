"""What a stop by the sandbox looks like, what is asked then, and what may run where no wall stands."""

from pathlib import Path
from typing import Any, cast

import pytest

from callwright.core.access import Confinement
from callwright.core.calls import ToolCall
from callwright.core.decisions import Approve, Question
from callwright.shell import analyze
from callwright.system.output_capture import OutputCapture
from callwright.system.process import CommandResult
from callwright.system.sandbox.wall import Wall
from callwright.tool.base import ToolContext
from callwright.toolbox.bash.wall_stops import (
    OUTSIDE,
    describe_stop,
    find_wall_failure,
    is_allowed_outside,
    is_harmless_without_wall,
    make_outside_question,
    why_unmasked,
)

READ_ONLY, WORKSPACE, NETWORK, RULE = (
    Confinement.READ_ONLY,
    Confinement.WORKSPACE,
    Confinement.NETWORK,
    Confinement.RULE,
)
WROTE, ANYWHERE = "it tried to write to ", "it tried to write where it may not"
SERVICE = "it tried to use a service or a key that the sandbox hides"


def ended(text: str, exit_code: int = 1, report: str = "", **more: Any) -> CommandResult:
    output = OutputCapture()
    output.feed(text.encode())
    return CommandResult(exit_code, more.get("reason", "exited"), output, report=report)


@pytest.mark.parametrize(
    ("text", "confinement", "expected"),
    [
        ("touch: cannot touch '/x/y': Read-only file system", READ_ONLY, f"{WROTE}/x/y"),
        ("bash: line 1: out.txt: Read-only file system", READ_ONLY, f"{WROTE}out.txt"),
        ("OSError: [Errno 30] Read-only file system: '/x/y'", WORKSPACE, f"{WROTE}/x/y"),
        ("OSError: [Errno 30] Read-only file system: '/x/y'", RULE, f"{WROTE}/x/y"),
        ("Error: EROFS: read-only file system, open '/x'", READ_ONLY, f"{WROTE}/x"),
        ("mv: cannot move 'a' to 'b': Invalid cross-device link", WORKSPACE, f"{WROTE}b"),
        ("OSError: [Errno 16] Device or resource busy: 'app' -> 'new'", WORKSPACE, f"{WROTE}app"),
        ("OSError: [Errno 18] Invalid cross-device link: 'app/a' -> 'b'", WORKSPACE, f"{WROTE}app/a"),
        ("Error: EBUSY: resource busy or locked, rename 'app' -> 'new'", WORKSPACE, f"{WROTE}app"),
        ("Error: EXDEV: cross-device link not permitted, rename 'app/a' -> 'b'", WORKSPACE, f"{WROTE}app/a"),
        ("fatal: renaming 'app/a' failed: Invalid cross-device link", WORKSPACE, f"{WROTE}app/a"),
        ("Read-only file system", READ_ONLY, ANYWHERE),
        ("fatal: EROFS", READ_ONLY, ANYWHERE),
        ("error: unable to unlink 'AGENTS.md': Device or resource busy", WORKSPACE, f"{WROTE}AGENTS.md"),
        ("curl: (6) Could not resolve host: a.example", WORKSPACE, "it tried to reach a.example over the network"),
        ("npm ERR! getaddrinfo EAI_AGAIN r.example", READ_ONLY, "it tried to reach r.example over the network"),
        ("connect: Network is unreachable", READ_ONLY, "it tried to use the network"),
        ("curl: (6) Could not resolve host: a.example", RULE, ""),
        ("curl: (6) Could not resolve host: a.example", NETWORK, ""),
        ("curl: (6) Could not resolve host: a\n/x: Read-only file system", NETWORK, f"{WROTE}/x"),
        ("touch: cannot touch '/x': Read-only file system", Confinement.UNCONFINED, ""),
        ("Cannot connect to the Docker daemon at unix:///run/docker.sock", WORKSPACE, SERVICE),
        ("git@a.example: Permission denied (publickey).", NETWORK, SERVICE),
        ("AssertionError: 1 != 2", READ_ONLY, ""),
        # not writable without the sandbox either, so the sandbox was not the reason
        ("touch: cannot touch 'sealed/y': Read-only file system", READ_ONLY, ""),
        ("touch: cannot touch 'sealed/y/z': Read-only file system", READ_ONLY, ""),
        ("sealed/a: Read-only file system\nopen/a: Read-only file system", READ_ONLY, f"{WROTE}open/a"),
    ],
)
def test_stop_by_the_sandbox_is_recognized(
    text: str, confinement: Confinement, expected: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    (tmp_path / "sealed").mkdir()

    def is_writable(path: str, _: int) -> bool:  # for root everything is
        return "sealed" not in path

    monkeypatch.setattr("callwright.toolbox.bash.wall_stops.os.access", is_writable)
    assert describe_stop(text, confinement, str(tmp_path)) == expected


def test_question_is_asked_only_about_a_line_that_failed_by_the_wall(tmp_path: Path):
    text = "touch: cannot touch '/x/y': Read-only file system\n"
    asked = make_outside_question(ended(text), READ_ONLY, str(tmp_path))
    shown = f"(exit code 1: {text.strip()})"
    assert asked == f"the sandbox stopped it: it tried to write to /x/y {shown}{OUTSIDE}"
    assert make_outside_question(ended(text, 0), READ_ONLY, str(tmp_path)) == ""
    assert make_outside_question(ended(text, reason="timeout"), READ_ONLY, str(tmp_path)) == ""
    assert make_outside_question(ended("1 != 2"), READ_ONLY, str(tmp_path)) == ""


@pytest.mark.parametrize(
    ("text", "exit_code", "report", "stood"),
    [
        ("bwrap: No permissions to create a new namespace", 1, "", False),
        ("cannot run bash in the sandbox: [Errno 2] x", 126, "", False),
        ("sandbox-exec: sandbox_apply: Operation not permitted", 1, "", False),
        ("bwrap: it said so itself", 1, "\n/w\n", True),
        ("bwrap: it replaced the shell", 1, "\n", True),
        ("bwrap: as a text", 0, "", True),
        ("bwrap: as a text", 2, "", True),
        ("it uses bwrap: fine", 1, "", True),
    ],
)
def test_wall_that_fell_is_told_from_a_line_that_fails(text: str, exit_code: int, report: str, stood: bool):
    assert find_wall_failure(ended(text, exit_code, report)) == ("" if stood else text)


@pytest.mark.parametrize(
    ("reason", "answer", "outside"),
    [
        (f"the sandbox stopped it: x{OUTSIDE}", Approve(), True),
        (f"the sandbox stopped it: x{OUTSIDE} no", Approve(), False),
        ("writes a file", Approve(), False),
        (None, None, False),
    ],
)
def test_only_a_yes_to_that_question_takes_the_wall_away(reason: str | None, answer: Approve | None, outside: bool):
    call = ToolCall("1", "bash")
    question = Question("1", "bash", {}, "", "", reason or "")
    answered = None if answer is None else (question, answer)
    context = ToolContext(call, cast("Any", None), answered=answered)
    assert is_allowed_outside(context) is outside


@pytest.mark.parametrize(
    ("line", "harmless"),
    [
        ("ls -la", True),
        ("git status && git diff | head", True),
        ("grep -r x . | sort | uniq -c", True),
        ("NAME=value", True),
        ("find . -name x", False),
        ("awk 1 file", False),
        ("pytest", False),
        ("git config -l", False),
        ("git", False),
        ("ls; git config -l", False),
        ("ls > out", False),
        ("git branch -D old", False),
        ("sort -o out names", False),
        ("ls $(touch x)", False),
        ("cat $FILE; echo `rm x`", False),
        ("ls && curl https://a.example", False),
        ("ls 'unclosed", False),
        ("/tmp/ls", False),
    ],
)
def test_short_list_runs_without_a_wall(line: str, harmless: bool, tmp_path: Path):
    assert is_harmless_without_wall(analyze(line, tmp_path)) is harmless


@pytest.mark.parametrize(
    ("line", "shown"),
    [
        ("cat notes.txt", ""),
        ("ls; wc -l notes.txt", ""),
        ("grep -r x /big/found", ""),  # searched by itself
        ("grep -r x /big/found/deep", ""),
        ("grep -r x /small", ""),
        ("grep -r x /big", "/big"),
        ("grep -r x /big/other", "/big/other"),
        ("grep -r x /big/found; grep -r x /big/other", "/big/other"),
        ("grep -r x /big/foundling", "/big/foundling"),
        ("python3 tool.py", "/big"),
        ("cat notes.txt; make", "/big"),
        ("cat $FILE", "/big"),
        ("ls -A | while read name; do cat $name; done", "/big"),
        ("cat {notes,x}.txt", ""),
        ("cat $FILE*", "/big"),
        ("cat {a,{b,c}}*", "/big"),
        ("cat ~other/x*", "/big"),
        ("cat 'unclosed", "/big"),
    ],
)
def test_unmasked_secrets_are_a_reason_to_ask(line: str, shown: str, tmp_path: Path):
    wall = Wall("/small", tmp_path, searched=("/small", "/big/found"), unsearched=("/big",))
    plan = analyze(line, "/small")
    reason = f"{shown} has too many folders to search all of them for secrets, so some may not be masked{OUTSIDE}"
    assert why_unmasked(plan, wall) == (reason if shown else "")
    assert why_unmasked(plan, Wall("/small", tmp_path, searched=("/small", "/big"))) == ""
    assert why_unmasked(plan, None) == ""
