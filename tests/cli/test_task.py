"""The `task` tool: sub-agents with their own tools, judged by the same policies, with durable records."""

import asyncio
import json
from collections.abc import Mapping
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from tests.cli.conftest import call

from callwright.app.assembly import assemble
from callwright.app.locations import Locations
from callwright.app.settings import Settings
from callwright.cli.headless.approvals import ExternalApprovals
from callwright.sessions import SessionHold, SqliteStore
from callwright.testing import ScriptedProvider

AGENT = "---\nname: fixer\ndescription: Fixes files.\ntools: Read, Write\n---\nYou fix files.\n"


def results(lines: list[Any]) -> list[str]:
    return [part["content"] for line in lines if line["type"] == "user" for part in line["message"]["content"]]


def add_agent(machine: Any, text: str = AGENT) -> None:
    file = machine.home / "agents" / "fixer.md"
    file.parent.mkdir()
    file.write_text(text)


def test_explore_reads_and_reports(machine: Any) -> None:
    (machine.project / "a.py").write_text("answer = 42\n")
    script = machine.says(
        call("task", agent="explore", prompt="find the answer"),
        call("read", path="a.py"),
        "a.py:1 says 42",
        "It is 42.",
    )
    ended = machine("-p", "what is the answer?", script, "--output-format", "stream-json")
    assert ended.code == 0 and results(ended.lines) == ["a.py:1 says 42"]
    assert ended.lines[-1]["result"] == "It is 42."


def test_call_as_claude_code_writes_it_is_understood(machine: Any) -> None:
    asked = call("Task", subagent_type="Explore", description="Find it", prompt="x")
    ended = machine("-p", "go", machine.says(asked, "found", "done"), "--output-format", "stream-json")
    assert ended.code == 0 and results(ended.lines)[0].startswith("found")


@pytest.mark.parametrize("rule", ["Agent(subagent_type:explore)", "Task(agent:explore)", "Task(explore)"])
@pytest.mark.parametrize(
    "given", [{"subagent_type": "Explore"}, {"agent": "explore"}, {"agent": "explore", "subagent_type": "plan"}]
)
def test_deny_rule_finds_an_agent_by_either_name(machine: Any, rule: str, given: dict[str, str]) -> None:
    machine.user_settings({"permissions": {"deny": [rule]}})
    script = machine.says(call("Task", **given, prompt="x"), "done")
    ended = machine("-p", "go", script, "--output-format", "stream-json")
    assert rule in results(ended.lines)[0]


@pytest.mark.parametrize("matcher", ["Explore", "task", "^task$"])
def test_hooks_match_the_name_of_a_sub_agent_or_its_tool(machine: Any, matcher: str) -> None:
    hooks = {"SubagentStop": [{"matcher": matcher, "hooks": [{"command": "cat > heard"}]}]}
    hooks["SubagentStart"] = [{"matcher": "plan", "hooks": [{"command": "touch other"}]}]
    script = machine.says(call("task", agent="explore", prompt="x"), "found", "done")
    machine("-p", "go", script, "--settings", json.dumps({"hooks": hooks}))
    heard = json.loads((machine.project / "heard").read_text())
    assert (heard["agent_type"], heard["tool_name"]) == ("explore", "task")
    assert not (machine.project / "other").exists()


def test_tool_that_a_given_agent_does_not_get_is_named(machine: Any) -> None:
    agents = {"committer": {"description": "Commits.", "prompt": "Commit.", "tools": ["Read", "Bash(git *)"]}}
    ended = machine("-p", "go", machine.says("done"), "--agents", json.dumps(agents))
    assert ended.code == 0 and "the agent committer does not have Bash(git *)" in ended.err


def test_explore_cannot_write_in_any_mode(machine: Any) -> None:
    script = machine.says(
        call("task", agent="explore", prompt="x"), call("write", path="a", content="x"), "could not", "done"
    )
    machine("-p", "go", script, "--permission-mode", "bypass", "--output-format", "stream-json")
    assert not (machine.project / "a").exists()


def test_definition_limits_the_tools_and_grants_nothing(machine: Any) -> None:
    add_agent(machine, AGENT.replace("tools:", "permissionMode: bypassPermissions\ntools:"))
    script = machine.says(
        call("task", agent="fixer", prompt="x"),
        call("bash", command="touch b"),  # not among its tools
        call("write", path="a", content="x"),  # asked about, and the user cannot be asked here
        "could not",
        "done",
    )
    ended = machine("-p", "go", script, "--output-format", "json")
    assert not (machine.project / "a").exists() and not (machine.project / "b").exists()
    assert ended.document["result"] == "done"


async def test_sub_agent_is_shown_every_tool_that_its_file_names(machine: Any) -> None:
    add_agent(machine, AGENT.replace("Read, Write", "Read, Delete, Move"))  # the last two are deferred
    script = machine.says(call("task", agent="fixer", prompt="x"), "could not", "done")
    provider = ScriptedProvider.from_file(script.removeprefix("--model=script:"))
    async with assemble(provider, Settings(), Locations.of(machine.project, home=machine.home)) as app:
        await app.agent.run("go", session="s")
    assert [spec.name for spec in provider.requests[1].tools] == ["delete", "move", "read"]


async def test_question_of_a_sub_agent_is_described_to_another_program(machine: Any) -> None:
    add_agent(machine)
    asked: list[dict[str, Any]] = []

    async def decide(request: Mapping[str, Any]) -> dict[str, Any]:
        asked.append(dict(request))
        return {"behavior": "allow"}

    script = machine.says(
        call("task", agent="fixer", prompt="x"), call("write", path="a", content="x"), "written", "done"
    )
    provider = ScriptedProvider.from_file(script.removeprefix("--model=script:"))
    async with assemble(provider, Settings(), Locations.of(machine.project, home=machine.home)) as app:
        app.agent.ask = ExternalApprovals(app, "s", decide, lambda: None)
        await app.agent.run("go", session="s")
    assert (machine.project / "a").read_text() == "x"
    ((description, agent),) = {(each.get("description"), each.get("agent_id")) for each in asked}
    assert description == "the sub-agent fixer"  # a text for the user
    assert agent is None  # the SDK defines it as the id of a sub-agent


def test_deny_rule_holds_inside(machine: Any) -> None:
    add_agent(machine)
    machine.user_settings({"permissions": {"deny": ["Write(secret)"], "allow": ["Write"]}})
    script = machine.says(
        call("task", agent="fixer", prompt="x"),
        call("write", path="secret", content="x"),
        call("write", path="fine", content="x"),
        "half done",
        "done",
    )
    machine("-p", "go", script)
    assert not (machine.project / "secret").exists() and (machine.project / "fine").read_text() == "x"


def test_unknown_agent_names_the_known_ones(machine: Any) -> None:
    ended = machine(
        "-p", "go", machine.says(call("task", agent="nope", prompt="x"), "ok"), "--output-format", "stream-json"
    )
    assert "explore" in results(ended.lines)[0]


def test_records_of_inner_calls_are_kept_apart(machine: Any) -> None:
    script = machine.says(call("task", agent="plan", prompt="x"), "the plan", "done")
    machine("-p", "go", script, "--session-id", "s1")
    assert list(Path(machine.home, "projects").glob("*/agents.db"))
    assert "in-" not in machine("sessions", "list").out


def test_records_of_sub_agents_are_deleted_with_their_session(machine: Any) -> None:
    for session, words in (("s1", "heron one"), ("s2", "heron two")):
        script = machine.says(call("task", agent="plan", prompt=f"find the {words}"), f"the {words} plan", "done")
        machine("-p", "go", script, "--session-id", session)

    def read_files() -> bytes:
        return b"".join(file.read_bytes() for file in Path(machine.home, "projects").rglob("*") if file.is_file())

    async def hold_all(store: SqliteStore) -> list[SessionHold]:
        return [await store.hold(entry.session_id) for entry in await store.list()]

    async def release(held: list[SessionHold]) -> None:
        for hold in held:
            await hold.release()

    locations = Locations.of(machine.project)
    for file in (locations.agents, locations.sessions):  # neither the session nor its agents' records are deleted alone
        with closing(SqliteStore(file)) as store:
            held = asyncio.run(hold_all(store))
            assert held and "is being written" in machine("sessions", "delete", "s1").err
            asyncio.run(release(held))
        assert b"find the heron one" in read_files() and b"the heron one plan" in read_files()
        assert "s1" in machine("sessions", "list").out
    assert machine("sessions", "delete", "s1").err == ""
    assert b"heron one" not in read_files() and b"heron two plan" in read_files()


def test_sub_agent_is_named_and_has_one_live_line(machine: Any, tmux: Any) -> None:
    add_agent(machine)
    both = {"calls": [{"name": "task", "arguments": {"agent": "fixer", "prompt": "x"}}]}
    script = machine.says(both, call("write", path="a.txt", content="alpha"), "fixed", "All done.")
    tmux.start(machine.project, script)
    tmux.shows("default mode")
    tmux.type("go", "Enter")
    asked = tmux.shows("allow? >")
    assert "╭ Write a.txt" in asked and "the sub-agent fixer" in asked
    tmux.type("y", "Enter")
    screen = tmux.shows("All done.")
    assert (machine.project / "a.txt").read_text() == "alpha"
    assert "● task" in screen and "● write" not in screen, screen


def test_malformed_agent_file_is_named_at_the_start(machine: Any) -> None:
    add_agent(machine, "---\nname: a b\n---\nx")
    ended = machine("-p", "go", machine.says("ok"))
    assert "fixer.md:2" in ended.err
