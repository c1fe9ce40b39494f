"""The routes of tools, rules, servers, skills and search: what the agent could do here, and who decides about it."""

import asyncio
import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, cast

from starlette.requests import Request
from starlette.routing import Route

from callwright.app.app import App
from callwright.app.mcp_servers import ServerEntry
from callwright.app.permission_test import judge_call
from callwright.app.permissions import change_rule, rule_file, withheld_rules
from callwright.app.questions import preview_fields, question_fields, read_reply
from callwright.app.session_search import find_excerpt
from callwright.app.session_view import outcome_fields
from callwright.app.settings_file import SettingsLayer
from callwright.app.trust import Trust
from callwright.core.calls import Answers, Interrupted, Question, Reply, ToolCall
from callwright.core.errors import CallwrightError, InvalidArguments, UsageError
from callwright.core.json import thaw
from callwright.core.spec import ToolSpec
from callwright.executor.turn_context import Turn
from callwright.hooks.builtin import Redact
from callwright.policy import Rule, Rules
from callwright.policy.rules.rule import RuleKind
from callwright.registry import ToolIndex
from callwright.sessions.base import SessionStore
from callwright.skills import Skill, SkillProblem
from callwright.web.api import ApiError, Fields, read_body, route, take_text
from callwright.web.hub import Hub
from callwright.web.replay import replay_rule
from callwright.web.session_actions import refuse_if
from callwright.web.workspace import WebWorkspace

_SCOPES = ("managed", "command line", "local", "project", "user")
_KINDS: tuple[RuleKind, ...] = ("allow", "ask", "deny")
_MOST_OPEN = 200
_MOST_HITS = 1_000
_MOST_PLACES = 50
_SESSION = "tried on the page"


class ToolRoutes:
    """Answers the requests about tools and rules.

    Args:
        hub: The session file.
        workspace: The app without a model.
        read_only: Whether nothing may run or be changed.
    """

    def __init__(self, hub: Hub, workspace: WebWorkspace, *, read_only: bool) -> None:
        self._hub = hub
        self._workspace = workspace
        self._read_only = read_only
        self._open: dict[str, Question] = {}
        """Questions about calls that were tried and wait for an answer, by id."""
        self._calls = 0

    def routes(self) -> list[Route]:
        """Return the routes."""
        gets = {
            "tools": self.list_tools,
            "rules": self.list_rules,
            "servers": self.list_servers,
            "skills": self.list_skills,
            "search": self.search,
        }
        judging = {"verdict": self.judge, "rules/test": self.test_rules, "rules/replay": self.replay}
        changing = {
            "preview": self.preview,
            "run": self.run,
            "rules/save": self.save_rule,
            "rules/remove": self.remove_rule,
            "servers/connect": self.connect,
            "servers/accept": self.accept,
        }
        return [
            *(route(f"/api/{name}", handler) for name, handler in gets.items()),
            *(route(f"/api/{name}", handler, method="POST") for name, handler in judging.items()),
            *(
                route(f"/api/{name}", refuse_if(self._read_only, handler), method="POST")
                for name, handler in changing.items()
            ),
        ]

    async def list_tools(self, request: Request) -> Fields:
        app = await self._workspace.app()
        offered = app.agent.registry.snapshot().tools
        tools = {**app.registry.snapshot().tools, **offered}
        rules = Rules(app.rules.rules)
        return {"tools": [_tool_fields(tool.spec, app, rules) for _, tool in sorted(tools.items())]}

    async def judge(self, request: Request) -> Fields:
        body = await read_body(request, {"tool": str, "arguments": dict})
        app = await self._workspace.app()
        tool = app.registry.snapshot().get(body["tool"])
        if tool is None:
            return {"decision": "invalid", "reason": f"there is no tool {body['tool']!r}"}
        try:
            tool.bind(body["arguments"])
        except InvalidArguments as error:
            return {"decision": "invalid", "reason": str(error)}
        except CallwrightError:
            pass  # judged below, as the executor does
        return await self._judge(app, body["tool"], json.dumps(body["arguments"]))

    async def _judge(self, app: App, tool: str, argument: str) -> Fields:
        def work() -> Fields:
            trusted = Trust(app.locations).given
            report = judge_call(app, tool, argument, withheld_rules(app.locations, trusted=trusted))
            return {**report.fields, "mode": app.switch.mode, "trusted": trusted}

        return await asyncio.to_thread(work)  # a line may take a while to judge

    async def preview(self, request: Request) -> Fields:
        body = await read_body(request, {"tool": str, "arguments": dict})
        app = await self._workspace.app()
        tool = app.registry.snapshot().get(body["tool"])
        try:
            bound = None if tool is None else tool.bind(body["arguments"])
            verdict = await self._judge(app, body["tool"], json.dumps(body["arguments"]))
        except CallwrightError:
            return {"preview": None}
        if bound is None or verdict["decision"] == "deny":  # a preview shows lines of the file
            return {"preview": None}
        return {"preview": await asyncio.to_thread(preview_fields, tool, bound.arguments)}

    async def run(self, request: Request) -> Fields:
        """Run a call through the agent's own executor; what must be asked comes back as questions."""
        body = await read_body(request, {"tool": str, "arguments": dict}, "answers", "call")
        app = await self._workspace.app()
        given: object = body.get("answers") or {}
        if not isinstance(given, dict):
            raise ApiError(400, "invalid", "expected an object of question ids as answers")
        replies, call_id = self._read_answers(app, cast("Fields", given))
        if not call_id:
            self._calls += 1
            call_id = f"try-{self._calls}"
        answers = Answers(replies) if replies else None
        call = ToolCall(call_id, body["tool"], body["arguments"])
        (outcome,) = await app.executor.execute([call], answers=answers, turn=Turn(session_id=_SESSION))
        for question_id in replies:
            self._open.pop(question_id, None)
        if not isinstance(outcome, Interrupted):
            fields = outcome_fields(outcome)
            return {"status": "completed" if fields["ok"] else "failed", "outcome": fields, "questions": []}
        for question in outcome.questions:
            self._open[question.id] = question
        for question_id in list(self._open)[:-_MOST_OPEN]:
            del self._open[question_id]
        shown = [question_fields(each, "", app.executor.registry) for each in outcome.questions]
        return {"status": "interrupted", "outcome": None, "questions": shown}

    def _read_answers(self, app: App, given: Fields) -> tuple[dict[str, Reply], str]:
        """Return the replies, and the id of the call that they are about."""
        replies: dict[str, Reply] = {}
        call_id = ""
        for question_id, reply in given.items():
            question = self._open.get(question_id)
            if question is None:
                raise ApiError(409, "answered", "this question was answered already, or is not open any more")
            if not isinstance(reply, dict):
                raise ApiError(400, "invalid", "expected an object as the reply")
            replies[question_id] = read_reply(question, cast("Fields", reply), app.executor.registry, "page")
            call_id = question.call_id
        return replies, call_id

    async def list_rules(self, request: Request) -> Fields:
        app = await self._workspace.app()
        trusted = Trust(app.locations).given
        withheld = withheld_rules(app.locations, trusted=trusted)
        problems = {id(problem.rule): f"{problem.kind}: {problem.text}" for problem in app.rules.problems}
        layers = [_layer_fields(app, scope, problems) for scope in _SCOPES]
        return {
            "mode": app.switch.mode,
            "mode_from": app.settings.place("permissions", "defaultMode") or "default",
            "trusted": trusted,
            "project": str(app.locations.project),
            "withheld": list(app.settings.withheld),
            "problems": list(app.problems),
            "layers": [layer for layer in layers if layer["rules"] or layer["editable"]],
            "ignored": [{"kind": rule.kind, "rule": rule.text, "written_in": rule.written_in} for rule in withheld],
        }

    async def test_rules(self, request: Request) -> Fields:
        body = await read_body(request, {"tool": str, "argument": str}, "mode", "allow", "ask", "deny")
        lists: dict[RuleKind, list[str]] = {kind: _texts(body.get(kind, ())) for kind in _KINDS}
        mode = body.get("mode") or ""
        if not isinstance(mode, str):
            raise ApiError(400, "invalid", "expected a text as mode")
        if any("\ud800" <= character <= "\udfff" for character in body["argument"]):  # as a call itself is refused
            raise ApiError(400, "invalid", "the argument holds a lone surrogate, which is not valid Unicode")
        if not mode and not any(lists.values()):
            return await self._judge(await self._workspace.app(), body["tool"], body["argument"])
        app = await asyncio.to_thread(self._open_with, lists, mode)
        try:
            return await self._judge(app, body["tool"], body["argument"])
        finally:
            await asyncio.to_thread(app.close)

    def _open_with(self, lists: Mapping[RuleKind, Sequence[str]], mode: str = "") -> App:
        allow, ask, deny = (lists.get(kind, ()) for kind in _KINDS)
        return self._workspace.open_bare(mode=mode, allow=allow, ask=ask, deny=deny)

    async def replay(self, request: Request) -> Fields:
        body = await read_body(request, {"kind": str, "rule": str})
        kind, text = _rule_kind(body["kind"]), body["rule"]
        before = await self._workspace.app()
        lists: dict[RuleKind, list[str]] = {kind: [text]}
        after = await asyncio.to_thread(self._open_with, lists)
        try:
            return await replay_rule(self._hub.store, before, after, kind, text)
        finally:
            await asyncio.to_thread(after.close)

    async def save_rule(self, request: Request) -> Fields:
        file = await self._change_rule(request, remove=False)
        return {"saved": True, "file": str(file)}

    async def remove_rule(self, request: Request) -> Fields:
        file = await self._change_rule(request, remove=True)
        return {"removed": True, "file": str(file)}

    async def _change_rule(self, request: Request, *, remove: bool) -> Path:
        body = await read_body(request, {"kind": str, "rule": str, "scope": str})
        kind = _rule_kind(body["kind"])
        locations = self._workspace.locations
        file = await asyncio.to_thread(change_rule, locations, kind, body["rule"], body["scope"], remove=remove)
        await self._workspace.app()
        return file

    async def list_servers(self, request: Request) -> Fields:
        app = await self._workspace.app()
        entries = {
            name: (layer, entry) for layer in app.settings.layers for name, entry in layer.section("mcpServers").items()
        }
        statuses = {status.name: status for status in (app.servers.status() if app.servers is not None else ())}
        found: list[Fields] = []
        for name, (layer, entry) in entries.items():
            target = Redact().clean(ServerEntry(name, layer.scope, Path(layer.source), entry).target)
            server: Fields = {"name": name, "scope": layer.scope, "file": layer.source, "target": target}
            status = statuses.get(name)
            shown = ("condition", "reason", "sign_in_url", "protocol", "server", "log", "seconds")
            lists = ("tools", "held", "problems")
            if status is None:
                empty: Fields = {"reason": "", "sign_in_url": "", "protocol": "", "server": "", "log": "", "seconds": 0}
                server |= {**empty, "condition": "not connected", **{each: [] for each in lists}}
                server |= {"review": {}, "digests": {}}
            else:
                server |= {each: getattr(status, each) for each in shown}
                server |= {each: list(getattr(status, each)) for each in lists}
                server["review"] = {name: "\n".join(lines) for name, lines in status.review.items()}
                server["digests"] = dict(status.digests)
            found.append(server)
        return {"servers": found, "connected": self._workspace.connected, "withheld": list(app.settings.withheld)}

    async def connect(self, request: Request) -> Fields:
        await read_body(request, {})
        await self._workspace.connect()
        return await self.list_servers(request)

    async def accept(self, request: Request) -> Fields:
        body = await read_body(request, {"tool": str, "digest": str})
        app = await self._workspace.app()
        if app.servers is None:
            raise ApiError(409, "gone", "the servers are not connected")
        app.servers.accept(body["tool"], body["digest"])
        return {}

    async def list_skills(self, request: Request) -> Fields:
        app = await self._workspace.app()
        problems = [_problem_fields(each) for each in app.skills.problems]
        return {"skills": [_skill_fields(skill) for skill in app.skills], "problems": problems}

    async def search(self, request: Request) -> Fields:
        text = take_text(request, "q")
        app = await self._workspace.app()
        specs = {tool.spec.name: tool.spec for tool in app.agent.registry.snapshot().tools.values()}
        hits = await asyncio.to_thread(
            lambda: ToolIndex(specs.values()).search(text, 10)
        )  # indexing takes its time too
        tools = [
            {
                "name": hit.name,
                "score": round(hit.score, 3),
                "why": [part for part in hit.why.split("; ") if part],
                "description": specs[hit.name].description.partition("\n")[0],
            }
            for hit in hits
        ]
        store = self._hub.store
        sessions = [] if store is None else await _find_places(store, text)
        return {"tools": tools, "sessions": sessions}


async def _find_places(store: SessionStore, text: str) -> list[Fields]:
    titles = {each.session_id: each.title for each in await store.list(limit=1000)}
    places: list[Fields] = []
    for hit in await store.search(text, limit=_MOST_HITS):
        excerpt = await find_excerpt(store, hit, text)
        if excerpt is None:
            continue
        title = titles.get(hit.session_id, "")
        places.append({"id": hit.session_id, "title": title, "position": hit.position, "excerpt": excerpt})
        if len(places) == _MOST_PLACES:
            break
    return places


def _tool_fields(spec: ToolSpec, app: App, rules: Rules) -> Fields:
    offered = app.agent.registry.snapshot().get(spec.name) is not None
    rule = rules.forbidding_rule(spec.name, spec.group)
    return {
        "name": spec.name,
        "description": spec.description,
        "effect": spec.annotations.effect.name.lower(),
        "group": spec.group,
        "aliases": list(spec.aliases),
        "origin": spec.origin,
        "deferred": spec.deferred,
        "hidden": "" if offered or rule is None else rule.source,
        "schema": thaw(spec.input_schema),
        "output_schema": thaw(spec.output_schema) if spec.output_schema is not None else None,
        "idempotent": spec.annotations.idempotent,
    }


def _layer_fields(app: App, scope: str, problems: dict[int, str]) -> Fields:
    layers = [layer for layer in app.settings.layers if layer.scope == scope]
    rules = [rule for rule in app.rules.rules if rule.scope == scope]
    file, editable, why = _file_of(app, scope, layers)
    return {
        "scope": scope,
        "file": file,
        "exists": bool(layers),
        "editable": editable,
        "why": why,
        "rules": [_rule_fields(rule, problems) for rule in rules],
    }


def _file_of(app: App, scope: str, layers: Sequence[SettingsLayer]) -> tuple[str, bool, str]:
    if scope in ("managed", "command line"):
        return (layers[0].source if layers else scope), False, f"rules of the {scope} cannot be changed here"
    try:
        return str(rule_file(app.locations, scope)), True, ""
    except UsageError as error:
        return (layers[0].source if layers else ""), False, str(error)


def _rule_fields(rule: Rule, problems: dict[int, str]) -> Fields:
    file, _, line = rule.written_in.rpartition(":")
    known = line.isdecimal()
    return {
        "kind": rule.kind,
        "rule": rule.text,
        "file": file if known else rule.written_in,
        "line": int(line) if known else None,
        "written_in": rule.written_in,
        "problem": problems.get(id(rule), ""),
    }


def _problem_fields(problem: SkillProblem) -> Fields:
    return {"file": str(problem.file), "line": problem.line, "message": problem.text, "fatal": problem.fatal}


def _skill_fields(skill: Skill) -> Fields:
    try:
        body, problem = skill.body(), ""
    except (CallwrightError, OSError, ValueError) as error:
        body, problem = "", str(error)
    fields = ("name", "description", "kind", "scope", "when_to_use", "model", "fork")
    more = {"file": str(skill.file), "body": body, "problems": [problem] if problem else []}
    return {**{name: getattr(skill, name) for name in fields}, **more, "allowed_tools": list(skill.allowed_tools)}


def _rule_kind(text: str) -> RuleKind:
    for kind in _KINDS:
        if text == kind:
            return kind
    raise ApiError(400, "invalid", f"expected allow, ask or deny, got {text!r}")


def _texts(given: Any) -> list[str]:
    if not isinstance(given, (list, tuple)) or not all(isinstance(each, str) for each in cast("Sequence[Any]", given)):
        raise ApiError(400, "invalid", "expected a list of rules")
    return [str(each) for each in cast("Sequence[Any]", given)]
