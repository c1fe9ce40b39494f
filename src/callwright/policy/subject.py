"""What a policy is told about the call that is being judged."""

from typing import Protocol

from callwright.core.json import JsonObject
from callwright.core.spec import ToolSpec


class Subject(Protocol):
    """The call that is being judged, as it would run. It carries no description: policies never read prose."""

    @property
    def spec(self) -> ToolSpec: ...

    @property
    def arguments(self) -> JsonObject: ...

    @property
    def session_id(self) -> str: ...
