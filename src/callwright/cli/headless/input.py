"""What a headless run reads: piped text, messages in stream-json, and `--answers` to pending questions."""

import json
import os
import re
import select
import stat
import sys
from base64 import b64decode
from collections.abc import Sequence
from typing import Any, cast

from callwright.app.prompts import UserPrompt
from callwright.app.questions import read_input
from callwright.cli.render.text import print_notice
from callwright.core.calls import Answers, Question, Reply
from callwright.core.content import File, Image
from callwright.core.decisions import make_reply
from callwright.core.errors import UsageError
from callwright.core.json import DuplicateKey, parse_strictly, refuse_constant
from callwright.skills import Skills

_MOST_BYTES = 10 * 1024 * 1024
_FIRST_BYTE_SECONDS = 3.0
_NOT_GIVEN = object()
_SKILL_CALL = re.compile(r"\s*(/[a-z0-9][\w:-]*)(?=\s|$)", re.IGNORECASE)


def read_answers(text: str, questions: Sequence[Question]) -> Answers:
    """Parse the value of `--answers`.

    Args:
        text: `allow`, `deny`, or a JSON object by call id whose values are "allow", "deny", {"deny": reason} or
            {"allow": arguments}; for a question of the model {"reply": text or list of choices}.
        questions: The questions that are pending.

    Raises:
        UsageError: The value is malformed, or names a call that is not pending.
    """
    choices = {"*": text} if text in ("allow", "deny") else _parse_object(text)
    waiting = [question.call_id for question in questions]
    unknown = choices.keys() - {"*", *waiting, *(question.id for question in questions)}
    if waiting and (unknown or not choices):
        # a mistake, not a decline of all; beside "*": "allow", a misspelt id would let the call run that it denies
        names = ", ".join(key for key in choices if key in unknown)
        raise UsageError(f"--answers names {names or 'no call'}; pending calls: {', '.join(waiting)}")
    twice = next((call_id for call_id in waiting if waiting.count(call_id) > 1 and call_id in choices), None)
    if twice is not None:
        raise UsageError(f"--answers: {len(waiting)} questions are about {twice}; name each by the question's own id")
    replies: dict[str, Reply] = {}
    for question in questions:
        # the most exact key wins: question, then call, then "*"
        choice = choices.get(question.id, choices.get(question.call_id, choices.get("*", _NOT_GIVEN)))
        if choice is not _NOT_GIVEN:
            input_asked = question.kind == "input"
            replies[question.id] = _read_reply(question, choice) if input_asked else _read_choice(choice)
    return Answers(replies)


def _read_choice(choice: Any) -> Reply:
    match choice:
        case "allow":
            return make_reply(True)
        case {"allow": arguments, **more} if isinstance(arguments, dict) and not more:
            return make_reply(True, arguments=cast("dict[str, Any]", arguments))
        case "deny":
            return make_reply(False)
        case {"deny": str() as reason, **more} if not more:
            return make_reply(False, reason=reason)
        case _:
            raise UsageError(f"--answers: expected allow or deny, got {choice!r}")


def _read_reply(question: Question, choice: Any) -> Reply:
    """Parse the reply to a question of the model; an approval is not a reply."""
    match choice:
        case {"reply": str() as text, **more} if not more and text.strip():
            reply = read_input(text, question)
            if isinstance(reply, str):
                raise UsageError(f"--answers: {question.call_id}: {reply}")
            return reply
        case {"reply": [*picked], **more} if not more and picked and all(isinstance(each, str) for each in picked):
            return make_reply(True, arguments={"choices": picked, "text": ""})
        case "deny" | {"deny": str()}:
            return _read_choice(choice)
        case _:
            raise UsageError(
                f"--answers: call {question.call_id} asks for a reply ({question.reason}); write"
                f' {{"{question.call_id}": {{"reply": "…"}}}}, got {choice!r}'
            )


def _parse_object(text: str) -> dict[str, Any]:
    try:
        content = parse_strictly(text)
    except DuplicateKey as error:
        raise UsageError(f"--answers: {error.key!r} is given twice") from None
    except ValueError as error:
        raise UsageError(f"--answers: expected allow, deny or JSON, got {text!r}: {error}") from None
    except RecursionError:
        raise UsageError("--answers: the JSON is nested too deeply") from None
    if not isinstance(content, dict):
        raise UsageError(f"--answers: expected an object by call id, got {content!r}")
    return cast("dict[str, Any]", content)


def prompt_with_stdin(prompt: str) -> UserPrompt:
    """Combine the prompt with piped text; without a prompt, the piped text is the prompt.

    Never waits for a user to type.
    """
    piped = _read_piped(wait=not prompt)
    if not prompt:
        return UserPrompt(piped)
    return UserPrompt(prompt, stdin=piped if piped.strip() else "")


def check_skill_call(prompt: str, skills: Skills) -> None:
    """Refuse a prompt that starts with `/name` where users can call no such skill; the path of a file is text.

    Raises:
        UsageError: There is no such skill.
    """
    typed = _SKILL_CALL.match(prompt)
    if typed is None or skills.parse_slash(prompt) is not None or os.path.exists(typed[1]):  # noqa: PTH110 - false for a name that is too long
        return
    near = [name for name in skills.nearest(typed[1]) if (skill := skills.get(name)) and skill.user_invocable]
    advice = f"did you mean /{near[0]}?" if near else "callwright skills list shows them."
    raise UsageError(f"there is no skill {typed[1]}; {advice} Commands such as /cost are for the terminal only")


def _read_piped(*, wait: bool) -> str:
    try:
        descriptor = sys.stdin.fileno()
        kind = os.fstat(descriptor).st_mode
    except (OSError, ValueError, AttributeError):
        return ""
    if os.isatty(descriptor):
        return ""
    may_stay_silent = stat.S_ISFIFO(kind) or stat.S_ISSOCK(kind)
    # the parent process may hold a pipe open without ever writing to it, as CI runners do
    if may_stay_silent and not wait and not select.select([descriptor], [], [], _FIRST_BYTE_SECONDS)[0]:
        print_notice(f"no input on stdin within {_FIRST_BYTE_SECONDS:g} s; continuing without")
        return ""
    # one byte more than allowed tells a full read from a cut one
    data = sys.stdin.buffer.read(_MOST_BYTES + 1)
    if len(data) > _MOST_BYTES:
        raise UsageError(f"stdin has more than {_MOST_BYTES} bytes; name a file in the prompt instead")
    return data.decode("utf-8", errors="replace")


def parse_user_message(line: str, number: int) -> UserPrompt:
    """Parse a line of `--input-format stream-json`: one user message, with text, images and documents.

    Raises:
        UsageError: The line is not a user message, or has a part that is not supported.
    """
    reason = ""
    try:
        message = json.loads(line, parse_constant=refuse_constant)
        content = message["message"]["content"]
        if message["type"] == "user":
            verbatim = message.get("client_composed") is True
            parts = [{"type": "text", "text": content}] if isinstance(content, str) else cast("list[Any]", content)
            text = "\n".join(part["text"] for part in parts if part["type"] == "text")
            attached = tuple(_media(part, number) for part in parts if part["type"] != "text")
            if not text.strip() and not attached:  # as -p refuses it: models do too, with every later prompt
                raise UsageError(f"stdin line {number} is an empty message; write its text as content")
            return UserPrompt(text, attachments=attached, verbatim=verbatim)
    except ValueError as error:
        reason = f" ({error})"
    except (LookupError, TypeError, RecursionError):
        pass
    raise UsageError(
        f'stdin line {number} is not a user message{reason}: write {{"type": "user", "message": {{"content": "…"}}}}'
    )


def _media(part: dict[str, Any], number: int) -> Image | File:
    source = part.get("source")
    match part.get("type"), source:
        case "image", {"type": "base64", "media_type": str(kind), "data": str(data)}:
            return Image(b64decode(data, validate=True), kind)
        case "document", {"type": "base64", "media_type": str(kind), "data": str(data)}:
            return File(b64decode(data, validate=True), kind)
        case kind, _:
            raise UsageError(
                f"stdin line {number} has a part of type {kind!r} that is not supported: send text, or images and"
                " documents as base64, or name files with @FILE"
            )
