"""What `resume` makes of a session whose last message is the model's."""

import pytest

from callwright.agent import Agent, Done, Stopped
from callwright.core.content import Text
from callwright.core.messages import AssistantMessage, Stop, UserMessage
from callwright.testing.fakes import ScriptedProvider

UNFINISHED: list[Stop] = ["length", "refusal", "other"]


@pytest.mark.parametrize("stop", UNFINISHED)
@pytest.mark.parametrize("output", [None, str])
async def test_unfinished_message_is_no_answer_when_resumed(stop: Stop, output: type[str] | None) -> None:
    with ScriptedProvider(AssistantMessage((Text('"half"'),), stop)) as provider:
        agent = Agent(provider)
        first = await agent.run("go", session="s", output=output)
        again = await agent.resume("s", output=output)
    assert isinstance(first, Stopped) and isinstance(again, Stopped)
    assert (again.kind, again.reason, again.text) == (first.kind, first.reason, first.text)


async def test_answer_is_the_result_when_resumed() -> None:
    with ScriptedProvider("yes") as provider:
        agent = Agent(provider)
        await agent.run("go", session="s")
        again = await agent.resume("s")
    assert isinstance(again, Done) and again.text == "yes"


async def test_model_that_said_nothing_is_asked_again_when_resumed() -> None:
    with ScriptedProvider(" ", " ", "now") as provider:
        agent = Agent(provider)
        assert isinstance(await agent.run("go", session="s"), Stopped)
        again = await agent.resume("s")
    assert isinstance(again, Done) and again.text == "now"
    last = provider.requests[-1].messages[-1]
    assert isinstance(last, UserMessage) and "no text and no call" in str(last.content)
