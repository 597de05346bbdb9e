"""Trains or decodes with an unchanged OpenNMT-tf 2.32.0 and prints one JSON line of timings.

Runs in the environment that setup.sh makes for it; compare.py calls it.
"""

from __future__ import annotations

from meter import UpdateMeter  # isort: skip (its import starts the clock)

import shutil
import time
from argparse import Namespace
from pathlib import Path

import driver
import opennmt
import tensorflow as tf
import yaml
from onmt_model import rnn_luong
from opennmt.utils.checkpoint import Checkpoint
from opennmt.utils.misc import OrderRestorer, extract_batches

SEED = 1


def config(flags: Namespace) -> dict:
    """Returns onmt.yaml with this run's vocabularies in it."""
    settings = yaml.safe_load(Path(__file__).with_name("onmt.yaml").read_text("utf-8"))
    settings["model_dir"] = str(flags.model_dir)
    settings["data"] = {
        "source_vocabulary": driver.suffixed(flags.vocab, flags.src),
        "target_vocabulary": driver.suffixed(flags.vocab, flags.tgt),
    }
    return settings


def train(flags: Namespace) -> dict:
    """Trains as `onmt-main train`, with a clock on the steps."""
    settings = config(flags)
    settings["data"].update(
        train_features_file=driver.suffixed(flags.train, flags.src),
        train_labels_file=driver.suffixed(flags.train, flags.tgt),
    )
    settings["train"]["max_step"] = flags.warmup + flags.steps
    if flags.random_batches:
        settings["train"]["length_bucket_width"] = 0
    meter = UpdateMeter(flags.warmup)
    parameters = 0

    class TimedTrainer(opennmt.training.Trainer):
        """Counts the target words of each batch and reports the end of every update."""

        def __init__(self, *args, **kwargs):
            super().__init__(*args, **kwargs)
            self._target_words = tf.Variable(0, dtype=tf.int64, trainable=False)

        def _accumulate_gradients(self, batch):
            super()._accumulate_gradients(batch)
            _, labels = self._model.split_features_labels(batch)
            # The length of the decoder's output: with </s>, without padding.
            words = tf.reduce_sum(tf.cast(labels["length"], tf.int64))
            self._target_words.assign_add(words)

        def _steps(self, *args, **kwargs):
            for loss in super()._steps(*args, **kwargs):
                meter.update_done(int(self._target_words))
                nonlocal parameters
                parameters = self._model.count_params()
                yield loss

    opennmt.training.Trainer = TimedTrainer
    shutil.rmtree(flags.model_dir, ignore_errors=True)
    flags.model_dir.mkdir(parents=True)
    opennmt.Runner(rnn_luong, settings, seed=SEED).train()
    return {**meter.result(), "parameters": parameters}


def decode(flags: Namespace) -> dict:
    """Decodes as `onmt-main infer`, with the graph traced and warm before the clock starts."""
    settings = config(flags)
    infer = settings["infer"]
    settings["params"]["beam_width"] = flags.beam_width
    model = rnn_luong()
    model.initialize(settings["data"], params=settings["params"])
    checkpoint = Checkpoint.from_config(settings, model)
    if checkpoint.restore(weights_only=True) is None:
        raise SystemExit(f"no OpenNMT-tf checkpoint in {flags.model_dir}")

    def dataset(prefix: Path) -> tf.data.Dataset:
        return model.examples_inputter.make_inference_dataset(
            driver.suffixed(prefix, flags.src), **infer
        )

    text = dataset(flags.input)
    translate = tf.function(model.infer, input_signature=(text.element_spec,))
    for features in dataset(flags.warmup_input):
        translate(features)

    sentences = 0
    with open(flags.output, "w", encoding="utf-8") as stream:
        # Buckets come out of order.
        writer = OrderRestorer(
            lambda prediction: prediction.get("index"),
            lambda prediction: model.print_prediction(prediction, stream=stream),
        )
        begin = time.perf_counter()
        for features in text:
            predictions = tf.nest.map_structure(lambda t: t.numpy(), translate(features))
            for prediction in extract_batches(predictions):
                writer.push(prediction)
                sentences += 1
        seconds = time.perf_counter() - begin
    return {"sentences": sentences, "seconds": seconds}


def main() -> None:
    """Runs the command line; the JSON line is the last of standard output."""
    flags = driver.parse()
    if flags.command == "to_bleu":
        raise SystemExit("onmt_driver.py: to_bleu is for JoeyNMT alone")
    result = {"train": train, "decode": decode}[flags.command](flags)
    versions = {"OpenNMT-tf": opennmt.__version__, "tensorflow": tf.__version__}
    driver.report(result, versions)


if __name__ == "__main__":
    main()
