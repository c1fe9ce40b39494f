"""Asks the person in the terminal what a call may do."""

import asyncio
from collections.abc import Callable, Sequence

from callwright.app.conversation import Conversation
from callwright.cli.ask import Edit, dialog, read_choice, read_edit
from callwright.cli.terminal.ui import Terminal
from callwright.core.call import Answers, Approve, Decline, Question, Reply

_TURNED_AWAY = "interrupted by the user"


class Approvals:
    """One dialog after the other, however many agents ask at the same time."""

    def __init__(self, terminal: Terminal, conversation: Callable[[], Conversation]) -> None:
        self._terminal = terminal
        self._conversation = conversation
        self._asking = asyncio.Lock()
        self.interrupted: Callable[[], bool] = lambda: False

    async def ask(self, questions: Sequence[Question]) -> Answers:
        """Answer all of them; turning away from one is a no to it and to those after it, and stops the run."""
        given: dict[str, Reply] = {}
        async with self._asking:  # agents inside agents may have questions at the same time
            self._terminal.end_stream()
            await self._conversation().notify(questions[0].summary)
            for place, question in enumerate(questions, 1):
                counted = f"{place} of {len(questions)}, " if len(questions) > 1 else ""
                given[question.id] = await self._reply(question, counted)
        return Answers(given)

    async def _reply(self, question: Question, counted: str) -> Reply:
        if self.interrupted():
            return Decline(_TURNED_AWAY)
        terminal = self._terminal
        terminal.show("", *dialog(question, terminal.palette, terminal.screen.width))
        while True:
            said = await terminal.ask(f"{counted}{'done?' if question.kind == 'auth' else 'allow?'}")
            if said is None:
                terminal.on_interrupt()
                return Decline(_TURNED_AWAY)
            choice = read_choice(said, question)
            if isinstance(choice, Edit):
                choice = await self._edited(choice)
            if isinstance(choice, (Approve, Decline)):
                return choice
            terminal.show(f"  {choice}")

    async def _edited(self, wish: Edit) -> Approve | str:
        terminal = self._terminal
        if terminal.edit_outside is not None and wish.long:
            changed = await terminal.edit_outside(wish.indented)
        else:
            changed = await terminal.ask("arguments", wish.text)
        if changed is None or changed.strip() in (wish.text, wish.indented.strip()):
            return "not changed; y runs it as it is"
        return read_edit(changed)
