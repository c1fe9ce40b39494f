"""Fakes for what tests should not wait for or depend on, and checks authors can run on their own parts."""

from toolwright.core.lazy import loader

TYPE_CHECKING = False  # read as true by type checkers; typing itself would cost the import more than this file
if TYPE_CHECKING:
    from toolwright.testing.cassettes import Recording as Recording
    from toolwright.testing.cassettes import Replay as Replay
    from toolwright.testing.checks import check_tool as check_tool
    from toolwright.testing.checks import check_toolset as check_toolset
    from toolwright.testing.clock import FakeClock as FakeClock
    from toolwright.testing.hooks import ScriptedHook as ScriptedHook
    from toolwright.testing.loopback import Loopback as Loopback
    from toolwright.testing.provider import BrokenOff as BrokenOff
    from toolwright.testing.provider import ScriptedProvider as ScriptedProvider
    from toolwright.testing.providers import check_provider as check_provider
    from toolwright.testing.skills import check_skill as check_skill
    from toolwright.testing.stores import check_store as check_store
    from toolwright.testing.tools import Flaky as Flaky
    from toolwright.testing.tools import Gauge as Gauge
    from toolwright.testing.tools import Recorder as Recorder

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
