"""Bytes to text and back without losing a byte: byte order marks, UTF-8, UTF-16, UTF-32 and Latin-1."""

import codecs
from dataclasses import dataclass

_MARKS = (  # UTF-32 first: its little-endian mark starts like that of UTF-16
    (codecs.BOM_UTF32_LE, "utf-32-le"),
    (codecs.BOM_UTF32_BE, "utf-32-be"),
    (codecs.BOM_UTF8, "utf-8"),
    (codecs.BOM_UTF16_LE, "utf-16-le"),
    (codecs.BOM_UTF16_BE, "utf-16-be"),
)
_SIGNATURES = (b"%PDF-", b"PK\x03\x04", b"\x7fELF", b"\x1f\x8b", b"GIF8", b"\xff\xd8\xff", b"\x89PNG")
_TEXT_CONTROLS = frozenset(b"\t\n\r\f\b\x1b")
_CONTROLS = bytes(sorted(set(range(32)) - _TEXT_CONTROLS)) + b"\x7f"
_MOST_CONTROLS = 0.1
_UTF8_TAIL = 3


@dataclass(frozen=True, slots=True)
class Encoding:
    """How a file's bytes stand for text."""

    name: str = "utf-8"
    mark: bytes = b""
    """The byte order mark it starts with."""

    def decode(self, data: bytes) -> str:
        """Read bytes after the mark; what is not UTF-8 is kept as lone surrogates, so that it can be written back."""
        return data.decode(self.name, "surrogateescape" if self.name == "utf-8" else "surrogatepass")

    def encode(self, text: str) -> bytes:
        """Write text the way it was read, without the mark; raises `UnicodeEncodeError` where it has no such letter."""
        return text.encode(self.name, "surrogateescape" if self.name == "utf-8" else "surrogatepass")


def detect(head: bytes, *, whole: bool = True) -> Encoding | None:
    """Tell the encoding from a file's first bytes, which may end inside a character unless `whole`; None is binary."""
    for mark, name in _MARKS:
        if head.startswith(mark):
            return Encoding(name, mark)
    if head.startswith(_SIGNATURES):
        return None
    if b"\0" in head:
        return _wide(head)
    if len(head.translate(None, _CONTROLS)) < len(head) * (1 - _MOST_CONTROLS):
        return None
    return Encoding() if _is_utf8(head, whole=whole) or _mostly_utf8(head) else Encoding("latin-1")


def _is_utf8(head: bytes, *, whole: bool) -> bool:
    try:
        head.decode()
    except UnicodeDecodeError as error:
        return not whole and error.reason == "unexpected end of data" and error.start >= len(head) - _UTF8_TAIL
    return True


def _mostly_utf8(head: bytes) -> bool:
    """Whether more of the letters beyond ASCII are UTF-8 than not: a few broken bytes do not make it Latin-1."""
    text = head.decode("utf-8", "surrogateescape")
    broken = sum("\udc80" <= letter <= "\udcff" for letter in text)
    return sum(letter > "\x7f" for letter in text) > 2 * broken


def _wide(head: bytes) -> Encoding | None:
    """UTF-16 without a mark: text with a zero in every other byte and none in between."""
    even, odd = head[0::2], head[1::2]
    for zeros, letters, name in ((odd, even, "utf-16-le"), (even, odd, "utf-16-be")):
        if b"\0" not in letters and zeros.count(0) > len(zeros) * 0.7 and not _CONTROL_SET.intersection(letters):
            return Encoding(name)
    return None


_CONTROL_SET = frozenset(_CONTROLS)
