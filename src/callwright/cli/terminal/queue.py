"""Prompts that were typed while the agent worked: shown above the input line, and taken back to be edited."""

import asyncio
from collections.abc import Callable

from callwright.cli.render.text import cut
from callwright.cli.terminal.input import Editor

_MOST_SHOWN = 3


class PromptQueue:
    """The prompts that wait for the agent, oldest first."""

    def __init__(self) -> None:
        self._texts: list[str] = []
        self._over = False
        self._changed = asyncio.Event()

    async def get(self) -> str | None:
        """Wait for the next prompt; None when the conversation is over."""
        while not self._texts:
            if self._over:
                return None
            self._changed.clear()
            await self._changed.wait()
        return self._texts.pop(0)

    def add(self, text: str) -> None:
        """Add a prompt."""
        self._texts.append(text)
        self._changed.set()

    def end(self) -> None:
        """Let `get` return None after the last prompt."""
        self._over = True
        self._changed.set()

    def take_last(self) -> str | None:
        """Remove and return the newest prompt, to be edited; None if none waits."""
        return self._texts.pop() if self._texts else None

    def return_to(self, editor: Editor) -> bool:
        """Put every prompt back on the input line: the run it was written for was stopped. False if none waits."""
        texts, self._texts = self._texts, []
        if texts:
            editor.set("\n".join(filter(None, [*texts, editor.text])))
        return bool(texts)

    def rows(self, width: int, show: Callable[[str], str]) -> list[str]:
        """Return a row for each prompt; of many, the first ones and how many more there are.

        Args:
            width: The columns of the screen.
            show: Escapes what a user typed or pasted.
        """
        rows = [cut(f"  queued: {show(text)}".replace("\n", " "), width) for text in self._texts]
        if len(rows) > _MOST_SHOWN:
            rows[_MOST_SHOWN - 1 :] = [f"  … and {len(rows) - _MOST_SHOWN + 1} more queued"]
        return [*rows, cut("  Up takes the last one back to edit it", width)] if rows else []
