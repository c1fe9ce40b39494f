"""Behaviour that all frameworks share: policies, hooks, limits and order of calls."""

import asyncio
from typing import TYPE_CHECKING, Any

import pytest
from pydantic import SecretStr

from callwright import Effect, Executor, Registry, tool
from callwright.core.calls import ToolCall
from callwright.core.errors import Halted
from callwright.core.events import BatchBegan, Event
from callwright.hooks import Halt, Hook, PendingCall, Rewrite, Verdict
from callwright.policy import AllowEverything, ByMode

if TYPE_CHECKING:
    from tests.interop.conftest import Notes, Play

pytestmark = pytest.mark.slow  # the frameworks take seconds to load, in each process


def write(number: int, text: str, path: str = "note") -> ToolCall:
    return ToolCall(f"c{number}", "write", {"path": path, "text": text})


class Censor(Hook):
    """Rewrites a secret text before it is written."""

    def before(self, pending: PendingCall) -> Verdict | None:
        if pending.arguments.get("text") == "secret":
            return Rewrite({**pending.arguments, "text": "[struck out]"})
        return None


async def test_tool_is_called_and_model_reads_output(play: "Play", notes: "Notes") -> None:
    executor = notes.executor()
    played = await play(executor, [write(1, "hello")])
    assert played.texts == {"c1": '{"wrote":"hello"}'}
    assert not played.failed
    assert (notes.folder / "note").read_text() == "hello"
    assert executor.stats["write"].calls == 1


async def test_denied_call_does_not_run_and_model_reads_why(play: "Play", notes: "Notes") -> None:
    played = await play(notes.executor(), [ToolCall("c1", "burn", {})])
    assert played.failed == {"c1"}
    assert "burn" in played.texts["c1"]
    assert notes.log == []


async def test_approved_call_runs_once(play: "Play", notes: "Notes") -> None:
    played = await play(notes.executor(ask=True), [write(1, "hello")])
    assert played.asked == [("write", {"path": "note", "text": "hello"})]
    assert not played.failed
    assert notes.log == ["begin hello", "end hello"]


async def test_rejected_call_does_not_run(play: "Play", notes: "Notes") -> None:
    played = await play(notes.executor(ask=True), [write(1, "hello")], decide=lambda name, arguments: "no paper today")
    assert played.failed == {"c1"}
    assert "no paper today" in played.texts["c1"]
    assert notes.log == []


async def test_approval_counts_for_its_call_only(play: "Play", notes: "Notes") -> None:
    def first_only(name: str, arguments: dict[str, Any]) -> bool:
        return arguments["text"] == "one"

    played = await play(notes.executor(ask=True), [write(1, "one", "a"), write(2, "two", "b")], decide=first_only)
    assert played.failed == {"c2"}
    assert notes.log == ["begin one", "end one"]


async def test_same_arguments_in_another_call_ask_again(play: "Play", notes: "Notes") -> None:
    played = await play(notes.executor(ask=True), [write(1, "one")], [write(2, "one")])
    assert len(played.asked) == 2


async def test_calls_before_a_question_are_not_repeated(play: "Play", notes: "Notes") -> None:
    played = await play(notes.executor(ask=True), [ToolCall("c1", "read", {"path": "x"}), write(2, "late", "y")])
    assert notes.log == ["read x", "begin late", "end late"]
    assert played.texts["c1"] == "nothing"


async def test_two_questions_of_one_turn_are_answered_apart(play: "Play", notes: "Notes") -> None:
    calls = [write(1, "a", "a"), write(2, "b", "b"), write(3, "c", "c")]
    played = await play(notes.executor(ask=True), calls, decide=lambda name, arguments: arguments["text"] != "b")
    assert played.failed == {"c2"}
    assert sorted(notes.log) == ["begin a", "begin c", "end a", "end c"]


async def test_edit_within_the_approved_accesses_runs(play_with_edits: "Play", notes: "Notes") -> None:
    def shorten(name: str, arguments: dict[str, Any]) -> dict[str, Any]:
        return {**arguments, "text": "short"}

    played = await play_with_edits(notes.executor(ask=True), [write(1, "long")], decide=shorten)
    assert notes.log == ["begin short", "end short"]
    assert len(played.asked) == 1


async def test_edit_beyond_the_approved_accesses_asks_again(play_with_edits: "Play", notes: "Notes") -> None:
    elsewhere = {"path": "elsewhere", "text": "x"}
    played = await play_with_edits(notes.executor(ask=True), [write(1, "x")], decide=lambda name, arguments: elsewhere)
    assert played.asked == [("write", {"path": "note", "text": "x"}), ("write", elsewhere)]
    assert (notes.folder / "elsewhere").exists()
    assert not (notes.folder / "note").exists()


async def test_edit_keeps_secret_that_is_shown_masked(play_with_edits: "Play") -> None:
    @tool(effect=Effect.DESTROY)
    async def login(password: SecretStr, user: str = "me") -> str:
        """Sign in."""
        return f"{user}:{password.get_secret_value()}"

    executor = Executor(Registry(login), ByMode("default"))
    call = ToolCall("c1", "login", {"password": "A"})
    played = await play_with_edits(executor, [call], decide=lambda name, arguments: {**arguments, "user": "root"})
    assert played.texts["c1"].startswith("root:A")
    assert len(played.asked) == 2


async def test_denied_edit_stays_denied(play_with_edits: "Play", notes: "Notes") -> None:
    played = await play_with_edits(
        notes.executor(ask=True), [write(1, "x")], decide=lambda name, arguments: {"path": "note"}
    )
    assert played.failed == {"c1"}
    assert notes.log == []


async def test_hook_rewrites_call_and_question(play: "Play", notes: "Notes") -> None:
    played = await play(notes.executor(ask=True, hooks=[Censor()]), [write(1, "secret")])
    assert not played.failed
    assert notes.log == ["begin [struck out]", "end [struck out]"]


async def test_approval_is_void_if_the_call_changes(play: "Play", notes: "Notes") -> None:
    class Fickle(Hook):
        text = "first"

        def before(self, pending: PendingCall) -> Verdict | None:
            return Rewrite({**pending.arguments, "text": self.text})

    hook, asked = Fickle(), 0

    def change_then_refuse(name: str, arguments: dict[str, Any]) -> bool:
        nonlocal asked
        asked, hook.text = asked + 1, "second"
        return asked == 1

    played = await play(notes.executor(ask=True, hooks=[hook]), [write(1, "x")], decide=change_then_refuse)
    assert played.failed == {"c1"}
    assert notes.log == []


async def test_tool_failure_is_an_error_the_model_reads(play: "Play", notes: "Notes") -> None:
    played = await play(notes.executor(), [ToolCall("c1", "crash", {}), ToolCall("c2", "fail", {})])
    assert played.failed == {"c1", "c2"}
    assert "RuntimeError: out of paper" in played.texts["c1"]
    assert "there is no pencil" in played.texts["c2"]


async def test_invalid_arguments_are_explained(play: "Play", notes: "Notes") -> None:
    played = await play(notes.executor(), [ToolCall("c1", "write", {"path": "a", "text": 5})])
    assert played.failed == {"c1"}
    assert "text: expected a string, got 5" in played.texts["c1"]


async def test_writes_to_one_file_keep_the_models_order(play: "Play", notes: "Notes") -> None:
    calls = [ToolCall(f"c{number}", "append", {"path": "note", "text": str(number)}) for number in range(5)]
    played = await play(notes.executor(), calls)
    assert (notes.folder / "note").read_text() == "01234"
    assert played.texts["c4"] == "01234"


@pytest.mark.parametrize("elsewhere", [False, True])
async def test_call_does_not_overtake_one_that_waits(
    play_with_edits: "Play", notes: "Notes", elsewhere: bool
) -> None:  # OpenAI Agents does not tell us of a call that waits before it runs the others
    calls = [write(1, "one"), ToolCall("c2", "read", {"path": "note"}), ToolCall("c3", "read", {"path": "other"})]
    kept: dict[str, str] | None = {} if elsewhere else None
    played = await play_with_edits(
        notes.executor(ask=True), calls, [ToolCall("c4", "read", {"path": "note"})], pending=kept
    )
    assert played.failed == {"c2"} and "call read again" in played.texts["c2"]
    assert (played.texts["c3"], played.texts["c4"]) == ("nothing", "one")
    assert "read note" not in notes.log[: notes.log.index("end one")]


async def test_writes_to_two_files_run_in_parallel(play: "Play", notes: "Notes") -> None:
    await play(notes.executor(), [write(1, "one", "a"), write(2, "two", "b")])
    assert notes.log[:2] == ["begin one", "begin two"]


async def test_unknown_tool_is_an_error_the_model_reads(play: "Play", notes: "Notes") -> None:
    played = await play(notes.executor(), [ToolCall("c1", "wriet", {})])
    assert played.failed == {"c1"}
    assert "wriet" in played.texts["c1"]


async def test_removed_tool_cannot_be_called(play: "Play", notes: "Notes") -> None:
    def remove() -> None:
        if "write" in notes.registry:
            notes.registry.remove("write")

    look = ToolCall("c2", "read", {"path": "x"})
    played = await play(notes.executor(), [write(1, "one")], [look], [write(3, "two")], between=remove)
    assert played.failed == {"c3"}
    assert "write" in played.texts["c3"]
    assert notes.log == ["begin one", "end one", "read x"]


async def test_image_output_arrives_as_image(play: "Play", notes: "Notes") -> None:
    played = await play(notes.executor(), [ToolCall("c1", "draw", {})])
    assert "a dot" in played.texts["c1"]
    assert "image/png" in str(played.raw["c1"])


async def test_halting_hook_ends_the_run(play: "Play", notes: "Notes") -> None:
    class Stop(Hook):
        def before(self, pending: PendingCall) -> Verdict | None:
            return Halt("enough for today")

    with pytest.raises(Exception, match="enough for today") as caught:
        await play(notes.executor(hooks=[Stop()]), [write(1, "x")])
    assert isinstance(caught.value, Halted) or isinstance(caught.value.__cause__, Halted)
    assert notes.log == []


async def test_cancelling_the_run_stops_the_tool(play: "Play", notes: "Notes") -> None:
    task = asyncio.ensure_future(play(notes.executor(), [ToolCall("c1", "hang", {})]))
    await notes.hanging.wait()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert notes.log == ["hanging", "stopped"]


async def test_approval_from_other_process_needs_saved_question(play: "Play", notes: "Notes") -> None:
    kept: dict[str, str] = {}
    played = await play(notes.executor(ask=True), [write(1, "hello")], pending=kept)
    assert len(played.asked) == 1
    assert notes.log == ["begin hello", "end hello"]


async def test_observers_see_calls_with_the_frameworks_id(play: "Play", notes: "Notes") -> None:
    events: list[Event] = []
    await play(Executor(notes.registry, AllowEverything(), observe=events.append), [write(7, "x")])
    assert [call.id for event in events if isinstance(event, BatchBegan) for call in event.calls] == ["c7"]
