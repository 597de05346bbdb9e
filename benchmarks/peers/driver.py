"""The command line and the output that both peers' drivers share."""

from __future__ import annotations

import argparse
import json
from pathlib import Path

import meter


def parse() -> argparse.Namespace:
    """Parses `train`, `to_bleu` or `decode` and its flags; every path becomes absolute."""
    parser = argparse.ArgumentParser()
    kinds = parser.add_subparsers(dest="command", required=True)
    train, to_bleu, decode = (kinds.add_parser(name) for name in ("train", "to_bleu", "decode"))
    for command in (train, to_bleu, decode):
        command.add_argument("--model_dir", type=_path, required=True)
        command.add_argument("--src", required=True, help="source language: a file suffix")
        command.add_argument("--tgt", required=True)
        command.add_argument("--vocab", type=_path, required=True, help="without the suffix")
    for command in (train, to_bleu):
        command.add_argument("--train", type=_path, required=True, help="without the suffix")
        command.add_argument("--dev", type=_path, required=True)
    meter.add_goal(to_bleu)
    train.add_argument("--steps", type=int, required=True, help="updates after the warm-up")
    train.add_argument("--warmup", type=int, required=True)
    train.add_argument(
        "--random_batches", action="store_true", help="not from buckets of similar length"
    )
    decode.add_argument("--warmup_input", type=_path, required=True, help="without the suffix")
    decode.add_argument("--input", type=_path, required=True, help="without the suffix")
    decode.add_argument("--output", type=_path, required=True)
    return parser.parse_args()


def suffixed(path: Path, suffix: str) -> str:
    """Returns `train.de` for `train` and `de`; unlike with_suffix, it keeps a dot in the name."""
    return f"{path}.{suffix}"


def report(result: dict, versions: dict[str, str]) -> None:
    """Prints the JSON line, with the most memory this process has held: compare.py reads it."""
    status = Path("/proc/self/status").read_text("utf-8").splitlines()  # Linux
    peak_kib = next(int(line.split()[1]) for line in status if line.startswith("VmHWM"))
    print(json.dumps({**result, "versions": versions, "peak_mib": round(peak_kib / 1024)}))


def _path(text: str) -> Path:
    return Path(text).resolve()
