"""Messages without calls that are no answer: calls written as text, calls in prose, empty messages, repetition."""

import json
from pathlib import Path

import pytest

from callwright import Agent, Effect, Executor, Registry, ToolCall, tool
from callwright.agent.results import Done, Paused, Stopped
from callwright.agent.run_limits import RunLimits
from callwright.core.content import Output, Text
from callwright.core.errors import ToolFailed
from callwright.core.messages import AssistantMessage, ToolMessage, UserMessage
from callwright.policy import AllowEverything, ByMode
from callwright.providers.base import ModelRequest
from callwright.providers.json_actions import SchemaActions
from callwright.sessions.records import Said
from callwright.testing import ScriptedProvider
from callwright.toolbox import coding_tools


def say(text: str) -> AssistantMessage:
    return AssistantMessage((Text(text),) if text else ())


def agent_for(folder: Path, *lines: AssistantMessage) -> tuple[Agent, ScriptedProvider]:
    provider = ScriptedProvider(*lines)
    registry = Registry(*coding_tools(folder))
    return Agent(provider, executor=Executor(registry, policies=AllowEverything())), provider


async def test_call_written_as_text_runs(tmp_path: Path):
    (tmp_path / "a.py").write_text("x = 42\n")
    agent, provider = agent_for(
        tmp_path, say('<tool_call>\n{"name": "read", "arguments": {"path": "a.py"}}\n</tool_call>'), say("x is 42")
    )
    result = await agent.run("what is x?")
    assert isinstance(result, Done)
    message = provider.requests[1].messages[-1]
    assert isinstance(message, ToolMessage)
    assert "x = 42" in message.outcomes[0].text
    assert "(The call was read from the text of the message.)" in message.outcomes[0].text
    assert agent.executor.stats["read"].repairs == {"text": 1}


async def test_call_written_as_text_asks_like_any_other(tmp_path: Path):
    provider = ScriptedProvider(say('{"name": "bash", "arguments": {"command": "touch made"}}'))
    agent = Agent(provider, executor=Executor(Registry(*coding_tools(tmp_path)), policies=ByMode("default")))
    result = await agent.run("go")
    assert isinstance(result, Paused)
    assert not (tmp_path / "made").exists()


async def test_call_in_prose_is_asked_about_once_and_never_runs(tmp_path: Path):
    prose = say('I will do it:\n\n```json\n{"name": "bash", "arguments": {"command": "touch made"}}\n```\n')
    agent, provider = agent_for(tmp_path, prose, prose)
    result = await agent.run("go")
    assert isinstance(result, Stopped)
    assert result.kind == "empty"
    assert "a call of bash among other text" in str(provider.requests[1].messages[-1])
    assert not (tmp_path / "made").exists()


async def test_call_in_prose_is_no_answer_of_a_killed_run_either(tmp_path: Path):
    prose = say('I will do it:\n\n```json\n{"name": "bash", "arguments": {"command": "touch made"}}\n```\n')
    agent, provider = agent_for(tmp_path, say("nothing was done"))
    hold = await agent.sessions.hold("s")
    await hold.append(Said(UserMessage("go")), Said(prose))  # killed before it was asked again
    await hold.release()
    result = await agent.resume("s")
    assert isinstance(result, Done) and result.text == "nothing was done"
    assert "a call of bash among other text" in str(provider.requests[0].messages[-1])
    assert (await agent.resume("s")).text == result.text


@pytest.mark.parametrize("schema", [False, True])
async def test_key_with_two_values_in_a_text_call_is_named(tmp_path: Path, schema: bool):
    twice = '{"tool": "write", "arguments": {"path": "a.py", "path": "b.py", "content": "x"}}'
    agent, provider = agent_for(tmp_path, say(twice), say('{"answer": "I stop"}'))
    if schema:
        agent.provider = SchemaActions(provider)
    assert isinstance(await agent.run("go"), Done)
    asked = str(provider.requests[1].messages[-1])
    assert "a call of write" in asked and 'nothing ran: the key "path" is written twice' in asked
    assert not list(tmp_path.glob("*.py"))


async def test_labelled_call_on_one_line_runs(tmp_path: Path):
    (tmp_path / "a.py").write_text("x = 42\n")
    agent, provider = agent_for(tmp_path, say('Tool: read Arguments: {"path": "a.py"}'), say("x is 42"))
    assert isinstance(await agent.run("what is x?"), Done)
    message = provider.requests[1].messages[-1]
    assert isinstance(message, ToolMessage)
    assert "x = 42" in message.outcomes[0].text


@pytest.mark.parametrize("text", ["", "  \n"])
async def test_empty_message_is_no_success(tmp_path: Path, text: str):
    agent, _ = agent_for(tmp_path, say(text), say(text))
    result = await agent.run("go")
    assert isinstance(result, Stopped)
    assert result.kind == "empty"
    agent, provider = agent_for(tmp_path, say(text), say("done"))
    assert isinstance(await agent.run("go"), Done)
    assert "no text and no call" in str(provider.requests[1].messages[-1])


async def test_answer_with_braces_is_an_answer(tmp_path: Path):
    agent, _ = agent_for(tmp_path, say('{"name": "Ada", "age": 36}'))
    assert isinstance(await agent.run("go"), Done)


async def test_third_failure_of_the_same_call_is_told_what_to_change():
    @tool
    async def stuck() -> str:
        """Fail."""
        raise ToolFailed("no such thing")

    seen: list[str] = []

    def reply(request: ModelRequest) -> ToolCall:
        last = request.messages[-1]
        if isinstance(last, ToolMessage):
            seen.append(last.outcomes[0].text)
        return ToolCall(f"c{len(seen)}", "stuck", {})

    agent = Agent(
        ScriptedProvider.answering(reply),
        executor=Executor(Registry(stuck), policies=AllowEverything()),
        limits=RunLimits(same_failures=5),
    )
    result = await agent.run("go")
    assert isinstance(result, Stopped)
    assert (result.kind, len(seen)) == ("repeated", 4)
    assert seen[:2] == ["no such thing", "no such thing"]
    assert "failed 3 times in a row" in seen[2]
    assert "look at the present state first" in seen[2]


@pytest.mark.parametrize(
    "text",
    [
        '{"name": "mul", "arguments": {"a": 5}}',
        '```json\n{"name": "package.json", "arguments": {"command": "cat"}}\n```',
        '{{"name": "parse_date", "arguments": {"path": "a"}}}',
        '[{"tool": "append", "parameters": {"path": "a"}}]',
        '```json\n{"name": "Ada Lovelace", "arguments": {}}\n```',
    ],
)
async def test_call_of_unknown_tool_as_text_is_no_answer(tmp_path: Path, text: str):
    agent, provider = agent_for(tmp_path, say(text), say("done"))
    assert isinstance(await agent.run("go"), Done)
    told = str(provider.requests[1].messages[-1])
    assert "there is no tool " in told and "grep" in told
    agent, _ = agent_for(tmp_path, say(text), say(text))
    result = await agent.run("go")
    assert isinstance(result, Stopped)
    assert result.kind == "empty"


@pytest.mark.parametrize(
    "text",
    [
        '{{"name": "write", "arguments": {"path": "made", "content": "{{user.name}}"}}}',
        '{"name": "write", "arguments": {"path": "made", "content": "cut',
    ],
)
async def test_call_with_no_reading_or_two_is_no_answer(tmp_path: Path, text: str):
    agent, provider = agent_for(tmp_path, say(text), say("done"))
    assert isinstance(await agent.run("go"), Done)
    assert "a call of write" in str(provider.requests[1].messages[-1])
    assert not (tmp_path / "made").exists()


@pytest.mark.parametrize(
    "text",
    [
        '{"name": "mul", "version": "1.0"}',
        '{"name": "mul", "arguments": "a"}',
        '{"name": "a person", "arguments": {"a": 5}}',
        '{"name": "mul", "arguments": {"a": 5}, "result": 3}',
        'The object is {"name": "mul", "arguments": {"a": 5}}.',
    ],
)
async def test_other_objects_are_answers(tmp_path: Path, text: str):
    agent, _ = agent_for(tmp_path, say(text))
    assert isinstance(await agent.run("go"), Done)


async def test_model_may_be_asked_again_after_calls(tmp_path: Path):
    call = say('{"name": "glob", "arguments": {"pattern": "*"}}')
    agent, _ = agent_for(tmp_path, say(""), call, say(""), say("done"))
    assert isinstance(await agent.run("go"), Done)
    agent, _ = agent_for(tmp_path, say(""), call, say(""), say(""))
    assert isinstance(await agent.run("go"), Stopped)


@pytest.mark.parametrize("content", ["", "a\n", (Text("a"), Text("b"))], ids=["empty", "line", "parts"])
async def test_told_outcomes_still_count_as_the_same(content: str | tuple[Text, ...]):
    @tool(effect=Effect.READ)
    async def look() -> Output:
        """Look."""
        return Output(content)

    calls = (ToolCall(f"c{number}", "look", {}) for number in range(9))
    agent = Agent(
        ScriptedProvider.answering(lambda request: next(calls)),
        executor=Executor(Registry(look), policies=AllowEverything()),
        limits=RunLimits(same_calls=4),
    )
    result = await agent.run("go")
    assert isinstance(result, Stopped)
    assert (result.kind, result.turns) == ("repeated", 4)


async def test_repeated_call_is_told_that_its_outcome_is_known():
    numbers = iter((1, 1, 1, 2, 2))

    @tool(effect=Effect.READ)
    async def count() -> int:
        """Count."""
        return next(numbers)

    seen: list[str] = []

    def reply(request: ModelRequest) -> ToolCall | str:
        last = request.messages[-1]
        if isinstance(last, ToolMessage):
            seen.append(last.outcomes[0].text)
        return ToolCall(f"c{len(seen)}", "count", {}) if len(seen) < 5 else "done"

    agent = Agent(ScriptedProvider.answering(reply), executor=Executor(Registry(count), policies=AllowEverything()))
    assert isinstance(await agent.run("go"), Done)
    known = "\n[this call was made before and had the same outcome; with it the question can be answered]"
    assert seen == ["1", f"1{known}", f"1{known}", "2", f"2{known}"]


class Switchable(ScriptedProvider):
    """Counts how often it was told to use schema mode."""

    switched = 0

    def use_schema(self) -> None:
        self.switched += 1


@pytest.mark.parametrize(
    "text", ['{"name": "read", "arguments": {"path": "a" b"}}', '{"name": "mul", "arguments": {"a": 5}}']
)
@pytest.mark.parametrize(("own_calls", "switched"), [(False, 1), (True, 0)])
async def test_unreadable_or_unknown_call_switches_unless_the_model_made_calls(
    tmp_path: Path, own_calls: bool, switched: int, text: str
):
    (tmp_path / "a").write_text("alpha")
    call = AssistantMessage((ToolCall("c1", "read", {"path": "a"}),), "calls")
    provider = Switchable(*([call] if own_calls else []), say(text), say("done"))
    agent = Agent(provider, executor=Executor(Registry(*coding_tools(tmp_path)), policies=AllowEverything()))
    assert isinstance(await agent.run("go"), Done)
    assert provider.switched == switched


async def test_unreadable_call_does_not_switch_after_calls_of_an_earlier_prompt(tmp_path: Path):
    (tmp_path / "a").write_text("alpha")
    call = AssistantMessage((ToolCall("c1", "read", {"path": "a"}),), "calls")
    example = say('I would send {"name": "read", "arguments": {"path": "a"}}.')
    provider = Switchable(call, say("done"), example, say("done"))
    agent = Agent(provider, executor=Executor(Registry(*coding_tools(tmp_path)), policies=AllowEverything()))
    for prompt in ("read a", "how would you read it?"):
        assert isinstance(await agent.run(prompt, session="s"), Done)
    assert provider.switched == 0


@pytest.mark.parametrize(("name", "named"), [("", "without a name"), ("x" * 500, "x" * 79 + "…")])
async def test_odd_name_of_an_unknown_tool_is_told_shortly(tmp_path: Path, name: str, named: str):
    agent, provider = agent_for(tmp_path, say(json.dumps({"name": name, "arguments": {}})), say("done"))
    assert isinstance(await agent.run("go"), Done)
    assert f"there is no tool {named}: nothing ran" in str(provider.requests[-1].messages)
