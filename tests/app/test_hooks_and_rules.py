"""Hooks against rules, guards and modes, and conversations with hooks."""

import json

import pytest
from tests.waiting import LONG_SECONDS

from callwright import Completed, Failed, Interrupted
from callwright.agent.results import Done, Stopped
from callwright.app import models
from callwright.app.app import App
from callwright.app.assembly import assemble
from callwright.app.conversation import Conversation
from callwright.app.locations import Locations
from callwright.app.models import choose_model, local_server, open_with_fallbacks
from callwright.app.run_context import RunOptions
from callwright.app.settings import Settings, load_settings
from callwright.core.errors import UsageError
from callwright.core.messages import UserMessage
from callwright.providers.options import ModelOptions
from callwright.testing.fakes import ScriptedProvider

ALLOW = json.dumps({"hookSpecificOutput": {"permissionDecision": "allow"}})


def app_with(locations: Locations, content: object, *replies: str, options: RunOptions | None = None) -> App:
    settings = load_settings(locations, trusted=False, given=[json.dumps(content)])
    return assemble(ScriptedProvider(*replies), settings, locations, options or RunOptions(keep=False))


def hooks(event: str, command: str) -> dict[str, object]:
    return {"hooks": {event: [{"hooks": [{"command": command}]}]}}


async def test_hook_allow_replaces_the_question_of_the_mode(locations: Locations) -> None:
    asked = app_with(locations, {})
    assert isinstance(await asked.executor.run("bash", {"command": "touch a"}), Interrupted)
    spared = app_with(locations, hooks("PreToolUse", f"echo '{ALLOW}'"))
    assert isinstance(await spared.executor.run("bash", {"command": "touch a"}), Completed)


@pytest.mark.parametrize(
    ("permissions", "ending"),
    [({"deny": ["Bash(touch *)"]}, Failed), ({"ask": ["Bash(touch *)"]}, Interrupted)],
)
async def test_hook_allow_does_not_override_deny_or_ask_rules(
    locations: Locations, permissions: object, ending: type
) -> None:
    content = {**hooks("PreToolUse", f"echo '{ALLOW}'"), "permissions": permissions}
    assert isinstance(await app_with(locations, content).executor.run("bash", {"command": "touch a"}), ending)
    assert not (locations.cwd / "a").exists()


async def test_hook_allow_does_not_override_plan_mode_or_guards(locations: Locations) -> None:
    content = hooks("PreToolUse", f"echo '{ALLOW}'")
    planning = app_with(locations, content, options=RunOptions(mode="plan", keep=False))
    assert isinstance(await planning.executor.run("bash", {"command": "touch a"}), Failed)
    guarded = app_with(locations, content)
    assert isinstance(await guarded.executor.run("write", {"path": ".git/hooks/x", "content": "x"}), Interrupted)


@pytest.mark.parametrize("rule", ["Read(~/notes/**)", "Read(../home/notes)"])
async def test_sandbox_masks_what_a_deny_rule_names_outside_the_project(
    locations: Locations, monkeypatch: pytest.MonkeyPatch, rule: str
) -> None:
    home = locations.project.parent / "home"
    monkeypatch.setenv("HOME", str(home))  # else it is not shown behind the wall anyway
    (home / "notes").mkdir(parents=True)
    (home / "notes" / "plan").write_text("content of the plan")
    (locations.project / "Makefile").write_text("test:\n\t@cat ../home/notes/plan; echo done\n")
    app = app_with(locations, {"permissions": {"deny": [rule]}})
    outcome = await app.executor.run("bash", {"command": "make test"})
    if isinstance(outcome, Interrupted):
        pytest.skip("no complete sandbox on this machine")
    assert isinstance(outcome, Completed) and "done" in outcome.text
    assert "content of the plan" not in outcome.text


@pytest.mark.parametrize("rule", ["Edit(/made/**)", "Write(made)", "Edit(made/*.txt)", "Edit(../*/made/a.txt)"])
async def test_sandbox_keeps_what_a_deny_rule_forbids_to_change(locations: Locations, rule: str) -> None:
    made = locations.project / "made"
    made.mkdir()
    (made / "a.txt").write_text("as it was")
    (locations.project / "change.sh").write_text("echo x > made/a.txt; rm -f made/a.txt; mv made b; echo x > other")
    content = {"permissions": {"deny": [rule]}}
    app = app_with(locations, content, options=RunOptions(mode="auto", keep=False))
    outcome = await app.executor.run("bash", {"command": "bash change.sh"})
    if isinstance(outcome, Interrupted):
        pytest.skip("no complete sandbox on this machine")
    assert isinstance(outcome, Completed), outcome.text
    assert (made / "a.txt").read_text() == "as it was"
    assert (locations.project / "other").exists()


async def test_rules_judge_rewritten_arguments(locations: Locations) -> None:
    rewrite = json.dumps(
        {"hookSpecificOutput": {"permissionDecision": "allow", "updatedInput": {"command": "make install"}}}
    )
    content = {**hooks("PreToolUse", f"echo '{rewrite}'"), "permissions": {"deny": ["Bash(make *)"]}}
    outcome = await app_with(locations, content).executor.run("bash", {"command": "ls"})
    assert isinstance(outcome, Failed) and "Bash(make *)" in outcome.text


async def test_hook_can_deny_or_extend_a_prompt(locations: Locations) -> None:
    refusing = app_with(locations, hooks("UserPromptSubmit", "echo 'no secrets' >&2; exit 2"))
    events = [event async for event in Conversation(refusing, "s").say("my password is")]
    assert events == [Stopped("no secrets", "halted", session_id="s")]
    adding = app_with(locations, hooks("UserPromptSubmit", "echo 'it is Monday'"), "ok")
    async for _ in Conversation(adding, "s").say("which day?"):
        pass
    (said, _) = await adding.agent.messages("s")
    assert said == UserMessage("which day?\n\n[hook] it is Monday")


async def test_stop_hook_cannot_continue_forever(locations: Locations) -> None:
    once = "grep -q '\"stop_hook_active\": true' && exit 0; echo 'run the tests' >&2; exit 2"
    app = app_with(locations, hooks("Stop", once), "done", "tests pass")
    events = [event async for event in Conversation(app, "s").say("go")]
    results = [event for event in events if isinstance(event, Done)]
    assert [result.text for result in results] == ["tests pass"]
    stubborn = app_with(locations, hooks("Stop", "echo more >&2; exit 2"), *(["x"] * 9))
    events = [event async for event in Conversation(stubborn, "s").say("go")]
    assert isinstance(events[-1], Done)


def test_unknown_model_is_named_with_its_origin(locations: Locations) -> None:
    settings = load_settings(locations, trusted=False)
    for asked, variables, others, said in (
        ("foo", {}, (), "local:FILE.gguf"),
        ("", {"CALLWRIGHT_MODEL": "foo"}, (), "(configured by CALLWRIGHT_MODEL)"),
        (
            "http://127.0.0.1:9/v1#x",
            {},
            ["foo"],
            "(it is a fallback: --fallback-model, or fallbackModel in the settings)",
        ),
    ):
        choice = choose_model(settings, asked=asked, environment=variables)
        assert choice is not None
        with pytest.raises(UsageError, match="unknown model 'foo': write anthropic:NAME") as raised:
            open_with_fallbacks(choice, others, ModelOptions(), print)
        assert str(raised.value).endswith(said)


def test_model_choice_follows_the_documented_order(monkeypatch: pytest.MonkeyPatch) -> None:
    settings = Settings()
    keys = {"OPENAI_API_KEY": "x", "ANTHROPIC_API_KEY": "y"}
    chosen = choose_model(settings, asked="a:b", environment={"CALLWRIGHT_MODEL": "c:d", **keys})
    assert chosen is not None and chosen.name == "a:b"
    chosen = choose_model(settings, environment={"CALLWRIGHT_MODEL": "c:d", **keys})
    assert chosen is not None and chosen.name == "c:d"
    chosen = choose_model(settings, environment=keys)
    assert chosen is not None and chosen.name.startswith("anthropic:") and "ANTHROPIC_API_KEY" in chosen.why
    chosen = choose_model(settings, environment={"ANTHROPIC_AUTH_TOKEN": "of a gateway"})
    assert chosen is not None and chosen.name.startswith("anthropic:")
    monkeypatch.setattr("callwright.app.models._SERVERS", (("none", 9),))
    assert local_server((("none", 9),)) is None


async def test_local_model_server_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    import asyncio

    monkeypatch.setattr(models, "_PROBE_SECONDS", LONG_SECONDS)

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        if await reader.readline():
            body = b'{"data": [{"id": "tiny"}]}'
            writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n%s" % (len(body), body))
        writer.close()

    server = await asyncio.start_server(answer, "127.0.0.1", 0)
    port = server.sockets[0].getsockname()[1]
    async with server:
        found = await asyncio.to_thread(local_server, (("none", 9), ("Ollama", port)))
    assert found is not None
    assert found.name == f"http://127.0.0.1:{port}/v1#tiny" and "Ollama" in found.why


async def test_denied_files_are_hidden_from_listing_and_search(locations: Locations) -> None:
    (locations.cwd / "secrets").mkdir()
    (locations.cwd / "secrets" / "key.txt").write_text("needle\n")
    (locations.cwd / "open.txt").write_text("needle\n")
    app = app_with(locations, {"permissions": {"deny": ["Read(secrets/**)"]}})
    calls = (("glob", {"pattern": "**/*.txt"}), ("grep", {"pattern": "needle"}), ("list", {"path": "secrets"}))
    for name, arguments in calls:
        outcome = await app.executor.run(name, arguments)
        assert isinstance(outcome, (Completed, Failed)) and "key.txt" not in outcome.text, name
        assert name == "list" or "open.txt" in outcome.text


def test_untrusted_folder_can_bar_a_mode(locations: Locations) -> None:
    (locations.project / ".callwright").mkdir()
    barred = json.dumps({"permissions": {"disableBypassPermissionsMode": "disable"}})
    (locations.project / ".callwright" / "settings.json").write_text(barred, encoding="utf-8")
    with pytest.raises(UsageError, match="the mode bypass is switched off by the settings"):
        app_with(locations, {}, options=RunOptions(mode="bypassPermissions", keep=False))
    switch = app_with(locations, {}).switch
    with pytest.raises(UsageError, match="switched off"):
        switch.mode = "bypass"
    switch.mode = "auto"
    assert switch.mode == "auto"


async def test_excluded_commands_of_the_settings_are_asked_about(locations: Locations) -> None:
    content = {"sandbox": {"enabled": True, "excludedCommands": ["ls"]}}
    assert isinstance(await app_with(locations, {}).executor.run("bash", {"command": "ls"}), Completed)
    assert isinstance(await app_with(locations, content).executor.run("bash", {"command": "ls"}), Interrupted)
    content = {**content, "permissions": {"allow": ["Bash(ls)"]}}
    assert isinstance(await app_with(locations, content).executor.run("bash", {"command": "ls"}), Completed)


@pytest.mark.parametrize("passed", [True, False])
async def test_hooks_get_the_variables_that_are_passed_on(
    locations: Locations, monkeypatch: pytest.MonkeyPatch, passed: bool
) -> None:
    monkeypatch.setenv("GUARD_TOKEN", "needed")
    content = {
        **hooks("PreToolUse", '[ "$GUARD_TOKEN" = needed ] || { echo no token >&2; exit 2; }'),
        "sandbox": {"passEnvironment": ["GUARD_*"] if passed else []},
    }
    outcome = await app_with(locations, content).executor.run("bash", {"command": "ls"})
    assert isinstance(outcome, Completed if passed else Failed)


@pytest.mark.parametrize("pattern", ["[z-a].txt", "src/[a-c9-1]/**", "[[:letters:]]"])
def test_class_that_matches_nothing_stops_the_start(locations: Locations, pattern: str) -> None:
    with pytest.raises(UsageError, match="write"):
        app_with(locations, {"permissions": {"deny": [f"Read({pattern})"]}})


@pytest.mark.parametrize("rule", ["Read([a-z].txt)", "Read(app/[id]/**)", "Read(a[b)", "Bash(ls [z-a])", "Read([!a])"])
def test_other_classes_are_accepted(locations: Locations, rule: str) -> None:
    app_with(locations, {"permissions": {"deny": [rule]}})
