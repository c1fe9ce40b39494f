"""Shell lines that are refused because bash would run something else than was meant."""

import pytest

from callwright.toolbox.bash.line_slips import refuse_slips


@pytest.mark.parametrize(
    "line", ["echo $((1<<n))", "x=$(( (a + 1) << b ))", "cat <<EOF\nx\nEOF", "cat <<< x", "echo << " + "(" * 60_000]
)
def test_a_shift_in_arithmetic_is_no_here_document(line: str) -> None:
    assert refuse_slips(line) == line


@pytest.mark.parametrize("line", ["cat <<EOF\nx", "echo $((1<<n)); cat <<EOF\nx"])
def test_a_here_document_without_its_end_is_refused(line: str) -> None:
    with pytest.raises(ValueError, match="has no line EOF"):
        refuse_slips(line)
