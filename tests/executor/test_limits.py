"""Output limits, reading cut outputs back, and statistics."""

import stat
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, strategies as st

from callwright import (
    Agent,
    Completed,
    Effect,
    Executor,
    Failed,
    Image,
    Limits,
    Output,
    Registry,
    RunLimits,
    Text,
    ToolCall,
    ToolFailed,
    UsageError,
    tool,
)
from callwright.clip import READER, Outputs, clip_text, find_output_ids
from callwright.core.content import File
from callwright.executor import Turn, TurnLimits
from callwright.policy import AllowEverything
from callwright.retry import RetryPolicy
from callwright.stats import Tally
from callwright.testing.fakes import ScriptedProvider

LONG = "".join(f"line {number}\n" for number in range(10_000))


@tool(effect=Effect.READ, limits=Limits(output_chars=1_000))
async def talk(chars: int) -> str:
    """Say a lot."""
    return LONG[:chars]


@given(st.text(max_size=300), st.integers(60, 200))
def test_clipped_text_keeps_head_and_tail(text: str, chars: int) -> None:
    clipped = clip_text(text, chars, "[cut]")
    assert len(clipped) <= chars
    if len(text) <= chars:
        assert clipped == text
    else:
        assert "[cut]" in clipped
        assert text.startswith(clipped.split("\n[cut]\n")[0]) and text.endswith(clipped.split("\n[cut]\n")[-1])


async def test_cut_output_can_be_read_back() -> None:
    executor = Executor(Registry(talk), AllowEverything())
    reader = executor.outputs.reader()
    executor = Executor(Registry(talk, reader), AllowEverything(), outputs=executor.outputs)
    outcome = await executor.run("talk", {"chars": 50_000})
    assert isinstance(outcome, Completed)
    assert len(outcome.text) <= 1_000
    assert "50000 characters in all" in outcome.text
    output_id = outcome.text.split('read_output(id="')[1].split('"')[0]
    whole, offset = "", 0
    while offset < 50_000:
        part = await executor.run("read_output", {"id": output_id, "offset": offset, "limit": 20_000})
        assert isinstance(part, Completed)
        whole += part.text.split("\n[")[0] if "more characters" in part.text else part.text
        offset += 20_000
    assert whole == LONG[:50_000]


def test_old_outputs_make_room_in_a_temporary_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("callwright.clip._MOST_KEPT_BYTES", 10_000)
    outputs, owned = Outputs(), Outputs(tmp_path)
    ids = [outputs.keep(f"{number} " + "é" * 1_000) for number in range(20)]
    assert outputs.load(ids[0]) is None and len(list(outputs.folder.iterdir())) == 4
    assert [(outputs.load(each) or "")[:2] for each in ids[-4:]] == ["16", "17", "18", "19"]
    long = outputs.keep("x" * 20_000)  # the last one stays, however long it is
    assert len(outputs.load(long) or "") == 20_000 and len(list(outputs.folder.iterdir())) == 1
    for number in range(20):
        owned.keep(f"{number} " + "é" * 1_000)
    assert len(list(tmp_path.iterdir())) == 20  # what is in a folder of the caller is the caller's


async def test_cut_read_back_names_the_file() -> None:
    outputs = Outputs()
    executor = Executor(Registry(outputs.reader()), outputs=outputs)
    outcome = await executor.run("read_output", {"id": outputs.keep(LONG), "limit": 50_000})
    assert isinstance(outcome, Completed) and str(outputs.folder) in outcome.text


async def test_cut_output_without_reader_names_the_file() -> None:
    executor = Executor(Registry(talk), AllowEverything())  # kept: the file is removed together with its executor
    outcome = await executor.run("talk", {"chars": 50_000})
    assert isinstance(outcome, Completed) and "read_output" not in outcome.text
    assert Path(outcome.text.split("the whole is in ")[1].split("]")[0]).read_text("utf-8") == LONG[:50_000]


async def test_read_back_explains_wrong_offset_and_id() -> None:
    outputs = Outputs()
    kept = outputs.keep("abc")
    executor = Executor(Registry(outputs.reader()), outputs=outputs)
    for arguments in ({"id": kept, "offset": 9}, {"id": "0" * 16}, {"id": "../../etc/passwd"}):
        outcome = await executor.run("read_output", arguments)
        assert isinstance(outcome, Failed) and outcome.error.code == "tool_failed"


def test_kept_outputs_are_private() -> None:
    outputs = Outputs()
    kept = outputs.keep("secret")
    assert stat.S_IMODE(outputs.folder.stat().st_mode) == 0o700
    assert stat.S_IMODE((outputs.folder / f"{kept}.txt").stat().st_mode) == 0o600


def test_short_parts_stay_whole_beside_a_long_one() -> None:
    outputs = Outputs()
    outputs.reader()
    verdict, image = Text("VERDICT: the disk is failing"), Image(b"\x89PNG")
    first, second, third = outputs.clip(Output((verdict, image, Text("log line\n" * 3_000))), 2_000).parts
    assert (first, second) == (verdict, image)
    assert isinstance(third, Text) and len(third.text) <= 2_000 - len(verdict.text)
    assert third.text.endswith("log line\n") and READER in third.text


def test_many_short_parts_are_joined_and_cut_once() -> None:
    outputs = Outputs()
    outputs.reader()
    rows = [Text(f"row {number:05}: {'x' * 48}") for number in range(200)]
    clipped = outputs.clip(Output((*rows[:100], Image(b"\x89PNG"), *rows[100:])), 5_000)
    text, image = clipped.parts
    assert isinstance(text, Text) and isinstance(image, Image) and len(text.text) <= 5_000
    assert text.text.startswith("row 00000") and text.text.endswith("x" * 48)
    (output_id,) = find_output_ids(Completed(ToolCall("c", "rows", {}), clipped))
    assert outputs.load(output_id) == "\n".join(row.text for row in rows)


@pytest.mark.parametrize("length", [30, 90, 150])
def test_cut_output_is_never_longer_than_the_whole(length: int) -> None:
    outputs = Outputs()
    outputs.reader()
    for content in ("x" * length, (Text("x" * length), Text("y" * length))):
        output = Output(content)
        assert len(outputs.clip(output, 20).text) <= len(output.text)


async def test_text_part_is_cut_and_other_parts_stay() -> None:
    @tool(effect=Effect.READ, limits=Limits(output_chars=500))
    async def show() -> list[object]:
        """Show a picture with a long text."""
        return [Text("x" * 5_000), Image(b"\x89PNG")]

    outcome = await Executor(Registry(show)).run("show")
    assert isinstance(outcome, Completed)
    text, image = outcome.output.parts
    assert isinstance(text, Text) and len(text.text) <= 500
    assert isinstance(image, Image)


async def test_files_that_are_text_are_cut_like_text() -> None:
    @tool(effect=Effect.READ, limits=Limits(output_chars=500))
    async def fetch(chars: int, count: int) -> list[File]:
        """Fetch files."""
        return [File(LONG[:chars].encode(), "text/csv", f"{number}.csv") for number in range(count)]

    executor = Executor(Registry(fetch), limits=TurnLimits(turn_chars=600))
    whole, long, many = [
        await executor.run("fetch", {"chars": chars, "count": count})
        for chars, count in ((400, 1), (5_000, 1), (90, 9))
    ]
    assert isinstance(whole, Completed) and isinstance(whole.output.parts[0], File)
    for outcome in (long, many):
        assert isinstance(outcome, Completed) and len(outcome.text) <= 500
        assert all(isinstance(part, Text) for part in outcome.output.parts)
        assert outcome.text.startswith("0.csv:\nline 0\n") and "characters in all" in outcome.text
    turn = await executor.execute([ToolCall(str(n), "fetch", {"chars": 400, "count": 1}) for n in range(2)])
    assert 0 < sum(len(outcome.text) for outcome in turn) <= 600


async def test_long_error_is_cut() -> None:
    @tool(effect=Effect.READ, limits=Limits(output_chars=300))
    async def complain() -> str:
        """Fail at length."""
        raise ToolFailed("no " * 10_000)

    outcome = await Executor(Registry(complain)).run("complain")
    assert isinstance(outcome, Failed) and len(outcome.text) <= 300


async def test_turn_limit_cuts_only_the_longest_outputs() -> None:
    executor = Executor(Registry(talk), limits=TurnLimits(turn_chars=2_000))
    sizes = [50, 900, 900, 900]
    outcomes = await executor.execute([ToolCall(str(n), "talk", {"chars": size}) for n, size in enumerate(sizes)])
    texts = [outcome.text for outcome in outcomes if isinstance(outcome, Completed)]
    assert texts[0] == LONG[:50]
    assert sum(map(len, texts)) <= 2_000
    assert all("characters in all" in text for text in texts[1:])


async def test_turn_limit_cuts_long_errors_too() -> None:
    @tool(effect=Effect.READ)
    async def complain(chars: int) -> str:
        """Fail at length."""
        raise ToolFailed(LONG[:chars])

    executor = Executor(Registry(talk, complain), limits=TurnLimits(turn_chars=2_000))
    names = ["talk", "complain", "complain", "complain"]
    outcomes = await executor.execute([ToolCall(str(n), name, {"chars": 900}) for n, name in enumerate(names)])
    assert sum(len(outcome.text) for outcome in outcomes) <= 2_000
    assert all("characters in all" in outcome.text for outcome in outcomes)
    short = await executor.execute([ToolCall(name, "complain", {"chars": 50}) for name in "ab"])
    assert [outcome.text for outcome in short] == [LONG[:50]] * 2


async def test_statistics_count_calls_outcomes_time_and_size() -> None:
    executor = Executor(Registry(talk))
    for arguments in ('{"chars": 40}', '{"chars": 80}', "{}"):
        await executor.run("talk", arguments)
    await executor.run("missing")
    figures = executor.stats["talk"]
    assert figures.calls == 3
    assert figures.outcomes == {"completed": 2, "invalid_input": 1}
    assert figures.chars_in == len('{"chars": 40}') * 2 + 2
    assert figures.chars_out > 120 and figures.tokens_out > 30
    assert 0 < figures.seconds_p50 <= figures.seconds_p95 <= figures.seconds_max <= figures.seconds_total
    assert executor.stats["missing"].outcomes == {"not_found": 1}
    assert [entry.name for entry in executor.stats] == ["missing", "talk"]
    assert executor.stats.to_json()[1]["calls"] == 3  # type: ignore[index,call-overload] - a list of objects


def test_no_call_is_lost_while_two_threads_look_at_the_statistics() -> None:
    tally = Tally()
    other = threading.Thread(target=tally.figures, args=("talk",))

    class Attempts(int):
        """A number; while it is added up, a call is noted and another thread looks."""

        def __radd__(self, total: int) -> int:
            tally.note("completed", 1, 0.1, 1, 1)
            other.start()
            other.join(0.1)  # it waits until this thread has added up
            return total + int(self)

    tally.note("completed", Attempts(1), 0.1, 1, 1)
    tally.figures("talk")
    other.join()
    assert tally.figures("talk").attempts == 2


async def test_invented_names_do_not_fill_the_statistics() -> None:
    executor = Executor(Registry(talk))
    for number in range(1_000):
        await executor.run(f"invented{number}")
    figures = list(executor.stats)
    assert len(figures) < 300
    assert sum(each.calls for each in figures) == 1_000


NO_NUMBERS: list[Any] = [True, "5", float("nan"), [], -1]


@pytest.mark.parametrize("value", NO_NUMBERS)
@pytest.mark.parametrize(
    ("limits", "name"),
    [
        (Limits, "seconds"),
        (Limits, "output_chars"),
        (Limits, "concurrency"),
        (TurnLimits, "width"),
        (TurnLimits, "depth"),
        (TurnLimits, "turn_chars"),
        (TurnLimits, "question_seconds"),
        (TurnLimits, "grace_seconds"),
        (RunLimits, "turns"),
        (RunLimits, "tokens"),
        (RunLimits, "money"),
        (RunLimits, "seconds"),
        (RunLimits, "same_failures"),
        (RunLimits, "same_calls"),
        (RunLimits, "invalid_calls"),
        (RetryPolicy, "max_attempts"),
        (RetryPolicy, "initial_seconds"),
        (RetryPolicy, "longest_seconds"),
        (RetryPolicy, "jitter"),
    ],
)
def test_a_limit_that_would_limit_nothing_is_refused(limits: Callable[..., object], name: str, value: Any) -> None:
    with pytest.raises(UsageError, match=rf"\.{name} must be"):
        limits(**{name: value})


def test_a_share_above_the_whole_is_refused() -> None:
    with pytest.raises(UsageError, match=r"RetryPolicy\.jitter must be at least 0 and at most 1, got 1\.5"):
        RetryPolicy(jitter=1.5)
    assert RetryPolicy(jitter=1).jitter == 1


@pytest.mark.parametrize(
    "name", "session_id turn_id state catalog cancellation ask journal observe starting keep".split()
)
@pytest.mark.parametrize("value", [5, ["x"], {"a": 1}, b"x"])
def test_parts_of_a_turn_are_of_their_kind(name: str, value: Any) -> None:
    with pytest.raises(UsageError, match=rf"expected \w+( \w+)? as Turn\.{name}, got"):
        Turn(**{name: value})


@pytest.mark.parametrize(
    "options",
    [{"limits": 5}, {"retry": 3}, {"outputs": "folder"}, {"state": {}}, {"clock": 5}, {"width": "4"}, {"width": True}],
)
def test_parts_of_an_executor_are_of_their_kind(options: dict[str, Any]) -> None:
    with pytest.raises(UsageError):
        Executor(Registry(), **options)


@pytest.mark.parametrize(
    "options", [{"limits": 5}, {"ask": "yes"}, {"executor": 5}, {"compaction": 5}, {"requests": 5}]
)
def test_parts_of_an_agent_are_of_their_kind(options: dict[str, Any]) -> None:
    with pytest.raises(UsageError, match=f"as {next(iter(options))}"):
        Agent(ScriptedProvider("x"), **options)


def test_one_tool_is_no_list_of_tools() -> None:
    @tool
    async def look() -> str:
        """Look."""
        return "seen"

    with pytest.raises(UsageError, match=r"write Agent\(model, \[tool\]\)"):
        Agent(ScriptedProvider("x"), look)  # type: ignore[arg-type] - what is tried


@pytest.mark.parametrize("calls", [None, "look", 5, [{"name": "look"}], [ToolCall("1", "look", {}), None], {"a": 1}])
async def test_calls_are_calls(calls: Any) -> None:
    with pytest.raises(UsageError, match="expected a sequence of calls"):
        await Executor(Registry()).execute(calls)


async def test_session_id_is_a_text() -> None:
    with pytest.raises(UsageError, match="invalid session id"):
        await Agent(ScriptedProvider("x")).run("hi", session=5)  # type: ignore[arg-type] - what is tried
