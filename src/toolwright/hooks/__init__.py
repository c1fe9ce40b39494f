"""Hooks may change or stop a call; observers only watch."""

from toolwright.core.lazy import loader

TYPE_CHECKING = False  # read as true by type checkers; typing itself would cost the import more than this file
if TYPE_CHECKING:
    from toolwright.hooks.base import Answer as Answer
    from toolwright.hooks.base import Ask as Ask
    from toolwright.hooks.base import Halt as Halt
    from toolwright.hooks.base import Hook as Hook
    from toolwright.hooks.base import InnerAgent as InnerAgent
    from toolwright.hooks.base import PendingCall as PendingCall
    from toolwright.hooks.base import Proceed as Proceed
    from toolwright.hooks.base import Refuse as Refuse
    from toolwright.hooks.base import Rewrite as Rewrite
    from toolwright.hooks.base import Verdict as Verdict
    from toolwright.hooks.cache import Cache as Cache
    from toolwright.hooks.gate import PermissionGate as PermissionGate
    from toolwright.hooks.redact import Redact as Redact
    from toolwright.hooks.shell import ShellHooks as ShellHooks
    from toolwright.hooks.shell_config import ShellHook as ShellHook
    from toolwright.hooks.shell_config import parse_shell_hooks as parse_shell_hooks

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
