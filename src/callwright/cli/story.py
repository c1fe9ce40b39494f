"""The demo's script: what a model would say while it does a small task."""

from typing import Any

MODULE = '''\
"""Counts words."""


def most_common(text: str, count: int) -> list[str]:
    """The most common words of a text, most common first."""
    words = text.lower().split()
    return sorted(set(words), key=words.count)[:count]
'''

TESTS = """\
import unittest

from words import most_common


class MostCommon(unittest.TestCase):
    def test_the_most_common_word_comes_first(self) -> None:
        self.assertEqual(most_common("the cat and the dog and the bird", 1), ["the"])


if __name__ == "__main__":
    unittest.main()
"""

TASK = "write words.py with a most_common function, test it, and clean up the scratch notes"
NOTES = "scratch.txt"


def call(name: str, **arguments: Any) -> dict[str, Any]:
    """One call of a reply."""
    return {"name": name, "arguments": arguments}


REPLIES: list[Any] = [
    {
        "text": "I write the module and its test side by side; neither needs the other.",
        "calls": [
            call("write", path="words.py", content=MODULE),
            call("write", path="test_words.py", content=TESTS),
        ],
    },
    {
        "text": "Now I run the test.",
        "calls": [call("bash", command="python3 -m unittest -q test_words", description="run the test")],
    },
    {
        "text": "The order is wrong: `sorted` puts the **rarest** word first. I turn it round.",
        "calls": [
            call("edit", path="words.py", old_string="words.count)[:", new_string="words.count, reverse=True)[:")
        ],
    },
    {
        "text": "And again.",
        "calls": [call("bash", command="python3 -m unittest -q test_words", description="run the test")],
    },
    {
        "text": "It passes. The scratch notes can go.",
        "calls": [call("bash", command=f"rm {NOTES}", description="remove the scratch notes")],
    },
    "Done: `words.py` counts words, and `test_words.py` proves it.",
]
"""What the model says, in order."""

ANSWERS = ("s", "y")
"""What the person says where there is none: the test may run for this session, the notes may go once."""
