"""Fakes for what tests should not wait for or depend on, and checks plug-in authors can run on their own tools."""

from toolwright.testing.checks import check_tool, check_toolset
from toolwright.testing.clock import FakeClock
from toolwright.testing.hooks import ScriptedHook
from toolwright.testing.tools import Flaky, Gauge, Recorder

__all__ = ["FakeClock", "Flaky", "Gauge", "Recorder", "ScriptedHook", "check_tool", "check_toolset"]
