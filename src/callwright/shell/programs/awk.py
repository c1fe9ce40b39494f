"""Judges awk calls: a program is read-only if it runs nothing and touches only its input and output."""

import re
from collections.abc import Iterable, Iterator, Sequence

from callwright.core.access import Access, ReadPath, WritePath
from callwright.shell.findings import Judgement, unknown
from callwright.shell.plan import Verdict
from callwright.shell.programs.outputs import list_inputs
from callwright.shell.words import Folders, Word, resolve_as
from callwright.shell.wrappers import InnerCommand

_TOKEN = re.compile(r"\s+|[A-Za-z_]\w*|\d+(?:\.\d*)?|\.\d+|\|\||&&|>=|>>|==|!=|<=|\+\+|--|\|&|.", re.DOTALL)
_STRING = re.compile(r'"(?:[^"\\\n]|\\.)*"', re.DOTALL)
_REGEX = re.compile(r"/(?:[^/\\\n\[]|\\.|\[\^?\]?(?:[^\]\\\n/]|\\.)*\])*/", re.DOTALL)
# a slash in brackets ends the pattern in some programs; what else may stand there is harmless in both readings
_SLASHED = re.compile(r"/(?:[\w .^$*+?:=,;-]|\\[\w./]|\[\^?[\w/ .:-]+\])+/")
_BANNED = frozenset(
    ("system", "getline", "SYMTAB", "FUNCTAB", "ARGV", "ARGC", "load", "include", "ENVIRON", "PROCINFO")
)
_KEYWORDS = frozenset("print printf return in if else while for do case delete exit next".split())
# what may end a value or be followed by a pattern: a function may stand without its parentheses, as in `length /x/`
_AMBIGUOUS = frozenset(
    ") ++ -- length int sqrt exp log sin cos atan2 rand srand substr index split sub gsub match sprintf tolower toupper"
    " close fflush".split()
)
_MAX_AMBIGUOUS = 3
_CONTINUES = frozenset((",", "{", "&&", "||", "?", ":", "do", "else"))
"""Tokens after which a new line does not end the statement."""
_ASSIGNMENT = re.compile(r"[A-Za-z_]\w*=")
_SUSPECT = re.compile(r"system|getline|print|[|>]\s*\"")
_QUIET_TARGETS = frozenset(('"/dev/null"', '"/dev/stderr"', '"/dev/stdout"'))
_ENDS = frozenset((";", "}", "\n"))
_HELP = frozenset(("--version", "--help", "-V"))


def awk(name: str, arguments: Sequence[Word], folders: Folders) -> Judgement:
    """Judge an awk call by its options and its program."""
    program, files, objection = _split(arguments)
    touched = _list_reads(files, folders)
    if program is None and not objection and arguments and arguments[0].text in (*_HELP, "-W"):
        return Judgement(Verdict.READ_ONLY, f"{name} shows its version or help")
    objection = objection or ("it has no program" if program is None else program_problem(program))
    if objection:
        touched = (*touched, *_list_program_files(arguments, program or "", folders))
        return unknown(objection, touched, tuple(_list_run(name, program or "")))
    return Judgement(Verdict.READ_ONLY, f"{name} only prints", touched)


_RUNS = re.compile(r"""system\s*\(\s*"((?:[^"\\]|\\.)*)"|\|&?\s*"((?:[^"\\]|\\.)*)"|"((?:[^"\\]|\\.)*)"\s*\|&?""")


def _list_run(name: str, program: str) -> Iterator[InnerCommand]:
    """Yield the shell commands that a program names, so that deny rules see them."""
    for match in _RUNS.finditer(program):
        text = (match[1] or match[2] or match[3] or "").replace('\\"', '"')
        yield InnerCommand(f"{name} system", script=Word(text), doubt="awk runs it as a command")


def _list_reads(files: Sequence[Word], folders: Folders) -> tuple[Access, ...]:
    # only a name before the "=" makes an assignment: ./a=b is a file
    named = (word for word in files if not _ASSIGNMENT.match(word.text) and word.text != "-")
    return tuple(resolve_as(ReadPath, named, folders))


_OPENS = re.compile(r'(>>?|<)\s*"((?:[^"\\]|\\.)+)"')


def _list_program_files(arguments: Sequence[Word], program: str, folders: Folders) -> Iterator[Access]:
    """Yield the files that a program names, and those that hold a program, so that rules against them match."""
    yield from list_inputs(arguments, ("-f", "--file", "--exec", "--include", "--load"), folders, joined=False)
    for match in _OPENS.finditer(program):
        if f'"{match[2]}"' not in _QUIET_TARGETS:
            kind = ReadPath if match[1] == "<" else WritePath
            yield from resolve_as(kind, [match[2]], folders)


def _split(arguments: Sequence[Word]) -> tuple[str | None, list[Word], str]:
    place, program, objection = 0, None, ""
    while place < len(arguments) and arguments[place].text[:1] == "-" and arguments[place].text != "-":
        word, place = arguments[place], place + 1
        text = word.text
        if text == "--":
            break
        if text in ("-F", "-v", "--field-separator", "--assign"):
            objection = objection or _value_problem(text, arguments[place : place + 1])
            place += 1
        elif (text.startswith(("-F", "-v", "--field-separator=", "--assign=")) and word.literal) or text in (
            "-S",
            "--sandbox",
            "--posix",
            "--re-interval",
            "-n",
            "--non-decimal-data",
        ):
            continue
        elif text in _HELP or (text == "-W" and [word.text for word in arguments[place:]] == ["version"]):
            return None, [], "" if len(arguments) == 1 or text == "-W" else "too many words"
        else:
            return None, [], f"{text} may load or write a file"
    rest = list(arguments[place:])
    if rest:
        first = rest.pop(0)
        program = first.text
        objection = objection or ("" if first.literal else "the awk program is not literal")
    if any(word.text.startswith(("/inet", "-")) for word in rest):
        objection = objection or "an operand of awk is not a plain file"
    return program, rest, objection


def _value_problem(flag: str, words: Sequence[Word]) -> str:
    return "" if words and words[0].literal else f"the value of {flag} is not literal"


def program_problem(program: str) -> str:
    """Return what in an awk program reaches outside its input and output, or an empty string.

    A slash after a closing parenthesis, an increment or a pattern may divide or begin a pattern, which only a full
    parser could tell. The program must be harmless in every reading.
    """
    readings: list[tuple[bool, ...]] = [()]
    while readings:
        choices = readings.pop()
        if len(choices) > _MAX_AMBIGUOUS:
            return "it has too many slashes that may begin a pattern"
        tokens = _Tokens(program, choices)
        if problem := _tokens_problem(tokens):
            return problem
        if tokens.open_choices > len(choices):
            readings.extend([(*choices, True), (*choices, False)])
    return ""


def _tokens_problem(tokens: Iterable[str]) -> str:
    printing, depth, target, previous = False, 0, False, ""
    named = False  # whether a target stands before, which another word would make longer: > "/dev/null" "x"
    for token in tokens:
        if (target and token not in _QUIET_TARGETS) or (named and token not in _ENDS):
            return "it writes to a file"
        target, named = False, target
        if token in _BANNED or token in ("|", "|&", "@", "`", '"', "\\"):
            return f"{token} may run or read something"
        if token in ("print", "printf"):
            printing, depth = True, 0
        elif token in (";", "}") or (token == "\n" and depth <= 0 and previous not in _CONTINUES):
            printing = False
        elif token in "([":
            depth += 1
        elif token in ")]":
            depth -= 1
        elif printing and token in (">", ">>") and depth <= 0:
            target = True
        previous = previous if token == "\n" else token
    return "it writes to a file" if target else ""


class _Tokens:
    """The tokens of a program; `choices` says which of the ambiguous slashes begin a pattern, the rest divide."""

    def __init__(self, program: str, choices: tuple[bool, ...]) -> None:
        self.program = program
        self.choices = choices
        self.open_choices = 0

    def __iter__(self) -> Iterator[str]:
        place, previous, program = 0, "", self.program
        while place < len(program):
            match = self._special(place, previous) or _TOKEN.match(program, place)
            if match is None:
                return
            place, token = match.end(), match[0]
            if token.isspace():
                if "\n" not in token:
                    continue
                token = "\n"
            if token[0] == "/" and len(token) > 1 and _SUSPECT.search(token):
                yield "|"  # a regex that reads like a program: another awk may read the slash as a division
            if token == "/" and not self._divides(previous) and not _is_ambiguous(previous):
                yield "|"  # a pattern whose end is not certain
            if token == "#":
                place = _line_end(program, place)
                continue
            yield token
            previous = token

    def _special(self, place: int, previous: str) -> re.Match[str] | None:
        letter = self.program[place]
        if letter == '"':
            return _STRING.match(self.program, place)
        if letter != "/":
            return None
        pattern = _REGEX.match(self.program, place) or _SLASHED.match(self.program, place)
        if pattern is None or self._divides(previous):
            return None
        if not _is_ambiguous(previous):
            return pattern
        self.open_choices += 1
        chosen = self.choices[self.open_choices - 1] if self.open_choices <= len(self.choices) else False
        return pattern if chosen else None

    def _divides(self, previous: str) -> bool:
        """Whether the token before a slash is the end of a value, so that the slash divides it."""
        if not previous or previous in _KEYWORDS or _is_ambiguous(previous):
            return False
        return previous[0] == '"' or previous[-1].isalnum() or previous[-1] == "_" or previous == "]"


def _is_ambiguous(previous: str) -> bool:
    """Whether a slash after this token may divide, and in another awk or place begin a pattern."""
    return previous in _AMBIGUOUS or (previous[:1] == "/" and len(previous) > 1)


def _line_end(program: str, place: int) -> int:
    end = program.find("\n", place)
    return len(program) if end < 0 else end
