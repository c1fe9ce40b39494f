"""The tool contract and the three ways to write a tool: `@tool`, `TypedTool`, `SchemaTool`."""
