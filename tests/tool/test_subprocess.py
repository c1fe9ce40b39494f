"""Tools in a process of their own: results, failures, and that no process is left."""

import asyncio
import importlib
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from tests.forked import run_script
from tests.waiting import until, until_so

from callwright import (
    Crashed,
    Denied,
    Image,
    Output,
    Text,
    TimedOut,
    ToolContext,
    ToolError,
    ToolFailed,
    Transient,
    UsageError,
    tool,
)
from callwright.core.content import File
from callwright.tool.function import FunctionTool
from callwright.tool.subprocess import _await_exit  # type: ignore[reportPrivateUsage] - there is no other seam

MODEL_SOURCE = """
import os
from pydantic import BaseModel
from callwright import tool

class Point(BaseModel):
    x: int

@tool(isolation="process")
def work(a: int, b: int = 2, /, *, point: Point | None = None) -> dict[str, int]:
    "Work elsewhere."
    return {"sum": a + b, "pid": os.getpid(), "x": point.x if point else 0}
"""
SOURCE = """
import os, subprocess, sys, time
from callwright import tool, Denied, Output, Text, Image
from callwright.core.content import File
from callwright.tool.threads import Threads

@tool(isolation="process")
def deny(reason: str) -> str:
    "Deny."
    raise Denied(reason)

@tool(isolation="process")
def name() -> str:
    "Return a name that is no valid text."
    return os.fsdecode(b"a\\xff")

@tool(isolation="process")
def fail() -> str:
    "Fail."
    raise KeyError("gone")

@tool(isolation="process")
def lose(kind: str) -> str:
    "Lose the connection, or wait in vain."
    raise TimeoutError("slow") if kind == "time" else ConnectionResetError("gone")

@tool(isolation="process")
def leave(code: int) -> str:
    "Leave."
    os._exit(code)

@tool(isolation="process")
def leave_with_child(path: str) -> str:
    "Leave a child that holds everything open."
    child = os.fork()
    if child == 0:
        time.sleep(60)
    with open(path, "w") as file:
        file.write(str(child))
    os._exit(3)

@tool(isolation="process")
def start_daemon(path: str, how: str) -> str:
    "Start something that leaves the session, the group and its parent."
    if os.fork() == 0:
        os.setsid()
        if os.fork() == 0:
            with open(path + ".new", "w") as file:
                file.write(str(os.getpid()))
            os.rename(path + ".new", path)
            time.sleep(60)
        os._exit(0)
    while not os.path.exists(path):
        time.sleep(0.005)
    if how == "leave":
        os._exit(3)
    if how == "linger":
        time.sleep(60)
    return "done"

@tool(isolation="process")
def odd() -> object:
    "Give what cannot travel."
    return lambda: 1

class Strange(Exception):
    def __init__(self, a, b):
        super().__init__(a)

class StrangeDenied(Denied):
    def __init__(self, a, b):
        super().__init__(a)

@tool(isolation="process")
def strange() -> str:
    "Raise what cannot travel."
    raise StrangeDenied("no", "really")

@tool(isolation="process")
def parts() -> object:
    "Give content."
    return Output((Text("a"), Image(b"\\x00\\xff", "image/gif"), File(b"x", "text/plain", "n")), {"n": 1})

@tool(isolation="process")
def forge(path: str) -> str:
    "Answer with a pickle in place of the worker."
    import multiprocessing.connection, pickle
    class Evil:
        def __reduce__(self):
            return (open, (path, "w"))
    for number in range(3, 1024):  # the numbers are those of our process, which may have many files open
        try:
            multiprocessing.connection.Connection(number).send_bytes(pickle.dumps((True, Evil())))
        except (OSError, ValueError):
            pass
    return "done"

@tool(isolation="process")
def inherited() -> list[int]:
    "List the descriptors a program gets."
    fds = "import fcntl\\nfor n in range(1024):\\n  try: fcntl.fcntl(n, 1); print(n)\\n  except OSError: pass"
    done = subprocess.run([sys.executable, "-c", fds], close_fds=False, capture_output=True, text=True)
    return [int(n) for n in done.stdout.split()]

@tool(isolation="process")
def big(size: int) -> str:
    "Give much."
    return "x" * size

@tool(isolation="process")
def linger(path: str) -> str:
    "Linger with a child."
    child = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(60)"])
    with open(path + ".new", "w") as file:
        file.write(f"{os.getpid()} {child.pid}")
    os.rename(path + ".new", path)
    time.sleep(60)
    return "done"
"""


@pytest.fixture
def tools(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    yield from import_source(SOURCE, tmp_path, monkeypatch)


@pytest.fixture
def models(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    """Tools that need pydantic, whose import takes most of their time."""
    yield from import_source(MODEL_SOURCE, tmp_path, monkeypatch)


def import_source(source: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[ModuleType]:
    name = f"isolated_{tmp_path.name.replace('-', '_')}"
    (tmp_path / f"{name}.py").write_text(source)
    monkeypatch.setattr(sys, "path", [str(tmp_path), *sys.path])
    importlib.invalidate_caches()
    module: ModuleType = importlib.import_module(name)
    yield module
    del sys.modules[name]


HIDDEN_SOURCE = """
import functools
from callwright import tool

def count(x: int) -> str:
    "Count."
    return f"counted {x}"

@functools.wraps(count)
def watched(*arguments, **named):
    return "watched " + count(*arguments, **named)

wrapped = tool(isolation="process")(watched)

@tool(isolation="process")
def replaced(x: int) -> str:
    "Give the old one."
    return f"old {x}"

old = replaced

@tool(isolation="process")
def replaced(x: int) -> str:
    "Give the new one."
    return f"new {x}"
"""


ONLY_HERE_SOURCE = f"""
import os
from callwright import tool

if os.getpid() == {os.getpid()}:  # as below `if __name__ == "__main__"`
    @tool(isolation="process")
    def count(x: int) -> str:
        "Count."
        return f"counted {{x}}"
"""


@pytest.fixture
def only_here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    yield from import_source(ONLY_HERE_SOURCE, tmp_path, monkeypatch)


@pytest.fixture
def hidden(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    yield from import_source(HIDDEN_SOURCE, tmp_path, monkeypatch)


def alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except FileNotFoundError:
        return False
    return state != "Z"


async def gone(pid: int) -> bool:
    return await until(lambda: not alive(pid))


async def test_a_value_comes_back_from_another_process(models: Any, context: ToolContext) -> None:
    result: Any = await models.work.bind({"a": 1, "point": {"x": 7}}).run(context)
    assert (result["sum"], result["x"]) == (3, 7)
    assert result["pid"] != os.getpid()
    assert await gone(result["pid"])


async def test_text_with_a_lone_surrogate_comes_back(tools: Any, context: ToolContext) -> None:
    assert await tools.name.bind({}).run(context) == "a?"


async def test_tool_error_keeps_its_class_and_message(tools: Any, context: ToolContext) -> None:
    with pytest.raises(Denied) as caught:
        await tools.deny.bind({"reason": "not today"}).run(context)
    assert caught.value.message == "not today"


async def test_an_error_of_the_tools_own_arrives_as_its_base(tools: Any, context: ToolContext) -> None:
    with pytest.raises(Denied) as caught:
        await tools.strange.bind({}).run(context)
    assert type(caught.value) is Denied and caught.value.message == "no"


async def test_content_parts_come_back(tools: Any, context: ToolContext) -> None:
    result: Any = await tools.parts.bind({}).run(context)
    assert result == Output((Text("a"), Image(b"\x00\xff", "image/gif"), File(b"x", "text/plain", "n")), {"n": 1})


async def test_forged_pickle_does_not_run_in_our_process(tools: Any, context: ToolContext, tmp_path: Path) -> None:
    with pytest.raises(Crashed, match="cannot be read"):
        await tools.forge.bind({"path": str(tmp_path / "evil")}).run(context)
    assert not (tmp_path / "evil").exists()


async def test_programs_of_a_tool_do_not_get_the_answer_pipe(tools: Any, context: ToolContext) -> None:
    assert await tools.inherited.bind({}).run(context) == [0, 1, 2]


@pytest.mark.slow
def test_modules_of_the_working_folder_are_not_imported(models: Any, tmp_path: Path) -> None:
    folder = tmp_path / "work"
    folder.mkdir()
    for name in ("pickle", "json", "socket", "base64", "callwright", "pydantic_core"):
        (folder / f"{name}.py").write_text(f"open({str(folder / 'evil')!r}, 'a').write('{name} ')\n")
    (tmp_path / "script.py").write_text(
        "import asyncio, importlib, os, sys\n"
        f"sys.path.insert(0, {str(tmp_path)!r})\n"
        f"tools = importlib.import_module({models.__name__!r})\n"
        "import multiprocessing.connection, multiprocessing.spawn, callwright.tool.subprocess\n"
        f"os.chdir({str(folder)!r})\nsys.path.insert(0, '')\nsys.path.insert(0, {str(folder)!r})\n"
        "print(asyncio.run(tools.work.bind({'a': 1}).run(None))['sum'])\n"
    )
    done = run_script(tmp_path / "script.py")
    assert not (folder / "evil").exists(), (folder / "evil").read_text()
    assert done.stdout.strip() == "3", done.stderr


@pytest.mark.parametrize(
    ("name", "arguments", "said"),
    [
        ("fail", {}, "KeyError: 'gone'"),
        ("leave", {"code": 7}, r"ended without an answer \(exit code 7\)"),
    ],
)
async def test_other_failures_are_crashes_with_a_reason(
    tools: Any, context: ToolContext, name: str, arguments: dict[str, Any], said: str
) -> None:
    with pytest.raises(Crashed, match=said):
        await getattr(tools, name).bind(arguments).run(context)


@pytest.mark.parametrize(
    ("name", "arguments", "kind", "said"),
    [
        ("lose", {"kind": "connection"}, Transient, "ConnectionResetError: gone"),
        ("lose", {"kind": "time"}, TimedOut, "an operation inside the tool timed out: slow"),
        ("odd", {}, ToolFailed, "output serialize: function is not JSON"),
    ],
)
async def test_failures_are_of_the_kind_that_they_are_in_a_thread(
    tools: Any, context: ToolContext, name: str, arguments: dict[str, Any], kind: type[ToolError], said: str
) -> None:
    with pytest.raises(kind, match=said) as raised:
        await getattr(tools, name).bind(arguments).run(context)
    if isinstance(raised.value, Transient):
        assert raised.value.inferred  # so that only a harmless repeat is made


async def test_a_large_value_does_not_block_the_loop(tools: Any, context: ToolContext) -> None:
    assert await tools.big.bind({"size": 3_000_000}).run(context) == "x" * 3_000_000


async def test_dead_worker_is_noticed_and_its_child_ends(tools: Any, context: ToolContext, tmp_path: Path) -> None:
    note = tmp_path / "child"
    with pytest.raises(Crashed, match="exit code 3"):
        await tools.leave_with_child.bind({"path": str(note)}).run(context)
    assert await gone(int(note.read_text()))


async def test_cancelling_kills_the_process_and_its_children(tools: Any, context: ToolContext, tmp_path: Path) -> None:
    note = tmp_path / "pids"
    task = asyncio.ensure_future(tools.linger.bind({"path": str(note)}).run(context))
    while not note.exists():
        assert not task.done()
        await asyncio.sleep(0.01)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    worker, child = map(int, note.read_text().split())
    assert not alive(worker)
    assert await gone(child)


@pytest.mark.parametrize("how", ["return", "leave", "linger"])
async def test_a_daemon_that_left_the_session_ends_with_the_call(
    tools: Any, context: ToolContext, tmp_path: Path, how: str
) -> None:
    note = tmp_path / "daemon"
    task: asyncio.Future[Any] = asyncio.ensure_future(
        tools.start_daemon.bind({"path": str(note), "how": how}).run(context)
    )
    while how == "linger" and not note.exists():
        assert not task.done()
        await asyncio.sleep(0.01)
    if how == "linger":
        task.cancel()
    (ended,) = await asyncio.gather(task, return_exceptions=True)
    assert isinstance(ended, {"return": str, "leave": Crashed, "linger": asyncio.CancelledError}[how])
    assert not alive(int(note.read_text()))


@pytest.mark.parametrize("delay_seconds", [0, 0.005, 0.03])
async def test_cancelling_while_the_process_is_starting_leaves_none(
    tools: Any, context: ToolContext, tmp_path: Path, delay_seconds: float
) -> None:
    before = _children()
    task = asyncio.ensure_future(tools.linger.bind({"path": str(tmp_path / "pids")}).run(context))
    await asyncio.sleep(delay_seconds)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert _children() <= before


def _children() -> set[str]:
    tasks = Path(f"/proc/{os.getpid()}/task")
    if not tasks.exists():
        return set()
    found: set[str] = set()
    for task in tasks.iterdir():
        with suppress(OSError):  # a thread that has just ended
            found.update((task / "children").read_text().split())
    return found


async def test_no_helper_process_stays_behind(tools: Any, context: ToolContext) -> None:
    before = _children()
    await tools.big.bind({"size": 1}).run(context)
    assert _children() <= before


@pytest.mark.slow
def test_a_tool_in_a_script_can_be_isolated(tmp_path: Path) -> None:
    script = tmp_path / "script.py"
    script.write_text(
        "import asyncio, os\nfrom pydantic import BaseModel\nfrom callwright import tool\n"
        "class Point(BaseModel):\n    x: int\n"
        "@tool(isolation='process')\ndef work(point: Point) -> int:\n    'Work.'\n"
        "    return point.x if os.getpid() != parent else -1\n"
        "parent = 0\n"
        "if __name__ == '__main__':\n    parent = os.getpid()\n"
        "    print(asyncio.run(work.bind({'point': {'x': 5}}).run(None)))\n"
    )
    done = subprocess.run([sys.executable, str(script)], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "5"


def test_script_that_would_run_twice_is_told_so(tmp_path: Path) -> None:
    script = tmp_path / "script.py"
    script.write_text(
        "import asyncio\nfrom callwright import Executor, Registry, tool\n"
        "from callwright.policy import AllowEverything\n"
        "@tool(isolation='process')\ndef work() -> str:\n    'Work.'\n    return 'done'\n"
        "print(asyncio.run(Executor(Registry(work), AllowEverything()).run('work')).text)\nprint('the end')\n"
    )
    done = subprocess.run([sys.executable, str(script)], capture_output=True, text=True, check=True)
    told, end = done.stdout.splitlines()
    assert told.endswith('put what the program runs under if __name__ == "__main__":') and end == "the end"


def test_daemon_ends_when_our_process_is_killed(tools: Any, tmp_path: Path) -> None:
    note = tmp_path / "daemon"
    script = (
        "import asyncio, importlib, sys\n"
        f"sys.path.insert(0, {str(tmp_path)!r})\n"
        f"tools = importlib.import_module({tools.__name__!r})\n"
        f"asyncio.run(tools.start_daemon.bind({{'path': {str(note)!r}, 'how': 'linger'}}).run(None))\n"
    )
    process = subprocess.Popen([sys.executable, "-c", script])
    try:
        while not note.exists():
            assert process.poll() is None
            time.sleep(0.01)
    finally:
        process.kill()
        process.wait()
    until_so(lambda: not alive(int(note.read_text())))


def at_top(x: int) -> int:
    """Act."""
    return x


class Holder:
    def method(self, x: int) -> int:
        """Act."""
        return x


async def at_top_async(x: int) -> int:
    """Act."""
    return x


def at_top_context(x: int, context: ToolContext) -> int:
    """Act."""
    return x


def at_top_yielding(x: int) -> Any:
    """Act."""
    yield x


async def test_no_other_function_of_the_same_name_runs(hidden: Any, context: ToolContext) -> None:
    for made in (hidden.old, hidden.wrapped):
        with pytest.raises(Crashed, match="is not the function of this tool"):
            await made.bind({"x": 1}).run(context)
    assert await hidden.replaced.bind({"x": 1}).run(context) == "new 1"


async def test_function_that_the_process_lacks_is_named(only_here: Any, context: ToolContext) -> None:
    with pytest.raises(Crashed, match="another process finds no count in "):
        await only_here.count.bind({"x": 1}).run(context)


def test_functions_that_cannot_be_isolated_are_refused() -> None:
    def local(x: int) -> int:
        """Act."""
        return x

    isolated: Any = tool(isolation="process")
    assert isinstance(isolated(at_top), FunctionTool)
    for function, said in (
        (local, "needs a function at the top of a module"),
        (Holder().method, "needs a function at the top of a module"),
        (Holder.method, "needs a function at the top of a module|has no annotation"),
        (at_top_async, "is for synchronous functions"),
        (at_top_context, "cannot carry the context; leave out 'context'"),
        (at_top_yielding, "cannot carry progress"),
    ):
        with pytest.raises(UsageError, match=said):
            isolated(function)


def test_process_is_not_collected_before_its_group_is_killed() -> None:
    process = subprocess.Popen([sys.executable, "-c", ""], start_new_session=True)
    _await_exit(process)
    assert process.returncode is None
    os.killpg(process.pid, 0)  # the id still belongs to the process that ended
    assert process.wait() == 0
