"""Calls written as text: a message of nothing but calls becomes calls, a message that mentions one does not."""

import json

import pytest

from callwright.repairs.text_calls import find_call_in_prose, read_text_calls

TOOLS = {"read": "read", "Read": "read", "bash": "bash", "glob": "glob"}
CALL = '{"name": "read", "arguments": {"path": "a.py"}}'


@pytest.mark.parametrize(
    "text",
    [
        CALL,
        f"<tool_call>\n{CALL}\n</tool_call>",
        f"<tool_call>{CALL}",
        f"<tools>\n{CALL}\n</tools>",
        f"<tool_call>\n{CALL}\n</tool_call><|im_end|>",
        f"<think>I should read it.</think>\n<tool_call>{CALL}</tool_call>",
        f"<tool_call>\n```json\n{CALL}\n```\n</tool_call>",
        f"```json\n{CALL}\n```",
        f"```\n{CALL}\n```",
        f"[{CALL}]",
        f"{{{CALL}}}",
        '{{"name": "read", "arguments": {{"path": "a.py"}}}}',
        '{"tool": "read", "arguments": "{\\"path\\": \\"a.py\\"}"}',
        '{"tool": "read", "path": "a.py"}',
        '{"type": "function", "function": {"name": "read", "parameters": {"path": "a.py"}}}',
        '{"read": {"path": "a.py"}}',
        "{'name': 'functions.read', 'arguments': {'path': 'a.py',}}",
        f"[TOOL_CALLS] [{CALL}]",
        '[TOOL_CALLS]read[ARGS]{"path": "a.py"}',
        f"<|python_tag|>{CALL}",
        '<function=read>{"path": "a.py"}</function>',
        "<tool_call>\n<function=read>\n<parameter=path>\na.py\n</parameter>\n</function>\n</tool_call>",
        '<|channel|>commentary to=functions.read <|constrain|>json<|message|>{"path": "a.py"}<|call|>',
        "<|channel|>analysis<|message|>Let me see.<|end|><|start|>assistant"
        '<|channel|>commentary to=functions.read<|message|>{"path": "a.py"}<|call|>',
        'read(path="a.py")',
        '```tool_code\nread(path="a.py")\n```',
        '[read(path="a.py")]',
    ],
)
def test_message_of_one_call_is_a_call(text: str):
    calls = read_text_calls(text, TOOLS)
    assert calls is not None
    assert [(call.name, json.loads(call.arguments)) for call in calls] == [("read", {"path": "a.py"})]


@pytest.mark.parametrize(
    "text",
    [
        f"<tool_call>{CALL}</tool_call>\n<tool_call>{CALL}</tool_call>",
        f"{CALL}\n{CALL.replace('a.py', 'b.py')}",
        f"[{CALL}, {CALL}]",
        f"```json\n{CALL}\n```\n\n```json\n{CALL}\n```",
        '[read(path="a.py"), read(path="b.py")]',
    ],
)
def test_message_of_two_calls_is_two_calls(text: str):
    assert len(read_text_calls(text, TOOLS) or ()) == 2


@pytest.mark.parametrize(
    "text",
    [
        "",
        "Done.",
        f"I will read it: {CALL}",
        f"{CALL}\nThis reads the file.",
        f"To read a file, send\n\n```json\n{CALL}\n```\n\nand wait.",
        '{"name": "Ada", "age": 36}',
        '{"name": "read", "age": 36}',
        '{"name": "unknown", "arguments": {}}',
        '{"answer": 42}',
        '```python\nprint("hello")\n```',
        '<tool_call>{"name": "read", "arguments": {"path": "a.p',
        '{"name": "read", "arguments": {"path": "a.p',
        "read(path=open('x').read())",
        "read('a.py')",
    ],
)
def test_other_message_is_no_call(text: str):
    assert read_text_calls(text, TOOLS) is None


def test_unknown_tool_in_tags_stays_a_call():
    calls = read_text_calls('<tool_call>{"name": "raed", "arguments": {}}</tool_call>', TOOLS)
    assert calls is not None
    assert calls[0].name == "raed"


@pytest.mark.parametrize(
    ("text", "name"),
    [
        (f"I will read it:\n<tool_call>{CALL}</tool_call>", "read"),
        (f"Let me look.\n\n```json\n{CALL}\n```", "read"),
        (f"First:\n{CALL}\n\nThen the rest.", "read"),
        ("I read the file with the read tool.", None),
        ('The answer is {"name": "Ada"}.', None),
        ("```json\n{}\n```", None),
        ('```python\nread = open("a.py")\n```', None),
    ],
)
def test_call_in_prose_is_found(text: str, name: str | None):
    assert find_call_in_prose(text, TOOLS) == name
