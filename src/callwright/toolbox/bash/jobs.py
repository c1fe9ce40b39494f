"""The shell of a session (its folder and background jobs) and the tools `bash_output` and `bash_kill`."""

import os
import shutil
import tempfile
import threading
import time
import weakref
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

from pydantic import AliasChoices, Field

from callwright.core.access import Confinement
from callwright.core.content import Output
from callwright.core.errors import ApprovalRequired, ToolFailed, Unsafe
from callwright.core.spec import Annotations, Effect, Limits
from callwright.system.output_capture import output_folder
from callwright.system.paths import Workspace
from callwright.system.process import Running
from callwright.tool.base import State, ToolContext
from callwright.tool.schema import Arguments
from callwright.tool.typed import TypedTool, describe
from callwright.toolbox._paths import one_line
from callwright.toolbox.bash.command_output import LEFT
from callwright.toolbox.bash.wall_stops import is_allowed_outside, make_outside_question

_MAX_JOBS = 32
_MAX_READ_JOBS = 64
"""How many jobs are kept that have ended and whose whole output was read."""
_MAX_WAIT_SECONDS = 60.0
_CLOSE_SECONDS = 2.0
_FOLDER_CHARS = 1_000


@dataclass(frozen=True, slots=True)
class WalledJob:
    """What a background command may use, where it runs, and how to start it again outside the sandbox."""

    confinement: Confinement
    folder: str
    run_outside: Callable[[], Running] | None = None
    """None if it runs outside already."""


@dataclass(slots=True)
class Job:
    """A command running in the background."""

    id: str
    line: str
    running: Running
    walled: WalledJob
    read_chars: int = 0
    asked: bool = False
    """Whether the user was asked to let it run outside the sandbox."""
    lock: threading.Lock = field(default_factory=threading.Lock)

    def outside_question(self) -> str:
        """Return the question whether to start it again without the wall that stopped it, once; else nothing."""
        ended = self.running.ended
        if ended is None or self.walled.run_outside is None or self.asked:
            return ""
        reason = make_outside_question(ended, self.walled.confinement, self.walled.folder)
        self.asked = bool(reason)
        return f"job {self.id}, {self.line}: {reason}" if reason else ""

    def restart_outside(self) -> bool:
        """Start it again outside the sandbox; return whether it may be."""
        with self.lock:
            if self.walled.run_outside is None or self.running.ended is None:
                return False
            self.running, self.read_chars = self.walled.run_outside(), 0
            self.walled = WalledJob(Confinement.UNCONFINED, self.walled.folder)
            return True

    @property
    def settled(self) -> bool:
        """Whether it has ended and all of its output was read."""
        return self.running.ended is not None and self.read_chars >= self.running.output.chars

    @property
    def status(self) -> str:
        """Whether it runs and how it ended, for the model."""
        ended = self.running.ended
        if ended is None:
            return "running"
        left = (
            f"; processes it left running were stopped: {ended.leftovers}; leave out the &" if ended.leftovers else ""
        )
        return f"{'ended' if ended.reason == 'exited' else 'stopped'}; exit code: {ended.exit_code}{left}"

    def read_new(self) -> str:
        """Return the output since the last call."""
        with self.lock:  # two readers must not get the same output, and none must be skipped
            text, self.read_chars = self.running.output.read_from(self.read_chars)
        return text


class ShellSession:
    """The shell of one session. Closing or garbage-collecting it stops its jobs and removes its private folder."""

    def __init__(self) -> None:
        self.folder: Path | None = None
        self._owner: str | None = None
        self._others: dict[str, ShellSession] = {}
        self._scratch: list[Path] = []
        """The private folder; another one if it was removed."""
        self._jobs: dict[str, Job] = {}
        self._started = 0
        self._lock = threading.Lock()
        self._finalizer = weakref.finalize(self, _end, self._jobs, self._scratch, os.getpid())

    @classmethod
    def of(cls, state: State, session_id: str) -> "ShellSession":
        """Return the shell of a session; sessions that share a state, or copies of one, have one each."""
        return state.get(cls).shell_of(session_id)

    def shell_of(self, session_id: str) -> "ShellSession":
        """Return the shell of a session: this one for the first session that asks, another one for each other."""
        with self._lock:
            if self._owner in (None, session_id):
                self._owner = session_id
                return self
            return self._others.setdefault(session_id, ShellSession())

    @property
    def scratch(self) -> Path:
        """The private folder that the session's commands see as `/tmp`."""
        if not self._scratch or not self._scratch[-1].is_dir():
            self._scratch[:] = [Path(tempfile.mkdtemp(prefix="session-", dir=output_folder()))]
        return self._scratch[-1]

    def move(self, report: str, workspace: Workspace, ran_in: Path) -> str:
        """Let the next line run in the folder that a line ended in, and return a note for the model.

        Args:
            report: What the line reported; it can write anything there.
            workspace: The folders to stay in.
            ran_in: The folder the line ran in.
        """
        folder = LEFT.sub("\n", report.removeprefix("\n")).removesuffix("\n")
        if not folder or folder == str(ran_in):
            return ""
        try:
            # a relative path would be judged in one folder and entered from another
            inside = folder.startswith("/") and workspace.contains(folder)
        except Unsafe:
            why = "has a control character in its path"
        else:
            if inside and os.path.isdir(folder):  # noqa: PTH112 - pathlib raises for a name that is too long
                self.folder = workspace.resolve(folder)
                return f"[the shell is now in {folder}]\n"
            why = "does not exist any more" if inside else "is outside the workspace"
        return f"[{one_line(folder[:_FOLDER_CHARS])} {why}: the shell is back in {ran_in}]\n"

    @property
    def jobs(self) -> tuple[Job, ...]:
        """The jobs of the session, also those that ended, oldest first; of those read to their end only the last."""
        return tuple(self._jobs.values())

    def add(self, line: str, running: Running, *, walled: WalledJob) -> Job:
        """Add a command that was started in the background."""
        with self._lock:
            self._started += 1
            job = Job(str(self._started), line, running, walled)
            settled = [each.id for each in self._jobs.values() if each.settled]
            for job_id in settled[:-_MAX_READ_JOBS]:  # each holds its output, and a session may last for months
                del self._jobs[job_id]
            self._jobs[job.id] = job
        return job

    def check_room(self) -> None:
        """Check that another job may be started.

        Raises:
            ToolFailed: Too many jobs are running.
        """
        running = [job.id for job in self.jobs if job.running.ended is None]
        if len(running) >= _MAX_JOBS:
            raise ToolFailed(f"{len(running)} jobs are running already; stop some with bash_kill first")

    def find(self, job_id: str) -> Job:
        """Return a job by its id.

        Raises:
            ToolFailed: There is no such job.
        """
        job = self._jobs.get(job_id)
        if job is None:
            known = f"known jobs: {', '.join(self._jobs)}" if self._jobs else "no job was started"
            raise ToolFailed(f"there is no job {job_id!r}; {known}")
        return job

    def close(self) -> None:
        """Stop all jobs, wait until they have ended and remove the private folder."""
        for other in tuple(self._others.values()):
            other.close()
        _stop_all(self._jobs)
        _clear(self.jobs, self._scratch)


def _end(jobs: Mapping[str, Job], scratch: Sequence[Path], process_id: int) -> None:
    """Stop the jobs of a shell that is gone, and remove its folder: it would stay until the process exits."""
    _stop_all(jobs)
    if scratch and os.getpid() == process_id:  # a child of ours must not remove what we use
        # in a thread, because the garbage collector may call this in an event loop; at exit there are no new threads,
        # and the folder goes with the one it is in
        with suppress(RuntimeError):
            threading.Thread(target=_clear, args=(tuple(jobs.values()), tuple(scratch)), daemon=True).start()


def _stop_all(jobs: Mapping[str, Job]) -> None:
    for job in jobs.values():
        job.running.stop()


def _clear(jobs: Sequence[Job], scratch: Sequence[Path]) -> None:
    """Wait a moment for the end of stopped jobs, which may write until then, and remove the private folder."""
    deadline = time.monotonic() + _CLOSE_SECONDS
    for job in jobs:
        with suppress(Exception):  # a job that failed to start, or that does not end in time
            job.running.wait_blocking(max(0.0, deadline - time.monotonic()))
    for folder in scratch:
        shutil.rmtree(folder, ignore_errors=True)


class JobArguments(Arguments):
    """Arguments of `bash_kill`."""

    id: str = Field(validation_alias=AliasChoices("id", "job_id", "bash_id", "shell_id", "task_id"))
    """The job id that bash returned."""


class BashOutputArguments(JobArguments):
    """Arguments of `bash_output`."""

    wait_seconds: float = Field(default=0.0, ge=0.0)
    """Wait this long for the job to end, at most 60."""


class BashOutput(TypedTool[BashOutputArguments]):
    """Reads the new output of a background job."""

    spec = describe(
        "bash_output",
        "Read the new output of a background job started with bash, and whether it still runs.",
        annotations=Annotations(Effect.READ),
        limits=Limits(seconds=_MAX_WAIT_SECONDS + 10),
        aliases=("BashOutput", "TaskOutput", "job_output"),
        group="shell",
        search_hint="read background job output logs",
    )

    async def run(self, arguments: BashOutputArguments, context: ToolContext) -> Output:
        """Return the new output and the status."""
        job = ShellSession.of(context.state, context.session_id).find(arguments.id)
        if is_allowed_outside(context):
            job.restart_outside()
        await job.running.wait_at_most(min(arguments.wait_seconds, _MAX_WAIT_SECONDS))
        if question := job.outside_question():
            raise ApprovalRequired(question)
        status = job.status  # read before the output, so that "ended" is reported only with the last output
        output = job.read_new() or "(no new output)"
        return Output(f"{output.rstrip()}\njob {job.id} ({job.line}): {status}")


class BashKill(TypedTool[JobArguments]):
    """Stops a background job and every process it started."""

    spec = describe(
        "bash_kill",
        "Stop a background job started with bash, together with every process it started.",
        # READ: it only stops what the session was allowed to start; not parallel: its order among calls matters
        annotations=Annotations(Effect.READ, idempotent=True, parallel=False),
        aliases=("KillShell", "KillBash", "TaskStop", "job_kill"),
        group="shell",
        search_hint="stop background job process",
    )

    async def run(self, arguments: JobArguments, context: ToolContext) -> Output:
        """Stop the job and return its last output."""
        job = ShellSession.of(context.state, context.session_id).find(arguments.id)
        job.running.stop()
        with suppress(ToolFailed):  # it never started
            await job.running.wait()
        return Output(f"{job.read_new().rstrip()}\njob {job.id} ({job.line}): {job.status}".lstrip())
