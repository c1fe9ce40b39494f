"""Calls written as text: a message of nothing but calls becomes calls, a message that mentions one does not."""

import json
from time import process_time

import pytest

from callwright.repairs.commands import unwrap_line
from callwright.repairs.lenient_json import NotJson, read_lenient
from callwright.repairs.names import repair_name
from callwright.repairs.prose_calls import find_call_in_prose
from callwright.repairs.text_calls import read_text_calls

TOOLS = {"read": "read", "Read": "read", "bash": "bash", "glob": "glob"}
CALL = '{"name": "read", "arguments": {"path": "a.py"}}'
INDENTED = json.dumps(json.loads(CALL), indent=2)


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
        '<invoke name="read"><parameter name="path">a.py</parameter></invoke>',
        '<function_calls>\n<invoke name="read">\n<parameter name="path">\na.py\n</parameter>\n</invoke>\n'
        "</function_calls>",
        '<x:function_calls><x:invoke name="read"><x:parameter name="path">a.py</x:parameter></x:invoke>'
        "</x:function_calls>",
        '<｜DSML｜tool_calls>\n<｜DSML｜invoke name="read">\n<｜DSML｜parameter name="path" string="true">a.py'
        "</｜DSML｜parameter>\n</｜DSML｜invoke>\n</｜DSML｜tool_calls>",
        '<||DSML||tool_calls><||DSML||invoke name="functions.read">{"path": "a.py"}</||DSML||invoke>'
        "</||DSML||tool_calls>",
        "<tool_call>read\n<arg_key>path</arg_key>\n<arg_value>a.py</arg_value>\n</tool_call>",
        "<|tool_calls_section_begin|><|tool_call_begin|>functions.read:0<|tool_call_argument_begin|>"
        '{"path": "a.py"}<|tool_call_end|><|tool_calls_section_end|>',
        "<｜tool▁calls▁begin｜><｜tool▁call▁begin｜>function<｜tool▁sep｜>read\n"
        '```json\n{"path": "a.py"}\n```<｜tool▁call▁end｜><｜tool▁calls▁end｜>',
        '<｜tool▁calls▁begin｜><｜tool▁call▁begin｜>read<｜tool▁sep｜>{"path": "a.py"}<｜tool▁call▁end｜>'
        "<｜tool▁calls▁end｜>",
        "<read>\n<path>a.py</path>\n</read>",
        'Action: read\nAction Input: {"path": "a.py"}',
        'Thought: I should look.\nAction: Read\nAction Input: {"path": "a.py"}',
        'Tool: read Arguments {"path": "a.py"}',
        'Tool: read Arguments: {"path": "a.py"}',
        'Tool: read\nArguments: {"path": "a.py"}',
        'Tool: read, Arguments: {"path": "a.py"}',
        '**Tool:** `read` **Arguments:** {"path": "a.py"}',
        'tool: read arguments: {"path": "a.py"}',
        'Function: read Parameters: {"path": "a.py"}',
        'Action: read Action Input: {"path": "a.py"}',
        'Tool: read {"path": "a.py"}',
        'Tool: read\nArguments:\n```json\n{"path": "a.py"}\n```',
        '{"name": "read", "arguments": {"path": "a.py", "path": "a.py"}}',
        '<|tool_call_start|>[read(path="a.py")]<|tool_call_end|>',
        "<function=read>\n<parameter=path>\na.py\n</parameter>\n</function>\n</tool_call>",
        'print(read(path="a.py"))',
        '```tool_code\nprint(default_api.read(path="a.py"))\n```',
        f'{{"tool_calls": [{CALL}]}}',
        f'{{"function_call": {CALL}}}',
        '{"name": "read", "arguments": {}, "parameters": {"path": "a.py"}}',
        '{"type": "tool_use", "id": "toolu_1", "name": "read", "input": {"path": "a.py"}}',
        f"```json\n{CALL}",
        f"{CALL}\n```",
        f"`{CALL}`",
        f"json\n{CALL}",
        json.dumps(CALL),
        f"<|im_start|>assistant\n{CALL}",
        '<tool_call>read(path="a.py")</tool_call>',
        '<tool_call>\nread\n{"path": "a.py"}\n</tool_call>',
        '<tool_use>{"name": "read", "input": {"path": "a.py"}}</tool_use>',
        'read {"path": "a.py"}',
        '[TOOL_CALLS]read{"path": "a.py"}',
        '<m:tool_call>\n<invoke name="read">\n<parameter name="path">a.py</parameter>\n</invoke>\n</m:tool_call>',
        "<s:tool_call><function=read><parameter=path>a.py</parameter></function></s:tool_call>",
        '<function name="read">{"path": "a.py"}</function>',
        "<start_function_call>call:read{path:<escape>a.py<escape>}<end_function_call>",
        '<|tool_call>call:read{path:<|"|>a.py<|"|>}<tool_call|>',
        f"<|action_start|><|plugin|>{CALL}<|action_end|>",
        f"functools[{CALL}]",
        '<|python_tag|>read.call(path="a.py")',
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
        f"{INDENTED}\n{INDENTED.replace('a.py', 'b.py')}",
        f"```json\n{INDENTED},\n\n{INDENTED.replace('a.py', 'b.py')}\n```",
        f"```json\n{CALL}\n```\n\n```json\n{CALL}\n```",
        '[read(path="a.py"), read(path="b.py")]',
        'read(path="a.py")\nread(path="b.py")',
        '[TOOL_CALLS]read{"path": "a.py"}[TOOL_CALLS]read{"path": "b.py"}',
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
        f"{INDENTED}\n{INDENTED[:-2]}",
        f"{INDENTED}\n{{}}",
        "read(path=open('x').read())",
        "read('a.py')",
        'read.delete(path="a.py")',
        "call:read{path:<escape>a.py<escape>}",
        "<m:tool_call>I call read</m:tool_call>",
        'read(path="a "" b")',
        "[read(path='a '' b')]",
        'read(\n  path="a "# b" c"\n)',
        '<invoke name="read"><parameter name="path">a.py',
        '<invoke name="read"><parameter name="path">a.py</parameter><parameter name="path">b.py</parameter></invoke>',
        'I call <invoke name="read"><parameter name="path">a.py</parameter></invoke>',
        "<p><b>a.py</b></p>",
        "<read><path>a.py</path></read> is how a file is read.",
        'Action: think\nAction Input: {"path": "a.py"}',
        "<tool_call>read\n<arg_key>path</arg_key>\n</tool_call>",
        "print('hello')",
        '{"actions": [{"age": 3}]}',
    ],
)
def test_other_message_is_no_call(text: str):
    assert read_text_calls(text, TOOLS) is None


@pytest.mark.parametrize(
    "text",
    [
        '{"name": "read", "arguments": {"path": "a.py"}, "path": "b.py"}',
        '{"name": "read", "arguments": {"path": "a"}, "parameters": {"path": "b"}}',
        '{"name": "read", "tool": "bash", "arguments": {"path": "a"}}',
        "<function=glob>",
        "<function=read><parameter=path>a.py</parameter>",
        "<function=read><parameter=path>a</parameter><parameter=path>b</parameter></function>",
        'read(path="a.py", path="b.py")',
        'read(path=b"a")',
        "read(path=1e999)",
        "read(path={1, 2})",
        'read({"path": "a.py"})',
        'x = read(path="a.py")',
        '{"name": "read", "arguments": {"limit": ' + "9" * 5000 + "}}",
        '<invoke name="read"><parameter name="path">a.py</parameter>',
        '<read path="a.py"/>',
        "<bash>ls</bash>",
        '<tool name="read"><path>a.py</path></tool>',
        '<|channel|>commentary to=functions.read <|message|>{"path": "a.p',
        "Action: read\nAction Input: a.py",
        "Action: read[a.py]",
        'Tool: read Arguments: {"path": "a.py"} Tool: read Arguments: {"path": "b.py"}',
        'Tool: read Arguments: {"path": "a.py"}\nI wait for the file.',
        'I use it now. Tool: read Arguments: {"path": "a.py"}',
        'Tool: read Arguments: {"path": "a.p',
        '{"name": "read", "arguments": {"path": "a.py", "path": "b.py"}}',
        '{"name": "read", "name": "bash", "arguments": {"path": "a.py"}}',
        '<tool_call>{"name": "read", "arguments": {"path": 1, "path": true}}</tool_call>',
        'Sure [TOOL_CALLS][{"name": "read", "arguments": {"path": "a',
        '{"name": "read", "arguments": {"path": "a.p',
        'Thought: first\nsecond\nAction: read\nAction Input: {"path": "a.py"}',
        'I will read it: {"name": "read", "arguments": {"path": "a.py"}}',
        'Let me look.\nread(path="a.py")',
    ],
)
def test_attempt_at_a_call_neither_runs_nor_counts_as_an_answer(text: str):
    assert read_text_calls(text, TOOLS) is None
    assert find_call_in_prose(text, TOOLS) is not None


def test_fields_beside_the_arguments_are_kept():
    calls = read_text_calls('{"tool": "bash", "arguments": {"command": "ls"}, "dry_run": true}', TOOLS)
    assert calls is not None
    assert json.loads(calls[0].arguments) == {"command": "ls", "dry_run": True}


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
        ('I call <invoke name="read"><parameter name="path">a.py</parameter></invoke> now.', "read"),
        ("Let me see. <read><path>a.py</path></read>", "read"),
        ("Use <b>bold</b> and <p>paragraphs</p>.", None),
        ("I read the file with the read tool.", None),
        ("Tool: read. Arguments: the path of a file, as in {path}.", None),
        ('Tool: hammer Arguments: {"size": 3}', None),
        ('The answer is {"name": "Ada"}.', None),
        ("```json\n{}\n```", None),
        ('```python\nread = open("a.py")\n```', None),
        ("Call `glob()` to list files, then `read()`.", None),
        ("```python\nprint(glob('*.py'))\nx = 1\n```\nshows the files.", None),
        ('The config is {"name": "read", "version": 2}.', None),
        ("<p class='read'>text</p>", None),
    ],
)
def test_call_in_prose_is_found(text: str, name: str | None):
    assert find_call_in_prose(text, TOOLS) == name


@pytest.mark.slow
@pytest.mark.parametrize(
    "piece",
    [
        "<read>",
        "<invoke name=",
        "<tool_call>",
        "<function=read>",
        "```json\n",
        "\n{",
        '{"name": "read"}\n',
        "\n \n",
        "<|tool_call_begin|>",
        "<start_function_call>call:read{",
        "<m:tool_call>",
        '<function name="read">',
        "<｜DSML｜",
        "< ",
        "<b>",
        ":0",
        " ",
        "<|channel|>analysis<|message|>",
        "{{",
        "[",
        "'",
    ],
)
def test_long_hostile_message_is_read_in_linear_time(piece: str):
    """With a quadratic reader this takes minutes: the limit on the time of a test fails it."""
    text = piece * (200_000 // len(piece))
    assert read_text_calls(f"x{text}x", TOOLS) is None
    find_call_in_prose(f"Look: {text} that was it", TOOLS)
    with pytest.raises(NotJson):
        read_lenient(f'{{"a": 1, {text}"x')
    with pytest.raises(NotJson):
        read_lenient(f'{text}{{"a": 1}}{text}"x')
    assert repair_name(f"{text}:0:0", TOOLS) is None
    unwrap_line(f"```{text}\n{text}   ```{text}")


@pytest.mark.parametrize("piece", ["<|a|>", "<|action_start|>", "<|a", " ", "\n", "`", "x"])
@pytest.mark.parametrize(
    "opening",
    [
        "<|action_start|>",
        '<|python_tag|>{"name": "read"}',
        '<tool_call>{"name": "read"}',
        "<function=read>{",
        "<tool_calls>{",
        "```json\n{",
        "<|tool_call_begin|>read",
        "commentary to=read",
    ],
)
def test_long_text_after_an_opening_is_read_in_linear_time(opening: str, piece: str):
    began = process_time()
    assert read_text_calls(f"{opening}{piece * (40_000 // len(piece))}?", TOOLS) is None
    assert process_time() - began < 1  # a quadratic reader takes 3 to 60 s


@pytest.mark.parametrize("piece", [":", "tool:", "Action: read ", "a:\n"])
def test_many_labels_are_searched_in_linear_time(piece: str):
    began = process_time()
    assert find_call_in_prose(f"read{piece * (60_000 // len(piece))}", TOOLS) is None
    assert process_time() - began < 2  # a quadratic search takes 5 to 20 s


@pytest.mark.parametrize("count", [4, 100, 3_000])
def test_braces_in_braces_are_read_in_linear_time(count: int):
    began = process_time()
    inner = '"path": "a.py"'
    if count == 4:
        assert read_lenient("{" * count + inner + "}" * count) == {"path": "a.py"}
    else:
        with pytest.raises(NotJson):
            read_lenient("{" * count + inner + "}" * count)
    assert process_time() - began < 1  # with two readings of each pair, a hundred take minutes
