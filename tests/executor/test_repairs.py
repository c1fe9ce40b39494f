"""Calls with a slip are repaired, validated, judged, recorded, told and counted; unclear ones are refused."""

from pathlib import Path
from typing import Any

import pytest

from callwright import Completed, Deny, Effect, Executor, Failed, Interrupted, Registry, ToolCall, UsageError, tool
from callwright.core.access import Access, ReadPath
from callwright.hooks import Hook
from callwright.hooks.base import PendingCall
from callwright.policy import AllowEverything
from callwright.policy.base import Policy
from callwright.sessions.message_encoding import decode_outcome, encode_outcome
from callwright.toolbox import coding_tools


@tool
async def greet(name: str, times: int = 1, tags: list[str] = []) -> str:  # noqa: B006 - the schema's default
    """Greet.

    Args:
        name: Who.
        times: How often.
        tags: Labels.
    """
    return f"hello {name} {times} {tags}"


@pytest.mark.parametrize(
    ("name", "arguments", "kind"),
    [
        ("functions.greet", {"name": "Ada"}, "name"),
        ("greet", '{"name": "Ada",}', "json"),
        ("greet", {"name": "Ada", "times": None}, "null"),
        ("greet", {"arguments": {"name": "Ada"}}, "wrapped"),
        ("greet", {"name": ["Ada"]}, "list"),
        ("greet", {"name": "Ada", "tags": "x"}, "list"),
    ],
)
async def test_repaired_call_runs_and_says_so(name: str, arguments: Any, kind: str):
    executor = Executor(Registry(greet), policies=AllowEverything())
    outcome = await executor.run(name, arguments)
    assert isinstance(outcome, Completed), outcome
    assert outcome.text.startswith("hello Ada 1 ")
    assert "(The call was repaired: " in outcome.text
    assert [repair.kind for repair in outcome.repairs] == [kind]
    assert executor.stats["greet"].repairs == {kind: 1}
    assert decode_outcome(encode_outcome(outcome)).repairs == outcome.repairs


async def test_several_slips_are_repaired_together():
    executor = Executor(Registry(greet), policies=AllowEverything())
    outcome = await executor.run("functions.greet:0", "```json\n{'parameters': {'name': 'Ada', 'times': null,}}\n```")
    assert isinstance(outcome, Completed)
    assert {repair.kind for repair in outcome.repairs} == {"name", "json", "wrapped", "null"}


async def test_well_formed_call_has_no_note():
    outcome = await Executor(Registry(greet), policies=AllowEverything()).run("greet", {"name": "Ada"})
    assert isinstance(outcome, Completed)
    assert (outcome.text, outcome.repairs) == ("hello Ada 1 []", ())


@pytest.mark.parametrize(
    ("name", "arguments", "message"),
    [
        ("greet", '{"name": "Ad', "not valid JSON"),
        ("greet", {"name": None}, "name: expected a string, got null"),
        ("greet", {"name": ["Ada", "Eve"]}, "name: expected a string"),
        ("greet", {"name": "shout", "arguments": {"name": "Ada"}}, "arguments: unknown field"),
        ("gret", {"name": "Ada"}, "did you mean greet"),
    ],
)
async def test_unclear_call_is_refused_with_its_own_error(name: str, arguments: Any, message: str):
    executor = Executor(Registry(greet), policies=AllowEverything())
    outcome = await executor.run(name, arguments)
    assert isinstance(outcome, Failed)
    assert message in outcome.text
    assert outcome.repairs == ()


async def test_modes_report_and_off():
    reported = await Executor(Registry(greet), AllowEverything(), repairs="report").run("greet", {"name": ["Ada"]})
    assert isinstance(reported, Failed)
    assert 'send greet with {"name":"Ada"' in reported.text
    plain = await Executor(Registry(greet), AllowEverything(), repairs="off").run("greet", {"name": ["Ada"]})
    assert isinstance(plain, Failed)
    assert "send greet with" not in plain.text
    with pytest.raises(UsageError, match='"report" or "off"'):
        Executor(Registry(greet), repairs="yes")  # pyright: ignore[reportArgumentType] - the mistake under test


class Seen(Hook):
    """Remembers the arguments it was shown."""

    def __init__(self) -> None:
        self.arguments: list[Any] = []

    async def before(self, pending: PendingCall) -> None:
        self.arguments.append(dict(pending.arguments))


async def test_hooks_and_questions_show_what_would_run(tmp_path: Path):
    seen = Seen()
    executor = Executor(Registry(*coding_tools(tmp_path)), hooks=[seen])
    outcome = await executor.run("functions.bash", {"cmd": ["touch", "a b"], "timeout": None})
    assert isinstance(outcome, Interrupted)
    assert outcome.questions[0].tool == "bash"
    assert outcome.questions[0].arguments["command"] == "touch 'a b'"
    assert seen.arguments[0]["command"] == "touch 'a b'"
    assert not list(tmp_path.iterdir())


class NoSecrets(Policy):
    """Denies reading files called secret.txt."""

    def judge(self, access: Access, subject: object) -> Deny | None:
        return Deny("secret") if isinstance(access, ReadPath) and access.path.endswith("secret.txt") else None


@pytest.mark.parametrize("path", ["`secret.txt`", "@secret.txt", "secret.txt:1", "/secret.txt", "x/secret.txt"])
async def test_policies_judge_the_repaired_path(tmp_path: Path, path: str):
    (tmp_path / "secret.txt").write_text("hidden")
    executor = Executor(Registry(*coding_tools(tmp_path)), policies=NoSecrets())
    outcome = await executor.run("read", {"path": path})
    assert isinstance(outcome, Failed)
    assert outcome.error.code == "denied"
    assert "hidden" not in outcome.text


async def test_calls_of_a_batch_are_repaired_one_by_one():
    executor = Executor(Registry(greet), policies=AllowEverything())
    calls = [ToolCall("1", "greet", {"name": ["Ada"]}), ToolCall("2", "greet", {"name": ["A", "B"]})]
    first, second = await executor.execute(calls)
    assert isinstance(first, Completed)
    assert isinstance(second, Failed)


async def test_key_with_two_values_is_refused_on_the_fast_path_too():
    ran: list[int] = []

    @tool(effect=Effect.READ)
    async def multiply(left: int, right: int = 3, more: list[int] = [], about: str = "") -> int:  # noqa: B006 - filled in
        """Multiply."""
        ran.append(left)
        return left * right

    executor = Executor(Registry(multiply), AllowEverything())
    good = '{"left": 2, "right": 3, "about": "a: b"}'
    wrong = ('{"left": 2, "left": 4, "right": 3}', '{"left": 2, "left": 4}', '{"left": 2, "left": 4, "about": "x:"}')
    for text in wrong * 2:  # the first call goes the long way, the others the fast one
        assert (await executor.run("multiply", good)).text == "6"
        outcome = await executor.run("multiply", text)
        assert isinstance(outcome, Failed) and not outcome.started
        assert 'the key "left" is written twice with different values; write it once' in outcome.text
    assert ran == [2] * 6
