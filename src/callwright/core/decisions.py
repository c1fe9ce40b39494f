"""Questions to the user, the replies to them, and the one place where a reply becomes a decision.

Only a value of exactly the type `Approve` approves. `Decline` declines; everything else is a `UsageError`, which
callers that cannot raise turn into a decline:

    check_reply(value)      a reply from a program
    check_answers(value)    replies by question id, as `execute`, `resume` and `ask` take them
    parse_answer(text)      a reply that the user typed
    make_reply(approved)    what another protocol says: a hook, an MCP client, a framework, a stored record

No other module of this package makes an `Approve`; a test checks it.
"""

import os
import time
from collections.abc import Coroutine, Iterable, Iterator, Mapping
from typing import Any, Final, Literal, TypeAlias, cast, final, get_args

from callwright.core._fast import field, frozen
from callwright.core.access import Access
from callwright.core.errors import CallwrightError, UsageError, check_kind, safe_repr
from callwright.core.json import JsonObject, canonical, compact, freeze, hash_text, thaw

QuestionKind: TypeAlias = Literal["approval", "auth", "input"]
GrantScope: TypeAlias = Literal["once", "session", "always", "pattern"]
"""How long an approval lasts. `pattern` is `always` with a rule that covers a little more, where one is offered."""
_SCOPES: Final = frozenset(get_args(GrantScope))


def digest_of(
    tool: str, arguments: JsonObject, accesses: Iterable[Access], *, session_id: str = "", implementation: str = ""
) -> str:
    """Return a digest of exactly what would run; an approval is valid for this digest only.

    Args:
        tool: The tool's name.
        arguments: The final arguments.
        accesses: What the call would access.
        session_id: The session the call belongs to.
        implementation: Identifies the tool's spec and code, so that a replaced tool has another digest.
    """
    parts: list[Any] = [session_id, tool, arguments, list(map(repr, accesses))]
    return hash_text(canonical([*parts, implementation] if implementation else parts))


def digest_running(digest: str, kind: QuestionKind, reason: str) -> str:
    """Return the digest of what a tool asks while it runs: the call's own, and the question."""
    return hash_text(canonical([digest, kind, reason]))


@frozen
class Question:
    """What the user must decide before a call may run, or go on."""

    call_id: str
    tool: str
    arguments: JsonObject
    digest: str
    summary: str
    """One line to show: `Allow bash: rm -rf target?`"""
    reason: str = ""
    """Why the user is asked."""
    accesses: tuple[Access, ...] = ()
    kind: QuestionKind = "approval"
    """`input` asks for a reply, which is data for the tool and permits nothing: `Approve(arguments=reply)`."""
    url: str = ""
    """Where to sign in, for kind `auth`."""
    expires_at: int = 0
    """Unix time after which an answer is ignored; 0 for never."""
    nonce: str = field(default_factory=lambda: os.urandom(8).hex())
    running: bool = False
    """Asked by the tool while it ran: with an approval, the call runs again and finds it in `context.answer`."""
    approved: tuple[str, ...] = ()
    """For a `running` question: the reasons for which the user had already approved this call."""
    within: str = ""
    """For a call that a tool makes: the id of the model's call inside which it is made."""
    origin: str = ""
    """For a call that a tool makes: where it comes from, to show to the user."""
    source: str = ""
    """What decided that the user is asked: a rule with its file and line, the mode, a guard, a hook."""
    implementation: str = ""
    """Identifies the tool (spec, code, server) and what the arguments do not show, such as a secret.

    An approval for longer is for this one only."""

    @property
    def id(self) -> str:
        """Unique, and bound to the digest: an answer to this id is valid for exactly this call, once."""
        return f"{self.digest}.{self.call_id}.{self.expires_at:x}.{self.nonce}"

    def matches(self, question_id: str, now: float | None = None) -> bool:
        """Whether `question_id`, unexpired at `now`, belongs to an earlier question about exactly the same call."""
        about, _, tail = question_id.rpartition(".")[0].rpartition(".")
        if about != f"{self.digest}.{self.call_id}":
            return False
        try:
            expires_at = int(tail, 16)
        except ValueError:
            return False
        return expires_at == 0 or (time.time() if now is None else now) < expires_at

    def is_of_session(self, session_id: str) -> bool:
        """Whether it was asked in this session; the record of a copied session holds questions of another one."""
        given = {"session_id": session_id, "implementation": self.implementation}
        # without accesses of its own, a call shows those of its tool
        return self.digest in [digest_of(self.tool, self.arguments, each, **given) for each in (self.accesses, ())]

    def is_expired(self, now: float | None = None) -> bool:
        """Whether an answer comes too late."""
        return self.expires_at != 0 and (time.time() if now is None else now) >= self.expires_at


class AnswersNeeded(CallwrightError):
    """Raised by a running tool whose inner calls wait for answers: its own call is interrupted with their questions.

    With the answers the call runs again from its start. What it kept on record meanwhile is in `context.kept`.

    Args:
        questions: The questions of the inner `Interrupted` outcomes.

    Raises:
        UsageError: There is no question.
    """

    def __init__(self, questions: Iterable[Question]) -> None:
        self.questions = tuple(questions)
        if not self.questions:
            raise UsageError("AnswersNeeded needs at least one question; raise ToolFailed if there is none")
        super().__init__(f"{len(self.questions)} questions wait for an answer")


@final
@frozen
class Approve:
    """A yes. With `arguments`, the call runs with these instead, after hooks and policies have judged them again.

    To a question of kind `input`, the arguments are the user's reply, and the call keeps its own.

    Raises:
        UsageError: The scope is unknown, or the arguments are not a mapping.
    """

    arguments: JsonObject | None = None
    scope: GrantScope = "once"
    by: str = ""
    """Who approved, for the record: a user's name, a hook; empty for the user who was asked."""

    def __post_init__(self) -> None:
        if type(self.scope) is not str or self.scope not in _SCOPES:
            raise UsageError(
                f'Approve.scope must be "once", "session", "always" or "pattern", got {safe_repr(self.scope)}'
            )
        if self.arguments is not None and not isinstance(cast(object, self.arguments), Mapping):
            raise UsageError(f"Approve.arguments must be a mapping or None, got {safe_repr(self.arguments)}")


@final
@frozen
class Decline:
    """A no; the model reads the reason.

    Raises:
        UsageError: The reason is not a text.
    """

    reason: str = ""
    by: str = ""
    """Who declined, for the record; empty for the user who was asked."""

    def __post_init__(self) -> None:
        if not isinstance(cast(object, self.reason), str):
            raise UsageError(f"Decline.reason must be a text, got {safe_repr(self.reason)}")


Reply: TypeAlias = Approve | Decline


def check_reply(reply: object) -> Reply:
    """Return a reply, copied so that it cannot change any more.

    Args:
        reply: Anything; only a value whose type is exactly `Approve` approves.

    Raises:
        UsageError: It is not an `Approve` or a `Decline`; the message says what to write.
    """
    if type(reply) is Approve:
        checked = Approve(reply.arguments, reply.scope)  # again, because fields can be set behind a value's back
        try:
            arguments = None if checked.arguments is None else _copy_json(checked.arguments)
            return Approve(arguments, checked.scope, str(reply.by))
        except (TypeError, ValueError, RecursionError) as error:
            raise UsageError(f"Approve.arguments cannot be read as JSON: {safe_repr(error)}") from error
    if type(reply) is Decline:
        return Decline(str(reply.reason), str(reply.by))
    _close(reply)
    if reply is Approve or reply is Decline:
        raise UsageError(f"expected a reply, got the class {reply.__name__}; write {reply.__name__}()")
    raise UsageError(f"expected Approve() or Decline(reason) as the reply, got {safe_repr(reply)}")


def make_reply(
    approved: object, *, arguments: object = None, scope: object = "once", reason: object = "", by: str = ""
) -> Reply:
    """Return the reply that another protocol stands for. What is not an approval in every part declines.

    Args:
        approved: The value True itself approves; anything else, also what counts as true, declines.
        arguments: Run the call with these arguments instead.
        scope: How long the approval lasts.
        reason: Why it was declined; the model reads it.
        by: Who replied, for the record.
    """
    if approved is not True:
        return Decline(reason if type(reason) is str else "", by)
    try:
        return check_reply(Approve(cast("JsonObject | None", arguments), cast("GrantScope", scope), by))
    except UsageError as error:
        return Decline(f"the approval was not understood: {error}", by)


@final
class Answers:
    """The user's answers by question id. Each is valid once, for what was shown, until it expires.

    Raises:
        UsageError: A reply is not an `Approve` or a `Decline`.
    """

    def __init__(self, given: Mapping[str, Reply] | None = None) -> None:
        self._given: dict[str, Reply] = {}
        if given is None:
            return
        if not isinstance(cast(object, given), Mapping):
            _close(given)
            raise UsageError(f"expected a mapping of question ids to replies, got {safe_repr(given)}")
        for question_id, reply in given.items():
            if type(question_id) is not str:
                raise UsageError(
                    f"expected the id of a question, as in {{question.id: …}}, got {safe_repr(question_id)}"
                )
            self._given[question_id] = check_reply(reply)

    def __len__(self) -> int:
        return len(self._given)

    def __iter__(self) -> Iterator[tuple[str, Reply]]:
        return iter(self._given.items())

    @classmethod
    def approving(cls, questions: Iterable[Question]) -> "Answers":
        """Return answers that approve every question once.

        Raises:
            UsageError: These are not questions.
        """
        try:
            return cls({question.id: Approve() for question in questions})
        except (TypeError, AttributeError):
            advice = "write Answers.approving(result.questions)"
            raise UsageError(f"expected questions, got {safe_repr(questions)}; {advice}") from None

    def approve(
        self, question: Question, *, arguments: JsonObject | None = None, scope: GrantScope = "once"
    ) -> "Answers":
        """Approve a question and return these answers, for chaining.

        Args:
            question: The question to answer.
            arguments: Run the call with these arguments instead; they are judged again.
            scope: How long the approval lasts: this call, the session, or always.

        Raises:
            UsageError: It is not a question.
        """
        check_kind("the question", question, Question, "pass one of result.questions")
        self._given[question.id] = Approve(arguments, scope)
        return self

    def decline(self, question: Question, reason: str = "") -> "Answers":
        """Decline a `question` and return these answers, for chaining; the model reads the `reason`."""
        check_kind("the question", question, Question, "pass one of result.questions")
        self._given[question.id] = Decline(reason)
        return self


def check_answers(given: object) -> Answers:
    """Return a checked copy of answers that a program passed or that `ask` returned.

    Args:
        given: `Answers`, or a dict of question ids to `Approve` and `Decline` that is not empty.

    Raises:
        UsageError: It is anything else, or a reply in it is; the message says what to write.
    """
    if type(given) is Answers:
        return Answers(dict(given))
    replies = cast("dict[str, Reply]", given) if type(given) is dict else {}
    if replies:  # an empty dict is more likely a mistake than the wish to answer nothing
        return Answers(replies)
    _close(cast("object", given))
    advice = "write Answers().approve(question) or Answers.approving(questions)"
    raise UsageError(f"expected Answers, got {safe_repr(cast('object', given))}; {advice}")


_ONCE, _SESSION, _ALWAYS, _DECLINED = Approve(), Approve(scope="session"), Approve(scope="always"), Decline()
TYPED_ANSWERS: Final[Mapping[str, Reply]] = {
    **dict.fromkeys(("y", "yes", "1"), _ONCE),
    **dict.fromkeys(("s", "2"), _SESSION),
    **dict.fromkeys(("a", "3"), _ALWAYS),
    **dict.fromkeys(("n", "no", "5"), _DECLINED),
}
"""The answers the user may type, each the whole text; 4 is for editing the arguments, which needs a dialog."""
YES_OR_NO: Final[Mapping[str, Reply]] = {name: TYPED_ANSWERS[name] for name in ("y", "yes", "n", "no")}
"""The answers to a question that has no other choices."""
_NO: Final = ("n", "no", "5")


def parse_answer(text: object, answers: Mapping[str, Reply] = TYPED_ANSWERS) -> Reply | None:
    """Return the reply that a typed text stands for; None if it is not an answer: ask again, or decline.

    Only a bare answer approves: `y`, not `y but only the first file`. A no may be followed by its reason.

    Args:
        text: What the user typed.
        answers: The accepted answers in lower case, with what they stand for.
    """
    if not isinstance(text, str):
        return None
    typed = text.strip(" \t\r\n")
    word = typed.lower()
    # lower() maps some letters of other scripts to ASCII, and a look-alike is not an answer
    if typed.isascii() and word in answers:
        return answers[word]
    first, _, rest = typed.partition(" ")
    if first.lower().rstrip(",:;.") in _NO and first.isascii():
        return Decline(rest.strip())
    return None


def _copy_json(arguments: JsonObject) -> JsonObject:
    """Return a copy made of plain JSON values only; a value of any other type could change after it was judged.

    Raises:
        ValueError: The arguments are not JSON.
        TypeError: As above.
    """
    from json import loads

    plain = thaw(arguments)
    copy = loads(compact(plain))
    if copy != plain:  # keys that are not texts
        raise ValueError("the arguments are not the same as JSON")
    return freeze(copy)


def _close(value: object) -> None:
    """Close a coroutine that was passed in place of its result, so that Python does not warn about it as well."""
    if isinstance(value, Coroutine):
        value.close()
