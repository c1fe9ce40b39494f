"""The `web_fetch` tool: fetches one public web page as text."""

import asyncio
import codecs
import re
import ssl
from collections.abc import Callable, Sequence
from contextlib import suppress
from email.message import Message
from typing import Annotated
from urllib.parse import urljoin

from pydantic import AfterValidator, AliasChoices, Field

from callwright.core.access import Access, Reach
from callwright.core.content import WEB_IMAGES, Image, Output, Text
from callwright.core.errors import TimedOut, ToolFailed, Transient, Unsafe
from callwright.core.spec import Annotations, Effect, Limits
from callwright.tool.base import ToolContext
from callwright.tool.schema import Arguments
from callwright.tool.threads import threads
from callwright.tool.typed import TypedTool, describe
from callwright.toolbox.web.html import html_to_markdown
from callwright.toolbox.web.http import FetchLimits, HttpExchange, HttpReply, Target, domain_allowed, parse_url

_MAX_CHARS = 100_000
_MAX_HTML_CHARS = 2_000_000
_MAX_REDIRECTS = 5
_REDIRECTS = frozenset({301, 302, 303, 307, 308})
_TRANSIENT = frozenset({408, 425, 429, 500, 502, 503, 504})
_TEXTUAL = re.compile(
    r"text/|application/(.*\+)?(json|xml|javascript|ecmascript|yaml|toml|x-sh|x-www-form-urlencoded)\b"
)
_META_CHARSET = re.compile(rb"<meta[^>]{0,200}charset\s*=\s*[\"']?\s*([\w.:-]{1,40})", re.IGNORECASE)
# text codecs that are not character sets; some take quadratic time
_NO_CHARSETS = frozenset({"idna", "punycode", "unicode-escape", "raw-unicode-escape", "undefined"})


def _clamp_chars(count: int) -> int:
    return min(count, _MAX_CHARS)


class WebFetchArguments(Arguments):
    """Arguments of `web_fetch`."""

    url: str = Field(min_length=1, validation_alias=AliasChoices("url", "uri"))
    """The URL, starting with http:// or https://."""
    max_chars: Annotated[int, Field(ge=1), AfterValidator(_clamp_chars)] = Field(
        default=30_000, validation_alias=AliasChoices("max_chars", "max_length")
    )
    """How much of the text to return; at most 100000."""


class WebFetch(TypedTool[WebFetchArguments]):
    """Fetches pages from the public network only.

    Args:
        domains: The only domains to fetch from; `*.` for all subdomains of one.
        follow: Called with the URL of a redirect to another host; without it, redirects out of `domains` are reported.
        limits: Time and size of one fetch.
        tls: TLS settings instead of the default ones.
        loopback: Allow this machine, for tests.
    """

    spec = describe(
        "web_fetch",
        "Fetch a public web page or text file and return it as markdown. Sends no cookies or credentials and runs no"
        " scripts. A redirect to another host is reported instead of followed: fetch the new address if you need it.",
        annotations=Annotations(Effect.READ, idempotent=True, open_world=True),
        limits=Limits(seconds=60.0, output_chars=_MAX_CHARS + 1_000),
        aliases=("WebFetch", "fetch", "fetch_url", "url_fetch"),
        group="web",
        search_hint="download read web page url http",
    )

    def __init__(
        self,
        domains: Sequence[str] | None = None,
        *,
        follow: Callable[[str], bool] | None = None,
        limits: FetchLimits | None = None,
        tls: ssl.SSLContext | None = None,
        loopback: bool = False,
    ) -> None:
        self._domains = None if domains is None else tuple(domains)
        self._follow = follow
        self._limits = limits or FetchLimits()
        self._tls = tls
        self._loopback = loopback

    def accesses(self, arguments: WebFetchArguments) -> Sequence[Access]:
        """Declare the network access.

        Raises:
            Unsafe: The URL must not be fetched.
        """
        self._check(arguments.url)
        return (Reach(arguments.url),)

    async def run(self, arguments: WebFetchArguments, context: ToolContext) -> Output:
        """Fetch the page and follow allowed redirects."""
        target = self._check(arguments.url)
        for _ in range(_MAX_REDIRECTS + 1):
            reply = await self._exchange(target)
            if reply.status not in _REDIRECTS or not reply.headers.get("Location"):
                # converting a large page takes a while
                return await threads.run(_build_output, target, reply, arguments.max_chars)
            following = parse_url(urljoin(target.url, _read_location(reply.headers["Location"])))
            if not self._may_follow(target, following):
                return Output(
                    f"{target.url} redirects to {following.url}, which is another site; fetch that URL if you need it"
                )
            target = following
        raise ToolFailed(f"{arguments.url} redirects more than {_MAX_REDIRECTS} times")

    def _check(self, url: str) -> Target:
        target = parse_url(url)
        if self._domains is not None and not domain_allowed(self._domains, target.host):
            raise Unsafe(f"{target.host} is not among the domains that may be fetched: {', '.join(self._domains)}")
        return target

    def _may_follow(self, here: Target, there: Target) -> bool:
        if here.scheme == "https" and there.scheme == "http":
            return False  # plain http could be read and changed on the way
        if (there.host, there.port) == (here.host, here.port) or (
            there.host == here.host and (here.scheme, here.port, there.scheme, there.port) == ("http", 80, "https", 443)
        ):
            return True
        if self._domains is not None and not domain_allowed(self._domains, there.host):
            return False
        return self._follow(there.url) if self._follow is not None else self._domains is not None

    async def _exchange(self, target: Target) -> HttpReply:
        exchange = HttpExchange(self._limits, tls=self._tls, loopback=self._loopback)
        try:
            # the thread has time limits too, but a DNS lookup or a slow server can stretch them
            async with asyncio.timeout(self._limits.seconds):
                # not in asyncio's own few threads, where slow servers would keep edits and lookups waiting
                return await threads.run(exchange.get, target)
        except TimeoutError:
            raise TimedOut(f"{target.url} took longer than {self._limits.seconds:g} s") from None
        finally:
            exchange.abort()


def _read_location(header: str) -> str:
    """Return the address of a redirect: its bytes are UTF-8, as browsers read them, and http.client reads Latin-1."""
    with suppress(UnicodeError):
        header = header.encode("latin-1").decode()
    return header.strip(" \t")


def _build_output(target: Target, reply: HttpReply, max_chars: int) -> Output:
    kind = reply.headers.get_content_type()
    if reply.status in _TRANSIENT:
        raise Transient(f"{target.url} answered {reply.status} {reply.phrase}", retry_after=_retry_after(reply.headers))
    if reply.status == 200 and kind in WEB_IMAGES and not reply.cut:
        return Output((Text(f"{target.url} ({kind})"), Image(reply.body, kind)))
    # servers send text with all kinds of types; only a NUL byte is a sure sign of binary data
    if not _TEXTUAL.match(kind) and b"\0" in reply.body[:1024]:
        raise ToolFailed(
            f"{target.url} is {kind} ({len(reply.body)} bytes), which is not text; download it with bash instead"
        )
    text, whole = _text(target, reply, kind)
    if reply.status >= 400:
        raise ToolFailed(f"{target.url} answered {reply.status} {reply.phrase}\n{text[:2000]}".rstrip())
    note = (
        "\n[the page is larger than the limit or was broken off; its end is missing]" if reply.cut or not whole else ""
    )
    if len(text) > max_chars:
        note = f"\n[{len(text) - max_chars} more characters; raise max_chars (at most {_MAX_CHARS}) to read on]{note}"
    return Output(f"{target.url}\n\n{text[:max_chars] or '(empty)'}{note}")


def _text(target: Target, reply: HttpReply, kind: str) -> tuple[str, bool]:
    """Return the text of a body, and whether it is the text of all of it."""
    text = _decode(reply.body, reply.headers.get_content_charset() or "", is_html=kind.endswith(("html", "xhtml+xml")))
    if kind not in ("text/html", "application/xhtml+xml"):
        return text, True
    page = html_to_markdown(text[:_MAX_HTML_CHARS], target.url)
    whole = len(text) <= _MAX_HTML_CHARS
    return (f"title: {page.title}\n\n{page.text}" if page.title else page.text), whole


def _decode(body: bytes, declared: str, *, is_html: bool) -> str:
    for mark, charset in (
        (codecs.BOM_UTF8, "utf-8-sig"),
        (codecs.BOM_UTF16_LE, "utf-16"),
        (codecs.BOM_UTF16_BE, "utf-16"),
    ):
        if body.startswith(mark):
            return body.decode(charset, "replace")
    if not declared and is_html and (found := _META_CHARSET.search(body[:4096])):
        declared = found[1].decode("ascii")
    try:
        charset = codecs.lookup(declared or "utf-8").name
        if charset not in _NO_CHARSETS:
            return body.decode(charset, "replace" if declared else "strict")
    except (LookupError, ValueError):
        pass
    try:
        return body.decode("utf-8")
    except UnicodeDecodeError:
        return body.decode("cp1252", "replace")  # what browsers assume for undeclared text


def _retry_after(headers: Message) -> float | None:
    value = headers.get("Retry-After", "").strip()
    return float(value) if value.isdecimal() and len(value) < 6 else None
