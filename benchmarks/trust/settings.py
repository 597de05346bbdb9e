"""Random settings, each of which must train for a few updates, or be refused in one line.

    python -m benchmarks.trust settings --count=2000 --seed=1 --out=results/trust.jsonl

A draw is a command line (draws.py). A worker process runs one after the other, so TensorFlow is
loaded once. Most runs are eager; every tenth, and each mirrored one, is compiled like the command
line, and so is a second try of one that does not end in time. A run is stopped after three updates.
A draw that ends the worker, or does not end in time, is counted, and another worker continues.

Draws are made in blocks, one line each in `--out`. A draw depends only on the seed and its number,
so it can be repeated: `--first=NUMBER --count=1`.
"""

from __future__ import annotations

import argparse
import collections
import contextlib
import gc
import io
import json
import os
import resource
import select
import signal
import subprocess
import sys
import tempfile
import time
import traceback
from pathlib import Path
from typing import Any

from benchmarks import harness
from benchmarks.trust.draws import command

ROOT = Path(__file__).resolve().parent.parent.parent
_UPDATES = 3
_COMPILED = 10  # one of ten draws is compiled
_MEMORY = 6_000_000_000  # bytes; a larger run is refused, or fails for lack of memory
_FULL = 2_000_000_000  # bytes; a worker with more is replaced, since graphs are never freed
_OVER_TIME = "over time"
GOOD = ("trained", "refused")


def classify(status: int, message: str) -> str:
    """Returns the outcome: trained, refused, or `unclear` if the message is not one line."""
    if status in (0, 143):
        return "trained"
    one_line = message.startswith("tfmann: ") and message.endswith("\n")
    one_line = one_line and message.count("\n") == 1
    return "refused" if status in (1, 2) and one_line else "unclear"


def work(seed: int, data: Path) -> None:
    """Runs the worker: reads the number of a draw, writes its outcome."""
    answers = os.fdopen(os.dup(1), "w", buffering=1)
    os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
    resource.setrlimit(resource.RLIMIT_DATA, (_MEMORY, _MEMORY))
    import tensorflow as tf

    tf.get_logger().setLevel("ERROR")  # many runs in one process look like retracing
    _stop_after_some_updates()
    for line in sys.stdin:
        number = int(line.split()[0])
        with tempfile.TemporaryDirectory(prefix="tfmann-trust-") as out:
            argv = command(f"{seed} {number}", data, Path(out, "out"))
            compiled = number % _COMPILED == 0 or "--distribution=mirrored" in argv
            compiled |= line.endswith(" compiled\n")
            tf.config.run_functions_eagerly(not compiled)
            answers.write(json.dumps(_run(argv)) + "\n")
        _forget_graphs()
        if _resident() > _FULL:
            return


def _run(argv: list[str]) -> list[str]:
    """Runs a command line; returns its outcome and its messages."""
    from tfmann import nmt

    messages = io.StringIO()
    with contextlib.redirect_stderr(messages), contextlib.redirect_stdout(io.StringIO()):
        try:
            status = nmt.main(argv)
        except BaseException:  # what the command line would show as a traceback
            return ["traceback", traceback.format_exc()[-1500:]]
    return [classify(status, messages.getvalue()), messages.getvalue()[-1500:]]


def _stop_after_some_updates() -> None:
    from tfmann.training.train_step import TrainStep

    update, counts = TrainStep.update, collections.Counter()

    def counted(self: TrainStep, *args: Any) -> Any:
        counts[id(self)] += 1
        if counts[id(self)] == _UPDATES:
            os.kill(os.getpid(), signal.SIGTERM)
        return update(self, *args)

    begin = TrainStep.__init__

    def begun(self: TrainStep, *args: Any, **options: Any) -> None:
        counts.clear()
        begin(self, *args, **options)

    TrainStep.update, TrainStep.__init__ = counted, begun  # type: ignore


def _forget_graphs() -> None:
    """Removes the gradients of traced graphs, which TensorFlow never frees (tests/conftest.py)."""
    from tensorflow.python.framework import ops

    from tfmann.utils import memory_limits

    gradients = ops.gradient_registry._registry
    for name in [name for name in gradients if name.startswith("CustomGradient-")]:
        del gradients[name]
    gc.collect()
    memory_limits.available_memory.cache_clear()


def _resident() -> int:
    return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")


class Worker:
    """The client of a worker, which is replaced when it ends."""

    def __init__(self, seed: int, data: Path, limit: float):
        self._argv = [sys.executable, "-m", "benchmarks.trust.settings", str(seed), str(data)]
        self._folder, self._limit = data.parent, limit  # a draw may write next to the corpus
        self._process: subprocess.Popen | None = None

    def draw(self, number: int) -> list[str]:
        """Returns the outcome of a draw and its messages."""
        outcome = self._ask(f"{number}") or self._ask(f"{number}")
        if outcome and outcome[0] == _OVER_TIME:
            outcome = self._ask(f"{number} compiled")
        return outcome or ["ended", "a worker ended before it began"]

    def _ask(self, request: str) -> list[str] | None:
        """Returns None if the worker has ended to be replaced."""
        process = self._process = self._process or self._start()
        assert process.stdin is not None and process.stdout is not None
        with contextlib.suppress(BrokenPipeError):
            process.stdin.write(f"{request}\n".encode())
            process.stdin.flush()
        ready, _, _ = select.select([process.stdout], [], [], self._limit)
        line = process.stdout.readline() if ready else b""
        if line:
            return json.loads(line)
        status = process.wait() if ready else None
        self.close()
        if status is None:
            return [_OVER_TIME, f"no end after {self._limit:.0f} s"]
        return ["ended", f"the worker ended with status {status}"] if status else None

    def _start(self) -> subprocess.Popen:
        environment = {
            **os.environ, "TF_CPP_MIN_LOG_LEVEL": "3", "CUDA_VISIBLE_DEVICES": "-1",
            "PYTHONPATH": str(ROOT),
        }  # fmt: skip
        return subprocess.Popen(
            self._argv, cwd=self._folder, env=environment,
            stdin=subprocess.PIPE, stdout=subprocess.PIPE,
        )  # fmt: skip

    def close(self) -> None:
        """Ends the worker."""
        if self._process is not None:
            self._process.kill()
            self._process.communicate()
            self._process = None


def block(worker: Worker, seed: int, numbers: range, data: Path) -> dict[str, Any]:
    """Makes some draws; returns a record, which has the command lines of the bad ones."""
    from tfmann.utils.provenance import provenance

    begun, ends, bad = time.perf_counter(), collections.Counter(), []
    for number in numbers:
        outcome, messages = worker.draw(number)
        ends[outcome] += 1
        if outcome not in GOOD:
            argv = command(f"{seed} {number}", data, Path("out"))
            bad.append({"number": number, "end": outcome, "said": messages, "argv": argv})
            print(f"{number}: {outcome}: {' '.join(argv)}\n{messages}", file=sys.stderr, flush=True)
    return {
        "benchmark": "trust/settings",
        "seed": seed,
        "first": numbers[0],
        "draws": len(numbers),
        **{outcome.replace(" ", "_"): count for outcome, count in sorted(ends.items())},
        "not_well": [{key: draw[key] for key in ("number", "end")} for draw in bad],
        "seconds": round(time.perf_counter() - begun, 1),
        **provenance(),
    }


def main(argv: list[str]) -> int:
    parser = argparse.ArgumentParser(prog="benchmarks.trust settings", description=__doc__)
    parser.add_argument("--count", type=int, default=2000, help="draws")
    parser.add_argument("--first", type=int, default=0, help="number of the first draw")
    parser.add_argument("--seed", type=int, default=1, help="another seed, other draws")
    parser.add_argument("--block", type=int, default=100, help="draws a line")
    parser.add_argument("--limit", type=float, default=300, help="seconds that a draw may take")
    parser.add_argument("--out", type=Path, help="file to append the lines to")
    args = parser.parse_args(argv)
    from tfmann.synthetic import write_corpus

    well = True
    with tempfile.TemporaryDirectory() as name:
        data = Path(name, "corpus")
        data.mkdir()
        write_corpus(data, 96, 6, 6, seed=3)
        worker = Worker(args.seed, data, args.limit)
        try:
            end = args.first + args.count
            for first in range(args.first, end, args.block):
                numbers = range(first, min(end, first + args.block))
                record = block(worker, args.seed, numbers, data)
                well &= not record["not_well"]
                harness.write([record], args.out)
        finally:
            worker.close()
    return 0 if well else 1


if __name__ == "__main__":
    work(int(sys.argv[1]), Path(sys.argv[2]))
