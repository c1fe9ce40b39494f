"""Hooks around a conversation: what they receive, what they may decide, and what they may not."""

import asyncio
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from callwright import Annotations, Answers, Completed, Effect, Failed, Question, SchemaTool, ToolCall, ToolSpec, Turn
from callwright.agent.compaction import Compaction
from callwright.agent.results import AgentEvent, Done, Paused, Stopped
from callwright.app.app import App
from callwright.app.assembly import assemble
from callwright.app.conversation import Conversation
from callwright.app.hook_settings import read_hooks
from callwright.app.locations import Locations
from callwright.app.permissions import Conditions, condition_fault
from callwright.app.run_context import RunOptions
from callwright.app.settings import load_settings
from callwright.core.errors import ApprovalRequired
from callwright.core.json import JsonObject
from callwright.core.messages import ToolMessage
from callwright.hooks.base import PendingCall
from callwright.hooks.shell.config import ShellHook
from callwright.policy.paths import PathContext
from callwright.testing.fakes import ScriptedProvider
from callwright.tool.base import Cancellation
from callwright.tool.schema_tool import SchemaInvocation

NOTE = "cat >> heard.jsonl"
TOUCH = ToolCall("1", "bash", {"command": "touch a"})


@pytest.fixture
def locations(tmp_path: Path) -> Locations:
    (tmp_path / "project").mkdir()
    (tmp_path / "home").mkdir()
    found = Locations.of(tmp_path / "project", home=tmp_path / "home")
    return Locations(found.home, found.project, found.cwd, tmp_path / "managed.json")


def app_with(
    locations: Locations, hooks: dict[str, Any], *replies: Any, options: RunOptions | None = None, **more: Any
) -> App:
    content = {"hooks": {event: [{"hooks": _hooks(given)}] for event, given in hooks.items()}, **more}
    settings = load_settings(locations, trusted=False, given=[json.dumps(content)])
    return assemble(ScriptedProvider(*replies), settings, locations, options or RunOptions(keep=False))


def _hooks(given: Any) -> list[Any]:
    return [{"command": given} if isinstance(given, str) else given]


def says(content: object) -> str:
    return f"cat > /dev/null; echo '{json.dumps(content)}'"


def answering(behavior: str, **more: object) -> str:
    return says({"hookSpecificOutput": {"decision": {"behavior": behavior, **more}}})


def heard(locations: Locations) -> list[dict[str, Any]]:
    file = locations.cwd / "heard.jsonl"
    return [json.loads(line) for line in file.read_text().splitlines()] if file.exists() else []


async def said(app: App, prompt: str = "go", **more: Any) -> list[AgentEvent]:
    return [event async for event in Conversation(app, "s", **more).say(prompt)]


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("git push", True),
        ("sudo git push", True),
        ("true && FOO=1 git push", True),
        ("bash -c 'git push'", True),
        ("$UNKNOWN push", True),
        ("ls -l", False),
        ("echo git push", False),
    ],
)
def test_condition_matches_any_command_that_might_run(locations: Locations, line: str, expected: bool) -> None:
    app = app_with(locations, {})
    tool = app.registry.get("bash")
    assert tool is not None
    pending = PendingCall(ToolCall("1", "bash"), tool.spec, {"command": line})
    assert Conditions(app.registry, PathContext.of(locations.cwd))("Bash(git push *)", pending) is expected


def test_condition_on_an_unparsable_call_runs_the_hook(locations: Locations) -> None:
    app = app_with(locations, {})
    tool = app.registry.get("bash")
    assert tool is not None
    pending = PendingCall(ToolCall("1", "bash"), tool.spec, {"comand": "ls"})
    assert Conditions(app.registry, PathContext.of(locations.cwd))("Bash(git *)", pending)


async def test_condition_matches_paths_and_invalid_one_always_runs(locations: Locations) -> None:
    refuse = {"command": "echo no >&2; exit 2", "if": "Edit(*.py)"}
    executor = app_with(locations, {"PreToolUse": refuse}, options=RunOptions(mode="auto", keep=False)).executor
    assert isinstance(await executor.run("write", {"path": "a.txt", "content": "x"}), Completed)
    assert isinstance(await executor.run("write", {"path": "a.py", "content": "x"}), Failed)
    app = app_with(locations, {"PreToolUse": {**refuse, "if": "Bash(git"}})
    assert "runs for every call" in app.problems[-1] and "--settings:1" in app.problems[-1]
    assert isinstance(await app.executor.run("read", {"path": "a.txt"}), Failed)
    assert condition_fault(ShellHook("PreToolUse", "x", condition="Bash(git *)")) == ""


async def test_hooks_get_the_transcript_of_a_stored_session(locations: Locations) -> None:
    copy = 'python3 -c \'import json,shutil,sys; shutil.copy(json.load(sys.stdin)["transcript_path"], "copied")\''
    app = app_with(locations, {"Stop": copy}, "hello yourself", options=RunOptions())
    assert isinstance((await said(app, "hello"))[-1], Done)
    app.close()
    kinds = [json.loads(line)["kind"] for line in (locations.cwd / "copied").read_text().splitlines()]
    assert kinds == ["undo_point", "user", "assistant"]
    passing = app_with(locations, {"Stop": NOTE}, "hi")
    await said(passing)
    assert "transcript_path" not in heard(locations)[-1]


async def test_hooks_answer_the_questions_of_a_paused_run(locations: Locations) -> None:
    app = app_with(locations, {"PermissionRequest": answering("allow")}, TOUCH, "done")
    assert isinstance((await said(app))[-1], Done) and (locations.cwd / "a").exists()
    app = app_with(locations, {"PermissionRequest": answering("deny", message="not today")}, TOUCH, "a pity")
    events = await said(app)
    assert isinstance(events[-1], Done)
    (_, _, outcomes, _) = await app.agent.messages("s")
    assert isinstance(outcomes, ToolMessage) and "not today" in outcomes.outcomes[0].text


async def test_hooks_are_asked_about_each_call_of_a_model_that_repeats_ids(locations: Locations) -> None:
    again = ToolCall(TOUCH.id, "bash", {"command": "touch b"})
    app = app_with(locations, {"PermissionRequest": answering("allow")}, TOUCH, again, TOUCH, "done")
    assert isinstance((await said(app))[-1], Done)
    assert (locations.cwd / "b").exists()


@pytest.mark.parametrize(
    ("line", "permissions"),
    [("touch a", {"ask": ["Bash(touch *)"]}), ("cat ~/.ssh/id_rsa", {}), ("touch .git/config", {})],
)
async def test_hook_approval_does_not_override_rules_or_guards(
    locations: Locations, line: str, permissions: object
) -> None:
    call = ToolCall("1", "bash", {"command": line})
    hooks = {"PermissionRequest": answering("allow"), "Notification": NOTE}
    app = app_with(locations, hooks, call, "done", permissions=permissions)
    assert isinstance((await said(app))[-1], Paused)
    assert heard(locations)[-1]["notification_type"] == "permission_prompt"


async def test_hook_approval_with_changed_arguments_is_judged_again(locations: Locations) -> None:
    other = answering("allow", updatedInput={"command": "touch b"})
    app = app_with(locations, {"PermissionRequest": other}, TOUCH, "done")
    await said(app)
    assert (locations.cwd / "b").exists() and not (locations.cwd / "a").exists()
    hostile = answering("allow", updatedInput={"command": "cat ~/.ssh/id_rsa"})
    app = app_with(locations, {"PermissionRequest": hostile}, TOUCH, "done")
    assert isinstance((await said(app))[-1], Paused)


@pytest.mark.parametrize("user", [True, False])
@pytest.mark.parametrize(("changed", "made"), [({}, "a"), ({"updatedInput": {"command": "touch b"}}, "b")])
async def test_hooks_answer_the_questions_of_sub_agents(
    locations: Locations, changed: dict[str, object], made: str, *, user: bool
) -> None:
    file = locations.home / "agents" / "fixer.md"
    file.parent.mkdir()
    file.write_text("---\nname: fixer\ndescription: Fixes.\n---\nFix it.\n")
    task = ToolCall("t", "task", {"agent": "fixer", "prompt": "x"})
    hook = answering("allow", **changed).replace("cat > /dev/null", NOTE)
    app = app_with(locations, {"PermissionRequest": hook}, task, TOUCH, "inner done", "done")
    asked: list[Question] = []

    async def person(questions: Sequence[Question]) -> Answers:
        asked.extend(questions)
        return Answers().decline(questions[0])

    app.agent.ask = person if user else None
    assert isinstance((await said(app))[-1], Done)
    assert not asked and (locations.cwd / made).exists()
    (payload,) = heard(locations)
    assert (payload["session_id"], payload["agent_id"], payload["agent_type"]) == ("s", "t", "fixer")


async def test_hooks_hear_a_question_once_from_the_agent_that_asks(locations: Locations) -> None:
    file = locations.home / "agents" / "fixer.md"
    file.parent.mkdir()
    file.write_text("---\nname: fixer\ndescription: Fixes.\n---\nFix it.\n")
    skill = locations.project / ".claude" / "skills" / "work" / "SKILL.md"
    skill.parent.mkdir(parents=True)
    skill.write_text("---\nname: work\ndescription: Works.\ncontext: fork\nagent: general-purpose\n---\nWork.\n")
    outer, inner = ToolCall("o", "skill", {"name": "work"}), ToolCall("t", "task", {"agent": "fixer", "prompt": "x"})
    say = json.dumps({"hookSpecificOutput": {"decision": {"behavior": "allow"}}})
    for_outer = f"tee -a heard.jsonl | grep -q '\"agent_type\": *\"general-purpose\"' && echo '{say}' || true"
    hooks = json.dumps({"hooks": {"PermissionRequest": [{"hooks": _hooks(for_outer)}]}})
    replies = ScriptedProvider(outer, inner, TOUCH, "done", "done", "done")
    app = assemble(replies, load_settings(locations, trusted=True, given=[hooks]), locations, RunOptions(keep=False))
    asked: list[str] = []

    async def person(questions: Sequence[Question]) -> Answers:
        asked.extend(question.origin for question in questions)
        return Answers().decline(questions[0])

    app.agent.ask = person
    assert isinstance((await said(app))[-1], Done)
    assert asked == ["the sub-agent work\nthe sub-agent fixer"] and not (locations.cwd / "a").exists()
    assert [payload["agent_type"] for payload in heard(locations)] == ["fixer"]


async def test_hook_approval_does_not_answer_another_hook(locations: Locations) -> None:
    wondering = says({"hookSpecificOutput": {"permissionDecision": "ask"}})
    app = app_with(locations, {"PreToolUse": wondering, "PermissionRequest": answering("allow")}, TOUCH, "done")
    assert isinstance((await said(app))[-1], Paused)


async def test_user_is_asked_what_hooks_leave_open(locations: Locations) -> None:
    calls = [ToolCall(name, "bash", {"command": f"touch {name}"}) for name in "ab"]
    hook = {"command": answering("allow"), "if": "Bash(touch a)"}
    app = app_with(locations, {"PermissionRequest": hook}, calls, "done")
    asked: list[str] = []

    async def person(questions: Sequence[Question]) -> Answers:
        asked.extend(question.summary for question in questions)
        return Answers.approving(questions)

    app.agent.ask = person
    assert isinstance((await said(app))[-1], Done)
    assert asked == ["Allow bash: touch b?"] and (locations.cwd / "a").exists()


class Form(SchemaTool):
    """Puts a server's question, as the MCP client does."""

    def bind(self, arguments: JsonObject | str | bytes) -> SchemaInvocation:
        bound = super().bind(arguments)
        if "answer" not in bound.arguments:
            raise ApprovalRequired("the server asks", bound)
        return bound


async def test_hook_can_answer_an_mcp_elicitation(locations: Locations) -> None:
    fill = says({"hookSpecificOutput": {"action": "accept", "content": {"name": "Ann"}}})
    asking = {"Elicitation": f"{NOTE}; {fill}", "ElicitationResult": NOTE, "PreToolUse": "exit 2"}
    app = app_with(locations, asking)
    schema: JsonObject = {"type": "object"}
    reads, marked = Annotations(Effect.READ), {"elicits": True, "server": "x"}
    spec = ToolSpec("mcp__x__answer", "Asks.", schema, annotations=reads, metadata=marked)

    async def give(arguments: Any) -> object:
        return {"answer": arguments["answer"]}

    app.registry.add(Form(spec, give))
    conversation = Conversation(app, "s")

    async def person(questions: Sequence[Question]) -> Answers:
        raise AssertionError("the hook has answered")

    app.agent.ask = person
    conversation._install_hooks()  # pyright: ignore[reportPrivateUsage] - a call without a model, as a server's is
    fields: JsonObject = {"message": "who?", "fields": {"type": "object", "properties": {"name": {"type": "string"}}}}
    turn = Turn(session_id="s", ask=app.agent.ask)
    outcome = await app.executor.run("mcp__x__answer", fields, turn=turn)
    assert isinstance(outcome, Completed) and outcome.output.structured == {"answer": {"name": "Ann"}}
    asked, answered = heard(locations)
    assert (asked["mcp_server_name"], asked["message"], asked["mode"]) == ("x", "who?", "form")
    assert (answered["action"], answered["content"]) == ("accept", {"name": "Ann"})


@pytest.mark.parametrize("blocked", [False, True])
async def test_hooks_run_around_compaction_and_can_deny_it(locations: Locations, blocked: bool) -> None:
    hooks = {
        "PreCompact": f"{NOTE}; {'exit 2' if blocked else 'true'}",
        "PostCompact": NOTE,
        "SessionStart": "grep -q '\"source\": \"compact\"' && echo 'read the plan again'; true",
    }
    long = "x" * 4000
    app = app_with(locations, hooks, long, *([] if blocked else ["the summary"]), "second", "third")
    app.agent.compaction = Compaction(at_tokens=500, keep_tokens=10)
    conversation = Conversation(app, "s")
    for prompt in ("one", "two", "three"):
        async for event in conversation.say(prompt):
            if prompt == "two" and isinstance(event, Done):
                app.agent.compaction = Compaction()
    events = [(entry["hook_event_name"], entry["trigger"]) for entry in heard(locations)]
    assert events == [("PreCompact", "auto")] + ([] if blocked else [("PostCompact", "auto")])
    messages = await app.agent.messages("s")
    texts = " ".join(str(getattr(message, "content", "")) for message in messages)
    assert ("the summary" in texts) is not blocked and ("read the plan again" in texts) is not blocked
    if not blocked:
        assert heard(locations)[-1]["compact_summary"] == "the summary"


async def test_user_is_told_of_a_compaction_without_hooks(locations: Locations) -> None:
    app = app_with(locations, {}, "x" * 4000, "the summary", "second")
    app.agent.compaction = Compaction(at_tokens=500, keep_tokens=10)
    told: list[str] = []
    conversation = Conversation(app, "s", tell=told.append)
    for prompt in ("one", "two"):
        async for _ in conversation.say(prompt):
            pass
    assert told == ["the conversation is long: the model summarises its start", "the model goes on with the summary"]


async def test_hooks_run_at_events_of_the_conversation(locations: Locations) -> None:
    (locations.project / "AGENTS.md").write_text("be kind, see @more.md and `@code.md`")
    for name in ("more.md", "code.md"):
        (locations.project / name).write_text("and brief")
    events = ("InstructionsLoaded", "SessionStart", "ConfigChange", "UserPromptSubmit", "SessionEnd", "StopFailure")
    app = app_with(locations, dict.fromkeys(events, NOTE), "hello")
    conversation = Conversation(app, "s", "resume")
    async for _ in conversation.say("one"):
        pass
    locations.user_settings.write_text("{}")
    result = [event async for event in conversation.say("two")][-1]
    await conversation.end("clear")
    assert isinstance(result, Stopped) and result.kind == "provider"  # the script is at its end
    told = [(entry["hook_event_name"], entry) for entry in heard(locations)]
    assert [name for name, _ in told] == [
        *("InstructionsLoaded", "InstructionsLoaded", "SessionStart", "UserPromptSubmit"),
        *("ConfigChange", "UserPromptSubmit", "StopFailure", "SessionEnd"),
    ]
    by_name = dict(told)
    assert by_name["InstructionsLoaded"]["load_reason"] == "include"
    assert by_name["InstructionsLoaded"]["file_path"] == str(locations.project / "more.md")
    assert by_name["SessionStart"]["source"] == "resume"
    assert by_name["ConfigChange"]["source"] == "user_settings"
    assert by_name["SessionEnd"]["reason"] == "clear" and by_name["StopFailure"]["error"] == "unknown"


@pytest.mark.parametrize(
    ("stop", "texts"),
    [
        ({"decision": "block"}, ["[hook] a Stop hook asks you to continue"]),
        ({"decision": "block", "continue": False, "reason": "more"}, []),
        ({"decision": "approve"}, []),
    ],
)
async def test_stop_hook_continues_the_run_unless_it_halts(
    locations: Locations, stop: object, texts: list[str]
) -> None:
    once = f"grep -q '\"stop_hook_active\": true' && exit 0; echo '{json.dumps(stop)}'"
    app = app_with(locations, {"Stop": once}, "one", "two")
    assert isinstance((await said(app))[-1], Done)
    contents = [getattr(message, "content", None) for message in await app.agent.messages("s")]
    assert [text for text in contents if text] == ["go", *texts]


async def test_reason_of_a_stop_hook_calls_no_skill(locations: Locations) -> None:
    folder = locations.project / ".callwright" / "skills" / "deploy"
    folder.mkdir(parents=True)
    (folder / "SKILL.md").write_text("---\nname: deploy\ndescription: Deploy.\n---\nDeploy $ARGUMENTS now.\n")
    once = "grep -q '\"stop_hook_active\": true' && exit 0; echo '/deploy has not run' >&2; exit 2"
    app = app_with(locations, {"Stop": once}, "one", "two")
    assert isinstance((await said(app))[-1], Done)
    assert [getattr(each, "content", "") for each in await app.agent.messages("s")][2] == "[hook] /deploy has not run"


@pytest.mark.parametrize("event", ["SessionStart", "ConfigChange", "UserPromptSubmit"])
async def test_hook_before_a_prompt_can_end_the_run(locations: Locations, event: str) -> None:
    app = app_with(locations, {event: says({"continue": False, "stopReason": "closed today"})}, "hi")
    conversation = Conversation(app, "s")
    locations.user_settings.parent.mkdir(parents=True, exist_ok=True)
    locations.user_settings.write_text("{}")
    result = [each async for each in conversation.say("go")][-1]
    assert isinstance(result, Stopped) and result.reason == "closed today"


async def test_context_of_a_session_start_waits_for_a_prompt_that_is_sent(locations: Locations) -> None:
    block = "cat > /dev/null; [ -e seen ] || { touch seen; echo no >&2; exit 2; }"
    app = app_with(locations, {"SessionStart": "echo the house rules", "UserPromptSubmit": block}, "hi")
    conversation = Conversation(app, "s")
    assert isinstance([each async for each in conversation.say("first")][-1], Stopped)
    assert isinstance([each async for each in conversation.say("second")][-1], Done)
    assert getattr((await app.agent.messages("s"))[0], "content", "") == "second\n\n[hook] the house rules"


async def test_context_of_a_halted_session_start_is_given_once(locations: Locations) -> None:
    stop = json.dumps({"continue": False, "hookSpecificOutput": {"additionalContext": "the house rules"}})
    once = f"cat > /dev/null; [ -e seen ] && echo the house rules || {{ touch seen; echo '{stop}'; }}"
    app = app_with(locations, {"SessionStart": once}, "hi")
    conversation = Conversation(app, "s")
    assert isinstance([each async for each in conversation.say("first")][-1], Stopped)
    assert isinstance([each async for each in conversation.say("second")][-1], Done)
    assert getattr((await app.agent.messages("s"))[0], "content", "") == "second\n\n[hook] the house rules"


async def test_hook_that_declines_a_question_can_end_the_run(locations: Locations) -> None:
    app = app_with(locations, {"PermissionRequest": answering("deny", message="no", interrupt=True)}, TOUCH, "never")
    result = (await said(app))[-1]
    assert isinstance(result, Stopped) and result.reason == "no"


@pytest.mark.parametrize("later", ["ls", "touch b"])
async def test_halt_of_a_cancelled_call_ends_no_later_call(locations: Locations, later: str) -> None:
    hook = {"command": answering("deny", message="no", interrupt=True), "if": "Bash(touch a)"}
    other = ToolCall("2", "bash", {"command": "touch b"})
    again = ToolCall(TOUCH.id, "bash", {"command": later})
    app = app_with(locations, {"PermissionRequest": hook}, [TOUCH, other], again, "done")
    conversation, cancellation = Conversation(app, "s"), Cancellation()

    async def leave(questions: Sequence[Question]) -> Answers:
        cancellation.cancel("stop")
        await asyncio.sleep(30)
        return Answers()

    async def decline_all(questions: Sequence[Question]) -> Answers:
        return Answers().decline(questions[0])

    app.agent.ask = leave
    first = [event async for event in conversation.say("go", cancellation=cancellation)][-1]
    assert isinstance(first, Stopped) and first.kind == "cancelled"
    app.agent.ask = decline_all
    assert isinstance([event async for event in conversation.say("again")][-1], Done)


def test_hook_whose_matcher_never_matches_is_named(locations: Locations) -> None:
    matchers = {"Notification": ("idle_prompt", "permission_prompt|idle_prompt", "", "permission.*")}
    matchers |= {"SessionStart": ("startup|resume", "begin"), "SessionEnd": ("logout", "other")}
    hooks = {
        event: [{"matcher": each, "hooks": [{"command": "x"}]} for each in given] for event, given in matchers.items()
    }
    settings = load_settings(locations, trusted=False, given=[json.dumps({"hooks": hooks})])
    _, problems = read_hooks(settings)
    assert [text.partition(" never runs: ")[2] for text in problems] == [
        "the matcher 'idle_prompt' matches no notification_type (permission_prompt)",
        "the matcher 'begin' matches no source (startup, resume, clear, compact)",
        "the matcher 'logout' matches no reason (clear, resume, prompt_input_exit, other)",
    ]


def test_tool_that_a_matcher_misspells_is_named(locations: Locations) -> None:
    matchers = (
        "Bsh",
        "Edit|Wriet",
        "KillShel",
        "Bash|mcp__x__y|delete",
        "NotebookEdit|LSP|cat|CronDelete|TaskList",
        "Bsh.*",
        "*",
    )
    hooks = {"PreToolUse": [{"matcher": each, "hooks": [{"command": f"check {each}"}]} for each in matchers]}
    settings = load_settings(locations, trusted=False, given=[json.dumps({"hooks": hooks})])
    _, problems = read_hooks(settings)
    assert [text.partition(": there is ")[2] for text in problems] == [
        "no tool 'bsh' for its matcher 'Bsh'; did you mean Bash?",
        "no tool 'wriet' for its matcher 'Edit|Wriet'; did you mean Write?",
        "no tool 'killshel' for its matcher 'KillShel'; did you mean KillShell?",
    ]


async def test_managed_hooks_cannot_be_disabled(locations: Locations) -> None:
    locations.managed.write_text(json.dumps({"hooks": {"Stop": [{"hooks": [{"command": "touch managed"}]}]}}))
    app = app_with(locations, {"Stop": "touch own"}, "hi", disableAllHooks=True)
    await said(app)
    assert (locations.cwd / "managed").exists() and not (locations.cwd / "own").exists()


async def test_cancelled_prompt_ends_its_hooks_and_is_not_sent(locations: Locations) -> None:
    slow = "cat > /dev/null; if [ ! -e begun ]; then touch begun; sleep 600; fi"
    app = app_with(locations, {"SessionStart": NOTE, "UserPromptSubmit": slow}, "the only answer")
    conversation, cancellation = Conversation(app, "s"), Cancellation()

    async def cancel_during_hook() -> None:
        while not (locations.cwd / "begun").exists():  # noqa: ASYNC110 - another process makes it
            await asyncio.sleep(0.01)
        cancellation.cancel("enough")

    cancelling = asyncio.create_task(cancel_during_hook())
    events = [event async for event in conversation.say("first", cancellation=cancellation)]
    await cancelling
    assert [(event.kind, event.reason) for event in events if isinstance(event, Stopped)] == [("cancelled", "enough")]
    assert len(events) == 1
    later = [event async for event in conversation.say("second", cancellation=Cancellation())]
    assert isinstance(later[-1], Done) and later[-1].text == "the only answer"
    assert [each["hook_event_name"] for each in heard(locations)] == ["SessionStart"]


async def test_task_that_is_cancelled_while_a_prompt_is_prepared_ends(locations: Locations) -> None:
    app = app_with(locations, {"UserPromptSubmit": "touch begun; sleep 600"}, "never sent")
    saying = asyncio.create_task(said(app))
    while not (locations.cwd / "begun").exists():  # noqa: ASYNC110 - another process makes it
        await asyncio.sleep(0.01)
    saying.cancel()
    with pytest.raises(asyncio.CancelledError):
        await saying
