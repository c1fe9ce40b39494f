"""Repair, the stage between a call as the model wrote it and `bind`; it runs only for calls that `bind` refuses.

look up, bind ─► refused? ─► name ─► JSON ─► arguments ─► bind again ─► paths ─► judged like any other call
"""

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, Literal, TypeAlias, TypeVar, cast

from callwright.core._fast import frozen, replace
from callwright.core.calls import Completed, Failed, Interrupted, Outcome, Repair, ToolCall
from callwright.core.errors import InvalidArguments, ToolError, UnknownTool
from callwright.core.json import JsonObject, compact
from callwright.executor.admitted import Admitted, ToolEntry
from callwright.registry.catalog import Catalog
from callwright.tool.base import Tool

if TYPE_CHECKING:
    from callwright.repairs.schemas import Target

RepairMode: TypeAlias = Literal["on", "report", "off"]
"""Whether calls are repaired, only reported with the repair that was possible, or left as they are."""


def repair_call(
    item: Admitted, catalog: Catalog, find_entry: Callable[[str, Catalog], ToolEntry | None], mode: RepairMode
) -> None:
    """Bind what a refused call means; without exactly one meaning, or if that is refused too, the error stays."""
    error = item.error
    try:
        found = propose(item.call, catalog)
        entry = None if found is None else find_entry(found.name, catalog)
        if found is None or entry is None or error is None:
            item.error = _add_advice(error, item.call, catalog)
            return
        item.bind(entry, found.arguments)
        if item.invocation is None:
            return
        item.entry, item.name = entry, entry.name
        if mode == "report":
            offer = describe_offer(entry.name, item.invocation.arguments, found.repairs)
            item.invocation, item.error = None, error.with_message(f"{error.message}; {offer}")
            return
        item.repairs = found.repairs
        paths = None if entry.repair_paths is None else entry.repair_paths(item.invocation)
        if paths is not None:
            repair_paths(item, entry, paths, mode)
    except Exception as refused:  # noqa: BLE001 - whatever the repair met: the model is told about its own call
        item.invocation, item.asks, item.repairs = None, (), ()
        if isinstance(error, UnknownTool) and isinstance(refused, InvalidArguments):
            item.error = error.with_message(f"{error.message}; read as the nearest tool: {refused.message}")
        elif isinstance(refused, InvalidArguments):
            item.error = _add_advice(error, item.call, catalog)
        return
    item.error = None


def _add_advice(error: ToolError | None, call: ToolCall, catalog: Catalog) -> ToolError | None:
    """Return the error of refused arguments with what to send instead."""
    from callwright.repairs.arguments import advise

    tool = catalog.get(call.name)
    if tool is None or not isinstance(error, InvalidArguments):
        return error
    advice = advise(call.arguments, _target(tool), error.message)
    return error.with_message(f"{error.message}; {advice}") if advice else error


def repair_paths(
    item: Admitted, entry: ToolEntry, found: tuple[JsonObject, tuple[Repair, ...]], mode: RepairMode
) -> None:
    """Bind a call again with the paths that it means, as its tool found them.

    Raises:
        InvalidArguments: Repairs are only reported.
    """
    invocation, (changes, repairs) = item.invocation, found
    if invocation is None:
        return
    if mode == "report":
        raise InvalidArguments(describe_offer(entry.name, changes, repairs))
    item.asks = ()
    item.edit(entry, {**invocation.arguments, **changes})
    item.repairs = (*item.repairs, *repairs)


@frozen
class RepairProposal:
    """The call that a call probably means; not validated."""

    name: str
    arguments: JsonObject | str | bytes
    repairs: tuple[Repair, ...]


def propose(call: ToolCall, catalog: Catalog) -> RepairProposal | None:
    """Return what a refused call means; None if it has no reading, or more than one."""
    from callwright.repairs.names import repair_name  # well-formed calls load none of it

    tool, repairs = catalog.get(call.name), list[Repair]()
    if tool is None:
        # with the names of withheld tools: a call of one of them is none of a tool with a similar name
        name = repair_name(call.name, {**{each: each for each in catalog.withheld}, **catalog.spellings})
        tool = None if name is None else catalog.get(name)
        if tool is None:
            return None
        repairs.append(Repair("name", f"the tool's name is {tool.spec.name}"))
    unbound = not repairs or not _binds(tool, call.arguments)
    found = _propose_arguments(tool, call.arguments) if unbound else None
    if found is None:
        return RepairProposal(tool.spec.name, call.arguments, tuple(repairs)) if repairs else None
    arguments, changes = found
    return RepairProposal(tool.spec.name, arguments, (*repairs, *changes))


def _propose_arguments(
    tool: Tool, arguments: JsonObject | str | bytes
) -> tuple[dict[str, Any], Sequence[Repair]] | None:
    """Return repaired arguments; null for an unknown field stays if the tool accepts it."""
    from callwright.repairs.table import repair_arguments

    target = _target(tool)
    found = repair_arguments(arguments, target)
    if found is not None and _binds(tool, found[0]):
        return found
    return repair_arguments(arguments, replace(target, closed=True))


def _target(tool: Tool) -> "Target":
    from callwright.repairs.schemas import Target

    spec = tool.spec
    lines: tuple[str, ...] = getattr(tool, "line_fields", ())
    named = cast("Any", getattr(tool, "field_aliases", dict))()
    return Target(spec.name, spec.input_schema, spec.aliases, named, lines)


def _binds(tool: Tool, arguments: JsonObject | str | bytes) -> bool:
    try:
        tool.bind(arguments)
    except InvalidArguments:
        return False
    return True


def describe_offer(name: str, arguments: JsonObject, repairs: Sequence[Repair]) -> str:
    """Return what a model is told where repairs are only reported."""
    return f"send {name} with {compact(arguments)} ({'; '.join(repair.note for repair in repairs)})"


def tell_edit(outcome: Outcome, who: str, arguments: JsonObject) -> Outcome:
    """Put the arguments that ran into an outcome, with who changed them; the model is told what the user changed."""
    edit = Repair("edited", f"the arguments were changed by {who}")
    call = replace(outcome.call, arguments=arguments)
    note = f"[{edit.note}; the call ran with {compact(arguments)}]" if who == "the user" else ""
    match outcome:
        case Completed(output=output):
            told = output.with_note(note) if note else output
            return replace(outcome, call=call, output=told, repairs=(*outcome.repairs, edit))
        case Failed(error=error):
            told_error = error.with_message(f"{error.message}\n{note}") if note and outcome.started else error
            return replace(outcome, call=call, error=told_error, repairs=(*outcome.repairs, edit))
        case Interrupted():
            return outcome


Ending = TypeVar("Ending", bound=Outcome)


def tell_repairs(outcome: Ending, repairs: tuple[Repair, ...], *, note: str = "") -> Ending:
    """Put the repairs of a call into its outcome, with a note for the model.

    The note is a whole sentence and demands nothing: small models would make the call again.
    """
    note = note or f"(The call was repaired: {'; '.join(repair.note for repair in repairs)}.)"
    edits = () if isinstance(outcome, Interrupted) else outcome.repairs
    merged = (*repairs, *(edit for edit in edits if edit not in repairs))
    match outcome:
        case Completed(output=output):
            return replace(outcome, output=output.with_note(note), repairs=merged)
        case Failed(error=error):
            return replace(outcome, error=error.with_message(f"{error.message}\n{note}"), repairs=merged)
        case Interrupted():
            return outcome
