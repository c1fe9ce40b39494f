"""Judges sed calls: a script is read-only if every command in it only edits the stream."""

import re
from collections.abc import Iterator, Sequence
from itertools import chain, islice

from callwright.core.access import Access, ReadPath, WritePath
from callwright.shell.findings import Judgement, unknown
from callwright.shell.plan import Verdict
from callwright.shell.programs.outputs import list_inputs
from callwright.shell.words import Folders, Word, resolve_as
from callwright.shell.wrappers import InnerCommand

_ADDRESS_END = frozenset(" \t!,+~0123456789$")
_ALONE = frozenset("dDgGhHlnNpPqQxz=F{}")
_TO_LINE_END = frozenset("aic")
_LABELS = frozenset(":btT")
# to some programs a brace belongs to the label, up to the next blank or semicolon
_LABEL = re.compile(
    r":[ \t]*[A-Za-z0-9_]+[ \t]*(?=[;\n]|\Z)|[btT][ \t]*[A-Za-z0-9_]*[ \t]*(?=[;\n]|\Z|\}+(?:[ \t;\n]|\Z))"
)
_SUBSTITUTE_FLAGS = re.compile(r"[gpiImM0-9]*")
_FLAGS = frozenset(
    "-n -E -r -s -u -z --quiet --silent --regexp-extended --null-data --separate --unbuffered --posix --debug "
    "--sandbox --zero-terminated --line-length".split()
)
_LETTERS = frozenset("nErsuz")
_SUFFIX = re.compile(r"|[._~-]?(?:bak|backup|orig|old|tmp|sed|save|e|~)?")


def sed(name: str, arguments: Sequence[Word], folders: Folders) -> Judgement:
    """Judge a sed call by its options and the script it runs."""
    scripts, files, objection, in_place = _split(arguments)
    named = tuple(_list_script_files(arguments, scripts, folders)) if objection or first_problem(scripts) else ()
    if in_place:
        touched = (*resolve_as(WritePath, files, folders), *named)
        script_objection = first_problem(scripts)
        literal = all(word.literal for word in arguments)
        if objection or script_objection or not literal:
            reason = objection or script_objection or "sed -i with words that are not literal"
            return unknown(reason, touched, tuple(_list_run(name, scripts)))
        return Judgement(Verdict.WRITES, "sed -i changes files in place", touched)
    touched = (*resolve_as(ReadPath, files, folders), *named)
    objection = objection or first_problem(scripts)
    if objection:
        return unknown(objection, touched, tuple(_list_run(name, scripts)))
    return Judgement(Verdict.READ_ONLY, "sed prints an edited copy", touched)


_RUNS = re.compile(r"(?:^|[;{}\n/0-9$!])[ \t]*e[ \t]+([^\n]+)")
_RUNS_RESULT = re.compile(r"[gpiImM0-9]*e")
_MAX_FOUND = 1_000


def _list_run(name: str, scripts: Sequence[str]) -> Iterator[InnerCommand]:
    """Yield the shell commands in a script, so that deny rules see them: `1e rm x`, `s/.*/rm x/e`."""
    for script in scripts:
        for text in islice(chain((match[1] for match in _RUNS.finditer(script)), _iter_results(script)), _MAX_FOUND):
            yield InnerCommand(f"{name} e", script=Word(text), doubt="sed runs it as a command")


def _iter_results(script: str) -> Iterator[str]:
    """Yield the replacements that are run; a hostile script may hold thousands of beginnings."""
    start = script.find("s")
    while 0 <= start < len(script) - 1:
        middle = script.find(script[start + 1], start + 2)
        end = script.find(script[start + 1], middle + 1) if middle >= 0 else -1
        if end >= 0 and _RUNS_RESULT.match(script, end + 1):
            yield script[middle + 1 : end]
        start = script.find("s", start + 1)


# what follows the letter is not consumed: /read/r is an address and a command
_USES_FILE = re.compile(r"(?:^|(?<=[;{}\n/0-9$!,]))[ \t]{0,9}([rRwW])[ \t]*(?=([^\n]{1,200}))", re.MULTILINE)
_WRITES_RESULT = re.compile(r"(?<=[^\w\s])[gpiImMe0-9]{0,10}(w)[ \t]*(?=([^\n]{1,200}))")


def _list_script_files(arguments: Sequence[Word], scripts: Sequence[str], folders: Folders) -> Iterator[Access]:
    """Yield the files that a script names, and those that hold a script, so that rules against them match."""
    yield from list_inputs(arguments, ("-f", "--file"), folders)
    for script in scripts:
        for found in islice(chain(_USES_FILE.finditer(script), _WRITES_RESULT.finditer(script)), _MAX_FOUND):
            letter, name = found.groups()
            spelled = dict.fromkeys((name.strip(), re.split("[;}]", name)[0].strip()))
            yield from resolve_as(ReadPath if letter in "rR" else WritePath, filter(None, spelled), folders)


def _split(arguments: Sequence[Word]) -> tuple[list[str], list[Word], str, bool]:
    """Separate scripts from files; a script may stand in -e, --expression or the first operand."""
    scripts: list[str] = []
    files: list[Word] = []
    objection, in_place, closed, place = "", False, False, 0
    while place < len(arguments):
        word = arguments[place]
        text = word.text
        place += 1
        if closed or text[:1] != "-" or text == "-":
            files.append(word)
        elif not word.literal:
            objection = objection or f"{text} is not literal"
        elif text == "--":
            closed = True
        elif text in ("-e", "--expression"):
            scripts.append(arguments[place].text if place < len(arguments) else "")
            objection = objection or (
                "" if place < len(arguments) and arguments[place].literal else "no literal script"
            )
            place += 1
        elif text.startswith("--expression="):
            scripts.append(text.partition("=")[2])
        elif text in ("-l", "--line-length"):
            # on macOS -l takes no value, and the next word is the script
            number = "".join(word.text for word in arguments[place : place + 1])
            objection = objection or ("" if number.isdigit() else f"{number} may be a script")
            place += 1
        elif text.startswith(("--in-place", "-i", "-I")):
            in_place = True
            objection = objection or _suffix_problem(text.partition("=")[2] if text[1] == "-" else text[2:])
        elif text.partition("=")[0] in _FLAGS:
            continue
        else:
            cluster_scripts, cluster_in_place, problem = _cluster(text)
            scripts.extend(cluster_scripts)
            in_place = in_place or cluster_in_place
            if cluster_scripts == [""] and place < len(arguments):
                scripts[-1] = arguments[place].text
                objection = objection or ("" if arguments[place].literal else "no literal script")
                place += 1
            objection = objection or problem
    if not scripts and files:
        first = files.pop(0)
        scripts.append(first.text)
        objection = objection or ("" if first.literal else "the sed script is not literal")
    return scripts, files, objection, in_place


def _cluster(text: str) -> tuple[list[str], bool, str]:
    if text.startswith("--"):
        return [], False, f"{text} is an unknown option"
    for place, letter in enumerate(text[1:], start=1):
        if letter == "e":
            return [text[place + 1 :]], False, ""
        if letter in "iI":
            return [], True, _suffix_problem(text[place + 1 :])
        if letter not in _LETTERS:
            return [], False, f"{text} is an unknown option"
    return [], False, ""


def _suffix_problem(suffix: str) -> str:
    """Object to a suffix of the backup that names another place, or a file that other programs follow."""
    return "" if _SUFFIX.fullmatch(suffix) else f"a backup named with {suffix} may be any file"


def script_problem(script: str) -> str:
    """Return what in a sed script reads, writes or runs something, or an empty string."""
    try:
        for command in _commands(script):
            if command:
                return f"the sed command {command} does more than edit the stream"
    except (IndexError, ValueError):
        return "the sed script is not understood"
    return ""


def first_problem(scripts: Sequence[str]) -> str:
    """Return the first thing wrong with several scripts."""
    return next((problem for script in scripts if (problem := script_problem(script))), "")


def _commands(script: str) -> Iterator[str]:
    """Walk the script, yielding an offending command or an empty string for each harmless one."""
    place, end = 0, len(script)
    while place < end:
        letter = script[place]
        if letter in " \t\n;":
            place += 1
        elif letter == "/" or letter == "\\" or letter in _ADDRESS_END:
            place = _after_address(script, place)
        elif letter in "sy":
            place, flags = _after_substitution(script, place)
            yield flags
        elif letter == "#":
            place = _after_comment(script, place)
        elif letter in _TO_LINE_END:
            # one-line text is an extension: without the backslash some programs read the rest as commands
            yield letter if "}" in script[place:] else ""
            place = _after_text(script, place)
        elif letter in _LABELS:
            label = _LABEL.match(script, place)
            yield "" if label else letter
            place = label.end() if label else end
        elif letter in _ALONE:
            place = _after_number(script, place + 1)
            yield ""
        else:
            yield letter
            return


def _after_address(script: str, place: int) -> int:
    letter = script[place]
    if letter == "/":
        return _after_regex_flags(script, _after_delimited(script, place + 1, "/"))
    if letter == "\\":
        return _after_regex_flags(script, _after_delimited(script, place + 2, script[place + 1]))
    return place + 1


def _after_regex_flags(script: str, place: int) -> int:
    while place < len(script) and script[place] in "IM":
        place += 1
    return place


def _after_delimited(script: str, place: int, delimiter: str) -> int:
    if delimiter in "\n\\":
        raise ValueError("no such delimiter")
    while script[place] != delimiter:
        if script[place] == "\n":
            raise ValueError("a pattern over several lines")
        # a delimiter inside [...] ends the pattern in some programs and not in others
        if script[place] == "[" and delimiter in script[place : script.find("]", place + 2) + 1]:
            raise ValueError("a delimiter inside brackets")
        place += 2 if script[place] == "\\" else 1
    return place + 1


def _after_substitution(script: str, place: int) -> tuple[int, str]:
    kind, delimiter = script[place], script[place + 1]
    place = _after_delimited(script, place + 2, delimiter)
    place = _after_delimited_replacement(script, place, delimiter)
    flags = _SUBSTITUTE_FLAGS.match(script, place)
    place = flags.end() if flags else place
    rest = script[place : place + 1]
    if rest not in ("", " ", "\t", "\n", ";", "}", "#"):
        return place, f"{kind} with {rest}"
    return place, ""


def _after_delimited_replacement(script: str, place: int, delimiter: str) -> int:
    while script[place] != delimiter:
        place += 2 if script[place] == "\\" else 1
    return place + 1


def _after_comment(script: str, place: int) -> int:
    """Skip a comment, which a backslash does not carry over to the next line."""
    end = script.find("\n", place)
    return len(script) if end < 0 else end


def _after_text(script: str, place: int) -> int:
    """Skip text up to the end of its line; a backslash carries it over to the next."""
    while place < len(script) and script[place] != "\n":
        place += 2 if script[place] == "\\" else 1
    return place


def _after_number(script: str, place: int) -> int:
    while place < len(script) and script[place] in " \t0123456789":
        place += 1
    return place
