"""Judges bash builtins, some of which set variables or evaluate their arguments."""

import re
from collections.abc import Sequence
from itertools import pairwise

from callwright.shell.findings import Judgement, unknown
from callwright.shell.plan import ENVIRONMENT_SHOWN, Verdict
from callwright.shell.words import WORDS, Folders, Word, is_harmless_variable, is_name
from callwright.system.environment import is_credential

_READ_FLAGS = re.compile(r"-[rsed]*a?\Z")
_READ_VALUES = frozenset(("-p", "-t", "-n", "-N", "-d", "-u"))
_OPTIONS = re.compile(r"[-+][euxofvn]+\Z|pipefail\Z|errexit\Z|nounset\Z|xtrace\Z")
_PROBES = re.compile(r"\A-(?:[vV])\Z")
_NAME = re.compile(r"[\w.+-]+\Z")


EVALUATORS = frozenset(
    "test [ [[ unset let read printf declare typeset local export readonly mapfile readarray wait getopts".split()
)
"""Builtins that evaluate a subscript inside a word, and with it any substitution that quotes protected before."""
_CONDITIONS = ("test", "[", "[[")
_BINARY = frozenset("= == != < > -eq -ne -lt -le -gt -ge -nt -ot -ef -a -o ) ]".split())
_SUBSCRIPT = re.compile(r"\w\[")
_SUBSTITUTION = re.compile(r"`([^`]*)`|\$\(")
_SETS_VARIABLE = re.compile(r"%[^%a-zA-Z]*[a-zA-Z]{0,2}?n")


def list_substitutions(name: str, text: str) -> list[str]:
    """Return the scripts of the substitutions that a builtin would expand again; a condition does so in subscripts."""
    found: list[str] = []
    if name in _CONDITIONS and not _SUBSCRIPT.search(text):
        return found
    for match in _SUBSTITUTION.finditer(text):
        if match[1] is not None:
            found.append(match[1])
            continue
        depth, end = 1, match.end()
        while end < len(text) and depth:
            depth += {"(": 1, ")": -1}.get(text[end], 0)
            end += 1
        found.append(text[match.end() : end - (not depth)])
    return found


def printf(name: str, arguments: Sequence[Word], folders: Folders) -> Judgement:
    """Judge printf: -v and %n set a variable, and -v evaluates its subscript."""
    if problem := _find_format_problem(arguments):
        return unknown(problem)
    first = arguments[0] if arguments else Word("")
    if (first.text[:1] == "-" and first.text not in ("-", "--")) or first.may_be_option:
        return unknown("printf may set a variable")
    if len(arguments) > 1 and first.text == "--" and arguments[1].may_be_option:
        return unknown("the format of printf is not literal")
    return Judgement(Verdict.READ_ONLY, "printf only prints")


def _find_format_problem(arguments: Sequence[Word]) -> str:
    place = 1 if arguments and arguments[0].text == "--" else 0
    if len(arguments) <= place + 1:  # without an operand there is no name that %n could set
        return ""
    layout = arguments[place]
    if not layout.literal:
        return "the format of printf is not literal"
    return "printf %n sets a variable" if _SETS_VARIABLE.search(layout.text.replace("%%", "")) else ""


def test(name: str, arguments: Sequence[Word], folders: Folders) -> Judgement:
    """Judge a condition: -v and -R evaluate subscripts, the rest is read-only."""
    if any(word.text in ("-v", "-R") for word in arguments):
        return unknown(f"{name} -v evaluates subscripts")
    if any(not word.literal and following.text not in _BINARY for word, following in pairwise(arguments)):
        return unknown("an operator of the condition may not be literal")  # test ! "$x" "$y"
    if any(word.form is WORDS for word in arguments):
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
            if not all(word.single for word in arguments[place : place + 1]):
                return unknown(f"{arguments[place].text} may become names of variables")
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


def declare(name: str, arguments: Sequence[Word], folders: Folders) -> Judgement:
    """Judge export, declare and similar: harmless for variables that no program reads.

    The assignments themselves are checked where the line is read; here only names and options remain.
    """
    if not arguments or all(word.text in ("-p", "-x", "-px", "-xp") for word in arguments):
        return Judgement(Verdict.READ_ONLY, ENVIRONMENT_SHOWN)
    for word in arguments:
        text = word.text
        if not word.single:  # quoted or behind `command`, the name no longer keeps bash from splitting a=$x
            return unknown(f"{text} may set other variables")
        if text[:1] in ("-", "+"):
            if text not in ("-x", "-r", "-rx", "-xr", "-g", "-gx", "--") or not word.literal:
                return unknown(f"{name} {text} changes how a variable is read")
        elif not is_name(text.partition("=")[0]) or not is_harmless_variable(text.partition("=")[0], None):
            return unknown(f"{name} sets {text}, which may change what programs do")
    return Judgement(Verdict.READ_ONLY, f"{name} only sets variables of the script")


def unset(name: str, arguments: Sequence[Word], folders: Folders) -> Judgement:
    """Judge unset, which is harmless for variables that belong to the script."""
    names = [word for word in arguments if word.text != "-v"]
    for word in names:
        if not word.literal or not is_name(word.text) or not is_harmless_variable(word.text, None):
            return unknown(f"unset removes {word.text}")
    return Judgement(Verdict.READ_ONLY, "unset only removes variables of the script")


def env(name: str, arguments: Sequence[Word], folders: Folders) -> Judgement:
    """Judge env without a command, which prints the environment."""
    texts = [word.text for word in arguments]
    if texts in (["--version"], ["--help"]):
        return Judgement(Verdict.READ_ONLY, "env shows its version or help")
    if all(text in ("-0", "--null") for text in texts):
        return Judgement(Verdict.READ_ONLY, ENVIRONMENT_SHOWN)
    return unknown("env is called in an unknown form")


def printenv(name: str, arguments: Sequence[Word], folders: Folders) -> Judgement:
    """Judge printenv: a variable with a harmless name may be shown, all of them may include credentials."""
    names = [word.text for word in arguments if word.text[:1] != "-"]
    if any(not word.literal for word in arguments):
        return unknown("the name of the variable is not literal")
    if not names:
        return Judgement(Verdict.READ_ONLY, ENVIRONMENT_SHOWN)
    named = next((text for text in names if is_credential(text)), "")
    return unknown(f"{named} may be a credential") if named else Judgement(Verdict.READ_ONLY, "it prints a variable")


_PS_VALUES = re.compile(r"-[^-oOpCuUgGtqsk]*[oOpCuUgGtqsk]|[^-oOptUkqN]*o|--(?:sort|pid|ppid|user|format)")
"""Options whose value is the next word; of joined letters, the last one takes it."""


_PS_SELECTS = re.compile(r"-[^-oOpCuUgGtqsk]*[pCuUgGtqs]|--(?:pid|ppid|user)")
_PS_NUMBERS = re.compile(
    r"\$(?:[$!]|PPID|USER|UID)|\$\(whoami\)|\$\((?:pgrep|pidof)"
    r"(?: (?:-[fxnoiuUP]+|[\w./][\w./-]*|\"[\w./][\w./ -]*\"|'[\w./][\w./ -]*')(?=[ )]))+"
    r"(?: \| (?:head|tail) -(?:n ?)?\d+)?\)"
)
"""Expansions that give nothing but numbers of processes or one user."""


def ps(name: str, arguments: Sequence[Word], folders: Folders) -> Judgement:
    """Judge ps: an `e` without a dash, -E or a column `environ` shows the environment of processes.

    A word that is not literal may be one of these, unless it can only select processes: `ps -p "$x"`.
    """
    value, before = False, ""
    for word in arguments:
        text = word.text
        if not word.literal and not (value and _PS_SELECTS.fullmatch(before) and _is_one_value(word)):
            return unknown(f"{text} may become an option of ps, which shows the environment of processes")
        if not value and ((text[:1] != "-" and "e" in text) or (text[:1] == "-" and text[1:2] != "-" and "E" in text)):
            return unknown("ps shows the environment of processes")
        if "env" in text.lower():
            return unknown("ps shows the environment of processes")
        value, before = _PS_VALUES.fullmatch(text) is not None and not value, text
    return Judgement(Verdict.READ_ONLY, "ps lists processes")


def _is_one_value(word: Word) -> bool:
    return word.single or _PS_NUMBERS.fullmatch(word.text) is not None


_JQ_ENVIRONMENT = re.compile(
    r"\$(?:ENV|__prog_args)\b|(?<![.\w\"$])env\b(?!\s*:)|(?<![.\w\"${])(?<!\{\s)env\b|\bstrenv\b|\benvsubst\b"
)
"""`{env: 1}` only names a field, but `.[env:1]` prints the environment."""


def prints_environment(program: str) -> bool:
    """Whether a jq or yq expression may print variables of the environment."""
    return bool(_JQ_ENVIRONMENT.search(program))


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
    if words[:1] == ["-0"] and len(words) > 1 and all(word.isascii() and word.isdigit() for word in words[1:]):
        return Judgement(Verdict.READ_ONLY, "kill -0 only asks whether processes are there")
    return Judgement(Verdict.DESTRUCTIVE, "it ends processes")
