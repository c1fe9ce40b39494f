"""Takes the working folder off the module path of `python -m callwright`; imported before anything else.

Its files could otherwise replace modules of the standard library: a repository with a `signal.py` would run it. Python
itself imports a few modules earlier; `python -P -m callwright` and the command `callwright` do not look there at all.
"""

import sys

_run_as_module = sys.argv[:1] == ["-m"] and " -m callwright" in f"{' '.join(sys.orig_argv)} "
if _run_as_module and not sys.flags.safe_path:
    del sys.path[0]
