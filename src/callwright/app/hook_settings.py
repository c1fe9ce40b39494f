"""Reads the shell hooks of the settings."""

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

from callwright.app.permissions import condition_fault
from callwright.app.settings import Settings
from callwright.app.settings_file import SettingsLayer
from callwright.core.json import FrozenDict
from callwright.hooks.shell.config import ShellHook, parse_shell_hooks

_NONE: Mapping[str, Any] = FrozenDict()


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
    return hooks, [*(problem for _, problems in found for problem in problems), *faults]


def _hook_line(layer: SettingsLayer, path: Sequence[str | int]) -> int:
    return layer.line(("hooks", *path))
