"""Our tools inside other frameworks, and theirs inside ours. Each framework is the user's own: none comes with us."""

from callwright.core.lazy import loader

TYPE_CHECKING = False  # read as true by type checkers; typing itself would cost the import more than this file
if TYPE_CHECKING:
    from callwright.interop.langchain import from_langchain as from_langchain
    from callwright.interop.langchain import to_langchain as to_langchain
    from callwright.interop.openai_agents import from_openai_agents as from_openai_agents
    from callwright.interop.openai_agents import to_openai_agents as to_openai_agents
    from callwright.interop.pydantic_ai import from_pydantic_ai as from_pydantic_ai
    from callwright.interop.pydantic_ai import to_pydantic_ai as to_pydantic_ai

__all__ = [
    "from_langchain",
    "from_openai_agents",
    "from_pydantic_ai",
    "to_langchain",
    "to_openai_agents",
    "to_pydantic_ai",
]

_HOMES = {
    "langchain": "from_langchain to_langchain",
    "openai_agents": "from_openai_agents to_openai_agents",
    "pydantic_ai": "from_pydantic_ai to_pydantic_ai",
}
_INSTALLED_BY = {
    "agents": "openai-agents",
    "langchain_core": "langgraph",
    "langgraph": "langgraph",
    "pydantic_ai": "pydantic-ai-slim",
}
_load = loader(__name__, _HOMES)


def __getattr__(name: str) -> object:
    try:
        return _load(name)
    except ModuleNotFoundError as error:
        missing = (error.name or "").partition(".")[0]
        if missing not in _INSTALLED_BY:
            raise
        from callwright.core.errors import UsageError

        raise UsageError(
            f"{name} needs the package {missing}, which is not installed: pip install {_INSTALLED_BY[missing]}"
        ) from error
