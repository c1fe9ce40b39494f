"""Converts HTML to Markdown: structure, links, code and tables; no scripts, no styles.

The tokenizer is our own because the standard library's parser takes quadratic time on hostile pages.
"""

import re
from collections.abc import Callable, Iterator
from html import unescape
from typing import NamedTuple
from urllib.parse import urljoin

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
    closed: bool = False
    """Whether it ends in `/>`."""


class End(NamedTuple):
    """A closing tag."""

    name: str


def tokens(html: str) -> Iterator[Start | End | str]:
    """Yield the tokens of a page as a browser reads it: what is never closed reaches to the end of the page."""
    place = 0
    while 0 <= place < len(html):
        if found := _TEXT.match(html, place):
            yield unescape(found[0])
            place = found.end()
        elif html.startswith("<!--", place):
            place = _after(html, "-->", place + 2)
        elif name := _NAME.match(html, place + 1):
            attributes, closed, place = _attributes(html, name.end())
            if place >= 0:
                tag = name[0].lower()
                yield Start(tag, attributes, closed)
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


def _attributes(html: str, place: int) -> tuple[dict[str, str], bool, int]:
    attributes: dict[str, str] = {}
    closed = False
    while place < len(html):
        if gap := _GAP.match(html, place):
            closed, place = gap[0].endswith("/"), gap.end()
        elif html[place] == ">":
            return attributes, closed, place + 1
        else:
            closed = False
            name = _ATTRIBUTE.match(html, place)
            if name is None:
                break
            value, place = ("", name.end()) if "=" not in name[0][len(name[1]) :] else _value(html, name.end())
            if place < 0:
                break
            attributes.setdefault(name[1].lower(), value)
    return attributes, closed, -1


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


_SKIPPED = frozenset({"script", "style", "noscript", "template", "svg", "iframe", "object", "canvas", "select"})
_BLOCKS = frozenset(
    {"p", "div", "section", "article", "main", "header", "footer", "aside", "nav", "figure", "figcaption", "form"}
    | {"ul", "ol", "dl", "dt", "dd", "address", "details", "summary", "fieldset", "table", "blockquote", "body"}
)
_MARKS = {"strong": "**", "b": "**", "em": "*", "i": "*", "del": "~~", "s": "~~"}
_HEADINGS = {f"h{level}": level for level in range(1, 7)}
_SPACE = re.compile(r"\s+")
_LANGUAGE = re.compile(r"\b(?:language|lang|highlight-source)-([\w+#-]+)")
_MAX_DEPTH = 20


class Page(NamedTuple):
    """The title and text of a page."""

    title: str
    text: str


def html_to_markdown(html: str, base: str = "") -> Page:
    """Convert a page to Markdown; relative links are resolved against `base`."""
    writer = _MarkdownWriter(base)
    for token in tokens(html):
        if isinstance(token, str):
            writer.read(token)
        elif isinstance(token, Start):
            if token.closed and token.name == "svg":  # of the elements left out, only here does `/>` close
                continue
            writer.start(token.name, token.attributes)
        else:
            writer.end(token.name)
    return Page(_SPACE.sub(" ", "".join(writer.title)).strip(), writer.finish())


class _MarkdownWriter:
    """Builds Markdown from the tokens of a page."""

    def __init__(self, base: str) -> None:
        self.title: list[str] = []
        self._base = base
        self._out: list[str] = []
        self._newlines = 0
        self._lists: list[int | None] = []
        self._links: list[tuple[str, int]] = []
        self._quotes = self._skipping = self._pre = self._code = 0
        self._in_title = self._at_marker = False
        self._row: list[str] | None = None
        self._rows = 0
        self._cell_begins = 0
        self._in_cell = False
        self._opens: dict[str, Callable[[dict[str, str]], None]] = {
            "a": self._open_link,
            "br": lambda _: self._break(1),
            "hr": self._rule,
            "img": self._image,
            "li": self._item,
            "ol": lambda _: self._lists.append(1),
            "ul": lambda _: self._lists.append(None),
            "pre": self._open_pre,
            "table": self._open_table,
            "tr": self._open_row,
            "td": self._open_cell,
            "th": self._open_cell,
        }
        self._closes: dict[str, Callable[[], None]] = {
            "a": self._close_link,
            "ol": self._close_list,
            "ul": self._close_list,
            "pre": self._close_pre,
            "tr": self._close_row,
            "td": self._close_cell,
            "th": self._close_cell,
        }

    def finish(self) -> str:
        """Close open links and rows and return the text."""
        while self._links:
            self._close_link()
        self._close_row()
        return "".join(self._out).strip()

    def start(self, tag: str, attributes: dict[str, str]) -> None:
        if tag in _SKIPPED:
            self._skipping += 1
        if self._skipping:
            return
        if tag == "title":
            self._in_title = True
        elif tag in _HEADINGS:
            self._break(2)
            self._write("#" * _HEADINGS[tag] + " ")
        elif tag in _BLOCKS:
            self._break(1 if tag in ("ul", "ol", "dd") and self._lists else 2)
        self._quotes += tag == "blockquote" and self._quotes < _MAX_DEPTH
        self._mark(tag, opening=True)
        if tag in self._opens:
            self._opens[tag](attributes)

    def end(self, tag: str) -> None:
        if tag in _SKIPPED:
            self._skipping = max(0, self._skipping - 1)
        if self._skipping:
            return
        if tag == "title":
            self._in_title = False
        self._mark(tag, opening=False)
        if tag in self._closes:
            self._closes[tag]()
        if tag in _HEADINGS or tag in _BLOCKS:
            self._break(1 if tag in ("ul", "ol") and self._lists else 2)
        if tag == "blockquote":
            self._quotes = max(0, self._quotes - 1)

    def read(self, data: str) -> None:
        if self._in_title:
            self.title.append(data)
        elif self._skipping:
            return
        elif self._pre:
            self._write(data)
        else:
            self._flow(_SPACE.sub(" ", data))

    def _flow(self, text: str) -> None:
        if text[:1] == " " and (self._newlines or not self._out or self._out[-1][-1:] in (" ", "\n")):
            text = text[1:]
        if text:
            self._write(text)

    def _write(self, text: str) -> None:
        if self._newlines:
            lines = "\n" * self._newlines if self._out else ""
            self._out.append(lines + "> " * self._quotes)
            self._newlines = 0
        self._at_marker = False
        self._out.append(text)

    def _break(self, count: int) -> None:
        if self._row is not None:
            self._flow(" ")  # a cell is one line
        elif not self._pre and not self._at_marker:
            self._newlines = max(self._newlines, count)

    def _mark(self, tag: str, *, opening: bool) -> None:
        if tag == "code" and not self._pre and (opening or self._code):
            self._code += 1 if opening else -1
            self._write("`")
        elif tag in _MARKS and not self._pre and not self._code:
            self._write(_MARKS[tag])

    def _open_link(self, attributes: dict[str, str]) -> None:
        if self._links:
            self._close_link()
        self._write("")
        self._links.append((attributes.get("href", ""), len(self._out)))

    def _close_link(self) -> None:
        if not self._links:
            return
        href, begins = self._links.pop()
        text = _SPACE.sub(" ", "".join(self._out[begins:])).strip()
        target = self._absolute(href)
        if text and target:
            self._out[begins:] = [f"[{text}]({target})"]

    def _absolute(self, href: str) -> str:
        try:
            target = urljoin(self._base, href.strip())
        except ValueError:
            return ""
        is_web = target.startswith(("http://", "https://", "mailto:"))
        return "" if href[:1] in ("", "#") or not is_web else target.replace(" ", "%20").replace(")", "%29")

    def _image(self, attributes: dict[str, str]) -> None:
        source = self._absolute(attributes.get("src", ""))
        if attributes.get("alt", "").strip() and source:
            self._flow(f"![{_SPACE.sub(' ', attributes['alt']).strip()}]({source})")

    def _rule(self, _: dict[str, str]) -> None:
        self._break(2)
        self._write("---")
        self._break(2)

    def _item(self, _: dict[str, str]) -> None:
        self._at_marker = False
        self._break(1)
        number = self._lists[-1] if self._lists else None
        if number is not None:
            self._lists[-1] = number + 1
        depth = min(len(self._lists), _MAX_DEPTH)
        self._write("  " * max(0, depth - 1) + ("- " if number is None else f"{number}. "))
        self._at_marker = True  # a paragraph inside an item starts on the line of its marker

    def _close_list(self) -> None:
        if self._lists:
            self._lists.pop()

    def _open_pre(self, attributes: dict[str, str]) -> None:
        self._break(2)
        language = _LANGUAGE.search(attributes.get("class", ""))
        self._write(f"```{language[1] if language else ''}\n")
        self._pre += 1

    def _close_pre(self) -> None:
        if self._pre:
            self._pre -= 1
            self._write("```" if self._out[-1].endswith("\n") else "\n```")
            self._break(2)

    def _open_table(self, _: dict[str, str]) -> None:
        self._in_cell = False  # a cell that holds a table is not an empty one

    def _open_row(self, _: dict[str, str]) -> None:
        self._close_row()
        self._break(1)
        self._rows = 0 if self._newlines > 1 else self._rows
        self._write("")
        self._row = []
        self._cell_begins = len(self._out)

    def _open_cell(self, _: dict[str, str]) -> None:
        self._close_cell()
        self._in_cell = self._row is not None

    def _close_cell(self) -> None:
        if self._row is None:
            return
        while self._links:
            self._close_link()
        text = _SPACE.sub(" ", "".join(self._out[self._cell_begins :])).strip()
        del self._out[self._cell_begins :]
        if text or self._in_cell:
            self._row.append(text.replace("|", "\\|"))
        self._in_cell = False

    def _close_row(self) -> None:
        if self._row is None:
            return
        self._close_cell()
        cells, self._row = self._row, None
        if any(cells):
            self._write(f"| {' | '.join(cells)} |")
            if self._rows == 0:
                self._write(f"\n| {' | '.join('---' for _ in cells)} |")
            self._rows += 1
            self._break(1)
