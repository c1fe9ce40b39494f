"""The `bash` tool."""

import asyncio
import os
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from functools import partial
from os import PathLike
from pathlib import Path
from typing import Annotated, Any, cast
from weakref import ref

from pydantic import AfterValidator, AliasChoices, Field, model_validator

from callwright.core.access import Access, Confinement, DeletePath, Reach, ReadPath, RunCommand, WritePath
from callwright.core.content import Output
from callwright.core.errors import ApprovalRequired, ToolFailed
from callwright.core.json import JsonObject
from callwright.core.spec import Annotations, Effect, Limits
from callwright.shell.plan import ShellPlan, Verdict, starts_with
from callwright.system.environment import without_credentials
from callwright.system.output_capture import OutputLimits
from callwright.system.paths import Workspace
from callwright.system.process import Command, CommandResult, Running, run
from callwright.system.sandbox.sandbox import SandboxMode, find_sandbox
from callwright.system.sandbox.wall import Confined, NamedPaths
from callwright.system.supervisor_process import REPORT_FD
from callwright.system.undo.recorder import UndoRecorder
from callwright.tool.base import State, ToolContext
from callwright.tool.schema import Arguments
from callwright.tool.typed import TypedInvocation, TypedTool, describe
from callwright.toolbox.bash.command_environment import command_environment, hide_committed_secrets, walled_environment
from callwright.toolbox.bash.command_output import (
    MAX_SECONDS,
    CommandTerminals,
    Progress,
    build_output,
    describe_removed,
    run_shown,
)
from callwright.toolbox.bash.jobs import ShellSession, WalledJob
from callwright.toolbox.bash.line_slips import refuse_slips
from callwright.toolbox.bash.wall_stops import (
    OUTSIDE,
    find_wall_failure,
    is_allowed_outside,
    is_harmless_without_wall,
    make_outside_question,
    why_unmasked,
)

_PIECE_CHARS = 30_000  # at most four bytes each
_MAX_LINE_BYTES = 1_500_000
_WALL_ATTEMPTS = 3
"""How often a sandbox is built that fails to start: what it was to cover may have disappeared since it was found."""
_TOUCHES = (ReadPath, WritePath, DeletePath, Reach)
# eval, so that the line is parsed on its own and bash counts its lines from one in messages
_SCRIPT = 'IFS=; _line="$*"; unset IFS; set --; eval "$_line"'
# the empty line tells that the line was reached: without it the wall did not start, whatever the output says
_BEGUN = f"builtin echo >&{REPORT_FD}; "
_TRAP = f"{_BEGUN}trap 'builtin pwd -P >&{REPORT_FD}' EXIT 2>/dev/null; "
# bubblewrap ends every process of its namespace with the shell, so the shell itself lets finish what is about to end,
# such as >(tee), and counts the rest; two processes are bubblewrap and the shell
_WALLED_TRAP = (
    f"{_BEGUN}trap 'builtin pwd -P >&{REPORT_FD}; for _ in 1 2 3 4 5; do set -- /proc/[0-9]*; [[ $# -le 2 ]] && break;"
    f" command -p sleep 0.02; done; [[ $# -le 2 ]] || builtin echo left $(($# - 2)) >&{REPORT_FD}' EXIT 2>/dev/null; "
)


def _clamp_seconds(seconds: float) -> float:
    return min(seconds, MAX_SECONDS)


class BashArguments(Arguments):
    """Arguments of `bash`."""

    command: Annotated[str, Field(min_length=1), AfterValidator(refuse_slips)] = Field(
        validation_alias=AliasChoices("command", "cmd")
    )
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
                in_seconds = name == "timeout" and limit <= MAX_SECONDS
                del fields[name]
                fields["timeout_seconds"] = limit if in_seconds else limit / 1000
                break
        return fields


@dataclass(frozen=True, slots=True)
class _WalledCommand:
    """A command and its wall."""

    command: Command
    confined: Confined


class Bash(TypedTool[BashArguments]):
    """Runs shell lines in a workspace, behind a wall that fits the reason why a line may run.

    Every process that a line starts is stopped when the line ends.

    Args:
        workspace: The workspace, or the path of its folder.
        sandbox: "prefer" uses the strongest sandbox the machine offers, "require" refuses an incomplete one, "off"
            uses none.
        protected: Paths in the workspace that stay read-only, in addition to those that configure other programs.
        writable: Folders outside the workspace that commands with write access may write to.
        readable: Patterns of secrets that are not masked.
        hidden: Says which further paths are masked, for read-deny rules.
        network: Allow network access to every command.
        pass_environment: Names of variables to pass on although they look like credentials.
        excluded: Beginnings of commands that run outside the sandbox once a rule or a user allows them. Put
            `ExcludedCommands` with the same beginnings among the policies, so that nothing else allows them.
        environment: Variables for commands instead of those of this process.
        caps: How much output is kept.

    Raises:
        UsageError: `sandbox` is not valid, or it is "require" and no complete sandbox can be used.
    """

    spec = describe(
        "bash",
        "Run a bash command line. Each call is a new shell in the folder the last call ended in; variables do not "
        "persist, and there is no input. Processes left with & are stopped when the call ends: use background=true "
        "for servers. Prefer read, edit, glob and grep to cat, sed, find and grep.",
        annotations=Annotations(Effect.DESTROY, open_world=True, streams=True),
        limits=Limits(seconds=MAX_SECONDS + 30),
        aliases=("Bash", "shell", "run_shell_command", "execute_command", "local_shell", "execute_bash"),
        group="shell",
        search_hint="run shell command terminal process",
    )

    line_fields = ("command",)
    """Fields that hold a shell line, for repairs."""

    def __init__(
        self,
        workspace: Workspace | str | PathLike[str] = ".",
        *,
        sandbox: SandboxMode = "prefer",
        protected: Sequence[str] = (),
        writable: Sequence[str | Path] = (),
        readable: Sequence[str] = (),
        hidden: Callable[[Path], bool] | None = None,
        network: bool = False,
        pass_environment: Sequence[str] = (),
        excluded: Sequence[str] = (),
        environment: Mapping[str, str] | None = None,
        caps: OutputLimits | None = None,
    ) -> None:
        self.workspace = Workspace.of(workspace)
        self.caps = caps or OutputLimits()
        self._environment = environment
        self.pass_environment = tuple(pass_environment)
        self.excluded = tuple(excluded)
        self._always = Confinement.NETWORK if network else Confinement.READ_ONLY
        self.sandbox = find_sandbox(
            sandbox,
            roots=self.workspace.roots,
            protected=protected,
            writable=writable,
            readable=readable,
            hidden=None if hidden is None else lambda path: hidden(Path(path)),
        )
        self.terminals: CommandTerminals | None = None
        """Where lines run that the user allowed to run outside the sandbox."""
        # weak: this reference must not keep a session and its jobs alive
        self._seen: Callable[[], ShellSession | None] = lambda: None

    def bind(self, arguments: JsonObject | str | bytes) -> "BashCall":
        """Validate arguments and fix the folder: what is judged for a folder runs in that folder."""
        return BashCall(self, super().bind(arguments).given, self.folder_of(self._seen()))

    def bind_in(self, arguments: JsonObject | str | bytes, state: State, session_id: str) -> "BashCall":
        """Bind `arguments` for the session `session_id` with this `state`, in the folder its last line ended in."""
        folder = self.folder_of(ShellSession.of(state, session_id))
        return BashCall(self, super().bind(arguments).given, folder, bound=True)

    def folder_of(self, session: ShellSession | None) -> Path:
        """Return the folder the next line of a session runs in."""
        kept = session.folder if session is not None else None
        return kept if kept is not None and self.workspace.contains(kept) and kept.is_dir() else self.workspace.root

    def session(self, context: ToolContext, call: "BashCall") -> ShellSession:
        """Return the shell of the session of `context`, for `call`.

        Raises:
            ToolFailed: The shell is no longer in the folder the call was judged for.
        """
        session = ShellSession.of(context.state, context.session_id)
        self._seen = ref(session)
        folder = self.folder_of(session)
        if call.bound and folder != call.folder:  # another call of the same turn has moved the shell
            raise ToolFailed(
                f"nothing was run: the command was checked for {call.folder}, but the shell is in {folder};"
                " send it again"
            )
        return session

    def confinement(self, context: ToolContext, plan: ShellPlan) -> Confinement:
        """Return what the call of `context` may use for `plan`; everything after a yes to the question of this tool."""
        if is_allowed_outside(context):
            return Confinement.UNCONFINED
        # only a rule or a user gives both rights to a line with such a command: the modes never allow it
        if Confinement.RULE in context.confinement and self.leaves_wall(plan):
            return Confinement.UNCONFINED
        return context.confinement | self._always

    def leaves_wall(self, plan: ShellPlan) -> bool:
        """Whether a line runs outside the sandbox once it is allowed."""
        return any(starts_with(command, self.excluded) for command in plan.commands)

    def require_wall(self, plan: ShellPlan, confinement: Confinement) -> None:
        """Ask before `plan` runs if only the mode allowed it, and nothing can enforce its `confinement` here.

        Raises:
            ApprovalRequired: The user must decide.
        """
        if self.sandbox.confines or self.sandbox.mode == "off" or Confinement.UNCONFINED in confinement:
            return
        if Confinement.RULE not in confinement and not is_harmless_without_wall(plan):
            raise ApprovalRequired(f"commands cannot be confined on this machine ({self.sandbox.gaps[0]}){OUTSIDE}")

    def command(self, call: "BashCall", confinement: Confinement, scratch: Path, held: ExitStack) -> _WalledCommand:
        """Build the command of `call` for a `confinement` and `scratch` folder; its wall lasts until `held` is closed.

        Raises:
            ToolFailed: The wall cannot be built; nothing was run.
            ApprovalRequired: The wall may not mask every secret.
        """
        line, folder = call.given.command, str(call.folder)
        # one argument holds at most 128 KiB
        pieces = [line[start : start + _PIECE_CHARS] for start in range(0, len(line), _PIECE_CHARS)]
        if sum(len(piece.encode("utf-8", "surrogateescape")) for piece in pieces) > _MAX_LINE_BYTES:
            raise ToolFailed(f"the line is longer than {_MAX_LINE_BYTES} bytes; write it to a file and run that")
        walled = self.sandbox.kind == "bubblewrap" and self.sandbox.walls(confinement)
        script = (_WALLED_TRAP if walled else _TRAP) + _SCRIPT
        argv = ("bash", "--noprofile", "--norc", "-c", script, "bash", *pieces)
        try:
            confined = held.enter_context(
                self.sandbox.confine(argv, folder, confinement, scratch=scratch, named=call.named_paths())
            )
        except OSError as error:
            raise ToolFailed(f"nothing was run: the sandbox cannot be built: {error}") from None
        by_mode = self.sandbox.complete and Confinement.RULE not in confinement
        if by_mode and (reason := why_unmasked(call.plan(), confined.wall)):
            raise ApprovalRequired(reason)
        environment = self._make_environment(call, confinement, scratch)
        return _WalledCommand(Command(confined.argv, folder, {**environment, "PWD": folder}), confined)

    def _make_environment(self, call: "BashCall", confinement: Confinement, scratch: Path) -> dict[str, str]:
        inherited = os.environ if self._environment is None else self._environment
        if Confinement.UNCONFINED not in confinement:
            inherited = without_credentials(inherited, passed=self.pass_environment)
        environment = command_environment(inherited, looking=call.effect() is Effect.READ)
        if self.sandbox.walls(confinement):
            temporary = "/tmp" if self.sandbox.kind == "bubblewrap" else str(scratch / "tmp")
            environment.update(walled_environment(environment, temporary, confinement))
            environment.update(hide_committed_secrets(environment, mounted=self.sandbox.kind == "bubblewrap"))
        elif call.effect() is Effect.READ and not confinement & (Confinement.NAMED | Confinement.UNCONFINED):
            environment.update(hide_committed_secrets(environment))
        return environment


class BashCall(TypedInvocation[BashArguments]):
    """One command line, bound to the folder it is judged for."""

    __slots__ = ("_analysed", "bash", "bound", "folder")

    def __init__(self, bash: Bash, given: BashArguments, folder: Path, *, bound: bool = False) -> None:
        super().__init__(bash, given, bash.contract().dump)
        self.bash = bash
        self.folder = folder
        self.bound = bound
        """Whether the session it runs in was known when it was judged."""
        self._analysed: ShellPlan | None = None

    def accesses(self) -> Sequence[Access]:
        """Declare the line, which policies analyze, and the paths and hosts in it, which the scheduler uses."""
        touches = tuple(access for access in self.plan().accesses if isinstance(access, _TOUCHES))
        return (RunCommand(self.given.command, str(self.folder), self.effect(), touches),)

    def plan(self) -> ShellPlan:
        """Return the analysis of the line."""
        if self._analysed is None:
            from callwright.shell import analyze  # the parser is loaded with the first line

            self._analysed = analyze(self.given.command, str(self.folder))
        return self._analysed

    def named_paths(self) -> NamedPaths:
        """Return the paths that the line names."""
        plan = self.plan()
        accesses, trees = plan.accesses, [tree.folder for command in plan.commands for tree in command.trees]
        return NamedPaths(
            tuple([access.path for access in accesses if isinstance(access, ReadPath)] + trees),
            tuple(access.path for access in accesses if isinstance(access, (WritePath, DeletePath))),
        )

    def effect(self) -> Effect:
        """Return how much the line can change; unproven means DESTROY."""
        plan = self.plan()
        if not plan.proven or plan.verdict not in (Verdict.READ_ONLY, Verdict.READS_NETWORK, Verdict.WRITES):
            return Effect.DESTROY
        return Effect.READ if plan.verdict is Verdict.READ_ONLY else Effect.WRITE

    async def run(self, context: ToolContext) -> Output:
        """Run the line to its end, or start it in the background."""
        session = self.bash.session(context, self)
        confinement = self.bash.confinement(context, self.plan())
        self.bash.require_wall(self.plan(), confinement)
        if not self.bash.sandbox.scanned:  # a large workspace takes a second
            await asyncio.to_thread(self.bash.sandbox.scan)
        undo = context.state.get(UndoRecorder)
        roots = () if self.effect() is Effect.READ else self.bash.sandbox.writable_roots(confinement)
        if self.given.background:
            if roots:
                undo.note(f"what the background command changed is not restored: {self.given.command}")
            return self._start(session, confinement)
        progress = Progress(context.report)
        walled = self.bash.sandbox.walls(confinement)
        masked = walled and Confinement.NAMED not in confinement
        async with undo.watching(roots, self.named_paths().writes, masked=masked):
            left = _WALL_ATTEMPTS
            while True:
                ended, confined = await self._run_line(session, confinement, progress, context)
                failure, left = find_wall_failure(ended) if walled else "", left - 1
                if not failure or not left:
                    break
        progress.flush()  # the rate limit may have held back the last lines
        if failure:
            raise ToolFailed(f"nothing was run: the sandbox failed to start: {failure}")
        if walled and (reason := make_outside_question(ended, confinement, str(self.folder))):
            raise ApprovalRequired(reason)
        notes = session.move(ended.report, self.bash.workspace, self.folder) + describe_removed(confined)
        return build_output(ended, notes, self.plan(), self.given.timeout_seconds, self.bash.caps)

    async def _run_line(
        self, session: ShellSession, confinement: Confinement, progress: Progress, context: ToolContext
    ) -> tuple[CommandResult, Confined]:
        with ExitStack() as held:
            walled = self.bash.command(self, confinement, session.scratch, held)
            # only without a wall: another program would start the command without it
            shown = self.bash.terminals if Confinement.UNCONFINED in confinement else None
            seconds, caps = self.given.timeout_seconds, self.bash.caps
            ended = await run_shown(shown, walled.command, self.given.command, seconds, context.report, caps)
            ended = ended or await run(walled.command, seconds=seconds, on_output=progress, caps=caps)
        return ended, walled.confined

    def _start(self, session: ShellSession, confinement: Confinement) -> Output:
        session.check_room()
        with ExitStack() as held:
            walled = self.bash.command(self, confinement, session.scratch, held)
            running = Running(walled.command, caps=self.bash.caps)
            running.when_ended(held.pop_all().close)  # the sandbox must outlive this call
        outside = None
        if self.bash.sandbox.walls(confinement):
            outside = partial(self._run_outside, session.scratch)  # not the session, which its jobs would keep alive
        job = session.add(self.given.command, running, walled=WalledJob(confinement, str(self.folder), outside))
        return Output(
            f'started job {job.id}; read it with bash_output(id="{job.id}"), stop it with bash_kill(id="{job.id}")',
            {"job": job.id},
        )

    def _run_outside(self, scratch: Path) -> Running:
        """Start the line again without the wall that stopped it."""
        with ExitStack() as held:
            walled = self.bash.command(self, Confinement.UNCONFINED, scratch, held)
            return Running(walled.command, caps=self.bash.caps)
