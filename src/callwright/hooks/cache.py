"""`Cache`: the same question asked twice is answered once."""

from collections import OrderedDict

from callwright.core.call import Completed, Outcome
from callwright.core.content import Output
from callwright.core.errors import UsageError
from callwright.core.json import canonical
from callwright.core.spec import Effect
from callwright.hooks.base import Answer, Hook, PendingCall, Verdict


class Cache(Hook):
    """Remembers the outputs of READ tools by exact arguments and session; anything that writes empties it."""

    def __init__(self, entries: int = 256) -> None:
        if entries < 1:
            raise UsageError(f"Cache.entries must be at least 1, not {entries!r}")
        self.entries = entries
        self._known: OrderedDict[str, Output] = OrderedDict()

    def before(self, pending: PendingCall) -> Verdict | None:
        if pending.spec.annotations.effect is not Effect.READ:
            self._known.clear()  # what was read may be what is about to change
            return None
        key = self._key(pending)
        if key not in self._known:
            return None
        self._known.move_to_end(key)
        return Answer(self._known[key])

    def after(self, pending: PendingCall, outcome: Outcome) -> Outcome | None:
        if isinstance(outcome, Completed) and pending.spec.annotations.effect is Effect.READ:
            self._known[self._key(pending)] = outcome.output
            if len(self._known) > self.entries:
                self._known.popitem(last=False)
        return None

    def _key(self, pending: PendingCall) -> str:
        return canonical([pending.session_id, pending.spec.name, pending.arguments])
