"""Trains or decodes with an unchanged JoeyNMT 2.3.0 and prints one JSON line of timings.

Runs in the environment that setup.sh makes for it; compare.py calls it.
"""

from __future__ import annotations

import meter  # isort: skip (its import starts the clock)

import time
from argparse import Namespace
from pathlib import Path

import driver
import importlib_metadata
import torch
import yaml
from joeynmt import builders, prediction, training
from joeynmt.helpers import make_model_dir
from sacrebleu.metrics import BLEU


def config(flags: Namespace) -> dict:
    """Returns joey.yaml with this run's languages and vocabularies in it."""
    settings = yaml.safe_load(Path(__file__).with_name("joey.yaml").read_text("utf-8"))
    settings["model_dir"] = str(flags.model_dir)
    for side, language in (("src", flags.src), ("trg", flags.tgt)):
        vocab = driver.suffixed(flags.vocab, language)
        settings["data"][side].update(lang=language, voc_file=vocab)
    return settings


def without_verbose(scheduler):
    """Removes the argument `verbose`, which torch 2.7 and later refuse, from JoeyNMT's call."""

    def build(*args, verbose=None, **kwargs):
        return scheduler(*args, **kwargs)

    return build


def _run(flags: Namespace, settings: dict, updates: int, manager: type) -> None:
    """Runs JoeyNMT's own training, with a TrainManager that reports to the meter."""
    settings["data"].update(train=str(flags.train), dev=str(flags.dev))
    settings["training"]["updates"] = updates
    builders.ReduceLROnPlateau = without_verbose(builders.ReduceLROnPlateau)
    training.TrainManager = manager
    make_model_dir(flags.model_dir, overwrite=True)
    training.train(rank=0, world_size=None, cfg=settings, skip_test=True)


def train(flags: Namespace) -> dict:
    """Trains as `joeynmt train --skip-test`, with a clock on the optimizer.

    JoeyNMT has only random batches, whatever the flags say.
    """
    clock = meter.UpdateMeter(flags.warmup)
    parameters = 0

    class TimedManager(training.TrainManager):
        """Reports the end of every update to the meter."""

        def __init__(self, *args, **kwargs):
            super().__init__(*args, **kwargs)
            nonlocal parameters
            parameters = sum(p.numel() for p in self.model.parameters())
            # The words of a batch, with </s> and without padding, are added before the update.
            self.optimizer.register_step_post_hook(
                lambda *_: clock.update_done(int(self.stats.total_tokens))
            )

    _run(flags, config(flags), flags.warmup + flags.steps, TimedManager)
    return {**clock.result(), "parameters": parameters}


def to_bleu(flags: Namespace) -> dict:
    """Trains, with its own evaluations by greedy search, until one reaches the goal.

    BLEU is of the words as they are, lower-cased, as compare.py scores hypotheses.
    """
    settings = config(flags)
    frequency = settings["training"]["logging_freq"]
    # JoeyNMT requires a line of its log between two evaluations.
    settings["training"].update(
        validation_freq=flags.every, logging_freq=min(frequency, flags.every - 1)
    )
    references = Path(driver.suffixed(flags.dev, flags.tgt)).read_text("utf-8").split("\n")[:-1]
    bleu = BLEU(tokenize="none", lowercase=True, force=True)
    watch, scores = meter.Watch(flags.goal), []
    predict = training.predict

    def scoring_predict(*args, **kwargs):
        result = predict(*args, **kwargs)
        scores.append(bleu.corpus_score(result[2], [references]).score)
        return result

    training.predict = scoring_predict

    class WatchedManager(training.TrainManager):
        """Reports every evaluation to the meter."""

        def _validate(self, valid_data):
            begin = time.perf_counter()
            super()._validate(valid_data)
            watch.evaluated(self.stats.steps, scores[-1], time.perf_counter() - begin)

    try:
        _run(flags, settings, flags.most, WatchedManager)
    except meter.Reached:
        pass
    return watch.result()


def decode(flags: Namespace) -> dict:
    """Decodes as `joeynmt test`: first the warm-up text, as development set, then the text."""
    settings = config(flags)
    settings["data"].update(dev=str(flags.warmup_input), test=str(flags.input))
    settings["testing"]["beam_size"] = flags.beam_width
    runs = []
    predict = prediction.predict

    def timed_predict(*args, **kwargs):
        begin = time.perf_counter()
        result = predict(*args, **kwargs)
        hypotheses = result[2]
        runs.append({"sentences": len(hypotheses), "seconds": time.perf_counter() - begin})
        return result

    prediction.predict = timed_predict
    prefix = flags.output.with_name(flags.output.name + ".joey")
    prediction.test(cfg=settings, output_path=str(prefix))
    Path(f"{prefix}.dev").unlink()
    Path(f"{prefix}.test").replace(flags.output)
    return runs[-1]


def main() -> None:
    """Runs the command line; the JSON line is the last of standard output."""
    flags = driver.parse()
    result = {"train": train, "to_bleu": to_bleu, "decode": decode}[flags.command](flags)
    versions = {name: importlib_metadata.version(name) for name in ("joeynmt", "torch")}
    driver.report({**result, "torch_threads": torch.get_num_threads()}, versions)


if __name__ == "__main__":
    main()
