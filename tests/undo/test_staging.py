"""The folder in which an undo prepares files, where a command may change it meanwhile."""

from pathlib import Path

import pytest

from callwright.core.errors import Unsafe
from callwright.system.undo import restore as restoring
from callwright.system.undo.kept_content import ABSENT, ContentFolder, EntryState, read_state


@pytest.mark.parametrize("kind", ["file", "link"])
def test_nothing_is_written_through_a_link_in_place_of_staging(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: str
):
    kept = ContentFolder(tmp_path / "kept", 1 << 20)
    (tmp_path / "old").write_text("evil")
    target = read_state(tmp_path / "old", kept, 1 << 10) if kind == "file" else EntryState("link", "evil")
    (tmp_path / "outside").mkdir()
    staging = restoring._Staging  # pyright: ignore[reportPrivateUsage] - a command replaces it at the worst moment
    name_for = staging.name_for

    def replace_staging(self: restoring._Staging, path: str) -> str:  # pyright: ignore[reportPrivateUsage] - as above
        name = name_for(self, path)
        Path(name).parent.rmdir()
        Path(name).parent.symlink_to("outside")
        return name

    monkeypatch.setattr(staging, "name_for", replace_staging)
    wanted = [restoring.Restoration(str(tmp_path / "new"), ABSENT, target)]
    with pytest.raises(Unsafe):
        restoring.restore(wanted, kept, tmp_path, lambda _: None)
    assert not [*(tmp_path / "outside").iterdir()] and not (tmp_path / "new").exists()
