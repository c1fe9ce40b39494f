"""Random changes by tools and commands are undone to the byte, and redone, also after a restart."""

from pathlib import Path

import pytest
from tests.undo.trees import Picture, RandomChanges, Workbench, picture

from callwright.system.sandbox.bubblewrap import find_problem


async def play(folder: Path, seed: int) -> None:
    bench = Workbench(folder)
    changes = RandomChanges(bench, seed)
    random = changes.random
    changes.plant()
    pictures: list[tuple[int, Picture]] = [(0, picture(bench.root))]
    for _ in range(random.randrange(1, 5)):
        bench.begin_turn()
        for _ in range(random.randrange(1, 4)):
            await changes.step()
        pictures.append((bench.log.history.last, picture(bench.root)))
        if random.random() < 0.3:
            bench.restart()
        if random.random() < 0.3:
            undo_and_redo(bench, pictures, random.randrange(len(pictures)), restart=random.random() < 0.5)
        if random.random() < 0.3 and len(pictures) > 1:  # go on from an earlier state
            del pictures[random.randrange(1, len(pictures)) :]
            bench.undo(pictures[-1][0])
            assert picture(bench.root) == pictures[-1][1]
    touched = changes.interfere() if random.random() < 0.3 else ""
    last = picture(bench.root)
    plan = bench.log.plan_undo(0)
    assert set(plan.conflicts) <= {touched}
    restored, _ = bench.log.apply(plan)
    now = picture(bench.root)
    if touched and touched not in plan.conflicts:  # no turn had changed it, so that it stays as it is
        name = str(Path(touched).relative_to(bench.root))
        assert now.pop(name) == last[name]
        assert now == {path: entry for path, entry in pictures[0][1].items() if path != name}
    else:
        assert now == pictures[0][1]
    bench.restart()
    bench.redo(restored)
    assert picture(bench.root) == last


def undo_and_redo(bench: Workbench, pictures: list[tuple[int, Picture]], to: int, *, restart: bool) -> None:
    turn, wanted = pictures[to]
    before = picture(bench.root)
    restored = bench.undo(turn)
    assert picture(bench.root) == wanted
    if restart:
        bench.restart()
    bench.redo(restored)
    assert picture(bench.root) == before


needs_wall = pytest.mark.skipif(bool(find_problem()), reason="commands cannot be confined here")


@needs_wall
@pytest.mark.parametrize("seed", range(8))
async def test_random_changes_are_undone_to_the_byte(tmp_path: Path, seed: int):
    await play(tmp_path, seed)


@needs_wall
@pytest.mark.slow
@pytest.mark.timeout(900)
@pytest.mark.parametrize("part", range(10))
async def test_200_random_sequences_are_undone_to_the_byte(tmp_path: Path, part: int):
    for seed in range(100 + part * 20, 120 + part * 20):
        await play(tmp_path / str(seed), seed)
