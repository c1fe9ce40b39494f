"""Maps tool names to families: our names, other products' names, groups and MCP names."""

from collections.abc import Iterable, Mapping
from fnmatch import fnmatchcase
from functools import lru_cache

from callwright.core.access import (
    Access,
    DeletePath,
    DeleteResource,
    Reach,
    ReadPath,
    ReadResource,
    RunCommand,
    WritePath,
    WriteResource,
)
from callwright.core.spec import ToolSpec


def words(text: str) -> frozenset[str]:
    """Split a table that is written as words between spaces."""
    return frozenset(text.split())


# spelled without case, "_" and "-": WebFetch, web_fetch and web-fetch are one name
_FAMILIES: Mapping[str, frozenset[str]] = {
    "bash": words(
        "bash shell runshellcommand executecommand execcommand runcommand runterminalcmd runinterminal localshell"
        " terminal monitor"
    ),
    "read": words("read readfile view viewfile readmanyfiles notebookread openfile"),
    "edit": words(
        "edit write editfile writefile replace multiedit notebookedit applypatch createfile strreplace"
        " strreplaceeditor strreplacebasededittool writetofile"
    ),
    "glob": words("glob globsearch findfiles filesearch"),
    "grep": words("grep grepsearch searchfilecontent searchfiles ripgrep"),
    "ls": words("ls list listdirectory listfiles listdir"),
    "webfetch": words("webfetch fetch fetchurl fetchwebpage"),
    "websearch": words("websearch googlewebsearch"),
    "agent": words("agent task subagent"),
    "skill": frozenset(("skill", "activateskill")),
    "todo": words("todo todos todowrite todoread updateplan"),
    "askuser": words("askuser askuserquestion askquestion"),
    "plan": frozenset(("enterplan", "enterplanmode", "exitplan", "exitplanmode")),
    "resource": frozenset(("resource",)),
    "readresource": frozenset(("readresource",)),
    "writeresource": frozenset(("writeresource",)),
    "deleteresource": frozenset(("deleteresource",)),
}
_FAMILY_OF = {name: family for family, names in _FAMILIES.items() for name in names}
FILE_FAMILIES = frozenset({"read", "edit", "glob", "grep", "ls"})
RESOURCE_FAMILIES = frozenset({"resource", "readresource", "writeresource", "deleteresource"})
JUDGED_BY_ACCESS = FILE_FAMILIES | {"bash", "webfetch"}
"""Families whose rules are about files, commands and addresses, whichever tool declares them."""
_GROUPS: Mapping[str, frozenset[str]] = {
    "shell": frozenset({"bash"}),
    "file": FILE_FAMILIES,
    "web": frozenset({"webfetch", "websearch"}),
}
_RULE_NAMES = {
    "bash": "Bash",
    "read": "Read",
    "edit": "Edit",
    "glob": "Glob",
    "grep": "Grep",
    "ls": "LS",
    "webfetch": "WebFetch",
    "websearch": "WebSearch",
    "agent": "Agent",
    "skill": "Skill",
    "todo": "TodoWrite",
    "askuser": "ask_user",
    "plan": "exit_plan",
    "resource": "Resource",
    "readresource": "ReadResource",
    "writeresource": "WriteResource",
    "deleteresource": "DeleteResource",
}
"""The usual spelling of a family in rules."""
OTHER_TOOLS = {
    name.casefold().replace("_", ""): name
    for name in (
        "ask_followup_question bash_kill bash_output cat delete delete_file execute_bash job_kill job_output KillBash"
        " KillShell move move_file read_output remove_file rename rename_file run_code save_file search_content"
        " TaskOutput TaskStop tool_search url_fetch write_todos"
    ).split()
}
"""Our tools and aliases of them that belong to no family, in the compared spelling; each has rules of its own."""
_NEAR = 0.75
_TOOLS_OF_OTHERS = words(
    "croncreate crondelete cronlist listmcpresources lsp powershell readmcpresource repl slashcommand taskcreate"
    " taskget tasklist taskupdate teamcreate teamdelete"
)
"""Tools that have no counterpart here, of programs whose settings we read too."""
_OTHER_GROUPS = words("agent ask plan skill todo")  # of tools that rules name one by one


@lru_cache(maxsize=1024)
def canonical(name: str) -> str:
    """Return the one spelling rules and tools are compared in: the family, or the squashed name."""
    lowered = name.strip().casefold()
    if lowered.startswith(("mcp__", "group:")):
        return lowered
    squashed = lowered.replace("_", "").replace("-", "").replace(".exe", "")
    without_tool = squashed.removesuffix("tool")
    return _FAMILY_OF.get(squashed) or _FAMILY_OF.get(without_tool) or squashed


def is_known(name: str) -> bool:
    """Whether a rule's tool name is one of ours, a common tool of coding agents, an MCP tool, a group or a glob."""
    found = canonical(name)
    return found in _FAMILIES or found in OTHER_TOOLS or found.startswith(("mcp__", "group:")) or "*" in found


def is_of_others(name: str) -> bool:
    """Whether only other programs have a tool of this name, so that it is not a misspelt one of ours."""
    return canonical(name).removesuffix("tool") in _TOOLS_OF_OTHERS


@lru_cache(maxsize=1024)
def nearest_name(name: str, tools: frozenset[str] = frozenset()) -> str:
    """Return the name that a rule about an unknown tool probably means; empty if none is near.

    Args:
        name: The tool of the rule.
        tools: Names of tools that exist beside the common ones.
    """
    known = _FAMILY_OF | OTHER_TOOLS | {canonical(tool): tool for tool in sorted(tools)}
    known.pop("ls")  # near to any short name
    near = find_near(canonical(name), known)
    return _RULE_NAMES.get(near, near)


def find_near(name: str, known: Mapping[str, str]) -> str:
    """Return the tool whose spelling is nearest to a name; empty if none is near, or only other programs have it.

    Args:
        name: What was written, in the compared spelling.
        known: Tools by that spelling.
    """
    if is_of_others(name):
        return ""
    from difflib import get_close_matches  # most names are those of tools that exist

    return next((known[near] for near in get_close_matches(name, known, n=1, cutoff=_NEAR)), "")


def find_misspelt_tool(name: str) -> str:
    """Return what an unknown name probably means; empty for a known tool and for one that is near to none."""
    return "" if is_known(name) else nearest_name(name)


def is_group(name: str) -> bool:
    """Whether a group may have tools: one of the common tools of coding agents, or an MCP server's."""
    return name in _GROUPS or name in _OTHER_GROUPS or name.startswith("mcp:")


def family_of(access: Access) -> str:
    """Return the tool family an access belongs to, whichever tool declares it; empty for `UseTool`."""
    match access:
        case RunCommand():
            return "bash"
        case ReadPath():
            return "read"
        case WritePath() | DeletePath():
            return "edit"
        case Reach():
            return "webfetch"
        case ReadResource():
            return "readresource"
        case WriteResource():
            return "writeresource"
        case DeleteResource():
            return "deleteresource"
        case _:
            return ""


def families_of(access: Access) -> frozenset[str]:
    """Return every family a rule may call an access by: `Resource` stands for reading, writing and deleting one."""
    family = family_of(access)
    return frozenset((family, "resource") if family in RESOURCE_FAMILIES else (family,)) - {""}


def identities(spec: ToolSpec) -> frozenset[str]:
    """Return every name a rule may call a tool by, in the compared spelling."""
    return _identities(spec.name, spec.aliases, spec.group)


@lru_cache(maxsize=1024)
def _identities(name: str, aliases: tuple[str, ...], group: str) -> frozenset[str]:
    server = group.casefold().removeprefix("mcp:") if group.casefold().startswith("mcp:") else ""
    if server:
        # a remote server must not borrow the trust given to a local tool by taking its name
        return frozenset(_mcp_names(server, (name, *aliases)))
    return frozenset(canonical(each) for each in (name, *aliases))


def _mcp_names(server: str, names: Iterable[str]) -> Iterable[str]:
    for name in names:
        lowered = name.casefold()
        if lowered.startswith("mcp__"):
            yield lowered
            continue
        for separator in ("__", "_", "."):
            lowered = lowered.removeprefix(f"{server}{separator}")
        yield f"mcp__{server}__{lowered}"


def names_tool(pattern: str, names: Iterable[str], group: str) -> bool:
    """Whether a rule's tool pattern names a tool known by these names and in this group."""
    if pattern.startswith("group:"):
        wanted = pattern.removeprefix("group:")
        return group.casefold() == wanted or not _GROUPS.get(wanted, frozenset[str]()).isdisjoint(names)
    if pattern.startswith("mcp__") and pattern.count("__") == 1 and "*" not in pattern:
        return any(name.startswith(pattern + "__") for name in names)
    if "*" in pattern:
        return any(fnmatchcase(name, pattern.replace("[", "[[]")) for name in names)
    return pattern in names


def names_one_server(tool: str) -> bool:
    """Whether the tool of a rule stands for tools of one MCP server: `mcp__github__*`."""
    server = tool.removeprefix("mcp__").partition("__")
    return tool.startswith("mcp__") and bool(server[1]) and "*" not in server[0]
