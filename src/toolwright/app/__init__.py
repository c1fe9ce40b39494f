"""Settings, trust and instructions, put together into an agent."""

from toolwright.core.lazy import loader

TYPE_CHECKING = False  # read as true by type checkers; typing itself would cost the import more than this file
if TYPE_CHECKING:
    from toolwright.app.assemble import App as App
    from toolwright.app.assemble import assemble as assemble
    from toolwright.app.conversation import Conversation as Conversation
    from toolwright.app.instructions import instructions_for as instructions_for
    from toolwright.app.models import ModelChoice as ModelChoice
    from toolwright.app.models import choose_model as choose_model
    from toolwright.app.places import Places as Places
    from toolwright.app.settings import Settings as Settings
    from toolwright.app.settings import load_settings as load_settings
    from toolwright.app.trust import Trust as Trust
    from toolwright.app.wishes import Wishes as Wishes

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
