"""The `toolwright` command: answers `--version` before anything heavier than Python is loaded."""

import sys


def main() -> int:
    """Run the command line and return its exit code."""
    arguments = sys.argv[1:]
    if arguments in (["--version"], ["-V"]):
        from toolwright import __version__

        print(f"toolwright {__version__}")
        return 0
    from toolwright.cli.main import run

    return run(arguments)


if __name__ == "__main__":
    sys.exit(main())
