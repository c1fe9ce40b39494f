"""Parses the tables that say which calls of a program are read-only.

    sort: reads; not -o --output --compress-program
    kubectl: network; values -n --namespace; not --kubeconfig
      get|describe|logs
      config view|get-contexts

A line names programs and clauses, an indented line a sub-command of the program above; a line indented by six
continues the one above. The clauses:

    reads        operands are files            network   reads over a network, not only locally
    pattern F…   but the first is not, unless  local     cancels `network`
                 an option F gives the pattern response  `@file` names a file of further arguments
    here         no operand: this folder       operands N  at most N operands
    not F…       flags refused                 like RE   every operand matches
    only F…      the only flags allowed        single    long options begin with one dash
    values F…    flags that take a value       exact     long options cannot be abbreviated
    names G…     of a folder only such files   bare      read-only without arguments too
    needs F…     one of these is required
    help         `[sub] --help` is read-only   secret    never allowed: overrides a wider line
    last         no option after an operand    recursive  -r reads whole folders
    hosts        operands are hosts
    urls         an address is fetched        plain     no value expands macros (`:expand`, `%(`)
    counts F…    flags that take a value if it is a number
    flags F…     options without a value: any other long one may take the next word, an abbreviation too,
                 and before a sub-command any other option may take the word that looks like it
    schemeless   no word holds a colon, because `engine:file` loads a library
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from functools import cached_property
from itertools import takewhile

from callwright.shell.words import VALUE, Word

_ABBREVIATION = 3  # "--" and one letter: GNU programs accept any unambiguous start of a long option
_WILD = re.compile(r"[*?\[]")
_NUMBER = re.compile(r"[-+]?\d+[a-zA-Z]?$")
_CONTINUES = " " * 6
_HELP = frozenset(("--help", "--version"))
_MACRO = re.compile(r":expand|%\(|%\{(?:lua|\?|expand|shescape|load|include)")
_SWITCHES = frozenset(
    "response recursive reads here network single exact last bare help secret urls hosts plain schemeless".split()
)
_OFF = frozenset(("false", "none", "no", "off", "0", "f"))


@dataclass
class ProgramRule:
    """The arguments with which a program, or one of its sub-commands, is read-only."""

    refused: frozenset[str] = frozenset()
    allowed: frozenset[str] | None = None
    values: frozenset[str] = frozenset()
    counts: frozenset[str] = frozenset()
    flags: frozenset[str] = frozenset()
    reads: bool = False
    pattern: frozenset[str] | None = None
    here: bool = False
    network: bool = False
    single: bool = False
    exact: bool = False
    last: bool = False
    bare: bool = False
    help: bool = False
    secret: bool = False
    response: bool = False
    recursive: bool = False
    names: tuple[str, ...] = ()
    urls: bool = False
    hosts: bool = False
    plain: bool = False
    schemeless: bool = False
    needs: frozenset[str] = frozenset()
    operands: int | None = None
    like: re.Pattern[str] | None = None
    subcommands: dict[str, "ProgramRule"] = field(default_factory=dict[str, "ProgramRule"])

    @cached_property
    def free(self) -> bool:
        """Whether it is read-only with any arguments."""
        if self.refused or self.subcommands or self.like or self.needs or self.response or self.last:
            return False
        return self.allowed is None and self.operands is None

    def objection(self, words: Sequence[Word]) -> str:
        """Return why a call with these arguments may not be read-only, or an empty string."""
        if self.secret:
            return "may reveal secrets or change something"
        if self.free and not self.network:
            return ""
        for word in words:
            if word.form >= VALUE or ((self.network or self.urls) and not word.literal):
                return f"{word.text} may become an option"
        if self.needs and not self._meets_needs(self.split(words)[1]):
            return f"without {' or '.join(sorted(self.needs))} it may do more than read"
        if self.plain and (macro := next((word.text for word in words if _MACRO.search(word.text)), "")):
            return f"{macro} may run a macro"
        if self.schemeless and (named := next((word.text for word in words if ":" in word.text), "")):
            return f"{named} may load a library"
        if self.response and (named := next((word.text for word in words if word.text[:1] == "@"), "")):
            return f"{named} may hold further options"
        return self.flag_objection(words) or self._operand_objection(words)

    def _meets_needs(self, flags: Sequence[str]) -> bool:
        """Whether a required option is given and none is switched off, as in `--dry-run=none`: the last one counts."""
        needed = [flag for flag in flags if self._is_needed(flag)]
        return bool(needed) and not any(flag.partition("=")[2].lower() in _OFF for flag in needed)

    def _is_needed(self, text: str) -> bool:
        name = text.partition("=")[0]
        if name in self.needs or any(fnmatchcase(name, need) for need in self.needs if need[-1] == "*"):
            return True
        return text[1:2] != "-" and not self.single and not self.needs.isdisjoint(self._read_cluster(text))

    def flag_objection(self, words: Sequence[Word]) -> str:
        """Return which option may change something, or an empty string."""
        previous = ""
        for word in words:
            text = word.text
            # after an option "--" may be that option's value, and options go on
            if text == "--" and previous[:1] != "-" and not self.single:
                return ""
            if text[:1] == "-" and len(text) > 1 and not (self._has_plain_name(text) and self._is_harmless(text)):
                return f"{text} may do more than read"
            previous = text
        return ""

    def _has_plain_name(self, flag: str) -> bool:
        """Whether no space stands in an option's name; behind a letter, as in `-Sdef main`, its value begins."""
        return " " not in (flag.partition("=")[0] if self.single or flag[1:2] == "-" else flag[:2])

    def _is_harmless(self, flag: str) -> bool:
        if self.allowed is not None:
            return self._is_allowed(flag)
        return not self._is_refused(flag)

    def _is_allowed(self, flag: str) -> bool:
        allowed = self.allowed or frozenset()
        name = flag.partition("=")[0]
        if name in allowed or flag == "--" or any(fnmatchcase(name, known) for known in allowed if known[-1] == "*"):
            return True
        if flag.startswith("--") or self.single:
            return False
        if _NUMBER.match(flag):
            return "-#" in allowed
        return allowed.issuperset(self._read_cluster(flag))

    def _is_refused(self, flag: str) -> bool:
        name = flag.partition("=")[0]
        if self.single:
            stem = "-" + name.lstrip("-")
            return any(stem == refused or f"-{stem}" == refused for refused in self.refused)
        if self.exact:
            short = flag[1:2] != "-" and any(f"-{letter}" in self.refused for letter in flag[1:])
            return name in self.refused or short
        if flag.startswith("--"):
            if name in self.values or name in self.flags:  # `npm ls --global` is no abbreviation of --globalconfig
                return name in self.refused
            return any(refused.startswith(name) for refused in self.refused) if len(name) >= _ABBREVIATION else False
        return not self.refused.isdisjoint(self._read_cluster(flag))

    def _read_cluster(self, flag: str) -> list[str]:
        """Return the options of joined letters; what follows one with a value is that value: `rg -tzig`."""
        options = [f"-{letter}" for letter in flag[1:]]
        value = next((place for place, option in enumerate(options) if option in self.values), len(options))
        return options[: value + 1]

    def _operand_objection(self, words: Sequence[Word]) -> str:
        if self.operands is None and self.like is None and not self.last:
            return ""
        operands = self.operand_words(words)
        if self.last and operands:
            after = words[words.index(operands[0]) :]
            if late := next((word.text for word in after if word.text[:1] == "-" and word.text != "-"), ""):
                return f"{late} follows an operand, where some programs read it as another operand"
        if self.operands is not None:
            if len(operands) > self.operands:
                return f"{operands[self.operands].text} is one operand too many"
            if any(not word.literal for word in operands):
                return "the number of operands is not known"
        if self.like is None:
            return ""
        tail = self.like.pattern == r"\+.*"  # whatever follows the plus sign, date prints it
        bad = [word.text for word in operands if (word.computed and not tail) or not self.like.fullmatch(word.text)]
        return f"{bad[0]} is not an operand known to be read-only" if bad else ""

    def operand_words(self, words: Sequence[Word]) -> list[Word]:
        """Return the words that are neither options nor values of options."""
        return self.split(words)[0]

    def split(self, words: Sequence[Word]) -> tuple[list[Word], list[str]]:
        """Separate operands from options; an option's value in the next word is neither."""
        operands: list[Word] = []
        flags: list[str] = []
        skip = counted = closed = False
        for word in words:
            text = word[0]
            if skip and (not counted or text.isdigit()):
                skip = False
            elif closed or text[:1] != "-" or text == "-":
                operands.append(word)
                skip = False
            elif text == "--":
                closed, skip = True, False
            else:
                flags.append(text)
                counted = text in self.counts
                skip = counted or (bool(self.values) and self._takes_next(text))
        return operands, flags

    def gives_pattern(self, flags: Sequence[str]) -> bool:
        """Whether an option may give the pattern, so that the first operand is a file like the others.

        Any beginning of a long option and any letter of a cluster counts: a wrong yes only adds a file.
        """
        for flag in flags:
            name = flag.partition("=")[0]
            if flag[1:2] != "-":
                given = not self._pattern_letters.isdisjoint(flag)
            else:
                given = len(name) >= _ABBREVIATION and any(option.startswith(name) for option in self.pattern or ())
            if given:
                return True
        return False

    def may_take_next(self, flags: Sequence[str]) -> bool:
        """Whether a long option may take the next word for its value, so that an operand may be none."""
        known = self.flags | self.values | self.counts
        return bool(self.flags) and any(flag[:2] == "--" and "=" not in flag and flag not in known for flag in flags)

    @cached_property
    def _pattern_letters(self) -> frozenset[str]:
        return frozenset([option[1] for option in self.pattern or () if option[1:2] != "-"])

    def _takes_next(self, flag: str) -> bool:
        if "=" in flag:
            return False
        if flag in self.values:
            return True
        if flag.startswith("--") or self.single:
            return False
        # in -rn5 the rest of the cluster is the value, in -rn it is the next word
        return f"-{flag[-1]}" in self.values and not any(f"-{letter}" in self.values for letter in flag[1:-1])

    def descend(self, words: Sequence[Word]) -> tuple["ProgramRule | None", int]:
        """Find the sub-command the words name: its rule, and how many words lead to it."""
        rule, place, end = self, 0, 0
        while rule.subcommands and place < len(words):
            word = words[place]
            if word.text[:1] == "-" and word.text not in rule.subcommands:
                value = words[place + 1 : place + 2] if self._takes_next(word.text) else ()
                if not self._is_known(word.text) or not all(each.literal for each in (word, *value)):
                    return None, end
                place += 1 + len(value)
                continue
            below = rule.subcommand(word)
            if below is None:
                return (rule, end) if rule.bare and rule is not self else (None, end)
            rule, place = below, place + 1
            end = place
        if rule is self or (rule.subcommands and not rule.bare):
            return None, end
        return rule, end

    def _is_known(self, flag: str) -> bool:
        """Whether it is certain which word after an option is no value of it: `pip --trusted-host list install x`."""
        known = self.flags | self.values | (self.allowed or frozenset())
        if flag.partition("=")[0] in known:
            return True
        if flag[:2] == "--" or self.single:
            return "=" in flag
        # what follows a letter that takes a value is that value
        letters = list(takewhile(lambda letter: f"-{letter}" not in self.values, flag[1:]))
        return all(f"-{letter}" in known for letter in letters)

    def subcommand(self, word: Word) -> "ProgramRule | None":
        """Return the rule for a sub-command's name."""
        if not word.literal:
            return None
        exact = self.subcommands.get(word.text)
        if exact is not None:
            return exact
        return next((self.subcommands[name] for name in self.wild_subcommands if fnmatchcase(word.text, name)), None)

    @cached_property
    def wild_subcommands(self) -> list[str]:
        """The sub-commands that are patterns."""
        return [name for name in self.subcommands if _WILD.search(name)]

    def shows_help(self, words: Sequence[Word]) -> bool:
        """Whether the words only ask for help or the version."""
        if not self.help or not words or not all(word.literal for word in words):
            return False
        last = words[-1].text
        if len(words) == 1:
            return last in _HELP or last in ("-h", "-V", "help", "version")
        if words[0].text == "help":
            return all(word.text[:1] != "-" for word in words)
        # [sub] --help; cargo +folder would be another program
        return len(words) == 2 and last in ("--help", "-h") and words[0].text[:1].isalnum()


def parse_table(text: str) -> dict[str, ProgramRule]:
    """Parse a table, written in the language that the module docstring describes."""
    rules: dict[str, ProgramRule] = {}
    parents: list[ProgramRule] = []
    for line in _join_continued_lines(text):
        names, _, clauses = line.strip().partition(":")
        if line[0] != " ":
            rule = _apply_clauses(clauses, ProgramRule())
            parents = [rule]
            rules.update(dict.fromkeys(names.split(), rule))
        else:
            for parent in parents:
                _add_subcommand(parent, names.split(), clauses)
    return rules


def _join_continued_lines(text: str) -> list[str]:
    """Join lines with their continuations; after a bar without a space."""
    lines: list[str] = []
    for line in filter(str.strip, text.splitlines()):
        if line.startswith(_CONTINUES):
            lines[-1] += ("" if lines[-1][-1] == "|" else " ") + line.strip()
        else:
            lines.append(line)
    return lines


def _add_subcommand(parent: ProgramRule, path: Sequence[str], clauses: str) -> None:
    """Add a sub-command; each step of its path may offer alternatives."""
    rules = [parent]
    for step in path:
        below: list[ProgramRule] = []
        for rule in rules:
            for name in step.split("|"):
                below.append(rule.subcommands.setdefault(name, _inherit(parent)))
        rules = below
    for rule in rules:
        _apply_clauses(clauses, rule, leaf=True)


def _inherit(parent: ProgramRule) -> ProgramRule:
    return ProgramRule(
        refused=parent.refused,
        allowed=parent.allowed,
        values=parent.values,
        flags=parent.flags,
        network=parent.network,
        single=parent.single,
        exact=parent.exact,
        reads=parent.reads,
        urls=parent.urls,
    )


def _apply_clauses(clauses: str, rule: ProgramRule, *, leaf: bool = False) -> ProgramRule:
    for clause in filter(None, map(str.strip, clauses.split(";"))):
        word, _, rest = clause.partition(" ")
        _apply_clause(rule, word, rest)
    if leaf:
        rule.bare = True
    return rule


def _apply_clause(rule: ProgramRule, word: str, rest: str) -> None:
    flags = frozenset(rest.split())
    match word:
        case "not":
            rule.refused |= flags
        case "only":
            rule.allowed = (rule.allowed or frozenset()) | flags
        case "values":
            rule.values |= flags
            if rule.allowed is not None:
                rule.allowed |= flags
        case "counts":
            rule.counts = flags
        case "flags":
            rule.flags = flags
        case "needs":
            rule.needs = flags
        case "names":
            rule.names = tuple(rest.split())
        case "operands":
            rule.operands = int(rest)
        case "like":
            rule.like = re.compile(rest)
        case "local":
            rule.network = False
        case "pattern":
            rule.pattern = flags
        case _ if word in _SWITCHES:
            setattr(rule, word, True)
        case _:
            raise AssertionError(f"no such clause: {word}")
