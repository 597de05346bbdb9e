"""Training and serving for a long time under a memory limit, and what happens when memory ends.

    python -m benchmarks.trust soak --minutes=60 --limit_mib=6000 --out=results/trust.jsonl
    python -m benchmarks.trust soak --what=exhaust --runs=10 --out=results/trust.jsonl

`train` and `serve` run a tiny model in a process whose address space is limited (RLIMIT_AS, which
also counts what TensorFlow reserves and never uses). The server is asked by three callers all the
time. Resident memory is sampled every few seconds; the slope is that of the line of least squares
through the second half of the samples. Growth above --slope_mib an hour fails.

`exhaust` trains with address spaces that end at random sizes between what the interpreter and what
an undisturbed training need. A run must end with one message and without a traceback, and the same
command without a limit must then end with the undisturbed weights. TensorFlow's libraries end the
process themselves if they get no memory for a thread; such ends are counted as `aborted`.
"""

from __future__ import annotations

import argparse
import contextlib
import random
import resource
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from benchmarks import harness
from benchmarks.trust.ending import differences, ending
from benchmarks.trust.killable import PAIRS, training_flags
from benchmarks.trust.server_kills import Caller, ask, port_in

ROOT = Path(__file__).resolve().parent.parent.parent
KINDS = ("train", "serve", "exhaust")
_MIB = 1 << 20
_STEPS = 10**7  # more than there is time for


@contextlib.contextmanager
def started(argv: Sequence[str], log: Path, limit_mib: float) -> Iterator[subprocess.Popen]:
    """Starts `tfmann` with a limited address space; ends it with the block at the latest."""

    def limit() -> None:
        size = int(limit_mib * _MIB)
        resource.setrlimit(resource.RLIMIT_AS, (size, size))

    with log.open("wb") as stream:
        process = subprocess.Popen(
            [sys.executable, "-m", "tfmann", *argv], cwd=ROOT, stdin=subprocess.DEVNULL,
            stdout=stream, stderr=stream, preexec_fn=limit if limit_mib else None,
        )  # fmt: skip
    try:
        yield process
    finally:
        process.kill()
        process.wait()


def status_mib(pid: int, key: str) -> float:
    """Returns a size in /proc/PID/status, such as VmRSS or VmPeak; 0 after the end."""
    with contextlib.suppress(OSError):
        for line in Path(f"/proc/{pid}/status").read_text("utf-8").splitlines():
            if line.startswith(f"{key}:"):
                return int(line.split()[1]) / 1024
    return 0.0


def sample(process: subprocess.Popen, seconds: float, every: float) -> list[tuple[float, float]]:
    """Returns times and resident MiB of a process until it ends or the time is over."""
    begun, samples = time.monotonic(), []
    while process.poll() is None and time.monotonic() - begun < seconds:
        samples.append((time.monotonic() - begun, status_mib(process.pid, "VmRSS")))
        time.sleep(every)
    return samples


def slope(samples: Sequence[tuple[float, float]]) -> float:
    """Returns the slope of the second half of the samples, in MiB an hour."""
    half = samples[len(samples) // 2 :]
    if len(half) < 2:
        return 0.0
    times, sizes = zip(*half)
    mean_time, mean_size = sum(times) / len(half), sum(sizes) / len(half)
    spread = sum((moment - mean_time) ** 2 for moment in times)
    together = sum((moment - mean_time) * (size - mean_size) for moment, size in half)
    return 3600 * together / spread if spread else 0.0


def train(folder: Path, args: argparse.Namespace) -> dict[str, Any]:
    """Trains until the time is over, and then stops the training."""
    flags = [
        f"--num_train_steps={_STEPS}", "--steps_per_checkpoint=200", "--steps_per_stats=100",
        "--steps_per_external_eval=1000", "--learning_rate=0.0001",
    ]  # fmt: skip
    log = folder / "log"
    argv = ["train", *training_flags(folder, folder / "out"), *flags]
    with started(argv, log, args.limit_mib) as process:
        samples = sample(process, 60 * args.minutes, args.every)
        process.send_signal(signal.SIGTERM)
        status = process.wait(300)
    messages = log.read_text(errors="replace")
    updates = [line.split()[1] for line in messages.splitlines() if line.startswith("step ")]
    return {**summary(samples), "status": status, "updates": int((updates or ["0"])[-1].strip(":")),
            "failed": status != 143 or "Traceback" in messages}  # fmt: skip


def serve(folder: Path, args: argparse.Namespace) -> dict[str, Any]:
    """Serves three callers until the time is over."""
    log = folder / "log"
    with started(["train", *training_flags(folder, folder / "run")], log, 0) as process:
        assert process.wait() == 0, log.read_text()
    text = (folder / "train.src").read_text(encoding="utf-8").splitlines()
    requests = [text[begin : begin + 3] for begin in range(0, len(text), 3)]
    wrong: list[str] = []
    argv = ["serve", f"--model={folder / 'run'}", "--port=0"]
    with started(argv, log, args.limit_mib) as process:
        while (port := port_in(log)) is None:
            assert process.poll() is None, log.read_text()
            time.sleep(0.1)
        answers = [ask(port, lines)[1] for lines in requests]
        callers = [Caller(port, requests, answers, number) for number in range(3)]
        samples = sample(process, 60 * args.minutes, args.every)
        for caller in callers:
            wrong += caller.stop()
        process.send_signal(signal.SIGTERM)
        status = process.wait(300)
    return {**summary(samples), "status": status, "requests": sum(c.right for c in callers),
            "wrong": len(wrong), "failed": bool(status or wrong)}  # fmt: skip


def summary(samples: Sequence[tuple[float, float]]) -> dict[str, Any]:
    """Returns what a record has of the samples."""
    sizes = [size for _, size in samples]
    return {
        "samples": len(samples), "minutes": round(samples[-1][0] / 60, 1) if samples else 0.0,
        "mib_at_half": round(sizes[len(sizes) // 2], 1) if sizes else 0.0,
        "mib_at_end": round(sizes[-1], 1) if sizes else 0.0,
        "peak_mib": round(max(sizes, default=0.0), 1),
        "slope_mib_per_hour": round(slope(samples), 2),
    }  # fmt: skip


def exhaust(folder: Path, args: argparse.Namespace) -> dict[str, Any]:
    """Trains with too little memory, and then with enough of it."""
    draw, ends, bad = random.Random(args.seed), dict[str, int](), []
    log, out = folder / "log", folder / "out"
    argv = ["train", *training_flags(folder, out)]
    with started(argv, log, 0) as process:
        peak = 0.0
        while process.poll() is None:
            peak = max(peak, status_mib(process.pid, "VmPeak"))
            time.sleep(0.05)
    assert process.returncode == 0, log.read_text()
    expected = ending(out)
    for number in range(args.runs):
        shutil.rmtree(out)
        limit = round(draw.uniform(0.4, 1.0) * peak)
        with started(argv, log, limit) as process:
            status = process.wait()
        end = classify(status, log.read_text(errors="replace"))
        ends[end] = ends.get(end, 0) + 1
        with started(argv, folder / "again", 0) as process:
            again = process.wait()
        differs = differences(ending(out), expected)
        if again or differs or end == "unclear":
            said = log.read_text(errors="replace")[-600:]
            bad.append({"number": number, "limit_mib": limit, "status": status, "again": again,
                        "differs": differs, "said": said})  # fmt: skip
        print(f"{number}: {limit} of {peak:.0f} MiB: {end}", file=sys.stderr, flush=True)
    return {"runs": args.runs, "needs_mib": round(peak), "ends": ends, "bad": bad,
            "failed": bool(bad)}  # fmt: skip


def classify(status: int, messages: str) -> str:
    """Returns how a run without enough memory ended: trained, one message, aborted, unclear."""
    if status == 0:
        return "trained"
    if status < 0 or status == 127:  # by libraries: without memory for a thread, or for loading
        return "aborted"
    ours = [line for line in messages.splitlines() if line.startswith("tfmann: ")]
    is_one = len(ours) == 1 and "Traceback" not in messages
    return "one message" if is_one else "unclear"


def main(argv: list[str]) -> int:
    """Runs the soaks; returns 1 if one failed."""
    from tfmann.synthetic import write_corpus
    from tfmann.utils.provenance import provenance

    parser = argparse.ArgumentParser(prog="benchmarks.trust soak", description=__doc__)
    harness.add_choice(parser, "what", KINDS, "train,serve")
    parser.add_argument("--minutes", type=float, default=60, help="of training and of serving")
    parser.add_argument("--limit_mib", type=float, default=6000, help="address space")
    parser.add_argument("--every", type=float, default=5, help="seconds between two samples")
    parser.add_argument("--slope_mib", type=float, default=10, help="an hour, at most")
    parser.add_argument("--runs", type=int, default=10, help="of exhaust")
    parser.add_argument("--seed", type=int, default=1, help="of exhaust: other limits")
    parser.add_argument("--out", type=Path, help="file to append the lines to")
    args = parser.parse_args(argv)
    failed = False
    for what in args.what:
        begun = time.perf_counter()
        with tempfile.TemporaryDirectory(prefix="tfmann-trust-") as folder:
            write_corpus(folder, PAIRS, 6, 6, seed=3)
            record = {"train": train, "serve": serve, "exhaust": exhaust}[what](Path(folder), args)
        if what != "exhaust":
            record["limit_mib"] = args.limit_mib
            record["failed"] |= record["slope_mib_per_hour"] > args.slope_mib
        failed |= record["failed"]
        seconds = round(time.perf_counter() - begun, 1)
        record = {"benchmark": "trust/soak", "what": what, "limit": "RLIMIT_AS", **record}
        harness.write([{**record, "seconds": seconds, **provenance()}], args.out)
    return 1 if failed else 0
