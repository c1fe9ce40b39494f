"""Questions as forms that an MCP client shows to its person, and what the person made of them."""

from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import Any, cast

import mcp_types as types
from mcp import MCPError

from callwright.core.calls import Answers, Approve, Decline, Question, Reply
from callwright.core.errors import ToolFailed
from callwright.core.json import thaw
from callwright.core.spec import ELICITS
from callwright.registry.catalog import Catalog
from callwright.serve.clients import Caller

_YES, _NO = "yes", "no"
# a field of its own, so that a client that accepts forms by itself has not said yes
_FORM = {
    "type": "object",
    "properties": {"decision": {"type": "string", "enum": [_YES, _NO], "title": "Allow it?"}},
    "required": ["decision"],
}


class Directly:
    """Asks a client in the middle of a call, where it can be asked then; else the answer is no."""

    def __init__(self, caller: Caller, catalog: Catalog) -> None:
        self._caller = caller
        self._catalog = catalog

    async def people(self, questions: Sequence[Question]) -> Answers:
        if not self._reachable or not askable(self._caller, questions, self._catalog):
            return declined(questions)
        replies: dict[str, Reply] = {}
        for question in questions:
            result: object = types.ElicitResult(action="cancel")
            with suppress(MCPError):
                result = await self._caller.send(types.ElicitRequest(params=form_of(question, self._catalog)))
            replies[question.id] = _read(question, self._catalog, result)
        return Answers(replies)

    async def client(self, requests: types.InputRequests) -> types.InputResponses:
        if not self._reachable:
            raise ToolFailed("this client cannot be asked anything during a call")
        return {key: await self._caller.send(request) for key, request in requests.items()}

    @property
    def _reachable(self) -> bool:
        return self._caller.reachable and not self._caller.modern


def askable(caller: Caller, questions: Sequence[Question], catalog: Catalog) -> bool:
    """Whether a client is able to show all of these to somebody."""
    can = caller.capabilities
    return all(can_show(can, form_of(question, catalog)) for question in questions)


def forms_of(questions: Sequence[Question], catalog: Catalog) -> types.InputRequests:
    """The questions as a client is answered with them, by the word it answers each by."""
    keyed = keys_of(questions, catalog).items()
    return {key: types.ElicitRequest(params=_without_id(form_of(question, catalog))) for key, question in keyed}


def read_answers(questions: Sequence[Question], catalog: Catalog, responses: Mapping[str, object]) -> Answers:
    """What a client that came back says; what it does not speak of is dismissed."""
    replies: dict[str, Reply] = {}
    for key, question in keys_of(questions, catalog).items():
        replies[question.id] = _read(question, catalog, responses.get(key))
    return Answers(replies)


def _read(question: Question, catalog: Catalog, result: object) -> Reply:
    shown = result if isinstance(result, types.ElicitResult) else types.ElicitResult(action="cancel")
    return reply_to(question, catalog, shown)


def _without_id(form: types.ElicitRequestParams) -> types.ElicitRequestParams:
    if isinstance(form, types.ElicitRequestURLParams):
        return types.ElicitRequestURLParams(message=form.message, url=form.url)
    return form


def can_show(capabilities: types.ClientCapabilities | None, form: types.ElicitRequestParams) -> bool:
    """Whether a client is able to show this to somebody."""
    can = capabilities.elicitation if capabilities is not None else None
    if can is None:
        return False
    if isinstance(form, types.ElicitRequestURLParams):
        return can.url is not None
    return can.form is not None or can.url is None


def form_of(question: Question, catalog: Catalog) -> types.ElicitRequestParams:
    """The form for a question: yes or no, an address to visit, or another server's own form passed on."""
    if question.kind == "auth" and question.url:
        return types.ElicitRequestURLParams(message=_words(question), url=question.url, elicitation_id=question.id)
    asked = _passed_on(question, catalog)
    if asked is None:
        return types.ElicitRequestFormParams(message=_words(question), requested_schema=_FORM)
    if "url" in asked:
        url, message = str(asked["url"]), question.reason
        return types.ElicitRequestURLParams(message=message, url=url, elicitation_id=question.id)
    return types.ElicitRequestFormParams(message=question.reason, requested_schema=thaw(asked.get("fields", {})))


def reply_to(question: Question, catalog: Catalog, result: types.ElicitResult) -> Reply:
    """What the person decided."""
    if result.action != "accept":
        return Decline("" if result.action == "decline" else "the question was dismissed")
    if question.kind == "auth":
        return Approve()
    asked = _passed_on(question, catalog)
    if asked is not None:
        return Approve({**asked, "answer": dict(result.content or {})})
    return Approve() if (result.content or {}).get("decision") == _YES else Decline()


def keys_of(questions: Sequence[Question], catalog: Catalog) -> dict[str, Question]:
    """Each question under the word a client answers it by: the asking server's own where there is one, else its id."""
    keyed: dict[str, Question] = {}
    for question in questions:
        asked = _passed_on(question, catalog) or {}
        key = str(asked.get("key") or question.id)
        keyed[question.id if key in keyed else key] = question
    return keyed


def declined(questions: Sequence[Question]) -> Answers:
    """No to everything, because this client has no way to ask anybody."""
    answers = Answers()
    for question in questions:
        answers.decline(
            question,
            f"{question.tool} needs a person's approval, and this MCP client cannot ask anybody;"
            " allow it by a rule where the server is configured",
        )
    return answers


def _words(question: Question) -> str:
    return f"{question.summary}\n{question.reason}" if question.reason else question.summary


def _passed_on(question: Question, catalog: Catalog) -> Mapping[str, Any] | None:
    """Another server's question, if that is what this is."""
    tool = catalog.get(question.tool)
    if tool is None or not tool.spec.metadata.get(ELICITS):
        return None
    return cast("Mapping[str, Any]", question.arguments)
