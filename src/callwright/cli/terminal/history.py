"""What people typed here before, kept in a file to be recalled."""

import json
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True, slots=True)
class PromptHistory:
    """A file with one prompt a line, newest last."""

    file: Path

    def read(self) -> list[str]:
        """Everything that can be read; lines that cannot are left out."""
        if not self.file.exists():
            return []
        found: list[str] = []
        for line in self.file.read_text("utf-8", errors="replace").splitlines():
            with suppress(ValueError):
                prompt: object = json.loads(line)
                if isinstance(prompt, str):
                    found.append(prompt)
        return found

    def add(self, prompt: str) -> None:
        """Write one more."""
        self.file.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        with self.file.open("a", encoding="utf-8") as lines:
            lines.write(json.dumps(prompt, ensure_ascii=False) + "\n")
