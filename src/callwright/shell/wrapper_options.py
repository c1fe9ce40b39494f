"""Reads the options of wrappers: where the command behind them begins, and whether all of them are known."""

from collections.abc import Sequence

from callwright.shell.words import Word
from callwright.shell.wrapper_tables import PAIRS, WRAPPERS, Wrapper


def skip_options(words: Sequence[Word], wrapper: Wrapper) -> tuple[int, str]:
    """Return how many leading words are options, and a doubt when one of them is unknown."""
    place, doubt, values, flags = 0, "", wrapper.values, wrapper.flags
    while place < len(words):
        text = words[place].text
        if text == "--":
            return place + 1, doubt
        if text[:1] != "-" or text == "-":
            break
        if text in values:
            place += 3 if text in PAIRS else 2
            continue
        name = text.partition("=")[0]
        known = name in flags or name in values or text[:2] in values or ("-#" in flags and text[1:].isdigit())
        doubt = doubt or ("" if known else f"{text} is an unknown option")
        place += 1 if known or not awaits_value(text, values | wrapper.doubtful) else 2
    return place, doubt


def has_known_options(words: Sequence[str]) -> bool:
    """Whether a wrapper has only options that are known: `time -o FILE` writes a file.

    Args:
        words: The wrapper, its options and the command behind them.
    """
    found = WRAPPERS.get(words[0].rpartition("/")[2])
    return found is not None and not skip_options([Word(text) for text in words[1:]], found)[1]


def awaits_value(option: str, values: frozenset[str]) -> bool:
    """Whether the next word is the value of an abbreviated option, or of the last of several joined letters."""
    if option[:2] == "--":
        return "=" not in option and any(value.startswith(option) for value in values)
    letters = [f"-{letter}" in values for letter in option[1:]]
    return any(letters) and letters.index(True) == len(letters) - 1
