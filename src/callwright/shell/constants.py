"""Decides whether a variable may be replaced by the text that the line gives it."""

import re

from callwright.shell.plan import SimpleCommand, Verdict
from callwright.shell.words import is_name

_QUOTING = re.compile(r"\$(?=['\"])|['\"\\]")
_SPELLED = re.compile(r"(?<![$\w-])(?<!\$\{)[A-Za-z_]\w*")
_SET_NAMED = frozenset("declare export local read readonly typeset unset".split())
_SETTERS = _SET_NAMED | frozenset(
    (
        ". [ alias bg bind builtin caller command compgen complete compopt coproc dirs disown enable eval exec fc fg "
        "getopts hash history jobs let logout mapfile printf readarray set shift shopt source suspend test trap ulimit "
        "umask unalias wait"
    ).split()
)
"""What bash runs itself, without those that set no variable in any form: cd, echo. Other programs cannot set one."""


def is_set_once(name: str, script: str) -> bool:
    """Whether a variable's name stands only once without a dollar sign, so that nothing else sets it: `read wo''rd`."""
    return _list_spelled(script).count(name) == 1


def _list_spelled(script: str) -> list[str]:
    return _SPELLED.findall(_QUOTING.sub("", script))


def sets_unclear(command: SimpleCommand) -> bool:
    """Whether bash itself runs a command that is not understood and may set variables: `. file`, `printf -vx y`."""
    return command.verdict is Verdict.UNKNOWN and not _SETTERS.isdisjoint((*command.words[:1], *command.wrappers))


def sets_unspelled(command: SimpleCommand) -> bool:
    """Whether a command sets a variable whose name it does not spell: `read ${a}rd`, `read {wor,x}d`."""
    if not command.words or command.words[0] not in _SET_NAMED:
        return False
    if not command.literal and command.verdict is Verdict.UNKNOWN:
        return True
    names = [re.split(r"[=+[]", word, maxsplit=1)[0] for word in command.words[1:]]
    return not set(filter(is_name, names)).issubset(_list_spelled(command.text))
