"""`ForeignSchema`: validation against a JSON Schema that another program wrote, with bounded time and memory.

A schema is refused when it is listed if it is too large or expands too far. Small values are checked at once. A larger
value is checked in a thread if the work grows with its size alone, else in a process of its own with a time limit:
the validator does not release Python's lock, so that a thread would stop the event loop as well.
"""

import asyncio
import json
import sys
from functools import cached_property
from pathlib import Path
from typing import Any

from callwright.core.errors import UsageError
from callwright.core.json import JsonObject
from callwright.system.subprocesses import run_child
from callwright.tool import schema_worker
from callwright.tool.schema_cost import MOST_EVALUATIONS, SchemaCost, count_nodes
from callwright.tool.schema_drafts import to_current_draft
from callwright.tool.schema_tool import explain_errors, find_mismatch
from callwright.tool.threads import threads

MOST_ON_LOOP = 1_000
_MOST_NODES_ON_LOOP = 5_000
_MOST_ANSWER_BYTES = 1 << 20
_SECONDS = 5.0
_TOO_LARGE = "arguments: too large or too deeply nested for the schema; send less at once"


class ForeignSchema:
    """A schema of a server, and the validation of values against it.

    Args:
        schema: The schema, as plain dicts and lists.
        about: What the schema belongs to, for messages.
        compile_now: Whether to find out at once that it is not valid; otherwise with the first value.

    Raises:
        UsageError: It is too large, expands too far, or is not a valid JSON Schema.
    """

    def __init__(self, schema: dict[str, Any], *, about: str, compile_now: bool = True) -> None:
        self._schema = schema
        self._about = about
        self._cost = SchemaCost(schema, about=about)
        if compile_now:
            _ = self._validator

    @cached_property
    def _current(self) -> JsonObject:
        """The schema to validate with; one that does not name its draft may be written in an older one."""
        return self._schema if "$schema" in self._schema else to_current_draft(self._schema)

    @cached_property
    def _validator(self) -> Any:
        try:
            return schema_worker.make_validator(self._current)
        except ValueError as error:
            raise UsageError(f"{self._about} is not a JSON Schema: {error}") from error

    def is_small(self, value: object) -> bool:
        """Return whether a value can be checked on the event loop."""
        if self._cost.linear:
            return count_nodes(value, most=_MOST_NODES_ON_LOOP) <= _MOST_NODES_ON_LOOP
        return self._cost.count(value, most=MOST_ON_LOOP) <= MOST_ON_LOOP

    def check_small(self, value: object) -> str:
        """Return why a small value does not match, empty if it does.

        Raises:
            UsageError: The schema is not a valid JSON Schema.
        """
        return find_mismatch(self._validator, self._cost, value)

    async def check(self, value: object) -> str:
        """Return why a value of any size does not match, empty if it does; the event loop stays free.

        Raises:
            UsageError: The schema is not a valid JSON Schema.
        """
        if self.is_small(value):
            return self.check_small(value)
        if self._cost.linear:
            return await threads.run(self.check_small, value)
        if await threads.run(lambda: self._cost.count(value, most=MOST_EVALUATIONS)) > MOST_EVALUATIONS:
            return _TOO_LARGE
        return await self._check_in_process(value)

    async def _check_in_process(self, value: object) -> str:
        import jsonschema_rs

        async def encode() -> bytes:
            return await threads.run(lambda: json.dumps([self._current, value]).encode())

        library = str(Path(jsonschema_rs.__file__ or "").parents[1])
        command = [sys.executable, "-I", str(Path(schema_worker.__file__)), library]
        try:
            async with asyncio.timeout(_SECONDS):
                done = await run_child(command, Path("/"), max_bytes=_MOST_ANSWER_BYTES, feed=encode())
        except TimeoutError:
            return f"arguments: checking them against the schema took more than {_SECONDS:g} s; send less at once"
        if done.code or done.cut:
            return _TOO_LARGE  # it ended for lack of memory
        answer: Any = json.loads(done.output)
        if isinstance(answer, str):
            raise UsageError(f"{self._about} is not a JSON Schema: {answer}")
        return explain_errors((path, message) for path, message in answer)
