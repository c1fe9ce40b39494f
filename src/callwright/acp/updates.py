"""What the editor is shown of calls: title, kind, files, diffs and output, live and from the record."""

import base64
import os
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, TypeAlias, cast

from acp.schema import (
    AgentMessageChunk,
    AgentPlanUpdate,
    AgentThoughtChunk,
    ContentToolCallContent,
    FileEditToolCallContent,
    ImageContentBlock,
    PlanEntry,
    TerminalToolCallContent,
    TextContentBlock,
    ToolCallLocation,
    ToolCallProgress,
    ToolCallStart,
    ToolKind,
    UserMessageChunk,
)

from callwright.core.calls import Completed, Failed, Outcome, ToolCall
from callwright.core.content import Image, Part, Text
from callwright.core.errors import shorten
from callwright.core.escaping import visible_line
from callwright.core.json import thaw
from callwright.core.messages import AssistantMessage, Message, Thinking, ToolMessage, UserMessage
from callwright.policy.tool_names import canonical
from callwright.providers.encoding import read_arguments
from callwright.system.files import read_start, unify_line_breaks
from callwright.system.paths import expand_home
from callwright.toolbox.todo import TodoItem, read_todos

Content: TypeAlias = ContentToolCallContent | FileEditToolCallContent | TerminalToolCallContent
Update: TypeAlias = (
    UserMessageChunk | AgentMessageChunk | AgentThoughtChunk | ToolCallStart | ToolCallProgress | AgentPlanUpdate
)

_KINDS: Mapping[str, ToolKind] = {
    "read": "read",
    "ls": "read",
    "readoutput": "read",
    "bashoutput": "read",
    "edit": "edit",
    "delete": "delete",
    "move": "move",
    "glob": "search",
    "grep": "search",
    "toolsearch": "search",
    "bash": "execute",
    "bashkill": "execute",
    "runcode": "execute",
    "webfetch": "fetch",
    "websearch": "fetch",
    "todo": "think",
    "agent": "think",
    "plan": "switch_mode",
}
_TITLE_FIELDS = ("command", "cmd", "path", "file_path", "source", "pattern", "query", "url", "description", "question")
_PATH_FIELDS = ("path", "file_path", "source", "destination")
_TITLE_CHARS = 120
_OUTPUT_CHARS = 40_000
_DIFF_BYTES = 512 * 1024
_HUNK = re.compile(r"^@@ -\d+(?:,\d+)? \+(\d{1,9})(?:,\d+)? @@\n((?: .*\n)*)", re.MULTILINE)
_BACKTICKS = re.compile("`+")
_FENCE_CHARS = 3
_CONTROLS = {code: f"\\x{code:02x}" for code in (*range(32), *range(127, 160)) if chr(code) not in "\t\n\r"}


def arguments_of(call: ToolCall) -> dict[str, Any]:
    """Return the arguments of a call as an object; empty if the model's text is not one."""
    found = read_arguments(call)
    return cast("dict[str, Any]", found) if isinstance(found, dict) else {}


def kind_of(name: str) -> ToolKind:
    """Return the protocol's kind of a tool."""
    return _KINDS.get(canonical(name), "other")


def title_of(call: ToolCall) -> str:
    """Return one line that describes a call: the tool, and what it works on."""
    given = arguments_of(call)
    target = next((given[name] for name in _TITLE_FIELDS if isinstance(given.get(name), str) and given[name]), "")
    name = visible_line(call.name)
    if not target:
        return name
    shown = shorten(visible_line(target), _TITLE_CHARS)
    return f"`{shown}`" if canonical(call.name) == "bash" else f"{name} {shown}"


def locations_of(call: ToolCall, cwd: Path) -> list[ToolCallLocation]:
    """Return the files a call names, as absolute paths."""
    given = arguments_of(call)
    offset = given.get("offset") if canonical(call.name) == "read" else None
    line = offset if type(offset) is int and offset > 0 else None
    named = (given[name] for name in _PATH_FIELDS if isinstance(given.get(name), str) and given[name])
    return [ToolCallLocation(path=_make_absolute(path, cwd), line=line) for path in dict.fromkeys(named)]


def _make_absolute(path: str, cwd: Path) -> str:
    if "\0" in path:
        return str(cwd)
    at_home = path == "~" or path.startswith("~/")  # as the file tools read it: ~root is a name like any other
    return os.path.normpath(cwd / (expand_home(path) if at_home else path))


def diffs_of(call: ToolCall, cwd: Path, *, on_disk: bool) -> list[Content]:
    """Return the changes of files that a call asks for.

    Args:
        call: A call of `edit` or `write`; for other tools there is none.
        cwd: The folder relative paths start from.
        on_disk: Whether the file still has the content before the call, which a diff of a whole file shows.
    """
    given = arguments_of(call)
    path = given.get("path") or given.get("file_path")
    if not isinstance(path, str) or canonical(call.name) != "edit":  # the family of `edit` and `write`
        return []
    target = _make_absolute(path, cwd)
    if isinstance(given.get("content"), str):
        old = _read_text(target) if on_disk else None
        return [FileEditToolCallContent(type="diff", path=target, old_text=old, new_text=given["content"])]
    return [
        FileEditToolCallContent(type="diff", path=target, old_text=old or None, new_text=new)
        for old, new in _replacements(given)
    ]


def _replacements(given: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    several = given.get("edits")
    edits = cast("Sequence[Any]", several) if isinstance(several, list) and several else [given]
    for each in edits:
        if not isinstance(each, dict):
            continue
        change = cast("dict[str, Any]", each)
        old, new = change.get("old_string"), change.get("new_string")
        if isinstance(old, str) and isinstance(new, str):
            yield old, new


def _read_text(path: str) -> str | None:
    """Return the text of a small file; None if there is none, or it is not text."""
    try:
        data = read_start(path, _DIFF_BYTES + 1)
        return None if data is None or len(data) > _DIFF_BYTES else unify_line_breaks(data.decode())
    except ValueError:
        return None


def announce_call(call_id: str, call: ToolCall, cwd: Path) -> ToolCallStart:
    """Return the update that shows a call which has not started."""
    return ToolCallStart(session_update="tool_call", status="pending", **_describe_call(call_id, call, cwd))


def begin_call(call_id: str, call: ToolCall, cwd: Path) -> ToolCallProgress:
    """Return the update for a call that starts now; hooks and the user may have changed its arguments."""
    return ToolCallProgress(
        session_update="tool_call_update", status="in_progress", **_describe_call(call_id, call, cwd)
    )


def _describe_call(call_id: str, call: ToolCall, cwd: Path) -> dict[str, Any]:
    return {
        "tool_call_id": call_id,
        "title": title_of(call),
        "kind": kind_of(call.name),
        "locations": locations_of(call, cwd) or None,
        "raw_input": arguments_of(call) or None,
        "content": diffs_of(call, cwd, on_disk=True) or None,
    }


def show_progress(call_id: str, output: str) -> ToolCallProgress:
    """Return the update for a command that runs, with the end of its output so far."""
    return ToolCallProgress(
        session_update="tool_call_update", tool_call_id=call_id, content=[_text_content(_fence(output))]
    )


def end_call(call_id: str, outcome: Outcome, shown: Sequence[Content] = (), *, plain: bool = False) -> ToolCallProgress:
    """Return the update for a call that has ended.

    Args:
        call_id: The id the editor knows the call by.
        outcome: How it ended.
        shown: The changes of files that were shown when it began.
        plain: Leave out the output, because a terminal shows it.
    """
    worked = isinstance(outcome, Completed)
    content: list[Content] = list(shown) if worked else []
    if not content and not plain:
        content = _output_content(outcome)
    line = _changed_line(outcome.text) if worked and shown else None
    diff = next((each for each in shown if isinstance(each, FileEditToolCallContent)), None)
    place = ToolCallLocation(path=diff.path, line=line) if diff is not None and line else None
    return ToolCallProgress(
        session_update="tool_call_update",
        tool_call_id=call_id,
        status="completed" if worked else "failed",
        content=content or None,
        locations=[place] if place is not None else None,
        raw_output=raw_output(outcome),
    )


def _changed_line(text: str) -> int | None:
    """Return the first line that a diff in the output of `edit` changes."""
    found = _HUNK.search(text)
    return int(found[1]) + found[2].count("\n") if found else None


def raw_output(outcome: Outcome) -> dict[str, Any]:
    """Return the outcome as data."""
    if isinstance(outcome, Completed):
        structured = outcome.output.structured
        return {"text": _cut(outcome.text)} | ({} if structured is None else {"structured": thaw(structured)})
    if isinstance(outcome, Failed):
        return {"error": outcome.error.code, "message": _cut(outcome.text), "started": outcome.started}
    return {"error": "interrupted", "message": outcome.text}


def _output_content(outcome: Outcome) -> list[Content]:
    if isinstance(outcome, Completed) and not isinstance(outcome.output.content, str):
        return [_part_content(part) for part in outcome.output.content]
    if isinstance(outcome, Failed) and not outcome.started:
        return [_text_content(_cut(outcome.text))]
    return [_text_content(_fence(outcome.text))] if outcome.text else []


def _part_content(part: Part) -> Content:
    if isinstance(part, Image):
        return ContentToolCallContent(type="content", content=_image_block(part))
    if isinstance(part, Text):
        return _text_content(_fence(part.text))
    return _text_content(f"[{part.media_type}, {len(part.data)} bytes]")


def _image_block(image: Image) -> ImageContentBlock:
    data = base64.b64encode(image.data).decode()
    return ImageContentBlock(type="image", data=data, mime_type=image.media_type)


def _text_content(text: str) -> ContentToolCallContent:
    return ContentToolCallContent(type="content", content=_text_block(text))


def _text_block(text: str) -> TextContentBlock:
    return TextContentBlock(type="text", text=escape_controls(text))


def _fence(text: str) -> str:
    return fence(_cut(text).rstrip("\n"))


def fence(body: str) -> str:
    """Return a text as a block of code; the editor reads Markdown, and it must not become links or headings."""
    longest = max(map(len, _BACKTICKS.findall(body)), default=0)
    mark = "`" * max(longest + 1, _FENCE_CHARS)
    return f"{mark}\n{body}\n{mark}"


def _cut(text: str) -> str:
    missing = len(text) - _OUTPUT_CHARS
    half = _OUTPUT_CHARS // 2
    return text if missing <= 0 else f"{text[:half]}\n… {missing} characters left out …\n{text[-half:]}"


def escape_controls(text: str) -> str:
    """Return a text without control characters: some clients are terminals, which would obey them."""
    return text.translate(_CONTROLS)


def message_chunk(text: str) -> AgentMessageChunk:
    """Return a piece of the agent's answer."""
    return AgentMessageChunk(session_update="agent_message_chunk", content=_text_block(text))


def thought_chunk(text: str) -> AgentThoughtChunk:
    """Return a piece of the model's reasoning, or a notice beside the answer."""
    return AgentThoughtChunk(session_update="agent_thought_chunk", content=_text_block(text))


def plan_of(items: Iterable[TodoItem]) -> AgentPlanUpdate:
    """Return the model's list of steps as a plan."""
    entries = [
        PlanEntry(content=escape_controls(item.content), priority="medium", status=item.status) for item in items
    ]
    return AgentPlanUpdate(session_update="plan", entries=entries)


def plan_in(outcome: Outcome) -> AgentPlanUpdate | None:
    """Return the plan that a call of `todo` gave; None for every other outcome."""
    if not isinstance(outcome, Completed) or canonical(outcome.call.name) != "todo":
        return None
    items = read_todos(outcome.output.structured)
    return None if items is None else plan_of(items)


class CallIds:
    """Ids of calls that are unique in a session; some models count from one in every message."""

    def __init__(self) -> None:
        self._used: dict[str, int] = {}
        self._open: dict[str, str] = {}

    def open(self, call_id: str) -> tuple[str, bool]:
        """Return the editor's id of a call that has not ended, and whether the editor has not seen it yet."""
        if call_id in self._open:
            return self._open[call_id], False
        count = self._used[call_id] = self._used.get(call_id, 0) + 1
        self._open[call_id] = call_id if count == 1 else f"{call_id}#{count}"
        return self._open[call_id], True

    def close(self, call_id: str) -> None:
        """Forget a call that has ended."""
        self._open.pop(call_id, None)

    def take_open(self) -> list[str]:
        """Return the editor's ids of calls that have not ended, and forget them."""
        found = list(self._open.values())
        self._open.clear()
        return found


def replay_message(message: Message, ids: CallIds, cwd: Path) -> Iterator[Update]:
    """Yield what the editor is shown of a message on record."""
    match message:
        case UserMessage(content):
            text = content if isinstance(content, str) else next((p.text for p in content if isinstance(p, Text)), "")
            images = (
                [] if isinstance(content, str) else [_image_block(part) for part in content if isinstance(part, Image)]
            )
            for shown in [*([_text_block(text)] if text or not images else []), *images]:
                yield UserMessageChunk(session_update="user_message_chunk", content=shown)
        case AssistantMessage(parts):
            for part in parts:
                if isinstance(part, Thinking) and part.text:
                    yield thought_chunk(part.text)
                elif isinstance(part, Text) and part.text:
                    yield message_chunk(part.text)
        case ToolMessage(outcomes):
            for outcome in outcomes:
                yield from _replay_outcome(outcome, ids, cwd)


def _replay_outcome(outcome: Completed | Failed, ids: CallIds, cwd: Path) -> Iterator[Update]:
    call_id, new = ids.open(outcome.call.id)
    shown = diffs_of(outcome.call, cwd, on_disk=False)
    if new:
        start = announce_call(call_id, outcome.call, cwd)
        yield start.model_copy(update={"content": shown or None})
    yield end_call(call_id, outcome, shown)
    ids.close(outcome.call.id)
    plan = plan_in(outcome)
    if plan is not None:
        yield plan
