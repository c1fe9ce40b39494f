"""OAuth sign-in to a server: the user opens a URL, and the browser returns the code to a local port."""

import asyncio
import hmac
import json
import logging
import socket
import time
from collections.abc import AsyncGenerator, Callable
from contextlib import suppress
from pathlib import Path
from urllib.parse import parse_qs, urlsplit

import httpx2
from mcp.client.auth import AuthorizationCodeResult, OAuthClientProvider, OAuthFlowError, TokenStorage
from mcp.client.auth.oauth2 import OAuthContext
from mcp.shared.auth import (
    OAuthClientInformationFull,
    OAuthClientMetadata,
    OAuthMetadata,
    OAuthToken,
    ProtectedResourceMetadata,
)
from pydantic import AnyUrl, BaseModel

from callwright.core.errors import describe_exception
from callwright.core.json import read_object
from callwright.core.raised import is_transient_status
from callwright.mcp.config import ServerConfig, token_path
from callwright.system.private_files import replace_private

_WAIT_SECONDS = 600.0
_PAGE = "<!doctype html><title>callwright</title><p>{text}</p>"
_SIGNED_IN = "You are signed in. You can close this page."
_REFUSED = "The sign-in did not work: {why}. You can close this page."


def _is_news(record: logging.LogRecord) -> bool:
    """Tell whether a record of the SDK is not the traceback of a failed sign-in, which is raised and shown as well."""
    return record.exc_info is None or not isinstance(record.exc_info[1], OAuthFlowError)


logging.getLogger("mcp.client.auth.oauth2").addFilter(_is_news)


class _Kept(BaseModel):
    """What is known of the sign-in to one server."""

    tokens: OAuthToken | None = None
    client: OAuthClientInformationFull | None = None
    expires_at: float | None = None
    """When the access token ends, in seconds since 1970; the tokens themselves say only how long they last."""
    issuer: OAuthMetadata | None = None
    """Where the tokens come from, and are renewed."""
    resource: ProtectedResourceMetadata | None = None


class Tokens:
    """Token storage of one server in memory."""

    def __init__(self) -> None:
        self._kept = _Kept()
        self._context: OAuthContext | None = None

    def resume(self, context: OAuthContext) -> None:
        """Tell a new connection when the tokens end and where they are renewed, which the SDK finds out at a sign-in.

        Without it an expired token would always cost the user a sign-in, although it could be renewed.
        """
        self._context, kept = context, self._kept
        context.token_expiry_time = kept.expires_at
        context.oauth_metadata, context.protected_resource_metadata = kept.issuer, kept.resource

    async def get_tokens(self) -> OAuthToken | None:
        return self._kept.tokens

    async def set_tokens(self, tokens: OAuthToken) -> None:
        kept = self._kept
        kept.tokens = tokens
        kept.expires_at = None if tokens.expires_in is None else time.time() + tokens.expires_in
        if self._context is not None:
            kept.issuer, kept.resource = self._context.oauth_metadata, self._context.protected_resource_metadata

    async def get_client_info(self) -> OAuthClientInformationFull | None:
        return self._kept.client

    async def set_client_info(self, client_info: OAuthClientInformationFull) -> None:
        self._kept.client = client_info

    def forget_client(self, client_id: str) -> None:
        """Drop a registration that the server does not know any more; the next sign-in registers again."""
        if self._kept.client is not None and self._kept.client.client_id == client_id:
            self._kept.client = None


class TokenFile(Tokens):
    """Token storage of one server in a file that only its owner can read.

    Args:
        path: The file; it is created when tokens are saved.
    """

    def __init__(self, path: Path) -> None:
        super().__init__()
        self._path = path
        self._load()

    def _load(self) -> None:
        # a file that cannot be read costs a new sign-in to this server, and the other servers nothing
        with suppress(OSError, ValueError, TypeError, AttributeError, RecursionError):
            try:
                self._kept = _Kept.model_validate(json.loads(self._path.read_text("utf-8")))
            except FileNotFoundError:  # the user signed out in another process
                self._kept = _Kept()

    def resume(self, context: OAuthContext) -> None:
        self._load()  # another process may have renewed the tokens, which often ends the ones before
        super().resume(context)

    async def set_tokens(self, tokens: OAuthToken) -> None:
        await super().set_tokens(tokens)
        self._save()

    async def set_client_info(self, client_info: OAuthClientInformationFull) -> None:
        await super().set_client_info(client_info)
        self._save()

    def forget_client(self, client_id: str) -> None:
        self._load()
        super().forget_client(client_id)
        self._save()

    def _save(self) -> None:
        data = json.dumps(self._kept.model_dump(mode="json", exclude_none=True)).encode()
        try:
            self._path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
            replace_private(self._path, data)
        except OSError as error:
            why = describe_exception(error)
            raise OAuthFlowError(f"it cannot be kept in {self._path}: {why}; make the folder writable") from error


def token_files(folder: Path) -> Callable[[ServerConfig], TokenFile]:
    """Store each server's tokens in a file of this folder, by URL: another server of the same name gets none."""
    return lambda config: TokenFile(token_path(folder, config.url))


class _Provider(OAuthClientProvider):
    """The sign-in of the SDK, which asks the user only where tokens cannot be renewed."""

    async def async_auth_flow(self, request: httpx2.Request) -> AsyncGenerator[httpx2.Request, httpx2.Response]:
        async with self.context.lock:  # another request may be in the middle of a sign-in
            if not self.context.is_token_valid():
                await self._reload()
        flow, renewed = super().async_auth_flow(request), False
        try:
            outgoing = await anext(flow)
            while True:
                response = yield outgoing
                refused = outgoing is request and response.status_code == 401
                if refused and not renewed and await self._may_renew(request.headers.get("authorization", "")):
                    # the SDK renews tokens by the clock only; a server may end them earlier
                    renewed = True
                    await flow.aclose()
                    flow = super().async_auth_flow(request)
                    outgoing = await anext(flow)
                    continue
                if outgoing is not request:
                    if not await self._check_token_response(outgoing, response):
                        return  # this response fails one request; an exception would end the session and its calls
                elif response.status_code in (401, 403):
                    self._leave_client_of_another_address()
                outgoing = await flow.asend(response)
        except StopAsyncIteration:
            return
        finally:
            await flow.aclose()

    async def _reload(self) -> None:
        """Take over what another process has got meanwhile: with it, the tokens before have often ended."""
        context, storage = self.context, self.context.storage
        if isinstance(storage, Tokens):
            storage.resume(context)
            context.current_tokens = await storage.get_tokens()
            context.client_info = await storage.get_client_info()

    async def _may_renew(self, refused: str) -> bool:
        """Return whether there is another token than the one that was refused, or it can be renewed."""
        await self._reload()
        context = self.context
        if context.current_tokens is None or refused != f"Bearer {context.current_tokens.access_token}":
            return context.current_tokens is not None
        context.token_expiry_time = 1.0
        return context.can_refresh_token()

    def _leave_client_of_another_address(self) -> None:
        """Have this program registered again if the browser cannot return to the address it was registered with.

        Another program has the port then. A server that compares addresses would refuse the sign-in.
        """
        context = self.context
        known, own = context.client_info, context.client_metadata.redirect_uris
        if known is not None and known.redirect_uris and own and own[0] not in known.redirect_uris:
            context.client_info = None

    async def _check_token_response(self, request: httpx2.Request, response: httpx2.Response) -> bool:
        """Forget a client that the server does not know.

        Return False if tokens cannot be renewed for a reason that may pass: the sign-in is not lost.
        """
        form = parse_qs((await request.aread()).decode("utf-8", "replace"))
        if "grant_type" not in form:
            return True
        if cannot_renew_now(request, response.status_code):
            return False
        known = self.context.client_info
        if response.status_code in (400, 401) and _error_code(response) == "invalid_client" and known is not None:
            self.context.client_info = None
            if isinstance(self.context.storage, Tokens):
                self.context.storage.forget_client(known.client_id)
        return True


def cannot_renew_now(request: httpx2.Request, status: int) -> bool:
    """Return whether a request to renew tokens fails with an HTTP status that may pass."""
    if not is_transient_status(status):
        return False
    return parse_qs(request.content.decode("utf-8", "replace")).get("grant_type") == ["refresh_token"]


def _error_code(response: httpx2.Response) -> object:
    try:
        return read_object(response.json()).get("error")
    except ValueError:
        return None


class SignIn:
    """One server's sign-in. `url` is where the user must sign in now; empty when no sign-in is pending.

    Args:
        config: The server.
        tokens: Where its tokens are stored.
        changed: Called when the user must sign in.
        port: Where the browser returns to, if it is free: servers accept only the address that was registered.
    """

    def __init__(
        self, config: ServerConfig, tokens: TokenStorage, changed: Callable[[], None], *, port: int = 0
    ) -> None:
        self.url = ""
        self._state = ""
        self._changed = changed
        self._socket = _bind(port)  # now, because the server gets the port before the sign-in
        address = f"http://127.0.0.1:{self._socket.getsockname()[1]}/callback"
        self.auth = _Provider(
            config.url,
            OAuthClientMetadata(redirect_uris=[AnyUrl(address)], client_name="callwright"),
            tokens,
            redirect_handler=self._request_sign_in,
            callback_handler=self.wait_for_browser,
            client_metadata_url=config.client_metadata_url or None,
        )
        if isinstance(tokens, Tokens):
            tokens.resume(self.auth.context)

    def close(self) -> None:
        """Release the port."""
        self._socket.close()

    async def _request_sign_in(self, url: str) -> None:
        self.url = url
        self._state = "".join(parse_qs(urlsplit(url).query).get("state", [])[:1])
        self._changed()

    async def wait_for_browser(self) -> AuthorizationCodeResult:
        """Listen until the browser returns; the port is bound but not listening at any other time."""
        back: asyncio.Future[AuthorizationCodeResult] = asyncio.get_running_loop().create_future()
        server = await asyncio.start_server(
            lambda reader, writer: _handle_visit(reader, writer, back, self._state), sock=self._socket.dup()
        )
        try:
            return await asyncio.wait_for(back, _WAIT_SECONDS)
        except TimeoutError as error:
            raise OAuthFlowError(f"no sign-in within {_WAIT_SECONDS:g} s") from error
        finally:
            self.url = ""
            server.close()


def registered_port(client: OAuthClientInformationFull | None) -> int:
    """Return the port that a client was registered with; 0 if it has none of this machine."""
    uris = (client.redirect_uris if client is not None else None) or ()
    return next((uri.port or 0 for uri in uris if (uri.scheme, uri.host) == ("http", "127.0.0.1")), 0)


def _bind(port: int) -> socket.socket:
    found = socket.socket()
    if port:  # the browser's connection of an earlier sign-in may linger there
        found.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        found.bind(("127.0.0.1", port))
    except OSError:  # another program has it
        found.bind(("127.0.0.1", 0))
    # not before: the system would be free to pick a port that another process has
    found.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    return found


async def _handle_visit(
    reader: asyncio.StreamReader,
    writer: asyncio.StreamWriter,
    back: "asyncio.Future[AuthorizationCodeResult]",
    state: str,
) -> None:
    try:
        request = (await asyncio.wait_for(reader.readline(), 5)).decode("ascii", "replace").split(" ")
        text = _read_callback(request[1] if len(request) > 1 else "", back, state)
        page = _PAGE.format(text=text).encode()
        head = f"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nContent-Length: {len(page)}\r\nConnection: close\r\n\r\n"
        writer.write(head.encode() + page)
        await writer.drain()
    except (OSError, TimeoutError, ValueError):
        pass  # not a browser; the real one may still come
    finally:
        writer.close()


def _read_callback(target: str, back: "asyncio.Future[AuthorizationCodeResult]", state: str) -> str:
    """Read the code from the URL the browser requests and return the page to show; other URLs are ignored.

    The state is compared first: any page can send the browser here, and only our sign-in page knows the state.
    """
    parts = urlsplit(target)
    fields = parse_qs(parts.query, keep_blank_values=True)
    if not state or not hmac.compare_digest("\0".join(fields.get("state", [])).encode(), state.encode()):
        return "There is nothing here."
    given = {name: values[0] for name, values in fields.items() if len(values) == 1}
    if parts.path != "/callback" or back.done() or not ("code" in given or "error" in given):
        return "There is nothing here."
    if "code" in given:
        known = {key: given[key] for key in ("code", "state", "iss") if key in given}
        back.set_result(AuthorizationCodeResult(**known))
        return _SIGNED_IN
    # shown on a page, so it must not contain HTML
    why = "".join(char for char in given["error"] if char.isalnum() or char in " _-")[:80]
    back.set_exception(OAuthFlowError(f"the sign-in was refused: {why}"))
    return _REFUSED.format(why=why)
