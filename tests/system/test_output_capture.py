"""What is kept of an output, and that nothing of it is lost."""

import os
import stat

import pytest
from hypothesis import given, strategies as st

from callwright.system.output_capture import OutputCapture, OutputLimits, output_folder


def fed(chunks: list[bytes], kept_chars: int) -> OutputCapture:
    transcript = OutputCapture(OutputLimits(kept_chars=kept_chars))
    for chunk in chunks:
        transcript.feed(chunk)
    transcript.close()
    return transcript


@given(st.lists(st.binary(max_size=40), max_size=20), st.integers(2, 60))
def test_long_output_keeps_its_two_ends(chunks: list[bytes], kept_chars: int):
    whole = b"".join(chunks).decode("utf-8", "replace")
    transcript = fed(chunks, kept_chars)
    half = kept_chars // 2
    assert transcript.chars == len(whole)
    if len(whole) <= 2 * half:
        assert transcript.text == whole
    else:
        assert transcript.text.startswith(whole[:half])
        assert transcript.text.endswith(whole[-half:])
        assert f"{len(whole) - 2 * half} characters left out" in transcript.text


@given(st.lists(st.binary(max_size=40), max_size=20), st.integers(2, 60))
def test_spill_file_has_every_byte(chunks: list[bytes], kept_chars: int):
    transcript = fed(chunks, kept_chars)
    whole = b"".join(chunks)
    assert (transcript.path is not None) == (len(whole) > kept_chars)
    if transcript.path is not None:
        assert transcript.path.read_bytes() == whole
        transcript.path.unlink()


@given(st.lists(st.text(max_size=10), max_size=20), st.data())
def test_increments_join_to_the_output(words: list[str], data: st.DataObject):
    transcript = OutputCapture(OutputLimits(kept_chars=10_000))
    news, read = "", 0
    for word in words:
        transcript.feed(word.encode("utf-8", "replace"))
        if data.draw(st.booleans()):
            new, read = transcript.read_from(read)
            news += new
    assert news + transcript.read_from(read)[0] == transcript.text


def test_increment_names_what_is_missing():
    transcript = OutputCapture(OutputLimits(kept_chars=20))
    transcript.feed(b"x" * 15)
    _, read = transcript.read_from(0)
    transcript.feed(b"y" * 100)
    new, _ = transcript.read_from(read)
    assert new.endswith("]\n" + "y" * 10) and "90 characters left out" in new


def test_output_files_are_private():
    transcript = fed([b"x" * 100], 10)
    assert transcript.path is not None
    assert stat.S_IMODE(output_folder().stat().st_mode) == 0o700
    assert stat.S_IMODE(transcript.path.stat().st_mode) == 0o600
    assert transcript.path.parent == output_folder()


def test_oldest_complete_outputs_make_room(monkeypatch: pytest.MonkeyPatch):
    growing = OutputCapture(OutputLimits(kept_chars=10))
    growing.feed(b"x" * 100)
    first, second = fed([b"x" * 100], 10), fed([b"x" * 100], 10)
    assert growing.path is not None and first.path is not None and second.path is not None
    for path in (growing.path, first.path):
        os.utime(path, (0, 0))
    known = sum(path.stat().st_size for path in output_folder().glob("output-*.txt"))
    monkeypatch.setattr("callwright.system.output_capture._MOST_SPILLED_BYTES", known - 1)
    third = fed([b"x" * 100], 10)
    assert not first.path.exists()
    assert growing.path.exists() and second.path.exists() and third.path is not None and third.path.exists()
    growing.close()
