"""Prompts from the editor: what is streamed, shown and attached."""

import asyncio
import base64
import json
import os
import tracemalloc
from pathlib import Path
from typing import Any

import pytest
from acp import RequestError
from acp.schema import ClientCapabilities, FileEditToolCallContent, ResourceContentBlock
from tests.acp.conftest import Connect
from tests.acp.editor import EditorClient, call, choose, until

from callwright.acp.call_display import CallDisplay
from callwright.acp.editor import Editor
from callwright.acp.requests import read_prompt
from callwright.acp.updates import diffs_of, end_call, fence
from callwright.agent.replay import SessionReplay
from callwright.app.attachments import Mention
from callwright.app.conversation import Conversation
from callwright.app.locations import Locations
from callwright.core.calls import Completed, ToolCall
from callwright.core.content import Image, Output, Text
from callwright.core.errors import UsageError
from callwright.core.messages import UserMessage
from callwright.sessions import SqliteStore
from callwright.tool.base import Cancellation

_PIXEL = base64.b64encode(
    base64.b64decode("iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==")
).decode()


async def stored_prompt(folder: Path, session_id: str) -> UserMessage:
    async with SqliteStore(Locations.of(folder).sessions) as store:
        first = SessionReplay(await store.read(session_id)).history[0]
    assert isinstance(first, UserMessage)
    return first


async def test_text_calls_and_answer_come_in_order(connect: Connect) -> None:
    reply = {**call("write", path="a.txt", content="hi\n"), "text": "I write it."}
    async with connect(reply, "done") as editor:
        session = await editor.start()
        assert await editor.say(session, "write a.txt") == "end_turn"
        client = editor.client
        assert (editor.project / "a.txt").read_text() == "hi\n"
        assert client.text() == "I write it.done"
        (shown,) = client.calls().values()
        assert (shown["status"], shown["kind"], shown["title"]) == ("completed", "edit", "write a.txt")
        assert shown["locations"][0]["path"] == str(editor.project / "a.txt")
        assert shown["content"][0]["new_text"] == "hi\n"
        kinds = client.kinds()
        assert kinds.index("agent_message_chunk") < kinds.index("tool_call") < kinds.index("tool_call_update")


async def test_edit_shows_diff_and_line(connect: Connect) -> None:
    replies = (call("read", path="a.py"), call("edit", path="a.py", old_string="two", new_string="2"), "done")
    async with connect(*replies) as editor:
        (editor.project / "a.py").write_text("one\ntwo\n")
        await editor.say(await editor.start(), "edit it")
        read, edit = editor.client.calls().values()
        assert (read["kind"], read["status"]) == ("read", "completed")
        assert (edit["content"][0]["old_text"], edit["content"][0]["new_text"]) == ("two", "2")
        assert edit["locations"][0]["line"] == 2


async def test_editor_is_shown_the_file_that_is_written(connect: Connect) -> None:
    async with connect(call("write", path="~root/a.txt", content="hi\n"), "done") as editor:
        await editor.say(await editor.start(), "write it")
        (shown,) = editor.client.calls().values()
        written = str(editor.project / "~root" / "a.txt")
        assert Path(written).read_text() == "hi\n"
        assert shown["locations"][0]["path"] == shown["content"][0]["path"] == written


async def test_command_output_is_shown(connect: Connect) -> None:
    async with connect(call("bash", command="echo one; echo two >&2"), "done") as editor:
        await editor.say(await editor.start(), "run it")
        (shown,) = editor.client.calls().values()
        assert shown["kind"] == "execute"
        assert "one\ntwo" in shown["content"][0]["content"]["text"]


async def test_editor_with_terminal_output_gets_the_stream(connect: Connect) -> None:
    async with connect(call("bash", command="echo one; exit 3"), "done") as editor:
        capabilities = ClientCapabilities(field_meta={"terminal_output": True})
        await editor.say(await editor.start(capabilities), "run it")
        metas = [each.field_meta for _, each in editor.client.updates if each.field_meta]
        (call_id,) = editor.client.calls()
        assert metas[0]["terminal_info"]["terminal_id"] == call_id
        assert "".join(meta["terminal_output"]["data"] for meta in metas if "terminal_output" in meta) == "one\n"
        assert metas[-1]["terminal_exit"] == {"terminal_id": call_id, "exit_code": 3, "signal": None}


@pytest.mark.skipif(not os.access("/proc/kallsyms", os.R_OK), reason="this system has no such file")
def test_file_that_is_longer_than_it_says_is_not_read_whole(tmp_path: Path) -> None:
    (shown,) = diffs_of(ToolCall("c1", "write", {"path": "/proc/kallsyms", "content": "x"}), tmp_path, on_disk=True)
    assert isinstance(shown, FileEditToolCallContent) and (shown.old_text, shown.new_text) == (None, "x")


@pytest.mark.parametrize(
    ("data", "shown"), [(b"a\r\nb", "a\nb"), (b"\xff", None), (b"x" * 524_289, None), (b"x" * 524_288, "x" * 524_288)]
)
def test_small_text_on_disk_is_the_old_text(tmp_path: Path, data: bytes, shown: str | None) -> None:
    (tmp_path / "a").write_bytes(data)
    (found,) = diffs_of(ToolCall("c1", "write", {"path": "a", "content": "x"}), tmp_path, on_disk=True)
    assert isinstance(found, FileEditToolCallContent) and found.old_text == shown
    assert not diffs_of(ToolCall("c1", "write", {"path": 1, "content": "x"}), tmp_path, on_disk=True)
    (none,) = diffs_of(ToolCall("c1", "write", {"path": "\ud800", "content": "x"}), tmp_path, on_disk=True)
    assert isinstance(none, FileEditToolCallContent) and none.old_text is None


async def test_output_that_the_editor_has_is_not_kept(tmp_path: Path) -> None:
    async def ignore(method: str, params: object) -> None:
        pass

    editor = Editor(ignore, ignore)
    editor.capabilities = ClientCapabilities(field_meta={"terminal_output": True})
    display, bash = CallDisplay(editor, "s", tmp_path), ToolCall("c1", "bash", {"command": "make"})
    await display.begin(bash)
    tracemalloc.start()
    for number in range(300):
        await display.progress(bash, f"{number:05}" * 20_000)
    kept, _ = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert kept < 1_000_000  # of 30 MB


async def test_steps_become_a_plan(connect: Connect) -> None:
    steps = [{"content": "look", "status": "completed"}, {"content": "write", "status": "in_progress"}]
    async with connect(call("todo", todos=steps), "done") as editor:
        await editor.say(await editor.start(), "plan it")
        (plan,) = [each for _, each in editor.client.updates if each.session_update == "plan"]
        assert [(each.content, each.status) for each in plan.entries] == [
            ("look", "completed"),
            ("write", "in_progress"),
        ]


async def test_cancelled_command_says_so(connect: Connect, monkeypatch: pytest.MonkeyPatch) -> None:
    began = asyncio.Event()

    async def compact(self: Conversation, focus: str = "", *, cancellation: Cancellation) -> tuple[int, int]:
        began.set()
        await until(lambda: cancellation.requested)
        raise UsageError("cancelled by the user")

    monkeypatch.setattr(Conversation, "compact", compact)
    async with connect("hello") as editor:
        session = await editor.start()
        prompt = asyncio.create_task(editor.say(session, "/compact"))
        await began.wait()
        await editor.connection.cancel(session)
        assert await prompt == "cancelled"
        assert await editor.say(session, "/cost") == "end_turn"


async def test_image_and_embedded_text_reach_the_model(connect: Connect) -> None:
    async with connect("seen") as editor:
        session = await editor.start()
        image = {"type": "image", "data": _PIXEL, "mimeType": "image/png"}
        resource = {"type": "resource", "resource": {"uri": f"file://{editor.project}/n.py", "text": "x = 1"}}
        await editor.say(session, "look at", image, resource)
        content = (await stored_prompt(editor.project, session)).content
        assert isinstance(content, tuple)
        assert any(isinstance(part, Image) for part in content)
        assert any(isinstance(part, Text) and "x = 1" in part.text for part in content)


async def test_linked_file_is_read_under_the_rules(connect: Connect) -> None:
    async with connect("seen", arguments=("--disallowedTools", "Read(secret.txt)")) as editor:
        (editor.project / "open.txt").write_text("l1\nl2\nl3\nl4\n")
        (editor.project / "secret.txt").write_text("hidden words")
        session = await editor.start()
        links = [
            {"type": "resource_link", "uri": f"file://{editor.project}/{name}", "name": name}
            for name in ("open.txt#L2:3", "secret.txt")
        ]
        await editor.say(session, "compare", *links)
        text = str((await stored_prompt(editor.project, session)).content)
        assert "l2" in text and "l4" not in text
        assert "hidden words" not in text and "secret.txt" in text


def _link(uri: str) -> ResourceContentBlock:
    return ResourceContentBlock(type="resource_link", uri=uri, name="a")


@pytest.mark.parametrize(
    "uri",
    ["https://a.example/etc/hosts", "file://a.example/etc/hosts", "zed:///etc/hosts", "file:hosts", "file:///a%00b"],
)
def test_link_to_anything_but_a_file_of_this_machine_is_not_read(uri: str) -> None:
    prompt = read_prompt([_link(uri)], Path("/w"))
    assert prompt.links == [] and prompt.text == f"[a]({uri})"


def test_links_to_files_are_few() -> None:
    links = [_link(f"file://localhost/w/{number}#L2:3") for number in range(50)]
    assert read_prompt(links, Path("/w")).links == [Mention(f"/w/{number}", 2, 3) for number in range(50)]
    with pytest.raises(RequestError):
        read_prompt([*links, links[0]], Path("/w"))


def test_line_of_a_link_with_thousands_of_digits_is_left_out() -> None:
    digits = "9" * 5_000
    links = read_prompt([_link(f"file:///w/a#L{digits}"), _link(f"file:///w/b#L1:{digits}")], Path("/w")).links
    assert links == [Mention("/w/a", 0, 0), Mention("/w/b", 0, 0)]


def test_line_of_an_edit_with_thousands_of_digits_is_left_out() -> None:
    edit = ToolCall("c", "edit", {"path": "a", "old_string": "x", "new_string": "y"})
    outcome = Completed(edit, Output(f"@@ -1 +{'9' * 5_000} @@\n a\n"))
    assert end_call("c", outcome, diffs_of(edit, Path("/w"), on_disk=False)).locations is None


@pytest.mark.parametrize(("body", "mark"), [("a", "```"), ("a ```` b ``` c", "`````"), ("`" * 400_000, "`" * 400_001)])
def test_fence_is_longer_than_all_backticks_in_it(body: str, mark: str) -> None:
    assert fence(body) == f"{mark}\n{body}\n{mark}"


async def test_embedded_file_is_not_attached_again(connect: Connect) -> None:
    async with connect("seen") as editor:
        (editor.project / "n.py").write_text("old_words = 1")
        session = await editor.start()
        resource = {"type": "resource", "resource": {"uri": f"file://{editor.project}/n.py", "text": "new_words = 1"}}
        await editor.say(session, resource, "explain")
        content = str((await stored_prompt(editor.project, session)).content)
        assert "new_words" in content and "old_words" not in content


async def test_small_model_is_not_given_a_file_of_the_editor_twice(connect: Connect) -> None:
    async with connect("seen", arguments=("--tools", "compact")) as editor:
        (editor.project / "n.py").write_text("old_words = 1")
        (editor.project / "long.txt").write_text("l1\nl2\nl3\nl4\n")
        session = await editor.start()
        resource = {"type": "resource", "resource": {"uri": f"file://{editor.project}/n.py", "text": "new_words = 1"}}
        link = {"type": "resource_link", "uri": f"file://{editor.project}/long.txt#L2:3", "name": "long.txt"}
        await editor.say(session, resource, link, "explain")
        content = str((await stored_prompt(editor.project, session)).content)
        assert "new_words" in content and "old_words" not in content
        assert "l2" in content and "l4" not in content


@pytest.mark.slow
async def test_huge_prompt_is_taken(connect: Connect) -> None:
    async with connect("long") as editor:
        session = await editor.start()
        assert await editor.say(session, "x" * 8_000_000) == "end_turn"


async def test_control_characters_never_reach_the_client(connect: Connect, project: Path) -> None:
    evil = "\x1b]52;c;ZXZpbA==\x07 \x9b2J"
    steps = call("todo", todos=[{"content": f"step {evil}", "status": "pending"}])
    replies = ({**call("bash", command="cat evil.txt"), "text": evil}, call(f"tool{evil}"), steps, evil)
    folder = project / ".callwright" / "skills" / "greet"
    folder.mkdir(parents=True)
    escaped = json.dumps(f"Says hello {evil}")
    (folder / "SKILL.md").write_text(f"---\nname: greet\ndescription: {escaped}\n---\nSay hello")
    async with connect(*replies) as editor:
        (editor.project / "evil.txt").write_text(evil)
        await editor.say(await editor.start(), f"go {evil}")
        assert {"plan", "available_commands_update"} <= set(editor.client.kinds())
        (listed,) = (await editor.connection.list_sessions(cwd=str(project))).sessions
        assert "go" in (listed.title or "") and "\x1b" not in (listed.title or "")
        for _, update in editor.client.updates:
            shown = update.model_dump(exclude={"raw_input", "raw_output"}, mode="python")
            assert "\x1b" not in str(shown).encode().decode("unicode_escape", "replace").replace("\\x1b", "")
            assert "\x9b" not in str(shown)


async def test_unusable_blocks_are_refused(connect: Connect) -> None:
    async with connect("never") as editor:
        session = await editor.start()
        for block, reason in (
            ({"type": "audio", "data": _PIXEL, "mimeType": "audio/wav"}, "audio"),
            ({"type": "image", "data": "%%%", "mimeType": "image/png"}, "base64"),
            ({"type": "image", "data": _PIXEL, "mimeType": "image/svg+xml"}, "svg"),
            ({"type": "text", "text": "  "}, "empty"),
        ):
            with pytest.raises(RequestError, match=reason) as raised:
                await editor.raw("session/prompt", {"sessionId": session, "prompt": [block]})
            assert raised.value.code == -32602
        assert "agent_message_chunk" not in editor.client.kinds()


async def test_repeated_call_ids_stay_apart(connect: Connect) -> None:
    same = {"calls": [{"id": "c1", "name": "glob", "arguments": {"pattern": "*"}}]}
    async with connect(same, same, "done") as editor:
        await editor.say(await editor.start(), "twice")
        assert list(editor.client.calls()) == ["c1", "c1#2"]
        assert editor.client.statuses() == ["completed", "completed"]


async def test_plan_tools_change_the_mode_in_the_editor(connect: Connect) -> None:
    async with connect(call("enter_plan"), "done", client=EditorClient(choose("once"))) as editor:
        await editor.say(await editor.start(), "plan")
        modes = [each.current_mode_id for _, each in editor.client.updates if hasattr(each, "current_mode_id")]
        assert modes == ["plan"]


async def test_model_failure_is_an_error_with_its_reason(connect: Connect) -> None:
    async with connect() as editor:
        session = await editor.start()
        with pytest.raises(RequestError, match="script"):
            await editor.say(session, "hello")
        with pytest.raises(RequestError, match="script"):  # the session can be used again
            await editor.say(session, "hello")


async def test_slash_commands_and_skills_are_offered(connect: Connect, project: Path) -> None:
    folder = project / ".callwright" / "skills" / "greet"
    folder.mkdir(parents=True)
    (folder / "SKILL.md").write_text("---\nname: greet\ndescription: Says hello\n---\nSay hello to $ARGUMENTS")
    async with connect("hello Ada") as editor:
        session = await editor.start()
        assert await editor.say(session, "/cost") == "end_turn"
        assert "no messages yet" in editor.client.text()
        await editor.say(session, "/greet Ada")
        (offered,) = [each for _, each in editor.client.updates if hasattr(each, "available_commands")]
        assert {"compact", "undo", "greet"} <= {each.name for each in offered.available_commands}
        assert "Say hello to Ada" in str((await stored_prompt(project, session)).content)


async def test_undo_restores_the_file(connect: Connect) -> None:
    async with connect(call("write", path="a.txt", content="new\n", overwrite=True), "done") as editor:
        (editor.project / "a.txt").write_text("old\n")
        session = await editor.start()
        await editor.say(session, "change it")
        assert (editor.project / "a.txt").read_text() == "new\n"
        await editor.say(session, "/undo")
        assert (editor.project / "a.txt").read_text() == "old\n"
        assert "restored a.txt" in editor.client.text()


@pytest.mark.slow
async def test_mcp_server_of_the_editor_is_started(connect: Connect, project: Path) -> None:
    server = Path(__file__).parents[1] / "mcp" / "servers" / "rough.py"
    async with connect(call("mcp__own__echo", text="hi"), "done") as editor:
        await editor.connection.initialize(1)
        stdio: Any = {"name": "own", "command": "python3", "args": ["-S", str(server)], "env": []}
        created = await editor.raw("session/new", {"cwd": str(project), "mcpServers": [stdio]})
        await editor.say(created["sessionId"], "call it")
        (shown,) = editor.client.calls().values()
        assert shown["title"].startswith("mcp__own__echo")
        assert len(editor.client.asked) == 1  # a server's tool asks, also if the editor named the server
        assert shown["status"] == "completed", shown
