"""Tool registries: adding, composing, deferring and searching tools."""

from callwright.core._lazy import lazy_exports

TYPE_CHECKING = False  # read as true by type checkers; importing typing would cost more than this file
if TYPE_CHECKING:
    from callwright.registry.catalog import (
        Catalog as Catalog,
        Toolset as Toolset,
        session_catalog as session_catalog,
        wire_names as wire_names,
    )
    from callwright.registry.compose import (
        combined as combined,
        filtered as filtered,
        prefixed as prefixed,
        renamed as renamed,
        withheld as withheld,
    )
    from callwright.registry.deferred import Deferred as Deferred
    from callwright.registry.plugins import installed_plugins as installed_plugins, load_plugins as load_plugins
    from callwright.registry.registry import Registry as Registry
    from callwright.registry.search.index import Hit as Hit, ToolIndex as ToolIndex
    from callwright.registry.visibility import recall_reveals as recall_reveals, reveal_to as reveal_to
else:
    __getattr__ = lazy_exports(
        __name__,
        {
            "catalog": "Catalog Toolset session_catalog wire_names",
            "compose": "combined filtered prefixed renamed withheld",
            "deferred": "Deferred",
            "plugins": "installed_plugins load_plugins",
            "registry": "Registry",
            "search.index": "Hit ToolIndex",
            "visibility": "recall_reveals reveal_to",
        },
    )
