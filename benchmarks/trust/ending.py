"""The parts of a run's folder that must not depend on how often it was stopped."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path

from tfmann.training import checkpoint

# Times, and the revision, which may change before a run is resumed.
_TIMES = {"train_seconds", "words_per_second", "date", "seconds", "revision"}
_OURS = {"sha256", "sha256_of_this"}  # of the archives, whose arrays are compared
_LOGS = ("train_log", "train.log", "lock")
_RECORDS = ("results.json", "state.json", "tfmann.json", "inspection.json")
_RENDERED = "results/README.md"  # from the records of a table, with their times


def ending(out: Path) -> dict[str, str]:
    """Returns hashes of all arrays, records (without times) and other files, by name."""
    parts = {}
    for path in sorted(out.rglob("*")):
        name = str(path.relative_to(out))
        is_log = any(part in _LOGS for part in path.relative_to(out).parts)
        if path.is_dir() or is_log or name == _RENDERED:
            continue
        if path.suffix == ".npz":
            for key, value in checkpoint.read_arrays(str(path.parent), path.stem).items():
                bits = f"{value.dtype} {value.shape} ".encode() + value.tobytes()
                parts[f"{name}: {key}"] = _short(bits)
        elif path.name in _RECORDS:
            for key, value in json.loads(path.read_text()).items():
                if key not in _TIMES | _OURS:
                    parts[f"{name}: {key}"] = json.dumps(_timeless(value))
        elif path.suffix == ".jsonl":
            for number, line in enumerate(path.read_text().splitlines()):
                parts[f"{name}: {number}"] = json.dumps(_timeless(json.loads(line)))
        else:
            parts[name] = _short(path.read_bytes())
    return parts


def differences(first: dict[str, str], second: dict[str, str]) -> list[str]:
    """Returns the names of parts that differ, or that one of two endings lacks."""
    return sorted(key for key in first.keys() | second.keys() if first.get(key) != second.get(key))


def _short(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()[:16]


def _timeless(value: object) -> object:
    if isinstance(value, dict):
        return {key: _timeless(part) for key, part in value.items() if key not in _TIMES}
    return value
