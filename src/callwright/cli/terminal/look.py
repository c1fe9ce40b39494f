"""What a person may look at in a conversation: its context, the rules in force, and a copy of it in a file."""

import json
from collections.abc import Iterator, Sequence
from pathlib import Path

from callwright.agent.size import message_tokens
from callwright.app.assemble import App
from callwright.app.places import Places
from callwright.app.rules import rules_in
from callwright.cli.show import transcript
from callwright.core.errors import UsageError
from callwright.core.json import thaw
from callwright.core.message import AssistantMessage, Message, ToolMessage, UserMessage
from callwright.core.tokens import estimate_tokens
from callwright.policy.places import Surroundings
from callwright.sessions import export_jsonl
from callwright.system.paths import Workspace

_KINDS = {UserMessage: "what you said", AssistantMessage: "what the model said", ToolMessage: "what tools gave back"}


def context_lines(app: App, messages: Sequence[Message]) -> Iterator[str]:
    """About how many tokens each part of the next request takes, and when the conversation will be summarised."""
    definitions = app.agent.registry.snapshot().definitions
    tools = sum(
        estimate_tokens(spec.name + spec.description + json.dumps(thaw(spec.input_schema))) for spec in definitions
    )
    sizes = {"instructions": estimate_tokens(app.agent.system), f"{len(definitions)} tools": tools}
    for kind, name in _KINDS.items():
        sizes[name] = sum(message_tokens(message) for message in messages if type(message) is kind)
    total = sum(sizes.values())
    yield from (f"  {name:<22} {tokens:>8}" for name, tokens in sizes.items())
    yield f"  {'about':<22} {total:>8} tokens, counted roughly"
    if app.agent.compaction is not None:
        room = app.agent.compaction.at_tokens
        yield f"  summarised by itself above {room}; /compact does it now"


def permission_lines(app: App) -> Iterator[str]:
    """The mode and every rule in force, with where it was written."""
    here = Surroundings.within(Workspace(app.places.cwd), app.places.cwd)
    rules = rules_in(app.settings, here).rules
    yield f"  mode {app.switch.mode}"
    yield from (f"  {rule.kind:<5}  {rule.text}  [{rule.written_in}]" for rule in rules)
    if not rules:
        yield "  no rules in the settings: the mode decides, and the safety guards hold"
    yield "  to try a call: callwright permissions test TOOL ARGUMENT"


async def write_copy(app: App, session_id: str, name: str) -> Path:
    """Write the conversation as text, or its records where the file is named `.jsonl`; never over another file."""
    target = _target(app.places, name or f"session-{session_id[:8]}.md")
    if target.suffix == ".jsonl":
        text = await export_jsonl(app.agent.sessions, session_id)
    else:
        text = "\n".join(transcript(await app.agent.messages(session_id)))
    try:
        with target.open("x", encoding="utf-8") as file:
            file.write(text)
    except FileExistsError:
        raise UsageError(f"{target} is there already; name another file: /export FILE") from None
    except OSError as error:
        raise UsageError(f"{target} cannot be written: {error.strerror}; name another file: /export FILE") from None
    return target


def _target(places: Places, name: str) -> Path:
    return places.cwd / Path(name).expanduser()
