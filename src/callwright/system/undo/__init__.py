"""Keeps what files contained before they were changed, and restores it."""

from callwright.core._lazy import lazy_exports

TYPE_CHECKING = False  # read as true by type checkers; importing typing would cost more than this file
if TYPE_CHECKING:
    from callwright.system.undo.kept_content import UndoError as UndoError, UndoLimits as UndoLimits
    from callwright.system.undo.undo_store import UndoStore as UndoStore
else:
    __getattr__ = lazy_exports(__name__, {"kept_content": "UndoError UndoLimits", "undo_store": "UndoStore"})
