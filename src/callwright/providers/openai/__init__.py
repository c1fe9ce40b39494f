"""OpenAI's two APIs, and servers that speak the older one."""
