"""HTML to tokens, in time proportional to the page: the standard library's parser is quadratic on hostile ones."""

import re
from collections.abc import Iterator
from html import unescape
from typing import NamedTuple

_TEXT = re.compile(r"(?:[^<]+|<(?![a-zA-Z/!?]))+")
_NAME = re.compile(r"[a-zA-Z][^\s/>]*")
_GAP = re.compile(r"[\s/]+")
_ATTRIBUTE = re.compile(r"([^\s/>][^\s/>=]*)(?:\s*=\s*)?")
_BARE = re.compile(r"[^\s>]*")
_RAW = {
    name: re.compile(rf"</{name}(?=[\s/>])", re.IGNORECASE)
    for name in ("script", "style", "iframe", "noembed", "noframes", "textarea", "title")
}
_READABLE = frozenset({"title", "textarea"})


class Start(NamedTuple):
    """An opening tag; attributes by their lower-case names."""

    name: str
    attributes: dict[str, str]


class End(NamedTuple):
    """A closing tag."""

    name: str


def tokens(html: str) -> Iterator[Start | End | str]:
    """Take a page apart as a browser would: what is never closed reaches to the end of the page."""
    place = 0
    while 0 <= place < len(html):
        if found := _TEXT.match(html, place):
            yield unescape(found[0])
            place = found.end()
        elif html.startswith("<!--", place):
            place = _after(html, "-->", place + 2)
        elif name := _NAME.match(html, place + 1):
            attributes, place = _attributes(html, name.end())
            if place >= 0:
                tag = name[0].lower()
                yield Start(tag, attributes)
                if tag in _RAW:
                    text, place = _raw(html, tag, place)
                    yield text
        else:
            if html.startswith("</", place) and (name := _NAME.match(html, place + 2)):
                yield End(name[0].lower())
            place = _after(html, ">", place)


def _after(html: str, mark: str, place: int) -> int:
    found = html.find(mark, place)
    return -1 if found < 0 else found + len(mark)


def _attributes(html: str, place: int) -> tuple[dict[str, str], int]:
    attributes: dict[str, str] = {}
    while place < len(html):
        if gap := _GAP.match(html, place):
            place = gap.end()
        elif html[place] == ">":
            return attributes, place + 1
        else:
            name = _ATTRIBUTE.match(html, place)
            if name is None:
                break
            value, place = ("", name.end()) if "=" not in name[0][len(name[1]) :] else _value(html, name.end())
            if place < 0:
                break
            attributes.setdefault(name[1].lower(), value)
    return attributes, -1


def _value(html: str, place: int) -> tuple[str, int]:
    quote = html[place : place + 1]
    if quote in ("'", '"') and quote:
        end = html.find(quote, place + 1)
        return (unescape(html[place + 1 : end]), end + 1) if end >= 0 else ("", -1)
    bare = _BARE.match(html, place)
    return (unescape(bare[0]), bare.end()) if bare else ("", place)


def _raw(html: str, tag: str, place: int) -> tuple[str, int]:
    found = _RAW[tag].search(html, place)
    end = found.start() if found else len(html)
    return unescape(html[place:end]) if tag in _READABLE else "", end
