"""What a headless run is given on stdin: context, a prompt, or messages line by line."""

import json
import os
import select
import stat
import sys
from collections.abc import Iterator
from typing import Any, cast

from callwright.app.skilled import STDIN_BEGINS
from callwright.core.errors import UsageError

_MOST_BYTES = 10 * 1024 * 1024
_FIRST_BYTE_SECONDS = 3.0


def prompt_with_stdin(prompt: str) -> str:
    """Put what was piped in after the prompt; without one it is the prompt. Never waits for a person."""
    piped = _piped(wait=not prompt)
    if not prompt:
        return piped
    return f"{prompt}{STDIN_BEGINS}{piped}\n</stdin>" if piped.strip() else prompt


def _piped(*, wait: bool) -> str:
    try:
        descriptor = sys.stdin.fileno()
        kind = os.fstat(descriptor).st_mode
    except (OSError, ValueError, AttributeError):
        return ""
    if os.isatty(descriptor):
        return ""
    quiet = stat.S_ISFIFO(kind) or stat.S_ISSOCK(kind)
    # whoever started us may have left a pipe open without ever meaning to write to it
    if quiet and not wait and not select.select([descriptor], [], [], _FIRST_BYTE_SECONDS)[0]:
        print(f"callwright: nothing came on stdin in {_FIRST_BYTE_SECONDS:g} s; going on without", file=sys.stderr)
        return ""
    data = sys.stdin.buffer.read(_MOST_BYTES + 1)
    if len(data) > _MOST_BYTES:
        raise UsageError(f"stdin has more than {_MOST_BYTES} bytes; name the file in the prompt instead")
    return data.decode("utf-8", errors="replace")


def messages_on_stdin() -> Iterator[str]:
    """The prompts of `--input-format stream-json`: one user message a line, until the input ends."""
    number = 0
    for number, line in enumerate(sys.stdin, 1):
        if line.strip():
            yield _prompt(line, number)
    if not number:
        raise UsageError("there is nothing to say: --input-format stream-json found no message on stdin")


def _prompt(line: str, number: int) -> str:
    try:
        given = json.loads(line)
        content = given["message"]["content"]
        if given["type"] == "user":
            return content if isinstance(content, str) else _text(cast("list[dict[str, Any]]", content), number)
    except (ValueError, LookupError, TypeError):
        pass
    raise UsageError(f'stdin line {number} is no user message: write {{"type": "user", "message": {{"content": "…"}}}}')


def _text(parts: list[dict[str, Any]], number: int) -> str:
    other = next((part["type"] for part in parts if part["type"] != "text"), None)
    if other is not None:
        raise UsageError(
            f"stdin line {number} holds a part of type {other!r}: only text is taken; name files with @FILE"
        )
    return "\n".join(part["text"] for part in parts)
