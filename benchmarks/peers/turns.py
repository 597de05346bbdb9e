"""The systems' turns: A, B, C, A, B, C, ...; their lines, and the medians of the ratios.

A turn is what ran without a pause. With --out, lines are kept as runs end, and a command that was
interrupted goes on with a new turn: the lines of the broken one stay, and count only in ratios of
two systems that both ran in it.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import statistics
from collections.abc import Callable, Iterable
from pathlib import Path

from benchmarks import harness
from benchmarks.peers import systems
from tfmann.data.text_files import write_lines
from tfmann.utils.provenance import provenance


def take(flags: argparse.Namespace, what: str, measure: Callable[[str, int], dict]) -> None:
    """Takes the turns that are missing and tells what all of them say.

    Args:
      flags: `systems`, `pairs` (how many turns there shall be), `threads` and `out` of the command
        line.
      what: is measured.
      measure: one run of a system in the turn of a number, with what was measured and its `value`.
    """
    place = {"threads": flags.threads, **hardware()}
    runs = kept(flags.out, {"what": what, **place})
    number = 1 + max((run["pair"] for run in runs), default=-1)
    for pair in range(number, number + flags.pairs - len(whole(runs, flags.systems))):
        for system in flags.systems:
            made = provenance()
            now = {"load_before": os.getloadavg()[0], **{k: made[k] for k in ("date", "revision")}}
            runs.append({"pair": pair, **measure(system, pair), **place, **now})
            harness.write(runs[-1:], flags.out)
    told = [{**line, **provenance()} for line in summary(what, runs)]
    harness.write(told, None)
    if flags.out:
        write_lines(flags.out, map(json.dumps, runs + told))


def kept(out: Path | None, like: dict) -> list[dict]:
    """The runs that a file has; what it says of all of them is said anew.

    Raises:
      SystemExit: they measured something else, or on another machine.
    """
    runs = [line for line in harness.read(out) if "pair" in line]
    for run in runs:
        for key, value in like.items():
            if run[key] != value:
                raise SystemExit(
                    f"--out: {out} has runs of {key} {run[key]}, this would be {value}: "
                    "name another file"
                )
    return runs


def hardware() -> dict:
    """The processor's name, how many there are, and the machine's memory."""
    machine = provenance()["hardware"]
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30
    return {"cpu": machine["cpu"], "cores": machine["cores"], "memory_gib": round(memory, 1)}


def whole(runs: Iterable[dict], names: Iterable[str]) -> set[int]:
    """The turns in which all these systems ran."""
    turns = [{run["pair"] for run in runs if run["system"] == name} for name in names]
    return set.intersection(*turns)


def summary(what: str, runs: list[dict]) -> list[dict]:
    """The median of each system, and of the ratios of each of ours to each peer, turn by turn.

    Who has not `reached` a goal has run for nothing: ours counts as endless, which JSON has as
    null, a peer as if it had been there when it was given up.
    """
    values: dict[str, dict[int, float]] = {}
    for run in runs:
        endless = run["system"] in systems.OURS and not run.get("reached", True)
        values.setdefault(run["system"], {})[run["pair"]] = math.inf if endless else run["value"]
    told: list[dict] = []
    for system, by_turn in values.items():
        told.append({"what": what, "system": system, **_median("runs", [*by_turn.values()])})
    for own in (system for system in values if system in systems.OURS):
        for peer in (system for system in values if system in systems.PEER_SYSTEMS):
            both = sorted(values[own].keys() & values[peer].keys())
            ratios = [values[own][turn] / values[peer][turn] for turn in both]
            if ratios:
                told.append({"what": what, "ratio": f"{own}/{peer}", **_median("pairs", ratios)})
    return told


def _median(name: str, every: list[float]) -> dict:
    finite = [None if math.isinf(value) else value for value in every]
    median = statistics.median(every)
    return {name: finite, "median": None if math.isinf(median) else median}
