"""Whole runs on a synthetic corpus that take seconds."""

import os
import subprocess
import sys
from pathlib import Path

import tfmann
from tfmann.synthetic import write_corpus

ROOT = Path(tfmann.__file__).parent.parent
SETTINGS = {
    "src": "src",
    "tgt": "tgt",
    "num_units": 12,
    "embedding_size": 8,
    "num_layers": 1,
    "optimizer": "adam",
    "learning_rate": 0.01,
    "batch_size": 16,
    "dropout": 0.2,
    "steps_per_stats": 1,
    "infer_mode": "greedy",
    "tgt_max_len_infer": 12,
    "num_attention_images": 0,
}


def corpus(folder, pairs, dev=12):
    """Writes `pairs` sentence pairs to train on, and `dev` for dev and as many for test."""
    write_corpus(folder, pairs, dev, dev, seed=3)
    return Path(folder)


def flags(data, out, **changes):
    """The command line that trains in `out` on `data` with SETTINGS."""
    return path_flags(data, out, **{**SETTINGS, **changes})


def path_flags(data, out, **settings):
    """The command line that trains in `out` on `data`."""
    prefixes = {f"{split}_prefix": Path(data, split) for split in ("train", "dev", "test")}
    settings = {"out_dir": out, **prefixes, **settings}
    return [f"--{name}={value}" for name, value in settings.items()]


def start(argv, log):
    """Starts the command line in a process of its own; what it prints goes to the file `log`."""
    with open(log, "ab") as stream:
        return subprocess.Popen(
            [sys.executable, "-m", "tfmann.nmt", *argv],
            cwd=ROOT, stdin=subprocess.DEVNULL, stdout=stream, stderr=stream,
            env={**os.environ, "TF_CPP_MIN_LOG_LEVEL": "3"},
        )  # fmt: skip
