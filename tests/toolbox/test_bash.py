"""The bash tool, through the executor and on real processes."""

import asyncio
import gc
import os
import shutil
import subprocess
import sys
import textwrap
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

import pytest
from tests.waiting import LONG_SECONDS, until

from callwright.core.access import Confinement, RunCommand, WritePath
from callwright.core.calls import (
    Answers,
    Approve,
    Completed,
    Decline,
    Failed,
    Interrupted,
    Outcome,
    Question,
    ToolCall,
)
from callwright.core.errors import InvalidArguments, TimedOut, ToolFailed
from callwright.core.events import CallProgressed, Event
from callwright.core.json import Json
from callwright.core.spec import Effect
from callwright.executor import Executor, Turn
from callwright.policy import AllowEverything, ByMode, ExcludedCommands, rules_of, standard_policies
from callwright.registry import Registry
from callwright.system.output_capture import OutputLimits, output_folder
from callwright.system.paths import Workspace
from callwright.system.process import Command, Running
from callwright.system.sandbox import bubblewrap
from callwright.system.sandbox.sandbox import SandboxMode
from callwright.system.supervisor_process import REPORT_FD
from callwright.tool.base import State
from callwright.toolbox.bash.bash_tool import Bash
from callwright.toolbox.bash.command_environment import command_environment
from callwright.toolbox.bash.command_output import CommandFailed
from callwright.toolbox.bash.jobs import BashKill, BashOutput, ShellSession, WalledJob


class Shell:
    """An executor with the shell tools, and what its observers saw."""

    def __init__(self, bash: Bash) -> None:
        self.bash = bash
        self.state = State()
        self.progress: list[str] = []
        tools = Registry(bash, BashOutput(), BashKill())
        self.executor = Executor(tools, AllowEverything(), observe=self._see, state=self.state)

    def _see(self, event: Event) -> None:
        if isinstance(event, CallProgressed):
            self.progress.append(str(event.progress))

    async def __call__(self, command: str, **more: Json) -> Outcome:
        return await self.call("bash", {"command": command, **more})

    async def call(self, name: str, arguments: Mapping[str, Json]) -> Outcome:
        return await self.executor.run(name, arguments)

    async def says(self, command: str, **more: Json) -> str:
        outcome = await self(command, **more)
        assert isinstance(outcome, Completed), outcome
        return outcome.text


@pytest.fixture
def shell(tmp_path: Path) -> Shell:
    (tmp_path / "sub").mkdir()
    return Shell(Bash(tmp_path))


def failure(outcome: Outcome) -> Failed:
    assert isinstance(outcome, Failed), outcome
    return outcome


def is_anywhere(name: str, folder: Path) -> bool:
    return any(folder.rglob(name))


def names_in(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


def left_of(marker: str) -> str:
    return subprocess.run(["pgrep", "-f", f"sleep {marker}"], capture_output=True, text=True, check=False).stdout


async def test_output_and_exit_code_are_returned(shell: Shell):
    assert await shell.says("echo hello-from-bash") == "hello-from-bash\nexit code: 0"
    assert await shell.says("true") == "(no output)\nexit code: 0"


async def test_failing_command_has_output_and_exit_code(shell: Shell):
    failed = failure(await shell("echo out; echo problem >&2; exit 3"))
    assert isinstance(failed.error, CommandFailed)
    assert failed.error.exit_code == 3
    assert failed.text == "out\nproblem\nexit code: 3"


@pytest.mark.parametrize(
    "line",
    [
        "grep nothing /dev/null",
        "grep -q nothing /dev/null && echo found",
        "cat /dev/null | grep nothing",
        "diff /dev/null /etc/passwd",
        "test 1 = 2",
        "[ 1 = 2 ]",
        "[[ 1 = 2 ]]",
        "git diff --no-index --quiet /dev/null /etc/passwd",
        "cd sub && grep nothing /dev/null",
    ],
)
async def test_exit_code_1_of_grep_is_not_an_error(shell: Shell, line: str):
    outcome = await shell(line)
    assert isinstance(outcome, Completed), outcome
    assert outcome.text.endswith("exit code: 1")


@pytest.mark.parametrize(
    "line", ["false", "grep x /dev/null; false", "grep x /no/such/file", "git status /", "(exit 1)", "$GREP; exit 1"]
)
async def test_other_exit_codes_are_errors(shell: Shell, line: str):
    assert isinstance(failure(await shell(line)).error, CommandFailed)


async def test_folder_persists_variables_do_not(shell: Shell, tmp_path: Path):
    assert f"[the shell is now in {tmp_path}/sub]" in await shell.says("cd sub; export KEPT=1; local_too=2")
    assert await shell.says("pwd; echo .$KEPT$local_too$1$#.") == f"{tmp_path}/sub\n.0.\nexit code: 0"


async def test_folder_follows_failing_line(shell: Shell, tmp_path: Path):
    failure(await shell("cd sub; exit 4"))
    assert (await shell.says("pwd")).startswith(f"{tmp_path}/sub\n")


async def test_leaving_the_workspace_is_undone(shell: Shell, tmp_path: Path):
    await shell.says("cd sub")
    (tmp_path / "out").symlink_to("/etc")
    for line in ("cd /", "cd ../out", "cd ../.."):
        assert f"the shell is back in {tmp_path}/sub" in await shell.says(line)
        assert (await shell.says("pwd")).startswith(f"{tmp_path}/sub\n")


@pytest.mark.parametrize("name", ["two\\nlines", "esc\\e[31m", "\\u202ereversed"])
async def test_output_is_kept_where_a_line_ends_in_an_odd_folder(shell: Shell, tmp_path: Path, name: str):
    said = await shell.says(f"mkdir $'{name}'; cd $'{name}'; echo done")
    assert said.startswith("done\n[") and "\x1b" not in said and "\u202e" not in said
    assert f"has a control character in its path: the shell is back in {tmp_path}]" in said


async def test_folder_that_a_line_reports_itself_must_be_absolute(
    shell: Shell, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    (tmp_path / "etc").mkdir()
    monkeypatch.chdir(tmp_path)
    await shell.says(f"trap - EXIT; printf 'etc\\n' >&{REPORT_FD}")
    assert (await shell.says("pwd")).startswith(f"{tmp_path}\n")  # not in /etc, where it was not judged
    await shell.says(f"trap - EXIT; printf '{tmp_path}/sub/../etc\\n' >&{REPORT_FD}")
    assert shell.bash.folder_of(ShellSession.of(shell.state, "")) == tmp_path / "etc"


async def test_folder_that_cannot_exist_or_is_gone_is_left(shell: Shell, tmp_path: Path):
    for name in ("%05000d", "gone%d"):
        said = await shell.says(f"trap - EXIT; printf '{tmp_path}/{name}\\n' 0 >&{REPORT_FD}")
        assert f"does not exist any more: the shell is back in {tmp_path}]" in said


async def test_removed_folder_resets_to_root(shell: Shell, tmp_path: Path):
    await shell.says("cd sub")
    (tmp_path / "sub").rmdir()
    assert (await shell.says("pwd")).startswith(f"{tmp_path}\n")


async def test_call_runs_only_in_its_judged_folder(shell: Shell, tmp_path: Path):
    calls = [ToolCall("1", "bash", {"command": "cd sub"}), ToolCall("2", "bash", {"command": "touch here"})]
    moved, refused = await shell.executor.execute(calls)
    assert isinstance(moved, Completed)
    assert "send it again" in failure(refused).text
    assert not is_anywhere("here", tmp_path)
    await shell.says("touch here")
    assert (tmp_path / "sub" / "here").exists()


async def test_sessions_have_separate_folders(shell: Shell, tmp_path: Path):
    other = Shell(shell.bash)
    await shell.says("cd sub")
    for _ in range(3):
        assert (await other.says("pwd")).startswith(f"{tmp_path}\n")
        assert (await shell.says("pwd")).startswith(f"{tmp_path}/sub\n")


async def test_sessions_of_one_executor_have_separate_shells(shell: Shell, tmp_path: Path):
    await shell("sleep 30", background=True)
    for session_id in ("a", "b"):
        turn = Turn(session_id=session_id)
        (outcome,) = await shell.executor.execute([ToolCall("1", "bash", {"command": "pwd; cd sub"})], turn=turn)
        assert outcome.text.startswith(f"{tmp_path}\n")
        (outcome,) = await shell.executor.execute([ToolCall("2", "bash_output", {"id": "1"})], turn=turn)
        assert "no job was started" in outcome.text
    shell.state.get(ShellSession).close()


async def test_long_line_runs(shell: Shell):
    line = f"echo {'x' * 300_000} | wc -c"
    assert (await shell.says(line)).startswith("300001\n")
    assert "longer than" in failure(await shell(f"echo {'é' * 800_000}")).text


async def test_background_output_is_read_completely(shell: Shell):
    await shell("for i in $(seq 4000); do echo $i; done", background=True)
    read = ""
    while "exit code" not in read:
        read += (await shell.call("bash_output", {"id": "1"})).text + "\n"
    lines = [int(line) for line in read.splitlines() if line.isdecimal()]
    assert lines == list(range(1, 4001))


async def test_removed_private_folder_is_made_again(shell: Shell):
    await shell.says("true")
    shutil.rmtree(output_folder())
    assert "characters left out" in await shell.says("seq 20000")
    shutil.rmtree(output_folder())
    await shell("seq 20000", background=True)
    assert "ended; exit code: 0" in (await shell.call("bash_output", {"id": "1", "wait_seconds": 60})).text


async def test_failed_job_leaves_other_jobs_alone(shell: Shell):
    failed = Running(Command(("true",), "/", {}))
    await failed.wait()
    failed.abandon()
    session = shell.state.get(ShellSession)
    session.shell_of("").add("true", failed, walled=WalledJob(Confinement.READ_ONLY, "/"))
    await shell("echo fine", background=True)
    assert "fine" in (await shell.call("bash_output", {"id": "2", "wait_seconds": 60})).text
    assert "stopped" in (await shell.call("bash_output", {"id": "1"})).text


async def test_timeout_stops_command_and_keeps_output(shell: Shell):
    for seconds in (0.2, 2, 20):  # a slow machine may need longer to start it
        failed = failure(await shell("echo begun; sleep 4242.1 & sleep 4242.1", timeout_seconds=seconds))
        assert isinstance(failed.error, TimedOut)
        if failed.text.startswith(f"begun\ntimed out after {seconds} s"):
            break
    else:
        pytest.fail(failed.text)
    assert left_of("4242.1") == ""


@pytest.mark.parametrize(
    ("given", "seconds"),
    [
        ({}, 120.0),
        ({"timeout_seconds": 5}, 5.0),
        ({"timeout_seconds": 100_000}, 600.0),
        ({"timeout_ms": 1500}, 1.5),
        ({"timeout": 30}, 30.0),
        ({"timeout": 120_000}, 120.0),
        ({"timeout": 9_000_000}, 600.0),
    ],
)
def test_timeouts_are_clamped_and_aliases_accepted(given: Mapping[str, Json], seconds: float):
    assert Bash("/").bind({"cmd": "true", **given}).given.timeout_seconds == seconds


@pytest.mark.parametrize(
    "given", [{}, {"command": ""}, {"command": "x", "timeout_seconds": 0}, {"command": "x", "timeout": "long"}]
)
def test_invalid_arguments_are_refused(given: Mapping[str, Json]):
    with pytest.raises(InvalidArguments):
        Bash("/").bind(given)


async def test_no_command_waits_for_input_or_pager(shell: Shell):
    assert await shell.says("cat; seq 3 | $PAGER | tail -1; tty || true") == "3\nnot a tty\nexit code: 0"
    assert "exit code: 1" in failure(await shell("read -p 'sure? ' answer", timeout_seconds=60)).text


async def test_leftover_processes_are_stopped(shell: Shell):
    output = await shell.says("sleep 4242.2 & echo ready")
    assert output.startswith("ready\n[processes it left running were stopped: 1;")
    assert left_of("4242.2") == ""


async def test_long_output_is_cut_and_saved(shell: Shell):
    output = await shell.says("seq 1 100000")
    assert len(output) < 30_000
    assert output.startswith("1\n2\n")
    assert output.endswith("99999\n100000\nexit code: 0")
    path = output.partition("the whole output is in ")[2].partition("]")[0]
    assert await shell.says(f"seq 1 100000 | cmp - {path} && echo same") == "same\nexit code: 0"


async def test_output_flood_is_stopped(tmp_path: Path):
    shell = Shell(Bash(tmp_path, caps=OutputLimits(flood_bytes=1_000_000)))
    assert "stopped: it wrote more than 1000000 bytes" in failure(await shell("yes")).text


async def test_invalid_bytes_are_replaced(shell: Shell):
    assert await shell.says(r"printf 'a\xffb\xe2\x82'") == "a�b�\nexit code: 0"


async def test_output_is_reported_as_progress(shell: Shell):
    task = asyncio.create_task(shell("echo first; sleep 4242.3"))
    await until(lambda: shell.progress)
    assert shell.progress == ["first\n"]
    task.cancel()
    await asyncio.wait({task})
    assert left_of("4242.3") == ""


async def test_progress_reports_are_rate_limited(shell: Shell):
    await shell.says("seq 1 300000 | tee /dev/stderr | tail -1")
    assert 0 < len(shell.progress) < 100


async def test_bash_messages_have_right_line_numbers(shell: Shell):
    assert "bash: line 2: no-such-thing: command not found" in failure(await shell("echo\nno-such-thing")).text
    assert "unexpected EOF" in failure(await shell("echo 'open")).text


async def test_environment_variables_inject_no_code(tmp_path: Path):
    (tmp_path / "evil").write_text("echo evil\n")
    environment = {
        "PATH": os.environ["PATH"],
        "BASH_ENV": str(tmp_path / "evil"),
        "BASH_FUNC_ls%%": "() { echo evil; }",
        "SHELLOPTS": "xtrace",
        "CDPATH": "/",
        "MINE": "kept",
    }
    shell = Shell(Bash(tmp_path, environment=environment))
    assert await shell.says("ls; echo $MINE") == "evil\nkept\nexit code: 0"  # the file's name, not its content


async def test_repository_config_runs_nothing_on_read(tmp_path: Path):
    shell = Shell(Bash(tmp_path))
    await shell.says(
        "git init -q . && git config core.fsmonitor 'touch PWNED; false' && git config core.pager 'touch PWNED'"
    )
    await shell.says("git status --short; git log --oneline 2>/dev/null; true")
    assert not (tmp_path / "PWNED").exists()


def test_git_settings_from_environment_are_kept():
    given = {"GIT_CONFIG_COUNT": "1", "GIT_CONFIG_KEY_0": "user.name", "GIT_CONFIG_VALUE_0": "me"}
    made = command_environment(given)
    assert made["GIT_CONFIG_KEY_0"] == "user.name"
    keys = [made[f"GIT_CONFIG_KEY_{place}"] for place in range(int(made["GIT_CONFIG_COUNT"]))]
    assert {"user.name", "core.fsmonitor", "safe.bareRepository"} <= set(keys)


@pytest.mark.parametrize(
    ("line", "effect"),
    [
        ("git status", Effect.READ),
        ("cat file | sort", Effect.READ),
        ("echo x > file", Effect.WRITE),
        ("rm -rf build", Effect.DESTROY),
        ("some-unknown-program", Effect.DESTROY),
        ("echo $(rm file)", Effect.WRITE),
        ("echo 'open", Effect.DESTROY),
    ],
)
def test_call_declares_line_folder_and_effect(line: str, effect: Effect, tmp_path: Path):
    first = Bash(tmp_path).bind({"command": line}).accesses()[0]
    assert isinstance(first, RunCommand)
    assert (first.line, first.cwd) == (line, str(tmp_path))
    assert first.effect is effect or first.effect > effect > Effect.READ


async def test_paths_are_relative_to_shell_folder(shell: Shell, tmp_path: Path):
    await shell.says("cd sub")
    (command,) = shell.bash.bind({"command": "echo x > file"}).accesses()
    assert isinstance(command, RunCommand)
    assert WritePath(str(tmp_path / "sub" / "file")) in command.touches


async def test_background_job_is_read_and_stopped(shell: Shell):
    started = await shell("echo one; while ! [ -e go ]; do sleep 0.01; done; echo two; sleep 4242.4", background=True)
    assert isinstance(started, Completed)
    assert started.output.structured == {"job": "1"}
    job = shell.state.get(ShellSession).find("1")
    await until(lambda: job.running.output.chars)
    assert (await shell.call("bash_output", {"id": "1"})).text.startswith("one\njob 1 (echo one;")  # type: ignore[union-attr] - completed
    await shell.says("touch go")
    await until(lambda: "two" in job.running.output.text)
    stopped = await shell.call("bash_kill", {"bash_id": "1"})
    assert isinstance(stopped, Completed)
    assert stopped.text.startswith("two\njob 1")
    assert stopped.text.endswith("stopped; exit code: 143")
    assert left_of("4242.4") == ""


async def test_wait_returns_when_job_ends(shell: Shell):
    await shell("sleep 0.05; echo done; exit 9", background=True)
    read = await shell.call("bash_output", {"id": "1", "wait_seconds": 30})
    assert isinstance(read, Completed)
    assert read.text.startswith("done\n")
    assert read.text.endswith("ended; exit code: 9")


async def test_unknown_job_lists_known_jobs(shell: Shell):
    assert "no job was started" in failure(await shell.call("bash_output", {"id": "7"})).text
    await shell("true", background=True)
    assert "known jobs: 1" in failure(await shell.call("bash_kill", {"id": "7"})).text


async def test_closing_session_stops_jobs(shell: Shell):
    await shell("trap '' TERM; sleep 4242.5; sleep 4242.5", background=True)
    await shell("setsid sleep 4242.5", background=True)
    shell.state.get(ShellSession).close()
    assert left_of("4242.5") == ""


@pytest.mark.slow
async def test_collected_session_stops_jobs(tmp_path: Path):
    session = ShellSession()
    shell = Shell(Bash(tmp_path))
    shell.state.put(session)
    await shell("sleep 4242.6", background=True)
    running = session.find("1").running
    del shell, session
    ended = asyncio.create_task(running.wait())
    while not ended.done():
        gc.collect()  # an executor and its parts know each other
        await asyncio.sleep(0.01)
    assert ended.result().reason == "stopped"


async def test_closed_session_leaves_no_private_folder(shell: Shell):
    session = ShellSession.of(shell.state, "")
    await shell("sleep 4242.7", background=True)
    folder = session.scratch
    (folder / "left").write_text("x")
    session.close()
    assert not folder.exists()
    assert await shell.says("echo again") == "again\nexit code: 0"
    assert session.scratch != folder and session.scratch.is_dir()
    session.close()


async def test_collected_session_leaves_no_private_folder():
    sessions = [ShellSession() for _ in range(3)]
    folders = [session.scratch for session in sessions]
    sessions[0].add(
        "true", Running(Command(("sleep", "4242.8"), "/", {})), walled=WalledJob(Confinement.READ_ONLY, "/")
    )
    sessions.clear()
    await until(lambda: not any(folder.exists() for folder in folders))
    assert left_of("4242.8") == ""


def test_forked_child_keeps_the_private_folder():
    program = """
        import os, threading, time
        from callwright.toolbox.bash.jobs import ShellSession
        session = ShellSession()
        folder = session.scratch
        child = os.fork()
        if child == 0:
            del session
            os._exit(threading.active_count() != 1 or not folder.is_dir())
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
        del session
        while folder.exists():
            time.sleep(0.01)
    """
    subprocess.run([sys.executable, "-W", "ignore", "-c", textwrap.dedent(program)], check=True, timeout=LONG_SECONDS)


async def test_jobs_that_were_read_do_not_pile_up():
    ended = Running(Command(("true",), "/", {}))
    await ended.wait()
    unread = Running(Command(("echo", "unread"), "/", {}))
    await unread.wait()
    session, walled = ShellSession(), WalledJob(Confinement.READ_ONLY, "/")
    session.add("echo unread", unread, walled=walled)
    added = [session.add("true", ended, walled=walled).id for _ in range(500)]
    assert added == [str(number) for number in range(2, 502)] and session.find("501").line == "true"
    assert session.find("1").read_new() == "unread\n"
    assert len(session.jobs) < 100


async def test_commands_run_in_the_sandbox(tmp_path: Path):
    if bubblewrap.find_problem():
        pytest.skip(bubblewrap.find_problem())
    workspace, outside = tmp_path / "workspace", tmp_path / "outside"
    workspace.mkdir()
    shell = Shell(Bash(workspace, sandbox="require", protected=(".agent",)))
    assert "exit code: 1" in failure(await shell(f"touch {outside} .agent/x; echo ok > inside; exit 1")).text
    assert "file\n" in await shell.says("mkdir sub; cd sub; echo file > $TMPDIR/kept; cat $TMPDIR/kept")
    assert (await shell.says("pwd; cat $TMPDIR/kept")).startswith(f"{workspace}/sub\nfile\n")
    assert names_in(workspace) == ["inside", "sub"]
    assert not outside.exists()


@pytest.mark.parametrize("times", [1, 3])
async def test_wall_whose_parts_disappear_is_built_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, times: int):
    if bubblewrap.find_problem():
        pytest.skip(bubblewrap.find_problem())
    workspace, home, programs = (tmp_path / name for name in ("workspace", "home", "programs"))
    for folder in (workspace, home, programs):
        folder.mkdir()
    for number in range(times):
        (home / f"{number}.key").write_text("x")
    monkeypatch.setenv("HOME", str(home))
    bash, program = Bash(workspace, sandbox="require"), bubblewrap.find_program()
    removing = f"for key in {home}/*.key; do rm -f $key; break; done"  # one that is to be covered
    (programs / "bwrap").write_text(f'#!/bin/sh\n{removing}\nexec {program} "$@"\n')
    (programs / "bwrap").chmod(0o755)
    monkeypatch.setenv("PATH", f"{programs}{os.pathsep}{os.environ['PATH']}")
    outcome = await Shell(bash)("echo run >> effects")
    assert names_in(home) == []
    if times == 1:
        assert isinstance(outcome, Completed) and (workspace / "effects").read_text() == "run\n"
    else:
        assert "nothing was run: the sandbox failed to start: bwrap: " in failure(outcome).text
        assert names_in(workspace) == []


async def test_line_that_looks_like_a_failed_wall_runs_once(tmp_path: Path):
    if bubblewrap.find_problem():
        pytest.skip(bubblewrap.find_problem())
    shell = Shell(Bash(tmp_path, sandbox="require"))
    failure(await shell("echo run >> effects; exec sh -c 'echo bwrap: no; exit 1'"))
    assert (tmp_path / "effects").read_text() == "run\n"


async def test_sandboxed_timeout_leaves_no_process(tmp_path: Path):
    if bubblewrap.find_problem():
        pytest.skip(bubblewrap.find_problem())
    shell = Shell(Bash(tmp_path, sandbox="require", protected=(".agent",)))
    failure(await shell("trap '' TERM; setsid sleep 4242.7 & sleep 4242.7", timeout_seconds=0.2))
    assert left_of("4242.7") == ""
    assert names_in(tmp_path) == []


async def test_line_is_not_run_unasked_without_a_wall(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    bash = Bash(tmp_path)
    monkeypatch.setattr(bash, "sandbox", replace(bash.sandbox, kind="none", gaps=("bubblewrap is not installed",)))
    executor = Executor(Registry(bash), ByMode("auto", sandboxed=True))
    assert isinstance(await executor.run("bash", {"command": "pwd"}), Completed)
    stopped = await executor.run("bash", {"command": "touch here"})
    assert not isinstance(stopped, Completed)
    assert "cannot be confined" in stopped.text or isinstance(stopped, Interrupted)
    assert not (tmp_path / "here").exists()


@pytest.mark.parametrize("reply", [Approve(), Decline(), None])
async def test_stopped_line_is_asked_about_and_runs_outside(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, reply: Approve | Decline | None
):
    if bubblewrap.find_problem():
        pytest.skip(bubblewrap.find_problem())
    workspace = tmp_path / "workspace"
    workspace.mkdir()
    monkeypatch.setenv("HOME", str(tmp_path / "home"))  # visible behind the wall, and read-only there
    (tmp_path / "home").mkdir()
    asked: list[Question] = []

    async def ask(questions: Sequence[Question]) -> Answers:
        asked.extend(questions)
        return Answers({question.id: reply for question in questions if reply is not None})

    executor = Executor(Registry(Bash(workspace)), AllowEverything())
    call = ToolCall("1", "bash", {"command": "echo x >> inside; bash -c 'echo x > $HOME/new'"})
    (outcome,) = await executor.execute([call], turn=Turn(ask=ask))
    assert [question.reason.partition(" (")[0] for question in asked] == [
        f"the sandbox stopped it: it tried to write to {tmp_path}/home/new"
    ]
    assert isinstance(outcome, Completed) is isinstance(reply, Approve)
    assert (tmp_path / "home" / "new").exists() is isinstance(reply, Approve)


@pytest.mark.parametrize("reply", [Approve(), Decline()])
async def test_stopped_job_is_asked_about_once_and_runs_outside(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, reply: Approve | Decline
):
    if bubblewrap.find_problem():
        pytest.skip(bubblewrap.find_problem())
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    (tmp_path / "home").mkdir()
    (tmp_path / "workspace").mkdir()
    asked: list[Question] = []

    async def ask(questions: Sequence[Question]) -> Answers:
        asked.extend(questions)
        return Answers({question.id: reply for question in questions})

    executor = Executor(Registry(Bash(tmp_path / "workspace"), BashOutput()), AllowEverything(), state=State())
    line = "bash -c 'echo x > $HOME/new'; x=$?; echo ended; exit $x"
    await executor.run("bash", {"command": line, "background": True})
    read = ToolCall("2", "bash_output", {"id": "1", "wait_seconds": 20})
    (outcome,) = await executor.execute([read], turn=Turn(ask=ask))
    (question,) = asked
    assert f"it tried to write to {tmp_path}/home/new" in question.reason and line in question.reason
    assert isinstance(outcome, Completed) is isinstance(reply, Approve)
    (outcome,) = await executor.execute([read], turn=Turn(ask=ask))
    assert isinstance(outcome, Completed) and len(asked) == 1
    assert (tmp_path / "home" / "new").exists() is isinstance(reply, Approve)


@pytest.mark.parametrize("allowed", ["by rule", "by the user", "by nothing"])
async def test_excluded_command_runs_outside_once_allowed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, allowed: str
):
    if bubblewrap.find_problem():
        pytest.skip(bubblewrap.find_problem())
    workspace, home = tmp_path / "workspace", tmp_path / "home"
    workspace.mkdir()
    home.mkdir()
    monkeypatch.setenv("HOME", str(home))
    line = "python3 -c \"import os; open(os.environ['HOME'] + '/new', 'w')\""
    policies = standard_policies(
        workspace,
        by_mode=ByMode("auto", sandboxed=True, auto_allow="walled"),
        rules=rules_of(allow=["Bash(python3 -c *)"] if allowed == "by rule" else ()),
        more=(ExcludedCommands(("python3",)),),
    )
    executor = Executor(Registry(Bash(workspace, excluded=("python3",))), policies)

    async def ask(questions: Sequence[Question]) -> Answers:
        assert all("outside the sandbox" in question.reason for question in questions)
        return Answers({question.id: Approve() for question in questions})

    turn = Turn(ask=ask if allowed == "by the user" else None)
    (outcome,) = await executor.execute([ToolCall("1", "bash", {"command": line})], turn=turn)
    assert isinstance(outcome, Interrupted) is (allowed == "by nothing")
    assert (home / "new").exists() is (allowed != "by nothing")


@pytest.mark.slow
async def test_reading_commands_cannot_prepare_caches_of_others(tmp_path: Path):
    if bubblewrap.find_problem():
        pytest.skip(bubblewrap.find_problem())
    state, bash = State(), Bash(tmp_path)
    reading = Executor(Registry(bash), ByMode("default", auto_allow="walled"), state=state)
    writing = Executor(Registry(bash), AllowEverything(), state=state)
    line = "python3 -c \"import os; os.makedirs('/tmp/.cache/pip/x')\""
    assert not isinstance(await reading.run("bash", {"command": line}), Completed)
    assert isinstance(await writing.run("bash", {"command": line}), Completed)
    named = await reading.run("bash", {"command": "ls /tmp/.cache/pip && python3 -c \"open('/tmp/mine', 'w')\""})
    assert isinstance(named, Completed) and named.text.startswith("x\n")


async def test_stopped_line_fails_where_the_mode_never_asks(tmp_path: Path):
    if bubblewrap.find_problem():
        pytest.skip(bubblewrap.find_problem())
    policy = ByMode("dontAsk", auto_allow="walled")
    executor = Executor(Registry(Bash(tmp_path)), policy)
    outcome = failure(await executor.run("bash", {"command": "python3 -c \"open('new', 'w')\""}))
    assert "it tried to write to new" in outcome.text and "never asks" in outcome.text
    assert names_in(tmp_path) == []


async def test_wall_that_fails_to_start_runs_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    if bubblewrap.find_problem():
        pytest.skip(bubblewrap.find_problem())
    shell = Shell(Bash(tmp_path))

    def broken(*, network: bool) -> list[str]:
        return ["--ro-bind", "/", "/", "--bind", "/nowhere", "/x" if network else "/y"]

    monkeypatch.setattr(bubblewrap, "_base_options", broken)
    assert "nothing was run" in failure(await shell("touch here")).text
    assert names_in(tmp_path) == []


async def test_credentials_are_left_out_of_the_environment(tmp_path: Path):
    environment = {"PATH": os.environ["PATH"], "API_KEY": "hunter2", "GH_TOKEN": "hunter3", "EDITOR": "vi"}
    shell = Shell(Bash(tmp_path, environment=environment, pass_environment=("GH_*",)))
    output = await shell.says("env")
    assert "hunter2" not in output and "GH_TOKEN=hunter3" in output and "EDITOR=vi" in output


@pytest.mark.parametrize("sandbox", ["prefer", "off"])
async def test_committed_secret_is_not_shown_in_a_diff(tmp_path: Path, sandbox: SandboxMode):
    shell = Shell(Bash(tmp_path, sandbox=sandbox))
    for place in (".env", "PROD/.ENV", ".aws/credentials", "certs/Server.KEY"):
        (tmp_path / place).parent.mkdir(exist_ok=True)
        (tmp_path / place).write_text("SECRET=hunter2\n")
    (tmp_path / ".env.example").write_text("SECRET=\n")
    line = "git init -q && git add -A && git -c user.name=a -c user.email=a@b commit -qm x"
    await Shell(Bash(tmp_path, sandbox="off")).says(line)
    for reading in ("git show; git log -p", "git grep SECRET", "git log -p -- ':(icase).ENV' .env.example"):
        output = await shell.says(reading)
        assert "hunter2" not in output and "SECRET=\n" in output


def test_aliases_of_other_products_work():
    assert {"Bash", "run_shell_command", "execute_command"} <= set(Bash.spec.aliases)
    assert issubclass(CommandFailed, ToolFailed)


@pytest.fixture
def large(tmp_path: Path) -> Bash:
    """A workspace with more folders than are searched for secrets."""
    for number in range(12):
        (tmp_path / f"part{number:02}" / "inner").mkdir(parents=True)
        (tmp_path / f"part{number:02}" / ".env").write_text("SECRET=hunter2")
    bash = Bash(Workspace(tmp_path, reads="anywhere"))
    bash.sandbox = replace(bash.sandbox, max_folders=5)
    return bash


@pytest.mark.skipif(bool(bubblewrap.find_problem()), reason="bubblewrap cannot be used here")
@pytest.mark.parametrize(
    ("line", "mode", "runs"),
    [
        ('python3 -c \'print(open("part00/.env").read(), open("part11/.env").read())\'', "default", False),
        ("cat part*/.en?", "default", False),
        ("grep -r SECRET .", "default", False),
        ('for name in $(ls -A part11); do cat "part11/$name"; done', "default", False),
        ("cd part11; ls -A | while read -r name; do head -1 $name; done", "auto", False),
        ("(cd part11; cat {.env,})", "default", False),
        ("grep -rh SECRET", "dontAsk", False),
        ("find . -name '.e*' -exec cat {} +", "default", False),
        ("make", "auto", False),
        ("grep -rc SECRET part11", "default", True),
        ("ls part11 && git status --short", "default", True),
        ("mkdir new", "auto", True),
    ],
)
async def test_unsearched_workspace_shows_no_secret_unasked(large: Bash, line: str, mode: str, runs: bool):
    policies = standard_policies(large.workspace, by_mode=ByMode(mode, sandboxed=True, auto_allow="walled"))
    (large.workspace.root / "Makefile").write_text("all:\n\tcat part*/.env\n")
    outcome = await Executor(Registry(large), policies).run("bash", {"command": line})
    assert "hunter2" not in str(outcome)
    assert isinstance(outcome, Interrupted) is not runs or (mode == "dontAsk" and isinstance(outcome, Failed))


@pytest.mark.skipif(bool(bubblewrap.find_problem()), reason="bubblewrap cannot be used here")
async def test_line_of_a_rule_runs_in_an_unsearched_workspace(large: Bash):
    policies = standard_policies(large.workspace, by_mode=ByMode("default"), rules=rules_of(allow=["Bash(make *)"]))
    (large.workspace.root / "Makefile").write_text("all:\n\techo made\n")
    outcome = await Executor(Registry(large), policies).run("bash", {"command": "make all"})
    assert isinstance(outcome, Completed) and "made" in outcome.output.text


@pytest.mark.skipif(bool(bubblewrap.find_problem()), reason="bubblewrap cannot be used here")
async def test_cancelled_command_leaves_no_protected_path(tmp_path: Path):
    policies = standard_policies(tmp_path, by_mode=ByMode("auto", sandboxed=True, auto_allow="walled"))
    (tmp_path / "Makefile").write_text(
        "all:\n\tmkdir -p new/.git/hooks; echo x > new/.git/hooks/pre-commit; sleep 30\n"
    )
    made = tmp_path / "new" / ".git" / "hooks" / "pre-commit"
    call = asyncio.create_task(Executor(Registry(Bash(tmp_path)), policies).run("bash", {"command": "make"}))
    while not made.exists() and not call.done():  # noqa: ASYNC110 - another process makes it
        await asyncio.sleep(0.01)
    call.cancel()
    with pytest.raises(asyncio.CancelledError):
        await call
    assert not made.exists()
