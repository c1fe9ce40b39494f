"""Builds an agent from settings: trust, rules, hooks, skills, models and sessions."""

from callwright.core._lazy import lazy_exports

TYPE_CHECKING = False  # read as true by type checkers; importing typing would cost more than this file
if TYPE_CHECKING:
    from callwright.app.app import App as App
    from callwright.app.assembly import assemble as assemble
    from callwright.app.conversation import Conversation as Conversation
    from callwright.app.locations import Locations as Locations
    from callwright.app.models import ModelChoice as ModelChoice, choose_model as choose_model
    from callwright.app.prompts import UserPrompt as UserPrompt, instructions_for as instructions_for
    from callwright.app.run_context import RunOptions as RunOptions
    from callwright.app.settings import Settings as Settings, load_settings as load_settings
    from callwright.app.trust import Trust as Trust
else:
    __getattr__ = lazy_exports(
        __name__,
        {
            "app": "App",
            "assembly": "assemble",
            "conversation": "Conversation",
            "locations": "Locations",
            "models": "ModelChoice choose_model",
            "prompts": "UserPrompt instructions_for",
            "run_context": "RunOptions",
            "settings": "Settings load_settings",
            "trust": "Trust",
        },
    )
