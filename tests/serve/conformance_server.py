"""What the official conformance suite expects to find in a server, behind our gateway.

Its tools are ours. Resources, prompts and completions are no tools: they stand on `Gateway.server`, as any program may
put them there.
"""

import asyncio
import base64
import json
import sys
from typing import Any

import mcp_types as types
from mcp import MCPError

from callwright import Effect, Executor, Registry, SchemaTool, ToolContext, ToolFailed, ToolSpec, tool
from callwright.core.content import File, Image, Text
from callwright.mcp.config import ServerConfig
from callwright.mcp.elicitation import AnswerTool, ask_person
from callwright.policy import AllowEverything
from callwright.serve import CallingClient, Gateway, HttpOptions, calling_client, serve_http

PIXEL = base64.b64decode(
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mP8z8DwHwAFBQIAX8jx0gAAAABJRU5ErkJggg=="
)
SOUND = base64.b64decode("UklGRiYAAABXQVZFZm10IBAAAAABAAEAQB8AAAB9AAACABAAZGF0YQIAAAA=")
SCHEMA: dict[str, Any] = {
    "$schema": "https://json-schema.org/draft/2020-12/schema",
    "type": "object",
    "$defs": {
        "address": {
            "$anchor": "addressDef",
            "type": "object",
            "properties": {"street": {"type": "string"}, "city": {"type": "string"}},
        }
    },
    "properties": {
        "name": {"type": "string"},
        "address": {"$ref": "#/$defs/address"},
        "contactMethod": {"type": "string", "enum": ["phone", "email"]},
        "phone": {"type": "string"},
        "email": {"type": "string"},
    },
    "allOf": [{"anyOf": [{"required": ["phone"]}, {"required": ["email"]}]}],
    "if": {"properties": {"contactMethod": {"const": "phone"}}, "required": ["contactMethod"]},
    "then": {"required": ["phone"]},
    "else": {"required": ["email"]},
    "additionalProperties": False,
}
DEFAULTS: dict[str, Any] = {
    "name": {"type": "string", "default": "John Doe"},
    "age": {"type": "integer", "default": 30},
    "score": {"type": "number", "default": 95.5},
    "status": {"type": "string", "enum": ["active", "inactive", "pending"], "default": "active"},
    "verified": {"type": "boolean", "default": True},
}
OPTIONS = ["option1", "option2", "option3"]
TITLED = [{"const": f"value{n}", "title": f"{word} Option"} for n, word in enumerate(("First", "Second", "Third"), 1)]
ENUMS: dict[str, Any] = {
    "untitledSingle": {"type": "string", "enum": OPTIONS},
    "titledSingle": {"type": "string", "oneOf": TITLED},
    "legacyEnum": {
        "type": "string",
        "enum": ["opt1", "opt2", "opt3"],
        "enumNames": ["Option One", "Option Two", "Option Three"],
    },
    "untitledMulti": {"type": "array", "items": {"type": "string", "enum": OPTIONS}},
    "titledMulti": {"type": "array", "items": {"anyOf": TITLED}},
}


@tool(name="test_simple_text", effect=Effect.READ)
async def simple_text() -> str:
    """Give a text."""
    return "This is a simple text response for testing."


@tool(name="test_image_content", effect=Effect.READ)
async def image_content() -> Image:
    """Give a picture."""
    return Image(PIXEL, "image/png")


@tool(name="test_audio_content", effect=Effect.READ)
async def audio_content() -> File:
    """Give a sound."""
    return File(SOUND, "audio/wav")


@tool(name="test_embedded_resource", effect=Effect.READ)
async def embedded_resource() -> File:
    """Give a resource."""
    return File(b"This is an embedded resource content.", "text/plain", "test://embedded-resource")


@tool(name="test_multiple_content_types", effect=Effect.READ)
async def multiple_content_types() -> list[Any]:
    """Give one of each."""
    data = File(b'{"test":"data","value":123}', "application/json", "test://mixed-content-resource")
    return [Text("Multiple content types test:"), Image(PIXEL, "image/png"), data]


@tool(name="test_error_handling", effect=Effect.READ)
async def error_handling() -> str:
    """Fail."""
    raise ToolFailed("This tool intentionally returns an error for testing")


@tool(name="test_tool_with_progress", effect=Effect.READ)
async def tool_with_progress(context: ToolContext) -> str:
    """Report progress."""
    for done in (0, 50, 100):
        context.report({"progress": done, "total": 100})
        await asyncio.sleep(0.05)
    return "done"


async def elicited(context: ToolContext, message: str, fields: dict[str, Any], *required: str) -> str:
    """Ask the user of the client."""
    schema = {"type": "object", "properties": fields, "required": list(required)}
    form = types.ElicitRequestFormParams(message=message, requested_schema=schema)
    result = await ask_person(form, context, "mcp__self__answer")
    return f"Elicitation completed: action={result.action}, content={json.dumps(result.content)}"


@tool(name="test_elicitation", effect=Effect.READ)
async def elicitation(message: str, context: ToolContext) -> str:
    """Ask for a name and an address."""
    fields = {"username": {"type": "string"}, "email": {"type": "string"}}
    return await elicited(context, message, fields, "username", "email")


@tool(name="test_elicitation_sep1034_defaults", effect=Effect.READ)
async def elicitation_defaults(context: ToolContext) -> str:
    """Ask with defaults."""
    return await elicited(context, "Please check these", DEFAULTS)


@tool(name="test_elicitation_sep1330_enums", effect=Effect.READ)
async def elicitation_enums(context: ToolContext) -> str:
    """Ask with choices."""
    return await elicited(context, "Please choose", ENUMS)


async def told(context: ToolContext, key: str, message: str, field: str, kind: str = "string") -> Any:
    """Return the answer to a question with one field."""
    schema = {"type": "object", "properties": {field: {"type": kind}}, "required": [field]}
    form = types.ElicitRequestFormParams(message=message, requested_schema=schema)
    result = await ask_person(form, context, "mcp__self__answer", key=key)
    return (result.content or {}).get(field)


@tool(name="test_input_required_result_elicitation", effect=Effect.READ)
async def input_elicitation(context: ToolContext) -> str:
    """Ask for a name."""
    return f"Hello, {await told(context, 'user_name', 'What is your name?', 'name')}!"


@tool(name="test_input_required_result_request_state", effect=Effect.READ)
async def input_state(context: ToolContext) -> str:
    """Ask and remember."""
    await told(context, "confirm", "Please confirm", "ok", "boolean")
    return "state-ok"


@tool(name="test_input_required_result_tampered_state", effect=Effect.READ)
async def input_tampered(context: ToolContext) -> str:
    """Ask and remember."""
    await told(context, "confirm", "Please confirm", "ok", "boolean")
    return "state-ok"


@tool(name="test_input_required_result_multi_round", effect=Effect.READ)
async def input_rounds(context: ToolContext) -> str:
    """Ask twice."""
    name = await told(context, "step1", "Step 1: What is your name?", "name")
    colour = await told(context, "step2", "Step 2: What is your favorite color?", "color")
    return f"{name} likes {colour}"


@tool(name="test_streaming_elicitation", effect=Effect.READ)
async def streaming_elicitation(context: ToolContext) -> str:
    """Ask in the middle of an answer that streams."""
    context.report({"progress": 1, "total": 2})
    return f"Hello, {await told(context, 'user_name', 'What is your name?', 'name')}!"


def client() -> CallingClient:
    """The suite, which is the client."""
    found = calling_client()
    assert found is not None
    return found


@tool(name="test_logging_tool", effect=Effect.READ)
async def logging_tool() -> str:
    """Say something on the side."""
    for level in ("debug", "info", "error"):
        await client().log(f"a message at {level}", level)
    return "done"


@tool(name="test_tool_with_logging", effect=Effect.READ)
async def tool_with_logging() -> str:
    """Say three things on the side."""
    for said in ("Tool execution started", "Tool processing data", "Tool execution completed"):
        await client().log(said)
        await asyncio.sleep(0.05)
    return "done"


def message(prompt: str) -> types.CreateMessageRequestParams:
    said = types.SamplingMessage(role="user", content=types.TextContent(text=prompt))
    return types.CreateMessageRequestParams(messages=[said], max_tokens=100)


async def sampled(prompt: str) -> str:
    result = await client().sample(message(prompt))
    assert isinstance(result.content, types.TextContent)
    return f"LLM response: {result.content.text}"


@tool(name="test_sampling", effect=Effect.READ)
async def sampling(prompt: str) -> str:
    """Borrow the client's model."""
    return await sampled(prompt)


@tool(name="test_missing_capability", effect=Effect.READ)
async def missing_capability() -> str:
    """Need the client's model."""
    return await sampled("Are you there?")


@tool(name="test_input_required_result_sampling", effect=Effect.READ)
async def input_sampling() -> str:
    """Borrow the client's model."""
    return await sampled("What is the capital of France?")


@tool(name="test_input_required_result_capabilities", effect=Effect.READ)
async def input_capabilities(context: ToolContext) -> str:
    """Ask for what there is."""
    if client().offers("elicitation"):
        return f"Hello, {await told(context, 'user_name', 'What is your name?', 'name')}!"
    return await sampled("Say hello")


@tool(name="test_input_required_result_list_roots", effect=Effect.READ)
async def input_roots() -> str:
    """Ask for folders."""
    return ", ".join(str(root.uri) for root in await client().roots())


@tool(name="test_input_required_result_multiple_inputs", effect=Effect.READ)
async def input_several() -> str:
    """Ask for three things at once."""
    schema = {"type": "object", "properties": {"name": {"type": "string"}}, "required": ["name"]}
    form = types.ElicitRequestFormParams(message="What is your name?", requested_schema=schema)
    given = await client().request(
        {
            "user_name": types.ElicitRequest(params=form),
            "greeting": types.CreateMessageRequest(params=message("Generate a greeting")),
            "client_roots": types.ListRootsRequest(),
        }
    )
    return f"{len(given)} answers"


HEADERS: dict[str, Any] = {
    "type": "object",
    "properties": {"region": {"type": "string", "x-mcp-header": "Region"}, "query": {"type": "string"}},
    "required": ["region"],
}


async def nothing(arguments: dict[str, Any]) -> str:
    return "ok"


RESOURCES = {
    "test://static-text": "This is the content of the static text resource.",
    "test://watched-resource": "watched",
}
PROMPTS: dict[str, list[str]] = {
    "test_simple_prompt": [],
    "test_prompt_with_arguments": ["arg1", "arg2"],
    "test_prompt_with_embedded_resource": ["resourceUri"],
    "test_prompt_with_image": [],
    "test_input_required_result_prompt": [],
}


async def list_resources(context: Any, params: Any) -> types.ListResourcesResult:
    listed = [types.Resource(uri=uri, name=uri, description="a text", mime_type="text/plain") for uri in RESOURCES]
    binary = types.Resource(uri="test://static-binary", name="binary", description="a picture", mime_type="image/png")
    return types.ListResourcesResult(resources=[*listed, binary])


async def list_templates(context: Any, params: Any) -> types.ListResourceTemplatesResult:
    template = types.ResourceTemplate(uri_template="test://template/{id}/data", name="template", description="by id")
    return types.ListResourceTemplatesResult(resource_templates=[template])


async def read_resource(context: Any, params: types.ReadResourceRequestParams) -> types.ReadResourceResult:
    uri = str(params.uri)
    if uri == "test://static-binary":
        picture = base64.b64encode(PIXEL).decode()
        found: Any = types.BlobResourceContents(uri=uri, mime_type="image/png", blob=picture)
    elif uri.startswith("test://template/"):
        number = uri.split("/")[3]
        data = json.dumps({"id": number, "templateTest": True, "data": f"Data for ID: {number}"})
        found = types.TextResourceContents(uri=uri, mime_type="application/json", text=data)
    elif uri in RESOURCES:
        found = types.TextResourceContents(uri=uri, mime_type="text/plain", text=RESOURCES[uri])
    else:
        raise MCPError(types.INVALID_PARAMS, "Resource not found", {"uri": uri})
    return types.ReadResourceResult(contents=[found])


async def list_prompts(context: Any, params: Any) -> types.ListPromptsResult:
    return types.ListPromptsResult(
        prompts=[
            types.Prompt(
                name=name,
                description="a prompt",
                arguments=[types.PromptArgument(name=argument, required=True) for argument in arguments],
            )
            for name, arguments in PROMPTS.items()
        ]
    )


async def get_prompt(
    context: Any, params: types.GetPromptRequestParams
) -> types.GetPromptResult | types.InputRequiredResult:
    given = params.arguments or {}
    if params.name == "test_input_required_result_prompt" and not params.input_responses:
        schema = {"type": "object", "properties": {"context": {"type": "string"}}, "required": ["context"]}
        form = types.ElicitRequestFormParams(message="What context should the prompt use?", requested_schema=schema)
        return types.InputRequiredResult(input_requests={"user_context": types.ElicitRequest(params=form)})
    said: list[Any] = [types.TextContent(text="This is a simple prompt for testing.")]
    if params.name == "test_prompt_with_arguments":
        text = f"Prompt with arguments: arg1='{given['arg1']}', arg2='{given['arg2']}'"
        said = [types.TextContent(text=text)]
    elif params.name == "test_prompt_with_embedded_resource":
        inner = types.TextResourceContents(uri=given["resourceUri"], mime_type="text/plain", text="Embedded content.")
        said = [types.EmbeddedResource(resource=inner), types.TextContent(text="Please process it.")]
    elif params.name == "test_prompt_with_image":
        picture = types.ImageContent(data=base64.b64encode(PIXEL).decode(), mime_type="image/png")
        said = [picture, types.TextContent(text="Please analyze the image above.")]
    return types.GetPromptResult(messages=[types.PromptMessage(role="user", content=block) for block in said])


async def complete(context: Any, params: types.CompleteRequestParams) -> types.CompleteResult:
    return types.CompleteResult(completion=types.Completion(values=[], total=0, has_more=False))


async def acknowledge(context: Any, params: Any) -> types.EmptyResult:
    return types.EmptyResult()


def gateway() -> Gateway:
    """The gateway the suite is run against."""
    registry = Registry(
        simple_text,
        image_content,
        audio_content,
        embedded_resource,
        multiple_content_types,
        error_handling,
        tool_with_progress,
        elicitation,
        elicitation_defaults,
        elicitation_enums,
        input_elicitation,
        input_state,
        input_tampered,
        input_rounds,
        input_capabilities,
        streaming_elicitation,
        logging_tool,
        tool_with_logging,
        sampling,
        missing_capability,
        input_sampling,
        input_roots,
        input_several,
        SchemaTool(ToolSpec("test_header_tool", "Takes an argument from a header", HEADERS), nothing),
        SchemaTool(ToolSpec("json_schema_2020_12_tool", "Tool with JSON Schema 2020-12 features", SCHEMA), nothing),
        AnswerTool("mcp__self__answer", ServerConfig("self", url="http://127.0.0.1/")),
    )
    made = Gateway(registry, Executor(registry, AllowEverything()), name="callwright-conformance")
    add = made.server.add_request_handler
    add("resources/list", types.PaginatedRequestParams, list_resources)
    add("resources/templates/list", types.PaginatedRequestParams, list_templates)
    add("resources/read", types.ReadResourceRequestParams, read_resource)
    add("resources/subscribe", types.SubscribeRequestParams, acknowledge)
    add("resources/unsubscribe", types.UnsubscribeRequestParams, acknowledge)
    add("prompts/list", types.PaginatedRequestParams, list_prompts)
    add("prompts/get", types.GetPromptRequestParams, get_prompt)
    add("completion/complete", types.CompleteRequestParams, complete)
    return made


if __name__ == "__main__":
    asyncio.run(serve_http(gateway(), HttpOptions(port=int(sys.argv[1]), token="")))
