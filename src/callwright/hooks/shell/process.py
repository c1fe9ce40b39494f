"""Runs hooks that are commands: one process each, with the event on standard input."""

import asyncio
import json
import re
import shlex
from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path

from callwright.core.errors import CallwrightError
from callwright.hooks.shell.config import SHELLS, ShellHook
from callwright.system.environment import without_credentials
from callwright.system.paths import expand_home
from callwright.system.piped_process import PipedProcess

_OUTPUT_BYTES = 1 << 20
_LINGER_SECONDS = 0.3
_NOT_STARTED = {126: "it cannot be executed", 127: "there is no such command"}
_BLOCK = 2
_INTERPRETER = re.compile(r"(python|pypy)[\d.]*|(ba|da|z|k)?sh|perl|ruby|node|deno|bun")
_NOT_OPENED = re.compile(r"(\S*(python|pypy|sh)[\d.]*: )?(0: )?can(no|')t open .*no such file.*", re.IGNORECASE)
_SHELL_WORDS = frozenset({"exec", "command", "env", "nohup", "uv", "run"})


@dataclass(frozen=True, slots=True)
class HookRun:
    """What a hook ended with; one that is no process has a reply as its `stdout`."""

    exit_code: int = 0
    stdout: str = ""
    stderr: str = ""
    problem: str = ""
    """Why the result is no decision: the process could not start, or did not end in time."""
    cut: bool = False
    """Whether the end of a long stdout was dropped, which may have been the decision."""


async def run_shell_hook(
    hook: ShellHook, payload: Mapping[str, object], *, cwd: str, project: str, passed: Iterable[str] = ()
) -> HookRun:
    """Run a hook to its end. An error is reported as a problem, never as a decision.

    Args:
        hook: What to run.
        payload: The event.
        cwd: The folder it starts in.
        project: The project's folder, for its environment.
        passed: Environment variables it gets although they look like credentials.
    """
    names = {"CLAUDE_PROJECT_DIR": project, "CALLWRIGHT_PROJECT_DIR": project}
    environment = {**without_credentials(passed=passed), **names}
    try:
        process = await PipedProcess.start(_argv(hook, names), cwd=cwd, environment=environment)
    except (CallwrightError, OSError) as error:
        return HookRun(problem=f"could not start: {error}")
    try:
        async with asyncio.timeout(hook.seconds):
            run = await _exchange(process, json.dumps(payload).encode() + b"\n")
    except TimeoutError:
        return HookRun(problem=f"did not end within {hook.seconds:g} s and was stopped")
    finally:
        closing = asyncio.ensure_future(process.close())
        await asyncio.shield(closing)  # a cancelled turn must still end the process
    problem = await _explain_no_start(hook, run, cwd, environment)
    return replace(run, problem=problem) if problem else run


def _argv(hook: ShellHook, names: Mapping[str, str]) -> list[str]:
    if hook.arguments is None:
        return [*SHELLS[hook.shell], hook.command]
    return [_fill_placeholders(word, names) for word in (hook.command, *hook.arguments)]


def _fill_placeholders(word: str, names: Mapping[str, str]) -> str:
    for name, value in names.items():
        word = word.replace(f"${{{name}}}", value)
    return word


async def _exchange(process: PipedProcess, given: bytes) -> HookRun:
    outputs = bytearray(), bytearray()
    streams = (process.stdout, process.stderr)
    readers = [asyncio.ensure_future(_read(stream, kept)) for stream, kept in zip(streams, outputs, strict=True)]
    writer = asyncio.ensure_future(_write(process.stdin, given))
    try:
        exit_code = await process.wait()
        # a process it started may keep the pipes open; what was written by then counts
        await asyncio.wait(readers, timeout=_LINGER_SECONDS)
    finally:
        for task in (writer, *readers):
            task.cancel()
    stdout, stderr = (bytes(kept).decode(errors="replace").strip() for kept in outputs)
    return HookRun(exit_code, stdout, stderr, cut=len(outputs[0]) > _OUTPUT_BYTES)


async def _write(stdin: asyncio.StreamWriter, given: bytes) -> None:
    with suppress(OSError):  # a hook need not read its input
        stdin.write(given)
        await stdin.drain()
        stdin.close()


async def _read(stream: asyncio.StreamReader, kept: bytearray) -> None:
    while chunk := await stream.read(65_536):
        kept += chunk[: _OUTPUT_BYTES + 1 - len(kept)]  # the rest is read and dropped, so that the hook does not block


async def _explain_no_start(hook: ShellHook, run: HookRun, cwd: str, environment: Mapping[str, str]) -> str:
    """Tell a hook that blocks from one that never ran: shells and interpreters exit with 2 on errors too."""
    if run.exit_code in _NOT_STARTED:
        return f"could not start: {_NOT_STARTED[run.exit_code]} (exit code {run.exit_code})"
    if run.exit_code != _BLOCK or hook.arguments is not None or hook.shell != "bash":
        return ""
    command = hook.command
    missing = find_missing_script(command, cwd, environment)
    # the script is only a guess from the command's words, so the interpreter must have reported the same file
    if missing and _NOT_OPENED.fullmatch(run.stderr) and missing in run.stderr:
        return f"could not start: there is no file {missing}"
    check = await PipedProcess.start(["bash", "-n", "-c", command], cwd="/", environment=environment)
    try:
        return "could not start: its command is not valid shell" if await check.wait() else ""
    finally:
        await check.close()


def find_missing_script(command: str, cwd: str, environment: Mapping[str, str]) -> str:
    """Return the script an interpreter should run and that does not exist; empty for other kinds of commands."""
    try:
        tokens = list(shlex.shlex(command, posix=True, punctuation_chars=True))
        words = shlex.split(command, comments=False)
    except ValueError:
        return ""
    if any(set(token) <= set(";|&()<>") for token in tokens):
        words = _last_part(command)
    while words and (words[0] in _SHELL_WORDS or re.match(r"[A-Za-z_]\w*=", words[0])):
        words = words[1:]
    if not words or not _INTERPRETER.fullmatch(Path(words[0]).name):
        return ""
    given = next((word for word in words[1:] if not word.startswith("-")), "")
    if not given or any(word in ("-c", "-e", "-m", "-") for word in words[1 : words.index(given)]):
        return ""
    script = _expand_variables(given, environment)
    return "" if "$" in script or Path(cwd, script).exists() else script


def _last_part(command: str) -> list[str]:
    return shlex.split(re.split(r"&&|\|\||[;|&]", command)[-1])


def _expand_variables(word: str, environment: Mapping[str, str]) -> str:
    filled = re.sub(r"\$\{?(\w+)\}?", lambda found: environment.get(found[1], found[0]), word)
    return str(expand_home(filled))
