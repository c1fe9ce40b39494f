"""The `bash` tool and the environment its commands run in: no pagers, no prompts, no code from variables."""

import os
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from os import PathLike
from pathlib import Path
from typing import Annotated, Any, cast
from weakref import ref

from pydantic import AfterValidator, AliasChoices, Field, model_validator

from callwright.core.access import Access, DeletePath, Reach, ReadPath, RunCommand, WritePath
from callwright.core.content import Output
from callwright.core.errors import TimedOut, ToolFailed
from callwright.core.json import JsonObject
from callwright.core.spec import Annotations, Effect, Limits
from callwright.shell.git_env import ALWAYS_SETTINGS, READ_ONLY_SETTINGS, git_environment
from callwright.shell.plan import ShellPlan, Verdict
from callwright.system.output_capture import OutputLimits, output_folder
from callwright.system.paths import Workspace
from callwright.system.process import Command, CommandResult, Running, run
from callwright.system.sandbox.sandbox import Sandbox, SandboxMode, find_sandbox
from callwright.system.supervisor_process import REPORT_FD
from callwright.tool.base import ToolContext
from callwright.tool.schema import Arguments
from callwright.tool.typed import TypedInvocation, TypedTool, describe
from callwright.toolbox.bash.jobs import ShellSession

# with these bash could run something else than the line that the policies judged
_DROPPED = frozenset(
    {
        "BASH_ENV",
        "ENV",
        "SHELLOPTS",
        "BASHOPTS",
        "PROMPT_COMMAND",
        "PS4",
        "CDPATH",
        "GLOBIGNORE",
        "IFS",
        "POSIXLY_CORRECT",
    }
    | {
        "GIT_EXTERNAL_DIFF",
        "GIT_DIR",
        "GIT_WORK_TREE",
        "GIT_INDEX_FILE",
        "GIT_CONFIG_PARAMETERS",
        "RIPGREP_CONFIG_PATH",
    }
    | {"LESSOPEN", "LESSCLOSE", "OLDPWD"}
)
_FUNCTION = "BASH_FUNC_"
_PINNED = {
    "PAGER": "cat",
    "MANPAGER": "cat",
    "GIT_PAGER": "cat",
    "SYSTEMD_PAGER": "cat",
    "GIT_EDITOR": "true",
    "GIT_TERMINAL_PROMPT": "0",
    "GIT_OPTIONAL_LOCKS": "0",
    "TERM": "dumb",
    "CALLWRIGHT": "1",
}


def command_environment(base: Mapping[str, str] | None = None, *, looking: bool = False) -> dict[str, str]:
    """Return the environment of a command, made safe for unattended runs.

    Args:
        base: The variables to start from; those of this process by default.
        looking: The line is proven to be read-only, so git's hooks are switched off too.
    """
    inherited = os.environ if base is None else base
    kept = {name: value for name, value in inherited.items() if name not in _DROPPED and not name.startswith(_FUNCTION)}
    count = kept.get("GIT_CONFIG_COUNT", "")
    after = int(count) if count.isdecimal() else 0  # settings passed already stay; ours come after them and win
    return {**kept, **_PINNED, **git_environment(READ_ONLY_SETTINGS if looking else ALWAYS_SETTINGS, after=after)}


_MAX_SECONDS = 600.0
_REPORTS_PER_SECOND = 20
_REPORT_CHARS = 4_000
_TOUCHES = (ReadPath, WritePath, DeletePath, Reach)
# eval, so that the line is parsed on its own and bash counts its lines from one in messages
_SCRIPT = f'trap "builtin pwd -P >&{REPORT_FD}" EXIT 2>/dev/null; _line=$1; set --; eval "$_line"'
_EXIT_1_MEANS_NO = frozenset(
    {"grep", "egrep", "fgrep", "zgrep", "rg", "diff", "cmp", "test", "[", "[[", "find", "pgrep"}
)
_GIT_EXIT_1_MEANS_NO = frozenset({"diff", "grep"})
_NEUTRAL = frozenset({"echo", "printf", "true", ":", "cd", "head", "tail", "wc", "sort", "cat"})


def _clamp_seconds(seconds: float) -> float:
    return min(seconds, _MAX_SECONDS)


class BashArguments(Arguments):
    """Arguments of `bash`."""

    command: str = Field(min_length=1, validation_alias=AliasChoices("command", "cmd"))
    """The command line, in bash syntax."""
    timeout_seconds: Annotated[float, Field(gt=0), AfterValidator(_clamp_seconds)] = 120.0
    """Stop the command after this long; at most 600."""
    background: bool = Field(
        default=False, validation_alias=AliasChoices("background", "run_in_background", "is_background")
    )
    """Return at once and keep it running; read it with bash_output, stop it with bash_kill."""
    description: str = ""
    """What it is for, in a few words, shown to the user."""

    @model_validator(mode="before")
    @classmethod
    def _in_seconds(cls, given: Any) -> Any:
        if not isinstance(given, dict) or "timeout_seconds" in given:
            return cast("object", given)
        fields = dict(cast("dict[str, object]", given))
        for name in ("timeout_ms", "timeout"):
            limit = fields.get(name)
            if isinstance(limit, (int, float)):
                # other products count in milliseconds; above our longest time it cannot be seconds
                in_seconds = name == "timeout" and limit <= _MAX_SECONDS
                del fields[name]
                fields["timeout_seconds"] = limit if in_seconds else limit / 1000
                break
        return fields


class CommandFailed(ToolFailed):
    """A command that ended with an error code; the message contains its output."""

    def __init__(self, message: str, exit_code: int) -> None:
        super().__init__(message)
        self.exit_code = exit_code


class Bash(TypedTool[BashArguments]):
    """Runs shell lines in a workspace. Every process that a line starts is stopped when the line ends.

    Args:
        workspace: The workspace, or the path of its folder.
        sandbox: Whether commands run in a sandbox, and which.
        protected: Paths in the workspace that are read-only in the sandbox.
        network: Allow network access in the sandbox.
        environment: Variables for commands instead of those of this process.
        caps: How much output is kept.
    """

    spec = describe(
        "bash",
        "Run a bash command line. Each call is a new shell in the folder the last call ended in; variables do not"
        " persist, and no input or terminal is available. Processes left in the background with & are stopped when"
        " the call ends: use background=true for servers and watchers. Prefer read, edit, glob and grep to cat,"
        " sed, find and grep.",
        annotations=Annotations(Effect.DESTROY, open_world=True, streams=True),
        limits=Limits(seconds=_MAX_SECONDS + 30),
        aliases=("Bash", "shell", "run_shell_command", "execute_command", "local_shell", "execute_bash"),
        group="shell",
        search_hint="run shell command terminal process",
    )

    def __init__(
        self,
        workspace: Workspace | str | PathLike[str] = ".",
        *,
        sandbox: SandboxMode = "off",
        protected: Sequence[str] = (),
        network: bool = False,
        environment: Mapping[str, str] | None = None,
        caps: OutputLimits | None = None,
    ) -> None:
        self.workspace = Workspace.of(workspace)
        self.caps = caps or OutputLimits()
        self._environment = environment
        self.sandbox = _sandbox(self.workspace, sandbox, protected, network=network)
        # weak: this reference must not keep a session and its jobs alive
        self._seen: Callable[[], ShellSession | None] = lambda: None

    def bind(self, arguments: JsonObject | str | bytes) -> "BashCall":
        """Validate arguments and fix the folder: what is judged for a folder runs in that folder."""
        return BashCall(self, super().bind(arguments).given, self.folder_of(self._seen()))

    def folder_of(self, session: ShellSession | None) -> Path:
        """Return the folder the next line of a session runs in."""
        kept = session.folder if session is not None else None
        return kept if kept is not None and self.workspace.contains(kept) and kept.is_dir() else self.workspace.root

    def session(self, context: ToolContext, judged: Path) -> ShellSession:
        """Return the session's shell.

        Raises:
            ToolFailed: The shell is no longer in the folder the call was judged for.
        """
        # calls are judged before the session is known and before parallel calls run, which may change the folder
        session = context.state.get(ShellSession)
        self._seen = ref(session)
        folder = self.folder_of(session)
        if folder != judged:
            raise ToolFailed(
                f"nothing was run: the command was checked for {judged}, but the shell is in {folder}; send it again"
            )
        return session

    def command(self, line: str, folder: Path, held: ExitStack, *, looking: bool = False) -> Command:
        """Build the command of a line; a sandbox it runs in lasts until `held` is closed."""
        argv = ("bash", "--noprofile", "--norc", "-c", _SCRIPT, "bash", line)
        confined = held.enter_context(self.sandbox.confine(argv, str(folder)))
        environment = command_environment(self._environment, looking=looking)
        if self.sandbox.kind != "none":
            environment["TMPDIR"] = str(_temporary_folder())  # /tmp is read-only in the sandbox
        return Command(confined, str(folder), {**environment, "PWD": str(folder)})


def _sandbox(workspace: Workspace, wish: SandboxMode, protected: Sequence[str], *, network: bool) -> Sandbox:
    if wish == "off":
        return find_sandbox(wish, writable=())
    held = [root / path for root in workspace.roots for path in protected]
    return find_sandbox(wish, writable=[*workspace.roots, _temporary_folder()], protected=held, network=network)


def _temporary_folder() -> Path:
    folder = output_folder() / "tmp"
    folder.mkdir(mode=0o700, exist_ok=True)
    return folder


class BashCall(TypedInvocation[BashArguments]):
    """One command line, bound to the folder it is judged for."""

    __slots__ = ("_analysed", "bash", "folder")

    def __init__(self, bash: Bash, given: BashArguments, folder: Path) -> None:
        super().__init__(bash, given, bash.contract().dump)
        self.bash = bash
        self.folder = folder
        self._analysed: ShellPlan | None = None

    def accesses(self) -> Sequence[Access]:
        """Declare the line, which policies analyze, and the paths and hosts in it, which the scheduler uses."""
        touches = tuple(access for access in self._plan().accesses if isinstance(access, _TOUCHES))
        return (RunCommand(self.given.command, str(self.folder), self._effect(), touches),)

    def _plan(self) -> ShellPlan:
        if self._analysed is None:
            from callwright.shell import analyze  # the parser is loaded with the first line

            self._analysed = analyze(self.given.command, str(self.folder))
        return self._analysed

    def _effect(self) -> Effect:
        """Return how much the line can change; unproven means DESTROY."""
        plan = self._plan()
        if not plan.proven or plan.verdict not in (Verdict.READ_ONLY, Verdict.READS_NETWORK, Verdict.WRITES):
            return Effect.DESTROY
        return Effect.READ if plan.verdict is Verdict.READ_ONLY else Effect.WRITE

    async def run(self, context: ToolContext) -> Output:
        """Run the line to its end, or start it in the background."""
        session = self.bash.session(context, self.folder)
        if self.given.background:
            return self._start(session)
        progress = _Progress(context.report)
        with ExitStack() as held:
            command = self.bash.command(self.given.command, self.folder, held, looking=self._effect() is Effect.READ)
            seconds = self.given.timeout_seconds
            ended = await run(command, seconds=seconds, on_output=progress, caps=self.bash.caps)
        progress.flush()  # the rate limit may have held back the last lines
        return self._build_output(ended, self._move(session, ended))

    def _start(self, session: ShellSession) -> Output:
        session.check_room()
        with ExitStack() as held:
            command = self.bash.command(self.given.command, self.folder, held)
            running = Running(command, caps=self.bash.caps)
            running.when_ended(held.pop_all().close)  # the sandbox must outlive this call
        job = session.add(self.given.command, running)
        return Output(
            f'started job {job.id}; read it with bash_output(id="{job.id}"), stop it with bash_kill(id="{job.id}")',
            {"job": job.id},
        )

    def _move(self, session: ShellSession, ended: CommandResult) -> str:
        folder = ended.report.removesuffix("\n")
        if not folder or folder == str(self.folder):
            return ""
        if self.bash.workspace.contains(folder) and Path(folder).is_dir():
            session.folder = Path(folder)
            return f"[the shell is now in {folder}]\n"
        return f"[{folder} is outside the workspace: the shell is back in {self.folder}]\n"

    def _build_output(self, ended: CommandResult, moved: str) -> Output:
        output = ended.output.text.rstrip("\n") or "(no output)"
        left = f"[processes it left running were stopped: {ended.leftovers}; use background=true to keep one]\n"
        text = f"{output}\n{left if ended.leftovers else ''}{moved}"
        seconds = self.given.timeout_seconds
        if ended.reason == "timed_out":
            raise TimedOut(
                f"{text}timed out after {seconds:g} s and was stopped with all its processes; it may have had effects."
                f" pass timeout_seconds (at most {_MAX_SECONDS:g}) or background=true for longer commands"
            )
        if ended.reason == "flooded":
            raise CommandFailed(
                f"{text}stopped: it wrote more than {self.bash.caps.flood_bytes} bytes", ended.exit_code
            )
        text = f"{text}exit code: {ended.exit_code}"
        if ended.exit_code and not (ended.exit_code == 1 and self._means_no()):
            raise CommandFailed(text, ended.exit_code)
        return Output(text, {"exit_code": ended.exit_code})

    def _means_no(self) -> bool:
        # exit code 1 is a result (nothing found, files differ) if the last command that sets it is one of these
        from callwright.shell import analyze

        plan = analyze(self.given.command, str(self.folder))
        words = [command.words for command in plan.commands if command.words and not command.inside]
        deciding = [each for each in words if each[0] not in _NEUTRAL]
        if not deciding:
            return False
        name, *rest = deciding[-1]
        return name in _EXIT_1_MEANS_NO or (name == "git" and bool(_GIT_EXIT_1_MEANS_NO.intersection(rest[:1])))


class _Progress:
    """Reports output as it comes, at a bounded rate, so that reporting never costs more than the command."""

    def __init__(self, report: Callable[[object], None]) -> None:
        self._report = report
        self._pending = ""
        self._second = 0
        self._reports = 0

    def __call__(self, text: str) -> None:
        self._pending = (self._pending + text)[-_REPORT_CHARS:]  # an observer needs the latest output only
        second = int(time.monotonic())
        if second != self._second:
            self._second, self._reports = second, 0
        if self._reports < _REPORTS_PER_SECOND:
            self._reports += 1
            self.flush()

    def flush(self) -> None:
        """Report pending output."""
        if self._pending:
            self._report(self._pending)
            self._pending = ""
