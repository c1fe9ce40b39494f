"""What a tool is, and the three ways to write one."""
