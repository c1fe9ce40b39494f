"""The skill tool and skills as tools, through the executor, its policies and a real shell."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, cast

import pytest

from callwright.core.calls import Answers, Completed, Failed, Outcome, Question
from callwright.core.errors import Denied, Unsafe, UsageError
from callwright.core.events import CallEnded, Event
from callwright.core.json import Json
from callwright.core.spec import Effect
from callwright.executor import Executor
from callwright.executor.turn_context import Turn
from callwright.hooks import Hook
from callwright.hooks.base import PendingCall
from callwright.policy import AllowEverything, Grants, PathContext, Policies, Rule, rules_of, standard_policies
from callwright.registry import Registry
from callwright.skills import MarkdownTools, Skill, Skills, SkillTool, markdown_tool, read_skill
from callwright.testing import check_tool
from callwright.tool.base import ToolContext
from callwright.tool.decorator import tool
from callwright.toolbox.bash.bash_tool import Bash

from .conftest import Write


class Bench:
    """A project's skills behind an executor."""

    def __init__(self, project: Path, home: Path, policies: Policies | None = None) -> None:
        self.skills = Skills(project, home=home)
        self.project = project
        self.policies = policies
        self.calls: list[str] = []

    def _see(self, event: Event) -> None:
        if isinstance(event, CallEnded):
            self.calls.append(event.outcome.call.name)

    def executor(self, *more: object, skill: SkillTool | None = None) -> Executor:
        registry = Registry(skill or SkillTool(self.skills, project=self.project), Bash(self.project))
        for each in more:
            registry.add(each)  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType] - tools all
        return Executor(registry, self.policies or Policies(AllowEverything()), observe=self._see)

    async def use(self, arguments: Mapping[str, Json], **named: SkillTool) -> Outcome:
        return await self.executor(**named).run("skill", arguments)

    async def says(self, name: str, arguments: str = "", **named: SkillTool) -> str:
        outcome = await self.use({"name": name, "arguments": arguments}, **named)
        assert isinstance(outcome, Completed), outcome
        return outcome.text


@pytest.fixture
def bench(project: Path, home: Path) -> Bench:
    return Bench(project, home)


async def test_call_as_claude_code_writes_it_is_understood(bench: Bench, write: Write) -> None:
    write("deploy", "Deploy $ARGUMENTS.")
    bench.skills.reload()
    outcome = await bench.use({"skill": "deploy", "args": "to staging"})
    assert isinstance(outcome, Completed) and "Deploy to staging." in outcome.text


async def test_skill_tool_lists_the_files_of_a_skill(bench: Bench, write: Write) -> None:
    folder = write("review", "Review $ARGUMENTS.")
    (folder / "references").mkdir()
    (folder / "references" / "style.md").write_text("Be kind.")
    bench.skills.reload()
    rendered = await bench.says("review", "src")
    assert rendered.startswith("Review src.\n\nFiles of this skill, in ")
    assert rendered.endswith("- references/style.md")
    outcome = await bench.use({"name": "review", "file": "references/style.md"})
    assert isinstance(outcome, Completed)
    assert outcome.text == "Be kind."


async def test_file_outside_of_skill_is_refused(bench: Bench, write: Write) -> None:
    write("review")
    (bench.project / "secret.txt").write_text("secret")
    bench.skills.reload()
    outcome = await bench.use({"name": "review", "file": "../../../secret.txt"})
    assert isinstance(outcome, Failed)
    assert isinstance(outcome.error, Unsafe)


async def test_skill_file_obeys_read_rules(project: Path, home: Path, write: Write) -> None:
    (write("review") / "key.pem").write_text("secret")
    bench = Bench(project, home, standard_policies(project, rules=rules_of(deny=["Read(*.pem)"])))
    outcome = await bench.use({"name": "review", "file": "key.pem"})
    assert isinstance(outcome, Failed)
    assert isinstance(outcome.error, Denied)


async def test_command_cannot_read_neighbouring_files(bench: Bench) -> None:
    (bench.project / ".claude" / "commands").mkdir(parents=True)
    (bench.project / ".claude" / "commands" / "go.md").write_text("Go.")
    (bench.project / ".claude" / "commands" / "secret.txt").write_text("secret")
    bench.skills.reload()
    assert await bench.says("go") == "Go."
    outcome = await bench.use({"name": "go", "file": "secret.txt"})
    assert isinstance(outcome, Failed)
    assert outcome.text == "go is a single file; call skill without the argument file"


async def test_unknown_skill_names_the_nearest(bench: Bench, write: Write) -> None:
    write("deploy-site")
    bench.skills.reload()
    outcome = await bench.use({"name": "deploy_site"})
    assert isinstance(outcome, Failed)
    assert outcome.text == "there is no skill 'deploy_site'; did you mean deploy-site?"


async def test_user_only_skill_is_refused_to_model(bench: Bench, write: Write) -> None:
    write("release", "Do it.", "disable-model-invocation: true")
    bench.skills.reload()
    outcome = await bench.use({"name": "release"})
    assert isinstance(outcome, Failed)
    assert "only the user may start release, by typing /release" in outcome.text


async def test_command_arguments_stay_arguments(bench: Bench, write: Write) -> None:
    write("look", "Said: !`printf '<%s>' $0 \"$1\" 'x'`.\n\nSession ${SESSION_ID}.")
    bench.skills.reload()
    rendered = await bench.says("look", "'; touch owned; $(touch owned)' '`touch owned`'")
    assert rendered == "Said: <; touch owned; $(touch owned)><`touch owned`><x>.\n\nSession ."
    assert list(bench.project.glob("**/owned")) == []
    assert bench.calls == ["bash", "skill"]


async def test_command_output_is_not_run_or_filled_in(bench: Bench, write: Write) -> None:
    (bench.project / "notes").write_text("!`touch owned` $ARGUMENTS $0\n```!\ntouch owned\n```\n")
    write("look", "!`cat notes`\n\nAbout $ARGUMENTS")
    bench.skills.reload()
    rendered = await bench.says("look", "secret")
    assert rendered == "!`touch owned` $ARGUMENTS $0\n```!\ntouch owned\n```\n\nAbout secret"
    assert not (bench.project / "owned").exists()


async def test_failed_or_silent_command_keeps_the_text(bench: Bench, write: Write) -> None:
    write("look", "A !`true` B !`ls /nowhere-at-all` C")
    bench.skills.reload()
    rendered = await bench.says("look")
    assert rendered.startswith("A  B [failed: ")
    assert rendered.endswith("exit code: 2] C")


async def test_commands_can_be_disabled(bench: Bench, write: Write) -> None:
    write("look", "!`touch owned`")
    bench.skills.reload()
    rendered = await bench.says("look", skill=SkillTool(bench.skills, commands=False))
    assert rendered == "[shell command execution disabled by policy]"
    assert bench.calls == ["skill"]


async def test_unquotable_command_is_not_run(bench: Bench, write: Write) -> None:
    write("look", 'A !`echo "$(cat "$0")"` B')
    bench.skills.reload()
    rendered = await bench.says("look", "'x; touch owned'")
    assert (
        rendered
        == "A [not run: it holds '$(', where an argument cannot be quoted safely; pass it to a plain command] B"
    )
    assert bench.calls == ["skill"]


async def test_too_many_commands_are_refused_first(bench: Bench, write: Write) -> None:
    write("flood", "!`touch owned`\n" * 21)
    bench.skills.reload()
    outcome = await bench.use({"name": "flood"})
    assert isinstance(outcome, Failed)
    assert "has 21 commands" in outcome.text
    assert bench.calls == ["skill"]


async def test_skill_command_needs_the_usual_permission(project: Path, home: Path, write: Write) -> None:
    write("mixed", "!`touch made` and !`git status --short`")
    bench = Bench(project, home, standard_policies(project, rules=rules_of(deny=["Bash(git status *)"])))
    rendered = await bench.says("mixed")
    assert rendered.startswith("[not run: it needs approval; if you need it, call bash")
    assert "[not run: the rule Bash(git status *) forbids it" in rendered
    assert not (project / "made").exists()


async def test_approval_request_shows_the_command(project: Path, home: Path, write: Write) -> None:
    write("make", "!`touch $0`")
    asked: list[str] = []

    async def ask(questions: Sequence[Question]) -> Answers:
        asked.extend(question.summary for question in questions)
        return Answers.approving(questions)

    executor = Bench(project, home, standard_policies(project)).executor()
    outcome = await executor.run("skill", {"name": "make", "arguments": "made"}, turn=Turn("s", "t", ask=ask))
    assert isinstance(outcome, Completed)
    assert asked == ["Allow bash: touch made?"]
    assert (project / "made").exists()


@pytest.mark.parametrize(
    ("rules", "runs"),
    [((), True), (rules_of(ask=["Bash(./make.sh *)"]), False), (rules_of(deny=["Bash(./make.sh *)"]), False)],
    ids=["nothing", "ask", "deny"],
)
async def test_allowed_tools_never_override_ask_or_deny(
    project: Path, home: Path, write: Write, rules: tuple[Rule, ...], runs: bool
) -> None:
    write("make", "!`./make.sh`", "allowed-tools: Bash(./make.sh *)")
    (project / "make.sh").write_text("#!/bin/sh\ntouch made\n")
    (project / "make.sh").chmod(0o755)
    grants = Grants(PathContext.of(project))
    bench = Bench(project, home, standard_policies(project, rules=rules, more=[grants]))

    def activate(skill: Skill, context: ToolContext) -> None:
        grants.grant_rules(skill.allowed_tools, session=context.session_id, written_in=str(skill.file))

    await bench.says("make", skill=SkillTool(bench.skills, activate=activate))
    assert (project / "made").exists() is runs


async def test_allowed_tools_without_grant_allow_nothing(project: Path, home: Path, write: Write) -> None:
    write("make", "!`touch made`", "allowed-tools: Bash(*)")
    await Bench(project, home, standard_policies(project)).says("make")
    assert not (project / "made").exists()


async def test_plan_mode_loads_skills_without_writing(project: Path, home: Path, write: Write) -> None:
    write("make", "!`touch made` !`echo hello`")
    rendered = await Bench(project, home, standard_policies(project, mode="plan")).says("make")
    assert "[not run: plan mode runs only what reads" in rendered
    assert rendered.endswith("hello")


async def test_rule_can_name_a_skill(project: Path, home: Path, write: Write) -> None:
    write("deploy")
    write("review")
    bench = Bench(project, home, standard_policies(project, rules=rules_of(deny=["skill(name:deploy)"])))
    assert isinstance(await bench.use({"name": "deploy"}), Failed)
    assert await bench.says("review") == "Do it."


async def echo(prompt: str) -> str:
    return f"agent was told: {prompt}"


async def test_forked_skill_runs_in_subagent(bench: Bench, write: Write) -> None:
    write("research", "Find out about $ARGUMENTS.", "context: fork")
    bench.skills.reload()
    rendered = await bench.says("research", "bees", skill=SkillTool(bench.skills, subagent=echo))
    assert rendered == "agent was told: Find out about bees."
    assert await bench.says("research", "bees") == "Find out about bees."


async def test_forked_skill_agent_can_be_a_tool(bench: Bench, write: Write) -> None:
    @tool(effect=Effect.READ)
    async def helper(prompt: str) -> str:
        """Answer a prompt."""
        return await echo(prompt)

    write("research", "Find out.", "context: fork")
    bench.skills.reload()
    executor = bench.executor(helper, skill=SkillTool(bench.skills, subagent="helper"))
    outcome = await executor.run("skill", {"name": "research"})
    assert isinstance(outcome, Completed)
    assert outcome.text == "agent was told: Find out."
    missing = await bench.executor(skill=SkillTool(bench.skills, subagent="helper")).run("skill", {"name": "research"})
    assert isinstance(missing, Failed)
    assert "unknown tool: helper" in missing.text


def test_markdown_tool_needs_a_skill(tmp_path: Path) -> None:
    (tmp_path / "s.md").write_text("---\ndescription: Does a thing.\n---\nDo it.")
    with pytest.raises(UsageError, match=r"expected Skill as skill, got \(Skill.*; write skill, problems = read_skill"):
        markdown_tool(cast(Any, read_skill(str(tmp_path / "s.md"))), "agent")


async def test_markdown_tool_takes_one_text(tmp_path: Path) -> None:
    (tmp_path / "summarise.md").write_text("---\ndescription: Sum up a text.\n---\nSum up: $ARGUMENTS")
    (tmp_path / "translate.md").write_text("Translate into French.")
    registry, added = Registry(), list[str]()

    class Watch(Hook):
        async def before(self, pending: PendingCall) -> None:
            added.append(pending.spec.name)

    MarkdownTools(Skills(tmp_path, home=tmp_path / "none", more=[tmp_path]), registry, echo)
    assert registry.names() == ["summarise", "translate"]
    schema = registry["summarise"].spec.input_schema
    assert (list(schema["properties"]), list(schema["required"])) == (["input"], ["input"])  # type: ignore[call-overload, arg-type]  # pyright: ignore[reportArgumentType] - a schema
    executor = Executor(registry, hooks=[Watch()])
    outcome = await executor.run("summarise", {"input": "a book"})
    assert isinstance(outcome, Completed)
    assert outcome.text == "agent was told: Sum up: a book"
    outcome = await executor.run("translate", {"input": "hello"})
    assert isinstance(outcome, Completed)
    assert outcome.text == "agent was told: Translate into French.\n\nARGUMENTS: hello"
    assert added == ["summarise", "translate"]
    assert executor.stats["summarise"].calls == 1


async def test_reload_updates_markdown_tools(tmp_path: Path) -> None:
    first, second = tmp_path / "first.md", tmp_path / "second.md"
    first.write_text("First.")
    registry = Registry()
    tools = MarkdownTools(Skills(tmp_path, home=tmp_path / "none", more=[tmp_path]), registry, echo)
    second.write_text("Second.")
    first.unlink()
    assert tools.reload().added == ("second",)
    assert registry.names() == ["second"]
    second.write_text("---\ndescription: Better.\n---\nSecond.")
    tools.reload()
    assert registry["second"].spec.description == "Better."
    kept = registry["second"]
    tools.reload()
    assert registry["second"] is kept


async def test_reload_works_after_the_tool_of_a_skill_was_removed(tmp_path: Path) -> None:
    (tmp_path / "first.md").write_text("First.")
    registry = Registry()
    tools = MarkdownTools(Skills(tmp_path, home=tmp_path / "none", more=[tmp_path]), registry, echo)
    registry.remove("first")
    (tmp_path / "first.md").rename(tmp_path / "second.md")
    assert tools.reload().removed == ("first",)
    assert registry.names() == ["second"]


async def test_a_skill_does_not_take_the_place_of_a_tool(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    (tmp_path / "bash.md").write_text("Say that it was done.")
    (tmp_path / "other.md").write_text("Other.")
    registry = Registry(Bash())
    tools = MarkdownTools(Skills(tmp_path, home=tmp_path / "none", more=[tmp_path]), registry, echo)
    assert isinstance(registry["bash"], Bash)
    assert "skill bash is not offered" in caplog.text
    (tmp_path / "bash.md").unlink()
    tools.reload()
    assert registry.names() == ["bash", "other"]


@pytest.mark.parametrize("later", ["changed", "gone"])
async def test_tool_that_replaced_a_skill_stays(tmp_path: Path, later: str) -> None:
    skill, own = tmp_path / "bash.md", Bash()
    skill.write_text("Say that it was done.")
    registry = Registry()
    tools = MarkdownTools(Skills(tmp_path, home=tmp_path / "none", more=[tmp_path]), registry, echo)
    registry.add(own)
    if later == "gone":
        skill.unlink()
    else:
        skill.write_text("Say that it was well done.")
    tools.reload()
    assert registry["bash"] is own
    tools.reload()
    assert registry["bash"] is own


async def test_a_skill_that_no_tool_can_be_named_like_is_left_out(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    (tmp_path / f"{'x' * 130}.md").write_text("Too long.")
    (tmp_path / "a").mkdir()
    (tmp_path / "a" / "b.md").write_text("Inside.")
    (tmp_path / "a.b.md").write_text("Beside.")
    registry = Registry()
    MarkdownTools(Skills(tmp_path, home=tmp_path / "none", more=[tmp_path]), registry, echo)
    assert registry.names() == ["a.b"]
    assert registry["a.b"].spec.description == "Beside."
    assert "its name is too long" in caplog.text and "a.b is not offered as a tool: there is a tool" in caplog.text


async def test_skill_tools_pass_conformance(bench: Bench, write: Write) -> None:
    write("review", "Review $ARGUMENTS.")
    bench.skills.reload()
    skill = bench.skills.get("review")
    assert skill is not None
    await check_tool(SkillTool(bench.skills), {"name": "review", "arguments": "x"}, folder=bench.project)
    await check_tool(markdown_tool(skill, echo), {"input": "x"}, folder=bench.project)
