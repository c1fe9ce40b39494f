"""Parses shell hooks from settings, and lists the events that hooks can run at."""

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from functools import cached_property
from typing import Any, TypeAlias, cast

DEFAULT_SECONDS = 600.0


@dataclass(frozen=True, slots=True)
class EventKind:
    """Properties of one event."""

    matcher_field: str = ""
    """The field a matcher is compared with; empty if matchers have no meaning here."""
    blocks: bool = False
    """Exit code 2 or `onError: "block"` stops something; otherwise the reason is only shown to the user."""
    tool: bool = False
    """It is about a call, so conditions (`if`) can be permission rules."""
    text_is_context: bool = False
    """Plain text on stdout is passed to the model."""
    seconds: float = DEFAULT_SECONDS


_CALL_EVENT = EventKind("tool_name", blocks=True, tool=True)

EVENTS: Mapping[str, EventKind] = {
    "SessionStart": EventKind("source", text_is_context=True),
    "InstructionsLoaded": EventKind("load_reason"),
    "ConfigChange": EventKind("source"),
    "UserPromptSubmit": EventKind(blocks=True, text_is_context=True, seconds=30.0),
    "PreToolUse": _CALL_EVENT,
    "PermissionRequest": _CALL_EVENT,
    "PermissionDenied": EventKind("tool_name", tool=True),
    "PostToolUse": _CALL_EVENT,
    "PostToolUseFailure": _CALL_EVENT,
    "PostToolBatch": EventKind(blocks=True),
    "CwdChanged": EventKind(),
    "Elicitation": EventKind("mcp_server_name", blocks=True),
    "ElicitationResult": EventKind("mcp_server_name", blocks=True),
    "SubagentStart": EventKind("agent_type"),
    "SubagentStop": EventKind("agent_type", blocks=True),
    "Notification": EventKind("notification_type"),
    "PreCompact": EventKind("trigger", blocks=True),
    "PostCompact": EventKind("trigger"),
    "Stop": EventKind(blocks=True),
    "StopFailure": EventKind("error"),
    "SessionEnd": EventKind("reason", seconds=1.5),
}
"""The events that hooks can run at."""

UNSUPPORTED_EVENTS: Mapping[str, str] = {
    "Setup": "there is no separate set-up run",
    "UserPromptExpansion": "a skill called by name becomes an ordinary prompt; use UserPromptSubmit",
    "MessageDisplay": "messages of the model are shown while they stream, without hooks",
    "TaskCreated": "there is no list of tasks",
    "TaskCompleted": "there is no list of tasks",
    "TeammateIdle": "there are no teams of agents",
    "DirectoryAdded": "folders are added before a session starts, never during one",
    "FileChanged": "files are not watched; PostToolUse runs after tools change them",
    "WorktreeCreate": "there are no worktrees of our making",
    "WorktreeRemove": "there are no worktrees of our making",
}
"""Events of other agents that do not happen here, with the reason; hooks for them are parsed and never run."""


_LIST_OF_NAMES = re.compile(r"[A-Za-z0-9_\- ,|]*")
_FIELDS = ("type", "command", "timeout", "if", "async", "onError", "statusMessage")
KeyPath: TypeAlias = tuple[str | int, ...]
LineOf: TypeAlias = Callable[[Sequence[str | int]], int]


@dataclass(frozen=True)
class ShellHook:
    """One command that is run at an event."""

    event: str
    command: str
    matcher: str = ""
    seconds: float = DEFAULT_SECONDS
    blocks_on_error: bool = False
    """If the hook cannot start, crashes or takes too long, the call is stopped instead of continued."""
    written_in: str = ""
    condition: str = ""
    """A permission rule such as `Bash(git *)`: the hook runs only for calls the rule is about."""
    background: bool = False
    """The call does not wait for it, so it decides nothing."""

    def __str__(self) -> str:
        return f"the {self.event} hook {self.command!r}" + (f" in {self.written_in}" if self.written_in else "")

    def matches(self, names: Iterable[str]) -> bool:
        """Whether the matcher matches any of these names; an empty one matches all."""
        if self.matcher.strip() in ("", "*"):
            return True
        if isinstance(self._matcher_names, re.Pattern):
            return any(self._matcher_names.search(name) for name in names)
        return not self._matcher_names.isdisjoint(name.casefold() for name in names)

    @cached_property
    def _matcher_names(self) -> "frozenset[str] | re.Pattern[str]":
        if _LIST_OF_NAMES.fullmatch(self.matcher):
            return frozenset(name.strip().casefold() for name in re.split(r"[|,]", self.matcher))
        return re.compile(self.matcher)


def parse_shell_hooks(
    events: Mapping[str, Any], *, written_in: str = "", line_of: LineOf | None = None
) -> tuple[tuple[ShellHook, ...], tuple[str, ...]]:
    """Parse `{"PreToolUse": [{"matcher": …, "hooks": [{"command": …}]}]}`.

    Args:
        events: The `hooks` object of a settings file.
        written_in: The file, for messages.
        line_of: Finds the line of a path of keys, so that hooks and problems name the line too.

    Returns:
        The hooks, and a text for each problem.
    """
    hooks: list[ShellHook] = []
    problems: list[str] = []
    for event in events:
        if fault := _check_event_name(event):
            problems.append(f"{_locate(written_in, (event,), line_of) or 'hooks'}: {event}: {fault}")
    for event, group, path in _iterate_groups(events):
        if fault := _find_unread_key(group, ("matcher", "hooks")):
            problems.append(f"{_locate(written_in, path, line_of) or 'hooks'}: {event}: {fault}")
    for event, matcher, entry, path in _iterate_entries(events):
        place = _locate(written_in, path, line_of)
        hook = _parse_hook(event, matcher, entry, place)
        for fault in _find_faults(entry, hook):
            problems.append(f"{place or 'hooks'}: {event}: {fault}")
        if hook is not None and not _check_matcher(hook):  # an invalid pattern would raise at every event
            hooks.append(hook)
    return tuple(dict.fromkeys(hooks)), tuple(problems)


def _locate(written_in: str, path: KeyPath, line_of: LineOf | None) -> str:
    return written_in if line_of is None else f"{written_in}:{line_of(path)}"


def _check_event_name(event: str) -> str:
    if event in EVENTS:
        return ""
    if event in UNSUPPORTED_EVENTS:
        return f"hooks at this event are never run: {UNSUPPORTED_EVENTS[event]}"
    near = get_close_matches(event, (*EVENTS, *UNSUPPORTED_EVENTS), n=1)
    hint = f"did you mean {near[0]}?" if near else f"the events are {', '.join(EVENTS)}"
    return f"there is no such event, so nothing runs; {hint}"


def _iterate_groups(events: Mapping[str, Any]) -> Iterator[tuple[str, Mapping[str, Any], KeyPath]]:
    for event in filter(EVENTS.__contains__, events):
        for place, group in enumerate(cast("Sequence[Mapping[str, Any]]", events[event])):
            yield event, group, (event, place)


def _iterate_entries(events: Mapping[str, Any]) -> Iterator[tuple[str, str, Mapping[str, Any], KeyPath]]:
    for event, group, path in _iterate_groups(events):
        for place, entry in enumerate(cast("Sequence[Mapping[str, Any]]", group.get("hooks", ()))):
            yield event, str(group.get("matcher") or ""), entry, (*path, "hooks", place)


def _find_unread_key(given: Mapping[str, Any], known: Sequence[str]) -> str:
    """Report the first unknown key: a misspelt `onError` would make a guard that stops nothing."""
    key = next((key for key in given if key not in known), "")
    near = get_close_matches(key, known, n=1)
    return f"unknown key {key!r}" + (f"; did you mean {near[0]!r}?" if near else "") if key else ""


def _parse_hook(event: str, matcher: str, entry: Mapping[str, Any], place: str) -> ShellHook | None:
    if entry.get("type", "command") != "command" or not entry.get("command"):
        return None
    return ShellHook(
        event,
        entry["command"],
        matcher,
        float(entry.get("timeout", EVENTS[event].seconds)),
        entry.get("onError") == "block",
        place,
        str(entry.get("if") or ""),
        entry.get("async") is True,
    )


def _find_faults(entry: Mapping[str, Any], hook: ShellHook | None) -> Iterator[str]:
    if hook is None:
        yield f"a hook of type {entry.get('type', 'command')!r} cannot be run; use the type 'command' with a command"
        return
    kind = EVENTS[hook.event]
    if unread := _find_unread_key(entry, _FIELDS):
        yield f"{hook.command!r}: {unread}"
    if bad := _check_matcher(hook):
        yield f"the matcher {hook.matcher!r} is not a regular expression ({bad}), so the hook never runs"
    if hook.matcher.strip() not in ("", "*") and not kind.matcher_field:
        yield f"{hook.command!r}: this event has no matcher, so the hook runs every time"
    if hook.condition and not kind.tool:
        yield f'{hook.command!r}: "if" works only at events of calls, so the hook never runs'
    if hook.background and hook.blocks_on_error:
        yield f'{hook.command!r}: an async hook runs in the background, so onError "block" stops nothing'


def _check_matcher(hook: ShellHook) -> str:
    try:
        hook.matches(("",))
    except re.error as error:
        return str(error)
    return ""
