"""The cost of a memory: time of an update by its size, and peak memory at the papers' sizes.

    python -m benchmarks.cost slots            NTM: N of 64 to 512, then W of 64 to 512
    python -m benchmarks.cost peak             every row of Collier & Beel 2019 at paper size

Prints JSON lines. Every measurement has a process of its own; sizes take turns.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import time
from pathlib import Path

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
from benchmarks import harness  # noqa: E402
from tfmann.utils.provenance import provenance  # noqa: E402

_ROOT = Path(__file__).resolve().parent.parent
SIZES = (64, 128, 256, 512)
# So small that most of a step is the memory.
SLOTS_SETTINGS = {
    "cell": "ntm", "encoder_type": "memory", "num_units": 32, "embedding_size": 32, "dropout": 0.0
}  # fmt: skip
ROWS = ("luong", "ntm_attention", "mad_1", "mad_2", "ntm_1", "ntm_2", "dnc_1")


VOCABULARIES = (7_709, 17_191)  # of Vi-En, source and target
_VOCABULARIES_OF_SLOTS = (17_000, 7_000)


def update(settings: dict, path: str | None, shape: tuple[int, int, int], updates: int) -> dict:
    """Returns the milliseconds of an update on a batch of random words, and the peak memory.

    Args:
      settings: hyperparameters in addition to the file's.
      path: a JSON file of hyperparameters, or None.
      shape: sentences, source words and target words, `</s>` included; all have full length.
      updates: number of timed updates, after two that are not timed.
    """
    import numpy as np

    from tfmann import config
    from tfmann.data.batching import make_batch
    from tfmann.training.optimizer import base_rate
    from tfmann.training.train_step import TrainStep

    sentences, source, target = shape
    h = config.make(settings, path)
    stream = np.random.default_rng(0)
    sizes = VOCABULARIES if path else _VOCABULARIES_OF_SLOTS
    words = [
        stream.integers(3, size, [sentences, n - 1]) for size, n in zip(sizes, (source, target))
    ]
    rows = np.arange(sentences)
    batch = make_batch(words[0], words[1], np.full(sentences, -1), rows, h.append_source_eos)
    learner = TrainStep(h, *sizes)
    times = []
    for step in range(2 + updates):
        begin = time.perf_counter()
        loss = float(learner.update(batch, step, base_rate(h)).cross_entropy)
        times.append(time.perf_counter() - begin)
    return {
        "milliseconds": round(1000 * statistics.median(times[2:]), 1),
        "peak_mib": round(harness.peak_mib()),
        "loss": loss,
        "parameters": learner.model.count_parameters(),
    }


def timed_apart(
    settings: dict, path: str | None, shape: tuple[int, int, int], updates: int
) -> dict:
    """Runs `update` in a process of its own."""
    request = json.dumps([settings, path, shape, updates])
    command = [sys.executable, "-m", "benchmarks.cost", "one", request]
    process = subprocess.run(command, cwd=_ROOT, stdout=subprocess.PIPE, check=True)
    return json.loads(process.stdout.decode().splitlines()[-1])


def slots(args: argparse.Namespace) -> None:
    """Measures the time by N at W = 128, and by W at N = 128."""
    cases = [("num_memory_locations", n) for n in SIZES] + [("memory_unit_size", w) for w in SIZES]
    runs: dict[tuple[str, int], list[float]] = {case: [] for case in cases}
    for _ in range(args.rounds):
        for name, size in cases:
            sizes = {"num_memory_locations": 128, "memory_unit_size": 128, name: size}
            shape = (args.sentences, args.words, args.words)
            result = timed_apart({**SLOTS_SETTINGS, **sizes}, None, shape, args.updates)
            runs[name, size].append(result["milliseconds"])
    for (name, size), times in runs.items():
        median = statistics.median(times)
        ratio = median / statistics.median(runs[name, SIZES[0]])
        record = {"benchmark": "slots", "varied": name, "size": size, "milliseconds": median}
        record = {**record, "ratio_to_smallest": round(ratio, 2), "runs": times}
        harness.write([{**record, **provenance()}], args.out)


def peak(args: argparse.Namespace) -> None:
    """Measures the peak memory of an update at paper size, for 128 pairs of 50 words by default."""
    for row in args.rows:
        path = str(_ROOT / "hparams" / "collier2019" / f"vi_en_{row}.json")
        settings = json.loads(args.settings)
        result = timed_apart(settings, path, (args.sentences, args.words, args.words), 1)
        record = {"benchmark": "peak", "row": row, "vocabularies": VOCABULARIES}
        record = {**record, **settings, **result}
        harness.write([{**record, **provenance()}], args.out)


def answer_request(args: argparse.Namespace) -> None:
    """Answers a request of `timed_apart`."""
    settings, path, shape, updates = json.loads(args.request)
    print(json.dumps(update(settings, path, tuple(shape), updates)))


def main(argv: list[str] | None = None) -> None:
    """Runs the measurement of the command line."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    kinds = parser.add_subparsers(required=True)
    slots_parser = kinds.add_parser("slots")
    slots_parser.set_defaults(what=slots)
    slots_parser.add_argument("--rounds", type=int, default=3)
    slots_parser.add_argument("--updates", type=int, default=10)
    peak_parser = kinds.add_parser("peak")
    peak_parser.set_defaults(what=peak)
    harness.add_choice(peak_parser, "rows", ROWS)
    peak_parser.add_argument("--settings", default="{}", help="additional hyperparameters, as JSON")
    for parser_of_kind, sentences, words in ((slots_parser, 64, 20), (peak_parser, 128, 51)):
        parser_of_kind.add_argument("--sentences", type=int, default=sentences, help="of the batch")
        parser_of_kind.add_argument(
            "--words", type=int, default=words, help="of a sentence, `</s>` included"
        )
        parser_of_kind.add_argument(
            "--out", type=Path, help="a file that the lines are appended to"
        )
    request_parser = kinds.add_parser("one")
    request_parser.set_defaults(what=answer_request)
    request_parser.add_argument("request")
    args = parser.parse_args(argv)
    args.what(args)


if __name__ == "__main__":
    main()
