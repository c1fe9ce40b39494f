"""Judges bash builtins, some of which set variables or evaluate their arguments."""

import re
from collections.abc import Sequence

from callwright.shell.plan import Judgement, Verdict, unknown
from callwright.shell.words import Certainty, Folders, Word, is_harmless_variable, is_name

_READ_FLAGS = re.compile(r"-[rsed]*\Z")
_READ_VALUES = frozenset(("-p", "-t", "-n", "-N", "-d", "-u"))
_OPTIONS = re.compile(r"[-+][euxofvn]+\Z|pipefail\Z|errexit\Z|nounset\Z|xtrace\Z")
_PROBES = re.compile(r"\A-(?:[vV])\Z")
_NAME = re.compile(r"[\w.+-]+\Z")


def printf(name: str, arguments: Sequence[Word], folders: Folders) -> Judgement:
    """Judge printf: -v sets a variable and evaluates its subscript."""
    first = arguments[0] if arguments else Word("")
    if (first.text[:1] == "-" and first.text not in ("-", "--")) or first.certainty is Certainty.ANYTHING:
        return unknown("printf may set a variable")
    if len(arguments) > 1 and first.text == "--" and arguments[1].certainty is Certainty.ANYTHING:
        return unknown("the format of printf is not literal")
    return Judgement(Verdict.READ_ONLY, "printf only prints")


def test(name: str, arguments: Sequence[Word], folders: Folders) -> Judgement:
    """Judge a condition: -v and -R evaluate subscripts, the rest is read-only."""
    if any(word.text in ("-v", "-R") for word in arguments):
        return unknown(f"{name} -v evaluates subscripts")
    if name == "test" and len(arguments) == 2 and not arguments[0].literal:  # operator and operand
        return unknown("the operator of the condition is not literal")
    if name == "test" and any(word.certainty is Certainty.ANYTHING and word.text[:1] != '"' for word in arguments):
        return unknown("a word of the condition may become an operator")
    return Judgement(Verdict.READ_ONLY, "a condition only reads")


def read(name: str, arguments: Sequence[Word], folders: Folders) -> Judgement:
    """Judge read, which is harmless for variables that belong to the script."""
    place = 0
    while place < len(arguments) and arguments[place].text[:1] == "-":
        if not arguments[place].literal:
            return unknown("an option of read is not literal")
        text = arguments[place].text
        if text in _READ_VALUES:
            place += 1
        elif not _READ_FLAGS.match(text):
            return unknown(f"read {text} is an unknown option")
        place += 1
    for word in arguments[place:]:
        if not word.literal or not is_name(word.text) or not is_harmless_variable(word.text, None):
            return unknown(f"read sets {word.text}")
    return Judgement(Verdict.READ_ONLY, "read only fills variables of the script")


def command(name: str, arguments: Sequence[Word], folders: Folders) -> Judgement:
    """Judge `command -v`, which prints where programs are."""
    words = [word.text for word in arguments]
    if words and _PROBES.match(words[0]) and all(map(_NAME.match, words[1:])) and not _options(words[1:]):
        return Judgement(Verdict.READ_ONLY, "command -v only prints where a program is")
    return unknown("command is called in an unknown form")


def _options(words: Sequence[str]) -> bool:
    return any(word[:1] == "-" for word in words)


def set_options(name: str, arguments: Sequence[Word], folders: Folders) -> Judgement:
    """Judge set: strictness is harmless, positional parameters and other options are not followed."""
    if arguments and all(_OPTIONS.match(word.text) for word in arguments):
        return Judgement(Verdict.READ_ONLY, "set only makes the shell stricter")
    return unknown("set changes the shell")


def env(name: str, arguments: Sequence[Word], folders: Folders) -> Judgement:
    """Judge env without a command, which prints the environment."""
    if all(word.text in ("-0", "--null", "--version", "--help") for word in arguments):
        return Judgement(Verdict.READ_ONLY, "env prints the environment")
    return unknown("env is called in an unknown form")


def history(name: str, arguments: Sequence[Word], folders: Folders) -> Judgement:
    """Judge history: showing it is harmless."""
    if all(word.text.isdigit() for word in arguments):
        return Judgement(Verdict.READ_ONLY, "history only shows")
    return unknown("history may write or run something")


def kill(name: str, arguments: Sequence[Word], folders: Folders) -> Judgement:
    """Judge kill: -l lists signals, 0 only asks, everything else ends processes."""
    words = [word.text for word in arguments]
    if words[:1] in (["-l"], ["-L"]) and all(word.literal for word in arguments):
        return Judgement(Verdict.READ_ONLY, "kill -l lists signals")
    return Judgement(Verdict.DESTRUCTIVE, "it ends processes")
