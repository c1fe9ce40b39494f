"""Judges one call without running it, and reports the decision with its parts and sources."""

import json
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from typing import Any, cast

from callwright.app.app import App
from callwright.core.access import (
    Access,
    Allow,
    Ask,
    Confinement,
    Decision,
    Deny,
    RunCommand,
    UseTool,
    target_of,
)
from callwright.core.calls import ToolCall
from callwright.core.errors import ApprovalRequired, InvalidArguments, UsageError
from callwright.core.json import FrozenDict, JsonObject
from callwright.core.spec import Effect
from callwright.hooks.base import PendingCall
from callwright.policy import PathContext, Policies, Rule
from callwright.policy.base import make_printable
from callwright.policy.dry_run import DryRunCall, accesses_to_judge, dry_run_call
from callwright.policy.rules.loading import concerns
from callwright.policy.shell_line import PartOfLine
from callwright.policy.tool_names import is_known
from callwright.shell.plan import ShellPlan
from callwright.tool.base import Tool
from callwright.toolbox import Bash

DECISION_NAMES = {Allow: "allow", Ask: "ask", Deny: "deny"}
_STRICTNESS = {Allow: 0, Ask: 1, Deny: 2}


@dataclass(frozen=True, slots=True)
class PermissionReport:
    """A decision about one call, as a JSON report and as text."""

    fields: dict[str, Any]

    def readable(self) -> str:
        """Return the report as text: decision, reason and source, for the call and for each part of it."""
        report = self.fields
        target = "" if report["call"] == report["tool"] else f" {make_printable(report['call'])}"
        lines = [f"{report['decision']}: {report['tool']}{target}"]
        lines += [f"  unknown  {report['unknown']}"] if report["unknown"] else []
        lines += [f"  because  {report['reason']}"] if report["reason"] else []
        lines += [f"  decided  {report['source']}"]
        lines += [f"  sandbox  {report['wall']}"] if report.get("wall") else []
        for part in report.get("parts", ()):
            what = (
                f"{make_printable(part['runs'])} ({part['verdict']})"
                if "runs" in part
                else f"  {make_printable(part['touches'])}"
            )
            lines.append(f"  {part['decision']:<5}  {what}  [{part['source']}]")
        lines += [
            f"  ignored  {rule['rule']} in {rule['written_in']} would allow it, but this folder is not trusted:"
            " callwright trust"
            for rule in report["ignored"]
        ]
        lines += [f"  not run  {hook}, which would run first" for hook in report["hooks"]]
        return "\n".join(lines)


def judge_call(app: App, tool: str, argument: str, withheld: Iterable[Rule]) -> PermissionReport:
    """Judge a call as the executor would judge a call of the agent.

    Args:
        app: The app of the folder.
        tool: The name of the tool.
        argument: The main argument, or all arguments as a JSON object.
        withheld: Rules that would count if the folder were trusted.

    Raises:
        UsageError: The arguments are not valid.
    """
    accesses, subject = _call(app, tool, argument)
    policies = app.executor.policies
    decisions = [(access, policies.decide(access, subject)) for access in accesses]
    access, decision = find_strictest(decisions)
    report: dict[str, Any] = {"tool": subject.spec.name, "call": target_of(access), **_decision_fields(decision)}
    parts = [part for each, found in decisions for part in _parts(policies, each, subject, found)]
    if isinstance(access, RunCommand):
        plan = next(policies.parts(access, subject))[1].plan
        report |= {"verdict": str(plan.verdict), "understood": plan.proven, "wall": _describe_wall(app, decision, plan)}
    if len(parts) > 1 or isinstance(access, RunCommand):
        report["parts"] = parts
    report["unknown"] = _describe_unknown_tool(app, tool)
    # an allowed call needs no advice about trust
    report["ignored"] = [] if isinstance(decision, Allow) else list(_ignored_rules(app, accesses, subject, withheld))
    pending = PendingCall(ToolCall("judged", subject.spec.name), subject.spec, subject.arguments)
    report["hooks"] = [str(hook) for hook in app.hooks.hooks_for("PreToolUse", {}, pending)]
    return PermissionReport(report)


def _describe_wall(app: App, decision: Decision, plan: ShellPlan) -> str:
    """Describe the wall that a shell line would get; empty if it would not run."""
    bash = app.registry.snapshot().get("bash")
    if isinstance(decision, Deny) or not isinstance(bash, Bash):
        return ""
    if not bash.sandbox.confines:
        return f"none: {bash.sandbox.describe()}"
    if bash.leaves_wall(plan):
        wall = f"{Confinement.UNCONFINED.describe()}: sandbox.excludedCommands names it"
        return wall if isinstance(decision, Allow) else f"if approved: {wall}"
    if isinstance(decision, Allow):
        return decision.confinement.describe()
    return f"if approved: {Confinement.APPROVED.describe()}"


def _describe_unknown_tool(app: App, name: str) -> str:
    """Return a message if no tool has this name; MCP servers are not connected here."""
    catalog = app.registry.snapshot()
    if catalog.get(name) is not None or is_known(name):
        return ""
    near = get_close_matches(name, list(catalog.tools), n=1)
    hint = f"did you mean {near[0]}?" if near else "callwright tools lists them"
    return f"no tool {name!r} here; {hint}"


def _call(app: App, name: str, argument: str) -> tuple[Sequence[Access], DryRunCall]:
    """Return the accesses of the call, as the tool declares them if there is one of this name."""
    tool = app.registry.snapshot().get(name)
    arguments = _arguments(argument)
    access, subject = dry_run_call(name, argument, str(app.locations.cwd))
    if tool is None:
        known = None if arguments is None else DryRunCall(subject.spec, FrozenDict(arguments))
        return ((access,), subject) if known is None else ((UseTool(name, Effect.WRITE),), known)
    main = next(iter(cast("Sequence[str]", tool.spec.input_schema.get("required", ()))), "")
    try:
        return _bind(tool, {main: argument} if arguments is None else arguments)
    except InvalidArguments as error:
        if arguments is None:  # other arguments are missing, but the main one is enough to judge the call
            known = accesses_to_judge(tool.spec, ()) if isinstance(access, UseTool) else (access,)
            return known, DryRunCall(tool.spec, subject.arguments)
        raise UsageError(f"{name}: {error}") from None


def _bind(tool: Tool, arguments: JsonObject) -> tuple[Sequence[Access], DryRunCall]:
    try:
        invocation = tool.bind(arguments)
        accesses, arguments = tuple(invocation.accesses()), invocation.arguments
    except ApprovalRequired:
        accesses = ()
    return accesses_to_judge(tool.spec, accesses), DryRunCall(tool.spec, arguments)


def _arguments(argument: str) -> JsonObject | None:
    if not argument.lstrip().startswith("{"):
        return None
    try:
        return cast("JsonObject", json.loads(argument))
    except (ValueError, RecursionError) as error:
        raise UsageError(f"the arguments start with {{ but are not valid JSON: {error}") from None


def find_strictest(decisions: Sequence[tuple[Access, Decision]]) -> tuple[Access, Decision]:
    """Return the decision that counts for a call, with its access: the call runs only if every access may."""
    return max(decisions, key=lambda pair: _STRICTNESS[type(pair[1])])


def _ignored_rules(
    app: App, accesses: Sequence[Access], subject: DryRunCall, withheld: Iterable[Rule]
) -> Iterator[dict[str, str]]:
    here = PathContext.of(app.locations.cwd)
    for rule in withheld:
        if concerns(rule, accesses, subject, here):
            yield {"rule": f"allow {rule.text}", "written_in": rule.written_in, "why": "the folder is not trusted"}


def _decision_fields(decision: Decision) -> dict[str, Any]:
    return {"decision": DECISION_NAMES[type(decision)], "reason": decision.reason, "source": decision.source}


def _parts(policies: Policies, access: Access, subject: DryRunCall, decision: Decision) -> Iterator[dict[str, Any]]:
    if isinstance(access, RunCommand):
        yield from (_part(touched, view, found) for touched, view, found in policies.parts(access, subject))
    else:
        yield {"touches": f"{_verb(access)} {target_of(access)}", **_decision_fields(decision)}


def _part(access: Access, view: PartOfLine, decision: Decision) -> dict[str, Any]:
    if not isinstance(access, RunCommand):
        return {"touches": f"{_verb(access)} {target_of(access)}", **_decision_fields(decision)}
    command = view.command
    words = {"words": list(command.words), "inside": command.inside} if command else {}
    text = command.text if command else "the line as a whole"
    return {"runs": text, "verdict": str(view.verdict), **words, **_decision_fields(decision)}


def _verb(access: Access) -> str:
    return type(access).__name__.removesuffix("Path").removesuffix("Resource").casefold()
