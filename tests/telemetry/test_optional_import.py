"""Telemetry is loaded only when it is used, and OpenTelemetry is optional."""

import subprocess
import sys

from callwright.agent import Agent, Done
from callwright.telemetry import Telemetry
from callwright.testing.fakes import ScriptedProvider

AGENT = """
import asyncio, sys
from callwright import Effect, ToolCall, tool
from callwright.agent import Agent
from callwright.testing.fakes import ScriptedProvider

@tool(effect=Effect.READ)
async def look() -> str:
    "Look."
    return "ok"

agent = Agent(ScriptedProvider(ToolCall("1", "look"), "done"), [look])
asyncio.run(agent.run("go"))
"""


def test_unobserved_agent_loads_no_telemetry() -> None:
    script = AGENT + "print(*sorted(sys.modules))"
    done = subprocess.run([sys.executable, "-I", "-c", script], capture_output=True, text=True, check=True)
    loaded = set(done.stdout.split())
    assert "callwright.agent.loop" in loaded
    assert not {name for name in loaded if name.startswith(("opentelemetry", "callwright.telemetry"))}
    assert not loaded & {"callwright.core.run_events", "callwright.agent.observation"}


def test_log_works_without_opentelemetry() -> None:
    script = "import sys, callwright.telemetry as t; t.log_to(sys.stderr); print('opentelemetry' in sys.modules)"
    done = subprocess.run([sys.executable, "-I", "-c", script], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "False"


def test_missing_opentelemetry_names_the_extra() -> None:
    script = (
        "import sys; sys.modules['opentelemetry'] = None\n"
        "from callwright import UsageError\nfrom callwright.telemetry import Telemetry\n"
        "try:\n    Telemetry()\nexcept UsageError as error:\n    print(error)"
    )
    done = subprocess.run([sys.executable, "-I", "-c", script], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "telemetry needs OpenTelemetry: pip install 'callwright[otel]'"


async def test_observer_without_sdk_records_nothing() -> None:
    assert isinstance(await Agent(ScriptedProvider("hi"), observe=Telemetry()).run("go"), Done)
