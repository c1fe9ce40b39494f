"""callwright: the tool runtime for AI agents. Write a typed function, and any model can call it safely.

Names are loaded when first used, so that importing the package stays light.
"""

import callwright.tool as _package  # loaded now, so that no later import puts the package where the decorator belongs
from callwright.core.lazy import loader

del tool, _package  # type: ignore[name-defined] # noqa: F821 - the import above bound both

__version__ = "0.1.0"

TYPE_CHECKING = False  # read as true by type checkers; typing itself would cost the import more than this file
if TYPE_CHECKING:
    from callwright.agent.agent import Agent as Agent
    from callwright.agent.budget import Budget as Budget
    from callwright.agent.result import Done as Done
    from callwright.agent.result import Paused as Paused
    from callwright.agent.result import Stopped as Stopped
    from callwright.core.access import Access as Access
    from callwright.core.access import Allow as Allow
    from callwright.core.access import Ask as Ask
    from callwright.core.access import Decision as Decision
    from callwright.core.access import DeletePath as DeletePath
    from callwright.core.access import Deny as Deny
    from callwright.core.access import Reach as Reach
    from callwright.core.access import ReadPath as ReadPath
    from callwright.core.access import RunCommand as RunCommand
    from callwright.core.access import UseTool as UseTool
    from callwright.core.access import WritePath as WritePath
    from callwright.core.call import Answers as Answers
    from callwright.core.call import Approve as Approve
    from callwright.core.call import Completed as Completed
    from callwright.core.call import Decline as Decline
    from callwright.core.call import Failed as Failed
    from callwright.core.call import Interrupted as Interrupted
    from callwright.core.call import Outcome as Outcome
    from callwright.core.call import Question as Question
    from callwright.core.call import ToolCall as ToolCall
    from callwright.core.content import File as File
    from callwright.core.content import Image as Image
    from callwright.core.content import Output as Output
    from callwright.core.content import Text as Text
    from callwright.core.errors import ApprovalRequired as ApprovalRequired
    from callwright.core.errors import AuthRequired as AuthRequired
    from callwright.core.errors import Cancelled as Cancelled
    from callwright.core.errors import Crashed as Crashed
    from callwright.core.errors import Denied as Denied
    from callwright.core.errors import Halted as Halted
    from callwright.core.errors import InvalidArguments as InvalidArguments
    from callwright.core.errors import TimedOut as TimedOut
    from callwright.core.errors import ToolError as ToolError
    from callwright.core.errors import ToolFailed as ToolFailed
    from callwright.core.errors import CallwrightError as CallwrightError
    from callwright.core.errors import Transient as Transient
    from callwright.core.errors import UnknownTool as UnknownTool
    from callwright.core.errors import Unsafe as Unsafe
    from callwright.core.errors import UsageError as UsageError
    from callwright.core.spec import Annotations as Annotations
    from callwright.core.spec import Effect as Effect
    from callwright.core.spec import Limits as Limits
    from callwright.core.spec import ToolSpec as ToolSpec
    from callwright.executor.executor import Executor as Executor
    from callwright.executor.turn import Bounds as Bounds
    from callwright.executor.turn import Turn as Turn
    from callwright.executor.turn import TurnCancelled as TurnCancelled
    from callwright.hooks.base import Hook as Hook
    from callwright.hooks.gate import PermissionGate as PermissionGate
    from callwright.policy.decide import AllowEverything as AllowEverything
    from callwright.policy.decide import Policies as Policies
    from callwright.policy.decide import Policy as Policy
    from callwright.policy.mode import ByMode as ByMode
    from callwright.registry.catalog import Catalog as Catalog
    from callwright.registry.compose import combined as combined
    from callwright.registry.compose import filtered as filtered
    from callwright.registry.compose import prefixed as prefixed
    from callwright.registry.compose import renamed as renamed
    from callwright.registry.registry import Registry as Registry
    from callwright.retry import RetryPolicy as RetryPolicy
    from callwright.sessions.memory import MemoryStore as MemoryStore
    from callwright.sessions.sqlite import SqliteStore as SqliteStore
    from callwright.tool.base import Cancellation as Cancellation
    from callwright.tool.base import Invocation as Invocation
    from callwright.tool.base import State as State
    from callwright.tool.base import Tool as Tool
    from callwright.tool.base import ToolContext as ToolContext
    from callwright.tool.function import tool as tool
    from callwright.tool.handwritten import SchemaTool as SchemaTool
    from callwright.tool.lint import lint_tool as lint_tool
    from callwright.tool.schema import Arguments as Arguments
    from callwright.tool.typed import TypedTool as TypedTool
    from callwright.tool.typed import describe as describe

__all__ = [
    "Access",
    "Agent",
    "Allow",
    "AllowEverything",
    "Annotations",
    "Answers",
    "ApprovalRequired",
    "Approve",
    "Arguments",
    "Ask",
    "AuthRequired",
    "Bounds",
    "Budget",
    "ByMode",
    "Cancellation",
    "Cancelled",
    "Catalog",
    "Completed",
    "Crashed",
    "Decision",
    "Decline",
    "DeletePath",
    "Denied",
    "Deny",
    "Done",
    "Effect",
    "Executor",
    "Failed",
    "File",
    "Halted",
    "Hook",
    "Image",
    "Interrupted",
    "InvalidArguments",
    "Invocation",
    "Limits",
    "MemoryStore",
    "Outcome",
    "Output",
    "Paused",
    "PermissionGate",
    "Policies",
    "Policy",
    "Question",
    "Reach",
    "ReadPath",
    "Registry",
    "RetryPolicy",
    "RunCommand",
    "SchemaTool",
    "SqliteStore",
    "State",
    "Stopped",
    "Text",
    "TimedOut",
    "Tool",
    "ToolCall",
    "ToolContext",
    "ToolError",
    "ToolFailed",
    "ToolSpec",
    "CallwrightError",
    "Transient",
    "Turn",
    "TurnCancelled",
    "TypedTool",
    "UnknownTool",
    "Unsafe",
    "UsageError",
    "UseTool",
    "WritePath",
    "combined",
    "describe",
    "filtered",
    "lint_tool",
    "prefixed",
    "renamed",
    "tool",
]

_HOMES = {
    "agent.agent": "Agent",
    "agent.budget": "Budget",
    "agent.result": "Done Paused Stopped",
    "sessions.memory": "MemoryStore",
    "sessions.sqlite": "SqliteStore",
    "core.access": "Access Allow Ask Decision DeletePath Deny Reach ReadPath RunCommand UseTool WritePath",
    "core.call": "Answers Approve Completed Decline Failed Interrupted Outcome Question ToolCall",
    "core.content": "File Image Output Text",
    "core.errors": (
        "ApprovalRequired AuthRequired Cancelled Crashed Denied Halted InvalidArguments TimedOut ToolError ToolFailed "
        "CallwrightError Transient UnknownTool Unsafe UsageError"
    ),
    "core.spec": "Annotations Effect Limits ToolSpec",
    "executor.executor": "Executor",
    "executor.turn": "Bounds Turn TurnCancelled",
    "hooks.base": "Hook",
    "hooks.gate": "PermissionGate",
    "policy.decide": "AllowEverything Policies Policy",
    "policy.mode": "ByMode",
    "registry.catalog": "Catalog",
    "registry.compose": "combined filtered prefixed renamed",
    "registry.registry": "Registry",
    "retry": "RetryPolicy",
    "tool.base": "Cancellation Invocation State Tool ToolContext",
    "tool.function": "tool",
    "tool.handwritten": "SchemaTool",
    "tool.lint": "lint_tool",
    "tool.schema": "Arguments",
    "tool.typed": "TypedTool describe",
}
__getattr__ = loader(__name__, _HOMES)


def __dir__() -> list[str]:
    return [*__all__, "__version__"]
