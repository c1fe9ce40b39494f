"""Graphs: steps, branches, interruptions and checkpoints."""

from dataclasses import dataclass, field, replace
from pathlib import Path

import pytest

from callwright import Effect, Executor, Registry, ToolCall, UsageError, tool
from callwright.agent import Agent, Done, Graph, GraphFinished, GraphWaiting, goto, halt, interrupt
from callwright.agent.graph import Goto, Move
from callwright.policy import AllowEverything
from callwright.sessions import MemoryStore, SessionBusy, SessionStore, SqliteStore
from callwright.testing.fakes import ScriptedProvider


@dataclass(frozen=True)
class Work:
    """What the steps hand on."""

    task: str
    plan: tuple[str, ...] = ()
    done: tuple[str, ...] = ()
    tries: int = 0
    log: tuple[str, ...] = field(default=())


@tool(effect=Effect.READ)
async def shout(text: str) -> str:
    """Say it louder."""
    return text.upper()


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


async def test_invalid_step_result_is_an_error() -> None:
    for wrong, said in ((None, "goto"), (Goto("nowhere", Work("x")), "no step 'nowhere'"), (Goto("bad", 5), "Work")):
        graph = Graph(Work)

        @graph.step
        async def bad(state: Work, answer: str, wrong: object = wrong) -> Move[Work]:
            return wrong  # type: ignore[return-value] - that is the point

        with pytest.raises(UsageError, match=said):
            await graph.run(Work("x"), session="g")


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
