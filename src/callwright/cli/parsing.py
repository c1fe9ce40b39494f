"""The argument parser of every command: argparse with error messages of our own.

The messages are built from the actions and values themselves. argparse's own sentences are never parsed: they differ
between Python versions.
"""

import argparse
import re
import shutil
import sys
import textwrap
from collections.abc import Iterable, Sequence
from typing import Any, NoReturn

_OPTIONAL_NARGS = (argparse.OPTIONAL, argparse.ZERO_OR_MORE, argparse.REMAINDER, argparse.SUPPRESS)
_WIDEST_COLUMN = 40
_NUMBERS: dict[object, str] = {int: "a whole number", float: "a number"}
_OTHER_AGENTS_OPTIONS = {
    "--yolo": "--permission-mode bypass",
    "--full-auto": "--permission-mode auto",
    "--approval-mode": "--permission-mode",
    "--ask-for-approval": "--permission-mode",
    "--debug": "--log FILE",
    "--format": "--output-format",
    "--include-directories": "--add-dir",
    "-m": "--model",
    "-o": "--output-format",
    "-y": "--permission-mode bypass",
}
"""Options of other agents, and ours for the same."""
REFUSED_OPTIONS = {
    "--betas": "betas of one vendor's API cannot be switched on",
    "--task-budget": "use --max-turns or --max-budget-usd",
    "--max-thinking-tokens": "use --effort",
    "--thinking": "use --effort; none switches thinking off",
    "--thinking-display": "thinking is part of stream-json",
    "--resume-session-at": "use callwright sessions undo, then --resume",
    "--resume-drops-turn": "use callwright sessions undo, then --resume",
    "--session-mirror": "sessions are stored by callwright; see callwright sessions export",
    "--replay-user-messages": "user messages are not repeated in the stream",
    "--agent": "the model starts sub-agents by itself; --system-prompt-file takes the instructions of one",
    "--append-system-prompt-file": 'use --append-system-prompt "$(cat FILE)"',
    "--cd": "change to the folder first, or add it with --add-dir",
    "--image": "name the file in the prompt, as @FILE",
    "--sandbox": """use --settings '{"sandbox": …}' with off, prefer or require""",
    "--worktree": "use git worktree add, and start there",
    "--ide": "editors connect with callwright acp",
    "--mcp-debug": "use callwright mcp test NAME",
}
"""Options of other agents that have no counterpart, with what to use instead."""


def fill_help(text: str, width: int = 0) -> str:
    """Wrap a help text at words to the width of the terminal.

    Paragraphs are filled anew. Indented lines, such as examples, stay lines; what does not fit continues deeper.
    """
    width = width or max(shutil.get_terminal_size().columns - 1, 30)
    rows: list[str] = []
    paragraph: list[str] = []
    for line in [*text.splitlines(), ""]:
        if line.strip() and not line.startswith(" "):
            paragraph.append(line)
            continue
        if any(len(each) > width for each in paragraph):
            rows += _wrap(" ".join(paragraph), width)
        else:
            rows += paragraph
        paragraph = []
        rows += _wrap(line, width, deeper=_text_column(line)) if len(line) > width else [line]
    return "\n".join(rows[:-1])


def _text_column(line: str) -> str:
    """Return the indentation of what continues a line: below the second column if it has two."""
    found = re.match(r" *\S+(?: \S+)*?  +", line)
    indent = len(line) - len(line.lstrip())
    return " " * (found.end() if found and found.end() <= _WIDEST_COLUMN else indent + 2)


def _wrap(text: str, width: int, deeper: str = "") -> list[str]:
    if len(deeper) > width // 2:
        deeper = "    "
    return textwrap.wrap(
        text,
        width,
        subsequent_indent=deeper,
        break_long_words=False,
        break_on_hyphens=False,
        replace_whitespace=False,
    )


class _HelpFormatter(argparse.RawDescriptionHelpFormatter):
    """Wraps every part of the help at words."""

    def __init__(self, prog: str) -> None:
        width = max(shutil.get_terminal_size().columns - 2, 30)
        super().__init__(prog, max_help_position=min(32, width // 2), width=width)

    def _fill_text(self, text: str, width: int, indent: str) -> str:
        return fill_help(text, width)

    def _split_lines(self, text: str, width: int) -> list[str]:
        return _wrap(" ".join(text.split()), width)


class Parser(argparse.ArgumentParser):
    """An argument parser that reports every mistake in one line, with the nearest valid value and the help command.

    Args:
        prog: The command as the user types it, such as `callwright sessions`.
        **settings: Further arguments of `argparse.ArgumentParser`.
    """

    def __init__(self, prog: str, **settings: object) -> None:
        settings = {"formatter_class": _HelpFormatter, "allow_abbrev": False, **settings}
        super().__init__(prog, **settings)  # type: ignore[arg-type] - passed on unchanged

    def parse_args(self, args: Iterable[str] | None = None, namespace: Any = None) -> Any:  # pyright: ignore[reportIncompatibleMethodOverride] - one signature for all overloads
        """Parse a command line; exit with code 2 if it is not valid."""
        options, extras = self.parse_known_args(args, namespace)
        if extras:
            self.reject(extras)
        return options

    def format_help(self) -> str:
        """Return the help; rows of options that are wider than the terminal are wrapped too."""
        width = max(shutil.get_terminal_size().columns - 1, 30)
        lines = super().format_help().splitlines()
        rows = [row for line in lines for row in (_wrap(line, width, "      ") if len(line) > width else [line])]
        return "\n".join(rows) + "\n"

    def _print_message(self, message: str, file: Any = None) -> None:
        # argparse ignores errors here, and a full disk would pass for success
        if message:
            (file or sys.stderr).write(message)

    def error(self, message: str) -> NoReturn:
        """Print a message and the help command, and exit with code 2."""
        page = "callwright -p --help" if self.prog == "callwright" else f"{self.prog} --help"
        self.exit(2, f"{self.prog}: {message} (see {page})\n")

    def reject(self, extras: Sequence[str]) -> NoReturn:
        """Exit with code 2 because of arguments that no option or position takes."""
        option = next((word for word in extras if word.startswith("-")), "")
        if not option:
            plural = "s" if len(extras) > 1 else ""
            self.error(f"unexpected argument{plural}: {' '.join(extras)} (did you forget quotes?)")
        known = [name for action in self._actions for name in action.option_strings]
        name = option.partition("=")[0]
        if name in REFUSED_OPTIONS:
            self.error(f"{name} is not supported: {REFUSED_OPTIONS[name]}")
        ours = _OTHER_AGENTS_OPTIONS.get(name, "")
        hint = f"did you mean {ours}?" if ours.split(" ")[0] in known else _suggest(name, known)
        self.error(f"unknown option {option}" + (f"; {hint}" if hint else ""))

    # argparse calls the methods below for subcommands too, in all versions from 3.11 on: errors are caught here, where
    # the action is still at hand and `self` is the parser of the subcommand

    def _parse_known_args(self, arg_strings: list[str], namespace: Any, *more: Any) -> Any:
        # no required options exist, only positions, so help that is printed meanwhile looks the same
        required = [action for action in self._actions if action.required]
        for action in required:
            action.required = False
        try:
            result = super()._parse_known_args(arg_strings, namespace, *more)
        except argparse.ArgumentError as error:
            self.error(self._describe(error))
        finally:
            for action in required:
                action.required = True
        # argparse counts a position that may stay empty as required, at least up to 3.11
        needed = [action for action in required if action.nargs not in _OPTIONAL_NARGS]
        missing = [_name(action) for action in needed if getattr(namespace, action.dest, None) is None]
        if missing:
            choices = [str(choice) for choice in needed[-1].choices or ()] if len(needed) == len(missing) == 1 else []
            self.error(f"missing {' and '.join(missing)}" + (f": {', '.join(choices)}" if choices else ""))
        return result

    def _describe(self, error: argparse.ArgumentError) -> str:
        name = (error.argument_name or "").rpartition("/")[2]  # of --allowedTools/--allowed-tools the last
        names = ((action, (*action.option_strings, action.metavar, action.dest)) for action in self._actions)
        action = next((action for action, known in names if name in known), None)
        if action is None:
            return error.message
        # an option without values can only be wrong by having one
        return f"{_name(action)}: {'takes no value' if action.nargs == 0 else error.message}"

    def _match_argument(self, action: argparse.Action, arg_strings_pattern: str) -> int:
        try:
            return super()._match_argument(action, arg_strings_pattern)
        except argparse.ArgumentError:
            raise argparse.ArgumentError(action, "expected a value") from None

    def _get_value(self, action: argparse.Action, arg_string: str) -> Any:
        if action.type in _NUMBERS:
            try:
                return action.type(arg_string)  # type: ignore[operator] - int or float, see above
            except ValueError:
                raise argparse.ArgumentError(action, f"expected {_NUMBERS[action.type]}, got {arg_string!r}") from None
        return super()._get_value(action, arg_string)

    def _check_value(self, action: argparse.Action, value: Any) -> None:
        if action.choices is None or value in action.choices:
            return
        known = [str(choice) for choice in action.choices]
        hint = _suggest(str(value), known) or f"choose from {', '.join(known)}"
        raise argparse.ArgumentError(action, f"invalid value {value!r}; {hint}")


def _name(action: argparse.Action) -> str:
    """Return the option, or the position's name in capitals, as the help shows it."""
    return action.option_strings[-1] if action.option_strings else str(action.metavar or action.dest).upper()


def _suggest(word: str, known: Sequence[str]) -> str:
    from difflib import get_close_matches

    # without the dashes, which every option has
    near = get_close_matches(word.lstrip("-"), [name.lstrip("-") for name in known], n=1)
    return next((f"did you mean {name}?" for name in known if name.lstrip("-") in near), "")


_MOST_DIGITS = 100
"""Python refuses to read a number of thousands of digits."""


def positive_int(text: str) -> int:
    """Parse a whole number of at least 1, for `type=` of an argument."""
    if not text.isdecimal() or len(text) > _MOST_DIGITS or int(text) < 1:
        shown = text if len(text) <= _MOST_DIGITS else f"{text[:_MOST_DIGITS]}…"
        raise argparse.ArgumentTypeError(f"expected a number of at least 1, got {shown!r}")
    return int(text)


def positive_amount(text: str) -> float:
    """Parse an amount of money above 0, for `type=` of an argument."""
    return _parse_positive(text, "an amount above 0")


def positive_seconds(text: str) -> float:
    """Parse a time above 0, for `type=` of an argument."""
    return _parse_positive(text, "a number of seconds above 0")


def _parse_positive(text: str, expected: str) -> float:
    try:
        value = float(text)
    except ValueError:
        value = 0.0
    if not 0 < value < float("inf"):
        raise argparse.ArgumentTypeError(f"expected {expected}, got {text!r}")
    return value


_MOST_PORT = 65_535


def port_number(text: str) -> int:
    """Parse the number of a port, 0 for any that is free, for `type=` of an argument."""
    if not text.isdecimal() or len(text) > _MOST_DIGITS or int(text) > _MOST_PORT:
        shown = text if len(text) <= _MOST_DIGITS else f"{text[:_MOST_DIGITS]}…"
        raise argparse.ArgumentTypeError(f"expected a port from 0 to {_MOST_PORT}, got {shown!r}")
    return int(text)
