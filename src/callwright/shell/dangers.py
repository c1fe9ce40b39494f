"""What a guard must stop whatever the rules say: raw devices, file systems, removing through a variable, fork bombs."""

import re
from collections.abc import Sequence

from callwright.core.access import Access, DeletePath, WritePath

_DEVICE = re.compile(
    r"/dev/(?:sd[a-z]|hd[a-z]|vd[a-z]|xvd[a-z]|nvme\d|mmcblk\d|r?disk\d|dm-\d|md\d|loop\d|mapper/|mem\b|kmem\b|port\b|sg\d|mtd)"
)
_FORMATTERS = re.compile(r"(?:mkfs(?:\..+)?|mke2fs|mkswap|wipefs|blkdiscard|newfs(?:_.+)?|cryptsetup|sgdisk|sfdisk)\Z")
_FORMATTER_STARTS = frozenset(("mk", "wi", "bl", "ne", "cr", "sg", "sf"))
_REMOVERS = frozenset(("rm", "rmdir", "unlink", "shred", "srm"))
_VARIABLE_ROOT = re.compile(r"""["']?\$(?:\{[^}]*\}|\w+)["']?/+["']?(?:\*["']?|\.\*|\{.*)?\Z""")
_ROOT = re.compile(r"/+(?:\.{0,2}/+)*(?:\*|\.\*|\{.*)?\.{0,2}\Z")
_FUNCTION = re.compile(r"""([^\s(){}|&;$'"`=]+)\s*\(\s*\)\s*\{([^}]{0,200})""")
_MAX_FUNCTIONS = 50
_CHANGES = (WritePath, DeletePath)
_MAX_SEARCHED = 20_000


def danger_of(words: Sequence[str], accesses: Sequence[Access]) -> str:
    """Return what makes one command dangerous beyond any rule, or an empty string."""
    for access in accesses:
        if isinstance(access, _CHANGES) and access.path.startswith("/dev/") and _DEVICE.match(access.path):
            return f"it writes to the raw device {access.path}"
    if not words:
        return ""
    name = words[0].rpartition("/")[2] if "/" in words[0] else words[0]
    if name[:2] in _FORMATTER_STARTS and _FORMATTERS.match(name):
        return f"{name} destroys a file system"
    if name in _REMOVERS:
        return next((f"it removes {word}" for word in words[1:] if _VARIABLE_ROOT.match(word) or _ROOT.match(word)), "")
    return ""


def fork_bomb(line: str) -> str:
    """Recognise a function that starts itself twice."""
    if "(" not in line or "{" not in line:
        return ""
    for place, function in enumerate(_FUNCTION.finditer(line[:_MAX_SEARCHED])):
        calls = re.split(r"[|&;\s]+", function[2]).count(function[1])
        if place < _MAX_FUNCTIONS and calls > 1 and ("|" in function[2] or "&" in function[2]):
            return "it is a fork bomb"
    return ""
