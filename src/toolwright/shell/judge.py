"""Judges one program call: what it would do with these words."""

from collections.abc import Iterable, Sequence

from toolwright.core.access import Access, Reach, ReadPath
from toolwright.shell import tables
from toolwright.shell.folders import Folders, places
from toolwright.shell.grammar import Rule
from toolwright.shell.judgement import Judgement, unknown
from toolwright.shell.plan import Verdict
from toolwright.shell.words import Certainty, Word

_SYSTEM_FOLDERS = frozenset(("/bin", "/usr/bin", "/sbin", "/usr/sbin"))
_PATTERN_FLAGS = ("-e", "-f", "--regexp", "--file")


def program_name(word: Word) -> str | None:
    """Return the plain name of a program, or None for one that may not be what its name says."""
    if not word.literal:
        return None
    folder, slash, name = word.text.rpartition("/")
    return name if not slash or folder in _SYSTEM_FOLDERS else None


def judge(words: Sequence[Word], folders: Folders) -> Judgement:
    """Say what a call would do; anything not known is unknown."""
    name = program_name(words[0])
    if name is None:
        return unknown(f"{words[0].text} could be any program")
    arguments = words[1:]
    special = tables.special(name)
    if special is not None:
        return special(name, arguments, folders)
    rule = tables.rule(name)
    if rule is None:
        return unknown(f"nothing is known about {name}")
    return by_rule(name, rule, arguments, folders)


def by_rule(name: str, rule: Rule, arguments: Sequence[Word], folders: Folders) -> Judgement:
    """Judge a call by its line in a table."""
    if rule.help and rule.shows_help(arguments):
        return Judgement(Verdict.READ_ONLY, f"{name} shows its help")
    title = name
    if rule.subcommands:
        if not arguments and rule.bare:
            return Judgement(Verdict.READ_ONLY, f"{name} alone only shows something")
        below, count = rule.descend(arguments)
        if below is None:
            return unknown(f"it is not known that this call of {name} only looks")
        title = " ".join([name, *(word.text for word in arguments[:count] if word.text[:1] != "-")])
        leading, known, arguments, rule = arguments[:count], rule.subcommands, arguments[count:], below
        if objection := rule.flag_objection([word for word in leading if word.text not in known]):
            return unknown(f"{title}: {objection}")
    if objection := rule.objection(arguments):
        return unknown(f"{title}: {objection}")
    accesses = tuple(_accesses(name, rule, arguments, folders))
    verdict = Verdict.READS_NETWORK if rule.network else Verdict.READ_ONLY
    return Judgement(verdict, f"{title} only {'reads over the network' if rule.network else 'looks'}", accesses)


def _accesses(name: str, rule: Rule, arguments: Sequence[Word], folders: Folders) -> Iterable[Access]:
    if rule.network:
        yield Reach(_address(name, arguments))
    if rule.reads:
        yield from read_paths(rule, arguments, folders)


def _address(name: str, arguments: Sequence[Word]) -> str:
    return next((word.text for word in arguments if "://" in word.text), f"{name}:")


def read_paths(rule: Rule, arguments: Sequence[Word], folders: Folders) -> Iterable[Access]:
    """Yield what the operands name, and what hides in options that look like paths."""
    skip = rule.pattern and not any(word.text.startswith(_PATTERN_FLAGS) for word in arguments)
    found = False
    for word in rule.operand_words(arguments):
        if skip:
            skip = False
            continue
        found = True
        yield from paths(ReadPath, word, folders)
    if rule.here and not found:
        yield from (ReadPath(path) for path in places(".", folders))
    for word in arguments:
        if word.text[:1] == "-" and "/" in word.text:
            value = word.text.partition("=")[2] if "=" in word.text else word.text[word.text.find("/") :]
            yield from paths(ReadPath, Word(value, word.certainty), folders)


def paths(kind: type[ReadPath], word: Word, folders: Folders) -> Iterable[Access]:
    """Yield the accesses a word stands for; one that cannot be known stays as written."""
    if word.text in ("-", "") or word.text.startswith("/dev/fd/"):
        return
    if word.certainty is Certainty.ANYTHING and not any(letter in word.text for letter in "*?["):
        yield kind(word.text.lstrip("/") or "?")
        return
    for path in places(word.text, folders):
        yield kind(path)
