"""Skills in an app: prompt expansion, grants, and skills that run as agents."""
