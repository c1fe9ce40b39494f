"""Decides whether a variable may be replaced by the text that the line gives it."""

import re
from collections.abc import Sequence

from callwright.shell.plan import SimpleCommand, Verdict
from callwright.shell.words import Word, is_name

_QUOTING = re.compile(r"\$(?=['\"])|['\"\\]")
_PLAIN_PROGRAM = re.compile(r"[\w./:,+%@^-]+\Z")
_TAKE_TEXTS = frozenset("echo cd pwd true false : test".split())
_SET_NAMED = frozenset("declare export local read readonly typeset unset".split())
_SETTERS = _SET_NAMED | frozenset(
    (
        ". [ [[ alias bind builtin command compgen complete compopt coproc enable eval exec fc getopts history jobs "
        "let mapfile printf readarray select set shopt source test trap wait"
    ).split()
)
"""What bash runs itself and what may set variables, unless its judge understands the call."""
_PASS_ON = frozenset(("builtin", "command", "exec"))
_BUILTINS = (_SETTERS - _TAKE_TEXTS) | frozenset(
    (
        "bg break caller continue dirs disown exit fg hash help kill logout popd pushd return shift suspend time times "
        "type ulimit umask unalias"
    ).split()
)


def is_set_once(name: str, script: str) -> bool:
    """Whether a variable's name stands only once without a dollar sign, so that nothing else sets it: `read wo''rd`."""
    return _count_spelled(name, script) == 1


def _count_spelled(name: str, script: str) -> int:
    return len(re.findall(rf"(?<![$\w-])(?<!\$\{{){name}(?!\w)", _QUOTING.sub("", script)))


def takes_texts(program: Word) -> bool:
    """Whether the arguments of a command may hold such texts: to a builtin they may name a variable that it sets."""
    return program.literal and program.text not in _BUILTINS


def sets_unclear(commands: Sequence[SimpleCommand]) -> bool:
    """Whether a command may set variables and is not understood."""
    return any(map(_is_unclear, commands))


def _is_unclear(command: SimpleCommand) -> bool:
    if not _PASS_ON.issuperset(_SETTERS.intersection(command.wrappers)):  # eval, trap
        return True
    program = command.words[0] if command.words else ""
    if program in _SETTERS:
        return command.verdict is Verdict.UNKNOWN
    return not command.literal and not _PLAIN_PROGRAM.match(program)


def sets_unspelled(commands: Sequence[SimpleCommand]) -> bool:
    """Whether a command sets a variable whose name it does not spell: `read ${a}rd`, `read {wor,x}d`."""
    return any(map(_sets_unspelled, commands))


def _sets_unspelled(command: SimpleCommand) -> bool:
    if not command.words or command.words[0] not in _SET_NAMED:
        return False
    if not command.literal and command.verdict is Verdict.UNKNOWN:
        return True
    names = [re.split(r"[=+[]", word, maxsplit=1)[0] for word in command.words[1:]]
    return any(is_name(name) and not _count_spelled(name, command.text) for name in names)
