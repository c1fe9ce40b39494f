"""What becomes of an outcome when hooks have seen it: notes are added, outputs replaced or withheld, runs ended."""

from collections.abc import Sequence
from dataclasses import replace

from callwright.core.call import Completed, Failed
from callwright.core.content import Output, Text
from callwright.core.errors import Denied, Halted
from callwright.hooks.shell_reply import HookReply


def followed(outcome: Completed | Failed, reply: HookReply) -> Completed | Failed:
    """The outcome as the hooks want it; their notes are marked, so that nobody takes them for the tool's words."""
    started = isinstance(outcome, Completed) or outcome.started
    if reply.halt:
        return Failed(outcome.call, Halted(reply.halt), started, outcome.seconds, outcome.attempts)
    if reply.error and reply.word == "deny":  # it was there to see this, and could not
        withheld = Denied(f"the outcome is withheld: {reply.error}")
        return Failed(outcome.call, withheld, started, outcome.seconds, outcome.attempts)
    notes = [text for text in (reply.reason if reply.word == "deny" else "", reply.context) if text]
    if isinstance(outcome, Failed):
        return _added_to_failure(outcome, notes)
    if reply.output is not None:
        outcome = replace(outcome, output=Output(reply.output))
    return replace(outcome, output=_with_notes(outcome.output, notes)) if notes else outcome


def _added_to_failure(outcome: Failed, notes: Sequence[str]) -> Failed:
    outcome.error.message = "\n".join((outcome.error.message, *(f"[hook] {note}" for note in notes)))
    return outcome


def _with_notes(output: Output, notes: Sequence[str]) -> Output:
    said = "\n".join(f"[hook] {note}" for note in notes)
    if isinstance(output.content, str):
        return replace(output, content=f"{output.content}\n{said}")
    return replace(output, content=(*output.content, Text(said)))
