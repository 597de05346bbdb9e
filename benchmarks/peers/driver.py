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
        command.add_argument("--threads", type=int, default=1, help="of Marian")
    for command in (train, decode):
        meter.add_resident(command)
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
    decode.add_argument("--beam_width", type=int, default=10, help="1: greedy search")
    decode.add_argument("--gemm_type", help="Marian's type of products; float32 if not given")
    decode.add_argument("--shortlist", type=_path, help="Marian's lexicon")
    return parser.parse_args()


def suffixed(path: Path, suffix: str) -> str:
    """Returns `train.de` for `train` and `de`; unlike with_suffix, it keeps a dot in the name."""
    return f"{path}.{suffix}"


def peak_mib(process: int | str = "self") -> int:
    """Returns the most memory that a process has held."""
    status = Path(f"/proc/{process}/status").read_text("utf-8").splitlines()  # Linux
    kib = next(int(line.split()[1]) for line in status if line.startswith("VmHWM"))
    return round(kib / 1024)


def report(result: dict, versions: dict[str, str]) -> None:
    """Prints the JSON line, with the peak memory of this process: compare.py reads it."""
    print(json.dumps({"peak_mib": peak_mib(), **result, "versions": versions}), flush=True)


def _path(text: str) -> Path:
    return Path(text).resolve()
