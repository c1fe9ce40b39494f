"""Agents that only read have the policies of the conversation, inside and outside of a run."""

import json
from collections.abc import Sequence
from pathlib import Path

import pytest

from callwright import Answers, Failed, ToolCall
from callwright.app.app import App
from callwright.app.assembly import assemble
from callwright.app.locations import Locations
from callwright.app.run_context import RunOptions
from callwright.app.settings import load_settings
from callwright.core.calls import Question
from callwright.core.messages import ToolMessage
from callwright.executor.turn_context import Turn
from callwright.testing.fakes import ScriptedProvider

TASK = ToolCall("t", "task", {"agent": "explore", "prompt": "look"})
SKILL = ToolCall("t", "skill", {"name": "look"})


@pytest.fixture(autouse=True)
def project(locations: Locations, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("HOME", str(locations.home))
    for name in ("secret/x.txt", ".env", "asked.txt", ".claude/skills/look/SKILL.md"):
        file = locations.project / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text("needle\n")
    fields = "name: look\ndescription: Looks.\ncontext: fork\nagent: Explore"
    (locations.project / ".claude/skills/look/SKILL.md").write_text(f"---\n{fields}\n---\nLook.\n")
    return locations.project


def make_app(locations: Locations, provider: ScriptedProvider, mode: str = "default") -> App:
    content = json.dumps({"permissions": {"deny": ["Read(secret/**)"], "ask": ["Read(asked.txt)"]}})
    settings = load_settings(locations, trusted=True, given=[content])
    return assemble(provider, settings, locations, RunOptions(keep=False, mode=mode))


@pytest.mark.parametrize("start", [TASK, SKILL])
@pytest.mark.parametrize("mode", ["default", "bypass"])
async def test_agent_that_a_call_outside_of_a_run_starts_is_judged(
    locations: Locations, start: ToolCall, mode: str
) -> None:
    paths = ("secret/x.txt", ".env", "asked.txt") if mode == "default" else ("secret/x.txt", ".env")
    calls = [ToolCall(f"r{path}", "read", {"path": path}) for path in paths]
    provider = ScriptedProvider(calls, "looked")
    app = make_app(locations, provider, mode)
    await app.executor.execute([start], turn=Turn("s"))
    last = provider.requests[1].messages[-1]
    assert isinstance(last, ToolMessage) and len(last.outcomes) == len(paths)
    assert all(isinstance(outcome, Failed) and "needle" not in outcome.text for outcome in last.outcomes)


async def test_lasting_approval_of_a_reading_agent_is_kept(locations: Locations) -> None:
    fetch = ToolCall("f", "bash", {"command": "curl -s http://127.0.0.1:9/"})
    app = make_app(locations, ScriptedProvider(TASK, fetch, fetch, "looked", TASK, fetch, "looked", "done"))
    asked: list[Question] = []

    async def ask(questions: Sequence[Question]) -> Answers:
        asked.extend(questions)
        answers = Answers()
        for question in questions:
            answers.approve(question, scope="always")
        return answers

    app.agent.ask = ask
    await app.agent.run("look")
    assert [question.tool for question in asked] == ["bash"]
