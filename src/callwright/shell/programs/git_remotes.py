"""Lists the remotes that a git call connects to, wherever their addresses stand."""

import re
from collections.abc import Iterator, Sequence

from callwright.core.access import Reach
from callwright.core.uri import ADDRESS
from callwright.shell.words import Word

_USES_REMOTE = frozenset("push pull fetch clone ls-remote fetch-pack send-pack request-pull".split())
_SHORT = re.compile(r"[^/:]+:(?!:)")  # host:path
_CLEARLY_SHORT = re.compile(r"[^/:]*[.@][^/:]*:(?!:)")
_HAS_REFSPECS = frozenset(("push", "pull", "fetch"))
_REMOTE_OPTION = re.compile(r"--(?:rep|rem|bun)[a-z-]*=(.+)")


def list_remotes(verb: str, words: Sequence[Word], before: Sequence[Word]) -> tuple[Reach, ...]:
    """Return the remotes of a call; of several words that may be one, all.

    Args:
        verb: The sub-command.
        words: The words behind it.
        before: The words before it, which may name a proxy.
    """
    texts = [word.text for word in words]
    if verb == "archive":
        connects = any(text.startswith("--rem") for text in texts)
    else:
        connects = verb in _USES_REMOTE or _asks_remote(verb, texts)
    if not connects:
        return ()
    operands = [text for text in texts if text[:1] != "-" and not text.isdigit()]
    if verb in ("remote", "submodule"):
        operands = operands[1:]  # add, update
    short = _CLEARLY_SHORT if verb in _HAS_REFSPECS else _SHORT  # HEAD:main is no host
    found = [*operands[:1], *_list_addresses(texts, short), *_list_addresses([word.text for word in before], short)]
    return tuple(Reach(text) for text in dict.fromkeys(found or ["origin"]))


def _list_addresses(texts: Sequence[str], short: re.Pattern[str]) -> Iterator[str]:
    for text in texts:
        option = _REMOTE_OPTION.match(text)
        if url := ADDRESS.search(text):
            yield url[0]
        elif option or (text[:1] != "-" and short.match(text)):
            yield option[1] if option else text


def _asks_remote(verb: str, texts: Sequence[str]) -> bool:
    """Whether a call below `submodule` or `remote` connects to a remote."""
    if verb == "submodule":
        return bool({"add", "update"} & set(texts))
    if verb != "remote":
        return False
    if "add" in texts:
        return any(text.startswith("--f") or (text[:1] == "-" and text[1:2] != "-" and "f" in text) for text in texts)
    return bool({"update", "prune", "show"} & set(texts)) or (
        "set-head" in texts and any("-a" in text for text in texts)
    )
