"""Files of sub-agents: what is read, what is named as wrong, and what needs trust."""

from pathlib import Path

import pytest

from callwright.app.agents import project_agents, user_agents
from callwright.app.locations import Locations
from callwright.app.settings import Repository, load_settings
from callwright.app.trust import Trust
from callwright.core.spec import ToolSpec

GOOD = "---\nname: reviewer\ndescription: Reviews code.\ntools: Read, Grep\nmodel: inherit\n---\nYou review code.\n"


@pytest.fixture
def locations(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Locations:
    monkeypatch.setenv("HOME", str(tmp_path / "person"))
    project = tmp_path / "project"
    (project / ".git").mkdir(parents=True)
    return Locations.of(project, home=tmp_path / "person" / ".callwright")


def spec(name: str, *aliases: str, group: str = "") -> ToolSpec:
    return ToolSpec(name, "Works.", {"type": "object"}, aliases=aliases, group=group)


def write_agent(base: Path, text: str, folder: str = ".claude", name: str = "a.md") -> Path:
    file = base / folder / "agents" / name
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(text)
    return file


@pytest.mark.parametrize("folder", [".callwright", ".claude"])
def test_definition_is_read(locations: Locations, folder: str) -> None:
    write_agent(locations.project, GOOD, folder)
    ((found,), problems) = project_agents(locations)
    assert (found.name, found.tools, found.model, found.instructions) == (
        "reviewer", ("Read", "Grep"), "", "You review code.",
    )  # fmt: skip
    assert not problems and found.has_tool(spec("read")) and found.has_tool(spec("grep", "Grep"))
    assert not found.has_tool(spec("bash", "Bash")) and not found.read_only


def test_agents_beyond_the_limit_are_reported(locations: Locations, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("callwright.app.agents._MAX_FILES", 2)
    for name in "abc":
        write_agent(locations.project, GOOD.replace("reviewer", name), name=f"{name}.md")
    found, problems = project_agents(locations)
    assert [agent.name for agent in found] == ["a", "b"]
    assert problems == (f"{locations.project / '.claude' / 'agents'}:1: only the first 2 agents are read",)


@pytest.mark.parametrize(
    ("text", "line", "told"),
    [
        ("no front matter", 1, "front matter"),
        ("---\nname: a\n", 1, "not closed"),
        ("---\nname: a\ndescription: [x\n---\nbody", 3, ""),
        ("---\nname: a b\ndescription: x\n---\nbody", 2, "letters"),
        ("---\nname: a\n---\nbody", 1, "description"),
        ("---\ndescription: x\n---\nbody", 1, "name"),
        ("---\nname: a\ndescription: x\ntools: {a: b}\n---\nbody", 4, "tools"),
        ("---\nname: a\ndescription: x\nmaxTurns: many\n---\nbody", 4, "maxTurns"),
        ("---\nname: a\ndescription: x\n---\n", 1, "instructions"),
    ],
)
def test_malformed_file_is_named_and_not_used(locations: Locations, text: str, line: int, told: str) -> None:
    file = write_agent(locations.project, text)
    found, (problem, *_) = project_agents(locations)
    assert not found and told in problem
    assert problem.startswith(f"{file}:{line}:")
    settings = load_settings(locations, trusted=True)
    assert problem in settings.problems and not settings.agents


def test_long_description_is_cut_and_named(locations: Locations) -> None:
    generated = r"Use it to review. Examples:\n<example>Context: new code\nuser: 'Is it good?'</example> " * 40
    file = write_agent(locations.project, GOOD.replace("Reviews code.", generated))
    (found,), (problem,) = project_agents(locations)
    assert found.description == generated[:2_000]
    assert problem == f"{file}:3: the model sees the first 2000 characters of the description"


def test_empty_tools_give_no_tool(locations: Locations) -> None:
    write_agent(locations.project, GOOD.replace("tools: Read, Grep", "tools: []"))
    ((found,), _) = project_agents(locations)
    assert found.tools == () and not found.has_tool(spec("read"))


MAIL, CHAT = spec("mcp__mail__send", group="mcp:mail"), spec("mcp__chat__post", group="mcp:chat")


@pytest.mark.parametrize(
    ("taken", "left"),
    [("Bash(rm *)", "mail chat"), ("mcp__mail__*", "bash chat"), ("mcp__mail", "bash chat"), ("mcp__*, Bash", "")],
)
def test_disallowed_tools_are_taken_by_pattern_and_as_a_whole(locations: Locations, taken: str, left: str) -> None:
    write_agent(locations.project, GOOD.replace("tools: Read, Grep", f"disallowedTools: {taken}"))
    ((found,), problems) = project_agents(locations)
    tools = {"bash": spec("bash", "Bash"), "mail": MAIL, "chat": CHAT}
    assert [name for name, each in tools.items() if found.has_tool(each)] == left.split() and not problems


def test_tools_are_given_by_pattern_and_never_in_part(locations: Locations) -> None:
    file = write_agent(locations.project, GOOD.replace("Read, Grep", "Read, mcp__mail__*, Bash(git log *)"))
    ((found,), (problem,)) = project_agents(locations)
    assert found.has_tool(MAIL) and not found.has_tool(CHAT) and not found.has_tool(spec("bash", "Bash"))
    assert problem.startswith(f"{file}:4: ") and "does not have Bash(git log *)" in problem


def test_misspelt_tools_of_an_agent_are_named(locations: Locations) -> None:
    fields = "tools: Raed, Bash, LSP\ndisallowedTools: WebFech, mcp__mail"
    file = write_agent(locations.project, GOOD.replace("tools: Read, Grep", fields))
    ((_,), problems) = project_agents(locations)
    assert problems == (
        f"{file}:4: the agent does not have Raed: there is no such tool; did you mean Read?",
        f"{file}:5: WebFech takes no tool away: there is no such tool; did you mean WebFetch?",
    )


def test_unused_fields_are_named_and_lost_limits_refused(locations: Locations) -> None:
    file = write_agent(locations.project, GOOD.replace("model:", "memory: user\ncolor: red\nmodel:"))
    ((_,), problems) = project_agents(locations)
    assert problems == (f"{file}:5: memory is not used here",)
    for field, told in (("allowed-tools: Read", "write tools"), ("disallowed_tools: Bash", "write disallowedTools")):
        write_agent(locations.project, GOOD.replace("tools: Read, Grep", field))
        found, (problem,) = project_agents(locations)
        assert not found and told in problem
    write_agent(locations.project, GOOD.replace("model:", "isolation: worktree\nmodel:"))
    assert not project_agents(locations)[0]


def test_agents_in_subfolders_are_found(locations: Locations) -> None:
    write_agent(locations.project, GOOD, name="quality/deep/a.md")
    write_agent(locations.project, "# About these agents\n", name="quality/README.md")
    ((found,), problems) = project_agents(locations)
    assert not problems
    assert found.name == "reviewer" and any("reviewer" in request for request in Trust(locations).requests)


def test_link_out_of_the_project_is_not_followed(locations: Locations, tmp_path: Path) -> None:
    outside = tmp_path / "outside.md"
    outside.write_text(GOOD)
    link = locations.project / ".claude" / "agents" / "a.md"
    link.parent.mkdir(parents=True)
    link.symlink_to(outside)
    found, (problem,) = project_agents(locations)
    assert not found and "link out of the project" in problem


def test_folder_out_of_the_project_is_named_once(locations: Locations, tmp_path: Path) -> None:
    for name in "ab":
        write_agent(tmp_path / "outside", GOOD, name=f"{name}.md")
    (locations.project / ".claude").mkdir()
    (locations.project / ".claude" / "agents").symlink_to(tmp_path / "outside" / ".claude" / "agents")
    found, (problem,) = project_agents(locations)
    assert not found and "the folder is a link out of the project" in problem


def test_start_does_not_look_into_every_folder(locations: Locations, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("callwright.app.agents._MAX_FOLDERS", 3)  # the folder itself and two below it
    for name in "abc":
        write_agent(locations.project, GOOD.replace("reviewer", name), name=f"{name}/a.md")
    assert [each.name for each in project_agents(locations)[0]] == ["a", "b"]


def test_project_agents_need_trust_and_a_change_needs_it_again(locations: Locations) -> None:
    file = write_agent(locations.project, GOOD)
    trust = Trust(locations)
    assert any("sub-agent reviewer: tools Read, Grep" in request for request in trust.requests) and not trust.given
    assert not load_settings(locations, trusted=False).agents
    trust.give()
    assert trust.given and load_settings(locations, trusted=True).agents
    file.write_text(GOOD.replace("You review code.", "You send code away."))
    assert not trust.given


def test_claude_config_dir_moves_the_users_agents(
    locations: Locations, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_agent(tmp_path, GOOD, "moved")
    monkeypatch.setenv("CLAUDE_CONFIG_DIR", str(tmp_path / "moved"))
    (found,), _ = user_agents(Locations.of(locations.project, home=locations.home))
    assert found.name == "reviewer"
    # a folder of the project is not the user's own: trust decides about its agents
    write_agent(locations.project, GOOD)
    monkeypatch.setenv("CLAUDE_CONFIG_DIR", str(locations.project / ".claude"))
    inside = Locations.of(locations.project, home=locations.home)
    assert not user_agents(inside)[0] and len(project_agents(inside)[0]) == 1


def test_user_agents_need_no_trust(locations: Locations) -> None:
    write_agent(locations.claude.parent, GOOD, locations.claude.name)
    ((found,), _) = user_agents(locations)
    assert found.scope == "user" and not Repository.at(locations).requests


def test_links_that_lead_to_themselves_are_not_read(locations: Locations) -> None:
    write_agent(locations.project, GOOD)
    (locations.project / ".claude" / "agents" / "b.md").symlink_to("b.md")
    (locations.project / ".callwright").symlink_to(".callwright")
    ((found,), problems) = project_agents(locations)
    assert found.name == "reviewer"
    assert len(problems) == 1 and "b.md" in problems[0]
