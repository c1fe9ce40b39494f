"""Text for the terminal: calls, markdown, widths and colours."""
