"""Entry point of the `callwright` command; answers `--version` without loading the rest of the package."""

import os
import sys

_ERROR, _INTERRUPTED, _PIPE_CLOSED = 1, 130, 141
_IMPORT_PANICS = ("KeyboardInterrupt", "failed to import")


def main() -> int:
    """Run the command line and return its exit code."""
    try:
        code = _run(sys.argv[1:])
    except KeyboardInterrupt:  # also while modules are imported
        code = _INTERRUPTED
    except BrokenPipeError:  # the reader of the output, such as head, has closed it
        code = _PIPE_CLOSED
    except OSError as error:  # the output could not be written
        code = _report(error)
    except BaseException as error:
        # a module written in Rust that is imported later panics if Ctrl-C comes in that moment, and prints why
        if type(error).__name__ != "PanicException" or not any(each in str(error) for each in _IMPORT_PANICS):
            raise
        code = _INTERRUPTED
    if "temporalio.bridge" in sys.modules:
        # its threads may still call Python while the interpreter is taken down, and abort the process
        import atexit

        atexit._run_exitfuncs()  # type: ignore[attr-defined] # noqa: SLF001 - what Python calls next has no other name
        os._exit(_flush(code))
    return _flush(code)


def _run(arguments: list[str]) -> int:
    if arguments in (["--version"], ["-V"], ["-v"]):
        from callwright import __version__

        print(f"callwright {__version__}")
        return 0
    _open_closed_streams()
    for stream in (sys.stdout, sys.stderr):
        # a character that the terminal lacks, or half of a surrogate pair, is written as an escape sequence
        if getattr(stream, "errors", None) not in (None, "backslashreplace"):
            stream.reconfigure(errors="backslashreplace")  # type: ignore[union-attr] - a standard stream
    import signal  # here: it takes a tenth of the time of `--version`

    # while the modules of a command are imported nothing has been started, and Ctrl-C ends the process at once: an
    # exception would make modules written in Rust panic
    handled = signal.getsignal(signal.SIGINT) is signal.default_int_handler  # not where it is ignored, as under nohup

    def handle_interrupt(by_exception: bool) -> None:
        if handled:
            signal.signal(signal.SIGINT, signal.default_int_handler if by_exception else signal.SIG_DFL)

    handle_interrupt(by_exception=False)
    from callwright.cli.main import run

    try:
        code = run(arguments, on_loaded=lambda: handle_interrupt(by_exception=True))
    except SystemExit as end:  # from the argument parser
        code = end.code if isinstance(end.code, int) else _ERROR
    # from here on a second Ctrl-C ends the process at once, without a traceback
    handle_interrupt(by_exception=False)
    return code


def _open_closed_streams() -> None:
    """Put nothing in place of streams that are closed (`>&-`), which Python leaves out."""
    for name in ("stdin", "stdout", "stderr"):
        if getattr(sys, name) is None:
            setattr(sys, name, open(os.devnull, "r" if name == "stdin" else "w", encoding="utf-8"))  # noqa: PTH123, SIM115 - before pathlib is loaded; open until the process ends


def _flush(code: int) -> int:
    """Write what is left of the output here, where an error can still be reported, and not while Python exits."""
    for stream in (sys.stdout, sys.stderr):
        try:
            if stream is not None:  # type: ignore[redundant-expr] - None after the reader of a pipe has gone
                stream.flush()
        except BrokenPipeError:
            code = code or _PIPE_CLOSED
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
