"""Safety checks that no rule, hook or mode lifts.

`Guards` denies what destroys a machine and asks about secrets, files that configure other programs, and repositories
whose settings make git run a program. Only a user's approval settles what a guard asks.

Git's pagers, hooks and file monitors are switched off when a line runs (`shell/git_env.py`). Programs that show
differences or filter content cannot be switched off that way, so a repository that names one is not read without
asking. Settings in the user's home folder are trusted.
"""

import os
import re
from collections.abc import Iterable, Iterator, Sequence

from callwright.core.access import (
    Access,
    Ask,
    Decision,
    DeletePath,
    DeleteResource,
    Deny,
    ReadPath,
    ReadResource,
    RunCommand,
    WritePath,
    WriteResource,
    is_below,
)
from callwright.policy.base import Policy, Subject, Tier, make_printable
from callwright.policy.git_reads import find_compared_secret, find_unnamed_object
from callwright.policy.paths import PathContext, PossiblePaths
from callwright.policy.removals import (
    brings_files,
    find_endangered,
    is_vital,
    list_removed_folders,
    may_be_vital,
    mirrors,
    removes_folders,
    selects,
    selects_by_name,
    whole_folder,
)
from callwright.policy.repository import find_repository_program
from callwright.policy.shell_line import PartOfLine, command_of, paths_for_call, real_folder
from callwright.policy.tool_names import words
from callwright.policy.toolchains import find_project_program, find_ruff_fixes, folder_decides
from callwright.policy.trees import find_in_tree, find_link, find_option_file
from callwright.shell.plan import ENVIRONMENT_SHOWN, ShellPlan, SimpleCommand, Verdict
from callwright.system.environment import is_credential, program_folders
from callwright.system.sensitive_paths import comparable, is_environment, is_ours, is_protected, is_secret

_CRITICAL, _PROTECTED, _SECRET = "guard critical path", "guard protected path", "guard secret"
_VARIABLE = re.compile(r"""["']?\$(?:\w+|[@*]|\{[^}/]*\})["']?[/*?."']*""")
_LOOKS_AT_NAMES = words(
    "echo printf ls test [ [[ stat file dirname basename realpath readlink cd du df which type : true"
)
_USE_GIT = words("git go gh delta")  # the others start git themselves, and delta the pager that its settings name
_RUN_UNASKED = frozenset((Verdict.READ_ONLY, Verdict.READS_NETWORK, Verdict.WRITES))
_PATHS = (ReadPath, WritePath, DeletePath)
_UNORDERED = re.compile(r"\b(?:for|while|until|select)\b|[<>]\(|(?<![&>])&(?![&>])|(?<!\|)\|(?!\|)|\\[&>|]")
"""What may let an earlier command of a line run later: a loop, `<(…)`, a command in the background, a pipe.

A sign behind a backslash is no part of the next one: in `x \\&& y`, x is in the background.
"""
_CHANGES_MODES = frozenset(("chmod", "chown", "chgrp", "setfacl", "chattr", "chcon"))


class Guards(Policy):
    """Denies what destroys a machine; asks before secrets are read and before other programs are reconfigured.

    Args:
        here: The folders that relative paths start from.
        masked: Whether commands run where secrets and credentials are hidden from them, so that searching a folder or
            printing the environment shows none.
    """

    tier = Tier.GUARD

    def __init__(self, here: PathContext, *, masked: bool = False) -> None:
        self.here = here
        self.masked = masked
        self._own = (here.cwd, os.path.realpath(here.cwd), *here.roots)

    def judge(self, access: Access, subject: Subject) -> Decision | None:
        match access:
            case RunCommand() if isinstance(subject, PartOfLine):
                return self._judge_command(subject)
            case ReadPath(path):
                return self._judge_read(paths_for_call(path, subject, self.here))
            case WritePath(path):
                return self._judge_write(paths_for_call(path, subject, self.here), subject)
            case DeletePath(path):
                places = paths_for_call(path, subject, self.here)
                # the removal check comes first, because it may deny where the others ask
                removal = self._judge_removal(places, subject)
                if removal and (line := _words_of_find(subject)):  # last: it looks at every word
                    removal = self._judge_found(places.all, line, subject)
                return removal or self._judge_read(places) or self._judge_write(places, subject)
            case ReadResource(uri) | WriteResource(uri) | DeleteResource(uri):
                return _judge_resource(uri)
            case _:
                return None

    def _judge_command(self, part: PartOfLine) -> Decision | None:
        if part.plan.dangers and part.command is None:
            return Deny(f"refused: {'; '.join(part.plan.dangers)}", source="guard danger")
        if part.command is None:
            return _ask_about_unread(part.plan)
        for folder, line in list_removed_folders(part.command, part.plan):
            what = "what find selects" if line else "what it is handed"
            if removal := self._judge_found((folder, os.path.realpath(folder)), line, part, what):
                return removal
        try:
            found = self._judge_repository(part, part.command) or self._judge_git_reads(part)
            found = found or self._judge_trees(part.command) or self._judge_copies(part.command)
            found = found or self._judge_new_links(part, part.command)
        except (OSError, ValueError, RuntimeError) as error:  # a name that is too long, settings nested too deeply
            reason = f"the files that decide what this does cannot be checked: {make_printable(str(error))}"
            return Ask(reason, "guard repository", firm=True)
        if found:
            return found
        if part.command.reason == ENVIRONMENT_SHOWN and not self.masked and (shown := _find_credential()):
            return Ask(f"would print the environment, and {shown} may be a credential", _SECRET, firm=True)
        if part.verdict is Verdict.READ_ONLY and _lists_its_reads(part.command):
            return None
        if unnamed := _find_removed_variable(part.command, self.here.home):
            return Ask(f"would remove {make_printable(unnamed)}, whose value is not known", _CRITICAL, firm=True)
        if endangered := find_endangered(part.command.words, self.here.home):
            reason = f"may remove {make_printable(endangered)}, because its program is not known"
            return Ask(reason, _CRITICAL, firm=True)
        if named := next((word for word in part.command.words[1:] if _names_key(word)), ""):
            return Ask(f"would be given {make_printable(named)}, which may hold a private key", _SECRET, firm=True)
        return None

    def _judge_repository(self, part: PartOfLine, command: SimpleCommand) -> Decision | None:
        """Ask where the folder decides which programs run: settings of git, toolchains of Rust."""
        name = command.program
        if part.verdict not in _RUN_UNASKED or not (name in _USE_GIT or folder_decides(name)):
            return None
        folder = real_folder(command, self.here)
        if command.cwd is None and name != "git":
            program = "settings of a folder that is not known"
        elif name in _USE_GIT:
            program = find_repository_program(folder, network=part.verdict is not Verdict.READ_ONLY)
            program = program or find_project_program(command.words, folder)
        elif name == "ruff" and (setting := find_ruff_fixes(folder)):
            return Ask(f"ruff would change files: {make_printable(setting)}", "guard project settings", firm=True)
        else:
            program = find_project_program(command.words, folder)
        if program:
            return Ask(
                f"{name} would run a program named by the repository: {make_printable(program)}",
                "guard repository",
                firm=True,
            )
        if name not in ("git", "ruff") and _changes_before(part, command):  # which a repository cannot make run a file
            return Ask(
                f"{name} follows files of its folder, which another part of the line may change", "guard repository"
            )
        return None

    def _judge_git_reads(self, part: PartOfLine) -> Decision | None:
        """Ask about content that git would print without its file's name, which alone tells whether it is secret."""
        command = part.command
        if command is None or part.verdict not in _RUN_UNASKED or command.program != "git":
            return None
        folder = real_folder(command, self.here)
        unnamed = find_unnamed_object(command.words[1:], folder)
        if ":" in unnamed:
            reason = (
                f"{make_printable(unnamed)} would lose the name that tells whether it is a private key or a password"
            )
            return Ask(reason, _SECRET, firm=True)
        if unnamed:
            return Ask(
                f"would print the object {make_printable(unnamed)}, which may be a private key or a password; "
                "name the file instead: REVISION:PATH",
                _SECRET,
                firm=True,
            )
        secret = "" if self.masked else find_compared_secret(command.words[1:], folder)
        if secret is None:
            return Ask("would compare folders that cannot be checked for secrets", _SECRET)
        if secret:
            return _ask_about_secret("read", secret)
        return None

    def _judge_copies(self, command: SimpleCommand) -> Decision | None:
        """Ask about files in copied folders that configure other programs in their new place, or lose a secret name."""
        for tree in dict.fromkeys(command.copied):
            start = len(tree.folder)
            found = find_in_tree(tree, lambda path: is_protected(comparable(path[start:])), folders=True)  # noqa: B023 - called at once
            if found is None:
                return Ask(f"would copy {make_printable(tree.folder)}, which is too large to check", _PROTECTED)
            if found:
                return Ask(f"would copy {make_printable(found)}, which configures other programs", _PROTECTED)
            if not self.masked and (found := find_in_tree(tree, _is_secret_by_folder)):
                return _ask_about_secret("copy", found)
        return None

    def _judge_new_links(self, part: PartOfLine, command: SimpleCommand) -> Decision | None:
        """Ask where the line itself may make links: where its other paths lead cannot be told before."""
        if self.masked or part.verdict not in _RUN_UNASKED or len(part.plan.commands) == 1:
            return None
        links = (find_link(tree) for tree in dict.fromkeys(command.copied))
        if link := next((link for link in links if link), ""):
            return Ask(
                f"would copy the link {make_printable(link)}, which another part of the line may use", _PROTECTED
            )
        if command.program == "git" or not any(isinstance(access, _PATHS) for access in command.accesses):
            return None
        if not part.after_git:
            part.after_git.update(_list_after_git(part.plan))
        if part.after_git.get(command, True):
            return Ask("uses files after git may have brought links in their place", _PROTECTED)
        return None

    def _judge_trees(self, command: SimpleCommand) -> Decision | None:
        """Ask about secrets in folders that a command reads as a whole, and about files that would be its options."""
        if self.masked:
            return None
        if option := find_option_file(command.words[1:], real_folder(command, self.here)):
            return Ask(f"would take the file {make_printable(option)} for an option", _SECRET)
        if not command.trees or command.program in _LOOKS_AT_NAMES:
            return None
        for tree in dict.fromkeys(tree for tree in command.trees if tree.secrets):
            found = find_in_tree(tree, lambda path: is_secret(comparable(path)))
            if found is None and (tree.enters or not tree.visible):
                why = "is too large to check" if tree.folder.startswith("/") else "cannot be checked"
                return Ask(f"would read {make_printable(tree.folder)}, which {why} for secrets", _SECRET)
            if found and tree.bare and not any(is_secret(comparable(p)) for p in (found, os.path.realpath(found))):
                reason = f"would be handed {make_printable(found)}, which it may take for an option or for other files"
                return Ask(reason, _SECRET, firm=True)
            if found:
                return _ask_about_secret("read", found)
        return None

    def _judge_removal(self, places: PossiblePaths, subject: Subject) -> Decision | None:
        own = self._list_own(subject)
        for place in places.all:
            whole = whole_folder(place)
            if is_vital(whole, self.here.home):
                return Deny(
                    f"refused to remove {make_printable(place)}: the machine or the home folder depends on it",
                    _CRITICAL,
                )
            if any(is_below(folder, (whole,)) for folder in own):
                return Ask(f"would remove the working folder: {make_printable(place)}", _CRITICAL, firm=True)
            if place[:1] != "/" and whole_folder(f"/{place}") == "/":  # with x empty, `cd $x; rm -r *` is in the home
                reason = f"would remove all of a folder that is not known: {make_printable(place)}"
                return Ask(reason, _CRITICAL, firm=True)
        return None

    def _list_own(self, subject: Subject) -> tuple[str, ...]:
        return (*self._own, subject.access.cwd) if isinstance(subject, PartOfLine) else self._own

    def _judge_found(
        self, places: Iterable[str], line: Sequence[str], subject: Subject, what: str = "what find selects"
    ) -> Decision | None:
        """Ask about what find removes, unless its tests select a little of it: `find . -name '*.pyc' -delete`."""
        for place in map(whole_folder, places):
            vital = is_vital(place, self.here.home) and place != "/tmp"  # from there, old files are often removed
            own = any(is_below(folder, (place,)) for folder in self._list_own(subject))
            if (vital and not selects_by_name(line)) or (own and not selects(line)):
                return Ask(f"would remove {what} in {make_printable(place)}", _CRITICAL, firm=True)
        return None

    def _judge_write(self, places: PossiblePaths, subject: Subject) -> Decision | None:
        command = command_of(subject)
        if command is not None and command.words[:1] == ("rsync",):
            emptied = self._judge_found(places.all, (), subject, "what else is")
            if emptied and mirrors(command.words):  # last: it looks at every word
                return emptied
        modes = command.words if command is not None and command.program in _CHANGES_MODES else ()
        for place in places.all:
            if is_protected(self._below_root(place)) or is_ours(comparable(place)):
                return Ask(f"would change {make_printable(place)}, which configures other programs", _PROTECTED)
            if is_below(place, program_folders(self.here.roots)):
                return Ask(f"would change {make_printable(place)}, from which programs are started", _PROTECTED)
            if modes and is_vital(whole_folder(place), self.here.home) and _is_recursive(modes):
                return Deny(f"refused to change the permissions of all of {make_printable(place)}", _CRITICAL)
        return None

    def _judge_read(self, places: PossiblePaths) -> Decision | None:
        for place in places.all:
            if is_secret(comparable(place)):
                return _ask_about_secret("read", place)
        return None

    def _below_root(self, place: str) -> str:
        """Cut off the path of the workspace: a workspace inside ~/.config/x must not make every write ask."""
        for root in self.here.roots:
            if is_below(place, (root,)):
                return comparable(place[len(root) :])
        return comparable(place)


def _ask_about_secret(verb: str, path: str) -> Ask:
    return Ask(f"would {verb} {make_printable(path)}, which may hold a private key or a password", _SECRET, firm=True)


def _ask_about_unread(plan: ShellPlan) -> Ask | None:
    if not plan.unread:
        return None
    return Ask(f"a part of the line cannot be checked: {plan.unread}", "guard unread line", firm=True)


def _is_secret_by_folder(path: str) -> bool:
    """Whether the copy of a file in another folder would not be known as a secret: `.config/gh/hosts.yml`."""
    return is_secret(comparable(path)) and not is_secret(comparable(path.rpartition("/")[2]))


def _judge_resource(uri: str) -> Decision | None:
    """Ask about files that are named as resources, because rules and guards for paths do not apply to them."""
    from callwright.core.uri import uri_readings  # loaded when a tool declares a resource, which few do

    if any(reading.casefold().startswith("file:") for reading in uri_readings(uri) or (uri,)):
        return Ask(f"names a file as a resource: {make_printable(uri)}", "guard file resource", firm=True)
    return None


def _list_after_git(plan: ShellPlan) -> Iterator[tuple[SimpleCommand, bool]]:
    """Yield the commands of a line, each with whether git may have brought other files before."""
    brought = _UNORDERED.search(plan.line) is not None and any(map(brings_files, plan.commands))
    for command in plan.commands:
        yield command, brought
        brought = brought or brings_files(command)


def _changes_before(part: PartOfLine, command: SimpleCommand) -> bool:
    """Whether another command of the line writes files: those on the disk now do not tell what this one will follow."""
    return any(other.verdict is Verdict.WRITES and other != command for other in part.plan.commands)


def _find_credential() -> str:
    """Return the name of a variable that looks like a credential and that a command would inherit; empty if none."""
    return next((name for name, value in os.environ.items() if is_credential(name, value)), "")


def _lists_its_reads(command: SimpleCommand) -> bool:
    """Whether a read-only command lists the files it reads, or reads file names only."""
    return bool(command.accesses) or not command.words or command.words[0] in _LOOKS_AT_NAMES


def _names_key(word: str) -> bool:
    """Whether a word given to an unknown program may name a key; `.env` files are passed too often to ask."""
    if "/" not in word:
        return False
    path = comparable(word.rpartition("=")[2])
    return is_secret(path) and not is_environment(path)


def _find_removed_variable(command: SimpleCommand, home: str) -> str:
    """Return a word to remove that is only a variable and wildcards: with X empty, `$X/*` is the root."""
    if not any(isinstance(access, DeletePath) for access in command.accesses):
        return ""
    whole = command.program == "find" or removes_folders(command.words)
    return next(
        (word for word in command.words[1:] if _VARIABLE.fullmatch(word) or (whole and may_be_vital(word, home))), ""
    )


def _words_of_find(subject: Subject) -> Sequence[str]:
    """Return the words of a find whose tests select what it removes; none if it removes the folders themselves."""
    command = command_of(subject)
    if command is None or command.words[:1] != ("find",) or not selects(command.words):
        return ()
    return command.words


def _is_recursive(line: Sequence[str]) -> bool:
    flags = [word for word in line[1:] if word.startswith("-")]
    return any(word.startswith("--rec") or ("R" in word and not word.startswith("--")) for word in flags)
