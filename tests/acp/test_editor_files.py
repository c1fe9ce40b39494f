"""The editor's buffers: unsaved text is read, edits go through the editor, under the same permissions."""

import asyncio
from pathlib import Path
from typing import Any

import pytest
from acp.schema import ClientCapabilities, FileSystemCapabilities
from tests.acp.conftest import Connect
from tests.acp.editor import EditorClient, call, choose
from tests.waiting import LONG_SECONDS

from callwright.acp.editor import Editor, EditorFiles

_BOTH = ClientCapabilities(fs=FileSystemCapabilities(read_text_file=True, write_text_file=True))
_WRITE_ONLY = ClientCapabilities(fs=FileSystemCapabilities(read_text_file=False, write_text_file=True))
_READ_ONLY = ClientCapabilities(fs=FileSystemCapabilities(read_text_file=True, write_text_file=False))


def outputs(client: EditorClient) -> list[Any]:
    return [shown["raw_output"] for shown in client.calls().values()]


async def test_unsaved_text_is_read_and_edited(connect: Connect, project: Path) -> None:
    edit = call("edit", path="a.py", old_string="typed = 1", new_string="typed = 2")
    async with connect(call("read", path="a.py"), edit, call("read", path="a.py"), "done") as editor:
        file = project / "a.py"
        file.write_bytes(b"saved = 1\r\n")
        editor.client.files[str(file)] = "saved = 1\ntyped = 1\n"
        await editor.say(await editor.start(_BOTH), "go")
        first, _, last = outputs(editor.client)
        assert "typed = 1" in first["text"] and "typed = 2" in last["text"]
        assert editor.client.written == {str(file): "saved = 1\r\ntyped = 2\r\n"}
        assert len(editor.client.asked) == 1


async def test_new_file_is_written_by_the_editor(connect: Connect, project: Path) -> None:
    async with connect(call("write", path="new/b.txt", content="hi\n"), "done") as editor:
        await editor.say(await editor.start(_BOTH), "go")
        assert editor.client.written == {str(project / "new" / "b.txt"): "hi\n"}


async def test_declined_write_never_reaches_the_editor(connect: Connect, project: Path) -> None:
    async with connect(
        call("write", path="b.txt", content="hi\n"), "done", client=EditorClient(choose("reject"))
    ) as editor:
        await editor.say(await editor.start(_BOTH), "go")
        assert editor.client.written == {}
        assert not (project / "b.txt").exists()


async def test_denied_read_never_reaches_the_editor(connect: Connect, project: Path) -> None:
    arguments = ("--disallowedTools", "Read(secret.txt)")
    async with connect(call("read", path="secret.txt"), "done", arguments=arguments) as editor:
        (project / "secret.txt").write_text("on disk")
        editor.client.files[str(project / "secret.txt")] = "in the buffer"
        await editor.say(await editor.start(_BOTH), "go")
        assert "buffer" not in str(outputs(editor.client))


@pytest.mark.parametrize("capabilities", [None, _READ_ONLY, _WRITE_ONLY], ids=["none", "read-only", "write-only"])
async def test_without_both_methods_the_disk_counts(
    connect: Connect, project: Path, capabilities: ClientCapabilities | None
) -> None:
    edit = call("edit", path="a.txt", old_string="disk", new_string="DISK")
    async with connect(call("read", path="a.txt"), edit, "done") as editor:
        (project / "a.txt").write_text("on disk\n")
        editor.client.files[str(project / "a.txt")] = "in the buffer\n"
        await editor.say(await editor.start(capabilities), "go")
        assert (project / "a.txt").read_text() == "on DISK\n"
        assert editor.client.written == {}


async def test_buffer_that_changed_since_it_was_read_is_kept(connect: Connect, project: Path) -> None:
    edit = call("edit", path="a.txt", old_string="one", new_string="1")
    file = project / "a.txt"

    class Typing(EditorClient):
        reads = 0

        async def read_text_file(self, session_id: str, path: str, **rest: Any) -> Any:
            self.reads += 1
            return {"content": f"one, typed {min(self.reads, 3)}\n"}

    client = Typing()
    async with connect(call("read", path="a.txt"), edit, "done", client=client) as editor:
        file.write_text("one\n")
        await editor.say(await editor.start(_BOTH), "go")
        assert client.written == {}
        assert "changed since it was read" in outputs(client)[1]["message"]


async def test_buffer_that_changes_at_any_moment_before_the_write_is_kept(connect: Connect, project: Path) -> None:
    class Typing(EditorClient):
        reads = 0

        async def read_text_file(self, session_id: str, path: str, **rest: Any) -> Any:
            self.reads += 1
            return {"content": "one\n" if self.reads < changed_at else "one, typed\n"}

    kept, changed_at = 0, 2
    while changed_at < 20:
        edit, client = call("edit", path="a.txt", old_string="one", new_string="1"), Typing()
        (project / "a.txt").write_text("one\n")
        async with connect(call("read", path="a.txt"), edit, "done", client=client) as editor:
            await editor.say(await editor.start(_BOTH), "go")
        if client.reads < changed_at:  # it was written before
            assert client.written == {str(project / "a.txt"): "1\n"}
            break
        assert client.written == {}, changed_at
        kept, changed_at = kept + 1, changed_at + 1
    assert kept and changed_at < 20


async def test_editor_that_fails_to_write_fails_the_call(connect: Connect, project: Path) -> None:
    class Broken(EditorClient):
        async def write_text_file(self, session_id: str, path: str, content: str, **rest: Any) -> None:
            raise OSError("disk full")

    async with connect(call("write", path="b.txt", content="hi\n"), "done", client=Broken()) as editor:
        await editor.say(await editor.start(_BOTH), "go")
        assert editor.client.statuses() == ["failed"]
        assert "could not write" in outputs(editor.client)[0]["message"]


async def test_undo_takes_an_edit_of_the_editor_back(connect: Connect, project: Path) -> None:
    edit = call("edit", path="a.txt", old_string="one", new_string="1")
    async with connect(call("read", path="a.txt"), edit, "done") as editor:
        (project / "a.txt").write_text("one\n")
        session = await editor.start(_BOTH)
        await editor.say(session, "go")
        assert (project / "a.txt").read_text() == "1\n"
        await editor.say(session, "/undo")
        assert (project / "a.txt").read_text() == "one\n"


async def test_file_that_appears_in_the_meantime_is_kept(connect: Connect, project: Path) -> None:
    def appear(options: Any) -> Any:
        (project / "b.txt").write_text("mine\n")
        return choose("once")(options)

    client = EditorClient(appear)
    async with connect(call("write", path="b.txt", content="hi\n"), "done", client=client) as editor:
        await editor.say(await editor.start(_BOTH), "go")
        assert client.statuses() == ["failed"] and client.written == {}
        assert (project / "b.txt").read_text() == "mine\n"


async def test_bytes_that_are_no_text_do_not_go_through_the_editor(connect: Connect, project: Path) -> None:
    edit = call("edit", path="a.txt", old_string="one", new_string="1")
    async with connect(call("read", path="a.txt"), edit, "done") as editor:
        file = project / "a.txt"
        file.write_bytes(b"one\x00\xff\xfe\x81")
        editor.client.files[str(file)] = "one, typed\n"
        await editor.say(await editor.start(_BOTH), "go")
        assert editor.client.written == {} and "typed" not in str(outputs(editor.client))


async def test_buffer_with_a_character_that_the_file_cannot_hold_is_kept_whole(connect: Connect, project: Path) -> None:
    edit = call("edit", path="a.txt", old_string="one", new_string="1")
    async with connect(call("read", path="a.txt"), edit, "done") as editor:
        file = project / "a.txt"
        file.write_bytes("one caf\xe9\n".encode("latin-1"))
        editor.client.files[str(file)] = "one caf\xe9 \u4e2d\n"
        await editor.say(await editor.start(_BOTH), "go")
        assert editor.client.written == {str(file): "1 caf\xe9 \u4e2d\n"}


async def test_request_that_is_not_answered_is_given_up(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    given_up = asyncio.Event()

    async def never_answer(method: str, params: object) -> None:
        try:
            await asyncio.Event().wait()
        finally:
            given_up.set()

    monkeypatch.setattr("callwright.acp.editor._READ_SECONDS", 0.05)
    file = tmp_path / "a.txt"
    file.write_text("on disk\n")
    editor = Editor(never_answer, never_answer)
    editor.capabilities = _BOTH
    found = await asyncio.to_thread(EditorFiles(editor, "s", asyncio.get_running_loop()).load, file, "a.txt")
    assert found is not None and found.text == "on disk\n"
    await asyncio.wait_for(given_up.wait(), LONG_SECONDS)
