"""`python -m benchmarks [NAME …] [--peers]`: print the tables; without a name, the runtime's."""

import sys
from importlib import import_module

TABLES = {
    "runtime": "one call, wide turns, definitions, payloads, import",
    "shell": "analysis of ordinary, long and hostile shell lines",
    "search": "tool retrieval on external sets (TOOLWRIGHT_CASES)",
    "files": "grep and file listing against ripgrep and git",
    "agent": "loop overhead, long conversations, stores",
    "providers": "the body of a request in long conversations",
    "interop": "our tools in other frameworks against the same function as their own tool",
    "telemetry": "what being watched costs: observers, the log, OpenTelemetry",
    "cli": "version, help, the first prompt, and deltas drawn",
    "peers": "the runtime's workloads in other packages, each in an environment of its own",
}
_MODULES = {"search": "search_tools", "files": "search_files", "shell": "shell_lines"}


def main(arguments: list[str]) -> int:
    """Print the tables asked for."""
    names = [name for name in arguments if not name.startswith("-")] or ["runtime"]
    if "--peers" in arguments:
        names.append("peers")
    unknown = [name for name in names if name not in TABLES]
    if unknown:
        known = "\n".join(f"  {name:<8} {what}" for name, what in TABLES.items())
        print(f"there is no table {unknown[0]!r}; there are\n{known}", file=sys.stderr)
        return 2
    for name in names:
        import_module(f"benchmarks.{_MODULES.get(name, name)}").main()
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
