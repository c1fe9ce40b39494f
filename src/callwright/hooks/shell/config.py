"""Parses shell hooks from settings, and lists the events that hooks can run at."""

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from functools import cached_property
from typing import Any, Literal, TypeAlias, cast

from callwright.core.errors import check_kind

DEFAULT_SECONDS = 600.0


@dataclass(frozen=True, slots=True)
class EventKind:
    """Properties of one event."""

    matcher_field: str = ""
    """The field a matcher is compared with; empty if matchers have no meaning here."""
    blocks: bool = False
    """Exit code 2 or `onError: "block"` stops something; otherwise the reason is only shown to the user."""
    guards: bool = False
    """It comes before an action, so a hook that fails or cannot be understood stops the action."""
    tool: bool = False
    """It is about a call, so conditions (`if`) can be permission rules."""
    text_is_context: bool = False
    """Plain text on stdout is passed to the model."""
    seconds: float = DEFAULT_SECONDS


_CALL_EVENT = EventKind("tool_name", blocks=True, tool=True)
_CALL_GUARD = EventKind("tool_name", blocks=True, guards=True, tool=True)
_FORM_GUARD = EventKind("mcp_server_name", blocks=True, guards=True)

EVENTS: Mapping[str, EventKind] = {
    "SessionStart": EventKind("source", text_is_context=True),
    "InstructionsLoaded": EventKind("load_reason"),
    "ConfigChange": EventKind("source"),
    "UserPromptSubmit": EventKind(blocks=True, guards=True, text_is_context=True, seconds=30.0),
    "PreToolUse": _CALL_GUARD,
    "PermissionRequest": _CALL_GUARD,
    "PermissionDenied": EventKind("tool_name", tool=True),
    "PostToolUse": _CALL_EVENT,
    "PostToolUseFailure": _CALL_EVENT,
    "PostToolBatch": EventKind(blocks=True),
    "CwdChanged": EventKind(),
    "Elicitation": _FORM_GUARD,
    "ElicitationResult": _FORM_GUARD,
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
    "PreModelSwitch": "a change of the model runs no hooks",
    "PostModelSwitch": "a change of the model runs no hooks",
    "WorktreeCreate": "there are no worktrees of our making",
    "WorktreeRemove": "there are no worktrees of our making",
}
"""Events of other agents that do not happen here, with the reason; hooks for them are parsed and never run."""

_LIST_OF_NAMES = re.compile(r"[A-Za-z0-9_\- ,|]*")
_LOOKS_LIKE_REGEX = re.compile(r"[\^$\\\[?+]|\.\*|^\(")
_FIELDS = (
    "type command url headers allowedEnvVars prompt model args shell timeout if async asyncRewake onError"
    " statusMessage once"
).split()
_LONGEST_SECONDS = 86_400.0
_PROMPT_SECONDS = 30.0
HookKind: TypeAlias = Literal["command", "http", "prompt", "callback"]
_SUBJECTS: Mapping[str, str] = {"command": "command", "http": "url", "prompt": "prompt"}
"""The kinds of entries that settings can have, and the field that says what is run."""
SHELLS: Mapping[str, tuple[str, ...]] = {
    **{name: (name, "-c") for name in ("bash", "sh", "zsh", "dash", "ksh", "fish")},
    **dict.fromkeys(("powershell", "pwsh"), ("pwsh", "-NoProfile", "-NonInteractive", "-Command")),
}
"""The shells a command line can be written for."""
KeyPath: TypeAlias = tuple[str | int, ...]
LineOf: TypeAlias = Callable[[Sequence[str | int]], int]


@dataclass(frozen=True)
class ShellHook:
    """One command that is run at an event."""

    event: str
    command: str
    matcher: str = ""
    seconds: float = DEFAULT_SECONDS
    blocks_on_error: bool | None = None
    """Whether the action is stopped if the hook cannot start, crashes, takes too long or writes what cannot be read.

    None for the default of the event: what comes before an action stops it.
    """
    written_in: str = ""
    condition: str = ""
    """A permission rule such as `Bash(git *)`: the hook runs only for calls the rule is about."""
    background: bool = False
    """The call does not wait for it, so it decides nothing."""
    arguments: tuple[str, ...] | None = None
    """The program's arguments; None if the command is a bash line."""
    broken: str = ""
    """Why this entry cannot be run; what it guards is then denied."""
    kind: HookKind = "command"
    """What runs it: a command, an HTTP endpoint, a model, or the program that registered a callback."""
    shell: str = "bash"
    """The shell of a command line."""
    rewake: bool = False
    """A background hook whose objection (exit code 2) goes to the model."""
    headers: tuple[tuple[str, str], ...] = ()
    environment: tuple[str, ...] = ()
    """Variables that may stand in the headers."""
    model: str = ""
    """The model that is asked; empty for that of the conversation."""

    def __str__(self) -> str:
        named = f"the {self.event} hook {self.command!r}" if self.command else f"the {self.event} hook"
        return f"{named} in {self.written_in}" if self.written_in else named

    @property
    def stops_on_error(self) -> bool:
        """Whether a failure of the hook stops the action; an entry that cannot be run always stops what it guards."""
        kind = EVENTS[self.event]
        if self.broken or self.blocks_on_error is None:
            return kind.guards
        return self.blocks_on_error and kind.blocks

    def matches(self, names: Iterable[str]) -> bool:
        """Whether the matcher matches any of these names; an empty one matches all."""
        if self.matcher.strip() in ("", "*"):
            return True
        names = tuple(names)
        if isinstance(self.matcher_names, re.Pattern) and any(self.matcher_names.search(name) for name in names):
            return True
        listed = self.named if isinstance(self.matcher_names, re.Pattern) else self.matcher_names
        return "!" in listed or not listed.isdisjoint(name.casefold() for name in names)

    @cached_property
    def matcher_names(self) -> "frozenset[str] | re.Pattern[str]":
        """The names that a matcher lists, in lower case; a regular expression if it is no list."""
        matcher = self.matcher.strip()
        if _LIST_OF_NAMES.fullmatch(matcher):
            names = frozenset(name.strip().casefold() for name in re.split(r"[|,]", matcher))
            return names | frozenset(word for name in names for word in name.split())
        return re.compile(matcher)

    @cached_property
    def named(self) -> frozenset[str]:
        """The names in a matcher that is neither a list nor a regular expression for one, such as `Bash(git *)`.

        A guard runs for these tools too: it was meant for some of their calls. `!` stands for every tool.
        """
        if not EVENTS[self.event].guards or _LOOKS_LIKE_REGEX.search(self.matcher):
            return frozenset()
        if self.matcher.strip().startswith("!"):
            return frozenset({"!"})
        return frozenset(re.findall(r"[a-z][\w-]*", self.matcher.casefold().partition("(")[0]))


def parse_shell_hooks(
    events: Mapping[str, Any], *, written_in: str = "", line_of: LineOf | None = None, kind: HookKind = "command"
) -> tuple[tuple[ShellHook, ...], tuple[str, ...]]:
    """Parse `{"PreToolUse": [{"matcher": …, "hooks": [{"command": …}]}]}`.

    An entry that cannot be run is returned as a `broken` hook if its event comes before an action: it may be a guard,
    so what it guards is denied.

    Args:
        events: The `hooks` object of a settings file; anything but an object is a `UsageError`.
        written_in: The file, for messages.
        line_of: Finds the line of a path of keys, so that hooks and problems name the line too.
        kind: The kind of entries without a `type`; callbacks are registered by a program, never by a file.

    Returns:
        The hooks, and a text for each problem.
    """
    check_kind("hooks", events, Mapping, 'write {"PreToolUse": [{"hooks": [{"command": "…"}]}]}')
    hooks: list[ShellHook] = []
    problems: list[str] = []
    for event in events:
        place = _locate(written_in, (event,), line_of)
        if fault := _check_event_name(event):
            problems.append(f"{place or 'hooks'}: {event}: {fault}")
            if (meant := _nearest_event(event)) in EVENTS and event not in UNSUPPORTED_EVENTS:
                hooks += _broken_guard(meant, f"there is no event {event!r}", place)
    for event, group, path in _iterate_groups(events):
        place = _locate(written_in, path, line_of)
        fault = _check_group(group)
        if not fault and "hooks" not in group and group.keys() - {"matcher", "description"}:
            fault = f"it has no hooks; write them as a list under hooks, not {', '.join(map(repr, group))}"
        if fault:
            hooks += _broken_guard(event, fault, place)
        if fault := fault or _find_unread_key(group, ("matcher", "hooks")):
            problems.append(f"{place or 'hooks'}: {event}: {fault}")
    for event, matcher, entry, path in _iterate_entries(events):
        place = _locate(written_in, path, line_of)
        hook = _parse_hook(event, matcher, entry, place, kind)
        problems += [f"{place or 'hooks'}: {event}: {fault}" for fault in _find_faults(entry, hook)]
        if not hook.broken or (EVENTS[event].guards and not hook.background):
            hooks.append(hook)
    return tuple(dict.fromkeys(hooks)), tuple(problems)


def _locate(written_in: str, path: KeyPath, line_of: LineOf | None) -> str:
    return written_in if line_of is None else f"{written_in}:{line_of(path)}"


def _broken_guard(event: str, fault: str, place: str) -> list[ShellHook]:
    return [ShellHook(event, "", written_in=place, broken=fault)] if EVENTS[event].guards else []


def _nearest_event(event: str) -> str:
    by_folded = {name.casefold(): name for name in (*EVENTS, *UNSUPPORTED_EVENTS)}
    near = get_close_matches(event.casefold(), by_folded, n=1)
    return by_folded[near[0]] if near else ""


def _check_event_name(event: str) -> str:
    if event in EVENTS:
        return ""
    if event in UNSUPPORTED_EVENTS:
        return f"hooks at this event are never run: {UNSUPPORTED_EVENTS[event]}"
    near = _nearest_event(event)
    hint = f"did you mean {near}?" if near else f"the events are {', '.join(EVENTS)}"
    denied = near in EVENTS and EVENTS[near].guards
    return f"there is no such event, so {'what it guards is denied' if denied else 'nothing runs'}; {hint}"


def _check_group(group: object) -> str:
    if not isinstance(group, Mapping):
        return f"expected a list of objects with matcher and hooks, got {group!r:.80}"
    given = cast("Mapping[str, Any]", group)
    if not isinstance(given.get("hooks", ()), (list, tuple)):
        return f"hooks must be a list, got {given['hooks']!r:.80}"
    if not isinstance(given.get("matcher") or "", str):
        return f"the matcher must be a text, got {given['matcher']!r:.80}"
    return ""


def _iterate_groups(events: Mapping[str, Any]) -> Iterator[tuple[str, Mapping[str, Any], KeyPath]]:
    for event in filter(EVENTS.__contains__, events):
        given = events[event]
        groups = cast("Sequence[Any]", given) if isinstance(given, (list, tuple)) else (given,)
        for place, group in enumerate(groups):
            yield event, group, (event, place)


def _iterate_entries(events: Mapping[str, Any]) -> Iterator[tuple[str, str, object, KeyPath]]:
    for event, group, path in _iterate_groups(events):
        if not _check_group(group):
            for place, entry in enumerate(cast("Sequence[object]", group.get("hooks", ()))):
                yield event, str(group.get("matcher") or ""), _translate_entry(entry), (*path, "hooks", place)


def _translate_entry(entry: object) -> object:
    """Write `onFailure` of Claude Code as `onError`; a word that is not known stays, and is reported."""
    if not isinstance(entry, Mapping) or "onFailure" not in entry or "onError" in entry:
        return cast("object", entry)
    given = dict(cast("Mapping[str, Any]", entry))
    word = given.pop("onFailure")
    return {**given, "onError": "proceed" if word == "continue" else word}


def _find_unread_key(given: Mapping[str, Any], known: Sequence[str]) -> str:
    """Report unknown keys: a misspelt `onError` would make a guard that stops nothing."""
    unknown = [key for key in given if key not in (*known, "description")]
    if not unknown:
        return ""
    near = get_close_matches(unknown[0], known, n=1)
    named = f"unknown key{'s' if len(unknown) > 1 else ''} {', '.join(map(repr, unknown))}"
    return named + (f"; did you mean {near[0]!r}?" if near else "")


def _parse_hook(event: str, matcher: str, entry: object, place: str, kind: HookKind) -> ShellHook:
    given: Mapping[str, Any] = cast("Mapping[str, Any]", entry) if isinstance(entry, Mapping) else {}
    broken = _check_entry(given) if isinstance(entry, Mapping) else f"expected an object, got {entry!r:.80}"
    if bad := _check_matcher(matcher):
        broken = broken or f"the matcher {matcher!r} is not a regular expression ({bad})"
        matcher = ""  # for which calls it was meant is unknown, so it stands for all
    background = given.get("async") is True or given.get("asyncRewake") is True
    if broken:
        command = str(given.get("command") or given.get("url") or given.get("prompt") or given.get("type") or "")
        condition = _condition(given)
        return ShellHook(
            event, command, matcher, written_in=place, condition=condition, background=background, broken=broken
        )
    if kind == "command":
        kind = cast("HookKind", given.get("type", kind))
    usual = _PROMPT_SECONDS if kind == "prompt" else EVENTS[event].seconds
    return ShellHook(
        event,
        given[_SUBJECTS.get(kind, "command")],
        matcher,
        float(given.get("timeout", usual)),
        {"block": True, "proceed": False}.get(given.get("onError", "")),
        place,
        _condition(given),
        background,
        tuple(given["args"]) if "args" in given else None,
        kind=kind,
        shell=given.get("shell", "bash"),
        rewake=given.get("asyncRewake") is True,
        headers=tuple(cast("Mapping[str, str]", given.get("headers", {})).items()),
        environment=tuple(given.get("allowedEnvVars", ())),
        model=given.get("model", ""),
    )


def _condition(entry: Mapping[str, Any]) -> str:
    condition = entry.get("if")
    return condition if isinstance(condition, str) else ""


def _check_entry(entry: Mapping[str, Any]) -> str:
    """Return why an entry cannot be run; empty if it can."""
    kind = entry.get("type", "command")
    subject = _SUBJECTS.get(kind, "") if isinstance(kind, str) else ""
    run: Any = entry.get(subject)
    seconds: Any = entry.get("timeout", 1)
    if not subject or not run:
        needed = f"it needs a {subject}" if subject else f"use one of {', '.join(_SUBJECTS)}"
        return f"a hook of type {kind!r} cannot be run; {needed}"
    if not isinstance(run, str):
        return f"{subject} must be a text, got {run!r:.80}"
    if not _is_list_of_texts(entry.get("args", [])):
        return f"{run!r}: args must be a list of texts, got {entry['args']!r:.80}"
    if not isinstance(entry.get("shell", "bash"), str) or entry.get("shell", "bash") not in SHELLS:
        return f"{run!r}: the shell {entry['shell']!r:.80} is not supported; use one of {', '.join(SHELLS)}"
    if isinstance(seconds, bool) or not isinstance(seconds, (int, float)) or not 0 < seconds <= _LONGEST_SECONDS:
        return f"{run!r}: timeout must be a number of seconds, got {seconds!r:.80}"
    if entry.get("onError", "block") not in ("block", "proceed"):
        return f'{run!r}: onError must be "block" or "proceed", got {entry["onError"]!r:.80}'
    return _check_remote_entry(entry, run)


def _check_remote_entry(entry: Mapping[str, Any], run: str) -> str:
    headers: Any = entry.get("headers", {})
    if entry.get("type") == "http" and not re.fullmatch(r"https?://[^\s/]+(/\S*)?", run):
        return f"{run!r}: expected an http or https url"
    if not isinstance(headers, Mapping) or not all(
        isinstance(one, str) and one.isprintable()
        for pair in cast("Mapping[Any, Any]", headers).items()
        for one in pair
    ):
        return f"{run!r}: headers must be an object of texts, got {headers!r:.80}"
    if not _is_list_of_texts(entry.get("allowedEnvVars", [])):
        return f"{run!r}: allowedEnvVars must be a list of names, got {entry['allowedEnvVars']!r:.80}"
    if not isinstance(entry.get("model", ""), str):
        return f"{run!r}: model must be a text, got {entry['model']!r:.80}"
    return ""


def _is_list_of_texts(value: object) -> bool:
    return isinstance(value, (list, tuple)) and all(isinstance(one, str) for one in cast("list[Any]", value))


def _find_faults(entry: object, hook: ShellHook) -> Iterator[str]:
    kind = EVENTS[hook.event]
    if hook.broken:
        yield hook.broken + ("; what it guards is denied" if kind.guards and not hook.background else "")
        return
    if unread := _find_unread_key(cast("Mapping[str, Any]", entry), _FIELDS):
        yield f"{hook.command!r}: {unread}"
    if hook.matcher.strip() not in ("", "*") and not _LIST_OF_NAMES.fullmatch(hook.matcher.strip()) and hook.named:
        yield (
            f"{hook.command!r}: the matcher {hook.matcher!r} is not a list of names or a regular expression; the hook "
            'runs for every call of the tools it names; a rule goes into "if"'
        )
    if hook.matcher.strip() not in ("", "*") and not kind.matcher_field:
        yield f"{hook.command!r}: this event has no matcher, so the hook runs every time"
    if hook.condition and not kind.tool:
        effect = "runs every time" if kind.guards else "never runs"
        yield f'{hook.command!r}: "if" works only at events of calls, so the hook {effect}'
    if cast("Mapping[str, Any]", entry).get("once"):
        yield f"{hook.command!r}: once is not used, the hook runs every time"
    if hook.background and hook.blocks_on_error:
        yield f'{hook.command!r}: an async hook runs in the background, so onError "block" stops nothing'


def _check_matcher(matcher: str) -> str:
    try:
        ShellHook("Stop", "", matcher).matches(("",))
    except re.error as error:
        return str(error)
    return ""
