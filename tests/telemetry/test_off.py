"""Where nobody watches, nothing is loaded and nothing is called."""

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


def test_an_unwatched_agent_loads_nothing_of_it() -> None:
    script = AGENT + "print(*sorted(sys.modules))"
    done = subprocess.run([sys.executable, "-I", "-c", script], capture_output=True, text=True, check=True)
    loaded = set(done.stdout.split())
    assert "callwright.agent.loop" in loaded
    assert not {name for name in loaded if name.startswith(("opentelemetry", "callwright.telemetry"))}
    assert not loaded & {"callwright.core.run_events", "callwright.agent.observation"}


def test_the_log_needs_no_opentelemetry() -> None:
    script = "import sys, callwright.telemetry as t; t.log_to(sys.stderr); print('opentelemetry' in sys.modules)"
    done = subprocess.run([sys.executable, "-I", "-c", script], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "False"


def test_without_opentelemetry_it_says_what_to_install() -> None:
    script = (
        "import sys; sys.modules['opentelemetry'] = None\n"
        "from callwright import UsageError\nfrom callwright.telemetry import Telemetry\n"
        "try:\n    Telemetry()\nexcept UsageError as error:\n    print(error)"
    )
    done = subprocess.run([sys.executable, "-I", "-c", script], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "telemetry needs OpenTelemetry: pip install 'callwright[otel]'"


async def test_where_nobody_set_opentelemetry_up_the_observer_runs_and_records_nothing() -> None:
    assert isinstance(await Agent(ScriptedProvider("hi"), observe=Telemetry()).run("go"), Done)
