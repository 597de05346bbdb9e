"""Kills a short run at random moments, lets it go on, and compares its end with an unhurt one.

    python -m benchmarks.trust kills --count=200 --seed=1 --out=results/trust.jsonl

A point is a run that is killed once or twice, by `kill -9` or SIGTERM, and then given the same
command until it ends. Half of the moments are spread over the CPU time of a run; the others are at
its calls to the file system or some milliseconds later: while it saves, for the most part. The
unhurt run is the command line in a process of its own; the others are forks (forks.py).

Points are done in blocks, a line each in `--out`. A block that stands there is not done again, so
that a count can be done in parts; what a point does follows from the seed and its number alone.
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

from benchmarks import lines
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
    """A run that nothing happened to."""

    ending: dict[str, str]
    cpu: float  # seconds of a fork
    calls: int  # to the file system


def command(folder: Path, out: Path) -> list[str]:
    """The command line of the short run on the corpus in `folder`."""
    prefixes = {f"{split}_prefix": folder / split for split in ("train", "dev", "test")}
    given = {"out_dir": out, **prefixes, **SETTINGS}
    return [f"--{name}={value}" for name, value in given.items()]


def unhurt(forks: Forks, folder: Path) -> Unhurt:
    """Runs it twice, in a process of its own and as a fork; they have to end alike."""
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
            raise SystemExit(f"the unhurt run ended with {ended.status}:\n{log.read_text()}")
        told.append(ending(out))
    wrong = differences(*told)
    if wrong:
        raise SystemExit(f"a fork does not end as a process of its own does: {wrong}")
    return Unhurt(told[1], ended.cpu, ended.calls)


def draw(stream: random.Random, whole: Unhurt) -> list[dict[str, Any]]:
    """One or two moments to be killed at, of a run and of the one that goes on."""
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
      `kills`: what was done, with the status it led to; `missed`: kills that came after the end;
      `differs`: what is not as in an unhurt run; `cpu`: seconds.
    """
    stream, missed = random.Random(name), 0
    while True:
        out, log = folder / "hurt", folder / "hurt.log"
        shutil.rmtree(out, ignore_errors=True)
        log.unlink(missing_ok=True)
        argv, kills, cpu, ended = command(folder, out), [], 0.0, None
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


def block(
    forks: Forks, folder: Path, whole: Unhurt, seed: int, numbers: range
) -> dict[str, Any]:
    """Some points as one record."""
    from tfmann.provenance import provenance

    begun = time.perf_counter()
    points = []
    for number in numbers:
        points.append(point(forks, folder, whole, f"{seed} {number}"))
        kills = ", ".join(json.dumps(kill) for kill in points[-1]["kills"])
        print(f"{number}: {points[-1]['differs'] or 'identical'} after {kills}", file=sys.stderr)
    kills = [kill for one in points for kill in one["kills"]]
    return {
        "benchmark": "trust kills",
        "seed": seed,
        "first": numbers[0],
        "points": len(points),
        "identical": sum(not one["differs"] for one in points),
        "differing": [one for one in points if one["differs"]],
        "killed": sum(kill["signal"] == signal.SIGKILL for kill in kills),
        "terminated": sum(kill["signal"] == signal.SIGTERM for kill in kills),
        "while_at_files": sum("call" in kill for kill in kills),
        "saved_and_exited_143": sum(kill["status"] == 143 for kill in kills),
        "missed": sum(one["missed"] for one in points),
        "cpu_seconds": round(sum(one["cpu"] for one in points), 1),
        "seconds": round(time.perf_counter() - begun, 1),
        "settings": {**SETTINGS, "pairs": PAIRS},
        **provenance(),
    }


def done(out: Path | None, seed: int) -> list[dict[str, Any]]:
    """The records of a seed that stand in a file already."""
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
    parser.add_argument("--count", type=int, default=200, help="points, those done included")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--block", type=int, default=10, help="points a line")
    parser.add_argument("--out", type=Path, help="a file that the lines are appended to")
    args = parser.parse_args(argv)
    records = done(args.out, args.seed)
    have = {one["first"] + i for one in records for i in range(one["points"])}
    wanted = [number for number in range(args.count) if number not in have]
    if wanted:
        from tfmann.corpus.synthetic import write_corpus

        os.environ["CUDA_VISIBLE_DEVICES"] = "-1"
        with tempfile.TemporaryDirectory() as name, Forks() as forks:
            folder = Path(name)
            write_corpus(folder, PAIRS, 6, 6, seed=3)
            whole = unhurt(forks, folder)
            print(f"unhurt: {whole.cpu:.1f} s of CPU, {whole.calls} calls", file=sys.stderr)
            while wanted:
                numbers = _first_of(wanted, args.block)
                wanted = wanted[len(numbers) :]
                records.append(block(forks, folder, whole, args.seed, numbers))
                lines.write(records[-1:], args.out)
    points, identical = (sum(one[key] for one in records) for key in ("points", "identical"))
    print(f"{identical} of {points} endings identical", file=sys.stderr)
    for one in records:
        for differing in one["differing"]:
            print(json.dumps(differing), file=sys.stderr)
    return 0 if identical == points else 1


def _first_of(wanted: list[int], block: int) -> range:
    """The first numbers that follow one another without a gap, at most `block`."""
    end = wanted[0] + 1
    while end - wanted[0] < block and end in wanted:
        end += 1
    return range(wanted[0], end)
