"""Entry point of the `callwright` command; answers `--version` without loading the rest of the package."""

import sys


def main() -> int:
    """Run the command line and return its exit code."""
    arguments = sys.argv[1:]
    if arguments in (["--version"], ["-V"]):
        from callwright import __version__

        print(f"callwright {__version__}")
        return 0
    from callwright.cli.main import run

    return run(arguments)


if __name__ == "__main__":
    sys.exit(main())
