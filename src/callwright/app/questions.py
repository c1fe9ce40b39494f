"""Open questions of a session: what each would do, for whatever place shows it, and the replies that places send."""

import re
import unicodedata
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, cast

from callwright.core.access import RunCommand, access_pairs
from callwright.core.calls import Decline, Question, Reply
from callwright.core.decisions import make_reply
from callwright.core.errors import UsageError
from callwright.core.escaping import latin_form, looks_latin, visible_line
from callwright.core.json import JsonObject, thaw
from callwright.hooks.shell.compat import elicitation_server
from callwright.policy.grants import can_last, propose_for
from callwright.registry import Toolset
from callwright.sessions.base import SessionStore
from callwright.sessions.records import Asked, Rewound, count_settled_records, follow_rewinds
from callwright.tool.base import PreviewTool, Tool
from callwright.toolbox.ask_user import choices_of

_LINE_CHARS = 160
_MOST_EXACT = (1 << 53) - 1
"""The largest whole number that JavaScript can tell from its neighbours."""
_PLAIN_FIELDS = ("kind", "summary", "reason", "source", "url", "origin", "within", "running", "expires_at")
_REPLY_FIELDS = frozenset({"approved", "scope", "arguments", "reason"})
_WORD = re.compile(r"[^\W\d_]+")


async def find_last_questions(store: SessionStore, session_id: str) -> tuple[Question, ...]:
    """Return the last questions of the open turn of a session; empty if it is not paused."""
    stored = await store.read(session_id)
    records = [stored[at] for at in follow_rewinds(stored) if not isinstance(stored[at], Rewound)]
    asked = [record for record in records[count_settled_records(records) :] if isinstance(record, Asked)]
    return asked[-1].questions if asked else ()


def question_fields(
    question: Question, session_id: str, toolset: Toolset, asked_at: float = 0.0, *, preview: bool = True
) -> dict[str, Any]:
    """Return everything a place needs to show a question, as JSON. Texts are not escaped.

    Args:
        question: The question.
        session_id: Its session.
        toolset: The tools, for a preview of the change.
        asked_at: When it was asked; Unix time.
        preview: Whether to read the file that it would change and show the difference.
    """
    tool = toolset.snapshot().get(question.tool)
    editable = question.kind == "approval" and not question.running
    proposal = propose_for(question) if editable else None
    rules = () if proposal is None else proposal.rules
    deciding = [line for each in question.accesses if isinstance(each, RunCommand) for line in deciding_commands(each)]
    server = "" if tool is None else elicitation_server(tool.spec)
    choices = choices_of(question.arguments) if question.kind == "input" else ()
    arguments = thaw(question.arguments)
    exact = _write_long_numbers(arguments)
    return {
        "id": question.id,
        "session": session_id,
        "call_id": question.call_id,
        "tool": question.tool,
        "arguments": exact,
        **{name: getattr(question, name) for name in _PLAIN_FIELDS},
        "accesses": [{"verb": verb, "target": target} for verb, target in access_pairs(question.accesses)],
        "deciding": deciding,
        "warnings": list(look_alikes(question)),
        "preview": preview_fields(tool, question.arguments) if preview else None,
        "asked_at": asked_at,
        "scopes": ["once", *(["session"] if can_last(question) else []), *(["always"] if rules else [])],
        "editable": editable and exact == arguments,  # a number that came back as a text would be another argument
        "always": list(rules),
        "always_refusal": "" if proposal is None else proposal.refusal,
        "choices": [{"label": label, "description": what} for label, what in choices],
        "multiple": bool(question.arguments.get("multiple")) and question.kind == "input",
        **({"kind": "form", "reason": str(question.arguments.get("message", ""))} if server else {}),
        "form": arguments.get("fields") if server else None,
        "server": server,
    }


def _write_long_numbers(value: Any) -> Any:
    """Return JSON with texts for whole numbers that a browser would round: a card must not show another number."""
    match value:
        case dict():
            return {name: _write_long_numbers(item) for name, item in cast("dict[str, Any]", value).items()}
        case list():
            return [_write_long_numbers(item) for item in cast("list[Any]", value)]
        case int() if abs(value) > _MOST_EXACT:
            return str(value)
        case _:
            return value


def preview_fields(tool: Tool | None, arguments: JsonObject) -> dict[str, Any] | None:
    """Return what a call would change, as JSON; None if its tool cannot tell."""
    preview = cast(PreviewTool, tool).preview(arguments) if hasattr(tool, "preview") else None
    if preview is None:
        return None
    rows = [
        {"mark": row.mark or "@", "old": row.old or None, "new": row.new or None, "text": row.text}
        for row in preview.rows
    ]
    return {"kind": "diff", "path": preview.path, "rows": rows, "shown": sorted(preview.shown)}


def read_reply(question: Question, given: Mapping[str, Any], toolset: Toolset, by: str) -> Reply:
    """Return the reply that another place sends to a question that it has shown.

    Args:
        question: The question.
        given: `approved`, and perhaps `scope`, `arguments` and `reason`. Only the value True approves.
        toolset: The tools: the form of an MCP server is filled in by other arguments.
        by: The place.

    Raises:
        UsageError: A part of it does not fit the question, which stays open.
    """
    unknown = given.keys() - _REPLY_FIELDS
    if unknown or type(given.get("approved")) is not bool:
        raise UsageError(f"expected approved, scope, arguments and reason in a reply, got {', '.join(given) or 'none'}")
    arguments, scope, reason = given.get("arguments"), given.get("scope", "once"), given.get("reason", "")
    if not isinstance(reason, str) or not isinstance(scope, str) or not isinstance(arguments, (dict, type(None))):
        raise UsageError("expected texts as scope and reason, and an object or null as arguments")
    if given["approved"] is not True:
        return make_reply(False, reason=reason, by=by)
    _check_scope(question, scope)
    arguments = cast("dict[str, Any] | None", arguments)
    tool = toolset.snapshot().get(question.tool)
    if tool is not None and elicitation_server(tool.spec):
        arguments = _fill_form(question, arguments)
    elif question.kind == "input":
        _check_input(arguments)
    elif arguments is not None and (question.kind != "approval" or question.running):
        raise UsageError("the arguments of this call cannot be changed; decline it instead")
    reply = make_reply(True, arguments=arguments, scope=scope, by=by)
    if isinstance(reply, Decline):  # not what the user chose: the question stays open
        raise UsageError(reply.reason)
    return reply


def _check_scope(question: Question, scope: str) -> None:
    offered = ("once", "session", "always") if can_last(question) else ("once",)
    if scope not in offered:
        raise UsageError(f"expected the scope {' or '.join(offered)}, got {scope!r}")
    if scope == "always" and not propose_for(question).rules:
        raise UsageError("always is not offered: no narrow rule matches this call; session allows it for the session")


def _check_input(arguments: dict[str, Any] | None) -> None:
    """Check the reply to a question of the model: choices and text."""
    match arguments:
        case {"choices": [*choices], "text": str(), **more} if not more:
            if all(isinstance(each, str) for each in choices):
                return
        case _:
            pass
    raise UsageError('expected {"choices": […], "text": "…"} as the reply')


def _fill_form(question: Question, arguments: dict[str, Any] | None) -> dict[str, Any]:
    """Return the arguments of a server's form with the values that were filled in."""
    match arguments:
        case {"answer": dict(), **more} if not more:
            return {**question.arguments, "answer": arguments["answer"]}
        case None if question.arguments.get("url"):
            return {**question.arguments, "answer": {}}
        case _:
            raise UsageError('expected {"answer": {…}} with the fields of the form as the reply')


def read_input(text: str, question: Question) -> Reply | str:
    """Parse the reply to a question of the model; return a help text if it says nothing.

    The reply is data for the model: whatever it says, it approves no call.
    """
    labels = [label for label, _ in choices_of(question.arguments)]
    typed = text.strip()
    if not typed:
        return "type a reply, or Esc to stop"
    if typed in labels:
        return make_reply(True, arguments={"choices": [typed], "text": ""})
    numbers = [part.strip() for part in typed.split(",")]
    if labels and all(part.isascii() and part.isdigit() for part in numbers):
        picked = list(dict.fromkeys(map(int, numbers)))
        if not all(1 <= number <= len(labels) for number in picked):
            return f"there are {len(labels)} choices; type a number from 1 to {len(labels)}, or a reply in words"
        if len(picked) > 1 and not question.arguments.get("multiple"):
            return "one choice only, please"
        return make_reply(True, arguments={"choices": [labels[number - 1] for number in picked], "text": ""})
    return make_reply(True, arguments={"choices": [], "text": typed})


def deciding_commands(access: RunCommand) -> list[str]:
    """Return the commands of a line that do more than read; the whole line if it cannot be taken apart."""
    from callwright.shell import analyze  # loaded with the first question about a command
    from callwright.shell.plan import Verdict

    plan = analyze(access.line, access.cwd)
    found = [command.text for command in plan.commands if command.verdict is not Verdict.READ_ONLY]
    if plan.problem or not found:
        return [access.line]
    lines = [line for line in access.line.split("\n") if len(line) <= _LINE_CHARS]
    # the whole line around a part, such as `eval` around its argument
    return [line for text in found for line in [each for each in lines if text in each] or [text]]


def look_alikes(question: Question) -> Iterator[str]:
    """Warn of words whose letters are not the Latin ones they look like, in a mix of alphabets or in one other."""
    texts = [question.tool, question.url, *_strings(question.arguments), *_strings(map(str, question.accesses))]
    found = dict[str, str]()
    for text in texts:
        if not text.isascii():
            found |= _suspicious_words(_WORD.findall(text))
    for word, fault in found.items():
        foreign = [character for character in word if _alphabet(character) not in ("", "LATIN")]
        named = ", ".join(f"U+{ord(character):04X} {unicodedata.name(character, '')}" for character in foreign[:3])
        yield f"! {visible_line(word)} {fault}: {named}"


def _suspicious_words(words: Sequence[str]) -> dict[str, str]:
    """Return the words of one text that are not written in the letters they seem to be, with what is wrong."""
    found = dict[str, str]()
    # a sentence in another language has words of one letter; on its own, such a word may pass for an option
    prose = any(not word.isascii() and not looks_latin(word) and len(word) > 1 for word in words)
    for word in words:
        alphabets = {_alphabet(character) for character in word} - {""}
        if len(alphabets) > 1 and "LATIN" in alphabets:
            found[word] = "mixes alphabets"
        elif looks_latin(word) and not (prose and len(word) == 1):
            found[word] = f"looks like {latin_form(word)}, but has no Latin letter"
    return found


def _alphabet(character: str) -> str:
    name = unicodedata.name(character, "")
    return "LATIN" if character.isascii() else name.partition(" ")[0]


def _strings(value: object) -> Iterator[str]:
    match value:
        case str():
            yield value
        case Mapping():
            for name, item in cast("Mapping[str, object]", value).items():
                yield name
                yield from _strings(item)
        case bytes() | int() | float() | None:
            pass
        case Iterable():
            for item in cast("Iterable[object]", value):
                yield from _strings(item)
        case _:
            pass
