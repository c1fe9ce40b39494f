"""The `web_fetch` tool: HTTP, address checks, HTML to markdown."""
