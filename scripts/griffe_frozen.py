"""An extension of griffe: documents classes made by `frozen` as what they are, dataclasses."""

from typing import Any

import griffe


class FrozenClasses(griffe.Extension):
    """Lets the signature of a frozen class be read from its fields."""

    def on_class_instance(self, *, cls: griffe.Class, **kwargs: Any) -> None:
        """Replace the decorator `frozen` by `dataclasses.dataclass`."""
        for decorator in cls.decorators:
            if decorator.callable_path == "callwright.core._fast.frozen":
                decorator.value = griffe.ExprName("dataclasses.dataclass")
