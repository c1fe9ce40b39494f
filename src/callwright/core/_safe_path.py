"""Takes the working folder off the module path of `python -m callwright`; imported before anything else.

Its files could otherwise replace modules of the standard library: a repository with a `signal.py` would run it. Python
itself imports a few modules earlier; `python -P -m callwright` and the command `callwright` do not look there at all.
"""

import sys


def _module_to_run() -> str:
    """Return the module of `-m`, also where options are joined as in `-Bmcallwright`."""
    arguments = sys.orig_argv[1:]
    for place, argument in enumerate(arguments):
        before, found, name = argument.partition("m")
        if found and before.startswith("-") and before.strip("-bBdEiIOPqsSuvx?") == "":
            return name or "".join(arguments[place + 1 : place + 2])
    return ""


if sys.argv[:1] == ["-m"] and _module_to_run().split(".")[0] == "callwright" and not sys.flags.safe_path:
    del sys.path[0]
