"""The routes of figures: costs by day, model, tool and session, and the timeline of a session's turns."""

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from starlette.requests import Request
from starlette.routing import Route

from callwright.app.costs import CopiedRecords
from callwright.core.calls import Completed, Outcome, ToolCall
from callwright.core.messages import AssistantMessage, ToolMessage, Usage
from callwright.providers.pricing import Prices
from callwright.sessions import SessionError, SessionStore
from callwright.sessions.base import SessionEntry, StoredRecord, read_readable
from callwright.sessions.records import Answered, Asked, Began, Compacted, Ended, Said, Spent, Started
from callwright.stats import Stats
from callwright.web.api import Fields, route, take_int, take_text
from callwright.web.hub import Hub
from callwright.web.workspace import WebWorkspace

_MOST_SESSIONS = 1_000
_DAY_SECONDS = 86_400
_LEAST_WAIT_SECONDS = 0.002
_INNER = "sub-agents"
"""Stands for the models of sub-agents, which a session's records do not name."""
_TURN_RECORDS = 12
"""About how many records a turn has, to read only as many as are needed."""


@dataclass(slots=True)
class _Spent:
    usd: float = 0.0
    tokens: int = 0
    unpriced_tokens: int = 0
    messages: int = 0
    usage: Usage = Usage()
    by_model: dict[str, float] = field(default_factory=dict[str, float])

    def add(self, model: str, usage: Usage, cost: float | None) -> None:
        self.usd += cost or 0.0
        self.tokens += usage.total
        self.unpriced_tokens += usage.total if cost is None else 0
        self.messages += 1
        self.usage += usage
        self.by_model[model] = self.by_model.get(model, 0.0) + (cost or 0.0)


@dataclass(frozen=True, slots=True)
class _Figures:
    """What figures need of a record: what a request used, or the calls that ended. Texts are left out."""

    position: int
    at: float
    model: str = ""
    usage: Usage = Usage()
    cost: float | None = None
    """Known for sub-agents; anything else is priced by its model."""
    calls: Sequence["_Completed | Outcome"] = ()


@dataclass(frozen=True, slots=True)
class _Completed:
    name: str
    attempts: int
    seconds: float
    chars: int


class FigureRoutes:
    """Answers the requests for figures.

    Args:
        hub: The session file and the running agents.
        workspace: The app without a model, for prices.
    """

    def __init__(self, hub: Hub, workspace: WebWorkspace) -> None:
        self._hub = hub
        self._workspace = workspace
        self._read: dict[str, tuple[int, Sequence[_Figures]]] = {}

    def routes(self) -> list[Route]:
        """Return the routes."""
        return [route("/api/costs", self.costs), route("/api/timeline", self.timeline)]

    async def costs(self, request: Request) -> Fields:
        days = take_int(request, "days", 30, least=1, most=3650)
        prices_of, since = await self._workspace.prices(), time.time() - days * _DAY_SECONDS
        total, by_day, by_model = _Spent(), dict[str, _Spent](), dict[str, _Spent]()
        stats, sessions = Stats(), list[Fields]()
        store = self._hub.store
        entries: Sequence[SessionEntry] = () if store is None else await store.list(limit=_MOST_SESSIONS)
        copied = CopiedRecords()
        for entry in sorted(entries, key=lambda each: each.created_at):
            if store is None or entry.updated_at < since:
                continue
            spent = _Spent()
            for figures in copied.leave_out(entry, await self._figures(store, entry)):
                if figures.at >= since:
                    _count(figures, prices_of, (total, spent), by_day, by_model, stats)
            if spent.messages:
                used = {"usd": round(spent.usd, 6), "tokens": spent.tokens}
                sessions.append({"id": entry.session_id, "title": entry.title, **used})
        sessions.sort(key=lambda each: (-each["usd"], -each["tokens"]))
        return {
            "days": [_day_fields(day, spent) for day, spent in sorted(by_day.items())],
            "models": [_model_fields(model, spent) for model, spent in sorted(by_model.items())],
            "tools": list(_tool_figures(stats)),
            "sessions": sessions[:100],
            "total": {"usd": round(total.usd, 6), "unpriced_tokens": total.unpriced_tokens, "tokens": total.tokens},
        }

    async def _figures(self, store: SessionStore, entry: SessionEntry) -> Sequence[_Figures]:
        """Return the figures of a session; read again only if it has grown."""
        known = self._read.get(entry.session_id)
        if known is not None and known[0] == entry.records:
            return known[1]
        try:
            found = await read_readable(store, entry.session_id)
        except SessionError:  # deleted meanwhile
            found = ()
        kept = list(_keep_figures(found))
        self._read[entry.session_id] = (entry.records, kept)
        return kept

    async def timeline(self, request: Request) -> Fields:
        session_id = take_text(request, "id")
        turns = take_int(request, "turns", 20, least=1, most=500)
        store, link = self._hub.store, self._hub.agents.find(session_id)
        if store is None:
            return {"turns": []}
        entry = await store.find(session_id)
        start = max(entry.records - turns * _TURN_RECORDS, 0) if entry is not None else 0
        stored = await read_readable(store, session_id, start)
        found = enumerate(_find_turns(stored, {} if link is None else link.waits), 1)
        # of a long session only the end is read, where the number of a turn is not known
        numbered = [{**turn, "number": None if start else number} for number, turn in found]
        return {"turns": numbered[-turns:]}


def _keep_figures(found: Sequence[StoredRecord]) -> Iterator[_Figures]:
    """Yield what figures need of the records of a session."""
    model = ""
    for stored in found:
        position, at = stored.position, stored.at
        match stored.record:
            case Said(AssistantMessage() as message):
                model = message.model or model
                yield _Figures(position, at, model, message.usage)
            case Said(ToolMessage(outcomes)):
                yield _Figures(position, at, calls=tuple(map(_without_texts, outcomes)))
            case Spent(usage, float() | int() as cost):
                yield _Figures(position, at, _INNER, usage, cost)
            case Compacted(_, usage) | Spent(usage):  # does not name its model: it was the last one before
                yield _Figures(position, at, model, usage)
            case _:
                pass


def _without_texts(outcome: Outcome) -> _Completed | Outcome:
    if isinstance(outcome, Completed):
        return _Completed(outcome.call.name, outcome.attempts, outcome.seconds, len(outcome.text))
    return replace(outcome, call=ToolCall(outcome.call.id, outcome.call.name, ""))


def _count(
    figures: _Figures,
    prices_of: Callable[[str], Prices | None],
    spent: Sequence[_Spent],
    by_day: dict[str, _Spent],
    by_model: dict[str, _Spent],
    stats: Stats,
) -> None:
    for call in figures.calls:
        if isinstance(call, _Completed):
            stats.tally(call.name).note("completed", call.attempts, call.seconds, 0, call.chars)
        else:
            stats.record(call.call.name, call)
    model, usage, cost = figures.model, figures.usage, figures.cost
    if cost is None:
        if not usage.total:
            return
        prices = prices_of(model)
        cost = None if prices is None else prices.request_cost(usage)
    day = time.strftime("%Y-%m-%d", time.localtime(figures.at))
    for target in (*spent, by_day.setdefault(day, _Spent()), by_model.setdefault(model, _Spent())):
        target.add(model, usage, cost)


def _day_fields(day: str, spent: _Spent) -> Fields:
    models = {model: round(usd, 6) for model, usd in spent.by_model.items()}
    return {"day": day, "usd": round(spent.usd, 6), "tokens": spent.tokens, "models": models}


def _model_fields(model: str, spent: _Spent) -> Fields:
    usage = spent.usage
    tokens = {"input_tokens": usage.input_tokens, "output_tokens": usage.output_tokens}
    cached = {"cache_read_tokens": usage.cache_read_tokens, "cache_write_tokens": usage.cache_write_tokens}
    known = {"usd": round(spent.usd, 6), "unpriced_tokens": spent.unpriced_tokens, "messages": spent.messages}
    return {"model": model, **known, **tokens, **cached}


def _tool_figures(stats: Stats) -> Iterator[Fields]:
    for tool in stats:
        yield {
            "name": tool.name,
            "calls": tool.calls,
            "failed": tool.calls - tool.outcomes.get("completed", 0),
            "p50": tool.seconds_p50,
            "p95": tool.seconds_p95,
            "max": tool.seconds_max,
            "total": tool.seconds_total,
            "tokens": tool.tokens_out,
        }


@dataclass(slots=True)
class _Call:
    name: str
    asked: float = 0.0
    answered: float = 0.0
    began: float = 0.0
    ended: float = 0.0
    seconds: float = 0.0
    attempts: int = 1
    ok: bool = True


def _find_turns(stored: Sequence[StoredRecord], waits: Mapping[str, Sequence[str]]) -> Iterator[Fields]:
    """Yield the turns with calls among records: when each call was asked about, waited and ran."""
    turn: StoredRecord | None = None
    calls: dict[str, _Call] = {}
    before, model_began = 0.0, 0.0
    for each in stored:
        match each.record:
            case Said(AssistantMessage() as message) if message.calls:
                turn, model_began = each, before
                calls = {call.id: _Call(call.name) for call in message.calls}
            case Said(ToolMessage(outcomes)) if turn is not None:
                for outcome in outcomes:
                    _end(calls, outcome, each.at)
                yield _turn_fields(turn, model_began, each.at, calls, waits)
                turn = None
            case Asked(questions):
                for question in questions:
                    if question.call_id in calls:
                        calls[question.call_id].asked = calls[question.call_id].asked or each.at
            case Answered():
                for call in calls.values():
                    call.answered = each.at if call.asked else call.answered
            case Began(digests):
                for call_id in digests:
                    if call_id in calls:
                        calls[call_id].began = each.at
            case Started(call_ids):
                for call_id in call_ids:
                    if call_id in calls:
                        calls[call_id].began = calls[call_id].began or each.at
            case Ended(outcome):
                _end(calls, outcome, each.at)
            case _:
                pass
        before = each.at
    if turn is not None:
        yield _turn_fields(turn, model_began, 0.0, calls, waits)


def _end(calls: Mapping[str, _Call], outcome: Any, at: float) -> None:
    call = calls.get(outcome.call.id)
    if call is not None and not call.ended:
        call.ended, call.seconds, call.attempts = at, outcome.seconds, outcome.attempts
        call.ok = not hasattr(outcome, "error")


def _turn_fields(
    turn: StoredRecord, model_began: float, ended: float, calls: Mapping[str, _Call], waits: Mapping[str, Sequence[str]]
) -> Fields:
    began = turn.at
    model_seconds = max(began - model_began, 0.0) if model_began else 0.0
    shown = [
        {"id": call_id, "name": call.name, "ok": call.ok, "spans": _spans(call, began, waits.get(call_id, ()))}
        for call_id, call in calls.items()
    ]
    position = {"position": turn.position, "began": began, "ended": ended or None}
    return {**position, "model_seconds": round(model_seconds, 3), "calls": shown}


def _spans(call: _Call, origin: float, waits_on: Sequence[str]) -> list[Fields]:
    spans: list[Fields] = []
    if call.asked:
        until = call.answered or time.time()
        spans.append({"kind": "ask", "from": call.asked - origin, "to": until - origin})
    ready = max(call.began, call.answered, origin)
    if call.ended:
        run = max(call.ended - call.seconds, ready)
        if run - ready > _LEAST_WAIT_SECONDS or waits_on:
            spans.append({"kind": "wait", "from": ready - origin, "to": run - origin, "on": list(waits_on)})
        if call.seconds or call.ok:
            kind = "run" if call.attempts <= 1 else "retry"
            spans.append({"kind": kind, "from": run - origin, "to": call.ended - origin, "attempts": call.attempts})
    elif call.began:
        spans.append({"kind": "run", "from": call.began - origin, "to": time.time() - origin, "attempts": 1})
    return [{**span, "from": round(span["from"], 4), "to": round(max(span["to"], span["from"]), 4)} for span in spans]
