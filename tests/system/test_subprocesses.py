"""Children without a shell: their output, their end, and what they leave behind."""

import asyncio
import os
import sys
from pathlib import Path

import pytest
from tests.waiting import until, until_so, within

from callwright.system.subprocesses import ChildResult, run_child

_LEAVES_A_DAEMON = """
import os, sys, time
if os.fork() == 0:
    if sys.argv[2] == "detached":
        os.setsid()
    if os.fork() == 0:
        with open(sys.argv[1] + "/draft", "w") as file:
            file.write(str(os.getpid()))
        os.rename(sys.argv[1] + "/draft", sys.argv[1] + "/pid")
        while True:
            time.sleep(0.001)
            if sys.argv[3] == "loud":
                os.write(1, b"more\\n")
    os._exit(0)
os.wait()
while not os.path.exists(sys.argv[1] + "/pid"):
    time.sleep(0.001)
sys.stdout.write("x" * 300_000 + "last")
sys.stdout.flush()
sys.stderr.write("a complaint")
if sys.argv[4:] == ["stay"]:
    time.sleep(1000)
sys.exit(3)
"""


async def _run(*arguments: str, folder: Path, max_bytes: int = 1 << 20) -> ChildResult:
    return await run_child((sys.executable, "-c", *arguments), folder, max_bytes=max_bytes)


def _is_alive(pid: int) -> bool:
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except FileNotFoundError:
        return False
    return state != "Z"


@pytest.mark.parametrize("session", ["same", "detached"])
@pytest.mark.parametrize("manner", ["quiet", "loud"])
async def test_process_left_behind_is_not_waited_for(tmp_path: Path, session: str, manner: str) -> None:
    done = await within(_run(_LEAVES_A_DAEMON, str(tmp_path), session, manner, folder=tmp_path))
    daemon = int((tmp_path / "pid").read_text())
    try:
        assert (done.code, done.errors, done.cut) == (3, "a complaint", False)
        text = done.output.replace(b"more\n", b"")
        assert len(text) == 300_004 and text.endswith(b"last")  # nothing that it wrote itself is lost
        if session == "same" and Path("/proc/self/stat").exists():
            await until(lambda: not _is_alive(daemon))
    finally:
        if _is_alive(daemon):
            os.kill(daemon, 9)


@pytest.mark.parametrize("stalled", [False, True])
async def test_cancelled_call_does_not_wait_for_a_process_left_behind(tmp_path: Path, stalled: bool) -> None:
    running = asyncio.ensure_future(_run(_LEAVES_A_DAEMON, str(tmp_path), "detached", "quiet", "stay", folder=tmp_path))
    if stalled:  # cancelled before the pipes are connected, as on a busy machine
        for _ in range(3):
            await asyncio.sleep(0)
        until_so((tmp_path / "pid").exists)
    else:
        await until((tmp_path / "pid").exists)
    running.cancel()
    await within(asyncio.gather(running, return_exceptions=True))
    assert running.cancelled()
    os.kill(int((tmp_path / "pid").read_text()), 9)


async def test_child_with_too_much_output_is_stopped(tmp_path: Path) -> None:
    done = await _run("while True: print('x' * 1000)", folder=tmp_path, max_bytes=10_000)
    assert done.cut and len(done.output) > 10_000 and done.code == 0


async def test_child_that_closes_its_output_is_waited_for(tmp_path: Path) -> None:
    program = "import os, time; os.close(1); os.close(2); time.sleep(0.2); os._exit(5)"
    assert (await _run(program, folder=tmp_path)).code == 5


async def test_input_is_written_whole_and_may_be_left_unread(tmp_path: Path) -> None:
    async def feed() -> bytes:
        return b"y" * 1_000_000

    count = "import sys; print(len(sys.stdin.read()))"
    done = await run_child((sys.executable, "-c", count), tmp_path, max_bytes=100, feed=feed())
    assert done.output == b"1000000\n"
    done = await run_child((sys.executable, "-c", "print(1)"), tmp_path, max_bytes=100, feed=feed())
    assert (done.output, done.code) == (b"1\n", 0)


async def test_signal_that_ended_a_child_is_told(tmp_path: Path) -> None:
    assert (await _run("import os; os.kill(os.getpid(), 9)", folder=tmp_path)).code == -9
