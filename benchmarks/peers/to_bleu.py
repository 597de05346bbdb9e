"""Minutes to a development BLEU: this package beside JoeyNMT, each trained from its first weights.

    python -m benchmarks.peers.to_bleu --corpus_dir=DIR [--goal=25] [--every=200] [--pairs=5]

The systems take turns, each turn with another seed: how many updates it takes is luck as well. Each
trains with an evaluation of `val` every so many updates, by greedy search in batches of 32 as
JoeyNMT does it in training, and ends at the one that finds the goal. The minutes are those from the
process's first line to the end of that evaluation: start-up and all evaluations are inside, and
`evaluation_minutes` says how much these are. A training that is not there after --most updates ends
with `reached` false. Prints a JSON line for each, then the medians of the ratios ours / JoeyNMT.
"""

from __future__ import annotations

import argparse
import shutil

from benchmarks.peers import compare, meter, systems, turns

SYSTEMS = ("joey", *systems.OURS)


def parse(argv: list[str] | None = None) -> argparse.Namespace:
    """The command line."""
    parser = compare.parser_of(__doc__.split("\n")[0], SYSTEMS)
    meter.add_goal(parser)
    flags = parser.parse_args(argv)
    flags.systems = compare.chosen(parser, flags, SYSTEMS)
    return flags


def measure(flags: argparse.Namespace, setup: systems.Setup, system: str, turn: int) -> dict:
    """One training; the log stays."""
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
    setup = compare.places(flags)
    systems.keep_processors(flags.threads)
    turns.take(flags, "to_bleu", lambda *which: measure(flags, setup, *which))


if __name__ == "__main__":
    main()
