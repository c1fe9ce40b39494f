"""Hooks that guard: whatever they write or fail with, only a readable reply lets the guarded action continue."""

import asyncio
import json
import os
from pathlib import Path
from typing import Any

import pytest

from callwright import Completed, Effect, Executor, Failed, Registry, tool
from callwright.hooks.shell.config import EVENTS, ShellHook, parse_shell_hooks
from callwright.hooks.shell.dispatch import HookContext
from callwright.hooks.shell.hooks import ShellHooks
from callwright.hooks.shell.process import HookRun
from callwright.hooks.shell.reply import read_reply
from callwright.policy import AllowEverything

DENY = json.dumps({"hookSpecificOutput": {"hookEventName": "PreToolUse", "permissionDecision": "deny"}})
ALLOW = DENY.replace("deny", "allow")
BLOCK = json.dumps({"decision": "block", "reason": "no"})

UNREADABLE = [
    f"checking the call\n{DENY}",
    f"\ufeff{DENY}",
    f"\ufeff \n{BLOCK}",
    f"[{DENY}]",
    f"[]\n{DENY}",
    f'["guard"] {DENY}',
    f"{DENY}\n{ALLOW}",
    f"{ALLOW}\n{DENY}",
    f"{ALLOW} trailing",
    DENY[:-1],
    DENY.replace('"', "'"),
    f"```json\n{DENY}\n```",
    f"data: {DENY}",
    '"deny"',
    "deny",
    "BLOCKED: not today",
    "permissionDecision: deny",
    "null",
    "0",
    "[" * 100_000,
    '{"a":' * 100_000,
    '{"decision": "block", "decision": "approve"}',
    '{"hookSpecificOutput": {"permissionDecision": "deny", "permissionDecision": "allow"}}',
    '{"hookSpecificOutput": {"permissionDecision": "deny"}, "hookSpecificOutput": {"permissionDecision": "allow"}}',
    '{"decision": "approve", "hookSpecificOutput": {"permissionDecision": "deny"}}',
    '{"decision": "block", "hookSpecificOutput": {"permissionDecision": "allow"}}',
    '{"decision": "approve", "hookSpecificOutput": {"decision": {"behavior": "deny"}, "permissionDecision": "allow"}}',
    '{"hookSpecificOutput": {"permissionDecision": "allow", "decision": "deny"}}',
    '{"hookSpecificOutput": {"permissionDecision": "Deny"}}',
    '{"hookSpecificOutput": {"permissionDecision": "perhaps"}}',
    '{"hookSpecificOutput": {"permissionDecision": ["deny"]}}',
    '{"hookSpecificOutput": {"permissionDecision": true}}',
    '{"hookSpecificOutput": [{"permissionDecision": "deny"}]}',
    '{"hookSpecificOutput": "deny"}',
    '{"hookSpecificOutput": {"permissionDecison": "deny"}}',
    '{"hook_specific_output": {"permissionDecision": "deny"}}',
    ALLOW.replace("PreToolUse", "PostToolUse"),
    ALLOW.replace("PreToolUse", "pretooluse"),
    ALLOW.replace('"PreToolUse"', "5"),
    '{"decision": "approve", "score": NaN}',
    '{"decision": "approve", "score": -Infinity}',
    '{"permissionDecision": "deny"}',
    '{"permission": "deny"}',
    '{"continue": "false"}',
    '{"continue": 0}',
    '{"hookSpecificOutput": {"permissionDecision": "allow", "updatedInput": "ls"}}',
    '{"hookSpecificOutput": {"permissionDecision": "allow", "updatedInput": []}}',
]


@pytest.mark.parametrize("event", [event for event, kind in EVENTS.items() if kind.guards and kind.tool])
def test_unreadable_or_mixed_reply_of_a_guard_denies(event: str) -> None:
    for stdout in UNREADABLE:
        reply = read_reply(ShellHook(event, "guard"), HookRun(0, stdout))
        assert reply.decision == "deny" and reply.arguments is None, stdout


@pytest.mark.parametrize("stdout", ["", "checked 3 files", "[guard] all is well", ALLOW, f"\ufeff{ALLOW}", "{}"])
def test_plain_log_text_and_readable_replies_pass(stdout: str) -> None:
    assert read_reply(ShellHook("PreToolUse", "guard"), HookRun(0, stdout)).decision in ("", "allow")


@pytest.mark.parametrize("stdout", [f"log line\n{BLOCK}", f"[{BLOCK}]", BLOCK[:-1]])
def test_prompt_guard_with_an_unreadable_reply_denies(stdout: str) -> None:
    assert read_reply(ShellHook("UserPromptSubmit", "guard"), HookRun(0, stdout)).decision == "deny"


def test_prompt_hook_may_write_any_context() -> None:
    text = "deny rules: see {config} and blocked.txt"
    assert read_reply(ShellHook("UserPromptSubmit", "note"), HookRun(0, text)).context == text


@pytest.mark.parametrize(
    "entry",
    [
        {"type": "http", "url": "ftp://localhost/guard"},
        {"type": "http", "command": "true"},
        {"type": "http", "url": "http://localhost/guard", "headers": {"a": "b\r\nc: d"}},
        {"type": "http", "url": "http://localhost/guard", "allowedEnvVars": "TOKEN"},
        {"type": "prompt", "command": "is this safe?"},
        {"type": "prompt", "prompt": "is this safe?", "model": 5},
        {"type": "callback", "command": "hook_0"},
        {"type": "agent", "prompt": "check"},
        {"type": "mcp_tool", "server": "guard", "tool": "check"},
        {"type": "wasm", "command": "true"},
        {"type": "command"},
        {"command": ""},
        {"command": ["true"]},
        {"command": "true", "shell": "cmd"},
        {"command": "true", "args": "x"},
        {"command": "true", "args": [1]},
        {"command": "true", "timeout": "5"},
        {"command": "true", "timeout": -1},
        {"command": "true", "onError": "ignore"},
        "true",
        None,
    ],
)
def test_entry_that_cannot_be_run_is_a_broken_guard(entry: Any) -> None:
    hooks, problems = parse_shell_hooks({"PreToolUse": [{"matcher": "Bash", "hooks": [entry]}]})
    assert len(hooks) == 1 and hooks[0].broken and hooks[0].matcher == "Bash"
    assert len(problems) == 1 and "what it guards is denied" in problems[0]
    assert parse_shell_hooks({"Notification": [{"hooks": [entry]}]})[0] == ()


@pytest.mark.parametrize(
    "events",
    [
        {"PreToolUse": {"hooks": [{"command": "true"}]}} | {"PreToolUse": "true"},
        {"PreToolUse": [{"hooks": {"command": "true"}}]},
        {"PreToolUse": [{"matcher": ["Bash"], "hooks": [{"command": "true"}]}]},
        {"PreToolUse": [{"matcher": "Bash(", "hooks": [{"command": "true"}]}]},
        {"PreTooluse": [{"hooks": [{"command": "true"}]}]},
        {"pretooluse": [{"hooks": [{"command": "true"}]}]},
        {"PreToolUses": [{"hooks": [{"command": "true"}]}]},
    ],
)
def test_form_that_is_not_understood_is_a_broken_guard(events: Any) -> None:
    hooks, problems = parse_shell_hooks(events, written_in="settings.json")
    assert len(problems) == 1
    assert [(hook.event, hook.matcher, bool(hook.broken)) for hook in hooks] == [("PreToolUse", "", True)]


def _executor(tmp_path: Path, *hooks: ShellHook) -> Executor:
    @tool(effect=Effect.WRITE, aliases=("Bash",))
    async def bash(command: str) -> str:
        """Leave a mark, to see whether it ran."""
        (tmp_path / "ran").touch()
        return "ran"

    context = HookContext(str(tmp_path))
    return Executor(Registry(bash), AllowEverything(), hooks=ShellHooks(hooks, context).call_hooks())


async def test_broken_guard_denies_and_names_the_hook(tmp_path: Path) -> None:
    hooks, _ = parse_shell_hooks(
        {"PreToolUse": [{"matcher": "Bash", "hooks": [{"type": "agent", "prompt": "x"}]}]},
        written_in="settings.json",
    )
    outcome = await _executor(tmp_path, *hooks).run("bash", {"command": "x"})
    assert isinstance(outcome, Failed) and not (tmp_path / "ran").exists()
    assert "settings.json" in outcome.text and "type 'agent' cannot be run" in outcome.text


@pytest.mark.parametrize("number", range(len(UNREADABLE)))
async def test_nothing_runs_after_an_unreadable_reply(tmp_path: Path, number: int) -> None:
    (tmp_path / "reply").write_text(UNREADABLE[number])
    outcome = await _executor(tmp_path, ShellHook("PreToolUse", "cat reply")).run("bash", {"command": "x"})
    assert isinstance(outcome, Failed) and not (tmp_path / "ran").exists()


async def test_deny_counts_while_a_daemon_holds_the_output(tmp_path: Path) -> None:
    (tmp_path / "reply").write_text(DENY)
    hook = ShellHook("PreToolUse", "sleep 30 & cat reply")
    outcome = await _executor(tmp_path, hook).run("bash", {"command": "x"})
    assert isinstance(outcome, Failed) and not (tmp_path / "ran").exists()


async def test_arguments_form_runs_without_a_shell(tmp_path: Path) -> None:
    (tmp_path / "guard").write_text('#!/bin/sh\nprintf "%s\\n" "$@" > heard\necho no >&2\nexit 2\n')
    (tmp_path / "guard").chmod(0o755)
    hooks, problems = parse_shell_hooks(
        {"PreToolUse": [{"hooks": [{"command": "${CLAUDE_PROJECT_DIR}/guard", "args": ["a b", "$(touch x)"]}]}]}
    )
    outcome = await _executor(tmp_path, *hooks).run("bash", {"command": "x"})
    assert isinstance(outcome, Failed) and outcome.text == "no" and not problems
    assert (tmp_path / "heard").read_text() == "a b\n$(touch x)\n" and not (tmp_path / "x").exists()


async def test_arguments_form_that_cannot_start_denies(tmp_path: Path) -> None:
    hook = ShellHook("PreToolUse", "no-such-program", arguments=("x",))
    outcome = await _executor(tmp_path, hook).run("bash", {"command": "x"})
    assert isinstance(outcome, Failed) and "could not start" in outcome.text and not (tmp_path / "ran").exists()


async def test_daemon_of_a_hook_ends_with_it(tmp_path: Path) -> None:
    daemon = "setsid sh -c 'echo $$ > pid.new; mv pid.new pid; exec sleep 60' >/dev/null 2>&1 &"
    hook = ShellHook("PreToolUse", f"{daemon} while [ ! -e pid ]; do sleep 0.01; done")
    assert isinstance(await _executor(tmp_path, hook).run("bash", {"command": "x"}), Completed)
    with pytest.raises(ProcessLookupError):
        os.kill(int((tmp_path / "pid").read_text()), 0)


async def test_cancelled_hook_leaves_no_process(tmp_path: Path) -> None:
    hook = ShellHook("PreToolUse", "echo $$ > pid.new; mv pid.new pid; sleep 60")
    task = asyncio.ensure_future(_executor(tmp_path, hook).run("bash", {"command": "x"}))
    while not (tmp_path / "pid").exists():  # noqa: ASYNC110 - another process makes the file
        await asyncio.sleep(0.01)
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)
    with pytest.raises(ProcessLookupError):
        os.kill(int((tmp_path / "pid").read_text()), 0)


async def test_hooks_do_not_get_credentials(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SOME_API_KEY", "s3cret")
    monkeypatch.setenv("OTHER_TOKEN", "passed")
    context = HookContext(str(tmp_path), passed=("OTHER_*",))
    hooks = ShellHooks([ShellHook("UserPromptSubmit", "echo $SOME_API_KEY,$OTHER_TOKEN,${PATH:+path}")], context)
    assert (await hooks.fire("UserPromptSubmit", {})).context == ",passed,path"


async def test_bash_of_the_working_folder_is_not_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "bash").write_text("#!/bin/sh\ntouch evil\n")
    (tmp_path / "bash").chmod(0o755)
    monkeypatch.setenv("PATH", f":.:{os.environ['PATH']}:")
    hook = ShellHook("PreToolUse", "exit 2")
    assert isinstance(await _executor(tmp_path, hook).run("bash", {"command": "x"}), Failed)
    assert not (tmp_path / "evil").exists()
