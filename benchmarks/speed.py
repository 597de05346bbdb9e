"""Our speed and memory, as JSON lines.

    python -m benchmarks.speed train --hparams_path=F --corpus_dir=D --vocab_prefix=P
    python -m benchmarks.speed decode --out_dir=D --inference_input_file=F
    python -m benchmarks.speed          every cell at a small size, on the synthetic corpus
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
_ROOT = Path(__file__).resolve().parent.parent


def train(args: argparse.Namespace) -> dict:
    """Updates on real batches: target words/s with </s>, after the warm-up."""
    from tfmann import hparams
    from tfmann.corpus import encode, text
    from tfmann.corpus.pipeline import Position, Training, ahead
    from tfmann.training.step import Learner

    settings = {"train_prefix": str(Path(args.corpus_dir) / "train")}
    if args.vocab_prefix:
        settings["vocab_prefix"] = args.vocab_prefix
    if args.precision:
        settings["precision"] = args.precision
    h = hparams.make(settings, args.hparams_path)
    with tempfile.TemporaryDirectory() as folder:
        languages = text.settle_vocabularies(h, folder, _note)
        paths = text.prefix_paths(h, h.train_prefix)
        corpus = encode.encode(languages, *paths, None, folder, _note)
        batches = ahead(Training(corpus, h).batches(Position()))
        learner = Learner(h, *(len(side.vocabulary) for side in languages))
        words, begin = 0, 0.0
        for step in range(args.warmup + args.steps):
            if step == args.warmup:
                words, begin = 0, time.perf_counter()
            batch, _ = next(batches)
            update = learner.update(batch, step, h.learning_rate)
            words += batch.words
        loss = float(update.cross_entropy) / int(update.words)
        seconds = time.perf_counter() - begin
    return {
        "words": words,
        "seconds": seconds,
        "words_per_second": words / seconds,
        "steps": args.steps,
        "loss": loss,
        "parameters": learner.model.count_parameters(),
        "precision": h.precision,
        "cell": h.cell,
    }


def decode(args: argparse.Namespace) -> dict:
    """Translating a file with a trained model: sentences/s, after the first 64 sentences."""
    import tfmann
    from tfmann.corpus.files import iter_lines, write_lines

    changes = {}
    if args.infer_mode:
        changes["infer_mode"] = args.infer_mode
    model = tfmann.load(args.out_dir, **changes)
    lines = list(iter_lines(args.inference_input_file))
    list(model.translate(lines[:64]))
    begin = time.perf_counter()
    n_best = list(model.translate(lines))
    seconds = time.perf_counter() - begin
    if args.inference_output_file:
        write_lines(args.inference_output_file, [best[0].text for best in n_best])
    words = sum(len(best[0].tokens) for best in n_best)
    return {
        "sentences": len(lines),
        "words": words,
        "seconds": seconds,
        "sentences_per_second": len(lines) / seconds,
        "search": model.hparams.infer_mode,
    }


def every_cell(args: argparse.Namespace) -> None:
    """Training speed and memory of every cell, each in a process of its own, in turns."""
    from tfmann.corpus import synthetic
    from tfmann.hparams import declared_cells

    with tempfile.TemporaryDirectory() as corpus:
        synthetic.write_corpus(corpus, train=10000, dev=100, test=100, seed=1)
        for _ in range(args.rounds):
            for cell in declared_cells():
                command = [
                    *(sys.executable, "-m", "benchmarks.speed", "train"),
                    f"--hparams_path={_ROOT / 'hparams' / 'tiny' / f'{cell}.json'}",
                    *(f"--corpus_dir={corpus}", f"--vocab_prefix={corpus}/vocab"),
                    *(f"--steps={args.steps}", f"--warmup={args.warmup}"),
                ]
                done = subprocess.run(command, cwd=_ROOT, stdout=subprocess.PIPE, check=True)
                print(done.stdout.decode().splitlines()[-1], flush=True)


def _note(message: str) -> None:
    print(message, file=sys.stderr)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.set_defaults(what=every_cell)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--steps", type=int, default=60)
    parser.add_argument("--warmup", type=int, default=20)
    kinds = parser.add_subparsers()
    one = kinds.add_parser("train")
    one.set_defaults(what=train)
    one.add_argument("--hparams_path", required=True)
    one.add_argument("--corpus_dir", required=True)
    one.add_argument("--vocab_prefix")
    one.add_argument("--precision")
    one.add_argument("--steps", type=int, default=120)
    one.add_argument("--warmup", type=int, default=20)
    other = kinds.add_parser("decode")
    other.set_defaults(what=decode)
    other.add_argument("--out_dir", required=True)
    other.add_argument("--inference_input_file", required=True)
    other.add_argument("--inference_output_file")
    other.add_argument("--infer_mode")
    args = parser.parse_args()
    record = args.what(args)
    if record is not None:
        usage = resource.getrusage(resource.RUSAGE_SELF)
        record["peak_mib"] = round(usage.ru_maxrss / 1024)
        print(json.dumps(record))


if __name__ == "__main__":
    main()
