"""How far a running call is, in one line: a bar where it reported numbers, its last words where it reported text."""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import cast

from callwright.cli.columns import cut, visible
from callwright.core.content import Text

_BAR_COLUMNS = 20
_DONE = ("progress", "done", "current", "completed")
_TOLD = ("message", "text", "status", "step")


@dataclass(frozen=True, slots=True)
class Progress:
    """What a tool reported: a share of the whole if that is known, and words if there were some."""

    share: float | None = None
    text: str = ""

    @classmethod
    def read(cls, report: object) -> "Progress":
        """Understand a share from 0 to 1, a pair (done, total), an object with such fields, or anything as text."""
        match report:
            case Mapping():
                return _of_fields(cast("Mapping[str, object]", report))
            case (int() | float() as done, int() | float() as total):
                return cls(_share(done, total), f"{done:g} of {total:g}")
            case float() if 0 <= report <= 1:
                return cls(report)
            case Text(text):
                return cls(None, _last_line(text))
            case _:
                return cls(None, _last_line(str(report)))

    def line(self, seconds: float, width: int) -> str:
        """The report in at most that many columns: bar, share, time gone and time left, then words."""
        parts = [f"{int(seconds)} s"] if seconds >= 1 else []
        if self.share is not None:
            left = f", {seconds / self.share - seconds:.0f} s left" if seconds >= 1 and 0 < self.share < 1 else ""
            parts = [f"{_bar(self.share)} {self.share:4.0%}", *(f"{part}{left}" for part in parts)]
        return cut(" · ".join([*parts, *filter(None, [self.text])]), width)


def _of_fields(report: Mapping[str, object]) -> Progress:
    done = next((report[name] for name in _DONE if isinstance(report.get(name), (int, float))), None)
    told = _last_line(next((str(report[name]) for name in _TOLD if report.get(name)), ""))
    match done, report.get("total"):
        case (int() | float() as done, int() | float() as total):
            return Progress(_share(done, total), told or f"{done:g} of {total:g}")
        case (int() | float() as done, _):
            return Progress(None, " · ".join(filter(None, [f"{done:g}", told])))
        case _:
            return Progress(None, told or _last_line(str(dict(report))))


def _share(done: float, total: float) -> float | None:
    share = done / total if total else math.nan
    return min(max(share, 0.0), 1.0) if math.isfinite(share) else None


def _bar(share: float) -> str:
    full = round(share * _BAR_COLUMNS)
    return "█" * full + "░" * (_BAR_COLUMNS - full)


def _last_line(text: str) -> str:
    return visible(text.strip().rpartition("\n")[2].rpartition("\r")[2].strip()).replace("\t", " ")
