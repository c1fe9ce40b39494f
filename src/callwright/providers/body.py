"""Bodies of requests: what stays the same from turn to turn is encoded once, the conversation is added to it."""

from collections.abc import Callable

from callwright.providers.base import ModelRequest
from callwright.providers.edge import Edge
from callwright.providers.encoding import Kept, Pieces, assemble, encoded_options, to_bytes

Fields = dict[str, bytes]


class Bodies:
    """Puts one API's requests together."""

    def __init__(self, fields: Callable[[ModelRequest, Edge], Fields], conversation: str, *, merged: str = "") -> None:
        """`fields` are all but the conversation; the one called `merged` has the request's options in it already."""
        self._fields = fields
        self._conversation = conversation
        self._merged = merged
        self._heads: Kept[bytes] = Kept()

    def of(self, request: ModelRequest, edge: Edge, conversation: Pieces) -> bytes:
        """The whole body. The conversation is copied once, here and nowhere else."""
        if request.options:  # whose they are may change them
            return self._with_options(request, edge, conversation)
        asked = (edge, request.system, request.output_schema, request.max_tokens)
        head = self._heads.of(*asked, make=lambda: self._head(request, edge))
        return b"".join([head, *conversation, b"}"])

    def _head(self, request: ModelRequest, edge: Edge) -> bytes:
        fields = assemble(self._fields(request, edge)).removesuffix(b"}")
        return b"%s,%s:" % (fields, to_bytes(self._conversation))

    def _with_options(self, request: ModelRequest, edge: Edge, conversation: Pieces) -> bytes:
        fields = self._fields(request, edge)
        own = {name: value for name, value in encoded_options(request.options).items() if name != self._merged}
        return assemble({**fields, self._conversation: conversation, **own})
