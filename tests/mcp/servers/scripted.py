"""A server that answers with the bodies it is given: JSON in its first argument, by method. Standard library only.

A body is what stands in a response behind its id; each of its characters is sent as one byte. With `text_ids` as second
argument, ids are sent as texts; with `batch`, a response is the last element of a list; with `wide`, it is UTF-16.
"""

import json
import sys
from typing import Any

GIVEN: dict[str, str] = json.loads(sys.argv[1])
TEXT_IDS = "text_ids" in sys.argv
TOOL = {"name": "echo", "inputSchema": {"type": "object"}}
KNOWN: dict[str, Any] = {
    "initialize": {
        "protocolVersion": "2025-06-18",
        "serverInfo": {"name": "scripted", "version": "1"},
        "capabilities": {"tools": {}, "prompts": {}, "resources": {}},
    },
    "tools/list": {"tools": [TOOL]},
    "prompts/list": {"prompts": [{"name": "greet"}]},
    "resources/list": {"resources": [{"uri": "notes://a", "name": "a"}]},
    "resources/templates/list": {"resourceTemplates": []},
    "tools/call": {"content": [{"type": "text", "text": "called"}]},
}


def body_of(method: str) -> str:
    if method in GIVEN:
        return GIVEN[method]
    if method in KNOWN:
        return f'"result": {json.dumps(KNOWN[method])}'
    return '"error": {"code": -32601, "message": "no such method"}'


for line in sys.stdin:
    message = json.loads(line)
    if "id" in message:
        number = str(message["id"]) if TEXT_IDS else message["id"]
        response = f'{{"jsonrpc": "2.0", "id": {json.dumps(number)}, {body_of(message["method"])}}}\n'
        if "batch" in sys.argv:
            response = f'[{{"jsonrpc": "2.0", "method": "notifications/message"}}, {response.strip()}]\n'
        sys.stdout.buffer.write(response.encode("utf-16" if "wide" in sys.argv else "latin-1"))
        sys.stdout.buffer.flush()
