"""Approval requests in the editor: each question becomes one request, and only a listed option approves it."""

import asyncio
from collections.abc import Awaitable, Callable, Coroutine, Sequence
from typing import Any, TypeAlias, cast

from acp.exceptions import RequestError
from acp.schema import (
    AllowedOutcome,
    ContentToolCallContent,
    PermissionOption,
    RequestPermissionRequest,
    RequestPermissionResponse,
    TextContentBlock,
    ToolCallUpdate,
)
from acp.utils import serialize_params
from pydantic import ValidationError

from callwright.acp.updates import Content, diffs_of, fence, kind_of, locations_of
from callwright.app.app import App
from callwright.app.shared_questions import Settled, SharedQuestions
from callwright.core.calls import Answers, Decline, Question, Reply, ToolCall
from callwright.core.decisions import make_reply
from callwright.core.errors import Unanswered, shorten
from callwright.core.escaping import visible_line
from callwright.core.json import read_object
from callwright.executor.driver import is_cancelling
from callwright.hooks.shell.compat import elicitation_server
from callwright.policy.grants import can_last, propose_for
from callwright.toolbox.ask_user import choices_of, read_reply_form, reply_form

DescribeQuestion = Callable[[Question], Sequence[str]]
"""Returns everything a call would do, one row each, as text that can hide nothing."""
Options: TypeAlias = list[tuple[PermissionOption, Reply]]
SendRequest = Callable[[str, dict[str, Any]], Awaitable[Any]]
_NO_FORMS = "the editor has no form to fill in; use the terminal for this"
_NO_TEXT = "the editor cannot take a written reply here; ask in the answer and end the turn"
_RULE_CHARS = 160


class Permissions:
    """Asks the user of one session, one question at a time, also if several agents ask at once.

    Args:
        app: The app of the session.
        session_id: The session.
        send: Sends a request to the editor and returns its result.
        describe: Describes a question in full.
        announce: Shows the call of a question in the editor and returns the id it has there.
        shared: The questions as the user's other programs see them; the first answer counts.
        has_forms: Tells whether the editor shows forms, for questions of the model.
    """

    def __init__(
        self,
        app: App,
        session_id: str,
        send: SendRequest,
        describe: DescribeQuestion,
        announce: Callable[[Question], Awaitable[str]],
        shared: SharedQuestions,
        has_forms: Callable[[], bool] = lambda: False,
    ) -> None:
        self._app = app
        self._session_id = session_id
        self._send = send
        self._describe = describe
        self._announce = announce
        self._shared = shared
        self._has_forms = has_forms
        self._lock = asyncio.Lock()
        self.waiting = 0
        """How many turns wait for answers."""
        self.leaving = False
        """The session is being closed: its questions stay open for the next time."""
        self.notify: Callable[[str], Awaitable[None]] | None = None
        """Fires the notification hooks before a question is shown."""
        self.settled: Callable[[Question, Reply, Settled | None], None] = lambda question, reply, first: None
        """Receives the reply to each question, and who gave it if that was another place."""

    async def ask(self, questions: Sequence[Question]) -> Answers:
        """Answer all questions; whatever is not an option that was offered declines.

        Raises:
            Unanswered: The editor has gone; the session can be resumed at the questions.
        """
        replies: dict[str, Reply] = {}
        self._shared.open(questions)
        self.waiting += 1
        try:
            async with self._lock:
                if self.notify is not None:
                    await self.notify(questions[0].summary)
                for question in questions:
                    reply, first = await self._shared.race(question, self._ask_one(question))
                    replies[question.id] = reply
                    self.settled(question, reply, first)
        finally:
            self.waiting -= 1
            self._shared.close(questions)
        return Answers(replies)

    async def _ask_one(self, question: Question) -> Reply:
        if self.leaving:  # closed before the question was shown, while hooks were notified
            raise Unanswered("the editor has closed the session")
        tool = self._app.executor.registry.snapshot().get(question.tool)
        if tool is not None and elicitation_server(tool.spec):
            return Decline(_NO_FORMS)
        if question.kind == "input" and self._has_forms():
            return await self._guarded(self._fill_in(question))
        options = _options(question)
        if question.kind == "input" and len(options) == 1:
            return Decline(_NO_TEXT)
        return await self._guarded(self._choose(question, options))

    async def _choose(self, question: Question, options: Options) -> Reply:
        request = RequestPermissionRequest(
            session_id=self._session_id,
            options=[option for option, _ in options],
            tool_call=await self._shown_call(question),
            field_meta={"callwright": {"question": question.id, "digest": question.digest, "kind": question.kind}},
        )
        answer = await self._send("session/request_permission", serialize_params(request))
        outcome = RequestPermissionResponse.model_validate(answer).outcome
        if not isinstance(outcome, AllowedOutcome):
            return Decline("the user cancelled the question")
        return _find_reply(outcome.option_id, options)

    async def _fill_in(self, question: Question) -> Reply:
        """Ask for a reply in a form; the reply is data for the tool and permits nothing."""
        form = reply_form(question.arguments)
        message = visible_line(question.reason)
        params = {"sessionId": self._session_id, "mode": "form", "message": message, "requestedSchema": form}
        answer = await self._send("elicitation/create", params | {"toolCallId": await self._announce(question)})
        return _read_form(question, answer)

    async def _guarded(self, asking: Coroutine[Any, Any, Reply]) -> Reply:
        """Return the reply, or a no for everything that goes wrong on the way.

        Raises:
            Unanswered: The editor has gone, or closes the session.
        """
        try:
            return await asking
        except asyncio.CancelledError:
            if self.leaving:
                raise Unanswered("the editor has closed the session") from None
            if is_cancelling():
                raise
            return Decline("the user cancelled the run")
        except ConnectionError as error:
            raise Unanswered("the editor has disconnected") from error
        except RequestError as error:
            return Decline(f"the editor could not ask the user: {visible_line(str(error))[:200]}")
        except ValidationError:
            return Decline("the editor sent an answer that is not one of the protocol")

    async def _shown_call(self, question: Question) -> ToolCallUpdate:
        call = ToolCall(question.call_id, question.tool, question.arguments)
        cwd = self._app.locations.cwd
        if question.kind == "input":
            rows = [visible_line(question.reason)]
        else:
            rules = propose_for(question).rules if can_last(question) else ()
            rows = [visible_line(question.summary), *self._describe(question)]
            rows += [f"always saves the rule {visible_line(rule)}" for rule in rules]
        block = TextContentBlock(type="text", text=fence("\n".join(rows)))
        content: list[Content] = [
            *diffs_of(call, cwd, on_disk=True),
            ContentToolCallContent(type="content", content=block),
        ]
        return ToolCallUpdate(
            tool_call_id=await self._announce(question),
            title=visible_line(question.reason if question.kind == "input" else question.summary),
            kind=kind_of(question.tool),
            status="pending",
            content=content,
            locations=locations_of(call, cwd) or None,
        )


def _read_form(question: Question, answer: object) -> Reply:
    given = read_object(answer)
    content = given.get("content")
    filled_in = cast("dict[str, Any]", content) if given.get("action") == "accept" and isinstance(content, dict) else {}
    reply = read_reply_form(question.arguments, filled_in)
    return Decline("the user gave no reply") if reply is None else make_reply(True, arguments=reply)


def _find_reply(option_id: str, options: Options) -> Reply:
    for option, reply in options:
        if option.option_id == option_id:
            return reply
    return Decline("the editor chose an option that was not offered")


def _options(question: Question) -> Options:
    """Return what the user may choose, and the reply each choice stands for; the last one declines."""
    # the nonce binds an option to this question: an answer to another one declines
    mark = question.nonce
    decline = PermissionOption(option_id=f"reject-{mark}", name="Reject", kind="reject_once"), make_reply(False)
    if question.kind == "input":
        return [*_choices(question), decline]
    if question.kind == "auth":
        done = PermissionOption(option_id=f"once-{mark}", name="I have signed in", kind="allow_once")
        return [(done, make_reply(True)), decline]
    once = PermissionOption(option_id=f"once-{mark}", name="Allow once", kind="allow_once"), make_reply(True)
    if not can_last(question):  # such as what a tool asks while it runs, which is about this run only
        return [once, decline]
    session = PermissionOption(option_id=f"session-{mark}", name="Allow for this session", kind="allow_always")
    found = [once, (session, make_reply(True, scope="session"))]
    if rules := propose_for(question).rules:
        shown = visible_line(", ".join(rules))  # the content of the request has the rules whole
        name = f"Always allow {shorten(shown, _RULE_CHARS)}"
        option = PermissionOption(option_id=f"always-{mark}", name=name, kind="allow_always")
        found.append((option, make_reply(True, scope="always")))
    return [*found, decline]


def _choices(question: Question) -> Options:
    """Return the replies that the model offers; a picked one is data for the tool and permits nothing."""
    found: Options = []
    for place, (label, description) in enumerate(choices_of(question.arguments)):
        name = visible_line(f"{label}: {description}" if description else label)
        option = PermissionOption(option_id=f"choice-{place}-{question.nonce}", name=name, kind="allow_once")
        found.append((option, make_reply(True, arguments={"choices": [label], "text": ""})))
    return found
