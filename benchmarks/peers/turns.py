"""The systems' turns: A, B, C, A, B, C, ...; their lines, and the medians of the ratios.

The runs of a turn follow each other without a pause. With --out, each run is written when it ends,
and an interrupted command continues with a new turn. The lines of the interrupted turn stay, and
count only in ratios of two systems that both ran in it.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import statistics
from collections.abc import Callable, Collection, Iterable
from pathlib import Path

from benchmarks import harness
from benchmarks.peers import systems
from tfmann.data.text_files import write_lines
from tfmann.utils.provenance import provenance


def take(
    flags: argparse.Namespace,
    what: str,
    measure: Callable[[str, int], dict],
    ours: Collection[str] = tuple(systems.OURS),
) -> None:
    """Runs the missing turns, and writes the medians over all turns.

    Args:
      flags: `systems`, `pairs` (the number of turns), `threads` and `out` of the command line.
      what: the kind of measurement.
      measure: runs a system in the turn of a number; returns its record, with a `value`.
      ours: the systems that are compared with all others.
    """
    machine = {"threads": flags.threads, **hardware()}
    runs = read_runs(flags.out, {"what": what, **machine})
    number = 1 + max((run["pair"] for run in runs), default=-1)
    for pair in range(number, number + flags.pairs - len(complete_turns(runs, flags.systems))):
        for system in flags.systems:
            record_provenance = provenance()
            circumstances = {
                "load_before": os.getloadavg()[0],
                **{k: record_provenance[k] for k in ("date", "revision")},
            }
            runs.append({"pair": pair, **measure(system, pair), **machine, **circumstances})
            harness.write(runs[-1:], flags.out)
    medians = [{**line, **provenance()} for line in summary(what, runs, ours)]
    harness.write(medians, None)
    if flags.out:
        write_lines(flags.out, map(json.dumps, runs + medians))


def read_runs(out: Path | None, expected: dict) -> list[dict]:
    """Reads the runs of a file; its medians are left out, because they are computed again.

    Raises:
      SystemExit: they measured something else, or on another machine.
    """
    runs = [line for line in harness.read(out) if "pair" in line]
    for run in runs:
        for key, value in expected.items():
            if run[key] != value:
                raise SystemExit(
                    f"--out: {out} has runs of {key} {run[key]}, this would be {value}: "
                    "name another file"
                )
    return runs


def hardware() -> dict:
    """Returns the processor's name, the number of processors, and the machine's memory."""
    machine = provenance()["hardware"]
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30
    return {"cpu": machine["cpu"], "cores": machine["cores"], "memory_gib": round(memory, 1)}


def complete_turns(runs: Iterable[dict], names: Iterable[str]) -> set[int]:
    """Returns the turns in which all these systems ran."""
    turns = [{run["pair"] for run in runs if run["system"] == name} for name in names]
    return set.intersection(*turns)


def summary(what: str, runs: list[dict], ours: Collection[str] = tuple(systems.OURS)) -> list[dict]:
    """Returns the median of each system, and of the ratios ours / peer by turn.

    A run that has not `reached` its goal has no time: ours counts as infinite, which is null in
    JSON, and a peer's as the time at which it was given up. Where both count processor seconds, a
    line also has the ratio by these, which another program on the machine changes less.
    """
    by_cpu = by_processor_second(runs)
    values: dict[str, dict[int, float]] = {}
    for run in runs:
        endless = run["system"] in ours and not run.get("reached", True)
        values.setdefault(run["system"], {})[run["pair"]] = math.inf if endless else run["value"]
    medians: list[dict] = []
    for system, by_turn in values.items():
        medians.append({"what": what, "system": system, **_median("runs", [*by_turn.values()])})
    for our_system in (system for system in values if system in ours):
        for peer in (system for system in values if system not in ours):
            common_turns = sorted(values[our_system].keys() & values[peer].keys())
            ratios = [values[our_system][turn] / values[peer][turn] for turn in common_turns]
            if ratios:
                line = {"what": what, "ratio": f"{our_system}/{peer}", **_median("pairs", ratios)}
                rates = ((by_cpu.get((our_system, t)), by_cpu.get((peer, t))) for t in common_turns)
                cpu_ratios = [ours / theirs for ours, theirs in rates if ours and theirs]
                if cpu_ratios:
                    line["cpu_pairs"] = cpu_ratios
                    line["cpu_median"] = statistics.median(cpu_ratios)
                medians.append(line)
    return medians


def by_processor_second(runs: Iterable[dict]) -> dict[tuple[str, int], float]:
    """Returns what each run did in a processor second, by system and turn, where it is known."""
    return {
        (run["system"], run["pair"]): run["value"] * run["seconds"] / run["cpu_seconds"]
        for run in runs
        if run.get("cpu_seconds")
    }


def _median(name: str, values: list[float]) -> dict:
    finite = [None if math.isinf(value) else value for value in values]
    median = statistics.median(values)
    return {name: finite, "median": None if math.isinf(median) else median}
