"""Reads the shell hooks of the settings."""

from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from typing import Any

from callwright.app.permissions import condition_fault
from callwright.app.settings import Settings
from callwright.app.settings_file import SettingsLayer
from callwright.core.json import FrozenDict
from callwright.hooks.shell.config import EVENTS, ShellHook, parse_shell_hooks
from callwright.policy.tool_names import OTHER_TOOLS, find_near, is_known

_NONE: Mapping[str, Any] = FrozenDict()
_MATCHED = {
    "SessionStart": "startup resume clear compact",
    "InstructionsLoaded": "session_start include",
    "ConfigChange": "user_settings project_settings local_settings policy_settings",
    "Notification": "permission_prompt",
    "PreCompact": "auto manual",
    "PostCompact": "auto manual",
    "StopFailure": "unknown max_output_tokens",
    "SessionEnd": "clear resume prompt_input_exit other",
}
"""What matchers of these events are compared with; other agents have more, such as the notification `idle_prompt`."""

_COMMON_TOOLS = (
    "Agent AskUserQuestion Bash BashOutput Edit EnterPlanMode ExitPlanMode Glob Grep MultiEdit NotebookEdit Read Skill"
    " Task TodoWrite WebFetch WebSearch Write"
).split()


def read_hooks(settings: Settings, given: Mapping[str, Any] = _NONE) -> tuple[list[ShellHook], list[str]]:
    """Return the hooks of the settings and of a driving program, and what is wrong with them.

    Args:
        settings: The merged settings.
        given: The hooks of the driving program, by event.
    """
    layers = settings.layers
    if settings.last("disableAllHooks"):
        # an administrator's hooks may be guards, which a user's setting must not switch off
        layers = tuple(layer for layer in layers if layer.scope == "managed")
    found = [
        parse_shell_hooks(layer.section("hooks"), written_in=layer.source, line_of=partial(_hook_line, layer))
        for layer in layers
    ]
    found.append(parse_shell_hooks(given, written_in="the driving program", kind="callback"))
    hooks = [hook for hooks, _ in found for hook in hooks]
    faults = dict.fromkeys(fault for hook in hooks if (fault := condition_fault(hook)))
    never = [text for hook in hooks for text in _describe_never(hook)]
    unknown = dict.fromkeys(text for hook in hooks for text in _describe_unknown_tools(hook))
    return hooks, [*(problem for _, problems in found for problem in problems), *faults, *never, *unknown]


def _describe_never(hook: ShellHook) -> Iterator[str]:
    """Yield why a hook never runs whose matcher is about something that does not happen here."""
    known = _MATCHED.get(hook.event, "").split()
    if known and not hook.broken and not hook.matches(known):
        field = EVENTS[hook.event].matcher_field
        yield f"{hook} never runs: the matcher {hook.matcher!r} matches no {field} ({', '.join(known)})"


def _describe_unknown_tools(hook: ShellHook) -> Iterator[str]:
    """Yield what a list of tools in a matcher misspells; other unknown names may be tools of other agents."""
    if not EVENTS[hook.event].tool or hook.broken or hook.matcher.strip() in ("", "*"):
        return
    listed = hook.matcher_names
    known = {name.casefold(): name for name in (*OTHER_TOOLS.values(), *_COMMON_TOOLS)}
    for name in sorted(listed) if isinstance(listed, frozenset) else ():
        if not is_known(name) and (near := find_near(name, known)):
            yield f"{hook}: there is no tool {name!r} for its matcher {hook.matcher!r}; did you mean {near}?"


def _hook_line(layer: SettingsLayer, path: Sequence[str | int]) -> int:
    return layer.line(("hooks", *path))
