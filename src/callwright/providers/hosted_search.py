"""Web search by the vendor of a model: one request with the vendor's own search tool, apart from the conversation."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from os import environ
from typing import Any, cast

from callwright.core.errors import ToolFailed, Transient, UsageError

_SECONDS = 90.0
_MAX_TOKENS = 2_048
_MAX_SOURCES = 20
_TRANSIENT = frozenset({408, 409, 429, 500, 502, 503, 504, 529})
_ASK = "Search the web and report what you find, with facts, dates and the sources of each. The query: "


@dataclass(frozen=True, slots=True)
class _Api:
    name: str
    base_url: str
    keys: tuple[str, ...]


_APIS: Mapping[str, _Api] = {
    "anthropic": _Api("anthropic", "https://api.anthropic.com", ("ANTHROPIC_API_KEY",)),
    "openai": _Api("openai", "https://api.openai.com", ("OPENAI_API_KEY",)),
    "gcp.gemini": _Api("google", "https://generativelanguage.googleapis.com", ("GEMINI_API_KEY", "GOOGLE_API_KEY")),
}


@dataclass(frozen=True, slots=True)
class HostedSearch:
    """Searches with a vendor's model.

    Args:
        vendor: `anthropic`, `openai` or `gcp.gemini`, as `vendor_of` returns it.
        model: The model that searches.
        base_url: Another address than the vendor's, for a proxy.
        api_key: By default that of the environment.
        variables: The environment; that of the process by default.

    Raises:
        UsageError: The vendor hosts no search, or there is no key.
    """

    vendor: str
    model: str
    base_url: str = ""
    api_key: str = field(default="", repr=False)
    variables: Mapping[str, str] = field(default_factory=lambda: environ, repr=False, compare=False)

    def __post_init__(self) -> None:
        if self.vendor not in _APIS:
            known = ", ".join(f"{api.name}:…" for api in _APIS.values())
            raise UsageError(f"the model {self.model} hosts no web search; use one of {known}, a command or a tool")
        if not self._key:
            raise UsageError(f"no key for the web search of {self.vendor}: set {_APIS[self.vendor].keys[0]}")

    @property
    def url(self) -> str:
        """The address that a search reaches."""
        base = (self.base_url or _APIS[self.vendor].base_url).rstrip("/")
        match self.vendor:
            case "anthropic":
                return f"{base}/v1/messages"
            case "openai":
                return f"{base}/v1/responses"
            case _:
                return f"{base}/v1beta/models/{self.model}:generateContent"

    @property
    def _key(self) -> str:
        named = (self.variables.get(name) for name in _APIS[self.vendor].keys)
        return self.api_key or next(filter(None, named), "")

    async def search(self, query: str) -> str:
        """Return what the vendor found, with its sources.

        Raises:
            Transient: The vendor is busy or cannot be reached.
            ToolFailed: The vendor refused the request or found nothing.
        """
        import httpx  # comes with the vendors' packages

        try:
            async with httpx.AsyncClient(timeout=_SECONDS) as client:
                reply = await client.post(self.url, json=self._body(query), headers=self._headers())
        except httpx.HTTPError as error:
            raise Transient(f"the web search of {self.vendor} did not answer: {type(error).__name__}") from error
        if reply.status_code != 200:
            kind = Transient if reply.status_code in _TRANSIENT else ToolFailed
            raise kind(f"the web search of {self.vendor} answered {reply.status_code}: {reply.text[:300]}")
        try:
            texts, sources = self._read(cast("Mapping[str, Any]", reply.json()))
        except (ValueError, LookupError, TypeError, AttributeError) as error:
            raise ToolFailed(f"the web search of {self.vendor} gave an answer that cannot be read: {error}") from error
        if not texts and not sources:
            raise ToolFailed(f"the web search of {self.vendor} found nothing for {query!r}; try other words")
        listed = [f"{number}. {title or url} {url}" for number, (url, title) in enumerate(sources.items(), 1)]
        return "\n\n".join(("".join(texts).strip(), "\n".join(("Sources:", *listed[:_MAX_SOURCES]))))

    def _headers(self) -> dict[str, str]:
        match self.vendor:
            case "anthropic":
                return {"x-api-key": self._key, "anthropic-version": "2023-06-01"}
            case "openai":
                return {"authorization": f"Bearer {self._key}"}
            case _:
                return {"x-goog-api-key": self._key}

    def _body(self, query: str) -> dict[str, Any]:
        match self.vendor:
            case "anthropic":
                tool = {"type": "web_search_20250305", "name": "web_search", "max_uses": 3}
                messages = [{"role": "user", "content": _ASK + query}]
                return {"model": self.model, "max_tokens": _MAX_TOKENS, "messages": messages, "tools": [tool]}
            case "openai":
                return {"model": self.model, "input": _ASK + query, "tools": [{"type": "web_search"}]}
            case _:
                contents = [{"role": "user", "parts": [{"text": _ASK + query}]}]
                return {"contents": contents, "tools": [{"google_search": {}}]}

    def _read(self, reply: Mapping[str, Any]) -> tuple[list[str], dict[str, str]]:
        match self.vendor:
            case "anthropic":
                return _read_anthropic(reply["content"])
            case "openai":
                return _read_openai(reply["output"])
            case _:
                return _read_google(reply["candidates"])


def _read_anthropic(content: Sequence[Mapping[str, Any]]) -> tuple[list[str], dict[str, str]]:
    texts = [str(block["text"]) for block in content if block["type"] == "text"]
    sources: dict[str, str] = {}
    for block in content:
        found = block["content"] if block["type"] == "web_search_tool_result" else ()
        if isinstance(found, Mapping):
            code = cast("Mapping[str, Any]", found).get("error_code", "unknown")
            raise ToolFailed(f"the web search of anthropic failed: {code}")
        for each in cast("Sequence[Mapping[str, Any]]", found):
            sources.setdefault(str(each["url"]), str(each.get("title", "")))
    return texts, sources


def _read_openai(output: Sequence[Mapping[str, Any]]) -> tuple[list[str], dict[str, str]]:
    parts = [part for item in output if item["type"] == "message" for part in item["content"]]
    texts = [str(part["text"]) for part in parts if part["type"] == "output_text"]
    cited = [note for part in parts for note in part.get("annotations", ()) if note["type"] == "url_citation"]
    return texts, {str(note["url"]): str(note.get("title", "")) for note in cited}


def _read_google(candidates: Sequence[Mapping[str, Any]]) -> tuple[list[str], dict[str, str]]:
    texts = [str(part["text"]) for each in candidates for part in each["content"]["parts"] if "text" in part]
    return texts, {str(web["uri"]): str(web.get("title", "")) for web in _google_sources(candidates)}


def _google_sources(candidates: Sequence[Mapping[str, Any]]) -> Iterator[Mapping[str, Any]]:
    for candidate in candidates:
        for chunk in candidate.get("groundingMetadata", {}).get("groundingChunks", ()):
            if "web" in chunk:
                yield chunk["web"]
