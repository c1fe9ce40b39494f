"""Command lines: how they are read, and what is said where one makes no sense."""

import argparse
import re
from collections.abc import Sequence
from typing import NoReturn

_CHOICE = re.compile(
    r"argument (?P<name>\S+): invalid choice: (?P<value>'.*?') \(choose from (?P<known>.*)\)", re.DOTALL
)
_ARGUMENT = re.compile(r"argument (?P<name>[^:]+): (?P<what>.*)", re.DOTALL)
_NO_VALUE = re.compile(r"expected (one|at least one) argument")
_MISSING = "the following arguments are required: "
_UNKNOWN = "unrecognized arguments: "
_ELSEWHERE = {
    "--dangerously-skip-permissions": "--permission-mode bypass",
    "--yolo": "--permission-mode bypass",
    "--full-auto": "--permission-mode auto",
}
"""What other agents' options are here."""


class Parser(argparse.ArgumentParser):
    """Says in one line what is wrong with which word, and where to read on."""

    def __init__(self, prog: str, **named: object) -> None:
        named = {"formatter_class": argparse.RawDescriptionHelpFormatter, "allow_abbrev": False, **named}
        super().__init__(prog, **named)  # type: ignore[arg-type] - passed on as they came

    def error(self, message: str) -> NoReturn:
        """End the process with code 2."""
        page = "callwright -p --help" if self.prog == "callwright" else f"{self.prog} --help"
        self.exit(2, f"{self.prog}: {self._said(message)}; {page} explains\n")

    def _said(self, message: str) -> str:
        if message.startswith(_UNKNOWN):
            return self._unknown(message.removeprefix(_UNKNOWN).split())
        if message.startswith(_MISSING):
            return self._missing(message.removeprefix(_MISSING).split(", "))
        if found := _CHOICE.fullmatch(message):
            return self._no_choice(found["name"], found["value"].strip("'"), re.findall(r"'([^']*)'", found["known"]))
        if found := _ARGUMENT.fullmatch(message):
            needs = "needs a value" if _NO_VALUE.fullmatch(found["what"]) else found["what"]
            return f"{found['name'].split('/')[-1]} {needs}"
        return message

    def _no_choice(self, name: str, value: str, known: Sequence[str]) -> str:
        return f"{name} cannot be {value!r}; {_nearest(value, known) or 'there are ' + ', '.join(known)}"

    def _missing(self, names: Sequence[str]) -> str:
        optional = [action for action in self._actions if action.nargs in ("*", "?", argparse.REMAINDER)]
        free = {action.metavar or action.dest for action in optional}  # argparse says that these are required too
        needed = [name.upper() for name in names if name not in free]
        return f"{' and '.join(needed)} {'is' if len(needed) == 1 else 'are'} missing"

    def _unknown(self, words: Sequence[str]) -> str:
        option = next((word for word in words if word.startswith("-")), "")
        if option:
            known = [name for action in self._actions for name in action.option_strings]
            name = option.partition("=")[0]
            meant = _ELSEWHERE.get(name, "")
            hint = f"did you mean {meant}?" if meant.split(" ")[0] in known else _nearest(name, known)
            return f"there is no option {option}" + (f"; {hint}" if hint else "")
        more = " ".join(words)
        return f"nobody knows what to do with {more!r}: put what belongs together in quotes"


def _nearest(word: str, known: Sequence[str]) -> str:
    from difflib import get_close_matches

    near = get_close_matches(word, known, n=1)
    return f"did you mean {near[0]}?" if near else ""


def at_least_one(text: str) -> int:
    """Read a count."""
    if not text.isdigit() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"must be a number of at least 1, not {text!r}")
    return int(text)


def amount(text: str) -> float:
    """Read a sum of money."""
    try:
        value = float(text)
    except ValueError:
        value = 0.0
    if not 0 < value < float("inf"):
        raise argparse.ArgumentTypeError(f"must be an amount above 0, not {text!r}")
    return value
