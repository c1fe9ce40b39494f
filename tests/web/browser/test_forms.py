"""Forms from schemas: every tool of the toolbox, and the shapes that other inspectors fail on."""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import BrowserContext, Page, expect

from .conftest import Serve, Served, press

pytestmark = [pytest.mark.slow, pytest.mark.timeout(300)]

NODE = {
    "type": "object",
    "title": "Node",
    "required": ["value"],
    "properties": {
        "value": {"type": "integer"},
        "children": {"type": "array", "items": {"$ref": "#/$defs/Node"}},
        "next": {"anyOf": [{"$ref": "#/$defs/Node"}, {"type": "null"}]},
    },
}
CIRCLE = {"properties": {"kind": {"const": "circle"}, "radius": {"type": "number"}}, "required": ["kind", "radius"]}
BOX = {"properties": {"kind": {"const": "box"}, "width": {"type": "number"}}, "required": ["kind", "width"]}
DEFINITIONS = {"Node": NODE, "Circle": {"type": "object", **CIRCLE}, "Box": {"type": "object", **BOX}}
SHAPES: dict[str, tuple[dict[str, Any], list[Any]]] = {
    "nullable_union": ({"anyOf": [{"type": "string"}, {"type": "null"}]}, ["x", None]),
    "type_list": ({"type": ["integer", "string", "null"]}, [3, "x", None]),
    "discriminated": (
        {"oneOf": [{"$ref": "#/$defs/Circle"}, {"$ref": "#/$defs/Box"}]},
        [{"kind": "circle", "radius": 1.5}, {"kind": "box", "width": 2}],
    ),
    "string_or_list": (
        {"anyOf": [{"type": "string"}, {"type": "array", "items": {"type": "string"}}]},
        ["x", ["a", "b"]],
    ),
    "recursive": (
        {"$ref": "#/$defs/Node"},
        [{"value": 1}, {"value": 1, "children": [{"value": 2, "children": [{"value": 3}]}], "next": {"value": 4}}],
    ),
    "enumeration": ({"enum": ["low", "high", 3, None, {"a": 1}]}, ["low", 3, None, {"a": 1}]),
    "tuple": ({"type": "array", "prefixItems": [{"type": "string"}, {"type": "integer"}], "items": False}, [["x", 1]]),
    "map": ({"type": "object", "additionalProperties": {"type": "integer"}}, [{"one": 1, "two": 2}]),
    "list_of_objects": ({"type": "array", "items": {"$ref": "#/$defs/Circle"}}, [[{"kind": "circle", "radius": 2}]]),
    "any": ({}, [{"a": [1, None]}, "x", 1.5, False]),
    "joined": (
        {"allOf": [{"$ref": "#/$defs/Circle"}, {"properties": {"name": {"type": "string"}}}]},
        [{"kind": "circle", "radius": 1, "name": "c"}],
    ),
    "circular_reference": ({"$ref": "#/$defs/Loop"}, ["x"]),
}


def tool(name: str, schema: dict[str, Any]) -> dict[str, Any]:
    return {
        "name": name,
        "description": name,
        "effect": "read",
        "group": "",
        "aliases": [],
        "origin": "mcp",
        "deferred": False,
        "hidden": "",
        "output_schema": None,
        "idempotent": False,
        "schema": {
            "type": "object",
            "required": ["part"],
            "properties": {"part": schema},
            "$defs": {**DEFINITIONS, "Loop": {"$ref": "#/$defs/Loop"}},
        },
    }


@pytest.fixture(scope="module")
def served(serve: Serve) -> Served:
    return serve("hello")


@pytest.fixture
def page(served: Served, desktop: BrowserContext) -> Page:
    opened = served.open(desktop, "/tools")
    expect(opened.locator(".status")).to_have_text("live")
    return opened


@pytest.fixture
def foreign(page: Page) -> Page:
    """The tools page with the tools of a foreign server."""
    listed = {"tools": [tool(name, schema) for name, (schema, _) in SHAPES.items()]}
    page.route("**/api/tools", lambda route: route.fulfill(json=listed))
    return page


def shown_json(page: Page) -> Any:
    page.get_by_role("button", name="JSON").click()
    return json.loads(page.get_by_label("Arguments as JSON").input_value())


def show_form(page: Page, value: object) -> None:
    page.get_by_role("button", name="JSON").click()
    page.get_by_label("Arguments as JSON").fill(json.dumps(value))
    page.get_by_role("button", name="Form").click()


def test_values_of_every_shape_pass_through_the_form(foreign: Page, served: Served):
    page = foreign
    problems: list[str] = []
    page.on("pageerror", lambda error: problems.append(str(error)))
    for name, (_, values) in SHAPES.items():
        page.goto(f"{served.origin}/tools?name={name}")
        expect(page.get_by_role("heading", name=name)).to_be_visible()
        for value in values:
            show_form(page, {"part": value})
            expect(page.locator(".form")).to_be_visible()
            assert shown_json(page) == {"part": value}, name
    assert problems == []


def test_shapes_are_entered_by_hand(foreign: Page, served: Served):
    page = foreign
    page.goto(served.origin + "/tools?name=discriminated")
    page.get_by_label("Kind of part").select_option(index=1)
    page.get_by_label("width").fill("2.5")
    assert shown_json(page) == {"part": {"kind": "box", "width": 2.5}}

    page.goto(served.origin + "/tools?name=string_or_list")
    page.get_by_label("Kind of part").select_option(label="list")
    for place, text in enumerate(["a", "b"], 1):
        page.get_by_role("button", name="Add to part").click()
        page.get_by_label(f"part {place}", exact=True).fill(text)
    page.get_by_role("button", name="Move part 2 up").click()
    assert shown_json(page) == {"part": ["b", "a"]}

    page.goto(served.origin + "/tools?name=recursive")
    page.get_by_label("value").fill("1")
    page.get_by_role("button", name="Add to children").click()
    page.get_by_label("value").nth(1).fill("2")
    assert shown_json(page) == {"part": {"value": 1, "children": [{"value": 2}]}}

    page.goto(served.origin + "/tools?name=nullable_union")
    page.get_by_label("Kind of part").select_option(label="null")
    assert shown_json(page) == {"part": None}

    page.goto(served.origin + "/tools?name=map")
    page.get_by_label("Name of a new entry").fill("one")
    page.get_by_role("button", name="Add", exact=True).click()
    page.get_by_role("textbox", name="one integer").fill("7")
    assert shown_json(page) == {"part": {"one": 7}}


def test_every_tool_of_the_toolbox_has_a_form(page: Page, served: Served):
    expect(page.locator(".pick li").first).to_be_visible()
    names = page.locator(".pick li b").all_inner_texts()
    assert {"read", "write", "edit", "bash", "glob", "grep"} <= set(names)
    for name in names:
        page.goto(f"{served.origin}/tools?name={name}")
        expect(page.get_by_role("heading", level=1, name=name)).to_be_visible()
        fields = page.locator(".form .field").count() + page.get_by_text("This takes no arguments.").count()
        assert fields > 0, name
        assert page.get_by_placeholder("JSON", exact=True).count() == 0, f"{name} has a field without a control"


def test_verdict_follows_the_typing_and_run_shows_the_outcome(page: Page, served: Served):
    (served.project / "notes.txt").write_text("find me\n")
    page.goto(served.origin + "/tools?name=bash")
    expect(page.locator(".judged")).to_contain_text("Not complete")
    page.get_by_label("command").fill("cat notes.txt")
    expect(page.locator(".judged")).to_contain_text("Allowed")
    page.get_by_role("button", name="Run").click()
    expect(page.locator(".outcome")).to_contain_text("find me")
    page.get_by_label("command").fill("touch made.txt")
    expect(page.locator(".judged")).to_contain_text("Asks first")
    page.get_by_role("button", name="Run").click()
    expect(page.locator("[data-question]")).to_be_visible()
    assert not (served.project / "made.txt").exists()
    press(page, "Yes")
    expect(page.get_by_text("As the model reads it")).to_be_visible()
    assert (served.project / "made.txt").exists()


def test_copied_test_passes(page: Page, served: Served, desktop: BrowserContext):
    desktop.grant_permissions(["clipboard-read", "clipboard-write"])
    (served.project / "notes.txt").write_text("find me\n")
    page.goto(served.origin + "/tools?name=bash")
    page.get_by_label("command").fill("cat notes.txt")
    expect(page.locator(".judged")).to_contain_text("Allowed")
    page.get_by_role("button", name="Run").click()
    expect(page.locator(".outcome")).to_contain_text("find me")
    page.get_by_role("button", name="Copy as test").click()
    expect(page.get_by_role("button", name="Copied")).to_be_visible()
    code = page.evaluate("navigator.clipboard.readText()")
    assert "'find me'" in code or '"find me"' in code
    command = [sys.executable, "-c", f"{code}\ntest_bash()"]
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    environment = {**os.environ, "PATH": path, "CALLWRIGHT_HOME": str(served.home), "HOME": str(served.home)}
    subprocess.run(command, cwd=served.project, env=environment, check=True)


def test_question_of_a_tool_is_answered_where_it_is_tried(page: Page, served: Served):
    page.goto(f"{served.origin}/tools?name=ask_user")
    show_form(page, {"question": "Which colour?"})
    page.get_by_role("button", name="Run").click()
    page.get_by_label("Your answer").fill("blue")
    press(page, "Answer")
    expect(page.locator(".outcome")).to_contain_text("blue")
