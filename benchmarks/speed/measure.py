"""One measurement, in the process that it is given: what `python -m benchmarks.speed one` does."""

from __future__ import annotations

import statistics
from typing import Any

from benchmarks import lines
from benchmarks.speed import cells

_WARM = 2  # runs that are not counted: the first compiles


def pairs(what: str, row: str, size: str, precision: str, count: int) -> dict[str, Any]:
    """A cell's speed beside its reference's and the machine's, in turns.

    Returns:
      words and sentences a second; `ratio` to the reference, and the ratio that the counted
      operations `allow`; `share`, how much of the machine's rate of products the counted operations
      reach. All are medians over the turns, which are in `turns`.
    """
    import tensorflow as tf

    from benchmarks.speed import machine, runs

    own, beside = (runs.MAKE[what](one, size, precision) for one in (row, _reference(row)))
    for one in (own, beside):
        for _ in range(_WARM):
            one.run()
    dtype = tf.bfloat16 if precision == "mixed_bfloat16" else tf.float32
    products = machine.Products(cells.SIZES[size].products, dtype)
    turns = []
    for _ in range(count):
        rate = products.measure()
        turns.append({
            "rate": rate.operations,
            "shape": list(rate.shape),
            "reference": beside.run(),
            "seconds": own.run(),
        })  # fmt: skip
    best = max(turns, key=lambda turn: turn["rate"])
    seconds = statistics.median(turn["seconds"] for turn in turns)
    ratios = [turn["reference"] / turn["seconds"] for turn in turns]
    shares = [own.operations / turn["seconds"] / turn["rate"] for turn in turns]
    as_much = own.words / beside.words
    return {
        "words_per_second": own.words / seconds,
        "sentences_per_second": own.sentences / seconds,
        "reference": _reference(row),
        "ratio": as_much * statistics.median(ratios),
        "allow": as_much * beside.operations / own.operations,
        "share": statistics.median(shares),
        "operations": own.operations,
        "words": own.words,
        "rate": best["rate"],
        "rate_shape": best["shape"],
        "parameters": own.parameters,
        "pairs": count,
        "turns": turns,
    }


def _reference(row: str) -> str:
    return cells.ROWS[row].reference


def memory(of: str, row: str, size: str, precision: str) -> dict[str, Any]:
    """The most memory that training or decoding holds, in a process that has done nothing else.

    Returns:
      `peak_mib`, and `more_mib`, how much that is above what the libraries alone take.
    """
    from benchmarks.speed import runs

    begin = lines.peak_mib()
    one = runs.MAKE[of](row, size, precision)
    for _ in range(_WARM):
        one.run()
    peak = lines.peak_mib()
    return {
        "of": of,
        "peak_mib": round(peak),
        "more_mib": round(peak - begin),
        "parameters": one.parameters,
        "pairs": 1,
    }


def measure(asked: dict[str, Any]) -> dict[str, Any]:
    """What a process is asked for: `what`, `cell`, `size`, `precision` and `pairs`."""
    where = (asked["cell"], asked["size"], asked["precision"])
    if asked["what"].startswith("memory"):
        return memory(asked["what"].split("_")[1], *where)
    return pairs(asked["what"], *where, asked["pairs"])
