"""The living, composable collection of tools."""

from callwright.core.lazy import loader

TYPE_CHECKING = False  # read as true by type checkers; typing itself would cost the import more than this file
if TYPE_CHECKING:
    from callwright.registry.catalog import Catalog as Catalog
    from callwright.registry.catalog import Toolset as Toolset
    from callwright.registry.catalog import session_catalog as session_catalog
    from callwright.registry.compose import combined as combined
    from callwright.registry.compose import filtered as filtered
    from callwright.registry.compose import prefixed as prefixed
    from callwright.registry.compose import renamed as renamed
    from callwright.registry.deferral import Deferred as Deferred
    from callwright.registry.names import wire_names as wire_names
    from callwright.registry.plugins import installed_plugins as installed_plugins
    from callwright.registry.plugins import load_plugins as load_plugins
    from callwright.registry.registry import Registry as Registry
    from callwright.registry.revealed import recall_reveals as recall_reveals
    from callwright.registry.revealed import reveal_to as reveal_to
    from callwright.registry.search import Hit as Hit
    from callwright.registry.search import ToolIndex as ToolIndex

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
