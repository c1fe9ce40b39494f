"""Judges git calls. A read-only verdict relies on `git_env.SAFE_ENVIRONMENT` being set when the line runs."""

import re
from collections.abc import Iterator, Sequence
from itertools import pairwise

from callwright.core.access import Access, DeletePath, ReadPath, WritePath
from callwright.shell.findings import FoundCommand, Judgement, unknown
from callwright.shell.plan import Tree, Verdict
from callwright.shell.programs.git_branches import makes_branch
from callwright.shell.programs.git_remotes import list_remotes
from callwright.shell.programs.git_shown import SHOWS_CONTENT, list_files, list_shown_trees
from callwright.shell.programs.outputs import list_outputs
from callwright.shell.rule_tables import ProgramRule, parse_table
from callwright.shell.words import Folders, Word, enter_folder, resolve_as, single_folder
from callwright.system.sensitive_paths import comparable, is_protected

_TABLE = parse_table(
    r"""
git: values
  --version|-v|version
  status|diff|show|log|whatchanged|shortlog|blame|annotate|diff-tree|diff-index|diff-files|range-diff|cherry|
      describe|rev-list
  ls-files|ls-tree|merge-base|name-rev|for-each-ref|show-ref|show-branch|count-objects|verify-pack|patch-id|
      check-ref-format
  rev-parse|check-ignore|check-attr|check-mailmap|var|stripspace|get-tar-commit-id|cherry
  grep: not -O --open-files-in-pager --ext-grep --textconv
  cat-file: not --filters --textconv --batch --batch-command
  fsck: not --lost-found
  hash-object: not -w --stdin-paths
  format-patch: needs --stdout; only --stdout -n -N -k -s --signoff --cover-letter --no-stat --numbered --no-numbered
      --subject-prefix --root -# --thread --no-thread --no-binary; values --subject-prefix
  archive: needs --list -l; only --list -l; operands 0
  apply: needs --check --stat --numstat --summary; only --check --stat --numstat --summary -p -R --reverse -v --verbose
      --recount; values -p
  clean: needs -n --dry-run; only -n --dry-run -d -x -X -f --force -q --quiet; values -e --exclude
  fetch: network; needs --dry-run; only --dry-run --all --prune -p --tags -t --no-tags -n --verbose -v --quiet -q
      --force -f --depth --progress --no-progress; values --depth
  push: network; needs --dry-run -n; only --dry-run -n --all --tags --verbose -v --quiet -q --porcelain --follow-tags
      --set-upstream -u --progress --no-progress --no-verify --branches
  ls-remote: network; not --upload-pack --exec
  remote: operands 0; only -v --verbose
  remote get-url: only --all --push
  remote show: network
  stash list|show
  worktree list
  notes list|show
  reflog: operands 0; counts -n --max-count
  reflog show|list
  bisect log
  submodule status|summary
  bundle verify|list-heads
  sparse-checkout list
  lfs ls-files|status|version
  symbolic-ref: operands 1; only -q --quiet --short --recurse
  config: operands 1; last; only --get --get-all --get-regexp --get-urlmatch --list -l --show-origin --show-scope
      --name-only --null -z --local --global --system --worktree --type --includes --no-includes --bool --int --path;
      values --type
  config get|list: only --all --regexp --show-origin --show-scope --name-only --null -z --local --global --system
      --worktree --type --includes --default --value --url; values --type --default --value --url
  branch: operands 0; only -a -r -v -vv --all --remotes --verbose --list --show-current --contains --no-contains
      --merged --no-merged --points-at --sort --format --color --no-color --column --no-column --abbrev --no-abbrev
      -i --ignore-case -q; values --contains --no-contains --merged --no-merged --points-at --sort --format
  tag: operands 0; only -l --list -n --contains --no-contains --merged --no-merged --points-at --sort --format
      --color --column -i --ignore-case -#; values --contains --no-contains --merged --no-merged --points-at --sort
      --format
"""
)["git"]
_LISTED = parse_table(
    "branch tag: only -l --list -a -r -v -vv -n -i --sort --format --ignore-case --color --column -#; "
    "values --sort --format"
)["branch"]
_EVERYWHERE = ProgramRule(
    refused=frozenset(
        "--output --ext-diff --textconv --text --binary --show-signature --open-files-in-pager --upload-pack --exec "
        "--help --build-fake-ancestor".split()
    )
)
_GLOBALS = frozenset(
    "--no-pager -P --no-optional-locks --literal-pathspecs --no-replace-objects --no-lazy-fetch --glob-pathspecs "
    "--noglob-pathspecs --icase-pathspecs --no-advice".split()
)
_GLOBALS_WITH_VALUE = frozenset(
    "-c -C --git-dir --work-tree --namespace --config-env --super-prefix --attr-source".split()
)
_DESTROYS = {
    "reset": ("--hard", "--merge", "--keep"),
    "clean": (),
    "push": ("--force", "-f", "--force-with-lease", "--delete", "-d", "--mirror", "--prune"),
    "checkout": ("--", "-f", "--force", "-p", "--patch", ".", "--pathspec-from-file"),
    "switch": ("-f", "--force", "--discard-changes", "-C"),
    "restore": (),
    "checkout-index": ("-f", "--force"),
    "read-tree": ("--reset", "-u"),
    "mv": ("-f", "--force"),
    "branch": ("-D", "-d", "--delete", "-M", "-f", "--force"),
    "tag": ("-d", "--delete", "-f"),
    "stash": ("drop", "clear"),
    "rm": (),
    "worktree": ("remove", "prune"),
    "reflog": ("expire", "delete"),
    "gc": (),
    "prune": (),
    "filter-branch": (),
    "filter-repo": (),
    "update-ref": ("-d",),
    "commit": ("--amend",),
    "rebase": (),
    "remote": ("remove", "rm"),
    "submodule": ("deinit",),
}
_WRITES = frozenset(
    "add commit merge pull fetch checkout switch stash tag branch remote revert cherry-pick am apply init clone mv "
    "config worktree submodule notes reset push rebase restore symbolic-ref sparse-checkout bisect".split()
)
_MERGES = frozenset(("merge", "pull", "cherry-pick", "revert", "rebase"))
_RUNS = frozenset(
    (
        *(("bisect", "run"), ("bisect", "replay"), ("bisect", "visualize"), ("bisect", "view")),
        ("submodule", "foreach"),
    )
)
_RUNNING_OPTIONS = (
    "--exec",
    "-x",
    "--upload-pack",
    "--receive-pack",
    "--template",
    "--separate-git-dir",
    "--extcmd",
    "--tool",
    "--edit",
    "--interactive",
    "-i",
    "--config",
    "--strategy",
    "--hook",
    "--open-files-in-pager",
    "--gpg-sign",
    "--output",
    "-o",
)
_TAKES_MESSAGE = frozenset(("commit", "tag", "merge"))
"""Sub-commands for which whatever follows the letter m in an option is a message: `-m"fix"`, `-am"fix"`."""
_REDIRECTS = {"remote": ("add", "set-url", "rename"), "submodule": ("init", "sync")}
"""What changes the addresses in the settings, which decide where a later push or fetch goes."""
_REF = re.compile(r"HEAD|refs/(?!.*\.\.)[\w./-]+")
_HELPER = re.compile(r"[\w+.-]+::")
"""An address that git hands to a program: `ext::sh -c x`."""
_OUTPUTS = {"archive": ("-o", "--output"), "format-patch": ("-o", "--output-directory")}


def enter_repository(found: FoundCommand) -> FoundCommand:
    """Follow `git -C folder`: return the command as it would be judged in that folder.

    The words stay as they are, so that rules see them; only the folders change.
    """
    folders, place, words = found.folders, 1, found.words
    while place < len(words):
        text = words[place].text
        if text == "-C" and place + 1 < len(words):
            target = words[place + 1]
            folders = enter_folder(folders, target.text, physical=True) if target.literal and target.text else None
            place += 2
        elif text in _GLOBALS:
            place += 1
        else:
            break
    return found if folders is found.folders else found._replace(folders=folders)


def find_settings_problem(found: FoundCommand) -> str:
    """Return why git may run a program although the call itself only reads."""
    if found.context.cleared:
        return "git would run without the settings that keep it from running programs of the repository"
    foreign = "git would follow the settings of an unknown repository, and those can run programs"
    return foreign if single_folder(found.folders) is None else ""


def _skip_globals(arguments: Sequence[Word]) -> Sequence[Word]:
    place = 0
    while place < len(arguments):
        if arguments[place].text in _GLOBALS:
            place += 1
        elif arguments[place].text == "-C" and place + 1 < len(arguments) and arguments[place + 1].literal:
            place += 2
        else:
            break
    return arguments[place:]


def git(name: str, arguments: Sequence[Word], folders: Folders) -> Judgement:
    """Judge a git call by its sub-command and flags."""
    words = _skip_globals(arguments)
    if not words:
        return unknown("git without a sub-command")
    found = _judge_call(words, folders)
    place = _find_verb(words)
    shown = list_shown_trees(words[place].text, words[place + 1 :], folders if place == 0 else None)
    remotes = list_remotes(words[place].text, words[place + 1 :], words[:place])
    if not shown and not remotes:
        return found
    return found._replace(trees=(*found.trees, *shown), accesses=(*found.accesses, *remotes))


def _find_verb(words: Sequence[Word]) -> int:
    """Return the place of the sub-command behind options that may lead to another repository."""
    place = 0
    while place < len(words) - 1 and words[place].text[:1] == "-":
        place += 2 if words[place].text in _GLOBALS_WITH_VALUE else 1
    return min(place, len(words) - 1)


def _judge_call(words: Sequence[Word], folders: Folders) -> Judgement:
    if any(word.may_be_option for word in words):
        return _judge_change(words, folders, "a word of the git call may become an option")
    if _only_lists(words):
        return Judgement(Verdict.READ_ONLY, f"git {words[0].text} --list is read-only")
    rule, count = _find_rule(words)
    if rule is None:
        return _judge_change(words, folders, "this call of git is not known to be read-only")
    rest = words[count:]
    objection = rule.objection(rest) or _EVERYWHERE.objection(rest) or _format_problem(rest)
    objection = objection or _text_problem(words[0].text, rest)
    if objection:
        return _judge_change(words, folders, f"git {words[0].text}: {objection}")
    if rule.network:
        if helper := next((word.text for word in rest if _HELPER.match(word.text)), ""):
            return _judge_change(words, folders, f"git {words[0].text}: {helper} names a program")
        return Judgement(Verdict.READS_NETWORK, f"git {words[0].text} reads from a remote")
    touched = list_files(words[0].text, rest, folders)
    untracked = words[0].text == "grep" and any(word.text.startswith(("--no-i", "--un")) for word in rest)
    trees = tuple(resolve_as(Tree, ["."], folders)) if untracked else ()
    return Judgement(Verdict.READ_ONLY, f"git {words[0].text} is read-only", touched, trees=trees)


def _find_rule(words: Sequence[Word]) -> tuple[ProgramRule | None, int]:
    """Find `remote get-url` before `remote`: the sub-command must stand first."""
    rule = _TABLE.subcommand(words[0])
    if rule is None:
        return None, 0
    below = rule.subcommand(words[1]) if len(words) > 1 and rule.subcommands else None
    if below is not None:
        return below, 2
    return (rule, 1) if rule.bare else (None, 1)


def _only_lists(words: Sequence[Word]) -> bool:
    """Whether a branch or tag call names patterns to list, not something to create."""
    if words[0].text not in ("branch", "tag"):
        return False
    rest = words[1:]
    flags = _LISTED.split(rest)[1]
    return any(flag in ("-l", "--list") for flag in flags) and not _LISTED.objection(rest) and not _format_problem(rest)


def _format_problem(words: Sequence[Word]) -> str:
    # %G? runs gpg, and the repository's settings choose that program
    for before, word in pairwise((Word(""), *words)):
        given = before.text.startswith(("--f", "--so")) and word.computed
        if given or "%G" in word.text or "signature" in word.text:
            return f"{word.text} may run gpg"
    return ""


def _text_problem(verb: str, words: Sequence[Word]) -> str:
    """Object to -a, with which git prints what its attributes hide: the content of committed secrets."""
    if verb not in SHOWS_CONTENT:
        return ""
    if verb == "format-patch" and not any(word.text == "--no-binary" for word in words):
        return "it encodes files that git would hide; add --no-binary"
    letters = verb == "grep"  # whose options can be joined
    for word in words:
        text = word.text
        if text == "--stdin" and verb != "hash-object":
            return "--stdin takes what to show from its input"
        if text == "-a" or (letters and text[:1] == "-" and text[1:2] != "-" and "a" in text):
            return f"{text} shows files as text that git would hide"
    return ""


def _judge_change(words: Sequence[Word], folders: Folders, reason: str) -> Judgement:
    """Judge a call that changes something, and list the tracked files that it copies to another folder."""
    judged = _judge_effect(words, folders, reason)
    operands = [word.text for word in words[1:] if word.text[:1] != "-" and "://" not in word.text]
    match words[0].text:
        case "clone":
            sources = operands
        case "worktree" if "add" in operands:
            sources = ["."]
        case "checkout-index":
            sources = ["."]
        case _:
            return judged
    paths = resolve_as(str, sources, folders)
    return judged._replace(trees=tuple(Tree(path, secrets=False, tracked=True, whole=True) for path in paths))


def _judge_effect(words: Sequence[Word], folders: Folders, reason: str) -> Judgement:
    """Judge what a call changes: the whole repository counts as written."""
    verb = words[0].text
    texts = [word.text for word in words[1:]]
    named = (*list_files(verb, words[1:], folders), *_list_targets(verb, words[1:], folders))
    touched = (*resolve_as(WritePath, ["."], folders), *named)
    marks = _DESTROYS.get(verb)
    if marks is not None and (not marks or any(_has_mark(verb, text, marks) for text in texts)):
        return Judgement(Verdict.DESTRUCTIVE, f"git {verb} may lose work", touched)
    if verb == "checkout" and _restores_files(texts):
        return Judgement(Verdict.DESTRUCTIVE, "git checkout may lose work", touched)
    if verb == "push" and any(_forces(text) for text in texts):
        return Judgement(Verdict.DESTRUCTIVE, "git push deletes or overwrites a branch", touched)
    if verb not in _WRITES or any(not word.literal for word in words) or words[0].text[:1] == "-":
        return unknown(reason, touched if verb in _WRITES else named)
    if any((verb, text) in _RUNS for text in texts) or any(_has_mark(verb, text, _RUNNING_OPTIONS) for text in texts):
        return unknown(f"git {verb} may run a program", touched)
    if verb in _MERGES and any(_has_mark(verb, text, ("-s", "--strategy")) for text in texts):
        return unknown(f"git {verb} may run a merge strategy, which is a program", touched)
    if verb in ("remote", "submodule") and any("::" in text for text in texts):
        return unknown(f"git {verb} names an address that is a program", touched)
    if verb == "symbolic-ref" and not all(_REF.fullmatch(text) for text in texts if text[:1] != "-"):
        return unknown("git symbolic-ref may write another file than a reference", touched)
    if verb in ("apply", "am"):
        return unknown(f"git {verb} writes files that only the patch names", touched)
    moved = [access.path for access in touched if verb == "mv" and isinstance(access, ReadPath)]
    copied = tuple([Tree(path) for path in moved])
    return Judgement(Verdict.WRITES, f"git {verb} changes the repository", touched, copied=copied)


def _restores_files(texts: Sequence[str]) -> bool:
    """Whether a checkout names files, and not only a branch; a file that is named like a branch is not seen here."""
    if makes_branch(texts):
        return False
    operands = [text for before, text in pairwise(("", *texts)) if text[:1] != "-" and before != "--conflict"]
    # no branch begins with a dot or a slash, or holds a wildcard
    return len(operands) > 1 or any(text[0] in ":./" or set(text) & set("*?[") for text in operands if text)


def _forces(refspec: str) -> bool:
    """Whether a refspec overwrites a branch (`+main`) or deletes it (`:main`)."""
    return refspec[:1] in ("+", ":")


def _list_targets(verb: str, words: Sequence[Word], folders: Folders) -> Iterator[Access]:
    """Yield the paths that a call creates outside the usual places, and the settings it changes."""
    operands = [word for word in words if word.text[:1] != "-"]
    if verb == "config" or (operands and operands[0].text in _REDIRECTS.get(verb, ())):
        yield from resolve_as(WritePath, [".git/config"], folders)
        yield from list_outputs(words, ("-f", "--file"), folders)
    if verb == "submodule" and any(word.text.startswith("set-") for word in operands):
        yield from resolve_as(WritePath, [".gitmodules"], folders)
    if verb in ("init", "clone", "worktree"):
        yield from resolve_as(WritePath, [word for word in operands if "://" not in word.text], folders)
    if verb == "checkout":
        protected = [word for word in operands if is_protected(comparable(word.text))]
        yield from resolve_as(WritePath, protected, folders)
    removed = operands if verb == "rm" and Word("--cached") not in words else []
    if verb == "mv":  # a computed word makes its target unknown, too, and git moves nothing from outside the repository
        removed = [word for word in operands[:-1] if word.literal]
    yield from resolve_as(DeletePath, removed, folders)
    if verb == "mv" and len(operands) > 1:
        yield from resolve_as(ReadPath, operands[:-1], folders)
        for source in (Word(""), *operands[:-1]):
            target = f"{operands[-1].text}/{source.text.rstrip('/').rpartition('/')[2]}".rstrip("/")
            yield from resolve_as(WritePath, [target], folders)
    if verb == "bundle" and operands[:1] == [Word("create")]:
        yield from resolve_as(WritePath, operands[1:2], folders)
    yield from list_outputs(words, _OUTPUTS.get(verb, ("--output",)), folders)
    for word in words:
        name, equals, value = word.text.partition("=")
        if equals and name.startswith(("--separate-git", "--output", "--reference", "--file")):
            yield from resolve_as(WritePath, [value], folders)


def _has_mark(verb: str, text: str, marks: Sequence[str]) -> bool:
    if text.startswith("--"):
        begun = text.partition("=")[0]
        long = [mark for mark in marks if mark.startswith("--")]
        return text in marks or (text != "--" and any(mark.startswith(begun) for mark in long))
    if text[:1] != "-":
        return text in marks
    letters = text[1:].partition("m")[0] if verb in _TAKES_MESSAGE else text[1:]
    harmless = "x" if verb == "cherry-pick" else ""  # it names the commit in the message
    return any(f"-{letter}" in marks for letter in letters if letter not in harmless)
