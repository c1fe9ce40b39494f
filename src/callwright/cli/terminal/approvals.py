"""Asks the user in the terminal to approve or decline calls."""

import asyncio
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from functools import partial
from typing import Any

from callwright.app.conversation import Conversation
from callwright.app.locations import Locations
from callwright.app.questions import read_input
from callwright.app.shared_questions import Settled, SharedQuestions
from callwright.app.trust import Trust, TrustReview
from callwright.cli.approval_card import WHY, approval_menu, card_text, input_menu, input_text
from callwright.cli.approval_dialog import EditRequest, read_choice, read_edit, trust_text
from callwright.cli.elicitation_form import Field, InvalidValue, field_text, fields_of, form_text, sending_text
from callwright.cli.render.text import visible_line, wrap_line
from callwright.cli.terminal.ui import Terminal
from callwright.cli.terminal.views import DialogView
from callwright.core.calls import Answers, Approve, Decline, Question, Reply
from callwright.core.decisions import YES_OR_NO, make_reply, parse_answer
from callwright.core.errors import Unanswered, UsageError
from callwright.core.json import JsonObject
from callwright.hooks.shell.compat import elicitation_server

_INTERRUPTED = "interrupted by the user"
_BACK = "choose an answer"
_READ_FIRST = "read to the end first: Space or PgDn shows more; n declines at any time"


class Approvals:
    """Shows one approval dialog after the other, even if several agents ask at the same time.

    Args:
        terminal: The terminal to ask in.
        conversation: Returns the current conversation, whose notification hooks run before a dialog.
        shared: Shows the questions in other places too; the first answer counts.
    """

    def __init__(self, terminal: Terminal, conversation: Callable[[], Conversation], shared: SharedQuestions) -> None:
        self._terminal = terminal
        self._shared = shared
        self._conversation = conversation
        self._lock = asyncio.Lock()
        self.interrupted: Callable[[], bool] = lambda: False
        self.alert: Callable[[str], None] = lambda message: None
        """Tells a user who looks elsewhere that a question waits."""

    async def ask(self, questions: Sequence[Question]) -> Answers:
        """Answer all questions; Esc at one declines it and those after it, and stops the run.

        Raises:
            Unanswered: The user has left; the session can be resumed at the questions.
        """
        replies: dict[str, Reply] = {}
        # before the lock: other places need not wait until this terminal is free
        self._shared.open(questions)
        try:
            async with self._lock:  # subagents run in parallel and share this terminal
                self._terminal.end_stream()
                self.alert(questions[0].summary)
                await self._conversation().notify(questions[0].summary)
                for count, question in _number(questions):
                    reply, first = await self._shared.race(question, self._ask_one(question, count))
                    replies[question.id] = reply
                    if first is not None:
                        self._show_who_answered(question, first)
        finally:
            self._shared.close(questions)
        return Answers(replies)

    async def review(self, questions: Sequence[Question]) -> Answers:
        """Answer questions of a run elsewhere; Esc leaves the one that is shown, and those after it, open."""
        replies: dict[str, Reply] = {}
        async with self._lock:
            self._terminal.end_stream()
            for count, question in _number(questions):
                reply = await self._ask_one(question, count)
                if reply == Decline(_INTERRUPTED):
                    break
                replies[question.id] = reply
        return Answers(replies)

    def _show_who_answered(self, question: Question, first: Settled) -> None:
        """Leave on the screen that another place was faster."""
        terminal = self._terminal
        rows = wrap_line(visible_line(question.summary), max(terminal.screen.width - 2, 20))
        told = visible_line(first.describe())
        terminal.show("", *(f"  {row}" for row in rows), terminal.palette.paint(f"  {told}", "dim"))

    async def _ask_one(self, question: Question, count: str) -> Reply:
        if self.interrupted():
            return Decline(_INTERRUPTED)
        server = self._asking_server(question)
        if server:
            return await self._fill_in(server, question)
        if question.kind == "input":
            return await self._ask_input(question)
        view = self._card(question)

        async def read(text: str) -> Reply | str:
            choice = read_choice(text, question) if text != WHY else await self._ask_why(view)
            if not view.read and not isinstance(choice, Decline):
                return _READ_FIRST
            return await self._edit(choice) if isinstance(choice, EditRequest) else choice

        hint = f"{count}{'done?' if question.kind == 'auth' else 'allow?'}"
        return self._conclude(view, await self._read_reply(view, hint, read, stays_open=True))

    async def _ask_input(self, question: Question) -> Reply:
        """Ask what the model wants to know; the reply is data and never an approval of a call."""
        palette = self._terminal.palette
        text = partial(input_text, question, palette, keys=not self._terminal.scrolls_only)
        view = DialogView(text, menu=input_menu(question, palette))

        async def read(text: str) -> Reply | str:
            return read_input(text, question) if view.read else _READ_FIRST

        reply = await self._read_reply(view, "your reply", read, stays_open=True)
        return self._conclude(view, reply, "; ".join(_reply_parts(reply)) if isinstance(reply, Approve) else "")

    async def _read_reply(
        self, view: DialogView, hint: str, read: Callable[[str], Awaitable[Reply | str]], *, stays_open: bool = False
    ) -> Reply:
        """Ask until `read` finds a reply in what is typed, and not a text to be shown instead.

        Raises:
            Unanswered: The user has left, and the question stays open for the next time.
        """
        terminal, settled = self._terminal, False
        while True:
            text = await terminal.ask(hint, view=view, settled=settled)
            settled = True
            if text is None and stays_open and terminal.over.is_set():
                raise Unanswered("the user left")
            if text is None or self.interrupted():
                terminal.on_interrupt()
                return Decline(_INTERRUPTED)
            reply = await read(text)
            if not isinstance(reply, str):
                return reply
            view.note = reply

    def _card(self, question: Question) -> DialogView:
        palette = self._terminal.palette
        folder = str(self._conversation().app.locations.cwd)
        card = partial(card_text, question, palette, folder)
        menu = approval_menu(question, palette, folder)
        if self._terminal.scrolls_only:  # without keys, everything is shown at once
            return DialogView(partial(card, everything=True, keys=False), menu=menu)
        return DialogView(card, menu=menu, details=partial(card, everything=True))

    async def _ask_why(self, view: DialogView) -> Decline | str:
        """Ask for the reason of a no; Esc returns to the menu."""
        why = await self._terminal.ask("why not, and what instead", view=view)
        return _BACK if why is None else Decline("" if why == WHY else why.strip())

    def _asking_server(self, question: Question) -> str:
        """Return the MCP server whose question this is; empty if it is not a server's."""
        tool = self._conversation().app.executor.registry.snapshot().get(question.tool)
        return elicitation_server(tool.spec) if tool is not None else ""

    async def _fill_in(self, server: str, question: Question) -> Reply:
        """Show a server's form and ask for its fields one by one."""
        palette, arguments = self._terminal.palette, question.arguments
        reply = await self._confirm(DialogView(partial(form_text, server, arguments, palette)), f"{server}?")
        if isinstance(reply, Decline) or arguments.get("url"):
            return _fill_answer(reply, arguments, {})
        content: dict[str, Any] = {}
        fields = fields_of(arguments)
        for place, field in enumerate(fields, 1):
            view = DialogView(partial(field_text, server, field, f"{place} of {len(fields)}", palette))
            value = await self._ask_field(field, view)
            if isinstance(value, Decline):
                return value
            if value is not None:
                content[field.name] = value
        reply = await self._confirm(DialogView(partial(sending_text, server, content, palette)), "send?")
        return _fill_answer(reply, arguments, content)

    async def _confirm(self, view: DialogView, hint: str) -> Reply:
        """Ask for a bare yes or no; every other text declines."""

        async def read(text: str) -> Reply | str:
            reply = parse_answer(text, YES_OR_NO)
            if isinstance(reply, Decline) or (isinstance(reply, Approve) and view.read):
                return reply
            if reply is None and " " in text.strip():
                return Decline(text.strip())
            return "y or n, please" if view.read else _READ_FIRST

        return self._conclude(view, await self._read_reply(view, visible_line(hint), read))

    async def _ask_field(self, field: Field, view: DialogView) -> object:
        while True:
            text = await self._terminal.ask(visible_line(field.name), view=view)
            if text is None or self.interrupted():
                self._terminal.on_interrupt()
                return Decline(_INTERRUPTED)
            try:
                return field.parse(text)
            except InvalidValue as error:
                view.note = str(error)

    def _conclude(self, view: DialogView, reply: Reply, told: str = "") -> Reply:
        """Leave the question and the answer on the screen."""
        _leave_on_screen(self._terminal, view, told or _describe(reply), "")
        return reply

    async def _edit(self, edit: EditRequest) -> Reply | str:
        """Let the user change the arguments; what is not valid is shown again, so that no edit is lost to a slip."""
        terminal, text = self._terminal, edit.text
        while True:
            changed = await self._change_text(edit, text)
            if changed is None or changed.strip() in ("", edit.text, edit.indented_text.strip()):
                return "not changed; y runs the call as it is"
            reply = read_edit(changed)
            if not isinstance(reply, str) or changed == text or terminal.scrolls_only:
                return reply
            terminal.show(terminal.palette.paint(f"  {visible_line(reply)}", "yellow"))
            text = changed

    async def _change_text(self, edit: EditRequest, text: str) -> str | None:
        terminal = self._terminal
        if terminal.edit_externally is not None and edit.long:
            return await terminal.edit_externally(edit.indented_text if text == edit.text else text)
        if not terminal.scrolls_only:
            return await terminal.ask("arguments", text)
        # its line cannot be prefilled: what is typed would follow the old arguments
        terminal.show(visible_line(text))
        return await terminal.ask("all arguments")


def _fill_answer(reply: Reply, arguments: JsonObject, content: Mapping[str, Any]) -> Reply:
    """Return the user's yes together with what was filled in; a no stays a no."""
    if not isinstance(reply, Approve):
        return reply
    return make_reply(True, arguments={**arguments, "answer": dict(content)})


def _number(questions: Sequence[Question]) -> Iterator[tuple[str, Question]]:
    """Yield questions, each with its place among several."""
    for place, question in enumerate(questions, 1):
        yield f"{place} of {len(questions)}, " if len(questions) > 1 else "", question


def _reply_parts(reply: Approve) -> list[str]:
    given = reply.arguments or {}
    picked, text = given.get("choices"), given.get("text")
    labels = [visible_line(str(label)) for label in picked] if isinstance(picked, (list, tuple)) else []
    return [*labels, *([visible_line(text)] if isinstance(text, str) and text else [])]


def _describe(reply: Reply) -> str:
    match reply:
        case Approve(arguments=dict()):
            return "allowed with other arguments"
        case Approve(scope="session"):
            return "allowed for this session"
        case Approve(scope="always"):
            return "always allowed"
        case Approve(scope="pattern"):
            return "always allowed, with the wider rule"
        case Approve():
            return "allowed once"
        case Decline(reason):
            return f"declined: {visible_line(reason)}" if reason else "declined"


async def ask_trust(terminal: Terminal, locations: Locations, notice: Callable[[str], None]) -> bool:
    """Ask whether to trust the folder if its files request something new; False if the user leaves."""
    trust = Trust(locations)
    review = trust.review()
    if trust.covers(review) and trust.covers_own(review):
        return True
    view, settled = _trust_view(terminal, locations, review), False
    while True:
        answer = ((await terminal.ask("trust?", view=view, settled=settled)) or "q").strip().lower()
        settled = True
        if answer in ("q", "quit"):
            return False
        if answer in ("n", "no"):
            _leave_on_screen(terminal, view, "not trusted")
            return True
        if answer not in ("y", "yes"):
            view.note = view.note or "y, n or q, please"
            continue
        if not view.read:
            view.note = "read to the end first: Space or PgDn shows more"
            continue
        try:
            trust.give(review)  # exactly what was on the screen
        except UsageError as error:
            notice(str(error))
            review = trust.review()
            view, settled = _trust_view(terminal, locations, review), False
            continue
        _leave_on_screen(terminal, view, "trusted")
        return True


def _trust_view(terminal: Terminal, locations: Locations, review: TrustReview) -> DialogView:
    return DialogView(partial(trust_text, str(locations.project), review.requests, terminal.palette))


def _leave_on_screen(terminal: Terminal, view: DialogView, answer: str, *above: str) -> None:
    rows = [] if terminal.scrolls_only else view.record(terminal.screen.width)
    terminal.show(*above, *rows, terminal.palette.paint(f"  {answer}", "dim"))
