"""The program that drives a headless run, such as one written with the Claude Agent SDK: its requests and approvals."""

import os
from collections.abc import Callable, Mapping
from typing import Any, cast

from callwright.agent.compaction import estimate_message_tokens
from callwright.app.app import App
from callwright.app.run_context import HostProgram
from callwright.cli.headless.approvals import ExternalApprovals, decline_all
from callwright.cli.headless.control import ControlChannel, ControlError, Message
from callwright.cli.render.text import print_notice
from callwright.core.content import estimate_tokens
from callwright.core.errors import UsageError
from callwright.hooks.shell.config import EVENTS, ShellHook
from callwright.hooks.shell.process import HookRun
from callwright.policy.modes import mode_named
from callwright.tool.base import Cancellation

_INITIALIZE_FIELDS = frozenset({"subtype", "hooks", "agents", "skills", "sdkMcpServers"})
_STATES = {"ready": "connected", "connecting": "pending", "waiting": "failed", "signing in": "needs-auth"}


class Host:
    """Serves the requests of the driving program, and asks it for approvals.

    Args:
        channel: The open channel.
        initialize: The `initialize` request.
        asks: Whether the program answers approval requests (`--permission-prompt-tool stdio`).
    """

    def __init__(self, channel: ControlChannel, initialize: Message, *, asks: bool) -> None:
        self.channel = channel
        self.cancellation = Cancellation()
        """Stops the run under way."""
        self._request_id = str(initialize.get("request_id"))
        self._request = cast("Message", initialize["request"])
        self._asks = asks
        self._app: App | None = None
        self._session_id = ""
        self.trace_to: Callable[[ShellHook, HookRun | None], None] | None = None
        """Receives the starts and ends of hooks."""

    @property
    def program(self) -> HostProgram:
        """What the program provides to the app.

        Raises:
            UsageError: A part of the request has the wrong form.
        """
        given = self._request
        unread = sorted(given.keys() - _INITIALIZE_FIELDS)
        if unread:
            print_notice(f"initialize: {', '.join(unread)} not supported, ignored")
        skills = given.get("skills")
        servers: object = given.get("sdkMcpServers") or []
        return HostProgram(
            hooks=_host_hooks(given.get("hooks")),
            call_back=self._call_back,
            relay=lambda name: lambda message: self._relay(name, message),
            servers=tuple(_texts("sdkMcpServers", servers)),
            agents=_object("agents", given.get("agents")),
            skills=None if skills is None else tuple(_texts("skills", skills)),
            trace=self._trace,
        )

    def connect(self, app: App, session_id: str) -> None:
        """Answer `initialize`, and serve requests about this app from now on."""
        self._app, self._session_id = app, session_id
        ask = ExternalApprovals(app, session_id, self.channel.request, self.interrupt)
        app.agent.ask = ask if self._asks else decline_all
        self.channel.respond(self._request_id, self._describe(app))
        self.channel.serve(self.handle)

    def refuse(self, reason: str) -> None:
        """Answer `initialize` with an error: the run cannot begin."""
        self.channel.refuse(self._request_id, reason)

    def _describe(self, app: App) -> Message:
        skills = [skill for skill in app.skills if skill.user_invocable]
        return {
            "commands": [{"name": each.name, "description": each.description, "argumentHint": ""} for each in skills],
            "agents": [{"name": name, "description": each.description} for name, each in app.tasks.definitions.items()],
            "output_style": "default",
            "available_output_styles": ["default"],
            "models": [{"value": app.agent.provider.model, "displayName": app.agent.provider.model, "description": ""}],
            "account": {},
            "pid": os.getpid(),
            # a hook of the program that fails blocks what it guards, unless it says otherwise
            "hook_on_failure_supported": True,
            "hooks_applied": True,
        }

    async def handle(self, request: Message) -> Mapping[str, Any]:
        """Answer one request.

        Raises:
            UsageError: The request is not supported or not valid; the message says which.
        """
        app = self._app
        if app is None:
            raise UsageError("the run has not begun")
        match request:
            case {"subtype": "interrupt"}:
                self.interrupt()
                return {}
            case {"subtype": "set_permission_mode", "mode": str(mode)}:
                app.switch.mode = mode_named(mode)
                return {"mode": app.switch.mode}
            case {"subtype": "set_model", **rest}:
                self._set_model(app, rest.get("model"))
                return {"model": app.agent.provider.model}
            case {"subtype": "mcp_status"}:
                return {"mcpServers": _server_states(app)}
            case {"subtype": "get_context_usage"}:
                return await self._context_usage(app)
            case {"subtype": "initialize"}:
                raise UsageError("initialize is the first message of a run and cannot be repeated")
            case {"subtype": kind}:
                raise UsageError(f"the control request {kind!r:.80} is not supported or lacks a field")
            case _:
                raise UsageError("a control request needs a subtype")

    def interrupt(self) -> None:
        """Stop the run under way."""
        self.cancellation.cancel("interrupted")

    def _set_model(self, app: App, name: object) -> None:
        models = app.skill_service.models
        if name is None or name == "default":
            chosen = models.first
        elif isinstance(name, str) and name:
            chosen = models.get(name)
        else:
            raise UsageError(f"set_model: expected the name of a model, got {name!r:.80}")
        app.use_model(chosen)

    async def _context_usage(self, app: App) -> Message:
        recorded = await app.agent.sessions.find(self._session_id) is not None
        messages = await app.agent.messages(self._session_id) if recorded else []
        sizes = {
            "System prompt": estimate_tokens(app.agent.system),
            "Tools": app.agent.registry.snapshot().definition_tokens,
            "Messages": sum(map(estimate_message_tokens, messages)),
        }
        total = sum(sizes.values())
        most = app.agent.compaction.at_tokens if app.agent.compaction is not None else 0
        return {
            "categories": [{"name": name, "tokens": tokens, "color": ""} for name, tokens in sizes.items()],
            "totalTokens": total,
            "maxTokens": most,
            "rawMaxTokens": most,
            "percentage": round(100 * total / most, 1) if most else 0.0,
            "model": app.agent.provider.model,
            "isAutoCompactEnabled": app.agent.compaction is not None,
            "memoryFiles": [],
            "mcpTools": [],
            "agents": [],
            "gridRows": [],
        }

    async def _call_back(self, callback_id: str, payload: Mapping[str, object]) -> Mapping[str, object]:
        used_by = payload.get("tool_use_id")
        request = {"subtype": "hook_callback", "callback_id": callback_id, "input": payload, "tool_use_id": used_by}
        return await self.channel.request(request)

    async def _relay(self, server: str, message: Message) -> Message:
        request = {"subtype": "mcp_message", "server_name": server, "message": message}
        answer: object = (await self.channel.request(request)).get("mcp_response")
        if not isinstance(answer, dict):
            raise ControlError(f"the server {server} gave no answer")
        return cast("Message", answer)

    def _trace(self, hook: ShellHook, run: HookRun | None) -> None:
        if self.trace_to is not None:
            self.trace_to(hook, run)


def _host_hooks(given: object) -> dict[str, Any]:
    """Return the program's hooks in the form of the setting `hooks`, with callback ids as commands."""
    found: dict[str, Any] = {}
    for event, matchers in _object("hooks", given).items():
        if not isinstance(matchers, list):
            raise UsageError(f"initialize: hooks.{event} must be a list, got {matchers!r:.80}")
        found[event] = [_host_matcher(event, each) for each in cast("list[object]", matchers)]
    return found


def _host_matcher(event: str, given: object) -> Message:
    matcher = _object(f"hooks.{event}", given)
    ids = _texts(f"hooks.{event}.hookCallbackIds", matcher.get("hookCallbackIds", []))
    more: Message = {}
    if matcher.get("timeout") is not None:
        more["timeout"] = matcher["timeout"]
    if matcher.get("onFailure") is not None:
        # any other word may be a stricter one of a newer version
        more["onError"] = "proceed" if matcher["onFailure"] == "continue" else "block"
    if event not in EVENTS:
        print_notice(f"initialize: hooks at {event} are never run")
    return {"matcher": matcher.get("matcher") or "", "hooks": [{"command": each, **more} for each in ids]}


def _object(name: str, given: object) -> Message:
    if given is not None and not isinstance(given, dict):
        raise UsageError(f"initialize: {name} must be an object, got {given!r:.80}")
    return cast("Message", given or {})


def _texts(name: str, given: object) -> list[str]:
    texts = cast("list[Any]", given) if isinstance(given, list) else [None]
    if not all(isinstance(each, str) and each for each in texts):
        raise UsageError(f"initialize: {name} must be a list of texts, got {given!r:.80}")
    return cast("list[str]", texts)


def _server_states(app: App) -> list[Message]:
    servers = [] if app.servers is None else app.servers.status()
    return [
        {
            "name": each.name,
            "status": _STATES.get(each.condition, "disabled"),
            **({"error": each.reason} if each.reason else {}),
            **({"serverInfo": {"name": each.server, "version": ""}} if each.server else {}),
            "tools": [{"name": name} for name in each.tools],
        }
        for each in servers
    ]
