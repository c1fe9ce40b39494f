"""toolwright: the tool runtime for AI agents. Write a typed function, and any model can call it safely.

Names are loaded when first used, so that importing the package stays light.
"""

import toolwright.tool as _package  # loaded now, so that no later import puts the package where the decorator belongs
from toolwright.core.lazy import loader

del tool, _package  # type: ignore[name-defined] # noqa: F821 - the import above bound both

__version__ = "0.1.0"

TYPE_CHECKING = False  # read as true by type checkers; typing itself would cost the import more than this file
if TYPE_CHECKING:
    from toolwright.agent.agent import Agent as Agent
    from toolwright.agent.budget import Budget as Budget
    from toolwright.agent.result import Done as Done
    from toolwright.agent.result import Paused as Paused
    from toolwright.agent.result import Stopped as Stopped
    from toolwright.core.access import Access as Access
    from toolwright.core.access import Allow as Allow
    from toolwright.core.access import Ask as Ask
    from toolwright.core.access import Decision as Decision
    from toolwright.core.access import DeletePath as DeletePath
    from toolwright.core.access import Deny as Deny
    from toolwright.core.access import Reach as Reach
    from toolwright.core.access import ReadPath as ReadPath
    from toolwright.core.access import RunCommand as RunCommand
    from toolwright.core.access import UseTool as UseTool
    from toolwright.core.access import WritePath as WritePath
    from toolwright.core.call import Answers as Answers
    from toolwright.core.call import Approve as Approve
    from toolwright.core.call import Completed as Completed
    from toolwright.core.call import Decline as Decline
    from toolwright.core.call import Failed as Failed
    from toolwright.core.call import Interrupted as Interrupted
    from toolwright.core.call import Outcome as Outcome
    from toolwright.core.call import Question as Question
    from toolwright.core.call import ToolCall as ToolCall
    from toolwright.core.content import File as File
    from toolwright.core.content import Image as Image
    from toolwright.core.content import Output as Output
    from toolwright.core.content import Text as Text
    from toolwright.core.errors import ApprovalRequired as ApprovalRequired
    from toolwright.core.errors import AuthRequired as AuthRequired
    from toolwright.core.errors import Cancelled as Cancelled
    from toolwright.core.errors import Crashed as Crashed
    from toolwright.core.errors import Denied as Denied
    from toolwright.core.errors import Halted as Halted
    from toolwright.core.errors import InvalidArguments as InvalidArguments
    from toolwright.core.errors import TimedOut as TimedOut
    from toolwright.core.errors import ToolError as ToolError
    from toolwright.core.errors import ToolFailed as ToolFailed
    from toolwright.core.errors import ToolwrightError as ToolwrightError
    from toolwright.core.errors import Transient as Transient
    from toolwright.core.errors import UnknownTool as UnknownTool
    from toolwright.core.errors import Unsafe as Unsafe
    from toolwright.core.errors import UsageError as UsageError
    from toolwright.core.spec import Annotations as Annotations
    from toolwright.core.spec import Effect as Effect
    from toolwright.core.spec import Limits as Limits
    from toolwright.core.spec import ToolSpec as ToolSpec
    from toolwright.executor.executor import Executor as Executor
    from toolwright.executor.turn import Bounds as Bounds
    from toolwright.executor.turn import Turn as Turn
    from toolwright.executor.turn import TurnCancelled as TurnCancelled
    from toolwright.hooks.base import Hook as Hook
    from toolwright.hooks.gate import PermissionGate as PermissionGate
    from toolwright.policy.decide import AllowEverything as AllowEverything
    from toolwright.policy.decide import Policies as Policies
    from toolwright.policy.decide import Policy as Policy
    from toolwright.policy.mode import ByMode as ByMode
    from toolwright.registry.catalog import Catalog as Catalog
    from toolwright.registry.compose import combined as combined
    from toolwright.registry.compose import filtered as filtered
    from toolwright.registry.compose import prefixed as prefixed
    from toolwright.registry.compose import renamed as renamed
    from toolwright.registry.registry import Registry as Registry
    from toolwright.retry import RetryPolicy as RetryPolicy
    from toolwright.sessions.memory import MemoryStore as MemoryStore
    from toolwright.sessions.sqlite import SqliteStore as SqliteStore
    from toolwright.tool.base import Cancellation as Cancellation
    from toolwright.tool.base import Invocation as Invocation
    from toolwright.tool.base import State as State
    from toolwright.tool.base import Tool as Tool
    from toolwright.tool.base import ToolContext as ToolContext
    from toolwright.tool.function import tool as tool
    from toolwright.tool.handwritten import SchemaTool as SchemaTool
    from toolwright.tool.lint import lint_tool as lint_tool
    from toolwright.tool.schema import Arguments as Arguments
    from toolwright.tool.typed import TypedTool as TypedTool
    from toolwright.tool.typed import describe as describe

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
    "ToolwrightError",
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
        "ToolwrightError Transient UnknownTool Unsafe UsageError"
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
