"""Approvals that another program gives: the one that drives a headless run, or a tool of an MCP server.

Only `{"behavior": "allow"}` approves. Input that the program changed is validated and judged again, as every edited
answer is.
"""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any, TypeAlias, cast

from callwright.app.app import App
from callwright.cli.render.text import print_notice
from callwright.core.calls import Answers, Completed, Question, Reply, ToolCall
from callwright.core.decisions import make_reply
from callwright.core.errors import CallwrightError, UsageError
from callwright.core.json import parse_strictly, read_object, thaw
from callwright.executor.executor import Executor
from callwright.hooks.base import PendingCall
from callwright.hooks.shell.compat import CallView, elicitation_server
from callwright.policy import ByMode, Policies
from callwright.policy.grants import can_last, propose
from callwright.policy.modes import mode_named
from callwright.toolbox.ask_user import choices_of

Fields: TypeAlias = dict[str, Any]
Decide: TypeAlias = Callable[[Mapping[str, Any]], Awaitable[Fields]]
"""Sends a permission request and returns the decision; raises `CallwrightError` if there is none."""
_NO_CALLBACK = (
    "approvals cannot be asked for in this run: pass can_use_tool, or allow it with a rule or a permission mode"
)
_LASTING = {"session": "session", "localSettings": "always"}
"""Where an accepted suggestion is kept, and how long an approval lasts by that."""


async def decline_all(questions: Sequence[Question]) -> Answers:
    """Decline every question: the driving program has no callback for them."""
    return Answers({question.id: make_reply(False, reason=_NO_CALLBACK) for question in questions})


class ExternalApprovals:
    """Asks another program about each question.

    Args:
        app: The app whose calls are asked about.
        session_id: The session of the run.
        decide: Asks the program.
        interrupt: Stops the run, which a decision may ask for.
    """

    def __init__(self, app: App, session_id: str, decide: Decide, interrupt: Callable[[], None]) -> None:
        self._app = app
        self._session_id = session_id
        self._decide = decide
        self._interrupt = interrupt

    async def __call__(self, questions: Sequence[Question]) -> Answers:
        """Ask one question after the other; only an explicit allow approves."""
        replies: dict[str, Reply] = {}
        for question in questions:
            replies[question.id] = await self._ask(question)
        return Answers(replies)

    async def _ask(self, question: Question) -> Reply:
        tool = self._app.executor.registry.snapshot().get(question.tool)
        if tool is None or question.kind == "auth":
            where = f" at {question.url}" if question.url else ""
            return make_reply(False, reason=f"a sign-in{where} is not possible in this run")
        if elicitation_server(tool.spec):
            return make_reply(False, reason="forms of MCP servers cannot be filled in by another program")
        call = ToolCall(question.call_id, question.tool, question.arguments)
        view = self._app.hooks.view_call(PendingCall(call, tool.spec, question.arguments, self._session_id))
        asked = _questionnaire(question) if question.kind == "input" else cast("Fields", thaw(view.arguments))
        try:
            reply = await self._decide(_request(question, view, asked))
        except CallwrightError as error:
            return make_reply(False, reason=f"no decision: {error}")
        if reply.get("behavior") != "allow":
            return self._decline(reply)
        return _read_input(question, reply) if question.kind == "input" else self._approve(question, view, asked, reply)

    def _decline(self, reply: Fields) -> Reply:
        if reply.get("interrupt") is True:
            self._interrupt()
        if reply.get("behavior") != "deny":
            return make_reply(False, reason=f"the decision {reply.get('behavior')!r:.80} is neither allow nor deny")
        return make_reply(False, reason=reply.get("message"))

    def _approve(self, question: Question, view: CallView, asked: Fields, reply: Fields) -> Reply:
        updated: object = reply.get("updatedInput", asked)
        if not isinstance(updated, dict):
            return make_reply(False, reason=f"updatedInput must be an object, got {updated!r:.80}")
        if updated != asked:
            # an approval that lasts covers only what was shown, so this one counts once
            return make_reply(True, arguments=view.restore_arguments(cast("Fields", updated)))
        return make_reply(True, scope=self._scope(question, reply.get("updatedPermissions")))

    def _scope(self, question: Question, updates: object) -> str:
        """Return how long an approval lasts; updates that were not suggested change nothing and are named."""
        scope = "once"
        suggested = _suggest_rules(question)
        for update in cast("list[Any]", updates) if isinstance(updates, list) else ():
            match update:
                case {"type": "addRules", "behavior": "allow", "rules": [*rules], "destination": str(place)} if (
                    place in _LASTING and rules == suggested and suggested
                ):
                    scope = _LASTING[place]
                case {"type": "setMode", "mode": str(mode)}:
                    try:
                        self._app.switch.mode = mode_named(mode)
                    except UsageError as error:
                        print_notice(f"updatedPermissions: {error}")
                case _:
                    print_notice(f"updatedPermissions: {update!r:.200} was not suggested, so it is ignored")
        return scope


def _request(question: Question, view: CallView, asked: Fields) -> Fields:
    suggested = _suggest_rules(question)
    update = {"type": "addRules", "rules": suggested, "behavior": "allow", "destination": "session"}
    return {
        "subtype": "can_use_tool",
        "tool_name": view.name,
        "input": asked,
        "tool_use_id": question.call_id,
        "permission_suggestions": [update] if suggested else [],
        "blocked_path": None,
        "decision_reason": question.reason,
        "title": question.summary,
        "display_name": view.name,
        # no `agent_id`: that is the id of a sub-agent, and the origin is a text that may be lines of a program
        **({"description": question.origin} if question.origin else {}),
    }


def _suggest_rules(question: Question) -> list[Fields]:
    """Return the rules of an approval for longer; kept for the session only, it needs no rule that lasts."""
    return [_rule_value(rule) for rule in propose(question.accesses).rules] if can_last(question) else []


def _rule_value(rule: str) -> Fields:
    name, found, content = rule.partition("(")
    return {"toolName": name, "ruleContent": content.removesuffix(")") if found else None}


def _questionnaire(question: Question) -> Fields:
    """Return a question of the model in the form of the tool AskUserQuestion."""
    asked = {
        "question": str(question.arguments.get("question", question.reason)),
        "header": "",
        "options": [{"label": label, "description": text} for label, text in choices_of(question.arguments)],
        "multiSelect": question.arguments.get("multiple") is True,
    }
    return {"questions": [asked]}


def _read_input(question: Question, reply: Fields) -> Reply:
    updated = reply.get("updatedInput")
    given = [*read_object(read_object(updated).get("answers")).values()]
    if len(given) != 1 or not isinstance(given[0], str) or not given[0].strip():
        return make_reply(False, reason="the question was not answered")
    labels = [label for label, _ in choices_of(question.arguments)]
    picked = [given[0]] if given[0] in labels else [each.strip() for each in given[0].split(",")]
    if all(each in labels for each in picked):
        return make_reply(True, arguments={"choices": picked, "text": ""})
    return make_reply(True, arguments={"choices": [], "text": given[0]})


def tool_approvals(app: App, session_id: str, name: str, interrupt: Callable[[], None]) -> ExternalApprovals:
    """Return approvals that a tool of an MCP server gives.

    The tool gets `tool_name`, `input` and `tool_use_id`, and returns `{"behavior": "allow" or "deny", …}` as text.

    Raises:
        UsageError: There is no such tool.
    """
    tool = app.registry.snapshot().get(name)
    if tool is None or not name.startswith("mcp__"):
        names = (spec.name for spec in app.registry.snapshot().definitions)
        known = [each for each in names if each.startswith("mcp__")]
        raise UsageError(
            f"--permission-prompt-tool {name}: expected stdio or a tool of an MCP server ({', '.join(known) or 'none'})"
        )
    # the user named the tool as the one that decides, so nothing is asked about it
    executor = Executor(app.registry, Policies(ByMode("bypass")))

    async def decide(request: Mapping[str, Any]) -> Fields:
        given = {key: request[key] for key in ("tool_name", "input", "tool_use_id")}
        (outcome,) = await executor.execute([ToolCall(f"approval-{request['tool_use_id']}", name, given)])
        if not isinstance(outcome, Completed):
            raise UsageError(f"the tool {name} failed: {outcome.text}")
        try:
            reply = parse_strictly(outcome.text)
        except (ValueError, RecursionError) as error:
            raise UsageError(f"the tool {name} returned no JSON: {error}") from None
        if not isinstance(reply, dict):
            raise UsageError(f"the tool {name} returned {reply!r:.80}, which is not an object")
        return cast("Fields", reply)

    return ExternalApprovals(app, session_id, decide, interrupt)
