"""The script of `callwright demo`: the task, the replies of the model and the answers of the user."""

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


def tool_call(name: str, **arguments: Any) -> dict[str, Any]:
    """Return one tool call of a reply."""
    return {"name": name, "arguments": arguments}


REPLIES: list[Any] = [
    {
        "text": "First the module.",
        "calls": [tool_call("write", path="words.py", content=MODULE)],
    },
    {
        "text": "Then its test.",
        "calls": [tool_call("write", path="test_words.py", content=TESTS)],
    },
    {
        "text": "Now I run it.",
        "calls": [tool_call("bash", command="python3 -m unittest -q test_words", description="run the test")],
    },
    {
        "text": "The order is wrong: `sorted` puts the **rarest** word first. I turn it round.",
        "calls": [
            tool_call("edit", path="words.py", old_string="words.count)[:", new_string="words.count, reverse=True)[:")
        ],
    },
    {
        "text": "And again.",
        "calls": [tool_call("bash", command="python3 -m unittest -q test_words", description="run the test")],
    },
    {
        "text": "It passes. The scratch notes can go.",
        "calls": [tool_call("bash", command=f"rm {NOTES}", description="remove the scratch notes")],
    },
    "Done: `words.py` counts words, and `test_words.py` proves it.",
]
"""The replies of the scripted model, in order."""

ANSWERS = ("s", "y")
"""Used if stdin is not a terminal: allow the test for this session, allow the deletion once."""
