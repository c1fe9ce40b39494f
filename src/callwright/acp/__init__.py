"""The agent in editors: the Agent Client Protocol over standard input and output. Needs the extra `acp`."""

from callwright.core._lazy import lazy_exports

TYPE_CHECKING = False  # read as true by type checkers; importing typing would cost more than this file
if TYPE_CHECKING:
    from callwright.acp.agent import (
        EditorAgent as EditorAgent,
        OpenRequest as OpenRequest,
        SessionParts as SessionParts,
    )
    from callwright.acp.transport import LineTransport as LineTransport, standard_streams as standard_streams
else:
    __getattr__ = lazy_exports(
        __name__,
        {
            "agent": "EditorAgent OpenRequest SessionParts",
            "transport": "LineTransport standard_streams",
        },
    )
