"""Every event hooks can be written for: who is heard, what a no does, and what cannot be mistaken for a yes."""

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, strategies as st
from tests.waiting import LONG_SECONDS

from callwright import Agent, Completed, Effect, Executor, Failed, Registry, ToolCall, tool
from callwright.agent.results import Done, Stopped
from callwright.core.content import Output
from callwright.core.errors import Denied, UsageError
from callwright.core.messages import ToolMessage, UserMessage
from callwright.core.spec import ToolSpec
from callwright.hooks.base import Hook, InnerAgent, PendingCall, Rewrite
from callwright.hooks.shell.compat import apply_elicitation_reply
from callwright.hooks.shell.config import EVENTS, UNSUPPORTED_EVENTS, ShellHook, parse_shell_hooks
from callwright.hooks.shell.dispatch import HookContext
from callwright.hooks.shell.hooks import ShellHooks
from callwright.hooks.shell.process import HookRun
from callwright.hooks.shell.reply import HookReply, merge_replies, read_reply
from callwright.policy import AllowEverything, Policies, rules_of
from callwright.policy.rules.matching import Rules
from callwright.sessions import MemoryStore
from callwright.testing.fakes import ScriptedHook, ScriptedProvider

Fire = Callable[..., ShellHooks]
CALL = PendingCall(
    ToolCall("1", "bash"), ToolSpec("bash", "Runs.", {"type": "object"}, aliases=("Bash",)), {"command": "x"}
)


@pytest.fixture
def reports() -> list[str]:
    return []


@pytest.fixture
def hooked(tmp_path: Path, reports: list[str]) -> Fire:
    def make(*hooks: ShellHook, **more: Any) -> ShellHooks:
        return ShellHooks(hooks, HookContext(str(tmp_path), report=reports.append, **more))

    return make


@pytest.mark.parametrize(("word", "blocks"), [("block", True), ("continue", False)])
def test_failure_word_of_another_agent_is_read(word: str, blocks: bool) -> None:
    (hook,), problems = parse_shell_hooks({"PostToolUse": [{"hooks": [{"command": "x", "onFailure": word}]}]})
    assert hook.blocks_on_error is blocks and not problems
    (broken,), (problem,) = parse_shell_hooks({"PreToolUse": [{"hooks": [{"command": "x", "onFailure": "warn"}]}]})
    assert broken.broken and "'warn'" in problem


def test_hooks_that_are_no_object_are_refused() -> None:
    wrong: Any = [{"command": "x"}]
    with pytest.raises(UsageError, match=r"expected Mapping as hooks, got .*; write \{"):
        parse_shell_hooks(wrong)


def test_every_standard_event_is_listed() -> None:
    assert len(EVENTS) + len(UNSUPPORTED_EVENTS) == 33 and not set(EVENTS) & set(UNSUPPORTED_EVENTS)
    hooks, problems = parse_shell_hooks(
        {event: [{"hooks": [{"command": "x"}]}] for event in (*EVENTS, *UNSUPPORTED_EVENTS)}
    )
    assert [hook.event for hook in hooks] == list(EVENTS)
    assert len(problems) == len(UNSUPPORTED_EVENTS) and all("never run" in problem for problem in problems)


@pytest.mark.parametrize(
    ("events", "complaint"),
    [
        ({"PreTooluse": []}, "there is no such event, so what it guards is denied; did you mean PreToolUse?"),
        ({"Sessionstart": []}, "there is no such event, so nothing runs; did you mean SessionStart?"),
        ({"Teatime": []}, "there is no such event, so nothing runs; the events are SessionStart"),
        ({"Stop": [{"hooks": [{"type": "agent", "prompt": "x"}]}]}, "type 'agent' cannot be run"),
        ({"Stop": [{"matcher": "Bash", "hooks": [{"command": "x"}]}]}, "has no matcher"),
        ({"Stop": [{"hooks": [{"command": "x", "if": "Bash(ls)"}]}]}, "the hook never runs"),
        ({"PreToolUse": [{"hooks": [{"command": "x", "onEror": "block"}]}]}, "did you mean 'onError'?"),
        ({"PreToolUse": [{"match": "Bash", "hooks": [{"command": "x"}]}]}, "did you mean 'matcher'?"),
        ({"PreToolUse": [{"hooks": [{"command": "x", "async": True, "onError": "block"}]}]}, "stops nothing"),
    ],
)
def test_hook_problems_name_the_line(events: dict[str, Any], complaint: str) -> None:
    asked: list[tuple[str | int, ...]] = []

    def line_of(path: Any) -> int:
        asked.append(tuple(path))
        return 7

    _, (problem,) = parse_shell_hooks(events, written_in="file", line_of=line_of)
    assert problem.startswith(f"file:7: {next(iter(events))}: ") and complaint in problem
    assert asked[0][0] == next(iter(events))


@pytest.mark.parametrize("event", EVENTS)
def test_exit_code_2_blocks_or_becomes_a_message(event: str) -> None:
    reply = read_reply(ShellHook(event, "x"), HookRun(2, '{"decision": "approve"}', "enough"))
    if EVENTS[event].blocks:
        assert (reply.decision, reply.reason) == ("deny", "enough")
    else:
        assert reply.decision == "" and "enough" in reply.message


NOT_A_YES = [
    HookRun(problem="did not end within 1 s and was stopped"),
    HookRun(problem="could not start: there is no such command"),
    HookRun(1, '{"hookSpecificOutput": {"permissionDecision": "allow"}}'),
    HookRun(0, '{"hookSpecificOutput": {"permissionDecision": "perhaps"}}'),
    HookRun(0, '{"hookSpecificOutput": {"permissionDecision": "allow"}'),
]


@pytest.mark.parametrize("ran", NOT_A_YES)
def test_failing_guard_denies_unless_told_to_proceed(ran: HookRun) -> None:
    for blocks in (None, True):
        reply = read_reply(ShellHook("PreToolUse", "x", blocks_on_error=blocks), ran)
        assert reply.decision == "deny" and reply.arguments is None and reply.error
    reply = read_reply(ShellHook("PreToolUse", "x", blocks_on_error=False), ran)
    assert reply.decision == "" and reply.arguments is None and reply.error


@pytest.mark.parametrize("word", ["deny", "ask"])
def test_failing_hook_may_deny_but_not_rewrite(word: str) -> None:
    said = {"hookSpecificOutput": {"permissionDecision": word, "updatedInput": {"command": "y"}}}
    reply = read_reply(ShellHook("PreToolUse", "x", blocks_on_error=False), HookRun(1, json.dumps(said)))
    assert reply.decision == word and reply.arguments is None and reply.error


WORDS = st.sampled_from(["", "allow", "ask", "deny"])


@given(st.lists(WORDS, max_size=6).flatmap(lambda words: st.tuples(st.just(words), st.permutations(words))))
def test_strictest_decision_wins_in_any_order(words: tuple[list[Any], list[Any]]) -> None:
    one, other = (merge_replies([HookReply(word) for word in order]).decision for order in words)
    expected = next((word for word in ("deny", "ask", "allow") if word in words[0]), "")
    assert one == other == expected


def test_allow_counts_for_the_arguments_its_hook_saw() -> None:
    rewrite = HookReply(arguments={"command": "rm x"})
    for order in ([HookReply("allow"), rewrite], [rewrite, HookReply("allow")]):
        merged = merge_replies(order)
        assert merged.decision == "" and merged.arguments == {"command": "rm x"}
    assert merge_replies([rewrite, HookReply("allow", arguments={"command": "ls"})]).decision == "allow"
    assert merge_replies([HookReply("deny"), rewrite]).decision == "deny"


async def test_matchers_use_the_field_of_their_event(hooked: Fire) -> None:
    hooks = hooked(ShellHook("SessionStart", "echo woken", "resume|clear"))
    assert (await hooks.fire("SessionStart", {"source": "resume"})).context == "woken"
    assert (await hooks.fire("SessionStart", {"source": "startup"})).context == ""


async def test_conditions_apply_to_call_events_only(hooked: Fire) -> None:
    heard: list[str] = []

    def applies(condition: str, pending: PendingCall) -> bool:
        heard.append(condition)
        return condition == "Bash(git *)"

    no = "echo no >&2; exit 2"
    hooks = hooked(ShellHook("PreToolUse", no, condition="Bash(git *)"), applies=applies)
    assert (await hooks.fire("PreToolUse", {}, pending=CALL)).decision == "deny"
    hooks = hooked(ShellHook("PreToolUse", no, condition="Bash(npm *)"), applies=applies)
    assert (await hooks.fire("PreToolUse", {}, pending=CALL)).decision == ""
    hooks = hooked(ShellHook("Stop", no, condition="Bash(git *)"), applies=applies)
    assert (await hooks.fire("Stop", {})).decision == ""
    hooks = hooked(ShellHook("UserPromptSubmit", no, condition="Bash(npm *)"), applies=applies)
    assert (await hooks.fire("UserPromptSubmit", {"prompt": "x"})).decision == "deny"  # in doubt a guard runs
    assert heard == ["Bash(git *)", "Bash(npm *)"]


async def test_duplicate_command_runs_once_as_the_stricter(hooked: Fire, tmp_path: Path) -> None:
    command = f"echo x >> {tmp_path}/count; exit 1"
    files = [ShellHook("PreToolUse", command, blocks_on_error=place == "b", written_in=place) for place in "abc"]
    assert (await hooked(*files).fire("PreToolUse", {}, pending=CALL)).decision == "deny"
    assert (tmp_path / "count").read_text() == "x\n"


@pytest.mark.parametrize("hurried_first", [True, False])
async def test_shorter_duplicate_does_not_cut_a_guard_short(hooked: Fire, hurried_first: bool) -> None:
    guard = ShellHook("PreToolUse", "sleep 0.02; echo no >&2; exit 2", written_in="the administrator's file")
    hurried = replace(guard, seconds=0.001, written_in="a repository")
    entries = (hurried, guard) if hurried_first else (guard, hurried)
    assert (await hooked(*entries).fire("PreToolUse", {}, pending=CALL)).decision == "deny"


async def test_async_hook_decides_nothing_and_adds_context_later(hooked: Fire, reports: list[str]) -> None:
    said = {"hookSpecificOutput": {"permissionDecision": "deny", "additionalContext": "seen"}, "systemMessage": "hi"}
    hooks = hooked(
        ShellHook("PreToolUse", f"cat >/dev/null; echo '{json.dumps(said)}'", background=True),
        ShellHook("PreToolUse", "exit 2", background=True),
    )
    assert await hooks.fire("PreToolUse", {}, pending=CALL, session_id="s") == HookReply()
    await hooks.aclose(seconds=LONG_SECONDS)
    assert hooks.take_context("s") == "seen" and hooks.take_context("s") == ""
    assert reports == ["hi"]


async def test_async_hooks_end_on_close(hooked: Fire, tmp_path: Path) -> None:
    hooks = hooked(ShellHook("PreToolUse", f"sleep 30; touch {tmp_path}/late", background=True))
    await hooks.fire("PreToolUse", {}, pending=CALL)
    await hooks.aclose(seconds=0.02)
    processes = Path("/proc").glob("[0-9]*/cmdline")
    assert not any(str(tmp_path).encode() in _read(process) for process in processes)


def _read(file: Path) -> bytes:
    try:
        return file.read_bytes()
    except OSError:  # it has ended meanwhile
        return b""


@tool(effect=Effect.WRITE, aliases=("Bash",), group="shell")
async def bash(command: str) -> str:
    """Pretend to run something."""
    return f"ran {command}"


async def test_permission_denied_gets_the_reason_and_may_retry(hooked: Fire, tmp_path: Path) -> None:
    say = json.dumps({"hookSpecificOutput": {"hookEventName": "PermissionDenied", "retry": True}})
    hooks = hooked(ShellHook("PermissionDenied", f"cat > {tmp_path}/heard; echo '{say}'", "Bash"))
    rules = Policies(Rules(rules_of(deny=["Bash"])), AllowEverything())
    outcome = await Executor(Registry(bash), rules, hooks=hooks.call_hooks()).run("bash", {"command": "x"})
    assert (
        isinstance(outcome, Failed)
        and outcome.error.code == "denied"
        and "[hook] the call may be retried" in outcome.text
    )
    heard = json.loads((tmp_path / "heard").read_text())
    assert heard["hook_event_name"] == "PermissionDenied" and "the rule Bash forbids it" in heard["reason"]


async def test_batch_hook_runs_once_after_the_last_call(hooked: Fire, tmp_path: Path) -> None:
    hooks = hooked(ShellHook("PostToolBatch", f"cat >> {tmp_path}/heard"))
    executor = Executor(Registry(bash), AllowEverything(), hooks=hooks.call_hooks(), observe=[hooks.batches.observe])
    calls = [ToolCall(str(n), name, {"command": "x"}) for n, name in enumerate(("bash", "nonsense", "bash"))]
    await executor.execute(calls)
    (line,) = (tmp_path / "heard").read_text().splitlines()
    assert [entry["tool_use_id"] for entry in json.loads(line)["tool_calls"]] == ["0", "2"]


async def test_batch_forgets_a_call_whose_arguments_a_hook_changed(hooked: Fire) -> None:
    hooks = hooked(ShellHook("PostToolBatch", "true"))
    rewrite = ScriptedHook(Rewrite({"command": "y"}))
    call, observed = ToolCall("1", "bash", {"command": "x"}), hooks.batches
    executor = Executor(Registry(bash), AllowEverything(), hooks=[rewrite], observe=[observed.observe])
    await executor.execute([call])
    assert observed.record_end(call, {}) is None


async def test_batch_hook_that_denies_ends_the_run(hooked: Fire) -> None:
    hooks = hooked(ShellHook("PostToolBatch", "echo enough >&2; exit 2"))
    executor = Executor(Registry(bash), AllowEverything(), hooks=hooks.call_hooks(), observe=[hooks.batches.observe])
    outcome = await executor.run("bash", {"command": "x"})
    assert isinstance(outcome, Failed) and outcome.started and str(outcome.error) == "halted: enough"


async def test_cwd_change_fires_and_hooks_keep_their_folder(hooked: Fire, tmp_path: Path) -> None:
    folder = ["/before"]
    hooks = hooked(ShellHook("CwdChanged", "cat > heard"), folder=lambda: folder[0])
    executor = Executor(Registry(bash), AllowEverything(), hooks=hooks.call_hooks())
    await executor.run("bash", {"command": "ls"})
    assert not (tmp_path / "heard").exists()
    folder[0] = "/after"
    await executor.run("bash", {"command": "cd /after"})
    heard = json.loads((tmp_path / "heard").read_text())
    assert (heard["old_cwd"], heard["new_cwd"], heard["cwd"]) == ("/before", "/after", "/after")


async def test_subagents_fire_start_and_stop(hooked: Fire, tmp_path: Path) -> None:
    note = f"cat >> {tmp_path}/heard"
    hooks = hooked(
        ShellHook("SubagentStart", note, "explore"),
        ShellHook("SubagentStop", f"{note}; echo 'look twice' >&2; exit 2", "explore"),
        ShellHook("SubagentStop", "exit 2", "other"),
    )
    inner = Agent(ScriptedProvider("found")).as_tool("explore", "Looks around.")
    executor = Executor(Registry(inner), AllowEverything(), hooks=hooks.call_hooks())
    outer = Agent(ScriptedProvider(ToolCall("1", "explore", {"prompt": "x"}), "done"), executor=executor)
    await outer.run("go", session="s")
    (_, _, outcomes, _) = await outer.messages("s")
    assert isinstance(outcomes, ToolMessage) and outcomes.outcomes[0].text == "found\n[hook] look twice"
    start, stop = (json.loads(line) for line in (tmp_path / "heard").read_text().splitlines())
    assert (start["hook_event_name"], start["agent_type"], start["agent_id"]) == ("SubagentStart", "explore", "1")
    assert stop["session_id"] == "s" and stop["last_assistant_message"] == "found"


async def test_context_of_a_start_hook_reaches_the_agent(hooked: Fire) -> None:
    given = json.dumps({"hookSpecificOutput": {"additionalContext": "look in src only"}})
    hooks = hooked(ShellHook("SubagentStart", f"cat > /dev/null; echo '{given}'"))
    agent = Agent(ScriptedProvider("found"), sessions=MemoryStore())
    executor = Executor(Registry(agent.as_tool("explore", "Looks.")), AllowEverything(), hooks=hooks.call_hooks())
    await Agent(ScriptedProvider(ToolCall("1", "explore", {"prompt": "x"}), "done"), executor=executor).run("go")
    (inner,) = await agent.sessions.list()
    assert (await agent.messages(inner.session_id))[0] == UserMessage("x\n\n[hook] look in src only")


async def test_events_inside_an_agent_name_it_and_the_session(hooked: Fire, tmp_path: Path) -> None:
    note = f"cat >> {tmp_path}/heard"
    hooks = hooked(*(ShellHook(event, note) for event in ("PreToolUse", "PostToolUse", "SubagentStart")))

    @tool(effect=Effect.READ)
    def look() -> str:
        """Looks."""
        return "seen"

    deep = Agent(ScriptedProvider(ToolCall("3", "look"), "found"), [look]).as_tool("deep", "Digs.")
    inner = Agent(ScriptedProvider(ToolCall("2", "deep", {"prompt": "y"}), "found"), [deep]).as_tool("wide", "Looks.")
    executor = Executor(Registry(inner), AllowEverything(), hooks=hooks.call_hooks())
    outer = Agent(ScriptedProvider(ToolCall("1", "wide", {"prompt": "x"}), "done"), executor=executor)
    await outer.run("go", session="s")
    heard: list[dict[str, Any]] = [json.loads(line) for line in (tmp_path / "heard").read_text().splitlines()]
    assert {each["session_id"] for each in heard} == {"s"}
    fields = ("hook_event_name", "tool_name", "agent_id", "agent_type")
    assert [tuple(each.get(field) for field in fields) for each in heard] == [
        ("PreToolUse", "wide", None, None),
        ("SubagentStart", "wide", "1", "wide"),
        ("PreToolUse", "deep", "1", "wide"),
        ("SubagentStart", "deep", "2", "deep"),
        ("PreToolUse", "look", "2", "deep"),
        ("PostToolUse", "look", "2", "deep"),
        ("PostToolUse", "deep", "1", "wide"),
        ("PostToolUse", "wide", None, None),
    ]


async def test_failed_agent_is_forgotten_with_its_call(hooked: Fire, tmp_path: Path) -> None:
    hooks = hooked(ShellHook("SubagentStart", f"cat > {tmp_path}/heard"))
    began: list[InnerAgent] = []

    class Watch(Hook):
        def agent_began(self, agent: InnerAgent) -> None:
            began.append(agent)

    failing = Agent(ScriptedProvider()).as_tool("explore", "Looks around.")
    executor = Executor(Registry(failing), AllowEverything(), hooks=(*hooks.call_hooks(), Watch()))
    outer = Agent(ScriptedProvider(ToolCall("1", "explore", {"prompt": "x"}), "done"), executor=executor)
    assert isinstance(await outer.run("go", session="s"), Done)
    (inner,) = began
    assert json.loads((tmp_path / "heard").read_text())["session_id"] == "s"
    await hooks.fire("SubagentStart", {}, session_id=inner.own_session_id)
    assert json.loads((tmp_path / "heard").read_text())["session_id"] == inner.own_session_id


async def test_hook_can_keep_an_agent_from_starting(hooked: Fire) -> None:
    stop = json.dumps({"continue": False, "stopReason": "no agents today"})
    hooks = hooked(ShellHook("SubagentStart", f"cat > /dev/null; echo '{stop}'"))
    inner = Agent(ScriptedProvider("found")).as_tool("explore", "Looks around.")
    executor = Executor(Registry(inner), AllowEverything(), hooks=hooks.call_hooks())
    result = await Agent(ScriptedProvider(ToolCall("1", "explore", {"prompt": "x"}), "done"), executor=executor).run(
        "go"
    )
    assert isinstance(result, Stopped) and result.reason == "no agents today"


def test_hook_may_change_an_elicited_answer_not_a_decline() -> None:
    given_answer = Completed(ToolCall("1", "answer"), Output("", {"answer": {"name": "Ann"}}))
    changed = apply_elicitation_reply(given_answer, HookReply("allow", arguments={"name": "Bob"}))
    assert isinstance(changed, Completed) and changed.output.structured == {"answer": {"name": "Bob"}}
    assert isinstance(apply_elicitation_reply(given_answer, HookReply("deny")), Failed)
    declined = Failed(ToolCall("1", "answer"), Denied("no"))
    assert apply_elicitation_reply(declined, HookReply("allow", arguments={"name": "Bob"})) is declined


def test_permission_request_replies_are_parsed() -> None:
    said = {"hookSpecificOutput": {"decision": {"behavior": "deny", "message": "not now", "interrupt": True}}}
    reply = read_reply(ShellHook("PermissionRequest", "x"), HookRun(0, json.dumps(said)))
    assert (reply.decision, reply.reason, reply.halt) == ("deny", "not now", "not now")
    said = {"hookSpecificOutput": {"decision": {"behavior": "allow", "updatedInput": {"command": "ls"}}}}
    reply = read_reply(ShellHook("PermissionRequest", "x"), HookRun(0, json.dumps(said)))
    assert (reply.decision, reply.arguments) == ("allow", {"command": "ls"})
