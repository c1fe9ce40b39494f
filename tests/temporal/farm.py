"""Starts workers by fork from a process that has loaded everything, so that killing many of them is cheap.

Each line of standard input is the JSON of one worker: its arguments, environment and log file. The answer is its id.
"""

import importlib
import json
import os
import signal
import sys
from typing import Any

from callwright.cli.main import run

for module in (
    "agent.agent",
    "cli.commands.worker",
    "codemode",
    "mcp",
    "sessions.postgres",
    "temporal.worker",
    "testing",
):
    importlib.import_module(f"callwright.{module}")


def work(order: dict[str, Any]) -> None:
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    os.environ.update(order["environment"])
    log = os.open(order["log"], os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
    os.dup2(log, 1)
    os.dup2(log, 2)
    os._exit(run(["worker", *order["arguments"]]))


signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # this process does not wait for them
for line in sys.stdin:
    worker = os.fork()
    if worker == 0:
        work(json.loads(line))
    print(worker, flush=True)
