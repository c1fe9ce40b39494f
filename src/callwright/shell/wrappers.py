"""Removes wrappers: programs such as env, sudo, xargs or bash -c that run another command."""

import re
from collections.abc import Callable, Iterator, Sequence
from itertools import dropwhile, pairwise
from typing import NamedTuple

from callwright.shell.plan import Tree
from callwright.shell.words import TEXT, VALUE, WORDS, Word, is_harmless_variable
from callwright.shell.wrapper_tables import (
    FLOCK,
    PARALLEL,
    RUN_VALUES,
    RUN_VERBS,
    WATCH,
    WRAPPERS,
    XARGS,
    Wrapper,
    awaits_value,
    find_loose,
    names_program,
    skip_options,
)


class InnerCommand(NamedTuple):
    """The command or the script that a wrapper runs."""

    name: str
    words: tuple[Word, ...] = ()
    """The command, or the arguments of the script."""
    script: Word | None = None
    doubt: str = ""
    """Why a command behind this wrapper cannot count as read-only; empty when it can."""
    assignments: tuple[tuple[str, str | None], ...] = ()
    folder: Word | None = None
    """The folder that the wrapper changes to."""
    trees: tuple[Tree, ...] = ()
    """Folders whose files it hands to the command."""
    mark: str | None = None
    """The placeholder that xargs replaces by a name."""
    whole: bool = False
    """Names reach the command as they are, with any white space in them."""
    clears: bool = False
    """It drops the variables that keep git from running programs a repository names."""
    loose: str = ""
    """A word before the command that may be an option or become several words; empty if there is none."""


SHELLS = frozenset("sh bash dash zsh ksh ksh93 mksh ash fish rbash csh tcsh".split())
_PLAIN_SHELLS = frozenset(("sh", "bash", "dash"))
_C_SHELLS = frozenset(("csh", "tcsh"))
_PLAIN_SHELL_FLAGS = frozenset("ceux")
_PLAIN_SHELL_OPTIONS = frozenset(("pipefail", "errexit", "nounset", "xtrace"))
_SAME_EVERYWHERE = re.compile(r"[A-Za-z][A-Za-z0-9_.-]*(?: +[A-Za-z0-9_./,+-]+)*\Z")
"""A script of plain words, which every shell but csh reads alike."""
_ASSIGNMENT = re.compile(r"([A-Za-z_][A-Za-z0-9_]*)=(.*)\Z", re.DOTALL)


def unwrap(words: Sequence[Word]) -> InnerCommand | None:
    """Remove the outermost wrapper; return None when the first word is the program that runs."""
    name = words[0].text
    if "/" in name:
        name = name.rpartition("/")[2]
    if name not in _ALL or not words[0].literal:
        return None
    special = _SPECIAL.get(name)
    if special is not None:
        return special(name, words[1:])
    wrapper = WRAPPERS.get(name)
    if wrapper is not None:
        return _unwrap_plain(name, wrapper, words[1:])
    if name in SHELLS:
        return _unwrap_shell(name, words[1:])
    return _unwrap_runner(name, words[1:]) if name in RUN_VERBS else None


_BEFORE_COMMAND = {"sudo": _ASSIGNMENT, "dotenv": re.compile("run|--"), "coproc": re.compile(r"[A-Z]\w*|\{")}
"""What may stand between the options of a wrapper and the command."""


def _unwrap_plain(name: str, wrapper: Wrapper, words: Sequence[Word]) -> InnerCommand | None:
    place, doubt = skip_options(words, wrapper)
    inner = tuple(words[place + wrapper.operands :])
    if wrapper.operands and inner and inner[0].text[:1] == "-":  # perf record -o file program
        inner, doubt = inner[skip_options(inner, wrapper)[0] :], f"{inner[0].text} stands behind an operand"
    elif name in _BEFORE_COMMAND:
        inner = tuple(dropwhile(lambda word: _BEFORE_COMMAND[name].fullmatch(word.text), inner))
    if not inner:
        return None
    own = words[: len(words) - len(inner)]
    if name in ("timeout", "gtimeout") and len(own) == place + 1 and own[place].single and names_program(inner[0]):
        own = own[:place]  # as an option it would need a time or a signal behind it, or timeout runs nothing
    loose = find_loose(own, frozenset() if wrapper.doubt else wrapper.values)
    return InnerCommand(name, inner, doubt=doubt or wrapper.doubt, loose=loose)


def _unwrap_command(name: str, words: Sequence[Word]) -> InnerCommand | None:
    if words and re.match(r"-p*[vV]", words[0].text):
        return None
    return _unwrap_plain(name, WRAPPERS["command"], words)


_SPLITS_STRING = re.compile(r"-[iv0]*S|--s")
_ENV_VALUES = frozenset("-u -C -P -a --unset --chdir --argv0".split())


def _unwrap_env(name: str, words: Sequence[Word]) -> InnerCommand | None:
    place, doubt, folder, clears = 0, "", None, False
    assignments: list[tuple[str, str | None]] = []
    while place < len(words):
        text = words[place].text
        if _SPLITS_STRING.match(text):
            return _unwrap_split_string(words[place:], text)
        if text in ("-C", "--chdir") and place + 1 < len(words):
            folder, place = words[place + 1], place + 1
        elif text.startswith("--chdir="):
            folder = Word(text.partition("=")[2], words[place].form)
        elif text in ("-u", "--unset", "-P"):
            doubt, place = doubt or "it changes the environment", place + 1
        elif text in ("-i", "-", "--ignore-environment"):
            clears = True
        elif assignment := _ASSIGNMENT.match(text):
            value = assignment[2] if words[place].literal else None
            assignments.append((assignment[1], value))
            if not is_harmless_variable(assignment[1], value):
                doubt = doubt or f"it sets {assignment[1]}, which may change what programs do"
        elif text[:1] != "-":
            break
        elif text not in ("--", "-0", "--null", "-v", "--debug"):
            doubt, place = doubt or f"{text} is an unknown option", place + awaits_value(text, _ENV_VALUES)
        place += 1
    inner = tuple(words[place:])
    # of `A="$x"` bash makes one word, which sets A
    own = (word for word in words[:place] if not (word.single and _ASSIGNMENT.match(word.text)))
    loose = find_loose(own, frozenset(("-C", "--chdir")))
    found = InnerCommand(name, inner, None, doubt, tuple(assignments), folder, clears=clears, loose=loose)
    return found if inner else None


def _unwrap_split_string(words: Sequence[Word], text: str) -> InnerCommand:
    attached = text.partition("=")[2] if text.startswith("--") else text.partition("S")[2]
    rest = words[1:] if attached else words[2:]
    first = attached or (words[1].text if len(words) > 1 else "")
    script = Word(" ".join([first, *(word.text for word in rest)]))
    return InnerCommand("env", script=script, doubt="env splits a string into a command")


_ZEROS = frozenset(("-0", "--null", "-0r", "-r0"))
_COUNTS = frozenset("-n -P -L -s --max-args --max-procs --max-chars".split())
_ONE_EACH = re.compile(r"(?:-[0r] )*-I ?[^\s-]\S*")  # with any other option, one mark may become several words
_XARGS_FLAGS = XARGS.values | XARGS.flags | frozenset(("--replace", "--eof", "--max-lines"))


def _unwrap_xargs(name: str, words: Sequence[Word]) -> InnerCommand | None:
    place, doubt = skip_options(words, XARGS)
    flags = words[:place]
    doubt = _find_xargs_doubt(flags) if doubt else ""
    doubt = doubt or next((f"{text} takes its words from a file" for text in _list_name_files(flags)), "")
    doubt = doubt or _find_delimiter_doubt(flags)
    mark = _find_replacement(flags)
    single = _ONE_EACH.fullmatch(" ".join([word.text for word in flags])) is not None
    inner = tuple(_mark_replaced(word, mark, single=single) for word in words[place:])
    if not inner:
        return None
    if mark is None or not any(not word.literal for word in inner):
        inner = (*inner, Word("{}", WORDS))
        mark = "{}"
    whole = _splits_at_zeros([word.text for word in flags])
    return InnerCommand(name, inner, doubt=doubt, mark=mark, whole=whole, loose=find_loose(flags, _COUNTS))


def _splits_at_zeros(flags: Sequence[str]) -> bool:
    """Whether names end at zeros only; in `-I -0` the zero is a placeholder."""
    zeros = [before not in XARGS.values for before, text in pairwise(("", *flags)) if text in _ZEROS]
    return any(zeros) and not any(text.startswith(("-d", "--d")) for text in flags)


def _list_name_files(flags: Sequence[Word]) -> Iterator[str]:
    """Yield the options that make xargs take its words from a file, other than its input."""
    for place, word in enumerate(flags):
        text = word.text
        if text in ("-a", "--arg-file"):
            value = flags[place + 1].text if place + 1 < len(flags) else ""
        elif text.startswith(("-a", "--a")):
            value = text.partition("=")[2] if text[1] == "-" else text[2:]
        else:
            continue
        if value not in ("-", "/dev/stdin"):
            yield text


def _find_delimiter_doubt(flags: Sequence[Word]) -> str:
    """Object to a delimiter that splits a name in two: `-dX` makes `.env` out of `.envX`."""
    for place, word in enumerate(flags):
        text = word.text
        if text in ("-d", "--delimiter"):
            value = flags[place + 1].text if place + 1 < len(flags) else ""
        elif text.startswith("--d"):
            value = text.partition("=")[2]
        elif text.startswith("-d"):
            value = text[2:]
        else:
            continue
        if value not in ("\\n", "\\0", "\n"):
            return f"the delimiter {value} may split names"
    return ""


def _find_xargs_doubt(flags: Sequence[Word]) -> str:
    for word in flags:
        text = word.text
        if text[:1] != "-" or text.partition("=")[0] in _XARGS_FLAGS or text[:2] in XARGS.values:
            continue
        # -i, -e and -l take an optional value, attached
        if text[1:2] not in ("i", "e", "l") and not set(text[1:]) <= set("0rtx"):
            return f"{text} is an unknown option"
    return ""


def _find_replacement(flags: Sequence[Word]) -> str | None:
    """Return the placeholder that xargs replaces by its input."""
    for place, word in enumerate(flags):
        text = word.text
        if text.startswith(("-I", "-J")):
            return text[2:] or (flags[place + 1].text if place + 1 < len(flags) else "{}")
        if text.startswith(("--replace", "-i")):
            return text.partition("=")[2] or (text[2:] if not text.startswith("--") else "") or "{}"
    return None


def _mark_replaced(word: Word, mark: str | None, *, single: bool) -> Word:
    return Word(word.text, VALUE if single and word.literal else WORDS) if mark and mark in word.text else word


def _unwrap_shell(name: str, words: Sequence[Word]) -> InnerCommand | None:
    place, script, doubt = 0, False, ""
    while place < len(words):
        text = words[place].text
        if text[:1] not in ("-", "+") or text in ("-", "--"):
            break
        if text in ("--rcfile", "--init-file"):
            place, doubt = place + 1, doubt or f"{text} runs a file first"
        elif text[:2] == "--":
            doubt = doubt or ("" if text in ("--norc", "--noprofile", "--posix") else f"{text} is an unknown option")
        else:
            script = script or (text[0] == "-" and "c" in text)
            place, doubt = _read_shell_letters(words, place, doubt)
        place += 1
    place += place < len(words) and words[place].text in ("-", "--")
    if not script or place >= len(words):
        return None
    alike = words[place].literal and name not in _C_SHELLS and _SAME_EVERYWHERE.match(words[place].text)
    if name not in _PLAIN_SHELLS and not alike:
        doubt = doubt or f"{name} reads its scripts differently"
    return InnerCommand(f"{name} -c", tuple(words[place + 1 :]), words[place], doubt)


def _read_shell_letters(words: Sequence[Word], place: int, doubt: str) -> tuple[int, str]:
    letters = words[place].text[1:]
    if letters[-1:] in ("o", "O") and place + 1 < len(words):
        plain = words[place].text[0] == "-" and words[place + 1].text in _PLAIN_SHELL_OPTIONS
        return place + 1, doubt or (
            "" if plain and set(letters[:-1]) <= _PLAIN_SHELL_FLAGS else "it sets shell options"
        )
    return place, doubt or ("" if set(letters) <= _PLAIN_SHELL_FLAGS else f"-{letters} changes how the shell starts")


def _unwrap_eval(name: str, words: Sequence[Word]) -> InnerCommand | None:
    first = next((place for place, word in enumerate(words) if word.text not in ("--", "eval")), len(words))
    words = words[first:]
    if not words:
        return None
    literal = all(word.literal for word in words)
    script = Word(" ".join(word.text for word in words), TEXT if literal else WORDS)
    return InnerCommand(name, script=script, doubt="it evaluates a string as code")


def _unwrap_trap(name: str, words: Sequence[Word]) -> InnerCommand | None:
    words = [word for word in words if word.text not in ("--", "-p", "-l")]
    if not words or words[0].text == "-":
        return None
    return InnerCommand(name, script=words[0], doubt="it registers a command to run later")


_SCRIPT_OPTIONS = {
    "nix-shell": re.compile(r"--(?:run|command)(?=\Z|=)"),
    "nodemon": re.compile(r"-x|--exec(?=\Z|=)"),
    **dict.fromkeys(("npx", "npm"), re.compile(r"-c|--call(?=\Z|=)")),
}
_SCRIPT_OPTION = re.compile(r"-[a-bd-zA-Z]*c|--(?:session-)?command(?=\Z|=)")


def _unwrap_dash_c(name: str, words: Sequence[Word]) -> InnerCommand | None:
    """Unwrap programs that take a script after -c or another option: su, script, flock, nix-shell."""
    # behind the file of flock, options are those of its command
    own = skip_options(words, FLOCK)[0] + 2 if name == "flock" else len(words)
    for place, word in enumerate(words[:own]):
        if option := _SCRIPT_OPTIONS.get(name, _SCRIPT_OPTION).match(word.text):
            attached = word.text[option.end() :].removeprefix("=")
            script = words[place + 1] if not attached and place + 1 < len(words) else Word(attached, word.form)
            return InnerCommand(name, script=script, doubt=f"{name} runs a string as a script")
    inner = tuple(words[skip_options(words, FLOCK)[0] + 1 :]) if name == "flock" else ()
    return InnerCommand(name, inner, doubt="it waits for a lock") if inner else None


def _unwrap_runuser(name: str, words: Sequence[Word]) -> InnerCommand | None:
    if any(re.match(r"-\w*u|--u", word.text) for word in words):
        return _unwrap_plain(name, WRAPPERS[name], words)
    return _unwrap_dash_c(name, words)


def _unwrap_nix(name: str, words: Sequence[Word]) -> InnerCommand | None:
    inner = tuple(dropwhile(lambda word: word.text not in ("-c", "--command"), words))[1:]
    return InnerCommand(name, inner, doubt="it may prepare an environment first") if inner else None


def _unwrap_watch(name: str, words: Sequence[Word]) -> InnerCommand | None:
    place, _ = skip_options(words, WATCH)
    text = " ".join(word.text for word in words[place:])
    return InnerCommand(name, script=Word(text), doubt="it runs a command repeatedly") if text else None


def _unwrap_parallel(name: str, words: Sequence[Word]) -> InnerCommand | None:
    place, _ = skip_options(words, PARALLEL)
    command: list[str] = []
    inputs: list[str] = []
    target = command
    for word in words[place:]:
        if re.fullmatch(r":::\+?|::::\+?", word.text):
            target = inputs
        else:
            target.append(word.text)
    line = " ".join(command)
    lines = [line.replace("{}", text) if "{}" in line else f"{line} {text}" for text in inputs] or [line or "true"]
    return InnerCommand(name, script=Word("\n".join(lines)), doubt="it runs commands built from its input")


def _unwrap_runner(name: str, words: Sequence[Word]) -> InnerCommand | None:
    verb = len(words) - len(_after_options(words, skip=False))
    tool = name == "uv" and [word.text for word in words[verb : verb + 1]] == ["tool"]
    verb += tool
    if verb >= len(words) or words[verb].text not in RUN_VERBS[name]:
        return None
    rest, whole = words[verb + 1 :], f"{name} tool run" if tool else f"{name} {words[verb].text}"
    if name == "npm" and rest and (script := _unwrap_dash_c(name, rest[:2])):
        return script._replace(name=whole)
    marks = [place for place, word in enumerate(rest) if word.text == "--"]
    inner = rest[marks[0] + 1 :] if marks else _after_options(rest, skip=name in _NAMES_PLACE)
    doubt = f"{whole} may prepare an environment first"
    return InnerCommand(whole, tuple(inner), doubt=doubt) if inner else None


_NAMES_PLACE = frozenset(("docker", "podman", "kubectl", "lxc", "incus", "rustup"))
"""Before the command they name a container, or a toolchain."""


def _after_options(words: Sequence[Word], *, skip: bool) -> Sequence[Word]:
    place = 0
    while place < len(words) and words[place].text[:1] == "-":
        place += 2 if words[place].text in RUN_VALUES else 1
    return words[place + skip :]


def _unwrap_setarch(name: str, words: Sequence[Word]) -> InnerCommand | None:
    """Unwrap `setarch x86_64 program` and `setarch -R program`, where no architecture precedes the options."""
    return _unwrap_plain(name, WRAPPERS["linux64" if words and words[0].text[:1] == "-" else name], words)


def _unwrap_ip(name: str, words: Sequence[Word]) -> InnerCommand | None:
    """Unwrap `ip netns exec name program`, also shortened; with -all there is no name."""
    for place, (before, word) in enumerate(pairwise(words)):
        if before.text[:1] in ("n", "v") and word.text and "exec".startswith(word.text):
            inner = tuple(words[place + 3 - any(option.text.startswith("-a") for option in words[:place]) :])
            return InnerCommand(f"{name} exec", inner, doubt="it runs in another network") if inner else None
    return None


_SPECIAL: dict[str, Callable[[str, Sequence[Word]], InnerCommand | None]] = {
    "env": _unwrap_env,
    "ip": _unwrap_ip,
    "setarch": _unwrap_setarch,
    "command": _unwrap_command,
    "xargs": _unwrap_xargs,
    "gxargs": _unwrap_xargs,
    "eval": _unwrap_eval,
    "trap": _unwrap_trap,
    "su": _unwrap_dash_c,
    "runuser": _unwrap_runuser,
    "nix": _unwrap_nix,
    "nix-shell": _unwrap_dash_c,
    "nodemon": _unwrap_dash_c,
    "script": _unwrap_dash_c,
    "flock": _unwrap_dash_c,
    "watch": _unwrap_watch,
    "parallel": _unwrap_parallel,
}
_ALL = frozenset((*_SPECIAL, *WRAPPERS, *SHELLS, *RUN_VERBS))
