"""Hand-written schemas judged like an independent validator, on cases kept outside the repository."""

import json
import os
from pathlib import Path
from typing import Any

import pytest

from callwright import InvalidArguments, SchemaTool, ToolSpec

CASES = os.environ.get("CALLWRIGHT_CASES", "")


def _nothing(arguments: object) -> None: ...


def _expected(case: dict[str, Any]) -> bool:
    """An unknown property is valid unless the schema closes itself; the cases leave that to us."""
    return case["valid"] if isinstance(case["valid"], bool) else case["schema"].get("additionalProperties") is not False


def _accepts(schema: dict[str, Any], arguments: Any) -> bool:
    made = SchemaTool(ToolSpec("case", "A case.", schema), _nothing)
    try:
        made.bind(arguments)
    except InvalidArguments as error:
        assert error.message.startswith("invalid arguments: ")
        assert len(error.message) < 2000
        return False
    return True


@pytest.mark.slow
@pytest.mark.skipif(not CASES, reason="CALLWRIGHT_CASES does not name a folder of cases")
def test_external_schema_suite_agrees() -> None:
    path = Path(CASES) / "schema" / "bfcl_instances.jsonl"
    cases = [json.loads(line) for line in path.read_text().splitlines()]
    wrong = [
        f"{case['id']} {case['mutation']}"
        for case in cases
        if {_accepts(case["schema"], form) for form in (case["args"], json.dumps(case["args"]))} != {_expected(case)}
    ]
    assert not wrong, f"{len(wrong)} of {len(cases)}: {wrong[:5]}"
