"""Where nobody watches, nothing is loaded and nothing is called."""

import subprocess
import sys

from toolwright.agent import Agent, Done
from toolwright.telemetry import Telemetry
from toolwright.testing.provider import ScriptedProvider

AGENT = """
import asyncio, sys
from toolwright import Effect, ToolCall, tool
from toolwright.agent import Agent
from toolwright.testing.provider import ScriptedProvider

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
    assert "toolwright.agent.loop" in loaded
    assert not {name for name in loaded if name.startswith(("opentelemetry", "toolwright.telemetry"))}
    assert not loaded & {"toolwright.core.run", "toolwright.agent.observed"}


def test_the_log_needs_no_opentelemetry() -> None:
    script = "import sys, toolwright.telemetry as t; t.log_to(sys.stderr); print('opentelemetry' in sys.modules)"
    done = subprocess.run([sys.executable, "-I", "-c", script], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "False"


def test_without_opentelemetry_it_says_what_to_install() -> None:
    script = (
        "import sys; sys.modules['opentelemetry'] = None\n"
        "from toolwright import UsageError\nfrom toolwright.telemetry import Telemetry\n"
        "try:\n    Telemetry()\nexcept UsageError as error:\n    print(error)"
    )
    done = subprocess.run([sys.executable, "-I", "-c", script], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "telemetry needs OpenTelemetry: pip install 'toolwright[otel]'"


async def test_where_nobody_set_opentelemetry_up_the_observer_runs_and_records_nothing() -> None:
    assert isinstance(await Agent(ScriptedProvider("hi"), observe=Telemetry()).run("go"), Done)
