"""The gain of each speed-up of training: all on, and each off in turn, in one process.

    python -m benchmarks.ablation --hparams_path=F --corpus_dir=D [--vocab_prefix=P]

Prints JSON lines: target words/s of every round, then the median ratio of each variant to all on.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import statistics
import tempfile
import time
from pathlib import Path
from typing import Any
from unittest import mock

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")

import tensorflow as tf  # noqa: E402

from tfmann import config  # noqa: E402
from tfmann.data import corpus_paths, encoded_corpus, run_vocabularies  # noqa: E402
from tfmann.data.batching import Position, TrainingBatches  # noqa: E402
from tfmann.layers.rnn import recurrent_step  # noqa: E402
from tfmann.training.optimizer import base_rate  # noqa: E402
from tfmann.training.train_step import TrainStep  # noqa: E402
from tfmann.utils.provenance import provenance  # noqa: E402


def plain_scan(unit_type, projected, kernel, dtype, initial=None):
    """Computes `scan` with automatic differentiation."""
    cast = tf.cast(kernel, dtype)
    steps, gates = tf.shape(projected)[0], 4 if unit_type == "lstm" else 3
    units = projected.shape[-1] // gates
    zeros = tf.zeros(tf.concat([tf.shape(projected)[1:3], [units]], axis=0))
    zeros = tf.ensure_shape(zeros, [projected.shape[1], None, units])
    parts = 2 if unit_type == "lstm" else 1
    inputs = tf.TensorArray(tf.float32, steps, element_shape=projected.shape[1:]).unstack(projected)
    stacks = tuple(
        tf.TensorArray(tf.float32, steps, element_shape=zeros.shape) for _ in range(parts)
    )

    def body(count, state, stacks):
        recurrent = tf.cast(tf.matmul(tf.cast(state[0], dtype), cast), tf.float32)
        state = recurrent_step(unit_type, inputs.read(count), recurrent, state)
        return count + 1, state, tuple(s.write(count, part) for s, part in zip(stacks, state))

    first = zeros if initial is None else tf.ensure_shape(initial, zeros.shape)
    loop = (tf.constant(0), (first, zeros)[:parts], stacks)
    *_, stacks = tf.while_loop(lambda count, *_: count < steps, body, loop)
    return tuple(stack.stack() for stack in stacks)


def plain_cross_entropy(readout, kernel, bias, labels, smoothing, dtype):
    """Computes projection and loss by TensorFlow's own operations."""
    assert not smoothing
    logits = tf.cast(tf.matmul(tf.cast(readout, dtype), tf.cast(kernel, dtype)), tf.float32)
    logits = logits if bias is None else logits + bias
    losses = tf.nn.sparse_softmax_cross_entropy_with_logits(labels=labels, logits=logits)
    total = tf.reduce_sum(losses)
    return total, tf.stop_gradient(total)


class PlainSource:
    """Constants of a step, differentiated automatically: `LoopGradients` without its lists."""

    def __init__(self, source, steps, fields):
        del steps, fields
        self._source = source

    def at(self, time):
        """Returns all of it, at every step."""
        del time
        return self._source


class PlainReader:
    """Inputs read a step at a time, differentiated automatically."""

    def __init__(self, values):
        array = tf.TensorArray(values.dtype, tf.shape(values)[0], element_shape=values.shape[1:])
        self._array = array.unstack(values)

    def read(self, time):
        """Returns the inputs of a step."""
        return self._array.read(time)


VARIANTS: dict[str, dict[str, Any]] = {
    "all on": {},
    "encoder loop differentiated automatically": {
        "patch": ("tfmann.models.encoder.scan", plain_scan)
    },
    "gradients of matrices added up in the decoder's loop": {
        "patch": ("tfmann.decoding.row_decoders.LoopGradients", PlainSource)
    },
    "gradients of inputs added up in the decoder's loop": {
        "patch": ("tfmann.decoding.row_decoders.StepReader", PlainReader)
    },
    "TensorFlow's cross-entropy": {
        "patch": ("tfmann.training.objective.projected_cross_entropy", plain_cross_entropy)
    },
    "batches not sorted by length": {"settings": {"bucket_pool": 0}},
    "bfloat16 products": {"settings": {"precision": "mixed_bfloat16"}},
}


class Variant:
    """A compiled training step and its batches."""

    def __init__(self, path, base, warmup, patch=None, settings=None):
        self.hparams = config.make({**base, **(settings or {})}, path)
        with tempfile.TemporaryDirectory() as folder:
            languages = run_vocabularies.load_or_build(self.hparams, folder, lambda line: None)
            paths = corpus_paths.parallel_paths(self.hparams, self.hparams.train_prefix)
            corpus = encoded_corpus.encode(languages, *paths, None, folder, lambda line: None)
            stream = TrainingBatches(corpus, self.hparams).batches(Position())
            self.batches = [next(stream)[0] for _ in range(60)]
        self.learner = TrainStep(self.hparams, *(len(s.vocabulary) for s in languages))
        self.step = 0
        with mock.patch(*patch) if patch else contextlib.nullcontext():
            self.run(warmup)  # compiles

    def run(self, steps):
        """Returns target words per second over some updates."""
        words, begin = 0, time.perf_counter()
        for _ in range(steps):
            batch = self.batches[self.step % len(self.batches)]
            self.learner.update(batch, self.step, base_rate(self.hparams))
            words += batch.words
            self.step += 1
        return words / (time.perf_counter() - begin)


def main(argv=None):
    """Runs the measurement of the command line."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--hparams_path", required=True)
    parser.add_argument("--corpus_dir", required=True)
    parser.add_argument("--vocab_prefix")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--updates", type=int, default=30, help="of each variant in a round")
    parser.add_argument("--warmup", type=int, default=20, help="updates that are not timed")
    args = parser.parse_args(argv)
    base = {"train_prefix": str(Path(args.corpus_dir) / "train"), "precision": "float32"}
    if args.vocab_prefix:
        base["vocab_prefix"] = args.vocab_prefix
    variants = {
        name: Variant(args.hparams_path, base, args.warmup, **changes)
        for name, changes in VARIANTS.items()
    }
    speeds = {name: [] for name in variants}
    for number in range(args.rounds):
        for name, variant in variants.items():
            speeds[name].append(variant.run(args.updates))
        row = {name: round(values[-1]) for name, values in speeds.items()}
        print(json.dumps({"round": number, **row}), flush=True)
    for name, values in speeds.items():
        ratios = [value / on for value, on in zip(values, speeds["all on"])]
        record = {"variant": name, "ratio": round(statistics.median(ratios), 3), "runs": ratios}
        print(json.dumps({**record, "hparams_path": args.hparams_path, **provenance()}))


if __name__ == "__main__":
    main()
