"""Parses the options of a program by its grammar, as getopt does: clusters, attached values, abbreviations, `--`."""

from collections.abc import Sequence

from callwright.shell.words import Word


class Grammar:
    """The options of a program, as its manual lists them.

    Args:
        flags: Options without a value.
        values: Options with a value, attached or in the next word.
        optional: Options whose value, if any, is attached.
    """

    def __init__(self, flags: frozenset[str], values: frozenset[str], optional: frozenset[str] = frozenset()) -> None:
        self.flags, self.values, self.optional = flags, values, optional
        self.names = flags | values | optional


def grammar(flags: str = "", values: str = "", optional: str = "") -> Grammar:
    """Return the grammar of a program; options are separated by spaces."""
    return Grammar(frozenset(flags.split()), frozenset(values.split()), frozenset(optional.split()))


class ParsedCall:
    """The arguments of a call, separated by its program's grammar."""

    def __init__(self) -> None:
        self.operands: list[Word] = []
        self.options: list[tuple[str, Word]] = []
        """Each option by its full name, with its value or an empty word."""
        self.problem = ""
        """Why the call cannot be separated with certainty; empty when it can."""

    def has(self, *names: str) -> bool:
        """Whether one of the options is given."""
        return any(name in names for name, _ in self.options)

    def value(self, *names: str) -> Word | None:
        """Return the value of the last of the options that is given."""
        return next((value for name, value in reversed(self.options) if name in names), None)

    def list_values(self, *names: str) -> list[Word]:
        """Return all values of the options."""
        return [value for name, value in self.options if name in names]


def parse_options(arguments: Sequence[Word], rules: Grammar) -> ParsedCall:
    """Separate options from operands; an unknown option or a word that may become one is a problem."""
    call = ParsedCall()
    place = 0
    while place < len(arguments):
        word = arguments[place]
        place += 1
        text = word.text
        if word.may_be_option:
            call.problem = call.problem or f"{text} may become an option"
            call.operands.append(word)
        elif text == "--":
            rest = arguments[place:]
            if any(other.may_be_option for other in rest):
                call.problem = call.problem or "the number of operands is not known"
            call.operands.extend(rest)
            break
        elif text[:1] != "-" or text == "-":
            call.operands.append(word)
        elif text.startswith("--"):
            place = _read_long(word, arguments, place, rules, call)
        else:
            place = _read_cluster(word, arguments, place, rules, call)
    return call


def _read_long(word: Word, arguments: Sequence[Word], place: int, rules: Grammar, call: ParsedCall) -> int:
    given, equals, attached = word.text.partition("=")
    names = [given] if given in rules.names else [name for name in rules.names if name.startswith(given)]
    if len(names) != 1 or (equals and names[0] in rules.flags):
        call.problem = call.problem or f"{word.text} is an unknown option"
        return place
    name = names[0]
    if name in rules.values and not equals:
        if place >= len(arguments):
            call.problem = call.problem or f"{name} has no value"
            return place
        call.options.append((name, arguments[place]))
        return place + 1
    call.options.append((name, Word(attached, word.form)))
    return place


def _read_cluster(word: Word, arguments: Sequence[Word], place: int, rules: Grammar, call: ParsedCall) -> int:
    text = word.text
    for spot, letter in enumerate(text[1:], 1):
        name = f"-{letter}"
        if name in rules.values:
            if spot + 1 < len(text):
                call.options.append((name, Word(text[spot + 1 :], word.form)))
                return place
            if place >= len(arguments):
                call.problem = call.problem or f"{name} has no value"
                return place
            call.options.append((name, arguments[place]))
            return place + 1
        if name in rules.optional:
            call.options.append((name, Word(text[spot + 1 :], word.form)))
            return place
        if name not in rules.flags:
            call.problem = call.problem or f"{text} is an unknown option"
            return place
        call.options.append((name, Word("")))
    return place
