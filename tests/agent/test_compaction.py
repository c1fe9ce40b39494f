"""Compaction of long conversations."""

from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, strategies as st
from tests.agent.histories import find_history_faults

from callwright import Completed, Effect, Executor, Registry, ToolCall, tool
from callwright.agent import Agent, Compaction, Done, Prices, Requests, RunLimits, Stopped
from callwright.agent.compaction import SUMMARY_PROMPT, drop_outputs, estimate_message_tokens, find_tail_start
from callwright.clip import Outputs, find_output_ids
from callwright.core.content import File, Output, Text
from callwright.core.messages import AssistantMessage, Message, ToolMessage, Usage, UserMessage
from callwright.policy import AllowEverything
from callwright.providers.base import MessageDone, ModelEvent, ModelRequest, ProviderError, TextDelta
from callwright.providers.streaming import TappedProvider
from callwright.sessions import MemoryStore, SqliteStore
from callwright.sessions.records import Compacted, Spent
from callwright.testing import FakeClock
from callwright.testing.fakes import Line, ScriptedProvider


@tool(effect=Effect.READ)
async def big(n: int) -> str:
    """Say a lot."""
    return f"{n} " + "é" * 4000


def asked_for_summary(request: ModelRequest) -> bool:
    last = request.messages[-1]
    return isinstance(last, UserMessage) and str(last.content).startswith(SUMMARY_PROMPT)


class Talkative:
    """Calls `big` many times; answers a wish for a summary with one."""

    def __init__(self, turns: int) -> None:
        self.turns = turns
        self.asked = 0
        self.seen: list[ModelRequest] = []

    def __call__(self, request: ModelRequest) -> Line:
        assert find_history_faults(request.messages) == []
        self.seen.append(request)
        if asked_for_summary(request):
            return AssistantMessage((Text("it was about é"),), usage=Usage(100, 10))
        self.asked += 1
        return ToolCall("c", "big", {"n": self.asked}) if self.asked <= self.turns else "done"


def agent_with(model: Talkative, plan: Compaction, store: MemoryStore | SqliteStore | None = None) -> Agent:
    registry = Registry(big)
    return Agent(
        ScriptedProvider.answering(model),
        registry,
        executor=Executor(registry, AllowEverything()),
        sessions=store or MemoryStore(),
        system="be brief",
        compaction=plan,
        requests=Requests(clock=FakeClock()),
    )


def test_file_that_is_text_counts_as_text() -> None:
    texts = [UserMessage((part,)) for part in (Text("x" * 90_000), File(b"x" * 90_000, "text/csv", "a.csv"))]
    assert len(set(map(estimate_message_tokens, texts))) == 1
    drawn = UserMessage((File(b"%PDF" + b"x" * 90_000, "application/pdf"),))
    assert estimate_message_tokens(drawn) < estimate_message_tokens(texts[0])


async def test_long_conversation_is_summarised_and_continues() -> None:
    model = Talkative(12)
    agent = agent_with(model, Compaction(at_tokens=5000, keep_tokens=1500))
    result = await agent.run("the task", session="s")
    assert isinstance(result, Done) and result.usage.total >= 110
    summary_requests = [request for request in model.seen if asked_for_summary(request)]
    assert summary_requests and all(request.system == "be brief" and request.tools for request in model.seen)
    messages = await agent.messages("s")
    assert find_history_faults(messages) == [] and len(messages) < 12
    assert isinstance(messages[0], UserMessage) and "it was about é" in str(messages[0].content)


async def test_summary_is_not_asked_for_in_the_answer_schema() -> None:
    model = Talkative(12)
    agent = agent_with(model, Compaction(at_tokens=5000, keep_tokens=1500))
    await agent.run("the task", output=dict[str, int])
    asked = {asked_for_summary(request): request.output_schema is not None for request in model.seen}
    assert asked == {True: False, False: True}


async def test_drop_method_moves_old_outputs_to_files() -> None:
    model = Talkative(12)
    agent = agent_with(model, Compaction(at_tokens=5000, keep_tokens=1500, method="drop"))
    assert isinstance(await agent.run("the task", session="s"), Done)
    assert not any(asked_for_summary(request) for request in model.seen)
    messages = await agent.messages("s")
    first = next(message for message in messages if isinstance(message, ToolMessage)).outcomes[0]
    assert isinstance(first, Completed) and len(first.text) < 1000
    assert agent.executor.outputs.load(find_output_ids(first)[0]) == "1 " + "é" * 4000


async def test_too_large_request_is_compacted_once() -> None:
    model = Talkative(4)
    script = ScriptedProvider.answering(model)
    refused = 0

    def touchy(request: ModelRequest) -> Line:
        nonlocal refused
        if not asked_for_summary(request) and len(request.messages) > 5:
            refused += 1
            return ProviderError("prompt is too long", fault="too_large")
        return model(request)

    script = ScriptedProvider.answering(touchy)
    agent = agent_with(model, Compaction())
    agent.provider = script
    result = await agent.run("the task", session="s")
    assert isinstance(result, Done), result
    assert refused == 1
    assert find_history_faults(await agent.messages("s")) == []


def limited_to(tokens: int, model: Talkative) -> ScriptedProvider:
    """Return a model whose context is so small."""

    def answer(request: ModelRequest) -> Line:
        if sum(map(estimate_message_tokens, request.messages)) > tokens:
            return ProviderError("prompt is too long", fault="too_large")
        return model(request)

    return ScriptedProvider.answering(answer)


async def test_each_too_large_request_of_a_run_is_compacted() -> None:
    model = Talkative(12)
    agent = agent_with(model, Compaction())
    agent.provider = limited_to(5000, model)
    assert isinstance(await agent.run("the task", session="s"), Done)
    assert len([request for request in model.seen if asked_for_summary(request)]) > 1
    assert find_history_faults(await agent.messages("s")) == []


@pytest.mark.parametrize(("factor", "beside"), [(3, 0), (1, 5_000)])
async def test_too_large_conversation_is_halved_however_its_tokens_are_counted(factor: int, beside: int) -> None:
    def answer(request: ModelRequest) -> Line:
        size = beside + factor * sum(map(estimate_message_tokens, request.messages))
        if size > 8_000:
            return ProviderError("prompt is too long", fault="too_large")
        text = "a summary" if asked_for_summary(request) else "an answer " * 40
        return AssistantMessage((Text(text),), usage=Usage(size, 10))

    agent = Agent(ScriptedProvider.answering(answer), [], sessions=MemoryStore())
    for _ in range(40):
        assert isinstance(await agent.run("question " * 40, session="s"), Done)
    assert "a summary" in str((await agent.messages("s"))[0])


async def test_output_too_large_for_the_model_is_clipped() -> None:
    model = Talkative(1)
    agent = agent_with(model, Compaction())
    agent.provider = limited_to(900, model)
    assert isinstance(await agent.run("the task", session="s"), Done)
    messages = await agent.messages("s")
    assert messages[0] == UserMessage("the task")
    outcome = next(message for message in messages if isinstance(message, ToolMessage)).outcomes[0]
    assert "read_output" in outcome.text
    assert agent.executor.outputs.load(find_output_ids(outcome)[0]) == "1 " + "é" * 4000


async def test_summary_of_outputs_that_do_not_fit_is_made_of_clipped_ones() -> None:
    model = Talkative(6)
    agent = agent_with(model, Compaction())
    await agent.run("the task", session="s")
    agent.provider = limited_to(3000, model)
    await agent.compact("s")
    assert "it was about é" in str((await agent.messages("s"))[0])


async def test_conversation_too_large_to_summarise_keeps_the_request_and_the_tail() -> None:
    model = Talkative(8)

    def broken(request: ModelRequest) -> Line:
        return ProviderError("no", fault="too_large") if asked_for_summary(request) else model(request)

    agent = agent_with(model, Compaction(at_tokens=5000, keep_tokens=1500))
    agent.provider = ScriptedProvider.answering(broken)
    assert isinstance(await agent.run("the task", session="s"), Done)
    first = (await agent.messages("s"))[0]
    assert isinstance(first, UserMessage) and "was removed" in str(first.content)
    assert str(first.content).endswith("the task") and str(first.content).count("was removed") == 1


async def test_rejected_summary_request_keeps_the_conversation() -> None:
    model = Talkative(6)
    wrong = ProviderError("the model API answered 404: model 'typo' not found", fault="invalid")

    def broken(request: ModelRequest) -> Line:
        return wrong if asked_for_summary(request) or len(request.messages) > 8 else model(request)

    agent = agent_with(model, Compaction(at_tokens=2500, keep_tokens=1500))
    agent.provider = script = ScriptedProvider.answering(broken)
    result = await agent.run("the task", session="s")
    assert isinstance(result, Stopped) and "404" in result.reason
    assert any(map(asked_for_summary, script.requests))
    kept = await agent.messages("s")
    assert kept[0] == UserMessage("the task") and len(kept) == 9


async def test_compacted_history_is_the_same_after_restart(tmp_path: Path) -> None:
    async with SqliteStore(tmp_path / "s.db") as store:
        agent = agent_with(Talkative(8), Compaction(at_tokens=5000, keep_tokens=1500), store)
        await agent.run("the task", session="s")
        before = await agent.messages("s")
    async with SqliteStore(tmp_path / "s.db") as store:
        assert await agent_with(Talkative(0), Compaction(), store).messages("s") == before


def turn(number: int) -> list[Message]:
    call = ToolCall(f"c{number}", "big", {"n": number})
    return [AssistantMessage((call,), "calls"), ToolMessage((Completed(call, Output("ü" * number)),))]


histories = st.lists(
    st.one_of(
        st.integers(0, 4000).map(turn),
        st.text(max_size=50).map(lambda text: [UserMessage(text)]),
        st.just([AssistantMessage((Text("t"),))]),
    ),
    min_size=1,
).map(lambda pieces: [message for piece in pieces for message in piece])


@given(histories, st.integers(0, 3000))
def test_compaction_keeps_calls_with_their_outcomes(history: list[Message], keep: int) -> None:
    cut = find_tail_start(history, keep)
    assert 0 <= cut < len(history)
    assert not isinstance(history[cut], ToolMessage)
    assert find_history_faults(history[:cut]) == [] and find_history_faults(history[cut:]) == []


@given(histories, st.integers(0, 20))
def test_dropping_outputs_keeps_every_call_pair(history: list[Message], before: int) -> None:
    assert find_history_faults(drop_outputs(history, before, Outputs(), readable=False)) == []


async def test_compact_summarises_with_the_given_focus() -> None:
    model = ScriptedProvider("first answer", "the summary", "second answer")
    agent = Agent(model, [], sessions=MemoryStore())
    await agent.run("hello", session="s")
    before, after = await agent.compact("s", "the file names")
    assert before > 0 and after > 0
    wish = model.requests[1].messages[-1]
    assert isinstance(wish, UserMessage) and str(wish.content).endswith("keep what concerns: the file names")
    assert isinstance(await agent.run("and now?", session="s"), Done)
    (summary, prompt) = model.requests[2].messages
    assert isinstance(summary, UserMessage) and "the summary" in str(summary.content)
    assert prompt == UserMessage("and now?")


@pytest.mark.parametrize("reply", [ProviderError("no", fault="invalid"), " "])
async def test_failed_compact_leaves_session_unchanged(reply: Line) -> None:
    agent = Agent(ScriptedProvider("first answer", reply, reply), [], sessions=MemoryStore())
    await agent.run("hello", session="s")
    kept = await agent.messages("s")
    with pytest.raises(ProviderError):
        await agent.compact("s")
    assert await agent.messages("s") == kept


@pytest.mark.parametrize("fault", ["transient", "auth"])
async def test_outage_during_compaction_keeps_the_conversation(fault: Any) -> None:
    model = Talkative(8)
    down = True

    def broken(request: ModelRequest) -> Line:
        return ProviderError("down", fault=fault) if down and asked_for_summary(request) else model(request)

    agent = agent_with(model, Compaction(at_tokens=5000, keep_tokens=1500))
    agent.provider = ScriptedProvider.answering(broken)
    stopped = await agent.run("the task", session="s")
    assert isinstance(stopped, Stopped) and stopped.kind == "provider"
    kept = await agent.messages("s")
    assert kept[0] == UserMessage("the task") and len(kept) > 6
    down = False
    assert isinstance(await agent.resume("s"), Done)
    assert "it was about é" in str((await agent.messages("s"))[0])


NO_SUMMARIES: list[Line] = [
    " ",
    AssistantMessage((Text("half of"),), "length"),
    AssistantMessage((Text("half of"),), "refusal"),
    AssistantMessage((Text("half of"),), "other"),
    AssistantMessage((Text("half of"),), "paused"),
    AssistantMessage((Text("half of"), ToolCall("c", "big", {"n": 1})), "calls"),
]


@pytest.mark.parametrize("bad", NO_SUMMARIES)
@pytest.mark.parametrize("cut", [1, 2])
async def test_message_that_is_no_summary_is_not_accepted(cut: int, bad: Line) -> None:
    model = Talkative(6)
    summaries = 0

    def cutting(request: ModelRequest) -> Line:
        nonlocal summaries
        if not asked_for_summary(request):
            return model(request)
        summaries += 1
        return bad if summaries <= cut else "the whole summary"

    agent = agent_with(model, Compaction(at_tokens=5000, keep_tokens=1500))
    agent.provider = ScriptedProvider.answering(cutting)
    assert isinstance(await agent.run("the task", session="s"), Done)
    first = str((await agent.messages("s"))[0])
    assert "half of" not in first and "was removed" not in first
    assert ("the whole summary" in first) is (cut == 1 or summaries > 2)


async def test_summary_is_not_shaped_by_the_output_schema() -> None:
    model = Talkative(6)
    agent = agent_with(model, Compaction(at_tokens=5000, keep_tokens=1500))
    agent.provider = ScriptedProvider.answering(lambda request: '"ok"' if (r := model(request)) == "done" else r)
    assert isinstance(await agent.run("the task", output=str), Done)
    shapes = {asked_for_summary(request): request.output_schema is None for request in model.seen}
    assert shapes == {True: True, False: False}


async def test_summary_is_not_streamed_to_the_user() -> None:
    model = Talkative(6)
    tapped: list[ModelEvent] = []
    agent = agent_with(model, Compaction(at_tokens=5000, keep_tokens=1500))
    # the terminal, the page and stream-json show what the tap tells them, other callers what the agent streams
    agent.provider = TappedProvider(ScriptedProvider.answering(model), tapped.append)
    streamed = [event async for event in agent.stream("the task")]
    assert any(map(asked_for_summary, model.seen))
    assert [event.text for event in streamed if isinstance(event, TextDelta)] == ["done"]
    assert [event.text for event in tapped if isinstance(event, TextDelta)] == ["done"]
    shown = [event.message.text for event in tapped if isinstance(event, MessageDone)]
    assert shown[-1] == "done" and not any(shown[:-1])


async def test_large_system_prompt_does_not_compact_on_every_turn() -> None:
    model = Talkative(8)

    def counting(request: ModelRequest) -> Line:
        reply = model(request)
        # the system prompt and the tools alone are almost as large as the limit
        usage = Usage(9_900 + 100 * len(request.messages), 20)
        parts = (reply,) if isinstance(reply, ToolCall) else (Text("done"),)
        return reply if asked_for_summary(request) else AssistantMessage(parts, usage=usage)

    agent = agent_with(model, Compaction(at_tokens=10_000, keep_tokens=1500))
    agent.provider = ScriptedProvider.answering(counting)
    assert isinstance(await agent.run("the task"), Done)
    assert sum(map(asked_for_summary, model.seen)) <= 1


async def test_requests_for_a_summary_count_for_the_run() -> None:
    model = Talkative(6)
    store = MemoryStore()
    used = Usage(1_000_000, 0)

    def reply(request: ModelRequest) -> Line:
        return AssistantMessage((), "end", used, "small") if asked_for_summary(request) else model(request)

    agent = agent_with(model, Compaction(at_tokens=5000, keep_tokens=1500), store)
    agent.limits = RunLimits(prices=Prices(10, 10), other_prices={"small": Prices(1, 1)})
    agent.provider = script = ScriptedProvider.answering(reply)
    result = await agent.run("the task", session="s")
    asked = sum(map(asked_for_summary, script.requests))
    assert asked and isinstance(result, Done)
    assert (result.usage.input_tokens, result.cost) == (asked * 1_000_000, asked * 1.0)
    spent = [record.usage.input_tokens for record in await store.read("s") if isinstance(record, Spent)]
    assert sum(spent) == asked * 1_000_000


async def test_summary_is_charged_at_the_price_of_its_model() -> None:
    said = [AssistantMessage((Text(text),), "end", Usage(1_000_000, 0), "small") for text in ("é" * 4000, "so", "done")]
    limits = RunLimits(prices=Prices(10, 10), other_prices={"small": Prices(1, 1)})
    plan = Compaction(at_tokens=500, keep_tokens=10)
    agent = Agent(ScriptedProvider(*said), sessions=MemoryStore(), limits=limits, compaction=plan)
    await agent.run("the task", session="s")
    result = await agent.run("and now?", session="s")
    assert isinstance(result, Done) and result.cost == 2.0


class Unwilling:
    """Lets no history be compacted."""

    asked = 0

    async def before(self) -> bool:
        self.asked += 1
        return False

    async def after(self, summary: str) -> None:
        raise AssertionError("nothing was compacted")


async def test_declined_compaction_is_not_stored() -> None:
    store, listener = MemoryStore(), Unwilling()
    agent = agent_with(Talkative(6), Compaction(at_tokens=1_000, keep_tokens=500, listener=listener), store)
    assert isinstance(await agent.run("go", session="s"), Done) and listener.asked
    assert not [record for record in await store.read("s") if isinstance(record, Compacted)]
