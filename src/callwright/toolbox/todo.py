"""The `todo` tool: the model's list of steps, which the user sees while the model works."""

from collections.abc import Iterable, Mapping
from typing import Any, Literal, TypeAlias, cast

from pydantic import AliasChoices, Field

from callwright.core.content import Output
from callwright.core.errors import InvalidArguments
from callwright.core.spec import Annotations, Effect
from callwright.tool.base import State, ToolContext
from callwright.tool.schema import Arguments
from callwright.tool.typed import TypedTool, describe

TodoStatus: TypeAlias = Literal["pending", "in_progress", "completed"]
_MAX_ITEMS = 50
_MAX_CHARS = 300
_MARKS: Mapping[str, str] = {"pending": "[ ]", "in_progress": "[~]", "completed": "[x]"}


class TodoItem(Arguments):
    """One step of the list."""

    content: str = Field(
        min_length=1, max_length=_MAX_CHARS, validation_alias=AliasChoices("content", "step", "description")
    )
    """What is to be done, in a few words."""
    status: TodoStatus = "pending"
    """How far the step is."""


class TodoArguments(Arguments):
    """Arguments of `todo`."""

    todos: tuple[TodoItem, ...] | None = Field(
        default=None, max_length=_MAX_ITEMS, validation_alias=AliasChoices("todos", "plan", "items")
    )
    """The whole list, in order; it replaces the list before. Leave it out to read the list."""


class TodoList:
    """The list of one session; kept in the session's state."""

    def __init__(self) -> None:
        self.items: tuple[TodoItem, ...] = ()

    @property
    def done(self) -> int:
        """How many steps are completed."""
        return sum(item.status == "completed" for item in self.items)


class Todo(TypedTool[TodoArguments]):
    """Keeps the list of a session. It changes nothing outside the conversation."""

    spec = describe(
        "todo",
        "Keep a list of steps for work with three or more of them; the user sees it. Send the whole list each time:"
        " one step in_progress, completed as soon as it is done. Without todos, returns the list.",
        annotations=Annotations(Effect.READ, idempotent=True, parallel=False),
        aliases=("TodoWrite", "TodoRead", "todo_write", "write_todos", "update_plan"),
        group="todo",
        search_hint="plan steps checklist progress tasks",
    )

    async def run(self, arguments: TodoArguments, context: ToolContext) -> Output:
        kept = context.state.get(TodoList)
        if arguments.todos is not None:
            _check_items(arguments.todos)
            kept.items = arguments.todos
        return Output(_todo_text(kept), {"todos": [item.model_dump() for item in kept.items]})


def _todo_text(todos: TodoList) -> str:
    """Return the list as the model reads it."""
    if not todos.items:
        return "the list is empty"
    lines = (f"{_MARKS[item.status]} {item.content}" for item in todos.items)
    return "\n".join((f"{todos.done} of {len(todos.items)} done", *lines))


def read_todos(structured: object) -> tuple[TodoItem, ...] | None:
    """Return the list in the structured output of a call; None if it is not one."""
    if not isinstance(structured, Mapping):
        return None
    try:
        given = cast("Iterable[Any]", cast("Mapping[str, Any]", structured)["todos"])
        return tuple(TodoItem(content=item["content"], status=item["status"]) for item in given)
    except (LookupError, TypeError, ValueError):  # a record of another version, or of another tool of this name
        return None


def restore_todos(state: State, structured: Iterable[object]) -> None:
    """Put the last list among recorded outputs back into a session's state, unless it already has one."""
    kept = state.get(TodoList)
    if not kept.items:
        found = [items for each in structured if (items := read_todos(each)) is not None]
        kept.items = found[-1] if found else ()


def _check_items(items: tuple[TodoItem, ...]) -> None:
    active = [item.content for item in items if item.status == "in_progress"]
    if len(active) > 1:
        raise InvalidArguments(
            f"{len(active)} steps are in_progress ({'; '.join(active)}); one at a time: set the others to pending"
        )
    twice = next((item.content for item in items if sum(item.content == other.content for other in items) > 1), "")
    if twice:
        raise InvalidArguments(f"the step {twice!r} is listed twice; write each step once")
