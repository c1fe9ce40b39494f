"""Programs: their calls, errors, limits and what they cannot reach."""

import asyncio
import json
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx2
import pytest
from mcp import Client
from mcp.client.streamable_http import streamable_http_client
from mcp_types import TextContent
from tests.waiting import LONG_SECONDS

from callwright import (
    Annotations,
    Completed,
    Effect,
    Executor,
    Failed,
    Image,
    Outcome,
    Output,
    Registry,
    SchemaTool,
    Text,
    ToolCall,
    ToolSpec,
    Turn,
    UsageError,
    tool,
)
from callwright.codemode import CodeLimits, CodeMode
from callwright.codemode.sizes import measure
from callwright.core.access import Access, Decision, Deny
from callwright.core.content import File
from callwright.core.errors import Cancelled, Denied, ToolFailed
from callwright.core.events import CallEnded
from callwright.core.json import JsonObject
from callwright.hooks import Halt, Hook, PendingCall
from callwright.policy import AllowEverything, Policy, Subject
from callwright.policy.decide import Policies
from callwright.registry import Deferred, withheld
from callwright.serve import Gateway, HttpOptions
from callwright.serve.http import listen
from callwright.testing import Recorder
from callwright.tool.base import Cancellation

ATTEMPTS: dict[str, str] = json.loads(Path(__file__).with_name("escapes.json").read_text())
made: list[str] = []


@pytest.fixture(autouse=True)
def _clean() -> Iterator[None]:
    made.clear()
    yield


@tool(effect=Effect.READ)
async def price(item: str, count: int = 1) -> dict[str, int]:
    """Return the price of an item."""
    made.append(item)
    return {"total": len(item) * count}


@tool(effect=Effect.WRITE)
async def pay(amount: int) -> str:
    """Pay an amount."""
    made.append(f"paid {amount}")
    return f"paid {amount}"


@tool(effect=Effect.READ)
async def fail(how: str) -> str:
    """Fail."""
    if how == "denied":
        raise Denied("not you")
    raise ToolFailed(f"it broke: {how}")


def executor_of(*tools: object, limits: CodeLimits | None = None, **options: object) -> Executor:
    mode = CodeMode(Registry(*(tools or (price, pay, fail))), limits=limits or CodeLimits())  # type: ignore[arg-type] - any tools
    return Executor(mode, AllowEverything(), **options)  # type: ignore[arg-type] - passed on as they are


async def run(code: str, executor: Executor | None = None) -> Outcome:
    return await (executor or executor_of()).run("run_code", {"code": code})


async def test_program_sees_values_and_prints() -> None:
    outcome = await run("x = await price(item='abc', count=2)\nprint('total', x['total'])\nx['total'] + 1")
    assert isinstance(outcome, Completed) and outcome.text == "total 6\n7"


async def test_positional_arguments_are_named() -> None:
    assert (await run("(await price('ab', 3))['total']")).text == "6"
    outcome = await run("await price('a', 1, 2)")
    assert isinstance(outcome, Failed) and "price() takes 2 arguments: item, count" in outcome.error.message
    outcome = await run("await price('a', item='b')")
    assert isinstance(outcome, Failed) and "two values for item" in outcome.error.message


async def test_failed_calls_are_exceptions() -> None:
    code = """
try:
    await fail(how='denied')
except PermissionError as error:
    print('denied:', error)
try:
    await price(wrong=1)
except ValueError as error:
    print('invalid:', error)
try:
    await missing()
except NameError as error:
    print(error)
await fail(how='badly')
"""
    outcome = await run(code)
    assert isinstance(outcome, Failed) and isinstance(outcome.error, ToolFailed)
    text = outcome.error.message
    assert "denied: not you" in text and "wrong: unknown field" in text and "name 'missing' is not defined" in text
    assert "line 14" in text and "it broke: badly" in text


@pytest.mark.parametrize(
    ("code", "said"),
    [
        ("1 +", "SyntaxError"),
        ("price(item='a')", "price() in line 1; write `await`"),
        ("await price(item={1, 2})", "not JSON"),
        ("undefined_name", "NameError"),
        ("async def main():\n    await pay(amount=1)\nmain()", "ends with <coroutine object main>"),
        ("async def text():\n    return 'a'\nawait price(item=text())", "have <coroutine object text>"),
        ("await price(item=f'{asyncio.gather()}')", "have <gather(0)>"),
        ("x = []\nfor _ in range(100_000):\n    x = [x]\nawait price(item=x)", "ValueError: invalid arguments"),
        ("import time\ntime.sleep(1)", "write `await asyncio.sleep(…)`"),
        ("await asyncio.sleep(61)", "TimeoutError: programs may sleep 60 seconds in all"),
    ],
)
async def test_faults_are_explained(code: str, said: str) -> None:
    outcome = await run(code)
    assert isinstance(outcome, Failed) and said in outcome.error.message and made == []


@pytest.mark.parametrize("use", ["await {}(item='a')", "f = {}", "print([{}])", "{}.get('a')"])
@pytest.mark.parametrize(
    ("name", "hint"),
    [("prices", "; did you mean the function price?"), ("weather", "; the functions are fail, pay, price")],
)
async def test_missing_names_are_explained(use: str, name: str, hint: str) -> None:
    outcome = await run(use.format(name))
    assert isinstance(outcome, Failed)
    assert outcome.error.message.endswith(f"NameError: name {name!r} is not defined{hint}") and made == []


async def test_search_is_named_where_a_function_is_missing() -> None:
    @tool(effect=Effect.READ, deferred=True)
    async def weather(city: str) -> str:
        """Return the weather of a city."""
        return f"rain in {city}"

    executor = Executor(CodeMode(Deferred(Registry(price, weather))), AllowEverything())
    outcome = await run("await launch()", executor)
    assert isinstance(outcome, Failed) and "`await tool_search(query=…)` finds others" in outcome.error.message


@pytest.mark.parametrize("call", ["await pay(amount=1)", "await pay(1)", "f = pay\nawait f(1)"])
async def test_withheld_tool_is_denied_with_its_reason(call: str) -> None:
    source = withheld(Registry(price, pay), lambda spec: "no payments here" if spec.name == "pay" else "")
    recorder = Recorder()
    executor = Executor(CodeMode(source), AllowEverything(), observe=recorder)
    outcome = await run(call, executor)
    assert isinstance(outcome, Failed) and outcome.error.message.endswith("PermissionError: no payments here")
    ended = [event.outcome for event in recorder.events if isinstance(event, CallEnded)]
    assert isinstance(ended[0], Failed) and isinstance(ended[0].error, Denied) and made == []
    assert (await run("def pay(amount):\n    return amount\npay(3)", executor)).text == "3"
    assert "pay" not in executor.registry.snapshot().tools["run_code"].spec.description


@pytest.mark.parametrize("argument", ["pay(amount=1)", "f'{pay(amount=1)}'", "[pay(amount=1)]"])
async def test_call_without_await_is_no_argument(argument: str) -> None:
    @tool(effect=Effect.WRITE)
    async def write(content: object) -> None:
        """Write a file."""
        made.append(f"wrote {content}")

    outcome = await run(f"await write(content={argument})", executor_of(pay, write))
    assert isinstance(outcome, Failed) and "a call without its result; write `await`" in outcome.error.message
    assert not any(entry.startswith("wrote") for entry in made)


def test_numbers_are_measured_as_fast_as_texts() -> None:
    """The event loop waits meanwhile."""

    def time_of(value: object) -> float:
        began = time.thread_time()
        measure(value)
        return time.thread_time() - began

    texts = min(time_of(["a"] * 100_000) for _ in range(3))
    assert all(min(time_of([value] * 100_000) for _ in range(3)) < 3 * texts for value in (0.5, None))
    assert measure([0.5, None, "a"]) == measure(["", "", "a"])


@pytest.mark.parametrize(
    "value", ["10**5000", "deep", "many", "(many, {1})", "[10**4000] * 10**4", "['x' * 10**6] * 99"]
)
async def test_value_that_cannot_be_shown_ends_the_program_well(value: str) -> None:
    many = "many = 0\nfor _ in range(6):\n    many = [many] * 100\n"  # 4.8 kB in the program, 3 TB as text
    deep = "deep = []\nfor _ in range(5_000):\n    deep = [deep]\n"
    outcome = await run(f"{many}{deep}print(await pay(amount=1))\n{value}")
    assert isinstance(outcome, Completed) and outcome.text.startswith("paid 1\n[the value")


async def test_program_gets_outputs_whole() -> None:
    @tool(effect=Effect.READ)
    async def read_log(lines: int) -> str:
        """Return a log."""
        return "\n".join(f"line {number}" for number in range(lines))

    recorder = Recorder()
    code = "text = await read_log(lines=20_000)\nprint(text.splitlines()[10_000], len(text.splitlines()))"
    assert (await run(code, executor_of(read_log, observe=recorder))).text == "line 10000 20000\n"
    inner = next(event for event in recorder.events if isinstance(event, CallEnded))
    assert len(inner.outcome.text) <= 30_000  # the limit of the tool, for observers
    outcome = await run("print(len(await read_log(lines=200_000)))", executor_of(read_log))
    assert outcome.text == "1000000\n"


async def test_program_gets_data_and_the_model_the_notes() -> None:
    @tool(effect=Effect.READ)
    async def fetch(path: str, limit: int = 0) -> str:
        """Return JSON."""
        return '{"a": 1}'

    outcome = await run(
        "for _ in range(3):\n    print(json.loads(await fetch(path=['x'], limit=None)))", executor_of(fetch)
    )
    assert outcome.text.count("{'a': 1}") == 3
    assert outcome.text.count("fetch(): limit: null left out; path: a list with one item read as the item") == 1


async def test_what_is_no_text_is_named() -> None:
    @tool(effect=Effect.READ)
    async def draw() -> Output:
        """Draw."""
        return Output((Text("a circle"), Image(b"12345678", "image/png"), File(b"radius,3", "text/csv")))

    outcome = await run("print(await draw())", executor_of(draw))
    assert outcome.text == "a circle\n[image/png, 8 bytes: programs get texts only]\nradius,3\n"


async def test_parameters_without_a_python_name_are_passed() -> None:
    schema: JsonObject = {
        "type": "object",
        "properties": {"from": {"type": "string"}, "to": {"type": "string"}, "max-age": {"type": "integer"}},
        "required": ["from", "to"],
        "additionalProperties": False,
    }

    async def send(arguments: JsonObject) -> str:
        return json.dumps(dict(arguments))

    spec = ToolSpec("send", "Send.", schema, annotations=Annotations(Effect.READ))
    executor = executor_of(SchemaTool(spec, send))
    outcome = await run("""print(await send("b", **{"from": "a", "max-age": 5}))""", executor)
    assert json.loads(outcome.text) == {"from": "a", "to": "b", "max-age": 5}
    assert "async def send(to: str, **others: Any)" in executor.registry.snapshot().tools["run_code"].spec.description


@pytest.mark.parametrize("fence", ["```python\n{}\n```", "```\n{}```", "\n~~~py\n{}\n~~~\n"])
async def test_program_in_a_fence_is_taken_out(fence: str) -> None:
    outcome = await run(fence.format("print((await price(item='abc'))['total'])"))
    assert isinstance(outcome, Completed) and outcome.text.startswith("3\n") and "repaired" in outcome.text


async def test_fence_without_an_end_is_refused() -> None:
    outcome = await run("```python\nawait price(item='abc')")
    assert isinstance(outcome, Failed) and "send the program alone" in outcome.text and made == []


async def test_message_with_a_lone_surrogate_is_an_exception() -> None:
    @tool(effect=Effect.READ)
    async def find(name: str) -> str:
        """Find a file."""
        raise ToolFailed("no file \udce4")

    code = "try:\n    await find(name='x')\nexcept RuntimeError as error:\n    print(error)"
    assert (await run(code, executor_of(find))).text == "no file ?\n"


async def test_tools_named_like_builtins_are_called() -> None:
    @tool(effect=Effect.READ, name="list")
    async def list_files(folder: str) -> str:
        """List a folder."""
        return f"files of {folder}"

    outcome = await run("list((await call_list(folder='x')).split())", executor_of(list_files))
    assert outcome.text == '["files", "of", "x"]'


async def test_sleeps_are_waited_for_beside_calls() -> None:
    outcome = await run("print(await asyncio.gather(asyncio.sleep(0.01, 'slept'), price(item='ab')))")
    assert outcome.text == "['slept', {'total': 2}]\n"


@pytest.mark.parametrize("seconds", ["60.1", "1e300", "float('inf')"])
async def test_long_sleep_is_refused(seconds: str) -> None:
    code = f"try:\n    await asyncio.sleep({seconds})\nexcept TimeoutError as error:\n    print(error)"
    outcome = await asyncio.wait_for(run(code), LONG_SECONDS)
    assert isinstance(outcome, Completed) and "programs may sleep 60 seconds in all" in outcome.text


async def test_short_sleeps_are_limited_together() -> None:
    code = "await asyncio.gather(*[asyncio.sleep(-5), *[asyncio.sleep(25) for _ in range(3)]])"
    outcome = await asyncio.wait_for(run(code), LONG_SECONDS)
    assert isinstance(outcome, Failed) and "60 seconds in all, not 75" in outcome.error.message


async def test_cancellation_ends_a_sleeping_program() -> None:
    cancellation = Cancellation()
    call = ToolCall("c", "run_code", {"code": "await price(item='a')\nawait asyncio.sleep(59)"})
    running = asyncio.ensure_future(executor_of().execute([call], turn=Turn(cancellation=cancellation)))
    while not made:  # noqa: ASYNC110 - the call is made in another task
        await asyncio.sleep(0.001)
    cancellation.cancel()
    async with asyncio.timeout(40):
        (outcome,) = await running
    assert isinstance(outcome, Failed) and isinstance(outcome.error, Cancelled)


async def test_pending_calls_run_side_by_side() -> None:
    barrier = asyncio.Barrier(20)

    @tool(effect=Effect.READ)
    async def meet(n: int) -> int:
        """Wait for the others."""
        async with asyncio.timeout(LONG_SECONDS):
            await barrier.wait()
        return n

    executor = Executor(CodeMode(Registry(meet)), AllowEverything(), width=20)
    code = "sum(int(x) for x in await asyncio.gather(*[meet(n=i) for i in range(20)]))"
    assert (await run(code, executor)).text == "190"


async def test_thousand_calls_are_one_batch() -> None:
    recorder = Recorder()
    code = "len(await asyncio.gather(*[price(item='a') for i in range(1000)]))"
    assert (await run(code, executor_of(price, observe=recorder))).text == "1000"
    assert sum(isinstance(event, CallEnded) for event in recorder.events) == 1001


async def test_policies_judge_every_call() -> None:
    class NoPayments(Policy):
        def judge(self, access: Access, subject: Subject) -> Decision | None:
            return Deny("no payments") if subject.spec.name == "pay" else None

    executor = Executor(CodeMode(Registry(price, pay)), Policies(NoPayments(), AllowEverything()))
    outcome = await run("await price(item='x')\nawait pay(amount=3)", executor)
    assert isinstance(outcome, Failed) and "PermissionError" in outcome.error.message and made == ["x"]


async def test_hook_that_halts_ends_the_program() -> None:
    class Stop(Hook):
        async def before(self, pending: PendingCall) -> Halt | None:
            return Halt("enough") if pending.spec.name == "pay" else None

    executor = Executor(CodeMode(Registry(price, pay)), AllowEverything(), hooks=Stop())
    code = "try:\n    await pay(amount=1)\nexcept Exception:\n    pass\nawait price(item='after')"
    outcome = await run(code, executor)
    assert isinstance(outcome, Failed) and outcome.error.message == "enough" and made == []


async def test_tools_beside_run_code() -> None:
    catalog = CodeMode(Registry(price, pay), keep=["pay"]).snapshot()
    assert [spec.name for spec in catalog.definitions] == ["pay", "run_code"]
    description = catalog.tools["run_code"].spec.description
    assert "async def price(item: str" in description and "async def pay" not in description
    executor = Executor(CodeMode(Registry(price, pay), keep=["pay"]), AllowEverything())
    assert (await executor.run("price", {"item": "direct"})).text == '{"total":6}'


@pytest.mark.parametrize(
    ("code", "said"),
    [
        ("while True:\n    pass", "time limit"),
        ("x = [0] * 10**9", "memory limit"),
        ("def f(n):\n    return f(n + 1)\nf(0)", "RecursionError"),
        ("for i in range(100_000):\n    await price(item='a')", "more than 50 calls"),
        ("await asyncio.gather(*[price(item='a') for i in range(100_000)])", "more than 50 calls"),
        ("x = 'a'\nwhile True:\n    x += x", "memory limit"),
        ("9**9**9", "memory limit"),
        ("x = 'a'\nfor _ in range(9):\n    x = [x] * 100\nawait price(item=x)", "over 10000000 characters"),
        ("x = 'a' * 9**7\nawait asyncio.gather(*[price(item=x) for _ in range(50)])", "memory limit"),
        ("'{:>200000000}'.format(1)", "memory limit"),
        (
            "while True:\n    try:\n        await price(item='a')\n    except BaseException:\n        pass",
            "more than 50 calls",
        ),
        ("try:\n    while True:\n        pass\nexcept BaseException:\n    print('caught')", "time limit"),
        ("while True:\n    await asyncio.sleep(0.001)", "more than 50 calls"),
    ],
)
async def test_runaway_programs_end(code: str, said: str) -> None:
    executor = executor_of(
        price, limits=CodeLimits(seconds=0.3 if said == "time limit" else 60, memory_bytes=30_000_000, calls=50)
    )
    outcome = await run(code, executor)
    assert isinstance(outcome, Failed) and said in outcome.error.message and len(made) <= 50


async def test_printed_text_is_bounded() -> None:
    executor = executor_of(limits=CodeLimits(printed_chars=100))
    outcome = await run("for i in range(1000):\n    print('x' * 9)", executor)
    assert isinstance(outcome, Completed) and "[9900 more characters were printed and dropped]" in outcome.text


@pytest.mark.parametrize(
    "limits",
    [
        {"seconds": 0},
        {"seconds": "5"},
        {"seconds": float("inf")},
        {"seconds": float("nan")},
        {"calls": -1},
        {"calls": 1.5},
        {"calls": True},
        {"memory_bytes": 0},
        {"memory_bytes": 10**30},
        {"printed_chars": 0},
    ],
)
def test_limits_are_numbers_above_zero(limits: dict[str, Any]) -> None:
    with pytest.raises(UsageError, match=f"CodeLimits.{next(iter(limits))} must be a"):
        CodeLimits(**limits)


@pytest.mark.parametrize(
    ("source", "options"),
    [
        (price, {}),
        ([price], {}),
        (Registry(price), {"keep": "price"}),
        (Registry(price), {"keep": [price]}),
        (Registry(price), {"keep": None}),
        (Registry(price), {"limits": 5}),
    ],
)
def test_wrong_kinds_are_refused_where_they_are_given(source: Any, options: dict[str, Any]) -> None:
    with pytest.raises(UsageError, match="expected"):
        CodeMode(source, **options)


async def test_cancellation_ends_program_and_worker() -> None:
    cancellation, begun = Cancellation(), asyncio.Event()

    @tool(effect=Effect.READ)
    async def begin() -> None:
        """Say that the program runs."""
        begun.set()

    call = ToolCall("c", "run_code", {"code": "await begin()\nwhile True:\n    pass"})
    running = asyncio.ensure_future(executor_of(begin).execute([call], turn=Turn(cancellation=cancellation)))
    await begun.wait()
    cancellation.cancel()
    (outcome,) = await running
    assert isinstance(outcome, Failed) and outcome.started
    assert (await run("1 + 1")).text == "2"  # the pool has replaced the worker


async def test_long_step_repeats_no_call() -> None:
    code = "print(await pay(amount=1))\nn = 0\nwhile n < 1_000_000:\n    n += 1\nprint(await pay(amount=2), n)"
    outcome = await run(code)
    assert isinstance(outcome, Completed) and outcome.text == "paid 1\npaid 2 1000000\n"
    assert made == ["paid 1", "paid 2"]


@pytest.mark.parametrize(
    "code", ["for n in range(400):\n    await price(item='a')", "n = 0\nwhile n < 1_000_000:\n    n += 1"]
)
async def test_other_tasks_go_on_beside_a_program(code: str) -> None:
    program = asyncio.ensure_future(run(code))
    turns = 0
    while not program.done():
        await asyncio.sleep(0.001)
        turns += 1
    assert isinstance(await program, Completed)
    assert turns >= 4


async def test_cancellation_ends_a_program_of_instant_calls() -> None:
    executor, cancellation = executor_of(limits=CodeLimits(calls=100_000)), Cancellation()
    call = ToolCall("c", "run_code", {"code": "while True:\n    await price(item='a')"})
    turn = asyncio.ensure_future(executor.execute([call], turn=Turn(cancellation=cancellation)))
    while len(made) < 50:  # noqa: ASYNC110 - the calls are made in another task
        await asyncio.sleep(0.001)
    cancellation.cancel()
    (outcome,) = await turn
    assert isinstance(outcome, Failed) and isinstance(outcome.error, Cancelled)
    assert len(made) < 50_000


@pytest.mark.parametrize("attempt", ATTEMPTS)
async def test_nothing_outside_is_reached(attempt: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    canary = tmp_path / "canary.txt"
    canary.write_text("SECRET-CANARY")
    monkeypatch.setenv("CANARY", "SECRET-CANARY")
    code = ATTEMPTS[attempt].replace("@CANARY@", str(canary))
    outcome = await run(code)
    assert "SECRET-CANARY" not in outcome.text and sorted(path.name for path in tmp_path.iterdir()) == ["canary.txt"]


def test_escape_attempts_exist() -> None:
    assert len(ATTEMPTS) >= 12


async def test_gateway_serves_programs() -> None:
    mode = CodeMode(Registry(price, pay))
    gateway = Gateway(mode, Executor(mode, AllowEverything()))
    async with listen(gateway, HttpOptions(port=0, token="sesame")) as (url, _):
        headers = {"Authorization": "Bearer sesame"}
        async with (
            httpx2.AsyncClient(headers=headers, timeout=LONG_SECONDS) as http,
            Client(streamable_http_client(url, http_client=http)) as client,
        ):
            assert [found.name for found in (await client.list_tools()).tools] == ["run_code"]
            result = await client.call_tool("run_code", {"code": "print((await price(item='abc'))['total'])"})
    assert isinstance(result.content[0], TextContent) and result.content[0].text == "3\n" and made == ["abc"]


@pytest.mark.parametrize(
    "code",
    [
        "await asyncio.gather(price(item='a'), return_exceptions=True)",
        "asyncio.create_task(price(item='a'))",
        "await asyncio.wait_for(price(item='a'), 5)",
        "async with asyncio.timeout(5):\n    pass",
        "def count():\n    yield 1",
        "class Bad(Exception):\n    pass",
        "x = {'a': 1}\ndel x['a']",
        "try:\n    pass\nexcept* ValueError:\n    pass",
        "type Name = str",
        "callable(print)",
        "getattr('a', 'upper')()",
        "import statistics",
        "import urllib.parse",
    ],
)
async def test_what_the_page_calls_missing_is_missing(code: str) -> None:
    """One that works now can be taken off the page, and off the description of the tool."""
    outcome = await run(code)
    assert isinstance(outcome, Failed) and outcome.error.message


async def test_what_the_page_advises_works() -> None:
    outcome = await run(
        "import base64, bisect, collections, copy, csv, dataclasses, decimal, functools, hashlib, itertools, time\n"
        "import typing, unicodedata\n"
        "async def attempt(item):\n"
        "    try:\n"
        "        return await price(item=item)\n"
        "    except Exception as error:\n"
        "        return 'failed'\n"
        "class Plain:\n"
        "    pass\n"
        "Plain(), {'a': 1}.pop('a'), sum(x for x in [1])\n"
        "print(await asyncio.gather(attempt('ab'), attempt(5)))"
    )
    assert isinstance(outcome, Completed) and outcome.text.strip() == "[{'total': 2}, 'failed']"
