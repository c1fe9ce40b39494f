"""Line breaks: text is worked on with `\\n` and gets the file's own breaks back, line by line."""

from difflib import SequenceMatcher


def unified(text: str) -> str:
    """Write every line break as `\\n`."""
    return text.replace("\r\n", "\n")


def usual_break(text: str) -> str:
    """The line break most lines of a text end with; empty if it has none."""
    windows, all_breaks = text.count("\r\n"), text.count("\n")
    if not all_breaks:
        return ""
    return "\r\n" if windows * 2 > all_breaks else "\n"


def with_break(text: str, line_break: str) -> str:
    """Write every line break of a text as the given one; an empty one leaves the text as it is."""
    return unified(text).replace("\n", line_break) if line_break else text


def spliced(text: str, start: int, end: int, new: str) -> str:
    """Replace a stretch of `text`; offsets count in its unified form, and lines that stay keep their own breaks."""
    plain = unified(text)
    replaced = plain[:start] + new + plain[end:]
    if len(plain) == len(text):
        return replaced
    own = ["\r\n" if line.endswith("\r") else "\n" for line in text.split("\n")[:-1]]
    if "\n" not in own:
        return replaced.replace("\n", "\r\n")
    first, last = plain.count("\n", 0, start), plain.count("\n", 0, end)
    middle = _breaks_of(new, plain[start:end], own[first:last], (own[first:] or own[-1:])[0])
    breaks = [*own[:first], *middle, *own[last:], ""]
    return "".join(line + line_break for line, line_break in zip(replaced.split("\n"), breaks, strict=True))


def _breaks_of(new: str, old: str, own: list[str], following: str) -> list[str]:
    """Breaks for the new lines: a line that was there keeps its own, the others take what is usual around them."""
    usual = max(own, key=own.count) if own else following
    breaks = [usual] * new.count("\n")
    matcher = SequenceMatcher(None, old.split("\n"), new.split("\n"), autojunk=False)
    for a, b, size in matcher.get_matching_blocks():
        for offset in range(size):
            if a + offset < len(own) and b + offset < len(breaks):
                breaks[b + offset] = own[a + offset]
    return breaks
