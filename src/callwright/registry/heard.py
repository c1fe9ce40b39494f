"""Why a tool was found, in the words of the person who searched."""

from callwright.registry.lexicon import WRITTEN
from callwright.registry.postings import Postings
from callwright.registry.query import Query

_WORDS_SHOWN = 8


class Heard:
    """What one query was taken to mean, ready to be explained tool by tool."""

    __slots__ = ("_meant", "_tools")

    def __init__(self, postings: Postings, query: Query) -> None:
        self._tools = postings.tools
        self._meant = [
            (known, word if known == term else f"{word} ~ {WRITTEN.get(known, known)}")
            for term, word in query.words.items()
            for known, _ in postings.meanings(term)
        ]

    def why(self, name: str) -> str:
        """Say which words a tool answers to: those in its name, then those in the rest of what it says."""
        tool = self._tools[name]
        named: list[str] = []
        other: list[str] = []
        for known, shown in self._meant:
            if known in tool.sums:
                (named if known in tool.name else other).append(shown)
        found = {"name": named[:_WORDS_SHOWN], "text": other[:_WORDS_SHOWN]}
        return "; ".join(f"{place}: {', '.join(words)}" for place, words in found.items() if words)
