"""Model APIs: how each of them is told about tools, and how each of them is spoken to."""
