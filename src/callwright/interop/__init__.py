"""Adapters for other agent frameworks, in both directions. The frameworks are not dependencies: install your own."""

from callwright.core._lazy import lazy_exports

TYPE_CHECKING = False  # read as true by type checkers; importing typing would cost more than this file
if TYPE_CHECKING:
    from callwright.interop.langchain import from_langchain as from_langchain, to_langchain as to_langchain
    from callwright.interop.openai_agents import (
        from_openai_agents as from_openai_agents,
        to_openai_agents as to_openai_agents,
    )
    from callwright.interop.pydantic_ai import from_pydantic_ai as from_pydantic_ai, to_pydantic_ai as to_pydantic_ai
else:
    __getattr__ = lazy_exports(
        __name__,
        {
            "langchain": "from_langchain to_langchain",
            "openai_agents": "from_openai_agents to_openai_agents",
            "pydantic_ai": "from_pydantic_ai to_pydantic_ai",
        },
        install={
            "agents": "openai-agents",
            "langchain_core": "langgraph",
            "langgraph": "langgraph",
            "pydantic_ai": "pydantic-ai-slim",
        },
    )
