"""The slash commands `/diff`, `/mcp`, `/config`, `/copy`, `/theme` and `/web`."""

import asyncio
import base64
import json
import sys
from collections.abc import Callable
from typing import Any, cast

from callwright.app.locations import Locations, read_web_link
from callwright.app.mcp_servers import load_servers
from callwright.app.settings import Settings
from callwright.app.settings_file import is_known, parse_layer, read_layer
from callwright.cli.render.text import THEMES, visible
from callwright.cli.terminal.chat_actions import ChatHost
from callwright.core.calls import Completed
from callwright.core.errors import UsageError, describe_exception
from callwright.core.json import thaw
from callwright.core.messages import AssistantMessage
from callwright.hooks.builtin import Redact
from callwright.mcp.config import ServerConfig
from callwright.system.atomic_write import replace_file

_CHUNK_BYTES = 1 << 16
_COPY_BYTES = 100_000
_UNKNOWN = "is not a known setting; callwright permissions schema lists them"
_STYLES = {"+": "green", "-": "red", "@": "cyan"}


def _explain_git(text: str, revision: str) -> str:
    """Say why `git diff` failed; outside a repository it prints all its options."""
    if "not a git repository" in text.lower():
        return "/diff compares with a commit, and this folder is in no git repository; git init makes one"
    if "bad revision" in text:
        missing = f"there is no revision {revision!r}; git log lists them" if revision else "there is no commit yet"
        return f"/diff: {missing}"
    return f"git diff: {text.partition(chr(10))[0]}"


class WorkspaceCommands:
    """Commands about the project and the program; `show` shows lines to the user."""

    def __init__(self, chat: ChatHost, show: Callable[..., None]) -> None:
        self._chat = chat
        self._show = show
        self._web: asyncio.subprocess.Process | None = None
        self._discarding: list[asyncio.Task[None]] = []

    async def diff(self, rest: str) -> None:
        """Show what changed since the last commit, or since `/diff REVISION`."""
        if rest.startswith("-") or any(not (c.isalnum() or c in "._/~^@-") for c in rest):
            raise UsageError(f"/diff takes a revision such as HEAD~1 or main, got {rest!r}")
        outcome = await self._chat.run_shell(f"git --no-pager diff --no-color {rest or 'HEAD'} --", told=False)
        if not isinstance(outcome, Completed):
            raise UsageError(_explain_git(outcome.text, rest))
        terminal = self._chat.terminal
        lines = [line for line in visible(outcome.text).splitlines() if not line.startswith("exit code: ")]
        for line in lines or ["  no changes"]:
            terminal.show(terminal.palette.paint(line, _STYLES.get(line[:1], "")))

    async def web(self, rest: str) -> None:
        """Show the link of the page of this project; its server is started if none runs, and ends with the terminal."""
        found = read_web_link(self._chat.locations)
        if found is None:
            link = await self._start_web()
        else:
            link = found[0]
        self._show(f"  {link}", "  the page of this project; anyone who has the link can answer and act in your name")

    async def _start_web(self) -> str:
        command = (sys.executable, "-m", "callwright", "web")
        pipe = asyncio.subprocess.PIPE
        self._web = process = await asyncio.create_subprocess_exec(
            *command, cwd=self._chat.locations.cwd, stdin=asyncio.subprocess.DEVNULL, stdout=pipe, stderr=pipe
        )
        assert process.stdout is not None
        assert process.stderr is not None
        while line := await process.stdout.readline():
            if b"#token=" in line:
                # a pipe that is not read fills up, and the server would stand still
                self._discarding = [asyncio.create_task(_discard(each)) for each in (process.stdout, process.stderr)]
                return line.decode().strip()
        told = (await process.stderr.read()).decode(errors="replace").strip()
        raise UsageError(told or "the server of the page did not start")

    async def aclose(self) -> None:
        """End the server of the page, if this terminal has started it."""
        if self._web is not None and self._web.returncode is None:
            self._web.terminate()
            await self._web.wait()
        for task in self._discarding:
            task.cancel()

    async def mcp(self, rest: str) -> None:
        """Show the MCP servers; `/mcp on NAME`, `/mcp off NAME` and `/mcp login NAME` act on one."""
        action, _, name = rest.partition(" ")
        match action:
            case "":
                self._list_servers()
            case "on" | "off" | "login" if name.strip():
                await self._change_server(action, name.strip())
            case _:
                raise UsageError("write /mcp, /mcp on NAME, /mcp off NAME or /mcp login NAME")

    def _list_servers(self) -> None:
        app = self._chat.app
        statuses = {} if app.servers is None else {status.name: status for status in app.servers.status()}
        configs = self._configured_servers()
        for name in dict.fromkeys((*statuses, *configs)):
            status = statuses.get(name)
            if status is None:
                self._show(f"  {name}  off; /mcp on {name} connects it")
                continue
            hint = f"; /mcp login {name} signs in" if status.sign_in_url else ""
            why = f": {status.reason}" if status.reason else ""
            self._show(f"  {name}  {status.condition}, {len(status.tools)} tools{why}{hint}")
        if not statuses and not configs:
            self._show("  no MCP servers; add one with: callwright mcp add NAME -- COMMAND")

    def _configured_servers(self) -> dict[str, ServerConfig]:
        """Return the servers that this conversation may use, connected or not."""
        app, options = self._chat.app, self._chat.options
        settings = Settings() if options.strict_mcp_config else app.settings
        return {each.name: each for each in load_servers(settings, options.mcp_config, [], app.locations)}

    async def _change_server(self, action: str, name: str) -> None:
        app = self._chat.app
        if app.servers is None:
            raise UsageError("no MCP servers are configured; add one with: callwright mcp add NAME -- COMMAND")
        if action == "off":
            await app.servers.remove_server(name)
            self._show(f"  {name} is off until /mcp on {name} or the next start")
            return
        if action == "on":
            configs = self._configured_servers()
            if name not in configs:
                raise UsageError(f"no MCP server {name!r} is configured; known: {', '.join(configs) or 'none'}")
            status = await app.servers.add_server(configs[name])
            self._show(f"  {name}  {status.condition}, {len(status.tools)} tools")
            return
        status = next((each for each in app.servers.status() if each.name == name), None)
        if status is None or not status.sign_in_url:
            raise UsageError(f"{name} does not wait for a sign-in")
        self._show(f"  open {status.sign_in_url}", "  the server connects by itself when you have signed in")

    async def config(self, rest: str) -> None:
        """Show the settings in force with their files; `/config KEY VALUE` sets one for the user."""
        settings = self._chat.app.settings
        key, _, value = rest.partition(" ")
        if not key:
            for name in dict.fromkeys(name for layer in settings.layers for name in layer.content):
                self._show(f"  {_show_setting(name, settings.last(name))}  [{settings.place(name)}]")
            self._show(f"  your settings: {self._chat.locations.user_settings}; /config KEY VALUE sets one")
            return
        if not value.strip():
            found = settings.last(*key.split("."))
            section, _, name = key.partition(".")
            unset = f"{key} {'is not set' if is_known(section, name) else _UNKNOWN}"
            self._show(f"  {unset if found is None else _show_setting(key, found)}")
            return
        save_setting(self._chat.locations, key, _read_value(value.strip()))
        self._show(f"  {key} is saved in {self._chat.locations.user_settings}; it counts from the next start")

    async def theme(self, rest: str) -> None:
        """Show or change the colours: dark, light or none."""
        palette = self._chat.terminal.palette
        if rest:
            palette.use_theme(rest)
            save_setting(self._chat.locations, "terminal.theme", rest)
        self._show(f"  the theme is {palette.theme}; there are {', '.join(THEMES)}")

    async def copy(self, rest: str) -> None:
        """Copy the last answer to the clipboard, through the terminal."""
        messages = await self._chat.app.agent.messages(self._chat.conversation.session_id)
        text = next((each.text for each in reversed(messages) if isinstance(each, AssistantMessage) and each.text), "")
        if not text:
            raise UsageError("there is no answer to copy yet")
        data = text.encode(errors="replace")
        if len(data) > _COPY_BYTES:
            raise UsageError(f"the answer has {len(data)} bytes, too many for the terminal; /export writes a file")
        # OSC 52: the terminal owns the clipboard, also over SSH
        self._chat.terminal.screen.write_code(f"\x1b]52;c;{base64.b64encode(data).decode()}\x07")
        self._show(f"  copied {len(text)} characters, if the terminal allows it")


async def _discard(stream: asyncio.StreamReader) -> None:
    while await stream.read(_CHUNK_BYTES):
        pass


def _show_setting(key: str, value: Any) -> str:
    """Return a setting as JSON, without the keys and passwords in it: the screen may be shared or recorded."""
    return Redact().clean(f"{key} = {json.dumps(_mask_arguments(thaw(value)), ensure_ascii=False)}")


def _mask_arguments(value: Any) -> Any:
    """Return a setting without the keys that follow an option in a list: `["--api-key", "…"]`."""
    if isinstance(value, dict):
        return {name: _mask_arguments(each) for name, each in cast("dict[str, Any]", value).items()}
    if not isinstance(value, list):
        return value
    items = cast("list[Any]", value)
    return [_mask_after(before, each) for before, each in zip(["", *items], items, strict=False)]


def _mask_after(before: Any, value: Any) -> Any:
    if not isinstance(before, str) or not isinstance(value, str):
        return _mask_arguments(value)
    shown = Redact().clean(f"{before} {value}")
    return shown.removeprefix(f"{before} ") if shown.startswith(f"{before} ") else value


def save_setting(locations: Locations, key: str, value: object) -> None:
    """Set one value in the user's settings file.

    Raises:
        UsageError: The file or the value is not valid, or the file cannot be written; nothing is changed.
    """
    layer = read_layer("user", locations.user_settings)
    content = dict(thaw(layer.content)) if layer is not None else {}
    section, _, name = key.partition(".")
    if name:
        inner = content.get(section)
        if inner is not None and not isinstance(inner, dict):  # such as "sandbox": "require", which would be lost
            raise UsageError(f"{section} is {json.dumps(inner)} now; give it whole: /config {section} {{…}}")
        content[section] = {**(inner or {}), name: value}
    else:
        content[section] = value
    text = json.dumps(content, indent=2, ensure_ascii=False) + "\n"
    parse_layer("user", str(locations.user_settings), text)  # raises for a value that is not valid
    if not is_known(section, name):
        raise UsageError(f"{key} {_UNKNOWN}")
    try:
        locations.home.mkdir(mode=0o700, parents=True, exist_ok=True)
        replace_file(locations.user_settings.resolve(), text.encode(errors="backslashreplace"))
    except OSError as error:
        raise UsageError(f"cannot write {locations.user_settings}: {describe_exception(error)}") from None


def _read_value(text: str) -> object:
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return text  # a bare word is a text
