"""The search for a text in records: the query as records hold it, the pattern for databases, and the excerpt."""

import json

_AROUND_CHARS = 60


def make_like_pattern(query: str) -> str:
    """Return the pattern of SQL's LIKE, with `!` as its escape character, for texts that contain a query."""
    return f"%{query.replace('!', '!!').replace('%', '!%').replace('_', '!_')}%"


def escape_query(text: str) -> str:
    """Return the text as it appears inside the JSON of a record."""
    written = json.dumps(text, ensure_ascii=False)[1:-1]
    return written.encode(errors="backslashreplace").decode()  # as records hold lone surrogates


def find_text(body: str, query: str) -> int:
    """Return where a text contains a query, ignoring the case of ASCII letters as databases do; -1 if it does not."""
    # of bytes, only ASCII letters have a case; a pattern would take four times as long
    searched, wanted = (text.encode(errors="surrogatepass").lower() for text in (body, query))
    at = searched.find(wanted)
    return at if at < 0 else len(searched[:at].decode(errors="surrogatepass"))


def make_excerpt(body: str, query: str) -> str:
    """Return the text around the first match."""
    at = max(find_text(body, query), 0)
    start, end = max(at - _AROUND_CHARS, 0), at + len(query) + _AROUND_CHARS
    return f"{'…' if start else ''}{body[start:end]}{'…' if end < len(body) else ''}"
