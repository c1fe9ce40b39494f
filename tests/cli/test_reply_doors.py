"""Every way in for a reply from outside: of thousands that are not an approval, none runs anything."""

import inspect
import json
import random
import string
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, cast

import mcp_types as types
import pytest
from tests.executor.replies import make_replies, make_value

from callwright import Answers, Approve, Completed, Executor, Interrupted, Question, Registry, ToolCall, Turn, tool
from callwright.app.hook_approvals import QuestionHooks
from callwright.cli.approval_dialog import EditRequest, read_choice
from callwright.cli.headless.input import read_answers
from callwright.core.decisions import Decline, Reply, parse_answer
from callwright.core.errors import UsageError
from callwright.hooks.shell.config import parse_shell_hooks
from callwright.hooks.shell.hooks import ShellHooks
from callwright.hooks.shell.process import HookRun
from callwright.hooks.shell.reply import HookReply, read_reply
from callwright.mcp.config import ServerConfig
from callwright.mcp.elicitation import AnswerTool, ask_person
from callwright.serve.elicitation import reply_to
from callwright.tool.base import ToolContext


def make_values(seed: int, count: int) -> Iterator[object]:
    """Yield replies for a way in that takes any value and awaits none."""
    for value in make_replies(seed, count):
        if inspect.iscoroutine(value):
            value.close()
        yield value


CALL = ToolCall("c1", "wipe")


@pytest.fixture(params=[500, pytest.param(2_500, marks=pytest.mark.slow)])
def count(request: pytest.FixtureRequest) -> int:
    """How many replies are tried for a way in."""
    return request.param


class Wiped:
    """A tool whose runs are counted on disk."""

    def __init__(self, folder: Path) -> None:
        self.file = folder / "wiped"

        @tool
        async def wipe() -> str:
            """Wipe everything."""
            with self.file.open("a") as file:
                file.write("wiped\n")
            return "wiped"

        self.executor = Executor(Registry(wipe))

    async def ask(self) -> Question:
        (outcome,) = await self.executor.execute([CALL])
        assert isinstance(outcome, Interrupted)
        return outcome.questions[0]

    async def answer(self, question: Question, reply: Reply) -> bool:
        """Answer the question; return whether the call ran."""
        (outcome,) = await self.executor.execute([CALL], answers=Answers({question.id: reply}))
        return isinstance(outcome, Completed)

    @property
    def runs(self) -> int:
        return len(self.file.read_text().splitlines()) if self.file.exists() else 0


@pytest.fixture
def wiped(tmp_path: Path) -> Wiped:
    return Wiped(tmp_path)


def make_lines(seed: int, approvals: frozenset[str]) -> Iterator[str]:
    """Yield typed lines that are not a bare approval: sentences, look-alikes, noise around an answer."""
    source = random.Random(seed)
    words = [
        *approvals,
        "yes",
        "no",
        "but",
        "not",
        "always",
        "ok",
        "sure",
        "allow",
        "\u0443",
        "\uff59",
        "\u200by",
        "y\u0301",
    ]
    noise = [*string.punctuation, "\n", "\t", "\u00a0", "\u2028", "\x00", "\x1b[A", "\ud800"]
    while True:
        pieces = source.choices([*words, *noise, ""], k=source.randrange(1, 6))
        line = source.choice(["", " "]).join(pieces)
        if line.strip(" \t\r\n").lower() not in approvals or not line.strip(" \t\r\n").isascii():
            yield line


async def test_typed_text_runs_nothing(wiped: Wiped, count: int) -> None:
    question = await wiped.ask()
    lines = make_lines(1, frozenset(("y", "yes", "1", "s", "2", "a", "3")))
    replied = 0
    for _, line in zip(range(count), lines, strict=False):
        assert not isinstance(parse_answer(line), Approve), line
        choice = read_choice(line, question)
        if isinstance(choice, (str, EditRequest)):
            continue
        replied += 1
        assert not await wiped.answer(question, choice), line
        question = await wiped.ask()
    assert wiped.runs == 0 and replied > 100
    assert await wiped.answer(question, cast("Approve", read_choice("y", question))) and wiped.runs == 1


def make_json(seed: int) -> Iterator[str]:
    """Yield values of `--answers` that allow nothing: near misses of the format, and JSON of every kind."""
    source = random.Random(seed)
    near: list[object] = [
        *("Allow", "ALLOW", "allow ", "yes", "approve", "true", "deny", True, 1, None, [], {}, ["allow"]),
        *({"allow": True}, {"allow": []}, {"allow": None}, {"allow": "all"}, {"allow": {}, "deny": "no"}),
        *({"Allow": {}}, {"approve": {}}, {"allow": {}, "note": "not the second"}, {"deny": "no"}, {"deny": 1}),
    ]
    while True:
        value = source.choice(near) if source.random() < 0.6 else make_value(source, 0)
        key = source.choice(["c1", "*", "c2", "", "C1"])
        whole = source.choice([{key: value}, {key: value, "c2": "allow"}, value, [value]])
        text = whole if isinstance(whole, str) and source.random() < 0.5 else json.dumps(whole, default=repr)
        if text != "allow":
            yield text


async def test_answers_of_the_command_line_run_nothing(wiped: Wiped, count: int) -> None:
    question = await wiped.ask()
    for _, text in zip(range(count), make_json(2), strict=False):
        try:
            answers = read_answers(text, [question])
        except UsageError:
            continue
        for _, reply in answers:
            assert not await wiped.answer(question, reply), text
            question = await wiped.ask()
    assert wiped.runs == 0
    ((_, reply),) = read_answers('{"c1": "allow"}', [question])
    assert await wiped.answer(question, reply) and wiped.runs == 1


async def test_forms_of_an_mcp_client_run_nothing(wiped: Wiped, count: int) -> None:
    source, question = random.Random(3), await wiped.ask()
    catalog = wiped.executor.registry.snapshot()
    for value in make_values(3, count):
        action = source.choice(["accept", "accept", "accept", "decline", "cancel"])
        content = {source.choice(["decision", "Decision", "approve", "note"]): value}
        content |= {"note": "not the second"} if source.random() < 0.3 else {}
        if type(value) is str and value == "yes":
            continue
        form = types.ElicitResult.model_construct(action=cast(Any, action), content=cast(Any, content))
        assert not await wiped.answer(question, reply_to(question, catalog, form)), content
        question = await wiped.ask()
    assert wiped.runs == 0
    yes = types.ElicitResult(action="accept", content={"decision": "yes"})
    assert await wiped.answer(question, reply_to(question, catalog, yes)) and wiped.runs == 1


class WrittenReplies(ShellHooks):
    """Hooks whose process has written this."""

    written = HookRun()

    async def fire(self, event: str, fields: Any, **more: Any) -> HookReply:
        return read_reply(self.hooks[0], self.written)


def make_hook_runs(seed: int) -> Iterator[HookRun]:
    """Yield results of hook processes that allow nothing."""
    source = random.Random(seed)
    words: list[object] = [
        *("Allow", "ALLOW", "allow ", "yes", "true", "ok", "deny", "block", "ask", True, 1, None, [], ["allow"], {}),
    ]
    while True:
        word = source.choice(words) if source.random() < 0.7 else make_value(source, 0)
        own: dict[str, object] = {
            source.choice(["permissionDecision", "decision", "action", "permissiondecision", "behavior"]): word
        }
        own |= {"decision": {"behavior": word}} if source.random() < 0.4 else {}
        own |= {"updatedInput": make_value(source, 1)} if source.random() < 0.2 else {}
        reply: object = source.choice([{"hookSpecificOutput": own}, own, [{"hookSpecificOutput": own}], word])
        text = json.dumps(reply, default=repr)
        allow = json.dumps({"hookSpecificOutput": {"decision": {"behavior": "allow"}}})
        spoiled = source.choice(
            [f"log\n{allow}", f"{allow}\n{allow}", f"[{allow}]", allow[:-1], f"{allow} # not the second"]
        )
        stdout = source.choice([text, text, spoiled])
        yield HookRun(source.choice([0, 0, 0, 1, 2, 127]), stdout, "", source.choice(["", "", "", "timed out"]))
        yield HookRun(source.choice([1, 2, 3, 126, -9]), allow)


async def test_hook_output_runs_nothing(wiped: Wiped, count: int) -> None:
    hooks, _ = parse_shell_hooks({"PermissionRequest": [{"hooks": [{"command": "true"}]}]})
    written = WrittenReplies(hooks)
    asked = QuestionHooks(written, wiped.executor)
    question = await wiped.ask()
    for _, run in zip(range(count), make_hook_runs(4), strict=False):
        written.written = run
        for _, reply in await asked.answers([question]):
            assert not await wiped.answer(question, reply), run
            question = await wiped.ask()
    assert wiped.runs == 0


async def test_approvals_of_pydantic_ai_run_nothing(wiped: Wiped, count: int) -> None:
    # here and below: every worker would import the frameworks, which takes longer than the tests
    from pydantic_ai import RunContext
    from pydantic_ai.exceptions import ApprovalRequired
    from pydantic_ai.models.test import TestModel
    from pydantic_ai.usage import RunUsage

    from callwright.interop import to_pydantic_ai

    toolset = to_pydantic_ai(wiped.executor)
    context = RunContext[Any](deps=None, model=TestModel(), usage=RunUsage(), tool_call_id="c1")
    tools = await toolset.get_tools(context)
    for value in make_values(5, count):
        if value is True:
            continue
        context.tool_call_approved = cast(Any, value)
        with pytest.raises(ApprovalRequired):
            await toolset.call_tool("wipe", {}, context, tools["wipe"])
    assert wiped.runs == 0
    context.tool_call_approved = True
    assert await toolset.call_tool("wipe", {}, context, tools["wipe"]) == "wiped" and wiped.runs == 1


async def test_approvals_of_openai_agents_run_nothing(wiped: Wiped, count: int) -> None:
    from agents.tool_context import ToolContext as AgentsContext
    from agents.usage import Usage

    from callwright.interop import to_openai_agents

    class Context(AgentsContext[None]):
        said: object = None

        def is_tool_approved(self, *_: object, **__: object) -> Any:
            return self.said

    (wipe,) = to_openai_agents(wiped.executor)
    needs = cast("Callable[..., Any]", wipe.needs_approval)
    context = Context(None, Usage(), "wipe", "c1", "{}")
    for value in make_values(6, count):
        if value is True:
            continue
        assert await needs(context, {}, "c1")
        context.said = value
        assert "not been approved" in await wipe.on_invoke_tool(context, "{}")
    assert wiped.runs == 0
    assert await needs(context, {}, "c1")
    context.said = True
    assert await wipe.on_invoke_tool(context, "{}") == "wiped" and wiped.runs == 1


@pytest.mark.slow
async def test_replies_to_an_elicitation_accept_nothing() -> None:
    """A server's form is accepted only with an `Approve` that fills it in."""
    accepted: list[object] = []
    form = types.ElicitRequestFormParams(
        message="Delete all?",
        requested_schema={"type": "object", "properties": {"sure": {"type": "boolean", "default": True}}},
    )

    @tool
    async def outer(context: ToolContext) -> str:
        """Asks as a server would."""
        result = await ask_person(form, context, "mcp__x__answer")
        accepted.append(result) if result.action == "accept" else None
        return result.action

    executor = Executor(Registry(outer, AnswerTool("mcp__x__answer", ServerConfig("x", "x"))))
    replies: list[object] = [*make_replies(7, 1_000), Approve(), Approve({"message": "x"}), Approve({"answer": {}})]
    for value in replies:

        def ask(questions: Sequence[Question], value: object = value) -> Any:
            return {question.id: Approve() if question.tool == "outer" else value for question in questions}

        await executor.execute([ToolCall("1", "outer")], turn=Turn(ask=ask))
    assert accepted == []

    async def fill_in(questions: Sequence[Question]) -> Answers:
        answer = {**questions[0].arguments, "answer": {"sure": False}}
        return Answers({q.id: Approve() if q.tool == "outer" else Approve(cast(Any, answer)) for q in questions})

    await executor.execute([ToolCall("1", "outer")], turn=Turn(ask=fill_in))
    assert [cast(Any, result).content for result in accepted] == [{"sure": False}]
    assert isinstance(parse_answer("no"), Decline)
