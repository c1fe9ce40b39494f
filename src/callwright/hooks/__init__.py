"""Hooks, which may change or stop calls: the base class, built-in hooks and hooks that run shell commands."""

from callwright.core._lazy import lazy_exports

TYPE_CHECKING = False  # read as true by type checkers; importing typing would cost more than this file
if TYPE_CHECKING:
    from callwright.hooks.base import (
        Answer as Answer,
        Ask as Ask,
        Deny as Deny,
        Halt as Halt,
        Hook as Hook,
        InnerAgent as InnerAgent,
        PendingCall as PendingCall,
        Proceed as Proceed,
        Rewrite as Rewrite,
        Verdict as Verdict,
    )
    from callwright.hooks.builtin import Cache as Cache, PermissionGate as PermissionGate, Redact as Redact
    from callwright.hooks.shell.config import ShellHook as ShellHook, parse_shell_hooks as parse_shell_hooks
    from callwright.hooks.shell.hooks import ShellHooks as ShellHooks
else:
    __getattr__ = lazy_exports(
        __name__,
        {
            "base": "Answer Ask Deny Halt Hook InnerAgent PendingCall Proceed Rewrite Verdict",
            "builtin": "Cache PermissionGate Redact",
            "shell.config": "ShellHook parse_shell_hooks",
            "shell.hooks": "ShellHooks",
        },
    )
