"""The `edit` tool: finding the text, tolerating typos, explaining a miss."""
