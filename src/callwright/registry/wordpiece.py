"""Text as the token numbers a BERT-style embedding model was trained on (uncased WordPiece)."""

import unicodedata
from collections.abc import Iterable, Iterator
from functools import lru_cache

_LONGEST_WORD = 100
_IDEOGRAPHS = ("\u3400", "\u9fff")


class WordPiece:
    """A vocabulary that cuts words into the longest pieces it knows."""

    __slots__ = ("_begin", "_end", "_number_of", "_pieces", "_unknown")

    def __init__(self, vocabulary: Iterable[str]) -> None:
        self._number_of = {piece: number for number, piece in enumerate(vocabulary)}
        self._begin, self._end, self._unknown = (self._number_of[mark] for mark in ("[CLS]", "[SEP]", "[UNK]"))
        self._pieces = lru_cache(50_000)(self._cut)

    def encode(self, text: str, most: int) -> list[int]:
        """Return at most `most` token numbers, the marks of beginning and end among them."""
        numbers = [number for word in _words(text) for number in self._pieces(word)]
        return [self._begin, *numbers[: most - 2], self._end]

    def _cut(self, word: str) -> list[int]:
        if len(word) > _LONGEST_WORD:
            return [self._unknown]
        found: list[int] = []
        start = 0
        while start < len(word):
            prefix = "##" if start else ""
            ends = range(len(word), start, -1)
            end = next((end for end in ends if prefix + word[start:end] in self._number_of), None)
            if end is None:
                return [self._unknown]
            found.append(self._number_of[prefix + word[start:end]])
            start = end
        return found


def _words(text: str) -> Iterator[str]:
    bare = (character for character in unicodedata.normalize("NFD", text.lower()) if _shown(character))
    yield from "".join(f" {character} " if _alone(character) else character for character in bare).split()


def _shown(character: str) -> bool:
    category = unicodedata.category(character)
    return category != "Mn" and (category[0] != "C" or character in "\t\n\r")


def _alone(character: str) -> bool:
    if character.isascii():  # the model was trained with signs such as $ and ^ on their own
        return not character.isalnum() and not character.isspace()
    return _IDEOGRAPHS[0] <= character <= _IDEOGRAPHS[1] or unicodedata.category(character)[0] == "P"
