"""Code mode: the model writes a short program, and every call in it is a call like any other."""

from callwright.core._lazy import lazy_exports

TYPE_CHECKING = False  # read as true by type checkers; importing typing would cost more than this file
if TYPE_CHECKING:
    from callwright.codemode.code_mode import CodeMode as CodeMode
    from callwright.codemode.engine import CodeLimits as CodeLimits
    from callwright.codemode.stubs import write_stub as write_stub
else:
    __getattr__ = lazy_exports(
        __name__,
        {"code_mode": "CodeMode", "engine": "CodeLimits", "stubs": "write_stub"},
        install={"pydantic_monty": "'callwright[code]'"},
    )
