"""Programs whose arguments are a language of their own, each with its reader."""
