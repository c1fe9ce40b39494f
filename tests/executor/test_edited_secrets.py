"""An edit is made on the shown arguments: a secret that it leaves masked stays the secret of the call."""

from collections.abc import Sequence
from typing import Annotated, Any

import pytest
from pydantic import BaseModel, Field, SecretStr

from callwright import (
    Answers,
    Approve,
    Arguments,
    Completed,
    Denied,
    Effect,
    Executor,
    Failed,
    Interrupted,
    Outcome,
    Question,
    Registry,
    ToolCall,
    ToolContext,
    TypedTool,
    tool,
)
from callwright.core.calls import Repair
from callwright.core.json import JsonObject
from callwright.executor.turn_context import Turn
from callwright.hooks import Hook, PendingCall, Rewrite
from callwright.policy import ByMode
from callwright.tool.base import Invocation, Tool
from callwright.tool.typed import describe

MASK = "**********"


FALLBACK = SecretStr("fallback")


@tool(effect=Effect.DESTROY)
async def login(
    password: SecretStr, user: str = "me", tries: int = 1, again: SecretStr = FALLBACK, wait: int = 0
) -> str:
    """Sign in."""
    return f"{user}:{password.get_secret_value()}:{tries}:{again.get_secret_value()}:{wait}"


class Credentials(Arguments):
    password: SecretStr
    user: str = "me"
    tries: int = 1
    again: SecretStr = FALLBACK
    wait: int = 0


class Login(TypedTool[Credentials]):
    spec = describe("login", "Sign in.", effect=Effect.DESTROY)

    async def run(self, arguments: Credentials, context: ToolContext) -> str:
        given = arguments
        secrets = given.password.get_secret_value(), given.again.get_secret_value()
        return f"{given.user}:{secrets[0]}:{given.tries}:{secrets[1]}:{given.wait}"


class Account(BaseModel):
    name: str
    pin: SecretStr
    port: int = 22


@tool(effect=Effect.DESTROY)
async def connect(
    account: Account | None = None,
    accounts: list[Account] | None = None,
    tokens: dict[str, SecretStr] | None = None,
    hosts: set[str] | None = None,
    spare: SecretStr | None = None,
) -> str:
    """Connect."""
    named = {name: token.get_secret_value() for name, token in (tokens or {}).items()}
    pins = [f"{each.name}={each.pin.get_secret_value()}" for each in ([account] if account else accounts or [])]
    return f"{pins} {named} {sorted(hosts or ())} {spare.get_secret_value() if spare else ''}"


class Edit(Hook):
    """Changes the shown arguments, as a user would."""

    def __init__(self, change: JsonObject) -> None:
        self.change = change

    def before(self, pending: PendingCall) -> Rewrite:
        return Rewrite({**pending.arguments, **self.change})


async def edit(tool: Tool, arguments: JsonObject | str, change: JsonObject) -> Outcome:
    """Run a call whose arguments the user changes in the first question, and approves in the second."""

    async def ask(questions: Sequence[Question]) -> Answers:
        first = not shown
        shown.append(questions[0].arguments)
        return Answers({questions[0].id: Approve({**questions[0].arguments, **change} if first else None)})

    shown: list[JsonObject] = []
    executor = Executor(Registry(tool), ByMode("default"))
    [outcome] = await executor.execute([ToolCall("c", tool.spec.name, arguments)], turn=Turn(ask=ask))
    return outcome


async def rewrite(tool: Tool, arguments: JsonObject | str, change: JsonObject) -> Outcome:
    executor = Executor(Registry(tool), ByMode("bypass"), hooks=[Edit(change)])
    [outcome] = await executor.execute([ToolCall("c", tool.spec.name, arguments)])
    return outcome


def first_line(outcome: Outcome) -> str:
    assert isinstance(outcome, Completed), outcome
    return outcome.output.text.partition("\n")[0]


@pytest.mark.parametrize("change", [edit, rewrite])
@pytest.mark.parametrize("made", [login, Login()])
@pytest.mark.parametrize(
    ("written", "change_to", "ran"),
    [
        ({"password": "A"}, {"user": "root"}, "root:A:1:fallback:0"),
        ('{"password":"A","user":"x"}', {"user": "root"}, "root:A:1:fallback:0"),
        ({"password": "A"}, {"wait": 1}, "me:A:1:fallback:1"),
        ({"password": "A", "again": "B"}, {"user": "root"}, "root:A:1:B:0"),
        ({"password": "A"}, {"user": "root", "password": "C"}, "root:C:1:fallback:0"),
        ({"password": "A"}, {"user": "root", "again": "C"}, "root:A:1:C:0"),
        ({"password": MASK}, {"user": "root"}, f"root:{MASK}:1:fallback:0"),
    ],
)
async def test_an_edit_keeps_the_secrets_it_leaves_masked(
    change: Any, made: Any, written: Any, change_to: JsonObject, ran: str
) -> None:
    assert first_line(await change(made, written, change_to)) == ran


@pytest.mark.parametrize("change", [edit, rewrite])
@pytest.mark.parametrize(
    ("written", "change_to", "ran"),
    [
        (
            {"account": {"name": "a", "pin": "1"}},
            {"account": {"name": "b", "pin": MASK, "port": 22}},
            "['b=1'] {} [] ",
        ),
        (
            {"account": {"name": "a", "pin": "1"}},
            {"account": {"name": "a", "pin": "2", "port": 23}},
            "['a=2'] {} [] ",
        ),
        ({"tokens": {"x": "1", "y": "2"}}, {"tokens": {"x": MASK}}, "[] {'x': '1'} [] "),
        ({"tokens": {"x": "1"}}, {"tokens": {"x": MASK, "z": "3"}}, "[] {'x': '1', 'z': '3'} [] "),
        (
            {"accounts": [{"name": "a", "pin": "1"}]},
            {"hosts": ["h"]},
            "['a=1'] {} ['h'] ",
        ),
        ({"spare": "1", "hosts": ["b", "a"]}, {"hosts": ["a", "c"]}, "[] {} ['a', 'c'] 1"),
        ({"accounts": [{"name": "a", "pin": "1"}]}, {"accounts": []}, "[] {} [] "),
        ({"spare": "1"}, {"spare": None}, "[] {} [] "),
    ],
)
async def test_an_edit_keeps_nested_secrets(change: Any, written: Any, change_to: JsonObject, ran: str) -> None:
    assert first_line(await change(connect, written, change_to)) == ran


@pytest.mark.parametrize("change", [edit, rewrite])
@pytest.mark.parametrize(
    ("written", "change_to"),
    [
        ({"tokens": {"x": "1"}}, {"tokens": {"y": MASK}}),
        (
            {"accounts": [{"name": "a", "pin": "1"}, {"name": "b", "pin": "2"}]},
            {"accounts": [{"name": "b", "pin": MASK}]},
        ),
        (
            {"accounts": [{"name": "a", "pin": "1"}, {"name": "b", "pin": "2"}]},
            {"accounts": [{"name": "b", "pin": MASK}, {"name": "a", "pin": MASK}]},
        ),
        ({"tokens": {"x": "1"}}, {"spare": MASK}),
    ],
)
async def test_a_mask_in_another_place_is_refused(change: Any, written: Any, change_to: JsonObject) -> None:
    outcome = await change(connect, written, change_to)
    assert isinstance(outcome, Failed)
    assert isinstance(outcome.error, Denied)
    assert not outcome.started
    assert f'"{MASK}" stands for a value that is not shown' in outcome.error.message


async def test_a_secret_written_by_an_alias_is_kept() -> None:
    @tool(effect=Effect.DESTROY)
    async def unlock(pin: Annotated[SecretStr, Field(alias="code")], door: str = "front") -> str:
        """Unlock."""
        return f"{door}:{pin.get_secret_value()}"

    for written in ({"pin": "1"}, {"code": "1"}):
        for change in (edit, rewrite):
            assert first_line(await change(unlock, written, {"door": "back"})) == "back:1"


async def test_a_second_hook_sees_the_mask_and_keeps_the_secret() -> None:
    executor = Executor(Registry(login), ByMode("bypass"), hooks=[Edit({"user": "a"}), Edit({"tries": 2})])
    [outcome] = await executor.execute([ToolCall("c", "login", {"password": "A"})])
    assert first_line(outcome) == "a:A:2:fallback:0"


async def test_the_approval_of_an_edit_is_for_one_secret() -> None:
    executor = Executor(Registry(login), ByMode("default"))
    call = ToolCall("c", "login", {"password": "A"})
    [asked] = await executor.execute([call])
    assert isinstance(asked, Interrupted)
    answers = Answers().approve(asked.questions[0], arguments={**asked.questions[0].arguments, "user": "root"})
    [asked] = await executor.execute([call], answers=answers)
    assert isinstance(asked, Interrupted)
    assert "A" not in str(asked.questions[0].arguments.values())
    answers.approve(asked.questions[0])
    for other in ({"password": "B"}, {"password": MASK}, {"password": "B", "user": "root"}):
        assert isinstance((await executor.execute([ToolCall("c", "login", other)], answers=answers))[0], Interrupted)
    [outcome] = await executor.execute([call], answers=answers)
    assert first_line(outcome) == "root:A:1:fallback:0"


async def test_an_edit_answered_in_another_process_keeps_the_secret() -> None:
    call = ToolCall("c", "login", {"password": "A"})
    on_record, answers = list[Question](), Answers()
    for change in ({"user": "root"}, None):
        turn = Turn(asked=tuple(on_record))
        [asked] = await Executor(Registry(login), ByMode("default")).execute([call], answers=answers, turn=turn)
        assert isinstance(asked, Interrupted)
        on_record.extend(asked.questions)
        shown = asked.questions[0].arguments
        answers.approve(asked.questions[0], arguments=None if change is None else {**shown, **change})
    turn = Turn(asked=tuple(on_record))
    [outcome] = await Executor(Registry(login), ByMode("default")).execute([call], answers=answers, turn=turn)
    assert first_line(outcome) == "root:A:1:fallback:0"


class SlippedLogin(Login):
    """Corrects one of its arguments, as tools do with paths."""

    def repair_paths(self, invocation: Invocation) -> tuple[JsonObject, tuple[Repair, ...]] | None:
        if invocation.arguments["user"] != "rot":
            return None
        return {"user": "root"}, (Repair("path", "root was meant"),)


async def test_a_repaired_path_keeps_the_secret() -> None:
    executor = Executor(Registry(SlippedLogin()), ByMode("bypass"))
    [outcome] = await executor.execute([ToolCall("c", "login", {"password": "A", "user": "rot"})])
    assert first_line(outcome) == "root:A:1:fallback:0"
