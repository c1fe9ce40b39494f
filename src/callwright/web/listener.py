"""Where the page is served: the address, and a server whose connections cannot be held open for nothing."""

import socket
from collections.abc import Callable
from types import FrameType
from typing import Any

import uvicorn

from callwright.core.errors import UsageError, describe_exception
from callwright.serve.access import TimedProtocol

DEFAULT_PORT = 4870
LOOPBACK = ("127.0.0.1", "localhost", "::1")
_MOST_HEAD_BYTES = 1 << 16
_STOP_SECONDS = 2


class PageServer(uvicorn.Server):
    """A server that tells when it is ready, and ends the endless streams before it waits for its connections."""

    def __init__(self, app: Any, ready: Callable[[], None], end_streams: Callable[[], None]) -> None:
        config = uvicorn.Config(
            app,
            http=TimedProtocol,
            h11_max_incomplete_event_size=_MOST_HEAD_BYTES,
            log_level="error",
            access_log=False,
            server_header=False,
            date_header=False,
            proxy_headers=False,
            ws="none",
            lifespan="on",
            timeout_graceful_shutdown=_STOP_SECONDS,
        )
        super().__init__(config)
        self._ready = ready
        self._end_streams = end_streams

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        if self.started:
            self._ready()

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        # not as the base does, which raises the signal again: the process would end before it has cleaned up
        self.force_exit = self.should_exit
        self.should_exit = True

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        self._end_streams()
        await super().shutdown(sockets)


def list_host_names(host: str) -> tuple[str, ...]:
    """Return the names in the Host header that mean this server; the first is for the link."""
    if host in LOOPBACK:
        shown = f"[{host}]" if ":" in host else host
        return tuple(dict.fromkeys((shown, "127.0.0.1", "localhost", "[::1]")))
    return (f"[{host}]" if ":" in host else host.lower(),)


def listen(host: str, port: int | None) -> socket.socket:
    """Return a socket on the address.

    Raises:
        UsageError: The address cannot be used.
    """
    if host in ("", "0.0.0.0", "::", "*"):
        raise UsageError("--host needs the address or name of one interface: with all of them, no name is exact")
    ports = (DEFAULT_PORT, 0) if port is None else (port,)
    failure: OSError | None = None
    for each in ports:
        try:
            family = socket.getaddrinfo(host, each, type=socket.SOCK_STREAM)[0][0]
            found = socket.socket(family, socket.SOCK_STREAM)
            try:
                found.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
                found.bind((host, each))
                found.listen(128)
            except BaseException:
                found.close()
                raise
            found.setblocking(False)
            return found
        except (OSError, OverflowError) as error:
            failure = error if isinstance(error, OSError) else OSError(str(error))
    reason = "" if failure is None else describe_exception(failure)
    raise UsageError(f"cannot serve the page on {host} port {ports[0]}: {reason}; choose another with --port")
