"""The driver of this package: trains or decodes and prints one JSON line of timings.

    python -m benchmarks.peers.ours_driver train --hparams_path=F --corpus_dir=D --vocab_prefix=P
    python -m benchmarks.peers.ours_driver decode --out_dir=D --inference_input_file=F
    python -m benchmarks.peers.ours_driver to_bleu --hparams_path=F --corpus_dir=D --out_dir=O

`compare.py` and `to_bleu.py` call it; it works with any configuration on any corpus.
"""

from __future__ import annotations

from benchmarks.peers import meter  # isort: skip (its import starts the clock)

import argparse
import json
import os
import sys
import tempfile
import time
from collections.abc import Generator, Sequence
from pathlib import Path

from benchmarks import harness

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")


def train(args: argparse.Namespace) -> Generator[dict, None, None]:
    """Trains on real batches; measures target words/s with </s>, after the warm-up."""
    from tfmann import config
    from tfmann.data import corpus_paths, encoded_corpus, run_vocabularies
    from tfmann.data.batching import Position, TrainingBatches
    from tfmann.data.prefetch import prefetch
    from tfmann.training.optimizer import base_rate
    from tfmann.training.train_step import TrainStep

    h = config.make(_settings(args), args.hparams_path)
    clock = meter.UpdateMeter(args.warmup)
    with tempfile.TemporaryDirectory() as folder:
        languages = run_vocabularies.load_or_build(h, folder, _note)
        paths = corpus_paths.parallel_paths(h, h.train_prefix or "")
        corpus = encoded_corpus.encode(languages, *paths, None, folder, _note)
        batches = prefetch(TrainingBatches(corpus, h).batches(Position()))
        sizes = [len(side.vocabulary) for side in languages]
        learner = TrainStep(h, sizes[0], sizes[1])
        warmup, step = args.warmup, 0
        while True:
            clock, words, first = meter.UpdateMeter(warmup), 0, step
            for step in range(first, first + warmup + args.steps):
                batch, _ = next(batches)
                update = learner.update(batch, step, base_rate(h))
                words += batch.words
                if step + 1 - first in (1, warmup, warmup + args.steps):
                    loss = float(update.cross_entropy) / int(update.words)  # waits
                clock.update_done(words)
            yield {
                **clock.result(),
                "loss": loss,
                "parameters": learner.model.count_parameters(),
                "precision": h.precision,
                "cell": h.cell,
            }
            warmup, step = meter.WARMUP_OF_TURN, step + 1


def decode(args: argparse.Namespace) -> Generator[dict, None, None]:
    """Translates a file with a trained model: sentences/s, after the first 64 sentences."""
    import tfmann
    from tfmann.data.text_files import iter_lines, write_lines

    model = tfmann.load(args.out_dir, **json.loads(args.settings))
    lines = list(iter_lines(args.inference_input_file))
    list(model.translate(lines[:64]))
    while True:
        begin, begin_cpu = time.perf_counter(), time.process_time()
        n_best = list(model.translate(lines))
        seconds, cpu_seconds = time.perf_counter() - begin, time.process_time() - begin_cpu
        if args.inference_output_file:
            write_lines(args.inference_output_file, [best[0].text for best in n_best])
        yield {
            "sentences": len(lines),
            "words": sum(len(best[0].tokens) for best in n_best),
            "seconds": seconds,
            "cpu_seconds": cpu_seconds,
            "search": model.hparams.infer_mode,
            "precision": model.hparams.infer_precision,
        }


def to_bleu(args: argparse.Namespace) -> Generator[dict, None, None]:
    """Trains as `python -m tfmann.nmt`, until an evaluation reaches the goal."""
    from tfmann import config
    from tfmann.cli import train as train_module

    settings = {
        **_settings(args),
        "dev_prefix": str(Path(args.corpus_dir) / "val"),
        "infer_mode": "greedy",
        "steps_per_external_eval": args.every,
        "num_train_steps": args.most,
    }
    watch = meter.Watch(args.goal)

    class Watched(train_module.TrainingSession):
        """A session that records every evaluation, and stops at the one that reaches the goal."""

        def evaluate(self, state):
            begin = time.perf_counter()
            bleu = super().evaluate(state)
            watch.evaluated(state.step, bleu, time.perf_counter() - begin)
            return bleu

    train_module.TrainingSession = Watched  # type: ignore[misc]
    h = config.make(settings, args.hparams_path)
    try:
        train_module.train(h, args.out_dir, _note)
    except meter.Reached:
        pass
    yield {**watch.result(), "random_seed": h.random_seed, "precision": h.precision}


def _settings(args: argparse.Namespace) -> dict:
    settings = json.loads(args.settings)
    settings["train_prefix"] = str(Path(args.corpus_dir) / "train")
    return {**settings, "vocab_prefix": args.vocab_prefix} if args.vocab_prefix else settings


def _note(message: str) -> None:
    print(message, file=sys.stderr)


def parse(argv: Sequence[str] | None = None) -> argparse.Namespace:
    """Parses the command line, whose function is `run`."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    kinds = parser.add_subparsers(required=True)
    for run in (train, to_bleu, decode):
        parser_of_run = kinds.add_parser(run.__name__)
        parser_of_run.set_defaults(run=run)
        parser_of_run.add_argument(
            "--settings", default="{}", help="more hyper-parameters, as JSON"
        )
        if run is decode:
            parser_of_run.add_argument("--inference_input_file", required=True)
            parser_of_run.add_argument("--inference_output_file")
        else:
            parser_of_run.add_argument("--hparams_path", required=True)
            parser_of_run.add_argument("--corpus_dir", required=True)
            parser_of_run.add_argument("--vocab_prefix")
        if run is train:
            parser_of_run.add_argument("--steps", type=int, default=120)
            parser_of_run.add_argument("--warmup", type=int, default=20)
        else:
            parser_of_run.add_argument("--out_dir", required=True)
        meter.add_resident(parser_of_run)
    meter.add_goal(kinds.choices["to_bleu"])
    return parser.parse_args(argv)


def main() -> None:
    """Runs the command line; the JSON line is the last of standard output."""
    args = parse()

    def report(record: dict) -> None:
        print(json.dumps({**record, "peak_mib": round(harness.peak_mib())}), flush=True)

    meter.take_turns(args.run(args), report, args.resident)


if __name__ == "__main__":
    main()
