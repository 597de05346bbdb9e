"""Minutes to a development BLEU: this package compared with JoeyNMT, each trained from scratch.

    python -m benchmarks.peers.to_bleu --corpus_dir=DIR [--goal=25] [--every=200] [--pairs=5]

The systems take turns, and each turn has another seed, because the number of updates also depends
on chance. Each system evaluates `val` every --every updates, by greedy search in batches of 32 as
JoeyNMT does in training, and stops at the evaluation that reaches the goal. The minutes run from
the process's first line to the end of that evaluation; they include start-up and all evaluations,
and `evaluation_minutes` is the share of these. A training that misses the goal within --most
updates has `reached` false. Prints a JSON line for each run, then the medians of the ratios ours /
JoeyNMT.
"""

from __future__ import annotations

import argparse
import shutil

from benchmarks.peers import compare, meter, systems, turns

SYSTEMS = ("joey", "ours", "ours_bfloat16")


def parse(argv: list[str] | None = None) -> argparse.Namespace:
    """Parses the command line."""
    parser = compare.make_parser(__doc__.split("\n")[0], SYSTEMS)
    meter.add_goal(parser)
    flags = parser.parse_args(argv)
    flags.systems = compare.choose_systems(parser, flags, SYSTEMS)
    return flags


def measure(flags: argparse.Namespace, setup: systems.Setup, system: str, turn: int) -> dict:
    """Runs one training; its log stays."""
    model_dir = setup.work_dir / f"{system}.to_bleu"
    shutil.rmtree(model_dir, ignore_errors=True)  # of a run that was killed
    goal = [f"--goal={flags.goal}", f"--every={flags.every}", f"--most={flags.most}"]
    command = systems.to_bleu_command(setup, system, model_dir, goal, seed=1 + turn)
    record = systems.run(command, flags.threads, setup.work_dir / "logs" / f"to_bleu-{system}.log")
    shutil.rmtree(model_dir, ignore_errors=True)
    minutes = {
        "value": record["seconds"] / 60,
        "evaluation_minutes": record["evaluation_seconds"] / 60,
        "unit": "minutes",
    }
    return {"system": system, "what": "to_bleu", **minutes, **record}


def main(argv: list[str] | None = None) -> None:
    """Runs everything in turn and prints as it goes."""
    flags = parse(argv)
    setup = compare.make_setup(flags)
    systems.keep_processors(flags.threads)
    turns.take(flags, "to_bleu", lambda *system_and_turn: measure(flags, setup, *system_and_turn))


if __name__ == "__main__":
    main()
