"""Peak memory of encoding a large corpus and training on it.

    python -m benchmarks.memory --work_dir=DIR --pairs=3000000

Writes a corpus of random words below DIR (about 550 MB for three million pairs; removed at the
end), trains a tiny model on it for a few steps by the command line, and prints a JSON line with the
peak resident memory of that process, which should not grow with the corpus.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np

from tfmann.utils.provenance import provenance

_ROOT = Path(__file__).resolve().parent.parent
# The child reads its own peak: `ru_maxrss` of a child starts at the memory of its parent.
_TRAIN = """
import sys
from pathlib import Path
from benchmarks import harness
from tfmann import nmt

code = nmt.main(sys.argv[2:])
Path(sys.argv[1]).write_text(str(harness.peak_mib()), "utf-8")
sys.exit(code)
"""
_BLOCK = 10_000  # lines that are generated together
LIMIT_MIB = 2048

SETTINGS = {
    "src": "src",
    "tgt": "tgt",
    "num_units": 16,
    "num_layers": 1,
    "learning_rate": 0.1,
    "steps_per_stats": 10,
    "infer_mode": "greedy",
    "tgt_max_len_infer": 10,
    "num_attention_images": 0,
}


def write_side(path: Path, lines: int, words: np.ndarray, seed: int) -> None:
    """Writes lines of 5 to 25 words, all words equally likely."""
    stream = np.random.default_rng(seed)
    with open(path, "w", encoding="utf-8") as out:
        for begin in range(0, lines, _BLOCK):
            lengths = stream.integers(5, 26, min(_BLOCK, lines - begin))
            sampled = words[stream.integers(0, len(words), lengths.sum())].tolist()
            ends = np.cumsum(lengths)
            out.writelines(
                " ".join(sampled[end - length : end]) + "\n" for end, length in zip(ends, lengths)
            )


def write_corpus(folder: Path, pairs: int, vocabulary: int) -> None:
    """Writes `train.*` with this many pairs, and a small `dev.*`."""
    for seed, (name, lines) in enumerate({"train": pairs, "dev": 50}.items()):
        for side in (0, 1):
            words = np.array([f"{'st'[side]}{i:x}" for i in range(vocabulary)])
            write_side(folder / f"{name}.{('src', 'tgt')[side]}", lines, words, 2 * seed + side)


def train(folder: Path, steps: int) -> float:
    """Trains in a child process; returns its peak resident memory in MiB."""
    settings = {
        **SETTINGS,
        "out_dir": folder / "model",
        "train_prefix": folder / "train",
        "dev_prefix": folder / "dev",
        "num_train_steps": steps,
    }
    peak = folder / "peak_mib"
    command = [sys.executable, "-c", _TRAIN, str(peak)]
    command += [f"--{key}={value}" for key, value in settings.items()]
    subprocess.run(command, cwd=_ROOT, stdout=sys.stderr, check=True)
    return float(peak.read_text("utf-8"))


def main(argv: list[str] | None = None) -> int:
    """Prints the JSON line; returns 1 if the peak is above the limit."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--work_dir", help="where the corpus goes; the system's temporary folder")
    parser.add_argument("--pairs", type=int, default=3_000_000)
    parser.add_argument("--vocabulary", type=int, default=8000)
    parser.add_argument("--steps", type=int, default=20)
    args = parser.parse_args(argv)
    with tempfile.TemporaryDirectory(dir=args.work_dir) as name:
        folder = Path(name)
        write_corpus(folder, args.pairs, args.vocabulary)
        text = sum(os.path.getsize(folder / f"train.{side}") for side in ("src", "tgt"))
        begun = time.perf_counter()
        peak = train(folder, args.steps)
        seconds = time.perf_counter() - begun
    record = {
        "benchmark": "memory",
        "pairs": args.pairs,
        "text_mib": round(text / 2**20),
        "vocabulary": args.vocabulary,
        "steps": args.steps,
        "peak_rss_mib": round(peak),
        "limit_mib": LIMIT_MIB,
        "seconds": round(seconds, 1),
        **provenance(),
    }
    print(json.dumps(record), flush=True)
    return int(peak > LIMIT_MIB)


if __name__ == "__main__":
    sys.exit(main())
