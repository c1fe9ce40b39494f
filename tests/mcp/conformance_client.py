"""Our client as the official conformance suite runs it: connect, sign in if required, call every tool."""

import asyncio
import json
import os
import sys
from collections.abc import Generator, Sequence
from typing import Any

import httpx2
from mcp.client.auth.extensions.client_credentials import (
    ClientCredentialsOAuthProvider,
    PrivateKeyJWTOAuthProvider,
    SignedJWTParameters,
)
from mcp.client.auth.extensions.identity_assertion import IdentityAssertionOAuthProvider
from mcp.shared.auth import OAuthClientInformationFull
from pydantic import AnyUrl

from callwright import Answers, Executor, Registry
from callwright.core.calls import Question
from callwright.core.json import thaw
from callwright.executor.turn_context import Turn
from callwright.mcp import McpServers, ServerConfig
from callwright.mcp.oauth import Tokens
from callwright.policy import AllowEverything

SCENARIO = os.environ.get("MCP_CONFORMANCE_SCENARIO", "")
CONTEXT: dict[str, Any] = json.loads(os.environ.get("MCP_CONFORMANCE_CONTEXT", "{}"))
PATIENCE = 120.0  # the suite starts dozens of us at once
METADATA = "https://conformance-test.local/client-metadata.json"
OURS = ("__answer", "__sign_in", "__list_resources", "__read_resource", "__get_prompt")
SAMPLES: dict[str, Any] = {"number": 1, "integer": 1, "boolean": True, "string": "x", "array": [], "object": {}}


async def visit(url: str) -> None:
    """Act as a browser whose user agrees at once."""
    async with httpx2.AsyncClient(timeout=PATIENCE) as browser:
        answer = await browser.get(url)
        await browser.get(answer.headers["location"])


async def sign_in(servers: McpServers) -> None:
    """Follow every address the server sends us to."""
    visited = ""
    while True:
        url = servers.status()[0].sign_in_url
        if url and url != visited:
            visited = url
            await visit(url)
        await asyncio.sleep(0.02)


async def agree(questions: Sequence[Question]) -> Answers:
    """Accept every form, with its defaults."""
    answers = Answers()
    for question in questions:
        answers.approve(question, arguments={**question.arguments, "answer": filled(question.arguments)})
    return answers


def filled(asked: Any) -> dict[str, Any]:
    """Something for every field that must be there and has no default."""
    fields = asked.get("fields", {})
    properties = fields.get("properties", {})
    needed = [name for name in fields.get("required", ()) if "default" not in properties.get(name, {})]
    # our library fills nothing in by itself: this user takes every default, as with Enter in the form of the terminal
    taken = {name: part["default"] for name, part in properties.items() if "default" in part}
    return taken | {name: SAMPLES.get(properties.get(name, {}).get("type"), "x") for name in needed}


def arguments_for(schema: Any) -> dict[str, Any]:
    """The least a tool takes, and everything that is to become a header."""
    properties = schema.get("properties", {})
    wanted = [name for name in properties if name in schema.get("required", ()) or "x-mcp-header" in properties[name]]
    return {name: SAMPLES.get(properties[name].get("type"), "x") for name in wanted}


def calls(registry: Registry) -> list[tuple[str, dict[str, Any]]]:
    """What the scenario wants called; every tool once where it does not say."""
    wanted = CONTEXT.get("toolCalls")
    if wanted:
        return [(f"mcp__server__{call['name']}", call.get("arguments", {})) for call in wanted]
    names = [name for name in registry.names() if not name.endswith(OURS)]
    return [(name, chosen(name, registry)) for name in names]


def chosen(name: str, registry: Registry) -> dict[str, Any]:
    """The arguments a scenario looks for, else the least the tool takes."""
    if name.endswith("__add_numbers"):
        return {"a": 5, "b": 3}
    schema = registry[name].spec.input_schema
    focal = registry.get("mcp__server__json_schema_2020_12_tool")
    if focal is not None and "schema" in dict(schema).get("properties", {}):  # type: ignore[operator] - an object
        return {"schema": thaw(focal.spec.input_schema)}
    return arguments_for(schema)


async def preset(tokens: Tokens) -> Tokens:
    """Credentials the scenario hands out beforehand."""
    if "client_id" in CONTEXT and "client_secret" in CONTEXT:
        known = OAuthClientInformationFull(
            client_id=CONTEXT["client_id"],
            client_secret=CONTEXT["client_secret"],
            redirect_uris=[AnyUrl("http://127.0.0.1/callback")],
            token_endpoint_auth_method="client_secret_basic",
        )
        await tokens.set_client_info(known)
    return tokens


def own_credentials(url: str, tokens: Tokens) -> httpx2.Auth | None:
    """What a program signs in with by itself, in the scenarios that are about it; the SDK's providers do the work."""
    client = CONTEXT.get("client_id", "")
    if SCENARIO == "auth/client-credentials-basic":
        return ClientCredentialsOAuthProvider(url, tokens, client, CONTEXT["client_secret"])
    if SCENARIO == "auth/client-credentials-jwt":
        signed = SignedJWTParameters(
            issuer=client,
            subject=client,
            signing_key=CONTEXT["private_key_pem"],
            signing_algorithm=CONTEXT["signing_algorithm"],
        )
        return PrivateKeyJWTOAuthProvider(url, tokens, client, signed.create_assertion_provider())
    if SCENARIO == "auth/wif-jwt-bearer":
        return WorkloadToken(url)
    if SCENARIO in ("auth/enterprise-managed-authorization", "auth/cross-app-access-complete-flow"):
        issuer = authorization_server(url)
        return IdentityAssertionOAuthProvider(
            url,
            tokens,
            client,
            CONTEXT["client_secret"],
            issuer,
            identity_assertion,
            token_endpoint_auth_method="client_secret_basic",
        )
    return None


class WorkloadToken(httpx2.Auth):
    """Exchanges the token a workload was given for one of the server's, once."""

    requires_response_body = True

    def __init__(self, url: str) -> None:
        self._url = url
        self._token = ""

    def auth_flow(self, request: httpx2.Request) -> Generator[httpx2.Request, httpx2.Response, None]:
        if not self._token:
            issuer = authorization_server(self._url)
            metadata = yield httpx2.Request("GET", f"{issuer.rstrip('/')}/.well-known/oauth-authorization-server")
            asked = {
                "grant_type": "urn:ietf:params:oauth:grant-type:jwt-bearer",
                "assertion": CONTEXT["valid_jwt"],
                "client_id": CONTEXT["client_id"],
                "resource": self._url,
            }
            answer = yield httpx2.Request("POST", metadata.json()["token_endpoint"], data=asked)
            self._token = answer.json()["access_token"]
        request.headers["Authorization"] = f"Bearer {self._token}"
        yield request


def authorization_server(url: str) -> str:
    """Where the server says that tokens come from."""
    parts = httpx2.URL(url)
    said = httpx2.get(str(parts.copy_with(path=f"/.well-known/oauth-protected-resource{parts.path}")), timeout=PATIENCE)
    return str(said.json()["authorization_servers"][0])


async def identity_assertion(audience: str, resource: str) -> str:
    """Have the company's identity provider vouch for the user."""
    kind = "urn:ietf:params:oauth:token-type"
    asked = {
        "grant_type": "urn:ietf:params:oauth:grant-type:token-exchange",
        "requested_token_type": f"{kind}:id-jag",
        "audience": audience,
        "resource": resource,
        "subject_token": CONTEXT["idp_id_token"],
        "subject_token_type": f"{kind}:id_token",
        "client_id": CONTEXT["idp_client_id"],
    }
    async with httpx2.AsyncClient(timeout=PATIENCE) as client:
        return str((await client.post(CONTEXT["idp_token_endpoint"], data=asked)).json()["access_token"])


async def main(url: str) -> None:
    registry = Registry()
    executor = Executor(registry, AllowEverything())
    tokens = await preset(Tokens())
    config = ServerConfig("server", url=url, client_metadata_url=METADATA, connect_seconds=PATIENCE)
    auth = own_credentials(url, tokens)
    servers = McpServers([config], registry, tokens=lambda _: tokens, auth=lambda _: auth)
    async with servers:
        browser = asyncio.create_task(sign_in(servers))
        try:
            async with asyncio.timeout(PATIENCE):
                while servers.status()[0].condition in ("connecting", "signing in"):
                    if browser.done():
                        await browser  # raises what went wrong on the way
                    await asyncio.sleep(0.02)
            for name, arguments in calls(registry):
                print(name, await executor.run(name, arguments, turn=Turn(ask=agree)))
            print(servers.status())
        finally:
            browser.cancel()


if __name__ == "__main__":
    asyncio.run(main(sys.argv[-1]))
