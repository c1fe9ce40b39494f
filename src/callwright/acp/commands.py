"""Modes, options and slash commands of a session in the editor."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import get_args

from acp.exceptions import RequestError
from acp.schema import (
    SessionConfigOptionBoolean,
    SessionConfigOptionSelect,
    SessionConfigSelectOption,
    SessionMode,
    SessionModeState,
)

from callwright.acp.requests import refuse
from callwright.agent.undo import Rewinding, UndoConflict, UndoHistory
from callwright.app.app import App
from callwright.app.conversation import Conversation
from callwright.app.costs import cost_of_records, prices_in
from callwright.app.models import fallback_names
from callwright.app.prompts import INIT_PROMPT
from callwright.core.errors import CallwrightError, UsageError
from callwright.policy.modes import Mode, mode_named
from callwright.sessions.base import SessionError
from callwright.sessions.records import sum_usage
from callwright.system.paths import shorten_path
from callwright.tool.base import Cancellation

_MODES: Mapping[Mode, str] = {
    "plan": "read only: the agent makes a plan",
    "default": "asks before it changes something",
    "auto": "changes files of the workspace without asking",
    "dontAsk": "denies what it would have to ask for",
    "bypass": "asks almost nothing; only for a machine that may be damaged",
}


def session_modes(app: App) -> SessionModeState:
    """Return the permission modes of an app, without those that its settings switch off."""
    found = [
        SessionMode(id=mode, name=mode, description=_MODES.get(mode))
        for mode in get_args(Mode)
        if mode not in app.switch.barred
    ]
    return SessionModeState(current_mode_id=app.switch.mode, available_modes=found)


def config_options(app: App) -> list[SessionConfigOptionSelect | SessionConfigOptionBoolean]:
    """Return the options that the editor may change: the mode and the model."""
    modes = [
        SessionConfigSelectOption(value=mode.id, name=mode.name, description=mode.description)
        for mode in session_modes(app).available_modes
    ]
    models = [SessionConfigSelectOption(value=name, name=name) for name in _model_names(app)]
    return [
        SessionConfigOptionSelect(
            type="select", id="mode", name="Mode", category="mode", current_value=app.switch.mode, options=modes
        ),
        SessionConfigOptionSelect(
            type="select",
            id="model",
            name="Model",
            category="model",
            current_value=app.agent.provider.model,
            options=models,
        ),
    ]


def _model_names(app: App) -> list[str]:
    """Return the model in use and the others that the settings name; every other one takes `/model NAME`."""
    return list(dict.fromkeys((app.agent.provider.model, *fallback_names(app.settings))))


def set_mode(app: App, name: str) -> None:
    """Change the permission mode.

    Raises:
        RequestError: There is no such mode, or the settings switch it off.
    """
    try:
        app.switch.mode = mode_named(name)
    except UsageError as error:
        raise refuse(str(error)) from None


def set_model(app: App, name: str) -> None:
    """Change the model of the conversation.

    Raises:
        RequestError: There is no such model, or its price is unknown and there is a limit in USD.
    """
    if name == app.agent.provider.model:
        return
    try:
        app.use_model(app.skill_service.models.get(name))
    except UsageError as error:
        raise refuse(str(error)) from None


@dataclass(frozen=True, slots=True)
class SlashResult:
    """What a command shows, or the prompt that it stands for."""

    shown: str = ""
    prompt: str = ""


_COMMANDS: Mapping[str, tuple[str, str]] = {
    "compact": ("Summarise the session, so that it fits the model again", "what the summary should keep"),
    "cost": ("Show tokens and cost of the session", ""),
    "model": ("Show the model, or switch to another", "provider:name"),
    "undo": ("Undo the last prompt: its changes of files and its messages", ""),
    "redo": ("Take the last undo back", ""),
    "init": ("Let the model write AGENTS.md for this project", ""),
}


class EditorCommands:
    """The commands of one session: the built-in ones here, and skills, which the agent expands itself.

    Args:
        conversation: The session.
    """

    def __init__(self, conversation: Conversation) -> None:
        self._conversation = conversation
        self._app = conversation.app

    def offered(self) -> Iterator[tuple[str, str, str]]:
        """Yield the name, description and argument hint of every command and every skill a user may call."""
        for name, (description, hint) in _COMMANDS.items():
            yield name, description, hint
        for skill in self._app.skills:
            if skill.user_invocable and skill.name not in _COMMANDS:
                yield skill.name, skill.description, skill.argument_hint

    def parse(self, text: str) -> str | None:
        """Return the built-in command that a prompt calls; None if it is a prompt."""
        name = text[1:].split(maxsplit=1)[0] if text.startswith("/") and text[1:].strip() else ""
        return name if name in _COMMANDS else None

    async def perform(self, name: str, text: str, cancellation: Cancellation) -> SlashResult:
        """Run a command; its errors are shown as its result."""
        rest = text[1:].removeprefix(name).strip()
        try:
            match name:
                case "compact":
                    before, after = await self._conversation.compact(rest, cancellation=cancellation)
                    return SlashResult(f"compacted from about {before} to {after} tokens")
                case "cost":
                    return SlashResult(await self._cost())
                case "model":
                    if rest:
                        set_model(self._app, rest)
                    return SlashResult(f"the model is {self._app.agent.provider.model}")
                case "undo":
                    return SlashResult(_describe("undone", await self._history().rewind(), self._app.locations.cwd))
                case "redo":
                    return SlashResult(_describe("redone", await self._history().redo(), self._app.locations.cwd))
                case _:
                    return SlashResult(prompt=INIT_PROMPT)
        except UndoConflict as conflict:
            changed = ", ".join(conflict.paths)
            return SlashResult(f"nothing was changed: another program changed {changed} since")
        except (CallwrightError, RequestError) as error:
            return SlashResult(f"/{name}: {error}")

    async def _cost(self) -> str:
        try:
            records = await self._app.agent.sessions.read(self._conversation.session_id)
        except SessionError:
            return "this session has no messages yet"
        usage = sum_usage(records)
        cost = cost_of_records(records, partial(prices_in, self._app.settings))
        return f"{usage.input_tokens} tokens in, {usage.output_tokens} out; {cost}"

    def _history(self) -> UndoHistory:
        return self._app.undo_history(self._conversation.session_id)


def _describe(verb: str, result: Rewinding, cwd: Path) -> str:
    lines = [f"{verb}: {result.label}" if result.label else verb]
    for what, paths in (("restored", result.restored), ("removed", result.removed)):
        lines += [f"{what} {', '.join(shorten_path(path, cwd) for path in paths)}"] if paths else []
    return "\n\n".join([*lines, *result.notes])
