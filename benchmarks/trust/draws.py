"""Command lines of training with settings drawn from their ranges, at the limits and beyond.

The drawn settings are added to a command that trains a tiny model, so most could be accepted.
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from tfmann.cli import validation
from tfmann.config import CELLS, FIELDS, cells_by_setting, fields_of
from tfmann.config.fields import Field

TINY: dict[str, Any] = {
    "src": "src", "tgt": "tgt", "num_units": 4, "embedding_size": 4, "num_layers": 1,
    "batch_size": 4, "num_train_steps": 2, "steps_per_stats": 1, "steps_per_external_eval": 2,
    "infer_mode": "greedy", "tgt_max_len_infer": 4, "num_attention_images": 0,
}  # fmt: skip
TINY_MEMORIES = {"num_memory_locations": 4, "memory_unit_size": 4, "cache_size": 3}
PREFIXES = ("train_prefix", "dev_prefix", "test_prefix", "vocab_prefix")
_OF_CELLS = cells_by_setting()
_HUGE = {
    int: ("1000000", "1000000000", "1000000000", "1000000000000", f"{10**30}", "9" * 400, "-1"),
    float: ("1000000000", "-1", "1e38", "3.5e38", "1e300", "1e-300", "1e-45", "inf", "nan", "-0.0"),
}
_ODD = ("", " ", "x", "1.5", "True", "0x10", "1_0", "١", "None", "[1]", "a,b", ",", "*", "cell/*",
        "\u2028", "größe", "../..", "/dev/null", "/dev/full", "-", "%s{}", "0,0.6",
        "0," * 50)  # fmt: skip
_OTHER = ("ckpt", "inference_input_file", "inference_output_file", "inference_ref_file",
          "inference_document_file", "alignment_file", "export_dir", "gold_file", "num_workers",
          "jobid", "hparams_path")  # fmt: skip


def command(name: str, data: Path, out: Path) -> list[str]:
    """Returns the command line of a draw, which depends only on its name, a seed and a number."""
    stream = random.Random(name)
    values: dict[str, str] = {}
    cell = stream.choice(sorted(CELLS))
    if stream.random() < 0.7:
        values["cell"] = cell
    else:
        cell = FIELDS["cell"].default
    cell_keys = sorted(fields_of(CELLS[cell].options))
    keys = sorted(FIELDS)
    if stream.random() < 0.9:  # a setting of another cell is refused
        keys = [key for key in keys if key not in _OF_CELLS or key in cell_keys]
    for _ in range(stream.choice((1, 1, 2, 3, 5))):
        pool = cell_keys if cell_keys and stream.random() < 0.3 else keys
        key = stream.choice(pool)
        values[key] = _value(FIELDS[key], stream, data)
    sizes = {key: value for key, value in TINY_MEMORIES.items() if key in cell_keys}
    prefixes = {prefix: data / prefix.split("_")[0] for prefix in PREFIXES[:2]}
    flags = {**TINY, **sizes, **prefixes, **values}
    if stream.random() < 0.08:
        flags[stream.choice(_OTHER)] = stream.choice(_ODD)
    if stream.random() < 0.04:
        flags["mode"] = stream.choice((*validation.MODES, *_ODD))
    return [f"--out_dir={out}", *(f"--{key}={value}" for key, value in flags.items()),
            *_stray_flags(stream)]  # fmt: skip


def _value(field: Field, stream: random.Random, data: Path) -> str:
    """Returns a value of a field as text."""
    probability = stream.random()
    if probability < 0.08:
        return stream.choice(_ODD)
    if field.is_path:
        return stream.choice([*_ODD, f"{data}/train", f"{data}/vocab", f"{data}/absent"])
    if field.choices is not None:
        return stream.choice(field.choices)
    if field.type is bool:
        return stream.choice(("true", "false"))
    if field.type is str:
        return stream.choice(_ODD)
    if probability < 0.25:
        return stream.choice(_HUGE[field.type])
    return _number(field, stream)


def _number(field: Field, stream: random.Random) -> str:
    """Draws a number at a limit, just beyond it, or within."""
    least = 0 if field.minimum is None else field.minimum
    greatest = next((bound for bound in (field.below, field.maximum) if bound is not None), None)
    if field.type is int:
        edges = [least, least + 1, least - 1]
        edges += [] if greatest is None else [greatest, greatest + 1]
        return str(stream.choice([*edges, *(stream.randint(int(least), 9) for _ in edges)]))
    edges = [least, least - 1e-6, least + 1e-12]
    edges += [] if greatest is None else [greatest, greatest + 1e-6, greatest - 1e-9]
    upper = 1e3 if greatest is None else greatest
    return repr(stream.choice([*edges, *(stream.uniform(least, upper) for _ in edges)]))


def _stray_flags(stream: random.Random) -> Sequence[str]:
    """Draws, now and then, an argument that is no setting."""
    if stream.random() < 0.95:
        return ()
    key = stream.choice(sorted(FIELDS))
    return [stream.choice((f"--{key}", f"--no{key}", f"--no{key}=1", f"--{key[:-1]}=1", key, "--",
                           f"-{key}=1", f"--{key}=", "--flagfile=/dev/null"))]  # fmt: skip
