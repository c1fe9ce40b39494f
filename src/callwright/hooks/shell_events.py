"""The events hooks can be written for: which of them happen here, what their matchers mean, what a no does to them."""

from collections.abc import Mapping
from dataclasses import dataclass

DEFAULT_SECONDS = 600.0


@dataclass(frozen=True, slots=True)
class EventKind:
    """What is particular about the hooks of one event."""

    matched: str = ""
    """The field a matcher is compared with; empty: hooks are heard whatever their matcher."""
    blocks: bool = False
    """Whether a no (exit code 2, or `onError: "block"`) stops something; else it is only shown to the person."""
    tool: bool = False
    """It is about a call, so conditions (`if`) can be written in the words of permission rules."""
    text_is_context: bool = False
    """Plain text on stdout is told to the model."""
    seconds: float = DEFAULT_SECONDS


_CALL = EventKind("tool_name", blocks=True, tool=True)

EVENTS: Mapping[str, EventKind] = {
    "SessionStart": EventKind("source", text_is_context=True),
    "InstructionsLoaded": EventKind("load_reason"),
    "ConfigChange": EventKind("source"),
    "UserPromptSubmit": EventKind(blocks=True, text_is_context=True, seconds=30.0),
    "PreToolUse": _CALL,
    "PermissionRequest": _CALL,
    "PermissionDenied": EventKind("tool_name", tool=True),
    "PostToolUse": _CALL,
    "PostToolUseFailure": _CALL,
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
"""The events that happen here."""

NEVER: Mapping[str, str] = {
    "Setup": "there is no set-up run apart from the first session",
    "UserPromptExpansion": "a skill called by name becomes an ordinary prompt, which UserPromptSubmit sees",
    "MessageDisplay": "what the model says is shown as it comes, and hooks have no part in it",
    "TaskCreated": "there is no list of tasks",
    "TaskCompleted": "there is no list of tasks",
    "TeammateIdle": "there are no teams of agents",
    "DirectoryAdded": "folders are added before a session begins, never during one",
    "FileChanged": "nobody watches files; PostToolUse sees what tools change",
    "WorktreeCreate": "there are no worktrees of our making",
    "WorktreeRemove": "there are no worktrees of our making",
}
"""Events of other agents that cannot happen here, and why: hooks at them are read and never run."""
