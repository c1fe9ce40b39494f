"""The living, composable collection of tools."""

from toolwright.registry.catalog import Catalog, Toolset
from toolwright.registry.compose import combined, filtered, prefixed, renamed
from toolwright.registry.names import wire_names
from toolwright.registry.plugins import installed_plugins, load_plugins
from toolwright.registry.registry import Registry

__all__ = [
    "Catalog",
    "Registry",
    "Toolset",
    "combined",
    "filtered",
    "installed_plugins",
    "load_plugins",
    "prefixed",
    "renamed",
    "wire_names",
]
