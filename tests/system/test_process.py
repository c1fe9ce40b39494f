"""Commands as processes: output, exit codes, time limits, and that nothing outlives them."""

import asyncio
import gc
import os
import resource
import signal
import subprocess
import sys
import textwrap
import threading
import tracemalloc
from pathlib import Path

import pytest
from tests.waiting import LONG_SECONDS, until, until_so

from callwright.system import process
from callwright.system.output_capture import OutputLimits
from callwright.system.process import Command, CommandResult, Running, run
from callwright.system.supervisor_process import REPORT_FD

# each names its processes after the test's own marker, so that what is left can be found
DAEMONS = {
    "left in the background": "{sleep} & echo ready",
    "in a session of its own": "setsid {sleep} & echo ready",
    "forked twice": "(setsid bash -c '{sleep} & exit 0' &) ; echo ready",
    "deaf to TERM": "bash -c 'trap \"\" TERM HUP; while :; do {sleep}; done' & echo ready",
    "with an empty environment": "setsid env -i bash -c '{sleep}; true' >/dev/null 2>&1 & echo ready",
    "nohup": "nohup {sleep} >/dev/null 2>&1 & disown; echo ready",
    "stopped": "{sleep} & kill -STOP $!; echo ready",
    "hopping from fork to fork": "{hop} & echo ready",
}
ENDLESS = {
    "sleeping": "{sleep}",
    "deaf to TERM": "trap '' TERM; while :; do {sleep}; done",
    "flooding": "yes {marker}",
    "flooding with what is not text": "while :; do printf '\\xff\\xc3\\x28%1000s' {marker}; done",
    "hiding behind a daemon": "(setsid env -i bash -c 'trap \"\" TERM; {sleep}; {sleep}' &); {sleep}",
    "killing its monitor": "kill -9 $PPID; {sleep}",
}
HOP = "import os,time\nwhile True:\n  if os.fork(): os._exit(0)\n  os.setsid(); time.sleep(0.001) #"


def spell(line: str, marker: str) -> str:
    return line.format(sleep=f"sleep 987.{marker}", hop=f"{sys.executable} -c '{HOP}{marker}'", marker=marker)


def command(line: str, cwd: str = "/") -> Command:
    return Command(("bash", "--noprofile", "--norc", "-c", line), cwd, {"PATH": os.environ["PATH"]})


def new_marker() -> str:
    return str(int.from_bytes(os.urandom(6), "big"))


def processes_with(marker: str) -> list[str]:
    found: list[str] = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit() and int(entry.name) != os.getpid():
            try:
                line = (entry / "cmdline").read_bytes()
            except OSError:
                continue
            if marker.encode() in line:
                found.append(line.decode(errors="replace"))
    return found


async def test_output_and_errors_come_interleaved_with_the_exit_code():
    ended = await run(command("echo one; echo two >&2; echo three; exit 3"))
    assert ended.output.text == "one\ntwo\nthree\n"
    assert (ended.exit_code, ended.reason, ended.leftovers) == (3, "exited", 0)


async def test_fatal_signal_gives_the_shell_exit_code():
    assert (await run(command("kill -SEGV $$"))).exit_code == 139


async def test_there_is_no_input_and_no_terminal(tmp_path: Path):
    ended = await run(command("cat; test -t 0 || echo none; ps -o tty= -p $$; pwd", str(tmp_path)))
    assert ended.output.text.split() == ["none", "?", str(tmp_path)]


async def test_command_has_its_own_session_and_only_the_report_fd():
    ended = await run(command("ps -o sid=,pgid=,pid= -p $$; ls /proc/self/fd"))
    session, group, pid, *descriptors = ended.output.text.split()
    assert session == group == pid
    assert set(descriptors) - {"3"} == {"0", "1", "2", str(REPORT_FD)}  # 3 is the folder ls reads


async def test_signals_are_at_their_defaults():
    ended = await run(command("yes | head -1; kill -TERM $$; echo survived"))
    assert ended.output.text == "y\n"
    assert ended.exit_code == 143


async def test_command_that_cannot_start_exits_with_127():
    for broken, told in (
        (Command(("no-such-program",), "/", {"PATH": "/bin"}), "cannot start no-such-program: "),
        (Command(("true",), "/no/such/folder", {}), "cannot enter the folder /no/such/folder: No such file"),
    ):
        ended = await run(broken)
        assert ended.exit_code == 127
        assert told in ended.output.text


async def test_our_environment_is_not_passed_on(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("SECRET_OF_OURS", "1")
    ended = await run(Command(("env",), "/", {"PATH": os.environ["PATH"], "GIVEN": "\udcff\n"}))
    names = {line.partition("=")[0] for line in ended.output.text.splitlines() if "=" in line}
    assert names == {"PATH", "GIVEN", "CALLWRIGHT_COMMAND"}


async def test_report_is_separate_from_output():
    ended = await run(command(f"echo said; pwd >&{REPORT_FD}", "/tmp"))
    assert ended.output.text == "said\n"
    assert ended.report == "/tmp\n"


async def test_long_line_and_large_environment_arrive():
    ended = await run(
        Command(("bash", "-c", 'echo "${#BIG}"; : ' + "x" * 100_000), "/", {"PATH": "/bin", "BIG": "y" * 120_000})
    )
    assert ended.output.text == "120000\n"


async def test_output_is_streamed_while_the_command_runs():
    seen: list[str] = []
    running = Running(command("echo first; sleep 987"), on_output=seen.append)
    await until(lambda: bool(seen))
    assert seen == ["first\n"]
    assert running.ended is None
    running.stop()
    assert (await running.wait()).reason == "stopped"


async def test_characters_cut_between_reads_are_put_together():
    ended = await run(command(r"printf '\xe2\x82'; sleep 0.05; printf '\xac \xff \xe2\x82'"))
    assert ended.output.text == "€ � �"


async def test_processes_about_to_end_are_not_stopped():
    counting = "for n in {1..3000}; do :; done"  # some milliseconds, without a program whose start may take long
    ended = await run(command(f"echo late > >(read -r line; {counting}; echo $line)"))
    assert ended.output.text == "late\n"
    assert ended.leftovers == 0


async def test_daemon_holding_a_pipe_does_not_block_the_call():
    ended = await run(command("sleep 987 & echo ready"))
    assert ended.output.text == "ready\n"
    assert ended.leftovers == 1


async def test_process_that_loads_programs_all_the_time_is_left_running():
    line = command("""again='exec sh -c "$0" "$0"'; sh -c "$again" "$again" & echo ready""")
    ends = await asyncio.gather(*(run(line) for _ in range(12)))
    assert [ended.leftovers for ended in ends] == [1] * 12


@pytest.mark.parametrize("kind", DAEMONS)
async def test_no_daemon_outlives_its_command(kind: str):
    marker = new_marker()
    ended = await run(command(spell(DAEMONS[kind], marker)), seconds=60)
    assert (ended.output.text, ended.exit_code) == ("ready\n", 0)
    assert ended.leftovers >= 1
    assert processes_with(marker) == []


@pytest.mark.parametrize("kind", ENDLESS)
async def test_a_time_limit_ends_everything(kind: str):
    marker = new_marker()
    lost = kind == "killing its monitor"
    ended = await run(command(spell(ENDLESS[kind], marker)), seconds=60 if lost else 0.2)
    assert ended.reason == ("lost" if lost else "timed_out")
    assert ended.exit_code in (137, 143)
    assert processes_with(marker) == []


@pytest.mark.slow
async def test_a_frozen_monitor_is_replaced_by_supervisor():
    marker = new_marker()
    ended = await run(command(f"kill -STOP $PPID; sleep 987.{marker}"), seconds=0.1)
    assert ended.reason == "timed_out"
    assert processes_with(marker) == []


@pytest.mark.slow
async def test_killing_monitor_and_supervisor_does_not_help():
    marker = new_marker()
    killing = "supervisor=$(ps -o ppid= -p $PPID); kill -9 $supervisor $PPID"
    ended = await run(command(f"{killing}; sleep 987.{marker} & sleep 987.{marker}"), seconds=60)
    assert ended.reason == "lost"
    await until(lambda: not processes_with(marker))
    assert (await run(command("echo again"))).output.text == "again\n"


async def test_a_command_may_clean_up_when_it_is_stopped(tmp_path: Path):
    line = "trap 'echo cleaned > done; exit 5' TERM; echo ready; while :; do sleep 0.01; done"
    for _ in range(20):  # a slow machine may need more than the grace period now and then
        running = Running(command(line, str(tmp_path)))
        await until(lambda running=running: running.output.chars > 0)
        running.stop()
        running.stop()
        ended = await running.wait()
        assert ended.reason == "stopped"
        if ended.exit_code == 5:
            break
    else:
        raise AssertionError("no command had the time to clean up")
    assert (tmp_path / "done").read_text() == "cleaned\n"


@pytest.mark.parametrize("milliseconds", [0, 1, 3, 10, 40])
async def test_cancelling_at_any_moment_leaves_nothing(milliseconds: int):
    marker = new_marker()
    task = asyncio.create_task(
        run(command(f"trap '' TERM; sleep 987.{marker} & sleep 987.{marker}; sleep 987.{marker}"))
    )
    await asyncio.sleep(milliseconds / 1000)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert processes_with(marker) == []


async def test_cancelling_a_running_command_leaves_nothing():
    marker = new_marker()
    seen: list[str] = []
    line = f"trap '' TERM; sleep 987.{marker} & echo ready; sleep 987.{marker}; sleep 987.{marker}"
    task = asyncio.create_task(run(command(line), on_output=seen.append))
    await until(lambda: bool(seen))
    assert processes_with(marker)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert processes_with(marker) == []


async def test_second_cancellation_returns_at_once(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(process, "_STOP_SECONDS", 3600.0)  # after it a monitor that stands still is killed
    marker = new_marker()
    seen: list[str] = []
    line = f"trap '' TERM; echo $PPID; sleep 987.{marker}; sleep 987.{marker}"
    task = asyncio.create_task(run(command(line), on_output=seen.append))
    await until(lambda: "\n" in "".join(seen))
    monitor = int("".join(seen))
    os.kill(monitor, signal.SIGSTOP)  # nothing can end now: a call that waited for the end would wait for ever
    try:
        for _ in range(2):
            task.cancel()
            await asyncio.sleep(0.01)
        with pytest.raises(asyncio.CancelledError):
            await task
        assert processes_with(marker)
    finally:
        os.kill(monitor, signal.SIGCONT)
    await until(lambda: not processes_with(marker))


async def test_memory_stays_bounded_and_a_flood_is_stopped():
    caps = OutputLimits(kept_chars=1000, flood_bytes=40_000_000)
    # what Python allocates, not the process's maximum: that also counts what the allocator keeps of earlier tests
    tracemalloc.start()
    try:
        ended = await run(command("yes"), seconds=60, caps=caps)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert ended.reason == "flooded"
    assert len(ended.output.text) < 1300
    assert ended.output.bytes < 400_000_000  # what came until the command was gone: in 60 s it would be far more
    assert peak < 8_000_000


async def test_commands_run_in_parallel(tmp_path: Path):
    meet = "touch {0}; until [ $(ls | wc -l) = 20 ]; do sleep 0.02; done; echo {0}"
    ends = await asyncio.gather(*(run(command(meet.format(number), str(tmp_path))) for number in range(20)))
    assert [ended.output.text for ended in ends] == [f"{number}\n" for number in range(20)]


async def test_the_loop_is_never_blocked_by_a_command():
    task = asyncio.create_task(run(command("yes"), caps=OutputLimits(flood_bytes=1 << 40)))
    for _ in range(100):  # the command never ends by itself
        await asyncio.sleep(0.001)
    assert not task.done()
    task.cancel()
    await asyncio.wait([task])


def test_a_command_outlives_the_loop_that_started_it():
    async def start() -> Running:
        return Running(command("sleep 0.1; seq 1 200000 | tail -1"))

    assert asyncio.run(start()).wait_blocking(60).output.text == "200000\n"


@pytest.mark.parametrize("ending", ["os.kill(os.getpid(), 9)", "os._exit(0)", "sys.exit(0)"])
def test_commands_end_when_our_process_ends(ending: str):
    marker = new_marker()
    program = f"""
        import os, sys, time
        from callwright.system.process import Command, Running
        line = "trap '' TERM; (setsid sleep 987.{marker} &); echo ready; sleep 987.{marker}; sleep 987.{marker}"
        running = Running(Command(("bash", "-c", line), "/", {{"PATH": os.environ["PATH"]}}))
        while not running.output.chars:
            time.sleep(0.005)
        {ending}
    """
    subprocess.run([sys.executable, "-c", textwrap.dedent(program)], check=False, timeout=LONG_SECONDS)
    until_so(lambda: not processes_with(marker))


def test_a_forked_child_starts_its_own_supervisor():
    program = """
        import os
        from callwright.system.process import Command, Running
        true = Command(("true",), "/", {"PATH": os.environ["PATH"]})
        assert Running(true).wait_blocking(80).exit_code == 0
        pid = os.fork()
        if pid == 0:
            os._exit(Running(true).wait_blocking(80).exit_code)
        assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0
        assert Running(true).wait_blocking(80).exit_code == 0
    """
    subprocess.run([sys.executable, "-W", "ignore", "-c", textwrap.dedent(program)], check=True, timeout=LONG_SECONDS)


@pytest.mark.slow
def test_exiting_forked_child_keeps_our_commands():
    program = """
        import os, sys
        from callwright.system.process import Command, Running
        running = Running(Command(("sleep", "0.4"), "/", {"PATH": os.environ["PATH"]}))
        while not running._monitor:
            pass
        pid = os.fork()
        if pid == 0:
            running.stop()
            sys.exit(0)
        os.waitpid(pid, 0)
        assert running.wait_blocking(80).reason == "exited"
    """
    subprocess.run([sys.executable, "-W", "ignore", "-c", textwrap.dedent(program)], check=True, timeout=LONG_SECONDS)


async def test_commands_leak_no_descriptors_or_threads():
    await run(command("true"))
    before = used()
    await asyncio.gather(*(run(command("echo; sleep 0.01 & true")) for _ in range(30)))
    await until(lambda: used() <= before)


async def test_polls_of_a_running_command_leave_nothing():
    running = Running(command("sleep 30"))
    gc.collect()
    before = sum(isinstance(each, asyncio.Future) for each in gc.get_objects())
    for _ in range(50):
        assert await running.wait_at_most(0) is None
    gc.collect()
    assert sum(isinstance(each, asyncio.Future) for each in gc.get_objects()) <= before
    running.stop()
    await running.wait()


def used() -> tuple[int, int]:
    return len(list(Path("/proc/self/fd").iterdir())), threading.active_count()


async def storm(count: int) -> list[tuple[CommandResult, str]]:
    """Commands of every kind, eight at a time; how each ended, and its marker."""
    lines = [*DAEMONS.values(), *ENDLESS.values()]
    turns = asyncio.Semaphore(8)

    async def one(number: int) -> tuple[CommandResult, str]:
        async with turns:
            marker = new_marker()
            caps = OutputLimits(kept_chars=1000, flood_bytes=20_000_000)
            ended = await run(command(spell(lines[number % len(lines)], marker)), seconds=0.5, caps=caps)
            return ended, marker

    return await asyncio.gather(*(one(number) for number in range(count)))


async def hold_out(count: int) -> None:
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    ends = await storm(count)
    assert {ended.reason for ended, _ in ends} <= {"exited", "timed_out", "flooded", "lost"}
    assert [left for _, marker in ends for left in processes_with(marker)] == []
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 60_000


@pytest.mark.slow
async def test_twenty_hostile_commands_leave_nothing():
    await hold_out(20)


@pytest.mark.slow
async def test_two_hundred_hostile_commands_leave_nothing():
    await hold_out(200)
