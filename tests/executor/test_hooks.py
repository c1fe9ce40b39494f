"""Hooks in the executor: verdicts, after-hooks, failures and the built-in hooks."""

import asyncio
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any, cast

import pytest
from pydantic import BaseModel, SecretStr
from tests.executor.conftest import outcomes_behind
from tests.waiting import LONG_SECONDS

from callwright import (
    Allow,
    Annotations,
    AuthRequired,
    Completed,
    Denied,
    Deny,
    Effect,
    Executor,
    Failed,
    Halted,
    Image,
    Interrupted,
    InvalidArguments,
    Limits,
    Outcome,
    Output,
    Policy,
    Registry,
    SchemaTool,
    ToolCall,
    ToolContext,
    ToolFailed,
    ToolSpec,
    Transient,
    Turn,
    TurnCancelled,
    TypedTool,
    UsageError,
    tool,
)
from callwright.core.access import Access, Decision, ReadPath, WritePath
from callwright.hooks import (
    Answer,
    Ask,
    Cache,
    Halt,
    Hook,
    PendingCall,
    PermissionGate,
    Proceed,
    Redact,
    Rewrite,
)
from callwright.policy import AllowEverything, ByMode, Subject, Tier
from callwright.policy.modes import ModeSwitch
from callwright.testing import FakeClock, Recorder, ScriptedHook
from callwright.tool.function import FunctionTool
from callwright.tool.typed import describe
from callwright.toolbox import Bash, BashOutput, Todo

ran: list[str] = []


@pytest.fixture(autouse=True)
def _clean() -> Iterator[None]:
    ran.clear()
    yield


@tool(effect=Effect.READ)
async def look(path: str, depth: int = 1) -> str:
    """Look at a path."""
    ran.append(path)
    return f"saw {path} {depth}"


@tool(effect=Effect.DESTROY)
async def wipe(path: str) -> str:
    """Wipe a path."""
    ran.append(path)
    return "gone"


async def test_hook_that_does_nothing_changes_nothing() -> None:
    outcome = await Executor(Registry(look), hooks=[Hook(), ScriptedHook(Proceed())]).run("look", {"path": "a"})
    assert isinstance(outcome, Completed) and outcome.text == "saw a 1"


async def test_hooks_see_defaults_and_annotations() -> None:
    hook = ScriptedHook()
    await Executor(Registry(look), hooks=[hook]).run("look", '{"path": "a"}')
    assert hook.saw[0].arguments == {"path": "a", "depth": 1}
    assert hook.saw[0].spec.annotations.effect is Effect.READ


async def test_hooks_are_not_asked_about_invalid_calls() -> None:
    hook = ScriptedHook()
    executor = Executor(Registry(look), hooks=[hook])
    unknown, unfit = await executor.run("nothing"), await executor.run("look", {"path": 7})
    assert isinstance(unknown, Failed) and unknown.error.code == "not_found"
    assert isinstance(unfit, Failed) and unfit.error.code == "invalid_input"
    assert not hook.saw


async def test_rewritten_arguments_are_validated_and_passed_on() -> None:
    later = ScriptedHook()
    executor = Executor(Registry(look), hooks=[ScriptedHook(Rewrite({"path": "b", "depth": 2})), later])
    outcome = await executor.run("look", {"path": "a"})
    assert isinstance(outcome, Completed) and outcome.text == "saw b 2"
    assert later.saw[0].arguments == {"path": "b", "depth": 2}
    broken = await Executor(Registry(look), hooks=[ScriptedHook(Rewrite({"path": 7}))]).run("look", {"path": "a"})
    assert isinstance(broken, Failed) and broken.error.code == "invalid_input"


async def test_hook_deny_reaches_the_model_and_nothing_runs() -> None:
    outcome = await Executor(Registry(look), hooks=[ScriptedHook(Deny("not on Sundays"))]).run("look", {"path": "a"})
    assert isinstance(outcome, Failed)
    assert isinstance(outcome.error, Denied)
    assert outcome.text == "not on Sundays"
    assert ran == []


async def test_hook_answer_replaces_the_run() -> None:
    outcome = await Executor(Registry(look), hooks=[ScriptedHook(Answer("cached"))]).run("look", {"path": "a"})
    assert isinstance(outcome, Completed) and outcome.text == "cached"
    assert ran == []


async def test_hook_answer_still_needs_permission() -> None:
    executor = Executor(Registry(wipe), ByMode("plan"), hooks=[ScriptedHook(Answer("cached"))])
    outcome = await executor.run("wipe", {"path": "a"})
    assert isinstance(outcome, Failed) and outcome.error.code == "denied"


async def test_hook_ask_interrupts_and_allow_never_beats_deny() -> None:
    asked = await Executor(Registry(look), hooks=[ScriptedHook(Ask("sure?"))]).run("look", {"path": "a"})
    assert isinstance(asked, Interrupted)
    assert asked.questions[0].reason == "sure?"
    denied = await Executor(Registry(wipe), ByMode("plan"), hooks=[ScriptedHook(Proceed())]).run("wipe", {"path": "a"})
    assert isinstance(denied, Failed)


async def test_halt_gives_every_call_an_outcome() -> None:
    def stop_at_b(pending: PendingCall) -> Halt | None:
        return Halt("budget spent") if pending.arguments["path"] == "b" else None

    executor = Executor(Registry(look, wipe), AllowEverything(), hooks=[ScriptedHook(stop_at_b)])
    outcomes = await executor.execute([ToolCall(p, "look", {"path": p}) for p in "abc"])
    assert [type(o.error) for o in outcomes if isinstance(o, Failed)] == [Halted, Halted, Halted]
    assert ran == []


async def test_hooks_run_in_registration_order() -> None:
    order: list[str] = []

    class Named(Hook):
        def __init__(self, name: str) -> None:
            self.name = name

        def before(self, pending: PendingCall) -> None:
            order.append(f"before {self.name}")

        async def after(self, pending: PendingCall, outcome: object) -> None:
            order.append(f"after {self.name}")

    await Executor(Registry(look), hooks=[Named("1"), Named("2")]).run("look", {"path": "a"})
    assert order == ["before 1", "before 2", "after 1", "after 2"]


async def test_after_sees_all_outcomes_and_may_replace_them() -> None:
    seen = ScriptedHook()
    executor = Executor(Registry(look), hooks=[ScriptedHook(Deny("no")), seen])
    await executor.run("look", {"path": "a"})
    assert isinstance(seen.outcomes[0], Failed)

    def rescue(pending: PendingCall, outcome: object) -> Completed:
        return Completed(pending.call, Output("rescued"))

    @tool(effect=Effect.READ)
    async def fails() -> str:
        """Fail."""
        raise ToolFailed("no")

    outcome = await Executor(Registry(fails), hooks=[ScriptedHook(after=rescue)]).run("fails")
    assert isinstance(outcome, Completed) and outcome.text == "rescued"


async def test_failing_hook_stops_the_call_or_withholds_the_output() -> None:
    def boom(*_: object) -> None:
        raise RuntimeError("hook bug")

    before = await Executor(Registry(look), hooks=[ScriptedHook(boom)]).run("look", {"path": "a"})
    assert isinstance(before, Failed) and not before.started and ran == []
    after = await Executor(Registry(look), hooks=[ScriptedHook(after=boom)]).run("look", {"path": "secret"})
    assert isinstance(after, Failed) and after.started
    assert "saw secret" not in after.text


@pytest.mark.parametrize("returned", [True, False, "refused", Deny, Denied("no"), Deny("no")], ids=repr)
async def test_wrong_hook_verdict_lets_nothing_run(returned: object) -> None:
    class Confused(Hook):
        def before(self, pending: PendingCall) -> Any:
            return returned

    outcome = await Executor(Registry(look), hooks=[Confused()]).run("look", {"path": "a"})
    assert isinstance(outcome, Failed) and isinstance(outcome.error, Denied) and not ran


@pytest.mark.parametrize(
    "returned",
    ["text", True, Interrupted(ToolCall("1", "look")), Completed(ToolCall("1", "look"), cast(Any, "text"))],
    ids=lambda returned: type(returned).__name__,
)
async def test_wrong_after_result_withholds_the_output(returned: object) -> None:
    class Confused(Hook):
        def after(self, pending: PendingCall, outcome: Outcome) -> Any:
            return returned

    outcome = await Executor(Registry(look), hooks=[Confused()]).run("look", {"path": "a"})
    assert isinstance(outcome, Failed) and outcome.started
    assert "withheld" in outcome.text and "saw a" not in outcome.text


async def test_after_cannot_change_the_call_of_an_outcome() -> None:
    class Elsewhere(Hook):
        def after(self, pending: PendingCall, outcome: Outcome) -> Outcome:
            return Completed(ToolCall("another", "look"), Output("replaced"))

    calls = [ToolCall("1", "look", {"path": "a"}), ToolCall("2", "look", {"path": "b"})]
    outcomes = await Executor(Registry(look), hooks=[Elsewhere()]).execute(calls)
    assert [(outcome.call.id, outcome.text) for outcome in outcomes if isinstance(outcome, Completed)] == [
        ("1", "replaced"),
        ("2", "replaced"),
    ]


async def test_hook_answer_may_be_structured_data() -> None:
    hook = ScriptedHook(Answer(cast(Any, {"sum": 5})))
    outcome = await Executor(Registry(look), hooks=[hook]).run("look", {"path": "a"})
    assert isinstance(outcome, Completed) and outcome.output == Output('{"sum":5}', {"sum": 5})


@pytest.mark.parametrize("raised", [SystemExit(3), asyncio.CancelledError()], ids=repr)
async def test_hook_cannot_exit_the_program_or_the_turn(raised: BaseException) -> None:
    class Leaving(Hook):
        async def before(self, pending: PendingCall) -> None:
            raise raised

    class LeavingLate(Hook):
        async def after(self, pending: PendingCall, outcome: Outcome) -> None:
            raise raised

    before = await Executor(Registry(look), hooks=[Leaving()]).run("look", {"path": "a"})
    assert isinstance(before, Failed) and isinstance(before.error, Denied) and not ran
    after = await Executor(Registry(look), hooks=[LeavingLate()]).run("look", {"path": "a"})
    assert isinstance(after, Failed) and after.started and "withheld" in after.text


@pytest.mark.parametrize("hooks", [[Hook], [object()]], ids=["a class", "something else"])
def test_wrong_hook_raises(hooks: list[Any]) -> None:
    with pytest.raises(UsageError, match="expected a Hook"):
        Executor(Registry(look), hooks=hooks)


@pytest.mark.parametrize("count", [1, 2])
async def test_cancel_during_hook_gives_every_call_an_outcome(count: int) -> None:
    thinking = asyncio.Event()

    class Slow(Hook):
        async def before(self, pending: PendingCall) -> None:
            thinking.set()
            await asyncio.sleep(60)

    calls = [ToolCall(str(number), "look", {"path": "a"}) for number in range(count)]
    task = asyncio.create_task(Executor(Registry(look), hooks=[Slow()]).execute(calls))
    await thinking.wait()
    task.cancel()
    with pytest.raises(asyncio.CancelledError) as stopped:
        await task
    assert [o.call.id for o in outcomes_behind(stopped.value) if isinstance(o, Failed) and not o.started] == [
        call.id for call in calls
    ]
    assert not ran


async def test_hook_that_times_out_fails_its_call() -> None:
    class Slow(Hook):
        seconds = 0.01

        async def before(self, pending: PendingCall) -> None:
            await asyncio.sleep(30)

    class SlowAfter(Hook):
        seconds = 0.01

        async def after(self, pending: PendingCall, outcome: object) -> None:
            await asyncio.sleep(30)

    outcome = await Executor(Registry(look), hooks=[Slow()]).run("look", {"path": "a"})
    assert isinstance(outcome, Failed) and "did not return within" in outcome.text and ran == []
    withheld = await Executor(Registry(look), hooks=[SlowAfter()]).run("look", {"path": "a"})
    assert isinstance(withheld, Failed) and withheld.started


def test_permission_gate_needs_a_function() -> None:
    with pytest.raises(UsageError, match="expected a function as allow, got True; write PermissionGate"):
        PermissionGate(cast(Any, True))


@pytest.mark.parametrize(("allowed", "ending"), [(True, Completed), (False, Failed)])
async def test_permission_gate_asks_only_for_destructive_calls(allowed: bool, ending: type) -> None:
    asked: list[str] = []

    async def allow(name: str, annotations: object) -> bool:
        asked.append(name)
        return allowed

    executor = Executor(Registry(look, wipe), AllowEverything(), hooks=[PermissionGate(allow)])
    assert isinstance(await executor.run("wipe", {"path": "a"}), ending)
    assert isinstance(await executor.run("look", {"path": "a"}), Completed)
    assert asked == ["wipe"]


@pytest.mark.parametrize("said", [Deny("not now"), "no", 1, None])
async def test_permission_gate_takes_nothing_but_true_for_a_yes(said: object) -> None:
    executor = Executor(
        Registry(wipe), AllowEverything(), hooks=[PermissionGate(lambda name, claims: cast(bool, said))]
    )
    outcome = await executor.run("wipe", {"path": "a"})
    assert isinstance(outcome, Failed) and outcome.error.code == "denied" and ran == []


async def test_cache_answers_repeated_reads_until_a_write() -> None:
    executor = Executor(Registry(look, wipe), AllowEverything(), hooks=[Cache()])
    for _ in range(2):
        await executor.run("look", {"path": "a"})
    assert ran == ["a"]
    await executor.run("look", {"path": "b"})
    await executor.run("wipe", {"path": "a"})
    await executor.run("look", {"path": "a"})
    assert ran == ["a", "b", "a", "a"]


async def test_cache_answers_no_other_session() -> None:
    @tool(effect=Effect.READ)
    async def mine(context: ToolContext) -> str:
        """Read what belongs to the session."""
        ran.append(context.session_id)
        return f"of {context.session_id}"

    executor = Executor(Registry(mine), hooks=[Cache()])
    found = [(await executor.run("mine", turn=Turn(session, "1"))).text for session in ("a", "b", "a", "b")]
    assert found == ["of a", "of b", "of a", "of b"] and ran == ["a", "b"]


async def test_cache_keeps_no_failure() -> None:
    @tool(effect=Effect.READ)
    async def recover() -> str:
        """Fail at first."""
        ran.append("recover")
        if len(ran) == 1:
            raise ToolFailed("not yet")
        return "now"

    executor = Executor(Registry(recover), hooks=[Cache()])
    assert [(await executor.run("recover")).text for _ in range(3)] == ["not yet", "now", "now"] and len(ran) == 2


async def test_cache_drops_what_was_used_least_recently() -> None:
    executor = Executor(Registry(look), hooks=[Cache(2)])
    for path in ("a", "b", "a", "c", "a", "b"):
        await executor.run("look", {"path": path})
    assert ran == ["a", "b", "c", "b"]
    with pytest.raises(UsageError, match="at least 1"):
        Cache(0)


async def test_cache_keeps_nothing_that_was_read_beside_a_write(tmp_path: Path) -> None:
    file = tmp_path / "f"
    file.write_text("old")

    @tool(effect=Effect.READ, accesses=lambda _: [ReadPath(str(file))])
    async def read() -> str:
        """Read the file."""
        return file.read_text()

    @tool(effect=Effect.WRITE, accesses=lambda _: [WritePath(str(file))])
    async def write(text: str) -> str:
        """Write the file."""
        file.write_text(text)
        return "written"

    executor = Executor(Registry(read, write), AllowEverything(), hooks=[Cache()])
    writing = ToolCall("w", "write", {"text": "new"})
    for calls in ([ToolCall("r", "read", {}), writing], [writing, ToolCall("r", "read", {})]):
        file.write_text("old")
        await executor.execute(calls)
        assert (await executor.run("read")).text == "new"


async def test_cache_keeps_nothing_while_a_write_runs() -> None:
    content, began, go = "old", asyncio.Event(), asyncio.Event()

    @tool(effect=Effect.READ)
    async def read() -> str:
        """Read the content."""
        return content

    @tool(effect=Effect.WRITE)
    async def write() -> str:
        """Change the content twice."""
        nonlocal content
        content = "half"
        began.set()
        await go.wait()
        content = "new"
        return "written"

    executor = Executor(Registry(read, write), AllowEverything(), hooks=[Cache()])
    assert (await executor.run("read")).text == "old"
    writing = asyncio.create_task(executor.run("write"))
    await asyncio.wait_for(began.wait(), LONG_SECONDS)
    assert (await executor.run("read")).text == "half"
    go.set()
    assert (await writing).text == "written"
    assert (await executor.run("read")).text == "new"


async def test_cache_keeps_no_read_that_a_write_overtook() -> None:
    content, began, go = "old", asyncio.Event(), asyncio.Event()

    @tool(effect=Effect.READ)
    async def read() -> str:
        """Read the content, slowly."""
        found = content
        began.set()
        await go.wait()
        return found

    @tool(effect=Effect.WRITE)
    async def write() -> str:
        """Change the content."""
        nonlocal content
        content = "new"
        return "written"

    executor = Executor(Registry(read, write), AllowEverything(), hooks=[Cache()])
    reading = asyncio.create_task(executor.run("read"))
    await asyncio.wait_for(began.wait(), LONG_SECONDS)
    await executor.run("write")
    go.set()
    assert [(await reading).text, (await executor.run("read")).text] == ["old", "new"]


async def test_cache_takes_arguments_in_any_form() -> None:
    executor = Executor(Registry(look), hooks=[Cache()])
    for arguments in (b'{"path": "a"}', '{"path": "a"}', b'{"path": "a"}', {"path": "b"}, {"path": "b"}):
        assert isinstance(await executor.run("look", arguments), Completed)
    assert ran == ["a", "b"]


async def test_cache_tells_secrets_apart() -> None:
    @tool(effect=Effect.READ)
    async def balance(token: SecretStr) -> str:
        """Look at the account of a token."""
        return f"balance of {token.get_secret_value()}"

    executor = Executor(Registry(balance), hooks=[Cache()])
    assert [(await executor.run("balance", {"token": name})).text for name in "ab"] == ["balance of a", "balance of b"]


async def test_cache_does_not_answer_for_another_tool_of_the_same_name() -> None:
    def make_look(found: str) -> FunctionTool:
        @tool(effect=Effect.READ)
        async def look() -> str:
            """Look."""
            return found

        return look

    cache, registry = Cache(), Registry(make_look("old"))
    executor, other = (Executor(each, hooks=[cache]) for each in (registry, Registry(make_look("other"))))
    assert [(await each.run("look")).text for each in (executor, executor, other)] == ["old", "old", "other"]
    registry.add(make_look("new"))
    assert (await executor.run("look")).text == "new"


async def test_cache_tells_tools_of_one_class_apart() -> None:
    class Place(BaseModel):
        path: str

    class Query(TypedTool[Place]):
        spec = describe("query", "Query.", effect=Effect.READ)

        def __init__(self, found: str) -> None:
            self.found = found

        async def run(self, arguments: Place, context: ToolContext) -> str:
            return self.found

    class Database:
        def __init__(self, found: str) -> None:
            self.found = found

        @tool(effect=Effect.READ)
        async def query(self, path: str) -> str:
            """Query."""
            return self.found

    for first, second in ((Query("a"), Query("b")), (Database("a").query, Database("b").query)):
        cache = Cache()
        one, other = (Executor(Registry(each), hooks=[cache]) for each in (first, second))
        found = [(await each.run("query", {"path": "x"})).text for each in (one, other, other)]
        assert found == ["a", "b", "b"]


async def test_cache_does_not_answer_a_tool_that_makes_calls() -> None:
    async def delegate(arguments: object, context: ToolContext) -> str:
        return (await context.execute(ToolCall("1", "wipe", {"path": "a"})))[0].text

    schema: dict[str, Any] = {"type": "object", "properties": {}}
    annotations = Annotations(Effect.READ, delegates=True)
    outer = SchemaTool(ToolSpec("outer", "Delegates.", schema, annotations=annotations), delegate)
    executor = Executor(Registry(outer, wipe), AllowEverything(), hooks=[Cache()])
    for _ in range(2):
        await executor.run("outer")
    assert ran == ["a", "a"]


@pytest.mark.parametrize(
    ("group", "annotations", "runs"),
    [
        ("files", Annotations(Effect.READ), 1),
        ("ask", Annotations(Effect.READ), 2),
        ("plan", Annotations(Effect.READ), 2),
        ("shell", Annotations(Effect.READ), 2),
        ("todo", Annotations(Effect.READ), 2),
        ("files", Annotations(Effect.READ, delegates=True), 2),
        ("files", Annotations(Effect.WRITE), 2),
    ],
)
async def test_cache_answers_only_tools_that_do_nothing_but_read(
    group: str, annotations: Annotations, runs: int
) -> None:
    async def act(arguments: object, context: ToolContext) -> str:
        ran.append("act")
        return "acted"

    schema: dict[str, Any] = {"type": "object", "properties": {}}
    spec = ToolSpec("act", "Acts.", schema, annotations=annotations, group=group)
    executor = Executor(Registry(SchemaTool(spec, act)), AllowEverything(), hooks=[Cache()])
    for _ in range(2):
        assert (await executor.run("act")).text == "acted"
    assert len(ran) == runs


async def test_cache_answers_no_tool_that_acts_on_the_session(tmp_path: Path) -> None:
    tools = Registry(Bash(tmp_path), BashOutput(), Todo())
    executor, turn = Executor(tools, AllowEverything(), hooks=[Cache()]), Turn("session", "1")
    line = "echo one; until [ -e go ]; do sleep 0.01; done; echo two"
    await executor.run("bash", {"command": line, "run_in_background": True}, turn=turn)
    outputs: list[str] = []
    while not outputs or "running" in outputs[-1]:
        outputs.append((await executor.run("bash_output", {"id": "1", "wait_seconds": 0.05}, turn=turn)).text)
        if "one" in outputs[-1]:
            (tmp_path / "go").touch()
    assert "two" in "".join(outputs)
    for status in ("pending", "completed", "pending"):
        await executor.run("todo", {"todos": [{"content": "a", "status": status}]}, turn=turn)
    assert "0 of 1 done" in (await executor.run("todo", turn=turn)).text


async def test_redaction_reaches_text_data_parts_and_errors() -> None:
    key = "sk-" + "a" * 30

    @tool(effect=Effect.READ)
    async def leak(how: str) -> object:
        """Say a secret."""
        if how == "error":
            raise ToolFailed(f"key {key} rejected")
        if how == "parts":
            return [f"the key is {key}", Image(b"picture")]
        return {"key": [key]} if how == "data" else f"the key is {key}"

    executor = Executor(Registry(leak), hooks=[Redact()])
    for how in ("text", "data", "parts", "error"):
        outcome = await executor.run("leak", {"how": how})
        assert key not in repr(outcome), how
        assert isinstance(outcome, (Completed, Failed)) and "[redacted]" in outcome.text
    failed = await executor.run("leak", {"how": "error"})
    assert isinstance(failed, Failed) and isinstance(failed.error, ToolFailed)


@pytest.mark.parametrize("count", [1, 2])
async def test_after_hooks_see_what_the_one_before_returned(count: int) -> None:
    seen: list[str] = []

    class Look(Hook):
        def after(self, pending: PendingCall, outcome: Outcome) -> None:
            seen.append(outcome.text if isinstance(outcome, Completed) else "")

    class Mark(Hook):
        def after(self, pending: PendingCall, outcome: Outcome) -> Outcome:
            return Completed(outcome.call, Output(f"{outcome.text}!")) if isinstance(outcome, Completed) else outcome

    class MarkLater(Mark):
        async def after(self, pending: PendingCall, outcome: Outcome) -> Outcome:  # type: ignore[override] - hooks may be async
            await asyncio.sleep(0)
            return super().after(pending, outcome)

    @tool(effect=Effect.READ)
    async def look() -> str:
        """Look."""
        return "a"

    executor = Executor(Registry(look), AllowEverything(), hooks=[Look(), Mark(), Look(), MarkLater(), Look(), Mark()])
    for _ in range(2):  # the first call goes another way than later ones
        seen.clear()
        outcomes = await executor.execute([ToolCall(str(at), "look") for at in range(count)])
        assert [outcome.text for outcome in outcomes if isinstance(outcome, Completed)] == ["a!!!"] * count
        assert sorted(seen) == sorted(["a", "a!", "a!!"] * count)


async def test_after_may_wrap_the_output() -> None:
    def preface(pending: PendingCall, outcome: object) -> object:
        assert isinstance(outcome, Completed)
        return replace(outcome, output=Output(f"note: {outcome.text}"))

    outcome = await Executor(Registry(look), hooks=[ScriptedHook(after=preface)]).run("look", {"path": "a"})  # type: ignore[arg-type] - returns an Outcome
    assert isinstance(outcome, Completed) and outcome.text == "note: saw a 1"


async def test_redacted_error_keeps_its_type() -> None:
    key = "sk-" + "a" * 24

    @tool(effect=Effect.READ)
    async def busy(how: str) -> str:
        """Fail."""
        raise InvalidArguments(f"not {key}") if how == "wrong" else Transient(f"try {key}", retry_after=0.0)

    executor = Executor(Registry(busy), hooks=Redact(), clock=FakeClock())
    wrong, late = await executor.run("busy", {"how": "wrong"}), await executor.run("busy", {"how": "late"})
    assert isinstance(wrong, Failed) and isinstance(wrong.error, InvalidArguments)
    assert wrong.error.detail == "not [redacted]" and key not in f"{wrong.error.args}{wrong.error.__cause__}"
    assert isinstance(late, Failed) and isinstance(late.error, Transient) and late.error.retry_after == 0.0


class Broken(Hook):
    """Raises before it could return anything to wait for."""

    def __init__(self, raised: BaseException) -> None:
        self.raised = raised

    def before(self, pending: PendingCall) -> None:
        raise self.raised


@pytest.mark.parametrize("raised", [ValueError("oops"), SystemExit(1), asyncio.CancelledError(), TimeoutError()])
async def test_sync_hook_that_raises_denies(raised: BaseException) -> None:
    outcome = await Executor(Registry(look), AllowEverything(), hooks=Broken(raised)).run("look", {"path": "a"})
    assert isinstance(outcome, Failed) and isinstance(outcome.error, Denied) and not ran
    assert "the hook Broken" in outcome.error.message


def test_interrupt_from_the_keyboard_passes_a_hook() -> None:
    executor = Executor(Registry(look), AllowEverything(), hooks=Broken(KeyboardInterrupt()))
    with pytest.raises(KeyboardInterrupt):
        executor.run_sync("look", {"path": "a"})
    assert not ran


class Store(SchemaTool):
    """A tool whose arguments cannot be bound before the user has signed in to their store."""

    def bind(self, arguments: Any) -> Any:
        if "private" in str(arguments):
            raise AuthRequired("sign in to the store", url="https://store.example/login")
        return super().bind(arguments)


async def _fetch(arguments: object, context: ToolContext) -> str:
    ran.append("fetch")
    return "fetched"


@pytest.mark.parametrize(("asked", "hooks_asked"), [("private", 0), ("public", 1)])
async def test_sign_in_is_asked_alone_and_before_hooks(asked: str, hooks_asked: int) -> None:
    seen: list[str] = []

    class Move(Hook):
        def before(self, pending: PendingCall) -> Rewrite:
            seen.append(pending.call.name)
            return Rewrite({"store": "private"})

    spec = ToolSpec("fetch", "Fetch.", {"type": "object"}, annotations=Annotations(Effect.WRITE))
    executor = Executor(Registry(Store(spec, _fetch)), hooks=Move())  # the mode would ask about a write, too
    outcome = await executor.run("fetch", {"store": asked})
    assert isinstance(outcome, Interrupted) and [question.kind for question in outcome.questions] == ["auth"]
    assert len(seen) == hooks_asked and not ran


class Obeying(Hook):
    """A hook that does what the argument of a call says, before or after it."""

    def __init__(self, when: str, switch: ModeSwitch, log: list[str], *, seconds: float) -> None:
        self._when, self._switch, self._log, self.seconds = when, switch, log, seconds

    def before(self, pending: PendingCall) -> Any:
        self._log.append(f"before {pending.arguments['do']}")
        return self._obey(pending) if self._when == "before" else None

    def after(self, pending: PendingCall, outcome: Outcome) -> Any:
        self._log.append(f"after {type(outcome).__name__}")
        if self._when == "after" and pending.arguments["do"] == "replace":
            return Completed(outcome.call, Output("replaced"))
        return self._obey(pending) if self._when == "after" else None

    def _obey(self, pending: PendingCall) -> Any:
        async def wait(returned: object) -> object:
            await asyncio.sleep(0)
            return returned

        match pending.arguments["do"]:
            case "raise":
                raise ValueError("broken")
            case "exit":
                raise SystemExit
            case "fail":
                raise ToolFailed("no")
            case "deny":
                return Deny("not this")
            case "halt":
                return Halt("stop")
            case "ask":
                return Ask("really?")
            case "answer":
                return Answer("from a cache")
            case "rewrite":
                return Rewrite({"do": "rewritten"})
            case "proceed":
                return Proceed()
            case "nonsense":
                return 5
            case "later":
                return wait(None)
            case "deny later":
                return wait(Deny("not this"))
            case "hang":
                return asyncio.Event().wait()
            case "switch":
                self._switch.mode = "plan"
            case _:
                pass
        return None


def make_worker(runs: list[str]) -> FunctionTool:
    @tool(effect=Effect.READ, limits=Limits(output_chars=100))
    async def work(do: str) -> object:
        """Work as told."""
        runs.append(do)
        if do == "crash":
            raise KeyError("lost")
        if do == "busy" and runs.count(do) < 2:
            raise Transient("busy")
        return {"done": do} if do == "data" else "x" * 500 if do == "long" else f"did {do}"

    return work


@pytest.mark.parametrize("when", ["before", "after"])
async def test_hooks_mean_the_same_on_the_fast_path(when: str) -> None:
    orders = "go raise exit fail deny halt ask answer rewrite proceed nonsense later replace hang switch".split()
    for order in (*orders, "deny later", "crash", "busy", "data", "long"):
        seen: list[tuple[object, ...]] = []
        for opened in (False, True):
            runs, log, events = list[str](), list[str](), Recorder()
            mode = ByMode("default")
            tools = Registry(make_worker(runs))
            seconds = 0.05 if order == "hang" else LONG_SECONDS
            hooks = [Obeying(part, mode.switch, log, seconds=seconds) for part in ("", when, "")]
            executor = Executor(tools, mode, hooks=hooks, observe=events, clock=FakeClock())
            if opened:
                await executor.run("work", {"do": "open"})  # from now on the fast path is open
            for part in (runs, log, events.events):
                part.clear()
            outcome = await executor.run("work", {"do": order})
            text = outcome.text.split(" is in ")[0]
            started = outcome.started if isinstance(outcome, Failed) else None
            attempts = outcome.attempts if isinstance(outcome, (Completed, Failed)) else 0
            seen.append((type(outcome), text, started, attempts, runs, log, events.names, mode.switch.mode))
        assert seen[0] == seen[1], order


async def test_call_is_judged_by_the_policies_as_its_hooks_leave_them() -> None:
    class Switchable(Policy):
        tier, is_open = Tier.MODE, True

        @property
        def cache_key(self) -> str | None:
            return str(self.is_open)

        def judge(self, access: Access, subject: Subject) -> Decision:
            return Allow() if self.is_open else Deny("closed")

    policy, runs = Switchable(), list[str]()

    @tool(effect=Effect.WRITE)
    async def change(name: str) -> str:
        """Change something."""
        runs.append(name)
        return name

    class Closing(Hook):
        def before(self, pending: PendingCall) -> None:
            policy.is_open = pending.arguments["name"] != "last"

    executor = Executor(Registry(change), policy, hooks=Closing())
    outcomes = [await executor.run("change", {"name": name}) for name in ("first", "second", "third", "last")]
    assert runs == ["first", "second", "third"]
    assert isinstance(outcomes[3], Failed) and isinstance(outcomes[3].error, Denied)


async def test_cancellation_during_an_after_hook_leaves_an_outcome_on_the_fast_path() -> None:
    begun = asyncio.Event()

    class Waiting(Hook):
        async def after(self, pending: PendingCall, outcome: Outcome) -> None:
            if pending.arguments["wait"]:
                begun.set()
                await asyncio.Event().wait()

    @tool(effect=Effect.READ)
    async def work(wait: bool) -> str:
        """Work."""
        return "done"

    executor = Executor(Registry(work), hooks=Waiting())
    await executor.run("work", {"wait": False})
    running = asyncio.ensure_future(executor.run("work", {"wait": True}))
    await begun.wait()
    running.cancel()
    with pytest.raises(asyncio.CancelledError) as caught:
        await running
    cancelled = TurnCancelled.find(caught.value)
    assert cancelled is not None and [type(outcome) for outcome in cancelled.outcomes] == [Failed]
