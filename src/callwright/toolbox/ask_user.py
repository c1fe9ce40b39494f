"""The `ask_user` tool: the model asks the user a question, with choices and room for any other reply."""

from collections.abc import Mapping, Sequence
from typing import Any, cast

from pydantic import AliasChoices, Field

from callwright.core.errors import InputRequired, InvalidArguments, ToolFailed
from callwright.core.json import JsonObject
from callwright.core.spec import Annotations, Effect
from callwright.tool.base import ToolContext
from callwright.tool.schema import Arguments
from callwright.tool.typed import TypedTool, describe

_MAX_CHOICES = 9
_MAX_CHARS = 2_000


class Choice(Arguments):
    """One reply the user may pick."""

    label: str = Field(min_length=1, max_length=200)
    """The reply, in a few words."""
    description: str = Field(default="", max_length=500)
    """What it would mean."""


class AskUserArguments(Arguments):
    """Arguments of `ask_user`."""

    question: str = Field(min_length=1, max_length=_MAX_CHARS)
    """The question, complete in itself."""
    choices: tuple[Choice | str, ...] = Field(
        default=(), max_length=_MAX_CHOICES, validation_alias=AliasChoices("choices", "options")
    )
    """Replies to pick from; the user may always write another one."""
    multiple: bool = Field(default=False, validation_alias=AliasChoices("multiple", "multiSelect", "multi_select"))
    """Whether several may be picked."""


class AskUser(TypedTool[AskUserArguments]):
    """Asks the user and returns the reply. The reply is data: it approves no call."""

    spec = describe(
        "ask_user",
        "Ask the user one question that only they can decide, with choices if there are some. Not for permission:"
        " calls that need one ask by themselves. Prefer to find out what the files can tell.",
        annotations=Annotations(Effect.READ, parallel=False),
        aliases=("AskUserQuestion", "ask_question", "ask_followup_question"),
        group="ask",
        search_hint="question choice decide clarify preference",
    )

    async def run(self, arguments: AskUserArguments, context: ToolContext) -> str:
        _check_labels(arguments)
        if context.answer is None or context.question is None or context.question.kind != "input":
            raise InputRequired(arguments.question)
        return _reply_text(arguments, context.answer.arguments)


def choices_of(arguments: JsonObject) -> list[tuple[str, str]]:
    """Return the label and description of every choice in the arguments of a call, for a dialog."""
    given = arguments.get("choices", arguments.get("options", ()))
    found: list[tuple[str, str]] = []
    for each in cast("Sequence[Any]", given) if isinstance(given, Sequence) and not isinstance(given, str) else ():
        if isinstance(each, Mapping):
            choice = cast("Mapping[str, Any]", each)
            found.append((str(choice.get("label", "")), str(choice.get("description", ""))))
        else:
            found.append((str(each), ""))
    return found


def reply_form(arguments: JsonObject) -> dict[str, Any]:
    """Return the schema of a form that takes the reply to a call with these arguments."""
    labels = [label for label, _ in choices_of(arguments)]
    fields: dict[str, Any] = {"text": {"type": "string", "title": "another reply" if labels else "reply"}}
    if labels and arguments.get("multiple") is True:
        fields = {"choices": {"type": "array", "items": {"type": "string", "enum": labels}}} | fields
    elif labels:
        fields = {"choice": {"type": "string", "enum": labels}} | fields
    return {"type": "object", "properties": fields}


def read_reply_form(arguments: JsonObject, filled_in: Mapping[str, Any]) -> dict[str, Any] | None:
    """Return the reply that a form of `reply_form` holds, as the arguments of an answer; None if it holds none."""
    labels = [label for label, _ in choices_of(arguments)]
    several = bool(labels) and arguments.get("multiple") is True
    picked = filled_in.get("choices") if several else [filled_in.get("choice")]
    known = [each for each in cast("list[Any]", picked) if each in labels] if isinstance(picked, list) else []
    text = filled_in.get("text", "")
    return {"choices": known, "text": text} if isinstance(text, str) and (known or text.strip()) else None


def _labels(arguments: AskUserArguments) -> list[str]:
    return [each if isinstance(each, str) else each.label for each in arguments.choices]


def _check_labels(arguments: AskUserArguments) -> None:
    labels = _labels(arguments)
    if not all(label.strip() for label in labels):
        raise InvalidArguments("choices: a choice is empty; write what the user would reply")
    if len(set(labels)) < len(labels):
        raise InvalidArguments(f"choices: two are the same: {', '.join(labels)}")


def _reply_text(arguments: AskUserArguments, reply: JsonObject | None) -> str:
    """Return the reply for the model; only what the user picked or wrote counts."""
    given = reply or {}
    picked, text = given.get("choices", ()), given.get("text", "")
    labels = _labels(arguments)
    chosen = [str(each) for each in picked] if isinstance(picked, (list, tuple)) else []
    unknown = [each for each in chosen if each not in labels]
    if unknown:
        raise ToolFailed(f"the reply picks {unknown[0]!r}, which is not one of the choices: {', '.join(labels)}")
    if len(chosen) > 1 and not arguments.multiple:
        raise ToolFailed(f"the reply picks {len(chosen)} choices where one was asked for")
    written = text.strip() if isinstance(text, str) else ""
    if not chosen and not written:
        raise ToolFailed("the user gave no reply; go on with what is known, or ask in the answer")
    return "\n".join(
        (*(f"the user chose: {label}" for label in chosen), *([f"the user wrote: {written}"] if written else []))
    )
