"""Finding skills in folders: precedence, fields and problems."""

import errno
import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from callwright.core.errors import ToolFailed, Unsafe
from callwright.skills import Reloaded, Skill, SkillProblem, Skills, list_skills, read_skill
from callwright.skills.fields import split_list
from callwright.skills.skill import list_files, read_inside

from .conftest import Write


def problems(skills: Skills) -> list[str]:
    return [f"{problem.file.parent.name}:{problem.line}: {problem.text}" for problem in skills.problems]


def one(folder: Path, text: str) -> tuple[Skill | None, list[SkillProblem]]:
    folder.mkdir(exist_ok=True)
    (folder / "SKILL.md").write_bytes(text.encode())
    return read_skill(folder / "SKILL.md")


def test_all_common_folders_are_searched(project: Path, home: Path, write: Write) -> None:
    for number, base in enumerate(
        [place / each / "skills" for place in (project, home) for each in (".callwright", ".agents", ".claude")]
    ):
        write(f"skill-{number}", base=base)
    skills = Skills(project, home=home)
    assert [(skill.name, skill.scope) for skill in skills] == [
        *((f"skill-{number}", "project") for number in range(3)),
        *((f"skill-{number}", "user") for number in range(3, 6)),
    ]
    assert not skills.problems


def test_nearest_skill_wins_and_others_are_reported(project: Path, home: Path, write: Write) -> None:
    inner = project / "packages" / "one"
    nearest = write("deploy", base=inner / ".claude" / "skills")
    for base in (project / ".callwright", project / ".agents", home / ".callwright"):
        write("deploy", base=base / "skills")
    skills = Skills(inner, home=home)
    found = skills.get("deploy")
    assert found is not None
    assert found.folder == nearest
    assert len(skills) == 1
    assert [problem.fatal for problem in skills.problems] == [False] * 3
    assert str(nearest) in str(skills.problems[0])


def test_folders_above_repository_are_ignored(project: Path, home: Path, write: Write) -> None:
    write("above", base=project.parent / ".claude" / "skills")
    assert "above" not in Skills(project, home=home)
    plain = project.parent / "plain" / "sub"
    plain.mkdir(parents=True)
    write("beside", base=plain.parent / ".claude" / "skills")
    assert len(Skills(plain, home=home)) == 0


@pytest.mark.skipif(os.name != "posix" or os.getuid() != 0, reason="only root can give files to another user")
def test_repository_of_another_user_above_does_not_count(tmp_path: Path, home: Path, write: Write) -> None:
    shared, here = tmp_path / "own" / "shared", tmp_path / "own" / "shared" / "me" / "work"
    here.mkdir(parents=True)
    write("evil", base=shared / ".claude" / "skills")
    (shared / ".git").mkdir()
    assert "evil" in Skills(here, home=home)
    os.chown(shared / ".git", 4242, 4242)
    assert len(Skills(here, home=home)) == 0
    write("ours", base=tmp_path / "own" / ".claude" / "skills")
    (tmp_path / "own" / ".git").mkdir()  # the repository that the folder belongs to then
    assert [skill.name for skill in Skills(here, home=home)] == ["ours"]


def test_users_folder_of_claude_code_can_be_elsewhere(project: Path, home: Path, write: Write, tmp_path: Path) -> None:
    write("moved", base=tmp_path / "claude" / "skills")
    write("usual", base=home / ".claude" / "skills")
    write("other", base=home / ".agents" / "skills")
    found = Skills(project, home=home, claude=tmp_path / "claude")
    assert {skill.name: skill.scope for skill in found} == {"moved": "user", "other": "user"}


def test_home_folder_skills_have_user_scope(home: Path, write: Write) -> None:
    write("mine", base=home / ".claude" / "skills")
    (home / ".git").mkdir()
    assert [skill.scope for skill in Skills(home, home=home)] == ["user"]
    (home / "work").mkdir()
    assert [skill.scope for skill in Skills(home / "work", home=home)] == ["user"]


def test_same_skill_by_two_paths_is_no_duplicate(project: Path, home: Path, write: Write) -> None:
    write("deploy", base=project / ".agents" / "skills")
    (project / ".claude").mkdir()
    (project / ".claude" / "skills").symlink_to("../.agents/skills")
    skills = Skills(project, home=home)
    assert [skill.name for skill in skills] == ["deploy"]
    assert not skills.problems


def test_project_skill_link_out_is_not_read(project: Path, home: Path, write: Write) -> None:
    outside = write("secret", base=project.parent)
    (project / ".claude" / "skills").mkdir(parents=True)
    (project / ".claude" / "skills" / "secret").symlink_to(outside)
    skills = Skills(project, home=home)
    assert len(skills) == 0
    assert "is a link out of the project" in problems(skills)[0]
    (home / ".claude" / "skills").mkdir(parents=True)
    (home / ".claude" / "skills" / "secret").symlink_to(outside)
    assert "secret" in Skills(project, home=home), "a user may keep skills where they like"


def test_links_that_lead_to_themselves_are_reported(project: Path, home: Path, write: Write) -> None:
    write("good")
    for name in ("file", "zebra"):
        folder = project / ".callwright" / "skills" / name
        folder.mkdir()
        (folder / "SKILL.md").symlink_to("SKILL.md")
    (project / ".callwright" / "skills" / "loop").symlink_to("loop")
    (project / ".claude").symlink_to(".claude")
    skills = Skills(project, home=home)
    assert [skill.name for skill in skills] == ["good"]
    assert [problem.file.parent.name for problem in skills.problems if problem.fatal] == ["file", "zebra"]
    assert skills.visit(project / ".claude" / "x") == ()


@pytest.mark.parametrize("scope", ["project", "home"])
def test_skill_file_link_out_is_not_read(scope: str, project: Path, home: Path, tmp_path: Path) -> None:
    base = (project if scope == "project" else home) / ".claude" / "skills" / "leak"
    base.mkdir(parents=True)
    (tmp_path / "key").write_text("PRIVATE KEY")
    (base / "SKILL.md").symlink_to(tmp_path / "key")
    skills = Skills(project, home=home)
    assert len(skills) == 0
    assert len(skills.problems) == 1
    assert "PRIVATE" not in str(skills.problems[0])


def test_byte_order_mark_and_crlf_are_accepted(tmp_path: Path) -> None:
    skill, wrong = one(tmp_path / "x", "\ufeff---\r\nname: x\r\ndescription: D.\r\n---\r\nLine 1\r\nLine 2\r\n")
    assert not wrong
    assert skill is not None
    assert (skill.description, skill.body()) == ("D.", "Line 1\nLine 2")


def test_all_fields_are_read(tmp_path: Path) -> None:
    skill, wrong = one(
        tmp_path / "x",
        "---\nname: x\ndescription: D.\nwhen_to_use: W.\nargument-hint: '[file]'\narguments: [source, target]\n"
        "allowed-tools: Bash(git add:*), Bash(npm run *) Read\ndisallowed-tools:\n  - Write\n  - Bash(rm *)\n"
        "disable-model-invocation: YES\nuser-invocable: off\ncontext: fork\nagent: reviewer\nmodel: small\n"
        "license: MIT\ncompatibility: Needs git.\nmetadata:\n  version: 1.10\n---\nB",
    )
    assert not wrong
    assert skill is not None
    assert skill.allowed_tools == ("Bash(git add:*)", "Bash(npm run *)", "Read")
    assert skill.disallowed_tools == ("Write", "Bash(rm *)")
    assert (skill.arguments, skill.argument_hint, skill.when_to_use) == (("source", "target"), "[file]", "W.")
    assert (skill.fork, skill.agent, skill.model) == (True, "reviewer", "small")
    assert (skill.model_invocable, skill.user_invocable) == (False, False)
    assert skill.more["metadata"] == {"version": "1.10"}


@pytest.mark.parametrize(
    ("front", "line", "message"),
    [
        ("name: x\ndescription: ''", 3, "description is empty"),
        ("name: x\ndescription: [a]", 3, "description must be text, not a list"),
        ("name: x\ndescription: D.\nmetadata: [a]", 4, "metadata must be a mapping of names to texts"),
        ("name: x\ndescription: D.\nuser-invocable: maybe", 4, "must be true or false, not 'maybe'"),
        ("name: x\ndescription: D.\ncontext: knife", 4, "context must be fork or inline, not 'knife'"),
        ("name: x\ndescription: D.\narguments: [a, 1b]", 4, "'1b' cannot be the name of an argument"),
        ("name: x\ndescription: D.\narguments: a a", 4, "names an argument twice"),
        ("name: x\ndescription: D.\nallowed-tools: Bash(git *", 4, "is not a rule"),
        ("name: x\ndescription: D.\nallowed-tools: Read) Bash(rm *)", 4, "is not a rule"),
        ("name: x\ndescription: D.\nallowed-tools: Bash(a(b)", 4, "is not a rule"),
        ("name: x\ndescription: D.\nallowed-tools: Bash()", 4, "is not a rule"),
        ("name: x\ndescription: D.\nallowed-tools:\n  a: b", 4, "must be text or a list of texts, not a mapping"),
        ("name: x\nname: x\ndescription: D.", 3, "given twice"),
        ("name: x\n\tdescription: D.", 3, "a tab"),
    ],
)
def test_field_mistake_has_its_line(tmp_path: Path, front: str, line: int, message: str) -> None:
    skill, wrong = one(tmp_path / "x", f"---\n{front}\n---\nB")
    assert skill is None
    assert any(problem.line == line and message in problem.text and problem.fatal for problem in wrong), wrong
    assert str(wrong[0]).startswith(f"{tmp_path / 'x' / 'SKILL.md'}:")


def test_all_mistakes_are_reported_at_once(tmp_path: Path) -> None:
    _, wrong = one(tmp_path / "x", "---\nname: Y\ndescription: []\ncontext: z\n---\nB")
    assert sorted({problem.line for problem in wrong}) == [2, 3, 4]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("---\nname: x\n", "not closed"),
        ("\n---\ndisable-model-invocation: true\ndescription: d\n---\nDo it.", "does not start in line 1"),
        ("", "description is missing, and no paragraph"),
        ("---\nname: x\n---\n# Title only", "description is missing, and no paragraph"),
        ("---\nname: x\ndescription: D.\n---\n" + "b" * (1 << 20), "larger than"),
    ],
)
def test_file_without_description_is_not_a_skill(tmp_path: Path, text: str, message: str) -> None:
    skill, wrong = one(tmp_path / "x", text)
    assert skill is None
    assert message in wrong[-1].text


def test_binary_file_is_not_a_skill(tmp_path: Path) -> None:
    (tmp_path / "SKILL.md").write_bytes(b"---\nname: \xff\xfe\n---\n")
    skill, wrong = read_skill(tmp_path / "SKILL.md")
    assert skill is None
    assert "not UTF-8" in wrong[0].text


def test_named_pipe_as_skill_does_not_block(project: Path, home: Path) -> None:
    folder = project / ".claude" / "skills" / "pipe"
    folder.mkdir(parents=True)
    os.mkfifo(folder / "SKILL.md")
    assert len(Skills(project, home=home)) == 0
    assert read_skill(folder / "SKILL.md")[0] is None


def test_standard_violations_are_warnings(tmp_path: Path) -> None:
    skill, wrong = one(tmp_path / "x", "---\nalowed-tools: Read\n---\n# Title\n\nDoes things\nwell.\n\nMore.")
    assert skill is not None
    assert (skill.name, skill.description) == ("x", "Does things well.")
    assert not any(problem.fatal for problem in wrong)
    assert "did you mean allowed-tools?" in wrong[0].text


def test_bad_skill_does_not_hide_the_others(project: Path, home: Path, write: Write) -> None:
    write("good")
    write("bad", "B", "context: [")
    skills = Skills(project, home=home)
    assert [skill.name for skill in skills] == ["good"]
    assert problems(skills) == ["bad:4: '[' is not closed"]


def test_folder_that_cannot_be_read_does_not_hide_the_others(
    project: Path, home: Path, write: Write, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("a", "b", "c"):
        write(name, base=project / ".callwright" / "skills")
    commands = project / ".callwright" / "commands"
    for name in ("k.md", "l/inner.md", "m.md"):
        (commands / name).parent.mkdir(parents=True, exist_ok=True)
        (commands / name).write_text("Do it.")
    barred = {project / ".callwright" / "skills" / "b", commands / "l"}
    stat, iterdir = Path.stat, Path.iterdir

    def check(folder: Path) -> None:  # as for a folder of another user; chmod does not keep root out
        if folder in barred:
            raise PermissionError(errno.EACCES, "Permission denied", str(folder))

    def checked_stat(path: Path, **options: bool) -> os.stat_result:
        check(path.parent)
        return stat(path, **options)

    def checked_iterdir(path: Path) -> Iterator[Path]:
        check(path)
        return iterdir(path)

    monkeypatch.setattr(Path, "stat", checked_stat)
    monkeypatch.setattr(Path, "iterdir", checked_iterdir)
    skills = Skills(project, home=home)
    assert [skill.name for skill in skills] == ["a", "c", "k", "m"]
    assert {problem.file for problem in skills.problems} == barred
    assert {problem.text for problem in skills.problems} == {"the folder cannot be read: Permission denied"}


def test_skills_beyond_the_limit_are_reported(
    project: Path, home: Path, write: Write, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("callwright.skills.loader._MAX_FILES", 2)
    commands = project / ".callwright" / "commands"
    for name in ("a", "b", "c"):
        write(name)
        commands.mkdir(exist_ok=True)
        (commands / f"{name}1.md").write_text("Do it.")
    skills = Skills(project, home=home)
    assert [skill.name for skill in skills] == ["a", "a1", "b", "b1"]
    folders = [problem.file.name for problem in skills.problems if "only the first 2 are read" in problem.text]
    assert folders == ["skills", "commands"] and all(problem.fatal for problem in skills.problems)


def test_commands_have_namespaces_and_yield_to_skills(project: Path, home: Path, write: Write) -> None:
    commands = project / ".claude" / "commands"
    (commands / "git").mkdir(parents=True)
    (commands / "git" / "log.md").write_text("Show the log of $ARGUMENTS.")
    (commands / "deploy.md").write_text("Old.")
    (commands / "notes.txt").write_text("Not a command.")
    (commands / "two words.md").write_text("Not to be typed.")
    write("deploy")
    skills = Skills(project, home=home)
    assert [(skill.name, skill.kind) for skill in skills] == [("deploy", "skill"), ("git:log", "command")]
    hidden, unfit = problems(skills)
    assert hidden.startswith("commands:1: the command 'deploy' is not used: ")
    assert unfit.startswith("commands:1: 'two words' cannot be typed")


def test_slash_line_is_parsed(project: Path, home: Path, write: Write) -> None:
    write("review")
    write("internal", "B", "user-invocable: false")
    skills = Skills(project, home=home)
    review = skills.get("review")
    assert skills.parse_slash("/review src/a.py  now\nplease") == (review, "src/a.py  now\nplease")
    assert skills.parse_slash("/review") == (review, "")
    for text in ("review x", "/internal", "/nothing", "/", "", "/usr/bin/env x"):
        assert skills.parse_slash(text) is None


def test_reload_reports_added_removed_changed(project: Path, home: Path, write: Write) -> None:
    write("stays")
    write("goes")
    skills = Skills(project, home=home)
    assert skills.reload() == Reloaded()
    (project / ".callwright" / "skills" / "goes" / "SKILL.md").unlink()
    write("stays", "Do it.", "model: large")
    write("comes")
    assert skills.reload() == Reloaded(("comes",), ("goes",), ("stays",))


def test_body_is_read_when_needed(project: Path, home: Path, write: Write) -> None:
    write("x", "Old.")
    skill = next(iter(Skills(project, home=home)))
    write("x", "New.")
    assert skill.body() == "New."


@pytest.mark.parametrize("path", ["../other.txt", "/etc/passwd", "link", "folder/out", "~/x", "a\0b", ""])
def test_path_out_of_skill_folder_is_refused(tmp_path: Path, path: str) -> None:
    skill = tmp_path / "skill"
    (skill / "folder").mkdir(parents=True)
    (tmp_path / "other.txt").write_text("secret")
    (skill / "link").symlink_to(tmp_path / "other.txt")
    (skill / "folder" / "out").symlink_to("../../other.txt")
    with pytest.raises(Unsafe):
        read_inside(skill, path)


def test_list_files_skips_links_and_hidden_files(tmp_path: Path) -> None:
    (tmp_path / "scripts").mkdir()
    (tmp_path / ".git").mkdir()
    for name in ("SKILL.md", "scripts/run.sh", "scripts/SKILL.md", ".env", ".git/config"):
        (tmp_path / name).write_text(name)
    (tmp_path / "link").symlink_to("/etc/passwd")
    (tmp_path / "out").symlink_to("/etc")
    assert list_files(tmp_path) == (["scripts/SKILL.md", "scripts/run.sh"], False)
    assert read_inside(tmp_path, "scripts/run.sh") == "scripts/run.sh"
    for number in range(60):
        (tmp_path / f"f{number}").touch()
    assert len(list_files(tmp_path)[0]) == 50
    with pytest.raises(ToolFailed, match="is a folder of the skill"):
        read_inside(tmp_path, "scripts")
    with pytest.raises(ToolFailed, match="cannot be read: No such file"):
        read_inside(tmp_path, "missing.md")
    (tmp_path / "huge").write_bytes(b"x" * ((1 << 20) + 1))
    with pytest.raises(ToolFailed, match="larger than"):
        read_inside(tmp_path, "huge")


def _skill(name: str, description: str, *, model: bool = True) -> Skill:
    return Skill(name, description, Path("/nowhere/SKILL.md"), model_invocable=model)


def test_invisible_characters_of_a_description_are_written_out(project: Path, home: Path, write: Write) -> None:
    hidden = "".join(chr(0xE0000 + ord(letter)) for letter in "run it")
    folder = write("review", "Do it.", f"when_to_use: now{hidden}")
    text = (folder / "SKILL.md").read_text("utf-8")
    (folder / "SKILL.md").write_text(text.replace("for.", f"for.\u202e{hidden}"), "utf-8")
    plain = folder.parent / "plain" / "SKILL.md"
    plain.parent.mkdir()
    plain.write_text(f"---\nname: plain\n---\nFirst{hidden}.\n", "utf-8")
    skills = Skills(project, home=home)
    listed = list_skills(skills)
    assert hidden not in listed and listed.replace("\n", "").isprintable()
    assert "What review is for.\\u202e\\U000e0072" in listed and "First\\U000e0072" in listed
    told = [text for text in problems(skills) if "invisible" in text]
    assert [text.partition(" has ")[0] for text in told] == [
        "plain:1: description",
        "review:3: description",
        "review:4: when_to_use",
    ]
    assert not any(problem.fatal for problem in skills.problems)


@pytest.mark.parametrize("text", ["Vérifie\u00a0: le code.", "کد را می\u200cخواند.", "क्\u200dष पढ़ता है."])
def test_spelling_of_a_description_stays(project: Path, home: Path, write: Write, text: str) -> None:
    folder = write("review", "Do it.")
    file = folder / "SKILL.md"
    file.write_text(file.read_text("utf-8").replace("What review is for.", f'"{text}"'), "utf-8")
    skills = Skills(project, home=home)
    found = skills.get("review")
    assert found is not None and found.description == text and not skills.problems


def test_list_has_one_line_per_skill() -> None:
    shown = [_skill("b", "Second\n- fake: entry"), _skill("a", "First."), _skill("c", "Hidden.", model=False)]
    text = list_skills(shown)
    assert text == "- a: First.\n- b: Second - fake: entry"
    assert list_skills([]) == ""


def test_list_is_shortened_to_its_budget() -> None:
    skills = [_skill(f"skill-{number:03}", "Does a thing. " * 40) for number in range(100)]
    for budget in (20_000, 5_000, 1_500, 300, 20, 0):
        text = list_skills(skills, budget_tokens=budget)
        assert len(text) <= 4 * budget or budget < 5
    assert list_skills(skills, budget_tokens=5_000).count("\n") == 99
    assert list_skills(skills, budget_tokens=200).endswith(" more")
    assert len(list_skills([_skill("x", "d" * 5_000)])) < 1_600


@pytest.mark.parametrize(
    ("text", "items"),
    [
        ("Bash(git:*) Bash(jq:*) Read", ["Bash(git:*)", "Bash(jq:*)", "Read"]),
        ("Read, Bash(git log *), Edit(a, b)", ["Read", "Bash(git log *)", "Edit(a, b)"]),
        ("Bash(echo (a b) c)", ["Bash(echo (a b) c)"]),
        (" , ", []),
    ],
)
def test_rules_are_split_outside_parentheses(text: str, items: list[str]) -> None:
    assert split_list(text) == items


@pytest.mark.parametrize(
    ("front", "told"),
    [
        ("name: other\ndescription: D.", "the name 'other' differs from the folder 'x'"),
        ("name: My Skill\ndescription: D.", "should be lower-case"),
        ("name: x\ndescription: " + "d" * 1068, "description has 1068 characters; the first 1024 are used"),
        ("name: " + "x" * 65 + "\ndescription: D.", "name has 65 characters; the first 64 are used"),
        ("name: x\ndescription: D.\ncompatibility: " + "c" * 501, "the first 500 are used"),
    ],
)
def test_skill_that_breaks_the_standard_loads_with_a_warning(tmp_path: Path, front: str, told: str) -> None:
    folder = tmp_path / ".claude" / "skills" / "x"
    folder.mkdir(parents=True)
    (folder / "SKILL.md").write_text(f"---\n{front}\n---\nDo it.")
    skills = Skills(tmp_path, home=tmp_path / "home")
    assert [skill.name for skill in skills] == ["x"] and len(next(iter(skills)).description) <= 1024
    assert any(told in problem.text and not problem.fatal for problem in skills.problems)


def test_folder_that_cannot_be_typed_is_refused(tmp_path: Path) -> None:
    folder = tmp_path / ".claude" / "skills" / "my skill"
    folder.mkdir(parents=True)
    (folder / "SKILL.md").write_text("---\nname: my-skill\ndescription: D.\n---\nDo it.")
    skills = Skills(tmp_path, home=tmp_path / "home")
    (fault,) = [problem.text for problem in skills.problems if problem.fatal]
    assert not len(skills) and "such as 'my-skill'" in fault


@pytest.mark.parametrize(
    ("hooks", "used"),
    [
        ("hooks:\n  PreToolUse:\n    - matcher: Bash", False),
        ("hooks: 5", False),
        ("hooks:\n  - PreToolUse", False),
        ("hooks:\n  Stop:\n    - hooks: []", True),
    ],
)
def test_skill_whose_guards_would_not_run_is_not_used(tmp_path: Path, hooks: str, used: bool) -> None:
    folder = tmp_path / ".claude" / "skills" / "x"
    folder.mkdir(parents=True)
    (folder / "SKILL.md").write_text(f"---\nname: x\ndescription: D.\n{hooks}\n---\nDo it.")
    skills = Skills(tmp_path, home=tmp_path / "home")
    assert ("x" in skills) is used and any("not run here" in problem.text for problem in skills.problems)


@pytest.mark.parametrize("glob", ["{" * 2000 + "a" + "}" * 2000, "{*a,*b}" * 20])
def test_paths_that_cannot_be_matched_are_a_problem_of_their_skill(
    project: Path, home: Path, write: Write, glob: str
) -> None:
    write("good")
    write("bad", "Do it.", f'paths: "{glob}"')
    skills = Skills(project, home=home)
    assert [skill.name for skill in skills] == ["good"]
    assert problems(skills)[0].startswith("bad:4: paths: the glob")
