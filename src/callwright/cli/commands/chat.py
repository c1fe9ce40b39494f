"""`callwright` without a command: a conversation in the terminal, or one headless run."""

from callwright.cli.options import parse_options


def run(arguments: list[str]) -> int:
    """Run the conversation and return the exit code."""
    options = parse_options(arguments)
    if options.headless:
        from callwright.cli.headless.run import run as run_headless

        return run_headless(options)
    from callwright.cli.terminal.app import run as run_terminal

    return run_terminal(options)
