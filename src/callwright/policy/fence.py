"""The workspace fence, which asks about paths outside the workspace and about what git would run or discard inside."""

import os
import re
from collections.abc import Sequence

from callwright.core.access import (
    Access,
    Ask,
    Decision,
    DeletePath,
    Deny,
    ReadPath,
    RunCommand,
    WritePath,
    is_below,
)
from callwright.policy.base import Policy, Subject, Tier, make_printable
from callwright.policy.git_reads import split_verb
from callwright.policy.paths import PathContext
from callwright.policy.removals import find_restored_file
from callwright.policy.repository import find_hook
from callwright.policy.shell_line import PartOfLine, paths_for_call, real_folder
from callwright.policy.tool_names import words
from callwright.policy.trees import find_in_tree
from callwright.policy.walled import is_walled
from callwright.shell.plan import SimpleCommand, Tree, Verdict
from callwright.system.paths import Workspace

_HARMLESS_DEVICES = words(
    "/dev/null /dev/zero /dev/full /dev/stdin /dev/stdout /dev/stderr /dev/tty /dev/random /dev/urandom"
)
_HARMLESS_TO_WRITE = _HARMLESS_DEVICES - {"/dev/stdin"}  # which is the file behind `< x`
_COPIES_CONTENT = re.compile(r"-(?!-)\w*T|--no-t|(?:\A|/)\.{1,2}/*\Z")
_NAMES_TARGET = re.compile(r"-(?!-)\w*t|--t")
_RUN_UNASKED = frozenset((Verdict.READ_ONLY, Verdict.READS_NETWORK, Verdict.WRITES))


class Fence(Policy):
    """Asks about paths outside the workspace and names their real targets; decides nothing about paths inside.

    Args:
        workspace: The folders that are inside, and whether paths outside are asked about or denied.
        here: The folders that relative paths start from; the workspace's own by default.
        walled: Commands run behind a wall that masks secrets, so a read whose target is not known needs no question.
    """

    tier = Tier.MODE

    def __init__(self, workspace: Workspace, here: PathContext | None = None, *, walled: bool = False) -> None:
        self.workspace = workspace
        self.walled = walled
        self.here = here or PathContext.within(workspace)

    def judge(self, access: Access, subject: Subject) -> Decision | None:
        match access:
            case ReadPath(path):
                return None if self._reads_freely(path, subject) else self._outside(path, "read", subject)
            case WritePath(path):
                return None if path in _HARMLESS_TO_WRITE else self._outside(path, "write to", subject)
            case DeletePath(path):
                return self._outside(path, "remove", subject)
            case RunCommand() if isinstance(subject, PartOfLine) and subject.command is not None:
                found = self._judge_git(subject, subject.command) or self._judge_hidden_reads(subject)
                return found or self._judge_merge(subject.command)
            case _:
                return None

    def _judge_git(self, part: PartOfLine, command: SimpleCommand) -> Decision | None:
        """Ask before git runs a hook or discards changes; lines that read nothing but files run without hooks."""
        if command.program != "git" or command.verdict not in _RUN_UNASKED or part.plan.verdict is Verdict.READ_ONLY:
            return None
        folder, changes = real_folder(command, self.here), command.verdict is Verdict.WRITES
        if changes and (restored := find_restored_file(command.words[1:], folder)):
            return Ask(f"git checkout would discard the changes of {make_printable(restored)}", "uncommitted work")
        verb, _ = split_verb(command.words[1:])
        try:
            hook = find_hook(folder, "" if command.verdict is Verdict.READ_ONLY else verb)
        except (OSError, ValueError):
            hook = "of a repository that cannot be checked"
        return Ask(f"git {verb} would run the hook {make_printable(hook)}", "repository hooks") if hook else None

    def _judge_merge(self, command: SimpleCommand) -> Decision | None:
        """Ask before a folder is copied into one that holds links out of the workspace, because cp follows them."""
        if not command.copied or command.program not in ("cp", "gcp"):
            return None
        targets = dict.fromkeys(access.path for access in command.accesses if isinstance(access, WritePath))
        if not _fills_target(command.words[1:]):
            targets = [path for path in targets if not any(is_below(each, (path,)) for each in targets if each != path)]
        for target in targets:
            link = find_in_tree(Tree(target), self._leads_out, every=True) if os.path.isdir(target) else ""  # noqa: PTH112 - a path as text
            if link is None:
                return Ask(f"would copy into {make_printable(target)}, which is too large to check", "workspace fence")
            if link:
                return self._object_to(link, os.path.realpath(link), "write to")
        return None

    def _leads_out(self, path: str) -> bool:
        return os.path.islink(path) and not self.here.inside(os.path.realpath(path))  # noqa: PTH114 - a path as text

    def _judge_hidden_reads(self, part: PartOfLine) -> Decision | None:
        """Ask about a program whose reads are unknown where reads outside the workspace are not free."""
        if not self.walled or self.workspace.reads == "anywhere":
            return None
        proven = part.plan.proven and part.plan.verdict is not Verdict.UNKNOWN
        if proven or not is_walled(part.plan):
            return None
        return Ask("it may read files outside the workspace", "workspace fence")

    def _reads_freely(self, path: str, subject: Subject) -> bool:
        if path in _HARMLESS_DEVICES:
            return True
        if self.workspace.reads != "anywhere":
            return False
        return paths_for_call(path, subject, self.here).known or (
            self.walled and isinstance(subject, PartOfLine) and is_walled(subject.plan)
        )

    def _outside(self, path: str, verb: str, subject: Subject) -> Decision | None:
        places = paths_for_call(path, subject, self.here)
        if not places.known:
            return Ask(f"would {verb} {make_printable(path)}, whose target is not known", "workspace fence")
        for real in places.real:  # the real target counts: a link inside the workspace may lead out of it
            if not self.here.inside(real):
                return self._object_to(path, real, verb)
        return None

    def _object_to(self, path: str, real: str, verb: str) -> Decision:
        leads = (
            make_printable(real) if path == real else f"{make_printable(path)}, which leads to {make_printable(real)},"
        )
        reason = f"would {verb} {leads} outside the workspace {' and '.join(self.here.roots)}"
        return Deny(reason, "workspace fence") if self.workspace.outside == "refuse" else Ask(reason, "workspace fence")


def _fills_target(arguments: Sequence[str]) -> bool:
    """Whether cp fills the target itself, and not a folder of the same name in it: `cp -rT a b`, `cp -r a/. b`."""
    named = any(map(_NAMES_TARGET.match, arguments)) or arguments[-1][:1] == "-"
    return any(map(_COPIES_CONTENT.search, arguments if named else arguments[:-1]))
