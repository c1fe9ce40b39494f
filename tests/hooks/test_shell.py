"""Shell hooks: the contract scripts were written for, and where it is stricter here."""

import json
import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from callwright import (
    Completed,
    Effect,
    Executor,
    Failed,
    Image,
    Interrupted,
    Output,
    Registry,
    Text,
    ToolCall,
    tool,
)
from callwright.core.errors import Denied
from callwright.core.spec import ToolSpec
from callwright.hooks.shell.compat import CallView
from callwright.hooks.shell.config import ShellHook, parse_shell_hooks
from callwright.hooks.shell.dispatch import HookContext
from callwright.hooks.shell.hooks import ShellHooks
from callwright.hooks.shell.process import find_missing_script
from callwright.hooks.shell.reply import HookReply, apply_reply
from callwright.policy import AllowEverything
from callwright.tool.base import Tool

Make = Callable[..., Executor]


@tool(effect=Effect.WRITE, aliases=("Bash",))
async def bash(command: str) -> str:
    """Pretend to run something."""
    return f"ran {command}"


@pytest.fixture
def reports() -> list[str]:
    return []


@pytest.fixture
def executor(tmp_path: Path, reports: list[str]) -> Make:
    def make(*hooks: ShellHook) -> Executor:
        setting = HookContext(str(tmp_path), report=reports.append)
        return Executor(Registry(bash), AllowEverything(), hooks=ShellHooks(hooks, setting).call_hooks())

    return make


def before(command: str, **more: Any) -> ShellHook:
    return ShellHook("PreToolUse", command, **more)


def says(content: object) -> str:
    """A command that prints JSON."""
    return f"cat > /dev/null; echo '{json.dumps(content)}'"


def decision(word: str, **more: object) -> dict[str, object]:
    return {"hookSpecificOutput": {"hookEventName": "PreToolUse", "permissionDecision": word, **more}}


async def test_hook_gets_the_call_on_stdin(executor: Make, tmp_path: Path) -> None:
    outcome = await executor(before(f"cat > {tmp_path}/heard.json")).run("bash", {"command": "ls"})
    assert isinstance(outcome, Completed)
    heard = json.loads((tmp_path / "heard.json").read_text())
    assert heard["hook_event_name"] == "PreToolUse"
    assert heard["tool_name"] == "Bash" and heard["tool_input"] == {"command": "ls"}
    assert heard["cwd"] == str(tmp_path) and heard["permission_mode"] == "default"


async def test_exit_code_2_denies_with_stderr_as_reason(executor: Make) -> None:
    outcome = await executor(before("echo 'not on a Friday' >&2; exit 2")).run("bash", {"command": "ls"})
    assert isinstance(outcome, Failed) and outcome.error.code == "denied" and not outcome.started
    assert outcome.text == "not on a Friday"


async def test_deny_behind_a_long_log_denies(executor: Make) -> None:
    log = f"{sys.executable} -c \"print('checking another rule of the list\\n' * 40000)\""
    outcome = await executor(before(f"{log}; {says(decision('deny'))}")).run("bash", {"command": "ls"})
    assert isinstance(outcome, Failed) and not outcome.started
    assert "wrote more than is read of its output" in outcome.text


async def test_json_does_not_override_exit_code_2(executor: Make) -> None:
    outcome = await executor(before(says(decision("allow")) + "; exit 2")).run("bash", {"command": "ls"})
    assert isinstance(outcome, Failed) and outcome.error.code == "denied"


@pytest.mark.parametrize("command", ["exit 1", "exit 77", "echo '{not json'"])
async def test_failure_with_proceed_is_reported_and_the_call_runs(
    executor: Make, reports: list[str], command: str
) -> None:
    hook = before(command, blocks_on_error=False)
    assert isinstance(await executor(hook).run("bash", {"command": "ls"}), Completed)
    assert len(reports) == 1 and command.split(maxsplit=1)[0] in reports[0]


NOT_STARTED = [
    "no-such-program-anywhere",
    "python3 no-such-script.py",
    "sh ./no-such-script.sh --flag",
    "CHECK=1 exec python3 -u $CLAUDE_PROJECT_DIR/no-such-script.py",
    "true && perl no-such-script.pl",
    "if then (",
]


@pytest.mark.parametrize("command", NOT_STARTED)
async def test_hook_that_cannot_start_is_no_decision(executor: Make, reports: list[str], command: str) -> None:
    hook = before(command, blocks_on_error=False)
    assert isinstance(await executor(hook).run("bash", {"command": "ls"}), Completed)
    assert len(reports) == 1 and "could not start" in reports[0]


@pytest.mark.parametrize("command", [*NOT_STARTED, "exit 1", "sleep 5"])
@pytest.mark.parametrize("blocks", [None, True])
async def test_call_is_denied_when_its_hook_fails(executor: Make, command: str, blocks: bool | None) -> None:
    hook = before(command, blocks_on_error=blocks, seconds=0.3 if "sleep" in command else 10)
    outcome = await executor(hook).run("bash", {"command": "ls"})
    assert isinstance(outcome, Failed) and outcome.error.code == "denied" and not outcome.started


async def test_existing_script_with_exit_code_2_denies(executor: Make, tmp_path: Path) -> None:
    script = tmp_path / "check.py"
    script.write_text("import sys\nprint('No such file or directory', file=sys.stderr)\nsys.exit(2)\n")
    outcome = await executor(before(f"{sys.executable} {script}")).run("bash", {"command": "ls"})
    assert isinstance(outcome, Failed) and outcome.text == "No such file or directory"


@pytest.mark.slow
async def test_timed_out_hook_is_killed_with_its_children(executor: Make, reports: list[str], tmp_path: Path) -> None:
    pid = tmp_path / "pid"
    hook = before(f"sh -c 'echo $$ > {pid}; exec sleep 60' & sleep 30", seconds=0.2)
    assert isinstance(await executor(hook).run("bash", {"command": "ls"}), Failed)
    assert "did not end within 0.2 s" in reports[0]
    if pid.exists() and pid.read_text():  # on a very slow machine the limit passes before the child was started
        with pytest.raises(ProcessLookupError):
            os.kill(int(pid.read_text()), 0)


async def test_process_left_by_a_hook_does_not_hold_the_call(executor: Make) -> None:
    assert isinstance(await executor(before("sleep 90 & true", seconds=60)).run("bash", {"command": "x"}), Completed)


async def test_hook_rewrites_arguments(executor: Make) -> None:
    hook = before(says(decision("allow", updatedInput={"command": "ls -l"})))
    outcome = await executor(hook).run("bash", {"command": "ls"})
    assert isinstance(outcome, Completed) and outcome.text == "ran ls -l"


async def test_context_of_a_hook_before_a_call_comes_with_its_outcome(executor: Make) -> None:
    note = {"hookSpecificOutput": {"hookEventName": "PreToolUse", "additionalContext": "use pnpm here"}}
    outcome = await executor(before(says(note))).run("bash", {"command": "ls"})
    assert isinstance(outcome, Completed) and outcome.text == "ran ls\n[hook] use pnpm here"
    refusal = says(decision("deny", permissionDecisionReason="no", additionalContext="use pnpm here"))
    assert (await executor(before(refusal)).run("bash", {"command": "npm"})).text == "no\n[hook] use pnpm here"


async def test_invalid_rewritten_arguments_are_rejected(executor: Make) -> None:
    outcome = await executor(before(says(decision("allow", updatedInput={"comand": 1})))).run("bash", {"command": "ls"})
    assert isinstance(outcome, Failed) and outcome.error.code == "invalid_input"


async def test_rewrite_is_kept_when_another_hook_asks(executor: Make) -> None:
    hooks = (
        before(says(decision("ask", permissionDecisionReason="look at this"))),
        before(says(decision("allow", updatedInput={"command": "safe"}))),
    )
    outcome = await executor(*hooks).run("bash", {"command": "ls"})
    assert isinstance(outcome, Interrupted)
    assert outcome.questions[0].arguments == {"command": "safe"}
    assert outcome.questions[0].reason == "look at this"


async def test_deny_beats_ask_beats_allow(executor: Make) -> None:
    words = [before(says(decision(word))) for word in ("allow", "ask", "deny")]
    assert isinstance(await executor(*words).run("bash", {"command": "x"}), Failed)
    assert isinstance(await executor(*words[:2]).run("bash", {"command": "x"}), Interrupted)
    assert isinstance(await executor(*words[:1]).run("bash", {"command": "x"}), Completed)


async def test_old_decision_names_are_accepted(executor: Make) -> None:
    outcome = await executor(before(says({"decision": "block", "reason": "no"}))).run("bash", {"command": "x"})
    assert isinstance(outcome, Failed) and outcome.text == "no"


@pytest.mark.parametrize(
    ("reply", "report"),
    [
        (decision("perhaps"), "'perhaps'"),
        (decision("allow", hookEventName="PostToolUse"), "'PostToolUse', not about PreToolUse"),
        ({"hookSpecificOutput": "deny"}, "not an object"),
    ],
)
async def test_unclear_decision_denies(
    executor: Make, reports: list[str], reply: dict[str, object], report: str
) -> None:
    assert isinstance(await executor(before(says(reply))).run("bash", {"command": "x"}), Failed)
    assert report in reports[0]


async def test_hook_may_end_the_run(executor: Make) -> None:
    outcome = await executor(before(says({"continue": False, "stopReason": "enough"}))).run("bash", {"command": "x"})
    assert isinstance(outcome, Failed) and outcome.text == "enough" and str(outcome.error).startswith("halted")


async def test_post_hooks_add_to_output_or_replace_it(executor: Make) -> None:
    told = ShellHook("PostToolUse", "echo 'run the linter' >&2; exit 2")
    outcome = await executor(told).run("bash", {"command": "x"})
    assert isinstance(outcome, Completed) and outcome.text == "ran x\n[hook] run the linter"
    replaced = ShellHook("PostToolUse", says({"hookSpecificOutput": {"updatedToolOutput": "hidden"}}))
    outcome = await executor(replaced).run("bash", {"command": "x"})
    assert isinstance(outcome, Completed) and outcome.text == "hidden"


async def test_outcome_is_withheld_when_a_required_hook_fails(executor: Make) -> None:
    hook = ShellHook("PostToolUse", "exit 1", blocks_on_error=True)
    outcome = await executor(hook).run("bash", {"command": "secret"})
    assert isinstance(outcome, Failed) and outcome.started and "ran secret" not in outcome.text


async def test_hooks_run_in_parallel(executor: Make, tmp_path: Path) -> None:
    # each waits for the other's file: one after the other they would both time out
    wait = "touch {0}/{1}; while [ ! -e {0}/{2} ]; do sleep 0.01; done; echo no >&2; exit 2"
    hooks = [before(wait.format(tmp_path, *names), seconds=60) for names in (("a", "b"), ("b", "a"))]
    assert isinstance(await executor(*hooks).run("bash", {"command": "x"}), Failed)


async def test_hook_runs_once_for_a_call_that_is_approved(executor: Make, tmp_path: Path) -> None:
    count = f"cat > /dev/null; echo x >> {tmp_path}/count; echo '{json.dumps(decision('ask'))}'"
    machine = executor(before(count))
    from callwright import Answers, Question, Turn

    async def yes(questions: "Any") -> Answers:
        assert all(isinstance(question, Question) for question in questions)
        return Answers.approving(questions)

    outcome = await machine.run("bash", {"command": "x"}, turn=Turn(ask=yes))
    assert isinstance(outcome, Completed)
    assert (tmp_path / "count").read_text() == "x\n"


@pytest.mark.parametrize(
    ("matcher", "names", "expected"),
    [
        ("", ("bash",), True),
        ("*", ("bash",), True),
        ("Bash", ("bash", "Bash"), True),
        ("Edit|Write", ("write", "Write"), True),
        ("Edit, Write", ("write",), True),
        ("Edit|Write", ("bash",), False),
        ("Bas", ("bash",), False),
        ("mcp__memory", ("mcp__memory__add",), False),
        ("mcp__memory__.*", ("mcp__memory__add",), True),
        ("^(Edit|Write)$", ("write", "Write"), True),
        ("Notebook.*", ("bash",), False),
    ],
)
def test_matcher_is_a_name_list_or_a_pattern(matcher: str, names: tuple[str, ...], expected: bool) -> None:
    assert before("true", matcher=matcher).matches(names) is expected


@pytest.mark.parametrize(("matcher", "denied"), [("Bash", True), ("Edit", False), ("", True)])
async def test_hook_runs_for_the_calls_it_matches(executor: Make, matcher: str, denied: bool) -> None:
    outcome = await executor(before(says(decision("deny")), matcher=matcher)).run("bash", {"command": "ls"})
    assert isinstance(outcome, Failed) is denied


def test_unsupported_hooks_in_settings_are_reported() -> None:
    hooks, problems = parse_shell_hooks(
        {
            "PreToolUse": [
                {"matcher": "Bash", "hooks": [{"type": "command", "command": "a", "timeout": 5, "onError": "block"}]},
                {"matcher": "Bash(", "hooks": [{"command": "b"}]},
                {"hooks": [{"type": "agent", "prompt": "x"}, {"command": "c", "if": "Bash(git *)"}]},
            ],
            "Teatime": [{"hooks": [{"command": "d"}]}],
        },
        written_in="here",
    )
    able = [(hook.command, hook.seconds, hook.blocks_on_error) for hook in hooks if not hook.broken]
    assert able == [("a", 5, True), ("c", 600, None)]
    assert [hook.command for hook in hooks if hook.broken] == ["b", "x"]
    assert len(problems) == 3 and all(problem.startswith("here: ") for problem in problems)


@pytest.mark.parametrize(
    ("group", "own", "other", "value", "changed"),
    [
        ("agent", "agent", "subagent_type", "plan", "explore"),
        ("shell", "background", "run_in_background", True, False),
        ("shell", "background", "run_in_background", False, True),
    ],
)
def test_arguments_have_the_names_of_other_agents_too(
    group: str, own: str, other: str, value: Any, changed: Any
) -> None:
    spec = ToolSpec("x", "X.", {"type": "object"}, group=group)
    view = CallView.of(spec, {own: value, "more": 1}, "/w")
    assert view.arguments == {own: value, other: value, "more": 1}
    assert view.restore_arguments(view.arguments) == {own: value, "more": 1}
    assert view.restore_arguments({**view.arguments, other: changed}) == {own: changed, "more": 1}
    assert view.restore_arguments({**view.arguments, own: changed}) == {own: changed, "more": 1}
    assert view.restore_arguments({other: value, "more": 2}) == {own: value, "more": 2}
    assert view.restore_arguments({"more": 2}) == {"more": 2}
    assert CallView.of(spec, {"more": 1}, "/w").arguments == {"more": 1}


async def test_file_tools_expose_full_file_path_to_hooks(tmp_path: Path) -> None:
    @tool(effect=Effect.WRITE, aliases=("Write",), group="file")
    async def write(path: str) -> str:
        """Pretend to write."""
        return path

    heard = tmp_path / "heard.json"
    script = f"tee {heard} | {sys.executable} -c 'import json,sys; i=json.load(sys.stdin)[\"tool_input\"]; {{}}'"
    change = 'i["file_path"]="/elsewhere";print(json.dumps({"hookSpecificOutput":{"updatedInput":i}}))'
    hooks = ShellHooks([before(script.format(change))], HookContext(str(tmp_path)))
    writing: list[Tool] = [write]
    executor = Executor(Registry(*writing), AllowEverything(), hooks=hooks.call_hooks())
    outcome = await executor.run("write", {"path": "a.txt"})
    assert json.loads(heard.read_text())["tool_input"]["file_path"] == str(tmp_path / "a.txt")
    assert isinstance(outcome, Completed) and outcome.text == "/elsewhere"


REFUSING = [
    "python3 -W ignore guard.py",
    "python3 -X utf8 guard.py",
    "bash -euo pipefail guard.sh",
    "python3 `pwd`/guard.py",
    "python3 gua*.py",
    "python3 < guard.py",
    "mkdir -p deep && cp guard.py deep/inner.py && cd deep && python3 inner.py",
]


@pytest.mark.parametrize("command", REFUSING)
async def test_deny_counts_for_any_script_name(executor: Make, tmp_path: Path, command: str) -> None:
    (tmp_path / "guard.py").write_text("import sys\nprint('no', file=sys.stderr)\nsys.exit(2)")
    (tmp_path / "guard.sh").write_text("echo no >&2; exit 2")
    outcome = await executor(before(command)).run("bash", {"command": "ls"})
    assert isinstance(outcome, Failed) and outcome.error.message == "no"


async def test_deny_reason_may_quote_an_interpreter_error(executor: Make, tmp_path: Path) -> None:
    (tmp_path / "guard.sh").write_text(
        'cat > /dev/null; echo "refused: bash: can\'t open pipefail: no such file" >&2; exit 2'
    )
    outcome = await executor(before("bash -o pipefail guard.sh")).run("bash", {"command": "ls"})
    assert isinstance(outcome, Failed) and "refused" in outcome.error.message


def test_missing_scripts_are_found_for_interpreters_only(tmp_path: Path) -> None:
    (tmp_path / "here.py").touch()
    around = {"DIR": str(tmp_path)}
    assert find_missing_script("python3 here.py", str(tmp_path), around) == ""
    assert find_missing_script("python3 $DIR/here.py x", "/", around) == ""
    assert find_missing_script("python3 -c 'print(1)'", "/", around) == ""
    assert find_missing_script("python3 -m module", "/", around) == ""
    assert find_missing_script("grep needle missing", "/", around) == ""
    assert find_missing_script("python3 ${DIR}/gone.py", "/", around) == str(tmp_path / "gone.py")
    assert find_missing_script("python3 $UNKNOWN/gone.py", "/", around) == ""
    assert isinstance(bash.spec, ToolSpec)


def test_note_leaves_a_shared_error_and_other_parts_as_they_are() -> None:
    error, call = Denied("no"), ToolCall("1", "x", {})
    for _ in range(2):
        noted = apply_reply(Failed(call, error), HookReply(context="ask first"))
        assert noted.text == "no\n[hook] ask first"
    assert error.message == "no"
    image = Image(b"x", "image/png")
    parts = apply_reply(Completed(call, Output((image,), {"n": 1})), HookReply(context="small"))
    assert isinstance(parts, Completed) and parts.output == Output((image, Text("[hook] small")), {"n": 1})
    empty = apply_reply(Completed(call, Output("")), HookReply(context="nothing found"))
    assert empty.text == "[hook] nothing found"
