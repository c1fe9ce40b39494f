"""Skills in the app: folders on disk, a scripted model, real tools, permissions and trust."""

from collections.abc import Sequence
from pathlib import Path

import pytest

from callwright.agent.results import AgentEvent, Done, Stopped
from callwright.app.app import App
from callwright.app.assembly import assemble
from callwright.app.locations import Locations
from callwright.app.models import Models
from callwright.app.prompts import UserPrompt
from callwright.app.run_context import RunOptions
from callwright.app.settings import load_settings
from callwright.app.skills.skill_agent import PathScopedSkills
from callwright.app.trust import Trust
from callwright.core.calls import Answers, Completed, Failed, Interrupted, Question, ToolCall
from callwright.core.content import Text
from callwright.core.errors import UsageError
from callwright.core.messages import AssistantMessage, ToolMessage, Usage, UserMessage
from callwright.executor import Executor
from callwright.executor.turn_context import Turn
from callwright.policy import AllowEverything
from callwright.providers.base import ModelRequest, Provider
from callwright.sessions.records import sum_usage
from callwright.skills import Skill, Skills
from callwright.testing.fakes import ScriptedProvider

from .conftest import Write

MAKE = "#!/bin/sh\ntouch made\n"


@pytest.fixture(autouse=True)
def own_home(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The person's own skills are those of the test."""
    monkeypatch.setenv("HOME", str(home))


class Desk:
    """A user with a project: its trust, the replies of the model, and the results."""

    def __init__(self, project: Path, home: Path) -> None:
        self.project = project
        self.locations = Locations.of(project, home=home / ".callwright")
        self.reports: list[str] = []
        script = project / "make.sh"
        script.write_text(MAKE)
        script.chmod(0o755)

    @property
    def made(self) -> bool:
        return (self.project / "made").exists()

    def app(self, *replies: object, settings: str = "{}", models: Models | None = None, **options: str) -> App:
        provider: Provider = ScriptedProvider(*replies) if models is None else models.main  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType] - the lines of a script
        loaded = load_settings(self.locations, trusted=Trust(self.locations).given, given=[settings])
        asked = RunOptions(keep=False, **options)  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType] - texts only
        return assemble(provider, loaded, self.locations, asked, report=self.reports.append, models=models)

    async def say(self, app: App, text: str | UserPrompt, session: str = "s") -> AgentEvent:
        events = [event async for event in app.agent.stream(text, session=session)]
        return events[-1]


@pytest.fixture
def desk(project: Path, home: Path) -> Desk:
    return Desk(project, home)


def run_it(name: str = "bash", **arguments: object) -> ToolCall:
    return ToolCall("c1", name, arguments or {"command": "./make.sh"})  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType] - plain values


def use(name: str, arguments: str = "") -> ToolCall:
    return ToolCall("use", "skill", {"name": name, "arguments": arguments})


async def first_said(app: App, session: str = "s") -> str:
    message = (await app.agent.messages(session))[0]
    assert isinstance(message, UserMessage)
    return str(message.content)


async def outcomes(app: App, session: str = "s") -> list[Completed | Failed]:
    messages = await app.agent.messages(session)
    return [outcome for message in messages if isinstance(message, ToolMessage) for outcome in message.outcomes]


async def test_user_skill_gets_its_tools_while_used(desk: Desk, home: Path, write: Write) -> None:
    write("make", "Make it.", "allowed-tools: Bash(./make.sh)", base=home / ".claude" / "skills")
    app = desk.app(use("make"), run_it(), "done", run_it())
    assert isinstance(await desk.say(app, "make it"), Done)
    assert desk.made
    (desk.project / "made").unlink()
    assert not isinstance(await desk.say(app, "and again, without the skill"), Done)
    assert not desk.made


async def test_project_skill_gets_no_tools_before_consent(desk: Desk, write: Write) -> None:
    write("make", "!`./make.sh`", "allowed-tools: Bash(./make.sh)")
    app = desk.app(use("make"), "asked for approval")
    assert "this folder is not trusted" in app.problems[0]
    assert "allow Bash(./make.sh) in the skill make" in app.problems[0]
    await desk.say(app, "make it")
    assert not desk.made


async def test_project_skill_gets_only_agreed_tools(desk: Desk, write: Write) -> None:
    write("make", "!`./make.sh`", "allowed-tools: Bash(./make.sh)")
    Trust(desk.locations).give()
    app = desk.app(use("make"), "done")
    assert app.problems == []
    await desk.say(app, "make it")
    assert desk.made
    (desk.project / "made").unlink()
    write("make", "!`./make.sh`", "allowed-tools: Bash(./make.sh) Bash(rm *)")
    changed = desk.app(use("make"), "done")
    await desk.say(changed, "make it")
    assert not desk.made
    Trust(desk.locations).take()
    write("make", "!`./make.sh`", "allowed-tools: Bash(./make.sh)")
    await desk.say(desk.app(use("make"), "done"), "make it")
    assert not desk.made


async def test_changed_skill_loses_its_grant(desk: Desk, write: Write) -> None:
    write("make", "Make it.", "allowed-tools: Bash(git log *)")
    Trust(desk.locations).give()
    app = desk.app(use("make"), run_it(), "done")
    write("make", "!`./make.sh`", "allowed-tools: Bash(*)")
    app.skills.reload()
    await desk.say(app, "make it")
    assert not desk.made


@pytest.mark.parametrize(
    ("settings", "mode"),
    [
        ('{"permissions": {"ask": ["Bash(./make.sh)"]}}', ""),
        ('{"permissions": {"deny": ["Bash(./make.sh)"]}}', ""),
        ("{}", "plan"),
    ],
    ids=["ask", "deny", "plan mode"],
)
@pytest.mark.parametrize("typed", [True, False], ids=["user", "model"])
async def test_grant_never_overrides_ask_deny_or_plan_mode(
    desk: Desk, home: Path, write: Write, settings: str, mode: str, typed: bool
) -> None:
    write("make", "!`./make.sh`", "allowed-tools: Bash(./make.sh)", base=home / ".claude" / "skills")
    if typed:
        await desk.say(desk.app(run_it(), "no", settings=settings, mode=mode), "/make")
    else:
        await desk.say(desk.app(use("make"), run_it(), "no", settings=settings, mode=mode), "make it")
    assert not desk.made


async def test_grant_is_limited_to_its_session(desk: Desk, home: Path, write: Write) -> None:
    write("make", "Make it.", "allowed-tools: Bash(./make.sh)", base=home / ".claude" / "skills")
    app = desk.app()
    skill = app.skills.get("make")
    assert skill is not None
    app.skill_service.active.activate(skill, "mine")
    other = await app.executor.execute([run_it()], turn=Turn("other"))
    no_session = await app.executor.execute([run_it()], turn=Turn())
    assert [type(outcome) for outcome in (*other, *no_session)] == [Interrupted, Interrupted]
    app.skill_service.active.activate(skill, "")
    assert isinstance((await app.executor.execute([run_it()], turn=Turn("other")))[0], Interrupted)
    assert isinstance((await app.executor.execute([run_it()], turn=Turn("mine")))[0], Completed)


@pytest.mark.parametrize("typed", [True, False])
async def test_agent_of_a_skill_counts_for_the_run(desk: Desk, write: Write, typed: bool) -> None:
    write("look", "Look around.", "context: fork")
    answers = [AssistantMessage((Text(text),), usage=Usage(1_000_000), model="own") for text in ("found", "done")]
    prices = '{"prices": {"scripted": {"input": 2, "output": 0}}, "limits": {"usd": 9}}'
    app = desk.app(*(() if typed else (use("look"),)), *answers, settings=prices)
    result = await desk.say(app, "/look" if typed else "look")
    assert isinstance(result, Done) and (result.usage.total, result.cost) == (2_000_000, 4)
    assert sum_usage(await app.agent.sessions.read("s")).total == 2_000_000


async def test_failed_agent_of_a_skill_counts_for_the_result(desk: Desk, write: Write) -> None:
    write("look", "Look around.", "context: fork")
    call = AssistantMessage((run_it("list", path="."),), usage=Usage(1_000_000), model="own", stop="calls")
    prices = '{"prices": {"scripted": {"input": 2, "output": 0}}, "limits": {"usd": 2}}'
    result = await desk.say(desk.app(call, "never", settings=prices), "/look")
    assert isinstance(result, Stopped) and "limit of 2" in result.reason and result.cost == 2


async def test_agents_of_several_skills_share_one_limit(desk: Desk, write: Write) -> None:
    for name in ("look", "think"):
        write(name, "Look around.", "context: fork")
    found = AssistantMessage((Text("found"),), usage=Usage(1_000_000), model="own")
    call = AssistantMessage((run_it("list", path="."),), usage=Usage(1_000_000), model="own", stop="calls")
    prices = '{"prices": {"scripted": {"input": 2, "output": 0}}, "limits": {"usd": 4}}'
    result = await desk.say(desk.app(found, call, call, "never", settings=prices), "/look /think")
    assert isinstance(result, Stopped) and result.cost == 4


async def test_skill_with_a_rule_that_is_not_valid_cannot_be_used(desk: Desk, write: Write) -> None:
    write("look", "Only look.", "disallowed-tools: Bash|Edit")
    result = await desk.say(desk.app("never"), "/look")
    assert isinstance(result, Stopped) and "'Bash|Edit' names several tools" in result.reason
    app = desk.app(use("look"), "a pity")
    assert isinstance(await desk.say(app, "look"), Done)
    (outcome,) = [
        each for said in await app.agent.messages("s") if isinstance(said, ToolMessage) for each in said.outcomes
    ]
    assert isinstance(outcome, Failed) and "the skill look cannot be used" in outcome.text


async def test_disallowed_tools_are_denied_while_skill_is_used(desk: Desk, write: Write) -> None:
    write("look", "Only look.", "disallowed-tools: Bash")
    settings = '{"permissions": {"allow": ["Bash(./make.sh)"]}}'
    app = desk.app(use("look"), run_it(), "looked", run_it(), "made", settings=settings)
    await desk.say(app, "look")
    assert not desk.made
    denied = (await outcomes(app))[1]
    assert isinstance(denied, Failed) and "the rule Bash forbids it" in denied.text
    await desk.say(app, "now make it")
    assert desk.made


@pytest.mark.parametrize("rule", ["Bash", "Bash(./make.sh)"])
async def test_disallowed_tools_are_denied_to_agents_that_the_conversation_starts(
    desk: Desk, home: Path, write: Write, rule: str
) -> None:
    write("look", "Only look.", f"disallowed-tools: {rule}")
    fields = ("context: fork", "allowed-tools: Bash(./make.sh)")
    write("make", "Make it.", *fields, base=home / ".claude" / "skills")
    settings = '{"permissions": {"allow": ["Bash(./make.sh)"]}}'
    agents = '{"maker": {"description": "makes", "prompt": "Make."}}'
    task = ToolCall("t", "task", {"agent": "maker", "prompt": "make it"})
    for start in (task, use("make")):
        replies = (use("look"), start, run_it(), "could not", "looked", start, run_it(), "made", "made")
        app = desk.app(*replies, settings=settings, agents=agents)
        await desk.say(app, "look")
        assert not desk.made
        await desk.say(app, "now make it")
        assert desk.made
        (desk.project / "made").unlink()


async def test_slash_line_expands_to_skill_text(desk: Desk, write: Write) -> None:
    write("look", "Look at $ARGUMENTS: !`echo seen` !`touch owned`")
    app = desk.app("ok")
    assert isinstance(await desk.say(app, "/look src and more"), Done)
    rendered = await first_said(app)
    assert rendered.startswith("Look at src and more: seen [not run: it needs approval")
    assert not (desk.project / "owned").exists()


async def test_several_skills_in_one_line(desk: Desk, write: Write) -> None:
    write("terse", "Be terse.")
    write("review", "Review $ARGUMENTS.")
    write("hidden", "Hidden.", "user-invocable: false")
    app = desk.app("ok")
    await desk.say(app, "/terse /review src/a.py")
    assert await first_said(app) == "Be terse.\n\nARGUMENTS: src/a.py\n\nReview src/a.py."
    app = desk.app("ok")
    await desk.say(app, "/review /hidden /nothing")
    assert await first_said(app) == "Review /hidden /nothing."


@pytest.mark.parametrize("text", ["/hidden go", "/nowhere", "/etc/passwd is odd", "see /review"])
async def test_prompt_without_skill_is_unchanged(desk: Desk, write: Write, text: str) -> None:
    write("review", "Review.")
    write("hidden", "Hidden.", "user-invocable: false")
    app = desk.app("ok")
    await desk.say(app, text)
    assert await first_said(app) == text


async def test_hook_notes_are_not_skill_arguments(desk: Desk, write: Write) -> None:
    write("look", "Look at <$ARGUMENTS>.")
    app = desk.app("ok")
    await desk.say(app, UserPrompt("/look src", hook_notes=("it is Monday",)))
    assert await first_said(app) == "Look at <src>.\n\n[hook] it is Monday"


async def test_skill_gets_stdin_after_its_arguments(desk: Desk, write: Write) -> None:
    write("look", "Look at <$ARGUMENTS>.")
    app = desk.app("ok")
    await desk.say(app, UserPrompt("/look src", stdin="the log", hook_notes=("it is Monday",)))
    expected = "Look at <src\n\n<stdin>\nthe log\n</stdin>>.\n\n[hook] it is Monday"
    assert await first_said(app) == expected


@pytest.mark.parametrize("marker", ["\n\n[hook] ", "\n\n<stdin>\n"])
async def test_typed_marker_stays_in_skill_arguments(desk: Desk, write: Write, marker: str) -> None:
    write("look", "Look at <$ARGUMENTS>.")
    app = desk.app("ok")
    await desk.say(app, UserPrompt(f"/look src{marker}and docs", stdin=f"a{marker}b", hook_notes=(f"c{marker}d",)))
    piped = f"\n\n<stdin>\na{marker}b\n</stdin>"
    assert await first_said(app) == f"Look at <src{marker}and docs{piped}>.\n\n[hook] c{marker}d"


@pytest.mark.parametrize("marker", ["\n\n[hook] ", "\n\n<stdin>\n"])
async def test_typed_marker_reaches_the_model_whole(desk: Desk, marker: str) -> None:
    app = desk.app("ok")
    await desk.say(app, f"first{marker}second")
    assert await first_said(app) == f"first{marker}second"


async def test_skill_attaches_readable_files(desk: Desk, write: Write) -> None:
    (desk.project / "style.md").write_text("Be kind.")
    (desk.project / "secret.pem").write_text("hunter2")
    write(
        "review",
        "Follow @style.md, ask @somebody about `@make.sh`, use @secret.pem and @$0.\n\n"
        "```\n@make.sh\n```\n\n!`echo @make.sh`",
    )
    app = desk.app("ok", settings='{"permissions": {"deny": ["Read(*.pem)"]}}')
    await desk.say(app, "/review style.md")
    rendered = await first_said(app)
    assert rendered.count("Be kind.") == 1
    assert "hunter2" not in rendered
    assert "forbids it" in rendered
    assert "touch made" not in rendered  # neither code nor what a command prints names a file


async def test_attached_file_is_not_repeated(desk: Desk, write: Write) -> None:
    (desk.project / "a.py").write_text("print(1)")
    (desk.project / "style.md").write_text("Be kind.")
    write("review", "Review $ARGUMENTS by @style.md.")
    app = desk.app("ok")
    prompt = (Text("/review @a.py"), Text("a.py:\nprint(1)"))
    async for _ in app.agent.stream(prompt, session="s"):
        pass
    message = (await app.agent.messages("s"))[0]
    assert isinstance(message, UserMessage) and isinstance(message.content, tuple)
    first, second = message.content
    assert isinstance(first, Text) and first.text.startswith("Review @a.py by @style.md.")
    assert "print(1)" not in first.text and "Be kind." in first.text
    assert second == prompt[1]


async def test_skill_loaded_by_model_attaches_files(desk: Desk, write: Write) -> None:
    (desk.project / "style.md").write_text("Be kind.")
    write("review", "Follow @style.md.")
    app = desk.app(use("review"), "ok")
    await desk.say(app, "review")
    assert "Be kind." in (await outcomes(app))[0].text


async def test_forked_skill_has_its_own_grants(desk: Desk, home: Path, write: Write) -> None:
    fields = ("context: fork", "allowed-tools: Bash(./make.sh)")
    write("make", "Make it.", *fields, base=home / ".claude" / "skills")
    app = desk.app(use("make"), run_it(), "it is made", "the agent says it is made", run_it())
    await desk.say(app, "make it")
    assert desk.made
    (answer,) = await outcomes(app)
    assert answer.text == "it is made"
    (desk.project / "made").unlink()
    await desk.say(app, "again")
    assert not desk.made


async def test_forked_skill_grant_does_not_leak(desk: Desk, home: Path, write: Write) -> None:
    fields = ("context: fork", "allowed-tools: Bash(./make.sh)")
    write("make", "Make it.", *fields, base=home / ".claude" / "skills")
    app = desk.app(use("make"), "I would rather not", run_it())
    await desk.say(app, "make it")
    assert not desk.made


async def test_forked_skill_cannot_read_denied_files(desk: Desk, write: Write) -> None:
    (desk.project / "secret.pem").write_text("hunter2")
    write("look", "Look.", "context: fork", "agent: Explore")

    def tell(request: ModelRequest) -> str:
        return "".join(o.text for m in request.messages if isinstance(m, ToolMessage) for o in m.outcomes)

    settings = '{"permissions": {"deny": ["Read(*.pem)"]}}'
    app = desk.app(run_it("read", path="secret.pem"), tell, "ok", settings=settings)
    await desk.say(app, "/look")
    rendered = await first_said(app)
    assert "forbids it" in rendered and "hunter2" not in rendered


@pytest.mark.parametrize("rule", ["deny", "ask"])
async def test_forked_skill_obeys_conversation_rules(desk: Desk, home: Path, write: Write, rule: str) -> None:
    fields = ("context: fork", "allowed-tools: Bash(./make.sh)")
    write("make", "Make it.", *fields, base=home / ".claude" / "skills")
    settings = f'{{"permissions": {{"{rule}": ["Bash(./make.sh)"]}}}}'
    for first in ((use("make"),), ()):
        app = desk.app(*first, run_it(), "could not", "it could not", settings=settings)
        await desk.say(app, "make it" if first else "/make")
        assert not desk.made


async def test_user_can_call_forked_skill(desk: Desk, write: Write) -> None:
    write("research", "Find out about $ARGUMENTS.", "context: fork")
    app = desk.app("bees dance", "I see")
    await desk.say(app, "/research bees")
    assert (await first_said(app)).endswith("which answered:\n\nbees dance")
    assert len(await app.agent.messages("s")) == 2


@pytest.mark.parametrize("typed", [True, False], ids=["user", "model"])
async def test_explore_agent_never_writes(desk: Desk, write: Write, typed: bool) -> None:
    write("look", "Look around.", "context: fork", "agent: Explore")
    settings = '{"permissions": {"allow": ["Bash(./make.sh)"]}}'
    looking = (run_it(), run_it("list"), "looked", "ok")
    app = desk.app(*looking, settings=settings) if typed else desk.app(use("look"), *looking, settings=settings)
    await desk.say(app, "/look" if typed else "look")
    assert not desk.made


async def test_unknown_agent_is_refused_by_name(desk: Desk, write: Write) -> None:
    write("look", "Look around.", "context: fork", "agent: wizard")
    result = await desk.say(desk.app(), "/look")
    assert isinstance(result, Stopped)
    assert "requests the unknown agent 'wizard'; write agent: Explore" in result.reason


def models(own: ScriptedProvider, **others: ScriptedProvider) -> Models:
    def open_model(name: str) -> Provider:
        if name not in others:
            raise UsageError(f"there is no model {name!r}")
        return others[name]

    return Models(own, open_model)


async def test_skill_model_lasts_until_next_prompt(desk: Desk, home: Path, write: Write) -> None:
    write("think", "Think.", "model: deep", base=home / ".claude" / "skills")
    own, deep = ScriptedProvider(use("think"), "plain again"), ScriptedProvider("thought", model="deep")
    app = desk.app(models=models(own, deep=deep))
    thought = await desk.say(app, "think")
    plain = await desk.say(app, "and now?")
    assert isinstance(thought, Done) and isinstance(plain, Done)
    assert (thought.text, plain.text) == ("thought", "plain again")


async def test_forked_skill_uses_its_model(desk: Desk, home: Path, write: Write) -> None:
    write("think", "Think.", "model: deep", "context: fork", base=home / ".claude" / "skills")
    own, deep = ScriptedProvider(use("think"), "so it is"), ScriptedProvider("thought", model="deep")
    app = desk.app(models=models(own, deep=deep))
    await desk.say(app, "think")
    assert (await outcomes(app))[0].text == "thought"
    deep.assert_used_up()


_PRICED = '{"prices": {"scripted": {"input": 1, "output": 1}, "deep": {"input": 7, "output": 7}}}'


def _costly(text: str) -> AssistantMessage:
    return AssistantMessage((Text(text),), usage=Usage(input_tokens=1_000_000), model="deep-of-today")


async def test_model_of_a_forked_skill_is_charged_at_its_own_price(desk: Desk, home: Path, write: Write) -> None:
    write("think", "Think.", "model: deep", "context: fork", base=home / ".claude" / "skills")
    own, deep = ScriptedProvider(use("think"), "so it is"), ScriptedProvider(_costly("thought"), model="deep")
    result = await desk.say(desk.app(models=models(own, deep=deep), settings=_PRICED), "think")
    assert isinstance(result, Done) and result.cost == pytest.approx(7.0)


@pytest.mark.parametrize("typed", [False, True])
async def test_model_of_a_skill_is_charged_at_its_own_price(
    desk: Desk, home: Path, write: Write, *, typed: bool
) -> None:
    write("think", "Think.", "model: deep", base=home / ".claude" / "skills")
    own, deep = ScriptedProvider(*([] if typed else [use("think")])), ScriptedProvider(_costly("thought"), model="deep")
    result = await desk.say(desk.app(models=models(own, deep=deep), settings=_PRICED), "/think" if typed else "think")
    assert isinstance(result, Done) and result.cost == pytest.approx(7.0)


async def test_model_of_a_sub_agent_is_charged_at_its_own_price(desk: Desk) -> None:
    task = ToolCall("t", "task", {"agent": "thinker", "prompt": "think"})
    own, deep = ScriptedProvider(task, "so it is"), ScriptedProvider(_costly("thought"), model="deep")
    agents = '{"thinker": {"description": "thinks", "prompt": "Think.", "model": "deep"}}'
    app = desk.app(models=models(own, deep=deep), settings=_PRICED, agents=agents)
    result = await desk.say(app, "think")
    assert isinstance(result, Done) and result.cost == pytest.approx(7.0)


async def test_model_of_unknown_price_is_not_used_under_a_limit_in_money(desk: Desk, home: Path, write: Write) -> None:
    from acp.exceptions import RequestError

    from callwright.acp.commands import set_model

    write("think", "Think.", "model: other", base=home / ".claude" / "skills")
    own, other = ScriptedProvider(use("think"), "thought here"), ScriptedProvider("sent away", model="other")
    settings = '{"prices": {"scripted": {"input": 1, "output": 1}}, "limits": {"usd": 1}}'
    app = desk.app(models=models(own, other=other), settings=settings)
    result = await desk.say(app, "think")
    assert isinstance(result, Done) and result.text == "thought here"
    assert other.requests == []
    assert "a limit in USD needs the price of other" in desk.reports[0]
    before = app.agent.limits
    with pytest.raises(RequestError, match="a limit in USD needs the price of other"):
        set_model(app, "other")
    assert app.skill_service.models.own is own
    assert app.agent.limits == before


async def test_unobservable_model_is_not_used(desk: Desk, home: Path, write: Write) -> None:
    write("think", "Think.", "model: http://127.0.0.1:9/v1#deep", base=home / ".claude" / "skills")
    app = desk.app(use("think"), "thought here")
    result = await desk.say(app, "think")
    assert isinstance(result, Done) and result.text == "thought here"
    assert "context: fork" in desk.reports[0]
    await app.skill_service.models.aclose()


@pytest.mark.parametrize("where", ["project", "user"])
async def test_unapproved_or_unknown_model_is_not_used(desk: Desk, home: Path, write: Write, where: str) -> None:
    base = home / ".claude" / "skills" if where == "user" else None
    write("think", "Think.", f"model: {'elsewhere' if where == 'project' else 'haiku'}", base=base)
    own, other = ScriptedProvider(use("think"), "thought here"), ScriptedProvider("sent away")
    app = desk.app(models=models(own, elsewhere=other))
    result = await desk.say(app, "think")
    assert isinstance(result, Done) and result.text == "thought here"
    assert other.requests == []
    assert "which is not used" in desk.reports[0]


async def test_path_skill_is_offered_after_matching_file(desk: Desk, write: Write) -> None:
    (desk.project / "src").mkdir()
    (desk.project / "src" / "a.ts").write_text("let a = 1")
    write("typescript", "Strictly.", 'paths: "src/**/*.{ts,tsx}"')
    write("always", "Always.")
    app = desk.app(
        run_it("read", path="make.sh"), run_it("read", path="src/a.ts"), run_it("read", path="src/a.ts"), "ok"
    )
    await desk.say(app, "look")
    assert "always" in app.agent.system and "typescript" not in app.agent.system
    first, second, third = await outcomes(app)
    assert "typescript" not in first.text
    assert second.text.count("- typescript: What typescript is for.") == 1
    assert "typescript" not in third.text


async def test_nested_skill_is_found_when_file_is_touched(desk: Desk, write: Write) -> None:
    inner = desk.project / "packages" / "web"
    write("deploy-web", "!`./make.sh`", "allowed-tools: Bash(./make.sh)", base=inner / ".claude" / "skills")
    (inner / "a.ts").write_text("let a = 1")
    assert desk.app().problems == []
    app = desk.app(run_it("read", path="packages/web/a.ts"), use("deploy-web"), "ok")
    assert "skill" not in app.registry
    await desk.say(app, "look")
    read, used = await outcomes(app)
    assert "- deploy-web: What deploy-web is for." in read.text
    assert isinstance(used, Completed)
    assert not desk.made  # what turns up on the way is never granted anything


async def test_unreadable_folder_does_not_fail_the_call(desk: Desk) -> None:
    class Barred(Skills):
        def visit(self, path: object) -> tuple[Skill, ...]:
            raise PermissionError(f"{path} is barred")

    app = desk.app()
    executor = Executor(app.registry, AllowEverything(), hooks=[PathScopedSkills(Barred(desk.project), lambda: None)])
    outcome = await executor.run("read", {"path": "make.sh"})
    assert isinstance(outcome, Completed) and "touch made" in outcome.text


async def test_third_party_folders_hold_no_skills(desk: Desk, write: Write) -> None:
    inner = desk.project / "node_modules" / "left-pad"
    write("pad", "Pad.", base=inner / ".claude" / "skills")
    (inner / "a.js").write_text("pad()")
    app = desk.app(run_it("read", path="node_modules/left-pad/a.js"), "ok")
    await desk.say(app, "look")
    assert "skills" not in (await outcomes(app))[0].text
    assert app.skills.get("pad") is None


async def test_nested_skill_never_replaces_known_skill(desk: Desk, home: Path, write: Write) -> None:
    write("review", "Mine.", base=home / ".claude" / "skills")
    write("review", "Theirs.", base=desk.project / "sub" / ".claude" / "skills")
    app = desk.app()
    assert app.skills.visit(desk.project / "sub" / "a.py") == ()
    kept = app.skills.get("review")
    assert kept is not None and kept.scope == "user"


async def test_unusable_skill_is_a_problem(desk: Desk, write: Write) -> None:
    folder = write("review", "Review.", "context: knife")
    (problem,) = desk.app().problems
    assert problem == f"{folder / 'SKILL.md'}:4: context must be fork or inline, not 'knife'"


async def test_invocation_flags_limit_user_and_model(desk: Desk, write: Write) -> None:
    write("release", "Release.", "disable-model-invocation: true")
    app = desk.app(use("release"), "ok")
    assert "release" not in app.agent.system
    await desk.say(app, "release it")
    (refused,) = await outcomes(app)
    assert isinstance(refused, Failed) and "only the user may start release" in refused.text
    typed = desk.app("ok")
    await desk.say(typed, "/release")
    assert await first_said(typed) == "Release."


async def test_typed_skill_command_asks_for_approval(desk: Desk, write: Write) -> None:
    write("make", "!`./make.sh`")
    asked: list[str] = []

    async def ask(questions: Sequence[Question]) -> Answers:
        asked.extend(question.summary for question in questions)
        return Answers.approving(questions)

    app = desk.app("ok")
    app.agent.ask = ask
    await desk.say(app, "/make")
    assert asked == ["Allow bash: ./make.sh?"]
    assert desk.made
