"""Matches command patterns with commands: narrowly for allow rules, through wrappers and spellings for deny rules."""

import os
import shlex
from collections.abc import Iterator
from functools import lru_cache

from callwright.core.access import DeletePath
from callwright.policy.rules.command_words import names_words
from callwright.policy.rules.patterns import INNER_SPACE, CommandPattern, join_words, mark_spaces
from callwright.policy.rules.too_broad import (
    DISPATCHERS,
    names_scripts,
    program_of,
    runs_other_program,
    script_words,
)
from callwright.policy.shell_line import PartOfLine
from callwright.policy.tool_names import words
from callwright.shell.plan import SimpleCommand, Verdict
from callwright.shell.words import is_harmless_variable, normalize_path
from callwright.shell.wrapper_tables import has_known_options

# these change how a program runs, not which one: a rule about the program applies through them
_TRANSPARENT = words("timeout time nice nohup stdbuf command builtin noglob")
# these pick a program from their arguments, so no wildcard may stand for what they run
_LAUNCHERS = words(
    "env sudo doas su watch setsid ionice flock find fd xargs parallel chroot unshare nsenter systemd-run strace ltrace"
    " gdb script expect exec eval bash sh zsh dash ksh fish busybox toybox ssh chrt taskset numactl runuser trap"
    " source . setpriv choom uclampset setarch linux32 linux64 firejail bwrap capsh cgexec faketime dbus-run-session"
    " ssh-agent start-stop-daemon entr hyperfine perf valgrind unbuffer rlwrap runcon aa-exec sg newgrp"
    # these start a shell on a key stroke or by an option, whatever file they are given
    " vi vim nvim view vimdiff ex ed emacs nano pico joe most screen tmux mutt mail ftp sftp lynx w3m elinks"
)
_READING = frozenset({Verdict.READ_ONLY, Verdict.READS_NETWORK})
_SHELLS = words("bash sh zsh dash ksh mksh ash fish rbash csh tcsh")
_EXPANDS = frozenset("$`*?[{\\'\"()<>~!")


def covers(pattern: CommandPattern, part: PartOfLine) -> bool:
    """Whether an allow rule's pattern matches a command and adds nothing its author could not foresee."""
    command = part.command
    if pattern.anything:
        return not part.plan.problem
    if command is None or not part.plan.proven or not command.literal:
        return False
    if not all(is_harmless_variable(name, value) for name, value in command.assignments):
        return False  # a variable may turn a program into another one
    if not _runs_where_it_stands(command, part.access.cwd):
        return False
    if names_scripts(pattern) and command.cwd != normalize_path(os.path.join("/", part.access.cwd)):  # noqa: PTH118 - as below
        return False  # the scripts of another folder are other scripts
    return any(_covers_layer(pattern, layer, inner, command) for layer, inner in _layers_to_allow(command))


def _runs_where_it_stands(command: SimpleCommand, start: str) -> bool:
    """Whether a rule's author meant this folder: `cd /tmp/x && make` runs another Makefile, `cd x && ./y` another y."""
    start = normalize_path(os.path.join("/", start))  # noqa: PTH118 - as the analysis does: the disk is not asked
    if command.cwd == start:
        return True
    if command.cwd is None or (command.words and "/" in command.words[0] and not command.words[0].startswith("/")):
        return False
    return command.cwd.startswith(start.rstrip("/") + "/") and "/.." not in command.cwd


def outermost(command: SimpleCommand) -> tuple[str, ...]:
    """Return the words as they stand in the line, before any wrapper is taken off."""
    return command.wrapped[0] if command.wrappers and command.wrapped else command.words


def _layers_to_allow(command: SimpleCommand) -> Iterator[tuple[tuple[str, ...], tuple[str, ...]]]:
    """Yield the words from outside in, each with what it launches, until a wrapper is not transparent."""
    layers = (*command.wrapped[: len(command.wrappers)], command.words)
    for place, layer in enumerate(layers):
        inner = layers[place + 1] if place + 1 < len(layers) else ()
        yield layer, inner
        if inner and not _is_transparent(command.wrappers[place], layer, inner):
            return


def _is_transparent(wrapper: str, layer: tuple[str, ...], inner: tuple[str, ...]) -> bool:
    if wrapper == "env":
        return _only_sets_harmless_variables(layer, inner)
    return wrapper in _TRANSPARENT and has_known_options(layer)


def _only_sets_harmless_variables(layer: tuple[str, ...], inner: tuple[str, ...]) -> bool:
    """Whether `env A=1 program` runs the program as the rule's author meant it: no option, no variable it may heed."""
    size = len(layer) - len(inner)
    if layer[0] != "env" or layer[size:] != inner:
        return False
    settings = [word.partition("=") for word in layer[1:size]]
    return bool(settings) and all(found and is_harmless_variable(name, value) for name, found, value in settings)


def _covers_layer(
    pattern: CommandPattern, layer: tuple[str, ...], inner: tuple[str, ...], command: SimpleCommand
) -> bool:
    if not layer or not pattern.matches(join_words(layer)):
        return False
    if pattern.exact:
        return True
    if names_scripts(pattern):
        return not inner and script_words(layer) == pattern.script_form
    if not pattern.bounded and any(".." in word.split("/") for word in layer):
        return False  # `scripts/*` means that folder, and `..` leads out of it
    if not pattern.stays_in_word(layer):
        return False  # `rm -rf build/*` means one operand, and `rm -rf build/ src` has two
    if inner or layer[0].rpartition("/")[2] in _LAUNCHERS:
        return _names_launched(pattern, layer, command.words if inner else (), command.cwd)
    return _is_foreseeable(pattern.literal_prefix, command)


def _names_launched(
    pattern: CommandPattern, layer: tuple[str, ...], launched: tuple[str, ...], folder: str | None
) -> bool:
    """`npx eslint *` names what npx runs; `npx *` and `npx timeout *` would let the wildcard choose the program."""
    if not launched or layer[-len(launched) :] != launched:
        return False
    if not _LAUNCHERS.isdisjoint(word.rpartition("/")[2] for word in (layer[0], launched[0])):
        return False
    named = join_words(layer[: len(layer) - len(launched) + 1])
    if not f"{pattern.literal_prefix} ".startswith(f"{named} "):
        return False
    return not runs_other_program(launched, pattern.literal_prefix, folder)


def _is_foreseeable(spelled: str, command: SimpleCommand) -> bool:
    """Whether a rule's wildcard adds only arguments.

    It must not add destruction, another program, or something unknown to a command that otherwise only reads.
    """
    if runs_other_program(command.words, spelled, command.cwd):
        return False
    match _verdict(shlex.join(command.words)) if command.wrappers else command.verdict:
        case Verdict.DESTRUCTIVE:
            return _spells_destruction(spelled)
        case Verdict.UNKNOWN:
            return not any(_verdict(plain) in _READING for plain in _plain_forms(spelled, command.words))
        case _:
            return True


def _plain_forms(spelled: str, words_given: tuple[str, ...]) -> Iterator[str]:
    """Yield the command without options: as the rule spells it, and as its subcommand alone."""
    yield f"{spelled} x"
    subcommand = next((word for word in words_given[1:] if not word.startswith("-")), "")
    if program_of(words_given[0]) in DISPATCHERS and subcommand:
        yield shlex.join((words_given[0], subcommand, "x"))


@lru_cache(maxsize=1024)
def _verdict(line: str) -> Verdict:
    from callwright.shell import analyze  # the parser is loaded when a line is judged, not before

    return analyze(line, "/nowhere").verdict


@lru_cache(maxsize=1024)
def _spells_destruction(spelled: str) -> bool:
    """Whether the words before a rule's wildcard are destructive by themselves: `rm`, `git reset --hard`."""
    from callwright.shell import analyze  # as above

    plans = (analyze(spelled, "/nowhere"), analyze(f"{spelled} x", "/nowhere"))
    return any(
        plan.verdict is Verdict.DESTRUCTIVE or any(isinstance(access, DeletePath) for access in plan.accesses)
        for plan in plans
    )


def _runs_its_input(program: str, arguments: tuple[str, ...]) -> bool:
    if program == "alias":
        return any("=" in argument for argument in arguments)
    if program in _SHELLS | {"source", "."} and any(word.startswith(("/dev/fd/", "/dev/stdin")) for word in arguments):
        return True
    operands = [argument for argument in arguments if not argument.startswith(("-", "+"))]
    return program in _SHELLS and (not operands or "-s" in arguments)


def names_command(pattern: CommandPattern, command: SimpleCommand) -> bool:
    """Whether a deny or ask rule's pattern matches any layer of a command in any spelling."""
    loose = pattern.loosen()
    if any(loose.matches(text) for text in _texts_to_deny(command)):
        return True
    return any(names_words(loose, spelling) for spelling in _spellings_to_deny(command))


@lru_cache(maxsize=4096)
def _texts_to_deny(command: SimpleCommand) -> tuple[str, ...]:
    texts = [" ".join(spelling) for spelling in _spellings_to_deny(command)]
    return tuple(dict.fromkeys(each for text in texts for each in (text, text.replace(INNER_SPACE, " "))))


@lru_cache(maxsize=4096)
def _spellings_to_deny(command: SimpleCommand) -> tuple[tuple[str, ...], ...]:
    return tuple(dict.fromkeys(spelling for layer in _layers_to_deny(command) for spelling in _spellings(layer)))


def _layers_to_deny(command: SimpleCommand) -> Iterator[tuple[str, ...]]:
    settings = tuple(f"{name}={'' if value is None else value}" for name, value in command.assignments)
    for layer in (*command.wrapped, command.words):
        yield layer
        if settings:
            yield (*settings, *layer)
        if layer and layer[0].rpartition("/")[2] in ("busybox", "toybox"):
            yield layer[1:]


def _spellings(layer: tuple[str, ...]) -> Iterator[tuple[str, ...]]:
    """Yield the words in the form that loose patterns are compared with, with and without the program's folder."""
    if not layer:
        return
    given = tuple(mark_spaces(word).casefold() for word in layer)
    yield given
    name = given[0].rpartition("/")[2].removesuffix(".exe")
    if name != given[0]:
        yield (name, *given[1:])


def may_name(pattern: CommandPattern, command: SimpleCommand) -> bool:
    """Whether a command that is not literal, or runs its input, could be the one a rule names."""
    if not command.words:
        return False
    program = command.program.casefold()
    if _runs_its_input(program, command.words[1:]):
        return True
    if command.literal:
        return False
    if not _EXPANDS.isdisjoint(program):
        return True
    wanted = pattern.literal_prefix.casefold().partition(" ")[0]
    return not wanted or program.startswith(wanted)
