"""OAuth sign-in to a server: the user opens a URL, and the browser returns the code to a local port."""

import asyncio
import hmac
import json
import os
import socket
from collections.abc import Callable
from contextlib import suppress
from hashlib import sha256
from pathlib import Path
from urllib.parse import parse_qs, urlsplit

from mcp.client.auth import AuthorizationCodeResult, OAuthClientProvider, OAuthFlowError, TokenStorage
from mcp.shared.auth import OAuthClientInformationFull, OAuthClientMetadata, OAuthToken
from pydantic import AnyUrl

from callwright.mcp.config import ServerConfig

_WAIT_SECONDS = 600.0
_PAGE = "<!doctype html><title>callwright</title><p>{text}</p>"
_SIGNED_IN = "You are signed in. You can close this page."
_REFUSED = "The sign-in did not work: {why}. You can close this page."


class Tokens:
    """Token storage of one server in memory."""

    def __init__(self) -> None:
        self._tokens: OAuthToken | None = None
        self._client: OAuthClientInformationFull | None = None

    async def get_tokens(self) -> OAuthToken | None:
        return self._tokens

    async def set_tokens(self, tokens: OAuthToken) -> None:
        self._tokens = tokens

    async def get_client_info(self) -> OAuthClientInformationFull | None:
        return self._client

    async def set_client_info(self, client_info: OAuthClientInformationFull) -> None:
        self._client = client_info


class TokenFile(Tokens):
    """Token storage of one server in a file that only its owner can read.

    Args:
        path: The file; it is created when tokens are saved.
    """

    def __init__(self, path: Path) -> None:
        super().__init__()
        self._path = path
        # a file that cannot be read costs a new sign-in to this server, and the other servers nothing
        with suppress(OSError, ValueError, TypeError, AttributeError, RecursionError):
            kept = json.loads(path.read_text("utf-8"))
            tokens = OAuthToken.model_validate(kept["tokens"]) if kept.get("tokens") else None
            client = OAuthClientInformationFull.model_validate(kept["client"]) if kept.get("client") else None
            self._tokens, self._client = tokens, client

    async def set_tokens(self, tokens: OAuthToken) -> None:
        await super().set_tokens(tokens)
        self._save()

    async def set_client_info(self, client_info: OAuthClientInformationFull) -> None:
        await super().set_client_info(client_info)
        self._save()

    def _save(self) -> None:
        self._path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        kept = {
            "tokens": self._tokens.model_dump(mode="json", exclude_none=True) if self._tokens else None,
            "client": self._client.model_dump(mode="json", exclude_none=True) if self._client else None,
        }
        draft = self._path.with_name(f".{self._path.name}.{os.getpid()}")
        draft.unlink(missing_ok=True)
        # private from the start: a later chmod would leave a moment in which others can read it
        descriptor = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        with os.fdopen(descriptor, "w", encoding="utf-8") as file:
            json.dump(kept, file)
        draft.replace(self._path)


def token_files(folder: Path) -> Callable[[ServerConfig], TokenFile]:
    """Store each server's tokens in a file of this folder, by URL: another server of the same name gets none."""
    return lambda config: TokenFile(folder / f"{sha256(config.url.encode()).hexdigest()[:32]}.json")


class SignIn:
    """One server's sign-in. `url` is where the user must sign in now; empty when no sign-in is pending."""

    def __init__(self, config: ServerConfig, tokens: TokenStorage, changed: Callable[[], None]) -> None:
        self.url = ""
        self._state = ""
        self._changed = changed
        self._socket = socket.socket()
        self._socket.bind(("127.0.0.1", 0))  # bound now, because the server gets the port before the sign-in
        address = f"http://127.0.0.1:{self._socket.getsockname()[1]}/callback"
        self.auth = OAuthClientProvider(
            config.url,
            OAuthClientMetadata(redirect_uris=[AnyUrl(address)], client_name="callwright"),
            tokens,
            redirect_handler=self._request_sign_in,
            callback_handler=self.wait_for_browser,
            client_metadata_url=config.client_metadata_url or None,
        )

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
