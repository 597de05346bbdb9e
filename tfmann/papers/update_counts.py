"""The numbers of updates of runs that are compared."""

from __future__ import annotations

from collections.abc import Sequence

from tfmann.papers import metrics
from tfmann.papers.metrics import Record


def are_equal(run: Record, rival: Record) -> bool:
    """Returns whether two runs have the same start and made equally many updates from it."""
    return _counted(run) == _counted(rival)


def differences(pairs: Sequence[tuple[Record, Record]], of_table: Sequence[Record]) -> str:
    """Describes how many updates made the systems of a comparison; '' if the numbers agree.

    Args:
      pairs: the runs of both rows, by seed.
      of_table: all runs of their table, among them those that others start from.
    """
    by_run = metrics.by_run(of_table)
    texts = dict.fromkeys(
        " against ".join(_description(record, by_run) for record in pair)
        for pair in pairs
        if not are_equal(*pair) or metrics.trained_part(pair[0]) != metrics.trained_part(pair[1])
    )
    return f"updates: {' and '.join(texts)}" if texts else ""


def _counted(record: Record) -> tuple[str, int | None]:
    return record.get("start", ""), record.get("steps")


def _description(record: Record, by_run: dict[tuple[str, int], Record]) -> str:
    """Returns `7,500 + 1,500 of cell/gate_*`: updates of the start, and its own."""
    of_part = f" of {part}" if (part := metrics.trained_part(record)) else ""
    own = f"{record['steps']:,}{of_part}" if record.get("steps") is not None else "not recorded"
    start = by_run.get((record.get("start", ""), metrics.seed_of(record)), {})
    return f"{start['steps']:,} + {own}" if start.get("steps") is not None else own
