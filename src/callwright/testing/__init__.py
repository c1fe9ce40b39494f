"""Fakes for tests, and conformance checks for tools, toolsets, providers, session stores and skills."""

from callwright.core._lazy import lazy_exports

TYPE_CHECKING = False  # read as true by type checkers; importing typing would cost more than this file
if TYPE_CHECKING:
    from callwright.testing.cassettes import Recording as Recording, Replay as Replay
    from callwright.testing.checks import (
        check_provider as check_provider,
        check_skill as check_skill,
        check_tool as check_tool,
        check_toolset as check_toolset,
    )
    from callwright.testing.fakes import (
        BrokenOff as BrokenOff,
        FakeClock as FakeClock,
        Flaky as Flaky,
        Gauge as Gauge,
        Recorder as Recorder,
        ScriptedHook as ScriptedHook,
        ScriptedProvider as ScriptedProvider,
    )
    from callwright.testing.loopback import Loopback as Loopback
    from callwright.testing.requests import (
        anthropic_faults as anthropic_faults,
        check_requests as check_requests,
        google_faults as google_faults,
        openai_chat_faults as openai_chat_faults,
        openai_responses_faults as openai_responses_faults,
    )
    from callwright.testing.stores import check_store as check_store
else:
    __getattr__ = lazy_exports(
        __name__,
        {
            "cassettes": "Recording Replay",
            "checks": "check_provider check_skill check_tool check_toolset",
            "fakes": "BrokenOff FakeClock Flaky Gauge Recorder ScriptedHook ScriptedProvider",
            "loopback": "Loopback",
            "requests": "anthropic_faults check_requests google_faults openai_chat_faults openai_responses_faults",
            "stores": "check_store",
        },
    )
