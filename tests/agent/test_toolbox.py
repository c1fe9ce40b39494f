"""The agent with the real coding tools: write, read, run, recover."""

from pathlib import Path

from callwright import Completed, Effect, Executor, Failed, Registry, ToolCall
from callwright.agent import Agent, Done, default_system_prompt
from callwright.core.messages import AssistantMessage, ToolMessage, UserMessage
from callwright.policy import AllowEverything
from callwright.testing.fakes import ScriptedProvider
from callwright.toolbox import coding_tools


def agent_in(folder: Path, provider: ScriptedProvider, *names: str) -> Agent:
    registry = Registry(*(t for t in coding_tools(folder) if not names or t.spec.name in names))
    return Agent(provider, registry, executor=Executor(registry, AllowEverything()))


def test_default_toolset_is_described(tmp_path: Path) -> None:
    registry = Registry(*coding_tools(tmp_path))
    names = ["bash", "bash_kill", "bash_output", "edit", "glob", "grep", "read", "write"]
    assert registry.names() == names and len(registry) == len(names)
    assert all(registry.get(name) is not None for name in registry.names()) and registry.get("missing") is None
    assert all(spec.name and spec.description for spec in registry.definitions())


def test_definitions_are_sorted_by_name(tmp_path: Path) -> None:
    chosen = [t for t in coding_tools(tmp_path) if t.spec.name in ("write", "grep", "glob")]
    assert [spec.name for spec in Registry(*chosen).definitions()] == ["glob", "grep", "write"]
    assert Registry(*(t for t in chosen if t.spec.name != "write")).names() == ["glob", "grep"]


def test_read_tools_are_read_and_only_bash_destroys(tmp_path: Path) -> None:
    effects = {t.spec.name: t.spec.annotations.effect for t in coding_tools(tmp_path)}
    reads = {"read", "glob", "grep", "bash_output", "bash_kill"}
    assert {name for name, effect in effects.items() if effect is Effect.READ} == reads
    assert {name for name, effect in effects.items() if effect is Effect.DESTROY} == {"bash"}


async def test_write_then_read_then_answer(tmp_path: Path) -> None:
    script = (
        ToolCall("c1", "write", {"path": "out.txt", "content": "hello from the agent"}),
        ToolCall("c2", "read", {"path": "out.txt"}),
        "Done!",
    )
    with ScriptedProvider(*script) as provider:
        agent = agent_in(tmp_path, provider, "read", "write")
        result = await agent.run("write and read a file", session="s")
    assert isinstance(result, Done) and result.text == "Done!" and result.turns == 3
    assert (tmp_path / "out.txt").read_text() == "hello from the agent"
    messages = await agent.messages("s")
    expected = [UserMessage, AssistantMessage, ToolMessage, AssistantMessage, ToolMessage, AssistantMessage]
    assert [type(message) for message in messages] == expected
    read = messages[4]
    assert isinstance(read, ToolMessage) and "hello from the agent" in read.outcomes[0].text


async def test_bash_then_answer(tmp_path: Path) -> None:
    with ScriptedProvider(ToolCall("c1", "bash", {"command": "echo hi there"}), "it said hi") as provider:
        result = await agent_in(tmp_path, provider, "bash").run("say hi")
    assert isinstance(result, Done) and result.turns == 2
    told = provider.requests[1].messages[-1]
    assert isinstance(told, ToolMessage) and isinstance(told.outcomes[0], Completed)
    assert "hi there" in told.outcomes[0].text


async def test_model_recovers_from_unknown_tool(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("found")
    calls = (ToolCall("c1", "raed", {"path": "a.txt"}), ToolCall("c2", "read", {"path": "a.txt"}))
    with ScriptedProvider(*calls, "it says found") as provider:
        result = await agent_in(tmp_path, provider).run("read a.txt")
    assert isinstance(result, Done)
    told = provider.requests[1].messages[-1]
    assert isinstance(told, ToolMessage) and isinstance(told.outcomes[0], Failed)
    assert "did you mean read?" in told.outcomes[0].text


async def test_agent_runs_from_a_script_file(tmp_path: Path) -> None:
    script = tmp_path / "script.json"
    script.write_text('[{"text": "I look", "calls": [{"name": "glob", "arguments": {"pattern": "*"}}]}, "one file"]')
    with ScriptedProvider.from_file(script) as provider:
        result = await agent_in(tmp_path, provider).run("what is here?")
    assert isinstance(result, Done) and result.text == "one file"


def test_default_prompt_recommends_parallel_calls() -> None:
    assert "parallel" in default_system_prompt() and default_system_prompt("You sort mail.").startswith("You sort")
