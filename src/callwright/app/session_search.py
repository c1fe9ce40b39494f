"""Finds what was said and done in sessions; a search of the store also finds the names of fields in its records."""

from collections.abc import Iterator

from callwright.core.content import Text
from callwright.core.json import list_scalars
from callwright.core.messages import AssistantMessage, Message, ToolMessage, UserMessage
from callwright.providers.encoding import read_arguments
from callwright.sessions.base import SessionDamaged, SessionHit, SessionStore
from callwright.sessions.records import Compacted, Ended, Record, Said
from callwright.sessions.text_search import find_text, make_excerpt


async def find_excerpt(store: SessionStore, hit: SessionHit, query: str) -> str | None:
    """Return the text around a query in what the user, the model or a tool said.

    Args:
        store: Where the session is.
        hit: A record that `store.search` found.
        query: The text that was searched for.

    Returns:
        The text; None if the query is only in other parts of the record, or the record cannot be read.
    """
    try:
        stored = await store.read_from(hit.session_id, hit.position, limit=1)
    except SessionDamaged:
        return None
    texts = (text for each in stored for text in _record_texts(each.record))
    return next((make_excerpt(text, query) for text in texts if find_text(text, query) >= 0), None)


def _record_texts(record: Record) -> Iterator[str]:
    match record:
        case Said(message):
            yield from _message_texts(message)
        case Ended(outcome):
            yield outcome.text
        case Compacted(messages):
            for message in messages:
                yield from _message_texts(message)
        case _:
            pass


def _message_texts(message: Message) -> Iterator[str]:
    match message:
        case UserMessage(str() as content):
            yield content
        case UserMessage(parts):
            yield from (part.text for part in parts if isinstance(part, Text))
        case AssistantMessage():
            yield message.text
            for call in message.calls:
                yield call.name
                yield from (found for found in list_scalars(read_arguments(call)) if isinstance(found, str))
        case ToolMessage(outcomes):
            yield from (outcome.text for outcome in outcomes)
