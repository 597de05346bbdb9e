"""Kills a short run at random moments, resumes it, and compares it with an undisturbed one.

    python -m benchmarks.trust kills --count=200 --seed=1 --out=results/trust.jsonl

A point is a run that is killed once or twice, by `kill -9` or SIGTERM, and then resumed by the same
command until it ends. Half of the moments are spread over the CPU time of a run; the others are at
its calls to the file system or some milliseconds later, which is mostly while it saves. The
undisturbed run is the command line in a process of its own; the others are forks (forks.py).

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
_STOPPED = (-signal.SIGKILL, -signal.SIGTERM, 143)  # 143: it has saved


class Unhurt(NamedTuple):
    """The reference: a run that was not killed."""

    ending: dict[str, str]
    cpu: float  # seconds of a fork
    calls: int  # to the file system


def command(folder: Path, out: Path) -> list[str]:
    """Returns the command line of the short run on the corpus in `folder`."""
    prefixes = {f"{split}_prefix": folder / split for split in ("train", "dev", "test")}
    given = {"out_dir": out, **prefixes, **SETTINGS}
    return [f"--{name}={value}" for name, value in given.items()]


def unhurt(forks: Forks, folder: Path) -> Unhurt:
    """Makes the reference twice, in a process of its own and as a fork; both must end alike."""
    told = []
    for name in ("process", "fork"):
        out, log = folder / name, folder / f"{name}.log"
        if name == "fork":
            ended = forks.run(command(folder, out), log)
        else:
            argv = [sys.executable, "-m", "tfmann.nmt", *command(folder, out)]
            with log.open("wb") as stream:
                done = subprocess.run(argv, cwd=ROOT, stdout=stream, stderr=stream)
            ended = Ended(done.returncode, 0.0, 0)
        if ended.status:
            raise SystemExit(f"the undisturbed run ended with {ended.status}:\n{log.read_text()}")
        told.append(ending(out))
    wrong = differences(*told)
    if wrong:
        raise SystemExit(f"a fork does not end as a process of its own does: {wrong}")
    return Unhurt(told[1], ended.cpu, ended.calls)


def draw(stream: random.Random, whole: Unhurt) -> list[dict[str, Any]]:
    """Draws one or two moments to kill a run, and then its continuation."""
    hurts = []
    for _ in range(2 if stream.random() < 0.3 else 1):
        hurt: dict[str, Any] = {"signal": int(stream.choice((signal.SIGKILL, signal.SIGTERM)))}
        if stream.random() < 0.5:
            hurt["cpu"] = round(stream.uniform(0, whole.cpu), 3)
        else:
            hurt["call"] = stream.randrange(whole.calls)
            hurt["delay"] = round(stream.choice((0, stream.uniform(0, 0.005))), 5)
        hurts.append(hurt)
    return hurts


def point(forks: Forks, folder: Path, whole: Unhurt, name: str) -> dict[str, Any]:
    """Kills and resumes a run.

    Returns:
      `kills`: with the exit status; `missed`: kills that came after the end; `differs`: parts
      that differ from the reference; `cpu`: seconds.
    """
    stream, missed = random.Random(name), 0
    while True:
        out, log = folder / "hurt", folder / "hurt.log"
        shutil.rmtree(out, ignore_errors=True)
        log.unlink(missing_ok=True)
        argv = command(folder, out)
        kills: list[dict[str, Any]] = []
        cpu, ended = 0.0, Ended(0, 0.0, 0)
        for hurt in draw(stream, whole):
            ended = forks.run(argv, log, hurt)
            cpu += ended.cpu
            if ended.status not in _STOPPED:
                missed += 1
                break
            kills.append({**hurt, "status": ended.status})
        if kills or ended.status:
            break
    if ended.status in _STOPPED:
        ended = forks.run(argv, log)
        cpu += ended.cpu
    differs = [] if ended.status else differences(ending(out), whole.ending)
    said = log.read_text()
    if ended.status or "Traceback" in said:
        differs.append(f"status {ended.status}: {said[-300:]}")
    return {"kills": kills, "missed": missed, "differs": differs, "cpu": cpu}


def block(forks: Forks, folder: Path, whole: Unhurt, seed: int, numbers: range) -> dict[str, Any]:
    """Makes some points; returns a record."""
    from tfmann.utils.provenance import provenance

    begun = time.perf_counter()
    points = []
    for number in numbers:
        points.append(point(forks, folder, whole, f"{seed} {number}"))
        story = ", ".join(json.dumps(kill) for kill in points[-1]["kills"])
        print(f"{number}: {points[-1]['differs'] or 'identical'} after {story}", file=sys.stderr)
    all_kills = [kill for one in points for kill in one["kills"]]
    return {
        "benchmark": "trust kills",
        "seed": seed,
        "first": numbers[0],
        "points": len(points),
        "identical": sum(not one["differs"] for one in points),
        "differing": [one for one in points if one["differs"]],
        "killed": sum(kill["signal"] == signal.SIGKILL for kill in all_kills),
        "terminated": sum(kill["signal"] == signal.SIGTERM for kill in all_kills),
        "while_at_files": sum("call" in kill for kill in all_kills),
        "saved_and_exited_143": sum(kill["status"] == 143 for kill in all_kills),
        "missed": sum(one["missed"] for one in points),
        "cpu_seconds": round(sum(one["cpu"] for one in points), 1),
        "seconds": round(time.perf_counter() - begun, 1),
        "settings": {**SETTINGS, "pairs": PAIRS},
        **provenance(),
    }


def done(out: Path | None, seed: int) -> list[dict[str, Any]]:
    """Returns the records of a seed in a file."""
    if out is None or not out.exists():
        return []
    records = [json.loads(line) for line in out.read_text(encoding="utf-8").splitlines()]
    return [
        one for one in records
        if one.get("benchmark") == "trust kills" and one["seed"] == seed
        and one["settings"] == {**SETTINGS, "pairs": PAIRS}
    ]  # fmt: skip


def main(argv: list[str]) -> int:
    parser = argparse.ArgumentParser(prog="benchmarks.trust kills", description=__doc__)
    parser.add_argument("--count", type=int, default=200, help="points, including recorded ones")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--block", type=int, default=10, help="points per line")
    parser.add_argument("--out", type=Path, help="file to append the lines to")
    args = parser.parse_args(argv)
    records = done(args.out, args.seed)
    have = {one["first"] + i for one in records for i in range(one["points"])}
    wanted = [number for number in range(args.count) if number not in have]
    if wanted:
        from tfmann.synthetic import write_corpus

        os.environ["CUDA_VISIBLE_DEVICES"] = "-1"
        with tempfile.TemporaryDirectory() as name, Forks() as forks:
            folder = Path(name)
            write_corpus(folder, PAIRS, 6, 6, seed=3)
            whole = unhurt(forks, folder)
            print(f"undisturbed: {whole.cpu:.1f} s of CPU, {whole.calls} calls", file=sys.stderr)
            while wanted:
                numbers = _first_of(wanted, args.block)
                wanted = wanted[len(numbers) :]
                records.append(block(forks, folder, whole, args.seed, numbers))
                harness.write(records[-1:], args.out)
    points, identical = (sum(one[key] for one in records) for key in ("points", "identical"))
    print(f"{identical} of {points} endings identical", file=sys.stderr)
    for one in records:
        for differing in one["differing"]:
            print(json.dumps(differing), file=sys.stderr)
    return 0 if identical == points else 1


def _first_of(wanted: list[int], block: int) -> range:
    """Returns the first consecutive numbers, at most `block`."""
    end = wanted[0] + 1
    while end - wanted[0] < block and end in wanted:
        end += 1
    return range(wanted[0], end)
