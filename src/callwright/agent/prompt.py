"""What a system prompt should say about tools, whatever the agent is for."""

_GUIDANCE = """\
You have tools. Use them to find things out and to do things instead of guessing or describing what you would do.
Make calls that do not depend on each other in parallel, in one message; wait for an outcome only where the next call \
needs it. When a call fails, read what it says and change something before you try again. When a person declines a \
call, do not look for another way to the same effect. Say when you are done, in a few words."""


def default_system_prompt(task: str = "") -> str:
    """Return guidance on using tools well, after what the agent is for."""
    return f"{task}\n\n{_GUIDANCE}" if task else _GUIDANCE
