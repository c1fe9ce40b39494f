"""Approvals for a session hold after a restart, in that session and for exactly what was approved."""

from pathlib import Path

import pytest

from callwright import Agent, Answers, Decline, Executor, MemoryStore, Registry, SqliteStore, ToolCall, tool
from callwright.agent import Done, Paused
from callwright.core.access import WritePath
from callwright.core.calls import Approve, Reply
from callwright.policy import ByMode, Grants, PathContext, Policies, standard_policies
from callwright.sessions.records import Answered, Asked
from callwright.testing.fakes import ScriptedProvider
from callwright.toolbox import Bash

done: list[str] = []


@tool
async def change(name: str) -> str:
    """Change something; declares no accesses."""
    done.append(name)
    return "changed"


@tool(accesses=lambda arguments: [WritePath(str(arguments["path"]))])
async def save(path: str) -> str:
    """Write a file; declares its access."""
    done.append(path)
    return "saved"


CALLS = [ToolCall("c", "change", {"name": "a"}), ToolCall("c", "save", {"path": "/tmp/somewhere/a"})]
OTHERS = [ToolCall("c", "change", {"name": "b"}), ToolCall("c", "save", {"path": "/tmp/somewhere/b"})]


@pytest.fixture(autouse=True)
def _clean() -> None:
    done.clear()


async def ask_once(path: Path, call: ToolCall, reply: Reply) -> None:
    """Run a call in a first process that is answered like this."""
    async with SqliteStore(path) as store:
        agent = Agent(ScriptedProvider(call, "done"), executor=Executor(Registry(change, save)), sessions=store)
        paused = await agent.run("go", session="s")
        assert isinstance(paused, Paused)
        assert isinstance(await agent.resume("s", Answers({paused.questions[0].id: reply})), Done)


async def is_asked(path: Path, call: ToolCall, session: str = "s") -> bool:
    """Whether the same call is asked about in a second process."""
    async with SqliteStore(path) as store:
        agent = Agent(ScriptedProvider(call, "done"), executor=Executor(Registry(change, save)), sessions=store)
        return isinstance(await agent.run("again", session=session), Paused)


@pytest.mark.parametrize("place", [0, 1])
async def test_session_approval_holds_after_a_restart(tmp_path: Path, place: int) -> None:
    path = tmp_path / "s.db"
    await ask_once(path, CALLS[place], Approve(scope="session"))
    assert not await is_asked(path, CALLS[place])
    assert len(done) == 2
    assert await is_asked(path, OTHERS[place])
    assert await is_asked(path, CALLS[place], "another session")


@pytest.mark.parametrize("place", [0, 1])
@pytest.mark.parametrize("durable", [False, True])
async def test_session_approval_ends_with_its_session(tmp_path: Path, place: int, durable: bool) -> None:
    store = SqliteStore(tmp_path / "s.db") if durable else MemoryStore()
    provider = ScriptedProvider(CALLS[place], "done", CALLS[place], "done", CALLS[place])
    agent = Agent(provider, executor=Executor(Registry(change, save)), sessions=store)
    paused = await agent.run("go", session="s")
    assert isinstance(paused, Paused)
    assert isinstance(await agent.resume("s", Answers({paused.questions[0].id: Approve(scope="session")})), Done)
    assert isinstance(await agent.run("again", session="s"), Done)
    await store.delete("s")
    assert isinstance(await agent.run("go", session="s"), Paused)


async def test_session_may_be_granted_something_before_it_begins(tmp_path: Path) -> None:
    grants = Grants(PathContext.of(tmp_path))
    grants.grant([WritePath("/tmp/somewhere/a")], session="s")
    executor = Executor(Registry(change, save), Policies(grants, ByMode()))
    agent = Agent(ScriptedProvider(CALLS[1], "done"), executor=executor, sessions=MemoryStore())
    assert isinstance(await agent.run("go", session="s"), Done)


@pytest.mark.parametrize("place", [0, 1])
async def test_session_approval_does_not_hold_in_a_fork(tmp_path: Path, place: int) -> None:
    path = tmp_path / "s.db"
    await ask_once(path, CALLS[place], Approve(scope="session"))
    async with SqliteStore(path) as store:
        await store.fork("s", "copy")
    assert await is_asked(path, CALLS[place], "copy")
    assert len(done) == 1
    assert not await is_asked(path, CALLS[place])


async def test_session_approval_of_a_line_holds_after_a_restart(tmp_path: Path) -> None:
    path, call = tmp_path / "s.db", ToolCall("c", "bash", {"command": "touch made; echo x > made"})
    for asked in (True, False):
        async with SqliteStore(path) as store:
            executor = Executor(Registry(Bash(tmp_path, sandbox="off")), standard_policies(tmp_path))
            agent = Agent(ScriptedProvider(call, "done"), executor=executor, sessions=store)
            result = await agent.run("go", session="s")
            assert isinstance(result, Paused) is asked
            if isinstance(result, Paused):
                answers = Answers({result.questions[0].id: Approve(scope="session")})
                assert isinstance(await agent.resume("s", answers), Done)


@pytest.mark.parametrize("reply", [Approve(), Decline("no")])
async def test_other_answers_do_not_hold(tmp_path: Path, reply: Reply) -> None:
    path = tmp_path / "s.db"
    await ask_once(path, CALLS[0], reply)
    assert await is_asked(path, CALLS[0])


@pytest.mark.parametrize("place", [0, 1])
async def test_permanent_approval_is_not_restored_from_the_record(tmp_path: Path, place: int) -> None:
    """It became a rule; a user who removed the rule from the settings must be asked again."""
    path = tmp_path / "s.db"
    await ask_once(path, CALLS[place], Approve(scope="always"))
    assert await is_asked(path, CALLS[place])


async def test_answer_that_never_counted_grants_nothing(tmp_path: Path) -> None:
    path = tmp_path / "s.db"
    async with SqliteStore(path) as store:
        agent = Agent(ScriptedProvider(CALLS[0]), executor=Executor(Registry(change)), sessions=store)
        paused = await agent.run("go", session="s")
        assert isinstance(paused, Paused)
        hold = await store.hold("s")
        (asked,) = [record for record in hold.records if isinstance(record, Asked)]
        await hold.append(Answered({asked.questions[0].id: Approve(scope="session")}))
        await hold.release()
    async with SqliteStore(path) as store:
        agent = Agent(ScriptedProvider("never mind", CALLS[0]), executor=Executor(Registry(change)), sessions=store)
        assert isinstance(await agent.run("something else", session="s"), Done)
        assert isinstance(await agent.run("again", session="s"), Paused)
    assert done == []
