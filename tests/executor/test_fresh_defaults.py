"""Approvals of calls with a default that is made for each call: what was shown is what runs."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any
from uuid import UUID, uuid4

import pytest
from pydantic import BaseModel, Field, SecretStr

from callwright import Agent, Answers, Done, Effect, Executor, Paused, Question, Registry, SqliteStore, ToolCall, tool
from callwright.core.access import Access, Ask, ReadPath
from callwright.core.calls import Completed, Failed, Interrupted
from callwright.core.decisions import AnswersNeeded
from callwright.core.errors import ApprovalRequired, Declined
from callwright.executor.turn_context import Turn
from callwright.hooks.base import PendingCall, Rewrite
from callwright.policy import Policies, Policy, Subject
from callwright.testing import ScriptedHook, ScriptedProvider
from callwright.tool.base import Tool, ToolContext
from callwright.tool.typed import TypedTool, describe

ran: list[Any] = []


@pytest.fixture(autouse=True)
def nothing_ran() -> None:
    ran.clear()


Key = Annotated[UUID, Field(default_factory=uuid4)]


@tool
async def pay(invoice: int, key: Key, tags: list[str] = []) -> str:  # noqa: B006 - copied for each call
    """Pay an invoice, once for each key."""
    ran.append(str(key))
    tags.append("changed")
    return f"paid {invoice} with {key}"


class Item(BaseModel):
    count: int
    id: UUID = Field(default_factory=uuid4, alias="ID", validation_alias="ID")
    note: str = ""


class Order(BaseModel):
    items: list[Item]
    secret: SecretStr = SecretStr("")
    key: UUID = Field(default_factory=uuid4)


class Buy(TypedTool[Order]):
    spec = describe("buy", "Buy things.", effect=Effect.WRITE)

    async def run(self, arguments: Order, context: ToolContext) -> object:
        ran.append((arguments.model_dump(mode="json"), arguments.secret.get_secret_value()))
        return "bought"


@dataclass
class Node:
    name: str
    id: Annotated[UUID, Field(default_factory=uuid4)]


@tool
async def add_nodes(nodes: list[Node], password: SecretStr) -> str:
    """Add nodes."""
    ran.append(([str(node.id) for node in nodes], password.get_secret_value()))
    return "added"


def ask_about(outcomes: Sequence[object]) -> tuple[Question, ...]:
    assert all(isinstance(outcome, Interrupted) for outcome in outcomes), outcomes
    return tuple(question for outcome in outcomes if isinstance(outcome, Interrupted) for question in outcome.questions)


CALL = ToolCall("c1", "pay", {"invoice": 42})


async def test_what_was_approved_runs_with_the_shown_default() -> None:
    executor = Executor(Registry(pay))
    (question,) = ask_about(await executor.execute([CALL]))
    (outcome,) = await executor.execute([CALL], answers=Answers().approve(question))
    assert isinstance(outcome, Completed) and ran == [question.arguments["key"]]
    (again,) = ask_about(await executor.execute([CALL], answers=Answers().approve(question)))  # it counted once
    assert len(ran) == 1 and again.id != question.id


async def test_user_who_is_asked_at_once_approves_what_runs() -> None:
    shown: list[Question] = []

    async def ask(questions: Sequence[Question]) -> Answers:
        shown.extend(questions)
        return Answers.approving(questions)

    calls = [CALL, ToolCall("c2", "pay", '{"invoice": 43}')]
    outcomes = await Executor(Registry(pay)).execute(calls, turn=Turn(ask=ask))
    assert all(isinstance(outcome, Completed) for outcome in outcomes)
    assert ran == [question.arguments["key"] for question in shown] and len(set(ran)) == 2


async def test_declined_call_does_not_run() -> None:
    executor = Executor(Registry(pay))
    (question,) = ask_about(await executor.execute([CALL]))
    (outcome,) = await executor.execute([CALL], answers=Answers().decline(question, "no"))
    assert isinstance(outcome, Failed) and isinstance(outcome.error, Declined) and not ran


@pytest.mark.parametrize(
    "changed",
    [
        ToolCall("c1", "pay", {"invoice": 43}),
        ToolCall("c2", "pay", {"invoice": 42}),
        ToolCall("c1", "pay", {"invoice": 42, "key": str(uuid4())}),
        ToolCall("c1", "pay", {"invoice": 42, "tags": ["a"]}),
        ToolCall("c1", "pay_twice", {"invoice": 42}),
    ],
)
async def test_changed_call_is_asked_about(changed: ToolCall) -> None:
    @tool
    async def pay_twice(invoice: int, key: Key, tags: list[str] = []) -> str:  # noqa: B006 - copied for each call
        """Pay an invoice, twice."""
        ran.append(str(key))
        return ""

    executor = Executor(Registry(pay, pay_twice))
    (question,) = ask_about(await executor.execute([CALL]))
    (other,) = ask_about(await executor.execute([changed], answers=Answers().approve(question)))
    assert other.digest != question.digest and not ran
    await executor.execute([changed], answers=Answers().approve(other))
    assert ran == [other.arguments["key"]]


async def test_nested_defaults_and_secrets() -> None:
    executor = Executor(Registry(Buy(), add_nodes))
    bought = ToolCall("c1", "buy", {"items": [{"count": 1}, {"count": 2, "ID": str(uuid4())}], "secret": "s3cret"})
    (question,) = ask_about(await executor.execute([bought]))
    (outcome,) = await executor.execute([bought], answers=Answers().approve(question))
    assert isinstance(outcome, Completed) and ran == [(question.arguments, "s3cret")]
    ran.clear()
    added = ToolCall("c2", "add_nodes", '{"nodes": [{"name": "a"}, {"name": "b"}], "password": "hunter2"}')
    (question,) = ask_about(await executor.execute([added]))
    other = ToolCall("c2", "add_nodes", '{"nodes": [{"name": "a"}, {"name": "b"}], "password": "hunter3"}')
    ask_about(await executor.execute([other], answers=Answers().approve(question)))  # the secret is not shown
    (outcome,) = await executor.execute([added], answers=Answers().approve(question))
    nodes: Any = question.arguments["nodes"]
    assert isinstance(outcome, Completed) and ran == [([node["id"] for node in nodes], "hunter2")]


async def test_only_defaults_of_each_call_are_given_again() -> None:
    seen: list[set[str]] = []

    class Patch(BaseModel):
        title: str = ""
        text: str = ""
        id: UUID = Field(default_factory=uuid4)

    @tool
    async def patch(change: Patch) -> str:
        """Change what is given."""
        seen.append(change.model_fields_set)
        return str(change.id)

    executor, call = Executor(Registry(patch)), ToolCall("c1", "patch", {"change": {"title": "new"}})
    (question,) = ask_about(await executor.execute([call]))
    (outcome,) = await executor.execute([call], answers=Answers().approve(question))
    change: Any = question.arguments["change"]
    assert isinstance(outcome, Completed) and outcome.text == change["id"] and seen == [{"title", "id"}]


async def test_edit_of_the_user_keeps_the_shown_default() -> None:
    executor = Executor(Registry(pay))
    (question,) = ask_about(await executor.execute([CALL]))
    edited = {**question.arguments, "invoice": 7}
    first = await executor.execute([CALL], answers=Answers().approve(question, arguments=edited))
    (again,) = ask_about(first)  # without accesses, changed arguments are asked about again
    assert again.arguments["invoice"] == 7 and again.arguments["key"] == question.arguments["key"]
    both = Answers().approve(question, arguments=edited).approve(again)
    (outcome,) = await executor.execute([CALL], answers=both)
    assert isinstance(outcome, Completed) and outcome.text.startswith("paid 7 ") and ran == [question.arguments["key"]]


async def test_hook_that_rewrites_is_asked_again() -> None:
    def rewrite(pending: PendingCall) -> Rewrite:
        return Rewrite({**pending.arguments, "invoice": 1})

    executor = Executor(Registry(pay), hooks=[ScriptedHook(rewrite)])
    (question,) = ask_about(await executor.execute([CALL]))
    (outcome,) = await executor.execute([CALL], answers=Answers().approve(question))
    assert isinstance(outcome, Completed) and ran == [question.arguments["key"]] and "paid 1 " in outcome.text


async def test_accesses_of_the_shown_default_are_judged() -> None:
    judged: list[Access] = []

    class Watch(Policy):
        def judge(self, access: Access, subject: Subject) -> Ask:
            judged.append(access)
            return Ask("new")

    def find_accesses(arguments: Any) -> list[Access]:
        return [ReadPath(f"/data/{arguments['key']}")]

    @tool(accesses=find_accesses)
    async def look(key: Key) -> str:
        """Look into a file."""
        ran.append(str(key))
        return ""

    executor, call = Executor(Registry(look), Policies(Watch())), ToolCall("c1", "look", {})
    (question,) = ask_about(await executor.execute([call]))
    judged.clear()
    await executor.execute([call], answers=Answers().approve(question))
    assert ran == [question.arguments["key"]] and {*judged} == {ReadPath(f"/data/{ran[0]}")}


async def test_question_of_a_running_tool() -> None:
    @tool(effect=Effect.READ)
    async def work(context: ToolContext, key: Key) -> str:
        """Ask, then work."""
        ran.append(str(key))
        if context.answer is None:
            raise ApprovalRequired("go on?")
        return "worked"

    executor, call = Executor(Registry(work)), ToolCall("c1", "work", {})
    (question,) = ask_about(await executor.execute([call]))
    (outcome,) = await executor.execute([call], answers=Answers().approve(question))
    assert isinstance(outcome, Completed) and ran == [question.arguments["key"]] * 2


async def test_call_that_waits_for_calls_inside() -> None:
    @tool
    async def inner(n: int) -> str:
        """Do something; asks first."""
        return f"inner {n}"

    @tool
    async def outer(context: ToolContext, key: Key) -> str:
        """Make a call."""
        ran.append(str(key))
        (outcome,) = await context.execute(ToolCall("i1", "inner", {"n": 1}))
        if isinstance(outcome, Interrupted):
            raise AnswersNeeded(outcome.questions)
        return outcome.text

    executor, call = Executor(Registry(inner, outer)), ToolCall("c1", "outer", {})
    (first,) = ask_about(await executor.execute([call]))
    (second,) = ask_about(await executor.execute([call], answers=Answers().approve(first)))
    assert second.tool == "inner" and ran == [first.arguments["key"]]
    (outcome,) = await executor.execute([call], answers=Answers().approve(second))
    assert isinstance(outcome, Completed) and outcome.text == "inner 1" and ran == [first.arguments["key"]] * 2


def make_agent(store: SqliteStore, *lines: Any) -> Agent:
    tools: list[Tool] = [pay]
    return Agent(ScriptedProvider(*lines), tools, sessions=store)


async def test_answer_counts_in_another_process(tmp_path: Path) -> None:
    async with SqliteStore(tmp_path / "s.db") as store:
        paused = await make_agent(store, CALL).run("go", session="s")
        assert isinstance(paused, Paused)
        (question,) = paused.questions
        done = await make_agent(store, "done").resume("s", Answers().approve(question))
        assert isinstance(done, Done) and ran == [question.arguments["key"]]


async def test_calls_without_questions_have_defaults_of_their_own() -> None:
    @tool(effect=Effect.READ)
    async def look(key: Key) -> str:
        """Look."""
        return str(key)

    executor = Executor(Registry(look))
    texts = [(await executor.run("look", {})).text for _ in range(3)]
    assert len(set(texts)) == 3
