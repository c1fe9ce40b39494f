"""The web_fetch tool against real servers on loopback, which only the tests may reach."""

import asyncio
import gzip
import ipaddress
import socket
import ssl
import subprocess
import threading
import time
import tracemalloc
import zlib
from collections.abc import Callable, Generator, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest
from hypothesis import given, strategies as st
from tests.waiting import LONG_SECONDS, until

from callwright.core.access import Reach
from callwright.core.calls import Completed, Failed, Outcome
from callwright.core.content import Image
from callwright.core.errors import TimedOut, ToolError, ToolFailed, Transient, Unsafe
from callwright.core.json import Json
from callwright.executor import Executor
from callwright.policy import AllowEverything
from callwright.registry import Registry
from callwright.retry import RetryPolicy
from callwright.toolbox.web import http
from callwright.toolbox.web.fetch import WebFetch
from callwright.toolbox.web.http import FetchLimits, HttpExchange, HttpReply, domain_allowed, is_public, parse_url

INNER_HOSTS = """
    127.0.0.1 localhost 127.1 2130706433 0x7f.0.0.1 0177.0.0.1 0.0.0.0 10.0.0.1 192.168.1.1 172.16.0.1 169.254.169.254
    100.64.0.1 224.0.0.1 255.255.255.255 [::1] [::] [::ffff:127.0.0.1] [::127.0.0.1] [64:ff9b::7f00:1] [2002:7f00:1::]
    [fe80::1] [fd00::1] [ff02::1]
"""
Answer = Callable[[BaseHTTPRequestHandler], None]


class Site:
    """A server on loopback whose pages are functions."""

    def __init__(self, server: ThreadingHTTPServer, pages: dict[str, Answer], seen: list[str]) -> None:
        self.port = server.server_address[1]
        self.pages = pages
        self.seen = seen
        self.scheme = "http"

    def url(self, path: str = "/", host: str = "127.0.0.1") -> str:
        return f"{self.scheme}://{host}:{self.port}{path}"

    def page(self, path: str, body: bytes | str, kind: str = "text/html", status: int = 200, **headers: str) -> str:
        data = body.encode() if isinstance(body, str) else body

        def answer(request: BaseHTTPRequestHandler) -> None:
            request.send_response(status)
            request.send_header("Content-Type", kind)
            request.send_header("Content-Length", str(len(data)))
            for name, value in headers.items():
                request.send_header(name.replace("_", "-"), value)
            request.end_headers()
            request.wfile.write(data)

        self.pages[path] = answer
        return self.url(path)

    def redirect(self, path: str, to: str, status: int = 302) -> str:
        return self.page(path, "", status=status, Location=to)


@contextmanager
def serving(tls: ssl.SSLContext | None = None) -> Generator[Site, None, None]:
    pages: dict[str, Answer] = {}
    seen: list[str] = []

    class Pages(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            seen.append(self.path)
            try:
                pages[self.path](self)
            except KeyError:
                self.send_error(404)
            except OSError:
                self.close_connection = True

        def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - the name the base class gave it
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Pages)
    server.daemon_threads = False  # they are waited for: none holds its connection longer than the test takes
    if tls is not None:
        server.socket = tls.wrap_socket(server.socket, server_side=True)
    threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True).start()
    try:
        yield Site(server, pages, seen)
    finally:
        server.shutdown()
        server.server_close()


@pytest.fixture
def site() -> Iterator[Site]:
    with serving() as served:
        yield served


async def fetched(tool: WebFetch, url: str, **more: Json) -> Outcome:
    executor = Executor(Registry(tool), AllowEverything(), retry=RetryPolicy(max_attempts=1))
    return await executor.run("web_fetch", {"url": url, **more})


async def text_of(tool: WebFetch, url: str, **more: Json) -> str:
    outcome = await fetched(tool, url, **more)
    assert isinstance(outcome, Completed), outcome
    return outcome.text


async def error_of(tool: WebFetch, url: str, **more: Json) -> ToolError:
    outcome = await fetched(tool, url, **more)
    assert isinstance(outcome, Failed), outcome
    return outcome.error


@pytest.fixture
def tool() -> WebFetch:
    return WebFetch(loopback=True)


async def test_page_becomes_markdown(tool: WebFetch, site: Site):
    url = site.page("/a/b", "<title>T</title><h1>Hello</h1><script>bad()</script><p>A <a href='c'>link</a></p>")
    assert await text_of(tool, url) == f"{url}\n\ntitle: T\n\n# Hello\n\nA [link]({site.url('/a/c')})"


async def test_text_response_is_unchanged(tool: WebFetch, site: Site):
    for kind in ("text/plain", "application/json", "text/markdown"):
        assert (await text_of(tool, site.page("/t", '{"a": "<b>"}', kind))).endswith('\n\n{"a": "<b>"}')


@pytest.mark.parametrize(
    ("body", "kind"),
    [
        ("ä€".encode(), "text/plain"),
        ("ä€".encode("cp1252"), "text/plain"),
        ("ä€".encode("utf-16"), "text/plain"),
        ("ä€".encode("iso8859-15"), "text/plain; charset=ISO-8859-15"),
        (b"<meta charset='windows-1252'><p>" + "ä€".encode("cp1252"), "text/html"),
        ("ä€".encode(), "text/plain; charset=no-such-charset"),
        ("ä€".encode(), "text/plain; charset=punycode"),
        ("ä€".encode(), "text/plain; charset=zlib"),
        ("ä€".encode(), "text/plain; charset=unicode_escape"),
        ("ä€".encode(), "text/plain; charset=raw_unicode_escape"),
    ],
)
async def test_charset_is_detected(tool: WebFetch, site: Site, body: bytes, kind: str):
    assert (await text_of(tool, site.page("/c", body, kind))).endswith("ä€")


async def test_long_page_is_cut_with_a_note(tool: WebFetch, site: Site):
    url = site.page("/long", "x" * 1000, "text/plain")
    assert await text_of(tool, url, max_chars=10) == (
        f"{url}\n\n{'x' * 10}\n[990 more characters; raise max_chars (at most 100000) to read on]"
    )


async def test_page_whose_text_is_behind_a_huge_script_does_not_look_empty(tool: WebFetch, site: Site):
    url = site.page("/notebook", f"<script>{'x' * 2_000_000}</script><p>results</p>", "text/html")
    assert (
        await text_of(tool, url)
        == f"{url}\n\n(empty)\n[the page is larger than the limit or was broken off; its end is missing]"
    )


async def test_images_are_returned_other_binaries_refused(tool: WebFetch, site: Site):
    outcome = await fetched(tool, site.page("/p", b"\x89PNG\0", "image/png"))
    assert isinstance(outcome, Completed)
    assert Image(b"\x89PNG\0", "image/png") in outcome.output.parts
    assert "not text" in (await error_of(tool, site.page("/z", b"PK\0\0", "application/zip"))).message


@pytest.mark.parametrize(("status", "kind"), [(404, ToolFailed), (403, ToolFailed), (503, Transient), (429, Transient)])
async def test_error_pages_are_errors(tool: WebFetch, site: Site, status: int, kind: type[ToolError]):
    error = await error_of(tool, site.page("/e", "why", "text/plain", status, Retry_After="7"))
    assert type(error) is kind
    assert str(status) in error.message
    assert not isinstance(error, Transient) or error.retry_after == 7


@pytest.mark.parametrize(
    "url",
    [
        "file:///etc/passwd",
        "ftp://example.com/",
        "gopher://example.com/",
        "data:text/plain,x",
        "javascript:alert(1)",
        "http://",
        "http:///path",
        "//example.com",
        "example.com",
        "http://user@example.com/",
        "http://user:word@example.com/",
        "http://good.example\\@evil.example/",
        "http://exam ple.com/",
        "http://example.com/\r\nX-Header: 1",
        "http://example.com:notaport/",
        "http://[::1/",
        "http://%31%32%37.0.0.1/",
    ],
)
async def test_only_http_urls_are_fetched(url: str):
    assert isinstance(await error_of(WebFetch(), url), Unsafe)


@pytest.mark.parametrize("host", INNER_HOSTS.split())
async def test_private_hosts_are_refused_in_any_spelling(site: Site, host: str):
    error = await error_of(WebFetch(), f"http://{host}:{site.port}/")
    assert isinstance(error, Unsafe), error
    assert site.seen == []


@given(st.ip_addresses(v=4))
def test_disguised_private_address_is_refused(inner: ipaddress.IPv4Address):
    disguises = [int(inner), 0xFFFF << 32 | int(inner), 0x64FF9B << 96 | int(inner), 0x2002 << 112 | int(inner) << 80]
    for number in disguises:
        assert not is_public(ipaddress.IPv6Address(number)) or is_public(inner)


def test_public_addresses_are_public():
    for address in ("1.1.1.1", "93.184.215.14", "2606:4700:4700::1111", "64:ff9b::101:101"):
        assert is_public(ipaddress.ip_address(address))


async def test_loopback_option_opens_only_loopback():
    assert isinstance(await error_of(WebFetch(loopback=True), "http://169.254.169.254/"), Unsafe)


async def test_dns_rebinding_has_no_effect(site: Site, monkeypatch: pytest.MonkeyPatch):
    site.page("/", "reached", "text/plain")
    look_up = socket.getaddrinfo
    asked: list[object] = []

    def rebinding(host: object, *rest: object, **named: object) -> object:
        asked.append(host)
        return look_up("127.0.0.1" if len(asked) == 1 else "127.0.0.2", *rest, **named)  # type: ignore[arg-type] - passed on

    monkeypatch.setattr(http.socket, "getaddrinfo", rebinding)
    assert "reached" in await text_of(WebFetch(loopback=True), site.url(host="rebinding.example"))
    assert asked == ["rebinding.example"]


async def test_one_private_address_refuses_the_host(monkeypatch: pytest.MonkeyPatch):
    def mixed(*_: object, **__: object) -> object:
        return [(socket.AF_INET, socket.SOCK_STREAM, 6, "", (ip, 80)) for ip in ("93.184.215.14", "10.0.0.1")]

    monkeypatch.setattr(http.socket, "getaddrinfo", mixed)
    assert isinstance(await error_of(WebFetch(), "http://mixed.example/"), Unsafe)


def test_url_is_declared_before_the_fetch():
    assert WebFetch().bind({"url": "https://example.com/a"}).accesses() == (Reach("https://example.com/a"),)


@pytest.mark.parametrize(
    ("domains", "host", "allowed"),
    [
        (["example.com"], "example.com", True),
        (["example.com"], "EXAMPLE.com.", True),
        (["example.com"], "www.example.com", False),
        (["example.com"], "example.com.evil.org", False),
        (["example.com"], "evilexample.com", False),
        (["*.example.com"], "a.b.example.com", True),
        (["*.example.com"], "example.com", False),
        (["*.example.com"], "evilexample.com", False),
        ([], "example.com", False),
        (["xn--bcher-kva.example"], "bücher.example", True),
        (["Bücher.example."], "bücher.example", True),
        (["*.bücher.example"], "www.bücher.example", True),
        (["bücher.example"], "bucher.example", False),
        (["bü..example"], "example.org", False),
    ],
)
def test_domains_match_by_whole_labels(domains: list[str], host: str, allowed: bool):
    assert domain_allowed(domains, parse_url(f"http://{host}/").host) is allowed


async def test_unlisted_domain_is_refused(site: Site):
    tool = WebFetch(["example.com"], loopback=True)
    error = await error_of(tool, site.url())
    assert isinstance(error, Unsafe)
    assert "example.com" in error.message
    assert site.seen == []


async def test_same_host_redirect_is_followed(tool: WebFetch, site: Site):
    site.page("/end", "arrived", "text/plain")
    site.redirect("/middle", "end", 301)
    assert await text_of(tool, site.redirect("/start", "/middle")) == f"{site.url('/end')}\n\narrived"


@pytest.mark.parametrize("sent", ["/fünf-Å-à", "/f%C3%BCnf-%C3%85-%C3%A0"])
async def test_redirect_to_a_path_in_utf_8_is_followed(tool: WebFetch, site: Site, sent: str):
    site.page("/f%C3%BCnf-%C3%85-%C3%A0", "arrived", kind="text/plain")
    header = sent.encode().decode("latin-1")  # in which the server writes its headers
    assert (await text_of(tool, site.redirect("/start", header))).endswith("\n\narrived")


async def test_redirect_to_other_host_is_reported(tool: WebFetch, site: Site):
    elsewhere = site.url("/end", "localhost")
    output = await text_of(tool, site.redirect("/start", elsewhere))
    assert (
        output == f"{site.url('/start')} redirects to {elsewhere}, which is another site; fetch that URL if you need it"
    )
    assert site.seen == ["/start"]


@pytest.mark.parametrize(("says", "arrives"), [(True, True), (False, False)])
async def test_redirect_to_other_host_is_judged_again(site: Site, says: bool, arrives: bool):
    site.page("/end", "arrived", "text/plain")
    asked: list[str] = []
    elsewhere = site.url("/end", "localhost")
    tool = WebFetch(loopback=True, follow=lambda url: asked.append(url) or says)
    assert ("arrived" in await text_of(tool, site.redirect("/start", elsewhere))) is arrives
    assert asked == [elsewhere]


async def test_redirects_stay_in_listed_domains(site: Site):
    site.page("/end", "arrived", "text/plain")
    url = site.redirect("/start", site.url("/end", "localhost"))
    assert "arrived" in await text_of(WebFetch(["127.0.0.1", "localhost"], loopback=True), url)
    assert "redirects to" in await text_of(WebFetch(["127.0.0.1"], loopback=True, follow=lambda _: True), url)


@pytest.mark.parametrize("to", ["file:///etc/passwd", "ftp://127.0.0.1/", "http://user@127.0.0.1/"])
async def test_redirect_to_other_scheme_is_refused(tool: WebFetch, site: Site, to: str):
    assert isinstance(await error_of(tool, site.redirect("/start", to)), Unsafe)


async def test_redirect_to_private_address_is_refused(site: Site):
    tool = WebFetch(loopback=True, follow=lambda _: True)
    assert isinstance(await error_of(tool, site.redirect("/start", "http://169.254.169.254/")), Unsafe)


async def test_endless_redirects_are_stopped(tool: WebFetch, site: Site):
    assert "more than 5 times" in (await error_of(tool, site.redirect("/loop", "/loop"))).message
    assert len(site.seen) == 6


@pytest.mark.parametrize(
    ("name", "packed"),
    [
        ("gzip", gzip.compress(b"unpacked")),
        ("deflate", zlib.compress(b"unpacked")),
        ("deflate", zlib.compress(b"unpacked")[2:-4]),
    ],
    ids=["gzip", "zlib", "raw"],
)
async def test_compressed_pages_are_decompressed(tool: WebFetch, site: Site, name: str, packed: bytes):
    url = site.page("/packed", packed, "text/plain", Content_Encoding=name)
    assert (await text_of(tool, url)).endswith("unpacked")


@pytest.mark.slow
async def test_decompression_bomb_is_cut(site: Site):
    bomb = gzip.compress(b"\n" * 100_000_000)
    tool = WebFetch(loopback=True, limits=FetchLimits(bytes=100_000))
    url = site.page("/bomb", bomb, "text/plain", Content_Encoding="gzip")
    tracemalloc.start()
    try:
        assert "larger than the limit" in await text_of(tool, url)
        assert tracemalloc.get_traced_memory()[1] < 5_000_000
    finally:
        tracemalloc.stop()


async def test_page_that_breaks_off_does_not_look_whole(tool: WebFetch, site: Site):
    def break_off(request: BaseHTTPRequestHandler) -> None:
        request.send_response(200)
        request.send_header("Content-Type", "text/plain")
        request.send_header("Content-Length", "1000")
        request.end_headers()
        request.wfile.write(b"begun")

    site.pages["/plain"] = break_off
    assert isinstance(await error_of(tool, site.url("/plain")), Transient)
    packed = gzip.compress(bytes(range(32, 127)) * 9)[:-20]
    assert "its end is missing" in await text_of(tool, site.page("/packed", packed, Content_Encoding="gzip"))
    assert (await text_of(tool, site.page("/none", b"", Content_Encoding="gzip"))).endswith("(empty)")


async def test_endless_page_is_cut(site: Site):
    def endless(request: BaseHTTPRequestHandler) -> None:
        request.send_response(200)
        request.send_header("Content-Type", "text/plain")
        request.end_headers()
        while True:
            request.wfile.write(b"x" * 10_000)

    site.pages["/endless"] = endless
    tool = WebFetch(loopback=True, limits=FetchLimits(bytes=100_000))
    assert "larger than the limit" in await text_of(tool, site.url("/endless"), max_chars=10)


@pytest.mark.parametrize("when", ["before the answer", "in the headers", "in the page"])
async def test_slow_server_times_out(site: Site, when: str):
    def drip(request: BaseHTTPRequestHandler) -> None:
        if when == "before the answer":
            request.connection.recv(1)  # until the other side has gone
            return
        if when == "in the page":
            request.send_response(200)
            request.end_headers()
        while True:
            request.wfile.write(b"H")
            time.sleep(0.02)

    site.pages["/drip"] = drip
    error = await error_of(WebFetch(loopback=True, limits=FetchLimits(seconds=0.2)), site.url("/drip"))
    assert isinstance(error, (TimedOut, Transient))


async def test_cancel_closes_the_connection(tool: WebFetch, site: Site):
    broken = threading.Event()

    def hang(request: BaseHTTPRequestHandler) -> None:
        request.connection.settimeout(LONG_SECONDS)
        if request.connection.recv(1) == b"":
            broken.set()

    site.pages["/hang"] = hang
    task = asyncio.create_task(fetched(tool, site.url("/hang")))
    await until(lambda: site.seen)
    task.cancel()
    await asyncio.wait({task})
    assert await asyncio.to_thread(broken.wait, LONG_SECONDS)


async def test_refused_connection_is_transient(tool: WebFetch):
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        assert isinstance(await error_of(tool, f"http://127.0.0.1:{unused.getsockname()[1]}/"), Transient)


async def test_environment_proxy_is_ignored(tool: WebFetch, site: Site, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("http_proxy", "http://127.0.0.1:1")
    assert "direct" in await text_of(tool, site.page("/", "direct", "text/plain"))


@pytest.fixture(scope="module")
def certificate(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    folder = tmp_path_factory.mktemp("certificate")
    key, made = folder / "key.pem", folder / "certificate.pem"
    argv = "openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -days 2".split()
    argv += "-subj /CN=localhost -addext subjectAltName=DNS:localhost".split()
    argv += ["-keyout", str(key), "-out", str(made)]
    try:
        subprocess.run(argv, check=True, capture_output=True)
    except FileNotFoundError:
        pytest.skip("openssl is needed to make a certificate")
    return key, made


@pytest.fixture
def secured(certificate: tuple[Path, Path]) -> Iterator[tuple[Site, ssl.SSLContext]]:
    """A site with the certificate, and the settings that trust it."""
    key, made = certificate
    server = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    server.load_cert_chain(made, key)
    with serving(server) as site:
        site.scheme = "https"
        yield site, ssl.create_default_context(cafile=str(made))


async def test_certificate_is_checked_against_the_host(secured: tuple[Site, ssl.SSLContext]):
    site, trusted = secured
    site.page("/", "secured", "text/plain")
    trusting = WebFetch(loopback=True, tls=trusted)
    assert "secured" in await text_of(trusting, site.url(host="localhost"))
    for tool, host in ((trusting, "127.0.0.1"), (WebFetch(loopback=True), "localhost")):
        error = await error_of(tool, site.url(host=host))
        assert isinstance(error, Unsafe)
        assert "is not valid" in error.message


async def test_exchange_that_was_ended_keeps_no_connection(secured: tuple[Site, ssl.SSLContext]):
    site, trusted = secured
    exchange = HttpExchange(FetchLimits(), tls=trusted, loopback=True)
    exchange.abort()
    with pytest.raises(Transient):
        await asyncio.to_thread(exchange.get, parse_url(f"https://localhost:{site.port}/"))
    held = exchange._socket  # pyright: ignore[reportPrivateUsage] - the connection has no other name
    assert held is not None and held.fileno() == -1


async def test_https_redirect_to_http_is_not_followed(secured: tuple[Site, ssl.SSLContext]):
    site, trusted = secured
    url = site.page("/", "", status=302, Location=f"http://localhost:{site.port}/").replace("127.0.0.1", "localhost")
    tool = WebFetch(loopback=True, tls=trusted, follow=lambda _: True)
    assert "redirects to http://" in await text_of(tool, url)


async def test_slow_servers_do_not_keep_other_threads_waiting(monkeypatch: pytest.MonkeyPatch) -> None:
    release = threading.Event()

    def stall(exchange: HttpExchange, target: object) -> HttpReply:
        release.wait()
        raise Transient("released")

    monkeypatch.setattr(HttpExchange, "get", stall)
    executor = Executor(Registry(WebFetch()), AllowEverything())
    fetches = [asyncio.ensure_future(executor.run("web_fetch", {"url": "https://example.com/"})) for _ in range(50)]
    await asyncio.sleep(0.1)
    try:
        # edits and lookups run in asyncio's own threads, of which there are 32 at most
        assert await asyncio.wait_for(asyncio.to_thread(lambda: "free"), 60) == "free"
    finally:
        release.set()
        for fetch in fetches:
            fetch.cancel()
        await asyncio.gather(*fetches, return_exceptions=True)
