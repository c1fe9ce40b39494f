"""The questions an executor has asked, and the answers of one turn: each answer counts for one call, once."""

import os
import threading
import time
from collections.abc import Iterable, Sequence
from itertools import islice

from callwright.core._fast import replace
from callwright.core.calls import Interrupted, Outcome
from callwright.core.decisions import Answers, Approve, Decline, Question, Reply, digest_running
from callwright.core.json import JsonObject
from callwright.executor.admitted import Admitted, CarriedApproval

_MAX_QUESTIONS = 10_000
_MAX_USED = 100_000


def find_expiry(seconds: float | None) -> int:
    """Return the Unix time at which a question of now expires; 0 for never."""
    return 0 if seconds is None else int(time.time() + seconds) + 1


def ask_again(question: Question, seconds: float | None) -> Question:
    """Return an expired question as it is asked now, to be answered within that time; None for no limit."""
    return replace(question, expires_at=find_expiry(seconds), nonce=os.urandom(8).hex())


class Ledger:
    """The questions that were asked and not used yet. Executors that share a ledger accept each other's answers.

    Thread-safe. The oldest questions are dropped when there are too many; their answers lead to a new question.
    """

    def __init__(self) -> None:
        self._questions: dict[str, tuple[Question, object]] = {}
        self._used: dict[str, None] = {}
        self._carried: dict[str, CarriedApproval] = {}
        """By the questions that it waits for."""
        self._lock = threading.Lock()

    def add(self, question: Question, tool: object) -> None:
        """Add a question about a call of a tool."""
        with self._lock:
            self._questions[question.id] = (question, tool)
            if len(self._questions) > _MAX_QUESTIONS:
                for question_id in list(islice(self._questions, len(self._questions) - _MAX_QUESTIONS)):
                    del self._questions[question_id]

    def find(self, question_id: str) -> tuple[Question, object] | None:
        """Return an unused question with the tool it is about."""
        return self._questions.get(question_id)

    def is_used(self, question_id: str) -> bool:
        """Whether the answer to a question has let a call run."""
        return question_id in self._used

    def take(self, question_id: str, *, on_record: bool = False) -> bool:
        """Use a question up; False if another call has done so, or it was never asked.

        Args:
            question_id: The question.
            on_record: The caller vouches that it was asked, perhaps in another process.
        """
        with self._lock:
            asked = self._questions.pop(question_id, None) is not None
            if question_id in self._used or not (asked or on_record):
                return False
            self._used[question_id] = None
            if len(self._used) > _MAX_USED:
                del self._used[next(iter(self._used))]
            return True

    def give_back(self, question_ids: Iterable[str]) -> None:
        """Let answers count again whose call did not run after all."""
        with self._lock:
            for question_id in question_ids:
                self._used.pop(question_id, None)

    def carry(self, approval: CarriedApproval) -> None:
        """Keep the approval of a call until one of the questions inside it is answered."""
        with self._lock:
            approval.used = False
            self._carried.update(dict.fromkeys(approval.questions, approval))
            while len(self._carried) > _MAX_QUESTIONS:
                del self._carried[next(iter(self._carried))]

    def find_carried(self, question_id: str) -> CarriedApproval | None:
        """Return the approval of the call that waits for the answer to a question which may still be answered."""
        found, asked = self._carried.get(question_id), self._questions.get(question_id)
        return None if asked is None or asked[0].is_expired() else found

    def take_carried(self, approval: CarriedApproval) -> bool:
        """Use the approval of a call that waited; False if another call has done so."""
        with self._lock:
            used, approval.used = approval.used, True
            for question_id in approval.questions:
                self._carried.pop(question_id, None)
            return not used


class TurnAnswers:
    """The answers of one turn, found by what they are for.

    Args:
        answers: The replies by question id.
        ledger: The questions this executor has asked.
        on_record: Questions that the caller has on record and vouches for: from before a restart, for example.
    """

    def __init__(self, answers: Answers, ledger: Ledger, on_record: Iterable[Question] = ()) -> None:
        self._answers = answers
        self._ledger = ledger
        self._on_record = {question.id: question for question in on_record}
        self._claims: dict[str, Admitted] = {}
        self._repeated: set[str] = set()
        self._taken: list[tuple[Question, object]] = []

    def merge(self, more: Answers) -> None:
        """Add answers; a later answer to the same question replaces the earlier one."""
        self._answers = Answers({**dict(self._answers), **dict(more)})

    def for_inner_calls(self) -> "TurnAnswers":
        """Return the same answers for calls that a tool of this turn makes: one use for all of them together."""
        inner = TurnAnswers(self._answers, self._ledger)
        inner._on_record = self._on_record
        return inner

    def begin_pass(self, calls: Sequence[Admitted]) -> None:
        """Forget which call uses which answer, before these calls are admitted, perhaps once more."""
        self._claims = {}
        recalled: dict[str, Admitted] = {}
        for item in calls:
            self._recall_defaults(item, recalled)

    def _recall_defaults(self, admitted: Admitted, recalled: dict[str, Admitted]) -> None:
        """Give a call the defaults that were shown when the user was asked about it, if a tool makes them anew."""
        if not hasattr(admitted.invocation, "recall_defaults"):
            return
        for question_id, _ in reversed(list(self._answers)):
            shown = self._find_shown(question_id, admitted)
            if shown is not None and recalled.setdefault(question_id, admitted) is admitted:
                admitted.recall_defaults(shown)
                return

    def _find_shown(self, question_id: str, admitted: Admitted) -> JsonObject | None:
        """Return the arguments of a call as a question showed them, also if its answer was used; None if it is another.

        It permits nothing: what the call does with them must still be what was approved.
        """
        kept = self._ledger.find(question_id)
        question = self._on_record.get(question_id) if kept is None else kept[0]
        if question is not None and (question.call_id, question.tool) == (admitted.call.id, admitted.name):
            return question.arguments
        carried = self._ledger.find_carried(question_id)
        return None if carried is None or carried.call_id != admitted.call.id else carried.arguments

    def claim(self, admitted: Admitted, *, running: bool = False) -> tuple[Question, Reply] | None:
        """Return the last answer given for exactly this call and not claimed by another one; None if there is none.

        An answer that came too late counts only if it declines what a running call asked. Such a call must not run
        without an answer, so the caller is given a late approval too if there is nothing better, to ask again.
        """
        late: tuple[Question, Reply] | None = None
        for question_id, reply in reversed(list(self._answers)):
            question = self._find(question_id, admitted)
            if question is None or question.running is not running or question.call_id != admitted.call.id:
                continue
            if question_id in admitted.used_answers or self._claims.get(question_id, admitted) is not admitted:
                continue
            digest = admitted.approval_digest
            if question.digest != (digest_running(digest, question.kind, question.reason) if running else digest):
                continue
            if question.is_expired() and not (running and type(reply) is Decline):
                late = late or (question, reply)
                continue
            self._claims[question_id] = admitted
            return question, reply
        return late if running else None

    def find_edit(self, admitted: Admitted) -> tuple[Question, Reply] | None:
        """Return the answer with which the arguments of a call were changed before it ran and asked; None without one.

        It counts again, because it was used for the same call, and only if what the call asked has an answer now.
        """
        given = [(self._on_record.get(question_id), reply) for question_id, reply in self._answers]
        own = [(asked, reply) for asked, reply in given if asked is not None and asked.call_id == admitted.call.id]
        if not any(question.running and not self._ledger.is_used(question.id) for question, _ in own):
            return None
        for question, reply in reversed(own):
            edits = isinstance(reply, Approve) and reply.arguments is not None and not question.running
            fresh = question.id not in admitted.used_answers
            if edits and fresh and question.digest == admitted.approval_digest:
                self._repeated.add(question.id)
                return question, reply
        return None

    def find_carried(self, admitted: Admitted) -> CarriedApproval | None:
        """Return the approval of a call that ran and waited for what is answered now, if no other call has it."""
        for question_id, _ in self._answers:
            found = self._ledger.find_carried(question_id)
            if found is not None and found.is_for(admitted):
                holder = self._claims.setdefault(f"inside {found.questions[0]}", admitted)
                return found if holder is admitted else None
        return None

    def take(self, question_id: str) -> bool:
        """Use an answer up; False if another call has done so meanwhile."""
        asked = self._ledger.find(question_id)
        taken = self._ledger.take(question_id, on_record=self._on_record.pop(question_id, None) is not None)
        if taken and asked is not None:
            self._taken.append(asked)
        return taken or question_id in self._repeated

    def take_carried(self, approval: CarriedApproval) -> bool:
        """Use the approval of a call that waited; False if another call has done so meanwhile."""
        return self._ledger.take_carried(approval)

    def settle(self, admitted: Sequence[Admitted], outcomes: Sequence[Outcome]) -> None:
        """Keep what was answered for calls that are interrupted: they go on later."""
        for item, outcome in zip(admitted, outcomes, strict=True):
            if not isinstance(outcome, Interrupted):
                continue
            if not item.finished:  # it did not run, because it waits behind an interrupted one
                self._give_back(item)
            elif item.approved:
                inside = [question for question in outcome.questions if not _is_own(question, item)]
                if inside:
                    item.bind_again()
                    self._ledger.carry(CarriedApproval(item, inside))

    def _give_back(self, item: Admitted) -> None:
        """Let the answers for a call that did not run count later."""
        self._ledger.give_back(item.used_answers)
        for question, tool in self._taken:
            if question.id in item.used_answers:
                self._ledger.add(question, tool)
        if item.carried is not None:
            self._ledger.carry(item.carried)

    def _find(self, question_id: str, admitted: Admitted) -> Question | None:
        """Return the question an answer is for: one that was asked, is not used, and about this tool."""
        if self._ledger.is_used(question_id):  # also one on record, which a caller may pass again
            return None
        kept = self._ledger.find(question_id)
        if kept is None:
            question = self._on_record.get(question_id)
        else:
            from callwright.tool.identity import is_same_tool  # loaded with the first answer

            question, tool = kept
            if admitted.entry is None or not is_same_tool(tool, admitted.entry.tool):
                return None
        return question


def _is_own(question: Question, item: Admitted) -> bool:
    """Whether a call asked a question itself while it ran; such a question knows what the user had approved."""
    return question.running and question.call_id == item.call.id and question.tool == item.name
