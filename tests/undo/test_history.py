"""Undo, redo and rewind of sessions: what the model sees afterwards, what the files are, and who may do it."""

import asyncio
import shutil
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.waiting import until

from callwright import Answers, Executor, MemoryStore, Registry, SqliteStore, ToolCall
from callwright.agent import Agent, Done, Paused
from callwright.agent.undo import RewindScope, UndoConflict, UndoHistory
from callwright.core.errors import UsageError
from callwright.core.messages import Message, UserMessage
from callwright.policy import AllowEverything
from callwright.sessions import SessionBusy, SessionError, SessionStore
from callwright.sessions.records import Rewound, Said, UndoPoint, follow_rewinds
from callwright.system.undo.kept_content import UndoError
from callwright.system.undo.undo_store import UndoStore
from callwright.testing.fakes import ScriptedProvider
from callwright.toolbox import Bash, Edit, Write


def write(path: str, content: str, call_id: str = "1") -> ToolCall:
    return ToolCall(call_id, "write", {"path": path, "content": content, "overwrite": True})


class Scene:
    """An agent with files, a store and an undo store."""

    def __init__(self, folder: Path, store: SessionStore, *script: Any, policy: Any = None) -> None:
        self.root = folder / "workspace"
        self.root.mkdir(exist_ok=True)
        self.store = store
        self.kept = UndoStore(folder / "kept")
        self.provider = ScriptedProvider(*script)
        tools = Registry(Write(self.root), Edit(self.root), Bash(self.root))
        executor = Executor(tools, policy or AllowEverything())
        self.agent = Agent(self.provider, executor=executor, sessions=store, undo=self.kept)
        self.history = UndoHistory(store, "s", self.kept)

    async def say(self, prompt: str) -> Any:
        return await self.agent.run(prompt, session="s")

    async def texts(self) -> list[str]:
        return [_text(message) for message in await self.agent.messages("s") if isinstance(message, UserMessage)]


def _text(message: Message) -> str:
    return str(getattr(message, "content", ""))


@pytest.fixture(params=["memory", "sqlite"])
def store(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[SessionStore]:
    if request.param == "memory":
        yield MemoryStore()
        return
    store = SqliteStore(tmp_path / "sessions.db")
    yield store
    store.close()


async def three_prompts(tmp_path: Path, store: SessionStore) -> Scene:
    script = (write("a", "1"), "one", write("a", "2"), "two", "three", "four")
    scene = Scene(tmp_path, store, *script)
    (scene.root / "a").write_text("0")
    for prompt in ("first", "second", "third"):
        assert isinstance(await scene.say(prompt), Done)
    return scene


async def test_points_are_the_prompts_with_their_files(tmp_path: Path, store: SessionStore):
    scene = await three_prompts(tmp_path, store)
    points = await scene.history.points()
    assert [point.label for point in points] == ["first", "second", "third"]
    assert [[Path(path).name for path in point.paths] for point in points] == [["a"], ["a"], []]
    assert all(point.at and not point.problem for point in points)


async def test_undo_returns_to_the_prompt_before(tmp_path: Path, store: SessionStore):
    scene = await three_prompts(tmp_path, store)
    assert (await scene.history.rewind()).paths == ()
    done = await scene.history.rewind()
    assert done.label == "second" and [Path(path).name for path in done.restored] == ["a"]
    assert (scene.root / "a").read_text() == "1" and await scene.texts() == ["first"]
    await scene.say("other")
    assert await scene.texts() == ["first", "other"]
    seen = str(scene.provider.requests[-1].messages)  # the conversation up to the point
    assert "'first'" in seen and "'second'" not in seen
    assert [point.label for point in await scene.history.points()] == ["first", "other"]


async def test_redo_takes_undos_back_one_by_one(tmp_path: Path, store: SessionStore):
    scene = await three_prompts(tmp_path, store)
    for _ in range(3):
        await scene.history.rewind()
    assert (scene.root / "a").read_text() == "0" and await scene.texts() == []
    with pytest.raises(UndoError, match="nothing to undo"):
        await scene.history.rewind()
    for content, texts in (("1", ["first"]), ("2", ["first", "second"]), ("2", ["first", "second", "third"])):
        await scene.history.redo()
        assert (scene.root / "a").read_text() == content and await scene.texts() == texts
    with pytest.raises(UndoError, match="nothing to redo"):
        await scene.history.redo()
    await scene.history.rewind("2")  # and again, after a redo
    assert (scene.root / "a").read_text() == "1" and await scene.texts() == ["first"]


async def test_prompt_ends_what_can_be_redone(tmp_path: Path, store: SessionStore):
    scene = await three_prompts(tmp_path, store)
    await scene.history.rewind("2")
    await scene.say("other")
    with pytest.raises(UndoError, match="nothing to redo"):
        await scene.history.redo()


async def test_conversation_only_keeps_files(tmp_path: Path, store: SessionStore):
    scene = await three_prompts(tmp_path, store)
    await scene.history.rewind("2", scope="conversation")
    assert (scene.root / "a").read_text() == "2" and await scene.texts() == ["first"]
    await scene.history.rewind("1")  # what the rewound prompt had changed is undone as well
    assert (scene.root / "a").read_text() == "0" and await scene.texts() == []


async def test_files_only_keeps_the_conversation_and_tells_the_model(tmp_path: Path, store: SessionStore):
    scene = await three_prompts(tmp_path, store)
    await scene.history.rewind("1", scope="files")
    assert (scene.root / "a").read_text() == "0"
    texts = await scene.texts()
    assert texts[:3] == ["first", "second", "third"] and "undone" in texts[3] and "a" in texts[3]
    await scene.history.redo()
    assert (scene.root / "a").read_text() == "2" and await scene.texts() == ["first", "second", "third"]


async def test_dry_run_changes_nothing(tmp_path: Path, store: SessionStore):
    scene = await three_prompts(tmp_path, store)
    records = await store.read("s")
    planned = await scene.history.rewind("1", dry_run=True)
    assert [Path(path).name for path in planned.restored] == ["a"]
    assert (scene.root / "a").read_text() == "2" and await store.read("s") == records


@pytest.mark.parametrize("scope", ["both", "files"])
async def test_foreign_change_stops_everything(tmp_path: Path, store: SessionStore, scope: RewindScope):
    scene = await three_prompts(tmp_path, store)
    (scene.root / "a").write_text("mine")
    with pytest.raises(UndoConflict) as caught:
        await scene.history.rewind("2", scope=scope)
    assert caught.value.paths == (str(scene.root / "a"),)
    assert (scene.root / "a").read_text() == "mine" and len(await scene.texts()) == 3
    await scene.history.rewind("2", scope=scope, overwrite=True)
    assert (scene.root / "a").read_text() == "1"
    await scene.history.redo()
    assert (scene.root / "a").read_text() == "mine"


async def test_folder_that_was_removed_since_is_made_again(tmp_path: Path, store: SessionStore):
    scene = Scene(tmp_path, store, write("lib/core/a", "1"), "one")
    (scene.root / "lib/core").mkdir(parents=True)
    (scene.root / "lib/core/a").write_text("0")
    await scene.say("first")
    shutil.rmtree(scene.root / "lib")
    with pytest.raises(UndoConflict):
        await scene.history.rewind()
    done = await scene.history.rewind(overwrite=True)
    assert done.restored == (str(scene.root / "lib/core/a"),) and done.removed == ()
    assert (scene.root / "lib/core/a").read_text() == "0"
    await scene.history.redo()
    assert not (scene.root / "lib").exists()


async def test_foreign_change_between_turns_is_not_lost(tmp_path: Path, store: SessionStore):
    scene = Scene(tmp_path, store, write("a", "1"), "one", write("a", "2"), "two")
    await scene.say("first")
    (scene.root / "a").write_text("mine")
    await scene.say("second")
    with pytest.raises(UndoConflict):
        await scene.history.rewind("1")
    await scene.history.rewind()  # of the second prompt alone it is known
    assert (scene.root / "a").read_text() == "mine"


async def test_history_of_another_process_is_found(tmp_path: Path):
    first = SqliteStore(tmp_path / "sessions.db")
    scene = await three_prompts(tmp_path, first)
    async with SqliteStore(tmp_path / "sessions.db") as second:
        await UndoHistory(second, "s", UndoStore(tmp_path / "kept")).rewind("2")
    assert (scene.root / "a").read_text() == "1"
    await scene.say("on")  # the first process goes on from there
    assert await scene.texts() == ["first", "on"]
    await scene.history.rewind("1")
    assert (scene.root / "a").read_text() == "0"
    first.close()


async def test_session_in_use_cannot_be_rewound(tmp_path: Path, store: SessionStore):
    scene = await three_prompts(tmp_path, store)
    hold = await store.hold("s")
    with pytest.raises(SessionBusy):
        await scene.history.rewind()
    await hold.release()
    assert (scene.root / "a").read_text() == "2"
    with pytest.raises(SessionError, match="no session"):
        await UndoHistory(store, "other", scene.kept).rewind()
    with pytest.raises(UsageError, match="conversation"):
        await scene.history.rewind(scope="all")  # type: ignore[arg-type] - a mistake


async def test_unwritable_session_keeps_the_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    scene = await three_prompts(tmp_path, MemoryStore())
    hold = await scene.store.hold("s")
    await hold.release()

    async def fail(self: object, *records: object) -> None:
        raise SessionError("the disk is full")

    monkeypatch.setattr(type(hold), "append", fail)
    with pytest.raises(SessionError, match="full"):
        await scene.history.rewind("1")
    assert (scene.root / "a").read_text() == "2"


async def test_redo_that_was_not_recorded_is_redone_again(tmp_path: Path, store: SessionStore):
    scene = await three_prompts(tmp_path, store)
    await scene.history.rewind("1")
    with pytest.MonkeyPatch.context() as patched:
        hold = await store.hold("s")
        await hold.release()

        async def fail(self: object, *records: object) -> None:
            raise SessionError("the disk is full")

        patched.setattr(type(hold), "append", fail)
        with pytest.raises(SessionError, match="full"):
            await scene.history.redo()
    assert (scene.root / "a").read_text() == "2"
    again = UndoHistory(store, "s", UndoStore(tmp_path / "kept"))  # as another process finds it
    await again.redo()
    assert (scene.root / "a").read_text() == "2" and await scene.texts() == ["first", "second", "third"]
    await again.rewind("1")
    assert (scene.root / "a").read_text() == "0"


async def _rewind_killed_before_its_record(scene: Scene) -> None:
    """Restore files, and do not come to writing the record."""
    hold = await scene.store.hold("s")
    await hold.release()

    class Killed(BaseException):
        """Ends the task where the process would end."""

    async def die(self: object, *records: object) -> None:
        raise Killed

    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(type(hold), "append", die)
        with pytest.raises(Killed):
            await scene.history.rewind("1")
    assert (scene.root / "a").read_text() == "0"


async def test_rewind_killed_before_its_record_is_taken_back_by_the_next_prompt(tmp_path: Path, store: SessionStore):
    scene = await three_prompts(tmp_path, store)
    await _rewind_killed_before_its_record(scene)
    again = Scene(tmp_path, store, "four")  # as another process finds it
    await again.say("fourth")
    assert (again.root / "a").read_text() == "2"
    assert await again.texts() == ["first", "second", "third", "fourth"]
    await again.history.rewind("1")
    assert (again.root / "a").read_text() == "0"


async def test_rewind_killed_before_its_record_is_done_again_and_redone_whole(tmp_path: Path, store: SessionStore):
    scene = await three_prompts(tmp_path, store)
    await _rewind_killed_before_its_record(scene)
    again = UndoHistory(store, "s", UndoStore(tmp_path / "kept"))
    assert [Path(path).name for path in (await again.rewind("1")).restored] == ["a"]
    assert (scene.root / "a").read_text() == "0" and await scene.texts() == []
    await again.redo()
    assert (scene.root / "a").read_text() == "2" and await scene.texts() == ["first", "second", "third"]


async def test_rewind_killed_before_its_record_leaves_what_was_changed_since(tmp_path: Path, store: SessionStore):
    scene = await three_prompts(tmp_path, store)
    await _rewind_killed_before_its_record(scene)
    (scene.root / "a").write_text("by hand")
    again = UndoHistory(store, "s", UndoStore(tmp_path / "kept"))
    with pytest.raises(UndoError, match="nothing to redo"):
        await again.redo()
    assert (scene.root / "a").read_text() == "by hand"


async def test_rewind_of_an_older_session_of_the_same_name_stays(tmp_path: Path):
    scene = await three_prompts(tmp_path, MemoryStore())
    await scene.history.rewind("1")
    again = Scene(tmp_path, MemoryStore(), "one", "two")  # as after a restart of a program that keeps no sessions
    for prompt in ("first", "second"):
        await again.say(prompt)
    assert (again.root / "a").read_text() == "0"


async def test_cancelled_rewind_keeps_files_and_conversation_together(tmp_path: Path, store: SessionStore):
    scene = await three_prompts(tmp_path, store)
    log, restored = scene.kept.open("s"), threading.Event()
    apply = log.apply

    def apply_slowly(*given: Any, **named: Any) -> Any:
        result = apply(*given, **named)
        restored.set()
        time.sleep(0.1)
        return result

    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(log, "apply", apply_slowly)
        rewinding = asyncio.create_task(scene.history.rewind("1"))
        await until(restored.is_set)
        rewinding.cancel()
        with pytest.raises(asyncio.CancelledError):
            await rewinding
    assert (scene.root / "a").read_text() == "0" and await scene.texts() == []
    await scene.history.redo()
    assert (scene.root / "a").read_text() == "2" and await scene.texts() == ["first", "second", "third"]


async def test_prompt_after_answers_begins_after_the_answered_calls(tmp_path: Path, store: SessionStore):
    scene = Scene(tmp_path, store, write("a", "1"), "done", policy=_AskForWrites())
    paused = await scene.say("write it")
    assert isinstance(paused, Paused)
    answers = Answers()
    answers.approve(paused.questions[0])
    assert isinstance(await scene.agent.resume("s", answers, prompt="thanks"), Done)
    assert [len(point.paths) for point in await scene.history.points()] == [1, 0]
    assert (await scene.history.rewind()).paths == () and (scene.root / "a").read_text() == "1"


async def test_pending_approval_is_rewound(tmp_path: Path, store: SessionStore):
    scene = Scene(tmp_path, store, write("a", "1"), "again", "done", policy=_AskForWrites())
    paused = await scene.say("write it")
    assert isinstance(paused, Paused)
    await scene.history.rewind()
    assert await scene.texts() == [] and not (scene.root / "a").exists()
    assert isinstance(await scene.say("something else"), Done)
    answers = Answers()
    answers.approve(paused.questions[0])
    assert isinstance(await scene.agent.resume("s", answers), Done)
    assert not (scene.root / "a").exists()  # the answer was for a question that is not asked any more


async def test_fork_copies_the_conversation_not_the_changes(tmp_path: Path, store: SessionStore):
    scene = await three_prompts(tmp_path, store)
    await store.fork("s", "copy")
    copy = UndoHistory(store, "copy", scene.kept)
    with pytest.raises(UndoError, match="copied"):
        await copy.rewind("1")
    assert (await copy.rewind("1", scope="conversation")).conversation
    assert (scene.root / "a").read_text() == "2"


async def test_parallel_calls_of_one_turn_are_one_change(tmp_path: Path, store: SessionStore):
    calls = [write(f"{number}", "new", f"c{number}") for number in range(8)]
    scene = Scene(tmp_path, store, calls, "done")
    for number in range(0, 8, 2):
        (scene.root / f"{number}").write_text("old")
    await scene.say("go")
    assert len(scene.kept.open("s").history.sets) == 1
    await scene.history.rewind()
    assert {path.name: path.read_text() for path in scene.root.iterdir()} == {f"{n}": "old" for n in range(0, 8, 2)}


async def test_inner_agents_change_for_the_outer_turn(tmp_path: Path, store: SessionStore):
    scene = Scene(tmp_path, store)
    (scene.root / "a").write_text("old")
    line = ToolCall("1", "bash", {"command": "echo by a command > b; echo more >> a"})
    inner = [ScriptedProvider(write("a", "inner"), line, "inner done"), ScriptedProvider(write("c", "new"), "done")]
    tools = [
        Agent(provider, executor=scene.agent.executor).as_tool(f"helper{number}", "Helps.")
        for number, provider in enumerate(inner)
    ]
    calls = [ToolCall(f"h{number}", f"helper{number}", {"prompt": "do it"}) for number in range(2)]
    executor = Executor(Registry(*tools), AllowEverything())
    outer = Agent(ScriptedProvider(calls, "all done"), executor=executor, sessions=store, undo=scene.kept)
    assert isinstance(await outer.run("go", session="s"), Done)
    assert (scene.root / "b").exists() and (scene.root / "a").read_text() == "innermore\n"
    assert len(scene.kept.open("s").history.sets) == 1
    await scene.history.rewind()
    assert {path.name: path.read_text() for path in scene.root.iterdir()} == {"a": "old"}


async def test_cancelled_command_is_undone(tmp_path: Path, store: SessionStore):
    line = ToolCall("1", "bash", {"command": "echo new > a; touch started; sleep 60"})
    scene = Scene(tmp_path, store, line)
    run = asyncio.ensure_future(scene.say("go"))
    while not (scene.root / "started").exists():  # noqa: ASYNC110 - made by another process
        await asyncio.sleep(0.01)
    run.cancel()
    with pytest.raises(asyncio.CancelledError):
        await run
    await scene.history.rewind()
    assert not [*scene.root.iterdir()]


async def test_agent_without_undo_keeps_nothing(tmp_path: Path):
    scene = Scene(tmp_path, MemoryStore(), write("a", "1"), "done")
    scene.agent.undo = None
    await scene.say("go")
    assert not any(isinstance(record, UndoPoint) for record in await scene.store.read("s"))
    with pytest.raises(UndoError, match="nothing to undo"):
        await scene.history.rewind()


def test_rewinds_of_rewinds_are_followed():
    prompt = [Said(UserMessage(str(number))) for number in range(4)]
    records = [prompt[0], prompt[1], Rewound(1), prompt[2], Rewound(2, redo=True), Rewound(0), prompt[3]]
    assert follow_rewinds(records[:3]) == [0, 2]
    assert follow_rewinds(records[:5]) == [0, 1, 4]
    assert follow_rewinds(records) == [5, 6]


class _AskForWrites(AllowEverything):
    def judge(self, access: Any, subject: Any) -> Any:
        from callwright import Ask

        return Ask("a write") if type(access).__name__ == "WritePath" else super().judge(access, subject)
