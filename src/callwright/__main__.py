"""Entry point of the `callwright` command; answers `--version` without loading the rest of the package."""

import os
import sys

_ERROR, _INTERRUPTED = 1, 130


def main() -> int:
    """Run the command line and return its exit code."""
    try:
        code = _run(sys.argv[1:])
    except KeyboardInterrupt:  # also while modules are imported
        code = _INTERRUPTED
    except OSError as error:  # the output could not be written
        code = _report(error)
    except BaseException as error:
        # a module written in Rust panics if Ctrl-C comes while it is imported
        if type(error).__name__ != "PanicException" or "KeyboardInterrupt" not in str(error):
            raise
        code = _INTERRUPTED
    return _flush(code)


def _run(arguments: list[str]) -> int:
    if arguments in (["--version"], ["-V"]):
        from callwright import __version__

        print(f"callwright {__version__}")
        return 0
    for stream in (sys.stdout, sys.stderr):
        encoding = getattr(stream, "encoding", None) or "utf-8"
        if not encoding.lower().startswith("utf"):  # a terminal that lacks a character shows it escaped
            stream.reconfigure(errors="backslashreplace")  # type: ignore[union-attr] - a standard stream
    import signal  # here: it takes a tenth of the time of `--version`

    from callwright.cli.main import run

    try:
        code = run(arguments)
    except SystemExit as end:  # from the argument parser
        code = end.code if isinstance(end.code, int) else _ERROR
    # from here on a second Ctrl-C ends the process at once, without a traceback
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    return code


def _flush(code: int) -> int:
    """Write what is left of the output here, where an error can still be reported, and not while Python exits."""
    for stream in (sys.stdout, sys.stderr):
        try:
            if stream is not None:  # type: ignore[redundant-expr] - None after the reader of a pipe has gone
                stream.flush()
        except BrokenPipeError:
            code = code or _ERROR
            _discard(stream)
        except OSError as error:  # such as a full disk
            code = code or _ERROR
            _discard(stream)
            if stream is sys.stdout:
                _report(error)
    return code


def _report(error: OSError) -> int:
    from contextlib import suppress

    with suppress(OSError):
        print(f"callwright: cannot write the output: {error.strerror}", file=sys.stderr)
    return _ERROR


def _discard(stream: object) -> None:
    null = os.open(os.devnull, os.O_WRONLY)
    os.dup2(null, stream.fileno())  # type: ignore[attr-defined] - a standard stream


if __name__ == "__main__":
    sys.exit(main())
