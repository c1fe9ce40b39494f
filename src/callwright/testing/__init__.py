"""Fakes for what tests should not wait for or depend on, and checks authors can run on their own parts."""

from callwright.core.lazy import loader

TYPE_CHECKING = False  # read as true by type checkers; typing itself would cost the import more than this file
if TYPE_CHECKING:
    from callwright.testing.cassettes import Recording as Recording
    from callwright.testing.cassettes import Replay as Replay
    from callwright.testing.checks import check_tool as check_tool
    from callwright.testing.checks import check_toolset as check_toolset
    from callwright.testing.clock import FakeClock as FakeClock
    from callwright.testing.hooks import ScriptedHook as ScriptedHook
    from callwright.testing.loopback import Loopback as Loopback
    from callwright.testing.provider import BrokenOff as BrokenOff
    from callwright.testing.provider import ScriptedProvider as ScriptedProvider
    from callwright.testing.providers import check_provider as check_provider
    from callwright.testing.skills import check_skill as check_skill
    from callwright.testing.stores import check_store as check_store
    from callwright.testing.tools import Flaky as Flaky
    from callwright.testing.tools import Gauge as Gauge
    from callwright.testing.tools import Recorder as Recorder

__all__ = [
    "BrokenOff",
    "FakeClock",
    "Flaky",
    "Gauge",
    "Loopback",
    "Recorder",
    "Recording",
    "Replay",
    "ScriptedHook",
    "ScriptedProvider",
    "check_provider",
    "check_skill",
    "check_store",
    "check_tool",
    "check_toolset",
]

_HOMES = {
    "checks": "check_tool check_toolset",
    "clock": "FakeClock",
    "hooks": "ScriptedHook",
    "provider": "BrokenOff ScriptedProvider",
    "providers": "check_provider",
    "skills": "check_skill",
    "stores": "check_store",
    "tools": "Flaky Gauge Recorder",
    "cassettes": "Recording Replay",
    "loopback": "Loopback",
}

__getattr__ = loader(__name__, _HOMES)
