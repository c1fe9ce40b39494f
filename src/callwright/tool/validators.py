"""What a call needs of pydantic-core; the types of its schemas are for type checkers only, and cost nothing here."""

from typing import TYPE_CHECKING, Any

from pydantic_core import SchemaValidator, ValidationError, from_json, to_json, to_jsonable_python

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

if TYPE_CHECKING:
    from pydantic_core import CoreSchema
    from pydantic_core.core_schema import EnumSchema, TypedDictField
else:
    CoreSchema = EnumSchema = TypedDictField = dict[str, Any]
