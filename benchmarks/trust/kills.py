"""Kills of a short run at random moments: resumed, it must equal an undisturbed run.

    python -m benchmarks.trust kills --count=200 --seed=1 --out=results/trust.jsonl

A point is a run that is killed once or twice, by `kill -9` or SIGTERM, and then resumed by the same
command until it ends. Half of the moments are spread over the CPU time of a run; the others are at
its calls to the file system or some milliseconds later, mostly while it saves. The undisturbed run
is the command line in a process of its own; the others are forks (forks.py).

Points are made in blocks, one line each in `--out`. A recorded block is not repeated, so a count
can be reached in parts. A point depends only on the seed and its number.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any, NamedTuple

from benchmarks import harness
from benchmarks.trust.ending import differences, ending
from benchmarks.trust.forks import ROOT, Ended, Forks

SETTINGS: dict[str, Any] = {
    "cell": "luong", "src": "src", "tgt": "tgt", "num_units": 12, "embedding_size": 8,
    "num_layers": 1, "optimizer": "adam", "learning_rate": 0.01, "batch_size": 16, "dropout": 0.2,
    "num_train_steps": 18, "steps_per_stats": 2, "steps_per_checkpoint": 3,
    "steps_per_external_eval": 9, "num_keep_ckpts": 3, "avg_ckpts": True, "infer_mode": "greedy",
    "tgt_max_len_infer": 8, "num_attention_images": 0,
}  # fmt: skip
PAIRS = 96
_STOPPED = (-signal.SIGKILL, -signal.SIGTERM, 143)  # 143: it has saved its state


class Reference(NamedTuple):
    """The reference: a run that was not killed."""

    ending: dict[str, str]
    cpu: float  # seconds of a fork
    calls: int  # to the file system


def command(folder: Path, out: Path) -> list[str]:
    """Returns the command line of the short run on the corpus in `folder`."""
    prefixes = {f"{split}_prefix": folder / split for split in ("train", "dev", "test")}
    flags = {"out_dir": out, **prefixes, **SETTINGS}
    return [f"--{name}={value}" for name, value in flags.items()]


def run_reference(forks: Forks, folder: Path) -> Reference:
    """Makes the reference twice, in a process of its own and as a fork; both must be equal."""
    endings = []
    for name in ("process", "fork"):
        out, log = folder / name, folder / f"{name}.log"
        if name == "fork":
            ended = forks.run(command(folder, out), log)
        else:
            argv = [sys.executable, "-m", "tfmann.nmt", *command(folder, out)]
            with log.open("wb") as stream:
                process = subprocess.run(argv, cwd=ROOT, stdout=stream, stderr=stream)
            ended = Ended(process.returncode, 0.0, 0)
        if ended.status:
            raise SystemExit(f"the undisturbed run ended with {ended.status}:\n{log.read_text()}")
        endings.append(ending(out))
    differing = differences(*endings)
    if differing:
        raise SystemExit(f"a fork does not end as a process of its own: {differing}")
    return Reference(endings[1], ended.cpu, ended.calls)


def draw(stream: random.Random, reference: Reference) -> list[dict[str, Any]]:
    """Draws one or two moments to kill a run, and then its continuation."""
    kills = []
    for _ in range(2 if stream.random() < 0.3 else 1):
        kill: dict[str, Any] = {"signal": int(stream.choice((signal.SIGKILL, signal.SIGTERM)))}
        if stream.random() < 0.5:
            kill["cpu"] = round(stream.uniform(0, reference.cpu), 3)
        else:
            kill["call"] = stream.randrange(reference.calls)
            kill["delay"] = round(stream.choice((0, stream.uniform(0, 0.005))), 5)
        kills.append(kill)
    return kills


def point(forks: Forks, folder: Path, reference: Reference, name: str) -> dict[str, Any]:
    """Kills and resumes a run.

    Returns:
      `kills`: with the exit status; `missed`: kills that came after the end; `differs`: parts
      that differ from the reference; `cpu`: seconds.
    """
    stream, missed = random.Random(name), 0
    while True:
        out, log = folder / "killed", folder / "killed.log"
        shutil.rmtree(out, ignore_errors=True)
        log.unlink(missing_ok=True)
        argv = command(folder, out)
        kills: list[dict[str, Any]] = []
        cpu, ended = 0.0, Ended(0, 0.0, 0)
        for kill in draw(stream, reference):
            ended = forks.run(argv, log, kill)
            cpu += ended.cpu
            if ended.status not in _STOPPED:
                missed += 1
                break
            kills.append({**kill, "status": ended.status})
        if kills or ended.status:
            break
    if ended.status in _STOPPED:
        ended = forks.run(argv, log)
        cpu += ended.cpu
    differs = [] if ended.status else differences(ending(out), reference.ending)
    messages = log.read_text()
    if ended.status or "Traceback" in messages:
        differs.append(f"status {ended.status}: {messages[-300:]}")
    return {"kills": kills, "missed": missed, "differs": differs, "cpu": cpu}


def block(
    forks: Forks, folder: Path, reference: Reference, seed: int, numbers: range
) -> dict[str, Any]:
    """Makes some points; returns a record."""
    from tfmann.utils.provenance import provenance

    begun = time.perf_counter()
    points = []
    for number in numbers:
        points.append(point(forks, folder, reference, f"{seed} {number}"))
        story = ", ".join(json.dumps(kill) for kill in points[-1]["kills"])
        print(f"{number}: {points[-1]['differs'] or 'identical'} after {story}", file=sys.stderr)
    all_kills = [kill for record in points for kill in record["kills"]]
    return {
        "benchmark": "trust kills",
        "seed": seed,
        "first": numbers[0],
        "points": len(points),
        "identical": sum(not record["differs"] for record in points),
        "differing": [record for record in points if record["differs"]],
        "killed": sum(kill["signal"] == signal.SIGKILL for kill in all_kills),
        "terminated": sum(kill["signal"] == signal.SIGTERM for kill in all_kills),
        "while_at_files": sum("call" in kill for kill in all_kills),
        "saved_and_exited_143": sum(kill["status"] == 143 for kill in all_kills),
        "missed": sum(record["missed"] for record in points),
        "cpu_seconds": round(sum(record["cpu"] for record in points), 1),
        "seconds": round(time.perf_counter() - begun, 1),
        "settings": {**SETTINGS, "pairs": PAIRS},
        **provenance(),
    }


def recorded_blocks(out: Path | None, seed: int) -> list[dict[str, Any]]:
    """Returns the records of a seed in a file."""
    if out is None or not out.exists():
        return []
    records = [json.loads(line) for line in out.read_text(encoding="utf-8").splitlines()]
    return [
        record for record in records
        if record.get("benchmark") == "trust kills" and record["seed"] == seed
        and record["settings"] == {**SETTINGS, "pairs": PAIRS}
    ]  # fmt: skip


def main(argv: list[str]) -> int:
    parser = argparse.ArgumentParser(prog="benchmarks.trust kills", description=__doc__)
    parser.add_argument("--count", type=int, default=200, help="points, including recorded ones")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--block", type=int, default=10, help="points per line")
    parser.add_argument("--out", type=Path, help="file to append the lines to")
    args = parser.parse_args(argv)
    records = recorded_blocks(args.out, args.seed)
    recorded = {record["first"] + i for record in records for i in range(record["points"])}
    missing = [number for number in range(args.count) if number not in recorded]
    if missing:
        from tfmann.synthetic import write_corpus

        os.environ["CUDA_VISIBLE_DEVICES"] = "-1"
        with tempfile.TemporaryDirectory() as name, Forks() as forks:
            folder = Path(name)
            write_corpus(folder, PAIRS, 6, 6, seed=3)
            reference = run_reference(forks, folder)
            print(
                f"undisturbed: {reference.cpu:.1f} s of CPU, {reference.calls} calls",
                file=sys.stderr,
            )
            while missing:
                numbers = _first_of(missing, args.block)
                missing = missing[len(numbers) :]
                records.append(block(forks, folder, reference, args.seed, numbers))
                harness.write(records[-1:], args.out)
    points, identical = (sum(record[key] for record in records) for key in ("points", "identical"))
    print(f"{identical} of {points} endings identical", file=sys.stderr)
    for record in records:
        for differing in record["differing"]:
            print(json.dumps(differing), file=sys.stderr)
    return 0 if identical == points else 1


def _first_of(missing: list[int], block: int) -> range:
    """Returns the first consecutive numbers, at most `block`."""
    end = missing[0] + 1
    while end - missing[0] < block and end in missing:
        end += 1
    return range(missing[0], end)
