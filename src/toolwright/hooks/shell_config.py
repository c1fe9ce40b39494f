"""Shell hooks as they are written in settings: which command, at which event, for which tools."""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, cast

EVENTS = (
    "SessionStart",
    "UserPromptSubmit",
    "PreToolUse",
    "PostToolUse",
    "PostToolUseFailure",
    "Notification",
    "Stop",
    "SessionEnd",
)
"""The events we have; hooks at other events of the standard are reported and never run."""

_DEFAULT_SECONDS = 600.0
_EVENT_SECONDS = {"UserPromptSubmit": 30.0, "SessionEnd": 1.5}
_LIST_OF_NAMES = re.compile(r"[A-Za-z0-9_\- ,|]*")


@dataclass(frozen=True)
class ShellHook:
    """One command that is run at an event."""

    event: str
    command: str
    matcher: str = ""
    seconds: float = _DEFAULT_SECONDS
    blocks_on_error: bool = False
    """A hook that cannot start, crashes or takes too long stops the call instead of letting it pass."""
    written_in: str = ""

    def __str__(self) -> str:
        return f"the {self.event} hook {self.command!r}" + (f" in {self.written_in}" if self.written_in else "")

    def matches(self, names: Iterable[str]) -> bool:
        """Whether it is for a tool known by any of these names; without a matcher it is for all."""
        if self.matcher.strip() in ("", "*"):
            return True
        if isinstance(self._wanted, re.Pattern):
            return any(self._wanted.search(name) for name in names)
        return not self._wanted.isdisjoint(name.casefold() for name in names)

    @cached_property
    def _wanted(self) -> "frozenset[str] | re.Pattern[str]":
        if _LIST_OF_NAMES.fullmatch(self.matcher):
            return frozenset(name.strip().casefold() for name in re.split(r"[|,]", self.matcher))
        return re.compile(self.matcher)


def parse_shell_hooks(
    events: Mapping[str, Any], *, written_in: str = ""
) -> tuple[tuple[ShellHook, ...], tuple[str, ...]]:
    """Read `{"PreToolUse": [{"matcher": …, "hooks": [{"command": …}]}]}`, and say what is wrong in it."""
    hooks: list[ShellHook] = []
    problems: list[str] = []
    for event, matcher, entry in _entries(events):
        hook = _hook(event, matcher, entry, written_in)
        fault = _fault(event, entry, hook)
        if fault:
            problems.append(f"{written_in or 'hooks'}: {event}: {fault}")
        if hook is not None and event in EVENTS and not _bad_pattern(hook):
            hooks.append(hook)
    return tuple(dict.fromkeys(hooks)), tuple(problems)


def _entries(events: Mapping[str, Any]) -> Iterator[tuple[str, str, Mapping[str, Any]]]:
    for event, groups in events.items():
        for group in cast("Sequence[Mapping[str, Any]]", groups):
            for entry in cast("Sequence[Mapping[str, Any]]", group.get("hooks", ())):
                yield event, str(group.get("matcher", "")), entry


def _hook(event: str, matcher: str, entry: Mapping[str, Any], written_in: str) -> ShellHook | None:
    if entry.get("type", "command") != "command" or not entry.get("command"):
        return None
    seconds = float(entry.get("timeout", _EVENT_SECONDS.get(event, _DEFAULT_SECONDS)))
    return ShellHook(event, entry["command"], matcher, seconds, entry.get("onError") == "block", written_in)


def _fault(event: str, entry: Mapping[str, Any], hook: ShellHook | None) -> str:
    if event not in EVENTS:
        return f"there is no such event here, so nothing runs; there are {', '.join(EVENTS)}"
    if hook is None:
        return f"a hook of type {entry.get('type')!r} cannot be run; write a command"
    if bad := _bad_pattern(hook):
        return f"the matcher {hook.matcher!r} is not a regular expression ({bad}), so the hook never runs"
    if "if" in entry:
        return f"{hook.command!r}: conditions are not read, so it runs every time"
    return ""


def _bad_pattern(hook: ShellHook) -> str:
    try:
        hook.matches(("",))
    except re.error as error:
        return str(error)
    return ""
