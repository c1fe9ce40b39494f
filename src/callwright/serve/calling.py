"""The client a call came from, for tools that want more of it than the call: its log, its model, its folders."""

from collections.abc import Mapping, Sequence
from contextvars import ContextVar
from typing import Any, Literal, Protocol

import mcp_types as types
from mcp import MCPError

from callwright.core.call import Answers, Question
from callwright.core.errors import ToolFailed
from callwright.core.json import Json
from callwright.serve.caller import LEVELS, Caller

_CALLING: ContextVar["CallingClient | None"] = ContextVar("calling_client", default=None)


class Asking(Protocol):
    """How the questions of one call reach whoever answers them."""

    async def people(self, questions: Sequence[Question]) -> Answers:
        """Put our questions to the client's person."""
        ...

    async def client(self, requests: types.InputRequests) -> types.InputResponses:
        """Put a tool's own requests to the client, all at once."""
        ...


class ClientLacks(ToolFailed):
    """A tool needs something of its client that the client does not offer."""

    def __init__(self, wanted: Sequence[str]) -> None:
        super().__init__(f"this tool needs a client that offers {' and '.join(wanted)}, and this one does not")
        self.wanted = tuple(wanted)

    def refusal(self) -> MCPError:
        """As the protocol of 2026-07-28 says it."""
        needed: dict[str, Any] = {name: {} for name in self.wanted}
        return MCPError(types.MISSING_REQUIRED_CLIENT_CAPABILITY, self.message, {"requiredCapabilities": needed})


class CallingClient:
    """What a tool may want of the client that called it. What it cannot give is a failure of the call."""

    def __init__(self, caller: Caller, asking: Asking, least: types.LoggingLevel = "debug") -> None:
        self._caller = caller
        self._asking = asking
        self._least = least

    async def log(self, data: Json, level: types.LoggingLevel = "info", logger: str | None = None) -> None:
        """Write into the client's log, unless it wants to hear of graver things only."""
        least = self._caller.least
        if least is not None and LEVELS.index(level) >= max(map(LEVELS.index, (least, self._least))):
            await self._caller.log(level, data, logger)

    async def request(self, requests: types.InputRequests) -> types.InputResponses:
        """Ask the client for several things at once; the answers come under the same keys."""
        lacking = sorted({kind for kind in map(_kind, requests.values()) if not self.offers(kind)})
        if lacking:
            raise ClientLacks(lacking)
        return await self._asking.client(requests)

    async def sample(self, params: types.CreateMessageRequestParams) -> types.CreateMessageResult:
        """Borrow the client's model for one message."""
        answer = (await self.request({"sample": types.CreateMessageRequest(params=params)}))["sample"]
        if not isinstance(answer, types.CreateMessageResult):
            raise ToolFailed("the client did not lend its model")
        return answer

    async def roots(self) -> Sequence[types.Root]:
        """The folders the client works in."""
        answer = (await self.request({"roots": types.ListRootsRequest()}))["roots"]
        if not isinstance(answer, types.ListRootsResult):
            raise ToolFailed("the client did not say which folders it works in")
        return answer.roots

    def offers(self, kind: Literal["elicitation", "sampling", "roots"]) -> bool:
        """Whether the client says it can be asked for this."""
        can = self._caller.capabilities
        return can is not None and getattr(can, kind) is not None


def _kind(request: types.InputRequest) -> Literal["elicitation", "sampling", "roots"]:
    """The capability a client needs for a request."""
    match request:
        case types.ElicitRequest():
            return "elicitation"
        case types.CreateMessageRequest():
            return "sampling"
        case types.ListRootsRequest():
            return "roots"


def calling_client() -> CallingClient | None:
    """The client that called the tool which asks; None where no MCP client did."""
    return _CALLING.get()


def called_by(client: CallingClient) -> None:
    """Let tools that run from here on know their client."""
    _CALLING.set(client)


def read_response(request: types.InputRequest, result: Mapping[str, Any]) -> types.InputResponse:
    """A client's plain answer as what the request is answered with."""
    match request:
        case types.ElicitRequest():
            return types.ElicitResult.model_validate(result, by_name=False)
        case types.CreateMessageRequest():
            return types.CreateMessageResult.model_validate(result, by_name=False)
        case types.ListRootsRequest():
            return types.ListRootsResult.model_validate(result, by_name=False)
