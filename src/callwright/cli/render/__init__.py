"""Text for the terminal: calls, undo, markdown, widths and colours."""
