"""Tools that run in a server: its tools, resources, prompts and sign-in."""

import asyncio
import re
import time
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import replace
from typing import Any
from urllib.parse import unquote

import mcp_types as types
from mcp import Client, MCPError

from callwright.core.access import Access, ReadPath, ReadResource, UseTool
from callwright.core.content import Output
from callwright.core.errors import Denied, InvalidArguments, ToolFailed, UsageError
from callwright.core.json import Json, JsonObject, compact
from callwright.core.spec import Limits, ToolSpec
from callwright.core.uri import uri_readings
from callwright.mcp.connection import Connection
from callwright.mcp.elicitation import ask_person
from callwright.mcp.listing import Offered, resources_of, texts_of
from callwright.mcp.pinned_tools import digest_of
from callwright.mcp.translate import (
    claims_of,
    clean_description,
    contents_of,
    definition_of,
    messages_of,
    output_of,
    server_metadata,
    spec_of,
)
from callwright.tool.base import ToolContext
from callwright.tool.foreign_schema import ForeignSchema
from callwright.tool.schema_tool import SchemaInvocation, SchemaTool

_MAX_ROUNDS = 10
_PROGRESS_SECONDS = 0.05
_READS = types.ToolAnnotations(read_only_hint=True)
_FILE = re.compile(r"file:(?://(?:localhost)?(?=/)|(?!//))(/.*)", re.IGNORECASE | re.DOTALL)


class RemoteTool(SchemaTool):
    """A tool that runs in a server. Its arguments are validated here first, against the server's own schema."""

    def __init__(
        self, offered: Offered, name: str, connection: Connection, answerer: str, *, compile_now: bool
    ) -> None:
        self._compile_now = compile_now
        self._offered = offered.tool
        super().__init__(spec_of(offered.tool, name, connection.config, offered.digest), self._call)
        self._output = None
        if offered.tool.output_schema is not None:
            about = f"{name}: output_schema"
            self._output = ForeignSchema(offered.tool.output_schema, about=about, compile_now=compile_now)
        self.digest = offered.digest
        self.claimed = claims_of(offered.tool.annotations, trusted=True)
        """The server's annotations, whether or not the server is trusted."""
        self.held = False
        """Whether the server changed it after it was accepted, and the user has not reviewed it since."""
        self.release: Callable[[], None] = lambda: None
        """Looks whether the user has accepted it meanwhile, and then sets `held` to false."""
        self._tool = offered.tool.name
        self._connection = connection
        self._answerer = answerer

    @property
    def review(self) -> tuple[str, ...]:
        """Its whole definition as it is now, for the user: any text in it reaches the model."""
        members = definition_of(self._offered).items()
        return tuple(f"{key}: {value if isinstance(value, str) else compact(value)}" for key, value in members)

    def bind(self, arguments: JsonObject | str | bytes) -> SchemaInvocation:
        """Bind, unless the user has to review the tool or sign in to its server first."""
        self._connection.check()
        if self.held:
            self.release()
        if self.held:
            raise Denied(describe_hold(self._connection.config.name, self.spec.name))
        return super().bind(arguments)

    def validate(self, arguments: dict[str, Any]) -> None:
        """Validate small arguments; larger ones are validated before they are sent, where the event loop stays free."""
        if not self._input.is_small(arguments):
            return
        try:
            fault = self._input.check_small(arguments)
        except UsageError as error:  # compiled only now
            raise ToolFailed(str(error)) from error
        if fault:
            raise InvalidArguments(fault)

    def _check_schema(self) -> None:
        about = f"{self.spec.name}: input_schema"
        schema = {**self._offered.input_schema, "type": "object"}  # not thawed: a copy of thousands takes seconds
        self._input = ForeignSchema(schema, about=about, compile_now=self._compile_now)

    async def _call(self, arguments: dict[str, Any], context: ToolContext) -> Output:
        if not self._input.is_small(arguments):
            await self._validate_large(arguments)
        async with self._connection.session(context) as client:
            try:
                result = await self._send_call(client, arguments, context)
            except MCPError as error:
                result = await self._retry_refused(error, client, arguments, context)
        if not result.is_error and self._output is not None:
            await self._verify(result, self._output)
        return output_of(result)

    async def _validate_large(self, arguments: dict[str, Any]) -> None:
        try:
            fault = await self._input.check(arguments)
        except UsageError as error:
            raise ToolFailed(str(error)) from error
        if fault:
            raise InvalidArguments(fault)

    def _refuse_if_changed(self) -> None:
        """Raise `Denied` if the tool is no longer the one that the model saw and the policies judged."""
        listing = self._connection.listing
        now = listing.tools.get(self._tool) if listing is not None else None
        if listing is not None and (now is None or now.digest != self.digest):
            how = "withdrew" if now is None else "changed"
            raise Denied(f"the server {how} {self.spec.name} since it was shown to you; check your list of tools again")

    async def _send_call(self, client: Client, arguments: dict[str, Any], context: ToolContext) -> types.CallToolResult:
        """Send the call, and answer the server's questions until it has a result."""
        report = _ProgressThrottle(context)

        async def send(given: types.InputResponses | None, state: str | None) -> Any:
            # only now: a server that had to be started again, perhaps while the user was asked, may list other tools
            self._refuse_if_changed()
            params = types.CallToolRequestParams(
                name=self._tool, arguments=arguments, input_responses=given, request_state=state
            )
            return await self._connection.call(client, params, report)

        return await send_until_answered(send, self._connection, context)

    async def _retry_refused(
        self, error: MCPError, client: Client, arguments: dict[str, Any], context: ToolContext
    ) -> types.CallToolResult:
        """Handle two errors with a remedy: an outdated tool definition, or a URL that the user must visit first."""
        if error.code == types.HEADER_MISMATCH:
            await self._connection.refresh()
            return await self._send_call(client, arguments, context)
        if error.code != types.URL_ELICITATION_REQUIRED:
            raise error
        required = types.ElicitationRequiredErrorData.model_validate(error.data)
        for elicitation in required.elicitations:
            reply = await ask_person(elicitation, context, self._answerer)
            if reply.action != "accept":
                raise ToolFailed(f"{error.message}: the user must visit {elicitation.url} first")
        return await self._send_call(client, arguments, context)

    async def _verify(self, result: types.CallToolResult, schema: ForeignSchema) -> None:
        """Raise `ToolFailed` for a result that does not match the server's own output schema."""
        content = result.structured_content
        if content is None and "structured_content" not in result.model_fields_set:
            raise ToolFailed("the server declares structured content and sent none")
        try:
            fault = await schema.check(content)
        except UsageError as error:  # found only now that the schema is not valid
            raise ToolFailed(str(error)) from error
        if fault:
            why = fault.removeprefix("arguments: ")[:300]
            raise ToolFailed(f"the server sent a result that does not match its own schema: {why}")


async def send_until_answered(
    send: Callable[[types.InputResponses | None, str | None], Awaitable[Any]],
    connection: Connection,
    context: ToolContext,
) -> Any:
    """Repeat a request with the answers the server asks for, until it returns a result."""
    result = await send(None, None)
    for number in range(_MAX_ROUNDS):
        if not isinstance(result, types.InputRequiredResult):
            return result
        given = None
        if result.input_requests:
            given = await connection.responses(result.input_requests, context)
        else:
            await asyncio.sleep(min(0.05 * 2**number, 1.0))  # it asks only to be called again, so back off
        result = await send(given, result.request_state)
    if isinstance(result, types.InputRequiredResult):
        raise ToolFailed(f"{connection.config.name} asked for input more than {_MAX_ROUNDS} times")
    return result


class _ProgressThrottle:
    """Passes progress on at a limited rate, so that a server cannot flood the observers."""

    def __init__(self, context: ToolContext) -> None:
        self._context = context
        self._next = 0.0
        self._ended = False

    async def report(self, progress: float, total: float | None, message: str | None) -> None:
        """Report progress as the SDK's callback."""
        self(progress, total, message)

    def __call__(self, progress: float, total: float | None, message: str | None) -> None:
        now, ends = time.monotonic(), progress == total
        if not _is_usable(progress) or (now < self._next and (self._ended or not ends)):
            return
        self._next, self._ended = now + _PROGRESS_SECONDS, ends
        total = total if _is_usable(total) else None
        fields: dict[str, Json] = {"progress": progress}
        fields |= {} if total is None else {"total": total}
        self._context.report(fields | ({} if message is None else {"message": message}))


def _is_usable(value: object) -> bool:
    """Whether a value is a number that can be passed on; the parser of messages takes NaN and infinity too."""
    return isinstance(value, (int, float)) and abs(value) < 1 << 63


def resource_tools(
    names: Mapping[str, str], connection: Connection, accepts: Callable[[Mapping[str, Mapping[str, str]]], bool]
) -> list[SchemaTool]:
    """Create `list_resources` and `read_resource` for a server with resources.

    Args:
        names: The tools' full names.
        connection: The connection to the server.
        accepts: Whether no accepted text of a resource has changed in a listing.
    """

    async def list_resources(arguments: dict[str, Any], context: ToolContext) -> object:
        async with connection.session(context) as client:
            found = await resources_of(client, [])
        if not accepts(texts_of(found)):  # listed on demand, so a change may not have been announced
            await connection.refresh()
            raise Denied(describe_hold(connection.config.name, names["list_resources"]))
        return found

    async def read(arguments: dict[str, Any], context: ToolContext) -> Output:
        async with connection.session(context) as client:

            async def send(given: types.InputResponses | None, state: str | None) -> Any:
                return await client.session.read_resource(
                    arguments["uri"], input_responses=given, request_state=state, allow_input_required=True
                )

            return contents_of((await send_until_answered(send, connection, context)).contents)

    server = connection.config.name
    uri = {"uri": {"type": "string", "description": "As list_resources gives it, or made from one of its templates."}}
    return [
        _make_server_tool(
            names["list_resources"],
            f"List what can be read from the MCP server {server}.",
            {},
            connection,
            list_resources,
        ),
        _make_server_tool(
            names["read_resource"],
            f"Read a resource of the MCP server {server}.",
            uri,
            connection,
            read,
            touches=lambda arguments: list_resource_accesses(str(arguments["uri"])),
        ),
    ]


def list_resource_accesses(uri: str) -> list[Access]:
    """Return what rules are compared with when a resource is read: a `file:` address is judged as the file it names."""
    files = [_FILE.fullmatch(reading) for reading in uri_readings(uri)]
    named = [f"/{unquote(found[1]).lstrip('/')}" for found in files if found]
    if not files or len(named) < len(files):  # also where a server could read it as something else
        return [ReadResource(uri)]
    return [ReadPath(path) for path in dict.fromkeys(named)]


def prompt_tool(name: str, connection: Connection, prompts: tuple[types.Prompt, ...]) -> SchemaTool:
    """Create `get_prompt` for a server with prompts."""

    async def get(arguments: dict[str, Any], context: ToolContext) -> Output:
        async with connection.session(context) as client:

            async def send(given: types.InputResponses | None, state: str | None) -> Any:
                return await client.session.get_prompt(
                    arguments["name"],
                    arguments.get("arguments"),
                    input_responses=given,
                    request_state=state,
                    allow_input_required=True,
                )

            return messages_of(await send_until_answered(send, connection, context))

    known = "; ".join(prompt_line(prompt) for prompt in prompts)
    about = clean_description(f"Get a prompt the MCP server {connection.config.name} has prepared: {known}", "")
    properties: dict[str, Json] = {
        "name": {"type": "string", "enum": [prompt.name for prompt in prompts]},
        "arguments": {"type": "object", "additionalProperties": {"type": "string"}},
    }
    return _make_server_tool(name, about, properties, connection, get, required=("name",))


class HeldTool(SchemaTool):
    """Stands for a tool whose texts the server changed, until the user has reviewed and accepted them.

    Args:
        tool: The tool that is held.
        server: The server's name.
        pinned_as: The name under which its texts are pinned.
        digests: The texts as they are now.
        review: What changed, for the user.
    """

    def __init__(
        self, tool: SchemaTool, server: str, *, pinned_as: str, digests: Mapping[str, str], review: tuple[str, ...]
    ) -> None:
        about = f"The MCP server {server} changed its texts. It cannot be used until the user has reviewed them."
        super().__init__(replace(tool.spec, description=about, input_schema={"type": "object"}), tool.handler)
        self.pinned_as = pinned_as
        self.digests = digests
        self.digest = digest_of(digests)
        """Of all the texts, of which `review` shows those that changed."""
        self.review = review
        self.release: Callable[[], None] = lambda: None
        """Looks whether the user has accepted the texts meanwhile, and then puts the tool itself in this place."""
        self.held = True
        self._server = server

    def bind(self, arguments: JsonObject | str | bytes) -> SchemaInvocation:
        self.release()
        if not self.held:
            raise Denied(f"the user has accepted {self.spec.name} just now; call it again")
        raise Denied(describe_hold(self._server, self.spec.name))


def describe_hold(server: str, tool: str) -> str:
    """Say why a tool whose definition or texts have changed cannot be called."""
    return (
        f"the MCP server {server} changed {tool} after it was accepted;"
        " the user has to review and accept it again before it can be called"
    )


def prompt_line(prompt: types.Prompt) -> str:
    """Describe a prompt in one line."""
    takes = ", ".join(f"{item.name}{'' if item.required else '?'}" for item in prompt.arguments or ())
    return f"{prompt.name}({takes}){f': {prompt.description}' if prompt.description else ''}"


def _make_server_tool(
    name: str,
    description: str,
    properties: JsonObject,
    connection: Connection,
    handler: Callable[[dict[str, Any], ToolContext], Awaitable[object]],
    *,
    required: tuple[str, ...] | None = None,
    touches: Callable[[JsonObject], list[Access]] | None = None,
) -> SchemaTool:
    config = connection.config
    needed = list(properties) if required is None else list(required)
    schema: JsonObject = {"type": "object", "properties": properties, "required": needed, "additionalProperties": False}
    spec = ToolSpec(
        name,
        description,
        schema,
        annotations=claims_of(_READS, trusted=config.trusted),
        limits=Limits(config.seconds),
        group=f"mcp:{config.name}",
        origin=f"mcp:{config.name}",
        metadata=server_metadata(config),
    )
    if touches is None:
        return SchemaTool(spec, handler)
    use = UseTool(name, spec.annotations.effect)  # the server may do more than it is asked for
    return SchemaTool(spec, handler, accesses=lambda arguments: [use, *touches(arguments)])


class SignInTool(SchemaTool):
    """Replaces the tools of a server until the user has signed in."""

    def __init__(self, name: str, connection: Connection) -> None:
        config = connection.config
        about = f"Sign in to the MCP server {config.name}; its tools can be used after that."
        group = f"mcp:{config.name}"
        spec = ToolSpec(name, about, {"type": "object"}, group=group, origin=group, metadata=server_metadata(config))
        super().__init__(spec, _confirm_sign_in)
        self._connection = connection

    def bind(self, arguments: JsonObject | str | bytes) -> SchemaInvocation:
        self._connection.check()
        return super().bind(arguments)


async def _confirm_sign_in(arguments: dict[str, Any]) -> str:
    return "signed in; the server's tools are in your list from the next turn on"
