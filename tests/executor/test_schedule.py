"""Conflicts between calls, and the order in which a turn runs them."""

import asyncio
import os
from collections.abc import Callable, Sequence
from contextvars import ContextVar
from pathlib import Path, PurePath, PurePosixPath
from typing import Any, cast

import pytest
from hypothesis import given, strategies as st

from callwright import (
    Annotations,
    Completed,
    DeletePath,
    DeleteResource,
    Effect,
    Executor,
    Failed,
    Limits,
    ReadPath,
    ReadResource,
    Registry,
    ToolCall,
    Turn,
    WritePath,
    WriteResource,
    tool,
)
from callwright.core.access import Access, Reach, RunCommand, UseTool
from callwright.core.errors import Cancelled
from callwright.core.events import CallWaits
from callwright.executor import TurnLimits
from callwright.executor.conflicts import find_conflicts
from callwright.policy import AllowEverything
from callwright.testing import Gauge, Recorder
from callwright.tool.base import Cancellation

READ, WRITE = Annotations(Effect.READ), Annotations(Effect.WRITE)
Call = tuple[Annotations, Sequence[Access]]


def test_calls_on_different_files_do_not_wait() -> None:
    assert find_conflicts([(WRITE, [WritePath("/w/a")]), (WRITE, [WritePath("/w/b")]), (READ, [ReadPath("/w/c")])]) == [
        set(),
        set(),
        set(),
    ]


def test_reads_around_a_write_keep_their_order() -> None:
    assert find_conflicts([(READ, [ReadPath("/a")]), (WRITE, [WritePath("/a")]), (READ, [ReadPath("/a")])]) == [
        set(),
        {0},
        {1},
    ]


def test_folder_conflicts_with_its_content_only() -> None:
    calls: list[Call] = [
        (WRITE, [WritePath("/w/src/a.py")]),
        (READ, [ReadPath("/w/src")]),
        (READ, [ReadPath("/w/src-old")]),
        (WRITE, [DeletePath("/w")]),
    ]
    assert find_conflicts(calls) == [set(), {0}, set(), {0, 1, 2}]


def test_all_spellings_of_a_path_conflict(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "real").mkdir()
    (tmp_path / "link").symlink_to("real")
    monkeypatch.chdir(tmp_path)
    file = f"{tmp_path}/real/a"
    for spelling in ("real/a", "./real/a", "link/a", "link/../real/a", f"{tmp_path}/link/a", f"/{file}"):
        first: Call = (WRITE, [WritePath(file)])
        assert find_conflicts([first, (WRITE, [WritePath(spelling)])]) == [set(), {0}], spelling
        assert find_conflicts([first, (READ, [ReadPath(spelling)])]) == [set(), {0}], spelling
        assert find_conflicts([first, (READ, [RunCommand("ls", spelling, Effect.READ)])]) == [set(), {0}], spelling
    (tmp_path / "real" / "out").symlink_to("/elsewhere")
    for used in ("link/out/x", "/elsewhere/x"):  # by the folder that has the link, and by the one that has the file
        calls: list[Call] = [(READ, [ReadPath("real/out/x")]), (WRITE, [DeletePath(used.removesuffix("/out/x"))])]
        assert find_conflicts(calls) == [set(), {0}], used
    assert find_conflicts([(WRITE, [WritePath("a\0b")]), (WRITE, [WritePath("a\0b")])]) == [set(), {0}]


def test_paths_of_a_removed_folder_conflict(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    tmp_path.rmdir()
    assert find_conflicts([(WRITE, [WritePath("a")]), (WRITE, [WritePath("./a")])]) == [set(), {0}]


def test_write_without_accesses_runs_alone() -> None:
    calls: list[Call] = [(READ, []), (WRITE, []), (READ, []), (READ, [ReadPath("/a")])]
    assert find_conflicts(calls) == [set(), {0}, {1}, {1}]


def test_commands_and_changes_keep_their_order() -> None:
    command = RunCommand("make", "/w")
    calls: list[Call] = [
        (WRITE, [WritePath("/elsewhere/x")]),
        (Annotations(Effect.DESTROY), [command]),
        (READ, [ReadPath("/elsewhere/y")]),
        (READ, [ReadPath("/w/out")]),
        (WRITE, [WritePath("/elsewhere/z")]),
    ]
    assert find_conflicts(calls) == [set(), {0}, set(), {1}, {1}]


def test_reading_command_runs_beside_reads() -> None:
    look = RunCommand("git status", "/w", Effect.READ)
    assert find_conflicts([(READ, [look]), (READ, [ReadPath("/w/a")]), (READ, [look])]) == [set(), set(), set()]


def test_paths_outside_the_cwd_of_a_command_conflict() -> None:
    look = RunCommand("cat /x/a", "/w", Effect.READ, (ReadPath("/x/a"),))
    make = RunCommand("make", "/w", Effect.WRITE, (WritePath("/x/b"),))
    assert find_conflicts([(READ, [look]), (WRITE, [WritePath("/x/a")]), (WRITE, [WritePath("/x/c")])]) == [
        set(),
        {0},
        set(),
    ]
    assert find_conflicts([(WRITE, [make]), (READ, [ReadPath("/x/b")]), (READ, [ReadPath("/x/c")])]) == [
        set(),
        {0},
        set(),
    ]


def test_parallel_flag_overrides_accesses() -> None:
    always, never = Annotations(Effect.WRITE, parallel=True), Annotations(Effect.READ, parallel=False)
    assert find_conflicts([(always, []), (always, [])]) == [set(), set()]
    assert find_conflicts([(READ, []), (never, []), (READ, [])]) == [set(), {0}, {1}]


def test_resources_conflict_by_uri_prefix() -> None:
    calls: list[Call] = [
        (WRITE, [WriteResource("db://x/users/1")]),
        (WRITE, [WriteResource("db://x/users/12")]),
        (READ, [ReadResource("db://x/users")]),
        (READ, [ReadResource("db://x/orders")]),
        (WRITE, [DeleteResource("db://x")]),
        (READ, [ReadResource("tickets://x/1")]),
    ]
    assert find_conflicts(calls) == [set(), set(), {0, 1}, set(), {0, 1, 2, 3}, set()]


def test_spellings_of_one_resource_conflict() -> None:
    spellings = ["db://x/users/1", "DB://X/users/1/", "db://x/a/../users/%31", "db://x/users%2f1", "db://x//users\\1"]
    calls: list[Call] = [(WRITE, [WriteResource(spelling)]) for spelling in spellings]
    assert find_conflicts(calls) == [set(), {0}, {1}, {2}, {3}]


def test_a_query_belongs_to_its_resource() -> None:
    row = (WRITE, [WriteResource("crm:contact?id=1")])
    other = (WRITE, [WriteResource("crm:contact?id=2")])
    assert find_conflicts([row, other, (READ, [ReadResource("crm:contact")])]) == [set(), set(), {0, 1}]


def test_a_command_and_a_resource_write_keep_their_order() -> None:
    command = (Annotations(Effect.DESTROY), [RunCommand("make", "/w")])
    assert find_conflicts([command, (WRITE, [WriteResource("db://x/1")]), (READ, [ReadResource("db://x/2")])]) == [
        set(),
        {0},
        set(),
    ]


uris = st.sampled_from(["db://x", "db://x/a", "db://x/a/b", "DB://X/%61/", "db://x/ab", "db://x/a?q", "t:1"])
paths = st.sampled_from(["/", "/a", "/a/b", "/a/b/c", "/ab", "/a/../a/b", "/d"])
accesses = st.one_of(
    st.builds(ReadPath, paths),
    st.builds(WritePath, paths),
    st.builds(DeletePath, paths),
    st.builds(RunCommand, st.just("x"), paths, st.sampled_from(Effect)),
    st.builds(Reach, st.just("https://x"), st.sampled_from(Effect)),
    st.builds(ReadResource, uris),
    st.builds(WriteResource, uris),
    st.builds(DeleteResource, uris),
    st.builds(UseTool, st.just("t"), st.sampled_from(Effect)),
)
annotated = st.builds(Annotations, st.sampled_from(Effect), parallel=st.sampled_from([None, None, None, True, False]))
batches = st.lists(st.tuples(annotated, st.lists(accesses, max_size=3)), max_size=10)


def conflict(first: Call, second: Call) -> bool:
    """The documented rule, checked pair by pair."""
    if first[0].parallel is True or second[0].parallel is True:
        return False
    if any(c[0].parallel is False or (not c[1] and c[0].effect > Effect.READ) for c in (first, second)):
        return True
    if any(meet(a, b) for a in first[1] for b in second[1]):
        return True
    return (commands(first) and changes_any(second)) or (changes_any(first) and commands(second))


def meet(one: Access, other: Access) -> bool:
    first, second = resource(one), resource(other)
    if first and second and (changing(one) or changing(other)):
        return first == second or first[: len(second)] == second or second[: len(first)] == first
    a, b = place(one), place(other)
    if a is None or b is None or not (changing(one) or changing(other)):
        return False
    return a == b or PurePath(a) in PurePath(b).parents or PurePath(b) in PurePath(a).parents


def resource(access: Access) -> list[str]:
    """The parts of the URIs above, which one lower-case, one encoding and one slash away are all the spellings."""
    uri = getattr(access, "uri", "")
    return uri.lower().replace("%61", "a").rstrip("/").replace("?", "/").split("/") if uri else []


def place(access: Access) -> str | None:
    path = getattr(access, "path", None) or getattr(access, "cwd", None)
    return None if path is None else os.path.normpath(path)


def changing(access: Access) -> bool:
    kinds = (WritePath, DeletePath, WriteResource, DeleteResource)
    return isinstance(access, kinds) or getattr(access, "effect", Effect.READ) > Effect.READ


def commands(call: Call) -> bool:
    return any(isinstance(access, RunCommand) and changing(access) for access in call[1])


def changes_any(call: Call) -> bool:
    return any(changing(access) for access in call[1])


@given(batches)
def test_exactly_the_conflicting_calls_are_ordered(calls: list[Call]) -> None:
    before = find_conflicts(calls)
    reach: list[set[int]] = []
    for others in before:
        reach.append(others.union(*(reach[other] for other in others)))
    for later in range(len(calls)):
        for earlier in range(later):
            if conflict(calls[earlier], calls[later]):
                assert earlier in reach[later]
        for direct in before[later]:
            assert conflict(calls[direct], calls[later]), "a call waits without a conflict"


async def test_only_conflicting_calls_run_one_after_the_other() -> None:
    gauge = Gauge()
    executor = Executor(Registry(gauge), AllowEverything())
    calls = [
        ToolCall("1", "gauge", {"reads": ["/x/a"], "label": "old"}),
        ToolCall("2", "gauge", {"writes": ["/x/a"], "label": "write"}),
        ToolCall("3", "gauge", {"reads": ["/x/a"], "label": "new"}),
        ToolCall("4", "gauge", {"writes": ["/y"], "label": "aside"}),
    ]
    outcomes = await executor.execute(calls)
    assert [outcome.text for outcome in outcomes if isinstance(outcome, Completed)] == ["old", "write", "new", "aside"]
    order = [entry for entry in gauge.log if entry[1:] in ("old", "write", "new")]
    assert order == ["+old", "-old", "+write", "-write", "+new", "-new"]
    assert gauge.peak == 2


async def test_turn_runs_at_most_width_calls_at_once() -> None:
    gauge = Gauge.with_spec(READ)
    outcomes = await Executor(Registry(gauge), width=7).execute([ToolCall(str(n), "gauge", {}) for n in range(200)])
    assert len(outcomes) == 200
    assert gauge.peak == 7


async def test_tool_at_its_limit_does_not_delay_other_tools() -> None:
    narrow = Gauge.with_spec(READ, Limits(concurrency=1), "narrow")
    wide = Gauge.with_spec(READ, name="wide")
    executor = Executor(Registry(narrow, wide), width=4)
    calls = [ToolCall(f"n{n}", "narrow", {}) for n in range(50)] + [ToolCall(f"w{n}", "wide", {}) for n in range(50)]
    outcomes = await executor.execute(calls)
    assert all(isinstance(outcome, Completed) for outcome in outcomes)
    assert narrow.peak == 1
    assert wide.peak == 3


async def test_calls_waiting_for_their_tool_use_no_width() -> None:
    from callwright import tool

    released = asyncio.Event()

    @tool(effect=Effect.READ, limits=Limits(seconds=60, concurrency=1))
    async def narrow() -> str:
        """Wait until the test releases it."""
        await released.wait()
        return "released"

    @tool(effect=Effect.READ)
    async def release() -> str:
        """Release the others."""
        released.set()
        return "done"

    calls = [ToolCall("1", "narrow"), ToolCall("2", "narrow"), ToolCall("3", "release")]
    outcomes = await Executor(Registry(narrow, release), width=2).execute(calls)
    assert all(isinstance(outcome, Completed) for outcome in outcomes)


async def test_thousand_sync_calls_all_complete() -> None:
    import threading

    from callwright import tool

    seen: set[str] = set()

    @tool(effect=Effect.READ)
    def quick() -> str:
        """Say who ran it."""
        seen.add(threading.current_thread().name)
        return "done"

    outcomes = await Executor(Registry(quick)).execute([ToolCall(str(n), "quick") for n in range(1000)])
    assert [outcome.call.id for outcome in outcomes] == [str(n) for n in range(1000)]
    assert all(isinstance(outcome, Completed) for outcome in outcomes)
    assert len(seen) <= 64


async def test_observers_learn_what_a_call_waits_for() -> None:
    recorder = Recorder()
    calls = [
        ToolCall("1", "gauge", {"writes": ["/x/a"]}),
        ToolCall("2", "gauge", {"writes": ["/x/a"]}),
        ToolCall("3", "gauge", {"writes": ["/x/b"]}),
        ToolCall("4", "gauge", {"writes": ["/x/c"]}),
    ]
    executor = Executor(Registry(Gauge()), AllowEverything(), observe=recorder, limits=TurnLimits(width=2))
    await executor.execute(calls)
    waits = [event for event in recorder.events if isinstance(event, CallWaits)]
    # 2 waits for a conflicting call, 4 only for room
    assert [(event.call.id, [call.id for call in event.on]) for event in waits] == [("2", ["1"]), ("4", [])]
    assert recorder.names.index("CallWaits") < recorder.names.index("CallEnded")


async def test_calls_that_end_without_waiting_share_a_task_and_others_do_not() -> None:
    owners: dict[str, list[object]] = {}

    @tool(effect=Effect.READ)
    async def work(name: str, waits: bool) -> str:
        """Note the task before and after a wait."""
        owners[name] = [asyncio.current_task()]
        if waits:
            await asyncio.sleep(0)
            owners[name].append(asyncio.current_task())
        return name

    calls = [
        ToolCall(str(at), "work", {"name": str(at), "waits": waits})
        for at, waits in enumerate((False, False, True, False, True))
    ]
    outcomes = await Executor(Registry(work)).execute(calls)
    assert [outcome.text for outcome in outcomes] == ["0", "1", "2", "3", "4"]
    assert owners["0"] == owners["1"] == owners["2"][:1]
    assert owners["2"][0] is owners["2"][1] and owners["4"][0] is owners["4"][1]
    assert len({owners["2"][0], owners["3"][0], owners["4"][0], asyncio.current_task()}) == 4


async def test_task_that_waits_has_the_name_of_its_tool() -> None:
    names: list[str] = []

    @tool(effect=Effect.READ)
    async def quick() -> str:
        """Do not wait."""
        return ""

    @tool(effect=Effect.READ)
    async def slow() -> str:
        """Wait, and note the name of the task."""
        await asyncio.sleep(0)
        task = asyncio.current_task()
        assert task is not None
        names.append(task.get_name())
        return ""

    calls = [ToolCall(str(at), name, "{}") for at, name in enumerate(("quick", "slow", "slow"))]
    await Executor(Registry(quick, slow)).execute(calls)
    assert names == ["slow", "slow"]


async def test_calls_of_a_turn_do_not_see_each_others_context_variables() -> None:
    user: ContextVar[str] = ContextVar("user", default="nobody")
    seen: list[tuple[str, str]] = []

    @tool(effect=Effect.READ)
    async def work(name: str, waits: bool) -> str:
        """Set a context variable."""
        before = user.get()
        user.set(name)
        if waits:
            await asyncio.sleep(0)
        seen.append((before, user.get()))
        return name

    calls = [ToolCall(str(at), "work", {"name": str(at), "waits": at == 1}) for at in range(4)]
    await Executor(Registry(work)).execute(calls)
    assert sorted(seen) == [("nobody", "0"), ("nobody", "1"), ("nobody", "2"), ("nobody", "3")]
    assert user.get() == "nobody"


async def test_tool_that_cancels_its_own_task_ends_no_other_call() -> None:
    @tool(effect=Effect.READ)
    async def give_up() -> str:
        """Cancel the task it runs in, and return."""
        task = asyncio.current_task()
        assert task is not None
        task.cancel()
        return "done"

    @tool(effect=Effect.READ)
    async def work() -> str:
        """Wait a little."""
        await asyncio.sleep(0)
        return "worked"

    names = ("work", "give_up", "work", "give_up", "work")
    outcomes = await Executor(Registry(give_up, work)).execute([ToolCall(str(at), n) for at, n in enumerate(names)])
    assert [type(outcome) for outcome in outcomes] == [Completed, Failed, Completed, Failed, Completed]
    assert isinstance(outcomes[1], Failed) and isinstance(outcomes[1].error, Cancelled) and outcomes[1].started


async def test_task_that_is_cancelled_before_it_begins_leaves_an_outcome_for_every_call() -> None:
    runs: list[str] = []

    @tool(effect=Effect.READ)
    async def work(name: str) -> str:
        """Note that it runs."""
        runs.append(name)
        return name

    before = asyncio.all_tasks()
    calls = [ToolCall(str(at), "work", {"name": str(at)}) for at in range(3)]
    turn = asyncio.ensure_future(Executor(Registry(work), width=2).execute(calls))
    await asyncio.sleep(0)  # the turn starts its task, which begins in the next round of the event loop
    (begun,) = asyncio.all_tasks() - before - {turn}
    begun.cancel()
    outcomes = await turn
    assert [type(outcome) for outcome in outcomes] == [Failed, Failed, Completed]
    assert not any(isinstance(outcome, Failed) and outcome.started for outcome in outcomes)
    assert runs == ["2"]


@pytest.mark.parametrize("waits", [False, True])
def test_interrupt_in_a_call_leaves_an_outcome_for_every_call(waits: bool) -> None:
    @tool(effect=Effect.READ)
    async def work(interrupts: bool) -> str:
        """Return, or raise as Ctrl-C does."""
        if waits:
            await asyncio.sleep(0)
        if interrupts:
            raise KeyboardInterrupt
        return ""

    calls = [ToolCall(str(at), "work", {"interrupts": at == 1}) for at in range(4)]
    with asyncio.Runner() as runner:
        loop = runner.get_loop()
        turn = loop.create_task(Executor(Registry(work), width=3).execute(calls))
        with pytest.raises(KeyboardInterrupt):
            loop.run_until_complete(turn)
        outcomes = loop.run_until_complete(turn)
    started = [
        isinstance(outcome, Completed) or (isinstance(outcome, Failed) and outcome.started) for outcome in outcomes
    ]
    assert isinstance(outcomes[1], Failed) and isinstance(outcomes[1].error, Cancelled)
    assert started == ([True] * 4 if waits else [True, True, False, True])


async def test_other_tasks_get_their_turn_between_calls_that_never_wait() -> None:
    runs = 0
    seen: list[int] = []

    @tool(effect=Effect.READ)
    async def work() -> str:
        """Return at once."""
        nonlocal runs
        runs += 1
        return ""

    async def look() -> None:
        while runs < 100:
            seen.append(runs)
            await asyncio.sleep(0)

    looking = asyncio.ensure_future(look())
    await Executor(Registry(work), width=10).execute([ToolCall(str(at), "work") for at in range(100)])
    await looking
    assert len(set(seen)) == 10


async def test_turn_that_is_cancelled_between_calls_says_which_had_not_started() -> None:
    cancellation = Cancellation()

    @tool(effect=Effect.READ)
    async def work(stop: bool) -> str:
        """Return at once."""
        if stop:
            cancellation.cancel()
        return ""

    calls = [ToolCall(str(at), "work", {"stop": at == 1}) for at in range(6)]
    outcomes = await Executor(Registry(work), width=2).execute(calls, turn=Turn(cancellation=cancellation))
    assert [type(outcome) for outcome in outcomes] == [Completed] * 2 + [Failed] * 4
    assert not any(isinstance(outcome, Failed) and outcome.started for outcome in outcomes)


@pytest.mark.parametrize("access", [ReadPath, WritePath, DeletePath, ReadResource, WriteResource, DeleteResource])
async def test_access_without_a_text_fails_its_own_call_only(access: Callable[[Any], Access]) -> None:
    @tool(effect=Effect.READ, accesses=lambda arguments: [access(arguments["path"])])
    async def look(path: str | None = None) -> str:
        """Look at a path, or anywhere."""
        return "seen"

    @tool(effect=Effect.READ)
    async def rest() -> str:
        """Do nothing."""
        return "rested"

    executor = Executor(Registry(look, rest), AllowEverything())
    failed, done = await executor.execute([ToolCall("1", "look"), ToolCall("2", "rest")])
    assert isinstance(failed, Failed) and "must be text, got None" in failed.text and not failed.started
    assert isinstance(done, Completed)


def test_path_object_is_taken_for_its_text() -> None:
    assert WritePath(cast(Any, PurePosixPath("/a/b"))) == WritePath("/a/b")
    assert RunCommand("ls", cast(Any, PurePosixPath("/a"))).cwd == "/a"
