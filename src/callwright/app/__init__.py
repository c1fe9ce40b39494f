"""Settings, trust and instructions, put together into an agent."""

from callwright.core.lazy import loader

TYPE_CHECKING = False  # read as true by type checkers; typing itself would cost the import more than this file
if TYPE_CHECKING:
    from callwright.app.assemble import App as App
    from callwright.app.assemble import assemble as assemble
    from callwright.app.conversation import Conversation as Conversation
    from callwright.app.instructions import instructions_for as instructions_for
    from callwright.app.models import ModelChoice as ModelChoice
    from callwright.app.models import choose_model as choose_model
    from callwright.app.places import Places as Places
    from callwright.app.settings import Settings as Settings
    from callwright.app.settings import load_settings as load_settings
    from callwright.app.trust import Trust as Trust
    from callwright.app.wishes import Wishes as Wishes

__all__ = [
    "App",
    "Conversation",
    "ModelChoice",
    "Places",
    "Settings",
    "Trust",
    "Wishes",
    "assemble",
    "choose_model",
    "instructions_for",
    "load_settings",
]

_HOMES = {
    "assemble": "App assemble",
    "conversation": "Conversation",
    "instructions": "instructions_for",
    "models": "ModelChoice choose_model",
    "places": "Places",
    "settings": "Settings load_settings",
    "trust": "Trust",
    "wishes": "Wishes",
}

__getattr__ = loader(__name__, _HOMES)
