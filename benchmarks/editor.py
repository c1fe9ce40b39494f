"""The cost of a permission request in an editor: what the agent takes beside the client's own time.

A client without any SDK drives `callwright acp` and a scripted model whose every call asks. Two times are measured as
the client sees them: from the announcement of a call to its permission request (the call is bound, judged and the
question stored), and from the client's answer to the start of the call (the answer is stored, the call judged again).
"""

import asyncio
import json
import os
import statistics
import sys
import tempfile
import time
from asyncio.subprocess import DEVNULL, PIPE
from pathlib import Path
from typing import Any

_CALLS = 200
_WARM_UP = 20


class _Client:
    """Sends and reads lines of the protocol, with a time for each."""

    def __init__(self, process: asyncio.subprocess.Process) -> None:
        if process.stdin is None or process.stdout is None:
            raise RuntimeError("the process has no pipes")
        self._writer, self._reader = process.stdin, process.stdout

    def send(self, **message: object) -> float:
        self._writer.write(json.dumps(message).encode() + b"\n")
        return time.perf_counter()

    async def receive(self) -> tuple[float, dict[str, Any]]:
        line = await self._reader.readline()
        if not line:
            raise RuntimeError("the agent has ended")
        return time.perf_counter(), json.loads(line)

    async def call(self, number: int, method: str, params: object) -> Any:
        self.send(id=number, method=method, params=params)
        while True:
            _, message = await self.receive()
            if message.get("id") == number:
                return message["result"]


def _write_script(folder: Path) -> Path:
    script = folder / "script.json"
    calls = [
        {"calls": [{"id": f"c{number}", "name": "write", "arguments": {"path": f"{number}.txt", "content": "x"}}]}
        for number in range(_CALLS)
    ]
    script.write_text(json.dumps([*calls, "done"]))
    return script


async def _measure(folder: Path) -> tuple[list[float], list[float]]:
    project = folder / "project"
    project.mkdir()
    environment = {**os.environ, "CALLWRIGHT_HOME": str(folder / "home")}
    settings = '{"limits": {"turns": 1000}}'
    model = f"script:{_write_script(folder)}"
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "callwright", "acp", "--model", model, "--settings", settings),
        stdin=PIPE,
        stdout=PIPE,
        stderr=DEVNULL,
        env=environment,
        limit=1 << 24,
    )
    client = _Client(process)
    await client.call(1, "initialize", {"protocolVersion": 1})
    session = (await client.call(2, "session/new", {"cwd": str(project), "mcpServers": []}))["sessionId"]
    prompt = [{"type": "text", "text": "write them"}]
    client.send(id="prompt", method="session/prompt", params={"sessionId": session, "prompt": prompt})
    asking, answering = list[float](), list[float]()
    announced = answered = 0.0
    while True:
        at, message = await client.receive()
        if message.get("id") == "prompt":
            break
        if message.get("method") == "session/request_permission":
            asking.append(at - announced)
            option = message["params"]["options"][0]["optionId"]
            outcome = {"outcome": "selected", "optionId": option}
            answered = client.send(id=message["id"], result={"outcome": outcome})
            continue
        update = message["params"]["update"]
        if update["sessionUpdate"] == "tool_call":
            announced = at
        elif update["sessionUpdate"] == "tool_call_update" and update.get("status") == "in_progress":
            answering.append(at - answered)
    if process.stdin is not None:
        process.stdin.close()
    await process.wait()
    return asking[_WARM_UP:], answering[_WARM_UP:]


def main() -> None:
    """Measure the requests of one session and print the result."""
    with tempfile.TemporaryDirectory() as folder:
        asking, answering = asyncio.run(_measure(Path(folder)))
    both = [one + two for one, two in zip(asking, answering, strict=True)]
    print(f"{len(both)} permission requests over pipes, each answered at once   median       p95")
    for name, times in (
        ("from the announced call to its request", asking),
        ("from the answer to the start of the call", answering),
        ("the agent's share of a round trip (target: at most 20 ms)", both),
    ):
        print(f"{name:<60} {statistics.median(times) * 1e3:7.2f} ms {_p95(times) * 1e3:7.2f} ms")


def _p95(times: list[float]) -> float:
    return statistics.quantiles(times, n=20)[-1]


if __name__ == "__main__":
    main()
