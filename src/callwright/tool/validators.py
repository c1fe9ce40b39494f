"""The compiled part of pydantic-core, which is all that a call needs of it.

`import pydantic_core` also runs that package's Python part: types that describe schemas to type checkers, which took a
sixth of the time until the first tool had run. A later `import pydantic_core` finds the compiled part in `sys.modules`
and shares its classes.
"""

import sys
from importlib import import_module
from importlib.machinery import PathFinder
from importlib.util import module_from_spec
from typing import TYPE_CHECKING, Any

__all__ = [
    "CoreSchema",
    "EnumSchema",
    "SchemaValidator",
    "TypedDictField",
    "ValidationError",
    "from_json",
    "to_json",
    "to_jsonable_python",
]
_COMPILED = "pydantic_core._pydantic_core"


def _load_compiled() -> Any:
    """Import the compiled part alone, or with its package if the usual import system does not find it."""
    package = None if _COMPILED in sys.modules else PathFinder.find_spec(_COMPILED.partition(".")[0])
    spec = None if package is None else PathFinder.find_spec(_COMPILED, package.submodule_search_locations)
    if spec is None or spec.loader is None:
        return import_module(_COMPILED)
    module = module_from_spec(spec)
    spec.loader.exec_module(module)
    # another thread may have imported the package meanwhile: the classes are the same, and the first module stays
    return sys.modules.setdefault(_COMPILED, module)


if TYPE_CHECKING:
    from pydantic_core import CoreSchema, SchemaValidator, ValidationError, from_json, to_json, to_jsonable_python
    from pydantic_core.core_schema import EnumSchema, TypedDictField
else:
    CoreSchema = EnumSchema = TypedDictField = dict[str, Any]
    _compiled = _load_compiled()
    SchemaValidator = _compiled.SchemaValidator
    ValidationError = _compiled.ValidationError
    from_json = _compiled.from_json
    to_json = _compiled.to_json
    to_jsonable_python = _compiled.to_jsonable_python
