"""The start-up time of a command: to its help, and to the end of its first update."""

from __future__ import annotations

import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from benchmarks.speed import cells

_ROOT = Path(__file__).resolve().parents[2]
_NMT = [sys.executable, "-m", "tfmann.nmt"]
HELP = "help"  # instead of a row
# A second stage would need the weights of a first one.
_LEFT_OUT = ("trainable_parameters",)


def help_seconds() -> float:
    """Returns the seconds of `--help`."""
    begin = time.perf_counter()
    subprocess.run([*_NMT, "--help"], cwd=_ROOT, stdout=subprocess.DEVNULL, check=True)
    return time.perf_counter() - begin


def first_update_seconds(row: str, size: str, corpus: Path) -> float:
    """Returns the seconds to the log line of the first update; then stops the command."""
    settings = {k: v for k, v in cells.settings(row, size).items() if k not in _LEFT_OUT}
    with tempfile.TemporaryDirectory() as folder:
        settings.update(out_dir=folder, train_prefix=corpus / "train", dev_prefix=corpus / "dev")
        settings.update(src="src", tgt="tgt", steps_per_stats=1, num_train_steps=1000)
        flags = [f"--{key}={_text(value)}" for key, value in settings.items()]
        begin = time.perf_counter()
        process = subprocess.Popen(
            [*_NMT, *flags], cwd=_ROOT, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
        )
        assert process.stdout is not None
        output = []
        try:
            for line in process.stdout:
                output.append(line)
                if line.startswith("step 1 "):
                    return time.perf_counter() - begin
        finally:
            process.kill()
            process.wait()
            process.stdout.close()
    raise ValueError(f"no first update of {row} at {size}:\n{''.join(output[-10:])}")


def _text(value: Any) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


def starts(row: str, size: str, count: int) -> dict[str, Any]:
    """Returns the median of repeated starts of training, or of `--help` for the row HELP."""
    from tfmann import synthetic

    if row == HELP:
        return _record([help_seconds() for _ in range(count)])

    with tempfile.TemporaryDirectory() as name:
        synthetic.write_corpus(name, train=3000, dev=20, test=20, seed=1)
        seconds = [first_update_seconds(row, size, Path(name)) for _ in range(count)]
    return _record(seconds)


def _record(seconds: list[float]) -> dict[str, Any]:
    return {"seconds": statistics.median(seconds), "pairs": len(seconds), "turns": seconds}
