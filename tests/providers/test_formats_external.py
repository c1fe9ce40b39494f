"""Real tool schemas with valid and invalid arguments: validity survives every format."""

import json
import os
from pathlib import Path
from typing import Any

import jsonschema_rs
import pytest

from callwright.core.json import thaw
from callwright.core.spec import ToolSpec
from callwright.providers.schemas.openai_strict import strict_form
from callwright.providers.tool_encoding import to_anthropic, to_gemini, to_mcp, to_openai_chat, to_openai_responses

_FOLDER = os.environ.get("CALLWRIGHT_CASES")
pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(not _FOLDER, reason="CALLWRIGHT_CASES does not name a folder with external cases"),
]


def _rows(path: str) -> list[dict[str, Any]]:
    with Path(_FOLDER or "", path).open(encoding="utf-8") as lines:
        return [json.loads(line) for line in lines]


def _valid(schema: Any, value: Any) -> bool:
    return jsonschema_rs.is_valid(thaw(schema), thaw(value))


def test_external_valid_calls_round_trip():
    for row in _rows("schema/bfcl_instances.jsonl"):
        form = strict_form(row["schema"])
        if row["valid"] is not True:
            continue
        assert form.schema is not None, form.notes
        written = form.to_wire(row["args"])
        assert _valid(form.schema, written), row["id"]
        assert form.from_wire(written) == row["args"], row["id"]


def test_external_invalid_calls_stay_invalid():
    for row in _rows("schema/bfcl_instances.jsonl"):
        form = strict_form(row["schema"])
        if row["valid"] is True or form.schema is None:
            continue
        written = form.to_wire(row["args"])
        if not _valid(form.schema, written):
            continue
        # null for what is left out and JSON text for an object are strict mode's own words: they read as another call
        read = form.from_wire(written)
        assert read != row["args"], row["id"]
        assert _valid(row["schema"], read), row["id"]


@pytest.mark.parametrize("field", ["input_schema", "parametersJsonSchema", "inputSchema"])
def test_other_formats_keep_validity(field: str):
    send = {"input_schema": to_anthropic, "parametersJsonSchema": to_gemini, "inputSchema": to_mcp}[field]
    for row in _rows("schema/bfcl_instances.jsonl"):
        spec = ToolSpec("tool", "A tool.", row["schema"])
        assert _valid(send(spec).payload[field], row["args"]) == _valid(row["schema"], row["args"]), row["id"]


@pytest.mark.parametrize("source", ["bfcl_live", "sealtools_dev"])
def test_every_real_tool_encodes_for_every_api(source: str):
    plain = 0
    rows = _rows(f"retrieval/{source}/tools.jsonl")
    for row in rows:
        spec = ToolSpec("tool", "A tool.", row["schema"])
        for send in (to_anthropic, to_gemini, to_mcp, to_openai_chat):
            json.dumps(send(spec).payload, allow_nan=False)
        plain += to_openai_responses(spec, strict=True).payload["strict"] is False
    assert plain <= len(rows) / 100
