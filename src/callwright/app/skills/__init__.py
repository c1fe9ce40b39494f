"""Skills in the app: their grants, their agents, their commands."""
