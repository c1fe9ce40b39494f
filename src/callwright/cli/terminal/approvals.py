"""Asks the user in the terminal to approve or decline calls."""

import asyncio
from collections.abc import Callable, Sequence

from callwright.app.conversation import Conversation
from callwright.cli.approval_dialog import EditRequest, dialog_lines, read_choice, read_edit
from callwright.cli.terminal.ui import Terminal
from callwright.core.calls import Answers, Approve, Decline, Question, Reply

_INTERRUPTED = "interrupted by the user"


class Approvals:
    """Shows one approval dialog after the other, even if several agents ask at the same time.

    Args:
        terminal: The terminal to ask in.
        conversation: Returns the current conversation, whose notification hooks run before a dialog.
    """

    def __init__(self, terminal: Terminal, conversation: Callable[[], Conversation]) -> None:
        self._terminal = terminal
        self._conversation = conversation
        self._lock = asyncio.Lock()
        self.interrupted: Callable[[], bool] = lambda: False

    async def ask(self, questions: Sequence[Question]) -> Answers:
        """Answer all questions; Esc at one declines it and those after it, and stops the run."""
        replies: dict[str, Reply] = {}
        async with self._lock:  # subagents run in parallel and share this terminal
            self._terminal.end_stream()
            await self._conversation().notify(questions[0].summary)
            for place, question in enumerate(questions, 1):
                count = f"{place} of {len(questions)}, " if len(questions) > 1 else ""
                replies[question.id] = await self._ask_one(question, count)
        return Answers(replies)

    async def _ask_one(self, question: Question, count: str) -> Reply:
        if self.interrupted():
            return Decline(_INTERRUPTED)
        terminal = self._terminal
        terminal.show("", *dialog_lines(question, terminal.palette, terminal.screen.width))
        while True:
            text = await terminal.ask(f"{count}{'done?' if question.kind == 'auth' else 'allow?'}")
            if text is None:
                terminal.on_interrupt()
                return Decline(_INTERRUPTED)
            choice = read_choice(text, question)
            if isinstance(choice, EditRequest):
                choice = await self._edit(choice)
            if isinstance(choice, (Approve, Decline)):
                return choice
            terminal.show(f"  {choice}")

    async def _edit(self, edit: EditRequest) -> Approve | str:
        terminal = self._terminal
        if terminal.edit_externally is not None and edit.long:
            changed = await terminal.edit_externally(edit.indented_text)
        else:
            changed = await terminal.ask("arguments", edit.text)
        if changed is None or changed.strip() in (edit.text, edit.indented_text.strip()):
            return "not changed; y runs the call as it is"
        return read_edit(changed)
