"""`ServerLink`: one session with a server until it is lost; and the relay to a server inside the driving program."""

import asyncio
import logging
import random
from collections.abc import AsyncGenerator
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from pathlib import Path
from types import TracebackType
from typing import Any, Protocol

import anyio
import httpx2
import mcp
import mcp_types as types
from anyio.streams.memory import MemoryObjectReceiveStream, MemoryObjectSendStream
from mcp import Client, MCPError
from mcp.client import ClientRequestContext, IncomingMessage
from mcp.client.auth import TokenStorage
from mcp.shared.message import SessionMessage
from pydantic import ValidationError

from callwright import __version__
from callwright.mcp.config import Relay, ServerConfig
from callwright.mcp.fast_path import PipeFastPath
from callwright.mcp.http import http_transport
from callwright.mcp.listing import Listing, ListingFilter, list_all
from callwright.mcp.oauth import SignIn, registered_port
from callwright.mcp.stdio import ServerProcess
from callwright.mcp.translate import ends_session, is_unreached, reason_of

_MOST_WAITING = 1_000
_log = logging.getLogger("callwright")


def _is_news(record: logging.LogRecord) -> bool:
    """Tell whether a record is not the SDK's traceback of a message that the server wrote wrongly.

    A program without logging has such tracebacks on its terminal, as many as the server likes. An invalid notification
    is ignored, and an invalid response fails its call with the reason. So does one that comes after a cancellation.
    """
    # other programs may have a logger of the name "client" too
    if record.exc_info is None or Path(mcp.__file__).parent not in Path(record.pathname).parents:
        return True
    return not isinstance(record.exc_info[1], (ValidationError, anyio.BrokenResourceError))


for _name in ("client", "mcp.client.streamable_http"):
    logging.getLogger(_name).addFilter(_is_news)


@asynccontextmanager
async def relay_transport(
    relay: Relay, listing_filter: ListingFilter
) -> AsyncGenerator[tuple[MemoryObjectReceiveStream[SessionMessage | Exception], "RelayWriter"], None]:
    """Open the transport; leaving it abandons the requests that have no answer yet."""
    answers, reader = anyio.create_memory_object_stream[SessionMessage | Exception](_MOST_WAITING)
    writer = RelayWriter(relay, answers, listing_filter)
    try:
        yield reader, writer
    finally:
        await writer.aclose()


class RelayWriter:
    """Sends each message to the relay, in a task of its own: answers may come in another order."""

    def __init__(
        self, relay: Relay, answers: MemoryObjectSendStream[SessionMessage | Exception], listing_filter: ListingFilter
    ) -> None:
        self._relay = relay
        self._answers = answers
        self._listing_filter = listing_filter
        self._tasks: set[asyncio.Task[None]] = set()

    async def send(self, item: SessionMessage, /) -> None:
        """Relay a message of the client."""
        message: dict[str, Any] = item.message.model_dump(by_alias=True, mode="json", exclude_none=True)
        task = asyncio.create_task(self._exchange(message))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _exchange(self, message: dict[str, Any]) -> None:
        number = message.get("id")
        try:
            answer = await self._relay(message)
            if number is None or "method" not in message:
                return  # a notification: its reply is only a receipt
            parsed = types.jsonrpc_message_adapter.validate_python(answer, by_name=False)
            if not isinstance(parsed, (types.JSONRPCResponse, types.JSONRPCError)) or parsed.id != number:
                raise ValueError(f"it is not the answer to {number!r}")
        except Exception as error:  # noqa: BLE001 - every request has an answer
            if number is None:
                return
            why = next(iter(str(error).splitlines()), "") or type(error).__name__
            fault = types.ErrorData(code=types.INTERNAL_ERROR, message=why[:500])
            parsed = types.JSONRPCError(jsonrpc="2.0", id=number, error=fault)
        with suppress(anyio.BrokenResourceError, anyio.ClosedResourceError):
            await self._answers.send(self._listing_filter.apply(SessionMessage(parsed)))

    async def aclose(self) -> None:
        """Abandon what has no answer yet."""
        for task in tuple(self._tasks):
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        await self._answers.aclose()

    async def __aenter__(self) -> "RelayWriter":
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, raised: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.aclose()


FIRST_DELAY = 0.5
LONGEST_DELAY = 60.0
_SETTLE_SECONDS = 0.05
_CLIENT = types.Implementation(name="callwright", version=__version__)
_CHANGES = (
    types.ToolListChangedNotification,
    types.PromptListChangedNotification,
    types.ResourceListChangedNotification,
)


class LinkListener(Protocol):
    """The owner of a link, notified of its changes."""

    def on_sign_in_needed(self) -> None:
        """Handle that the user has to sign in first."""
        ...

    async def on_listing(self, listing: Listing) -> None:
        """Handle a new listing."""
        ...

    def on_lost(self, reason: str) -> None:
        """Handle the end of the session."""
        ...

    async def on_elicitation(self, params: types.ElicitRequestParams) -> types.ElicitResult:
        """Answer a question that the server asks in the middle of a call."""
        ...


class ServerLink:
    """One session. `client` is set from when the server is ready until it is lost."""

    def __init__(
        self, config: ServerConfig, listener: LinkListener, tokens: TokenStorage, auth: httpx2.Auth | None
    ) -> None:
        self._config = config
        self._listener = listener
        self._tokens = tokens
        self._auth = auth
        self.client: Client | None = None
        self._listing_filter = ListingFilter()
        self._process = ServerProcess(config) if config.command else None
        self._sign_in: SignIn | None = None
        self._wake = asyncio.Event()
        self._stale = False
        self._lost = False

    @property
    def sign_in_url(self) -> str:
        """Where the user must sign in; empty when no sign-in is pending."""
        return self._sign_in.url if self._sign_in is not None else ""

    @property
    def fast_path(self) -> PipeFastPath | None:
        """The fast path for calls, which only pipes have."""
        return self._process.fast_path if self._process is not None else None

    @property
    def log(self) -> str:
        """The end of the server process's error output."""
        return self._process.log if self._process is not None else ""

    def why(self, error: Exception | None = None) -> str:
        """Return why the session ended; the exit of a process explains more than the error it caused."""
        reasons = [] if error is None else [self._reason(error)]
        if self._process is None:
            return "".join(reasons)
        if self._process.ended:
            reasons = []
        return "; ".join(filter(None, (*reasons, self._process.explain())))

    def _reason(self, error: Exception) -> str:
        if isinstance(error, TimeoutError):
            return f"it did not connect and list its tools within {self._config.connect_seconds:g} s"
        return reason_of(error)

    async def list_all(self, client: Client) -> Listing:
        """List everything the server offers."""
        return await list_all(client, self.fast_path, self._listing_filter)

    async def run(self) -> None:
        """Connect and stay until the server is lost; raises the error that prevents the connection."""
        async with AsyncExitStack() as stack:
            client = await self._client_of(stack)
            await self._connect(client, stack)
            stack.push_async_callback(_stop, self._watch(client))
            await self._follow(client)

    def lose(self, reason: str) -> None:
        """Give the session up; the owner of the link begins another."""
        self._lost, self.client = True, None
        self._listener.on_lost(reason)
        self._wake.set()

    def refresh(self) -> None:
        """Request a new listing."""
        self._stale = True
        self._wake.set()

    async def _client_of(self, stack: AsyncExitStack) -> Client:
        if self._process is not None:
            transport = self._process.transport()
        elif self._config.relay is not None:
            transport = relay_transport(self._config.relay, self._listing_filter)
        else:
            auth = self._auth or await self._sign_in_auth(stack)
            transport = http_transport(self._config, auth, self._listing_filter)
        return Client(
            transport,  # type: ignore[arg-type] - our streams have what the SDK uses of its own
            message_handler=self._on_message,
            elicitation_callback=self._on_elicitation,
            client_info=_CLIENT,
            cache=None,
        )

    async def _sign_in_auth(self, stack: AsyncExitStack) -> httpx2.Auth | None:
        """Return the OAuth sign-in, unless the entry has credentials of its own."""
        if self._config.headers_helper or any(name.lower() == "authorization" for name in self._config.headers):
            return None
        port = registered_port(await self._tokens.get_client_info())
        self._sign_in = SignIn(self._config, self._tokens, self._listener.on_sign_in_needed, port=port)
        stack.callback(self._sign_in.close)
        return self._sign_in.auth

    async def _on_message(self, message: IncomingMessage) -> None:
        if isinstance(message, _CHANGES):
            self.refresh()

    async def _on_elicitation(
        self, context: ClientRequestContext, params: types.ElicitRequestParams
    ) -> types.ElicitResult:
        return await self._listener.on_elicitation(params)

    async def _connect(self, client: Client, stack: AsyncExitStack) -> None:
        """Do the handshake and list everything; a pending sign-in extends the time limit."""
        async with asyncio.timeout(self._config.connect_seconds) as limit:
            extending = asyncio.create_task(self._extend_deadline(limit))
            try:
                await stack.enter_async_context(client)
                listing = await self.list_all(client)
            finally:
                extending.cancel()
        self.client, self._stale = client, False
        await self._listener.on_listing(listing)

    async def _extend_deadline(self, limit: asyncio.Timeout) -> None:
        while True:
            await asyncio.sleep(0.2)
            if self.sign_in_url and (deadline := limit.when()) is not None:
                limit.reschedule(max(deadline, asyncio.get_running_loop().time() + self._config.connect_seconds))

    def _watch(self, client: Client) -> list[asyncio.Task[None]]:
        watchers = [asyncio.create_task(self._listen(client))]
        if self._process is not None:
            watchers.append(asyncio.create_task(self._watch_process(self._process)))
        return watchers

    async def _watch_process(self, process: ServerProcess) -> None:
        await process.lost.wait()
        if process.fast_path is not None:
            process.fast_path.close()
        self.lose("the server ended")

    async def _listen(self, client: Client) -> None:
        """Subscribe to changes, in protocol versions that require it."""
        can = client.server_capabilities
        tools = bool(can.tools and can.tools.list_changed)
        prompts = bool(can.prompts and can.prompts.list_changed)
        resources = bool(can.resources and can.resources.list_changed)
        delay = FIRST_DELAY
        while client.session.discover_result is not None and (tools or prompts or resources):
            try:
                async with client.listen(
                    tools_list_changed=tools, prompts_list_changed=prompts, resources_list_changed=resources
                ) as events:
                    self.refresh()  # for changes between the first listing and the subscription
                    async for _ in events:
                        delay = FIRST_DELAY
                        self.refresh()
            except Exception:  # noqa: BLE001 - a lost subscription is renewed
                pass
            await asyncio.sleep(delay * random.uniform(0.5, 1))
            delay = min(delay * 2, LONGEST_DELAY)
            self.refresh()  # for changes while there was no subscription

    async def _follow(self, client: Client) -> None:
        """Stay until the session is lost, and list again whenever the server reports a change."""
        delay = FIRST_DELAY
        while not self._lost:
            await self._wake.wait()
            await asyncio.sleep(_SETTLE_SECONDS)  # a hundred announced changes cause one listing
            self._wake.clear()
            if self._stale and not self._lost:
                self._stale = False
                try:
                    async with asyncio.timeout(self._config.connect_seconds):
                        listing = await self.list_all(client)
                except (ValidationError, MCPError, TimeoutError) as error:
                    if isinstance(error, MCPError) and (ends_session(error) or is_unreached(error)):
                        raise
                    # the session works, so the listing before this one stays; to end it would end running calls
                    _log.warning("MCP server %s: its new list cannot be used: %s", self._config.name, reason_of(error))
                    if not isinstance(error, ValidationError):
                        asyncio.get_running_loop().call_later(delay, self.refresh)
                        delay = min(delay * 2, LONGEST_DELAY)
                    continue
                delay = FIRST_DELAY
                await self._listener.on_listing(listing)


async def _stop(tasks: list[asyncio.Task[None]]) -> None:
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)
