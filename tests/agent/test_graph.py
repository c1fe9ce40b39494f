"""Graphs: steps, branches, interruptions and checkpoints."""

import asyncio
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import cast

import pytest
from pydantic import BaseModel, ConfigDict, computed_field
from pydantic.alias_generators import to_camel
from tests.waiting import LONG_SECONDS

from callwright import Effect, Executor, Registry, ToolCall, UsageError, tool
from callwright.agent import Agent, Done, Graph, GraphFinished, GraphWaiting, goto, halt, interrupt
from callwright.agent.graph import Goto, Move
from callwright.policy import AllowEverything
from callwright.sessions import MemoryStore, SessionBusy, SessionHold, SessionStore, SqliteStore
from callwright.testing.fakes import ScriptedProvider


@dataclass(frozen=True)
class Work:
    """What the steps hand on."""

    task: str
    plan: tuple[str, ...] = ()
    done: tuple[str, ...] = ()
    tries: int = 0
    log: tuple[str, ...] = field(default=())


@dataclass(frozen=True)
class MoreWork(Work):
    """Has a field that a graph over `Work` would not store."""

    owner: str = ""


class Ticket(BaseModel):
    """A state with other names in JSON than in Python, and a field that is computed."""

    model_config = ConfigDict(alias_generator=to_camel, extra="forbid")

    ticket_id: int

    @computed_field
    def label(self) -> str:
        """The id as it is shown."""
        return f"#{self.ticket_id}"


@tool(effect=Effect.READ)
async def shout(text: str) -> str:
    """Say it louder."""
    return text.upper()


class SlowHold:
    """A hold that is released only when `go_on` is set, as one in a database that is slow."""

    interruptible = True

    def __init__(self, hold: SessionHold) -> None:
        self.session_id, self.records = hold.session_id, hold.records
        self.append, self.note, self.keep_output = hold.append, hold.note, hold.keep_output
        self._hold = hold
        self.releasing, self.go_on, self.released = asyncio.Event(), asyncio.Event(), asyncio.Event()

    async def release(self) -> None:
        self.releasing.set()
        await self.go_on.wait()
        await self._hold.release()
        self.released.set()


def graph_of(store: SessionStore, ran: list[str], *, crash_in: str = "") -> Graph[Work]:
    """Plan, execute with an agent and its tools, verify; verify sends back once, then asks."""
    graph = Graph(Work, sessions=store)

    def entered(name: str) -> None:
        ran.append(name)
        if crash_in == name:
            raise KeyboardInterrupt

    @graph.step
    async def plan(state: Work, answer: str) -> Move[Work]:
        entered("plan")
        return goto("execute", replace(state, plan=("hear", "shout")))

    @graph.step
    async def execute(state: Work, answer: str) -> Move[Work]:
        entered("execute")
        provider = ScriptedProvider(ToolCall("1", "shout", {"text": state.task}), "ok")
        agent = Agent(provider, executor=Executor(Registry(shout), AllowEverything()))
        result = await agent.run(f"do {state.plan}")
        assert isinstance(result, Done)
        return goto("verify", replace(state, done=(*state.done, result.text), tries=state.tries + 1))

    @graph.step
    async def verify(state: Work, answer: str) -> Move[Work]:
        entered("verify")
        if answer:
            return halt(replace(state, log=(answer,)))
        return goto(execute, state) if state.tries < 2 else interrupt("ship it?", verify, state)

    return graph


async def test_steps_branch_loop_wait_and_end() -> None:
    ran: list[str] = []
    graph = graph_of(MemoryStore(), ran)
    waiting = await graph.run(Work("hello"), session="g")
    assert isinstance(waiting, GraphWaiting) and waiting.question == "ship it?"
    assert ran == ["plan", "execute", "verify", "execute", "verify"]
    assert isinstance(await graph.resume("g"), GraphWaiting)
    finished = await graph.resume("g", "yes")
    assert isinstance(finished, GraphFinished)
    assert finished.state == Work("hello", ("hear", "shout"), ("ok", "ok"), 2, ("yes",))
    assert await graph.resume("g") == finished


async def test_empty_question_waits_too() -> None:
    graph = Graph(Work)

    @graph.step
    async def ask(state: Work, answer: str) -> Move[Work]:
        return halt(state) if answer else interrupt("", ask, state)

    assert isinstance(await graph.run(Work("x"), session="g"), GraphWaiting)
    assert isinstance(await graph.resume("g"), GraphWaiting)
    assert isinstance(await graph.resume("g", "yes"), GraphFinished)


async def test_graph_resumes_with_the_unfinished_step(tmp_path: Path) -> None:
    ran: list[str] = []
    async with SqliteStore(tmp_path / "s.db") as store:
        with pytest.raises(KeyboardInterrupt):
            await graph_of(store, ran, crash_in="verify").run(Work("hello"), session="g")
    assert ran == ["plan", "execute", "verify"]
    ran.clear()
    async with SqliteStore(tmp_path / "s.db") as store:
        assert isinstance(await graph_of(store, ran).resume("g"), GraphWaiting)
    assert ran == ["verify", "execute", "verify"]


async def test_answer_sent_twice_reaches_no_other_step() -> None:
    graph, given = Graph(Work), list[str]()

    @graph.step
    async def ask(state: Work, answer: str) -> Move[Work]:
        return interrupt("delete the draft?", delete, state)

    @graph.step
    async def delete(state: Work, answer: str) -> Move[Work]:
        given.append(f"delete: {answer}")
        return goto(publish, state)

    @graph.step
    async def publish(state: Work, answer: str) -> Move[Work]:
        given.append(f"publish: {answer}")
        if len(given) == 2:
            raise OSError("the network is down")
        return halt(state)

    assert isinstance(await graph.run(Work("t"), session="s"), GraphWaiting)
    with pytest.raises(OSError, match="network"):
        await graph.resume("s", "yes")
    assert isinstance(await graph.resume("s", "yes"), GraphFinished)
    assert given == ["delete: yes", "publish: ", "publish: "]


async def test_answer_sent_twice_does_not_answer_the_next_question() -> None:
    graph = Graph(Work)

    @graph.step
    async def ask(state: Work, answer: str) -> Move[Work]:
        return interrupt("delete the draft?", ask_more, state)

    @graph.step
    async def ask_more(state: Work, answer: str) -> Move[Work]:
        return interrupt("delete everything?", end, state)

    @graph.step
    async def end(state: Work, answer: str) -> Move[Work]:
        return halt(replace(state, log=(answer,)))

    first = await graph.run(Work("t"), session="s")
    assert isinstance(first, GraphWaiting)
    second = await graph.resume("s", "yes", question=first.question)
    assert isinstance(second, GraphWaiting) and second.question == "delete everything?"
    assert await graph.resume("s", "yes", question=first.question) == second
    finished = await graph.resume("s", "no", question=second.question)
    assert isinstance(finished, GraphFinished) and finished.state.log == ("no",)


async def test_program_that_has_changed_is_told_what_is_gone() -> None:
    store = MemoryStore()
    assert isinstance(await graph_of(store, []).run(Work("hello"), session="g"), GraphWaiting)
    other = Graph(Work, sessions=store)

    @other.step
    async def check(state: Work, answer: str) -> Move[Work]:
        return halt(state)

    with pytest.raises(UsageError, match="step that is gone: there is no step 'verify'; the steps are check"):
        await other.resume("g", "yes")

    @dataclass(frozen=True)
    class Bill:
        amount: int

    bills = Graph(Bill, sessions=store)

    @bills.step
    async def verify(state: Bill, answer: str) -> Move[Bill]:
        return halt(state)

    with pytest.raises(UsageError, match="the state of session 'g' is no Bill any more: amount: Field required"):
        await bills.resume("g", "yes")


async def test_invalid_step_result_is_an_error() -> None:
    for wrong, said in ((None, "goto"), (Goto("nowhere", Work("x")), "no step 'nowhere'"), (Goto("bad", 5), "Work")):
        graph = Graph(Work)

        @graph.step
        async def bad(state: Work, answer: str, wrong: object = wrong) -> Move[Work]:
            return wrong  # type: ignore[return-value] - that is the point

        with pytest.raises(UsageError, match=said):
            await graph.run(Work("x"), session="g")


@pytest.mark.parametrize(
    ("wrong", "reason"),
    [
        (Work("a", tries="many"), "the state is no valid Work: tries: "),  # type: ignore[arg-type] - that is the point
        (Work("a", log=(object(),)), "the state cannot be stored as JSON"),  # type: ignore[arg-type] - as above
        (Work("a", log=(b"\xff",)), "the state cannot be stored as JSON"),  # type: ignore[arg-type] - as above
        (MoreWork("a", owner="Ada"), "the state must be a Work, got a MoreWork"),
    ],
)
async def test_state_that_could_not_be_read_again_is_not_stored(wrong: Work, reason: str) -> None:
    graph = Graph(Work)

    @graph.step
    async def first(state: Work, answer: str) -> Move[Work]:
        return interrupt("Go on?", first, state if answer else wrong)

    with pytest.raises(UsageError, match=reason):
        await graph.run(Work("right"), session="s")
    with pytest.raises(UsageError, match=reason):  # the step runs again, with the state before it
        await graph.resume("s")


async def test_state_with_aliases_and_computed_fields_is_stored_and_read_again() -> None:
    graph = Graph(Ticket)

    @graph.step
    async def check(state: Ticket, answer: str) -> Move[Ticket]:
        return halt(state) if answer else interrupt("Right?", check, state)

    ticket = Ticket.model_validate({"ticketId": 7})
    assert isinstance(await graph.run(ticket, session="s"), GraphWaiting)
    assert await graph.resume("s", "yes") == GraphFinished(ticket, "s")


def test_type_that_is_no_class_is_refused() -> None:
    with pytest.raises(UsageError, match="must be a dataclass or a pydantic model"):
        Graph(dict[str, int])


async def test_step_is_an_async_function_with_a_name() -> None:
    graph = Graph(Work)

    def plain(state: Work, answer: str) -> Move[Work]:
        return halt(state)

    graph.step(plain)  # type: ignore[arg-type] - that is the point
    with pytest.raises(UsageError, match="the step 'plain' must be an async function"):
        await graph.run(Work("a"), session="s")
    with pytest.raises(UsageError, match="async function with a name"):
        graph.step(partial(plain))  # type: ignore[arg-type] - that is the point


async def test_graph_rejects_endless_run_reused_session_same_step() -> None:
    graph = Graph(Work)
    with pytest.raises(UsageError, match="no steps"):
        await graph.run(Work("x"), session="g")

    @graph.step
    async def circle(state: Work, answer: str) -> Move[Work]:
        return goto("circle", state)

    with pytest.raises(UsageError, match="endless loop"):
        await graph.run(Work("x"), session="g")
    with pytest.raises(UsageError, match="resume"):
        await graph.run(Work("x"), session="g")
    with pytest.raises(UsageError, match="already"):
        graph.step(circle)


async def test_graph_session_has_one_runner() -> None:
    store = MemoryStore()
    graph = graph_of(store, [])
    hold = await store.hold("g")
    with pytest.raises(SessionBusy):
        await graph.run(Work("x"), session="g")
    await hold.release()


@pytest.mark.parametrize("resumed", [False, True])
async def test_graph_cancelled_twice_releases_its_session(resumed: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    store, inside = MemoryStore(), asyncio.Event()
    graph = Graph(Work, sessions=store)

    @graph.step
    async def wait(state: Work, answer: str) -> Move[Work]:
        if resumed and not answer:
            return interrupt("go on?", wait, state)
        inside.set()
        await asyncio.Event().wait()
        return halt(state)

    if resumed:
        await graph.run(Work("x"), session="g")
    hold = SlowHold(await store.hold("g"))

    async def give(session_id: str, *, owner: str = "") -> SlowHold:
        return hold

    with monkeypatch.context() as patched:
        patched.setattr(store, "hold", give)
        running = asyncio.create_task(graph.resume("g", "yes") if resumed else graph.run(Work("x"), session="g"))
        await inside.wait()
        running.cancel()
        await hold.releasing.wait()
        running.cancel()
        with pytest.raises(asyncio.CancelledError):
            await running
    hold.go_on.set()
    await asyncio.wait_for(hold.released.wait(), LONG_SECONDS)
    await (await store.hold("g")).release()


async def test_question_that_is_no_text_is_refused() -> None:
    graph = Graph(Work)

    @graph.step
    async def ask(state: Work, answer: str) -> Move[Work]:
        return interrupt(cast("str", 5), "ask", state)

    with pytest.raises(UsageError, match="the question of a step must be text, got 5"):
        await graph.run(Work("a"), session="s")
