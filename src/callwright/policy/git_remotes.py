"""Finds the addresses behind the names of git remotes, in the settings that git would read. Runs nothing."""

import os
import re
from collections.abc import Iterator, Sequence
from itertools import pairwise
from pathlib import Path
from typing import NamedTuple

from callwright.core.access import Access, Reach
from callwright.policy.git_folders import GitFolders, list_repositories, read_settings
from callwright.policy.repository import Setting, parse_git_settings
from callwright.policy.tool_names import words
from callwright.shell.plan import SimpleCommand, Verdict
from callwright.system.paths import resolve_links

_SET_ADDRESSES = words("remote config submodule")
_REACH_MANY = words("--all --multiple --recurse-submodules update submodule")
_NEVER_REACH = (("am",), ("apply",))
_OTHER_SETTINGS = ("--git-dir", "--config-env", "--exec-path", "--namespace")
_OLD_REMOTES = ("remotes", "branches")
_LOCAL = ("/", ".", "~", "file:")
_SCHEME_OR_HOST = re.compile(r"[^/\s]+:")
_COMPUTED = frozenset("$`*?[{")
_INCLUDES = ("include", "includeif")
_MOST_INCLUDES = 40


class Remotes(NamedTuple):
    """The addresses that a git call may reach."""

    addresses: tuple[str, ...] = ()
    named: bool = False
    """Whether they are those of one remote that the call names, and no others."""
    known: bool = True


_UNKNOWN = Remotes(known=False)


def sets_address(command: SimpleCommand) -> bool:
    """Whether a git call may give a remote another address."""
    return command.program == "git" and not _SET_ADDRESSES.isdisjoint(command.words)


def uses_remotes(command: SimpleCommand, access: Access) -> bool:
    """Whether an access is that of a git call to a remote, or an unknown git call that may reach one (`git lfs`)."""
    if command.program != "git":
        return False
    if isinstance(access, Reach):
        return True
    reaches = any(isinstance(each, Reach) for each in command.accesses)
    return command.verdict is Verdict.UNKNOWN and not reaches and command.words[1:2] not in _NEVER_REACH


def find_remotes(command: SimpleCommand, name: str) -> Remotes:
    """Return the addresses that a git call reaches by a name; those of all remotes if it is not the name of one.

    Args:
        command: The git call.
        name: A remote, or an address, which settings may replace by another one; empty for any remote.
    """
    assigned = any(variable.startswith("GIT_") for variable, _ in command.assignments)
    elsewhere = any(word == each or word.startswith(f"{each}=") for word in command.words for each in _OTHER_SETTINGS)
    if command.cwd is None or assigned or elsewhere or not _COMPUTED.isdisjoint(name):
        return _UNKNOWN
    try:
        repositories = list(list_repositories(command.cwd))
        settings = [*_read_settings(repositories), *_list_given_settings(command.words)]
    except (OSError, ValueError):  # git may understand what this module cannot read
        return _UNKNOWN
    places = (repository.shared / folder / name for repository in repositories for folder in _OLD_REMOTES)
    if name and "/" not in name and any(map(os.path.lexists, places)):
        return _UNKNOWN
    replaced = [each for each in settings if each.section == "url" and each.key in ("insteadof", "pushinsteadof")]
    addresses = _find_addresses(name, command, settings)
    named = bool(addresses)
    if not addresses:
        about = [each.value for each in settings if each.section in ("remote", "branch", "submodule", "lfs")]
        addresses = list(filter(_SCHEME_OR_HOST.match, [name, *about]))
    found = (final for address in addresses for final in _replace_start(address, replaced))
    return Remotes(tuple(dict.fromkeys(each for each in found if not each.startswith(_LOCAL))), named)


def _find_addresses(name: str, command: SimpleCommand, settings: Sequence[Setting]) -> list[str]:
    """Return the addresses of the remote of a name, if a call names it and reaches no other one."""
    named = any(word == name or word.endswith(f"={name}") for word in command.words)
    if not named or not _REACH_MANY.isdisjoint(command.words):
        return []
    own = (each for each in settings if (each.section, each.subsection) == ("remote", name))
    found = [each.value for each in own if each.key in ("url", "pushurl")]
    return found or ([name] if ":" in name or name.startswith(_LOCAL) else [])


def _replace_start(address: str, replaced: Sequence[Setting]) -> Iterator[str]:
    """Yield what git makes of an address: the longest beginning that a setting names becomes another one."""
    fitting = [each for each in replaced if each.value and address.startswith(each.value)]
    for each in fitting:
        if len(each.value) == max(len(other.value) for other in fitting if other.key == each.key):
            yield each.subsection + address[len(each.value) :]
    if not any(each.key == "insteadof" for each in fitting):
        yield address


def _read_settings(repositories: Sequence[GitFolders]) -> Iterator[Setting]:
    """Yield the settings of the system, of the user, and of repositories, with the files they include.

    Raises:
        ValueError: A file cannot be read as a whole.
    """
    home = Path(os.path.expanduser("~"))  # noqa: PTH111 - raises nothing without a home
    own = Path(os.environ.get("XDG_CONFIG_HOME") or home / ".config")
    files = [Path("/etc/gitconfig"), own / "git" / "config", home / ".gitconfig"]
    files += [Path(given) for given in (os.environ.get("GIT_CONFIG_GLOBAL"),) if given]
    for own_folder, shared, work_tree, _ in repositories:
        files += [shared / "config", own_folder / "config", own_folder / "config.worktree", work_tree / ".gitmodules"]
    pending, seen = list(dict.fromkeys(files)), set[Path]()
    while pending:
        file = pending.pop()
        if file in seen or not file.is_file():
            continue
        seen.add(file)
        if len(seen) > _MOST_INCLUDES + len(files):
            raise ValueError(f"{file} is one include too many")
        for setting in parse_git_settings(read_settings(file)):
            yield setting
            if setting.section in _INCLUDES and setting.key == "path":
                # in doubt the condition of an include holds
                pending.append(resolve_links(file.parent / os.path.expanduser(setting.value)))  # noqa: PTH111 - as above


def _list_given_settings(given: Sequence[str]) -> Iterator[Setting]:
    """Yield the settings of a command line: `git -c remote.x.url=https://host/y`.

    Raises:
        ValueError: It includes a file.
    """
    for option, word in pairwise(given):
        name, _, value = word.partition("=")
        section, _, rest = name.partition(".")
        subsection, _, key = rest.rpartition(".")
        if option == "-c":
            if section.lower() in _INCLUDES:
                raise ValueError(f"{word} includes a file")
            yield Setting(section.lower(), subsection, key.lower(), value)
