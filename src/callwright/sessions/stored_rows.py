"""What stores have in common: limits of what they keep and return, and the records of stored rows."""

from collections.abc import Callable, Iterable
from typing import cast

from callwright.sessions.base import SessionDamaged, StoredRecord
from callwright.sessions.message_encoding import UnreadableRecord
from callwright.sessions.record_encoding import load_record
from callwright.sessions.records import Record, find_first_prompt

_MOST_FAULTS = 100
_END_OF_TIME = 253_402_214_400.0
"""The last day of the year 9999, after which there are no dates."""
_MOST_OUTPUT_CHARS = 20_000_000
_MOST_ROWS = 2**31 - 1
_TITLE_CHARS = 80


def make_title(records: Iterable[Record], redact: Callable[[str], str] = str) -> str:
    """Return the title of a session that begins with these records."""
    return redact(find_first_prompt(records))[:_TITLE_CHARS]


def limit_output(text: str) -> str:
    """Return a text of a length that a store keeps: both ends of a longer one."""
    missing = len(text) - _MOST_OUTPUT_CHARS
    if missing <= 0:
        return text
    half = _MOST_OUTPUT_CHARS // 2
    return f"{text[:half]}\n[{missing} characters were too many to keep]\n{text[-half:]}"


def limit_rows(number: int) -> int:
    """Return a number of rows as every database takes it: a negative one as 0, and one that is too large cut."""
    return min(max(number, 0), _MOST_ROWS)


def read_time(stored: object) -> float:
    """Return a stored time; 0 if it is damaged: programs take it for a date."""
    return float(stored) if isinstance(stored, (int, float)) and 0 <= stored < _END_OF_TIME else 0.0


def load_records(session_id: str, rows: Iterable[tuple[int, float, object]], position: int) -> list[StoredRecord]:
    """Return the records of stored rows.

    Args:
        session_id: The session, for messages.
        rows: Position, time and body of each record, in order.
        position: Where the first of them should be.

    Raises:
        SessionDamaged: Records are missing or cannot be read; the exception has the others.
    """
    readable: list[StoredRecord] = []
    faults: dict[int, str] = {}
    expected = position
    for found, at, body in rows:
        if not isinstance(cast(object, found), int):  # SQLite keeps any kind of value in a column
            faults[expected] = "its position is damaged"
            continue
        for missing in range(expected, min(found, expected + _MOST_FAULTS)):
            faults[missing] = "it is missing"
        expected = found + 1
        try:
            if not isinstance(body, (bytes, str)):
                raise UnreadableRecord("it is empty")
            readable.append(StoredRecord(found, read_time(at), load_record(body)))
        except UnreadableRecord as error:
            faults[found] = str(error)
    if faults:
        raise SessionDamaged(session_id, faults, readable)
    return readable
