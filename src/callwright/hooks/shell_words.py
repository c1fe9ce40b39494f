"""A call in the words other agents' hooks know: `Bash`, and `file_path` in full."""

from dataclasses import dataclass
from pathlib import Path

from callwright.core.json import JsonObject
from callwright.core.spec import ToolSpec


@dataclass(frozen=True, slots=True)
class ShownCall:
    """What a hook is shown of a call."""

    name: str
    arguments: JsonObject
    added: str = ""
    """The `file_path` that was put in beside our `path`."""

    @classmethod
    def of(cls, spec: ToolSpec, arguments: JsonObject, folder: str) -> "ShownCall":
        """Show a call that is made in a folder."""
        name = next((alias for alias in spec.aliases if alias[:1].isupper()), spec.name)
        path = arguments.get("path")
        if spec.group != "file" or not isinstance(path, str) or "file_path" in arguments:
            return cls(name, arguments)
        added = str(Path(folder, path).expanduser())
        return cls(name, {**arguments, "file_path": added}, added)

    def ours(self, arguments: JsonObject) -> JsonObject:
        """Arguments a hook gave back, in our words again."""
        given = dict(arguments)
        if self.added and "file_path" in given:
            path = given.pop("file_path")
            if path != self.added:
                given["path"] = path
        return given
