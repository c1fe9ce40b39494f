"""Finds what a repository makes git run: its settings and hooks.

Git's pagers, hooks and file monitors are switched off when a read-only line runs (`shell/git_env.py`). Everything else
a repository may set is compared with a list of harmless keys, so that a setting unknown to this module asks. Settings
in the user's home folder are trusted.
"""

import os
import re
from collections.abc import Iterable, Iterator
from functools import lru_cache
from pathlib import Path
from stat import S_ISREG
from typing import NamedTuple

from callwright.policy.git_folders import GitFolders, list_repositories, open_marker, read_settings
from callwright.policy.tool_names import words
from callwright.system.paths import resolve_links

_MAX_SUBMODULE_DEPTH = 4


class Setting(NamedTuple):
    """One setting of a git settings file; section and key are in lower case."""

    section: str
    subsection: str
    key: str
    value: str

    def __str__(self) -> str:
        name = ".".join(part for part in (self.section, self.subsection, self.key) if part)
        return f"{name} = {self.value}"


_SECTION = re.compile(r'\[([A-Za-z0-9.-]+)(?:[ \t]+"((?:[^"\\\n]|\\.)*)")?[ \t]*\]')
_KEY = re.compile(r"([A-Za-z][A-Za-z0-9-]*)[ \t]*")
_ESCAPES = {"t": "\t", "b": "\b", "n": "\n", "\\": "\\", '"': '"'}


def parse_git_settings(text: str) -> Iterator[Setting]:
    """Parse a settings file as git does: a setting may also stand behind its section's header.

    Raises:
        ValueError: Git would not read the file either.
    """
    text = text.removeprefix("\ufeff").replace("\r\n", "\n")
    section, subsection, place = "", "", 0
    while place < len(text):
        letter = text[place]
        if letter.isspace():
            place += 1
        elif letter in "#;":
            place = _line_end(text, place)
        elif letter == "[":
            header = _SECTION.match(text, place)
            if header is None:
                raise ValueError("a section header is not closed")
            name, _, dotted = header[1].lower().partition(".")
            section, subsection, place = name, re.sub(r"\\(.)", r"\1", header[2] or dotted), header.end()
        else:
            key = _KEY.match(text, place)
            if key is None or not section:
                raise ValueError("a line is not a setting")
            value, place = _parse_value(text, key.end())
            yield Setting(section, subsection, key[1].lower(), value)


def _line_end(text: str, place: int) -> int:
    end = text.find("\n", place)
    return len(text) if end < 0 else end


def _parse_value(text: str, place: int) -> tuple[str, int]:
    if place >= len(text) or text[place] in "\n#;":
        return "true", _line_end(text, place)
    if text[place] != "=":
        raise ValueError("a key has no value")
    written, spaces, quoted, place = list[str](), "", False, place + 1
    while place < len(text):
        letter = text[place]
        place += 1
        if letter == "\n":
            if quoted:
                raise ValueError("a quotation is not closed")
            break
        if letter in " \t\r" and not quoted:
            spaces += letter if written else ""  # at the end of a value they are dropped, unless escaped or quoted
            continue
        if letter in "#;" and not quoted:
            place = _line_end(text, place)
            continue
        written.extend(spaces)
        spaces = ""
        if letter == '"':
            quoted = not quoted
        elif letter == "\\":
            following = text[place : place + 1]
            if following != "\n" and following not in _ESCAPES:
                raise ValueError("an escape is unknown")
            written.extend(_ESCAPES.get(following, ""))
            place += 1
        else:
            written.append(letter)
    return "".join(written), place


# keys by section; a section with * may hold any key, because git runs nothing that stands in it
_HARMLESS = {
    "core": words(
        "repositoryformatversion filemode bare logallrefupdates ignorecase precomposeunicode symlinks autocrlf eol"
        " safecrlf quotepath abbrev compression loosecompression bigfilethreshold packedgitwindowsize packedgitlimit"
        " deltabasecachelimit commitgraph multipackindex sparsecheckout sparsecheckoutcone untrackedcache splitindex"
        " preloadindex longpaths protecthfs protectntfs checkstat trustctime whitespace commentchar sharedrepository"
        " warnambiguousrefs fsync fsyncmethod createobject hidedotfiles fscache usereplacerefs hookspath pager notesref"
    ),
    "remote": words(
        "url pushurl fetch push tagopt prune prunetags mirror skipdefaultupdate skipfetchall gh-resolved"
        " promisor partialclonefilter pushdefault lfsurl"
    ),
    "submodule": words("url active branch path fetchrecursesubmodules ignore shallow recurse propagatebranches"),
    "user": words("name email signingkey useconfigonly"),
    "author": words("name email"),
    "committer": words("name email"),
    "diff": words(
        "algorithm renames renamelimit colormoved colormovedws context interhunkcontext mnemonicprefix noprefix"
        " indentheuristic wserrorhighlight submodule ignoresubmodules suppressblankempty statgraphwidth statnamewidth"
        " dirstat wordregex relative autorefreshindex srcprefix dstprefix xfuncname funcname binary cachetextconv"
    ),
    "log": words(
        "date decorate abbrevcommit follow mailmap showroot diffmerges excludedecoration graphcolors"
        " initialdecorationset showsignature"
    ),
    "blame": words("coloring showemail date blankboundary showroot markunblamablelines markignoredlines"),
    "grep": words("linenumber patterntype extendedregexp fullname column threads fallbacktonoindex"),
    "push": words("default followtags autosetupremote useforceifincludes recursesubmodules"),
    "fetch": words(
        "prune prunetags parallel writecommitgraph output recursesubmodules unpacklimit fsckobjects all"
        " showforcedupdates negotiationalgorithm"
    ),
    "merge": words(
        "conflictstyle ff renames renamelimit stat log autostash renormalize directoryrenames defaulttoupstream"
    ),
    "gc": words(
        "auto autodetach autopacklimit pruneexpire reflogexpire reflogexpireunreachable packrefs logexpiry"
        " aggressivedepth aggressivewindow cruftpacks worktreepruneexpire rerereresolved rerereunresolved"
    ),
    "tag": words("sort"),
    "commit": words("verbose status cleanup"),
    "init": words("defaultbranch"),
    "format": words("signoff numbered subjectprefix thread coverletter suffix attach to cc headers useautobase"),
    "extensions": words("worktreeconfig objectformat refstorage partialclone noop preciousobjects compatobjectformat"),
    "url": words("insteadof pushinsteadof"),
    "lfs": words("repositoryformatversion access locksverify url"),
    "maintenance": words("auto strategy autodetach"),
    "rebase": words("autostash autosquash updaterefs stat missingcommitscheck abbreviatecommands rebasemerges"),
    **dict.fromkeys(
        words(
            "color column advice i18n status pull rerere pack index feature stash versionsort transfer receive-pack"
            " gui gitflow gitlens gitbutler github gh hub gitg magit oh-my-zsh svn vscode checkout sparse apply notes"
            " protocol safe repack worktree bundle"
        ),
        frozenset("*"),
    ),
}
_BRANCH_RUNS = frozenset(("mergeoptions",))
_NEEDS_NETWORK = {
    "credential": frozenset("*"),
    "http": frozenset("*"),
    "core": words("sshcommand gitproxy askpass"),
    "remote": words("uploadpack receivepack vcs proxy proxyauthmethod"),
    "ssh": words("variant"),
}
_LFS_FILTERS = words("clean smudge process required")
_LFS_FILTER = re.compile(r"git-lfs (?:clean|smudge|filter-process)(?: --skip)?(?: -- %f)?")
_UPDATES = frozenset(("checkout", "rebase", "merge", "none"))
_EXTERNAL_COMMANDS = frozenset(("lfs", "whatchanged", "pack-redundant"))
"""Sub-commands that an alias may take the place of: not part of git, or deprecated by it."""
_TRUE_OR_FALSE = frozenset(("true", "false", "yes", "no", "on", "off", "1", "0", ""))


def find_repository_program(folder: str, *, network: bool = False) -> str:
    """Return the setting that may make git run a program in this folder; empty if there is none.

    Args:
        folder: Where git would run.
        network: Whether the call reaches a remote, so that settings for the connection count too.
    """
    for repository in list_repositories(folder):
        if found := _find_in_repository(repository, network=network, depth=0):
            return found
    return ""


def _find_in_repository(repository: GitFolders, *, network: bool, depth: int) -> str:
    own, _, work_tree, _ = repository
    if depth > _MAX_SUBMODULE_DEPTH:
        return f"submodules in {work_tree}, which are nested too deeply"
    for file in _list_settings_files(repository):
        if found := _find_in_file(file, work_tree, network=network):
            return found
    for name in _list_submodules(own):
        if name == _UNREADABLE:
            return f"submodules of {work_tree}, whose index cannot be checked"
        inner = open_marker(work_tree / name / ".git")
        if inner and (found := _find_in_repository(inner, network=network, depth=depth + 1)):
            return found
    return ""


def _list_settings_files(repository: GitFolders) -> Iterable[Path]:
    own, shared, _, _ = repository
    return dict.fromkeys((shared / "config", own / "config", own / "config.worktree"))


_LINK_MODE = b"\x00\x00\xe0\x00"
_LONG_FLAGS = 0x40
_UNREADABLE = "\0"


def _list_submodules(folder: Path) -> Iterator[str]:
    """Yield the paths of the submodules in the index; git reads their settings too when it compares files."""
    for file in (folder / "index", *sorted(folder.glob("sharedindex.*"))[:4]):
        try:
            found = file.stat()
        except OSError:
            continue
        if not S_ISREG(found.st_mode):  # opening a pipe would wait for what is written to it
            yield _UNREADABLE
            return
        yield from _read_submodules(str(file), found.st_mtime_ns, found.st_size, found.st_ino)


@lru_cache(maxsize=32)
def _read_submodules(file: str, _changed_ns: int, _size: int, _inode: int) -> tuple[str, ...]:
    """Read an index, which may be large, only once while it does not change."""
    try:
        data = Path(file).read_bytes()
    except OSError:
        return ()
    if data[4:8] == b"\x00\x00\x00\x04" and _LINK_MODE in data:
        return (_UNREADABLE,)  # its paths are compressed
    return tuple(_iterate_links(data))


def _iterate_links(data: bytes) -> Iterator[str]:
    place = data.find(_LINK_MODE)
    while place >= 0:
        for digest_bytes in (20, 32):  # SHA-1 and SHA-256; a path misread by the wrong one does not exist
            # after the mode: two owners, the size, the digest, flags, and the path up to a zero byte
            flags = place + 16 + digest_bytes
            start = flags + (4 if data[flags : flags + 1] and data[flags] & _LONG_FLAGS else 2)
            end = data.find(b"\0", start)
            if end > start:
                yield os.fsdecode(data[start:end])
        place = data.find(_LINK_MODE, place + 1)


def _find_in_file(file: Path, work_tree: Path, *, network: bool) -> str:
    if not file.is_file():
        return ""
    found = _find_program(read_settings(file), network)
    if found and found.startswith("core.worktree = "):
        leads = resolve_links(file.parent / found.partition(" = ")[2])
        found = "" if leads == resolve_links(work_tree) else found
    return f"{found[:80]} in {file}" if found else ""


@lru_cache(maxsize=256)
def _find_program(text: str, network: bool) -> str:
    try:
        settings = list(parse_git_settings(text))
    except ValueError as error:
        return f"settings that cannot be parsed ({error})"
    # a partial clone fetches what is missing while it only seems to read
    fetches = network or any(
        setting.key == "promisor" or (setting.section, setting.key) == ("extensions", "partialclone")
        for setting in settings
    )
    # the folder of the work tree is compared with the disk by the caller, so anything else is named first
    suspects = [setting for setting in settings if not _is_harmless(setting, fetches=fetches)]
    suspects.sort(key=lambda setting: (setting.section, setting.key) == ("core", "worktree"))
    return str(suspects[0]) if suspects else ""


def _is_harmless(setting: Setting, *, fetches: bool) -> bool:
    section, subsection, key, value = setting
    needs_network = _NEEDS_NETWORK.get(section, frozenset[str]())
    if key in needs_network or "*" in needs_network:
        return not fetches
    match section:
        case "core" if key == "fsmonitor":
            return value.lower() in _TRUE_OR_FALSE
        case "alias":
            return (subsection or key).lower() not in _EXTERNAL_COMMANDS
        case "branch":
            return key not in _BRANCH_RUNS
        case "pretty":
            return "%g" not in value.lower()
        case "format" if key == "pretty":
            return "%g" not in value.lower()
        case "commit" | "tag" if key == "gpgsign":
            return value.lower() in ("false", "no", "off", "0")
        case "submodule" if key == "update":
            return value in _UPDATES
        case "filter" if subsection == "lfs" and key in _LFS_FILTERS:
            return value == "true" or _LFS_FILTER.fullmatch(value) is not None
        case "remote" | "url" if "::" in value or "::" in subsection:
            return False  # such an address names a program
        case _:
            known = _HARMLESS.get(section, frozenset[str]())
            return key in known or "*" in known


_COMMIT_HOOKS = words(
    "pre-commit prepare-commit-msg commit-msg post-commit post-rewrite pre-merge-commit post-merge applypatch-msg"
    " pre-applypatch post-applypatch"
)
_HOOKS = {
    **dict.fromkeys(("commit", "merge", "cherry-pick", "revert", "am"), _COMMIT_HOOKS),
    **dict.fromkeys(("rebase", "pull"), _COMMIT_HOOKS | {"pre-rebase", "post-checkout"}),
    **dict.fromkeys(words("checkout switch worktree clone stash bisect submodule"), frozenset(("post-checkout",))),
    "push": frozenset(("pre-push",)),
}
_ALWAYS_HOOKS = frozenset(("reference-transaction", "post-index-change", "pre-auto-gc"))
"""What any command may run: even `git diff` writes the index again when files only seem to have changed."""
_NOT_A_PATH = re.compile(r"%\(|:\(")  # git replaces `%(prefix)`, and leaves out what is `:(optional)`


def find_hook(folder: str, verb: str) -> str:
    """Return the hook that a git command would run in this folder; empty if there is none.

    Args:
        folder: Where git would run.
        verb: The sub-command; empty for one that only reads.

    Raises:
        ValueError: The settings that may name hooks cannot be read.
    """
    wanted = _HOOKS.get(verb, frozenset[str]()) | _ALWAYS_HOOKS
    for repository in list_repositories(folder):
        for hooks in (repository.shared / "hooks", *_hook_folders(repository)):
            for name in sorted(wanted):
                if os.access(hooks / name, os.X_OK) and (hooks / name).is_file():
                    return str(hooks / name)
    return ""


def _hook_folders(repository: GitFolders) -> Iterator[Path]:
    for file in filter(Path.is_file, _list_settings_files(repository)):
        for setting in parse_git_settings(read_settings(file)):
            if (setting.section, setting.key) != ("core", "hookspath") or not setting.value:
                continue
            if _NOT_A_PATH.match(setting.value):
                raise ValueError(f"{file} names the folder of hooks in a way that is not followed")
            yield repository.work_tree / os.path.expanduser(setting.value)  # noqa: PTH111 - joined as text
