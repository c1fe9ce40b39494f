"""Serving over standard input and output, and `serve`, which serves a registry in one call."""

import asyncio
import json
import logging
import os
import stat
from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager
from typing import Any, cast

import mcp_types as types
from mcp import MCPError
from mcp.server.stdio import stdio_server
from mcp_types import CLIENT_CAPABILITIES_META_KEY, PROTOCOL_VERSION_META_KEY
from mcp_types.version import MODERN_PROTOCOL_VERSIONS
from pydantic import ValidationError
from pydantic_core import from_json

from callwright.core.errors import describe_raised
from callwright.core.json import read_object
from callwright.executor.executor import Executor
from callwright.mcp.fast_path import PipeFastPath, is_request_id
from callwright.mcp.lines import LineReader, LineWriter, TappedPipe
from callwright.registry.catalog import Toolset
from callwright.serve.clients import CallRequest, read_request, read_response, requested_log_level
from callwright.serve.gateway import DEFAULT_LISTING, Gateway, ListingOptions
from callwright.serve.http import HttpOptions, serve_http
from callwright.skills.loader import Skills
from callwright.system.piped_process import take_standard_streams

_log = logging.getLogger("callwright")
_ASKABLE = frozenset({"elicitation", "sampling", "roots"})


class PipeCaller:
    """A client at the other end of a pipe, during one of its calls."""

    key = ""
    known = True
    reachable = True

    def __init__(
        self, fast_path: PipeFastPath, meta: Mapping[str, Any], greeted: types.ClientCapabilities | None
    ) -> None:
        self._fast_path = fast_path
        self._meta = meta
        self._initialized = greeted
        self._token: object = meta.get("progressToken")
        self.wants_progress = self._token is not None
        self.modern = meta.get(PROTOCOL_VERSION_META_KEY) in MODERN_PROTOCOL_VERSIONS

    @property
    def can_answer(self) -> bool:
        declared = self._meta.get(CLIENT_CAPABILITIES_META_KEY) if self.modern else None
        return isinstance(declared, dict) and not _ASKABLE.isdisjoint(cast("dict[str, Any]", declared))

    @property
    def capabilities(self) -> types.ClientCapabilities | None:
        """The capabilities it declares, parsed only when needed: most calls ask nothing."""
        declared = self._meta.get(CLIENT_CAPABILITIES_META_KEY)
        try:
            return types.ClientCapabilities.model_validate(declared) if self.modern else self._initialized
        except ValidationError:
            return None

    @property
    def log_level(self) -> str | None:
        return requested_log_level(self._meta, modern=self.modern)

    async def progress(self, done: float, total: float | None, message: str | None) -> None:
        fields = {"progressToken": self._token, "progress": done, "total": total, "message": message}
        params = {name: value for name, value in fields.items() if value is not None}
        self._fast_path.send({"method": "notifications/progress", "params": params})
        await self._fast_path.drain()  # a client that reads slowly must not fill our memory

    async def log(self, level: types.LoggingLevel, data: Any, logger: str | None) -> None:
        params = {"level": level, "data": data, **({"logger": logger} if logger else {})}
        self._fast_path.send({"method": "notifications/message", "params": params})
        await self._fast_path.drain()

    async def send(self, request: types.InputRequest) -> types.InputResponse:
        asked = request.model_dump(mode="json", by_alias=True, exclude_none=True)
        return read_response(request, await self._fast_path.request(asked["method"], asked.get("params", {})))


class CallFastPath:
    """Answers `tools/call` by itself. What is out of the ordinary it leaves to the SDK, which knows what to say."""

    def __init__(self, gateway: Gateway, writer: asyncio.StreamWriter) -> None:
        self._gateway = gateway
        self._fast_path = PipeFastPath(writer)
        self._running: dict[Any, asyncio.Task[None]] = {}
        self._cancelled: set[asyncio.Task[None]] = set()
        self._stopping = False
        self._capabilities: types.ClientCapabilities | None = None
        self._initialized = False

    def take(self, line: bytes) -> bool:
        """Handle a line with a call, a cancellation or a response to us; False leaves it to the SDK."""
        message: object = from_json(line)
        if not isinstance(message, dict):
            return False
        fields = cast("dict[str, Any]", message)
        params = fields.get("params")
        given = cast("dict[str, Any]", params) if isinstance(params, dict) else {}
        match fields.get("method"):
            case "tools/call":
                return self._start_call(fields.get("id"), given)
            case "notifications/cancelled":
                return self._cancel_call(given.get("requestId"))
            case "initialize":
                self._read_capabilities(given)
                return False
            case None:
                return self._fast_path.busy and self._fast_path.take(fields)
            case _:
                return False

    def _read_capabilities(self, params: Mapping[str, Any]) -> None:
        try:
            self._capabilities = types.ClientCapabilities.model_validate(params.get("capabilities") or {})
            self._initialized = True
        except ValidationError:  # the SDK reports it
            self._initialized = False

    def _start_call(self, number: Any, params: dict[str, Any]) -> bool:
        meta = params.get("_meta")
        stamps = cast("dict[str, Any]", meta) if isinstance(meta, dict) else {}
        version = stamps.get(PROTOCOL_VERSION_META_KEY)
        if not is_request_id(number):  # the SDK reports it
            return False
        if number in self._running:  # two answers with one id could not be told apart
            self._refuse(number, types.INVALID_REQUEST, f"a call with the id {number!r} is running")
            return True
        if self._stopping:  # nothing would wait for the end of the call
            self._refuse(number, types.INTERNAL_ERROR, "the server is stopping")
            return True
        if version not in MODERN_PROTOCOL_VERSIONS and (version is not None or not self._initialized):
            return False
        call = _read(params)
        if call is None:
            return False
        task = asyncio.create_task(self._answer(number, call, PipeCaller(self._fast_path, stamps, self._capabilities)))
        self._running[number] = task
        task.add_done_callback(lambda _: self._forget(number, task))
        return True

    def _forget(self, number: Any, task: "asyncio.Task[None]") -> None:
        del self._running[number]
        self._cancelled.discard(task)

    async def _answer(self, number: Any, call: CallRequest, caller: PipeCaller) -> None:
        try:
            result = await self._gateway.call(caller, call)
            if isinstance(result, types.InputRequiredResult):
                result = result.model_dump(mode="json", by_alias=True, exclude_none=True)
            self._fast_path.send({"id": number, "result": result})
        except MCPError as error:
            self._fast_path.send({"id": number, "error": error.error.model_dump(exclude_none=True)})
        except Exception as error:  # noqa: BLE001 - every request has an answer
            _log.exception("a call could not be answered")
            self._refuse(number, types.INTERNAL_ERROR, f"the call could not be answered: {describe_raised(error)}")

    def refuse(self, line: bytes, error: ValueError) -> None:
        """Answer a request that is not a valid message, or the requests of a batch, if their ids can be read.

        The standard library reads what the strict parser rejects, such as half of a surrogate pair.
        """
        try:
            found: Any = json.loads(line)
        except (ValueError, RecursionError):
            return
        if isinstance(found, list):
            sent, why = (
                cast("list[object]", found)[:_MOST_BATCHED],
                "batches are not read, send a line for each message",
            )
        else:
            sent, why = [cast("object", found)], str(error).splitlines()[0][:200]
        code = types.INVALID_REQUEST if isinstance(error, ValidationError) else types.PARSE_ERROR
        for fields in map(read_object, sent):
            if "method" in fields and is_request_id(number := fields.get("id")):
                self._refuse(number, code, f"the request is not valid: {why}")

    def _refuse(self, number: int | str, code: int, message: str) -> None:
        self._fast_path.send({"id": number, "error": {"code": code, "message": message}})

    def _cancel_call(self, number: Any) -> bool:
        task = self._running.get(number) if is_request_id(number) else None
        if task is not None:
            self._cancel(task)
        return task is not None

    def _cancel(self, task: "asyncio.Task[None]") -> None:
        """Cancel a call, once: a second cancellation would end what a tool does to clean up."""
        if task not in self._cancelled:
            self._cancelled.add(task)
            task.cancel()

    async def stop(self) -> None:
        """Cancel the running calls and wait for their end; further ones are refused."""
        self._stopping = True
        tasks = list(self._running.values())
        for task in tasks:
            self._cancel(task)
        await asyncio.gather(*tasks, return_exceptions=True)
        self._fast_path.close()


def _read(params: dict[str, Any]) -> CallRequest | None:
    """Read a request; None for one that the SDK must reject."""
    name, arguments = params.get("name"), params.get("arguments")
    if "requestState" not in params and isinstance(name, str) and (arguments is None or isinstance(arguments, dict)):
        return CallRequest(name, cast("dict[str, Any]", arguments or {}))
    try:
        return read_request(types.CallToolRequestParams.model_validate(params, by_name=False))
    except ValidationError:
        return None


_MESSAGE_BYTES = 16 * 1024 * 1024
_MOST_BATCHED = 100
"""How many requests of a batch are answered."""


async def serve_stdio(gateway: Gateway) -> None:
    """Serve until the client closes our input.

    Args:
        gateway: What to serve.
    """
    streams = _pipes(gateway) if _is_pipe(0) and _is_pipe(1) else stdio_server()
    async with gateway.running(), streams as (reader, writer):
        options = gateway.server.create_initialization_options()
        await gateway.server.run(reader, writer, options)  # type: ignore[arg-type] - our streams have what it uses


def _is_pipe(descriptor: int) -> bool:
    mode = os.fstat(descriptor).st_mode  # asyncio cannot wait for regular files
    return stat.S_ISFIFO(mode) or stat.S_ISSOCK(mode)


@asynccontextmanager
async def _pipes(gateway: Gateway) -> AsyncGenerator[tuple[LineReader, LineWriter], None]:
    """Read and write the pipes directly: the SDK hands every line to a thread, which costs more than the call."""
    wire_in, wire_out = take_standard_streams()
    loop = asyncio.get_running_loop()
    reader = asyncio.StreamReader(limit=_MESSAGE_BYTES)
    outgoing, protocol = await loop.connect_write_pipe(
        lambda: asyncio.StreamReaderProtocol(asyncio.StreamReader()), os.fdopen(wire_out, "wb")
    )
    writer = asyncio.StreamWriter(outgoing, protocol, None, loop)
    fast_path = CallFastPath(gateway, writer)
    incoming, _ = await loop.connect_read_pipe(lambda: TappedPipe(reader, fast_path.take), os.fdopen(wire_in, "rb"))
    try:
        yield LineReader(reader, fast_path.take, refuse=fast_path.refuse), LineWriter(writer)
    finally:
        await fast_path.stop()
        incoming.close()
        outgoing.close()


async def serve(
    registry: Toolset,
    executor: Executor,
    *,
    http: HttpOptions | None = None,
    listing: ListingOptions = DEFAULT_LISTING,
    skills: Skills | None = None,
) -> None:
    """Serve a registry's tools to MCP clients until the client closes the pipes or the task is cancelled.

    Args:
        registry: The tools.
        executor: Runs the calls.
        http: Serve over HTTP; standard input and output by default.
        listing: Which tools are listed when there are many.
        skills: Offered as prompts for users and as the tool `skill` for models.
    """
    gateway = Gateway(registry, executor, listing=listing, skills=skills)
    if http is None:
        await serve_stdio(gateway)
    else:
        await serve_http(gateway, http)
