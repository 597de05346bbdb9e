"""Requests a second, latency and memory of `tfmann serve`.

    python -m benchmarks.serving --out=results/serving.jsonl
    python -m benchmarks.serving --model=runs/mine --lines=test.src --callers=1,8,32 --soak=10000

Starts the server in a process of its own, with the shipped model `luong` and its synthetic language
unless another is given. Each caller sends a sentence, waits for the answer and sends the next, over
a connection that stays open. The numbers of callers take turns, so that other load on the machine
affects all of them; `ratio` is the median over the turns of requests/s divided by the single
caller's. A soak then sends `--soak` requests by eight callers, and compares the server's memory
before and after.

The callers are threads of this program, which also uses part of the machine.
"""

from __future__ import annotations

import argparse
import http.client
import json
import os
import re
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from benchmarks import harness
from tfmann.utils.provenance import provenance

_ROOT = Path(__file__).resolve().parent.parent
_MODEL = _ROOT / "tfmann" / "play" / "models" / "luong"
_SOAK_CALLERS = 8


class Server:
    """`tfmann serve` in a process of its own."""

    def __init__(self, model: Path):
        command = [sys.executable, "-m", "tfmann", "serve", f"--model={model}", "--port=0"]
        self._process = subprocess.Popen(command, stderr=subprocess.PIPE, cwd=_ROOT, text=True)
        assert self._process.stderr is not None
        self._messages = []
        for line in self._process.stderr:
            self._messages.append(line)
            match = re.search(r"http://127\.0\.0\.1:(\d+)", line)
            if match:
                self.port = int(match[1])
                return
        raise SystemExit("".join(self._messages))

    def __enter__(self) -> Server:
        return self

    def __exit__(self, *error: Any) -> None:
        self._process.terminate()
        status = self._process.wait(60)
        assert self._process.stderr is not None
        self._process.stderr.close()
        assert status == 0, f"the server ended with {status}"

    def metric(self, name: str) -> float:
        """Returns a number of GET /metrics."""
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=60)
        connection.request("GET", "/metrics")
        text = connection.getresponse().read().decode()
        connection.close()
        match = re.search(rf"^{re.escape(name)} (\S+)$", text, re.MULTILINE)
        assert match, f"/metrics has no {name}"
        return float(match[1])


class Load:
    """Callers that send requests until they are stopped, or have sent a given number.

    Attributes:
      latencies: seconds of each request that was answered.
      errors: requests that were answered otherwise than with 200, or not at all.
    """

    def __init__(self, port: int, lines: Sequence[str], callers: int):
        self._port, self._lines, self._callers = port, lines, callers
        self._lock = threading.Lock()
        self.latencies: list[float] = []
        self.errors = 0

    def run(self, seconds: float = 0.0, requests: int = 0) -> float:
        """Runs for some seconds or requests; returns how many seconds it took."""
        begin = time.perf_counter()
        self._end = begin + seconds if seconds else float("inf")
        self._left = requests if requests else -1
        threads = [
            threading.Thread(target=self._call, args=[number]) for number in range(self._callers)
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        return time.perf_counter() - begin

    def _another(self) -> bool:
        with self._lock:
            if self._left == 0 or time.perf_counter() >= self._end:
                return False
            self._left -= self._left > 0
            return True

    def _call(self, number: int) -> None:
        connection = http.client.HTTPConnection("127.0.0.1", self._port, timeout=120)
        headers = {"Content-Type": "application/json"}
        latencies, errors, index = [], 0, number * 17
        while self._another():
            body = json.dumps({"lines": [self._lines[index % len(self._lines)]]})
            index += 1
            begin = time.perf_counter()
            try:
                connection.request("POST", "/translate", body, headers)
                answer = connection.getresponse()
                answer.read()
                right = answer.status == 200
            except (OSError, http.client.HTTPException):
                connection.close()
                right = False
            if right:
                latencies.append(time.perf_counter() - begin)
            errors += not right
        connection.close()
        with self._lock:
            self.latencies += latencies
            self.errors += errors


def measure(
    server: Server, lines: Sequence[str], callers: Sequence[int], turns: int, seconds: float
) -> list[dict[str, Any]]:
    """Requests/s and latencies by number of callers."""
    rates: dict[int, list[float]] = {count: [] for count in callers}
    latencies: dict[int, list[float]] = {count: [] for count in callers}
    errors = dict.fromkeys(callers, 0)
    batches: dict[int, list[float]] = {count: [] for count in callers}
    for _ in range(turns):
        for count in callers:
            load = Load(server.port, lines, count)
            before = [server.metric(f"tfmann_batch_lines_{part}") for part in ("sum", "count")]
            took = load.run(seconds=seconds)
            after = [server.metric(f"tfmann_batch_lines_{part}") for part in ("sum", "count")]
            rates[count].append(len(load.latencies) / took)
            batches[count].append((after[0] - before[0]) / max(1.0, after[1] - before[1]))
            latencies[count] += load.latencies
            errors[count] += load.errors
    single = rates[callers[0]]
    return [
        {
            "what": "callers",
            "callers": count,
            "requests_per_second": round(statistics.median(rates[count]), 2),
            "ratio": round(statistics.median(a / b for a, b in zip(rates[count], single)), 2),
            "p50_ms": round(1000 * quantile(latencies[count], 0.5), 1),
            "p99_ms": round(1000 * quantile(latencies[count], 0.99), 1),
            "lines_per_batch": round(statistics.mean(batches[count]), 2),
            "requests": len(latencies[count]),
            "errors": errors[count],
            "turns": [round(rate, 2) for rate in rates[count]],
        }
        for count in callers
    ]


def soak(server: Server, lines: Sequence[str], requests: int) -> dict[str, Any]:
    """Sends many requests; reports the server's memory before and after."""
    Load(server.port, lines, _SOAK_CALLERS).run(requests=min(requests, 500))  # every shape once
    before = server.metric("process_resident_memory_bytes")
    load = Load(server.port, lines, _SOAK_CALLERS)
    took = load.run(requests=requests // 2)
    half = server.metric("process_resident_memory_bytes")
    took += load.run(requests=requests - requests // 2)
    after = server.metric("process_resident_memory_bytes")
    return {
        "what": "soak",
        "callers": _SOAK_CALLERS,
        "requests": len(load.latencies),
        "errors": load.errors,
        "requests_per_second": round(len(load.latencies) / took, 2),
        "p99_ms": round(1000 * quantile(load.latencies, 0.99), 1),
        "start_mib": round(before / 2**20, 1),
        "half_mib": round(half / 2**20, 1),
        "end_mib": round(after / 2**20, 1),
    }


def quantile(values: Sequence[float], share: float) -> float:
    """Returns the value below which that share of the values lies."""
    if not values:
        raise RuntimeError("no request was answered with 200")
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, int(share * len(ordered)))]


def synthetic_lines() -> list[str]:
    """Returns sentences of the language of the shipped models."""
    from tfmann.synthetic import write_corpus

    with tempfile.TemporaryDirectory() as folder:
        write_corpus(folder, 4000, 10, 500, 2)
        return Path(folder, "test.src").read_text("utf-8").splitlines()


def _callers(text: str) -> list[int]:
    counts = [int(count) if count.isdecimal() else 0 for count in text.split(",")]
    if counts[0] != 1 or 0 in counts:  # the ratios are to a single caller's rate
        raise argparse.ArgumentTypeError(f"expected numbers, the first 1, as in 1,8,32: {text!r}")
    return counts


def main(argv: Sequence[str] | None = None) -> None:
    """Runs the benchmark."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0] if __doc__ else "")
    parser.add_argument("--model", type=Path, default=_MODEL, help="directory of a run")
    parser.add_argument("--lines", type=Path, help="a file of source sentences")
    parser.add_argument(
        "--callers", type=_callers, default="1,8,32", help="numbers of callers, the first is 1"
    )
    parser.add_argument("--turns", type=int, default=3)
    parser.add_argument("--seconds", type=float, default=10.0, help="of a turn")
    parser.add_argument("--soak", type=int, default=10_000, help="requests; 0: none")
    parser.add_argument("--out", type=Path, help="a file that the lines are appended to")
    args = parser.parse_args(argv)
    lines = args.lines.read_text("utf-8").splitlines() if args.lines else synthetic_lines()
    with Server(args.model) as server:
        Load(server.port, lines, max(args.callers)).run(requests=4 * max(args.callers))
        records = measure(server, lines, args.callers, args.turns, args.seconds)
        if args.soak:
            records.append(soak(server, lines, args.soak))
    facts = {
        "benchmark": "serving",
        "model": args.model.name,
        "lines": args.lines.name if args.lines else "synthetic",
        "load_average": round(os.getloadavg()[0], 1),
        **provenance(),
    }
    harness.write(({**facts, **record} for record in records), args.out)


if __name__ == "__main__":
    main()
