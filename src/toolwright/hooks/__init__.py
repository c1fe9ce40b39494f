"""Hooks may change or stop a call; observers only watch."""

from toolwright.core.access import Ask
from toolwright.hooks.base import Answer, Halt, Hook, PendingCall, Proceed, Refuse, Rewrite, Verdict
from toolwright.hooks.cache import Cache
from toolwright.hooks.gate import PermissionGate
from toolwright.hooks.redact import Redact

__all__ = [
    "Answer",
    "Ask",
    "Cache",
    "Halt",
    "Hook",
    "PendingCall",
    "PermissionGate",
    "Proceed",
    "Redact",
    "Refuse",
    "Rewrite",
    "Verdict",
]
