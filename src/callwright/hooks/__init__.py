"""Hooks may change or stop a call; observers only watch."""

from callwright.core.lazy import loader

TYPE_CHECKING = False  # read as true by type checkers; typing itself would cost the import more than this file
if TYPE_CHECKING:
    from callwright.hooks.base import Answer as Answer
    from callwright.hooks.base import Ask as Ask
    from callwright.hooks.base import Halt as Halt
    from callwright.hooks.base import Hook as Hook
    from callwright.hooks.base import InnerAgent as InnerAgent
    from callwright.hooks.base import PendingCall as PendingCall
    from callwright.hooks.base import Proceed as Proceed
    from callwright.hooks.base import Refuse as Refuse
    from callwright.hooks.base import Rewrite as Rewrite
    from callwright.hooks.base import Verdict as Verdict
    from callwright.hooks.cache import Cache as Cache
    from callwright.hooks.gate import PermissionGate as PermissionGate
    from callwright.hooks.redact import Redact as Redact
    from callwright.hooks.shell import ShellHooks as ShellHooks
    from callwright.hooks.shell_config import ShellHook as ShellHook
    from callwright.hooks.shell_config import parse_shell_hooks as parse_shell_hooks

__all__ = [
    "Answer",
    "Ask",
    "Cache",
    "Halt",
    "Hook",
    "InnerAgent",
    "PendingCall",
    "PermissionGate",
    "Proceed",
    "Redact",
    "Refuse",
    "Rewrite",
    "ShellHook",
    "ShellHooks",
    "Verdict",
    "parse_shell_hooks",
]

_HOMES = {
    "base": "Answer Ask Halt Hook InnerAgent PendingCall Proceed Refuse Rewrite Verdict",
    "cache": "Cache",
    "gate": "PermissionGate",
    "redact": "Redact",
    "shell": "ShellHooks",
    "shell_config": "ShellHook parse_shell_hooks",
}

__getattr__ = loader(__name__, _HOMES)
