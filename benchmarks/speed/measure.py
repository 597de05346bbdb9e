"""One measurement in this process: `python -m benchmarks.speed one`."""

from __future__ import annotations

import statistics
from typing import Any

from benchmarks import harness
from benchmarks.speed import cells

_WARM = 2  # runs that are not counted: the first compiles


def pairs(kind: str, row: str, size: str, precision: str, count: int) -> dict[str, Any]:
    """Measures a cell, its reference and the machine's rate of products in turn.

    Returns:
      words and sentences per second; the `ratio` to the reference, and the ratio that the counted
      operations `allow`; the `share` of the machine's rate of products that they reach. All are
      medians over the turns, which are in `turns`.
    """
    import tensorflow as tf

    from benchmarks.speed import machine, runs

    measured, reference = (
        runs.MAKE[kind](name, size, precision) for name in (row, _reference(row))
    )
    for program in (measured, reference):
        for _ in range(_WARM):
            program.run()
    dtype = tf.bfloat16 if precision == "mixed_bfloat16" else tf.float32
    products = machine.Products(cells.SIZES[size].products, dtype)
    turns = []
    for _ in range(count):
        rate = products.measure()
        turns.append({
            "rate": rate.operations,
            "shape": list(rate.shape),
            "reference": reference.run(),
            "seconds": measured.run(),
        })  # fmt: skip
    best = max(turns, key=lambda turn: turn["rate"])
    seconds = statistics.median(turn["seconds"] for turn in turns)
    ratios = [turn["reference"] / turn["seconds"] for turn in turns]
    shares = [measured.operations / turn["seconds"] / turn["rate"] for turn in turns]
    size_ratio = measured.words / reference.words
    return {
        "words_per_second": measured.words / seconds,
        "sentences_per_second": measured.sentences / seconds,
        "reference": _reference(row),
        "ratio": size_ratio * statistics.median(ratios),
        "allow": size_ratio * reference.operations / measured.operations,
        "share": statistics.median(shares),
        "operations": measured.operations,
        "words": measured.words,
        "rate": best["rate"],
        "rate_shape": best["shape"],
        "parameters": measured.parameters,
        "pairs": count,
        "turns": turns,
    }


def _reference(row: str) -> str:
    return cells.ROWS[row].reference


def memory(task: str, row: str, size: str, precision: str) -> dict[str, Any]:
    """Measures the peak memory of training or decoding in a process that has done nothing else.

    Returns:
      `peak_mib`, and `more_mib`, the difference from the libraries alone.
    """
    from benchmarks.speed import runs

    begin = harness.peak_mib()
    program = runs.MAKE[task](row, size, precision)
    for _ in range(_WARM):
        program.run()
    peak = harness.peak_mib()
    return {
        "of": task,
        "peak_mib": round(peak),
        "more_mib": round(peak - begin),
        "parameters": program.parameters,
        "pairs": 1,
    }


def measure(request: dict[str, Any]) -> dict[str, Any]:
    """Answers a request, which has `what`, `cell`, `size`, `precision` and `pairs`."""
    cell_size_precision = (request["cell"], request["size"], request["precision"])
    if request["what"].startswith("memory"):
        return memory(request["what"].split("_")[1], *cell_size_precision)
    return pairs(request["what"], *cell_size_precision, request["pairs"])
