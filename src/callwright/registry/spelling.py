"""Known terms near an unknown one: a slip of the finger, or a part of a longer word."""

from collections.abc import Iterable, Iterator

from callwright.registry.words import term_of

_SHORTEST = 4
_MOST = 4


class Spelling:
    """A frozen vocabulary that forgives one wrong, missing, doubled or swapped letter."""

    __slots__ = ("_joined", "_known", "_without_one")

    def __init__(self, vocabulary: Iterable[str]) -> None:
        self._known = frozenset(vocabulary)
        known = sorted(word for word in self._known if len(word) >= _SHORTEST and word.isalpha())
        self._joined = "\n" + "\n".join(known) + "\n"
        self._without_one: dict[str, list[str]] = {}
        for word in known:
            for variant in _variants(word):
                self._without_one.setdefault(variant, []).append(word)

    def near(self, word: str) -> list[str]:
        """Return the few known words closest to one that is not known; slips before parts."""
        if len(word) < _SHORTEST or not word.isalpha():
            return []
        slips = {known for variant in _variants(word) for known in self._without_one.get(variant, ())}
        found = sorted(slips, key=lambda known: (known[0] != word[0], abs(len(known) - len(word)), known))
        found = found or self._halves(word) or sorted(self._containing(word), key=lambda known: (len(known), known))
        return found[:_MOST]

    def _halves(self, word: str) -> list[str]:
        """`screenshot` is `screen_shot` to some."""
        for place in range(_SHORTEST - 1, len(word) - _SHORTEST + 2):
            halves = [term_of(word[:place]), term_of(word[place:])]
            if self._known.issuperset(halves):
                return halves
        return []

    def _containing(self, part: str) -> Iterator[str]:
        place = self._joined.find(part)
        while place >= 0:
            end = self._joined.index("\n", place)
            yield self._joined[self._joined.rindex("\n", 0, place) + 1 : end]
            place = self._joined.find(part, end)


def _variants(word: str) -> set[str]:
    """The word and the word without one of its letters: what two words one edit apart have in common."""
    return {word, *(word[:place] + word[place + 1 :] for place in range(len(word)))}
