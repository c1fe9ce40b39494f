"""Files as the editor has them: unsaved buffers are read, and changes go through the editor."""

import asyncio
import concurrent.futures
from dataclasses import replace
from pathlib import Path
from typing import Any

from acp.exceptions import RequestError
from acp.schema import ReadTextFileResponse
from pydantic import ValidationError

from callwright.acp.call_display import Editor
from callwright.core.errors import ToolFailed
from callwright.core.escaping import visible_line
from callwright.system.atomic_write import ABSENT
from callwright.system.files import detect_encoding, digest, most_common_break, unify_line_breaks, with_break
from callwright.toolbox import FileAccess, LoadedFile

_READ_SECONDS = 10.0
_WRITE_SECONDS = 60.0
_MARK = "\ufeff"


class EditorFiles(FileAccess):
    """Loads and stores files through the editor, where it offers both.

    Paths are those that the tools have resolved and the policies have judged. Where the editor offers only one of the
    two, or does not answer, files are those on disk.

    Args:
        editor: The editor.
        session_id: The session.
        loop: The event loop of the connection; the methods here run in threads.
    """

    def __init__(self, editor: Editor, session_id: str, loop: asyncio.AbstractEventLoop) -> None:
        self._editor = editor
        self._session_id = session_id
        self._loop = loop

    @property
    def shares_buffers(self) -> bool:  # type: ignore[override] - the capabilities come with the connection
        """Whether the editor lets files be read and written through it."""
        offered = self._editor.capabilities.fs
        return offered is not None and bool(offered.read_text_file) and bool(offered.write_text_file)

    def load(self, path: Path, given: str) -> LoadedFile | None:
        """Return a file, with the content of the editor if that differs from the disk."""
        found = super().load(path, given)
        if found is None or not self.shares_buffers or detect_encoding(found.data) is None:
            return found
        text = self._read_buffer(path)
        if text is None or unify_line_breaks(text.removeprefix(_MARK)) == unify_line_breaks(found.text):
            return found
        body = with_break(unify_line_breaks(text.removeprefix(_MARK)), most_common_break(found.text))
        try:
            data = found.encoding.mark + found.encoding.encode(body)
        except UnicodeEncodeError:  # a character that the old encoding lacks
            data = body.encode()
        return replace(found, data=data, encoding=detect_encoding(data) or found.encoding, unsaved=True)

    def store(self, path: Path, given: str, data: bytes, expected: str | None) -> None:
        """Let the editor write a file, if it still has the content that the change was made for."""
        encoding = detect_encoding(data)
        if not self.shares_buffers or encoding is None:
            super().store(path, given, data, expected)
            return
        current = self.load(path, given)
        known = ABSENT if current is None else digest(current.data)
        if expected is not None and known != expected:
            raise ToolFailed(f"{given} was changed since it was read; read it again")
        path.parent.mkdir(parents=True, exist_ok=True)
        text = encoding.decode(data[len(encoding.mark) :])
        try:
            self._ask("fs/write_text_file", {"path": str(path), "content": text}, _WRITE_SECONDS)
        except (RequestError, ConnectionError, concurrent.futures.TimeoutError) as error:
            reason = visible_line(str(error))[:200] or "it did not answer"
            raise ToolFailed(
                f"the editor could not write {given}: {reason}; it may have changed, read it again"
            ) from None

    def _read_buffer(self, path: Path) -> str | None:
        """Return the text of the editor's buffer; None if it cannot be had."""
        try:
            answer = self._ask("fs/read_text_file", {"path": str(path)}, _READ_SECONDS)
            return ReadTextFileResponse.model_validate(answer).content
        except (RequestError, ConnectionError, ValidationError, concurrent.futures.TimeoutError):
            return None

    def _ask(self, method: str, params: dict[str, Any], seconds: float) -> Any:
        request = self._editor.request(method, {"sessionId": self._session_id, **params})
        return asyncio.run_coroutine_threadsafe(_await(request), self._loop).result(seconds)


async def _await(request: Any) -> Any:
    return await request
