"""The living, composable collection of tools."""

from toolwright.core.lazy import loader

TYPE_CHECKING = False  # read as true by type checkers; typing itself would cost the import more than this file
if TYPE_CHECKING:
    from toolwright.registry.catalog import Catalog as Catalog
    from toolwright.registry.catalog import Toolset as Toolset
    from toolwright.registry.catalog import session_catalog as session_catalog
    from toolwright.registry.compose import combined as combined
    from toolwright.registry.compose import filtered as filtered
    from toolwright.registry.compose import prefixed as prefixed
    from toolwright.registry.compose import renamed as renamed
    from toolwright.registry.deferral import Deferred as Deferred
    from toolwright.registry.names import wire_names as wire_names
    from toolwright.registry.plugins import installed_plugins as installed_plugins
    from toolwright.registry.plugins import load_plugins as load_plugins
    from toolwright.registry.registry import Registry as Registry
    from toolwright.registry.revealed import recall_reveals as recall_reveals
    from toolwright.registry.revealed import reveal_to as reveal_to
    from toolwright.registry.search import Hit as Hit
    from toolwright.registry.search import ToolIndex as ToolIndex

__all__ = [
    "Catalog",
    "Deferred",
    "Hit",
    "Registry",
    "ToolIndex",
    "Toolset",
    "combined",
    "filtered",
    "installed_plugins",
    "load_plugins",
    "prefixed",
    "recall_reveals",
    "renamed",
    "reveal_to",
    "session_catalog",
    "wire_names",
]

_HOMES = {
    "catalog": "Catalog Toolset session_catalog",
    "compose": "combined filtered prefixed renamed",
    "deferral": "Deferred",
    "names": "wire_names",
    "plugins": "installed_plugins load_plugins",
    "registry": "Registry",
    "revealed": "recall_reveals reveal_to",
    "search": "Hit ToolIndex",
}

__getattr__ = loader(__name__, _HOMES)
