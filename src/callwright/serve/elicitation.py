"""Approval questions as elicitation forms of an MCP client, and reading the user's answers."""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from typing import Any, cast

import mcp_types as types
from mcp import MCPError
from pydantic import ValidationError

from callwright.core.access import RunCommand, access_pairs
from callwright.core.calls import Answers, Question, Reply
from callwright.core.decisions import make_reply
from callwright.core.errors import ToolFailed, safe_str
from callwright.core.escaping import visible_line
from callwright.core.json import compact, replace_surrogates, thaw
from callwright.core.spec import ELICITS
from callwright.policy.base import CUT
from callwright.registry.catalog import Catalog
from callwright.serve.clients import Caller
from callwright.tool.arguments import describe_first_problem

_YES, _NO = "yes", "no"
# an explicit field, so that a client that accepts forms automatically does not approve
_FORM = {
    "type": "object",
    "properties": {"decision": {"type": "string", "enum": [_YES, _NO], "title": "Allow it?"}},
    "required": ["decision"],
}


class DirectAsker:
    """Asks a client in the middle of a call; declines where that is not possible."""

    def __init__(self, caller: Caller, catalog: Catalog) -> None:
        self.caller = caller
        self._catalog = catalog

    async def ask_user(self, questions: Sequence[Question]) -> Answers:
        if not self._reachable or not askable(self.caller, questions, self._catalog):
            return decline_all(questions)
        replies: dict[str, Reply] = {}
        for question in questions:
            result: object = types.ElicitResult(action="cancel")
            with suppress(ToolFailed):
                result = await self._send(types.ElicitRequest(params=form_of(question, self._catalog)))
            replies[question.id] = _read(question, self._catalog, result)
        return Answers(replies)

    async def ask_client(self, requests: types.InputRequests) -> types.InputResponses:
        if not self._reachable:
            raise ToolFailed("this client does not accept requests during a call")
        return {key: await self._send(request) for key, request in requests.items()}

    async def _send(self, request: types.InputRequest) -> types.InputResponse:
        try:
            return await self.caller.send(request)
        except MCPError as error:
            raise ToolFailed(f"the client did not answer {request.method}: {error.message}") from error
        except ValidationError as error:
            fault = describe_first_problem(error)
            raise ToolFailed(f"the client's answer to {request.method} is not valid: {fault}") from error

    @property
    def _reachable(self) -> bool:
        return self.caller.reachable and not self.caller.modern


def askable(caller: Caller, questions: Sequence[Question], catalog: Catalog) -> bool:
    """Whether a client can show all of these questions to its user."""
    can = caller.capabilities
    return all(can_show(can, form_of(question, catalog)) for question in questions)


def forms_of(questions: Sequence[Question], catalog: Catalog) -> types.InputRequests:
    """Return the elicitation requests for the questions, by the key of each answer."""
    keyed = keys_of(questions, catalog).items()
    return {key: types.ElicitRequest(params=_without_id(form_of(question, catalog))) for key, question in keyed}


def read_answers(questions: Sequence[Question], catalog: Catalog, responses: Mapping[str, object]) -> Answers:
    """Read the answers of a client that resumes a call; a missing answer cancels its question."""
    replies: dict[str, Reply] = {}
    for key, question in keys_of(questions, catalog).items():
        replies[question.id] = _read(question, catalog, responses.get(key))
    return Answers(replies)


def _read(question: Question, catalog: Catalog, result: object) -> Reply:
    shown = result if isinstance(result, types.ElicitResult) else types.ElicitResult(action="cancel")
    return reply_to(question, catalog, shown)


def _without_id(form: types.ElicitRequestParams) -> types.ElicitRequestParams:
    if isinstance(form, types.ElicitRequestURLParams):  # since 2026-07-28 answers are matched by key, not by id
        return types.ElicitRequestURLParams(message=form.message, url=form.url)
    return form


def can_show(capabilities: types.ClientCapabilities | None, form: types.ElicitRequestParams) -> bool:
    """Whether a client can show this form to its user."""
    can = capabilities.elicitation if capabilities is not None else None
    if can is None:
        return False
    if isinstance(form, types.ElicitRequestURLParams):
        return can.url is not None
    return can.form is not None or can.url is None  # an empty capability means forms


def form_of(question: Question, catalog: Catalog) -> types.ElicitRequestParams:
    """Build the form for a question: yes or no, a reply, a URL to visit, or the form of another server."""
    if question.kind == "auth" and question.url:
        return types.ElicitRequestURLParams(message=_message(question), url=question.url, elicitation_id=question.id)
    if question.kind == "input":
        return _input_form(question)
    asked = _forwarded_question(question, catalog)
    if asked is None:
        return types.ElicitRequestFormParams(message=_message(question), requested_schema=_FORM)
    if "url" in asked:
        url, message = str(asked["url"]), replace_surrogates(question.reason)
        return types.ElicitRequestURLParams(message=message, url=url, elicitation_id=question.id)
    fields = thaw(asked.get("fields", {}))
    return types.ElicitRequestFormParams(message=replace_surrogates(question.reason), requested_schema=fields)


def reply_to(question: Question, catalog: Catalog, result: types.ElicitResult) -> Reply:
    """Translate the user's decision."""
    if result.action != "accept":
        return make_reply(False, reason="" if result.action == "decline" else "the question was dismissed")
    if question.kind == "auth" and question.url:  # a page to visit, which has no yes or no of its own
        return make_reply(True)
    if question.kind == "input":
        return _read_input(question, result.content or {})
    asked = _forwarded_question(question, catalog)
    if asked is not None:
        return make_reply(True, arguments={**asked, "answer": dict(result.content or {})})
    # only a bare yes: a note beside it may take a part of it back
    given = dict(result.content or {})
    decision = given.pop("decision", _NO)
    said = "; ".join(safe_str(value) for value in (*([] if decision in (_YES, _NO) else [decision]), *given.values()))
    return make_reply(type(decision) is str and decision == _YES and not given, reason=said)


def keys_of(questions: Sequence[Question], catalog: Catalog) -> dict[str, Question]:
    """Return the questions by the key of their answers: the asking server's own key if it has one, else the id."""
    keyed: dict[str, Question] = {}
    for question in questions:
        asked = _forwarded_question(question, catalog) or {}
        key = str(asked.get("key") or question.id)
        keyed[question.id if key in keyed else key] = question
    return keyed


def decline_all(questions: Sequence[Question]) -> Answers:
    """Decline all questions, because this client cannot ask its user."""
    answers = Answers()
    for question in questions:
        answers.decline(
            question,
            f"{question.tool} needs the user's approval, and this MCP client cannot ask the user;"
            " allow it by a rule where the server is configured",
        )
    return answers


def _message(question: Question) -> str:
    rows = [question.summary, *(_details(question) if question.kind == "approval" else ()), question.reason]
    return replace_surrogates("\n".join(filter(None, rows)))


def _input_form(question: Question) -> types.ElicitRequestFormParams:
    """Return the form for a question of a tool: its choices with what they mean, and a text."""
    from callwright.toolbox.ask_user import choices_of, reply_form  # loaded with the first such question

    rows = [f"{visible_line(question.tool)} asks: {visible_line(question.reason)}"]
    for label, description in choices_of(question.arguments):
        rows += [f"│ {visible_line(label)}: {visible_line(description)}"] if description else []
    form = reply_form(question.arguments)
    return types.ElicitRequestFormParams(message=replace_surrogates("\n".join(rows)), requested_schema=form)


def _read_input(question: Question, filled_in: Mapping[str, Any]) -> Reply:
    """Return the reply to a question of a tool: data for the tool, which permits nothing."""
    from callwright.toolbox.ask_user import read_reply_form

    reply = read_reply_form(question.arguments, filled_in)
    return make_reply(reply is not None, arguments=reply, reason="" if reply else "the user gave no reply")


def _details(question: Question) -> Iterator[str]:
    """Yield what the summary leaves out: it cuts long texts, and names one target only."""
    cut = CUT in question.summary
    if cut:
        for name, value in question.arguments.items():
            text = value if isinstance(value, str) else compact(value)
            first, *more = text.split("\n")
            yield f"{visible_line(name)}: {visible_line(first)}"
            yield from (f"│ {visible_line(line)}" for line in more)  # a line must not pass for a row of ours
    targets = access_pairs(question.accesses)
    # of a command, the summary does not name the folder it runs in
    if cut or len(targets) > 1 or any(isinstance(each, RunCommand) for each in question.accesses):
        yield from (f"{verb} {visible_line(target)}" for verb, target in targets)
    if question.origin:
        yield "made by:"
        yield from (f"│ {visible_line(line)}" for line in question.origin.split("\n"))


def _forwarded_question(question: Question, catalog: Catalog) -> Mapping[str, Any] | None:
    """Return the arguments of a forwarded question of another server; None for our own questions."""
    tool = catalog.get(question.tool)
    if tool is None or not tool.spec.metadata.get(ELICITS):
        return None
    return cast("Mapping[str, Any]", question.arguments)
