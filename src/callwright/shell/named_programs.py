"""Programs that a call names in variables and options: `GIT_PAGER=x git log`, `tar -I x`."""

import re
from collections.abc import Iterator, Sequence
from itertools import dropwhile, pairwise

from callwright.shell.words import Word, is_harmless_variable
from callwright.shell.wrapper_tables import PROGRAM_OPTIONS, PROGRAM_VARIABLES

_NAMED_IN_SETTING = re.compile(r"(?:-o ?)?(?:proxycommand|localcommand)[= ](.+)|alias\.[^=]+=!(.+)", re.IGNORECASE)
_EDITOR_COMMAND = re.compile(r"\+?:?!(.+)")
_EDITORS = frozenset("vim vi nvim ex view less".split())
_NAMING = frozenset(("git", "ssh", "scp", "sftp", *_EDITORS, *PROGRAM_OPTIONS))
"""The programs that run what one of their options names."""
_GIT_RUNS = {"bisect": "run", "submodule": "foreach"}


def list_named_programs(
    name: str, words: Sequence[Word], assignments: Sequence[tuple[str, str | None]]
) -> Sequence[str]:
    """Return the scripts that a call names in variables and options, so that deny rules see them.

    `GIT_PAGER=x git log`, `tar -I x`, `ssh -o ProxyCommand=x`. Nothing is ever allowed because of them.
    """
    if not assignments and name not in _NAMING:
        return ()
    named = [
        value
        for variable, value in assignments
        if value and variable in PROGRAM_VARIABLES and not is_harmless_variable(variable, value)
    ]
    return [*named, *_read_named_programs(name, words)]


def list_git_scripts(words: Sequence[Word]) -> Sequence[str]:
    """Return the scripts that `git bisect run`, `git submodule foreach` and filters of `git filter-branch` run."""
    texts = [word.text for word in words]
    verb = next((text for text in texts[1:] if text[:1] != "-"), "")
    run = _GIT_RUNS.get(verb)
    if run in texts:
        return [" ".join(dropwhile(lambda text: text[:1] == "-", texts[texts.index(run) + 1 :]))]
    filters = pairwise(texts) if verb == "filter-branch" else ()
    return [following for text, following in filters if text[:2] == "--" and text.endswith("-filter")]


def _read_named_programs(name: str, words: Sequence[Word]) -> Iterator[str]:
    verb = next((word.text for word in words[1:] if word.text[:1] != "-"), "") if name == "git" else ""
    options = PROGRAM_OPTIONS.get(f"git {verb}" if verb else name, ())
    for word, following in pairwise((*words, Word(""))):
        text = word.text
        option, equals, value = text.partition("=")
        if option in options:
            yield value.removeprefix("exec=") if equals else following.text
        elif text[:2] in options and text[1:2] != "-":
            yield text[2:]
        elif name in ("git", "ssh", "scp", "sftp") and (setting := _NAMED_IN_SETTING.fullmatch(text)):
            yield setting[1] or setting[2]
        elif name in _EDITORS and (command := _EDITOR_COMMAND.fullmatch(text)):
            yield command[1]
