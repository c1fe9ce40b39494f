"""Approval requests in the editor: only an option that was offered for this question approves."""

import asyncio
import sys
from pathlib import Path
from typing import Any

import pytest
from acp import RequestError
from acp.schema import ClientCapabilities, ElicitationCapabilities, ElicitationFormCapabilities, McpServerStdio
from tests.acp.conftest import Connect
from tests.acp.editor import Choose, EditorClient, call, choose, until

from callwright.app.locations import Locations
from callwright.sessions import SqliteStore
from callwright.sessions.records import Answered, Asked, Record

_WRITE = call("write", path="a.txt", content="hi\n")
_ROUGH_SERVER = Path(__file__).parents[1] / "mcp" / "servers" / "rough.py"


async def records_of(folder: Path, session_id: str) -> list[Record]:
    async with SqliteStore(Locations.of(folder).sessions) as store:
        return list(await store.read(session_id))


def raise_error(options: list[Any]) -> Any:
    raise RequestError.internal_error({"details": "no window"})


_WRONG_ANSWERS: dict[str, Choose] = {
    "rejected": choose("reject"),
    "cancelled": lambda _: None,
    "id-without-nonce": lambda _: "once",
    "id-of-another-question": lambda _: "once-0000000000000000",
    "empty-id": lambda _: "",
    "id-with-a-space": lambda options: f"{options[0].option_id} ",
    "error": raise_error,
    "no-outcome": lambda _: {},
    "no-option": lambda _: {"outcome": {"outcome": "selected"}},
    "unknown-outcome": lambda _: {"outcome": {"outcome": "approved", "optionId": "once"}},
    "option-of-wrong-type": lambda _: {"outcome": {"outcome": "selected", "optionId": ["once"]}},
    "outcome-true": lambda _: {"outcome": True},
    "list": lambda _: [True],
}


@pytest.mark.parametrize("answer", _WRONG_ANSWERS.values(), ids=_WRONG_ANSWERS)
async def test_every_other_answer_declines(connect: Connect, answer: Choose) -> None:
    async with connect(_WRITE, "ok, not then", client=EditorClient(answer)) as editor:
        session = await editor.start()
        assert await editor.say(session, "write it") == "end_turn"
        assert not (editor.project / "a.txt").exists()
        assert editor.client.statuses() == ["failed"]


async def test_question_shows_the_whole_call_and_its_digest(connect: Connect) -> None:
    line = "touch one.txt; echo " + "x" * 300 + " ; touch evil.txt"
    async with connect(call("bash", command=line), "done", client=EditorClient(choose("reject"))) as editor:
        session = await editor.start()
        await editor.say(session, "run it")
        shown: Any
        ((shown, options),) = editor.client.asked
        assert line in shown.content[-1].content.text
        assert (options[0].kind, options[-1].kind) == ("allow_once", "reject_once")
        asked = [record for record in await records_of(editor.project, session) if isinstance(record, Asked)]
        assert options[0].option_id == f"once-{asked[0].questions[0].nonce}"
        assert not (editor.project / "one.txt").exists()


async def test_session_approval_covers_the_same_call_again(connect: Connect) -> None:
    again = call("bash", command="touch a.txt")
    async with connect(again, again, "done", client=EditorClient(choose("session"))) as editor:
        await editor.say(await editor.start(), "twice")
        assert len(editor.client.asked) == 1
        assert editor.client.statuses() == ["completed", "completed"]


async def test_always_is_saved_as_the_rule_that_was_shown(connect: Connect) -> None:
    async with connect(_WRITE, "done", client=EditorClient(choose("always"))) as editor:
        await editor.say(await editor.start(), "write it")
        ((_, options),) = editor.client.asked
        offered = next(option.name for option in options if option.option_id.startswith("always"))
        rule = offered.removeprefix("Always allow ")
        saved = Locations.of(editor.project).local_settings.read_text()
        assert rule in saved.replace("\\/", "/")


@pytest.mark.parametrize("scope", ["session", "always"])
async def test_question_of_an_ask_rule_is_approved_only_once(connect: Connect, scope: str) -> None:
    client = EditorClient(lambda options: options[0].option_id.replace("once-", f"{scope}-"))
    rule = ("--settings", '{"permissions": {"ask": ["Write"]}}')
    async with connect(_WRITE, "done", client=client, arguments=rule) as editor:
        await editor.say(await editor.start(), "write it")
        ((_, options),) = client.asked
        assert [option.kind for option in options] == ["allow_once", "reject_once"]
        assert not (editor.project / "a.txt").exists()


async def test_question_and_answer_are_on_record(connect: Connect) -> None:
    async with connect(_WRITE, "done") as editor:
        session = await editor.start()
        await editor.say(session, "write it")
        records = await records_of(editor.project, session)
        (asked,) = [record for record in records if isinstance(record, Asked)]
        (answered,) = [record for record in records if isinstance(record, Answered)]
        assert set(answered.replies) == {asked.questions[0].id}


async def test_cancel_at_a_question_runs_nothing(connect: Connect) -> None:
    never = asyncio.Event()

    async def wait() -> None:
        await never.wait()

    write = {"name": "write", "arguments": {"path": "a.txt", "content": "hi\n"}}
    two = {"calls": [write, {"name": "glob", "arguments": {"pattern": "*"}}]}
    async with connect(two, "never said", client=EditorClient(lambda _: wait())) as editor:
        session = await editor.start()
        answer = await editor.say_until_asked(session, "write it")
        await editor.connection.cancel(session)
        assert await answer == "cancelled"
        never.set()
        await asyncio.sleep(0.05)
        assert not (editor.project / "a.txt").exists()
        assert set(editor.client.statuses()) == {"failed"}
        assert "never said" not in editor.client.text()


async def test_cancel_keeps_outcomes_of_calls_that_ended(connect: Connect) -> None:
    both = {
        "calls": [
            {"name": "bash", "arguments": {"command": "touch done.txt"}},
            {"name": "bash", "arguments": {"command": "touch began.txt; sleep 60"}},
        ]
    }
    async with connect(both, "never said") as editor:
        session = await editor.start()
        answer = asyncio.create_task(editor.say(session, "run both"))
        await until((editor.project / "began.txt").exists)
        await editor.connection.cancel(session)
        assert await answer == "cancelled"
        assert editor.client.statuses() == ["completed", "failed"]


async def test_cancel_at_the_question_of_a_linked_file(connect: Connect) -> None:
    async def wait() -> None:
        await asyncio.Event().wait()

    client = EditorClient(lambda _: wait())
    async with connect(
        "never said", client=client, arguments=("--settings", '{"permissions": {"ask": ["Read"]}}')
    ) as editor:
        (editor.project / "a.txt").write_text("words")
        session = await editor.start()
        link = {"type": "resource_link", "uri": f"file://{editor.project}/a.txt", "name": "a"}
        answer = await editor.say_until_asked(session, "look", link)
        await editor.connection.cancel(session)
        assert await answer == "cancelled"


async def test_model_question_offers_its_choices(connect: Connect) -> None:
    ask = call("ask_user", question="Which colour?", choices=["red", "blue"])
    async with connect(ask, "done", client=EditorClient(choose("choice-1"))) as editor:
        await editor.say(await editor.start(), "ask me")
        ((shown, options),) = editor.client.asked
        assert shown.title == "Which colour?"
        assert [option.name for option in options] == ["red", "blue", "Reject"]
        (outcome,) = editor.client.calls().values()
        assert "the user chose: blue" in outcome["raw_output"]["text"]


@pytest.mark.parametrize(
    ("answer", "told"),
    [
        ({"action": "accept", "content": {"text": "teal"}}, "the user wrote: teal"),
        ({"action": "accept", "content": {"choice": "blue"}}, "the user chose: blue"),
        ({"action": "accept", "content": {"choice": "green"}}, "gave no reply"),
        ({"action": "accept", "content": {"text": 5}}, "gave no reply"),
        ({"action": "accept"}, "gave no reply"),
        ({"action": "decline", "content": {"text": "teal"}}, "gave no reply"),
        ({"action": "cancel"}, "gave no reply"),
        (["accept"], "gave no reply"),
    ],
)
async def test_form_carries_a_written_reply(connect: Connect, answer: Any, told: str) -> None:
    forms: list[Any] = []

    class Form(EditorClient):
        async def create_elicitation(self, message: str, mode: Any, **more: Any) -> Any:
            forms.append((message, mode))
            return answer

    ask = call("ask_user", question="Which colour?", choices=["red", "blue"])
    capabilities = ClientCapabilities(elicitation=ElicitationCapabilities(form=ElicitationFormCapabilities()))
    async with connect(ask, "done", client=Form()) as editor:
        await editor.say(await editor.start(capabilities), "ask me")
        assert [message for message, _ in forms] == ["Which colour?"]
        assert told in str(next(iter(editor.client.calls().values()))["raw_output"])
        assert editor.client.asked == []


async def test_form_never_approves_a_call(connect: Connect) -> None:
    capabilities = ClientCapabilities(elicitation=ElicitationCapabilities(form=ElicitationFormCapabilities()))
    async with connect(_WRITE, "done", client=EditorClient(choose("reject"))) as editor:
        await editor.say(await editor.start(capabilities), "write it")
        assert len(editor.client.asked) == 1
        assert not (editor.project / "a.txt").exists()


async def test_form_of_a_server_is_not_sent_empty(connect: Connect) -> None:
    server = McpServerStdio(name="rough", command=sys.executable, args=[str(_ROUGH_SERVER)], env=[])
    settings = ("--settings", '{"permissions": {"allow": ["mcp__rough__ask"]}}')
    async with connect(
        call("mcp__rough__ask"), "done", client=EditorClient(choose("once")), arguments=settings
    ) as editor:
        await editor.connection.initialize(1)
        created = await editor.connection.new_session(str(editor.project), mcp_servers=[server])
        await editor.say(created.session_id, "go")
        assert editor.client.asked == []
        outcome = next(iter(editor.client.calls().values()))
        assert outcome["raw_output"]["text"] == '{"action": "decline"}'


async def test_written_reply_is_declined_with_advice(connect: Connect) -> None:
    async with connect(call("ask_user", question="What name?"), "done") as editor:
        await editor.say(await editor.start(), "ask me")
        assert editor.client.asked == []
        (outcome,) = editor.client.calls().values()
        assert "ask in the answer" in outcome["raw_output"]["message"]


@pytest.mark.parametrize(("answer", "written"), [("once", True), ("reject", False)])
async def test_sub_agent_asks_in_the_editor(connect: Connect, project: Path, answer: str, written: bool) -> None:
    agents = project.parent / "home" / "agents"
    agents.mkdir()
    (agents / "fixer.md").write_text("---\nname: fixer\ndescription: Fixes files.\ntools: Write\n---\nYou fix files.\n")
    replies = (call("task", agent="fixer", prompt="x"), _WRITE, "inner", "outer")
    async with connect(*replies, client=EditorClient(choose(answer))) as editor:
        assert await editor.say(await editor.start(), "go") == "end_turn"
        ((shown, _),) = editor.client.asked
        assert "a.txt" in str(shown.title)
        assert (project / "a.txt").exists() is written
        assert editor.client.text() == "outer"
        assert set(editor.client.statuses()) <= {"completed", "failed"}


async def test_plan_mode_denies_without_a_question(connect: Connect) -> None:
    async with connect(_WRITE, "done") as editor:
        session = await editor.start()
        await editor.connection.set_session_mode(session, "plan")
        await editor.say(session, "write it")
        assert editor.client.asked == []
        assert not (editor.project / "a.txt").exists()


async def test_barred_mode_is_refused(connect: Connect, project: Path) -> None:
    settings = '{"permissions": {"disableBypassPermissionsMode": "disable"}}'
    async with connect(_WRITE, "done", arguments=("--settings", settings)) as editor:
        await editor.connection.initialize(1)
        created = await editor.connection.new_session(str(project), mcp_servers=[])
        assert created.modes is not None
        assert "bypass" not in [mode.id for mode in created.modes.available_modes]
        for method, params in (
            ("session/set_mode", {"modeId": "bypass"}),
            ("session/set_config_option", {"configId": "mode", "value": "bypass"}),
            ("session/set_mode", {"modeId": "root"}),
        ):
            with pytest.raises(RequestError) as raised:
                await editor.raw(method, {"sessionId": created.session_id, **params})
            assert raised.value.code == -32602
        await editor.say(created.session_id, "write it")
        assert len(editor.client.asked) == 1
