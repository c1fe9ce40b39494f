"""`python -m benchmarks [NAME …] [--peers] [--write]`: print the tables; without a name, the runtime's.

`--write` puts them into docs/benchmarks.md as well.
"""

import io
import sys
from contextlib import redirect_stdout
from importlib import import_module

from benchmarks.page import write_figures

TABLES = {
    "runtime": "one call, wide turns, definitions, payloads, import",
    "shell": "analysis of ordinary, long and hostile shell lines",
    "search": "tool retrieval on external sets (CALLWRIGHT_CASES)",
    "files": "grep and file listing against ripgrep and git",
    "agent": "loop overhead, long conversations, stores",
    "cluster": "many sessions on two workers, with Temporal and PostgreSQL (--sessions=1000)",
    "undo": "an edit with and without undo, and a command that may write",
    "code": "code mode: cost of a call in a program, requests and tokens saved, suspension",
    "providers": "the body of a request in long conversations",
    "interop": "our tools in other frameworks against the same function as their own tool",
    "gateway": "a call through the MCP gateway against the same server called directly",
    "editor": "a permission request in an editor, beside the time of the client",
    "telemetry": "overhead of observers: the log, OpenTelemetry",
    "web": "the page in Chromium: size, first paint, long sessions, bursts of events, delays between screens",
    "cli": "version, help, the first prompt, and deltas drawn",
    "model": "twenty small tasks with a real model, here and in two other packages (model --help)",
    "peers": "the runtime's workloads in other packages, each in an environment of its own",
}
_MODULES = {"search": "search_tools", "files": "search_files", "shell": "shell_lines"}


def main(arguments: list[str]) -> int:
    """Print the tables asked for."""
    if arguments[:1] == ["model"]:
        return int(import_module("benchmarks.model.run").main(arguments[1:]))
    names = [name for name in arguments if not name.startswith("-")] or ["runtime"]
    if "--peers" in arguments:
        names.append("peers")
    unknown = [name for name in names if name not in TABLES]
    known = "\n".join(f"  {name:<10} {what}" for name, what in TABLES.items())
    if {"-h", "--help"}.intersection(arguments):
        print(f"{(__doc__ or '').strip()}\n\n{known}")
        return 0
    if unknown:
        print(f"there is no table {unknown[0]!r}; there are\n{known}", file=sys.stderr)
        return 2
    for name in names:
        measure = import_module(f"benchmarks.{_MODULES.get(name, name)}").main
        if "--write" not in arguments or name == "peers":  # that one writes its own
            measure()
            continue
        printed = io.StringIO()
        with redirect_stdout(printed):
            measure()
        print(printed.getvalue())
        write_figures(name, "```text\n" + printed.getvalue().strip("\n") + "\n```")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
