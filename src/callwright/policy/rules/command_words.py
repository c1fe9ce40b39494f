"""Finds the words a deny or ask rule names in a command that spells them with other options, in another order."""

import re
from collections.abc import Iterator, Sequence
from functools import lru_cache

from callwright.policy.rules.patterns import CommandPattern
from callwright.policy.rules.too_broad import DISPATCHERS, INTERPRETERS, RUNNING_SUBCOMMANDS

_MAX_SKIPPED, _MAX_STEPS = 200, 20_000
"""How many words are read in search of those that the rule names; a command with more counts as named."""
# what may stand between a program and its sub-command: options, `cargo +nightly`, `make A=1`
_PASSED = re.compile(r"[-+]|\w+=")
_CLUSTER = re.compile(r"-[a-z]{1,4}")
_LETTERS = re.compile(r"-([a-z]+)")


class _TooLong(Exception):
    """The command has more words than are searched."""


def names_words(pattern: CommandPattern, command: tuple[str, ...]) -> bool:
    """Whether a pattern matches a command without the options around the words that it names.

    `git push *` matches `git -C x push`, and `rm -rf *` matches `rm -r -v -f x`. A word behind an option may be its
    value or not: both count, because a match too many only denies or asks more.

    Args:
        pattern: The pattern, without regard to case.
        command: Its words in lower case, with marked spaces.
    """
    try:
        return any(
            pattern.matches(" ".join((*named, *rest)))
            for named in _list_named(pattern)
            if named[0] == command[0]
            for rest in _Search(named, command).find_rests()
        )
    except _TooLong:
        return True


@lru_cache(maxsize=4096)
def _list_named(pattern: CommandPattern) -> tuple[tuple[str, ...], ...]:
    """Return the whole words before the first wildcard, for each form of the pattern."""
    found = list[tuple[str, ...]]()
    for form in pattern.forms:
        spelled = form.pieces[0].split(" ")
        named = tuple(word for word in (spelled if form.exact else spelled[:-1]) if word)
        if len(named) > 1 or (named and not form.exact):
            found.append(named)
    return tuple(found)


class _Search:
    """The search for the words of one rule in one command."""

    def __init__(self, named: tuple[str, ...], command: tuple[str, ...]) -> None:
        self._command = command
        self._groups, self._last = _group_by_operand(named[1:])
        self._visited = set[tuple[int, int]]()
        self._steps = 0
        program, verb = named[0], self._groups[-1][1] if self._groups else ""
        # behind an operand of these, options belong to the program that is run, or to another sub-command
        runs = verb in RUNNING_SUBCOMMANDS if verb else program in DISPATCHERS
        self._anywhere = program not in INTERPRETERS and not runs

    def find_rests(self, group: int = 0, start: int = 1) -> Iterator[tuple[str, ...]]:
        """Yield what may follow the words of the rule, from one of its operands and a place in the command on."""
        if (group, start) in self._visited:
            return
        self._visited.add((group, start))
        if group == len(self._groups):
            yield from self._with_last_options(start) if self._last else self._without_options(start)
            return
        needed, operand = self._groups[group]
        for place in self._pass_options(start):
            if self._command[place] == operand and self._has_options(start, place, needed):
                yield from self.find_rests(group + 1, place + 1)

    def _pass_options(self, start: int) -> Iterator[int]:
        """Yield the places that have nothing but options and their values before them."""
        value = False
        for place in range(start, len(self._command)):
            self._count(1)
            if place - start > _MAX_SKIPPED:
                raise _TooLong
            yield place
            word = self._command[place]
            option = _PASSED.match(word) is not None
            if not option and not value:
                return
            value = option and "=" not in word and word != "--"

    def _without_options(self, start: int) -> Iterator[tuple[str, ...]]:
        yield self._command[start:]
        yield from (self._command[place:] for place in self._pass_options(start))

    def _with_last_options(self, start: int) -> Iterator[tuple[str, ...]]:
        """Yield the operands behind the rule's last options, which may stand before or behind them."""
        rest = self._command[start:]
        if not self._anywhere:
            rest = rest[: max(self._pass_options(start), default=start) + 1 - start]
        elif "--" in rest:
            rest = rest[: rest.index("--")]
        end = start + len(rest)
        if self._has_options(start, end, self._last):
            yield (*(word for word in rest if not word.startswith("-")), *self._command[end:])

    def _has_options(self, start: int, end: int, needed: Sequence[str]) -> bool:
        """Whether all the options of a rule are given; letters may be joined in any way."""
        if not needed:
            return True
        self._count(end - start)
        given = self._command[start:end]
        letters = {letter for word in given if (found := _LETTERS.match(word)) for letter in found[1]}
        return all(
            option in given or (_CLUSTER.fullmatch(option) is not None and letters.issuperset(option[1:]))
            for option in needed
        )

    def _count(self, steps: int) -> None:
        self._steps += steps
        if self._steps > _MAX_STEPS:
            raise _TooLong


def _group_by_operand(named: Sequence[str]) -> tuple[list[tuple[list[str], str]], list[str]]:
    """Return each operand of a rule with the options before it, and the options behind the last one."""
    groups, options = list[tuple[list[str], str]](), list[str]()
    for word in named:
        if word.startswith("-"):
            options.append(word)
        else:
            groups.append((options, word))
            options = []
    return groups, options
